//! Values between Python and Rust, and how long Rust ones live.

use std::mem::ManuallyDrop;
use std::ops::Deref;
use std::time::Duration;

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyInt;

use crate::errors;

/// A length of time as Python gives it: seconds as a number, or a `timedelta`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seconds(Length);

#[derive(Clone, Copy, Debug)]
enum Length {
    Finite(Duration),
    Endless,
}

impl Seconds {
    /// # Errors
    /// `ConfigError` for a length without an end, where one is needed.
    pub(crate) fn finite(self, py: Python<'_>, name: &str) -> PyResult<Duration> {
        match self.0 {
            Length::Finite(length) => Ok(length),
            Length::Endless => Err(errors::config(py, &format!("{name} cannot be infinite"))),
        }
    }

    /// `None` for ever.
    pub(crate) fn if_finite(self) -> Option<Duration> {
        match self.0 {
            Length::Finite(length) => Some(length),
            Length::Endless => None,
        }
    }
}

impl FromPyObject<'_, '_> for Seconds {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, '_, PyAny>) -> PyResult<Self> {
        let refuse = || {
            errors::config(value.py(), &format!("{:?} is no length of time: give seconds, from 0 on", value.as_any()))
        };
        // Numbers first: asking whether a value is a timedelta imports its module.
        if let Ok(seconds) = value.extract::<f64>() {
            if seconds == f64::INFINITY {
                return Ok(Self(Length::Endless));
            }
            return Duration::try_from_secs_f64(seconds)
                .map(|length| Self(Length::Finite(length)))
                .map_err(|_| refuse());
        }
        // A number all the same, and more than any float.
        if value.is_instance_of::<PyInt>() {
            return Err(refuse());
        }
        match value.cast::<pyo3::types::PyDelta>() {
            Ok(delta) => delta.extract().map(|length| Self(Length::Finite(length))).map_err(|_| refuse()),
            Err(_) => Err(PyTypeError::new_err(format!(
                "a length of time is a number of seconds or a timedelta, not {}",
                value.get_type().name()?
            ))),
        }
    }
}

/// A whole number from 0 on: a token above all, whose upper end is for the guards to say.
pub(crate) struct Natural(pub(crate) u64);

impl FromPyObject<'_, '_> for Natural {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, '_, PyAny>) -> PyResult<Self> {
        value.extract().map(Self).map_err(|error| {
            if !value.is_instance_of::<PyInt>() {
                return error;
            }
            let range = "tokens, numbers of writes and of items are whole numbers from 0 to 9007199254740991";
            errors::config(value.py(), &format!("{:?} is out of range: {range}", value.as_any()))
        })
    }
}

/// What may take its time to be dropped, or wake threads that want the interpreter: dropped with it detached.
pub(crate) struct Kept<T: Send>(ManuallyDrop<T>);

impl<T: Send> Kept<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(ManuallyDrop::new(value))
    }
}

impl<T: Send> Deref for Kept<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T: Send> Drop for Kept<T> {
    fn drop(&mut self) {
        // SAFETY: the field is not used again; `drop` runs once.
        let value = unsafe { ManuallyDrop::take(&mut self.0) };
        // Where there is no interpreter to detach from any more, the value is dropped all the same.
        let _ = Python::try_attach(|py| py.detach(|| drop(value)));
    }
}
