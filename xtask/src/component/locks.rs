//! The component that takes locks by itself, and the hosts that give it the network.

use super::{Guest, TOOLS, folder, make, make_module, precompile_for_python};
use crate::interop::Environment;
use crate::run::{self, Result};
use crate::steps::Steps;
use std::path::PathBuf;
use std::process::Command;

/// It can reach clocks, randomness and HTTP.
pub const GUEST: Guest = Guest {
    package: "leasehold-locks",
    component: "leasehold-locks.wasm",
    imports: &[
        "wasi:clocks/monotonic-clock@0.2.0",
        "wasi:clocks/wall-clock@0.2.0",
        "wasi:http/outgoing-handler@0.2.0",
        "wasi:http/types@0.2.0",
        "wasi:io/error@0.2.0",
        "wasi:io/poll@0.2.0",
        "wasi:io/streams@0.2.0",
        "wasi:random/random@0.2.0",
    ],
};
/// A wasmtime of its own: the one that the other hosts have, 48.0.0, sends no `Host`.
const REQUIREMENTS: &str = "testing/interop/python/locks.txt";

/// Builds the component, and shows that it imports what it is meant to.
pub fn build(steps: &mut Steps) -> Result<PathBuf> {
    make(steps, &GUEST)
}

/// Installs a wasmtime that gives the component the network; answers the interpreter that has it.
pub fn install_python(steps: &mut Steps) -> Result<PathBuf> {
    let environment = Environment {
        folder: folder()?.join("python"),
        requirements: vec![run::root().join(REQUIREMENTS)],
        imports: "wasmtime",
    };
    steps.timed("a wasmtime with the network", || environment.install())
}

/// Builds it for every host, and tells the tests where that is.
pub fn prepare(steps: &mut Steps, tests: &mut Command) -> Result {
    let component = build(steps)?;
    let python = install_python(steps)?;
    let compiled = precompile_for_python(steps, &python, &component)?;
    let module = make_module(steps, &component, "locks", GUEST.imports)?;
    tests.env("LEASEHOLD_LOCKS_PYTHON", python).env("LEASEHOLD_LOCKS", compiled).env("LEASEHOLD_LOCKS_WASM", component);
    tests.env("LEASEHOLD_LOCKS_MODULE", module).env("LEASEHOLD_LOCKS_TOOLS", folder()?.join(TOOLS));
    Ok(())
}
