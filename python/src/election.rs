//! Leader election.

use std::sync::{Arc, Weak};
use std::time::Duration;

use leasehold::{ElectionRequest, Error, ffi};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

use crate::callback::{self, Ended};
use crate::convert::Kept;
use crate::errors::raised;
use crate::lease::Lease;
use crate::signals::Signals;

/// A candidacy that goes on until it is resigned or dropped, the client is closed, or a callback raises.
#[pyclass(frozen, module = "leasehold", weakref)]
pub(crate) struct Election {
    resource: String,
    candidacy: Kept<Arc<Candidacy>>,
    /// The callbacks, as `leasehold._election` wraps them.
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

/// Resigns a candidacy when it is dropped, unless it has ended.
pub(crate) struct Tie(Weak<Candidacy>);

impl Tie {
    pub(crate) fn is_idle(&self) -> bool {
        self.0.strong_count() == 0
    }
}

impl Drop for Tie {
    fn drop(&mut self) {
        if let Some(candidacy) = self.0.upgrade() {
            candidacy.0.iter().for_each(ffi::begin_to_resign);
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
    let callbacks = py.import("leasehold._election")?.getattr("Callbacks")?.call0()?;
    let own = |callback: Py<PyAny>| {
        callback::check(py, &callback)?;
        PyResult::Ok(callbacks.call_method1("own", (callback,))?.unbind())
    };
    let (on_start, on_stop) = (on_start.map(own).transpose()?, on_stop.map(own).transpose()?);
    if let Some(callback) = on_start {
        request = request.on_start(move |lease| {
            call(&callback, |py| Lease::of(lease.clone()).into_pyobject(py).map(Bound::into_any));
        });
    }
    if let Some(callback) = on_stop {
        request = request.on_stop(move |loss: Option<&Error>| {
            let loss = loss.cloned();
            call(&callback, |py| Ok(loss.map(|error| raised(py, &error)).into_pyobject(py)?));
        });
    }
    let election = py.detach(|| request.start()).map_err(|error| raised(py, &error))?;
    let candidacy = Kept::new(Arc::new(Candidacy(Some(election))));
    Ok(Election { resource: resource.to_owned(), candidacy, callbacks: callbacks.unbind() })
}

/// Turns an exception of the callback into a panic, which ends the candidacy.
fn call<'a>(callback: &'a Py<PyAny>, argument: impl for<'py> FnOnce(Python<'py>) -> PyResult<Bound<'py, PyAny>> + 'a) {
    match callback::call(callback, argument) {
        Ended::Returned => {}
        // Without the message of a panic: the exception was shown.
        Ended::Raised => std::panic::resume_unwind(Box::new("a callback raised an exception")),
    }
}

impl Election {
    fn running(&self) -> &leasehold::Election {
        self.candidacy.0.as_ref().expect("invariant: only dropping takes it")
    }

    pub(crate) fn tie(&self) -> Tie {
        Tie(Arc::downgrade(&self.candidacy))
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
    fn term(&self) -> Option<u64> {
        self.running().term()
    }

    /// The error of the last campaign, if it failed: the store is down or refuses.
    #[getter]
    fn last_error(&self, py: Python<'_>) -> Option<PyErr> {
        self.running().last_error().map(|error| raised(py, &error))
    }

    /// Stops campaigning; a current term ends, `on_stop` is called, and the lock is released. Returns when that is done,
    /// which takes as long as the callbacks take; at once in a callback of its own, after which the term ends. A signal
    /// whose handler raises ends the wait, not the resignation.
    fn resign(&self, py: Python<'_>) -> PyResult<()> {
        if self.callbacks.bind(py).call_method0("is_within")?.extract()? {
            py.detach(|| ffi::begin_to_resign(self.running()));
            return Ok(());
        }
        let mut signals = Signals::default();
        py.detach(|| ffi::resign(self.running(), || signals.interrupt()));
        signals.check()
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
        drop((kind, error, traceback));
        self.resign(py)
    }

    fn __reduce__(&self) -> PyResult<()> {
        Err(PyTypeError::new_err("an election runs on a thread of this process: start one where it is needed"))
    }

    fn __repr__(&self) -> String {
        let state = match self.running().term() {
            _ if ffi::is_over(self.running()) => "over".to_owned(),
            Some(term) => format!("leading, term {term}"),
            None => "standing".to_owned(),
        };
        format!("<Election {:?} {state}>", self.resource)
    }
}
