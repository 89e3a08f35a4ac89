//! An attempt under way: every node has been asked, and their answers are counted.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::time::Duration;

use crate::event::Event;
use crate::ids::{NodeId, Nonce, Seq, Token};
use crate::lease::attempt::NodeAttempt;
use crate::lease::held::Held;
use crate::lease::node_state::{KnownLoss, known_losses, note_all_abstained};
use crate::lease::releasing::NodeRelease;
use crate::lease::waiting::NodeWait;
use crate::lease::{
    Acquisition, BlockReason, Ctx, Input, Machine, Releasing, Row, Step, Waiting, counted, misfit, node_ids,
    unknown_send,
};
use crate::one_or_many::OneOrMany;
use crate::op::{Acquire, Applied, Completion, Fault, FaultKind, Holding, Op, Outcome, Raise, Refusal, Seen};
use crate::prf::{Domain, Entropy, nonce};
use crate::queue::Reserved;
use crate::quorum::{Tally, Trust, Verdict, majority, shared_deadline};
use crate::time::{Monotonic, deadline_of, fraction_of};
use crate::view::settled;

/// An attempt under way.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Acquiring {
    acquisition: Acquisition,
    nonce: Nonce,
    /// The floor of every send of this attempt, to every node.
    floor: Token,
    began: Monotonic,
    /// The losses of each node that were known to be over when the attempt began.
    known_losses: OneOrMany<KnownLoss>,
    nodes: OneOrMany<NodeAttempt>,
    tally: Tally,
    recovered: bool,
    /// A wake-up came during this attempt, perhaps after the store had refused it.
    woken: bool,
    /// Nodes that got fresh credentials during this attempt, perhaps after they had refused it.
    renewed: Vec<NodeId>,
    /// The completions that nodes have shown. Any of them ends the attempt.
    completions: Vec<Completion>,
}

/// The most sends of one operation to one node within one attempt.
const MAX_SENDS: u32 = 3;

impl Acquiring {
    pub(crate) fn start(mut acquisition: Acquisition, fresh: &Entropy, floor: Token, ctx: &mut Ctx<'_>) -> Box<Self> {
        acquisition.attempt += 1;
        acquisition.has_place = false;
        acquisition.reserved = None;
        let nodes = ctx.config.nodes().len();
        let mut attempt = Box::new(Self {
            nonce: nonce(ctx.seed, fresh, ctx.lock, acquisition.attempt),
            acquisition,
            floor,
            began: ctx.now.monotonic,
            known_losses: known_losses(ctx.nodes, ctx.now.monotonic, ctx.config),
            nodes: node_ids(nodes).map(NodeAttempt::new).collect(),
            tally: Tally::new(nodes),
            recovered: false,
            woken: false,
            renewed: Vec::new(),
            completions: Vec::new(),
        });
        for at in 0..nodes {
            attempt.ask(at, ctx);
        }
        attempt
    }

    pub(crate) fn acquisition(&self) -> &Acquisition {
        &self.acquisition
    }

    pub(crate) fn note_place(&mut self, reserved: Option<Reserved>) {
        self.acquisition.has_place = true;
        self.acquisition.reserved = reserved;
    }

    pub(crate) fn wake_at(&self) -> Option<Monotonic> {
        self.nodes.iter().filter_map(|node| node.retry_at).min()
    }

    pub(crate) fn handle(mut self: Box<Self>, input: Input<'_>, ctx: &mut Ctx<'_>) -> Step {
        match input {
            Input::Outcome { node: id, seq, outcome, since } => {
                match self.nodes.iter().position(|node| node.id == id && node.in_flight == Some(seq)) {
                    Some(at) => self.answered(at, (seq, since), outcome, ctx),
                    None => (Machine::Acquiring(self), None),
                }
            }
            Input::Timeout => self.resend(ctx),
            Input::Release => {
                self.release_in_background(ctx);
                (Acquisition::cancel(ctx), Some(Row::AcquiringCancelled))
            }
            // The answer that is awaited came late, so the lock was free for others meanwhile.
            Input::Wake { .. } => {
                self.woken = true;
                (Machine::Acquiring(self), None)
            }
            Input::FreshCredentials(id) => {
                self.renewed.push(id);
                (Machine::Acquiring(self), None)
            }
            Input::Start { .. }
            | Input::Turn
            | Input::RenewAlong(_)
            | Input::Late { .. }
            | Input::Finish(_)
            | Input::DeclareLost => (Machine::Acquiring(self), None),
        }
    }

    /// Sends the next operation to a node: the acquire, or, once it has granted, the raise.
    fn ask(&mut self, at: usize, ctx: &mut Ctx<'_>) {
        let raise_to = match self.tally.verdict() {
            Verdict::Raise { token, .. } => Some(token),
            Verdict::Open | Verdict::Granted(_) | Verdict::Lost => None,
        };
        let seq = self.acquisition.next_seq();
        let node = &mut self.nodes[at];
        node.retry_at = None;
        let op = match (node.deadline, raise_to) {
            (Some(_), Some(token)) => {
                node.counter = None;
                Op::Raise(Raise { nonce: self.nonce, token, loss: node.loss })
            }
            // There is nothing to raise any more, or not yet.
            (Some(_), None) => return,
            (None, _) => {
                node.sends.push(seq, ctx.now.monotonic);
                let acquire = ctx.acquire(node.id, self.nonce, seq, self.floor, self.known_losses[at]);
                let in_queue = self.acquisition.stands_in_queue(ctx);
                Op::Acquire(Box::new(Acquire { in_queue, ..acquire }))
            }
        };
        node.tries += 1;
        node.in_flight = Some(seq);
        ctx.send(node.id, seq, op);
    }

    fn answered(
        mut self: Box<Self>,
        at: usize,
        (seq, since): (Seq, Option<Monotonic>),
        outcome: Outcome,
        ctx: &mut Ctx<'_>,
    ) -> Step {
        self.nodes[at].in_flight = None;
        let is_raise = self.nodes[at].deadline.is_some();
        match outcome {
            Outcome::Unknown(fault) => self.unknown(at, fault, ctx),
            Outcome::Applied(
                Applied::Acquired { counter: Token::ZERO } | Applied::AcquiredInDoubt { counter: Token::ZERO, .. },
            ) => self.unknown(at, no_token(), ctx),
            Outcome::Applied(applied) if is_raise => self.raise_applied(at, &applied, ctx),
            Outcome::NotApplied(refusal) if is_raise => self.raise_refused(at, refusal, ctx),
            Outcome::Applied(applied) => self.acquire_applied(at, (seq, since), &applied, ctx),
            Outcome::NotApplied(refusal) => self.acquire_refused(at, (seq, since), refusal, ctx),
        }
    }

    fn acquire_applied(
        mut self: Box<Self>,
        at: usize,
        (seq, since): (Seq, Option<Monotonic>),
        applied: &Applied,
        ctx: &mut Ctx<'_>,
    ) -> Step {
        let node = &mut self.nodes[at];
        let sent = node.sends.sent_at(seq).map(|sent| counted(sent, since));
        match *applied {
            Applied::Acquired { counter } => {
                node.counter = Some(counter);
                node.sends.settle_through(seq);
                ctx.note_vote(node.id, None);
                self.granted(at, sent, (counter, Trust::Trusted), ctx);
            }
            Applied::AcquiredInDoubt { counter, stamp } => {
                // Worth nothing as a vote, perhaps; a finish marks the node all the same.
                node.counter = Some(counter);
                ctx.note_vote(node.id, Some(stamp));
                if asks_for_completions(ctx) {
                    self.granted_for_nothing(at, BlockReason::CompletionsInDoubt);
                    return self.count(ctx);
                }
                // An attempt that did not know of the loss may have heard from other nodes before the loss was over.
                if self.known_losses[at].loss == Some(stamp) {
                    node.sends.settle_through(seq);
                    node.loss = Some(stamp);
                    self.granted(at, sent, (counter, Trust::Doubtful), ctx);
                } else {
                    self.granted_for_nothing(at, BlockReason::InDoubt);
                }
            }
            Applied::Renewed
            | Applied::RenewedTold { .. }
            | Applied::Released
            | Applied::Finished
            | Applied::Revoked
            | Applied::Told
            | Applied::Raised { .. }
            | Applied::Read(_) => {
                return self.unknown(at, misfit(), ctx);
            }
        }
        self.count(ctx)
    }

    fn acquire_refused(
        mut self: Box<Self>,
        at: usize,
        (seq, since): (Seq, Option<Monotonic>),
        refusal: Refusal,
        ctx: &mut Ctx<'_>,
    ) -> Step {
        if let Refusal::Done(completion) = refusal {
            self.nodes[at].sends.settle(seq);
            ctx.note_vote(self.nodes[at].id, None);
            self.completions.push(*completion);
            return self.done(ctx);
        }
        if let Refusal::Conflict(Seen { holding: Some(holding), .. }) = &refusal
            && holding.is_of(&self.nonce)
            && !holding.released
        {
            if holding.is_revoked() {
                self.granted_for_nothing(at, BlockReason::Unavailable(revoked()));
                return self.count(ctx);
            }
            return self.recovered(at, holding, since, ctx);
        }
        self.refused(at, seq, refusal, ctx);
        self.count(ctx)
    }

    /// The node shows a record of this attempt: an earlier acquire took effect, and its reply was lost.
    fn recovered(
        mut self: Box<Self>,
        at: usize,
        holding: &Holding,
        since: Option<Monotonic>,
        ctx: &mut Ctx<'_>,
    ) -> Step {
        let node = &self.nodes[at];
        ctx.note_vote(node.id, None);
        let sent = match holding.seq() {
            Some(took_effect) => node.sends.sent_at(took_effect),
            None => node.sends.earliest(),
        };
        match (sent, holding.counter) {
            (Some(_), Some(Token::ZERO)) => return self.unknown(at, no_token(), ctx),
            (Some(sent), Some(counter)) => {
                self.recovered = true;
                self.granted(at, Some(counted(sent, since)), (counter, Trust::Trusted), ctx);
            }
            // A node in doubt shows no counter.
            (Some(_), None) if ctx.config.quorum().is_some() => {
                let completions = asks_for_completions(ctx);
                self.granted_for_nothing(
                    at,
                    if completions { BlockReason::CompletionsInDoubt } else { BlockReason::InDoubt },
                );
            }
            (Some(_), None) | (None, _) => {
                return self.unknown(at, unknown_send(), ctx);
            }
        }
        self.count(ctx)
    }

    fn raise_applied(mut self: Box<Self>, at: usize, applied: &Applied, ctx: &mut Ctx<'_>) -> Step {
        let Applied::Raised { counter } = *applied else { return self.unknown(at, misfit(), ctx) };
        let node = &mut self.nodes[at];
        node.tries = 0;
        node.loss = None;
        node.counter = Some(counter);
        self.tally.raised(node.id, counter);
        self.count(ctx)
    }

    fn raise_refused(mut self: Box<Self>, at: usize, refusal: Refusal, ctx: &mut Ctx<'_>) -> Step {
        let node = &mut self.nodes[at];
        match refusal {
            // Not ours any more: this node can neither acknowledge the token nor vouch for the lease.
            refusal @ Refusal::Conflict(_) => {
                node.deadline = None;
                node.block_reason = Some(refusal.into());
                self.tally.refuse(node.id);
            }
            Refusal::Denied(_) => self.tally.refuse(node.id),
            Refusal::Done(_) => return self.unknown(at, misfit(), ctx),
            Refusal::Throttled(fault) | Refusal::Unavailable(fault) | Refusal::NeedsCredentials(fault) => {
                return self.unknown(at, fault, ctx);
            }
            Refusal::Abstains { .. } => return self.unknown(at, Fault::of(FaultKind::Busy), ctx),
        }
        self.count(ctx)
    }

    fn granted(&mut self, at: usize, sent: Option<Monotonic>, (counter, trust): (Token, Trust), ctx: &mut Ctx<'_>) {
        let node = &mut self.nodes[at];
        ctx.observations.forget(node.id, ctx.resource);
        node.tries = 0;
        node.block_reason = None;
        let deadline = sent.map(|sent| deadline_of(sent, ctx.options.ttl, ctx.config.drift()));
        match deadline.filter(|deadline| *deadline > ctx.now.monotonic) {
            Some(deadline) => {
                node.deadline = Some(deadline);
                node.confirmed = sent;
                node.counter = Some(counter);
                self.tally.answer(node.id, counter, trust);
            }
            None => self.granted_for_nothing(at, BlockReason::Unavailable(too_late())),
        }
    }

    /// The node has our record, which is of no use to us.
    fn granted_for_nothing(&mut self, at: usize, why: BlockReason) {
        let node = &mut self.nodes[at];
        node.landed = true;
        node.block_reason = Some(why);
        self.tally.refuse(node.id);
    }

    fn refused(&mut self, at: usize, seq: Seq, refusal: Refusal, ctx: &mut Ctx<'_>) {
        let id = self.nodes[at].id;
        self.nodes[at].sends.settle(seq);
        if let Refusal::Conflict(seen) = &refusal {
            ctx.note_vote(id, None);
            if let Some(counter) = seen.holding.as_ref().and_then(|holding| holding.counter) {
                self.tally.saw(id, counter, Trust::Trusted);
            }
            ctx.observe(id, seen);
        }
        self.nodes[at].block_reason = Some(match refusal {
            Refusal::Abstains { stamp } => BlockReason::Abstains(ctx.note_abstention(id, stamp)),
            refusal @ (Refusal::Conflict(_)
            | Refusal::Done(_)
            | Refusal::Throttled(_)
            | Refusal::Unavailable(_)
            | Refusal::NeedsCredentials(_)
            | Refusal::Denied(_)) => refusal.into(),
        });
        self.tally.refuse(id);
    }

    fn unknown(mut self: Box<Self>, at: usize, fault: Fault, ctx: &mut Ctx<'_>) -> Step {
        let is_decided = !self.completions.is_empty() || self.tally.verdict() == Verdict::Lost && !self.may_be_new(ctx);
        let node = &mut self.nodes[at];
        if !is_decided && node.tries < MAX_SENDS && !self.acquisition.is_past_wait(ctx.now.monotonic) {
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
            node.retry_at = Some(ctx.after(pause));
            node.block_reason = Some(BlockReason::Unavailable(fault));
            return (Machine::Acquiring(self), Some(Row::AcquiringUnknown));
        }
        node.block_reason = Some(BlockReason::Unavailable(fault));
        self.tally.refuse(node.id);
        self.count(ctx)
    }

    fn resend(mut self: Box<Self>, ctx: &mut Ctx<'_>) -> Step {
        let due = |node: &NodeAttempt| node.retry_at.is_some_and(|at| ctx.now.monotonic >= at);
        let Some(at) = self.nodes.iter().position(due) else { return (Machine::Acquiring(self), None) };
        if self.acquisition.is_past_wait(ctx.now.monotonic) {
            self.nodes[at].retry_at = None;
            self.tally.refuse(self.nodes[at].id);
            return self.count(ctx);
        }
        self.ask(at, ctx);
        if self.nodes[at].in_flight.is_none() {
            // There is nothing to raise any more, and perhaps nothing else to wait for.
            return self.count(ctx);
        }
        (Machine::Acquiring(self), Some(Row::AcquiringResent))
    }

    /// Ends the attempt, since any node's completion shows that the work was done, whatever the others have seen of it. The others are
    /// waited for as long as they can show what the run has left.
    fn done(mut self: Box<Self>, ctx: &mut Ctx<'_>) -> Step {
        for node in &mut self.nodes {
            node.retry_at = None;
        }
        let Some(completion) = settled(self.completions.iter(), self.nodes.len()) else { return self.fail(ctx) };
        if completion.unsettled && self.nodes.iter().any(|node| node.in_flight.is_some()) {
            return (Machine::Acquiring(self), Some(Row::AcquiringDoneOnOne));
        }
        self.release_in_background(ctx);
        (Acquisition::done(completion.into(), ctx), Some(Row::AcquiringDone))
    }

    fn count(mut self: Box<Self>, ctx: &mut Ctx<'_>) -> Step {
        if !self.completions.is_empty() {
            return self.done(ctx);
        }
        // An ack counts as long as the record behind it stands. Once the record may be gone, a node that forgot it may
        // vote for others.
        for node in &self.nodes {
            if node.deadline.is_some_and(|deadline| deadline <= ctx.now.monotonic) {
                self.tally.refuse(node.id);
            }
        }
        match self.tally.verdict() {
            Verdict::Open => (Machine::Acquiring(self), Some(Row::AcquiringCounted)),
            Verdict::Raise { nodes, .. } => {
                for id in nodes {
                    if !self.nodes[id.index()].is_awaited() {
                        self.ask(id.index(), ctx);
                    }
                }
                (Machine::Acquiring(self), Some(Row::AcquiringCounted))
            }
            Verdict::Granted(token) => self.hold(token, ctx),
            // Only all nodes together can tell whether the quorum is new.
            Verdict::Lost if self.may_be_new(ctx) && self.nodes.iter().any(NodeAttempt::is_awaited) => {
                (Machine::Acquiring(self), Some(Row::AcquiringCounted))
            }
            Verdict::Lost if self.may_lack_completions() => (Machine::Acquiring(self), Some(Row::AcquiringCounted)),
            Verdict::Lost => self.fail(ctx),
        }
    }

    /// Some node abstains, and none is known to vote: all of them may be new.
    fn may_be_new(&self, ctx: &Ctx<'_>) -> bool {
        self.nodes.iter().any(|node| matches!(node.block_reason, Some(BlockReason::Abstains(_))))
            && !ctx.nodes.iter().any(|node| node.memory.is_known_to_vote())
    }

    /// The nodes that may have lost completions could be so many, with those whose answers are under way, that no record is the reason.
    fn may_lack_completions(&self) -> bool {
        let doubtful =
            self.nodes.iter().filter(|node| node.block_reason == Some(BlockReason::CompletionsInDoubt)).count();
        let under_way = self.nodes.iter().filter(|node| node.in_flight.is_some()).count();
        let spare = self.nodes.len() - majority(self.nodes.len());
        (1..=spare).contains(&doubtful) && doubtful + under_way > spare
    }

    fn hold(self: Box<Self>, token: Token, ctx: &mut Ctx<'_>) -> Step {
        let q = majority(self.nodes.len());
        let deadline = shared_deadline(self.nodes.iter().map(|node| node.deadline), q);
        let Some(deadline) = deadline.filter(|deadline| *deadline > ctx.now.monotonic) else {
            return self.fail(ctx);
        };
        ctx.event(Event::Acquired { lock: ctx.lock, token, deadline, recovered: self.recovered });
        let row = if self.recovered { Row::AcquiringRecovered } else { Row::AcquiringGranted };
        let next_seq = self.acquisition.upcoming_seq();
        (Machine::Held(Held::new(self.nonce, token, deadline, next_seq, self.nodes, ctx)), Some(row))
    }

    fn fail(self: Box<Self>, ctx: &mut Ctx<'_>) -> Step {
        self.release_in_background(ctx);
        if self.nodes.iter().all(|node| matches!(node.block_reason, Some(BlockReason::Abstains(_)))) {
            note_all_abstained(ctx.nodes, self.began, ctx.config);
        }
        let q = majority(self.nodes.len());
        let denied = |node: &&NodeAttempt| matches!(node.block_reason, Some(BlockReason::Denied(_)));
        let not_denied = self.nodes.len() - self.nodes.iter().filter(denied).count();
        // Our own release wakes waiters, this one included. A waiter that heeds such a wake-up would try without end.
        let echoes = self.nodes.iter().any(|node| node.may_have_granted() && node.in_flight.is_none());
        // A wake-up that came during this attempt is older than that release, but may come from an earlier one. It is not
        // believed while a node that has not answered may have granted.
        let left_something = self.nodes.iter().any(NodeAttempt::may_have_granted);
        let Self { mut acquisition, nodes, woken, renewed, .. } = *self;
        let nodes: OneOrMany<NodeWait> = nodes.into_iter().map(|node| node.into_wait(ctx)).collect();
        let block_reason = BlockReason::of_all(nodes.iter().map(|node| &node.last_reply));
        acquisition.note_block_reason(block_reason.unwrap_or_else(|| BlockReason::Unavailable(too_late())), ctx);
        if not_denied < q {
            return (acquisition.fail(ctx), Some(Row::AcquiringDenied));
        }
        acquisition.watch(&nodes, ctx);
        if acquisition.is_over(ctx.now.monotonic) {
            return (acquisition.fail(ctx), Some(Row::AcquiringFailed));
        }
        for node in &nodes {
            acquisition.note_health(node.id, node.health);
        }
        let mut waiting = Waiting::new(acquisition, nodes, echoes, ctx);
        if woken && !left_something {
            waiting.wake(ctx.now.monotonic);
        }
        for id in renewed {
            waiting.take_credentials(id, ctx.now.monotonic);
        }
        (Machine::Waiting(waiting), Some(Row::AcquiringBlocked))
    }

    fn release_in_background(&self, ctx: &mut Ctx<'_>) {
        let may_hold = self.nodes.iter().filter(|node| node.may_hold());
        let nodes: OneOrMany<NodeRelease> = may_hold.map(|node| node.to_release(ctx.now.monotonic)).collect();
        if !nodes.is_empty() {
            ctx.out.orphan = Some(Releasing::of_attempt(self.nonce, nodes, self.acquisition.upcoming_seq(), ctx));
        }
    }
}

/// Returns true if the votes of nodes that may have lost completions are worth nothing.
fn asks_for_completions(ctx: &Ctx<'_>) -> bool {
    ctx.options.is_unless_done() && !ctx.options.run.is_some_and(|run| run.trust_quorum)
}

fn no_token() -> Fault {
    Fault::new(FaultKind::Protocol, "the store granted the lock with the token 0, but tokens begin at 1")
}

/// The fault of a grant that was revoked before its reply came.
fn revoked() -> Fault {
    Fault::new(FaultKind::Server, "the lease was revoked before its grant was known")
}

fn too_late() -> Fault {
    Fault::new(FaultKind::Timeout, "the grant arrived after its validity had ended")
}
