//! Futures of the client on an asyncio event loop.
//!
//! The loop's own thread polls them. It also watches the sockets of requests: a readable one polls all futures whose replies
//! have arrived. Other wake-ups write to a pipe that the loop watches as well. A loop that watches nothing, as on Windows, is
//! called by a thread, and threads of the client send the requests.

use std::future::Future;
use std::sync::Arc;

use leasehold::Error;
use leasehold::ffi::{Ended, Executor, Held, Mutex, RawFd, Task};
use pyo3::exceptions::PyRuntimeError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyBool;

use crate::asyncio::{Asyncio, Callee};
use crate::client::Client;
use crate::convert::Kept;
use crate::errors::raised;
use crate::info::{self, LockInfo, ReleaseIfOutcome, RevokeOutcome};
use crate::items::{self, Items};
use crate::lease::{Lease, Leases};
use crate::pump::{Pace, Pump};
use crate::tie::{Tie, Tied};
use crate::wakeup::{self, Pipe};
use crate::{callback, permit, run, series};

/// The result of an operation.
pub(crate) enum Outcome {
    Nothing,
    Answer(bool),
    Client(leasehold::Client),
    Lease(leasehold::Lease),
    MaybeLease(Option<leasehold::Lease>),
    Leases(leasehold::Leases),
    Held(Held),
    MaybeHeld(Option<Held>),
    Page(Option<Vec<leasehold::LockInfo>>),
    Runs(Option<Vec<leasehold::RunInfo>>),
    Change(leasehold::Change),
    Info(Option<leasehold::LockInfo>),
    ReleaseIf(leasehold::ReleaseIfOutcome),
    Revoke(leasehold::RevokeOutcome),
    Sessions(Vec<leasehold::SessionInfo>),
    Once(leasehold::Once),
    RunInfo(Box<leasehold::RunInfo>),
    Completion(Option<leasehold::Completion>),
    Items(leasehold::cas::Items),
    ItemStep(Result<leasehold::cas::Step, leasehold::cas::Error>),
    Loss(Error),
    /// A candidacy or a worker has ended with this failure of one of these callbacks.
    Failed(Error, Py<PyAny>),
}

type End = Result<Outcome, Error>;
/// The waiter of an operation, and its result.
type Told = Ended<Waiter, Outcome, Error>;

/// The future of asyncio that waits for an operation.
struct Waiter {
    future: Py<PyAny>,
    pace: Pace,
}

/// An operation that a reactor can run.
#[pyclass(frozen, module = "leasehold._native")]
pub(crate) struct Operation {
    task: Mutex<Option<Kept<Task<Outcome, Error>>>>,
    pace: Pace,
}

impl Operation {
    pub(crate) fn new(future: impl Future<Output = End> + Send + 'static) -> Self {
        Self { task: Mutex::new(Some(Kept::new(Box::pin(future)))), pace: Pace::Passes }
    }

    pub(crate) fn paced(self, pace: Pace) -> Self {
        Self { pace, ..self }
    }
}

/// Runs operations on one event loop.
#[pyclass(frozen, module = "leasehold._native", weakref)]
pub(crate) struct Reactor {
    executor: Kept<Executor<Waiter, Outcome, Error>>,
    /// For a loop that watches it.
    pipe: Option<Pipe>,
    callee: Arc<Callee>,
    /// Candidacies and shards whose callbacks run on the loop, and which end with it.
    ties: Kept<Mutex<Vec<Tie>>>,
    pump: Pump,
}

#[pymethods]
impl Reactor {
    /// Such a loop watches the pipe and sockets, or nothing.
    #[new]
    fn new(event_loop: &Bound<'_, PyAny>, watches: bool) -> PyResult<Self> {
        let callee = Arc::new(Callee::default());
        let pump = Pump::new(event_loop)?;
        let event_loop = Asyncio::new(event_loop, Arc::clone(&callee))?;
        let (executor, pipe) = if watches {
            let (pipe, notify) = Pipe::new()?;
            (Executor::new(notify).with_poller(event_loop), Some(pipe))
        } else {
            (Executor::new(wakeup::by_thread(event_loop)?), None)
        };
        Ok(Self { executor: Kept::new(executor), pipe, callee, ties: Kept::new(Mutex::default()), pump })
    }

    /// The descriptor that the loop watches: it becomes readable when [`Reactor::run`] has something to do.
    #[cfg(unix)]
    fn fileno(&self) -> Option<i32> {
        self.pipe.as_ref().map(Pipe::descriptor)
    }

    /// The number of operations under way.
    fn __len__(&self) -> usize {
        self.executor.running()
    }

    /// Starts an operation. `waiter` gets its result, perhaps before this returns.
    fn start(slf: &Bound<'_, Self>, operation: &Operation, waiter: Py<PyAny>) -> PyResult<u64> {
        let (py, reactor) = (slf.py(), slf.get());
        let Some(task) = operation.task.lock().take() else {
            return Err(PyRuntimeError::new_err("the operation was started before"));
        };
        reactor.callee.set(slf)?;
        // Attached, as in all later turns: it does not wait.
        let waiter = Waiter { future: waiter, pace: operation.pace };
        reactor.pump.begin_again();
        let (id, ended) = reactor.executor.start(waiter, task.into_inner());
        match ended {
            Some((waiter, end)) => tell(waiter.future.bind(py), end)?,
            None => Self::keep_time(slf)?,
        }
        Ok(id)
    }

    /// Gives an operation up, with everything it has begun. Does nothing if it has ended.
    fn cancel(&self, py: Python<'_>, id: u64) {
        py.detach(|| self.executor.cancel(id));
    }

    /// Ends an election or a worker's shards when the loop is gone, and this reactor with it.
    #[expect(clippy::needless_pass_by_value, reason = "an argument from Python")]
    fn tie(&self, py: Python<'_>, tied: Tied<'_>) {
        let tie = tied.tie();
        py.detach(|| {
            let mut ties = self.ties.lock();
            ties.retain(|tie| !tie.is_idle());
            ties.push(tie);
        });
    }

    /// Polls all operations that can go on, after a wake-up.
    fn run(&self, py: Python<'_>) -> PyResult<()> {
        if let Some(pipe) = &self.pipe {
            pipe.clear();
        }
        self.pump.begin_again();
        self.tell_all(py, self.executor.run())
    }

    /// Reads replies from a socket, and polls the operations that wait for them.
    fn on_ready(&self, py: Python<'_>, socket: RawFd) -> PyResult<()> {
        self.tell_all(py, self.executor.on_ready(socket))
    }

    /// Writes the requests that were made in this turn of the loop.
    fn end_turn(&self, py: Python<'_>) -> PyResult<()> {
        self.tell_all(py, self.executor.end_turn())
    }

    /// Ends requests that have waited too long.
    fn on_timer(&self, py: Python<'_>) -> PyResult<()> {
        self.tell_all(py, self.executor.on_timer())
    }

    /// A turn of the loop while operations wait for a test clock, which takes a step once the loop has been idle for some.
    fn take_turn(slf: &Bound<'_, Self>) -> PyResult<()> {
        let (py, reactor) = (slf.py(), slf.get());
        if reactor.pump.is_idle() {
            let ended = py.detach(|| reactor.executor.step(|waiter| reactor.pump.passes_for(waiter.pace)));
            reactor.tell_all(py, ended.unwrap_or_default())?;
            py.check_signals()?;
        }
        Self::keep_time(slf)
    }

    /// A callback of a client of a test clock begins on the loop.
    fn callback_begins(&self) {
        self.pump.callback_begins();
    }

    fn callback_has_ended(slf: &Bound<'_, Self>) -> PyResult<()> {
        slf.get().pump.callback_has_ended();
        Self::keep_time(slf)
    }
}

impl Reactor {
    /// Takes another turn soon, while operations wait for a test clock.
    fn keep_time(slf: &Bound<'_, Self>) -> PyResult<()> {
        let reactor = slf.get();
        if reactor.executor.waits_for_clock(|waiter| reactor.pump.passes_for(waiter.pace)) {
            reactor.pump.call(slf)?;
        }
        Ok(())
    }

    fn tell_all(&self, py: Python<'_>, ended: Vec<(u64, Told)>) -> PyResult<()> {
        if ended.is_empty() {
            return Ok(());
        }
        // An error for one waiter must not keep the others from their results.
        let told: Vec<_> = ended.into_iter().map(|(_, (waiter, end))| tell(waiter.future.bind(py), end)).collect();
        // After the tasks that have waited, so that their next requests are written without another turn of the loop.
        self.executor.expect_requests();
        told.into_iter().collect()
    }
}

/// Gives a waiter its result. If the waiter was cancelled, the result is dropped, which releases a granted lock.
fn tell(waiter: &Bound<'_, PyAny>, end: End) -> PyResult<()> {
    let py = waiter.py();
    if waiter.call_method0(intern!(py, "done"))?.extract()? {
        py.detach(|| drop(end));
        return Ok(());
    }
    match end {
        // The errors of an update are more than those of the client.
        Ok(Outcome::ItemStep(step)) => match items::shown(py, step) {
            Ok(step) => waiter.call_method1(intern!(py, "set_result"), (step,))?,
            Err(error) => waiter.call_method1(intern!(py, "set_exception"), (error,))?,
        },
        Ok(Outcome::Failed(error, callbacks)) => {
            waiter.call_method1(intern!(py, "set_exception"), (callback::ended(py, &callbacks, &error),))?
        }
        Ok(outcome) => waiter.call_method1(intern!(py, "set_result"), (shown(py, outcome)?,))?,
        Err(error) => waiter.call_method1(intern!(py, "set_exception"), (raised(py, &error),))?,
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
        Outcome::Held(held) => permit::object(py, held),
        Outcome::MaybeHeld(None) => Ok(py.None().into_bound(py)),
        Outcome::MaybeHeld(Some(held)) => permit::object(py, held),
        Outcome::Page(page) => series::shown(page).into_pyobject(py),
        Outcome::Runs(page) => series::runs(py, page)?.into_pyobject(py),
        Outcome::Change(change) => series::changed(py, change),
        Outcome::Info(info) => info.map(LockInfo::new).into_pyobject(py),
        Outcome::ReleaseIf(outcome) => Ok(ReleaseIfOutcome::new(py, outcome)?.into_pyobject(py)?.into_any()),
        Outcome::Revoke(outcome) => Ok(RevokeOutcome::new(py, outcome)?.into_pyobject(py)?.into_any()),
        Outcome::Sessions(sessions) => info::sessions(sessions).into_pyobject(py),
        Outcome::Once(once) => run::begun(py, once),
        Outcome::RunInfo(info) => run::info(py, *info),
        Outcome::Completion(completion) => run::completion(py, completion),
        Outcome::Items(items) => Ok(Items::new(items).into_pyobject(py)?.into_any()),
        Outcome::ItemStep(step) => items::shown(py, step),
        Outcome::Loss(error) | Outcome::Failed(error, _) => Ok(raised(py, &error).into_pyobject(py)?.into_any()),
    }
}
