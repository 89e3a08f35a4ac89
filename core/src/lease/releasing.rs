//! Giving a record back: repeated until the store has answered for certain, or the record has run out by itself.
//!
//! A node that had granted, and answers the first release before its deadline with "not ours", says that somebody broke the
//! lock or deleted its record. Where no majority of the lease is left then, it was lost, and is told as lost. The same
//! answer to a release that was repeated may be due to the release before it, so it only leaves the lease unconfirmed.

use alloc::vec::Vec;

use crate::backoff::Backoff;
use crate::event::{Event, LostReason};
use crate::ids::{NodeId, Nonce, Seq};
use crate::lease::sends::Sends;
use crate::lease::{Ctx, Input, Machine, Row, Step};
use crate::op::{Applied, Op, Outcome, Refusal, Release, Seen};
use crate::prf::Domain;
use crate::quorum::majority;
use crate::time::Monotonic;

/// The sends of an attempt that may create a record after its release.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PendingAcquires {
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
    /// A majority is free, which is all that anybody waits for.
    told: bool,
    /// The evidence of the answers about a lease; `None` for an attempt that was given up.
    proof: Option<Proof>,
    /// Nodes that have not answered for certain.
    legs: Vec<Leg>,
}

/// Evidence that a lease was ours until its release, counted in nodes.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
struct Proof {
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
enum Shown<'a> {
    /// Nobody else had its vote until then.
    Ours,
    /// This stood in the place of our record.
    Taken(&'a Seen),
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Leg {
    node: NodeId,
    in_flight: Option<Seq>,
    /// Sent by the lock before it ended, and perhaps answered yet.
    inherited: Option<Seq>,
    retry_at: Option<Monotonic>,
    /// Whether and when a first "not ours" is asked once more.
    again: Again,
    /// Sends of the attempt that may land yet.
    unsettled: Sends,
    /// A release has found nothing of ours.
    found_nothing: bool,
    /// Until then the node has our record, unless somebody took it away.
    held_until: Option<Monotonic>,
    /// An earlier release may have been carried out.
    repeated: bool,
    /// A release has got no answer for certain.
    failed: bool,
}

/// A send of the attempt may land after the release that should have undone it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Again {
    No,
    /// Once whatever is under way has arrived.
    Later,
    /// It is known to have landed, perhaps behind the release that is under way.
    AtOnce,
}

impl Releasing {
    /// On these nodes. Where an acquire may yet land, "not ours" is asked once more; a renewal creates no record, so
    /// elsewhere one definite answer is enough.
    pub(crate) fn new(
        nonce: Nonce,
        nodes: impl Iterator<Item = (NodeId, PendingAcquires)>,
        next_seq: u32,
        ctx: &Ctx<'_>,
    ) -> Self {
        let retry_at = Some(ctx.now.monotonic);
        let leg = |(node, pending)| {
            let (again, unsettled) = match pending {
                PendingAcquires::Maybe(sends) => (Again::Later, sends),
                PendingAcquires::None => (Again::No, Sends::default()),
            };
            Leg {
                node,
                in_flight: None,
                inherited: None,
                retry_at,
                again,
                unsettled,
                found_nothing: false,
                held_until: None,
                repeated: false,
                failed: false,
            }
        };
        let until = ctx.after(ctx.options.record_ttl());
        let legs = nodes.map(leg).collect();
        Self { nonce, until, next_seq, tries: 0, answered: false, told: false, proof: None, legs }
    }

    /// The same of a lease, whose nodes keep it until these deadlines.
    pub(crate) fn of_lease(mut self, held: impl Iterator<Item = (NodeId, Monotonic)>, now: Monotonic) -> Self {
        for (node, until) in held.filter(|(_, until)| *until > now) {
            if let Some(leg) = self.legs.iter_mut().find(|leg| leg.node == node) {
                leg.held_until = Some(until);
            }
        }
        let held = self.legs.iter().filter(|leg| leg.held_until.is_some()).count();
        self.proof = Some(Proof { held, ..Proof::default() });
        self
    }

    /// From then on others in the local line may try: the definite answer may take as long as the ttl.
    pub(crate) fn was_answered(&self) -> bool {
        self.answered
    }

    pub(crate) fn wake_at(&self) -> Monotonic {
        self.legs.iter().filter_map(|leg| leg.retry_at).fold(self.until, Monotonic::min)
    }

    pub(crate) fn handle(mut self, input: Input<'_>, ctx: &mut Ctx<'_>) -> Step {
        match input {
            Input::Outcome { node, seq, outcome } => {
                match self.legs.iter().position(|leg| leg.node == node && leg.in_flight == Some(seq)) {
                    Some(at) => self.answer(at, &outcome, ctx),
                    None => self.learn(node, seq, &outcome, ctx),
                }
            }
            Input::Late { node, seq, outcome } => {
                match self.legs.iter().position(|leg| leg.node == node && leg.inherited == Some(seq)) {
                    Some(at) => self.answer(at, &outcome, ctx),
                    None => self.learn(node, seq, &outcome, ctx),
                }
            }
            Input::Timeout if ctx.now.monotonic >= self.until => {
                ctx.event(Event::Released { lock: ctx.lock, confirmed: false });
                (Machine::Ended, Some(Row::ReleasingRanOut))
            }
            Input::Timeout => {
                let due = |leg: &Leg| leg.retry_at.is_some_and(|at| ctx.now.monotonic >= at);
                match self.legs.iter().position(due) {
                    Some(at) => {
                        self.ask(at, ctx);
                        (Machine::Releasing(self), Some(Row::ReleasingSent))
                    }
                    None => (Machine::Releasing(self), None),
                }
            }
            Input::Start(_)
            | Input::Turn
            | Input::RenewAlong(_)
            | Input::Wake
            | Input::FreshCredentials(_)
            | Input::Release
            | Input::DeclareLost => (Machine::Releasing(self), None),
        }
    }

    fn ask(&mut self, at: usize, ctx: &mut Ctx<'_>) {
        self.next_seq += 1;
        let seq = Seq::new(self.next_seq);
        let leg = &mut self.legs[at];
        leg.in_flight = Some(seq);
        leg.inherited = None;
        leg.retry_at = None;
        let quorum = ctx.config.quorum().map(|_| ctx.durability(leg.node));
        ctx.send(leg.node, seq, Op::Release(Release { nonce: self.nonce, quorum }));
    }

    /// What became of a send of the attempt.
    fn learn(mut self, node: NodeId, seq: Seq, outcome: &Outcome, ctx: &mut Ctx<'_>) -> Step {
        let Some(at) = self.legs.iter().position(|leg| leg.node == node) else {
            return (Machine::Releasing(self), None);
        };
        let leg = &mut self.legs[at];
        match outcome {
            // The release may have come too early, and nobody has to wait for the record to run out.
            Outcome::Applied(Applied::Acquired { .. } | Applied::AcquiredInDoubt { .. }) => {
                leg.unsettled.settle(seq);
                match leg.in_flight.or(leg.inherited) {
                    Some(_) => leg.again = Again::AtOnce,
                    None => {
                        leg.retry_at = Some(ctx.now.monotonic);
                        // What is asked from now on comes behind all that can land.
                        if leg.unsettled.is_empty() {
                            leg.again = Again::No;
                        }
                    }
                }
                (Machine::Releasing(self), Some(Row::ReleasingLanded))
            }
            Outcome::NotApplied(_) if leg.unsettled.sent_at(seq).is_some() => {
                leg.unsettled.settle(seq);
                if leg.unsettled.is_empty() && leg.again == Again::Later {
                    leg.again = Again::No;
                }
                if leg.unsettled.is_empty() && leg.found_nothing && leg.in_flight.is_none() {
                    self.legs.remove(at);
                }
                self.go_on(ctx)
            }
            Outcome::Applied(_) | Outcome::NotApplied(_) | Outcome::Unknown(_) => (Machine::Releasing(self), None),
        }
    }

    fn answer(mut self, at: usize, outcome: &Outcome, ctx: &mut Ctx<'_>) -> Step {
        self.answered = true;
        let leg = &mut self.legs[at];
        leg.in_flight = None;
        leg.inherited = None;
        let is_quorum = ctx.config.quorum().is_some();
        match outcome {
            Outcome::Applied(Applied::Released) => {
                let leg = self.legs.remove(at);
                self.note(&leg, Shown::Ours);
            }
            Outcome::NotApplied(refusal @ (Refusal::Conflict(_) | Refusal::Abstains { .. }))
                if is_quorum || matches!(refusal, Refusal::Conflict(_)) =>
            {
                leg.found_nothing = true;
                match core::mem::replace(&mut leg.again, Again::No) {
                    Again::Later => leg.retry_at = Some(ctx.after(ctx.request_timeout())),
                    Again::AtOnce => leg.retry_at = Some(ctx.now.monotonic),
                    Again::No => {
                        let leg = self.legs.remove(at);
                        let in_time = leg.held_until.is_some_and(|until| ctx.now.monotonic < until);
                        if let (true, Refusal::Abstains { .. }) = (in_time, refusal) {
                            self.note(&leg, Shown::Ours);
                        }
                        if let (true, Refusal::Conflict(seen)) = (in_time && !leg.repeated, refusal) {
                            self.note(&leg, Shown::Taken(seen));
                        }
                        return self.go_on(ctx);
                    }
                }
                leg.repeated = true;
            }
            Outcome::Applied(_) | Outcome::NotApplied(_) | Outcome::Unknown(_) => {
                let jitter = ctx.jitter(Domain::Retry, self.next_seq, self.tries);
                let backoff = Backoff::of_release(ctx.options.record_ttl());
                leg.repeated |= !matches!(outcome, Outcome::NotApplied(_));
                leg.failed = true;
                leg.retry_at = Some(ctx.after(backoff.sleep(self.tries, jitter)));
                self.tries = self.tries.saturating_add(1);
            }
        }
        self.go_on(ctx)
    }

    /// Counts what a node of the lease has shown for certain.
    fn note(&mut self, leg: &Leg, shown: Shown<'_>) {
        let Some(proof) = self.proof.as_mut().filter(|_| leg.held_until.is_some()) else { return };
        match shown {
            Shown::Ours => proof.kept += 1,
            Shown::Taken(seen) => {
                proof.taken += 1;
                proof.reason = Some(LostReason::by_what_stands(seen.clone()));
            }
        }
    }

    /// As long as anything is open, or until others can have the lock.
    fn go_on(mut self, ctx: &mut Ctx<'_>) -> Step {
        let row = match self.end(ctx) {
            Some(row) if self.told => row,
            Some(Row::ReleasingTaken) => {
                let reason = self.proof.take().and_then(|proof| proof.reason).unwrap_or(LostReason::RecordGone);
                ctx.event(Event::Lost { lock: ctx.lock, reason });
                Row::ReleasingTaken
            }
            Some(row) => {
                ctx.event(Event::Released { lock: ctx.lock, confirmed: row == Row::ReleasingConfirmed });
                row
            }
            None => return (Machine::Releasing(self), Some(Row::ReleasingOpen)),
        };
        if !self.legs.is_empty() {
            ctx.out.orphan = Some(self.in_background(ctx));
        }
        (Machine::Ended, Some(row))
    }

    /// By which row the release ends, if it does.
    fn end(&self, ctx: &Ctx<'_>) -> Option<Row> {
        let nodes = ctx.config.nodes().len();
        if self.told {
            return self.legs.is_empty().then_some(Row::ReleasingConfirmed);
        }
        let free = self.legs.len() <= nodes - majority(nodes);
        let Some(proof) = &self.proof else { return free.then_some(Row::ReleasingConfirmed) };
        if proof.taken > 0 && proof.held - proof.taken < majority(nodes) {
            Some(Row::ReleasingTaken)
        } else if free && proof.kept >= majority(nodes) {
            Some(Row::ReleasingConfirmed)
        } else if free && self.legs.iter().all(|leg| leg.held_until.is_none() || leg.failed && proof.taken == 0) {
            Some(Row::ReleasingUnconfirmed)
        } else {
            None
        }
    }

    /// What is left once a majority is free: rivals can have the lock, so nobody waits for the rest. What is under way is
    /// asked again if no answer comes, since a send that has not left yet ends with its lock.
    fn in_background(mut self, ctx: &Ctx<'_>) -> Self {
        for leg in self.legs.iter_mut().filter(|leg| leg.in_flight.is_some()) {
            leg.inherited = leg.in_flight.take();
            leg.retry_at = Some(ctx.after(ctx.request_timeout()));
        }
        self
    }

    /// As long as anything is left, whoever else is free.
    pub(crate) fn for_nobody(self) -> Self {
        Self { told: true, ..self }
    }
}
