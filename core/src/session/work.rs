//! An operation of a machine on its way through the layer.

use core::time::Duration;

use crate::ids::{LockId, Resource, Seq};
use crate::op::Op;

/// An operation of a machine. `T` is whom to answer.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Work<T> {
    pub(crate) target: T,
    pub(crate) lock: LockId,
    pub(crate) resource: Resource,
    pub(crate) seq: Seq,
    pub(crate) op: Op,
    /// How long each request for it is awaited.
    pub(crate) patience: Duration,
    /// The ttl + lock_delay that the machine counts on; zero where the operation has none.
    pub(super) ttl: Duration,
    /// How often a row turned out to be free.
    pub(super) tries: u8,
    /// The attempt was released meanwhile: its row must not be written any more.
    pub(super) is_given_up: bool,
}

impl<T> Work<T> {
    pub(crate) fn new(target: T, lock: LockId, resource: Resource, (seq, op): (Seq, Op), patience: Duration) -> Self {
        let ttl = match &op {
            Op::Acquire(acquire) => acquire.record_ttl,
            Op::Renew(renew) => renew.record_ttl,
            Op::Release(_) | Op::Finish(_) | Op::Revoke(_) | Op::Tell(_) | Op::Raise(_) | Op::Read => Duration::ZERO,
        };
        Self { target, lock, resource, seq, op, patience, ttl, tries: 0, is_given_up: false }
    }
}
