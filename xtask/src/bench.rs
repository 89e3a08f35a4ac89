//! `cargo xtask bench`: builds and runs what measures. What it tells is read by `testing/reports`.

use crate::run::{self, Failure, Result};
use crate::steps::Steps;
use crate::{component, demo, interop, node, python, setup};
use std::process::Command;

/// Those that compare with other libraries, or need other servers, which nothing else should have to compile or install.
const BESIDE_PEERS: [&str; 10] =
    ["redis", "quorum", "dynamodb", "postgres", "etcd", "objects", "instructions", "serve", "admin", "cas"];

/// Run one, whose figures somebody else reads.
const RUN: &str = "--run";
/// The program that reads what benchmarks tell, and rustdoc.
pub const REPORTS: &str = "leasehold-reports";

pub fn bench(args: &[String]) -> Result {
    if let [run, name, rest @ ..] = args
        && run == RUN
    {
        return run_one(&mut Steps::default(), name, rest);
    }
    let mut build = run::cargo_ci("build");
    build.args(["-p", REPORTS]);
    Steps::default().run("build reports", build)?;
    let mut reports = Command::new(run::built()?.join(REPORTS));
    let xtask =
        std::env::current_exe().map_err(|error| Failure::new(format!("xtask does not find itself: {error}")))?;
    reports
        .args(args)
        .env("LEASEHOLD_XTASK", xtask)
        .env("LEASEHOLD_TARGET", run::target()?)
        .env("LEASEHOLD_ROOT", run::root());
    demo::become_program(reports)
}

fn run_one(steps: &mut Steps, name: &str, rest: &[String]) -> Result {
    match name {
        "component" => component::bench(steps),
        "python" => python::bench(steps, rest),
        "node" => node::bench(steps, rest),
        program => run_program(steps, program, rest),
    }
}

fn run_program(steps: &mut Steps, program: &str, rest: &[String]) -> Result {
    let mut build = released();
    let needs_peers = BESIDE_PEERS.contains(&program);
    let file = if needs_peers { "bench".to_owned() } else { format!("bench-{program}") };
    let mut command = Command::new(run::target()?.join("release").join(&file));
    if needs_peers {
        command.arg(program);
        setup::install(steps)?;
        build.args(["-p", "leasehold-bench", "--bin", &file]);
        if program == "serve" {
            build.args(["-p", "leasehold-cli", "--bin", "leasehold"]);
        }
        interop::install(steps)?.tell(&mut command);
        if program == "instructions" {
            setup::install_valgrind(steps)?;
            build.args(["--features", "valgrind"]);
        }
        if program == "redis" {
            command.env("LEASEHOLD_LOCKS_PYTHON", python::install_peers(steps)?);
        }
    } else {
        setup::c_compiler()?;
        build.args(["-p", "leasehold-bench", "--no-default-features", "--bin", &file]);
    }
    steps.run(&format!("build {program}"), build)?;
    command.args(rest);
    steps.run(program, command)
}

/// As Rust users build it. Everything else here shares one profile with debug assertions, which cost time.
fn released() -> Command {
    let mut build = run::cargo("build");
    build.arg("--release");
    build
}
