//! Responses that are late, duplicated, unexpected, or of the wrong number or kind.

use crate::common::*;
use leasehold_core::member::LossId;
use leasehold_core::op::{Applied, FaultKind, Holding, Outcome, Refusal, Seen};
use leasehold_core::{Event, RequestId, Token};

#[test]
fn unknown_response_is_counted_and_ignored() {
    let mut world = World::new(1);
    world.hold(0, 1, "r", options());
    let before = world.hosts[0].client.clone();
    for id in [99, u64::MAX] {
        world.answer(0, RequestId::new(id), Ok(vec![acquired(7)]));
        world.answer(0, RequestId::new(id), Err(timeout()));
    }
    let after = &world.hosts[0].client;
    assert_eq!(after.stats().ignored_responses, before.stats().ignored_responses + 4);
    assert_eq!(after.stats().held, 1);
    assert_eq!(world.take_events(0), []);
}

#[test]
fn a_second_response_to_one_request_is_ignored() {
    let mut world = World::new(1);
    world.acquire(0, 1, "r", options());
    let transmit = world.take(0);
    let outcomes = world.perform(&transmit);
    world.answer(0, transmit.id, Ok(outcomes.clone()));
    let left = world.remaining(0, 1);
    world.take_events(0);
    world.answer(0, transmit.id, Ok(outcomes));
    world.answer(0, transmit.id, Ok(vec![conflict(Some(holding(other_nonce(), Some(1))))]));
    world.answer(0, transmit.id, Err(timeout()));
    assert_eq!(world.take_events(0), []);
    assert_eq!((world.state(0, 1), world.remaining(0, 1)), (Some("Held"), left));
    assert_eq!(world.hosts[0].client.stats().ignored_responses, 3);
}

#[test]
fn a_response_after_the_request_deadline_changes_nothing() {
    let mut world = World::new(1);
    world.acquire(0, 1, "r", options());
    let late = world.take(0);
    assert_eq!(late.deadline, world.now(0).monotonic.plus(ms(500)));
    world.pass_cut_off(ms(500));
    world.answer(0, late.id, Ok(vec![acquired(7)]));
    assert_eq!(world.state(0, 1), Some("Acquiring"), "the fate of that request is unknown by then");
    assert_eq!(world.hosts[0].client.stats().timed_out_requests, 1);
    assert_eq!(world.hosts[0].client.stats().ignored_responses, 1);
}

#[test]
fn a_request_that_the_host_forgets_is_unknown_from_its_deadline_on() {
    let mut world = World::new(1);
    world.acquire(0, 1, "r", options());
    world.take(0);
    world.pass_cut_off(ms(499));
    assert_eq!(world.hosts[0].client.stats().in_flight, 1);
    world.pass_cut_off(ms(1));
    assert_eq!(world.on_the_wire(0), ["acquire"], "sent again without a word from the host");
}

#[test]
fn grant_with_token_zero_is_rejected() {
    let mut world = World::new(1);
    world.acquire(0, 1, "r", options());
    let transmit = world.take(0);
    let nonce = transmit.ops[0].op.nonce().unwrap();
    let ours = Holding { counter: Some(Token::ZERO), ..holding(nonce, Some(2)) };
    for outcome in [acquired(0), conflict(Some(ours))] {
        let id = if outcome == acquired(0) { transmit.id } else { world.take(0).id };
        world.answer(0, id, Ok(vec![outcome]));
        assert_eq!((world.state(0, 1), world.take_events(0)), (Some("Acquiring"), vec![]));
        world.pass_until_sent(0);
    }
    let id = world.take(0).id;
    world.answer(0, id, Ok(vec![acquired(7)]));
    assert!(matches!(world.take_events(0)[..], [Event::Acquired { token, .. }] if token.get() == 7));
}

#[test]
fn request_ids_are_never_reused() {
    let mut world = World::new(1);
    let mut seen = std::collections::BTreeSet::new();
    for round in 0..50 {
        world.acquire(0, round, "r", options());
        while !world.hosts[0].wire.is_empty() {
            assert!(seen.insert(world.deliver(0).id));
        }
        world.release(0, round);
        while !world.hosts[0].wire.is_empty() {
            assert!(seen.insert(world.deliver(0).id));
        }
    }
    assert_eq!(seen.len(), 100);
}

/// Three leases with their renewals in flight in one request.
fn three_renewing() -> World {
    let mut world = World::new(1);
    for id in 0..3 {
        world.acquire(0, id, &format!("r{id}"), options());
    }
    world.deliver_all();
    world.take_events(0);
    world.pass_until_sent(0);
    world
}

#[test]
fn missing_outcomes_are_unknown() {
    let mut world = three_renewing();
    let transmit = world.take(0);
    let mut outcomes = world.perform(&transmit);
    outcomes.truncate(1);
    world.answer(0, transmit.id, Ok(outcomes));
    let events = world.take_events(0);
    let renewed = events.iter().filter(|event| matches!(event, Event::Renewed { .. })).count();
    let delayed =
        |event: &&Event| matches!(event, Event::RenewDelayed { fault, .. } if fault.kind == FaultKind::Protocol);
    assert_eq!((renewed, events.iter().filter(delayed).count()), (1, 2), "{events:?}");
    assert_eq!(world.hosts[0].client.stats().held, 3);
}

#[test]
fn surplus_outcomes_are_ignored() {
    let mut world = three_renewing();
    let transmit = world.take(0);
    let mut outcomes = world.perform(&transmit);
    for _ in 0..10 {
        outcomes.push(conflict(None));
    }
    world.answer(0, transmit.id, Ok(outcomes));
    assert_eq!(world.take_events(0).iter().filter(|event| matches!(event, Event::Renewed { .. })).count(), 3);
    assert_eq!(world.hosts[0].client.stats().held, 3);
}

#[test]
fn an_outcome_of_the_wrong_kind_is_unknown() {
    let token = Token::new(7).unwrap();
    for applied in
        [Applied::Renewed, Applied::Released, Applied::Raised { counter: token }, Applied::Read(Seen::default())]
    {
        let mut world = World::new(1);
        world.acquire(0, 1, "r", options());
        world.answer_with(0, Outcome::Applied(applied.clone()));
        assert_eq!(world.state(0, 1), Some("Acquiring"), "{applied:?} is no grant");
        world.pass_until_sent(0);
        assert_eq!(world.on_the_wire(0), ["acquire"]);
    }
    for applied in [Applied::Acquired { counter: token }, Applied::Released] {
        let mut world = three_renewing();
        let transmit = world.take(0);
        world.answer(0, transmit.id, Ok(vec![Outcome::Applied(applied.clone()); 3]));
        let events = world.take_events(0);
        assert!(events.iter().all(|event| matches!(event, Event::RenewDelayed { .. })), "{applied:?}: {events:?}");
    }
    let mut world = World::reading(1);
    world.acquire(0, 1, "r", options());
    world.answer_with(0, conflict(Some(holding(other_nonce(), Some(1)))));
    world.pass_until_sent(0);
    assert_eq!(world.on_the_wire(0), ["read"]);
    world.answer_with(0, acquired(7));
    assert_eq!(world.state(0, 1), Some("Waiting"), "a look grants nothing");
}

#[test]
fn an_acquire_that_is_granted_again_raises_nothing() {
    let counter = Token::new(9).unwrap();
    for granted in [Applied::Acquired { counter }, Applied::AcquiredInDoubt { counter, stamp: LossId([7; 16]) }] {
        let mut world = World::quorum(3, 1);
        world.acquire(0, 1, "r", options());
        for (node, counter) in [(0, 5), (1, 9)] {
            let transmit = world.take_for(0, node);
            world.answer(0, transmit.id, Ok(vec![acquired(counter)]));
        }
        let raise = world.take_for(0, 0);
        assert_eq!(kind(&raise.ops[0].op), "raise");
        world.answer(0, raise.id, Ok(vec![Outcome::Applied(granted.clone())]));
        assert_eq!((world.state(0, 1), world.take_events(0)), (Some("Acquiring"), vec![]), "{granted:?}");
        world.hosts[0].wire.clear();
        world.pass_until_sent(0);
        assert_eq!(world.on_the_wire(0), ["raise"], "it is asked again");
    }
}

#[test]
fn abstention_of_a_single_store_counts_as_busy() {
    let mut world = World::new(1);
    world.hold(0, 1, "r", options());
    world.pass_until_sent(0);
    world.answer_with(0, Outcome::NotApplied(Refusal::Abstains { stamp: None }));
    let events = world.take_events(0);
    let [Event::RenewDelayed { fault, .. }] = &events[..] else { panic!("{events:?}") };
    assert_eq!(fault.kind, FaultKind::Busy);
    assert_eq!(world.state(0, 1), Some("Held"));
}

#[test]
fn record_of_an_unknown_send_is_no_grant() {
    let mut world = World::new(1);
    world.acquire(0, 1, "r", once());
    for _ in 0..3 {
        let nonce = world.hosts[0].wire[0].ops[0].op.nonce().unwrap();
        world.answer_with(0, conflict(Some(holding(nonce, Some(1_000)))));
        assert_ne!(world.state(0, 1), Some("Held"));
        if world.state(0, 1).is_some() {
            world.pass_until_sent(0);
        }
    }
    failure(&world.take_events(0));
    assert_eq!(world.on_the_wire(0), ["release"], "whatever that record is, it carries our nonce");
}

#[test]
fn record_without_a_counter_is_no_grant() {
    let mut world = World::new(1);
    world.acquire(0, 1, "r", options());
    let nonce = world.hosts[0].wire[0].ops[0].op.nonce().unwrap();
    let shown = leasehold_core::op::Holding { counter: None, ..holding(nonce, Some(1)) };
    world.answer_with(0, conflict(Some(shown)));
    assert_eq!(world.state(0, 1), Some("Acquiring"), "a lease needs a token");
}

#[test]
fn undrained_outputs_do_not_break_the_client() {
    let mut world = World::new(1);
    let (now, fresh) = (world.now(0), world.fresh());
    world.hosts[0].client.acquire(lock(1), resource("r"), options(), &fresh, now).unwrap();
    assert_eq!(world.hosts[0].client.stats().undrained, 1);
    // The embedder comes back after the deadline of the request. It certainly never left.
    world.jump(secs(2));
    world.tick(0);
    assert_eq!(world.take_events(0), []);
    assert_eq!(world.hosts[0].client.stats().orphans, 0);
    world.pass(secs(3));
    assert_eq!(world.state(0, 1), Some("Held"));
}
