//! A release meets renewals, other releases, and those who look.

use std::sync::Arc;
use std::time::Duration;

use leasehold_concurrency::internals::{Backing, Store, block_on};
use leasehold_concurrency::{ErrorKind, ffi};
use leasehold_scheduler::clock;
use leasehold_scheduler::sync::thread;
use leasehold_scheduler::world::{Time, explore, pass, seen, settle};

use super::{Count, LEAPS, LONG, PASSES};

#[test]
fn a_lease_never_reads_as_held_after_its_release() {
    explore(PASSES, &["renewed"], || {
        let store = Store::new(Backing::Disk);
        let client = store.client();
        let lease = Arc::new(block_on(client.lock("a").ttl(Duration::from_secs(6)).into_future()).unwrap());
        let until = clock::monotonic().plus(lease.remaining());
        // A renewal is on its way when the release begins, or not.
        while clock::passed() < Duration::from_secs(3) && !lease.is_lost() {
            pass(Duration::from_millis(500));
        }
        if clock::monotonic().plus(lease.remaining()) > until {
            seen("renewed");
        }
        let (releasing, released) = (Arc::clone(&lease), Count::default());
        let told = released.clone();
        let other = thread::spawn(move || {
            let _ = releasing.blocking().release();
            told.up();
            assert!(releasing.remaining().is_zero());
        });
        for _ in 0..5 {
            let is_over = released.get() > 0;
            assert!(lease.remaining().is_zero() || !is_over, "it was released and reads as held");
            assert!(lease.check(Duration::ZERO).is_err() || !is_over);
        }
        other.join().unwrap();
        drop((lease, client));
        settle();
    });
}

#[test]
fn a_renewal_in_flight_does_not_outlive_the_release() {
    explore(PASSES, &["released"], || {
        let store = Store::new(Backing::Disk);
        let client = store.client();
        let lease = block_on(client.lock("a").ttl(Duration::from_secs(60)).into_future()).unwrap();
        pass(Duration::from_secs(20));
        let is_released = block_on(lease.release()).is_ok();
        drop((lease, client));
        settle();
        if is_released {
            seen("released");
            assert!(!store.is_held("a"));
        }
    });
}

#[test]
fn the_second_of_two_releases_is_told_of_the_first() {
    explore(PASSES, &[], || {
        let store = Store::new(Backing::Disk);
        let client = store.client();
        let lease = Arc::new(block_on(client.lock("a").ttl(LONG).into_future()).unwrap());
        let releases: Vec<_> = (0..2)
            .map(|_| Arc::clone(&lease))
            .map(|lease| thread::spawn(move || lease.blocking().release().map_err(|error| error.kind())))
            .collect();
        let told: Vec<_> = releases.into_iter().map(|release| release.join().unwrap()).collect();
        let refused = told.iter().filter(|told| **told == Err(ErrorKind::NotOwned)).count();
        assert_eq!(refused, 1, "{told:?}");
        drop((lease, client));
        settle();
        assert!(!store.is_held("a"));
    });
}

#[test]
fn a_release_needs_no_time_to_pass() {
    for reach in [Backing::AtOnce, Backing::Disk, Backing::Network] {
        explore(Time::Stands, &[], move || {
            let store = Store::new(reach);
            let client = store.client();
            let lease = block_on(client.lock("a").ttl(LONG).into_future()).unwrap();
            block_on(lease.release()).unwrap();
            drop(client);
            let other = block_on(store.client().lock("a").ttl(LONG).into_future()).unwrap();
            assert!(!other.remaining().is_zero());
        });
    }
}

#[test]
fn a_lease_that_may_end_by_itself_ends_once() {
    explore(LEAPS, &["released", "ended"], || {
        let store = Store::new(Backing::Disk);
        let client = store.client();
        let lease = Arc::new(block_on(client.lock("a").ttl(LONG).into_future()).unwrap());
        let told = Count::default();
        let count = told.clone();
        lease.on_lost(move |_| count.up());
        ffi::end_after(&lease, Duration::from_secs(2));
        let moving = Arc::clone(&lease);
        let moving = thread::spawn(move || ffi::end_after(&moving, Duration::from_secs(4)));
        let is_released = lease.blocking().release().is_ok();
        moving.join().unwrap();
        assert!(lease.remaining().is_zero());
        drop((lease, client));
        settle();
        seen(if is_released { "released" } else { "ended" });
        assert!(told.get() <= usize::from(!is_released), "it was told {} times", told.get());
        assert!(!store.is_held("a"));
    });
}
