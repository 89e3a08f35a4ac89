//! Generated from `wit/leasehold.wit` by `cargo xtask component --bless`. Do not edit.

/// Names of things, settings, and the errors that go with them.
pub mod types {
    use crate::face::*;

    /// What the host's clocks show, sampled after the last input was read and before the first output is performed.
    pub struct Now {
        /// Decides everything about validity. It must count on while the machine is suspended; only differences matter.
        /// A value below an earlier one counts as that earlier one.
        pub monotonic_ns: u64,
        /// Milliseconds since 1970, for token floors and readable records only; never for validity.
        pub unix_ms: u64,
    }

    impl Read for Now {
        fn read<S: Source>(from: &S) -> Result<Self, Unfit> {
            from.only(&["monotonic-ns", "unix-ms"])?;
            Ok(Self {
                monotonic_ns: field(from, "monotonic-ns")?,
                unix_ms: field(from, "unix-ms")?,
            })
        }
    }

    /// What several nodes agree on that form a quorum; all its clients must have the same.
    pub struct Quorum {
        /// Which quorum.
        pub id: Vec<u8>,
        /// Bounds `ttl-ms` and `lock-delay-ms` of every lock together: 100 to 172,800,000 (48 h). Default 60,000. A node
        /// that has lost its data abstains for a little longer than this.
        pub max_ttl_ms: Option<u64>,
    }

    impl Read for Quorum {
        fn read<S: Source>(from: &S) -> Result<Self, Unfit> {
            from.only(&["id", "max-ttl"])?;
            Ok(Self {
                id: field(from, "id")?,
                max_ttl_ms: length(from, "max-ttl")?,
            })
        }
    }

    /// Whether a node is known to keep across a restart all that it has acknowledged.
    pub enum Durability {
        /// Its operator says so: a restart alone then means nothing.
        Declared,
        /// Not known: a restart counts as lost memory.
        NotDeclared,
    }

    impl Read for Durability {
        fn read<S: Source>(from: &S) -> Result<Self, Unfit> {
            Ok(match from.name(&["declared", "not-declared"])? {
                0 => Self::Declared,
                _ => Self::NotDeclared,
            })
        }
    }

    impl Write for Durability {
        fn write<W: Sink>(self, to: &W) -> W::Value {
            to.name(match self {
                Self::Declared => "declared",
                Self::NotDeclared => "not-declared",
            })
        }
    }

    /// Who decides that a record has run out.
    pub enum Poll {
        /// A refused acquire is as cheap as a read (Redis, memory).
        Acquire,
        /// Reads are cheaper than refused writes (DynamoDB, SQLite): look first, write once it is free.
        Read,
    }

    impl Read for Poll {
        fn read<S: Source>(from: &S) -> Result<Self, Unfit> {
            Ok(match from.name(&["acquire", "read"])? {
                0 => Self::Acquire,
                _ => Self::Read,
            })
        }
    }

    /// What one store can do.
    pub struct NodeConfig {
        /// How to look whether a held lock became free.
        pub poll: Poll,
        /// Whether the store can tell waiters of a release.
        pub watch: bool,
        /// Most renewals in one request, at least 1. Default 100.
        pub batch: Option<u32>,
        /// In a quorum: whether the store keeps every acknowledged write through a crash. Default `not-declared`.
        pub durability: Option<Durability>,
    }

    impl Read for NodeConfig {
        fn read<S: Source>(from: &S) -> Result<Self, Unfit> {
            from.only(&["poll", "watch", "batch", "durability"])?;
            Ok(Self {
                poll: field::<Option<_>, _>(from, "poll")?.unwrap_or(Poll::Acquire),
                watch: field::<Option<_>, _>(from, "watch")?.unwrap_or(false),
                batch: field(from, "batch")?,
                durability: field(from, "durability")?,
            })
        }
    }

    /// Bounds on what one client keeps; each at least 1.
    pub struct Limits {
        /// Acquisitions alive at once, held, waiting or queued. Default 1,000,000.
        pub locks: Option<u32>,
        /// Background releases alive at once; above it a record is left to run out. Default 100,000.
        pub orphans: Option<u32>,
        /// Resources whose foreign versions are remembered. Default 1,024.
        pub observations: Option<u32>,
    }

    impl Read for Limits {
        fn read<S: Source>(from: &S) -> Result<Self, Unfit> {
            from.only(&["locks", "orphans", "observations"])?;
            Ok(Self {
                locks: field(from, "locks")?,
                orphans: field(from, "orphans")?,
                observations: field(from, "observations")?,
            })
        }
    }

    /// Settings of one client.
    pub struct Config {
        /// One entry for each store, 1 to 31; several form a quorum.
        pub nodes: Vec<NodeConfig>,
        /// How far the rate of a clock may be off, in parts per million: 100 to 100,000. Default 10,000, which is 1%.
        /// Every client of a store should use the same value.
        pub drift_ppm: Option<u32>,
        /// The longest that one reply is awaited: 10 to 60,000. Default 500. A sixth of a lock's ttl binds as well.
        pub request_timeout_ms: Option<u64>,
        /// Bounds on what the client keeps.
        pub limits: Limits,
        /// Has the nodes remember which quorum they belong to, so that one that has lost its data does not vote as if it
        /// had not. Without it, that must never happen. A single node has no use for it, and ignores it.
        pub quorum: Option<Quorum>,
    }

    impl Read for Config {
        fn read<S: Source>(from: &S) -> Result<Self, Unfit> {
            from.only(&["nodes", "drift-ppm", "request-timeout", "limits", "quorum"])?;
            Ok(Self {
                nodes: field(from, "nodes")?,
                drift_ppm: field(from, "drift-ppm")?,
                request_timeout_ms: length(from, "request-timeout")?,
                limits: field::<Option<_>, _>(from, "limits")?.unwrap_or(Limits { locks: None, orphans: None, observations: None }),
                quorum: field(from, "quorum")?,
            })
        }
    }

    /// Payload of `wait.for`.
    pub struct WaitFor {
        /// How long to go on trying.
        pub wait_ms: u64,
    }

    impl Read for WaitFor {
        fn read<S: Source>(from: &S) -> Result<Self, Unfit> {
            from.only(&["wait"])?;
            Ok(Self {
                wait_ms: needed(length(from, "wait")?, "wait")?,
            })
        }
    }

    /// How long to try.
    pub enum Wait {
        /// One attempt, answered as soon as it is decided.
        Once,
        /// New attempts until some time has passed. One in flight by then is still awaited, for at most one request
        /// timeout.
        For(WaitFor),
        /// Until granted, cancelled or refused.
        Forever,
    }

    impl Read for Wait {
        fn read<S: Source>(from: &S) -> Result<Self, Unfit> {
            let case = from.case("wait", &["once", "for", "forever"])?;
            Ok(match case {
                0 => { from.only(&[])?; Self::Once }
                1 => Self::For(Read::read(from)?),
                _ => { from.only(&[])?; Self::Forever }
            })
        }
    }

    /// Payload of `renewal.every`.
    pub struct RenewEvery {
        /// Time between renewals: 10 to half the ttl.
        pub interval_ms: u64,
    }

    impl Read for RenewEvery {
        fn read<S: Source>(from: &S) -> Result<Self, Unfit> {
            from.only(&["interval"])?;
            Ok(Self {
                interval_ms: needed(length(from, "interval")?, "interval")?,
            })
        }
    }

    /// When to push a lease's expiry out.
    pub enum Renewal {
        /// Every third of the ttl.
        Automatic,
        /// Never: the lease ends at its first deadline.
        Off,
        /// At an interval of one's own.
        Every(RenewEvery),
    }

    impl Read for Renewal {
        fn read<S: Source>(from: &S) -> Result<Self, Unfit> {
            let case = from.case("renewal", &["automatic", "off", "every"])?;
            Ok(match case {
                0 => { from.only(&[])?; Self::Automatic }
                1 => { from.only(&[])?; Self::Off }
                _ => Self::Every(Read::read(from)?),
            })
        }
    }

    /// What one acquisition asks for.
    pub struct LockOptions {
        /// How long a grant lasts without renewal: 100 to 86,400,000 (24 h). Default 30,000.
        pub ttl_ms: Option<u64>,
        /// How long to try.
        pub wait: Wait,
        /// How long the lock stays closed after a holder let its lease run out, at most 86,400,000 (24 h). 0 is usual;
        /// a released lock is free at once either way.
        pub lock_delay_ms: u64,
        /// Stops renewal this long after the grant, so that a wedged worker cannot hold for ever; at least the ttl.
        /// Default: no bound.
        pub max_hold_ms: Option<u64>,
        /// When to push the expiry out.
        pub renewal: Renewal,
        /// A label for people, at most 256 bytes without control characters; may be empty.
        pub owner: String,
        /// Bytes that others can read while the lease stands.
        pub data: Option<Vec<u8>>,
    }

    impl Read for LockOptions {
        fn read<S: Source>(from: &S) -> Result<Self, Unfit> {
            from.only(&["ttl", "wait", "lock-delay", "max-hold", "renewal", "owner", "data"])?;
            Ok(Self {
                ttl_ms: length(from, "ttl")?,
                wait: field::<Option<_>, _>(from, "wait")?.unwrap_or(Wait::Forever),
                lock_delay_ms: length(from, "lock-delay")?.unwrap_or(0),
                max_hold_ms: length(from, "max-hold")?,
                renewal: field::<Option<_>, _>(from, "renewal")?.unwrap_or(Renewal::Automatic),
                owner: field::<Option<_>, _>(from, "owner")?.unwrap_or(String::new()),
                data: field(from, "data")?,
            })
        }
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

    impl Fields for TooLong {
        fn fields<W: Sink>(self, to: &W) -> Vec<(&'static str, W::Value)> {
            vec![
                ("what", self.what.write(to)),
                ("bytes", self.bytes.write(to)),
                ("max-bytes", self.max_bytes.write(to)),
            ]
        }
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

    impl Fields for ControlCharacter {
        fn fields<W: Sink>(self, to: &W) -> Vec<(&'static str, W::Value)> {
            vec![
                ("what", self.what.write(to)),
                ("at", self.at.write(to)),
                ("code", self.code.write(to)),
            ]
        }
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

    impl Fields for TooShort {
        fn fields<W: Sink>(self, to: &W) -> Vec<(&'static str, W::Value)> {
            vec![
                ("what", self.what.write(to)),
                ("value-ms", self.value_ms.write(to)),
                ("min-ms", self.min_ms.write(to)),
            ]
        }
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

    impl Fields for TooFar {
        fn fields<W: Sink>(self, to: &W) -> Vec<(&'static str, W::Value)> {
            vec![
                ("what", self.what.write(to)),
                ("value-ms", self.value_ms.write(to)),
                ("max-ms", self.max_ms.write(to)),
            ]
        }
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

    impl Fields for DriftOutOfBounds {
        fn fields<W: Sink>(self, to: &W) -> Vec<(&'static str, W::Value)> {
            vec![
                ("ppm", self.ppm.write(to)),
                ("min-ppm", self.min_ppm.write(to)),
                ("max-ppm", self.max_ppm.write(to)),
            ]
        }
    }

    /// Payload of `config-error.nodes`.
    pub struct WrongNodeCount {
        /// How many were given.
        pub count: u32,
        /// The most.
        pub max: u32,
    }

    impl Fields for WrongNodeCount {
        fn fields<W: Sink>(self, to: &W) -> Vec<(&'static str, W::Value)> {
            vec![
                ("count", self.count.write(to)),
                ("max", self.max.write(to)),
            ]
        }
    }

    /// Payload of `config-error.zero-limit`.
    pub struct ZeroLimit {
        /// Which limit.
        pub what: String,
    }

    impl Fields for ZeroLimit {
        fn fields<W: Sink>(self, to: &W) -> Vec<(&'static str, W::Value)> {
            vec![
                ("what", self.what.write(to)),
            ]
        }
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

    impl Fields for TooFewBytes {
        fn fields<W: Sink>(self, to: &W) -> Vec<(&'static str, W::Value)> {
            vec![
                ("what", self.what.write(to)),
                ("bytes", self.bytes.write(to)),
                ("min-bytes", self.min_bytes.write(to)),
            ]
        }
    }

    /// Payload of `config-error.stores`.
    pub struct WrongStoreCount {
        /// How many were given.
        pub count: u32,
        /// How many nodes there are.
        pub nodes: u32,
    }

    impl Fields for WrongStoreCount {
        fn fields<W: Sink>(self, to: &W) -> Vec<(&'static str, W::Value)> {
            vec![
                ("count", self.count.write(to)),
                ("nodes", self.nodes.write(to)),
            ]
        }
    }

    /// Payload of `config-error.store`.
    pub struct RefusedStore {
        /// Whose.
        pub node: u16,
        /// What is wrong, and what would be right, without secrets.
        pub detail: String,
    }

    impl Fields for RefusedStore {
        fn fields<W: Sink>(self, to: &W) -> Vec<(&'static str, W::Value)> {
            vec![
                ("node", self.node.write(to)),
                ("detail", self.detail.write(to)),
            ]
        }
    }

    /// Payload of the `other` cases.
    pub struct OtherError {
        /// What happened, in words.
        pub message: String,
    }

    impl Fields for OtherError {
        fn fields<W: Sink>(self, to: &W) -> Vec<(&'static str, W::Value)> {
            vec![
                ("message", self.message.write(to)),
            ]
        }
    }

    /// Why a setting or an argument was refused: the value and its bound.
    pub enum ConfigError {
        /// A resource without a name.
        EmptyResource,
        /// A text or payload above its bound.
        TooLong(TooLong),
        /// A NUL, newline or other control character in a name or label.
        ControlCharacter(ControlCharacter),
        /// A duration below its bound.
        TooShort(TooShort),
        /// A duration above its bound.
        TooFar(TooFar),
        /// A drift outside its bounds.
        Drift(DriftOutOfBounds),
        /// No node at all, or more than can be counted.
        Nodes(WrongNodeCount),
        /// A limit of zero, which would allow nothing.
        ZeroLimit(ZeroLimit),
        /// A seed, an entropy or a name of a quorum below its size.
        TooFewBytes(TooFewBytes),
        /// `client.create-wired` was given another number of stores than of nodes.
        Stores(WrongStoreCount),
        /// The settings or credentials of one store make no sense.
        Store(RefusedStore),
        /// What this version of the interface has no case for.
        Other(OtherError),
    }

    impl Write for ConfigError {
        fn write<W: Sink>(self, to: &W) -> W::Value {
            match self {
                Self::EmptyResource => to.case("config-error", "empty-resource", Vec::new()),
                Self::TooLong(payload) => to.case("config-error", "too-long", payload.fields(to)),
                Self::ControlCharacter(payload) => to.case("config-error", "control-character", payload.fields(to)),
                Self::TooShort(payload) => to.case("config-error", "too-short", payload.fields(to)),
                Self::TooFar(payload) => to.case("config-error", "too-far", payload.fields(to)),
                Self::Drift(payload) => to.case("config-error", "drift", payload.fields(to)),
                Self::Nodes(payload) => to.case("config-error", "nodes", payload.fields(to)),
                Self::ZeroLimit(payload) => to.case("config-error", "zero-limit", payload.fields(to)),
                Self::TooFewBytes(payload) => to.case("config-error", "too-few-bytes", payload.fields(to)),
                Self::Stores(payload) => to.case("config-error", "stores", payload.fields(to)),
                Self::Store(payload) => to.case("config-error", "store", payload.fields(to)),
                Self::Other(payload) => to.case("config-error", "other", payload.fields(to)),
            }
        }
    }
}

/// The five operations that every store understands, and the three ways in which each can end.
///
/// An operation was applied, or was certainly not applied, or its fate is unknown: it may have happened, or may yet
/// happen. A host in doubt answers `unknown`, which is always safe.
pub mod ops {
    use crate::face::*;
    use super::types::Durability;

    /// Whether a client has found a quorum unborn.
    pub enum Birth {
        /// All nodes abstained at once, and all were waited out: none of them has ever forgotten anything.
        Yes,
        /// Anything else.
        No,
    }

    impl Write for Birth {
        fn write<W: Sink>(self, to: &W) -> W::Value {
            to.name(match self {
                Self::Yes => "yes",
                Self::No => "no",
            })
        }
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

    impl Fields for Membership {
        fn fields<W: Sink>(self, to: &W) -> Vec<(&'static str, W::Value)> {
            vec![
                ("quorum", self.quorum.write(to)),
                ("max-ttl-ms", self.max_ttl_ms.write(to)),
                ("durability", self.durability.write(to)),
                ("fresh", self.fresh.write(to)),
                ("waited-out", self.waited_out.write(to)),
                ("birth", self.birth.write(to)),
                ("retention-ms", self.retention_ms.write(to)),
            ]
        }
    }

    impl Write for Membership {
        fn write<W: Sink>(self, to: &W) -> W::Value {
            to.record("membership", self.fields(to))
        }
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

    impl Fields for Acquire {
        fn fields<W: Sink>(self, to: &W) -> Vec<(&'static str, W::Value)> {
            vec![
                ("nonce", self.nonce.write(to)),
                ("seq", self.seq.write(to)),
                ("record-ttl-ms", self.record_ttl_ms.write(to)),
                ("floor", self.floor.write(to)),
                ("expect", self.expect.write(to)),
                ("owner", self.owner.write(to)),
                ("data", self.data.write(to)),
                ("member", self.member.write(to)),
            ]
        }
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

    impl Fields for Renew {
        fn fields<W: Sink>(self, to: &W) -> Vec<(&'static str, W::Value)> {
            vec![
                ("nonce", self.nonce.write(to)),
                ("seq", self.seq.write(to)),
                ("record-ttl-ms", self.record_ttl_ms.write(to)),
                ("quorum", self.quorum.write(to)),
            ]
        }
    }

    /// Payload of `op.release`.
    pub struct Release {
        /// The attempt whose record is to be freed.
        pub nonce: Vec<u8>,
    }

    impl Fields for Release {
        fn fields<W: Sink>(self, to: &W) -> Vec<(&'static str, W::Value)> {
            vec![
                ("nonce", self.nonce.write(to)),
            ]
        }
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

    impl Fields for Raise {
        fn fields<W: Sink>(self, to: &W) -> Vec<(&'static str, W::Value)> {
            vec![
                ("nonce", self.nonce.write(to)),
                ("token", self.token.write(to)),
                ("loss", self.loss.write(to)),
            ]
        }
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

    impl Write for Op {
        fn write<W: Sink>(self, to: &W) -> W::Value {
            match self {
                Self::Acquire(payload) => to.case("op", "acquire", payload.fields(to)),
                Self::Renew(payload) => to.case("op", "renew", payload.fields(to)),
                Self::Release(payload) => to.case("op", "release", payload.fields(to)),
                Self::Raise(payload) => to.case("op", "raise", payload.fields(to)),
                Self::Read => to.case("op", "read", Vec::new()),
            }
        }
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

    impl Fields for LockOp {
        fn fields<W: Sink>(self, to: &W) -> Vec<(&'static str, W::Value)> {
            vec![
                ("lock", self.lock.write(to)),
                ("resource", self.resource.write(to)),
                ("op", self.op.write(to)),
            ]
        }
    }

    impl Write for LockOp {
        fn write<W: Sink>(self, to: &W) -> W::Value {
            to.record("lock-op", self.fields(to))
        }
    }

    /// Payload of `applied.acquired` and `applied.raised`.
    pub struct NodeCounter {
        /// The node's token counter.
        pub counter: u64,
    }

    impl Read for NodeCounter {
        fn read<S: Source>(from: &S) -> Result<Self, Unfit> {
            from.only(&["counter"])?;
            Ok(Self {
                counter: field(from, "counter")?,
            })
        }
    }

    /// Payload of `applied.acquired-in-doubt`.
    pub struct DoubtfulCounter {
        /// The node's token counter.
        pub counter: u64,
        /// The loss after which it is in doubt.
        pub stamp: Vec<u8>,
    }

    impl Read for DoubtfulCounter {
        fn read<S: Source>(from: &S) -> Result<Self, Unfit> {
            from.only(&["counter", "stamp"])?;
            Ok(Self {
                counter: field(from, "counter")?,
                stamp: field(from, "stamp")?,
            })
        }
    }

    /// Payload of `refusal.abstains`.
    pub struct LostMemory {
        /// Names the loss, where the node was asked for its vote.
        pub stamp: Option<Vec<u8>>,
    }

    impl Read for LostMemory {
        fn read<S: Source>(from: &S) -> Result<Self, Unfit> {
            from.only(&["stamp"])?;
            Ok(Self {
                stamp: field(from, "stamp")?,
            })
        }
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

    impl Read for FaultKind {
        fn read<S: Source>(from: &S) -> Result<Self, Unfit> {
            Ok(match from.name(&["timeout", "reset", "unreachable", "cancelled", "server", "busy", "protocol"])? {
                0 => Self::Timeout,
                1 => Self::Reset,
                2 => Self::Unreachable,
                3 => Self::Cancelled,
                4 => Self::Server,
                5 => Self::Busy,
                _ => Self::Protocol,
            })
        }
    }

    impl Write for FaultKind {
        fn write<W: Sink>(self, to: &W) -> W::Value {
            to.name(match self {
                Self::Timeout => "timeout",
                Self::Reset => "reset",
                Self::Unreachable => "unreachable",
                Self::Cancelled => "cancelled",
                Self::Server => "server",
                Self::Busy => "busy",
                Self::Protocol => "protocol",
            })
        }
    }

    /// A failure that may pass by itself.
    pub struct Fault {
        /// What kind of failure.
        pub kind: FaultKind,
        /// What the store or the operating system said, without secrets; more than 512 bytes are cut.
        pub detail: Option<String>,
    }

    impl Read for Fault {
        fn read<S: Source>(from: &S) -> Result<Self, Unfit> {
            from.only(&["kind", "detail"])?;
            Ok(Self {
                kind: field(from, "kind")?,
                detail: field(from, "detail")?,
            })
        }
    }

    impl Fields for Fault {
        fn fields<W: Sink>(self, to: &W) -> Vec<(&'static str, W::Value)> {
            vec![
                ("kind", self.kind.write(to)),
                ("detail", self.detail.write(to)),
            ]
        }
    }

    impl Write for Fault {
        fn write<W: Sink>(self, to: &W) -> W::Value {
            to.record("fault", self.fields(to))
        }
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

    impl Read for DenialKind {
        fn read<S: Source>(from: &S) -> Result<Self, Unfit> {
            Ok(match from.name(&["permission", "schema", "corrupt-record", "tokens-exhausted", "storage-full", "membership", "other"])? {
                0 => Self::Permission,
                1 => Self::Schema,
                2 => Self::CorruptRecord,
                3 => Self::TokensExhausted,
                4 => Self::StorageFull,
                5 => Self::Membership,
                _ => Self::Other,
            })
        }
    }

    impl Write for DenialKind {
        fn write<W: Sink>(self, to: &W) -> W::Value {
            to.name(match self {
                Self::Permission => "permission",
                Self::Schema => "schema",
                Self::CorruptRecord => "corrupt-record",
                Self::TokensExhausted => "tokens-exhausted",
                Self::StorageFull => "storage-full",
                Self::Membership => "membership",
                Self::Other => "other",
            })
        }
    }

    /// A refusal that will not pass by itself.
    pub struct Denial {
        /// What kind of refusal.
        pub kind: DenialKind,
        /// What the store said and what to look at, without secrets; more than 512 bytes are cut.
        pub detail: String,
    }

    impl Read for Denial {
        fn read<S: Source>(from: &S) -> Result<Self, Unfit> {
            from.only(&["kind", "detail"])?;
            Ok(Self {
                kind: field(from, "kind")?,
                detail: field(from, "detail")?,
            })
        }
    }

    impl Fields for Denial {
        fn fields<W: Sink>(self, to: &W) -> Vec<(&'static str, W::Value)> {
            vec![
                ("kind", self.kind.write(to)),
                ("detail", self.detail.write(to)),
            ]
        }
    }

    /// A writer that speaks this protocol.
    pub struct LeaseHolder {
        /// Its attempt.
        pub nonce: Vec<u8>,
        /// The send that wrote the record last, where the store keeps it.
        pub seq: Option<u32>,
    }

    impl Read for LeaseHolder {
        fn read<S: Source>(from: &S) -> Result<Self, Unfit> {
            from.only(&["nonce", "seq"])?;
            Ok(Self {
                nonce: field(from, "nonce")?,
                seq: field(from, "seq")?,
            })
        }
    }

    impl Fields for LeaseHolder {
        fn fields<W: Sink>(self, to: &W) -> Vec<(&'static str, W::Value)> {
            vec![
                ("nonce", self.nonce.write(to)),
                ("seq", self.seq.write(to)),
            ]
        }
    }

    impl Write for LeaseHolder {
        fn write<W: Sink>(self, to: &W) -> W::Value {
            to.record("lease-holder", self.fields(to))
        }
    }

    /// A record, as much of it as the store keeps.
    pub struct Holding {
        /// The client that wrote it; absent where another library did.
        pub holder: Option<LeaseHolder>,
        /// Names this state of the record.
        pub version: Vec<u8>,
        /// Freed by its holder: only its history is left.
        pub released: bool,
        /// The node's token counter.
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

    impl Read for Holding {
        fn read<S: Source>(from: &S) -> Result<Self, Unfit> {
            from.only(&["holder", "version", "released", "counter", "owner", "record-ttl-ms", "left-ms", "since-unix-ms", "data"])?;
            Ok(Self {
                holder: field(from, "holder")?,
                version: field(from, "version")?,
                released: field(from, "released")?,
                counter: field(from, "counter")?,
                owner: field(from, "owner")?,
                record_ttl_ms: field(from, "record-ttl-ms")?,
                left_ms: field(from, "left-ms")?,
                since_unix_ms: field(from, "since-unix-ms")?,
                data: field(from, "data")?,
            })
        }
    }

    impl Fields for Holding {
        fn fields<W: Sink>(self, to: &W) -> Vec<(&'static str, W::Value)> {
            vec![
                ("holder", self.holder.write(to)),
                ("version", self.version.write(to)),
                ("released", self.released.write(to)),
                ("counter", self.counter.write(to)),
                ("owner", self.owner.write(to)),
                ("record-ttl-ms", self.record_ttl_ms.write(to)),
                ("left-ms", self.left_ms.write(to)),
                ("since-unix-ms", self.since_unix_ms.write(to)),
                ("data", self.data.write(to)),
            ]
        }
    }

    impl Write for Holding {
        fn write<W: Sink>(self, to: &W) -> W::Value {
            to.record("holding", self.fields(to))
        }
    }

    /// What a node shows of a resource.
    pub struct Seen {
        /// The record, absent when the resource is free and shows no trace of the last holder.
        pub holding: Option<Holding>,
    }

    impl Read for Seen {
        fn read<S: Source>(from: &S) -> Result<Self, Unfit> {
            from.only(&["holding"])?;
            Ok(Self {
                holding: field(from, "holding")?,
            })
        }
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

    impl Read for Applied {
        fn read<S: Source>(from: &S) -> Result<Self, Unfit> {
            let case = from.case("applied", &["acquired", "acquired-in-doubt", "renewed", "released", "raised", "read"])?;
            Ok(match case {
                0 => Self::Acquired(Read::read(from)?),
                1 => Self::AcquiredInDoubt(Read::read(from)?),
                2 => { from.only(&[])?; Self::Renewed }
                3 => { from.only(&[])?; Self::Released }
                4 => Self::Raised(Read::read(from)?),
                _ => Self::Read(Read::read(from)?),
            })
        }
    }

    /// Payload of `outcome.applied`.
    pub struct AppliedOutcome {
        /// The answer.
        pub applied: Applied,
    }

    impl Read for AppliedOutcome {
        fn read<S: Source>(from: &S) -> Result<Self, Unfit> {
            from.only(&["applied"])?;
            Ok(Self {
                applied: field(from, "applied")?,
            })
        }
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

    impl Read for Refusal {
        fn read<S: Source>(from: &S) -> Result<Self, Unfit> {
            let case = from.case("refusal", &["conflict", "throttled", "unavailable", "abstains", "needs-credentials", "denied"])?;
            Ok(match case {
                0 => Self::Conflict(Read::read(from)?),
                1 => Self::Throttled(Read::read(from)?),
                2 => Self::Unavailable(Read::read(from)?),
                3 => Self::Abstains(Read::read(from)?),
                4 => Self::NeedsCredentials(Read::read(from)?),
                _ => Self::Denied(Read::read(from)?),
            })
        }
    }

    /// Payload of `outcome.not-applied`.
    pub struct NotAppliedOutcome {
        /// Why.
        pub refusal: Refusal,
    }

    impl Read for NotAppliedOutcome {
        fn read<S: Source>(from: &S) -> Result<Self, Unfit> {
            from.only(&["refusal"])?;
            Ok(Self {
                refusal: field(from, "refusal")?,
            })
        }
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

    impl Read for Outcome {
        fn read<S: Source>(from: &S) -> Result<Self, Unfit> {
            let case = from.case("outcome", &["applied", "not-applied", "unknown"])?;
            Ok(match case {
                0 => Self::Applied(Read::read(from)?),
                1 => Self::NotApplied(Read::read(from)?),
                _ => Self::Unknown(Read::read(from)?),
            })
        }
    }
}

/// Where stores are and how they are spoken to, for `client.create-wired`.
pub mod stores {
    use crate::face::*;

    /// Payload of `store.redis`. The host connects to the primary (never to a replica, not even one that takes writes)
    /// of one server; a Redis Cluster is none.
    pub struct RedisStore {
        /// How long the token counter of an unused lock is kept: 1 to 3,153,600,000,000 (100 years). Default 604,800,000
        /// (7 days).
        pub retention_ms: Option<u64>,
        /// Counts a grant only when so many replicas have it. Each request then has `WAIT` in it and needs a connection
        /// that it does not share. Default: replicas are not asked.
        pub replicas: Option<u32>,
    }

    impl Read for RedisStore {
        fn read<S: Source>(from: &S) -> Result<Self, Unfit> {
            from.only(&["retention", "replicas"])?;
            Ok(Self {
                retention_ms: length(from, "retention")?,
                replicas: field(from, "replicas")?,
            })
        }
    }

    /// How a Redis behind HTTP is spoken to.
    pub enum Dialect {
        /// The REST interface of Upstash, and of what behaves like it.
        Upstash,
        /// Webdis.
        Webdis,
    }

    impl Read for Dialect {
        fn read<S: Source>(from: &S) -> Result<Self, Unfit> {
            Ok(match from.name(&["upstash", "webdis"])? {
                0 => Self::Upstash,
                _ => Self::Webdis,
            })
        }
    }

    /// Whether a server behind HTTP wants to know who asks.
    pub enum Access {
        /// Requests carry no credentials.
        Anonymous,
        /// Requests wait for `client.set-credentials`.
        WithCredentials,
    }

    impl Read for Access {
        fn read<S: Source>(from: &S) -> Result<Self, Unfit> {
            Ok(match from.name(&["anonymous", "with-credentials"])? {
                0 => Self::Anonymous,
                _ => Self::WithCredentials,
            })
        }
    }

    /// Whether secrets may be sent where others on the way can read them.
    pub enum Plaintext {
        /// Only to this machine.
        Refused,
        /// The network is trusted.
        Allowed,
    }

    impl Read for Plaintext {
        fn read<S: Source>(from: &S) -> Result<Self, Unfit> {
            Ok(match from.name(&["refused", "allowed"])? {
                0 => Self::Refused,
                _ => Self::Allowed,
            })
        }
    }

    /// Payload of `store.redis-http`.
    pub struct RedisHttpStore {
        /// Which of the two.
        pub dialect: Dialect,
        /// `https://host`, `http://host:port`, either with a path that the server's own stands below. No user, password
        /// or token, no `?` or `#`.
        pub url: String,
        /// Whether the server wants to know who asks.
        pub access: Access,
        /// As in `redis-store`.
        pub retention_ms: Option<u64>,
        /// Whether credentials may be sent over `http:` beyond this machine. Default `refused`.
        pub plaintext: Option<Plaintext>,
    }

    impl Read for RedisHttpStore {
        fn read<S: Source>(from: &S) -> Result<Self, Unfit> {
            from.only(&["dialect", "url", "access", "retention", "plaintext"])?;
            Ok(Self {
                dialect: field(from, "dialect")?,
                url: field(from, "url")?,
                access: field(from, "access")?,
                retention_ms: length(from, "retention")?,
                plaintext: field(from, "plaintext")?,
            })
        }
    }

    /// The second half of a primary key, the same for all locks.
    pub struct SortKey {
        /// The attribute.
        pub name: String,
        /// What stands in it.
        pub value: String,
    }

    impl Read for SortKey {
        fn read<S: Source>(from: &S) -> Result<Self, Unfit> {
            from.only(&["name", "value"])?;
            Ok(Self {
                name: field(from, "name")?,
                value: field(from, "value")?,
            })
        }
    }

    /// Payload of `store.dynamodb`. Requests always wait for `client.set-credentials`.
    ///
    /// Renewals are requests of their own: as many come at once as `node-config.batch` says, at most 32.
    pub struct DynamodbStore {
        /// The table, by name or ARN.
        pub table: String,
        /// The Region that requests are signed for.
        pub region: String,
        /// The endpoint: `https://host` or `http://host:port`, without a path.
        pub url: String,
        /// The attribute of the partition key. Default `key`.
        pub key: Option<String>,
        /// The sort key of a table that has one.
        pub sort_key: Option<SortKey>,
        /// An attribute for DynamoDB's time to live, in which the row's end of use stands. Default: none is written.
        pub expires: Option<String>,
        /// Whether requests may be sent over `http:` beyond this machine. Default `refused`.
        pub plaintext: Option<Plaintext>,
    }

    impl Read for DynamodbStore {
        fn read<S: Source>(from: &S) -> Result<Self, Unfit> {
            from.only(&["table", "region", "url", "key", "sort-key", "expires", "plaintext"])?;
            Ok(Self {
                table: field(from, "table")?,
                region: field(from, "region")?,
                url: field(from, "url")?,
                key: field(from, "key")?,
                sort_key: field(from, "sort-key")?,
                expires: field(from, "expires")?,
                plaintext: field(from, "plaintext")?,
            })
        }
    }

    /// How requests to a node are written.
    pub enum Store {
        /// Not at all: the host is given whole operations, in `output.transmit`, and performs them itself.
        Operations,
        /// Redis from version 5 on, or Valkey: commands for a connection or a library of the host's.
        Redis(RedisStore),
        /// A Redis behind HTTP.
        RedisHttp(RedisHttpStore),
        /// One table of DynamoDB.
        Dynamodb(DynamodbStore),
    }

    impl Read for Store {
        fn read<S: Source>(from: &S) -> Result<Self, Unfit> {
            let case = from.case("store", &["operations", "redis", "redis-http", "dynamodb"])?;
            Ok(match case {
                0 => { from.only(&[])?; Self::Operations }
                1 => Self::Redis(Read::read(from)?),
                2 => Self::RedisHttp(Read::read(from)?),
                _ => Self::Dynamodb(Read::read(from)?),
            })
        }
    }

    /// Payload of `credentials.aws`.
    pub struct AwsCredentials {
        /// Names the key, and is no secret.
        pub access_key_id: String,
        /// The secret.
        pub secret_access_key: String,
        /// Comes with keys that expire.
        pub session_token: Option<String>,
        /// When they expire, in milliseconds since 1970. Others are asked for five minutes before, and they are used
        /// until ten seconds before, but for five seconds in any case: where they seem to have expired when they come,
        /// the host's clock is more likely to be wrong. Absent where they do not expire.
        pub expires_unix_ms: Option<u64>,
    }

    impl Read for AwsCredentials {
        fn read<S: Source>(from: &S) -> Result<Self, Unfit> {
            from.only(&["access-key-id", "secret-access-key", "session-token", "expires-unix-ms"])?;
            Ok(Self {
                access_key_id: field(from, "access-key-id")?,
                secret_access_key: field(from, "secret-access-key")?,
                session_token: field(from, "session-token")?,
                expires_unix_ms: field(from, "expires-unix-ms")?,
            })
        }
    }

    /// Payload of `credentials.token`.
    pub struct BearerToken {
        /// The secret.
        pub token: String,
    }

    impl Read for BearerToken {
        fn read<S: Source>(from: &S) -> Result<Self, Unfit> {
            from.only(&["token"])?;
            Ok(Self {
                token: field(from, "token")?,
            })
        }
    }

    /// Payload of `credentials.password`.
    pub struct PasswordLogin {
        /// The user, without a colon; may be empty.
        pub user: String,
        /// The secret.
        pub password: String,
    }

    impl Read for PasswordLogin {
        fn read<S: Source>(from: &S) -> Result<Self, Unfit> {
            from.only(&["user", "password"])?;
            Ok(Self {
                user: field(from, "user")?,
                password: field(from, "password")?,
            })
        }
    }

    /// Who asks. Secrets stand in nothing that the client says but the headers of requests. The client overwrites what it
    /// keeps of them when it drops it: when they are replaced and no request that carries them is under way, and with the
    /// client. Whatever made them, and requests that have been handed out, are the host's to forget.
    pub enum Credentials {
        /// For `store.dynamodb`.
        Aws(AwsCredentials),
        /// For `store.redis-http`; usual for Upstash.
        Token(BearerToken),
        /// For `store.redis-http`; usual for Webdis.
        Password(PasswordLogin),
    }

    impl Read for Credentials {
        fn read<S: Source>(from: &S) -> Result<Self, Unfit> {
            let case = from.case("credentials", &["aws", "token", "password"])?;
            Ok(match case {
                0 => Self::Aws(Read::read(from)?),
                1 => Self::Token(Read::read(from)?),
                _ => Self::Password(Read::read(from)?),
            })
        }
    }

    /// One command for Redis.
    pub struct RedisCommand {
        /// Its name and its arguments.
        pub args: Vec<Vec<u8>>,
    }

    impl Read for RedisCommand {
        fn read<S: Source>(from: &S) -> Result<Self, Unfit> {
            Ok(Self { args: Read::read(from)? })
        }
    }

    impl Write for RedisCommand {
        fn write<W: Sink>(self, to: &W) -> W::Value {
            self.args.write(to)
        }
    }
}

/// For hosts that speak to a Redis over a connection of their own.
///
/// A host with a library for Redis passes it the commands as they are, and writes its replies down in the format of the
/// connection (RESP 2): a text as `$5` CR LF `hello` CR LF, nothing as `$-1` CR LF, an integer as `:42` CR LF, a failed
/// command as `-` with what the server said in one line and CR LF, a list as `*2` CR LF and its two elements.
pub mod redis {
    use crate::face::*;
    use super::stores::RedisCommand;
    use super::types::ConfigError;

    /// What a server says is no RESP, or too long.
    pub struct Malformed {
        /// What is wrong.
        pub message: String,
    }

    impl Fields for Malformed {
        fn fields<W: Sink>(self, to: &W) -> Vec<(&'static str, W::Value)> {
            vec![
                ("message", self.message.write(to)),
            ]
        }
    }

    /// What there is beside values.
    pub(crate) trait Guest {
        /// See [`GuestReader`].
        #[allow(dead_code)]
        type Reader: GuestReader;
        /// Commands as the bytes to be sent, one after the other.
        fn encode(commands: Vec<RedisCommand>) -> Vec<u8>;
        /// The channel on which the release of a resource is told, for `output.subscribe`. Fails for a name that no lock can
        /// have.
        fn channel(resource: String) -> Result<Vec<u8>, ConfigError>;
        /// The resource that a message on a channel says is free, for `client.notified`; absent if it is no message of ours.
        fn released_by(channel: Vec<u8>, message: Vec<u8>) -> Option<String>;
    }

    /// Calls a function of the interface by its name.
    ///
    /// # Errors
    /// Whatever the function refuses, and arguments that it does not take.
    pub fn call<S: Source, W: Sink>(name: &str, args: &[S], to: &W) -> Result<W::Value, Problem> {
            match name {
                "encode" => {
                    let [commands] = arguments(args)?;
                    let commands = argument(commands, "commands")?;
                    let made = <crate::Component as Guest>::encode(commands);
                    Ok(made.write(to))
                }
                "channel" => {
                    let [resource] = arguments(args)?;
                    let resource = argument(resource, "resource")?;
                    let made = <crate::Component as Guest>::channel(resource)?;
                    Ok(made.write(to))
                }
                "released-by" => {
                    let [channel, message] = arguments(args)?;
                    let channel = argument(channel, "channel")?;
                    let message = argument(message, "message")?;
                    let made = <crate::Component as Guest>::released_by(channel, message);
                    Ok(made.write(to))
                }
                _ => Err(Problem::no_call(name)),
            }
    }

    /// Its calls.
    pub(crate) trait GuestReader: Sized {
        /// A reader that has read nothing. Default of `max-reply-bytes`, the longest that one reply may be: 1,048,576.
        fn create(max_reply_bytes: Option<u32>) -> Result<Reader, ConfigError>;
        /// What has arrived, in pieces of any size.
        fn push(&self, bytes: Vec<u8>) -> ();
        /// The next so many replies, for `response.redis-replies`; absent as long as they are not all there. Fails
        /// where the server does not speak RESP or says too much: the connection is of no further use.
        fn take(&self, replies: u32) -> Result<Option<Vec<u8>>, Malformed>;
    }

    /// Tells whole replies apart in what comes over one connection.
    pub struct Reader(pub(crate) crate::redis::Reader);

    impl Reader {
        pub(crate) fn new(made: crate::redis::Reader) -> Self {
            Self(made)
        }

        /// Makes one by the name of a static function.
        ///
        /// # Errors
        /// Whatever the function refuses, and arguments that it does not take.
        pub fn make<S: Source>(name: &str, args: &[S]) -> Result<Self, Problem> {
            match name {
                "create" => {
                    let [max_reply_bytes] = arguments(args)?;
                    let max_reply_bytes = argument(max_reply_bytes, "max-reply-bytes")?;
                    Ok(<crate::redis::Reader as GuestReader>::create(max_reply_bytes)?)
                }
                _ => Err(Problem::no_call(name)),
            }
        }

        /// Calls a method by its name.
        ///
        /// # Errors
        /// Whatever the method refuses, and arguments that it does not take.
        pub fn call<S: Source, W: Sink>(&self, name: &str, args: &[S], to: &W) -> Result<W::Value, Problem> {
            match name {
                "push" => {
                    let [bytes] = arguments(args)?;
                    let bytes = argument(bytes, "bytes")?;
                    self.0.push(bytes);
                    Ok(to.nothing())
                }
                "take" => {
                    let [replies] = arguments(args)?;
                    let replies = argument(replies, "replies")?;
                    let made = self.0.take(replies)?;
                    Ok(made.write(to))
                }
                _ => Err(Problem::no_call(name)),
            }
        }
    }
}

/// Many locks at once, and the loop that drives them.
///
/// Call `poll-output` and do what it says until it answers `wake-at`. Then sleep until that instant, a response or a
/// command, call `handle-timeout`, and poll again. `step` is the same loop in one call.
pub mod client {
    use crate::face::*;
    use super::ops::Denial;
    use super::ops::Fault;
    use super::ops::Holding;
    use super::ops::LockOp;
    use super::ops::Outcome;
    use super::stores::Credentials;
    use super::stores::RedisCommand;
    use super::stores::Store;
    use super::types::Config;
    use super::types::ConfigError;
    use super::types::LockOptions;
    use super::types::Now;
    use super::types::OtherError;

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

    impl Fields for Transmit {
        fn fields<W: Sink>(self, to: &W) -> Vec<(&'static str, W::Value)> {
            vec![
                ("id", self.id.write(to)),
                ("node", self.node.write(to)),
                ("deadline-ns", to.nanoseconds(self.deadline_ns)),
                ("ops", self.ops.write(to)),
            ]
        }
    }

    /// One header.
    pub struct HttpHeader {
        /// In requests lowercase; in responses as it comes.
        pub name: String,
        /// What stands behind the colon.
        pub value: String,
    }

    impl Read for HttpHeader {
        fn read<S: Source>(from: &S) -> Result<Self, Unfit> {
            let [name, value] = from.tuple()?;
            Ok(Self { name: Read::read(&name)?, value: Read::read(&value)? })
        }
    }

    impl Write for HttpHeader {
        fn write<W: Sink>(self, to: &W) -> W::Value {
            to.items(vec![self.name.write(to), self.value.write(to)])
        }
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

    impl Fields for HttpRequest {
        fn fields<W: Sink>(self, to: &W) -> Vec<(&'static str, W::Value)> {
            vec![
                ("id", self.id.write(to)),
                ("node", self.node.write(to)),
                ("deadline-ns", to.nanoseconds(self.deadline_ns)),
                ("method", self.method.write(to)),
                ("url", self.url.write(to)),
                ("headers", self.headers.write(to)),
                ("body", self.body.write(to)),
            ]
        }
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

    impl Fields for RedisCommands {
        fn fields<W: Sink>(self, to: &W) -> Vec<(&'static str, W::Value)> {
            vec![
                ("id", self.id.write(to)),
                ("node", self.node.write(to)),
                ("deadline-ns", to.nanoseconds(self.deadline_ns)),
                ("commands", self.commands.write(to)),
            ]
        }
    }

    /// A resource on a node.
    pub struct Subscription {
        /// Where.
        pub node: u16,
        /// For what.
        pub resource: String,
    }

    impl Read for Subscription {
        fn read<S: Source>(from: &S) -> Result<Self, Unfit> {
            from.only(&["node", "resource"])?;
            Ok(Self {
                node: field(from, "node")?,
                resource: field(from, "resource")?,
            })
        }
    }

    impl Fields for Subscription {
        fn fields<W: Sink>(self, to: &W) -> Vec<(&'static str, W::Value)> {
            vec![
                ("node", self.node.write(to)),
                ("resource", self.resource.write(to)),
            ]
        }
    }

    /// One node.
    pub struct NodeRef {
        /// Which.
        pub node: u16,
    }

    impl Read for NodeRef {
        fn read<S: Source>(from: &S) -> Result<Self, Unfit> {
            from.only(&["node"])?;
            Ok(Self {
                node: field(from, "node")?,
            })
        }
    }

    impl Fields for NodeRef {
        fn fields<W: Sink>(self, to: &W) -> Vec<(&'static str, W::Value)> {
            vec![
                ("node", self.node.write(to)),
            ]
        }
    }

    /// Payload of `output.wake-at`.
    pub struct Wake {
        /// When, on the monotonic clock; absent when nothing is due.
        pub at_ns: Option<u64>,
    }

    impl Fields for Wake {
        fn fields<W: Sink>(self, to: &W) -> Vec<(&'static str, W::Value)> {
            vec![
                ("at-ns", self.at_ns.map_or_else(|| to.nothing(), |ns| to.nanoseconds(ns))),
            ]
        }
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

    impl Fields for Acquired {
        fn fields<W: Sink>(self, to: &W) -> Vec<(&'static str, W::Value)> {
            vec![
                ("token", self.token.write(to)),
                ("deadline-ns", to.nanoseconds(self.deadline_ns)),
                ("recovered", self.recovered.write(to)),
            ]
        }
    }

    /// Payload of `event.contended`.
    pub struct Contended {
        /// Who.
        pub holding: Holding,
    }

    impl Fields for Contended {
        fn fields<W: Sink>(self, to: &W) -> Vec<(&'static str, W::Value)> {
            vec![
                ("holding", self.holding.write(to)),
            ]
        }
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

    impl Fields for Renewed {
        fn fields<W: Sink>(self, to: &W) -> Vec<(&'static str, W::Value)> {
            vec![
                ("deadline-ns", to.nanoseconds(self.deadline_ns)),
                ("left-ns", to.nanoseconds(self.left_ns)),
                ("recovered", self.recovered.write(to)),
            ]
        }
    }

    /// Payload of `event.renew-delayed`.
    pub struct RenewDelayed {
        /// The deadline, unmoved.
        pub deadline_ns: u64,
        /// What went wrong.
        pub fault: Fault,
    }

    impl Fields for RenewDelayed {
        fn fields<W: Sink>(self, to: &W) -> Vec<(&'static str, W::Value)> {
            vec![
                ("deadline-ns", to.nanoseconds(self.deadline_ns)),
                ("fault", self.fault.write(to)),
            ]
        }
    }

    /// Payload of `event.shortened`.
    pub struct Shortened {
        /// The new, earlier deadline.
        pub deadline_ns: u64,
    }

    impl Fields for Shortened {
        fn fields<W: Sink>(self, to: &W) -> Vec<(&'static str, W::Value)> {
            vec![
                ("deadline-ns", to.nanoseconds(self.deadline_ns)),
            ]
        }
    }

    /// Payload of `event.expiring`.
    pub struct Expiring {
        /// When the lease will be lost.
        pub deadline_ns: u64,
    }

    impl Fields for Expiring {
        fn fields<W: Sink>(self, to: &W) -> Vec<(&'static str, W::Value)> {
            vec![
                ("deadline-ns", to.nanoseconds(self.deadline_ns)),
            ]
        }
    }

    /// Payload of `event.released`.
    pub struct Released {
        /// The store has confirmed it; otherwise the record has run out by itself by now.
        pub confirmed: bool,
    }

    impl Fields for Released {
        fn fields<W: Sink>(self, to: &W) -> Vec<(&'static str, W::Value)> {
            vec![
                ("confirmed", self.confirmed.write(to)),
            ]
        }
    }

    /// Payload of `failure.busy` and `failure.timed-out`.
    pub struct HeldElsewhere {
        /// By whom, where the store shows it.
        pub holding: Option<Holding>,
    }

    impl Fields for HeldElsewhere {
        fn fields<W: Sink>(self, to: &W) -> Vec<(&'static str, W::Value)> {
            vec![
                ("holding", self.holding.write(to)),
            ]
        }
    }

    /// Payload of `failure.abstains`.
    pub struct Abstention {
        /// For how long still, as far as is known; rounded up.
        pub left_ms: u64,
    }

    impl Fields for Abstention {
        fn fields<W: Sink>(self, to: &W) -> Vec<(&'static str, W::Value)> {
            vec![
                ("left-ms", self.left_ms.write(to)),
            ]
        }
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

    impl Write for Failure {
        fn write<W: Sink>(self, to: &W) -> W::Value {
            match self {
                Self::Busy(payload) => to.case("failure", "busy", payload.fields(to)),
                Self::TimedOut(payload) => to.case("failure", "timed-out", payload.fields(to)),
                Self::Throttled(payload) => to.case("failure", "throttled", payload.fields(to)),
                Self::Unavailable(payload) => to.case("failure", "unavailable", payload.fields(to)),
                Self::Abstains(payload) => to.case("failure", "abstains", payload.fields(to)),
                Self::Refused(payload) => to.case("failure", "refused", payload.fields(to)),
                Self::Cancelled => to.case("failure", "cancelled", Vec::new()),
                Self::Other(payload) => to.case("failure", "other", payload.fields(to)),
            }
        }
    }

    /// Payload of `event.failed`.
    pub struct Failed {
        /// Why.
        pub failure: Failure,
    }

    impl Fields for Failed {
        fn fields<W: Sink>(self, to: &W) -> Vec<(&'static str, W::Value)> {
            vec![
                ("failure", self.failure.write(to)),
            ]
        }
    }

    /// Payload of `lost-reason.taken-over`.
    pub struct TakenOver {
        /// Whose the record is now, where the store shows it.
        pub by: Option<Holding>,
    }

    impl Fields for TakenOver {
        fn fields<W: Sink>(self, to: &W) -> Vec<(&'static str, W::Value)> {
            vec![
                ("by", self.by.write(to)),
            ]
        }
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

    impl Write for LostReason {
        fn write<W: Sink>(self, to: &W) -> W::Value {
            match self {
                Self::Expired => to.case("lost-reason", "expired", Vec::new()),
                Self::MaxHold => to.case("lost-reason", "max-hold", Vec::new()),
                Self::TakenOver(payload) => to.case("lost-reason", "taken-over", payload.fields(to)),
                Self::Released => to.case("lost-reason", "released", Vec::new()),
                Self::RecordGone => to.case("lost-reason", "record-gone", Vec::new()),
                Self::Other(payload) => to.case("lost-reason", "other", payload.fields(to)),
            }
        }
    }

    /// Payload of `event.lost`.
    pub struct Lost {
        /// Why.
        pub reason: LostReason,
    }

    impl Fields for Lost {
        fn fields<W: Sink>(self, to: &W) -> Vec<(&'static str, W::Value)> {
            vec![
                ("reason", self.reason.write(to)),
            ]
        }
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

    impl Write for Event {
        fn write<W: Sink>(self, to: &W) -> W::Value {
            match self {
                Self::Acquired(payload) => to.case("event", "acquired", payload.fields(to)),
                Self::Contended(payload) => to.case("event", "contended", payload.fields(to)),
                Self::Failed(payload) => to.case("event", "failed", payload.fields(to)),
                Self::Renewed(payload) => to.case("event", "renewed", payload.fields(to)),
                Self::RenewDelayed(payload) => to.case("event", "renew-delayed", payload.fields(to)),
                Self::Shortened(payload) => to.case("event", "shortened", payload.fields(to)),
                Self::Expiring(payload) => to.case("event", "expiring", payload.fields(to)),
                Self::Lost(payload) => to.case("event", "lost", payload.fields(to)),
                Self::Released(payload) => to.case("event", "released", payload.fields(to)),
            }
        }
    }

    /// Payload of `output.event`.
    pub struct LockEvent {
        /// Which lock.
        pub lock: u64,
        /// What happened.
        pub event: Event,
    }

    impl Fields for LockEvent {
        fn fields<W: Sink>(self, to: &W) -> Vec<(&'static str, W::Value)> {
            vec![
                ("lock", self.lock.write(to)),
                ("event", self.event.write(to)),
            ]
        }
    }

    /// Payload of `response.outcomes`.
    pub struct Outcomes {
        /// One for each operation of the request, in order; missing ones count as unknown.
        pub outcomes: Vec<Outcome>,
    }

    impl Read for Outcomes {
        fn read<S: Source>(from: &S) -> Result<Self, Unfit> {
            from.only(&["outcomes"])?;
            Ok(Self {
                outcomes: field(from, "outcomes")?,
            })
        }
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

    impl Read for HttpResponse {
        fn read<S: Source>(from: &S) -> Result<Self, Unfit> {
            from.only(&["status", "headers", "body"])?;
            Ok(Self {
                status: field(from, "status")?,
                headers: field(from, "headers")?,
                body: field(from, "body")?,
            })
        }
    }

    /// Payload of `response.redis-replies`.
    pub struct RedisReplies {
        /// One reply to each command, in order, in the format of the connection (RESP 2 or 3). Another number of them, or
        /// what is no RESP, counts as unknown.
        pub replies: Vec<u8>,
    }

    impl Read for RedisReplies {
        fn read<S: Source>(from: &S) -> Result<Self, Unfit> {
            from.only(&["replies"])?;
            Ok(Self {
                replies: field(from, "replies")?,
            })
        }
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

    impl Read for Response {
        fn read<S: Source>(from: &S) -> Result<Self, Unfit> {
            let case = from.case("response", &["outcomes", "http-response", "redis-replies", "not-sent", "unknown"])?;
            Ok(match case {
                0 => Self::Outcomes(Read::read(from)?),
                1 => Self::HttpResponse(Read::read(from)?),
                2 => Self::RedisReplies(Read::read(from)?),
                3 => Self::NotSent(Read::read(from)?),
                _ => Self::Unknown(Read::read(from)?),
            })
        }
    }

    /// Payload of `error.too-many-locks`.
    pub struct TooManyLocks {
        /// The limit.
        pub limit: u32,
    }

    impl Fields for TooManyLocks {
        fn fields<W: Sink>(self, to: &W) -> Vec<(&'static str, W::Value)> {
            vec![
                ("limit", self.limit.write(to)),
            ]
        }
    }

    /// Payload of `error.above-max-ttl`.
    pub struct AboveMaxTtl {
        /// What was asked for: `ttl-ms` and `lock-delay-ms` together.
        pub record_ttl_ms: u64,
        /// The most: `max-ttl-ms` of the quorum.
        pub max_ttl_ms: u64,
    }

    impl Fields for AboveMaxTtl {
        fn fields<W: Sink>(self, to: &W) -> Vec<(&'static str, W::Value)> {
            vec![
                ("record-ttl-ms", self.record_ttl_ms.write(to)),
                ("max-ttl-ms", self.max_ttl_ms.write(to)),
            ]
        }
    }

    /// Payload of `error.invalid`.
    pub struct InvalidArgument {
        /// Which, and why.
        pub error: ConfigError,
    }

    impl Fields for InvalidArgument {
        fn fields<W: Sink>(self, to: &W) -> Vec<(&'static str, W::Value)> {
            vec![
                ("error", self.error.write(to)),
            ]
        }
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

    impl Write for Error {
        fn write<W: Sink>(self, to: &W) -> W::Value {
            match self {
                Self::DuplicateLock => to.case("error", "duplicate-lock", Vec::new()),
                Self::UnknownLock => to.case("error", "unknown-lock", Vec::new()),
                Self::TooManyLocks(payload) => to.case("error", "too-many-locks", payload.fields(to)),
                Self::AboveMaxTtl(payload) => to.case("error", "above-max-ttl", payload.fields(to)),
                Self::Closed => to.case("error", "closed", Vec::new()),
                Self::Invalid(payload) => to.case("error", "invalid", payload.fields(to)),
                Self::Other(payload) => to.case("error", "other", payload.fields(to)),
            }
        }
    }

    /// Payload of `output.rejected`.
    pub struct RejectedCommand {
        /// The lock that the command was about.
        pub lock: u64,
        /// Why.
        pub error: Error,
    }

    impl Fields for RejectedCommand {
        fn fields<W: Sink>(self, to: &W) -> Vec<(&'static str, W::Value)> {
            vec![
                ("lock", self.lock.write(to)),
                ("error", self.error.write(to)),
            ]
        }
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

    impl Write for Output {
        fn write<W: Sink>(self, to: &W) -> W::Value {
            match self {
                Self::Transmit(payload) => to.case("output", "transmit", payload.fields(to)),
                Self::HttpRequest(payload) => to.case("output", "http-request", payload.fields(to)),
                Self::RedisCommands(payload) => to.case("output", "redis-commands", payload.fields(to)),
                Self::Event(payload) => to.case("output", "event", payload.fields(to)),
                Self::Subscribe(payload) => to.case("output", "subscribe", payload.fields(to)),
                Self::Unsubscribe(payload) => to.case("output", "unsubscribe", payload.fields(to)),
                Self::NeedCredentials(payload) => to.case("output", "need-credentials", payload.fields(to)),
                Self::Rejected(payload) => to.case("output", "rejected", payload.fields(to)),
                Self::WakeAt(payload) => to.case("output", "wake-at", payload.fields(to)),
            }
        }
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

    impl Read for AcquireCommand {
        fn read<S: Source>(from: &S) -> Result<Self, Unfit> {
            from.only(&["lock", "resource", "options"])?;
            Ok(Self {
                lock: field(from, "lock")?,
                resource: field(from, "resource")?,
                options: field(from, "options")?,
            })
        }
    }

    /// One lock.
    pub struct LockRef {
        /// Which.
        pub lock: u64,
    }

    impl Read for LockRef {
        fn read<S: Source>(from: &S) -> Result<Self, Unfit> {
            from.only(&["lock"])?;
            Ok(Self {
                lock: field(from, "lock")?,
            })
        }
    }

    /// Payload of `input.response`.
    pub struct RequestResponse {
        /// The request.
        pub id: u64,
        /// What became of it.
        pub response: Response,
    }

    impl Read for RequestResponse {
        fn read<S: Source>(from: &S) -> Result<Self, Unfit> {
            from.only(&["id", "response"])?;
            Ok(Self {
                id: field(from, "id")?,
                response: field(from, "response")?,
            })
        }
    }

    /// One resource.
    pub struct ResourceRef {
        /// Which.
        pub resource: String,
    }

    impl Read for ResourceRef {
        fn read<S: Source>(from: &S) -> Result<Self, Unfit> {
            from.only(&["resource"])?;
            Ok(Self {
                resource: field(from, "resource")?,
            })
        }
    }

    /// Payload of `input.set-credentials`.
    pub struct NewCredentials {
        /// Whose.
        pub node: u16,
        /// What its requests carry from now on.
        pub credentials: Credentials,
    }

    impl Read for NewCredentials {
        fn read<S: Source>(from: &S) -> Result<Self, Unfit> {
            from.only(&["node", "credentials"])?;
            Ok(Self {
                node: field(from, "node")?,
                credentials: field(from, "credentials")?,
            })
        }
    }

    /// Payload of `input.node-votes`.
    pub struct NodeVote {
        /// Which node.
        pub node: u16,
        /// The loss of data since which its counters are in doubt; absent where it had none.
        pub loss: Option<Vec<u8>>,
    }

    impl Read for NodeVote {
        fn read<S: Source>(from: &S) -> Result<Self, Unfit> {
            from.only(&["node", "loss"])?;
            Ok(Self {
                node: field(from, "node")?,
                loss: field(from, "loss")?,
            })
        }
    }

    /// Payload of `input.reseed`.
    pub struct NewSeed {
        /// The new seed.
        pub seed: Vec<u8>,
    }

    impl Read for NewSeed {
        fn read<S: Source>(from: &S) -> Result<Self, Unfit> {
            from.only(&["seed"])?;
            Ok(Self {
                seed: field(from, "seed")?,
            })
        }
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

    impl Read for Input {
        fn read<S: Source>(from: &S) -> Result<Self, Unfit> {
            let case = from.case("input", &["acquire", "release", "declare-lost", "response", "notified", "subscribed", "credentials-renewed", "set-credentials", "node-votes", "reseed", "close"])?;
            Ok(match case {
                0 => Self::Acquire(Read::read(from)?),
                1 => Self::Release(Read::read(from)?),
                2 => Self::DeclareLost(Read::read(from)?),
                3 => Self::Response(Read::read(from)?),
                4 => Self::Notified(Read::read(from)?),
                5 => Self::Subscribed(Read::read(from)?),
                6 => Self::CredentialsRenewed(Read::read(from)?),
                7 => Self::SetCredentials(Read::read(from)?),
                8 => Self::NodeVotes(Read::read(from)?),
                9 => Self::Reseed(Read::read(from)?),
                _ => { from.only(&[])?; Self::Close }
            })
        }
    }

    /// What one `step` brought.
    pub struct Stepped {
        /// In order, without `wake-at`.
        pub outputs: Vec<Output>,
        /// When to call again at the latest, on the monotonic clock; absent when nothing is due.
        pub wake_at_ns: Option<u64>,
    }

    impl Fields for Stepped {
        fn fields<W: Sink>(self, to: &W) -> Vec<(&'static str, W::Value)> {
            vec![
                ("outputs", self.outputs.write(to)),
                ("wake-at-ns", self.wake_at_ns.map_or_else(|| to.nothing(), |ns| to.nanoseconds(ns))),
            ]
        }
    }

    impl Write for Stepped {
        fn write<W: Sink>(self, to: &W) -> W::Value {
            to.record("stepped", self.fields(to))
        }
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

    impl Fields for Stats {
        fn fields<W: Sink>(self, to: &W) -> Vec<(&'static str, W::Value)> {
            vec![
                ("locks", self.locks.write(to)),
                ("held", self.held.write(to)),
                ("in-flight", self.in_flight.write(to)),
                ("orphans", self.orphans.write(to)),
                ("observations", self.observations.write(to)),
                ("undrained", self.undrained.write(to)),
                ("ignored-responses", self.ignored_responses.write(to)),
                ("timed-out-requests", self.timed_out_requests.write(to)),
            ]
        }
    }

    impl Write for Stats {
        fn write<W: Sink>(self, to: &W) -> W::Value {
            to.record("stats", self.fields(to))
        }
    }

    /// What there is beside values.
    pub(crate) trait Guest {
        /// See [`GuestClient`].
        #[allow(dead_code)]
        type Client: GuestClient;
    }

    /// Its calls.
    pub(crate) trait GuestClient: Sized {
        /// A client of the configured nodes.
        fn create(config: Config, seed: Vec<u8>, now: Now) -> Result<Client, ConfigError>;
        /// A client that writes its requests in the formats of stores: `stores` has one for each of `config.nodes`, in
        /// their order. How to `poll` is then decided here, and `watch` counts for `store.redis` alone: the host
        /// subscribes to `redis.channel`.
        fn create_wired(config: Config, stores: Vec<Store>, seed: Vec<u8>, now: Now) -> Result<Client, ConfigError>;
        /// Starts an acquisition under a lock id of the host's choice.
        fn acquire(&self, lock: u64, resource: String, options: LockOptions, fresh: Vec<u8>, now: Now) -> Result<(), Error>;
        /// Gives a lock back, or gives up on getting it: takes effect at once here, and is cleaned up in the
        /// background. A pending acquisition ends with `failed`, a lease with `released`. Releasing again what is being
        /// released does nothing; what is no longer alive is an `unknown-lock`.
        fn release(&self, lock: u64, now: Now) -> Result<(), Error>;
        /// The host's own reading of the deadline has told somebody that the lease is lost, so it must stay lost.
        fn declare_lost(&self, lock: u64, now: Now) -> Result<(), Error>;
        /// Cancels all that is pending and releases all that is held; nothing new is accepted. Go on driving until
        /// `is-idle`.
        fn close(&self, now: Now) -> ();
        /// The result of a request. One that belongs to no open request is counted and ignored.
        fn handle_response(&self, id: u64, response: Response, now: Now) -> ();
        /// Does what is due. Fails, and does nothing, where `fresh` is too short.
        fn handle_timeout(&self, fresh: Vec<u8>, now: Now) -> Result<(), ConfigError>;
        /// A hint that a resource was released; it may be wrong. A name that no lock can have is ignored.
        fn notified(&self, resource: String, now: Now) -> ();
        /// The node confirms that wake-ups on a resource will come.
        fn subscribed(&self, node: u16, resource: String, now: Now) -> ();
        /// The node has fresh credentials: whoever waits may try again.
        fn credentials_renewed(&self, node: u16, now: Now) -> ();
        /// What the requests to a node carry from now on, asked for or not; those that wait for it leave. Fails for a
        /// node that takes none or others, and where they hold what no header can.
        fn set_credentials(&self, node: u16, credentials: Credentials, now: Now) -> Result<(), ConfigError>;
        /// A look at a node of a quorum has shown that it votes; `loss` names the loss of data since which its counters are
        /// in doubt, where it had one. Attempts that begin from now on know of it; else the first one learns of it, and
        /// the next one can count the node. Fails where `loss` is too short.
        fn node_votes(&self, node: u16, loss: Option<Vec<u8>>, now: Now) -> Result<(), ConfigError>;
        /// Replaces the seed, for hosts that know that they were copied. Fails where it is too short.
        fn reseed(&self, seed: Vec<u8>) -> Result<(), ConfigError>;
        /// The next thing for the host to do; `wake-at` means that there is nothing more.
        fn poll_output(&self, now: Now) -> Output;
        /// The whole loop in one call: takes the inputs, does what is due, and answers with all outputs. A command that
        /// is not accepted comes back as `rejected`: before all other outputs if no client could accept it, such as a name
        /// that is too long. Fails, and takes no input, where `fresh` or a new seed is too
        /// short, or credentials do not fit their node.
        fn step(&self, fresh: Vec<u8>, now: Now, inputs: Vec<Input>) -> Result<Stepped, ConfigError>;
        /// How much validity a lease has left; 0 when it is not held.
        fn remaining_ns(&self, lock: u64, now: Now) -> u64;
        /// Who stands in the way of a pending acquisition, as far as the store shows it.
        fn holder(&self, lock: u64) -> Option<Holding>;
        /// The name of the state that a lock is in, for logs and tests; absent when it is not alive.
        fn state(&self, lock: u64) -> Option<String>;
        /// What the client keeps and has seen.
        fn stats(&self, ) -> Stats;
        /// Whether nothing is alive, in flight or undrained.
        fn is_idle(&self, ) -> bool;
    }

    /// The machine for all locks of one set of nodes. Every method first expires what is due at its `now`.
    pub struct Client(pub(crate) crate::client::Client);

    impl Client {
        pub(crate) fn new(made: crate::client::Client) -> Self {
            Self(made)
        }

        /// Makes one by the name of a static function.
        ///
        /// # Errors
        /// Whatever the function refuses, and arguments that it does not take.
        pub fn make<S: Source>(name: &str, args: &[S]) -> Result<Self, Problem> {
            match name {
                "create" => {
                    let [config, seed, now] = arguments(args)?;
                    let config = argument(config, "config")?;
                    let seed = argument(seed, "seed")?;
                    let now = argument(now, "now")?;
                    Ok(<crate::client::Client as GuestClient>::create(config, seed, now)?)
                }
                "create-wired" => {
                    let [config, stores, seed, now] = arguments(args)?;
                    let config = argument(config, "config")?;
                    let stores = argument(stores, "stores")?;
                    let seed = argument(seed, "seed")?;
                    let now = argument(now, "now")?;
                    Ok(<crate::client::Client as GuestClient>::create_wired(config, stores, seed, now)?)
                }
                _ => Err(Problem::no_call(name)),
            }
        }

        /// Calls a method by its name.
        ///
        /// # Errors
        /// Whatever the method refuses, and arguments that it does not take.
        pub fn call<S: Source, W: Sink>(&self, name: &str, args: &[S], to: &W) -> Result<W::Value, Problem> {
            match name {
                "acquire" => {
                    let [lock, resource, options, fresh, now] = arguments(args)?;
                    let lock = argument(lock, "lock")?;
                    let resource = argument(resource, "resource")?;
                    let options = argument(options, "options")?;
                    let fresh = argument(fresh, "fresh")?;
                    let now = argument(now, "now")?;
                    self.0.acquire(lock, resource, options, fresh, now)?;
                    Ok(to.nothing())
                }
                "release" => {
                    let [lock, now] = arguments(args)?;
                    let lock = argument(lock, "lock")?;
                    let now = argument(now, "now")?;
                    self.0.release(lock, now)?;
                    Ok(to.nothing())
                }
                "declare-lost" => {
                    let [lock, now] = arguments(args)?;
                    let lock = argument(lock, "lock")?;
                    let now = argument(now, "now")?;
                    self.0.declare_lost(lock, now)?;
                    Ok(to.nothing())
                }
                "close" => {
                    let [now] = arguments(args)?;
                    let now = argument(now, "now")?;
                    self.0.close(now);
                    Ok(to.nothing())
                }
                "handle-response" => {
                    let [id, response, now] = arguments(args)?;
                    let id = argument(id, "id")?;
                    let response = argument(response, "response")?;
                    let now = argument(now, "now")?;
                    self.0.handle_response(id, response, now);
                    Ok(to.nothing())
                }
                "handle-timeout" => {
                    let [fresh, now] = arguments(args)?;
                    let fresh = argument(fresh, "fresh")?;
                    let now = argument(now, "now")?;
                    self.0.handle_timeout(fresh, now)?;
                    Ok(to.nothing())
                }
                "notified" => {
                    let [resource, now] = arguments(args)?;
                    let resource = argument(resource, "resource")?;
                    let now = argument(now, "now")?;
                    self.0.notified(resource, now);
                    Ok(to.nothing())
                }
                "subscribed" => {
                    let [node, resource, now] = arguments(args)?;
                    let node = argument(node, "node")?;
                    let resource = argument(resource, "resource")?;
                    let now = argument(now, "now")?;
                    self.0.subscribed(node, resource, now);
                    Ok(to.nothing())
                }
                "credentials-renewed" => {
                    let [node, now] = arguments(args)?;
                    let node = argument(node, "node")?;
                    let now = argument(now, "now")?;
                    self.0.credentials_renewed(node, now);
                    Ok(to.nothing())
                }
                "set-credentials" => {
                    let [node, credentials, now] = arguments(args)?;
                    let node = argument(node, "node")?;
                    let credentials = argument(credentials, "credentials")?;
                    let now = argument(now, "now")?;
                    self.0.set_credentials(node, credentials, now)?;
                    Ok(to.nothing())
                }
                "node-votes" => {
                    let [node, loss, now] = arguments(args)?;
                    let node = argument(node, "node")?;
                    let loss = argument(loss, "loss")?;
                    let now = argument(now, "now")?;
                    self.0.node_votes(node, loss, now)?;
                    Ok(to.nothing())
                }
                "reseed" => {
                    let [seed] = arguments(args)?;
                    let seed = argument(seed, "seed")?;
                    self.0.reseed(seed)?;
                    Ok(to.nothing())
                }
                "poll-output" => {
                    let [now] = arguments(args)?;
                    let now = argument(now, "now")?;
                    let made = self.0.poll_output(now);
                    Ok(made.write(to))
                }
                "step" => {
                    let [fresh, now, inputs] = arguments(args)?;
                    let fresh = argument(fresh, "fresh")?;
                    let now = argument(now, "now")?;
                    let inputs = argument(inputs, "inputs")?;
                    let made = self.0.step(fresh, now, inputs)?;
                    Ok(made.write(to))
                }
                "remaining-ns" => {
                    let [lock, now] = arguments(args)?;
                    let lock = argument(lock, "lock")?;
                    let now = argument(now, "now")?;
                    let made = self.0.remaining_ns(lock, now);
                    Ok(to.nanoseconds(made))
                }
                "holder" => {
                    let [lock] = arguments(args)?;
                    let lock = argument(lock, "lock")?;
                    let made = self.0.holder(lock);
                    Ok(made.write(to))
                }
                "state" => {
                    let [lock] = arguments(args)?;
                    let lock = argument(lock, "lock")?;
                    let made = self.0.state(lock);
                    Ok(made.write(to))
                }
                "stats" => {
                    let [] = arguments(args)?;
                    let made = self.0.stats();
                    Ok(made.write(to))
                }
                "is-idle" => {
                    let [] = arguments(args)?;
                    let made = self.0.is_idle();
                    Ok(made.write(to))
                }
                _ => Err(Problem::no_call(name)),
            }
        }
    }
}

/// What the protected resource runs: refuse whoever holds an older token.
///
/// A new holder claims an item before it reads it, and has its token checked with every write, in the same transaction
/// as the write. A lock alone cannot do that: between a holder's look at its lease and its write any time can pass.
pub mod fence {
    use crate::face::*;

    /// Payload of `rejected.stale`.
    pub struct Stale {
        /// The token that was presented.
        pub token: u64,
        /// The highest token the item has seen.
        pub high_water: u64,
    }

    impl Fields for Stale {
        fn fields<W: Sink>(self, to: &W) -> Vec<(&'static str, W::Value)> {
            vec![
                ("token", self.token.write(to)),
                ("high-water", self.high_water.write(to)),
            ]
        }
    }

    /// Payload of `rejected.out-of-order`.
    pub struct OutOfOrder {
        /// The number that was presented.
        pub write: u64,
        /// The highest number accepted.
        pub last: u64,
    }

    impl Fields for OutOfOrder {
        fn fields<W: Sink>(self, to: &W) -> Vec<(&'static str, W::Value)> {
            vec![
                ("write", self.write.write(to)),
                ("last", self.last.write(to)),
            ]
        }
    }

    /// Payload of `rejected.invalid-token`.
    pub struct InvalidToken {
        /// The number that was presented.
        pub token: u64,
        /// The largest token, 2^53 - 1.
        pub max: u64,
    }

    impl Fields for InvalidToken {
        fn fields<W: Sink>(self, to: &W) -> Vec<(&'static str, W::Value)> {
            vec![
                ("token", self.token.write(to)),
                ("max", self.max.write(to)),
            ]
        }
    }

    /// Why a claim or a write was refused.
    pub enum Rejected {
        /// A later holder has claimed the item.
        Stale(Stale),
        /// A write of the same lease with a higher number has already been accepted.
        OutOfOrder(OutOfOrder),
        /// Nobody has claimed the item; a holder must claim before it writes.
        Unclaimed,
        /// The number is no token.
        InvalidToken(InvalidToken),
    }

    impl Write for Rejected {
        fn write<W: Sink>(self, to: &W) -> W::Value {
            match self {
                Self::Stale(payload) => to.case("rejected", "stale", payload.fields(to)),
                Self::OutOfOrder(payload) => to.case("rejected", "out-of-order", payload.fields(to)),
                Self::Unclaimed => to.case("rejected", "unclaimed", Vec::new()),
                Self::InvalidToken(payload) => to.case("rejected", "invalid-token", payload.fields(to)),
            }
        }
    }

    /// Texts for a guard in DynamoDB, whose mark is a number in an attribute of the item. Names and values go through
    /// `ExpressionAttributeNames` and `ExpressionAttributeValues`.
    ///
    /// A claim is an update `SET` `assign` under the condition `claim`; a write is one `SET` yours`,` `assign` under `check`
    /// `AND (`yours`)`. A condition that fails where the mark is above the token is a stale holder's; `check` also fails
    /// where the item is gone or was never claimed.
    pub struct DynamodbGuard {
        /// What stands for the name of the attribute, which is the host's to choose.
        pub name: String,
        /// What stands for the token, a number (`N`).
        pub value: String,
        /// The condition of a claim.
        pub claim: String,
        /// The condition of a write.
        pub check: String,
        /// The assignment that raises the mark.
        pub assign: String,
    }

    impl Fields for DynamodbGuard {
        fn fields<W: Sink>(self, to: &W) -> Vec<(&'static str, W::Value)> {
            vec![
                ("name", self.name.write(to)),
                ("value", self.value.write(to)),
                ("claim", self.claim.write(to)),
                ("check", self.check.write(to)),
                ("assign", self.assign.write(to)),
            ]
        }
    }

    impl Write for DynamodbGuard {
        fn write<W: Sink>(self, to: &W) -> W::Value {
            to.record("dynamodb-guard", self.fields(to))
        }
    }

    /// Texts for a guard in Redis (5 and newer), whose mark is a key of its own in the slot of the data. They are run by
    /// `EVAL`; `KEYS[1]` is the mark, `ARGV[1]` the token in decimal digits.
    ///
    /// Each answers one integer: the token where it was let through; a higher one where a later holder has claimed; -1
    /// where nobody has; -2 where the key of the mark holds something else; -3 where the argument is no token. Unless it
    /// was let through, nothing was written.
    pub struct RedisGuard {
        /// Makes the token the only one that is accepted from now on, apart from higher ones.
        pub claim: String,
        /// Whether a write would be let through; protects nothing by itself.
        pub check: String,
        /// Checks, and sets `KEYS[2]` to `ARGV[2]`.
        pub check_and_set: String,
        /// `leasehold_check(mark, token)` as a Lua function, to put in front of a script of one's own. Where its first
        /// answer is not true, return its second at once.
        pub function: String,
    }

    impl Fields for RedisGuard {
        fn fields<W: Sink>(self, to: &W) -> Vec<(&'static str, W::Value)> {
            vec![
                ("claim", self.claim.write(to)),
                ("check", self.check.write(to)),
                ("check-and-set", self.check_and_set.write(to)),
                ("function", self.function.write(to)),
            ]
        }
    }

    impl Write for RedisGuard {
        fn write<W: Sink>(self, to: &W) -> W::Value {
            to.record("redis-guard", self.fields(to))
        }
    }

    /// What there is beside values.
    pub(crate) trait Guest {
        /// See [`GuestGuard`].
        #[allow(dead_code)]
        type Guard: GuestGuard;
        /// The texts for DynamoDB.
        fn dynamodb() -> DynamodbGuard;
        /// The texts for Redis.
        fn redis() -> RedisGuard;
    }

    /// Calls a function of the interface by its name.
    ///
    /// # Errors
    /// Whatever the function refuses, and arguments that it does not take.
    pub fn call<S: Source, W: Sink>(name: &str, args: &[S], to: &W) -> Result<W::Value, Problem> {
            match name {
                "dynamodb" => {
                    let [] = arguments(args)?;
                    let made = <crate::Component as Guest>::dynamodb();
                    Ok(made.write(to))
                }
                "redis" => {
                    let [] = arguments(args)?;
                    let made = <crate::Component as Guest>::redis();
                    Ok(made.write(to))
                }
                _ => Err(Problem::no_call(name)),
            }
    }

    /// Its calls.
    pub(crate) trait GuestGuard: Sized {
        /// A mark as read from storage; absent where the item was never claimed.
        fn create(high_water: Option<u64>) -> Result<Guard, Rejected>;
        /// The highest token seen, to be written back to storage.
        fn high_water(&self, ) -> Option<u64>;
        /// Makes a token the only one accepted from now on, apart from higher ones. Call it before reading the item.
        fn claim(&self, token: u64) -> Result<(), Rejected>;
        /// Whether a write with a token may happen. Equal tokens are accepted: a holder writes more than once.
        fn check(&self, token: u64) -> Result<(), Rejected>;
        /// As `check`, and also refuses delayed writes of the same lease: `write` starts at 1 and grows with each one.
        fn check_in_order(&self, token: u64, write: u64) -> Result<(), Rejected>;
    }

    /// The high-water mark of one guarded item. One mark belongs to one lock resource: tokens of different resources
    /// are not comparable.
    pub struct Guard(pub(crate) crate::fence::Guard);

    impl Guard {
        pub(crate) fn new(made: crate::fence::Guard) -> Self {
            Self(made)
        }

        /// Makes one by the name of a static function.
        ///
        /// # Errors
        /// Whatever the function refuses, and arguments that it does not take.
        pub fn make<S: Source>(name: &str, args: &[S]) -> Result<Self, Problem> {
            match name {
                "create" => {
                    let [high_water] = arguments(args)?;
                    let high_water = argument(high_water, "high-water")?;
                    Ok(<crate::fence::Guard as GuestGuard>::create(high_water)?)
                }
                _ => Err(Problem::no_call(name)),
            }
        }

        /// Calls a method by its name.
        ///
        /// # Errors
        /// Whatever the method refuses, and arguments that it does not take.
        pub fn call<S: Source, W: Sink>(&self, name: &str, args: &[S], to: &W) -> Result<W::Value, Problem> {
            match name {
                "high-water" => {
                    let [] = arguments(args)?;
                    let made = self.0.high_water();
                    Ok(made.write(to))
                }
                "claim" => {
                    let [token] = arguments(args)?;
                    let token = argument(token, "token")?;
                    self.0.claim(token)?;
                    Ok(to.nothing())
                }
                "check" => {
                    let [token] = arguments(args)?;
                    let token = argument(token, "token")?;
                    self.0.check(token)?;
                    Ok(to.nothing())
                }
                "check-in-order" => {
                    let [token, write] = arguments(args)?;
                    let token = argument(token, "token")?;
                    let write = argument(write, "write")?;
                    self.0.check_in_order(token, write)?;
                    Ok(to.nothing())
                }
                _ => Err(Problem::no_call(name)),
            }
        }
    }
}
