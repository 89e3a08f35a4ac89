//! A client is closed, or its last handle dropped, while others use it.

use std::sync::Arc;
use std::time::Duration;

use leasehold_concurrency::ffi;
use leasehold_concurrency::internals::{Backing, Store, block_on};
use leasehold_scheduler::sync::thread;
use leasehold_scheduler::world::{Time, explore, seen, settle};

use super::{Count, LONG, PASSES};

#[test]
fn closing_ends_all_waits_and_leases_and_leaves_no_record() {
    for reach in [Backing::AtOnce, Backing::Disk, Backing::Network] {
        explore(PASSES, &["granted", "refused"], move || {
            let store = Store::new(reach);
            let client = store.client();
            let threads: Vec<_> = (0..2)
                .map(|_| client.clone())
                .map(|client| {
                    thread::spawn(move || match ffi::acquire(client.lock("a").ttl(LONG), || false) {
                        Ok(lease) => {
                            seen("granted");
                            let told = Count::default();
                            let count = told.clone();
                            lease.on_lost(move |_| count.up());
                            assert!(ffi::wait_until_over(&lease, None, || false).unwrap());
                            assert!(lease.remaining().is_zero());
                            drop((lease, client));
                            told
                        }
                        Err(_) => {
                            seen("refused");
                            let told = Count::default();
                            told.up();
                            told
                        }
                    })
                })
                .collect();
            let _ = block_on(client.close());
            let told: Vec<_> = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
            settle();
            assert!(told.iter().all(|told| told.get() == 1), "a holder was not told, or twice");
            assert!(!store.is_held("a"));
        });
    }
}

#[test]
fn closing_needs_no_time_to_pass() {
    explore(Time::Stands, &[], || {
        let store = Store::new(Backing::Disk);
        let client = store.client();
        let lease = block_on(client.lock("a").ttl(LONG).into_future()).unwrap();
        let other = client.clone();
        let other = thread::spawn(move || drop(other));
        block_on(client.close()).unwrap();
        assert!(lease.remaining().is_zero());
        assert!(!store.is_held("a"));
        other.join().unwrap();
    });
}

#[test]
fn the_last_handle_closes_on_any_thread() {
    explore(PASSES, &[], || {
        let store = Store::new(Backing::Disk);
        let client = store.client();
        let lease = Arc::new(block_on(client.lock("a").ttl(LONG).into_future()).unwrap());
        let (other, looking) = (client.clone(), Arc::clone(&lease));
        let dropping = thread::spawn(move || drop(other));
        let looking = thread::spawn(move || {
            let _ = looking.check(Duration::from_secs(1));
        });
        drop(client);
        drop(lease);
        dropping.join().unwrap();
        looking.join().unwrap();
        // All of the client's threads end.
        settle();
        assert!(!store.is_held("a"));
    });
}
