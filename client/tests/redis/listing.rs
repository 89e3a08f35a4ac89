//! Listing the locks of a Redis that keeps other things too, and of a cluster.

use std::collections::BTreeSet;

use leasehold::ErrorKind;
use leasehold::blocking::Client;
use leasehold_servers::redis::{Cluster, Server};
use leasehold_servers::resp::Reply;

use crate::common::{PATIENCE, ms};

/// The sample of a user with least rights.
const SAMPLE: &str = include_str!("../../../docs/infra/redis.acl");

fn hold(client: &Client, names: &[&str]) -> Vec<leasehold::blocking::Lease> {
    let lock = |name: &&str| client.lock(*name).ttl(ms(600_000)).wait(PATIENCE).acquire().unwrap();
    names.iter().map(lock).collect()
}

#[track_caller]
fn names(client: &Client, prefix: &str) -> BTreeSet<String> {
    client.list(prefix).map(|lock| lock.unwrap().resource).collect()
}

fn set(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(ToString::to_string).collect()
}

#[test]
fn a_million_foreign_keys_cost_no_page_more_than_its_share() {
    let server = Server::start();
    let client = Client::connect(server.url()).unwrap();
    let _held = hold(&client, &["jobs/1", "jobs/2", "other"]);
    for part in 0..10 {
        let fill = "for i = 1, 100000 do redis.call('SET', 'jobs/session:' .. ARGV[1] .. i, i) end";
        server.command(&["EVAL", fill, "0", &format!("{part}:")]);
    }
    let mut listing = client.list("jobs/");
    let (mut pages, mut found) = (0_u64, BTreeSet::new());
    while let Some(page) = listing.page().unwrap() {
        pages += 1;
        found.extend(page.into_iter().map(|lock| lock.resource));
    }
    assert_eq!(found, set(&["jobs/1", "jobs/2"]));
    assert!(pages > 1_000, "{pages} pages for a million keys");
    let looked_at = server.commands_processed("getrange") / pages;
    assert!(looked_at < 1_000, "{looked_at} keys on each page");
    assert_eq!(server.commands_processed("keys"), 0);
}

#[test]
fn hostile_keys_are_left_out() {
    let server = Server::start();
    let client = Client::connect(server.url()).unwrap();
    let held = hold(&client, &["a"]);
    let value = match server.command(&["GET", "a"]) {
        Reply::Bulk(value) => String::from_utf8(value).unwrap(),
        other => panic!("{other:?}"),
    };
    let (nonce, rest) = value.split_at(33);
    server.command(&["SET", &"x".repeat(2 << 20), &value]);
    server.command(&["SET", "a\nline", &value]);
    server.command(&["SET", "", &value]);
    server.command(&["SET", "long", &"y".repeat(2 << 20)]);
    server.command(&["SET", "upper", &value.to_uppercase()]);
    server.command(&["RPUSH", "list", &value]);
    server.command(&["HSET", "hash", "field", &value]);
    server.command(&["EVAL", "redis.call('SET', 'bytes\\255', ARGV[1])", "0", &value]);
    for number in 0..300 {
        server.command(&["SET", &format!("plain:{number}"), "7"]);
    }
    // These begin as ours do.
    server.command(&["SET", "odd", &format!("{nonce}\x01")]);
    server.command(&["SET", "odd counter", &format!("{nonce}{rest}")]);
    server.command(&["HSET", "{odd counter}\x1ffence of name", "a", "1"]);
    let shown: Vec<_> = client.list("").map(Result::unwrap).collect();
    let ours: Vec<_> = shown.iter().filter(|lock| !lock.foreign).map(|lock| lock.resource.as_str()).collect();
    assert!(ours.contains(&"a"), "{shown:?}");
    let foreign: BTreeSet<_> = shown.iter().filter(|lock| lock.foreign).map(|lock| lock.resource.as_str()).collect();
    assert!(foreign.is_subset(&BTreeSet::from(["odd", "odd counter"])), "{shown:?}");
    held[0].check(ms(1)).unwrap();
}

#[test]
fn without_the_right_to_scan_the_server_says_what_is_missing() {
    let sample = SAMPLE.trim().replace("change-me", "secret");
    let users = format!(
        "user default on nopass ~* &* +@all\n{sample}\n{} +scan\n",
        sample.replace("user leasehold", "user seer")
    );
    let server = Server::builder().acl_file(&users).start();
    let connect = |user: &str| Client::connect(format!("redis://{user}:secret@127.0.0.1:{}", server.port())).unwrap();
    let _held = hold(&connect("leasehold"), &["jobs/1"]);
    server.command(&["SET", "theirs", "not for this user"]);
    let error = connect("leasehold").list("").next().unwrap().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::StoreRefused);
    assert!(error.to_string().contains("needs the command SCAN"), "{error}");
    assert_eq!(names(&connect("seer"), ""), set(&["jobs/1"]), "keys that it may not read are not its locks");
}

#[test]
fn all_masters_of_a_cluster_are_listed() {
    let cluster = Cluster::start(3, 0);
    let client = Client::connect(cluster.url()).unwrap();
    let many: Vec<String> = (0..120).map(|number| format!("job/{number}")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    let _held = hold(&client, &many);
    let _other = hold(&client, &["other"]);
    let masters: BTreeSet<u16> = many.iter().map(|name| cluster.master_of(name).port()).collect();
    assert_eq!(masters.len(), 3);
    assert_eq!(names(&client, "job/"), set(&many));
}

#[test]
fn a_server_that_goes_away_midway_is_an_error_and_the_page_can_be_tried_again() {
    let server = Server::start();
    let client = Client::connect(server.url()).unwrap();
    let _held = hold(&client, &["jobs/1"]);
    for number in 0..2_000 {
        server.command(&["SET", &format!("plain:{number}"), "7"]);
    }
    let mut listing = client.list("");
    let first = listing.page().unwrap().unwrap();
    server.stop_process();
    assert_eq!(listing.page().unwrap_err().kind(), ErrorKind::StoreUnavailable);
    server.continue_process();
    let mut found: BTreeSet<String> = first.into_iter().map(|lock| lock.resource).collect();
    while let Some(page) = listing.page().unwrap() {
        found.extend(page.into_iter().map(|lock| lock.resource));
    }
    assert_eq!(found, set(&["jobs/1"]));
}
