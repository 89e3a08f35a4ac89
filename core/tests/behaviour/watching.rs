//! An acquisition that waits for no living holder, on stores where only observers can tell whether one lives.

use std::time::Duration;

use crate::common::*;
use leasehold_core::config::Poll;
use leasehold_core::op::{Fault, FaultKind, Holder, Holding, TransportFault};
use leasehold_core::{Config, Event, Failure, LockOptions, Monotonic, NodeConfig, NodeId, SessionLabel, Version, Wait};

/// The observation time of a record with a ttl of 30 s at a drift of 1%.
const OBSERVED: Duration = ms(30_300);

fn watch() -> LockOptions {
    with(|o| o.wait(Wait::Watch))
}

fn config(polls: &[(Poll, bool)]) -> Config {
    let nodes = polls.iter().map(|(poll, _)| NodeConfig { poll: *poll, ..NodeConfig::default() }).collect();
    let observed = (0..).map(NodeId::new).zip(polls).filter(|(_, (_, is_observed))| *is_observed);
    Config::new(nodes).unwrap().with_observed(observed.map(|(node, _)| node))
}

fn observed(nodes: usize) -> Config {
    config(&vec![(Poll::Read, true); nodes])
}

fn is_granted(events: &[Event]) -> bool {
    has(events, |event| matches!(event, Event::Acquired { .. }))
}

fn is_busy(events: &[Event]) -> bool {
    matches!(failure(events), Failure::Busy { holding: Some(_) })
}

/// The host stops for good.
fn kill(world: &mut World, host: usize) {
    world.hosts[host].wake_at = Monotonic::FAR;
}

/// Lets time pass until the watch has ended; how long that took.
fn end_of_watch(world: &mut World, host: usize, id: u64) -> Duration {
    let began = world.time;
    while !matches!(world.state(host, id), None | Some("Held")) {
        assert!(world.time - began < secs(120), "the watch does not end");
        world.pass(ms(1));
    }
    world.time - began
}

/// Observed stores of all shapes, with two hosts.
fn worlds() -> Vec<World> {
    let mixed = [(Poll::Read, true), (Poll::Read, true), (Poll::Acquire, false)];
    let all = [observed(1), config(&[(Poll::Acquire, true)]), observed(3), observed(5), config(&mixed)];
    all.iter().map(|config| World::with_config(config, 2)).collect()
}

#[test]
fn the_lock_of_a_dead_holder_is_taken_over_in_one_call() {
    for mut world in worlds() {
        let dead = world.hold(0, 1, "r", options());
        kill(&mut world, 0);
        world.pass(secs(60));
        world.acquire(1, 1, "r", watch());
        let took = end_of_watch(&mut world, 1, 1);
        assert!(token(&world.take_events(1)) > dead);
        assert!(took >= OBSERVED && took <= OBSERVED + ms(500), "{took:?}");
    }
}

#[test]
fn a_living_holder_is_seen_to_live_after_a_third_of_its_ttl() {
    for mut world in worlds() {
        for after in [0, 3, 7, 9] {
            world.hold(0, after, &format!("r{after}"), options());
            world.pass(secs(after));
            world.acquire(1, after, &format!("r{after}"), watch());
            let took = end_of_watch(&mut world, 1, after);
            assert!(is_busy(&world.take_events(1)));
            assert!(took <= secs(10) + secs(2) + ms(500), "after {after} s: {took:?}");
            assert!(world.remaining(0, after) > secs(15), "the holder keeps it");
        }
    }
}

#[test]
fn a_short_ttl_is_watched_closely() {
    for mut world in worlds() {
        world.hold(0, 1, "r", ttl(ms(3_000)));
        world.acquire(1, 1, "r", with(|o| o.wait(Wait::Watch).ttl(secs(30))));
        let took = end_of_watch(&mut world, 1, 1);
        assert!(is_busy(&world.take_events(1)));
        assert!(took <= ms(1_000) + ms(250) + ms(100), "a third of the holder's ttl and a look: {took:?}");
    }
}

#[test]
fn a_lock_that_is_released_meanwhile_is_acquired() {
    for mut world in worlds() {
        world.hold(0, 1, "r", options());
        world.acquire(1, 1, "r", watch());
        world.pass(secs(5));
        world.release(0, 1);
        world.pass(secs(3));
        let events = world.take_events(1);
        assert!(is_granted(&events), "{} nodes: {events:?}", world.stores.len());
    }
}

#[test]
fn a_free_lock_is_acquired_at_once() {
    for mut world in worlds() {
        world.hold(1, 1, "r", watch());
    }
}

#[test]
fn a_store_that_expires_records_is_tried_once() {
    for world in [World::new(2), World::reading(2), World::quorum(3, 2)] {
        let mut world = world;
        world.hold(0, 1, "r", options());
        world.acquire(1, 1, "r", watch());
        world.deliver_all();
        assert!(is_busy(&world.take_events(1)), "nothing to observe");
    }
    // A majority of nodes does it.
    let mixed = config(&[(Poll::Acquire, false), (Poll::Acquire, false), (Poll::Read, true)]);
    let mut world = World::with_config(&mixed, 2);
    world.hold(0, 1, "r", options());
    world.acquire(1, 1, "r", watch());
    world.deliver_all();
    assert!(is_busy(&world.take_events(1)));
}

#[test]
fn a_record_without_a_ttl_is_not_watched() {
    let mut world = World::with_config(&observed(1), 1);
    world.acquire(0, 1, "r", watch());
    let endless = Holding { left: None, record_ttl: None, ..holding(other_nonce(), Some(1)) };
    world.answer_with(0, conflict(Some(endless)));
    assert!(is_busy(&world.take_events(0)), "it would never end");
}

#[test]
fn a_lock_of_the_same_client_is_not_watched() {
    let mut world = World::with_config(&observed(1), 1);
    world.hold(0, 1, "r", options());
    world.acquire(0, 2, "r", watch());
    assert!(is_busy(&world.take_events(0)));
}

#[test]
fn a_heartbeat_of_the_session_shows_that_the_holder_lives() {
    let mut world = World::with_config(&observed(1), 0);
    let session = |name| observed(1).with_session(SessionLabel::new(name).unwrap());
    for name in ["a", "b"] {
        world.add_host(&session(name), 0);
    }
    world.hold(0, 1, "r", options());
    world.acquire(1, 1, "r", watch());
    let took = end_of_watch(&mut world, 1, 1);
    assert!(is_busy(&world.take_events(1)) && took <= secs(12) + ms(500), "{took:?}");
    kill(&mut world, 0);
    world.acquire(1, 2, "r", watch());
    let took = end_of_watch(&mut world, 1, 2);
    assert!(is_granted(&world.take_events(1)));
    assert!(took >= OBSERVED - secs(12) && took <= OBSERVED + ms(500), "{took:?}");
}

#[test]
fn heartbeats_of_other_libraries_are_seen() {
    let of_java = |version: &[u8]| Holding {
        holder: Holder::Foreign,
        version: Version::new(version).unwrap(),
        left: None,
        record_ttl: Some(secs(20)),
        ..holding(other_nonce(), None)
    };
    for (moves, is_busy) in [(true, true), (false, false)] {
        let mut world = World::with_config(&config(&[(Poll::Acquire, true)]), 1);
        world.acquire(0, 1, "r", watch());
        world.answer_with(0, conflict(Some(of_java(b"d2f7"))));
        world.pass_until_sent(0);
        world.answer_with(0, conflict(Some(of_java(if moves { b"a0b1" } else { b"d2f7" }))));
        assert_eq!(world.state(0, 1).is_none(), is_busy);
    }
}

#[test]
fn another_holder_in_the_place_of_a_dead_one_lives() {
    let mut world = World::with_config(&observed(1), 3);
    world.hold(0, 1, "r", options());
    kill(&mut world, 0);
    world.acquire(2, 1, "r", options());
    world.pass(secs(1));
    world.acquire(1, 1, "r", watch());
    let took = end_of_watch(&mut world, 1, 1);
    assert!(is_busy(&world.take_events(1)) && world.state(2, 1) == Some("Held"));
    assert!(took <= OBSERVED + ms(500), "{took:?}");
}

#[test]
fn many_watchers_take_over_once() {
    for config in [observed(1), observed(3)] {
        let mut world = World::with_config(&config, 6);
        world.hold(0, 1, "r", options());
        kill(&mut world, 0);
        for host in 1..6 {
            world.acquire(host, 1, "r", watch());
        }
        world.pass(OBSERVED + secs(60));
        let granted = (1..6).filter(|host| world.state(*host, 1) == Some("Held")).count();
        assert!(granted <= 1, "{granted} hold it");
        for host in 1..6 {
            let events = world.take_events(host);
            assert!(is_granted(&events) || matches!(failure(&events), Failure::Busy { .. }), "{host}: {events:?}");
        }
        assert!(granted == 1 || config.nodes().len() > 1, "one of them takes over on a single store");
    }
}

#[test]
fn a_store_that_refuses_every_takeover_ends_the_watch() {
    for poll in [Poll::Acquire, Poll::Read] {
        let mut world = World::with_config(&config(&[(poll, true)]), 1);
        world.acquire(0, 1, "r", watch());
        let (mut tries, began) = (0, world.time);
        while world.state(0, 1).is_some() {
            tries += 1;
            assert!(tries < 200, "{tries} requests in {:?}", world.time - began);
            let shown = Holding { left: None, ..holding(other_nonce(), Some(1)) };
            let transmit = world.take(0);
            let outcome = if kind(&transmit.ops[0].op) == "read" {
                let seen = leasehold_core::op::Seen { holding: Some(Box::new(shown)), done: None };
                leasehold_core::op::Outcome::Applied(leasehold_core::op::Applied::Read(seen))
            } else {
                conflict(Some(shown))
            };
            world.answer(0, transmit.id, Ok(vec![outcome]));
            while world.hosts[0].wire.is_empty() && world.state(0, 1).is_some() {
                world.pass_cut_off(ms(1));
            }
        }
        assert!(is_busy(&world.take_events(0)));
        let took = world.time - began;
        assert!(took >= OBSERVED && took <= OBSERVED + secs(4), "{took:?}");
    }
}

#[test]
fn a_store_that_goes_down_ends_the_watch_in_time() {
    let mut world = World::with_config(&observed(1), 2);
    world.hold(0, 1, "r", options());
    world.acquire(1, 1, "r", watch());
    world.deliver_all();
    let fault = Fault::new(FaultKind::Unreachable, "connection refused");
    let began = world.time;
    while world.state(1, 1).is_some() {
        assert!(world.time - began < secs(40), "the watch does not end");
        while !world.hosts[1].wire.is_empty() {
            let transmit = world.take(1);
            world.answer(1, transmit.id, Err(TransportFault::NotSent(fault.clone())));
        }
        world.pass_cut_off(ms(1));
    }
    assert_eq!(failure(&world.take_events(1)), Failure::Unavailable(fault));
}
