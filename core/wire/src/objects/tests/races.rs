//! Writes that another has come before.

use leasehold_core::op::Tell;

use super::*;

#[test]
fn two_who_tell_at_once_are_both_counted() {
    for service in ALL {
        let (mut bucket, mut first, mut second) = (Bucket::new(service), Memory::default(), Memory::default());
        assert_eq!(granted(&bucket.ask(acquire(1))), 1);
        for memory in [&mut first, &mut second] {
            bucket.with(memory, "a", Op::Read);
        }
        // The second finds what it would have written itself.
        for memory in [&mut first, &mut second] {
            let told = bucket.with(memory, "a", Op::Tell(Tell { nonce: nonce(1) }));
            assert_eq!(told, Outcome::Applied(Applied::Told), "{service:?}");
        }
        assert_eq!(bucket.ask(renew(1, None)), Outcome::Applied(Applied::RenewedTold { told: 2 }), "{service:?}");
    }
}

#[test]
fn a_race_is_decided_anew() {
    for service in ALL {
        let mut bucket = Bucket::new(service);
        // Between the read and the write of the first.
        bucket.meanwhile = Some((2, |bucket| assert_eq!(granted(&bucket.ask(acquire(9))), 1)));
        assert!(matches!(bucket.ask(acquire(1)), Outcome::NotApplied(Refusal::Conflict(_))), "{service:?}");
    }
}
