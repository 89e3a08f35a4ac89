//! A client that was copied, by a fork or with its whole machine: the copies never use the same nonce.

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash, Hasher};

use crate::common::*;
use leasehold_core::{Client, Entropy, Nonce, Output};

/// The attempts that a client started, in the order in which their requests leave.
fn attempts(client: &mut Client, world: &World) -> Vec<Nonce> {
    let mut nonces = Vec::new();
    loop {
        match client.poll_output(world.now(0)) {
            Output::Transmit(transmit) => nonces.extend(transmit.ops.iter().filter_map(|op| op.op.nonce())),
            Output::WakeAt(_) => return nonces,
            Output::Event(_)
            | Output::Subscribe { .. }
            | Output::Unsubscribe { .. }
            | Output::NeedCredentials { .. }
            | Output::Rejected { .. } => {}
        }
    }
}

const OURS: Entropy = [1; 16];
const THEIRS: Entropy = [2; 16];

#[test]
fn cloned_clients_acquire_with_different_nonces() {
    let world = World::new(1);
    let mut parent = world.hosts[0].client.clone();
    let mut child = parent.clone();
    let now = world.now(0);
    parent.acquire(lock(1), resource("r"), options(), &OURS, now).unwrap();
    child.acquire(lock(1), resource("r"), options(), &THEIRS, now).unwrap();
    let (ours, theirs) = (attempts(&mut parent, &world), attempts(&mut child, &world));
    assert_eq!((ours.len(), theirs.len()), (1, 1));
    assert_ne!(ours, theirs, "the same seed, the same lock, the same attempt");
}

#[test]
fn cloned_clients_wake_with_different_nonces() {
    let mut world = World::new(2);
    world.hold(1, 1, "r", options());
    world.acquire(0, 1, "r", options());
    world.deliver_all();
    world.jump(secs(2));
    let mut parent = world.hosts[0].client.clone();
    let mut child = parent.clone();
    let now = world.now(0);
    parent.handle_timeout(&OURS, now);
    child.handle_timeout(&THEIRS, now);
    let (ours, theirs) = (attempts(&mut parent, &world), attempts(&mut child, &world));
    assert_eq!((ours.len(), theirs.len()), (1, 1));
    assert_ne!(ours, theirs);
}

#[test]
fn attempts_start_only_in_calls_with_fresh_bytes() {
    let mut world = World::new(2);
    world.hold(1, 1, "r", options());
    world.acquire(0, 1, "r", options());
    world.deliver_all();
    world.jump(secs(2));
    let now = world.now(0);
    world.hosts[0].client.notified(&resource("r"), now);
    world.drain(0);
    assert_eq!(world.on_the_wire(0), [""; 0], "polling alone starts nothing");
    assert!(world.hosts[0].wake_at <= now.monotonic, "it asks for a call that brings fresh bytes");
    world.tick(0);
    assert_eq!(world.on_the_wire(0), ["acquire"]);
}

#[test]
fn every_attempt_has_its_own_nonce() {
    let mut world = World::new(2);
    world.hold(1, 1, "r", options());
    let mut seen = BTreeSet::new();
    // The embedder always passes the same bytes: locks and attempts must still differ.
    for id in 0..50 {
        let now = world.now(0);
        world.hosts[0].client.acquire(lock(id), resource(&format!("r{id}")), options(), &OURS, now).unwrap();
        let mut client = world.hosts[0].client.clone();
        seen.extend(attempts(&mut client, &world));
        world.drain(0);
    }
    assert_eq!(seen.len(), 50);
}

#[test]
fn every_attempt_at_one_lock_has_its_own_nonce() {
    let mut world = World::new(1);
    let mut seen = BTreeSet::new();
    let now = world.now(0);
    world.hosts[0].client.acquire(lock(1), resource("r"), options(), &OURS, now).unwrap();
    for _ in 0..50 {
        world.drain(0);
        let attempt = world.take(0);
        seen.insert(attempt.ops[0].op.nonce());
        let now = world.now(0);
        let refused = conflict(Some(holding(other_nonce(), Some(1))));
        world.hosts[0].client.handle_response(attempt.id, Ok(vec![refused]), now);
        world.drain(0);
        world.time = world.hosts[0].true_time_of(world.hosts[0].wake_at);
        let now = world.now(0);
        world.hosts[0].client.handle_timeout(&OURS, now);
    }
    assert_eq!(seen.len(), 50);
}

#[test]
fn attempts_of_one_step_have_their_own_nonces() {
    use leasehold_core::Input;
    let mut world = World::new(1);
    let now = world.now(0);
    let acquire = |id, name: &str| Input::Acquire { lock: lock(id), resource: resource(name), options: options() };
    // The same id twice, and once more behind another: three generations, all in one call with one draw of bytes.
    let inputs = [
        acquire(1, "a"),
        Input::Release { lock: lock(1) },
        acquire(2, "b"),
        acquire(1, "b"),
        Input::Release { lock: lock(2) },
    ];
    let mut outputs = Vec::new();
    world.hosts[0].client.step(&OURS, now, &inputs, &mut outputs);
    let mut nonces = Vec::new();
    for output in &outputs {
        if let Output::Transmit(transmit) = output {
            nonces.push((transmit.ops[0].resource.clone(), transmit.ops[0].op.nonce().unwrap()));
        }
    }
    let distinct: BTreeSet<_> = nonces.iter().map(|(_, nonce)| *nonce).collect();
    assert_eq!(distinct.len(), 3, "{nonces:?}");
}

#[test]
fn seed_changes_jitter_but_alone_makes_no_nonce() {
    let mut world = World::new(1);
    let mut other = world.hosts[0].client.clone();
    other.reseed([9; 32]);
    let now = world.now(0);
    world.hosts[0].client.acquire(lock(1), resource("r"), options(), &OURS, now).unwrap();
    other.acquire(lock(1), resource("r"), options(), &OURS, now).unwrap();
    let mut first = world.hosts[0].client.clone();
    assert_ne!(attempts(&mut first, &world), attempts(&mut other, &world));
}

#[test]
fn equal_inputs_give_equal_clients() {
    let run = || {
        let mut world = World::new(2);
        world.hold(0, 1, "r", options());
        world.acquire(1, 1, "r", options());
        world.pass(secs(100));
        (world.hosts[0].client.clone(), world.hosts[1].client.clone(), world.hosts[1].events.clone())
    };
    let hash = |client: &Client| {
        let mut hasher = DefaultHasher::new();
        client.hash(&mut hasher);
        hasher.finish()
    };
    let (one, other) = (run(), run());
    assert_eq!(one, other);
    assert_eq!(hash(&one.0), hash(&other.0));
    assert_ne!(hash(&one.0), hash(&one.1));
}

#[test]
fn randomness_of_one_lock_does_not_affect_another() {
    let pauses = |crowd: u64| {
        let mut world = World::new(2);
        world.hold(1, 1, "r", options());
        for id in 100..100 + crowd {
            world.acquire(0, id, "r", with(|o| o.wait(leasehold_core::Wait::Once)));
            world.deliver_all();
        }
        world.acquire(0, 1, "r", options());
        let mut tries = Vec::new();
        for _ in 0..10 {
            world.deliver(0);
            world.pass_until_sent(0);
            tries.push(world.time);
        }
        tries
    };
    assert_eq!(pauses(0), pauses(7));
}
