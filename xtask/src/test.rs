//! `cargo xtask test`: everything that must pass before a change is merged.

use crate::demo::{self, Stores};
use crate::run::{self, Failure, Result, Steps};
use crate::{component, engine, interop, node, python, setup, sim, tidy};
use std::process::Command;

/// What the core can do besides its protocol is tested too.
const WIRE: &str = "leasehold-core/wire";

pub fn test() -> Result {
    let mut steps = Steps::default();
    run_all(&mut steps)?;
    println!("\nEverything passed.\n{}", steps.table());
    Ok(())
}

/// All steps, cheapest first: a misplaced import is told before anything is compiled.
pub fn run_all(steps: &mut Steps) -> Result {
    setup::install(steps)?;
    // Downloads, beside what is compiled.
    let peers = interop::begin();
    steps.timed("tidy", tidy::tidy)?;

    let mut fmt = run::plain_cargo("fmt");
    fmt.args(["--all", "--check"]);
    steps.run("format", fmt)?;

    let mut clippy = run::cargo_ci("clippy");
    clippy.args(workspace()).args(["--features", WIRE, "--", "-D", "warnings"]);
    steps.run("clippy", clippy)?;
    // A test that cannot go on should stop, and helper functions of tests may do so too.
    let mut clippy = run::cargo_ci("clippy");
    clippy.args(workspace()).args(["--features", WIRE, "--all-targets", "--", "-D", "warnings"]).args(run::LENIENT);
    steps.run("clippy, tests", clippy)?;
    for (name, features) in [
        ("no features", &["--no-default-features"][..]),
        ("SQLite alone", &["--no-default-features", "--features=sqlite"]),
        ("Redis alone", &["--no-default-features", "--features=redis"]),
        ("HTTP alone", &["--no-default-features", "--features=http"]),
        ("DynamoDB alone", &["--no-default-features", "--features=dynamodb"]),
        ("metrics", &["--features=metrics"]),
    ] {
        let mut clippy = run::cargo_ci("clippy");
        clippy.args(["-p", "leasehold"]).args(features).args(["--", "-D", "warnings"]);
        steps.run(&format!("clippy, client with {name}"), clippy)?;
    }
    no_std(steps)?;
    component::lint(steps)?;
    engine::lint(steps)?;

    let peers = peers.finish(steps)?;
    peers.check_infra(steps)?;
    let mut tests = suite();
    peers.tell(&mut tests);
    tests.args(workspace()).args(["--features", WIRE, "--exclude", "leasehold-sim"]);
    steps.run("tests", tests)?;
    // By itself: it compiles the core with its counters, which nothing else should have.
    let mut tests = suite();
    tests.args(["-p", "leasehold-sim"]);
    steps.run("tests of the simulator", tests)?;
    sim::run_short(steps)?;
    let mut metrics = suite();
    metrics.args(["-p", "leasehold", "--features", "metrics", "--test", "observability"]);
    steps.run("tests with metrics", metrics)?;
    let mut doc_tests = run::cargo_ci("test");
    doc_tests.args(workspace()).args(["--features", WIRE, "--doc"]);
    steps.run("doc tests", doc_tests)?;

    let mut docs = run::cargo_ci("doc");
    docs.args(workspace())
        .args(["--features", WIRE, "--no-deps", "--lib", "--exclude", "xtask"])
        .env("RUSTDOCFLAGS", "-D warnings");
    steps.run("docs", docs)?;
    let transpiled = component::test(steps, &peers)?;

    python::run_all(steps)?;

    node::run_all(steps, &transpiled, &peers)?;

    let demo = demo::build(steps, Stores::All)?;
    steps.run("demo", demo)
}

/// The workspace without the hosts of the component, which have steps of their own.
fn workspace() -> Vec<&'static str> {
    let apart = component::APART.into_iter().flat_map(|package| ["--exclude", package]);
    ["--workspace"].into_iter().chain(apart).collect()
}

/// The test runner, to be told which packages: nextest where it is installed, for its one process per test.
pub fn suite() -> Command {
    let mut version = run::plain_cargo("nextest");
    version.arg("--version");
    if run::succeeds(version) {
        let mut nextest = run::plain_cargo("nextest");
        // One run is to tell of all that fails.
        nextest.args(["run", "--locked", "--no-fail-fast", "--cargo-profile", "ci"]);
        nextest
    } else {
        println!("cargo-nextest is not installed; `cargo test` runs the tests");
        let mut test = run::cargo_ci("test");
        // Doc tests have a step of their own.
        test.args(["--lib", "--bins", "--tests"]);
        test
    }
}

/// A crate that defines the panic handler. The standard library brings its own, and two of them are an error: so this
/// compiles only if nothing in the core's whole dependency graph links `std`, and needs no bare-metal target for it.
const PROBE: &str = "\
#![no_std]
extern crate leasehold_core;
#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    loop {}
}
";

fn no_std(steps: &mut Steps) -> Result {
    for (name, features) in [("with its wire formats", "wire"), ("without features", "")] {
        let mut core = run::cargo_ci("build");
        core.args(["-p", "leasehold-core", "--no-default-features", "--features", features]);
        steps.run(&format!("core {name}"), core)?;
        probe(steps, name)?;
    }
    Ok(())
}

fn probe(steps: &mut Steps, name: &str) -> Result {
    let built = run::built()?;
    let probe = built.join("no_std_probe.rs");
    std::fs::write(&probe, PROBE)
        .map_err(|error| Failure::new(format!("cannot write {}: {error}", probe.display())))?;
    let mut rustc = Command::new(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()));
    rustc.args(["--edition", "2024", "--crate-type", "lib", "--emit", "metadata"]).arg("--out-dir").arg(&built);
    rustc.arg("--extern").arg(format!("leasehold_core={}", built.join("libleasehold_core.rlib").display()));
    rustc.arg("-L").arg(format!("dependency={}", built.join("deps").display()));
    rustc.arg(&probe);
    steps.run(&format!("core {name}, without std"), rustc)
}
