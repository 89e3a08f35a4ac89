//! What the component says, in the words of the core. `None` where it makes no sense, as if it had not come from this
//! project.

use std::time::Duration;

use leasehold_core::member::{Birth, Durability, Membership, QuorumId, Stamp};
use leasehold_core::op::{
    Acquire, Denial, DenialKind, Fault, FaultKind, Holder, Holding, LockOp, Op, Raise, Release, Renew,
};
use leasehold_core::{
    Error, Event, Failure, LockId, LostReason, Monotonic, NodeId, Nonce, Output, Owner, Payload, RequestId, Resource,
    Seq, Token, Transmit, Version,
};
use leasehold_wasmtime::{client, ops, types};

pub(super) fn output(output: client::Output) -> Option<Output> {
    Some(match output {
        client::Output::Transmit(transmit) => Output::Transmit(Transmit {
            id: RequestId::new(transmit.id),
            node: NodeId::new(transmit.node),
            deadline: Monotonic::from_ns(transmit.deadline_ns),
            ops: transmit.ops.into_iter().map(lock_op).collect::<Option<_>>()?,
        }),
        client::Output::Event(told) => Output::Event(event(LockId::new(told.lock), told.event)?),
        client::Output::Subscribe(wish) => {
            Output::Subscribe { node: NodeId::new(wish.node), resource: Resource::new(&wish.resource).ok()? }
        }
        client::Output::Unsubscribe(wish) => {
            Output::Unsubscribe { node: NodeId::new(wish.node), resource: Resource::new(&wish.resource).ok()? }
        }
        client::Output::NeedCredentials(at) => Output::NeedCredentials { node: NodeId::new(at.node) },
        client::Output::Rejected(rejected) => {
            Output::Rejected { lock: LockId::new(rejected.lock), error: error(rejected.error).ok()? }
        }
        client::Output::WakeAt(wake) => Output::WakeAt(wake.at_ns.map_or(Monotonic::FAR, Monotonic::from_ns)),
        // Those are for clients that were made with stores.
        client::Output::HttpRequest(_) | client::Output::RedisCommands(_) => return None,
    })
}

fn lock_op(op: ops::LockOp) -> Option<LockOp> {
    let (lock, resource) = (LockId::new(op.lock), Resource::new(&op.resource).ok()?);
    Some(LockOp { lock, resource, op: operation(op.op)? })
}

fn operation(op: ops::Op) -> Option<Op> {
    Some(match op {
        ops::Op::Acquire(acquire) => Op::Acquire(Box::new(Acquire {
            nonce: nonce(&acquire.nonce)?,
            seq: Seq::new(acquire.seq),
            record_ttl: Duration::from_millis(acquire.record_ttl_ms),
            floor: Token::new(acquire.floor)?,
            expect: optional(acquire.expect, |bytes| Version::new(&bytes))?,
            owner: Owner::new(&acquire.owner).ok()?,
            data: optional(acquire.data, |bytes| Payload::new(&bytes).ok())?,
            member: optional(acquire.member, |member| membership(&member))?,
        })),
        ops::Op::Renew(renew) => Op::Renew(Renew {
            nonce: nonce(&renew.nonce)?,
            seq: Seq::new(renew.seq),
            record_ttl: Duration::from_millis(renew.record_ttl_ms),
            quorum: renew.quorum.map(durability),
        }),
        ops::Op::Release(release) => {
            Op::Release(Release { nonce: nonce(&release.nonce)?, quorum: release.quorum.map(durability) })
        }
        ops::Op::Raise(raise) => Op::Raise(Raise {
            nonce: nonce(&raise.nonce)?,
            token: Token::new(raise.token)?,
            loss: optional(raise.loss, |bytes| stamp(&bytes))?,
        }),
        ops::Op::Read => Op::Read,
    })
}

fn membership(member: &ops::Membership) -> Option<Membership> {
    Some(Membership {
        quorum: QuorumId(member.quorum.as_slice().try_into().ok()?),
        max_ttl_ms: member.max_ttl_ms,
        durability: durability(member.durability),
        fresh: stamp(&member.fresh)?,
        waited_out: optional(member.waited_out.as_deref(), stamp)?,
        birth: match member.birth {
            ops::Birth::Yes => Birth::Yes,
            ops::Birth::No => Birth::No,
        },
        retention: Duration::from_millis(member.retention_ms),
    })
}

fn durability(durability: types::Durability) -> Durability {
    match durability {
        types::Durability::Declared => Durability::Declared,
        types::Durability::NotDeclared => Durability::NotDeclared,
    }
}

fn event(lock: LockId, event: client::Event) -> Option<Event> {
    let at = Monotonic::from_ns;
    Some(match event {
        client::Event::Acquired(told) => Event::Acquired {
            lock,
            token: Token::new(told.token)?,
            deadline: at(told.deadline_ns),
            recovered: told.recovered,
        },
        client::Event::Contended(told) => Event::Contended { lock, holding: Box::new(holding(told.holding)?) },
        client::Event::Failed(told) => Event::Failed { lock, failure: failure(told.failure)? },
        client::Event::Renewed(told) => Event::Renewed {
            lock,
            deadline: at(told.deadline_ns),
            left: Duration::from_nanos(told.left_ns),
            recovered: told.recovered,
        },
        client::Event::RenewDelayed(told) => {
            Event::RenewDelayed { lock, deadline: at(told.deadline_ns), fault: fault(&told.fault) }
        }
        client::Event::Shortened(told) => Event::Shortened { lock, deadline: at(told.deadline_ns) },
        client::Event::Expiring(told) => Event::Expiring { lock, deadline: at(told.deadline_ns) },
        client::Event::Lost(told) => Event::Lost { lock, reason: lost(told.reason)? },
        client::Event::Released(told) => Event::Released { lock, confirmed: told.confirmed },
    })
}

fn failure(failure: client::Failure) -> Option<Failure> {
    let elsewhere = |other: client::HeldElsewhere| optional(other.holding, |other| holding(other).map(Box::new));
    Some(match failure {
        client::Failure::Busy(other) => Failure::Busy { holding: elsewhere(other)? },
        client::Failure::TimedOut(other) => Failure::TimedOut { holding: elsewhere(other)? },
        client::Failure::Throttled(why) => Failure::Throttled(fault(&why)),
        client::Failure::Unavailable(why) => Failure::Unavailable(fault(&why)),
        client::Failure::Abstains(abstention) => Failure::Abstains { left: Duration::from_millis(abstention.left_ms) },
        client::Failure::Refused(why) => Failure::Refused(denial(&why)),
        client::Failure::Cancelled => Failure::Cancelled,
        // A component may know reasons that this program does not.
        client::Failure::Other(other) => Failure::Unavailable(Fault::new(FaultKind::Server, &other.message)),
    })
}

fn lost(reason: client::LostReason) -> Option<LostReason> {
    Some(match reason {
        client::LostReason::Expired => LostReason::Expired,
        client::LostReason::MaxHold => LostReason::MaxHold,
        client::LostReason::TakenOver(taken) => {
            LostReason::TakenOver { by: optional(taken.by, |other| holding(other).map(Box::new))? }
        }
        client::LostReason::Released => LostReason::Released,
        client::LostReason::RecordGone => LostReason::RecordGone,
        client::LostReason::Other(_) => LostReason::Expired,
    })
}

/// Why a command was not accepted, or in words where the core has no name for it.
pub(super) fn error(error: client::Error) -> Result<Error, String> {
    Ok(match error {
        client::Error::DuplicateLock => Error::DuplicateLock,
        client::Error::UnknownLock => Error::UnknownLock,
        client::Error::TooManyLocks(many) => {
            Error::TooManyLocks { limit: usize::try_from(many.limit).unwrap_or(usize::MAX) }
        }
        client::Error::AboveMaxTtl(above) => Error::AboveMaxTtl {
            record_ttl: Duration::from_millis(above.record_ttl_ms),
            max_ttl: Duration::from_millis(above.max_ttl_ms),
        },
        client::Error::Closed => Error::Closed,
        client::Error::Invalid(invalid) => return Err(format!("the component refuses: {:?}", invalid.error)),
        client::Error::Other(other) => return Err(format!("the component refuses: {}", other.message)),
    })
}

fn holding(holding: ops::Holding) -> Option<Holding> {
    Some(Holding {
        holder: match holding.holder {
            Some(holder) => Holder::Lease { nonce: nonce(&holder.nonce)?, seq: holder.seq.map(Seq::new) },
            None => Holder::Foreign,
        },
        version: Version::new(&holding.version)?,
        released: holding.released,
        counter: optional(holding.counter, Token::new)?,
        owner: optional(holding.owner, |owner| Owner::new(&owner).ok())?,
        record_ttl: holding.record_ttl_ms.map(Duration::from_millis),
        left: holding.left_ms.map(Duration::from_millis),
        since_unix_ms: holding.since_unix_ms,
        data: optional(holding.data, |bytes| Payload::new(&bytes).ok())?,
    })
}

fn fault(fault: &ops::Fault) -> Fault {
    let kind = match fault.kind {
        ops::FaultKind::Timeout => FaultKind::Timeout,
        ops::FaultKind::Reset => FaultKind::Reset,
        ops::FaultKind::Unreachable => FaultKind::Unreachable,
        ops::FaultKind::Cancelled => FaultKind::Cancelled,
        ops::FaultKind::Server => FaultKind::Server,
        ops::FaultKind::Busy => FaultKind::Busy,
        ops::FaultKind::Protocol => FaultKind::Protocol,
    };
    fault.detail.as_ref().map_or(Fault::of(kind), |detail| Fault::new(kind, detail))
}

fn denial(denial: &ops::Denial) -> Denial {
    let kind = match denial.kind {
        ops::DenialKind::Permission => DenialKind::Permission,
        ops::DenialKind::Schema => DenialKind::Schema,
        ops::DenialKind::CorruptRecord => DenialKind::CorruptRecord,
        ops::DenialKind::TokensExhausted => DenialKind::TokensExhausted,
        ops::DenialKind::StorageFull => DenialKind::StorageFull,
        ops::DenialKind::Membership => DenialKind::Membership,
        ops::DenialKind::Other => DenialKind::Other,
    };
    Denial::new(kind, &denial.detail)
}

fn nonce(bytes: &[u8]) -> Option<Nonce> {
    bytes.try_into().ok().map(Nonce::from_bytes)
}

fn stamp(bytes: &[u8]) -> Option<Stamp> {
    bytes.try_into().ok().map(Stamp)
}

/// Reads what is there: `None` where that fails, nothing where there is nothing.
fn optional<T, U>(value: Option<T>, read: impl FnOnce(T) -> Option<U>) -> Option<Option<U>> {
    value.map_or(Some(None), |value| read(value).map(Some))
}
