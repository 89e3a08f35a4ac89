//! The events of a lock, as its machine reports them.

use alloc::boxed::Box;
use core::fmt;
use core::time::Duration;

use crate::ids::{LockId, Token};
use crate::op::{Completion, Denial, Fault, Holding, Seen};
use crate::time::Monotonic;

/// An event of a lock.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "snake_case"))]
pub enum Event {
    /// The lock is held.
    Acquired {
        /// The lock.
        lock: LockId,
        /// The fencing token.
        token: Token,
        /// When the validity of the lease ends unless it is renewed.
        #[cfg_attr(feature = "serde", serde(rename = "deadline_ns"))]
        deadline: Monotonic,
        /// The reply to the acquire was lost; the record showed the grant.
        recovered: bool,
    },
    /// Somebody else holds the lock; reported once for each acquisition.
    Contended {
        /// The lock.
        lock: LockId,
        /// The holder.
        holding: Box<Holding>,
    },
    /// The acquisition ended without the lock.
    Failed {
        /// The lock.
        lock: LockId,
        /// The reason.
        failure: Failure,
    },
    /// The deadline moved out.
    Renewed {
        /// The lock.
        lock: LockId,
        /// The new deadline.
        #[cfg_attr(feature = "serde", serde(rename = "deadline_ns"))]
        deadline: Monotonic,
        /// The validity that was left before. A small value is an early warning.
        #[cfg_attr(feature = "serde", serde(rename = "left_ns", with = "crate::json::nanos"))]
        left: Duration,
        /// The reply to an earlier renewal was lost; the record showed that it took effect.
        recovered: bool,
    },
    /// A renewal did not succeed; another follows while there is time.
    RenewDelayed {
        /// The lock.
        lock: LockId,
        /// The deadline, unmoved.
        #[cfg_attr(feature = "serde", serde(rename = "deadline_ns"))]
        deadline: Monotonic,
        /// The fault.
        fault: Fault,
    },
    /// A node of the quorum lost our record, and the others keep it for a shorter time.
    Shortened {
        /// The lock.
        lock: LockId,
        /// The new, earlier deadline.
        #[cfg_attr(feature = "serde", serde(rename = "deadline_ns"))]
        deadline: Monotonic,
    },
    /// Less than the danger zone is left and no renewal has succeeded.
    Expiring {
        /// The lock.
        lock: LockId,
        /// When the lease will be lost.
        #[cfg_attr(feature = "serde", serde(rename = "deadline_ns"))]
        deadline: Monotonic,
    },
    /// The lease is over and the lock was not released: the work must stop. Also reported instead of `Released` if the
    /// release or finish finds that the lock was not ours any more.
    Lost {
        /// The lock.
        lock: LockId,
        /// The reason.
        reason: LostReason,
    },
    /// The release has ended.
    Released {
        /// The lock.
        lock: LockId,
        /// The store has confirmed that the record was ours until then. Otherwise an answer was lost and the next one shows
        /// no record of ours, or the record has expired by now.
        confirmed: bool,
    },
    /// The finish of a run has ended.
    Finished {
        /// The lock.
        lock: LockId,
        /// The completion stands: nobody does the work again while it does. Otherwise the work was done, but no answer says that the
        /// completion stands, so it may be done again.
        confirmed: bool,
        /// The work is done, but too few nodes have kept its result for others to learn it: a store was full, or not made for
        /// results.
        #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "crate::json::is_default"))]
        result_dropped: bool,
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
            | Self::Released { lock, .. }
            | Self::Finished { lock, .. } => *lock,
        }
    }
}

/// The reason why an acquisition ended without the lock.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "snake_case"))]
pub enum Failure {
    /// Held by somebody else; the acquisition waits for nobody, with [`Wait::Once`](crate::config::Wait::Once) or a
    /// [`Wait::Watch`](crate::config::Wait::Watch) of zero.
    Busy {
        /// The holder, if the store shows it.
        #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
        holding: Option<Box<Holding>>,
    },
    /// Held by somebody else for as long as the caller would wait.
    TimedOut {
        /// The holder, if the store shows it.
        #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
        holding: Option<Box<Holding>>,
    },
    /// The store throttled requests for as long as the caller would wait.
    Throttled(Fault),
    /// The store could not be reached, or did not answer.
    Unavailable(Fault),
    /// The store's memory of past grants is in doubt.
    Abstains {
        /// The time that this lasts still, as far as is known.
        #[cfg_attr(feature = "serde", serde(rename = "left_ns", with = "crate::json::nanos"))]
        left: Duration,
    },
    /// The store refuses, and trying again will not help.
    Refused(Denial),
    /// The work of a run is done: the completion that stands.
    Done(Box<Completion>),
    /// Nodes of the quorum may have lost completions of finished work, and too few others are left to tell that none stands.
    #[cfg_attr(feature = "serde", serde(with = "crate::json::empty"))]
    CompletionsInDoubt,
    /// Released before it was granted.
    #[cfg_attr(feature = "serde", serde(with = "crate::json::empty"))]
    Cancelled,
}

/// The reason why a lease is over.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "snake_case"))]
pub enum LostReason {
    /// No renewal was confirmed before the deadline.
    #[cfg_attr(feature = "serde", serde(with = "crate::json::empty"))]
    Expired,
    /// `max_hold` has ended the renewals.
    #[cfg_attr(feature = "serde", serde(with = "crate::json::empty"))]
    MaxHold,
    /// The record belongs to somebody else.
    TakenOver {
        /// The new holder, if the store shows it.
        #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
        by: Option<Box<Holding>>,
    },
    /// The record was released by somebody else, such as an administrator.
    #[cfg_attr(feature = "serde", serde(with = "crate::json::empty"))]
    Released,
    /// The store has lost data: it shows no record, or one that is older than the lease.
    #[cfg_attr(feature = "serde", serde(with = "crate::json::empty"))]
    RecordGone,
    /// The lease was revoked. Its record still keeps others out: once the work has ended, [release](crate::Client::release)
    /// the lock, which frees it. Otherwise the record runs out by itself.
    #[cfg_attr(feature = "serde", serde(with = "crate::json::empty"))]
    Revoked,
}

impl LostReason {
    /// The reason that follows from the content of a node in the place of our record, which it had granted with this counter. A
    /// lower one is older than the grant: the node has lost data.
    pub(crate) fn by_what_stands(seen: Seen, granted: Option<Token>) -> Self {
        match seen.holding {
            Some(holding) if !holding.released => Self::TakenOver { by: Some(holding) },
            Some(holding) if holding.counter.zip(granted).is_some_and(|(counter, granted)| counter < granted) => {
                Self::RecordGone
            }
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
            Self::Revoked => "revoked",
        }
    }
}

impl fmt::Display for LostReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Expired => "no renewal was confirmed in time",
            Self::MaxHold => "max_hold has passed",
            Self::TakenOver { .. } => "somebody else holds the lock now",
            Self::Released => "somebody broke the lock",
            Self::RecordGone => "the store has lost the record",
            Self::Revoked => "somebody revoked it",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    /// Logs and metrics of all languages go by the names.
    #[test]
    fn lost_reasons_have_stable_names_and_messages() {
        let reasons = [
            (LostReason::Expired, "expired", "no renewal"),
            (LostReason::MaxHold, "max_hold", "max_hold has passed"),
            (LostReason::TakenOver { by: None }, "taken_over", "somebody else"),
            (LostReason::Released, "released", "somebody broke"),
            (LostReason::RecordGone, "record_gone", "has lost the record"),
            (LostReason::Revoked, "revoked", "somebody revoked"),
        ];
        for (reason, name, words) in reasons {
            assert_eq!(reason.name(), name);
            assert!(reason.to_string().contains(words), "{reason}");
        }
    }
}
