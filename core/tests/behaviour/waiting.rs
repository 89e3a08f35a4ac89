//! Sleeping between tries: never spinning, never past the poll timer, ended by wake-ups, and with the right reason at the
//! end.

use std::time::Duration;

use crate::common::*;
use leasehold_core::config::NodeConfig;
use leasehold_core::op::{
    Applied, Denial, DenialKind, Fault, FaultKind, Holder, Holding, Outcome, Refusal, Seen, TransportFault,
};
use leasehold_core::queue::Reserved;
use leasehold_core::{Event, Failure, Monotonic, NodeId, Output, Wait};

/// A contender whose every try meets `answer`; the pauses between the tries.
fn pauses(world: &mut World, tries: usize, answer: impl Fn() -> Outcome) -> Vec<Duration> {
    let mut pauses = Vec::new();
    for _ in 0..tries {
        world.answer_with(0, answer());
        let before = world.time;
        world.pass_until_sent(0);
        pauses.push(world.time - before);
    }
    pauses
}

fn busy(left: Option<Duration>) -> Outcome {
    conflict(Some(Holding { left, ..holding(other_nonce(), Some(1)) }))
}

fn throttled() -> Outcome {
    Outcome::NotApplied(Refusal::Throttled(Fault::new(FaultKind::Busy, "slow down")))
}

#[test]
fn sleep_grows_to_two_seconds_and_is_never_zero() {
    let mut world = World::new(1);
    world.acquire(0, 1, "r", options());
    let pauses = pauses(&mut world, 200, || busy(Some(secs(3600))));
    for (n, pause) in pauses.iter().enumerate() {
        let most = (ms(50) * (1 << n.min(10))).min(secs(2));
        assert!(*pause >= ms(5) && *pause <= most, "pause {n} is {pause:?}, at most {most:?}");
    }
    let late = &pauses[10..];
    assert!(late.iter().any(|pause| *pause < ms(700)) && late.iter().any(|pause| *pause > ms(1300)), "full jitter");
    let mean = late.iter().sum::<Duration>() / u32::try_from(late.len()).unwrap();
    assert!((ms(850)..ms(1150)).contains(&mean), "uniform up to the cap: {mean:?} on average");
}

#[test]
fn a_waiter_with_a_place_in_line_asks_less_often() {
    let placed = |answer: fn() -> Outcome| {
        let mut world = World::new(1);
        world.acquire(0, 1, "r", options());
        world.hosts[0].client.placed(lock(1), None);
        pauses(&mut world, 1, answer)[0]
    };
    let told = placed(|| busy(Some(secs(3600))));
    assert!((ms(1_500)..=secs(2)).contains(&told), "it is told of its turn: {told:?}");
    let ends = placed(|| busy(Some(ms(40))));
    assert!(ends <= ms(40) + ms(500) / 8, "the record runs out before that: {ends:?}");
    let foreign = placed(|| conflict(Some(Holding { holder: Holder::Foreign, ..holding(other_nonce(), Some(1)) })));
    assert!(foreign <= ms(50), "a foreign holder tells nobody: {foreign:?}");
    let reserved = placed(|| conflict(None));
    assert!(reserved <= ms(50), "a reservation does not stand for long: {reserved:?}");
}

#[test]
fn a_waiter_comes_back_when_the_reservation_of_another_ends() {
    let pause = |reserved| {
        let mut world = World::new(1);
        world.acquire(0, 1, "r", options());
        world.hosts[0].client.placed(lock(1), Some(reserved));
        pauses(&mut world, 1, || conflict(None))[0]
    };
    let (first, sixth) = (Reserved { left: ms(480), place: 1 }, Reserved { left: ms(480), place: 6 });
    assert!((ms(481)..=ms(500)).contains(&pause(first)), "{:?}", pause(first));
    assert!((ms(481)..=ms(550)).contains(&pause(sixth)), "{:?}", pause(sixth));
    assert!((ms(481)..=ms(580)).contains(&pause(Reserved { left: ms(480), place: 10_000 })), "no place adds up");
    assert_eq!(pause(Reserved { left: secs(5), place: 1 }), secs(2), "and polls as ever");
}

#[test]
fn a_place_in_line_lasts_for_one_answer() {
    let mut world = World::new(1);
    world.acquire(0, 1, "r", options());
    world.hosts[0].client.placed(lock(1), None);
    let pauses = pauses(&mut world, 2, || busy(Some(secs(3600))));
    assert!(pauses[0] >= ms(1_500) && pauses[1] <= ms(100), "the second answer gave none: {pauses:?}");
}

#[test]
fn throttling_has_a_slower_backoff() {
    let mut world = World::new(1);
    world.acquire(0, 1, "r", options());
    let pauses = pauses(&mut world, 100, throttled);
    for (n, pause) in pauses.iter().enumerate() {
        let most = (ms(200) * (1 << n.min(10))).min(secs(20));
        assert!(*pause >= ms(20) && *pause <= most, "pause {n} is {pause:?}");
    }
    assert!(pauses.iter().any(|pause| *pause > secs(10)));
}

#[test]
fn different_seeds_give_different_sleeps() {
    let of = |rate| {
        let mut world = World::new(2);
        world.hosts.swap(0, rate);
        world.acquire(0, 1, "r", options());
        pauses(&mut world, 5, || busy(Some(secs(3600))))
    };
    assert_ne!(of(0), of(1));
    assert_eq!(of(1), of(1), "and the same seed sleeps the same");
}

#[test]
fn time_left_on_the_record_caps_the_sleep() {
    let mut world = World::new(1);
    world.acquire(0, 1, "r", options());
    // The sleeps are long by now.
    pauses(&mut world, 10, || busy(Some(secs(3600))));
    for pause in pauses(&mut world, 50, || busy(Some(ms(40)))) {
        assert!(pause >= ms(5) && pause <= ms(40) + ms(500) / 8, "{pause:?}");
    }
}

#[test]
fn overdue_record_causes_no_spinning() {
    for (left, least) in [(Duration::ZERO, secs(100)), (Duration::from_nanos(1), secs(1))] {
        let mut world = World::new(1);
        world.acquire(0, 1, "r", ttl(ms(100)));
        let total: Duration = pauses(&mut world, 200, || busy(Some(left))).iter().sum();
        assert!(total >= least, "200 tries in {total:?} at a record with {left:?} left");
    }
}

#[test]
fn finished_observation_causes_no_spinning() {
    // The store shows a version that does not change, and refuses every takeover.
    for world in [World::new(1), World::reading(1)] {
        let mut world = world;
        world.acquire(0, 1, "r", ttl(ms(100)));
        let (mut tries, began) = (0, world.time);
        while world.time < began + secs(600) {
            let transmit = world.take(0);
            tries += 1;
            assert!(tries < 1_200, "{tries} tries in {:?}", world.time - began);
            let shown = Holding { left: None, ..holding(other_nonce(), Some(1)) };
            let outcome = if kind(&transmit.ops[0].op) == "read" {
                let seen = leasehold_core::op::Seen { holding: Some(Box::new(shown)), done: None };
                Outcome::Applied(leasehold_core::op::Applied::Read(seen))
            } else {
                conflict(Some(shown))
            };
            world.answer(0, transmit.id, Ok(vec![outcome]));
            world.pass_until_sent(0);
        }
    }
}

#[test]
fn a_wake_up_ends_the_sleep_at_once() {
    for world in [World::new(2), World::reading(2)] {
        let mut world = world;
        world.hold(1, 1, "r", options());
        world.acquire(0, 1, "r", options());
        world.pass(secs(10));
        world.release(1, 1);
        world.deliver(1);
        world.notify(0, "r");
        assert_eq!(world.on_the_wire(0), ["acquire"]);
        world.deliver(0);
        assert_eq!(world.state(0, 1), Some("Held"));
    }
}

#[test]
fn wake_up_may_be_wrong_or_missing() {
    let mut world = World::new(2);
    world.hold(1, 1, "r", options());
    world.acquire(0, 1, "r", options());
    world.pass(secs(10));
    world.notify(0, "r");
    world.deliver_all();
    assert_eq!(world.state(0, 1), Some("Waiting"), "spurious: somebody still holds it");
    world.notify(0, "nobody waits for this");
    world.release(1, 1);
    world.deliver(1);
    // This time the wake-up is lost; the poll timer runs all the same.
    world.pass(secs(2));
    assert_eq!(world.state(0, 1), Some("Held"));
}

#[test]
fn the_waiter_subscribes_once_and_tries_again_before_it_sleeps() {
    let mut world = World::of(vec![NodeConfig { watch: true, ..NodeConfig::default() }], 2);
    world.hold(1, 1, "r", options());
    world.acquire(0, 1, "r", options());
    assert_eq!(world.hosts[0].others, [], "a free lock needs no subscription");
    world.deliver_all();
    let (node, name) = (NodeId::new(0), resource("r"));
    assert_eq!(world.hosts[0].others, [Output::Subscribe { node, resource: name.clone() }]);

    // Released between the refused try and the subscription: without another try it would sleep through it.
    world.release(1, 1);
    world.deliver(1);
    let now = world.now(0);
    world.hosts[0].client.subscribed(node, &name, now);
    world.tick(0);
    world.deliver_all();
    assert_eq!(world.state(0, 1), Some("Held"));

    world.hosts[0].others.clear();
    world.acquire(0, 2, "r", options());
    world.release(0, 1);
    world.deliver_all();
    assert_eq!(world.state(0, 2), Some("Held"));
    assert_eq!(world.hosts[0].others, [], "the queue stays subscribed with a new head");
    world.release(0, 2);
    world.deliver_all();
    assert_eq!(world.hosts[0].others, [Output::Unsubscribe { node, resource: name }]);
}

#[test]
fn the_wait_is_over_on_time() {
    let mut world = World::new(2);
    world.hold(1, 1, "r", with(|o| o.owner("other")));
    world.acquire(0, 1, "r", with(|o| o.wait(Wait::For(secs(10)))));
    world.pass(secs(10) - ms(1));
    assert!(world.state(0, 1).is_some());
    world.pass(ms(1));
    let Failure::TimedOut { holding: Some(holding) } = failure(&world.take_events(0)) else { panic!("timed out") };
    assert_eq!(holding.owner.unwrap().as_str(), "other");
    assert!(world.hosts[0].client.is_idle());
}

#[test]
fn an_attempt_in_flight_when_the_wait_ends_is_still_awaited() {
    let mut world = World::new(1);
    world.acquire(0, 1, "r", with(|o| o.wait(Wait::For(ms(100)))));
    world.pass_cut_off(ms(200));
    assert_eq!(world.state(0, 1), Some("Acquiring"));
    world.deliver(0);
    assert_eq!(world.state(0, 1), Some("Held"));
}

#[test]
fn wait_of_zero_tries_once() {
    for wait in [Wait::Once, Wait::For(Duration::ZERO)] {
        let mut world = World::new(2);
        world.hold(0, 1, "free", with(|o| o.wait(wait)));
        world.hold(1, 1, "r", options());
        world.acquire(0, 2, "r", with(|o| o.wait(wait)));
        world.deliver_all();
        let failure = failure(&world.take_events(0));
        assert!(matches!(failure, Failure::Busy { holding: Some(_) }), "{wait:?}: {failure:?}");
    }
}

#[test]
fn wait_without_limit_goes_on_for_days() {
    let mut world = World::new(2);
    world.hold(1, 1, "r", options());
    world.acquire(0, 1, "r", with(|o| o.wait(Wait::For(Duration::MAX))));
    world.acquire(0, 2, "r", options());
    world.pass(secs(86_400));
    assert_eq!(world.state(0, 1), Some("Waiting"));
    assert_eq!(world.state(0, 2), Some("Idle"));
    assert_eq!(world.take_events(0).len(), 1, "contended, told once");
}

#[test]
fn store_that_is_down_fails_as_unavailable() {
    let mut world = World::new(1);
    world.acquire(0, 1, "r", with(|o| o.wait(Wait::For(secs(5)))));
    let fault = Fault::new(FaultKind::Unreachable, "connection refused");
    while world.state(0, 1).is_some() {
        while !world.hosts[0].wire.is_empty() {
            let transmit = world.take(0);
            world.answer(0, transmit.id, Err(TransportFault::NotSent(fault.clone())));
        }
        world.pass_cut_off(ms(1));
    }
    assert_eq!(failure(&world.take_events(0)), Failure::Unavailable(fault));
}

#[test]
fn failure_reports_the_last_block_reason() {
    let denial = Denial::new(DenialKind::Permission, "look at the role's trust policy");
    let fault = Fault::new(FaultKind::Server, "down");
    for (outcome, expected) in [
        (throttled(), Failure::Throttled(Fault::new(FaultKind::Busy, "slow down"))),
        (Outcome::NotApplied(Refusal::Unavailable(fault.clone())), Failure::Unavailable(fault.clone())),
        (Outcome::NotApplied(Refusal::NeedsCredentials(fault.clone())), Failure::Unavailable(fault)),
        (Outcome::NotApplied(Refusal::Abstains { stamp: None }), Failure::Abstains { left: secs(0) }),
        (Outcome::NotApplied(Refusal::Denied(denial.clone())), Failure::Refused(denial)),
        (conflict(None), Failure::Busy { holding: None }),
    ] {
        let mut world = World::new(1);
        world.acquire(0, 1, "r", once());
        world.answer_with(0, outcome);
        assert_eq!(failure(&world.take_events(0)), expected);
    }
}

#[test]
fn denial_ends_an_unlimited_wait() {
    for world in [World::new(1), World::reading(1)] {
        let mut world = world;
        world.acquire(0, 1, "r", options());
        world.answer_with(0, busy(Some(secs(20))));
        world.pass_until_sent(0);
        let denial = Denial::new(DenialKind::Schema, "no such table");
        world.answer_with(0, Outcome::NotApplied(Refusal::Denied(denial.clone())));
        assert_eq!(failure(&world.take_events(0)), Failure::Refused(denial));
        assert!(world.hosts[0].client.is_idle());
    }
}

#[test]
fn store_with_cheap_reads_is_read_before_writing() {
    let mut world = World::reading(2);
    world.hold(1, 1, "r", options());
    world.acquire(0, 1, "r", options());
    assert_eq!(world.on_the_wire(0), ["acquire"], "the first try is a write: most locks are free");
    world.deliver(0);
    for _ in 0..5 {
        world.pass_until_sent(0);
        assert_eq!(world.on_the_wire(0), ["read"]);
        world.deliver(0);
    }
    world.release(1, 1);
    world.deliver(1);
    world.pass_until_sent(0);
    let looked = world.time;
    world.deliver(0);
    assert_eq!((world.on_the_wire(0), world.time), (vec!["acquire"], looked), "free: at once, without a sleep");
    world.deliver(0);
    assert_eq!(world.state(0, 1), Some("Held"));
}

#[test]
fn expired_record_is_not_read_again() {
    let mut world = World::reading(1);
    world.acquire(0, 1, "r", options());
    world.answer_with(0, busy(Some(secs(3600))));
    world.pass_until_sent(0);
    assert_eq!(world.on_the_wire(0), ["read"]);
    let seen =
        Seen { holding: Some(Box::new(Holding { left: Some(ms(0)), ..holding(other_nonce(), Some(1)) })), done: None };
    world.answer_with(0, Outcome::Applied(Applied::Read(seen)));
    assert_eq!(world.on_the_wire(0), ["acquire"]);
}

#[test]
fn wait_fails_without_holder_after_a_release() {
    let mut world = World::new(1);
    world.acquire(0, 1, "r", once());
    let left = Holding { released: true, ..holding(other_nonce(), Some(1)) };
    world.answer_with(0, conflict(Some(left)));
    assert_eq!(world.take_events(0), [Event::Failed { lock: lock(1), failure: Failure::Busy { holding: None } }]);
}

#[test]
fn look_that_shows_a_free_lock_resets_the_backoff() {
    let mut world = World::reading(1);
    world.acquire(0, 1, "r", options());
    world.answer_with(0, busy(Some(secs(3600))));
    let held = || Seen {
        holding: Some(Box::new(Holding { left: Some(secs(3600)), ..holding(other_nonce(), Some(1)) })),
        done: None,
    };
    for _ in 0..9 {
        world.pass_until_sent(0);
        world.answer_with(0, Outcome::Applied(Applied::Read(held())));
    }
    world.pass_until_sent(0);
    world.answer_with(0, Outcome::Applied(Applied::Read(Seen::default())));
    assert_eq!(world.on_the_wire(0), ["acquire"]);
    world.answer_with(0, busy(Some(secs(3600))));
    let before = world.time;
    world.pass_until_sent(0);
    assert!(world.time - before <= ms(50), "{:?}", world.time - before);
}

#[test]
fn wait_fails_without_holder_if_none_was_seen() {
    let mut world = World::new(1);
    world.acquire(0, 1, "r", with(|o| o.wait(Wait::For(secs(1)))));
    while world.state(0, 1).is_some() {
        if world.hosts[0].wire.is_empty() {
            world.pass_cut_off(ms(10));
        } else {
            world.answer_with(0, conflict(None));
        }
    }
    assert_eq!(failure(&world.take_events(0)), Failure::TimedOut { holding: None });
}

#[test]
fn failed_look_is_followed_by_a_sleep() {
    let mut world = World::reading(1);
    world.acquire(0, 1, "r", options());
    world.answer_with(0, busy(Some(secs(3600))));
    for _ in 0..3 {
        world.pass_until_sent(0);
        assert_eq!(world.on_the_wire(0), ["read"]);
        let read = world.take(0);
        world.answer(0, read.id, Err(timeout()));
        assert_eq!(world.on_the_wire(0), [""; 0], "it sleeps before it looks again");
    }
}

#[test]
fn answer_to_an_overtaken_look_is_ignored() {
    let mut world = World::reading(1);
    world.acquire(0, 1, "r", options());
    world.answer_with(0, busy(Some(secs(3600))));
    world.pass_until_sent(0);
    let read = world.take(0);
    world.notify(0, "r");
    assert_eq!(world.on_the_wire(0), ["acquire"]);
    let outcomes = world.perform(&read);
    world.answer(0, read.id, Ok(outcomes));
    world.pass_cut_off(ms(200));
    assert_eq!((world.state(0, 1), world.on_the_wire(0)), (Some("Acquiring"), vec!["acquire"]), "not sent again");
    world.deliver(0);
    assert_eq!(world.state(0, 1), Some("Held"));
}

#[test]
fn fresh_credentials_are_asked_for_once_and_end_the_sleep() {
    let mut world = World::new(1);
    world.acquire(0, 1, "r", options());
    world.acquire(0, 2, "s", options());
    let expired = || Outcome::NotApplied(Refusal::NeedsCredentials(Fault::new(FaultKind::Server, "token expired")));
    world.answer_with(0, expired());
    world.answer_with(0, expired());
    let node = NodeId::new(0);
    assert_eq!(world.hosts[0].others, [Output::NeedCredentials { node }]);
    let now = world.now(0);
    world.hosts[0].client.credentials_renewed(node, now);
    world.tick(0);
    assert_eq!(world.on_the_wire(0), ["acquire", "acquire"]);
    world.deliver_all();
    assert!(world.take_events(0).iter().all(|event| matches!(event, Event::Acquired { .. })));
}

#[test]
fn a_drained_client_sleeps_until_its_next_timer() {
    let mut world = World::new(1);
    let now = world.now(0);
    assert_eq!(world.hosts[0].client.poll_output(now), Output::WakeAt(Monotonic::FAR));
    world.acquire(0, 1, "r", options());
    assert_eq!(world.hosts[0].wake_at, world.now(0).monotonic.plus(ms(500)), "the deadline of its one request");
}

#[test]
fn a_wake_up_during_an_attempt_leads_to_another_one_at_once() {
    let mut world = World::new(1);
    world.acquire(0, 1, "r", options());
    // The store has refused, the holder has released and said so, and only then does the refusal arrive.
    world.notify(0, "r");
    world.answer_with(0, busy(Some(secs(20))));
    let before = world.time;
    world.pass_until_sent(0);
    assert_eq!(world.time, before, "no sleep in between");
    // The wake-up was used once.
    world.answer_with(0, busy(Some(secs(20))));
    world.pass_until_sent(0);
    assert!(world.time > before);
}

/// A store that carries out attempts but loses its answers sends a wake-up for the release of each of them. That would keep
/// its waiters running forever.
#[test]
fn wake_up_from_a_failing_store_is_ignored() {
    let fault = || Fault::of(FaultKind::Server);
    let refusals = [
        Outcome::NotApplied(Refusal::Throttled(fault())),
        Outcome::NotApplied(Refusal::Unavailable(fault())),
        Outcome::NotApplied(Refusal::Abstains { stamp: None }),
    ];
    for refusal in refusals {
        let mut world = World::new(1);
        world.acquire(0, 1, "r", options());
        world.notify(0, "r");
        world.answer_with(0, refusal.clone());
        world.tick(0);
        assert_eq!(world.on_the_wire(0), [""; 0], "one that came during the attempt, after {refusal:?}");
        world.notify(0, "r");
        assert_eq!(world.on_the_wire(0), [""; 0], "one that came during the sleep, after {refusal:?}");
        world.pass_until_sent(0);
        world.answer_with(0, busy(Some(secs(20))));
        world.notify(0, "r");
        assert_eq!(world.on_the_wire(0), ["acquire"], "somebody else holds it now");
    }
}

#[test]
fn refused_fresh_credentials_wait_for_the_backoff() {
    let mut world = World::new(1);
    world.acquire(0, 1, "r", options());
    let node = NodeId::new(0);
    let renew = |world: &mut World| {
        world.answer_with(0, Outcome::NotApplied(Refusal::NeedsCredentials(Fault::of(FaultKind::Server))));
        let now = world.now(0);
        world.hosts[0].client.credentials_renewed(node, now);
        world.tick(0);
        world.on_the_wire(0)
    };
    assert_eq!(renew(&mut world), ["acquire"]);
    assert_eq!(renew(&mut world), [""; 0]);
    assert_eq!(world.hosts[0].others.len(), 2, "they are asked for each time");
    world.pass_until_sent(0);
    world.answer_with(0, busy(Some(secs(20))));
    world.pass_until_sent(0);
    assert_eq!(renew(&mut world), ["acquire"], "others had been good in between");
}

#[test]
fn wake_up_keeps_the_try_for_fresh_credentials() {
    let mut world = World::new(1);
    world.acquire(0, 1, "r", options());
    world.notify(0, "r");
    world.answer_with(0, Outcome::NotApplied(Refusal::NeedsCredentials(Fault::of(FaultKind::Server))));
    world.notify(0, "r");
    assert_eq!(world.on_the_wire(0), [""; 0], "the old ones would be refused again");
    let now = world.now(0);
    world.hosts[0].client.credentials_renewed(NodeId::new(0), now);
    world.tick(0);
    assert_eq!(world.on_the_wire(0), ["acquire"]);
}
