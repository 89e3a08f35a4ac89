//! `cargo xtask prove programs`: programs as newcomers write them, in Python and TypeScript, while they are disturbed.

use crate::python::{self, Installed};
use crate::run::{self, Result};
use crate::steps::Steps;
use crate::{node, setup};
use std::path::Path;
use std::process::Command;

/// Starts the programs, disturbs them, and counts what became of their work.
const JUDGE: &str = "testing/programs/judge";

pub fn run_long(steps: &mut Steps) -> Result {
    setup::install_servers(steps)?;
    let python = python::install(steps)?;
    let packages = node::install_built(steps)?;
    steps.run("programs of newcomers, long", judge(&python, &packages)?)
}

/// `packages` has the Node package and the compiler of TypeScript in its `node_modules`.
fn judge(python: &Installed, packages: &Path) -> Result<Command> {
    let mut command = Command::new(&python.python);
    command.arg(run::root().join(JUDGE)).arg("--node").arg(packages);
    run::keep_bytecode(&mut command)?;
    Ok(command)
}
