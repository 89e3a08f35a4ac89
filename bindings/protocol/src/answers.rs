//! Outcomes on their way out: what nodes have answered to a read, and what the store of `records` answers.

use leasehold_core::Token;
use leasehold_core::op::{Applied, Outcome, Refusal, Seen};

use crate::ops::{completion, denial, fault, holding};
use crate::wit::ops;

pub(crate) fn outcome(outcome: Outcome) -> ops::Outcome {
    match outcome {
        Outcome::Applied(answer) => ops::Outcome::Applied(ops::AppliedOutcome { applied: applied(answer) }),
        Outcome::NotApplied(reason) => ops::Outcome::NotApplied(ops::NotAppliedOutcome { refusal: refusal(reason) }),
        Outcome::Unknown(why) => ops::Outcome::Unknown(fault(&why)),
    }
}

fn applied(applied: Applied) -> ops::Applied {
    let node = |counter: Token| ops::NodeCounter { counter: counter.get() };
    match applied {
        Applied::Acquired { counter } => ops::Applied::Acquired(node(counter)),
        Applied::AcquiredInDoubt { counter, stamp } => {
            let (counter, stamp) = (counter.get(), stamp.0.to_vec());
            ops::Applied::AcquiredInDoubt(ops::DoubtfulCounter { counter, stamp })
        }
        // A component has no session of its own, so no tell reaches one.
        Applied::Renewed | Applied::RenewedTold { .. } => ops::Applied::Renewed,
        Applied::Released => ops::Applied::Released,
        Applied::Finished => ops::Applied::Finished,
        Applied::Revoked | Applied::Told => ops::Applied::Revoked,
        Applied::Raised { counter } => ops::Applied::Raised(node(counter)),
        Applied::Read(shown) => ops::Applied::Read(seen(&shown)),
    }
}

fn refusal(refusal: Refusal) -> ops::Refusal {
    match refusal {
        Refusal::Conflict(shown) => ops::Refusal::Conflict(seen(&shown)),
        Refusal::Done(shown) => ops::Refusal::Done(completion(&shown)),
        Refusal::Throttled(why) => ops::Refusal::Throttled(fault(&why)),
        Refusal::Unavailable(why) => ops::Refusal::Unavailable(fault(&why)),
        Refusal::Abstains { stamp } => {
            ops::Refusal::Abstains(ops::LostMemory { stamp: stamp.map(|stamp| stamp.0.to_vec()) })
        }
        Refusal::NeedsCredentials(why) => ops::Refusal::NeedsCredentials(fault(&why)),
        Refusal::Denied(why) => ops::Refusal::Denied(denial(&why)),
    }
}

pub(crate) fn seen(shown: &Seen) -> ops::Seen {
    ops::Seen { holding: shown.holding.as_deref().map(holding), done: shown.done.as_deref().map(completion) }
}
