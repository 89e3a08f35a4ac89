//! Errors as exceptions. Their classes are written in Python, because each has two bases.

use leasehold::{Error, ErrorKind, ffi};
use pyo3::exceptions::{PyRuntimeError, PySystemExit};
use pyo3::prelude::*;

use crate::info::LockInfo;
use crate::{run, signals};

/// The exception for an error of the client.
pub(crate) fn raised(py: Python<'_>, error: &Error) -> PyErr {
    raised_as(py, error.kind().name(), &error.to_string(), error)
}

/// The same under another name, and with more to say.
pub(crate) fn raised_as(py: Python<'_>, name: &str, message: &str, error: &Error) -> PyErr {
    // A caller that comes after the waiters finds its client closed.
    let is_closed = || error.kind() == ErrorKind::Closed && !signals::is_main_thread(py).unwrap_or(true);
    if signals::is_ending() && (error.kind() == ErrorKind::Cancelled || is_closed()) {
        // A daemon thread that waits for a lock, or begins to, should end silently.
        return PySystemExit::new_err(());
    }
    if ffi::is_endless(error) {
        // A mistake of the test: code that tries again after errors of the client must not catch it.
        return PyRuntimeError::new_err(message.to_owned());
    }
    let holder = error.holder().cloned().map(LockInfo::new);
    let raised = made(py, name, message, error.resource(), holder);
    let value = raised.value(py);
    let reason = error.lost_reason().map_or(Ok(()), |reason| value.setattr("reason", reason));
    let attempts = error.attempts().map_or(Ok(()), |attempts| value.setattr("attempts", run::counted(py, attempts)?));
    reason.and(attempts).err().unwrap_or(raised)
}

/// A setting or use that cannot work.
pub(crate) fn config(py: Python<'_>, message: &str) -> PyErr {
    made(py, "config", message, None, None)
}

/// Tells if the lock was held by others, now or for the whole wait.
///
/// # Errors
/// The classes cannot be found.
pub(crate) fn is_busy(py: Python<'_>, error: &PyErr) -> PyResult<bool> {
    let errors = py.import("leasehold._errors")?;
    let busy = (errors.getattr("LockBusyError")?, errors.getattr("LockTimeoutError")?);
    Ok(error.is_instance(py, &busy.0) || error.is_instance(py, &busy.1))
}

/// The exception for an error of this kind.
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
