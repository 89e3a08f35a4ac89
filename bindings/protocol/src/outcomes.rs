//! Conversion of the responses of stores to those of the core.
//!
//! An outcome that makes no sense may hide that something happened, so it counts as unknown. A record that can be read
//! but that no honest client wrote is denied, as it is by the stores that the core knows itself.

use alloc::boxed::Box;
use core::time::Duration;

use leasehold_core::member::LossId;
use leasehold_core::op::{
    Applied, Completion, Denial, Fault, FaultKind, Holder, Holding, Outcome, Refusal, Seen, TransportFault,
};
use leasehold_core::{About, Nonce, Owner, Payload, Seq, Token, Version};
use leasehold_wire::{client as wire, postgres, resp};

use crate::ops::all;
use crate::stores::{field, http_response};
use crate::wit::client::{RefusalTime, Response, ServerError};
use crate::wit::ops as wit;

pub(crate) fn response(response: Response) -> wire::Response {
    match response {
        Response::Outcomes(outcomes) => wire::Response::Outcomes(all(outcomes.outcomes, outcome)),
        Response::HttpResponse(response) => wire::Response::Http(http_response(response)),
        // Nonsense is no reply at all, and too few replies count as unknown.
        Response::RedisReplies(replies) => {
            wire::Response::Redis(resp::decode_all(&replies.replies).unwrap_or_default())
        }
        Response::Rows(rows) => wire::Response::Postgres(Ok(all(rows.rows, |row| all(row.columns, field)))),
        Response::ServerError(error) => wire::Response::Postgres(Err(said(&error))),
        Response::NotSent(reason) => wire::Response::Fault(TransportFault::NotSent(fault(reason))),
        Response::Unknown(reason) => wire::Response::Fault(TransportFault::Unknown(fault(reason))),
    }
}

fn said(error: &ServerError) -> Outcome {
    let when = match error.when {
        RefusalTime::AtLogin => postgres::RefusalTime::AtLogin,
        RefusalTime::InSession => postgres::RefusalTime::InSession,
        RefusalTime::AtTheEnd => postgres::RefusalTime::AtTheEnd,
    };
    postgres::refused(&error.code, &error.message, when)
}

pub(crate) fn outcome(outcome: wit::Outcome) -> Outcome {
    let read = match outcome {
        wit::Outcome::Applied(outcome) => applied(outcome.applied),
        wit::Outcome::NotApplied(outcome) => refusal(outcome.refusal).map(Outcome::NotApplied),
        wit::Outcome::Unknown(reason) => Some(Outcome::Unknown(fault(reason))),
    };
    read.unwrap_or_else(|| Outcome::Unknown(Fault::new(FaultKind::Protocol, "the host's answer cannot be read")))
}

fn applied(applied: wit::Applied) -> Option<Outcome> {
    let applied = match applied {
        wit::Applied::Acquired(node) => Applied::Acquired { counter: Token::new(node.counter)? },
        wit::Applied::AcquiredInDoubt(node) => {
            Applied::AcquiredInDoubt { counter: Token::new(node.counter)?, stamp: stamp(&node.stamp)? }
        }
        wit::Applied::Renewed => Applied::Renewed,
        wit::Applied::Released => Applied::Released,
        wit::Applied::Finished => Applied::Finished,
        wit::Applied::Revoked => Applied::Revoked,
        wit::Applied::Raised(node) => Applied::Raised { counter: Token::new(node.counter)? },
        wit::Applied::Read(shown) => match seen(shown)? {
            Ok(seen) => Applied::Read(seen),
            Err(denial) => return Some(Outcome::NotApplied(Refusal::Denied(denial))),
        },
    };
    Some(Outcome::Applied(applied))
}

fn refusal(refusal: wit::Refusal) -> Option<Refusal> {
    Some(match refusal {
        wit::Refusal::Conflict(shown) => match seen(shown)? {
            Ok(seen) => Refusal::Conflict(seen),
            Err(denial) => Refusal::Denied(denial),
        },
        wit::Refusal::Done(shown) => Refusal::Done(Box::new(completion(shown)?)),
        wit::Refusal::Throttled(reason) => Refusal::Throttled(fault(reason)),
        wit::Refusal::Unavailable(reason) => Refusal::Unavailable(fault(reason)),
        wit::Refusal::Abstains(lost) => Refusal::Abstains { stamp: optional(lost.stamp.as_deref(), stamp)? },
        wit::Refusal::NeedsCredentials(reason) => Refusal::NeedsCredentials(fault(reason)),
        wit::Refusal::Denied(reason) => Refusal::Denied(denial(reason)),
    })
}

/// The record that a store shows, or why it is denied; `None` where it cannot be read.
fn seen(seen: wit::Seen) -> Option<Result<Seen, Denial>> {
    let holding = optional(seen.holding, holding)?.map(Box::new);
    let done = optional(seen.done, completion)?.map(Box::new);
    Some(Seen { holding, done }.checked())
}

pub(crate) fn holding(holding: wit::Holding) -> Option<Holding> {
    Some(Holding {
        told: 0,
        holder: match holding.holder {
            Some(holder) => Holder::Lease { nonce: nonce(&holder.nonce)?, seq: holder.seq.map(Seq::new) },
            None => Holder::Foreign,
        },
        version: Version::new(&holding.version)?,
        released: holding.released,
        counter: optional(holding.counter, Token::new)?,
        // For people only, and not worth the record.
        owner: holding.owner.and_then(|label| Owner::new(&label).ok()),
        record_ttl: holding.record_ttl_ms.map(Duration::from_millis),
        left: holding.left_ms.map(Duration::from_millis),
        since_unix_ms: holding.since_unix_ms,
        data: holding.data.and_then(|bytes| Payload::new(&bytes).ok()),
        session: None,
    })
}

pub(crate) fn completion(completion: wit::Completion) -> Option<Completion> {
    Some(Completion {
        token: Token::new(completion.token)?,
        // For people only, as in a record.
        owner: Owner::new(&completion.owner).unwrap_or_default(),
        at_unix_ms: completion.at_unix_ms,
        left: Duration::from_millis(completion.left_ms),
        // One that cannot be read is none, as in a store.
        about: completion.about.and_then(|bytes| About::read(&bytes)),
        unsettled: completion.unsettled,
    })
}

/// Reads what is there: `None` where that fails, nothing where there is nothing.
pub(crate) fn optional<T, U>(value: Option<T>, read: impl FnOnce(T) -> Option<U>) -> Option<Option<U>> {
    value.map_or(Some(None), |value| read(value).map(Some))
}

pub(crate) fn nonce(bytes: &[u8]) -> Option<Nonce> {
    bytes.try_into().ok().map(Nonce::from_bytes)
}

pub(crate) fn stamp(bytes: &[u8]) -> Option<LossId> {
    bytes.try_into().ok().map(LossId)
}

fn fault(fault: wit::Fault) -> Fault {
    let kind = fault.kind.into();
    fault.detail.map_or(Fault::of(kind), |detail| Fault::new(kind, &detail))
}

fn denial(denial: wit::Denial) -> Denial {
    Denial::new(denial.kind.into(), &denial.detail)
}
