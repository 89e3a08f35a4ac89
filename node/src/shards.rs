//! Shards that are shared with other workers.

use std::sync::Arc;

use leasehold::ffi::{self, Unawaited};
use leasehold::{Client, Error, ShardsRequest};
use napi_derive::napi;

use crate::failure::Failure;
use crate::reactor::{Operation, Outcome};
use crate::terms::{self, Due, Steps};

/// A worker's part in the shards of a name.
#[napi]
pub struct Shards {
    steps: Steps<Change>,
    running: Arc<Unawaited<leasehold::Shards>>,
}

/// A callback of a shard that is due. The steps of several shards come beside each other.
#[napi]
pub struct ShardStep(Due<Change>);

/// A shard was gained, or ends.
struct Change {
    shard: Arc<leasehold::Shard>,
    is_gain: bool,
    loss: Option<Error>,
}

pub(crate) fn start(client: &Client, request: ShardsRequest) -> Result<Shards, Error> {
    let (gained, steps) = terms::steps(client);
    let lost = gained.clone();
    let request =
        ffi::on_gain(request, move |shard| gained.call(Change { shard: Arc::clone(shard), is_gain: true, loss: None }));
    let request = ffi::on_loss(request, move |shard, loss| {
        lost.call(Change { shard: Arc::clone(shard), is_gain: false, loss: loss.cloned() })
    });
    Ok(Shards { steps, running: Arc::new(Unawaited::new(request.start()?)) })
}

#[napi]
impl Shards {
    /// The numbers of the shards that are held and not to be let go.
    #[napi(getter, catch_unwind)]
    pub fn held(&self) -> Vec<u32> {
        self.running.held().iter().filter_map(|shard| u32::try_from(shard.index()).ok()).collect()
    }

    /// The number of workers at the last look.
    #[napi(getter, catch_unwind)]
    pub fn members(&self) -> u32 {
        u32::try_from(self.running.members()).unwrap_or(u32::MAX)
    }

    /// The error of the last try, if it failed.
    #[napi(getter, catch_unwind)]
    pub fn last_error(&self) -> Option<Failure> {
        self.running.last_error().map(Failure::from)
    }

    /// The next callback that is due; nothing when the worker is over.
    #[napi(catch_unwind)]
    pub fn step(&self) -> Operation {
        self.steps.next(|due| Outcome::ShardStep(ShardStep(due)))
    }

    /// See `Shards::stop`. Callbacks are still requested meanwhile.
    #[napi(catch_unwind)]
    pub fn stop(&self) -> Operation {
        terms::end(&self.running)
    }
}

#[napi]
impl ShardStep {
    /// The number of the shard.
    #[napi(getter, catch_unwind)]
    pub fn index(&self) -> Option<u32> {
        u32::try_from(self.0.about.shard.index()).ok()
    }

    /// Tells if the shard was gained; otherwise it ends.
    #[napi(getter, catch_unwind)]
    pub fn is_gain(&self) -> bool {
        self.0.about.is_gain
    }

    /// The reason why the shard was lost, unless it is to be let go.
    #[napi(getter, catch_unwind)]
    pub fn loss(&self) -> Option<Failure> {
        self.0.about.loss.clone().map(Failure::from)
    }

    /// The callback is done.
    #[napi(catch_unwind)]
    pub fn done(&mut self) {
        self.0.end(None);
    }

    /// The callback has thrown: the shard is let go. The text names it, and says what.
    #[napi(catch_unwind)]
    pub fn threw(&mut self, text: String) {
        self.0.end(Some(text));
    }
}

impl ShardStep {
    pub(crate) fn shard(&self) -> Arc<leasehold::Shard> {
        Arc::clone(&self.0.about.shard)
    }
}
