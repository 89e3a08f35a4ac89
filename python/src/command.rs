//! The `leasehold` command.

use std::ffi::OsString;

use pyo3::prelude::*;

/// Runs the command line with these arguments, of which the first is the program's name. Returns its exit status.
#[pyfunction]
pub(crate) fn run(py: Python<'_>, args: Vec<OsString>) -> u8 {
    py.detach(|| leasehold_cli::status_of(args))
}
