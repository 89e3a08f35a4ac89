//! From operations to outcomes, in as many rounds as it takes.
//!
//! | operation | requests, one after the other |
//! |---|---|
//! | acquire | the lock; once more in another [`Form`] where the first shows a free row |
//! | the same in a quorum | then the marker is read, perhaps written, and where it does not vote the lock is freed again |
//! | and where it votes | a lock that an earlier send has written is made this one's |
//! | renew, release | the lock; a renewal once more where the row of a run is kept for longer; in a quorum the marker where the lock is not ours |
//! | raise | the lock; once more in the other form where only the trust is to be written |
//! | revoke, read | the lock |
//!
//! A form that is refused ends the send: a rival could otherwise keep it busy forever by changing the counter to and
//! fro. The row is free then, so the next attempt follows soon.
//!
//! A lock is freed again only where it still shows this very send. That request may be late, and meanwhile a later send of
//! the same attempt may have found the lock, at a node that votes by now: it counts on the lock only once it shows the
//! later send.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use serde_json::{Map, Value as Json};

use super::errors::{ErrorClass, classify, code_of};
use super::expressions::{self, Expires, Form};
use super::json::object;
use super::lock::{self, Told};
use super::membership::{self, Vote};
use super::{HttpResponse, Request, Settings};
use crate::exchange::{self, Progress, Round};
use leasehold_core::member::{Durability, LossId, Marker};
use leasehold_core::node::in_doubt;
use leasehold_core::op::{Applied, Denial, Fault, FaultKind, LockOp, Op, Outcome, Refusal, Release, Renew};

/// One request of the client: for each operation one request at a time. Drop it and its operations are
/// [`Outcome::Unknown`], unless nothing was sent yet.
#[derive(Clone, PartialEq, Eq)]
pub struct Exchange {
    settings: Settings,
    unix_ms: u64,
    legs: Vec<Leg>,
    round: Round<Request>,
}

/// One operation on its way.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Leg {
    op: LockOp,
    stage: Stage,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Stage {
    /// The operation itself.
    Lock(Form),
    /// It was answered; what does the node remember?
    Look(Answered),
    /// The marker has to be written before the answer means anything.
    Mark { answered: Answered, marker: Marker, tries: u32 },
    /// Our row has to go again.
    Undo(Refusal),
    /// It stands since an earlier send, and is to show this one; with what it then means.
    Keep(Outcome, Option<LossId>),
}

/// The answer of the lock row in a quorum.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Answered {
    outcome: Outcome,
    /// The loss since which its counter was raised.
    trust: Option<LossId>,
}

impl Answered {
    fn is_grant(&self) -> bool {
        matches!(self.outcome, Outcome::Applied(Applied::Acquired { .. }))
    }
}

/// The next step of a leg.
enum Next {
    Done(Outcome),
    Ask(Stage, Request),
}

/// How often a marker is written again that others write at the same time.
const MOST_MARKS: u32 = 3;

/// An acquire has put off the end of the row already.
const KEPT: Form = Form { expires: Expires::Stays, ..Form::FIRST };

/// A response by its kind.
pub(super) enum Heard {
    /// Status 200, and the body.
    Success(Map<String, Json>),
    /// The condition did not hold: the row as it is, if there is one.
    Conflict(Option<Json>),
    /// No answer of the row.
    Failed(Outcome),
}

impl Heard {
    pub(super) fn of(settings: &Settings, answer: Result<&HttpResponse, Outcome>) -> Self {
        let response = match answer {
            Ok(response) => response,
            // Only the table can say so.
            Err(
                Outcome::Applied(_)
                | Outcome::NotApplied(Refusal::Conflict(_) | Refusal::Done(_) | Refusal::Abstains { .. }),
            ) => {
                return Self::Failed(misfit());
            }
            Err(outcome @ (Outcome::NotApplied(_) | Outcome::Unknown(_))) => return Self::Failed(outcome),
        };
        if response.status == 200 {
            return match object(&response.body) {
                Ok(fields) if code_of(&fields).is_none() => Self::Success(fields),
                Ok(_) => Self::Failed(misfit()),
                Err(what) => Self::Failed(protocol(what)),
            };
        }
        match classify(settings, response) {
            ErrorClass::ConditionFailed => {
                Self::Conflict(object(&response.body).ok().and_then(|mut fields| fields.remove("Item")))
            }
            class @ (ErrorClass::Repeat(..) | ErrorClass::Refused(_) | ErrorClass::Unknown(_)) => {
                Self::Failed(class.outcome())
            }
        }
    }
}

impl Exchange {
    pub(super) fn new(settings: Settings, ops: &[LockOp], unix_ms: u64) -> Result<Self, Denial> {
        let (legs, round) = (Vec::with_capacity(ops.len()), Round::new(ops.len()));
        let mut exchange = Self { settings, unix_ms, legs, round };
        for (at, op) in ops.iter().enumerate() {
            let request = lock::request(&exchange.settings, op, Form::FIRST, unix_ms)?;
            exchange.legs.push(Leg { op: op.clone(), stage: Stage::Lock(Form::FIRST) });
            exchange.round.ask(at, request);
        }
        Ok(exchange)
    }
}

impl exchange::Exchange for Exchange {
    type Ask = Request;
    type Heard = HttpResponse;
    type Memory = ();

    fn requests(&self) -> &[Request] {
        self.round.requests()
    }

    fn answers(&mut self, (): &mut (), answers: Vec<Result<HttpResponse, Outcome>>) -> Progress {
        for (at, answer) in self.round.take(answers) {
            let Some(leg) = self.legs.get_mut(at) else { continue };
            let heard = Heard::of(&self.settings, answer.as_ref().map_err(Clone::clone));
            match leg.next(&self.settings, heard, self.unix_ms) {
                Next::Done(outcome) => self.round.done(at, outcome),
                Next::Ask(stage, request) => {
                    leg.stage = stage;
                    self.round.ask(at, request);
                }
            }
        }
        self.round.progress()
    }

    /// The time in a request was as wrong as its signature's, and DynamoDB's time to live goes by it.
    fn set_clock(&mut self, unix_ms: u64) {
        self.unix_ms = unix_ms;
        for (at, request) in self.round.open() {
            if let Some(dated) = self.legs.get(*at).and_then(|leg| leg.dated(&self.settings, unix_ms)) {
                *request = dated;
            }
        }
    }
}

impl fmt::Debug for Exchange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Exchange").field("requests", &self.round.requests()).finish_non_exhaustive()
    }
}

impl Leg {
    /// Returns the request of this stage as of this time; `None` where it is the same at any time.
    fn dated(&self, settings: &Settings, unix_ms: u64) -> Option<Request> {
        match &self.stage {
            Stage::Lock(form) => lock::request(settings, &self.op, *form, unix_ms).ok(),
            Stage::Undo(_) => self.undo(settings, unix_ms),
            Stage::Keep(..) => lock::request(settings, &self.kept()?, KEPT, unix_ms).ok(),
            Stage::Look(_) | Stage::Mark { .. } => None,
        }
    }

    /// The release of what this send has written.
    fn undo(&self, settings: &Settings, unix_ms: u64) -> Option<Request> {
        let Op::Acquire(op) = &self.op.op else { return None };
        Some(expressions::undo(settings, &self.op.resource, op, unix_ms))
    }

    /// The renewal that makes a lock of an earlier send this one's.
    fn kept(&self) -> Option<LockOp> {
        let Op::Acquire(op) = &self.op.op else { return None };
        let renew = Renew { nonce: op.nonce, seq: op.seq, record_ttl: op.record_ttl, quorum: None };
        Some(LockOp { op: Op::Renew(renew), ..self.op.clone() })
    }

    fn next(&self, settings: &Settings, heard: Heard, unix_ms: u64) -> Next {
        match &self.stage {
            Stage::Lock(form) => self.locked(settings, *form, heard, unix_ms),
            Stage::Look(answered) => match heard {
                Heard::Success(fields) => match membership::text_in(settings, fields.get("Item")) {
                    Ok(text) => self.judge(settings, answered.clone(), text, 0, unix_ms),
                    Err(outcome) => self.unmarked(settings, answered, outcome, unix_ms),
                },
                Heard::Conflict(_) => self.unmarked(settings, answered, misfit(), unix_ms),
                Heard::Failed(outcome) => self.unmarked(settings, answered, outcome, unix_ms),
            },
            Stage::Mark { answered, marker, tries } => match heard {
                Heard::Success(fields) if membership::is_marked(settings, &fields, Some(marker)) => {
                    // Written by us, it means what the same one means that is found.
                    self.judge_written(settings, answered.clone(), marker, unix_ms)
                }
                Heard::Success(_) => self.unmarked(settings, answered, misfit(), unix_ms),
                Heard::Conflict(row) => match membership::text_in(settings, row.as_ref()) {
                    Ok(text) => self.judge(settings, answered.clone(), text, *tries, unix_ms),
                    Err(outcome) => self.unmarked(settings, answered, outcome, unix_ms),
                },
                Heard::Failed(outcome) => self.unmarked(settings, answered, outcome, unix_ms),
            },
            Stage::Undo(refusal) => Next::Done(match heard {
                Heard::Success(fields) if lock::is_released(settings, &self.op, &fields) => {
                    Outcome::NotApplied(refusal.clone())
                }
                // It is not ours any more.
                Heard::Conflict(row) if lock::is_not_ours(settings, &self.op, row.as_ref()) => {
                    Outcome::NotApplied(refusal.clone())
                }
                Heard::Success(_) | Heard::Conflict(_) => misfit(),
                Heard::Failed(Outcome::Unknown(fault)) => Outcome::Unknown(fault),
                Heard::Failed(_) => Outcome::Unknown(Fault::new(
                    FaultKind::Server,
                    "the node does not vote, and the lock that was written there could not be freed again",
                )),
            }),
            Stage::Keep(outcome, loss) => Next::Done(self.is_kept(settings, outcome, *loss, heard, unix_ms)),
        }
    }

    fn is_kept(
        &self,
        settings: &Settings,
        outcome: &Outcome,
        loss: Option<LossId>,
        heard: Heard,
        unix_ms: u64,
    ) -> Outcome {
        let Some(kept) = self.kept() else { return misfit() };
        match lock::told(settings, &kept, KEPT, heard, unix_ms) {
            Told::Outcome(Outcome::Applied(_), _) => outcome.clone(),
            Told::Outcome(other, _) => loss.map_or(other.clone(), |loss| in_doubt(other, loss)),
            Told::OtherForm(_) => misfit(),
        }
    }

    fn locked(&self, settings: &Settings, form: Form, heard: Heard, unix_ms: u64) -> Next {
        let (outcome, trust) = match lock::told(settings, &self.op, form, heard, unix_ms) {
            Told::Outcome(outcome, trust) => (outcome, trust),
            Told::OtherForm(form) => {
                return match lock::request(settings, &self.op, form, unix_ms) {
                    Ok(request) => Next::Ask(Stage::Lock(form), request),
                    Err(denial) => Next::Done(Outcome::NotApplied(Refusal::Denied(denial))),
                };
            }
        };
        let is_conflict = matches!(outcome, Outcome::NotApplied(Refusal::Conflict(_)));
        // A counter that was raised after a loss says nothing of completions.
        let trust = trust.filter(|_| !matches!(&self.op.op, Op::Acquire(op) if op.unless_done));
        let answered = Answered { outcome, trust };
        let depends = match &self.op.op {
            Op::Acquire(op) => op.member.is_some() && (is_conflict || answered.is_grant()),
            Op::Renew(Renew { quorum, .. }) | Op::Release(Release { quorum, .. }) => quorum.is_some() && is_conflict,
            Op::Finish(finish) => finish.quorum.is_some() && is_conflict,
            Op::Revoke(_) | Op::Tell(_) | Op::Raise(_) | Op::Read => false,
        };
        if depends {
            Next::Ask(Stage::Look(answered), membership::look(settings))
        } else {
            Next::Done(answered.outcome)
        }
    }

    /// Judges an answer from a node that shows this marker.
    fn judge(&self, settings: &Settings, answered: Answered, found: String, tries: u32, unix_ms: u64) -> Next {
        let asked = match &self.op.op {
            Op::Acquire(op) => op.member.as_ref(),
            Op::Renew(Renew { quorum, .. }) | Op::Release(Release { quorum, .. }) => {
                return Next::Done(missing_or_forgotten(answered.outcome, &found, *quorum));
            }
            Op::Finish(finish) => return Next::Done(missing_or_forgotten(answered.outcome, &found, finish.quorum)),
            Op::Revoke(_) | Op::Tell(_) | Op::Raise(_) | Op::Read => None,
        };
        let Some(asked) = asked else { return Next::Done(answered.outcome) };
        let (write, vote) = membership::vote(asked, &found, answered.trust, unix_ms);
        match write {
            Some(_) if tries >= MOST_MARKS => {
                let busy = Fault::new(FaultKind::Busy, "other clients keep changing the node's membership record");
                self.unmarked(settings, &answered, Outcome::NotApplied(Refusal::Unavailable(busy)), unix_ms)
            }
            Some(marker) => {
                let request = membership::mark(settings, &found, Some(&marker));
                Next::Ask(Stage::Mark { answered, marker, tries: tries + 1 }, request)
            }
            None => self.voted(settings, answered, vote, unix_ms),
        }
    }

    fn judge_written(&self, settings: &Settings, answered: Answered, marker: &Marker, unix_ms: u64) -> Next {
        let Op::Acquire(op) = &self.op.op else { return Next::Done(answered.outcome) };
        let Some(asked) = &op.member else { return Next::Done(answered.outcome) };
        let (_, vote) = membership::vote(asked, &marker.text(), answered.trust, unix_ms);
        self.voted(settings, answered, vote, unix_ms)
    }

    fn voted(&self, settings: &Settings, answered: Answered, vote: Vote, unix_ms: u64) -> Next {
        let loss = match vote {
            Vote::Counts(loss) => loss,
            Vote::Refused(refusal) => return self.refuse(settings, &answered, refusal, unix_ms),
        };
        let outcome = match loss {
            Some(loss) => in_doubt(answered.outcome, loss),
            None => answered.outcome,
        };
        match (&self.op.op, self.kept()) {
            (Op::Acquire(op), Some(kept)) if lock::is_of_earlier_send(op, &outcome) => {
                match lock::request(settings, &kept, KEPT, unix_ms) {
                    Ok(request) => Next::Ask(Stage::Keep(lock::as_of(op, outcome), loss), request),
                    Err(denial) => Next::Done(Outcome::NotApplied(Refusal::Denied(denial))),
                }
            }
            (_, _) => Next::Done(outcome),
        }
    }

    /// Nobody can say whether the node votes.
    fn unmarked(&self, settings: &Settings, answered: &Answered, why: Outcome, unix_ms: u64) -> Next {
        match why {
            Outcome::NotApplied(refusal) => self.refuse(settings, answered, refusal, unix_ms),
            // The lock stands; whether it counts, the next send finds out, or a release frees it.
            Outcome::Unknown(fault) if answered.is_grant() => Next::Done(Outcome::Unknown(fault)),
            Outcome::Unknown(fault) => Next::Done(Outcome::NotApplied(Refusal::Unavailable(fault))),
            Outcome::Applied(_) => Next::Done(misfit()),
        }
    }

    fn refuse(&self, settings: &Settings, answered: &Answered, refusal: Refusal, unix_ms: u64) -> Next {
        match self.undo(settings, unix_ms).filter(|_| answered.is_grant()) {
            Some(request) => Next::Ask(Stage::Undo(refusal), request),
            None => Next::Done(Outcome::NotApplied(refusal)),
        }
    }
}

/// A missing record may be one that the node has forgotten.
fn missing_or_forgotten(outcome: Outcome, marker: &str, quorum: Option<Durability>) -> Outcome {
    match quorum.is_some_and(|durability| membership::is_in_doubt(marker, durability)) {
        true => Outcome::NotApplied(Refusal::Abstains { stamp: None }),
        false => outcome,
    }
}

pub(super) fn misfit() -> Outcome {
    protocol("the answer does not fit the request")
}

pub(super) fn protocol(detail: &str) -> Outcome {
    Outcome::Unknown(Fault::new(FaultKind::Protocol, detail))
}
