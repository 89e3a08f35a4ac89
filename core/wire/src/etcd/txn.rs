//! Transactions as JSON: keys and values in base64, integers as strings.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value as Json, json};

use leasehold_core::op::{Fault, FaultKind, Outcome};

use super::{Request, Response, classify};
use crate::dynamodb::json::{digits, object};

/// A key as it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) key: String,
    /// 0 where there is no such key.
    pub(super) revision: u64,
    pub(super) value: Option<Vec<u8>>,
}

/// The answer to a transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Txn {
    /// The comparisons held. A refusal is status 200 without this field.
    pub(super) succeeded: bool,
    /// The keys that were read, in their order.
    pub(super) rows: Vec<Row>,
}

impl Txn {
    pub(super) fn reading(keys: &[String]) -> Request {
        request(&json!({ "compare": [], "success": ranges(keys) }), false)
    }

    /// Writes values where no key has changed since it was read, and reads all of them where one has.
    pub(super) fn writing(read: &[Row], values: &[(&str, String)]) -> Request {
        let compare = read.iter().map(|row| {
            let revision = row.revision.to_string();
            json!({ "result": "EQUAL", "target": "MOD", "key": base64(&row.key), "mod_revision": revision })
        });
        let puts = values.iter().map(|(key, value)| put(key, value.as_bytes()));
        let keys: Vec<String> = read.iter().map(|row| row.key.clone()).collect();
        let compare: Vec<Json> = compare.collect();
        let puts: Vec<Json> = puts.collect();
        request(&json!({ "compare": compare, "success": puts, "failure": ranges(&keys) }), true)
    }

    /// Replaces a value by another, or by none, where it is the one that was found; empty where none was.
    pub(super) fn replacing(key: &str, found: &[u8], value: Option<Vec<u8>>) -> Request {
        let compare = if found.is_empty() {
            json!({ "result": "EQUAL", "target": "MOD", "key": base64(key), "mod_revision": "0" })
        } else {
            json!({ "result": "EQUAL", "target": "VALUE", "key": base64(key), "value": STANDARD.encode(found) })
        };
        let change = match value {
            Some(value) => put(key, &value),
            None => json!({ "requestDeleteRange": { "key": base64(key) } }),
        };
        request(&json!({ "compare": [compare], "success": [change] }), true)
    }

    /// # Errors
    /// The meaning of an answer that holds no result. One that does not show the keys that it should is no refusal.
    pub(super) fn parse(response: &Response, keys: &[String]) -> Result<Self, Outcome> {
        if response.status != 200 {
            return Err(classify(response));
        }
        let fields = object(&response.body).map_err(|_| misfit())?;
        let succeeded = match fields.get("succeeded") {
            None => false,
            Some(succeeded) => succeeded.as_bool().ok_or_else(misfit)?,
        };
        if !fields.contains_key("header") && !fields.contains_key("responses") {
            return Err(misfit());
        }
        let answers = fields.get("responses").and_then(Json::as_array);
        let ranges = answers.into_iter().flatten().filter_map(|answer| answer.get("response_range"));
        let rows = ranges.zip(keys).map(|(range, key)| row(range, key)).collect::<Option<Vec<_>>>();
        Ok(Self { succeeded, rows: rows.ok_or_else(misfit)? })
    }
}

fn row(range: &Json, key: &str) -> Option<Row> {
    let kvs = match range.get("kvs") {
        None => &[][..],
        Some(kvs) => kvs.as_array()?,
    };
    match kvs {
        [] => Some(Row { key: key.to_string(), revision: 0, value: None }),
        [kv] if kv.get("key")?.as_str()? == base64(key) => {
            let revision = digits(kv.get("mod_revision")?.as_str()?)?;
            // An empty value is left out.
            let value = kv.get("value").map_or(Some(""), Json::as_str)?;
            Some(Row { key: key.to_string(), revision, value: Some(STANDARD.decode(value).ok()?) })
        }
        _ => None,
    }
}

fn ranges(keys: &[String]) -> Vec<Json> {
    keys.iter().map(|key| json!({ "requestRange": { "key": base64(key) } })).collect()
}

fn put(key: &str, value: &[u8]) -> Json {
    json!({ "requestPut": { "key": base64(key), "value": STANDARD.encode(value) } })
}

fn base64(key: &str) -> String {
    STANDARD.encode(key)
}

fn request(body: &Json, writes: bool) -> Request {
    Request { path: "/v3/kv/txn", body: body.to_string().into_bytes(), writes }
}

pub(super) fn misfit() -> Outcome {
    Outcome::Unknown(Fault::new(FaultKind::Protocol, "the answer is none of etcd's"))
}
