//! `cargo xtask prove`: what takes too long for every change, run before a release.

use crate::run::{self, Result, Steps};
use crate::{bench, engine, interop, mutants, python, release, sim, test};

const PROPTEST_CASES: &str = "20000";

pub fn prove() -> Result {
    let mut steps = Steps::default();
    test::run_all(&mut steps)?;

    let peers = interop::begin().finish(&mut steps)?;
    engine::test(&mut steps, &peers)?;

    release::build(&mut steps)?;
    python::source(&mut steps)?;
    let chaos = bench::build_chaos(&mut steps, &[])?;
    steps.run("chaos", chaos)?;
    let chaos = bench::build_quorum_chaos(&mut steps, &[])?;
    steps.run("chaos on a quorum", chaos)?;

    sim::run_long(&mut steps)?;
    for (name, test) in [("one store", "model"), ("quorums", "quorum_model")] {
        let mut search = run::cargo_ci("test");
        search.args(["-p", "leasehold-sim", "--test", test]);
        search.args(["--", "--ignored", "--nocapture", "--test-threads", "1"]);
        steps.run(&format!("exhaustive search of {name}, long"), search)?;
    }
    steps.timed("deliberate bugs", || mutants::mutants(&[]))?;

    let mut properties = test::suite();
    properties.args(["-p", "leasehold-core", "--features", "wire"]).env("PROPTEST_CASES", PROPTEST_CASES);
    steps.run("long property tests", properties)?;

    let mut version = run::plain_cargo("deny");
    version.arg("--version");
    if run::succeeds(version) {
        let mut deny = run::plain_cargo("deny");
        deny.args(["check", "bans", "licenses", "sources"]);
        steps.run("dependencies", deny)?;
    } else {
        println!("\ncargo-deny is not installed: licences and sources of dependencies were not checked");
    }
    println!("\nProved.\n{}", steps.table());
    Ok(())
}
