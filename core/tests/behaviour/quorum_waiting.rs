//! Waiting for a lock of several nodes: wake-ups that are believed, and echoes of our own releases.

use crate::common::*;
use crate::quorum::{answer_from, nodes_of, theirs};
use leasehold_core::config::Poll;
use leasehold_core::op::{Denial, DenialKind, Fault, FaultKind, Outcome, Refusal};
use leasehold_core::{NodeConfig, NodeId};

fn waiting(third: Outcome) -> World {
    let mut world = World::quorum(3, 1);
    world.acquire(0, 1, "r", options());
    answer_from(&mut world, 0, theirs());
    answer_from(&mut world, 2, third);
    answer_from(&mut world, 1, theirs());
    assert_eq!(world.state(0, 1), Some("Waiting"));
    world
}

#[test]
fn wake_up_is_used_while_a_majority_can_grant() {
    let denied = Outcome::NotApplied(Refusal::Denied(Denial::new(DenialKind::Permission, "not allowed")));
    let down = Outcome::NotApplied(Refusal::Unavailable(Fault::of(FaultKind::Unreachable)));
    for third in [denied, down.clone(), theirs()] {
        let mut world = waiting(third.clone());
        world.notify(0, "r");
        assert_eq!(nodes_of(&world, 0, "acquire"), [0, 1, 2], "{third:?}");
    }
    for (of_no_use, heeded) in [(2, true), (3, false)] {
        let mut world = World::quorum(5, 1);
        world.acquire(0, 1, "r", options());
        for node in 0..5 {
            answer_from(&mut world, node, if node < of_no_use { down.clone() } else { theirs() });
        }
        world.notify(0, "r");
        assert_eq!(nodes_of(&world, 0, "acquire").len() == 5, heeded, "{of_no_use} of five are of no use");
    }
}

/// The one node that granted is released again, which wakes all waiters, including this one.
#[test]
fn wake_up_from_our_own_release_is_ignored() {
    let mut world = waiting(acquired(7));
    assert_eq!(nodes_of(&world, 0, "release"), [2]);
    world.hosts[0].wire.clear();
    world.notify(0, "r");
    assert_eq!(world.on_the_wire(0), [""; 0]);
}

#[test]
fn node_that_shows_another_holder_causes_no_echo() {
    // Node 2 has not answered yet.
    let mut world = World::quorum(3, 1);
    world.acquire(0, 1, "r", options());
    answer_from(&mut world, 0, theirs());
    answer_from(&mut world, 1, theirs());
    world.hosts[0].wire.clear();
    world.notify(0, "r");
    assert_eq!(nodes_of(&world, 0, "acquire"), [0, 1, 2]);
    // The first send to node 2 got no answer; the answer to the second shows the holder.
    let mut world = World::quorum(3, 1);
    world.acquire(0, 1, "r", options());
    let unanswered = world.take_for(0, 2);
    world.answer(0, unanswered.id, Err(timeout()));
    for node in [0, 2, 1] {
        answer_from(&mut world, node, theirs());
    }
    assert_eq!(nodes_of(&world, 0, "release"), [1, 2], "node 1 had not answered when the others were enough");
    world.hosts[0].wire.clear();
    world.notify(0, "r");
    assert_eq!(nodes_of(&world, 0, "acquire"), [0, 1, 2]);
}

/// The wake-up may come from the release of a late grant, or of a grant whose answer got lost.
#[test]
fn late_answer_decides_if_an_echo_is_expected() {
    for (word, heeded) in
        [(Ok(vec![acquired(7)]), false), (Err(reset()), false), (Err(timeout()), true), (Ok(vec![theirs()]), true)]
    {
        let mut world = World::quorum(3, 1);
        world.acquire(0, 1, "r", options());
        answer_from(&mut world, 0, theirs());
        answer_from(&mut world, 1, theirs());
        assert_eq!(world.state(0, 1), Some("Waiting"));
        let slow = world.take_for(0, 2);
        world.answer(0, slow.id, word.clone());
        world.hosts[0].wire.clear();
        world.notify(0, "r");
        assert_eq!(nodes_of(&world, 0, "acquire").len() == 3, heeded, "{word:?}");
    }
}

#[test]
fn wake_up_during_an_attempt_is_used_unless_it_may_be_an_echo() {
    // Node 2 may have granted, and may get the release of an earlier attempt of ours.
    let mut world = World::quorum(3, 1);
    world.acquire(0, 1, "r", options());
    world.notify(0, "r");
    answer_from(&mut world, 0, theirs());
    answer_from(&mut world, 1, theirs());
    assert_eq!(nodes_of(&world, 0, "acquire"), [2], "that of this attempt");
    // Here the first send may have landed, but the second one was refused because of another holder.
    let mut world = World::new(1);
    world.acquire(0, 1, "r", options());
    let unanswered = world.take(0);
    world.answer(0, unanswered.id, Err(timeout()));
    world.notify(0, "r");
    world.answer_with(0, theirs());
    assert!(world.on_the_wire(0).contains(&"acquire"), "{:?}", world.on_the_wire(0));
}

#[test]
fn fresh_credentials_of_one_node_lead_to_one_try() {
    let refused = || Outcome::NotApplied(Refusal::NeedsCredentials(Fault::of(FaultKind::Server)));
    let mut world = waiting(refused());
    let renewed = |world: &mut World, node: u16| {
        let now = world.now(0);
        world.hosts[0].client.credentials_renewed(NodeId::new(node), now);
        world.tick(0);
        nodes_of(world, 0, "acquire")
    };
    assert_eq!(renewed(&mut world, 1), [0_u16; 0], "another node's");
    assert_eq!(renewed(&mut world, 2), [0, 1, 2]);
    answer_from(&mut world, 2, refused());
    answer_from(&mut world, 0, theirs());
    world.hosts[0].wire.clear();
    assert_eq!(renewed(&mut world, 2), [0_u16; 0], "they are refused as well");
    world.notify(0, "r");
    assert_eq!(nodes_of(&world, 0, "acquire"), [0, 1, 2], "which does not make it deaf");
}

#[test]
fn fresh_credentials_wake_only_locks_that_wait_for_that_node() {
    let refused = || Outcome::NotApplied(Refusal::NeedsCredentials(Fault::of(FaultKind::Server)));
    let mut world = waiting(refused());
    world.hosts[0].wire.clear();
    world.acquire(0, 2, "s", options());
    answer_from(&mut world, 1, refused());
    answer_from(&mut world, 0, theirs());
    world.hosts[0].wire.clear();
    let now = world.now(0);
    world.hosts[0].client.credentials_renewed(NodeId::new(1), now);
    world.tick(0);
    let asked: Vec<_> = world.hosts[0].wire.iter().map(|transmit| transmit.ops[0].resource.as_str()).collect();
    assert_eq!(asked, ["s"; 3]);
}

#[test]
fn only_blocking_nodes_are_read() {
    let reads = NodeConfig { poll: Poll::Read, ..NodeConfig::default() };
    let mut world = World::of(vec![reads; 3], 1);
    world.acquire(0, 1, "r", options());
    answer_from(&mut world, 0, theirs());
    answer_from(&mut world, 2, theirs());
    world.hosts[0].wire.clear();
    world.pass_until_sent(0);
    assert_eq!(nodes_of(&world, 0, "read"), [0, 2], "node 1 has not said that anybody holds it");
}
