//! One heartbeat for many locks, where a renewal is a paid write: the layer between the machines and the stores whose records
//! only observers can declare dead.
//!
//! All locks of a client belong to one **session** on each such node. The session is an ordinary record of a resource of its
//! own, `session:LABEL`. The row of a lock names it by its nonce, and is worth as much as the session: the client renews the
//! session alone, and a rival has to **bury** it before it takes a row.
//!
//! | operation of a machine | becomes |
//! |---|---|
//! | acquire | the session is started, or renewed if it is old; then the row is written, and names the session |
//! | the same, of a record that was observed for its time | before that, the rival's session is buried: an acquire of its record on the observed version, and a release |
//! | renew | nothing, if the session was renewed a moment ago; else the renewal of the session, which serves all |
//! | read | a read |
//! | release, finish | the same |
//!
//! Where a row names a session, the session's record is read too (`rival.rs`). If the session lives, the machine sees both
//! versions as one, and the session's ttl, so that it observes the two together. If it is over, its rows are free, each on
//! its own unchanged version.
//!
//! It is sound because:
//!
//! - A lock is valid from the send of the last *confirmed renewal of its session* on, or from later, never from its own send
//!   alone: the answers carry that instant.
//! - The session stands before a row names it, so a rival that reads the row first and the session then, and does not find it,
//!   knows that it is over. A delayed write of a row names a session that is over, and is nobody's.
//! - A burial is conditional on the version that stood still. A late renewal of a buried session is refused.
//! - Someone else who changes a row (break, revoke) has the session's record count a tell afterwards ([`tell`]), which moves
//!   neither its version nor its expiry. The next renewal shows another number, and every row is read once before it counts on.
//! - A session that its node has forgotten, or that was revoked, is never renewed again, and a new one has another nonce.
//! - A row that nobody here believes in any more does not run out while the session lives, so it is released.
//! - For those who know of no sessions, and as a last resort, a row is an observed record with a long ttl of its own
//!   ([`row_ttl`]): it is written again every third of that, and a deadline is never later than that of the row.

mod own;
mod rival;
mod rows;
mod work;

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::time::Duration;

use crate::config::Drift;
use crate::ids::{LockId, NodeId, Nonce, Resource, Seq, SessionLabel};
use crate::observe::Observations;
use crate::op::{
    Acquire, Applied, Fault, FaultKind, Holder, Holding, Op, Outcome, Refusal, Release, Renew, Seen, Session,
};
use crate::prf::Seed;
use crate::time::{
    Format, Monotonic, heartbeat_grants_until, heartbeat_serves_until, observed_until, row_due, row_ttl,
};

use own::Own;
use rival::{Pair, Standing};
pub use rival::{label_of_record, may_be_record, none_is_told, resource_of, shown, stands_by, tell};
use rows::OwnRow;
pub(crate) use work::Work;

/// The name of a request of this layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct JobId(u64);

/// The layer's wishes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Step<T> {
    /// Send this, and pass the outcome to [`Sessions::answered`].
    Ask { job: JobId, node: NodeId, lock: LockId, resource: Resource, op: Op, patience: Duration },
    /// The outcome of an operation of a machine. What it grants or renews counts from `since`, if that is earlier than the
    /// send.
    Answer { target: T, node: NodeId, seq: Seq, outcome: Outcome, since: Option<Monotonic> },
}

/// The surroundings of a step.
#[derive(Clone, Copy)]
pub(crate) struct Moment<'a> {
    pub(crate) now: Monotonic,
    pub(crate) seed: &'a Seed,
    pub(crate) drift: Drift,
}

/// The sessions of a client, one on each node whose records are observed.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Sessions<T> {
    /// `None` if the client's own locks need none: then the layer only reads those of others.
    label: Option<SessionLabel>,
    nodes: Vec<Node<T>>,
    jobs: BTreeMap<JobId, (NodeId, Job<T>)>,
    next_job: u64,
    /// How many sessions were begun.
    begun: u32,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Node<T> {
    is_observed: bool,
    own: Option<Own>,
    /// Sessions of ours that were revoked. Their records stand until nobody believes in their rows any more.
    revoked: Vec<(Nonce, SessionLabel, Duration)>,
    /// A request about our session is under way.
    is_asking: bool,
    /// Waits for the answer to it.
    parked: Vec<Work<T>>,
    /// The attempts of ours that may have a row, by their nonces.
    rows: BTreeMap<Nonce, OwnRow>,
    /// When to look for rows that nobody believes in any more.
    sweep_at: Option<Monotonic>,
    /// Rows of others, and records of sessions under our label, that may be left behind.
    seen: Observations,
}

/// A request under way.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Job<T> {
    /// The operation itself, sent at that instant.
    Row(Work<T>, Monotonic),
    /// A read of our own row for a renewal, after so much news.
    Check(Work<T>, u64),
    /// A read of the session that a row in the way names.
    Look(Work<T>, Box<Seen>),
    Bury(Work<T>, Pair),
    /// Our session is started or renewed.
    Own,
    /// The release of a row that nobody believes in.
    Free(Nonce),
    /// A release whose answer does not matter.
    Last,
}

/// How often an acquire writes a row that turned out to be free, before it gives up.
const MOST_TRIES: u8 = 3;

impl<T: Copy> Sessions<T> {
    pub(crate) fn new(
        label: Option<SessionLabel>,
        is_observed: impl Iterator<Item = bool>,
        observations: usize,
    ) -> Self {
        let node = |is_observed| Node {
            is_observed,
            own: None,
            revoked: Vec::new(),
            is_asking: false,
            parked: Vec::new(),
            rows: BTreeMap::new(),
            sweep_at: None,
            seen: Observations::new(observations),
        };
        Self { label, nodes: is_observed.map(node).collect(), jobs: BTreeMap::new(), next_job: 0, begun: 0 }
    }

    /// Returns true if such an operation has to be given to [`Sessions::send`].
    pub(crate) fn takes(&self, node: NodeId, op: &Op) -> bool {
        self.nodes.get(node.index()).is_some_and(|node| node.is_observed)
            && match op {
                Op::Acquire(_) | Op::Read | Op::Release(_) => true,
                Op::Renew(_) | Op::Finish(_) => self.label.is_some(),
                Op::Revoke(_) | Op::Tell(_) | Op::Raise(_) => false,
            }
    }

    pub(crate) fn send(&mut self, at: NodeId, work: Work<T>, moment: Moment<'_>, out: &mut Vec<Step<T>>) {
        match &work.op {
            Op::Acquire(_) => self.acquire(at, work, moment, out),
            Op::Renew(_) => self.renew(at, work, moment, out),
            Op::Release(Release { nonce, .. }) => {
                self.give_up(at, *nonce);
                self.ask_row(at, work, moment, out);
            }
            Op::Read | Op::Finish(_) | Op::Revoke(_) | Op::Tell(_) | Op::Raise(_) => {
                self.ask_row(at, work, moment, out);
            }
        }
    }

    /// Has no acquire of this attempt leave any more: its release would come before it.
    fn give_up(&mut self, at: NodeId, nonce: Nonce) {
        let works = self.jobs.values_mut().filter(|(node, _)| *node == at).filter_map(|(_, job)| match job {
            // What is under way may be refused by a row that turns out to be free, and must not be sent again.
            Job::Row(work, _) | Job::Look(work, _) | Job::Bury(work, _) => Some(work),
            Job::Check(..) | Job::Own | Job::Free(_) | Job::Last => None,
        });
        for work in works.chain(&mut self.nodes[at.index()].parked) {
            work.is_given_up |= matches!(&work.op, Op::Acquire(acquire) if acquire.nonce == nonce);
        }
    }

    pub(crate) fn answered(&mut self, job: JobId, outcome: Outcome, moment: Moment<'_>, out: &mut Vec<Step<T>>) {
        let Some((at, job)) = self.jobs.remove(&job) else { return };
        match job {
            Job::Row(work, sent) => self.row_answered(at, work, sent, outcome, moment, out),
            Job::Check(work, news) => self.checked(at, work, news, outcome, moment, out),
            Job::Look(work, seen) => self.looked(at, work, *seen, outcome, moment, out),
            Job::Bury(work, pair) => self.buried(at, work, pair, outcome, moment, out),
            Job::Own => self.own_answered(at, outcome, moment, out),
            Job::Free(nonce) => self.freed(at, nonce, &outcome),
            Job::Last => {}
        }
        self.end_revoked(at, out);
    }

    /// When [`Sessions::sweep`] is due.
    pub(crate) fn sweep_at(&self) -> Option<Monotonic> {
        self.nodes.iter().filter_map(|node| node.sweep_at).min()
    }

    /// Releases rows that nobody believes in any more: those of leases that were lost, and of attempts that were given up.
    pub(crate) fn sweep(&mut self, moment: Moment<'_>, out: &mut Vec<Step<T>>) {
        for at in 0..self.nodes.len() {
            let node = &mut self.nodes[at];
            if node.sweep_at.is_none_or(|due| due > moment.now) {
                continue;
            }
            let own = node.own.as_ref().map(Own::nonce);
            // Those of a session that is over are free.
            node.rows.retain(|_, row| Some(row.session) == own || row.until > moment.now);
            let mut left = Vec::new();
            for (nonce, row) in node.rows.iter_mut().filter(|(_, row)| row.due() <= moment.now) {
                // If it fails, it is tried again.
                row.free_at = moment.now.plus(row.patience.saturating_mul(6));
                row.is_freed = true;
                left.push((*nonce, row.lock, row.resource.clone(), row.patience));
            }
            node.sweep_at = node.rows.values().map(OwnRow::due).min();
            let at = NodeId::new(u16::try_from(at).unwrap_or(u16::MAX));
            for (nonce, lock, resource, patience) in left {
                let release = Op::Release(Release { nonce, quorum: None });
                self.ask(at, Job::Free(nonce), lock, resource, release, patience, out);
            }
            self.end_revoked(at, out);
        }
    }

    #[expect(clippy::too_many_arguments, reason = "they are the parts of a request")]
    fn ask(
        &mut self,
        node: NodeId,
        job: Job<T>,
        lock: LockId,
        resource: Resource,
        op: Op,
        patience: Duration,
        out: &mut Vec<Step<T>>,
    ) {
        let id = JobId(self.next_job);
        self.next_job += 1;
        self.jobs.insert(id, (node, job));
        out.push(Step::Ask { job: id, node, lock, resource, op, patience });
    }

    fn ask_row(&mut self, at: NodeId, work: Work<T>, moment: Moment<'_>, out: &mut Vec<Step<T>>) {
        let (lock, resource, op, patience) = (work.lock, work.resource.clone(), work.op.clone(), work.patience);
        self.ask(at, Job::Row(work, moment.now), lock, resource, op, patience, out);
    }

    fn acquire(&mut self, at: NodeId, work: Work<T>, moment: Moment<'_>, out: &mut Vec<Step<T>>) {
        let Op::Acquire(op) = &work.op else { return };
        let Some(pair) = op.expect.as_ref().and_then(Pair::read) else { return self.claim(at, work, moment, out) };
        let burial = Acquire {
            expect: Some(pair.session.clone()),
            session: None,
            data: None,
            unless_done: false,
            in_queue: false,
            ..(**op).clone()
        };
        let (lock, resource, patience) = (work.lock, pair.resource.clone(), work.patience);
        self.ask(at, Job::Bury(work, pair), lock, resource, Op::Acquire(Box::new(burial)), patience, out);
    }

    fn buried(
        &mut self,
        at: NodeId,
        mut work: Work<T>,
        pair: Pair,
        outcome: Outcome,
        moment: Moment<'_>,
        out: &mut Vec<Step<T>>,
    ) {
        let Op::Acquire(op) = &mut work.op else { return };
        let (is_over, may_hold) = match &outcome {
            Outcome::Applied(Applied::Acquired { .. } | Applied::AcquiredInDoubt { .. }) => (true, true),
            // It has been renewed, buried by others, or released. The row tells which session to look at.
            Outcome::NotApplied(Refusal::Conflict(_)) => (false, false),
            Outcome::Unknown(_) => (false, true),
            Outcome::Applied(_) | Outcome::NotApplied(_) => (false, false),
        };
        if may_hold {
            let release = Op::Release(Release { nonce: op.nonce, quorum: None });
            let (lock, patience) = (work.lock, work.patience);
            self.ask(at, Job::Last, lock, pair.resource, release, patience, out);
        }
        match outcome {
            Outcome::Applied(_) | Outcome::NotApplied(Refusal::Conflict(_)) => {
                op.expect = is_over.then_some(pair.row);
                self.claim(at, work, moment, out);
            }
            // The row was not touched.
            Outcome::NotApplied(refusal) => answer(at, &work, Outcome::NotApplied(refusal), None, out),
            Outcome::Unknown(fault) => answer(at, &work, Outcome::NotApplied(Refusal::Unavailable(fault)), None, out),
        }
    }

    /// Writes the row, once our own session stands.
    fn claim(&mut self, at: NodeId, work: Work<T>, moment: Moment<'_>, out: &mut Vec<Step<T>>) {
        if work.is_given_up {
            let fault = Fault::of(FaultKind::Cancelled);
            return answer(at, &work, Outcome::NotApplied(Refusal::Unavailable(fault)), None, out);
        }
        let node = &mut self.nodes[at.index()];
        if self.label.is_none() {
            return self.ask_row(at, work, moment, out);
        }
        let is_recent =
            |own: &Own| own.since(work.ttl).is_some_and(|since| moment.now <= heartbeat_grants_until(since, work.ttl));
        if node.own.as_ref().is_some_and(is_recent) {
            return self.write_row(at, work, moment, out);
        }
        node.parked.push(work);
        self.pulse(at, moment, out);
    }

    fn write_row(&mut self, at: NodeId, mut work: Work<T>, moment: Moment<'_>, out: &mut Vec<Step<T>>) {
        let node = &mut self.nodes[at.index()];
        if work.is_given_up {
            let fault = Fault::of(FaultKind::Cancelled);
            return answer(at, &work, Outcome::NotApplied(Refusal::Unavailable(fault)), None, out);
        }
        let (Op::Acquire(op), Some(own)) = (&mut work.op, &node.own) else { return };
        op.session = Some(Session { nonce: own.nonce(), label: own.label().clone() });
        op.record_ttl = row_ttl(work.ttl);
        let until = observed_until(moment.now, work.ttl, moment.drift, Format::Leasehold);
        let row = node.rows.entry(op.nonce).or_insert_with(|| OwnRow {
            lock: work.lock,
            resource: work.resource.clone(),
            session: own.nonce(),
            row_ttl: op.record_ttl,
            written: moment.now,
            news: own.news(),
            is_revoked: false,
            is_forgotten: false,
            in_flight: 0,
            may_land: false,
            until,
            free_at: until,
            is_freed: false,
            may_be_freed: false,
            patience: work.patience,
        });
        if row.is_freed {
            let fault = Fault::new(FaultKind::Busy, "this attempt was given up");
            return answer(at, &work, Outcome::NotApplied(Refusal::Unavailable(fault)), None, out);
        }
        row.until = row.until.max(until);
        row.in_flight = row.in_flight.saturating_add(1);
        node.sweep_by(until);
        self.ask_row(at, work, moment, out);
    }

    fn renew(&mut self, at: NodeId, work: Work<T>, moment: Moment<'_>, out: &mut Vec<Step<T>>) {
        let node = &mut self.nodes[at.index()];
        if let Some(outcome) = node.lost(&work) {
            return answer(at, &work, outcome, None, out);
        }
        node.keep(&work, moment.now, moment);
        let is_recent =
            |own: &Own| own.since(work.ttl).is_some_and(|since| moment.now <= heartbeat_serves_until(since, work.ttl));
        if node.own.as_ref().is_some_and(is_recent) {
            return self.serve(at, work, moment, out);
        }
        node.parked.push(work);
        self.pulse(at, moment, out);
    }

    /// Answers a renewal by that of the session, unless the row has to be read or written.
    fn serve(&mut self, at: NodeId, mut work: Work<T>, moment: Moment<'_>, out: &mut Vec<Step<T>>) {
        let node = &mut self.nodes[at.index()];
        if let Some(outcome) = node.lost(&work) {
            return answer(at, &work, outcome, None, out);
        }
        let Op::Renew(renew) = work.op else { return };
        let news = node.own.as_ref().map_or(0, Own::news);
        let Some(row) = node.row_of(&work) else { return };
        if row.news < news {
            let (lock, resource, patience) = (work.lock, work.resource.clone(), work.patience);
            return self.ask(at, Job::Check(work, news), lock, resource, Op::Read, patience, out);
        }
        if moment.now >= row_due(row.written, row.row_ttl) {
            work.op = Op::Renew(Renew { record_ttl: row.row_ttl, ..renew });
            return self.ask_row(at, work, moment, out);
        }
        let since = node.since(&work, moment);
        answer(at, &work, Outcome::Applied(Applied::Renewed), since, out);
    }

    /// Our own row as it is, since somebody may have changed it. The read left after `news`: later ones may be about a change
    /// that it did not see.
    fn checked(
        &mut self,
        at: NodeId,
        work: Work<T>,
        news: u64,
        outcome: Outcome,
        moment: Moment<'_>,
        out: &mut Vec<Step<T>>,
    ) {
        let node = &mut self.nodes[at.index()];
        let Op::Renew(renew) = &work.op else { return };
        let outcome = match outcome {
            Outcome::Applied(Applied::Read(seen)) => {
                let is_ours = |holding: &Holding| holding.is_of(&renew.nonce) && !holding.is_revoked();
                if seen.held().is_some_and(is_ours) {
                    if let Some(row) = node.rows.get_mut(&renew.nonce) {
                        row.news = row.news.max(news);
                    }
                    return self.serve(at, work, moment, out);
                }
                Outcome::NotApplied(Refusal::Conflict(Seen { done: None, ..seen }))
            }
            Outcome::Applied(_) => Outcome::Unknown(Fault::of(FaultKind::Protocol)),
            outcome @ (Outcome::NotApplied(_) | Outcome::Unknown(_)) => outcome,
        };
        answer(at, &work, outcome, None, out);
    }

    fn row_answered(
        &mut self,
        at: NodeId,
        work: Work<T>,
        sent: Monotonic,
        outcome: Outcome,
        moment: Moment<'_>,
        out: &mut Vec<Step<T>>,
    ) {
        let node = &mut self.nodes[at.index()];
        node.note_row(&work, sent, &outcome);
        match outcome {
            Outcome::NotApplied(Refusal::Conflict(seen)) if matches!(work.op, Op::Acquire(_)) => {
                self.judge(at, work, seen, moment, out);
            }
            Outcome::Applied(Applied::Read(seen)) => self.judge(at, work, seen, moment, out),
            outcome @ (Outcome::Applied(_) | Outcome::NotApplied(_) | Outcome::Unknown(_)) => {
                let since = node.since(&work, moment);
                // The session ended while the row was written.
                let outcome = match (&work.op, outcome, since) {
                    (Op::Acquire(_), Outcome::Applied(_), None) if self.label.is_some() => {
                        Outcome::Unknown(Fault::new(FaultKind::Busy, "the session ended while the lock was written"))
                    }
                    (Op::Renew(_), outcome, _) => node.lost(&work).unwrap_or(outcome),
                    (_, outcome, _) => outcome,
                };
                answer(at, &work, outcome, since, out);
            }
        }
    }

    /// Judges a row that may name a session.
    fn judge(&mut self, at: NodeId, work: Work<T>, mut seen: Seen, moment: Moment<'_>, out: &mut Vec<Step<T>>) {
        let node = &mut self.nodes[at.index()];
        let Some((holding, session)) = named(&seen) else {
            node.seen.forget(at, &work.resource);
            return answer(at, &work, as_asked(&work, seen), None, out);
        };
        let is_of_ours = node.own.as_ref().is_some_and(|own| own.nonce() == session.nonce && own.stands());
        if work.op.nonce().is_some_and(|nonce| holding.is_of(&nonce)) {
            // It counts only while it names the session that stands.
            let since = if is_of_ours { node.since(&work, moment) } else { None };
            if let Some(holding) = seen.holding.as_mut() {
                holding.released = since.is_none();
            }
            return answer(at, &work, as_asked(&work, seen), since, out);
        }
        let believed = |row: &OwnRow| row.until > moment.now;
        let is_left_behind =
            is_of_ours && holding.nonce().is_some_and(|nonce| !node.rows.get(&nonce).is_some_and(believed));
        // However long its session lives: a row that is held is written again before that.
        let stood_still =
            node.seen.note(at, &work.resource, holding, moment.now, moment.drift).is_some_and(|at| moment.now >= at);
        if is_left_behind || stood_still {
            return self.free(at, work, seen, moment, out);
        }
        let Some(resource) = resource_of(&session.label) else {
            return self.free(at, work, seen, moment, out);
        };
        let (lock, patience) = (work.lock, work.patience);
        self.ask(at, Job::Look(work, Box::new(seen)), lock, resource, Op::Read, patience, out);
    }

    fn looked(
        &mut self,
        at: NodeId,
        work: Work<T>,
        mut seen: Seen,
        outcome: Outcome,
        moment: Moment<'_>,
        out: &mut Vec<Step<T>>,
    ) {
        let session = match outcome {
            Outcome::Applied(Applied::Read(session)) => session,
            Outcome::Unknown(fault) => {
                // The row was read, or refused: nothing is unknown about it.
                return answer(at, &work, Outcome::NotApplied(Refusal::Unavailable(fault)), None, out);
            }
            Outcome::Applied(_) => {
                let fault = Fault::of(FaultKind::Protocol);
                return answer(at, &work, Outcome::NotApplied(Refusal::Unavailable(fault)), None, out);
            }
            Outcome::NotApplied(refusal) => {
                let Some((_, session)) = named(&seen) else { return };
                let outcome = Outcome::NotApplied(rival::about(&session.label, refusal));
                return answer(at, &work, outcome, None, out);
            }
        };
        let Some(holding) = seen.holding.as_mut() else { return };
        match rival::standing(holding, &session) {
            Standing::Over => self.free(at, work, seen, moment, out),
            Standing::Alive(shown) => {
                *holding = shown;
                answer(at, &work, as_asked(&work, seen), None, out);
            }
            Standing::Unreadable(denial) => answer(at, &work, Outcome::NotApplied(Refusal::Denied(denial)), None, out),
        }
    }

    /// The row is nobody's: it is taken on its own version, or shown as free.
    fn free(&mut self, at: NodeId, mut work: Work<T>, mut seen: Seen, moment: Moment<'_>, out: &mut Vec<Step<T>>) {
        let Some(holding) = seen.holding.as_mut() else { return };
        if let Op::Acquire(op) = &mut work.op {
            if work.tries >= MOST_TRIES {
                let fault = Fault::new(FaultKind::Busy, "other clients keep changing the row of this lock");
                return answer(at, &work, Outcome::NotApplied(Refusal::Unavailable(fault)), None, out);
            }
            work.tries += 1;
            op.expect = Some(holding.version.clone());
            return self.claim(at, work, moment, out);
        }
        holding.released = true;
        answer(at, &work, as_asked(&work, seen), None, out);
    }

    fn freed(&mut self, at: NodeId, nonce: Nonce, outcome: &Outcome) {
        let Some(row) = self.nodes[at.index()].rows.get_mut(&nonce) else { return };
        match outcome {
            // It stays known while another release of it may land: it must not be acquired again then. What it leaves behind
            // still later is left to the patience of rivals.
            Outcome::Applied(_) | Outcome::NotApplied(Refusal::Conflict(_))
                if row.may_be_freed || row.in_flight > 0 =>
            {
                row.free_at = Monotonic::FAR;
            }
            Outcome::Applied(_) | Outcome::NotApplied(Refusal::Conflict(_)) => {
                self.nodes[at.index()].rows.remove(&nonce);
            }
            Outcome::NotApplied(_) => {}
            Outcome::Unknown(_) => row.may_be_freed = true,
        }
    }
}

fn answer<T: Copy>(node: NodeId, work: &Work<T>, outcome: Outcome, since: Option<Monotonic>, out: &mut Vec<Step<T>>) {
    out.push(Step::Answer { target: work.target, node, seq: work.seq, outcome, since });
}

/// The row that is held, and the session that it stands and falls with.
fn named(seen: &Seen) -> Option<(&Holding, &Session)> {
    let holding = seen.held().filter(|holding| holding.holder != Holder::Foreign)?;
    Some((holding, holding.session.as_ref().filter(|session| session.is_record())?))
}

/// The answer to a read, or the refusal of an acquire, that shows this.
fn as_asked<T>(work: &Work<T>, seen: Seen) -> Outcome {
    match work.op {
        Op::Read => Outcome::Applied(Applied::Read(seen)),
        Op::Acquire(_) | Op::Renew(_) | Op::Release(_) | Op::Finish(_) | Op::Revoke(_) | Op::Tell(_) | Op::Raise(_) => {
            Outcome::NotApplied(Refusal::Conflict(seen))
        }
    }
}
