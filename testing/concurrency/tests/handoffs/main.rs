//! Hand-offs between the threads of a client, each in a file of its own.

#![allow(clippy::unwrap_used, reason = "these are tests, and their helpers are too")]

mod caller_requests;
mod cancelling;
mod closing;
mod deadlines;
mod features;
mod fencing;
mod forks;
mod releasing;
mod renewing;
mod replacing;
mod reports;
mod timer_wakeups;
mod wakers;
mod workers;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use leasehold_scheduler::world::Time;

/// Longer than any test lasts by its clock: such a lease is not lost.
const LONG: Duration = Duration::from_secs(3_600);
/// No test waits for longer than this.
const PASSES: Time = Time::Passes(Duration::from_secs(300));
const LEAPS: Time = Time::Leaps(Duration::from_secs(12_000));

/// Counts across threads without giving the scheduler anything to choose.
#[derive(Clone, Default)]
struct Count(Arc<AtomicUsize>);

impl Count {
    fn up(&self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }

    fn get(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}
