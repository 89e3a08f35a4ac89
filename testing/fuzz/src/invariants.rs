//! Invariants of outcomes, for any answer of a server.

use leasehold_core::Token;
use leasehold_core::config::{MAX_KEEP, MAX_RECORD_TTL};
use leasehold_core::op::{Applied, Holder, LockOp, Op, Outcome, Refusal, Release, Renew, Seen};

/// Checks that an outcome is one that the operation can have.
pub(crate) fn outcome(op: &LockOp, outcome: &Outcome) {
    match (&op.op, outcome) {
        (_, Outcome::Unknown(fault)) => short(&fault.to_string()),
        (_, Outcome::NotApplied(refusal)) => refused(op, refusal),
        (Op::Acquire(_), Outcome::Applied(Applied::Acquired { counter })) => assert!(*counter > Token::ZERO),
        (Op::Acquire(op), Outcome::Applied(Applied::AcquiredInDoubt { counter, .. })) => {
            assert!(op.member.is_some() && *counter > Token::ZERO);
        }
        (Op::Renew(_), Outcome::Applied(Applied::Renewed | Applied::RenewedTold { .. }))
        | (Op::Tell(_), Outcome::Applied(Applied::Told))
        | (Op::Release(_), Outcome::Applied(Applied::Released))
        | (Op::Finish(_), Outcome::Applied(Applied::Finished))
        | (Op::Revoke(_), Outcome::Applied(Applied::Revoked)) => {}
        (Op::Raise(op), Outcome::Applied(Applied::Raised { counter })) => assert!(*counter >= op.token),
        (Op::Read, Outcome::Applied(Applied::Read(seen))) => shown(seen),
        (op, outcome) => panic!("{outcome:?} is no answer to {op:?}"),
    }
}

/// True if it says that something was written or is ours.
pub(crate) fn is_grant(outcome: &Outcome) -> bool {
    let grants = |applied: &Applied| !matches!(applied, Applied::Read(_));
    matches!(outcome, Outcome::Applied(applied) if grants(applied))
}

fn refused(op: &LockOp, refusal: &Refusal) {
    match refusal {
        Refusal::Conflict(seen) => {
            assert!(op.op != Op::Read, "a read is in nobody's way");
            shown(seen);
        }
        Refusal::Throttled(fault) | Refusal::Unavailable(fault) | Refusal::NeedsCredentials(fault) => {
            short(&fault.to_string());
        }
        Refusal::Done(completion) => {
            let asks = matches!(&op.op, Op::Acquire(acquire) if acquire.unless_done);
            assert!(asks && completion.left <= MAX_KEEP.saturating_mul(2), "{completion:?}");
        }
        Refusal::Denied(denial) => short(&denial.detail),
        Refusal::Abstains { stamp } => match &op.op {
            Op::Acquire(op) => assert!(op.member.is_some() && stamp.is_some()),
            Op::Renew(Renew { quorum, .. }) | Op::Release(Release { quorum, .. }) => {
                assert!(quorum.is_some() || stamp.is_none());
            }
            Op::Finish(finish) => assert!(finish.quorum.is_some() || stamp.is_none()),
            op @ (Op::Revoke(_) | Op::Tell(_) | Op::Raise(_) | Op::Read) => panic!("{op:?} asks for no vote"),
        },
    }
}

/// Checks that a record cannot make anyone wait for ten years.
pub(crate) fn shown(seen: &Seen) {
    let Some(holding) = seen.held() else { return };
    assert!(holding.record_ttl.is_none_or(|ttl| ttl <= MAX_RECORD_TTL), "{holding:?}");
    let is_foreign = holding.holder == Holder::Foreign;
    assert!(is_foreign || holding.left.is_none_or(|left| left <= MAX_RECORD_TTL), "{holding:?}");
}

/// Checks that a quotation is cut, and contains nothing that a terminal would act on.
pub(crate) fn short(text: &str) {
    assert!(text.len() <= 600, "{} bytes", text.len());
    assert!(!text.chars().any(char::is_control), "{text:?}");
}
