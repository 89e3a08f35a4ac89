//! Converts the driver's replies to those of the core.

use ::redis::{RedisError, RedisResult, ServerError, Value as Theirs};
use leasehold_wire::resp::Value;

pub(super) fn of(reply: Theirs) -> Value {
    match reply {
        Theirs::Nil => Value::Nil,
        Theirs::Int(number) => Value::Integer(number),
        Theirs::BulkString(bytes) => Value::Bulk(bytes),
        Theirs::Array(values) | Theirs::Set(values) => Value::Array(values.into_iter().map(of).collect()),
        Theirs::SimpleString(text) => Value::Simple(text),
        Theirs::Okay => Value::Simple("OK".to_owned()),
        Theirs::Map(pairs) => Value::Map(pairs.into_iter().map(|(key, value)| (of(key), of(value))).collect()),
        Theirs::Attribute { data, .. } => of(*data),
        Theirs::Double(number) => Value::Double(number.to_string()),
        Theirs::Boolean(is_so) => Value::Boolean(is_so),
        Theirs::VerbatimString { text, .. } => Value::Verbatim(text.into_bytes()),
        Theirs::BigNumber(digits) => Value::BigNumber(String::from_utf8_lossy(&digits).into_owned()),
        Theirs::Push { data, .. } => Value::Push(data.into_iter().map(of).collect()),
        Theirs::ServerError(error) => Value::Error(words(&error)),
        // Our scripts never return types that later versions of the driver may add.
        _ => Value::Nil,
    }
}

/// An error reply is an answer; other errors of the driver are not.
pub(super) fn of_error(error: RedisError) -> RedisResult<Value> {
    match error.code() {
        Some(code) if !error.is_io_error() => Ok(Value::Error(said(code, error.detail()))),
        Some(_) | None => Err(error),
    }
}

fn words(error: &ServerError) -> String {
    said(error.code(), error.details())
}

fn said(code: &str, detail: Option<&str>) -> String {
    match detail {
        Some(detail) => format!("{code} {detail}"),
        None => code.to_owned(),
    }
}
