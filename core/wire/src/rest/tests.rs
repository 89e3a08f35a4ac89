use alloc::format;
use alloc::vec;

use super::*;
use crate::Progress;
use crate::redis::{Codec, Settings};

fn command(args: &[&str]) -> [Command; 1] {
    [Command::new(args)]
}

fn bulk(text: &str) -> Value {
    Value::Bulk(text.into())
}

fn upstash(status: u16, body: &str) -> Result<Vec<Value>, Outcome> {
    replies(Dialect::Upstash, status, Some("application/json"), body.as_bytes())
}

fn webdis(status: u16, body: &str) -> Result<Vec<Value>, Outcome> {
    replies(Dialect::Webdis, status, Some("application/json"), body.as_bytes())
}

fn is_unknown(result: &Result<Vec<Value>, Outcome>) -> bool {
    matches!(result, Err(Outcome::Unknown(_)))
}

fn denial(result: Result<Vec<Value>, Outcome>) -> Denial {
    match result {
        Err(Outcome::NotApplied(Refusal::Denied(denial))) => denial,
        other => panic!("not denied: {other:?}"),
    }
}

#[test]
fn a_command_for_upstash_is_a_json_array() {
    let request = request(Dialect::Upstash, &command(&["EVALSHA", "a\"\\b", "{é}\x1ffence of name"]), Some("s3cret"));
    assert_eq!((request.method, request.path.as_str()), ("POST", "/"));
    assert_eq!(request.headers[0], ("content-type", "application/json".to_owned()));
    assert_eq!(request.headers[1], ("authorization", "Bearer s3cret".to_owned()));
    assert_eq!(request.body, r#"["EVALSHA","a\"\\b","{é}\u001ffence of name"]"#.as_bytes());
    let shown = format!("POST / with [\"content-type\", \"authorization\"] and {} bytes", request.body.len());
    assert_eq!(format!("{request:?}"), shown, "and no token");
}

#[test]
fn a_command_for_webdis_is_a_path() {
    let request = request(Dialect::Webdis, &command(&["EVAL", "a/b.json", "+ %é\x1f", "A-z_9"]), None);
    assert_eq!(request.headers.len(), 1);
    assert_eq!(request.body, b"EVAL/a%2Fb%2Ejson/%2B%20%25%C3%A9%1F/A-z_9");
}

#[test]
fn replies_keep_their_types_and_digits() {
    let expected = Value::Array(vec![bulk("granted"), Value::Integer(9_007_199_254_740_993), Value::Nil]);
    let json = r#"["granted",9007199254740993,null]"#;
    assert_eq!(upstash(200, &format!(r#"{{"result":{json}}}"#)), Ok(vec![expected.clone()]));
    assert_eq!(webdis(200, &format!(r#"{{"EVALSHA":{json}}}"#)), Ok(vec![expected]));
    assert_eq!(upstash(200, r#"{"result":null}"#), Ok(vec![Value::Nil]));
    assert_eq!(webdis(200, r#"{"EVAL":1}"#), Ok(vec![Value::Integer(1)]));
    assert_eq!(webdis(200, r#"{"SET":[true,"OK"]}"#), Ok(vec![Value::Simple("OK".into())]));
}

#[test]
fn errors_of_redis_are_replies() {
    let error = || Ok(vec![Value::Error("NOSCRIPT No matching script.".into())]);
    assert_eq!(upstash(400, r#"{"error":"NOSCRIPT No matching script."}"#), error());
    assert_eq!(upstash(200, r#"{"error":"NOSCRIPT No matching script."}"#), error());
    assert_eq!(webdis(200, r#"{"EVALSHA":[false,"NOSCRIPT No matching script."]}"#), error());
}

#[test]
fn numbers_that_are_no_integers_are_refused() {
    for number in ["1.0", "1e3", "1E3", "-0.0", "9223372036854775808", "1e400", "18446744073709551616"] {
        assert!(is_unknown(&upstash(200, &format!(r#"{{"result":{number}}}"#))), "{number}");
        assert!(is_unknown(&webdis(200, &format!(r#"{{"EVAL":["granted",{number}]}}"#))), "{number}");
    }
}

#[test]
fn brackets_count_where_they_are_no_part_of_strings() {
    for (body, levels) in [
        ("1", 0),
        ("[]", 1),
        ("[[],[]]", 2),
        (r#"{"a":[{"b":1}]}"#, 3),
        (r#""[[[""#, 0),
        (r#"["]",["]",[1]]]"#, 3),
        (r#"["\"[[",["}"],"\\",[[1]]]"#, 3),
    ] {
        assert_eq!(depth(body.as_bytes()), levels, "{body}");
    }
}

#[test]
fn what_cannot_be_read_may_have_happened() {
    let html = "<html><body>502</body></html>";
    let deep = format!(r#"{{"result":{}1{}}}"#, "[".repeat(32), "]".repeat(32));
    let of = |bytes: usize| format!(r#"{{"result":"{}"}}"#, "x".repeat(bytes - r#"{"result":""}"#.len()));
    assert!(upstash(200, &of(MAX_BODY)).is_ok());
    let long = of(MAX_BODY + 1);
    let bodies = [
        html,
        "",
        "{}",
        "[]",
        "null",
        r#"{"result":["gran"#,
        r#"{"result":1} x"#,
        r#"{"result":1,"error":"x"}"#,
        r#"{"results":1}"#,
        r#"{"error":{}}"#,
        r#"{"result":{"a":1}}"#,
        &deep,
        &long,
        "\u{0}",
    ];
    for body in bodies {
        assert!(is_unknown(&upstash(200, body)), "{}", &body[..body.len().min(80)]);
        assert!(is_unknown(&upstash(400, body)), "{}", &body[..body.len().min(80)]);
    }
    for body in [html, "{}", r#"{"A":1,"B":2}"#, r#"{"A":[false]}"#, r#"{"A":[true,1]}"#, r#"{"A":[false,"x","y"]}"#] {
        assert!(is_unknown(&webdis(200, body)), "{body}");
    }
    let kind = |status| match upstash(status, html) {
        Err(Outcome::Unknown(fault)) => fault.kind,
        other => panic!("{other:?}"),
    };
    assert_eq!((kind(200), kind(502)), (FaultKind::Protocol, FaultKind::Server));
    assert!(is_unknown(&replies(Dialect::Upstash, 200, Some("text/html"), br#"{"result":1}"#)));
    assert!(replies(Dialect::Upstash, 200, None, br#"{"result":1}"#).is_ok());
    assert!(replies(Dialect::Upstash, 200, Some("Application/JSON; charset=utf-8"), br#"{"result":1}"#).is_ok());
    assert!(is_unknown(&replies(Dialect::Upstash, 200, None, b"{\"result\":\"\xff\"}")));
}

#[test]
fn brackets_in_strings_are_not_deep() {
    let body = format!(r#"{{"result":"{}\"{}"}}"#, "[".repeat(50), "{".repeat(50));
    assert!(upstash(200, &body).is_ok());
    let allowed = format!(r#"{{"result":{}1{}}}"#, "[".repeat(31), "]".repeat(31));
    assert!(upstash(200, &allowed).is_ok());
}

#[test]
fn each_status_has_its_meaning() {
    for status in [100, 201, 204, 408, 409, 410, 418, 500, 502, 503, 504, 520, 999, 0] {
        for body in ["", r#"{"error":"READONLY no"}"#, r#"{"result":["granted","12"]}"#, r#"{"EVAL":["granted","12"]}"#]
        {
            assert!(is_unknown(&upstash(status, body)) && is_unknown(&webdis(status, body)), "{status} {body}");
        }
    }
    assert!(is_unknown(&webdis(400, r#"{"EVAL":[false,"READONLY no"]}"#)));
    assert!(is_unknown(&upstash(400, r#"{"result":["granted","12"]}"#)));
    for status in [401, 403] {
        let denial = denial(upstash(status, r#"{"error":"WRONGPASS invalid or missing auth token"}"#));
        assert_eq!(denial.kind, DenialKind::Permission);
        assert!(denial.detail.contains("token") && denial.detail.contains("WRONGPASS"));
    }
    for status in [301, 302, 307, 308, 404, 405, 413] {
        assert_eq!(denial(webdis(status, "")).kind, DenialKind::Other, "{status}");
    }
    assert!(matches!(upstash(429, ""), Err(Outcome::NotApplied(Refusal::Throttled(_)))));
}

#[test]
fn a_redirection_tells_the_host_and_nothing_else() {
    for (location, expected) in [
        (Some("https://user:pass@eu.example.com:8443/x?token=s3cret"), "to \"eu.example.com:8443\""),
        (Some("//other.example/"), "to \"other.example\""),
        (Some("/login?token=s3cret"), "elsewhere"),
        (Some("https:///"), "elsewhere"),
        (Some("//no host \r\n of any kind/"), "elsewhere"),
        (None, "elsewhere"),
    ] {
        let denial = denial(Err(redirected(location)));
        assert!(denial.detail.contains(expected), "{}", denial.detail);
        assert!(!denial.detail.contains("s3cret") && !denial.detail.contains("pass"), "{}", denial.detail);
    }
    // A server that says the token again, and be it as a host.
    let head = Head { status: 308, content_type: None, location: Some("//hunter2-of-this-test.example/") };
    let denial = denial(judge(Dialect::Upstash, &head, b"", Some("hunter2-of-this-test")).map(|reply| vec![reply]));
    assert!(denial.detail.contains("to \"*.example\""), "{}", denial.detail);
}

#[test]
fn an_exchange_goes_over_http_as_over_resp() {
    let resource = leasehold_core::Resource::new("a").unwrap();
    let op = leasehold_core::op::Op::Release(leasehold_core::op::Release {
        nonce: leasehold_core::Nonce::from_bytes([7; 16]),
        quorum: None,
    });
    let ops = [leasehold_core::op::LockOp { lock: leasehold_core::LockId::new(1), resource, op }];
    let codec = Codec::new(Settings::default());
    let mut exchange =
        codec.begin(leasehold_core::RequestId::new(5), &ops, core::time::Duration::from_secs(1), 1).unwrap();
    let sent = request(Dialect::Upstash, exchange.commands(), None);
    assert!(sent.body.starts_with(br#"["EVALSHA""#));
    assert_eq!(exchange.replies(upstash(400, r#"{"error":"NOSCRIPT x"}"#).unwrap()), Progress::Again);
    let sent = request(Dialect::Upstash, exchange.commands(), None);
    assert!(sent.body.starts_with(br#"["EVAL","local head "#));
    let applied = Outcome::Applied(leasehold_core::op::Applied::Released);
    assert_eq!(exchange.replies(upstash(200, r#"{"result":"5"}"#).unwrap()), Progress::Done(vec![applied]));
}
