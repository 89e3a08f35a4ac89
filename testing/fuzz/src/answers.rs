//! Answers of servers: close to real ones, so that they are read completely.

use arbitrary::{Result, Unstructured};
use leasehold_core::op::{LockOp, Op};
use leasehold_core::{Nonce, RequestId};
use leasehold_wire::resp::Value;
use serde_json::{Map, Value as Json, json};

use crate::values;

const WORDS: [&str; 16] = [
    "granted",
    "doubtful",
    "abstains",
    "stranger",
    "renewed",
    "released",
    "raised",
    "corrupt",
    "exhausted",
    "error",
    "free",
    "held",
    "foreign",
    "marked",
    "changed",
    "",
];

const ERRORS: [&str; 12] = [
    "NOSCRIPT No matching script.",
    "READONLY You can't write against a read only replica.",
    "MOVED 3999 127.0.0.1:6381",
    "ASK 3999 127.0.0.1:6381",
    "BUSY Redis is busy running a script.",
    "OOM command not allowed when used memory > 'maxmemory'.",
    "WRONGTYPE Operation against a key holding the wrong kind of value",
    "NOAUTH Authentication required.",
    "ERR Error running script (call to f_1): @user_script:5: -READONLY You can't write",
    "NOPERM this user has no permissions",
    "CROSSSLOT Keys in request don't hash to the same slot",
    "ERR unknown command",
];

pub(crate) fn hex(nonce: &Nonce) -> String {
    nonce.as_bytes().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A lock's value as a client writes it, or nearly.
pub(crate) fn lock_value(u: &mut Unstructured<'_>) -> Result<Vec<u8>> {
    let mut text = format!("{}@{};{}", hex(&values::nonce(u)?), values::text(u, 8)?, values::number(u)?);
    if u.arbitrary()? {
        text.push_str(u.choose(&[";", ";Zg", ";Zm8", ";Zm9v", ";Zh", ";;"])?);
    }
    let mut value = text.into_bytes();
    if values::chance(u, 60) {
        value = values::bytes(u, 60)?;
    }
    Ok(value)
}

/// One part of a script's answer.
fn part(u: &mut Unstructured<'_>) -> Result<Value> {
    Ok(match u.int_in_range(0..=9)? {
        0..=2 => Value::Bulk(u.choose(&WORDS)?.as_bytes().to_vec()),
        3 => Value::Integer(u.arbitrary()?),
        4 => Value::Bulk(values::number(u)?.to_string().into_bytes()),
        5 => Value::Integer(i64::try_from(values::number(u)?).unwrap_or(-1)),
        6 => Value::Bulk(lock_value(u)?),
        7 => Value::Bulk(values::stamp(u)?.to_string().into_bytes()),
        8 => Value::Bulk(b"-1".to_vec()),
        _ => value(u, 1)?,
    })
}

/// Any value, not deep.
fn value(u: &mut Unstructured<'_>, depth: u32) -> Result<Value> {
    Ok(match u.int_in_range(0..=7)? {
        0 => Value::Nil,
        1 => Value::Simple(values::text(u, 10)?.into()),
        2 => Value::Bulk(values::bytes(u, 40)?),
        3 => Value::Integer(u.arbitrary()?),
        4 => Value::Error((*u.choose(&ERRORS)?).to_owned()),
        5 => Value::Boolean(u.arbitrary()?),
        6 if depth > 0 => Value::Array(values::some(u, 4, |u| value(u, depth - 1))?),
        _ => Value::Verbatim(values::bytes(u, 10)?),
    })
}

fn text(text: impl Into<Vec<u8>>) -> Value {
    Value::Bulk(text.into())
}

/// The answers of an operation's script, without the request's number.
fn parts(u: &mut Unstructured<'_>, op: &Op) -> Result<Vec<Value>> {
    let shown = |u: &mut Unstructured<'_>| {
        let left = *u.choose(&[-2, -1, 0, 1_000, 30_000, i64::MAX])?;
        let counter = if u.arbitrary()? { text("") } else { text(values::number(u)?.to_string()) };
        Ok(vec![text("held"), text(lock_value(u)?), Value::Integer(left), counter])
    };
    if values::chance(u, 60) {
        return values::some(u, 5, part);
    }
    if values::chance(u, 100) {
        return shown(u);
    }
    Ok(match op {
        Op::Acquire(op) if op.unless_done && u.arbitrary()? => marked(u, "done")?,
        Op::Acquire(op) if op.member.is_some() && u.arbitrary()? => match u.int_in_range(0..=2)? {
            0 => vec![text("doubtful"), text(values::number(u)?.to_string()), text(values::stamp(u)?.to_string())],
            1 => vec![text("abstains"), text(values::stamp(u)?.to_string())],
            _ => vec![text("stranger"), text(values::quorum_id(u)?.to_string()), text("60000")],
        },
        Op::Acquire(_) => vec![text("granted"), text(values::number(u)?.to_string())],
        Op::Renew(_) | Op::Release(_) if u.arbitrary()? => free(u)?,
        Op::Renew(_) => vec![text(*u.choose(&["renewed", "abstains"])?)],
        // Its whole answer is the number of the request, which follows.
        Op::Release(_) => Vec::new(),
        Op::Finish(_) => vec![text(*u.choose(&["finished", "abstains"])?)],
        Op::Revoke(_) => vec![text("revoked")],
        Op::Tell(_) => vec![text("told")],
        Op::Raise(op) => {
            let counter = if u.arbitrary()? { op.token.get() } else { values::number(u)? };
            vec![text("raised"), text(counter.to_string())]
        }
        Op::Read if u.arbitrary()? => {
            let mut parts = marked(u, "marked")?;
            parts.extend(free(u)?);
            parts
        }
        Op::Read => free(u)?,
    })
}

fn free(u: &mut Unstructured<'_>) -> Result<Vec<Value>> {
    let counter = if u.arbitrary()? { values::number(u)?.to_string() } else { String::new() };
    Ok(vec![text("free"), text(counter)])
}

fn marked(u: &mut Unstructured<'_>, word: &str) -> Result<Vec<Value>> {
    let left = *u.choose(&[-2, -1, 0, 1_000, 3_600_000, i64::MAX])?;
    let value = format!("{};{}", String::from_utf8_lossy(&lock_value(u)?), values::number(u)?);
    let about = if u.arbitrary()? { text("") } else { text(values::bytes(u, 40)?) };
    Ok(vec![text(word), text(value), Value::Integer(left), about])
}

/// The reply to one command that carries these operations. `id` is the request's own for the most part.
pub(crate) fn reply(u: &mut Unstructured<'_>, id: RequestId, ops: &[LockOp]) -> Result<Value> {
    if values::chance(u, 40) {
        return Ok(Value::Error((*u.choose(&ERRORS)?).to_owned()));
    }
    if values::chance(u, 12) {
        return value(u, 2);
    }
    let mut all = Vec::new();
    let is_renewal = matches!(ops.first(), Some(LockOp { op: Op::Renew(_), .. }));
    for op in ops.iter().take(if is_renewal { ops.len() } else { 1 }) {
        let mut parts = parts(u, &op.op)?;
        if is_renewal {
            // Answers for several have parts in equal numbers.
            parts.resize(if values::chance(u, 250) { 4 } else { 3 }, text(""));
        }
        all.extend(parts);
    }
    if !values::chance(u, 12) {
        let named = if values::chance(u, 240) { id.get() } else { u.arbitrary()? };
        all.push(text(named.to_string()));
    }
    let is_released = matches!(ops, [LockOp { op: Op::Release(_), .. }]) && all.len() == 1;
    Ok(if is_released { all.remove(0) } else { Value::Array(all) })
}

/// The answer as one of the two dialects of HTTP writes it, for any value.
pub(crate) fn json_of(value: &Value) -> Json {
    match value {
        Value::Nil => Json::Null,
        Value::Simple(text) => json!(text),
        Value::Error(text) | Value::Double(text) | Value::BigNumber(text) => json!(text),
        Value::Bulk(bytes) | Value::Verbatim(bytes) => json!(String::from_utf8_lossy(bytes)),
        Value::Integer(number) => json!(number),
        Value::Boolean(flag) => json!(flag),
        Value::Array(items) | Value::Push(items) | Value::Set(items) => items.iter().map(json_of).collect(),
        Value::Map(pairs) => pairs.iter().map(|(key, value)| json!([json_of(key), json_of(value)])).collect(),
    }
}

/// A row of DynamoDB, of ours or of another library's.
pub(crate) fn row(u: &mut Unstructured<'_>, of: Option<Nonce>) -> Result<Json> {
    let mut row = Map::new();
    let nonce = match of {
        Some(nonce) if u.arbitrary()? => nonce,
        Some(_) | None => values::nonce(u)?,
    };
    let version = match u.int_in_range(0..=5)? {
        0..=3 => format!("{}:{:010}", hex(&nonce), values::seq(u)?.get()),
        4 => "c0ffee00-0000-4000-8000-000000000000".to_owned(),
        _ => values::text(u, 40)?,
    };
    row.insert("recordVersionNumber".into(), json!({ "S": version }));
    row.insert("leaseDuration".into(), json!({ "S": values::number(u)?.to_string() }));
    row.insert("ownerName".into(), json!({ "S": values::text(u, 10)? }));
    if values::chance(u, 200) {
        row.insert("fencingToken".into(), json!({ "N": values::number(u)?.to_string() }));
    }
    if values::chance(u, 80) {
        row.insert("isReleased".into(), json!({ "S": "1" }));
    }
    if values::chance(u, 80) {
        row.insert("quorumTrust".into(), json!({ "S": values::stamp(u)?.to_string() }));
    }
    if values::chance(u, 60) {
        row.insert("undoneVersion".into(), json!({ "S": version }));
    }
    if values::chance(u, 60) {
        row.insert("quorumMarker".into(), json!({ "S": values::marker(u)?.text() }));
    }
    const KEYS: [&str; 5] = ["invoice", "a", "b", "leasehold\u{1f}quorum", "cas\u{1f}a"];
    row.insert("key".into(), json!({ "S": *u.choose(&KEYS)? }));
    while values::chance(u, 60) {
        const NAMES: [&str; 11] = [
            "recordVersionNumber",
            "leaseDuration",
            "isReleased",
            "fencingToken",
            "data",
            "grantedAt",
            "freedAt",
            "holderTold",
            "LockID",
            "quorumTrust",
            "lease_duration",
        ];
        row.insert((*u.choose(&NAMES)?).to_owned(), attribute(u)?);
    }
    Ok(Json::Object(row))
}

fn attribute(u: &mut Unstructured<'_>) -> Result<Json> {
    Ok(match u.int_in_range(0..=6)? {
        0 => json!({ "S": values::text(u, 20)? }),
        1 => json!({ "N": values::text(u, 5)? }),
        2 => json!({ "B": *u.choose(&["", "Zg==", "Zg", "%"])? }),
        3 => json!({ "BOOL": u.arbitrary::<bool>()? }),
        4 => json!({ "S": "1", "N": "1" }),
        5 => json!({ "L": [] }),
        _ => Json::Null,
    })
}

/// The body of an answer of DynamoDB, and its status.
pub(crate) fn dynamodb(u: &mut Unstructured<'_>, of: Option<Nonce>) -> Result<(u16, Vec<u8>)> {
    const CODES: [&str; 12] = [
        "ConditionalCheckFailedException",
        "ProvisionedThroughputExceededException",
        "TransactionConflictException",
        "ResourceNotFoundException",
        "ValidationException",
        "AccessDeniedException",
        "ExpiredTokenException",
        "InvalidSignatureException",
        "InternalServerError",
        "UnrecognizedClientException",
        "LimitExceededException",
        "?",
    ];
    let (status, body) = match u.int_in_range(0..=9)? {
        0..=3 => (200, json!({ (*u.choose(&["Attributes", "Item"])?): row(u, of)? })),
        4 => (200, json!({})),
        5 | 6 => {
            let code = "com.amazonaws.dynamodb.v20120810#ConditionalCheckFailedException";
            let mut body = json!({ "__type": code, "message": "The conditional request failed" });
            if u.arbitrary()? {
                body["Item"] = row(u, of)?;
            }
            (400, body)
        }
        7 | 8 => {
            let code = format!("x#{}", u.choose(&CODES)?);
            (*u.choose(&[400, 500, 200])?, json!({ "__type": code, "message": values::text(u, 60)? }))
        }
        _ => return Ok((*u.choose(&[200, 400, 413, 503])?, values::bytes(u, 200)?)),
    };
    Ok((status, body.to_string().into_bytes()))
}
