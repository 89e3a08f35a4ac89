//! `cargo xtask prove windows`: the core and the client as programs for Windows, and their tests under Wine.
//!
//! Servers run on this machine, started by a launcher that the tests ask. Wine is no Windows: this shows that the code
//! compiles, and that it makes no wrong use of what Wine has. The standard library is compiled from its sources, where the
//! toolchain has none for Windows.

mod faces;

use crate::component::toolchain::{self, DEBIAN_CARGO, DEBIAN_RUSTC};
use crate::run::{self, Failure, Result};
use crate::setup;
use crate::steps::Steps;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

const TARGET: &str = "x86_64-pc-windows-gnu";
const COMPILER: &str = "x86_64-w64-mingw32-gcc";
/// Debian keeps it off the path.
const WINE: [&str; 2] = ["/usr/lib/wine/wine64", "wine64"];
/// A library that old versions of Wine lack, for randomness.
const STUB: &str = "bcryptprimitives";
const STUB_SOURCE: &str = "testing/wine/bcryptprimitives.c";
const LAUNCHER: &str = "testing/servers/launcher.py";
/// By this number SQLite files tell one start of the system from another. Wine has none.
const BOOT: &str = r"HKLM\SYSTEM\CurrentControlSet\Control\Session Manager\Memory Management\PrefetchParameters";
/// The stores whose servers run beside Wine.
const FEATURES: &str = "sqlite,redis,http,metrics";

/// Tests of the core alone, and of the client.
const CORE: [&str; 5] = ["-p", "leasehold-core", "-p", "leasehold-wire", "--tests"];
const CLIENT: [&str; 6] = ["-p", "leasehold", "--no-default-features", "--features", FEATURES, "--lib"];
/// The other suites of the client are for other stores, or want a process for each test.
const SUITES: [&str; 6] = ["conformance", "embedded", "hanging_log", "quorum", "redis", "waiters"];
/// Tests whose servers need more than to be started on this machine: clocks of their own, socket files, files with paths. One
/// wants a process of its own.
const SKIPPED: [&str; 7] = [
    "a_doctor_looks_at_nodes",
    "a_server_clock",
    "clock_that",
    "confirm_nothing",
    "failover::",
    "no_output_has_a_nonce",
    "over_a_unix_socket",
];

pub fn run(steps: &mut Steps) -> Result {
    setup::install_windows(steps)?;
    let wine = steps.timed("Wine's folder", Wine::install)?;
    let mut check = cargo("check")?;
    check.args(["-p", "leasehold"]);
    steps.run("Windows, the client with all stores", check)?;
    let launcher = Launcher::start(&wine)?;
    for (name, arguments, suites) in [("core", &CORE[..], &[][..]), ("client", &CLIENT[..], &SUITES[..])] {
        let mut test = cargo("test")?;
        test.args(arguments).arg("--no-fail-fast").args(suites.iter().flat_map(|suite| ["--test", suite]));
        test.arg("--").args(SKIPPED.iter().flat_map(|name| ["--skip", name]));
        wine.settings(&mut test);
        test.env("CARGO_TARGET_X86_64_PC_WINDOWS_GNU_RUNNER", &wine.program)
            .env("LEASEHOLD_LAUNCHER", &launcher.address);
        steps.run(&format!("Windows, {name}"), test)?;
    }
    faces::run(steps, &wine, &launcher)
}

/// `cargo <subcommand>` for Windows, in a target folder of its own.
fn cargo(subcommand: &str) -> Result<Command> {
    let folder = run::target()?.join("windows");
    let has_library = toolchain::ask(&["--print", "target-libdir", "--target", TARGET])
        .is_some_and(|folder| toolchain::has_core(&folder));
    let mut cargo = if has_library {
        run::cargo(subcommand)
    } else {
        let mut cargo = Command::new(DEBIAN_CARGO);
        cargo.current_dir(run::root()).args([subcommand, "--locked", "-Zbuild-std=std,panic_unwind,test"]);
        cargo.env("RUSTC", DEBIAN_RUSTC).env("RUSTC_BOOTSTRAP", "1");
        run::forget_package(&mut cargo);
        cargo
    };
    cargo.args(["--profile", "ci", "--target", TARGET]).env("CARGO_TARGET_DIR", folder);
    cargo.env("CARGO_TARGET_X86_64_PC_WINDOWS_GNU_LINKER", COMPILER);
    Ok(cargo)
}

/// Wine, and a folder that is its Windows.
struct Wine {
    program: PathBuf,
    prefix: PathBuf,
}

impl Wine {
    fn install() -> Result<Wine> {
        let found = WINE.iter().map(PathBuf::from).find(|path| run::succeeds(version_of(path)));
        let program = found.ok_or_else(|| Failure::new("there is no wine64"))?;
        let wine = Wine { program, prefix: run::target()?.join("wine") };
        let system = wine.prefix.join("drive_c/windows/system32");
        if !system.join(format!("{STUB}.dll")).exists() {
            run::quietly("wineboot", wine.run(&["wineboot", "-u"]))?;
            let mut compile = Command::new(COMPILER);
            compile.args(["-shared", "-O2", "-Wall", "-o"]).arg(system.join(format!("{STUB}.dll")));
            compile.arg(run::root().join(STUB_SOURCE)).arg("-ladvapi32");
            run::quietly("the library for randomness", compile)?;
        }
        run::quietly(
            "number of the boot",
            wine.run(&["reg", "add", BOOT, "/v", "BootId", "/t", "REG_DWORD", "/d", "1", "/f"]),
        )?;
        Ok(wine)
    }

    fn run(&self, words: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command.args(words);
        self.settings(&mut command);
        command
    }

    fn settings(&self, command: &mut Command) {
        command.env("WINEPREFIX", &self.prefix).env("WINEARCH", "win64").env("WINEDEBUG", "-all");
        command.env("WINEDLLOVERRIDES", "mscoree=;mshtml=");
    }
}

impl Drop for Wine {
    fn drop(&mut self) {
        // Its server, which would stay for a while.
        let _ = run::quietly("wineboot", self.run(&["wineboot", "--kill"]));
    }
}

fn version_of(program: &Path) -> Command {
    let mut command = Command::new(program);
    command.arg("--version");
    command
}

/// Starts servers for the tests, until it is dropped.
struct Launcher {
    child: Child,
    address: String,
}

impl Launcher {
    fn start(wine: &Wine) -> Result<Launcher> {
        let fail = |error| Failure::new(format!("cannot run {LAUNCHER}: {error}"));
        let mut python = Command::new("python3");
        python.arg("-B").arg(run::root().join(LAUNCHER)).arg(&wine.prefix).stdin(Stdio::null()).stdout(Stdio::piped());
        let mut child = python.spawn().map_err(fail)?;
        let mut port = String::new();
        if let Some(output) = child.stdout.take() {
            BufReader::new(output).read_line(&mut port).map_err(fail)?;
        }
        Ok(Launcher { child, address: format!("127.0.0.1:{}", port.trim()) })
    }
}

impl Drop for Launcher {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The Debian packages that are missing.
pub fn missing() -> Vec<&'static str> {
    let mut missing = Vec::new();
    if !run::succeeds(version_of(Path::new(COMPILER))) {
        missing.push("gcc-mingw-w64-x86-64");
    }
    if !WINE.iter().any(|program| run::succeeds(version_of(Path::new(program)))) {
        missing.push("wine64");
    }
    missing
}
