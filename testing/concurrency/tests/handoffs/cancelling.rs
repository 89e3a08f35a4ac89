//! A caller gives up while the grant arrives.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use leasehold_concurrency::internals::{Backing, Store, block_on, block_on_until};
use leasehold_concurrency::{Client, ffi};
use leasehold_scheduler::sync::thread;
use leasehold_scheduler::world::{explore, seen, settle};

use super::{LONG, PASSES};

/// Acquires and gives up at some moment, on a thread of its own. What was granted is dropped.
fn acquire_and_give_up(client: &Client, asynchronous: bool) -> thread::JoinHandle<()> {
    let (request, enough) = (client.lock("a").ttl(LONG), Arc::new(AtomicBool::new(false)));
    let stop = Arc::clone(&enough);
    let caller = thread::spawn(move || {
        let is_enough = || stop.load(Ordering::SeqCst);
        let granted = match asynchronous {
            true => block_on_until(request.into_future(), is_enough).is_some_and(|granted| granted.is_ok()),
            false => ffi::acquire(request, is_enough).is_ok(),
        };
        seen(if granted { "granted" } else { "cancelled" });
    });
    thread::yield_now();
    enough.store(true, Ordering::SeqCst);
    caller
}

fn a_cancelled_acquire_leaves_nothing_behind(reach: Backing, asynchronous: bool, sometimes: &[&'static str]) {
    explore(PASSES, sometimes, move || {
        let store = Store::new(reach);
        let client = store.client();
        // Another thread of this client holds it, so that the caller waits.
        let holder = client.clone();
        let holder = thread::spawn(move || drop(block_on(holder.lock("a").ttl(LONG).into_future())));
        acquire_and_give_up(&client, asynchronous).join().unwrap();
        holder.join().unwrap();
        drop(client);
        settle();
        assert!(!store.is_held("a"), "it has no holder, and is not released");
    });
}

#[test]
fn a_cancelled_acquire_leaves_no_record_in_memory() {
    a_cancelled_acquire_leaves_nothing_behind(Backing::AtOnce, false, &["granted", "cancelled"]);
}

#[test]
fn a_cancelled_acquire_leaves_no_record_in_a_file() {
    a_cancelled_acquire_leaves_nothing_behind(Backing::Disk, false, &["granted", "cancelled"]);
}

#[test]
fn a_dropped_future_leaves_no_record_in_a_file() {
    a_cancelled_acquire_leaves_nothing_behind(Backing::Disk, true, &["granted", "cancelled"]);
}

#[test]
fn a_dropped_future_leaves_no_record_behind_a_socket() {
    a_cancelled_acquire_leaves_nothing_behind(Backing::Network, true, &["granted", "cancelled"]);
}

#[test]
fn the_next_waiter_gets_the_lock_of_a_cancelled_one() {
    explore(PASSES, &["granted", "cancelled"], || {
        let store = Store::new(Backing::Disk);
        let client = store.client();
        let next = client.clone();
        let first = acquire_and_give_up(&client, true);
        let next = thread::spawn(move || block_on(next.lock("a").ttl(LONG).into_future()).map(drop));
        next.join().unwrap().unwrap();
        first.join().unwrap();
    });
}
