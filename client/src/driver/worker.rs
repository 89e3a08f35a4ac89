//! Threads that take one job after another, each started with its first job.

use leasehold_core::Transmit;

use crate::host::sync::Mutex;
use crate::host::sync::atomic::{AtomicBool, Ordering};
use crate::host::sync::mpsc::{Sender, channel};
use crate::host::threads;
use crate::transport::Pool;

/// The threads of one store that is not behind a socket.
pub(crate) struct StoreWorkers {
    /// For callers. A release that is queued for a caller that has gone stays behind the acquire that it undoes.
    callers: Worker<Transmit>,
    /// For renewals and retries, which must not queue behind a crowd of callers.
    background: Worker<Transmit>,
}

impl StoreWorkers {
    pub(crate) fn new() -> Self {
        Self { callers: Worker::new("leasehold-callers"), background: Worker::new("leasehold-store") }
    }

    /// Ends both threads, once their jobs are done.
    pub(crate) fn close(&self) {
        self.callers.close();
        self.background.close();
    }

    /// The worker for requests of a caller's own lock, or for all others.
    pub(crate) fn of(&self, is_own: bool) -> (&Worker<Transmit>, Pool) {
        if is_own { (&self.callers, Pool::Caller) } else { (&self.background, Pool::Background) }
    }
}

/// A thread that does jobs in the order given: a release never overtakes the acquire that it undoes.
pub(crate) struct Worker<T> {
    name: &'static str,
    jobs: Mutex<Option<Sender<Job<T>>>>,
    is_closed: AtomicBool,
}

struct Job<T> {
    input: T,
    run: Box<dyn FnOnce(T) + Send>,
}

impl<T: Send + 'static> Worker<T> {
    pub(crate) fn new(name: &'static str) -> Self {
        Self { name, jobs: Mutex::new(None), is_closed: AtomicBool::new(false) }
    }

    /// Queues a job. Where no thread can be started, or after its end, the caller does it.
    pub(crate) fn queue(&self, input: T, run: impl FnOnce(T) + Send + 'static) {
        let mut job = Job { input, run: Box::new(run) };
        let mut jobs = self.jobs.lock();
        for _ in 0..2 {
            let Some(sender) = jobs.take().or_else(|| self.start()) else { break };
            match sender.send(job) {
                Ok(()) => {
                    *jobs = Some(sender);
                    return;
                }
                Err(unsent) => job = unsent.0,
            }
        }
        drop(jobs);
        job.run();
    }

    /// Ends the thread, once its jobs are done.
    fn close(&self) {
        let mut jobs = self.jobs.lock();
        self.is_closed.store(true, Ordering::Relaxed);
        drop(jobs.take());
    }

    fn start(&self) -> Option<Sender<Job<T>>> {
        if self.is_closed.load(Ordering::Relaxed) {
            return None;
        }
        let (sender, receiver) = channel::<Job<T>>();
        threads::spawn(self.name, move || receiver.into_iter().for_each(Job::run)).ok().map(|()| sender)
    }
}

impl<T> Job<T> {
    /// A job may be other people's code. Its panic has been printed, and must not end the jobs behind it.
    fn run(self) {
        let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| (self.run)(self.input)));
    }
}
