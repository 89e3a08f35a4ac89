//! One acquisition as its caller sees it: its phase, and the deadline until which its lease is valid.

use std::task::{Context, Poll, Waker};
use std::time::Duration;

use leasehold_core::op::Fault;
use leasehold_core::{Event, Failure, LockId, LockOptions, LostReason, Monotonic, NodeId, OneOrMany, Owner, Resource};

use super::callbacks::{Callback, OnLost};
use super::notifications::Notifications;
use crate::error::{Error, ErrorKind};
use crate::host::fork;
use crate::host::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use crate::host::sync::thread::{self, ThreadId};
use crate::host::sync::{Arc, Mutex, MutexGuard};
use crate::host::time::Time;

/// Shared by a lease and the driver. The deadline is one atomic, so that reading it never waits.
pub(crate) struct LeaseState {
    lock: LockId,
    resource: Resource,
    owner: Owner,
    time: Time,
    generation: u64,
    taken_by: ThreadId,
    /// The task of an event loop that takes it, in place of the thread; [`NO_TASK`] for none.
    task: AtomicU64,
    /// When the acquisition began; when it was granted, once it is held.
    since: AtomicU64,
    /// Nanoseconds of the monotonic clock; [`LOST`] when nothing is held, and then for good.
    deadline: AtomicU64,
    /// When the lease ends even if it is renewed; [`PENDING`] for never.
    ends_at: AtomicU64,
    /// The deadline of a lease that was revoked, until it is released; [`LOST`] for any other.
    protected_until: AtomicU64,
    /// The store was seen to have no record of it.
    is_record_gone: AtomicBool,
    /// The token of the grant; 0 before it.
    token: AtomicU64,
    purpose: Purpose,
    /// Somebody else was seen to hold the lock before.
    was_contended: AtomicBool,
    /// Its place in the queue of waiters when it was first refused; 0 for none.
    place: AtomicU64,
    /// The next report of its wait; [`PENDING`] for never.
    tell_at: AtomicU64,
    inner: Mutex<Inner>,
}

const NO_TASK: u64 = u64::MAX;
const LOST: u64 = 0;
/// Not granted yet. No clock shows this, so it cannot be read as a deadline that passed.
const PENDING: u64 = u64::MAX;

struct Inner {
    phase: Phase,
    is_expiring: bool,
    /// Why the last renewal failed, if it did.
    renew_fault: Option<Fault>,
    /// Why the last try to finish failed, if one did, and on which node.
    finish_fault: Option<(NodeId, String)>,
    /// One for each wait; hardly ever more than one.
    wakers: OneOrMany<(u64, Waker)>,
    next_waker: u64,
    on_expiring: Vec<Callback>,
    on_lost: Vec<OnLost>,
}

/// The phase of an acquisition.
#[derive(Clone, Debug)]
pub(crate) enum Phase {
    /// Undecided.
    Pending,
    /// Granted.
    Held { token: u64 },
    /// Being released: the store has not confirmed it yet.
    Releasing,
    /// Being released, for longer than the caller should wait.
    ReleaseOverdue,
    /// Released, or run out by itself since.
    Released,
    /// Finished: a completion says that the work is done, or else `confirmed` is false and it may stand. Its result may be dropped.
    Finished { confirmed: bool, result_dropped: bool },
    /// Never held.
    Failed(Failure),
    /// Ended without a release.
    Lost(LostReason),
    /// Released because the client was closed, which its holder did not ask for.
    Closed,
}

/// The use of a lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    Lock,
    /// Work that is done once, and the time for which its completion stands.
    #[cfg_attr(not(feature = "postgres"), allow(dead_code, reason = "transactions of users alone need the time"))]
    Run {
        keep: Duration,
    },
    /// The removal of a completion of work that was done.
    Forgetting,
}

impl Purpose {
    pub(crate) fn of(options: &LockOptions) -> Self {
        match options.run() {
            None => Self::Lock,
            Some(run) if run.even_if_done && run.keep.is_zero() => Self::Forgetting,
            Some(run) => Self::Run { keep: run.keep },
        }
    }
}

impl LeaseState {
    pub(crate) fn new(
        lock: LockId,
        resource: Resource,
        owner: Owner,
        purpose: Purpose,
        time: Time,
        generation: u64,
    ) -> Self {
        let inner = Inner {
            phase: Phase::Pending,
            is_expiring: false,
            renew_fault: None,
            finish_fault: None,
            wakers: OneOrMany::new(),
            next_waker: 0,
            on_expiring: Vec::new(),
            on_lost: Vec::new(),
        };
        Self {
            lock,
            resource,
            owner,
            time,
            generation,
            taken_by: thread::current().id(),
            task: AtomicU64::new(NO_TASK),
            since: AtomicU64::new(0),
            deadline: AtomicU64::new(PENDING),
            ends_at: AtomicU64::new(PENDING),
            protected_until: AtomicU64::new(LOST),
            is_record_gone: AtomicBool::new(false),
            token: AtomicU64::new(0),
            purpose,
            was_contended: AtomicBool::new(false),
            place: AtomicU64::new(0),
            tell_at: AtomicU64::new(PENDING),
            inner: Mutex::new(inner),
        }
    }

    pub(crate) fn lock(&self) -> LockId {
        self.lock
    }

    /// The time by which it ends.
    pub(crate) fn time(&self) -> &Time {
        &self.time
    }

    /// Notes when the acquisition begins.
    pub(crate) fn begin(&self, now: Monotonic) {
        self.since.store(now.ns(), Ordering::Relaxed);
    }

    pub(crate) fn resource(&self) -> &Resource {
        &self.resource
    }

    pub(crate) fn owner(&self) -> &Owner {
        &self.owner
    }

    pub(crate) fn set_task(&self, task: u64) {
        self.task.store(task, Ordering::Relaxed);
    }

    pub(crate) fn was_taken_by(&self, task: Option<u64>) -> bool {
        let own = self.task.load(Ordering::Relaxed);
        task.map_or_else(|| own == NO_TASK && self.taken_by == thread::current().id(), |task| own == task)
    }

    pub(crate) fn purpose(&self) -> Purpose {
        self.purpose
    }

    pub(crate) fn was_contended(&self) -> bool {
        self.was_contended.load(Ordering::Relaxed)
    }

    pub(crate) fn is_held(&self) -> bool {
        let deadline = self.deadline.load(Ordering::Acquire);
        deadline != PENDING && deadline != LOST
    }

    /// The token of the grant; 0 before it.
    pub(crate) fn token(&self) -> u64 {
        self.token.load(Ordering::Relaxed)
    }

    /// Tells if it is undecided, and nobody has given it up.
    pub(crate) fn is_waiting(&self) -> bool {
        self.deadline.load(Ordering::Acquire) == PENDING
    }

    /// The next report of its wait.
    pub(crate) fn tell_at(&self) -> Monotonic {
        Monotonic::from_ns(self.tell_at.load(Ordering::Relaxed))
    }

    pub(crate) fn set_tell_at(&self, at: Monotonic) {
        self.tell_at.store(at.ns(), Ordering::Relaxed);
    }

    pub(crate) fn ends_at(&self) -> Monotonic {
        Monotonic::from_ns(self.ends_at.load(Ordering::Acquire))
    }

    pub(crate) fn end_at(&self, at: Monotonic) {
        self.ends_at.store(at.ns(), Ordering::Release);
    }

    /// The validity that is left, zero once the lease is over. A check that sees the deadline pass ends the lease for good, so
    /// that no later renewal takes an answer of "lost" back.
    pub(crate) fn remaining(&self) -> Duration {
        if self.is_inherited() {
            return Duration::ZERO;
        }
        let mut deadline = self.deadline.load(Ordering::Acquire);
        loop {
            if deadline == LOST || deadline == PENDING {
                return Duration::ZERO;
            }
            let (now, until) = (self.time.monotonic().ns(), deadline.min(self.ends_at.load(Ordering::Acquire)));
            if now < until {
                return Duration::from_nanos(until - now);
            }
            match self.deadline.compare_exchange(deadline, LOST, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return Duration::ZERO,
                Err(moved) => deadline = moved,
            }
        }
    }

    /// The validity that is left, or that was left when the lease was revoked: until then nobody else has the lock.
    pub(crate) fn protected_for(&self) -> Duration {
        if self.is_inherited() {
            return Duration::ZERO;
        }
        let until = Monotonic::from_ns(self.protected_until.load(Ordering::Acquire));
        self.remaining().max(until.since(self.time.monotonic()))
    }

    /// Tells if the lease was revoked and has still to be released; not so a second time.
    pub(crate) fn take_revoked(&self) -> bool {
        !self.is_inherited() && self.protected_until.swap(LOST, Ordering::AcqRel) != LOST
    }

    /// Ends the lease here, before the store has released it.
    pub(crate) fn end_locally(&self, notifications: &mut Notifications) {
        self.deadline.store(LOST, Ordering::Release);
        let mut inner = self.inner();
        if matches!(inner.phase, Phase::Held { .. }) {
            inner.phase = Phase::Releasing;
            inner.discard_callbacks(notifications);
        }
    }

    /// As [`LeaseState::end_locally`], and tells the holder.
    pub(crate) fn end_by_closing(&self, notifications: &mut Notifications) {
        self.end_with(Phase::Closed, || self.closed(), notifications);
    }

    /// Says that the lease ends because its record is gone, and not because its time is over.
    pub(crate) fn mark_record_gone(&self) {
        self.is_record_gone.store(true, Ordering::Relaxed);
    }

    /// As [`LeaseState::end_by_closing`], of a lease that has been held for as long as it may.
    pub(crate) fn end_by_clock(&self, notifications: &mut Notifications) {
        let is_record_gone = self.is_record_gone.load(Ordering::Relaxed);
        let reason = if is_record_gone { LostReason::RecordGone } else { LostReason::MaxHold };
        let error = || Error::lost(self.resource.as_str(), &reason, None);
        self.end_with(Phase::Lost(reason.clone()), error, notifications);
    }

    fn end_with(&self, phase: Phase, error: impl Fn() -> Error, notifications: &mut Notifications) {
        self.deadline.store(LOST, Ordering::Release);
        let mut inner = self.inner();
        if matches!(inner.phase, Phase::Held { .. }) {
            inner.phase = phase;
            inner.notify_loss(error, notifications);
        }
    }

    /// Applies an event of the core. Answers `false` when it came too late: the deadline that it moves was read as passed.
    pub(crate) fn apply(&self, event: Event, now: Monotonic, notifications: &mut Notifications) -> bool {
        let mut inner = self.inner();
        match event {
            Event::Acquired { token, deadline, .. } => {
                self.since.store(now.ns(), Ordering::Relaxed);
                self.token.store(token.get(), Ordering::Relaxed);
                self.deadline.store(deadline.ns().max(LOST + 1), Ordering::Release);
                inner.phase = Phase::Held { token: token.get() };
            }
            Event::Renewed { deadline, .. } => {
                inner.is_expiring = false;
                inner.renew_fault = None;
                return self.move_deadline(deadline) || !matches!(inner.phase, Phase::Held { .. });
            }
            Event::Shortened { deadline, .. } => {
                return self.move_deadline(deadline) || !matches!(inner.phase, Phase::Held { .. });
            }
            Event::Expiring { .. } => {
                inner.is_expiring = true;
                notifications.callbacks.append(&mut inner.on_expiring);
            }
            Event::Lost { reason, .. } => {
                // First, so that a release that finds the lease over finds what it has to let go of.
                if reason == LostReason::Revoked {
                    self.protected_until.store(self.deadline.load(Ordering::Acquire), Ordering::Release);
                }
                self.deadline.store(LOST, Ordering::Release);
                let renew_fault = inner.renew_fault.clone();
                inner.phase = Phase::Lost(reason.clone());
                inner.notify_loss(|| Error::lost(self.resource.as_str(), &reason, renew_fault.as_ref()), notifications);
            }
            Event::Failed { failure, .. } => {
                self.deadline.store(LOST, Ordering::Release);
                inner.phase = Phase::Failed(failure);
            }
            Event::Released { .. } => {
                self.deadline.store(LOST, Ordering::Release);
                if !matches!(inner.phase, Phase::Closed | Phase::Lost(_)) {
                    inner.phase = Phase::Released;
                }
                inner.discard_callbacks(notifications);
            }
            Event::Finished { confirmed, result_dropped, .. } => {
                self.deadline.store(LOST, Ordering::Release);
                inner.phase = Phase::Finished { confirmed, result_dropped };
                inner.discard_callbacks(notifications);
            }
            Event::RenewDelayed { fault, .. } => {
                inner.renew_fault = Some(fault);
                return true;
            }
            Event::Contended { .. } => {
                self.was_contended.store(true, Ordering::Relaxed);
                return true;
            }
        }
        inner.wake_all(notifications);
        true
    }

    /// Notes the place in the queue of waiters that it got when it was first refused.
    pub(crate) fn note_place(&self, place: Option<u64>) {
        self.place.store(place.unwrap_or(0), Ordering::Relaxed);
    }

    /// The place in the queue of waiters that it got when it was first refused, counted from 1; `None` if it has none.
    pub(crate) fn place(&self) -> Option<u64> {
        Some(self.place.load(Ordering::Relaxed)).filter(|place| *place > 0)
    }

    pub(crate) fn release_takes_long(&self, notifications: &mut Notifications) {
        let mut inner = self.inner();
        if matches!(inner.phase, Phase::Releasing) {
            inner.phase = Phase::ReleaseOverdue;
            inner.wake_all(notifications);
        }
    }

    /// How long ago the acquisition began, or for a lease, was granted.
    pub(crate) fn age(&self, now: Monotonic) -> Duration {
        now.since(self.since())
    }

    /// When the acquisition began, or for a lease, was granted.
    pub(crate) fn since(&self) -> Monotonic {
        Monotonic::from_ns(self.since.load(Ordering::Relaxed))
    }

    /// Why the lease is over without its holder having released it.
    pub(crate) fn loss(&self) -> Option<Error> {
        if self.is_inherited() {
            let message = "the lease belongs to the parent process, not to its forked child: acquire the lock again \
                           here";
            return Some(Error::new(ErrorKind::Lost, message).on(self.resource.as_str()));
        }
        let inner = self.inner();
        self.loss_in(&inner)
    }

    /// Why the last renewal failed, if it did.
    pub(crate) fn renew_fault(&self) -> Option<Fault> {
        if self.is_inherited() { None } else { self.inner().renew_fault.clone() }
    }

    /// Notes why the store has not finished the run yet.
    pub(crate) fn finish_failed(&self, node: NodeId, why: String) {
        self.inner().finish_fault = Some((node, why));
    }

    /// Why the last try to finish failed, if one did, and on which node.
    pub(crate) fn finish_fault(&self) -> Option<(NodeId, String)> {
        self.inner().finish_fault.clone()
    }

    /// Keeps a callback for the loss, or gives it back to be called if that has happened.
    pub(crate) fn on_lost(&self, callback: OnLost) -> Option<Callback> {
        if self.is_inherited() {
            return None;
        }
        let mut inner = self.inner();
        match self.loss_in(&inner) {
            Some(error) => Some(Box::new(move || callback(error))),
            None if matches!(inner.phase, Phase::Pending | Phase::Held { .. }) => {
                inner.on_lost.push(callback);
                None
            }
            None => None,
        }
    }

    /// Keeps a callback for the moment in which the lease begins to expire, or gives it back to be called if that has
    /// happened, or the lease is lost.
    pub(crate) fn on_expiring(&self, callback: Callback) -> Option<Callback> {
        if self.is_inherited() {
            return None;
        }
        let mut inner = self.inner();
        match &inner.phase {
            Phase::Pending | Phase::Held { .. } if !inner.is_expiring => {
                inner.on_expiring.push(callback);
                None
            }
            Phase::Pending | Phase::Held { .. } | Phase::Lost(_) | Phase::Closed => Some(callback),
            Phase::Releasing | Phase::ReleaseOverdue | Phase::Released | Phase::Finished { .. } | Phase::Failed(_) => {
                None
            }
        }
    }

    /// Tells if this process is a forked child of the one that made the client. Nothing else here may be touched then.
    pub(crate) fn is_inherited(&self) -> bool {
        self.generation != fork::generation()
    }

    fn loss_in(&self, inner: &Inner) -> Option<Error> {
        match &inner.phase {
            Phase::Lost(reason) => Some(Error::lost(self.resource.as_str(), reason, inner.renew_fault.as_ref())),
            Phase::Closed => Some(self.closed()),
            Phase::Pending
            | Phase::Held { .. }
            | Phase::Releasing
            | Phase::ReleaseOverdue
            | Phase::Released
            | Phase::Finished { .. }
            | Phase::Failed(_) => None,
        }
    }

    fn closed(&self) -> Error {
        let message = "the client was closed, and the lease released with it; the work it protected must stop";
        Error::new(ErrorKind::NotOwned, message).on(self.resource.as_str())
    }

    /// Publishes a new deadline, unless the old one has passed or was read as passed.
    fn move_deadline(&self, to: Monotonic) -> bool {
        let mut deadline = self.deadline.load(Ordering::Acquire);
        loop {
            if deadline == LOST || self.time.monotonic().ns() >= deadline {
                self.deadline.store(LOST, Ordering::Release);
                return false;
            }
            match self.deadline.compare_exchange(deadline, to.ns(), Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return true,
                Err(moved) => deadline = moved,
            }
        }
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock()
    }
}

impl Inner {
    fn wake_all(&mut self, notifications: &mut Notifications) {
        for (_, waker) in std::mem::take(&mut self.wakers) {
            notifications.wakers.push(waker);
        }
    }

    fn take_waker(&mut self, id: u64) -> Option<Waker> {
        let at = self.wakers.iter().position(|(known, _)| *known == id)?;
        Some(self.wakers.remove(at).1)
    }

    fn discard_callbacks(&mut self, notifications: &mut Notifications) {
        notifications.unused_on_expiring.append(&mut self.on_expiring);
        notifications.unused_on_lost.append(&mut self.on_lost);
    }

    fn notify_loss(&mut self, error: impl Fn() -> Error, notifications: &mut Notifications) {
        for callback in std::mem::take(&mut self.on_lost) {
            let error = error();
            notifications.callbacks.push(Box::new(move || callback(error)));
        }
        self.discard_callbacks(notifications);
        self.wake_all(notifications);
    }
}

/// A wait for another phase. Dropping it removes its waker.
pub(crate) struct PhaseWait {
    lease: Arc<LeaseState>,
    /// Where its waker is kept.
    id: Option<u64>,
    /// The waker, while it is not kept there.
    own: Option<Waker>,
}

impl PhaseWait {
    pub(crate) fn on(lease: &Arc<LeaseState>) -> Self {
        Self { lease: Arc::clone(lease), id: None, own: None }
    }

    /// Takes the waker back until the next [`PhaseWait::poll`], for a task that may end its own wait meanwhile: it is
    /// awake, and would be polled once more for nothing.
    pub(crate) fn pause(&mut self) {
        if let Some(id) = self.id.take() {
            self.own = self.lease.inner().take_waker(id);
        }
    }

    /// Ready once `look` answers; it is given the phase, and whether the lease is expiring.
    pub(crate) fn poll<R>(&mut self, context: &Context<'_>, look: impl FnOnce(&Phase, bool) -> Option<R>) -> Poll<R> {
        let own = self.own.take().filter(|own| own.will_wake(context.waker()));
        let waker = own.unwrap_or_else(|| context.waker().clone());
        self.lease.time.note_wait();
        // Checked and registered under one lock, so that no change is missed. The old waker is dropped after it.
        let mut inner = self.lease.inner();
        if let Some(found) = look(&inner.phase, inner.is_expiring) {
            return Poll::Ready(found);
        }
        let id = *self.id.get_or_insert_with(|| {
            inner.next_waker += 1;
            inner.next_waker
        });
        let replaced = match inner.wakers.iter_mut().find(|(known, _)| *known == id) {
            Some((_, known)) => Some(std::mem::replace(known, waker)),
            None => {
                inner.wakers.push((id, waker));
                None
            }
        };
        drop(inner);
        drop(replaced);
        Poll::Pending
    }
}

impl Drop for PhaseWait {
    fn drop(&mut self) {
        if let Some(id) = self.id.filter(|_| !self.lease.is_inherited()) {
            let removed = self.lease.inner().take_waker(id);
            drop(removed);
        }
    }
}
