//! One DynamoDB table in the format of the AWS lock client for Java: single-row writes under a condition, a failed one
//! showing the row as it is. Nothing runs out by itself; observers wait.

mod kept;
mod session;

use std::collections::BTreeMap;
use std::time::Duration;

use leasehold_core::member::{LossId, Marker, RETENTION};
use leasehold_core::op::{Acquire, Applied, Denial, DenialKind, Fault, FaultKind, Finish, Holder, Holding};
use leasehold_core::op::{Completion, Op, Outcome, Raise, Refusal, Seen, Session};
use leasehold_core::session::may_be_record;
use leasehold_core::{About, Nonce, Owner, Payload, Resource, Seq, Token, Version};

use crate::store::{self, Answer, Ask, By, StoredRecord, exhausted, whole_ms};

pub(super) use kept::Kept;
pub use session::Form;
use session::{Keep, Told};

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Dynamodb {
    pub(super) rows: BTreeMap<Resource, Row>,
    /// A row of its own, which is not written together with any other.
    pub(super) marker: Option<Marker>,
}

/// The attributes of a row.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Row {
    pub(super) rvn: Rvn,
    pub(super) owner: Option<Owner>,
    /// `None` where the row has a length that no client here understands.
    pub(super) lease_duration: Option<Duration>,
    pub(super) released: bool,
    /// True if the version that it shows was freed because the node did not vote, and not by its holder. Any other
    /// version ends that.
    pub(super) undone: bool,
    /// When it was last released, by the wall clock of who did.
    pub(super) freed_at: Option<u64>,
    /// Absent after a foreign client has replaced the row.
    pub(super) fencing_token: Option<Token>,
    /// The loss since which that was raised.
    pub(super) trust: Option<LossId>,
    /// By the holder's wall clock.
    pub(super) granted_at: Option<u64>,
    pub(super) data: Option<Payload>,
    /// The attempt of ours that wrote the data; `None` also for that of a foreign client.
    pub(super) data_of: Option<Nonce>,
    /// Of our holder; it says nothing of a row of another client.
    pub(super) session: Option<Session>,
    /// The number of tells, which only a tell changes.
    pub(super) told: u64,
    /// The last completion of finished work, standing or not; absent after a foreign client has replaced the row.
    pub(super) done: Option<Done>,
    /// From then on the row may be removed.
    pub(super) kept: Kept,
}

/// The completion of finished work. Wall clocks of clients decide how long it stands.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Done {
    nonce: Nonce,
    token: Token,
    owner: Owner,
    at_unix_ms: u64,
    until_unix_ms: u64,
    about: Option<About>,
}

/// The time that a mark is kept longer than asked, since the clock of a later client may be ahead.
const CLOCK_MARGIN: Duration = Duration::from_secs(60);

impl Done {
    fn shown(&self, unix_ms: u64) -> Option<Box<Completion>> {
        (unix_ms < self.until_unix_ms).then(|| {
            Box::new(Completion {
                token: self.token,
                owner: self.owner.clone(),
                at_unix_ms: self.at_unix_ms,
                left: Duration::from_millis(self.until_unix_ms - unix_ms),
                about: self.about.clone(),
                unsettled: false,
            })
        })
    }
}

/// The record version number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Rvn {
    /// `<nonce>:<seq>`.
    Ours { nonce: Nonce, seq: Seq },
    /// A UUID.
    Foreign(store::Mark),
}

impl Rvn {
    pub(super) fn version(&self) -> Option<Version> {
        match self {
            Self::Ours { nonce, seq } => Some(Version::of(nonce, *seq)),
            Self::Foreign(mark) => mark.version(),
        }
    }

    fn begins_with(&self, theirs: &Nonce) -> bool {
        matches!(self, Self::Ours { nonce, .. } if nonce == theirs)
    }

    /// Of this attempt, and from before this send.
    fn is_before(&self, theirs: &Nonce, send: Seq) -> bool {
        matches!(self, Self::Ours { nonce, seq } if nonce == theirs && *seq < send)
    }
}

impl Row {
    /// An earlier attempt's leftovers are not the holder's, if the holder is one of ours.
    fn has_data(&self) -> bool {
        match self.rvn {
            Rvn::Ours { nonce, .. } => self.data_of == Some(nonce),
            Rvn::Foreign(_) => true,
        }
    }

    /// Also while released, a row of the same attempt is not written again: otherwise a delayed first send could
    /// overwrite a heartbeat, or bring back a holder that everyone saw leave. A later send may write over a lock that
    /// an earlier one had to undo, because its holder has not left. A row that was released by a client that writes
    /// lengths in another form is not free.
    fn is_free_for(&self, op: &Acquire) -> bool {
        let released = self.released && self.lease_duration.is_some();
        if self.rvn.begins_with(&op.nonce) {
            return op.member.is_some() && released && self.undone && self.rvn.is_before(&op.nonce, op.seq);
        }
        released || (op.expect.is_some() && op.expect == self.rvn.version())
    }

    fn is_held_by(&self, nonce: &Nonce) -> bool {
        self.rvn.begins_with(nonce) && !self.released
    }

    fn is_raised(&self, op: &Raise) -> bool {
        self.is_high_enough(op) && (op.loss.is_none() || self.trust == op.loss)
    }

    fn is_high_enough(&self, op: &Raise) -> bool {
        self.fencing_token.is_some_and(|counter| counter >= op.token)
    }

    /// A write that was carried out counts only if the answer can be read, and it shows the whole row.
    fn shows(&self, applied: Applied) -> Outcome {
        match self.lease_duration {
            Some(_) => Outcome::Applied(applied),
            None => Outcome::Unknown(Fault::of(FaultKind::Protocol)),
        }
    }
}

/// The result of a request for the lock's row.
enum RowReply {
    Outcome(Outcome),
    /// The other form may fit.
    OtherForm,
}

fn heard(applied: Applied) -> RowReply {
    RowReply::Outcome(Outcome::Applied(applied))
}

impl Dynamodb {
    /// One request.
    pub(super) fn ask(&mut self, ask: &Ask<'_>) -> Answer {
        let unix_ms = ask.caller.unix_ms;
        match &ask.form {
            Form::Floor | Form::Step => match self.lock(ask) {
                RowReply::OtherForm => Answer::Again(Form::Step),
                RowReply::Outcome(outcome) => {
                    // A counter that was raised after a loss says nothing of marks.
                    let row = self.rows.get(ask.resource);
                    let asks_for_completions = matches!(ask.op, Op::Acquire(op) if op.unless_done);
                    let trust = row.filter(|_| !asks_for_completions).and_then(|row| row.trust);
                    Told { outcome, trust }.next(ask.op)
                }
            },
            Form::Look(told) => told.judge(ask.op, self.marker.as_ref(), 0, unix_ms),
            Form::Mark(mark) if mark.found == self.marker => {
                self.marker = Some(mark.marker.clone());
                mark.written(ask.op, unix_ms)
            }
            Form::Mark(mark) => mark.missed(ask.op, self.marker.as_ref(), unix_ms),
            Form::Undo(refusal) => Answer::Done(self.undo(ask, refusal)),
            Form::Keep(keep) => self.keep(ask, keep),
        }
    }

    fn lock(&mut self, ask: &Ask<'_>) -> RowReply {
        let (resource, unix_ms) = (ask.resource, ask.caller.unix_ms);
        match (ask.op, self.rows.get_mut(resource)) {
            (Op::Acquire(op), _) => self.acquire(ask, op),
            // Any earlier write of the attempt will do, whichever has landed; a later one makes this one harmless.
            (Op::Renew(op), Some(row)) if row.rvn.is_before(&op.nonce, op.seq) && !row.released => {
                row.rvn = Rvn::Ours { nonce: op.nonce, seq: op.seq };
                row.lease_duration = Some(Duration::from_millis(whole_ms(op.record_ttl)));
                row.kept = row.kept.held(resource, unix_ms);
                heard(if may_be_record(resource) { leasehold_core::store::renewed(row.told) } else { Applied::Renewed })
            }
            // The version stays, as Java leaves it: it names the attempt whose delayed sends must still be refused.
            (Op::Release(op), Some(row)) if row.rvn.begins_with(&op.nonce) && (!row.released || row.undone) => {
                (row.released, row.undone, row.freed_at) = (true, false, Some(ask.caller.unix_ms));
                row.kept = row.kept.left(resource, unix_ms);
                RowReply::Outcome(row.shows(Applied::Released))
            }
            // Something on the way has sent it twice.
            (Op::Release(op), Some(row))
                if row.rvn.begins_with(&op.nonce) && row.freed_at == Some(ask.caller.unix_ms) =>
            {
                RowReply::Outcome(row.shows(Applied::Released))
            }
            (Op::Finish(op), Some(row)) if row.is_held_by(&op.nonce) && row.fencing_token == Some(op.counter) => {
                (row.released, row.undone) = (true, false);
                row.done = Some(done(op, unix_ms));
                row.kept = Kept::at(unix_ms, op.keep.saturating_add(CLOCK_MARGIN).max(RETENTION));
                RowReply::Outcome(row.shows(Applied::Finished))
            }
            (Op::Finish(op), Some(row)) if row.done.as_ref().is_some_and(|done| done.nonce == op.nonce) => {
                RowReply::Outcome(row.shows(Applied::Finished))
            }
            // Every heartbeat of the attempt is an earlier one.
            (Op::Revoke(op), Some(row)) if row.is_held_by(&op.nonce) => {
                row.rvn = Rvn::Ours { nonce: op.nonce, seq: Seq::LAST };
                row.kept = row.kept.left(resource, unix_ms);
                RowReply::Outcome(row.shows(Applied::Revoked))
            }
            (Op::Tell(op), Some(row)) if row.is_held_by(&op.nonce) => {
                row.told += 1;
                RowReply::Outcome(row.shows(Applied::Told))
            }
            (Op::Raise(op), Some(row)) if row.is_held_by(&op.nonce) => {
                let kept = row.kept.left(resource, unix_ms);
                lift(row, op, &ask.form, kept)
            }
            (Op::Renew(_) | Op::Release(_) | Op::Finish(_) | Op::Revoke(_) | Op::Tell(_) | Op::Raise(_), _) => {
                self.conflict(resource)
            }
            (Op::Read, _) => RowReply::Outcome(match self.seen(resource) {
                Ok(seen) => {
                    let done = self.rows.get(resource).and_then(|row| row.done.as_ref());
                    let done = done.and_then(|done| done.shown(unix_ms));
                    Outcome::Applied(Applied::Read(Seen { done, ..seen }))
                }
                Err(denial) => Outcome::NotApplied(Refusal::Denied(denial)),
            }),
        }
    }

    fn acquire(&mut self, ask: &Ask<'_>, op: &Acquire) -> RowReply {
        let row = self.rows.get(ask.resource);
        let standing =
            row.filter(|row| op.unless_done && row.lease_duration.is_some()).and_then(|row| row.done.as_ref());
        if let Some(done) = standing.and_then(|done| done.shown(ask.caller.unix_ms)) {
            return RowReply::Outcome(Outcome::NotApplied(Refusal::Done(done)));
        }
        if row.is_some_and(|row| !row.is_free_for(op)) {
            return self.conflict(ask.resource);
        }
        // No grant has token 0, and this form would mint it in an empty table.
        let floor = op.floor.max(Token::ZERO.next().unwrap_or(Token::MAX));
        let counter = row.and_then(|row| row.fencing_token);
        // Each form computes the token in the write itself. Computed from an earlier answer, it could fall.
        let token = match (&ask.form, counter) {
            (Form::Floor, None) => floor,
            (Form::Floor, Some(counter)) if counter < floor => floor,
            // A client that is shown an unreadable row does not ask again.
            (_, _) if row.is_some_and(|row| row.lease_duration.is_none()) => return self.conflict(ask.resource),
            (_, Some(Token::MAX)) => return RowReply::Outcome(exhausted()),
            (Form::Floor, Some(_)) => return RowReply::OtherForm,
            (_, Some(counter)) if counter >= floor => counter.next().unwrap_or(Token::MAX),
            // The counter was dropped since the other form was refused. Were the codec to change forms again, a
            // rival could keep it busy without end within one send. The row it is shown is free, so the next attempt
            // follows soon.
            (_, _) => return self.conflict(ask.resource),
        };
        let row = Row {
            rvn: Rvn::Ours { nonce: op.nonce, seq: op.seq },
            owner: Some(op.owner.clone()),
            lease_duration: Some(Duration::from_millis(whole_ms(op.record_ttl))),
            released: false,
            undone: false,
            freed_at: row.and_then(|row| row.freed_at),
            fencing_token: Some(token),
            trust: row.and_then(|row| row.trust),
            granted_at: Some(ask.caller.unix_ms),
            data: op.data.clone().or_else(|| row.and_then(|row| row.data.clone())),
            data_of: op.data.as_ref().map(|_| op.nonce).or_else(|| row.and_then(|row| row.data_of)),
            session: op.session.clone(),
            told: row.map_or(0, |row| row.told),
            // A row is billed whole, so the record of the last run goes.
            done: row
                .and_then(|row| row.done.clone())
                .map(|done| if op.unless_done { Done { about: None, ..done } } else { done }),
            kept: row.map_or(Kept::default(), |row| row.kept).held(ask.resource, ask.caller.unix_ms),
        };
        self.rows.insert(ask.resource.clone(), row);
        heard(Applied::Acquired { counter: token })
    }

    /// Frees a lock that this send has written. It may come late, so it must not free a later send's lock, nor reopen a
    /// lock that the holder has left.
    fn undo(&mut self, ask: &Ask<'_>, refusal: &Refusal) -> Outcome {
        let undone = Outcome::NotApplied(refusal.clone());
        match (self.rows.get_mut(ask.resource), ask.op) {
            (Some(row), Op::Acquire(op))
                if row.rvn == (Rvn::Ours { nonce: op.nonce, seq: op.seq }) && !row.released =>
            {
                (row.released, row.undone) = (true, true);
                row.kept = row.kept.left(ask.resource, ask.caller.unix_ms);
                row.lease_duration.map_or(Outcome::Unknown(Fault::of(FaultKind::Protocol)), |_| undone)
            }
            (Some(_) | None, _) => undone,
        }
    }

    fn keep(&mut self, ask: &Ask<'_>, keep: &Keep) -> Answer {
        match (self.rows.get_mut(ask.resource), ask.op) {
            (Some(row), Op::Acquire(op)) if row.rvn.is_before(&op.nonce, op.seq) && !row.released => {
                let record_ttl = Duration::from_millis(whole_ms(op.record_ttl));
                row.rvn = Rvn::Ours { nonce: op.nonce, seq: op.seq };
                row.lease_duration = Some(record_ttl);
                row.kept = row.kept.left(ask.resource, ask.caller.unix_ms);
                keep.kept(op, record_ttl)
            }
            (Some(_) | None, _) => keep.missed(self.refusal(ask.resource)),
        }
    }

    pub(super) fn stored(&self, resource: &Resource) -> Option<StoredRecord> {
        let row = self.rows.get(resource).filter(|row| !row.released)?;
        let by = match row.rvn {
            Rvn::Ours { nonce, .. } => By::Attempt(nonce),
            Rvn::Foreign(mark) => By::Foreign(mark.by),
        };
        Some(StoredRecord { by, until: None })
    }

    pub(super) fn counter(&self, resource: &Resource) -> Option<Token> {
        self.rows.get(resource)?.fencing_token
    }

    pub(super) fn trust(&self, resource: &Resource) -> Option<LossId> {
        self.rows.get(resource)?.trust
    }

    pub(super) fn done_by(&self, resource: &Resource, unix_ms: u64) -> Option<Nonce> {
        let done = self.rows.get(resource)?.done.as_ref()?;
        (unix_ms < done.until_unix_ms).then_some(done.nonce)
    }

    pub(super) fn undone(&self, resource: &Resource) -> Option<(Nonce, Seq)> {
        match self.rows.get(resource).filter(|row| row.undone)?.rvn {
            Rvn::Ours { nonce, seq } => Some((nonce, seq)),
            Rvn::Foreign(_) => None,
        }
    }

    pub(super) fn evict(&mut self, resource: &Resource) {
        if let Some(row) = self.rows.get_mut(resource) {
            row.released = true;
        }
    }

    fn conflict(&self, resource: &Resource) -> RowReply {
        RowReply::Outcome(self.refusal(resource))
    }

    fn refusal(&self, resource: &Resource) -> Outcome {
        Outcome::NotApplied(match self.seen(resource) {
            Ok(seen) => Refusal::Conflict(seen),
            Err(denial) => Refusal::Denied(denial),
        })
    }

    fn seen(&self, resource: &Resource) -> Result<Seen, Denial> {
        let Some(row) = self.rows.get(resource) else { return Ok(Seen::default()) };
        if row.lease_duration.is_none() {
            return Err(Denial::new(DenialKind::Schema, "the row cannot be read, and may be held"));
        }
        let holder = match row.rvn {
            Rvn::Ours { nonce, seq } => Holder::Lease { nonce, seq: Some(seq) },
            Rvn::Foreign(_) => Holder::Foreign,
        };
        let holding = row.rvn.version().map(|version| {
            Box::new(Holding {
                holder,
                version,
                released: row.released,
                counter: row.fencing_token,
                owner: row.owner.clone(),
                record_ttl: row.lease_duration,
                left: None,
                since_unix_ms: row.granted_at.filter(|_| holder != Holder::Foreign),
                data: row.data.clone().filter(|_| row.has_data()),
                session: row.session.clone().filter(|_| holder != Holder::Foreign),
                told: row.told,
            })
        });
        Seen { holding, done: None }.checked()
    }
}

fn done(op: &Finish, unix_ms: u64) -> Done {
    let until = || unix_ms.saturating_add(whole_ms(op.keep.saturating_add(CLOCK_MARGIN)));
    Done {
        nonce: op.nonce,
        token: op.token,
        owner: op.owner.clone(),
        at_unix_ms: unix_ms,
        until_unix_ms: if op.keep.is_zero() { 0 } else { until() },
        about: op.about.clone(),
    }
}

/// Of a row that the attempt holds.
fn lift(row: &mut Row, op: &Raise, form: &Form, kept: Kept) -> RowReply {
    let counter = match (form, row.fencing_token) {
        (Form::Floor, Some(counter)) if counter >= op.token => {
            return match (row.lease_duration, row.is_raised(op)) {
                (None, _) => RowReply::Outcome(Outcome::NotApplied(Refusal::Denied(Denial::new(
                    DenialKind::Schema,
                    "the row cannot be read, and may be held",
                )))),
                (Some(_), true) => heard(Applied::Raised { counter }),
                (Some(_), false) => RowReply::OtherForm,
            };
        }
        (Form::Floor, _) => op.token,
        (_, Some(counter)) if row.is_high_enough(op) => counter,
        (_, _) => return RowReply::Outcome(Outcome::Unknown(Fault::of(FaultKind::Protocol))),
    };
    row.fencing_token = Some(counter);
    row.trust = op.loss.or(row.trust);
    row.kept = kept;
    RowReply::Outcome(row.shows(Applied::Raised { counter }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::tests::*;
    use crate::store::{ForeignAct, ForeignAnswer, Kind, Mark, conflict};

    fn bench() -> Bench {
        Bench::new(Kind::Dynamodb)
    }

    fn mark(count: u32) -> Mark {
        Mark { by: 7, count }
    }

    #[test]
    fn records_never_expire_by_themselves() {
        let mut bench = bench();
        bench.grant(1, 1);
        bench.pass(3_600_000);
        let seen = holding(&bench.ask(&acquire(2, 1)));
        assert_eq!((seen.left, seen.record_ttl, seen.released), (None, Some(TTL), false));
        assert_eq!(bench.ask(&renew_for(1, 2, 5_000)), renewed(), "nobody else has come");
        let written = holding(&bench.ask(&acquire(2, 1))).record_ttl;
        assert_eq!(written, Some(Duration::from_secs(5)), "a heartbeat says again how long to wait");
    }

    #[test]
    fn takeover_compares_with_the_observed_version() {
        let mut bench = bench();
        let first = bench.grant(1, 1);
        let before = holding(&bench.ask(&acquire(2, 1))).version;
        bench.ask(&renew(1, 2));
        let stale = bench.ask(&takeover(2, 2, &before));
        assert_eq!(shown(&stale), Some((1, Some(2), false)), "the holder was alive in between");
        assert_eq!(bench.ask(&takeover(2, 3, &holding(&stale).version)), granted(token(first.get() + 1)));
        assert_eq!(shown(&bench.ask(&renew(1, 3))), Some((2, Some(3), false)));
    }

    #[test]
    fn released_row_is_free_except_for_its_attempt() {
        let mut bench = bench();
        let first = bench.grant(1, 2);
        assert_eq!(bench.ask(&release(1)), released());
        assert_eq!(bench.ask(&release(1)), released(), "something on the way has sent it twice");
        for form in [Form::Floor, Form::Step] {
            let late = bench.ask_once(&acquire(1, 1), form);
            assert_eq!(shown_in(&late), Some((1, Some(2), true)), "a delayed acquire");
        }
        let own = takeover(1, 3, &version(1, 2));
        assert_eq!(shown(&bench.ask(&own)), Some((1, Some(2), true)), "not even as a takeover");
        assert_eq!((bench.holder(), bench.counter()), (None, Some(first)));
        assert!(bench.grant(2, 1) > first);
    }

    #[test]
    fn two_forms_of_a_write_make_a_maximum() {
        let mut bench = bench();
        assert_eq!(bench.ask_once(&acquire_above(1, 1, Token::ZERO), Form::Floor), Answer::Done(granted(token(1))));
        bench.ask(&release(1));
        let above = acquire_above(2, 1, token(50));
        assert_eq!(shown_in(&bench.ask_once(&above, Form::Step)), Some((1, Some(1), true)), "below the floor");
        assert_eq!(bench.ask_once(&above, Form::Floor), Answer::Done(granted(token(50))));
        bench.ask(&release(2));
        let again = acquire_above(3, 1, token(50));
        assert_eq!(bench.ask_once(&again, Form::Floor), Answer::Again(Form::Step), "the floor is taken");
        assert_eq!(bench.ask_once(&again, Form::Step), Answer::Done(granted(token(51))));
    }

    #[test]
    fn token_is_computed_in_the_write() {
        let mut bench = bench();
        let first = bench.grant(1, 1);
        bench.ask(&release(1));
        let mine = acquire(2, 1);
        assert_eq!(bench.ask_once(&mine, Form::Floor), Answer::Again(Form::Step));
        let rival = bench.grant(3, 1);
        assert_eq!(bench.ask(&raise(3, rival.get() + 10)), raised(rival.get() + 10));
        bench.ask(&release(3));
        assert_eq!(bench.ask_once(&mine, Form::Step), Answer::Done(granted(token(rival.get() + 11))));
        assert!(rival > first);
    }

    #[test]
    fn dropped_counter_between_forms_is_a_conflict() {
        let mut bench = bench();
        bench.grant(1, 1);
        bench.ask(&release(1));
        assert_eq!(bench.ask_once(&acquire(2, 1), Form::Floor), Answer::Again(Form::Step));
        let ttl = TTL;
        assert_eq!(bench.foreign(&ForeignAct::AcquireReleased { mark: mark(1), ttl }), ForeignAnswer::Held(mark(1)));
        assert_eq!(bench.counter(), None, "PutItem writes the whole row");
        assert_eq!(bench.foreign(&ForeignAct::ReleaseKeep { mark: mark(1) }), ForeignAnswer::Released);
        let refused = bench.ask_once(&acquire(2, 1), Form::Step);
        assert!(matches!(&refused, Answer::Done(outcome) if holding(outcome).released), "{refused:?}");
        assert_eq!(bench.foreign(&ForeignAct::AcquireReleased { mark: mark(2), ttl }), ForeignAnswer::Held(mark(2)));
        assert_eq!(bench.foreign(&ForeignAct::ReleaseDelete { mark: mark(2) }), ForeignAnswer::Released);
        let refused = bench.ask_once(&acquire(2, 1), Form::Step);
        assert_eq!(refused, conflict(Seen::default()), "and that is the end of this send");
        assert_eq!(bench.grant(2, 2), token(FLOOR), "the floor is the answer to a lost counter");
    }

    #[test]
    fn java_client_and_ours_exclude_each_other() {
        let mut bench = bench();
        let new = ForeignAct::AcquireNew { mark: mark(1), ttl: Duration::from_micros(500_001) };
        assert_eq!(bench.foreign(&new), ForeignAnswer::Held(mark(1)));
        assert_eq!(bench.foreign(&new), ForeignAnswer::Refused, "a row is there");
        let seen = holding(&bench.ask(&acquire(1, 1)));
        assert_eq!((seen.holder, seen.record_ttl), (Holder::Foreign, Some(Duration::from_millis(501))));
        assert_eq!(bench.stored().map(|stored| stored.by), Some(By::Foreign(7)));
        let beat = ForeignAct::Heartbeat { mark: mark(1), ttl: TTL };
        assert_eq!(bench.foreign(&beat), ForeignAnswer::Held(mark(2)), "under a new version");
        assert!(!is_grant(&bench.ask(&takeover(1, 2, &seen.version))));
        let now = holding(&bench.ask(&acquire(1, 3))).version;
        assert!(is_grant(&bench.ask(&takeover(1, 4, &now))));
        let stale = mark(2);
        let beat = ForeignAct::Heartbeat { mark: stale, ttl: TTL };
        for late in [beat, ForeignAct::ReleaseDelete { mark: stale }, ForeignAct::ReleaseKeep { mark: stale }] {
            assert_eq!(bench.foreign(&late), ForeignAnswer::Refused);
        }
        let ForeignAnswer::Read(Some(row)) = bench.foreign(&ForeignAct::Read) else { panic!("there is a row") };
        assert_eq!((&row.version, row.ttl, row.released), (&version(1, 4), TTL, false));
        bench.ask(&renew(1, 5));
        let over = |seen| ForeignAct::AcquireExpired { mark: mark(3), ttl: TTL, seen };
        assert_eq!(bench.foreign(&over(row.version)), ForeignAnswer::Refused, "we were alive in between");
        assert_eq!(bench.foreign(&ForeignAct::AcquireReleased { mark: mark(3), ttl: TTL }), ForeignAnswer::Refused);
        assert_eq!(bench.foreign(&over(version(1, 5))), ForeignAnswer::Held(mark(3)));
        assert!(matches!(holding(&bench.ask(&renew(1, 6))).holder, Holder::Foreign));
    }
}
