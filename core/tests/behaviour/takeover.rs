//! A holder died and the store cannot tell: a waiter observes the record for its whole ttl before it takes over.

use crate::common::*;
use leasehold_core::op::{Holder, Holding, Op, Outcome, Refusal, Seen};
use leasehold_core::store::BootId;
use leasehold_core::{Event, Seq, Token, Version, Wait};

/// Host 0 holds `r` for 30 s and then its machine is gone; host 1 runs on another one.
fn orphaned(mut world: World) -> (World, Token) {
    let token = world.hold(0, 1, "r", options());
    world.hosts[0].wake_at = leasehold_core::Monotonic::FAR;
    for store in &mut world.stores {
        store.boot = BootId([2; 16]);
    }
    (world, token)
}

/// The observation time of a record with a ttl of 30 s at a drift of 1%.
const OBSERVED: std::time::Duration = ms(30_300);

#[test]
fn a_foreign_boot_is_observed_for_its_ttl_and_then_taken_over() {
    for world in [World::new(2), World::reading(2)] {
        let (mut world, dead) = orphaned(world);
        world.acquire(1, 1, "r", options());
        world.deliver_all();
        world.pass(OBSERVED - ms(1));
        assert_eq!(world.state(1, 1), Some("Waiting"), "not before the whole ttl was seen");
        // The poll timer, at most 62 ms of jitter.
        world.pass(ms(64));
        assert!(token(&world.take_events(1)) > dead);
        assert_eq!(world.state(1, 1), Some("Held"));
    }
}

#[test]
fn the_observation_starts_when_the_reply_arrives() {
    let (mut world, _) = orphaned(World::new(2));
    world.acquire(1, 1, "r", options());
    let acquire = world.take(1);
    let outcomes = world.perform(&acquire);
    world.pass_cut_off(ms(499));
    world.answer(1, acquire.id, Ok(outcomes));
    world.pass(OBSERVED - ms(1));
    assert_eq!(world.state(1, 1), Some("Waiting"), "the time before the reply does not count");
    world.pass(ms(64));
    assert_eq!(world.state(1, 1), Some("Held"));
}

#[test]
fn observation_uses_the_ttl_of_the_record() {
    let (mut world, _) = orphaned(World::new(2));
    world.acquire(1, 1, "r", ttl(ms(100)));
    world.pass(OBSERVED - ms(1));
    assert!(!has(&world.take_events(1), |event| matches!(event, Event::Acquired { .. })));
    world.pass(ms(10));
    assert!(has(&world.take_events(1), |event| matches!(event, Event::Acquired { .. })));
}

#[test]
fn a_change_of_version_restarts_the_observation() {
    for world in [World::new(2), World::reading(2)] {
        let (mut world, _) = orphaned(world);
        world.acquire(1, 1, "r", options());
        world.pass(secs(20));
        let record = world.stores[0].records.get_mut(&resource("r")).unwrap();
        record.lease.as_mut().unwrap().seq = Seq::new(99);
        // Seen at the next poll, at most 2 s later.
        world.pass(OBSERVED - ms(1));
        assert_eq!(world.state(1, 1), Some("Waiting"), "somebody renewed it");
        world.pass(secs(2) + ms(64));
        assert_eq!(world.state(1, 1), Some("Held"));
    }
}

#[test]
fn an_observation_outlives_the_attempts_that_made_it() {
    let (mut world, _) = orphaned(World::new(2));
    let mut tries = 0;
    let began = world.time;
    loop {
        tries += 1;
        world.acquire(1, tries, "r", once());
        world.deliver_all();
        if has(&world.take_events(1), |event| matches!(event, Event::Acquired { .. })) {
            break;
        }
        assert!(tries < 100, "a caller that tries once a second never gets the lock");
        world.pass(secs(1));
    }
    let took = world.time - began;
    assert!(took >= OBSERVED && took <= OBSERVED + secs(1), "{took:?}");
}

/// Each attempt is decided by the refusals of the other two.
#[test]
fn node_that_always_answers_last_is_observed_as_well() {
    let (mut world, _) = orphaned(World::quorum(3, 2));
    world.acquire(1, 1, "r", options());
    world.deliver_to(1, 0);
    world.deliver_to(1, 1);
    assert_eq!(world.state(1, 1), Some("Waiting"));
    world.deliver_all();
    world.pass(OBSERVED - ms(1));
    world.pass_until_sent(1);
    for node in 0..3 {
        let takeover = world.take_for(1, node);
        assert!(matches!(&takeover.ops[0].op, Op::Acquire(op) if op.expect.is_some()), "node {node}");
    }
}

#[test]
fn a_takeover_names_the_version_that_was_observed() {
    let (mut world, _) = orphaned(World::new(2));
    world.acquire(1, 1, "r", once());
    world.deliver_all();
    world.pass(OBSERVED);
    let version = {
        let lease = world.record(0, "r").lease.as_ref().unwrap();
        Version::of(&lease.nonce, lease.seq)
    };
    // The holder is alive after all, and renews between the decision and the write.
    world.acquire(1, 2, "r", once());
    let takeover = world.take(1);
    assert!(matches!(&takeover.ops[0].op, Op::Acquire(op) if op.expect == Some(version)));
    world.stores[0].records.get_mut(&resource("r")).unwrap().lease.as_mut().unwrap().seq = Seq::new(5);
    let outcomes = world.perform(&takeover);
    assert!(matches!(outcomes[..], [Outcome::NotApplied(Refusal::Conflict(_))]), "compare, then take over");
}

#[test]
fn takeover_is_not_tried_before_the_observation_ends() {
    let (mut world, _) = orphaned(World::new(2));
    world.acquire(1, 1, "r", options());
    for _ in 0..20 {
        let transmit = world.take(1);
        assert!(matches!(&transmit.ops[0].op, Op::Acquire(op) if op.expect.is_none()));
        world.carry(1, &transmit);
        world.pass_until_sent(1);
    }
}

#[test]
fn foreign_holder_is_observed_for_longer() {
    let mut world = World::new(1);
    let foreign = Holding {
        holder: Holder::Foreign,
        version: Version::new(b"d2f7").unwrap(),
        left: None,
        record_ttl: Some(secs(20)),
        ..holding(other_nonce(), None)
    };
    let show = |world: &mut World, id: u64| {
        world.acquire(0, id, "r", once());
        let Op::Acquire(op) = world.hosts[0].wire[0].ops[0].op.clone() else { panic!("an acquire") };
        let seen = Seen { holding: Some(Box::new(foreign.clone())), done: None };
        world.answer_with(0, Outcome::NotApplied(Refusal::Conflict(seen)));
        op.expect
    };
    assert_eq!(show(&mut world, 1), None);
    // 20 s * 1.01 / 0.99 + 2 ms, rounded up.
    world.pass(std::time::Duration::from_nanos(20_406_040_404));
    assert_eq!(show(&mut world, 2), None);
    world.pass(std::time::Duration::from_nanos(1));
    assert_eq!(show(&mut world, 3), Some(foreign.version.clone()));
}

#[test]
fn a_record_without_a_ttl_is_never_taken_over() {
    let mut world = World::new(1);
    let endless = Holding { left: None, record_ttl: None, ..holding(other_nonce(), Some(1)) };
    for id in 0..10 {
        world.acquire(0, id, "r", once());
        let transmit = world.take(0);
        assert!(matches!(&transmit.ops[0].op, Op::Acquire(op) if op.expect.is_none()));
        world.answer(0, transmit.id, Ok(vec![conflict(Some(endless.clone()))]));
        world.pass(secs(24 * 3600));
    }
}

#[test]
fn store_side_expiry_lets_a_waiter_follow_at_once() {
    for world in [World::new(2), World::reading(2)] {
        let mut world = world;
        let dead = world.hold(0, 1, "r", options());
        world.hosts[0].wake_at = leasehold_core::Monotonic::FAR;
        world.acquire(1, 1, "r", options());
        world.pass(secs(30) - ms(1));
        assert_eq!(world.state(1, 1), Some("Waiting"));
        world.pass(ms(65));
        assert!(token(&world.take_events(1)) > dead, "within the ttl and a little jitter");
    }
}

#[test]
fn lock_delay_postpones_the_takeover() {
    let mut world = World::new(2);
    world.hold(0, 1, "r", with(|o| o.lock_delay(secs(10))));
    world.hosts[0].wake_at = leasehold_core::Monotonic::FAR;
    world.acquire(1, 1, "r", options());
    world.pass(secs(40) - ms(1));
    assert_eq!(world.state(1, 1), Some("Waiting"));
    world.pass(ms(65));
    assert_eq!(world.state(1, 1), Some("Held"));
}

#[test]
fn released_lock_is_free_at_once_despite_a_lock_delay() {
    let mut world = World::new(2);
    world.hold(0, 1, "r", with(|o| o.lock_delay(secs(10))));
    world.release(0, 1);
    world.deliver_all();
    world.hold(1, 1, "r", once());
}

#[test]
fn observations_are_bounded() {
    use leasehold_core::config::{Limits, NodeConfig};
    let limits = Limits { observations: 4, ..Limits::default() };
    let config = leasehold_core::Config::new(vec![NodeConfig::default()]).unwrap().with_limits(limits).unwrap();
    let mut world = World::with_config(&config, 2);
    for id in 0..10 {
        world.hold(0, id, &format!("r{id}"), options());
    }
    world.stores[0].boot = BootId([2; 16]);
    world.hosts[0].wake_at = leasehold_core::Monotonic::FAR;
    for id in 0..10 {
        world.acquire(1, id, &format!("r{id}"), with(|o| o.wait(Wait::Once)));
        world.deliver_all();
        assert!(world.hosts[1].client.stats().observations <= 4);
    }
    // The youngest observation is dropped, so that the oldest can still end.
    world.pass(OBSERVED);
    world.acquire(1, 20, "r0", once());
    world.deliver_all();
    assert!(has(&world.take_events(1), |event| matches!(event, Event::Acquired { .. })));
}
