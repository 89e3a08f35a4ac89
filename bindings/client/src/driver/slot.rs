//! One acquisition as its caller sees it: where it stands, and until when its lease can be believed in.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::thread::ThreadId;
use std::time::Duration;

use leasehold_core::{Event, Failure, LockId, LockOptions, LostReason, Monotonic, Owner, Resource};

use super::Callback;
use crate::clock;
use crate::error::Error;
use crate::fork;

/// Shared by a lease and the driver. The deadline is one atomic, so that reading it never waits for anybody.
pub(crate) struct Slot {
    lock: LockId,
    resource: Resource,
    owner: Owner,
    generation: u64,
    taken_by: ThreadId,
    /// When the acquisition began; the grant's instant once it is held.
    since: AtomicU64,
    /// Nanoseconds of the monotonic clock; [`LOST`] when nothing is held, and then for good.
    deadline: AtomicU64,
    state: Mutex<State>,
}

const LOST: u64 = 0;
/// Not granted yet. No clock shows this, so it cannot be read as a deadline that passed.
const PENDING: u64 = u64::MAX;

struct State {
    phase: Phase,
    in_danger: bool,
    wakers: Vec<Waker>,
    on_expiring: Vec<Callback>,
    on_lost: Vec<Box<dyn FnOnce(Error) + Send>>,
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
    /// Given back; unconfirmed means that the record has run out by itself.
    Released { confirmed: bool },
    /// Over without having been held.
    Failed(Failure),
    /// Over without having been released.
    Lost(LostReason),
}

impl Phase {
    /// Why the lease is over, if it was lost.
    pub(crate) fn loss(&self) -> Option<&LostReason> {
        match self {
            Self::Lost(reason) => Some(reason),
            Self::Pending
            | Self::Held { .. }
            | Self::Releasing
            | Self::ReleasingStill
            | Self::Released { .. }
            | Self::Failed(_) => None,
        }
    }
}

impl Slot {
    pub(super) fn new(
        lock: LockId,
        resource: Resource,
        options: &LockOptions,
        generation: u64,
        now: Monotonic,
    ) -> Self {
        let state = State {
            phase: Phase::Pending,
            in_danger: false,
            wakers: Vec::new(),
            on_expiring: Vec::new(),
            on_lost: Vec::new(),
        };
        Self {
            lock,
            resource,
            owner: options.owner().clone(),
            generation,
            taken_by: std::thread::current().id(),
            since: AtomicU64::new(now.ns()),
            deadline: AtomicU64::new(PENDING),
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

    pub(crate) fn was_taken_here(&self) -> bool {
        self.taken_by == std::thread::current().id()
    }

    pub(crate) fn is_held(&self) -> bool {
        let deadline = self.deadline.load(Ordering::Acquire);
        deadline != PENDING && deadline != LOST
    }

    pub(crate) fn phase(&self) -> Phase {
        self.state().phase.clone()
    }

    /// Validity left on this process's clock, zero once it is over. A check that sees the deadline pass ends the lease
    /// for good, so that no later renewal turns an answer of "lost" back.
    pub(crate) fn remaining(&self) -> Duration {
        if self.generation != fork::generation() {
            return Duration::ZERO;
        }
        let mut deadline = self.deadline.load(Ordering::Acquire);
        loop {
            if deadline == LOST || deadline == PENDING {
                return Duration::ZERO;
            }
            let now = clock::monotonic().ns();
            if now < deadline {
                return Duration::from_nanos(deadline - now);
            }
            match self.deadline.compare_exchange(deadline, LOST, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return Duration::ZERO,
                Err(moved) => deadline = moved,
            }
        }
    }

    /// Ends the lease here, whatever the store says later.
    pub(super) fn end_locally(&self) {
        self.deadline.store(LOST, Ordering::Release);
        let mut state = self.state();
        if matches!(state.phase, Phase::Held { .. }) {
            state.phase = Phase::Releasing;
            state.on_expiring.clear();
            state.on_lost.clear();
        }
    }

    /// An event of the core. Answers `false` when it came too late: the deadline that it moves was read as passed.
    pub(super) fn apply(&self, event: Event, wakers: &mut Vec<Waker>, callbacks: &mut Vec<Callback>) -> bool {
        let mut state = self.state();
        match event {
            Event::Acquired { token, deadline, .. } => {
                self.since.store(clock::monotonic().ns(), Ordering::Relaxed);
                self.deadline.store(deadline.ns().max(LOST + 1), Ordering::Release);
                state.phase = Phase::Held { token: token.get() };
            }
            Event::Renewed { deadline, .. } => {
                state.in_danger = false;
                return self.move_deadline(deadline) || matches!(state.phase, Phase::Releasing);
            }
            Event::Shortened { deadline, .. } => {
                return self.move_deadline(deadline) || matches!(state.phase, Phase::Releasing);
            }
            Event::Expiring { .. } => {
                state.in_danger = true;
                callbacks.append(&mut state.on_expiring);
            }
            Event::Lost { reason, .. } => {
                self.deadline.store(LOST, Ordering::Release);
                for callback in std::mem::take(&mut state.on_lost) {
                    let error = Error::lost(self.resource.as_str(), &reason);
                    callbacks.push(Box::new(move || callback(error)));
                }
                state.on_expiring.clear();
                state.phase = Phase::Lost(reason);
            }
            Event::Failed { failure, .. } => {
                self.deadline.store(LOST, Ordering::Release);
                state.phase = Phase::Failed(failure);
            }
            Event::Released { confirmed, .. } => {
                self.deadline.store(LOST, Ordering::Release);
                state.on_lost.clear();
                state.phase = Phase::Released { confirmed };
            }
            Event::Contended { .. } | Event::RenewDelayed { .. } => return true,
        }
        wakers.append(&mut state.wakers);
        true
    }

    pub(super) fn release_takes_long(&self, wakers: &mut Vec<Waker>) {
        let mut state = self.state();
        if matches!(state.phase, Phase::Releasing) {
            state.phase = Phase::ReleasingStill;
            wakers.append(&mut state.wakers);
        }
    }

    /// How long ago the acquisition began, or for a lease, was granted.
    pub(super) fn age(&self, now: Monotonic) -> Duration {
        now.since(Monotonic::from_ns(self.since.load(Ordering::Relaxed)))
    }

    /// Ready once `look` finds what it waits for.
    pub(crate) fn poll_phase<R>(&self, context: &Context<'_>, look: impl FnOnce(&Phase, bool) -> Option<R>) -> Poll<R> {
        // Looked at and registered under one lock, so no change falls between.
        let mut state = self.state();
        if let Some(found) = look(&state.phase, state.in_danger) {
            return Poll::Ready(found);
        }
        if !state.wakers.iter().any(|waker| waker.will_wake(context.waker())) {
            state.wakers.push(context.waker().clone());
        }
        Poll::Pending
    }

    /// Keeps a callback for the loss, or gives it back with the reason when that has happened.
    pub(crate) fn on_lost(&self, callback: Box<dyn FnOnce(Error) + Send>) -> Option<Callback> {
        let mut state = self.state();
        match &state.phase {
            Phase::Pending | Phase::Held { .. } => {
                state.on_lost.push(callback);
                None
            }
            Phase::Lost(reason) => {
                let error = Error::lost(self.resource.as_str(), reason);
                Some(Box::new(move || callback(error)))
            }
            Phase::Releasing | Phase::ReleasingStill | Phase::Released { .. } | Phase::Failed(_) => None,
        }
    }

    /// Keeps a callback for the danger zone, or gives it back when the lease is in it, or lost.
    pub(crate) fn on_expiring(&self, callback: Callback) -> Option<Callback> {
        let mut state = self.state();
        match &state.phase {
            Phase::Pending | Phase::Held { .. } if !state.in_danger => {
                state.on_expiring.push(callback);
                None
            }
            Phase::Pending | Phase::Held { .. } | Phase::Lost(_) => Some(callback),
            Phase::Releasing | Phase::ReleasingStill | Phase::Released { .. } | Phase::Failed(_) => None,
        }
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
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
