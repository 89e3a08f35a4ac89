//! A lease of a majority, and the nodes that it still has to win back: how they are asked, and what they are left with.

use crate::common::*;
use crate::quorum_memory::{answer_of, born, nodes_of, refuse_connection};
use leasehold_core::op::{Fault, FaultKind, Holding, Op, Outcome, Refusal};
use leasehold_core::{Event, LockOptions, NodeId};

/// Nodes 0 and 1 hold the lease; nothing has reached node 2, and its request is on the wire again.
fn repairing(options: LockOptions) -> World {
    let mut world = born(1);
    world.acquire(0, 1, "r", options);
    refuse_connection(&mut world, 0, 2);
    world.deliver_to(0, 0);
    world.deliver_to(0, 1);
    world.take_events(0);
    until_repair(&mut world);
    world
}

/// Renewals are answered until node 2 is asked for its vote.
fn until_repair(world: &mut World) {
    let until = world.time + secs(30);
    while nodes_of(world, 0, "acquire").is_empty() {
        assert!(world.time < until, "the node is asked again with the renewals");
        for node in nodes_of(world, 0, "renew") {
            world.deliver_to(0, node);
        }
        world.pass_until_sent(0);
    }
}

#[test]
fn a_node_that_was_down_is_asked_again_and_counts() {
    let mut world = repairing(options());
    for _ in 0..3 {
        refuse_connection(&mut world, 0, 2);
        until_repair(&mut world);
    }
    let (floor, sent) = (world.record(0, "r").counter, world.now(0).monotonic);
    let (transmit, outcome) = answer_of(&mut world, 0, 2);
    assert!(matches!(&transmit.ops[0].op, Op::Acquire(op) if op.floor == floor), "{transmit:?}");
    assert_eq!(outcome, acquired(floor.get()));
    // Nodes 1 and 2 are cut off. With the next renewal of node 0 it is what node 2 has promised that counts.
    let until = world.time + secs(15);
    world.hosts[0].wire.clear();
    while !nodes_of(&world, 0, "renew").contains(&0) {
        assert!(world.time < until, "node 0 is renewed");
        world.hosts[0].wire.clear();
        world.pass_until_sent(0);
    }
    world.take_events(0);
    world.deliver_to(0, 0);
    let deadline = sent.plus(validity(secs(30)));
    let events = world.take_events(0);
    assert!(matches!(events[..], [Event::Renewed { deadline: at, .. }] if at == deadline), "{events:?}");
    while world.hosts[0].wire.iter().all(|transmit| transmit.node != NodeId::new(2)) {
        world.hosts[0].wire.clear();
        world.pass_until_sent(0);
    }
    assert_eq!(nodes_of(&world, 0, "acquire"), [0_u16; 0], "from now on it is renewed");
}

#[test]
fn repair_ends_with_max_hold() {
    let mut world = born(1);
    world.acquire(0, 1, "r", with(|o| o.max_hold(secs(40))));
    let (mut repairs, start) = (Vec::new(), world.time);
    while world.time < start + secs(60) {
        while let Some(transmit) = world.hosts[0].wire.front().cloned() {
            if transmit.node == NodeId::new(2) {
                repairs.push(world.time - start);
                refuse_connection(&mut world, 0, 2);
            } else {
                world.deliver(0);
            }
        }
        world.pass_cut_off(ms(100));
    }
    assert!(repairs.iter().any(|at| *at > secs(30)), "{repairs:?}");
    assert!(repairs.iter().all(|at| *at < secs(40)), "{repairs:?}");
}

#[test]
fn a_release_goes_where_a_repair_may_have_landed() {
    let mut world = repairing(options());
    let late = world.take_for(0, 2);
    world.release(0, 1);
    assert_eq!(nodes_of(&world, 0, "release"), [0, 1, 2]);
    world.overtake(0, &late);
    world.pass(secs(5));
    assert!(!world.is_held(2, "r"), "an orphan is left on node 2");
}

#[test]
fn a_rival_on_a_node_to_be_repaired_changes_nothing() {
    let mut world = repairing(options());
    let before = (world.remaining(0, 1), world.state(0, 1));
    let transmit = world.take_for(0, 2);
    let Op::Acquire(acquire) = &transmit.ops[0].op else { panic!("a repair") };
    // Its number is one of ours by chance.
    let theirs = conflict(Some(holding(stranger(), Some(acquire.seq.get()))));
    world.answer(0, transmit.id, Ok(vec![theirs]));
    assert_eq!(world.take_events(0), []);
    assert_eq!((world.remaining(0, 1), world.state(0, 1)), before);
    world.hosts[0].wire.clear();
    world.release(0, 1);
    assert_eq!(nodes_of(&world, 0, "release"), [0, 1], "none of our sends has landed there");
}

#[test]
fn a_release_goes_where_a_repair_has_got_no_answer() {
    let mut world = repairing(options());
    let transmit = world.take_for(0, 2);
    world.answer(0, transmit.id, Err(reset()));
    world.release(0, 1);
    assert_eq!(nodes_of(&world, 0, "release"), [0, 1, 2]);
}

#[test]
fn a_release_goes_where_our_record_shows_a_send_that_is_not_known() {
    let mut world = repairing(options());
    let transmit = world.take_for(0, 2);
    let nonce = transmit.ops[0].op.nonce().unwrap();
    world.answer(0, transmit.id, Ok(vec![conflict(Some(holding(nonce, Some(1_000))))]));
    world.release(0, 1);
    assert_eq!(nodes_of(&world, 0, "release"), [0, 1, 2]);
}

#[test]
fn a_repair_that_was_refused_does_not_answer_for_the_record_that_stands() {
    let refused = || Outcome::NotApplied(Refusal::Throttled(Fault::of(FaultKind::Busy)));
    for release_fails_first in [true, false] {
        let mut world = repairing(options());
        let landed = world.take_for(0, 2);
        world.perform(&landed);
        let nonce = landed.ops[0].op.nonce().unwrap();
        // All that is known is that it carries our nonce.
        world.answer(0, landed.id, Ok(vec![conflict(Some(holding(nonce, Some(1_000))))]));
        until_repair(&mut world);
        let repair = world.take_for(0, 2);
        world.release(0, 1);
        let release = world.take_for(0, 2);
        let mut answers = [(release.id, Err(reset())), (repair.id, Ok(vec![refused()]))];
        if !release_fails_first {
            answers.reverse();
        }
        for (id, answer) in answers {
            world.answer(0, id, answer);
        }
        world.pass(secs(5));
        assert!(!world.is_held(2, "r"), "an orphan is left on node 2");
    }
}

#[test]
fn where_somebody_else_has_left_the_lock_the_next_repair_wins_it() {
    let mut world = repairing(options());
    let transmit = world.take_for(0, 2);
    let left = Holding { released: true, ..holding(stranger(), Some(1)) };
    world.answer(0, transmit.id, Ok(vec![conflict(Some(left))]));
    until_repair(&mut world);
    world.deliver_to(0, 2);
    assert!(world.is_held(2, "r"));
}

#[test]
fn a_record_that_was_taken_away_is_not_put_back() {
    let mut world = born(1);
    world.hold(0, 1, "r", options());
    world.stores[0].records.clear();
    world.pass(secs(60));
    assert_eq!(world.state(0, 1), Some("Held"));
    assert!(!world.is_held(0, "r"), "somebody wanted it gone");
}

/// All three nodes hold the lease, and node 0 forgets.
fn forgotten() -> World {
    let mut world = born(1);
    world.hold(0, 1, "r", options());
    world.pass_until_sent(0);
    world.stores[0].lose_data();
    world.deliver_to(0, 0);
    world
}

#[test]
fn a_node_that_forgot_keeps_its_word_while_it_is_asked_again() {
    let mut world = forgotten();
    let events = world.take_events(0);
    let [Event::RenewDelayed { fault, .. }] = &events[..] else { panic!("{events:?}") };
    assert_eq!((fault.kind, fault.detail.as_deref()), (FaultKind::Server, Some("the node has lost its data")));
    while nodes_of(&world, 0, "acquire").is_empty() {
        world.hosts[0].wire.clear();
        world.pass_until_sent(0);
    }
    let (_, outcome) = answer_of(&mut world, 0, 0);
    assert!(matches!(outcome, Outcome::NotApplied(Refusal::Abstains { .. })), "{outcome:?}");
    // Of the other two one has lost the record: with the one that forgot, and gives its vote to nobody, the last still
    // makes a majority.
    while !nodes_of(&world, 0, "renew").contains(&1) {
        world.hosts[0].wire.clear();
        world.pass_until_sent(0);
    }
    let renewal = world.take_for(0, 1);
    world.answer(0, renewal.id, Ok(vec![conflict(None)]));
    assert_eq!(world.state(0, 1), Some("Held"));
}

#[test]
fn nothing_is_released_where_all_was_forgotten_long_ago() {
    let mut world = forgotten();
    let end = world.time + secs(40);
    while world.time < end {
        while let Some(transmit) = world.hosts[0].wire.front().cloned() {
            if transmit.node == NodeId::new(0) {
                // It votes again, and for somebody else.
                let transmit = world.take_for(0, 0);
                world.answer(0, transmit.id, Ok(vec![conflict(Some(holding(stranger(), Some(1))))]));
            } else {
                world.deliver(0);
            }
        }
        world.pass_cut_off(ms(100));
    }
    assert_eq!(world.state(0, 1), Some("Held"));
    world.release(0, 1);
    assert_eq!(nodes_of(&world, 0, "release"), [1, 2]);
}
