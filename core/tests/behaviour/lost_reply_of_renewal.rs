//! The outcome of a renewal is unknown: that is no loss, and the next try or the record itself shows the outcome.

use crate::common::*;
use leasehold_core::op::{Applied, Denial, DenialKind, Fault, FaultKind, Op, Outcome, Refusal};
use leasehold_core::{Event, LostReason, Seq, Token};

/// A lease whose first renewal is in flight.
fn renewing(hosts: usize) -> World {
    let mut world = World::new(hosts);
    world.hold(0, 1, "r", options());
    world.pass_until_sent(0);
    world
}

fn renew(transmit: &leasehold_core::Transmit) -> leasehold_core::op::Renew {
    let Op::Renew(op) = transmit.ops[0].op else { panic!("a renewal, not {transmit:?}") };
    op
}

#[test]
fn unknown_renewal_keeps_the_deadline_and_is_retried() {
    let mut world = renewing(1);
    let deadline = world.now(0).monotonic.plus(world.remaining(0, 1));
    let first = world.lose_reply(0);
    world.pass_cut_off(ms(500));
    let events = world.take_events(0);
    let [Event::RenewDelayed { deadline: unmoved, fault, .. }] = events.as_slice() else { panic!("{events:?}") };
    assert_eq!((*unmoved, fault.kind), (deadline, FaultKind::Timeout));
    assert_eq!(world.now(0).monotonic.plus(world.remaining(0, 1)), deadline);

    world.pass_until_sent(0);
    assert_eq!(renew(&world.hosts[0].wire[0]).seq, Seq::new(renew(&first).seq.get() + 1));
    world.deliver(0);
    let events = world.take_events(0);
    assert!(matches!(events[..], [Event::Renewed { recovered: false, .. }]), "{events:?}");
    assert_eq!(world.remaining(0, 1), validity(secs(30)), "as of the send that was confirmed");
}

#[test]
fn record_with_an_earlier_seq_confirms_that_send() {
    let mut world = renewing(1);
    let first_sent = world.now(0).monotonic;
    let first = world.lose_reply(0);
    world.pass_until_sent(0);
    let shown = holding(renew(&first).nonce, Some(renew(&first).seq.get()));
    world.take_events(0);
    world.answer_with(0, conflict(Some(shown)));
    let deadline = first_sent.plus(validity(secs(30)));
    let events = world.take_events(0);
    let [Event::Renewed { deadline: moved, recovered: true, left, .. }] = events.as_slice() else {
        panic!("{events:?}")
    };
    assert_eq!(*moved, deadline, "as of the send that took effect, not of the one that was answered");
    assert!(*left < validity(secs(30)));
    assert_eq!(world.state(0, 1), Some("Held"));
}

#[test]
fn a_delayed_older_renewal_is_harmless() {
    let mut world = renewing(1);
    let delayed = world.take(0);
    world.pass_until_sent(0);
    world.deliver(0);
    let record = world.record(0, "r").clone();
    world.jump(ms(100));
    let outcomes = world.perform(&delayed);
    assert!(matches!(outcomes[..], [Outcome::NotApplied(Refusal::Conflict(_))]), "{outcomes:?}");
    assert_eq!(*world.record(0, "r"), record);
    world.answer(0, delayed.id, Ok(outcomes));
    assert_eq!(world.state(0, 1), Some("Held"), "a late conflict with ourselves is no loss");
}

#[test]
fn record_of_an_unknown_send_confirms_nothing() {
    let mut world = renewing(1);
    let nonce = renew(&world.hosts[0].wire[0]).nonce;
    let before = world.now(0).monotonic.plus(world.remaining(0, 1));
    world.answer_with(0, conflict(Some(holding(nonce, Some(4_000_000)))));
    let events = world.take_events(0);
    assert!(
        matches!(&events[..], [Event::RenewDelayed { fault, .. }] if fault.kind == FaultKind::Protocol),
        "{events:?}"
    );
    assert_eq!(world.now(0).monotonic.plus(world.remaining(0, 1)), before);
}

#[test]
fn record_of_another_holder_ends_the_lease_at_once() {
    let mut world = renewing(1);
    world.answer_with(0, conflict(Some(holding(other_nonce(), Some(1)))));
    let reason = loss(&world.take_events(0));
    let LostReason::TakenOver { by: Some(by) } = reason else { panic!("{reason:?}") };
    assert!(by.is_of(&other_nonce()));
    assert_eq!(world.remaining(0, 1), secs(0));
    assert!(world.hosts[0].wire.is_empty(), "what is not ours is not released");
}

#[test]
fn our_record_released_by_somebody_else_ends_the_lease() {
    // A counter that is lower than the token is older than the grant: the store has lost data.
    for (below, reason) in [(0, LostReason::Released), (1, LostReason::RecordGone)] {
        let mut world = World::new(1);
        let token = world.hold(0, 1, "r", options());
        world.pass_until_sent(0);
        let nonce = renew(&world.hosts[0].wire[0]).nonce;
        let counter = Token::new(token.get() - below);
        let released = leasehold_core::op::Holding { released: true, counter, ..holding(nonce, Some(1)) };
        world.answer_with(0, conflict(Some(released)));
        assert_eq!(loss(&world.take_events(0)), reason);
    }
}

#[test]
fn a_missing_record_ends_the_lease_and_is_not_created_again() {
    let mut world = renewing(1);
    world.stores[0].records.clear();
    world.deliver(0);
    assert_eq!(loss(&world.take_events(0)), LostReason::RecordGone);
    assert!(world.stores[0].records.is_empty());
}

#[test]
fn refused_renewal_is_retried_without_loss() {
    let fault = || Fault::new(FaultKind::Server, "no");
    for refusal in [
        Refusal::Throttled(fault()),
        Refusal::Unavailable(fault()),
        Refusal::NeedsCredentials(fault()),
        Refusal::Abstains { stamp: None },
        Refusal::Denied(Denial::new(DenialKind::Permission, "no")),
    ] {
        let mut world = renewing(1);
        world.answer_with(0, Outcome::NotApplied(refusal.clone()));
        let events = world.take_events(0);
        assert!(matches!(events[..], [Event::RenewDelayed { .. }]), "{refusal:?}: {events:?}");
        world.pass(secs(5));
        let events = world.take_events(0);
        assert!(matches!(events[..], [Event::Renewed { .. }]), "{refusal:?}: {events:?}");
    }
}

#[test]
fn an_answer_to_another_operation_is_no_confirmation() {
    let mut world = renewing(1);
    let before = world.now(0).monotonic.plus(world.remaining(0, 1));
    world.answer_with(0, Outcome::Applied(Applied::Released));
    assert!(matches!(world.take_events(0)[..], [Event::RenewDelayed { .. }]));
    assert_eq!(world.now(0).monotonic.plus(world.remaining(0, 1)), before);
    assert_eq!(world.state(0, 1), Some("Held"));
}
