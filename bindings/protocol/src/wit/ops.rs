//! Generated from `wit/leasehold.wit` by `cargo xtask component --bless`. Do not edit.
//!
//! The six operations that every store understands, and the three ways in which each can end.
//!
//! An operation was applied, or was certainly not applied, or its outcome is unknown: it may have happened, or may still
//! happen. A host in doubt answers `unknown`, which is always safe.

mod values;

use crate::wit::types::Durability;

/// The state of a quorum as a client has found it.
pub enum Birth {
    /// All nodes abstained at once, and all were waited out: it is a new quorum.
    Yes,
    /// Any other state.
    No,
}

/// The membership data that a client of a quorum sends with every acquire.
///
/// A node remembers, beside its locks, the quorum it belongs to. One that finds no such memory, or one of an earlier
/// run of its server that is not declared durable, has lost its data: it writes down `fresh` and abstains until a
/// client comes that has waited that loss out.
pub struct Membership {
    /// The client's quorum; a node of another quorum refuses for good.
    pub quorum: Vec<u8>,
    /// The longest record of this quorum; a node with another value refuses for good.
    pub max_ttl_ms: u64,
    /// The declared durability of this node.
    pub durability: Durability,
    /// A new id for a loss, if this send is the first to detect it.
    pub fresh: Vec<u8>,
    /// The loss whose abstention this client has waited out, or which it has seen to be over, before this attempt
    /// began.
    pub waited_out: Option<Vec<u8>>,
    /// True if this client found a quorum without a past.
    pub birth: Birth,
    /// For how long the counters of a node that votes again stay in doubt, unless they are raised: 604,800,000 (7
    /// days).
    pub retention_ms: u64,
}

/// Payload of `op.acquire`.
pub struct Acquire {
    /// The attempt.
    pub nonce: Vec<u8>,
    /// The number of this send within the attempt.
    pub seq: u32,
    /// How long the record lasts unless renewed.
    pub record_ttl_ms: u64,
    /// The smallest token to mint.
    pub floor: u64,
    /// A foreign version that has been observed for its whole ttl and may be overwritten.
    pub expect: Option<Vec<u8>>,
    /// Label for people.
    pub owner: String,
    /// Bytes for others to read.
    pub data: Option<Vec<u8>>,
    /// The membership, which the node checks before the lock itself, in the same atomic step; absent for a
    /// single store.
    pub member: Option<Membership>,
    /// Refuse (`done`) if a completion says that the work is done.
    pub unless_done: bool,
}

/// Payload of `op.renew`.
pub struct Renew {
    /// The attempt that was granted.
    pub nonce: Vec<u8>,
    /// The number of this send within the attempt.
    pub seq: u32,
    /// How long the record lasts from now on.
    pub record_ttl_ms: u64,
    /// In a quorum, the declared durability of the node, which then distinguishes a lost record (`conflict`) from lost
    /// memory (`abstains`); absent for a single store.
    pub quorum: Option<Durability>,
}

/// Payload of `op.release`.
pub struct Release {
    /// The attempt whose record to free.
    pub nonce: Vec<u8>,
    /// In a quorum, as in `renew`; absent for a single store.
    pub quorum: Option<Durability>,
}

/// Payload of `op.finish`. If a completion of the same attempt stands, an earlier send has succeeded: answer `finished`.
pub struct Finish {
    /// The attempt whose work is done.
    pub nonce: Vec<u8>,
    /// The fencing token of the lease.
    pub token: u64,
    /// The counter that the grant has shown. Refuse as not ours where the record's is another: its grant is another as well.
    pub counter: u64,
    /// How long the completion stands from now on.
    pub keep_ms: u64,
    /// The label of the holder; may be empty.
    pub owner: String,
    /// The record of the run, to keep beside the completion and to show with it; absent for a run without a result. `runs.read-about`
    /// reads it. A store that has no room for it may refuse the finish: the next one carries none.
    pub about: Option<Vec<u8>>,
    /// In a quorum, as in `renew`; absent for a single store.
    pub quorum: Option<Durability>,
}

/// Payload of `op.revoke`.
pub struct Revoke {
    /// The attempt whose record to mark.
    pub nonce: Vec<u8>,
}

/// Payload of `op.raise`.
pub struct Raise {
    /// The attempt that must still own the record.
    pub nonce: Vec<u8>,
    /// The minimum of the counter afterwards.
    pub token: u64,
    /// The loss since which the node is in doubt; after the raise its counter of this resource is trusted.
    pub loss: Option<Vec<u8>>,
}

/// An operation.
pub enum Op {
    /// Write our record if the resource is free, or released, or still at the expected foreign version; mint a
    /// token.
    Acquire(Acquire),
    /// Extend the expiry, if the record is still ours. Never shortens it, never creates a record.
    Renew(Renew),
    /// Free the resource if the record is still ours; its token counter survives.
    Release(Release),
    /// Write the completion that the work is done, and free the resource, in one step, if the record is still ours.
    Finish(Finish),
    /// Mark the record if it is still that of the attempt: its renewals are refused from then on, release and finish
    /// free it as ever. The expiry stays. No client of this interface sends it.
    Revoke(Revoke),
    /// Raise the node's counter to at least a token, if the record is still ours; return the counter.
    Raise(Raise),
    /// Read the record.
    Read,
}

/// One operation on one resource, on behalf of one lock.
pub struct LockOp {
    /// The lock, so that a host can distinguish the requests of callers.
    pub lock: u64,
    /// The resource.
    pub resource: String,
    /// The operation.
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
    /// The id of the loss, if a vote was requested.
    pub stamp: Option<Vec<u8>>,
}

/// Kinds of temporary failures.
pub enum FaultKind {
    /// No reply in time.
    Timeout,
    /// The connection broke after something was sent.
    Reset,
    /// No connection could be made.
    Unreachable,
    /// The caller cancelled the request.
    Cancelled,
    /// The store reported a failure.
    Server,
    /// The store is busy or throttles.
    Busy,
    /// The store's answer is invalid.
    Protocol,
}

/// A temporary failure.
pub struct Fault {
    /// The kind of failure.
    pub kind: FaultKind,
    /// The message of the store or the operating system, without secrets; cut after 512 bytes.
    pub detail: Option<String>,
}

/// Kinds of permanent refusals.
pub enum DenialKind {
    /// Permission denied.
    Permission,
    /// This client cannot work with the table, schema or type of value.
    Schema,
    /// No valid client wrote the record: a ttl of years, a token above 2^53, unreadable bytes.
    CorruptRecord,
    /// The counter has reached 2^53 - 1.
    TokensExhausted,
    /// No room left to write.
    StorageFull,
    /// The node belongs to another quorum, or has other settings than its clients.
    Membership,
    /// Any other permanent refusal.
    Other,
}

/// A permanent refusal.
pub struct Denial {
    /// The kind of refusal.
    pub kind: DenialKind,
    /// The message of the store and advice, without secrets; cut after 512 bytes.
    pub detail: String,
}

/// The completion of finished work: while it stands, nobody does the work again.
pub struct Completion {
    /// The fencing token of the lease under which the work was done.
    pub token: u64,
    /// The label of its holder; may be empty.
    pub owner: String,
    /// When the work was finished, by the holder's or store's wall clock, in milliseconds since 1970.
    pub at_unix_ms: u64,
    /// How much longer the completion stands; rounded up.
    pub left_ms: u64,
    /// The record of the run that wrote the completion, as it came with `op.finish`; absent where none was kept, and where the
    /// store shows one that does not begin with the nonce of that finish. `runs.read-about` reads it.
    pub about: Option<Vec<u8>>,
    /// In a quorum: a node shows a record of the run, but no majority is known to show the same completion. A store says false.
    pub unsettled: bool,
}

/// A writer that speaks this protocol.
pub struct LeaseHolder {
    /// Its attempt.
    pub nonce: Vec<u8>,
    /// The send that wrote the record last, if the store keeps it.
    pub seq: Option<u32>,
}

/// A record, as much of it as the store keeps.
pub struct Holding {
    /// The client that wrote it; absent if another library did.
    pub holder: Option<LeaseHolder>,
    /// The id of this state of the record.
    pub version: Vec<u8>,
    /// Freed by its holder: only its history is left.
    pub released: bool,
    /// The node's token counter; of several nodes, the token that a majority may have, absent if it is not
    /// certain.
    pub counter: Option<u64>,
    /// The holder's label.
    pub owner: Option<String>,
    /// The ttl written in the record; rounded up.
    pub record_ttl_ms: Option<u64>,
    /// Time until the store frees the record by itself, rounded up; absent if the store does not, and observers must
    /// wait.
    pub left_ms: Option<u64>,
    /// When the lease was granted, by the holder's or store's wall clock, in milliseconds since 1970.
    pub since_unix_ms: Option<u64>,
    /// The holder's data.
    pub data: Option<Vec<u8>>,
}

/// The state of a resource on a node.
pub struct Seen {
    /// The record; absent if the resource is free without a trace of the last holder.
    pub holding: Option<Holding>,
    /// The completion of finished work, in the answer to `op.read`; absent if none stands.
    pub done: Option<Completion>,
}

/// The answer to an operation that was applied.
pub enum Applied {
    /// The record is ours. The counter is the token of this grant; for a resend, the token it already had.
    Acquired(NodeCounter),
    /// The record is ours, but this node of a quorum may have lost tokens: its counter must be raised before
    /// it counts.
    AcquiredInDoubt(DoubtfulCounter),
    /// The expiry was extended.
    Renewed,
    /// The resource is free.
    Released,
    /// The completion stands and the resource is free.
    Finished,
    /// The record is marked: nobody renews it any more.
    Revoked,
    /// The counter is at least the requested token.
    Raised(NodeCounter),
    /// The contents of the record.
    Read(Seen),
}

/// Payload of `outcome.applied`.
pub struct AppliedOutcome {
    /// The answer.
    pub applied: Applied,
}

/// The reason why an operation was not applied.
pub enum Refusal {
    /// The conflicting record; for renew, release, finish, revoke and raise also: no record of ours. For a renewal also
    /// our own record, if it is revoked: it shows the seq 4,294,967,295.
    Conflict(Seen),
    /// The work is done: the completion that stands.
    Done(Completion),
    /// The store throttles requests.
    Throttled(Fault),
    /// The store cannot serve now, and did not begin to: connection refused, database busy, loading.
    Unavailable(Fault),
    /// The node may have lost past grants, so it does not vote yet.
    Abstains(LostMemory),
    /// Credentials are missing or have expired; fresh ones may help.
    NeedsCredentials(Fault),
    /// Trying again will not help.
    Denied(Denial),
}

/// Payload of `outcome.not-applied`.
pub struct NotAppliedOutcome {
    /// The reason.
    pub refusal: Refusal,
}

/// The result of an operation. An invalid one, such as a nonce of 15 bytes or a token of 2^53, counts as
/// unknown.
pub enum Outcome {
    /// It happened.
    Applied(AppliedOutcome),
    /// It certainly did not happen, and this send never will.
    NotApplied(NotAppliedOutcome),
    /// It may have happened, or may still happen.
    Unknown(Fault),
}
