//! Model stores: what SQLite, Redis and DynamoDB would do with an operation, in memory and under a clock of our choice.
//!
//! Each keeps exactly what the real store would keep, and forgets what it would forget: a model that remembers more
//! than its original would forgive mistakes that the original does not.

mod dynamodb;
mod foreign;
mod member;
mod memory;
mod redis;
mod sqlite;
#[cfg(test)]
mod tests;

use std::time::Duration;

use leasehold_core::member::{Durability, LossId, Marker, Phase, QuorumId, RunId};
use leasehold_core::op::{Applied, Denial, DenialKind, Op, Outcome, Refusal, Seen};
use leasehold_core::store::{BootId, StoreNow};
use leasehold_core::{Monotonic, Nonce, Resource, Seq, Token};
use serde::{Deserialize, Serialize};

use crate::clock::{Clock, TrueTime};
use crate::script::is_false;

use dynamodb::Dynamodb;
pub use dynamodb::Form;
pub use foreign::{ForeignAct, ForeignAnswer, ForeignRow, Mark};
use member::Beside;
use memory::Memory;
use redis::Redis;
use sqlite::Sqlite;

/// What a wall clock without offset shows when the world begins: milliseconds since 1970.
pub const BEGAN_UNIX_MS: u64 = 1_767_225_600_000;

const NS_PER_MS: u64 = 1_000_000;

/// Which store a node is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// A file shared by processes; expiry by the uptime of whoever asks.
    Sqlite,
    /// Expiry by the server's own clock; records keep no send numbers.
    Redis,
    /// No expiry: observers wait. Conditional writes only.
    Dynamodb,
    /// The core's own reference node on a machine of its own; expiry by that machine's uptime, no run id.
    Memory,
}

/// One operation as it arrives at a store.
#[derive(Clone, Debug)]
pub struct Ask<'a> {
    /// On what.
    pub resource: &'a Resource,
    /// What to do.
    pub op: &'a Op,
    /// Which of the requests of a send it is; always [`Form::Floor`] but for DynamoDB.
    pub form: Form,
    /// True time of arrival.
    pub at: TrueTime,
    /// The clocks of the process that asks: SQLite runs inside it. What DynamoDB is sent was made when its first request
    /// left.
    pub caller: StoreNow,
}

/// What a store says.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Answer {
    /// The outcome.
    Done(Outcome),
    /// The caller's session asks again in this form, with the same operation: another request of its own, which may
    /// come late or get lost like any other.
    Again(Form),
}

/// Who holds a resource in the store, as the world knows and no client can.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Standing {
    /// Whose record it is.
    pub by: By,
    /// When the store frees it by itself, unless its clock is changed before. `None` where it does not (DynamoDB), and
    /// where that hangs on the clock of whoever asks next (SQLite).
    pub until: Option<TrueTime>,
}

/// Whose record it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum By {
    /// An attempt of a leasehold client.
    Attempt(Nonce),
    /// A client of another library.
    Foreign(u32),
}

/// How one node is set up.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Spec {
    /// Which store it is.
    pub kind: Kind,
    /// How much faster than true time the server's clock runs, in parts per million.
    #[serde(default)]
    pub rate_ppm: i32,
    /// How far the server's wall clock is ahead.
    #[serde(default)]
    pub unix_offset_ms: i64,
    /// How long Redis keeps a counter after the last grant, renewal or raise; `Duration::MAX`, and absent in JSON, for
    /// good. The other kinds keep counters for good in any case.
    #[serde(rename = "retention_ns", with = "retention", default = "for_good", skip_serializing_if = "is_for_good")]
    pub retention: Duration,
    /// Whether its operator declares that it comes back from a restart with all that it has acknowledged. Matters to
    /// nodes of a quorum only.
    #[serde(default, skip_serializing_if = "is_false")]
    pub durable: bool,
}

impl Spec {
    /// A node whose clock is right and which keeps counters for good.
    pub const fn of(kind: Kind) -> Self {
        Self { kind, rate_ppm: 0, unix_offset_ms: 0, retention: Duration::MAX, durable: false }
    }

    /// What clients are told of it.
    pub const fn durability(&self) -> Durability {
        if self.durable { Durability::Declared } else { Durability::NotDeclared }
    }

    /// Whether no counter is ever forgotten.
    pub fn keeps_counters(&self) -> bool {
        self.kind != Kind::Redis || is_for_good(&self.retention)
    }
}

/// One node: its records and its clock.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Store {
    /// Shows nanoseconds since 1970. Only Redis looks at it.
    wall: Clock,
    /// How often it was restarted. Redis makes its run id of it, the reference node its boot.
    run: u32,
    shelf: Shelf,
}

/// All that a node has written down at some instant.
#[derive(Clone, Debug)]
pub struct Snapshot(Shelf);

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Shelf {
    Sqlite(Sqlite),
    Redis(Redis),
    Dynamodb(Dynamodb),
    Memory(Memory),
}

impl Store {
    /// An empty node.
    pub fn new(spec: &Spec) -> Self {
        let shows_ms = BEGAN_UNIX_MS.saturating_add_signed(spec.unix_offset_ms);
        let shelf = match spec.kind {
            Kind::Sqlite => Shelf::Sqlite(Sqlite::default()),
            Kind::Redis => Shelf::Redis(Redis::new(spec.retention)),
            Kind::Dynamodb => Shelf::Dynamodb(Dynamodb::default()),
            Kind::Memory => Shelf::Memory(Memory::default()),
        };
        Self { wall: Clock::new(shows_ms.saturating_mul(NS_PER_MS), spec.rate_ppm), run: 0, shelf }
    }

    /// Which store it is.
    pub const fn kind(&self) -> Kind {
        match self.shelf {
            Shelf::Sqlite(_) => Kind::Sqlite,
            Shelf::Redis(_) => Kind::Redis,
            Shelf::Dynamodb(_) => Kind::Dynamodb,
            Shelf::Memory(_) => Kind::Memory,
        }
    }

    /// One operation, atomically. The instants of successive calls must not fall.
    pub fn ask(&mut self, ask: &Ask<'_>) -> Answer {
        let (unix_ms, now) = (self.unix_ms(ask.at), self.now(ask.at));
        match &mut self.shelf {
            Shelf::Sqlite(shelf) => shelf.ask(ask),
            Shelf::Redis(shelf) => shelf.ask(ask, unix_ms, self.run),
            Shelf::Dynamodb(shelf) => shelf.ask(ask),
            Shelf::Memory(shelf) => shelf.ask(ask, &now),
        }
    }

    /// A step of a client of another library. SQLite and the reference node refuse them all.
    pub fn foreign(&mut self, resource: &Resource, act: &ForeignAct, at: TrueTime) -> ForeignAnswer {
        let unix_ms = self.unix_ms(at);
        match &mut self.shelf {
            Shelf::Sqlite(_) | Shelf::Memory(_) => ForeignAnswer::Refused,
            Shelf::Redis(shelf) => shelf.foreign(resource, act, unix_ms),
            Shelf::Dynamodb(shelf) => shelf.foreign(resource, act),
        }
    }

    /// Whose record stands there; nobody's once it is released or the store has freed it. `caller` matters to SQLite
    /// only, where a record has run out by the uptime of whoever asks.
    pub fn standing(&self, resource: &Resource, at: TrueTime, caller: &StoreNow) -> Option<Standing> {
        match &self.shelf {
            Shelf::Sqlite(shelf) => shelf.standing(resource, caller),
            Shelf::Redis(shelf) => shelf.standing(resource, self.unix_ms(at), &self.wall),
            Shelf::Dynamodb(shelf) => shelf.standing(resource),
            Shelf::Memory(shelf) => shelf.standing(resource, &self.now(at), &self.wall),
        }
    }

    /// The token counter, unless there is none or it is forgotten by now.
    pub fn counter(&self, resource: &Resource, at: TrueTime) -> Option<Token> {
        match &self.shelf {
            Shelf::Sqlite(shelf) => shelf.counter(resource),
            Shelf::Redis(shelf) => shelf.counter(resource, self.unix_ms(at)),
            Shelf::Dynamodb(shelf) => shelf.counter(resource),
            Shelf::Memory(shelf) => shelf.counter(resource),
        }
    }

    /// When the token counter is forgotten unless it is used before; `None` where there is none, and where it is kept
    /// for good.
    pub fn forgotten(&self, resource: &Resource, at: TrueTime) -> Option<TrueTime> {
        match &self.shelf {
            Shelf::Sqlite(_) | Shelf::Dynamodb(_) | Shelf::Memory(_) => None,
            Shelf::Redis(shelf) => shelf.forgotten(resource, self.unix_ms(at), &self.wall),
        }
    }

    /// The server's wall clock, in nanoseconds since 1970, to be set or driven wrong.
    pub const fn clock_mut(&mut self) -> &mut Clock {
        &mut self.wall
    }

    /// Everything is gone, counters too: somebody emptied the store, or the node came back without its data.
    pub fn wipe(&mut self) {
        match &mut self.shelf {
            Shelf::Sqlite(shelf) => *shelf = Sqlite::default(),
            Shelf::Redis(shelf) => shelf.wipe(),
            Shelf::Dynamodb(shelf) => *shelf = Dynamodb::default(),
            Shelf::Memory(shelf) => *shelf = Memory::default(),
        }
    }

    /// One lock is freed behind its holder's back, its counter stays: evicted by Redis, deleted by hand in SQLite,
    /// marked as released by hand in DynamoDB, where lock and counter are one row.
    pub fn evict(&mut self, resource: &Resource) {
        match &mut self.shelf {
            Shelf::Sqlite(shelf) => shelf.evict(resource),
            Shelf::Redis(shelf) => shelf.evict(resource),
            Shelf::Dynamodb(shelf) => shelf.evict(resource),
            Shelf::Memory(shelf) => shelf.evict(resource),
        }
    }

    /// A row goes, by hand or by DynamoDB's time to live. Other stores have none.
    pub fn delete(&mut self, resource: &Resource) {
        if let Shelf::Dynamodb(shelf) = &mut self.shelf {
            shelf.rows.remove(resource);
        }
    }

    /// Somebody writes a lease's length into a row of DynamoDB in a form that is not understood here.
    pub fn obscure(&mut self, resource: &Resource) {
        if let Shelf::Dynamodb(shelf) = &mut self.shelf
            && let Some(row) = shelf.rows.get_mut(resource)
        {
            row.lease_duration = None;
        }
    }

    /// What it has written down by now.
    pub fn snapshot(&self) -> Snapshot {
        Snapshot(self.shelf.clone())
    }

    /// It has only what it had then.
    pub fn restore(&mut self, snapshot: Snapshot) {
        self.shelf = snapshot.0;
    }

    /// Another run begins, of the same server or of a replica in its place.
    pub const fn restart(&mut self) {
        self.run += 1;
    }

    /// Whoever sets up a quorum marks its nodes.
    pub fn mark(&mut self, quorum: QuorumId, max_ttl: Duration) {
        let max_ttl_ms = u64::try_from(max_ttl.as_millis()).unwrap_or(u64::MAX);
        let marker = Marker { quorum, max_ttl_ms, stamp: LossId([0x17; 16]), phase: Phase::Member, run: self.run_id() };
        self.remember(Some(marker));
    }

    /// Somebody writes or removes the marker by hand.
    pub fn remember(&mut self, marker: Option<Marker>) {
        match &mut self.shelf {
            Shelf::Redis(shelf) => shelf.beside.marker = marker,
            Shelf::Memory(shelf) => shelf.beside.marker = marker,
            Shelf::Dynamodb(shelf) => shelf.marker = marker,
            Shelf::Sqlite(_) => {}
        }
    }

    /// What the node remembers of its membership, in its present run. `None` where it has no marker that speaks of this
    /// run: it votes for nobody, whatever it holds.
    pub fn membership(&self, durability: Durability) -> Option<&Marker> {
        let run = self.run_id();
        let restarted =
            |marker: &Marker| durability == Durability::NotDeclared && marker.is_of_another_run(run.as_ref());
        let marker = match &self.shelf {
            Shelf::Redis(shelf) => shelf.beside.marker.as_ref(),
            Shelf::Memory(shelf) => shelf.beside.marker.as_ref(),
            Shelf::Dynamodb(shelf) => shelf.marker.as_ref(),
            Shelf::Sqlite(_) => None,
        };
        marker.filter(|marker| !restarted(marker))
    }

    /// The loss since which the counter of a resource was raised here.
    pub fn raised_since(&self, resource: &Resource) -> Option<LossId> {
        let raised = |beside: &Beside| beside.trust.get(resource).map(|raised| raised.since);
        match &self.shelf {
            Shelf::Redis(shelf) => raised(&shelf.beside),
            Shelf::Memory(shelf) => raised(&shelf.beside),
            Shelf::Dynamodb(shelf) => shelf.trust(resource),
            Shelf::Sqlite(_) => None,
        }
    }

    /// The attempt and the send whose lock was freed again, because the node does not vote.
    pub fn undone(&self, resource: &Resource) -> Option<(Nonce, Seq)> {
        match &self.shelf {
            Shelf::Dynamodb(shelf) => shelf.undone(resource),
            Shelf::Redis(_) | Shelf::Memory(_) | Shelf::Sqlite(_) => None,
        }
    }

    /// What its server calls the present run; `None` where it has none.
    fn run_id(&self) -> Option<RunId> {
        (self.kind() == Kind::Redis).then(|| run_id(self.run))
    }

    fn unix_ms(&self, at: TrueTime) -> u64 {
        self.wall.shows(at) / NS_PER_MS
    }

    /// The clocks of a node that is a process of its own.
    fn now(&self, at: TrueTime) -> StoreNow {
        let mut boot = [0; 16];
        boot[..4].copy_from_slice(&self.run.to_le_bytes());
        let uptime = Monotonic::from_ns(self.wall.shows(at));
        StoreNow { boot: BootId(boot), uptime, unix_ms: self.unix_ms(at) }
    }
}

/// What a Redis server calls one of its runs.
fn run_id(run: u32) -> RunId {
    RunId::new(&format!("{run:08x}")).expect("invariant: eight hexadecimal digits")
}

fn applied(applied: Applied) -> Answer {
    Answer::Done(Outcome::Applied(applied))
}

fn conflict(seen: Seen) -> Answer {
    Answer::Done(Outcome::NotApplied(Refusal::Conflict(seen)))
}

fn exhausted() -> Outcome {
    let denial = Denial::new(DenialKind::TokensExhausted, "the token counter stands at 2^53 - 1");
    Outcome::NotApplied(Refusal::Denied(denial))
}

/// Whole milliseconds, as stores keep them: rounded up, so that no record is shorter than its holder believes.
fn whole_ms(length: Duration) -> u64 {
    u64::try_from(length.as_nanos().div_ceil(u128::from(NS_PER_MS))).unwrap_or(u64::MAX)
}

const fn for_good() -> Duration {
    Duration::MAX
}

fn is_for_good(retention: &Duration) -> bool {
    *retention == Duration::MAX
}

/// A length of time as a number of nanoseconds.
mod retention {
    use std::time::Duration;

    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(length: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u64(u64::try_from(length.as_nanos()).unwrap_or(u64::MAX))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
        u64::deserialize(deserializer).map(Duration::from_nanos)
    }
}
