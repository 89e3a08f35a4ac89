//! The eight operations that every store understands, and the three ways in which each can end.
//!
//! An operation was **applied**, or was certainly **not applied**, or its fate is **unknown**: it may have happened, or
//! may yet happen. The rest of this crate makes sure that the third is never taken for one of the first two.

mod fault;

use alloc::boxed::Box;
use alloc::sync::Arc;
use core::fmt;
use core::time::Duration;

use crate::about::About;
use crate::config::MAX_RECORD_TTL;
use crate::ids::{LockId, Nonce, Owner, Payload, Resource, Seq, SessionLabel, Token, Version};
use crate::member::{Durability, LossId, Membership};
use crate::prf::IS_RECORD;
use crate::time::Format;

use fault::bounded;
pub use fault::{Fault, FaultKind};

/// One operation on one resource, on behalf of one lock.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct LockOp {
    /// The lock that the operation is for, so that an embedder can tell requests apart.
    pub lock: LockId,
    /// The resource to operate on.
    pub resource: Resource,
    /// The operation.
    pub op: Op,
}

/// An operation.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "snake_case"))]
pub enum Op {
    /// Write our record if the resource is free, or released, or still at the expected foreign version; mint a token.
    Acquire(Box<Acquire>),
    /// Move the expiry out, if the record is still ours. Never shortens it, never creates a record.
    Renew(Renew),
    /// Free the resource if the record is still ours, and not free already; its token counter survives.
    Release(Release),
    /// Write down that the work is done and free the resource, at once, if the record is still that of our grant.
    Finish(Box<Finish>),
    /// Mark the record if it is still that of the attempt: its renewals are refused from then on. The expiry stays. Release
    /// and finish free it as ever. A record that is marked already is left as it is.
    Revoke(Revoke),
    /// Count one more tell in the record, if it is still that of the attempt and not free. Nothing else is written: neither the
    /// expiry nor the version moves.
    Tell(Tell),
    /// Raise the node's counter to at least a token, if the record is still ours; return the counter.
    Raise(Raise),
    /// Show the record.
    #[cfg_attr(feature = "serde", serde(with = "crate::json::empty"))]
    Read,
}

impl Op {
    /// The attempt that the operation belongs to; `None` for a read.
    pub fn nonce(&self) -> Option<Nonce> {
        match self {
            Self::Acquire(acquire) => Some(acquire.nonce),
            Self::Renew(renew) => Some(renew.nonce),
            Self::Release(release) => Some(release.nonce),
            Self::Finish(finish) => Some(finish.nonce),
            Self::Revoke(revoke) => Some(revoke.nonce),
            Self::Tell(tell) => Some(tell.nonce),
            Self::Raise(raise) => Some(raise.nonce),
            Self::Read => None,
        }
    }
}

/// The session that a lease belongs to: the leases of one client, listed and revoked together.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Session {
    /// Its identity.
    pub nonce: Nonce,
    /// Its name for people.
    pub label: SessionLabel,
}

impl Session {
    /// Returns true if the session is a record of its own, which is renewed in the place of its leases; else it is only a
    /// name. See [`session`](crate::session).
    pub fn is_record(&self) -> bool {
        self.nonce.as_bytes()[0] & IS_RECORD != 0
    }
}

/// Arguments of [`Op::Acquire`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Acquire {
    /// The attempt.
    pub nonce: Nonce,
    /// The number of this send within the attempt.
    pub seq: Seq,
    /// How long the record stands unless renewed: ttl + lock_delay.
    #[cfg_attr(feature = "serde", serde(rename = "record_ttl_ns", with = "crate::json::nanos"))]
    pub record_ttl: Duration,
    /// The smallest token to mint.
    pub floor: Token,
    /// A foreign version that has been observed for its whole ttl and may be overwritten.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub expect: Option<Version>,
    /// Label for people.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "crate::json::is_default"))]
    pub owner: Owner,
    /// Bytes for others to read.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub data: Option<Payload>,
    /// The session that the lease belongs to.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Option::is_none"))]
    pub session: Option<Session>,
    /// The membership data for a node of a quorum; `None` for a single store.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub member: Option<Membership>,
    /// Refuse where a completion says that the work is done.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "crate::json::is_default"))]
    pub unless_done: bool,
    /// The caller waits if the lock is held: the store may keep a place in its queue of waiters. The ticket is the
    /// [lock](LockOp::lock).
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "crate::json::is_default"))]
    pub in_queue: bool,
}

impl Acquire {
    /// An acquisition by nobody in particular, for a single store, which waits in no queue.
    pub fn new(nonce: Nonce, seq: Seq, record_ttl: Duration) -> Self {
        Self {
            nonce,
            seq,
            record_ttl,
            floor: Token::ZERO,
            expect: None,
            owner: Owner::default(),
            data: None,
            session: None,
            member: None,
            unless_done: false,
            in_queue: false,
        }
    }
}

/// Arguments of [`Op::Renew`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Renew {
    /// The attempt that was granted.
    pub nonce: Nonce,
    /// The number of this send within the attempt.
    pub seq: Seq,
    /// How long the record stands from now on: ttl + lock_delay.
    #[cfg_attr(feature = "serde", serde(rename = "record_ttl_ns", with = "crate::json::nanos"))]
    pub record_ttl: Duration,
    /// In a quorum, the durability of the node: it tells a missing record from a lost memory.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub quorum: Option<Durability>,
}

/// Arguments of [`Op::Release`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Release {
    /// The attempt whose record is to be freed.
    pub nonce: Nonce,
    /// In a quorum, the durability of the node, as in [`Renew::quorum`].
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub quorum: Option<Durability>,
}

/// Arguments of [`Op::Finish`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Finish {
    /// The attempt whose work is done. A finish that meets a completion of the same attempt has succeeded before.
    pub nonce: Nonce,
    /// The fencing token of the lease.
    pub token: Token,
    /// The counter of the store as it was after the grant: the token in a single store, perhaps another number at a node of a
    /// quorum. The attempt alone does not tell its grant from one that a late copy of its acquire brought.
    pub counter: Token,
    /// How long the completion stands.
    #[cfg_attr(feature = "serde", serde(rename = "keep_ns", with = "crate::json::nanos"))]
    pub keep: Duration,
    /// Label for people.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "crate::json::is_default"))]
    pub owner: Owner,
    /// The record of the run, which the store keeps beside the completion. It begins with the nonce.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Option::is_none"))]
    pub about: Option<About>,
    /// In a quorum, the durability of the node, as in [`Renew::quorum`].
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub quorum: Option<Durability>,
}

/// Arguments of [`Op::Revoke`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Revoke {
    /// The attempt whose record is to be marked.
    pub nonce: Nonce,
}

/// Arguments of [`Op::Tell`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Tell {
    /// The attempt whose record counts the tell: a session's. Its holder looks at its rows after the next renewal.
    pub nonce: Nonce,
}

/// Arguments of [`Op::Raise`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Raise {
    /// The attempt that must still own the record.
    pub nonce: Nonce,
    /// The least that the counter must show afterwards.
    pub token: Token,
    /// The loss since which the node is in doubt. After the raise its counter of this resource is trusted again. A raise
    /// for an earlier loss changes no trust.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub loss: Option<LossId>,
}

/// How an operation ended.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "snake_case"))]
pub enum Outcome {
    /// It happened.
    Applied(Applied),
    /// It certainly did not happen, and this send of it never will.
    NotApplied(Refusal),
    /// It may have happened, or may yet happen.
    Unknown(Fault),
}

/// The answer to an operation that was applied.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "snake_case"))]
pub enum Applied {
    /// The record is ours.
    Acquired {
        /// The node's counter: the token minted with this grant, or for a resend the one it already had.
        counter: Token,
    },
    /// The record is ours, but this node of a quorum may have forgotten tokens: its counter has to be raised before it
    /// counts.
    AcquiredInDoubt {
        /// The node's counter.
        counter: Token,
        /// The loss after which it is in doubt.
        stamp: LossId,
    },
    /// The expiry was moved out.
    #[cfg_attr(feature = "serde", serde(with = "crate::json::empty"))]
    Renewed,
    /// The expiry was moved out, and the record has counted tells.
    RenewedTold {
        /// How many, since the record was first written.
        told: u64,
    },
    /// The resource is free.
    #[cfg_attr(feature = "serde", serde(with = "crate::json::empty"))]
    Released,
    /// The completion stands and the resource is free.
    #[cfg_attr(feature = "serde", serde(with = "crate::json::empty"))]
    Finished,
    /// The record is marked: nobody renews it any more.
    #[cfg_attr(feature = "serde", serde(with = "crate::json::empty"))]
    Revoked,
    /// The record has counted the tell.
    #[cfg_attr(feature = "serde", serde(with = "crate::json::empty"))]
    Told,
    /// The counter is at least what was asked.
    Raised {
        /// The counter now.
        counter: Token,
    },
    /// The content of the node.
    Read(Seen),
}

/// The reason why an operation was not applied.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "snake_case"))]
pub enum Refusal {
    /// The record in the way; for renew, release, finish, revoke, tell and raise also: no record of ours. For a renewal also our
    /// own record, if it is revoked.
    Conflict(Seen),
    /// The work is done: the completion that stands.
    Done(Box<Completion>),
    /// The store throttles requests.
    Throttled(Fault),
    /// The store cannot serve now, and did not begin to: connection refused, database busy, loading.
    Unavailable(Fault),
    /// The node's memory of past grants is in doubt, so it does not vote yet.
    Abstains {
        /// The loss, if the node was asked for its vote.
        #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
        stamp: Option<LossId>,
    },
    /// Credentials are missing or have expired; fresh ones may help.
    NeedsCredentials(Fault),
    /// Trying again will not help.
    Denied(Denial),
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Conflict(_) => f.write_str("another lease holds the lock"),
            Self::Done(_) => f.write_str("the work is done"),
            Self::Throttled(fault) | Self::Unavailable(fault) | Self::NeedsCredentials(fault) => fault.fmt(f),
            Self::Abstains { .. } => f.write_str("the node does not vote"),
            Self::Denied(denial) => denial.fmt(f),
        }
    }
}

/// A refusal that will not pass by itself.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Denial {
    /// The kind of refusal.
    pub kind: DenialKind,
    /// The message of the store and advice, without secrets.
    #[cfg_attr(feature = "serde", serde(with = "crate::json::detail"))]
    pub detail: Arc<str>,
}

/// Kinds of lasting refusals.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "snake_case"))]
pub enum DenialKind {
    /// Not allowed to do this here.
    Permission,
    /// The table, schema or kind of value is not what this client can work with.
    Schema,
    /// The record was not written by an honest client: a ttl of years, a token above 2^53, bytes that make no record.
    CorruptRecord,
    /// The counter has reached 2^53 - 1.
    TokensExhausted,
    /// No room left to write.
    StorageFull,
    /// The node belongs to another quorum, or has other settings than its clients.
    Membership,
    /// Any other reason that a retry does not remove.
    Other,
}

impl Denial {
    /// A denial with its explanation, on one line; more than 512 bytes are cut.
    pub fn new(kind: DenialKind, detail: &str) -> Self {
        Self { kind, detail: bounded(detail) }
    }
}

impl fmt::Display for Denial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.detail.fmt(f)
    }
}

/// The content of a node for one resource.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Seen {
    /// The record, absent when the resource is free and shows no trace of the last holder.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub holding: Option<Box<Holding>>,
    /// The completion of finished work, in the answer to a read.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub done: Option<Box<Completion>>,
}

/// The completion of finished work: by whom it was done, and for how long nobody does it again.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Completion {
    /// The fencing token of the lease under which the work was done.
    pub token: Token,
    /// The label of its holder.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "crate::json::is_default"))]
    pub owner: Owner,
    /// When the work was finished, by the store's or holder's wall clock, in milliseconds since 1970.
    pub at_unix_ms: u64,
    /// How long the completion still stands.
    #[cfg_attr(feature = "serde", serde(rename = "left_ns", with = "crate::json::nanos"))]
    pub left: Duration,
    /// The record of the run that wrote the completion, where the store has kept it. On a quorum it is only told once a majority
    /// shows the same completion.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Option::is_none"))]
    pub about: Option<About>,
    /// A node of the quorum shows a record of the run, but no majority is known to show the same completion.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "crate::json::is_default"))]
    pub unsettled: bool,
}

/// A record, as much of it as the store keeps.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Holding {
    /// The writer.
    pub holder: Holder,
    /// The version of the record.
    pub version: Version,
    /// Freed by its holder: only its history is left.
    pub released: bool,
    /// The node's token counter; for several nodes the token that a majority may have, `None` if that is not decided.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub counter: Option<Token>,
    /// The holder's label.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub owner: Option<Owner>,
    /// The ttl written in the record.
    #[cfg_attr(
        feature = "serde",
        serde(
            rename = "record_ttl_ns",
            default,
            skip_serializing_if = "Option::is_none",
            with = "crate::json::nanos::option"
        )
    )]
    pub record_ttl: Option<Duration>,
    /// Time until the store frees the record by itself; `None` where it does not, and observers must wait it out.
    #[cfg_attr(
        feature = "serde",
        serde(
            rename = "left_ns",
            default,
            skip_serializing_if = "Option::is_none",
            with = "crate::json::nanos::option"
        )
    )]
    pub left: Option<Duration>,
    /// When the lease was granted, by the holder's or store's wall clock, in milliseconds since 1970.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub since_unix_ms: Option<u64>,
    /// The holder's payload.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub data: Option<Payload>,
    /// The session that the lease belongs to.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Option::is_none"))]
    pub session: Option<Session>,
    /// The number of tells that the record has counted.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "crate::json::is_default"))]
    pub told: u64,
}

/// The writer of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "snake_case"))]
pub enum Holder {
    /// A leasehold client.
    Lease {
        /// Its attempt.
        nonce: Nonce,
        /// The send that wrote the record last, where the store keeps it; [`Seq::LAST`] where the record is revoked.
        #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
        seq: Option<Seq>,
    },
    /// Another library.
    #[cfg_attr(feature = "serde", serde(with = "crate::json::empty"))]
    Foreign,
}

impl Seen {
    /// Refuses a record that no honest client writes, so that no waiter sleeps for ten years.
    ///
    /// # Errors
    /// A ttl, or time left of a record that is not foreign, above 48 h.
    pub fn checked(self) -> Result<Self, Denial> {
        if let Some(holding) = self.holding.as_ref().filter(|holding| !holding.released) {
            // Other libraries may lock for longer. If the store expires the record, no waiter has to observe it.
            let left = holding.left.filter(|_| holding.holder != Holder::Foreign);
            for length in [holding.record_ttl, left].into_iter().flatten() {
                if length > MAX_RECORD_TTL {
                    let detail = alloc::format!(
                        "the record says it lasts {length:?}, but at most {MAX_RECORD_TTL:?} are allowed; if nobody \
                         holds the lock, remove the record by hand"
                    );
                    return Err(Denial::new(DenialKind::CorruptRecord, &detail));
                }
            }
        }
        Ok(self)
    }

    /// The record, unless it is only history.
    pub fn held(&self) -> Option<&Holding> {
        self.holding.as_deref().filter(|holding| !holding.released)
    }
}

impl Holding {
    /// A record that says nothing more.
    pub const fn of(holder: Holder, version: Version) -> Self {
        Self {
            holder,
            version,
            released: false,
            counter: None,
            owner: None,
            record_ttl: None,
            left: None,
            since_unix_ms: None,
            data: None,
            session: None,
            told: 0,
        }
    }

    /// The attempt that wrote the record, if it is one of ours.
    pub(crate) fn nonce(&self) -> Option<Nonce> {
        match self.holder {
            Holder::Lease { nonce, .. } => Some(nonce),
            Holder::Foreign => None,
        }
    }

    /// Returns true if this attempt wrote the record.
    pub fn is_of(&self, nonce: &Nonce) -> bool {
        matches!(&self.holder, Holder::Lease { nonce: theirs, .. } if theirs == nonce)
    }

    /// The send that wrote the record last, where the store keeps it.
    pub fn seq(&self) -> Option<Seq> {
        match self.holder {
            Holder::Lease { seq, .. } => seq,
            Holder::Foreign => None,
        }
    }

    /// Returns true if the lease is revoked: it is held, and nobody renews it any more.
    pub fn is_revoked(&self) -> bool {
        !self.released && self.seq() == Some(Seq::LAST)
    }

    /// Returns true if the store does not expire it, so that only observers can declare it dead.
    pub(crate) fn is_observed(&self) -> bool {
        self.left.is_none() && self.record_ttl.is_some()
    }

    pub(crate) fn format(&self) -> Format {
        match self.holder {
            Holder::Lease { .. } => Format::Leasehold,
            Holder::Foreign => Format::Foreign,
        }
    }
}

/// A request that brought no outcome.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum TransportFault {
    /// Nothing left this machine: none of the operations was applied.
    NotSent(Fault),
    /// Something may have left: every operation may have been applied.
    Unknown(Fault),
}

impl TransportFault {
    /// The outcome of each operation of the request.
    pub fn outcome(&self) -> Outcome {
        match self {
            Self::NotSent(fault) => Outcome::NotApplied(Refusal::Unavailable(fault.clone())),
            Self::Unknown(fault) => Outcome::Unknown(fault.clone()),
        }
    }
}

#[cfg(test)]
mod tests;
