//! Writes the outputs of the component as the files have them.

use leasehold_wasmtime::client::{Error, Event, Failure, LostReason, Output};
use leasehold_wasmtime::ops::{
    Birth, Completion, Denial, DenialKind, Fault, FaultKind, Holding, LockOp, Membership, Op,
};
use leasehold_wasmtime::types::Durability;
use serde_json::{Value, json};

use super::whole;

const WEEK_MS: u64 = 7 * 24 * 3_600 * 1_000;

/// Rounds expected values up to milliseconds where the WIT counts in them and rounds up.
pub(super) fn round_up(value: &mut Value, of: &str) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| round_up(item, of)),
        Value::Object(fields) => {
            for (name, value) in fields {
                let is_coarse = match name.as_str() {
                    "record_ttl_ns" | "max_ttl_ns" | "retention_ns" | "keep_ns" | "max_keep_ns" => true,
                    // The validity left to a lease is told exactly.
                    "left_ns" => of != "renewed",
                    _ => false,
                };
                match value.as_u64().filter(|_| is_coarse) {
                    Some(ns) => *value = json!(ns.div_ceil(1_000_000) * 1_000_000),
                    None => round_up(value, name),
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

pub(super) fn output(output: &Output) -> Value {
    bare(match output {
        Output::Transmit(it) => {
            let ops: Vec<Value> = it.ops.iter().map(lock_op).collect();
            json!({ "transmit": { "id": it.id, "node": it.node, "deadline_ns": it.deadline_ns, "ops": ops } })
        }
        Output::Event(it) => json!({ "event": event(it.lock, &it.event) }),
        Output::Subscribe(it) => json!({ "subscribe": { "node": it.node, "resource": it.resource } }),
        Output::Unsubscribe(it) => json!({ "unsubscribe": { "node": it.node, "resource": it.resource } }),
        Output::NeedCredentials(it) => json!({ "need_credentials": { "node": it.node } }),
        Output::Rejected(it) => json!({ "rejected": { "lock": it.lock, "error": error(&it.error) } }),
        Output::HttpRequest(it) => whole::http_request(it),
        Output::RedisCommands(it) => whole::redis_commands(it),
        Output::Statement(it) => whole::statement(it),
        Output::WakeAt(it) => panic!("drained, and then {it:?}"),
    })
}

/// Leaves out absent values.
fn bare(mut value: Value) -> Value {
    match &mut value {
        Value::Array(items) => items.iter_mut().for_each(|item| *item = bare(item.take())),
        Value::Object(fields) => {
            fields.retain(|_, value| !value.is_null());
            fields.values_mut().for_each(|value| *value = bare(value.take()));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
    value
}

pub(super) fn hex(bytes: impl AsRef<[u8]>) -> String {
    bytes.as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

fn ns(ms: u64) -> u64 {
    ms * 1_000_000
}

fn lock_op(op: &LockOp) -> Value {
    json!({ "lock": op.lock, "resource": op.resource, "op": operation(&op.op) })
}

fn operation(op: &Op) -> Value {
    match op {
        Op::Acquire(it) => json!({ "acquire": {
            "nonce": hex(&it.nonce),
            "seq": it.seq,
            "record_ttl_ns": ns(it.record_ttl_ms),
            "floor": it.floor,
            "expect": it.expect.as_ref().map(hex),
            "owner": label(&it.owner),
            "data": it.data.as_ref().map(hex),
            "member": it.member.as_ref().map(member),
            "unless_done": it.unless_done.then_some(true),
        } }),
        Op::Renew(it) => json!({ "renew": {
            "nonce": hex(&it.nonce),
            "seq": it.seq,
            "record_ttl_ns": ns(it.record_ttl_ms),
            "quorum": it.quorum.map(durability),
        } }),
        Op::Release(it) => {
            json!({ "release": { "nonce": hex(&it.nonce), "quorum": it.quorum.map(durability) } })
        }
        Op::Finish(it) => json!({ "finish": {
            "nonce": hex(&it.nonce),
            "token": it.token,
            "counter": it.counter,
            "keep_ns": ns(it.keep_ms),
            "owner": label(&it.owner),
            "about": it.about.as_ref().map(hex),
            "quorum": it.quorum.map(durability),
        } }),
        Op::Revoke(it) => json!({ "revoke": { "nonce": hex(&it.nonce) } }),
        Op::Raise(it) => {
            json!({ "raise": { "nonce": hex(&it.nonce), "token": it.token, "loss": it.loss.as_ref().map(hex) } })
        }
        Op::Read => json!({ "read": {} }),
    }
}

fn label(owner: &str) -> Option<&str> {
    Some(owner).filter(|owner| !owner.is_empty())
}

fn member(it: &Membership) -> Value {
    json!({
        "quorum": hex(&it.quorum),
        "max_ttl_ms": it.max_ttl_ms,
        "durability": Some(durability(it.durability)).filter(|_| it.durability != Durability::NotDeclared),
        "fresh": hex(&it.fresh),
        "waited_out": it.waited_out.as_ref().map(hex),
        "birth": (it.birth == Birth::Yes).then_some("yes"),
        "retention_ns": Some(ns(it.retention_ms)).filter(|_| it.retention_ms != WEEK_MS),
    })
}

fn durability(durability: Durability) -> &'static str {
    match durability {
        Durability::Declared => "declared",
        Durability::NotDeclared => "not_declared",
    }
}

fn event(lock: u64, event: &Event) -> Value {
    match event {
        Event::Acquired(it) => json!({ "acquired": {
            "lock": lock, "token": it.token, "deadline_ns": it.deadline_ns, "recovered": it.recovered,
        } }),
        Event::Contended(it) => json!({ "contended": { "lock": lock, "holding": holding(&it.holding) } }),
        Event::Failed(it) => json!({ "failed": { "lock": lock, "failure": failure(&it.failure) } }),
        Event::Renewed(it) => json!({ "renewed": {
            "lock": lock, "deadline_ns": it.deadline_ns, "left_ns": it.left_ns, "recovered": it.recovered,
        } }),
        Event::RenewDelayed(it) => json!({ "renew_delayed": {
            "lock": lock, "deadline_ns": it.deadline_ns, "fault": fault(&it.fault),
        } }),
        Event::Shortened(it) => json!({ "shortened": { "lock": lock, "deadline_ns": it.deadline_ns } }),
        Event::Expiring(it) => json!({ "expiring": { "lock": lock, "deadline_ns": it.deadline_ns } }),
        Event::Lost(it) => json!({ "lost": { "lock": lock, "reason": lost(&it.reason) } }),
        Event::Released(it) => json!({ "released": { "lock": lock, "confirmed": it.confirmed } }),
        Event::Finished(it) => json!({ "finished": {
            "lock": lock, "confirmed": it.confirmed, "result_dropped": it.result_dropped.then_some(true),
        } }),
    }
}

fn failure(failure: &Failure) -> Value {
    match failure {
        Failure::Busy(it) => json!({ "busy": { "holding": it.holding.as_ref().map(holding) } }),
        Failure::TimedOut(it) => json!({ "timed_out": { "holding": it.holding.as_ref().map(holding) } }),
        Failure::Throttled(why) => json!({ "throttled": fault(why) }),
        Failure::Unavailable(why) => json!({ "unavailable": fault(why) }),
        Failure::Abstains(it) => json!({ "abstains": { "left_ns": ns(it.left_ms) } }),
        Failure::Refused(why) => json!({ "refused": denial(why) }),
        Failure::Done(it) => json!({ "done": completion(it) }),
        Failure::CompletionsInDoubt => json!({ "completions_in_doubt": {} }),
        Failure::Cancelled => json!({ "cancelled": {} }),
        Failure::Other(it) => panic!("{it:?}"),
    }
}

fn lost(reason: &LostReason) -> Value {
    match reason {
        LostReason::Expired => json!({ "expired": {} }),
        LostReason::MaxHold => json!({ "max_hold": {} }),
        LostReason::TakenOver(it) => json!({ "taken_over": { "by": it.by.as_ref().map(holding) } }),
        LostReason::Released => json!({ "released": {} }),
        LostReason::RecordGone => json!({ "record_gone": {} }),
        LostReason::Revoked => json!({ "revoked": {} }),
        LostReason::Other(it) => panic!("{it:?}"),
    }
}

fn error(error: &Error) -> Value {
    match error {
        Error::DuplicateLock => json!({ "duplicate_lock": {} }),
        Error::UnknownLock => json!({ "unknown_lock": {} }),
        Error::TooManyLocks(it) => json!({ "too_many_locks": { "limit": it.limit } }),
        Error::AboveMaxTtl(it) => json!({ "above_max_ttl": {
            "record_ttl_ns": ns(it.record_ttl_ms), "max_ttl_ns": ns(it.max_ttl_ms),
        } }),
        Error::AboveMaxKeep(it) => json!({ "above_max_keep": {
            "keep_ns": ns(it.keep_ms), "max_keep_ns": ns(it.max_keep_ms),
        } }),
        Error::NotARun => json!({ "not_a_run": {} }),
        Error::Closed => json!({ "closed": {} }),
        Error::Invalid(it) => panic!("{it:?}"),
        Error::Other(it) => panic!("{it:?}"),
    }
}

fn holding(it: &Holding) -> Value {
    json!({
        "holder": match &it.holder {
            Some(holder) => json!({ "lease": { "nonce": hex(&holder.nonce), "seq": holder.seq } }),
            None => json!({ "foreign": {} }),
        },
        "version": hex(&it.version),
        "released": it.released,
        "counter": it.counter,
        "owner": it.owner,
        "record_ttl_ns": it.record_ttl_ms.map(ns),
        "left_ns": it.left_ms.map(ns),
        "since_unix_ms": it.since_unix_ms,
        "data": it.data.as_ref().map(hex),
    })
}

fn completion(it: &Completion) -> Value {
    json!({
        "token": it.token, "owner": label(&it.owner), "at_unix_ms": it.at_unix_ms, "left_ns": ns(it.left_ms),
        "about": it.about.as_ref().map(hex), "unsettled": it.unsettled.then_some(true),
    })
}

fn fault(it: &Fault) -> Value {
    let kind = match it.kind {
        FaultKind::Timeout => "timeout",
        FaultKind::Reset => "reset",
        FaultKind::Unreachable => "unreachable",
        FaultKind::Cancelled => "cancelled",
        FaultKind::Server => "server",
        FaultKind::Busy => "busy",
        FaultKind::Protocol => "protocol",
    };
    json!({ "kind": kind, "detail": it.detail })
}

fn denial(it: &Denial) -> Value {
    let kind = match it.kind {
        DenialKind::Permission => "permission",
        DenialKind::Schema => "schema",
        DenialKind::CorruptRecord => "corrupt_record",
        DenialKind::TokensExhausted => "tokens_exhausted",
        DenialKind::StorageFull => "storage_full",
        DenialKind::Membership => "membership",
        DenialKind::Other => "other",
    };
    json!({ "kind": kind, "detail": it.detail })
}
