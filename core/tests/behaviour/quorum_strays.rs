//! Quorums under messages that come late, and nodes that were away for long.

use std::time::Duration;

use crate::common::*;
use leasehold_core::member::{LossId, Marker, Phase, QuorumId};
use leasehold_core::op::{Acquire, Applied, Fault, FaultKind, Op, Outcome, Raise, Refusal, TransportFault};
use leasehold_core::{Config, Event, NodeConfig, Quorum, Token, Transmit};

const QUORUM: QuorumId = QuorumId([0xa1; 16]);
const LOSS: LossId = LossId([0xcc; 16]);

fn born(hosts: usize) -> World {
    let config = Config::new(vec![NodeConfig::default(); 3]).unwrap();
    let mut world = World::with_config(&config.with_quorum(Quorum::new(QUORUM, secs(60)).unwrap()), hosts);
    for store in &mut world.stores {
        store.marker = Some(marker(Phase::Member));
    }
    world
}

fn marker(phase: Phase) -> Marker {
    Marker { quorum: QUORUM, max_ttl_ms: 60_000, stamp: LOSS, phase, run: None }
}

fn rejoin(world: &mut World, node: usize) {
    world.stores[node].lose_data();
    world.stores[node].marker = Some(marker(Phase::Rejoined { trusted_from_unix_ms: u64::MAX }));
}

fn is_lost(events: &[Event]) -> bool {
    has(events, |event| matches!(event, Event::Lost { .. } | Event::Shortened { .. }))
}

/// Delivers everything but what goes to one node, for so long.
fn pass_without(world: &mut World, node: u16, length: Duration) {
    let until = world.time + length;
    while world.time < until {
        world.pass_until_sent(0);
        while let Some(next) = world.hosts[0].wire.front().map(|transmit| transmit.node.get()) {
            if next == node {
                let id = world.take_for(0, node).id;
                world.answer(0, id, Err(TransportFault::NotSent(Fault::of(FaultKind::Unreachable))));
            } else {
                world.deliver_to(0, next);
            }
        }
    }
}

/// Its record has run out there, and is the holder's all the same.
#[test]
fn a_node_that_was_away_for_longer_than_the_ttl_is_repaired() {
    let mut world = born(1);
    world.hold(0, 1, "r", options());
    pass_without(&mut world, 2, secs(90));
    assert!(!world.is_held(2, "r"), "kept, and over");
    world.pass(secs(60));
    assert!(world.is_held(2, "r"), "asked for its vote again, and it gave it");
    // It counts: another one may go.
    world.stores[0].records.clear();
    world.stores[0].marker = None;
    world.pass(secs(60));
    assert!(!is_lost(&world.take_events(0)));
    assert_eq!(world.state(0, 1), Some("Held"));
}

fn to_node(world: &mut World, node: usize, op: &Op) -> Outcome {
    let time = world.time;
    world.stores[node].perform(&resource("r"), op, time)
}

fn acquire_of(transmit: &Transmit) -> Acquire {
    match &transmit.ops[0].op {
        Op::Acquire(acquire) => (**acquire).clone(),
        other => panic!("no acquire: {other:?}"),
    }
}

/// Acquire and raise of somebody who is long gone arrive at a node that has lost its data since.
#[test]
fn a_raise_that_was_meant_for_an_earlier_loss_makes_nobody_trusted() {
    let mut world = born(1);
    world.acquire(0, 1, "r", options());
    let stray = acquire_of(&world.take_for(0, 0));
    rejoin(&mut world, 0);
    let answer = to_node(&mut world, 0, &Op::Acquire(Box::new(stray.clone())));
    assert!(matches!(answer, Outcome::Applied(Applied::AcquiredInDoubt { stamp: LOSS, .. })), "{answer:?}");
    let token = Token::new(9).unwrap();
    for loss in [None, Some(LossId([1; 16]))] {
        to_node(&mut world, 0, &Op::Raise(Raise { nonce: stray.nonce, token, loss }));
        assert!(world.stores[0].trusted.is_empty());
    }
    to_node(&mut world, 0, &Op::Raise(Raise { nonce: stray.nonce, token, loss: Some(LOSS) }));
    assert_eq!(world.stores[0].trusted.len(), 1);
}

/// A proxy delivers the send that found the first loss once more, after the second.
#[test]
fn a_send_that_comes_twice_names_two_losses_differently() {
    let mut world = born(1);
    world.acquire(0, 1, "r", options());
    let send = Op::Acquire(Box::new(acquire_of(&world.take_for(0, 0))));
    let mut stamps = Vec::new();
    for _ in 0..2 {
        world.stores[0].lose_data();
        world.time += secs(100);
        match to_node(&mut world, 0, &send) {
            Outcome::NotApplied(Refusal::Abstains { stamp: Some(stamp) }) => stamps.push(stamp),
            other => panic!("it votes: {other:?}"),
        }
    }
    assert_ne!(stamps[0], stamps[1]);
}
