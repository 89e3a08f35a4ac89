//! `cargo xtask chaos`: workers in several languages on real stores, under everything that can be done to them.

use crate::demo::{self, become_program};
use crate::interop::{self, Peers};
use crate::python::Installed;
use crate::run::{self, Result};
use crate::steps::Steps;
use crate::{go, node, python, setup};
use std::path::Path;
use std::process::Command;

/// The workers that need no compiler.
const WORKERS: &str = "testing/chaos/workers";
/// Before a release.
const LONG: [&str; 2] = ["--minutes", "45"];
const LONG_OF_PERMITS: [&str; 2] = ["--minutes", "30"];
const LONG_OF_SHARDS: [&str; 2] = ["--minutes", "10"];
const LONG_OF_SESSIONS: [&str; 2] = ["--minutes", "10"];
/// With every change: the stores that start at once, and only what no busy machine can spoil.
const SHORT: [&str; 5] = ["sqlite", "redis", "--seconds", "30", "--promises-only"];

pub fn chaos(args: &[String]) -> Result {
    let mut steps = Steps::default();
    setup::install_servers(&mut steps)?;
    let peers = interop::install(&mut steps)?;
    let python = python::install(&mut steps)?;
    let worker = go::chaos_worker(&mut steps)?;
    let mut chaos = build(&mut steps, &peers, &python, worker.as_deref())?;
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
    let plays: [(&str, &[&str]); 4] =
        [("cron", &[]), ("permits", &LONG_OF_PERMITS), ("shards", &LONG_OF_SHARDS), ("sessions", &LONG_OF_SESSIONS)];
    for (name, args) in plays {
        let mut play = Command::new(run::built()?.join("chaos"));
        peers.tell(&mut play);
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
    let packages = run::target()?.join("chaos/node");
    node::install_core(steps, &packages)?;
    let mut command = Command::new(run::built()?.join("chaos"));
    peers.tell(&mut command);
    command.env("LEASEHOLD_CHAOS_PYTHON", &python.python).env("LEASEHOLD_CHAOS_NODE", packages);
    command.env("LEASEHOLD_CHAOS_WORKERS", run::root().join(WORKERS));
    if let Some(worker) = go {
        command.env("LEASEHOLD_CHAOS_GO", worker);
    }
    Ok(command)
}
