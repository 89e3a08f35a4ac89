//! The requests of one exchange with a table for one operation, one after the other: the lock, then the marker of the
//! quorum, which others may change in between, then perhaps the lock again.

use std::time::Duration;

use leasehold_core::Version;
use leasehold_core::member::{Answer as Admitted, CounterTrust, Durability, LossId, Marker, Membership, admit};
use leasehold_core::node::{NodeMemory, in_doubt};
use leasehold_core::op::{Acquire, Applied, Denial, DenialKind, Fault, FaultKind};
use leasehold_core::op::{Holder, Op, Outcome, Refusal, Release, Renew, Seen};
use leasehold_core::quorum::Trust;

use crate::store::Answer;

/// One request of a send.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Form {
    /// The operation itself. DynamoDB knows no `max()`: an acquire is first tried as the write that makes the counter
    /// the floor, if it is below.
    Floor,
    /// The other write: the token becomes one more than the counter, if that is at least the floor. A raise only writes
    /// down the trust.
    Step,
    /// The marker of the quorum is read, after the lock gave this answer.
    Look(Box<Told>),
    /// The marker is written before the answer means anything.
    Mark(Box<Mark>),
    /// The lock is released, because the node does not vote.
    Undo(Box<Refusal>),
    /// A lock that an earlier send has written becomes this one's, before it counts.
    Keep(Box<Keep>),
}

/// A vote for a lock of an earlier send.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Keep {
    outcome: Outcome,
    /// The loss since which the node is in doubt.
    loss: Option<LossId>,
}

/// The answer of the lock's row.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Told {
    pub(super) outcome: Outcome,
    /// The loss since which its counter was raised.
    pub(super) trust: Option<LossId>,
}

/// A marker to be written.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Mark {
    pub(super) told: Told,
    /// It must still be there.
    pub(super) found: Option<Marker>,
    pub(super) marker: Marker,
    tries: u32,
}

/// How often a marker is written again that others write at the same time.
const MOST_MARKS: u32 = 3;

impl Form {
    /// The answer of the lock's row, where the marker is read next.
    pub fn told(&self) -> Option<&Outcome> {
        match self {
            Self::Look(told) => Some(&told.outcome),
            Self::Floor | Self::Step | Self::Mark(_) | Self::Undo(_) | Self::Keep(_) => None,
        }
    }

    /// The outcome of an exchange in which the table did not answer a request.
    pub fn failed(&self, op: &Op, outcome: Outcome) -> Answer {
        match self {
            Self::Floor | Self::Step | Self::Keep(_) => Answer::Done(outcome),
            Self::Look(told) => told.unmarked(op, outcome),
            Self::Mark(mark) => mark.told.unmarked(op, outcome),
            Self::Undo(_) => Answer::Done(match outcome {
                Outcome::Unknown(fault) => Outcome::Unknown(fault),
                Outcome::Applied(_) | Outcome::NotApplied(_) => Outcome::Unknown(Fault::of(FaultKind::Server)),
            }),
        }
    }
}

impl Told {
    fn is_grant(&self) -> bool {
        matches!(self.outcome, Outcome::Applied(Applied::Acquired { .. }))
    }

    /// After the request for the lock itself.
    pub(super) fn next(self, op: &Op) -> Answer {
        let is_conflict = matches!(self.outcome, Outcome::NotApplied(Refusal::Conflict(_)));
        let depends = match op {
            Op::Acquire(op) => op.member.is_some() && (is_conflict || self.is_grant()),
            Op::Renew(Renew { quorum, .. }) | Op::Release(Release { quorum, .. }) => quorum.is_some() && is_conflict,
            Op::Finish(finish) => finish.quorum.is_some() && is_conflict,
            Op::Revoke(_) | Op::Tell(_) | Op::Raise(_) | Op::Read => false,
        };
        if depends { Answer::Again(Form::Look(Box::new(self))) } else { Answer::Done(self.outcome) }
    }

    /// At a node that shows this marker.
    pub(super) fn judge(&self, op: &Op, found: Option<&Marker>, tries: u32, unix_ms: u64) -> Answer {
        let asked = match op {
            Op::Acquire(op) => op.member.as_ref(),
            Op::Renew(Renew { quorum, .. }) | Op::Release(Release { quorum, .. }) => {
                return self.missing_or_forgotten(found, *quorum);
            }
            Op::Finish(finish) => return self.missing_or_forgotten(found, finish.quorum),
            Op::Revoke(_) | Op::Tell(_) | Op::Raise(_) | Op::Read => None,
        };
        let Some(asked) = asked else { return Answer::Done(self.outcome.clone()) };
        let asked = &Membership { fresh: asked.fresh.found_at(unix_ms), ..asked.clone() };
        let admission = admit(found, asked, None, unix_ms);
        match admission.write {
            Some(_) if tries >= MOST_MARKS => {
                self.unmarked(op, Outcome::NotApplied(Refusal::Unavailable(Fault::of(FaultKind::Busy))))
            }
            Some(marker) => {
                let (told, found, tries) = (self.clone(), found.cloned(), tries + 1);
                Answer::Again(Form::Mark(Box::new(Mark { told, found, marker, tries })))
            }
            None => self.voted(op, &admission.answer),
        }
    }

    /// A missing record may be one that the node has forgotten.
    fn missing_or_forgotten(&self, found: Option<&Marker>, quorum: Option<Durability>) -> Answer {
        let memory = NodeMemory { marker: found, trusted: None, run: None };
        let doubted = quorum.is_some_and(|durability| memory.is_in_doubt(durability));
        let abstains = Outcome::NotApplied(Refusal::Abstains { stamp: None });
        Answer::Done(if doubted { abstains } else { self.outcome.clone() })
    }

    fn voted(&self, op: &Op, answer: &Admitted) -> Answer {
        match answer {
            Admitted::Votes(counters) => {
                let loss = match (counters, counters.trust(self.trust.as_ref())) {
                    (CounterTrust::ByResource(loss), Trust::Doubtful) => Some(*loss),
                    (CounterTrust::ByResource(_), Trust::Trusted) | (CounterTrust::Trusted, _) => None,
                };
                let outcome = doubted(self.outcome.clone(), loss);
                match (op, &outcome) {
                    (Op::Acquire(op), Outcome::NotApplied(Refusal::Conflict(seen)))
                        if seen
                            .held()
                            .is_some_and(|holding| holding.is_of(&op.nonce) && holding.seq() < Some(op.seq)) =>
                    {
                        Answer::Again(Form::Keep(Box::new(Keep { outcome, loss })))
                    }
                    (_, _) => Answer::Done(outcome),
                }
            }
            Admitted::Abstains(stamp) => self.refuse(op, Refusal::Abstains { stamp: Some(*stamp) }),
            Admitted::WrongQuorum { quorum, .. } => {
                let denial = Denial::new(DenialKind::Membership, &format!("a node of quorum {quorum}"));
                self.refuse(op, Refusal::Denied(denial))
            }
        }
    }

    /// The outcome where it is unknown whether the node votes.
    fn unmarked(&self, op: &Op, why: Outcome) -> Answer {
        match why {
            Outcome::NotApplied(refusal) => self.refuse(op, refusal),
            Outcome::Unknown(fault) if self.is_grant() => Answer::Done(Outcome::Unknown(fault)),
            Outcome::Unknown(fault) => Answer::Done(Outcome::NotApplied(Refusal::Unavailable(fault))),
            Outcome::Applied(_) => Answer::Done(Outcome::Unknown(Fault::of(FaultKind::Protocol))),
        }
    }

    fn refuse(&self, op: &Op, refusal: Refusal) -> Answer {
        if matches!(op, Op::Acquire(_)) && self.is_grant() {
            Answer::Again(Form::Undo(Box::new(refusal)))
        } else {
            Answer::Done(Outcome::NotApplied(refusal))
        }
    }
}

impl Mark {
    /// The marker was written.
    pub(super) fn written(&self, op: &Op, unix_ms: u64) -> Answer {
        let Op::Acquire(acquire) = op else { return Answer::Done(self.told.outcome.clone()) };
        let Some(asked) = &acquire.member else { return Answer::Done(self.told.outcome.clone()) };
        // Written by us, it means what the same one means that is found.
        self.told.voted(op, &admit(Some(&self.marker), asked, None, unix_ms).answer)
    }

    /// Another one stood there.
    pub(super) fn missed(&self, op: &Op, found: Option<&Marker>, unix_ms: u64) -> Answer {
        self.told.judge(op, found, self.tries, unix_ms)
    }
}

impl Keep {
    /// The lock shows this send.
    pub(super) fn kept(&self, op: &Acquire, record_ttl: Duration) -> Answer {
        let mut outcome = self.outcome.clone();
        if let Outcome::NotApplied(Refusal::Conflict(Seen { holding: Some(holding), .. })) = &mut outcome {
            holding.holder = Holder::Lease { nonce: op.nonce, seq: Some(op.seq) };
            holding.version = Version::of(&op.nonce, op.seq);
            holding.record_ttl = Some(record_ttl);
        }
        Answer::Done(outcome)
    }

    /// It does not any more.
    pub(super) fn missed(&self, conflict: Outcome) -> Answer {
        Answer::Done(doubted(conflict, self.loss))
    }
}

fn doubted(outcome: Outcome, loss: Option<LossId>) -> Outcome {
    match loss {
        Some(loss) => in_doubt(outcome, loss),
        None => outcome,
    }
}
