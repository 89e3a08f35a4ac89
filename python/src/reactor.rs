//! Futures of the client on an asyncio event loop.
//!
//! The loop's own thread polls them: between the thread that reads a reply from the store and the task that waits for it
//! there is no other thread. A wake-up writes to a pipe that the loop watches; the loop then polls all futures that can go on.

use std::future::Future;
use std::io::{PipeReader, PipeWriter, Read, Write, pipe};
use std::os::fd::AsRawFd;
use std::sync::Arc;

use leasehold::Error;
use leasehold::ffi::{self, Executor, Mutex, Task};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::PyBool;

use crate::client::Client;
use crate::convert::Kept;
use crate::election::{Election, Tie};
use crate::errors::raised;
use crate::info::{LockInfo, ReleaseIfOutcome};
use crate::lease::{Lease, Leases};

/// The result of an operation.
pub(crate) enum Outcome {
    Nothing,
    Answer(bool),
    Client(leasehold::Client),
    Lease(leasehold::Lease),
    MaybeLease(Option<leasehold::Lease>),
    Leases(leasehold::Leases),
    Info(Option<leasehold::LockInfo>),
    ReleaseIf(leasehold::ReleaseIfOutcome),
    Loss(Error),
}

type End = Result<Outcome, Error>;

/// An operation that a reactor can run.
#[pyclass(frozen, module = "leasehold._native")]
pub(crate) struct Operation(Kept<Mutex<Option<Task<End>>>>);

impl Operation {
    pub(crate) fn new(future: impl Future<Output = End> + Send + 'static) -> Self {
        Self(Kept::new(Mutex::new(Some(ffi::task(future)))))
    }
}

/// Runs operations on one event loop.
#[pyclass(frozen, module = "leasehold._native", weakref)]
pub(crate) struct Reactor {
    /// The output of a task is the future of asyncio that waits for it, and the result.
    executor: Kept<Executor<(Py<PyAny>, End)>>,
    /// Both ends live as long as any task can be woken.
    pipe: Arc<(PipeReader, PipeWriter)>,
    /// Candidacies whose callbacks run on the loop, and which end with it.
    ties: Kept<Mutex<Vec<Tie>>>,
}

#[pymethods]
impl Reactor {
    #[new]
    fn new() -> PyResult<Self> {
        let pipe = Arc::new(pipe()?);
        let ends = Arc::clone(&pipe);
        // The pipe holds a few bytes at most, so it takes one more; a failure could be reported to nobody.
        let executor = Executor::new(move || {
            let _ = (&ends.1).write(&[1]);
        });
        Ok(Self { executor: Kept::new(executor), pipe, ties: Kept::new(Mutex::default()) })
    }

    /// The descriptor that the loop watches: it becomes readable when [`Reactor::run`] has something to do.
    fn fileno(&self) -> i32 {
        self.pipe.0.as_raw_fd()
    }

    /// The number of operations under way.
    fn __len__(&self) -> usize {
        self.executor.running()
    }

    /// Starts an operation. `waiter` gets its result, perhaps before this returns.
    fn start(&self, py: Python<'_>, operation: &Operation, waiter: Py<PyAny>) -> PyResult<u64> {
        let Some(task) = operation.0.lock().take() else {
            return Err(PyRuntimeError::new_err("the operation was started before"));
        };
        let task = Box::pin(async move { (waiter, task.await) });
        let (id, ended) = py.detach(|| self.executor.start(task));
        ended.map_or(Ok(()), |(waiter, end)| tell(waiter.bind(py), end))?;
        Ok(id)
    }

    /// Gives an operation up, with everything it has begun. Does nothing if it has ended.
    fn cancel(&self, py: Python<'_>, id: u64) {
        py.detach(|| self.executor.cancel(id));
    }

    /// Resigns the election when the loop is gone, and this reactor with it.
    fn tie(&self, py: Python<'_>, election: &Election) {
        py.detach(|| {
            let mut ties = self.ties.lock();
            ties.retain(|tie| !tie.is_idle());
            ties.push(election.tie());
        });
    }

    /// Polls all operations that can go on, after the pipe has become readable.
    fn run(&self, py: Python<'_>) -> PyResult<()> {
        // Before the executor looks, so that a later wake-up writes again.
        let _ = (&self.pipe.0).read(&mut [0; 64]);
        let ended = py.detach(|| self.executor.run());
        // An error for one waiter must not keep the others from their results.
        let told: Vec<_> = ended.into_iter().map(|(_, (waiter, end))| tell(waiter.bind(py), end)).collect();
        told.into_iter().collect()
    }
}

/// Gives a waiter its result. If the waiter was cancelled, the result is dropped, which releases a granted lock.
fn tell(waiter: &Bound<'_, PyAny>, end: End) -> PyResult<()> {
    let py = waiter.py();
    if waiter.call_method0("done")?.extract()? {
        py.detach(|| drop(end));
        return Ok(());
    }
    match end {
        Ok(outcome) => waiter.call_method1("set_result", (shown(py, outcome)?,))?,
        Err(error) => waiter.call_method1("set_exception", (raised(py, &error),))?,
    };
    Ok(())
}

fn shown(py: Python<'_>, outcome: Outcome) -> PyResult<Bound<'_, PyAny>> {
    match outcome {
        Outcome::Nothing => Ok(py.None().into_bound(py)),
        Outcome::Answer(answer) => Ok(PyBool::new(py, answer).to_owned().into_any()),
        Outcome::Client(client) => Ok(Client::new(client).into_pyobject(py)?.into_any()),
        Outcome::Lease(lease) => Ok(Lease::new(lease).into_pyobject(py)?.into_any()),
        Outcome::MaybeLease(lease) => lease.map(Lease::new).into_pyobject(py),
        Outcome::Leases(leases) => Ok(Leases::new(leases).into_pyobject(py)?.into_any()),
        Outcome::Info(info) => info.map(LockInfo::new).into_pyobject(py),
        Outcome::ReleaseIf(outcome) => Ok(ReleaseIfOutcome::new(py, outcome)?.into_pyobject(py)?.into_any()),
        Outcome::Loss(error) => Ok(raised(py, &error).into_pyobject(py)?.into_any()),
    }
}
