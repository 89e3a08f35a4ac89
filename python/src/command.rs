//! The `leasehold` command.

use std::ffi::OsString;

use pyo3::prelude::*;

/// Runs the command line with these arguments, the program's name first, and answers its exit status.
#[pyfunction]
pub(crate) fn run(py: Python<'_>, args: Vec<OsString>) -> u8 {
    py.detach(|| leasehold_cli::status_of(args))
}
