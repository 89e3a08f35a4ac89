//! `cargo xtask prove programs`: programs as newcomers write them, in Python and TypeScript, while they are disturbed.

use crate::python::{self, Installed};
use crate::run::{self, Result};
use crate::steps::Steps;
use crate::{node, setup};
use std::path::Path;
use std::process::Command;

/// Starts the programs, disturbs them, and counts what became of their work.
const JUDGE: &str = "testing/programs/judge";
/// With every change: one worker of each program is killed, and the judge must see when nothing is shared.
const SHORT: [&str; 7] = ["--faults", "kill", "unshared", "--number", "1", "--at-once", "6"];

pub fn run_short(steps: &mut Steps, python: &Installed, packages: &Path) -> Result {
    let mut judge = judge(python, packages);
    judge.args(SHORT);
    steps.run("programs of newcomers", judge)
}

pub fn run_long(steps: &mut Steps) -> Result {
    setup::install_servers(steps)?;
    let python = python::install(steps)?;
    let packages = node::install_built(steps)?;
    steps.run("programs of newcomers, long", judge(&python, &packages))
}

/// `packages` has the Node package and the compiler of TypeScript in its `node_modules`.
fn judge(python: &Installed, packages: &Path) -> Command {
    let mut command = Command::new(&python.python);
    command.arg(run::root().join(JUDGE)).arg("--node").arg(packages).env("PYTHONDONTWRITEBYTECODE", "1");
    command
}
