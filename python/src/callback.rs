//! Callbacks of the client, run by threads of Python.
//!
//! An interpreter that ends stops every thread that returns to it, by unwinding the thread's stack. Frames of Rust
//! cannot be unwound so: the process would abort. Therefore no frame of Rust ever waits for Python code that may take
//! long, exception hooks included. A thread of the client starts a daemon thread for it, and waits without the
//! interpreter.

use std::sync::mpsc::{Sender, channel};

use leasehold::ffi::Mutex;
use pyo3::prelude::*;

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

/// # Errors
/// `TypeError` for an object that cannot be called, and for a coroutine function.
pub(crate) fn check(py: Python<'_>, callback: &Py<PyAny>) -> PyResult<()> {
    py.import("leasehold._callbacks")?.getattr("check")?.call1((callback,)).map(drop)
}

/// Calls it with the result of `argument`, and waits for its end; for ever, once the interpreter has ended.
pub(crate) fn call<'a>(
    callback: &'a Py<PyAny>,
    argument: impl for<'py> FnOnce(Python<'py>) -> PyResult<Bound<'py, PyAny>> + 'a,
) -> Ended {
    let (sender, ended) = channel();
    let started = Python::try_attach(|py| {
        let start = || {
            let done = Done(Mutex::new(Some(sender)));
            let callbacks = py.import("leasehold._callbacks")?;
            let run = callbacks.getattr("Call")?.call1((callback,))?;
            callbacks.getattr("start_new_thread")?.call1((run, (argument(py)?, done)))
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
