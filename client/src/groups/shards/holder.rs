//! A held shard in its own task, from the grant to its end, and what those tasks share with the worker's.

use std::collections::{BTreeMap, BTreeSet};
use std::future::poll_fn;
use std::task::{Context, Poll, Waker};

use leasehold_core::Monotonic;

use super::{OnGain, OnLoss, Shard};
use crate::callbacks::{self, Ending, RESTS};
use crate::error::Error;
use crate::exec::Runner;
use crate::groups::term::{self, Term};
use crate::host::sync::{Arc, Mutex};
use crate::host::time::Time;
use crate::locks::lease::Lease;
use crate::transport::pauses::Pauses;

pub(super) struct Shared {
    state: Mutex<State>,
    time: Time,
}

#[derive(Clone, Default)]
pub(super) struct Callbacks {
    pub(super) on_gain: Option<Arc<OnGain>>,
    pub(super) on_loss: Option<Arc<OnLoss>>,
}

#[derive(Default)]
struct State {
    /// None are left once the worker is over, so that what they own is dropped.
    callbacks: Callbacks,
    is_stopping: bool,
    /// Something has changed since the worker looked here.
    has_news: bool,
    worker: Option<Waker>,
    holders: BTreeMap<usize, Holder>,
    members: usize,
    last_error: Option<Error>,
    /// The shards whose callbacks failed the last time, and may not be sought yet.
    resting: BTreeMap<usize, Rest>,
}

/// The time for which a shard is left to others.
struct Rest {
    pauses: Pauses,
    until: Monotonic,
    failure: Option<Error>,
}

struct Holder {
    shard: Arc<Shard>,
    /// The worker wants it to be let go, or it is over.
    is_leaving: bool,
    waker: Option<Waker>,
    runner: Option<Runner>,
}

impl Shared {
    pub(super) fn new(callbacks: Callbacks, time: Time) -> Self {
        let state = State { callbacks, ..State::default() };
        Self { state: Mutex::new(state), time }
    }

    /// Keeps a shard by a task of its own.
    ///
    /// # Errors
    /// No thread can be started; dropping the shard then releases it.
    pub(super) fn hold(self: &Arc<Self>, shard: Shard) -> Result<(), Error> {
        let shard = Arc::new(shard);
        let index = shard.index;
        let holder = Holder { shard: Arc::clone(&shard), is_leaving: false, waker: None, runner: None };
        self.state.lock().holders.insert(index, holder);
        let shared = Arc::clone(self);
        let keep = move |_| async move { shared.keep(&shard).await };
        let started = self.time.start(&format!("leasehold-shard-{index}"), keep);
        started.map(drop).inspect_err(|_| drop(self.state.lock().holders.remove(&index)))
    }

    /// From the grant of a shard to its end of whatever kind.
    async fn keep(&self, shard: &Arc<Shard>) {
        let _over = MarkOver { shared: self, index: shard.index };
        self.with_holder(shard.index, |holder| holder.runner = Some(Runner::here()));
        let callbacks = self.state.lock().callbacks.clone();
        term::hold(&mut Held { shard, callbacks, shared: self }).await;
    }

    fn with_holder<R>(&self, index: usize, change: impl FnOnce(&mut Holder) -> R) -> Option<R> {
        self.state.lock().holders.get_mut(&index).map(change)
    }

    fn poll_leaving(&self, index: usize, context: &Context<'_>) -> bool {
        let is_leaving = self.with_holder(index, |holder| {
            holder.waker = Some(context.waker().clone());
            holder.is_leaving
        });
        is_leaving.unwrap_or(true)
    }

    /// Asks for shards to be let go.
    pub(super) fn let_go(&self, shards: &[usize]) {
        let mut state = self.state.lock();
        let holders = state.holders.iter_mut().filter(|(index, _)| shards.contains(index));
        let wakers: Vec<Waker> = holders
            .filter_map(|(_, holder)| {
                holder.is_leaving = true;
                holder.waker.take()
            })
            .collect();
        drop(state);
        wakers.into_iter().for_each(Waker::wake);
    }

    /// Asks for all of them, and waits until their callbacks have returned.
    pub(super) async fn let_go_of_all(&self) {
        let all: Vec<usize> = self.state.lock().holders.keys().copied().collect();
        self.let_go(&all);
        poll_fn(|context| {
            let mut state = self.state.lock();
            state.worker = Some(context.waker().clone());
            if state.holders.is_empty() { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
    }

    pub(super) fn held(&self) -> Vec<Arc<Shard>> {
        let state = self.state.lock();
        let held = state.holders.values().filter(|holder| !holder.is_leaving && !holder.shard.remaining().is_zero());
        held.map(|holder| Arc::clone(&holder.shard)).collect()
    }

    /// Those that a task of this worker keeps still, and whether they are to be let go.
    pub(super) fn kept(&self) -> Vec<(usize, bool)> {
        self.state.lock().holders.iter().map(|(index, holder)| (*index, holder.is_leaving)).collect()
    }

    pub(super) fn stop(&self) {
        self.state.lock().is_stopping = true;
        self.tell_worker();
    }

    fn tell_worker(&self) {
        let mut state = self.state.lock();
        state.has_news = true;
        let waker = state.worker.take();
        drop(state);
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    pub(super) fn poll_news(&self, context: &Context<'_>) -> bool {
        let mut state = self.state.lock();
        state.worker = Some(context.waker().clone());
        std::mem::take(&mut state.has_news)
    }

    pub(super) fn is_stopping(&self) -> bool {
        self.state.lock().is_stopping
    }

    /// Tells if the task of a shard runs the caller's code, which must not wait for itself.
    pub(super) fn is_called_back(&self) -> bool {
        self.state.lock().holders.values().any(|holder| holder.runner.is_some_and(Runner::is_here))
    }

    pub(super) fn set_members(&self, members: usize) {
        self.state.lock().members = members;
    }

    pub(super) fn members(&self) -> usize {
        self.state.lock().members
    }

    pub(super) fn note(&self, error: Option<Error>) {
        self.state.lock().last_error = error;
    }

    /// Leaves a shard whose callback has failed to others for a while.
    fn rest(&self, index: usize, failure: Option<Error>) {
        let mut state = self.state.lock();
        let mut pauses = state.resting.get(&index).map_or(RESTS, |rest| rest.pauses);
        let until = self.time.monotonic().plus(pauses.next());
        state.resting.insert(index, Rest { pauses, until, failure });
    }

    /// The shards that are left to others for now, and when the first may be sought again.
    pub(super) fn resting(&self) -> (BTreeSet<usize>, Option<Monotonic>) {
        let now = self.time.monotonic();
        let state = self.state.lock();
        let resting = state.resting.iter().filter(|(_, rest)| now < rest.until);
        (resting.clone().map(|(index, _)| *index).collect(), resting.map(|(_, rest)| rest.until).min())
    }

    /// The failure of a callback that stands: since then `on_gain` has not returned for this shard.
    pub(super) fn failure(&self) -> Option<Error> {
        self.state.lock().resting.values().find_map(|rest| rest.failure.clone())
    }

    pub(super) fn last_error(&self) -> Option<Error> {
        self.failure().or_else(|| self.state.lock().last_error.clone())
    }
}

/// A shard that was gained.
struct Held<'a> {
    shard: &'a Arc<Shard>,
    callbacks: Callbacks,
    shared: &'a Shared,
}

impl Term for Held<'_> {
    const CALLBACKS: (&'static str, &'static str) = ("on_gain", "on_loss");
    const UNCONFIRMED: &'static str = "a shard was let go, and its release is not confirmed";

    fn lease(&self) -> &Lease {
        self.shard
    }

    fn start(&mut self) -> Ending {
        self.callbacks.on_gain.as_ref().map_or_else(callbacks::returned, |on_gain| on_gain(self.shard))
    }

    fn stop(&mut self, loss: Option<&Error>) -> Ending {
        self.callbacks.on_loss.as_ref().map_or_else(callbacks::returned, |on_loss| on_loss(self.shard, loss))
    }

    fn poll_leaving(&self, context: &Context<'_>) -> bool {
        self.shared.poll_leaving(self.shard.index, context)
    }

    fn started(&self, started: &Result<(), Option<Error>>) {
        if started.is_ok()
            && let Some(rest) = self.shared.state.lock().resting.get_mut(&self.shard.index)
        {
            // The pauses go on from here if its end fails.
            (rest.failure, rest.until) = (None, self.shared.time.monotonic());
        }
    }

    fn ending(&self) {
        self.shared.with_holder(self.shard.index, |holder| holder.is_leaving = true);
    }

    fn stopped(&self, failed: &Result<(), Option<Error>>) {
        match failed {
            Ok(()) => drop(self.shared.state.lock().resting.remove(&self.shard.index)),
            Err(failure) => self.shared.rest(self.shard.index, failure.clone()),
        }
    }
}

/// Drops the callbacks with all that they own once the worker is over, also when its thread panics.
pub(super) struct DropCallbacks(pub(super) Arc<Shared>);

impl Drop for DropCallbacks {
    fn drop(&mut self) {
        let callbacks = std::mem::take(&mut self.0.state.lock().callbacks);
        drop(callbacks);
    }
}

/// Marks the end of a shard's task, also when it panics.
struct MarkOver<'a> {
    shared: &'a Shared,
    index: usize,
}

impl Drop for MarkOver<'_> {
    fn drop(&mut self) {
        self.shared.state.lock().holders.remove(&self.index);
        self.shared.tell_worker();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;

    #[test]
    fn a_look_does_not_hide_the_failure_of_a_callback() {
        let shared = Shared::new(Callbacks::default(), Time::System);
        shared.rest(3, Some(Error::new(ErrorKind::Callback, "on_gain has panicked")));
        shared.note(None);
        shared.note(Some(Error::internal("the store is gone")));
        assert_eq!(shared.last_error().map(|error| error.kind()), Some(ErrorKind::Callback));
        assert_eq!(shared.resting().0, BTreeSet::from([3]));
        shared.state.lock().resting.clear();
        assert_eq!(shared.last_error().map(|error| error.kind()), Some(ErrorKind::Internal));
    }
}
