//! Transactions as JSON: keys and values in base64, integers as strings.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value as Json;

use leasehold_core::op::{Fault, FaultKind, Outcome};

use super::{HttpResponse, Request, classify};
use crate::dynamodb::json::{digits, fields, object, written};

/// A key, as it was read or written last.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Row {
    pub(super) key: String,
    pub(super) version: RowVersion,
    pub(super) value: Option<Vec<u8>>,
}

/// The way to tell that nobody has written a row since.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum RowVersion {
    /// Its `mod_revision`; 0 where there is no such key. After a backup was restored it could be that of another write, so the
    /// value is compared as well.
    Revision(u64),
    /// Its value, which is never written twice.
    Value,
}

/// A transaction that is not sent yet. Several whose puts differ can be sent as one request.
#[derive(Clone, Debug)]
pub(super) struct Draft {
    body: Json,
    /// The keys that it may write.
    pub(super) puts: Vec<String>,
}

/// The answer to one transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Txn {
    /// The comparisons held. A refusal is status 200 without this field.
    pub(super) succeeded: bool,
    /// The keys that were read, in their order.
    pub(super) rows: Vec<Row>,
}

/// The state of the store at an answer: it shows if the data is older than it was, or of another cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Position {
    pub(super) cluster: u64,
    pub(super) revision: u64,
}

impl Draft {
    pub(super) fn reading(keys: &[String]) -> Self {
        Self { body: fields([("compare", Json::Array(Vec::new())), ("success", ranges(keys))]), puts: Vec::new() }
    }

    /// Writes values where no key has changed since it was read, and reads all of them where one has.
    pub(super) fn writing(read: &[Row], values: &[(String, String)]) -> Self {
        let compare: Vec<Json> = read.iter().flat_map(unchanged).collect();
        let puts: Vec<Json> = values.iter().map(|(key, value)| put(key, value.as_bytes())).collect();
        let keys: Vec<String> = read.iter().map(|row| row.key.clone()).collect();
        Self {
            body: fields([("compare", compare.into()), ("success", puts.into()), ("failure", ranges(&keys))]),
            puts: values.iter().map(|(key, _)| key.clone()).collect(),
        }
    }

    /// Replaces a value by another, or by none, where it is the one that was found; empty where none was.
    pub(super) fn replacing(key: &str, found: &[u8], value: Option<Vec<u8>>) -> Self {
        let value_found = (!found.is_empty()).then(|| found.to_vec());
        let compare = unchanged(&Row { key: key.to_string(), version: RowVersion::Value, value: value_found });
        let change = match value {
            Some(value) => put(key, &value),
            None => fields([("requestDeleteRange", fields([("key", base64(key).into())]))]),
        };
        Self {
            body: fields([("compare", compare.into()), ("success", alloc::vec![change].into())]),
            puts: alloc::vec![key.to_string()],
        }
    }

    /// One request for all of them: etcd carries out transactions within a transaction each by its own comparisons.
    pub(super) fn together(mut drafts: Vec<Self>) -> Request {
        let writes = drafts.iter().any(|draft| !draft.puts.is_empty());
        let body = match (drafts.pop(), drafts.is_empty()) {
            (Some(only), true) => only.body,
            (last, _) => {
                let all = drafts.into_iter().chain(last).map(|draft| fields([("requestTxn", draft.body)]));
                fields([("compare", Json::Array(Vec::new())), ("success", all.collect())])
            }
        };
        Request { path: "/v3/kv/txn", body: written(&body), writes }
    }
}

/// Reads the answer to transactions that were sent together; `keys` are those that each of them reads.
///
/// # Errors
/// The meaning of an answer that holds no result. One that does not show the keys that it should is no refusal.
pub(super) fn parse(response: &HttpResponse, keys: &[&[String]]) -> Result<(Vec<Txn>, Option<Position>), Outcome> {
    if response.status != 200 {
        return Err(classify(response));
    }
    let whole = Json::Object(object(&response.body).map_err(|_| misfit())?);
    let header = whole.get("header");
    if header.is_none() && whole.get("responses").is_none() {
        return Err(misfit());
    }
    let answers: Vec<&Json> = match keys {
        [_] => alloc::vec![&whole],
        _ => {
            let all = whole.get("responses").and_then(Json::as_array).ok_or_else(misfit)?;
            all.iter().map(|answer| answer.get("response_txn")).collect::<Option<_>>().ok_or_else(misfit)?
        }
    };
    if answers.len() != keys.len() {
        return Err(misfit());
    }
    let txns = answers.into_iter().zip(keys).map(|(answer, keys)| txn(answer, keys)).collect::<Option<Vec<_>>>();
    let number = |name| digits(header?.get(name)?.as_str()?);
    let position = number("cluster_id").zip(number("revision"));
    let position = position.map(|(cluster, revision)| Position { cluster, revision });
    Ok((txns.ok_or_else(misfit)?, position))
}

fn txn(answer: &Json, keys: &[String]) -> Option<Txn> {
    let succeeded = match answer.get("succeeded") {
        None => false,
        Some(succeeded) => succeeded.as_bool()?,
    };
    let answers = answer.get("responses").and_then(Json::as_array);
    let ranges = answers.into_iter().flatten().filter_map(|answer| answer.get("response_range"));
    let rows = ranges.zip(keys).map(|(range, key)| row(range, key)).collect::<Option<Vec<_>>>()?;
    Some(Txn { succeeded, rows })
}

fn row(range: &Json, key: &str) -> Option<Row> {
    let kvs = match range.get("kvs") {
        None => &[][..],
        Some(kvs) => kvs.as_array()?,
    };
    match kvs {
        [] => Some(Row { key: key.to_string(), version: RowVersion::Revision(0), value: None }),
        [kv] if kv.get("key")?.as_str()? == base64(key) => {
            let version = RowVersion::Revision(digits(kv.get("mod_revision")?.as_str()?)?);
            // An empty value is left out.
            let value = kv.get("value").map_or(Some(""), Json::as_str)?;
            Some(Row { key: key.to_string(), version, value: Some(STANDARD.decode(value).ok()?) })
        }
        _ => None,
    }
}

/// The comparisons that hold while nobody has written the row.
fn unchanged(row: &Row) -> Vec<Json> {
    let key = base64(&row.key);
    let is = |target: &str, what: &str, value: String| {
        let key = key.as_str().into();
        fields([("result", "EQUAL".into()), ("target", target.into()), ("key", key), (what, value.into())])
    };
    let has = |value: &Vec<u8>| is("VALUE", "value", STANDARD.encode(value));
    let is_of = |revision: u64| is("MOD", "mod_revision", revision.to_string());
    match (row.version, &row.value) {
        (RowVersion::Value, Some(value)) => alloc::vec![has(value)],
        (RowVersion::Value, None) => alloc::vec![is_of(0)],
        (RowVersion::Revision(revision), value) => {
            core::iter::once(is_of(revision)).chain(value.as_ref().map(has)).collect()
        }
    }
}

fn ranges(keys: &[String]) -> Json {
    keys.iter().map(|key| fields([("requestRange", fields([("key", base64(key).into())]))])).collect()
}

fn put(key: &str, value: &[u8]) -> Json {
    fields([("requestPut", fields([("key", base64(key).into()), ("value", STANDARD.encode(value).into())]))])
}

pub(super) fn base64(key: &str) -> String {
    STANDARD.encode(key)
}

pub(super) fn misfit() -> Outcome {
    Outcome::Unknown(Fault::new(FaultKind::Protocol, "the answer does not come from etcd"))
}
