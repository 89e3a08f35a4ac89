//! The protocol without I/O: its calls by name, with the dataclasses of `leasehold.protocol`.

use std::sync::{Mutex, MutexGuard, TryLockError};

use leasehold::ffi;
use leasehold_protocol::wit::{client, fence, redis, runs};
use leasehold_protocol::{Problem, Sink, Source, Unfit, UnfitKind, contained};
use pyo3::exceptions::{PyRuntimeError, PyTypeError};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBool, PyByteArray, PyBytes, PyDict, PyInt, PyString, PyTuple};

use crate::convert::Seconds;
use crate::errors;

/// A client, a guard or a reader of replies.
#[pyclass(frozen, module = "leasehold._native")]
pub(crate) struct Protocol(Mutex<Object>);

enum Object {
    Client(Box<client::Client>),
    Guard(fence::Guard),
    Reader(Box<redis::Reader>),
}

#[pymethods]
impl Protocol {
    #[staticmethod]
    #[pyo3(signature = (of, name, *args))]
    fn make(of: &str, name: &str, args: &Bound<'_, PyTuple>) -> PyResult<Self> {
        let given = given(args);
        let made = contained(|| match of {
            "client" => client::Client::make(name, &given).map(|made| Object::Client(Box::new(made))),
            "guard" => fence::Guard::make(name, &given).map(Object::Guard),
            _ => redis::Reader::make(name, &given).map(|made| Object::Reader(Box::new(made))),
        });
        made.map(|object| Self(Mutex::new(object))).map_err(|problem| raised(args.py(), problem))
    }

    #[pyo3(signature = (name, *args))]
    fn call<'py>(&self, name: &str, args: &Bound<'py, PyTuple>) -> PyResult<Bound<'py, PyAny>> {
        let object = alone(&self.0)?;
        let (given, to) = (given(args), Values::of(args.py())?);
        let answer = contained(|| match &*object {
            Object::Client(client) => client.call(name, &given, &to),
            Object::Guard(guard) => guard.call(name, &given, &to),
            Object::Reader(reader) => reader.call(name, &given, &to),
        });
        answer.unwrap_or_else(|problem| Err(raised(args.py(), problem)))
    }
}

/// Locks an object without waiting. Only one thread may use it at a time, and no code of a value that it reads may use
/// it.
fn alone<T>(object: &Mutex<T>) -> PyResult<MutexGuard<'_, T>> {
    object.try_lock().map_err(|error| match error {
        TryLockError::WouldBlock => PyRuntimeError::new_err("this object is in use: one thread at a time may call it"),
        TryLockError::Poisoned(_) => PyRuntimeError::new_err("this object has failed before: make a new one"),
    })
}

/// See `ffi::clocks`.
#[pyfunction]
pub(crate) fn clocks() -> (u64, u64) {
    ffi::clocks()
}

/// Functions of the interface `redis`.
#[pyfunction]
#[pyo3(signature = (name, *args))]
pub(crate) fn protocol_redis<'py>(name: &str, args: &Bound<'py, PyTuple>) -> PyResult<Bound<'py, PyAny>> {
    let to = Values::of(args.py())?;
    contained(|| redis::call(name, &given(args), &to)).unwrap_or_else(|problem| Err(raised(args.py(), problem)))
}

/// Functions of the interface `runs`.
#[pyfunction]
#[pyo3(signature = (name, *args))]
pub(crate) fn protocol_runs<'py>(name: &str, args: &Bound<'py, PyTuple>) -> PyResult<Bound<'py, PyAny>> {
    let to = Values::of(args.py())?;
    contained(|| runs::call(name, &given(args), &to)).unwrap_or_else(|problem| Err(raised(args.py(), problem)))
}

fn given<'py>(args: &Bound<'py, PyTuple>) -> Vec<Given<'py>> {
    args.iter().map(Given).collect()
}

fn raised(py: Python<'_>, problem: Problem) -> PyErr {
    let message = problem.to_string();
    match problem {
        Problem::Unfit(unfit) => match unfit.kind() {
            UnfitKind::Type => PyTypeError::new_err(message),
            UnfitKind::Value => errors::config(py, &message),
        },
        Problem::Config(_) => errors::config(py, &message),
        Problem::Rejected(fence::Rejected::Stale(_) | fence::Rejected::OutOfOrder(_)) => {
            errors::made(py, "stale_token", &message, None, None)
        }
        Problem::Rejected(fence::Rejected::Unclaimed | fence::Rejected::InvalidToken(_)) => {
            errors::config(py, &message)
        }
        Problem::Malformed(_) => errors::made(py, "store_unavailable", &message, None, None),
        Problem::Broken(message) => PyRuntimeError::new_err(message),
        command @ Problem::Command(_) => {
            let make = || {
                let reason = command.reason(&Values::of(py)?).transpose()?;
                py.import("leasehold.protocol._errors")?.getattr("CommandRejectedError")?.call1((message, reason))
            };
            make().map_or_else(|error| error, PyErr::from_value)
        }
    }
}

/// A value from Python.
struct Given<'py>(Bound<'py, PyAny>);

impl Given<'_> {
    fn no(&self, what: &str) -> Unfit {
        Unfit::ty(format_args!("{} is no {what}", class(&self.0)))
    }
}

fn class(value: &Bound<'_, PyAny>) -> String {
    value.get_type().name().map_or_else(|_| "this".to_owned(), |name| name.to_string())
}

fn unfit(py: Python<'_>, error: &PyErr) -> Unfit {
    let message = error.value(py).to_string();
    if error.is_instance_of::<PyTypeError>(py) { Unfit::ty(message) } else { Unfit::value(message) }
}

impl Source for Given<'_> {
    fn spelt(name: &str) -> String {
        name.replace('-', "_")
    }

    fn is_absent(&self) -> bool {
        self.0.is_none()
    }

    fn flag(&self) -> Result<bool, Unfit> {
        self.0.cast::<PyBool>().map(|flag| flag.is_true()).map_err(|_| self.no("bool"))
    }

    fn number(&self) -> Result<u64, Unfit> {
        if self.0.is_instance_of::<PyBool>() || !self.0.is_instance_of::<PyInt>() {
            return Err(self.no("int"));
        }
        self.0.extract().map_err(|_| Unfit::value("this int is not within 0 and 2**64 - 1"))
    }

    fn milliseconds(&self) -> Result<u64, Unfit> {
        let py = self.0.py();
        let length = self.0.extract::<Seconds>().and_then(|length| length.finite(py, "this length of time"));
        let length = length.map_err(|error| unfit(py, &error))?;
        u64::try_from(length.as_nanos().div_ceil(1_000_000)).map_err(|_| Unfit::value("this is more than 2**64 ms"))
    }

    fn text(&self) -> Result<String, Unfit> {
        let text = self.0.cast::<PyString>().map_err(|_| self.no("str"))?;
        text.to_cow().map(String::from).map_err(|_| Unfit::value("this str is not Unicode: it has lone surrogates"))
    }

    fn bytes(&self) -> Result<Vec<u8>, Unfit> {
        self.0.extract::<PyBackedBytes>().map(|bytes| bytes.to_vec()).map_err(|_| self.no("bytes"))
    }

    fn items(&self) -> Result<Vec<Self>, Unfit> {
        let is_one = self.0.is_instance_of::<PyString>()
            || self.0.is_instance_of::<PyBytes>()
            || self.0.is_instance_of::<PyByteArray>()
            || self.0.is_instance_of::<PyDict>();
        let items = if is_one { None } else { self.0.try_iter().ok() };
        let items = items.ok_or_else(|| self.no("sequence"))?;
        items.map(|item| item.map(Given).map_err(|error| unfit(self.0.py(), &error))).collect()
    }

    fn field(&self, name: &'static str) -> Result<Self, Unfit> {
        let found = self.0.getattr(PyString::intern(self.0.py(), &Self::spelt(name)));
        found.map(Given).map_err(|_| Unfit::ty(format_args!("{} has no such field", class(&self.0))))
    }

    fn only(&self, _: &[&'static str]) -> Result<(), Unfit> {
        // Classes have fixed fields.
        Ok(())
    }

    fn case(&self, of: &'static str, names: &[&'static str]) -> Result<usize, Unfit> {
        let tag = self.0.getattr("_of").and_then(|tag| tag.extract::<String>()).unwrap_or_default();
        let case = tag.strip_prefix(of).and_then(|rest| rest.strip_prefix('.'));
        let found = case.and_then(|case| names.iter().position(|name| *name == case));
        found.ok_or_else(|| self.no(&format!("case of {}", of[..1].to_ascii_uppercase() + &of[1..])))
    }
}

/// Makes values of Python.
struct Values<'py> {
    py: Python<'py>,
    classes: &'py Bound<'py, PyDict>,
}

static CLASSES: PyOnceLock<Py<PyDict>> = PyOnceLock::new();

impl<'py> Values<'py> {
    fn of(py: Python<'py>) -> PyResult<Self> {
        let classes = CLASSES.get_or_try_init(py, || {
            let values = py.import("leasehold.protocol._values")?;
            values.getattr("CLASSES")?.cast_into::<PyDict>().map(Bound::unbind).map_err(PyErr::from)
        })?;
        Ok(Self { py, classes: classes.bind(py) })
    }

    fn made(&self, of: &str, fields: Vec<(&'static str, Value<'py>)>) -> Value<'py> {
        let class = self.classes.as_any().get_item(of)?;
        let fields = fields.into_iter().map(|(_, field)| field).collect::<PyResult<Vec<_>>>()?;
        class.call1(PyTuple::new(self.py, fields)?)
    }
}

type Value<'py> = PyResult<Bound<'py, PyAny>>;

impl<'py> Sink for Values<'py> {
    type Value = Value<'py>;

    fn nothing(&self) -> Self::Value {
        Ok(self.py.None().into_bound(self.py))
    }

    fn flag(&self, flag: bool) -> Self::Value {
        Ok(PyBool::new(self.py, flag).to_owned().into_any())
    }

    fn number(&self, number: u64) -> Self::Value {
        Ok(number.into_pyobject(self.py)?.into_any())
    }

    fn nanoseconds(&self, ns: u64) -> Self::Value {
        self.number(ns)
    }

    fn text(&self, text: &str) -> Self::Value {
        Ok(PyString::new(self.py, text).into_any())
    }

    fn name(&self, name: &'static str) -> Self::Value {
        Ok(PyString::intern(self.py, &Given::spelt(name)).into_any())
    }

    fn bytes(&self, bytes: &[u8]) -> Self::Value {
        Ok(PyBytes::new(self.py, bytes).into_any())
    }

    fn items(&self, items: Vec<Self::Value>) -> Self::Value {
        Ok(PyTuple::new(self.py, items.into_iter().collect::<PyResult<Vec<_>>>()?)?.into_any())
    }

    fn record(&self, of: &'static str, fields: Vec<(&'static str, Self::Value)>) -> Self::Value {
        self.made(of, fields)
    }

    fn case(&self, of: &'static str, name: &'static str, fields: Vec<(&'static str, Self::Value)>) -> Self::Value {
        self.made(&format!("{of}.{name}"), fields)
    }
}
