//! The pages of a list, and the changes of a lock.

use leasehold::{Change, ffi};
use pyo3::prelude::*;

use crate::convert::Kept;
use crate::errors::raised;
use crate::info::LockInfo;
use crate::reactor::{Operation, Outcome};
use crate::run::info;
use crate::signals::Signals;

/// The held locks of a store, page by page.
#[pyclass(frozen, module = "leasehold._native")]
pub(crate) struct Pages(Kept<ffi::Pages<leasehold::LockInfo>>);

impl Pages {
    pub(crate) fn new(pages: ffi::Pages<leasehold::LockInfo>) -> Self {
        Self(Kept::new(pages))
    }
}

#[pymethods]
impl Pages {
    /// The locks of the next page; None after the last one.
    fn next(&self, py: Python<'_>) -> PyResult<Option<Vec<LockInfo>>> {
        let mut signals = Signals::default();
        let page = py.detach(|| self.0.next(|| signals.interrupt()));
        signals.check()?;
        page.map(shown).map_err(|error| raised(py, &error))
    }

    fn begin_next(&self) -> Operation {
        let next = self.0.next_async();
        Operation::new(async move { next.await.map(Outcome::Page) })
    }
}

/// The runs of a store, page by page.
#[pyclass(frozen, module = "leasehold._native")]
pub(crate) struct RunPages(Kept<ffi::Pages<leasehold::RunInfo>>);

impl RunPages {
    pub(crate) fn new(pages: ffi::Pages<leasehold::RunInfo>) -> Self {
        Self(Kept::new(pages))
    }
}

#[pymethods]
impl RunPages {
    /// The runs of the next page; None after the last one.
    fn next<'py>(&self, py: Python<'py>) -> PyResult<Option<Vec<Bound<'py, PyAny>>>> {
        let mut signals = Signals::default();
        let page = py.detach(|| self.0.next(|| signals.interrupt()));
        signals.check()?;
        runs(py, page.map_err(|error| raised(py, &error))?)
    }

    fn begin_next(&self) -> Operation {
        let next = self.0.next_async();
        Operation::new(async move { next.await.map(Outcome::Runs) })
    }
}

pub(crate) fn runs(py: Python<'_>, page: Option<Vec<leasehold::RunInfo>>) -> PyResult<Option<Vec<Bound<'_, PyAny>>>> {
    page.map(|runs| runs.into_iter().map(|run| info(py, run)).collect()).transpose()
}

pub(crate) fn shown(page: Option<Vec<leasehold::LockInfo>>) -> Option<Vec<LockInfo>> {
    page.map(|locks| locks.into_iter().map(LockInfo::new).collect())
}

/// The changes of a lock, without end.
#[pyclass(frozen, module = "leasehold._native")]
pub(crate) struct Changes(Kept<ffi::Changes>);

impl Changes {
    pub(crate) fn new(changes: ffi::Changes) -> Self {
        Self(Kept::new(changes))
    }
}

#[pymethods]
impl Changes {
    /// Waits for the next change.
    fn next<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let mut signals = Signals::default();
        let change = py.detach(|| self.0.next(|| signals.interrupt()));
        signals.check()?;
        changed(py, change.map_err(|error| raised(py, &error))?)
    }

    fn begin_next(&self) -> Operation {
        let next = self.0.next_async();
        Operation::new(async move { next.await.map(Outcome::Change) })
    }
}

pub(crate) fn changed(py: Python<'_>, change: Change) -> PyResult<Bound<'_, PyAny>> {
    let class = py.import("leasehold._watch")?.getattr("Change")?;
    match change {
        Change::Held(holder) => class.call1(("held", LockInfo::new(holder))),
        Change::Unreadable(error) => class.call1(("unreadable", py.None(), raised(py, &error))),
        Change::Free | _ => class.call1(("free",)),
    }
}
