//! The base class of `leasehold.Once`, a context manager.

use std::thread::{self, ThreadId};

use leasehold::ffi::Mutex;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::errors;

/// The runs that threads have entered through one `Once`. As with `LockBase`, entering and leaving take no step in Python.
#[pyclass(frozen, subclass, module = "leasehold._native")]
pub(crate) struct OnceBase {
    /// Its `begin()` begins the run.
    request: Py<PyAny>,
    /// The run of each body, and None for a body that has none.
    entered: Mutex<Vec<(ThreadId, Py<PyAny>)>>,
    outcome: Mutex<Option<Py<PyAny>>>,
}

#[pymethods]
impl OnceBase {
    #[new]
    fn new(client: Bound<'_, PyAny>, name: Bound<'_, PyAny>, options: Bound<'_, PyDict>) -> PyResult<Self> {
        // Refuses impossible settings now, and not in the middle of some work.
        let request = client.call_method1("_run_request", (name, options))?.unbind();
        Ok(Self { request, entered: Mutex::default(), outcome: Mutex::default() })
    }

    /// Why the last `with` had nothing to do: AlreadyDone or RunningElsewhere. None if it got the run.
    #[getter]
    fn outcome(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        self.outcome.lock().as_ref().map(|outcome| outcome.clone_ref(py))
    }

    fn __enter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let begun = self.request.bind(py).call_method0("begin")?;
        // Of the answers, only a run is true.
        let (run, outcome) =
            if begun.is_truthy()? { (begun, None) } else { (py.None().into_bound(py), Some(begun.unbind())) };
        self.entered.lock().push((thread::current().id(), run.clone().unbind()));
        let before = std::mem::replace(&mut *self.outcome.lock(), outcome);
        drop(before);
        Ok(run)
    }

    #[pyo3(signature = (kind, error, traceback, /))]
    fn __exit__(
        &self,
        py: Python<'_>,
        kind: Bound<'_, PyAny>,
        error: Bound<'_, PyAny>,
        traceback: Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let (me, mut entered) = (thread::current().id(), self.entered.lock());
        let at = entered.iter().rposition(|(thread, _)| *thread == me).or_else(|| entered.len().checked_sub(1));
        let run = at.map(|at| entered.remove(at).1.into_bound(py));
        drop(entered);
        let message = "this run was not entered through this object";
        let run = run.ok_or_else(|| errors::made(py, "not_owned", message, None, None))?;
        if run.is_none() { Ok(()) } else { run.call_method1("__exit__", (kind, error, traceback)).map(drop) }
    }
}
