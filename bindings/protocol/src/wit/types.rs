//! Generated from `wit/leasehold.wit` by `cargo xtask component --bless`. Do not edit.
//!
//! Ids, settings, and their errors.

mod values;

/// Readings of the host's clocks, sampled after the last input was read and before the first output is performed.
pub struct Now {
    /// Decides everything about validity. It must count suspended time; only differences matter.
    /// A value below an earlier one counts as that earlier one.
    pub monotonic_ns: u64,
    /// Milliseconds since 1970, for token floors and readable records only; never for validity.
    pub unix_ms: u64,
}

/// The settings of a quorum; all its clients must have the same.
pub struct Quorum {
    /// The id.
    pub id: Vec<u8>,
    /// Bounds `ttl-ms` and `lock-delay-ms` of every lock together: 100 to 172,800,000 (48 h). Default 60,000. A node
    /// that has lost its data abstains for a little longer than this.
    pub max_ttl_ms: Option<u64>,
}

/// The durability of a node's acknowledged writes across a restart.
pub enum Durability {
    /// Declared by its operator: a restart alone does not count as a loss.
    Declared,
    /// Not known: a restart counts as a loss.
    NotDeclared,
}

/// How a waiter checks a held lock.
pub enum Poll {
    /// A refused acquire is as cheap as a read (Redis, memory).
    Acquire,
    /// Reads are cheaper than refused writes (DynamoDB, SQLite): read first, write once it is free.
    Read,
}

/// The abilities of one store.
pub struct NodeConfig {
    /// How to check if a held lock became free.
    pub poll: Poll,
    /// True if the store can notify waiters of a release.
    pub watch: bool,
    /// Most renewals in one request, at least 1. Default 100.
    pub batch: Option<u32>,
    /// In a quorum: the durability of acknowledged writes. Default `not-declared`.
    pub durability: Option<Durability>,
}

/// Limits of one client's state; each at least 1.
pub struct Limits {
    /// Acquisitions alive at once, held, waiting or queued. Default 1,000,000.
    pub locks: Option<u32>,
    /// Background releases alive at once; above it, a record is left to expire. Default 100,000.
    pub orphans: Option<u32>,
    /// Resources whose foreign versions are observed. Default 1,024.
    pub observations: Option<u32>,
}

/// Settings of one client.
pub struct Config {
    /// One entry for each store, 1 to 31; several form a quorum.
    pub nodes: Vec<NodeConfig>,
    /// How far the rate of a clock may be off, in parts per million: 100 to 100,000. Default 10,000, which is 1%.
    /// Every client of a store should use the same value.
    pub drift_ppm: Option<u32>,
    /// The longest wait for one reply: 10 to 60,000. Default 500; never more than a sixth of a lock's ttl.
    pub request_timeout_ms: Option<u64>,
    /// Limits of the client's state.
    pub limits: Limits,
    /// Makes the nodes remember their quorum, so that a node that has lost its data does not vote as if it
    /// had not. Without it, nodes must never lose data. A single node ignores it.
    pub quorum: Option<Quorum>,
}

/// The form of a result.
pub enum ResultKind {
    /// Bytes of any kind.
    Bytes,
    /// A value as JSON writes it, in UTF-8.
    Json,
    /// The output of a command.
    Output,
}

/// The result of a run, for those who come later.
pub struct RunResult {
    /// The form of the bytes.
    pub kind: ResultKind,
    /// At most 4,096 bytes.
    pub bytes: Vec<u8>,
}

/// The record of a run beside its completion.
pub struct RunRecord {
    /// When the run began, by the clock of the one that did it, in milliseconds since 1970.
    pub began_unix_ms: u64,
    /// The number of attempts with this one; 0 if they were not counted.
    pub attempts: u32,
    /// The result, if one was kept.
    pub run_result: Option<RunResult>,
}

/// The options of a run.
pub struct RunOptions {
    /// How long the completion of finished work stands: from `ttl-ms` to 3,153,600,000,000 (100 years); in a quorum no more
    /// than the default, 604,800,000 (7 days).
    pub keep_ms: Option<u64>,
    /// True is the word of an operator that no completion was lost: nodes of a quorum that have lost their data count all the
    /// same.
    pub trust_quorum: bool,
    /// Run although a completion may say that the work is done. Default false.
    pub even_if_done: bool,
}

/// Payload of `wait.for`.
pub struct WaitFor {
    /// How long to go on trying.
    pub wait_ms: u64,
}

/// How long to try.
pub enum Wait {
    /// One attempt, answered as soon as it is decided.
    Once,
    /// New attempts until some time has passed. A pending attempt is still awaited, for at most one request
    /// timeout.
    For(WaitFor),
    /// Until granted, cancelled or refused.
    Forever,
}

/// Payload of `renewal.every`.
pub struct RenewEvery {
    /// Time between renewals: 10 to half the ttl.
    pub interval_ms: u64,
}

/// When to extend a lease's expiry.
pub enum Renewal {
    /// Every third of the ttl.
    Automatic,
    /// Never: the lease ends at its first deadline.
    Off,
    /// At a given interval.
    Every(RenewEvery),
}

/// The options of one acquisition.
pub struct LockOptions {
    /// How long a grant lasts without renewal: 100 to 86,400,000 (24 h). Default 30,000.
    pub ttl_ms: Option<u64>,
    /// How long to try.
    pub wait: Wait,
    /// How long the lock stays closed after a lease has expired, at most 86,400,000 (24 h). 0 is usual;
    /// a released lock is free at once either way.
    pub lock_delay_ms: u64,
    /// Stops renewal this long after the grant, so that a stuck worker cannot hold forever; at least the ttl.
    /// Default: no bound.
    pub max_hold_ms: Option<u64>,
    /// When to extend the expiry.
    pub renewal: Renewal,
    /// A label for people, at most 256 bytes without control characters; may be empty.
    pub owner: String,
    /// Bytes that others can read while the lease lasts.
    pub data: Option<Vec<u8>>,
    /// Makes it a run: work that is done once, so that the acquisition fails if a completion says that it is done. Default: a
    /// plain lock, which neither reads nor writes completions.
    pub run: Option<RunOptions>,
}

/// Payload of `config-error.too-long`.
pub struct TooLong {
    /// Which setting.
    pub what: String,
    /// Its size.
    pub bytes: u32,
    /// The most it may have.
    pub max_bytes: u32,
}

/// Payload of `config-error.control-character`.
pub struct ControlCharacter {
    /// Which setting.
    pub what: String,
    /// Byte offset of the character.
    pub at: u32,
    /// Its code point.
    pub code: u32,
}

/// Payload of `config-error.session-label`.
pub struct RefusedSessionLabel {
    /// The label given; of a long one its beginning.
    pub given: String,
}

/// Payload of `config-error.too-short`.
pub struct TooShort {
    /// Which setting.
    pub what: String,
    /// The value given.
    pub value_ms: u64,
    /// The smallest allowed.
    pub min_ms: u64,
}

/// Payload of `config-error.too-far`.
pub struct TooFar {
    /// Which setting.
    pub what: String,
    /// The value given.
    pub value_ms: u64,
    /// The largest allowed.
    pub max_ms: u64,
}

/// Payload of `config-error.keep-below-ttl`.
pub struct KeepBelowTtl {
    /// How long the completion would stand.
    pub keep_ms: u64,
    /// The ttl of the lease.
    pub ttl_ms: u64,
}

/// Payload of `config-error.drift`.
pub struct DriftOutOfBounds {
    /// The value given.
    pub ppm: u32,
    /// The smallest allowed.
    pub min_ppm: u32,
    /// The largest allowed.
    pub max_ppm: u32,
}

/// Payload of `config-error.nodes`.
pub struct WrongNodeCount {
    /// How many were given.
    pub count: u32,
    /// The most.
    pub max: u32,
}

/// Payload of `config-error.zero-limit`.
pub struct ZeroLimit {
    /// Which limit.
    pub what: String,
}

/// Payload of `config-error.too-few-bytes`.
pub struct TooFewBytes {
    /// `seed`, `fresh` or `quorum id`.
    pub what: String,
    /// How many were given.
    pub bytes: u32,
    /// The fewest.
    pub min_bytes: u32,
}

/// Payload of `config-error.stores`.
pub struct WrongStoreCount {
    /// How many were given.
    pub count: u32,
    /// How many nodes there are.
    pub nodes: u32,
}

/// Payload of `config-error.store`.
pub struct RefusedStore {
    /// The node.
    pub node: u16,
    /// The problem, and how to fix it, without secrets.
    pub detail: String,
}

/// Payload of the `other` cases.
pub struct OtherError {
    /// A message for people.
    pub message: String,
}

/// The reason why a setting or an argument was rejected: the value and its bound.
pub enum ConfigError {
    /// A resource without a name.
    EmptyResource,
    /// A key of a run without a name.
    EmptyKey,
    /// A text or payload above its bound.
    TooLong(TooLong),
    /// A NUL, newline or other control character in a name or label.
    ControlCharacter(ControlCharacter),
    /// A label of a session that is empty, too long, or has a character that not every store can keep in a name.
    SessionLabel(RefusedSessionLabel),
    /// A duration below its bound.
    TooShort(TooShort),
    /// A duration above its bound.
    TooFar(TooFar),
    /// A completion of finished work that would end before the lease of its run.
    KeepBelowTtl(KeepBelowTtl),
    /// A drift outside its bounds.
    Drift(DriftOutOfBounds),
    /// No node, or too many nodes.
    Nodes(WrongNodeCount),
    /// A limit of zero.
    ZeroLimit(ZeroLimit),
    /// A seed, an entropy or a name of a quorum below its size.
    TooFewBytes(TooFewBytes),
    /// `client.create-wired` was given another number of stores than of nodes.
    Stores(WrongStoreCount),
    /// The settings or credentials of one store are invalid.
    Store(RefusedStore),
    /// Anything without a case in this version of the interface.
    Other(OtherError),
}
