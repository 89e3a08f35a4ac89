//! Reports of the client: log events through `tracing`, and samples for recorders of metrics.
//!
//! Both are other people's code, which may block: a pipe that is not read, a disk that hangs. So the threads that renew
//! leases and notice losses only queue their reports here, in a bounded queue that a thread of its own empties. Callers
//! report on their own locks themselves, within their spans, unless earlier reports still wait.

use std::collections::VecDeque;
use std::time::Duration;

use tracing::subscriber::NoSubscriber;
use tracing::{Dispatch, Level, Span};

use crate::exec::OFFLOAD;
use crate::host::fork::{self, PerProcess};
use crate::host::sync::atomic::{AtomicU64, Ordering};
use crate::host::sync::{Arc, Condvar, Mutex, thread};
use crate::host::threads::{is_own_thread, spawn};
use crate::host::time::Time;

/// Reports that wait at once; as many again may be on their way out. Further reports are dropped, and counted.
const MAX_QUEUED: usize = 10_000;
/// The longest that the end of a client waits for its last reports.
const FLUSH_WAIT: Duration = Duration::from_millis(500);

const THREAD: &str = "leasehold-reports";

/// Under the scheduler of `testing/concurrency` no log hangs, and a thread that outlives the schedule would.
const IS_IMMEDIATE: bool = cfg!(leasehold_concurrency);

static QUEUE: PerProcess<ReportQueue> = PerProcess::new(|| ReportQueue::new(MAX_QUEUED));

/// Queues a report for the thread kept for it. It never waits.
pub(crate) fn queue(level: Level, report: impl FnOnce() + Send + 'static) {
    if IS_IMMEDIATE {
        return report();
    }
    QUEUE.get().push(level, Box::new(report));
}

/// As [`queue`], for a caller's thread, which makes the report itself unless earlier ones still wait.
pub(crate) fn make_or_queue(level: Level, report: impl FnOnce() + Send + 'static) {
    if IS_IMMEDIATE {
        return report();
    }
    let queue = QUEUE.get();
    if queue.is_idle() && is_callers_thread() {
        report();
    } else {
        let origin = Origin::here();
        queue.push(level, Box::new(move || origin.within(report)));
    }
}

/// Waits a moment until all earlier reports are made. A logger that closes a client does not wait for itself.
pub(crate) fn flush() {
    if !IS_IMMEDIATE && thread::current().name() != Some(THREAD) {
        QUEUE.get().flush(FLUSH_WAIT);
    }
}

fn is_callers_thread() -> bool {
    !is_own_thread() || thread::current().name() == Some(OFFLOAD)
}

type Report = Box<dyn FnOnce() + Send>;

/// A queue of reports. Dropping it ends its thread, once all of them are made.
pub(crate) struct ReportQueue {
    shared: Arc<Shared>,
    max: usize,
}

struct Shared {
    /// The number of reports that were ever queued, and of those that were made since.
    queued: AtomicU64,
    made: AtomicU64,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    waiting: VecDeque<Report>,
    /// Since that was last reported.
    dropped: u64,
    has_thread: bool,
    is_closed: bool,
}

impl ReportQueue {
    pub(crate) fn new(max: usize) -> Self {
        let shared = Shared {
            queued: AtomicU64::new(0),
            made: AtomicU64::new(0),
            state: Mutex::default(),
            changed: Condvar::default(),
        };
        Self { shared: Arc::new(shared), max }
    }

    pub(crate) fn push(&self, level: Level, report: Report) {
        // The last places are for warnings and errors.
        let max = if level <= Level::WARN { self.max } else { self.max - self.max / 10 };
        let mut state = self.shared.state.lock();
        if !state.has_thread {
            // A forked child has no such thread, and must have a queue of its own.
            let _ = fork::install();
            let shared = Arc::clone(&self.shared);
            state.has_thread = spawn(THREAD, move || shared.run()).is_ok();
        }
        if state.waiting.len() >= max || !state.has_thread {
            state.dropped += 1;
            drop(state);
            // Dropping it may run other people's code.
            drop(report);
            return;
        }
        state.waiting.push_back(report);
        self.shared.queued.fetch_add(1, Ordering::AcqRel);
        drop(state);
        self.shared.changed.notify_all();
    }

    pub(crate) fn is_idle(&self) -> bool {
        // In this order: a report that is made in between was queued before.
        let made = self.shared.made.load(Ordering::Acquire);
        made == self.shared.queued.load(Ordering::Acquire)
    }

    /// Waits until all earlier reports are made; answers whether they are.
    pub(crate) fn flush(&self, timeout: Duration) -> bool {
        let (until, queued) = (Time::System.monotonic().plus(timeout), self.shared.queued.load(Ordering::Acquire));
        let mut state = self.shared.state.lock();
        while self.shared.made.load(Ordering::Acquire) < queued {
            let rest = until.since(Time::System.monotonic());
            if rest.is_zero() {
                return false;
            }
            state = self.shared.changed.wait_timeout(state, rest);
        }
        true
    }
}

impl Drop for ReportQueue {
    fn drop(&mut self) {
        self.shared.state.lock().is_closed = true;
        self.shared.changed.notify_all();
    }
}

impl Shared {
    fn run(&self) {
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
                make(report);
            }
            if dropped > 0 {
                make(Box::new(move || report_dropped(dropped)));
            }
            let state = self.state.lock();
            self.made.fetch_add(count, Ordering::AcqRel);
            drop(state);
            self.changed.notify_all();
        }
    }
}

/// Makes a report. Its panic has been printed, and must not end the reports behind it.
fn make(report: Report) {
    let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(report));
}

fn report_dropped(dropped: u64) {
    tracing::warn!(name: "lock.events_dropped", target: "leasehold", dropped, "lock.events_dropped: more events came than the log or the recorder of metrics could take in time");
    crate::metrics::dropped(dropped);
}

/// The subscriber and span of a caller's own events.
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
        // There is no subscriber; setting that would count as one to crates that check for it.
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
    fn reports_are_made_in_order_and_one_that_panics_stops_no_other() {
        let queue = ReportQueue::new(1_000);
        let (sender, made) = channel();
        for n in 0..50 {
            let sender = sender.clone();
            queue.push(Level::INFO, Box::new(move || sender.send(n).unwrap()));
            queue.push(Level::INFO, Box::new(|| panic!("as it should in this test")));
        }
        assert!(queue.flush(LONG));
        assert!(queue.is_idle());
        assert_eq!(made.try_iter().collect::<Vec<_>>(), (0..50).collect::<Vec<_>>());
    }

    #[test]
    fn reports_beyond_the_limit_are_dropped_and_the_last_places_are_for_warnings() {
        let queue = ReportQueue::new(10);
        let (open, gate) = channel::<()>();
        let (began, hangs) = channel();
        queue.push(
            Level::INFO,
            Box::new(move || {
                began.send(()).unwrap();
                let _ = gate.recv();
            }),
        );
        hangs.recv_timeout(LONG).unwrap();
        let (sender, made) = channel();
        for (level, tries) in [(Level::DEBUG, 12), (Level::WARN, 3)] {
            for _ in 0..tries {
                let sender = sender.clone();
                queue.push(level, Box::new(move || sender.send(level).unwrap()));
            }
        }
        assert!(!queue.is_idle() && !queue.flush(Duration::from_millis(1)));
        assert_eq!(queue.shared.state.lock().dropped, 3 + 2);
        drop(open);
        assert!(queue.flush(LONG));
        let made: Vec<_> = made.try_iter().collect();
        assert_eq!(made.iter().filter(|level| **level == Level::DEBUG).count(), 9);
        assert_eq!(made.iter().filter(|level| **level == Level::WARN).count(), 1);
        assert_eq!(queue.shared.state.lock().dropped, 0, "that was reported");
    }
}
