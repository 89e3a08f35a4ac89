//! Leases are renewed early, with jitter, together where possible, and no longer than configured.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::common::*;
use leasehold_core::config::NodeConfig;
use leasehold_core::op::{Fault, FaultKind, Op, Outcome, Refusal};
use leasehold_core::{Event, LostReason};

#[test]
fn the_first_renewal_is_due_a_third_of_the_ttl_after_the_grant() {
    let mut seen = BTreeSet::new();
    for id in 0..100 {
        let mut world = World::new(1);
        world.hold(0, id, "r", options());
        world.pass_until_sent(0);
        let after = world.time - EPOCH;
        assert!(after > ms(7_500) && after <= secs(10), "{after:?}");
        seen.insert(after);
        let transmit = world.take(0);
        assert_eq!(transmit.deadline, world.now(0).monotonic.plus(ms(500)));
        let Op::Renew(op) = transmit.ops[0].op else { panic!("a renewal") };
        assert_eq!(op.record_ttl, secs(30), "the ttl is fixed when the lock is acquired");
    }
    assert!(seen.len() > 90, "spread out: {} different instants", seen.len());
    let (first, last) = (seen.first().unwrap(), seen.last().unwrap());
    assert!(*last - *first > secs(2), "over a quarter of the interval: {first:?} to {last:?}");
}

#[test]
fn the_interval_can_be_chosen() {
    let mut world = World::new(1);
    world.hold(0, 1, "r", with(|o| o.renew_every(secs(4))));
    for _ in 0..20 {
        let before = world.time;
        world.pass_until_sent(0);
        let after = world.time - before;
        assert!(after > secs(3) && after <= secs(4), "{after:?}");
        world.deliver(0);
    }
}

#[test]
fn a_request_has_at_most_a_sixth_of_the_ttl() {
    let mut world = World::new(1);
    world.acquire(0, 1, "r", ttl(ms(600)));
    assert_eq!(world.take(0).deadline, world.now(0).monotonic.plus(ms(100)));
}

#[test]
fn lease_lasts_while_it_is_renewed() {
    let mut world = World::new(1);
    let token = world.hold(0, 1, "r", options());
    let mut renewals = 0;
    for _ in 0..3600 {
        world.pass(secs(1));
        assert!(world.remaining(0, 1) > secs(19), "{:?} left", world.remaining(0, 1));
        renewals += world.take_events(0).len();
    }
    assert!((360..480).contains(&renewals), "{renewals} renewals in an hour");
    assert_eq!(world.record(0, "r").counter, token, "a renewal mints nothing");
}

#[test]
fn renewal_counts_from_its_send_and_reports_the_time_left() {
    let mut world = World::new(1);
    world.hold(0, 1, "r", options());
    world.pass_until_sent(0);
    let sent = world.now(0).monotonic;
    world.jump(ms(300));
    let left = world.remaining(0, 1);
    world.deliver(0);
    let deadline = sent.plus(validity(secs(30)));
    assert_eq!(world.take_events(0), [Event::Renewed { lock: lock(1), deadline, left, recovered: false }]);
}

#[test]
fn failures_are_tried_again_within_a_sixth_of_the_ttl() {
    let mut world = World::new(1);
    world.hold(0, 1, "r", ttl(secs(6)));
    world.pass_until_sent(0);
    let mut tries = 0;
    while world.state(0, 1).is_some() {
        tries += 1;
        let transmit = world.take(0);
        world.answer(0, transmit.id, Err(reset()));
        let before = world.time;
        if world.remaining(0, 1) < ms(1_000) {
            break;
        }
        world.pass_until_sent(0);
        let pause = world.time - before;
        assert!(pause >= ms(180) && pause <= ms(1_000), "{pause:?}");
    }
    assert!(tries >= 5, "{tries} tries before the deadline");
}

#[test]
fn throttled_renewals_are_retried_slowly() {
    let pause_after = |answer: Outcome| {
        let mut world = World::new(1);
        world.hold(0, 1, "r", options());
        world.pass_until_sent(0);
        world.answer_with(0, answer);
        let before = world.time;
        world.pass_until_sent(0);
        world.time - before
    };
    // With the same inputs, so that the jitter is the same.
    let normal = pause_after(Outcome::Unknown(Fault::of(FaultKind::Server)));
    let patient = pause_after(Outcome::NotApplied(Refusal::Throttled(Fault::of(FaultKind::Busy))));
    assert!(patient > 3 * normal, "{patient:?} and {normal:?}");
}

#[test]
fn a_lease_outlives_throttling_that_ends_shortly_before_it_whatever_the_pauses() {
    let throttled = || Outcome::NotApplied(Refusal::Throttled(Fault::of(FaultKind::Busy)));
    for id in 0..100 {
        let mut world = World::new(1);
        world.hold(0, id, "r", options());
        // The rest of the ttl of 30 s at each try.
        let mut tries = Vec::new();
        while tries.last().is_none_or(|left| *left > ms(1_500)) {
            world.pass_until_sent(0);
            tries.push(world.remaining(0, id));
            if *tries.last().unwrap() > ms(1_500) {
                world.answer_with(0, throttled());
            }
        }
        assert!(tries.iter().any(|left| (ms(5_000)..ms(8_750)).contains(left)), "one before the warning: {tries:?}");
        world.deliver(0);
        assert!(world.remaining(0, id) > secs(20), "{tries:?}");
        assert!(tries.len() <= 8, "{tries:?}");
    }
}

#[test]
fn a_hundred_leases_are_renewed_in_one_request() {
    let mut world = World::new(1);
    for id in 0..250 {
        world.acquire(0, id, &format!("r{id}"), options());
    }
    world.deliver_all();
    world.take_events(0);
    let mut sizes = Vec::new();
    while sizes.iter().sum::<usize>() < 250 {
        world.pass_until_sent(0);
        let transmit = world.deliver(0);
        assert!(transmit.ops.iter().all(|op| matches!(op.op, Op::Renew(_))));
        sizes.push(transmit.ops.len());
    }
    assert_eq!(sizes.iter().sum::<usize>(), 250);
    assert!(*sizes.iter().max().unwrap() == 100 && sizes.len() <= 4, "{sizes:?}");
    let renewed: BTreeSet<_> = world.take_events(0).iter().map(Event::lock).collect();
    assert_eq!(renewed.len(), 250, "each of them once");
}

#[test]
fn batch_size_is_that_of_the_node() {
    let mut world = World::of(vec![NodeConfig { batch: 2, ..NodeConfig::default() }], 1);
    for id in 0..7 {
        world.acquire(0, id, &format!("r{id}"), options());
    }
    world.deliver_all();
    let mut sizes = Vec::new();
    while sizes.iter().sum::<usize>() < 7 {
        world.pass_until_sent(0);
        sizes.push(world.deliver(0).ops.len());
    }
    assert_eq!(sizes, [2, 2, 2, 1]);
}

#[test]
fn each_lease_of_a_batch_has_its_own_outcome() {
    let mut world = World::new(1);
    for id in 0..3 {
        world.acquire(0, id, &format!("r{id}"), options());
    }
    world.deliver_all();
    world.take_events(0);
    world.pass_until_sent(0);
    let transmit = world.take(0);
    assert_eq!(transmit.ops.len(), 3);
    let mut outcomes = world.perform(&transmit);
    outcomes[1] = conflict(Some(holding(other_nonce(), Some(1))));
    let lost = transmit.ops[1].lock;
    world.answer(0, transmit.id, Ok(outcomes));
    for event in world.take_events(0) {
        match event.lock() == lost {
            true => assert!(matches!(event, Event::Lost { reason: LostReason::TakenOver { .. }, .. }), "{event:?}"),
            false => assert!(matches!(event, Event::Renewed { .. }), "{event:?}"),
        }
    }
    assert_eq!(world.hosts[0].client.stats().held, 2);
}

#[test]
fn a_slow_request_delays_no_other_lease() {
    let mut world = World::new(1);
    world.hold(0, 1, "slow", ttl(secs(30)));
    world.pass_until_sent(0);
    // This one is never answered.
    world.take(0);
    world.hold(0, 2, "r", ttl(secs(1)));
    for _ in 0..50 {
        world.pass_until_sent(0);
        let transmit = world.take(0);
        if transmit.ops[0].lock == lock(2) {
            world.carry(0, &transmit);
        }
        assert!(world.remaining(0, 2) > ms(300), "{:?}", world.remaining(0, 2));
    }
}

#[test]
fn max_hold_stops_renewals() {
    let mut world = World::new(1);
    world.hold(0, 1, "r", with(|o| o.max_hold(secs(60))));
    let mut last = EPOCH;
    while world.state(0, 1).is_some() {
        world.pass(ms(10));
        if has(&world.take_events(0), |event| matches!(event, Event::Renewed { .. })) {
            last = world.time;
        }
        assert!(world.time < EPOCH + secs(120));
    }
    assert!(last > EPOCH + secs(45) && last <= EPOCH + secs(60), "{:?}", last - EPOCH);
    let ended = world.time - last;
    assert!(ended <= secs(30), "{ended:?} after the last renewal");
}

#[test]
fn lease_ended_by_max_hold_has_that_reason() {
    let mut world = World::new(1);
    world.hold(0, 1, "r", with(|o| o.max_hold(secs(60))));
    world.pass(secs(120));
    assert_eq!(loss(&world.take_events(0)), LostReason::MaxHold);
}

#[test]
fn late_wake_up_around_max_hold_does_not_spin() {
    for late in (0..30_000).step_by(50) {
        let mut world = World::new(1);
        world.hold(0, 1, "r", with(|o| o.max_hold(secs(30)).renew_every(secs(10))));
        world.pass(secs(15));
        world.jump(ms(late));
        world.tick(0);
        let sleeps = world.hosts[0].wake_at > world.now(0).monotonic;
        assert!(sleeps || world.state(0, 1).is_none(), "{late} ms late");
    }
}

#[test]
fn late_wake_up_past_max_hold_does_not_renew() {
    for id in 0..50 {
        let mut world = World::new(1);
        world.hold(0, id, "r", with(|o| o.max_hold(secs(30)).renew_every(secs(15))));
        world.pass(secs(16));
        assert!(world.hosts[0].wake_at < world.now(0).monotonic.plus(secs(14)), "due before max_hold is over");
        world.jump(ms(14_500));
        world.tick(0);
        assert!(world.hosts[0].wire.is_empty(), "{:?}", world.hosts[0].wire);
        assert!(world.remaining(0, id) > secs(5), "held all the same");
        assert!(world.hosts[0].wake_at > world.now(0).monotonic, "asleep");
    }
}

#[test]
fn lease_without_renewal_ends_at_its_first_deadline() {
    let mut world = World::new(1);
    world.hold(0, 1, "r", with(|o| o.no_renewal()));
    world.hold(0, 2, "s", options());
    for _ in 0..29 {
        world.pass_cut_off(secs(1));
        for transmit in std::mem::take(&mut world.hosts[0].wire) {
            assert!(transmit.ops.iter().all(|op| op.lock == lock(2)), "not even along with another");
            world.carry(0, &transmit);
        }
    }
    world.take_events(0);
    world.pass(secs(1));
    assert_eq!(loss(&world.take_events(0)), LostReason::Expired);
}

#[test]
fn a_round_of_ten_thousand_renewals_that_is_late_is_still_one_round() {
    let mut world = World::new(1);
    for id in 0..10_000 {
        world.acquire(0, id, &format!("r{id}"), options());
    }
    for transmit in std::mem::take(&mut world.hosts[0].wire) {
        let outcomes = world.perform(&transmit);
        let now = world.now(0);
        world.hosts[0].client.handle_response(transmit.id, Ok(outcomes), now);
    }
    world.drain(0);
    assert_eq!(world.hosts[0].client.stats().held, 10_000);
    world.jump(secs(12));
    world.tick(0);
    let requests: Vec<usize> = world.hosts[0].wire.iter().map(|transmit| transmit.ops.len()).collect();
    assert_eq!(requests, [100; 100]);
}

#[test]
fn a_store_never_shortens_a_lease() {
    let mut world = World::new(1);
    world.hold(0, 1, "r", options());
    let expires = world.record(0, "r").lease.as_ref().unwrap().expires;
    world.pass_until_sent(0);
    let mut transmit = world.take(0);
    let Op::Renew(op) = &mut transmit.ops[0].op else { panic!("a renewal") };
    op.record_ttl = ms(100);
    let outcomes = world.perform(&transmit);
    assert!(matches!(outcomes[..], [Outcome::Applied(_)]));
    assert_eq!(world.record(0, "r").lease.as_ref().unwrap().expires, expires);
}

#[test]
fn validity_never_shrinks_by_a_renewal() {
    let mut world = World::new(1);
    world.hold(0, 1, "r", ttl(secs(3)));
    let mut last = Duration::ZERO;
    for _ in 0..2_000 {
        world.pass(ms(7));
        let deadline = world.time + world.remaining(0, 1);
        assert!(deadline >= last);
        last = deadline;
    }
}

/// Their requests have deadlines of their own, and the embedder was stopped between them.
#[test]
fn a_renewal_that_is_too_late_does_not_travel_with_another() {
    let mut world = World::new(1);
    world.hold(0, 1, "slow", with(|o| o.renew_every(ms(100))));
    world.hold(0, 2, "fast", ttl(ms(600)));
    world.jump(ms(200));
    let (now, fresh) = (world.now(0), world.fresh());
    world.hosts[0].client.handle_timeout(&fresh, now);
    let mut in_time = world.clone();
    in_time.drain(0);
    assert_eq!(in_time.take(0).ops.len(), 2, "they would have travelled together");
    for delay in [ms(100), ms(150)] {
        let mut world = world.clone();
        world.jump(delay);
        world.drain(0);
        let transmit = world.take(0);
        assert!(transmit.deadline > world.now(0).monotonic, "after {delay:?}");
        assert_eq!(transmit.ops.len(), 1, "after {delay:?}");
    }
}
