//! Answers over HTTP of a Redis behind Upstash's interface or Webdis.

use std::time::Duration;

use arbitrary::{Result, Unstructured};
use leasehold_core::RequestId;
use leasehold_wire::redis::{Codec, Settings};
use leasehold_wire::resp::Value;
use leasehold_wire::rest::{self, Dialect, Head};
use leasehold_wire::{Exchange as _, Progress};
use serde_json::{Value as Json, json};

use crate::values::SECRET;
use crate::{answers, invariants, values};

/// A response, as whole text or made of what servers say.
pub fn run(bytes: &[u8]) {
    // The run ends where the bytes end.
    let _ = told(&mut Unstructured::new(bytes));
}

fn told(u: &mut Unstructured<'_>) -> Result<()> {
    let dialect = *u.choose(&[Dialect::Upstash, Dialect::Webdis])?;
    let status =
        if values::chance(u, 30) { u.arbitrary()? } else { *u.choose(&[200, 200, 200, 400, 301, 401, 429, 500])? };
    let kinds = [None, Some("application/json"), Some("application/json; charset=utf-8"), Some("text/html")];
    let content_type = *u.choose(&kinds)?;
    let place = format!("https://user:{SECRET}@elsewhere.example/{SECRET}?token={SECRET}");
    let location = if u.arbitrary()? { Some(place) } else { values::maybe(u, |u| values::text(u, 30))? };
    let location = location.filter(|_| (300..400).contains(&status));
    let head = Head { status, content_type, location: location.as_deref() };
    let (id, ops) = (RequestId::new(u.int_in_range(0..=9)?), values::ops(u)?);

    let reply = answers::reply(u, id, &ops)?;
    let body = match u.int_in_range(0..=5)? {
        0 => values::bytes(u, 4096)?,
        1 => json!({ "error": format!("ERR said {SECRET} {}", values::text(u, 40)?) }).to_string().into_bytes(),
        _ => written(dialect, &reply).to_string().into_bytes(),
    };
    let judged = rest::judge(dialect, &head, &body, Some(SECRET));
    match &judged {
        Ok(Value::Error(error)) => assert!(!error.contains(SECRET)),
        Ok(_) => assert_eq!(status, 200, "only a success is a reply"),
        Err(outcome) => {
            assert!(!invariants::is_grant(outcome));
            assert!(!format!("{outcome:?}").contains(SECRET), "{outcome:?}");
        }
    }
    // A value that was read can be written so that it reads the same.
    if let Ok(value) = &judged
        && let Some(json) = spelt(dialect, value)
    {
        let head = Head { status: 200, content_type: None, location: None };
        assert_eq!(rest::judge(dialect, &head, json.to_string().as_bytes(), None).as_ref(), Ok(value), "{json}");
    }

    let Ok(mut exchange) = Codec::new(Settings::default()).begin(id, &ops[..1], Duration::from_secs(1), 0) else {
        return Ok(());
    };
    let request = rest::request(dialect, exchange.commands(), Some(SECRET));
    assert!(!format!("{request:?}").contains(SECRET));
    let named = judged.as_ref().is_ok_and(|value| ends_with(value, id));
    if let Progress::Done(outcomes) = exchange.answers(&mut (), vec![judged]) {
        let [outcome] = outcomes.as_slice() else { panic!("one operation, one outcome") };
        invariants::outcome(&ops[0], outcome);
        assert!(!invariants::is_grant(outcome) || named);
    }
    Ok(())
}

fn ends_with(value: &Value, id: RequestId) -> bool {
    let Value::Array(parts) = value else { return false };
    parts.last().and_then(Value::as_bytes) == Some(id.get().to_string().as_bytes())
}

/// The value as servers would write it.
fn written(dialect: Dialect, value: &Value) -> Json {
    match (dialect, value) {
        (Dialect::Upstash, Value::Error(error)) => json!({ "error": error }),
        (Dialect::Upstash, value) => json!({ "result": answers::json_of(value) }),
        (Dialect::Webdis, Value::Error(error)) => json!({ "EVALSHA": [false, error] }),
        (Dialect::Webdis, Value::Simple(text)) => json!({ "EVALSHA": [true, text] }),
        (Dialect::Webdis, value) => json!({ "EVALSHA": answers::json_of(value) }),
    }
}

/// The value as servers would write it, where that is unambiguous.
fn spelt(dialect: Dialect, value: &Value) -> Option<Json> {
    let plain = match value {
        Value::Error(_) | Value::Nil => true,
        Value::Simple(_) => dialect == Dialect::Webdis,
        Value::Bulk(bytes) => std::str::from_utf8(bytes).is_ok(),
        Value::Integer(_) => true,
        Value::Array(items) => items.iter().all(is_plain) && !is_pair(items),
        Value::Push(_)
        | Value::Set(_)
        | Value::Map(_)
        | Value::Boolean(_)
        | Value::Double(_)
        | Value::BigNumber(_)
        | Value::Verbatim(_) => false,
    };
    plain.then(|| written(dialect, value))
}

fn is_plain(value: &Value) -> bool {
    matches!(value, Value::Bulk(_) | Value::Integer(_) | Value::Nil)
}

/// Webdis would be understood to speak of a status.
fn is_pair(items: &[Value]) -> bool {
    matches!(items, [Value::Boolean(_), _])
}
