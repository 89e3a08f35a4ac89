//! Futures of the client on an asyncio event loop.
//!
//! The loop's own thread polls them: no other thread stands between a reply and the task that waits for it but the one that
//! read it from the store. Whoever wakes a future rings a bell, a pipe that the loop watches; the loop then polls all that can
//! go on.

use std::collections::HashMap;
use std::future::Future;
use std::io::{PipeReader, PipeWriter, Read, Write, pipe};
use std::os::fd::AsRawFd;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use leasehold::Error;
use leasehold::host::Bell;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::PyBool;

use crate::client::Client;
use crate::convert::Kept;
use crate::election::{Election, Tie};
use crate::errors::raised;
use crate::info::{LockInfo, ReleaseIfOutcome};
use crate::lease::{Lease, Leases};

/// What an operation ends with.
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
type Running = Pin<Box<dyn Future<Output = End> + Send>>;

/// Something that was begun and is to be run by a reactor.
#[pyclass(frozen, module = "leasehold._native")]
pub(crate) struct Operation(Kept<Mutex<Option<Running>>>);

impl Operation {
    pub(crate) fn new(future: impl Future<Output = End> + Send + 'static) -> Self {
        Self(Kept::new(Mutex::new(Some(Box::pin(future)))))
    }
}

/// Runs operations on one event loop.
#[pyclass(frozen, module = "leasehold._native", weakref)]
pub(crate) struct Reactor {
    bell: Arc<Bell<u64>>,
    /// Both ends live as long as anybody may ring.
    pipe: Arc<(PipeReader, PipeWriter)>,
    tasks: Kept<Mutex<Tasks>>,
    /// Candidacies whose callbacks run on the loop, and which end with it.
    ties: Kept<Mutex<Vec<Tie>>>,
}

#[derive(Default)]
struct Tasks {
    next: u64,
    running: HashMap<u64, Task>,
}

struct Task {
    future: Running,
    waker: Waker,
    /// The future of asyncio that somebody awaits.
    waiter: Py<PyAny>,
}

#[pymethods]
impl Reactor {
    #[new]
    fn new() -> PyResult<Self> {
        let pipe = Arc::new(pipe()?);
        let ends = Arc::clone(&pipe);
        // A few bytes at most are in the pipe, so it takes one more; and there is nobody to tell if it does not.
        let bell = Bell::new(move || {
            let _ = (&ends.1).write(&[1]);
        });
        Ok(Self { bell, pipe, tasks: Kept::new(Mutex::default()), ties: Kept::new(Mutex::default()) })
    }

    /// What the loop has to watch for something to read. It must not block.
    fn fileno(&self) -> i32 {
        self.pipe.0.as_raw_fd()
    }

    /// How many operations are under way.
    fn __len__(&self) -> usize {
        locked(&self.tasks).running.len()
    }

    /// Begins an operation; `waiter` is given its result, perhaps before this returns.
    fn start(&self, py: Python<'_>, operation: &Operation, waiter: Py<PyAny>) -> PyResult<u64> {
        let Some(future) = locked(&operation.0).take() else {
            return Err(PyRuntimeError::new_err("the operation was started before"));
        };
        let mut tasks = locked(&self.tasks);
        tasks.next += 1;
        let id = tasks.next;
        drop(tasks);
        let waker = self.bell.waker(id);
        self.step(py, vec![(id, Task { future, waker, waiter })])?;
        Ok(id)
    }

    /// Gives an operation up, with whatever it has begun; no harm if it has ended.
    fn cancel(&self, py: Python<'_>, id: u64) {
        let task = locked(&self.tasks).running.remove(&id);
        py.detach(|| drop(task));
    }

    /// Resigns the election when the loop is gone, and this with it.
    fn tie(&self, py: Python<'_>, election: &Election) {
        py.detach(|| {
            let mut ties = locked(&self.ties);
            ties.retain(|tie| !tie.is_idle());
            ties.push(election.tie());
        });
    }

    /// The bell has rung: goes on with whatever was noted.
    fn run(&self, py: Python<'_>) -> PyResult<()> {
        // Read before the notes are taken, so that whoever notes something afterwards rings again.
        let _ = (&self.pipe.0).read(&mut [0; 64]);
        let noted = self.bell.noted();
        let mut tasks = locked(&self.tasks);
        let ready: Vec<_> = noted.into_iter().filter_map(|id| Some((id, tasks.running.remove(&id)?))).collect();
        drop(tasks);
        self.step(py, ready)
    }
}

impl Reactor {
    fn step(&self, py: Python<'_>, ready: Vec<(u64, Task)>) -> PyResult<()> {
        let mut ended = Vec::new();
        py.detach(|| {
            for (id, mut task) in ready {
                let polled = task.future.as_mut().poll(&mut Context::from_waker(&task.waker));
                match polled {
                    Poll::Ready(end) => ended.push((task.waiter, end)),
                    Poll::Pending => {
                        locked(&self.tasks).running.insert(id, task);
                    }
                }
            }
        });
        // Where one cannot be told, the others still wait to hear.
        let told: Vec<_> = ended.into_iter().map(|(waiter, end)| tell(waiter.bind(py), end)).collect();
        told.into_iter().collect()
    }
}

/// What nobody awaits any more is dropped, which releases a lock that was granted.
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

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
