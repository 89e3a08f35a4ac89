//! Callbacks of the client, run by threads of Python.
//!
//! An interpreter that ends stops every thread that returns to it, by unwinding the thread's stack. Frames of Rust
//! cannot be unwound so: the process would abort. Therefore no frame of Rust ever waits for Python code that may take
//! long, exception hooks included. A thread of the client starts a daemon thread for it, and waits or awaits its end without the
//! interpreter.
//!
//! Callbacks of a client of a test clock run on the thread that moves the clock, which is one of the test's own.

use leasehold::ffi::{self, CallbackEnd, CallbackEnded, CallbackRunner, Mutex};
use leasehold::{Error, ErrorKind};
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::errors::raised;
use crate::{outside, signals};

/// The end of a callback, which the Python thread reports that runs it. Without a report its event loop has ended, or the
/// interpreter.
#[pyclass(frozen, module = "leasehold._native")]
pub(crate) struct Done {
    /// The name of the callback.
    name: &'static str,
    runner: Mutex<Option<CallbackRunner>>,
}

#[pymethods]
impl Done {
    fn returned(&self) {
        self.end(Ok(()));
    }

    /// The type and text of the exception, which its thread shows.
    fn raised(&self, text: &str) {
        self.end(Err(CallbackEnd(Some(format!("{} has raised {text}", self.name)))));
    }

    fn cancelled(&self) {
        self.end(Err(CallbackEnd(None)));
    }

    /// Shows an exception of a callback that no frame of Python can raise.
    #[staticmethod]
    fn show(error: &Bound<'_, PyAny>, callback: &Bound<'_, PyAny>) {
        PyErr::from_value(error.clone()).write_unraisable(error.py(), Some(callback));
    }
}

/// An exception of a callback, or of the try to call it. An interrupt on the main thread interrupts what moves the time of a test.
fn show(py: Python<'_>, error: PyErr, callback: &Bound<'_, PyAny>) {
    let interrupts = ffi::is_moved_here() && error.is_instance_of::<PyKeyboardInterrupt>(py);
    if !interrupts || !signals::interrupt_here(py) {
        error.write_unraisable(py, Some(callback));
    }
}

impl Done {
    fn end(&self, end: Result<(), CallbackEnd>) {
        let runner = self.runner.lock().take();
        if let Some(runner) = runner {
            runner.end(end);
        }
    }
}

impl Drop for Done {
    fn drop(&mut self) {
        self.cancelled();
    }
}

/// Calls it with the result of `arguments`, and waits for its end; forever, once the interpreter has ended. The end by an
/// exception becomes a panic, which the client tells of.
pub(crate) fn call<'a>(
    name: &'static str,
    callback: &'a Py<PyAny>,
    arguments: impl for<'py> FnOnce(Python<'py>) -> PyResult<Bound<'py, PyTuple>> + 'a,
) {
    if let Err(end) = begin(name, callback, arguments).wait() {
        // Without the message of a panic: the exception is shown.
        std::panic::resume_unwind(Box::new(end));
    }
}

/// The exception for the end of what callbacks belong to: that of a callback itself, where one has failed.
pub(crate) fn ended(py: Python<'_>, callbacks: &Py<PyAny>, error: &Error) -> PyErr {
    failure(py, callbacks, error).unwrap_or_else(|| raised(py, error))
}

/// The error of what callbacks belong to, caused by the exception of a callback where one has failed.
pub(crate) fn last_error(py: Python<'_>, callbacks: &Py<PyAny>, error: &Error) -> PyErr {
    let told = raised(py, error);
    told.set_cause(py, failure(py, callbacks, error));
    told
}

fn failure(py: Python<'_>, callbacks: &Py<PyAny>, error: &Error) -> Option<PyErr> {
    if error.kind() != ErrorKind::Callback {
        return None;
    }
    let resource = error.resource().unwrap_or_default();
    let failure = callbacks.bind(py).call_method1("failure", (resource,)).ok().filter(|failure| !failure.is_none())?;
    Some(PyErr::from_value(failure))
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

/// Calls it with the result of `arguments`; the answer is ready when it has ended.
pub(crate) fn begin<'a>(
    name: &'static str,
    callback: &'a Py<PyAny>,
    arguments: impl for<'py> FnOnce(Python<'py>) -> PyResult<Bound<'py, PyTuple>> + 'a,
) -> CallbackEnded {
    let (runner, ended) = CallbackRunner::new();
    // Without an interpreter that could call it, the callback ends here.
    outside::call(|py| {
        let done = match Bound::new(py, Done { name, runner: Mutex::new(Some(runner)) }) {
            Ok(done) => done,
            Err(error) => return error.write_unraisable(py, Some(callback.bind(py))),
        };
        let start = || {
            let callbacks = py.import("leasehold._callbacks")?;
            let run = callbacks.getattr("Call")?.call1((callback,))?;
            if ffi::is_moved_here() {
                // The time of the test stands still meanwhile, and the callback may do what the test may do.
                return run.call_method1("here", (arguments(py)?, &done));
            }
            callbacks.getattr("start_new_thread")?.call1((run, (arguments(py)?, &done)))
        };
        if let Err(error) = start() {
            done.get().raised(&error.to_string());
            show(py, error, callback.bind(py));
        }
    });
    ended
}
