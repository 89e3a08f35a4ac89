//! Several nodes that remember which quorum they belong to, and so notice when they have lost their data.

use leasehold_core::config::LockOptionsBuilder;
use leasehold_core::member::{Durability, LossId, QuorumId};
use leasehold_core::op::DenialKind;
use leasehold_core::{Config, NodeConfig, Quorum, Wait};
use std::time::Duration;

use crate::format::Vector;
use crate::vectors::scenario::Answer::*;
use crate::vectors::scenario::{Scenario, foreign_holding};

/// Three nodes, of which the second is declared durable, and records of at most a second: an abstention takes two.
fn three(name: &str, why: &str) -> Scenario {
    let plain = NodeConfig::default();
    let nodes = vec![plain, NodeConfig { durability: Durability::Declared, ..plain }, plain];
    let quorum = Quorum::new(QuorumId([0xa5; 16]), Duration::from_secs(1)).expect("a scenario's quorum");
    Scenario::with(name, why, Config::new(nodes).expect("a scenario's nodes").with_quorum(quorum))
}

fn second(o: LockOptionsBuilder) -> LockOptionsBuilder {
    o.ttl(Duration::from_secs(1)).renew_every(Duration::from_millis(300))
}

pub(super) fn quorum_birth() -> Vector {
    let mut s = three(
        "quorum_birth",
        "Three new nodes know of no quorum. All abstain, each under a stamp of its own, for a little longer than any \
         record may stand; a node whose stamp changes meanwhile starts again. Once all were seen to abstain in one \
         attempt that began after that, they are told that the quorum is born, and the lock is granted.",
    );
    let all = |third| [(0, AbstainsSince(1)), (1, AbstainsSince(2)), (2, AbstainsSince(third))];
    s.acquire(1, "r", second);
    for (node, answer) in all(3) {
        s.say(node, answer);
    }
    s.acquire(2, "s", |o| second(o).wait(Wait::Once));
    for (node, answer) in all(4) {
        s.say_for(2, node, answer);
    }
    while s.elapsed_ms() < 2_100 {
        s.round(&all(4));
    }
    s.round(&[(0, Granted(7)), (1, Granted(7)), (2, Granted(7))]);
    s.round(&[(0, Renewed), (1, Renewed), (2, Renewed)]);
    s.about(&["AcquiringCounted", "AcquiringBlocked", "AcquiringFailed", "AcquiringGranted", "HeldConfirmed"])
}

pub(super) fn quorum_restarted_node() -> Vector {
    let mut s = three(
        "quorum_restarted_node",
        "A node that restarted without its data has no record of ours, but does not vote for a while either, and says \
         so: its time still counts, and the renewal is only delayed. The next send asks for its vote again. One that \
         abstains for nobody has no such excuse: the record is gone, and the lease is worth less; it too is asked \
         for its vote again.",
    );
    s.acquire(1, "r", second).say(0, Granted(7)).say(1, Granted(7)).say(2, Granted(7));
    s.wake_until_sent().say(0, Abstains).say(1, Gone).say(2, Renewed);
    for _ in 0..3 {
        s.round(&[(0, AbstainsSince(1)), (1, Granted(8)), (2, Renewed)]);
    }
    for _ in 0..2 {
        s.round(&[(0, AbstainsSince(1)), (1, Renewed), (2, Renewed)]);
    }
    s.release(1).say(0, Gone).say(1, Released).say(2, Released);
    s.wake_until_sent().say(0, Gone);
    s.about(&["HeldDelayed", "HeldShrunk", "HeldRepaired", "HeldJoined", "HeldConfirmed"])
}

pub(super) fn quorum_rejoined_node() -> Vector {
    let mut s = three(
        "quorum_rejoined_node",
        "A node has lost its data, and its abstention is waited out under one lease. When it votes again its counter is \
         in doubt. An attempt that did not know that the loss is over leaves its answer out; the next one raises the \
         node before it counts, once enough others are known, above all that they have shown. One that refuses for \
         good belongs elsewhere.",
    );
    s.acquire(1, "r", second).say(1, Granted(7)).say(2, Granted(7)).say(0, AbstainsSince(1));
    while s.elapsed_ms() < 1_700 {
        s.round(&[(0, AbstainsSince(1)), (1, Renewed), (2, Renewed)]);
    }
    s.round(&[(0, InDoubt(1, 1)), (1, Renewed), (2, Renewed)]);
    s.round(&[(0, Renewed), (1, Renewed), (2, Renewed)]);
    s.release(1).say(0, Released).say(1, Released).say(2, Released);
    s.acquire(2, "s", second).say(0, InDoubt(1, 1)).say(1, Granted(9)).say(2, Held(foreign_holding()));
    s.say(0, Raised(42)).say(1, Raised(42));
    s.release(2).say(0, Released).say(1, Released);
    s.acquire(3, "t", |o| second(o).wait(Wait::Once)).say(0, InDoubt(1, 3)).say(1, Denied(DenialKind::Membership));
    s.say(0, Released);
    s.acquire(4, "t", |o| second(o).wait(Wait::Once)).say(0, Denied(DenialKind::Membership));
    s.say(1, Denied(DenialKind::Membership));
    s.about(&["HeldJoined", "AcquiringCounted", "AcquiringGranted", "AcquiringFailed", "AcquiringDenied"])
}

pub(super) fn quorum_seen_to_vote() -> Vector {
    let mut s = three(
        "quorum_seen_to_vote",
        "Before its first attempt the host has looked at the nodes: two vote, and one of those is in doubt since a loss. So \
         already the first attempt can raise it, and count it. A look that comes later than an answer changes nothing.",
    );
    s.node_votes(0, Some(LossId([1; 16]))).node_votes(1, None);
    s.acquire(1, "s", |o| second(o).wait(Wait::Once))
        .say(0, InDoubt(1, 1))
        .say(1, Granted(9))
        .say(2, Held(foreign_holding()));
    s.say(0, Raised(42)).say(1, Raised(42));
    s.release(1).say(0, Released).say(1, Released);
    s.node_votes(2, Some(LossId([2; 16])));
    s.acquire(2, "s", |o| second(o).wait(Wait::Once))
        .say(0, Granted(43))
        .say(2, InDoubt(1, 2))
        .say(1, Denied(DenialKind::Other));
    s.say(0, Released).say(2, Released);
    s.about(&["AcquiringCounted", "AcquiringGranted", "AcquiringFailed"])
}

pub(super) fn quorum_bounds() -> Vector {
    let mut s = three(
        "quorum_bounds",
        "No record of a quorum may stand for longer than its nodes abstain after a loss: ttl and lock_delay together \
         are at most `max_ttl`, whatever they are apart.",
    );
    s.acquire(1, "r", |o| second(o).lock_delay(Duration::from_millis(1)));
    s.acquire(1, "r", |o| second(o).ttl(Duration::from_millis(900)).lock_delay(Duration::from_millis(100)));
    s.say(0, Granted(7)).say(1, Granted(7));
    s.about(&["AcquiringGranted"])
}
