//! The run loop: one core behind one mutex, and the threads and callers that carry its requests.
//!
//! Three lanes share it. A **blocking** caller performs the requests of its own lock on its own thread, unless there are
//! several nodes to ask. An **async**
//! caller polls them as part of its own future if the store is behind a socket, and leaves them to a thread of the
//! store's if it is not. The **background** thread keeps time for all leases, and leaves renewals, retries and releases on
//! drop to the store's own threads. The mutex is held for microseconds: never while a store is asked, never while
//! somebody else's code runs.

pub(crate) mod alarm;
mod ask;
pub(crate) mod callbacks;
mod errands;
mod report;
pub(crate) mod slot;
mod threads;
mod troubles;
pub(crate) mod worker;

use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;

use leasehold_core::config::Drift;
use leasehold_core::member::LossId;
use leasehold_core::op::Fault;
use leasehold_core::{
    Client as Core, Config, Entropy, Event, LockId, LockOptions, Monotonic, NodeId, Now, Output, RequestId, Resource,
    Transmit,
};

use crate::clock;
use crate::entropy::fill;
use crate::error::Error;
use crate::fork;
use crate::reports;
use crate::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use crate::sync::{Arc, HashMap, Mutex, MutexGuard};
use crate::transport::{Answer, Pool, Transport, Watcher};
use alarm::{Alarm, Ear, Hint};
use callbacks::Callbacks;
pub(crate) use errands::Errands;
use report::{Report, Stopwatch};
use slot::Aftermath;
pub(crate) use slot::{Phase, Slot, Wait};
pub(crate) use threads::{is_own_thread, spawn};
use troubles::Troubles;
use worker::Worker;

/// How long a release is awaited before the caller is told that it goes on in the background.
const RELEASE_PATIENCE: Duration = Duration::from_secs(2);
/// How long closing, or dropping the last handle, waits for releases.
const CLOSE_PATIENCE: Duration = Duration::from_secs(2);
/// The core's name for the state of an acquisition that waits for another one of its client.
const QUEUED: &str = "Idle";

/// One client's core and all that serves it.
pub(crate) struct Driver {
    state: Mutex<State>,
    alarm: Arc<Alarm>,
    transports: Vec<Arc<dyn Transport>>,
    workers: Vec<Workers>,
    troubles: Troubles,
    /// Runs the callbacks of users, which may take their time.
    callbacks: Callbacks,
    /// Reports that were taken from the core and not left to be told yet.
    untold: AtomicU64,
    /// It was closed, and somebody may wait for the last of those.
    is_ending: AtomicBool,
    /// Requests made outside the core.
    asked: AtomicU64,
    /// How long one of those is awaited.
    request_timeout: Duration,
    pub(crate) drift: Drift,
    /// [`fork::generation`] when the client was made; in a forked child it differs, and nothing here may be touched.
    generation: u64,
}

/// The threads of one store, started when they are first needed.
struct Workers {
    /// For async callers. A release that is queued by a caller who went away stays behind the acquire that it undoes.
    callers: Worker<Transmit>,
    /// For renewals and retries, which must not queue behind a crowd of callers.
    background: Worker<Transmit>,
}

struct State {
    core: Core,
    transports: Vec<Arc<dyn Transport>>,
    /// One for each store; stores keep nobody alive that they tell.
    ears: Vec<Arc<dyn Watcher>>,
    slots: HashMap<LockId, Arc<Slot>>,
    next_lock: u64,
    /// When the core wants to be called again.
    core_wake: Monotonic,
    /// When the background thread will look again, unless it is awake.
    planned: Monotonic,
    awake: bool,
    /// Releases whose callers stop waiting at that instant.
    patience: VecDeque<(Monotonic, LockId)>,
    /// When leases end that are renewed no longer than their holders have said.
    ends: BTreeSet<(Monotonic, LockId)>,
    /// When a late renewal was last warned of.
    late_told: Option<Monotonic>,
    closing: bool,
}

pub(crate) type Callback = Box<dyn FnOnce() + Send>;

/// Who performs the requests of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Caller {
    /// Its own thread, which may wait.
    Blocking,
    /// The future that it polls, or the store's thread; the caller must not be held up.
    Async,
    /// The store's threads: nobody waits for the call.
    Nobody,
}

/// What is left to do once the mutex is free.
#[derive(Default)]
struct Work {
    transmits: VecDeque<Transmit>,
    aftermath: Aftermath,
    /// They hold the slots as well, so that none is dropped while the mutex is held.
    reports: Vec<Report>,
    ring: bool,
}

impl Driver {
    pub(crate) fn start(config: Config, transports: Vec<Arc<dyn Transport>>) -> Result<Arc<Self>, Error> {
        fork::install().map_err(|error| Error::internal(format!("cannot watch for forks: {error}")))?;
        let mut seed = [0; 32];
        fill(&mut seed)?;
        let (request_timeout, drift) = (config.request_timeout(), config.drift());
        let alarm = Arc::new(Alarm::default());
        let ear = |n| Arc::new(Ear { node: NodeId::new(n), alarm: Arc::clone(&alarm) }) as Arc<dyn Watcher>;
        let state = State {
            core: Core::new(config, seed, clock::now()),
            ears: (0..).map(ear).take(transports.len()).collect(),
            transports: transports.clone(),
            slots: HashMap::default(),
            next_lock: 0,
            core_wake: Monotonic::FAR,
            planned: Monotonic::FAR,
            awake: true,
            patience: VecDeque::new(),
            ends: BTreeSet::new(),
            late_told: None,
            closing: false,
        };
        let driver = Arc::new(Self {
            state: Mutex::new(state),
            alarm,
            workers: transports.iter().map(|_| Workers::new()).collect(),
            troubles: Troubles::new(transports.len()),
            callbacks: Callbacks::default(),
            untold: AtomicU64::new(0),
            is_ending: AtomicBool::new(false),
            asked: AtomicU64::new(0),
            request_timeout,
            drift,
            transports,
            generation: fork::generation(),
        });
        let background = Arc::clone(&driver);
        spawn("leasehold-timer", move || background.keep_time())?;
        Ok(driver)
    }

    /// Nodes of a quorum that were seen to vote, and since which loss they are in doubt.
    pub(crate) fn has_seen(&self, votes: &[(NodeId, Option<LossId>)]) {
        let mut state = self.lock();
        for (node, loss) in votes {
            state.core.node_votes(*node, *loss, clock::now());
        }
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

    pub(crate) fn is_closing(&self) -> bool {
        self.lock().closing
    }

    pub(crate) fn is_inherited(&self) -> bool {
        self.generation != fork::generation()
    }

    /// Starts an acquisition; its slot tells how it goes on.
    pub(crate) fn acquire(
        self: &Arc<Self>,
        resource: Resource,
        options: LockOptions,
        caller: Caller,
    ) -> Result<(Arc<Slot>, Errands), Error> {
        self.check_process()?;
        let mut fresh: Entropy = [0; 16];
        fill(&mut fresh)?;
        let mut state = self.lock();
        if state.closing {
            return Err(Error::from(leasehold_core::Error::Closed).on(resource.as_str()));
        }
        let lock = LockId::new(state.next_lock);
        state.next_lock += 1;
        let now = clock::now();
        let slot = Arc::new(Slot::new(lock, resource.clone(), &options, self.generation, now.monotonic));
        state.slots.insert(lock, Arc::clone(&slot));
        if let Err(error) = state.core.acquire(lock, resource, options, &fresh, now) {
            state.slots.remove(&lock);
            return Err(Error::from(error).on(slot.resource().as_str()));
        }
        let work = self.drain(&mut state, now);
        drop(state);
        let errands = self.carry_out(work, caller, Some(lock));
        Ok((slot, errands))
    }

    /// Gives up a pending acquisition or a lease; `patient` callers are told when the release takes long.
    pub(crate) fn release(self: &Arc<Self>, slot: &Slot, caller: Caller, patient: bool) -> Errands {
        if self.is_inherited() {
            return Errands::default();
        }
        let lock = slot.lock();
        self.turn(caller, Some(lock), |state, now| {
            // Under the mutex, or a grant that arrives just now would bring the handle back to life.
            let mut aftermath = Aftermath::default();
            slot.end_locally(&mut aftermath);
            if state.core.release(lock, now).is_ok() && patient {
                state.patience.push_back((now.monotonic.plus(RELEASE_PATIENCE), lock));
            }
            aftermath
        })
        .1
    }

    /// Ends a lease at that instant, earlier or later than was said before. Answers whether there is a lease to end.
    pub(crate) fn end_at(self: &Arc<Self>, slot: &Slot, at: Monotonic) -> bool {
        if self.is_inherited() {
            return false;
        }
        let set = |state: &mut State, _| {
            // Under the mutex, or the lease could be over by the time that its end is moved.
            let is_there = state.slots.contains_key(&slot.lock()) && !slot.remaining().is_zero();
            if is_there {
                state.ends.remove(&(slot.ends_at(), slot.lock()));
                slot.end_at(at);
                state.ends.insert((at, slot.lock()));
            }
            is_there
        };
        self.turn(Caller::Nobody, None, set).0
    }

    /// Ends everything in the background: leases are released, waiters cancelled.
    pub(crate) fn close(self: &Arc<Self>) {
        self.is_ending.store(true, Ordering::SeqCst);
        let (aftermath, _) = self.turn(Caller::Nobody, None, |state, now| {
            state.closing = true;
            let mut aftermath = Aftermath::default();
            for slot in state.slots.values() {
                slot.end_by_closing(&mut aftermath);
            }
            state.core.close(now);
            aftermath
        });
        self.tell(&mut Work { aftermath, ..Work::default() }, None);
        self.alarm.ring();
    }

    /// After [`Driver::close`]: waits until all releases are through, at most `CLOSE_PATIENCE`, and a moment for the log
    /// to take what came last. Answers whether they are through.
    pub(crate) fn wait_closed(&self) -> bool {
        let is_stopped = self.alarm.wait_stopped(CLOSE_PATIENCE);
        // Another thread may still have in its hands what it has to report.
        self.alarm.wait_until(CLOSE_PATIENCE, || self.untold.load(Ordering::SeqCst) == 0);
        reports::wait_told();
        is_stopped
    }

    /// Runs somebody else's code on a thread kept for it.
    pub(crate) fn call_back(&self, callback: Callback) {
        self.callbacks.give(callback);
    }

    pub(crate) fn transports(&self) -> &[Arc<dyn Transport>] {
        &self.transports
    }

    /// The nodes whose last answer was none, and why.
    pub(crate) fn troubles(&self) -> Vec<(usize, Fault)> {
        self.troubles.all()
    }

    /// Whether there are several nodes.
    pub(crate) fn is_quorum(&self) -> bool {
        self.transports.len() > 1
    }

    /// Whether an acquisition is queued behind another one of this client.
    pub(crate) fn is_queued(&self, slot: &Slot) -> bool {
        self.lock().core.state(slot.lock()) == Some(QUEUED)
    }

    /// Tells if this task, or outside of tasks this thread, has taken a lease on the resource through this client.
    pub(crate) fn is_held_by(&self, resource: &Resource, task: Option<u64>) -> bool {
        let state = self.lock();
        state.slots.values().any(|slot| slot.resource() == resource && slot.was_taken_by(task) && slot.is_held())
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // The core is consistent after every call into it, so a panic elsewhere leaves nothing half done.
        self.state.lock()
    }

    /// One visit to the core, and then whatever it asks for.
    fn turn<R>(
        self: &Arc<Self>,
        caller: Caller,
        own: Option<LockId>,
        visit: impl FnOnce(&mut State, Now) -> R,
    ) -> (R, Errands) {
        let mut state = self.lock();
        let now = clock::now();
        let result = visit(&mut state, now);
        let work = self.drain(&mut state, now);
        drop(state);
        (result, self.carry_out(work, caller, own))
    }

    /// What came of a request that was performed elsewhere.
    fn answered(
        self: &Arc<Self>,
        (id, node): (RequestId, NodeId),
        answer: Answer,
        caller: Caller,
        own: Option<LockId>,
    ) -> Errands {
        self.troubles.note(node.index(), &answer);
        self.turn(caller, own, |state, now| state.core.handle_response(id, answer, now)).1
    }

    /// Requests for others leave first; wakers are other people's code and may take long. Loggers may hang: only callers
    /// wait for them, and last of all.
    fn carry_out(self: &Arc<Self>, mut work: Work, caller: Caller, own: Option<LockId>) -> Errands {
        let mut inline = VecDeque::new();
        let mut errands = Errands::default();
        let reporting = own.filter(|_| caller != Caller::Nobody);
        let mut reports = Vec::new();
        loop {
            for transmit in std::mem::take(&mut work.transmits) {
                let transport = &self.transports[transmit.node.index()];
                let own = own.filter(|own| transmit.ops.iter().all(|op| op.lock == *own));
                let here = transport.network().filter(|_| caller == Caller::Async);
                match (own, here) {
                    // The nodes of a quorum are asked at once, not one after the other.
                    (Some(_), _) if caller == Caller::Blocking && !self.is_quorum() => inline.push_back(transmit),
                    (_, _) if transport.is_instant() => inline.push_back(transmit),
                    (Some(lock), Some(network)) => {
                        if let Err(transmit) = errands.run(self, lock, network, transmit) {
                            self.hand_over(transmit, true);
                        }
                    }
                    (_, _) => self.hand_over(transmit, own.is_some()),
                }
            }
            reports.append(&mut self.tell(&mut work, reporting));
            let Some(transmit) = inline.pop_front() else { break };
            work = self.perform(&transmit, Pool::Caller);
        }
        for report in reports {
            reports::leave_or_tell(report.level(), move || report.emit());
        }
        errands
    }

    /// Leaves a request to the store's threads.
    fn hand_over(self: &Arc<Self>, transmit: Transmit, is_own: bool) {
        // A thread that held the driver would keep it alive for ever.
        let driver = Arc::downgrade(self);
        if let Some(network) = self.transports[transmit.node.index()].network() {
            let (whose, stopwatch) = ((transmit.id, transmit.node), Stopwatch::start(&transmit));
            let done = Box::new(move |answer| {
                stopwatch.stop();
                if let Some(driver) = driver.upgrade() {
                    driver.answered(whose, answer, Caller::Nobody, None);
                }
            });
            return network.call_in_background(transmit, done);
        }
        let workers = &self.workers[transmit.node.index()];
        let (worker, pool) =
            if is_own { (&workers.callers, Pool::Caller) } else { (&workers.background, Pool::Background) };
        worker.give(transmit, move |transmit| {
            if let Some(driver) = driver.upgrade() {
                let work = driver.perform(&transmit, pool);
                driver.carry_out(work, Caller::Nobody, None);
            }
        });
    }

    /// Asks the store, and tells the core what came of it.
    fn perform(&self, transmit: &Transmit, pool: Pool) -> Work {
        let stopwatch = Stopwatch::start(transmit);
        let result = self.transports[transmit.node.index()].perform(transmit, pool);
        stopwatch.stop();
        self.troubles.note(transmit.node.index(), &result);
        let mut state = self.lock();
        let now = clock::now();
        state.core.handle_response(transmit.id, result, now);
        self.drain(&mut state, now)
    }

    fn drain(&self, state: &mut State, now: Now) -> Work {
        let work = state.drain(now);
        if !work.reports.is_empty() {
            self.untold.fetch_add(work.reports.len() as u64, Ordering::SeqCst);
        }
        work
    }

    /// Answers what the caller is to report itself, of the lock that is its own.
    fn tell(&self, work: &mut Work, own: Option<LockId>) -> Vec<Report> {
        let reports = std::mem::take(&mut work.reports);
        let count = reports.len() as u64;
        let (own, others): (Vec<_>, Vec<_>) = reports.into_iter().partition(|report| Some(report.lock()) == own);
        for report in others {
            reports::leave(report.level(), move || report.emit());
        }
        let was_last = count > 0
            && self.untold.fetch_sub(count, Ordering::SeqCst) == count
            && self.is_ending.load(Ordering::SeqCst);
        if std::mem::take(&mut work.ring) || was_last {
            self.alarm.ring();
        }
        let Aftermath { wakers, callbacks, unused_on_expiring, unused_on_lost } = std::mem::take(&mut work.aftermath);
        for waker in wakers {
            waker.wake();
        }
        for callback in callbacks {
            self.call_back(callback);
        }
        drop((unused_on_expiring, unused_on_lost));
        own
    }

    /// The background thread: does what is due, for as long as the client lives.
    fn keep_time(self: Arc<Self>) {
        loop {
            let mut fresh: Entropy = [0; 16];
            let has_entropy = fill(&mut fresh).is_ok();
            // Wakers run here, too; a panic of theirs must not end all leases.
            let look = || self.look_at_the_clock(has_entropy.then_some(&fresh));
            let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(look)).unwrap_or(false);
            if done {
                // Whoever waits for the end may be about to leave the process: stores are closed before.
                let alarm = Arc::clone(&self.alarm);
                drop(self);
                alarm.stop();
                return;
            }
            let until = self.lock().plan(clock::monotonic());
            // Without entropy no attempt can start, and what is due stays due.
            let at_least = if has_entropy { Duration::ZERO } else { Duration::from_millis(100) };
            self.alarm.sleep_until(until.max(clock::monotonic().plus(at_least)));
        }
    }

    /// Answers whether the client is closed and nothing is left to do.
    fn look_at_the_clock(self: &Arc<Self>, fresh: Option<&Entropy>) -> bool {
        let hints = self.alarm.take_hints();
        let (is_over, _) = self.turn(Caller::Nobody, None, |state, now| {
            // Nobody needs to wake this thread now.
            state.awake = true;
            for hint in hints {
                match hint {
                    Hint::Released(resource) => state.core.notified(&resource, now),
                    Hint::Subscribed(node, resource) => state.core.subscribed(node, &resource, now),
                }
            }
            if let Some(fresh) = fresh {
                state.core.handle_timeout(fresh, now);
            }
            state.closing && state.core.is_idle()
        });
        is_over
    }
}

impl Workers {
    fn new() -> Self {
        Self { callers: Worker::new("leasehold-callers"), background: Worker::new("leasehold-store") }
    }
}

impl State {
    /// Takes all that the core has to say, and brings the slots up to date.
    fn drain(&mut self, now: Now) -> Work {
        let mut work = Work::default();
        self.end_by_clock(now, &mut work);
        loop {
            match self.core.poll_output(now) {
                Output::Transmit(transmit) => work.transmits.push_back(transmit),
                Output::Event(event) => self.apply(event, now, &mut work),
                Output::Subscribe { node, resource } => self.watch(node, &resource, true),
                Output::Unsubscribe { node, resource } => self.watch(node, &resource, false),
                // Embedded stores have no credentials, and commands are not given by `step`.
                Output::NeedCredentials { .. } | Output::Rejected { .. } => {}
                Output::WakeAt(at) => {
                    self.core_wake = at;
                    break;
                }
            }
        }
        self.lose_patience(now.monotonic, &mut work);
        let wake_at = self.wake_at();
        if wake_at < self.planned {
            self.planned = wake_at;
            work.ring = !self.awake;
        }
        // The end of a closed client is noticed by the background thread.
        work.ring |= self.closing && self.core.is_idle();
        work
    }

    /// How long the background thread sleeps. What it had planned stands: otherwise each request of a busy client would
    /// wake it once, for the request's deadline, and be over by the time that it looks.
    fn plan(&mut self, now: Monotonic) -> Monotonic {
        self.awake = false;
        let wake_at = self.wake_at();
        self.planned = if self.planned > now { self.planned.min(wake_at) } else { wake_at };
        self.planned
    }

    fn wake_at(&self) -> Monotonic {
        let others = self.patience.front().into_iter().chain(self.ends.first());
        others.fold(self.core_wake, |wake_at, (at, _)| wake_at.min(*at))
    }

    /// In the order in which the core asks for it, which is why it happens under the mutex. Stores only write it down.
    fn watch(&self, node: NodeId, resource: &Resource, on: bool) {
        let (transport, ear) = (&self.transports[node.index()], &self.ears[node.index()]);
        if on {
            transport.watch(resource, ear);
        } else {
            transport.unwatch(resource, ear);
        }
    }

    fn apply(&mut self, event: Event, now: Now, work: &mut Work) {
        let lock = event.lock();
        let Some(slot) = self.slots.get(&lock).map(Arc::clone) else { return };
        work.reports.push(Report::of(event.clone(), &slot, now.monotonic, &mut self.late_told));
        let ended = matches!(event, Event::Failed { .. } | Event::Lost { .. } | Event::Released { .. });
        let stands = slot.apply(event, &mut work.aftermath);
        if ended {
            self.slots.remove(&lock);
            self.ends.remove(&(slot.ends_at(), lock));
        } else if !stands {
            // Somebody has read the old deadline as passed: the core has to agree.
            let _ = self.core.declare_lost(lock, now);
        }
    }

    /// Their holders are told, and their records go: they may not be held for longer, whether the work is done or not.
    fn end_by_clock(&mut self, now: Now, work: &mut Work) {
        while let Some((at, lock)) = self.ends.first().copied().filter(|(at, _)| *at <= now.monotonic) {
            self.ends.remove(&(at, lock));
            if let Some(slot) = self.slots.get(&lock) {
                slot.end_by_clock(&mut work.aftermath);
                // It may be on its way out already.
                let _ = self.core.release(lock, now);
            }
        }
    }

    /// All are given the same time, so they stand in the order in which it ends. Those whose release is through must not
    /// wake anybody.
    fn lose_patience(&mut self, now: Monotonic, work: &mut Work) {
        while let Some((at, lock)) = self.patience.front() {
            match self.slots.get(lock) {
                Some(_) if *at > now => return,
                Some(slot) => slot.release_takes_long(&mut work.aftermath),
                None => {}
            }
            self.patience.pop_front();
        }
    }
}
