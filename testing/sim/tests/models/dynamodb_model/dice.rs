//! The next step: random, with a preference for recent values.

use std::time::Duration;

use leasehold_core::member::{Bootstrap, Durability, LossId, Marker, Membership, Phase, QuorumId, RETENTION};
use leasehold_core::op::{Acquire, Finish, Op, Raise, Release, Renew, Revoke};
use leasehold_core::{About, Nonce, Owner, Payload, Resource, RunResult, Seq, Token, Version};
use leasehold_sim::rng::{Draws, Stream};
use leasehold_sim::store::{ForeignAct, Mark};

use super::wire::{Fate, SENT_UNIX_MS};

/// A raise of the last one's counter goes to the end of all tokens now and then.
const NAMES: [&str; 3] = ["invoice/42", "é \"7\\", "top"];

const ATTEMPTS: u64 = 4;
const OURS: (QuorumId, u64) = (QuorumId([1; 16]), 60_000);

#[derive(Clone, Debug)]
pub(crate) enum Step {
    /// One operation. After each of its requests but the last come further steps.
    Ask {
        resource: Resource,
        op: Op,
        fates: Vec<Fate>,
        between: Vec<Step>,
    },
    /// The lock client for Java.
    Foreign {
        resource: Resource,
        act: ForeignAct,
    },
    /// Marks the row as released, by hand.
    Evict(Resource),
    /// Deletes the row, by hand or by DynamoDB's time to live.
    Delete(Resource),
    /// Writes a length of time as dynamolock for Go does.
    Obscure(Resource),
    Wipe,
    Mark(Option<Marker>),
}

/// The state of a resource and of the table.
#[derive(Clone, Debug)]
pub(crate) struct Known {
    pub(crate) counter: Option<Token>,
    pub(crate) version: Option<Version>,
    /// Or whose lock was freed again.
    pub(crate) holder: Option<Nonce>,
    pub(crate) marker: Option<Marker>,
}

pub(crate) struct Dice {
    draws: Draws,
    seq: u32,
    stamps: u8,
    marks: u32,
    /// The last marks of the foreign clients.
    last: [Option<Mark>; NAMES.len()],
    /// Versions that were there before.
    old: Vec<Version>,
}

fn place(resource: &Resource) -> usize {
    names().iter().position(|name| name == resource).unwrap()
}

/// A loss that many clients claim to have waited out, whatever they ask for.
const WAITED_OUT: LossId = LossId([200; 16]);

fn waited_out() -> Marker {
    Marker { quorum: OURS.0, max_ttl_ms: OURS.1, stamp: WAITED_OUT, phase: Phase::Joining, run: None }
}

pub(crate) fn names() -> Vec<Resource> {
    NAMES.iter().map(|name| Resource::new(name).unwrap()).collect()
}

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        let draws = Stream::new(seed, "steps against DynamoDB").draws();
        Self { draws, seq: 10, stamps: 0, marks: 0, last: [None; NAMES.len()], old: Vec::new() }
    }

    pub(crate) fn step(&mut self, known: impl Fn(&Resource) -> Known) -> Step {
        let resource = self.resource();
        let known = known(&resource);
        self.old.extend(known.version.clone());
        match self.draws.below(100) {
            0..=22 => Step::Foreign { act: self.foreign(&resource, &known), resource },
            23 | 24 => Step::Evict(resource),
            25 | 26 => Step::Delete(resource),
            27 => Step::Obscure(resource),
            28 => Step::Wipe,
            29..=34 => Step::Mark(self.marker()),
            _ => {
                let op = self.op(&resource, &known);
                let mut fates: Vec<_> = (0..8).map(|_| Fate::Answered).collect();
                if self.draws.one_in(6) {
                    let at = usize::try_from(self.draws.below(4)).unwrap();
                    fates[at] = *self.draws.pick(&[Fate::AnswerLost, Fate::Throttled]);
                }
                let mut between = Vec::new();
                if self.draws.one_in(6) {
                    // Others write the marker all the time.
                    between = (0..7).map(|n| Step::Mark((n % 2 == 1).then(waited_out))).collect();
                } else if self.draws.one_in(3) {
                    between.push(self.intrusion(&resource, &known));
                    between.push(self.intrusion(&resource, &known));
                }
                Step::Ask { resource, op, fates, between }
            }
        }
    }

    /// A step of others while an operation is under way.
    fn intrusion(&mut self, resource: &Resource, known: &Known) -> Step {
        match self.draws.below(10) {
            0..=3 => Step::Mark(self.marker()),
            4 => Step::Delete(resource.clone()),
            5 => Step::Evict(resource.clone()),
            6 => Step::Foreign { resource: resource.clone(), act: self.foreign(resource, known) },
            _ => {
                let op = self.op(resource, known);
                Step::Ask { resource: resource.clone(), op, fates: vec![Fate::Answered; 8], between: Vec::new() }
            }
        }
    }

    fn resource(&mut self) -> Resource {
        // Most of it happens to one, so that attempts meet.
        let at = if self.draws.one_in(2) { 0 } else { self.draws.below(NAMES.len() as u64) };
        names().remove(usize::try_from(at).unwrap())
    }

    fn op(&mut self, resource: &Resource, known: &Known) -> Op {
        let nonce = self.nonce(known);
        match self.draws.below(20) {
            0..=8 => {
                let floor = if self.draws.one_in(8) { Token::ZERO } else { self.token(resource, known) };
                let member = if self.draws.one_in(2) { Some(self.membership(known)) } else { None };
                Op::Acquire(Box::new(Acquire {
                    nonce,
                    seq: self.seq(),
                    record_ttl: self.ttl(),
                    floor,
                    expect: self.expected(known),
                    owner: owner_of(&nonce),
                    data: data_of(&nonce),
                    session: None,
                    member,
                    unless_done: self.draws.one_in(3),
                    in_queue: false,
                }))
            }
            9..=12 => {
                let quorum = *self.draws.pick(&[None, Some(Durability::Declared), Some(Durability::NotDeclared)]);
                Op::Renew(Renew { nonce, seq: self.seq(), record_ttl: self.ttl(), quorum })
            }
            13 => {
                let quorum = *self.draws.pick(&[None, Some(Durability::Declared), Some(Durability::NotDeclared)]);
                let (token, keep) = (self.token(resource, known), self.ttl());
                let counter = known.counter.filter(|_| !self.draws.one_in(5)).unwrap_or(token);
                Op::Finish(Box::new(Finish {
                    nonce,
                    token,
                    counter,
                    keep,
                    owner: owner_of(&nonce),
                    about: about_of(&nonce),
                    quorum,
                }))
            }
            14 | 15 => Op::Release(Release { nonce, quorum: None }),
            16 | 17 => {
                let current = known.marker.as_ref().map(|marker| marker.stamp);
                let loss = *self.draws.pick(&[None, current, current, Some(WAITED_OUT)]);
                Op::Raise(Raise { nonce, token: self.token(resource, known), loss })
            }
            18 => Op::Revoke(Revoke { nonce }),
            _ => Op::Read,
        }
    }

    /// The observed version: a present or an earlier one.
    fn expected(&mut self, known: &Known) -> Option<Version> {
        match self.draws.below(4) {
            0 | 1 => None,
            2 => known.version.clone(),
            _ if self.old.is_empty() => None,
            _ => Some(self.draws.pick(&self.old).clone()),
        }
    }

    fn membership(&mut self, known: &Known) -> Membership {
        let current = known.marker.as_ref().map(|marker| marker.stamp);
        Membership {
            quorum: if self.draws.one_in(12) { QuorumId([9; 16]) } else { OURS.0 },
            max_ttl_ms: if self.draws.one_in(20) { 1 } else { OURS.1 },
            durability: *self.draws.pick(&[Durability::Declared, Durability::NotDeclared]),
            fresh: self.stamp(),
            waited_out: *self.draws.pick(&[None, current, current, Some(WAITED_OUT)]),
            bootstrap: *self.draws.pick(&[Bootstrap::Yes, Bootstrap::No, Bootstrap::No]),
            retention: RETENTION,
        }
    }

    fn marker(&mut self) -> Option<Marker> {
        let (past, future) = (SENT_UNIX_MS, SENT_UNIX_MS + 1);
        let phases = [
            Phase::Member,
            Phase::Member,
            Phase::Joining,
            Phase::Rejoined { trusted_from_unix_ms: future },
            Phase::Rejoined { trusted_from_unix_ms: past },
        ];
        let phase = *self.draws.pick(&phases);
        let quorum = if self.draws.one_in(8) { QuorumId([2; 16]) } else { OURS.0 };
        let marker = Marker { quorum, max_ttl_ms: OURS.1, stamp: self.stamp(), phase, run: None };
        (!self.draws.one_in(5)).then_some(marker)
    }

    fn stamp(&mut self) -> LossId {
        self.stamps = self.stamps.wrapping_add(1);
        LossId([self.stamps; 16])
    }

    /// Around the counter, far below it, and at the very top.
    fn token(&mut self, resource: &Resource, known: &Known) -> Token {
        let counter = known.counter.map_or(1_000, Token::get);
        let value = match self.draws.below(40) {
            0..12 if resource.as_str() == "top" => Token::MAX.get() - self.draws.below(2),
            0..=24 => (counter + self.draws.below(7)).saturating_sub(3),
            25..=30 => self.draws.below(1_000),
            _ => counter + self.draws.below(1_000_000),
        };
        Token::new(value).unwrap_or(Token::MAX)
    }

    /// Foreign ones may last for longer than anybody here would wait.
    fn foreign_ttl(&mut self) -> Duration {
        if self.draws.one_in(20) { Duration::from_secs(50 * 3600) } else { self.ttl() }
    }

    fn ttl(&mut self) -> Duration {
        let ms = self.draws.between(1, 100_000);
        // A part of a millisecond is a whole one to the store.
        Duration::from_millis(ms) + Duration::from_nanos(if self.draws.one_in(4) { 1 } else { 0 })
    }

    fn foreign(&mut self, resource: &Resource, known: &Known) -> ForeignAct {
        let ttl = self.foreign_ttl();
        let last = self.last[place(resource)];
        self.marks += 100;
        let mark = Mark { by: 7, count: self.marks };
        match (self.draws.below(9), last, &known.version) {
            (0, _, _) => ForeignAct::Read,
            (1 | 2, _, _) => ForeignAct::AcquireReleased { mark, ttl },
            (3, _, Some(seen)) => ForeignAct::AcquireExpired { mark, ttl, seen: seen.clone() },
            (4, Some(mark), _) => ForeignAct::Heartbeat { mark, ttl },
            (5, Some(mark), _) => ForeignAct::ReleaseDelete { mark },
            (6, Some(mark), _) => ForeignAct::ReleaseKeep { mark },
            (_, _, _) => ForeignAct::AcquireNew { mark, ttl },
        }
    }

    /// This foreign client holds the lock now.
    pub(crate) fn held(&mut self, resource: &Resource, mark: Mark) {
        self.last[place(resource)] = Some(mark);
    }

    /// Often the holder's.
    fn nonce(&mut self, known: &Known) -> Nonce {
        if let Some(holder) = known.holder
            && self.draws.one_in(2)
        {
            return holder;
        }
        Nonce::from_bytes([u8::try_from(self.draws.between(1, ATTEMPTS)).unwrap(); 16])
    }

    /// Some arrive late.
    fn seq(&mut self) -> Seq {
        self.seq += 1;
        let late = if self.draws.one_in(4) { u32::try_from(self.draws.below(10)).unwrap() } else { 0 };
        Seq::new(self.seq - late)
    }
}

/// The record of the run of an attempt; every second one leaves none.
fn about_of(nonce: &Nonce) -> Option<About> {
    let result = RunResult::bytes(nonce.as_bytes()).unwrap();
    nonce.as_bytes()[0].is_multiple_of(2).then(|| About::new(nonce, 1, 0, Some(&result)))
}

/// The owner, which is the same for all sends of an attempt.
fn owner_of(nonce: &Nonce) -> Owner {
    Owner::new(["", "host:7", "ö; %41@{}", "a b"][usize::from(nonce.as_bytes()[0] % 4)]).unwrap()
}

fn data_of(nonce: &Nonce) -> Option<Payload> {
    let kind = nonce.as_bytes()[0];
    (!kind.is_multiple_of(3)).then(|| Payload::new(&vec![0xff - kind; usize::from(kind) * 7 - 7]).unwrap())
}
