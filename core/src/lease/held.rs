//! A lease: valid until its deadline, renewed node by node, lost by the clock alone.

use alloc::boxed::Box;

use crate::about::{About, RunResult};
use crate::backoff::Backoff;
use crate::event::{Event, LostReason};
use crate::ids::{NodeId, Nonce, Seq, Token};
use crate::lease::attempt::NodeAttempt;
use crate::lease::node_state::known_losses;
use crate::lease::releasing::{CompletionAt, Marks, NodeRelease, PendingAcquires};
use crate::lease::sends::Sends;
use crate::lease::{Ctx, Input, Machine, Releasing, Row, Step, counted, misfit, unknown_send};
use crate::member::LossId;
use crate::one_or_many::OneOrMany;
use crate::op::{Applied, Fault, FaultKind, Holding, Op, Outcome, Raise, Refusal, Renew, Seen};
use crate::prf::Domain;
use crate::quorum::{majority, shared_deadline};
use crate::time::{Monotonic, danger_at, deadline_of, renew_at, retry_in_time};

/// A held lease.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Held {
    nonce: Nonce,
    token: Token,
    /// The q-th largest of the nodes' deadlines.
    deadline: Monotonic,
    /// When to warn the holder; cleared by the warning, set again by a renewal.
    warn_at: Option<Monotonic>,
    /// No automatic renewal is due from here on.
    renew_until: Monotonic,
    /// When a run began, in milliseconds since 1970; 0 for a plain lock.
    began_unix_ms: u64,
    next_seq: u32,
    nodes: OneOrMany<NodeLease>,
}

/// The part of one node in a lease.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct NodeLease {
    pub(super) id: NodeId,
    pub(super) in_flight: Option<(Seq, Request)>,
    pub(super) sends: Sends,
    pub(super) record: RecordState,
    /// When to renew, or to repair.
    pub(super) due: Monotonic,
    /// Renewals in a row without success.
    pub(super) failures: u32,
    /// It has our record, but may have forgotten tokens. As long as the lease stands nobody can have a higher one, so
    /// raising its counter to ours makes up for all that it forgot of this resource.
    pub(super) in_doubt: bool,
    /// The loss since which it is in doubt.
    pub(super) loss: Option<LossId>,
    /// Its counter as it showed it last with our record; `None` while a raise may have moved it.
    pub(super) counter: Option<Token>,
}

/// The operation that is in flight to a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Request {
    /// Left over from the attempt, which was decided before this node answered, or sent to repair the majority.
    Acquire,
    Renew,
    Raise,
}

/// The state of our record at a node, as far as is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum RecordState {
    /// It stands until the deadline.
    Ours { deadline: Monotonic },
    /// The node has forgotten it, but knows that it may have forgotten leases: it votes for nobody before the deadline.
    Forgotten { deadline: Monotonic },
    /// Unknown: a send of ours may have landed.
    Maybe,
    /// It stands until the deadline, and is revoked: it keeps others out, and does not count for us.
    Revoked { deadline: Monotonic },
    /// The node has no record of ours.
    Absent,
}

impl RecordState {
    fn deadline(self) -> Option<Monotonic> {
        match self {
            Self::Ours { deadline } | Self::Forgotten { deadline } => Some(deadline),
            Self::Maybe | Self::Revoked { .. } | Self::Absent => None,
        }
    }

    /// Until then the node keeps others out.
    fn stands_until(self) -> Option<Monotonic> {
        match self {
            Self::Revoked { deadline } => Some(deadline),
            Self::Ours { .. } | Self::Forgotten { .. } | Self::Maybe | Self::Absent => self.deadline(),
        }
    }
}

impl NodeLease {
    fn due(&self) -> Monotonic {
        if self.is_to_be_raised() { Monotonic::default() } else { self.due }
    }

    /// Lets a request to the node leave now, or returns when it may.
    fn admit(&self, retry_at: Monotonic, ctx: &mut Ctx<'_>) -> Result<(), Monotonic> {
        let until = ctx.after(ctx.request_timeout());
        // Only renewals share a request.
        let batch = match self.record {
            RecordState::Ours { .. } => ctx.config.nodes().get(self.id.index()).map_or(1, |node| node.batch),
            RecordState::Forgotten { .. } | RecordState::Maybe | RecordState::Revoked { .. } | RecordState::Absent => 1,
        };
        let now = ctx.now.monotonic;
        ctx.nodes.get_mut(self.id.index()).map_or(Ok(()), |node| node.breaker.admit(now, retry_at, until, batch))
    }

    /// Notes in the circuit breaker whether the node serves.
    fn note(&self, seq: Seq, outcome: &Outcome, ctx: &mut Ctx<'_>) {
        let now = ctx.now.monotonic;
        let Some(node) = ctx.nodes.get_mut(self.id.index()) else { return };
        let throttled = matches!(outcome, Outcome::NotApplied(Refusal::Throttled(_)));
        match outcome {
            Outcome::Unknown(_)
            | Outcome::NotApplied(Refusal::Throttled(_) | Refusal::Unavailable(_) | Refusal::NeedsCredentials(_)) => {
                node.breaker.failed(self.sends.sent_at(seq).unwrap_or(now), now, throttled);
            }
            Outcome::Applied(_)
            | Outcome::NotApplied(
                Refusal::Conflict(_) | Refusal::Done(_) | Refusal::Abstains { .. } | Refusal::Denied(_),
            ) => {
                node.breaker.served();
            }
        }
    }

    fn is_to_be_raised(&self) -> bool {
        self.in_doubt && matches!(self.record, RecordState::Ours { .. })
    }

    /// Its part in the release of the lease; `None` where it has no record of ours.
    fn into_release(self, now: Monotonic) -> Option<NodeRelease> {
        let pending = match self.record {
            RecordState::Ours { .. } | RecordState::Revoked { .. } => PendingAcquires::None,
            RecordState::Forgotten { .. } | RecordState::Maybe => PendingAcquires::Maybe(self.sends),
            RecordState::Absent => return None,
        };
        let held_until = self.record.deadline().filter(|until| *until > now);
        let completion = match (self.counter, self.in_flight) {
            (Some(counter), _) => CompletionAt::Grant(counter),
            (None, Some((_, Request::Acquire | Request::Raise))) => CompletionAt::NotYet,
            (None, Some((_, Request::Renew)) | None) => CompletionAt::Nowhere,
        };
        Some(NodeRelease::new(self.id, pending, held_until, completion, now))
    }
}

impl Held {
    pub(super) fn new(
        nonce: Nonce,
        token: Token,
        deadline: Monotonic,
        next_seq: u32,
        nodes: OneOrMany<NodeAttempt>,
        ctx: &Ctx<'_>,
    ) -> Box<Self> {
        let warn_at = Some(danger_at(deadline, ctx.options.ttl));
        let renew_until = ctx.options.max_hold.map_or(Monotonic::FAR, |max_hold| ctx.after(max_hold));
        let began_unix_ms = ctx.options.run().map_or(0, |_| ctx.now.unix_ms);
        let nodes_of_it = OneOrMany::new();
        let mut lease = Box::new(Self {
            nonce,
            token,
            deadline,
            warn_at,
            renew_until,
            began_unix_ms,
            next_seq,
            nodes: nodes_of_it,
        });
        lease.nodes = nodes
            .into_iter()
            .map(|node| {
                let due = lease.next_renewal(node.confirmed.unwrap_or(ctx.now.monotonic), ctx);
                node.into_lease(due)
            })
            .collect();
        lease
    }

    pub(crate) fn deadline(&self) -> Monotonic {
        self.deadline
    }

    pub(crate) fn nonce(&self) -> Nonce {
        self.nonce
    }

    pub(crate) fn token(&self) -> Token {
        self.token
    }

    pub(crate) fn wake_at(&self) -> Monotonic {
        let due = self.nodes.iter().filter(|node| node.in_flight.is_none()).map(NodeLease::due);
        due.chain(self.warn_at).fold(self.deadline, Monotonic::min)
    }

    pub(crate) fn handle(mut self: Box<Self>, input: Input<'_>, ctx: &mut Ctx<'_>) -> Step {
        let now = ctx.now.monotonic;
        match input {
            Input::Timeout if now >= self.deadline => {
                let reason = if now >= self.renew_until { LostReason::MaxHold } else { LostReason::Expired };
                (lose(reason, ctx), Some(Row::HeldLost))
            }
            Input::Timeout if self.warn_at.is_some_and(|at| now >= at) => {
                self.warn_at = None;
                ctx.event(Event::Expiring { lock: ctx.lock, deadline: self.deadline });
                (Machine::Held(self), Some(Row::HeldExpiring))
            }
            Input::Timeout => self.ask_due_nodes(now, ctx),
            Input::RenewAlong(until) => self.ask_due_nodes(until, ctx),
            Input::Outcome { node: id, seq, outcome, since } => {
                let request = self.nodes.iter().enumerate().find_map(|(at, node)| match node.in_flight {
                    Some((open, request)) if node.id == id && open == seq => Some((at, request)),
                    Some(_) | None => None,
                });
                match request {
                    Some((at, Request::Renew)) => self.renewed(at, (seq, since), outcome, ctx),
                    Some((at, Request::Acquire)) => {
                        self.joined(at, (seq, since), outcome, ctx);
                        (Machine::Held(self), Some(Row::HeldJoined))
                    }
                    Some((at, Request::Raise)) => {
                        // A node that could not be raised stays in doubt; the next holder raises it.
                        self.nodes[at].in_flight = None;
                        if let Outcome::Applied(Applied::Raised { counter }) = outcome {
                            self.nodes[at].counter = Some(counter);
                        }
                        (Machine::Held(self), Some(Row::HeldJoined))
                    }
                    None => (Machine::Held(self), None),
                }
            }
            Input::DeclareLost => (lose(LostReason::Expired, ctx), Some(Row::HeldLost)),
            Input::Release => (Machine::Releasing(self.end(None, ctx)), Some(Row::HeldReleased)),
            Input::Finish(result) => {
                let may_go_alone = result.as_ref().is_none_or(|result| !result.is_required());
                let about = result.map(|result| self.about(&result));
                let marks = Marks::new(self.token, self.deadline, about, may_go_alone);
                (Machine::Releasing(self.end(Some(marks), ctx)), Some(Row::HeldFinished))
            }
            Input::Start { .. }
            | Input::Turn
            | Input::Late { .. }
            | Input::Wake { .. }
            | Input::FreshCredentials(_) => (Machine::Held(self), None),
        }
    }

    /// The record of the run, with its result.
    pub(crate) fn about(&self, result: &RunResult) -> About {
        About::new(&self.nonce, self.began_unix_ms, 0, Some(result))
    }

    /// The release of the lease; with `finished`, the finish of a run whose work is done.
    fn end(self: Box<Self>, finished: Option<Marks>, ctx: &Ctx<'_>) -> Box<Releasing> {
        let now = ctx.now.monotonic;
        let nodes = self.nodes.into_iter().filter_map(|node| node.into_release(now)).collect();
        Releasing::of_lease(self.nonce, nodes, self.next_seq, finished, ctx)
    }

    /// Renews on every node whose time comes up to `until`, and asks those for their vote that have no record of ours, so
    /// that the majority outlives nodes that restart one after the other.
    fn ask_due_nodes(mut self: Box<Self>, until: Monotonic, ctx: &mut Ctx<'_>) -> Step {
        let capped = ctx.now.monotonic >= self.renew_until;
        let known_losses = known_losses(ctx.nodes, ctx.now.monotonic, ctx.config);
        let mut row = None;
        for (node, known_loss) in self.nodes.iter_mut().zip(known_losses) {
            if node.in_flight.is_some() || node.due() > until {
                continue;
            }
            if node.is_to_be_raised() {
                self.next_seq += 1;
                let seq = Seq::new(self.next_seq);
                node.in_doubt = false;
                node.counter = None;
                node.in_flight = Some((seq, Request::Raise));
                row = row.or(Some(Row::HeldRepaired));
                ctx.send(node.id, seq, Op::Raise(Raise { nonce: self.nonce, token: self.token, loss: node.loss }));
                continue;
            }
            if capped {
                node.due = Monotonic::FAR;
                row = row.or(Some(Row::HeldCapped));
                continue;
            }
            let retry_at = retry_at(node.id, node.failures, self.deadline, ctx);
            if let Err(at) = node.admit(retry_at, ctx) {
                if node.due <= ctx.now.monotonic {
                    node.due = at;
                    row = row.or(Some(Row::HeldPostponed));
                }
                continue;
            }
            self.next_seq += 1;
            let seq = Seq::new(self.next_seq);
            node.sends.push(seq, ctx.now.monotonic);
            if let RecordState::Ours { .. } = node.record {
                row = Some(Row::HeldRenewed);
                node.in_flight = Some((seq, Request::Renew));
                let quorum = ctx.config.quorum().map(|_| ctx.durability(node.id));
                let renew = Renew { nonce: self.nonce, seq, record_ttl: ctx.options.record_ttl(), quorum };
                ctx.send(node.id, seq, Op::Renew(renew));
            } else {
                row = row.or(Some(Row::HeldRepaired));
                node.in_flight = Some((seq, Request::Acquire));
                if node.record == RecordState::Absent {
                    node.record = RecordState::Maybe;
                }
                node.counter = None;
                // A node that votes for this lease must not mint less than its token to the next one.
                let floor = self.token;
                let acquire = ctx.acquire(node.id, self.nonce, seq, floor, known_loss);
                ctx.send(node.id, seq, Op::Acquire(Box::new(acquire)));
            }
        }
        (Machine::Held(self), row)
    }

    fn renewed(
        mut self: Box<Self>,
        at: usize,
        (seq, since): (Seq, Option<Monotonic>),
        outcome: Outcome,
        ctx: &mut Ctx<'_>,
    ) -> Step {
        self.nodes[at].in_flight = None;
        self.nodes[at].note(seq, &outcome, ctx);
        match outcome {
            Outcome::Applied(Applied::Renewed | Applied::RenewedTold { .. }) => match self.nodes[at].sends.sent_at(seq)
            {
                Some(sent) => self.confirmed(at, (seq, sent, since), false, ctx),
                None => self.delayed(at, Fault::of(FaultKind::Protocol), ctx),
            },
            Outcome::NotApplied(Refusal::Conflict(seen)) => match &seen.holding {
                Some(holding) if holding.is_of(&self.nonce) && holding.is_revoked() => self.revoked(at, ctx),
                Some(holding) if holding.is_of(&self.nonce) && !holding.released => {
                    let took_effect = holding.seq().and_then(|seq| Some((seq, self.nodes[at].sends.sent_at(seq)?)));
                    match took_effect {
                        Some((seq, sent)) => self.confirmed(at, (seq, sent, since), true, ctx),
                        None => self.delayed(at, unknown_send(), ctx),
                    }
                }
                _ => self.not_ours(at, seen, ctx),
            },
            Outcome::NotApplied(refusal) => {
                self.nodes[at].sends.settle(seq);
                // A single store never abstains. One that does so anyway may still have the record.
                let has_forgotten = matches!(refusal, Refusal::Abstains { .. }) && ctx.config.quorum().is_some();
                if let (true, RecordState::Ours { deadline }) = (has_forgotten, self.nodes[at].record) {
                    self.nodes[at].record = RecordState::Forgotten { deadline };
                }
                let fault = match refusal {
                    Refusal::Throttled(fault) | Refusal::Unavailable(fault) | Refusal::NeedsCredentials(fault) => fault,
                    Refusal::Denied(denial) => Fault::new(FaultKind::Server, &denial.detail),
                    Refusal::Abstains { .. } if has_forgotten => {
                        Fault::new(FaultKind::Server, "the node has lost its data")
                    }
                    Refusal::Abstains { .. } | Refusal::Conflict(_) => Fault::of(FaultKind::Busy),
                    Refusal::Done(_) => misfit(),
                };
                self.delayed(at, fault, ctx)
            }
            Outcome::Unknown(fault) => self.delayed(at, fault, ctx),
            Outcome::Applied(_) => self.delayed(at, misfit(), ctx),
        }
    }

    fn confirmed(
        mut self: Box<Self>,
        at: usize,
        (seq, sent, since): (Seq, Monotonic, Option<Monotonic>),
        recovered: bool,
        ctx: &mut Ctx<'_>,
    ) -> Step {
        let counted = counted(sent, since);
        // What was sent before this renewal keeps pace with others, unless they are too slow for this lease.
        let due = Some(self.next_renewal(counted, ctx)).filter(|due| *due > ctx.now.monotonic);
        let due = due.unwrap_or_else(|| self.next_renewal(sent, ctx));
        let node = &mut self.nodes[at];
        node.failures = 0;
        node.sends.settle_through(seq);
        let RecordState::Ours { deadline } = node.record else { return (Machine::Held(self), None) };
        let deadline = deadline.max(deadline_of(counted, ctx.options.ttl, ctx.config.drift()));
        node.record = RecordState::Ours { deadline };
        node.due = due;
        self.extend(recovered, ctx);
        let row = if recovered { Row::HeldRecovered } else { Row::HeldConfirmed };
        (Machine::Held(self), Some(row))
    }

    /// The deadline does not move; another try follows while there is time.
    fn delayed(mut self: Box<Self>, at: usize, fault: Fault, ctx: &mut Ctx<'_>) -> Step {
        let node = &mut self.nodes[at];
        node.failures = node.failures.saturating_add(1);
        node.due = retry_at(node.id, node.failures, self.deadline, ctx);
        ctx.event(Event::RenewDelayed { lock: ctx.lock, deadline: self.deadline, fault });
        (Machine::Held(self), Some(Row::HeldDelayed))
    }

    fn not_ours(mut self: Box<Self>, at: usize, seen: Seen, ctx: &mut Ctx<'_>) -> Step {
        // Somebody removed the record before its time, on purpose. Another acquire would undo that.
        let broken = self.nodes[at].record.deadline().is_some_and(|deadline| ctx.now.monotonic < deadline);
        let granted = self.nodes[at].counter;
        self.nodes[at].due = if broken { Monotonic::FAR } else { self.next_renewal(ctx.now.monotonic, ctx) };
        self.nodes[at].record = RecordState::Absent;
        self.nodes[at].sends = Sends::default();
        match self.shared_deadline() {
            Some(deadline) => self.shrink_to(deadline, ctx),
            None => self.lose_majority(LostReason::by_what_stands(seen, granted), ctx),
        }
    }

    /// The node has our record, and renews it no more. Another acquire would undo that.
    fn revoked(mut self: Box<Self>, at: usize, ctx: &mut Ctx<'_>) -> Step {
        let node = &mut self.nodes[at];
        node.due = Monotonic::FAR;
        node.in_doubt = false;
        if let RecordState::Ours { deadline } = node.record {
            node.record = RecordState::Revoked { deadline };
        }
        match self.shared_deadline() {
            Some(deadline) => self.shrink_to(deadline, ctx),
            None => self.lose_majority(LostReason::Revoked, ctx),
        }
    }

    fn shrink_to(mut self: Box<Self>, deadline: Monotonic, ctx: &mut Ctx<'_>) -> Step {
        if deadline < self.deadline {
            self.deadline = deadline;
            self.warn_at = self.warn_at.map(|_| danger_at(deadline, ctx.options.ttl));
            ctx.event(Event::Shortened { lock: ctx.lock, deadline });
        }
        (Machine::Held(self), Some(Row::HeldShrunk))
    }

    /// Ends the lease once fewer nodes than a majority keep it. It is revoked if those that are revoked would complete the
    /// majority: until they run out, or are released, nobody else has the lock.
    fn lose_majority(self: Box<Self>, reason: LostReason, ctx: &mut Ctx<'_>) -> Step {
        let standing = self.nodes.iter().map(|node| node.record.stands_until());
        let is_protected =
            shared_deadline(standing, majority(self.nodes.len())).is_some_and(|at| at > ctx.now.monotonic);
        if !is_protected {
            return (lose(reason, ctx), Some(Row::HeldTaken));
        }
        ctx.event(Event::Lost { lock: ctx.lock, reason: LostReason::Revoked });
        (Machine::Revoked(self.end(None, ctx)), Some(Row::HeldRevoked))
    }

    /// Notes the answer of a node to an acquire that left after the majority was reached, or was answered after that.
    fn joined(&mut self, at: usize, (seq, since): (Seq, Option<Monotonic>), outcome: Outcome, ctx: &mut Ctx<'_>) {
        let id = self.nodes[at].id;
        self.nodes[at].in_flight = None;
        self.nodes[at].note(seq, &outcome, ctx);
        self.nodes[at].due = self.next_renewal(ctx.now.monotonic, ctx);
        let ours = self.held_by_us(&outcome);
        let sends = &self.nodes[at].sends;
        let mut loss = None;
        let counter = match &outcome {
            Outcome::Applied(Applied::Acquired { counter } | Applied::AcquiredInDoubt { counter, .. }) => {
                Some(*counter)
            }
            Outcome::Applied(_) | Outcome::NotApplied(_) | Outcome::Unknown(_) => {
                ours.and_then(|holding| holding.counter)
            }
        };
        let sent = match &outcome {
            Outcome::Applied(Applied::Acquired { .. }) => sends.sent_at(seq),
            Outcome::Applied(Applied::AcquiredInDoubt { stamp, .. }) => {
                ctx.note_vote(id, Some(*stamp));
                loss = Some(*stamp);
                sends.sent_at(seq)
            }
            Outcome::NotApplied(Refusal::Conflict(_)) => ours.and_then(|holding| match holding.seq() {
                Some(took_effect) => sends.sent_at(took_effect),
                None => sends.earliest(),
            }),
            Outcome::NotApplied(Refusal::Abstains { stamp }) => {
                ctx.note_abstention(id, *stamp);
                None
            }
            Outcome::Applied(_) | Outcome::NotApplied(_) | Outcome::Unknown(_) => None,
        };
        let sent = sent.map(|sent| counted(sent, since));
        let shows_ours = ours.is_some();
        if shows_ours {
            ctx.note_vote(id, None);
        }
        let due = sent.map(|sent| self.next_renewal(sent, ctx));
        let node = &mut self.nodes[at];
        if let (Some(sent), Some(due)) = (sent, due) {
            node.sends = Sends::default();
            (node.in_doubt, node.loss) = (loss.is_some(), loss);
            let deadline = deadline_of(sent, ctx.options.ttl, ctx.config.drift());
            let deadline = node.record.deadline().map_or(deadline, |old| old.max(deadline));
            node.record = RecordState::Ours { deadline };
            node.counter = counter;
            node.due = due;
            return self.extend(false, ctx);
        }
        if matches!(outcome, Outcome::NotApplied(_)) {
            node.sends.settle(seq);
        }
        if let Outcome::NotApplied(Refusal::Conflict(seen)) = &outcome
            && seen.holding.as_ref().is_some_and(|holding| holding.released && holding.is_of(&self.nonce))
        {
            node.due = Monotonic::FAR;
        }
        node.record = match node.record {
            // It votes for nobody before that.
            RecordState::Forgotten { deadline } if deadline > ctx.now.monotonic => node.record,
            // Ours, by a send that is no longer remembered, or revoked: it does not count, but has to be released.
            _ if shows_ours => RecordState::Maybe,
            _ if node.sends.is_empty() => RecordState::Absent,
            RecordState::Ours { .. }
            | RecordState::Forgotten { .. }
            | RecordState::Maybe
            | RecordState::Revoked { .. }
            | RecordState::Absent => RecordState::Maybe,
        };
    }

    /// Our record that is in the way of an acquire of ours.
    fn held_by_us<'a>(&self, outcome: &'a Outcome) -> Option<&'a Holding> {
        let Outcome::NotApplied(Refusal::Conflict(seen)) = outcome else { return None };
        seen.held().filter(|holding| holding.is_of(&self.nonce))
    }

    /// Moves the deadline if the nodes allow it.
    fn extend(&mut self, recovered: bool, ctx: &mut Ctx<'_>) {
        let Some(deadline) = self.shared_deadline().filter(|deadline| *deadline > self.deadline) else { return };
        let left = self.deadline.since(ctx.now.monotonic);
        self.deadline = deadline;
        self.warn_at = Some(danger_at(deadline, ctx.options.ttl));
        ctx.event(Event::Renewed { lock: ctx.lock, deadline, left, recovered });
    }

    fn next_renewal(&self, sent: Monotonic, ctx: &Ctx<'_>) -> Monotonic {
        match ctx.options.renew_every {
            Some(every) => renew_at(sent, every, ctx.jitter(Domain::Renewal, self.next_seq, 0)),
            None => Monotonic::FAR,
        }
    }

    fn shared_deadline(&self) -> Option<Monotonic> {
        let deadlines = self.nodes.iter().map(|node| node.record.deadline());
        shared_deadline(deadlines, majority(self.nodes.len()))
    }
}

/// When a node is asked again after failures in a row, of this lease or of any lease of the client. If the other nodes keep
/// the lease for long enough, a node that fails is asked no more often than one that answers.
fn retry_at(node: NodeId, failures: u32, deadline: Monotonic, ctx: &Ctx<'_>) -> Monotonic {
    let breaker = ctx.nodes.get(node.index()).map(|state| state.breaker).unwrap_or_default();
    let from = if breaker.failures() > 0 { breaker.failed_at() } else { ctx.now.monotonic };
    let failures = breaker.failures().max(failures).max(1);
    let jitter = ctx.jitter(Domain::Retry, u32::from(node.get()), failures);
    let is_kept = ctx.config.nodes().len() > 1 && deadline.since(ctx.now.monotonic) > ctx.options.ttl.get() / 2;
    let retry_at = match ctx.options.renew_every {
        Some(every) if is_kept && failures > 1 => renew_at(from, every, jitter),
        Some(_) | None => {
            from.plus(Backoff::of_renewal(ctx.options.ttl, breaker.is_throttled()).steady(failures - 1, jitter))
        }
    };
    retry_in_time(from, retry_at, deadline, ctx.options.ttl)
}

/// Ends the lease without a release: the worker may still be running, and is safe from others until the record has run out.
pub(super) fn lose(reason: LostReason, ctx: &mut Ctx<'_>) -> Machine {
    ctx.event(Event::Lost { lock: ctx.lock, reason });
    Machine::Ended
}
