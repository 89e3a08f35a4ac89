//! A lease that is held: renewed, delayed, shortened, lost, given back.

use leasehold_core::config::LockOptionsBuilder;
use leasehold_core::op::{DenialKind, Fault, FaultKind, TransportFault};
use leasehold_core::{NodeConfig, Seq, Wait};
use std::time::Duration;

use crate::format::Vector;
use crate::vectors::scenario::Answer::*;
use crate::vectors::scenario::{Scenario, foreign_holding};

pub(super) fn renewal_delayed() -> Vector {
    let mut s = Scenario::new(
        "renewal_delayed",
        "A renewal that did not succeed leaves the deadline where it is, is told, and is tried again after a random \
         pause, a longer one where the store asks for patience. Nothing but a confirmed renewal moves the deadline, \
         not even an answer that fits another operation.",
    );
    s.hold(1, "r", 7);
    for answers in [
        [Unknown(FaultKind::Timeout), Throttled, Unavailable, NeedsCredentials],
        [Abstains, Denied(DenialKind::Permission), Granted(9), OursAsOf(99)],
    ] {
        for answer in answers {
            s.wake_until_sent().say(0, answer);
        }
        s.wake_until_sent().say(0, Renewed);
    }
    s.wake_until_sent().fail(0, TransportFault::NotSent(Fault::new(FaultKind::Unreachable, "connection refused")));
    s.wake_until_sent().fail(0, TransportFault::Unknown(Fault::of(FaultKind::Cancelled)));
    s.wake_until_sent().say(0, Renewed);
    s.about(&["HeldRenewed", "HeldDelayed", "HeldConfirmed"])
}

pub(super) fn renewal_reply_lost() -> Vector {
    let mut s = Scenario::new(
        "renewal_reply_lost",
        "The reply to a renewal is lost. The next one finds our own record with a number we did not expect: that is \
         success as of the send that the record names, not a takeover, and the deadline counts from that send. \
         A send that the record does not name, or a number that we never used, moves nothing.",
    );
    s.hold(1, "r", 7).wake_until_sent().wake_until_sent().say(0, Ours(1));
    s.wake_until_sent().say(0, Unknown(FaultKind::Reset)).wake_until_sent().say(0, Ours(0));
    s.wake_until_sent().say(0, OursUncounted).wake_until_sent().say(0, Renewed);
    s.wake_until_sent().declare_lost(1).say(0, Renewed);
    s.about(&["HeldRecovered", "HeldDelayed", "HeldConfirmed", "HeldLost"])
}

pub(super) fn lost_by_the_clock() -> Vector {
    let mut s = Scenario::new(
        "lost_by_the_clock",
        "Nothing is needed to lose a lease but the clock: danger is told five seconds before the deadline, the loss at \
         the deadline, not a millisecond before, and once. A reply that comes afterwards revives nothing, and the \
         record is not released, for the work may still be running. A host that slept past it all is told the loss \
         first.",
    );
    s.acquire(1, "no-renewal", |o| o.no_renewal()).say(0, Granted(7));
    s.at(24_397).at(24_398).at(29_397).at(29_398).release(1);
    s.clock(30_000).hold(2, "no-answer", 8);
    s.at(54_300).at(54_398).at(57_400).at(59_000).clock(59_398).say_for(2, 0, Renewed);
    s.clock(60_000).acquire(3, "max-hold", |o| o.max_hold(Duration::from_secs(30))).say(0, Granted(9));
    s.wake_until_sent().say(0, Renewed).wake_until_sent().say(0, Renewed).wake_until_sent().say(0, Renewed);
    s.wake().wake().wake();
    s.acquire(4, "asleep", |o| o).say(0, Granted(10));
    s.clock(600_000).say_to_nobody(4_000);
    s.about(&["HeldExpiring", "HeldLost"])
}

pub(super) fn held_up_past_max_hold() -> Vector {
    let mut s = Scenario::of(
        "held_up_past_max_hold",
        "No renewal leaves once max_hold is over, not even one that was due before while the host did not run: the \
         lease ends with the deadline that it has. So a worker that hangs holds for max_hold and one ttl at most.",
        vec![NodeConfig::default(); 3],
    );
    let capped = |o: LockOptionsBuilder| o.max_hold(Duration::from_secs(40)).renew_every(Duration::from_secs(15));
    s.acquire(1, "r", capped).say(0, Granted(7)).say(1, Granted(7)).say(2, Gone);
    s.at(15_000).say(0, Renewed).say(1, Renewed).at(30_000).say(0, Renewed).say(1, Renewed);
    s.at(40_500).at(54_398).at(59_398);
    s.clock(60_000)
        .acquire(2, "one is slow", |o| o.max_hold(Duration::from_secs(30)).renew_every(Duration::from_millis(10)));
    s.say(0, Granted(8)).say(1, Granted(8)).say(2, Gone).at(75_000).say(0, Renewed).say(1, Renewed);
    s.at(89_985).say(0, Renewed).at(90_000).say(1, Renewed);
    s.about(&["HeldRenewed", "HeldConfirmed", "HeldCapped"])
}

pub(super) fn lost_to_others() -> Vector {
    let mut s = Scenario::new(
        "lost_to_others",
        "A renewal finds that the record is somebody else's, was released by somebody else, or is gone: the lease is \
         lost at once, and the reason says which.",
    );
    for (lock, answer) in [(1, Held(foreign_holding())), (2, OursFreed), (3, Gone)] {
        s.hold(lock, "r", 7).wake_until_sent().say(0, answer);
    }
    s.about(&["HeldTaken"])
}

pub(super) fn revoked() -> Vector {
    let mut s = Scenario::new(
        "revoked",
        "A renewal finds that the record is ours and shows the largest number of a send: the lease was revoked, and is lost \
         at once. The record is released when the caller says so, which is told by no event; otherwise it runs out by itself.",
    );
    let last = || OursAsOf(Seq::LAST.get());
    s.hold(1, "r", 7).wake_until_sent().say(0, last());
    s.acquire(2, "r", |o| o.wait(Wait::Once));
    s.release(1).say(0, Released);
    s.hold(3, "r", 8).wake_until_sent().say(0, last());
    while s.state(3).is_some() {
        s.wake();
    }
    s.about(&["HeldRevoked", "RevokedReleased", "RevokedRanOut"])
}

pub(super) fn renewals_travel_together() -> Vector {
    let mut s = Scenario::of(
        "renewals_travel_together",
        "Renewals of one node that are due within a twelfth of the ttl of each other share a request, up to the most \
         that the node takes. Each lease has its own outcome; one without an outcome is unknown, one too many is \
         ignored. What is far from due stays.",
        vec![NodeConfig { batch: 3, ..NodeConfig::default() }],
    );
    for lock in 1..=4 {
        s.hold(lock, &format!("r{lock}"), 10 * lock);
    }
    s.clock(6_000).hold(9, "later", 99);
    s.wake_until_sent();
    s.say_all(0, &[Renewed, Held(foreign_holding())]);
    s.wake_until_sent().say_all(0, &[Renewed, Renewed, Renewed, Gone, Gone]);
    s.wake_until_sent().fail(0, TransportFault::Unknown(Fault::of(FaultKind::Timeout)));
    s.wake_until_sent();
    s.about(&["HeldRenewed", "HeldConfirmed", "HeldDelayed", "HeldTaken"])
}

pub(super) fn release_unanswered() -> Vector {
    let mut s = Scenario::new(
        "release_unanswered",
        "A lease that is being released is over at once, even with a renewal in flight. The release is repeated until \
         the store has answered for certain, or until the record has run out by itself, which is then told as \
         unconfirmed. 'Not ours' in answer to the first release is a loss; in answer to one that was repeated it leaves the \
         release unconfirmed.",
    );
    s.acquire(1, "r", |o| o.ttl(Duration::from_secs(3))).say(0, Granted(7));
    s.wake_until_sent().release(1).say_to(1, Renewed).say(0, Unknown(FaultKind::Reset));
    for answer in [Throttled, Unavailable, NeedsCredentials, Denied(DenialKind::Other), Abstains] {
        s.wake_until_sent().say(0, answer);
    }
    while s.state(1).is_some() {
        s.wake();
    }
    s.hold(2, "r", 8).release(2).say(0, Gone);
    s.hold(3, "r", 9).release(3).say(0, Held(foreign_holding()));
    s.hold(4, "r", 10).release(4).say(0, Unknown(FaultKind::Reset)).wake_until_sent().say(0, Gone);
    s.hold(5, "r", 11).release(5).say(0, Released);
    s.about(&[
        "HeldReleased",
        "ReleasingSent",
        "ReleasingOpen",
        "ReleasingRanOut",
        "ReleasingTaken",
        "ReleasingUnconfirmed",
        "ReleasingConfirmed",
    ])
}
