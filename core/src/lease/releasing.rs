//! A release, or the finish of a run: repeated until the store has answered for certain, or the record has run out by itself.
//!
//! If a node granted, and answers the first release before its deadline with "not ours", somebody broke the lock or
//! deleted its record. If no majority of the lease is left then, the lease was lost, and is reported as lost. The same
//! answer to a release that was repeated may be due to the release before it, so it only leaves the lease unconfirmed.
//!
//! A finish goes to the nodes whose grant is known, since it names it; from the others the record is removed. It writes the completion that the work is done with the same write that frees the record. It is confirmed once a majority
//! has the completion, and lost if no node can have had it. In between, some nodes have it or may have had it: the work may be done
//! again.

use alloc::boxed::Box;

use crate::about::About;
use crate::backoff::Backoff;
use crate::event::{Event, LostReason};
use crate::ids::{NodeId, Nonce, Seq, Token};
use crate::lease::sends::Sends;
use crate::lease::{Ctx, Input, Machine, Row, Step};
use crate::one_or_many::OneOrMany;
use crate::op::{Applied, FaultKind, Finish, Op, Outcome, Refusal, Release, Seen};
use crate::prf::Domain;
use crate::quorum::majority;
use crate::time::Monotonic;

/// The sends of an attempt that may create a record after its release.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum PendingAcquires {
    /// These, as far as they are remembered.
    Maybe(Sends),
    None,
}

/// A release under way, of a lease or of an attempt that was given up.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Releasing {
    nonce: Nonce,
    /// The last record of ours has run out by then.
    until: Monotonic,
    next_seq: u32,
    tries: u32,
    answered: bool,
    /// The end was reported, or nobody waits for it: what is left goes on in the background.
    is_background: bool,
    /// The evidence of the answers about a lease; `None` for an attempt that was given up.
    evidence: Option<Evidence>,
    /// The finish of a run whose end is open.
    finish: Option<Marks>,
    /// Nodes that have not answered for certain.
    nodes: OneOrMany<NodeRelease>,
}

/// The completions of a finish.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Marks {
    /// The token of the lease.
    token: Token,
    /// The end of the lease: a grant that is shown later may be of a late copy of the acquire.
    deadline: Monotonic,
    /// The record of the run, with its result.
    about: Option<About>,
    /// A node without room for that may get the completion alone.
    may_go_alone: bool,
    /// Nodes that have confirmed the completion.
    written: usize,
    /// Of these, those that were sent the record of the run with it.
    told: usize,
    /// Nodes that showed nothing of ours to a finish that was repeated: an earlier one may have written a completion there that is
    /// gone again.
    doubtful: usize,
}

impl Marks {
    pub(super) const fn new(token: Token, deadline: Monotonic, about: Option<About>, may_go_alone: bool) -> Self {
        Self { token, deadline, about, may_go_alone, written: 0, told: 0, doubtful: 0 }
    }

    /// The end of the finish.
    fn event(&self, confirmed: bool, ctx: &Ctx<'_>) -> Event {
        let result_dropped = self.about.is_some() && self.told < majority(ctx.config.nodes().len());
        Event::Finished { lock: ctx.lock, confirmed, result_dropped }
    }
}

/// Evidence that a lease was ours until its release, counted in nodes.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
struct Evidence {
    /// Those whose deadline had not passed when the release began.
    held: usize,
    /// Of these, those that have shown that nobody else had their vote until then.
    kept: usize,
    /// Of these, those that have shown that our record was gone before its time.
    taken: usize,
    /// The reason that the last of them showed.
    reason: Option<LostReason>,
}

/// The answer of a node about a lease that is released before its deadline.
enum Finding<'a> {
    /// Nobody else had its vote until then.
    Ours,
    /// The content of the node in the place of our record.
    Taken(&'a Seen),
}

/// The part of one node in a release.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct NodeRelease {
    id: NodeId,
    in_flight: Option<Seq>,
    /// Sent by the lock before it ended, and perhaps answered yet.
    inherited: Option<Seq>,
    retry_at: Option<Monotonic>,
    recheck: Recheck,
    /// Sends of the attempt that may land yet.
    unsettled: Sends,
    /// A release has found nothing of ours.
    found_nothing: bool,
    /// Until then the node has our record, unless somebody took it away.
    held_until: Option<Monotonic>,
    completion: CompletionAt,
    /// How often the node has refused the completion with the record of the run, for certain; once for good counts as twice.
    refusals: u8,
    /// An earlier release may have been carried out.
    repeated: bool,
    /// A release has got no answer for certain.
    failed: bool,
}

/// The completion of a finish at one node. A finish names the grant that it belongs to, by the counter that the node showed with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum CompletionAt {
    /// It may be written under the grant that the node showed with this counter while the lease stood.
    Grant(Token),
    /// It may be, once an acquire or a raise that is under way has shown the grant's counter.
    NotYet,
    /// None is written: the grant is not known, or there is nothing to mark.
    Nowhere,
}

/// When to ask once more after "not ours": a send of the attempt may land behind the release that should have undone it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Recheck {
    No,
    /// After a request timeout: all that is under way has arrived by then.
    Later,
    /// A send is known to have landed, perhaps behind the release that is under way.
    AtOnce,
}

/// A store that is full may say so as something that passes, and so does one that is being replaced by another.
const REFUSALS_OF_A_RESULT: u8 = 2;

impl NodeRelease {
    /// The next finish carries no record of the run: the node may be too full for it.
    fn is_bare(&self) -> bool {
        self.refusals >= REFUSALS_OF_A_RESULT
    }

    /// Counts a refusal of a finish with a record. Returns true if the next one carries none, and may leave at once.
    fn note_refusal(&mut self, outcome: &Outcome) -> bool {
        let was_bare = self.is_bare();
        self.refusals = self.refusals.saturating_add(match outcome {
            Outcome::NotApplied(Refusal::Denied(_)) => REFUSALS_OF_A_RESULT,
            Outcome::NotApplied(Refusal::Unavailable(fault)) if fault.kind == FaultKind::Server => 1,
            Outcome::Applied(_) | Outcome::NotApplied(_) | Outcome::Unknown(_) => 0,
        });
        self.is_bare() && !was_bare
    }

    /// A release on this node, from now on. Until `held_until` the node has our record, unless somebody took it away.
    ///
    /// Where an acquire may yet land, "not ours" is asked once more. A renewal creates no record, so elsewhere one definite
    /// answer is enough.
    pub(super) fn new(
        id: NodeId,
        pending: PendingAcquires,
        held_until: Option<Monotonic>,
        completion: CompletionAt,
        now: Monotonic,
    ) -> Self {
        let (recheck, unsettled) = match pending {
            PendingAcquires::Maybe(sends) => (Recheck::Later, sends),
            PendingAcquires::None => (Recheck::No, Sends::default()),
        };
        Self {
            id,
            in_flight: None,
            inherited: None,
            retry_at: Some(now),
            recheck,
            unsettled,
            found_nothing: false,
            held_until,
            completion,
            refusals: 0,
            repeated: false,
            failed: false,
        }
    }
}

impl Releasing {
    /// The release of an attempt that was given up.
    pub(super) fn of_attempt(nonce: Nonce, nodes: OneOrMany<NodeRelease>, next_seq: u32, ctx: &Ctx<'_>) -> Box<Self> {
        let until = ctx.after(ctx.options.record_ttl());
        Box::new(Self {
            nonce,
            until,
            next_seq,
            tries: 0,
            answered: false,
            is_background: false,
            evidence: None,
            finish: None,
            nodes,
        })
    }

    /// The release of a lease; with `finished`, the finish of a run whose work is done. A node that is just being asked for
    /// its grant is waited for then.
    pub(super) fn of_lease(
        nonce: Nonce,
        mut nodes: OneOrMany<NodeRelease>,
        next_seq: u32,
        finished: Option<Marks>,
        ctx: &Ctx<'_>,
    ) -> Box<Self> {
        for node in nodes.iter_mut().filter(|node| finished.is_some() && node.completion == CompletionAt::NotYet) {
            node.retry_at = Some(ctx.after(ctx.request_timeout()));
        }
        let held = nodes.iter().filter(|node| node.held_until.is_some()).count();
        let mut release = Self::of_attempt(nonce, nodes, next_seq, ctx);
        release.evidence = Some(Evidence { held, ..Evidence::default() });
        release.finish = finished;
        release
    }

    /// From then on others in the local queue may try: the definite answer may take as long as the ttl.
    pub(crate) fn was_answered(&self) -> bool {
        self.answered
    }

    /// By then the record has run out by itself.
    pub(crate) fn until(&self) -> Monotonic {
        self.until
    }

    /// Handles an input of a revoked lease whose work may still run: the release begins once its holder asks for it.
    pub(crate) fn handle_before_it_begins(self: Box<Self>, input: Input<'_>, ctx: &mut Ctx<'_>) -> Step {
        match input {
            Input::Release => {
                ctx.out.orphan = Some(self);
                (Machine::Ended, Some(Row::RevokedReleased))
            }
            Input::Timeout if ctx.now.monotonic >= self.until => (Machine::Ended, Some(Row::RevokedRanOut)),
            Input::Timeout
            | Input::Start { .. }
            | Input::Turn
            | Input::RenewAlong(_)
            | Input::Outcome { .. }
            | Input::Late { .. }
            | Input::Wake { .. }
            | Input::FreshCredentials(_)
            | Input::Finish(_)
            | Input::DeclareLost => (Machine::Revoked(self), None),
        }
    }

    pub(crate) fn wake_at(&self) -> Monotonic {
        self.nodes.iter().filter_map(|node| node.retry_at).fold(self.until, Monotonic::min)
    }

    pub(crate) fn handle(mut self: Box<Self>, input: Input<'_>, ctx: &mut Ctx<'_>) -> Step {
        match input {
            Input::Outcome { node: id, seq, outcome, .. } => {
                match self.nodes.iter().position(|node| node.id == id && node.in_flight == Some(seq)) {
                    Some(at) => self.answered(at, &outcome, ctx),
                    None => self.acquire_answered(id, seq, &outcome, ctx),
                }
            }
            Input::Late { node: id, seq, outcome } => {
                match self.nodes.iter().position(|node| node.id == id && node.inherited == Some(seq)) {
                    Some(at) => self.answered(at, &outcome, ctx),
                    None => self.acquire_answered(id, seq, &outcome, ctx),
                }
            }
            Input::Timeout if ctx.now.monotonic >= self.until => {
                ctx.event(match &self.finish {
                    Some(completions) => completions.event(false, ctx),
                    None => Event::Released { lock: ctx.lock, confirmed: false },
                });
                (Machine::Ended, Some(Row::ReleasingRanOut))
            }
            Input::Timeout => {
                let due = |node: &NodeRelease| node.retry_at.is_some_and(|at| ctx.now.monotonic >= at);
                match self.nodes.iter().position(due) {
                    Some(at) => {
                        self.ask(at, ctx);
                        (Machine::Releasing(self), Some(Row::ReleasingSent))
                    }
                    None => (Machine::Releasing(self), None),
                }
            }
            Input::Start { .. }
            | Input::Turn
            | Input::RenewAlong(_)
            | Input::Wake { .. }
            | Input::FreshCredentials(_)
            | Input::Release
            | Input::Finish(_)
            | Input::DeclareLost => (Machine::Releasing(self), None),
        }
    }

    fn ask(&mut self, at: usize, ctx: &mut Ctx<'_>) {
        self.next_seq += 1;
        let seq = Seq::new(self.next_seq);
        let node = &mut self.nodes[at];
        node.in_flight = Some(seq);
        node.inherited = None;
        node.retry_at = None;
        let quorum = ctx.config.quorum().map(|_| ctx.durability(node.id));
        let op = match (&self.finish, ctx.options.run, node.completion) {
            (Some(completions), Some(run), CompletionAt::Grant(counter)) => Op::Finish(Box::new(Finish {
                nonce: self.nonce,
                token: completions.token,
                counter,
                keep: run.keep,
                owner: ctx.options.owner.clone(),
                about: completions.about.clone().filter(|_| !node.is_bare()),
                quorum,
            })),
            // The counter of the grant also tells why a release finds nothing.
            (None, _, CompletionAt::Grant(_)) => Op::Release(Release { nonce: self.nonce, quorum }),
            (_, _, CompletionAt::Grant(_) | CompletionAt::NotYet | CompletionAt::Nowhere) => {
                node.completion = CompletionAt::Nowhere;
                Op::Release(Release { nonce: self.nonce, quorum })
            }
        };
        ctx.send(node.id, seq, op);
    }

    /// Handles a late answer to an acquire of the attempt.
    fn acquire_answered(mut self: Box<Self>, id: NodeId, seq: Seq, outcome: &Outcome, ctx: &mut Ctx<'_>) -> Step {
        let Some(at) = self.nodes.iter().position(|node| node.id == id) else {
            return (Machine::Releasing(self), None);
        };
        let node = &mut self.nodes[at];
        match outcome {
            // The release may have come too early. Asking again is better than waiting until the record runs out.
            Outcome::Applied(Applied::Acquired { counter } | Applied::AcquiredInDoubt { counter, .. }) => {
                node.unsettled.settle(seq);
                let in_time = self.finish.as_ref().is_some_and(|completions| ctx.now.monotonic < completions.deadline);
                if node.completion == CompletionAt::NotYet && in_time {
                    node.completion = CompletionAt::Grant(*counter);
                }
                match node.in_flight.or(node.inherited) {
                    Some(_) => node.recheck = Recheck::AtOnce,
                    None => {
                        node.retry_at = Some(ctx.now.monotonic);
                        // A release that leaves now arrives behind all acquires that can land.
                        if node.unsettled.is_empty() {
                            node.recheck = Recheck::No;
                        }
                    }
                }
                (Machine::Releasing(self), Some(Row::ReleasingLanded))
            }
            Outcome::Applied(Applied::Raised { counter }) if node.completion == CompletionAt::NotYet => {
                let in_time = self.finish.as_ref().is_some_and(|completions| ctx.now.monotonic < completions.deadline);
                node.completion = if in_time { CompletionAt::Grant(*counter) } else { CompletionAt::Nowhere };
                node.retry_at = Some(ctx.now.monotonic);
                (Machine::Releasing(self), None)
            }
            Outcome::NotApplied(_) if node.unsettled.sent_at(seq).is_some() => {
                node.unsettled.settle(seq);
                if node.completion == CompletionAt::NotYet && node.in_flight.is_none() {
                    node.retry_at = Some(ctx.now.monotonic);
                }
                if node.unsettled.is_empty() && node.recheck == Recheck::Later {
                    node.recheck = Recheck::No;
                }
                if node.unsettled.is_empty() && node.found_nothing && node.in_flight.is_none() {
                    self.nodes.remove(at);
                }
                self.proceed(ctx)
            }
            Outcome::Applied(_) | Outcome::NotApplied(_) | Outcome::Unknown(_) => (Machine::Releasing(self), None),
        }
    }

    fn answered(mut self: Box<Self>, at: usize, outcome: &Outcome, ctx: &mut Ctx<'_>) -> Step {
        self.answered = true;
        let node = &mut self.nodes[at];
        node.in_flight = None;
        node.inherited = None;
        let is_quorum = ctx.config.quorum().is_some();
        match outcome {
            Outcome::Applied(Applied::Released)
                if self.finish.is_none() || node.completion == CompletionAt::Nowhere =>
            {
                let node = self.nodes.remove(at);
                self.note(&node, Finding::Ours);
            }
            // Also the answer to a finish that was under way when its end was reported.
            Outcome::Applied(Applied::Finished) => {
                let node = self.nodes.remove(at);
                self.note(&node, Finding::Ours);
                if let Some(completions) = &mut self.finish {
                    completions.written += 1;
                    completions.told += usize::from(!node.is_bare());
                }
            }
            Outcome::NotApplied(refusal @ (Refusal::Conflict(_) | Refusal::Abstains { .. }))
                if is_quorum || matches!(refusal, Refusal::Conflict(_)) =>
            {
                node.found_nothing = true;
                match core::mem::replace(&mut node.recheck, Recheck::No) {
                    Recheck::Later => node.retry_at = Some(ctx.after(ctx.request_timeout())),
                    Recheck::AtOnce => node.retry_at = Some(ctx.now.monotonic),
                    Recheck::No => {
                        let node = self.nodes.remove(at);
                        let in_time = node.held_until.is_some_and(|until| ctx.now.monotonic < until);
                        if let (true, Refusal::Abstains { .. }) = (in_time, refusal) {
                            self.note(&node, Finding::Ours);
                        }
                        if let (true, Some(completions)) = (node.repeated, &mut self.finish) {
                            completions.doubtful += 1;
                        }
                        if let (true, Refusal::Conflict(seen)) = (in_time && !node.repeated, refusal) {
                            self.note(&node, Finding::Taken(seen));
                        }
                        return self.proceed(ctx);
                    }
                }
                node.repeated = true;
            }
            Outcome::Applied(_) | Outcome::NotApplied(_) | Outcome::Unknown(_) => {
                let jitter = ctx.jitter(Domain::Retry, self.next_seq, self.tries);
                let backoff = Backoff::of_release(ctx.options.record_ttl());
                node.repeated |= !matches!(outcome, Outcome::NotApplied(_));
                node.failed = true;
                node.retry_at = Some(ctx.after(backoff.sleep(self.tries, jitter)));
                let may_go_alone = self
                    .finish
                    .as_ref()
                    .is_some_and(|completions| completions.about.is_some() && completions.may_go_alone);
                if may_go_alone && node.note_refusal(outcome) {
                    node.retry_at = Some(ctx.now.monotonic);
                }
                self.tries = self.tries.saturating_add(1);
            }
        }
        self.proceed(ctx)
    }

    /// Counts the finding of a node of the lease.
    fn note(&mut self, node: &NodeRelease, finding: Finding<'_>) {
        let nonce = self.nonce;
        let Some(evidence) = self.evidence.as_mut().filter(|_| node.held_until.is_some()) else { return };
        match finding {
            Finding::Ours => evidence.kept += 1,
            Finding::Taken(seen) => {
                evidence.taken += 1;
                // A late copy of our acquire has brought another grant, after ours was gone.
                let is_of_us = seen.held().is_some_and(|holding| holding.is_of(&nonce));
                let seen = if is_of_us { Seen::default() } else { seen.clone() };
                let granted = match node.completion {
                    CompletionAt::Grant(counter) => Some(counter),
                    CompletionAt::NotYet | CompletionAt::Nowhere => None,
                };
                evidence.reason = Some(LostReason::by_what_stands(seen, granted));
            }
        }
    }

    /// Goes on while the end is open. Reports it once others can have the lock; what is left goes on in the background.
    fn proceed(mut self: Box<Self>, ctx: &mut Ctx<'_>) -> Step {
        let row = match self.end(ctx) {
            Some(row) if self.is_background => row,
            Some(Row::ReleasingTaken) => {
                let reason = self.evidence.take().and_then(|evidence| evidence.reason);
                let reason = reason.unwrap_or(LostReason::RecordGone);
                ctx.event(Event::Lost { lock: ctx.lock, reason });
                Row::ReleasingTaken
            }
            Some(row @ (Row::ReleasingFinished | Row::ReleasingUnfinished)) => {
                let ended = self.finish.as_ref().map(|marks| marks.event(row == Row::ReleasingFinished, ctx));
                ended.into_iter().for_each(|event| ctx.event(event));
                row
            }
            Some(row) => {
                ctx.event(Event::Released { lock: ctx.lock, confirmed: row == Row::ReleasingConfirmed });
                row
            }
            None => return (Machine::Releasing(self), Some(Row::ReleasingOpen)),
        };
        if !self.nodes.is_empty() {
            ctx.out.orphan = Some(self.into_orphan(ctx));
        }
        (Machine::Ended, Some(row))
    }

    /// The row by which the release ends, if it does.
    fn end(&self, ctx: &Ctx<'_>) -> Option<Row> {
        let nodes = ctx.config.nodes().len();
        if self.is_background {
            return self.nodes.is_empty().then_some(Row::ReleasingConfirmed);
        }
        if let Some(completions) = &self.finish {
            let may_stand = completions.written + completions.doubtful > 0;
            return if completions.written >= majority(nodes) {
                Some(Row::ReleasingFinished)
            } else if may_stand && completions.written + self.nodes.len() < majority(nodes) {
                Some(Row::ReleasingUnfinished)
            } else {
                // A completion that may yet be written would contradict a loss.
                self.nodes.is_empty().then_some(Row::ReleasingTaken)
            };
        }
        let free = self.nodes.len() <= nodes - majority(nodes);
        let Some(evidence) = &self.evidence else { return free.then_some(Row::ReleasingConfirmed) };
        let no_more_evidence =
            || self.nodes.iter().all(|node| node.held_until.is_none() || node.failed && evidence.taken == 0);
        if evidence.taken > 0 && evidence.held - evidence.taken < majority(nodes) {
            Some(Row::ReleasingTaken)
        } else if free && evidence.kept >= majority(nodes) {
            Some(Row::ReleasingConfirmed)
        } else if free && no_more_evidence() {
            Some(Row::ReleasingUnconfirmed)
        } else {
            None
        }
    }

    /// The rest of a release after its lock has ended: rivals can have the lock, so nobody waits for it. A release that is
    /// under way is sent again if no answer comes, since a send that has not left yet ends with its lock. Nodes that have not
    /// got the completion of a finish still get it.
    fn into_orphan(mut self: Box<Self>, ctx: &Ctx<'_>) -> Box<Self> {
        for node in self.nodes.iter_mut().filter(|node| node.in_flight.is_some()) {
            node.inherited = node.in_flight.take();
            node.retry_at = Some(ctx.after(ctx.request_timeout()));
        }
        self
    }

    /// The same release, until every node has answered: nobody waits for its end.
    pub(crate) fn in_background(mut self: Box<Self>) -> Box<Self> {
        self.is_background = true;
        self
    }
}
