//! Waiters of one client for one resource: one of them contends, the others queue in order behind it.

use crate::common::*;
use crate::runs::{finish, run};
use leasehold_core::config::{LockOptionsBuilder, RunOptions};
use leasehold_core::op::{Denial, DenialKind, Outcome, Refusal};
use leasehold_core::{Event, Failure, Wait};

fn order_of_grants(events: &[Event]) -> Vec<u64> {
    let grants = events.iter().filter(|event| matches!(event, Event::Acquired { .. }));
    grants.map(|event| event.lock().get()).collect()
}

#[test]
fn waiters_are_served_in_order() {
    let mut world = World::new(1);
    for id in 1..=20 {
        world.acquire(0, id, "r", options());
    }
    for id in 1..=20 {
        world.deliver_all();
        assert_eq!(world.state(0, id), Some("Held"));
        world.release(0, id);
        world.deliver_all();
        world.tick(0);
    }
    assert_eq!(order_of_grants(&world.take_events(0)), (1..=20).collect::<Vec<_>>());
    assert!(world.hosts[0].client.is_idle());
}

#[test]
fn ten_thousand_waiters_cost_one_request_and_one_entry_each() {
    let mut world = World::new(2);
    world.hold(1, 1, "r", options());
    for id in 0..10_000 {
        world.acquire(0, id, "r", options());
    }
    assert_eq!(world.on_the_wire(0), ["acquire"], "one of them contends for all");
    let mut most = 0;
    for _ in 0..600 {
        world.pass_cut_off(ms(100));
        let stats = world.hosts[0].client.stats();
        assert_eq!((stats.locks, stats.held, stats.undrained, stats.orphans), (10_000, 0, 0, 0));
        most = most.max(stats.in_flight);
        world.deliver_all();
    }
    assert_eq!(most, 1, "requests in flight at once");
    assert!(world.hosts[0].events.len() <= 1, "told once that somebody else holds it");

    world.release(1, 1);
    world.pass(secs(3));
    assert_eq!(order_of_grants(&world.take_events(0)), [0]);
    let now = world.now(0);
    world.hosts[0].client.close(now);
    world.drain(0);
    world.deliver_all();
    assert!(world.hosts[0].client.is_idle());
    assert_eq!(world.take_events(0).len(), 10_000, "each one has its answer");
}

#[test]
fn ten_thousand_waits_can_end_in_the_same_instant() {
    let mut world = World::new(1);
    world.hold(0, 0, "r", with(|o| o.no_renewal()));
    for id in 1..=10_000 {
        world.acquire(0, id, "r", with(|o| o.wait(Wait::For(secs(60)))));
    }
    // The machine was suspended: the lease is lost first, and then each next waiter finds that its wait is over.
    world.jump(secs(3600));
    world.tick(0);
    let events = world.take_events(0);
    assert!(matches!(events[0], Event::Lost { .. }), "{:?}", events[0]);
    assert_eq!(events.len(), 10_001);
    assert!(events[1..].iter().all(|event| matches!(event, Event::Failed { failure: Failure::TimedOut { .. }, .. })));
    assert!(world.hosts[0].client.is_idle());
    assert_eq!(world.on_the_wire(0), [""; 0]);
}

#[test]
fn next_waiter_tries_when_the_release_is_answered() {
    let mut world = World::new(1);
    world.hold(0, 1, "r", options());
    world.acquire(0, 2, "r", options());
    world.release(0, 1);
    world.tick(0);
    assert_eq!(world.on_the_wire(0), ["release"], "not before: it would only meet our own record");
    world.deliver(0);
    assert_eq!(world.on_the_wire(0), ["acquire"]);
    world.deliver(0);
    assert_eq!(world.state(0, 2), Some("Held"));
}

#[test]
fn unanswered_release_delays_the_queue_by_one_request() {
    let mut world = World::new(1);
    world.hold(0, 1, "r", options());
    world.acquire(0, 2, "r", options());
    world.release(0, 1);
    world.take(0);
    world.pass_cut_off(ms(500));
    assert!(world.on_the_wire(0).contains(&"acquire"), "{:?}", world.on_the_wire(0));
    world.pass(secs(3));
    assert_eq!(world.state(0, 2), Some("Held"));
}

#[test]
fn next_waiter_tries_after_a_loss() {
    let mut world = World::new(1);
    world.hold(0, 1, "r", with(|o| o.no_renewal()));
    world.acquire(0, 2, "r", options());
    world.pass(secs(31));
    assert_eq!(world.state(0, 1), None);
    assert_eq!(world.state(0, 2), Some("Held"));
}

#[test]
fn try_once_behind_a_lease_fails_with_the_holder() {
    let mut world = World::new(1);
    let token = world.hold(0, 1, "r", with(|o| o.owner("me")));
    world.acquire(0, 2, "r", once());
    let Failure::Busy { holding: Some(holding) } = failure(&world.take_events(0)) else { panic!("busy") };
    assert_eq!(holding.owner.unwrap().as_str(), "me");
    assert_eq!(holding.counter, Some(token));
    assert_eq!(holding.left, Some(world.remaining(0, 1)));
    assert_eq!(world.on_the_wire(0), [""; 0], "the store need not be asked");
    assert_eq!(world.state(0, 2), None);
}

#[test]
fn try_once_behind_a_release_waits_for_its_answer() {
    let mut world = World::new(1);
    let first = world.hold(0, 1, "r", options());
    world.release(0, 1);
    world.acquire(0, 2, "r", once());
    assert_eq!(world.take_events(0), []);
    world.deliver_all();
    assert!(token(&world.take_events(0)) > first);
}

#[test]
fn try_once_never_waits_for_another_lease() {
    let mut world = World::new(1);
    world.hold(0, 1, "r", options());
    world.acquire(0, 2, "r", options());
    world.release(0, 1);
    // Another waiter is first in the queue behind the release, and may hold the lock for hours.
    world.acquire(0, 3, "r", once());
    world.deliver_all();
    assert_eq!(world.state(0, 2), Some("Held"));
    assert_eq!(world.state(0, 3), None);
    assert!(matches!(failure(&world.take_events(0)), Failure::Busy { .. }));
}

#[test]
fn wait_that_ends_in_the_queue_fails_with_the_holder() {
    let mut world = World::new(1);
    world.hold(0, 1, "r", with(|o| o.owner("me")));
    world.acquire(0, 2, "r", with(|o| o.wait(Wait::For(ms(700)))));
    world.pass(ms(699));
    assert_eq!(world.state(0, 2), Some("Idle"));
    world.pass(ms(1));
    let Failure::TimedOut { holding: Some(holding) } = failure(&world.take_events(0)) else { panic!("timed out") };
    assert_eq!(holding.owner.unwrap().as_str(), "me");
}

#[test]
fn queues_of_different_resources_are_independent() {
    let mut world = World::new(1);
    world.hold(0, 1, "r", options());
    world.acquire(0, 2, "r", options());
    world.hold(0, 3, "s", options());
    assert_eq!(world.state(0, 2), Some("Idle"));
}

#[test]
fn second_waiter_tries_when_the_first_is_refused() {
    let mut world = World::new(2);
    world.hold(1, 1, "r", options());
    world.acquire(0, 1, "r", with(|o| o.wait(Wait::For(secs(1)))));
    world.acquire(0, 2, "r", options());
    world.pass(secs(3));
    assert!(matches!(failure(&world.take_events(0)), Failure::TimedOut { .. }));
    world.release(1, 1);
    world.pass(secs(3));
    assert_eq!(order_of_grants(&world.take_events(0)), [2]);
}

#[test]
fn queue_keeps_its_order_when_many_leave() {
    let mut world = World::new(1);
    world.hold(0, 0, "r", options());
    for id in 1..=1_000 {
        world.acquire(0, id, "r", options());
    }
    for id in (1..=1_000).filter(|id| id % 100 != 0) {
        world.release(0, id);
    }
    world.take_events(0);
    for id in (0..1_000).step_by(100) {
        world.release(0, id);
        world.deliver_all();
        world.tick(0);
        world.deliver_all();
        assert_eq!(world.state(0, id + 100), Some("Held"), "{id} is followed by the next who stayed");
    }
}

/// A run that asks once.
fn ask_once(world: &mut World, id: u64) {
    world.acquire(0, id, "r@day", with(|options| options.wait(Wait::Once).run(RunOptions::default())));
}

/// The work is done, by another client.
fn with_done_work() -> World {
    let mut world = World::new(2);
    world.hold(1, 100, "r@day", run());
    finish(&mut world, 1, 100);
    world.deliver_all();
    world
}

fn is_done(events: &[Event]) -> usize {
    events.iter().filter(|event| matches!(event, Event::Failed { failure: Failure::Done(_), .. })).count()
}

#[test]
fn those_who_ask_about_finished_work_at_once_get_one_answer() {
    let mut world = with_done_work();
    for id in 1..=64 {
        ask_once(&mut world, id);
    }
    assert_eq!(world.on_the_wire(0), ["acquire"]);
    assert_eq!(world.take_events(0), []);
    world.deliver(0);
    assert_eq!(is_done(&world.take_events(0)), 1, "the others may have come after the store had answered");
    assert_eq!(world.on_the_wire(0), ["acquire"], "one asks for all of them");
    ask_once(&mut world, 65);
    world.deliver(0);
    assert_eq!(is_done(&world.take_events(0)), 63);
    world.deliver_all();
    assert_eq!(is_done(&world.take_events(0)), 1);
    assert!(world.hosts[0].client.is_idle());
}

#[test]
fn one_of_those_who_ask_at_once_gets_the_work_and_the_others_its_name() {
    let mut world = World::new(1);
    for id in 1..=3 {
        ask_once(&mut world, id);
    }
    world.deliver_all();
    let events = world.take_events(0);
    assert_eq!(order_of_grants(&events), [1]);
    let shown = |event: &&Event| matches!(event, Event::Failed { failure: Failure::Busy { holding: Some(holding) }, .. } if holding.counter.is_some());
    assert_eq!(events.iter().filter(shown).count(), 2, "{events:?}");
}

#[test]
fn when_one_of_those_who_ask_gives_up_the_next_one_asks() {
    let mut world = with_done_work();
    for id in 1..=3 {
        ask_once(&mut world, id);
    }
    world.release(0, 1);
    world.release(0, 3);
    world.deliver_all();
    world.tick(0);
    world.deliver_all();
    let events = world.take_events(0);
    assert_eq!(is_done(&events), 1, "{events:?}");
    assert!(has(
        &events,
        |event| matches!(event, Event::Failed { failure: Failure::Done(_), .. } if event.lock() == lock(2))
    ));
}

#[test]
fn only_those_who_ask_once_about_a_run_join_one_another() {
    let other =
        || with(|options| options.wait(Wait::Once).run(RunOptions { even_if_done: true, ..RunOptions::default() }));
    // It does not answer before it knows whether the holder lives.
    let watches = || with(|options| options.wait(Wait::Watch(secs(0))).run(RunOptions::default()));
    for (options, name) in
        [(once(), "a lock"), (other(), "another question"), (run(), "a waiter"), (watches(), "a watcher")]
    {
        let mut world = World::new(1);
        world.acquire(0, 1, "r@day", options);
        ask_once(&mut world, 2);
        assert!(matches!(failure(&world.take_events(0)), Failure::Busy { .. }), "{name}");
    }
    // Nor behind somebody who waits.
    let mut world = World::new(1);
    ask_once(&mut world, 1);
    world.acquire(0, 2, "r@day", run());
    ask_once(&mut world, 3);
    assert!(matches!(failure(&world.take_events(0)), Failure::Busy { .. }));
}

#[test]
fn those_who_ask_while_the_work_is_being_finished_here_learn_that_it_is_done() {
    let mut world = World::new(1);
    world.hold(0, 1, "r@day", run());
    finish(&mut world, 0, 1);
    for id in 2..=5 {
        ask_once(&mut world, id);
    }
    assert_eq!(world.take_events(0), []);
    world.deliver_all();
    world.tick(0);
    world.deliver_all();
    assert_eq!(is_done(&world.take_events(0)), 4);
    assert!(world.hosts[0].client.is_idle());
}

#[test]
fn a_failure_of_one_who_asks_is_that_of_others_only_if_it_cannot_be_its_own() {
    let denied = || Outcome::NotApplied(Refusal::Denied(Denial::new(DenialKind::Other, "no such label")));
    let mut world = World::new(1);
    for id in 1..=3 {
        ask_once(&mut world, id);
    }
    for asked in 1..=3 {
        world.answer_with(0, denied());
        assert_eq!(world.take_events(0).len(), 1, "each one asks by itself: {asked}");
    }
    // A short ttl may be too short for this store.
    let mut world = World::new(1);
    ask_once(&mut world, 1);
    let short = |options: LockOptionsBuilder| options.ttl(secs(1)).wait(Wait::Once).run(RunOptions::default());
    world.acquire(0, 2, "r@day", with(short));
    world.acquire(0, 3, "r@day", with(short));
    ask_once(&mut world, 4);
    let failed = |world: &mut World| world.take_events(0).iter().map(|event| event.lock().get()).collect::<Vec<_>>();
    let mut rounds = Vec::new();
    for _ in 0..60 {
        world.pass_cut_off(ms(100));
        rounds.extend(Some(failed(&mut world)).filter(|round| !round.is_empty()));
    }
    assert_eq!(rounds, [vec![1], vec![2, 3], vec![4]]);
}

#[test]
fn a_store_that_does_not_answer_keeps_those_who_join_for_two_tries_at_most() {
    let mut world = World::new(1);
    for id in 1..=64 {
        ask_once(&mut world, id);
    }
    let most = secs(6);
    world.pass_cut_off(most);
    let events = world.take_events(0);
    assert_eq!(events.len(), 64);
    assert!(events.iter().all(|event| matches!(event, Event::Failed { failure: Failure::Unavailable(_), .. })));
}
