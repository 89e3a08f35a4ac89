//! The test clock: its clients behave as real ones do, and no time passes but its own.

mod asynchronous;
mod composed;
mod faults;
mod groups;
mod holding;
mod local_time;
mod threads;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use leasehold::blocking::Client;
use leasehold::testing::TestClock;
use leasehold::{Error, ErrorKind};

const TTL: Duration = Duration::from_secs(30);
const LONG: Duration = Duration::from_secs(3_600);

const fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

/// A clock with two clients, each as another process.
fn two() -> (TestClock, Client, Client) {
    let clock = TestClock::new(7);
    let (client, rival) = (owned(&clock, "me"), owned(&clock, "rival"));
    (clock, client, rival)
}

fn owned(clock: &TestClock, owner: &str) -> Client {
    clock.connect_with(leasehold::Client::builder().owner(owner)).unwrap().blocking()
}

fn kind<T>(result: Result<T, Error>) -> Option<ErrorKind> {
    result.err().map(|error| error.kind())
}

/// The words of callbacks, in order.
#[derive(Clone, Default)]
struct Journal(Arc<Mutex<Vec<String>>>);

impl Journal {
    fn tell(&self, what: impl Into<String>) {
        self.0.lock().unwrap().push(what.into());
    }

    fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.lock().unwrap())
    }
}
