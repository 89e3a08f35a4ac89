use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;
use core::time::Duration;

use serde_json::{Value as Json, json};

use super::*;
use leasehold_core::op::Op;
use leasehold_core::op::{Acquire, Applied, DenialKind, Finish, Refusal, Release, Renew};
use leasehold_core::{LockId, Nonce, Owner, Seq, Token, Version};

const TTL: Duration = Duration::from_secs(30);
const NOW: u64 = 1_700_000_000_000;

/// The part of etcd that transactions need: one that was checked against a real server.
#[derive(Default)]
struct Etcd {
    keys: BTreeMap<String, (u64, String)>,
    revision: u64,
}

impl Etcd {
    fn post(&mut self, request: &Request) -> Response {
        let body: Json = serde_json::from_slice(&request.body).unwrap();
        let holds = body["compare"].as_array().unwrap().iter().all(|compare| {
            let revision = self.keys.get(compare["key"].as_str().unwrap()).map_or(0, |(revision, _)| *revision);
            compare["mod_revision"].as_str() == Some(&revision.to_string())
        });
        let mut responses = Vec::new();
        for op in body[if holds { "success" } else { "failure" }].as_array().unwrap() {
            if let Some(range) = op.get("requestRange") {
                let kv = self.keys.get(range["key"].as_str().unwrap()).map(|(revision, value)| {
                    json!({ "key": range["key"], "mod_revision": revision.to_string(), "value": value })
                });
                responses.push(
                    kv.map_or(json!({ "response_range": {} }), |kv| json!({ "response_range": { "kvs": [kv] } })),
                );
            } else {
                self.revision += 1;
                let text = |name: &str| op["requestPut"][name].as_str().unwrap().to_string();
                self.keys.insert(text("key"), (self.revision, text("value")));
            }
        }
        let mut answer = json!({ "header": {}, "responses": responses });
        if holds {
            answer["succeeded"] = json!(true);
        }
        Response { status: 200, body: answer.to_string().into_bytes() }
    }

    fn ask(&mut self, op: Op) -> Outcome {
        self.at(op, NOW)
    }

    fn at(&mut self, op: Op, unix_ms: u64) -> Outcome {
        let mut exchange = begin(op, unix_ms);
        loop {
            let answers = exchange.requests().iter().map(|request| Ok(self.post(request))).collect();
            if let Progress::Done(mut outcomes) = exchange.answers(answers) {
                return outcomes.remove(0);
            }
        }
    }
}

fn begin(op: Op, unix_ms: u64) -> Exchange {
    let resource = Resource::new("a").unwrap();
    Session::new("leasehold/").begin(&[LockOp { lock: LockId::new(1), resource, op }], unix_ms)
}

fn nonce(of: u8) -> Nonce {
    Nonce::from_bytes([of; 16])
}

fn acquire(of: u8, expect: Option<Version>, unless_done: bool) -> Op {
    Op::Acquire(Box::new(Acquire {
        nonce: nonce(of),
        seq: Seq::new(1),
        record_ttl: TTL,
        floor: Token::ZERO,
        expect,
        owner: Owner::new("worker").unwrap(),
        data: None,
        member: None,
        unless_done,
    }))
}

fn release(of: u8) -> Op {
    Op::Release(Release { nonce: nonce(of), quorum: None })
}

fn granted(token: u64) -> Outcome {
    Outcome::Applied(Applied::Acquired { counter: Token::new(token).unwrap() })
}

#[test]
fn a_lock_is_granted_held_renewed_and_released() {
    let mut etcd = Etcd::default();
    assert_eq!(etcd.ask(acquire(1, None, false)), granted(1));
    let Outcome::NotApplied(Refusal::Conflict(seen)) = etcd.ask(acquire(2, None, false)) else { panic!("it is held") };
    let holding = seen.holding.unwrap();
    assert!(holding.is_of(&nonce(1)) && holding.left.is_none() && holding.record_ttl == Some(TTL));
    let renew = Op::Renew(Renew { nonce: nonce(1), seq: Seq::new(2), record_ttl: TTL, quorum: None });
    assert_eq!(etcd.ask(renew), Outcome::Applied(Applied::Renewed));
    // The version that was observed is over.
    assert!(matches!(etcd.ask(acquire(2, Some(holding.version), false)), Outcome::NotApplied(Refusal::Conflict(_))));
    let renewed = Version::of(&nonce(1), Seq::new(2));
    assert_eq!(etcd.ask(acquire(2, Some(renewed), false)), granted(2));
    assert!(matches!(etcd.ask(release(1)), Outcome::NotApplied(Refusal::Conflict(_))));
    assert_eq!(etcd.ask(release(2)), Outcome::Applied(Applied::Released));
    assert_eq!(etcd.ask(acquire(3, None, false)), granted(3));
}

#[test]
fn finished_work_is_marked_a_minute_longer_than_asked() {
    let mut etcd = Etcd::default();
    assert_eq!(etcd.ask(acquire(1, None, true)), granted(1));
    let finish = Finish {
        nonce: nonce(1),
        token: Token::new(1).unwrap(),
        owner: Owner::new("w").unwrap(),
        keep: TTL,
        quorum: None,
    };
    assert_eq!(etcd.ask(Op::Finish(Box::new(finish))), Outcome::Applied(Applied::Finished));
    assert!(matches!(etcd.at(acquire(2, None, true), NOW + 89_999), Outcome::NotApplied(Refusal::Done(_))));
    assert_eq!(etcd.at(acquire(2, None, true), NOW + 90_000), granted(2));
}

#[test]
fn a_write_that_was_overtaken_is_decided_anew() {
    let mut etcd = Etcd::default();
    let mut exchange = begin(acquire(1, None, false), NOW);
    let read = etcd.post(&exchange.requests()[0]);
    assert_eq!(exchange.answers(vec![Ok(read)]), Progress::Again);
    assert_eq!(etcd.ask(acquire(2, None, false)), granted(1));
    let late = exchange.requests()[0].clone();
    let refused = etcd.post(&late);
    assert!(matches!(&exchange.answers(vec![Ok(refused)]), Progress::Done(outcomes)
        if matches!(outcomes[..], [Outcome::NotApplied(Refusal::Conflict(_))])));
    // It may arrive even later, and finds another revision.
    assert_eq!(etcd.ask(release(2)), Outcome::Applied(Applied::Released));
    etcd.post(&late);
    assert_eq!(etcd.ask(acquire(3, None, false)), granted(2));
}

#[test]
fn lost_answers_are_unknown_only_after_a_write() {
    let lost = || vec![Err(misfit())];
    let mut exchange = begin(acquire(1, None, false), NOW);
    let Progress::Done(outcomes) = exchange.answers(lost()) else { panic!("it has ended") };
    assert!(matches!(outcomes[..], [Outcome::NotApplied(Refusal::Unavailable(_))]));
    let mut exchange = begin(acquire(1, None, false), NOW);
    let read = Etcd::default().post(&exchange.requests()[0]);
    assert_eq!(exchange.answers(vec![Ok(read)]), Progress::Again);
    assert!(exchange.requests()[0].writes);
    assert_eq!(exchange.answers(lost()), Progress::Done(vec![misfit()]));
}

#[test]
fn odd_answers_are_no_grants() {
    for body in ["{}", "[]", "{\"succeeded\":1,\"header\":{}}", "{\"header\":{},\"responses\":[]}", "<html>"] {
        let mut exchange = begin(acquire(1, None, false), NOW);
        let odd = Response { status: 200, body: body.as_bytes().to_vec() };
        let Progress::Done(outcomes) = exchange.answers(vec![Ok(odd)]) else { panic!("{body} is no answer") };
        assert!(matches!(outcomes[..], [Outcome::NotApplied(Refusal::Unavailable(_))]), "{body}");
    }
}

#[test]
fn values_written_by_others_are_corrupt_and_unknown_fields_are_kept() {
    let mut etcd = Etcd::default();
    assert_eq!(etcd.ask(acquire(1, None, false)), granted(1));
    let (key, (_, value)) = etcd.keys.pop_first().unwrap();
    let mut record: Json = serde_json::from_slice(&decode(&value)).unwrap();
    record["later"] = json!("kept");
    etcd.keys.insert(key.clone(), (7, encode(&record.to_string())));
    assert_eq!(etcd.ask(release(1)), Outcome::Applied(Applied::Released));
    let text = String::from_utf8(decode(&etcd.keys[&key].1)).unwrap();
    assert!(text.contains("\"later\":\"kept\"") && text.contains("\"released\":true"), "{text}");
    for odd in ["", "1", "{}", "{\"counter\":-1}", "{\"counter\":1,\"lease\":{}}"] {
        etcd.keys.insert(key.clone(), (9, encode(odd)));
        let Outcome::NotApplied(Refusal::Denied(denial)) = etcd.ask(acquire(2, None, false)) else { panic!("{odd}") };
        assert_eq!(denial.kind, DenialKind::CorruptRecord);
    }
}

#[test]
fn errors_say_if_the_request_was_applied() {
    let of = |status: u16, code: u64, message: &str| {
        let body = json!({ "error": message, "code": code, "message": message }).to_string().into_bytes();
        classify(&Response { status, body })
    };
    let denied = |outcome: &Outcome| match outcome {
        Outcome::NotApplied(Refusal::Denied(denial)) => Some(denial.kind),
        _ => None,
    };
    assert!(matches!(of(401, 16, "etcdserver: invalid auth token"), Outcome::NotApplied(Refusal::NeedsCredentials(_))));
    assert_eq!(denied(&of(400, 3, "etcdserver: user name is empty")), Some(DenialKind::Permission));
    assert_eq!(denied(&of(403, 7, "etcdserver: permission denied")), Some(DenialKind::Permission));
    assert_eq!(denied(&of(429, 8, "etcdserver: mvcc: database space exceeded")), Some(DenialKind::StorageFull));
    assert!(matches!(of(429, 8, "etcdserver: too many requests"), Outcome::NotApplied(Refusal::Throttled(_))));
    for message in ["etcdserver: request timed out", "etcdserver: leader changed", "etcdserver: no leader"] {
        assert!(matches!(of(503, 14, message), Outcome::Unknown(_)), "{message}");
    }
    assert!(matches!(classify(&Response { status: 502, body: b"<html>".to_vec() }), Outcome::Unknown(_)));
}

fn decode(text: &str) -> Vec<u8> {
    use base64::Engine;
    base64::engine::general_purpose::STANDARD.decode(text).unwrap()
}

fn encode(text: &str) -> String {
    use base64::Engine;
    base64::engine::general_purpose::STANDARD.encode(text)
}
