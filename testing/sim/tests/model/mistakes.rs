//! Searches that must find something: a check that finds no mistake on purpose finds none by chance.

use crate::bounds::CALM;
use crate::search::search;
use crate::stores::{Bug, Kind};
use crate::world::{Broken, Budget, Setting};

const A_DELAY: Budget = Budget { delays: 1, releases: 1, ..CALM };
const A_STOP: Budget = Budget { pauses: 1, ..CALM };

fn finds(broken: Broken, name: &str, mut setting: Setting) {
    setting.only = Some(broken);
    let found = search(name, setting);
    assert_eq!(found.broken.map(|(broken, _)| broken), Some(broken), "{name}");
}

fn with_bug(bug: Bug, store: Kind, budget: Budget) -> Setting {
    Setting { bug: Some(bug), ..Setting::new(store, budget, 200) }
}

#[test]
fn search_finds_store_that_grants_a_held_lock() {
    for store in [Kind::Reference, Kind::Redis, Kind::Observed] {
        finds(Broken::TwoHolders, "grants what is held", with_bug(Bug::GrantsWhatIsHeld, store, CALM));
    }
}

#[test]
fn search_finds_store_that_grants_a_released_attempt() {
    for store in [Kind::Reference, Kind::Observed] {
        finds(Broken::StandsAgain, "grants twice", with_bug(Bug::GrantsTwice, store, A_DELAY));
    }
}

/// The delayed first send puts an old version back, and a client that had seen that one takes over a live lease.
#[test]
fn search_finds_acquire_that_overwrites_a_heartbeat() {
    let budget = Budget { copies: 1, pauses: 1, ..CALM };
    finds(Broken::TwoHolders, "grants twice", with_bug(Bug::GrantsTwice, Kind::Observed, budget));
}

#[test]
fn search_finds_renewal_that_overwrites_a_newer_one() {
    let budget = Budget { copies: 1, pauses: 1, ..CALM };
    finds(Broken::TwoHolders, "renews out of order", with_bug(Bug::RenewsOutOfOrder, Kind::Observed, budget));
}

#[test]
fn search_finds_takeover_without_comparison() {
    finds(Broken::TwoHolders, "takes over uncompared", with_bug(Bug::TakesOverUncompared, Kind::Observed, CALM));
}

#[test]
fn search_finds_revoke_that_frees_the_lock() {
    for store in [Kind::Reference, Kind::Redis, Kind::Observed] {
        let budget = Budget { revokes: 1, ..CALM };
        finds(Broken::TwoHolders, "frees what is revoked", with_bug(Bug::FreesWhatIsRevoked, store, budget));
    }
}

#[test]
fn search_finds_early_expiry() {
    for store in [Kind::Reference, Kind::Redis] {
        finds(Broken::TwoHolders, "expires early", with_bug(Bug::ExpiresEarly, store, A_STOP));
    }
}

#[test]
fn search_finds_release_for_anyone() {
    for store in [Kind::Reference, Kind::Redis, Kind::Observed] {
        let budget = Budget { releases: 1, acquires: [1, 2], ..CALM };
        finds(Broken::TwoHolders, "releases for anyone", with_bug(Bug::ReleasesForAnyone, store, budget));
    }
}

/// The record of the next holder then shows a send number of the last one, which the next one may take for its own.
#[test]
#[ignore = "a minute: cargo xtask prove"]
fn search_finds_renewal_for_anyone() {
    let setting = Setting {
        horizon: std::time::Duration::from_millis(300),
        ..with_bug(Bug::RenewsForAnyone, Kind::Reference, A_DELAY)
    };
    finds(Broken::WithoutRecord, "renews for anyone", setting);
}

#[test]
fn search_finds_renewal_of_a_missing_record() {
    finds(Broken::StandsAgain, "renews what is gone", with_bug(Bug::RenewsWhatIsGone, Kind::Reference, A_DELAY));
}

#[test]
fn search_finds_forgotten_tokens() {
    for store in [Kind::Reference, Kind::Redis, Kind::Observed] {
        let budget = Budget { releases: 1, ..CALM };
        finds(Broken::Token, "forgets tokens", with_bug(Bug::ForgetsTokens, store, budget));
    }
}

fn of_runs(bug: Bug, store: Kind, budget: Budget) -> Setting {
    with_bug(bug, store, Budget { finishes: 2, ..budget }).of_runs()
}

#[test]
fn search_finds_grant_of_what_is_done() {
    for store in [Kind::Reference, Kind::Redis, Kind::Observed] {
        finds(Broken::DoneTwice, "grants what is done", of_runs(Bug::GrantsWhatIsDone, store, CALM));
    }
}

#[test]
fn search_finds_finish_after_a_loss() {
    for store in [Kind::Reference, Kind::Redis, Kind::Observed] {
        let budget = Budget { delays: 1, pauses: 1, ..CALM };
        finds(Broken::MarkedByAnother, "finishes for anyone", of_runs(Bug::FinishesForAnyone, store, budget));
    }
}

#[test]
fn search_finds_finish_that_takes_any_mark_for_its_own() {
    for store in [Kind::Reference, Kind::Redis] {
        let budget = Budget { delays: 1, pauses: 1, ..CALM };
        finds(
            Broken::DoneTwice,
            "takes any completion for its own",
            of_runs(Bug::TakesAnyCompletionForOwn, store, budget),
        );
    }
}

#[test]
fn search_finds_finish_that_takes_its_own_mark_for_anothers() {
    for store in [Kind::Reference, Kind::Redis, Kind::Observed] {
        let budget = Budget { losses: 1, ..CALM };
        let setting = of_runs(Bug::TakesOwnCompletionForAnothers, store, budget);
        finds(Broken::RefusedThoughDone, "takes its own completion for another's", setting);
    }
}

/// The promise of one holder rests on the rates of clocks, so without that it must fall.
#[test]
fn search_finds_clocks_beyond_the_drift() {
    for store in [Kind::Reference, Kind::Redis, Kind::Observed] {
        let rates_ppm = vec![[-60_000, 60_000, 0], [60_000, -60_000, 0]];
        let setting = Setting { rates_ppm, ..Setting::new(store, A_STOP, 200) };
        finds(Broken::TwoHolders, "clocks beyond the drift", setting);
    }
}

#[test]
fn search_finds_clock_read_before_the_reply() {
    let budget = Budget { delays: 1, pauses: 1, ..CALM };
    let setting = Setting { samples_early: true, ..Setting::new(Kind::Observed, budget, 170) };
    finds(Broken::TwoHolders, "clock sampled early", setting);
}
