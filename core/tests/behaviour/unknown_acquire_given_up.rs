//! An attempt is given up while the outcome of its request is unknown: the record that it may have left is released.

use std::time::Duration;

use crate::common::*;
use leasehold_core::config::{Limits, NodeConfig};
use leasehold_core::op::{Applied, Fault, FaultKind, Op, Outcome, Refusal, TransportFault};
use leasehold_core::{Config, Event, Failure, Wait};

/// An acquire that is given up after this time without an answer; its release is in flight.
fn given_up() -> World {
    let mut world = World::new(2);
    world.acquire(0, 1, "r", with(|o| o.wait(Wait::For(ms(100)))));
    world
}

#[test]
fn unanswered_acquire_is_released_in_the_background() {
    let mut world = given_up();
    let acquire = world.lose_reply(0);
    world.pass_cut_off(ms(500));
    let failure = failure(&world.take_events(0));
    assert!(matches!(&failure, Failure::Unavailable(fault) if fault.kind == FaultKind::Timeout), "{failure:?}");
    assert_eq!(world.hosts[0].client.stats().locks, 0, "the caller has its answer");
    assert_eq!(world.hosts[0].client.stats().orphans, 1);

    let release = world.deliver(0);
    assert_eq!(release.ops[0].op.nonce(), acquire.ops[0].op.nonce());
    assert!(!world.is_held(0, "r"));
    assert_eq!(world.hosts[0].client.stats().orphans, 0, "confirmed, so not repeated");
    assert!(world.hosts[0].client.is_idle());
    assert_eq!(world.take_events(0), [], "nobody is told about the clean-up");
    world.hold(1, 1, "r", once());
}

#[test]
fn a_release_that_finds_nothing_is_repeated_once() {
    let mut world = given_up();
    let late = world.take(0);
    world.pass_cut_off(ms(500));
    world.deliver(0);
    assert_eq!(world.hosts[0].client.stats().orphans, 1, "the request may still be on its way");
    world.perform(&late);
    assert!(world.is_held(0, "r"));
    world.pass_until_sent(0);
    assert_eq!(world.on_the_wire(0), ["release"]);
    world.deliver(0);
    assert!(!world.is_held(0, "r"), "the second release finds the late record");
    assert!(world.hosts[0].client.is_idle());
}

#[test]
fn release_that_finds_nothing_is_repeated_only_once() {
    let mut world = given_up();
    world.take(0);
    world.pass_cut_off(ms(500));
    world.deliver(0);
    world.pass_until_sent(0);
    world.deliver(0);
    assert!(world.hosts[0].client.is_idle());
    assert_eq!(world.hosts[0].wake_at, leasehold_core::Monotonic::FAR);
}

#[test]
fn a_release_without_an_answer_is_sent_again_until_the_record_has_run_out() {
    let mut world = given_up();
    world.lose_reply(0);
    world.pass_cut_off(ms(500));
    let (mut releases, given_up) = (0, world.time);
    while world.hosts[0].client.stats().orphans == 1 {
        for transmit in std::mem::take(&mut world.hosts[0].wire) {
            assert_eq!(kind(&transmit.ops[0].op), "release");
            releases += 1;
        }
        world.pass_cut_off(ms(100));
    }
    assert!((10..60).contains(&releases), "{releases} releases");
    let took = world.time - given_up;
    assert!(took >= secs(30) && took <= secs(30) + ms(100), "by now the record has run out: {took:?}");
    world.hosts[0].wire.clear();
    world.pass_cut_off(secs(60));
    assert_eq!(world.on_the_wire(0), [""; 0]);
}

/// A waiter leaves one such release behind with each try while the store is silent, and records may stand for a day.
#[test]
fn background_releases_slow_down_with_the_record_ttl() {
    let sent_in_an_hour = |length: Duration| {
        let mut world = World::new(1);
        world.acquire(0, 1, "r", with(|o| o.ttl(length)));
        let mut releases = 0;
        for _ in 0..36_000 {
            for transmit in std::mem::take(&mut world.hosts[0].wire) {
                releases += usize::from(kind(&transmit.ops[0].op) == "release");
            }
            world.pass_cut_off(ms(100));
        }
        (releases, world.hosts[0].client.stats().orphans)
    };
    let (short, few) = sent_in_an_hour(secs(60));
    let (long, many) = sent_in_an_hour(secs(24 * 3600));
    assert!(many > 10 * few, "{many} and {few} releases are under way");
    assert!(long < 3 * short, "{long} and {short} were sent");
}

#[test]
fn a_cancelled_acquire_ends_at_once_and_is_cleaned_up() {
    let mut world = World::new(2);
    world.acquire(0, 1, "r", options());
    let acquire = world.take(0);
    let outcomes = world.perform(&acquire);
    world.release(0, 1);
    assert_eq!(world.take_events(0), [Event::Failed { lock: lock(1), failure: Failure::Cancelled }]);
    assert_eq!(world.state(0, 1), None);
    world.answer(0, acquire.id, Ok(outcomes));
    assert_eq!(world.take_events(0), [], "the late grant is nobody's");
    assert_eq!(world.on_the_wire(0), ["release"]);
    world.deliver(0);
    assert!(!world.is_held(0, "r"));
}

/// Two connections keep no order between the acquire and the release behind it.
#[test]
fn an_acquire_that_lands_behind_its_release_is_released_at_once() {
    for answer_comes_first in [true, false] {
        let mut world = World::new(2);
        world.acquire(0, 1, "r", options());
        let acquire = world.take(0);
        world.release(0, 1);
        let release = world.take(0);
        let too_early = world.perform(&release);
        let landed = world.perform(&acquire);
        assert!(world.is_held(0, "r"));
        if answer_comes_first {
            world.answer(0, acquire.id, Ok(landed));
            assert_eq!(world.on_the_wire(0), [""; 0], "one release is under way");
            world.answer(0, release.id, Ok(too_early));
        } else {
            world.answer(0, release.id, Ok(too_early));
            assert_eq!(world.on_the_wire(0), [""; 0], "nothing is known to be there");
            world.answer(0, acquire.id, Ok(landed));
        }
        assert_eq!(world.on_the_wire(0), ["release"], "without any time having passed");
        world.deliver(0);
        assert!(!world.is_held(0, "r"));
        assert!(world.hosts[0].client.is_idle());
    }
}

/// The release finds nothing of ours, and the acquire is known never to land: no second release is needed.
#[test]
fn refused_acquire_ends_its_background_release() {
    for answer_comes_first in [true, false] {
        let mut world = World::new(2);
        world.hold(1, 1, "r", options());
        world.acquire(0, 1, "r", options());
        let acquire = world.take(0);
        world.release(0, 1);
        let release = world.take(0);
        let refused = world.perform(&acquire);
        let not_ours = world.perform(&release);
        let mut answers = [(acquire.id, refused), (release.id, not_ours)];
        if !answer_comes_first {
            answers.reverse();
        }
        for (id, outcomes) in answers {
            assert!(!world.hosts[0].client.is_idle());
            world.answer(0, id, Ok(outcomes));
        }
        assert!(world.hosts[0].client.is_idle(), "without any time having passed");
        assert!(world.is_held(0, "r"), "the other's lock stands");
    }
}

#[test]
fn refusal_of_the_second_send_keeps_the_first_pending() {
    let mut world = World::new(1);
    world.acquire(0, 1, "r", options());
    let late = world.take(0);
    world.pass_cut_off(ms(500));
    let second = world.take(0);
    world.release(0, 1);
    let throttled = Outcome::NotApplied(Refusal::Throttled(Fault::of(FaultKind::Busy)));
    world.answer(0, second.id, Ok(vec![throttled]));
    world.deliver(0);
    assert!(!world.hosts[0].client.is_idle(), "it found nothing, and the first send may be under way");
    world.perform(&late);
    world.pass(secs(1));
    assert!(!world.is_held(0, "r"));
    assert!(world.hosts[0].client.is_idle());
}

#[test]
fn undrained_cancelled_acquire_is_not_sent() {
    let mut world = World::new(1);
    let (now, fresh) = (world.now(0), world.fresh());
    let client = &mut world.hosts[0].client;
    client.acquire(lock(1), resource("r"), options(), &fresh, now).unwrap();
    client.release(lock(1), now).unwrap();
    world.drain(0);
    assert!(!world.on_the_wire(0).contains(&"acquire"), "{:?}", world.on_the_wire(0));
}

#[test]
fn acquire_that_was_not_sent_is_not_released() {
    let mut world = given_up();
    let fault = Fault::new(FaultKind::Unreachable, "connection refused");
    while world.state(0, 1).is_some() {
        while !world.hosts[0].wire.is_empty() {
            let acquire = world.take(0);
            world.answer(0, acquire.id, Err(TransportFault::NotSent(fault.clone())));
            assert_eq!(world.hosts[0].client.stats().orphans, 0);
        }
        world.pass_cut_off(ms(10));
    }
    assert_eq!(failure(&world.take_events(0)), Failure::Unavailable(fault), "the store is down, nobody else holds it");
}

#[test]
fn refusal_covers_its_own_send_only() {
    let mut world = World::new(1);
    world.acquire(0, 1, "r", once());
    let late = world.take(0);
    world.pass_cut_off(ms(500));
    let throttled = Outcome::NotApplied(Refusal::Throttled(Fault::of(FaultKind::Busy)));
    world.answer_with(0, throttled);
    assert!(matches!(failure(&world.take_events(0)), Failure::Throttled(_)));
    world.perform(&late);
    assert_eq!(world.on_the_wire(0), ["release"], "the first send may have landed all the same");
    world.deliver(0);
    assert!(!world.is_held(0, "r"));
}

#[test]
fn when_every_send_was_refused_nothing_is_released() {
    let mut world = World::new(2);
    world.hold(1, 1, "r", options());
    world.acquire(0, 1, "r", once());
    world.deliver_all();
    assert!(matches!(failure(&world.take_events(0)), Failure::Busy { .. }));
    assert!(world.hosts[0].client.is_idle());
    assert!(world.is_held(0, "r"));
}

#[test]
fn at_most_three_sends_make_an_attempt() {
    let mut world = World::new(1);
    world.acquire(0, 1, "r", once());
    let mut sends = 0;
    while world.on_the_wire(0) == ["acquire"] {
        sends += 1;
        world.take(0);
        world.pass_cut_off(ms(500));
    }
    assert_eq!(sends, 3);
    assert_eq!(world.on_the_wire(0), ["release"]);
    assert!(matches!(failure(&world.take_events(0)), Failure::Unavailable(_)));
}

#[test]
fn misfit_answer_does_not_end_the_release() {
    let mut world = given_up();
    world.lose_reply(0);
    world.pass_cut_off(ms(500));
    world.answer_with(0, Outcome::Applied(Applied::Renewed));
    assert_eq!(world.hosts[0].client.stats().orphans, 1);
    world.pass_until_sent(0);
    let release = world.deliver(0);
    assert!(matches!(release.ops[0].op, Op::Release(_)));
    assert!(world.hosts[0].client.is_idle());
}

#[test]
fn background_releases_are_bounded() {
    let config = Config::new(vec![NodeConfig::default()]).unwrap();
    let config = config.with_limits(Limits { orphans: 3, ..Limits::default() }).unwrap();
    let mut world = World::with_config(&config, 1);
    for id in 0..5 {
        world.acquire(0, id, &format!("r{id}"), options());
        world.release(0, id);
    }
    assert_eq!(world.hosts[0].client.stats().orphans, 3, "two records are left to run out");
    assert_eq!(world.take_events(0).len(), 5, "all five callers have their answer");
}
