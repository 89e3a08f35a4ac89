//! Locks that are granted often, by transactions: on a real server, with counters that are lost and rights that are
//! taken away.

use std::time::Duration;

use crate::common::on_redis::{fence_key, is_taken};
use crate::common::{connect_patiently, ms};
use leasehold::ErrorKind;
use leasehold::blocking::Client;
use leasehold_servers::redis::Server;

/// Grants the lock so often that transactions begin. Returns the last token.
fn warm_up(client: &Client) -> u64 {
    let tokens: Vec<u64> = (0..4).map(|_| grant(client)).collect();
    assert!(tokens.is_sorted_by(|a, b| a < b), "{tokens:?}");
    tokens[3]
}

fn grant(client: &Client) -> u64 {
    let lease = client.lock("job").ttl(Duration::from_secs(30)).wait(Duration::from_secs(5)).acquire().unwrap();
    let token = lease.token();
    assert!(lease.release().is_ok());
    token
}

/// The number of transactions that the server has run.
fn transactions(server: &Server) -> u64 {
    let info = server.command(&["INFO", "commandstats"]);
    let line = info.text().lines().find_map(|line| line.strip_prefix("cmdstat_exec:calls=").map(str::to_owned));
    line.and_then(|line| line.split(',').next().map(|calls| calls.parse().unwrap())).unwrap_or(0)
}

#[test]
fn lock_that_is_granted_often_is_taken_by_transactions() {
    let server = Server::start();
    let client = connect_patiently(server.url());
    let mut last = warm_up(&client);
    let before = transactions(&server);
    for _ in 0..20 {
        let token = grant(&client);
        assert!(token > last);
        last = token;
    }
    let after = transactions(&server);
    // A slow machine may take more than a second for some of them.
    assert!(after >= before + 10, "{before} to {after}");
}

#[test]
fn token_grows_after_a_lost_counter() {
    let server = Server::start();
    let client = connect_patiently(server.url());
    let mut last = warm_up(&client);
    for lose in [&["DEL", &fence_key("job")][..], &["SET", &fence_key("job"), "77"], &["FLUSHALL"]] {
        assert!(!server.command(lose).is_error());
        for _ in 0..3 {
            let token = grant(&client);
            assert!(token > last, "{lose:?}: {token} after {last}");
            last = token;
        }
    }
}

#[test]
fn lock_is_not_kept_if_its_counter_is_damaged() {
    let server = Server::start();
    for damage in [&["LPUSH", &fence_key("job"), "x"][..], &["SET", &fence_key("job"), "no number"]] {
        let client = connect_patiently(server.url());
        let last = warm_up(&client);
        server.command(&["DEL", &fence_key("job")]);
        assert!(!server.command(damage).is_error());
        let error = client.lock("job").wait(ms(0)).acquire().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::StoreRefused, "{error}");
        assert!(!is_taken(&server, "job"), "{damage:?}");
        server.command(&["DEL", &fence_key("job")]);
        assert!(grant(&client) > last);
    }
}

#[test]
fn user_without_transactions_is_granted_by_scripts() {
    let server = Server::builder().acl_file("user default off").start();
    let url = format!("redis://worker:hunter2@127.0.0.1:{}/", server.port());
    let allow = |rules: &[&str]| {
        let words = [&["ACL", "SETUSER", "worker", "reset", "on", ">hunter2", "~*", "&*", "+@all"], rules].concat();
        assert!(!server.command(&words).is_error());
    };
    for rule in ["-multi", "-incr", "-exec", "-@transaction"] {
        allow(&[rule]);
        let client = connect_patiently(&url);
        warm_up(&client);
        // The right is taken away from a connection that has used it.
        allow(&[]);
        let client = connect_patiently(&url);
        let mut last = warm_up(&client);
        allow(&[rule]);
        for _ in 0..3 {
            let token = grant(&client);
            assert!(token > last, "{rule}");
            last = token;
        }
        assert!(!is_taken(&server, "job"), "{rule}");
    }
}

#[test]
fn tokens_of_two_clients_grow() {
    let server = Server::start();
    let tokens = std::sync::Mutex::new(Vec::new());
    std::thread::scope(|threads| {
        for _ in 0..2 {
            threads.spawn(|| {
                let client = connect_patiently(server.url());
                for number in 0..60 {
                    let lock = client.lock("job").ttl(Duration::from_secs(30)).wait(Duration::from_secs(60));
                    let lease = lock.acquire().unwrap();
                    tokens.lock().unwrap().push(lease.token());
                    lease.release().unwrap();
                    if number % 10 == 9 {
                        std::thread::sleep(ms(20));
                    }
                }
            });
        }
    });
    let tokens = tokens.into_inner().unwrap();
    assert!(tokens.is_sorted_by(|a, b| a < b), "{tokens:?}");
}
