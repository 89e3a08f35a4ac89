//! A caller begins or stops to wait while the event that it waits for happens.

use leasehold_concurrency::internals::{Backing, LeaseState, Store, block_on};
use leasehold_scheduler::clock;
use leasehold_scheduler::sync::thread;
use leasehold_scheduler::world::{Time, exhaust, explore};

use super::{Count, LONG};

#[test]
fn a_grant_wakes_the_waiter() {
    let tried = exhaust(50_000, || {
        let lease = LeaseState::pending();
        let waiting = lease.clone();
        let waiting = thread::spawn(move || {
            waiting.wait_for_a_decision();
            assert_eq!((waiting.token(), waiting.is_held()), (1, true));
        });
        lease.granted(clock::monotonic().plus(LONG));
        waiting.join().unwrap();
    });
    assert!(tried > 1);
}

#[test]
fn all_waiters_are_woken_though_one_gives_up() {
    explore(Time::Stands, &[], || {
        let lease = LeaseState::held(clock::monotonic().plus(LONG));
        let waiting: Vec<_> = (0..3)
            .map(|n| (n, lease.clone()))
            .map(|(n, lease)| {
                thread::spawn(move || if n == 0 { lease.wait_and_give_up() } else { lease.wait_for_the_end() })
            })
            .collect();
        lease.lost();
        waiting.into_iter().for_each(|waiting| waiting.join().unwrap());
    });
}

#[test]
fn a_callback_registered_during_the_loss_is_called_once() {
    let tried = exhaust(50_000, || {
        let (lease, called) = (LeaseState::held(clock::monotonic().plus(LONG)), Count::default());
        let (losing, count) = (lease.clone(), called.clone());
        let losing = thread::spawn(move || losing.lost());
        lease.on_lost(move |_| count.up());
        losing.join().unwrap();
        assert_eq!(called.get(), 1);
    });
    assert!(tried > 1);
}

#[test]
fn a_release_wakes_the_waiter_of_another_client() {
    for reach in [Backing::AtOnce, Backing::Disk, Backing::Network] {
        explore(Time::Stands, &[], move || {
            let store = Store::new(reach);
            let (one, two) = (store.client(), store.client());
            let lease = block_on(one.lock("a").ttl(LONG).into_future()).unwrap();
            let waiting = thread::spawn(move || block_on(two.lock("a").ttl(LONG).into_future()).map(drop));
            drop(lease);
            waiting.join().unwrap().unwrap();
        });
    }
}

#[test]
fn waiters_of_one_client_wake_each_other() {
    explore(Time::Stands, &[], || {
        let store = Store::new(Backing::Disk);
        let client = store.client();
        let threads: Vec<_> = (0..3)
            .map(|_| client.clone())
            .map(|client| thread::spawn(move || block_on(client.lock("a").ttl(LONG).into_future()).map(drop)))
            .collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap().unwrap());
    });
}
