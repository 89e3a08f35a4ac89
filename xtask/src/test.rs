//! `cargo xtask test`: everything that must pass before a change is merged.

use crate::demo::{self, Stores};
use crate::logs::Logs;
use crate::run::{self, Failure, Result};
use crate::steps::{Later, Steps};
use crate::{
    bench, chaos, component, conformance, deny, flaky, go, interop, node, openapi, playground, python, servers, setup,
    sim, tidy,
};
use std::path::PathBuf;
use std::process::Command;
use std::thread;

/// For tests of threads only.
const RACES: &str = "leasehold-concurrency";
/// The packages that are compiled, and the features that tests need beyond the defaults. The same in all steps that share
/// what they compile: another choice of packages means other features of the crates below them, which would be compiled again.
pub const ALL: [&str; 3] = ["--workspace", "--features", "leasehold/metrics,leasehold-fuzz/client"];
pub const TARGETS: [&str; 4] = ["--lib", "--bins", "--tests", "--examples"];

pub fn test() -> Result {
    let mut steps = Steps::logged()?;
    run_all(&mut steps)?;
    look_at_logs(&mut steps)?;
    println!("\nEverything passed.\n{}", steps.table());
    Ok(())
}

/// All steps, side by side as far as they need nothing of each other: suites that wait for leases to run out run beside
/// each other, and beside what computes.
pub fn run_all(steps: &mut Steps) -> Result {
    setup::install_to_build(steps)?;
    run::lint_while_compiling();
    let (packages, built, compiled) = (Later::new("packages"), Later::new("build"), Later::new("WebAssembly"));
    let (peers, tools, modules) =
        (Later::new("other libraries"), Later::new("Python's tools"), Later::new("npm packages"));
    let (wheel, made, dynamodb) = (Later::new("wheel"), Later::new("component"), Later::new("DynamoDB Local"));
    let worker: Later<Option<PathBuf>> = Later::new("worker in Go");
    steps.beside(|tracks| {
        tracks.run("checks", checks);
        tracks.run("dependencies", |steps| {
            packages.wait(steps)?;
            deny::deny(steps)
        });
        tracks.start(&built, build);
        tracks.start(&packages, setup::install_to_test);
        tracks.start(&peers, |steps| {
            packages.wait(steps)?;
            interop::install(steps)
        });
        tracks.start(&tools, |steps| {
            packages.wait(steps)?;
            python::install_tools(steps)
        });
        tracks.start(&modules, |steps| {
            packages.wait(steps)?;
            component::install_tools(steps)?;
            node::install_tools(steps)
        });
        tracks.start(&compiled, |steps| {
            packages.wait(steps)?;
            component::compile_all(steps)
        });

        tracks.start(&dynamodb, |steps| {
            let peers = peers.wait(steps)?;
            built.wait(steps)?;
            steps.timed("start DynamoDB Local", || servers::Dynamodb::start(peers))
        });
        tracks.run("tests", |steps| {
            let peers = peers.wait(steps)?;
            let mut tests = Suite::waiting();
            peers.tell(&mut tests);
            dynamodb.wait(steps)?.tell(&mut tests);
            tests.env("LEASEHOLD_BROWSER", setup::browser()?);
            steps.run("tests that wait", tests)?;
            let demo = demo::build(steps, Stores::All)?;
            steps.run("demo", demo)
        });
        tracks.run("the daemon", |steps| {
            packages.wait(steps)?;
            let python = openapi::install(steps)?;
            built.wait(steps)?;
            openapi::check(steps, &python)
        });
        tracks.start(&wheel, |steps| {
            tools.wait(steps)?;
            built.wait(steps)?;
            python::install(steps)
        });
        tracks.run("Python, types", |steps| {
            let wheel = wheel.wait(steps)?;
            python::check(steps, wheel)
        });
        for share in 0..python::SHARES {
            let wheel = &wheel;
            tracks.run("Python", move |steps| {
                let wheel = wheel.wait(steps)?;
                python::run_share(steps, wheel, share)
            });
        }
        tracks.start(&made, |steps| {
            compiled.wait(steps)?;
            modules.wait(steps)?;
            let peers = peers.wait(steps)?;
            built.wait(steps)?;
            component::make_all(steps, peers)
        });
        tracks.run("hosts of the component", |steps| {
            let (made, peers, dynamodb) = (made.wait(steps)?, peers.wait(steps)?, dynamodb.wait(steps)?);
            component::test(steps, made, peers, Some(dynamodb))?;
            playground::run_all(steps, &made.transpiled)
        });
        tracks.run("Node", |steps| {
            let (made, peers, dynamodb) = (made.wait(steps)?, peers.wait(steps)?, dynamodb.wait(steps)?);
            node::run_all(steps, &made.transpiled, peers, Some(dynamodb))?;
            let (wheel, worker) = (wheel.wait(steps)?, worker.wait(steps)?);
            chaos::run_short(steps, peers, wheel, worker.as_deref())
        });
        // Makes the generated part of the module, which only one may do at a time.
        tracks.start(&worker, |steps| {
            compiled.wait(steps)?;
            built.wait(steps)?;
            go::chaos_worker(steps)
        });
        tracks.run("Go", |steps| {
            worker.wait(steps)?;
            let (peers, dynamodb) = (peers.wait(steps)?, dynamodb.wait(steps)?);
            go::run_where_possible(steps, peers, dynamodb)
        });
        tracks.run_patiently("computing", |steps| {
            packages.wait(steps)?;
            built.wait(steps)?;
            examples_and_docs(steps)?;
            let mut tests = Suite::COMPUTING.command();
            dynamodb.wait(steps)?.tell(&mut tests);
            steps.run("tests that compute", tests)?;
            sim::run_short(steps)?;
            no_std(steps)?;
            component::lint(steps)?;
            peers.wait(steps)?.check_infra(steps)
        });
    })
}

/// The checks without a compiler, so that a misplaced import is reported within seconds.
fn checks(steps: &mut Steps) -> Result {
    steps.timed("tidy", tidy::tidy)?;
    steps.timed("what is tested where", || conformance::conformance(&[]))?;
    let mut fmt = run::plain_cargo("fmt");
    fmt.args(["--all", "--check"]);
    steps.run("format", fmt)
}

/// Compiles everything, once: the crates of this workspace by clippy, so that nothing is compiled only to be linted.
fn build(steps: &mut Steps) -> Result {
    let mut build = run::cargo_ci("build");
    build.args(ALL).args(TARGETS);
    steps.build_all(build)
}

/// Tests the examples of all libraries, and documents them by the way, from what has been built: `cargo doc` would compile
/// everything below them once more.
fn examples_and_docs(steps: &mut Steps) -> Result {
    let mut tests = run::cargo_ci("test");
    // The client once more, on a scheduler that its examples know nothing of.
    tests
        .args(ALL)
        .args(["--doc", "--exclude", "leasehold-concurrency", "--exclude", "leasehold-concurrency-fence"])
        .env("RUSTDOC", run::script("rustdoc", RUSTDOC)?);
    tests.env("LEASEHOLD_DOCS", run::target()?.join("doc")).env("LEASEHOLD_RUSTDOC", run::tool("rustdoc"));
    steps.run("doc tests and docs", tests)?;
    let mut face = Command::new(run::built()?.join(bench::REPORTS));
    face.arg("--face").arg(run::target()?.join("doc"));
    steps.run("no types of other crates in the public face", face)
}

/// `cargo xtask logs`: looks once more at what the last run has left.
pub fn look_again() -> Result {
    look_at_logs(&mut Steps::with_what_is_left()?)
}

/// Checks of the output of all tests.
pub fn look_at_logs(steps: &mut Steps) -> Result {
    steps.with_logs("tests that documents name have run", conformance::expect_ran)?;
    steps.with_logs("libraries have told what they do", Logs::expect_captured)?;
    look_at_any_logs(steps)
}

/// Checks of the output of any tests.
pub fn look_at_any_logs(steps: &mut Steps) -> Result {
    steps.with_logs("second tries", flaky::expect_excused)?;
    steps.with_logs("no secrets in any output", Logs::expect_no_secrets)
}

/// The client with each store alone, without any, and without the component.
pub fn each_store_alone(steps: &mut Steps) -> Result {
    for (name, features) in [
        ("no features", &["--no-default-features"][..]),
        ("the default features", &[]),
        ("hidden parts", &["--features=__ffi"]),
        ("SQLite alone", &["--no-default-features", "--features=sqlite"]),
        ("Redis alone", &["--no-default-features", "--features=redis"]),
        ("HTTP alone", &["--no-default-features", "--features=http"]),
        ("DynamoDB alone", &["--no-default-features", "--features=dynamodb"]),
        ("etcd alone", &["--no-default-features", "--features=etcd"]),
        ("objects alone", &["--no-default-features", "--features=objects"]),
        ("PostgreSQL alone", &["--no-default-features", "--features=postgres"]),
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
    let mut tests = packages();
    tests.args(["-p", RACES, "--test", "handoffs"]);
    tests
}

/// The test runner, to be told which packages.
pub fn packages() -> Command {
    runner("computing", 1)
}

/// The test runner for tests that mostly wait for servers.
pub fn with_servers() -> Command {
    runner("default", 4)
}

/// Tests of some packages, from what has been built for all.
pub struct Suite {
    /// The profile of nextest, which has a folder of its own for its report.
    profile: &'static str,
    packages: &'static [&'static str],
    tests_per_core: usize,
}

impl Suite {
    /// Tests that wait for nothing but the processor.
    pub const COMPUTING: Suite = Suite {
        profile: "computing",
        packages: &[
            "leasehold-core",
            "leasehold-wire",
            "leasehold-sim",
            "leasehold-fuzz",
            RACES,
            "leasehold-reports",
            "xtask",
        ],
        tests_per_core: 1,
    };
    pub const COMPONENT: Suite = Suite { profile: "component", packages: &component::PACKAGES, tests_per_core: 2 };

    pub fn command(&self) -> Command {
        let mut tests = runner(self.profile, self.tests_per_core);
        tests.args(ALL).args(["--tests", "-E", &among(self.packages)]);
        tests
    }

    /// All tests of other packages. They mostly wait: for leases to run out, and for servers.
    pub fn waiting() -> Command {
        let apart = [Self::COMPUTING.packages, Self::COMPONENT.packages].concat();
        let mut tests = with_servers();
        tests.args(ALL).args(["--tests", "-E", &format!("not ({})", among(&apart))]);
        tests
    }
}

/// The set of these packages, as nextest understands it.
fn among(packages: &[&str]) -> String {
    packages.iter().map(|package| format!("package({package})")).collect::<Vec<_>>().join(" | ")
}

/// Nextest, for its one process per test and its report. Where [`setup::install_to_test`] has yet to install it, this is the
/// command of a program that is not there.
fn runner(profile: &str, tests_per_core: usize) -> Command {
    let mut nextest = run::plain_cargo("nextest");
    run::add_lints(&mut nextest);
    // One run reports all that fails, and nothing that passes: the summary names tests that took a second try.
    nextest.args(["run", "--locked", "--no-fail-fast", "--status-level", "fail", "--cargo-profile", "ci"]);
    let threads = thread::available_parallelism().map_or(1, usize::from) * tests_per_core;
    nextest.args(["--profile", profile, "--test-threads", &threads.to_string()]);
    nextest
}

/// Stands in for rustdoc: where it is to test the examples of a library, it also documents that library, and links that lead
/// nowhere are errors. What Rust users import is written as JSON too, for `testing/reports`.
const RUSTDOC: &str = r#"#!/bin/sh
"$LEASEHOLD_RUSTDOC" "$@" || exit
case " $* " in
*" --test "*) ;;
*) exit 0 ;;
esac
is_value=
for word do
    shift
    if [ "$is_value" ]; then
        is_value=
    else
        case $word in
        --test) ;;
        --test-run-directory | --test-args) is_value=yes ;;
        *) set -- "$@" "$word" ;;
        esac
    fi
done
case " $* " in
*" --crate-name leasehold "* | *" --crate-name leasehold_fence "*)
    # Only unstable options give JSON. This one run of rustdoc may have them, and compiles nothing.
    RUSTC_BOOTSTRAP=1 "$LEASEHOLD_RUSTDOC" "$@" -Z unstable-options --output-format json --out-dir "$LEASEHOLD_DOCS" || exit
    ;;
esac
exec "$LEASEHOLD_RUSTDOC" "$@" -D warnings --out-dir "$LEASEHOLD_DOCS"
"#;

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
