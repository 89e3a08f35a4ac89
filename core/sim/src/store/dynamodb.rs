//! One DynamoDB table in the format of the AWS lock client for Java: single-row writes under a condition, a failed one
//! showing the row as it is. Nothing runs out by itself; observers wait.

use std::collections::BTreeMap;
use std::time::Duration;

use leasehold_core::op::{Acquire, Applied, Holder, Holding, Op, Seen};
use leasehold_core::{Nonce, Owner, Payload, Resource, Seq, Token, Version};

use crate::store::{Answer, Ask, By, Form, Mark, Standing, applied, conflict, exhausted, whole_ms};

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Dynamodb {
    pub(super) rows: BTreeMap<Resource, Row>,
}

/// The attributes of a row.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Row {
    pub(super) rvn: Rvn,
    pub(super) owner: Option<Owner>,
    pub(super) lease_duration: Duration,
    pub(super) released: bool,
    /// Absent after a foreign client has replaced the row.
    pub(super) fencing_token: Option<Token>,
    pub(super) data: Option<Payload>,
}

/// The record version number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Rvn {
    /// `<nonce>:<seq>`.
    Ours { nonce: Nonce, seq: Seq },
    /// A UUID.
    Foreign(Mark),
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

    /// `BETWEEN <nonce>:0 AND <nonce>:<seq - 1>`.
    fn is_before(&self, theirs: &Nonce, send: Seq) -> bool {
        matches!(self, Self::Ours { nonce, seq } if nonce == theirs && *seq < send)
    }
}

impl Row {
    /// Also while released, a row of the same attempt is never written again: accepting it would let a delayed first
    /// send overwrite a heartbeat, or bring back whom everybody saw leave.
    fn is_free_for(&self, op: &Acquire) -> bool {
        let stood_still = op.expect.is_some() && op.expect == self.rvn.version();
        !self.rvn.begins_with(&op.nonce) && (self.released || stood_still)
    }
}

impl Dynamodb {
    pub(super) fn ask(&mut self, ask: &Ask<'_>) -> Answer {
        let resource = ask.resource;
        let row = self.rows.get_mut(resource);
        match (ask.op, row) {
            (Op::Acquire(op), _) => self.acquire(resource, op, ask.form),
            // Any earlier write of the attempt will do, whichever has landed; a later one makes this one harmless.
            (Op::Renew(op), Some(row)) if row.rvn.is_before(&op.nonce, op.seq) && !row.released => {
                row.rvn = Rvn::Ours { nonce: op.nonce, seq: op.seq };
                row.lease_duration = Duration::from_millis(whole_ms(op.record_ttl));
                applied(Applied::Renewed)
            }
            // The version stays, as Java leaves it: it names the attempt whose delayed sends are still to be refused.
            (Op::Release(op), Some(row)) if row.rvn.begins_with(&op.nonce) => {
                row.released = true;
                applied(Applied::Released)
            }
            (Op::Raise(op), Some(row)) if row.rvn.begins_with(&op.nonce) && !row.released => {
                let counter = row.fencing_token.map_or(op.token, |counter| counter.max(op.token));
                row.fencing_token = Some(counter);
                applied(Applied::Raised { counter })
            }
            (Op::Renew(_) | Op::Release(_) | Op::Raise(_), _) => conflict(self.seen(resource)),
            (Op::Read, _) => applied(Applied::Read(self.seen(resource))),
        }
    }

    fn acquire(&mut self, resource: &Resource, op: &Acquire, form: Form) -> Answer {
        let row = self.rows.get(resource);
        if row.is_some_and(|row| !row.is_free_for(op)) {
            return conflict(self.seen(resource));
        }
        // No grant has token 0, and this form would mint it in an empty table.
        let floor = op.floor.max(Token::ZERO.next().unwrap_or(Token::MAX));
        let counter = row.and_then(|row| row.fencing_token);
        // Each form computes the token in the write itself. From what an earlier answer showed it could fall.
        let token = match (form, counter) {
            (Form::Floor, None) => floor,
            (Form::Floor, Some(counter)) if counter < floor => floor,
            (Form::Floor, Some(_)) => return Answer::Again(Form::Step),
            (Form::Step, Some(counter)) if counter >= floor => match counter.next() {
                Some(next) => next,
                None => return exhausted(),
            },
            // Somebody dropped the counter since the other form was refused. Were the session to change forms again, a
            // rival could keep it busy for ever within one send; the row it is shown is free, so the next attempt
            // follows soon.
            (Form::Step, _) => return conflict(self.seen(resource)),
        };
        let row = Row {
            rvn: Rvn::Ours { nonce: op.nonce, seq: op.seq },
            owner: Some(op.owner.clone()),
            lease_duration: Duration::from_millis(whole_ms(op.record_ttl)),
            released: false,
            fencing_token: Some(token),
            data: op.data.clone(),
        };
        self.rows.insert(resource.clone(), row);
        applied(Applied::Acquired { counter: token })
    }

    pub(super) fn standing(&self, resource: &Resource) -> Option<Standing> {
        let row = self.rows.get(resource).filter(|row| !row.released)?;
        let by = match row.rvn {
            Rvn::Ours { nonce, .. } => By::Attempt(nonce),
            Rvn::Foreign(mark) => By::Foreign(mark.by),
        };
        Some(Standing { by, until: None })
    }

    pub(super) fn counter(&self, resource: &Resource) -> Option<Token> {
        self.rows.get(resource)?.fencing_token
    }

    pub(super) fn evict(&mut self, resource: &Resource) {
        if let Some(row) = self.rows.get_mut(resource) {
            row.released = true;
        }
    }

    fn seen(&self, resource: &Resource) -> Seen {
        let holding = self.rows.get(resource).and_then(|row| {
            let holder = match row.rvn {
                Rvn::Ours { nonce, seq } => Holder::Lease { nonce, seq: Some(seq) },
                Rvn::Foreign(_) => Holder::Foreign,
            };
            Some(Box::new(Holding {
                holder,
                version: row.rvn.version()?,
                released: row.released,
                counter: row.fencing_token,
                owner: row.owner.clone(),
                record_ttl: Some(row.lease_duration),
                left: None,
                since_unix_ms: None,
                data: row.data.clone(),
            }))
        });
        Seen { holding }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::tests::*;
    use crate::store::{ForeignAct, ForeignAnswer, Kind};

    fn bench() -> Bench {
        Bench::new(Kind::Dynamodb)
    }

    fn mark(count: u32) -> Mark {
        Mark { by: 7, count }
    }

    #[test]
    fn nothing_runs_out_by_itself() {
        let mut bench = bench();
        bench.grant(1, 1);
        bench.pass(3_600_000);
        let seen = holding(&bench.ask(&acquire(2, 1)));
        assert_eq!((seen.left, seen.record_ttl, seen.released), (None, Some(TTL), false));
        assert_eq!(bench.ask(&renew_for(1, 2, 5_000)), renewed(), "nobody else has come");
        let written = holding(&bench.ask(&acquire(2, 1))).record_ttl;
        assert_eq!(written, Some(Duration::from_secs(5)), "a heartbeat says anew how long to wait");
    }

    #[test]
    fn a_takeover_compares_with_what_was_seen() {
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
    fn a_released_row_is_free_for_all_but_its_own_attempt() {
        let mut bench = bench();
        let first = bench.grant(1, 2);
        assert_eq!(bench.ask(&release(1)), released());
        assert_eq!(bench.ask(&release(1)), released(), "a resend whose first answer was lost");
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
    fn two_forms_make_a_maximum() {
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
    fn a_token_is_never_computed_from_an_earlier_read() {
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
    fn a_counter_that_vanished_between_the_forms_is_not_made_up() {
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
    fn the_java_client_and_we_exclude_one_another() {
        let mut bench = bench();
        let new = ForeignAct::AcquireNew { mark: mark(1), ttl: Duration::from_micros(500_001) };
        assert_eq!(bench.foreign(&new), ForeignAnswer::Held(mark(1)));
        assert_eq!(bench.foreign(&new), ForeignAnswer::Refused, "a row is there");
        let seen = holding(&bench.ask(&acquire(1, 1)));
        assert_eq!((seen.holder, seen.record_ttl), (Holder::Foreign, Some(Duration::from_millis(501))));
        assert_eq!(bench.standing().map(|standing| standing.by), Some(By::Foreign(7)));
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
