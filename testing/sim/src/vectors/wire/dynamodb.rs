//! DynamoDB, its signatures and its errors.

use leasehold_core::config::Wait;
use leasehold_wire::client::{DynamodbStore, Plaintext, SortKey, Store};
use serde_json::{Value as Json, json};

use super::scenario::Scenario;
use crate::format::{Credentials, WireVector};

pub(super) const ALL: &[fn() -> WireVector] = &[
    dynamodb_requests,
    dynamodb_second_write,
    dynamodb_errors,
    dynamodb_credentials,
    dynamodb_clock,
    dynamodb_renewals,
];

fn table() -> DynamodbStore {
    DynamodbStore {
        table: "locks".to_owned(),
        region: "eu-west-1".to_owned(),
        url: "https://dynamodb.eu-west-1.amazonaws.com".to_owned(),
        key: None,
        sort_key: None,
        expires: None,
        plaintext: Plaintext::Refused,
    }
}

pub(super) fn keys(access_key_id: &str, expires_unix_ms: Option<u64>) -> Credentials {
    Credentials::Aws {
        access_key_id: access_key_id.to_owned(),
        secret_access_key: "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY".to_owned(),
        session_token: expires_unix_ms.map(|_| "a-session-token".to_owned()),
        expires_unix_ms,
    }
}

fn error(code: &str, message: &str) -> Json {
    json!({ "__type": format!("com.amazonaws.dynamodb.v20120810#{code}"), "message": message })
}

/// A row of another client.
fn held(key: &str) -> Json {
    json!({
        key: { "S": "invoice/42" },
        "ownerName": { "S": "host-b" },
        "leaseDuration": { "S": "20000" },
        "recordVersionNumber": { "S": "0b1f0e9c-9f4a-4a36-8f0e-3a1a6c1d2e3f" },
    })
}

fn released(key: &str, counter: u64) -> Json {
    let mut row = held(key);
    row["recordVersionNumber"] = json!({ "S": "c3c3c3c3c3c3c3c3c3c3c3c3c3c3c3c3:0000000007" });
    row["isReleased"] = json!({ "S": "1" });
    row["fencingToken"] = json!({ "N": counter.to_string() });
    row
}

impl Scenario {
    /// The oldest request is a write, and is carried out.
    fn carried_out(&mut self, counter: u64) -> &mut Self {
        let row = self.written(counter);
        self.json(200, &json!({ "Attributes": row }))
    }

    /// The condition of the oldest request does not hold.
    fn condition_fails(&mut self, row: Option<Json>) -> &mut Self {
        let mut body = error("ConditionalCheckFailedException", "The conditional request failed");
        if let Some(row) = row {
            body["Item"] = row;
        }
        self.json(400, &body)
    }
}

fn dynamodb_requests() -> WireVector {
    let sort = SortKey { name: "sk".to_owned(), value: "-".to_owned() };
    let store = DynamodbStore {
        key: Some("name".to_owned()),
        sort_key: Some(sort),
        expires: Some("ttl".to_owned()),
        ..table()
    };
    let mut s = Scenario::new(
        "dynamodb_requests",
        "Signed requests for one row of a table with keys of its own: taken, renewed, released. Then a row of another \
         library stands in the way: it is looked at until it has stood still for its whole length, and replaced.",
        &[Store::Dynamodb(store)],
    );
    s.give(0, keys("AKIDEXAMPLE", None));
    s.acquire(1, "invoice/42", Wait::Forever).carried_out(0);
    s.wake_until_sent().carried_out(0);
    s.release(1).condition_fails(None);
    let mut row = held("name");
    row["sk"] = json!({ "S": "-" });
    s.acquire(2, "invoice/42", Wait::Forever).condition_fails(Some(row.clone()));
    for _ in 0..100 {
        s.wake_until_sent();
        if s.is_write() {
            break;
        }
        s.json(200, &json!({ "Item": row }));
    }
    s.carried_out(0);
    s.told()
}

fn dynamodb_second_write() -> WireVector {
    let mut s = Scenario::new(
        "dynamodb_second_write",
        "A released row with a counter above the floor takes a second write, which computes the token. A reply that is \
         lost is asked for again, by the same attempt.",
        &[Store::Dynamodb(table())],
    );
    s.give(0, keys("AKIDEXAMPLE", None));
    s.acquire(1, "invoice/42", Wait::Forever).condition_fails(Some(released("key", 1_800_000_000_000_000)));
    let row = s.written(1_800_000_000_000_001);
    s.lost().wake_until_sent().condition_fails(Some(row));
    s.told()
}

fn dynamodb_errors() -> WireVector {
    let mut s = Scenario::new(
        "dynamodb_errors",
        "What DynamoDB refuses was not done, whatever the reason; what it fails at may have been.",
        &[Store::Dynamodb(table())],
    );
    s.give(0, keys("AKIDEXAMPLE", None));
    for (lock, (status, code)) in (1..).zip([
        (400, "ProvisionedThroughputExceededException"),
        (400, "ThrottlingException"),
        (400, "RequestLimitExceeded"),
        (400, "TransactionConflictException"),
        (409, "ReplicatedWriteConflictException"),
        (400, "ResourceNotFoundException"),
        (400, "ValidationException"),
        (400, "AccessDeniedException"),
        (403, "MissingAuthenticationTokenException"),
        (400, "InvalidSignatureException"),
        (400, "UnknownOperationException"),
        (500, "InternalServerError"),
    ]) {
        s.acquire(lock, &format!("lock {lock}"), Wait::Once).json(status, &error(code, "as the service says it"));
        s.looked_for(lock);
    }
    for (lock, (status, body)) in (20..).zip([
        (200, "<html>"),
        (200, r#"{"Attributes":{"recordVersionNumber":"#),
        (301, ""),
        (404, ""),
        (413, ""),
        (429, ""),
        (503, "<html>"),
    ]) {
        s.acquire(lock, &format!("lock {lock}"), Wait::Once).http(status, &[], body).looked_for(lock);
    }
    s.told()
}

impl Scenario {
    /// Asks again for a row that may have been written, and frees it.
    fn looked_for(&mut self, lock: u64) -> &mut Self {
        if !self.is_over(lock) {
            self.wake_until_sent().carried_out(0);
            self.release(lock).condition_fails(None);
        }
        self
    }
}

fn dynamodb_credentials() -> WireVector {
    let mut s = Scenario::new(
        "dynamodb_credentials",
        "Requests wait for credentials until their deadline, and are signed when they leave. Those that the service \
         refuses are replaced once within a request; those that soon expire are asked for early, and serve meanwhile.",
        &[Store::Dynamodb(table())],
    );
    s.acquire(1, "never sent", Wait::Once).wake();
    s.acquire(2, "invoice/42", Wait::Forever).pass(200).give(0, keys("AKIDOLD", None));
    s.json(400, &error("ExpiredTokenException", "The security token included in the request is expired"));
    s.pass(100).give(0, keys("AKIDNEW", Some(1_700_000_302_000)));
    s.carried_out(0).wake_until_sent().carried_out(0);
    s.give(0, keys("AKIDNEXT", Some(1_700_090_000_000))).release(2).condition_fails(None);
    s.told()
}

fn dynamodb_clock() -> WireVector {
    let mut s = Scenario::new(
        "dynamodb_clock",
        "A clock that is too far off for signatures is set by the server's `Date`, once in a request, and stays so.",
        &[Store::Dynamodb(table())],
    );
    s.give(0, keys("AKIDEXAMPLE", None));
    let skewed = error("InvalidSignatureException", "Signature expired: 20231114T221320Z is now earlier than ...");
    let date = |time| [("Date", time)];
    s.acquire(1, "invoice/42", Wait::Once);
    s.http(400, &date("Tue, 14 Nov 2023 22:58:20 GMT"), &skewed.to_string()).carried_out(0);
    s.pass(1_000).release(1).condition_fails(None);
    s.acquire(2, "still wrong", Wait::Once);
    s.http(400, &date("Tue, 14 Nov 2023 23:30:00 GMT"), &skewed.to_string());
    s.http(400, &date("Tue, 14 Nov 2023 23:59:00 GMT"), &skewed.to_string());
    s.told()
}

fn dynamodb_renewals() -> WireVector {
    let mut s = Scenario::new(
        "dynamodb_renewals",
        "Renewals that travel together are requests of their own. At the deadline those that were answered count, and the \
         one that was not is unknown.",
        &[Store::Dynamodb(table())],
    );
    s.give(0, keys("AKIDEXAMPLE", None));
    for (lock, name) in [(1, "a"), (2, "b"), (3, "c")] {
        s.acquire(lock, name, Wait::Forever).carried_out(0);
    }
    s.wake_until_sent().carried_out(0).carried_out(0).unanswered();
    s.wake_until_sent().carried_out(0);
    s.told()
}
