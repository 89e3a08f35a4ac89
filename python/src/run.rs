//! Runs: work that is done once.

use std::time::Duration;

use leasehold::{Attempts, Completion, Error, Once, RunInfo, RunResult, ffi};
use pyo3::IntoPyObjectExt;
use pyo3::exceptions::{PyBaseException, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::convert::{self, Kept, Seconds};
use crate::errors::raised;
use crate::fence_sql::ParamStyle;
use crate::info::LockInfo;
use crate::lease::{Body, Lease, shown};
use crate::observe;
use crate::reactor::{Operation, Outcome};
use crate::request::{self, Renewal};
use crate::signals::Signals;

/// The settings of a run.
pub(crate) struct Settings<'py> {
    pub(crate) key: Option<String>,
    pub(crate) every: Option<Seconds>,
    pub(crate) offset: Option<Seconds>,
    pub(crate) at: Option<String>,
    pub(crate) tz: Option<String>,
    pub(crate) cron: Option<String>,
    pub(crate) cooldown: Option<Seconds>,
    pub(crate) keep: Option<Seconds>,
    pub(crate) wait: Option<Seconds>,
    pub(crate) ttl: Option<Seconds>,
    pub(crate) owner: Option<String>,
    pub(crate) data: Option<Bound<'py, PyBytes>>,
    pub(crate) lock_delay: Option<Seconds>,
    pub(crate) max_hold: Option<Seconds>,
    pub(crate) renew_every: Option<Seconds>,
    /// The default is true; `renew=False` turns renewals off.
    pub(crate) renew: bool,
    pub(crate) trust_quorum: bool,
    pub(crate) even_if_done: bool,
    pub(crate) replace: bool,
    pub(crate) watch_holder: bool,
    pub(crate) max_attempts: Option<u32>,
    pub(crate) retry_after: Option<Seconds>,
}

impl Settings<'_> {
    pub(crate) fn apply(self, py: Python<'_>, mut request: leasehold::RunRequest) -> PyResult<leasehold::RunRequest> {
        type Set = fn(leasehold::RunRequest, Duration) -> leasehold::RunRequest;
        let lengths: [(&str, Option<Seconds>, Set); 7] = [
            ("every", self.every, leasehold::RunRequest::every),
            ("offset", self.offset, leasehold::RunRequest::offset),
            ("cooldown", self.cooldown, leasehold::RunRequest::cooldown),
            ("keep", self.keep, leasehold::RunRequest::keep),
            ("lock_delay", self.lock_delay, leasehold::RunRequest::lock_delay),
            ("max_hold", self.max_hold, leasehold::RunRequest::max_hold),
            ("retry_after", self.retry_after, leasehold::RunRequest::retry_after),
        ];
        convert::warn_of_milliseconds(py, [("ttl", self.ttl), ("wait", self.wait)])?;
        convert::warn_of_long(py, [("every", self.every), ("cooldown", self.cooldown), ("keep", self.keep)])?;
        for (name, length, set) in lengths {
            if let Some(length) = length {
                request = set(request, length.finite(py, name)?);
            }
        }
        for (given, set) in [
            (self.key, leasehold::RunRequest::key as fn(leasehold::RunRequest, String) -> leasehold::RunRequest),
            (self.at, leasehold::RunRequest::at),
            (self.tz, leasehold::RunRequest::tz),
            (self.cron, leasehold::RunRequest::cron),
        ] {
            request = given.into_iter().fold(request, set);
        }
        if let Some(wait) = self.wait {
            request = request.wait(wait.if_finite().unwrap_or(Duration::MAX));
        }
        if let Some(ttl) = self.ttl {
            request = request.ttl(ttl.finite(py, "ttl")?);
        }
        if let Some(owner) = self.owner {
            request = request.owner(owner);
        }
        if let Some(data) = self.data {
            request = request.data(data.as_bytes());
        }
        if self.trust_quorum {
            request = request.trust_quorum();
        }
        if self.even_if_done {
            request = request.even_if_done();
        }
        if self.replace {
            request = request.replace();
        }
        if self.watch_holder {
            request = request.watch_holder();
        }
        if let Some(max) = self.max_attempts {
            request = request.max_attempts(max);
        }
        match request::renewal(py, self.renew, self.renew_every)? {
            Renewal::Usual => {}
            Renewal::Every(every) => request = request.renew_every(every),
            Renewal::Off => request = request.no_renewal(),
        }
        ffi::check_run(&request).map_err(|error| raised(py, &error))?;
        Ok(request)
    }
}

/// A run with all its settings, to be begun any number of times.
#[pyclass(frozen, module = "leasehold._native")]
pub(crate) struct RunRequest(Kept<leasehold::RunRequest>);

impl RunRequest {
    pub(crate) fn new(request: leasehold::RunRequest) -> Self {
        Self(Kept::new(request))
    }
}

#[pymethods]
impl RunRequest {
    /// The run, or else why there is nothing to do.
    fn begin<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        observe::begin(py)?;
        let mut signals = Signals::default();
        let request = leasehold::RunRequest::clone(&self.0);
        let result = py.detach(|| ffi::begin_run(request, || signals.interrupt()));
        signals.check()?;
        begun(py, result.map_err(|error| raised(py, &error))?)
    }

    fn begin_begin(&self, py: Python<'_>) -> PyResult<Operation> {
        observe::begin(py)?;
        let request = leasehold::RunRequest::clone(&self.0);
        Ok(Operation::new(async move { request.await.map(Outcome::Once) }))
    }
}

/// The answer to the request for a run.
pub(crate) fn begun(py: Python<'_>, once: Once) -> PyResult<Bound<'_, PyAny>> {
    let runs = py.import("leasehold._runs")?;
    match once {
        Once::Run(run) => {
            let lease = Lease::new(ffi::run_lease(run));
            Ok(Bound::new(py, PyClassInitializer::from(lease).add_subclass(Run))?.into_any())
        }
        Once::Done(completion) => runs.getattr("AlreadyDone")?.call1(fields(py, completion)?),
        Once::Running(holder) => runs.getattr("RunningElsewhere")?.call1((holder.map(LockInfo::new),)),
        Once::Later(attempts) => runs.getattr("RetryLater")?.call1((py.None(), counted(py, &attempts)?)),
        Once::Replaced => runs.getattr("Replaced")?.call1((py.None(),)),
        _ => runs.getattr("RunningElsewhere")?.call1((py.None(),)),
    }
}

type Fields<'py> = (f64, Option<String>, u64, f64, Bound<'py, PyAny>, Option<f64>);

fn fields(py: Python<'_>, completion: Completion) -> PyResult<Fields<'_>> {
    let seconds = |unix_ms| Duration::from_millis(unix_ms).as_secs_f64();
    let results = py.import("leasehold._results")?;
    let none = if completion.result_unsettled { "UNSETTLED" } else { "NONE" };
    let result = match &completion.result {
        Some(result) => results.getattr("read")?.call1((result.kind(), PyBytes::new(py, result.as_bytes())))?,
        None => results.getattr("NoResult")?.getattr(none)?,
    };
    let (at, began) = (seconds(completion.at_unix_ms), completion.began_unix_ms.map(seconds));
    Ok((at, completion.owner, completion.token, completion.left.as_secs_f64(), result, began))
}

/// The result that a run is finished with.
enum Given {
    Absent,
    Value(Py<PyAny>),
}

impl<'py> FromPyObject<'_, 'py> for Given {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        Ok(Self::Value(value.to_owned().unbind()))
    }
}

impl Given {
    /// # Errors
    /// The package is not whole.
    fn outcome(self, py: Python<'_>) -> PyResult<ffi::RunOutcome> {
        let Self::Value(value) = self else { return Ok(None) };
        let results = py.import("leasehold._results")?;
        let value = value.into_bound(py);
        if value.is_instance(&results.getattr("NoResult")?)? {
            return Ok(None);
        }
        let written = results.getattr("written")?.call1((value,)).and_then(|made| made.extract::<(String, Vec<u8>)>());
        Ok(Some(match written {
            Ok((kind, bytes)) if kind == "json" => {
                String::from_utf8(bytes).map(RunResult::Json).map_err(|e| e.to_string())
            }
            Ok((_, bytes)) => Ok(RunResult::Bytes(bytes)),
            Err(error) => Err(format!("it is neither bytes nor a value that JSON can hold: {}", error.value(py))),
        }))
    }
}

pub(crate) fn completion(py: Python<'_>, completion: Option<Completion>) -> PyResult<Bound<'_, PyAny>> {
    let Some(completion) = completion else { return Ok(py.None().into_bound(py)) };
    py.import("leasehold._runs")?.getattr("Completion")?.call1(fields(py, completion)?)
}

pub(crate) fn info(py: Python<'_>, info: RunInfo) -> PyResult<Bound<'_, PyAny>> {
    let done = completion(py, info.done)?;
    let attempts = info.attempts.map(|attempts| counted(py, &attempts)).transpose()?;
    let class = py.import("leasehold._runs")?.getattr("RunInfo")?;
    class.call1((info.resource, info.holder.map(LockInfo::new), done, info.name, info.key, attempts))
}

/// The attempts at a run, as Python sees them.
pub(crate) fn counted<'py>(py: Python<'py>, attempts: &Attempts) -> PyResult<Bound<'py, PyAny>> {
    let seconds = |unix_ms| Duration::from_millis(unix_ms).as_secs_f64();
    let (since, retry_at) = (seconds(attempts.since_unix_ms), seconds(attempts.retry_unix_ms));
    let class = py.import("leasehold._runs")?.getattr("Attempts")?;
    class.call1((attempts.count, attempts.max, since, retry_at, attempts.reason.as_deref()))
}

/// The reason that an exception of the body gives: its type, and what it says.
fn reason(error: Option<&Bound<'_, PyAny>>) -> String {
    let Some(error) = error else { return String::new() };
    let name = error.get_type().name().map(|name| name.to_string()).unwrap_or_default();
    // What it says is code of the user's, which may fail itself.
    match error.str().map(|text| text.to_string()) {
        Ok(text) if !text.is_empty() => format!("{name}: {text}"),
        Ok(_) | Err(_) => name,
    }
}

/// A lease under which work is done that is done once. As a context manager, it finishes when the body ends, and is
/// released without a completion when the body raises.
#[pyclass(frozen, extends = Lease, module = "leasehold")]
pub(crate) struct Run;

#[pymethods]
impl Run {
    /// Writes down that the work is done, and releases the lock, in one step. Awaits the answer for as long as the lease
    /// lasts.
    ///
    /// Raises LeaseLostError if the lease was lost before: no completion was written, and another worker may do the work
    /// again. FinishUnconfirmedError if no answer of the store says that the completion stands. NotOwnedError after a release
    /// or finish.
    ///
    /// `result` is for those who come later, in AlreadyDone.result: bytes, or a value that JSON can hold, at most 4 KiB. Raises
    /// ResultNotKeptError if it cannot be kept: the work counts as done all the same.
    #[pyo3(signature = (*, result = Given::Absent))]
    fn finish(slf: PyRef<'_, Self>, result: Given) -> PyResult<()> {
        let py = slf.py();
        finish(py, slf.as_super(), result.outcome(py)?)
            .and_then(|finished| finished.map_err(|error| raised(py, &error)))
    }

    /// Says why the work has failed, and releases the lock, so that another worker may do the work: a text, or an exception, of which the
    /// type and the message are kept in one line of at most 256 bytes, beside the number of attempts. Others can read them in the store,
    /// so leave secrets out. Without `max_attempts` it only releases. A body that raises does this by itself.
    ///
    /// Raises the errors of release().
    #[pyo3(signature = (why, /))]
    fn fail(slf: PyRef<'_, Self>, why: &Bound<'_, PyAny>) -> PyResult<()> {
        let (py, why) = (slf.py(), said(why)?);
        fail(py, slf.as_super(), &why)?.map_err(|error| raised(py, &error))
    }

    /// The attempts at the work with this one; None without `max_attempts`.
    #[getter]
    fn attempts(slf: PyRef<'_, Self>) -> PyResult<Option<Bound<'_, PyAny>>> {
        let py = slf.py();
        ffi::attempts(slf.as_super().held()).map(|attempts| counted(py, attempts)).transpose()
    }

    fn _begin_fail(slf: PyRef<'_, Self>, why: &Bound<'_, PyAny>) -> PyResult<Operation> {
        let (held, why) = (slf.as_super().held().clone(), said(why)?);
        Ok(Operation::new(async move { ffi::fail_async(&held, &why).await.map(|()| Outcome::Nothing) }))
    }

    /// A statement that writes the completion in a transaction of yours, and its parameters: work and completion are then committed
    /// together, or not at all. The lock has to be in the same PostgreSQL database as the work.
    ///
    /// Run it last in the transaction, commit, and finish only then. It fails if the lease is over: roll back. `paramstyle` is
    /// that of leasehold.fence.PostgresGuard, and `result` as in finish(). Raises ConfigError if the store is no single PostgreSQL
    /// database, or the result cannot be kept,
    /// LeaseLostError if the lease is over, NotOwnedError after a release.
    #[pyo3(signature = (*, paramstyle = "numeric_dollar", result = Given::Absent))]
    fn completion_in<'py>(
        slf: PyRef<'py, Self>,
        paramstyle: &str,
        result: Given,
    ) -> PyResult<(String, Bound<'py, PyAny>)> {
        let (py, style) = (slf.py(), ParamStyle::of(slf.py(), paramstyle)?);
        let completion =
            ffi::completion_in(slf.as_super().held(), result.outcome(py)?).map_err(|error| raised(py, &error))?;
        let parameters = style.parameters(py, [("run", completion.parameter.into_bound_py_any(py)?)])?;
        Ok((style.write(&completion.sql, ["run"; 2]), parameters))
    }

    /// Finishes, unless the body has done so itself, or has released the run. After an exception it releases, so that
    /// another worker may do the work.
    #[pyo3(signature = (kind, error, traceback, /))]
    fn __exit__(
        slf: PyRef<'_, Self>,
        kind: Option<Bound<'_, PyAny>>,
        error: Option<Bound<'_, PyAny>>,
        traceback: Option<Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        drop(traceback);
        let (py, lease): (_, &Lease) = (slf.py(), slf.as_super());
        match Body::of(kind.is_some()) {
            Body::Raised => {
                // The body's own exception has precedence.
                let _ = fail(py, lease, &reason(error.as_ref()))?;
                Ok(())
            }
            Body::Done => {
                let was_lost = lease.held().is_lost();
                ffi::run_left(was_lost, finish(py, lease, None)?).map_err(|error| raised(py, &error))
            }
        }
    }

    #[pyo3(signature = (*, result = Given::Absent))]
    fn _begin_finish(slf: PyRef<'_, Self>, result: Given) -> PyResult<Operation> {
        let (held, outcome) = (slf.as_super().held().clone(), result.outcome(slf.py())?);
        Ok(Operation::new(async move { ffi::finish_async(&held, outcome).await.map(|()| Outcome::Nothing) }))
    }

    #[pyo3(signature = (has_raised, error = None))]
    fn _begin_exit(slf: PyRef<'_, Self>, has_raised: bool, error: Option<Bound<'_, PyAny>>) -> Operation {
        let (held, body) = (slf.as_super().held().clone(), Body::of(has_raised));
        let why = reason(error.as_ref());
        Operation::new(async move {
            match body {
                Body::Raised => {
                    // As above.
                    let _ = ffi::fail_async(&held, &why).await;
                    Ok(Outcome::Nothing)
                }
                Body::Done => {
                    let was_lost = held.is_lost();
                    ffi::run_left(was_lost, ffi::finish_async(&held, None).await).map(|()| Outcome::Nothing)
                }
            }
        })
    }

    fn __repr__(slf: PyRef<'_, Self>) -> String {
        shown(slf.as_super().held()).replacen("<Lease", "<Run", 1)
    }
}

/// Why the work has failed, by an exception or a text.
///
/// # Errors
/// It is neither.
fn said(why: &Bound<'_, PyAny>) -> PyResult<String> {
    if why.is_instance_of::<PyBaseException>() {
        return Ok(reason(Some(why)));
    }
    why.extract().map_err(|_| PyTypeError::new_err("why a run has failed is a text or an exception"))
}

/// # Errors
/// The exception of a signal handler, which ends the wait, not the release.
fn fail(py: Python<'_>, lease: &Lease, why: &str) -> PyResult<Result<(), Error>> {
    let mut signals = Signals::default();
    let held = lease.held();
    let released = py.detach(|| ffi::fail(held, why, || signals.interrupt()));
    signals.check()?;
    Ok(released)
}

/// # Errors
/// The exception of a signal handler, which ends the wait, not the finish.
fn finish(py: Python<'_>, lease: &Lease, outcome: ffi::RunOutcome) -> PyResult<Result<(), Error>> {
    let mut signals = Signals::default();
    let held = lease.held();
    let finished = py.detach(|| ffi::finish(held, outcome, || signals.interrupt()));
    signals.check()?;
    Ok(finished)
}
