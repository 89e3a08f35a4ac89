//! From replies to outcomes. An impostor of the server can answer anything, so every shape is checked.

use alloc::boxed::Box;
use core::time::Duration;

use super::Asked;
use super::errors::error_outcome;
use super::scripts::RENEW_PARTS;
use super::value::{self, LockValue};
use crate::resp::{Digits, Value};
use leasehold_core::member::{LossId, QuorumId};
use leasehold_core::node::wrong_quorum;
use leasehold_core::op::{
    Applied, Completion, Denial, DenialKind, Fault, FaultKind, Holder, Holding, Outcome, Refusal, Seen,
};
use leasehold_core::{Nonce, OneOrMany, RequestId, Seq, Token, Version};

/// Returns the outcome of one operation, by the reply of its script.
pub(super) fn outcome(id: RequestId, asked: Asked, reply: &Value) -> Outcome {
    if let (Asked::Release(_), Value::Bulk(_)) = (asked, reply) {
        return if names(id, reply) { Outcome::Applied(Applied::Released) } else { of_another() };
    }
    match answer_to(id, reply) {
        Ok(parts) => judge(asked, parts).unwrap_or_else(misfit),
        Err(outcome) => outcome,
    }
}

/// The place in the queue of waiters that a refused acquire has got, and how long the lock is reserved for another.
pub(super) fn place(id: RequestId, reply: &Value) -> Option<(u64, Option<Duration>)> {
    match answer_to(id, reply).ok()? {
        [word, place, rest @ ..] if word.as_bytes() == Some(b"placed") => {
            let left = match rest {
                [word, left] if word.as_bytes() == Some(b"reserved") => time_left(left).flatten(),
                _ => None,
            };
            Some((count(place)?, left))
        }
        _ => None,
    }
}

/// Returns the outcomes of several renewals, by the one reply for all of them.
pub(super) fn renewals(id: RequestId, all: &[Asked], reply: &Value) -> OneOrMany<Outcome> {
    let same = |outcome: Outcome| all.iter().map(|_| outcome.clone()).collect();
    let parts = match answer_to(id, reply) {
        Ok(parts) => parts,
        Err(outcome) => return same(outcome),
    };
    if parts.len() != all.len() * RENEW_PARTS {
        return same(protocol("the reply answers another number of renewals"));
    }
    let each = parts.chunks(RENEW_PARTS).map(without_filling);
    all.iter()
        .zip(each)
        .map(|(asked, parts)| parts.and_then(|parts| judge(*asked, parts)).unwrap_or_else(misfit))
        .collect()
}

/// The parts of an answer to this very request: after a reply too many, the next ones would be read as answers to
/// questions that were asked later. An error names no request; taken for another's, it is never a grant.
pub(super) fn answer_to(id: RequestId, reply: &Value) -> Result<&[Value], Outcome> {
    if let Some(error) = reply.as_error() {
        return Err(error_outcome(error));
    }
    let Value::Array(parts) = reply else { return Err(misfit()) };
    let (last, parts) = parts.split_last().ok_or_else(misfit)?;
    if names(id, last) { Ok(parts) } else { Err(of_another()) }
}

fn names(id: RequestId, word: &Value) -> bool {
    word.as_bytes() == Some(Digits::of(id.get()).as_bytes())
}

fn of_another() -> Outcome {
    protocol("the reply is not to this request")
}

/// A grant that is only as good as the replicas that have it: `reply` is what WAIT said.
pub(super) fn with_replicas(outcome: Outcome, wanted: u32, reply: &Value) -> Outcome {
    let grants = matches!(
        outcome,
        Outcome::Applied(
            Applied::Acquired { .. }
                | Applied::AcquiredInDoubt { .. }
                | Applied::Renewed
                | Applied::Finished
                | Applied::Revoked
                | Applied::Raised { .. }
        )
    );
    if !grants {
        return outcome;
    }
    match (reply, integer(reply)) {
        (_, Some(count)) if count >= i64::from(wanted) => outcome,
        (_, Some(count)) if count >= 0 => {
            let detail = alloc::format!("{count} of {wanted} replicas have confirmed the write in time");
            Outcome::Unknown(Fault::new(FaultKind::Server, &detail))
        }
        (Value::Error(error), _) => {
            let detail = alloc::format!("the replicas could not be asked: {}", super::errors::said(error));
            Outcome::Unknown(Fault::new(FaultKind::Server, &detail))
        }
        _ => protocol("WAIT was answered with no count"),
    }
}

fn misfit() -> Outcome {
    protocol("the reply does not fit the request")
}

/// The parts that an answer of this word has; the others must be empty.
fn without_filling(parts: &[Value]) -> Option<&[Value]> {
    let meant = match parts.first()?.as_bytes()? {
        b"error" | b"free" => 2,
        b"foreign" => 3,
        b"held" => 4,
        _ => 1,
    };
    let (parts, filling) = parts.split_at_checked(meant)?;
    filling.iter().all(|part| part.as_bytes() == Some(b"")).then_some(parts)
}

pub(super) fn protocol(detail: &str) -> Outcome {
    Outcome::Unknown(Fault::new(FaultKind::Protocol, detail))
}

fn judge(asked: Asked, parts: &[Value]) -> Option<Outcome> {
    let (word, rest) = parts.split_first()?;
    let applied = |applied| Some(Outcome::Applied(applied));
    match (asked, word.as_bytes()?, rest) {
        (Asked::Acquire(_) | Asked::Vote(..), b"granted", [counter]) => {
            applied(Applied::Acquired { counter: token(counter).filter(|counter| *counter > Token::ZERO)? })
        }
        (Asked::Acquire(_), b"placed", [_, rest @ ..]) => judge(asked, rest),
        (Asked::Vote(..), b"doubtful", [counter, loss]) => {
            let counter = token(counter).filter(|counter| *counter > Token::ZERO)?;
            applied(Applied::AcquiredInDoubt { counter, stamp: stamp(loss)? })
        }
        (Asked::Vote(..), b"abstains", [loss]) => {
            Some(Outcome::NotApplied(Refusal::Abstains { stamp: Some(stamp(loss)?) }))
        }
        (Asked::Acquire(_) | Asked::Vote(..), b"done", [completion, left, about]) => {
            Some(match read_completion(completion, left, about)? {
                Ok(completion) => Outcome::NotApplied(Refusal::Done(Box::new(completion))),
                Err(denial) => Outcome::NotApplied(Refusal::Denied(denial)),
            })
        }
        (Asked::Read, b"marked", [completion, left, about, rest @ ..]) => {
            Some(match (read_completion(completion, left, about)?, judge(asked, rest)?) {
                (Ok(completion), Outcome::Applied(Applied::Read(seen))) => {
                    Outcome::Applied(Applied::Read(Seen { done: Some(Box::new(completion)), ..seen }))
                }
                (Ok(_), outcome) => outcome,
                (Err(denial), _) => Outcome::NotApplied(Refusal::Denied(denial)),
            })
        }
        (Asked::Renew(_) | Asked::Release(_) | Asked::Finish(..), b"abstains", []) => {
            Some(Outcome::NotApplied(Refusal::Abstains { stamp: None }))
        }
        (Asked::Vote(_, ours, max_ttl_ms), b"stranger", [quorum, most]) => {
            let quorum = core::str::from_utf8(quorum.as_bytes()?).ok().and_then(QuorumId::parse);
            let theirs = quorum.zip(integer(most).and_then(|ms| ms.try_into().ok()));
            Some(Outcome::NotApplied(Refusal::Denied(wrong_quorum((ours, max_ttl_ms), theirs))))
        }
        (Asked::Renew(_), b"renewed", []) => applied(Applied::Renewed),
        (Asked::Finish(..), b"finished", []) => applied(Applied::Finished),
        (Asked::Revoke(_), b"revoked", []) => applied(Applied::Revoked),
        (Asked::Raise(_, least), b"raised", [counter]) => {
            applied(Applied::Raised { counter: token(counter).filter(|counter| *counter >= least)? })
        }
        (Asked::Acquire(_) | Asked::Vote(..) | Asked::Raise(..), b"corrupt", []) => Some(denied(
            DenialKind::CorruptRecord,
            "the counter beside the lock is no integer below 2^53; set the key {name}\\x1ffence of name to a number \
             above every token that was used, or delete it (without \" of name\" if the name has a hash tag)",
        )),
        (Asked::Acquire(_) | Asked::Vote(..), b"exhausted", []) => Some(denied(
            DenialKind::TokensExhausted,
            "the counter has reached 2^53 - 1; lock another name, or start over with a lower counter everywhere",
        )),
        // An answer for one of several renewals; a single script's error is an error reply.
        (Asked::Renew(_), b"error", [error]) => Some(error_outcome(core::str::from_utf8(error.as_bytes()?).ok()?)),
        (Asked::Acquire(_), b"reserved", [left]) => {
            time_left(left)?;
            shown(asked, Seen::default())
        }
        // An acquire without a place meets it where the lock is reserved for a waiter.
        (_, b"free", [counter]) => shown(asked, Seen { holding: over(asked, shown_counter(counter)?), done: None }),
        (_, b"held", [value, left, counter]) => {
            let counter = shown_counter(counter)?;
            let holding = held(value.as_bytes()?, time_left(left)?, counter)?;
            shown(asked, Seen { holding: Some(Box::new(holding)), done: None })
        }
        (_, b"foreign", [version, left]) => {
            let holding = foreign(version.as_bytes()?, time_left(left)?)?;
            shown(asked, Seen { holding: Some(Box::new(holding)), done: None })
        }
        _ => None,
    }
}

/// The counter beside a lock, where it stands.
fn shown_counter(counter: &Value) -> Option<Option<Token>> {
    if counter.as_bytes() == Some(b"") { Some(None) } else { token(counter).map(Some) }
}

/// The record of a lease whose key is gone. A counter that stands beside it shows that the server has not lost its data: the
/// lock was freed.
fn over(asked: Asked, counter: Option<Token>) -> Option<Box<Holding>> {
    let (Asked::Renew(nonce) | Asked::Release(nonce) | Asked::Finish(nonce, _)) = asked else { return None };
    let holding = Holding::of(Holder::Lease { nonce, seq: None }, Version::new(nonce.as_bytes())?);
    counter.map(|_| Box::new(Holding { released: true, counter, ..holding }))
}

fn shown(asked: Asked, seen: Seen) -> Option<Outcome> {
    let ours = |nonce: &Nonce| seen.held().filter(|holding| holding.is_of(nonce));
    let contradicts = match asked {
        Asked::Acquire(nonce) | Asked::Vote(nonce, ..) | Asked::Renew(nonce) | Asked::Raise(nonce, _) => {
            ours(&nonce).is_some_and(|holding| !holding.is_revoked())
        }
        Asked::Release(nonce) | Asked::Revoke(nonce) => ours(&nonce).is_some(),
        Asked::Finish(nonce, counter) => ours(&nonce).is_some_and(|holding| holding.counter == Some(counter)),
        Asked::Read => false,
    };
    if contradicts {
        // What is ours is never in its own way, unless it is revoked.
        return None;
    }
    Some(match (asked, seen.checked()) {
        (_, Err(denial)) => Outcome::NotApplied(Refusal::Denied(denial)),
        (Asked::Read, Ok(seen)) => Outcome::Applied(Applied::Read(seen)),
        (
            Asked::Acquire(_)
            | Asked::Vote(..)
            | Asked::Renew(_)
            | Asked::Release(_)
            | Asked::Finish(..)
            | Asked::Revoke(_)
            | Asked::Raise(..),
            Ok(seen),
        ) => Outcome::NotApplied(Refusal::Conflict(seen)),
    })
}

/// The outer `None` is an answer that no server gives, the inner error a completion that no honest client writes.
fn read_completion(completion: &Value, left: &Value, about: &Value) -> Option<Result<Completion, Denial>> {
    // A completion without an end shows no time that is left.
    let left = time_left(left)?.unwrap_or(Duration::MAX);
    Some(value::parse_completion(completion.as_bytes()?, left, about.as_bytes()?).ok_or_else(|| {
        Denial::new(
            DenialKind::CorruptRecord,
            "the completion of finished work beside the lock is damaged or was written by another program; if the work \
             was not done, delete the key {name}\\x1fdone of name (without \" of name\" if the name has a hash tag)",
        )
    }))
}

fn held(value: &[u8], left: Option<Duration>, counter: Option<Token>) -> Option<Holding> {
    let Some(LockValue { nonce, owner, since_unix_ms, data, session, revoked }) = value::parse(value) else {
        return foreign(&value[..value.len().min(Version::MAX_BYTES)], left);
    };
    Some(Holding {
        told: 0,
        holder: Holder::Lease { nonce, seq: revoked.then_some(Seq::LAST) },
        // The value does not change as long as the attempt holds the lock, but for the mark of a revoke.
        version: Version::new(nonce.as_bytes())?,
        released: false,
        counter,
        owner: Some(owner),
        record_ttl: None,
        left,
        since_unix_ms: Some(since_unix_ms),
        data,
        session,
    })
}

fn foreign(version: &[u8], left: Option<Duration>) -> Option<Holding> {
    Some(Holding { left, ..Holding::of(Holder::Foreign, Version::new(version)?) })
}

/// Reads the reply to PTTL: the outer `None` is nonsense, the inner one a key without expiry.
fn time_left(value: &Value) -> Option<Option<Duration>> {
    match integer(value)? {
        -1 => Some(None),
        // Gone while we looked, which servers that stop their clock for a script never say.
        -2 => Some(Some(Duration::ZERO)),
        left => Some(Some(Duration::from_millis(u64::try_from(left).ok()?))),
    }
}

fn stamp(value: &Value) -> Option<LossId> {
    LossId::parse(core::str::from_utf8(value.as_bytes()?).ok()?)
}

pub(super) fn token(value: &Value) -> Option<Token> {
    Token::new(u64::try_from(integer(value)?).ok()?)
}

pub(super) fn count(value: &Value) -> Option<u64> {
    u64::try_from(integer(value)?).ok()
}

/// An integer, or its decimal digits: some proxies answer with text.
fn integer(value: &Value) -> Option<i64> {
    if let Value::Integer(integer) = value {
        return Some(*integer);
    }
    let text = core::str::from_utf8(value.as_bytes()?).ok()?;
    let digits = text.strip_prefix('-').unwrap_or(text);
    let plain = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    if plain { text.parse().ok() } else { None }
}

fn denied(kind: DenialKind, detail: &str) -> Outcome {
    Outcome::NotApplied(Refusal::Denied(Denial::new(kind, detail)))
}
