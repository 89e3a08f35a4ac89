//! Guards for the protected resource.

use std::collections::HashMap;

use leasehold::ffi::Mutex;
use leasehold::{fence, ffi};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::convert::Natural;
use crate::errors::raised;
use crate::fence_sql::Mark;

/// The marks of many items in one process, for any number of threads. `most` limits the number of items.
#[pyclass(frozen, subclass, module = "leasehold.fence")]
pub(crate) struct Guards(fence::Guards);

#[pymethods]
impl Guards {
    #[new]
    fn new(most: Natural) -> Self {
        Self(fence::Guards::new(usize::try_from(most.0).unwrap_or(usize::MAX)))
    }

    /// Makes `token` the only one that is accepted from now on, apart from higher ones: with each new lease, before the
    /// first read. Raises StaleTokenError when a later holder has claimed the item.
    fn claim(&self, py: Python<'_>, item: &str, token: Natural) -> PyResult<()> {
        py.detach(|| self.0.claim(item, token.0)).map_err(|error| raised(py, &error.into()))
    }

    /// Lets a write through while the returned object is entered. The write itself runs in Python only: the end of the
    /// interpreter could not unwind a thread whose write was called by a frame of Rust.
    #[pyo3(signature = (item, token, *, number = None))]
    fn _enter(&self, py: Python<'_>, item: &str, token: Natural, number: Option<Natural>) -> PyResult<Writing> {
        let entered = py.detach(|| ffi::enter(&self.0, item, token.0, number.map(|number| number.0)));
        entered.map(|writing| Writing(Mutex::new(Some(writing)))).map_err(|error| raised(py, &error))
    }

    /// Checks if a write with `token` would be let through now, and raises if not; for callers that no other thread can
    /// overtake. `number` starts at 1, grows with each write, and refuses delayed writes of the same lease as well.
    #[pyo3(signature = (item, token, *, number = None))]
    fn check(&self, py: Python<'_>, item: &str, token: Natural, number: Option<Natural>) -> PyResult<()> {
        let checked = py.detach(|| match number {
            None => self.0.check(item, token.0),
            Some(number) => self.0.check_in_order(item, token.0, number.0),
        });
        checked.map_err(|error| raised(py, &error.into()))
    }

    /// The highest token that has claimed the item; None where none has.
    fn high_water(&self, py: Python<'_>, item: &str) -> Option<u64> {
        py.detach(|| self.0.high_water(item))
    }

    /// Drops the mark of an item that nobody will write again. A late write is still refused; a late claim is not.
    fn forget(&self, py: Python<'_>, item: &str) {
        py.detach(|| self.0.forget(item));
    }
}

/// A write that was let through. It ends when this is exited, or dropped.
#[pyclass(frozen, module = "leasehold._native")]
pub(crate) struct Writing(Mutex<Option<ffi::Writing>>);

#[pymethods]
impl Writing {
    fn __enter__(&self) {}

    #[pyo3(signature = (kind, error, traceback, /))]
    fn __exit__(&self, kind: Bound<'_, PyAny>, error: Bound<'_, PyAny>, traceback: Bound<'_, PyAny>) {
        drop((kind, error, traceback));
        self.0.lock().take();
    }
}

/// Pieces of DynamoDB expressions that keep the mark in an attribute of the item.
#[pyclass(frozen, module = "leasehold.fence")]
pub(crate) struct DynamodbGuard(fence::DynamodbGuard);

#[pymethods]
impl DynamodbGuard {
    #[new]
    fn new(py: Python<'_>, attribute: &str) -> PyResult<Self> {
        fence::DynamodbGuard::new(attribute).map(Self).map_err(|error| raised(py, &error.into()))
    }

    /// The condition of the claim, the first write of a new lease.
    #[classattr]
    const CLAIM_CONDITION: &'static str = fence::DynamodbGuard::claim_condition();

    /// The condition of every other write.
    #[classattr]
    const CHECK_CONDITION: &'static str = fence::DynamodbGuard::check_condition();

    /// The assignment in every write, beside its own values.
    #[classattr]
    const SET: &'static str = fence::DynamodbGuard::set();

    /// For ExpressionAttributeNames.
    fn names(&self) -> HashMap<&'static str, &str> {
        self.0.names().into_iter().collect()
    }

    /// For ExpressionAttributeValues: numbers as decimal text. Raises ConfigError for an invalid token.
    #[staticmethod]
    fn values(py: Python<'_>, token: Natural) -> PyResult<HashMap<&'static str, String>> {
        let values = fence::DynamodbGuard::values(token.0).map_err(|error| raised(py, &error.into()))?;
        Ok(values.into_iter().collect())
    }
}

/// Pieces of patches of Cosmos DB that keep the mark in a property of the item.
#[pyclass(frozen, module = "leasehold.fence")]
pub(crate) struct CosmosGuard(fence::CosmosGuard);

#[pymethods]
impl CosmosGuard {
    #[new]
    fn new(py: Python<'_>, property: &str) -> PyResult<Self> {
        fence::CosmosGuard::new(property).map(Self).map_err(|error| raised(py, &error.into()))
    }

    /// The condition of the claim, the first write of a new lease. Raises ConfigError for an invalid token.
    fn claim_condition(&self, py: Python<'_>, token: Natural) -> PyResult<String> {
        self.0.claim_condition(token.0).map_err(|error| raised(py, &error.into()))
    }

    /// The condition of every other write. Raises ConfigError for an invalid token.
    fn check_condition(&self, py: Python<'_>, token: Natural) -> PyResult<String> {
        self.0.check_condition(token.0).map_err(|error| raised(py, &error.into()))
    }

    /// The operation of every write that raises the mark, beside its own. Raises ConfigError for an invalid token.
    fn set<'py>(&self, py: Python<'py>, token: Natural) -> PyResult<Bound<'py, PyAny>> {
        let operation = self.0.set(token.0).map_err(|error| raised(py, &error.into()))?;
        py.import("json")?.call_method1("loads", (operation,))
    }
}

/// The body of a claim of an object.
#[pyfunction]
pub(crate) fn object_claim<'py>(
    py: Python<'py>,
    item: &str,
    token: Natural,
    seen: Option<&[u8]>,
) -> PyResult<Bound<'py, PyBytes>> {
    let body = fence::ObjectGuard::claim(item, token.0, seen);
    body.map(|body| PyBytes::new(py, &body)).map_err(|error| raised(py, &error.into()))
}

/// The body of a write of an object.
#[pyfunction]
pub(crate) fn object_write<'py>(
    py: Python<'py>,
    item: &str,
    token: Natural,
    seen: Option<&[u8]>,
    data: &[u8],
) -> PyResult<Bound<'py, PyBytes>> {
    let body = fence::ObjectGuard::write(item, token.0, seen, data);
    body.map(|body| PyBytes::new(py, &body)).map_err(|error| raised(py, &error.into()))
}

/// The data of an object; None for one that no guard has written.
#[pyfunction]
pub(crate) fn object_data<'py>(py: Python<'py>, body: &[u8]) -> Option<Bound<'py, PyBytes>> {
    fence::ObjectGuard::data(body).map(|data| PyBytes::new(py, data))
}

/// The check as a Lua function `leasehold_check(mark_key, token)`, to put in front of a script of your own.
#[pyfunction]
pub(crate) const fn redis_check() -> &'static str {
    fence::RedisGuard::CHECK
}

/// KEYS: mark. ARGV: token.
#[pyfunction]
pub(crate) const fn redis_claim_script() -> &'static str {
    fence::RedisGuard::claim_script()
}

/// KEYS: mark. ARGV: token.
#[pyfunction]
pub(crate) const fn redis_check_script() -> &'static str {
    fence::RedisGuard::check_script()
}

/// KEYS: mark, key. ARGV: token, value.
#[pyfunction]
pub(crate) const fn redis_check_and_set_script() -> &'static str {
    fence::RedisGuard::check_and_set_script()
}

/// The key of the mark that guards `key`, in the same hash slot.
#[pyfunction]
pub(crate) fn redis_mark_key(py: Python<'_>, key: &str) -> PyResult<String> {
    fence::RedisGuard::mark_key(key).map_err(|error| raised(py, &error.into()))
}

/// Judges the answer of a script.
#[pyfunction]
pub(crate) fn redis_outcome(py: Python<'_>, item: &str, token: Natural, reply: Mark) -> PyResult<()> {
    fence::RedisGuard::outcome(item, token.0, reply.0).map_err(|error| raised(py, &error.into()))
}
