//! Calls of Python by threads that it has not made.
//!
//! An interpreter that ends stops every thread that comes back to it, by unwinding the thread's stack. Frames of Rust cannot be
//! unwound so: the process would abort. Therefore the interpreter waits for such calls before it ends, and no new ones begin.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use leasehold::ffi::PerProcess;
use pyo3::prelude::*;

/// For calls that are under way when the interpreter ends. They only start threads and wake loops.
const PATIENCE: Duration = Duration::from_secs(2);

static CALLS: PerProcess<Calls> = PerProcess::new(Calls::default);

#[derive(Default)]
struct Calls {
    state: Mutex<State>,
    one_is_over: Condvar,
}

#[derive(Default)]
struct State {
    running: usize,
    is_ending: bool,
}

impl Calls {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A call that is under way, until it is dropped.
struct Call(&'static Calls);

impl Drop for Call {
    fn drop(&mut self) {
        self.0.state().running -= 1;
        self.0.one_is_over.notify_all();
    }
}

/// Calls Python, which must not take long. `None` if the interpreter ends.
pub(crate) fn call<R>(python: impl FnOnce(Python<'_>) -> R) -> Option<R> {
    let calls = CALLS.get();
    let mut state = calls.state();
    if state.is_ending {
        return None;
    }
    state.running += 1;
    drop(state);
    let _running = Call(calls);
    Python::try_attach(python)
}

/// Lets no more calls begin, and waits for those that are under way. The caller is detached from the interpreter.
pub(crate) fn end() {
    let calls = CALLS.get();
    let mut state = calls.state();
    state.is_ending = true;
    let _ = calls.one_is_over.wait_timeout_while(state, PATIENCE, |state| state.running > 0);
}
