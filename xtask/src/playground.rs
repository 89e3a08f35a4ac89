//! `cargo xtask playground`: the protocol in a browser, as one page that needs no server.

use crate::node::test_files;
use crate::run::{self, Failure, Result};
use crate::steps::Steps;
use crate::{component, setup};
use std::path::{Path, PathBuf};
use std::process::Command;

const SOURCE: &str = "docs/playground";
/// The page, in the folder that it is built in.
pub const PAGE: &str = "index.html";

pub fn playground(args: &[String]) -> Result {
    let with_tests = match args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => false,
        ["--test"] => true,
        _ => return Err(Failure::new(format!("`{}`: only `--test` may follow `playground`", args.join(" ")))),
    };
    let mut steps = Steps::default();
    setup::install_languages(&mut steps)?;
    let component = component::build(&mut steps)?;
    let transpiled = component::transpile(&mut steps, &component)?;
    let folder = build(&mut steps, &transpiled)?;
    if with_tests {
        setup::install_browser(&mut steps)?;
        test(&mut steps, &transpiled, &folder)?;
    }
    print!("\n{}", steps.table());
    println!("\nOpen {}", folder.join(PAGE).display());
    Ok(())
}

/// Builds the page around the component as an ES module, and tests both.
pub fn run_all(steps: &mut Steps, transpiled: &Path) -> Result {
    let folder = build(steps, transpiled)?;
    test(steps, transpiled, &folder)
}

/// Builds the page around the component as an ES module, and answers its folder.
pub fn build(steps: &mut Steps, transpiled: &Path) -> Result<PathBuf> {
    let folder = run::target()?.join("playground");
    let mut build = Command::new("node");
    build.arg(run::root().join(SOURCE).join("build.mjs")).arg(transpiled).arg(folder.join(PAGE));
    steps.run("build the playground", build)?;
    Ok(folder)
}

fn test(steps: &mut Steps, transpiled: &Path, folder: &Path) -> Result {
    let mut tests = Command::new("node");
    tests
        .env("LEASEHOLD_TRANSPILED", transpiled)
        .env("LEASEHOLD_PLAYGROUND", folder)
        .env("LEASEHOLD_BROWSER", setup::browser()?)
        // One of the files waits for a browser, the others compute.
        .args(["--test", "--test-reporter=spec", "--test-concurrency=2", "--test-timeout=300000"])
        .args(test_files(&run::root().join(SOURCE).join("test"))?);
    steps.run("tests of the playground", tests)
}
