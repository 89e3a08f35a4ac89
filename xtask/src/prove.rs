//! `cargo xtask prove`: what takes too long for every change, run before a release.
//!
//! Together the parts take most of a day on two cores, so each can be had by itself: one that failed need not bring the
//! others with it.

use crate::run::{self, Failure, Result};
use crate::steps::Steps;
use crate::{
    chaos, deny, differential, docs, fuzz, interop, node, programs, promtool, release, setup, shell_mutants, sim, test,
    valkey, windows,
};

const PROPTEST_CASES: &str = "20000";
/// Of the threads, for each test of a hand-off.
const SCHEDULES: &str = "20000";
/// Of locks from one client to another on Redis: a quarter of an hour.
const HANDOVERS: &str = "100000";

type Part = (&'static str, fn(&mut Steps) -> Result);

/// The part that `cargo xtask test` runs. Only after it can the documents be held against what ran.
const TEST: Part = ("test", test::run_all);
/// In this order: what fails soonest comes first.
const PARTS: [Part; 22] = [
    TEST,
    ("deny", agreed_on),
    ("alerts", promtool::check_alerts),
    ("docs", site),
    ("stores", test::each_store_alone),
    ("valkey", valkey::run),
    ("next", node::next),
    ("release", all_that_is_published),
    ("upgrade", chaos::upgrade),
    ("windows", windows::run),
    ("programs", programs::run_long),
    ("chaos", chaos_for_long),
    ("sim", sim::run_long),
    ("fuzz", fuzz::run_long),
    ("differential", differential::run_long),
    ("search", exhaustive_searches),
    ("mutants", deliberate_bugs),
    ("races", many_schedules),
    ("properties", long_property_tests),
    ("handovers", many_handovers),
    ("long", in_full),
    ("shell-mutants", shell_mutants::run),
];

pub fn prove(names: &[String]) -> Result {
    let parts = chosen(names)?;
    let mut steps = Steps::logged()?;
    let is_tested = parts.iter().any(|(name, _)| *name == TEST.0);
    if !is_tested {
        setup::install(&mut steps)?;
    }
    parts.iter().try_for_each(|(_, part)| part(&mut steps))?;
    if is_tested {
        test::look_at_logs(&mut steps)?;
    } else {
        test::look_at_any_logs(&mut steps)?;
    }
    let which: Vec<_> = parts.iter().map(|(name, _)| *name).collect();
    println!("\nProved: {}.\n{}", which.join(", "), steps.table());
    Ok(())
}

/// All parts, where none is named.
fn chosen(names: &[String]) -> Result<Vec<Part>> {
    if let Some(stranger) = names.iter().find(|name| PARTS.iter().all(|(part, _)| part != name)) {
        let known = PARTS.map(|(name, _)| name).join(", ");
        return Err(Failure::new(format!("there is no part `{stranger}` of the proof\n  there are: {known}")));
    }
    let is_chosen = |(part, _): &Part| names.is_empty() || names.iter().any(|name| name == part);
    Ok(PARTS.into_iter().filter(is_chosen).collect())
}

fn all_that_is_published(steps: &mut Steps) -> Result {
    release::build(steps).map(drop)
}

fn chaos_for_long(steps: &mut Steps) -> Result {
    let peers = interop::install(steps)?;
    chaos::run_long(steps, &peers)
}

fn exhaustive_searches(steps: &mut Steps) -> Result {
    for (name, test) in [("one store", "model"), ("quorums", "quorum_model")] {
        let mut search = run::cargo_ci("test");
        search.args(["-p", "leasehold-sim", "--test", test]);
        search.args(["--", "--ignored", "--nocapture", "--test-threads", "1"]);
        steps.run(&format!("exhaustive search of {name}, long"), search)?;
    }
    Ok(())
}

fn deliberate_bugs(steps: &mut Steps) -> Result {
    // By itself, so that what it prints is kept like all the rest. Through Cargo, since this program may have been built
    // again in the hours that it has been running.
    let mut mutants = run::plain_cargo("xtask");
    mutants.arg("mutants");
    steps.run("deliberate bugs", mutants)
}

fn many_schedules(steps: &mut Steps) -> Result {
    let mut races = test::races();
    races.env("LEASEHOLD_SCHEDULES", SCHEDULES);
    steps.run("races, many schedules", races)
}

fn long_property_tests(steps: &mut Steps) -> Result {
    let mut properties = test::packages();
    properties.args(["-p", "leasehold-core", "-p", "leasehold-wire"]).env("PROPTEST_CASES", PROPTEST_CASES);
    steps.run("long property tests", properties)
}

fn many_handovers(steps: &mut Steps) -> Result {
    let mut handovers = test::packages();
    handovers.args(["-p", "leasehold", "--features", "metrics", "--test", "redis", "every_hand_over_wakes_its_waiter"]);
    handovers.env("LEASEHOLD_HANDOVERS", HANDOVERS).env("NEXTEST_RETRIES", "0");
    steps.run("hand-overs, many", handovers)
}

/// The tests of which `cargo xtask test` runs a part: every behaviour on every dialect of object stores, many random calls
/// of the component, many acquisitions in Node.
fn in_full(steps: &mut Steps) -> Result {
    const LONG: (&str, &str) = ("LEASEHOLD_LONG", "1");
    let peers = interop::install(steps)?;
    let mut behaviours = test::with_servers();
    peers.tell(&mut behaviours);
    behaviours.args(["-p", "leasehold", "--features", "metrics", "--test", "conformance", "on_tables::"]);
    behaviours.envs([LONG]);
    steps.run("every behaviour on every store, long", behaviours)?;
    for (name, args) in [("component", &["component", "--test"][..]), ("Node", &["node"])] {
        // By way of Cargo, as the deliberate bugs are.
        let mut tests = run::plain_cargo("xtask");
        tests.args(args).envs([LONG]);
        steps.run(&format!("tests of {name}, long"), tests)?;
    }
    Ok(())
}

fn site(steps: &mut Steps) -> Result {
    docs::build(steps).map(drop)
}

fn agreed_on(steps: &mut Steps) -> Result {
    setup::subcommand(steps, "deny")?;
    deny::deny(steps)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(parts: &[Part]) -> Vec<&'static str> {
        parts.iter().map(|(name, _)| *name).collect()
    }

    #[test]
    fn all_parts_are_meant_where_none_is_named_and_their_order_is_ours() {
        assert_eq!(names(&chosen(&[]).expect("all")), PARTS.map(|(name, _)| name));
        let two = ["fuzz".to_owned(), "chaos".to_owned()];
        assert_eq!(names(&chosen(&two).expect("known parts")), ["chaos", "fuzz"]);
    }

    #[test]
    fn a_part_that_is_not_there_is_told_with_those_that_are() {
        let failure = chosen(&["chaos".to_owned(), "everything".to_owned()]).expect_err("not a part").to_string();
        assert!(failure.contains("`everything`") && failure.contains("test, deny, alerts, docs, stores"), "{failure}");
    }
}
