//! Forks, as far as one process can show them: a child is a thread of another generation. A child's copy of a mutex, which
//! it must not touch above all, is there for it to touch, and is found out.

use std::cell::Cell;
use std::io;

use crate::world;

shuttle::thread_local! {
    static DEPTH: Cell<u64> = Cell::new(0);
}

/// The number of forks between the calling thread and the test's first, and the run: what one run has left means nothing to
/// the next.
pub fn generation() -> u64 {
    (world::run() << 8) + DEPTH.with(Cell::get)
}

/// Forks are always noticed here.
///
/// # Errors
/// Never.
pub fn install() -> io::Result<()> {
    Ok(())
}

/// Runs something as the only thread of a forked child would.
pub fn in_child<R>(act: impl FnOnce() -> R) -> R {
    DEPTH.with(|depth| depth.set(depth.get() + 1));
    let result = act();
    DEPTH.with(|depth| depth.set(depth.get() - 1));
    result
}

/// The number of forks above the calling thread, for a thread that it starts.
pub(crate) fn depth() -> u64 {
    DEPTH.with(Cell::get)
}

pub(crate) fn begin_at(depth: u64) {
    DEPTH.with(|of_thread| of_thread.set(depth));
}
