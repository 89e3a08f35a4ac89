//! The gate that SQLite is used behind, and forks that close it.

use std::time::Duration;

use crate::host::fork::gate;
use crate::host::sync::Arc;
use crate::host::time::Time;

/// Forks as a whole: the calling thread closes the gate, forks, and opens it again as the parent. Answers whether the gate
/// was closed in time.
pub fn fork_behind_the_gate(fork: impl FnOnce()) -> bool {
    gate::before_fork();
    let is_closed = gate::is_closing();
    fork();
    gate::after_fork_in_parent();
    is_closed
}

/// Goes through the gate; answers whether it was open before long. `act` is given a function that registers what a fork has
/// to close.
pub fn pass_the_gate(act: impl FnOnce(&mut dyn FnMut(Arc<dyn Fn() + Send + Sync>))) -> bool {
    let Ok(pass) = gate::enter(Time::System.monotonic().plus(Duration::from_secs(1))) else { return false };
    act(&mut |close| gate::register(&pass, Arc::new(Open(close))));
    true
}

struct Open(Arc<dyn Fn() + Send + Sync>);

impl gate::CloseBeforeFork for Open {
    fn close(&self) {
        (self.0)();
    }
}
