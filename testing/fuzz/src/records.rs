//! The contents of stores: records and markers, as anyone who can write there may have left them.

use arbitrary::{Result, Unstructured};
use leasehold_core::member::{Answer, CounterTrust, LossId, Marker, RunId, admit};
use leasehold_core::op::{Applied, LockOp, Op, Outcome, Refusal};
use leasehold_core::store::{BootId, CompletionRecord, LeaseRecord, Record, StoreNow, apply, seen};
use leasehold_core::{LockId, Monotonic, Resource, Token};

use crate::{invariants, values};

/// Markers as text, and operations on one record, one after the other.
pub fn run(bytes: &[u8]) {
    marker(bytes);
    let u = &mut Unstructured::new(bytes);
    // The run ends where the bytes end.
    let _ = admitted(u);
    let _ = kept(u);
}

fn marker(bytes: &[u8]) {
    if let Some(marker) = Marker::parse(bytes) {
        assert_eq!(marker.text().as_bytes(), bytes);
    }
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    if let Some(stamp) = LossId::parse(text) {
        assert_eq!(stamp.to_string(), text);
    }
    if let Some(run) = RunId::new(text) {
        assert!(run.as_str() == text && text.len() <= RunId::MAX_BYTES);
    }
}

/// A node never votes for another quorum, nor with a memory that may have gone.
fn admitted(u: &mut Unstructured<'_>) -> Result<()> {
    let (marker, asked) = (values::maybe(u, values::marker)?, values::membership(u)?);
    let run = values::maybe(u, |u| Ok(*u.choose(&["abc1", "def2"])?))?.and_then(RunId::new);
    let admission = admit(marker.as_ref(), &asked, run.as_ref(), values::number(u)?);
    let written = admission.write.as_ref().or(marker.as_ref());
    match admission.answer {
        Answer::Votes(counters) => {
            let marker = marker.as_ref().expect("who remembers nothing does not vote");
            assert_eq!((marker.quorum, marker.max_ttl_ms), (asked.quorum, asked.max_ttl_ms));
            if let CounterTrust::ByResource(stamp) = counters {
                assert_eq!(Some(stamp), written.map(|marker| marker.stamp));
            }
        }
        Answer::Abstains(stamp) => assert_eq!(Some(stamp), written.map(|marker| marker.stamp)),
        Answer::WrongQuorum { quorum, max_ttl_ms } => {
            assert!((quorum, max_ttl_ms) != (asked.quorum, asked.max_ttl_ms) && admission.write.is_none());
        }
    }
    if let Some(marker) = written {
        assert_eq!(Marker::parse(marker.text().as_bytes()).as_ref(), Some(marker));
    }
    Ok(())
}

fn boot(u: &mut Unstructured<'_>) -> Result<BootId> {
    Ok(BootId([u.int_in_range(0..=1)?; 16]))
}

fn completion(u: &mut Unstructured<'_>) -> Result<CompletionRecord> {
    Ok(CompletionRecord {
        nonce: values::nonce(u)?,
        token: values::token(u)?,
        owner: values::owner(u)?,
        at_unix_ms: values::number(u)?,
        until_unix_ms: values::number(u)?,
        about: values::maybe(u, values::about)?,
    })
}

fn record(u: &mut Unstructured<'_>) -> Result<Record> {
    let lease = |u: &mut Unstructured<'_>| {
        Ok(LeaseRecord {
            told: 0,
            nonce: values::nonce(u)?,
            seq: values::seq(u)?,
            released: u.arbitrary()?,
            record_ttl: values::length(u)?,
            boot: boot(u)?,
            expires: Monotonic::from_ns(values::number(u)?),
            since_unix_ms: values::number(u)?,
            owner: values::owner(u)?,
            data: values::maybe(u, values::payload)?,
            session: None,
        })
    };
    Ok(Record {
        counter: values::token(u)?,
        lease: values::maybe(u, lease)?,
        completion: values::maybe(u, completion)?,
    })
}

fn kept(u: &mut Unstructured<'_>) -> Result<()> {
    let mut record = values::maybe(u, record)?;
    let mut now =
        StoreNow { boot: boot(u)?, uptime: Monotonic::from_ns(values::number(u)?), unix_ms: values::number(u)? };
    while !u.is_empty() {
        now.uptime = now.uptime.plus(values::length(u)?);
        if values::chance(u, 8) {
            now = StoreNow { boot: boot(u)?, uptime: Monotonic::from_ns(values::number(u)?), ..now };
        }
        let op = LockOp { lock: LockId::new(1), resource: Resource::new("a").expect("a name"), op: values::op(u)? };
        let decision = apply(record.as_ref(), &op.op, &now);
        if invariants::is_grant(&decision.outcome) || matches!(decision.outcome, Outcome::Applied(_)) {
            invariants::outcome(&op, &decision.outcome);
        }
        let counter = |record: Option<&Record>| record.map_or(Token::ZERO, |record| record.counter);
        let holder = |record: Option<&Record>| {
            let seen = seen(record, &now);
            seen.held().map(|holding| holding.holder)
        };
        let (before, after) = (record.as_ref(), decision.write.as_ref().or(record.as_ref()));
        assert!(counter(after) >= counter(before), "a counter that falls");
        match (&op.op, &decision.outcome) {
            (Op::Acquire(acquire), Outcome::Applied(Applied::Acquired { counter: token })) => {
                let lease = after.and_then(|record| record.lease.as_ref()).expect("a grant leaves a record");
                assert!(lease.nonce == acquire.nonce && !lease.released && *token == counter(after));
                let is_resend =
                    before.and_then(|record| record.lease.as_ref()).is_some_and(|l| l.nonce == acquire.nonce);
                assert!(
                    is_resend || (*token > counter(before) && *token >= acquire.floor),
                    "a token that was given before"
                );
                let is_expected = acquire.expect.is_some();
                assert!(is_resend || is_expected || holder(before).is_none(), "taken from somebody who holds it");
            }
            (_, Outcome::NotApplied(Refusal::Conflict(seen))) => {
                assert!(decision.write.is_none());
                invariants::shown(seen);
            }
            (_, Outcome::NotApplied(_) | Outcome::Unknown(_)) => assert!(decision.write.is_none()),
            (Op::Read, _) => assert!(decision.write.is_none()),
            (_, Outcome::Applied(_)) => {}
        }
        record = decision.write.or(record);
    }
    Ok(())
}
