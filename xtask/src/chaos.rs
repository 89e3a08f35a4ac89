//! `cargo xtask chaos`: workers in three languages on real stores, under everything that can be done to them.

use crate::demo::become_program;
use crate::interop::{self, Peers};
use crate::run::{self, Result, Steps};
use crate::{node, python, setup};
use std::process::Command;

/// The workers that need no compiler.
const WORKERS: &str = "testing/chaos/workers";
/// Before a release.
const LONG: [&str; 2] = ["--minutes", "30"];
/// With every change: the stores that start at once, and only what no busy machine can spoil.
const SHORT: [&str; 5] = ["sqlite", "redis", "--seconds", "30", "--promises-only"];

pub fn chaos(args: &[String]) -> Result {
    let mut steps = Steps::default();
    setup::install_servers(&mut steps)?;
    let peers = interop::begin().finish(&mut steps)?;
    let mut chaos = build(&mut steps, &peers)?;
    chaos.args(args);
    become_program(chaos)
}

pub fn run_short(steps: &mut Steps, peers: &Peers) -> Result {
    let mut chaos = build(steps, peers)?;
    chaos.args(SHORT);
    steps.run("chaos", chaos)
}

pub fn run_long(steps: &mut Steps, peers: &Peers) -> Result {
    let mut chaos = build(steps, peers)?;
    chaos.args(LONG);
    steps.run("chaos, long", chaos)
}

/// Builds the program and both packages; answers the command that starts it.
fn build(steps: &mut Steps, peers: &Peers) -> Result<Command> {
    let mut build = run::cargo_ci("build");
    build.args(["-p", "leasehold-chaos", "--bin", "chaos"]);
    steps.build("build chaos", build)?;
    let (python, _) = python::install(steps)?;
    let packages = run::target()?.join("chaos/node");
    node::install_core(steps, &packages)?;
    let mut command = Command::new(run::built()?.join("chaos"));
    peers.tell(&mut command);
    command.env("LEASEHOLD_CHAOS_PYTHON", python).env("LEASEHOLD_CHAOS_NODE", packages);
    command.env("LEASEHOLD_CHAOS_WORKERS", run::root().join(WORKERS));
    Ok(command)
}
