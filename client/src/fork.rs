//! Forks: a child process must not use, release or even close what its parent holds.
//!
//! Handlers of `pthread_atfork` count the generations of processes, so that everything made before a fork can tell in
//! the child that it is not its own: one load, where a system call for the process id would cost more than the work it
//! guards. A child made by a bare `clone` system call runs no handlers; it must `exec` before it uses this crate.

#[cfg(feature = "sqlite")]
pub(crate) mod gate;
mod per_process;

use std::cell::Cell;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

pub use per_process::PerProcess;

static GENERATION: AtomicU64 = AtomicU64::new(0);

thread_local! {
    /// How many of our handlers stand between the two halves of a fork on this thread.
    static DEPTH: Cell<u32> = const { Cell::new(0) };
}

/// How many forks lie between this process and the one that first used the crate. What was made in another generation
/// belongs to another process: leave it alone, its locks included, and leak it.
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

/// The other threads are gone and their mutexes may be locked for ever, so this touches atomics only.
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
pub(crate) mod tests {
    use std::sync::Mutex;

    use super::*;

    /// Runs `child` in a forked process and answers its exit code. Call it in [`alone`] only.
    pub(crate) fn in_forked_child(child: impl FnOnce() -> i32) -> i32 {
        // SAFETY: `alone` made sure that no other thread of ours is at work; the child leaves through `_exit`, whatever
        // happens, and so never returns into the test harness.
        let pid = unsafe { libc::fork() };
        assert!(pid >= 0, "fork: {}", io::Error::last_os_error());
        if pid == 0 {
            let code = std::panic::catch_unwind(std::panic::AssertUnwindSafe(child)).unwrap_or(101);
            // SAFETY: ends the process without running anything of the parent's.
            unsafe { libc::_exit(code) };
        }
        wait_for(pid)
    }

    fn wait_for(pid: libc::pid_t) -> i32 {
        let mut status = 0;
        let give_up = crate::clock::monotonic().plus(std::time::Duration::from_secs(60));
        // SAFETY: `status` is valid for writing; `pid` is our own child, not waited for yet.
        while unsafe { libc::waitpid(pid, &raw mut status, libc::WNOHANG) } == 0 {
            if crate::clock::monotonic() > give_up {
                // SAFETY: still our child, since it has not been waited for.
                unsafe { libc::kill(pid, libc::SIGKILL) };
                panic!("the child hangs");
            }
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        assert!(libc::WIFEXITED(status), "the child died of a signal: {status:#x}");
        libc::WEXITSTATUS(status)
    }

    /// Runs a test in a process of its own, where the only other thread is the harness's, which sleeps: `fork` with
    /// threads of other tests inside SQLite or the allocator would test those.
    pub(crate) fn alone(test: &str, body: impl FnOnce()) {
        const VARIABLE: &str = "LEASEHOLD_TEST_ALONE";
        if std::env::var(VARIABLE).as_deref() == Ok(test) {
            return body();
        }
        let output = std::process::Command::new(std::env::current_exe().unwrap())
            .args([test, "--exact", "--test-threads=1", "--nocapture"])
            .env(VARIABLE, test)
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
        assert!(text.contains("1 passed"), "no test is called {test}: {text}");
    }

    #[test]
    fn a_child_is_another_generation_and_finds_its_own_values() {
        alone("fork::tests::a_child_is_another_generation_and_finds_its_own_values", || {
            static VALUE: PerProcess<Mutex<u32>> = PerProcess::new(|| Mutex::new(0));
            install().unwrap();
            install().unwrap();
            let before = generation();
            let held = VALUE.get().lock().unwrap();
            let code = in_forked_child(|| {
                assert!(generation() > before);
                *VALUE.get().lock().unwrap() += 1;
                // A grandchild is a child like any other.
                in_forked_child(|| i32::from(*VALUE.get().lock().unwrap() != 0))
            });
            assert_eq!(code, 0);
            assert_eq!((*held, generation()), (0, before));
            drop(held);
            assert!(std::ptr::eq(VALUE.get(), VALUE.get()));
        });
    }

    #[test]
    fn handlers_bear_being_installed_twice() {
        alone("fork::tests::handlers_bear_being_installed_twice", || {
            for _ in 0..2 {
                // SAFETY: as in `install`.
                assert_eq!(unsafe { libc::pthread_atfork(Some(prepare), Some(in_parent), Some(in_child)) }, 0);
            }
            assert_eq!(in_forked_child(|| i32::from(generation() == 0 || DEPTH.get() != 0)), 0);
            assert_eq!((generation(), DEPTH.get()), (0, 0));
        });
    }
}
