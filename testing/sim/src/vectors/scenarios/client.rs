//! Scenarios of the client as a whole: commands, responses, clocks, limits, its end.

use leasehold_core::config::Limits;
use leasehold_core::op::FaultKind;
use leasehold_core::{Config, NodeConfig, Wait};

use crate::format::Vector;
use crate::vectors::scenario::Answer::*;
use crate::vectors::scenario::{Scenario, foreign_holding, token};

pub(super) fn credentials() -> Vector {
    let mut s = Scenario::of(
        "credentials",
        "A node that wants fresh credentials is reported once, however many requests it refuses. Once it has them, \
         whoever waits tries again, but only once if the fresh ones are refused too; later they may run out again.",
        vec![NodeConfig::default(); 2],
    );
    s.acquire(1, "a", |o| o).say(0, NeedsCredentials).acquire(2, "b", |o| o).say_for(2, 0, NeedsCredentials);
    s.clock(2).credentials_renewed(0).credentials_renewed(0).credentials_renewed(1).credentials_renewed(9);
    s.say_for(1, 0, NeedsCredentials).say_for(2, 0, Granted(7)).say_for(2, 1, Granted(7));
    s.credentials_renewed(0).wake_until_sent();
    s.about(&["AcquiringBlocked", "WaitingWoken", "WaitingStarted"])
}

pub(super) fn bad_commands() -> Vector {
    let limits = Limits { locks: 2, ..Limits::default() };
    let config = Config::new(vec![NodeConfig::default()]).and_then(|config| config.with_limits(limits));
    let mut s = Scenario::with(
        "bad_commands",
        "A command that makes no sense is refused and disturbs nothing: an id in use, a lock that was never acquired \
         or is over, one lock too many, anything new after the client was closed. A method returns the error; a step \
         puts it out as `rejected`.",
        config.expect("a scenario's settings"),
    );
    s.acquire(1, "r", |o| o).acquire(1, "other", |o| o).release(9).declare_lost(9);
    s.say(0, Granted(7)).acquire(2, "r", |o| o).acquire(3, "more", |o| o);
    s.declare_lost(1).declare_lost(1).release(1).acquire(1, "again", |o| o);
    s.close().acquire(4, "new", |o| o).close();
    s.about(&["IdleStarted", "HeldLost", "AcquiringCancelled"])
}

pub(super) fn closing() -> Vector {
    let watch = NodeConfig { watch: true, ..NodeConfig::default() };
    let mut s = Scenario::of(
        "closing",
        "Closing a client cancels what is pending and releases what is held. What may have landed is released too, and \
         the host goes on until every release has ended.",
        vec![watch],
    );
    s.hold(1, "held", 7).acquire(2, "held", |o| o).hold(3, "renewing", 8);
    s.wake_until_sent();
    s.hold(6, "quiet", 9);
    s.acquire(4, "asks", |o| o).acquire(5, "waits", |o| o).say_for(5, 0, Held(foreign_holding()));
    s.close();
    s.say_for(6, 0, Released)
        .say_for(1, 0, Released)
        .say_for(3, 0, Unknown(FaultKind::Reset))
        .say_for(4, 0, Released)
        .notified("held");
    s.wake_until_sent().say_for(3, 0, Gone);
    s.about(&["IdleCancelled", "AcquiringCancelled", "WaitingCancelled", "HeldReleased"])
}

pub(super) fn stray_responses() -> Vector {
    let mut s = Scenario::new(
        "stray_responses",
        "Responses that are late, doubled, made up, empty or of the wrong kind change nothing but what is unknown: a \
         request past its deadline is unknown whatever comes later, and an answer that fits another operation says \
         nothing about this one.",
    );
    s.say_to_nobody(0).say_to_nobody(99);
    s.acquire(1, "r", |o| o).wake().say_to(0, Granted(5)).say_to(1, Granted(6)).say_to(1, Held(foreign_holding()));
    s.say_to(1, Granted(6)).say_to(0, Denied(leasehold_core::op::DenialKind::Other));
    s.acquire(2, "odd", |o| o).say(0, Renewed).wake_until_sent().say_all(0, &[]).wake_until_sent();
    s.say(0, Sees(foreign_holding())).say(0, Released).release(2);
    s.release(1).say_for(1, 0, Granted(9)).wake_until_sent().say_for(1, 0, Released).say_for(1, 0, Released);
    s.about(&["AcquiringUnknown", "AcquiringResent", "AcquiringGranted", "ReleasingOpen"])
}

pub(super) fn clocks() -> Vector {
    let mut s = Scenario::new(
        "clocks",
        "A monotonic clock that runs backwards stands still. The wall clock decides only the floor of tokens, which \
         never falls, and passes a token once seen ahead of it; a clock gone mad asks for half of the token space at \
         most. A new seed changes every nonce from then on.",
    );
    let once = |o: leasehold_core::config::LockOptionsBuilder| o.wait(Wait::Once);
    s.clock(5_000).hold(1, "r", 1_700_000_005_000_000).clock(1_000).wall(-3_600_000);
    s.acquire(2, "back", |o| o).say(0, Granted(7));
    s.clock(5_010);
    let ahead = leasehold_core::op::Holding { counter: Some(token(1_800_000_000_000_000)), ..foreign_holding() };
    s.acquire(3, "ahead", once).say(0, Held(ahead));
    s.wall(0).acquire(4, "ahead", once).say(0, Granted(1_800_000_000_000_001));
    s.acquire(5, "plain", once).say(0, Gone);
    s.wall(9_000_000_000_000_000 - 1_700_000_005_010 - 1).acquire(6, "mad", once).say(0, Gone);
    s.wall(0).acquire(7, "still-high", once).say(0, Gone);
    s.reseed(0xab).acquire(8, "reseeded", |o| o).release(8).say(0, Released);
    s.about(&["IdleStarted", "AcquiringGranted"])
}

pub(super) fn limits() -> Vector {
    let limits = Limits { locks: 100, orphans: 1, observations: 2 };
    let config = Config::new(vec![NodeConfig::default()]).and_then(|config| config.with_limits(limits));
    let mut s = Scenario::with(
        "limits",
        "Bounds hold. One background release at a time: above that a record is left to run out. Two observed versions \
         at a time: for a third, the one that would take longest is forgotten, so that its takeover is only ever later.",
        config.expect("a scenario's settings"),
    );
    s.acquire(1, "a", |o| o).release(1).acquire(2, "b", |o| o).release(2);
    s.say_for(1, 0, Released).acquire(3, "c", |o| o).release(3).say_for(3, 0, Released);
    let unmoved = |ms| leasehold_core::op::Holding {
        left: None,
        record_ttl: Some(std::time::Duration::from_millis(ms)),
        ..foreign_holding()
    };
    let once = |o: leasehold_core::config::LockOptionsBuilder| o.wait(Wait::Once);
    for (lock, name, ms) in [(4, "short", 100), (5, "long", 900), (6, "middle", 500)] {
        s.acquire(lock, name, once).say(0, Held(unmoved(ms)));
    }
    s.clock(2_000);
    s.acquire(7, "short", once).say(0, Gone).acquire(8, "long", once).say(0, Held(unmoved(900)));
    s.acquire(9, "middle", once).say(0, Gone);
    s.about(&["AcquiringCancelled", "AcquiringFailed"])
}
