//! `cargo xtask sim`: the simulator, told which commit it runs.

use crate::demo::become_program;
use crate::run::{self, Result};
use crate::steps::Steps;
use std::process::Command;

/// For every change, with one store and with several: enough seeds to show every kind of fault.
const SHORT: [&[&str]; 2] = [&["--seeds", "0..5000"], &["--quorum", "--seeds", "0..1500"]];
/// Before a release.
const LONG: [&[&str]; 2] = [&["--minutes", "10"], &["--quorum", "--minutes", "10"]];

pub fn sim(args: &[String]) -> Result {
    build(&mut Steps::default())?;
    let mut sim = command()?;
    sim.args(args);
    become_program(sim)
}

pub fn run_short(steps: &mut Steps) -> Result {
    build(steps)?;
    both("simulator", SHORT, steps)
}

/// Many more seeds, and hunts for the counterexamples that must exist once an assumption is broken.
pub fn run_long(steps: &mut Steps) -> Result {
    build(steps)?;
    both("simulator, long", LONG, steps)?;
    let mut hunts = command()?;
    hunts.args(["--broken", "all"]);
    steps.run("simulator, assumptions broken", hunts)
}

/// A seed means one world with one store, and another with several.
fn both(name: &str, [store, quorum]: [&[&str]; 2], steps: &mut Steps) -> Result {
    for (name, args) in [(name.to_owned(), store), (format!("{name}, quorums"), quorum)] {
        let mut sim = command()?;
        sim.args(args);
        steps.run(&name, sim)?;
    }
    Ok(())
}

/// Built by itself: it wants the core with its counters, which nothing else should be compiled with. Where everything is built,
/// its own tests have brought it along.
fn build(steps: &mut Steps) -> Result {
    let mut build = run::cargo_ci("build");
    build.args(["-p", "leasehold-sim", "--bin", "leasehold-sim"]);
    steps.build("build leasehold-sim", build)
}

fn command() -> Result<Command> {
    let mut sim = Command::new(run::built()?.join("leasehold-sim"));
    sim.current_dir(run::root()).env("LEASEHOLD_COMMIT", commit());
    Ok(sim)
}

/// The commit, marked if files differ from it: a seed means something only together with the code that ran.
fn commit() -> String {
    let git = |args: &[&str]| {
        let output = Command::new("git").args(args).current_dir(run::root()).output().ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let Some(commit) = git(&["rev-parse", "--short=12", "HEAD"]) else { return "unknown".to_owned() };
    match git(&["status", "--porcelain", "--untracked-files=no"]) {
        Some(changes) if changes.is_empty() => commit,
        Some(_) | None => format!("{commit} with changes"),
    }
}
