//! Who holds a lock.

use pyo3::prelude::*;
use pyo3::types::PyBytes;

/// Who holds a lock, as far as the store shows it. The answer is old when it arrives: use it to look, never to decide.
#[pyclass(frozen, module = "leasehold")]
pub(crate) struct LockInfo(leasehold::LockInfo);

impl LockInfo {
    pub(crate) fn new(info: leasehold::LockInfo) -> Self {
        Self(info)
    }
}

#[pymethods]
impl LockInfo {
    /// What is locked.
    #[getter]
    fn resource(&self) -> &str {
        &self.0.resource
    }

    /// The holder's label; None for holders that leave none.
    #[getter]
    fn owner(&self) -> Option<&str> {
        self.0.owner.as_deref()
    }

    /// The holder's fencing token.
    #[getter]
    fn token(&self) -> Option<u64> {
        self.0.token
    }

    /// When the lease was granted, in seconds since 1970 by the store's wall clock.
    #[getter]
    fn since(&self) -> Option<f64> {
        self.0.since_unix_ms.map(|ms| std::time::Duration::from_millis(ms).as_secs_f64())
    }

    /// How long the lease lasts without renewal, in seconds.
    #[getter]
    fn ttl(&self) -> Option<f64> {
        self.0.ttl.map(|ttl| ttl.as_secs_f64())
    }

    /// Seconds until the store frees the lock unless it is renewed; None where only observation can tell.
    #[getter]
    fn left(&self) -> Option<f64> {
        self.0.left.map(|left| left.as_secs_f64())
    }

    /// The holder's payload.
    #[getter]
    fn data<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyBytes>> {
        self.0.data.as_ref().map(|data| PyBytes::new(py, data))
    }

    /// Whether another lock library wrote the record.
    #[getter]
    fn foreign(&self) -> bool {
        self.0.foreign
    }

    /// How many nodes showed this record, of those that were looked at.
    #[getter]
    fn votes(&self) -> u16 {
        self.0.votes
    }

    /// How many nodes were looked at: 1 for a single store, and for the holder that an error names.
    #[getter]
    fn of(&self) -> u16 {
        self.0.of
    }

    fn __str__(&self) -> String {
        self.0.to_string()
    }

    fn __repr__(&self) -> String {
        format!("<LockInfo {:?}: {}>", self.0.resource, self.0)
    }
}
