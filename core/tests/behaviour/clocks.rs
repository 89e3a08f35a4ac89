//! Monotonic clocks that stand still, run backwards or jump, and wall clocks that show nonsense.

use crate::common::*;
use leasehold_core::{Event, Monotonic, Now, Output, Token};
use std::time::Duration;

fn at(ns: u64, unix_ms: u64) -> Now {
    Now { monotonic: Monotonic::from_ns(ns), unix_ms }
}

#[test]
fn clock_that_stands_still_causes_no_spinning() {
    let mut world = World::new(1);
    world.hold(0, 1, "r", options());
    let now = world.now(0);
    let left = world.remaining(0, 1);
    for n in 0..1_000 {
        let client = &mut world.hosts[0].client;
        client.handle_timeout(&entropy(n), now);
        let output = client.poll_output(now);
        assert!(matches!(output, Output::WakeAt(at) if at > now.monotonic), "{output:?}");
        assert_eq!(client.remaining(lock(1), now), left);
    }
}

#[test]
fn clock_that_runs_backwards_counts_as_standing_still() {
    let mut world = World::new(1);
    world.hold(0, 1, "r", options());
    world.pass_cut_off(secs(20));
    world.tick(0);
    let left = world.remaining(0, 1);
    let back = at(0, EPOCH_UNIX_MS);
    let client = &mut world.hosts[0].client;
    client.handle_timeout(&entropy(1), back);
    assert_eq!(client.remaining(lock(1), back), left, "no validity is won by turning the clock back");
    client.acquire(lock(2), resource("s"), options(), &entropy(2), back).unwrap();
    let Output::Transmit(transmit) = (loop {
        let output = client.poll_output(back);
        if matches!(output, Output::Transmit(_)) {
            break output;
        }
    }) else {
        unreachable!()
    };
    assert!(transmit.deadline > Monotonic::from_ns(0).plus(EPOCH), "sends are dated by the latest time seen");
}

#[test]
fn a_lost_lease_is_not_revived_by_an_earlier_time() {
    let mut world = World::new(1);
    world.hold(0, 1, "r", options());
    let early = world.now(0);
    world.jump(secs(60));
    world.tick(0);
    loss(&world.take_events(0));
    assert_eq!(world.hosts[0].client.remaining(lock(1), early), Duration::ZERO);
    assert_eq!(world.hosts[0].client.state(lock(1)), None);
}

#[test]
fn leases_are_lost_after_a_suspend() {
    let mut world = World::new(1);
    for id in 0..10 {
        world.hold(0, id, &format!("r{id}"), with(|o| o.ttl(secs(10 + id))));
        world.jump(ms(700));
        world.tick(0);
        world.deliver_all();
    }
    world.take_events(0);
    world.pass_until_sent(0);
    let renewal = world.take(0);
    let outcomes = world.perform(&renewal);

    world.jump(secs(3600));
    // The reply was in the socket's buffer all the time; the clock comes first.
    world.answer(0, renewal.id, Ok(outcomes));
    let events = world.take_events(0);
    let lost = events.iter().filter(|event| matches!(event, Event::Lost { .. })).count();
    assert_eq!(lost, 10, "{events:?}");
    assert!(!has(&events, |event| matches!(event, Event::Renewed { .. })));
    assert_eq!(world.hosts[0].client.stats().held, 0);
    assert_eq!(world.on_the_wire(0), [""; 0], "what is lost is neither renewed nor released");
    assert!(world.hosts[0].client.is_idle());
}

#[test]
fn every_call_reports_an_expired_lease() {
    type Call = fn(&mut World);
    let calls: [Call; 6] = [
        |world| world.drain(0),
        |world| world.tick(0),
        |world| world.notify(0, "other"),
        |world| world.acquire(0, 2, "s", options()),
        |world| {
            let now = world.now(0);
            world.hosts[0].client.close(now);
            world.drain(0);
        },
        |world| {
            let now = world.now(0);
            world.hosts[0].client.handle_response(leasehold_core::RequestId::new(99), Ok(vec![]), now);
            world.drain(0);
        },
    ];
    for (n, call) in calls.into_iter().enumerate() {
        let mut world = World::new(1);
        world.hold(0, 1, "r", options());
        world.jump(secs(60));
        call(&mut world);
        let events = world.take_events(0);
        assert!(matches!(events[0], Event::Lost { .. }), "call {n}: {events:?}");
    }
}

#[test]
fn a_lease_that_expired_is_not_renewed_along_with_one_that_did_not() {
    let mut world = World::new(1);
    world.hold(0, 1, "long", ttl(secs(60)));
    let due = world.hosts[0].true_time_of(world.hosts[0].wake_at);
    world.jump(due - ms(10) - world.time);
    world.acquire(0, 2, "short", ttl(secs(1)));
    world.acquire(0, 3, "short", options());
    world.deliver_all();
    assert_eq!(world.state(0, 2), Some("Held"));
    // The embedder sleeps until the long lease is to be renewed and the short one is over.
    world.jump(secs(2));
    world.tick(0);
    let events = world.take_events(0);
    assert!(has(&events, |event| matches!(event, Event::Lost { lock: lost, .. } if *lost == lock(2))), "{events:?}");
    assert_eq!(world.state(0, 2), None, "an ended lock leaves");
    assert!(world.on_the_wire(0).contains(&"renew"));
    for transmit in &world.hosts[0].wire {
        assert!(transmit.ops.iter().all(|op| op.lock != lock(2)), "renewed after its end: {transmit:?}");
    }
    world.pass(secs(1));
    assert_eq!(world.state(0, 3), Some("Held"), "the next one in its line had its turn");
}

#[test]
fn wall_clock_does_not_affect_validity() {
    for unix_ms in [0, 1, EPOCH_UNIX_MS, u64::MAX] {
        let mut world = World::new(2);
        world.hosts[0].unix_ms = Some(unix_ms);
        world.hold(0, 1, "r", options());
        assert_eq!(world.remaining(0, 1), validity(secs(30)));
        world.hosts[0].unix_ms = Some(u64::MAX - unix_ms);
        world.pass_cut_off(secs(10));
        assert_eq!(world.remaining(0, 1), validity(secs(30)) - secs(10));
        world.pass_cut_off(secs(30));
        loss(&world.take_events(0));
    }
}

#[test]
fn tokens_never_fall_with_any_wall_clock() {
    let mut world = World::new(3);
    let mut last = Token::ZERO;
    let walls = [EPOCH_UNIX_MS, 0, u64::MAX, EPOCH_UNIX_MS + 5, 3, u64::MAX / 2, 1 << 53, (1 << 53) - 1, 0];
    for (n, wall) in walls.into_iter().cycle().take(60).enumerate() {
        let host = n % 3;
        world.hosts[host].unix_ms = Some(wall);
        let token = world.hold(host, 1, "r", options());
        assert!(token > last, "{token} after {last}, with the wall clock at {wall}");
        last = token;
        world.release(host, 1);
        world.deliver_all();
        world.take_events(host);
    }
    assert!(last < Token::MAX, "a mad clock does not use the tokens up");
}

#[test]
fn wall_clock_far_ahead_uses_at_most_half_of_the_tokens() {
    let mut world = World::new(1);
    world.hosts[0].unix_ms = Some(u64::MAX);
    let token = world.hold(0, 1, "r", options());
    assert!(token.get() <= 1 << 52, "{token}");
}

#[test]
fn a_wall_clock_that_is_set_back_does_not_lower_the_floor() {
    let mut world = World::new(1);
    let first = world.hold(0, 1, "r", options());
    world.release(0, 1);
    world.deliver_all();
    world.take_events(0);
    // The store forgot its counter, and the clock was set back by a day.
    world.stores[0].records.clear();
    world.hosts[0].unix_ms = Some(EPOCH_UNIX_MS - 86_400_000);
    world.jump(ms(1));
    let token = world.hold(0, 2, "r", options());
    assert!(token >= first, "{token} after {first}");
}

#[test]
fn largest_time_does_not_panic() {
    let mut world = World::new(1);
    let client = &mut world.hosts[0].client;
    for (n, ns) in [0, 1, 1 << 40, u64::MAX - 1, u64::MAX].into_iter().enumerate() {
        let now = at(ns, u64::MAX);
        client.acquire(lock(n as u64), resource("r"), options(), &entropy(n as u64), now).unwrap();
        while !matches!(client.poll_output(now), Output::WakeAt(_)) {}
        client.handle_timeout(&entropy(99 + n as u64), now);
        while !matches!(client.poll_output(now), Output::WakeAt(_)) {}
    }
}
