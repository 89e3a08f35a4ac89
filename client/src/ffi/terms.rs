//! Elections and shards of callers whose callbacks take their time elsewhere, and whose threads cannot wait for the end.

use std::ops::Deref;
use std::pin::Pin;
use std::task::{Context, Poll};

use super::SLICE;
use crate::callbacks::CallbackEnd;
use crate::error::Error;
use crate::exec::{self, Receiver, Sender};
use crate::groups::elect::{Election, ElectionRequest};
use crate::groups::shards::{Shard, Shards, ShardsRequest};
use crate::groups::term;
use crate::host::sync::Arc;
use crate::locks::lease::Lease;

/// See [`ElectionRequest::on_start`]. The callback ends when its future is ready.
pub fn on_start<F>(
    request: ElectionRequest,
    mut callback: impl FnMut(&Arc<Lease>) -> F + Send + 'static,
) -> ElectionRequest
where
    F: Future<Output = Result<(), CallbackEnd>> + Send + 'static,
{
    request.started(move |lease| Box::pin(callback(lease)))
}

/// See [`ElectionRequest::on_stop`]. The callback ends when its future is ready.
pub fn on_stop<F>(
    request: ElectionRequest,
    mut callback: impl FnMut(Option<&Error>) -> F + Send + 'static,
) -> ElectionRequest
where
    F: Future<Output = Result<(), CallbackEnd>> + Send + 'static,
{
    request.stopped(move |loss| Box::pin(callback(loss)))
}

/// See [`ShardsRequest::on_gain`]. The callback ends when its future is ready.
pub fn on_gain<F>(request: ShardsRequest, callback: impl Fn(&Arc<Shard>) -> F + Send + Sync + 'static) -> ShardsRequest
where
    F: Future<Output = Result<(), CallbackEnd>> + Send + 'static,
{
    request.gained(move |shard| Box::pin(callback(shard)))
}

/// See [`ShardsRequest::on_loss`]. The callback ends when its future is ready.
pub fn on_loss<F>(
    request: ShardsRequest,
    callback: impl Fn(&Arc<Shard>, Option<&Error>) -> F + Send + Sync + 'static,
) -> ShardsRequest
where
    F: Future<Output = Result<(), CallbackEnd>> + Send + 'static,
{
    request.lost(move |shard, loss| Box::pin(callback(shard, loss)))
}

/// A candidacy, or a worker's part in shards.
#[allow(private_bounds, reason = "no other type can be one")]
pub trait Ends: term::Ends {}

impl Ends for Election {}

impl Ends for Shards {}

/// Begins to end it, and waits for nothing: for a callback that the end itself waits for.
pub fn begin_to_end(ending: &impl Ends) {
    ending.begin_to_end();
}

/// One of them whose end nobody waits for when it is dropped: the callbacks may need the very thread that drops it, and one of them
/// may never return.
pub struct Unawaited<T: Ends>(T);

impl<T: Ends> Unawaited<T> {
    /// Takes it over.
    pub const fn new(ending: T) -> Self {
        Self(ending)
    }

    /// See [`Election::resign`] and [`Shards::stop`]; waits no longer once `interrupted` answers `true`, and it ends all the same.
    ///
    /// # Errors
    /// As there.
    pub fn end(&self, interrupted: impl FnMut() -> bool) -> Result<(), Error> {
        self.0.begin_to_end();
        if !self.0.running().is_inherited() && !self.0.is_called_back() {
            self.0.running().wait(SLICE, interrupted)?;
        }
        self.0.failure().map_or(Ok(()), Err)
    }

    /// The same, begun now and to be awaited.
    ///
    /// # Errors
    /// As there.
    pub fn ended(self: Arc<Self>) -> impl Future<Output = Result<(), Error>> + Send + 'static
    where
        T: Send + Sync + 'static,
    {
        self.0.begin_to_end();
        async move {
            self.0.running().over().await;
            self.0.failure().map_or(Ok(()), Err)
        }
    }

    /// Tells if it has ended: it was asked to, or its client was closed.
    pub fn is_over(&self) -> bool {
        self.0.running().is_over()
    }
}

impl<T: Ends> Deref for Unawaited<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T: Ends> Drop for Unawaited<T> {
    fn drop(&mut self) {
        self.0.begin_to_end();
        // There is no thread left that its own drop would wait for.
        self.0.running_mut().let_go();
    }
}

/// The end of a callback that runs elsewhere. Dropping it ends the callback as well.
pub struct CallbackRunner(Sender<Result<(), CallbackEnd>>);

impl CallbackRunner {
    /// A callback that runs elsewhere, and a future of its end.
    pub fn new() -> (Self, CallbackEnded) {
        let (sender, ended) = exec::oneshot();
        (Self(sender), CallbackEnded(ended))
    }

    /// The callback has ended.
    pub fn end(self, end: Result<(), CallbackEnd>) {
        self.0.send(end);
    }
}

/// Ready when a [`CallbackRunner`] has ended its callback.
#[must_use = "a future does nothing unless it is awaited"]
pub struct CallbackEnded(Receiver<Result<(), CallbackEnd>>);

impl CallbackEnded {
    /// Waits for the end on the calling thread.
    ///
    /// # Errors
    /// The failure of the callback.
    pub fn wait(self) -> Result<(), CallbackEnd> {
        exec::block_on(self)
    }
}

impl Future for CallbackEnded {
    type Output = Result<(), CallbackEnd>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.0).poll(context).map(|end| end.unwrap_or(Ok(())))
    }
}
