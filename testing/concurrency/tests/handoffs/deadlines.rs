//! A deadline is read while it passes, and while it is moved.

use std::time::Duration;

use leasehold_concurrency::internals::Slot;
use leasehold_scheduler::clock;
use leasehold_scheduler::sync::thread;
use leasehold_scheduler::world::exhaust;

const STEP: Duration = Duration::from_secs(1);

#[test]
fn a_deadline_that_was_read_as_passed_is_never_moved() {
    let tried = exhaust(500_000, || {
        let slot = Slot::held(clock::monotonic().plus(STEP));
        let (reading, renewing) = (slot.clone(), slot.clone());
        let reader = thread::spawn(move || {
            let first = reading.remaining();
            assert!(!first.is_zero() || reading.remaining().is_zero(), "it came back");
            first
        });
        let until = clock::monotonic().plus(STEP * 3);
        let renewal = thread::spawn(move || renewing.renewed(until));
        clock::advance(STEP);
        let (was_read, stands) = (reader.join().unwrap(), renewal.join().unwrap());
        assert_eq!(stands, !slot.remaining().is_zero(), "the slot and the core disagree");
        assert!(!(stands && was_read.is_zero()), "a renewal stands that somebody has read as too late");
    });
    assert!(tried > 100, "{tried}");
}

#[test]
fn a_release_stands_against_a_renewal() {
    let tried = exhaust(100_000, || {
        let slot = Slot::held(clock::monotonic().plus(STEP));
        let renewing = slot.clone();
        let until = clock::monotonic().plus(STEP * 3);
        let renewal = thread::spawn(move || renewing.renewed(until));
        slot.end_locally();
        assert!(slot.remaining().is_zero() && !slot.is_held(), "released, and held");
        renewal.join().unwrap();
        assert!(slot.remaining().is_zero() && !slot.is_held(), "released, and held again");
    });
    assert!(tried > 1);
}

#[test]
fn a_loss_stands_against_readers_and_renewals() {
    let tried = exhaust(500_000, || {
        let slot = Slot::held(clock::monotonic().plus(STEP * 5));
        let (losing, renewing) = (slot.clone(), slot.clone());
        let until = clock::monotonic().plus(STEP * 9);
        let loss = thread::spawn(move || losing.lost());
        let renewal = thread::spawn(move || renewing.renewed(until));
        loss.join().unwrap();
        assert!(slot.remaining().is_zero());
        renewal.join().unwrap();
        assert!(slot.remaining().is_zero());
    });
    assert!(tried > 1);
}

#[test]
fn whoever_sees_the_lease_sees_its_token() {
    let tried = exhaust(100_000, || {
        let slot = Slot::pending();
        let granting = slot.clone();
        let until = clock::monotonic().plus(STEP);
        let grant = thread::spawn(move || granting.granted(until));
        let is_held = slot.is_held() && !slot.remaining().is_zero();
        assert!(!is_held || slot.token() == 1, "held without a token");
        grant.join().unwrap();
    });
    assert!(tried > 1);
}
