//! Shards that are shared with other workers.
//!
//! Each shard has a thread of its own, which waits for its callbacks. JavaScript asks for one [`ShardStep`] after the other, of
//! any shard, and reports the end of each callback.

use std::sync::{Arc, mpsc};

use leasehold::ffi::{self, Mutex};
use leasehold::{Error, ShardsRequest};
use napi_derive::napi;
use tokio::sync::{Mutex as AsyncMutex, mpsc as steps, oneshot};

use crate::failure::Failure;
use crate::reactor::{Operation, Outcome};

/// A worker's part in the shards of a name.
#[napi]
pub struct Shards {
    steps: Arc<AsyncMutex<steps::UnboundedReceiver<ShardStep>>>,
    running: Mutex<Option<Arc<Worker>>>,
}

struct Worker(Option<leasehold::Shards>);

impl Drop for Worker {
    fn drop(&mut self) {
        // The end of a shard waits for callbacks, which this thread would have to run.
        self.0.take().into_iter().for_each(ffi::shards::dismiss);
    }
}

/// A callback of a shard that is due.
#[napi]
pub struct ShardStep {
    shard: Arc<leasehold::Shard>,
    is_gain: bool,
    loss: Option<Error>,
    done: Option<mpsc::Sender<Verdict>>,
}

/// The result of a callback.
enum Verdict {
    Done,
    /// The name of the callback, with what it has thrown.
    Threw(String),
}

pub(crate) fn start(request: ShardsRequest) -> Result<Shards, Error> {
    let (due, steps) = steps::unbounded_channel();
    let also_due = due.clone();
    let shards = request
        .on_gain(move |shard| call(&due, shard, true, None))
        .on_loss(move |shard, loss| call(&also_due, shard, false, loss))
        .start()?;
    let running = Mutex::new(Some(Arc::new(Worker(Some(shards)))));
    Ok(Shards { steps: Arc::new(AsyncMutex::new(steps)), running })
}

/// Waits for the callback. If the receiver is gone, no callback can run, and nothing is waited for.
fn call(due: &steps::UnboundedSender<ShardStep>, shard: &Arc<leasehold::Shard>, is_gain: bool, loss: Option<&Error>) {
    let (done, verdict) = mpsc::channel();
    let step = ShardStep { shard: Arc::clone(shard), is_gain, loss: loss.cloned(), done: Some(done) };
    if due.send(step).is_err() {
        return;
    }
    if let Ok(Verdict::Threw(text)) = verdict.recv() {
        // Without the message of a panic: JavaScript has shown the exception.
        std::panic::resume_unwind(Box::new(ffi::CallbackEnd(Some(text))));
    }
}

impl Shards {
    fn look<R>(&self, look: impl FnOnce(&leasehold::Shards) -> R) -> Option<R> {
        self.running.lock().as_ref().and_then(|worker| worker.0.as_ref()).map(look)
    }
}

#[napi]
impl Shards {
    /// The numbers of the shards that are held and not to be let go.
    #[napi(getter, catch_unwind)]
    pub fn held(&self) -> Vec<u32> {
        let held = self.look(leasehold::Shards::held).unwrap_or_default();
        held.iter().filter_map(|shard| u32::try_from(shard.index()).ok()).collect()
    }

    /// The number of workers at the last look.
    #[napi(getter, catch_unwind)]
    pub fn members(&self) -> u32 {
        let members = self.look(leasehold::Shards::members).unwrap_or_default();
        u32::try_from(members).unwrap_or(u32::MAX)
    }

    /// The error of the last try, if it failed.
    #[napi(getter, catch_unwind)]
    pub fn last_error(&self) -> Option<Failure> {
        self.look(leasehold::Shards::last_error).flatten().map(Failure::from)
    }

    /// The next callback that is due; nothing when the worker is over.
    #[napi(catch_unwind)]
    pub fn step(&self) -> Operation {
        let steps = Arc::clone(&self.steps);
        Operation::new(async move { Ok(steps.lock().await.recv().await.map_or(Outcome::Nothing, Outcome::ShardStep)) })
    }

    /// See `Shards::stop`. Callbacks are still requested meanwhile.
    #[napi(catch_unwind)]
    pub fn stop(&self) -> Operation {
        let Some(worker) = self.running.lock().clone() else {
            return Operation::new(std::future::ready(Ok(Outcome::Nothing)));
        };
        let (stopped, over) = oneshot::channel();
        let stop = move || {
            let ended = worker.0.as_ref().map_or(Ok(()), |shards| ffi::shards::stop(shards, || false));
            let _ = stopped.send(ended);
        };
        if let Err(error) = std::thread::Builder::new().spawn(stop) {
            return Operation::failed(Failure::internal(format!("cannot start a thread: {error}")));
        }
        Operation::new(async move {
            let stopped = over.await.unwrap_or(Ok(()));
            stopped.map(|()| Outcome::Nothing).map_err(Failure::from)
        })
    }
}

#[napi]
impl ShardStep {
    /// The number of the shard.
    #[napi(getter, catch_unwind)]
    pub fn index(&self) -> Option<u32> {
        u32::try_from(self.shard.index()).ok()
    }

    /// Tells if the shard was gained; otherwise it ends.
    #[napi(getter, catch_unwind)]
    pub fn is_gain(&self) -> bool {
        self.is_gain
    }

    /// The reason why the shard was lost, unless it is to be let go.
    #[napi(getter, catch_unwind)]
    pub fn loss(&self) -> Option<Failure> {
        self.loss.clone().map(Failure::from)
    }

    /// The callback is done.
    #[napi(catch_unwind)]
    pub fn done(&mut self) {
        self.end(Verdict::Done);
    }

    /// The callback has thrown: the shard is let go. The text names it, and says what.
    #[napi(catch_unwind)]
    pub fn threw(&mut self, text: String) {
        self.end(Verdict::Threw(text));
    }
}

impl ShardStep {
    pub(crate) fn shard(&self) -> Arc<leasehold::Shard> {
        Arc::clone(&self.shard)
    }

    fn end(&mut self, verdict: Verdict) {
        if let Some(done) = self.done.take() {
            // A worker that has ended meanwhile needs no verdict.
            let _ = done.send(verdict);
        }
    }
}
