//! Locks in objects of cloud storage, when things go wrong.

#![cfg(feature = "objects")]
#![allow(clippy::unwrap_used, clippy::wildcard_enum_match_arm, reason = "these are tests, and their helpers are too")]

#[path = "../common/mod.rs"]
mod common;

mod answers;
mod cosmos;
mod credentials;
mod faults;
mod fence;
mod items;
mod settings;

use std::time::Duration;

use leasehold::blocking::{Client, Lease};
use leasehold_servers::objects::{Account, Api, Server};

use crate::common::{PATIENCE, ms, on_objects};

const APIS: [Api; 4] = [Api::AzureBlob, Api::S3, Api::Gcs, Api::Cosmos(Account::Session)];

fn server(api: Api) -> Server {
    on_objects::set_keys();
    Server::start(api)
}

/// A client that takes no slow answer for a lost one.
fn client(url: &str) -> Client {
    within(url, ms(10_000))
}

fn within(url: &str, request_timeout: Duration) -> Client {
    Client::connect_with(leasehold::Client::builder().request_timeout(request_timeout), url).unwrap()
}

/// A lease that is renewed all the time.
fn lease(client: &Client, resource: &str) -> Lease {
    client.lock(resource).ttl(ms(30_000)).renew_every(ms(200)).wait(PATIENCE).acquire().unwrap()
}
