//! Redis over HTTP that does not take who asks: the host is told, others are tried, and nobody repeats a secret.

use leasehold_core::config::Wait;
use leasehold_core::{Event, Failure};
use leasehold_wire::client::{Access, Credentials, PasswordLogin};
use leasehold_wire::rest::Dialect;

use super::common::{Host, bearer, header, redis_http};

const UNAUTHORIZED: &str = r#"{"error":"Unauthorized"}"#;

fn host(dialect: Dialect) -> Host {
    Host::new(1, vec![redis_http(dialect, Access::WithCredentials)])
}

fn login(password: &str) -> Credentials {
    Credentials::Password(PasswordLogin { user: "Aladdin".into(), password: password.into() })
}

fn is_refused(host: &Host) -> bool {
    matches!(host.last_event(), Event::Failed { failure: Failure::Refused(_), .. })
}

#[test]
fn the_host_is_asked_once_for_others_than_those_that_are_refused() {
    let mut host = host(Dialect::Upstash);
    let mut lock = 0;
    for (round, token) in ["first", "second"].into_iter().enumerate() {
        host.give(0, bearer(token));
        for (status, body) in [(401, UNAUTHORIZED), (403, "<html>"), (400, r#"{"error":"WRONGPASS wrong"}"#)] {
            lock += 1;
            host.acquire(lock, Wait::Forever);
            assert_eq!(header(&host.http[0], "authorization"), Some(format!("Bearer {token}").as_str()));
            host.answer_http(status, &[], body);
            assert!(is_refused(&host), "{:?}", host.events);
            assert!(host.http.is_empty());
            assert_eq!(host.asked.len(), round + 1, "{status}");
        }
    }
}

#[test]
fn webdis_hands_on_what_redis_says() {
    for error in ["NOAUTH Authentication required.", "WRONGPASS invalid username-password pair"] {
        let mut host = host(Dialect::Webdis);
        host.give(0, login("open sesame"));
        host.acquire(1, Wait::Forever);
        host.answer_http(200, &[], &format!(r#"{{"EVALSHA":[false,"{error}"]}}"#));
        assert!(is_refused(&host), "{:?}", host.events);
        assert_eq!(host.asked, [0]);
    }
}

#[test]
fn a_refusal_for_another_reason_asks_for_nothing() {
    let mut host = host(Dialect::Upstash);
    host.give(0, bearer("token"));
    host.acquire(1, Wait::Forever);
    host.answer_http(400, &[], r#"{"error":"NOPERM this user has no permissions"}"#);
    assert!(is_refused(&host) && host.asked.is_empty());
    let mut host = Host::new(1, vec![redis_http(Dialect::Upstash, Access::Anonymous)]);
    host.acquire(1, Wait::Forever);
    host.answer_http(401, &[], UNAUTHORIZED);
    assert!(is_refused(&host) && host.asked.is_empty(), "nobody could give any");
}

#[test]
fn a_refusal_of_earlier_credentials_is_tried_again_with_those_of_now() {
    let mut host = host(Dialect::Upstash);
    host.give(0, bearer("old"));
    host.acquire(1, Wait::Forever);
    host.give(0, bearer("new"));
    let deadline = host.http[0].deadline;
    host.answer_http(401, &[], UNAUTHORIZED);
    assert!(host.events.is_empty() && host.asked.is_empty());
    assert_eq!((header(&host.http[0], "authorization"), host.http[0].deadline), (Some("Bearer new"), deadline));
    // Once: these may be replaced as fast as they are refused.
    host.give(0, bearer("newer"));
    host.answer_http(401, &[], UNAUTHORIZED);
    assert!(is_refused(&host) && host.http.is_empty() && host.asked.is_empty(), "{:?}", host.events);
}

/// The server repeats what it was sent, in any way, and the credentials were replaced since.
#[test]
fn no_answer_is_quoted_with_what_its_request_carried() {
    let replies = [
        (401, r#"{"EVALSHA":[false,"WRONGPASS open sesame is wrong"]}"#),
        (403, r#"{"EVALSHA":[false,"no such user: Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ=="]}"#),
        (200, r#"{"EVALSHA":[false,"WRONGPASS open sesame is wrong"]}"#),
        (200, r#"{"EVALSHA":[false,"NOPERM QWxhZGRpbjpvcGVuIHNlc2FtZQ=="]}"#),
        (429, r#"{"EVALSHA":[false,"too many of open\u0020sesame"]}"#),
    ];
    for (status, body) in replies {
        let mut host = host(Dialect::Webdis);
        host.give(0, login("open sesame"));
        host.acquire(1, Wait::Once);
        host.give(0, login("another secret"));
        host.answer_http(status, &[], body);
        if let Some(request) = host.http.front() {
            // The one more time, with a secret that was replaced as well.
            assert!(header(request, "authorization").is_some_and(|value| !value.contains("QWxhZGRpbjpvcGVu")));
            host.give(0, login("a third secret"));
            host.answer_http(status, &[], r#"{"EVALSHA":[false,"WRONGPASS another secret is wrong"]}"#);
        }
        let told = format!("{:?}", host.events);
        assert!(told.contains("the server said") && told.contains('*'), "{told}");
        for secret in ["sesame", "another secret", "QWxhZ", "QWxhZGRpbjphbm90"] {
            assert!(!told.contains(secret), "{told}");
        }
    }
}
