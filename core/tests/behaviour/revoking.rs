//! Revocations that a client asks for: on all nodes, with news for the session of the holder.

use leasehold_core::config::Poll;
use leasehold_core::op::{Fault, FaultKind, Outcome, Refusal};
use leasehold_core::{Config, Event, LostReason, NodeConfig, NodeId, Nonce, ReadId, Revocation, SessionLabel};

use crate::common::*;
use crate::quorum_memory::born;

/// The request timeout of these clients.
const TIMEOUT: std::time::Duration = ms(500);

fn ask(world: &mut World, host: usize, holder: Nonce) -> ReadId {
    let now = world.now(host);
    let id = world.hosts[host].client.revoke(&resource("r"), holder, now);
    world.drain(host);
    id
}

fn take(world: &mut World, host: usize, id: ReadId) -> Option<Revocation> {
    world.hosts[host].client.take_revoke(id)
}

/// Carries all requests, and returns what has become of the revocation.
fn revoke(world: &mut World, host: usize, holder: Nonce) -> Revocation {
    let id = ask(world, host, holder);
    world.deliver_all();
    take(world, host, id).unwrap()
}

fn holder(world: &World, id: u64) -> Nonce {
    world.hosts[0].client.nonce(lock(id)).unwrap()
}

fn is_marked(world: &World, node: usize) -> bool {
    world.record(node, "r").lease.as_ref().is_some_and(|lease| lease.seq == leasehold_core::Seq::LAST)
}

#[test]
fn a_lease_is_revoked_on_all_nodes_and_that_is_told_once() {
    let mut world = born(2);
    world.hold(0, 1, "r", options());
    let lease = holder(&world, 1);
    let id = ask(&mut world, 1, lease);
    assert_eq!(world.on_the_wire(1), ["revoke"; 3]);
    world.deliver(1);
    assert_eq!(take(&mut world, 1, id), None, "two have not answered");
    world.deliver_all();
    assert_eq!(take(&mut world, 1, id), Some(Revocation { is_revoked: Some(true), troubles: Vec::new() }));
    assert_eq!(take(&mut world, 1, id), None);
    assert!((0..3).all(|node| is_marked(&world, node)));
    world.pass(secs(10));
    assert_eq!(loss(&world.take_events(0)), LostReason::Revoked);
}

#[test]
fn a_lease_that_is_over_is_not_revoked_and_its_successor_is_left_alone() {
    let mut world = born(2);
    world.hold(0, 1, "r", options());
    let lease = holder(&world, 1);
    world.release(0, 1);
    world.deliver_all();
    world.hold(0, 2, "r", options());
    assert_eq!(revoke(&mut world, 1, lease), Revocation { is_revoked: Some(false), troubles: Vec::new() });
    assert!((0..3).all(|node| !is_marked(&world, node)));
}

#[test]
fn a_majority_is_enough_and_a_minority_leaves_it_open() {
    for (silent, is_revoked) in [(1_u16, Some(true)), (2, None)] {
        let mut world = born(2);
        world.hold(0, 1, "r", options());
        let lease = holder(&world, 1);
        let id = ask(&mut world, 1, lease);
        for node in silent..3 {
            world.deliver_to(1, node);
        }
        // Those that are silent stay so when they are asked about sessions.
        world.pass_cut_off(TIMEOUT);
        for node in silent..3 {
            world.deliver_to(1, node);
        }
        world.pass_cut_off(TIMEOUT);
        let Revocation { is_revoked: told, troubles } = take(&mut world, 1, id).unwrap();
        assert_eq!((told, troubles.len()), (is_revoked, usize::from(silent)));
        assert!(troubles.iter().all(|trouble| matches!(trouble, Outcome::Unknown(_))), "{troubles:?}");
    }
}

#[test]
fn what_the_store_refuses_is_told() {
    let mut world = World::new(2);
    world.hold(0, 1, "r", options());
    let lease = holder(&world, 1);
    let id = ask(&mut world, 1, lease);
    let refusal = Outcome::NotApplied(Refusal::Throttled(Fault::of(FaultKind::Server)));
    world.answer_with(1, refusal.clone());
    assert_eq!(take(&mut world, 1, id), Some(Revocation { is_revoked: None, troubles: vec![refusal] }));
}

/// Clients of a store that expires nothing, the first of which has a session.
fn with_session() -> World {
    let node = NodeConfig { poll: Poll::Read, ..NodeConfig::default() };
    let config = || Config::new(vec![node]).unwrap().with_observed([NodeId::new(0)]);
    let mut world = World::with_config(&config(), 0);
    world.add_host(&config().with_session(SessionLabel::new("a").unwrap()), 0);
    world.add_host(&config(), 0);
    world.hold(0, 1, "r", options());
    world
}

#[test]
fn the_session_of_the_holder_is_told() {
    let mut world = with_session();
    let lease = holder(&world, 1);
    assert_eq!(revoke(&mut world, 1, lease).is_revoked, Some(true));
    world.pass(secs(10));
    assert_eq!(loss(&world.take_events(0)), LostReason::Revoked);
}

#[test]
fn a_lease_whose_session_could_not_be_told_may_go_on_until_it_is_revoked_again() {
    let mut world = with_session();
    let lease = holder(&world, 1);
    let id = ask(&mut world, 1, lease);
    for asked in ["revoke", "read", "tell"] {
        assert_eq!(world.on_the_wire(1), [asked]);
        if asked != "tell" {
            world.deliver(1);
        }
    }
    world.take(1);
    world.pass_cut_off(secs(1));
    assert_eq!(take(&mut world, 1, id).map(|revocation| revocation.is_revoked), Some(None));
    world.pass(secs(60));
    assert!(!has(&world.take_events(0), |event| matches!(event, Event::Lost { .. })), "it does not know");
    assert_eq!(revoke(&mut world, 1, lease).is_revoked, Some(true));
    world.pass(secs(10));
    assert_eq!(loss(&world.take_events(0)), LostReason::Revoked);
}

#[test]
fn a_session_that_is_over_need_not_be_told() {
    let mut world = with_session();
    let lease = holder(&world, 1);
    let id = ask(&mut world, 1, lease);
    world.deliver(1);
    world.deliver(1);
    world.stores[0].records.retain(|name, _| name.as_str() == "r");
    world.deliver_all();
    assert_eq!(take(&mut world, 1, id).map(|revocation| revocation.is_revoked), Some(Some(true)));
}
