//! One acquisition as its caller sees it: where it stands, and until when its lease can be believed in.

use std::task::{Context, Poll, Waker};
use std::time::Duration;

use leasehold_core::op::Fault;
use leasehold_core::{Event, Failure, LockId, LockOptions, LostReason, Monotonic, Owner, Resource};

use super::Callback;
use crate::clock;
use crate::error::{Error, ErrorKind};
use crate::fork;
use crate::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use crate::sync::thread::{self, ThreadId};
use crate::sync::{Arc, HashMap, Mutex, MutexGuard};

/// Shared by a lease and the driver. The deadline is one atomic, so that reading it never waits for anybody.
pub(crate) struct Slot {
    lock: LockId,
    resource: Resource,
    owner: Owner,
    generation: u64,
    taken_by: ThreadId,
    /// The task of a host that takes it, in place of the thread; [`NO_TASK`] for none.
    task: AtomicU64,
    /// When the acquisition began; the grant's instant once it is held.
    since: AtomicU64,
    /// Nanoseconds of the monotonic clock; [`LOST`] when nothing is held, and then for good.
    deadline: AtomicU64,
    /// When the lease ends even if it is renewed; [`PENDING`] for never.
    ends_at: AtomicU64,
    /// The record was seen to be gone.
    is_gone: AtomicBool,
    /// Of the grant; 0 before it.
    token: AtomicU64,
    state: Mutex<State>,
}

const NO_TASK: u64 = u64::MAX;
const LOST: u64 = 0;
/// Not granted yet. No clock shows this, so it cannot be read as a deadline that passed.
const PENDING: u64 = u64::MAX;

struct State {
    phase: Phase,
    in_danger: bool,
    /// Why the last renewal failed, if it did.
    trouble: Option<Fault>,
    wakers: HashMap<u64, Waker>,
    next_waker: u64,
    on_expiring: Vec<Callback>,
    on_lost: Vec<OnLost>,
}

pub(crate) type OnLost = Box<dyn FnOnce(Error) + Send>;

/// What is to be woken, called and dropped once no lock is held: each of it is somebody else's code.
#[derive(Default)]
pub(crate) struct Aftermath {
    pub(crate) wakers: Vec<Waker>,
    pub(crate) callbacks: Vec<Callback>,
    pub(crate) unused_on_expiring: Vec<Callback>,
    pub(crate) unused_on_lost: Vec<OnLost>,
}

/// Where an acquisition stands.
#[derive(Clone, Debug)]
pub(crate) enum Phase {
    /// Not decided.
    Pending,
    /// Granted.
    Held { token: u64 },
    /// Given back, not confirmed yet.
    Releasing,
    /// As above, for longer than the caller should wait.
    ReleasingStill,
    /// Given back, or run out by itself since.
    Released,
    /// Over without having been held.
    Failed(Failure),
    /// Over without having been released.
    Lost(LostReason),
    /// Given back because the client was closed, which its holder did not ask for.
    Closed,
}

impl Slot {
    pub(crate) fn new(
        lock: LockId,
        resource: Resource,
        options: &LockOptions,
        generation: u64,
        now: Monotonic,
    ) -> Self {
        let state = State {
            phase: Phase::Pending,
            in_danger: false,
            trouble: None,
            wakers: HashMap::default(),
            next_waker: 0,
            on_expiring: Vec::new(),
            on_lost: Vec::new(),
        };
        Self {
            lock,
            resource,
            owner: options.owner().clone(),
            generation,
            taken_by: thread::current().id(),
            task: AtomicU64::new(NO_TASK),
            since: AtomicU64::new(now.ns()),
            deadline: AtomicU64::new(PENDING),
            ends_at: AtomicU64::new(PENDING),
            is_gone: AtomicBool::new(false),
            token: AtomicU64::new(0),
            state: Mutex::new(state),
        }
    }

    pub(crate) fn lock(&self) -> LockId {
        self.lock
    }

    pub(crate) fn resource(&self) -> &Resource {
        &self.resource
    }

    pub(crate) fn owner(&self) -> &Owner {
        &self.owner
    }

    pub(crate) fn take_by(&self, task: u64) {
        self.task.store(task, Ordering::Relaxed);
    }

    pub(crate) fn was_taken_by(&self, task: Option<u64>) -> bool {
        let own = self.task.load(Ordering::Relaxed);
        task.map_or_else(|| own == NO_TASK && self.taken_by == thread::current().id(), |task| own == task)
    }

    pub(crate) fn is_held(&self) -> bool {
        let deadline = self.deadline.load(Ordering::Acquire);
        deadline != PENDING && deadline != LOST
    }

    /// The token of the grant; 0 before it.
    pub(crate) fn token(&self) -> u64 {
        self.token.load(Ordering::Relaxed)
    }

    pub(crate) fn ends_at(&self) -> Monotonic {
        Monotonic::from_ns(self.ends_at.load(Ordering::Acquire))
    }

    pub(crate) fn end_at(&self, at: Monotonic) {
        self.ends_at.store(at.ns(), Ordering::Release);
    }

    /// Validity left on this process's clock, zero once it is over. A check that sees the deadline pass ends the lease
    /// for good, so that no later renewal turns an answer of "lost" back.
    pub(crate) fn remaining(&self) -> Duration {
        if self.is_inherited() {
            return Duration::ZERO;
        }
        let mut deadline = self.deadline.load(Ordering::Acquire);
        loop {
            if deadline == LOST || deadline == PENDING {
                return Duration::ZERO;
            }
            let (now, until) = (clock::monotonic().ns(), deadline.min(self.ends_at.load(Ordering::Acquire)));
            if now < until {
                return Duration::from_nanos(until - now);
            }
            match self.deadline.compare_exchange(deadline, LOST, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return Duration::ZERO,
                Err(moved) => deadline = moved,
            }
        }
    }

    /// Ends the lease here, whatever the store says later.
    pub(crate) fn end_locally(&self, aftermath: &mut Aftermath) {
        self.deadline.store(LOST, Ordering::Release);
        let mut state = self.state();
        if matches!(state.phase, Phase::Held { .. }) {
            state.phase = Phase::Releasing;
            state.discard_callbacks(aftermath);
        }
    }

    /// As [`Slot::end_locally`], for a holder who has to be told.
    pub(crate) fn end_by_closing(&self, aftermath: &mut Aftermath) {
        self.end_unasked(Phase::Closed, || self.closed(), aftermath);
    }

    /// It ends because its record is gone, and not because its time is over.
    pub(crate) fn mark_gone(&self) {
        self.is_gone.store(true, Ordering::Relaxed);
    }

    /// As [`Slot::end_by_closing`], because the time is over for which it may be held.
    pub(crate) fn end_by_clock(&self, aftermath: &mut Aftermath) {
        let is_gone = self.is_gone.load(Ordering::Relaxed);
        let reason = if is_gone { LostReason::RecordGone } else { LostReason::MaxHold };
        let error = || Error::lost(self.resource.as_str(), &reason, None);
        self.end_unasked(Phase::Lost(reason.clone()), error, aftermath);
    }

    fn end_unasked(&self, phase: Phase, error: impl Fn() -> Error, aftermath: &mut Aftermath) {
        self.deadline.store(LOST, Ordering::Release);
        let mut state = self.state();
        if matches!(state.phase, Phase::Held { .. }) {
            state.phase = phase;
            state.tell_loss(error, aftermath);
        }
    }

    /// An event of the core. Answers `false` when it came too late: the deadline that it moves was read as passed.
    pub(crate) fn apply(&self, event: Event, aftermath: &mut Aftermath) -> bool {
        let mut state = self.state();
        match event {
            Event::Acquired { token, deadline, .. } => {
                self.since.store(clock::monotonic().ns(), Ordering::Relaxed);
                self.token.store(token.get(), Ordering::Relaxed);
                self.deadline.store(deadline.ns().max(LOST + 1), Ordering::Release);
                state.phase = Phase::Held { token: token.get() };
            }
            Event::Renewed { deadline, .. } => {
                state.in_danger = false;
                state.trouble = None;
                return self.move_deadline(deadline) || !matches!(state.phase, Phase::Held { .. });
            }
            Event::Shortened { deadline, .. } => {
                return self.move_deadline(deadline) || !matches!(state.phase, Phase::Held { .. });
            }
            Event::Expiring { .. } => {
                state.in_danger = true;
                aftermath.callbacks.append(&mut state.on_expiring);
            }
            Event::Lost { reason, .. } => {
                self.deadline.store(LOST, Ordering::Release);
                let trouble = state.trouble.clone();
                state.phase = Phase::Lost(reason.clone());
                state.tell_loss(|| Error::lost(self.resource.as_str(), &reason, trouble.as_ref()), aftermath);
            }
            Event::Failed { failure, .. } => {
                self.deadline.store(LOST, Ordering::Release);
                state.phase = Phase::Failed(failure);
            }
            Event::Released { .. } => {
                self.deadline.store(LOST, Ordering::Release);
                if !matches!(state.phase, Phase::Closed | Phase::Lost(_)) {
                    state.phase = Phase::Released;
                }
                state.discard_callbacks(aftermath);
            }
            Event::RenewDelayed { fault, .. } => {
                state.trouble = Some(fault);
                return true;
            }
            Event::Contended { .. } => return true,
        }
        state.wake_all(aftermath);
        true
    }

    pub(crate) fn release_takes_long(&self, aftermath: &mut Aftermath) {
        let mut state = self.state();
        if matches!(state.phase, Phase::Releasing) {
            state.phase = Phase::ReleasingStill;
            state.wake_all(aftermath);
        }
    }

    /// How long ago the acquisition began, or for a lease, was granted.
    pub(crate) fn age(&self, now: Monotonic) -> Duration {
        now.since(Monotonic::from_ns(self.since.load(Ordering::Relaxed)))
    }

    /// Why the lease is over without its holder having released it.
    pub(crate) fn loss(&self) -> Option<Error> {
        if self.is_inherited() {
            let message = "the lease belongs to the parent process, and a forked child does not have it";
            return Some(Error::new(ErrorKind::Lost, message).on(self.resource.as_str()));
        }
        let state = self.state();
        self.loss_in(&state)
    }

    /// Why the last renewal failed, if it did.
    pub(crate) fn trouble(&self) -> Option<Fault> {
        if self.is_inherited() { None } else { self.state().trouble.clone() }
    }

    /// Keeps a callback for the loss, or gives it back to be called when that has happened.
    pub(crate) fn on_lost(&self, callback: OnLost) -> Option<Callback> {
        if self.is_inherited() {
            return None;
        }
        let mut state = self.state();
        match self.loss_in(&state) {
            Some(error) => Some(Box::new(move || callback(error))),
            None if matches!(state.phase, Phase::Pending | Phase::Held { .. }) => {
                state.on_lost.push(callback);
                None
            }
            None => None,
        }
    }

    /// Keeps a callback for the danger zone, or gives it back to be called when the lease is in it, or lost.
    pub(crate) fn on_expiring(&self, callback: Callback) -> Option<Callback> {
        if self.is_inherited() {
            return None;
        }
        let mut state = self.state();
        match &state.phase {
            Phase::Pending | Phase::Held { .. } if !state.in_danger => {
                state.on_expiring.push(callback);
                None
            }
            Phase::Pending | Phase::Held { .. } | Phase::Lost(_) | Phase::Closed => Some(callback),
            Phase::Releasing | Phase::ReleasingStill | Phase::Released | Phase::Failed(_) => None,
        }
    }

    /// In a forked child nothing of a slot may be touched but what says so.
    pub(crate) fn is_inherited(&self) -> bool {
        self.generation != fork::generation()
    }

    fn loss_in(&self, state: &State) -> Option<Error> {
        match &state.phase {
            Phase::Lost(reason) => Some(Error::lost(self.resource.as_str(), reason, state.trouble.as_ref())),
            Phase::Closed => Some(self.closed()),
            Phase::Pending
            | Phase::Held { .. }
            | Phase::Releasing
            | Phase::ReleasingStill
            | Phase::Released
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
            if deadline == LOST || clock::monotonic().ns() >= deadline {
                self.deadline.store(LOST, Ordering::Release);
                return false;
            }
            match self.deadline.compare_exchange(deadline, to.ns(), Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return true,
                Err(moved) => deadline = moved,
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }
}

impl State {
    fn wake_all(&mut self, aftermath: &mut Aftermath) {
        aftermath.wakers.extend(self.wakers.drain().map(|(_, waker)| waker));
    }

    fn discard_callbacks(&mut self, aftermath: &mut Aftermath) {
        aftermath.unused_on_expiring.append(&mut self.on_expiring);
        aftermath.unused_on_lost.append(&mut self.on_lost);
    }

    fn tell_loss(&mut self, error: impl Fn() -> Error, aftermath: &mut Aftermath) {
        for callback in std::mem::take(&mut self.on_lost) {
            let error = error();
            aftermath.callbacks.push(Box::new(move || callback(error)));
        }
        self.discard_callbacks(aftermath);
        self.wake_all(aftermath);
    }
}

/// Somebody who waits for a slot to change. Dropping it takes its waker away.
pub(crate) struct Wait {
    slot: Arc<Slot>,
    id: Option<u64>,
}

impl Wait {
    pub(crate) fn on(slot: &Arc<Slot>) -> Self {
        Self { slot: Arc::clone(slot), id: None }
    }

    /// Ready once `look` finds what it waits for; it is given the phase and whether the lease is in danger.
    pub(crate) fn poll<R>(&mut self, context: &Context<'_>, look: impl FnOnce(&Phase, bool) -> Option<R>) -> Poll<R> {
        let waker = context.waker().clone();
        // Looked at and registered under one lock, so no change falls between. What is replaced is dropped after it.
        let mut state = self.slot.state();
        if let Some(found) = look(&state.phase, state.in_danger) {
            return Poll::Ready(found);
        }
        let id = *self.id.get_or_insert_with(|| {
            state.next_waker += 1;
            state.next_waker
        });
        let replaced = state.wakers.insert(id, waker);
        drop(state);
        drop(replaced);
        Poll::Pending
    }
}

impl Drop for Wait {
    fn drop(&mut self) {
        if let Some(id) = self.id.filter(|_| !self.slot.is_inherited()) {
            let removed = self.slot.state().wakers.remove(&id);
            drop(removed);
        }
    }
}
