//! Locks on real PostgreSQL servers, when things go wrong.

#![allow(clippy::unwrap_used, clippy::wildcard_enum_match_arm, reason = "these are tests, and their helpers are too")]

#[path = "../common/mod.rs"]
mod common;

mod access;
mod callers;
mod completion_in;
mod doctor;
mod durable;
mod failover;
mod faults;
mod items;
mod queue;
mod queue_by_hand;
mod quorum;
mod replies_lost;
mod rows;
mod runs;

use std::sync::Arc;

use common::on_postgres::{bare_table, new_table, schema_of, table_of};
use leasehold::blocking::{Client, Lease};
use leasehold_servers::postgres::Server;

use crate::common::{PATIENCE, ms};

/// A table on the server of this process.
struct Rig {
    server: Arc<Server>,
    url: String,
}

impl Rig {
    fn new() -> Self {
        let server = Server::shared();
        let url = new_table(&server, server.port());
        Self { server, url }
    }

    /// A table as users have it.
    fn bare() -> Self {
        let server = Server::shared();
        let url = bare_table(&server, server.port());
        Self { server, url }
    }

    fn table(&self) -> String {
        table_of(&self.url)
    }

    fn schema(&self) -> String {
        schema_of(&self.url).to_owned()
    }

    fn client(&self) -> Client {
        client(&self.url)
    }

    /// Makes a row for a lock that is free, so that the next grant has the token behind `counter`.
    fn count_grants_from(&self, counter: u64, resource: &str) {
        let table = self.table();
        self.server.run(&format!(
            "INSERT INTO {table} (resource, counter, nonce, seq, released, ttl_us, since, expires_at, owner) VALUES \
             ('{resource}', {counter}, decode(repeat('00', 16), 'hex'), 0, true, 0, now(), now(), '')"
        ));
    }

    fn column<T: for<'a> postgres::types::FromSql<'a>>(&self, column: &str, resource: &str) -> T {
        self.server.value(&format!("SELECT {column} FROM {} WHERE resource = '{resource}'", self.table()))
    }
}

/// A client that notices silence soon; a machine that is slower only asks more often.
fn client(url: &str) -> Client {
    Client::connect_with(leasehold::Client::builder().request_timeout(ms(250)), url).unwrap()
}

/// A client whose statements wait for locked rows however busy the machine is.
fn patient(url: &str) -> Client {
    Client::connect_with(leasehold::Client::builder().request_timeout(ms(10_000)), url).unwrap()
}

fn lease(client: &Client, resource: &str) -> Lease {
    client.lock(resource).ttl(ms(20_000)).renew_every(ms(200)).wait(PATIENCE).acquire().unwrap()
}
