//! Waiters of one client for one resource: one of them contends, the others queue in order behind it.

use crate::common::*;
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
