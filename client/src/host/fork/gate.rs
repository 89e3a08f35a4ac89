//! A gate in front of SQLite: no fork happens while a thread is inside.
//!
//! SQLite keeps a list of the file locks that its process holds. A child would inherit the list without the locks, take
//! files for locked that are not, and corrupt the write-ahead log for all processes. So a fork waits until no thread is
//! inside, closes what is open, and lets both processes open it again when they need it.

#![allow(clippy::disallowed_methods, reason = "forks happen in the time of the machine")]

use std::cell::Cell;
use std::time::Duration;

use leasehold_core::Monotonic;

use super::{PerProcess, generation};
use crate::host::clock;
use crate::host::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use crate::host::sync::{Arc, Mutex, thread, thread_local};

/// The longest that a fork waits for threads inside. Transactions have their own, shorter deadlines.
const FORK_WAIT: Duration = Duration::from_secs(2);
/// Between two looks at the gate. A condition variable would not survive the fork that it waits for.
const LOOK_AGAIN: Duration = Duration::from_micros(100);

const CLOSED: u32 = 1 << 31;
/// [`CLOSED`] while a thread forks, and the number of threads inside.
static STATE: AtomicU32 = AtomicU32::new(0);
/// A fork of an ancestor did not wait long enough, so this process inherited SQLite in an unknown state.
static UNCLEAN: AtomicBool = AtomicBool::new(false);
/// Locked by threads inside and by a fork that found none inside, so never while a fork happens.
static OPEN: PerProcess<Mutex<Vec<Arc<dyn CloseBeforeFork>>>> = PerProcess::new(|| Mutex::new(Vec::new()));

thread_local! {
    static HOLDS: Cell<bool> = const { Cell::new(false) };
}

/// Something open that must not cross a fork.
pub(crate) trait CloseBeforeFork: Send + Sync {
    /// Closes it, while no thread is inside the gate. The next thread that needs it opens it again.
    fn close(&self);
}

/// The reason that the gate does not open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shut {
    /// Another thread forks, and took until the deadline.
    Forking,
    /// This process was forked while a thread of its parent was inside, and can never enter.
    Unclean,
}

/// Proof that the thread is inside.
#[derive(Debug)]
pub(crate) struct Pass {
    generation: u64,
}

impl Drop for Pass {
    fn drop(&mut self) {
        // A fork forgets those who were inside in the parent.
        if self.generation == generation() {
            STATE.fetch_sub(1, Ordering::Release);
        }
    }
}

/// Enters; every call of SQLite happens while a pass is held.
pub(crate) fn enter(until: Monotonic) -> Result<Pass, Shut> {
    if UNCLEAN.load(Ordering::Relaxed) {
        return Err(Shut::Unclean);
    }
    loop {
        let state = STATE.load(Ordering::Relaxed);
        if state & CLOSED == 0 {
            if STATE.compare_exchange_weak(state, state + 1, Ordering::Acquire, Ordering::Relaxed).is_ok() {
                return Ok(Pass { generation: generation() });
            }
        } else if clock::monotonic() >= until {
            return Err(Shut::Forking);
        } else {
            thread::sleep(LOOK_AGAIN);
        }
    }
}

/// Tells if a fork waits for threads to leave.
pub(crate) fn is_closing() -> bool {
    STATE.load(Ordering::Relaxed) & CLOSED != 0
}

/// From now on a fork closes it.
pub(crate) fn register(_inside: &Pass, open: Arc<dyn CloseBeforeFork>) {
    registered(|list| list.push(open));
}

/// Ends [`register`].
#[cfg(feature = "sqlite")]
pub(crate) fn unregister(_inside: &Pass, open: &Arc<dyn CloseBeforeFork>) {
    registered(|list| list.retain(|other| !Arc::ptr_eq(other, open)));
}

fn registered<R>(change: impl FnOnce(&mut Vec<Arc<dyn CloseBeforeFork>>) -> R) -> R {
    change(&mut OPEN.get().lock())
}

pub(crate) fn before_fork() {
    let give_up = clock::monotonic().plus(FORK_WAIT);
    let holds = close(give_up);
    if holds {
        registered(|list| list.iter().for_each(|open| open.close()));
    }
    HOLDS.with(|kept| kept.set(holds));
}

pub(crate) fn after_fork_in_parent() {
    if HOLDS.with(Cell::take) {
        STATE.fetch_and(!CLOSED, Ordering::Release);
    }
}

#[cfg(not(leasehold_concurrency))]
pub(super) fn after_fork_in_child() {
    if !HOLDS.with(Cell::take) {
        UNCLEAN.store(true, Ordering::Relaxed);
    }
    STATE.store(0, Ordering::Release);
}

/// Keeps others out and waits for threads inside to leave; `false` when that took too long, and nothing is changed.
fn close(give_up: Monotonic) -> bool {
    while STATE.fetch_or(CLOSED, Ordering::Acquire) & CLOSED != 0 {
        if clock::monotonic() >= give_up {
            return false;
        }
        thread::sleep(LOOK_AGAIN);
    }
    while STATE.load(Ordering::Acquire) != CLOSED {
        if clock::monotonic() >= give_up {
            STATE.fetch_and(!CLOSED, Ordering::Release);
            return false;
        }
        thread::sleep(LOOK_AGAIN);
    }
    true
}

#[cfg(test)]
#[cfg(unix)]
pub(crate) mod tests {
    use std::sync::atomic::AtomicUsize;

    use super::*;
    use crate::host::fork::install;
    use crate::host::fork::tests::{alone, in_forked_child};

    /// The number of threads inside.
    pub(crate) fn inside() -> u32 {
        STATE.load(Ordering::SeqCst) & !CLOSED
    }

    #[derive(Default)]
    struct Probe {
        closed: AtomicUsize,
        entered_while_closed: AtomicUsize,
    }

    impl CloseBeforeFork for Probe {
        fn close(&self) {
            self.closed.fetch_add(1, Ordering::SeqCst);
            if enter(clock::monotonic()).is_ok() {
                self.entered_while_closed.fetch_add(1, Ordering::SeqCst);
            }
        }
    }

    #[test]
    fn a_fork_waits_for_threads_inside_and_closes_open_files() {
        alone(|| {
            install().unwrap();
            let probe = Arc::new(Probe::default());
            let erased: Arc<dyn CloseBeforeFork> = probe.clone();
            let pass = enter(Monotonic::FAR).unwrap();
            register(&pass, erased.clone());
            let inside = thread::spawn(move || {
                let give_up = clock::monotonic().plus(FORK_WAIT);
                while !is_closing() {
                    assert!(clock::monotonic() < give_up);
                    thread::yield_now();
                }
                drop(pass);
            });
            // Both processes find the gate open, and only the parent has something to close at its next fork.
            let code = in_forked_child(|| {
                let again = in_forked_child(|| i32::from(enter(Monotonic::FAR).is_err()));
                i32::from(enter(Monotonic::FAR).is_err()) + again + i32::from(probe.closed.load(Ordering::SeqCst) != 1)
            });
            assert_eq!(code, 0);
            inside.join().unwrap();
            assert_eq!(in_forked_child(|| 0), 0);
            unregister(&enter(Monotonic::FAR).unwrap(), &erased);
            assert_eq!(in_forked_child(|| 0), 0);
            assert_eq!(probe.closed.load(Ordering::SeqCst), 2);
            assert_eq!(probe.entered_while_closed.load(Ordering::SeqCst), 0);
            assert_eq!(STATE.load(Ordering::SeqCst), 0);
        });
    }

    #[test]
    fn a_child_is_kept_out_if_a_thread_was_inside_for_too_long() {
        alone(|| {
            install().unwrap();
            let pass = enter(Monotonic::FAR).unwrap();
            let code = in_forked_child(|| {
                let shut = matches!(enter(Monotonic::FAR), Err(Shut::Unclean));
                drop(pass);
                // Not even its own children come in, although their fork was clean.
                let below = in_forked_child(|| i32::from(!matches!(enter(Monotonic::FAR), Err(Shut::Unclean))));
                i32::from(!shut || STATE.load(Ordering::SeqCst) != 0) + below
            });
            assert_eq!(code, 0);
            assert!(!is_closing());
            assert!(enter(clock::monotonic()).is_ok());
        });
    }

    #[test]
    fn entering_during_a_fork_waits_no_longer_than_the_deadline() {
        alone(|| {
            assert!(close(Monotonic::FAR));
            assert!(matches!(enter(clock::monotonic()), Err(Shut::Forking)));
            assert!(!close(clock::monotonic()), "two threads fork at once");
            let waiting = thread::spawn(|| enter(Monotonic::FAR).is_ok());
            STATE.fetch_and(!CLOSED, Ordering::Release);
            assert!(waiting.join().unwrap());
        });
    }
}
