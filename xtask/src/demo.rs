//! `cargo xtask demo`: builds the demo and becomes it.

use crate::interop::{self, Peers};
use crate::run::{self, Result};
use crate::setup;
use crate::steps::Steps;
use std::process::Command;

/// Which stores a program is built with.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Stores {
    /// SQLite alone, which builds in a third of the time.
    Embedded,
    All,
}

/// The option for the demo on three clouds, which needs their emulators.
const CLOUDS: &str = "--clouds";

pub fn demo(args: &[String]) -> Result {
    if args == [CLOUDS] {
        let mut steps = Steps::default();
        setup::install_languages(&mut steps)?;
        let peers = interop::install(&mut steps)?;
        return become_program(build_clouds(&mut steps, &peers)?);
    }
    let mut demo = build(&mut Steps::default(), Stores::Embedded)?;
    demo.args(args);
    become_program(demo)
}

/// Builds the demo and the command line it drives; returns the command that starts it.
pub fn build(steps: &mut Steps, stores: Stores) -> Result<Command> {
    build_programs(steps, &["leasehold", "demo"], stores)?;
    Ok(Command::new(run::built()?.join("demo")))
}

/// Builds the demo on three clouds; returns the command that starts it.
pub fn build_clouds(steps: &mut Steps, peers: &Peers) -> Result<Command> {
    let mut build = run::cargo_ci("build");
    build.args(["-p", "leasehold-chaos", "--bin", "demo-clouds"]);
    steps.build("build demo-clouds", build)?;
    let mut command = Command::new(run::built()?.join("demo-clouds"));
    peers.tell(&mut command);
    Ok(command)
}

/// Builds binaries of the command line and of the benchmark crate. Always both packages, whichever binary is asked for:
/// another set of packages can mean other features of shared dependencies, which would compile them again.
pub fn build_programs(steps: &mut Steps, names: &[&str], stores: Stores) -> Result {
    setup::c_compiler()?;
    let mut build = run::cargo_ci("build");
    build.args(["-p", "leasehold-cli", "-p", "leasehold-bench"]);
    if stores == Stores::Embedded {
        build.args(["--no-default-features", "--features", "leasehold-cli/sqlite"]);
    }
    for name in names {
        build.args(["--bin", name]);
    }
    steps.build(&format!("build {}", names.join(" ")), build)
}

/// Replaces this process, so that signals and the exit status are the program's own.
#[cfg(unix)]
pub fn become_program(mut command: Command) -> Result {
    use std::os::unix::process::CommandExt;
    let error = command.exec();
    Err(run::Failure::new(format!("cannot start {}: {error}", command.get_program().to_string_lossy())))
}

#[cfg(not(unix))]
pub fn become_program(command: Command) -> Result {
    let name = command.get_program().to_string_lossy().into_owned();
    Steps::default().run(&name, command)
}
