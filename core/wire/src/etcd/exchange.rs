//! From operations to outcomes: each is read, decided, and written where nobody has written since. What is remembered
//! need not be read.

use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use core::time::Duration;

use leasehold_core::Monotonic;
use leasehold_core::config::MAX_KEEP;
use leasehold_core::member::{Marker, Phase, RunId};
use leasehold_core::node::{NodeMemory, serve, wrong_quorum};
use leasehold_core::op::{Denial, Fault, FaultKind, LockOp, Op, Outcome, Refusal};
use leasehold_core::store::StoreNow;

use super::memory::Memory;
use super::record::{self, NOW};
use super::txn::{self, Draft, Position, Row, Txn, misfit};
use super::{Request, Response, Session};

/// The time that a mark is kept longer than asked, since the clock of a later client may be ahead of that of the writer.
const CLOCK_MARGIN: Duration = Duration::from_secs(60);
/// How often an operation is decided again because others write the same key.
const MOST_WRITES: u32 = 8;

/// One request of the client. Drop it and its operations are [`Outcome::Unknown`], unless only requests that write nothing
/// were sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exchange {
    unix_ms: u64,
    legs: Vec<Leg>,
    /// The legs of each request, in the order of `requests`.
    open: Vec<Vec<usize>>,
    requests: Vec<Request>,
    /// How far the store's history was known to go when the requests were written.
    furthest: Option<Position>,
}

/// Where an exchange stands after answers.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Progress {
    /// The outcome of each operation, in their order.
    Done(Vec<Outcome>),
    /// Send [`Exchange::requests`]: they have changed.
    Again,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Leg {
    op: Op,
    /// The lock, and the marker where the operation asks for it.
    keys: Vec<String>,
    /// The write under way; `None` while the keys are read.
    written: Option<Write>,
    writes: u32,
    outcome: Option<Outcome>,
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
    pub(super) fn new(session: &Session, memory: &Memory, ops: &[LockOp], unix_ms: u64) -> Self {
        let leg = |LockOp { resource, op, .. }: &LockOp| {
            let mut op = op.clone();
            if let Op::Finish(finish) = &mut op
                && !finish.keep.is_zero()
            {
                finish.keep = finish.keep.saturating_add(CLOCK_MARGIN).min(MAX_KEEP);
            }
            let mut keys = vec![session.key(resource)];
            keys.extend(op.asks_a_quorum().then(|| session.marker_key()));
            Leg { op, keys, written: None, writes: 0, outcome: None }
        };
        let legs = ops.iter().map(leg).collect();
        let mut exchange = Self { unix_ms, legs, open: Vec::new(), requests: Vec::new(), furthest: memory.furthest() };
        let begun = exchange.legs.iter_mut().enumerate().map(|(at, leg)| (at, leg.begin(memory, unix_ms))).collect();
        exchange.send(begun);
        exchange
    }

    /// They may be sent in any order and at the same time.
    pub fn requests(&self) -> &[Request] {
        &self.requests
    }

    /// The answers to [`Exchange::requests`], in their order, one for each. In the place of a response that never came
    /// stands what is known of its request: [`Outcome::NotApplied`] if it certainly never left, and else
    /// [`Outcome::Unknown`].
    pub fn answers(&mut self, memory: &mut Memory, answers: Vec<Result<Response, Outcome>>) -> Progress {
        let mut answers = answers.into_iter();
        let mut drafts = Vec::new();
        for legs in core::mem::take(&mut self.open) {
            let answer = answers.next().unwrap_or_else(|| Err(misfit()));
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
                    Next::Done(outcome) => leg.outcome = Some(outcome),
                    Next::Write(write, draft) => {
                        leg.written = Some(write);
                        leg.writes += 1;
                        drafts.push((at, draft));
                    }
                }
            }
        }
        self.furthest = memory.furthest();
        self.send(drafts);
        if self.open.is_empty() {
            let outcome = |leg: &Leg| leg.outcome.clone().unwrap_or_else(misfit);
            return Progress::Done(self.legs.iter().map(outcome).collect());
        }
        Progress::Again
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
        self.open = requests.iter().map(|request| request.iter().map(|(at, _)| *at).collect()).collect();
        let drafts = |request: Vec<(usize, Draft)>| request.into_iter().map(|(_, draft)| draft).collect();
        self.requests = requests.into_iter().map(|request| Draft::together(drafts(request))).collect();
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

    fn heard(&self, txn: Result<Txn, Outcome>, memory: &mut Memory, unix_ms: u64) -> Next {
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
        if self.writes >= MOST_WRITES {
            let detail = "others write the key of this lock all the time";
            return Next::Done(Outcome::NotApplied(Refusal::Unavailable(Fault::new(FaultKind::Busy, detail))));
        }
        self.decide(&txn.rows, memory, unix_ms)
            .unwrap_or_else(|denial| Next::Done(Outcome::NotApplied(Refusal::Denied(denial))))
    }

    /// # Errors
    /// A key holds what this version does not understand.
    fn decide(&self, rows: &[Row], memory: &Memory, unix_ms: u64) -> Result<Next, Denial> {
        let value = |at: usize| rows.get(at).and_then(|row| row.value.as_deref());
        let mut row = value(0).map(record::Row::parse).transpose()?.unwrap_or_default();
        if let Op::Release(_) = &self.op {
            row.freed_at(unix_ms);
        }
        let marker = value(1).and_then(Marker::parse);
        if let (Op::Acquire(acquire), Some(_), None) = (&self.op, value(1), &marker)
            && let Some(asked) = &acquire.member
        {
            return Err(wrong_quorum((asked.quorum, asked.max_ttl_ms), None));
        }
        let run = memory.run();
        // Other data than the marker was written beside: as if the marker had been lost with it, however durable it is.
        let marker = marker.filter(|marker| !memory.has_lost() && !is_of_other_data(marker, run.as_ref()));
        let before = NodeMemory { marker: marker.as_ref(), trusted: row.trusted.as_ref(), run: run.as_ref() };
        let now = StoreNow { boot: NOW, uptime: Monotonic::from_ns(0), unix_ms };
        let served = serve(row.record.as_ref(), before, &self.op, &now);
        let marks_a_loss = served.marker.as_ref().is_some_and(|marker| marker.phase == Phase::Joining);
        let record = served.record.map(|record| row.with(&record, served.trusted));
        let values = [record, served.marker.map(|marker| marker.text())];
        let values = self.keys.iter().zip(values).filter_map(|(key, value)| Some((key.clone(), value?)));
        let values: Vec<(String, String)> = values.collect();
        if values.is_empty() {
            return Ok(Next::Done(served.outcome));
        }
        let draft = Draft::writing(rows, &values);
        Ok(Next::Write(Write { outcome: served.outcome, values, marks_a_loss }, draft))
    }
}

fn is_of_other_data(marker: &Marker, run: Option<&RunId>) -> bool {
    marker.run.is_some() && marker.is_of_another_run(run)
}
