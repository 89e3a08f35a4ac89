//! Quorums with late messages, and with nodes that were down for long.

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

/// Delivers everything except the messages to one node, for this long.
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

/// Our record has run out on that node, and it can be acquired again by the same attempt.
#[test]
fn node_down_longer_than_the_ttl_is_repaired() {
    let mut world = born(1);
    world.hold(0, 1, "r", options());
    pass_without(&mut world, 2, secs(90));
    assert!(!world.is_held(2, "r"), "kept, and over");
    world.pass(secs(60));
    assert!(world.is_held(2, "r"), "asked for its vote again, and it gave it");
    // It counts: another node may fail.
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

/// The acquire and raise of a client that left long ago arrive at a node that has lost its data since.
#[test]
fn raise_for_an_earlier_loss_restores_no_trust() {
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

/// After the second loss, a proxy delivers again the send that found the first one.
#[test]
fn duplicated_send_gives_two_losses_different_ids() {
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
