//! A ledger beside a client: the state of each lock as its host has seen it, and the invariants.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use leasehold_core::config::{Drift, Limits, LockOptions, Ttl};
use leasehold_core::op::{Applied, Op, Outcome, Refusal, Seen};
use leasehold_core::time::deadline_of;
use leasehold_core::{Error, Event, LockId, Monotonic, NodeId, Nonce, Stats, Token, Transmit};

/// More outputs than this at one instant count as an endless loop.
pub(crate) const MOST_OUTPUTS: usize = 5_000;

/// Far more requests than a few locks can have open at once.
const MOST_REQUESTS: usize = 1_000;

/// One acquisition.
#[derive(Debug)]
struct Lock {
    ttl: Ttl,
    asked_at: Monotonic,
    state: State,
    /// The time when its last acquire or renewal was handed out.
    sent: Option<Monotonic>,
    nonces: BTreeSet<Nonce>,
    /// Nodes that have said something that can be taken for a grant.
    voters: BTreeSet<NodeId>,
    counters: BTreeSet<Token>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Pending,
    Held {
        deadline: Monotonic,
    },
    /// It was released, and is no longer believed in.
    Leaving {
        was_held: bool,
    },
}

/// The ledger of one client.
#[derive(Debug)]
pub(crate) struct Ledger {
    limits: Limits,
    drift: Drift,
    nodes: usize,
    /// True if requests and answers are seen here, and not only their effects.
    sees_votes: bool,
    /// The clock as the client takes it: it never runs backwards.
    now: Monotonic,
    locks: BTreeMap<LockId, Lock>,
    /// The operations of each open request.
    open: Vec<Transmit>,
}

impl Ledger {
    pub(crate) fn new(limits: Limits, drift: Drift, nodes: usize, sees_votes: bool, now: Monotonic) -> Self {
        Self { limits, drift, nodes, sees_votes, now, locks: BTreeMap::new(), open: Vec::new() }
    }

    pub(crate) fn now(&self) -> Monotonic {
        self.now
    }

    pub(crate) fn tick(&mut self, now: Monotonic) {
        self.now = self.now.max(now);
        // Later answers come too late.
        self.open.retain(|transmit| transmit.deadline > self.now);
    }

    pub(crate) fn open(&self) -> &[Transmit] {
        &self.open
    }

    pub(crate) fn asked(&mut self, lock: LockId, options: &LockOptions, answer: Result<(), Error>) {
        let expected = self.locks.contains_key(&lock);
        match answer {
            Ok(()) => {
                assert!(!expected, "{lock} was taken");
                let (ttl, asked_at) = (options.ttl(), self.now);
                let new = Lock {
                    ttl,
                    asked_at,
                    state: State::Pending,
                    sent: None,
                    nonces: BTreeSet::new(),
                    voters: BTreeSet::new(),
                    counters: BTreeSet::new(),
                };
                self.locks.insert(lock, new);
            }
            Err(Error::DuplicateLock) => assert!(expected),
            Err(Error::TooManyLocks { limit }) => assert!(self.locks.len() >= limit && limit == self.limits.locks),
            Err(Error::UnknownLock) => panic!("an acquisition has no lock before it"),
            Err(Error::AboveMaxTtl { record_ttl, max_ttl }) => assert!(record_ttl > max_ttl),
            Err(Error::AboveMaxKeep { keep, max_keep }) => assert!(keep > max_keep),
            Err(Error::NotARun) => panic!("nothing was finished"),
            Err(Error::Closed) => {}
        }
    }

    /// A release of one lock, or by the end of the client of all.
    pub(crate) fn released(&mut self, lock: LockId, answer: Result<(), Error>) {
        assert_eq!(answer.is_ok(), self.locks.contains_key(&lock), "{answer:?}");
        if let Some(known) = self.locks.get_mut(&lock) {
            known.leave();
        }
    }

    pub(crate) fn closed(&mut self) {
        self.locks.values_mut().for_each(Lock::leave);
    }

    pub(crate) fn sent(&mut self, transmit: Transmit) {
        assert!(transmit.deadline > self.now && usize::from(transmit.node.get()) < self.nodes, "{transmit:?}");
        assert!(!transmit.ops.is_empty());
        let renewals = transmit.ops.iter().all(|op| matches!(op.op, Op::Renew(_)));
        assert!(renewals || transmit.ops.len() == 1, "only renewals travel together");
        assert!(!self.open.iter().any(|other| other.id == transmit.id), "an id twice");
        for op in &transmit.ops {
            let Some(lock) = self.locks.get_mut(&op.lock) else { continue };
            match &op.op {
                Op::Acquire(acquire) => {
                    lock.nonces.insert(acquire.nonce);
                    lock.sent = Some(self.now);
                }
                Op::Renew(_) => lock.sent = Some(self.now),
                Op::Release(_) | Op::Finish(_) | Op::Revoke(_) | Op::Tell(_) | Op::Raise(_) | Op::Read => {}
            }
        }
        self.open.push(transmit);
    }

    /// Notes the outcomes of an open request, before the client gets them.
    pub(crate) fn answered(&mut self, at: usize, outcomes: &[Outcome]) {
        let transmit = self.open.swap_remove(at);
        for (op, outcome) in transmit.ops.iter().zip(outcomes) {
            let Some(lock) = self.locks.get_mut(&op.lock) else { continue };
            let votes = |seen: &Seen| seen.held().is_some_and(|held| lock.nonces.iter().any(|nonce| held.is_of(nonce)));
            let counter = match outcome {
                Outcome::Applied(Applied::Acquired { counter } | Applied::AcquiredInDoubt { counter, .. }) => *counter,
                Outcome::Applied(Applied::Raised { counter }) => *counter,
                Outcome::Applied(Applied::Read(seen)) | Outcome::NotApplied(Refusal::Conflict(seen)) if votes(seen) => {
                    seen.held().and_then(|held| held.counter).unwrap_or(Token::ZERO)
                }
                Outcome::Applied(_) | Outcome::NotApplied(_) | Outcome::Unknown(_) => continue,
            };
            lock.voters.insert(transmit.node);
            lock.counters.insert(counter);
        }
    }

    pub(crate) fn event(&mut self, event: &Event) {
        let (id, now) = (event.lock(), self.now);
        let lock = self.locks.get_mut(&id).unwrap_or_else(|| panic!("{event:?} of a lock that there is not"));
        match event {
            Event::Acquired { token, deadline, .. } => {
                assert_eq!(lock.state, State::Pending, "{event:?}");
                assert!(*token > Token::ZERO, "{event:?}");
                if self.sees_votes {
                    assert!(lock.sent.is_some(), "a grant without a request: {lock:?}");
                    assert!(*deadline > now, "{event:?}");
                    assert!(lock.voters.len() > self.nodes / 2, "a grant of a minority: {lock:?}");
                    assert!(lock.counters.contains(token) || self.nodes > 1, "a token that nobody gave: {lock:?}");
                }
                lock.hold(*deadline, self.drift, now);
            }
            Event::Renewed { deadline, left, .. } => {
                let State::Held { deadline: before } = lock.state else { panic!("{event:?} in {lock:?}") };
                assert!(before > now || !self.sees_votes, "{event:?} after the end: {lock:?}");
                assert!(*left <= lock.ttl.get() && *deadline >= before, "{event:?} {lock:?}");
                lock.hold(*deadline, self.drift, now);
            }
            Event::Shortened { deadline, .. } => {
                let State::Held { deadline: before } = lock.state else { panic!("{event:?} in {lock:?}") };
                assert!(*deadline <= before, "{event:?}");
                lock.state = State::Held { deadline: *deadline };
            }
            Event::RenewDelayed { deadline, .. } | Event::Expiring { deadline, .. } => {
                assert_eq!(lock.state, State::Held { deadline: *deadline }, "{event:?}");
            }
            Event::Contended { .. } => assert_eq!(lock.state, State::Pending, "{event:?}"),
            Event::Failed { .. } => {
                let fails = matches!(lock.state, State::Pending | State::Leaving { was_held: false });
                assert!(fails, "{event:?} in {lock:?}");
                self.locks.remove(&id);
            }
            Event::Lost { .. } => {
                // A release may find that the lock was not ours any more.
                let was_held = matches!(lock.state, State::Held { .. } | State::Leaving { was_held: true });
                assert!(was_held, "{event:?} in {lock:?}");
                self.locks.remove(&id);
            }
            Event::Released { .. } | Event::Finished { .. } => {
                assert_eq!(lock.state, State::Leaving { was_held: true }, "{event:?}");
                self.locks.remove(&id);
            }
        }
    }

    /// All outputs were taken.
    pub(crate) fn drained(&self, stats: &Stats, remaining: impl Fn(LockId) -> Duration) {
        assert_eq!(stats.locks, self.locks.len(), "{:?}", self.locks);
        assert!(stats.locks <= self.limits.locks && stats.orphans <= self.limits.orphans, "{stats:?}");
        assert!(stats.observations <= self.limits.observations && stats.undrained == 0, "{stats:?}");
        assert!(!self.sees_votes || stats.in_flight == self.open.len(), "{stats:?} {:?}", self.open);
        assert!(stats.in_flight <= MOST_REQUESTS, "{stats:?}");
        for (id, lock) in &self.locks {
            let left = match lock.state {
                State::Held { deadline } => deadline.since(self.now),
                State::Pending | State::Leaving { .. } => Duration::ZERO,
            };
            assert!(
                left > Duration::ZERO || !matches!(lock.state, State::Held { .. }),
                "held beyond its end: {lock:?}"
            );
            assert_eq!(remaining(*id), left, "{lock:?}");
            assert!(left <= lock.ttl.get());
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.locks.is_empty()
    }
}

impl Lock {
    fn leave(&mut self) {
        self.state = match self.state {
            State::Pending => State::Leaving { was_held: false },
            State::Held { .. } => State::Leaving { was_held: true },
            leaving @ State::Leaving { .. } => leaving,
        };
    }

    /// Checks that no lease lasts for longer than a ttl from its last request.
    fn hold(&mut self, deadline: Monotonic, drift: Drift, now: Monotonic) {
        let sent = self.sent.unwrap_or(now);
        assert!(sent >= self.asked_at && deadline <= deadline_of(sent, self.ttl, drift), "{deadline:?} {self:?}");
        self.state = State::Held { deadline };
    }
}
