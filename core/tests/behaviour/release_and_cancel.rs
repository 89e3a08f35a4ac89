//! A release takes effect at once, in every state, and may be repeated.

use crate::common::*;
use leasehold_core::op::{Fault, FaultKind, Outcome, Refusal};
use leasehold_core::{Error, Event, Failure, LostReason};

fn cancelled(id: u64) -> Event {
    Event::Failed { lock: lock(id), failure: Failure::Cancelled }
}

#[test]
fn waiting_acquire_is_cancelled_without_requests() {
    let mut world = World::new(2);
    world.hold(0, 1, "r", options());
    world.acquire(1, 1, "r", options());
    world.deliver_all();
    world.take_events(1);
    world.release(1, 1);
    assert_eq!(world.take_events(1), [cancelled(1)]);
    assert_eq!(world.on_the_wire(1), [""; 0], "its acquire was refused for certain");
    assert!(world.hosts[1].client.is_idle());
}

#[test]
fn cancelled_acquire_leaves_the_queue_in_order() {
    let mut world = World::new(1);
    world.hold(0, 1, "r", options());
    for id in 2..=4 {
        world.acquire(0, id, "r", options());
    }
    world.release(0, 3);
    assert_eq!(world.take_events(0), [cancelled(3)]);
    for (holder, next) in [(1, 2), (2, 4)] {
        world.release(0, holder);
        world.deliver_all();
        world.tick(0);
        world.deliver_all();
        assert_eq!(world.state(0, next), Some("Held"));
    }
}

#[test]
fn releasing_twice_does_nothing_more() {
    let mut world = World::new(1);
    world.hold(0, 1, "r", options());
    world.release(0, 1);
    world.release(0, 1);
    assert_eq!(world.on_the_wire(0), ["release"]);
    world.deliver(0);
    assert_eq!(world.take_events(0), [Event::Released { lock: lock(1), confirmed: true }]);
    let now = world.now(0);
    assert_eq!(world.hosts[0].client.release(lock(1), now), Err(Error::UnknownLock));
    assert_eq!(world.take_events(0), []);
}

#[test]
fn release_of_a_lost_lease_is_an_error() {
    let mut world = World::new(2);
    world.hold(0, 1, "r", options());
    world.jump(secs(60));
    world.hold(1, 1, "r", options());
    let now = world.now(0);
    assert_eq!(world.hosts[0].client.release(lock(1), now), Err(Error::UnknownLock), "expired first, then released");
    world.drain(0);
    assert_eq!(loss(&world.take_events(0)), LostReason::Expired);
    assert_eq!(world.on_the_wire(0), [""; 0]);
    assert!(world.is_held(0, "r"), "the other one's lease stands");
}

#[test]
fn release_frees_only_the_record_of_its_attempt() {
    let mut world = World::new(2);
    world.hold(0, 1, "r", options());
    world.release(0, 1);
    let late = world.take(0);
    world.jump(secs(40));
    let token = world.hold(1, 1, "r", options());
    world.perform(&late);
    assert!(world.is_held(0, "r"), "a delayed release must not free what came after");
    assert_eq!(world.record(0, "r").counter, token);
}

#[test]
fn release_during_a_renewal_wins() {
    let mut world = World::new(1);
    world.hold(0, 1, "r", options());
    world.pass_until_sent(0);
    let renewal = world.take(0);
    world.release(0, 1);
    assert_eq!(world.remaining(0, 1), secs(0));
    world.deliver(0);
    // The renewal was overtaken by the release.
    world.carry(0, &renewal);
    assert!(!world.is_held(0, "r"), "nothing brings a released record back");
    assert_eq!(world.take_events(0), [Event::Released { lock: lock(1), confirmed: true }]);
    world.pass(secs(60));
    assert_eq!(world.take_events(0), []);
}

#[test]
fn nothing_is_renewed_after_a_release() {
    let mut world = World::new(1);
    world.hold(0, 1, "r", options());
    world.jump(secs(10));
    // The renewal is due but not drained when the release comes.
    let (now, fresh) = (world.now(0), world.fresh());
    world.hosts[0].client.handle_timeout(&fresh, now);
    world.release(0, 1);
    assert_eq!(world.on_the_wire(0), ["release"]);
    world.pass_cut_off(secs(100));
    assert!(!world.on_the_wire(0).contains(&"renew"));
}

#[test]
fn a_release_is_sent_until_it_is_answered_for_certain() {
    let mut world = World::new(1);
    world.hold(0, 1, "r", options());
    world.release(0, 1);
    for outcome in [
        Outcome::Unknown(Fault::of(FaultKind::Reset)),
        Outcome::NotApplied(Refusal::Throttled(Fault::of(FaultKind::Busy))),
        Outcome::NotApplied(Refusal::Unavailable(Fault::of(FaultKind::Unreachable))),
    ] {
        world.answer_with(0, outcome);
        assert_eq!(world.take_events(0), []);
        world.pass_until_sent(0);
        assert_eq!(world.on_the_wire(0), ["release"]);
    }
    world.deliver(0);
    assert_eq!(world.take_events(0), [Event::Released { lock: lock(1), confirmed: true }]);
}

#[test]
fn release_with_a_lost_reply_is_unconfirmed_when_the_record_is_gone() {
    let mut world = World::new(1);
    world.hold(0, 1, "r", options());
    world.release(0, 1);
    world.lose_reply(0);
    world.pass_until_sent(0);
    world.deliver(0);
    assert_eq!(world.take_events(0), [Event::Released { lock: lock(1), confirmed: false }]);
}

#[test]
fn release_that_finds_another_record_reports_a_loss() {
    let mut world = World::new(2);
    world.hold(0, 1, "r", options());
    world.stores[0].records.clear();
    world.acquire(1, 1, "r", options());
    world.deliver(1);
    world.release(0, 1);
    world.deliver(0);
    assert!(matches!(loss(&world.take_events(0)), LostReason::TakenOver { by: Some(_) }));
    assert!(world.is_held(0, "r"), "the rival's record stands");
}

#[test]
fn release_that_finds_no_record_reports_a_loss() {
    let mut world = World::new(1);
    world.hold(0, 1, "r", options());
    world.stores[0].records.clear();
    world.release(0, 1);
    world.deliver(0);
    assert_eq!(loss(&world.take_events(0)), LostReason::RecordGone);
}

#[test]
fn release_of_a_broken_lock_reports_a_loss() {
    let mut world = World::new(1);
    world.hold(0, 1, "r", options());
    world.break_at(0, "r");
    world.release(0, 1);
    world.deliver(0);
    assert_eq!(loss(&world.take_events(0)), LostReason::Released);
}

#[test]
fn refused_release_does_not_hide_a_loss() {
    let mut world = World::new(1);
    world.hold(0, 1, "r", options());
    world.stores[0].records.clear();
    world.release(0, 1);
    world.answer_with(0, Outcome::NotApplied(Refusal::Unavailable(Fault::of(FaultKind::Unreachable))));
    world.pass_until_sent(0);
    world.deliver(0);
    assert_eq!(loss(&world.take_events(0)), LostReason::RecordGone);
}

/// The record may have run out by itself by the time that the answer comes.
#[test]
fn release_answer_after_the_deadline_is_no_evidence() {
    let mut world = World::new(1);
    world.hold(0, 1, "r", with(|o| o.no_renewal()));
    world.stores[0].records.clear();
    world.jump(validity(secs(30)) - ms(10));
    world.tick(0);
    world.take_events(0);
    world.release(0, 1);
    let release = world.take(0);
    world.jump(ms(10));
    world.carry(0, &release);
    assert_eq!(world.take_events(0), [Event::Released { lock: lock(1), confirmed: false }]);
}

#[test]
fn release_after_expiry_is_unconfirmed() {
    let mut world = World::new(1);
    world.hold(0, 1, "r", options());
    world.release(0, 1);
    world.pass_cut_off(secs(30) - ms(1));
    assert_eq!(world.take_events(0), []);
    world.pass_cut_off(ms(1));
    assert_eq!(world.take_events(0), [Event::Released { lock: lock(1), confirmed: false }]);
    assert!(!world.is_held(0, "r"));
    assert_eq!(world.state(0, 1), None);
}

#[test]
fn lock_id_can_be_reused_and_old_replies_are_ignored() {
    let mut world = World::new(2);
    world.hold(1, 1, "b", options());
    world.acquire(0, 1, "a", options());
    let old = world.take(0);
    let outcomes = world.perform(&old);
    world.release(0, 1);
    world.take_events(0);

    // The same id, for a lock that another client holds.
    world.acquire(0, 1, "b", once());
    world.answer(0, old.id, Ok(outcomes));
    assert!(
        !has(&world.take_events(0), |event| matches!(event, Event::Acquired { .. })),
        "the grant of `a` was taken for one of `b`"
    );
    assert_eq!(world.remaining(0, 1), secs(0));
    world.deliver_all();
    assert!(matches!(failure(&world.take_events(0)), Failure::Busy { .. }));
    assert!(!world.is_held(0, "a") && world.is_held(0, "b"));
}

#[test]
fn undrained_request_of_an_earlier_generation_is_dropped() {
    let mut world = World::new(1);
    let (now, fresh, other) = (world.now(0), world.fresh(), world.fresh());
    let client = &mut world.hosts[0].client;
    client.acquire(lock(1), resource("a"), options(), &fresh, now).unwrap();
    client.release(lock(1), now).unwrap();
    client.acquire(lock(1), resource("b"), options(), &other, now).unwrap();
    world.drain(0);
    let acquires: Vec<_> =
        world.hosts[0].wire.iter().flat_map(|t| &t.ops).filter(|op| kind(&op.op) == "acquire").collect();
    assert!(matches!(acquires[..], [op] if op.resource == resource("b")), "{acquires:?}");
}
