//! Several nodes: a majority decides, each vouches for its own time, and the token is what a majority answered exactly.

use leasehold_core::NodeConfig;
use leasehold_core::Wait;
use leasehold_core::op::{DenialKind, FaultKind};
use std::time::Duration;

use crate::format::Vector;
use crate::vectors::scenario::Answer::*;
use crate::vectors::scenario::{Scenario, foreign_holding};

fn three(name: &str, why: &str) -> Scenario {
    Scenario::of(name, why, vec![NodeConfig::default(); 3])
}

pub(super) fn quorum_grant() -> Vector {
    let mut s = three(
        "quorum_grant",
        "Three nodes are asked at once with one floor. Their counters differ, so the lower one is raised before the \
         lock is granted: the token is what a majority answered exactly. The third node joins later. A node that loses \
         the record takes its time with it; with the majority gone the lease is lost.",
    );
    s.acquire(1, "r", |o| o).clock(5).say(0, Granted(5)).clock(6).say(1, Granted(7)).clock(9).say(0, Raised(7));
    s.clock(12).say(2, Granted(6));
    s.wake_until_sent();
    s.say(0, Renewed).say(1, Gone).say(2, Held(foreign_holding()));
    s.acquire(2, "r", |o| o).say(2, Granted(9)).say(0, Granted(8)).say(1, Granted(8));
    s.release(2).say(0, Released).say(1, Released).say(2, Gone);
    s.wake_until_sent().say(2, Released);
    s.about(&[
        "AcquiringCounted",
        "AcquiringGranted",
        "HeldJoined",
        "HeldRenewed",
        "HeldConfirmed",
        "HeldShrunk",
        "HeldTaken",
        "ReleasingConfirmed",
    ])
}

pub(super) fn quorum_renewals() -> Vector {
    let mut s = three(
        "quorum_renewals",
        "Every node is renewed on its own: a slow one delays no other. The deadline is the time that a majority \
         vouches for, so it moves only when the second best does. A release goes to every node that may have a record; \
         where an acquire may yet land, 'not ours' is asked once more.",
    );
    s.acquire(1, "r", |o| o).say(0, Granted(7)).clock(3).say(1, Granted(7)).say(2, Unknown(FaultKind::Reset));
    s.wake_until_sent();
    s.say(0, Unknown(FaultKind::Timeout)).wake_until_sent();
    s.say(1, Renewed).wake_until_sent().say(0, Renewed);
    s.wake_until_sent();
    s.release(1).say(0, Released).say(1, Released).say(2, Gone);
    s.wake_until_sent().say(2, Gone);
    s.about(&["HeldDelayed", "HeldRenewed", "HeldConfirmed", "ReleasingOpen", "ReleasingConfirmed"])
}

pub(super) fn quorum_node_down() -> Vector {
    let mut s = Scenario::of(
        "quorum_node_down",
        "A node that serves nobody is asked by one request at a time: the renewal of another lease waits for its answer, \
         while the other nodes are asked as ever.",
        vec![NodeConfig { batch: 1, ..NodeConfig::default() }; 3],
    );
    for lock in [1, 2] {
        s.acquire(lock, &format!("r{lock}"), |o| o.ttl(Duration::from_secs(3)));
        for node in 0..3 {
            s.say_for(lock, node, Granted(7));
        }
    }
    while !s.has_renewed(1) || !s.has_renewed(2) {
        s.wake();
    }
    s.say_for(1, 1, Unavailable).say_for(2, 1, Unavailable);
    s.wake().wake();
    s.about(&["HeldRenewed", "HeldDelayed", "HeldPostponed"])
}

pub(super) fn quorum_late_nodes() -> Vector {
    let mut s = three(
        "quorum_late_nodes",
        "A node that answers after the majority was reached may move the deadline out, since the two best count, also \
         while others are being renewed. When a node turns out to have no record, the others vouch for less, and the \
         deadline moves in.",
    );
    s.acquire(1, "r", |o| o);
    s.say(0, Unknown(FaultKind::Reset)).say(2, Unknown(FaultKind::Reset)).wake_until_sent();
    s.say(0, Granted(7)).say(1, Granted(7)).clock(40).say(2, Granted(7));
    s.wake_until_sent().wake_until_sent().say(2, Gone).release(1);
    s.say(0, Released).say(1, Released);
    s.acquire(2, "quick", |o| o.renew_every(Duration::from_millis(10)));
    s.say(0, Unknown(FaultKind::Reset)).say(2, Unknown(FaultKind::Reset)).wake_until_sent();
    s.say(0, Granted(9)).say(1, Granted(9)).say(2, Granted(9));
    s.wake();
    s.about(&["HeldJoined", "HeldRenewed", "HeldShrunk"])
}

pub(super) fn quorum_lost_tally() -> Vector {
    let mut s = three(
        "quorum_lost_tally",
        "As soon as a majority can no longer be reached the attempt is over, and is released on every node that is not \
         known to have refused: the one that granted, and the one that never answered. Of several obstacles the caller \
         hears the one that a person should look at first. Two nodes that refuse for good end the wait.",
    );
    let once = |o: leasehold_core::config::LockOptionsBuilder| o.wait(Wait::Once);
    s.acquire(1, "r", once).say(0, Granted(5)).say(1, Unavailable).say(2, Held(foreign_holding()));
    s.say(0, Released);
    s.acquire(2, "r", |o| o).say(1, Throttled).say(2, Held(foreign_holding()));
    s.say_to(4, Granted(6)).say(0, Released);
    s.wake_until_sent().say(0, Denied(DenialKind::Permission)).say(2, Unavailable);
    s.wake_until_sent().say(0, Denied(DenialKind::Permission)).say(1, Denied(DenialKind::Schema));
    s.about(&["AcquiringCounted", "AcquiringFailed", "AcquiringBlocked", "AcquiringDenied", "WaitingStarted"])
}

pub(super) fn quorum_raise_fails() -> Vector {
    let mut s = three(
        "quorum_raise_fails",
        "A raise whose fate is unknown is sent again; one that finds no record of ours any more takes the node out of \
         the count; an answer above the token starts the count again from there.",
    );
    s.acquire(1, "r", |o| o).say(0, Granted(5)).say(1, Granted(7));
    s.say(0, Unknown(FaultKind::Timeout)).say(0, Throttled).wake_until_sent().say(0, Raised(8));
    s.say(1, Raised(8));
    s.acquire(2, "s", |o| o).say(0, Granted(5)).say(1, Granted(7)).say(0, Gone).say(2, Held(foreign_holding()));
    s.about(&["AcquiringCounted", "AcquiringUnknown", "AcquiringResent", "AcquiringGranted", "AcquiringBlocked"])
}

pub(super) fn quorum_grant_too_late() -> Vector {
    let mut s = three(
        "quorum_grant_too_late",
        "A ttl of 100 ms is valid for 96. The second grant takes three sends, and the raise that it makes necessary \
         another three, so that the majority is there when the first grant's validity is already over: that is no \
         lease, and both nodes are released.",
    );
    s.acquire(1, "r", |o| o.ttl(Duration::from_millis(100)).no_renewal().wait(Wait::Once)).say(0, Granted(5));
    s.say(2, Held(foreign_holding()));
    s.wake().wake().clock(49).say(1, Granted(7));
    s.wake().wake().clock(97).say(0, Raised(7));
    s.say(0, Released).say(1, Released);
    s.about(&["AcquiringResent", "AcquiringFailed", "ReleasingConfirmed"])
}
