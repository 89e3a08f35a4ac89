//! `cargo xtask python`: builds the Python package, installs it, and runs its tests.
//!
//! Everything stays below the target folder: an environment with the tools, and the wheel.

use crate::interop::Environment;
use crate::run::{self, Failure, Result, Steps};
use crate::setup;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The package, and the pinned versions of what builds and tests it.
const PACKAGE: &str = "python";
const REQUIREMENTS: &str = "python/requirements.txt";

pub fn python() -> Result {
    let mut steps = Steps::default();
    setup::install_languages(&mut steps)?;
    run_all(&mut steps)?;
    println!("\nThe Python package passed.\n{}", steps.table());
    Ok(())
}

/// All that the package has to pass.
pub fn run_all(steps: &mut Steps) -> Result {
    let target = run::target()?.join(PACKAGE);
    let tools = Environment {
        folder: target.join("tools"),
        requirements: vec![run::root().join(REQUIREMENTS)],
        imports: "maturin, pytest, mypy, hypothesis, uvloop",
    };
    let python = steps.timed("python, tools", || tools.install())?;
    let tests = run::root().join(PACKAGE).join("tests");
    let settings = run::root().join(PACKAGE).join("pyproject.toml");

    let wheels = target.join("wheels");
    // Wheels of other versions would be installed as well.
    if wheels.exists() {
        fs::remove_dir_all(&wheels)
            .map_err(|error| Failure::new(format!("cannot empty {}: {error}", wheels.display())))?;
    }
    let mut build = Command::new(&python);
    build.args(["-m", "maturin", "build", "--quiet", "--locked", "--profile", "ci", "--manifest-path"]);
    build.arg(run::root().join(PACKAGE).join("Cargo.toml")).arg("--interpreter").arg(&python).arg("--out").arg(&wheels);
    // The target folder that everything else is built in, wherever variables and configuration have moved it.
    build.env("CARGO_TARGET_DIR", run::target()?);
    run::forget_package(&mut build);
    steps.run("python, wheel", build)?;
    let mut install = Command::new(&python);
    install.args(["-m", "pip", "install", "--quiet", "--no-input", "--disable-pip-version-check", "--no-index"]);
    install.args(["--no-deps", "--force-reinstall"]).arg(wheel(&wheels)?);
    steps.run("python, installation", install)?;

    // From the folder of the tests: beside the package's source, that would be imported in its place.
    let mut module = |name: &str, args: &[&str], rest: &[&Path]| {
        let mut command = Command::new(&python);
        command.current_dir(&tests).arg("-m").args(args).args(rest);
        command.env("MYPY_CACHE_DIR", target.join("mypy")).env("PYTHONDONTWRITEBYTECODE", "1");
        command.env("HYPOTHESIS_STORAGE_DIRECTORY", target.join("hypothesis"));
        steps.run(name, command)
    };
    module("python, stubs", &["mypy.stubtest", "leasehold._native", "--mypy-config-file"], &[&settings])?;
    let source = run::root().join(PACKAGE).join("leasehold");
    module("python, types", &["mypy", "--config-file"], &[&settings, &source, &tests])?;
    module("python, tests", &["pytest", "-c"], &[&settings, &tests])
}

fn wheel(folder: &Path) -> Result<PathBuf> {
    let wheels = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let wheel = wheels.into_iter().find(|path| path.extension().is_some_and(|extension| extension == "whl"));
    wheel.ok_or_else(|| Failure::new(format!("maturin has left no wheel in {}", folder.display())))
}
