//! Values of PostgreSQL in golden vectors, in the names of the WIT.

use leasehold_wire::postgres::{self, Field, Param};
use serde::{Deserialize, Serialize};

use super::wire::names;

names! {
    /// When PostgreSQL has refused.
    RefusalTime = postgres::RefusalTime {
        /// When the host connected.
        AtLogin,
        /// In answer to the statement.
        InSession,
        /// With the end of the session.
        AtTheEnd,
    }
}

names! {
    /// The audience of releases in PostgreSQL.
    Notify = postgres::Notify {
        /// Nobody.
        Off,
        /// Those who listen.
        On,
    }
}

/// A parameter or a column of PostgreSQL.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the names are those of the WIT")]
pub enum SqlValue {
    Null {},
    Text { value: String },
    Bytes { value: String },
    Number { value: u64 },
    Truth { value: bool },
}

/// A row of PostgreSQL.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Row {
    /// Its columns.
    pub columns: Vec<SqlValue>,
}

impl From<&Param> for SqlValue {
    fn from(param: &Param) -> Self {
        if let Some(value) = param.array() {
            return Self::Text { value };
        }
        match param {
            Param::Text(Some(text)) => Self::Text { value: text.clone() },
            Param::Bytea(Some(bytes)) => {
                Self::Bytes { value: bytes.iter().map(|byte| format!("{byte:02x}")).collect() }
            }
            Param::Int8(number) => Self::Number { value: u64::try_from(*number).unwrap_or(0) },
            Param::Bool(value) => Self::Truth { value: *value },
            Param::Text(None)
            | Param::Bytea(None)
            | Param::TextArray(_)
            | Param::ByteaArray(_)
            | Param::Int8Array(_) => Self::Null {},
        }
    }
}

impl From<&SqlValue> for Field {
    fn from(value: &SqlValue) -> Self {
        match value {
            SqlValue::Null {} => Self::Null,
            SqlValue::Text { value } => Self::Text(value.clone()),
            SqlValue::Bytes { value } => {
                let byte = |at| u8::from_str_radix(value.get(at..at + 2).unwrap_or_default(), 16).unwrap_or_default();
                Self::Bytes((0..value.len()).step_by(2).map(byte).collect())
            }
            SqlValue::Number { value } => Self::Int(i64::try_from(*value).unwrap_or(i64::MAX)),
            SqlValue::Truth { value } => Self::Bool(*value),
        }
    }
}
