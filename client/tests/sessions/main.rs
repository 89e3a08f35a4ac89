//! Sessions on the stores where they are records of their own: one heartbeat for many locks, on servers that are real.

#![cfg(all(feature = "dynamodb", feature = "etcd", feature = "objects"))]
#![allow(clippy::unwrap_used, clippy::wildcard_enum_match_arm, reason = "these are tests, and their helpers are too")]

#[path = "../common/mod.rs"]
mod common;

mod changed;
mod delayed;
mod heartbeat;
mod stopped;
mod told;

use std::net::SocketAddr;
use std::time::Duration;

use leasehold::blocking::{Client, Lease};
use leasehold_servers::objects::Api;
use leasehold_servers::{dynamodb, etcd, objects};

use crate::common::{PATIENCE, on_dynamodb, on_objects};

/// A store of one test's own, whose records only observers can declare dead.
enum Store<'a> {
    Dynamodb { server: &'a dynamodb::Server, url: String },
    Etcd { server: &'a etcd::Server, prefix: String },
    Objects { server: &'a objects::Server, prefix: String },
}

impl Store<'_> {
    fn address(&self) -> SocketAddr {
        match self {
            Self::Dynamodb { server, .. } => server.address(),
            Self::Etcd { server, .. } => server.address(),
            Self::Objects { server, .. } => server.address(),
        }
    }

    /// The url of the same store through another address.
    fn url_at(&self, address: SocketAddr) -> String {
        match self {
            Self::Dynamodb { url, .. } => on_dynamodb::through(url, address),
            Self::Etcd { prefix, .. } => format!("etcd://{address}?prefix={prefix}/"),
            Self::Objects { server, prefix } => server.url_at(address, prefix),
        }
    }

    fn url(&self) -> String {
        self.url_at(self.address())
    }
}

type Behaviour = (&'static str, fn(&Store<'_>));

const BEHAVIOURS: [Behaviour; 7] = [
    ("stopped", stopped::a_session_that_stands_still_is_succeeded_and_wakes_to_its_loss),
    ("mixed", stopped::clients_with_and_without_sessions_succeed_each_other),
    ("told", changed::holder_is_told_of_what_others_change),
    ("broken", changed::locks_of_a_session_that_was_broken_are_shown_as_free),
    ("heartbeats", delayed::late_heartbeats_revive_nobody),
    ("rows", delayed::late_rows_of_a_dead_session_are_nobodys),
    ("revoked", told::revoking_a_dead_holder_again_keeps_nobody_out),
];

/// Holds all of them against one server, at the same time, each on a store of its own.
#[track_caller]
fn all<'a>(store: impl Fn(&str) -> Store<'a> + Sync) {
    let failed: Vec<&str> = std::thread::scope(|scope| {
        let start = |(name, behaviour): &Behaviour| {
            let (name, behaviour, store) = (*name, *behaviour, &store);
            let builder = std::thread::Builder::new().name(name.to_owned());
            (name, builder.spawn_scoped(scope, move || behaviour(&store(name))).unwrap())
        };
        let started: Vec<_> = BEHAVIOURS.iter().map(start).collect();
        started.into_iter().filter_map(|(name, thread)| thread.join().is_err().then_some(name)).collect()
    });
    assert!(failed.is_empty(), "not so: {}", failed.join(", "));
}

#[test]
fn on_dynamodb() {
    let server = on_dynamodb::server();
    all(|_| Store::Dynamodb { server: &server, url: on_dynamodb::new_table(&server) });
}

#[test]
fn on_etcd() {
    let server = etcd::Server::start();
    all(|name| Store::Etcd { server: &server, prefix: name.to_owned() });
}

#[test]
fn on_azure_blob() {
    on_objects::set_keys();
    let server = objects::Server::start(Api::AzureBlob);
    all(|name| Store::Objects { server: &server, prefix: name.to_owned() });
}

/// A client that takes no slow answer for a lost one.
fn client(url: &str, session: Option<&str>) -> Client {
    let builder = leasehold::Client::builder().request_timeout(Duration::from_secs(10));
    let builder = session.map_or(builder.clone(), |session| builder.session(session));
    Client::connect_with(builder, url).unwrap()
}

fn lease(client: &Client, resource: &str, ttl: Duration) -> Lease {
    let renewed = ttl / 30;
    client.lock(resource).ttl(ttl).renew_every(renewed).wait(PATIENCE).acquire().unwrap()
}
