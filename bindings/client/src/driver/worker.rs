//! A thread that takes one job after another, started with the first.

use std::sync::mpsc::{Sender, channel};
use std::sync::{Mutex, PoisonError};

/// Jobs are done in the order given: a release never overtakes the acquire that it undoes.
pub(super) struct Worker<T> {
    name: &'static str,
    jobs: Mutex<Option<Sender<Job<T>>>>,
}

struct Job<T> {
    what: T,
    run: Box<dyn FnOnce(T) + Send>,
}

impl<T: Send + 'static> Worker<T> {
    pub(super) const fn new(name: &'static str) -> Self {
        Self { name, jobs: Mutex::new(None) }
    }

    /// Queues a job. Where no thread can be started, the caller does it.
    pub(super) fn give(&self, what: T, run: impl FnOnce(T) + Send + 'static) {
        let mut jobs = self.jobs.lock().unwrap_or_else(PoisonError::into_inner);
        if jobs.is_none() {
            let (sender, receiver) = channel::<Job<T>>();
            let work = move || receiver.into_iter().for_each(|job| (job.run)(job.what));
            if super::spawn(self.name, work).is_ok() {
                *jobs = Some(sender);
            }
        }
        let job = Job { what, run: Box::new(run) };
        let left = match jobs.as_ref() {
            Some(sender) => sender.send(job).err().map(|unsent| unsent.0),
            None => Some(job),
        };
        drop(jobs);
        if let Some(job) = left {
            (job.run)(job.what);
        }
    }
}
