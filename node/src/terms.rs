//! Callbacks of elections and shards.
//!
//! JavaScript asks for one after the other, runs it, and reports its end. The candidate or worker awaits that.

use std::sync::Arc;

use leasehold::Client;
use leasehold::ffi::{self, CallbackEnd, CallbackEnded, CallbackRunner, Ends, Unawaited};
use tokio::sync::{Mutex, mpsc};

use crate::reactor::{Operation, Outcome};
use crate::waiter::Wait;

/// A callback that is due: what it is about, and its end.
pub(crate) struct Due<T> {
    pub(crate) about: T,
    runner: Option<CallbackRunner>,
}

/// Where callbacks become due.
pub(crate) struct Caller<T>(mpsc::UnboundedSender<Due<T>>);

/// The callbacks that are due.
pub(crate) struct Steps<T>(Arc<Mutex<mpsc::UnboundedReceiver<Due<T>>>>, Wait);

pub(crate) fn steps<T>(client: &Client) -> (Caller<T>, Steps<T>) {
    let (sender, receiver) = mpsc::unbounded_channel();
    let wait = if ffi::has_test_clock(client) { Wait::NextCallbackOfTest } else { Wait::NextCallback };
    (Caller(sender), Steps(Arc::new(Mutex::new(receiver)), wait))
}

impl<T> Clone for Caller<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<T> Caller<T> {
    /// Asks for a callback. If nobody asks for callbacks any more, none can run, and this one has ended.
    pub(crate) fn call(&self, about: T) -> CallbackEnded {
        let (runner, ended) = CallbackRunner::new();
        let _ = self.0.send(Due { about, runner: Some(runner) });
        ended
    }
}

impl<T: Send + 'static> Steps<T> {
    /// The next one that is due; nothing when all is over.
    pub(crate) fn next(&self, shown: fn(Due<T>) -> Outcome) -> Operation {
        let steps = Arc::clone(&self.0);
        Operation::waiting(self.1, async move { Ok(steps.lock().await.recv().await.map_or(Outcome::Nothing, shown)) })
    }
}

impl<T> Due<T> {
    /// The callback has ended, with its name and what it has thrown if it did.
    pub(crate) fn end(&mut self, thrown: Option<String>) {
        if let Some(runner) = self.runner.take() {
            // Without the message of a panic: JavaScript has shown the exception.
            runner.end(thrown.map_or(Ok(()), |text| Err(CallbackEnd(Some(text)))));
        }
    }
}

/// Ends a candidacy or a worker's part in shards. Callbacks are still asked for meanwhile.
pub(crate) fn end<T: Ends + Send + Sync + 'static>(running: &Arc<Unawaited<T>>) -> Operation {
    let ended = Arc::clone(running).ended();
    Operation::waiting(Wait::CallbacksEnd, async move {
        ended.await?;
        Ok(Outcome::Nothing)
    })
}
