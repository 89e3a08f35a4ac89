//! From operations to outcomes: each is read, decided, and written where nobody has written since.

use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;

use leasehold_core::Monotonic;
use leasehold_core::config::MAX_KEEP;
use leasehold_core::member::Marker;
use leasehold_core::node::{NodeMemory, serve, wrong_quorum};
use leasehold_core::op::{Denial, DenialKind, Fault, FaultKind, LockOp, Op, Outcome, Refusal};
use leasehold_core::store::{Record, StoreNow};

use super::errors::{Heard, misfit};
use super::memory::{Memory, Row, marker_body, marker_text};
use super::{Key, LONG_NAME, Properties, Request, Response, Session};
use crate::etcd::record::{self, NOW};

/// The time that a mark is kept longer than asked, since the clock of a later client may be ahead of that of the writer.
const CLOCK_MARGIN: Duration = Duration::from_secs(60);
/// How often an operation is decided again because others write the same objects.
const MOST_TRIES: u32 = 8;

/// One request of the client: for each operation one request at a time. Drop it and its operations are
/// [`Outcome::Unknown`], unless only requests that write nothing were sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exchange {
    session: Session,
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
    key: String,
    /// Is kept in the object.
    long_name: Option<String>,
    /// A read may miss a write that was answered before.
    may_be_stale: bool,
    /// A mark may lie in the object, which others count on.
    may_be_of_run: bool,
    step: Step,
    /// The lock that the operation is decided by.
    lock: Row,
    /// The marker that it is decided by; `None` where it was not read.
    marker: Option<Row>,
    /// The marker was read after the lock.
    is_marker_fresh: bool,
    tries: u32,
    /// The last write of the lock, which was told to have come too late. Something on the way may have sent it twice.
    late: Option<(Outcome, Vec<u8>)>,
    outcome: Option<Outcome>,
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
    pub(super) fn new(session: &Session, memory: &Memory, ops: &[LockOp], unix_ms: u64) -> Self {
        let mut exchange =
            Self { session: session.clone(), unix_ms, legs: Vec::new(), open: Vec::new(), requests: Vec::new() };
        for LockOp { resource, op, .. } in ops {
            let mut op = op.clone();
            if let Op::Finish(finish) = &mut op
                && !finish.keep.is_zero()
            {
                finish.keep = finish.keep.saturating_add(CLOCK_MARGIN).min(MAX_KEEP);
            }
            let Key { text: key, long_name } = session.key(resource);
            exchange.legs.push(Leg {
                op,
                key,
                long_name,
                may_be_stale: memory.may_be_stale,
                may_be_of_run: resource.may_be_of_run(),
                step: Step::ReadLock,
                lock: Row::default(),
                marker: None,
                is_marker_fresh: false,
                tries: 0,
                late: None,
                outcome: None,
            });
        }
        for at in 0..exchange.legs.len() {
            exchange.begin(at, memory);
        }
        exchange
    }

    /// One for each operation that is still open. They may be sent in any order and at the same time.
    pub fn requests(&self) -> &[Request] {
        &self.requests
    }

    /// The answers to [`Exchange::requests`], in their order, one for each. In the place of a response that never came
    /// stands what is known of its request: [`Outcome::NotApplied`] if it certainly never left, and else
    /// [`Outcome::Unknown`].
    pub fn answers(&mut self, memory: &mut Memory, answers: Vec<Result<Response, Outcome>>) -> Progress {
        let open = core::mem::take(&mut self.open);
        self.requests.clear();
        let mut answers = answers.into_iter();
        for at in open {
            let answer = answers.next().unwrap_or_else(|| Err(misfit()));
            let Some(leg) = self.legs.get_mut(at) else { continue };
            match leg.heard(&self.session, answer, memory, self.unix_ms) {
                Next::Done(outcome) => leg.outcome = Some(outcome),
                Next::Ask(step) => {
                    leg.step = step;
                    self.ask(at);
                }
            }
        }
        if self.open.is_empty() {
            let outcome = |leg: &Leg| leg.outcome.clone().unwrap_or_else(misfit);
            return Progress::Done(self.legs.iter().map(outcome).collect());
        }
        Progress::Again
    }

    /// Writes at once where all that is needed is remembered, and leads to a write; otherwise it reads.
    fn begin(&mut self, at: usize, memory: &Memory) {
        let Some(leg) = self.legs.get_mut(at) else { return };
        if memory.may_be_stale && leg.op.asks_a_quorum() {
            leg.outcome =
                Some(Outcome::NotApplied(Refusal::Denied(Denial::new(DenialKind::Other, Properties::NO_NODE))));
            return;
        }
        leg.marker = memory.row(&self.session.marker_key());
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
        let session = &self.session;
        let request = match &leg.step {
            Step::ReadLock => session.read(&leg.key),
            Step::ReadMarker | Step::Confirm { .. } => session.look(),
            Step::WriteMarker(body) => {
                let version = leg.marker.as_ref().and_then(|marker| marker.version.as_ref());
                session.write(&session.marker_key(), version, body)
            }
            Step::WriteLock(_, body) => session.write(&leg.key, leg.lock.version.as_ref(), body),
            Step::Prove(_) => {
                let body = leg.lock.body.as_deref().unwrap_or_default();
                session.write(&leg.key, leg.lock.version.as_ref(), body)
            }
        };
        self.open.push(at);
        self.requests.push(request);
    }
}

impl Leg {
    fn heard(
        &mut self,
        session: &Session,
        answer: Result<Response, Outcome>,
        memory: &mut Memory,
        unix_ms: u64,
    ) -> Next {
        let answer = answer.as_ref().map_err(Clone::clone);
        let heard = match &self.step {
            Step::ReadLock | Step::ReadMarker | Step::Confirm { .. } => session.heard_read(answer),
            Step::WriteMarker(_) | Step::WriteLock(..) | Step::Prove(_) => session.heard_write(answer),
        };
        let step = core::mem::replace(&mut self.step, Step::ReadLock);
        let marker_key = session.marker_key();
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
        if self.is_too_often() { Next::Done(self.too_often()) } else { self.decide(unix_ms) }
    }

    fn read_again(&mut self) -> Next {
        if self.is_too_often() { Next::Done(self.too_often()) } else { Next::Ask(Step::ReadLock) }
    }

    fn too_often(&self) -> Outcome {
        let detail = match self.lock.version {
            Some(_) => "others write the object of this lock all the time",
            None => {
                "the service shows no object of this lock, and refuses to create one: switch versioning off, since a delete \
                 marker may stand in its place"
            }
        };
        Outcome::NotApplied(Refusal::Unavailable(Fault::new(FaultKind::Busy, detail)))
    }

    fn is_too_often(&mut self) -> bool {
        self.tries += 1;
        self.tries >= MOST_TRIES
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
        let marker = Marker::parse(text.as_bytes());
        if let (Op::Acquire(acquire), false, None) = (&self.op, text.is_empty(), &marker)
            && let Some(asked) = &acquire.member
        {
            return Err(wrong_quorum((asked.quorum, asked.max_ttl_ms), None));
        }
        let mut row = self.lock.body.as_deref().map(record::Row::parse).transpose()?.unwrap_or_default();
        if let Some(name) = &self.long_name {
            row.keep(LONG_NAME, name);
        }
        if let Op::Release(_) = &self.op {
            row.freed_at(unix_ms);
        }
        let before = NodeMemory { marker: marker.as_ref(), trusted: row.trusted.as_ref(), run: None };
        let now = StoreNow { boot: NOW, uptime: Monotonic::from_ns(0), unix_ms };
        let served = serve(row.record.as_ref(), before, &self.op, &now);
        Ok(match (served.marker, served.record) {
            // Only then does the node know whether it votes.
            (Some(marker), _) => Next::Ask(Step::WriteMarker(marker_body(&marker.text()))),
            (None, Some(record)) => {
                let body = row.with(&record, served.trusted).into_bytes();
                Next::Ask(Step::WriteLock(served.outcome, body))
            }
            (None, None) if asks && !self.is_marker_fresh => {
                Next::Ask(Step::Confirm { outcome: served.outcome, has_written: false })
            }
            (None, None) if self.may_be_stale => self.proven(served.outcome, row.record.as_ref()),
            (None, None) => Next::Done(served.outcome),
        })
    }

    /// An outcome that a read has led to which may be behind. Where it only has somebody wait for longer, it stands; a lease that is
    /// said to be over, or a mark that others count on, has to be true.
    fn proven(&self, outcome: Outcome, record: Option<&Record>) -> Next {
        let has_mark = || record.is_some_and(|record| record.mark.is_some());
        let is_refused = matches!(outcome, Outcome::NotApplied(Refusal::Conflict(_)));
        let decides = match &self.op {
            // Those who wait for a run ask again and again, and see no mark meanwhile.
            Op::Read => self.may_be_of_run && has_mark(),
            Op::Renew(_) | Op::Release(_) | Op::Finish(_) | Op::Revoke(_) | Op::Tell(_) | Op::Raise(_) => is_refused,
            Op::Acquire(_) => false,
        };
        match (decides, &self.lock.version) {
            (false, _) => Next::Done(outcome),
            (true, Some(_)) => Next::Ask(Step::Prove(outcome)),
            (true, None) => {
                let detail = "the object of this lock is not seen, and a read may be behind";
                Next::Done(Outcome::NotApplied(Refusal::Unavailable(Fault::new(FaultKind::Busy, detail))))
            }
        }
    }
}
