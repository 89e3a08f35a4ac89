//! A store that fails gets no more requests than one that works, with any number of leases.

use crate::common::*;
use leasehold_core::op::{Fault, FaultKind, Op, Outcome, Refusal, TransportFault};
use leasehold_core::{LockId, NodeConfig, Transmit};
use std::time::Duration;

const TTL: Duration = secs(30);
/// The time for which the leases of a dead store are still held.
const LENGTH: Duration = secs(20);

#[derive(Clone, Copy, PartialEq)]
enum Node {
    Serves,
    Refuses,
    Throttles,
}

/// The number of renewals and of their requests within [`LENGTH`], once `leases` leases are due at different times.
fn requests(leases: u64, nodes: &[Node], batch: usize) -> usize {
    let config = NodeConfig { batch, ..NodeConfig::default() };
    let mut world = World::of(vec![config; nodes.len()], 1);
    for id in 0..leases {
        world.acquire(0, id, &format!("r{id}"), options());
        world.deliver_all();
        world.jump(Duration::from_nanos(u64::try_from(TTL.as_nanos()).unwrap() / 4 / leases));
    }
    world.take_events(0);
    let (end, mut sent) = (world.time + LENGTH, 0);
    while world.time < end {
        while let Some(transmit) = world.hosts[0].wire.pop_front() {
            sent += usize::from(transmit.ops.iter().any(|op| matches!(op.op, Op::Renew(_) | Op::Acquire(_))));
            let count = transmit.ops.len();
            let result = match nodes[transmit.node.index()] {
                Node::Serves => Ok(world.perform(&transmit)),
                Node::Refuses => Err(TransportFault::NotSent(Fault::of(FaultKind::Unreachable))),
                Node::Throttles => Ok(vec![Outcome::NotApplied(Refusal::Throttled(Fault::of(FaultKind::Busy))); count]),
            };
            world.answer(0, transmit.id, result);
        }
        let next = world.hosts[0].wake_at.since(world.now(0).monotonic).max(ms(1));
        world.jump(next.min(end - world.time));
        world.tick(0);
    }
    sent
}

#[test]
fn failing_store_gets_no_more_requests_than_a_working_one() {
    use Node::{Refuses, Serves, Throttles};
    for (leases, batch) in [(100, 100), (1_000, 100), (32, 1), (1_000, 1)] {
        let healthy = requests(leases, &[Serves], batch);
        for node in [Refuses, Throttles] {
            let sick = requests(leases, &[node], batch);
            assert!(sick <= healthy, "{leases} leases, batches of {batch}: {sick} requests, {healthy} where it serves");
        }
    }
}

/// A single lease tries a few times more before it ends.
#[test]
fn a_lease_tries_a_bounded_number_of_times() {
    let healthy = requests(1, &[Node::Serves], 100);
    for node in [Node::Refuses, Node::Throttles] {
        let sick = requests(1, &[node], 100);
        assert!((2..=12).contains(&sick), "{sick} requests in two thirds of a ttl, {healthy} where it serves");
    }
}

#[test]
fn quorum_with_a_node_down_gets_no_more_requests() {
    use Node::{Refuses, Serves, Throttles};
    for leases in [1, 100, 1_000] {
        let healthy = requests(leases, &[Serves, Serves, Serves], 100);
        for node in [Refuses, Throttles] {
            let sick = requests(leases, &[Serves, Serves, node], 100);
            assert!(sick <= healthy + 1, "{leases} leases: {sick} requests, {healthy} where all serve");
        }
    }
}

#[test]
fn renewals_of_a_quorum_travel_together_as_those_of_one_store_do() {
    let [one, three] = [1, 3].map(|nodes| requests(1_000, &vec![Node::Serves; nodes], 100));
    assert!(three <= 3 * one, "{three} requests to three nodes, {one} to one");
}

/// The sends of one lease stand in the order of the nodes, and so between those of the next lease.
#[test]
fn renewals_of_one_node_leave_in_the_order_of_their_leases() {
    let mut world = World::of(vec![NodeConfig::default(); 3], 1);
    for id in 0..5 {
        world.acquire(0, id, &format!("r{id}"), options());
        world.deliver_all();
    }
    while world.hosts[0].wire.is_empty() {
        world.jump(ms(100));
        world.tick(0);
    }
    let of_node = |transmit: &Transmit| (transmit.node.index(), transmit.ops.iter().map(|op| op.lock).collect());
    let sent: Vec<(usize, Vec<LockId>)> = world.hosts[0].wire.iter().map(of_node).collect();
    let first = sent[0].1.clone();
    assert_eq!((first.len(), sent), (5, (0..3).map(|node| (node, first.clone())).collect()));
}
