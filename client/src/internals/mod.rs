//! Parts of the client that the tests in `testing/concurrency` use beside its public interface. No other build has this module.

mod gate;
mod parts;
mod store;

use std::time::Duration;

use crate::exec::{self, Pause};

pub use gate::{fork_behind_the_gate, pass_the_gate};
pub use parts::{Callbacks, LeaseState, Reports, TimerWakeup, WakeupForwarder, Worker};
pub use store::{Backing, Store};

/// Runs a future on the calling thread, as blocking callers do.
pub fn block_on<F: Future>(future: F) -> F::Output {
    exec::block_on(future)
}

/// As [`block_on`], until `enough` answers `true` after a turn of the future, which is dropped then. Turns follow each other
/// every few milliseconds if nobody wakes the thread.
pub fn block_on_until<F: Future>(future: F, mut enough: impl FnMut() -> bool) -> Option<F::Output> {
    let pause = Duration::from_millis(5);
    exec::block_on_until(future, || if enough() { Pause::GiveUp } else { Pause::AtMost(pause) }).ok()
}
