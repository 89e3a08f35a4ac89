//! Between attempts: asleep until the record in the way runs out, somebody wakes us, or the backoff says so.

use alloc::vec::Vec;

use crate::config::Poll;
use crate::ids::{NodeId, Seq};
use crate::lease::acquisition::NodeReply;
use crate::lease::{Acquiring, Acquisition, BlockReason, Ctx, Input, Machine, NodeHealth, Row, Step, node_ids};
use crate::op::{Applied, Fault, FaultKind, Op, Outcome, Refusal};
use crate::quorum::majority;
use crate::time::Monotonic;

/// A sleeping acquisition. The poll timer always runs; wake-ups only shorten the sleep.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Waiting {
    acquisition: Acquisition,
    /// When to look or try again; `FAR` while looks are in flight.
    next_try: Monotonic,
    /// The last attempt is being released, which will bring a hint that says nothing.
    echoes: bool,
    legs: Vec<Leg>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Leg {
    node: NodeId,
    /// Held by somebody when last seen, until this instant as far as is known.
    blocked_until: Option<Monotonic>,
    health: NodeHealth,
    /// A send of the last attempt that was decided without its answer.
    open: Option<Seq>,
    looking: Option<Seq>,
    /// By the last look at it, or the attempt before.
    reply: NodeReply,
    /// Whether this node is looked at before it is asked.
    reads: bool,
}

/// What the last attempt has brought of one node.
pub(crate) struct Answer {
    /// Until when a record stands in the way, as far as is known.
    pub(crate) blocked_until: Option<Monotonic>,
    pub(crate) health: NodeHealth,
    /// The send that it has not answered.
    pub(crate) open: Option<Seq>,
    pub(crate) reply: NodeReply,
}

impl Waiting {
    /// `answers` are those of all nodes, in their order.
    pub(crate) fn new(
        acquisition: Acquisition,
        answers: impl Iterator<Item = Answer>,
        echoes: bool,
        ctx: &Ctx<'_>,
    ) -> Self {
        let legs = node_ids(ctx.config.nodes().len())
            .zip(ctx.config.nodes())
            .zip(answers)
            .map(|((node, config), Answer { blocked_until, health, open, reply })| Leg {
                node,
                blocked_until,
                health,
                open,
                looking: None,
                reply,
                reads: config.poll == Poll::Read,
            })
            .collect();
        let mut waiting = Self { acquisition, next_try: Monotonic::FAR, echoes, legs };
        waiting.sleep(ctx);
        waiting
    }

    pub(crate) fn acquisition(&self) -> &Acquisition {
        &self.acquisition
    }

    pub(crate) fn wake_at(&self) -> Option<Monotonic> {
        let look_at = self.must_look(self.next_try).then_some(self.next_try);
        [look_at, self.acquisition.wait_over_at()].into_iter().flatten().min()
    }

    pub(crate) fn start_at(&self) -> Option<Monotonic> {
        (!self.must_look(self.next_try)).then_some(self.next_try)
    }

    pub(crate) fn handle(mut self, input: Input<'_>, ctx: &mut Ctx<'_>) -> Step {
        let now = ctx.now.monotonic;
        match input {
            Input::Timeout if self.acquisition.is_past_wait(now) => {
                (self.acquisition.fail(ctx), Some(Row::WaitingOver))
            }
            Input::Timeout if self.must_look(self.next_try) && now >= self.next_try => {
                self.look(ctx);
                (Machine::Waiting(self), Some(Row::WaitingLooked))
            }
            Input::Start(fresh) if !self.must_look(self.next_try) && now >= self.next_try => {
                (Machine::Acquiring(Acquiring::start(self.acquisition, fresh, ctx)), Some(Row::WaitingStarted))
            }
            Input::Outcome { node, seq, outcome } => {
                match self.legs.iter().position(|leg| leg.node == node && leg.looking == Some(seq)) {
                    Some(at) => self.saw(at, outcome, ctx),
                    None => {
                        // A late word on the last attempt: what it may have brought is being released.
                        if self.legs.iter().any(|leg| leg.open == Some(seq)) {
                            self.echoes |= match &outcome {
                                Outcome::Applied(_) => true,
                                Outcome::NotApplied(_) => false,
                                Outcome::Unknown(fault) => fault.kind != FaultKind::Timeout,
                            };
                            // Or abstentions that were shown at the same time would be waited out one after the other.
                            if let Outcome::NotApplied(Refusal::Abstains { stamp }) = outcome {
                                ctx.abstains(node, stamp);
                            }
                        }
                        (Machine::Waiting(self), None)
                    }
                }
            }
            Input::Wake => {
                let row = self.wake(now).then_some(Row::WaitingWoken);
                (Machine::Waiting(self), row)
            }
            Input::FreshCredentials(node) => {
                let row = self.take_credentials(node, now).then_some(Row::WaitingWoken);
                (Machine::Waiting(self), row)
            }
            Input::Release => (Acquisition::cancel(ctx), Some(Row::WaitingCancelled)),
            Input::Timeout
            | Input::Start(_)
            | Input::Turn
            | Input::RenewAlong(_)
            | Input::Late { .. }
            | Input::DeclareLost => (Machine::Waiting(self), None),
        }
    }

    /// Whether an attempt at that instant would only bring refusals that a cheaper read can bring as well.
    fn must_look(&self, at: Monotonic) -> bool {
        let blocked = self.legs.iter().filter(|leg| leg.reads && leg.blocked_until.is_some_and(|until| until > at));
        self.legs.len() - blocked.count() < majority(self.legs.len())
    }

    /// A hint that the lock was released: heeded if enough nodes are of use, so that it was a record that stood in the
    /// way, and if it is not our own release that is hinted at. Otherwise a store that fails, but carries out what it is
    /// asked, would wake us with the release of each attempt, and keep us and itself busy for ever. Answers whether it is
    /// heeded.
    pub(crate) fn wake(&mut self, now: Monotonic) -> bool {
        let is_useless = |leg: &&Leg| matches!(leg.health, NodeHealth::Unusable | NodeHealth::NeedsCredentials);
        let useless = self.legs.iter().filter(is_useless).count();
        let spare = self.legs.len() - majority(self.legs.len());
        let heeded = useless <= spare && !self.echoes;
        if heeded {
            self.try_at(now);
        }
        heeded
    }

    /// A node has fresh credentials. Answers whether that leads to a try.
    pub(crate) fn take_credentials(&mut self, node: NodeId, now: Monotonic) -> bool {
        let wanted = self.legs.iter().any(|leg| leg.node == node && leg.health == NodeHealth::NeedsCredentials);
        let taken = wanted && self.acquisition.tries_fresh(node);
        if taken {
            self.try_at(now);
        }
        taken
    }

    /// Tries at once, whatever was seen before.
    fn try_at(&mut self, now: Monotonic) {
        for leg in &mut self.legs {
            leg.blocked_until = None;
            leg.looking = None;
        }
        self.next_try = now;
    }

    fn look(&mut self, ctx: &mut Ctx<'_>) {
        self.next_try = Monotonic::FAR;
        self.echoes = false;
        for leg in self.legs.iter_mut().filter(|leg| leg.reads && leg.blocked_until.is_some()) {
            let seq = self.acquisition.next_seq();
            leg.looking = Some(seq);
            ctx.send(leg.node, seq, Op::Read);
        }
    }

    fn saw(mut self, at: usize, outcome: Outcome, ctx: &mut Ctx<'_>) -> Step {
        let leg = &mut self.legs[at];
        leg.looking = None;
        let (now, drift) = (ctx.now.monotonic, ctx.config.drift());
        let block_reason = match outcome {
            Outcome::Applied(Applied::Read(seen)) => {
                ctx.counter_seen(&seen);
                leg.blocked_until = match seen.held() {
                    None => {
                        ctx.observations.forget(leg.node, ctx.resource);
                        None
                    }
                    Some(holding) => {
                        let observed = ctx.observations.note(leg.node, ctx.resource, holding, now, drift);
                        Some(holding.left.map(|left| ctx.after(left)).or(observed).unwrap_or(Monotonic::FAR))
                    }
                };
                BlockReason::from(Refusal::Conflict(seen))
            }
            Outcome::NotApplied(refusal) => refusal.into(),
            Outcome::Unknown(fault) => BlockReason::Unavailable(fault),
            Outcome::Applied(_) => {
                BlockReason::Unavailable(Fault::new(FaultKind::Protocol, "the answer fits another operation"))
            }
        };
        leg.health = NodeHealth::from(Some(&block_reason));
        self.acquisition.note_health(leg.node, leg.health);
        let denied = matches!(block_reason, BlockReason::Denied(_));
        leg.reply = NodeReply { block_reason: Some(block_reason), is_ours: false };
        let replies: Vec<NodeReply> = self.legs.iter().map(|leg| leg.reply.clone()).collect();
        if let Some(block_reason) = BlockReason::of_all(&replies) {
            self.acquisition.note_block_reason(block_reason, ctx);
        }
        if denied && self.legs.len() == 1 {
            return (self.acquisition.fail(ctx), Some(Row::WaitingDenied));
        }
        if !self.must_look(now) {
            self.acquisition.made_progress();
            self.next_try = now;
        } else if self.legs.iter().all(|leg| leg.looking.is_none()) {
            self.sleep(ctx);
        }
        (Machine::Waiting(self), Some(Row::WaitingSaw))
    }

    fn sleep(&mut self, ctx: &Ctx<'_>) {
        let mut ends: Vec<Monotonic> = self.legs.iter().filter_map(|leg| leg.blocked_until).collect();
        ends.sort_unstable();
        let may_stay = self.legs.len() - majority(self.legs.len());
        let runs_out = ends.len().checked_sub(may_stay + 1).and_then(|at| ends.get(at)).copied();
        self.next_try = self.acquisition.next_try(runs_out, ctx);
    }
}
