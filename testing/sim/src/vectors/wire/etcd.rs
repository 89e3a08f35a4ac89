//! etcd, its transactions and its tokens.

use leasehold_core::config::Wait;
use leasehold_wire::client::{Access, EtcdStore, Plaintext, Store};
use serde_json::{Value as Json, json};

use super::scenario::Scenario;
use crate::format::{Credentials, WireVector};

pub(super) const ALL: &[fn() -> WireVector] = &[etcd_requests, etcd_tokens, etcd_errors];

/// The key of the lock `invoice/42`.
const KEY: &str = "bGVhc2Vob2xkL2xvY2svaW52b2ljZS80Mg==";
/// `{"counter":1800000000000000,"lease":{..."owner":"host-b","released":true,"seq":7...}}`
const RELEASED: &str = "eyJjb3VudGVyIjoxODAwMDAwMDAwMDAwMDAwLCJsZWFzZSI6eyJkYXRhIjpudWxsLCJub25jZSI6IjBiMGIwYjBiMGIwYjBi\
                        MGIwYjBiMGIwYjBiMGIwYjBiIiwib3duZXIiOiJob3N0LWIiLCJyZWxlYXNlZCI6dHJ1ZSwic2VxIjo3LCJzaW5jZV9tcyI6\
                        MTcwMDAwMDAwMDAwMCwidHRsX25zIjoyMDAwMDAwMDAwMH19";
/// The same, held.
const HELD: &str = "eyJjb3VudGVyIjoxODAwMDAwMDAwMDAwMDAwLCJsZWFzZSI6eyJkYXRhIjpudWxsLCJub25jZSI6IjBiMGIwYjBiMGIwYjBiMGIw\
                    YjBiMGIwYjBiMGIwYjBiIiwib3duZXIiOiJob3N0LWIiLCJyZWxlYXNlZCI6ZmFsc2UsInNlcSI6Nywic2luY2VfbXMiOjE3MDAw\
                    MDAwMDAwMDAsInR0bF9ucyI6MjAwMDAwMDAwMDB9fQ==";

fn etcd(access: Access) -> Store {
    Store::Etcd(EtcdStore {
        url: "https://etcd.example:2379".to_owned(),
        prefix: "leasehold/".to_owned(),
        access,
        plaintext: Plaintext::Refused,
    })
}

fn token(token: &str) -> Credentials {
    Credentials::Token { token: token.to_owned(), expires_unix_ms: None }
}

fn header() -> Json {
    json!({ "cluster_id": "14841639068965178418", "member_id": "10276657743932975437", "revision": "41", "raft_term": "2" })
}

/// The row that a transaction reads.
fn range(value: Option<&str>) -> Json {
    let kvs = value.map(|value| json!([{ "key": KEY, "mod_revision": "40", "value": value }]));
    let range = kvs.map_or(json!({ "header": {} }), |kvs| json!({ "header": {}, "kvs": kvs, "count": "1" }));
    json!({ "response_range": range })
}

impl Scenario {
    /// The comparisons of the oldest request hold, and it reads or writes.
    fn succeeds(&mut self, read: Option<Json>) -> &mut Self {
        let response = read.unwrap_or_else(|| json!({ "response_put": { "header": { "revision": "41" } } }));
        self.json(200, &json!({ "header": header(), "succeeded": true, "responses": [response] }))
    }

    /// They do not: a refusal is 200 without `succeeded`.
    fn is_overtaken(&mut self, value: Option<&str>) -> &mut Self {
        self.json(200, &json!({ "header": header(), "responses": [range(value)] }))
    }

    fn etcd_says(&mut self, status: u16, code: u16, message: &str) -> &mut Self {
        self.json(status, &json!({ "error": message, "message": message, "code": code }))
    }
}

fn etcd_requests() -> WireVector {
    let mut s = Scenario::new(
        "etcd_requests",
        "A lock is read, and written where nobody has written since. What was written last needs no read: the next write \
         compares it, and is decided again by what the answer shows where that fails.",
        &[etcd(Access::Anonymous)],
    );
    s.acquire(1, "invoice/42", Wait::Once).succeeds(Some(range(None))).succeeds(None);
    s.wake_until_sent().succeeds(None);
    s.release(1).succeeds(None);
    s.acquire(2, "invoice/42", Wait::Once).is_overtaken(Some(RELEASED)).succeeds(None);
    s.release(2).lost().wake_until_sent().is_overtaken(Some(HELD));
    s.acquire(3, "invoice/42", Wait::Once).succeeds(Some(range(Some(HELD))));
    s.told()
}

fn etcd_tokens() -> WireVector {
    let mut s = Scenario::new(
        "etcd_tokens",
        "Requests wait for a token. One that etcd refuses was not carried out, and is sent again with a newer one.",
        &[etcd(Access::WithCredentials)],
    );
    s.acquire(1, "invoice/42", Wait::Forever).pass(100).give(0, token("OLD.7")).pass(1).give(0, token("NEW.8"));
    s.etcd_says(401, 16, "etcdserver: invalid auth token").succeeds(Some(range(None))).succeeds(None);
    s.release(1).succeeds(None);
    s.told()
}

fn etcd_errors() -> WireVector {
    let mut s = Scenario::new(
        "etcd_errors",
        "What etcd refuses was not done; what it fails at, or a proxy, may have been, if it was a write.",
        &[etcd(Access::Anonymous)],
    );
    for (lock, (status, code, message)) in (1..).zip([
        (400, 3, "etcdserver: user name is empty"),
        (403, 7, "etcdserver: permission denied"),
        (429, 8, "etcdserver: mvcc: database space exceeded"),
        (429, 8, "etcdserver: too many requests"),
        (503, 14, "etcdserver: no leader"),
    ]) {
        s.acquire(lock, &format!("lock {lock}"), Wait::Once).etcd_says(status, code, message);
    }
    for (lock, (status, body)) in (20..).zip([(200, "<html>"), (200, "{}"), (301, ""), (404, ""), (502, "<html>")]) {
        s.acquire(lock, &format!("lock {lock}"), Wait::Once).http(status, &[], body);
    }
    s.told()
}
