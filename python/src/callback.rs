//! Callbacks of the client, run by threads of Python.
//!
//! An interpreter that ends stops every thread that returns to it, by unwinding the thread's stack. Frames of Rust
//! cannot be unwound so: the process would abort. Therefore no frame of Rust ever waits for Python code that may take
//! long, exception hooks included. A thread of the client starts a daemon thread for it, and waits without the
//! interpreter.

use std::sync::mpsc::{Sender, channel};

use leasehold::ffi::Mutex;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::outside;

/// The result of a callback.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ended {
    Returned,
    /// The exception has been shown.
    Raised,
}

/// The last message of a Python thread. It is dropped without a message after an exception, which the thread has shown.
#[pyclass(frozen, module = "leasehold._native")]
pub(crate) struct Done(Mutex<Option<Sender<Ended>>>);

#[pymethods]
impl Done {
    fn returned(&self) {
        let sender = self.0.lock().take();
        // In a process that ends there is no waiter any more.
        let _ = sender.map(|sender| sender.send(Ended::Returned));
    }
}

/// As [`call`], but an exception becomes a panic, which ends what the callback belongs to.
pub(crate) fn call_or_end<'a>(
    callback: &'a Py<PyAny>,
    arguments: impl for<'py> FnOnce(Python<'py>) -> PyResult<Bound<'py, PyTuple>> + 'a,
) {
    match call(callback, arguments) {
        Ended::Returned => {}
        // Without the message of a panic: the exception was shown.
        Ended::Raised => std::panic::resume_unwind(Box::new("a callback raised an exception")),
    }
}

type Owned<const N: usize> = (Py<PyAny>, [Option<Py<PyAny>>; N]);

/// The callbacks of a candidacy or of a worker's shards, which know when they run; and each of them as it is to be called.
///
/// # Errors
/// As [`check`].
pub(crate) fn own<const N: usize>(py: Python<'_>, callbacks: [Option<Py<PyAny>>; N]) -> PyResult<Owned<N>> {
    let within = py.import("leasehold._within")?.getattr("Callbacks")?.call0()?;
    for callback in callbacks.iter().flatten() {
        check(py, callback)?;
    }
    let mut owned = [const { None }; N];
    for (owned, callback) in owned.iter_mut().zip(callbacks) {
        *owned = callback.map(|callback| within.call_method1("own", (callback,))).transpose()?.map(Bound::unbind);
    }
    Ok((within.unbind(), owned))
}

/// # Errors
/// `TypeError` for an object that cannot be called, and for a coroutine function.
pub(crate) fn check(py: Python<'_>, callback: &Py<PyAny>) -> PyResult<()> {
    py.import("leasehold._callbacks")?.getattr("check")?.call1((callback,)).map(drop)
}

/// Calls it with the result of `arguments`, and waits for its end; for ever, once the interpreter has ended.
pub(crate) fn call<'a>(
    callback: &'a Py<PyAny>,
    arguments: impl for<'py> FnOnce(Python<'py>) -> PyResult<Bound<'py, PyTuple>> + 'a,
) -> Ended {
    let (sender, ended) = channel();
    let started = outside::call(|py| {
        let start = || {
            let done = Done(Mutex::new(Some(sender)));
            let callbacks = py.import("leasehold._callbacks")?;
            let run = callbacks.getattr("Call")?.call1((callback,))?;
            callbacks.getattr("start_new_thread")?.call1((run, (arguments(py)?, done)))
        };
        start().map(drop).map_err(|error| error.write_unraisable(py, Some(callback.bind(py))))
    });
    match started {
        Some(Ok(())) => ended.recv().unwrap_or(Ended::Raised),
        Some(Err(())) => Ended::Raised,
        // There is no interpreter left to call it.
        None => Ended::Returned,
    }
}
