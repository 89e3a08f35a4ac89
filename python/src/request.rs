//! A request for a lock.

use std::time::Duration;

use leasehold::LockRequest;
use leasehold::ffi::{self, Composed, Held};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::convert::{self, Kept, Seconds};
use crate::errors::{self, raised};
use crate::reactor::{Operation, Outcome};
use crate::signals::Signals;
use crate::{observe, permit};

/// A lock, or what is made of locks, with all its settings, to be acquired any number of times.
#[pyclass(frozen, module = "leasehold._native")]
pub(crate) struct Request(Kept<Wanted>);

/// The object of a request.
#[derive(Clone)]
pub(crate) enum Wanted {
    Lock(LockRequest),
    Composed(Composed),
}

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
    pub(crate) fair: bool,
    pub(crate) watch_holder: bool,
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
        if !self.fair {
            request = request.fair(false);
        }
        if self.watch_holder {
            request = request.watch_holder();
        }
        match renewal(py, self.renew, self.renew_every)? {
            Renewal::Usual => {}
            Renewal::Every(every) => request = request.renew_every(every),
            Renewal::Off => request = request.no_renewal(),
        }
        Ok(request)
    }
}

/// How a lease is renewed.
pub(crate) enum Renewal {
    Usual,
    Every(Duration),
    Off,
}

/// Reads `renew` and `renew_every`, of locks and of runs.
pub(crate) fn renewal(py: Python<'_>, renew: bool, every: Option<Seconds>) -> PyResult<Renewal> {
    match (renew, every) {
        (true, None) => Ok(Renewal::Usual),
        (true, Some(every)) => every.finite(py, "renew_every").map(Renewal::Every),
        (false, None) => Ok(Renewal::Off),
        (false, Some(_)) => Err(errors::config(py, "renew=False and renew_every contradict each other: leave one out")),
    }
}

impl Request {
    pub(crate) fn new(wanted: Wanted) -> Self {
        Self(Kept::new(wanted))
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
    fn acquire<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        observe::begin(py)?;
        let mut signals = Signals::default();
        let wanted = Wanted::clone(&self.0);
        let result = py.detach(|| match wanted {
            Wanted::Lock(request) => ffi::acquire(request, || signals.interrupt()).map(Held::from),
            Wanted::Composed(composed) => composed.acquire(|| signals.interrupt()),
        });
        signals.check()?;
        permit::object(py, result.map_err(|error| raised(py, &error))?)
    }

    fn try_acquire<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        observe::begin(py)?;
        let mut signals = Signals::default();
        let wanted = Wanted::clone(&self.0);
        let result = py.detach(|| match wanted {
            Wanted::Lock(request) => {
                ffi::try_acquire(request, || signals.interrupt()).map(|lease| lease.map(Held::from))
            }
            Wanted::Composed(composed) => composed.try_acquire(|| signals.interrupt()),
        });
        signals.check()?;
        result.map_err(|error| raised(py, &error))?.map(|held| permit::object(py, held)).transpose()
    }

    /// See [`begin_acquire`].
    #[pyo3(signature = (task = None))]
    fn begin_acquire(&self, py: Python<'_>, task: Option<u64>) -> PyResult<Operation> {
        let composed = match Wanted::clone(&self.0) {
            Wanted::Lock(request) => return begin_acquire(py, request, task),
            Wanted::Composed(composed) => composed,
        };
        observe::begin(py)?;
        let composed = match task {
            Some(task) => composed.by_task(task),
            None => composed,
        };
        Ok(Operation::new(async move { composed.acquire_async().await.map(Outcome::Held) }))
    }

    fn begin_try_acquire(&self, py: Python<'_>) -> PyResult<Operation> {
        observe::begin(py)?;
        Ok(match Wanted::clone(&self.0) {
            Wanted::Lock(request) => {
                Operation::new(async move { request.try_acquire().await.map(Outcome::MaybeLease) })
            }
            Wanted::Composed(composed) => {
                Operation::new(async move { composed.try_acquire_async().await.map(Outcome::MaybeHeld) })
            }
        })
    }
}
