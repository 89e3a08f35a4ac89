//! A lease of a majority, and its repair: the acquires to nodes without our record, and their release.

use crate::common::*;
use crate::quorum_memory::{answer_of, born, nodes_of, refuse_connection};
use leasehold_core::op::{Fault, FaultKind, Holding, Op, Outcome, Refusal};
use leasehold_core::{Event, LockOptions, NodeId};

/// Nodes 0 and 1 hold the lease; nothing has reached node 2, and its request is in flight again.
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
fn recovered_node_is_asked_again_and_counts() {
    let mut world = repairing(options());
    for _ in 0..3 {
        refuse_connection(&mut world, 0, 2);
        until_repair(&mut world);
    }
    let (floor, sent) = (world.record(0, "r").counter, world.now(0).monotonic);
    let (transmit, outcome) = answer_of(&mut world, 0, 2);
    assert!(matches!(&transmit.ops[0].op, Op::Acquire(op) if op.floor == floor), "{transmit:?}");
    assert_eq!(outcome, acquired(floor.get()));
    // Nodes 1 and 2 are cut off. After the next renewal of node 0 the deadline of node 2 counts.
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
fn release_includes_nodes_with_a_pending_repair() {
    let mut world = repairing(options());
    let late = world.take_for(0, 2);
    world.release(0, 1);
    assert_eq!(nodes_of(&world, 0, "release"), [0, 1, 2]);
    world.overtake(0, &late);
    world.pass(secs(5));
    assert!(!world.is_held(2, "r"), "an orphan is left on node 2");
}

#[test]
fn rival_on_an_unrepaired_node_does_not_end_the_lease() {
    let mut world = repairing(options());
    let before = (world.remaining(0, 1), world.state(0, 1));
    let transmit = world.take_for(0, 2);
    let Op::Acquire(acquire) = &transmit.ops[0].op else { panic!("a repair") };
    // Its seq is one of ours by chance.
    let theirs = conflict(Some(holding(other_nonce(), Some(acquire.seq.get()))));
    world.answer(0, transmit.id, Ok(vec![theirs]));
    assert_eq!(world.take_events(0), []);
    assert_eq!((world.remaining(0, 1), world.state(0, 1)), before);
    world.hosts[0].wire.clear();
    world.release(0, 1);
    assert_eq!(nodes_of(&world, 0, "release"), [0, 1], "none of our sends has landed there");
}

#[test]
fn release_includes_nodes_with_an_unanswered_repair() {
    let mut world = repairing(options());
    let transmit = world.take_for(0, 2);
    world.answer(0, transmit.id, Err(reset()));
    world.release(0, 1);
    assert_eq!(nodes_of(&world, 0, "release"), [0, 1, 2]);
}

#[test]
fn release_includes_nodes_with_an_unknown_send() {
    let mut world = repairing(options());
    let transmit = world.take_for(0, 2);
    let nonce = transmit.ops[0].op.nonce().unwrap();
    world.answer(0, transmit.id, Ok(vec![conflict(Some(holding(nonce, Some(1_000))))]));
    world.release(0, 1);
    assert_eq!(nodes_of(&world, 0, "release"), [0, 1, 2]);
}

#[test]
fn refused_repair_does_not_end_the_release() {
    let refused = || Outcome::NotApplied(Refusal::Throttled(Fault::of(FaultKind::Busy)));
    for release_fails_first in [true, false] {
        let mut world = repairing(options());
        let landed = world.take_for(0, 2);
        world.perform(&landed);
        let nonce = landed.ops[0].op.nonce().unwrap();
        // It carries our nonce; nothing else is known.
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
fn repair_succeeds_after_the_rival_released() {
    let mut world = repairing(options());
    let transmit = world.take_for(0, 2);
    let left = Holding { released: true, ..holding(other_nonce(), Some(1)) };
    world.answer(0, transmit.id, Ok(vec![conflict(Some(left))]));
    until_repair(&mut world);
    world.deliver_to(0, 2);
    assert!(world.is_held(2, "r"));
}

#[test]
fn removed_record_is_not_recreated() {
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
fn forgetful_node_counts_while_repair_is_in_flight() {
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
    // One of the other two has lost the record. The last one is still a majority together with the node that forgot, which
    // votes for nobody.
    while !nodes_of(&world, 0, "renew").contains(&1) {
        world.hosts[0].wire.clear();
        world.pass_until_sent(0);
    }
    let renewal = world.take_for(0, 1);
    world.answer(0, renewal.id, Ok(vec![conflict(None)]));
    assert_eq!(world.state(0, 1), Some("Held"));
}

#[test]
fn nothing_is_released_on_nodes_that_forgot_long_ago() {
    let mut world = forgotten();
    let end = world.time + secs(40);
    while world.time < end {
        while let Some(transmit) = world.hosts[0].wire.front().cloned() {
            if transmit.node == NodeId::new(0) {
                // It votes again, but for another client.
                let transmit = world.take_for(0, 0);
                world.answer(0, transmit.id, Ok(vec![conflict(Some(holding(other_nonce(), Some(1))))]));
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
