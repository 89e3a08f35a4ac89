//! Two clients of one Redis, over a connection and over HTTP.

use std::time::Duration;

use leasehold_core::config::Wait;
use leasehold_core::{Event, Failure, LostReason};
use leasehold_wire::client::{Access, RedisStore, Response, Store};
use leasehold_wire::redis::Replicas;
use leasehold_wire::resp::Value;
use leasehold_wire::rest::Dialect;

use super::common::{Host, bearer, header, lost, not_sent, redis_http};
use super::redis_server::RedisServer;

/// All ways to the same server.
fn ways() -> [(Store, Store); 3] {
    let connection = || Store::Redis(RedisStore::default());
    let upstash = || redis_http(Dialect::Upstash, Access::Anonymous);
    let webdis = || redis_http(Dialect::Webdis, Access::Anonymous);
    [(connection(), upstash()), (upstash(), webdis()), (webdis(), connection())]
}

#[test]
fn one_holds_and_the_other_waits_for_its_turn() {
    for (one, other) in ways() {
        let mut server = RedisServer::default();
        let (mut one, mut other) = (Host::new(1, vec![one]), Host::new(2, vec![other]));
        one.acquire(1, Wait::Forever);
        server.serve(&mut one);
        let first = one.token().expect("the lock is free");

        other.acquire(1, Wait::Once);
        server.serve(&mut other);
        let Event::Failed { failure: Failure::Busy { holding: Some(holding) }, .. } = other.last_event() else {
            panic!("{:?}", other.events)
        };
        assert_eq!(holding.owner.as_ref().map(|owner| owner.as_str()), Some("me"));
        assert_eq!(holding.counter.map(|counter| counter.get()), Some(first));

        one.sleep();
        server.serve(&mut one);
        assert!(matches!(one.last_event(), Event::Renewed { .. }), "{:?}", one.events);
        one.release(1);
        server.serve(&mut one);
        assert!(matches!(one.last_event(), Event::Released { confirmed: true, .. }), "{:?}", one.events);
        assert!(one.client.is_idle());

        other.acquire(2, Wait::Forever);
        server.serve(&mut other);
        assert!(other.token() > Some(first));
    }
}

#[test]
fn renewals_travel_together() {
    let mut server = RedisServer::default();
    let mut host = Host::new(1, vec![redis_http(Dialect::Upstash, Access::Anonymous)]);
    for lock in 0..20 {
        host.acquire_named(lock, &format!("lock {lock}"), Wait::Forever);
        server.serve(&mut host);
    }
    server.ran.clear();
    host.sleep();
    assert_eq!(host.http.len(), 1);
    server.serve(&mut host);
    assert_eq!(server.ran, ["renew"]);
    assert_eq!(host.events.iter().filter(|event| matches!(event, Event::Renewed { .. })).count(), 20);
}

#[test]
fn a_grant_whose_reply_was_lost_is_found_again() {
    for (store, _) in ways() {
        let mut server = RedisServer::default();
        let mut host = Host::new(1, vec![store]);
        // So that the server knows the script, and does in the first round what it is told.
        host.acquire_named(1, "another", Wait::Forever);
        server.serve(&mut host);
        host.acquire(2, Wait::Forever);
        let id = match (host.commands.pop_front(), host.http.pop_front()) {
            (Some(commands), None) => {
                server.run(&commands.commands[0]);
                commands.id
            }
            (None, Some(request)) => {
                server.serve_http(&request);
                request.id
            }
            both => panic!("{both:?}"),
        };
        host.answer(id, lost());
        while host.events.len() < 2 {
            host.sleep();
            server.serve(&mut host);
        }
        assert!(matches!(host.last_event(), Event::Acquired { .. }), "{:?}", host.events);
        // The answer comes after all, twice.
        let ignored = host.client.stats().ignored_responses;
        host.answer(id, lost());
        host.answer(id, Response::Redis(Vec::new()));
        assert_eq!(host.client.stats().ignored_responses, ignored + 2);
        assert_eq!(host.events.len(), 2);
    }
}

#[test]
fn what_was_not_sent_is_tried_again_and_leaves_nothing_behind() {
    let mut host = Host::new(1, vec![Store::Redis(RedisStore::default())]);
    host.acquire(1, Wait::Once);
    let id = host.commands.pop_front().unwrap().id;
    host.answer(id, not_sent());
    assert!(matches!(host.last_event(), Event::Failed { failure: Failure::Unavailable(_), .. }), "{:?}", host.events);
    assert!(host.client.is_idle() && host.commands.is_empty());
}

#[test]
fn a_node_of_a_cluster_is_refused() {
    let mut host = Host::new(1, vec![Store::Redis(RedisStore::default())]);
    host.acquire(1, Wait::Forever);
    let id = host.commands.pop_front().unwrap().id;
    host.answer(id, Response::Redis(vec![Value::Error("MOVED 3999 127.0.0.1:6381".into())]));
    let Event::Failed { failure: Failure::Refused(denial), .. } = host.last_event() else {
        panic!("{:?}", host.events)
    };
    assert!(denial.detail.contains("Cluster"));
}

#[test]
fn replicas_are_asked_in_the_same_breath() {
    let store = Store::Redis(RedisStore { replicas: Some(Replicas { count: 2 }), ..RedisStore::default() });
    let mut host = Host::new(1, vec![store]);
    host.acquire(1, Wait::Forever);
    let asked = host.commands.pop_front().unwrap();
    let names: Vec<&[u8]> = asked.commands.iter().map(|command| command.name()).collect();
    assert_eq!(names, [&b"EVAL"[..], b"WAIT"]);
    let granted = RedisServer::default().run(&asked.commands[0]);
    host.answer(asked.id, Response::Redis(vec![granted, Value::Integer(2)]));
    assert!(host.token().is_some(), "{:?}", host.events);
}

#[test]
fn a_lease_that_nobody_renews_is_lost_by_the_clock() {
    let mut server = RedisServer::default();
    let mut host = Host::new(1, vec![redis_http(Dialect::Webdis, Access::Anonymous)]);
    host.acquire(1, Wait::Forever);
    server.serve(&mut host);
    // Requests leave and are never answered.
    while !matches!(host.last_event(), Event::Lost { .. }) {
        host.sleep();
    }
    assert!(matches!(host.last_event(), Event::Lost { reason: LostReason::Expired, .. }));
    assert!(host.client.stats().timed_out_requests > 1);
}

#[test]
fn a_password_stands_in_the_header_as_http_wants_it() {
    use leasehold_wire::client::{Credentials, PasswordLogin};
    let mut host = Host::new(1, vec![redis_http(Dialect::Webdis, Access::WithCredentials)]);
    host.acquire(1, Wait::Forever);
    assert!(host.http.is_empty());
    let login = PasswordLogin { user: "Aladdin".into(), password: "open sesame".into() };
    host.give(0, Credentials::Password(login));
    assert_eq!(header(&host.http[0], "authorization"), Some("Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ=="));
    host.pass(Duration::from_millis(1));
    host.give(0, bearer("another"));
    host.acquire_named(2, "b", Wait::Forever);
    assert_eq!(header(&host.http[1], "authorization"), Some("Bearer another"));
}
