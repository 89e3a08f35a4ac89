//! Programs that libFuzzer drives: the crates of this workspace are compiled for it, and those below them as always.
//!
//! So nothing below is compiled a second time. What is not looked into is other people's code, for which the dictionaries
//! know the words.

use crate::run::{self, Result};
use crate::steps::Steps;
use crate::test;
use std::collections::hash_map::DefaultHasher;
use std::fs;
use std::hash::{Hash, Hasher};
use std::path::{Path, PathBuf};

/// Stands in for the compiler. It counts which edges are taken, and shows libFuzzer what is compared with what.
const COMPILER: &str = "\
#!/bin/sh
rustc=$1
shift
exec \"$rustc\" \"$@\" --cfg fuzzing -Cpasses=sancov-module \\
    -Cllvm-args=-sanitizer-coverage-level=4 -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \\
    -Cllvm-args=-sanitizer-coverage-pc-table -Cllvm-args=-sanitizer-coverage-trace-compares
";
/// Has crates below compiled with the features that they have in tests. It is driven by libFuzzer as well, and never run.
const BESIDE: &str = "corpus";

/// Answers the folder with the programs.
pub fn build(steps: &mut Steps, folder: &Path, targets: &[String]) -> Result<PathBuf> {
    let mut build = run::cargo_ci("build");
    build.args(test::ALL).args(["--features", "leasehold-fuzz/client", "--test", BESIDE]);
    for name in targets {
        build.args(["--bin", name]);
    }
    build.env("RUSTC_WORKSPACE_WRAPPER", compiler()?);
    steps.run("build the fuzzers", build)?;
    // Beside the usual ones of these names, which are back with the next build.
    let (built, programs) = (run::built()?, folder.join("programs"));
    fs::create_dir_all(&programs).map_err(|error| super::cannot("make", &programs, &error))?;
    for name in targets {
        let to = programs.join(name);
        let _ = fs::remove_file(&to);
        fs::copy(built.join(name), &to).map_err(|error| super::cannot("write", &to, &error))?;
    }
    Ok(programs)
}

/// Cargo knows what it compiled by the name of the compiler, so each set of flags has a name of its own.
fn compiler() -> Result<PathBuf> {
    let mut hasher = DefaultHasher::new();
    COMPILER.hash(&mut hasher);
    run::script(&format!("rustc-{:016x}", hasher.finish()), COMPILER)
}
