//! Conversion of values between Python and Rust, and the lifetime of those of Rust.

use std::mem::ManuallyDrop;
use std::ops::Deref;
use std::time::Duration;

use leasehold::MAX_PERMITS;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyInt};

use crate::errors;

/// A length of time from Python: seconds as a number, or a `timedelta`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seconds {
    length: Length,
    /// A number without a unit.
    is_number: bool,
}

#[derive(Clone, Copy, Debug)]
enum Length {
    Finite(Duration),
    Endless,
}

impl Seconds {
    /// # Errors
    /// `ConfigError` for an infinite length, where it must be finite.
    pub(crate) fn finite(self, py: Python<'_>, name: &str) -> PyResult<Duration> {
        match self.length {
            Length::Finite(length) => Ok(length),
            Length::Endless => Err(errors::config(py, &format!("{name} cannot be infinite"))),
        }
    }

    /// `None` is forever.
    pub(crate) fn if_finite(self) -> Option<Duration> {
        match self.length {
            Length::Finite(length) => Some(length),
            Length::Endless => None,
        }
    }
}

impl FromPyObject<'_, '_> for Seconds {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, '_, PyAny>) -> PyResult<Self> {
        let refuse = || {
            errors::config(
                value.py(),
                &format!("{:?} is not a length of time: give seconds, from 0 on", value.as_any()),
            )
        };
        let number = |length| Self { length, is_number: true };
        if value.is_instance_of::<PyBool>() {
            return Err(PyTypeError::new_err(format!("{NO_LENGTH} bool")));
        }
        // Numbers first: the check for a timedelta imports its module.
        if let Ok(seconds) = value.extract::<f64>() {
            if seconds == f64::INFINITY {
                return Ok(number(Length::Endless));
            }
            return Duration::try_from_secs_f64(seconds)
                .map(|length| number(Length::Finite(length)))
                .map_err(|_| refuse());
        }
        // An integer that is larger than any float.
        if value.is_instance_of::<PyInt>() {
            return Err(refuse());
        }
        match value.cast::<pyo3::types::PyDelta>() {
            Ok(delta) => delta
                .extract()
                .map(|length| Self { length: Length::Finite(length), is_number: false })
                .map_err(|_| refuse()),
            Err(_) => Err(PyTypeError::new_err(format!("{NO_LENGTH} {}", value.get_type().name()?))),
        }
    }
}

/// A whole number from 0 on, above all a token; the guards check its upper limit.
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

/// A number of permits, readers or shards; the client checks its limits.
pub(crate) struct Count(pub(crate) usize);

impl FromPyObject<'_, '_> for Count {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, '_, PyAny>) -> PyResult<Self> {
        if value.is_instance_of::<PyBool>() {
            return Err(PyTypeError::new_err("a number of permits, readers or shards is an int, not bool"));
        }
        value.extract().map(Self).map_err(|error| {
            if !value.is_instance_of::<PyInt>() {
                return error;
            }
            let message =
                format!("{:?} is not a number of permits, readers or shards: write 1 to {MAX_PERMITS}", value.as_any());
            errors::config(value.py(), &message)
        })
    }
}

const NO_LENGTH: &str = "a length of time is a number of seconds or a timedelta, not";

/// Warns of numbers that were most likely meant as milliseconds: whole thousands of seconds.
///
/// # Errors
/// The warning is an error.
pub(crate) fn warn_of_milliseconds<const N: usize>(
    py: Python<'_>,
    lengths: [(&str, Option<Seconds>); N],
) -> PyResult<()> {
    const THOUSAND: Duration = Duration::from_secs(1000);
    for (name, seconds) in lengths {
        let Some(Seconds { length: Length::Finite(length), is_number: true }) = seconds else { continue };
        if length >= THOUSAND && length.as_nanos() % THOUSAND.as_nanos() == 0 {
            let (given, meant) = (length.as_secs(), length.as_secs() / 1000);
            let (hours, minutes) = (given / 3600, given % 3600 / 60);
            let message = format!(
                "{name}={given} is {hours} h {minutes} min, since lengths of time are seconds: for milliseconds write \
                 {name}={meant}, and if it is what you mean, timedelta(seconds={given})"
            );
            py.import("leasehold._options")?.call_method1("warn", (message,))?;
        }
    }
    Ok(())
}

/// Warns of numbers of seconds that are longer than anybody means, and were most likely meant as milliseconds.
///
/// # Errors
/// The warning is an error.
pub(crate) fn warn_of_long<const N: usize>(py: Python<'_>, lengths: [(&str, Option<Seconds>); N]) -> PyResult<()> {
    for (name, seconds) in lengths {
        let Some(Seconds { length: Length::Finite(length), is_number: true }) = seconds else { continue };
        let Some(meant) = leasehold::ffi::meant_length(length) else { continue };
        let (given, meant) = (length.as_secs(), meant.as_secs());
        let message = format!(
            "{name}={given} is {} days, since lengths of time are seconds: for milliseconds write {name}={meant}, and if \
             it is what you mean, timedelta(seconds={given})",
            given / 86_400
        );
        py.import("leasehold._options")?.call_method1("warn", (message,))?;
    }
    Ok(())
}

/// A value that may take long to be dropped, or wake threads that need the interpreter: it is dropped with the
/// interpreter detached.
pub(crate) struct Kept<T: Send>(ManuallyDrop<T>);

impl<T: Send> Kept<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(ManuallyDrop::new(value))
    }

    /// The value, for code that drops it elsewhere.
    pub(crate) fn into_inner(self) -> T {
        let mut kept = ManuallyDrop::new(self);
        // SAFETY: nothing uses the field again, since `kept` is not dropped.
        unsafe { ManuallyDrop::take(&mut kept.0) }
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
        // Without an interpreter to detach from, the value is dropped all the same.
        let _ = Python::try_attach(|py| py.detach(|| drop(value)));
    }
}
