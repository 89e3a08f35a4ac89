//! Records in a store are not trusted: a record that no honest client writes is an error, never an overflow or an endless
//! wait.

use std::time::Duration;

use crate::common::*;
use leasehold_core::config::MAX_RECORD_TTL;
use leasehold_core::op::{DenialKind, Holding, Op, Outcome, Refusal, Release, Renew, Seen};
use leasehold_core::store::{BootId, LeaseRecord, Record, StoreNow, apply, seen};
use leasehold_core::{Failure, Monotonic, Nonce, Owner, Seq, Token, Version};

const TEN_YEARS: Duration = secs(10 * 365 * 86_400);
const BOOT: BootId = BootId([1; 16]);

fn now() -> StoreNow {
    StoreNow { boot: BOOT, uptime: Monotonic::from_ns(0).plus(EPOCH), unix_ms: EPOCH_UNIX_MS }
}

fn record(counter: u64, record_ttl: Duration, boot: BootId) -> Record {
    Record {
        counter: Token::new(counter).unwrap(),
        lease: Some(LeaseRecord {
            nonce: other_nonce(),
            seq: Seq::new(1),
            released: false,
            record_ttl,
            boot,
            expires: now().uptime.plus(record_ttl),
            since_unix_ms: 0,
            owner: Owner::new("hostile").unwrap(),
            data: None,
            session: None,
            told: 0,
        }),
        completion: None,
    }
}

fn plant(world: &mut World, record: Record) {
    world.stores[0].records.insert(resource("r"), record);
}

fn denial(outcome: &Outcome) -> Option<DenialKind> {
    if let Outcome::NotApplied(Refusal::Denied(denial)) = outcome { Some(denial.kind) } else { None }
}

#[test]
fn record_with_a_ttl_of_ten_years_is_refused_with_advice() {
    for boot in [BOOT, BootId([9; 16])] {
        let mut world = World::new(1);
        plant(&mut world, record(7, TEN_YEARS, boot));
        world.acquire(0, 1, "r", options());
        world.deliver_all();
        let Failure::Refused(denial) = failure(&world.take_events(0)) else { panic!("refused") };
        assert_eq!(denial.kind, DenialKind::CorruptRecord);
        assert!(denial.to_string().contains("by hand"), "{denial}");
    }
}

#[test]
fn every_operation_refuses_a_corrupt_record() {
    let nonce = other_nonce();
    let record = record(7, TEN_YEARS, BOOT);
    for op in [
        Op::Read,
        Op::Release(Release { quorum: None, nonce }),
        Op::Renew(Renew { nonce, seq: Seq::new(2), record_ttl: secs(30), quorum: None }),
        Op::Raise(leasehold_core::op::Raise { nonce, token: Token::MAX, loss: None }),
    ] {
        let decision = apply(Some(&record), &op, &now());
        assert_eq!(denial(&decision.outcome), Some(DenialKind::CorruptRecord), "{op:?}");
        assert_eq!(decision.write, None);
    }
}

#[test]
fn expiry_too_far_away_is_refused() {
    let mut planted = record(7, secs(30), BOOT);
    planted.lease.as_mut().unwrap().expires = Monotonic::FAR;
    assert_eq!(denial(&apply(Some(&planted), &Op::Read, &now()).outcome), Some(DenialKind::CorruptRecord));
}

#[test]
fn the_longest_honest_record_is_accepted() {
    let record = record(7, MAX_RECORD_TTL, BOOT);
    assert_eq!(denial(&apply(Some(&record), &Op::Read, &now()).outcome), None);
    assert_eq!(seen(Some(&record), &now()).held().unwrap().left, Some(MAX_RECORD_TTL));
}

#[test]
fn exhausted_counter_grants_nothing() {
    let mut world = World::new(1);
    let mut full = record(Token::MAX.get(), secs(30), BOOT);
    full.lease.as_mut().unwrap().released = true;
    plant(&mut world, full.clone());
    world.acquire(0, 1, "r", options());
    world.deliver_all();
    let Failure::Refused(denial) = failure(&world.take_events(0)) else { panic!("refused") };
    assert_eq!(denial.kind, DenialKind::TokensExhausted);
    assert_eq!(*world.record(0, "r"), full, "nothing was written");
}

#[test]
fn the_last_token_is_the_largest_that_javascript_holds() {
    let mut world = World::new(1);
    plant(&mut world, Record { counter: Token::new(Token::MAX.get() - 1).unwrap(), lease: None, completion: None });
    assert_eq!(world.hold(0, 1, "r", options()), Token::MAX);
    assert_eq!(Token::MAX.get(), 9_007_199_254_740_991);
    assert_eq!(Token::new(1 << 53), None);
    assert_eq!(Token::MAX.next(), None);
    // The counter was seen once; it must not make the next floor overflow.
    world.release(0, 1);
    world.deliver_all();
    world.take_events(0);
    world.acquire(0, 2, "r", once());
    world.deliver_all();
    assert!(matches!(failure(&world.take_events(0)), Failure::Refused(_)));
}

#[test]
fn hostile_record_is_rejected_before_waiting() {
    let honest = holding(Nonce::from_bytes([1; 16]), Some(1));
    let check = |holding: Holding| Seen { holding: Some(holding.into()), done: None }.checked();
    assert!(check(honest.clone()).is_ok());
    assert!(Seen::default().checked().is_ok());
    for hostile in [
        Holding { record_ttl: Some(TEN_YEARS), ..honest.clone() },
        Holding { left: Some(TEN_YEARS), ..honest.clone() },
        Holding { record_ttl: Some(Duration::MAX), left: None, ..honest.clone() },
        Holding { left: Some(MAX_RECORD_TTL + Duration::from_nanos(1)), ..honest.clone() },
    ] {
        let denial = check(hostile).unwrap_err();
        assert_eq!(denial.kind, DenialKind::CorruptRecord);
        assert!(denial.to_string().contains("172800s"), "it names the bound: {denial}");
    }
    let history = Holding { released: true, record_ttl: Some(TEN_YEARS), ..honest };
    assert!(check(history).is_ok(), "nobody waits for what was released");
}

#[test]
fn time_left_of_ten_years_does_not_extend_the_sleep() {
    let mut world = World::new(1);
    world.acquire(0, 1, "r", options());
    let shown = Holding { left: Some(Duration::MAX), record_ttl: Some(Duration::MAX), ..holding(other_nonce(), None) };
    for _ in 0..10 {
        world.answer_with(0, conflict(Some(shown.clone())));
        let before = world.time;
        world.pass_until_sent(0);
        assert!(world.time - before <= secs(2), "the poll timer runs whatever the record says");
    }
}

#[test]
fn version_length_is_bounded() {
    assert!(Version::new(&[7; Version::MAX_BYTES]).is_some());
    assert!(Version::new(&[7; Version::MAX_BYTES + 1]).is_none());
}

#[test]
fn long_store_messages_are_cut() {
    let long = "ü".repeat(4_000);
    let denial = leasehold_core::op::Denial::new(DenialKind::Other, &long);
    let fault = leasehold_core::op::Fault::new(leasehold_core::op::FaultKind::Server, &long);
    assert!(denial.detail.len() <= 512 && fault.detail.unwrap().len() <= 512);
}
