//! Somebody or something is in the way: waiting, looking, being woken, standing in the queue.

use leasehold_core::config::{LockOptionsBuilder, Poll};
use leasehold_core::op::{DenialKind, FaultKind, Holder, Holding};
use leasehold_core::{NodeConfig, Version, Wait};
use std::time::Duration;

use crate::format::Vector;
use crate::vectors::scenario::Answer::*;
use crate::vectors::scenario::{Scenario, foreign_holding};

fn once(o: LockOptionsBuilder) -> LockOptionsBuilder {
    o.wait(Wait::Once)
}

fn patient(ms: u64) -> impl FnOnce(LockOptionsBuilder) -> LockOptionsBuilder {
    move |o| o.wait(Wait::For(Duration::from_millis(ms)))
}

fn left(ms: u64) -> Holding {
    Holding { left: Some(Duration::from_millis(ms)), ..foreign_holding() }
}

/// A store that cannot say when a record ends: observers wait it out.
fn unmoved(version: u8, record_ttl_ms: u64) -> Holding {
    Holding {
        version: Version::new(&[version; 4]).expect("a version"),
        left: None,
        record_ttl: Some(Duration::from_millis(record_ttl_ms)),
        ..foreign_holding()
    }
}

pub(super) fn held_by_another() -> Vector {
    let mut s = Scenario::new(
        "held_by_another",
        "Somebody else holds the lock. That is told once, and tried again after a random sleep that doubles, or when \
         the record in the way runs out if that is sooner; every attempt has a nonce of its own. Who asks once is told \
         at once who holds it.",
    );
    s.acquire(1, "r", |o| o).clock(10).say(0, Held(foreign_holding()));
    for _ in 0..4 {
        s.wake().say(0, Held(foreign_holding()));
    }
    s.wake().say(0, Held(left(40))).wake().say(0, Granted(42));
    s.acquire(2, "other", once).say(0, Held(foreign_holding()));
    s.acquire(3, "other", once).say(0, Gone);
    s.release(1).say(0, Released);
    s.about(&["AcquiringBlocked", "WaitingStarted", "AcquiringGranted", "AcquiringFailed"])
}

pub(super) fn store_in_the_way() -> Vector {
    let mut s = Scenario::new(
        "store_in_the_way",
        "What keeps a lock from being had is told apart: the store asks for patience (and is given more of it), cannot \
         be reached, does not vote yet, or holds a record. When the wait ends, the last of these is the failure; who \
         asks once hears it at once.",
    );
    s.acquire(1, "throttled", patient(600)).say(0, Throttled).wake().say(0, Throttled).wake().say(0, Throttled);
    s.at(600);
    s.acquire(2, "away", patient(300)).say(0, Unavailable).wake().say(0, Unavailable).at(900);
    s.acquire(3, "abstains", patient(50)).say(0, Abstains).at(950);
    s.acquire(4, "r", once).say(0, Throttled);
    s.acquire(5, "r", once).say(0, Unavailable);
    s.acquire(6, "r", once).say(0, Abstains);
    s.about(&["AcquiringBlocked", "WaitingStarted", "WaitingOver", "AcquiringFailed"])
}

pub(super) fn wait_ends() -> Vector {
    let mut s = Scenario::new(
        "wait_ends",
        "A wait ends on time and not before, whether its attempt sleeps, is in flight, or stands behind another \
         acquisition of the same client; a cancel ends it at once. An attempt that is in flight at the end is still \
         awaited, and may yet be granted.",
    );
    s.acquire(1, "asleep", patient(1_000)).say(0, Held(foreign_holding()));
    s.acquire(2, "cancelled", |o| o).say(0, Held(foreign_holding())).release(2);
    s.acquire(3, "line", |o| o).say(0, Granted(9));
    s.acquire(4, "line", patient(400)).acquire(5, "line", |o| o).clock(200).release(5);
    s.at(399).at(400);
    // The sleeper tries several times, and is always told the same.
    for _ in 0..20 {
        let before = s.sent();
        s.wake();
        if s.sent() > before {
            s.say_for(1, 0, Held(foreign_holding()));
        }
        if s.elapsed_ms() >= 1_000 {
            break;
        }
    }
    s.acquire(6, "in-flight", patient(100)).clock(1_400).say(0, Granted(10));
    s.about(&["IdleWaitOver", "IdleCancelled", "WaitingOver", "WaitingCancelled"])
}

pub(super) fn wake_ups() -> Vector {
    let watch = |poll| NodeConfig { watch: true, poll, ..NodeConfig::default() };
    let mut s = Scenario::of(
        "wake_ups",
        "A store that tells of releases is asked to once somebody has to wait, and until nobody of this client wants \
         the lock any more. A confirmed subscription and every wake-up start an attempt at once; one that comes while \
         an attempt is in flight is not forgotten; one for a resource that nobody waits for means nothing, and while \
         the store asks for patience none is heeded.",
        vec![watch(Poll::Read)],
    );
    s.acquire(1, "r", |o| o).say(0, Held(foreign_holding()));
    s.subscribed(0, "r").say(0, Held(foreign_holding()));
    s.clock(5).notified("r").notified("r").say(0, Held(foreign_holding()));
    s.say(0, Throttled);
    s.clock(9).notified("nobody").notified("r");
    s.wake_until_sent().say(0, Held(foreign_holding())).notified("r").say(0, Granted(42)).notified("r");
    s.release(1).say(0, Released);
    s.about(&["WaitingWoken", "WaitingStarted", "AcquiringGranted"])
}

pub(super) fn look_before_write() -> Vector {
    let mut s = Scenario::of(
        "look_before_write",
        "Where a refused write costs more than a look, a waiter looks, and writes only once the record is gone or has \
         run out. A look whose fate is unknown is repeated; one that is denied for good ends the acquisition.",
        vec![NodeConfig { poll: Poll::Read, ..NodeConfig::default() }],
    );
    s.acquire(1, "r", |o| o).say(0, Held(foreign_holding()));
    s.wake().say(0, Sees(foreign_holding()));
    s.wake().say(0, Unknown(FaultKind::Reset));
    s.wake().say(0, Throttled);
    s.wake().wake().wake().say(0, Renewed);
    s.wake().say(0, Sees(Holding { released: true, ..foreign_holding() })).say(0, Held(left(30)));
    s.wake().say(0, SeesNothing).say(0, Granted(42));
    s.acquire(2, "r2", |o| o)
        .say(0, Held(foreign_holding()))
        .wake()
        .say(0, SeesNothing)
        .say(0, Held(foreign_holding()));
    s.wake().say(0, Denied(DenialKind::Permission));
    s.about(&["WaitingLooked", "WaitingSaw", "WaitingStarted", "WaitingDenied"])
}

pub(super) fn takeover_by_observation() -> Vector {
    let mut s = Scenario::of(
        "takeover_by_observation",
        "A store that ends no record by itself: whoever waits takes over a version that it has seen unchanged for the \
         whole ttl written in it and the drift of both clocks, counted from after the reply that showed it. Any change \
         starts over. A record of another library gets a wider margin. The observation outlives the attempt that made \
         it.",
        vec![NodeConfig { poll: Poll::Read, ..NodeConfig::default() }],
    );
    s.acquire(1, "ours", once).clock(40).say(0, Held(unmoved(1, 1_000)));
    s.acquire(2, "ours", |o| o).say(0, Held(unmoved(2, 1_000)));
    for _ in 0..30 {
        let before = s.sent();
        s.wake();
        if s.sent() == before {
            continue;
        }
        if s.last_is_acquire() {
            s.say(0, Granted(50));
            break;
        }
        s.say(0, Sees(unmoved(2, 1_000)));
    }
    s.clock(3_000);
    let foreign = |version| Holding { holder: Holder::Foreign, counter: None, owner: None, ..unmoved(version, 500) };
    s.acquire(3, "foreign", once).say(0, Held(foreign(7)));
    s.clock(3_512).acquire(4, "foreign", once).say(0, Held(foreign(7)));
    s.clock(3_513).acquire(5, "foreign", once).say(0, Granted(51));
    s.about(&["AcquiringBlocked", "WaitingLooked", "WaitingSaw", "WaitingStarted", "AcquiringGranted"])
}

pub(super) fn local_line() -> Vector {
    let mut s = Scenario::new(
        "local_line",
        "Acquisitions of one resource in one client stand in a queue, and only the first asks the store. The next one's \
         turn comes when the first gives up, is lost, or has had an answer to its release. An acquisition that asks once for a lock does not \
         stand behind an attempt or a lease, and is told of it as of anybody's; but it does stand behind the end of \
         one. Runs differ: see `run_joined`.",
    );
    s.acquire(1, "r", |o| o.owner("first")).acquire(2, "r", |o| o).acquire(3, "r", |o| o).acquire(4, "r", |o| o);
    s.acquire(5, "r", once);
    s.clock(10).say(0, Granted(7)).acquire(6, "r", once);
    s.release(3);
    s.clock(20).release(1).acquire(7, "r", |o| o).say(0, Released).say(0, Granted(8));
    s.declare_lost(2).say(0, Held(foreign_holding())).release(4);
    s.say(0, Granted(9)).release(7).acquire(8, "r", once).say(0, Unknown(FaultKind::Reset));
    s.say_for(8, 0, Granted(10));
    s.wake_until_sent().say_for(7, 0, Gone);
    s.release(8).say_for(8, 0, Released);
    s.about(&["IdleStarted", "IdleCancelled", "HeldLost", "ReleasingOpen", "ReleasingConfirmed"])
}
