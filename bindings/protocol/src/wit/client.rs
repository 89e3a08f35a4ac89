//! Generated from `wit/leasehold.wit` by `cargo xtask component --bless`. Do not edit.
//!
//! Many locks at once, and the loop that drives them.
//!
//! Call `poll-output` and perform each output until it returns `wake-at`. Then sleep until that instant, a response or a
//! command, call `handle-timeout`, and poll again. `step` is the same loop in one call.

mod calls;
mod values;

use crate::wit::ops::{Completion, Denial, Fault, Holding, LockOp, Outcome};
use crate::wit::stores::{Credentials, RedisCommand, SqlValue};
use crate::wit::types::{ConfigError, LockOptions, OtherError, RunResult};

pub use calls::Client;
pub(crate) use calls::{Guest, GuestClient};

/// One request to one node.
pub struct Transmit {
    /// Correlates the response.
    pub id: u64,
    /// The node.
    pub node: u16,
    /// When the host may stop waiting; from then on the client counts the request as unknown.
    pub deadline_ns: u64,
    /// The operations, in order; several only for renewals.
    pub ops: Vec<LockOp>,
}

/// One header.
pub struct HttpHeader {
    /// In requests lowercase; in responses as received.
    pub name: String,
    /// The value.
    pub value: String,
}

/// A request over HTTP. Send it once: the client decides whether to send again. The host follows no
/// redirection, repeats nothing by itself, and adds only the headers of HTTP itself (`host` as in the URL,
/// `content-length`, `user-agent`).
///
/// It is signed when it is returned, so send it soon.
pub struct HttpRequest {
    /// Correlates the response. One request to a node may become several, each with its own id.
    pub id: u64,
    /// The node.
    pub node: u16,
    /// When the host may stop waiting; from then on the client counts the request as unknown.
    pub deadline_ns: u64,
    /// `GET`, `PUT` or `POST`. A `GET` has no body.
    pub method: String,
    /// The complete URL. A response from a cache is none.
    pub url: String,
    /// In lowercase, each name once. They contain secrets.
    pub headers: Vec<HttpHeader>,
    /// UTF-8. It contains nonces, which are secrets.
    pub body: Vec<u8>,
}

/// Commands for a Redis. Send them once, at once and in order. If one of them is `WAIT`, use a connection that has no
/// other writer until all replies have arrived.
pub struct RedisCommands {
    /// Correlates the replies. One request to a node may become several, each with its own id.
    pub id: u64,
    /// The node.
    pub node: u16,
    /// When the host may stop waiting; the client counts the request as unknown from then on. Close a connection with
    /// missing replies then: they would be read as those of later commands.
    pub deadline_ns: u64,
    /// At least one. They contain nonces, which are secrets.
    pub commands: Vec<RedisCommand>,
}

/// A statement for PostgreSQL. Send it once, as a transaction of its own, with its parameters as `$1`, `$2`...
pub struct Statement {
    /// Correlates the rows. One request to a node may become several, each with its own id.
    pub id: u64,
    /// The node.
    pub node: u16,
    /// When the host may stop waiting; the client counts the request as unknown from then on.
    pub deadline_ns: u64,
    /// The text.
    pub sql: String,
    /// The parameters. They contain nonces, which are secrets.
    pub params: Vec<SqlValue>,
}

/// A resource on a node.
pub struct Subscription {
    /// The node.
    pub node: u16,
    /// The resource.
    pub resource: String,
}

/// One node.
pub struct NodeRef {
    /// Which.
    pub node: u16,
}

/// Payload of `output.wake-at`.
pub struct Wake {
    /// The time on the monotonic clock; absent when nothing is due.
    pub at_ns: Option<u64>,
}

/// Payload of `event.acquired`.
pub struct Acquired {
    /// The fencing token.
    pub token: u64,
    /// The deadline of the lease unless it is renewed.
    pub deadline_ns: u64,
    /// The reply to the acquire was lost, and the record itself showed the grant.
    pub recovered: bool,
}

/// Payload of `event.contended`.
pub struct Contended {
    /// The holder.
    pub holding: Holding,
}

/// Payload of `event.renewed`.
pub struct Renewed {
    /// The new deadline.
    pub deadline_ns: u64,
    /// Validity that was left before: the best early warning.
    pub left_ns: u64,
    /// The reply to an earlier renewal was lost, and the record itself showed the renewal.
    pub recovered: bool,
}

/// Payload of `event.renew-delayed`.
pub struct RenewDelayed {
    /// The unchanged deadline.
    pub deadline_ns: u64,
    /// The failure.
    pub fault: Fault,
}

/// Payload of `event.shortened`.
pub struct Shortened {
    /// The new, earlier deadline.
    pub deadline_ns: u64,
}

/// Payload of `event.expiring`.
pub struct Expiring {
    /// The time when the lease will be lost.
    pub deadline_ns: u64,
}

/// Payload of `event.released`.
pub struct Released {
    /// The store has confirmed that the record was ours until then. Otherwise an answer was lost and the next one
    /// shows no record of ours, or the record has expired by now.
    pub confirmed: bool,
}

/// Payload of `event.finished`.
pub struct Finished {
    /// The completion stands. Otherwise no answer says that it does, and the work may be done again.
    pub confirmed: bool,
    /// The work is done, but its result was not kept: too few nodes had room for it.
    pub result_dropped: bool,
}

/// Payload of `failure.busy` and `failure.timed-out`.
pub struct HeldElsewhere {
    /// The holder, if the store shows it.
    pub holding: Option<Holding>,
}

/// Payload of `failure.abstains`.
pub struct Abstention {
    /// The remaining time, as far as it is known; rounded up.
    pub left_ms: u64,
}

/// The reason why an acquisition ended without the lock.
pub enum Failure {
    /// Held by somebody else; asked with `wait.once`.
    Busy(HeldElsewhere),
    /// Held by somebody else for the whole wait.
    TimedOut(HeldElsewhere),
    /// The store throttled requests for the whole wait.
    Throttled(Fault),
    /// The store could not be reached, or did not answer.
    Unavailable(Fault),
    /// The store may have lost past grants.
    Abstains(Abstention),
    /// The store refuses, and trying again will not help.
    Refused(Denial),
    /// The work of a run is done: the completion that stands.
    Done(Completion),
    /// Nodes of the quorum may have lost completions of finished work, and too few others are left to say that none stands.
    CompletionsInDoubt,
    /// Released before it was granted.
    Cancelled,
    /// Anything without a case in this version of the interface.
    Other(OtherError),
}

/// Payload of `event.failed`.
pub struct Failed {
    /// The reason.
    pub failure: Failure,
}

/// Payload of `lost-reason.taken-over`.
pub struct TakenOver {
    /// The new holder, if the store shows it.
    pub by: Option<Holding>,
}

/// The reason why a lease is over.
pub enum LostReason {
    /// No renewal was confirmed before the deadline.
    Expired,
    /// `max-hold-ms` has ended the renewals.
    MaxHold,
    /// The record belongs to somebody else.
    TakenOver(TakenOver),
    /// The record was released by somebody else, such as an administrator.
    Released,
    /// The store has lost data: it shows no record, or one that is older than the lease.
    RecordGone,
    /// The lease was revoked. Its record still keeps others out: call `client.release` once the work has ended, which frees
    /// it. Otherwise the record runs out by itself.
    Revoked,
    /// Anything without a case in this version of the interface.
    Other(OtherError),
}

/// Payload of `event.lost`.
pub struct Lost {
    /// The reason.
    pub reason: LostReason,
}

/// An event of a lock. An acquisition ends with `acquired` or `failed`, a lease with `lost`, `released` or `finished`.
pub enum Event {
    /// The lock is held.
    Acquired(Acquired),
    /// Somebody else holds the lock; reported once for each acquisition.
    Contended(Contended),
    /// The acquisition ended without the lock.
    Failed(Failed),
    /// The deadline was extended.
    Renewed(Renewed),
    /// A renewal failed; it is repeated while there is time.
    RenewDelayed(RenewDelayed),
    /// A node of the quorum lost our record, and the others cover a shorter time.
    Shortened(Shortened),
    /// The danger zone at the end of the ttl has begun, and no renewal has succeeded.
    Expiring(Expiring),
    /// The lease is over and the lock was not released: the work must stop.
    Lost(Lost),
    /// The release has ended.
    Released(Released),
    /// The finish of a run has ended.
    Finished(Finished),
}

/// Payload of `output.event`.
pub struct LockEvent {
    /// The lock.
    pub lock: u64,
    /// The event.
    pub event: Event,
}

/// Payload of `response.outcomes`, and the answers to a read.
pub struct Outcomes {
    /// One for each operation of the request, in order; missing ones count as unknown. Of a read, one for each node.
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

/// One row.
pub struct Row {
    /// Its columns, in order.
    pub columns: Vec<SqlValue>,
}

/// Payload of `response.rows`.
pub struct Rows {
    /// All of them.
    pub rows: Vec<Row>,
}

/// When a server has refused.
pub enum RefusalTime {
    /// When the host connected: the statement was not sent.
    AtLogin,
    /// In answer to the statement, whose session goes on: the severity is `ERROR`.
    InSession,
    /// With the end of the session, or the driver does not show the severity.
    AtTheEnd,
}

/// Payload of `response.server-error`. An error that does not come from the server is `not-sent` or `unknown`.
pub struct ServerError {
    /// The SQLSTATE.
    pub code: String,
    /// Its message.
    pub message: String,
    /// When the server said so.
    pub when: RefusalTime,
}

/// The result of a request. An answer of an unexpected kind counts as unknown.
pub enum Response {
    /// The node answered, to `output.transmit`.
    Outcomes(Outcomes),
    /// The server answered, to `output.http-request`, with any status.
    HttpResponse(HttpResponse),
    /// The server answered, to `output.redis-commands`, errors included.
    RedisReplies(RedisReplies),
    /// The server answered, to `output.statement`.
    Rows(Rows),
    /// The server refused, to `output.statement`, or did not let the host in.
    ServerError(ServerError),
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
    /// The sum of `ttl-ms` and `lock-delay-ms`.
    pub record_ttl_ms: u64,
    /// The limit: `max-ttl-ms` of the quorum.
    pub max_ttl_ms: u64,
}

/// Payload of `error.above-max-keep`.
pub struct AboveMaxKeep {
    /// The time that was asked for.
    pub keep_ms: u64,
    /// The limit: a node that may have lost completions is in doubt about them for so long.
    pub max_keep_ms: u64,
}

/// Payload of `error.invalid`.
pub struct InvalidArgument {
    /// The argument and the reason.
    pub error: ConfigError,
}

/// A command that was not accepted.
pub enum Error {
    /// The lock id is in use; take a new one for each acquisition.
    DuplicateLock,
    /// No such lock is alive: it was never acquired, or it was lost or released.
    UnknownLock,
    /// The client has as many locks as it may have.
    TooManyLocks(TooManyLocks),
    /// The record would last longer than the quorum allows.
    AboveMaxTtl(AboveMaxTtl),
    /// The completion would stand for longer than the quorum allows.
    AboveMaxKeep(AboveMaxKeep),
    /// A plain lock has no completion, so it cannot be finished.
    NotARun,
    /// The client was closed.
    Closed,
    /// An argument was rejected.
    Invalid(InvalidArgument),
    /// Anything without a case in this version of the interface.
    Other(OtherError),
}

/// Payload of `output.rejected`.
pub struct RejectedCommand {
    /// The lock of the command.
    pub lock: u64,
    /// The reason.
    pub error: Error,
}

/// An output of the client for its host.
pub enum Output {
    /// Perform these operations, and pass their outcomes to `handle-response`.
    Transmit(Transmit),
    /// Send this request over HTTP, and pass the response to `handle-response`.
    HttpRequest(HttpRequest),
    /// Send these commands to a Redis, and pass the replies to `handle-response`.
    RedisCommands(RedisCommands),
    /// Have a PostgreSQL execute this statement, and pass its rows or its error to `handle-response`.
    Statement(Statement),
    /// An event of a lock.
    Event(LockEvent),
    /// Subscribe to wake-ups of a resource, then call `subscribed`.
    Subscribe(Subscription),
    /// Wake-ups of a resource are no longer needed.
    Unsubscribe(Subscription),
    /// The node needs fresh credentials. For a node with the format of a store, call
    /// `set-credentials`; requests wait for it until their deadline. Any other node has refused the old ones: call
    /// `credentials-renewed` when it has new ones.
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

/// Payload of `input.finish`.
pub struct FinishCommand {
    /// The lock.
    pub lock: u64,
    /// The result of the run, for those who come later.
    pub run_result: Option<RunResult>,
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
    /// Its result.
    pub response: Response,
}

/// One resource.
pub struct ResourceRef {
    /// Which.
    pub resource: String,
}

/// Payload of `input.set-credentials`.
pub struct NewCredentials {
    /// The node.
    pub node: u16,
    /// The credentials for its requests from now on.
    pub credentials: Credentials,
}

/// Payload of `input.node-votes`.
pub struct NodeVote {
    /// Which node.
    pub node: u16,
    /// Its last loss of data, after which its counters are in doubt; absent if there was none.
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
    /// As `client.finish`.
    Finish(FinishCommand),
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

/// The result of one `step`.
pub struct Stepped {
    /// In order, without `wake-at`.
    pub outputs: Vec<Output>,
    /// When to call again at the latest, on the monotonic clock; absent when nothing is due.
    pub wake_at_ns: Option<u64>,
}

/// Counts of a client's state and history.
pub struct Stats {
    /// Acquisitions alive, in any state.
    pub locks: u32,
    /// Of these, held.
    pub held: u32,
    /// Requests without a response yet.
    pub in_flight: u32,
    /// Background releases of abandoned attempts.
    pub orphans: u32,
    /// Foreign versions under observation.
    pub observations: u32,
    /// Outputs that the host has not drained.
    pub undrained: u32,
    /// Responses so far without an open request: late, duplicate or invented.
    pub ignored_responses: u64,
    /// Requests so far whose deadline passed without a response.
    pub timed_out_requests: u64,
}

/// The outcome of `client.revoke`.
pub struct Revocation {
    /// True if the lease is revoked, false if it was over. Absent where too few nodes say so, and its holder may keep it: ask again.
    pub is_revoked: Option<bool>,
    /// The answers in the way, of nodes that were not reached or have refused.
    pub troubles: Vec<Outcome>,
}
