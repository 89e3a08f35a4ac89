//! Leader election.

use std::time::Duration;

use leasehold::{ElectionRequest, Error, ffi};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

use crate::callback;
use crate::errors::raised;
use crate::lease::Lease;
use crate::reactor::Operation;
use crate::tie::Running;

/// A candidacy that goes on until it is resigned or dropped, or the client is closed.
#[pyclass(frozen, module = "leasehold", weakref)]
pub(crate) struct Election {
    resource: String,
    running: Running<leasehold::Election>,
}

pub(crate) fn start(
    py: Python<'_>,
    mut request: ElectionRequest,
    resource: &str,
    (ttl, owner): (Option<Duration>, Option<String>),
    (on_start, on_stop): (Option<Py<PyAny>>, Option<Py<PyAny>>),
) -> PyResult<Election> {
    if let Some(ttl) = ttl {
        request = request.ttl(ttl);
    }
    if let Some(owner) = owner {
        request = request.owner(owner);
    }
    let (callbacks, [on_start, on_stop]) = callback::own(py, [on_start, on_stop])?;
    if let Some(callback) = on_start {
        request = ffi::on_start(request, move |lease| {
            callback::begin("on_start", &callback, |py| (Lease::of(lease.clone()),).into_pyobject(py))
        });
    }
    if let Some(callback) = on_stop {
        request = ffi::on_stop(request, move |loss: Option<&Error>| {
            let loss = loss.cloned();
            callback::begin("on_stop", &callback, |py| (loss.map(|error| raised(py, &error)),).into_pyobject(py))
        });
    }
    let election = py.detach(|| request.start()).map_err(|error| raised(py, &error))?;
    Ok(Election { resource: resource.to_owned(), running: Running::new(election, callbacks) })
}

impl Election {
    pub(crate) const fn running(&self) -> &Running<leasehold::Election> {
        &self.running
    }
}

#[pymethods]
impl Election {
    /// The name of the election.
    #[getter]
    fn resource(&self) -> &str {
        &self.resource
    }

    /// The fencing token of the current term; None while another candidate leads, and once the lease of the term has
    /// ended, even while a callback is still running.
    #[getter]
    fn token(&self) -> Option<u64> {
        self.running.native().token()
    }

    /// The error of the last campaign, if it failed: the store is down or refuses, or a callback has raised. That is a
    /// CallbackError, caused by the exception.
    #[getter]
    fn last_error(&self, py: Python<'_>) -> Option<PyErr> {
        self.running.native().last_error().map(|error| callback::last_error(py, &self.running.callbacks, &error))
    }

    /// Stops campaigning; a current term ends, `on_stop` is called, and the lock is released. Returns when that is done,
    /// which takes as long as the callbacks take; at once in a callback of its own, after which the term ends. A signal
    /// whose handler raises ends the wait, not the resignation. If the last term has ended since a callback raised, that
    /// exception is raised here.
    fn resign(&self, py: Python<'_>) -> PyResult<()> {
        self.running.end(py, false)
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    #[pyo3(signature = (kind, error, traceback, /))]
    fn __exit__(
        &self,
        py: Python<'_>,
        kind: Option<Bound<'_, PyAny>>,
        error: Option<Bound<'_, PyAny>>,
        traceback: Option<Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        drop((error, traceback));
        // The exception of the body is the one to see.
        self.running.end(py, kind.is_some())
    }

    fn _begin_end(&self, py: Python<'_>, has_raised: bool) -> PyResult<Operation> {
        self.running.begin_end(py, has_raised)
    }

    fn __reduce__(&self) -> PyResult<()> {
        Err(PyTypeError::new_err("an election runs on a thread of this process: start one where it is needed"))
    }

    fn __repr__(&self) -> String {
        let native = self.running.native();
        let state = match native.token() {
            _ if native.is_over() => "over".to_owned(),
            Some(token) => format!("leading, token {token}"),
            None => "standing".to_owned(),
        };
        format!("<Election {:?} {state}>", self.resource)
    }
}
