//! The driver: one core behind one mutex, and the threads and futures that send its requests.
//!
//! A call into the driver is one [`turn`](Driver::turn): it enters the core under the mutex, takes out what the core wants done,
//! and does it once the mutex is free ([`send`]). The core's requests take one of three [routes](route). The **timer thread**
//! ([`timer`]) keeps time for all leases. The mutex is held for microseconds: never while a store is asked, never while other
//! people's code runs.
//!
//! | file | |
//! |---|---|
//! | `state.rs` | what the mutex guards |
//! | `counted.rs` | a map of what has a number of ours |
//! | `lease_state.rs` | one lease as its caller sees it, readable without the mutex |
//! | `route.rs` | which thread or future sends a request |
//! | `send.rs` | sends the requests of a turn, wakes and reports |
//! | `caller_requests.rs` | requests that a future sends itself |
//! | `direct.rs` | requests beside the core, such as a look at a record |
//! | `timer.rs`, `timer_wakeup.rs` | the timer thread, and what it sleeps on |
//! | `worker.rs`, `callbacks.rs` | threads for stores, and for callbacks of users |
//! | `waits.rs` | warnings of long waits |
//! | `notifications.rs`, `report.rs`, `last_faults.rs` | news for callers, for operators, and for error messages |

pub(crate) mod callbacks;
mod caller_requests;
mod counted;
mod direct;
mod last_faults;
pub(crate) mod lease_state;
mod notifications;
mod report;
mod route;
mod send;
mod state;
mod timer;
pub(crate) mod timer_wakeup;
mod waits;
pub(crate) mod worker;

use std::time::Duration;

#[cfg(feature = "postgres")]
use leasehold_core::About;
use leasehold_core::config::Drift;
use leasehold_core::member::LossId;
use leasehold_core::op::Fault;
use leasehold_core::{
    Client as Core, Config, Entropy, LockId, LockOptions, Monotonic, NodeId, Nonce, Now, Resource, RunResult, Sighting,
};

use crate::error::Error;
use crate::host::fork;
use crate::host::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use crate::host::sync::{Arc, Mutex, Weak};
use crate::host::threads;
use crate::host::time::Time;
use crate::reports;
use crate::transport::{Transport, UnderLock};
use callbacks::{Callback, Callbacks};
pub(crate) use caller_requests::CallerRequests;
use last_faults::LastFaults;
pub(crate) use lease_state::{LeaseState, Phase, PhaseWait, Purpose};
pub(crate) use notifications::Notifications;
pub(crate) use route::Caller;
pub(crate) use state::IsTold;
use state::{State, Work};
use timer_wakeup::TimerWakeup;
use worker::StoreWorkers;

/// The longest that closing, or dropping the last handle, waits for releases.
const CLOSE_WAIT: Duration = Duration::from_secs(2);

/// One client's core and all that serves it.
pub(crate) struct Driver {
    state: Mutex<State>,
    timer_wakeup: Arc<TimerWakeup>,
    transports: Vec<Arc<dyn Transport>>,
    /// One for each store.
    workers: Vec<StoreWorkers>,
    last_faults: LastFaults,
    callbacks: Callbacks,
    /// Reports that were taken from the core, and not handed to the log yet.
    unreported: AtomicU64,
    /// It was closed, and a caller may wait for the last of those.
    is_ending: AtomicBool,
    next_lock: AtomicU64,
    /// Requests made beside the core.
    direct_requests: AtomicU64,
    /// How long one of those is awaited.
    request_timeout: Duration,
    time: Time,
    pub(crate) drift: Drift,
    observed: Vec<usize>,
    /// [`fork::generation`] when the client was made; in a forked child it differs, and nothing here may be touched.
    generation: u64,
}

impl Driver {
    pub(crate) fn start(config: Config, transports: Vec<Arc<dyn Transport>>, time: Time) -> Result<Arc<Self>, Error> {
        fork::install().map_err(|error| Error::internal(format!("cannot watch for forks: {error}")))?;
        let mut seed = [0; 32];
        time.fill(&mut seed)?;
        let (request_timeout, drift) = (config.request_timeout(), config.drift());
        let observed = config.observed().map(NodeId::index).collect();
        let core = Core::new(config, seed, time.now());
        let timer_wakeup = Arc::new(TimerWakeup::default());
        let itself: Arc<Mutex<Weak<Self>>> = Arc::default();
        let under_lock = transports.iter().map(|store| Arc::clone(store) as Arc<dyn UnderLock>).collect();
        let driver = Arc::new(Self {
            state: Mutex::new(State::new(core, under_lock, &timer_wakeup, &itself)),
            timer_wakeup,
            workers: transports.iter().map(|_| StoreWorkers::new()).collect(),
            last_faults: LastFaults::new(transports.len()),
            transports,
            callbacks: Callbacks::default(),
            unreported: AtomicU64::new(0),
            is_ending: AtomicBool::new(false),
            next_lock: AtomicU64::new(0),
            direct_requests: AtomicU64::new(0),
            request_timeout,
            time,
            drift,
            observed,
            generation: fork::generation(),
        });
        *itself.lock() = Arc::downgrade(&driver);
        waits::register(&driver);
        driver.time.keep(&driver, |driver| threads::spawn("leasehold-timer", move || driver.run_timer()))?;
        Ok(driver)
    }

    /// Begins an acquisition; its state shows how it goes on.
    pub(crate) fn acquire(
        self: &Arc<Self>,
        resource: Resource,
        (options, is_told): (LockOptions, IsTold),
        caller: Caller,
    ) -> Result<(Arc<LeaseState>, CallerRequests), Error> {
        self.check_process()?;
        let mut fresh: Entropy = [0; 16];
        self.time.fill(&mut fresh)?;
        let lock = LockId::new(self.next_lock.fetch_add(1, Ordering::Relaxed));
        let (owner, purpose) = (options.owner().clone(), Purpose::of(&options));
        let lease = Arc::new(LeaseState::new(lock, resource, owner, purpose, self.time.clone(), self.generation));
        let acquired = Arc::clone(&lease);
        let acquire = |state: &mut State, now| state.acquire(acquired, (options, is_told), &fresh, now);
        let (result, requests) = self.turn(caller, Some(lock), acquire);
        result.map_err(|error| Error::from(error).on(lease.resource().as_str()))?;
        Ok((lease, requests))
    }

    /// The turn of an acquisition that stands in the queue has come.
    #[cfg_attr(not(feature = "redis"), allow(dead_code, reason = "only Redis keeps lines"))]
    fn on_reserved(self: &Arc<Self>, resource: &Resource, lock: LockId, after: Duration) {
        let mut fresh: Entropy = [0; 16];
        let has_entropy = self.time.fill(&mut fresh).is_ok();
        let on_reserved = |state: &mut State, now| {
            state.on_reserved(resource, lock, after, has_entropy.then_some(&fresh), now);
        };
        let ((), _) = self.turn(Caller::Listener, Some(lock), on_reserved);
    }

    /// Gives up a pending acquisition or a lease. Callers for whom it `is_awaited` are told when it takes long.
    pub(crate) fn release(self: &Arc<Self>, lease: &LeaseState, caller: Caller, is_awaited: bool) -> CallerRequests {
        if self.is_inherited() {
            return CallerRequests::default();
        }
        let release = |state: &mut State, now| state.release(lease, is_awaited, now);
        self.turn(caller, Some(lease.lock()), release).1
    }

    /// Finishes a run.
    ///
    /// # Errors
    /// It is over, or no run.
    pub(crate) fn finish(
        self: &Arc<Self>,
        lease: &LeaseState,
        result: Option<RunResult>,
        caller: Caller,
    ) -> Result<CallerRequests, leasehold_core::Error> {
        let ((_notifications, result), requests) =
            self.turn(caller, Some(lease.lock()), |state, now| state.finish(lease, result, now));
        result.map(|()| requests)
    }

    /// Ends a lease at that instant, earlier or later than was said before. Answers whether there is a lease to end.
    pub(crate) fn end_at(self: &Arc<Self>, lease: &LeaseState, at: Monotonic) -> bool {
        !self.is_inherited() && self.turn(Caller::Background, None, |state, _| state.end_at(lease, at)).0
    }

    /// Ends the lease on a resource as if it had not been renewed for too long. Answers the attempt by which it was held; `None` where
    /// there is no lease.
    #[cfg(feature = "testing")]
    pub(crate) fn lose(self: &Arc<Self>, resource: &Resource) -> Option<Nonce> {
        self.turn(Caller::Background, None, |state, now| state.lose(resource, now)).0
    }

    /// Ends everything in the background: leases are released, waiters cancelled.
    pub(crate) fn close(self: &Arc<Self>) {
        self.is_ending.store(true, Ordering::SeqCst);
        let (mut notifications, _) = self.turn(Caller::Background, None, State::close);
        self.deliver(&mut notifications);
        self.timer_wakeup.wake();
    }

    /// After [`Driver::close`]: waits until all releases are through, at most `CLOSE_WAIT`, and a moment for the log to take
    /// what came last. Answers whether they are through.
    pub(crate) fn wait_closed(&self) -> bool {
        let is_stopped = || self.timer_wakeup.is_stopped();
        let is_stopped = self.time.wait_until(CLOSE_WAIT, is_stopped, || self.timer_wakeup.wait_stopped(CLOSE_WAIT));
        // Another thread may still be about to report.
        self.timer_wakeup.wait_until(CLOSE_WAIT, || self.unreported.load(Ordering::SeqCst) == 0);
        reports::flush();
        is_stopped
    }

    pub(crate) fn is_closing(&self) -> bool {
        self.state.lock().is_closing()
    }

    /// Tells if this process is a forked child of the one that made the client.
    pub(crate) fn is_inherited(&self) -> bool {
        self.generation != fork::generation()
    }

    /// # Errors
    /// In a child of the process that made the client.
    pub(crate) fn check_process(&self) -> Result<(), Error> {
        if self.is_inherited() {
            return Err(Error::config(
                "this client belongs to the parent process, and so do its leases; connect again after the fork",
            ));
        }
        Ok(())
    }

    /// # Errors
    /// As [`Self::check_process`], or the client was closed.
    pub(crate) fn check_open(&self) -> Result<(), Error> {
        self.check_process()?;
        if self.is_closing() { Err(leasehold_core::Error::Closed.into()) } else { Ok(()) }
    }

    /// Nodes of a quorum that were seen to vote, and since which loss they are in doubt.
    pub(crate) fn note_votes(&self, votes: &[(NodeId, Option<LossId>)]) {
        self.state.lock().note_votes(votes, self.time.now());
    }

    /// Runs other people's code on a thread kept for it.
    pub(crate) fn call_back(&self, callback: Callback) {
        self.time.call(callback, |callback| self.callbacks.queue(callback));
    }

    /// The time by which the client lives.
    pub(crate) fn time(&self) -> &Time {
        &self.time
    }

    pub(crate) fn transports(&self) -> &[Arc<dyn Transport>] {
        &self.transports
    }

    /// The nodes that expire nothing, where a session is a record of its own.
    pub(crate) fn observed_nodes(&self) -> &[usize] {
        &self.observed
    }

    /// The nodes that did not answer their last request, and why.
    pub(crate) fn last_faults(&self) -> Vec<(usize, Fault)> {
        self.last_faults.all()
    }

    pub(crate) fn is_quorum(&self) -> bool {
        self.transports.len() > 1
    }

    /// The attempt by which a lease is held; `None` once it is over.
    pub(crate) fn nonce(&self, lease: &LeaseState) -> Option<Nonce> {
        self.state.lock().nonce(lease.lock())
    }

    /// The record of a run, as its finish with this result would write it; `None` once it is over.
    #[cfg(feature = "postgres")]
    pub(crate) fn about(&self, lease: &LeaseState, result: &RunResult) -> Option<About> {
        self.state.lock().about(lease.lock(), result)
    }

    /// The records in the way of a lock that only observers can declare dead, as they were seen.
    pub(crate) fn sightings(&self, resource: &Resource) -> Vec<Sighting> {
        self.state.lock().sightings(resource)
    }

    /// Notes that an earlier process of this machine has seen such a record so long ago, by the digest of its version.
    #[cfg_attr(not(unix), allow(dead_code, reason = "only the command keeps what it has seen"))]
    pub(crate) fn seen_before(self: &Arc<Self>, resource: &Resource, node: NodeId, digest: [u8; 16], ago: Duration) {
        let seen = |state: &mut State, now| state.seen_before(resource, node, (digest, ago), now);
        self.turn(Caller::Background, None, seen);
    }

    /// Tells if an acquisition is queued behind another one of this client.
    pub(crate) fn is_queued(&self, lease: &LeaseState) -> bool {
        self.state.lock().is_queued(lease.lock())
    }

    /// Tells if this task, or outside of tasks this thread, has taken a lease on the resource through this client.
    pub(crate) fn is_held_by(&self, resource: &Resource, task: Option<u64>) -> bool {
        let state = self.state.lock();
        state.leases().any(|lease| lease.resource() == resource && lease.was_taken_by(task) && lease.is_held())
    }

    /// Enters the core once, and then does what it asks for. `own` is the caller's lock, whose requests it may send itself.
    fn turn<R>(
        self: &Arc<Self>,
        caller: Caller,
        own: Option<LockId>,
        enter: impl FnOnce(&mut State, Now) -> R,
    ) -> (R, CallerRequests) {
        let mut work = Work::default();
        let mut state = self.state.lock();
        let now = self.time.now();
        let result = enter(&mut state, now);
        self.drain(&mut state, now, &mut work);
        drop(state);
        (result, self.carry_out(&mut work, caller, own))
    }
}
