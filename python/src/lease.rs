//! A held lease.

use std::ffi::CString;
use std::sync::Arc;
use std::time::Duration;

use leasehold::Error;
use leasehold::ffi::{self, Held};
use pyo3::exceptions::{PyIndexError, PyKeyError, PyResourceWarning, PyTypeError};
use pyo3::prelude::*;

use crate::callback;
use crate::convert::{Kept, Seconds};
use crate::errors::{self, raised};
use crate::info::LockInfo;
use crate::pump::Pace;
use crate::reactor::{Operation, Outcome};
use crate::signals::{self, Signals};

const NOTHING_TO_EXTEND: &str = "a lease is renewed in the background until it is released, so there is nothing to \
    extend: call check(seconds) before a step that takes so long, pass a longer ttl to outlast longer stalls, or max_hold to \
    end renewals";

/// A held lock. It is renewed in the background until it is released, dropped or lost.
///
/// Dropping the last reference to a lease releases it. A lease is no proof: any amount of time can pass between a check
/// and the write that it guards. Only the resource itself closes that gap, by rejecting tokens older than it has seen:
/// see `leasehold.fence`.
#[pyclass(frozen, subclass, module = "leasehold", weakref)]
pub(crate) struct Lease(Kept<Held>);

impl Lease {
    pub(crate) fn held(&self) -> &Held {
        &self.0
    }

    pub(crate) fn new(lease: leasehold::Lease) -> Self {
        Self::of(Arc::new(lease))
    }

    pub(crate) fn of(lease: Arc<leasehold::Lease>) -> Self {
        Self::of_held(Held::Single(lease))
    }

    pub(crate) fn of_held(held: Held) -> Self {
        Self(Kept::new(held))
    }
}

#[pymethods]
impl Lease {
    /// The fencing token: grows with every grant of the resource, below 2**53.
    #[getter]
    fn token(&self) -> u64 {
        self.0.token()
    }

    /// The locked resource.
    #[getter]
    fn resource(&self) -> &str {
        self.0.resource()
    }

    /// The label that others see.
    #[getter]
    fn owner(&self) -> &str {
        self.0.owner()
    }

    /// Seconds for which the lease is valid if no renewal succeeds; 0.0 once it is lost or released. Costs a read of
    /// the clock, and never waits.
    fn remaining(&self) -> f64 {
        self.0.remaining().as_secs_f64()
    }

    /// Raises LeaseLostError unless at least `min` seconds of validity are left. Call it before a step that takes that
    /// long. Raises NotOwnedError after a release.
    #[pyo3(signature = (min = None))]
    fn check(&self, py: Python<'_>, min: Option<Seconds>) -> PyResult<()> {
        let min = min.map_or(Ok(Duration::ZERO), |min| min.finite(py, "min"))?;
        self.0.check(min).map_err(|error| raised(py, &error))
    }

    /// An event that is set once the lease is lost.
    #[getter]
    fn lost(&self) -> Lost {
        Lost(Kept::new(self.0.clone()))
    }

    /// Calls `callback(error)` once if the lease is lost, on a thread for callbacks; soon, if it was lost before. A
    /// callback that owns the lease keeps it from ever being dropped. Raises TypeError for anything but a plain
    /// function.
    fn on_lost(&self, py: Python<'_>, callback: Py<PyAny>) -> PyResult<()> {
        callback::check(py, &callback)?;
        self.0.on_lost(move |error| {
            callback::call("on_lost", &callback, |py| (raised(py, &error),).into_pyobject(py));
        });
        if self.0.is_lost() {
            py.detach(|| ffi::settle_lease(&self.0));
            py.check_signals()?;
        }
        Ok(())
    }

    /// Releases the lease. It ends here at once; the store's confirmation is awaited for up to 2 s.
    ///
    /// Raises LeaseLostError if the lease was lost before, or if the store shows that the lock was not ours any more;
    /// NotOwnedError if it was released before, StoreUnavailableError if the store has not confirmed: then the release
    /// goes on in the background.
    fn release(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| self.0.blocking().release()).map_err(|error| raised(py, &error))
    }

    /// Raises ConfigError, with advice: a lease renews itself, so there is nothing to extend.
    #[pyo3(signature = (seconds = None))]
    fn extend(&self, py: Python<'_>, seconds: Option<Py<PyAny>>) -> PyResult<()> {
        drop(seconds);
        Err(errors::config(py, NOTHING_TO_EXTEND))
    }

    /// Ends the lease this many seconds from now; each call starts the time again. Returns whether there was a lease to
    /// end.
    fn _end_after(&self, py: Python<'_>, seconds: Seconds) -> PyResult<bool> {
        let after = seconds.finite(py, "the time")?;
        Ok(py.detach(|| ffi::end_after(&self.0, after)))
    }

    /// Tells if the holder that a store shows is this lease.
    fn _is_shown_by(&self, py: Python<'_>, info: &LockInfo) -> bool {
        py.detach(|| ffi::is_shown_by(&self.0, info.native()))
    }

    /// Ends the lease now, because its record is known to be gone.
    fn _end_gone(&self, py: Python<'_>) {
        py.detach(|| ffi::end_gone(&self.0));
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    /// Releases the lock. Raises LeaseLostError if the lease was lost, unless the body has raised an exception.
    #[pyo3(signature = (kind, error, traceback, /))]
    fn __exit__(
        &self,
        py: Python<'_>,
        kind: Option<Bound<'_, PyAny>>,
        error: Option<Bound<'_, PyAny>>,
        traceback: Option<Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        drop((error, traceback));
        let (lease, body): (&leasehold::Lease, _) = (&self.0, Body::of(kind.is_some()));
        py.detach(|| leave(lease.is_lost(), body, lease.blocking().release())).map_err(|error| raised(py, &error))
    }

    fn _begin_release(&self) -> Operation {
        let held = self.0.clone();
        Operation::new(async move { held.release().await.map(|()| Outcome::Nothing) })
    }

    /// A future that is ready when the lease is lost; it does not keep the lease alive.
    fn _begin_lost(&self) -> Operation {
        let lost = self.0.lost();
        Operation::new(async move { Ok(Outcome::Loss(lost.await)) }).paced(Pace::Rests)
    }

    fn _begin_exit(&self, has_raised: bool) -> Operation {
        let (held, body) = (self.0.clone(), Body::of(has_raised));
        Operation::new(async move {
            let was_lost = held.is_lost();
            leave(was_lost, body, held.release().await).map(|()| Outcome::Nothing)
        })
    }

    fn __reduce__(&self) -> PyResult<()> {
        Err(PyTypeError::new_err("a lease belongs to the process that took it: pass its token on, not the lease"))
    }

    fn __repr__(&self) -> String {
        shown(&self.0)
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        warn_of_drop(&self.0);
    }
}

/// Warns if the last handle of a lease is dropped, and the lock with it, in the middle of some work.
fn warn_of_drop(held: &Held) {
    match held {
        Held::Single(lease) if Arc::strong_count(lease) == 1 => warn_of_drops([&**lease]),
        Held::Permit(permit) if Arc::strong_count(permit) == 1 => warn_of_drops([&***permit]),
        Held::Shard(shard) if Arc::strong_count(shard) == 1 => warn_of_drops([&***shard]),
        Held::OneOf(leases, _) if Arc::strong_count(leases) == 1 => warn_of_drops(leases.iter()),
        Held::Single(_) | Held::Permit(_) | Held::Shard(_) | Held::OneOf(..) => {}
    }
}

fn warn_of_drops<'a>(leases: impl IntoIterator<Item = &'a leasehold::Lease>) {
    // The end of the interpreter releases everything.
    let mut held = leases.into_iter().filter(|lease| !lease.remaining().is_zero() && !signals::is_ending());
    let Some(lease) = held.next() else { return };
    let (resource, token) = (lease.resource(), lease.token());
    let message = format!(
        "the lease of {resource:?} (token {token}) was dropped while it was held, which releases the lock: enter it by \
         `with`, or release() it"
    );
    let _ = Python::try_attach(|py| {
        // The handle may be dropped while an exception is propagating.
        let pending = PyErr::take(py);
        let warned = CString::new(message)
            .map_err(PyErr::from)
            .and_then(|message| PyErr::warn(py, &py.get_type::<PyResourceWarning>(), &message, 1));
        if let Err(error) = warned {
            error.write_unraisable(py, None);
        }
        if let Some(pending) = pending {
            pending.restore(py);
        }
    });
}

pub(crate) fn shown(lease: &leasehold::Lease) -> String {
    let (resource, token) = (lease.resource(), lease.token());
    match lease.remaining().as_secs_f64() {
        0.0 if lease.is_lost() => format!("<Lease {resource:?} token={token} lost>"),
        0.0 => format!("<Lease {resource:?} token={token} released>"),
        left => format!("<Lease {resource:?} token={token} remaining={left:.1} s>"),
    }
}

/// The end of the body of a `with` statement.
#[derive(Clone, Copy)]
pub(crate) enum Body {
    Done,
    Raised,
}

impl Body {
    pub(crate) fn of(has_raised: bool) -> Self {
        if has_raised { Self::Raised } else { Self::Done }
    }
}

/// The body's own exception has precedence.
fn leave(was_lost: bool, body: Body, released: Result<(), Error>) -> Result<(), Error> {
    match body {
        Body::Done => ffi::left(was_lost, released),
        Body::Raised => Ok(()),
    }
}

/// Several leases that were taken together, in the order of their names.
///
/// Dropping the last reference to them, and to each of their leases, releases them.
#[pyclass(frozen, module = "leasehold", weakref)]
pub(crate) struct Leases(Kept<Arc<leasehold::Leases>>);

impl Leases {
    pub(crate) fn new(leases: leasehold::Leases) -> Self {
        Self(Kept::new(Arc::new(leases)))
    }

    fn was_lost(&self) -> bool {
        self.0.iter().any(leasehold::Lease::is_lost)
    }
}

impl Drop for Leases {
    fn drop(&mut self) {
        if Arc::strong_count(&self.0) == 1 {
            warn_of_drops(self.0.iter());
        }
    }
}

#[pymethods]
impl Leases {
    fn __len__(&self) -> usize {
        self.0.len()
    }

    /// The lease of this resource, or at this position in the order of names.
    fn __getitem__(&self, which: Which) -> PyResult<Lease> {
        let at = match &which {
            Which::Place(at) if *at < 0 => self.0.len().checked_add_signed(*at),
            Which::Place(at) => usize::try_from(*at).ok(),
            Which::Resource(name) => self.0.iter().position(|lease| lease.resource() == name),
        };
        match (at.filter(|at| *at < self.0.len()), which) {
            (Some(at), _) => Ok(Lease(Kept::new(Held::OneOf(Arc::clone(&self.0), at)))),
            (None, Which::Place(at)) => Err(PyIndexError::new_err(format!("there is no lease at {at}"))),
            (None, Which::Resource(name)) => Err(PyKeyError::new_err(name)),
        }
    }

    /// Raises LeaseLostError unless each has at least `min` seconds of validity left.
    #[pyo3(signature = (min = None))]
    fn check(&self, py: Python<'_>, min: Option<Seconds>) -> PyResult<()> {
        let min = min.map_or(Ok(Duration::ZERO), |min| min.finite(py, "min"))?;
        self.0.check(min).map_err(|error| raised(py, &error))
    }

    /// Releases all of them, the last one taken first, within 2 s together.
    fn release(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| self.0.blocking().release()).map_err(|error| raised(py, &error))
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    /// Releases all of them. Raises LeaseLostError if one was lost, unless the body has raised an exception.
    #[pyo3(signature = (kind, error, traceback, /))]
    fn __exit__(
        &self,
        py: Python<'_>,
        kind: Option<Bound<'_, PyAny>>,
        error: Option<Bound<'_, PyAny>>,
        traceback: Option<Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        drop((error, traceback));
        let body = Body::of(kind.is_some());
        py.detach(|| leave(self.was_lost(), body, self.0.blocking().release())).map_err(|error| raised(py, &error))
    }

    fn _begin_release(&self) -> Operation {
        let leases = Arc::clone(&self.0);
        Operation::new(async move { leases.release().await.map(|()| Outcome::Nothing) })
    }

    fn _begin_exit(&self, has_raised: bool) -> Operation {
        let (leases, was_lost, body) = (Arc::clone(&self.0), self.was_lost(), Body::of(has_raised));
        Operation::new(async move { leave(was_lost, body, leases.release().await).map(|()| Outcome::Nothing) })
    }

    fn __reduce__(&self) -> PyResult<()> {
        Err(PyTypeError::new_err("leases belong to the process that took them: pass their tokens on, not the leases"))
    }

    fn __repr__(&self) -> String {
        format!("<Leases [{}]>", self.0.iter().map(shown).collect::<Vec<_>>().join(", "))
    }
}

#[derive(FromPyObject)]
enum Which {
    Place(isize),
    Resource(String),
}

/// Set once the lease is lost. Waiting for it costs no polling of the store, and no thread.
#[pyclass(frozen, module = "leasehold")]
pub(crate) struct Lost(Kept<Held>);

impl Drop for Lost {
    fn drop(&mut self) {
        warn_of_drop(&self.0);
    }
}

#[pymethods]
impl Lost {
    /// True if the lease has ended without having been released.
    fn is_set(&self) -> bool {
        self.0.is_lost()
    }

    /// Waits until the lease has ended, for at most `timeout` seconds (default: forever), and returns whether it was
    /// lost: False if it was released, or still holds.
    #[pyo3(signature = (timeout = None))]
    fn wait(&self, py: Python<'_>, timeout: Option<Seconds>) -> PyResult<bool> {
        let mut signals = Signals::default();
        let most = timeout.and_then(Seconds::if_finite);
        let over = py.detach(|| ffi::wait_until_over(&self.0, most, || signals.interrupt()));
        signals.check()?;
        over.map_err(|error| raised(py, &error))?;
        Ok(self.is_set())
    }

    /// The reason of the loss as an error; None while the lease holds, and after it was released.
    #[getter]
    fn reason(&self, py: Python<'_>) -> Option<PyErr> {
        let lease: &leasehold::Lease = &self.0;
        if !lease.is_lost() {
            return None;
        }
        lease.check(Duration::ZERO).err().map(|error| raised(py, &error))
    }

    fn __repr__(&self) -> String {
        format!("<Lost {:?} {}>", self.0.resource(), if self.is_set() { "set" } else { "unset" })
    }
}
