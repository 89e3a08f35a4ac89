//! Handlers that run before and after each fork of the process.

use std::cell::Cell;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

#[cfg(feature = "sqlite")]
use super::gate;

static GENERATION: AtomicU64 = AtomicU64::new(0);

thread_local! {
    /// The number of our handlers that have run before the fork that this thread makes, and not after it yet.
    static DEPTH: Cell<u32> = const { Cell::new(0) };
}

/// The number of forks between this process and the one that first used the crate. A value of another generation belongs to
/// another process: it must be leaked, and even its locks must not be touched.
pub(crate) fn generation() -> u64 {
    GENERATION.load(Ordering::Relaxed)
}

/// From now on forks are noticed. Call it before anything that must not cross a fork is made.
///
/// # Errors
/// The C library has no memory left for its list of handlers.
pub(crate) fn install() -> io::Result<()> {
    static INSTALLED: AtomicBool = AtomicBool::new(false);
    if INSTALLED.load(Ordering::Acquire) {
        return Ok(());
    }
    // Two threads may both come here. Waiting for one another could hang a child forked in that moment, so the handlers
    // bear being installed twice instead.
    // SAFETY: the three functions have the required type, live as long as the code of this crate, and do not unwind.
    match unsafe { libc::pthread_atfork(Some(prepare), Some(in_parent), Some(in_child)) } {
        0 => {
            INSTALLED.store(true, Ordering::Release);
            Ok(())
        }
        code => Err(io::Error::from_raw_os_error(code)),
    }
}

unsafe extern "C" fn prepare() {
    let depth = DEPTH.get();
    DEPTH.set(depth + 1);
    #[cfg(feature = "sqlite")]
    if depth == 0 {
        gate::before_fork();
    }
}

unsafe extern "C" fn in_parent() {
    if leave() {
        #[cfg(feature = "sqlite")]
        gate::after_fork_in_parent();
    }
}

/// The other threads are gone and their mutexes may be locked forever, so this touches atomics only.
unsafe extern "C" fn in_child() {
    GENERATION.fetch_add(1, Ordering::Relaxed);
    if leave() {
        #[cfg(feature = "sqlite")]
        gate::after_fork_in_child();
    }
}

fn leave() -> bool {
    let depth = DEPTH.get().saturating_sub(1);
    DEPTH.set(depth);
    depth == 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::fork::tests::{alone, in_forked_child};

    #[test]
    fn handlers_may_be_installed_twice() {
        alone(|| {
            for _ in 0..2 {
                // SAFETY: as in `install`.
                assert_eq!(unsafe { libc::pthread_atfork(Some(prepare), Some(in_parent), Some(in_child)) }, 0);
            }
            assert_eq!(in_forked_child(|| i32::from(generation() == 0 || DEPTH.get() != 0)), 0);
            assert_eq!((generation(), DEPTH.get()), (0, 0));
        });
    }
}
