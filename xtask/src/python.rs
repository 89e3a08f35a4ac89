//! `cargo xtask python`: builds the Python package, installs it, and runs its tests.
//!
//! Everything stays below the target folder: an environment with the tools, and the wheel.

use crate::interop::{self, Environment};
use crate::release::Native;
use crate::run::{self, Failure, Result};
use crate::steps::Steps;
use crate::{servers, setup, test};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The package, and the pinned versions of what builds and tests it, and of the libraries that it is tested with.
const PACKAGE: &str = "python";
const PACKAGE_SOURCE: &str = "python/leasehold";
const TESTS: &str = "python/tests";
const REQUIREMENTS: [&str; 2] = ["python/requirements.txt", "python/libraries.txt"];
/// Programs as newcomers write them, and their judge.
const PROGRAMS: &str = "testing/programs";
/// The benchmark, and the pinned versions of the locks that it is measured beside.
const BENCHMARK: &str = "python/bench/locks.py";
const PEERS: &str = "python/bench/requirements.txt";

/// Parts of the command that a build of the package alone could be without.
pub const WHOLE: [&str; 2] = ["serve", "top"];

const HAS_LICENSES: &str = "\
import importlib.metadata
files = importlib.metadata.files('leasehold-sdk')
texts = {file.name for file in files if file.parent.name == 'licenses' and file.read_text()}
assert texts == {'LICENSE-APACHE', 'LICENSE-MIT'}, texts
";

/// Stands in for Cargo: maturin would build this package alone, and what is below it with other features than everything else.
const CARGO: &str = r#"#!/bin/sh
[ "$1" = rustc ] || exec "$LEASEHOLD_CARGO" "$@"
unset PYO3_CONFIG_FILE PYO3_PYTHON PYTHON_SYS_EXECUTABLE PYO3_ENVIRONMENT_SIGNATURE
exec "$LEASEHOLD_CARGO" build --locked --profile ci $LEASEHOLD_ALL --message-format json-render-diagnostics
"#;

/// With `sdist` the source distribution alone, which takes longer.
pub fn python(args: &[String]) -> Result {
    let mut steps = Steps::default();
    setup::install_languages(&mut steps)?;
    match args {
        [] => {
            let installed = install(&mut steps)?;
            test(&mut steps, &installed)?;
        }
        [only] if only == "sdist" => drop(source(&mut steps)?),
        [..] => return Err(Failure::new(format!("`python` takes nothing, or `sdist`, but got `{}`", args.join(" ")))),
    }
    println!("\nThe Python package passed.\n{}", steps.table());
    Ok(())
}

/// An installed wheel.
pub struct Installed {
    /// The interpreter that has it, beside the tools.
    pub python: PathBuf,
    wheel: PathBuf,
}

/// Processes that share the tests: most of them wait for servers and leases, and one process does one thing at a time.
pub const SHARES: usize = 3;

/// All that the package has to pass.
fn test(steps: &mut Steps, installed: &Installed) -> Result {
    check(steps, installed)?;
    (0..SHARES).try_for_each(|share| run_share(steps, installed, share))
}

/// The types, and the wheel where nothing else is.
pub fn check(steps: &mut Steps, Installed { python, wheel }: &Installed) -> Result {
    let target = run::target()?.join(PACKAGE);
    let settings = run::root().join(PACKAGE).join("pyproject.toml");
    let mypy = |module: &str| {
        let mut command = tool(python, module)?;
        command.env("MYPY_CACHE_DIR", target.join("mypy"));
        Ok::<_, Failure>(command)
    };
    let mut stubs = mypy("mypy.stubtest")?;
    stubs.args(["leasehold._native", "--mypy-config-file"]).arg(&settings);
    steps.run("python, stubs", stubs)?;
    let mut types = mypy("mypy")?;
    types.arg("--config-file").arg(&settings).args([PACKAGE_SOURCE, TESTS].map(|path| run::root().join(path)));
    types.arg(run::root().join("examples").join(PACKAGE));
    types.args([PACKAGE, "judge"].map(|part| run::root().join(PROGRAMS).join(part)));
    steps.run("python, types", types)?;
    steps.timed("python, wheel alone", || works_alone(wheel, &target.join("alone")))
}

/// One of the processes that share the tests.
pub fn run_share(steps: &mut Steps, Installed { python, .. }: &Installed, share: usize) -> Result {
    let name = format!("python, tests {}", share + 1);
    let mut tests = tool(python, "pytest")?;
    servers::tell(steps, &mut tests)?;
    tests.env("HYPOTHESIS_STORAGE_DIRECTORY", run::target()?.join(PACKAGE).join("hypothesis"));
    tests.arg("-c").arg(run::root().join(PACKAGE).join("pyproject.toml"));
    if let Some(logs) = steps.logs() {
        // With all that was printed and logged, also where nothing failed.
        tests.arg("--junitxml").arg(logs.report(&name)).args(["-o", "junit_logging=all"]);
    }
    tests.args(test_files()?.iter().skip(share).step_by(SHARES));
    steps.run(&name, tests)
}

/// A module of the tools, in the folder of the tests: beside the package's source, that would be imported in its place.
fn tool(python: &Path, module: &str) -> Result<Command> {
    let mut command = Command::new(python);
    command.current_dir(run::root().join(TESTS)).args(["-m", module]);
    run::keep_bytecode(&mut command)?;
    Ok(command)
}

fn test_files() -> Result<Vec<PathBuf>> {
    let folder = run::root().join(TESTS);
    let listed = fs::read_dir(&folder);
    let listed = listed.map_err(|error| Failure::new(format!("cannot list {}: {error}", folder.display())))?;
    let is_test = |path: &PathBuf| {
        path.extension().is_some_and(|end| end == "py")
            && path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("test_"))
    };
    let mut files: Vec<PathBuf> = listed.flatten().map(|entry| entry.path()).filter(is_test).collect();
    files.sort();
    Ok(files)
}

/// Builds the wheel, and installs it beside the tools.
pub fn install(steps: &mut Steps) -> Result<Installed> {
    let python = install_tools(steps)?;
    let wheel = build_wheel(steps, &python, &run::target()?.join(PACKAGE).join("wheels"), &["--profile", "ci"])?;
    steps.run("python, installation", install_wheel(&python, &wheel)?)?;
    Ok(Installed { python, wheel })
}

/// The source distribution, built as on machines without a wheel; answers the archive.
pub fn source(steps: &mut Steps) -> Result<PathBuf> {
    let python = install_tools(steps)?;
    let folder = run::target()?.join(PACKAGE).join("source");
    empty(&folder)?;
    let mut sdist = maturin(&python, "sdist");
    sdist.arg("--out").arg(&folder);
    steps.timed("python, source distribution", || run::quietly("maturin sdist", sdist))?;
    let archive = only(&folder, "gz")?;
    let mut build = interop::uv("build")?;
    build.args(["--wheel", "--offline", "--no-build-isolation", "--python"]).arg(&python);
    build.arg("--out-dir").arg(&folder).arg(&archive);
    // The build calls maturin by its name.
    let tools = python.parent().map(Path::to_path_buf).into_iter();
    let path = std::env::var_os("PATH").unwrap_or_default();
    let path = std::env::join_paths(tools.chain(std::env::split_paths(&path)));
    build.env("PATH", path.map_err(|error| Failure::new(format!("the path cannot be extended: {error}")))?);
    // Of its own: files of the archive are old, so that what was compiled from the workspace would pass for theirs.
    build.env("CARGO_TARGET_DIR", folder.join("target")).env("MATURIN_PEP517_ARGS", "--profile ci");
    run::forget_package(&mut build);
    steps.run("python, wheel of the source distribution", build)?;
    let wheel = only(&folder, "whl")?;
    steps.timed("python, that wheel alone", || works_alone(&wheel, &folder.join("alone")))?;
    Ok(archive)
}

/// The command that compares the package, as users build it, with other locks.
pub fn bench(steps: &mut Steps, args: &[String]) -> Result {
    setup::install(steps)?;
    let tools = install_tools(steps)?;
    let target = run::target()?.join(PACKAGE);
    let python = install_peers(steps)?;
    let wheel = build_wheel(steps, &tools, &target.join("bench-wheels"), &["--profile", run::DIST])?;
    steps.run("python, installation", install_wheel(&python, &wheel)?)?;
    let mut command = Command::new(&python);
    command.arg(run::root().join(BENCHMARK)).args(args);
    run::keep_bytecode(&mut command)?;
    servers::tell(steps, &mut command)?;
    steps.run("python, benchmark", command)
}

/// The interpreter that has the locks of others.
pub fn install_peers(steps: &mut Steps) -> Result<PathBuf> {
    let peers = Environment {
        folder: run::target()?.join(PACKAGE).join("bench"),
        requirements: vec![run::root().join(PEERS)],
        imports: "redis, redis_lock, pottery, aioredlock",
    };
    steps.timed("python, other locks", || peers.install())
}

/// The wheel as it is published, which works alone, with the licences of what is compiled in.
pub fn release(steps: &mut Steps, native: &Native, folder: &Path, notices: &Path) -> Result {
    let python = install_tools(steps)?;
    let target = run::target()?.join(PACKAGE);
    // All that lies in the module's folder becomes a part of the wheel.
    let name = notices.file_name().unwrap_or_default();
    let beside = run::root().join(PACKAGE).join("leasehold").join(name);
    fs::copy(notices, &beside).map_err(|error| Failure::new(format!("cannot write {}: {error}", beside.display())))?;
    let wheels = target.join("release-wheels");
    let build = native.maturin(&python)?;
    let wheel = build_wheel_by(steps, build, &python, &wheels, &["--profile", run::DIST]);
    let removed = fs::remove_file(&beside);
    let wheel = wheel?;
    removed.map_err(|error| Failure::new(format!("cannot remove {}: {error}", beside.display())))?;
    let mut listing = Command::new("python3");
    listing.args(["-m", "zipfile", "-l"]).arg(&wheel);
    let listed = listing.output().map_err(|error| Failure::new(format!("cannot list the wheel: {error}")))?;
    if !String::from_utf8_lossy(&listed.stdout).contains(&format!("leasehold/{}", name.to_string_lossy())) {
        return Err(Failure::new("the wheel has no licences of what is compiled in"));
    }
    steps.timed("python, wheel alone", || works_alone(&wheel, &target.join("alone")))?;
    copy_into(&wheel, folder)
}

fn copy_into(file: &Path, folder: &Path) -> Result {
    let to = folder.join(file.file_name().unwrap_or_default());
    let copied = fs::copy(file, &to).map(|_| ());
    copied.map_err(|error| Failure::new(format!("cannot copy {}: {error}", file.display())))
}

/// Installs what builds and tests the package; answers the interpreter that has it.
pub fn install_tools(steps: &mut Steps) -> Result<PathBuf> {
    let tools = Environment {
        folder: run::target()?.join(PACKAGE).join("tools"),
        requirements: REQUIREMENTS.iter().map(|name| run::root().join(name)).collect(),
        imports: "maturin, pytest, mypy, hypothesis, uvloop, celery, django, gunicorn, opentelemetry.sdk, prometheus_client, redis, uvicorn",
    };
    steps.timed("python, tools", || tools.install())
}

fn maturin(python: &Path, subcommand: &str) -> Command {
    let mut command = Command::new(python);
    command.args(["-m", "maturin", subcommand]);
    for_package(&mut command);
    command
}

fn for_package(maturin: &mut Command) {
    maturin.arg("--manifest-path").arg(run::root().join(PACKAGE).join("Cargo.toml"));
    run::forget_package(maturin);
    run::add_lints(maturin);
}

fn build_wheel(steps: &mut Steps, python: &Path, folder: &Path, profile: &[&str]) -> Result<PathBuf> {
    let mut maturin = Command::new(python);
    maturin.args(["-m", "maturin", "build"]);
    build_wheel_by(steps, maturin, python, folder, profile)
}

fn build_wheel_by(
    steps: &mut Steps,
    mut build: Command,
    python: &Path,
    folder: &Path,
    profile: &[&str],
) -> Result<PathBuf> {
    // Wheels of other versions would be installed as well.
    empty(folder)?;
    for_package(&mut build);
    build.args(["--quiet", "--locked"]).args(profile).arg("--interpreter").arg(python).arg("--out").arg(folder);
    // The target folder that everything else is built in, wherever variables and configuration have moved it.
    build.env("CARGO_TARGET_DIR", run::target()?);
    if steps.has_built_all() && run::MAKES_WHEEL && profile.contains(&"ci") {
        // The same targets as well, since tests turn on features of what they depend on.
        let all = [&test::ALL[..], &test::TARGETS].concat().join(" ");
        build.env("CARGO", run::script("cargo", CARGO)?).env("LEASEHOLD_CARGO", run::tool("cargo"));
        build.env("LEASEHOLD_ALL", all);
    }
    steps.run("python, wheel", build)?;
    only(folder, "whl")
}

/// Installs a wheel, and nothing else.
fn install_wheel(python: &Path, wheel: &Path) -> Result<Command> {
    let mut install = interop::uv("pip")?;
    install.args(["install", "--no-index", "--no-deps", "--reinstall", "--python"]).arg(python).arg(wheel);
    Ok(install)
}

/// Runs the example of the package's README, and its command, where nothing but the wheel is: no other package, and no
/// program on the path.
fn works_alone(wheel: &Path, folder: &Path) -> Result {
    empty(folder)?;
    interop::virtual_environment(folder, &["--without-pip"])?;
    let python = folder.join("bin/python");
    run::quietly("python, installation", install_wheel(&python, wheel)?)?;
    let readme = run::root().join(PACKAGE).join("README.md");
    let text = fs::read_to_string(&readme)
        .map_err(|error| Failure::new(format!("cannot read {}: {error}", readme.display())))?;
    let example = text.split_once("```python\n").and_then(|(_, rest)| rest.split_once("```"));
    let Some((example, _)) = example else {
        return Err(Failure::new(format!("{} has no example", readme.display())));
    };
    let alone = |program: &str, args: &[&str]| {
        let mut command = Command::new(folder.join("bin").join(program));
        command.args(args).current_dir(folder).env_clear();
        command
    };
    run::quietly("example of the README", alone("python", &["-I", "-W", "error", "-c", example]))?;
    run::quietly("texts of the licences", alone("python", &["-I", "-c", HAS_LICENSES]))?;
    for command in WHOLE {
        run::quietly(&format!("leasehold {command}"), alone("leasehold", &[command, "--help"]))?;
    }
    run::quietly("leasehold --version", alone("leasehold", &["--version"]))
}

fn empty(folder: &Path) -> Result {
    if !folder.exists() {
        return Ok(());
    }
    fs::remove_dir_all(folder).map_err(|error| Failure::new(format!("cannot empty {}: {error}", folder.display())))
}

/// The file in a folder that ends so.
fn only(folder: &Path, extension: &str) -> Result<PathBuf> {
    let files = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let file = files.into_iter().find(|path| path.extension().is_some_and(|found| found == extension));
    file.ok_or_else(|| Failure::new(format!("maturin has left no .{extension} in {}", folder.display())))
}
