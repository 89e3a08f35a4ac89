//! Locks on real etcd servers, when things go wrong.

#![cfg(feature = "etcd")]
#![allow(clippy::unwrap_used, clippy::wildcard_enum_match_arm, reason = "these are tests, and their helpers are too")]

#[path = "../common/mod.rs"]
mod common;

mod access;
mod doctor;
mod faults;
mod items;
mod members;
mod permits;
#[cfg(feature = "redis")]
mod quorum;
mod waiters;

use std::time::Duration;

use leasehold::blocking::{Client, Lease};
use leasehold_servers::etcd::Server;

use crate::common::{PATIENCE, eventually, ms};

/// A client that takes no slow answer for a lost one.
fn client(url: &str) -> Client {
    within(url, ms(10_000))
}

fn within(url: &str, request_timeout: Duration) -> Client {
    Client::connect_with(leasehold::Client::builder().request_timeout(request_timeout), url).unwrap()
}

fn url_of(servers: &[Server]) -> String {
    let hosts: Vec<String> = servers.iter().map(|server| server.address().to_string()).collect();
    format!("etcd://{}", hosts.join(","))
}

/// A lease that is renewed all the time.
fn lease(client: &Client, resource: &str) -> Lease {
    client.lock(resource).ttl(ms(30_000)).renew_every(ms(200)).wait(PATIENCE).acquire().unwrap()
}

/// The number of the last renewal of a lock, from its record.
fn renewals(server: &Server, resource: &str) -> u32 {
    let record = server.get(&format!("leasehold/lock/{resource}"));
    let (_, rest) = record.split_once("\"seq\":").unwrap_or_else(|| panic!("no lease: {record:?}"));
    rest.split(|c: char| !c.is_ascii_digit()).next().unwrap().parse().unwrap()
}

/// Waits until a lock was renewed once more.
fn expect_renewal(server: &Server, resource: &str) {
    let before = renewals(server, resource);
    eventually("it is renewed", || renewals(server, resource) > before);
}
