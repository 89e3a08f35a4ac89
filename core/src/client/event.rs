//! What goes into a [`Client`](super::Client) and what comes out of it.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt;
use core::time::Duration;

use crate::config::LockOptions;
use crate::ids::{LockId, NodeId, RequestId, Resource, Token};
use crate::member::LossId;
use crate::op::{Denial, Fault, Holding, LockOp, Outcome, Seen, TransportFault};
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

/// What happened to a lock.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Event {
    /// The lock is held.
    Acquired {
        /// Which.
        lock: LockId,
        /// The fencing token.
        token: Token,
        /// Until when the lease is believed in unless renewed.
        deadline: Monotonic,
        /// The reply to the acquire was lost, and the record itself told.
        recovered: bool,
    },
    /// Somebody else holds the lock; told once for each acquisition.
    Contended {
        /// Which.
        lock: LockId,
        /// Who.
        holding: Box<Holding>,
    },
    /// The acquisition ended without the lock.
    Failed {
        /// Which.
        lock: LockId,
        /// Why.
        failure: Failure,
    },
    /// The deadline moved out.
    Renewed {
        /// Which.
        lock: LockId,
        /// The new deadline.
        deadline: Monotonic,
        /// Validity that was left before: the best early warning there is.
        left: Duration,
        /// The reply to an earlier renewal was lost, and the record itself told.
        recovered: bool,
    },
    /// A renewal did not succeed; another follows while there is time.
    RenewDelayed {
        /// Which.
        lock: LockId,
        /// The deadline, unmoved.
        deadline: Monotonic,
        /// What went wrong.
        fault: Fault,
    },
    /// A node of the quorum lost our record, and the others vouch for less.
    Shortened {
        /// Which.
        lock: LockId,
        /// The new, earlier deadline.
        deadline: Monotonic,
    },
    /// Less than the danger zone is left and no renewal has succeeded.
    Expiring {
        /// Which.
        lock: LockId,
        /// When the lease will be lost.
        deadline: Monotonic,
    },
    /// The lease is over and the lock was not released: the work must stop. Also told in the place of `Released` where
    /// the release finds that the lock was not ours any more.
    Lost {
        /// Which.
        lock: LockId,
        /// Why.
        reason: LostReason,
    },
    /// The release has ended.
    Released {
        /// Which.
        lock: LockId,
        /// The store has confirmed that the record was ours until then. Otherwise an answer was lost and the next one shows
        /// no record of ours, or the record has run out by itself by now.
        confirmed: bool,
    },
}

impl Event {
    /// The lock that the event is about.
    pub const fn lock(&self) -> LockId {
        match self {
            Self::Acquired { lock, .. }
            | Self::Contended { lock, .. }
            | Self::Failed { lock, .. }
            | Self::Renewed { lock, .. }
            | Self::RenewDelayed { lock, .. }
            | Self::Shortened { lock, .. }
            | Self::Expiring { lock, .. }
            | Self::Lost { lock, .. }
            | Self::Released { lock, .. } => *lock,
        }
    }
}

/// Why an acquisition ended without the lock.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Failure {
    /// Held by somebody else; asked with [`Wait::Once`](crate::config::Wait::Once).
    Busy {
        /// Who, where the store shows it.
        holding: Option<Box<Holding>>,
    },
    /// Held by somebody else for as long as the caller would wait.
    TimedOut {
        /// Who, where the store shows it.
        holding: Option<Box<Holding>>,
    },
    /// The store asked for patience for as long as the caller would wait.
    Throttled(Fault),
    /// The store could not be reached, or did not answer.
    Unavailable(Fault),
    /// The store's memory of past grants is in doubt.
    Abstains {
        /// For how long still, as far as is known.
        left: Duration,
    },
    /// The store refuses, and trying again will not help.
    Refused(Denial),
    /// Released before it was granted.
    Cancelled,
}

/// Why a lease is over.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum LostReason {
    /// No renewal was confirmed before the deadline.
    Expired,
    /// `max_hold` has ended the renewals.
    MaxHold,
    /// The record is somebody else's.
    TakenOver {
        /// Whose, where the store shows it.
        by: Option<Box<Holding>>,
    },
    /// The record was released by somebody else, such as an administrator.
    Released,
    /// The record is gone.
    RecordGone,
}

impl LostReason {
    /// The reason that goes with what a node shows in the place of our record.
    pub(crate) fn by_what_stands(seen: Seen) -> Self {
        match seen.holding {
            Some(holding) if !holding.released => Self::TakenOver { by: Some(holding) },
            Some(_) => Self::Released,
            None => Self::RecordGone,
        }
    }

    /// A stable name for logs and metrics.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Expired => "expired",
            Self::MaxHold => "max_hold",
            Self::TakenOver { .. } => "taken_over",
            Self::Released => "released",
            Self::RecordGone => "record_gone",
        }
    }
}

impl fmt::Display for LostReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Expired => "no renewal was confirmed in time",
            Self::MaxHold => "max_hold has passed",
            Self::TakenOver { .. } => "somebody else holds the lock now",
            Self::Released => "somebody broke the lock, or replaced the store",
            Self::RecordGone => "the store no longer has the record",
        })
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    /// Logs and metrics of all languages go by the names.
    #[test]
    fn reasons_have_stable_names_and_say_what_happened() {
        let reasons = [
            (LostReason::Expired, "expired", "no renewal"),
            (LostReason::MaxHold, "max_hold", "max_hold has passed"),
            (LostReason::TakenOver { by: None }, "taken_over", "somebody else"),
            (LostReason::Released, "released", "somebody broke"),
            (LostReason::RecordGone, "record_gone", "no longer has"),
        ];
        for (reason, name, words) in reasons {
            assert_eq!(reason.name(), name);
            assert!(reason.to_string().contains(words), "{reason}");
        }
    }
}
