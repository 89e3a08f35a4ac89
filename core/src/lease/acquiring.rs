//! One attempt: every node has been asked, and answers are being counted.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::time::Duration;

use crate::event::Event;
use crate::ids::{NodeId, Nonce, Seq, Token};
use crate::lease::acquisition::NodeReply;
use crate::lease::held::{Grant, Held};
use crate::lease::node_state::{all_abstained, losses_over};
use crate::lease::releasing::PendingAcquires;
use crate::lease::sends::Sends;
use crate::lease::waiting::Answer;
use crate::lease::{
    Acquisition, BlockReason, Ctx, Input, Machine, NodeHealth, Releasing, Row, Step, Waiting, node_ids,
};
use crate::member::{Bootstrap, LossId};
use crate::op::{Acquire, Applied, Fault, FaultKind, Holding, Op, Outcome, Raise, Refusal};
use crate::prf::{Domain, Entropy, nonce};
use crate::quorum::{Tally, Trust, Verdict, majority, shared_deadline};
use crate::time::{Monotonic, deadline_of, fraction_of};

/// An attempt under way.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Acquiring {
    acquisition: Acquisition,
    nonce: Nonce,
    /// All nodes and all sends of an attempt get the same floor.
    floor: Token,
    began: Monotonic,
    /// What was known when it began of the losses of each node.
    over: Vec<(Option<LossId>, Bootstrap)>,
    legs: Vec<Leg>,
    tally: Tally,
    recovered: bool,
    /// Somebody released the lock while this attempt was under way, perhaps after the store had refused it.
    woken: bool,
    /// Nodes that were given fresh credentials meanwhile, perhaps after they had refused.
    renewed: Vec<NodeId>,
}

/// One node's part in an attempt.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Leg {
    pub(crate) node: NodeId,
    pub(crate) in_flight: Option<Seq>,
    /// Acquires that may have landed, or may yet.
    pub(crate) sends: Sends,
    /// Until when this node vouches for the lease.
    pub(crate) deadline: Option<Monotonic>,
    /// When the send left that this node confirmed.
    pub(crate) confirmed: Option<Monotonic>,
    /// The loss since which its counter was not raised above what it may have forgotten.
    pub(crate) loss: Option<LossId>,
    /// It granted, but the grant came too late to be of use.
    landed: bool,
    /// Sends of the operation that is being asked now.
    tries: u32,
    retry_at: Option<Monotonic>,
    block_reason: Option<BlockReason>,
}

/// Sends of one operation to one node within one attempt.
const MAX_SENDS: u32 = 3;

impl Leg {
    fn new(node: NodeId) -> Self {
        Self {
            node,
            in_flight: None,
            sends: Sends::default(),
            deadline: None,
            confirmed: None,
            loss: None,
            landed: false,
            tries: 0,
            retry_at: None,
            block_reason: None,
        }
    }

    fn is_awaited(&self) -> bool {
        self.in_flight.is_some() || self.retry_at.is_some()
    }

    fn take_reply(&mut self) -> NodeReply {
        NodeReply { block_reason: self.block_reason.take(), is_ours: self.deadline.is_some() || self.landed }
    }

    /// The node has, or may come to have, a record of this attempt.
    pub(crate) fn may_hold(&self) -> bool {
        self.deadline.is_some() || self.landed || !self.sends.is_empty()
    }
}

impl Acquiring {
    pub(crate) fn start(mut acquisition: Acquisition, fresh: &Entropy, ctx: &mut Ctx<'_>) -> Self {
        acquisition.attempt += 1;
        let nodes = ctx.config.nodes().len();
        let mut attempt = Self {
            nonce: nonce(ctx.seed, fresh, ctx.lock, acquisition.attempt),
            acquisition,
            floor: ctx.floor,
            began: ctx.now.monotonic,
            over: losses_over(ctx.nodes, ctx.now.monotonic, ctx.config),
            legs: node_ids(nodes).map(Leg::new).collect(),
            tally: Tally::new(nodes),
            recovered: false,
            woken: false,
            renewed: Vec::new(),
        };
        for at in 0..nodes {
            attempt.ask(at, ctx);
        }
        attempt
    }

    pub(crate) fn acquisition(&self) -> &Acquisition {
        &self.acquisition
    }

    pub(crate) fn wake_at(&self) -> Option<Monotonic> {
        self.legs.iter().filter_map(|leg| leg.retry_at).min()
    }

    pub(crate) fn handle(self, input: Input<'_>, ctx: &mut Ctx<'_>) -> Step {
        match input {
            Input::Outcome { node, seq, outcome } => {
                match self.legs.iter().position(|leg| leg.node == node && leg.in_flight == Some(seq)) {
                    Some(at) => self.answered(at, seq, outcome, ctx),
                    None => (Machine::Acquiring(self), None),
                }
            }
            Input::Timeout => self.resend(ctx),
            Input::Release => {
                self.release_what_may_have_landed(ctx);
                (Acquisition::cancel(ctx), Some(Row::AcquiringCancelled))
            }
            Input::Wake => (Machine::Acquiring(Self { woken: true, ..self }), None),
            Input::FreshCredentials(node) => {
                let mut attempt = self;
                attempt.renewed.push(node);
                (Machine::Acquiring(attempt), None)
            }
            Input::Start(_) | Input::Turn | Input::RenewAlong(_) | Input::Late { .. } | Input::DeclareLost => {
                (Machine::Acquiring(self), None)
            }
        }
    }

    /// Sends the operation that this node owes: the acquire, or once it granted the raise.
    fn ask(&mut self, at: usize, ctx: &mut Ctx<'_>) {
        let raise_to = match self.tally.verdict() {
            Verdict::Raise { token, .. } => Some(token),
            Verdict::Open | Verdict::Granted(_) | Verdict::Lost => None,
        };
        let seq = self.acquisition.next_seq();
        let member = ctx.membership(self.legs[at].node, &self.nonce, seq, self.over[at]);
        let leg = &mut self.legs[at];
        leg.retry_at = None;
        let op = match (leg.deadline, raise_to) {
            (Some(_), Some(token)) => Op::Raise(Raise { nonce: self.nonce, token, loss: leg.loss }),
            // Nothing to raise any more, or not yet again.
            (Some(_), None) => return,
            (None, _) => {
                leg.sends.push(seq, ctx.now.monotonic);
                Op::Acquire(Box::new(Acquire {
                    nonce: self.nonce,
                    seq,
                    record_ttl: ctx.options.record_ttl(),
                    floor: self.floor,
                    expect: ctx.observations.ran_out(leg.node, ctx.resource, ctx.now.monotonic),
                    owner: ctx.options.owner.clone(),
                    data: ctx.options.data.clone(),
                    member,
                }))
            }
        };
        leg.tries += 1;
        leg.in_flight = Some(seq);
        ctx.send(leg.node, seq, op);
    }

    fn answered(mut self, at: usize, seq: Seq, outcome: Outcome, ctx: &mut Ctx<'_>) -> Step {
        self.legs[at].in_flight = None;
        let raising = self.legs[at].deadline.is_some();
        match outcome {
            Outcome::Applied(
                Applied::Acquired { counter: Token::ZERO } | Applied::AcquiredInDoubt { counter: Token::ZERO, .. },
            ) => return self.unknown(at, Fault::new(FaultKind::Protocol, NO_TOKEN), ctx),
            Outcome::Applied(Applied::Acquired { counter }) if !raising => {
                let sent = self.legs[at].sends.sent_at(seq);
                self.legs[at].sends.settle_through(seq);
                ctx.votes(self.legs[at].node, None);
                self.granted(at, sent, (counter, Trust::Trusted), ctx);
            }
            Outcome::Applied(Applied::AcquiredInDoubt { counter, stamp }) if !raising => {
                let sent = self.legs[at].sends.sent_at(seq);
                ctx.votes(self.legs[at].node, Some(stamp));
                // Whoever did not know of the loss has perhaps heard of other nodes before it was over.
                if self.over[at].0 == Some(stamp) {
                    self.legs[at].sends.settle_through(seq);
                    self.legs[at].loss = Some(stamp);
                    self.granted(at, sent, (counter, Trust::Doubtful), ctx);
                } else {
                    self.granted_for_nothing(at, BlockReason::InDoubt);
                }
            }
            Outcome::Applied(Applied::Raised { counter }) if raising => {
                self.legs[at].tries = 0;
                self.legs[at].loss = None;
                self.tally.raised(self.legs[at].node, counter);
            }
            Outcome::NotApplied(Refusal::Conflict(seen)) if !raising => match &seen.holding {
                Some(holding) if holding.is_of(&self.nonce) && !holding.released => {
                    ctx.votes(self.legs[at].node, None);
                    let sent = match holding.seq() {
                        Some(took_effect) => self.legs[at].sends.sent_at(took_effect),
                        None => self.legs[at].sends.earliest(),
                    };
                    match (sent, holding.counter) {
                        (Some(_), Some(Token::ZERO)) => {
                            return self.unknown(at, Fault::new(FaultKind::Protocol, NO_TOKEN), ctx);
                        }
                        (Some(sent), Some(counter)) => {
                            self.recovered = true;
                            self.granted(at, Some(sent), (counter, Trust::Trusted), ctx);
                        }
                        // A node in doubt shows no counter.
                        (Some(_), None) if ctx.config.quorum().is_some() => {
                            self.granted_for_nothing(at, BlockReason::InDoubt);
                        }
                        _ => {
                            let fault = Fault::new(FaultKind::Protocol, "our record shows a send we never made");
                            return self.unknown(at, fault, ctx);
                        }
                    }
                }
                _ => self.refused(at, seq, Refusal::Conflict(seen), ctx),
            },
            Outcome::NotApplied(refusal) if raising => match refusal {
                // Not ours any more: this node can neither acknowledge the token nor vouch for the lease.
                refusal @ Refusal::Conflict(_) => {
                    self.legs[at].deadline = None;
                    self.legs[at].block_reason = Some(refusal.into());
                    self.tally.refuse(self.legs[at].node);
                }
                Refusal::Denied(_) => self.tally.refuse(self.legs[at].node),
                Refusal::Throttled(fault) | Refusal::Unavailable(fault) | Refusal::NeedsCredentials(fault) => {
                    return self.unknown(at, fault, ctx);
                }
                Refusal::Abstains { .. } => return self.unknown(at, Fault::of(FaultKind::Busy), ctx),
            },
            Outcome::NotApplied(refusal) => self.refused(at, seq, refusal, ctx),
            Outcome::Unknown(fault) => return self.unknown(at, fault, ctx),
            Outcome::Applied(_) => {
                return self.unknown(at, Fault::new(FaultKind::Protocol, "the answer fits another operation"), ctx);
            }
        }
        self.count(ctx)
    }

    fn granted(&mut self, at: usize, sent: Option<Monotonic>, (counter, trust): (Token, Trust), ctx: &mut Ctx<'_>) {
        let leg = &mut self.legs[at];
        ctx.observations.forget(leg.node, ctx.resource);
        leg.tries = 0;
        leg.block_reason = None;
        let deadline = sent.map(|sent| deadline_of(sent, ctx.options.ttl, ctx.config.drift()));
        match deadline.filter(|deadline| *deadline > ctx.now.monotonic) {
            Some(deadline) => {
                leg.deadline = Some(deadline);
                leg.confirmed = sent;
                self.tally.answer(leg.node, counter, trust);
            }
            None => self.granted_for_nothing(at, BlockReason::Unavailable(too_late())),
        }
    }

    /// The node has our record, which is of no use to us.
    fn granted_for_nothing(&mut self, at: usize, why: BlockReason) {
        let leg = &mut self.legs[at];
        leg.landed = true;
        leg.block_reason = Some(why);
        self.tally.refuse(leg.node);
    }

    fn refused(&mut self, at: usize, seq: Seq, refusal: Refusal, ctx: &mut Ctx<'_>) {
        let node = self.legs[at].node;
        self.legs[at].sends.settle(seq);
        if let Refusal::Conflict(seen) = &refusal {
            ctx.votes(node, None);
            ctx.counter_seen(seen);
            if let Some(counter) = seen.holding.as_ref().and_then(|holding| holding.counter) {
                self.tally.saw(node, counter, Trust::Trusted);
            }
            match seen.held() {
                Some(holding) => {
                    let (now, drift) = (ctx.now.monotonic, ctx.config.drift());
                    ctx.observations.note(node, ctx.resource, holding, now, drift);
                }
                None => ctx.observations.forget(node, ctx.resource),
            }
        }
        self.legs[at].block_reason = Some(match refusal {
            Refusal::Abstains { stamp } => BlockReason::Abstains(ctx.abstains(node, stamp)),
            refusal @ (Refusal::Conflict(_)
            | Refusal::Throttled(_)
            | Refusal::Unavailable(_)
            | Refusal::NeedsCredentials(_)
            | Refusal::Denied(_)) => refusal.into(),
        });
        self.tally.refuse(node);
    }

    fn unknown(mut self, at: usize, fault: Fault, ctx: &mut Ctx<'_>) -> Step {
        let leg = &mut self.legs[at];
        if leg.tries < MAX_SENDS && !self.acquisition.is_past_wait(ctx.now.monotonic) {
            // After a timeout enough time has passed; a broken connection breaks again if asked at once.
            let pause = match fault.kind {
                FaultKind::Timeout => Duration::ZERO,
                FaultKind::Reset
                | FaultKind::Unreachable
                | FaultKind::Cancelled
                | FaultKind::Server
                | FaultKind::Busy
                | FaultKind::Protocol => {
                    let jitter = ctx.jitter(Domain::Retry, self.acquisition.attempt, self.acquisition.upcoming_seq());
                    fraction_of(ctx.request_timeout() / 4, jitter)
                }
            };
            leg.retry_at = Some(ctx.after(pause));
            leg.block_reason = Some(BlockReason::Unavailable(fault));
            return (Machine::Acquiring(self), Some(Row::AcquiringUnknown));
        }
        leg.block_reason = Some(BlockReason::Unavailable(fault));
        self.tally.refuse(leg.node);
        self.count(ctx)
    }

    fn resend(mut self, ctx: &mut Ctx<'_>) -> Step {
        let due = |leg: &Leg| leg.retry_at.is_some_and(|at| ctx.now.monotonic >= at);
        let Some(at) = self.legs.iter().position(due) else { return (Machine::Acquiring(self), None) };
        if self.acquisition.is_past_wait(ctx.now.monotonic) {
            self.legs[at].retry_at = None;
            self.tally.refuse(self.legs[at].node);
            return self.count(ctx);
        }
        self.ask(at, ctx);
        if self.legs[at].in_flight.is_none() {
            // There is nothing to raise any more, and perhaps nothing else to wait for.
            return self.count(ctx);
        }
        (Machine::Acquiring(self), Some(Row::AcquiringResent))
    }

    fn count(mut self, ctx: &mut Ctx<'_>) -> Step {
        // An ack is worth the record behind it: once that may be gone, a node that forgot it may vote for others.
        for leg in &self.legs {
            if leg.deadline.is_some_and(|deadline| deadline <= ctx.now.monotonic) {
                self.tally.refuse(leg.node);
            }
        }
        match self.tally.verdict() {
            Verdict::Open => (Machine::Acquiring(self), Some(Row::AcquiringCounted)),
            Verdict::Raise { nodes, .. } => {
                for node in nodes {
                    let leg = &self.legs[node.index()];
                    if leg.in_flight.is_none() && leg.retry_at.is_none() {
                        self.ask(node.index(), ctx);
                    }
                }
                (Machine::Acquiring(self), Some(Row::AcquiringCounted))
            }
            Verdict::Granted(token) => self.hold(token, ctx),
            // Whether a quorum is yet to be born, only all nodes together can tell.
            Verdict::Lost if self.is_nobody_known_to_vote(ctx) && self.legs.iter().any(Leg::is_awaited) => {
                (Machine::Acquiring(self), Some(Row::AcquiringCounted))
            }
            Verdict::Lost => self.fail(ctx),
        }
    }

    /// Somebody abstains, and it may be that all do.
    fn is_nobody_known_to_vote(&self, ctx: &Ctx<'_>) -> bool {
        self.legs.iter().any(|leg| matches!(leg.block_reason, Some(BlockReason::Abstains(_))))
            && !ctx.nodes.iter().any(|node| node.memory.is_known_to_vote())
    }

    fn hold(self, token: Token, ctx: &mut Ctx<'_>) -> Step {
        let q = majority(self.legs.len());
        let deadline = shared_deadline(self.legs.iter().map(|leg| leg.deadline), q);
        let Some(deadline) = deadline.filter(|deadline| *deadline > ctx.now.monotonic) else {
            return self.fail(ctx);
        };
        ctx.event(Event::Acquired { lock: ctx.lock, token, deadline, recovered: self.recovered });
        let row = if self.recovered { Row::AcquiringRecovered } else { Row::AcquiringGranted };
        let grant = Grant::new(self.nonce, token, deadline, self.acquisition.upcoming_seq(), self.legs, ctx);
        (Machine::Held(Held(grant)), Some(row))
    }

    fn fail(mut self, ctx: &mut Ctx<'_>) -> Step {
        self.release_what_may_have_landed(ctx);
        if self.legs.iter().all(|leg| matches!(leg.block_reason, Some(BlockReason::Abstains(_)))) {
            all_abstained(ctx.nodes, self.began, ctx.config);
        }
        let nodes = self.legs.len();
        let (q, blocked) = (majority(nodes), self.blocked(ctx));
        let denied = self.legs.iter().filter(|leg| matches!(leg.block_reason, Some(BlockReason::Denied(_)))).count();
        let healths: Vec<NodeHealth> =
            self.legs.iter().map(|leg| NodeHealth::from(leg.block_reason.as_ref())).collect();
        // What may be ours is released, which brings a hint of its own: heeding that would never end.
        let may_echo = |(leg, health): (&Leg, &NodeHealth)| {
            leg.may_hold() && leg.in_flight.is_none() && *health != NodeHealth::ShowsRecord
        };
        let echoes = self.legs.iter().zip(&healths).any(may_echo);
        // A hint that came meanwhile is older than that release, but an earlier one may have brought it: where nodes are
        // still to answer that may have granted, it is no more to be believed.
        let left_something =
            self.legs.iter().zip(&healths).any(|(leg, health)| leg.may_hold() && *health != NodeHealth::ShowsRecord);
        let replies: Vec<NodeReply> = self.legs.iter_mut().map(Leg::take_reply).collect();
        let block_reason = BlockReason::of_all(&replies).unwrap_or_else(|| BlockReason::Unavailable(too_late()));
        self.acquisition.note_block_reason(block_reason, ctx);
        if nodes - denied < q {
            return (self.acquisition.fail(ctx), Some(Row::AcquiringDenied));
        }
        if self.acquisition.is_over(ctx.now.monotonic) {
            return (self.acquisition.fail(ctx), Some(Row::AcquiringFailed));
        }
        for (leg, health) in self.legs.iter().zip(&healths) {
            self.acquisition.note_health(leg.node, *health);
        }
        let open = self.legs.iter().map(|leg| leg.in_flight);
        let answers = blocked.into_iter().zip(healths).zip(open).zip(replies);
        let answers =
            answers.map(|(((blocked_until, health), open), reply)| Answer { blocked_until, health, open, reply });
        let mut waiting = Waiting::new(self.acquisition, answers, echoes, ctx);
        if self.woken && !left_something {
            waiting.wake(ctx.now.monotonic);
        }
        for node in self.renewed {
            waiting.take_credentials(node, ctx.now.monotonic);
        }
        (Machine::Waiting(waiting), Some(Row::AcquiringBlocked))
    }

    /// For each node, when the record in the way runs out as far as is known; `None` where nothing stands in the way.
    fn blocked(&self, ctx: &mut Ctx<'_>) -> Vec<Option<Monotonic>> {
        let runs_out = |leg: &Leg, holding: &Holding, ctx: &mut Ctx<'_>| {
            let by_store = holding.left.map(|left| ctx.after(left));
            by_store.or_else(|| {
                let (now, drift) = (ctx.now.monotonic, ctx.config.drift());
                ctx.observations.note(leg.node, ctx.resource, holding, now, drift)
            })
        };
        self.legs
            .iter()
            .map(|leg| match &leg.block_reason {
                Some(BlockReason::Busy(holding)) => Some(runs_out(leg, holding, ctx).unwrap_or(Monotonic::FAR)),
                Some(_) | None => None,
            })
            .collect()
    }

    fn release_what_may_have_landed(&self, ctx: &mut Ctx<'_>) {
        let mut nodes = self
            .legs
            .iter()
            .filter(|leg| leg.may_hold())
            .map(|leg| (leg.node, PendingAcquires::Maybe(leg.sends.clone())))
            .peekable();
        if nodes.peek().is_some() {
            ctx.out.orphan = Some(Releasing::new(self.nonce, nodes, self.acquisition.upcoming_seq(), ctx));
        }
    }
}

const NO_TOKEN: &str = "a grant with the token 0, which none has";

fn too_late() -> Fault {
    Fault::new(FaultKind::Timeout, "the grant came after its validity was over")
}
