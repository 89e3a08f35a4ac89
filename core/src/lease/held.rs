//! A lease: believed in until its deadline, renewed node by node, lost by the clock alone.

use alloc::boxed::Box;
use alloc::vec::Vec;

use crate::backoff::Backoff;
use crate::event::{Event, LostReason};
use crate::ids::{NodeId, Nonce, Seq, Token};
use crate::lease::acquiring::Leg as AcquiringLeg;
use crate::lease::node_state::losses_over;
use crate::lease::releasing::PendingAcquires;
use crate::lease::sends::Sends;
use crate::lease::{Ctx, Input, Machine, Releasing, Row, Step};
use crate::member::LossId;
use crate::op::{Acquire, Applied, Fault, FaultKind, Op, Outcome, Raise, Refusal, Renew, Seen};
use crate::prf::Domain;
use crate::quorum::{majority, shared_deadline};
use crate::time::{Monotonic, danger_at, deadline_of, renew_at};

/// Held, and nothing in flight.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Held(pub(crate) Grant);

/// Held, and at least one renewal in flight.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Renewing(pub(crate) Grant);

/// What both states are about.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Grant {
    nonce: Nonce,
    token: Token,
    /// The q-th largest of the nodes' deadlines.
    deadline: Monotonic,
    /// When to warn the holder; cleared once that was done, set again by a renewal.
    warn_at: Option<Monotonic>,
    /// No automatic renewal is due from here on.
    renew_until: Monotonic,
    next_seq: u32,
    legs: Vec<Leg>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Leg {
    node: NodeId,
    in_flight: Option<(Seq, Asked)>,
    sends: Sends,
    record: RecordState,
    /// When to renew, or to repair.
    due: Monotonic,
    /// Renewals in a row without success.
    failures: u32,
    /// It has our record, but may have forgotten tokens. As long as the lease stands nobody can have a higher one, so
    /// lifting its counter to ours makes up for all that it forgot of this resource.
    in_doubt: bool,
    /// Since which loss.
    loss: Option<LossId>,
}

impl Leg {
    fn due(&self) -> Monotonic {
        if self.is_to_be_raised() { Monotonic::default() } else { self.due }
    }

    /// Lets a request to the node leave now, or answers when.
    fn admit(&self, retry_at: Monotonic, ctx: &mut Ctx<'_>) -> Result<(), Monotonic> {
        let until = ctx.after(ctx.request_timeout());
        // Only renewals share a request.
        let batch = match self.record {
            RecordState::Ours { .. } => ctx.config.nodes().get(self.node.index()).map_or(1, |node| node.batch),
            RecordState::Forgotten { .. } | RecordState::Maybe | RecordState::Absent => 1,
        };
        let now = ctx.now.monotonic;
        ctx.nodes.get_mut(self.node.index()).map_or(Ok(()), |node| node.breaker.admit(now, retry_at, until, batch))
    }

    /// Notes whether the node serves.
    fn note(&self, seq: Seq, outcome: &Outcome, ctx: &mut Ctx<'_>) {
        let now = ctx.now.monotonic;
        let Some(node) = ctx.nodes.get_mut(self.node.index()) else { return };
        let throttled = matches!(outcome, Outcome::NotApplied(Refusal::Throttled(_)));
        match outcome {
            Outcome::Unknown(_)
            | Outcome::NotApplied(Refusal::Throttled(_) | Refusal::Unavailable(_) | Refusal::NeedsCredentials(_)) => {
                node.breaker.failed(self.sends.sent_at(seq).unwrap_or(now), now, throttled);
            }
            Outcome::Applied(_)
            | Outcome::NotApplied(Refusal::Conflict(_) | Refusal::Abstains { .. } | Refusal::Denied(_)) => {
                node.breaker.served();
            }
        }
    }

    fn is_to_be_raised(&self) -> bool {
        self.in_doubt && matches!(self.record, RecordState::Ours { .. })
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Asked {
    /// By the attempt, which was decided before this node answered, or to repair the majority.
    Acquire,
    Renew,
    Raise,
}

/// What a node is known to hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum RecordState {
    /// Our record until the deadline.
    Ours { deadline: Monotonic },
    /// It has forgotten our record, but also that anybody may have the lock: nobody gets its vote before the deadline.
    Forgotten { deadline: Monotonic },
    /// Nothing certain: a send of ours may have landed.
    Maybe,
    /// No record of ours.
    Absent,
}

impl RecordState {
    fn deadline(self) -> Option<Monotonic> {
        match self {
            Self::Ours { deadline } | Self::Forgotten { deadline } => Some(deadline),
            Self::Maybe | Self::Absent => None,
        }
    }
}

/// The rows that both states have, under their own names.
struct Rows {
    renewed: Row,
    repaired: Row,
    capped: Row,
    postponed: Row,
    joined: Row,
    expiring: Row,
    lost: Row,
    released: Row,
}

impl Held {
    pub(crate) fn handle(self, input: Input<'_>, ctx: &mut Ctx<'_>) -> Step {
        const ROWS: Rows = Rows {
            renewed: Row::HeldRenewed,
            repaired: Row::HeldRepaired,
            capped: Row::HeldCapped,
            postponed: Row::HeldPostponed,
            joined: Row::HeldJoined,
            expiring: Row::HeldExpiring,
            lost: Row::HeldLost,
            released: Row::HeldReleased,
        };
        self.0.handle(input, &ROWS, ctx)
    }
}

impl Renewing {
    pub(crate) fn handle(self, input: Input<'_>, ctx: &mut Ctx<'_>) -> Step {
        const ROWS: Rows = Rows {
            renewed: Row::RenewingAnother,
            repaired: Row::RenewingRepaired,
            capped: Row::RenewingCapped,
            postponed: Row::RenewingPostponed,
            joined: Row::RenewingJoined,
            expiring: Row::RenewingExpiring,
            lost: Row::RenewingLost,
            released: Row::RenewingReleased,
        };
        self.0.handle(input, &ROWS, ctx)
    }
}

impl Grant {
    pub(crate) fn new(
        nonce: Nonce,
        token: Token,
        deadline: Monotonic,
        next_seq: u32,
        legs: Vec<AcquiringLeg>,
        ctx: &Ctx<'_>,
    ) -> Self {
        let mut grant = Self {
            nonce,
            token,
            deadline,
            warn_at: Some(danger_at(deadline, ctx.options.ttl)),
            renew_until: ctx.options.max_hold.map_or(Monotonic::FAR, |max_hold| ctx.after(max_hold)),
            next_seq,
            legs: Vec::with_capacity(legs.len()),
        };
        for leg in legs {
            let due = grant.next_renewal(leg.confirmed.unwrap_or(ctx.now.monotonic), ctx);
            let record = match leg.deadline {
                Some(deadline) => RecordState::Ours { deadline },
                None if leg.may_hold() => RecordState::Maybe,
                None => RecordState::Absent,
            };
            let sends = if leg.deadline.is_some() { Sends::default() } else { leg.sends };
            let in_flight = leg.in_flight.filter(|_| leg.deadline.is_none()).map(|seq| (seq, Asked::Acquire));
            let (in_doubt, loss) = (leg.loss.is_some() && leg.deadline.is_some(), leg.loss);
            grant.legs.push(Leg { node: leg.node, in_flight, sends, record, due, failures: 0, in_doubt, loss });
        }
        grant
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
        let due = self.legs.iter().filter(|leg| leg.in_flight.is_none()).map(Leg::due);
        due.chain(self.warn_at).fold(self.deadline, Monotonic::min)
    }

    fn handle(mut self, input: Input<'_>, rows: &Rows, ctx: &mut Ctx<'_>) -> Step {
        let now = ctx.now.monotonic;
        match input {
            Input::Timeout if now >= self.deadline => {
                let reason = if now >= self.renew_until { LostReason::MaxHold } else { LostReason::Expired };
                (lose(reason, ctx), Some(rows.lost))
            }
            Input::Timeout if self.warn_at.is_some_and(|at| now >= at) => {
                self.warn_at = None;
                ctx.event(Event::Expiring { lock: ctx.lock, deadline: self.deadline });
                (self.into_machine(), Some(rows.expiring))
            }
            Input::Timeout => self.renew(now, rows, ctx),
            Input::RenewAlong(until) => self.renew(until, rows, ctx),
            Input::Outcome { node, seq, outcome } => {
                let asked = self.legs.iter().enumerate().find_map(|(at, leg)| match leg.in_flight {
                    Some((open, asked)) if leg.node == node && open == seq => Some((at, asked)),
                    Some(_) | None => None,
                });
                match asked {
                    Some((at, Asked::Renew)) => self.renewed(at, seq, outcome, ctx),
                    Some((at, Asked::Acquire)) => {
                        self.joined(at, seq, outcome, ctx);
                        (self.into_machine(), Some(rows.joined))
                    }
                    Some((at, Asked::Raise)) => {
                        // Whoever cannot be raised stays in doubt, and is raised by the next holder.
                        self.legs[at].in_flight = None;
                        (self.into_machine(), Some(rows.joined))
                    }
                    None => (self.into_machine(), None),
                }
            }
            Input::DeclareLost => (lose(LostReason::Expired, ctx), Some(rows.lost)),
            Input::Release => {
                let nodes = self.legs.iter().filter_map(|leg| match leg.record {
                    RecordState::Ours { .. } => Some((leg.node, PendingAcquires::None)),
                    RecordState::Forgotten { .. } | RecordState::Maybe => {
                        Some((leg.node, PendingAcquires::Maybe(leg.sends.clone())))
                    }
                    RecordState::Absent => None,
                });
                let releasing = Releasing::new(self.nonce, nodes, self.next_seq, ctx);
                let held = self.legs.iter().filter_map(|leg| Some((leg.node, leg.record.deadline()?)));
                (Machine::Releasing(releasing.of_lease(held, now)), Some(rows.released))
            }
            Input::Start(_) | Input::Turn | Input::Late { .. } | Input::Wake | Input::FreshCredentials(_) => {
                (self.into_machine(), None)
            }
        }
    }

    fn into_machine(self) -> Machine {
        if self.legs.iter().any(|leg| matches!(leg.in_flight, Some((_, Asked::Renew)))) {
            Machine::Renewing(Renewing(self))
        } else {
            Machine::Held(Held(self))
        }
    }

    /// Renews on every node whose time comes up to `until`, and asks those for their vote that have no record of ours, so
    /// that the majority outlives nodes that restart one after the other.
    fn renew(mut self, until: Monotonic, rows: &Rows, ctx: &mut Ctx<'_>) -> Step {
        let capped = ctx.now.monotonic >= self.renew_until;
        let over = losses_over(ctx.nodes, ctx.now.monotonic, ctx.config);
        let mut row = None;
        for (leg, loss) in self.legs.iter_mut().zip(over) {
            if leg.in_flight.is_some() || leg.due() > until {
                continue;
            }
            if leg.is_to_be_raised() {
                self.next_seq += 1;
                let seq = Seq::new(self.next_seq);
                leg.in_doubt = false;
                leg.in_flight = Some((seq, Asked::Raise));
                row = row.or(Some(rows.repaired));
                ctx.send(leg.node, seq, Op::Raise(Raise { nonce: self.nonce, token: self.token, loss: leg.loss }));
                continue;
            }
            if capped {
                leg.due = Monotonic::FAR;
                row = row.or(Some(rows.capped));
                continue;
            }
            let retry_at = retry_at(leg.node, leg.failures, self.deadline, ctx);
            if let Err(at) = leg.admit(retry_at, ctx) {
                if leg.due <= ctx.now.monotonic {
                    leg.due = at;
                    row = row.or(Some(rows.postponed));
                }
                continue;
            }
            self.next_seq += 1;
            let seq = Seq::new(self.next_seq);
            leg.sends.push(seq, ctx.now.monotonic);
            if let RecordState::Ours { .. } = leg.record {
                row = Some(rows.renewed);
                leg.in_flight = Some((seq, Asked::Renew));
                let quorum = ctx.config.quorum().map(|_| ctx.durability(leg.node));
                let renew = Renew { nonce: self.nonce, seq, record_ttl: ctx.options.record_ttl(), quorum };
                ctx.send(leg.node, seq, Op::Renew(renew));
            } else {
                row = row.or(Some(rows.repaired));
                leg.in_flight = Some((seq, Asked::Acquire));
                if leg.record == RecordState::Absent {
                    leg.record = RecordState::Maybe;
                }
                let acquire = Acquire {
                    nonce: self.nonce,
                    seq,
                    record_ttl: ctx.options.record_ttl(),
                    // A node that votes for this lease must not mint less than its token to the next one.
                    floor: self.token,
                    expect: ctx.observations.ran_out(leg.node, ctx.resource, ctx.now.monotonic),
                    owner: ctx.options.owner.clone(),
                    data: ctx.options.data.clone(),
                    member: ctx.membership(leg.node, &self.nonce, seq, loss),
                };
                ctx.send(leg.node, seq, Op::Acquire(Box::new(acquire)));
            }
        }
        (self.into_machine(), row)
    }

    fn renewed(mut self, at: usize, seq: Seq, outcome: Outcome, ctx: &mut Ctx<'_>) -> Step {
        self.legs[at].in_flight = None;
        self.legs[at].note(seq, &outcome, ctx);
        match outcome {
            Outcome::Applied(Applied::Renewed) => match self.legs[at].sends.sent_at(seq) {
                Some(sent) => self.confirmed(at, seq, sent, false, ctx),
                None => self.delayed(at, Fault::of(FaultKind::Protocol), ctx),
            },
            Outcome::NotApplied(Refusal::Conflict(seen)) => match &seen.holding {
                Some(holding) if holding.is_of(&self.nonce) && !holding.released => {
                    let took_effect = holding.seq().and_then(|seq| Some((seq, self.legs[at].sends.sent_at(seq)?)));
                    match took_effect {
                        Some((seq, sent)) => self.confirmed(at, seq, sent, true, ctx),
                        None => {
                            let fault = Fault::new(FaultKind::Protocol, "our record shows a send we never made");
                            self.delayed(at, fault, ctx)
                        }
                    }
                }
                _ => self.not_ours(at, seen, ctx),
            },
            Outcome::NotApplied(refusal) => {
                self.legs[at].sends.settle(seq);
                // Without a quorum there is nobody to say so; whoever does may still have the record.
                let has_forgotten = matches!(refusal, Refusal::Abstains { .. }) && ctx.config.quorum().is_some();
                if let (true, RecordState::Ours { deadline }) = (has_forgotten, self.legs[at].record) {
                    self.legs[at].record = RecordState::Forgotten { deadline };
                }
                let fault = match refusal {
                    Refusal::Throttled(fault) | Refusal::Unavailable(fault) | Refusal::NeedsCredentials(fault) => fault,
                    Refusal::Denied(denial) => Fault::new(FaultKind::Server, &denial.detail),
                    Refusal::Abstains { .. } if has_forgotten => {
                        Fault::new(FaultKind::Server, "the node has lost its data")
                    }
                    Refusal::Abstains { .. } | Refusal::Conflict(_) => Fault::of(FaultKind::Busy),
                };
                self.delayed(at, fault, ctx)
            }
            Outcome::Unknown(fault) => self.delayed(at, fault, ctx),
            Outcome::Applied(_) => {
                self.delayed(at, Fault::new(FaultKind::Protocol, "the answer fits another operation"), ctx)
            }
        }
    }

    fn confirmed(mut self, at: usize, seq: Seq, sent: Monotonic, recovered: bool, ctx: &mut Ctx<'_>) -> Step {
        let due = self.next_renewal(sent, ctx);
        let leg = &mut self.legs[at];
        leg.failures = 0;
        leg.sends.settle_through(seq);
        let RecordState::Ours { deadline } = leg.record else { return (self.into_machine(), None) };
        let deadline = deadline.max(deadline_of(sent, ctx.options.ttl, ctx.config.drift()));
        leg.record = RecordState::Ours { deadline };
        leg.due = due;
        self.extend(recovered, ctx);
        let row = if recovered { Row::RenewingRecovered } else { Row::RenewingConfirmed };
        (self.into_machine(), Some(row))
    }

    /// The deadline does not move; another try follows while there is time.
    fn delayed(mut self, at: usize, fault: Fault, ctx: &mut Ctx<'_>) -> Step {
        let leg = &mut self.legs[at];
        leg.failures = leg.failures.saturating_add(1);
        leg.due = retry_at(leg.node, leg.failures, self.deadline, ctx);
        ctx.event(Event::RenewDelayed { lock: ctx.lock, deadline: self.deadline, fault });
        (self.into_machine(), Some(Row::RenewingDelayed))
    }

    fn not_ours(mut self, at: usize, seen: Seen, ctx: &mut Ctx<'_>) -> Step {
        // A record that should still be there was taken away on purpose, which asking again would undo.
        let broken = self.legs[at].record.deadline().is_some_and(|deadline| ctx.now.monotonic < deadline);
        self.legs[at].due = if broken { Monotonic::FAR } else { self.next_renewal(ctx.now.monotonic, ctx) };
        self.legs[at].record = RecordState::Absent;
        self.legs[at].sends = Sends::default();
        let Some(deadline) = self.shared_deadline() else {
            return (lose(LostReason::by_what_stands(seen), ctx), Some(Row::RenewingTaken));
        };
        if deadline < self.deadline {
            self.deadline = deadline;
            self.warn_at = self.warn_at.map(|_| danger_at(deadline, ctx.options.ttl));
            ctx.event(Event::Shortened { lock: ctx.lock, deadline });
        }
        (self.into_machine(), Some(Row::RenewingShrunk))
    }

    /// What a node said to an acquire after the majority was reached.
    fn joined(&mut self, at: usize, seq: Seq, outcome: Outcome, ctx: &mut Ctx<'_>) {
        let node = self.legs[at].node;
        self.legs[at].in_flight = None;
        self.legs[at].note(seq, &outcome, ctx);
        self.legs[at].due = self.next_renewal(ctx.now.monotonic, ctx);
        let sends = &self.legs[at].sends;
        let mut loss = None;
        let sent = match &outcome {
            Outcome::Applied(Applied::Acquired { .. }) => sends.sent_at(seq),
            Outcome::Applied(Applied::AcquiredInDoubt { stamp, .. }) => {
                ctx.votes(node, Some(*stamp));
                loss = Some(*stamp);
                sends.sent_at(seq)
            }
            Outcome::NotApplied(Refusal::Conflict(seen)) => {
                seen.held().filter(|holding| holding.is_of(&self.nonce)).and_then(|holding| match holding.seq() {
                    Some(took_effect) => sends.sent_at(took_effect),
                    None => sends.earliest(),
                })
            }
            Outcome::NotApplied(Refusal::Abstains { stamp }) => {
                ctx.abstains(node, *stamp);
                None
            }
            Outcome::Applied(_) | Outcome::NotApplied(_) | Outcome::Unknown(_) => None,
        };
        let shows_ours = matches!(&outcome, Outcome::NotApplied(Refusal::Conflict(seen))
            if seen.held().is_some_and(|holding| holding.is_of(&self.nonce)));
        if shows_ours {
            ctx.votes(node, None);
        }
        let due = sent.map(|sent| self.next_renewal(sent, ctx));
        let leg = &mut self.legs[at];
        if let (Some(sent), Some(due)) = (sent, due) {
            leg.sends = Sends::default();
            (leg.in_doubt, leg.loss) = (loss.is_some(), loss);
            let deadline = deadline_of(sent, ctx.options.ttl, ctx.config.drift());
            leg.record =
                RecordState::Ours { deadline: leg.record.deadline().map_or(deadline, |old| old.max(deadline)) };
            leg.due = due;
            return self.extend(false, ctx);
        }
        if matches!(outcome, Outcome::NotApplied(_)) {
            leg.sends.settle(seq);
        }
        if let Outcome::NotApplied(Refusal::Conflict(seen)) = &outcome
            && seen.holding.as_ref().is_some_and(|holding| holding.released && holding.is_of(&self.nonce))
        {
            leg.due = Monotonic::FAR;
        }
        leg.record = match leg.record {
            // Nobody else gets the node's vote before that.
            RecordState::Forgotten { deadline } if deadline > ctx.now.monotonic => leg.record,
            // Ours, by a send that is not known any more: it does not count, but is to be released.
            _ if shows_ours => RecordState::Maybe,
            _ if leg.sends.is_empty() => RecordState::Absent,
            RecordState::Ours { .. } | RecordState::Forgotten { .. } | RecordState::Maybe | RecordState::Absent => {
                RecordState::Maybe
            }
        };
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
        let deadlines = self.legs.iter().map(|leg| leg.record.deadline());
        shared_deadline(deadlines, majority(self.legs.len()))
    }
}

/// When a node is asked again after failures in a row: of this lease there, or of any lease of the client. Where the other
/// nodes keep the lease for long enough, it is asked no more often than if it answered.
fn retry_at(node: NodeId, failures: u32, deadline: Monotonic, ctx: &Ctx<'_>) -> Monotonic {
    let breaker = ctx.nodes.get(node.index()).map(|state| state.breaker).unwrap_or_default();
    let from = if breaker.failures() > 0 { breaker.failed_at() } else { ctx.now.monotonic };
    let failures = breaker.failures().max(failures).max(1);
    let jitter = ctx.jitter(Domain::Retry, u32::from(node.get()), failures);
    let is_kept = ctx.config.nodes().len() > 1 && deadline.since(ctx.now.monotonic) > ctx.options.ttl.get() / 2;
    match ctx.options.renew_every {
        Some(every) if is_kept && failures > 1 => renew_at(from, every, jitter),
        Some(_) | None => {
            from.plus(Backoff::of_renewal(ctx.options.ttl, breaker.is_throttled()).steady(failures - 1, jitter))
        }
    }
}

/// The record is not released: the worker may still be running, and is safe from others until it has run out.
pub(super) fn lose(reason: LostReason, ctx: &mut Ctx<'_>) -> Machine {
    ctx.event(Event::Lost { lock: ctx.lock, reason });
    Machine::Ended
}
