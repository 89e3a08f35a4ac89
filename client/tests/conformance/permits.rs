//! One lock of several, semaphores, and locks for readers and writers.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use leasehold::ErrorKind;
use leasehold::blocking::{Client, Once};

use crate::Store;
use crate::common::{PATIENCE, eventually, ms, paced};

const LONG: Duration = Duration::from_secs(600);

pub(crate) fn any_of_several_locks_will_do(store: &Store) {
    let (one, two) = store.two_clients();
    let names = ["a", "b", "c"];
    let leases: Vec<_> = names.iter().map(|_| one.lock_any(names).ttl(LONG).owner("one").acquire().unwrap()).collect();
    let taken: BTreeSet<&str> = leases.iter().map(|lease| lease.resource()).collect();
    assert_eq!(taken, BTreeSet::from(names));
    assert!(two.lock_any(names).try_acquire().unwrap().is_none());
    eventually("the holder is named", || {
        let error = two.lock_any(names).wait(paced(50)).acquire().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TimedOut, "{error}");
        let is_named = error.holder().and_then(|holder| holder.owner.as_deref()) == Some("one");
        // A slow node of a quorum may still show what was asked of it a moment ago.
        assert!(is_named || store.is_a_quorum(), "{error}");
        is_named
    });
    let freed = leases[1].resource().to_owned();
    let next = std::thread::scope(|scope| {
        let waiter = scope.spawn(|| two.lock_any(names).ttl(LONG).wait(PATIENCE).acquire().unwrap());
        leases[1].release().unwrap();
        waiter.join().unwrap()
    });
    assert_eq!(next.resource(), freed);
    assert!(next.token() > leases[1].token());
    next.release().unwrap();
    for lease in [&leases[0], &leases[2]] {
        lease.check(ms(1)).unwrap();
        lease.release().unwrap();
    }
    // What was given up while it was waited for is not held by anybody.
    two.lock_all(names).wait(PATIENCE).acquire().unwrap().release().unwrap();
}

pub(crate) fn a_semaphore_has_as_many_holders_as_permits(store: &Store) {
    let clients = [store.client(), store.client(), store.client()];
    let (now, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for client in &clients {
            let (now, most) = (&now, &most);
            scope.spawn(move || {
                for _ in 0..4 {
                    let permit = client.semaphore("license", 2).wait(4 * PATIENCE).acquire().unwrap();
                    assert!(permit.index() < 2);
                    assert_eq!(permit.resource(), format!("license#{}", permit.index()));
                    most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                    std::thread::yield_now();
                    permit.check(Duration::ZERO).unwrap();
                    now.fetch_sub(1, Ordering::SeqCst);
                    permit.release().unwrap();
                }
            });
        }
    });
    assert!(most.into_inner() <= 2);
    let [one, two, three] = clients;
    let permits = [one, two].map(|client| client.semaphore("license", 2).ttl(LONG).wait(PATIENCE).acquire().unwrap());
    assert_ne!(permits[0].index(), permits[1].index());
    assert!(three.semaphore("license", 2).try_acquire().unwrap().is_none());
}

pub(crate) fn all_clients_agree_on_the_number_of_permits(store: &Store) {
    let (one, two) = store.two_clients();
    let permit = one.semaphore("license", 2).ttl(LONG).acquire().unwrap();
    let error = two.semaphore("license", 3).wait(PATIENCE).acquire().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Config, "{error}");
    assert!(error.to_string().contains("permits is 3 here, and 2 in the store"), "{error}");
    assert_eq!(two.set_permits("license", 3).unwrap_err().kind(), ErrorKind::Busy);
    permit.release().unwrap();
    // What the refused request took goes back in the background.
    eventually("the number can be changed", || two.set_permits("license", 3).is_ok());
    two.semaphore("license", 3).wait(PATIENCE).acquire().unwrap().release().unwrap();
    let error = one.semaphore("license", 2).wait(PATIENCE).acquire().unwrap_err();
    assert!(error.to_string().contains("permits is 2 here, and 3 in the store"), "{error}");
    for (permits, words) in [(0, "permits is 0; it can be 1 to 64"), (65, "permits is 65; it can be 1 to 64")] {
        for error in
            [one.semaphore("license", permits).acquire().unwrap_err(), one.set_permits("license", permits).unwrap_err()]
        {
            assert!(error.kind() == ErrorKind::Config && error.to_string().contains(words), "{error}");
        }
    }
}

pub(crate) fn a_number_counts_only_while_nobody_writes_one(store: &Store) {
    let (one, two) = store.two_clients();
    one.set_permits("license", 2).unwrap();
    let record =
        || two.once("license#permits").keep(LONG).owner("permits=3").ttl(ms(2_000)).even_if_done().wait(PATIENCE);
    let Once::Run(writer) = record().begin().unwrap() else { panic!("nobody else writes") };
    std::thread::scope(|scope| {
        let acquiring = scope.spawn(|| one.semaphore("license", 2).ttl(LONG).wait(PATIENCE).acquire());
        let has_one = || ["license#0", "license#1"].iter().any(|name| two.inspect(name).unwrap().is_some());
        eventually("it has a permit, and looks for the number", || acquiring.is_finished() || has_one());
        writer.finish().unwrap();
        let error = acquiring.join().unwrap().unwrap_err();
        assert!(error.to_string().contains("permits is 2 here, and 3 in the store"), "{error}");
    });
    // A writer that is gone does not stand in the way.
    let Once::Run(dead) = record().no_renewal().begin().unwrap() else { panic!("nobody else writes") };
    let permit = one.semaphore("license", 3).wait(PATIENCE).acquire().unwrap();
    assert!(dead.finish().is_err(), "its record was taken over");
    permit.release().unwrap();
}

pub(crate) fn readers_share_and_writers_are_alone(store: &Store) {
    let (one, two) = store.two_clients();
    let lock = |client: &Client| client.rw_lock("catalog").readers(2).ttl(LONG);
    let first = lock(&one).read().unwrap();
    let second = lock(&two).wait(PATIENCE).read().unwrap();
    let error = lock(&one).wait(Duration::ZERO).write().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Busy, "{error}");
    let writer = std::thread::scope(|scope| {
        let writer = scope.spawn(|| lock(&two).wait(4 * PATIENCE).write().unwrap());
        eventually("the writer is at the gate", || one.inspect("catalog#gate").unwrap().is_some());
        let error = lock(&one).wait(Duration::ZERO).read().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Busy, "readers who come after a writer wait for it: {error}");
        assert!(!writer.is_finished());
        first.release().unwrap();
        second.release().unwrap();
        writer.join().unwrap()
    });
    assert!(writer.token() > first.token().max(second.token()));
    writer.check(ms(1)).unwrap();
    for wait in [Duration::ZERO, paced(50)] {
        lock(&one).wait(wait).read().unwrap_err();
        lock(&one).wait(wait).write().unwrap_err();
    }
    let token = writer.token();
    writer.release().unwrap();
    assert_eq!(writer.check(ms(1)).unwrap_err().kind(), ErrorKind::NotOwned);
    let after = lock(&one).wait(PATIENCE).read().unwrap();
    assert!(after.token() > token);
    let error = two.rw_lock("catalog").readers(3).wait(PATIENCE).read().unwrap_err();
    assert!(
        error.kind() == ErrorKind::Config && error.to_string().contains("readers is 3 here, and 2 in the store"),
        "{error}"
    );
    assert_eq!(two.set_readers("catalog", 3).unwrap_err().kind(), ErrorKind::Busy);
    after.release().unwrap();
    eventually("the number can be changed", || two.set_readers("catalog", 3).is_ok());
}
