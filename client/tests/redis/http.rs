//! Redis behind HTTP, seen from outside: locks over Upstash's REST interface and over Webdis.

use std::time::Duration;

use crate::common::{PATIENCE, connect_patiently, eventually, ms};
use leasehold::blocking::Client;
use leasehold::{ErrorKind, StoreUrl};
use leasehold_servers::proxy::Proxy;
use leasehold_servers::rest::{self, Misbehave};
use leasehold_servers::{redis, webdis};

fn url_of(server: &rest::Server) -> String {
    format!("upstash+http://:{}@{}", server.token(), server.address())
}

/// Runs a test over both, each with a Redis of its own.
fn dialects(test: impl Fn(&str, &redis::Server)) {
    let redis = redis::Server::start();
    let server = rest::Server::start(&redis);
    test(&url_of(&server), &redis);
    let redis = redis::Server::start();
    let server = webdis::Server::start(&redis);
    test(&format!("webdis+http://{}", server.address()), &redis);
}

#[test]
fn a_lock_is_exclusive_shown_and_released() {
    dialects(|url, redis| {
        let (one, two) = (connect_patiently(url), connect_patiently(url));
        let first = one.lock("invoice/42").owner("one & only %/é").data(b"\0\xff step 3").acquire().unwrap();
        assert!(two.lock("invoice/42").try_acquire().unwrap().is_none());
        let error = two.lock("invoice/42").wait(Duration::ZERO).acquire().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Busy);
        let info = two.inspect("invoice/42").unwrap().unwrap();
        assert_eq!((info.owner.as_deref(), info.token), (Some("one & only %/é"), Some(first.token())));
        assert_eq!(info.data.as_deref(), Some(b"\0\xff step 3".as_slice()));
        assert!(info.left.unwrap() <= Duration::from_secs(60) && !info.foreign);
        first.release().unwrap();
        assert!(two.inspect("invoice/42").unwrap().is_none());
        assert!(two.lock("invoice/42").acquire().unwrap().token() > first.token());
        redis.command(&["SET", "theirs", "\u{1}\u{2} of another library", "PX", "60000"]);
        let error = one.lock("theirs").wait(Duration::ZERO).acquire().unwrap_err();
        assert!(error.kind() == ErrorKind::Busy && error.holder().unwrap().foreign, "{error}");
    });
}

#[test]
fn a_waiter_gets_the_lock_without_wake_ups() {
    dialects(|url, _| {
        let (one, two) = (Client::connect(url).unwrap(), Client::connect(url).unwrap());
        let lease = one.lock("job").acquire().unwrap();
        let waiter = std::thread::spawn(move || two.lock("job").wait(PATIENCE).acquire().map(|lease| lease.token()));
        let token = lease.token();
        drop(lease);
        assert!(waiter.join().unwrap().unwrap() > token);
        eventually("the lock is free", || one.inspect("job").unwrap().is_none());
    });
}

#[test]
fn renewals_keep_a_lease_and_its_loss_is_reported() {
    dialects(|url, redis| {
        let client = Client::connect(url).unwrap();
        let leases: Vec<_> =
            (0..5).map(|number| client.lock(format!("job-{number}")).ttl(ms(2_000)).acquire().unwrap()).collect();
        let before = redis.commands_processed("pexpire");
        eventually("all are renewed more than once", || redis.commands_processed("pexpire") > before + 15);
        for lease in &leases {
            lease.check(ms(1)).unwrap();
        }
        redis.command(&["DEL", "job-3"]);
        eventually("the loss is noticed", || leases[3].is_lost());
        assert!(!leases[2].is_lost());
    });
}

#[test]
fn async_callers_use_their_own_runtime() {
    dialects(|url, _| {
        let url = url.to_owned();
        for _ in 0..2 {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let client = leasehold::Client::connect(&url).await.unwrap();
                let lease = client.lock("job").wait(PATIENCE).await.unwrap();
                lease.release().await.unwrap();
                assert!(client.inspect("job").await.unwrap().is_none());
            });
        }
    });
}

#[test]
fn a_grant_whose_answer_was_lost_is_found_again() {
    for misbehave in [Misbehave::CloseAfterApplying, Misbehave::HalfBody] {
        let redis = redis::Server::start();
        let server = rest::Server::start(&redis);
        let client = Client::connect(url_of(&server)).unwrap();
        client.lock("warm-up").acquire().unwrap().release().unwrap();
        server.misbehave_on("job", misbehave);
        let lease = client.lock("job").acquire().unwrap();
        assert_eq!(server.misbehaviours_left(), 0);
        // Had it been granted twice, the counter would have gone on.
        assert_eq!(redis.command(&["GET", "{job}\u{1f}fence of name"]).text(), lease.token().to_string());
        assert!(client.lock("job").try_acquire().unwrap().is_none());
        lease.release().unwrap();
        assert!(client.inspect("job").unwrap().is_none());
    }
}

#[test]
fn a_release_and_a_renewal_whose_answers_were_lost_are_settled() {
    let redis = redis::Server::start();
    let server = rest::Server::start(&redis);
    let client = Client::connect(url_of(&server)).unwrap();
    let lease = client.lock("job").ttl(ms(2_000)).acquire().unwrap();
    server.misbehave_on("job", Misbehave::CloseAfterApplying);
    eventually("a renewal has met it", || server.misbehaviours_left() == 0);
    let before = redis.commands_processed("pexpire");
    eventually("renewals go on", || redis.commands_processed("pexpire") > before + 3);
    lease.check(ms(1)).unwrap();
    lease.release().unwrap();

    let lease = client.lock("job").no_renewal().acquire().unwrap();
    server.misbehave_on("job", Misbehave::CloseAfterApplying);
    lease.release().unwrap();
    assert_eq!(server.misbehaviours_left(), 0);
    assert!(client.inspect("job").unwrap().is_none());
}

#[test]
fn a_passing_fault_is_waited_out() {
    let redis = redis::Server::start();
    let server = rest::Server::start(&redis);
    let client = Client::connect(url_of(&server)).unwrap();
    let passing = [
        Misbehave::Status(500, r#"{"error":"oops"}"#.into()),
        Misbehave::Status(503, String::new()),
        Misbehave::Html,
        Misbehave::Large(2 << 20),
        Misbehave::CloseBeforeAnswer,
        Misbehave::Hang,
    ];
    for (number, misbehave) in passing.into_iter().enumerate() {
        let name = format!("job-{number}");
        server.misbehave_on(&name, misbehave);
        client.lock(&name).wait(PATIENCE).acquire().unwrap().release().unwrap();
    }
}

#[test]
fn a_lasting_fault_is_reported_at_once() {
    let redis = redis::Server::start();
    let server = rest::Server::start(&redis);
    let client = Client::connect(url_of(&server)).unwrap();
    for (number, (misbehave, words)) in [
        (Misbehave::Status(401, r#"{"error":"WRONGPASS"}"#.into()), "token"),
        (Misbehave::Status(405, String::new()), "POST"),
        (Misbehave::Redirect("http://elsewhere.invalid/".into()), "elsewhere.invalid"),
    ]
    .into_iter()
    .enumerate()
    {
        let name = format!("job-{number}");
        server.misbehave_on(&name, misbehave);
        let error = client.lock(&name).wait(PATIENCE).acquire().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::StoreRefused);
        assert!(error.to_string().contains(words) && !error.to_string().contains(server.token()), "{error}");
    }
}

#[test]
fn a_wrong_token_is_told_when_connecting_and_shown_nowhere() {
    let redis = redis::Server::start();
    let server = rest::Server::start(&redis);
    let url: StoreUrl = format!("upstash+http://:hunter2-not-the-token@{}", server.address()).parse().unwrap();
    let error = Client::connect(url.to_string().replace("://", "://:hunter2-not-the-token@")).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::StoreRefused);
    assert!(error.to_string().contains("refuses the token"), "{error}");
    for shown in [format!("{error}"), format!("{error:?}"), format!("{url}"), format!("{url:?}")] {
        assert!(!shown.contains("hunter2-not-the-token"), "{shown}");
    }
    assert_eq!(server.requests(), 1);
}

#[test]
fn webdis_without_its_redis_is_unavailable_and_comes_back() {
    let redis = redis::Server::start();
    let server = webdis::Server::start(&redis);
    let url = format!("webdis+http://{}", server.address());
    let client = Client::connect(&url).unwrap();
    redis.kill();
    let error = client.lock("job").wait(ms(300)).acquire().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::StoreUnavailable, "{error}");
    redis.restart(redis::Data::Lost);
    eventually("the lock is to be had", || client.lock("job").wait(ms(500)).acquire().is_ok());
}

#[test]
fn connections_that_fell_silent_are_left_after_one_request() {
    let redis = redis::Server::start();
    let server = rest::Server::start(&redis);
    let proxy = Proxy::to(server.address());
    crate::common::silence::is_noticed_once(&proxy, &format!("upstash+http://:{}@{}", server.token(), proxy.address()));
}
