//! The connections that the guards of SQLite take.

use std::fmt;

/// A connection to a database of SQLite, as far as guards need one: implement it for the driver that you have. With the feature
/// `rusqlite-0_41` connections, transactions and savepoints of that version of rusqlite have it.
pub trait SqliteConnection {
    /// The error of the driver.
    type Error: fmt::Display;

    /// Runs a statement with the parameters `?1`, `?2`. Returns the number of rows that it has changed.
    ///
    /// # Errors
    /// The driver's.
    fn execute(&self, sql: &str, parameters: &[SqliteValue]) -> Result<usize, Self::Error>;

    /// The only column of all rows that a query answers.
    ///
    /// # Errors
    /// The driver's.
    fn column(&self, sql: &str, parameters: &[SqliteValue]) -> Result<Vec<SqliteValue>, Self::Error>;

    /// Tells if a transaction is under way.
    fn is_in_transaction(&self) -> bool;

    /// Tells if another connection is in the way, which may pass: `SQLITE_BUSY` or `SQLITE_LOCKED`.
    fn is_busy(error: &Self::Error) -> bool;
}

/// A value of SQLite: a key, a token or a mark. There are no other types of values.
#[derive(Clone, Debug, PartialEq)]
pub enum SqliteValue {
    /// `NULL`.
    Null,
    /// An integer.
    Integer(i64),
    /// A floating point number.
    Real(f64),
    /// A text.
    Text(String),
    /// Bytes.
    Blob(Vec<u8>),
}

impl From<i64> for SqliteValue {
    fn from(value: i64) -> Self {
        Self::Integer(value)
    }
}

impl From<&str> for SqliteValue {
    fn from(value: &str) -> Self {
        Self::Text(value.to_owned())
    }
}

impl From<String> for SqliteValue {
    fn from(value: String) -> Self {
        Self::Text(value)
    }
}

impl From<Vec<u8>> for SqliteValue {
    fn from(value: Vec<u8>) -> Self {
        Self::Blob(value)
    }
}

impl<T: Into<SqliteValue>> From<Option<T>> for SqliteValue {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
}

#[cfg(feature = "rusqlite-0_41")]
#[allow(clippy::disallowed_types, reason = "guards know SQLite")]
mod rusqlite {
    use ::rusqlite::types::{ToSqlOutput, Value, ValueRef};
    use ::rusqlite::{Connection, Error, ErrorCode, Savepoint, ToSql, Transaction, params_from_iter};

    use super::{SqliteConnection, SqliteValue};

    impl ToSql for SqliteValue {
        fn to_sql(&self) -> ::rusqlite::Result<ToSqlOutput<'_>> {
            Ok(ToSqlOutput::Borrowed(match self {
                Self::Null => ValueRef::Null,
                Self::Integer(value) => ValueRef::Integer(*value),
                Self::Real(value) => ValueRef::Real(*value),
                Self::Text(value) => ValueRef::Text(value.as_bytes()),
                Self::Blob(value) => ValueRef::Blob(value),
            }))
        }
    }

    impl From<Value> for SqliteValue {
        fn from(value: Value) -> Self {
            match value {
                Value::Null => Self::Null,
                Value::Integer(value) => Self::Integer(value),
                Value::Real(value) => Self::Real(value),
                Value::Text(value) => Self::Text(value),
                Value::Blob(value) => Self::Blob(value),
            }
        }
    }

    impl SqliteConnection for Connection {
        type Error = Error;

        fn execute(&self, sql: &str, parameters: &[SqliteValue]) -> Result<usize, Error> {
            self.prepare_cached(sql)?.execute(params_from_iter(parameters))
        }

        fn column(&self, sql: &str, parameters: &[SqliteValue]) -> Result<Vec<SqliteValue>, Error> {
            let mut read = self.prepare_cached(sql)?;
            let rows = read.query_map(params_from_iter(parameters), |row| row.get::<_, Value>(0))?;
            rows.map(|mark| mark.map(SqliteValue::from)).collect()
        }

        fn is_in_transaction(&self) -> bool {
            !self.is_autocommit()
        }

        fn is_busy(error: &Error) -> bool {
            matches!(error.sqlite_error_code(), Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked))
        }
    }

    macro_rules! of_the_connection_within {
        ($($name:ident),+) => {
            $(impl SqliteConnection for $name<'_> {
                type Error = Error;

                fn execute(&self, sql: &str, parameters: &[SqliteValue]) -> Result<usize, Error> {
                    SqliteConnection::execute(&**self, sql, parameters)
                }

                fn column(&self, sql: &str, parameters: &[SqliteValue]) -> Result<Vec<SqliteValue>, Error> {
                    SqliteConnection::column(&**self, sql, parameters)
                }

                fn is_in_transaction(&self) -> bool {
                    SqliteConnection::is_in_transaction(&**self)
                }

                fn is_busy(error: &Error) -> bool {
                    <Connection as SqliteConnection>::is_busy(error)
                }
            })+
        };
    }
    of_the_connection_within!(Transaction, Savepoint);
}
