//! Leader election.

use std::sync::Arc;
use std::time::Duration;

use leasehold::{ElectionRequest, Error, ffi};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

use crate::callback;
use crate::convert::Kept;
use crate::errors::raised;
use crate::lease::Lease;
use crate::signals::Signals;
use crate::tie::{EndsWithLoop, Tie};

/// A candidacy that goes on until it is resigned or dropped, or the client is closed.
#[pyclass(frozen, module = "leasehold", weakref)]
pub(crate) struct Election {
    resource: String,
    candidacy: Kept<Arc<Candidacy>>,
    /// The callbacks, as `leasehold._within` wraps them.
    callbacks: Py<PyAny>,
}

/// Dropping an election does not wait for its end: the callbacks may need the very thread that drops it, and one of
/// them may never return.
struct Candidacy(Option<leasehold::Election>);

impl Drop for Candidacy {
    fn drop(&mut self) {
        if let Some(election) = self.0.take() {
            ffi::dismiss(election);
        }
    }
}

impl EndsWithLoop for Candidacy {
    fn end(&self) {
        self.0.iter().for_each(ffi::begin_to_resign);
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
    let (callbacks, [on_start, on_stop]) = callback::own(py, [on_start, on_stop])?;
    if let Some(callback) = on_start {
        request = request.on_start(move |lease| {
            callback::call("on_start", &callback, |py| (Lease::of(lease.clone()),).into_pyobject(py));
        });
    }
    if let Some(callback) = on_stop {
        request = request.on_stop(move |loss: Option<&Error>| {
            let loss = loss.cloned();
            callback::call("on_stop", &callback, |py| (loss.map(|error| raised(py, &error)),).into_pyobject(py));
        });
    }
    let election = py.detach(|| request.start()).map_err(|error| raised(py, &error))?;
    let candidacy = Kept::new(Arc::new(Candidacy(Some(election))));
    Ok(Election { resource: resource.to_owned(), candidacy, callbacks })
}

impl Election {
    fn running(&self) -> &leasehold::Election {
        self.candidacy.0.as_ref().expect("invariant: only dropping takes it")
    }

    /// Resigns. The inner error is that of a callback.
    fn end(&self, py: Python<'_>) -> PyResult<Result<(), Error>> {
        if self.callbacks.bind(py).call_method0("is_within")?.extract()? {
            py.detach(|| ffi::begin_to_resign(self.running()));
            return Ok(Ok(()));
        }
        let mut signals = Signals::default();
        let resigned = py.detach(|| ffi::resign(self.running(), || signals.interrupt()));
        signals.check()?;
        Ok(resigned)
    }

    pub(crate) fn tie(&self) -> Tie {
        let candidacy = Arc::downgrade(&self.candidacy);
        Tie::new(candidacy)
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
        self.running().token()
    }

    /// The error of the last campaign, if it failed: the store is down or refuses, or a callback has raised. That is a
    /// CallbackError, caused by the exception.
    #[getter]
    fn last_error(&self, py: Python<'_>) -> Option<PyErr> {
        self.running().last_error().map(|error| callback::last_error(py, &self.callbacks, &error))
    }

    /// Stops campaigning; a current term ends, `on_stop` is called, and the lock is released. Returns when that is done,
    /// which takes as long as the callbacks take; at once in a callback of its own, after which the term ends. A signal
    /// whose handler raises ends the wait, not the resignation. If the last term has ended since a callback raised, that
    /// exception is raised here.
    fn resign(&self, py: Python<'_>) -> PyResult<()> {
        self.end(py)?.map_err(|error| callback::ended(py, &self.callbacks, &error))
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
        if kind.is_some() { self.end(py).map(drop) } else { self.resign(py) }
    }

    fn __reduce__(&self) -> PyResult<()> {
        Err(PyTypeError::new_err("an election runs on a thread of this process: start one where it is needed"))
    }

    fn __repr__(&self) -> String {
        let state = match self.running().token() {
            _ if ffi::is_over(self.running()) => "over".to_owned(),
            Some(token) => format!("leading, token {token}"),
            None => "standing".to_owned(),
        };
        format!("<Election {:?} {state}>", self.resource)
    }
}
