//! Locks on a real etcd whose members fail.

#![cfg(feature = "etcd")]
#![allow(clippy::unwrap_used, reason = "these are tests, and their helpers are too")]

use std::time::Duration;

use leasehold::ErrorKind;
use leasehold::blocking::Client;
use leasehold_servers::etcd::Server;
use leasehold_servers::wait_until;

const PATIENCE: Duration = Duration::from_secs(60);

fn client(url: &str) -> Client {
    Client::connect_with(leasehold::Client::builder().request_timeout(Duration::from_secs(10)), url).unwrap()
}

fn url_of(servers: &[Server]) -> String {
    let hosts: Vec<String> = servers.iter().map(|server| server.address().to_string()).collect();
    format!("etcd://{}", hosts.join(","))
}

/// Tells if the lock is known to be held; it is certainly not granted.
fn is_held(client: &Client) -> bool {
    match client.lock("a").try_acquire() {
        Ok(granted) => {
            assert!(granted.is_none(), "somebody else has it");
            true
        }
        Err(error) => {
            assert_eq!(error.kind(), ErrorKind::StoreUnavailable, "{error}");
            false
        }
    }
}

#[test]
fn a_lock_outlives_any_member() {
    let servers: [Server; 3] = Server::cluster(&[]);
    let (holder, other) = (client(&url_of(&servers)), client(&url_of(&servers)));
    let lease = holder.lock("a").ttl(PATIENCE).acquire().unwrap();
    for server in &servers {
        server.kill();
        // Perhaps it led: then the others elect a new leader first.
        wait_until("the others answer", || is_held(&other));
        let next = other.lock("b").wait(PATIENCE).acquire().unwrap();
        next.release().unwrap();
        server.restart();
    }
    let token = lease.token();
    lease.release().unwrap();
    assert!(other.lock("a").wait(PATIENCE).acquire().unwrap().token() > token);
}

#[test]
fn nothing_is_granted_without_a_majority_and_nothing_is_forgotten() {
    let servers: [Server; 3] = Server::cluster(&[]);
    let client = client(&url_of(&servers));
    let lease = client.lock("a").ttl(PATIENCE).acquire().unwrap();
    servers.iter().for_each(Server::kill);
    assert_eq!(client.lock("b").try_acquire().unwrap_err().kind(), ErrorKind::StoreUnavailable);
    servers.iter().for_each(Server::begin_restart);
    wait_until("the cluster has a leader again", || is_held(&client));
    lease.release().unwrap();
}

#[test]
fn a_token_that_is_no_longer_known_is_renewed() {
    let server = Server::start();
    for (path, body) in [
        ("user/add", r#"{"name": "root", "password": "hunter2"}"#),
        ("role/add", r#"{"name": "root"}"#),
        ("user/grant", r#"{"user": "root", "role": "root"}"#),
        ("enable", "{}"),
    ] {
        let response = server.post(&format!("/v3/auth/{path}"), body);
        assert_eq!(response.status, 200, "{}", response.text());
    }
    let with = |login: &str| format!("etcd://{login}{}", server.address());
    for login in ["", "root:wrong@"] {
        let error = Client::connect(with(login)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::StoreRefused, "{error}");
    }
    let client = client(&with("root:hunter2@"));
    client.lock("a").acquire().unwrap().release().unwrap();
    // Members remember tokens as long as they run.
    server.restart();
    client.lock("a").wait(PATIENCE).acquire().unwrap().release().unwrap();
}

#[test]
fn a_key_deleted_by_hand_frees_the_lock_under_a_larger_token() {
    let server = Server::start();
    let client = client(&server.url());
    let first = client.lock("a").acquire().unwrap();
    // The key `leasehold/lock/a`.
    let deleted = server.post("/v3/kv/deleterange", r#"{"key": "bGVhc2Vob2xkL2xvY2svYQ=="}"#);
    assert!(deleted.text().contains("\"deleted\":\"1\""), "{}", deleted.text());
    let second = client.lock("a").wait(PATIENCE).acquire().unwrap();
    assert!(second.token() > first.token());
    second.release().unwrap();
}
