//! Everything that a client keeps has a bound.

use crate::common::*;
use leasehold_core::config::Limits;
use leasehold_core::{Config, Error, Event, NodeConfig};

fn limited(limits: Limits) -> World {
    World::with_config(&Config::new(vec![NodeConfig::default()]).unwrap().with_limits(limits).unwrap(), 2)
}

#[test]
fn no_more_acquisitions_than_allowed_are_alive_at_once() {
    let mut world = limited(Limits { locks: 3, ..Limits::default() });
    world.hold(0, 1, "held", options());
    world.acquire(0, 2, "held", options());
    world.acquire(0, 3, "other", options());
    let (now, fresh) = (world.now(0), world.fresh());
    let client = &mut world.hosts[0].client;
    let refused = client.acquire(lock(4), resource("more"), options(), &fresh, now);
    assert_eq!(refused, Err(Error::TooManyLocks { limit: 3 }));
    assert!(refused.unwrap_err().to_string().contains("3 locks"));
    assert_eq!(client.stats().locks, 3);
    world.release(0, 2);
    world.acquire(0, 4, "more", options());
    assert_eq!(world.hosts[0].client.stats().locks, 3);
}

#[test]
fn answers_to_reads_that_nobody_takes_make_room_for_others() {
    let mut world = limited(Limits { observations: 2, ..Limits::default() });
    let reads: Vec<_> = (0..3)
        .map(|_| {
            let now = world.now(0);
            let read = world.hosts[0].client.read(&resource("r"), now);
            world.drain(0);
            world.deliver_all();
            read
        })
        .collect();
    let taken: Vec<_> = reads.iter().map(|read| world.hosts[0].client.take_read(*read).is_some()).collect();
    assert_eq!(taken, [false, true, true]);
}

#[test]
fn reads_that_are_still_asked_are_all_answered() {
    let mut world = limited(Limits { observations: 2, ..Limits::default() });
    let now = world.now(0);
    let reads: Vec<_> = (0..4).map(|_| world.hosts[0].client.read(&resource("r"), now)).collect();
    world.drain(0);
    world.deliver_all();
    assert!(reads.iter().all(|read| world.hosts[0].client.take_read(*read).is_some()));
}

#[test]
fn duplicate_lock_id_is_rejected() {
    let mut world = World::new(1);
    world.hold(0, 1, "r", options());
    let before = world.hosts[0].client.clone();
    let (now, fresh) = (world.now(0), world.fresh());
    let refused = world.hosts[0].client.acquire(lock(1), resource("other"), options(), &fresh, now);
    assert_eq!(refused, Err(Error::DuplicateLock));
    assert_eq!(world.hosts[0].client, before);
}

#[test]
fn silent_store_does_not_fill_the_memory() {
    let mut world = limited(Limits { orphans: 20, ..Limits::default() });
    for id in 0..10 {
        world.acquire(0, id, &format!("r{id}"), options());
    }
    let mut most = 0;
    for _ in 0..3_000 {
        world.pass_cut_off(ms(100));
        world.hosts[0].wire.clear();
        let stats = world.hosts[0].client.stats();
        assert!(stats.locks == 10 && stats.orphans <= 20 && stats.undrained == 0, "{stats:?}");
        // One for each waiter and each background release.
        assert!(stats.in_flight <= 30, "{stats:?}");
        most = most.max(stats.orphans);
    }
    assert_eq!(most, 20, "the bound was reached");
    assert!(world.hosts[0].events.is_empty());
}

#[test]
fn a_waiter_sends_about_one_request_a_second() {
    let mut world = World::new(2);
    world.hold(1, 1, "r", options());
    world.acquire(0, 1, "r", options());
    let mut requests = 0;
    for _ in 0..6_000 {
        world.pass_cut_off(ms(100));
        requests += world.hosts[0].wire.len();
        world.deliver_all();
    }
    assert!((400..900).contains(&requests), "{requests} requests in 600 s");
}

#[test]
fn all_memory_is_freed_at_the_end() {
    let mut world = World::new(2);
    let fresh = world.hosts[0].client.stats();
    for round in 0..20 {
        for id in 0..50 {
            world.acquire(0, id, &format!("r{}", id % 7), with(|o| o.wait(leasehold_core::Wait::For(secs(2)))));
        }
        world.pass(ms(100 * round));
        for id in 0..50 {
            if world.state(0, id).is_some() {
                world.release(0, id);
            }
        }
        world.pass(secs(40));
        assert!(world.hosts[0].client.is_idle(), "round {round}");
    }
    let stats = world.hosts[0].client.stats();
    assert_eq!((stats.locks, stats.in_flight, stats.orphans), (fresh.locks, fresh.in_flight, fresh.orphans));
    assert_eq!(world.hosts[0].wake_at, leasehold_core::Monotonic::FAR, "and no timer is left");
    let ends = world
        .take_events(0)
        .into_iter()
        .filter(|event| matches!(event, Event::Failed { .. } | Event::Released { .. } | Event::Lost { .. }));
    assert_eq!(ends.count(), 1_000, "each acquisition ended once");
}
