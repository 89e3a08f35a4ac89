//! A request for a lock.

use leasehold::{LockRequest, ffi};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::convert::{self, Kept, Seconds};
use crate::errors::{self, raised};
use crate::lease::Lease;
use crate::observe;
use crate::reactor::{Operation, Outcome};
use crate::signals::Signals;

/// A lock with all its settings, to be acquired any number of times.
#[pyclass(frozen, module = "leasehold._native")]
pub(crate) struct Request(Kept<LockRequest>);

/// The settings of one lock.
pub(crate) struct Settings<'py> {
    pub(crate) ttl: Option<Seconds>,
    pub(crate) wait: Option<Seconds>,
    pub(crate) owner: Option<String>,
    pub(crate) data: Option<Bound<'py, PyBytes>>,
    pub(crate) lock_delay: Option<Seconds>,
    pub(crate) max_hold: Option<Seconds>,
    pub(crate) renew_every: Option<Seconds>,
    /// The default is true; `renew=False` turns renewals off.
    pub(crate) renew: bool,
}

impl Settings<'_> {
    pub(crate) fn apply(self, py: Python<'_>, mut request: LockRequest) -> PyResult<LockRequest> {
        convert::warn_of_milliseconds(py, [("ttl", self.ttl), ("wait", self.wait)])?;
        if let Some(ttl) = self.ttl {
            request = request.ttl(ttl.finite(py, "ttl")?);
        }
        if let Some(wait) = self.wait.and_then(Seconds::if_finite) {
            request = request.wait(wait);
        }
        if let Some(owner) = self.owner {
            request = request.owner(owner);
        }
        if let Some(data) = self.data {
            request = request.data(data.as_bytes());
        }
        if let Some(lock_delay) = self.lock_delay {
            request = request.lock_delay(lock_delay.finite(py, "lock_delay")?);
        }
        if let Some(max_hold) = self.max_hold {
            request = request.max_hold(max_hold.finite(py, "max_hold")?);
        }
        match (self.renew, self.renew_every) {
            (true, None) => {}
            (true, Some(every)) => request = request.renew_every(every.finite(py, "renew_every")?),
            (false, None) => request = request.no_renewal(),
            (false, Some(_)) => {
                return Err(errors::config(py, "renew=False and renew_every contradict each other: leave one out"));
            }
        }
        Ok(request)
    }
}

impl Request {
    pub(crate) fn new(request: LockRequest) -> Self {
        Self(Kept::new(request))
    }
}

/// Begins to acquire. `task` is the number of the task that does.
pub(crate) fn begin_acquire(py: Python<'_>, request: LockRequest, task: Option<u64>) -> PyResult<Operation> {
    observe::begin(py)?;
    let request = match task {
        Some(task) => ffi::by_task(request, task),
        None => request,
    };
    Ok(Operation::new(async move { ffi::acquire_async(request).await.map(Outcome::Lease) }))
}

#[pymethods]
impl Request {
    fn acquire(&self, py: Python<'_>) -> PyResult<Lease> {
        observe::begin(py)?;
        let mut signals = Signals::default();
        let request = LockRequest::clone(&self.0);
        let result = py.detach(|| ffi::acquire(request, || signals.interrupt()));
        signals.check()?;
        result.map(Lease::new).map_err(|error| raised(py, &error))
    }

    fn try_acquire(&self, py: Python<'_>) -> PyResult<Option<Lease>> {
        observe::begin(py)?;
        let mut signals = Signals::default();
        let request = LockRequest::clone(&self.0);
        let result = py.detach(|| ffi::try_acquire(request, || signals.interrupt()));
        signals.check()?;
        result.map(|lease| lease.map(Lease::new)).map_err(|error| raised(py, &error))
    }

    /// See [`begin_acquire`].
    #[pyo3(signature = (task = None))]
    fn begin_acquire(&self, py: Python<'_>, task: Option<u64>) -> PyResult<Operation> {
        begin_acquire(py, LockRequest::clone(&self.0), task)
    }

    fn begin_try_acquire(&self, py: Python<'_>) -> PyResult<Operation> {
        observe::begin(py)?;
        let request = LockRequest::clone(&self.0);
        Ok(Operation::new(async move { request.try_acquire().await.map(Outcome::MaybeLease) }))
    }
}
