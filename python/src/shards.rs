//! Shards that are shared with other workers.

use std::sync::Arc;
use std::time::Duration;

use leasehold::ffi::{self, Held};
use leasehold::{Error, ShardsRequest};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

use crate::callback;
use crate::errors::raised;
use crate::lease::{Lease, shown};
use crate::reactor::Operation;
use crate::tie::Running;

/// A shard that this worker holds: a lease with a number. Its fencing token grows with every grant of the same shard.
#[pyclass(frozen, extends = Lease, module = "leasehold")]
pub(crate) struct Shard {
    index: usize,
}

#[pymethods]
impl Shard {
    /// The number of the shard, from 0.
    #[getter]
    fn index(&self) -> usize {
        self.index
    }

    fn __repr__(slf: PyRef<'_, Self>) -> String {
        let index = slf.index;
        shown(slf.as_super().held()).replacen("<Lease", &format!("<Shard {index} of"), 1)
    }
}

fn object(py: Python<'_>, shard: Arc<leasehold::Shard>) -> PyResult<Bound<'_, Shard>> {
    let index = shard.index();
    let lease = Lease::of_held(Held::Shard(shard));
    Bound::new(py, PyClassInitializer::from(lease).add_subclass(Shard { index }))
}

/// A worker's part in the shards of a name, until it is stopped or dropped, or the client is closed.
#[pyclass(frozen, module = "leasehold", weakref)]
pub(crate) struct Shards {
    name: String,
    running: Running<leasehold::Shards>,
}

/// The settings of a worker.
pub(crate) struct Settings {
    pub(crate) count: Option<usize>,
    pub(crate) ttl: Option<Duration>,
    pub(crate) owner: Option<String>,
    pub(crate) look_every: Option<Duration>,
}

pub(crate) fn start(
    py: Python<'_>,
    mut request: ShardsRequest,
    name: &str,
    settings: Settings,
    callbacks: [Option<Py<PyAny>>; 2],
) -> PyResult<Shards> {
    if let Some(count) = settings.count {
        request = request.count(count);
    }
    if let Some(ttl) = settings.ttl {
        request = request.ttl(ttl);
    }
    if let Some(owner) = settings.owner {
        request = request.owner(owner);
    }
    if let Some(every) = settings.look_every {
        request = request.look_every(every);
    }
    let (callbacks, [on_gain, on_loss]) = callback::own(py, callbacks)?;
    if let Some(callback) = on_gain {
        request = ffi::on_gain(request, move |shard| {
            callback::begin("on_gain", &callback, |py| (object(py, Arc::clone(shard))?,).into_pyobject(py))
        });
    }
    if let Some(callback) = on_loss {
        request = ffi::on_loss(request, move |shard, loss: Option<&Error>| {
            let loss = loss.cloned();
            callback::begin("on_loss", &callback, |py| {
                let loss = loss.map(|error| raised(py, &error));
                (object(py, Arc::clone(shard))?, loss).into_pyobject(py)
            })
        });
    }
    let shards = py.detach(|| request.start()).map_err(|error| raised(py, &error))?;
    Ok(Shards { name: name.to_owned(), running: Running::new(shards, callbacks) })
}

impl Shards {
    pub(crate) const fn running(&self) -> &Running<leasehold::Shards> {
        &self.running
    }
}

#[pymethods]
impl Shards {
    /// The name that the workers share.
    #[getter]
    fn name(&self) -> &str {
        &self.name
    }

    /// The shards that are held now and not to be let go, in the order of their numbers.
    #[getter]
    fn held<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, Shard>>> {
        let held = py.detach(|| self.running.native().held());
        held.into_iter().map(|shard| object(py, shard)).collect()
    }

    /// The number of workers at the last look, this one among them; 0 before it has joined, and while it stands by.
    #[getter]
    fn members(&self) -> usize {
        self.running.native().members()
    }

    /// The error of the last try to join, look or acquire, if it failed: the store is down or refuses, or other workers name
    /// another number of shards; or a callback has raised. That is a CallbackError, caused by the exception.
    #[getter]
    fn last_error(&self, py: Python<'_>) -> Option<PyErr> {
        self.running.native().last_error().map(|error| callback::last_error(py, &self.running.callbacks, &error))
    }

    /// Leaves: `on_loss` is called for all shards at the same time, and each is released when its call has returned. Returns
    /// when that is done; at once in a callback of its own. A signal whose handler raises ends the wait, not the stop. If a
    /// callback raised and this worker has not got that shard since, its exception is raised here.
    fn stop(&self, py: Python<'_>) -> PyResult<()> {
        self.running.end(py, false)
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    #[pyo3(signature = (kind, error, traceback, /))]
    fn __exit__(
        &self,
        py: Python<'_>,
        kind: Option<Bound<'_, PyAny>>,
        error: Option<Bound<'_, PyAny>>,
        traceback: Option<Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        drop((error, traceback));
        // The exception of the body is the one to see.
        self.running.end(py, kind.is_some())
    }

    fn _begin_end(&self, py: Python<'_>, has_raised: bool) -> PyResult<Operation> {
        self.running.begin_end(py, has_raised)
    }

    fn __reduce__(&self) -> PyResult<()> {
        Err(PyTypeError::new_err("shards are worked on by threads of this process: start a worker where it is needed"))
    }

    fn __repr__(&self) -> String {
        let (name, native) = (&self.name, self.running.native());
        if native.is_over() {
            return format!("<Shards {name:?} over>");
        }
        let held: Vec<String> = native.held().iter().map(|shard| shard.index().to_string()).collect();
        format!("<Shards {name:?} held={} members={}>", held.join(","), native.members())
    }
}
