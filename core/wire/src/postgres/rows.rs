//! Rows as they come back. Every column is checked: any user who can write the table can write anything into it.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use leasehold_core::config::MAX_KEEP;
use leasehold_core::member::{LossId, RunId};
use leasehold_core::op::{Completion, Denial, DenialKind, Holder, Holding, Seen, Session};
use leasehold_core::{About, Nonce, Owner, Payload, Seq, Token, Version};

use super::Field;
use crate::session_text;

/// The most that the server's clock may move between the two readings of one finish: 60 s, since it may be set then. A completion
/// of the longest time would otherwise be taken for one that no honest client writes.
const CLOCK_STEP: Duration = Duration::from_secs(60);

/// A row of a lock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct LockRow {
    pub(super) counter: Token,
    pub(super) nonce: Nonce,
    pub(super) seq: Seq,
    pub(super) released: bool,
    /// Zero once it has run out.
    pub(super) left: Duration,
    record_ttl: Duration,
    since_unix_ms: u64,
    owner: Owner,
    data: Option<Payload>,
    session: Option<Session>,
    /// The loss since which the counter was raised.
    pub(super) trust: Option<LossId>,
    /// The last completion of finished work, with its attempt.
    completion: Option<(Nonce, Completion)>,
}

/// The memory of a node beside its locks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Memory {
    /// The marker as it is written; empty where there is none.
    pub(super) marker: String,
    pub(super) run: Option<RunId>,
    pub(super) unix_ms: u64,
}

/// The fields of a row that no statement of ours returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Misfit;

impl LockRow {
    pub(super) fn is_live(&self) -> bool {
        !self.released && !self.left.is_zero()
    }

    /// The completion of finished work, if it still stands.
    pub(super) fn standing(&self) -> Option<&(Nonce, Completion)> {
        self.completion.as_ref().filter(|(_, completion)| !completion.left.is_zero())
    }

    pub(super) fn seen(&self) -> Seen {
        let holding = (self.released || self.is_live()).then(|| {
            Box::new(Holding {
                told: 0,
                holder: Holder::Lease { nonce: self.nonce, seq: Some(self.seq) },
                version: Version::of(&self.nonce, self.seq),
                released: self.released,
                counter: Some(self.counter),
                owner: Some(self.owner.clone()),
                record_ttl: Some(self.record_ttl),
                left: Some(self.left),
                since_unix_ms: Some(self.since_unix_ms),
                data: self.data.clone(),
                session: self.session.clone(),
            })
        });
        Seen { holding, done: self.standing().map(|(_, completion)| Box::new(completion.clone())) }
    }
}

/// Reads a row of the statement `read`: the memory, and the lock with its name if there is one.
///
/// The outer error is an answer that no server gives, the inner one a row that no honest client writes.
#[expect(clippy::type_complexity, reason = "used once")]
pub(super) fn read(row: &[Field]) -> Result<(Memory, Option<(&str, Result<LockRow, Denial>)>), Misfit> {
    let (memory, lock) = row.split_at_checked(3).ok_or(Misfit)?;
    let memory = memory_of(memory)?;
    if lock.first() == Some(&Field::Null) {
        return Ok((memory, None));
    }
    let Some((Field::Text(name), columns)) = lock.split_first() else { return Err(Misfit) };
    Ok((memory, Some((name, found(columns)))))
}

/// Reads marker, run and clock.
pub(super) fn memory_of(fields: &[Field]) -> Result<Memory, Misfit> {
    let [marker, run, Field::Int(unix_ms)] = fields else { return Err(Misfit) };
    let text = |field: &Field| match field {
        Field::Null => Ok(String::new()),
        Field::Text(text) => Ok(text.clone()),
        Field::Int(_) | Field::Bytes(_) | Field::Bool(_) => Err(Misfit),
    };
    Ok(Memory {
        marker: text(marker)?,
        run: RunId::new(&text(run)?),
        unix_ms: u64::try_from(*unix_ms).map_err(|_| Misfit)?,
    })
}

pub(super) fn token(field: &Field) -> Option<Token> {
    match field {
        Field::Int(number) => Token::new(u64::try_from(*number).ok()?),
        Field::Null | Field::Text(_) | Field::Bytes(_) | Field::Bool(_) => None,
    }
}

pub(super) fn loss(field: &Field) -> Option<LossId> {
    match field {
        Field::Text(text) => LossId::parse(text),
        Field::Null | Field::Int(_) | Field::Bytes(_) | Field::Bool(_) => None,
    }
}

fn found(columns: &[Field]) -> Result<LockRow, Denial> {
    let [counter, nonce, seq, released, ttl, left, since, owner, data, trust, done @ ..] = columns else {
        return Err(corrupt("(all)"));
    };
    let Field::Bool(released) = released else { return Err(corrupt("released")) };
    let holder = if let Field::Text(text) = owner { session_text::read_owner(text) } else { None };
    let (owner, session) = holder.ok_or_else(|| corrupt("owner"))?;
    Ok(LockRow {
        counter: token(counter).ok_or_else(|| corrupt("counter"))?,
        nonce: attempt(nonce).ok_or_else(|| corrupt("nonce"))?,
        seq: number(seq).and_then(|seq| u32::try_from(seq).ok()).map(Seq::new).ok_or_else(|| corrupt("seq"))?,
        released: *released,
        left: micros(left).ok_or_else(|| corrupt("expires_at"))?,
        record_ttl: micros(ttl).ok_or_else(|| corrupt("ttl_us"))?,
        since_unix_ms: number(since).ok_or_else(|| corrupt("since"))?,
        owner,
        session,
        data: match data {
            Field::Null => None,
            Field::Bytes(bytes) => Some(Payload::new(bytes).map_err(|_| corrupt("data"))?),
            Field::Text(_) | Field::Int(_) | Field::Bool(_) => return Err(corrupt("data")),
        },
        trust: loss(trust),
        completion: completion(done)?,
    })
}

fn completion(columns: &[Field]) -> Result<Option<(Nonce, Completion)>, Denial> {
    let [nonce, token_field, owner, at, left, keep, about] = columns else { return Err(corrupt("done_nonce")) };
    if *left == Field::Null {
        return Ok(None);
    }
    if micros(keep).is_none_or(|keep| keep > MAX_KEEP.saturating_add(CLOCK_STEP)) {
        return Err(corrupt("done_until"));
    }
    let nonce = attempt(nonce).ok_or_else(|| corrupt("done_nonce"))?;
    let completion = Completion {
        token: token(token_field).ok_or_else(|| corrupt("done_token"))?,
        owner: label(owner).ok_or_else(|| corrupt("done_owner"))?,
        at_unix_ms: number(at).ok_or_else(|| corrupt("done_at"))?,
        left: micros(left).ok_or_else(|| corrupt("done_until"))?,
        about: about_in(about).filter(|about| about.nonce() == nonce),
        unsettled: false,
    };
    Ok(Some((nonce, completion)))
}

/// The record of a run as its column holds it.
pub(super) fn about_text(about: &About) -> String {
    STANDARD.encode(about.as_bytes())
}

fn about_in(field: &Field) -> Option<About> {
    let Field::Text(text) = field else { return None };
    About::read(&STANDARD.decode(text).ok()?)
}

fn attempt(field: &Field) -> Option<Nonce> {
    let Field::Bytes(bytes) = field else { return None };
    Some(Nonce::from_bytes(bytes.as_slice().try_into().ok()?))
}

fn label(field: &Field) -> Option<Owner> {
    let Field::Text(text) = field else { return None };
    Owner::new(text).ok()
}

fn number(field: &Field) -> Option<u64> {
    let Field::Int(number) = field else { return None };
    u64::try_from(*number).ok()
}

/// A length of time; one that is over is zero.
fn micros(field: &Field) -> Option<Duration> {
    let Field::Int(micros) = field else { return None };
    Some(Duration::from_micros(u64::try_from(*micros).unwrap_or(0)))
}

/// Fields of one row, in the order in which they were asked for.
pub(super) type Row = Vec<Field>;

fn corrupt(column: &str) -> Denial {
    Denial::new(
        DenialKind::CorruptRecord,
        &alloc::format!(
            "this record is damaged or was written by another program: look at column {column}; if nobody holds the \
             lock, delete its row by hand (tokens keep growing)"
        ),
    )
}
