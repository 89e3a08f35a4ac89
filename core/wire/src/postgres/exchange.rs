//! From operations to outcomes, in as many statements as it takes.
//!
//! | operation | statements, one after the other |
//! |---|---|
//! | acquire, release, finish, revoke, raise | one; where it was refused a read, and where that shows no reason the statement again |
//! | acquire where those who wait stand in the queue | where it was refused, another that joins the queue and reads; before the first of a client, one that says that it is alive |
//! | acquire in a quorum | also the marker where it has to be written, and then the acquire again |
//! | renewals of one request | one for all, and a read for those that were refused |
//! | read | one |

mod in_queue;

use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;
use core::time::Duration;

use leasehold_core::member::{Durability, Marker, Membership};
use leasehold_core::node::{NodeMemory, in_doubt};
use leasehold_core::op::{
    Acquire, Applied, Denial, DenialKind, Fault, FaultKind, Finish, LockOp, Op, Outcome, Raise, Refusal, Release,
    Renew, Revoke, Seen,
};
use leasehold_core::session::none_is_told;
use leasehold_core::{Nonce, Token};

use super::membership::{self, Verdict, conditions, doubt, judge};
use super::queue::{self, Asker, Told};
use super::rows::{self, LockRow, Memory, Misfit, Row};
use super::sql::Sql;
use super::statements::Texts;
use super::{Answer, Field, Param, Statement};
use crate::Progress;
use crate::session_text;

/// How often an operation is sent whose refusal shows no reason, or whose marker others write at the same time.
const MOST_TRIES: u32 = 3;

/// One request of the client, one statement at a time. Drop it and its operations are [`Outcome::Unknown`], unless nothing
/// was sent yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exchange {
    texts: Arc<Texts>,
    ops: Vec<LockOp>,
    outcomes: Vec<Option<Outcome>>,
    /// How long a statement waits for a row.
    patience: Duration,
    step: Step,
    /// The operations of the step.
    open: Vec<usize>,
    tries: u32,
    statement: Statement,
    afterwards: Option<Statement>,
    /// The one who asks, where it may stand in the queue.
    asker: Option<Asker>,
    told: Told,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Step {
    /// The operation itself; in a quorum with the marker that is known to let it vote.
    Write(Option<String>),
    /// A look at the reason of a refusal.
    Read,
    /// The client is about to wait: says that it is alive.
    See,
    /// Joins the queue, and looks at the reason of a refusal.
    Join,
    /// The marker has to be written; the refusal that then stands, or none where the node votes.
    Mark { marker: Marker, found: String, refusal: Option<Refusal> },
}

/// The step after an answer.
enum Next {
    Done(Outcome),
    Go(Step),
    /// The same again, a few times.
    Retry,
}

impl Exchange {
    pub(super) fn new(texts: Arc<Texts>, ops: &[LockOp], left: Duration, asker: Option<Asker>) -> Self {
        let mut exchange = Self {
            texts,
            ops: ops.to_vec(),
            outcomes: vec![None; ops.len()],
            patience: left * 3 / 4,
            step: Step::Read,
            open: Vec::new(),
            tries: 0,
            statement: Statement::default(),
            afterwards: None,
            asker,
            told: Told::default(),
        };
        exchange.next_operation();
        exchange
    }

    /// The statement to send. There is none, and its text is empty, where there are no operations.
    pub const fn statement(&self) -> &Statement {
        &self.statement
    }

    /// A statement to send once the outcomes are told, after the first grant of a name: it forgets others that nobody has
    /// used for a week. Its answer does not matter.
    pub const fn afterwards(&mut self) -> Option<Statement> {
        self.afterwards.take()
    }

    /// Turns and places of queues that the answers have told.
    pub fn told(&mut self) -> Told {
        core::mem::take(&mut self.told)
    }

    /// Takes the answer to [`Exchange::statement`].
    pub fn answer(&mut self, answer: Answer) -> Progress {
        match answer {
            Ok(rows) => self.rows(&rows),
            Err(outcome) => return self.failed(outcome),
        }
        if self.open.is_empty() && !self.next_operation() {
            return self.done();
        }
        self.statement = self.write_statement();
        Progress::Again
    }

    /// Begins with the next operation, if there is one: renewals together, others one by one.
    fn next_operation(&mut self) -> bool {
        let waits = |at: &usize| self.outcomes[*at].is_none();
        let is_renewal = |at: &usize| matches!(self.ops[*at].op, Op::Renew(_));
        let all = 0..self.ops.len();
        let Some(first) = all.clone().find(waits) else { return false };
        self.open =
            if is_renewal(&first) { all.filter(|at| waits(at) && is_renewal(at)).collect() } else { vec![first] };
        self.step = if matches!(self.ops[first].op, Op::Tell(_) | Op::Read) { Step::Read } else { Step::Write(None) };
        self.tries = 0;
        self.statement = self.write_statement();
        true
    }

    fn done(&mut self) -> Progress {
        let nothing = || Outcome::NotApplied(Refusal::Unavailable(Fault::of(FaultKind::Cancelled)));
        Progress::Done(self.outcomes.iter_mut().map(|outcome| outcome.take().unwrap_or_else(nothing)).collect())
    }

    /// Ends: what is open has this outcome, and what was not sent yet never will be.
    fn failed(&mut self, outcome: Outcome) -> Progress {
        // A refusal was answered before the read or the marker was asked for.
        let outcome = match (&self.step, outcome) {
            (Step::Read | Step::See | Step::Join | Step::Mark { .. }, Outcome::Unknown(fault)) => {
                Outcome::NotApplied(Refusal::Unavailable(fault))
            }
            (_, outcome) => outcome,
        };
        for at in core::mem::take(&mut self.open) {
            self.outcomes[at] = Some(outcome.clone());
        }
        self.done()
    }

    fn rows(&mut self, rows: &[Row]) {
        match self.step.clone() {
            Step::Write(expected) => {
                let op = self.ops[self.open[0]].op.clone();
                if matches!(op, Op::Renew(_)) {
                    self.renewed(rows);
                } else {
                    if rows.first().and_then(|row| row.last()) == Some(&Field::Bool(true)) {
                        let name = self.ops[self.open[0]].resource.as_str().to_string();
                        self.afterwards = Some(Statement::new(&self.texts.forget, [Param::Text(Some(name))]));
                    }
                    let next = written(&op, expected.as_deref(), rows);
                    self.note_turn(&op, rows);
                    self.follow(self.by_way_of_the_queue(&op, next));
                }
            }
            Step::See => {
                self.told.is_seen = true;
                self.step = Step::Join;
            }
            Step::Join => {
                let next = self.joined(rows);
                self.follow(next);
            }
            Step::Mark { marker, refusal, .. } => {
                let next = match (rows.is_empty(), refusal) {
                    (true, _) => Next::Retry,
                    (false, Some(refusal)) => Next::Done(Outcome::NotApplied(refusal)),
                    (false, None) => Next::Go(Step::Write(Some(marker.text()))),
                };
                self.follow(next);
            }
            Step::Read => match read_all(rows) {
                Err(Misfit) => {
                    for at in core::mem::take(&mut self.open) {
                        self.outcomes[at] =
                            Some(if matches!(self.ops[at].op, Op::Tell(_) | Op::Read) { misfit() } else { busy() });
                    }
                }
                Ok((memory, locks)) => {
                    let open = core::mem::take(&mut self.open);
                    for at in open {
                        let LockOp { resource, op, .. } = &self.ops[at];
                        let lock = locks.iter().find(|(name, _)| *name == resource.as_str());
                        let next = match lock.map(|(_, found)| found).cloned().transpose() {
                            Ok(found) => explained(op, found.as_ref(), &memory, false),
                            Err(denial) => Next::Done(Outcome::NotApplied(Refusal::Denied(denial))),
                        };
                        match next {
                            Next::Done(outcome) => self.outcomes[at] = Some(outcome),
                            next @ (Next::Go(_) | Next::Retry) => {
                                self.open = vec![at];
                                self.follow(next);
                            }
                        }
                    }
                }
            },
        }
    }

    /// Renewals that no row answers were refused.
    fn renewed(&mut self, rows: &[Row]) {
        let (renewed, refused): (Vec<_>, Vec<_>) = self.open.iter().partition(|at| {
            let LockOp { resource, op, .. } = &self.ops[**at];
            rows.iter().any(|row| renews(row, resource.as_str(), op.nonce()))
        });
        for at in renewed {
            self.outcomes[at] = Some(Outcome::Applied(Applied::Renewed));
        }
        self.open = refused;
        self.step = Step::Read;
    }

    /// For the only open operation.
    fn follow(&mut self, next: Next) {
        match next {
            Next::Done(outcome) => {
                for at in core::mem::take(&mut self.open) {
                    self.outcomes[at] = Some(outcome.clone());
                }
            }
            Next::Go(step) => self.step = step,
            Next::Retry => self.step = Step::Write(None),
        }
        if matches!(self.step, Step::Write(_)) && !self.open.is_empty() {
            self.tries += 1;
            if self.tries >= MOST_TRIES {
                for at in core::mem::take(&mut self.open) {
                    self.outcomes[at] = Some(busy());
                }
            }
        }
    }

    fn write_statement(&self) -> Statement {
        let texts = &*self.texts;
        let of = |at: &usize| &self.ops[*at];
        let Some(LockOp { resource, op, .. }) = self.open.first().map(of) else { return Statement::default() };
        match (&self.step, op) {
            (Step::Mark { marker, found, .. }, _) => membership::mark(texts, found, Some(marker)),
            (Step::See, _) => {
                let client = self.asker.map(|asker| asker.client.0.to_vec());
                Statement::maybe(texts.queues.as_ref().map(|queues| &queues.see), [Param::Bytea(client)])
            }
            (Step::Join, op) => {
                let acquire = if let Op::Acquire(acquire) = op { Some(acquire) } else { None };
                let in_queue = acquire.is_some_and(|acquire| acquire.in_queue);
                // A late copy of what has the lock, or had it, waits for nothing.
                let nonce = Param::Bytea(acquire.map(|acquire| acquire.nonce.as_bytes().to_vec()));
                let name = Param::Text(Some(resource.as_str().to_string()));
                let seq = Param::Int8(acquire.map_or(0, |acquire| acquire.seq.get().into()));
                // Nor does a request for work that is done.
                let unless_done = Param::Bool(acquire.is_some_and(|acquire| acquire.unless_done));
                let ticket = self.ticket_param();
                let params = [self.lock_timeout(), name, ticket, Param::Bool(in_queue), nonce, seq, unless_done];
                Statement::maybe(texts.queues.as_ref().map(|queues| &queues.join), params)
            }
            (Step::Read, _) => {
                let in_quorum = self.open.iter().any(|at| of(at).op.asks_a_quorum());
                let names = self.open.iter().map(|at| of(at).resource.as_str().to_string()).collect();
                let sql = if in_quorum { &texts.read_in_quorum } else { &texts.read };
                Statement::new(sql, [Param::TextArray(names)])
            }
            (Step::Write(_), Op::Renew(_)) => self.renewals(),
            (Step::Write(expected), op) => {
                let mut params = vec![self.lock_timeout(), Param::Text(Some(resource.as_str().to_string()))];
                let mut sql = write(texts, op, expected.as_deref(), &mut params);
                if let (Op::Acquire(acquire), Some(asker)) = (op, self.asker)
                    && acquire.member.is_none()
                    && (asker.has_place || self.tries > 0)
                {
                    sql = Some(&texts.acquire_in_turn);
                    params.extend([self.ticket_param(), Param::Bool(acquire.in_queue)]);
                }
                if matches!(op, Op::Release(_)) && self.tries > 0 {
                    sql = Some(&texts.release_to_next);
                }
                Statement::maybe(sql, params)
            }
        }
    }

    fn ticket_param(&self) -> Param {
        Param::Bytea(self.ticket().map(queue::named))
    }

    fn lock_timeout(&self) -> Param {
        Param::Text(Some(self.patience.as_millis().max(1).to_string()))
    }

    fn renewals(&self) -> Statement {
        let (mut names, mut nonces, mut seqs, mut ttls) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for at in &self.open {
            let LockOp { resource, op, .. } = &self.ops[*at];
            if let Op::Renew(renew) = op {
                names.push(resource.as_str().to_string());
                nonces.push(renew.nonce.as_bytes().to_vec());
                seqs.push(i64::from(renew.seq.get()));
                ttls.push(micros(renew.record_ttl));
            }
        }
        let arrays =
            [Param::TextArray(names), Param::ByteaArray(nonces), Param::Int8Array(seqs), Param::Int8Array(ttls)];
        let params: Vec<_> = core::iter::once(self.lock_timeout()).chain(arrays).collect();
        Statement::new(&self.texts.renew, params)
    }
}

/// The statement of an operation that is neither a renewal nor a read, and its parameters behind the first two.
fn write<'a>(texts: &'a Texts, op: &Op, expected: Option<&str>, params: &mut Vec<Param>) -> Option<&'a Sql> {
    let nonce = |nonce: &Nonce| Param::Bytea(Some(nonce.as_bytes().to_vec()));
    Some(match op {
        Op::Acquire(acquire) => {
            params.extend([
                int8(acquire.floor.get().max(1)),
                nonce(&acquire.nonce),
                Param::Int8(acquire.seq.get().into()),
                Param::Int8(micros(acquire.record_ttl)),
                Param::Text(Some(session_text::write_owner(&acquire.owner, acquire.session.as_ref()))),
                Param::Bytea(acquire.data.as_ref().map(|data| data.as_bytes().to_vec())),
                Param::Bool(acquire.unless_done),
            ]);
            match &acquire.member {
                None => &texts.acquire,
                Some(asked) => {
                    params.extend(conditions(asked, expected));
                    &texts.vote
                }
            }
        }
        Op::Release(release) => {
            params.push(nonce(&release.nonce));
            &texts.release
        }
        Op::Finish(finish) => {
            params.extend([
                nonce(&finish.nonce),
                int8(finish.token.get()),
                Param::Text(Some(finish.owner.as_str().to_string())),
                Param::Int8(micros(finish.keep)),
                int8(finish.counter.get()),
            ]);
            match &finish.about {
                None => &texts.finish,
                Some(about) => {
                    params.push(Param::Text(Some(rows::about_text(about))));
                    &texts.finish_with_about
                }
            }
        }
        Op::Revoke(revoke) => {
            params.push(nonce(&revoke.nonce));
            &texts.revoke
        }
        Op::Raise(raise) => {
            params.extend([
                nonce(&raise.nonce),
                int8(raise.token.get()),
                Param::Text(raise.loss.as_ref().map(ToString::to_string)),
            ]);
            &texts.raise
        }
        Op::Renew(_) | Op::Tell(_) | Op::Read => return None,
    })
}

/// Reads the answer to the statement of an operation that is neither a renewal nor a read.
fn written(op: &Op, expected: Option<&str>, rows: &[Row]) -> Next {
    if let Op::Acquire(acquire) = op
        && let Some(asked) = &acquire.member
    {
        return voted(acquire, asked, expected, rows);
    }
    let row = match rows {
        [] => return Next::Go(Step::Read),
        [row] => row.as_slice(),
        _ => return Next::Done(misfit()),
    };
    let applied = match (op, row) {
        (Op::Acquire(_), [counter, _]) => rows::token(counter).map(|counter| Applied::Acquired { counter }),
        (Op::Raise(_), [counter]) => rows::token(counter).map(|counter| Applied::Raised { counter }),
        (Op::Release(_), [_, ..]) => Some(Applied::Released),
        (Op::Finish(_), [_, ..]) => Some(Applied::Finished),
        (Op::Revoke(_), [_]) => Some(Applied::Revoked),
        (
            Op::Acquire(_)
            | Op::Raise(_)
            | Op::Release(_)
            | Op::Finish(_)
            | Op::Revoke(_)
            | Op::Tell(_)
            | Op::Renew(_)
            | Op::Read,
            _,
        ) => None,
    };
    Next::Done(applied.map_or_else(misfit, Outcome::Applied))
}

/// Reads the answer to an acquire in a quorum.
fn voted(acquire: &Acquire, asked: &Membership, expected: Option<&str>, rows: &[Row]) -> Next {
    let [row] = rows else { return Next::Done(misfit()) };
    let [marker, votes, run, now, counter, trust, _] = row.as_slice() else { return Next::Done(misfit()) };
    let Ok(memory) = rows::memory_of(&[marker.clone(), run.clone(), now.clone()]) else { return Next::Done(misfit()) };
    let (write, verdict) = judge(asked, &memory);
    match (verdict, write, *votes == Field::Bool(true)) {
        (Verdict::Counts(counters), None, true) => match rows::token(counter) {
            Some(counter) => {
                let granted = Outcome::Applied(Applied::Acquired { counter });
                let doubt = doubt(counters, rows::loss(trust), acquire.unless_done);
                Next::Done(doubt.map_or(granted.clone(), |loss| in_doubt(granted, loss)))
            }
            None if *counter == Field::Null => Next::Go(Step::Read),
            None => Next::Done(misfit()),
        },
        // The statement votes only where the marker lets it: anything else is no answer of ours.
        (_, _, true) => Next::Done(misfit()),
        (Verdict::Counts(_), None, false) if expected == Some(memory.marker.as_str()) => Next::Done(misfit()),
        (verdict, write, false) => prepared(verdict, write, memory.marker),
    }
}

/// The step after a node showed a marker under which the statement did not vote.
fn prepared(verdict: Verdict, write: Option<Marker>, found: String) -> Next {
    let refusal = match verdict {
        Verdict::Refused(refusal) => Some(refusal),
        Verdict::Counts(_) => None,
    };
    match (write, refusal) {
        (Some(marker), refusal) => Next::Go(Step::Mark { marker, found, refusal }),
        (None, Some(refusal)) => Next::Done(Outcome::NotApplied(refusal)),
        (None, None) => Next::Go(Step::Write(Some(found))),
    }
}

/// Explains a refusal by what a read has shown since. A lock that is free may be kept for another in the queue.
fn explained(op: &Op, found: Option<&LockRow>, memory: &Memory, is_kept: bool) -> Next {
    let ours = |nonce: &Nonce| found.filter(|found| found.nonce == *nonce && !found.released);
    let refused = |quorum: Option<Durability>| {
        let outcome = conflict(found);
        match (quorum, &outcome) {
            (Some(durability), Outcome::NotApplied(Refusal::Conflict(_))) if is_in_doubt(memory, durability) => {
                Next::Done(Outcome::NotApplied(Refusal::Abstains { stamp: None }))
            }
            _ => Next::Done(outcome),
        }
    };
    match op {
        Op::Read => Next::Done(match found.map(LockRow::seen).unwrap_or_default().checked() {
            Ok(seen) => Outcome::Applied(Applied::Read(seen)),
            Err(denial) => Outcome::NotApplied(Refusal::Denied(denial)),
        }),
        Op::Acquire(acquire) => match &acquire.member {
            None => match stands_in_the_way(acquire, found) {
                Some(outcome) => Next::Done(outcome),
                None if is_kept => Next::Done(Outcome::NotApplied(Refusal::Conflict(Seen::default()))),
                None => Next::Retry,
            },
            Some(asked) => match judge(asked, memory) {
                (None, Verdict::Counts(counters)) => match stands_in_the_way(acquire, found) {
                    Some(outcome) => {
                        let trust = found.and_then(|found| found.trust);
                        let doubt = doubt(counters, trust, acquire.unless_done);
                        Next::Done(doubt.map_or(outcome.clone(), |loss| in_doubt(outcome, loss)))
                    }
                    None => Next::Retry,
                },
                (write, verdict) => prepared(verdict, write, memory.marker.clone()),
            },
        },
        // Ours and older than this send: a transaction of somebody's holds the row.
        Op::Renew(Renew { nonce, seq, quorum, .. }) => match ours(nonce) {
            Some(found) if found.is_live() && found.seq < *seq => Next::Done(busy()),
            Some(_) | None => refused(*quorum),
        },
        Op::Release(Release { nonce, quorum }) => ours(nonce).map_or_else(|| refused(*quorum), |_| Next::Retry),
        Op::Finish(finish) => {
            let Finish { nonce, quorum, .. } = &**finish;
            let own_completion = found.and_then(LockRow::standing).is_some_and(|(theirs, _)| theirs == nonce);
            match ours(nonce) {
                Some(found) if found.is_live() && found.counter == finish.counter => Next::Retry,
                // The answer to an earlier send was lost.
                _ if own_completion => Next::Done(Outcome::Applied(Applied::Finished)),
                Some(_) | None => refused(*quorum),
            }
        }
        Op::Tell(_) => Next::Done(Outcome::NotApplied(Refusal::Denied(none_is_told()))),
        Op::Revoke(Revoke { nonce }) | Op::Raise(Raise { nonce, .. }) => match ours(nonce) {
            Some(found) if found.is_live() => Next::Retry,
            Some(_) | None => refused(None),
        },
    }
}

/// The reason for which an acquire is refused; `None` if there is none any more.
fn stands_in_the_way(acquire: &Acquire, found: Option<&LockRow>) -> Option<Outcome> {
    let found = found?;
    if let Some((_, completion)) = found.standing().filter(|_| acquire.unless_done) {
        return Some(Outcome::NotApplied(Refusal::Done(completion.clone().into())));
    }
    let ours = found.nonce == acquire.nonce;
    if ours && (found.released || acquire.seq <= found.seq) || found.is_live() {
        return Some(conflict(Some(found)));
    }
    (found.counter == Token::MAX).then(|| {
        let detail = "the token counter is at 2^53 - 1, which no client reaches; delete the row by hand";
        Outcome::NotApplied(Refusal::Denied(Denial::new(DenialKind::TokensExhausted, detail)))
    })
}

fn conflict(found: Option<&LockRow>) -> Outcome {
    let seen = found.map(LockRow::seen).unwrap_or_default();
    Outcome::NotApplied(match (Seen { done: None, ..seen }).checked() {
        Ok(seen) => Refusal::Conflict(seen),
        Err(denial) => Refusal::Denied(denial),
    })
}

/// Under a marker that is not understood nobody of this version gets a vote.
fn is_in_doubt(memory: &Memory, durability: Durability) -> bool {
    let marker = Marker::parse(memory.marker.as_bytes());
    NodeMemory { marker: marker.as_ref(), trusted: None, run: memory.run.as_ref() }.is_in_doubt(durability)
}

type Locks<'a> = Vec<(&'a str, Result<LockRow, Denial>)>;

fn read_all(rows: &[Row]) -> Result<(Memory, Locks<'_>), Misfit> {
    let mut memory = None;
    let mut locks = Vec::new();
    for row in rows {
        let (shown, lock) = rows::read(row)?;
        memory = Some(shown);
        locks.extend(lock);
    }
    Ok((memory.ok_or(Misfit)?, locks))
}

fn renews(row: &Row, resource: &str, nonce: Option<Nonce>) -> bool {
    let [Field::Text(name), Field::Bytes(bytes)] = row.as_slice() else { return false };
    name == resource && nonce.is_some_and(|nonce| nonce.as_bytes() == bytes.as_slice())
}

fn int8(number: u64) -> Param {
    Param::Int8(i64::try_from(number).unwrap_or(i64::MAX))
}

/// Rounded up: a record stands for at least what was asked.
pub(super) fn micros(length: Duration) -> i64 {
    i64::try_from(length.as_nanos().div_ceil(1_000)).unwrap_or(i64::MAX)
}

/// The answer where a row changes, or stays locked, at each try.
fn busy() -> Outcome {
    let detail = "another transaction has the row of this lock";
    Outcome::NotApplied(Refusal::Unavailable(Fault::new(FaultKind::Busy, detail)))
}

pub(super) fn misfit() -> Outcome {
    Outcome::Unknown(Fault::new(FaultKind::Protocol, "the rows do not fit the statement"))
}
