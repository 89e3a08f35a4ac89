//! A lease: believed in until its deadline, renewed node by node, lost by the clock alone.

use alloc::vec::Vec;

use crate::backoff::Pace;
use crate::client::{Event, LostReason};
use crate::ids::{NodeId, Nonce, Seq, Token};
use crate::lease::acquiring::Leg as AcquiringLeg;
use crate::lease::releasing::MayLand;
use crate::lease::sends::Sends;
use crate::lease::{Ctx, Input, Machine, Releasing, Row, Step};
use crate::op::{Applied, Fault, FaultKind, Op, Outcome, Refusal, Renew, Seen};
use crate::prf::Domain;
use crate::quorum::{majority, shared_deadline};
use crate::time::{Monotonic, batch_window, danger_at, deadline_of, renew_at, retry_cap};

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
    /// Renewals in a row without success.
    failures: u32,
    legs: Vec<Leg>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Leg {
    node: NodeId,
    in_flight: Option<(Seq, Asked)>,
    sends: Sends,
    standing: Standing,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Asked {
    /// By the attempt, which was decided before this node answered.
    Acquire,
    Renew,
}

/// What a node is known to hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Standing {
    /// Our record until the deadline.
    Ours { deadline: Monotonic, renew_at: Monotonic },
    /// Nothing certain: a send of ours may have landed.
    Perhaps,
    /// Not our record.
    Not,
}

/// The rows that both states have, under their own names.
struct Rows {
    renewed: Row,
    capped: Row,
    joined: Row,
    expiring: Row,
    lost: Row,
    released: Row,
}

impl Held {
    pub(crate) fn handle(self, input: Input<'_>, ctx: &mut Ctx<'_>) -> Step {
        const ROWS: Rows = Rows {
            renewed: Row::HeldRenewed,
            capped: Row::HeldCapped,
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
            capped: Row::RenewingCapped,
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
            failures: 0,
            legs: Vec::with_capacity(legs.len()),
        };
        for leg in legs {
            let standing = match leg.deadline {
                Some(deadline) => Standing::Ours {
                    deadline,
                    renew_at: grant.next_renewal(leg.confirmed.unwrap_or(ctx.now.monotonic), ctx),
                },
                None if leg.may_hold() => Standing::Perhaps,
                None => Standing::Not,
            };
            let sends = if leg.deadline.is_some() { Sends::default() } else { leg.sends };
            let in_flight = leg.in_flight.filter(|_| leg.deadline.is_none()).map(|seq| (seq, Asked::Acquire));
            grant.legs.push(Leg { node: leg.node, in_flight, sends, standing });
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
        let renewals = self.legs.iter().filter_map(|leg| match (leg.standing, leg.in_flight) {
            (Standing::Ours { renew_at, .. }, None) => Some(renew_at),
            _ => None,
        });
        renewals.chain(self.warn_at).fold(self.deadline, Monotonic::min)
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
            Input::RenewAlong => self.renew(ctx.after(batch_window(ctx.options.ttl)), rows, ctx),
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
                    None => (self.into_machine(), None),
                }
            }
            Input::DeclareLost => (lose(LostReason::Expired, ctx), Some(rows.lost)),
            Input::Release => {
                let nodes = self.legs.iter().filter_map(|leg| match leg.standing {
                    Standing::Ours { .. } => Some((leg.node, MayLand::No)),
                    Standing::Perhaps => Some((leg.node, MayLand::Yes)),
                    Standing::Not => None,
                });
                (Machine::Releasing(Releasing::new(self.nonce, nodes, self.next_seq, ctx)), Some(rows.released))
            }
            Input::Start(_) | Input::Turn | Input::Wake | Input::FreshCredentials(_) => (self.into_machine(), None),
        }
    }

    fn into_machine(self) -> Machine {
        if self.legs.iter().any(|leg| matches!(leg.in_flight, Some((_, Asked::Renew)))) {
            Machine::Renewing(Renewing(self))
        } else {
            Machine::Held(Held(self))
        }
    }

    /// Renews on every node whose time comes up to `until`.
    fn renew(mut self, until: Monotonic, rows: &Rows, ctx: &mut Ctx<'_>) -> Step {
        let capped = ctx.now.monotonic >= self.renew_until;
        let mut any = false;
        for leg in &mut self.legs {
            let Standing::Ours { renew_at, .. } = &mut leg.standing else { continue };
            if leg.in_flight.is_some() || *renew_at > until {
                continue;
            }
            any = true;
            if capped {
                *renew_at = Monotonic::FAR;
                continue;
            }
            self.next_seq += 1;
            let seq = Seq::new(self.next_seq);
            leg.in_flight = Some((seq, Asked::Renew));
            leg.sends.push(seq, ctx.now.monotonic);
            let record_ttl = ctx.options.record_ttl();
            ctx.send(leg.node, seq, Op::Renew(Renew { nonce: self.nonce, seq, record_ttl }));
        }
        (self.into_machine(), any.then_some(if capped { rows.capped } else { rows.renewed }))
    }

    fn renewed(mut self, at: usize, seq: Seq, outcome: Outcome, ctx: &mut Ctx<'_>) -> Step {
        self.legs[at].in_flight = None;
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
                let fault = match refusal {
                    Refusal::Throttled(fault) | Refusal::Unavailable(fault) | Refusal::NeedsCredentials(fault) => fault,
                    Refusal::Denied(denial) => Fault::new(FaultKind::Server, &denial.detail),
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
        self.failures = 0;
        let renew_at = self.next_renewal(sent, ctx);
        let leg = &mut self.legs[at];
        leg.sends.settle_through(seq);
        let Standing::Ours { deadline, .. } = leg.standing else { return (self.into_machine(), None) };
        let deadline = deadline.max(deadline_of(sent, ctx.options.ttl, ctx.config.drift()));
        leg.standing = Standing::Ours { deadline, renew_at };
        self.extend(recovered, ctx);
        let row = if recovered { Row::RenewingRecovered } else { Row::RenewingConfirmed };
        (self.into_machine(), Some(row))
    }

    /// The deadline does not move; another try follows while there is time.
    fn delayed(mut self, at: usize, fault: Fault, ctx: &mut Ctx<'_>) -> Step {
        let pace = if fault.kind == FaultKind::Busy { Pace::THROTTLED } else { Pace::NORMAL };
        let sleep = pace.sleep(self.failures, ctx.jitter(Domain::Retry, self.next_seq, self.failures));
        let again = ctx.after(sleep.min(retry_cap(ctx.options.ttl)));
        self.failures = self.failures.saturating_add(1);
        if let Standing::Ours { renew_at, .. } = &mut self.legs[at].standing {
            *renew_at = again;
        }
        ctx.event(Event::RenewDelayed { lock: ctx.lock, deadline: self.deadline, fault });
        (self.into_machine(), Some(Row::RenewingDelayed))
    }

    fn not_ours(mut self, at: usize, seen: Seen, ctx: &mut Ctx<'_>) -> Step {
        let node = self.legs[at].node;
        let restarted = ctx.nodes.get(node.index()).is_some_and(|node| node.is_in_doubt(ctx.now.monotonic));
        if seen.holding.is_none() && restarted && self.legs.len() > 1 {
            // It forgot everything, and so abstains: no rival gets its vote before our deadline there.
            return self.delayed(at, Fault::new(FaultKind::Server, "the node restarted without its data"), ctx);
        }
        self.legs[at].standing = Standing::Not;
        self.legs[at].sends = Sends::default();
        let Some(deadline) = self.shared_deadline() else {
            let reason = match seen.holding {
                Some(holding) if !holding.released => LostReason::TakenOver { by: Some(holding) },
                Some(_) => LostReason::Released,
                None => LostReason::RecordGone,
            };
            return (lose(reason, ctx), Some(Row::RenewingTaken));
        };
        if deadline < self.deadline {
            self.deadline = deadline;
            self.warn_at = self.warn_at.map(|_| danger_at(deadline, ctx.options.ttl));
            ctx.event(Event::Shortened { lock: ctx.lock, deadline });
        }
        (self.into_machine(), Some(Row::RenewingShrunk))
    }

    /// A node that answered after the majority was reached.
    fn joined(&mut self, at: usize, seq: Seq, outcome: Outcome, ctx: &mut Ctx<'_>) {
        let leg = &mut self.legs[at];
        leg.in_flight = None;
        let sent = match &outcome {
            Outcome::Applied(Applied::Acquired { .. }) => leg.sends.sent_at(seq),
            Outcome::NotApplied(Refusal::Conflict(seen)) => {
                seen.held().filter(|holding| holding.is_of(&self.nonce)).and_then(|holding| match holding.seq() {
                    Some(took_effect) => leg.sends.sent_at(took_effect),
                    None => leg.sends.earliest(),
                })
            }
            Outcome::Applied(_) | Outcome::NotApplied(_) | Outcome::Unknown(_) => None,
        };
        if let Some(sent) = sent {
            leg.sends = Sends::default();
            let deadline = deadline_of(sent, ctx.options.ttl, ctx.config.drift());
            let renew_at = self.next_renewal(sent, ctx);
            self.legs[at].standing = Standing::Ours { deadline, renew_at };
            self.extend(false, ctx);
            return;
        }
        if matches!(outcome, Outcome::NotApplied(_)) {
            leg.sends.settle(seq);
        }
        leg.standing = if leg.sends.is_empty() { Standing::Not } else { Standing::Perhaps };
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
        let deadlines = self.legs.iter().map(|leg| match leg.standing {
            Standing::Ours { deadline, .. } => Some(deadline),
            Standing::Perhaps | Standing::Not => None,
        });
        shared_deadline(deadlines, majority(self.legs.len()))
    }
}

/// The record is not released: the worker may still be running, and is safe from others until it has run out.
fn lose(reason: LostReason, ctx: &mut Ctx<'_>) -> Machine {
    ctx.event(Event::Lost { lock: ctx.lock, reason });
    Machine::Ended
}
