//! The reply to an acquire gets lost: the record itself shows that the lock is held, and since which send.

use crate::common::*;
use leasehold_core::op::{FaultKind, Op};
use leasehold_core::{Event, Failure, Token};

const ANSWER_TIME: std::time::Duration = ms(500);

#[test]
fn a_lost_reply_is_recovered_as_of_the_send_that_took_effect() {
    let mut world = World::new(1);
    world.acquire(0, 1, "r", options());
    let sent = world.now(0).monotonic;
    let first = world.lose_reply(0);
    let minted = world.record(0, "r").counter;
    world.pass_cut_off(ANSWER_TIME);

    let again = world.deliver(0);
    let (Op::Acquire(first), Op::Acquire(again)) = (&first.ops[0].op, &again.ops[0].op) else { panic!("{again:?}") };
    assert_eq!(first.nonce, again.nonce, "the same attempt");
    assert_eq!(again.seq.get(), first.seq.get() + 1, "every send has its own number");
    assert_eq!(first.floor, again.floor);
    let deadline = sent.plus(validity(secs(30)));
    let expected = Event::Acquired { lock: lock(1), token: minted, deadline, recovered: true };
    assert_eq!(world.take_events(0), [expected], "valid since the first send, with the token of the first send");
    assert_eq!(world.record(0, "r").counter, minted, "nothing was minted twice");
    assert_eq!(world.remaining(0, 1), validity(secs(30)) - ANSWER_TIME);
}

#[test]
fn a_lost_request_is_granted_as_of_the_second_send() {
    let mut world = World::new(1);
    world.acquire(0, 1, "r", options());
    world.take(0);
    world.pass_cut_off(ANSWER_TIME);
    world.deliver(0);
    let events = world.take_events(0);
    assert!(matches!(events[..], [Event::Acquired { recovered: false, .. }]), "{events:?}");
    assert_eq!(world.remaining(0, 1), validity(secs(30)));
}

#[test]
fn a_delayed_first_send_does_not_overwrite_what_came_after() {
    let mut world = World::new(2);
    world.acquire(0, 1, "r", options());
    let delayed = world.take(0);
    world.pass_cut_off(ANSWER_TIME);
    world.deliver(0);
    world.pass(secs(15));
    let renewed = world.record(0, "r").clone();
    world.perform(&delayed);
    assert_eq!(*world.record(0, "r"), renewed, "our own record is never acquired again");

    world.release(0, 1);
    world.deliver_all();
    world.perform(&delayed);
    assert!(!world.is_held(0, "r"), "a delayed send must not bring back what was released");
    assert!(world.hold(1, 1, "r", options()) > renewed.counter);
}

#[test]
fn late_reply_is_ignored_and_the_record_recovers_the_grant() {
    let mut world = World::new(1);
    world.acquire(0, 1, "r", options());
    let first = world.take(0);
    let outcomes = world.perform(&first);
    world.pass_cut_off(ANSWER_TIME);
    world.answer(0, first.id, Ok(outcomes));
    assert_eq!(world.state(0, 1), Some("Acquiring"));
    let stats = world.hosts[0].client.stats();
    assert_eq!((stats.ignored_responses, stats.timed_out_requests), (1, 1));
    world.deliver(0);
    let events = world.take_events(0);
    assert!(matches!(events[..], [Event::Acquired { recovered: true, .. }]), "{events:?}");
}

#[test]
fn the_third_send_can_recover_the_first() {
    let mut world = World::new(1);
    world.acquire(0, 1, "r", options());
    world.lose_reply(0);
    world.pass_cut_off(ANSWER_TIME);
    world.lose_reply(0);
    world.pass_cut_off(ANSWER_TIME);
    world.deliver(0);
    assert_eq!(world.remaining(0, 1), validity(secs(30)) - 2 * ANSWER_TIME);
}

#[test]
fn broken_connection_is_an_unknown_outcome() {
    let mut world = World::new(1);
    world.acquire(0, 1, "r", options());
    let first = world.lose_reply(0);
    world.answer(0, first.id, Err(reset()));
    assert!(world.hosts[0].wire.is_empty(), "not again at once: what broke would break again");
    world.pass_cut_off(ms(125));
    world.deliver(0);
    let events = world.take_events(0);
    assert!(matches!(events[..], [Event::Acquired { recovered: true, .. }]), "{events:?}");
}

#[test]
fn store_without_seq_counts_from_the_earliest_send() {
    let mut world = World::new(1);
    world.acquire(0, 1, "r", options());
    world.lose_reply(0);
    world.pass_cut_off(ANSWER_TIME);
    let nonce = world.hosts[0].wire[0].ops[0].op.nonce().unwrap();
    world.answer_with(0, conflict(Some(holding(nonce, None))));
    assert_eq!(world.remaining(0, 1), validity(secs(30)) - ANSWER_TIME);
}

#[test]
fn a_resend_that_the_store_grants_counts_from_itself() {
    let mut world = World::new(1);
    world.acquire(0, 1, "r", options());
    world.lose_reply(0);
    world.pass_cut_off(ANSWER_TIME);
    world.answer_with(0, acquired(77));
    let events = world.take_events(0);
    assert_eq!(token(&events), Token::new(77).unwrap());
    assert_eq!(world.remaining(0, 1), validity(secs(30)));
}

#[test]
fn grant_after_its_validity_fails_and_is_released() {
    let mut world = World::new(1);
    world.acquire(0, 1, "r", with(|o| o.ttl(ms(100)).wait(leasehold_core::Wait::Once)));
    world.lose_reply(0);
    // The machine was stopped; the second send leaves 90 ms after the first, and its answer comes 9 ms later.
    world.jump(ms(90));
    world.tick(0);
    world.jump(ms(9));
    world.deliver(0);
    let failure = failure(&world.take_events(0));
    assert!(matches!(&failure, Failure::Unavailable(fault) if fault.kind == FaultKind::Timeout), "{failure:?}");
    assert_eq!(world.on_the_wire(0), ["release"]);
    assert!(world.is_held(0, "r"));
    world.deliver(0);
    assert!(!world.is_held(0, "r"));
}

#[test]
fn renewals_of_a_recovered_lease_count_from_the_send_that_took_effect() {
    let mut world = World::new(1);
    world.acquire(0, 1, "r", with(|options| options.ttl(secs(3))));
    world.lose_reply(0);
    world.pass_until_sent(0);
    world.deliver(0);
    assert_eq!(world.state(0, 1), Some("Held"));
    let left = world.remaining(0, 1);
    world.pass_until_sent(0);
    let gone = left - world.remaining(0, 1);
    // The first send left 500 ms ago; a third of the ttl after it the renewal is due, not a third after the recovery.
    assert!(gone <= ms(500), "{gone:?}");
}
