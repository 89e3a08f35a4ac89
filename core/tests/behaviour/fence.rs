//! The guard of a protected resource: claim before reading, then check every write.

use leasehold_core::Token;
use leasehold_core::fence::{Guard, Rejected};

fn token(value: u64) -> Token {
    Token::new(value).unwrap()
}

#[test]
fn holder_may_write_repeatedly() {
    let mut guard = Guard::default();
    assert_eq!(guard.claim(token(33)), Ok(()));
    for _ in 0..3 {
        assert_eq!(guard.check(token(33)), Ok(()));
        assert_eq!(guard.claim(token(33)), Ok(()));
    }
    assert_eq!(guard.high_water(), Some(token(33)));
}

#[test]
fn write_without_a_claim_is_rejected() {
    let mut guard = Guard::default();
    assert_eq!(guard.check(token(33)), Err(Rejected::Unclaimed));
    assert_eq!(guard.check_in_order(token(33), 1), Err(Rejected::Unclaimed));
    assert_eq!(guard.high_water(), None, "a refused check leaves no mark");
    assert_eq!(Guard::with_high_water(None), guard);
}

#[test]
fn stale_holder_is_rejected_after_the_next_claim() {
    let mut guard = Guard::default();
    guard.claim(token(33)).unwrap();
    // The new holder claims before it reads: no stale write can come between its read and its write.
    guard.claim(token(34)).unwrap();
    let stale = Rejected::Stale { token: token(33), high_water: token(34) };
    assert_eq!(guard.check(token(33)), Err(stale));
    assert_eq!(guard.claim(token(33)), Err(stale));
    assert_eq!(guard.check_in_order(token(33), 99), Err(stale));
    assert_eq!(guard.check(token(34)), Ok(()), "a refusal changes nothing");
    let message = stale.to_string();
    assert!(message.contains("33") && message.contains("34"), "{message}");
}

#[test]
fn a_write_with_a_higher_token_raises_the_mark() {
    let mut guard = Guard::with_high_water(Some(token(33)));
    assert_eq!(guard.check(token(40)), Ok(()));
    assert_eq!(guard.high_water(), Some(token(40)));
    assert!(guard.check(token(39)).is_err());
}

#[test]
fn delayed_write_of_the_same_lease_is_rejected_by_number() {
    let mut guard = Guard::default();
    guard.claim(token(33)).unwrap();
    assert_eq!(guard.check_in_order(token(33), 1), Ok(()));
    assert_eq!(guard.check_in_order(token(33), 5), Ok(()));
    for write in [5, 4, 0] {
        assert_eq!(guard.check_in_order(token(33), write), Err(Rejected::OutOfOrder { write, last: 5 }));
    }
    assert_eq!(guard.claim(token(33)), Ok(()));
    assert!(guard.check_in_order(token(33), 5).is_err(), "claiming again does not start the count again");
    assert_eq!(guard.check_in_order(token(34), 1), Ok(()), "the next lease counts from the beginning");
}

#[test]
fn without_numbers_a_delayed_write_of_the_same_lease_passes() {
    let mut guard = Guard::default();
    guard.claim(token(33)).unwrap();
    guard.check_in_order(token(33), 7).unwrap();
    assert_eq!(guard.check(token(33)), Ok(()), "the token alone cannot order a holder's own writes");
}

#[test]
fn a_mark_survives_storage() {
    let mut guard = Guard::default();
    guard.claim(token(33)).unwrap();
    let mut stored = Guard::with_high_water(guard.high_water());
    assert!(stored.check(token(32)).is_err());
    assert_eq!(stored.check(token(33)), Ok(()));
}
