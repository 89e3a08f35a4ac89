//! What goes into a [`Client`](super::Client) and what comes out of it.

use alloc::vec::Vec;
use core::fmt;
use core::time::Duration;

use crate::config::LockOptions;
use crate::event::Event;
use crate::ids::{LockId, NodeId, RequestId, Resource};
use crate::member::LossId;
use crate::op::{LockOp, Outcome, TransportFault};
use crate::prf::Seed;
use crate::time::Monotonic;

/// What a client tells its host, drained by [`poll_output`](super::Client::poll_output).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Output {
    /// Perform this request, and hand its result to [`handle_response`](super::Client::handle_response).
    Transmit(Transmit),
    /// Something happened to a lock.
    Event(Event),
    /// Ask for wake-ups on a resource, then call [`subscribed`](super::Client::subscribed).
    Subscribe {
        /// Where.
        node: NodeId,
        /// For what.
        resource: Resource,
    },
    /// Wake-ups on a resource are no longer needed.
    Unsubscribe {
        /// Where.
        node: NodeId,
        /// For what.
        resource: Resource,
    },
    /// The node refuses for want of fresh credentials; call
    /// [`credentials_renewed`](super::Client::credentials_renewed) when it has them.
    NeedCredentials {
        /// Where.
        node: NodeId,
    },
    /// A command given to [`step`](super::Client::step) was not accepted.
    Rejected {
        /// The lock that the command was about.
        lock: LockId,
        /// Why.
        error: Error,
    },
    /// Nothing more to do: sleep until then, or until a response or a command, then call
    /// [`handle_timeout`](super::Client::handle_timeout). [`Monotonic::FAR`] when nothing is due.
    WakeAt(Monotonic),
}

/// One request to one node.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Transmit {
    /// Correlates the response.
    pub id: RequestId,
    /// To whom.
    pub node: NodeId,
    /// When the host may stop waiting; the client counts the request as unknown from then on.
    pub deadline: Monotonic,
    /// What to do, in order; several only for renewals.
    pub ops: Vec<LockOp>,
}

/// The same commands as the methods of [`Client`](super::Client), for hosts where a call is expensive.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Input {
    /// See [`acquire`](super::Client::acquire).
    Acquire {
        /// Chosen by the caller.
        lock: LockId,
        /// What to lock.
        resource: Resource,
        /// How.
        options: LockOptions,
    },
    /// See [`release`](super::Client::release).
    Release {
        /// Which.
        lock: LockId,
    },
    /// See [`declare_lost`](super::Client::declare_lost).
    DeclareLost {
        /// Which.
        lock: LockId,
    },
    /// See [`handle_response`](super::Client::handle_response).
    Response {
        /// The request.
        id: RequestId,
        /// One outcome for each of its operations.
        result: Result<Vec<Outcome>, TransportFault>,
    },
    /// See [`notified`](super::Client::notified).
    Notified {
        /// What was released.
        resource: Resource,
    },
    /// See [`subscribed`](super::Client::subscribed).
    Subscribed {
        /// Where.
        node: NodeId,
        /// For what.
        resource: Resource,
    },
    /// See [`credentials_renewed`](super::Client::credentials_renewed).
    CredentialsRenewed {
        /// Where.
        node: NodeId,
    },
    /// See [`node_votes`](super::Client::node_votes).
    NodeVotes {
        /// Which.
        node: NodeId,
        /// Where it had one: the loss since which its counters are in doubt.
        loss: Option<LossId>,
    },
    /// See [`reseed`](super::Client::reseed).
    Reseed {
        /// The new seed.
        seed: Seed,
    },
    /// See [`close`](super::Client::close).
    Close,
}

/// A command that was not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Error {
    /// The lock id is in use.
    DuplicateLock,
    /// No such lock is alive: never acquired, lost, or released before.
    UnknownLock,
    /// As many locks as the client may have are alive.
    TooManyLocks {
        /// The limit.
        limit: usize,
    },
    /// The record would stand for longer than the quorum allows.
    AboveMaxTtl {
        /// What was asked for: ttl + lock_delay.
        record_ttl: Duration,
        /// The most.
        max_ttl: Duration,
    },
    /// The client was closed.
    Closed,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::DuplicateLock => f.write_str("this lock id is in use; take a new one for each acquisition"),
            Self::UnknownLock => f.write_str("no such lock is alive: it was never acquired, was lost, or was released"),
            Self::TooManyLocks { limit } => {
                write!(f, "{limit} acquisitions are alive in this client, which is its limit; release some first")
            }
            Self::AboveMaxTtl { record_ttl, max_ttl } => write!(
                f,
                "ttl + lock_delay is {record_ttl:?}, the most in this quorum is {max_ttl:?} (max_ttl, which all its \
                 clients share: a node that has lost its data abstains for so long)"
            ),
            Self::Closed => f.write_str("the client is closed"),
        }
    }
}

impl core::error::Error for Error {}

/// Counts of what a client keeps and has seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct Stats {
    /// Acquisitions alive, in any state.
    pub locks: usize,
    /// Of these, held.
    pub held: usize,
    /// Requests without a response yet.
    pub in_flight: usize,
    /// Background releases of attempts that were given up.
    pub orphans: usize,
    /// Foreign versions under observation.
    pub observations: usize,
    /// Outputs that the host has not drained.
    pub undrained: usize,
    /// Responses so far that belonged to no open request: late, duplicate or made up.
    pub ignored_responses: u64,
    /// Requests so far whose deadline passed without a response.
    pub timed_out_requests: u64,
}
