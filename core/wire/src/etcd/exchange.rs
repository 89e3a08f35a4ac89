//! From operations to outcomes: each is read, decided, and written where nobody has written since.

use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use core::time::Duration;

use leasehold_core::Monotonic;
use leasehold_core::config::MAX_KEEP;
use leasehold_core::member::Marker;
use leasehold_core::node::{NodeMemory, serve, wrong_quorum};
use leasehold_core::op::{Denial, Fault, FaultKind, LockOp, Op, Outcome, Refusal};
use leasehold_core::store::StoreNow;

use super::record::{self, NOW};
use super::txn::{Row, Txn, misfit};
use super::{Request, Response, Session};

/// The time that a mark is kept longer than asked, since the clock of a later client may be ahead of that of the writer.
const CLOCK_MARGIN: Duration = Duration::from_secs(60);
/// How often an operation is decided anew because others write the same key.
const MOST_WRITES: u32 = 8;

/// One request of the client: for each operation one request at a time. Drop it and its operations are
/// [`Outcome::Unknown`], unless only requests that write nothing were sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exchange {
    unix_ms: u64,
    legs: Vec<Leg>,
    /// Which legs are open, in the order of `requests`.
    open: Vec<usize>,
    requests: Vec<Request>,
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
    /// The outcome once the write under way succeeds; `None` while the keys are read.
    written: Option<Outcome>,
    writes: u32,
    outcome: Option<Outcome>,
}

enum Next {
    Done(Outcome),
    Write(Outcome, Request),
}

impl Exchange {
    pub(super) fn new(session: Session, ops: &[LockOp], unix_ms: u64) -> Self {
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
        let legs: Vec<Leg> = ops.iter().map(leg).collect();
        let requests = legs.iter().map(|leg| Txn::reading(&leg.keys)).collect();
        Self { unix_ms, open: (0..legs.len()).collect(), legs, requests }
    }

    /// One for each operation that is still open. They may be sent in any order and at the same time.
    pub fn requests(&self) -> &[Request] {
        &self.requests
    }

    /// The answers to [`Exchange::requests`], in their order, one for each. In the place of a response that never came
    /// stands what is known of its request: [`Outcome::NotApplied`] if it certainly never left, and else
    /// [`Outcome::Unknown`].
    pub fn answers(&mut self, answers: Vec<Result<Response, Outcome>>) -> Progress {
        let mut answers = answers.into_iter();
        self.requests.clear();
        for at in core::mem::take(&mut self.open) {
            let Some(leg) = self.legs.get_mut(at) else { continue };
            match leg.heard(answers.next().unwrap_or_else(|| Err(misfit())), self.unix_ms) {
                Next::Done(outcome) => leg.outcome = Some(outcome),
                Next::Write(outcome, request) => {
                    leg.written = Some(outcome);
                    leg.writes += 1;
                    self.open.push(at);
                    self.requests.push(request);
                }
            }
        }
        if self.open.is_empty() {
            let outcome = |leg: &Leg| leg.outcome.clone().unwrap_or_else(misfit);
            return Progress::Done(self.legs.iter().map(outcome).collect());
        }
        Progress::Again
    }
}

impl Leg {
    fn heard(&self, answer: Result<Response, Outcome>, unix_ms: u64) -> Next {
        let txn = answer.and_then(|response| Txn::parse(&response, &self.keys));
        let txn = match (txn, &self.written) {
            (Ok(txn), Some(outcome)) if txn.succeeded => return Next::Done(outcome.clone()),
            (Ok(txn), _) => txn,
            // Only the store can say so.
            (Err(Outcome::Applied(_)), _) => return Next::Done(misfit()),
            (Err(Outcome::Unknown(fault)), None) => {
                return Next::Done(Outcome::NotApplied(Refusal::Unavailable(fault)));
            }
            (Err(outcome), _) => return Next::Done(outcome),
        };
        if txn.rows.len() != self.keys.len() {
            return Next::Done(match (misfit(), &self.written) {
                (Outcome::Unknown(fault), None) => Outcome::NotApplied(Refusal::Unavailable(fault)),
                (outcome, _) => outcome,
            });
        }
        if self.writes >= MOST_WRITES {
            let detail = "others write the key of this lock all the time";
            return Next::Done(Outcome::NotApplied(Refusal::Unavailable(Fault::new(FaultKind::Busy, detail))));
        }
        self.decide(&txn.rows, unix_ms)
            .unwrap_or_else(|denial| Next::Done(Outcome::NotApplied(Refusal::Denied(denial))))
    }

    /// # Errors
    /// A key holds what this version does not understand.
    fn decide(&self, rows: &[Row], unix_ms: u64) -> Result<Next, Denial> {
        let value = |at: usize| rows.get(at).and_then(|row| row.value.as_deref());
        let row = value(0).map(record::Row::parse).transpose()?.unwrap_or_default();
        let marker = value(1).and_then(Marker::parse);
        if let (Op::Acquire(acquire), Some(_), None) = (&self.op, value(1), &marker)
            && let Some(asked) = &acquire.member
        {
            return Err(wrong_quorum((asked.quorum, asked.max_ttl_ms), None));
        }
        let memory = NodeMemory { marker: marker.as_ref(), trusted: row.trusted.as_ref(), run: None };
        let now = StoreNow { boot: NOW, uptime: Monotonic::from_ns(0), unix_ms };
        let served = serve(row.record.as_ref(), memory, &self.op, &now);
        let record = served.record.map(|record| row.with(&record, served.trusted));
        let values = [record, served.marker.map(|marker| marker.text())];
        let values = self.keys.iter().zip(values).filter_map(|(key, value)| Some((key.as_str(), value?)));
        let values: Vec<(&str, String)> = values.collect();
        if values.is_empty() {
            return Ok(Next::Done(served.outcome));
        }
        Ok(Next::Write(served.outcome, Txn::writing(rows, &values)))
    }
}
