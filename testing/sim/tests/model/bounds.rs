//! Searches that must find nothing wrong, and must get to see everything that matters.

use std::time::Duration;

use leasehold_core::LockOptions;

use crate::search::{Found, search};
use crate::stores::Kind;
use crate::world::{ALL_REACHED, Budget, OF_RUNS, Reached, Setting, TTL};

/// The bounds of a search.
struct Bounds {
    name: &'static str,
    budget: Budget,
    horizon_ms: u64,
    clocks: Clocks,
    renews: bool,
    /// Instants at which time stops anyway.
    grid_ms: Option<u64>,
    /// A search of fewer states than this has lost its way.
    least: usize,
}

#[derive(Clone, Copy)]
enum Clocks {
    Exact,
    /// One as slow, the other as fast as the drift allows, either way round.
    Drifting,
}

/// Both clients want the lock once, and nothing goes wrong.
pub(crate) const CALM: Budget = Budget {
    losses: 0,
    copies: 0,
    delays: 0,
    pauses: 0,
    crashes: 0,
    cuts: 0,
    acquires: [1, 1],
    releases: 0,
    finishes: 0,
    revokes: 0,
};

const fn bounds(name: &'static str, budget: Budget, horizon_ms: u64, clocks: Clocks, least: usize) -> Bounds {
    Bounds { name, budget, horizon_ms, clocks, renews: true, grid_ms: None, least }
}

const A_RELEASE: Budget = Budget { releases: 1, ..CALM };

const SHORT: [Bounds; 11] = [
    bounds("two losses", Budget { losses: 2, ..CALM }, 200, Clocks::Drifting, 30_000),
    bounds("a loss and a release", Budget { losses: 1, ..A_RELEASE }, 150, Clocks::Exact, 25_000),
    bounds("a delay and a release", Budget { delays: 1, ..A_RELEASE }, 80, Clocks::Exact, 25_000),
    bounds("a copy and a release", Budget { copies: 1, ..A_RELEASE }, 80, Clocks::Exact, 20_000),
    bounds("two stops", Budget { pauses: 2, ..CALM }, 170, Clocks::Drifting, 25_000),
    bounds("a stop and a release", Budget { pauses: 1, ..A_RELEASE }, 150, Clocks::Drifting, 30_000),
    bounds("a crash and a delay", Budget { crashes: 1, delays: 1, ..CALM }, 110, Clocks::Drifting, 30_000),
    bounds("a change of mind", Budget { acquires: [2, 1], ..A_RELEASE }, 150, Clocks::Exact, 5_000),
    Bounds {
        grid_ms: Some(10),
        ..bounds(
            "alone, cut off, and a delay",
            Budget { cuts: 1, delays: 1, acquires: [1, 0], ..CALM },
            140,
            Clocks::Exact,
            20_000,
        )
    },
    bounds("cut off once", Budget { cuts: 1, ..CALM }, 230, Clocks::Drifting, 60_000),
    Bounds {
        renews: false,
        ..bounds("a delay, not renewed", Budget { delays: 1, acquires: [2, 1], ..CALM }, 210, Clocks::Drifting, 30_000)
    },
];

const A_FINISH: Budget = Budget { finishes: 2, ..CALM };

/// Of runs: after any finish nobody is granted.
const RUNS: [Bounds; 6] = [
    bounds("two finishes and a loss", Budget { losses: 1, ..A_FINISH }, 150, Clocks::Exact, 5_000),
    bounds("a finish and two losses", Budget { losses: 2, finishes: 1, ..CALM }, 110, Clocks::Exact, 5_000),
    bounds("two finishes and a delay", Budget { delays: 1, ..A_FINISH }, 110, Clocks::Exact, 5_000),
    bounds("two finishes and a copy", Budget { copies: 1, ..A_FINISH }, 110, Clocks::Exact, 5_000),
    bounds("two finishes, a stop and a crash", Budget { pauses: 1, crashes: 1, ..A_FINISH }, 150, Clocks::Exact, 5_000),
    bounds("two finishes, cut off once", Budget { cuts: 1, ..A_FINISH }, 210, Clocks::Drifting, 5_000),
];

const RUNS_FOR_LONG: [Bounds; 4] = [
    bounds("two finishes and two delays", Budget { delays: 2, ..A_FINISH }, 150, Clocks::Drifting, 50_000),
    bounds("a finish, a copy and a delay", Budget { copies: 1, delays: 1, ..A_FINISH }, 150, Clocks::Drifting, 50_000),
    bounds("a finish, a loss and a delay", Budget { losses: 1, delays: 1, ..A_FINISH }, 200, Clocks::Drifting, 50_000),
    bounds("two finishes and a release", Budget { releases: 1, losses: 1, ..A_FINISH }, 200, Clocks::Drifting, 50_000),
];

const LONG: [Bounds; 12] = [
    bounds("two delays", Budget { delays: 2, ..CALM }, 200, Clocks::Drifting, 1_000_000),
    bounds("a delay and a release", Budget { delays: 1, ..A_RELEASE }, 200, Clocks::Drifting, 500_000),
    bounds("a delay and a loss", Budget { delays: 1, losses: 1, ..CALM }, 200, Clocks::Drifting, 400_000),
    bounds("a delay and a stop", Budget { delays: 1, pauses: 1, ..CALM }, 170, Clocks::Drifting, 800_000),
    bounds("a copy and a release", Budget { copies: 1, ..A_RELEASE }, 200, Clocks::Drifting, 300_000),
    bounds("a copy and a stop", Budget { copies: 1, pauses: 1, ..CALM }, 170, Clocks::Drifting, 400_000),
    bounds(
        "a crash, a stop and a release",
        Budget { crashes: 1, pauses: 1, ..A_RELEASE },
        200,
        Clocks::Drifting,
        400_000,
    ),
    bounds("a crash and a delay", Budget { crashes: 1, delays: 1, ..CALM }, 200, Clocks::Drifting, 200_000),
    bounds("cut off once, and a release", Budget { cuts: 1, ..A_RELEASE }, 200, Clocks::Drifting, 1_000_000),
    bounds(
        "a loss and a stop, twice",
        Budget { losses: 1, pauses: 1, acquires: [2, 2], ..CALM },
        150,
        Clocks::Drifting,
        100_000,
    ),
    Bounds {
        renews: false,
        ..bounds(
            "a delay and a copy, not renewed",
            Budget { delays: 1, copies: 1, acquires: [2, 1], ..CALM },
            230,
            Clocks::Drifting,
            1_000_000,
        )
    },
    Bounds {
        grid_ms: Some(20),
        ..bounds("a delay, and more instants", Budget { delays: 1, ..CALM }, 200, Clocks::Drifting, 30_000)
    },
];

const A_REVOKE: Budget = Budget { revokes: 1, ..A_RELEASE };

/// Of revokes: nobody else has the lock before its holder has let go, or before its record has run out.
const REVOKES: [Bounds; 2] = [
    bounds("a revoke and a loss", Budget { losses: 1, ..A_REVOKE }, 70, Clocks::Exact, 500),
    bounds("a revoke and a stop", Budget { pauses: 1, revokes: 1, ..CALM }, 90, Clocks::Exact, 500),
];

const REVOKES_FOR_LONG: [Bounds; 4] = [
    bounds("a revoke and a loss", Budget { losses: 1, ..A_REVOKE }, 110, Clocks::Exact, 5_000),
    bounds("a revoke and a delay", Budget { delays: 1, ..A_REVOKE }, 80, Clocks::Exact, 5_000),
    bounds("a revoke and a copy", Budget { copies: 1, ..A_REVOKE }, 80, Clocks::Exact, 5_000),
    bounds("a revoke and a stop", Budget { pauses: 1, revokes: 1, ..CALM }, 150, Clocks::Drifting, 5_000),
];

/// Of sessions: each lock takes two records, so the bounds are closer.
const SESSIONS: [Bounds; 8] = [
    bounds("a loss", Budget { losses: 1, ..CALM }, 130, Clocks::Drifting, 500),
    bounds("a loss and a release", Budget { losses: 1, ..A_RELEASE }, 60, Clocks::Exact, 500),
    bounds("a delay", Budget { delays: 1, ..CALM }, 120, Clocks::Drifting, 500),
    bounds("a copy and a release", Budget { copies: 1, ..A_RELEASE }, 60, Clocks::Exact, 500),
    bounds("a stop", Budget { pauses: 1, ..CALM }, 170, Clocks::Drifting, 500),
    bounds("a crash", Budget { crashes: 1, ..CALM }, 130, Clocks::Drifting, 500),
    bounds("cut off once", Budget { cuts: 1, ..CALM }, 230, Clocks::Drifting, 500),
    bounds("a revoke", A_REVOKE, 70, Clocks::Exact, 500),
];

const SESSIONS_FOR_LONG: [Bounds; 2] = [
    bounds("a revoke and a loss", Budget { losses: 1, ..A_REVOKE }, 70, Clocks::Exact, 500),
    bounds(
        "taken again by an old heartbeat",
        Budget { acquires: [2, 1], pauses: 1, ..A_RELEASE },
        150,
        Clocks::Exact,
        500,
    ),
];

fn setting(bounds: &Bounds, store: Kind) -> Setting {
    let mut setting = Setting::new(store, bounds.budget, bounds.horizon_ms);
    if let Clocks::Drifting = bounds.clocks {
        setting = setting.drifting();
    }
    if !bounds.renews {
        setting.options = LockOptions::builder().ttl(TTL).no_renewal().build().expect("good options");
    }
    setting.grid = bounds.grid_ms.map(Duration::from_millis);
    setting
}

fn runs(bounds: &[Bounds], store: Kind) {
    let mut total = [0; ALL_REACHED.len()];
    for bounds in bounds {
        let found = search(&format!("{store:?}, {}", bounds.name), setting(bounds, store).of_runs());
        assert!(found.broken.is_none(), "{store:?}, {}: see above", bounds.name);
        assert!(found.unique >= bounds.least, "{}: only {} states", bounds.name, found.unique);
        total.iter_mut().zip(found.counts).for_each(|(total, count)| *total += count);
    }
    for what in OF_RUNS.iter().chain(&[Reached::Lost, Reached::Granted]) {
        assert!(total[*what as usize] >= 10, "{store:?}: {what:?} only {} times", total[*what as usize]);
    }
}

fn revokes(bounds: &[Bounds], store: Kind) {
    let mut told = 0;
    for bounds in bounds {
        let found = search(&format!("{store:?}, {}", bounds.name), setting(bounds, store));
        assert!(found.broken.is_none(), "{store:?}, {}: see above", bounds.name);
        assert!(found.unique >= bounds.least, "{}: only {} states", bounds.name, found.unique);
        told += found.counts[Reached::Revoked as usize];
    }
    assert!(told >= 10, "{store:?}: only {told} holders were told");
}

fn all(bounds: &[Bounds], store: Kind) {
    let mut total = [0; ALL_REACHED.len()];
    let mut unique = 0;
    for bounds in bounds {
        let found = search(&format!("{store:?}, {}", bounds.name), setting(bounds, store));
        assert!(found.broken.is_none(), "{store:?}, {}: see above", bounds.name);
        assert!(found.unique >= bounds.least, "{}: only {} states", bounds.name, found.unique);
        total.iter_mut().zip(found.counts).for_each(|(total, count)| *total += count);
        unique += found.unique;
    }
    println!("{store:?}: {unique} unique states");
    for what in ALL_REACHED {
        // A store that keeps no send numbers answers a resend as if it were the first.
        let by_record = matches!(what, Reached::Recovered | Reached::RenewalRecovered);
        if !(by_record && store == Kind::Redis || OF_RUNS.contains(&what) || what == Reached::Revoked) {
            assert!(total[what as usize] >= 10, "{store:?}: {what:?} only {} times", total[what as usize]);
        }
    }
}

#[test]
fn every_promise_holds_on_the_reference_store() {
    all(&SHORT, Kind::Reference);
}

#[test]
fn every_promise_holds_on_a_store_without_send_numbers() {
    all(&SHORT, Kind::Redis);
}

#[test]
fn every_promise_holds_on_a_store_that_expires_nothing() {
    all(&SHORT, Kind::Observed);
}

fn sessions(bounds: &[Bounds]) {
    for bounds in bounds {
        let found = search(bounds.name, setting(bounds, Kind::Sessions));
        assert!(found.broken.is_none(), "{}: see above", bounds.name);
        assert!(found.unique >= bounds.least, "{}: only {} states", bounds.name, found.unique);
    }
}

#[test]
fn every_promise_holds_with_sessions() {
    sessions(&SESSIONS);
}

#[test]
#[ignore = "takes minutes"]
fn every_promise_holds_with_sessions_for_long() {
    sessions(&SESSIONS_FOR_LONG);
}

#[test]
fn a_revoked_lease_keeps_others_out() {
    for store in [Kind::Reference, Kind::Redis, Kind::Observed] {
        revokes(&REVOKES, store);
    }
}

#[test]
#[ignore = "takes minutes"]
fn a_revoked_lease_keeps_others_out_for_long() {
    for store in [Kind::Reference, Kind::Redis, Kind::Observed] {
        revokes(&REVOKES_FOR_LONG, store);
    }
}

#[test]
fn finished_work_is_done_once_on_the_reference_store() {
    runs(&RUNS, Kind::Reference);
}

#[test]
fn finished_work_is_done_once_on_a_store_without_send_numbers() {
    runs(&RUNS, Kind::Redis);
}

#[test]
fn finished_work_is_done_once_on_a_store_that_expires_nothing() {
    runs(&RUNS, Kind::Observed);
}

#[test]
#[ignore = "takes minutes"]
fn finished_work_is_done_once_for_long() {
    for store in [Kind::Reference, Kind::Redis, Kind::Observed] {
        runs(&RUNS_FOR_LONG, store);
    }
}

#[test]
#[ignore = "takes minutes"]
fn every_promise_holds_on_the_reference_store_for_long() {
    all(&LONG, Kind::Reference);
}

#[test]
#[ignore = "takes minutes"]
fn every_promise_holds_on_a_store_without_send_numbers_for_long() {
    all(&LONG, Kind::Redis);
}

#[test]
#[ignore = "takes minutes"]
fn every_promise_holds_on_a_store_that_expires_nothing_for_long() {
    all(&LONG, Kind::Observed);
}

#[test]
fn search_is_deterministic() {
    let run = || search("twice", setting(&SHORT[1], Kind::Reference));
    let key = |found: &Found| (found.states, found.unique, found.depth, found.counts);
    assert_eq!(key(&run()), key(&run()));
}
