//! Operations on their way out, and what both directions share: records, faults, denials and lengths of time.

use alloc::vec::Vec;
use core::time::Duration;

use leasehold_core::member::{Bootstrap, Durability, Membership};
use leasehold_core::op;

use crate::wit::ops as wit;
use crate::wit::types;

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
        }),
        op::Op::Renew(renew) => wit::Op::Renew(wit::Renew {
            nonce: renew.nonce.as_bytes().to_vec(),
            seq: renew.seq.get(),
            record_ttl_ms: ms_up(renew.record_ttl),
            quorum: renew.quorum.map(durability),
        }),
        op::Op::Release(release) => wit::Op::Release(wit::Release {
            nonce: release.nonce.as_bytes().to_vec(),
            quorum: release.quorum.map(durability),
        }),
        op::Op::Raise(raise) => wit::Op::Raise(wit::Raise {
            nonce: raise.nonce.as_bytes().to_vec(),
            token: raise.token.get(),
            loss: raise.loss.map(|loss| loss.0.to_vec()),
        }),
        op::Op::Read => wit::Op::Read,
    }
}

fn membership(member: Membership) -> wit::Membership {
    wit::Membership {
        quorum: member.quorum.0.to_vec(),
        max_ttl_ms: member.max_ttl_ms,
        durability: durability(member.durability),
        fresh: member.fresh.0.to_vec(),
        waited_out: member.waited_out.map(|stamp| stamp.0.to_vec()),
        birth: match member.bootstrap {
            Bootstrap::Yes => wit::Birth::Yes,
            Bootstrap::No => wit::Birth::No,
        },
        retention_ms: ms_up(member.retention),
    }
}

fn durability(durability: Durability) -> types::Durability {
    match durability {
        Durability::Declared => types::Durability::Declared,
        Durability::NotDeclared => types::Durability::NotDeclared,
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

pub(crate) fn fault(fault: &op::Fault) -> wit::Fault {
    let kind = match fault.kind {
        op::FaultKind::Timeout => wit::FaultKind::Timeout,
        op::FaultKind::Reset => wit::FaultKind::Reset,
        op::FaultKind::Unreachable => wit::FaultKind::Unreachable,
        op::FaultKind::Cancelled => wit::FaultKind::Cancelled,
        op::FaultKind::Server => wit::FaultKind::Server,
        op::FaultKind::Busy => wit::FaultKind::Busy,
        op::FaultKind::Protocol => wit::FaultKind::Protocol,
    };
    wit::Fault { kind, detail: fault.detail.as_deref().map(Into::into) }
}

pub(crate) fn denial(denial: &op::Denial) -> wit::Denial {
    let kind = match denial.kind {
        op::DenialKind::Permission => wit::DenialKind::Permission,
        op::DenialKind::Schema => wit::DenialKind::Schema,
        op::DenialKind::CorruptRecord => wit::DenialKind::CorruptRecord,
        op::DenialKind::TokensExhausted => wit::DenialKind::TokensExhausted,
        op::DenialKind::StorageFull => wit::DenialKind::StorageFull,
        op::DenialKind::Membership => wit::DenialKind::Membership,
        op::DenialKind::Other => wit::DenialKind::Other,
    };
    wit::Denial { kind, detail: denial.detail.as_ref().into() }
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

pub(crate) fn all<T, U>(items: Vec<T>, convert: impl FnMut(T) -> U) -> Vec<U> {
    items.into_iter().map(convert).collect()
}
