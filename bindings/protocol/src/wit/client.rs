//! Generated from `wit/leasehold.wit` by `cargo xtask component --bless`. Do not edit.
//!
//! Many locks at once, and the loop that drives them.
//!
//! Call `poll-output` and do what it says until it answers `wake-at`. Then sleep until that instant, a response or a
//! command, call `handle-timeout`, and poll again. `step` is the same loop in one call.

mod calls;
mod values;

use crate::wit::ops::{Denial, Fault, Holding, LockOp, Outcome};
use crate::wit::stores::{Credentials, RedisCommand};
use crate::wit::types::{ConfigError, LockOptions, OtherError};

pub use calls::Client;
pub(crate) use calls::{Guest, GuestClient};

/// One request to one node.
pub struct Transmit {
    /// Correlates the response.
    pub id: u64,
    /// To whom.
    pub node: u16,
    /// When the host may stop waiting; the client counts the request as unknown from then on.
    pub deadline_ns: u64,
    /// What to do, in order; several only for renewals.
    pub ops: Vec<LockOp>,
}

/// One header.
pub struct HttpHeader {
    /// In requests lowercase; in responses as it comes.
    pub name: String,
    /// What stands behind the colon.
    pub value: String,
}

/// A request over HTTP, to be sent once: whether to send again is for the client to decide. The host follows no
/// redirection, repeats nothing by itself, and adds no headers but those of HTTP itself (`host` as the URL has it,
/// `content-length`, `user-agent`).
///
/// It is signed when it is handed out, so that it should leave soon.
pub struct HttpRequest {
    /// Correlates the response. What is one request to a node may become several, each with an id of its own.
    pub id: u64,
    /// To whom.
    pub node: u16,
    /// When the host may stop waiting; the client counts the request as unknown from then on.
    pub deadline_ns: u64,
    /// Always `POST`.
    pub method: String,
    /// Where to, whole.
    pub url: String,
    /// In lowercase, each name once. They hold secrets.
    pub headers: Vec<HttpHeader>,
    /// UTF-8. It names attempts, and so holds secrets too.
    pub body: Vec<u8>,
}

/// Commands to be sent to a Redis once, at once and in order. If one of them is `WAIT`, on a connection that nobody
/// else writes to until all replies are there.
pub struct RedisCommands {
    /// Correlates the replies. What is one request to a node may become several, each with an id of its own.
    pub id: u64,
    /// To whom.
    pub node: u16,
    /// When the host may stop waiting; the client counts the request as unknown from then on. A connection on which
    /// replies are still missing then must be closed: they would be taken for those of later commands.
    pub deadline_ns: u64,
    /// At least one. They name attempts, and so hold secrets.
    pub commands: Vec<RedisCommand>,
}

/// A resource on a node.
pub struct Subscription {
    /// Where.
    pub node: u16,
    /// For what.
    pub resource: String,
}

/// One node.
pub struct NodeRef {
    /// Which.
    pub node: u16,
}

/// Payload of `output.wake-at`.
pub struct Wake {
    /// When, on the monotonic clock; absent when nothing is due.
    pub at_ns: Option<u64>,
}

/// Payload of `event.acquired`.
pub struct Acquired {
    /// The fencing token.
    pub token: u64,
    /// Until when the lease is believed in unless renewed.
    pub deadline_ns: u64,
    /// The reply to the acquire was lost, and the record itself told.
    pub recovered: bool,
}

/// Payload of `event.contended`.
pub struct Contended {
    /// Who.
    pub holding: Holding,
}

/// Payload of `event.renewed`.
pub struct Renewed {
    /// The new deadline.
    pub deadline_ns: u64,
    /// Validity that was left before: the best early warning there is.
    pub left_ns: u64,
    /// The reply to an earlier renewal was lost, and the record itself told.
    pub recovered: bool,
}

/// Payload of `event.renew-delayed`.
pub struct RenewDelayed {
    /// The deadline, unmoved.
    pub deadline_ns: u64,
    /// What went wrong.
    pub fault: Fault,
}

/// Payload of `event.shortened`.
pub struct Shortened {
    /// The new, earlier deadline.
    pub deadline_ns: u64,
}

/// Payload of `event.expiring`.
pub struct Expiring {
    /// When the lease will be lost.
    pub deadline_ns: u64,
}

/// Payload of `event.released`.
pub struct Released {
    /// The store has confirmed that the record was ours until then. Otherwise an answer was lost and the next one
    /// shows no record of ours, or the record has run out by itself by now.
    pub confirmed: bool,
}

/// Payload of `failure.busy` and `failure.timed-out`.
pub struct HeldElsewhere {
    /// By whom, where the store shows it.
    pub holding: Option<Holding>,
}

/// Payload of `failure.abstains`.
pub struct Abstention {
    /// For how long still, as far as is known; rounded up.
    pub left_ms: u64,
}

/// Why an acquisition ended without the lock.
pub enum Failure {
    /// Held by somebody else; asked with `wait.once`.
    Busy(HeldElsewhere),
    /// Held by somebody else for as long as the caller would wait.
    TimedOut(HeldElsewhere),
    /// The store asked for patience for as long as the caller would wait.
    Throttled(Fault),
    /// The store could not be reached, or did not answer.
    Unavailable(Fault),
    /// The store's memory of past grants is in doubt.
    Abstains(Abstention),
    /// The store refuses, and trying again will not help.
    Refused(Denial),
    /// Released before it was granted.
    Cancelled,
    /// What this version of the interface has no case for.
    Other(OtherError),
}

/// Payload of `event.failed`.
pub struct Failed {
    /// Why.
    pub failure: Failure,
}

/// Payload of `lost-reason.taken-over`.
pub struct TakenOver {
    /// Whose the record is now, where the store shows it.
    pub by: Option<Holding>,
}

/// Why a lease is over.
pub enum LostReason {
    /// No renewal was confirmed before the deadline.
    Expired,
    /// `max-hold-ms` has ended the renewals.
    MaxHold,
    /// The record is somebody else's.
    TakenOver(TakenOver),
    /// The record was released by somebody else, such as an administrator.
    Released,
    /// The record is gone.
    RecordGone,
    /// What this version of the interface has no case for.
    Other(OtherError),
}

/// Payload of `event.lost`.
pub struct Lost {
    /// Why.
    pub reason: LostReason,
}

/// What happened to a lock. An acquisition ends with `acquired` or `failed`, a lease with `lost` or `released`.
pub enum Event {
    /// The lock is held.
    Acquired(Acquired),
    /// Somebody else holds the lock; told once for each acquisition.
    Contended(Contended),
    /// The acquisition ended without the lock.
    Failed(Failed),
    /// The deadline moved out.
    Renewed(Renewed),
    /// A renewal did not succeed; another follows while there is time.
    RenewDelayed(RenewDelayed),
    /// A node of the quorum lost our record, and the others vouch for less.
    Shortened(Shortened),
    /// Less than the danger zone is left and no renewal has succeeded.
    Expiring(Expiring),
    /// The lease is over and the lock was not released: the work must stop.
    Lost(Lost),
    /// The release has ended.
    Released(Released),
}

/// Payload of `output.event`.
pub struct LockEvent {
    /// Which lock.
    pub lock: u64,
    /// What happened.
    pub event: Event,
}

/// Payload of `response.outcomes`.
pub struct Outcomes {
    /// One for each operation of the request, in order; missing ones count as unknown.
    pub outcomes: Vec<Outcome>,
}

/// Payload of `response.http-response`. A response whose end is missing is none: it is `unknown`.
pub struct HttpResponse {
    /// The status.
    pub status: u16,
    /// All of them, or at least `content-type`, `date` and `location`.
    pub headers: Vec<HttpHeader>,
    /// As it was sent, decompressed. No more than 1,048,577 bytes of it need be read: 1,048,576 is the longest that is
    /// understood.
    pub body: Vec<u8>,
}

/// Payload of `response.redis-replies`.
pub struct RedisReplies {
    /// One reply to each command, in order, in the format of the connection (RESP 2 or 3). Another number of them, or
    /// what is no RESP, counts as unknown.
    pub replies: Vec<u8>,
}

/// What became of a request. An answer of another kind than was asked for counts as unknown.
pub enum Response {
    /// The node answered, to `output.transmit`.
    Outcomes(Outcomes),
    /// The server answered, to `output.http-request`, whatever its status.
    HttpResponse(HttpResponse),
    /// The server answered, to `output.redis-commands`, errors included.
    RedisReplies(RedisReplies),
    /// Nothing left this machine: none of the operations was applied.
    NotSent(Fault),
    /// Something may have left: every operation may have been applied.
    Unknown(Fault),
}

/// Payload of `error.too-many-locks`.
pub struct TooManyLocks {
    /// The limit.
    pub limit: u32,
}

/// Payload of `error.above-max-ttl`.
pub struct AboveMaxTtl {
    /// What was asked for: `ttl-ms` and `lock-delay-ms` together.
    pub record_ttl_ms: u64,
    /// The most: `max-ttl-ms` of the quorum.
    pub max_ttl_ms: u64,
}

/// Payload of `error.invalid`.
pub struct InvalidArgument {
    /// Which, and why.
    pub error: ConfigError,
}

/// A command that was not accepted.
pub enum Error {
    /// The lock id is in use; take a new one for each acquisition.
    DuplicateLock,
    /// No such lock is alive: never acquired, lost, or released before.
    UnknownLock,
    /// As many locks as the client may have are alive.
    TooManyLocks(TooManyLocks),
    /// The record would stand for longer than the quorum allows.
    AboveMaxTtl(AboveMaxTtl),
    /// The client was closed.
    Closed,
    /// An argument was refused.
    Invalid(InvalidArgument),
    /// What this version of the interface has no case for.
    Other(OtherError),
}

/// Payload of `output.rejected`.
pub struct RejectedCommand {
    /// The lock that the command was about.
    pub lock: u64,
    /// Why.
    pub error: Error,
}

/// What the client tells its host.
pub enum Output {
    /// Perform these operations, and hand their outcomes to `handle-response`.
    Transmit(Transmit),
    /// Send this request over HTTP, and hand the response to `handle-response`.
    HttpRequest(HttpRequest),
    /// Send these commands to a Redis, and hand the replies to `handle-response`.
    RedisCommands(RedisCommands),
    /// Something happened to a lock.
    Event(LockEvent),
    /// Ask for wake-ups on a resource, then call `subscribed`.
    Subscribe(Subscription),
    /// Wake-ups on a resource are no longer needed.
    Unsubscribe(Subscription),
    /// The node wants fresh credentials. For nodes that are spoken to in the format of a store: call
    /// `set-credentials`; requests wait for it until their deadline. For others the node has refused: call
    /// `credentials-renewed` when it has them.
    NeedCredentials(NodeRef),
    /// A command given to `step` was not accepted.
    Rejected(RejectedCommand),
    /// Nothing more to do: sleep until then, or until a response or a command, then call `handle-timeout`.
    WakeAt(Wake),
}

/// Payload of `input.acquire`.
pub struct AcquireCommand {
    /// Chosen by the host.
    pub lock: u64,
    /// What to lock.
    pub resource: String,
    /// How.
    pub options: LockOptions,
}

/// One lock.
pub struct LockRef {
    /// Which.
    pub lock: u64,
}

/// Payload of `input.response`.
pub struct RequestResponse {
    /// The request.
    pub id: u64,
    /// What became of it.
    pub response: Response,
}

/// One resource.
pub struct ResourceRef {
    /// Which.
    pub resource: String,
}

/// Payload of `input.set-credentials`.
pub struct NewCredentials {
    /// Whose.
    pub node: u16,
    /// What its requests carry from now on.
    pub credentials: Credentials,
}

/// Payload of `input.node-votes`.
pub struct NodeVote {
    /// Which node.
    pub node: u16,
    /// The loss of data since which its counters are in doubt; absent where it had none.
    pub loss: Option<Vec<u8>>,
}

/// Payload of `input.reseed`.
pub struct NewSeed {
    /// The new seed.
    pub seed: Vec<u8>,
}

/// The commands of `client` as data, for `step`.
pub enum Input {
    /// As `client.acquire`.
    Acquire(AcquireCommand),
    /// As `client.release`.
    Release(LockRef),
    /// As `client.declare-lost`.
    DeclareLost(LockRef),
    /// As `client.handle-response`.
    Response(RequestResponse),
    /// As `client.notified`.
    Notified(ResourceRef),
    /// As `client.subscribed`.
    Subscribed(Subscription),
    /// As `client.credentials-renewed`.
    CredentialsRenewed(NodeRef),
    /// As `client.set-credentials`.
    SetCredentials(NewCredentials),
    /// As `client.node-votes`.
    NodeVotes(NodeVote),
    /// As `client.reseed`.
    Reseed(NewSeed),
    /// As `client.close`.
    Close,
}

/// What one `step` brought.
pub struct Stepped {
    /// In order, without `wake-at`.
    pub outputs: Vec<Output>,
    /// When to call again at the latest, on the monotonic clock; absent when nothing is due.
    pub wake_at_ns: Option<u64>,
}

/// Counts of what a client keeps and has seen.
pub struct Stats {
    /// Acquisitions alive, in any state.
    pub locks: u32,
    /// Of these, held.
    pub held: u32,
    /// Requests without a response yet.
    pub in_flight: u32,
    /// Background releases of attempts that were given up.
    pub orphans: u32,
    /// Foreign versions under observation.
    pub observations: u32,
    /// Outputs that the host has not drained.
    pub undrained: u32,
    /// Responses so far that belonged to no open request: late, duplicate or made up.
    pub ignored_responses: u64,
    /// Requests so far whose deadline passed without a response.
    pub timed_out_requests: u64,
}
