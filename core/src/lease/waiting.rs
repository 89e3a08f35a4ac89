//! Between attempts: asleep until the record in the way runs out, a wake-up comes, or the backoff is over.

use alloc::boxed::Box;

use crate::ids::{NodeId, Seq};
use crate::lease::acquisition::NodeReply;
use crate::lease::{Acquiring, Acquisition, BlockReason, Ctx, Input, Machine, NodeHealth, Row, Step, misfit};
use crate::one_or_many::OneOrMany;
use crate::op::{Applied, FaultKind, Holding, Op, Outcome, Refusal, Seen};
use crate::quorum::majority;
use crate::time::Monotonic;
use crate::view::settled;

/// A sleeping acquisition. The poll timer always runs; wake-ups only shorten the sleep.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Waiting {
    acquisition: Acquisition,
    /// When to look or try again; `FAR` while looks are in flight.
    next_try: Monotonic,
    /// The last attempt is being released. The wake-up that this causes says nothing of others.
    echoes: bool,
    nodes: OneOrMany<NodeWait>,
}

/// The part of one node in a wait.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct NodeWait {
    pub(super) id: NodeId,
    /// It showed a record in the way, which stands until this instant as far as is known.
    pub(super) blocked_until: Option<Monotonic>,
    /// Only observers can declare that record dead, or the one that it may have.
    pub(super) is_observed: bool,
    pub(super) health: NodeHealth,
    /// A send of the last attempt, which was decided without its answer.
    pub(super) open: Option<Seq>,
    pub(super) looking: Option<Seq>,
    /// Its answer to the last look, or to the attempt before.
    pub(super) last_reply: NodeReply,
    /// It is looked at before it is asked.
    pub(super) reads: bool,
}

impl Waiting {
    /// A wait on all nodes, in their order.
    pub(super) fn new(acquisition: Acquisition, nodes: OneOrMany<NodeWait>, echoes: bool, ctx: &Ctx<'_>) -> Box<Self> {
        let mut waiting = Box::new(Self { acquisition, next_try: Monotonic::FAR, echoes, nodes });
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

    pub(crate) fn handle(mut self: Box<Self>, input: Input<'_>, ctx: &mut Ctx<'_>) -> Step {
        let now = ctx.now.monotonic;
        match input {
            Input::Timeout if self.acquisition.is_past_wait(now) => {
                (self.acquisition.fail(ctx), Some(Row::WaitingOver))
            }
            Input::Timeout if self.must_look(self.next_try) && now >= self.next_try => {
                self.look(ctx);
                (Machine::Waiting(self), Some(Row::WaitingLooked))
            }
            Input::Start { fresh, floor } if !self.must_look(self.next_try) && now >= self.next_try => {
                (Machine::Acquiring(Acquiring::start(self.acquisition, fresh, floor, ctx)), Some(Row::WaitingStarted))
            }
            Input::Outcome { node: id, seq, outcome, .. } => {
                match self.nodes.iter().position(|node| node.id == id && node.looking == Some(seq)) {
                    Some(at) => self.saw(at, outcome, ctx),
                    None => {
                        // A late answer to the last attempt: the record that it may have left is being released.
                        if self.nodes.iter().any(|node| node.open == Some(seq)) {
                            self.echoes |= match &outcome {
                                Outcome::Applied(_) => true,
                                Outcome::NotApplied(_) => false,
                                Outcome::Unknown(fault) => fault.kind != FaultKind::Timeout,
                            };
                            // Otherwise, waits that began together would follow one another.
                            match outcome {
                                Outcome::NotApplied(Refusal::Abstains { stamp }) => {
                                    ctx.note_abstention(id, stamp);
                                }
                                Outcome::NotApplied(Refusal::Conflict(seen)) => {
                                    ctx.observe(id, &seen);
                                }
                                Outcome::Applied(_) | Outcome::NotApplied(_) | Outcome::Unknown(_) => {}
                            }
                        }
                        (Machine::Waiting(self), None)
                    }
                }
            }
            Input::Wake { after } => {
                let row = self.wake(now.plus(after)).then_some(Row::WaitingWoken);
                (Machine::Waiting(self), row)
            }
            Input::FreshCredentials(id) => {
                let row = self.take_credentials(id, now).then_some(Row::WaitingWoken);
                (Machine::Waiting(self), row)
            }
            Input::Release => (Acquisition::cancel(ctx), Some(Row::WaitingCancelled)),
            Input::Timeout
            | Input::Start { .. }
            | Input::Turn
            | Input::RenewAlong(_)
            | Input::Late { .. }
            | Input::Finish(_)
            | Input::DeclareLost => (Machine::Waiting(self), None),
        }
    }

    /// Returns true if an attempt at that instant would only bring refusals, which a cheaper read can show as well.
    fn must_look(&self, at: Monotonic) -> bool {
        let blocked = self.nodes.iter().filter(|node| node.reads && node.blocked_until.is_some_and(|until| until > at));
        self.nodes.len() - blocked.count() < majority(self.nodes.len())
    }

    /// Handles a wake-up: a hint that the lock was released. Returns true if it leads to a try.
    ///
    /// It does so only if a record was in the way, so that enough nodes can grant, and if the hint does not come from a
    /// release of our own. Otherwise a store that fails, but carries out what it is asked, would wake us with the release
    /// of each attempt, and keep us and itself busy forever.
    pub(crate) fn wake(&mut self, at: Monotonic) -> bool {
        let is_useless = |node: &&NodeWait| matches!(node.health, NodeHealth::Unusable | NodeHealth::NeedsCredentials);
        let useless = self.nodes.iter().filter(is_useless).count();
        let spare = self.nodes.len() - majority(self.nodes.len());
        let heeded = useless <= spare && !self.echoes;
        if heeded {
            self.try_at(at);
        }
        heeded
    }

    /// Notes that a node has fresh credentials. Returns true if that leads to a try.
    pub(crate) fn take_credentials(&mut self, id: NodeId, now: Monotonic) -> bool {
        let wanted = self.nodes.iter().any(|node| node.id == id && node.health == NodeHealth::NeedsCredentials);
        let taken = wanted && self.acquisition.tries_fresh(id);
        if taken {
            self.try_at(now);
        }
        taken
    }

    /// Tries at that instant, whatever was seen before.
    fn try_at(&mut self, at: Monotonic) {
        for node in &mut self.nodes {
            node.blocked_until = None;
            node.looking = None;
        }
        self.next_try = at;
    }

    fn look(&mut self, ctx: &mut Ctx<'_>) {
        self.next_try = Monotonic::FAR;
        self.echoes = false;
        for node in self.nodes.iter_mut().filter(|node| node.reads && node.blocked_until.is_some()) {
            let seq = self.acquisition.next_seq();
            node.looking = Some(seq);
            ctx.send(node.id, seq, Op::Read);
        }
    }

    fn saw(mut self: Box<Self>, at: usize, outcome: Outcome, ctx: &mut Ctx<'_>) -> Step {
        let node = &mut self.nodes[at];
        node.looking = None;
        let now = ctx.now.monotonic;
        let block_reason = match outcome {
            Outcome::Applied(Applied::Read(Seen { done: Some(completion), .. })) if ctx.options.is_unless_done() => {
                let Some(completion) = settled(core::iter::once(&*completion), self.nodes.len()).map(Box::new) else {
                    return (Machine::Waiting(self), None);
                };
                // An attempt asks all nodes, and so tells whether the result counts.
                if completion.unsettled && !self.acquisition.is_past_wait(now) {
                    self.try_at(now);
                    return (Machine::Waiting(self), Some(Row::WaitingSaw));
                }
                return (Acquisition::done(completion, ctx), Some(Row::WaitingDone));
            }
            Outcome::Applied(Applied::Read(seen)) => {
                let observed = ctx.observe(node.id, &seen);
                node.is_observed = seen.held().is_some_and(Holding::is_observed);
                node.blocked_until = seen
                    .held()
                    .map(|holding| holding.left.map(|left| ctx.after(left)).or(observed).unwrap_or(Monotonic::FAR));
                BlockReason::from(Refusal::Conflict(seen))
            }
            Outcome::NotApplied(refusal) => refusal.into(),
            Outcome::Unknown(fault) => BlockReason::Unavailable(fault),
            Outcome::Applied(_) => BlockReason::Unavailable(misfit()),
        };
        node.health = NodeHealth::from(Some(&block_reason));
        self.acquisition.note_health(node.id, node.health);
        let denied = matches!(block_reason, BlockReason::Denied(_));
        node.last_reply = NodeReply { block_reason: Some(block_reason), is_ours: false };
        if let Some(block_reason) = BlockReason::of_all(self.nodes.iter().map(|node| &node.last_reply)) {
            self.acquisition.note_block_reason(block_reason, ctx);
        }
        if denied && self.nodes.len() == 1 {
            return (self.acquisition.fail(ctx), Some(Row::WaitingDenied));
        }
        self.acquisition.watch(&self.nodes, ctx);
        if self.acquisition.is_seen_out(now) {
            return (self.acquisition.fail(ctx), Some(Row::WaitingLives));
        }
        if !self.must_look(now) {
            self.acquisition.made_progress();
            self.next_try = now;
        } else if self.nodes.iter().all(|node| node.looking.is_none()) {
            self.sleep(ctx);
        }
        (Machine::Waiting(self), Some(Row::WaitingSaw))
    }

    fn sleep(&mut self, ctx: &Ctx<'_>) {
        self.next_try = self.acquisition.next_try(runs_out(&self.nodes), ctx);
    }
}

/// When so many records have run out that the other nodes can grant, as far as is known; `None` if they can do so now.
fn runs_out(nodes: &[NodeWait]) -> Option<Monotonic> {
    let mut ends: OneOrMany<Monotonic> = nodes.iter().filter_map(|node| node.blocked_until).collect();
    ends.sort_unstable();
    let may_stay = nodes.len() - majority(nodes.len());
    ends.len().checked_sub(may_stay + 1).and_then(|at| ends.get(at)).copied()
}

/// When observers may have declared so many records dead that the other nodes can grant; `None` if that needs no observers, or
/// if the records do not say how long they stand.
pub(super) fn declared_dead_at(nodes: &[NodeWait]) -> Option<Monotonic> {
    let observed = nodes.iter().filter(|node| node.is_observed).count();
    let needs_observers = nodes.len() - observed < majority(nodes.len());
    runs_out(nodes).filter(|at| needs_observers && *at < Monotonic::FAR)
}
