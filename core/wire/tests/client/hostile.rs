//! An impostor of the server can answer anything.

use leasehold_core::config::Wait;
use leasehold_core::{Event, RequestId};
use leasehold_wire::client::{Access, HttpResponse, RedisStore, Response, Store};
use leasehold_wire::resp::{Value, decode_all};
use leasehold_wire::rest::Dialect;
use proptest::prelude::*;

use super::common::{Host, aws, dynamodb_store, http, redis_http};

fn hosts() -> Vec<Host> {
    let stores = [
        Store::Redis(RedisStore::default()),
        redis_http(Dialect::Upstash, Access::Anonymous),
        redis_http(Dialect::Webdis, Access::Anonymous),
        Store::Dynamodb(dynamodb_store()),
        Store::Operations,
    ];
    let mut hosts: Vec<Host> = (0..).zip(stores).map(|(seed, store)| Host::new(seed, vec![store])).collect();
    hosts[3].give(0, aws("AKID", None));
    hosts.iter_mut().for_each(|host| host.acquire(1, Wait::Forever));
    hosts
}

fn open(host: &mut Host) -> RequestId {
    let commands = host.commands.pop_front().map(|commands| commands.id);
    let http = || host.http.pop_front().map(|request| request.id);
    let transmit = commands.or_else(http);
    transmit.or_else(|| host.transmits.pop_front().map(|transmit| transmit.id)).expect("a request")
}

/// None of it is a grant, and the client goes on.
fn survives(mut host: Host, response: Response) {
    let id = open(&mut host);
    host.answer(id, response.clone());
    assert!(!host.events.iter().any(|event| matches!(event, Event::Acquired { .. })), "{:?}", host.events);
    // The same once more belongs to nothing.
    let before = host.client.stats().ignored_responses;
    host.answer(id, response);
    assert_eq!(host.client.stats().ignored_responses, before + 1);
    if host.http.is_empty() && host.commands.is_empty() && host.transmits.is_empty() && host.client.stats().locks > 0 {
        host.sleep();
    }
}

#[test]
fn pages_and_nonsense_are_no_grants() {
    let long = format!(r#"{{"result":"{}"}}"#, "x".repeat(2 << 20));
    let deep = format!(r#"{{"result":{}1{}}}"#, "[".repeat(100_000), "]".repeat(100_000));
    let bodies = [
        "",
        "{",
        "[]",
        "null",
        "{}",
        "<html><body>502 Bad Gateway</body></html>",
        r#"{"result":["granted","17"#,
        r#"{"result":["granted","1700000000000000","999"]}"#,
        r#"{"result":{"a":1}}"#,
        r#"{"EVALSHA":[true]}"#,
        r#"{"Attributes":[]}"#,
        r#"{"Attributes":{"recordVersionNumber":{"S":"x"}}}"#,
        r#"{"__type":7}"#,
        &long,
        &deep,
        "\u{0}\u{1}",
    ];
    for body in bodies {
        for status in [0, 100, 200, 204, 301, 400, 401, 404, 413, 429, 500, 503, 999] {
            for host in hosts() {
                survives(host, http(status, &[("location", "https://a:secret@elsewhere/")], body));
            }
        }
    }
}

#[test]
fn answers_of_another_kind_are_no_grants() {
    for host in hosts() {
        survives(host, Response::Redis(vec![Value::Nil; 3]));
    }
    for host in hosts() {
        survives(host, Response::Outcomes(Vec::new()));
    }
    for mut host in hosts() {
        // Nobody has asked for this.
        host.answer(RequestId::new(u64::MAX), Response::Redis(Vec::new()));
        assert_eq!(host.client.stats().ignored_responses, 1);
    }
    for node in 0..4 {
        let granted = leasehold_core::op::Applied::Acquired { counter: leasehold_core::Token::new(7).unwrap() };
        let mut hosts = hosts();
        survives(hosts.swap_remove(node), Response::Outcomes(vec![leasehold_core::op::Outcome::Applied(granted)]));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn no_bytes_are_a_grant(
        status in prop_oneof![Just(200_u16), Just(400), any::<u16>()],
        body in proptest::collection::vec(any::<u8>(), 0..200),
        name in "[a-z-]{0,12}",
        value in ".{0,20}",
    ) {
        for host in hosts() {
            let headers = vec![(name.clone(), value.clone()), ("Date".to_owned(), value.clone())];
            survives(host, Response::Http(HttpResponse { status, headers, body: body.clone() }));
        }
        for host in hosts() {
            survives(host, Response::Redis(decode_all(&body).unwrap_or_default()));
        }
    }

    /// Closer to what servers say.
    #[test]
    fn no_mangled_answer_is_a_grant_of_another(
        cut in 0_usize..200,
        at in 0_usize..200,
        byte in any::<u8>(),
        answer in prop_oneof![
            Just(r#"{"result":["granted","1700000000000000","7"]}"#),
            Just(r#"{"EVALSHA":["granted","1700000000000000","7"]}"#),
            Just(r#"{"__type":"a#ExpiredTokenException","message":"m"}"#),
            Just(r#"{"__type":"a#InvalidSignatureException","message":"Signature expired"}"#),
            Just(r#"{"__type":"a#ConditionalCheckFailedException","Item":{"key":{"S":"invoice/42"}}}"#),
            Just("*3\r\n$7\r\ngranted\r\n:1700000000000000\r\n$1\r\n7\r\n"),
        ],
    ) {
        let mut bytes = answer.as_bytes().to_vec();
        bytes.truncate(bytes.len().saturating_sub(cut % 3));
        if let Some(place) = bytes.get_mut(at) {
            *place = byte;
        }
        // The number in the answer is that of no request, unless a byte of it was changed into one.
        prop_assume!(!bytes.windows(3).any(|part| part == b"\"0\"" || part == b"\n0\r"));
        for status in [200, 400] {
            for host in hosts() {
                let date = ("date".to_owned(), "Tue, 14 Nov 2023 22:13:20 GMT".to_owned());
                survives(host, Response::Http(HttpResponse { status, headers: vec![date], body: bytes.clone() }));
            }
        }
        for host in hosts() {
            survives(host, Response::Redis(decode_all(&bytes).unwrap_or_default()));
        }
    }
}
