//! `cargo xtask chaos`: workers in several languages on real stores, under everything that can be done to them.

use crate::demo::{self, become_program};
use crate::interop::{self, Peers};
use crate::python::Installed;
use crate::run::{self, Result};
use crate::steps::Steps;
use crate::{go, node, older, python, setup};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The workers that need no compiler.
const WORKERS: &str = "testing/chaos/workers";
/// Before a release.
const LONG: [&str; 2] = ["--minutes", "45"];
const LONG_OF_PERMITS: [&str; 2] = ["--minutes", "30"];
const LONG_OF_SHARDS: [&str; 2] = ["--minutes", "10"];
const LONG_OF_SESSIONS: [&str; 2] = ["--minutes", "10"];
/// The play whose services need frameworks.
const HTTP: &str = "http";
/// With every change: the stores that start at once, and only what no busy machine can spoil.
const SHORT: [&str; 5] = ["sqlite", "redis", "--seconds", "30", "--promises-only"];

pub fn chaos(args: &[String]) -> Result {
    let mut steps = Steps::default();
    setup::install_servers(&mut steps)?;
    let peers = interop::install(&mut steps)?;
    let python = python::install(&mut steps)?;
    let worker = go::chaos_worker(&mut steps)?;
    let mut chaos = build(&mut steps, &peers, &python, worker.as_deref())?;
    if args.first().is_some_and(|first| first == HTTP) {
        add_frameworks(&mut steps, &mut chaos)?;
    }
    chaos.args(args);
    become_program(chaos)
}

pub fn run_short(steps: &mut Steps, peers: &Peers, python: &Installed, go: Option<&Path>) -> Result {
    let mut chaos = build(steps, peers, python, go)?;
    chaos.args(SHORT);
    steps.run("chaos", chaos)
}

pub fn run_long(steps: &mut Steps, peers: &Peers) -> Result {
    let python = python::install(steps)?;
    let worker = go::chaos_worker(steps)?;
    let mut chaos = build(steps, peers, &python, worker.as_deref())?;
    chaos.args(LONG);
    steps.run("chaos, long", chaos)?;
    let plays: [(&str, &[&str]); 5] = [
        ("cron", &[]),
        (HTTP, &[]),
        ("permits", &LONG_OF_PERMITS),
        ("shards", &LONG_OF_SHARDS),
        ("sessions", &LONG_OF_SESSIONS),
    ];
    for (name, args) in plays {
        let mut play = program(peers, &python, worker.as_deref())?;
        if name == HTTP {
            add_frameworks(steps, &mut play)?;
        }
        play.arg(name).args(args);
        steps.run(&format!("chaos, {name}"), play)?;
    }
    let demo = demo::build_clouds(steps, peers)?;
    steps.run("demo, on clouds", demo)
}

/// Builds the program and the Node package; answers the command that starts it.
fn build(steps: &mut Steps, peers: &Peers, python: &Installed, go: Option<&Path>) -> Result<Command> {
    let mut build = run::cargo_ci("build");
    build.args(["-p", "leasehold-chaos", "--bin", "chaos"]);
    steps.build("build chaos", build)?;
    node::install_core(steps, &node_packages()?)?;
    program(peers, python, go)
}

/// The command that starts the program.
fn program(peers: &Peers, python: &Installed, go: Option<&Path>) -> Result<Command> {
    let mut command = Command::new(run::built()?.join("chaos"));
    peers.tell(&mut command);
    command.env("LEASEHOLD_CHAOS_PYTHON", &python.python).env("LEASEHOLD_CHAOS_NODE", node_packages()?);
    command.env("LEASEHOLD_CHAOS_WORKERS", run::root().join(WORKERS));
    if let Some(worker) = go {
        command.env("LEASEHOLD_CHAOS_GO", worker);
    }
    Ok(command)
}

/// The folder whose `node_modules` has the Node package.
fn node_packages() -> Result<PathBuf> {
    Ok(run::target()?.join("chaos/node"))
}

/// Lets the program find Express, and Python keep what it compiles: FastAPI is beside the package.
fn add_frameworks(steps: &mut Steps, command: &mut Command) -> Result {
    command.env("LEASEHOLD_CHAOS_LIBRARIES", node::install_compiler(steps)?);
    run::keep_bytecode(command)
}

/// `cargo xtask prove upgrade`: commands of two versions on the same stores.
pub fn upgrade(steps: &mut Steps) -> Result {
    setup::install_servers(steps)?;
    let peers = interop::install(steps)?;
    let mut build = run::cargo_ci("build");
    build.args(["-p", "leasehold-chaos", "--bin", "chaos", "-p", "leasehold-cli", "--bin", "leasehold"]);
    steps.build("build chaos and the command", build)?;
    let older = older::build(steps)?;
    let mut play = Command::new(run::built()?.join("chaos"));
    peers.tell(&mut play);
    play.arg("upgrade").arg("--older").arg(older).arg("--newer").arg(run::built()?.join("leasehold"));
    steps.run("an older version on the same stores", play)
}
