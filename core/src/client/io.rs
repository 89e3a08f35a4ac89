//! The inputs and outputs of a [`Client`](super::Client).

use alloc::vec::Vec;
use core::fmt;
use core::time::Duration;

use crate::about::RunResult;
use crate::config::{LockOptions, Span};
use crate::event::Event;
use crate::ids::{LockId, NodeId, RequestId, Resource};
use crate::member::LossId;
use crate::one_or_many::OneOrMany;
use crate::op::{LockOp, Outcome, TransportFault};
use crate::prf::Seed;
use crate::time::Monotonic;

/// An instruction or event for the embedder, drained by [`poll_output`](super::Client::poll_output).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "snake_case"))]
pub enum Output {
    /// Perform this request, and pass its result to [`handle_response`](super::Client::handle_response).
    Transmit(Transmit),
    /// Something happened to a lock.
    Event(Event),
    /// Subscribe to wake-ups on a resource, then call [`subscribed`](super::Client::subscribed).
    Subscribe {
        /// The node.
        node: NodeId,
        /// The resource.
        resource: Resource,
    },
    /// Wake-ups on a resource are no longer needed.
    Unsubscribe {
        /// The node.
        node: NodeId,
        /// The resource.
        resource: Resource,
    },
    /// The node refuses the current credentials; call
    /// [`credentials_renewed`](super::Client::credentials_renewed) when it has fresh ones.
    NeedCredentials {
        /// The node.
        node: NodeId,
    },
    /// A command given to [`step`](super::Client::step) was not accepted.
    Rejected {
        /// The lock that the command was about.
        lock: LockId,
        /// The reason.
        error: Error,
    },
    /// Nothing more to do: sleep until then, or until a response or a command, then call
    /// [`handle_timeout`](super::Client::handle_timeout). [`Monotonic::FAR`] when nothing is due.
    WakeAt(Monotonic),
}

/// One request to one node.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Transmit {
    /// Identifies the response.
    pub id: RequestId,
    /// The node to send it to.
    pub node: NodeId,
    /// When the embedder may stop waiting: the client counts the request as unknown from then on.
    #[cfg_attr(feature = "serde", serde(rename = "deadline_ns"))]
    pub deadline: Monotonic,
    /// The operations, in order; more than one only for renewals.
    pub ops: OneOrMany<LockOp>,
}

/// The same commands as the methods of [`Client`](super::Client), for embedders where a call is expensive.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "snake_case"))]
pub enum Input {
    /// See [`acquire`](super::Client::acquire).
    Acquire {
        /// The lock id, chosen by the caller.
        lock: LockId,
        /// The resource to lock.
        resource: Resource,
        /// The options.
        options: LockOptions,
    },
    /// See [`release`](super::Client::release).
    Release {
        /// The lock.
        lock: LockId,
    },
    /// See [`finish`](super::Client::finish).
    Finish {
        /// The lock.
        lock: LockId,
        /// The result of the run, for those who come later.
        #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Option::is_none"))]
        run_result: Option<RunResult>,
    },
    /// See [`declare_lost`](super::Client::declare_lost).
    DeclareLost {
        /// The lock.
        lock: LockId,
    },
    /// See [`handle_response`](super::Client::handle_response).
    Response {
        /// The request.
        id: RequestId,
        /// One outcome for each of its operations.
        #[cfg_attr(feature = "serde", serde(with = "crate::json::result"))]
        result: Result<Vec<Outcome>, TransportFault>,
    },
    /// See [`notified`](super::Client::notified).
    Notified {
        /// The resource that was released.
        resource: Resource,
    },
    /// See [`subscribed`](super::Client::subscribed).
    Subscribed {
        /// The node.
        node: NodeId,
        /// The resource.
        resource: Resource,
    },
    /// See [`credentials_renewed`](super::Client::credentials_renewed).
    CredentialsRenewed {
        /// The node.
        node: NodeId,
    },
    /// See [`node_votes`](super::Client::node_votes).
    NodeVotes {
        /// The node.
        node: NodeId,
        /// The loss since which its counters are in doubt, if there was one.
        #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
        loss: Option<LossId>,
    },
    /// See [`reseed`](super::Client::reseed).
    Reseed {
        /// The new seed.
        #[cfg_attr(feature = "serde", serde(with = "crate::json::hex"))]
        seed: Seed,
    },
    /// See [`close`](super::Client::close).
    #[cfg_attr(feature = "serde", serde(with = "crate::json::empty"))]
    Close,
}

/// A command that was not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "snake_case"))]
pub enum Error {
    /// The lock id is in use.
    #[cfg_attr(feature = "serde", serde(with = "crate::json::empty"))]
    DuplicateLock,
    /// No such lock is alive: it was never acquired, was lost, or was released.
    #[cfg_attr(feature = "serde", serde(with = "crate::json::empty"))]
    UnknownLock,
    /// The client already has its limit of locks.
    TooManyLocks {
        /// The limit.
        limit: usize,
    },
    /// The record would stand for longer than the quorum allows.
    AboveMaxTtl {
        /// The ttl + lock_delay that was asked for.
        #[cfg_attr(feature = "serde", serde(rename = "record_ttl_ns", with = "crate::json::nanos"))]
        record_ttl: Duration,
        /// The largest allowed.
        #[cfg_attr(feature = "serde", serde(rename = "max_ttl_ns", with = "crate::json::nanos"))]
        max_ttl: Duration,
    },
    /// The completion would stand for longer than the quorum allows.
    AboveMaxKeep {
        /// The time that was asked for.
        #[cfg_attr(feature = "serde", serde(rename = "keep_ns", with = "crate::json::nanos"))]
        keep: Duration,
        /// The largest allowed.
        #[cfg_attr(feature = "serde", serde(rename = "max_keep_ns", with = "crate::json::nanos"))]
        max_keep: Duration,
    },
    /// A plain lock cannot be finished.
    #[cfg_attr(feature = "serde", serde(with = "crate::json::empty"))]
    NotARun,
    /// The client was closed.
    #[cfg_attr(feature = "serde", serde(with = "crate::json::empty"))]
    Closed,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::DuplicateLock => f.write_str("this lock id is in use; take a new one for each acquisition"),
            Self::UnknownLock => f.write_str("this lock is not held: it was never acquired, was lost, or was released"),
            Self::TooManyLocks { limit } => {
                write!(f, "this client holds or waits for {limit} locks, which is its limit; release some first")
            }
            Self::AboveMaxTtl { record_ttl, max_ttl } => write!(
                f,
                "ttl + lock_delay is {}, but this quorum allows at most {}, its max_ttl: make the ttl shorter, or \
                 raise max_ttl for all clients",
                Span(*record_ttl),
                Span(*max_ttl)
            ),
            Self::AboveMaxKeep { keep, max_keep } => write!(
                f,
                "the completion would be kept for {}, but a quorum keeps completions for at most {}: make keep, \
                 cooldown or the period shorter",
                Span(*keep),
                Span(*max_keep)
            ),
            Self::NotARun => {
                f.write_str("this is a plain lock, which has no completion; release it, or acquire it as a run")
            }
            Self::Closed => f.write_str("the client is closed: connect again"),
        }
    }
}

impl core::error::Error for Error {}

/// Counters of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct Stats {
    /// Acquisitions alive, in any state.
    pub locks: usize,
    /// Acquisitions that are held.
    pub held: usize,
    /// Requests without a response so far.
    pub in_flight: usize,
    /// Background releases of attempts that were given up.
    pub orphans: usize,
    /// Foreign versions under observation.
    pub observations: usize,
    /// Outputs that were not drained.
    pub undrained: usize,
    /// Responses so far that belonged to no open request: late, duplicate or made up.
    pub ignored_responses: u64,
    /// Requests so far whose deadline passed without a response.
    pub timed_out_requests: u64,
}
