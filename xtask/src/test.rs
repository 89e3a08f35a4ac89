//! `cargo xtask test`: everything that must pass before a change is merged.

use crate::demo::{self, Stores};
use crate::logs::Logs;
use crate::run::{self, Failure, Result, Steps};
use crate::{chaos, component, conformance, deny, flaky, fuzz, interop, node, playground, python, setup, sim, tidy};
use std::path::PathBuf;
use std::process::Command;
use std::thread;

/// For tests of threads only.
const RACES: &str = "leasehold-concurrency";
const SIMULATOR: &str = "leasehold-sim";
/// What is tested beyond the defaults. The same in all steps that share what they compile: other features of one crate
/// mean others of those it depends on, and so that all of them are compiled again.
const FEATURES: &str = "leasehold/metrics";

pub fn test() -> Result {
    let mut steps = Steps::logged()?;
    run_all(&mut steps)?;
    look_at_logs(&mut steps)?;
    println!("\nEverything passed.\n{}", steps.table());
    Ok(())
}

/// All steps, cheapest first: a misplaced import is told before anything is compiled.
pub fn run_all(steps: &mut Steps) -> Result {
    setup::install(steps)?;
    // Downloads, beside what is compiled.
    let peers = interop::begin();
    steps.timed("tidy", tidy::tidy)?;
    steps.timed("what is tested where", || conformance::conformance(&[]))?;
    deny::deny(steps)?;

    let mut fmt = run::plain_cargo("fmt");
    fmt.args(["--all", "--check"]);
    steps.run("format", fmt)?;

    let mut clippy = run::cargo_ci("clippy");
    clippy.args(linted()).args(["--all-targets", "--exclude", RACES, "--", "-D", "warnings"]);
    steps.run("clippy", clippy)?;
    // Not its library as a test: that would be the client's own tests.
    let mut clippy = run::cargo_ci("clippy");
    clippy.args(["-p", RACES, "--test", "handoffs", "--", "-D", "warnings"]);
    steps.run("clippy, races", clippy)?;
    component::lint(steps)?;
    no_std(steps)?;

    let mut build = run::cargo_ci("build");
    build.args(together()).args(["--lib", "--bins", "--tests"]);
    steps.build_all(build)?;
    let peers = peers.finish(steps)?;
    peers.check_infra(steps)?;
    let mut tests = suite();
    peers.tell(&mut tests);
    tests.args(together());
    if has_nextest() {
        tests.args(["-E", &format!("not package({RACES})")]);
    }
    steps.run("tests", tests)?;
    if has_nextest() {
        let mut races = nextest();
        races.args(together()).args(["-E", &format!("package({RACES})")]);
        steps.run("races", races)?;
    }
    // By itself: it compiles the core with its counters, which nothing else should have.
    let mut tests = suite();
    tests.args(["-p", SIMULATOR]);
    steps.run("tests of the simulator", tests)?;
    sim::run_short(steps)?;
    fuzz::run_short(steps)?;
    let mut doc_tests = run::cargo_ci("test");
    doc_tests.args(together()).arg("--doc");
    steps.run("doc tests", doc_tests)?;

    let mut docs = run::cargo_ci("doc");
    docs.args(together()).args(["--no-deps", "--lib", "--exclude", "xtask", "--exclude", RACES]);
    docs.env("RUSTDOCFLAGS", "-D warnings");
    steps.run("docs", docs)?;
    let transpiled = component::test(steps, &peers)?;
    playground::run_all(steps, &transpiled)?;

    python::run_all(steps)?;

    node::run_all(steps, &transpiled, &peers)?;

    chaos::run_short(steps, &peers)?;

    let demo = demo::build(steps, Stores::All)?;
    steps.run("demo", demo)
}

/// `cargo xtask logs`: looks once more at what the last run has left.
pub fn look_again() -> Result {
    look_at_logs(&mut Steps::with_what_is_left()?)
}

/// What only shows when everything has run.
pub fn look_at_logs(steps: &mut Steps) -> Result {
    if has_nextest() {
        steps.with_logs("tests that documents name have run", conformance::expect_ran)?;
    }
    steps.with_logs("libraries have told what they do", Logs::expect_captured)?;
    look_at_any_logs(steps)
}

/// What must hold of any tests, all of them or not.
pub fn look_at_any_logs(steps: &mut Steps) -> Result {
    if has_nextest() {
        steps.with_logs("second tries", flaky::expect_excused)?;
    }
    steps.with_logs("no secrets in any output", Logs::expect_no_secrets)
}

/// What is compiled together: the workspace without the hosts of the component and the simulator, which have steps of their
/// own.
pub fn together() -> Vec<&'static str> {
    let apart = component::APART.into_iter().chain([SIMULATOR]).flat_map(|package| ["--exclude", package]);
    ["--workspace", "--features", FEATURES].into_iter().chain(apart).collect()
}

/// What is looked at with every change.
fn linted() -> Vec<&'static str> {
    let apart = component::APART.into_iter().flat_map(|package| ["--exclude", package]);
    ["--workspace", "--features", FEATURES].into_iter().chain(apart).collect()
}

/// And what is not, since wasmtime below it takes longer to look at than all the rest.
pub fn lint_apart(steps: &mut Steps) -> Result {
    let [runner, maker] = component::APART;
    let all = ["-p", runner, "-p", maker, "-p", "leasehold-fuzz", "--features", "leasehold-fuzz/client"];
    let mut clippy = run::cargo_ci("clippy");
    clippy.args(all).args(["--all-targets", "--", "-D", "warnings"]);
    steps.run("clippy, with wasmtime", clippy)
}

/// The client with each store alone, without any, and without the component.
pub fn each_store_alone(steps: &mut Steps) -> Result {
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
    Ok(())
}

/// The client's run loop under many schedules; `LEASEHOLD_SCHEDULES` says how many.
pub fn races() -> Command {
    let mut tests = if has_nextest() { nextest() } else { run::cargo_ci("test") };
    tests.args(["-p", RACES, "--test", "handoffs"]);
    tests
}

/// The test runner, to be told which packages: nextest where it is installed, for its one process per test.
pub fn suite() -> Command {
    if has_nextest() {
        nextest()
    } else {
        println!("cargo-nextest is not installed; `cargo test` runs the tests");
        let mut test = run::cargo_ci("test");
        // Doc tests have a step of their own.
        test.args(["--lib", "--bins", "--tests"]);
        test
    }
}

/// Only that one reports what has run, and what it has printed.
fn has_nextest() -> bool {
    setup::has_subcommand("nextest")
}

fn nextest() -> Command {
    let mut nextest = run::plain_cargo("nextest");
    // One run is to tell of all that fails, and of nothing that does not: the summary names what took a second try.
    nextest.args(["run", "--locked", "--no-fail-fast", "--status-level", "fail", "--cargo-profile", "ci"]);
    // Tests of stores wait more than they compute.
    let threads = thread::available_parallelism().map_or(1, usize::from) + 1;
    nextest.args(["--test-threads", &threads.to_string()]);
    nextest
}

/// A crate that defines the panic handler. The standard library brings its own, and two of them are an error: so this
/// compiles only if nothing in the core's whole dependency graph links `std`, and needs no bare-metal target for it.
const PROBE: &str = "\
#![no_std]
extern crate leasehold_NAME;
#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    loop {}
}
";

fn no_std(steps: &mut Steps) -> Result {
    for name in ["core", "wire"] {
        let mut check = run::cargo_ci("check");
        check.args(["-p", &format!("leasehold-{name}"), "--message-format", "json-render-diagnostics"]);
        steps.timed(&format!("{name} without std"), || probe(name, check))?;
    }
    Ok(())
}

fn probe(name: &str, check: Command) -> Result {
    let built = run::built()?;
    let probe = built.join("no_std_probe.rs");
    std::fs::write(&probe, PROBE.replace("NAME", name))
        .map_err(|error| Failure::new(format!("cannot write {}: {error}", probe.display())))?;
    let told = run::told(name, check)?;
    // Beside those of other features, by a name that cargo makes up.
    let checked =
        told.split('"').find(|word| word.contains(&format!("libleasehold_{name}-")) && word.ends_with(".rmeta"));
    let Some(checked) = checked.map(|path| PathBuf::from(path.replace("\\\\", "\\"))) else {
        return Err(Failure::new("cargo does not say where it has put the crate"));
    };
    let mut rustc = Command::new(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()));
    rustc.args(["--edition", "2024", "--crate-type", "lib", "--emit", "metadata"]).arg("--out-dir").arg(&built);
    rustc.arg("--extern").arg(format!("leasehold_{name}={}", checked.display()));
    rustc.arg("-L").arg(format!("dependency={}", built.join("deps").display())).arg(&probe);
    run::quietly("a program without std", rustc)
}
