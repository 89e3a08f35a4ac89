//! The next step: random, with a preference for recent values.

use std::time::Duration;

use leasehold_core::op::{Acquire, Finish, LockOp, Op, Raise, Release, Renew, Revoke};
use leasehold_core::{About, LockId, Nonce, Owner, Payload, Resource, RunResult, Seq, Token};
use leasehold_sim::rng::{Draws, Stream};
use leasehold_sim::store::{ForeignAct, Mark};

/// Names with and without a hash tag of their own.
pub(crate) const NAMES: [&str; 4] = ["invoice/42", "{user}/é 7@1", "a}b{", TOP];
/// A raise of its counter goes to the end of all tokens now and then.
const TOP: &str = "top";

const ATTEMPTS: u64 = 5;

#[derive(Clone, Debug)]
pub(crate) enum Step {
    /// One request.
    Ask(Vec<LockOp>),
    /// A client of another library.
    Foreign { resource: Resource, act: ForeignAct, guise: Guise },
    /// Deletes the lock of any holder.
    Evict(Resource),
    /// Empties the server.
    Wipe,
    /// The server forgets its scripts.
    ForgetScripts,
    /// The server's clock goes on.
    Pass { ms: i64 },
    /// The server's clock is set back.
    SetBack { ms: i64 },
}

/// The kind of value in which a foreign client keeps its lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Guise {
    /// Random text, as nearly all do.
    Text,
    /// Nothing but a key.
    Empty,
    /// Bytes that are no text.
    Bytes,
    /// Longer than any value of ours.
    Long,
    /// Begins as ours do.
    NearlyOurs,
    Hash,
    List,
    Set,
    SortedSet,
    Stream,
}

const GUISES: [Guise; 14] = [
    Guise::Text,
    Guise::Text,
    Guise::Text,
    Guise::Text,
    Guise::Text,
    Guise::Empty,
    Guise::Bytes,
    Guise::Long,
    Guise::NearlyOurs,
    Guise::Hash,
    Guise::List,
    Guise::Set,
    Guise::SortedSet,
    Guise::Stream,
];

/// The origin of most tokens of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Minting {
    /// The server's time.
    Time,
    /// Floors of clients whose clocks are ahead of the server's.
    Floor,
}

/// The state of a resource.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Known {
    pub(crate) counter: Option<Token>,
    /// The attempt of ours whose record stands.
    pub(crate) holder: Option<Nonce>,
}

pub(crate) struct Dice {
    draws: Draws,
    minting: Minting,
    seq: u32,
    /// Each foreign lock has its own, and `NAMES` in their order know the last.
    marks: u32,
    last: [Option<(Mark, Guise)>; NAMES.len()],
}

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        let minting = if seed.is_multiple_of(3) { Minting::Floor } else { Minting::Time };
        let draws = Stream::new(seed, "steps against Redis").draws();
        Self { draws, minting, seq: 0, marks: 0, last: [None; NAMES.len()] }
    }

    pub(crate) fn step(&mut self, now_ms: u64, known: impl Fn(&Resource) -> Known) -> Step {
        match self.draws.below(200) {
            0..=49 => Step::Pass { ms: self.pass() },
            50..=74 => self.foreign(),
            75..=77 => Step::Evict(self.resource()),
            78 => Step::Wipe,
            79 | 80 => Step::ForgetScripts,
            81 | 82 => {
                let most = *self.draws.pick(&[200, 5_000, 100_000]);
                Step::SetBack { ms: i64::try_from(self.draws.between(50, most)).unwrap() }
            }
            83..=109 => {
                // Each resource at most once, for a request says nothing of the order of its operations.
                let only_renewals = self.draws.one_in(2);
                let mut ops = Vec::new();
                for resource in NAMES.map(named) {
                    if self.draws.one_in(4) {
                        continue;
                    }
                    let op = if only_renewals {
                        self.renew(known(&resource))
                    } else {
                        self.op(&resource, known(&resource), now_ms)
                    };
                    ops.push(on(resource, op));
                }
                Step::Ask(ops)
            }
            _ => {
                let resource = self.resource();
                let op = self.op(&resource, known(&resource), now_ms);
                Step::Ask(vec![on(resource, op)])
            }
        }
    }

    fn resource(&mut self) -> Resource {
        // Most of it happens to one, so that attempts meet.
        let at = if self.draws.one_in(2) { 0 } else { self.draws.below(NAMES.len() as u64) };
        named(NAMES[usize::try_from(at).unwrap()])
    }

    fn op(&mut self, resource: &Resource, known: Known, now_ms: u64) -> Op {
        match self.draws.below(20) {
            0..=7 => self.acquire(resource, known, now_ms),
            8..=12 => self.renew(known),
            13 => Op::Finish(self.finish(resource, known, now_ms)),
            14 | 15 => Op::Release(Release { nonce: self.nonce(known), quorum: None }),
            16 | 17 => {
                Op::Raise(Raise { nonce: self.nonce(known), token: self.token(resource, known, now_ms), loss: None })
            }
            18 => Op::Revoke(Revoke { nonce: self.nonce(known) }),
            _ => Op::Read,
        }
    }

    fn acquire(&mut self, resource: &Resource, known: Known, now_ms: u64) -> Op {
        let ahead = self.minting == Minting::Floor || self.draws.one_in(10);
        let floor = if ahead && !self.draws.one_in(10) { self.token(resource, known, now_ms) } else { Token::ZERO };
        let nonce = self.nonce(known);
        Op::Acquire(Box::new(Acquire {
            nonce,
            seq: self.seq(),
            record_ttl: self.ttl(),
            floor,
            expect: None,
            owner: owner_of(&nonce),
            data: data_of(&nonce),
            session: None,
            member: None,
            unless_done: self.draws.one_in(3),
            in_queue: false,
        }))
    }

    fn finish(&mut self, resource: &Resource, known: Known, now_ms: u64) -> Box<Finish> {
        let nonce = self.nonce(known);
        let keep = if self.draws.one_in(3) { Duration::from_secs(2_000) } else { self.ttl() };
        let token = self.token(resource, known, now_ms);
        let counter = known.counter.filter(|_| !self.draws.one_in(5)).unwrap_or(token);
        Box::new(Finish { nonce, token, counter, keep, owner: owner_of(&nonce), about: about_of(&nonce), quorum: None })
    }

    fn renew(&mut self, known: Known) -> Op {
        Op::Renew(Renew { nonce: self.nonce(known), seq: self.seq(), record_ttl: self.ttl(), quorum: None })
    }

    /// Around the counter, far below it, ahead of the time, and at the very top.
    fn token(&mut self, resource: &Resource, known: Known, now_ms: u64) -> Token {
        let counter = known.counter.map_or(now_ms, Token::get);
        let value = match self.draws.below(40) {
            0..5 if resource.as_str() == TOP => Token::MAX.get() - self.draws.below(2),
            0..=19 => (counter + self.draws.below(10)).saturating_sub(3),
            20..=24 => self.draws.below(1_000),
            _ => now_ms + self.draws.between(1_000_000_000, 2_000_000_000),
        };
        Token::new(value).unwrap_or(Token::MAX)
    }

    fn ttl(&mut self) -> Duration {
        let ms = match self.draws.below(8) {
            0 => self.draws.between(10_000, 600_000),
            _ => self.draws.between(300, 8_000),
        };
        // A part of a millisecond is a whole one to the store.
        Duration::from_millis(ms) + Duration::from_nanos(if self.draws.one_in(4) { 1 } else { 0 })
    }

    fn pass(&mut self) -> i64 {
        let ms = match self.draws.below(40) {
            0 => self.draws.between(60_000, 1_500_000),
            1..=9 => self.draws.between(2_000, 20_000),
            _ => self.draws.between(50, 2_000),
        };
        i64::try_from(ms).unwrap()
    }

    fn foreign(&mut self) -> Step {
        let resource = self.resource();
        let at = NAMES.iter().position(|name| *name == resource.as_str()).unwrap();
        let ttl = Duration::from_millis(self.ttl().as_millis().try_into().unwrap());
        let (act, guise) = match (self.draws.below(4), self.last[at]) {
            (0, Some((mark, guise))) => (ForeignAct::Heartbeat { mark, ttl }, guise),
            (1, Some((mark, guise))) => (ForeignAct::ReleaseDelete { mark }, guise),
            _ => {
                self.marks += 1;
                let mark = Mark { by: 7, count: self.marks };
                let guise = *self.draws.pick(&GUISES);
                (ForeignAct::AcquireNew { mark, ttl }, guise)
            }
        };
        Step::Foreign { resource, act, guise }
    }

    /// This foreign client holds the lock now.
    pub(crate) fn held(&mut self, resource: &Resource, mark: Mark, guise: Guise) {
        let at = NAMES.iter().position(|name| *name == resource.as_str()).unwrap();
        self.last[at] = Some((mark, guise));
    }

    /// Often the holder's.
    fn nonce(&mut self, known: Known) -> Nonce {
        if let Some(holder) = known.holder
            && self.draws.one_in(2)
        {
            return holder;
        }
        Nonce::from_bytes([u8::try_from(self.draws.between(1, ATTEMPTS)).unwrap(); 16])
    }

    fn seq(&mut self) -> Seq {
        self.seq += 1;
        Seq::new(self.seq)
    }
}

pub(crate) fn named(name: &str) -> Resource {
    Resource::new(name).unwrap()
}

pub(crate) fn on(resource: Resource, op: Op) -> LockOp {
    LockOp { lock: LockId::new(1), resource, op }
}

/// The record of the run of an attempt; every second one leaves none.
fn about_of(nonce: &Nonce) -> Option<About> {
    let result = RunResult::bytes(nonce.as_bytes()).unwrap();
    nonce.as_bytes()[0].is_multiple_of(2).then(|| About::new(nonce, 1, 0, Some(&result)))
}

/// The owner, which is the same for all sends of an attempt.
pub(crate) fn owner_of(nonce: &Nonce) -> Owner {
    Owner::new(["", "host:7", "ö; %41@{}", "a b"][usize::from(nonce.as_bytes()[0] % 4)]).unwrap()
}

/// The data, which is the same for all sends of an attempt.
pub(crate) fn data_of(nonce: &Nonce) -> Option<Payload> {
    let kind = nonce.as_bytes()[0];
    (!kind.is_multiple_of(3)).then(|| Payload::new(&vec![0xff - kind; usize::from(kind) * 7 - 7]).unwrap())
}
