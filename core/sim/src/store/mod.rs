//! Model stores: what SQLite, Redis and DynamoDB would do with an operation, in memory and under a clock of our choice.

use leasehold_core::op::{Op, Outcome};
use leasehold_core::store::StoreNow;
use leasehold_core::{Nonce, Resource};
use serde::{Deserialize, Serialize};

use crate::clock::{Clock, TrueTime};

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
}

/// One operation as it arrives at a store.
#[derive(Clone, Debug)]
pub struct Ask<'a> {
    /// On what.
    pub resource: &'a Resource,
    /// What to do.
    pub op: &'a Op,
    /// Which of the two conditional writes an acquire is; always [`Form::Floor`] but for DynamoDB.
    pub form: Form,
    /// True time of arrival.
    pub at: TrueTime,
    /// The clocks of the process that asks: SQLite runs inside it.
    pub caller: StoreNow,
}

/// DynamoDB knows no `max()`: an acquire is first tried as one write, then as the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Form {
    /// The token becomes the floor, if the counter is below it.
    Floor,
    /// The token becomes one more than the counter, if that is at least the floor.
    Step,
}

/// What a store says.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Answer {
    /// The outcome.
    Done(Outcome),
    /// The caller's session asks again, in the other form: a second request of its own.
    Again(Form),
}

/// Who holds a resource in the store, as the world knows and no client can.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Standing {
    /// Whose record it is.
    pub by: By,
    /// When the store frees it by itself; `None` where it does not.
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

/// Placeholder for the clock of a server.
pub type ServerClock = Clock;
