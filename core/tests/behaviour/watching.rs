//! An acquisition that waits for no living holder, on stores where only observers can tell whether one lives.

use std::time::Duration;

use crate::common::*;
use leasehold_core::config::Poll;
use leasehold_core::op::{Fault, FaultKind, Holder, Holding, TransportFault};
use leasehold_core::{Config, Event, Failure, LockOptions, Monotonic, NodeConfig, NodeId, SessionLabel, Version, Wait};

/// The observation time of a record with a ttl of 30 s at a drift of 1%.
const OBSERVED: Duration = ms(30_300);

fn watch() -> LockOptions {
    with(|o| o.wait(Wait::Watch(Duration::ZERO)))
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
        world.acquire(1, 1, "r", with(|o| o.wait(Wait::Watch(Duration::ZERO)).ttl(secs(30))));
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

/// The sighting of the lock by a host, as it would keep it for a later process.
fn kept(world: &World, host: usize) -> ([u8; 16], Monotonic) {
    let sightings = world.hosts[host].client.sightings(&resource("r"));
    let [sighting] = &sightings[..] else { panic!("{sightings:?}") };
    (sighting.version.digest(), sighting.since)
}

/// Tells a fresh host what another one on the same machine has seen.
fn hand_on(world: &mut World, host: usize, (digest, since): ([u8; 16], Monotonic), ago: Duration) {
    let now = world.now(host);
    let ago = now.monotonic.since(since).min(ago);
    world.hosts[host].client.seen_before(&resource("r"), NodeId::new(0), digest, ago, now);
}

/// Fresh processes of one machine, each of which waits for less than the ttl and hands on what it has seen; the time that
/// passed until one of them has the lock.
fn relay(world: &mut World, hosts: std::ops::Range<usize>) -> Option<Duration> {
    let began = world.time;
    let mut first = None;
    for host in hosts {
        if let Some(first) = first {
            hand_on(world, host, first, Duration::MAX);
        }
        world.acquire(host, 1, "r", with(|o| o.wait(Wait::For(secs(4)))));
        world.pass(secs(5));
        if is_granted(&world.take_events(host)) {
            return Some(world.time - began);
        }
        first = Some(kept(world, host));
    }
    None
}

/// Hosts whose clocks show the same, as processes of one machine.
fn one_machine(config: &Config, hosts: usize) -> World {
    let mut world = World::with_config(config, hosts);
    for host in &mut world.hosts {
        host.offset = Duration::ZERO;
    }
    world
}

#[test]
fn what_earlier_processes_have_seen_counts() {
    let mut world = one_machine(&observed(1), 12);
    world.hold(0, 1, "r", options());
    kill(&mut world, 0);
    let took = relay(&mut world, 1..12).expect("somebody takes over");
    assert!(took >= OBSERVED && took <= OBSERVED + secs(5) + ms(100), "{took:?}");
}

#[test]
fn a_holder_that_lives_is_never_taken_over_by_a_relay() {
    let mut world = one_machine(&observed(1), 30);
    world.hold(0, 1, "r", options());
    assert_eq!(relay(&mut world, 1..30), None);
    assert!(world.remaining(0, 1) > secs(15));
}

#[test]
fn a_first_sight_counts_only_for_the_version_that_is_read_now() {
    let mut world = one_machine(&observed(1), 3);
    world.hold(0, 1, "r", options());
    world.acquire(1, 1, "r", once());
    world.deliver_all();
    let first = kept(&world, 1);
    // The holder renews once more before it dies.
    world.pass(secs(12));
    kill(&mut world, 0);
    world.pass(secs(60));
    hand_on(&mut world, 2, first, Duration::MAX);
    world.acquire(2, 1, "r", watch());
    let took = end_of_watch(&mut world, 2, 1);
    assert!(took >= OBSERVED, "{took:?}: it was seen of another version");
}

#[test]
fn the_drift_applies_to_all_of_the_time_since_the_first_sight() {
    let mut world = one_machine(&observed(1), 2);
    world.hold(0, 1, "r", options());
    kill(&mut world, 0);
    world.acquire(1, 1, "r", once());
    world.deliver_all();
    let (digest, _) = kept(&world, 1);
    let config = observed(1);
    for (ago, least) in [(secs(30), ms(300)), (ms(30_299), ms(1)), (secs(3_600), ms(0))] {
        let fresh = world.add_host(&config, 0);
        world.hosts[fresh].offset = Duration::ZERO;
        let mut world = world.clone();
        world.pass(secs(3_600));
        let now = world.now(fresh);
        world.hosts[fresh].client.seen_before(&resource("r"), NodeId::new(0), digest, ago, now);
        world.acquire(fresh, 1, "r", watch());
        let took = end_of_watch(&mut world, fresh, 1);
        assert!(is_granted(&world.take_events(fresh)));
        assert!(took >= least && took <= least + ms(100), "{ago:?}: {took:?}");
    }
}

#[test]
fn a_sighting_says_how_long_the_record_was_seen_and_what_a_takeover_needs() {
    let mut world = World::with_config(&observed(1), 2);
    world.hold(0, 1, "r", options());
    let job = resource("r");
    let look = |world: &mut World, id| {
        world.acquire(1, id, "r", once());
        world.deliver_all();
        let sightings = world.hosts[1].client.sightings(&job);
        assert_eq!(sightings[0].until.since(sightings[0].since), OBSERVED);
        (sightings[0].since, sightings[0].seen, sightings[0].is_changed)
    };
    let began = world.now(1).monotonic;
    assert_eq!(look(&mut world, 1), (began, began, false));
    world.pass(secs(5));
    assert_eq!(look(&mut world, 2), (began, began.plus(secs(5)), false));
    world.pass(secs(7));
    let now = world.now(1).monotonic;
    assert_eq!(look(&mut world, 3), (now, now, true), "it was renewed");
    assert!(world.hosts[1].client.sightings(&resource("other")).is_empty());
}

#[test]
fn a_wait_that_is_shorter_than_the_ttl_is_followed_by_a_watch() {
    let wait = || with(|o| o.wait(Wait::For(secs(4))).watch_holder(true));
    assert_eq!(wait().wait(), Wait::Watch(secs(4)));
    for mut world in worlds() {
        // Renewed after 10 s, the holder is seen to live after the wait is over.
        world.hold(0, 1, "r", options());
        world.acquire(1, 1, "r", wait());
        let took = end_of_watch(&mut world, 1, 1);
        assert!(matches!(failure(&world.take_events(1)), Failure::TimedOut { holding: Some(_) }));
        assert!(took > secs(4) && took <= secs(10) + secs(2) + ms(500), "{took:?}");
        // Renewed during the wait, the holder lives, and the wait lasts no longer than it was to.
        world.pass(secs(10) + secs(7) - took);
        world.acquire(1, 2, "r", with(|o| o.wait(Wait::Watch(secs(6)))));
        let took = end_of_watch(&mut world, 1, 2);
        assert!(matches!(failure(&world.take_events(1)), Failure::TimedOut { holding: Some(_) }));
        assert!(took >= secs(6) && took <= secs(6) + ms(500), "{took:?}");
        kill(&mut world, 0);
        world.pass(secs(60));
        world.add_host(&world.hosts[1].client.config().clone(), 0);
        world.acquire(2, 1, "r", wait());
        let took = end_of_watch(&mut world, 2, 1);
        assert!(is_granted(&world.take_events(2)));
        assert!(took >= OBSERVED && took <= OBSERVED + ms(500), "{took:?}");
    }
}

#[test]
fn a_wait_where_nothing_is_observed_ends_in_time() {
    let mut world = World::reading(2);
    world.hold(0, 1, "r", options());
    world.acquire(1, 1, "r", with(|o| o.wait(Wait::Watch(secs(4)))));
    let took = end_of_watch(&mut world, 1, 1);
    assert!(matches!(failure(&world.take_events(1)), Failure::TimedOut { holding: Some(_) }));
    assert!(took <= secs(4) + ms(100), "{took:?}");
    assert_eq!(with(|o| o.watch_holder(true)).wait(), Wait::Forever, "it takes over by itself");
}
