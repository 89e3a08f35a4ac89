//! Forks, as far as one process can show them: a child is a thread of another generation. What it must not touch, a child's
//! copy of a mutex above all, is there for it to touch, and is found out.

use std::cell::Cell;
use std::io;
use std::sync::Arc;
use std::time::Duration;

#[path = "../../../client/src/fork/per_process.rs"]
mod per_process;

#[allow(dead_code, unreachable_pub, reason = "not all of it is needed without SQLite")]
#[path = "../../../client/src/fork/gate.rs"]
pub(crate) mod gate;

pub use per_process::PerProcess;

use crate::{clock, world};

shuttle::thread_local! {
    static DEPTH: Cell<u64> = Cell::new(0);
}

/// Forks between the calling thread and the test's first, and which run it is: what one run has left is nothing to the next.
pub(crate) fn generation() -> u64 {
    (world::run() << 8) + DEPTH.with(Cell::get)
}

#[expect(clippy::unnecessary_wraps, reason = "the client expects it")]
pub(crate) fn install() -> io::Result<()> {
    Ok(())
}

/// Does something as the only thread of a forked child would.
pub fn in_child<R>(act: impl FnOnce() -> R) -> R {
    DEPTH.with(|depth| depth.set(depth.get() + 1));
    let result = act();
    DEPTH.with(|depth| depth.set(depth.get() - 1));
    result
}

/// Forks as a whole: the calling thread closes the gate, forks, and opens it again as the parent. Answers whether the gate
/// was closed in time.
pub fn fork_behind_the_gate(act: impl FnOnce()) -> bool {
    gate::before_fork();
    let is_closed = gate::is_closing();
    act();
    gate::after_fork_in_parent();
    is_closed
}

/// Goes through the gate; answers whether it was open before long.
pub fn pass_the_gate(act: impl FnOnce(&mut dyn FnMut(Arc<dyn Fn() + Send + Sync>))) -> bool {
    let Ok(pass) = gate::enter(clock::monotonic().plus(Duration::from_secs(1))) else { return false };
    act(&mut |close| gate::register(&pass, Arc::new(Open(close))));
    true
}

struct Open(Arc<dyn Fn() + Send + Sync>);

impl gate::CloseBeforeFork for Open {
    fn close(&self) {
        (self.0)();
    }
}

/// How deep the calling thread is in forks, for a thread that it starts.
pub(crate) fn depth() -> u64 {
    DEPTH.with(Cell::get)
}

pub(crate) fn begin_at(depth: u64) {
    DEPTH.with(|of_thread| of_thread.set(depth));
}
