//! `cargo xtask openapi`: the document of `leasehold serve` by a validator, and the daemon by a program that sends all sorts of
//! requests and holds the answers against the document.

use crate::interop::Environment;
use crate::run::{self, Result};
use crate::setup;
use crate::steps::Steps;
use std::path::{Path, PathBuf};
use std::process::Command;

const SCRIPT: &str = "testing/interop/python/openapi.py";
/// A separate environment, since other tools need other versions of the same libraries.
const REQUIREMENTS: &str = "testing/interop/python/openapi.txt";

pub fn openapi() -> Result {
    let mut steps = Steps::default();
    setup::install(&mut steps)?;
    let mut build = run::cargo_ci("build");
    build.args(["-p", "leasehold-cli", "--bins"]);
    steps.run("build", build)?;
    let python = install(&mut steps)?;
    check(&mut steps, &python)?;
    println!("\nThe daemon does what its document says.\n{}", steps.table());
    Ok(())
}

/// Installs what checks the document; answers the interpreter that has it.
pub fn install(steps: &mut Steps) -> Result<PathBuf> {
    let tools = Environment {
        folder: run::target()?.join("openapi"),
        requirements: vec![run::root().join(REQUIREMENTS)],
        imports: "schemathesis, openapi_spec_validator",
    };
    steps.timed("schemathesis", || tools.install())
}

/// Runs the checks against the command that has been built.
pub fn check(steps: &mut Steps, python: &Path) -> Result {
    let mut check = Command::new(python);
    check.arg(run::root().join(SCRIPT)).arg(run::built()?.join("leasehold"));
    steps.run("OpenAPI of the daemon", check)
}
