//! Somebody begins to wait, or stops waiting, while what he waits for happens.

use leasehold_concurrency::internals::{Reach, Slot, Store, block_on};
use leasehold_scheduler::clock;
use leasehold_scheduler::sync::thread;
use leasehold_scheduler::world::{Time, exhaust, explore};

use super::{Count, LONG};

#[test]
fn whoever_waits_for_a_grant_is_woken_by_it() {
    let tried = exhaust(50_000, || {
        let slot = Slot::pending();
        let waiting = slot.clone();
        let waiting = thread::spawn(move || {
            waiting.wait_for_a_decision();
            assert_eq!((waiting.token(), waiting.is_held()), (1, true));
        });
        slot.granted(clock::monotonic().plus(LONG));
        waiting.join().unwrap();
    });
    assert!(tried > 1);
}

#[test]
fn all_who_wait_are_woken_though_some_go_away() {
    explore(Time::Stands, &[], || {
        let slot = Slot::held(clock::monotonic().plus(LONG));
        let waiting: Vec<_> = (0..3)
            .map(|n| (n, slot.clone()))
            .map(|(n, slot)| thread::spawn(move || if n == 0 { slot.wait_and_go() } else { slot.wait_for_the_end() }))
            .collect();
        slot.lost();
        waiting.into_iter().for_each(|waiting| waiting.join().unwrap());
    });
}

#[test]
fn a_callback_that_is_left_during_the_loss_is_called_once() {
    let tried = exhaust(50_000, || {
        let (slot, called) = (Slot::held(clock::monotonic().plus(LONG)), Count::default());
        let (losing, count) = (slot.clone(), called.clone());
        let losing = thread::spawn(move || losing.lost());
        slot.on_lost(move |_| count.up());
        losing.join().unwrap();
        assert_eq!(called.get(), 1);
    });
    assert!(tried > 1);
}

#[test]
fn a_waiter_of_another_client_is_woken_by_the_release_alone() {
    for reach in [Reach::AtOnce, Reach::Disk, Reach::Network] {
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
fn those_of_one_client_wake_each_other() {
    explore(Time::Stands, &[], || {
        let store = Store::new(Reach::Disk);
        let client = store.client();
        let threads: Vec<_> = (0..3)
            .map(|_| client.clone())
            .map(|client| thread::spawn(move || block_on(client.lock("a").ttl(LONG).into_future()).map(drop)))
            .collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap().unwrap());
    });
}
