//! Generated from `wit/leasehold.wit` by `cargo xtask component --bless`. Do not edit.
//!
//! The check at the protected resource: it rejects writers with older tokens.
//!
//! A new holder claims an item before it reads it, and has its token checked with every write, in the same transaction
//! as the write. A lock alone cannot do that: any amount of time can pass between a holder's check and its write.

mod calls;
mod values;

pub use calls::{Guard, call};
pub(crate) use calls::{Guest, GuestGuard};

/// Payload of `rejected.stale`.
pub struct Stale {
    /// The token that was presented.
    pub token: u64,
    /// The highest token the item has seen.
    pub high_water: u64,
}

/// Payload of `rejected.out-of-order`.
pub struct OutOfOrder {
    /// The number that was presented.
    pub write: u64,
    /// The highest number accepted.
    pub last: u64,
}

/// Payload of `rejected.invalid-token`.
pub struct InvalidToken {
    /// The number that was presented.
    pub token: u64,
    /// The largest token, 2^53 - 1.
    pub max: u64,
}

/// The reason why a claim or a write was rejected.
pub enum Rejected {
    /// A later holder has claimed the item.
    Stale(Stale),
    /// A write of the same lease with a higher number has already been accepted.
    OutOfOrder(OutOfOrder),
    /// Nobody has claimed the item; a holder must claim before it writes.
    Unclaimed,
    /// The number is not a valid token.
    InvalidToken(InvalidToken),
}

/// Texts for a guard in DynamoDB, whose mark is a number in an attribute of the item. Names and values go through
/// `ExpressionAttributeNames` and `ExpressionAttributeValues`.
///
/// A claim is an update `SET` `assign` under the condition `claim`; a write is one `SET` yours`,` `assign` under `check`
/// `AND (`yours`)`. A condition that fails where the mark is above the token is a stale holder's; `check` also fails
/// where the item is gone or was never claimed.
pub struct DynamodbGuard {
    /// The placeholder for the name of the attribute, which the host chooses.
    pub name: String,
    /// The placeholder for the token, a number (`N`).
    pub value: String,
    /// The condition of a claim.
    pub claim: String,
    /// The condition of a write.
    pub check: String,
    /// The assignment that raises the mark.
    pub assign: String,
}

/// Texts for a guard in Redis (5 and newer), whose mark is a separate key in the slot of the data. Run them by
/// `EVAL`; `KEYS[1]` is the mark, `ARGV[1]` the token in decimal digits.
///
/// Each returns one integer: the token if it was accepted; a higher one if a later holder has claimed; -1
/// if nobody has; -2 if the key of the mark holds something else; -3 if the argument is not a token. Unless it
/// was accepted, nothing was written.
pub struct RedisGuard {
    /// From now on only the token and higher ones are accepted.
    pub claim: String,
    /// Checks if a write would be accepted; protects nothing by itself.
    pub check: String,
    /// Checks, and sets `KEYS[2]` to `ARGV[2]`.
    pub check_and_set: String,
    /// `leasehold_check(mark, token)` as a Lua function, to put in front of your own script. If its first
    /// result is not true, return its second at once.
    pub function: String,
}
