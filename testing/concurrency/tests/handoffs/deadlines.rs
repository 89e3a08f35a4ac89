//! A deadline is read while it passes, and while it is moved.

use std::time::Duration;

use leasehold_concurrency::internals::LeaseState;
use leasehold_scheduler::clock;
use leasehold_scheduler::sync::thread;
use leasehold_scheduler::world::exhaust;

const STEP: Duration = Duration::from_secs(1);

#[test]
fn a_deadline_that_was_read_as_passed_is_never_moved() {
    let tried = exhaust(500_000, || {
        let lease = LeaseState::held(clock::monotonic().plus(STEP));
        let (reading, renewing) = (lease.clone(), lease.clone());
        let reader = thread::spawn(move || {
            let first = reading.remaining();
            assert!(!first.is_zero() || reading.remaining().is_zero(), "it came back");
            first
        });
        let until = clock::monotonic().plus(STEP * 3);
        let renewal = thread::spawn(move || renewing.renewed(until));
        clock::advance(STEP);
        let (was_read, stands) = (reader.join().unwrap(), renewal.join().unwrap());
        assert_eq!(stands, !lease.remaining().is_zero(), "the lease and the core disagree");
        assert!(!(stands && was_read.is_zero()), "a renewal stands that a reader has seen as too late");
    });
    assert!(tried > 100, "{tried}");
}

#[test]
fn a_renewal_does_not_undo_a_release() {
    let tried = exhaust(100_000, || {
        let lease = LeaseState::held(clock::monotonic().plus(STEP));
        let renewing = lease.clone();
        let until = clock::monotonic().plus(STEP * 3);
        let renewal = thread::spawn(move || renewing.renewed(until));
        lease.end_locally();
        assert!(lease.remaining().is_zero() && !lease.is_held(), "released, and held");
        renewal.join().unwrap();
        assert!(lease.remaining().is_zero() && !lease.is_held(), "released, and held again");
    });
    assert!(tried > 1);
}

#[test]
fn a_renewal_does_not_undo_a_loss() {
    let tried = exhaust(500_000, || {
        let lease = LeaseState::held(clock::monotonic().plus(STEP * 5));
        let (losing, renewing) = (lease.clone(), lease.clone());
        let until = clock::monotonic().plus(STEP * 9);
        let loss = thread::spawn(move || losing.lost());
        let renewal = thread::spawn(move || renewing.renewed(until));
        loss.join().unwrap();
        assert!(lease.remaining().is_zero());
        renewal.join().unwrap();
        assert!(lease.remaining().is_zero());
    });
    assert!(tried > 1);
}

#[test]
fn a_held_lease_has_its_token() {
    let tried = exhaust(100_000, || {
        let lease = LeaseState::pending();
        let granting = lease.clone();
        let until = clock::monotonic().plus(STEP);
        let grant = thread::spawn(move || granting.granted(until));
        let is_held = lease.is_held() && !lease.remaining().is_zero();
        assert!(!is_held || lease.token() == 1, "held without a token");
        grant.join().unwrap();
    });
    assert!(tried > 1);
}
