//! The part of one node in an attempt.

use crate::config::Poll;
use crate::ids::{NodeId, Seq, Token};
use crate::lease::acquisition::NodeReply;
use crate::lease::held::{NodeLease, RecordState, Request};
use crate::lease::releasing::{CompletionAt, NodeRelease, PendingAcquires};
use crate::lease::sends::Sends;
use crate::lease::waiting::NodeWait;
use crate::lease::{BlockReason, Ctx, NodeHealth};
use crate::member::LossId;
use crate::op::Holding;
use crate::time::Monotonic;

/// The part of one node in an attempt.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct NodeAttempt {
    pub(super) id: NodeId,
    pub(super) in_flight: Option<Seq>,
    /// Acquires that may have landed, or may yet.
    pub(super) sends: Sends,
    /// The end of the time for which this node vouches for the lease.
    pub(super) deadline: Option<Monotonic>,
    /// The send time of the acquire that this node confirmed.
    pub(super) confirmed: Option<Monotonic>,
    /// The loss since which its counter was not raised above the tokens that it may have forgotten.
    pub(super) loss: Option<LossId>,
    /// It granted, but the grant is of no use: too late, or in doubt.
    pub(super) landed: bool,
    /// Its counter as it showed it last with our record; `None` while a raise may have moved it.
    pub(super) counter: Option<Token>,
    /// Sends of the operation that it is being asked for now.
    pub(super) tries: u32,
    pub(super) retry_at: Option<Monotonic>,
    pub(super) block_reason: Option<BlockReason>,
}

impl NodeAttempt {
    pub(super) fn new(id: NodeId) -> Self {
        Self {
            id,
            in_flight: None,
            sends: Sends::default(),
            deadline: None,
            confirmed: None,
            loss: None,
            landed: false,
            counter: None,
            tries: 0,
            retry_at: None,
            block_reason: None,
        }
    }

    pub(super) fn is_awaited(&self) -> bool {
        self.in_flight.is_some() || self.retry_at.is_some()
    }

    pub(super) fn health(&self) -> NodeHealth {
        NodeHealth::from(self.block_reason.as_ref())
    }

    /// The node has, or may come to have, a record of this attempt.
    pub(super) fn may_hold(&self) -> bool {
        self.deadline.is_some() || self.landed || !self.sends.is_empty()
    }

    /// It may hold a record of this attempt, and has not shown that somebody else's record is in the way.
    pub(super) fn may_have_granted(&self) -> bool {
        self.may_hold() && self.health() != NodeHealth::ShowsRecord
    }

    /// Its part in the lease that the attempt brought; its next renewal is due at `due`.
    pub(super) fn into_lease(self, due: Monotonic) -> NodeLease {
        let record = match self.deadline {
            Some(deadline) => RecordState::Ours { deadline },
            None if self.may_hold() => RecordState::Maybe,
            None => RecordState::Absent,
        };
        let is_granted = self.deadline.is_some();
        let request = if is_granted { Request::Raise } else { Request::Acquire };
        NodeLease {
            id: self.id,
            in_flight: self.in_flight.map(|seq| (seq, request)),
            sends: if is_granted { Sends::default() } else { self.sends },
            record,
            due,
            failures: 0,
            in_doubt: self.loss.is_some() && is_granted,
            loss: self.loss,
            counter: self.counter,
        }
    }

    /// Its part in the wait for the next attempt.
    pub(super) fn into_wait(self, ctx: &mut Ctx<'_>) -> NodeWait {
        let (blocked_until, is_observed) = match &self.block_reason {
            Some(BlockReason::Busy(holding)) => {
                (Some(self.runs_out(holding, ctx).unwrap_or(Monotonic::FAR)), holding.is_observed())
            }
            // It may have such a record, too: the attempt was decided without its answer.
            None => (None, self.deadline.is_none() && self.in_flight.is_some() && ctx.config.is_observed(self.id)),
            Some(_) => (None, false),
        };
        NodeWait {
            id: self.id,
            blocked_until,
            is_observed,
            health: self.health(),
            open: self.in_flight,
            looking: None,
            reads: ctx.config.nodes().get(self.id.index()).is_some_and(|node| node.poll == Poll::Read),
            last_reply: NodeReply { block_reason: self.block_reason, is_ours: self.deadline.is_some() || self.landed },
        }
    }

    /// The instant at which the record in the way runs out, as far as is known.
    pub(super) fn runs_out(&self, holding: &Holding, ctx: &mut Ctx<'_>) -> Option<Monotonic> {
        let by_store = holding.left.map(|left| ctx.after(left));
        by_store.or_else(|| {
            let (now, drift) = (ctx.now.monotonic, ctx.config.drift());
            ctx.observations.note(self.id, ctx.resource, holding, now, drift)
        })
    }

    /// Its part in the release of the attempt.
    pub(super) fn to_release(&self, now: Monotonic) -> NodeRelease {
        NodeRelease::new(self.id, PendingAcquires::Maybe(self.sends.clone()), None, CompletionAt::Nowhere, now)
    }
}
