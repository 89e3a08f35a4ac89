//! Python's signals while a call waits, and the end of the interpreter.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering};

use pyo3::prelude::*;

thread_local! {
    /// A callback that this thread has called was interrupted.
    static INTERRUPTED: Cell<bool> = const { Cell::new(false) };
}

static ENDING: AtomicBool = AtomicBool::new(false);

/// Notes that the interpreter ends, and that all clients are about to be closed.
pub(crate) fn end() {
    ENDING.store(true, Ordering::Relaxed);
}

pub(crate) fn is_ending() -> bool {
    ENDING.load(Ordering::Relaxed)
}

/// Runs Python's signal handlers while a call waits with the interpreter detached, and keeps the exception that one
/// raises, above all `KeyboardInterrupt`.
#[derive(Default)]
pub(crate) struct Signals {
    handled_here: Option<bool>,
    raised: Option<PyErr>,
}

impl Signals {
    /// Tells if a handler has raised an exception. Handlers run only on the main thread; other threads do not disturb
    /// the interpreter.
    pub(crate) fn interrupt(&mut self) -> bool {
        if self.handled_here == Some(false) {
            return false;
        }
        // An interpreter that ends has no handlers to run.
        let raised = Python::try_attach(|py| self.handle(py).err());
        self.raised = raised.flatten();
        self.raised.is_some()
    }

    fn handle(&mut self, py: Python<'_>) -> PyResult<()> {
        let here = match self.handled_here {
            Some(here) => here,
            // This runs Python code, during which a handler may run and raise.
            None => *self.handled_here.insert(is_main_thread(py)?),
        };
        if here { py.check_signals() } else { Ok(()) }
    }

    /// The exception of a handler has precedence over the result of the call.
    ///
    /// # Errors
    /// The exception of a handler.
    pub(crate) fn check(self) -> PyResult<()> {
        match self.raised {
            None if INTERRUPTED.take() => Python::attach(|py| py.check_signals()),
            raised => raised.map_or(Ok(()), Err),
        }
    }
}

/// Interrupts what this thread waits for, since a callback was interrupted that it has called. Tells if that can be done.
pub(crate) fn interrupt_here(py: Python<'_>) -> bool {
    let interrupt = || py.import("_thread")?.call_method0("interrupt_main");
    let is_done = is_main_thread(py).unwrap_or(false) && interrupt().is_ok();
    INTERRUPTED.set(is_done);
    is_done
}

pub(crate) fn is_main_thread(py: Python<'_>) -> PyResult<bool> {
    let threading = py.import("threading")?;
    let main = threading.call_method0("main_thread")?.getattr("ident")?;
    threading.call_method0("get_ident")?.eq(main)
}
