//! A lease ends at its deadline, by the clock alone: the loss is reported once, and the lease is never revived.

use crate::common::*;
use leasehold_core::{Event, LostReason};
use std::time::Duration;

const NS: Duration = Duration::from_nanos(1);

#[test]
fn the_deadline_ends_a_lease_while_its_renewal_is_in_flight() {
    let mut world = World::new(1);
    world.hold(0, 1, "r", options());
    world.jump(validity(secs(30)) - NS);
    world.tick(0);
    let late = world.take(0);
    assert_eq!(world.state(0, 1), Some("Held"));
    assert_eq!(world.remaining(0, 1), NS);
    world.pass_cut_off(NS);
    let events = world.take_events(0);
    assert_eq!(loss(&events), LostReason::Expired);
    assert_eq!(world.state(0, 1), None);
    assert_eq!(world.remaining(0, 1), secs(0));

    // The renewal was applied in time, but its reply comes too late.
    world.carry(0, &late);
    assert_eq!(world.take_events(0), [], "a late reply never revives a lease");
    assert_eq!(world.remaining(0, 1), secs(0));
    world.hosts[0].wire.clear();
    world.pass_cut_off(secs(300));
    assert_eq!(world.take_events(0), [], "told once");
}

#[test]
fn a_reply_that_arrives_with_the_deadline_is_too_late() {
    let mut world = World::new(1);
    world.hold(0, 1, "r", with(|o| o.ttl(ms(100))));
    world.pass_until_sent(0);
    let renewal = world.take(0);
    let outcomes = world.perform(&renewal);
    world.jump(validity(ms(100)) - (world.time - EPOCH));
    // The embedder slept until now: the deadline counts first, then the reply.
    world.answer(0, renewal.id, Ok(outcomes));
    assert_eq!(loss(&world.take_events(0)), LostReason::Expired);
    assert_eq!(world.state(0, 1), None);
}

#[test]
fn a_lost_lease_is_not_released() {
    let mut world = World::new(1);
    world.hold(0, 1, "r", with(|o| o.no_renewal()));
    world.pass_cut_off(secs(60));
    assert_eq!(loss(&world.take_events(0)), LostReason::Expired);
    assert_eq!(world.on_the_wire(0), [""; 0], "the work may still run: the record runs out by itself");
    assert!(world.hosts[0].client.is_idle());
}

#[test]
fn expiring_is_reported_once_before_the_deadline() {
    let mut world = World::new(1);
    world.hold(0, 1, "r", options());
    world.pass_cut_off(validity(secs(30)) - secs(5) - NS);
    assert!(!has(&world.take_events(0), |event| matches!(event, Event::Expiring { .. })));
    world.pass_cut_off(NS);
    let events = world.take_events(0);
    let deadline = world.now(0).monotonic.plus(secs(5));
    assert!(has(&events, |event| *event == Event::Expiring { lock: lock(1), deadline }), "{events:?}");
    world.pass_cut_off(secs(5) - NS);
    assert!(!has(&world.take_events(0), |event| matches!(event, Event::Expiring { .. } | Event::Lost { .. })));
}

#[test]
fn expiring_is_reported_again_after_a_renewal() {
    let mut world = World::new(1);
    world.hold(0, 1, "r", options());
    for _ in 0..2 {
        world.pass_cut_off(world.remaining(0, 1) - secs(4));
        assert!(has(&world.take_events(0), |event| matches!(event, Event::Expiring { .. })));
        world.hosts[0].wire.clear();
        world.pass_until_sent(0);
        world.deliver(0);
        let events = world.take_events(0);
        assert!(has(&events, |event| matches!(event, Event::Renewed { .. })), "{events:?}");
    }
}

#[test]
fn lease_declared_lost_stays_lost() {
    let mut world = World::new(1);
    world.hold(0, 1, "r", options());
    world.pass_until_sent(0);
    let renewal = world.take(0);
    let now = world.now(0);
    world.hosts[0].client.declare_lost(lock(1), now).unwrap();
    world.drain(0);
    assert_eq!(world.take_events(0), [Event::Lost { lock: lock(1), reason: LostReason::Expired }]);
    world.carry(0, &renewal);
    assert_eq!(world.take_events(0), []);
    assert_eq!(world.state(0, 1), None);
}

#[test]
fn declare_lost_ignores_a_pending_acquire() {
    let mut world = World::new(1);
    world.acquire(0, 1, "r", options());
    let now = world.now(0);
    world.hosts[0].client.declare_lost(lock(1), now).unwrap();
    world.drain(0);
    assert_eq!(world.take_events(0), []);
    world.deliver(0);
    assert_eq!(world.state(0, 1), Some("Held"));
    assert_eq!(world.hosts[0].client.declare_lost(lock(2), now), Err(leasehold_core::Error::UnknownLock));
}

#[test]
fn no_other_client_holds_before_the_loss_is_reported() {
    let mut world = World::new(2);
    world.hold(0, 1, "r", options());
    world.acquire(1, 1, "r", options());
    // The holder is cut off, the other is not.
    for _ in 0..400 {
        world.hosts[0].wire.clear();
        world.pass_cut_off(ms(100));
        while !world.hosts[1].wire.is_empty() {
            world.deliver(1);
        }
        assert!(world.remaining(0, 1) == secs(0) || world.remaining(1, 1) == secs(0), "two holders");
    }
    assert_eq!(loss(&world.take_events(0)), LostReason::Expired);
    assert_eq!(world.state(1, 1), Some("Held"));
}
