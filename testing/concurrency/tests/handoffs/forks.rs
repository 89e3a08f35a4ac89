//! A process forks while its threads are at work, and the child has copies of their clients and leases.

use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Waker};
use std::time::Duration;

use leasehold_concurrency::ffi;
use leasehold_concurrency::internals::{Backing, Store, block_on, fork_behind_the_gate, pass_the_gate};
use leasehold_scheduler::fork;
use leasehold_scheduler::sync::thread;
use leasehold_scheduler::world::{Time, explore, seen, settle};

use super::{Count, LONG, PASSES};

#[test]
fn a_child_touches_nothing_of_its_parent() {
    for reach in [Backing::Disk, Backing::Network] {
        explore(PASSES, &[], move || {
            let store = Store::new(reach);
            let client = store.client();
            let lease = Arc::new(block_on(client.lock("a").ttl(LONG).into_future()).unwrap());
            let copies = (client.clone(), Arc::new(block_on(client.lock("b").ttl(LONG).into_future()).unwrap()));
            let mut waiting = client.lock("a").ttl(LONG).into_future();
            let _ = waiting.as_mut().poll(&mut Context::from_waker(Waker::noop()));
            let busy = client.clone();
            let busy = thread::spawn(move || drop(block_on(busy.lock("c").ttl(LONG).into_future())));
            let child = thread::spawn(move || {
                fork::in_child(|| {
                    let (client, lease) = copies;
                    assert!(lease.remaining().is_zero() && lease.is_lost());
                    assert!(lease.check(Duration::ZERO).is_err());
                    assert!(block_on(lease.release()).is_err());
                    assert!(ffi::acquire(client.lock("d"), || false).is_err());
                    assert!(ffi::wait_until_over(&lease, None, || false).unwrap());
                    lease.on_lost(|_| ());
                    lease.on_expiring(|| ());
                    assert!(!ffi::end_after(&lease, LONG));
                    block_on(lease.lost());
                    drop((waiting, lease));
                    let _ = ffi::close([client]);
                });
            });
            child.join().unwrap();
            busy.join().unwrap();
            // The parent still has all of it.
            assert!(!lease.remaining().is_zero());
            assert!(store.is_held("a") && store.is_held("b"), "a child has released its parent's lease");
            drop((lease, client));
            settle();
        });
    }
}

#[test]
fn a_child_has_clients_of_its_own() {
    explore(Time::Stands, &[], || {
        let store = Store::new(Backing::Disk);
        let client = store.client();
        let lease = block_on(client.lock("a").ttl(LONG).into_future()).unwrap();
        let child = thread::spawn(|| {
            fork::in_child(|| {
                let store = Store::new(Backing::Disk);
                let lease = block_on(store.client().lock("a").ttl(LONG).into_future()).unwrap();
                assert!(!lease.remaining().is_zero());
                let mut release = pin!(lease.release());
                let _ = release.as_mut().poll(&mut Context::from_waker(Waker::noop()));
            });
        });
        child.join().unwrap();
        assert!(!lease.remaining().is_zero());
    });
}

#[test]
fn no_thread_is_inside_the_gate_during_a_fork() {
    explore(Time::Passes(Duration::from_secs(60)), &["forked", "passed"], || {
        let inside = Count::default();
        let forking = Count::default();
        let closed = Count::default();
        let passing: Vec<_> = (0..2)
            .map(|_| (inside.clone(), forking.clone(), closed.clone()))
            .map(|(inside, forking, closed)| {
                thread::spawn(move || {
                    let is_open = pass_the_gate(|register| {
                        inside.up();
                        register(Arc::new(move || closed.up()));
                        thread::yield_now();
                        assert_eq!(forking.get() % 2, 0, "inside, and the process forks");
                        inside.up();
                    });
                    if is_open {
                        seen("passed");
                    }
                })
            })
            .collect();
        let (looking, begun) = (inside.clone(), forking.clone());
        let forker = thread::spawn(move || {
            let is_closed = fork_behind_the_gate(|| {
                let before = looking.get();
                if before % 2 == 0 {
                    begun.up();
                    thread::yield_now();
                    assert_eq!(before, looking.get(), "a thread came in while the process forks");
                    begun.up();
                }
            });
            if is_closed {
                seen("forked");
            }
        });
        passing.into_iter().for_each(|thread| thread.join().unwrap());
        forker.join().unwrap();
        // A thread that was inside before has registered something to close.
        assert!(closed.get() <= 2);
    });
}
