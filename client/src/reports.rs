//! Reports of the client: log events through `tracing`, and samples for recorders of metrics.
//!
//! Both are other people's code, which may block: a pipe that nobody reads, a disk that hangs. So the threads that renew
//! leases and tell of losses only leave their reports here, in a bounded queue that a thread of its own empties. Callers
//! report what concerns their own locks themselves, within their spans, as long as nothing waits that came before it.

use std::collections::VecDeque;
use std::time::Duration;

use tracing::subscriber::NoSubscriber;
use tracing::{Dispatch, Level, Span};

use crate::clock;
use crate::driver::{is_own_thread, spawn};
use crate::exec::OFFLOAD;
use crate::fork::{self, PerProcess};
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::sync::{Arc, Condvar, Mutex, thread};

/// Reports that wait at once; as many again may be on their way out. What is more is dropped, and counted.
const MOST: usize = 10_000;
/// How long the end of a client waits for its last reports.
const PATIENCE: Duration = Duration::from_millis(500);

const THREAD: &str = "leasehold-reports";

/// Under the scheduler of `testing/concurrency` nobody listens who could hang, and a thread that outlives the schedule would.
const IS_IMMEDIATE: bool = cfg!(leasehold_concurrency);

static DESK: PerProcess<Desk> = PerProcess::new(|| Desk::new(MOST));

/// Has something reported soon, on the thread kept for it. It never waits.
pub(crate) fn leave(level: Level, report: impl FnOnce() + Send + 'static) {
    if IS_IMMEDIATE {
        return report();
    }
    DESK.get().leave(level, Box::new(report));
}

/// As [`leave`], for a caller's thread: reported there and now, unless something waits that comes first.
pub(crate) fn leave_or_tell(level: Level, report: impl FnOnce() + Send + 'static) {
    if IS_IMMEDIATE {
        return report();
    }
    let desk = DESK.get();
    if desk.is_idle() && is_callers_thread() {
        report();
    } else {
        let origin = Origin::here();
        desk.leave(level, Box::new(move || origin.within(report)));
    }
}

/// Waits a moment until everything is reported that was left before. A logger that closes a client does not wait for itself.
pub(crate) fn wait_told() {
    if !IS_IMMEDIATE && thread::current().name() != Some(THREAD) {
        DESK.get().wait_told(PATIENCE);
    }
}

fn is_callers_thread() -> bool {
    !is_own_thread() || thread::current().name() == Some(OFFLOAD)
}

type Report = Box<dyn FnOnce() + Send>;

/// Dropping it ends the thread, once it has told what is left.
pub(crate) struct Desk {
    shared: Arc<Shared>,
    most: usize,
}

struct Shared {
    /// Left, and told or dropped since: how many in all.
    left: AtomicU64,
    told: AtomicU64,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    waiting: VecDeque<Report>,
    /// Since that was told last.
    dropped: u64,
    has_thread: bool,
    is_closed: bool,
}

impl Desk {
    pub(crate) fn new(most: usize) -> Self {
        let shared = Shared {
            left: AtomicU64::new(0),
            told: AtomicU64::new(0),
            state: Mutex::default(),
            changed: Condvar::default(),
        };
        Self { shared: Arc::new(shared), most }
    }

    pub(crate) fn leave(&self, level: Level, report: Report) {
        // The last places are for warnings and errors.
        let most = if level <= Level::WARN { self.most } else { self.most - self.most / 10 };
        let mut state = self.shared.state.lock();
        if !state.has_thread {
            // A forked child has no such thread, and must find a desk of its own.
            let _ = fork::install();
            let shared = Arc::clone(&self.shared);
            state.has_thread = spawn(THREAD, move || shared.tell_all()).is_ok();
        }
        if state.waiting.len() >= most || !state.has_thread {
            state.dropped += 1;
            drop(state);
            // What it holds may be somebody else's.
            drop(report);
            return;
        }
        state.waiting.push_back(report);
        self.shared.left.fetch_add(1, Ordering::AcqRel);
        drop(state);
        self.shared.changed.notify_all();
    }

    pub(crate) fn is_idle(&self) -> bool {
        // In this order: what is told in between was left before.
        let told = self.shared.told.load(Ordering::Acquire);
        told == self.shared.left.load(Ordering::Acquire)
    }

    /// Answers whether all was told that was left before.
    pub(crate) fn wait_told(&self, patience: Duration) -> bool {
        let (until, left) = (clock::monotonic().plus(patience), self.shared.left.load(Ordering::Acquire));
        let mut state = self.shared.state.lock();
        while self.shared.told.load(Ordering::Acquire) < left {
            let rest = until.since(clock::monotonic());
            if rest.is_zero() {
                return false;
            }
            state = self.shared.changed.wait_timeout(state, rest);
        }
        true
    }
}

impl Drop for Desk {
    fn drop(&mut self) {
        self.shared.state.lock().is_closed = true;
        self.shared.changed.notify_all();
    }
}

impl Shared {
    fn tell_all(&self) {
        loop {
            let mut state = self.state.lock();
            while state.waiting.is_empty() {
                if state.is_closed {
                    return;
                }
                state = self.changed.wait(state);
            }
            let (waiting, dropped) = (std::mem::take(&mut state.waiting), std::mem::take(&mut state.dropped));
            drop(state);
            let count = waiting.len() as u64;
            for report in waiting {
                tell(report);
            }
            if dropped > 0 {
                tell(Box::new(move || tell_dropped(dropped)));
            }
            let state = self.state.lock();
            self.told.fetch_add(count, Ordering::AcqRel);
            drop(state);
            self.changed.notify_all();
        }
    }
}

/// A panic has been printed, and must not take the reports behind it along.
fn tell(report: Report) {
    let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(report));
}

fn tell_dropped(dropped: u64) {
    tracing::warn!(name: "lock.events_dropped", target: "leasehold", dropped, "lock.events_dropped: more was told than the log or the recorder of metrics had time for");
    crate::metrics::dropped(dropped);
}

/// Where a caller's own events belong.
struct Origin {
    dispatch: Dispatch,
    span: Span,
}

impl Origin {
    fn here() -> Self {
        Self { dispatch: tracing::dispatcher::get_default(Dispatch::clone), span: Span::current() }
    }

    fn within(self, report: impl FnOnce()) {
        let Self { dispatch, span } = self;
        let report = || span.in_scope(report);
        // Nobody listened there; setting that would count as a listener to crates that ask whether there is one.
        if dispatch.is::<NoSubscriber>() {
            report();
        } else {
            tracing::dispatcher::with_default(&dispatch, report);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn reports_are_told_in_order_and_one_that_panics_takes_none_along() {
        let desk = Desk::new(1_000);
        let (sender, told) = channel();
        for n in 0..50 {
            let sender = sender.clone();
            desk.leave(Level::INFO, Box::new(move || sender.send(n).unwrap()));
            desk.leave(Level::INFO, Box::new(|| panic!("as it should in this test")));
        }
        assert!(desk.wait_told(LONG));
        assert!(desk.is_idle());
        assert_eq!(told.try_iter().collect::<Vec<_>>(), (0..50).collect::<Vec<_>>());
    }

    #[test]
    fn what_is_too_much_is_dropped_and_the_last_places_are_for_warnings() {
        let desk = Desk::new(10);
        let (open, gate) = channel::<()>();
        let (began, hangs) = channel();
        desk.leave(
            Level::INFO,
            Box::new(move || {
                began.send(()).unwrap();
                let _ = gate.recv();
            }),
        );
        hangs.recv_timeout(LONG).unwrap();
        let (sender, told) = channel();
        for (level, tries) in [(Level::DEBUG, 12), (Level::WARN, 3)] {
            for _ in 0..tries {
                let sender = sender.clone();
                desk.leave(level, Box::new(move || sender.send(level).unwrap()));
            }
        }
        assert!(!desk.is_idle() && !desk.wait_told(Duration::from_millis(1)));
        assert_eq!(desk.shared.state.lock().dropped, 3 + 2);
        drop(open);
        assert!(desk.wait_told(LONG));
        let told: Vec<_> = told.try_iter().collect();
        assert_eq!(told.iter().filter(|level| **level == Level::DEBUG).count(), 9);
        assert_eq!(told.iter().filter(|level| **level == Level::WARN).count(), 1);
        assert_eq!(desk.shared.state.lock().dropped, 0, "that was told");
    }
}
