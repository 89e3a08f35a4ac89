//! Answers that get lost, stores that are full, slow or compacted, and hands that meddle.

use leasehold::ErrorKind;
use leasehold::blocking::Once;
use leasehold_servers::etcd::Server;
use leasehold_servers::proxy::{Loss, Proxy, Request};

use crate::common::{PATIENCE, eventually, ms};
use crate::{client, expect_renewal, lease, renewals, within};

const KEY: &str = "leasehold/lock/a";

fn write() -> Request {
    Request::containing("requestPut")
}

#[test]
fn operations_whose_answer_is_lost_count_once() {
    for loss in Loss::ALL {
        let server = Server::start();
        let proxy = Proxy::to(server.address());
        let client = within(&format!("etcd://{}", proxy.address()), ms(1_000));
        lease(&client, "a").release().unwrap();
        let first = lease(&client, "a");
        let fault = proxy.lose(loss, write());
        fault.wait_for_hits(1);
        expect_renewal(&server, "a");
        let fault = proxy.lose(loss, write());
        first.release().unwrap();
        assert!(fault.hits() <= 1, "{loss:?}");
        proxy.pass();
        let fault = proxy.lose(loss, write());
        let second = lease(&client, "a");
        assert!(fault.hits() == 1 && second.token() > first.token(), "{loss:?}");
        // One grant, whatever was sent again.
        assert!(server.get(KEY).contains(&format!("\"counter\":{},", second.token())), "{}", server.get(KEY));
        second.release().unwrap();
        let Once::Run(run) = client.once("report").key("monday").wait(PATIENCE).begin().unwrap() else {
            panic!("it is new")
        };
        let fault = proxy.lose(loss, write());
        run.finish().unwrap();
        assert_eq!(fault.hits(), 1, "{loss:?}");
        assert!(matches!(client.once("report").key("monday").wait(PATIENCE).begin().unwrap(), Once::Done(_)));
    }
}

#[test]
fn connections_that_fell_silent_are_left_after_one_request() {
    let server = Server::start();
    let proxy = Proxy::to(server.address());
    crate::common::silence::is_noticed_once(&proxy, &format!("etcd://{}", proxy.address()));
}

#[test]
fn a_token_that_has_expired_is_renewed_without_a_loss() {
    // Tokens that are not used for a second are forgotten.
    let server = Server::with(&["--auth-token-ttl=1"]);
    crate::access::make_root(&server);
    let client = client(&format!("etcd://root:hunter2@{}", server.address()));
    let held = client.lock("a").ttl(2 * PATIENCE).renew_every(ms(3_000)).acquire().unwrap();
    let seq = || {
        let record = server.etcdctl(&["--user=root:hunter2", "get", "--print-value-only", KEY]);
        let (_, rest) = record.split_once("\"seq\":").unwrap();
        rest.split(|c: char| !c.is_ascii_digit()).next().unwrap().parse::<u32>().unwrap()
    };
    let before = seq();
    eventually("it is renewed twice", || seq() > before + 1);
    assert!(!held.is_lost());
    held.release().unwrap();
}

#[test]
fn a_token_that_is_no_longer_known_is_renewed() {
    let server = Server::start();
    crate::access::make_root(&server);
    let client = client(&format!("etcd://root:hunter2@{}", server.address()));
    client.lock("a").acquire().unwrap().release().unwrap();
    // Members remember tokens as long as they run.
    server.restart();
    client.lock("a").wait(PATIENCE).acquire().unwrap().release().unwrap();
}

#[test]
fn a_compacted_history_is_no_loss() {
    let server = Server::start();
    let (holder, other) = (client(&server.url()), client(&server.url()));
    let held = lease(&holder, "a");
    std::thread::scope(|scope| {
        let waiter = scope.spawn(|| lease(&other, "a"));
        eventually("it is watched", || server.watchers() == 1);
        for _ in 0..3 {
            expect_renewal(&server, "a");
            let status = server.post("/v3/maintenance/status", "{}").text();
            let (_, rest) = status.split_once("\"revision\":\"").unwrap();
            server.etcdctl(&["compact", rest.split('"').next().unwrap()]);
        }
        server.etcdctl(&["defrag"]);
        expect_renewal(&server, "a");
        held.release().unwrap();
        assert!(waiter.join().unwrap().token() > held.token());
    });
}

#[test]
fn a_lease_of_etcd_that_somebody_binds_to_the_key_goes_with_the_next_renewal() {
    let server = Server::start();
    let client = client(&server.url());
    let held = lease(&client, "a");
    let granted = server.etcdctl(&["lease", "grant", "3600"]);
    let id = granted.split_whitespace().nth(1).unwrap().to_owned();
    server.etcdctl(&["put", &format!("--lease={id}"), "--ignore-value", KEY]);
    expect_renewal(&server, "a");
    server.etcdctl(&["lease", "revoke", &id]);
    expect_renewal(&server, "a");
    // Revoked before the next renewal, it takes the key with it.
    let granted = server.etcdctl(&["lease", "grant", "3600"]);
    let id = granted.split_whitespace().nth(1).unwrap().to_owned();
    let quiet = client.lock("b").ttl(ms(30_000)).renew_every(ms(9_000)).acquire().unwrap();
    server.etcdctl(&["put", &format!("--lease={id}"), "--ignore-value", "leasehold/lock/b"]);
    server.etcdctl(&["lease", "revoke", &id]);
    eventually("the loss is told", || quiet.is_lost());
    assert!(lease(&client, "b").token() > quiet.token());
    held.release().unwrap();
}

#[test]
fn a_key_deleted_by_hand_is_a_loss_and_the_next_token_is_larger() {
    let server = Server::start();
    let (one, two) = (client(&server.url()), client(&server.url()));
    let held = lease(&one, "a");
    assert_eq!(server.etcdctl(&["del", KEY]).trim(), "1");
    eventually("the loss is told", || held.is_lost());
    assert!(lease(&two, "a").token() > held.token());
}

#[test]
fn a_record_edited_by_hand_is_never_free() {
    let server = Server::start();
    let (one, two) = (client(&server.url()), client(&server.url()));
    let held = lease(&one, "a");
    // What this version does not know stays, and does no harm.
    let record = server.get(KEY);
    server.etcdctl(&["put", KEY, &record.replacen('{', "{\"note\":\"kept\",", 1)]);
    eventually("it is renewed all the same", || {
        let now = server.get(KEY);
        now.contains("kept") && now != record && renewals(&server, "a") > 1
    });
    expect_renewal(&server, "a");
    assert!(server.get(KEY).contains("kept") && !held.is_lost());
    for odd in ["", "free", "{}", "{\"counter\":1,\"lease\":{\"nonce\":1}}"] {
        server.etcdctl(&["put", KEY, "--", odd]);
        let error = two.lock("a").wait(ms(500)).acquire().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::StoreRefused, "{odd}: {error}");
        assert!(error.to_string().contains("delete the key by hand"), "{odd}: {error}");
    }
    server.etcdctl(&["put", KEY, &record]);
    assert!(two.lock("a").try_acquire().unwrap().is_none(), "the holder of the record has it again");
}

#[test]
fn a_full_etcd_takes_no_locks_and_says_what_to_do() {
    let server = Server::with(&["--quota-backend-bytes=300000"]);
    let (one, two) = (client(&server.url()), client(&server.url()));
    let held = one.lock("a").ttl(3 * PATIENCE).acquire().unwrap();
    let large = "x".repeat(60_000);
    let body = format!(r#"{{"key": "bGFyZ2U=", "value": "{large}"}}"#);
    eventually("it is full", || server.post("/v3/kv/put", &body).status == 429);
    let error = two.lock("b").wait(ms(500)).acquire().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::StoreUnavailable, "{error}");
    assert!(error.to_string().contains("etcdctl alarm disarm"), "{error}");
    assert!(two.lock("a").try_acquire().unwrap().is_none(), "it can still be read");
    assert!(!held.is_lost());
    let status = server.post("/v3/maintenance/status", "{}").text();
    let (_, rest) = status.split_once("\"revision\":\"").unwrap();
    server.etcdctl(&["compact", rest.split('"').next().unwrap()]);
    server.etcdctl(&["defrag"]);
    server.etcdctl(&["alarm", "disarm"]);
    lease(&two, "b").release().unwrap();
    held.release().unwrap();
}

#[test]
fn a_slow_disk_costs_time_and_no_lease() {
    let server = Server::start();
    let proxy = Proxy::to(server.address());
    let client = client(&format!("etcd://{}", proxy.address()));
    let hold = |name: &str| client.lock(name).ttl(ms(30_000)).renew_every(ms(2_000)).wait(PATIENCE).acquire().unwrap();
    let held = hold("a");
    proxy.delay(ms(700));
    for _ in 0..3 {
        expect_renewal(&server, "a");
    }
    hold("b").release().unwrap();
    assert!(!held.is_lost());
    held.release().unwrap();
}

#[test]
fn what_a_proxy_sends_twice_counts_once() {
    let server = Server::start();
    let proxy = Proxy::to(server.address());
    let url = format!("etcd://{}", proxy.address());
    crate::common::twice::whatever_is_sent_twice_counts_once(&proxy, &url, Request::containing("requestPut"));
}
