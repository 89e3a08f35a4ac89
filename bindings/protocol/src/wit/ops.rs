//! Generated from `wit/leasehold.wit` by `cargo xtask component --bless`. Do not edit.
//!
//! The five operations that every store understands, and the three ways in which each can end.
//!
//! An operation was applied, or was certainly not applied, or its fate is unknown: it may have happened, or may yet
//! happen. A host in doubt answers `unknown`, which is always safe.

mod values;

use crate::wit::types::Durability;

/// Whether a client has found a quorum unborn.
pub enum Birth {
    /// All nodes abstained at once, and all were waited out: none of them has ever forgotten anything.
    Yes,
    /// Anything else.
    No,
}

/// What a client of a quorum says along with every acquire.
///
/// A node remembers, beside its locks, the quorum it belongs to. One that finds no such memory, or one of an earlier
/// run of its server that is not declared durable, has lost its data: it writes down `fresh` and abstains until a
/// client comes that has waited that loss out.
pub struct Membership {
    /// The quorum it means; a node of another refuses for good.
    pub quorum: Vec<u8>,
    /// The longest time that a record of this quorum stands; a node that knows another refuses for good.
    pub max_ttl_ms: u64,
    /// What is known of this node.
    pub durability: Durability,
    /// The name of a loss, should this send be the first to find it; never used before.
    pub fresh: Vec<u8>,
    /// The loss whose abstention this client has waited out, or which it has seen to be over, before this attempt
    /// began.
    pub waited_out: Option<Vec<u8>>,
    /// Whether this client found the quorum unborn.
    pub birth: Birth,
    /// For how long the counters of a node that votes again stay in doubt, unless they are raised: 604,800,000 (7
    /// days).
    pub retention_ms: u64,
}

/// Payload of `op.acquire`.
pub struct Acquire {
    /// The attempt.
    pub nonce: Vec<u8>,
    /// Which send of the attempt this is.
    pub seq: u32,
    /// How long the record stands unless renewed.
    pub record_ttl_ms: u64,
    /// The smallest token to mint.
    pub floor: u64,
    /// A foreign version that has been observed for its whole ttl and may be overwritten.
    pub expect: Option<Vec<u8>>,
    /// Label for people.
    pub owner: String,
    /// Bytes for others to read.
    pub data: Option<Vec<u8>>,
    /// The quorum that is asked, which the node checks before the lock itself, in the same atomic step; absent for a
    /// single store.
    pub member: Option<Membership>,
}

/// Payload of `op.renew`.
pub struct Renew {
    /// The attempt that was granted.
    pub nonce: Vec<u8>,
    /// Which send of the attempt this is.
    pub seq: u32,
    /// How long the record stands from now on.
    pub record_ttl_ms: u64,
    /// In a quorum, what is known of the node, which then tells a record that is gone (`conflict`) from a memory that
    /// is (`abstains`); absent for a single store.
    pub quorum: Option<Durability>,
}

/// Payload of `op.release`.
pub struct Release {
    /// The attempt whose record is to be freed.
    pub nonce: Vec<u8>,
    /// In a quorum, what is known of the node, as in `renew`; absent for a single store.
    pub quorum: Option<Durability>,
}

/// Payload of `op.raise`.
pub struct Raise {
    /// The attempt that must still own the record.
    pub nonce: Vec<u8>,
    /// The least that the counter must show afterwards.
    pub token: u64,
    /// The loss since which the node is in doubt; from then on it is trusted with this resource.
    pub loss: Option<Vec<u8>>,
}

/// An operation.
pub enum Op {
    /// Write our record if the resource is free, or released, or still at the expected foreign version; mint a
    /// token.
    Acquire(Acquire),
    /// Push the expiry out, if the record is still ours. Never shortens it, never creates a record.
    Renew(Renew),
    /// Free the resource if the record is still ours; its token counter survives.
    Release(Release),
    /// Lift the node's counter to at least a token, if the record is still ours; answer the counter.
    Raise(Raise),
    /// Show what is there.
    Read,
}

/// One operation on one resource, on behalf of one lock.
pub struct LockOp {
    /// For whom, so that a host can tell one caller's requests from another's.
    pub lock: u64,
    /// On what.
    pub resource: String,
    /// What to do.
    pub op: Op,
}

/// Payload of `applied.acquired` and `applied.raised`.
pub struct NodeCounter {
    /// The node's token counter.
    pub counter: u64,
}

/// Payload of `applied.acquired-in-doubt`.
pub struct DoubtfulCounter {
    /// The node's token counter.
    pub counter: u64,
    /// The loss after which it is in doubt.
    pub stamp: Vec<u8>,
}

/// Payload of `refusal.abstains`.
pub struct LostMemory {
    /// Names the loss, where the node was asked for its vote.
    pub stamp: Option<Vec<u8>>,
}

/// Kinds of passing failures.
pub enum FaultKind {
    /// No reply in time.
    Timeout,
    /// The connection broke after something was sent.
    Reset,
    /// No connection could be made.
    Unreachable,
    /// The caller went away while the request was in flight.
    Cancelled,
    /// The store said that it failed.
    Server,
    /// The store is busy or throttles.
    Busy,
    /// The store's answer makes no sense.
    Protocol,
}

/// A failure that may pass by itself.
pub struct Fault {
    /// What kind of failure.
    pub kind: FaultKind,
    /// What the store or the operating system said, without secrets; more than 512 bytes are cut.
    pub detail: Option<String>,
}

/// Kinds of lasting refusals.
pub enum DenialKind {
    /// Not allowed to do this here.
    Permission,
    /// The table, schema or kind of value is not what this client can work with.
    Schema,
    /// The record was not written by an honest client: a ttl of years, a token above 2^53, bytes that make no
    /// record.
    CorruptRecord,
    /// The counter has reached 2^53 - 1.
    TokensExhausted,
    /// No room left to write.
    StorageFull,
    /// The node belongs to another quorum, or has other settings than its clients.
    Membership,
    /// Anything else that a retry does not mend.
    Other,
}

/// A refusal that will not pass by itself.
pub struct Denial {
    /// What kind of refusal.
    pub kind: DenialKind,
    /// What the store said and what to look at, without secrets; more than 512 bytes are cut.
    pub detail: String,
}

/// A writer that speaks this protocol.
pub struct LeaseHolder {
    /// Its attempt.
    pub nonce: Vec<u8>,
    /// The send that wrote the record last, where the store keeps it.
    pub seq: Option<u32>,
}

/// A record, as much of it as the store keeps.
pub struct Holding {
    /// The client that wrote it; absent where another library did.
    pub holder: Option<LeaseHolder>,
    /// Names this state of the record.
    pub version: Vec<u8>,
    /// Freed by its holder: only its history is left.
    pub released: bool,
    /// The node's token counter; of several nodes the token that a majority may have, absent where it is open
    /// which.
    pub counter: Option<u64>,
    /// The holder's label.
    pub owner: Option<String>,
    /// The ttl written in the record; rounded up.
    pub record_ttl_ms: Option<u64>,
    /// Time until the store frees the record by itself, rounded up; absent where it does not, and observers must
    /// wait it out.
    pub left_ms: Option<u64>,
    /// When the lease was granted, by the holder's or store's wall clock, in milliseconds since 1970.
    pub since_unix_ms: Option<u64>,
    /// The holder's bytes.
    pub data: Option<Vec<u8>>,
}

/// What a node shows of a resource.
pub struct Seen {
    /// The record, absent when the resource is free and shows no trace of the last holder.
    pub holding: Option<Holding>,
}

/// The answer to an operation that was applied.
pub enum Applied {
    /// The record is ours. The counter is the token minted with this grant, or for a resend the one it already had.
    Acquired(NodeCounter),
    /// The record is ours, but this node of a quorum may have forgotten tokens: its counter has to be raised before
    /// it counts.
    AcquiredInDoubt(DoubtfulCounter),
    /// The expiry was pushed out.
    Renewed,
    /// The resource is free.
    Released,
    /// The counter is at least what was asked.
    Raised(NodeCounter),
    /// What is there.
    Read(Seen),
}

/// Payload of `outcome.applied`.
pub struct AppliedOutcome {
    /// The answer.
    pub applied: Applied,
}

/// Why an operation was not applied.
pub enum Refusal {
    /// The record that stood in the way; for renew, release and raise also: no record of ours.
    Conflict(Seen),
    /// The store asks for patience.
    Throttled(Fault),
    /// The store cannot serve now, and did not begin to: connection refused, database busy, loading.
    Unavailable(Fault),
    /// The node's memory of past grants is in doubt, so it does not vote yet.
    Abstains(LostMemory),
    /// Credentials are missing or have expired; fresh ones may help.
    NeedsCredentials(Fault),
    /// Trying again will not help.
    Denied(Denial),
}

/// Payload of `outcome.not-applied`.
pub struct NotAppliedOutcome {
    /// Why.
    pub refusal: Refusal,
}

/// How an operation ended. One that cannot be read, such as a nonce of 15 bytes or a token of 2^53, counts as
/// unknown.
pub enum Outcome {
    /// It happened.
    Applied(AppliedOutcome),
    /// It certainly did not happen, and this send of it never will.
    NotApplied(NotAppliedOutcome),
    /// It may have happened, or may yet happen.
    Unknown(Fault),
}
