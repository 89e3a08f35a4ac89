use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;
use core::time::Duration;

use serde_json::{Value as Json, json};

use super::*;
use crate::{Exchange as _, Progress};
use leasehold_core::SessionLabel;
use leasehold_core::op::{Acquire, Applied, DenialKind, Finish, Refusal, Release, Renew, Tell};
use leasehold_core::op::{Op, Session as LeaseSession};
use leasehold_core::store::{CompletionRecord, Record};
use leasehold_core::{About, LockId, Nonce, Owner, RunResult, Seq, Token, Version};

const TTL: Duration = Duration::from_secs(30);
const NOW: u64 = 1_700_000_000_000;

/// The part of etcd that transactions need: one that was checked against a real server.
#[derive(Default)]
struct Etcd {
    keys: BTreeMap<String, (u64, String)>,
    revision: u64,
    requests: usize,
}

impl Etcd {
    fn post(&mut self, request: &Request) -> HttpResponse {
        self.requests += 1;
        let body: Json = serde_json::from_slice(&request.body).unwrap();
        let mut answer = self.txn(&body);
        answer["header"] = json!({ "cluster_id": "7", "revision": self.revision.to_string() });
        HttpResponse::new(200, answer.to_string().into_bytes())
    }

    fn txn(&mut self, body: &Json) -> Json {
        let holds = body["compare"].as_array().unwrap().iter().all(|compare| {
            let known = self.keys.get(compare["key"].as_str().unwrap());
            match compare["target"].as_str() {
                Some("VALUE") => known.is_some_and(|(_, value)| compare["value"].as_str() == Some(value)),
                _ => compare["mod_revision"] == json!(known.map_or(0, |(revision, _)| *revision).to_string()),
            }
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
            } else if let Some(txn) = op.get("requestTxn") {
                responses.push(json!({ "response_txn": self.txn(txn) }));
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
        answer
    }

    fn ask(&mut self, op: Op) -> Outcome {
        self.at(op, NOW)
    }

    fn at(&mut self, op: Op, unix_ms: u64) -> Outcome {
        let mut memory = Memory::default();
        self.with(&mut memory, &[("a", op)], unix_ms).remove(0)
    }

    fn with(&mut self, memory: &mut Memory, ops: &[(&str, Op)], unix_ms: u64) -> Vec<Outcome> {
        let op = |(name, op): &(&str, Op)| LockOp {
            lock: LockId::new(1),
            resource: Resource::new(name).unwrap(),
            op: op.clone(),
        };
        let ops: Vec<LockOp> = ops.iter().map(op).collect();
        let mut exchange = Codec::new("leasehold/").begin(memory, &ops, unix_ms);
        loop {
            let answers = exchange.requests().iter().map(|request| Ok(self.post(request))).collect();
            if let Progress::Done(outcomes) = exchange.answers(memory, answers) {
                return outcomes;
            }
        }
    }
}

fn begin(op: Op, unix_ms: u64) -> Exchange {
    let resource = Resource::new("a").unwrap();
    Codec::new("leasehold/").begin(&Memory::default(), &[LockOp { lock: LockId::new(1), resource, op }], unix_ms)
}

fn nonce(of: u8) -> Nonce {
    Nonce::from_bytes([of; 16])
}

fn acquire(of: u8, expect: Option<Version>, unless_done: bool) -> Op {
    Op::Acquire(Box::new(Acquire {
        expect,
        owner: Owner::new("worker").unwrap(),
        unless_done,
        ..Acquire::new(nonce(of), Seq::new(1), TTL)
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
fn a_lock_names_its_session_until_the_next_one() {
    let mut etcd = Etcd::default();
    let session = LeaseSession { nonce: nonce(9), label: SessionLabel::new("worker:7").unwrap() };
    let Op::Acquire(op) = acquire(1, None, false) else { panic!("an acquire") };
    etcd.ask(Op::Acquire(Box::new(Acquire { session: Some(session.clone()), ..*op })));
    let named = |outcome| match outcome {
        Outcome::Applied(Applied::Read(seen)) => seen.holding.unwrap().session,
        other => panic!("{other:?}"),
    };
    assert_eq!(named(etcd.ask(Op::Read)), Some(session.clone()));
    etcd.ask(release(1));
    assert_eq!(named(etcd.ask(Op::Read)), Some(session), "who breaks a lock tells its session afterwards");
    etcd.ask(acquire(2, None, false));
    assert_eq!(named(etcd.ask(Op::Read)), None);
    let broken = br#"{"counter":1,"lease":{"nonce":"09090909090909090909090909090909","seq":1,"released":false,
        "ttl_ns":1,"since_ms":1,"owner":"w","data":null,"session":{"nonce":"09"}}}"#;
    assert!(record::Row::parse(broken).is_err(), "nobody could tell if the session lives");
}

#[test]
fn finished_work_is_marked_a_minute_longer_than_asked() {
    let mut etcd = Etcd::default();
    assert_eq!(etcd.ask(acquire(1, None, true)), granted(1));
    let finish = Finish {
        nonce: nonce(1),
        token: Token::new(1).unwrap(),
        counter: Token::new(1).unwrap(),
        owner: Owner::new("w").unwrap(),
        keep: TTL,
        about: None,
        quorum: None,
    };
    assert_eq!(etcd.ask(Op::Finish(Box::new(finish))), Outcome::Applied(Applied::Finished));
    assert!(matches!(etcd.at(acquire(2, None, true), NOW + 89_999), Outcome::NotApplied(Refusal::Done(_))));
    assert_eq!(etcd.at(acquire(2, None, true), NOW + 90_000), granted(2));
}

#[test]
fn a_result_stands_beside_its_completion_and_not_in_it() {
    let mut etcd = Etcd::default();
    assert_eq!(etcd.ask(acquire(1, None, true)), granted(1));
    let (token, owner) = (Token::new(1).unwrap(), Owner::new("w").unwrap());
    let about = About::new(&nonce(1), 1, 0, Some(&RunResult::json("[1]").unwrap()));
    let bare = Finish { nonce: nonce(1), token, counter: token, keep: TTL, owner, about: None, quorum: None };
    let finish = Finish { about: Some(about.clone()), ..bare };
    assert_eq!(etcd.ask(Op::Finish(Box::new(finish))), Outcome::Applied(Applied::Finished));
    let told = |etcd: &mut Etcd| match etcd.ask(acquire(2, None, true)) {
        Outcome::NotApplied(Refusal::Done(completion)) => completion.about,
        other => panic!("{other:?}"),
    };
    assert_eq!(told(&mut etcd), Some(about));
}

#[test]
fn a_client_of_before_that_replaces_the_completion_leaves_no_result() {
    let token = Token::new(1).unwrap();
    let completion = |of, about| CompletionRecord {
        nonce: nonce(of),
        token,
        owner: Owner::default(),
        at_unix_ms: NOW,
        until_unix_ms: NOW + 1,
        about,
    };
    let record = |completion| Record { counter: token, lease: None, completion: Some(completion) };
    let result = RunResult::json("[1]").unwrap();
    let ours = record(completion(1, Some(About::new(&nonce(1), 1, 0, Some(&result)))));
    let text = record::Row::default().with(&ours, None);
    assert_eq!(record::Row::parse(text.as_bytes()).unwrap().record, Some(ours));
    // It keeps the fields that it does not know, and replaces those that it does.
    let replaced =
        text.replacen(&alloc::format!("\"{:032x}\"", u128::MAX / 255), "\"09090909090909090909090909090909\"", 1);
    assert_ne!(replaced, text);
    let row = record::Row::parse(replaced.as_bytes()).unwrap();
    assert_eq!(row.record, Some(record(completion(9, None))));
    assert!(!row.with(&row.record.clone().unwrap(), None).contains("about"), "nor does what was left come back");
}

#[test]
fn a_write_that_was_overtaken_is_decided_anew() {
    let mut etcd = Etcd::default();
    let mut exchange = begin(acquire(1, None, false), NOW);
    let read = etcd.post(&exchange.requests()[0]);
    assert_eq!(exchange.answers(&mut Memory::default(), vec![Ok(read)]), Progress::Again);
    assert_eq!(etcd.ask(acquire(2, None, false)), granted(1));
    let late = exchange.requests()[0].clone();
    let refused = etcd.post(&late);
    assert!(matches!(&exchange.answers(&mut Memory::default(), vec![Ok(refused)]), Progress::Done(outcomes)
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
    let Progress::Done(outcomes) = exchange.answers(&mut Memory::default(), lost()) else { panic!("it has ended") };
    assert!(matches!(outcomes[..], [Outcome::NotApplied(Refusal::Unavailable(_))]));
    let mut exchange = begin(acquire(1, None, false), NOW);
    let read = Etcd::default().post(&exchange.requests()[0]);
    assert_eq!(exchange.answers(&mut Memory::default(), vec![Ok(read)]), Progress::Again);
    assert!(exchange.requests()[0].writes);
    assert_eq!(exchange.answers(&mut Memory::default(), lost()), Progress::Done(vec![misfit()]));
}

fn renew(of: u8, seq: u32) -> Op {
    Op::Renew(Renew { nonce: nonce(of), seq: Seq::new(seq), record_ttl: TTL, quorum: None })
}

#[test]
fn a_key_that_was_written_from_here_needs_no_read() {
    let (mut etcd, mut memory) = (Etcd::default(), Memory::default());
    let mut ask = |etcd: &mut Etcd, op| {
        (etcd.with(&mut memory, &[("a", op)], NOW).remove(0), core::mem::take(&mut etcd.requests))
    };
    assert_eq!(ask(&mut etcd, acquire(1, None, false)), (granted(1), 2));
    assert_eq!(ask(&mut etcd, renew(1, 2)), (Outcome::Applied(Applied::Renewed), 1));
    assert_eq!(ask(&mut etcd, release(1)), (Outcome::Applied(Applied::Released), 1));
    assert_eq!(ask(&mut etcd, acquire(2, None, false)), (granted(2), 1));
    // A write of somebody else makes it read, and judge as if nothing had been remembered.
    assert_eq!(etcd.ask(acquire(3, Some(Version::of(&nonce(2), Seq::new(1))), false)), granted(3));
    etcd.requests = 0;
    let (outcome, requests) = ask(&mut etcd, renew(2, 2));
    assert!(matches!(outcome, Outcome::NotApplied(Refusal::Conflict(_))), "{outcome:?}");
    assert_eq!(requests, 1);
    // What is not remembered as held by others is read before anybody is refused.
    assert_eq!(etcd.ask(release(3)), Outcome::Applied(Applied::Released));
    etcd.requests = 0;
    assert_eq!(ask(&mut etcd, acquire(4, None, false)), (granted(4), 2));
}

#[test]
fn renewals_share_a_request_and_each_is_judged_alone() {
    let (mut etcd, mut memory) = (Etcd::default(), Memory::default());
    for (name, of) in [("a", 1), ("b", 2), ("c", 3)] {
        assert_eq!(etcd.with(&mut memory, &[(name, acquire(of, None, false))], NOW), [granted(1)]);
    }
    let other = Version::of(&nonce(2), Seq::new(1));
    assert_eq!(etcd.with(&mut Memory::default(), &[("b", acquire(9, Some(other), false))], NOW), [granted(2)]);
    etcd.requests = 0;
    let renewals = [("a", renew(1, 2)), ("b", renew(2, 2)), ("c", renew(3, 2))];
    let renewed = etcd.with(&mut memory, &renewals, NOW);
    assert_eq!(etcd.requests, 1);
    assert!(
        matches!(
            &renewed[..],
            [
                Outcome::Applied(Applied::Renewed),
                Outcome::NotApplied(Refusal::Conflict(_)),
                Outcome::Applied(Applied::Renewed),
            ]
        ),
        "{renewed:?}"
    );
    // The same key twice is no single request.
    let twice = [("a", renew(1, 3)), ("a", renew(1, 4))];
    assert_eq!(
        etcd.with(&mut memory, &twice, NOW),
        [Outcome::Applied(Applied::Renewed), Outcome::Applied(Applied::Renewed)]
    );
}

#[test]
fn two_who_tell_at_once_are_both_counted() {
    let (mut etcd, mut first, mut second) = (Etcd::default(), Memory::default(), Memory::default());
    let tell = Op::Tell(Tell { nonce: nonce(1) });
    etcd.with(&mut second, &[("a", acquire(1, None, false))], NOW);
    // The second finds what it would have written itself.
    for memory in [&mut first, &mut second] {
        assert_eq!(etcd.with(memory, &[("a", tell.clone())], NOW), [Outcome::Applied(Applied::Told)]);
    }
    assert_eq!(etcd.ask(renew(1, 2)), Outcome::Applied(Applied::RenewedTold { told: 2 }));
}

#[test]
fn history_that_goes_back_is_noticed_and_what_was_remembered_is_forgotten() {
    let (mut etcd, mut memory) = (Etcd::default(), Memory::default());
    etcd.with(&mut memory, &[("a", acquire(1, None, false))], NOW);
    let backup = (etcd.keys.clone(), etcd.revision);
    etcd.with(&mut memory, &[("a", renew(1, 2))], NOW);
    etcd.with(&mut memory, &[("a", release(1))], NOW);
    assert!(!memory.has_lost());
    (etcd.keys, etcd.revision) = backup;
    // Another write gets the revision that this client remembers, or would.
    etcd.ask(renew(1, 9));
    let Outcome::NotApplied(Refusal::Conflict(seen)) =
        etcd.with(&mut memory, &[("a", acquire(2, None, false))], NOW).remove(0)
    else {
        panic!("it is held again")
    };
    assert!(seen.holding.unwrap().is_of(&nonce(1)) && memory.has_lost());
}

#[test]
fn an_answer_that_was_overtaken_is_no_loss() {
    let (mut etcd, mut memory) = (Etcd::default(), Memory::default());
    etcd.ask(acquire(1, None, false));
    let op = LockOp { lock: LockId::new(1), resource: Resource::new("a").unwrap(), op: Op::Read };
    let mut slow = Codec::new("leasehold/").begin(&memory, &[op], NOW);
    let answer = etcd.post(&slow.requests()[0]);
    etcd.with(&mut memory, &[("b", acquire(2, None, false))], NOW);
    slow.answers(&mut memory, vec![Ok(answer)]);
    assert!(!memory.has_lost());
}

#[test]
fn a_stream_tells_of_releases_and_of_its_end() {
    let session = Codec::new("leasehold/");
    let [a, b] = ["a", "b"].map(|name| Resource::new(name).unwrap());
    let request = String::from_utf8(session.watch(&[a.clone(), b]).body).unwrap();
    assert_eq!(request.matches("create_request").count(), 2);
    assert_eq!(session.watched(br#"{"result":{"header":{},"created":true}}"#), Ok(Watched::Begun));
    let mut etcd = Etcd::default();
    let told = |etcd: &mut Etcd, op: Option<Op>| {
        let kind = if let Some(op) = op {
            etcd.ask(op);
            "PUT"
        } else {
            "DELETE"
        };
        let (key, (_, value)) = etcd.keys.first_key_value().unwrap();
        let kv = if kind == "PUT" { json!({ "key": key, "value": value }) } else { json!({ "key": key }) };
        let line = json!({ "result": { "events": [{ "type": kind, "kv": kv }] } });
        session.watched(line.to_string().as_bytes())
    };
    assert_eq!(told(&mut etcd, Some(acquire(1, None, false))), Ok(Watched::Released(vec![])));
    assert_eq!(told(&mut etcd, Some(renew(1, 2))), Ok(Watched::Released(vec![])));
    assert_eq!(told(&mut etcd, Some(release(1))), Ok(Watched::Released(vec![a.clone()])));
    assert_eq!(told(&mut etcd, None), Ok(Watched::Released(vec![a])));
    for (line, is_expired) in [
        (&br#"{"error":{"grpc_code":16,"http_code":401,"message":"etcdserver: invalid auth token"}}"#[..], true),
        (br#"{"result":{"created":true,"canceled":true,"cancel_reason":"rpc error: code = PermissionDenied desc = no"}}"#, false),
        (br#"{"result":{"created":true,"canceled":true,"cancel_reason":"rpc error: code = Unauthenticated desc = no"}}"#, true),
        (b"<html>", false),
    ] {
        let outcome = session.watched(line).unwrap_err();
        let expired = matches!(outcome, Outcome::NotApplied(Refusal::NeedsCredentials(_)));
        assert_eq!(expired, is_expired, "{outcome:?}");
    }
}

#[test]
fn odd_answers_are_no_grants() {
    for body in ["{}", "[]", "{\"succeeded\":1,\"header\":{}}", "{\"header\":{},\"responses\":[]}", "<html>"] {
        let mut exchange = begin(acquire(1, None, false), NOW);
        let odd = HttpResponse::new(200, body.as_bytes().to_vec());
        let Progress::Done(outcomes) = exchange.answers(&mut Memory::default(), vec![Ok(odd)]) else {
            panic!("{body} is no answer")
        };
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
        classify(&HttpResponse::new(status, body))
    };
    let denied = |outcome: &Outcome| match outcome {
        Outcome::NotApplied(Refusal::Denied(denial)) => Some(denial.kind),
        _ => None,
    };
    assert!(matches!(of(401, 16, "etcdserver: invalid auth token"), Outcome::NotApplied(Refusal::NeedsCredentials(_))));
    assert_eq!(denied(&of(400, 3, "etcdserver: user name is empty")), Some(DenialKind::Permission));
    assert_eq!(denied(&of(403, 7, "etcdserver: permission denied")), Some(DenialKind::Permission));
    let full = of(429, 8, "etcdserver: mvcc: database space exceeded");
    assert!(
        matches!(&full, Outcome::NotApplied(Refusal::Unavailable(fault)) if fault.to_string().contains("alarm disarm"))
    );
    assert!(matches!(of(429, 8, "etcdserver: too many requests"), Outcome::NotApplied(Refusal::Throttled(_))));
    for message in ["etcdserver: request timed out", "etcdserver: leader changed", "etcdserver: no leader"] {
        assert!(matches!(of(503, 14, message), Outcome::Unknown(_)), "{message}");
    }
    let named = HttpResponse::new(400, b"CommonName of client sending a request against gateway will be".to_vec());
    assert_eq!(denied(&classify(&named)), Some(DenialKind::Permission));
    assert!(matches!(classify(&HttpResponse::new(502, b"<html>".to_vec())), Outcome::Unknown(_)));
}

fn decode(text: &str) -> Vec<u8> {
    use base64::Engine;
    base64::engine::general_purpose::STANDARD.decode(text).unwrap()
}

fn encode(text: &str) -> String {
    use base64::Engine;
    base64::engine::general_purpose::STANDARD.encode(text)
}
