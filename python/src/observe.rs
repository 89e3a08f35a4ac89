//! The client's events, on their way to Python's loggers and observers of metrics.
//!
//! A Python thread watches a pipe and fetches the queue; no frame of Rust is on its stack while it waits, so that the
//! end of the interpreter can unwind it.

use std::cell::Cell;
use std::io::{PipeReader, Write, pipe};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use leasehold::ffi::Mutex;
use leasehold::ffi::observe::{EventQueue, Fetched, Item, Level, Value};
use leasehold::ffi::{self, PerProcess};
use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict};

use crate::signals;

/// The shortest interval at which loggers are asked for their level.
const LOOK_EVERY_MS: u64 = 1_000;
const LEVELS: [(Level, u32); 5] =
    [(Level::Trace, 5), (Level::Debug, 10), (Level::Info, 20), (Level::Warn, 30), (Level::Error, 40)];

static PROCESS: PerProcess<Process> = PerProcess::new(Process::default);

#[derive(Default)]
struct Process {
    queue: Mutex<Option<(PipeReader, Arc<EventQueue>)>>,
    looked_at_ms: AtomicU64,
}

/// Checks from time to time if there are listeners, at the start of calls that may have events. A Python thread does
/// it: loggers take locks, and on the main thread a signal handler could raise in between, which could not be
/// distinguished from a broken logger.
fn look(py: Python<'_>) {
    let (now, looked_at) = (ffi::clocks().1, &PROCESS.get().looked_at_ms);
    if now.abs_diff(looked_at.load(Ordering::Relaxed)) < LOOK_EVERY_MS || signals::is_ending() {
        return;
    }
    looked_at.store(now, Ordering::Relaxed);
    let start = || {
        let callbacks = py.import("leasehold._callbacks")?;
        callbacks.getattr("start_new_thread")?.call1((callbacks.getattr("look")?, ()))
    };
    // An interpreter that ends cannot start threads, and neither can a machine without memory.
    drop(start());
}

/// Begins each call that acquires something: calls [`look`], and passes on the name of the thread.
///
/// # Errors
/// The exception of a signal handler.
pub(crate) fn begin(py: Python<'_>) -> PyResult<()> {
    thread_local! {
        static IS_NAMED: Cell<bool> = const { Cell::new(false) };
    }
    if !IS_NAMED.get() {
        let thread = py.import("threading")?.call_method0("current_thread")?;
        ffi::name_thread(&thread.getattr("name")?.extract::<String>()?);
        IS_NAMED.set(true);
    }
    look(py);
    Ok(())
}

/// Queues events of this level of logging and above from now on, and samples of metrics if `samples` is true. Returns
/// the descriptor, or on Windows the handle, of a pipe that becomes readable when the queue has items.
#[pyfunction]
pub(crate) fn observe(level: u32, samples: bool) -> PyResult<isize> {
    let refuse = |error: std::io::Error| PyOSError::new_err(error.to_string());
    ffi::notice_forks().map_err(refuse)?;
    let mut queue = PROCESS.get().queue.lock();
    let (heard, queue) = match &mut *queue {
        Some(queue) => queue,
        none => {
            let (heard, rings) = pipe().map_err(refuse)?;
            // The pipe holds a few bytes at most, so it takes one more.
            none.insert((heard, EventQueue::open(move || drop((&rings).write(&[1])))))
        }
    };
    queue.want(LEVELS.iter().find(|(_, number)| *number >= level).map(|(level, _)| *level), samples);
    Ok(number(heard))
}

#[cfg(unix)]
fn number(pipe: &PipeReader) -> isize {
    std::os::fd::AsRawFd::as_raw_fd(pipe) as isize
}

#[cfg(windows)]
fn number(pipe: &PipeReader) -> isize {
    std::os::windows::io::AsRawHandle::as_raw_handle(pipe) as isize
}

/// Fetches the queue, and the number of items that were dropped.
#[pyfunction]
pub(crate) fn observed(py: Python<'_>) -> PyResult<(Vec<Bound<'_, PyAny>>, u64)> {
    let queue = PROCESS.get().queue.lock();
    let Fetched { items, dropped } = queue.as_ref().map(|(_, queue)| queue.fetch()).unwrap_or_default();
    drop(queue);
    let shown = items.into_iter().map(|item| match item {
        Item::Event { name, level, unix_ms, message, fields } => {
            let level = LEVELS.iter().find(|(known, _)| *known == level).map_or(0, |(_, number)| *number);
            let details = PyDict::new(py);
            fields.into_iter().try_for_each(|(key, value)| details.set_item(key, object(py, value)?))?;
            Ok((name, level, unix_ms, message, details).into_pyobject(py)?.into_any())
        }
        Item::Sample(sample) => {
            let labels = PyDict::new(py);
            sample.labels.into_iter().try_for_each(|(key, value)| labels.set_item(key, value))?;
            Ok((sample.name, sample.kind, sample.value, labels).into_pyobject(py)?.into_any())
        }
    });
    Ok((shown.collect::<PyResult<_>>()?, dropped))
}

fn object(py: Python<'_>, value: Value) -> PyResult<Bound<'_, PyAny>> {
    Ok(match value {
        Value::Text(text) => text.into_pyobject(py)?.into_any(),
        Value::Whole(number) => number.into_pyobject(py)?.into_any(),
        Value::Signed(number) => number.into_pyobject(py)?.into_any(),
        Value::Number(number) => number.into_pyobject(py)?.into_any(),
        Value::Flag(flag) => PyBool::new(py, flag).to_owned().into_any(),
    })
}
