//! `cargo xtask go`: makes the generated part of the Go module, and tests the module. `cargo xtask go make`: only makes it.
//! `cargo xtask go pack`: leaves the modules as they are tagged, with that part in them.
//!
//! The generated part lies in the module, where Go looks for it, and in no repository.

mod release;

pub use release::release;

use crate::interop::{self, Peers};
use crate::run::{self, Failure, Result};
use crate::servers::Dynamodb;
use crate::steps::Steps;
use crate::{component, servers};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const MODULE: &str = "go";
/// The programs that make and check it, pinned.
const TOOLS: &str = "go/tools";
/// Tests beside other lock libraries, which users of the module do not download.
const INTEROP: &str = "go/interop";
/// Modules beside it, for programs that use other libraries. Their tests are in `INTEROP`.
const ADAPTERS: [&str; 4] = ["go/gocron", "go/goredis", "go/otel", "go/rueidis"];
/// Everything in this folder is generated, and in no repository.
pub const GENERATED: &str = "go/internal/core/";
/// The package that is generated, below the module.
const CORE: &str = "internal/core";
/// In it: the protocol for wasm2go, and what that makes of it.
const WASM: &str = "wasm/core.wasm";
const SOURCE: &str = "wasm/core.go";
const TRANSLATOR: &str = "github.com/ncruces/wasm2go";
/// The first version that has what the tools want.
const MINOR: u32 = 26;

pub fn go(args: &[String]) -> Result {
    let mut steps = Steps::default();
    if let Some(missing) = missing() {
        return Err(Failure::new(missing));
    }
    match args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => {
            let peers = interop::install(&mut steps)?;
            run_all(&mut steps, &peers, None)?;
            println!("\nThe Go module passed.");
        }
        ["make"] => {
            make(&mut steps)?;
            println!(
                "\nThe module is complete. In the module of a program of yours:\n  go mod edit -replace {}={}\n  go get {}@v0.0.0",
                address()?,
                run::root().join(MODULE).display(),
                address()?
            );
        }
        ["pack"] => {
            let folder = run::target()?.join("go/packed");
            release(&mut steps, &folder, env!("CARGO_PKG_VERSION"))?;
            println!("\nThe modules, and a proxy of Go that has them, are in {}", folder.display());
        }
        [..] => {
            return Err(Failure::new(format!("`go` takes nothing, `make` or `pack`, but got `{}`", args.join(" "))));
        }
    }
    println!("{}", steps.table());
    Ok(())
}

/// All that the module has to pass, where there is Go; elsewhere the table of steps says what is missing.
pub fn run_where_possible(steps: &mut Steps, peers: &Peers, dynamodb: &Dynamodb) -> Result {
    match missing() {
        None => run_all(steps, peers, Some(dynamodb)),
        Some(missing) => steps.timed(&format!("NOT TESTED: the Go module, since {missing}"), || Ok(())),
    }
}

fn run_all(steps: &mut Steps, peers: &Peers, dynamodb: Option<&Dynamodb>) -> Result {
    make(steps)?;
    steps.timed("go, format", || formatted(&run::root().join(MODULE)))?;
    // Not what is generated: it is checked by what it does.
    let mut packages = go_in(MODULE);
    packages.args(["list", "./..."]);
    let packages = run::told("packages of the Go module", packages)?;
    let by_hand: Vec<_> = packages.split_whitespace().filter(|name| !name.contains(CORE)).collect();
    let staticcheck = tool(steps, "honnef.co/go/tools/cmd/staticcheck", "staticcheck")?;
    for (folder, packages) in
        [(MODULE, by_hand), (INTEROP, vec!["./..."])].into_iter().chain(ADAPTERS.map(|of| (of, vec!["."])))
    {
        let mut vet = go_in(folder);
        vet.arg("vet").args(&packages);
        steps.run_patiently(&format!("go vet, {folder}"), vet)?;
        let mut check = Command::new(&staticcheck);
        as_tests(&mut check, folder);
        check.args(&packages);
        steps.run_patiently(&format!("staticcheck, {folder}"), check)?;
    }
    for (name, folder) in [("go test", MODULE), ("go test, other libraries", INTEROP)] {
        // Compiled first: that takes minutes, for which tests of other stores must not wait.
        let mut build = go_in(folder);
        build.args(["test", "-run=^$", "./..."]);
        steps.run_patiently(&format!("{name}, compiled"), build)?;
        let mut tests = go_in(folder);
        tests.args(["test", "-count=1", "./..."]);
        servers::tell(steps, &mut tests)?;
        peers.tell(&mut tests);
        if let Some(dynamodb) = dynamodb {
            dynamodb.tell(&mut tests);
        }
        steps.run(name, tests)?;
    }
    Ok(())
}

/// Builds the worker of `cargo xtask chaos`, where there is Go.
pub fn chaos_worker(steps: &mut Steps) -> Result<Option<PathBuf>> {
    if let Some(missing) = missing() {
        steps.timed(&format!("NOT TESTED: workers in Go, since {missing}"), || Ok(()))?;
        return Ok(None);
    }
    make(steps)?;
    let path = run::target()?.join("go/chaosworker");
    let mut build = go_in(INTEROP);
    // One at a time, and not patiently: other suites wait for it, and beside them it would come last.
    build.args(["build", "-p", "1", "-o"]).arg(&path).arg("./chaosworker");
    steps.run("build chaosworker", build)?;
    Ok(Some(path))
}

/// Makes the generated part: the protocol as Go source, by wasm2go, and typed code that drives it.
fn make(steps: &mut Steps) -> Result {
    let module = component::module(steps)?;
    let core = run::root().join(MODULE).join(CORE);
    let before = fs::read(core.join(WASM)).unwrap_or_default();
    let mut generate = component::componentize(steps)?;
    generate.args(["go", component::WIT]).arg(module).arg(format!("{}/{CORE}", address()?)).arg(&core);
    generate.current_dir(run::root());
    // Not known to be the one of the source, until that is made.
    let doubted = |failed| {
        let _ = fs::remove_file(core.join(WASM));
        failed
    };
    steps.run("types of the WIT for Go", generate).map_err(doubted)?;
    let mut format = Command::new("gofmt");
    format.arg("-w").args(written(&core)?);
    steps.run("gofmt, types of the WIT", format).map_err(doubted)?;
    let source = core.join(SOURCE);
    let is_current = fs::read(core.join(WASM)).is_ok_and(|now| now == before)
        && fs::read_to_string(&source)
            .is_ok_and(|text| text.lines().next().is_some_and(|line| line.contains(&pinned())));
    if is_current {
        return Ok(());
    }
    let mut translate = Command::new(tool(steps, TRANSLATOR, "wasm2go").map_err(doubted)?);
    translate.args(["-pkg", "wasm", "-unsafe", "-o"]).arg(source).arg(core.join(WASM));
    steps.run("wasm2go", translate).map_err(doubted)
}

/// The version of the translator that is asked for, as it writes it.
fn pinned() -> String {
    let manifest = fs::read_to_string(run::root().join(TOOLS).join("go.mod")).unwrap_or_default();
    let line = manifest
        .lines()
        .find_map(|line| line.trim().strip_prefix(TRANSLATOR)?.split_whitespace().next().map(str::to_owned));
    line.unwrap_or_default()
}

/// Builds a pinned program, and answers where it is.
fn tool(steps: &mut Steps, package: &str, name: &str) -> Result<PathBuf> {
    let path = run::target()?.join("go").join(name);
    let mut build = go_in(TOOLS);
    build.args(["build", "-p", "1", "-o"]).arg(&path).arg(package);
    steps.run(&format!("build {name}"), build)?;
    Ok(path)
}

/// The path by which Go imports the module: its manifest is the one place that has it.
fn address() -> Result<String> {
    let path = run::root().join(MODULE).join("go.mod");
    let manifest = fs::read_to_string(&path).map_err(|error| Failure::new(format!("{}: {error}", path.display())))?;
    let line = manifest.lines().find_map(|line| line.strip_prefix("module "));
    line.map(str::to_owned).ok_or_else(|| Failure::new(format!("{} names no module", path.display())))
}

/// Fails where a file is not as gofmt writes it.
fn formatted(folder: &Path) -> Result {
    let mut format = Command::new("gofmt");
    format.arg("-l").arg(folder);
    let files = run::told("gofmt", format)?;
    match files.trim() {
        "" => Ok(()),
        files => Err(Failure::new(format!(
            "these are not as gofmt writes them:\n{files}\n  put it right: gofmt -w {MODULE}"
        ))),
    }
}

/// The files that are generated from the WIT.
fn written(core: &Path) -> Result<Vec<PathBuf>> {
    let listed = fs::read_dir(core).map_err(|error| Failure::new(format!("{}: {error}", core.display())))?;
    Ok(listed
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|end| end == "go"))
        .collect())
}

/// `go` in a folder, with the toolchain that is there.
fn go_in(folder: &str) -> Command {
    let mut command = Command::new("go");
    as_tests(&mut command, folder);
    command
}

/// Everything is built in one way, so that the protocol is compiled once: with the race detector, and without inlining in what
/// wasm2go has written, which takes a third of the memory and half the time.
fn as_tests(command: &mut Command, folder: &str) {
    let wasm = format!("{}/{CORE}/wasm", address().unwrap_or_default());
    let flags =
        if folder == TOOLS { "-mod=readonly".to_owned() } else { format!("-mod=readonly -race '-gcflags={wasm}=-l'") };
    command.current_dir(run::root().join(folder)).env("GOTOOLCHAIN", "local").env("GOFLAGS", flags);
}

/// The part that is missing here to build and test the module.
fn missing() -> Option<String> {
    let mut version = Command::new("go");
    version.arg("version");
    let found = run::told("go version", version).unwrap_or_default();
    if minor(&found).is_some_and(|minor| minor >= MINOR) {
        return None;
    }
    Some(format!("Go 1.{MINOR} or newer is not on the path\n  install: https://go.dev/dl"))
}

/// The minor version in `go version go1.26.8 linux/amd64`.
fn minor(said: &str) -> Option<u32> {
    let (_, rest) = said.split_once(" go1.")?;
    rest.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_of_go_is_read() {
        assert_eq!(minor("go version go1.26.8 linux/amd64"), Some(26));
        assert_eq!(minor("go version go1.9rc2 linux/amd64"), Some(9));
        assert_eq!(minor("go version devel"), None);
    }

    /// The times and tries of runs, which Go and JavaScript at the edge need by themselves, since they drive the protocol by themselves.
    const OF_RUNS: [(&str, &str, &str); 9] = [
        ("attempts", "RECORD_TTL", "recordTTL"),
        ("attempts", "RECORD_WAIT", "recordWait"),
        ("attempts", "REASON_WAIT", "reasonWait"),
        ("attempts", "LOOKS", "looks"),
        ("once", "FORGET_TTL", "forgetTTL"),
        ("once", "FORGET_WAIT", "forgetWait"),
        ("once", "FORGET_TRIES", "forgetTries"),
        ("once", "FORGET_TRIES_OF_SLOW_NODES", "forgetTriesOfSlowNodes"),
        ("once", "FORGET_LOOKS", "forgetLooks"),
    ];

    fn read(path: &str) -> String {
        std::fs::read_to_string(run::root().join(path)).expect("it can be read")
    }

    /// The value of a constant: a number, or a length of time in milliseconds.
    #[derive(Debug, PartialEq)]
    enum Constant {
        Number(u32),
        Ms(u32),
    }

    fn constant(text: &str, before: &str) -> Option<Constant> {
        let line = text.lines().map(str::trim).find(|line| line.starts_with(before))?;
        let (_, value) = line.split_once('=')?;
        let is_seconds = value.contains("from_secs") || value.contains("time.Second");
        let digits: String = value.chars().filter(char::is_ascii_digit).collect();
        let number = digits.parse().ok()?;
        let is_ms = before.ends_with("_MS ");
        Some(if is_seconds {
            Constant::Ms(number * 1000)
        } else if is_ms {
            Constant::Ms(number)
        } else {
            Constant::Number(number)
        })
    }

    #[test]
    fn runs_take_the_same_times_and_tries_in_go_as_in_rust() {
        for (file, in_rust, in_go) in OF_RUNS {
            let rust = constant(&read(&format!("client/src/runs/{file}.rs")), &format!("const {in_rust}:"));
            let go = constant(&read(&format!("go/{file}.go")), &format!("{in_go} "));
            assert!(rust.is_some() && rust == go, "{in_rust} is {rust:?}, and {in_go} is {go:?}");
        }
    }

    #[test]
    fn runs_take_the_same_times_and_tries_at_the_edge_as_in_rust() {
        let edge = read("node/edge/attempts.mjs");
        for (file, name, _) in OF_RUNS {
            let rust = constant(&read(&format!("client/src/runs/{file}.rs")), &format!("const {name}:"));
            let as_ms = constant(&edge, &format!("const {name}_MS "));
            let edge = as_ms.or_else(|| constant(&edge, &format!("const {name} ")));
            assert!(rust.is_some() && rust == edge, "{name} is {rust:?}, and {edge:?} at the edge");
        }
    }

    #[test]
    fn the_translator_is_pinned() {
        assert!(pinned().starts_with('v'), "{}", pinned());
    }
}
