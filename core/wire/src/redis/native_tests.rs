use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec;

use super::*;
use crate::Progress;
use crate::resp::Value;
use leasehold_core::op::{Acquire, Applied, FaultKind, Holder, Outcome, Refusal};
use leasehold_core::{LockId, Nonce, Owner, Seq, Token};

const NONCE: Nonce = Nonce::from_bytes([0x5a; 16]);
const HEX: &str = "5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a";
const RIVAL_VALUE: &str = "c3c3c3c3c3c3c3c3c3c3c3c3c3c3c3c3@pod-7;1700000000000";
const LEFT: Duration = Duration::from_secs(4);
const UNIX_MS: u64 = 1_700_000_000_000;
const NOW: u64 = UNIX_MS * 1_000;
const ID: RequestId = RequestId::new(17);

fn token(number: u64) -> Token {
    Token::new(number).unwrap()
}

fn acquire_at(floor: u64) -> LockOp {
    let acquire = Acquire {
        floor: token(floor),
        owner: Owner::new("me").unwrap(),
        ..Acquire::new(NONCE, Seq::new(1), Duration::from_secs(30))
    };
    LockOp { lock: LockId::new(1), resource: Resource::new("a").unwrap(), op: Op::Acquire(Box::new(acquire)) }
}

fn bulk(text: &str) -> Value {
    Value::Bulk(text.into())
}

fn ok() -> Value {
    Value::Simple("OK".into())
}

fn queued() -> Value {
    Value::Simple("QUEUED".into())
}

fn error(text: &str) -> Value {
    Value::Error(text.into())
}

fn answer(parts: &[&str]) -> Value {
    Value::Array(parts.iter().copied().chain(["17"]).map(bulk).collect())
}

/// The replies to a transaction that ran, with the results of its commands.
fn ran(results: Vec<Value>) -> Vec<Value> {
    let mut replies = vec![ok()];
    replies.extend(results.iter().map(|_| queued()));
    replies.push(Value::Array(results));
    replies
}

fn codec() -> Codec {
    Codec::new(Settings::default())
}

/// The same where the clock was set back, so that the retention is pushed out.
fn begin_pushing(memory: &ConnectionMemory, op: &LockOp) -> Exchange {
    codec().begin_on(memory, ID, core::slice::from_ref(op), LEFT, UNIX_MS - 1).unwrap()
}

fn begin(memory: &ConnectionMemory, op: &LockOp) -> Exchange {
    codec().begin_on(memory, ID, core::slice::from_ref(op), LEFT, UNIX_MS).unwrap()
}

fn names(exchange: &Exchange) -> Vec<String> {
    let name = |command: &Command| match command.name() {
        b"EVALSHA" => {
            let digest = command.words().nth(1).unwrap();
            let script = SCRIPTS.iter().find(|script| script.sha1.as_bytes() == digest).unwrap();
            script.name.into()
        }
        b"EVAL" => "whole script".into(),
        name => String::from_utf8(name.to_vec()).unwrap(),
    };
    exchange.commands().iter().map(name).collect()
}

/// Ends the exchange with these replies, and has the memory learn from it.
fn end(memory: &mut ConnectionMemory, mut exchange: Exchange, op: &LockOp, replies: Vec<Value>) -> Outcome {
    let Progress::Done(mut outcomes) = exchange.replies(replies) else { panic!("one more round") };
    memory.learn(&exchange, core::slice::from_ref(op), &outcomes);
    outcomes.remove(0)
}

/// A connection that has just granted the name twice, the last time with the token `NOW`.
fn warm() -> ConnectionMemory {
    let (mut memory, op) = (ConnectionMemory::default(), acquire_at(NOW));
    let first = begin(&memory, &op);
    assert_eq!(names(&first), ["acquire"], "a name that it has not seen");
    let text = format!("{}", NOW - 1);
    end(&mut memory, first, &op, vec![answer(&["granted", &text])]);
    let second = begin(&memory, &op);
    assert_eq!(names(&second), ["acquire", "MULTI", "EXEC"], "once the user's right is asked for");
    let text = format!("{NOW}");
    end(&mut memory, second, &op, vec![answer(&["granted", &text]), ok(), Value::Array(vec![])]);
    memory
}

#[test]
fn a_turn_in_line_is_no_reason_for_a_transaction() {
    let again = |lock: &LockOp| {
        let Op::Acquire(acquire) = &lock.op else { panic!("an acquire") };
        let again = Acquire { in_queue: true, seq: Seq::new(2), ..(**acquire).clone() };
        LockOp { op: Op::Acquire(Box::new(again)), ..lock.clone() }
    };
    let (mut memory, op) = (warm(), acquire_at(NOW));
    assert_eq!(names(&begin(&memory, &op)), ["MULTI", "SET", "INCR", "EXEC"]);
    let turn = begin(&memory, &again(&op));
    assert_eq!(names(&turn), ["acquire"], "the lock is reserved, and so not free");
    end(&mut memory, turn, &again(&op), vec![answer(&["granted", &format!("{}", NOW + 1)])]);
    assert_eq!(names(&begin(&memory, &op)), ["acquire"], "others were in the way");
}

fn granted(counter: u64) -> Outcome {
    Outcome::Applied(Applied::Acquired { counter: token(counter) })
}

/// The exchange after a transaction with these replies, which is to push out the retention.
fn after(replies: Vec<Value>) -> Exchange {
    let mut exchange = begin_pushing(&warm(), &acquire_at(NOW));
    assert_eq!(exchange.replies(replies), Progress::Again);
    exchange
}

fn outcome(mut exchange: Exchange, replies: Vec<Value>) -> Outcome {
    match exchange.replies(replies) {
        Progress::Done(mut outcomes) => outcomes.remove(0),
        Progress::Again => panic!("one more round"),
    }
}

#[test]
fn third_grant_in_a_row_is_a_transaction_of_these_arguments() {
    let exchange = begin(&warm(), &acquire_at(NOW));
    let text = |command: &Command| -> Vec<String> {
        command.words().map(|word| String::from_utf8(word.to_vec()).unwrap()).collect()
    };
    let commands: Vec<_> = exchange.commands().iter().map(text).collect();
    let value = format!("{HEX}@me;1700000000000");
    let fence = "{a}\x1ffence of name";
    assert_eq!(
        commands,
        [vec!["MULTI"], vec!["SET", "a", &value, "NX", "PX", "30000"], vec!["INCR", fence], vec!["EXEC"],]
    );
}

/// A connection as [`warm`], and how long ago it has pushed out the retention.
fn begin_after(memory: &ConnectionMemory, settings: Settings, since_ms: i64) -> Exchange {
    let unix_ms = UNIX_MS.checked_add_signed(since_ms).unwrap();
    let op = acquire_at(NOW);
    Codec::new(settings).begin_on(memory, ID, &[op], LEFT, unix_ms).unwrap()
}

#[test]
fn retention_is_pushed_out_again_after_a_hundredth_of_it_or_an_hour() {
    let (hour, week) = (3_600_000, Duration::from_secs(7 * 86_400));
    for (retention, since_ms, pushes) in [
        (week, 0, false),
        (week, hour - 1, false),
        (week, hour, true),
        (week, -1, true),
        (Duration::from_secs(100), 999, false),
        (Duration::from_secs(100), 1_000, true),
        (Duration::from_millis(99), 0, true),
    ] {
        let memory = warm();
        let settings = Settings { retention, ..Settings::default() };
        let commands = names(&begin_after(&memory, settings, since_ms));
        assert_eq!(commands.contains(&"PEXPIRE".into()), pushes, "{retention:?}, {since_ms}: {commands:?}");
    }
}

#[test]
fn retention_counts_from_the_grant_that_pushed_it_out() {
    let (mut memory, op) = (warm(), acquire_at(NOW));
    let hour = 3_600_000;
    let count = |next: u64| Value::Integer(i64::try_from(next).unwrap());
    for (since_ms, counter, kept) in [
        (hour - 1, NOW + 1, vec![]),
        (hour, NOW + 2, vec![Value::Integer(1)]),
        (2 * hour - 1, NOW + 3, vec![]),
        (2 * hour, NOW + 4, vec![Value::Integer(1)]),
    ] {
        let exchange = begin_after(&memory, Settings::default(), since_ms);
        let results = [ok(), count(counter)].into_iter().chain(kept).collect();
        assert_eq!(end(&mut memory, exchange, &op, ran(results)), granted(counter), "{since_ms}");
    }
}

#[test]
fn script_after_a_transaction_pushes_the_retention_out() {
    let (mut memory, op) = (warm(), acquire_at(NOW));
    let later = 3_600_000 - 1;
    let mut exchange = begin_after(&memory, Settings::default(), later);
    assert_eq!(exchange.replies(ran(vec![ok(), Value::Integer(1)])), Progress::Again);
    end(&mut memory, exchange, &op, vec![answer(&["granted", &format!("{}", NOW + 7)])]);
    let commands = names(&begin_after(&memory, Settings::default(), 2 * later));
    assert_eq!(commands, ["MULTI", "SET", "INCR", "EXEC"]);
}

#[test]
fn transaction_with_another_number_of_results_makes_no_sense() {
    for parts in [vec![ok()], vec![ok(), Value::Integer(i64::try_from(NOW + 1).unwrap()), Value::Integer(1)]] {
        let exchange = begin(&warm(), &acquire_at(NOW));
        let unknown = outcome(exchange, vec![ok(), queued(), queued(), Value::Array(parts)]);
        assert!(matches!(unknown, Outcome::Unknown(_)), "{unknown:?}");
    }
}

#[test]
fn transaction_grants_the_counter_above_the_last_token() {
    let (mut memory, op) = (warm(), acquire_at(NOW));
    for next in [NOW + 1, NOW + 2, NOW + 9] {
        let exchange = begin(&memory, &op);
        let replies = ran(vec![ok(), Value::Integer(i64::try_from(next).unwrap())]);
        assert_eq!(end(&mut memory, exchange, &op, replies), granted(next));
    }
}

#[test]
fn counter_not_above_the_last_token_is_lifted_by_the_script() {
    for count in [1, i64::try_from(NOW).unwrap(), -5, i64::MAX] {
        let exchange = after(ran(vec![ok(), Value::Integer(count), Value::Integer(1)]));
        assert_eq!(names(&exchange), ["acquire"], "{count}");
        let text = format!("{}", NOW + 7);
        assert_eq!(outcome(exchange, vec![answer(&["granted", &text])]), granted(NOW + 7));
    }
}

#[test]
fn counter_that_is_no_integer_or_was_not_kept_is_left_to_the_script() {
    let count = Value::Integer(i64::try_from(NOW + 1).unwrap());
    for (count, kept) in [
        (error("WRONGTYPE Operation against a key"), Value::Integer(1)),
        (error("ERR value is not an integer or out of range"), Value::Integer(1)),
        (count.clone(), Value::Integer(0)),
        (count, error("ERR odd")),
        (Value::Nil, Value::Integer(1)),
    ] {
        let exchange = after(ran(vec![ok(), count, kept]));
        let corrupt = outcome(exchange.clone(), vec![answer(&["corrupt"])]);
        assert!(matches!(corrupt, Outcome::NotApplied(Refusal::Denied(_))), "{corrupt:?}");
        // The script has not run, so the lock of the transaction still stands.
        for refusal in ["OOM command not allowed", "NOPERM no", "READONLY no", "BUSY no", "ERR odd"] {
            let refused = outcome(exchange.clone(), vec![error(refusal)]);
            assert!(matches!(refused, Outcome::Unknown(_)), "{refusal}: {refused:?}");
        }
    }
}

#[test]
fn unknown_script_is_sent_whole_after_a_transaction_too() {
    let mut exchange = after(ran(vec![ok(), Value::Integer(1), Value::Integer(1)]));
    assert_eq!(exchange.replies(vec![error("NOSCRIPT no")]), Progress::Again);
    assert_eq!(names(&exchange), ["whole script"]);
    assert!(matches!(outcome(exchange, vec![error("NOSCRIPT no")]), Outcome::Unknown(_)));
}

#[test]
fn lock_that_is_taken_is_looked_at_by_the_script() {
    let op = acquire_at(NOW);
    let mut memory = warm();
    let count = Value::Integer(i64::try_from(NOW + 1).unwrap());
    let mut exchange = begin(&memory, &op);
    assert_eq!(exchange.replies(ran(vec![Value::Nil, count])), Progress::Again);
    assert_eq!(names(&exchange), ["acquire"]);
    let refused = outcome(exchange.clone(), vec![error("OOM command not allowed")]);
    assert!(matches!(refused, Outcome::NotApplied(_)), "nothing of ours stands: {refused:?}");
    let seen = end(&mut memory, exchange, &op, vec![answer(&["held", RIVAL_VALUE, "5000", "41"])]);
    let Outcome::NotApplied(Refusal::Conflict(seen)) = seen else { panic!("{seen:?}") };
    assert!(matches!(seen.held().unwrap().holder, Holder::Lease { .. }));
    assert_eq!(names(&begin(&memory, &op)), ["acquire"], "somebody else wants it, so the script tells at once");
}

#[test]
fn aborted_transaction_has_taken_nothing() {
    let op = acquire_at(NOW);
    let noperm = error("NOPERM this user has no permissions to run the 'incr' command");
    let abort = error("EXECABORT Transaction discarded because of previous errors.");
    let mut memory = warm();
    let mut exchange = begin(&memory, &op);
    assert_eq!(exchange.replies(vec![ok(), queued(), noperm, abort]), Progress::Again);
    assert_eq!(names(&exchange), ["acquire"]);
    let refused = outcome(exchange.clone(), vec![error("OOM command not allowed")]);
    assert!(matches!(refused, Outcome::NotApplied(_)), "{refused:?}");
    let text = format!("{}", NOW + 7);
    end(&mut memory, exchange, &op, vec![answer(&["granted", &text])]);
    let later = [begin(&memory, &op), begin(&memory, &op)];
    assert!(later.iter().all(|exchange| names(exchange) == ["acquire"]), "no transaction on this connection any more");
    // All were queued, and the server aborts the whole: it became a replica, or is full.
    for reason in
        ["READONLY You can't write against a read only replica.", "OOM no", "EXECABORT because of: NOREPLICAS"]
    {
        let exchange = after(vec![ok(), queued(), queued(), queued(), error(reason)]);
        let refused = outcome(exchange, vec![error(reason)]);
        assert!(matches!(refused, Outcome::NotApplied(_)), "{reason}: {refused:?}");
    }
    // No abort that we know: it may have run.
    let exchange = after(vec![ok(), queued(), queued(), queued(), error("ERR upstream failure")]);
    assert!(matches!(outcome(exchange, vec![error("OOM no")]), Outcome::Unknown(_)));
}

#[test]
fn commands_that_ran_without_multi_are_undone() {
    let noperm = || error("NOPERM this user has no permissions to run the 'multi' command");
    let none = || error("ERR EXEC without MULTI");
    let count = || Value::Integer(i64::try_from(NOW + 1).unwrap());
    for exec in [none(), noperm(), error("EXECABORT no")] {
        let exchange = after(vec![noperm(), ok(), count(), Value::Integer(1), exec]);
        assert_eq!(names(&exchange), ["release"]);
        for done in [bulk("17"), answer(&["free", ""]), answer(&["held", RIVAL_VALUE, "5", "41"])] {
            let refused = outcome(exchange.clone(), vec![done]);
            assert!(matches!(refused, Outcome::NotApplied(Refusal::Unavailable(_))), "{refused:?}");
        }
        for failed in [error("OOM no"), error("ERR odd"), Value::Nil] {
            let failed = outcome(exchange.clone(), vec![failed]);
            assert!(matches!(failed, Outcome::Unknown(_)), "{failed:?}");
        }
    }
    for not_set in [Value::Nil, noperm()] {
        let exchange = after(vec![noperm(), not_set, count(), Value::Integer(1), none()]);
        assert_eq!(names(&exchange), ["acquire"], "there is nothing to undo");
    }
}

#[test]
fn memory_that_learns_of_a_refusal_keeps_to_scripts() {
    let (mut memory, op) = (ConnectionMemory::default(), acquire_at(NOW));
    let text = format!("{NOW}");
    let first = begin(&memory, &op);
    end(&mut memory, first, &op, vec![answer(&["granted", &text])]);
    let trial = begin(&memory, &op);
    end(&mut memory, trial, &op, vec![answer(&["granted", &text]), error("NOPERM no"), error("NOPERM no")]);
    for _ in 0..3 {
        let exchange = begin(&memory, &op);
        assert_eq!(names(&exchange), ["acquire"]);
        assert_eq!(end(&mut memory, exchange, &op, vec![answer(&["granted", &text])]), granted(NOW));
    }
}

#[test]
fn tokens_far_behind_the_clock_are_lifted_by_the_script() {
    let memory = warm();
    for (floor, unix_ms, expected) in [
        (NOW, UNIX_MS, "MULTI"),
        (NOW + 1_000_001, UNIX_MS + 1_001, "MULTI"),
        (NOW + 1_000_002, UNIX_MS + 1_001, "acquire"),
        // A floor that is ahead of the clock comes from a token that somebody was granted.
        (NOW + 1, UNIX_MS, "MULTI"),
        (NOW + 2, UNIX_MS, "acquire"),
        (NOW + 2, UNIX_MS + 1, "MULTI"),
    ] {
        let op = acquire_at(floor);
        let exchange = codec().begin_on(&memory, ID, &[op], LEFT, unix_ms).unwrap();
        assert_eq!(names(&exchange)[0], expected, "{floor} at {unix_ms}");
    }
}

#[test]
fn doubt_ends_the_row_of_grants() {
    let op = acquire_at(NOW);
    for replies in [vec![Value::Nil; 4], vec![ok(), queued(), queued(), Value::Nil], vec![]] {
        let mut memory = warm();
        let exchange = begin(&memory, &op);
        let unknown = end(&mut memory, exchange, &op, replies.clone());
        let Outcome::Unknown(fault) = unknown else { panic!("{replies:?}: {unknown:?}") };
        assert_eq!(fault.kind, FaultKind::Protocol, "{replies:?}");
        assert_eq!(names(&begin(&memory, &op)), ["acquire"]);
    }
}

#[test]
fn only_single_acquires_of_one_server_are_transactions() {
    let memory = warm();
    let op = acquire_at(NOW);
    let read = LockOp { op: Op::Read, ..op.clone() };
    let with = |settings: Settings, ops: &[LockOp]| {
        names(&Codec::new(settings).begin_on(&memory, ID, ops, LEFT, UNIX_MS).unwrap()).remove(0)
    };
    assert_eq!(with(Settings::default(), core::slice::from_ref(&op)), "MULTI");
    assert_eq!(with(Settings::default(), &[op.clone(), read]), "acquire");
    let cluster = Settings { topology: Topology::Cluster, ..Settings::default() };
    assert_eq!(with(cluster, core::slice::from_ref(&op)), "acquire");
    let replicas = Settings { replicas: Some(Replicas { count: 1 }), ..Settings::default() };
    assert_eq!(with(replicas, core::slice::from_ref(&op)), "whole script");
    assert_eq!(names(&codec().begin(ID, &[op], LEFT, UNIX_MS).unwrap()), ["acquire"]);
}

#[test]
fn memory_is_bounded() {
    let mut memory = warm();
    let exchange = begin(&memory, &acquire_at(NOW));
    for number in 0..10_000 {
        let op = LockOp { resource: Resource::new(&format!("name {number}")).unwrap(), ..acquire_at(NOW) };
        memory.learn(&exchange, &[op], &[granted(NOW)]);
        assert!(memory.len() <= 4_096);
    }
}
