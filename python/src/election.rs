//! Leader election.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use leasehold::{ElectionRequest, Error};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

use crate::convert::Kept;
use crate::errors::raised;
use crate::lease::Lease;
use crate::signals;

/// A candidacy that goes on until it is resigned or dropped, the client is closed, or a callback raises.
#[pyclass(frozen, module = "leasehold", weakref)]
pub(crate) struct Election {
    resource: String,
    state: Kept<Mutex<Option<leasehold::Election>>>,
}

impl Drop for Election {
    fn drop(&mut self) {
        if signals::is_ending() {
            // Its client is closed, which has ended the candidacy; a callback of it may never return.
            std::mem::forget(self.state.lock().unwrap_or_else(PoisonError::into_inner).take());
        }
    }
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
    if let Some(callback) = on_start {
        request = request.on_start(move |lease| {
            call(&callback, |py| Lease::of(lease.clone()).into_pyobject(py).map(Bound::into_any));
        });
    }
    if let Some(callback) = on_stop {
        request = request.on_stop(move |loss: Option<&Error>| {
            call(&callback, |py| Ok(loss.map(|error| raised(py, error)).into_pyobject(py)?));
        });
    }
    let election = py.detach(|| request.start()).map_err(|error| raised(py, &error))?;
    Ok(Election { resource: resource.to_owned(), state: Kept::new(Mutex::new(Some(election))) })
}

/// An exception of the callback is shown, and ends the candidacy as a panic would.
fn call<'a>(callback: &'a Py<PyAny>, argument: impl for<'py> FnOnce(Python<'py>) -> PyResult<Bound<'py, PyAny>> + 'a) {
    let raised = Python::try_attach(|py| {
        let called = argument(py).and_then(|argument| callback.bind(py).call1((argument,)));
        called.map_err(|error| error.write_unraisable(py, Some(callback.bind(py)))).is_err()
    });
    if raised == Some(true) {
        // Without the message of a panic: the exception has been shown.
        std::panic::resume_unwind(Box::new("a callback raised an exception"));
    }
}

impl Election {
    fn look<R>(&self, look: impl FnOnce(&leasehold::Election) -> R) -> Option<R> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).as_ref().map(look)
    }
}

#[pymethods]
impl Election {
    /// What is stood for.
    #[getter]
    fn resource(&self) -> &str {
        &self.resource
    }

    /// The fencing token of the current term, None while somebody else leads.
    #[getter]
    fn term(&self) -> Option<u64> {
        self.look(leasehold::Election::term).flatten()
    }

    /// Why the last campaign failed, if it did: the store is down or refuses.
    #[getter]
    fn last_error(&self, py: Python<'_>) -> Option<PyErr> {
        self.look(leasehold::Election::last_error).flatten().map(|error| raised(py, &error))
    }

    /// Stops campaigning; a current term ends, `on_stop` is called, and the lock is released. Returns when that is done,
    /// which takes as long as the callbacks take.
    fn resign(&self, py: Python<'_>) {
        py.detach(|| {
            let election = self.state.lock().unwrap_or_else(PoisonError::into_inner).take();
            if let Some(election) = election {
                election.resign();
            }
        });
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
    ) {
        drop((kind, error, traceback));
        self.resign(py);
    }

    fn __reduce__(&self) -> PyResult<()> {
        Err(PyTypeError::new_err("an election runs on a thread of this process: start one where it is needed"))
    }

    fn __repr__(&self) -> String {
        match self.look(leasehold::Election::term) {
            None => format!("<Election {:?} over>", self.resource),
            Some(None) => format!("<Election {:?} standing>", self.resource),
            Some(Some(term)) => format!("<Election {:?} leading, term {term}>", self.resource),
        }
    }
}
