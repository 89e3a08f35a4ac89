//! An older version of the command, built from the history of the repository.

use crate::run::{self, Failure, Result};
use crate::steps::Steps;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The last commit whose runs have no results and count no attempts.
const REVISION: &str = "4ab3cf90";

/// Builds the command, unless it is there. Answers its path.
pub fn build(steps: &mut Steps) -> Result<PathBuf> {
    let folder = run::target()?.join("older").join(REVISION);
    let (source, target) = (folder.join("source"), folder.join("target"));
    let command = target.join("ci").join("leasehold");
    if !source.join("Cargo.toml").is_file() {
        steps.timed("source of an older version", || unpack(&folder, &source))?;
    }
    let mut build = run::cargo("build");
    build.current_dir(&source).env("CARGO_TARGET_DIR", &target);
    build.args(["--profile", "ci", "-p", "leasehold-cli", "--bin", "leasehold"]);
    steps.run("build the command of an older version", build)?;
    Ok(command)
}

fn unpack(folder: &Path, source: &Path) -> Result {
    let archive = folder.join("source.tar");
    fs::create_dir_all(source).map_err(|error| Failure::new(format!("cannot make {}: {error}", source.display())))?;
    let mut known = Command::new("git");
    known.current_dir(run::root()).args(["cat-file", "-e", &format!("{REVISION}^{{commit}}")]);
    if !run::succeeds(known) {
        return Err(Failure::new(format!(
            "the commit {REVISION} is not here: fetch the whole history, with `git fetch --unshallow`"
        )));
    }
    let mut pack = Command::new("git");
    pack.current_dir(run::root()).args(["archive", "--format", "tar", REVISION, "-o"]).arg(&archive);
    run::quietly("git archive", pack)?;
    let mut tar = Command::new("tar");
    tar.arg("-xf").arg(&archive).arg("-C").arg(source);
    run::quietly("tar", tar)
}
