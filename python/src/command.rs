//! The `leasehold` command.

use std::ffi::OsString;

use pyo3::prelude::*;

/// Runs the command line with these arguments, of which the first is the program's name. Returns its exit status.
#[cfg(unix)]
#[pyfunction]
pub(crate) fn run(py: Python<'_>, args: Vec<OsString>) -> u8 {
    py.detach(|| leasehold_cli::status_of(args))
}

/// Says that there is no command here. Returns the exit status of what the system refuses.
#[cfg(windows)]
#[expect(clippy::print_stderr, reason = "that is where a command says why it fails")]
#[pyfunction]
pub(crate) fn run(_args: Vec<OsString>) -> u8 {
    eprintln!("leasehold: the command runs on Unix only for now, since it needs process groups and signals");
    71
}
