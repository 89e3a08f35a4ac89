//! The reference: the pure functions of the core, with the rows, queues and marker that they decide on, and what each step of a
//! script means there.

use std::collections::BTreeMap;
use std::time::Duration;

use leasehold_core::member::{LossId, Marker, Membership, QuorumId, RETENTION, RunId};
use leasehold_core::node::{NodeMemory, serve};
use leasehold_core::op::{Acquire, Finish, Op, Outcome, Raise, Release, Renew, Revoke, Seen, Session};
use leasehold_core::queue::{self, ClientId, Ticket, Waiter, serve_in_queue};
use leasehold_core::session::tell;
use leasehold_core::store::{BootId, LeaseRecord, Record, StoreNow, seen};
use leasehold_core::{About, LockId, Monotonic, Nonce, Owner, Payload, RunResult, Seq, SessionLabel, Token, Version};

use crate::script::{Member, NAMES, Near, What, Who};

/// The quorum of all but strangers, and its longest record.
pub const OURS: (QuorumId, u64) = (QuorumId([1; 16]), 48 * 3_600_000);
/// Stands for the holder of a lock of another library.
pub const FOREIGN: Nonce = Nonce::from_bytes([0xEE; 16]);

/// One resource, and all that is kept of it.
#[derive(Clone, Debug, Default)]
pub struct Row {
    /// The record.
    pub record: Option<Record>,
    /// The loss since which its counter was raised.
    pub trusted: Option<LossId>,
    /// The queue of waiters.
    pub queue: Vec<Waiter>,
    /// The version of a foreign record, as the store shows it.
    pub foreign: Option<Version>,
    /// How far its times may be off: the length of the step that wrote them.
    pub slack: Duration,
    /// The same of its queue.
    pub queue_slack: Duration,
}

/// A store that cannot be wrong.
#[derive(Clone, Debug, Default)]
pub struct Reference {
    /// Nothing runs out by itself.
    pub is_observed: bool,
    /// Waiters stand in the queue.
    pub keeps_queue: bool,
    /// The resources.
    pub rows: BTreeMap<u8, Row>,
    /// The membership.
    pub marker: Option<Marker>,
    /// The server's run.
    pub run: Option<RunId>,
    /// How many boots there were.
    pub boots: u64,
}

/// The nonce of an attempt. A session's own record has it as its session does.
pub fn nonce(name: u8, attempt: u8) -> Nonce {
    let mut bytes = [0x11 * (attempt + 1); 16];
    bytes[0] = 2 * (1 + name) + u8::from(usize::from(name) + 1 == NAMES.len());
    Nonce::from_bytes(bytes)
}

/// The record of the run of an attempt; every second one leaves none.
fn about_of(nonce: &Nonce) -> Option<About> {
    let result = RunResult::bytes(nonce.as_bytes()).ok();
    (nonce.as_bytes()[1] / 0x11).is_multiple_of(2).then(|| About::new(nonce, 1, 0, result.as_ref()))
}

impl Reference {
    /// The clocks. A store in which nothing runs out has another boot at each step, so that no record is of this one.
    pub fn now(&mut self, uptime: Monotonic, unix_ms: u64) -> StoreNow {
        if self.is_observed {
            self.boots += 1;
        }
        let mut boot = [0; 16];
        boot[..8].copy_from_slice(&self.boots.to_le_bytes());
        StoreNow { boot: BootId(boot), uptime, unix_ms }
    }

    /// One operation.
    pub fn ask(&mut self, name: u8, client: u8, lock: LockId, op: &Op, now: &StoreNow, slack: Duration) -> Outcome {
        let row = self.rows.entry(name).or_default();
        let memory = NodeMemory { marker: self.marker.as_ref(), trusted: row.trusted.as_ref(), run: self.run.as_ref() };
        let served = if self.keeps_queue {
            let ticket = Ticket { client: ClientId([client; 16]), lock };
            let decided = serve_in_queue(row.record.as_ref(), memory, &row.queue, ticket, op, now);
            if let Some(queue) = decided.queue {
                row.queue = queue;
                row.queue_slack = slack;
            }
            decided.served
        } else {
            serve(row.record.as_ref(), memory, op, now)
        };
        if let Some(record) = served.record {
            row.record = Some(record);
            row.slack = slack;
            row.foreign = None;
        }
        if let Some(loss) = served.trusted {
            row.trusted = Some(loss);
        }
        if let Some(marker) = served.marker {
            self.rows.values_mut().for_each(|row| row.trusted = row.trusted.filter(|loss| *loss == marker.stamp));
            self.marker = Some(marker);
        }
        served.outcome
    }

    /// Gives up a place in the queue.
    pub fn leave(&mut self, name: u8, client: u8, lock: LockId, now: &StoreNow) {
        let row = self.rows.entry(name).or_default();
        if let (Some(queue), _) = queue::leave(&row.queue, Ticket { client: ClientId([client; 16]), lock }, now) {
            row.queue = queue;
        }
    }

    /// The record as a reader sees it.
    pub fn seen(&self, name: u8, now: &StoreNow) -> Seen {
        seen(self.record(name), now)
    }

    /// The record.
    pub fn record(&self, name: u8) -> Option<&Record> {
        self.rows.get(&name)?.record.as_ref()
    }

    /// The lease, running or not.
    pub fn lease(&self, name: u8) -> Option<&LeaseRecord> {
        self.record(name)?.lease.as_ref()
    }

    /// Returns true if somebody has the lock.
    pub fn is_held(&self, name: u8, now: &StoreNow) -> bool {
        self.seen(name, now).held().is_some()
    }

    fn nonce(&self, name: u8, who: Who) -> Nonce {
        match who {
            Who::Attempt(attempt) => nonce(name, attempt),
            // Nobody speaks for another library.
            Who::Holder => {
                let lease = self.lease(name).filter(|lease| lease.nonce != FOREIGN);
                lease.map_or_else(|| nonce(name, 0), |lease| lease.nonce)
            }
        }
    }

    fn counter(&self, name: u8) -> Token {
        self.record(name).map_or(Token::ZERO, |record| record.counter)
    }

    fn token(&self, name: u8, near: Near) -> Token {
        let current = self.counter(name).get();
        match near {
            Near::Nothing => Token::ZERO,
            Near::Current => self.counter(name),
            Near::Above => Token::new((current + 1_000).min(Token::MAX.get())).unwrap_or(Token::ZERO),
            Near::Top => Token::MAX,
        }
    }

    /// The request of a step; `None` where it is none, or there is nothing to ask. What the store is sent may name a foreign
    /// version by the store's own name: see [`Reference::with_foreign`].
    pub fn op(&self, name: u8, what: &What) -> Option<(LockId, Op)> {
        let op = match *what {
            What::Acquire { who, seq, ttl, floor, expect, unless_done, in_queue, member } => {
                let nonce = self.nonce(name, who);
                // All sends of an attempt carry the same.
                let attempt = nonce.as_bytes()[1] / 0x11;
                let version = self.lease(name).map(|lease| Version::of(&lease.nonce, lease.seq));
                Op::Acquire(Box::new(Acquire {
                    floor: self.token(name, floor),
                    expect: match expect {
                        Near::Nothing => None,
                        Near::Current => version,
                        Near::Above | Near::Top => Version::new(b"never was"),
                    },
                    owner: owner(&nonce),
                    data: attempt.is_multiple_of(2).then(|| Payload::new(nonce.as_bytes())).and_then(Result::ok),
                    session: (attempt > 2).then(|| session_of(&nonce)),
                    member: member.map(|member| self.member(member)),
                    unless_done,
                    in_queue,
                    ..Acquire::new(nonce, Seq::new(seq), ttl)
                }))
            }
            What::Renew { who, seq, ttl, quorum } => {
                Op::Renew(Renew { nonce: self.nonce(name, who), seq: Seq::new(seq), record_ttl: ttl, quorum })
            }
            // Only sessions are told.
            What::PrepareTell { .. } | What::Tell { .. } if usize::from(name) + 1 < NAMES.len() => return None,
            What::PrepareTell { who } | What::Tell { who } => tell(&session_named(self.nonce(name, who))),
            What::Release { who, quorum } => Op::Release(Release { nonce: self.nonce(name, who), quorum }),
            What::Finish { who, keep, quorum } => {
                let nonce = self.nonce(name, who);
                // A late or repeated one is of an earlier grant.
                let counter = self.counter(name);
                Op::Finish(Box::new(Finish {
                    nonce,
                    token: counter,
                    counter,
                    keep,
                    owner: owner(&nonce),
                    about: about_of(&nonce),
                    quorum,
                }))
            }
            What::Revoke { who } => Op::Revoke(Revoke { nonce: self.nonce(name, who) }),
            What::Raise { who, token, of_the_loss } => {
                let loss = self.marker.as_ref().filter(|_| of_the_loss).map(|marker| marker.stamp);
                Op::Raise(Raise { nonce: self.nonce(name, who), token: self.token(name, token), loss })
            }
            What::Read => Op::Read,
            What::ReadItem | What::WriteItem { .. } => return None,
            What::Again { .. } | What::Leave { .. } | What::Edit(_) | What::Mark(_) => return None,
        };
        let attempt = op.nonce().map_or(0, |nonce| nonce.as_bytes()[1]);
        Some((LockId::new(u64::from(attempt)), op))
    }

    fn member(&self, member: Member) -> Membership {
        Membership {
            quorum: if member.is_stranger { QuorumId([9; 16]) } else { OURS.0 },
            max_ttl_ms: OURS.1,
            durability: member.durability,
            fresh: member.fresh,
            waited_out: self.marker.as_ref().filter(|_| member.waited_out).map(|marker| marker.stamp),
            bootstrap: member.bootstrap,
            retention: RETENTION,
        }
    }

    /// The request as the store is to get it: with its own version of a foreign record.
    pub fn with_foreign(&self, name: u8, op: &Op) -> Op {
        let theirs = self.rows.get(&name).and_then(|row| row.foreign.clone());
        match (op, theirs) {
            (Op::Acquire(acquire), Some(theirs))
                if acquire.expect.as_ref().is_some_and(|expect| expect.as_bytes().starts_with(FOREIGN.as_bytes())) =>
            {
                Op::Acquire(Box::new(Acquire { expect: Some(theirs), ..(**acquire).clone() }))
            }
            _ => op.clone(),
        }
    }
}

fn owner(nonce: &Nonce) -> Owner {
    Owner::new(&format!("owner-{:x}", nonce.as_bytes()[1])).unwrap_or_default()
}

/// A session whose record stands by a row.
fn session_of(nonce: &Nonce) -> Session {
    let mut bytes = *nonce.as_bytes();
    bytes[0] |= 1;
    session_named(Nonce::from_bytes(bytes))
}

fn session_named(nonce: Nonce) -> Session {
    Session { nonce, label: SessionLabel::new("worker/1").expect("a good label") }
}
