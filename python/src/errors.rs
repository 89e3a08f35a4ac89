//! Errors as exceptions. Their classes are Python's own, since each has two bases.

use leasehold::{Error, ErrorKind};
use pyo3::exceptions::PySystemExit;
use pyo3::prelude::*;

use crate::info::LockInfo;
use crate::signals;

/// The exception for an error of the client.
pub(crate) fn raised(py: Python<'_>, error: &Error) -> PyErr {
    // Whoever comes later than the waiters finds its client closed.
    let is_closed = || error.kind() == ErrorKind::Closed && !signals::is_main_thread(py).unwrap_or(true);
    if signals::is_ending() && (error.kind() == ErrorKind::Cancelled || is_closed()) {
        // A daemon thread still waits for a lock, or begins to, and should end without a word.
        return PySystemExit::new_err(());
    }
    let holder = error.holder().cloned().map(LockInfo::new);
    made(py, error.kind().name(), &error.to_string(), error.resource(), holder)
}

/// A setting or use that cannot work.
pub(crate) fn config(py: Python<'_>, message: &str) -> PyErr {
    made(py, "config", message, None, None)
}

/// Tells if others hold the lock, and held it for the whole wait.
///
/// # Errors
/// Where the classes cannot be found.
pub(crate) fn is_busy(py: Python<'_>, error: &PyErr) -> PyResult<bool> {
    let errors = py.import("leasehold._errors")?;
    let busy = (errors.getattr("LockBusyError")?, errors.getattr("LockTimeoutError")?);
    Ok(error.is_instance(py, &busy.0) || error.is_instance(py, &busy.1))
}

/// The exception for a kind of error.
pub(crate) fn made(
    py: Python<'_>,
    kind: &str,
    message: &str,
    resource: Option<&str>,
    holder: Option<LockInfo>,
) -> PyErr {
    let make = || py.import("leasehold._errors")?.getattr("make")?.call1((kind, message, resource, holder));
    make().map_or_else(|error| error, PyErr::from_value)
}
