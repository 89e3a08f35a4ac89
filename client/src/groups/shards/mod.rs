//! Shards: workers that come and go share a fixed number of parts, each of which has one holder at a time.

mod holder;
mod share;
mod worker;

use std::ops::Deref;
use std::time::Duration;

use leasehold_core::config::Span;

use crate::callbacks::{self, Ending};
use crate::client::Client;
use crate::driver::Caller;
use crate::error::Error;
use crate::groups::term::{Ends, Running};
use crate::host::sync::Arc;
use crate::locks::lease::Lease;
use crate::locks::request::LockRequest;
use crate::sizes::{self, Size};
use holder::{Callbacks, DropCallbacks, Shared};
use worker::Worker;

const DEFAULT_COUNT: usize = 16;
/// The time between two looks at the other members, unless another is set.
const LOOK: Duration = Duration::from_secs(5);
const SHORTEST_LOOK: Duration = Duration::from_millis(100);

type OnGain = dyn Fn(&Arc<Shard>) -> Ending + Send + Sync;
type OnLoss = dyn Fn(&Arc<Shard>, Option<&Error>) -> Ending + Send + Sync;

/// A request to work on shards beside other workers; [`ShardsRequest::start`] joins them.
///
/// Each shard is a lock, `NAME#shard0` to `NAME#shardM-1`, so it never has two holders. Each worker holds one more lock,
/// `NAME#member0` to `NAME#memberM-1`, and looks which of those are held: from their number it knows its share. It waits for
/// shards while it has fewer, and lets go of some while it has more, so that nobody takes a shard from its holder. Where
/// there are as many workers as shards, more workers stand by.
#[must_use = "the worker joins when the request is started"]
pub struct ShardsRequest {
    client: Client,
    size: Size,
    /// The name of the resource is set when the request is made.
    request: LockRequest,
    every: Duration,
    callbacks: Callbacks,
}

impl Client {
    /// Asks to work on the shards of a name, 16 of them unless [`ShardsRequest::count`] says otherwise. See [`ShardsRequest`].
    pub fn shards(&self, name: impl Into<String>) -> ShardsRequest {
        let client = self.by(Caller::Async);
        ShardsRequest {
            size: Size::of_shards(name.into(), DEFAULT_COUNT),
            // A worker waits for shards that others have for as long as they live.
            request: client.lock("").untold(),
            client,
            every: LOOK,
            callbacks: Callbacks::default(),
        }
    }

    /// Changes the number of shards of a name, while no worker runs.
    ///
    /// # Errors
    /// [`ErrorKind::Busy`](crate::ErrorKind::Busy) while a worker runs or holds a shard, and as acquiring a lock.
    pub async fn set_shards(&self, name: impl Into<String>, count: usize) -> Result<(), Error> {
        sizes::set(self, &Size::of_shards(name.into(), count)).await
    }
}

impl ShardsRequest {
    /// The number of shards, 1 to 64, default 16. All workers name the same: the first one writes it down, and another is an error.
    pub fn count(self, count: usize) -> Self {
        Self { size: self.size.with_count(count), ..self }
    }

    /// See [`LockRequest::ttl`]. The shards of a worker that dies are free after so long.
    pub fn ttl(self, ttl: Duration) -> Self {
        Self { request: self.request.ttl(ttl), ..self }
    }

    /// See [`LockRequest::owner`].
    pub fn owner(self, owner: impl AsRef<str>) -> Self {
        Self { request: self.request.owner(owner), ..self }
    }

    /// The time between two looks at the other members: 5 s unless set, at least 100 ms. Each look costs so many reads as there
    /// are shards, in one request where the store can do that, and comes up to a quarter earlier, so that workers do not look in
    /// step.
    pub fn look_every(self, every: Duration) -> Self {
        Self { every, ..self }
    }

    /// Called with each shard that this worker gets, on a thread that the shard keeps while it is held. It should start the
    /// work and return: the end of this shard is told after it. Other shards and renewals do not wait for it. If it panics,
    /// `on_loss` is called, and the shard is let go and not sought for 1 s, which doubles up to a minute. Other workers take it if
    /// they have fewer than their share. A worker whose whole share has failed leaves its place among the members for so long, so
    /// that the others' shares grow. An ERROR event and [`Shards::last_error`] tell it.
    pub fn on_gain(self, callback: impl Fn(&Arc<Shard>) + Send + Sync + 'static) -> Self {
        self.gained(move |shard| {
            callback(shard);
            callbacks::returned()
        })
    }

    /// Called when a shard ends, on its thread: with the reason when it was lost, without when it is to be let go. The work on it
    /// must have stopped when this returns; only then is the shard released, and it is renewed until then. If it panics, the shard
    /// is released all the same.
    pub fn on_loss(self, callback: impl Fn(&Arc<Shard>, Option<&Error>) + Send + Sync + 'static) -> Self {
        self.lost(move |shard, loss| {
            callback(shard, loss);
            callbacks::returned()
        })
    }

    pub(crate) fn gained(mut self, callback: impl Fn(&Arc<Shard>) -> Ending + Send + Sync + 'static) -> Self {
        self.callbacks.on_gain = Some(Arc::new(callback));
        self
    }

    pub(crate) fn lost(
        mut self,
        callback: impl Fn(&Arc<Shard>, Option<&Error>) -> Ending + Send + Sync + 'static,
    ) -> Self {
        self.callbacks.on_loss = Some(Arc::new(callback));
        self
    }

    /// Joins the workers, on a thread of its own, until it is stopped or dropped.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind::Config) for a setting out of bounds,
    /// [`ErrorKind::Closed`](crate::ErrorKind::Closed) after the client was closed,
    /// [`ErrorKind::Internal`](crate::ErrorKind::Internal) where no thread can be started. That other workers name another number
    /// of shards is found later, see [`Shards::last_error`].
    pub fn start(self) -> Result<Shards, Error> {
        self.client.driver().check_open()?;
        let shards = self.size.resources()?;
        self.request.clone().named(&shards[0]).check()?;
        if self.every < SHORTEST_LOOK {
            let what =
                format!("{} between two looks is too short; the shortest is {}", Span(self.every), Span(SHORTEST_LOOK));
            return Err(Error::config(what).on(self.size.name()));
        }
        let time = self.client.time().clone();
        let shared = Arc::new(Shared::new(self.callbacks, time.clone()));
        let worker = Worker::new(self.client, self.size, shards, self.request, self.every, Arc::clone(&shared))?;
        let callbacks = DropCallbacks(Arc::clone(&shared));
        let run = move |alarm| async move {
            let _callbacks = callbacks;
            worker.run(alarm).await;
        };
        let running = Running::start(&time, "leasehold-shards", run)?;
        Ok(Shards { shared, running })
    }
}

/// A worker's part in the shards, until it is stopped or dropped, or the client is closed.
#[must_use = "dropping it lets go of all shards"]
pub struct Shards {
    shared: Arc<Shared>,
    running: Running,
}

impl Shards {
    /// The shards that are held now and not to be let go, in the order of their numbers.
    pub fn held(&self) -> Vec<Arc<Shard>> {
        self.shared.held()
    }

    /// The number of workers at the last look, this one among them; 0 before it has joined, and while it stands by.
    pub fn members(&self) -> usize {
        self.shared.members()
    }

    /// Why the worker could not join, look or acquire the last time it tried: the store is down or refuses, or other workers
    /// name another number of shards; or a callback has failed ([`ErrorKind::Callback`](crate::ErrorKind::Callback)). It goes on
    /// trying.
    pub fn last_error(&self) -> Option<Error> {
        self.shared.last_error()
    }

    /// Leaves: `on_loss` is called for all shards at the same time, and each is released when its call has returned. Returns when
    /// all of that is done. In a callback it only begins.
    ///
    /// # Errors
    /// [`ErrorKind::Callback`](crate::ErrorKind::Callback) if a callback panicked and the worker has not got that shard since.
    pub fn stop(mut self) -> Result<(), Error> {
        self.end();
        self.failure().map_or(Ok(()), Err)
    }
}

impl Drop for Shards {
    fn drop(&mut self) {
        self.end();
    }
}

impl Ends for Shards {
    fn running(&self) -> &Running {
        &self.running
    }

    fn running_mut(&mut self) -> &mut Running {
        &mut self.running
    }

    fn ask_to_end(&self) {
        self.shared.stop();
    }

    fn is_called_back(&self) -> bool {
        self.shared.is_called_back()
    }

    fn noted_failure(&self) -> Option<Error> {
        self.shared.failure()
    }
}

/// A shard that this worker holds. All that a [`Lease`] can do, it can do as well; its fencing token grows with every grant of
/// the same shard.
#[derive(Debug)]
pub struct Shard {
    index: usize,
    lease: Lease,
}

impl Shard {
    /// The number of the shard, from 0.
    pub fn index(&self) -> usize {
        self.index
    }
}

impl Deref for Shard {
    type Target = Lease;

    fn deref(&self) -> &Lease {
        &self.lease
    }
}
