//! From operations to outcomes: each is read, decided, and written where nobody has written since. What is remembered
//! need not be read.

use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use leasehold_core::member::Phase;
use leasehold_core::op::{Denial, LockOp, Op, Outcome, Refusal};

use super::memory::Memory;
use super::txn::{self, Draft, Position, Row, Txn, misfit};
use super::{Codec, HttpResponse, Request};
use crate::decide::{Shown, Tries, carried_out, decide};
use crate::exchange::{self, Progress, Round};

/// One request of the client. Drop it and its operations are [`Outcome::Unknown`], unless only requests that write nothing
/// were sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exchange {
    unix_ms: u64,
    legs: Vec<Leg>,
    /// A request carries several operations.
    round: Round<Request, Vec<usize>>,
    /// How far the store's history was known to go when the requests were written.
    furthest: Option<Position>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Leg {
    op: Op,
    /// The lock, and the marker where the operation asks for it.
    keys: Vec<String>,
    /// The write under way; `None` while the keys are read.
    written: Option<Write>,
    tries: Tries,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Write {
    /// The outcome once it succeeds.
    outcome: Outcome,
    values: Vec<(String, String)>,
    marks_a_loss: bool,
}

impl Write {
    /// Something on the way has sent it twice, and this is the answer to the second: nobody else writes these very values.
    fn is_in(&self, refused: &Txn) -> bool {
        let is_there = |(key, value): &(String, String)| {
            refused.rows.iter().any(|row| row.key == *key && row.value.as_deref() == Some(value.as_bytes()))
        };
        self.values.iter().all(is_there)
    }
}

enum Next {
    Done(Outcome),
    Write(Write, Draft),
}

impl Exchange {
    pub(super) fn new(codec: &Codec, memory: &Memory, ops: &[LockOp], unix_ms: u64) -> Self {
        let leg = |LockOp { resource, op, .. }: &LockOp| {
            let mut keys = vec![codec.key(resource)];
            keys.extend(op.asks_a_quorum().then(|| codec.marker_key()));
            Leg { op: carried_out(op), keys, written: None, tries: Tries::default() }
        };
        let (legs, round) = (ops.iter().map(leg).collect(), Round::new(ops.len()));
        let mut exchange = Self { unix_ms, legs, round, furthest: memory.furthest() };
        let begun = exchange.legs.iter_mut().enumerate().map(|(at, leg)| (at, leg.begin(memory, unix_ms))).collect();
        exchange.send(begun);
        exchange
    }

    /// Puts drafts into as few requests as possible: etcd takes no key twice in one.
    fn send(&mut self, drafts: Vec<(usize, Draft)>) {
        let mut requests: Vec<Vec<(usize, Draft)>> = Vec::new();
        for (at, draft) in drafts {
            let is_free = |request: &&mut Vec<(usize, Draft)>| {
                !request.iter().any(|(_, other)| other.puts.iter().any(|key| draft.puts.contains(key)))
            };
            match requests.iter_mut().find(is_free) {
                Some(request) => request.push((at, draft)),
                None => requests.push(vec![(at, draft)]),
            }
        }
        for request in requests {
            let (legs, drafts) = request.into_iter().unzip();
            self.round.ask(legs, Draft::together(drafts));
        }
    }
}

impl exchange::Exchange for Exchange {
    type Ask = Request;
    type Heard = HttpResponse;
    type Memory = Memory;

    fn requests(&self) -> &[Request] {
        self.round.requests()
    }

    fn answers(&mut self, memory: &mut Memory, answers: Vec<Result<HttpResponse, Outcome>>) -> Progress {
        let mut drafts = Vec::new();
        for (legs, answer) in self.round.take(answers) {
            let keys: Vec<&[String]> =
                legs.iter().filter_map(|at| self.legs.get(*at)).map(|leg| leg.keys.as_slice()).collect();
            let txns: Vec<Result<Txn, Outcome>> = match answer.and_then(|response| txn::parse(&response, &keys)) {
                Ok((txns, position)) => {
                    position.into_iter().for_each(|position| memory.saw(position, self.furthest));
                    txns.into_iter().map(Ok).collect()
                }
                Err(outcome) => legs.iter().map(|_| Err(outcome.clone())).collect(),
            };
            for (at, txn) in legs.into_iter().zip(txns) {
                let Some(leg) = self.legs.get_mut(at) else { continue };
                match leg.heard(txn, memory, self.unix_ms) {
                    Next::Done(outcome) => self.round.done(at, outcome),
                    Next::Write(write, draft) => {
                        leg.written = Some(write);
                        drafts.push((at, draft));
                    }
                }
            }
        }
        self.furthest = memory.furthest();
        self.send(drafts);
        self.round.progress()
    }
}

impl Leg {
    /// Writes at once where all keys are remembered, and that leads to a write; otherwise it reads.
    fn begin(&mut self, memory: &Memory, unix_ms: u64) -> Draft {
        let remembered: Option<Vec<Row>> = self.keys.iter().map(|key| memory.row(key)).collect();
        match remembered.map(|rows| self.decide(&rows, memory, unix_ms)) {
            Some(Ok(Next::Write(write, draft))) => {
                self.written = Some(write);
                draft
            }
            Some(Ok(Next::Done(_)) | Err(_)) | None => Draft::reading(&self.keys),
        }
    }

    fn heard(&mut self, txn: Result<Txn, Outcome>, memory: &mut Memory, unix_ms: u64) -> Next {
        let txn = match (txn, &self.written) {
            (Ok(txn), Some(write)) if txn.succeeded || !self.op.is_written_alike() && write.is_in(&txn) => {
                write.values.iter().for_each(|(key, value)| memory.wrote(key, value.as_bytes()));
                if write.marks_a_loss {
                    memory.told();
                }
                return Next::Done(write.outcome.clone());
            }
            (Ok(txn), _) => txn,
            (Err(outcome), written) => {
                self.keys.iter().for_each(|key| memory.forget(key));
                return Next::Done(match (outcome, written) {
                    // Only the store can say so.
                    (Outcome::Applied(_), _) => misfit(),
                    (Outcome::Unknown(fault), None) => Outcome::NotApplied(Refusal::Unavailable(fault)),
                    (outcome, _) => outcome,
                });
            }
        };
        if txn.rows.len() != self.keys.len() {
            return Next::Done(match (misfit(), &self.written) {
                (Outcome::Unknown(fault), None) => Outcome::NotApplied(Refusal::Unavailable(fault)),
                (outcome, _) => outcome,
            });
        }
        for (row, is_lock) in txn.rows.iter().zip(core::iter::once(true).chain(core::iter::repeat(false))) {
            match &row.value {
                // The marker of a quorum hardly ever changes.
                Some(marker) if !is_lock => memory.wrote(&row.key, marker),
                Some(_) | None => memory.forget(&row.key),
            }
        }
        if self.written.is_some()
            && let Err(busy) = self.tries.lost("other clients keep changing the key of this lock")
        {
            return Next::Done(busy);
        }
        self.decide(&txn.rows, memory, unix_ms)
            .unwrap_or_else(|denial| Next::Done(Outcome::NotApplied(Refusal::Denied(denial))))
    }

    /// # Errors
    /// A key holds what this version does not understand.
    fn decide(&self, rows: &[Row], memory: &Memory, unix_ms: u64) -> Result<Next, Denial> {
        let value = |at: usize| rows.get(at).and_then(|row| row.value.as_deref());
        let run = memory.run();
        let marker = value(1).unwrap_or_default();
        let shown = Shown { marker, run: run.as_ref(), has_lost: memory.has_lost() };
        let decided = decide(&self.op, value(0), &shown, None, unix_ms)?;
        let marks_a_loss = decided.marker.as_ref().is_some_and(|marker| marker.phase == Phase::Joining);
        let values = [decided.lock, decided.marker.map(|marker| marker.text())];
        let values = self.keys.iter().zip(values).filter_map(|(key, value)| Some((key.clone(), value?)));
        let values: Vec<(String, String)> = values.collect();
        if values.is_empty() {
            return Ok(Next::Done(decided.outcome));
        }
        let draft = Draft::writing(rows, &values);
        Ok(Next::Write(Write { outcome: decided.outcome, values, marks_a_loss }, draft))
    }
}
