//! What happens to a lock, as its machine tells it.

use alloc::boxed::Box;
use core::fmt;
use core::time::Duration;

use crate::ids::{LockId, Token};
use crate::op::{Denial, Fault, Holding, Seen};
use crate::time::Monotonic;

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
