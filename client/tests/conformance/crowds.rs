//! Many locks, many threads, many candidates.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use leasehold::ErrorKind;
use leasehold::fence::Guards;

use crate::common::{PATIENCE, eventually, ms, paced};
use crate::{Can, Store};

pub(crate) fn many_locks_at_once(store: &Store) {
    let (one, two) = store.two_clients();
    let count = if store.can(Can::WakeOtherClients) { 200 } else { 60 };
    let name = |n: u32| format!("job-{n}");
    // Short enough for all of them to be renewed meanwhile, and long enough for a slow store to renew them in time: one after the other, as
    // they are granted and released here.
    let start = Instant::now();
    one.lock("pace").acquire().unwrap().release().unwrap();
    let ttl = paced(12_000).max((start.elapsed() * count * 3).min(ms(60_000)));
    let leases: Vec<_> = (0..count).map(|n| one.lock(name(n)).ttl(ttl).acquire().unwrap()).collect();
    let left = |n: u32| store.left_of(&two.inspect(name(n)).unwrap().expect("it is held"), &leases[n as usize]);
    for n in [0, count / 2, count - 1] {
        let mut last = left(n);
        eventually("it is renewed", || {
            let now = left(n);
            std::mem::replace(&mut last, now) < now
        });
    }
    for lease in &leases {
        lease.check(ms(1)).unwrap();
        assert!(two.lock(lease.resource()).try_acquire().unwrap().is_none(), "{}", lease.resource());
    }
    for lease in leases.iter().step_by(2) {
        lease.release().unwrap();
    }
    for (n, lease) in leases.iter().enumerate() {
        assert_eq!(two.inspect(lease.resource()).unwrap().is_none(), n % 2 == 0, "{}", lease.resource());
    }
    drop(leases);
    one.close().unwrap();
    for n in 0..count {
        assert_eq!(two.inspect(name(n)).unwrap(), None);
    }
}

/// A counter that is read, and later written, by the lock's holder: without it, increments are lost.
pub(crate) fn increments_under_a_lock_are_never_lost(store: &Store) {
    const THREADS: u64 = 8;
    let rounds = if store.can(Can::WakeOtherClients) { 12 } else { 4 };
    let (counter, guards, clients) = (AtomicU64::new(0), Guards::new(10), store.two_clients());
    let clients = [clients.0, clients.1];
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let client = &clients[usize::try_from(thread % 2).unwrap()];
            let (counter, guards) = (&counter, &guards);
            scope.spawn(move || {
                for _ in 0..rounds {
                    let lease = client.lock("counter").wait(4 * PATIENCE).acquire().unwrap();
                    guards.claim("counter", lease.token()).unwrap();
                    let before = counter.load(Ordering::Relaxed);
                    std::thread::yield_now();
                    guards.with("counter", lease.token(), || counter.store(before + 1, Ordering::Relaxed)).unwrap();
                    lease.release().unwrap();
                    // A later holder may have claimed it by now or not; an earlier one certainly has.
                    assert!(guards.check("counter", lease.token() - 1).is_err());
                }
            });
        }
    });
    assert_eq!(counter.into_inner(), THREADS * rounds);
}

pub(crate) fn several_locks_are_all_or_nothing(store: &Store) {
    let (one, two) = store.two_clients();
    let taken = two.lock("b").owner("two").acquire().unwrap();
    let error = one.lock_all(["c", "b", "a"]).wait(Duration::ZERO).acquire().unwrap_err();
    assert_eq!((error.kind(), error.resource()), (ErrorKind::Busy, Some("b")));
    assert_eq!(error.holder().and_then(|holder| holder.owner.as_deref()), Some("two"));
    for name in ["a", "c"] {
        assert_eq!(two.inspect(name).unwrap(), None, "what was taken goes back: {name}");
    }
    taken.release().unwrap();
    let all = one.lock_all(["c", "b", "a", "b"]).wait(PATIENCE).owner("one").acquire().unwrap();
    assert_eq!(all.iter().map(|lease| lease.resource()).collect::<Vec<_>>(), ["a", "b", "c"]);
    all.check(ms(1)).unwrap();
    for name in ["a", "b", "c"] {
        assert!(two.lock(name).try_acquire().unwrap().is_none(), "{name}");
    }
    all.release().unwrap();
    two.lock_all(["a", "b", "c"]).wait(Duration::ZERO).acquire().unwrap().release().unwrap();
}

pub(crate) fn opposite_orders_do_not_block_each_other(store: &Store) {
    let (one, two) = store.two_clients();
    let work = |client: leasehold::blocking::Client, names: [&'static str; 3]| {
        std::thread::spawn(move || {
            for _ in 0..3 {
                client.lock_all(names).wait(PATIENCE).acquire().unwrap().release().unwrap();
            }
        })
    };
    let workers = [work(one, ["a", "b", "c"]), work(two, ["c", "b", "a"])];
    for worker in workers {
        worker.join().unwrap();
    }
}

pub(crate) fn one_candidate_leads_and_another_follows(store: &Store) {
    let (one, two) = store.two_clients();
    let first = one.elect("leader").owner("one").start().unwrap();
    eventually("the first is elected", || first.token().is_some());
    let term = first.token().unwrap();
    let second = two.elect("leader").owner("two").start().unwrap();
    let leader = two.inspect("leader").unwrap().expect("somebody leads");
    assert_eq!((leader.owner.as_deref(), leader.token), (Some("one"), Some(term)));
    assert_eq!((first.token(), second.token()), (Some(term), None));
    first.resign().unwrap();
    let next = Cell::new(None);
    eventually("the second is elected", || {
        next.set(second.token());
        next.get().is_some()
    });
    assert!(next.get() > Some(term));
    second.resign().unwrap();
    assert_eq!(one.inspect("leader").unwrap(), None);
}
