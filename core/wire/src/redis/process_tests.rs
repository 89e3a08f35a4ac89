//! Votes over a connection whose process is known, and over one that leads to another process.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec;

use super::*;
use crate::Progress;
use crate::resp::Value;
use leasehold_core::member::QuorumId;
use leasehold_core::op::{Acquire, Applied, Outcome, Refusal};
use leasehold_core::{LockId, Nonce, Owner, Seq};

const ID: RequestId = RequestId::new(17);
const NAME: &str = "leasehold-07070707070707070707070707070707";
const RUN: &str = "0123456789abcdef0123456789abcdef01234567";
const TWOS: &str = "02020202020202020202020202020202";

fn vote_with(durability: Durability, unless_done: bool) -> LockOp {
    let acquire = Acquire {
        floor: Token::new(7).unwrap(),
        owner: Owner::new("me").unwrap(),
        unless_done,
        member: Some(Membership {
            quorum: QuorumId([1; 16]),
            max_ttl_ms: 60_000,
            durability,
            fresh: LossId([2; 16]),
            waited_out: None,
            bootstrap: Bootstrap::No,
            retention: RETENTION,
        }),
        ..Acquire::new(Nonce::from_bytes([0x5a; 16]), Seq::new(1), Duration::from_secs(30))
    };
    LockOp { lock: LockId::new(1), resource: Resource::new("a@b").unwrap(), op: Op::Acquire(Box::new(acquire)) }
}

fn vote() -> LockOp {
    vote_with(Durability::NotDeclared, false)
}

fn begin_with(codec: &Codec, memory: &ConnectionMemory, op: &LockOp) -> Exchange {
    codec.begin_on(memory, ID, core::slice::from_ref(op), Duration::from_secs(4), 1_700_000_000_000).unwrap()
}

fn begin(memory: &ConnectionMemory, op: &LockOp) -> Exchange {
    begin_with(&Codec::new(Settings::default()), memory, op)
}

fn end(memory: &mut ConnectionMemory, mut exchange: Exchange, replies: Vec<Value>) -> Outcome {
    let Progress::Done(mut outcomes) = exchange.replies(replies) else { panic!("one more round") };
    memory.learn(&exchange, &[vote()], &outcomes);
    outcomes.remove(0)
}

/// Each command in a word, or the question for the run in a vote: the last argument but one.
fn shapes(exchange: &Exchange) -> Vec<String> {
    let shape = |command: &Command| {
        let words: Vec<_> = command.words().map(|word| String::from_utf8(word.to_vec()).unwrap()).collect();
        match &words[0][..] {
            "EVALSHA" | "EVAL" => alloc::format!("{} {}", words[0], words[words.len() - 2]),
            _ => words.join(" "),
        }
    };
    exchange.commands().iter().map(shape).collect()
}

fn bulk(text: &str) -> Value {
    Value::Bulk(text.into())
}

fn simple(text: &'static str) -> Value {
    Value::Simple(text.into())
}

fn error(text: &str) -> Value {
    Value::Error(text.into())
}

fn answer(parts: &[&str]) -> Value {
    Value::Array(parts.iter().copied().chain(["17"]).map(bulk).collect())
}

fn granted() -> Value {
    answer(&["granted", "12"])
}

fn is_granted(outcome: &Outcome) -> bool {
    *outcome == Outcome::Applied(Applied::Acquired { counter: Token::new(12).unwrap() })
}

fn queued(exec: Value) -> Vec<Value> {
    vec![simple("OK"), simple("QUEUED"), simple("QUEUED"), exec]
}

fn info(run: &str) -> Value {
    bulk(&alloc::format!("# Server\r\nredis_version:7.0.15\r\nrun_id:{run}\r\ntcp_port:6379\r\n"))
}

fn named() -> ConnectionMemory {
    ConnectionMemory::named(ConnectionName::from_bytes([7; 16]))
}

/// The memory of a connection that has introduced itself to the process of this run.
fn introduced(run: &str) -> ConnectionMemory {
    let mut memory = named();
    let exchange = begin(&memory, &vote());
    assert_eq!(
        shapes(&exchange),
        ["EVALSHA ask", "MULTI", &alloc::format!("CLIENT SETNAME {NAME}"), "INFO server", "EXEC"]
    );
    let replies = [vec![granted()], queued(Value::Array(vec![simple("OK"), info(run)]))].concat();
    assert!(is_granted(&end(&mut memory, exchange, replies)));
    memory
}

#[test]
fn a_known_process_is_not_asked_for_its_run_again() {
    let mut memory = introduced(RUN);
    for op in [vote(), vote_with(Durability::NotDeclared, true)] {
        let exchange = begin(&memory, &op);
        assert_eq!(shapes(&exchange), ["MULTI", "CLIENT GETNAME", &alloc::format!("EVALSHA {RUN}"), "EXEC"]);
        let outcome = end(&mut memory, exchange, queued(Value::Array(vec![bulk(NAME), granted()])));
        assert!(is_granted(&outcome), "{outcome:?}");
    }
}

#[test]
fn a_script_that_the_process_does_not_know_is_sent_whole() {
    let mut memory = introduced(RUN);
    let mut exchange = begin(&memory, &vote());
    let unknown = error("NOSCRIPT No matching script. Please use EVAL.");
    assert_eq!(exchange.replies(queued(Value::Array(vec![bulk(NAME), unknown]))), Progress::Again);
    assert!(!exchange.may_hold() && shapes(&exchange) == ["EVAL ask"], "{:?}", shapes(&exchange));
    assert!(is_granted(&end(&mut memory, exchange, vec![granted()])));
    assert_eq!(shapes(&begin(&memory, &vote())).len(), 4, "the process is still the same");
}

#[test]
fn another_process_is_asked_for_its_run() {
    let executed = |parts| queued(Value::Array(parts));
    let noperm = || error("NOPERM this user has no permissions to run the 'client|getname' command");
    for replies in [
        executed(vec![Value::Nil, granted()]),
        executed(vec![bulk("leasehold-"), granted()]),
        executed(vec![noperm(), granted()]),
        executed(vec![bulk(NAME)]),
        queued(Value::Nil),
        vec![noperm(), bulk(NAME), granted(), error("ERR EXEC without MULTI")],
        vec![simple("OK"), noperm(), simple("QUEUED"), error("ERR odd")],
    ] {
        let mut memory = introduced(RUN);
        let mut exchange = begin(&memory, &vote());
        assert_eq!(exchange.replies(replies.clone()), Progress::Again, "{replies:?}");
        assert!(exchange.may_hold(), "{replies:?}");
        assert_eq!(shapes(&exchange), ["EVAL ask"]);
        for (said, granted) in [(granted(), true), (answer(&["abstains", TWOS]), false), (error("OOM no"), false)] {
            let outcome = end(&mut memory, exchange.clone(), vec![said]);
            assert!(is_granted(&outcome) == granted, "{outcome:?}");
            assert!(granted || matches!(outcome, Outcome::Unknown(_)), "it may hold the lock: {outcome:?}");
        }
        assert_eq!(shapes(&begin(&memory, &vote())), ["EVALSHA ask"], "that connection is believed no more");
    }
}

#[test]
fn a_vote_that_was_aborted_holds_nothing() {
    let memory = introduced(RUN);
    let mut exchange = begin(&memory, &vote());
    let noperm = error("NOPERM this user has no permissions to run the 'client|getname' command");
    let aborted = error("EXECABORT Transaction discarded because of previous errors.");
    assert_eq!(exchange.replies(vec![simple("OK"), noperm, simple("QUEUED"), aborted]), Progress::Again);
    assert!(!exchange.may_hold() && shapes(&exchange) == ["EVAL ask"]);
}

#[test]
fn a_process_that_does_not_tell_its_run_is_asked_each_time() {
    for exec in [
        Value::Array(vec![simple("OK"), info("0123")]),
        Value::Array(vec![simple("OK"), info(&RUN.to_uppercase())]),
        Value::Array(vec![simple("OK"), error("NOPERM no")]),
        Value::Array(vec![error("ERR unknown command 'CLIENT'"), info(RUN)]),
        Value::Array(vec![]),
        error("EXECABORT no"),
        Value::Nil,
    ] {
        let mut memory = named();
        let exchange = begin(&memory, &vote());
        assert!(is_granted(&end(&mut memory, exchange, [vec![granted()], queued(exec)].concat())));
        assert_eq!(shapes(&begin(&memory, &vote())), ["EVALSHA ask"]);
    }
    assert_eq!(shapes(&begin(&ConnectionMemory::default(), &vote())), ["EVALSHA ask"], "without a name");
}

#[test]
fn only_votes_that_ask_introduce_a_connection() {
    let declared = vote_with(Durability::Declared, false);
    assert_eq!(shapes(&begin(&named(), &declared)), ["EVALSHA "]);
    assert_eq!(shapes(&begin(&introduced(RUN), &declared)), ["EVALSHA "]);
    let waits = Codec::new(Settings { replicas: Some(Replicas { count: 1 }), ..Settings::default() });
    assert_eq!(shapes(&begin_with(&waits, &introduced(RUN), &vote())), ["EVAL ask", "WAIT 1 3000"]);
}

#[test]
fn an_abstention_over_a_known_process_is_told_as_it_is() {
    let mut memory = introduced(RUN);
    let exchange = begin(&memory, &vote());
    let executed = queued(Value::Array(vec![bulk(NAME), answer(&["abstains", TWOS])]));
    let stamp = Some(LossId([2; 16]));
    assert_eq!(end(&mut memory, exchange, executed), Outcome::NotApplied(Refusal::Abstains { stamp }));
}
