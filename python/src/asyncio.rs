//! An asyncio event loop that watches sockets for a reactor.

use std::io;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use leasehold::ffi::{Interest, Mutex, Poller, RawFd};
use pyo3::exceptions::PyReferenceError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyString, PyWeakrefMethods, PyWeakrefReference};

use crate::outside;
use crate::reactor::Reactor;

/// The reactor that a loop calls, once it is known.
#[derive(Default)]
pub(crate) struct Callee(OnceLock<Py<PyWeakrefReference>>);

impl Callee {
    pub(crate) fn set(&self, reactor: &Bound<'_, Reactor>) -> PyResult<()> {
        if self.0.get().is_none() {
            let _ = self.0.set(PyWeakrefReference::new(reactor)?.unbind());
        }
        Ok(())
    }

    fn method<'py>(&self, py: Python<'py>, name: &Bound<'py, PyString>) -> PyResult<Bound<'py, PyAny>> {
        let reactor = self.0.get().and_then(|reactor| reactor.bind(py).upgrade());
        reactor.ok_or_else(|| PyReferenceError::new_err("the reactor is gone"))?.getattr(name)
    }
}

/// A loop, and the reactor that it calls. Both are referred to weakly: the loop owns the reactor.
pub(crate) struct Asyncio {
    event_loop: Py<PyWeakrefReference>,
    reactor: Arc<Callee>,
    /// The handle of the timer that is set. A handle refers to the reactor.
    timer: Mutex<Option<Py<PyWeakrefReference>>>,
}

impl Asyncio {
    pub(crate) fn new(event_loop: &Bound<'_, PyAny>, reactor: Arc<Callee>) -> PyResult<Self> {
        Ok(Self { event_loop: PyWeakrefReference::new(event_loop)?.unbind(), reactor, timer: Mutex::default() })
    }

    /// Makes the loop call [`Reactor::run`]. Any thread may call it, which may have to wait for the interpreter.
    ///
    /// # Errors
    /// The interpreter ends.
    pub(crate) fn call(&self) -> io::Result<()> {
        let called = outside::call(|py| {
            // A loop that is closed or gone has nothing to run.
            let _ = self
                .reactor
                .method(py, intern!(py, "run"))
                .and_then(|run| self.event_loop(py)?.call_method1(intern!(py, "call_soon_threadsafe"), (run,)));
        });
        called.ok_or_else(interpreter_ends)
    }

    /// The loop, while it is there.
    fn event_loop<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.event_loop.bind(py).upgrade().ok_or_else(|| PyReferenceError::new_err("the event loop is gone"))
    }

    fn add(&self, py: Python<'_>, socket: RawFd, interest: Interest) -> PyResult<()> {
        let (event_loop, on_ready) = (self.event_loop(py)?, self.reactor.method(py, intern!(py, "on_ready"))?);
        event_loop.call_method1(intern!(py, "add_reader"), (socket, &on_ready, socket))?;
        match interest {
            Interest::Read => event_loop.call_method1(intern!(py, "remove_writer"), (socket,))?,
            Interest::ReadWrite => event_loop.call_method1(intern!(py, "add_writer"), (socket, on_ready, socket))?,
        };
        Ok(())
    }

    fn remove(&self, py: Python<'_>, socket: RawFd) -> PyResult<()> {
        let event_loop = self.event_loop(py)?;
        event_loop.call_method1(intern!(py, "remove_reader"), (socket,))?;
        event_loop.call_method1(intern!(py, "remove_writer"), (socket,))?;
        Ok(())
    }

    fn set_timer(&self, py: Python<'_>, delay: Duration) -> PyResult<()> {
        let arguments = (delay.as_secs_f64(), self.reactor.method(py, intern!(py, "on_timer"))?);
        let timer = self.event_loop(py)?.call_method1(intern!(py, "call_later"), arguments)?;
        let before = self.timer.lock().replace(PyWeakrefReference::new(&timer)?.unbind());
        let before = before.and_then(|before| before.bind(py).upgrade());
        before.map_or(Ok(()), |before| before.call_method0(intern!(py, "cancel")).map(drop))
    }
}

impl Poller for Asyncio {
    fn watch(&self, socket: RawFd, interest: Interest) -> io::Result<()> {
        attached(|py| self.add(py, socket, interest))
    }

    fn unwatch(&self, socket: RawFd) {
        // A loop that is closed watches nothing any more.
        let _ = attached(|py| self.remove(py, socket));
    }

    fn call_soon(&self) {
        // On a loop that is closed there are no more turns.
        let _ = attached(|py| {
            let end_turn = self.reactor.method(py, intern!(py, "end_turn"))?;
            self.event_loop(py)?.call_method1(intern!(py, "call_soon"), (end_turn,)).map(drop)
        });
    }

    fn call_later(&self, delay: Duration) {
        // As above.
        let _ = attached(|py| self.set_timer(py, delay));
    }
}

fn attached(call: impl FnOnce(Python<'_>) -> PyResult<()>) -> io::Result<()> {
    let called = Python::try_attach(call).ok_or_else(interpreter_ends)?;
    called.map_err(|error| io::Error::other(error.to_string()))
}

fn interpreter_ends() -> io::Error {
    io::Error::other("the interpreter ends")
}
