//! DynamoDB Local, and servers that answer as DynamoDB would on a bad day.

#![cfg(feature = "dynamodb")]
#![allow(clippy::unwrap_used, reason = "these are tests, which clippy sees only in functions that are marked so")]

#[path = "../common/mod.rs"]
mod common;

mod locks;

use std::sync::Once;

use leasehold::table::{self, NewTable};
use leasehold_rig::dynamodb::{ACCESS_KEY_ID, REGION, Server, table_name};

/// A server, with keys for it in the environment of this process.
pub(crate) fn server() -> Server {
    static KEYS: Once = Once::new();
    KEYS.call_once(|| {
        for (name, value) in [("AWS_ACCESS_KEY_ID", ACCESS_KEY_ID), ("AWS_SECRET_ACCESS_KEY", "secret")] {
            // SAFETY: nothing that a test does before its first server reads the environment past Rust's lock.
            unsafe { std::env::set_var(name, value) };
        }
    });
    Server::start()
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
