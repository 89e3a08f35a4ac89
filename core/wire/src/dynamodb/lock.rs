//! One write or read of a lock's row, and what its answer says. An impostor of the table can answer anything, so every
//! shape is checked, and a write counts only if the answer shows what it wrote.

use alloc::string::String;
use core::time::Duration;

use serde_json::{Map, Value as Json};

use super::exchange::{Heard, misfit};
use super::expressions::{self, Counter, Expires, Form, is_kept_longer};
use super::json::as_text;
use super::record::{self, Row, Rvn};
use super::{Request, Settings};
use leasehold_core::member::LossId;
use leasehold_core::op::{Acquire, Applied, Denial, DenialKind, Holder, LockOp, Op, Outcome, Raise, Refusal, Seen};
use leasehold_core::session::may_be_record;
use leasehold_core::store::renewed;
use leasehold_core::{Nonce, Token, Version};

/// The answer of a lock's row.
pub(super) enum Told {
    /// The outcome of a single store, and the loss since which the row's counter was raised.
    Outcome(Outcome, Option<LossId>),
    /// This other form may fit.
    OtherForm(Form),
}

pub(super) fn request(settings: &Settings, op: &LockOp, form: Form, unix_ms: u64) -> Result<Request, Denial> {
    let row = &op.resource;
    Ok(match &op.op {
        Op::Acquire(op) => expressions::acquire(settings, row, op, form, unix_ms)?,
        Op::Renew(op) => expressions::renew(settings, row, op, form.expires, unix_ms)?,
        Op::Release(op) => expressions::release(settings, row, op, unix_ms),
        Op::Finish(op) => expressions::finish(settings, row, op, unix_ms),
        Op::Revoke(op) => expressions::revoke(settings, row, op, unix_ms),
        Op::Tell(op) => expressions::tell(settings, row.as_str(), op),
        Op::Raise(op) => expressions::raise(settings, row, op, form.counter, unix_ms),
        Op::Read => expressions::get(settings, row.as_str()),
    })
}

pub(super) fn told(settings: &Settings, op: &LockOp, form: Form, heard: Heard, unix_ms: u64) -> Told {
    match heard {
        Heard::Success(fields) => written(settings, op, form, &fields, unix_ms),
        // It sets no condition.
        Heard::Conflict(_) if op.op == Op::Read => Told::Outcome(misfit(), None),
        Heard::Conflict(row) => refused(settings, op, form, row.as_ref(), unix_ms),
        Heard::Failed(outcome) => Told::Outcome(outcome, None),
    }
}

/// The answer to [`expressions::undo`].
pub(super) fn is_released(settings: &Settings, op: &LockOp, fields: &Map<String, Json>) -> bool {
    let row = row_in(settings, op, fields.get("Attributes"));
    matches!((row, &op.op), (Ok(Some(row)), Op::Acquire(op)) if is_of_this_send(&row, op) && row.released && row.undone)
}

/// A refused [`expressions::undo`] must show a row that is another's, or another send's, or free already, or none.
pub(super) fn is_not_ours(settings: &Settings, op: &LockOp, row: Option<&Json>) -> bool {
    match (row_in(settings, op, row), &op.op) {
        (Ok(Some(row)), Op::Acquire(op)) => !is_of_this_send(&row, op) || row.released,
        // A writer of rows that cannot be read writes none of ours.
        (Ok(None) | Err(Outcome::NotApplied(_)), Op::Acquire(_)) => true,
        (_, _) => false,
    }
}

fn is_of_this_send(row: &Row, op: &Acquire) -> bool {
    row.rvn == Rvn::Ours { nonce: op.nonce, seq: op.seq }
}

/// Returns true if a conflict shows that an earlier send of the attempt holds the lock.
pub(super) fn is_of_earlier_send(op: &Acquire, outcome: &Outcome) -> bool {
    let Outcome::NotApplied(Refusal::Conflict(seen)) = outcome else { return false };
    seen.held().is_some_and(|holding| holding.is_of(&op.nonce) && holding.seq().is_some_and(|seq| seq < op.seq))
}

/// The same conflict once the row shows this send.
pub(super) fn as_of(op: &Acquire, mut outcome: Outcome) -> Outcome {
    if let Outcome::NotApplied(Refusal::Conflict(Seen { holding: Some(holding), .. })) = &mut outcome {
        holding.holder = Holder::Lease { nonce: op.nonce, seq: Some(op.seq) };
        holding.version = Version::of(&op.nonce, op.seq);
        holding.record_ttl = Some(Duration::from_millis(expressions::whole_ms(op.record_ttl)));
    }
    outcome
}

/// The answer to a write or read that was carried out.
fn written(settings: &Settings, op: &LockOp, form: Form, fields: &Map<String, Json>, unix_ms: u64) -> Told {
    let just = |applied| Told::Outcome(Outcome::Applied(applied), None);
    let wrong = || Told::Outcome(misfit(), None);
    if op.op == Op::Read {
        return match row_in(settings, op, fields.get("Item")) {
            Ok(row) => {
                let done = row.as_ref().map_or(Ok(None), |row| row.done.clone());
                let done = match done {
                    Ok(done) => done.and_then(|done| done.standing(unix_ms)),
                    Err(denial) => return Told::Outcome(Outcome::NotApplied(Refusal::Denied(denial)), None),
                };
                Told::Outcome(shown(row, |seen| Outcome::Applied(Applied::Read(Seen { done, ..seen }))), None)
            }
            Err(outcome) => Told::Outcome(outcome, None),
        };
    }
    let attributes = fields.get("Attributes");
    if let Op::Renew(renew) = &op.op {
        let is_it = |rvn: &Rvn| *rvn == Rvn::Ours { nonce: renew.nonce, seq: renew.seq };
        if may_be_record(&op.resource) {
            return match row_in(settings, op, attributes) {
                Ok(Some(row)) if is_it(&row.rvn) && !row.released => just(renewed(row.told)),
                Ok(_) | Err(_) => wrong(),
            };
        }
        // This one shows what was written only.
        let rvn = attributes.and_then(|row| row.get(record::RVN)).and_then(as_text).and_then(Rvn::parse);
        return if rvn.as_ref().is_some_and(is_it) { just(Applied::Renewed) } else { wrong() };
    }
    let Ok(Some(row)) = row_in(settings, op, attributes) else { return wrong() };
    match &op.op {
        Op::Acquire(acquire) => {
            let is_it = row.rvn == Rvn::Ours { nonce: acquire.nonce, seq: acquire.seq } && !row.released;
            let floor = expressions::floor(acquire);
            let fits = |counter: &Token| match form.counter {
                Counter::Below => *counter == floor,
                Counter::Above => *counter > floor,
            };
            match row.counter.filter(fits) {
                Some(counter) if is_it => Told::Outcome(Outcome::Applied(Applied::Acquired { counter }), row.trust),
                Some(_) | None => wrong(),
            }
        }
        Op::Release(release) if row.rvn.is_of(&release.nonce) && row.released => just(Applied::Released),
        Op::Finish(finish)
            if row.rvn.is_of(&finish.nonce) && row.released && has_completion_of(&row, &finish.nonce) =>
        {
            just(Applied::Finished)
        }
        Op::Revoke(revoke) if row.is_held_by(&revoke.nonce) && row.is_revoked() => just(Applied::Revoked),
        Op::Tell(tell) if row.is_held_by(&tell.nonce) && row.told > 0 => just(Applied::Told),
        Op::Raise(raise) if row.is_held_by(&raise.nonce) && is_raised(&row, raise) => match row.counter {
            Some(counter) => just(Applied::Raised { counter }),
            None => wrong(),
        },
        Op::Release(_) | Op::Finish(_) | Op::Revoke(_) | Op::Tell(_) | Op::Raise(_) | Op::Renew(_) | Op::Read => {
            wrong()
        }
    }
}

/// The refusal of a run by the completion in its row, or because the completion cannot be read.
fn marked(row: &Row, op: &Op, unix_ms: u64) -> Option<Refusal> {
    let asks = match op {
        Op::Acquire(op) => op.unless_done,
        Op::Finish(_) => row.done.is_err(),
        Op::Renew(_) | Op::Release(_) | Op::Revoke(_) | Op::Tell(_) | Op::Raise(_) | Op::Read => false,
    };
    match row.done.as_ref().map_err(Clone::clone) {
        Ok(done) => done.as_ref().filter(|_| asks).and_then(|done| done.standing(unix_ms)).map(Refusal::Done),
        Err(denial) => asks.then_some(Refusal::Denied(denial)),
    }
}

fn has_completion_of(row: &Row, nonce: &Nonce) -> bool {
    matches!(&row.done, Ok(Some(done)) if done.is_of(nonce))
}

/// The counter covers the token, and the trust is what it was meant to be.
fn is_raised(row: &Row, raise: &Raise) -> bool {
    is_high_enough(row, raise) && (raise.loss.is_none() || row.trust == raise.loss)
}

fn is_high_enough(row: &Row, raise: &Raise) -> bool {
    row.counter.is_some_and(|counter| counter >= raise.token)
}

/// The row that stood in the way.
fn refused(settings: &Settings, op: &LockOp, form: Form, row: Option<&Json>, unix_ms: u64) -> Told {
    let row = match row_in(settings, op, row) {
        Ok(row) => row,
        Err(outcome) => return Told::Outcome(outcome, None),
    };
    let wrong = || Told::Outcome(misfit(), None);
    let longer = |row: &Row| match is_kept_longer(&op.resource, row, unix_ms) {
        true => Expires::Stays,
        false => Expires::Earlier,
    };
    if let Some(row) = &row {
        if let Some(refusal) = marked(row, &op.op, unix_ms) {
            return Told::Outcome(Outcome::NotApplied(refusal), None);
        }
        match &op.op {
            Op::Finish(finish) if row.is_held_by(&finish.nonce) && row.counter == Some(finish.counter) => {
                return wrong();
            }
            Op::Finish(finish) if has_completion_of(row, &finish.nonce) => {
                return Told::Outcome(Outcome::Applied(Applied::Finished), None);
            }
            Op::Acquire(acquire) if row.is_free_for(acquire) => match stepped(row, acquire, form, longer(row)) {
                Free::Exhausted => return Told::Outcome(exhausted(), None),
                Free::OtherForm(form) => return Told::OtherForm(form),
                Free::Raced => {}
                Free::Contradiction => return wrong(),
            },
            Op::Raise(raise) if row.is_held_by(&raise.nonce) => {
                match (is_raised(row, raise), form.counter, row.counter) {
                    (true, _, Some(counter)) => {
                        return Told::Outcome(Outcome::Applied(Applied::Raised { counter }), None);
                    }
                    (false, Counter::Below, _) if is_high_enough(row, raise) => {
                        return Told::OtherForm(Form { counter: Counter::Above, ..form });
                    }
                    _ => return wrong(),
                }
            }
            // What is ours is never in its own way.
            Op::Renew(renew) if row.rvn.is_before(&renew.nonce, renew.seq) && !row.released => {
                return match longer(row) {
                    Expires::Stays if form.expires == Expires::Earlier => {
                        Told::OtherForm(Form { expires: Expires::Stays, ..form })
                    }
                    Expires::Earlier | Expires::Stays => wrong(),
                };
            }
            Op::Release(release) if row.rvn.is_of(&release.nonce) && (!row.released || row.undone) => return wrong(),
            // Something on the way has sent it twice, and this is the answer to the second. Others free it at another time.
            Op::Release(release) if row.rvn.is_of(&release.nonce) && row.freed_at == Some(unix_ms) => {
                return Told::Outcome(Outcome::Applied(Applied::Released), None);
            }
            Op::Revoke(revoke) if row.is_held_by(&revoke.nonce) => return wrong(),
            Op::Tell(tell) if row.is_held_by(&tell.nonce) => return wrong(),
            Op::Acquire(_)
            | Op::Renew(_)
            | Op::Release(_)
            | Op::Finish(_)
            | Op::Revoke(_)
            | Op::Tell(_)
            | Op::Raise(_)
            | Op::Read => {}
        }
    }
    let trust = row.as_ref().and_then(|row| row.trust);
    Told::Outcome(shown(row, |seen| Outcome::NotApplied(Refusal::Conflict(seen))), trust)
}

/// Why a free row was not written.
enum Free {
    Exhausted,
    OtherForm(Form),
    /// The row is another than it was when the first form was refused.
    Raced,
    Contradiction,
}

fn stepped(row: &Row, op: &Acquire, form: Form, expires: Expires) -> Free {
    let is_below = row.counter.is_none_or(|counter| counter < expressions::floor(op));
    let fitting = Form { counter: if is_below { Counter::Below } else { Counter::Above }, expires };
    // What leaves the time to live as it is fits any.
    let fits = form.counter == fitting.counter && (form.expires == Expires::Stays || form.expires == expires);
    match form {
        _ if row.counter == Some(Token::MAX) && !is_below => Free::Exhausted,
        _ if fits => Free::Contradiction,
        Form::FIRST => Free::OtherForm(fitting),
        _ => Free::Raced,
    }
}

fn shown(row: Option<Row>, outcome: impl FnOnce(Seen) -> Outcome) -> Outcome {
    match row.map(Row::seen).unwrap_or_default().checked() {
        Ok(seen) => outcome(seen),
        Err(denial) => Outcome::NotApplied(Refusal::Denied(denial)),
    }
}

/// The row in an answer, if there is one and it is the one that was asked for.
fn row_in(settings: &Settings, op: &LockOp, row: Option<&Json>) -> Result<Option<Row>, Outcome> {
    let Some(row) = row else { return Ok(None) };
    let row = row.as_object().ok_or_else(misfit)?;
    if row.get(settings.key_name()).and_then(as_text) != Some(op.resource.as_str()) {
        return Err(misfit());
    }
    match Row::read(settings, row) {
        Ok(row) => Ok(Some(row)),
        Err(denial) => Err(Outcome::NotApplied(Refusal::Denied(denial))),
    }
}

fn exhausted() -> Outcome {
    Outcome::NotApplied(Refusal::Denied(Denial::new(
        DenialKind::TokensExhausted,
        "the counter has reached 2^53 - 1; lock another name, or start over with a lower counter everywhere",
    )))
}
