//! A thread that takes one job after another, started with the first.

use crate::sync::Mutex;
use crate::sync::mpsc::{Sender, channel};

/// Jobs are done in the order given: a release never overtakes the acquire that it undoes.
pub(crate) struct Worker<T> {
    name: &'static str,
    jobs: Mutex<Option<Sender<Job<T>>>>,
}

struct Job<T> {
    what: T,
    run: Box<dyn FnOnce(T) + Send>,
}

impl<T: Send + 'static> Worker<T> {
    pub(crate) fn new(name: &'static str) -> Self {
        Self { name, jobs: Mutex::new(None) }
    }

    /// Queues a job. Where no thread can be started, the caller does it.
    pub(crate) fn give(&self, what: T, run: impl FnOnce(T) + Send + 'static) {
        let mut job = Job { what, run: Box::new(run) };
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
        job.done();
    }

    fn start(&self) -> Option<Sender<Job<T>>> {
        let (sender, receiver) = channel::<Job<T>>();
        super::spawn(self.name, move || receiver.into_iter().for_each(Job::done)).ok().map(|()| sender)
    }
}

impl<T> Job<T> {
    /// A job may be somebody else's code. Its panic has been printed, and must not take the jobs behind it along.
    fn done(self) {
        let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| (self.run)(self.what)));
    }
}
