//! Guards in SQL databases: their statements in the form of Python's drivers, and the judgement of answers.

use leasehold::fence;
use leasehold::fence::SqliteValue as Value;
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::types::{IntoPyDict, PyInt, PyTuple};

use crate::convert::Natural;
use crate::errors::{self, raised};

/// The form in which a driver writes parameters.
#[derive(Clone, Copy)]
pub(crate) enum ParamStyle {
    /// `$1`: asyncpg, and PostgreSQL itself.
    NumericDollar,
    /// `%(name)s`: psycopg and psycopg2.
    Pyformat,
}

impl ParamStyle {
    /// # Errors
    /// `ConfigError` for an unknown style.
    pub(crate) fn of(py: Python<'_>, name: &str) -> PyResult<Self> {
        match name {
            "numeric_dollar" => Ok(Self::NumericDollar),
            "pyformat" => Ok(Self::Pyformat),
            other => Err(errors::config(
                py,
                &format!(
                    "paramstyle {other:?} is not known: write \"pyformat\" for psycopg, whose parameters are %(name)s, \
                     or \"numeric_dollar\" for asyncpg, whose parameters are $1"
                ),
            )),
        }
    }

    /// A statement of PostgreSQL, with these names for its parameters `$1` and `$2`.
    pub(crate) fn write(self, sql: &str, names: [&str; 2]) -> String {
        match self {
            Self::NumericDollar => sql.to_owned(),
            Self::Pyformat => pyformat(sql, names),
        }
    }

    /// The parameters of a statement with these names.
    pub(crate) fn parameters<'py, const N: usize>(
        self,
        py: Python<'py>,
        parameters: [(&str, Bound<'py, PyAny>); N],
    ) -> PyResult<Bound<'py, PyAny>> {
        match self {
            Self::NumericDollar => Ok(PyTuple::new(py, parameters.map(|(_, value)| value))?.into_any()),
            Self::Pyformat => Ok(parameters.into_py_dict(py)?.into_any()),
        }
    }
}

/// Rewrites a statement for psycopg. Quoted names may contain anything, and psycopg takes every percent sign for the
/// start of a parameter.
fn pyformat(sql: &str, names: [&str; 2]) -> String {
    let mut written = String::with_capacity(sql.len());
    let (mut is_quoted, mut characters) = (false, sql.chars());
    while let Some(character) = characters.next() {
        match character {
            '%' => written.push_str("%%"),
            '$' if !is_quoted => {
                let name = if characters.next() == Some('1') { names[0] } else { names[1] };
                written.push_str(&format!("%({name})s"));
            }
            other => {
                is_quoted ^= other == '"';
                written.push(other);
            }
        }
    }
    written
}

/// A mark, as a driver returns it.
pub(crate) struct Mark(pub(crate) i64);

impl FromPyObject<'_, '_> for Mark {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, '_, PyAny>) -> PyResult<Self> {
        value.extract().map(Self).map_err(|error| {
            if !value.is_instance_of::<PyInt>() {
                return error;
            }
            let what = format!("{:?} is not a mark: pass on the value that the statement returned", value.as_any());
            errors::config(value.py(), &what)
        })
    }
}

fn numbers(marks: &[Option<Mark>]) -> Vec<Option<i64>> {
    marks.iter().map(|mark| mark.as_ref().map(|mark| mark.0)).collect()
}

/// The statements of a guard.
#[pyclass(frozen, subclass, module = "leasehold._native")]
pub(crate) struct Statements {
    /// Claims the item or row; its parameters are those of `parameters`.
    #[pyo3(get)]
    claim_sql: String,
    /// Checks, in the transaction of the write; the same parameters.
    #[pyo3(get)]
    check_sql: String,
    /// Reads the marks of the item or of the rows with the key, the only parameter.
    #[pyo3(get)]
    read_sql: String,
}

impl Statements {
    /// The base of a guard with these statements.
    fn of([claim, check, read]: [&str; 3], write: impl Fn(&str) -> String) -> PyClassInitializer<Self> {
        Self { claim_sql: write(claim), check_sql: write(check), read_sql: write(read) }.into()
    }
}

/// The SQL that keeps marks in a table of PostgreSQL, for the driver that you have.
///
/// `paramstyle` is the form of the driver's parameters: "numeric_dollar" for asyncpg, "pyformat" for psycopg.
#[pyclass(frozen, extends = Statements, module = "leasehold.fence")]
pub(crate) struct PostgresGuard {
    guard: fence::PostgresGuard,
    style: ParamStyle,
}

impl PostgresGuard {
    const NAMES: [&str; 2] = ["item", "token"];
}

#[pymethods]
impl PostgresGuard {
    #[new]
    #[pyo3(signature = (table = None, *, schema = None, paramstyle = "numeric_dollar"))]
    fn new(
        py: Python<'_>,
        table: Option<&str>,
        schema: Option<&str>,
        paramstyle: &str,
    ) -> PyResult<PyClassInitializer<Self>> {
        let guard = match (schema, table) {
            (None, None) => Ok(fence::PostgresGuard::new()),
            (None, Some(table)) => fence::PostgresGuard::with_table(table),
            (Some(schema), table) => fence::PostgresGuard::in_schema(schema, table.unwrap_or("leasehold_fence")),
        };
        let (guard, style) = (guard.map_err(|error| raised(py, &error.into()))?, ParamStyle::of(py, paramstyle)?);
        let statements = [guard.claim_sql(), guard.check_sql(), guard.read_sql()];
        let statements = Statements::of(statements, |sql| style.write(sql, Self::NAMES));
        Ok(statements.add_subclass(Self { guard, style }))
    }

    /// Creates the table of marks unless it exists. It takes no parameters.
    #[getter]
    fn create_sql(&self) -> &str {
        self.guard.create_sql()
    }

    /// The parameters of a claim or a check: a tuple, or for "pyformat" a dict. Raises ConfigError for an invalid
    /// token.
    fn parameters<'py>(&self, py: Python<'py>, item: &str, token: Natural) -> PyResult<Bound<'py, PyAny>> {
        let (item, token) =
            fence::PostgresGuard::parameters(item, token.0).map_err(|error| raised(py, &error.into()))?;
        let [one, two] = Self::NAMES;
        self.style.parameters(py, [(one, item.into_bound_py_any(py)?), (two, token.into_bound_py_any(py)?)])
    }

    /// Judges the returned mark, None if no row was returned. Raises StaleTokenError.
    #[staticmethod]
    fn outcome(py: Python<'_>, item: &str, token: Natural, mark: Option<Mark>) -> PyResult<()> {
        fence::PostgresGuard::outcome(item, token.0, mark.map(|mark| mark.0)).map_err(|error| raised(py, &error.into()))
    }
}

/// The SQL that keeps the mark of a row in a column of your table, for the driver that you have.
///
/// The column is a bigint that nothing else writes, and the key names one row. `paramstyle` is that of PostgresGuard.
#[pyclass(frozen, extends = Statements, module = "leasehold.fence")]
pub(crate) struct PostgresRowGuard {
    guard: fence::PostgresRowGuard,
    style: ParamStyle,
}

impl PostgresRowGuard {
    const NAMES: [&str; 2] = ["key", "token"];
    /// The number of the token's parameter in the statements.
    const TOKEN: usize = 2;

    /// A piece for a statement of the user, in which the token is this parameter.
    fn piece(&self, parameter: Option<Parameter>, piece: impl Fn(usize) -> String, py: Python<'_>) -> PyResult<String> {
        match (self.style, parameter) {
            (ParamStyle::NumericDollar, None) => Ok(piece(Self::TOKEN)),
            (ParamStyle::NumericDollar, Some(Parameter::Number(number))) => Ok(piece(number)),
            (ParamStyle::Pyformat, None) => Ok(pyformat(&piece(Self::TOKEN), Self::NAMES)),
            (ParamStyle::Pyformat, Some(Parameter::Name(name))) => Ok(pyformat(&piece(Self::TOKEN), ["", &name])),
            (ParamStyle::NumericDollar, Some(Parameter::Name(_))) => {
                Err(errors::config(py, "the parameters of this paramstyle have numbers: give that of the token"))
            }
            (ParamStyle::Pyformat, Some(Parameter::Number(_))) => {
                Err(errors::config(py, "the parameters of this paramstyle have names: give that of the token"))
            }
        }
    }
}

#[derive(FromPyObject)]
enum Parameter {
    Number(usize),
    Name(String),
}

#[pymethods]
impl PostgresRowGuard {
    #[new]
    #[pyo3(signature = (table, key_column, fence_column, *, paramstyle = "numeric_dollar"))]
    fn new(
        py: Python<'_>,
        table: &str,
        key_column: &str,
        fence_column: &str,
        paramstyle: &str,
    ) -> PyResult<PyClassInitializer<Self>> {
        let guard =
            fence::PostgresRowGuard::new(table, key_column, fence_column).map_err(|error| raised(py, &error.into()))?;
        let style = ParamStyle::of(py, paramstyle)?;
        let statements = [guard.claim_sql(), guard.check_sql(), guard.read_sql()];
        let statements = Statements::of(statements, |sql| style.write(sql, Self::NAMES));
        Ok(statements.add_subclass(Self { guard, style }))
    }

    /// The assignment that raises the mark, for the SET list of an UPDATE of your own. `parameter` is the number or
    /// name of the token's parameter there; default: 2, or "token". It needs `condition_sql` in the same statement.
    #[pyo3(signature = (parameter = None))]
    fn raise_sql(&self, py: Python<'_>, parameter: Option<Parameter>) -> PyResult<String> {
        self.piece(parameter, |number| self.guard.raise(number), py)
    }

    /// The condition for an UPDATE of your own, to be added to its WHERE with AND. If no row was updated, `refusal`
    /// gives the reason.
    #[pyo3(signature = (parameter = None))]
    fn condition_sql(&self, py: Python<'_>, parameter: Option<Parameter>) -> PyResult<String> {
        self.piece(parameter, |number| self.guard.condition(number), py)
    }

    /// The parameters of a claim or a check: a tuple, or for "pyformat" a dict. Raises ConfigError for an invalid
    /// token.
    fn parameters<'py>(&self, py: Python<'py>, key: Bound<'py, PyAny>, token: Natural) -> PyResult<Bound<'py, PyAny>> {
        let token = fence::PostgresRowGuard::parameter(token.0).map_err(|error| raised(py, &error.into()))?;
        let [one, two] = Self::NAMES;
        self.style.parameters(py, [(one, key), (two, token.into_bound_py_any(py)?)])
    }

    /// Judges the answer to a claim, given the one column of all its rows. Raises StaleTokenError; ConfigError for a row
    /// that does not exist and for a key that names several rows: then roll back.
    #[staticmethod]
    fn claim_outcome(py: Python<'_>, token: Natural, marks: Vec<Option<Mark>>) -> PyResult<()> {
        fence::PostgresRowGuard::claim_outcome(token.0, &numbers(&marks)).map_err(|error| raised(py, &error.into()))
    }

    /// Judges the answer to a check, given the one column of all its rows. Raises StaleTokenError, also for a row that
    /// is gone; ConfigError for a row that was never claimed and for a key that names several rows.
    #[staticmethod]
    fn check_outcome(py: Python<'_>, token: Natural, marks: Vec<Option<Mark>>) -> PyResult<()> {
        fence::PostgresRowGuard::check_outcome(token.0, &numbers(&marks)).map_err(|error| raised(py, &error.into()))
    }

    /// The error to raise if an UPDATE of your own with `condition_sql` has updated no row, given the answer to
    /// `read_sql` after it.
    #[staticmethod]
    fn refusal(py: Python<'_>, token: Natural, marks: Vec<Option<Mark>>) -> PyErr {
        raised(py, &fence::PostgresRowGuard::refusal(token.0, &numbers(&marks)).into())
    }
}

/// The statements of `leasehold.fence.SqliteGuard`.
#[pyclass(frozen, extends = Statements, module = "leasehold._native")]
pub(crate) struct SqliteGuard(fence::SqliteGuard);

#[pymethods]
impl SqliteGuard {
    #[new]
    #[pyo3(signature = (table = None))]
    fn new(py: Python<'_>, table: Option<&str>) -> PyResult<PyClassInitializer<Self>> {
        let guard = table.map_or_else(|| Ok(fence::SqliteGuard::new()), fence::SqliteGuard::with_table);
        let guard = guard.map_err(|error| raised(py, &error.into()))?;
        let statements = Statements::of([guard.claim_sql(), guard.check_sql(), guard.read_sql()], str::to_owned);
        Ok(statements.add_subclass(Self(guard)))
    }

    #[getter]
    fn create_sql(&self) -> &str {
        self.0.create_sql()
    }

    /// The error of a claim that has changed no row.
    #[staticmethod]
    fn claim_refusal(py: Python<'_>, key: &str, token: Natural, marks: Vec<Bound<'_, PyAny>>) -> PyErr {
        raised(py, &fence::SqliteGuard::refusal(key, token.0, &values(&marks)).into())
    }

    /// The error of a check that has changed no row.
    #[staticmethod]
    fn check_refusal(py: Python<'_>, key: &str, token: Natural, marks: Vec<Bound<'_, PyAny>>) -> PyErr {
        Self::claim_refusal(py, key, token, marks)
    }
}

/// The statements of `leasehold.fence.SqliteRowGuard`.
#[pyclass(frozen, extends = Statements, module = "leasehold._native")]
pub(crate) struct SqliteRowGuard;

#[pymethods]
impl SqliteRowGuard {
    #[new]
    fn new(py: Python<'_>, table: &str, key_column: &str, fence_column: &str) -> PyResult<PyClassInitializer<Self>> {
        let guard =
            fence::SqliteRowGuard::new(table, key_column, fence_column).map_err(|error| raised(py, &error.into()))?;
        let statements = Statements::of([guard.claim_sql(), guard.check_sql(), guard.read_sql()], str::to_owned);
        Ok(statements.add_subclass(Self))
    }

    /// The error of a claim that has changed no row.
    #[staticmethod]
    fn claim_refusal(py: Python<'_>, key: Bound<'_, PyAny>, token: Natural, marks: Vec<Bound<'_, PyAny>>) -> PyErr {
        drop(key);
        raised(py, &fence::SqliteRowGuard::claim_refusal(token.0, &values(&marks)).into())
    }

    /// The error of a check that has changed no row.
    #[staticmethod]
    fn check_refusal(py: Python<'_>, key: Bound<'_, PyAny>, token: Natural, marks: Vec<Bound<'_, PyAny>>) -> PyErr {
        drop(key);
        raised(py, &fence::SqliteRowGuard::check_refusal(token.0, &values(&marks)).into())
    }
}

/// The values of the column, as `sqlite3` reads them.
fn values(marks: &[Bound<'_, PyAny>]) -> Vec<Value> {
    let value = |mark: &Bound<'_, PyAny>| {
        if mark.is_none() {
            return Value::Null;
        }
        let integer = mark.is_instance_of::<PyInt>().then(|| mark.extract().ok()).flatten();
        // A guard accepts no other type as a mark, but shows it in the error.
        integer.map_or_else(|| Value::Text(mark.to_string()), Value::Integer)
    };
    marks.iter().map(value).collect()
}

/// A token in the form of databases.
#[pyfunction]
pub(crate) fn token_parameter(py: Python<'_>, token: Natural) -> PyResult<i64> {
    fence::PostgresRowGuard::parameter(token.0).map_err(|error| raised(py, &error.into()))
}
