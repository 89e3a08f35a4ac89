//! Quorums of tables and Redis servers: one list of nodes, whatever they are made of.

use std::sync::Arc;
use std::time::Duration;

use crate::common::on_dynamodb::{attribute, counter, is_held, new_url, row, table_of, through};
use crate::common::on_redis::is_taken;
use crate::common::quorum::LONG_TTL;
use crate::common::{PATIENCE, eventually, ms};
use crate::gateway::{Gateway, describing, operation};
use crate::{new_table, server};
use leasehold::blocking::{Client, Lease};
use leasehold::quorum::{Force, Init, Quorum, Standing};
use leasehold::table::{self, NewTable};
use leasehold::{ClientBuilder, ErrorKind};
use leasehold_servers::dynamodb::Server;
use leasehold_servers::proxy::{Proxy, Request};
use leasehold_servers::redis;
use serde_json::{Value, json};

/// A table's vote is two requests, one after the other, so that they get more time than those of a Redis.
const MAX_TTL: Duration = ms(5_000);
const TTL: Duration = MAX_TTL;

fn settings() -> ClientBuilder {
    leasehold::Client::builder().max_ttl(MAX_TTL).quorum_id("of these tests").request_timeout(ms(1_000))
}

const MARKER: &str = "leasehold\u{1f}quorum";

/// Two tables and a Redis, each behind a proxy.
struct Nodes {
    server: Server,
    tables: [String; 2],
    redis: redis::Server,
    proxies: [Proxy; 3],
}

impl Nodes {
    fn start() -> Self {
        let (server, redis) = (server(), redis::Server::start());
        let tables = [new_table(&server), new_table(&server)];
        let proxies = [server.address(), server.address(), redis.address()].map(Proxy::to);
        Self { server, tables, redis, proxies }
    }

    /// Through the proxies.
    fn urls(&self) -> [String; 3] {
        let [a, b] = &self.tables;
        let [to_a, to_b, to_redis] = &self.proxies;
        [through(a, to_a.address()), through(b, to_b.address()), self.redis.url_at(to_redis.port())]
    }

    /// Past them.
    fn direct(&self) -> [String; 3] {
        let [a, b] = self.tables.clone();
        [a, b, self.redis.url()]
    }

    fn create(&self, settings: ClientBuilder) -> Client {
        Client::connect_with(settings.create_quorum(), self.urls()).unwrap()
    }

    fn row(&self, table: usize, name: &str) -> Value {
        row(&self.server, &self.tables[table], name)
    }

    fn taken(&self, name: &str) -> [bool; 3] {
        [is_held(&self.row(0, name)), is_held(&self.row(1, name)), is_taken(&self.redis, name)]
    }

    fn standings(&self) -> Vec<Standing> {
        let quorum = Quorum::connect(&settings(), self.direct()).unwrap();
        quorum.status().iter().map(|status| status.standing).collect()
    }

    /// All that a table knows.
    fn remove_rows(&self, table: usize) {
        for name in [MARKER, "job"] {
            let key = json!({"key": {"S": name}});
            self.server.command("DeleteItem", &json!({"TableName": table_of(&self.tables[table]), "Key": key}));
        }
    }

    fn set_away(&self, node: usize) {
        self.proxies[node].refuse();
        self.proxies[node].cut_all();
    }
}

fn acquire(client: &Client, ttl: Duration) -> Lease {
    client.lock("job").ttl(ttl).wait(PATIENCE).acquire().unwrap()
}

#[test]
fn tables_and_a_redis_are_one_quorum() {
    let nodes = Nodes::start();
    let patient = || settings().max_ttl(LONG_TTL).request_timeout(ms(10_000));
    let one = nodes.create(patient());
    let two = Client::connect_with(patient(), nodes.direct()).unwrap();
    let mut lease = acquire(&one, ms(20_000));
    eventually("all have it", || nodes.taken("job") == [true; 3]);
    let error = two.lock("job").wait(ms(3_000)).acquire().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TimedOut, "{error}");
    let raised = |lease: &Lease| [0, 1].map(|table| counter(&nodes.row(table, "job")) == lease.token());
    assert!(raised(&lease).contains(&true), "a majority has the token");
    // A table that grants after the majority may keep a lower counter, which this holder does not raise: a later one does.
    eventually("their counters are raised", || {
        if raised(&lease) == [true; 2] {
            return true;
        }
        lease.release().unwrap();
        lease = acquire(&one, ms(20_000));
        eventually("all have it", || nodes.taken("job") == [true; 3]);
        false
    });
    let info = two.inspect("job").unwrap().unwrap();
    assert_eq!((info.token, info.votes, info.nodes), (Some(lease.token()), 3, 3));
    lease.release().unwrap();
    eventually("nothing is left behind", || nodes.taken("job") == [false; 3]);
    // Each of them away once, and the next caller through the others.
    let mut token = lease.token();
    for away in 0..3 {
        nodes.set_away(away);
        for _ in 0..2 {
            let lease = acquire(&one, ms(20_000));
            assert!(lease.token() > token, "without node {away}: {} after {token}", lease.token());
            token = lease.token();
            assert!(two.lock("job").try_acquire().unwrap().is_none(), "without node {away}");
            lease.release().unwrap();
        }
        nodes.proxies[away].pass();
        let lease = acquire(&two, ms(20_000));
        assert!(lease.token() > token, "with node {away} again: {} after {token}", lease.token());
        token = lease.token();
        lease.release().unwrap();
    }
    // The table that stays would show a lease whose release is still on its way.
    eventually("nothing is left behind", || nodes.taken("job") == [false; 3]);
    nodes.set_away(0);
    nodes.set_away(2);
    let error = one.lock("job").wait(ms(1_000)).acquire().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::StoreUnavailable, "{error}");
    for node in [0, 2] {
        nodes.proxies[node].pass();
    }
    assert!(acquire(&one, ms(20_000)).token() > token);
}

#[test]
fn a_lease_outlives_a_table_that_is_away_and_ends_with_the_majority() {
    let nodes = Nodes::start();
    let client = nodes.create(settings());
    let lease = acquire(&client, TTL);
    nodes.set_away(1);
    let version = || attribute(&nodes.row(0, "job"), "recordVersionNumber").to_owned();
    for _ in 0..3 {
        let before = version();
        eventually("the others renew it", || version() != before);
    }
    lease.check(ms(1)).unwrap();
    nodes.set_away(0);
    assert_eq!(lease.lost().kind(), ErrorKind::Lost);
}

/// Something takes a table's memory while a lease is held: the lease stands, and the node comes back.
fn survives(what: impl Fn(&Nodes)) {
    let nodes = Nodes::start();
    let client = nodes.create(settings());
    let other = Client::connect_with(settings(), nodes.direct()).unwrap();
    let lease = acquire(&client, TTL);
    eventually("all have it", || nodes.taken("job") == [true; 3]);
    what(&nodes);
    // The holder's next renewal, or the next caller, marks it.
    let standings = nodes.standings();
    assert!(matches!(standings[1], Standing::Unmarked | Standing::Joining), "{standings:?}");
    assert_eq!((standings[0], standings[2]), (Standing::Member, Standing::Member));
    let nobody_gets_it =
        || assert!(!matches!(other.lock("job").ttl(TTL).try_acquire(), Ok(Some(_))), "it is held all the time");
    nobody_gets_it();
    eventually("it votes again", || {
        nobody_gets_it();
        nodes.standings()[1] == Standing::Rejoined
    });
    lease.check(ms(1)).unwrap();
    eventually("the record is back", || nodes.taken("job") == [true; 3]);
    lease.release().unwrap();
    let mut token = lease.token();
    for client in [&other, &client, &other] {
        let lease = acquire(client, TTL);
        assert!(lease.token() > token);
        token = lease.token();
        lease.release().unwrap();
    }
    // Now without one that has forgotten nothing: tables that remember less must not decide alone.
    nodes.set_away(0);
    if let Ok(Some(lease)) = client.lock("job").ttl(TTL).try_acquire() {
        assert!(lease.token() > token);
        token = lease.token();
        lease.release().unwrap();
    }
    nodes.proxies[0].pass();
    assert!(acquire(&client, TTL).token() > token);
}

#[test]
fn a_table_that_is_made_anew_abstains_and_comes_back() {
    survives(|nodes| {
        let url = &nodes.tables[1];
        nodes.server.command("DeleteTable", &json!({"TableName": table_of(url)}));
        table::create(url, &NewTable::default()).unwrap();
    });
}

#[test]
fn a_table_whose_rows_were_removed_abstains_and_comes_back() {
    survives(|nodes| nodes.remove_rows(1));
}

/// A write of the holder while the table abstains is undone. This must not keep the holder out once the table votes.
#[test]
fn a_holder_without_rivals_repairs_one_table_after_the_other() {
    let nodes = Nodes::start();
    let client = nodes.create(settings());
    let lease = acquire(&client, TTL);
    for table in [1, 0] {
        eventually("all have it", || nodes.taken("job") == [true; 3]);
        nodes.remove_rows(table);
        eventually("it was undone", || nodes.row(table, "job")["undoneVersion"].is_object());
        eventually("it votes again", || nodes.standings()[table] == Standing::Rejoined);
        eventually("the record is back", || nodes.taken("job") == [true; 3]);
    }
    lease.check(ms(1)).unwrap();
    lease.release().unwrap();
}

#[test]
fn tables_are_marked_with_the_others_or_not_and_are_no_stores_of_their_own_then() {
    let nodes = Nodes::start();
    let init = || Quorum::connect(&settings(), nodes.urls()).unwrap().init(Force::No);
    let lost = nodes.proxies[2].reset_before_forwarding(Request::containing("return {'marked'"));
    let error = init().unwrap_err();
    assert!(error.to_string().contains("no node was changed"), "{error}");
    assert_eq!((lost.hits(), nodes.standings()), (1, vec![Standing::Unmarked; 3]));
    let single = || Client::connect(&nodes.tables[0]);
    single().unwrap();
    assert_eq!(init().unwrap(), Init::Marked { nodes: 3, left_out: vec![] });
    let error = single().unwrap_err();
    assert!(error.kind() == ErrorKind::Config && error.to_string().contains("is a node of the quorum"), "{error}");
}

#[test]
fn tables_are_marked_once_and_shown() {
    let server = server();
    let urls: [String; 3] = std::array::from_fn(|_| new_table(&server));
    let settings = || leasehold::Client::builder().max_ttl(MAX_TTL);
    let look = || Quorum::connect(&settings(), &urls).unwrap();
    let standings = || look().status().iter().map(|status| status.standing).collect::<Vec<_>>();
    assert_eq!(standings(), [Standing::Unmarked; 3]);
    let Init::Marked { nodes: 3, left_out } = look().init(Force::No).unwrap() else { panic!("it is new") };
    assert!(left_out.is_empty());
    assert_eq!(look().init(Force::No).unwrap(), Init::Exists);
    assert_eq!(standings(), [Standing::Member; 3]);
    let status = &look().status()[0];
    assert_eq!((status.quorum.as_deref(), status.max_ttl), (Some(look().id().as_str()), Some(MAX_TTL)));
    assert!(status.name.contains(table_of(&urls[0])), "{}", status.name);
    // Java's client lists it as a released lock.
    let marker = row(&server, &urls[0], MARKER);
    for (name, kind) in [("ownerName", "S"), ("leaseDuration", "S"), ("recordVersionNumber", "S"), ("isReleased", "S")]
    {
        assert!(marker[name][kind].is_string(), "{name} in {marker}");
    }
    assert_eq!(marker["isReleased"]["S"], "1");
    let lease = acquire(&Client::connect_with(settings(), &urls).unwrap(), TTL);
    lease.check(ms(1)).unwrap();
    let error = Client::connect_with(settings().max_ttl(2 * MAX_TTL), &urls).unwrap_err();
    assert!(error.kind() == ErrorKind::Config && error.to_string().contains("max_ttl"), "{error}");
    let missing = [urls[0].clone(), urls[1].clone(), new_url(&server)];
    let quorum = Quorum::connect(&settings(), &missing).unwrap();
    assert_eq!(quorum.status()[2].standing, Standing::Refused);
    assert!(quorum.status()[2].meaning.contains("table create"), "{}", quorum.status()[2].meaning);
}

#[test]
fn one_table_under_two_names_is_refused_and_namesakes_in_other_regions_are_not() {
    let server = server();
    let url = new_table(&server);
    let elsewhere = |region: &str| {
        let url = url.replace("region=eu-west-1", &format!("region={region}"));
        table::create(&url, &NewTable::default()).unwrap();
        url
    };
    let namesakes = [url.clone(), elsewhere("us-east-1"), elsewhere("ap-southeast-2")];
    let settings = || leasehold::Client::builder().max_ttl(MAX_TTL).create_quorum();
    let client = Client::connect_with(settings(), &namesakes).unwrap();
    acquire(&client, TTL).release().unwrap();
    let tables: [String; 2] = std::array::from_fn(|_| new_table(&server));
    let server = Arc::new(server);
    // DynamoDB Local gives its tables no ids; DynamoDB does.
    let gateways: [Gateway; 2] = std::array::from_fn(|_| Gateway::before(&server));
    for gateway in &gateways {
        let described = || describing(&json!({"TableId": "b5c6d7e8-0000-4000-8000-000000000001"}));
        gateway.answer(move |request| (operation(request) == Some("DescribeTable")).then(described));
    }
    let [one, same] = gateways.each_ref().map(|gateway| through(&tables[0], gateway.address()));
    for (doubled, words) in [
        ([&one, &tables[1], &same], "the same table under two names"),
        ([&tables[0], &tables[1], &tables[0]], "named twice"),
    ] {
        let error = Client::connect_with(settings(), doubled).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Config, "{error}");
        assert!(error.to_string().contains(words) && error.to_string().contains(table_of(&tables[0])), "{error}");
    }
}
