//! A held permit of a semaphore.

use leasehold::ffi::Held;
use pyo3::prelude::*;

use crate::lease::{Lease, shown};

/// A held permit of a semaphore: a lease with a number. Its fencing token grows with every grant of the same permit, and says
/// nothing about other permits.
#[pyclass(frozen, extends = Lease, module = "leasehold")]
pub(crate) struct Permit {
    index: usize,
}

#[pymethods]
impl Permit {
    /// The number of the permit, from 0: which of N equal things its holder may use.
    #[getter]
    fn index(&self) -> usize {
        self.index
    }

    fn __repr__(slf: PyRef<'_, Self>) -> String {
        let index = slf.index;
        shown(slf.as_super().held()).replacen("<Lease", &format!("<Permit {index} of"), 1)
    }
}

/// The lease as an object of its class.
pub(crate) fn object(py: Python<'_>, held: Held) -> PyResult<Bound<'_, PyAny>> {
    let index = held.index();
    let lease = Lease::of_held(held);
    match index {
        Some(index) => Ok(Bound::new(py, PyClassInitializer::from(lease).add_subclass(Permit { index }))?.into_any()),
        None => Ok(Bound::new(py, lease)?.into_any()),
    }
}
