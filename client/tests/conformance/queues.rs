//! The queue of waiters: who comes first is served first, and who is gone stops nobody.

use std::sync::mpsc;
use std::thread;

use leasehold::ErrorKind;
use leasehold::blocking::Client;

use crate::common::{PATIENCE, Role, eventually, paced, role_args, say, stay};
use crate::{Can, Store};

fn waiting(client: &Client) -> u64 {
    client.waiters("job").unwrap().map_or(0, |queue| queue.count)
}

/// The numbers of waiters in the order of their grants, the last of which is the first holder, who comes back.
fn served(store: &Store) -> Vec<usize> {
    const WAITERS: usize = 5;
    let holder = store.client();
    let lease = holder.lock("job").acquire().unwrap();
    let clients: Vec<Client> = (0..WAITERS).map(|_| store.client()).collect();
    let (order, granted) = mpsc::channel();
    let serve = |n: usize, client: &Client| {
        let lease = client.lock("job").wait(PATIENCE).acquire().unwrap();
        order.send(n).unwrap();
        lease.release().unwrap();
    };
    thread::scope(|scope| {
        for (n, client) in clients.iter().enumerate() {
            scope.spawn(move || serve(n, client));
            if store.can(Can::KeepQueue) {
                eventually("it stands in the queue", || waiting(&holder) == n as u64 + 1);
            }
        }
        lease.release().unwrap();
        serve(WAITERS, &holder);
    });
    granted.try_iter().collect()
}

pub(crate) fn waiters_of_several_clients_are_served_in_order(store: &Store) {
    let in_order = |served: &[usize]| served.is_sorted();
    // A machine that stops a waiter for longer than its turn makes others come first.
    let mut rounds = (0..3).map(|_| served(store));
    if store.can(Can::KeepQueue) {
        let tried: Vec<_> = rounds.by_ref().take(1).collect();
        assert!(in_order(&tried[0]) || rounds.any(|served| in_order(&served)), "{tried:?}");
    } else {
        let mut served = rounds.next().unwrap();
        served.sort_unstable();
        assert_eq!(served, [0, 1, 2, 3, 4, 5], "everybody, in any order");
    }
    let reader = store.client();
    eventually("nobody waits any more", || reader.waiters("job").unwrap().is_none());
}

pub(crate) fn the_queue_of_a_lock_can_be_looked_at(store: &Store) {
    let (holder, first, second) = (store.client(), store.client(), store.client());
    let lease = holder.lock("job").acquire().unwrap();
    assert_eq!(holder.waiters("job").unwrap(), None);
    thread::scope(|scope| {
        let wait = |client: &Client, n: u64| {
            let client = client.clone();
            let waiter = scope.spawn(move || client.lock("job").wait(PATIENCE).acquire().unwrap().release().unwrap());
            if store.can(Can::KeepQueue) {
                eventually("it stands in the queue", || waiting(&holder) == n);
            }
            waiter
        };
        let waiters = [wait(&first, 1), wait(&second, 2)];
        if store.can(Can::KeepQueue) {
            eventually("it knows its place", || second.waiters("job").unwrap().unwrap().own_place == Some(2));
            let queue = holder.waiters("job").unwrap().unwrap();
            assert_eq!((queue.count, queue.own_place), (2, None));
            assert!(queue.since_unix_ms > 1_600_000_000_000, "{queue:?}");
        }
        lease.release().unwrap();
        waiters.into_iter().for_each(|waiter| waiter.join().unwrap());
    });
    assert_eq!(holder.waiters("job").unwrap(), None);
}

pub(crate) fn a_client_that_gives_up_leaves_the_queue(store: &Store) {
    let (holder, other) = store.two_clients();
    let lease = holder.lock("job").acquire().unwrap();
    let error = other.lock("job").wait(paced(300)).acquire().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TimedOut);
    eventually("it has left", || holder.waiters("job").unwrap().is_none());
    // One that is closed while it waits. What a slow store has not confirmed by then does not matter here.
    if store.can(Can::KeepQueue) {
        thread::scope(|scope| {
            let waiting_client = other.clone();
            let waiter = scope.spawn(move || waiting_client.lock("job").wait(PATIENCE).acquire());
            eventually("it stands in the queue", || waiting(&holder) == 1);
            drop(other.close());
            assert!(waiter.join().unwrap().is_err());
        });
    }
    eventually("it has left", || holder.waiters("job").unwrap().is_none());
    lease.release().unwrap();
    holder.lock("job").wait(PATIENCE).acquire().unwrap().release().unwrap();
}

/// Waits for the lock until the process ends.
#[test]
#[ignore = "the part of another process"]
fn role_waiter() {
    let Some(url) = role_args() else { return };
    let client = Client::connect_with(crate::patient(&url), url).unwrap();
    say("ready");
    let lease = client.lock("job").wait(PATIENCE).acquire().unwrap();
    say(lease.token());
    stay();
}

pub(crate) fn a_process_that_dies_in_the_queue_stops_nobody(store: &Store) {
    let (holder, other) = store.two_clients();
    let lease = holder.lock("job").acquire().unwrap();
    let mut dead = Role::start("queues::role_waiter", store.url());
    assert_eq!(dead.says(), "ready");
    if !store.can(Can::ServeSeveralProcesses) {
        dead.says().parse::<u64>().expect("each process has a store of its own");
        return;
    }
    if store.can(Can::KeepQueue) {
        eventually("it stands in the queue", || waiting(&holder) == 1);
    }
    thread::scope(|scope| {
        let waiter = scope.spawn(|| other.lock("job").wait(PATIENCE).acquire().unwrap().token());
        if store.can(Can::KeepQueue) {
            eventually("another stands behind it", || waiting(&holder) == 2);
        }
        dead.kill();
        dead.wait();
        let token = lease.token();
        lease.release().unwrap();
        assert!(waiter.join().unwrap() > token);
    });
    eventually("nobody waits any more", || holder.waiters("job").unwrap().is_none());
}
