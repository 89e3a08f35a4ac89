//! The resource `records`: operations on their way in, as a host's own store has them.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::cell::RefCell;
use core::time::Duration;

use leasehold_core::member::{Bootstrap, Membership, QuorumId};
use leasehold_core::op::{Acquire, Fault, FaultKind, Finish, LockOp, Op, Outcome, Raise, Release, Renew, Revoke};
use leasehold_core::{About, LockId, Owner, Payload, Resource, Seq, Token, Version};
use leasehold_wire::memory;

use crate::Component;
use crate::answers::outcome;
use crate::ops::all;
use crate::outcomes::{nonce, optional, stamp};
use crate::settings::now;
use crate::wit::memory as wit;
use crate::wit::ops;
use crate::wit::types::Now;

impl wit::Guest for Component {
    type Records = Records;
}

pub(crate) struct Records(RefCell<memory::Records>);

impl wit::GuestRecords for Records {
    fn create() -> wit::Records {
        wit::Records::new(Self(RefCell::default()))
    }

    fn perform(&self, asked: Vec<ops::LockOp>, at: Now) -> Vec<ops::Outcome> {
        let mut records = self.0.borrow_mut();
        let unreadable = || Outcome::Unknown(Fault::new(FaultKind::Protocol, "the operation cannot be read"));
        all(asked, |asked| {
            let performed = lock_op(asked).and_then(|op| records.perform(&[op], now(at)).pop());
            outcome(performed.unwrap_or_else(unreadable))
        })
    }
}

fn lock_op(asked: ops::LockOp) -> Option<LockOp> {
    let resource = Resource::new(&asked.resource).ok()?;
    Some(LockOp { lock: LockId::new(asked.lock), resource, op: op(asked.op)? })
}

fn op(op: ops::Op) -> Option<Op> {
    let ms = Duration::from_millis;
    Some(match op {
        ops::Op::Acquire(asked) => Op::Acquire(Box::new(Acquire {
            nonce: nonce(&asked.nonce)?,
            seq: Seq::new(asked.seq),
            record_ttl: ms(asked.record_ttl_ms),
            floor: Token::new(asked.floor)?,
            expect: optional(asked.expect.as_deref(), Version::new)?,
            owner: Owner::new(&asked.owner).ok()?,
            data: optional(asked.data.as_deref(), |data| Payload::new(data).ok())?,
            session: None,
            member: optional(asked.member, membership)?,
            unless_done: asked.unless_done,
            in_queue: false,
        })),
        ops::Op::Renew(asked) => Op::Renew(Renew {
            nonce: nonce(&asked.nonce)?,
            seq: Seq::new(asked.seq),
            record_ttl: ms(asked.record_ttl_ms),
            quorum: asked.quorum.map(Into::into),
        }),
        ops::Op::Release(asked) => {
            Op::Release(Release { nonce: nonce(&asked.nonce)?, quorum: asked.quorum.map(Into::into) })
        }
        ops::Op::Finish(asked) => Op::Finish(Box::new(Finish {
            nonce: nonce(&asked.nonce)?,
            token: Token::new(asked.token)?,
            counter: Token::new(asked.counter)?,
            keep: ms(asked.keep_ms),
            owner: Owner::new(&asked.owner).ok()?,
            quorum: asked.quorum.map(Into::into),
            about: optional(asked.about.as_deref(), About::read)?,
        })),
        ops::Op::Revoke(asked) => Op::Revoke(Revoke { nonce: nonce(&asked.nonce)? }),
        ops::Op::Raise(asked) => Op::Raise(Raise {
            nonce: nonce(&asked.nonce)?,
            token: Token::new(asked.token)?,
            loss: optional(asked.loss.as_deref(), stamp)?,
        }),
        ops::Op::Read => Op::Read,
    })
}

fn membership(member: ops::Membership) -> Option<Membership> {
    Some(Membership {
        quorum: QuorumId(member.quorum.as_slice().try_into().ok()?),
        max_ttl_ms: member.max_ttl_ms,
        durability: member.durability.into(),
        fresh: stamp(&member.fresh)?,
        waited_out: optional(member.waited_out.as_deref(), stamp)?,
        bootstrap: match member.birth {
            ops::Birth::Yes => Bootstrap::Yes,
            ops::Birth::No => Bootstrap::No,
        },
        retention: Duration::from_millis(member.retention_ms),
    })
}
