//! Every error that DynamoDB knows, and answers that are none of its: the right kind, never a grant, and in time.

use std::thread;
use std::time::Instant;

use crate::common::on_dynamodb::set_keys;
use crate::common::{PATIENCE, ms};
use crate::gateway::{Gateway, body, error, is_of_a_row, operation};
use leasehold::ErrorKind::{self, StoreRefused, StoreUnavailable};
use leasehold::blocking::Client;
use leasehold::{Client as AsyncClient, Error};
use leasehold_servers::answers::Reply;
use serde_json::{Value, json};

struct Fake {
    gateway: Gateway,
    client: Client,
}

impl Fake {
    fn new() -> Self {
        set_keys();
        let gateway = Gateway::alone();
        let settings = AsyncClient::builder().request_timeout(ms(2_000));
        let client = Client::connect_with(settings, gateway.url()).unwrap();
        Self { gateway, client }
    }

    /// Returns the error of an acquire while rows are answered so.
    #[track_caller]
    fn failure(&self, name: &str, reply: Reply) -> Error {
        self.gateway.answer_rows(reply);
        let start = Instant::now();
        let failed = self.client.lock(name).wait(ms(5_000)).acquire().expect_err(name);
        assert!(start.elapsed() < 2 * PATIENCE, "{name}: {:?}", start.elapsed());
        failed
    }

    /// All at the same time, each by a lock of its own.
    #[track_caller]
    fn fail(&self, cases: Vec<Case>) {
        let replies: Vec<Reply> = cases.iter().map(|case| case.reply.clone()).collect();
        self.gateway.answer(move |request| {
            let asked =
                is_of_a_row(request).then(|| body(request)["Key"]["key"]["S"].as_str().map(str::to_owned))??;
            let (number, _) = asked.split_once(' ')?;
            replies.get(number.parse::<usize>().ok()?).cloned()
        });
        let start = Instant::now();
        let told: Vec<Error> = thread::scope(|scope| {
            let ask = |(number, case): (usize, &Case)| {
                // A refusal ends the wait; what may pass has to run it out.
                let wait = if case.kind == ErrorKind::StoreRefused { 2 * PATIENCE } else { ms(5_000) };
                let request = self.client.lock(format!("{number} {}", case.what)).wait(wait);
                scope.spawn(move || request.acquire())
            };
            let asked: Vec<_> = cases.iter().enumerate().map(ask).collect();
            let failed = asked.into_iter().zip(&cases);
            failed.map(|(asked, case)| asked.join().unwrap().expect_err(&case.what)).collect()
        });
        assert!(start.elapsed() < 2 * PATIENCE, "{:?}", start.elapsed());
        for (failed, Case { what, kind, words, .. }) in told.iter().zip(&cases) {
            assert_eq!(failed.kind(), *kind, "{what}: {failed}");
            let told = failed.to_string();
            for word in *words {
                assert!(told.contains(word), "{what}: no {word:?} in {told}");
            }
            assert!(told.len() < 1_500 && !told.contains("secret-"), "{what}: {told}");
        }
    }
}

/// An answer to all requests for a row, and how it is told.
struct Case {
    what: String,
    reply: Reply,
    kind: ErrorKind,
    words: &'static [&'static str],
}

impl Case {
    fn new(what: impl Into<String>, reply: Reply, kind: ErrorKind, words: &'static [&'static str]) -> Self {
        Self { what: what.into(), reply, kind, words }
    }
}

#[test]
fn every_error_has_its_kind_and_says_what_to_do() {
    let mut cases = Vec::new();
    for code in ["ProvisionedThroughputExceededException", "ThrottlingException", "RequestLimitExceeded"] {
        cases.push(Case::new(
            code,
            error(400, code, "slow down"),
            StoreUnavailable,
            &["throttling", "limit of requests"],
        ));
    }
    for (status, code) in [
        (500, "InternalServerError"),
        (503, "ServiceUnavailable"),
        (400, "TransactionConflictException"),
        (409, "ReplicatedWriteConflictException"),
    ] {
        cases.push(Case::new(code, error(status, code, "later"), StoreUnavailable, &[]));
    }
    for (code, message, words) in [
        ("ResourceNotFoundException", "Requested resource not found", &["\"locks\"", "leasehold table create"][..]),
        ("ValidationException", "The provided key element does not match", &["partition key", "\"key\""]),
        ("AccessDeniedException", "User: arn:x is not authorized", &["trust policy", "dynamodb:GetItem", "arn:x"]),
        ("MissingAuthenticationToken", "secret-token", &["drops headers"]),
        ("IncompleteSignature", "secret-token", &["drops headers"]),
        ("InvalidSignatureException", "The request signature secret-token", &["the secret belongs to the access key"]),
        ("InvalidSignatureException", "Signature expired: secret-token", &["clock", "5 minutes"]),
    ] {
        cases.extend([400, 403].map(|status| Case::new(code, error(status, code, message), StoreRefused, words)));
    }
    // The keys of this process are the only ones.
    for code in ["UnrecognizedClientException", "ExpiredTokenException"] {
        let words = &["refuses the keys of the environment"];
        cases.push(Case::new(code, error(400, code, "secret-token"), StoreUnavailable, words));
    }
    for (status, body, kind) in [
        (400, r#"{"__type":"a#ThrottlingException","Message":"capital"}"#, StoreUnavailable),
        (400, r#"{"__type":"ResourceNotFoundException:http://x/","message":null}"#, StoreRefused),
        (403, r#"{"Message":"explicit deny"}"#, StoreRefused),
        (429, "", StoreUnavailable),
    ] {
        cases.push(Case::new(body, Reply::new(status, body), kind, &[]));
    }
    Fake::new().fail(cases);
}

/// Bodies that are none of DynamoDB's.
fn nonsense() -> Vec<Vec<u8>> {
    let html = "<html><body>It works! secret-page</body></html>";
    let deep = "[".repeat(100_000);
    let long = format!("{{\"Attributes\":{{\"x\":{{\"S\":\"{}\"}}}}}}", "x".repeat(2 << 20));
    let mut bodies: Vec<Vec<u8>> =
        ["", "null", "[]", "7", "{", "{}", "{\"Attributes\":[]}", "{\"Attributes\":{}}", html, &deep, &long]
            .iter()
            .map(|body| body.as_bytes().to_vec())
            .collect();
    bodies.push(b"\xff\xfe\0".to_vec());
    bodies.push(vec![b' '; 2 << 20]);
    bodies
}

#[test]
fn answers_that_are_none_of_dynamodbs_grant_nothing() {
    let mut cases = Vec::new();
    for (number, body) in nonsense().into_iter().enumerate() {
        let reply = |status| Reply::new(status, body.clone());
        for status in [200, 400, 500, 502, 503, 504] {
            cases.push(Case::new(format!("body {number} with {status}"), reply(status), StoreUnavailable, &[]));
        }
        cases.push(Case::new(format!("body {number} with 403"), reply(403), StoreRefused, &["access is denied"]));
        cases.push(Case::new(format!("body {number} with 404"), reply(404), StoreRefused, &["no DynamoDB here"]));
    }
    let half = Reply::Half(br#"{"Attributes":{"key":{"S":"half"}}}"#.to_vec());
    cases.push(Case::new("half", half, StoreUnavailable, &[]));
    cases.push(Case::new("half of much", Reply::Half(vec![b' '; 2 << 20]), StoreUnavailable, &[]));
    cases.push(Case::new("silence", Reply::Hang, StoreUnavailable, &[]));
    cases.push(Case::new("the end", Reply::Close, StoreUnavailable, &[]));
    Fake::new().fail(cases);
}

#[test]
fn redirects_are_not_followed() {
    let elsewhere = Gateway::alone();
    let redirect = |status: u16| {
        let headers = vec![("Location".to_owned(), format!("http://{}/", elsewhere.address()))];
        Case::new(status.to_string(), Reply::Answer { status, headers, body: Vec::new() }, StoreRefused, &["redirects"])
    };
    Fake::new().fail([301, 302, 303, 307, 308].map(redirect).into());
    assert_eq!(elsewhere.asked(), []);
}

/// The answer to a write that has succeeded, as the write would have it.
fn row_after(write: &Value) -> Value {
    let (names, values) = (&write["ExpressionAttributeNames"], &write["ExpressionAttributeValues"]);
    let mut row = write["Key"].clone();
    for (name, value) in [("#rvn", ":rvn"), ("#on", ":on"), ("#ld", ":ld"), ("#ga", ":ga"), ("#ft", ":floor")] {
        row[names[name].as_str().unwrap()] = values[value].clone();
    }
    row
}

#[test]
fn a_success_that_does_not_fit_the_request_is_no_grant() {
    type Change = (&'static str, fn(&mut Value));
    let changes: [Change; 10] = [
        ("another's version", |row| row["recordVersionNumber"] = json!({"S": "3b0f5c5e-0b6a-4c26-a8f2-6a1de5a9f9c1"})),
        ("an earlier version", |row| {
            let version = row["recordVersionNumber"]["S"].as_str().unwrap();
            row["recordVersionNumber"] = json!({"S": format!("{}{:010}", &version[..33], 99)});
        }),
        ("another lock", |row| row["key"] = json!({"S": "other"})),
        ("no key", |row| row["key"] = Value::Null),
        ("released", |row| row["isReleased"] = json!({"S": "1"})),
        ("no counter", |row| row["fencingToken"] = Value::Null),
        ("a counter of another type", |row| row["fencingToken"] = json!({"S": "1"})),
        ("counter 0", |row| row["fencingToken"] = json!({"N": "0"})),
        ("a counter beyond all", |row| row["fencingToken"] = json!({"N": "9007199254740993"})),
        ("another counter", |row| row["fencingToken"] = json!({"N": "1"})),
    ];
    let fake = Fake::new();
    for (what, change) in changes {
        fake.gateway.answer(move |request| {
            (operation(request) == Some("UpdateItem")).then(|| {
                let write = body(request);
                // A release has no counter.
                if write["UpdateExpression"].as_str().is_none_or(|update| !update.contains("#ft")) {
                    return error(500, "InternalServerError", "not now");
                }
                let mut row = row_after(&write);
                change(&mut row);
                Reply::new(200, json!({"Attributes": row}).to_string())
            })
        });
        let failed = fake.client.lock(what).wait(ms(500)).acquire().expect_err(what);
        assert_eq!(failed.kind(), StoreUnavailable, "{what}: {failed}");
    }
    // The measure of all these: unchanged it is a grant.
    fake.gateway.answer(|request| {
        (operation(request) == Some("UpdateItem"))
            .then(|| Reply::new(200, json!({"Attributes": row_after(&body(request))}).to_string()))
    });
    drop(fake.client.lock("fits").acquire().unwrap());
}

#[test]
fn a_refused_condition_grants_nothing_whatever_it_shows() {
    let fake = Fake::new();
    let shown = [
        json!(null),
        json!({}),
        json!([]),
        json!("x"),
        json!({"key": {"S": "other"}}),
        // Nobody holds it, and yet the condition is said not to hold.
        json!({"key": {"S": "job"}, "ownerName": {"S": "x"}, "leaseDuration": {"S": "1"}, "isReleased": {"S": "1"},
               "recordVersionNumber": {"S": "x"}}),
    ];
    for item in shown {
        let refused = json!({"__type": "x#ConditionalCheckFailedException", "message": "", "Item": item});
        let failed = fake.failure("job", Reply::new(400, refused.to_string()));
        assert!(matches!(failed.kind(), StoreUnavailable | StoreRefused | ErrorKind::TimedOut), "{item}: {failed}");
    }
    fake.gateway.answer(|request| {
        is_of_a_row(request).then(|| error(400, "ConditionalCheckFailedException", "The conditional request failed"))
    });
    assert_eq!(fake.client.inspect("job").unwrap_err().kind(), StoreUnavailable, "a read has no condition");
}
