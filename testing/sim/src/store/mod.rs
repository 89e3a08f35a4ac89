//! Model stores: what SQLite, Redis and DynamoDB would do with an operation, in memory and under a clock of our choice.
//!
//! Each keeps exactly what the real store would keep, and forgets what it would forget: a model that remembers more
//! than its original would forgive mistakes that the original does not.

mod dynamodb;
mod foreign;
mod member;
mod memory;
mod queue;
mod redis;
mod sqlite;
#[cfg(test)]
mod tests;

use std::time::Duration;

use leasehold_core::member::{Durability, LossId, Marker, Phase, QuorumId, RunId};
use leasehold_core::op::{Applied, Denial, DenialKind, Op, Outcome, Refusal, Seen};
use leasehold_core::queue::Reserved;
use leasehold_core::store::{BootId, StoreNow};
use leasehold_core::{LockId, Monotonic, Nonce, Resource, Seq, Token};
use serde::{Deserialize, Serialize};

use crate::clock::{Clock, TrueTime};
use crate::script::is_false;

pub use dynamodb::Form;
use dynamodb::{Dynamodb, Kept};
pub use foreign::{ForeignAct, ForeignAnswer, ForeignRow, Mark};
use member::MemberState;
use memory::Memory;
use redis::Redis;
use sqlite::Sqlite;

/// The time that a wall clock without offset shows when the world begins, in milliseconds since 1970.
pub const BEGAN_UNIX_MS: u64 = 1_767_225_600_000;

const NS_PER_MS: u64 = 1_000_000;

/// Which store a node is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// A file shared by processes; expiry by the uptime of the process that asks.
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
    /// The operation.
    pub op: &'a Op,
    /// Which of the requests of a send it is; always [`Form::Floor`] but for DynamoDB.
    pub form: Form,
    /// True time of arrival.
    pub at: TrueTime,
    /// The clocks of the process that asks: SQLite runs inside it. What DynamoDB is sent was made when its first
    /// request left.
    pub caller: StoreNow,
    /// The ticket of an acquire that stands in the queue, if the client listens on its channel.
    pub ticket: Option<Ticket>,
}

/// A place in a queue of waiters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket {
    /// The client.
    pub client: u64,
    /// Its acquisition.
    pub lock: LockId,
}

/// The answer of a store.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Answer {
    /// The outcome.
    Done(Outcome),
    /// The caller's codec asks again in this form, with the same operation: another request of its own, which may
    /// come late or get lost like any other.
    Again(Form),
}

/// The record of a resource in the store, as the world knows and no client can.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct StoredRecord {
    /// The writer of the record.
    pub by: By,
    /// The time when the store frees it by itself, unless its clock is changed before. `None` where it does not
    /// (DynamoDB), and where that depends on the clock of the process that asks next (SQLite).
    pub until: Option<TrueTime>,
}

/// The writer of a record.
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
    /// True if its operator declares that a restart keeps all that it has acknowledged. Matters to
    /// nodes of a quorum only.
    #[serde(default, skip_serializing_if = "is_false")]
    pub durable: bool,
}

impl Spec {
    /// A node whose clock is right and which keeps counters for good.
    pub const fn of(kind: Kind) -> Self {
        Self { kind, rate_ppm: 0, unix_offset_ms: 0, retention: Duration::MAX, durable: false }
    }

    /// The part of the spec that clients know.
    pub const fn durability(&self) -> Durability {
        if self.durable { Durability::Declared } else { Durability::NotDeclared }
    }

    /// True if no counter is ever forgotten.
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
    backend: Backend,
}

/// All that a node has written down at some instant.
#[derive(Clone, Debug)]
pub struct Snapshot(Backend);

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Backend {
    Sqlite(Sqlite),
    Redis(Redis),
    Dynamodb(Dynamodb),
    Memory(Memory),
}

impl Store {
    /// An empty node.
    pub fn new(spec: &Spec) -> Self {
        let shows_ms = BEGAN_UNIX_MS.saturating_add_signed(spec.unix_offset_ms);
        let backend = match spec.kind {
            Kind::Sqlite => Backend::Sqlite(Sqlite::default()),
            Kind::Redis => Backend::Redis(Redis::new(spec.retention)),
            Kind::Dynamodb => Backend::Dynamodb(Dynamodb::default()),
            Kind::Memory => Backend::Memory(Memory::default()),
        };
        Self { wall: Clock::new(shows_ms.saturating_mul(NS_PER_MS), spec.rate_ppm), run: 0, backend }
    }

    /// Which store it is.
    pub const fn kind(&self) -> Kind {
        match self.backend {
            Backend::Sqlite(_) => Kind::Sqlite,
            Backend::Redis(_) => Kind::Redis,
            Backend::Dynamodb(_) => Kind::Dynamodb,
            Backend::Memory(_) => Kind::Memory,
        }
    }

    /// One operation, atomically. The instants of successive calls must not fall.
    pub fn ask(&mut self, ask: &Ask<'_>) -> Answer {
        let (unix_ms, now) = (self.unix_ms(ask.at), self.now(ask.at));
        match &mut self.backend {
            Backend::Sqlite(backend) => backend.ask(ask),
            Backend::Redis(backend) => backend.ask(ask, unix_ms, self.run),
            Backend::Dynamodb(backend) => backend.ask(ask),
            Backend::Memory(backend) => backend.ask(ask, &now),
        }
    }

    /// A client listens on its channel from now on, or does not any more. In memory, its places in the queue end with it.
    pub fn listens(&mut self, client: u64, on: bool, at: TrueTime) {
        let now = self.now(at);
        match &mut self.backend {
            Backend::Redis(backend) => backend.queues.listens(client, on),
            Backend::Memory(backend) if !on => backend.forget(client, &now),
            Backend::Sqlite(_) | Backend::Dynamodb(_) | Backend::Memory(_) => {}
        }
    }

    /// Gives up a ticket.
    pub fn leave(&mut self, resource: &Resource, ticket: Ticket, at: TrueTime) {
        let (unix_ms, now) = (self.unix_ms(at), self.now(at));
        match &mut self.backend {
            Backend::Redis(backend) => backend.leave(resource, ticket, unix_ms),
            Backend::Memory(backend) => backend.leave(resource, ticket, &now),
            Backend::Sqlite(_) | Backend::Dynamodb(_) => {}
        }
    }

    /// The ticket that the lock is reserved for.
    pub fn reserved_for(&self, resource: &Resource, at: TrueTime) -> Option<Ticket> {
        match &self.backend {
            Backend::Redis(backend) => backend.reserved_for(resource, self.unix_ms(at)),
            Backend::Memory(backend) => backend.reserved_for(resource, &self.now(at)),
            Backend::Sqlite(_) | Backend::Dynamodb(_) => None,
        }
    }

    /// Tells if the lock is left free for other libraries, and the first in the queue comes later.
    pub fn is_open_for_others(&self, resource: &Resource, at: TrueTime) -> bool {
        match &self.backend {
            Backend::Redis(backend) => backend.queues.open_left(resource, self.unix_ms(at)).is_some(),
            Backend::Memory(_) | Backend::Sqlite(_) | Backend::Dynamodb(_) => false,
        }
    }

    /// How long it is remembered that the lock passes from hand to hand.
    pub fn hands_left(&self, resource: &Resource, at: TrueTime) -> Option<Duration> {
        match &self.backend {
            Backend::Redis(backend) => backend.queues.hands_left(resource, self.unix_ms(at)),
            Backend::Memory(_) | Backend::Sqlite(_) | Backend::Dynamodb(_) => None,
        }
    }

    /// The reservation for another that a ticket in the queue has to wait for.
    pub fn reserved_before(&self, resource: &Resource, ticket: Ticket, at: TrueTime) -> Option<Reserved> {
        match &self.backend {
            Backend::Redis(backend) => backend.reserved_before(resource, ticket, self.unix_ms(at)),
            Backend::Memory(backend) => backend.reserved_before(resource, ticket, &self.now(at)),
            Backend::Sqlite(_) | Backend::Dynamodb(_) => None,
        }
    }

    /// The waiters of a resource, in their order.
    pub fn queue(&self, resource: &Resource, at: TrueTime) -> Vec<Ticket> {
        match &self.backend {
            Backend::Redis(backend) => backend.queues.of(resource).to_vec(),
            Backend::Memory(backend) => backend.waiting(resource, &self.now(at)),
            Backend::Sqlite(_) | Backend::Dynamodb(_) => Vec::new(),
        }
    }

    /// The messages that were sent to clients' channels since the last call.
    pub fn take_messages(&mut self) -> Vec<(Ticket, Resource, Duration)> {
        match &mut self.backend {
            Backend::Redis(backend) => backend.queues.take_messages(),
            Backend::Memory(backend) => backend.take_messages(),
            Backend::Sqlite(_) | Backend::Dynamodb(_) => Vec::new(),
        }
    }

    /// A step of a client of another library. SQLite and the reference node refuse them all.
    pub fn foreign(&mut self, resource: &Resource, act: &ForeignAct, at: TrueTime) -> ForeignAnswer {
        let unix_ms = self.unix_ms(at);
        match &mut self.backend {
            Backend::Sqlite(_) | Backend::Memory(_) => ForeignAnswer::Refused,
            Backend::Redis(backend) => backend.foreign(resource, act, unix_ms),
            Backend::Dynamodb(backend) => backend.foreign(resource, act),
        }
    }

    /// The live record; `None` once it is released or the store has freed it. `caller` matters to SQLite only, where a
    /// record runs out by the uptime of the process that asks.
    pub fn stored(&self, resource: &Resource, at: TrueTime, caller: &StoreNow) -> Option<StoredRecord> {
        match &self.backend {
            Backend::Sqlite(backend) => backend.stored(resource, caller),
            Backend::Redis(backend) => backend.stored(resource, self.unix_ms(at), &self.wall),
            Backend::Dynamodb(backend) => backend.stored(resource),
            Backend::Memory(backend) => backend.stored(resource, &self.now(at), &self.wall),
        }
    }

    /// The attempt whose mark says that the work is done, if one stands. Wall clocks decide that: in SQLite and DynamoDB
    /// that of the process that asks.
    pub fn done_by(&self, resource: &Resource, at: TrueTime, caller: &StoreNow) -> Option<Nonce> {
        match &self.backend {
            Backend::Sqlite(backend) => backend.done_by(resource, caller.unix_ms),
            Backend::Redis(backend) => backend.done_by(resource, self.unix_ms(at)),
            Backend::Dynamodb(backend) => backend.done_by(resource, caller.unix_ms),
            Backend::Memory(backend) => backend.done_by(resource, self.unix_ms(at)),
        }
    }

    /// The token counter, unless there is none or it is forgotten by now.
    pub fn counter(&self, resource: &Resource, at: TrueTime) -> Option<Token> {
        match &self.backend {
            Backend::Sqlite(backend) => backend.counter(resource),
            Backend::Redis(backend) => backend.counter(resource, self.unix_ms(at)),
            Backend::Dynamodb(backend) => backend.counter(resource),
            Backend::Memory(backend) => backend.counter(resource),
        }
    }

    /// When the token counter is forgotten unless it is used before; `None` where there is none, and where it is kept
    /// for good.
    pub fn forgotten(&self, resource: &Resource, at: TrueTime) -> Option<TrueTime> {
        match &self.backend {
            Backend::Sqlite(_) | Backend::Dynamodb(_) | Backend::Memory(_) => None,
            Backend::Redis(backend) => backend.forgotten(resource, self.unix_ms(at), &self.wall),
        }
    }

    /// The server's wall clock, in nanoseconds since 1970, to be set or driven wrong.
    pub const fn clock_mut(&mut self) -> &mut Clock {
        &mut self.wall
    }

    /// Loses everything, counters too: the store was emptied, or the node came back without its data.
    pub fn wipe(&mut self) {
        match &mut self.backend {
            Backend::Sqlite(backend) => *backend = Sqlite::default(),
            Backend::Redis(backend) => backend.wipe(),
            Backend::Dynamodb(backend) => *backend = Dynamodb::default(),
            Backend::Memory(backend) => *backend = Memory::default(),
        }
    }

    /// One lock is freed behind its holder's back, its counter stays: evicted by Redis, deleted by hand in SQLite,
    /// marked as released by hand in DynamoDB, where lock and counter are one row.
    pub fn evict(&mut self, resource: &Resource) {
        match &mut self.backend {
            Backend::Sqlite(backend) => backend.evict(resource),
            Backend::Redis(backend) => backend.evict(resource),
            Backend::Dynamodb(backend) => backend.evict(resource),
            Backend::Memory(backend) => backend.evict(resource),
        }
    }

    /// A row goes, by hand or by DynamoDB's time to live. Other stores have none.
    pub fn delete(&mut self, resource: &Resource) {
        if let Backend::Dynamodb(backend) = &mut self.backend {
            backend.rows.remove(resource);
        }
    }

    /// Writes a lease's length into a row of DynamoDB in a form that no client here understands.
    pub fn obscure(&mut self, resource: &Resource) {
        if let Backend::Dynamodb(backend) = &mut self.backend
            && let Some(row) = backend.rows.get_mut(resource)
        {
            row.lease_duration = None;
        }
    }

    /// The time from which a row of DynamoDB may be removed, in seconds since 1970.
    pub fn kept_until(&self, resource: &Resource) -> Option<u64> {
        match &self.backend {
            Backend::Dynamodb(backend) => backend.rows.get(resource)?.kept.until(),
            Backend::Redis(_) | Backend::Memory(_) | Backend::Sqlite(_) => None,
        }
    }

    /// Changes when a row of DynamoDB may be removed, and how long its lease is, as a client with a bug may.
    pub fn spoil(&mut self, resource: &Resource, kept: Option<(u64, Duration)>, length: Option<Duration>) {
        if let Backend::Dynamodb(backend) = &mut self.backend
            && let Some(row) = backend.rows.get_mut(resource)
        {
            row.kept = kept.map_or(row.kept, |(unix_ms, length)| Kept::at(unix_ms, length));
            row.lease_duration = length.or(row.lease_duration);
        }
    }

    /// The present data.
    pub fn snapshot(&self) -> Snapshot {
        Snapshot(self.backend.clone())
    }

    /// Restores the data of some time before.
    pub fn restore(&mut self, snapshot: Snapshot) {
        self.backend = snapshot.0;
    }

    /// Another run begins, of the same server or of a replica in its place.
    pub const fn restart(&mut self) {
        self.run += 1;
    }

    /// Marks a node, as `init` does.
    pub fn mark(&mut self, quorum: QuorumId, max_ttl: Duration) {
        let max_ttl_ms = u64::try_from(max_ttl.as_millis()).unwrap_or(u64::MAX);
        let marker = Marker { quorum, max_ttl_ms, stamp: LossId([0x17; 16]), phase: Phase::Member, run: self.run_id() };
        self.remember(Some(marker));
    }

    /// Writes or removes the marker by hand.
    pub fn remember(&mut self, marker: Option<Marker>) {
        match &mut self.backend {
            Backend::Redis(backend) => backend.member.marker = marker,
            Backend::Memory(backend) => backend.member.marker = marker,
            Backend::Dynamodb(backend) => backend.marker = marker,
            Backend::Sqlite(_) => {}
        }
    }

    /// The node's memory of its membership, in its present run. `None` where it has no marker of this run: then it
    /// votes for no attempt.
    pub fn membership(&self, durability: Durability) -> Option<&Marker> {
        let run = self.run_id();
        let restarted =
            |marker: &Marker| durability == Durability::NotDeclared && marker.is_of_another_run(run.as_ref());
        let marker = match &self.backend {
            Backend::Redis(backend) => backend.member.marker.as_ref(),
            Backend::Memory(backend) => backend.member.marker.as_ref(),
            Backend::Dynamodb(backend) => backend.marker.as_ref(),
            Backend::Sqlite(_) => None,
        };
        marker.filter(|marker| !restarted(marker))
    }

    /// The loss since which the counter of a resource was raised here.
    pub fn raised_since(&self, resource: &Resource) -> Option<LossId> {
        let raised = |member: &MemberState| member.trust.get(resource).map(|raised| raised.since);
        match &self.backend {
            Backend::Redis(backend) => raised(&backend.member),
            Backend::Memory(backend) => raised(&backend.member),
            Backend::Dynamodb(backend) => backend.trust(resource),
            Backend::Sqlite(_) => None,
        }
    }

    /// The attempt and the send whose lock was freed again, because the node does not vote.
    pub fn undone(&self, resource: &Resource) -> Option<(Nonce, Seq)> {
        match &self.backend {
            Backend::Dynamodb(backend) => backend.undone(resource),
            Backend::Redis(_) | Backend::Memory(_) | Backend::Sqlite(_) => None,
        }
    }

    /// The server's name of the present run; `None` where it has none.
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

/// A Redis server's name of one of its runs.
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
    let denial = Denial::new(DenialKind::TokensExhausted, "the token counter is at 2^53 - 1");
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
