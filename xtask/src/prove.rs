//! `cargo xtask prove`: what takes too long for every change, run before a release.

use crate::run::{self, Result, Steps};
use crate::{chaos, component, deny, engine, fuzz, interop, mutants, release, sim, test};

const PROPTEST_CASES: &str = "20000";
/// Of the threads, for each test of a hand-off.
const SCHEDULES: &str = "20000";

pub fn prove() -> Result {
    let mut steps = Steps::logged()?;
    test::run_all(&mut steps)?;

    test::each_store_alone(&mut steps)?;
    let peers = interop::begin().finish(&mut steps)?;
    engine::test(&mut steps, &peers)?;

    component::build_wasi3(&mut steps)?;
    release::build(&mut steps)?;
    chaos::run_long(&mut steps, &peers)?;

    sim::run_long(&mut steps)?;
    fuzz::run_long(&mut steps)?;
    for (name, test) in [("one store", "model"), ("quorums", "quorum_model")] {
        let mut search = run::cargo_ci("test");
        search.args(["-p", "leasehold-sim", "--test", test]);
        search.args(["--", "--ignored", "--nocapture", "--test-threads", "1"]);
        steps.run(&format!("exhaustive search of {name}, long"), search)?;
    }
    steps.timed("deliberate bugs", || mutants::mutants(&[]))?;

    let mut races = test::races();
    races.env("LEASEHOLD_SCHEDULES", SCHEDULES);
    steps.run("races, many schedules", races)?;

    let mut properties = test::suite();
    properties.args(["-p", "leasehold-core", "--features", "wire"]).env("PROPTEST_CASES", PROPTEST_CASES);
    steps.run("long property tests", properties)?;

    deny::install(&mut steps)?;
    deny::deny(&mut steps)?;
    test::look_at_logs(&mut steps)?;
    println!("\nProved.\n{}", steps.table());
    Ok(())
}
