//! From operations to outcomes: each is read, decided, and written where nobody has written since.

use alloc::string::String;
use alloc::vec::Vec;

use leasehold_core::op::{Denial, DenialKind, Fault, FaultKind, LockOp, Op, Outcome, Refusal};

use super::errors::{Heard, misfit};
use super::memory::{Memory, Row, marker_body, marker_text};
use super::{Codec, HttpResponse, Key, LONG_NAME, Properties, Request};
use crate::decide::{Shown, Tries, carried_out, decide};
use crate::exchange::{self, Progress, Round};

/// One request of the client: for each operation one request at a time. Drop it and its operations are
/// [`Outcome::Unknown`], unless only requests that write nothing were sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exchange {
    codec: Codec,
    unix_ms: u64,
    legs: Vec<Leg>,
    round: Round<Request>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Leg {
    op: Op,
    key: String,
    /// Is kept in the object.
    long_name: Option<String>,
    /// A read may miss a write that was answered before.
    may_be_stale: bool,
    /// A completion may lie in the object, which others count on.
    may_be_of_run: bool,
    step: Step,
    /// The lock that the operation is decided by.
    lock: Row,
    /// The marker that it is decided by; `None` where it was not read.
    marker: Option<Row>,
    /// The marker was read after the lock.
    is_marker_fresh: bool,
    tries: Tries,
    /// The last write of the lock, which was told to have come too late. Something on the way may have sent it twice.
    late: Option<(Outcome, Vec<u8>)>,
}

/// The request that is under way.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Step {
    ReadLock,
    /// For the decision.
    ReadMarker,
    WriteMarker(Vec<u8>),
    WriteLock(Outcome, Vec<u8>),
    /// A write of what was read, where a read may be behind: it shows that nobody has written since.
    Prove(Outcome),
    /// Is the marker still the one that the outcome was decided by?
    Confirm {
        outcome: Outcome,
        has_written: bool,
    },
}

enum Next {
    Done(Outcome),
    Ask(Step),
}

impl Exchange {
    pub(super) fn new(codec: &Codec, memory: &Memory, ops: &[LockOp], unix_ms: u64) -> Self {
        let (legs, round) = (Vec::with_capacity(ops.len()), Round::new(ops.len()));
        let mut exchange = Self { codec: codec.clone(), unix_ms, legs, round };
        for LockOp { resource, op, .. } in ops {
            let Key { text: key, long_name } = codec.key(resource);
            exchange.legs.push(Leg {
                op: carried_out(op),
                key,
                long_name,
                may_be_stale: memory.may_be_stale,
                may_be_of_run: resource.may_be_of_run(),
                step: Step::ReadLock,
                lock: Row::default(),
                marker: None,
                is_marker_fresh: false,
                tries: Tries::default(),
                late: None,
            });
        }
        for at in 0..exchange.legs.len() {
            exchange.begin(at, memory);
        }
        exchange
    }

    /// Writes at once where all that is needed is remembered, and leads to a write; otherwise it reads.
    fn begin(&mut self, at: usize, memory: &Memory) {
        let Some(leg) = self.legs.get_mut(at) else { return };
        if memory.may_be_stale && leg.op.asks_a_quorum() {
            let denial = Denial::new(DenialKind::Other, Properties::NO_NODE);
            return self.round.done(at, Outcome::NotApplied(Refusal::Denied(denial)));
        }
        leg.marker = memory.row(&self.codec.marker_key());
        if let Some(lock) = memory.row(&leg.key) {
            leg.lock = lock;
            if let Next::Ask(step @ Step::WriteLock(..)) = leg.decide(self.unix_ms) {
                leg.step = step;
            }
        }
        self.ask(at);
    }

    fn ask(&mut self, at: usize) {
        let Some(leg) = self.legs.get(at) else { return };
        let codec = &self.codec;
        let request = match &leg.step {
            Step::ReadLock => codec.read(&leg.key),
            Step::ReadMarker | Step::Confirm { .. } => codec.look(),
            Step::WriteMarker(body) => {
                let version = leg.marker.as_ref().and_then(|marker| marker.version.as_ref());
                codec.write(&codec.marker_key(), version, body)
            }
            Step::WriteLock(_, body) => codec.write(&leg.key, leg.lock.version.as_ref(), body),
            Step::Prove(_) => {
                let body = leg.lock.body.as_deref().unwrap_or_default();
                codec.write(&leg.key, leg.lock.version.as_ref(), body)
            }
        };
        self.round.ask(at, request);
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
        for (at, answer) in self.round.take(answers) {
            let Some(leg) = self.legs.get_mut(at) else { continue };
            match leg.heard(&self.codec, answer, memory, self.unix_ms) {
                Next::Done(outcome) => self.round.done(at, outcome),
                Next::Ask(step) => {
                    leg.step = step;
                    self.ask(at);
                }
            }
        }
        self.round.progress()
    }
}

impl Leg {
    fn heard(
        &mut self,
        codec: &Codec,
        answer: Result<HttpResponse, Outcome>,
        memory: &mut Memory,
        unix_ms: u64,
    ) -> Next {
        let answer = answer.as_ref().map_err(Clone::clone);
        let heard = match &self.step {
            Step::ReadLock | Step::ReadMarker | Step::Confirm { .. } => codec.heard_read(answer),
            Step::WriteMarker(_) | Step::WriteLock(..) | Step::Prove(_) => codec.heard_write(answer),
        };
        let step = core::mem::replace(&mut self.step, Step::ReadLock);
        let marker_key = codec.marker_key();
        match (step, heard) {
            (Step::ReadLock, Heard::Read(row)) => {
                memory.note(&self.key, row.clone());
                // Nobody else writes this very body, so the copy that was refused came second.
                let is_it = |body: &Vec<u8>| row.body.as_ref() == Some(body) && row.version != self.lock.version;
                if let Some((outcome, _)) = self.late.take().filter(|(_, body)| is_it(body)) {
                    return self.written(outcome);
                }
                (self.lock, self.is_marker_fresh) = (row, false);
                self.decide(unix_ms)
            }
            (Step::ReadMarker, Heard::Read(row)) => {
                memory.note(&marker_key, row.clone());
                (self.marker, self.is_marker_fresh) = (Some(row), true);
                self.decide(unix_ms)
            }
            (Step::WriteMarker(body), Heard::Written(version)) => {
                let row = Row { version: Some(version), body: Some(body) };
                memory.note(&marker_key, row.clone());
                (self.marker, self.is_marker_fresh) = (Some(row), true);
                self.decide(unix_ms)
            }
            (Step::WriteLock(outcome, body), Heard::Written(version)) => {
                memory.note(&self.key, Row { version: Some(version), body: Some(body) });
                self.written(outcome)
            }
            (Step::Confirm { outcome, has_written }, Heard::Read(row)) => {
                memory.note(&marker_key, row.clone());
                let is_same = self.marker.as_ref().is_some_and(|marker| marker.body == row.body);
                match (is_same, has_written) {
                    (true, _) => Next::Done(outcome),
                    // The lock stands; the next send finds out if it counts, or a release frees it.
                    (false, true) => Next::Done(Outcome::Unknown(Fault::new(
                        FaultKind::Busy,
                        "the membership of the node changed while the lock was written",
                    ))),
                    (false, false) => {
                        (self.marker, self.is_marker_fresh) = (Some(row), true);
                        self.again(unix_ms)
                    }
                }
            }
            (Step::WriteMarker(_), Heard::Raced) => {
                memory.forget(&marker_key);
                self.marker = None;
                self.again(unix_ms)
            }
            (Step::WriteLock(outcome, body), Heard::Raced) => {
                memory.forget(&self.key);
                self.late = (!self.op.is_written_alike()).then_some((outcome, body));
                self.read_again()
            }
            (Step::Prove(outcome), Heard::Written(version)) => {
                memory.note(&self.key, Row { version: Some(version), body: self.lock.body.take() });
                Next::Done(outcome)
            }
            (Step::Prove(outcome), Heard::Raced) => {
                memory.forget(&self.key);
                self.late = self.lock.body.clone().map(|body| (outcome, body));
                self.read_again()
            }
            (Step::WriteLock(..), Heard::Failed(outcome)) => {
                memory.forget(&self.key);
                Next::Done(outcome)
            }
            (Step::Confirm { has_written: true, .. }, Heard::Failed(Outcome::Unknown(fault))) => {
                Next::Done(Outcome::Unknown(fault))
            }
            (Step::Confirm { has_written: true, .. }, Heard::Failed(_)) => Next::Done(Outcome::Unknown(Fault::new(
                FaultKind::Server,
                "the lock was written, and then the membership of the node could not be read",
            ))),
            // Nothing of the lock was written.
            (_, Heard::Failed(Outcome::Unknown(fault))) => {
                memory.forget(&marker_key);
                Next::Done(Outcome::NotApplied(Refusal::Unavailable(fault)))
            }
            (_, Heard::Failed(outcome)) => Next::Done(outcome),
            (_, Heard::Read(_) | Heard::Written(_) | Heard::Raced) => Next::Done(misfit()),
        }
    }

    /// The lock is written.
    fn written(&self, outcome: Outcome) -> Next {
        match &self.op {
            Op::Acquire(acquire) if acquire.member.is_some() => Next::Ask(Step::Confirm { outcome, has_written: true }),
            Op::Acquire(_)
            | Op::Renew(_)
            | Op::Release(_)
            | Op::Finish(_)
            | Op::Revoke(_)
            | Op::Tell(_)
            | Op::Raise(_)
            | Op::Read => Next::Done(outcome),
        }
    }

    fn again(&mut self, unix_ms: u64) -> Next {
        self.lost().map_or_else(Next::Done, |()| self.decide(unix_ms))
    }

    fn read_again(&mut self) -> Next {
        self.lost().map_or_else(Next::Done, |()| Next::Ask(Step::ReadLock))
    }

    /// # Errors
    /// It came second too often.
    fn lost(&mut self) -> Result<(), Outcome> {
        self.tries.lost(match self.lock.version {
            Some(_) => "other clients keep changing the object of this lock",
            None => {
                "the service shows no object of this lock, and refuses to create one: switch versioning off, since a \
                 delete marker may stand in its place"
            }
        })
    }

    fn decide(&self, unix_ms: u64) -> Next {
        self.decided(unix_ms).unwrap_or_else(|denial| Next::Done(Outcome::NotApplied(Refusal::Denied(denial))))
    }

    /// # Errors
    /// An object holds what this version does not understand.
    fn decided(&self, unix_ms: u64) -> Result<Next, Denial> {
        let asks = self.op.asks_a_quorum();
        let text = match &self.marker {
            None if asks => return Ok(Next::Ask(Step::ReadMarker)),
            Some(Row { body: Some(body), .. }) if asks => marker_text(body)?,
            Some(_) | None => String::new(),
        };
        let shown = Shown { marker: text.as_bytes(), run: None, has_lost: false };
        let name = self.long_name.as_deref().map(|name| (LONG_NAME, name));
        let decided = decide(&self.op, self.lock.body.as_deref(), &shown, name, unix_ms)?;
        Ok(match (decided.marker, decided.lock) {
            (Some(marker), _) => Next::Ask(Step::WriteMarker(marker_body(&marker.text()))),
            (None, Some(body)) => Next::Ask(Step::WriteLock(decided.outcome, body.into_bytes())),
            (None, None) if asks && !self.is_marker_fresh => {
                Next::Ask(Step::Confirm { outcome: decided.outcome, has_written: false })
            }
            (None, None) if self.may_be_stale => self.proven(decided.outcome, decided.has_completion),
            (None, None) => Next::Done(decided.outcome),
        })
    }

    /// An outcome that a read has led to which may be behind. Where it only has somebody wait for longer, it stands; a lease that is
    /// said to be over, or a completion that others count on, has to be true.
    fn proven(&self, outcome: Outcome, has_completion: bool) -> Next {
        let is_refused = matches!(outcome, Outcome::NotApplied(Refusal::Conflict(_)));
        let decides = match &self.op {
            // Those who wait for a run ask again and again, and see no completion meanwhile.
            Op::Read => self.may_be_of_run && has_completion,
            Op::Renew(_) | Op::Release(_) | Op::Finish(_) | Op::Revoke(_) | Op::Tell(_) | Op::Raise(_) => is_refused,
            Op::Acquire(_) => false,
        };
        match (decides, &self.lock.version) {
            (false, _) => Next::Done(outcome),
            (true, Some(_)) => Next::Ask(Step::Prove(outcome)),
            (true, None) => {
                let detail = "the object of this lock is not visible, perhaps because reads of this store may be stale";
                Next::Done(Outcome::NotApplied(Refusal::Unavailable(Fault::new(FaultKind::Busy, detail))))
            }
        }
    }
}
