//! The state of an acquisition that outlives its attempts, and the state before the first attempt.

use alloc::boxed::Box;
use core::time::Duration;

use crate::backoff::Backoff;
use crate::config::Wait;
use crate::event::{Event, Failure};
use crate::ids::{NodeId, Seq};
use crate::lease::waiting::{self, NodeWait};
use crate::lease::watched::Watched;
use crate::lease::{Acquiring, Ctx, Input, Machine, Row, Step};
use crate::op::{Completion, Denial, Fault, Holder, Holding, Refusal, Seen};
use crate::prf::Domain;
use crate::queue::Reserved;
use crate::quorum::majority;
use crate::time::{Monotonic, Now, after_reservation, fraction_of, look_again};
use crate::view::View;

/// The reason why an attempt did not bring the lock.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum BlockReason {
    Busy(Box<Holding>),
    /// Free by now, or held by a holder that the node does not show.
    Vacant,
    Throttled(Fault),
    Unavailable(Fault),
    /// Waiting for fresh credentials.
    Credentials(Fault),
    /// It abstains, for this much longer.
    Abstains(Duration),
    /// It votes, but its vote counts only from the next attempt on.
    InDoubt,
    /// It votes, but may have lost completions of finished work, which the run asks for.
    CompletionsInDoubt,
    Denied(Denial),
}

impl From<Refusal> for BlockReason {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Conflict(seen) => match seen.holding {
                Some(holding) if !holding.released => Self::Busy(holding),
                Some(_) | None => Self::Vacant,
            },
            Refusal::Throttled(fault) => Self::Throttled(fault),
            Refusal::Unavailable(fault) => Self::Unavailable(fault),
            Refusal::NeedsCredentials(fault) => Self::Credentials(fault),
            Refusal::Abstains { .. } => Self::Abstains(Duration::ZERO),
            // The acquisition has ended by then, unless this answers something else than an acquire of a run.
            Refusal::Done(_) => Self::Vacant,
            Refusal::Denied(denial) => Self::Denied(denial),
        }
    }
}

impl BlockReason {
    /// The rank among the reasons of several nodes: the highest is the one that a person has to look at first.
    fn weight(&self) -> (u8, Duration) {
        match self {
            Self::Denied(_) => (7, Duration::ZERO),
            Self::Busy(_) => (6, Duration::ZERO),
            Self::CompletionsInDoubt => (5, Duration::ZERO),
            Self::Throttled(_) => (4, Duration::ZERO),
            Self::Credentials(_) => (3, Duration::ZERO),
            Self::Unavailable(_) => (2, Duration::ZERO),
            // The longest abstention: a caller that comes back before its end gets the same answer again.
            Self::Abstains(left) => (1, *left),
            Self::InDoubt | Self::Vacant => (0, Duration::ZERO),
        }
    }

    /// True for a node that denies the request, or cannot be asked.
    fn is_out_of_order(&self) -> bool {
        match self {
            Self::Denied(_) | Self::Throttled(_) | Self::Credentials(_) | Self::Unavailable(_) => true,
            Self::Busy(_) | Self::CompletionsInDoubt | Self::Abstains(_) | Self::InDoubt | Self::Vacant => false,
        }
    }

    /// The reason that the answers of all nodes give together; `None` where no node has answered.
    ///
    /// A holder is the reason as long as the nodes that can be asked could grant the request without the others. What a
    /// minority shows is no news of the lock: its holder may have lost it, and nobody else can have it. Nor is it the reason where so
    /// many nodes may have lost completions that they could not grant a run either way. Otherwise the reason is the one that a
    /// person has to look at first.
    pub(crate) fn of_all<'a>(replies: impl Iterator<Item = &'a NodeReply> + Clone) -> Option<Self> {
        let nodes = replies.clone().count();
        let reasons = || replies.clone().filter_map(|reply| reply.block_reason.as_ref());
        let out = reasons().filter(|reason| reason.is_out_of_order()).count();
        let is_busy = reasons().any(|reason| matches!(reason, Self::Busy(_)));
        if nodes - out < majority(nodes) {
            return reasons().filter(|reason| reason.is_out_of_order()).max_by_key(|reason| reason.weight()).cloned();
        }
        let doubtful = reasons().filter(|reason| **reason == Self::CompletionsInDoubt).count();
        if !is_busy || nodes - doubtful < majority(nodes) {
            let others = reasons().filter(|reason| !matches!(reason, Self::Busy(_)));
            return others.max_by_key(|reason| reason.weight()).cloned();
        }
        let shown = View::new(replies.clone().map(NodeReply::seen).collect()).holder()?;
        Some(Self::Busy(Box::new(shown.holding)))
    }
}

/// The answer of one node to a try.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct NodeReply {
    pub(crate) block_reason: Option<BlockReason>,
    /// It has our record of this attempt, so no other one.
    pub(crate) is_ours: bool,
}

impl NodeReply {
    fn seen(&self) -> Option<Seen> {
        match &self.block_reason {
            Some(BlockReason::Busy(holding)) => Some(Seen { holding: Some(holding.clone()), done: None }),
            Some(BlockReason::Vacant) => Some(Seen::default()),
            Some(
                BlockReason::Throttled(_)
                | BlockReason::Unavailable(_)
                | BlockReason::Credentials(_)
                | BlockReason::Abstains(_)
                | BlockReason::InDoubt
                | BlockReason::CompletionsInDoubt
                | BlockReason::Denied(_),
            )
            | None => self.is_ours.then(Seen::default),
        }
    }
}

/// The condition of a node by its last answer: it decides whether a hint from the node can be believed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum NodeHealth {
    /// Somebody holds the lock, or held it a moment ago.
    ShowsRecord,
    /// It asks for fresh credentials.
    NeedsCredentials,
    /// It cannot grant anything now: it is down, throttles, abstains or refuses.
    Unusable,
    /// It has not refused.
    NoRefusal,
}

impl From<Option<&BlockReason>> for NodeHealth {
    fn from(block_reason: Option<&BlockReason>) -> Self {
        match block_reason {
            Some(BlockReason::Busy(_) | BlockReason::Vacant) => Self::ShowsRecord,
            Some(BlockReason::Credentials(_)) => Self::NeedsCredentials,
            Some(
                BlockReason::Throttled(_)
                | BlockReason::Unavailable(_)
                | BlockReason::Abstains(_)
                | BlockReason::InDoubt
                | BlockReason::CompletionsInDoubt
                | BlockReason::Denied(_),
            ) => Self::Unusable,
            None => Self::NoRefusal,
        }
    }
}

fn bit(node: NodeId) -> u32 {
    1_u32.checked_shl(node.get().into()).unwrap_or(0)
}

/// The request of one caller for a lock, from the first attempt to the last.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Acquisition {
    wait: Wait,
    wait_until: Monotonic,
    /// The number of attempts so far.
    pub(crate) attempt: u32,
    /// Sleeps in a row without a sign of progress; the exponent of the backoff.
    tries: u32,
    next_seq: u32,
    block_reason: Option<BlockReason>,
    contended: bool,
    /// The last attempt has a place in the queue of waiters.
    pub(crate) has_place: bool,
    /// The reservation for another that the last attempt met.
    pub(crate) reserved: Option<Reserved>,
    /// A bit for each node whose fresh credentials have already led to a try. If such a node refuses again, the next try
    /// waits for the backoff.
    tried_fresh: u32,
    /// Set while the record in the way is watched, to see if its holder lives.
    watched: Option<Box<Watched>>,
}

impl Acquisition {
    pub(crate) fn new(wait: Wait, now: Now) -> Self {
        let wait_until = match wait {
            Wait::For(duration) | Wait::Watch(duration) => now.monotonic.plus(duration),
            Wait::Once | Wait::Forever => Monotonic::FAR,
        };
        Self {
            wait,
            wait_until,
            attempt: 0,
            tries: 0,
            next_seq: 0,
            block_reason: None,
            contended: false,
            has_place: false,
            reserved: None,
            tried_fresh: 0,
            watched: None,
        }
    }

    pub(crate) fn next_seq(&mut self) -> Seq {
        self.next_seq += 1;
        Seq::new(self.next_seq)
    }

    /// The number that the next send takes.
    pub(crate) fn upcoming_seq(&self) -> u32 {
        self.next_seq
    }

    /// The end of the wait, and of the watch where that is later.
    fn ends_at(&self) -> Monotonic {
        match &self.watched {
            Some(watched) => watched.until().map_or(self.wait_until, |until| until.max(self.wait_until)),
            // A single attempt ends by itself.
            None if self.wait.is_for_nobody() => Monotonic::FAR,
            None => self.wait_until,
        }
    }

    pub(crate) fn wait_over_at(&self) -> Option<Monotonic> {
        Some(self.ends_at()).filter(|at| *at < Monotonic::FAR)
    }

    pub(crate) fn is_past_wait(&self, now: Monotonic) -> bool {
        now >= self.ends_at()
    }

    /// Returns true if the wait is over, and the watch as well, since the holder was seen to live.
    pub(crate) fn is_seen_out(&self, now: Monotonic) -> bool {
        now >= self.wait_until && self.watched.as_ref().is_some_and(|watched| watched.until().is_none())
    }

    /// Returns true if no further attempt may start.
    pub(crate) fn is_over(&self, now: Monotonic) -> bool {
        (self.wait.is_for_nobody() && self.watched.is_none()) || self.is_past_wait(now)
    }

    /// Returns true if the attempt takes a place in the queue of waiters. Runs stand by: a finish tells all of them.
    ///
    /// Other libraries know no queue. Where one was seen to hold the lock, the client stays out of it for a while: a lock that
    /// passes from hand to hand is never free for those who only poll.
    pub(crate) fn stands_in_queue(&self, ctx: &Ctx<'_>) -> bool {
        let is_shared = ctx.observations.is_shared(ctx.resource, ctx.now.monotonic);
        let waits = !self.wait.is_for_nobody() && ctx.options.run().is_none();
        ctx.config.queues() && waits && !is_shared && (ctx.options.fair() || self.attempt > 1)
    }

    pub(crate) fn holding(&self) -> Option<&Holding> {
        match &self.block_reason {
            Some(BlockReason::Busy(holding)) => Some(holding),
            Some(
                BlockReason::Vacant
                | BlockReason::Throttled(_)
                | BlockReason::Unavailable(_)
                | BlockReason::Credentials(_)
                | BlockReason::Abstains(_)
                | BlockReason::InDoubt
                | BlockReason::CompletionsInDoubt
                | BlockReason::Denied(_),
            )
            | None => None,
        }
    }

    /// Remembers the reason, and reports the first one that is another holder.
    pub(crate) fn note_block_reason(&mut self, block_reason: BlockReason, ctx: &mut Ctx<'_>) {
        if let (BlockReason::Busy(holding), false) = (&block_reason, self.contended) {
            self.contended = true;
            ctx.event(Event::Contended { lock: ctx.lock, holding: holding.clone() });
        }
        if ctx.config.queues()
            && matches!(&block_reason, BlockReason::Busy(holding) if holding.holder == Holder::Foreign)
        {
            ctx.observations.saw_foreign(ctx.resource, ctx.now.monotonic);
        }
        self.block_reason = Some(block_reason);
    }

    /// When to try next: after the backoff, or when the record in the way runs out, whichever is sooner.
    pub(crate) fn next_try(&mut self, runs_out: Option<Monotonic>, ctx: &Ctx<'_>) -> Monotonic {
        let backoff = match &self.block_reason {
            Some(BlockReason::Throttled(_)) => Backoff::THROTTLED,
            Some(
                BlockReason::Busy(_)
                | BlockReason::Vacant
                | BlockReason::Unavailable(_)
                | BlockReason::Credentials(_)
                | BlockReason::Abstains(_)
                | BlockReason::InDoubt
                | BlockReason::CompletionsInDoubt
                | BlockReason::Denied(_),
            )
            | None => Backoff::NORMAL,
        };
        let jitter = ctx.jitter(Domain::Backoff, self.attempt, self.tries);
        if let (Some(reserved), Some(BlockReason::Vacant)) = (self.reserved, &self.block_reason) {
            return ctx.after(after_reservation(reserved.left, reserved.place, jitter));
        }
        // A holder of our own kind tells the next in the queue. Foreign holders tell nobody.
        let is_told = self.has_place && self.holding().is_some_and(|holding| holding.holder != Holder::Foreign);
        let sleep = if is_told { backoff.steady(u32::MAX, jitter) } else { backoff.sleep(self.tries, jitter) };
        // Do not spin on a record that is always about to run out, or whose ttl is very short.
        let shortest = backoff.sleep(0, 0);
        let look_again =
            self.watched.as_ref().and(self.holding()).and_then(|holding| holding.record_ttl).map(look_again);
        let by_backoff = ctx.after(look_again.map_or(sleep, |pause| pause.max(shortest).min(sleep)));
        // A record that should have run out by now, but has not, does not tell when it will.
        let by_expiry = runs_out.filter(|at| *at > ctx.now.monotonic).map(|at| {
            // Waiters that saw the same record must not all return at the same instant.
            let spread = ctx.request_timeout() / 8;
            at.plus(fraction_of(spread, ctx.jitter(Domain::Takeover, self.attempt, self.tries)))
        });
        self.tries = self.tries.saturating_add(1);
        let soonest = ctx.after(shortest);
        by_expiry.map_or(by_backoff, |at| at.clamp(soonest, by_backoff))
    }

    /// Notes the last answer of a node. Unless it asks for credentials, it has accepted those it had.
    pub(crate) fn note_health(&mut self, node: NodeId, health: NodeHealth) {
        if health != NodeHealth::NeedsCredentials {
            self.tried_fresh &= !bit(node);
        }
    }

    /// Returns true the first time that fresh credentials of a node lead to a try. A store that refuses those as well would
    /// otherwise have credentials fetched without end.
    pub(crate) fn tries_fresh(&mut self, node: NodeId) -> bool {
        let is_first = self.tried_fresh & bit(node) == 0;
        self.tried_fresh |= bit(node);
        is_first
    }

    /// Notes what the nodes show of the record in the way, if it is to be watched. The watch begins with the first attempt that
    /// is refused because of a record that only observers can declare dead.
    pub(super) fn watch(&mut self, nodes: &[NodeWait], ctx: &Ctx<'_>) {
        if !matches!(self.wait, Wait::Watch(_)) || self.holding().is_none() {
            return;
        }
        let watched = match &mut self.watched {
            Some(watched) => watched,
            None => {
                let Some(until) = waiting::declared_dead_at(nodes) else { return };
                let until = until.max(ctx.now.monotonic).plus(ctx.request_timeout());
                self.watched.insert(Box::new(Watched::new(until)))
            }
        };
        for node in nodes {
            if let Some(BlockReason::Busy(holding)) = &node.last_reply.block_reason {
                watched.saw(node.id, holding, nodes.len());
            }
        }
    }

    /// Resets the backoff, since something has changed.
    pub(crate) fn made_progress(&mut self) {
        self.tries = 0;
    }

    /// Ends the acquisition with an event that names the reason.
    pub(crate) fn fail(self, ctx: &mut Ctx<'_>) -> Machine {
        let once = self.wait.is_for_nobody();
        let failure = match self.block_reason {
            Some(BlockReason::Busy(holding)) if once => Failure::Busy { holding: Some(holding) },
            Some(BlockReason::Busy(holding)) => Failure::TimedOut { holding: Some(holding) },
            Some(BlockReason::Vacant | BlockReason::InDoubt) | None if once => Failure::Busy { holding: None },
            Some(BlockReason::Vacant | BlockReason::InDoubt) | None => Failure::TimedOut { holding: None },
            Some(BlockReason::Throttled(fault)) => Failure::Throttled(fault),
            Some(BlockReason::Unavailable(fault) | BlockReason::Credentials(fault)) => Failure::Unavailable(fault),
            Some(BlockReason::Abstains(left)) => Failure::Abstains { left },
            Some(BlockReason::CompletionsInDoubt) => Failure::CompletionsInDoubt,
            Some(BlockReason::Denied(denial)) => Failure::Refused(denial),
        };
        ctx.event(Event::Failed { lock: ctx.lock, failure });
        Machine::Ended
    }

    /// Ends the acquisition of a run whose work is done.
    pub(crate) fn done(completion: Box<Completion>, ctx: &mut Ctx<'_>) -> Machine {
        ctx.event(Event::Failed { lock: ctx.lock, failure: Failure::Done(completion) });
        Machine::Ended
    }

    pub(crate) fn cancel(ctx: &mut Ctx<'_>) -> Machine {
        ctx.event(Event::Failed { lock: ctx.lock, failure: Failure::Cancelled });
        Machine::Ended
    }
}

/// An acquisition that is new, or queued behind another one of the same client.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Idle {
    pub(crate) acquisition: Acquisition,
    its_turn: bool,
}

impl Idle {
    /// `behind` is the lease of the same client that is in the way, if there is one.
    pub(crate) fn new(mut acquisition: Acquisition, behind: Option<Holding>) -> Self {
        acquisition.block_reason = behind.map(|holding| BlockReason::Busy(Box::new(holding)));
        Self { acquisition, its_turn: false }
    }

    pub(crate) fn start_at(&self) -> Option<Monotonic> {
        self.its_turn.then_some(Monotonic::default())
    }

    pub(crate) fn handle(mut self, input: Input<'_>, ctx: &mut Ctx<'_>) -> Step {
        match input {
            Input::Start { fresh, floor } if self.its_turn => {
                (Machine::Acquiring(Acquiring::start(self.acquisition, fresh, floor, ctx)), Some(Row::IdleStarted))
            }
            Input::Turn => {
                self.its_turn = true;
                (Machine::Idle(self), None)
            }
            Input::Timeout if self.acquisition.is_past_wait(ctx.now.monotonic) => {
                (self.acquisition.fail(ctx), Some(Row::IdleWaitOver))
            }
            Input::Release => (Acquisition::cancel(ctx), Some(Row::IdleCancelled)),
            Input::Start { .. }
            | Input::Timeout
            | Input::RenewAlong(_)
            | Input::Outcome { .. }
            | Input::Wake { .. }
            | Input::FreshCredentials(_)
            | Input::Late { .. }
            | Input::Finish(_)
            | Input::DeclareLost => (Machine::Idle(self), None),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::{Nonce, Version};
    use crate::op::{DenialKind, FaultKind, Holder};

    fn busy() -> BlockReason {
        let nonce = Nonce::from_bytes([1; 16]);
        let holder = Holder::Lease { nonce, seq: None };
        BlockReason::Busy(Box::new(Holding::of(holder, Version::of(&nonce, Seq::new(1)))))
    }

    fn reason_of(nodes: &[Option<BlockReason>]) -> Option<BlockReason> {
        let reply =
            |block_reason: &Option<BlockReason>| NodeReply { block_reason: block_reason.clone(), is_ours: false };
        BlockReason::of_all(nodes.iter().map(reply).collect::<alloc::vec::Vec<_>>().iter())
    }

    #[test]
    fn the_most_urgent_block_reason_is_reported() {
        let fault = || Fault::of(FaultKind::Server);
        let in_order = [
            BlockReason::Denied(Denial::new(DenialKind::Permission, "not allowed")),
            BlockReason::CompletionsInDoubt,
            BlockReason::Throttled(fault()),
            BlockReason::Credentials(fault()),
            BlockReason::Unavailable(fault()),
            BlockReason::Abstains(Duration::from_secs(5)),
            BlockReason::Abstains(Duration::from_secs(1)),
            BlockReason::Vacant,
        ];
        for (at, first) in in_order.iter().enumerate() {
            for second in &in_order[at..] {
                let (first, second) = (Some(first.clone()), Some(second.clone()));
                assert_eq!(reason_of(&[first.clone(), second.clone(), None]), first, "before {second:?}");
                assert_eq!(reason_of(&[None, second.clone(), first.clone()]), first, "before {second:?}");
            }
        }
        assert_eq!(reason_of(&[None, None, None]), None);
    }

    #[test]
    fn holder_is_reported_unless_a_majority_is_out_of_order() {
        let down = || Some(BlockReason::Unavailable(Fault::of(FaultKind::Unreachable)));
        assert_eq!(reason_of(&[down(), Some(busy()), None]), Some(busy()));
        assert_eq!(reason_of(&[down(), Some(busy()), down()]), down(), "a minority's word of a holder");
        let doubtful = || Some(BlockReason::CompletionsInDoubt);
        assert_eq!(
            reason_of(&[doubtful(), Some(busy()), doubtful()]),
            doubtful(),
            "the run cannot be granted either way"
        );
        assert_eq!(reason_of(&[doubtful(), Some(busy()), Some(busy())]), Some(busy()));
        assert_eq!(
            reason_of(&[doubtful(), Some(busy()), down()]),
            Some(busy()),
            "a node that is down may grant it yet"
        );
        let denied = || Some(BlockReason::Denied(Denial::new(DenialKind::Permission, "not allowed")));
        assert_eq!(reason_of(&[denied(), Some(busy()), Some(busy())]), Some(busy()));
        assert!(matches!(reason_of(&[denied(), Some(busy()), down()]), Some(BlockReason::Denied(_))));
    }
}
