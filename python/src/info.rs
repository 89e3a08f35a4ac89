//! The holder of a lock.

use leasehold::HolderMatch;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::convert::Natural;

/// The outcome of a conditional release. True if the lock was released.
#[pyclass(frozen, module = "leasehold")]
pub(crate) struct ReleaseIfOutcome {
    released: bool,
    holder: Option<Py<LockInfo>>,
}

impl ReleaseIfOutcome {
    pub(crate) fn new(py: Python<'_>, outcome: leasehold::ReleaseIfOutcome) -> PyResult<Self> {
        let (released, holder) = match outcome {
            leasehold::ReleaseIfOutcome::Released(holder) => (true, Some(holder)),
            leasehold::ReleaseIfOutcome::NotMatched(holder) => (false, Some(holder)),
            leasehold::ReleaseIfOutcome::Free | _ => (false, None),
        };
        let holder = holder.map(|holder| Py::new(py, LockInfo::new(holder))).transpose()?;
        Ok(Self { released, holder })
    }
}

#[pymethods]
impl ReleaseIfOutcome {
    /// True if the lock was released for the holder that was named.
    #[getter]
    fn released(&self) -> bool {
        self.released
    }

    /// The holder whose lock was released, or else the present one, which is another than the named one. None if the
    /// lock was free.
    #[getter]
    fn holder(&self, py: Python<'_>) -> Option<Py<LockInfo>> {
        self.holder.as_ref().map(|holder| holder.clone_ref(py))
    }

    fn __bool__(&self) -> bool {
        self.released
    }

    fn __repr__(&self) -> String {
        let holder = self.holder.as_ref().map_or_else(|| "None".to_owned(), |holder| holder.get().__repr__());
        format!("<ReleaseIfOutcome released={} holder={holder}>", if self.released { "True" } else { "False" })
    }
}

/// The outcome of a revoke. True if the lease is revoked.
#[pyclass(frozen, module = "leasehold")]
pub(crate) struct RevokeOutcome {
    revoked: bool,
    holder: Option<Py<LockInfo>>,
}

impl RevokeOutcome {
    pub(crate) fn new(py: Python<'_>, outcome: leasehold::RevokeOutcome) -> PyResult<Self> {
        let (revoked, holder) = match outcome {
            leasehold::RevokeOutcome::Revoked(holder) => (true, Some(holder)),
            leasehold::RevokeOutcome::NotMatched(holder) => (false, Some(holder)),
            leasehold::RevokeOutcome::Free | _ => (false, None),
        };
        let holder = holder.map(|holder| Py::new(py, LockInfo::new(holder))).transpose()?;
        Ok(Self { revoked, holder })
    }
}

#[pymethods]
impl RevokeOutcome {
    /// True if the lease of the holder that was named is revoked.
    #[getter]
    fn revoked(&self) -> bool {
        self.revoked
    }

    /// The holder whose lease is revoked, or else the present one, which is another than the named one. None if the lock
    /// was free.
    #[getter]
    fn holder(&self, py: Python<'_>) -> Option<Py<LockInfo>> {
        self.holder.as_ref().map(|holder| holder.clone_ref(py))
    }

    fn __bool__(&self) -> bool {
        self.revoked
    }

    fn __repr__(&self) -> String {
        let holder = self.holder.as_ref().map_or_else(|| "None".to_owned(), |holder| holder.get().__repr__());
        format!("<RevokeOutcome revoked={} holder={holder}>", if self.revoked { "True" } else { "False" })
    }
}

/// A session and its locks. It is out of date when it arrives: use it for information, never for decisions.
#[pyclass(frozen, module = "leasehold")]
pub(crate) struct SessionInfo(leasehold::SessionInfo);

/// A session's objects.
pub(crate) fn sessions(sessions: Vec<leasehold::SessionInfo>) -> Vec<SessionInfo> {
    sessions.into_iter().map(SessionInfo).collect()
}

#[pymethods]
impl SessionInfo {
    /// Its name. Where a session is a record of its own, a second one of the same name is ``NAME/2``.
    #[getter]
    fn label(&self) -> &str {
        &self.0.label
    }

    /// When it began, in seconds since 1970 by the store's wall clock.
    #[getter]
    fn since(&self) -> Option<f64> {
        self.0.since_unix_ms.map(|ms| std::time::Duration::from_millis(ms).as_secs_f64())
    }

    /// True if it is revoked as a whole: its holder is told by its next renewal.
    #[getter]
    fn revoked(&self) -> bool {
        self.0.revoked
    }

    /// Its locks, by their names.
    #[getter]
    fn locks(&self) -> Vec<LockInfo> {
        self.0.locks.iter().cloned().map(LockInfo::new).collect()
    }

    fn __repr__(&self) -> String {
        let locks: Vec<&str> = self.0.locks.iter().map(|lock| lock.resource.as_str()).collect();
        format!("<SessionInfo {:?}: {locks:?}>", self.0.label)
    }
}

/// The holder with this token and label.
pub(crate) fn meant(token: Option<Natural>, owner: Option<String>) -> HolderMatch {
    let mut meant = HolderMatch::default();
    if let Some(token) = token {
        meant = meant.token(token.0);
    }
    if let Some(owner) = owner {
        meant = meant.owner(owner);
    }
    meant
}

/// The holder of a lock, as far as the store shows it. It is out of date when it arrives: use it for information, never
/// for decisions.
#[pyclass(frozen, module = "leasehold")]
pub(crate) struct LockInfo(leasehold::LockInfo);

impl LockInfo {
    pub(crate) fn new(info: leasehold::LockInfo) -> Self {
        Self(info)
    }

    pub(crate) fn native(&self) -> &leasehold::LockInfo {
        &self.0
    }
}

#[pymethods]
impl LockInfo {
    /// The locked resource.
    #[getter]
    fn resource(&self) -> &str {
        &self.0.resource
    }

    /// The holder's label; None for holders without one.
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

    /// The lifetime of the lease without renewal, in seconds.
    #[getter]
    fn ttl(&self) -> Option<f64> {
        self.0.ttl.map(|ttl| ttl.as_secs_f64())
    }

    /// Seconds until the store frees the lock unless it is renewed; None where only observation can tell.
    #[getter]
    fn left(&self) -> Option<f64> {
        self.0.left.map(|left| left.as_secs_f64())
    }

    /// Seconds for which this client has seen the record unchanged, for the holder of an error and of RunningElsewhere, where only
    /// observation can tell if it lives; None elsewhere.
    #[getter]
    fn unchanged(&self) -> Option<f64> {
        self.0.unchanged.map(|unchanged| unchanged.as_secs_f64())
    }

    /// The holder's payload.
    #[getter]
    fn data<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyBytes>> {
        self.0.data.as_ref().map(|data| PyBytes::new(py, data))
    }

    /// The name of the session that the lease belongs to; None if its client was given none.
    #[getter]
    fn session(&self) -> Option<&str> {
        self.0.session.as_deref()
    }

    /// True if another lock library wrote the record.
    #[getter]
    fn foreign(&self) -> bool {
        self.0.foreign
    }

    /// True if the lease is revoked: its holder cannot renew it any more.
    #[getter]
    fn revoked(&self) -> bool {
        self.0.revoked
    }

    /// The number of nodes that showed this record.
    #[getter]
    fn votes(&self) -> u16 {
        self.0.votes
    }

    /// The number of nodes that were asked: 1 for a single store, and for the holder of an error.
    #[getter]
    fn nodes(&self) -> u16 {
        self.0.nodes
    }

    fn __str__(&self) -> String {
        self.0.to_string()
    }

    fn __repr__(&self) -> String {
        format!("<LockInfo {:?}: {}>", self.0.resource, self.0)
    }
}
