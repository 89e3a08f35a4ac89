//! Settings that cannot be invalid: a value that does not fit is refused here, with the value and the bound.

pub(crate) mod error;
mod options;
mod span;
pub(crate) mod ttl;

use alloc::vec::Vec;
use core::time::Duration;

pub use error::ConfigError;
pub use options::{LockOptions, LockOptionsBuilder, RunOptions};
pub use span::Span;
pub use ttl::{Drift, MAX_KEEP, MAX_RECORD_TTL, Ttl};

use crate::ids::{NodeId, SessionLabel};
use crate::member::{Durability, QuorumId, RETENTION};
use crate::op::Session;
use crate::prf::{self, Seed};
use crate::quorum::MAX_NODES;
use error::at_most;

/// How long to try.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "snake_case"))]
pub enum Wait {
    /// One attempt, answered as soon as it is decided.
    #[cfg_attr(feature = "serde", serde(with = "crate::json::empty"))]
    Once,
    /// New attempts until this much time has passed; zero is one attempt. Where a record that only observers can declare dead
    /// is in the way by then, and was not seen to change, it is watched for longer: until it is renewed, so that its holder
    /// lives, or has stood for its time and is taken over. Where a store expires records itself, the same as [`Wait::For`].
    ///
    /// Beyond the wait, that is about a third of the holder's ttl if the holder lives, and all of it if it is dead.
    #[cfg_attr(feature = "serde", serde(with = "crate::json::wait"))]
    Watch(Duration),
    /// New attempts until this much time has passed. An attempt in flight at the end is still awaited, which takes at
    /// most one request timeout. Zero means [`Wait::Once`].
    #[cfg_attr(feature = "serde", serde(with = "crate::json::wait"))]
    For(Duration),
    /// Until granted, cancelled or refused.
    #[default]
    #[cfg_attr(feature = "serde", serde(with = "crate::json::empty"))]
    Forever,
}

impl Wait {
    /// Returns true if it waits for no living holder.
    pub const fn is_for_nobody(self) -> bool {
        matches!(self, Self::Once | Self::Watch(Duration::ZERO))
    }

    /// The same, with the one name for a single attempt.
    fn or_once(self) -> Self {
        if self == Self::For(Duration::ZERO) { Self::Once } else { self }
    }
}

/// The way to find out that a lock became free.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "snake_case"))]
pub enum Poll {
    /// A refused acquire is as cheap as a read (Redis, memory).
    Acquire,
    /// Reads are cheaper than refused writes (DynamoDB, SQLite): look first, write once it is free.
    Read,
}

/// The abilities of one store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct NodeConfig {
    /// How to find out that a held lock became free.
    pub poll: Poll,
    /// The store can notify waiters of a release.
    pub watch: bool,
    /// The most renewals in one request, at least 1.
    pub batch: usize,
    /// In a quorum: the operator's word that the store keeps every acknowledged write through a crash.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "crate::json::is_default"))]
    pub durability: Durability,
}

impl Default for NodeConfig {
    fn default() -> Self {
        Self { poll: Poll::Acquire, watch: false, batch: 100, durability: Durability::NotDeclared }
    }
}

/// The settings of a quorum; all its clients must have the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(remote = "Self"))]
pub struct Quorum {
    id: QuorumId,
    #[cfg_attr(feature = "serde", serde(rename = "max_ttl_ns", with = "crate::json::nanos"))]
    max_ttl: Duration,
}

impl Quorum {
    /// The longest record unless set otherwise.
    pub const MAX_TTL: Duration = Duration::from_secs(60);

    /// `max_ttl` bounds `ttl + lock_delay` of every lock: 100 ms to 48 h, rounded down to whole milliseconds. A node
    /// that has lost its data abstains for a little longer than this.
    ///
    /// # Errors
    /// A `max_ttl` outside its bounds.
    pub fn new(id: QuorumId, max_ttl: Duration) -> Result<Self, ConfigError> {
        if max_ttl < Ttl::MIN {
            return Err(ConfigError::TooShort { what: "max_ttl", value: max_ttl, min: Ttl::MIN });
        }
        at_most("max_ttl", max_ttl, MAX_RECORD_TTL)?;
        Ok(Self { id, max_ttl: Duration::new(max_ttl.as_secs(), max_ttl.subsec_millis() * 1_000_000) })
    }

    /// Which quorum.
    pub const fn id(&self) -> QuorumId {
        self.id
    }

    /// The longest `ttl + lock_delay`.
    pub const fn max_ttl(&self) -> Duration {
        self.max_ttl
    }

    /// The longest that a completion of finished work may stand: a node that has lost its data may have lost a completion, and is in doubt
    /// about completions for so long.
    pub const fn max_keep(&self) -> Duration {
        RETENTION
    }
}

/// Bounds on what one client keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Limits {
    /// Acquisitions alive at once, held, waiting or queued. Default 1,000,000.
    pub locks: usize,
    /// Background releases alive at once; above it a record is left to run out. Default 100,000.
    pub orphans: usize,
    /// Resources whose foreign versions are remembered. Default 1,024.
    pub observations: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { locks: 1_000_000, orphans: 100_000, observations: 1_024 }
    }
}

/// Settings of one client.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(remote = "Self"))]
pub struct Config {
    nodes: Vec<NodeConfig>,
    #[cfg_attr(feature = "serde", serde(rename = "drift_ppm"))]
    drift: Drift,
    #[cfg_attr(feature = "serde", serde(rename = "request_timeout_ns", with = "crate::json::nanos"))]
    request_timeout: Duration,
    limits: Limits,
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    quorum: Option<Quorum>,
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "crate::json::is_default"))]
    queues: bool,
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Option::is_none"))]
    session: Option<SessionLabel>,
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Vec::is_empty"))]
    observed: Vec<NodeId>,
}

impl Config {
    /// The most nodes of a quorum.
    pub const MAX_NODES: usize = MAX_NODES;
    /// The longest that one reply is awaited, unless set otherwise.
    pub const REQUEST_TIMEOUT: Duration = Duration::from_millis(500);

    /// One entry for each store; several form a quorum.
    ///
    /// # Errors
    /// No node, more than [`Config::MAX_NODES`], or a node with a batch of 0.
    pub fn new(nodes: Vec<NodeConfig>) -> Result<Self, ConfigError> {
        if nodes.is_empty() || nodes.len() > Self::MAX_NODES {
            return Err(ConfigError::Nodes { count: nodes.len(), max: Self::MAX_NODES });
        }
        if nodes.iter().any(|node| node.batch == 0) {
            return Err(ConfigError::ZeroLimit { what: "batch" });
        }
        Ok(Self {
            nodes,
            quorum: None,
            drift: Drift::default(),
            request_timeout: Self::REQUEST_TIMEOUT,
            limits: Limits::default(),
            queues: false,
            session: None,
            observed: Vec::new(),
        })
    }

    /// Has waiters stand in the queue of a single store: their acquires say so
    /// ([`in_queue`](crate::op::Acquire::in_queue)), and [`Client::next_departure`](crate::Client::next_departure) tells who
    /// leaves. A quorum has no queue: a reservation on a minority would be a deadlock.
    #[must_use]
    pub fn with_queues(self, queues: bool) -> Self {
        Self { queues: queues && self.nodes.len() == 1, ..self }
    }

    /// True if waiters stand in the queue.
    pub const fn queues(&self) -> bool {
        self.queues
    }

    /// Has all leases of the client belong to one session of this name. The session itself is named by the client's seed.
    #[must_use]
    pub fn with_session(self, label: SessionLabel) -> Self {
        Self { session: Some(label), ..self }
    }

    /// The name of the client's session.
    pub const fn session(&self) -> Option<&SessionLabel> {
        self.session.as_ref()
    }

    /// Tells which nodes expire nothing, so that only those who observe a record can declare it dead. On them a session is a
    /// record: it is renewed in the place of its leases, one write for all. See [`session`](crate::session).
    ///
    /// Of the clients of one store, all should say the same: one that does not know sees the row of a lock only, and waits
    /// much longer for a holder that is gone.
    #[must_use]
    pub fn with_observed(self, nodes: impl IntoIterator<Item = NodeId>) -> Self {
        Self { observed: nodes.into_iter().collect(), ..self }
    }

    /// Those nodes.
    pub fn observed(&self) -> impl Iterator<Item = NodeId> + '_ {
        self.observed.iter().copied()
    }

    /// Returns true if that node expires nothing.
    pub fn is_observed(&self, node: NodeId) -> bool {
        self.observed.contains(&node)
    }

    /// The session of a client with this seed.
    pub(crate) fn session_of(&self, seed: &Seed) -> Option<Session> {
        self.session.clone().map(|label| Session { nonce: prf::session(seed), label })
    }

    /// Makes nodes remember the quorum that they belong to, so that a node that has lost its data does not vote as if it
    /// had not. Without it, a node must never lose its data. A single node has no use for it.
    #[must_use]
    pub fn with_quorum(self, quorum: Quorum) -> Self {
        Self { quorum: Some(quorum).filter(|_| self.nodes.len() > 1), ..self }
    }

    /// Sets the drift that all margins assume.
    #[must_use]
    pub fn with_drift(self, drift: Drift) -> Self {
        Self { drift, ..self }
    }

    /// Sets the bounds on what the client keeps.
    ///
    /// # Errors
    /// A limit of 0.
    pub fn with_limits(self, limits: Limits) -> Result<Self, ConfigError> {
        for (what, limit) in
            [("locks", limits.locks), ("orphans", limits.orphans), ("observations", limits.observations)]
        {
            if limit == 0 {
                return Err(ConfigError::ZeroLimit { what });
            }
        }
        Ok(Self { limits, ..self })
    }

    /// Sets the longest that one reply is awaited: 10 ms to 60 s. A sixth of a lock's ttl binds as well.
    ///
    /// # Errors
    /// Outside these bounds.
    pub fn with_request_timeout(self, value: Duration) -> Result<Self, ConfigError> {
        let min = Duration::from_millis(10);
        if value < min {
            return Err(ConfigError::TooShort { what: "request timeout", value, min });
        }
        at_most("request timeout", value, Duration::from_secs(60))?;
        Ok(Self { request_timeout: value, ..self })
    }

    /// The nodes, in order.
    pub fn nodes(&self) -> &[NodeConfig] {
        &self.nodes
    }

    /// The nodes, in order, to be changed one by one.
    pub fn nodes_mut(&mut self) -> &mut [NodeConfig] {
        &mut self.nodes
    }

    /// The settings of the quorum that the nodes remember.
    pub const fn quorum(&self) -> Option<&Quorum> {
        self.quorum.as_ref()
    }

    /// The drift that all margins assume.
    pub const fn drift(&self) -> Drift {
        self.drift
    }

    /// The longest that one reply is awaited.
    pub const fn request_timeout(&self) -> Duration {
        self.request_timeout
    }

    /// The bounds on what the client keeps.
    pub const fn limits(&self) -> Limits {
        self.limits
    }
}
