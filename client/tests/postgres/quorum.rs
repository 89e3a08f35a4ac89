//! A table as one node of a quorum of several kinds of stores: PostgreSQL behind PgBouncer, Redis and DynamoDB Local.

use leasehold::blocking::{Client, Once};
use leasehold_servers::postgres::{Pooler, Server};
use leasehold_servers::{dynamodb, redis};

use crate::common::on_dynamodb;
use crate::common::on_postgres::new_table;
use crate::common::{PATIENCE, eventually, four_clients_get_growing_tokens, ms};

struct Mixed {
    server: Server,
    pooler: Pooler,
    redis: redis::Server,
    _dynamodb: dynamodb::Server,
    urls: String,
}

impl Mixed {
    fn new() -> Self {
        let (server, redis, dynamodb) = (Server::start(), redis::Server::start(), on_dynamodb::server());
        let pooler = Pooler::start(&server);
        let items = on_dynamodb::new_table(&dynamodb);
        let urls = format!("{} {} {items}", new_table(&server, pooler.port()), redis.url());
        Client::connect_with(settings().create_quorum(), &urls).unwrap().close().unwrap();
        Self { server, pooler, redis, _dynamodb: dynamodb, urls }
    }

    fn client(&self) -> Client {
        Client::connect_with(settings(), &self.urls).unwrap()
    }
}

fn settings() -> leasehold::ClientBuilder {
    leasehold::Client::builder().max_ttl(PATIENCE).request_timeout(ms(2_000))
}

#[test]
fn stores_of_three_kinds_grant_one_lock_at_a_time() {
    let mixed = Mixed::new();
    four_clients_get_growing_tokens(|| mixed.client());
}

#[test]
fn a_lease_outlives_any_one_of_its_nodes() {
    let mixed = Mixed::new();
    let client = mixed.client();
    let held = client.lock("a").ttl(ms(6_000)).acquire().unwrap();
    let seq = || -> i64 { mixed.server.value("SELECT max(seq) FROM test_1.leasehold") };
    mixed.redis.kill();
    let before = seq();
    eventually("the table renews it without Redis", || seq() > before);
    mixed.redis.restart(redis::Data::Lost);
    mixed.pooler.restart();
    mixed.server.restart();
    let before = seq();
    eventually("it is renewed there again", || seq() > before);
    assert!(mixed.client().lock("a").wait(ms(500)).acquire().is_err());
    held.release().unwrap();
}

#[test]
fn a_run_that_a_majority_marked_is_done() {
    let mixed = Mixed::new();
    let (one, two) = (mixed.client(), mixed.client());
    let begun = |client: &Client| client.once("report").key("monday").ttl(ms(20_000)).begin().unwrap();
    let Once::Run(run) = begun(&one) else { panic!("it is new") };
    run.finish().unwrap();
    assert!(matches!(begun(&two), Once::Done(_)));
    mixed.redis.kill();
    // The node that has not confirmed the mark may still have the lock.
    eventually("the mark is on the others too", || match begun(&two) {
        Once::Done(_) => true,
        Once::Run(run) => panic!("it was done: {run:?}"),
        Once::Running(_) | _ => false,
    });
}
