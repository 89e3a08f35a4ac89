//! Requests for one lock.

use std::future::IntoFuture;
use std::pin::Pin;
use std::time::Duration;

use leasehold_core::config::{LockOptionsBuilder, RunOptions};
use leasehold_core::{LockOptions, Monotonic, Resource, Wait};
use tracing::Instrument;

use crate::client::{Client, Shared};
use crate::driver::{Caller, CallerRequests, IsTold, LeaseState, Phase, PhaseWait};
use crate::error::{Error, ErrorKind};
use crate::forward::settings;
use crate::host::sync::Arc;
use crate::host::time::Time;
use crate::locks::lease::Lease;

/// A request for a lock. Awaiting it acquires; [`LockRequest::try_acquire`] tries once.
///
/// Dropping the future at any await gives the acquisition up and cleans up behind it.
#[must_use = "nothing is acquired until the request is awaited"]
#[derive(Clone)]
pub struct LockRequest {
    client: Client,
    resource: String,
    options: LockOptionsBuilder,
    has_owner: bool,
    task: Option<u64>,
    is_told: IsTold,
}

impl LockRequest {
    pub(crate) fn is_of_quorum(&self) -> bool {
        self.client.shared.quorum().is_some()
    }
}

impl Client {
    /// Asks for a lock; awaiting the request acquires it. See [`LockRequest`] for what can be set.
    pub fn lock(&self, resource: impl Into<String>) -> LockRequest {
        LockRequest::new(self.clone(), resource.into())
    }
}

impl LockRequest {
    pub(crate) fn new(client: Client, resource: String) -> Self {
        Self { client, resource, options: LockOptions::builder(), has_owner: false, task: None, is_told: IsTold::Yes }
    }
}

settings! { LockRequest:
    /// How long the grant lasts without renewal: 100 ms to 24 h, default 30 s. If this process dies, others wait that
    /// long; if it stalls for that long, the lease is lost.
    pub fn ttl(self, ttl: Duration) -> Self {
        self.map(|options| options.ttl(ttl))
    }

    /// How long to try. Default: without limit. Zero tries once.
    pub fn wait(self, wait: Duration) -> Self {
        let wait = if wait.is_zero() { Wait::Once } else { Wait::For(wait) };
        self.map(|options| options.wait(wait))
    }

    /// Does not end before it is known whether the holder lives, however short the [`LockRequest::wait`] is. On DynamoDB, etcd
    /// and objects only those who watch a record can tell: beyond the wait, it is watched until it is renewed, which takes about a
    /// third of the holder's ttl, or has stood unchanged for all of its ttl and is taken over. Elsewhere it changes nothing.
    ///
    /// For processes that live for less than the ttl, which could never take over from a dead holder otherwise.
    pub fn watch_holder(self) -> Self {
        self.map(|options| options.watch_holder(true))
    }

    /// The label that others see. Default `host:pid:thread`; at most 256 bytes.
    pub fn owner(self, owner: impl AsRef<str>) -> Self {
        Self { has_owner: true, ..self.map(|options| options.owner(owner.as_ref())) }
    }

    /// Bytes that others can read beside the lock, at most 4 KiB. None by default.
    pub fn data(self, data: impl AsRef<[u8]>) -> Self {
        self.map(|options| options.data(data.as_ref()))
    }

    /// How long the lock stays closed after a lease ran out, for work that outlives its check by a little. Default 0,
    /// at most 24 h. A release frees the lock at once.
    pub fn lock_delay(self, lock_delay: Duration) -> Self {
        self.map(|options| options.lock_delay(lock_delay))
    }

    /// Ends automatic renewal this long after the grant, so that a wedged worker cannot hold forever. Off by default;
    /// at least the ttl.
    pub fn max_hold(self, max_hold: Duration) -> Self {
        self.map(|options| options.max_hold(max_hold))
    }

    /// Queues from the first attempt on, where the store keeps a queue of waiters: the default. Without it, the first attempt
    /// tries to take the lock ahead of the queue, and only a later one joins.
    pub fn fair(self, fair: bool) -> Self {
        self.map(|options| options.fair(fair))
    }

    /// Time between renewals: at most half the ttl, default a third of the ttl.
    pub fn renew_every(self, every: Duration) -> Self {
        self.map(|options| options.renew_every(every))
    }

    /// No automatic renewal: the lease ends when its ttl, less the margins for clock drift, has passed.
    pub fn no_renewal(self) -> Self {
        self.map(LockOptionsBuilder::no_renewal)
    }
}

impl LockRequest {
    /// Tries once, whatever [`LockRequest::wait`] says: `None` when another holder has the lock. With
    /// [`LockRequest::watch_holder`] it watches as well.
    ///
    /// # Errors
    /// As for awaiting the request, without [`ErrorKind::Busy`] and [`ErrorKind::TimedOut`].
    pub async fn try_acquire(self) -> Result<Option<Lease>, Error> {
        none_if_busy(self.once().acquire().await)
    }

    /// # Errors
    /// [`ErrorKind::Config`] for a name or setting that cannot be.
    pub(crate) fn check(self) -> Result<(), Error> {
        Resource::new(&self.resource).map_err(|error| Error::config(error.to_string()))?;
        self.settings().map(drop)
    }

    /// See [`ffi::by_task`](crate::ffi::by_task).
    pub(crate) fn by_task(mut self, task: u64) -> Self {
        self.task = Some(task);
        self
    }

    /// Returns true if the caller would wait for itself: its thread, or its task of an event loop, holds the lock.
    pub(crate) fn is_held_by_caller(&self, resource: &str) -> Result<bool, Error> {
        let is_known = self.caller() == Caller::Blocking || self.task.is_some();
        Ok(is_known && self.client.driver().is_held_by(&Resource::new(resource)?, self.task))
    }

    /// The name of the lock.
    pub(crate) fn resource(&self) -> &str {
        &self.resource
    }

    /// Its settings.
    ///
    /// # Errors
    /// [`ErrorKind::Config`] for settings that cannot be.
    pub(crate) fn settings(&self) -> Result<LockOptions, Error> {
        self.options.clone().build().map_err(|error| Error::config(error.to_string()).on(&self.resource))
    }

    /// The same request under the label of another one.
    pub(crate) fn labelled_as(self, other: &Self) -> Result<Self, Error> {
        Ok(if other.has_owner { self.owner(other.settings()?.owner().as_str()) } else { self })
    }

    pub(crate) const fn client(&self) -> &Client {
        &self.client
    }

    /// The time by which its client lives.
    pub(crate) fn time(&self) -> &Time {
        self.client.time()
    }

    pub(crate) const fn caller(&self) -> Caller {
        self.client.caller
    }

    /// The same request of another caller.
    pub(crate) fn by(mut self, caller: Caller) -> Self {
        self.client.caller = caller;
        self
    }

    /// The same request for another lock.
    pub(crate) fn named(self, resource: &str) -> Self {
        Self { resource: resource.to_owned(), ..self }
    }

    /// Its wait is not reported, however long it is.
    pub(crate) fn untold(self) -> Self {
        Self { is_told: IsTold::No, ..self }
    }

    /// Makes it the request of a run.
    pub(crate) fn run(self, run: RunOptions) -> Self {
        self.map(|options| options.run(run))
    }

    /// Asks once, and watches nobody.
    pub(crate) fn only_once(self) -> Self {
        self.map(|options| options.wait(Wait::Once).watch_holder(false))
    }

    /// Waits for nobody.
    pub(crate) fn once(self) -> Self {
        self.map(|options| options.wait(Wait::Once))
    }

    /// Not an async function: its future would keep the request twice.
    pub(crate) fn acquire(self) -> impl Future<Output = Result<Lease, Error>> + Send {
        let span = tracing::debug_span!(target: "leasehold", "lock.acquire", resource = self.resource);
        self.acquire_until_usable().instrument(span)
    }

    async fn acquire_until_usable(self) -> Result<Lease, Error> {
        let Self { client: Client { shared, caller }, resource, options, has_owner, task, is_told } = self;
        let name = Resource::new(&resource).map_err(|error| Error::config(error.to_string()))?;
        let options = if has_owner { options } else { options.labelled(shared.owner()) };
        let mut options = options.build().map_err(|error| Error::config(error.to_string()).on(&resource))?;
        let total = options.wait();
        // Without a limit, no clock need be read.
        let until = match total {
            Wait::For(wait) | Wait::Watch(wait) => shared.time().after(wait),
            Wait::Once | Wait::Forever => Monotonic::FAR,
        };
        loop {
            let (lease, requests) = shared.driver().acquire(name.clone(), (options.clone(), is_told), caller)?;
            let pending = Pending { shared: Arc::clone(&shared), lease: Some(lease), requests };
            if total == Wait::Forever && (caller == Caller::Blocking || task.is_some()) {
                pending.refuse_deadlock(task)?;
            }
            if let (Some(lease), Some(task)) = (&pending.lease, task) {
                lease.set_task(task);
            }
            match pending.decided().await {
                Ok(lease) if lease.remaining().is_zero() => {}
                Err(error) if error.kind() == ErrorKind::Lost => {}
                ended => return ended,
            }
            // It ended before the caller had it, because the caller did not run: no holder has lost it.
            let kind = match total {
                Wait::Forever => continue,
                Wait::Once | Wait::Watch(Duration::ZERO) => ErrorKind::Busy,
                Wait::For(_) | Wait::Watch(_) => {
                    let left = until.since(shared.time().monotonic());
                    if !left.is_zero() {
                        let watches = matches!(total, Wait::Watch(_));
                        options = options.with_wait(if watches { Wait::Watch(left) } else { Wait::For(left) });
                        continue;
                    }
                    ErrorKind::TimedOut
                }
            };
            let message = "the lease ended before this call could return it: the process was suspended, or too busy";
            return Err(Error::new(kind, message).on(&resource));
        }
    }

    fn map(mut self, change: impl FnOnce(LockOptionsBuilder) -> LockOptionsBuilder) -> Self {
        self.options = change(self.options);
        self
    }
}

impl IntoFuture for LockRequest {
    type Output = Result<Lease, Error>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.acquire())
    }
}

/// The end of a wait for several locks, one after the other.
#[derive(Clone, Copy)]
pub(crate) enum Until {
    Forever,
    Once,
    /// Waits for nobody, but watches the holder.
    Watch,
    Time(Monotonic),
}

impl Until {
    /// The end of the wait of this request, which begins now.
    ///
    /// # Errors
    /// [`ErrorKind::Config`] for settings that cannot be.
    pub(crate) fn of(request: &LockRequest) -> Result<Self, Error> {
        Ok(match request.settings()?.wait() {
            Wait::Forever => Self::Forever,
            Wait::Once => Self::Once,
            Wait::Watch(Duration::ZERO) => Self::Watch,
            Wait::For(wait) | Wait::Watch(wait) => Self::Time(request.time().after(wait)),
        })
    }

    /// The request, with what is left of the wait.
    pub(crate) fn wait(self, request: LockRequest) -> LockRequest {
        match self {
            Self::Forever => request,
            Self::Once | Self::Watch => request.once(),
            // A wait of zero would mean a single try, whose failure is another one.
            Self::Time(until) => {
                let left = until.since(request.time().monotonic());
                request.wait(left.max(Duration::from_nanos(1)))
            }
        }
    }
}

/// The answer of trying once: that another holder has the lock is no error.
pub(crate) fn none_if_busy<T>(result: Result<T, Error>) -> Result<Option<T>, Error> {
    match result {
        Ok(held) => Ok(Some(held)),
        Err(error) if error.kind() == ErrorKind::Busy => Ok(None),
        Err(error) => Err(error),
    }
}

/// An acquisition that is not decided. Dropping it gives up.
struct Pending {
    shared: Arc<Shared>,
    lease: Option<Arc<LeaseState>>,
    requests: CallerRequests,
}

impl Pending {
    async fn decided(mut self) -> Result<Lease, Error> {
        let Some(lease) = self.lease.clone() else { return Err(Error::internal("nothing is pending")) };
        let mut wait = PhaseWait::on(&lease);
        let phase = std::future::poll_fn(|context| {
            wait.pause();
            self.requests.poll(context);
            wait.poll(context, |phase, _| (!matches!(phase, Phase::Pending)).then(|| phase.clone()))
        })
        .await;
        let result = match phase {
            Phase::Held { token } => Ok(token),
            Phase::Failed(failure) => {
                let nodes = self.shared.silent_nodes(&failure);
                let sightings = self.shared.driver().sightings(lease.resource());
                Err(Error::failed(lease.resource().as_str(), failure, &sightings).with_nodes(&nodes))
            }
            Phase::Lost(reason) => Err(Error::lost(lease.resource().as_str(), &reason, None)),
            Phase::Pending
            | Phase::Releasing
            | Phase::ReleaseOverdue
            | Phase::Released
            | Phase::Finished { .. }
            | Phase::Closed => {
                Err(Error::new(ErrorKind::Closed, "the client was closed").on(lease.resource().as_str()))
            }
        };
        self.lease = None;
        result.map(|token| Lease::new(Arc::clone(&self.shared), lease, token))
    }

    /// # Errors
    /// When this thread, or this task of an event loop, holds the lock itself, through this client, and would wait for itself for
    /// ever.
    fn refuse_deadlock(&self, task: Option<u64>) -> Result<(), Error> {
        let Some(lease) = &self.lease else { return Ok(()) };
        let driver = self.shared.driver();
        if driver.is_queued(lease) && driver.is_held_by(lease.resource(), task) {
            let who = if task.is_some() { "task" } else { "thread" };
            return Err(Error::config(format!(
                "this {who} already holds the lock, so it would wait for itself forever: locks are not reentrant. \
                 Release it first; if another {who} will release it, set a wait",
            ))
            .on(lease.resource().as_str()));
        }
        Ok(())
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        if let Some(lease) = self.lease.take() {
            self.shared.driver().release(&lease, Caller::Background, false);
        }
    }
}
