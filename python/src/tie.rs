//! Elections and shards that run, and their ties to the event loop on which their callbacks run.

use std::sync::{Arc, Weak};

use leasehold::ffi::{self, Ends, Unawaited};
use pyo3::prelude::*;

use crate::callback;
use crate::convert::Kept;
use crate::election::Election;
use crate::pump::Pace;
use crate::reactor::{Operation, Outcome};
use crate::shards::Shards;
use crate::signals::Signals;

/// A candidacy, or a worker's part in shards, with its callbacks as `leasehold._within` wraps them.
pub(crate) struct Running<T: Ends + Send + Sync> {
    native: Kept<Arc<Unawaited<T>>>,
    pub(crate) callbacks: Py<PyAny>,
}

impl<T: Ends + Send + Sync + 'static> Running<T> {
    pub(crate) fn new(native: T, callbacks: Py<PyAny>) -> Self {
        Self { native: Kept::new(Arc::new(Unawaited::new(native))), callbacks }
    }

    pub(crate) fn native(&self) -> &Unawaited<T> {
        &self.native
    }

    /// A callback must not wait for the end that waits for it.
    fn is_called_back(&self, py: Python<'_>) -> PyResult<bool> {
        self.callbacks.bind(py).call_method0("is_within")?.extract()
    }

    /// Ends it. If it did not end by an exception, that of a callback is raised.
    pub(crate) fn end(&self, py: Python<'_>, has_raised: bool) -> PyResult<()> {
        if self.is_called_back(py)? {
            py.detach(|| ffi::begin_to_end(&***self.native));
            return Ok(());
        }
        let mut signals = Signals::default();
        let ended = py.detach(|| self.native.end(|| signals.interrupt()));
        signals.check()?;
        match ended {
            Err(error) if !has_raised => Err(callback::ended(py, &self.callbacks, &error)),
            Ok(()) | Err(_) => Ok(()),
        }
    }

    /// The same, for an event loop.
    pub(crate) fn begin_end(&self, py: Python<'_>, has_raised: bool) -> PyResult<Operation> {
        let (is_called_back, callbacks) = (self.is_called_back(py)?, self.callbacks.clone_ref(py));
        let native = Arc::clone(&self.native);
        let ended = py.detach(|| native.ended());
        let operation = Operation::new(async move {
            if is_called_back {
                return Ok(Outcome::Nothing);
            }
            match ended.await {
                Err(error) if !has_raised => Ok(Outcome::Failed(error, callbacks)),
                Ok(()) | Err(_) => Ok(Outcome::Nothing),
            }
        });
        Ok(operation.paced(Pace::AfterCallbacks))
    }

    pub(crate) fn tie(&self) -> Tie {
        let native: Weak<Unawaited<T>> = Arc::downgrade(&self.native);
        Tie(native)
    }
}

pub(crate) trait EndsWithLoop: Send + Sync {
    /// Begins to end it, and waits for nothing.
    fn end(&self);
}

impl<T: Ends + Send + Sync> EndsWithLoop for Unawaited<T> {
    fn end(&self) {
        ffi::begin_to_end(&**self);
    }
}

/// Ends something when it is dropped, unless it has ended.
pub(crate) struct Tie(Weak<dyn EndsWithLoop>);

impl Tie {
    pub(crate) fn is_idle(&self) -> bool {
        self.0.strong_count() == 0
    }
}

impl Drop for Tie {
    fn drop(&mut self) {
        if let Some(tied) = self.0.upgrade() {
            tied.end();
        }
    }
}

/// An object that can be tied to a loop.
#[derive(FromPyObject)]
pub(crate) enum Tied<'py> {
    Election(PyRef<'py, Election>),
    Shards(PyRef<'py, Shards>),
}

impl Tied<'_> {
    pub(crate) fn tie(&self) -> Tie {
        match self {
            Self::Election(election) => election.running().tie(),
            Self::Shards(shards) => shards.running().tie(),
        }
    }
}
