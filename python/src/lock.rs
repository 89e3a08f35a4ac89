//! The base class of `leasehold.Lock`, a context manager.

use std::thread::{self, ThreadId};

use leasehold::ffi::Mutex;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::errors;

/// The leases that threads hold through one `Lock`. Acquiring and releasing take no step in Python: between two of
/// those, a signal handler could raise, and the lock would stay held.
#[pyclass(frozen, subclass, module = "leasehold._native")]
pub(crate) struct LockBase {
    client: Py<PyAny>,
    name: Py<PyAny>,
    options: Py<PyDict>,
    /// Its `acquire()` acquires the lock.
    request: Py<PyAny>,
    held: Mutex<Vec<(ThreadId, Py<PyAny>)>>,
}

impl LockBase {
    /// Keeps the lease that `acquire` returns; None is passed on.
    fn keep<'py>(&self, acquire: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let lease = acquire.call0()?;
        if !lease.is_none() {
            self.held.lock().push((thread::current().id(), lease.clone().unbind()));
        }
        Ok(lease)
    }

    /// The lease that this thread took last, or else the last one of all.
    fn take<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let (me, mut held) = (thread::current().id(), self.held.lock());
        let at = held.iter().rposition(|(thread, _)| *thread == me).or_else(|| held.len().checked_sub(1));
        let lease = at.map(|at| held.remove(at).1.into_bound(py));
        drop(held);
        let message = "release of a lock that is not held through this object";
        lease.ok_or_else(|| errors::made(py, "not_owned", message, None, None))
    }
}

#[pymethods]
impl LockBase {
    #[new]
    fn new(client: Bound<'_, PyAny>, name: Bound<'_, PyAny>, options: Bound<'_, PyDict>) -> PyResult<Self> {
        // Refuses impossible settings now, and not in the middle of some work.
        let request = client.call_method1("_request", (&name, &options))?.unbind();
        let (client, name, options) = (client.unbind(), name.unbind(), options.unbind());
        Ok(Self { client, name, options, request, held: Mutex::default() })
    }

    /// Tells if any thread holds a lease.
    fn _is_held(&self) -> bool {
        !self.held.lock().is_empty()
    }

    /// As `threading.Lock.acquire`: returns whether the lock was acquired. A thread that would wait for itself gets a
    /// ConfigError.
    ///
    /// With `timeout=-1` it waits as long as the lock's own `wait`. Raises the errors of `Client.acquire` when the
    /// store is down or refuses: that is never the same as a held lock.
    #[pyo3(signature = (blocking = true, timeout = None), text_signature = "(self, blocking=True, timeout=-1)")]
    fn acquire(&self, py: Python<'_>, blocking: bool, timeout: Option<Bound<'_, PyAny>>) -> PyResult<bool> {
        let timeout = match timeout {
            Some(timeout) if timeout.eq(-1)? => None,
            timeout => timeout,
        };
        let request = self.request.bind(py);
        let acquire = match timeout {
            Some(_) if !blocking => {
                return Err(PyValueError::new_err("can't specify a timeout for a non-blocking call"));
            }
            None if !blocking => request.getattr("try_acquire")?,
            None => request.getattr("acquire")?,
            Some(timeout) => {
                let options = self.options.bind(py).copy()?;
                options.set_item("wait", timeout)?;
                self.client.call_method1(py, "_request", (&self.name, options))?.bind(py).getattr("acquire")?
            }
        };
        match self.keep(&acquire) {
            Ok(lease) => Ok(!lease.is_none()),
            Err(error) if errors::is_busy(py, &error)? => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn __enter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.keep(&self.request.bind(py).getattr("acquire")?)
    }

    #[pyo3(signature = (kind, error, traceback, /))]
    fn __exit__(
        &self,
        py: Python<'_>,
        kind: Bound<'_, PyAny>,
        error: Bound<'_, PyAny>,
        traceback: Bound<'_, PyAny>,
    ) -> PyResult<()> {
        self.take(py)?.call_method1("__exit__", (kind, error, traceback)).map(drop)
    }

    /// Releases a lease that this thread holds through this object, or else one of another thread.
    ///
    /// Raises LeaseLostError if the lease was lost before, NotOwnedError (a RuntimeError) if nothing is held,
    /// StoreUnavailableError if the store has not confirmed within 2 s: then the release goes on in the background.
    fn release(&self, py: Python<'_>) -> PyResult<()> {
        self.take(py)?.call_method0("release").map(drop)
    }
}
