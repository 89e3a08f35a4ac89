//! Revoked leases: the holder is told with its next renewal, and frees the record once its work has ended.

use leasehold_core::op::{Applied, Op, Outcome, Refusal, Revoke};
use leasehold_core::{Event, LostReason, Seq};

use crate::common::*;

fn revoked() -> Outcome {
    Outcome::Applied(Applied::Revoked)
}

#[test]
fn holder_is_told_with_its_next_renewal_and_frees_the_record_once_its_work_has_ended() {
    let mut world = World::new(2);
    let first = world.hold(0, 1, "r", options());
    assert_eq!(world.revoke_at(0, "r"), revoked());
    assert_eq!(world.take_events(0), [], "nobody has told it");
    world.pass(secs(10));
    assert_eq!(loss(&world.take_events(0)), LostReason::Revoked);
    assert_eq!(world.remaining(0, 1), secs(0));
    assert!(world.is_held(0, "r"), "the work may still run");

    world.acquire(1, 2, "r", options());
    world.pass(secs(5));
    assert!(!has(&world.take_events(1), |event| matches!(event, Event::Acquired { .. })));
    world.release(0, 1);
    assert_eq!(world.on_the_wire(0), ["release"]);
    world.deliver(0);
    assert!(!world.is_held(0, "r"));
    assert_eq!(world.take_events(0), [], "its end was told before");
    world.pass(secs(10));
    assert!(token(&world.take_events(1)) > first);
}

#[test]
fn record_of_a_holder_that_does_not_listen_runs_out_when_it_would_have() {
    let mut world = World::new(2);
    world.hold(0, 1, "r", options());
    world.jump(secs(20));
    assert_eq!(world.revoke_at(0, "r"), revoked());
    world.jump(secs(10) - ms(1));
    assert!(world.is_held(0, "r"));
    world.jump(ms(1));
    assert!(!world.is_held(0, "r"));
    world.hold(1, 2, "r", options());
}

#[test]
fn machine_of_a_holder_that_never_releases_ends_by_itself() {
    let mut world = World::new(1);
    world.hold(0, 1, "r", options());
    world.revoke_at(0, "r");
    world.pass(secs(10));
    assert_eq!(loss(&world.take_events(0)), LostReason::Revoked);
    assert_eq!(world.state(0, 1), Some("Revoked"));
    world.pass(secs(60));
    assert_eq!((world.state(0, 1), world.take_events(0)), (None, Vec::new()));
    world.hold(0, 2, "r", options());
}

#[test]
fn release_before_the_holder_was_told_frees_a_revoked_record() {
    let mut world = World::new(1);
    world.hold(0, 1, "r", options());
    world.revoke_at(0, "r");
    world.release(0, 1);
    world.deliver(0);
    assert_eq!(world.take_events(0), [Event::Released { lock: lock(1), confirmed: true }]);
    assert!(!world.is_held(0, "r"));
}

#[test]
fn renewal_that_was_overtaken_by_the_revoke_is_refused() {
    let mut world = World::new(1);
    world.hold(0, 1, "r", options());
    world.pass_until_sent(0);
    world.revoke_at(0, "r");
    world.deliver(0);
    assert_eq!(loss(&world.take_events(0)), LostReason::Revoked);
}

#[test]
fn renewal_whose_reply_was_lost_does_not_hide_the_revoke() {
    let mut world = World::new(1);
    world.hold(0, 1, "r", options());
    world.pass_until_sent(0);
    world.lose_reply(0);
    world.revoke_at(0, "r");
    world.pass_until_sent(0);
    world.deliver(0);
    assert_eq!(loss(&world.take_events(0)), LostReason::Revoked);
}

#[test]
fn revoke_leaves_all_but_the_renewals() {
    let mut world = World::new(1);
    world.hold(0, 1, "r", options());
    let before = world.record(0, "r").clone();
    world.jump(secs(5));
    assert_eq!(world.revoke_at(0, "r"), revoked());
    assert_eq!(world.revoke_at(0, "r"), revoked(), "once more");
    let mut expected = before;
    expected.lease.as_mut().unwrap().seq = Seq::LAST;
    assert_eq!(*world.record(0, "r"), expected);
}

#[test]
fn only_the_lease_that_is_meant_is_revoked() {
    let mut world = World::new(1);
    world.hold(0, 1, "r", options());
    let before = world.record(0, "r").clone();
    let (time, other) = (world.time, Op::Revoke(Revoke { nonce: other_nonce() }));
    let refused = world.stores[0].perform(&resource("r"), &other, time);
    assert!(matches!(refused, Outcome::NotApplied(Refusal::Conflict(seen)) if seen.held().is_some()));
    assert_eq!(*world.record(0, "r"), before);

    let nonce = before.lease.unwrap().nonce;
    world.release(0, 1);
    world.deliver(0);
    let late = world.stores[0].perform(&resource("r"), &Op::Revoke(Revoke { nonce }), time);
    assert!(matches!(late, Outcome::NotApplied(Refusal::Conflict(_))), "{late:?}");
}

#[test]
fn quorum_lease_ends_once_fewer_nodes_than_a_majority_renew() {
    let mut world = World::quorum(3, 1);
    world.hold(0, 1, "r", options());
    world.revoke_at(0, "r");
    world.pass(secs(20));
    assert!(!has(&world.take_events(0), |event| matches!(event, Event::Lost { .. })));
    world.revoke_at(1, "r");
    world.pass(secs(10));
    assert_eq!(loss(&world.take_events(0)), LostReason::Revoked);
    world.release(0, 1);
    world.deliver_all();
    assert!((0..3).all(|node| !world.is_held(node, "r")), "it is freed on all nodes");
}

#[test]
fn grant_that_was_revoked_before_its_reply_came_is_given_back() {
    let mut world = World::new(1);
    world.acquire(0, 1, "r", options());
    world.lose_reply(0);
    world.revoke_at(0, "r");
    world.pass(secs(60));
    let events = world.take_events(0);
    assert!(!has(&events, |event| matches!(event, Event::Lost { .. })), "{events:?}");
    token(&events);
}
