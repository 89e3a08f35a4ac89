//! Values of the core, made of a fuzzer's bytes.
//!
//! Names, attempts and numbers come from small sets for the most part, because values that never meet test little.

use std::time::Duration;

use arbitrary::{Result, Unstructured};
use leasehold_core::member::{Bootstrap, Durability, LossId, Marker, Membership, Phase, QuorumId, RETENTION, RunId};
use leasehold_core::op::{
    Acquire, Applied, Completion, Denial, DenialKind, Fault, FaultKind, Finish, Holder, Holding, LockOp, Op, Outcome,
    Raise, Refusal, Release, Renew, Revoke, Seen, TransportFault,
};
use leasehold_core::{About, LockId, Nonce, Owner, Payload, Resource, RunResult, Seq, Token, Version};

/// The time of honest hosts' wall clocks.
pub(crate) const UNIX_MS: u64 = 1_700_000_000_000;

/// A text that is found nowhere else, so that it can be looked for where no secret belongs.
pub(crate) const SECRET: &str = "Hunter2Hunter2";

/// True for so many of 256 bytes, and never where there are no more: what goes on for as long as this is true ends
/// there.
pub(crate) fn chance(u: &mut Unstructured<'_>, of_256: u8) -> bool {
    !u.is_empty() && u.arbitrary::<u8>().is_ok_and(|byte| byte < of_256)
}

/// `None`, or a value.
pub(crate) fn maybe<'a, T>(
    u: &mut Unstructured<'a>,
    make: impl FnOnce(&mut Unstructured<'a>) -> Result<T>,
) -> Result<Option<T>> {
    if u.arbitrary()? { make(u).map(Some) } else { Ok(None) }
}

/// A list of at most this many values.
pub(crate) fn some<'a, T>(
    u: &mut Unstructured<'a>,
    most: usize,
    mut make: impl FnMut(&mut Unstructured<'a>) -> Result<T>,
) -> Result<Vec<T>> {
    let count = u.int_in_range(0..=most)?;
    (0..count).map(|_| make(u)).collect()
}

/// Bytes, at most so many.
pub(crate) fn bytes(u: &mut Unstructured<'_>, most: usize) -> Result<Vec<u8>> {
    let count = u.int_in_range(0..=most.min(u.len()))?;
    u.bytes(count).map(<[u8]>::to_vec)
}

/// Text, of at most this many bytes before invalid UTF-8 was replaced.
pub(crate) fn text(u: &mut Unstructured<'_>, most: usize) -> Result<String> {
    Ok(String::from_utf8_lossy(&bytes(u, most)?).into_owned())
}

/// One of few, or any.
pub(crate) fn nonce(u: &mut Unstructured<'_>) -> Result<Nonce> {
    Ok(Nonce::from_bytes(match u.int_in_range(0..=3)? {
        3 => u.arbitrary()?,
        n => [n * 0x11 + 1; 16],
    }))
}

/// Small for the most part.
pub(crate) fn seq(u: &mut Unstructured<'_>) -> Result<Seq> {
    Ok(Seq::new(if chance(u, 16) { u.arbitrary()? } else { u.int_in_range(0..=4)? }))
}

/// Around the edges and around the clock.
pub(crate) fn number(u: &mut Unstructured<'_>) -> Result<u64> {
    let base = *u.choose(&[0, 1, 100, 30_000, UNIX_MS, (1 << 53) - 1, 1 << 53, u64::MAX])?;
    Ok(match u.arbitrary::<u8>()? {
        0..200 => base,
        200..230 => base.saturating_add(u.arbitrary::<u8>()?.into()),
        230..250 => base.saturating_sub(u.arbitrary::<u8>()?.into()),
        250.. => u.arbitrary()?,
    })
}

/// Within what tokens can be.
pub(crate) fn token(u: &mut Unstructured<'_>) -> Result<Token> {
    Ok(Token::new(number(u)?).unwrap_or(Token::MAX))
}

/// A duration from zero to the longest, bounds included.
pub(crate) fn length(u: &mut Unstructured<'_>) -> Result<Duration> {
    const SECONDS: [u64; 9] = [0, 1, 2, 30, 60, 24 * 3600, 48 * 3600, 49 * 3600, u64::MAX];
    Ok(match u.arbitrary::<u8>()? {
        0..120 => Duration::from_secs(*u.choose(&SECONDS)?),
        120..180 => Duration::from_millis(*u.choose(&[1, 10, 99, 100, 101, 500])?),
        180..230 => Duration::from_millis(u.arbitrary::<u16>()?.into()),
        230..250 => Duration::from_nanos(u.arbitrary()?),
        250.. => Duration::new(u.arbitrary()?, u.int_in_range(0..=999_999_999)?),
    })
}

/// One of few, or any that can be one.
pub(crate) fn resource(u: &mut Unstructured<'_>) -> Result<Resource> {
    let named = match u.int_in_range(0..=7)? {
        0..=3 => "a".to_owned(),
        4 | 5 => "b".to_owned(),
        6 => (*u.choose(&["{tag}a", "{}", "a{b}c}", "é", " ", "cas"])?).to_owned(),
        _ => text(u, 40)?,
    };
    Ok(Resource::new(&named).unwrap_or_else(|_| Resource::new("c").expect("invariant: a letter is a name")))
}

/// A label that can be one.
pub(crate) fn owner(u: &mut Unstructured<'_>) -> Result<Owner> {
    let nobody = || Owner::new("").expect("invariant: a label may be empty");
    Ok(Owner::new(&text(u, 20)?).unwrap_or_else(|_| nobody()))
}

/// A payload that can be one.
pub(crate) fn payload(u: &mut Unstructured<'_>) -> Result<Payload> {
    Ok(Payload::new(&bytes(u, 40)?).expect("invariant: it is short"))
}

/// One of few.
pub(crate) fn stamp(u: &mut Unstructured<'_>) -> Result<LossId> {
    Ok(LossId([u.int_in_range(1..=3)?; 16]))
}

/// One of two.
pub(crate) fn quorum_id(u: &mut Unstructured<'_>) -> Result<QuorumId> {
    Ok(QuorumId([u.int_in_range(8..=9)?; 16]))
}

/// The durability of a node.
pub(crate) fn durability(u: &mut Unstructured<'_>) -> Result<Durability> {
    Ok(*u.choose(&[Durability::Declared, Durability::NotDeclared])?)
}

/// The membership in an acquire.
pub(crate) fn membership(u: &mut Unstructured<'_>) -> Result<Membership> {
    Ok(Membership {
        quorum: quorum_id(u)?,
        max_ttl_ms: *u.choose(&[60_000, 100, u64::MAX])?,
        durability: durability(u)?,
        fresh: stamp(u)?,
        waited_out: maybe(u, stamp)?,
        bootstrap: *u.choose(&[Bootstrap::Yes, Bootstrap::No])?,
        retention: *u.choose(&[RETENTION, Duration::ZERO, Duration::MAX])?,
    })
}

/// The marker of a node.
pub(crate) fn marker(u: &mut Unstructured<'_>) -> Result<Marker> {
    Ok(Marker {
        quorum: quorum_id(u)?,
        max_ttl_ms: *u.choose(&[60_000, 100, u64::MAX])?,
        stamp: stamp(u)?,
        phase: match u.int_in_range(0..=2)? {
            0 => Phase::Member,
            1 => Phase::Joining,
            _ => Phase::Rejoined { trusted_from_unix_ms: number(u)? },
        },
        run: maybe(u, |u| Ok(*u.choose(&["abc1", "def2"])?))?.and_then(RunId::new),
    })
}

/// An operation of any kind, with arguments that need not make sense together.
pub(crate) fn op(u: &mut Unstructured<'_>) -> Result<Op> {
    Ok(match u.int_in_range(0..=6)? {
        0 => Op::Acquire(Box::new(Acquire {
            nonce: nonce(u)?,
            seq: seq(u)?,
            record_ttl: length(u)?,
            floor: token(u)?,
            expect: maybe(u, version)?,
            owner: owner(u)?,
            data: maybe(u, payload)?,
            session: None,
            member: maybe(u, membership)?,
            unless_done: u.arbitrary()?,
            in_queue: false,
        })),
        1 => Op::Renew(Renew { nonce: nonce(u)?, seq: seq(u)?, record_ttl: length(u)?, quorum: maybe(u, durability)? }),
        2 => Op::Release(Release { nonce: nonce(u)?, quorum: maybe(u, durability)? }),
        3 => Op::Finish(Box::new(Finish {
            nonce: nonce(u)?,
            token: token(u)?,
            counter: token(u)?,
            keep: length(u)?,
            owner: owner(u)?,
            about: maybe(u, about)?,
            quorum: maybe(u, durability)?,
        })),
        4 => Op::Raise(Raise { nonce: nonce(u)?, token: token(u)?, loss: maybe(u, stamp)? }),
        5 => Op::Revoke(Revoke { nonce: nonce(u)? }),
        _ => Op::Read,
    })
}

/// The operations of a request: several are renewals, as the core makes them, or any.
pub(crate) fn ops(u: &mut Unstructured<'_>) -> Result<Vec<LockOp>> {
    let lock_op = |u: &mut Unstructured<'_>| {
        Ok(LockOp { lock: LockId::new(u.int_in_range(0..=3)?), resource: resource(u)?, op: op(u)? })
    };
    let mut all = vec![lock_op(u)?];
    all.extend(some(u, 4, lock_op)?);
    Ok(all)
}

/// A version that a record may have.
pub(crate) fn version(u: &mut Unstructured<'_>) -> Result<Version> {
    let any = |u: &mut Unstructured<'_>| Ok(Version::new(&bytes(u, 24)?));
    let made = if u.arbitrary()? { Some(Version::of(&nonce(u)?, seq(u)?)) } else { any(u)? };
    Ok(made.unwrap_or_else(|| Version::of(&Nonce::from_bytes([9; 16]), Seq::new(1))))
}

/// A record, honest or not.
pub(crate) fn holding(u: &mut Unstructured<'_>, of: Option<Nonce>) -> Result<Holding> {
    let nonce = match of {
        Some(nonce) if u.arbitrary()? => nonce,
        Some(_) | None => nonce(u)?,
    };
    let holder = if chance(u, 60) { Holder::Foreign } else { Holder::Lease { nonce, seq: maybe(u, seq)? } };
    Ok(Holding {
        holder,
        version: version(u)?,
        released: chance(u, 60),
        counter: maybe(u, token)?,
        owner: maybe(u, owner)?,
        record_ttl: maybe(u, length)?,
        left: maybe(u, length)?,
        since_unix_ms: maybe(u, number)?,
        data: maybe(u, payload)?,
        session: None,
        told: if chance(u, 60) { number(u)? } else { 0 },
    })
}

/// A node's view of a resource.
pub(crate) fn seen(u: &mut Unstructured<'_>, of: Option<Nonce>) -> Result<Seen> {
    let holding = maybe(u, |u| holding(u, of).map(Box::new))?;
    let done = if chance(u, 60) { Some(Box::new(completion(u)?)) } else { None };
    Ok(Seen { holding, done })
}

/// A completion of finished work, honest or not.
pub(crate) fn completion(u: &mut Unstructured<'_>) -> Result<Completion> {
    let (token, owner, at_unix_ms, left) = (token(u)?, owner(u)?, number(u)?, length(u)?);
    Ok(Completion { token, owner, at_unix_ms, left, about: maybe(u, about)?, unsettled: u.arbitrary()? })
}

/// The record of a run of any attempt.
pub(crate) fn about(u: &mut Unstructured<'_>) -> Result<About> {
    let result = maybe(u, |u| Ok(RunResult::bytes(&u.arbitrary::<[u8; 3]>()?).ok()))?.flatten();
    Ok(About::new(&nonce(u)?, number(u)?, u.arbitrary()?, result.as_ref()))
}

/// A failure that may pass.
pub(crate) fn fault(u: &mut Unstructured<'_>) -> Result<Fault> {
    const KINDS: [FaultKind; 7] = [
        FaultKind::Timeout,
        FaultKind::Reset,
        FaultKind::Unreachable,
        FaultKind::Cancelled,
        FaultKind::Server,
        FaultKind::Busy,
        FaultKind::Protocol,
    ];
    Ok(Fault::of(*u.choose(&KINDS)?))
}

/// A refusal of any kind.
pub(crate) fn refusal(u: &mut Unstructured<'_>, of: Option<Nonce>) -> Result<Refusal> {
    const KINDS: [DenialKind; 7] = [
        DenialKind::Permission,
        DenialKind::Schema,
        DenialKind::CorruptRecord,
        DenialKind::TokensExhausted,
        DenialKind::StorageFull,
        DenialKind::Membership,
        DenialKind::Other,
    ];
    Ok(match u.int_in_range(0..=8)? {
        0..=2 => Refusal::Conflict(seen(u, of)?),
        8 => Refusal::Done(Box::new(completion(u)?)),
        3 => Refusal::Throttled(fault(u)?),
        4 => Refusal::Unavailable(fault(u)?),
        5 => Refusal::Abstains { stamp: maybe(u, stamp)? },
        6 => Refusal::NeedsCredentials(fault(u)?),
        _ => Refusal::Denied(Denial::new(*u.choose(&KINDS)?, "no")),
    })
}

/// The end of an operation: what fits it, most of the time, or anything.
pub(crate) fn outcome(u: &mut Unstructured<'_>, op: Option<&Op>) -> Result<Outcome> {
    let nonce = op.and_then(Op::nonce);
    Ok(match u.arbitrary::<u8>()? {
        0..150 => Outcome::Applied(fitting(u, op)?),
        150..210 => Outcome::NotApplied(refusal(u, nonce)?),
        210..235 => Outcome::Unknown(fault(u)?),
        235.. => Outcome::Applied(applied(u, nonce)?),
    })
}

fn fitting(u: &mut Unstructured<'_>, op: Option<&Op>) -> Result<Applied> {
    let Some(op) = op else { return applied(u, None) };
    Ok(match op {
        Op::Acquire(op) if op.member.is_some() && chance(u, 60) => {
            Applied::AcquiredInDoubt { counter: token(u)?, stamp: stamp(u)? }
        }
        Op::Acquire(op) => Applied::Acquired { counter: if u.arbitrary()? { op.floor } else { token(u)? } },
        Op::Renew(_) => Applied::Renewed,
        Op::Release(_) => Applied::Released,
        Op::Finish(_) => Applied::Finished,
        Op::Revoke(_) => Applied::Revoked,
        Op::Tell(_) => Applied::Told,
        Op::Raise(op) => Applied::Raised { counter: if u.arbitrary()? { op.token } else { token(u)? } },
        Op::Read => Applied::Read(seen(u, None)?),
    })
}

fn applied(u: &mut Unstructured<'_>, of: Option<Nonce>) -> Result<Applied> {
    Ok(match u.int_in_range(0..=7)? {
        0 => Applied::Acquired { counter: token(u)? },
        1 => Applied::AcquiredInDoubt { counter: token(u)?, stamp: stamp(u)? },
        2 => Applied::Renewed,
        3 => Applied::Released,
        4 => Applied::Raised { counter: token(u)? },
        5 => Applied::Finished,
        6 => Applied::Revoked,
        _ => Applied::Read(seen(u, of)?),
    })
}

/// A request without outcome.
pub(crate) fn transport_fault(u: &mut Unstructured<'_>) -> Result<TransportFault> {
    Ok(if u.arbitrary()? { TransportFault::NotSent(fault(u)?) } else { TransportFault::Unknown(fault(u)?) })
}
