//! The loop that drives the core's client: it performs what that says, and decides nothing.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;
use core::mem;
use core::time::Duration;

use leasehold_core::op::Fault;
use leasehold_core::{
    self as core_, Event, Failure, LockId, LockOptions, LostReason, Monotonic, NodeId, Now, Resource, Token,
};
use leasehold_wire::client::{Credentials, HttpRequest, Output, SetupError, WireClient};

use crate::clock::Clock;
use crate::exchange::Exchange;
use crate::settings::Settings;
use crate::{host, problem, random, wit};

/// Timers stand still while the machine is suspended: no sleep is longer.
const LONGEST_SLEEP: Duration = Duration::from_secs(1);
/// How long the store's confirmation of a release is awaited.
const PATIENCE: Duration = Duration::from_secs(2);

/// The core's client, what it has under way, and what has become of each lock.
pub(crate) struct Machine {
    client: WireClient,
    clock: Clock,
    exchanges: Vec<Exchange>,
    slots: BTreeMap<LockId, Slot>,
    last_lock: u64,
}

/// One acquisition as its caller sees it.
struct Slot {
    name: String,
    phase: Phase,
    /// Why the last renewal failed.
    trouble: Option<Fault>,
}

enum Phase {
    Pending,
    Held(Token),
    Releasing,
    Failed(Failure),
    Lost(LostReason),
    Released {
        confirmed: bool,
    },
    /// With its client.
    Closed,
}

impl Machine {
    pub(crate) fn new(settings: Settings) -> Result<Self, SetupError> {
        let mut clock = Clock::new();
        let now = clock.now();
        let mut client = WireClient::new(settings.config, settings.stores, random(), now)?;
        for (node, credentials) in (0..).zip(settings.credentials) {
            if let Some(credentials) = credentials {
                client.set_credentials(NodeId::new(node), credentials, now)?;
            }
        }
        Ok(Self { client, clock, exchanges: Vec::new(), slots: BTreeMap::new(), last_lock: 0 })
    }

    pub(crate) fn set_credentials(&mut self, node: NodeId, credentials: Credentials) -> Result<(), SetupError> {
        self.client.set_credentials(node, credentials, self.clock.now())
    }

    /// Waits until the lock is granted, or will not be.
    pub(crate) fn acquire(&mut self, name: Resource, options: LockOptions) -> Result<(LockId, Token), wit::Error> {
        let text = String::from(name.as_str());
        // A caller that waited here for its own lock could not release it meanwhile.
        if let Some(token) = self.holds(&text) {
            return Err(problem::held_here(&text, token));
        }
        self.last_lock += 1;
        let lock = LockId::new(self.last_lock);
        let begun = self.client.acquire(lock, name, options, &random(), self.clock.now());
        begun.map_err(|error| problem::rejected(&text, error))?;
        self.slots.insert(lock, Slot { name: text.clone(), phase: Phase::Pending, trouble: None });
        self.run(Monotonic::FAR, |machine| !matches!(machine.phase(lock), Some(Phase::Pending)));
        if let Some(Phase::Held(token)) = self.phase(lock) {
            return Ok((lock, *token));
        }
        match self.slots.remove(&lock) {
            Some(Slot { phase: Phase::Failed(failure), .. }) => Err(problem::failed(&text, failure)),
            over => Err(over_again(&text, over.as_ref())),
        }
    }

    /// Renews what is due until `length` has passed, and answers when to do so again.
    pub(crate) fn tend(&mut self, length: Duration) -> Option<Duration> {
        let end = self.now().monotonic.plus(length);
        let mut due = self.run(end, |_| false);
        if let Some(last) = self.exchanges.iter().map(|exchange| exchange.deadline).max() {
            due = self.run(last, |machine| machine.exchanges.is_empty());
        }
        (due != Monotonic::FAR).then(|| due.since(self.now().monotonic))
    }

    /// Gives a lock back, and waits for the store's word.
    pub(crate) fn release(&mut self, lock: LockId) -> Result<(), wit::Error> {
        if self.left(lock).is_zero() {
            if let Some(Phase::Lost(LostReason::Revoked)) = self.phase(lock) {
                // The work has ended, so its record protects nothing any more.
                let now = self.now();
                let _ = self.client.release(lock, now);
                self.turn();
            }
            return Err(self.over(lock));
        }
        let now = self.now();
        self.enter(lock, Phase::Releasing);
        // What is not alive there has ended by itself, which is told below.
        let _ = self.client.release(lock, now);
        self.run(now.monotonic.plus(PATIENCE), |machine| !matches!(machine.phase(lock), Some(Phase::Releasing)));
        match self.slots.get(&lock) {
            Some(Slot { phase: Phase::Released { confirmed: true }, .. }) => Ok(()),
            // In the moment between the look and the release.
            Some(Slot { phase: Phase::Lost(_), .. }) => Err(self.over(lock)),
            slot => Err(problem::unconfirmed(slot.map_or("", |slot| &slot.name))),
        }
    }

    /// Gives everything back.
    pub(crate) fn close(&mut self) -> Result<(), wit::Error> {
        for lock in self.slots.keys().copied().collect::<Vec<_>>() {
            if !self.left(lock).is_zero() {
                self.enter(lock, Phase::Closed);
            }
        }
        let now = self.now();
        self.client.close(now);
        self.run(now.monotonic.plus(PATIENCE), |machine| machine.client.is_idle());
        if self.client.is_idle() { Ok(()) } else { Err(problem::unconfirmed_close()) }
    }

    /// Nobody has this lock any more. The store is told with the next call that speaks to it.
    pub(crate) fn forget(&mut self, lock: LockId) {
        if let Some(Slot { phase: Phase::Held(_) | Phase::Lost(LostReason::Revoked), .. }) = self.slots.remove(&lock) {
            let _ = self.client.release(lock, self.clock.now());
        }
    }

    /// Validity left, in whole milliseconds. A look that sees none ends the lease for good, so that no later renewal takes
    /// that answer back.
    pub(crate) fn left(&mut self, lock: LockId) -> Duration {
        if !matches!(self.phase(lock), Some(Phase::Held(_))) {
            return Duration::ZERO;
        }
        let now = self.now();
        let left = self.client.remaining(lock, now);
        if left >= Duration::from_millis(1) {
            return left;
        }
        let _ = self.client.declare_lost(lock, now);
        // It says why.
        self.turn();
        if let Some(Phase::Held(_)) = self.phase(lock) {
            self.enter(lock, Phase::Lost(LostReason::Expired));
        }
        Duration::ZERO
    }

    /// Returns an error unless the lease is valid for at least `min` longer.
    pub(crate) fn check(&mut self, lock: LockId, min: Duration) -> Result<(), wit::Error> {
        let left = self.left(lock);
        match self.slots.get(&lock) {
            _ if left.is_zero() => Err(self.over(lock)),
            Some(slot) if left < min => Err(problem::too_short(&slot.name, left, min, slot.trouble.as_ref())),
            Some(_) | None => Ok(()),
        }
    }

    /// The token of what is held under this name.
    fn holds(&mut self, name: &str) -> Option<Token> {
        let held = self.slots.iter().find_map(|(lock, slot)| {
            let Phase::Held(token) = slot.phase else { return None };
            (slot.name == name).then_some((*lock, token))
        });
        held.filter(|(lock, _)| !self.left(*lock).is_zero()).map(|(_, token)| token)
    }

    /// Why nothing is held any more.
    fn over(&self, lock: LockId) -> wit::Error {
        let slot = self.slots.get(&lock);
        over_again(slot.map_or("", |slot| &slot.name), slot)
    }

    fn now(&mut self) -> Now {
        self.clock.now()
    }

    fn phase(&self, lock: LockId) -> Option<&Phase> {
        self.slots.get(&lock).map(|slot| &slot.phase)
    }

    fn enter(&mut self, lock: LockId, phase: Phase) {
        if let Some(slot) = self.slots.get_mut(&lock) {
            slot.phase = phase;
        }
    }

    /// Performs and waits, until `is_done` or until `end`. Answers when something is due next.
    fn run(&mut self, end: Monotonic, is_done: impl Fn(&Self) -> bool) -> Monotonic {
        loop {
            let due = self.turn();
            let now = self.now().monotonic;
            if is_done(self) || now >= end {
                return due;
            }
            self.sleep(due.min(end), now);
        }
    }

    /// Waits for an answer, or an instant.
    fn sleep(&mut self, until: Monotonic, now: Monotonic) {
        let until = self.exchanges.iter().map(|exchange| exchange.deadline).fold(until, Monotonic::min);
        host::pause(&mut self.exchanges, until.since(now).min(LONGEST_SLEEP));
    }

    /// Performs all that there is to perform now, without waiting. Answers when something is due next.
    fn turn(&mut self) -> Monotonic {
        self.collect();
        loop {
            let now = self.now();
            match self.client.poll_output(now) {
                Output::HttpRequest(request) => self.send(request, now),
                Output::Core(core_::Output::Event(event)) => self.apply(event),
                Output::Core(core_::Output::WakeAt(at)) if at > now.monotonic => return at,
                Output::Core(core_::Output::WakeAt(_)) => self.client.handle_timeout(&random(), now),
                // Credentials come when the host calls, and the others are of stores that no client has here.
                Output::Core(
                    core_::Output::NeedCredentials { .. }
                    | core_::Output::Rejected { .. }
                    | core_::Output::Subscribe { .. }
                    | core_::Output::Unsubscribe { .. }
                    | core_::Output::Transmit(_),
                )
                | Output::RedisCommands(_)
                | Output::Statement(_) => {}
            }
        }
    }

    fn send(&mut self, request: HttpRequest, now: Now) {
        let (id, left) = (request.id, request.deadline.since(now.monotonic));
        let answered = match Exchange::begin(request, left) {
            Ok(mut exchange) => match exchange.advance() {
                Some(response) => response,
                None => return self.exchanges.push(exchange),
            },
            Err(response) => response,
        };
        let now = self.now();
        self.client.handle_response(id, answered, now);
    }

    /// Hands in what has been answered. Past its deadline, the client knows a request as one whose fate is unknown.
    fn collect(&mut self) {
        for mut exchange in mem::take(&mut self.exchanges) {
            let response = exchange.advance();
            let now = self.now();
            match response {
                Some(response) => self.client.handle_response(exchange.id, response, now),
                None if exchange.deadline <= now.monotonic => {}
                None => self.exchanges.push(exchange),
            }
        }
    }

    fn apply(&mut self, event: Event) {
        let Some(slot) = self.slots.get_mut(&event.lock()) else { return };
        match (event, &slot.phase) {
            (Event::Acquired { token, .. }, Phase::Pending) => slot.phase = Phase::Held(token),
            (Event::Failed { failure, .. }, Phase::Pending) => slot.phase = Phase::Failed(failure),
            (Event::Renewed { .. }, _) => slot.trouble = None,
            (Event::RenewDelayed { fault, .. }, _) => slot.trouble = Some(fault),
            (Event::Lost { reason, .. }, Phase::Held(_) | Phase::Releasing) => slot.phase = Phase::Lost(reason),
            (Event::Released { confirmed, .. }, Phase::Releasing) => slot.phase = Phase::Released { confirmed },
            _ => {}
        }
    }
}

fn over_again(name: &str, slot: Option<&Slot>) -> wit::Error {
    match slot {
        Some(Slot { phase: Phase::Lost(reason), trouble, .. }) => problem::lost(name, reason, trouble.as_ref()),
        Some(Slot { phase: Phase::Closed, .. }) => problem::closed(name),
        Some(_) | None => problem::not_owned(name),
    }
}
