//! Renewals arrive, or do not, while the lease runs out by the clock.

use std::sync::Arc;
use std::time::Duration;

use leasehold_concurrency::ffi;
use leasehold_concurrency::internals::{Backing, Store, block_on};
use leasehold_scheduler::clock;
use leasehold_scheduler::sync::thread;
use leasehold_scheduler::world::{explore, pass, seen, settle};

use super::{Count, LEAPS};

const SHORT: Duration = Duration::from_secs(6);

#[test]
fn a_lease_read_as_lost_stays_lost_and_is_told_once() {
    explore(LEAPS, &["lost", "renewed"], || {
        let store = Store::new(Backing::Disk).losing_one_of(4);
        let client = store.client();
        let Ok(lease) = block_on(client.lock("a").ttl(SHORT).wait(SHORT).into_future()) else { return };
        let lease = Arc::new(lease);
        let (told, count) = (Count::default(), Count::default());
        let counting = told.clone();
        lease.on_lost(move |_| counting.up());
        let (looking, was_zero) = (Arc::clone(&lease), count.clone());
        let looker = thread::spawn(move || {
            while clock::passed() < Duration::from_secs(30) {
                if looking.remaining().is_zero() {
                    was_zero.up();
                }
                assert!(looking.remaining().is_zero() || was_zero.get() == 0, "it came back");
                assert!(looking.check(Duration::ZERO).is_err() || was_zero.get() == 0, "it came back");
                pass(Duration::from_millis(700));
            }
        });
        let first = clock::monotonic().plus(lease.remaining());
        while !lease.is_lost() && clock::passed() < Duration::from_secs(30) {
            pass(Duration::from_millis(900));
            assert!(lease.remaining().is_zero() || count.get() == 0, "it came back");
        }
        if clock::monotonic().plus(lease.remaining()) > first.plus(Duration::from_secs(1)) {
            seen("renewed");
        }
        looker.join().unwrap();
        if lease.is_lost() {
            seen("lost");
            block_on(lease.lost());
            // Its record runs out by itself, so nothing but the loss can have been told.
            let is_told = ffi::wait_until_over(&lease, None, || false).unwrap();
            assert!(is_told);
            drop((lease, client));
            settle();
            assert_eq!(told.get(), 1, "the loss was told so often");
        } else {
            let released = block_on(lease.release());
            drop((lease, client));
            settle();
            assert!(told.get() <= usize::from(released.is_err()), "a release is no loss");
        }
    });
}

#[test]
fn two_clients_never_hold_at_the_same_moment() {
    explore(LEAPS, &["both", "released", "lost"], || {
        let store = Store::new(Backing::Disk);
        let (one, two) = (store.client(), store.client());
        let request = two.lock("a").ttl(SHORT).no_renewal();
        // All may stand still for so long that a grant is lost before its caller has it.
        let Ok(first) = block_on(one.lock("a").ttl(SHORT).into_future()) else { return };
        let first = Arc::new(first);
        let holder = Arc::clone(&first);
        let other = thread::spawn(move || {
            let Ok(second) = block_on(request.into_future()) else { return };
            // The first was valid before and after a moment at which the second was.
            let (before, between, after) = (holder.remaining(), second.remaining(), holder.remaining());
            assert!(before.is_zero() || between.is_zero() || after.is_zero(), "both hold it");
            assert!(second.token() > holder.token(), "the token did not grow");
            seen("both");
        });
        pass(Duration::from_secs(8));
        seen(if first.blocking().release().is_ok() { "released" } else { "lost" });
        other.join().unwrap();
        drop((first, one, two));
        settle();
    });
}
