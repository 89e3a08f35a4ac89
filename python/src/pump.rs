//! Turns of an event loop that move test clocks, while operations wait for one.
//!
//! The loop is asked for turn after turn. Once it has been idle for some, so that other tasks had their turns too, the clock takes a step.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyWeakrefMethods, PyWeakrefReference};

use crate::reactor::Reactor;

/// Turns in which tasks that are ready may run, before a wait moves the clock.
const IDLE_TURNS: u32 = 20;

/// The time of a test clock while an operation waits.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pace {
    Passes,
    /// Not while callbacks run on the loop: it waits for their end.
    AfterCallbacks,
    /// It waits for what need not happen.
    Rests,
}

/// The turns of one loop.
pub(crate) struct Pump {
    event_loop: Py<PyWeakrefReference>,
    /// The loop is going to take a turn.
    is_called: AtomicBool,
    idle: AtomicU32,
    /// Callbacks of clients of test clocks that run on the loop.
    callbacks: AtomicUsize,
}

impl Pump {
    pub(crate) fn new(event_loop: &Bound<'_, PyAny>) -> PyResult<Self> {
        Ok(Self {
            event_loop: PyWeakrefReference::new(event_loop)?.unbind(),
            is_called: AtomicBool::new(false),
            idle: AtomicU32::new(0),
            callbacks: AtomicUsize::new(0),
        })
    }

    /// Tells if time is to pass for such an operation.
    pub(crate) fn passes_for(&self, pace: Pace) -> bool {
        match pace {
            Pace::Passes => true,
            Pace::AfterCallbacks => self.callbacks.load(Ordering::Relaxed) == 0,
            Pace::Rests => false,
        }
    }

    /// The loop was not idle.
    pub(crate) fn begin_again(&self) {
        self.idle.store(0, Ordering::Relaxed);
    }

    /// A turn has come. Tells if the clock is to take a step.
    pub(crate) fn is_idle(&self) -> bool {
        self.is_called.store(false, Ordering::Relaxed);
        let is_idle = self.idle.fetch_add(1, Ordering::Relaxed) >= IDLE_TURNS;
        if is_idle {
            self.begin_again();
        }
        is_idle
    }

    /// Has the loop take a turn soon.
    pub(crate) fn call(&self, reactor: &Bound<'_, Reactor>) -> PyResult<()> {
        let py = reactor.py();
        let Some(event_loop) = self.event_loop.bind(py).upgrade() else { return Ok(()) };
        if !self.is_called.swap(true, Ordering::Relaxed) {
            let turn = reactor.getattr(intern!(py, "take_turn"))?;
            event_loop.call_method1(intern!(py, "call_soon"), (turn,))?;
        }
        Ok(())
    }

    pub(crate) fn callback_begins(&self) {
        self.callbacks.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn callback_has_ended(&self) {
        self.callbacks.fetch_sub(1, Ordering::Relaxed);
        self.begin_again();
    }
}
