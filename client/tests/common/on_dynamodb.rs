//! A DynamoDB Local, tables in it, and their rows as they stand there.

use std::sync::Once;

use leasehold::table::{self, NewTable};
use leasehold_servers::dynamodb::{ACCESS_KEY_ID, REGION, Server, table_name};
use serde_json::{Value, json};

/// A server, with keys for it in the environment of this process.
pub(crate) fn server() -> Server {
    set_keys();
    Server::shared()
}

/// Keys of this process, with which a [`Server`] shows the tables that it shows in [`Server::request`].
pub(crate) fn set_keys() {
    static KEYS: Once = Once::new();
    KEYS.call_once(|| {
        for (name, value) in [("AWS_ACCESS_KEY_ID", ACCESS_KEY_ID), ("AWS_SECRET_ACCESS_KEY", "hunter2")] {
            // SAFETY: nothing that a test does before its first server reads the environment past Rust's lock.
            unsafe { std::env::set_var(name, value) };
        }
    });
}

/// The url of a table that is not there yet.
pub(crate) fn new_url(server: &Server) -> String {
    format!("dynamodb://{}?region={REGION}&endpoint={}", table_name(), server.endpoint())
}

/// The url of a new table.
pub(crate) fn new_table(server: &Server) -> String {
    let url = new_url(server);
    table::create(&url, &NewTable::default()).unwrap();
    url
}

/// The same table through another address.
pub(crate) fn through(url: &str, address: std::net::SocketAddr) -> String {
    let (table, _) = url.split_once('?').unwrap();
    format!("{table}?region={REGION}&endpoint=http://{address}")
}

/// The table that a url names.
pub(crate) fn table_of(url: &str) -> &str {
    let (table, _) = url.split_once('?').unwrap_or((url, ""));
    table.strip_prefix("dynamodb://").unwrap()
}

/// A lock's row; [`Value::Null`] where there is none.
#[track_caller]
pub(crate) fn row(server: &Server, url: &str, name: &str) -> Value {
    let body = json!({"TableName": table_of(url), "Key": {"key": {"S": name}}, "ConsistentRead": true});
    server.command("GetItem", &body)["Item"].clone()
}

/// Writes a row as it is.
#[track_caller]
pub(crate) fn put(server: &Server, url: &str, row: &Value) {
    server.command("PutItem", &json!({"TableName": table_of(url), "Item": row}));
}

/// An attribute of a row, whatever its type; empty where there is none.
pub(crate) fn attribute<'a>(row: &'a Value, name: &str) -> &'a str {
    row[name].as_object().and_then(|typed| typed.values().next()).and_then(Value::as_str).unwrap_or_default()
}

/// The counter in a row.
#[track_caller]
pub(crate) fn counter(row: &Value) -> u64 {
    attribute(row, "fencingToken").parse().unwrap_or_else(|_| panic!("no counter in {row}"))
}

/// Returns true if somebody holds the lock whose row this is.
pub(crate) fn is_held(row: &Value) -> bool {
    row.is_object() && row.get("isReleased").is_none()
}
