//! Random sequences of steps, as data: they do not depend on what a store answers, so steps can be left out.

use std::fmt;
use std::time::Duration;

use leasehold_core::member::{Bootstrap, Durability, LossId, Phase};
use leasehold_sim::rng::{Draws, Stream};

/// The resources of a sequence: two of runs, since Redis looks for completions beside no other names. The last is the record of a session, as far as its name goes.
pub const NAMES: [&str; 3] = ["a@1", "b@2", "session:w"];
/// The attempts at each resource.
pub const ATTEMPTS: u8 = 4;
/// The clients of a sequence, each with connections of its own.
pub const CLIENTS: u8 = 2;

/// One step of one client.
#[derive(Clone, PartialEq, Eq)]
pub struct Step {
    /// The number that later steps name it by.
    pub id: u32,
    /// The client that takes it.
    pub client: u8,
    /// The resource, a place in [`NAMES`].
    pub name: u8,
    /// The rest.
    pub what: What,
}

/// An attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Who {
    /// The one whose record stands.
    Holder,
    /// This one.
    Attempt(u8),
}

/// A token, or the version of a record, by what stands when the step is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Near {
    /// None.
    Nothing,
    /// The counter, or version, that stands.
    Current,
    /// A higher counter, or a version that never was.
    Above,
    /// The highest token of all.
    Top,
}

/// The words of an acquire about its quorum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Member {
    /// It is of another quorum.
    pub is_stranger: bool,
    /// The node's durability.
    pub durability: Durability,
    /// It has waited out the loss that stands.
    pub waited_out: bool,
    /// Its evidence that the quorum is new.
    pub bootstrap: Bootstrap,
    /// For a loss that it is the first to find.
    pub fresh: LossId,
}

/// The content of a step.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "as in `Op`")]
pub enum What {
    Acquire {
        who: Who,
        seq: u32,
        ttl: Duration,
        floor: Near,
        expect: Near,
        unless_done: bool,
        in_queue: bool,
        member: Option<Member>,
    },
    Renew {
        who: Who,
        seq: u32,
        ttl: Duration,
        quorum: Option<Durability>,
    },
    /// Reads, and makes what tells a session that a row of it was changed. A later [`What::Again`] sends it.
    PrepareTell {
        who: Who,
    },
    Tell {
        who: Who,
    },
    Release {
        who: Who,
        quorum: Option<Durability>,
    },
    Finish {
        who: Who,
        keep: Duration,
        quorum: Option<Durability>,
    },
    Revoke {
        who: Who,
    },
    Raise {
        who: Who,
        token: Near,
        of_the_loss: bool,
    },
    Read,
    /// Reads the item of compare-and-set that has the number of the resource.
    ReadItem,
    /// Writes it, as it follows from what the client has read last.
    WriteItem {
        value: Vec<u8>,
    },
    /// The same request as that of an earlier step, late or a second time.
    Again {
        of: u32,
    },
    /// The last in the queue gives up.
    Leave {
        attempt: u8,
    },
    /// A change by hand, or by another library.
    Edit(Edit),
    /// Writes a marker, or takes it away.
    Mark(Option<(Phase, LossId)>),
}

/// A change of a row past all clients.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Edit {
    /// The lease has run out.
    Expire,
    /// The row is gone, counter and all.
    Delete,
    /// The lease is marked as released.
    Free,
    /// Another library takes the lock, if nobody has it.
    Foreign(Duration),
}

impl fmt::Debug for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = NAMES[usize::from(self.name)];
        write!(f, "{:>4}  client {}  {name:<8}  {:?}", self.id, self.client, self.what)
    }
}

/// The kinds of steps that a store can be asked for.
#[derive(Clone, Copy, Debug, Default)]
pub struct Abilities {
    /// It may be a node of a quorum.
    pub quorum: bool,
    /// It keeps a queue of waiters.
    pub queue: bool,
    /// A place in the queue is given up at once, not some time later.
    pub leaves: bool,
    /// It refuses what only nodes of a quorum are asked.
    pub refuses_raises: bool,
}

/// The sequence of a seed.
pub fn script(seed: u64, steps: u32, abilities: Abilities) -> Vec<Step> {
    let mut dice = Dice { draws: Stream::new(seed, "differential").draws(), seq: 1, stamps: 0, abilities };
    // Most sequences are those of a single store, since the doubts of a node hide all the rest.
    let in_quorum = abilities.quorum && dice.draws.one_in(3);
    dice.abilities.quorum = in_quorum;
    (1..=steps).map(|id| dice.step(id)).collect()
}

struct Dice {
    draws: Draws,
    seq: u32,
    stamps: u8,
    abilities: Abilities,
}

impl Dice {
    fn step(&mut self, id: u32) -> Step {
        let name = *self.draws.pick(&[0, 0, 0, 0, 1, 2, 2]);
        let client = if self.draws.one_in(2) { 0 } else { 1 };
        let what = match self.what(id) {
            // It is no run.
            What::Finish { .. } if usize::from(name) + 1 == NAMES.len() => What::Read,
            what => what,
        };
        Step { id, client, name, what }
    }

    fn what(&mut self, id: u32) -> What {
        let quorum = self.quorum();
        match self.draws.below(105) {
            0..=27 => self.acquire(),
            28..=41 => What::Renew { who: self.who(), seq: self.seq(), ttl: self.ttl(), quorum },
            42..=44 => What::PrepareTell { who: Who::Holder },
            45..=47 => What::Tell { who: Who::Holder },
            48..=55 => What::Release { who: self.who(), quorum },
            56..=60 => What::Finish { who: self.who(), keep: self.keep(), quorum },
            61..=65 => What::Revoke { who: self.who() },
            66..=69 if !self.abilities.refuses_raises => {
                What::Raise { who: self.who(), token: self.near(), of_the_loss: self.draws.one_in(2) }
            }
            70..=72 => What::Read,
            73..=86 => What::Again { of: u32::try_from(self.earlier(id)).unwrap_or(1) },
            87..=89 if self.abilities.leaves => What::Leave { attempt: self.attempt() },
            90..=92 if self.abilities.quorum => What::Mark(self.marker()),
            93 | 94 => What::Edit(Edit::Expire),
            95 => What::Edit(Edit::Delete),
            96 => What::Edit(Edit::Free),
            100..=101 => What::ReadItem,
            102..=104 => {
                let long = *self.draws.pick(&[0, 1, 40]);
                What::WriteItem { value: (0..long).map(|_| self.draws.below(256) as u8).collect() }
            }
            97..=99 => What::Edit(Edit::Foreign(self.ttl())),
            _ => What::Read,
        }
    }

    fn acquire(&mut self) -> What {
        let member = self.abilities.quorum && !self.draws.one_in(4);
        What::Acquire {
            who: if self.draws.one_in(6) { Who::Holder } else { Who::Attempt(self.attempt()) },
            seq: self.seq(),
            ttl: self.ttl(),
            floor: self.near(),
            expect: *self.draws.pick(&[Near::Nothing, Near::Current, Near::Current, Near::Above]),
            unless_done: self.draws.one_in(3),
            // Only clients of a single store wait in the queue.
            in_queue: !self.abilities.quorum && self.abilities.queue && self.draws.one_in(2),
            member: member.then(|| self.member()),
        }
    }

    /// Mostly one of the last few.
    fn earlier(&mut self, id: u32) -> u64 {
        let back = if self.draws.one_in(3) { 60 } else { 6 };
        u64::from(id).saturating_sub(1 + self.draws.below(back)).max(1)
    }

    fn who(&mut self) -> Who {
        if self.draws.one_in(4) { Who::Attempt(self.attempt()) } else { Who::Holder }
    }

    fn attempt(&mut self) -> u8 {
        u8::try_from(self.draws.below(u64::from(ATTEMPTS))).unwrap_or_default()
    }

    /// Mostly the next even number, now and then an older one: the odd ones are those of a tell.
    fn seq(&mut self) -> u32 {
        self.seq += 2;
        let back = if self.draws.one_in(5) { self.draws.below(8) } else { 0 };
        self.seq.saturating_sub(u32::try_from(back).unwrap_or_default() * 2).max(1)
    }

    /// So long that none runs out, and far enough from each other that none is taken for another.
    fn ttl(&mut self) -> Duration {
        Duration::from_secs(*self.draws.pick(&[300, 600, 1_200, 3_600, 40 * 3_600]))
    }

    fn keep(&mut self) -> Duration {
        Duration::from_secs(*self.draws.pick(&[600, 7_200, 6 * 86_400, 60 * 86_400, 365 * 86_400]))
    }

    fn near(&mut self) -> Near {
        if self.draws.one_in(40) {
            return Near::Top;
        }
        *self.draws.pick(&[Near::Nothing, Near::Current, Near::Above])
    }

    fn quorum(&mut self) -> Option<Durability> {
        (self.abilities.quorum && !self.draws.one_in(3)).then(|| self.durability())
    }

    fn durability(&mut self) -> Durability {
        *self.draws.pick(&[Durability::Declared, Durability::NotDeclared])
    }

    fn member(&mut self) -> Member {
        Member {
            is_stranger: self.draws.one_in(12),
            durability: self.durability(),
            waited_out: !self.draws.one_in(3),
            bootstrap: *self.draws.pick(&[Bootstrap::Yes, Bootstrap::No]),
            fresh: self.stamp(),
        }
    }

    fn marker(&mut self) -> Option<(Phase, LossId)> {
        let phases = [
            Phase::Member,
            Phase::Member,
            Phase::Joining,
            Phase::Rejoined { trusted_from_unix_ms: 1 },
            Phase::Rejoined { trusted_from_unix_ms: 8_000_000_000_000 },
        ];
        let (phase, stamp) = (*self.draws.pick(&phases), self.stamp());
        (!self.draws.one_in(5)).then_some((phase, stamp))
    }

    fn stamp(&mut self) -> LossId {
        self.stamps = self.stamps.wrapping_add(1);
        LossId([self.stamps; 16])
    }
}
