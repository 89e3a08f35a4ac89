//! Credentials that are missing, expire, are refused, come late, or are no good.

use std::time::Duration;

use leasehold_core::config::Wait;
use leasehold_core::{Event, Failure, NodeId};
use leasehold_wire::client::{Access, AwsCredentials, Credentials, PasswordLogin, RedisStore, Response, Store};
use leasehold_wire::resp::Value;
use leasehold_wire::rest::Dialect;
use leasehold_wire::sigv4;

use super::common::{Host, UNIX_MS, aws, bearer, dynamodb_store, header, http, lost, not_sent, redis_http};
use super::redis_server::RedisServer;

const EXPIRED: &str =
    r#"{"__type":"com.amazonaws.dynamodb.v20120810#ExpiredTokenException","message":"The token has expired"}"#;

const SKEWED: &str = r#"{"__type":"com.amazon.coral.service#RequestTimeTooSkewed","message":"Signature expired"}"#;

fn dynamodb() -> Host {
    Host::new(1, vec![Store::Dynamodb(dynamodb_store())])
}

/// Returns the id of the key that the request was signed with.
fn key(host: &Host, at: usize) -> &str {
    let authorization = header(&host.http[at], "authorization").unwrap();
    let (_, rest) = authorization.split_once("Credential=").unwrap();
    rest.split('/').next().unwrap()
}

#[test]
fn requests_wait_for_the_first_credentials() {
    let mut host = dynamodb();
    host.acquire(1, Wait::Forever);
    host.acquire_named(2, "another", Wait::Forever);
    assert!(host.http.is_empty());
    assert_eq!(host.asked, [0], "once for all of them");
    host.pass(Duration::from_millis(300));
    host.give(0, aws("AKIDFIRST", None));
    assert_eq!(host.http.len(), 2);
    assert_eq!((key(&host, 0), key(&host, 1)), ("AKIDFIRST", "AKIDFIRST"));
    // Signed when it left, not when it was asked for.
    assert_eq!(header(&host.http[0], "x-amz-date"), Some("20231114T221320Z"));
    assert_eq!(header(&host.http[0], "x-amz-security-token"), Some("a-session-token"));
    assert_eq!(host.asked, [0]);
}

#[test]
fn a_request_is_signed_by_the_clock_of_the_moment_it_leaves() {
    let mut host = dynamodb();
    host.acquire(1, Wait::Forever);
    host.now.unix_ms += 1_500;
    host.give(0, aws("AKID", None));
    assert_eq!(header(&host.http[0], "x-amz-date"), Some("20231114T221321Z"));
}

#[test]
fn without_credentials_nothing_was_sent() {
    let mut host = dynamodb();
    host.acquire(1, Wait::Once);
    host.pass(Duration::from_secs(2));
    let Event::Failed { failure: Failure::Unavailable(fault), .. } = host.last_event() else {
        panic!("{:?}", host.events)
    };
    assert!(fault.to_string().contains("credentials"), "{fault}");
    assert!(host.client.is_idle() && host.http.is_empty(), "nothing has to be released");
    assert_eq!(host.client.stats().timed_out_requests, 0);
    // Late credentials serve the next request.
    host.give(0, aws("AKID", None));
    assert!(host.http.is_empty());
    host.acquire(2, Wait::Once);
    assert_eq!((host.http.len(), host.asked.len()), (1, 1));
}

#[test]
fn a_held_request_is_not_lost_with_its_wait() {
    let mut host = dynamodb();
    host.acquire(1, Wait::Forever);
    host.pass(Duration::from_secs(2));
    host.give(0, aws("AKID", None));
    while host.http.is_empty() {
        host.sleep();
    }
}

#[test]
fn credentials_are_replaced_before_they_expire() {
    let mut host = dynamodb();
    host.give(0, aws("AKIDFIRST", Some(UNIX_MS + 400_000)));
    host.acquire(1, Wait::Once);
    assert!(host.asked.is_empty());
    let id = host.http.pop_front().unwrap().id;
    host.answer(id, not_sent());
    host.pass(Duration::from_secs(150));
    host.acquire_named(2, "b", Wait::Once);
    assert_eq!((host.asked.len(), key(&host, 0)), (1, "AKIDFIRST"), "they serve meanwhile");
    let id = host.http.pop_front().unwrap().id;
    host.answer(id, not_sent());
    host.pass(Duration::from_secs(241));
    host.acquire_named(3, "c", Wait::Once);
    assert_eq!((host.http.len(), host.asked.len()), (0, 1), "they would be over before the request is there");
    host.give(0, aws("AKIDSECOND", Some(UNIX_MS + 4_000_000)));
    assert_eq!(key(&host, 0), "AKIDSECOND");
}

#[test]
fn a_host_that_gives_what_has_expired_is_asked_again_in_peace() {
    let mut host = dynamodb();
    host.acquire(1, Wait::Forever);
    for _ in 0..10 {
        host.give(0, aws("AKID", Some(UNIX_MS - 1)));
    }
    assert_eq!(host.http.len(), 1, "they may be good, and this clock wrong");
    // The first ones were sent, then the last ones.
    host.answer_http(400, &[], EXPIRED);
    host.answer_http(400, &[], EXPIRED);
    assert_eq!((host.asked.len(), host.http.len()), (1, 0), "in peace");
    host.pass(Duration::from_secs(5));
    while host.asked.len() == 1 {
        host.sleep();
    }
    assert!(host.http.is_empty());
}

/// By such a clock these credentials are over, and no answer could correct it if nothing left.
#[test]
fn a_host_whose_clock_is_ahead_asks_the_server() {
    let mut host = dynamodb();
    host.now.unix_ms += 3_600_000;
    host.acquire(1, Wait::Forever);
    let ahead = aws("AKID", Some(UNIX_MS + 1_800_000));
    host.give(0, ahead.clone());
    host.answer_http(400, &[("Date", "Tue, 14 Nov 2023 22:13:20 GMT")], SKEWED);
    assert_eq!(header(&host.http[0], "x-amz-date"), Some("20231114T221320Z"));
    // Now that the server's time is known, they are as good as they are.
    host.give(0, ahead);
    host.asked.clear();
    host.pass(Duration::from_secs(1_000));
    host.http.clear();
    host.acquire_named(2, "another", Wait::Once);
    assert_eq!((host.http.len(), host.asked.len()), (1, 0));
    assert_eq!(header(&host.http[0], "x-amz-date"), Some("20231114T223000Z"));
    // Somebody sets the host's clock: the server's has not changed.
    host.now.unix_ms -= 3_600_000;
    host.acquire_named(3, "a third", Wait::Once);
    assert_eq!(header(&host.http[1], "x-amz-date"), Some("20231114T223000Z"));
}

#[test]
fn what_the_server_refuses_is_replaced_once_within_a_request() {
    let mut host = dynamodb();
    host.give(0, aws("AKIDOLD", None));
    host.acquire(1, Wait::Once);
    host.answer_http(400, &[], EXPIRED);
    assert_eq!(host.asked, [0]);
    assert!(host.http.is_empty());
    host.give(0, aws("AKIDNEW", None));
    assert_eq!((host.http.len(), key(&host, 0)), (1, "AKIDNEW"));
    // And if that helps nothing, the request has failed, and the credentials are no good either.
    host.answer_http(400, &[], EXPIRED);
    assert!(matches!(host.last_event(), Event::Failed { failure: Failure::Unavailable(_), .. }), "{:?}", host.events);
    assert_eq!(host.asked, [0, 0]);
    host.acquire(2, Wait::Once);
    assert!(host.http.is_empty());
    host.give(0, aws("AKIDBETTER", None));
    assert_eq!(key(&host, 0), "AKIDBETTER");
}

/// They may be fetched as fast as they are refused.
#[test]
fn credentials_that_never_serve_bring_no_storm() {
    let mut host = dynamodb();
    host.give(0, aws("AKID", None));
    host.acquire(1, Wait::Forever);
    let mut requests = 0;
    while !host.http.is_empty() || host.asked.len() > 1_000 {
        requests += 1;
        assert!(requests < 20, "one after the other, and no time has passed");
        host.answer_http(400, &[], EXPIRED);
        if !host.asked.is_empty() {
            host.asked.clear();
            host.give(0, aws("AKID", None));
        }
    }
    assert!(requests > 1);
    while host.http.is_empty() {
        host.sleep();
    }
}

#[test]
fn a_refusal_of_old_credentials_says_nothing_of_new_ones() {
    let mut host = dynamodb();
    host.give(0, aws("AKIDOLD", None));
    host.acquire(1, Wait::Once);
    host.give(0, aws("AKIDNEW", None));
    host.answer_http(400, &[], EXPIRED);
    assert!(host.asked.is_empty());
    assert_eq!((host.http.len(), key(&host, 0)), (1, "AKIDNEW"));
}

#[test]
fn a_token_is_asked_for_where_the_server_wants_one() {
    let mut host = Host::new(1, vec![redis_http(Dialect::Upstash, Access::WithCredentials)]);
    host.acquire(1, Wait::Forever);
    assert_eq!(host.asked, [0]);
    host.give(0, bearer("some-token"));
    assert_eq!(header(&host.http[0], "authorization"), Some("Bearer some-token"));
    RedisServer::default().serve(&mut host);
    assert!(host.token().is_some());
    assert_eq!(host.asked, [0]);
}

#[test]
fn credentials_that_do_not_fit_are_refused() {
    let stores = vec![
        Store::Dynamodb(dynamodb_store()),
        redis_http(Dialect::Upstash, Access::WithCredentials),
        redis_http(Dialect::Webdis, Access::Anonymous),
        Store::Redis(RedisStore::default()),
        Store::Operations,
    ];
    let mut host = Host::new(1, stores);
    let now = host.now;
    let login = |user: &str, password: &str| {
        Credentials::Password(PasswordLogin { user: user.into(), password: password.into() })
    };
    let keys = |secret: &str, token: &str| {
        let (secret_access_key, session_token) = (secret.into(), Some(token.into()));
        let keys = sigv4::Credentials { access_key_id: "AKID".into(), secret_access_key, session_token };
        Credentials::Aws(AwsCredentials { keys, expires_unix_ms: None })
    };
    for (node, credentials) in [
        (0, bearer("token")),
        (0, login("worker", "hunter2")),
        (0, keys("", "a-session-token")),
        (0, keys("secret", "")),
        (0, keys("secret", "a\r\nx: y")),
        (0, aws("", None)),
        (0, aws("AKID\r\nx: y", None)),
        (1, aws("AKID", None)),
        (1, bearer("")),
        (1, bearer("a b")),
        (1, bearer("a\r\nx: y")),
        (1, login("wor:ker", "hunter2")),
        (1, login("wor\nker", "hunter2")),
        (1, login("worker", "hunter2\n")),
        (2, bearer("token")),
        (2, login("worker", "hunter2")),
        (3, bearer("token")),
        (4, aws("AKID", None)),
        (5, bearer("token")),
    ] {
        let refused = host.client.set_credentials(NodeId::new(node), credentials, now);
        let error = refused.expect_err("they do not fit").to_string();
        assert!(error.starts_with(&format!("node {node}: ")) && !error.contains("token\""), "{error}");
    }
    host.give(0, aws("AKID", None));
    host.give(0, keys("secret", "a-session-token"));
    host.give(1, bearer("token"));
    host.give(1, login("worker", "hunter:2"));
}

#[test]
fn texts_show_what_is_no_secret() {
    let login = PasswordLogin { user: "worker".into(), password: "top-secret".into() };
    let replies = vec![Value::Integer(1), Value::Nil];
    for (text, shown) in [
        (format!("{:?}", bearer("top-secret")), "BearerToken { .. }"),
        (format!("{login:?}"), "PasswordLogin { user: \"worker\", .. }"),
        (format!("{:?}", aws("AKID", None)), "Credentials { access_key_id: \"AKID\", .. }"),
        (format!("{:?}", http(401, &[], "four")), "Http(status 401 with 4 bytes)"),
        (format!("{:?}", lost()), "Fault("),
        (format!("{:?}", Response::Redis(replies)), "Redis(2 replies)"),
        (format!("{:?}", Response::Outcomes(vec![])), "Outcomes([])"),
    ] {
        assert!(text.contains(shown), "{text} should show {shown}");
    }
    let mut host = dynamodb();
    host.acquire(1, Wait::Once);
    host.give(0, aws("AKID", None));
    let text = format!("{:?} {:?}", host.http[0], host.client);
    for shown in ["HttpRequest { id:", "method: ", "\"authorization\"", "bytes: ", "WireClient { inner:"] {
        assert!(text.contains(shown), "{text} should show {shown}");
    }
}

/// A server's message about credentials is shown without the credentials.
#[test]
fn nothing_shows_a_secret() {
    let mut host = Host::new(1, vec![redis_http(Dialect::Upstash, Access::WithCredentials)]);
    host.acquire(1, Wait::Once);
    host.give(0, bearer("top-secret-token"));
    let request = host.http.front().unwrap();
    let shown = format!("{request:?} {:?} {:?}", host.client, bearer("top-secret-token"));
    assert!(!shown.contains("top-secret-token") && shown.contains("authorization"), "{shown}");
    let id = request.id;
    host.answer(id, http(401, &[], r#"{"error":"WRONGPASS top-secret-token is unknown"}"#));
    let told = format!("{:?}", host.events);
    assert!(told.contains("refuses the token") && !told.contains("top-secret"), "{told}");

    let mut host = dynamodb();
    host.acquire(1, Wait::Once);
    host.give(0, aws("AKID", None));
    let request = host.http.front().unwrap();
    let shown = format!("{request:?} {:?} {:?}", host.client, aws("AKID", None));
    for secret in ["a very secret key", "a-session-token", "Signature="] {
        assert!(!shown.contains(secret), "{shown}");
    }
    let nonce = String::from_utf8_lossy(&request.body).into_owned();
    assert!(!nonce.is_empty() && !shown.contains(&nonce));
    let id = request.id;
    host.answer(id, lost());
}
