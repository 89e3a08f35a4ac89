//! Signals of Python while a call waits, and its end.

use std::sync::atomic::{AtomicBool, Ordering};

use pyo3::prelude::*;

static ENDING: AtomicBool = AtomicBool::new(false);

/// The interpreter ends, and all clients are about to be closed.
pub(crate) fn end() {
    ENDING.store(true, Ordering::Relaxed);
}

pub(crate) fn is_ending() -> bool {
    ENDING.load(Ordering::Relaxed)
}

/// Lets Python's signal handlers run while a call waits with the interpreter detached, and keeps what they raise:
/// `KeyboardInterrupt` above all.
#[derive(Default)]
pub(crate) struct Signals {
    handled_here: Option<bool>,
    raised: Option<PyErr>,
}

impl Signals {
    /// Whether a handler has raised something. Handlers run on the main thread alone; others do not bother the interpreter.
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
            // It runs code of Python's, so that a handler may run, and raise, in the middle of it.
            None => *self.handled_here.insert(is_main_thread(py)?),
        };
        if here { py.check_signals() } else { Ok(()) }
    }

    /// What a handler raised comes before what the call answers.
    ///
    /// # Errors
    /// What a handler raised.
    pub(crate) fn check(self) -> PyResult<()> {
        self.raised.map_or(Ok(()), Err)
    }
}

pub(crate) fn is_main_thread(py: Python<'_>) -> PyResult<bool> {
    let threading = py.import("threading")?;
    let main = threading.call_method0("main_thread")?.getattr("ident")?;
    threading.call_method0("get_ident")?.eq(main)
}
