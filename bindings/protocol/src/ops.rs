//! Operations on their way out, and what both directions share: records, faults, denials and lengths of time.

use alloc::vec::Vec;
use core::time::Duration;

use leasehold_core::member::{Bootstrap, Durability, Membership};
use leasehold_core::op;

use crate::wit::ops as wit;
use crate::wit::types;

/// Converts, in both directions, enums that have the same cases in the core and in the WIT.
macro_rules! same_cases {
    ($($core:ty, $wit:ty: $($case:ident)*;)*) => { $(
        impl From<$core> for $wit {
            fn from(case: $core) -> Self {
                match case {
                    $(<$core>::$case => Self::$case,)*
                }
            }
        }

        impl From<$wit> for $core {
            fn from(case: $wit) -> Self {
                match case {
                    $(<$wit>::$case => Self::$case,)*
                }
            }
        }
    )* };
}

same_cases! {
    op::FaultKind, wit::FaultKind: Timeout Reset Unreachable Cancelled Server Busy Protocol;
    op::DenialKind, wit::DenialKind: Permission Schema CorruptRecord TokensExhausted StorageFull Membership Other;
    Durability, types::Durability: Declared NotDeclared;
}

pub(crate) fn lock_op(op: op::LockOp) -> wit::LockOp {
    wit::LockOp { lock: op.lock.get(), resource: op.resource.as_str().into(), op: operation(op.op) }
}

fn operation(op: op::Op) -> wit::Op {
    match op {
        op::Op::Acquire(acquire) => wit::Op::Acquire(wit::Acquire {
            nonce: acquire.nonce.as_bytes().to_vec(),
            seq: acquire.seq.get(),
            record_ttl_ms: ms_up(acquire.record_ttl),
            floor: acquire.floor.get(),
            expect: acquire.expect.map(|version| version.as_bytes().to_vec()),
            owner: acquire.owner.as_str().into(),
            data: acquire.data.map(|data| data.as_bytes().to_vec()),
            member: acquire.member.map(membership),
            unless_done: acquire.unless_done,
        }),
        op::Op::Renew(renew) => wit::Op::Renew(wit::Renew {
            nonce: renew.nonce.as_bytes().to_vec(),
            seq: renew.seq.get(),
            record_ttl_ms: ms_up(renew.record_ttl),
            quorum: renew.quorum.map(Into::into),
        }),
        op::Op::Release(release) => wit::Op::Release(wit::Release {
            nonce: release.nonce.as_bytes().to_vec(),
            quorum: release.quorum.map(Into::into),
        }),
        op::Op::Finish(finish) => wit::Op::Finish(wit::Finish {
            nonce: finish.nonce.as_bytes().to_vec(),
            token: finish.token.get(),
            counter: finish.counter.get(),
            keep_ms: ms_up(finish.keep),
            owner: finish.owner.as_str().into(),
            about: finish.about.as_ref().map(|about| about.as_bytes().to_vec()),
            quorum: finish.quorum.map(Into::into),
        }),
        op::Op::Revoke(revoke) => wit::Op::Revoke(wit::Revoke { nonce: revoke.nonce.as_bytes().to_vec() }),
        op::Op::Raise(raise) => wit::Op::Raise(wit::Raise {
            nonce: raise.nonce.as_bytes().to_vec(),
            token: raise.token.get(),
            loss: raise.loss.map(|loss| loss.0.to_vec()),
        }),
        op::Op::Tell(_) => unreachable!("invariant: machines send no tells, only supervisors do"),
        op::Op::Read => wit::Op::Read,
    }
}

fn membership(member: Membership) -> wit::Membership {
    wit::Membership {
        quorum: member.quorum.0.to_vec(),
        max_ttl_ms: member.max_ttl_ms,
        durability: member.durability.into(),
        fresh: member.fresh.0.to_vec(),
        waited_out: member.waited_out.map(|stamp| stamp.0.to_vec()),
        birth: match member.bootstrap {
            Bootstrap::Yes => wit::Birth::Yes,
            Bootstrap::No => wit::Birth::No,
        },
        retention_ms: ms_up(member.retention),
    }
}

pub(crate) fn holding(holding: &op::Holding) -> wit::Holding {
    wit::Holding {
        holder: match &holding.holder {
            op::Holder::Lease { nonce, seq } => {
                Some(wit::LeaseHolder { nonce: nonce.as_bytes().to_vec(), seq: seq.map(leasehold_core::Seq::get) })
            }
            op::Holder::Foreign => None,
        },
        version: holding.version.as_bytes().to_vec(),
        released: holding.released,
        counter: holding.counter.map(leasehold_core::Token::get),
        owner: holding.owner.as_ref().map(|owner| owner.as_str().into()),
        record_ttl_ms: holding.record_ttl.map(ms_up),
        left_ms: holding.left.map(ms_up),
        since_unix_ms: holding.since_unix_ms,
        data: holding.data.as_ref().map(|data| data.as_bytes().to_vec()),
    }
}

pub(crate) fn completion(completion: &op::Completion) -> wit::Completion {
    wit::Completion {
        token: completion.token.get(),
        owner: completion.owner.as_str().into(),
        at_unix_ms: completion.at_unix_ms,
        left_ms: ms_up(completion.left),
        about: completion.about.as_ref().map(|about| about.as_bytes().to_vec()),
        unsettled: completion.unsettled,
    }
}

pub(crate) fn fault(fault: &op::Fault) -> wit::Fault {
    wit::Fault { kind: fault.kind.into(), detail: fault.detail.as_deref().map(Into::into) }
}

pub(crate) fn denial(denial: &op::Denial) -> wit::Denial {
    wit::Denial { kind: denial.kind.into(), detail: denial.detail.as_ref().into() }
}

pub(crate) fn ns(length: Duration) -> u64 {
    u64::try_from(length.as_nanos()).unwrap_or(u64::MAX)
}

/// A length whose receiver must not take it for shorter.
pub(crate) fn ms_up(length: Duration) -> u64 {
    u64::try_from(length.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX)
}

/// A bound, or a value that came in whole milliseconds.
pub(crate) fn ms_down(length: Duration) -> u64 {
    u64::try_from(length.as_millis()).unwrap_or(u64::MAX)
}

pub(crate) fn small(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

pub(crate) fn all<T, U>(items: impl IntoIterator<Item = T>, convert: impl FnMut(T) -> U) -> Vec<U> {
    items.into_iter().map(convert).collect()
}
