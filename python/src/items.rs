//! Items of compare-and-set.

use leasehold::DefaultStore;
use leasehold::cas::{self, Fate, Step};
use leasehold::ffi::ItemUpdate;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple};

use crate::convert::{Count, Kept};
use crate::errors::{raised, raised_as};
use crate::reactor::{Operation, Outcome};
use crate::signals::Signals;

/// The items of one store.
#[pyclass(frozen, module = "leasehold._native")]
pub(crate) struct Items(Kept<cas::Items>);

impl Items {
    pub(crate) fn new(items: cas::Items) -> Self {
        Self(Kept::new(items))
    }
}

#[pymethods]
impl Items {
    #[staticmethod]
    fn connect(py: Python<'_>, url: Option<&str>) -> PyResult<Self> {
        let items = py.detach(|| url.map_or_else(|| cas::Items::connect(DefaultStore), cas::Items::connect));
        items.map(Self::new).map_err(|error| raised(py, &error))
    }

    #[staticmethod]
    fn begin_connect(url: Option<String>) -> Operation {
        Operation::new(async move {
            let items = match url {
                Some(url) => cas::Items::connect_async(url).await,
                None => cas::Items::connect_async(DefaultStore).await,
            };
            items.map(Outcome::Items)
        })
    }

    /// Begins an update, which is tried so many times. Asks nothing yet.
    fn begin(&self, py: Python<'_>, name: &str, tries: Count) -> PyResult<Update> {
        let items = self.0.clone().tries(u32::try_from(tries.0).unwrap_or(u32::MAX));
        let begun = ItemUpdate::begin(&items, name);
        begun.map(|update| Update(Kept::new(update))).map_err(|error| failed(py, &error))
    }
}

/// One update of one item.
#[pyclass(frozen, module = "leasehold._native")]
pub(crate) struct Update(Kept<ItemUpdate>);

#[pymethods]
impl Update {
    /// Tells if the new value is in place, or is to be decided; and the item as its value and version, if there is one.
    fn step<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let mut signals = Signals::default();
        let step = py.detach(|| self.0.step(|| signals.interrupt()));
        signals.check()?;
        shown(py, step)
    }

    fn begin_step(&self) -> Operation {
        let step = self.0.step_async();
        Operation::new(async move { Ok(Outcome::ItemStep(step.await)) })
    }

    fn write(&self, py: Python<'_>, value: &[u8]) -> PyResult<()> {
        self.0.write(value.to_vec()).map_err(|error| failed(py, &error))
    }
}

/// # Errors
/// That of the step.
pub(crate) fn shown(py: Python<'_>, step: Result<Step, cas::Error>) -> PyResult<Bound<'_, PyAny>> {
    let (is_written, item) = match step.map_err(|error| failed(py, &error))? {
        Step::Decide(item) => (false, item),
        Step::Written(item) => (true, Some(item)),
    };
    let item = item.map(|item| (PyBytes::new(py, &item.value), item.version));
    (is_written, item).into_pyobject(py).map(Bound::<PyTuple>::into_any)
}

fn failed(py: Python<'_>, error: &cas::Error) -> PyErr {
    let raised = raised_as(py, error.name(), &error.to_string(), error.trouble());
    let fate = match error.fate() {
        Fate::NotWritten => "not_written",
        Fate::Unknown => "unknown",
    };
    let value = raised.value(py);
    let set = value.setattr("tries", error.tries()).and_then(|()| value.setattr("fate", fate));
    set.err().unwrap_or(raised)
}
