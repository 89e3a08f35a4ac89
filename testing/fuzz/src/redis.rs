//! Answers of a Redis to operations of every kind, in as many rounds as it takes.

use std::time::Duration;

use arbitrary::{Result, Unstructured};
use leasehold_core::RequestId;
use leasehold_core::op::{Applied, Holder, LockOp, Op, Outcome, Refusal};
use leasehold_wire::Progress;
use leasehold_wire::redis::{Codec, Command, Exchange, Replicas, Settings, Topology};
use leasehold_wire::resp::{Value, decode_all, encode};

use crate::{answers, invariants, values};

/// A request, and what comes back.
pub fn run(bytes: &[u8]) {
    // The run ends where the bytes end.
    let _ = told(&mut Unstructured::new(bytes));
}

fn told(u: &mut Unstructured<'_>) -> Result<()> {
    let settings = Settings {
        retention: values::length(u)?,
        replicas: values::maybe(u, |u| Ok(Replicas { count: u.int_in_range(0..=3)? }))?,
        topology: if values::chance(u, 60) { Topology::Cluster } else { Topology::Single },
    };
    let (replicas, id) = (settings.replicas, RequestId::new(u.int_in_range(0..=99)?));
    let (ops, unix_ms) = (values::ops(u)?, values::number(u)?);
    let Ok(mut exchange) = Codec::new(settings).begin(id, &ops, values::length(u)?, unix_ms) else { return Ok(()) };
    reads_back(id, &ops, exchange.commands(), unix_ms);

    let mut named = false;
    for round in 0.. {
        assert!(round < 2, "a script is sent twice at most");
        let commands = exchange.commands().to_vec();
        commands.iter().for_each(round_trip);
        let replies = if values::chance(u, 20) {
            decode_all(&values::bytes(u, 300)?).unwrap_or_default()
        } else {
            let reply = |u: &mut Unstructured<'_>, command: &Command| {
                let waits = command.name() == b"WAIT";
                if waits { Ok(Value::Integer(u.int_in_range(-1..=3)?)) } else { answers::reply(u, id, &ops) }
            };
            commands.iter().map(|command| reply(u, command)).collect::<Result<_>>()?
        };
        named |= replies.iter().any(|reply| names(reply, id));
        let confirmed = replies.iter().any(|reply| matches!(reply, Value::Integer(count) if *count > 0));
        match exchange.replies(replies) {
            Progress::Again => {}
            Progress::Done(outcomes) => {
                assert_eq!(outcomes.len(), ops.len());
                for (op, outcome) in ops.iter().zip(&outcomes) {
                    invariants::outcome(op, outcome);
                    let releases = matches!(op.op, Op::Release(_));
                    assert!(!invariants::is_grant(outcome) || named, "an answer that names no request was believed");
                    assert!(!invariants::is_grant(outcome) || replicas.is_none() || releases || confirmed);
                    not_in_its_own_way(op, outcome);
                }
                break;
            }
        }
    }
    Ok(())
}

fn names(reply: &Value, id: RequestId) -> bool {
    // The answer to a release that has freed the lock is the number alone.
    let number = match reply {
        Value::Array(parts) => parts.last(),
        number => Some(number),
    };
    number.and_then(Value::as_bytes) == Some(id.get().to_string().as_bytes())
}

/// A command is written as a list that reads as what it says.
fn round_trip(command: &Command) {
    let mut bytes = Vec::new();
    encode(command, &mut bytes);
    let words = command.words().map(|word| Value::Bulk(word.to_vec())).collect();
    assert_eq!(decode_all(&bytes), Ok(vec![Value::Array(words)]));
}

fn not_in_its_own_way(op: &LockOp, outcome: &Outcome) {
    if let (Some(nonce), Outcome::NotApplied(Refusal::Conflict(seen))) = (op.op.nonce(), outcome) {
        let ends = matches!(op.op, Op::Release(_) | Op::Finish(_) | Op::Revoke(_));
        assert!(!seen.held().is_some_and(|holding| holding.is_of(&nonce) && (ends || !holding.is_revoked())));
    }
}

/// Checks that a client reads what another one's acquire wrote.
fn reads_back(id: RequestId, ops: &[LockOp], commands: &[Command], unix_ms: u64) {
    let ([LockOp { op: Op::Acquire(acquire), resource, .. }], Some(command)) = (ops, commands.first()) else { return };
    let mut words = command.words().skip(2);
    let keys = std::str::from_utf8(words.next().expect("a number")).expect("a number");
    let value = words.nth(keys.parse().expect("a number")).expect("a value").to_vec();
    let read = [LockOp { op: Op::Read, resource: resource.clone(), lock: ops[0].lock }];
    let begun = Codec::new(Settings::default()).begin(id, &read, Duration::from_secs(1), 0);
    let mut exchange: Exchange = begun.expect("one server takes every name");
    let parts = [b"held".to_vec(), value, b"1000".to_vec(), b"7".to_vec(), id.get().to_string().into_bytes()];
    let reply = Value::Array(parts.into_iter().map(Value::Bulk).collect());
    let Progress::Done(outcomes) = exchange.replies(vec![reply]) else { panic!("a read takes one round") };
    let [Outcome::Applied(Applied::Read(seen))] = outcomes.as_slice() else { panic!("{outcomes:?}") };
    let holding = seen.held().expect("somebody holds it");
    assert_eq!(holding.holder, Holder::Lease { nonce: acquire.nonce, seq: None });
    assert_eq!((&holding.owner, &holding.data), (&Some(acquire.owner.clone()), &acquire.data));
    assert_eq!(holding.since_unix_ms, Some(unix_ms));
}
