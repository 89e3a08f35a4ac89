//! A held shard on its own thread, from the grant to its end, and what those threads share with the worker's.

use std::collections::{BTreeMap, BTreeSet};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use leasehold_core::Monotonic;
use tracing::Level;

use super::{OnGain, OnLoss, Shard};
use crate::callbacks::{self, RESTS};
use crate::driver::Caller;
use crate::error::{Error, ErrorKind};
use crate::exec;
use crate::host::clock;
use crate::host::sync::thread::{self, ThreadId};
use crate::host::sync::{Arc, Condvar, Mutex};
use crate::reports;
use crate::transport::pauses::Pauses;

pub(super) struct Shared {
    state: Mutex<State>,
    changed: Condvar,
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
    /// The worker's thread has nothing left to do.
    is_over: bool,
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
    thread: Option<ThreadId>,
}

impl Shared {
    pub(super) fn new(callbacks: Callbacks) -> Self {
        let state = State { callbacks, ..State::default() };
        Self { state: Mutex::new(state), changed: Condvar::default() }
    }

    /// Keeps a shard on a thread of its own.
    ///
    /// # Errors
    /// No thread can be started; dropping the shard then releases it.
    pub(super) fn hold(self: &Arc<Self>, shard: Shard) -> Result<(), Error> {
        let shard = Arc::new(shard);
        let index = shard.index;
        let holder = Holder { shard: Arc::clone(&shard), is_leaving: false, waker: None, thread: None };
        self.state.lock().holders.insert(index, holder);
        let shared = Arc::clone(self);
        let spawned =
            thread::Builder::new().name(format!("leasehold-shard-{index}")).spawn(move || shared.keep(&shard));
        spawned.map(drop).map_err(|error| {
            self.state.lock().holders.remove(&index);
            Error::internal(format!("cannot start a thread: {error}"))
        })
    }

    /// From the grant of a shard to its end of whatever kind.
    fn keep(&self, shard: &Arc<Shard>) {
        let _over = MarkOver { shared: self, index: shard.index };
        self.with_holder(shard.index, |holder| holder.thread = Some(thread::current().id()));
        let Callbacks { on_gain, on_loss } = self.state.lock().callbacks.clone();
        let resource = shard.resource();
        let gained = callbacks::run(resource, "on_gain", || on_gain.iter().for_each(|on_gain| on_gain(shard)));
        if gained.is_ok()
            && let Some(rest) = self.state.lock().resting.get_mut(&shard.index)
        {
            // The pauses go on from here if its end fails.
            (rest.failure, rest.until) = (None, clock::monotonic());
        }
        let mut ended = Box::pin(shard.ended());
        let end = gained.is_ok().then(|| {
            exec::block_on(std::future::poll_fn(|context| {
                if self.poll_leaving(shard.index, context) {
                    return Poll::Ready(None);
                }
                ended.as_mut().poll(context)
            }))
        });
        self.with_holder(shard.index, |holder| holder.is_leaving = true);
        // One that was to be let go may be lost as well, which is the more urgent news.
        let loss = end.flatten().or_else(|| shard.check(Duration::ZERO).err().filter(is_loss));
        let told = callbacks::run(resource, "on_loss", || {
            on_loss.iter().for_each(|on_loss| on_loss(shard, loss.as_ref()));
        });
        match gained.and(told) {
            Ok(()) => drop(self.state.lock().resting.remove(&shard.index)),
            Err(failure) => self.rest(shard.index, failure),
        }
        // Also of one that was revoked: its record keeps others out until its work has ended, which it has.
        let released = exec::block_on(shard.release_by(Caller::Blocking));
        if loss.is_none()
            && let Err(error) = released
            && error.kind() == ErrorKind::StoreUnavailable
        {
            reports::queue(Level::WARN, move || {
                tracing::warn!(target: "leasehold", error = %error, "a shard was let go, and its release is not confirmed");
            });
        }
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
    pub(super) fn let_go_of_all(&self) {
        let all: Vec<usize> = self.state.lock().holders.keys().copied().collect();
        self.let_go(&all);
        drop(self.changed.wait_while(self.state.lock(), |state| !state.holders.is_empty()));
    }

    pub(super) fn held(&self) -> Vec<Arc<Shard>> {
        let state = self.state.lock();
        let held = state.holders.values().filter(|holder| !holder.is_leaving && !holder.shard.remaining().is_zero());
        held.map(|holder| Arc::clone(&holder.shard)).collect()
    }

    /// Those of which this worker has a thread still, and whether they are to be let go.
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
        self.changed.notify_all();
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

    pub(super) fn is_over(&self) -> bool {
        self.state.lock().is_over
    }

    pub(super) fn wait_until_over(&self, most: Duration) -> bool {
        self.changed.wait_timeout_while(self.state.lock(), most, |state| !state.is_over).is_over
    }

    /// Tells if the calling thread is that of a shard, which must not wait for itself.
    pub(super) fn is_called_back(&self) -> bool {
        let own = thread::current().id();
        self.state.lock().holders.values().any(|holder| holder.thread == Some(own))
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
        let until = clock::monotonic().plus(pauses.next());
        state.resting.insert(index, Rest { pauses, until, failure });
    }

    /// The shards that are left to others for now, and when the first may be sought again.
    pub(super) fn resting(&self) -> (BTreeSet<usize>, Option<Monotonic>) {
        let now = clock::monotonic();
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

/// Marks the end of the worker's thread, also when it panics.
pub(super) struct MarkWorkerOver(pub(super) Arc<Shared>);

impl Drop for MarkWorkerOver {
    fn drop(&mut self) {
        let mut state = self.0.state.lock();
        state.is_over = true;
        let callbacks = std::mem::take(&mut state.callbacks);
        drop(state);
        self.0.changed.notify_all();
        drop(callbacks);
    }
}

/// Marks the end of a shard's thread, also when it panics.
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

fn is_loss(error: &Error) -> bool {
    error.kind() == ErrorKind::Lost
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_look_does_not_hide_the_failure_of_a_callback() {
        let shared = Shared::new(Callbacks::default());
        shared.rest(3, Some(Error::new(ErrorKind::Callback, "on_gain has panicked")));
        shared.note(None);
        shared.note(Some(Error::internal("the store is gone")));
        assert_eq!(shared.last_error().map(|error| error.kind()), Some(ErrorKind::Callback));
        assert_eq!(shared.resting().0, BTreeSet::from([3]));
        shared.state.lock().resting.clear();
        assert_eq!(shared.last_error().map(|error| error.kind()), Some(ErrorKind::Internal));
    }
}
