//! Callbacks of the client, run by threads of Python's.
//!
//! An interpreter that ends stops every thread that comes back to it, by unwinding the thread's stack, and no frame of Rust
//! can be unwound so: the process would abort. Therefore a thread of the client never runs Python's code of unknown
//! length. It starts a daemon thread for it, and waits without the interpreter.

use std::sync::mpsc::{Sender, channel};
use std::sync::{Mutex, PoisonError};

use pyo3::prelude::*;

/// How a callback ended.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ended {
    Returned,
    /// The exception has been shown.
    Raised,
}

/// What the thread of Python's says at its end.
#[pyclass(frozen, module = "leasehold._native")]
pub(crate) struct Done {
    ended: Mutex<Option<Sender<Ended>>>,
    callback: Py<PyAny>,
}

impl Done {
    fn tell(&self, ended: Ended) {
        let sender = self.ended.lock().unwrap_or_else(PoisonError::into_inner).take();
        // Nobody waits any more in a process that ends.
        let _ = sender.map(|sender| sender.send(ended));
    }
}

#[pymethods]
impl Done {
    fn returned(&self) {
        self.tell(Ended::Returned);
    }

    fn raised(&self, py: Python<'_>, error: Bound<'_, PyAny>) {
        PyErr::from_value(error).write_unraisable(py, Some(self.callback.bind(py)));
        self.tell(Ended::Raised);
    }
}

/// # Errors
/// `TypeError` for what cannot be called, or would be awaited in vain.
pub(crate) fn check(py: Python<'_>, callback: &Py<PyAny>) -> PyResult<()> {
    py.import("leasehold._callbacks")?.getattr("check")?.call1((callback,)).map(drop)
}

/// Calls it with what `argument` makes, and waits for its end; for ever, once the interpreter has ended.
pub(crate) fn call<'a>(
    callback: &'a Py<PyAny>,
    argument: impl for<'py> FnOnce(Python<'py>) -> PyResult<Bound<'py, PyAny>> + 'a,
) -> Ended {
    let (sender, ended) = channel();
    let started = Python::try_attach(|py| {
        let start = || {
            let done = Done { ended: Mutex::new(Some(sender)), callback: callback.clone_ref(py) };
            let run = py.import("leasehold._callbacks")?.getattr("run")?;
            py.import("_thread")?.call_method1("start_new_thread", (run, (callback, argument(py)?, done)))
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
