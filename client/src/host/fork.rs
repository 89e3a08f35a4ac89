//! Forks: a child process must not use, release or even close what its parent holds.
//!
//! Handlers of `pthread_atfork` count the generations of processes, so that everything made before a fork can tell in
//! the child that it is not its own: one load, where a system call for the process id would cost more than the work it
//! guards. A child made by a bare `clone` system call runs no handlers; it must `exec` before it uses this crate.

#[cfg(any(feature = "sqlite", leasehold_concurrency))]
#[cfg_attr(windows, allow(dead_code, reason = "nothing forks there"))]
pub(crate) mod gate;
#[cfg(all(unix, not(leasehold_concurrency)))]
mod handlers;
mod owned;
mod per_process;

#[cfg(all(unix, not(leasehold_concurrency)))]
pub(crate) use handlers::{generation, install};
#[cfg(leasehold_concurrency)]
pub(crate) use leasehold_scheduler::fork::{generation, install};
pub(crate) use owned::Owned;
pub use per_process::PerProcess;
#[cfg(all(windows, not(leasehold_concurrency)))]
pub(crate) use without::{generation, install};

/// Windows has no forks.
#[cfg(all(windows, not(leasehold_concurrency)))]
mod without {
    pub(crate) fn generation() -> u64 {
        0
    }

    #[allow(clippy::unnecessary_wraps, reason = "elsewhere it may fail")]
    pub(crate) fn install() -> std::io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
pub(crate) mod tests {
    #[cfg(unix)]
    use std::io;
    #[cfg(unix)]
    use std::sync::Mutex;

    #[cfg(unix)]
    use super::*;

    /// Runs `child` in a forked process and answers its exit code. Call it in [`alone`] only.
    #[cfg(unix)]
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

    #[cfg(unix)]
    fn wait_for(pid: libc::pid_t) -> i32 {
        let mut status = 0;
        let give_up = crate::host::clock::monotonic().plus(std::time::Duration::from_secs(60));
        // SAFETY: `status` is valid for writing; `pid` is our own child, not waited for yet.
        while unsafe { libc::waitpid(pid, &raw mut status, libc::WNOHANG) } == 0 {
            if crate::host::clock::monotonic() > give_up {
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
    ///
    /// The harness names the thread of a test after it.
    pub(crate) fn alone(body: impl FnOnce()) {
        const VARIABLE: &str = "LEASEHOLD_TEST_ALONE";
        if std::env::var_os(VARIABLE).is_some() {
            return body();
        }
        let thread = std::thread::current();
        let test = thread.name().filter(|name| *name != "main").expect("a thread of its own, without --test-threads=1");
        let output = std::process::Command::new(std::env::current_exe().unwrap())
            .args([test, "--exact", "--test-threads=1", "--nocapture"])
            .env(VARIABLE, "1")
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
        assert!(text.contains("1 passed"), "no test is called {test}: {text}");
    }

    #[cfg(unix)]
    #[test]
    fn a_child_is_another_generation_and_finds_its_own_values() {
        alone(|| {
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
}
