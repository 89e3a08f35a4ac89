//! Requests to a table, and the meaning of its answers. Whether DynamoDB answers so is tested against DynamoDB.

use alloc::boxed::Box;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;
use core::time::Duration;

use serde_json::{Value as Json, json};

use super::*;
use crate::{Exchange as _, Progress, Repeat, Repeats};
use leasehold_core::member::{Bootstrap, Durability, LossId, Marker, Membership, Phase, QuorumId, RETENTION};
use leasehold_core::op::{
    Acquire, Applied, DenialKind, Fault, FaultKind, Holder, Holding, LockOp, Op, Outcome, Raise, Refusal, Release,
    Renew,
};
use leasehold_core::{LockId, Nonce, Owner, Payload, Resource, Seq, Token, Version};

mod answers;
mod failures;
mod hostile;
mod kept;
mod quorum;
mod requests;
mod rows;
mod undone;

const NONCE: Nonce = Nonce::from_bytes([0x5a; 16]);
const HEX: &str = "5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a";
const RIVAL: Nonce = Nonce::from_bytes([0xc3; 16]);
const RIVAL_RVN: &str = "c3c3c3c3c3c3c3c3c3c3c3c3c3c3c3c3:0000000007";
const JAVA_RVN: &str = "0b1f0e9c-9f4a-4a36-8f0e-3a1a6c1d2e3f";
const UNIX_MS: u64 = 1_700_000_000_123;
const FLOOR: u64 = 1_700_000_000_000;

fn on(op: Op) -> LockOp {
    LockOp { lock: LockId::new(1), resource: Resource::new("invoice/42").unwrap(), op }
}

fn token(number: u64) -> Token {
    Token::new(number).unwrap()
}

fn an_acquire() -> Acquire {
    Acquire {
        floor: token(FLOOR),
        owner: Owner::new("me").unwrap(),
        ..Acquire::new(NONCE, Seq::new(1), Duration::from_secs(30))
    }
}

fn acquire() -> Op {
    Op::Acquire(Box::new(an_acquire()))
}

fn takeover(version: Version) -> Op {
    Op::Acquire(Box::new(Acquire { expect: Some(version), ..an_acquire() }))
}

fn renew() -> Op {
    Op::Renew(Renew { nonce: NONCE, seq: Seq::new(3), record_ttl: Duration::from_micros(30_000_001), quorum: None })
}

fn release() -> Op {
    Op::Release(Release { nonce: NONCE, quorum: None })
}

fn raise(to: u64, loss: Option<LossId>) -> Op {
    Op::Raise(Raise { nonce: NONCE, token: token(to), loss })
}

fn codec() -> Codec {
    Codec::new(Settings::new("locks").unwrap())
}

fn begun(op: Op) -> Exchange {
    codec().begin(&[on(op)], UNIX_MS).unwrap()
}

fn body(request: &Request) -> Json {
    serde_json::from_slice(&request.body).unwrap()
}

fn response(status: u16, body: &Json) -> HttpResponse {
    HttpResponse::new(status, body.to_string().into_bytes())
}

/// A row as the table shows it: ours or another's, held.
fn row(rvn: &str) -> Json {
    json!({
        "key": { "S": "invoice/42" },
        "ownerName": { "S": "pod-7" },
        "leaseDuration": { "S": "20000" },
        "recordVersionNumber": { "S": rvn },
    })
}

fn with(mut row: Json, name: &str, attribute: Json) -> Json {
    row[name] = attribute;
    row
}

fn without(mut row: Json, name: &str) -> Json {
    row.as_object_mut().unwrap().remove(name);
    row
}

fn released(row: Json) -> Json {
    with(row, "isReleased", json!({ "S": "1" }))
}

fn undone(row: Json) -> Json {
    let version = row["recordVersionNumber"].clone();
    with(released(row), "undoneVersion", version)
}

fn counting(row: Json, counter: u64) -> Json {
    with(row, "fencingToken", json!({ "N": counter.to_string() }))
}

fn ours(seq: u32) -> Json {
    row(&alloc::format!("{HEX}:{seq:010}"))
}

fn shows(row: &Json) -> HttpResponse {
    response(200, &json!({ "Attributes": row }))
}

fn reads(row: &Json) -> HttpResponse {
    response(200, &json!({ "Item": row }))
}

fn refuses(row: Option<&Json>) -> HttpResponse {
    let mut body = json!({
        "__type": "com.amazonaws.dynamodb.v20120810#ConditionalCheckFailedException",
        "message": "The conditional request failed",
    });
    if let Some(row) = row {
        body["Item"] = row.clone();
    }
    response(400, &body)
}

fn fails(status: u16, code: &str, message: &str) -> HttpResponse {
    response(status, &json!({ "__type": alloc::format!("com.amazon.coral.service#{code}"), "Message": message }))
}

fn lost() -> Result<HttpResponse, Outcome> {
    Err(Outcome::Unknown(Fault::of(FaultKind::Timeout)))
}

/// The outcome if these are the answers, round by round, and the targets and bodies of all requests.
fn told(op: Op, answers: impl IntoIterator<Item = Result<HttpResponse, Outcome>>) -> (Outcome, Vec<Json>) {
    let mut exchange = begun(op);
    let mut asked = vec![];
    for answer in answers {
        let [request] = exchange.requests() else { panic!("not one request") };
        asked.push(with(body(request), "target", json!(alloc::format!("{:?}", request.target))));
        match exchange.answers(&mut (), vec![answer]) {
            Progress::Done(mut outcomes) => return (outcomes.remove(0), asked),
            Progress::Again => {}
        }
    }
    panic!("one more round: {:?}", exchange.requests());
}

/// The outcome if the only answer is this.
fn answered(op: Op, answer: HttpResponse) -> Outcome {
    told(op, [Ok(answer)]).0
}

fn granted(counter: u64) -> Outcome {
    Outcome::Applied(Applied::Acquired { counter: token(counter) })
}

fn holding(outcome: &Outcome) -> &Holding {
    match outcome {
        Outcome::NotApplied(Refusal::Conflict(seen)) | Outcome::Applied(Applied::Read(seen)) => {
            seen.holding.as_deref().expect("a record")
        }
        other => panic!("shows nothing: {other:?}"),
    }
}

fn denial(outcome: Outcome) -> (DenialKind, String) {
    match outcome {
        Outcome::NotApplied(Refusal::Denied(denial)) => (denial.kind, denial.detail.to_string()),
        other => panic!("not denied: {other:?}"),
    }
}

fn is_protocol(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Unknown(Fault { kind: FaultKind::Protocol, .. }))
}
