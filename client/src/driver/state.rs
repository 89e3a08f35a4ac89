//! Everything behind the driver's mutex: the core, and each lease as its caller sees it.

use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;

#[cfg(feature = "postgres")]
use leasehold_core::About;
use leasehold_core::member::LossId;
use leasehold_core::time::{SILENT_WAIT, wait_told_at};
use leasehold_core::{
    Client as Core, Departure, Entropy, Event, LockId, LockOptions, Monotonic, NodeId, Nonce, Now, OneOrMany, Output,
    Resource, RunResult, Sighting, Transmit, Wait,
};

use super::Driver;
use super::counted::CountedMap;
use super::last_faults::why_not;
use super::lease_state::LeaseState;
use super::notifications::Notifications;
use super::report::Report;
use super::send::Sent;
use super::timer_wakeup::{Hint, TimerWakeup, WakeupForwarder};
use super::waits::LongWait;
use crate::host::sync::{Arc, Mutex, Weak};
use crate::transport::{Answer, UnderLock, Watcher};

/// How long a release is awaited before the caller is told that it goes on in the background.
pub(super) const RELEASE_WAIT: Duration = Duration::from_secs(2);

pub(super) struct State {
    core: Core,
    /// Nothing that blocks can be asked of a store here.
    transports: Vec<Arc<dyn UnderLock>>,
    /// One for each store. A store keeps no client alive by watching for it.
    forwarders: Vec<Arc<dyn Watcher>>,
    leases: CountedMap<LockId, Arc<LeaseState>>,
    /// When the core wants to be called again.
    core_wake: Monotonic,
    /// When the timer thread will look again, unless it is awake.
    planned_wake: Monotonic,
    is_timer_awake: bool,
    /// Releases whose callers stop waiting at that instant.
    release_waits: VecDeque<(Monotonic, LockId)>,
    /// When leases end whatever their renewals say.
    ends: BTreeSet<(Monotonic, LockId)>,
    /// The next report of a wait.
    waits: BTreeSet<(Monotonic, LockId)>,
    /// When a late renewal was last warned of.
    last_late_warning: Option<Monotonic>,
    is_closing: bool,
}

/// A long wait of an acquisition is reported, or it is one of several and another of them is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IsTold {
    Yes,
    No,
}

/// Work to do once the mutex is free.
#[derive(Default)]
pub(super) struct Work {
    pub(super) transmits: OneOrMany<Transmit>,
    pub(super) notifications: Notifications,
    /// They hold the leases as well, so that none is dropped while the mutex is held.
    pub(super) reports: OneOrMany<Report>,
    /// To be reported.
    pub(super) waits: OneOrMany<LongWait>,
    pub(super) wakes_timer: bool,
}

impl State {
    pub(super) fn new(
        core: Core,
        transports: Vec<Arc<dyn UnderLock>>,
        timer: &Arc<TimerWakeup>,
        driver: &Arc<Mutex<Weak<Driver>>>,
    ) -> Self {
        let forwarder = |n| {
            let (timer, driver) = (Arc::clone(timer), Arc::clone(driver));
            Arc::new(WakeupForwarder { node: NodeId::new(n), timer, driver }) as Arc<dyn Watcher>
        };
        Self {
            core,
            forwarders: (0..).map(forwarder).take(transports.len()).collect(),
            transports,
            leases: CountedMap::default(),
            core_wake: Monotonic::FAR,
            planned_wake: Monotonic::FAR,
            is_timer_awake: true,
            release_waits: VecDeque::new(),
            ends: BTreeSet::new(),
            waits: BTreeSet::new(),
            last_late_warning: None,
            is_closing: false,
        }
    }

    pub(super) fn is_closing(&self) -> bool {
        self.is_closing
    }

    /// Closed, and nothing is left to do.
    pub(super) fn is_over(&self) -> bool {
        self.is_closing && self.core.is_idle()
    }

    /// The attempt by which a lease is held.
    pub(super) fn nonce(&self, lock: LockId) -> Option<Nonce> {
        self.core.nonce(lock)
    }

    /// The record of a run, as its finish with this result would write it.
    #[cfg(feature = "postgres")]
    pub(super) fn about(&self, lock: LockId, result: &RunResult) -> Option<About> {
        self.core.about(lock, result)
    }

    /// Tells if an acquisition is queued behind another one of this client.
    pub(super) fn is_queued(&self, lock: LockId) -> bool {
        self.core.is_queued(lock)
    }

    /// The records in the way of a lock that only observers can declare dead.
    pub(super) fn sightings(&self, resource: &Resource) -> Vec<Sighting> {
        self.core.sightings(resource)
    }

    /// Notes what an earlier process has seen of such a record.
    #[cfg_attr(not(unix), allow(dead_code, reason = "only the command keeps what it has seen"))]
    pub(super) fn seen_before(
        &mut self,
        resource: &Resource,
        node: NodeId,
        (digest, ago): ([u8; 16], Duration),
        now: Now,
    ) {
        self.core.seen_before(resource, node, digest, ago, now);
    }

    pub(super) fn leases(&self) -> impl Iterator<Item = &Arc<LeaseState>> {
        self.leases.values()
    }

    /// Ends a lease as if it had not been renewed for too long. Answers the attempt by which it was held.
    #[cfg(feature = "testing")]
    pub(super) fn lose(&mut self, resource: &Resource, now: Now) -> Option<Nonce> {
        let held = |lease: &&Arc<LeaseState>| lease.resource() == resource && !lease.remaining().is_zero();
        let lock = self.leases.values().find(held)?.lock();
        let nonce = self.core.nonce(lock)?;
        self.core.declare_lost(lock, now).ok().map(|()| nonce)
    }

    /// Begins an acquisition.
    ///
    /// # Errors
    /// The client is closed, or the core does not accept it.
    pub(super) fn acquire(
        &mut self,
        lease: Arc<LeaseState>,
        (options, is_told): (LockOptions, IsTold),
        fresh: &Entropy,
        now: Now,
    ) -> Result<(), leasehold_core::Error> {
        if self.is_closing {
            return Err(leasehold_core::Error::Closed);
        }
        lease.begin(now.monotonic);
        let is_long = match options.wait() {
            Wait::Forever => true,
            Wait::For(wait) | Wait::Watch(wait) => wait > SILENT_WAIT,
            Wait::Once => false,
        };
        let (lock, resource) = (lease.lock(), lease.resource().clone());
        self.leases.insert(lock, Arc::clone(&lease));
        let result = self.core.acquire(lock, resource, options, fresh, now);
        if result.is_err() {
            self.leases.remove(&lock);
        } else if is_long && is_told == IsTold::Yes {
            self.tell_wait_at(&lease, wait_told_at(now.monotonic, Duration::ZERO));
        }
        result
    }

    /// Ends a lease here, and begins to release it. Callers that wait for the release are told if it takes long.
    pub(super) fn release(&mut self, lease: &LeaseState, is_awaited: bool, now: Now) -> Notifications {
        // Under the mutex, or a grant that arrives just now would bring the handle back to life.
        let mut notifications = Notifications::default();
        lease.end_locally(&mut notifications);
        if self.core.release(lease.lock(), now).is_ok() && is_awaited {
            self.release_waits.push_back((now.monotonic.plus(RELEASE_WAIT), lease.lock()));
        }
        notifications
    }

    /// Ends a run here, and begins to write the completion that its work is done.
    pub(super) fn finish(
        &mut self,
        lease: &LeaseState,
        result: Option<RunResult>,
        now: Now,
    ) -> (Notifications, Result<(), leasehold_core::Error>) {
        let mut ended = Notifications::default();
        lease.end_locally(&mut ended);
        (ended, self.core.finish(lease.lock(), result, now))
    }

    /// Moves the instant at which a lease ends whatever its renewals say. Answers whether there is a lease to end.
    pub(super) fn end_at(&mut self, lease: &LeaseState, at: Monotonic) -> bool {
        // Under the mutex, or the lease could be over by the time that its end is moved.
        let is_held = self.leases.contains_key(&lease.lock()) && !lease.remaining().is_zero();
        if is_held {
            self.ends.remove(&(lease.ends_at(), lease.lock()));
            lease.end_at(at);
            self.ends.insert((at, lease.lock()));
        }
        is_held
    }

    /// Ends all leases and acquisitions.
    pub(super) fn close(&mut self, now: Now) -> Notifications {
        self.is_closing = true;
        let mut notifications = Notifications::default();
        let mut leases: Vec<_> = self.leases.values().collect();
        // Their callbacks are called in this order.
        leases.sort_unstable_by_key(|lease| lease.lock());
        for lease in leases {
            lease.end_by_closing(&mut notifications);
        }
        self.core.close(now);
        notifications
    }

    /// Nodes of a quorum that were seen to vote, and since which loss they are in doubt.
    pub(super) fn note_votes(&mut self, votes: &[(NodeId, Option<LossId>)], now: Now) {
        for (node, loss) in votes {
            self.core.node_votes(*node, *loss, now);
        }
    }

    pub(super) fn handle_answer(&mut self, request: &Sent, answer: Answer, now: Now) {
        for (at, lock) in &request.finishes {
            if let (Some(lease), Some(why)) = (self.leases.get(lock), why_not(&answer, *at)) {
                lease.finish_failed(request.node, why);
            }
        }
        let store = &self.transports[request.node.index()];
        let queued = request.queues.as_ref().map(|(lock, resource)| (*lock, resource));
        match queued.filter(|(lock, resource)| store.place_in_queue(resource, Some(*lock)).is_some()) {
            Some((lock, resource)) if self.leases.contains_key(&lock) => {
                self.core.placed(lock, store.reserved_before(resource, lock));
            }
            // It was given up while it asked, and may have left the queue before it joined.
            Some((lock, resource)) => store.leave_queue(resource, lock),
            None => {}
        }
        self.core.handle_response(request.id, answer, now);
    }

    /// The timer thread is awake: it does what is due, and hands on what stores have told. Without fresh entropy no attempt
    /// can start, and what is due stays due.
    pub(super) fn on_timer(&mut self, hints: impl IntoIterator<Item = Hint>, fresh: Option<&Entropy>, now: Now) {
        self.is_timer_awake = true;
        for hint in hints {
            match hint {
                Hint::Released(resource) => self.core.notified(&resource, now),
                Hint::Subscribed(node, resource) => self.core.subscribed(node, &resource, now),
                Hint::Reserved(resource, lock) => self.core.reserved(&resource, lock, Duration::ZERO, now),
            }
        }
        if let Some(fresh) = fresh {
            self.core.handle_timeout(fresh, now);
        }
    }

    /// It is the turn of an acquisition, which tries at once or `after` a while. Without fresh entropy the timer thread tries.
    #[cfg_attr(not(feature = "redis"), allow(dead_code, reason = "only Redis keeps lines"))]
    pub(super) fn on_reserved(
        &mut self,
        resource: &Resource,
        lock: LockId,
        after: Duration,
        fresh: Option<&Entropy>,
        now: Now,
    ) {
        self.core.reserved(resource, lock, after, now);
        if let Some(fresh) = fresh {
            self.core.handle_timeout(fresh, now);
        }
    }

    /// The timer thread goes to sleep: until when. What it had planned stands: otherwise each request of a busy client would
    /// wake it once, for the request's deadline, and be over by the time that it looks.
    pub(super) fn on_timer_sleep(&mut self, now: Monotonic) -> Monotonic {
        self.is_timer_awake = false;
        let wake = self.next_wake();
        self.planned_wake = if self.planned_wake > now { self.planned_wake.min(wake) } else { wake };
        self.planned_wake
    }

    /// Takes all that the core has to say, and brings the leases up to date.
    pub(super) fn drain(&mut self, now: Now, work: &mut Work) {
        self.expire_leases(now, work);
        self.drain_core(now, work);
        self.expire_release_waits(now.monotonic, work);
        self.tell_waits(now.monotonic, work);
        work.wakes_timer = self.must_wake_timer();
    }

    fn drain_core(&mut self, now: Now, work: &mut Work) {
        loop {
            match self.core.poll_output(now) {
                Output::Transmit(transmit) => work.transmits.push(transmit),
                Output::Event(event) => self.apply(event, now, work),
                Output::Subscribe { node, resource } => self.watch(node, &resource),
                Output::Unsubscribe { node, resource } => self.unwatch(node, &resource),
                // Embedded stores have no credentials, and commands are not given by `step`.
                Output::NeedCredentials { .. } | Output::Rejected { .. } => {}
                Output::WakeAt(at) => {
                    self.core_wake = at;
                    break;
                }
            }
        }
        while let Some(Departure { node, resource, lock }) = self.core.next_departure() {
            self.transports[node.index()].leave_queue(&resource, lock);
        }
    }

    fn apply(&mut self, event: Event, now: Now, work: &mut Work) {
        let lock = event.lock();
        let has_ended = matches!(
            event,
            Event::Failed { .. } | Event::Lost { .. } | Event::Released { .. } | Event::Finished { .. }
        );
        let lease = if has_ended { self.leases.remove(&lock) } else { self.leases.get(&lock).map(Arc::clone) };
        let Some(lease) = lease else { return };
        if let (Event::Contended { .. }, [store]) = (&event, &self.transports[..]) {
            lease.note_place(store.place_in_queue(lease.resource(), Some(lock)));
        }
        if !matches!(event, Event::Contended { .. }) && !self.waits.is_empty() {
            self.waits.remove(&(lease.tell_at(), lock));
        }
        let report = Report::of(event.clone(), lease, now.monotonic, &mut self.last_late_warning);
        let stands = report.lease().apply(event, now.monotonic, &mut work.notifications);
        if has_ended && !self.ends.is_empty() {
            self.ends.remove(&(report.lease().ends_at(), lock));
        }
        work.reports.push(report);
        if !has_ended && !stands {
            // A reader has seen the old deadline pass, and the core has to agree.
            let _ = self.core.declare_lost(lock, now);
        }
    }

    /// Subscriptions change in the order in which the core asks for it, and so under the mutex. Stores only note it.
    fn watch(&self, node: NodeId, resource: &Resource) {
        self.transports[node.index()].watch(resource, &self.forwarders[node.index()]);
    }

    fn unwatch(&self, node: NodeId, resource: &Resource) {
        self.transports[node.index()].unwatch(resource, &self.forwarders[node.index()]);
    }

    /// Ends leases whose time is over whether the work is done or not: their holders are told, and their records released.
    fn expire_leases(&mut self, now: Now, work: &mut Work) {
        while let Some((at, lock)) = self.ends.first().copied().filter(|(at, _)| *at <= now.monotonic) {
            self.ends.remove(&(at, lock));
            if let Some(lease) = self.leases.get(&lock) {
                lease.end_by_clock(&mut work.notifications);
                // It may be on its way out already.
                let _ = self.core.release(lock, now);
            }
        }
    }

    /// Tells callers whose release takes long. All are given the same time, so they stand in the order in which it ends.
    /// Releases that are confirmed must not wake the timer thread.
    fn expire_release_waits(&mut self, now: Monotonic, work: &mut Work) {
        while let Some((at, lock)) = self.release_waits.front() {
            match self.leases.get(lock) {
                Some(_) if *at > now => return,
                Some(lease) => lease.release_takes_long(&mut work.notifications),
                None => {}
            }
            self.release_waits.pop_front();
        }
    }

    fn tell_wait_at(&mut self, lease: &LeaseState, at: Monotonic) {
        lease.set_tell_at(at);
        self.waits.insert((at, lease.lock()));
    }

    /// Tells of acquisitions that have waited for long.
    fn tell_waits(&mut self, now: Monotonic, work: &mut Work) {
        while let Some((_, lock)) = self.waits.first().copied().filter(|(at, _)| *at <= now) {
            self.waits.pop_first();
            let Some(lease) = self.leases.get(&lock).filter(|lease| lease.is_waiting()).map(Arc::clone) else {
                continue;
            };
            let waited = lease.age(now);
            self.tell_wait_at(&lease, wait_told_at(lease.since(), waited));
            work.waits.push(LongWait { holding: self.core.holder(lock).cloned(), lease, waited });
        }
    }

    /// When something is due: at once if the client is closed and nothing is left to do.
    #[cfg_attr(not(feature = "testing"), allow(dead_code, reason = "on a machine, a thread keeps time"))]
    pub(super) fn due(&self) -> Monotonic {
        if self.is_over() { Monotonic::default() } else { self.next_wake() }
    }

    fn must_wake_timer(&mut self) -> bool {
        let wake = self.next_wake();
        let is_earlier = wake < self.planned_wake;
        if is_earlier {
            self.planned_wake = wake;
        }
        // The timer thread notices the end of a closed client.
        (is_earlier && !self.is_timer_awake) || self.is_over()
    }

    fn next_wake(&self) -> Monotonic {
        let others = self.release_waits.front().into_iter().chain(self.ends.first()).chain(self.waits.first());
        others.fold(self.core_wake, |wake, (at, _)| wake.min(*at))
    }
}
