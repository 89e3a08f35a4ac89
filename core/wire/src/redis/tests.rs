mod releases;

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec;

use releases::released;

use super::*;
use crate::resp::{Value, encode};
use crate::{Exchange as _, Progress};
use leasehold_core::op::{
    Acquire, Applied, Fault, FaultKind, Finish, Holder, Outcome, Raise, Refusal, Release, Renew, Seen,
};
use leasehold_core::{LockId, Nonce, Owner, Payload, Seq, Token, Version};

mod results;

const NONCE: Nonce = Nonce::from_bytes([0x5a; 16]);
const RIVAL: Nonce = Nonce::from_bytes([0xc3; 16]);
const HEX: &str = "5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a";
const RIVAL_VALUE: &str = "c3c3c3c3c3c3c3c3c3c3c3c3c3c3c3c3@pod-7;1700000000000;Zm9v";
const LEFT: Duration = Duration::from_secs(4);
const UNIX_MS: u64 = 1_700_000_000_000;
const ID: RequestId = RequestId::new(17);

fn on(resource: &str, op: Op) -> LockOp {
    LockOp { lock: LockId::new(1), resource: Resource::new(resource).unwrap(), op }
}

fn token(number: u64) -> Token {
    Token::new(number).unwrap()
}

fn acquire() -> Op {
    acquire_with("me", None, Duration::from_secs(30))
}

fn acquire_with(owner: &str, data: Option<&[u8]>, record_ttl: Duration) -> Op {
    Op::Acquire(Box::new(Acquire {
        floor: token(7),
        owner: Owner::new(owner).unwrap(),
        data: data.map(|data| Payload::new(data).unwrap()),
        ..Acquire::new(NONCE, Seq::new(1), record_ttl)
    }))
}

fn renew() -> Op {
    Op::Renew(Renew { nonce: NONCE, seq: Seq::new(2), record_ttl: Duration::from_secs(30), quorum: None })
}

fn release() -> Op {
    Op::Release(Release { nonce: NONCE, quorum: None })
}

fn raise() -> Op {
    Op::Raise(Raise { nonce: NONCE, token: token(9), loss: None })
}

fn codec() -> Codec {
    Codec::new(Settings::default())
}

fn with_replicas(count: u32) -> Codec {
    Codec::new(Settings { replicas: Some(Replicas { count }), ..Settings::default() })
}

fn on_a_cluster() -> Codec {
    Codec::new(Settings { topology: Topology::Cluster, ..Settings::default() })
}

/// The arguments after the digest, and which script it is.
fn written(command: &Command) -> (&'static str, Vec<String>) {
    let mut words = command.words().map(|word| String::from_utf8(word.to_vec()).unwrap());
    assert_eq!(words.next().unwrap(), "EVALSHA");
    let digest = words.next().unwrap();
    let script = SCRIPTS.iter().find(|script| script.sha1 == digest).unwrap();
    (script.name, words.collect())
}

fn bulk(text: &str) -> Value {
    Value::Bulk(text.into())
}

fn list<const N: usize>(parts: [Value; N]) -> Value {
    Value::Array(parts.into())
}

/// As an answer to the request that is in flight.
fn named(reply: Value) -> Value {
    match reply {
        Value::Array(parts) => Value::Array(parts.into_iter().chain([bulk("17")]).collect()),
        other => other,
    }
}

/// The answer to several renewals, made of one for each.
fn filled<const N: usize>(replies: [Value; N]) -> Value {
    let parts = replies.into_iter().flat_map(|reply| {
        let mut parts = match reply {
            Value::Array(parts) => parts,
            other => vec![other],
        };
        parts.resize(parts.len().max(scripts::RENEW_PARTS), bulk(""));
        parts
    });
    named(Value::Array(parts.collect()))
}

fn answered(op: Op, reply: Value) -> Outcome {
    let is_renewal = matches!(op, Op::Renew(_));
    let reply = if is_renewal && !matches!(reply, Value::Error(_)) { filled([reply]) } else { named(reply) };
    done(codec().begin(ID, &[on("a", op)], LEFT, UNIX_MS).unwrap().replies(vec![reply])).remove(0)
}

fn done(progress: Progress) -> Vec<Outcome> {
    match progress {
        Progress::Done(outcomes) => outcomes,
        Progress::Again => panic!("one more round"),
    }
}

fn held(value: &str) -> Value {
    list([bulk("held"), bulk(value), Value::Integer(5_000), bulk("41")])
}

fn foreign(left: i64) -> Value {
    list([bulk("foreign"), bulk("hash"), Value::Integer(left)])
}

fn conflict(outcome: Outcome) -> Seen {
    match outcome {
        Outcome::NotApplied(Refusal::Conflict(seen)) => seen,
        other => panic!("no conflict: {other:?}"),
    }
}

fn is_protocol(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Unknown(Fault { kind: FaultKind::Protocol, .. }))
}

fn denial(outcome: Outcome) -> DenialKind {
    match outcome {
        Outcome::NotApplied(Refusal::Denied(denial)) => denial.kind,
        other => panic!("not denied: {other:?}"),
    }
}

fn run() -> Op {
    let Op::Acquire(acquire) = acquire() else { panic!("an acquire") };
    Op::Acquire(Box::new(Acquire { unless_done: true, ..*acquire }))
}

fn finish() -> Op {
    Op::Finish(Box::new(Finish {
        nonce: NONCE,
        token: Token::new(9).unwrap(),
        counter: token(8),
        keep: Duration::from_secs(10 * 86_400),
        owner: Owner::new("me").unwrap(),
        about: None,
        quorum: None,
    }))
}

#[test]
fn what_runs_are_told_is_read() {
    let completion = |text: &str, left| list([bulk("done"), bulk(text), Value::Integer(left), bulk("")]);
    let good = format!("{HEX}@me;1700000000000;9");
    let Outcome::NotApplied(Refusal::Done(shown)) = answered(run(), completion(&good, 5_000)) else { panic!("done") };
    assert_eq!((shown.token.get(), shown.owner.as_str(), shown.at_unix_ms), (9, "me", 1_700_000_000_000));
    assert_eq!(shown.left, Duration::from_secs(5));
    for (text, left) in [(&*good, -1), (&*good, i64::MAX), (HEX, 5_000), ("", 5_000), (&*format!("{good};1"), 5_000)] {
        assert_eq!(denial(answered(run(), completion(text, left))), DenialKind::CorruptRecord, "{text:?} {left}");
    }
    assert_eq!(answered(finish(), list([bulk("finished")])), Outcome::Applied(Applied::Finished));
    assert_eq!(conflict(answered(finish(), list([bulk("free"), bulk("")]))), Seen::default());
    // The counter that is left shows that the lease was ended, and the server has lost nothing.
    for op in [finish(), renew(), release()] {
        let nonce = op.nonce().unwrap();
        let holding = conflict(answered(op, list([bulk("free"), bulk("41")]))).holding.unwrap();
        assert!(holding.released && holding.is_of(&nonce), "{holding:?}");
        assert_eq!(holding.counter, Token::new(41));
    }
    assert!(is_protocol(&answered(release(), list([bulk("finished")]))));
    assert!(is_protocol(&answered(acquire_with("me", None, Duration::ZERO), list([bulk("finished")]))));
    let seen = list([bulk("marked"), bulk(&good), Value::Integer(5_000), bulk(""), bulk("free"), bulk("")]);
    let Outcome::Applied(Applied::Read(seen)) = answered(Op::Read, seen) else { panic!("a read") };
    assert_eq!((seen.holding, seen.done), (None, Some(shown)));
}

#[test]
fn each_operation_is_these_arguments() {
    let week = "604800000";
    let data = acquire_with("a b", Some(b"foo"), Duration::from_millis(1500));
    let plain = format!("{HEX}@me;1700000000000");
    let spaced = format!("{HEX}@a%20b;1700000000000;Zm9v");
    let (about, completion, done) =
        ("{a}\x1fabout of name", "{a}\x1fdone of name", format!("{HEX}@me;1700000000000;9"));
    let queue = "{a}\x1fline of name";
    let (fence, wake, marker) = ("{a}\x1ffence of name", "{a}\x1fwake of name", "leasehold\x1fquorum");
    for (op, expected) in [
        (acquire(), ("acquire", vec!["2", "a", fence, &plain, "30000", week, "7", "17"])),
        (data, ("acquire", vec!["2", "a", fence, &spaced, "1500", week, "7", "17"])),
        (renew(), ("renew", vec!["2", "a", fence, week, HEX, "30000", "17"])),
        (release(), ("release", vec!["2", "a", fence, HEX, wake, week, queue, "17"])),
        (raise(), ("raise", vec!["4", "a", fence, marker, "{a}\x1ftrust of name", HEX, week, "9", "", "17"])),
        (run(), ("run", vec!["4", "a", fence, about, completion, &plain, "30000", week, "7", "17"])),
        (finish(), {
            let keys = ["4", "a", fence, about, completion, HEX, wake, "864000000"];
            ("finish", [&keys[..], &[&done, "864000000", "8", "", queue, "17"]].concat())
        }),
        (Op::Read, ("read", vec!["2", "a", fence, "17"])),
    ] {
        let exchange = codec().begin(ID, &[on("a", op)], LEFT, UNIX_MS).unwrap();
        let [command] = exchange.commands() else { panic!("not one command") };
        let (name, args) = written(command);
        assert_eq!((name, args.iter().map(String::as_str).collect()), expected);
    }
}

#[test]
fn a_release_is_these_bytes() {
    let exchange = codec().begin(ID, &[on("a", release())], LEFT, UNIX_MS).unwrap();
    let mut bytes = Vec::new();
    exchange.commands().iter().for_each(|command| encode(command, &mut bytes));
    let expected = format!(
        "*10\r\n$7\r\nEVALSHA\r\n$40\r\n{}\r\n$1\r\n2\r\n$1\r\na\r\n$17\r\n{{a}}\x1ffence of name\r\n$32\r\n{HEX}\r\n\
         $16\r\n{{a}}\x1fwake of name\r\n$9\r\n604800000\r\n$16\r\n{{a}}\x1fline of name\r\n$2\r\n17\r\n",
        scripts::RELEASE.sha1
    );
    assert_eq!(String::from_utf8(bytes).unwrap(), expected);
}

#[test]
fn a_script_that_the_server_does_not_know_is_sent_whole() {
    let mut exchange = codec().begin(ID, &[on("a", release())], LEFT, UNIX_MS).unwrap();
    let first = exchange.commands()[0].clone();
    let unknown = || Value::Error("NOSCRIPT No matching script. Please use EVAL.".into());
    assert_eq!(exchange.replies(vec![unknown()]), Progress::Again);
    let [second] = exchange.commands() else { panic!("not one command") };
    let whole = ["EVAL", scripts::RELEASE.text].map(str::as_bytes).into_iter().chain(first.words().skip(2));
    assert_eq!(*second, Command::new(whole));
    let mut stubborn = exchange.clone();
    assert_eq!(exchange.replies(vec![released()]), Progress::Done(vec![Outcome::Applied(Applied::Released)]));
    let outcome = done(stubborn.replies(vec![unknown()])).remove(0);
    assert!(matches!(outcome, Outcome::NotApplied(Refusal::Unavailable(_))), "{outcome:?}");
}

#[test]
fn renewals_are_one_call_and_each_has_its_own_outcome() {
    let ops = ["a", "b", "c", "d", "e", "f"].map(|name| on(name, renew()));
    let mut exchange = codec().begin(ID, &ops, LEFT, UNIX_MS).unwrap();
    let [command] = exchange.commands() else { panic!("not one command") };
    let (name, args) = written(command);
    assert_eq!((name, args.len()), ("renew", 1 + 12 + 1 + 12 + 1));
    assert_eq!(args[..5], ["12", "a", "{a}\x1ffence of name", "b", "{b}\x1ffence of name"]);
    let each = [[HEX, "30000"]; 6].concat();
    assert_eq!(args[13..], [vec!["604800000"], each, vec!["17"]].concat());

    let fault = list([bulk("error"), bulk("READONLY You can't write against a read only replica.")]);
    let (renewed, free) = (list([bulk("renewed")]), list([bulk("free"), bulk("")]));
    let replies = filled([renewed, free, held(RIVAL_VALUE), fault, bulk("odd"), foreign(5)]);
    let outcomes = done(exchange.replies(vec![replies]));
    assert_eq!(outcomes[0], Outcome::Applied(Applied::Renewed));
    assert_eq!(conflict(outcomes[1].clone()), Seen::default());
    assert!(conflict(outcomes[2].clone()).holding.unwrap().is_of(&RIVAL));
    assert!(matches!(outcomes[3], Outcome::NotApplied(Refusal::Unavailable(_))));
    assert!(is_protocol(&outcomes[4]));
    assert_eq!(conflict(outcomes[5].clone()).holding.unwrap().holder, Holder::Foreign);
}

#[test]
fn a_reply_for_another_number_of_renewals_is_for_none() {
    let ops = ["a", "b"].map(|name| on(name, renew()));
    let one = || list([bulk("renewed")]);
    let filled_oddly = [one(), list([bulk("renewed"), bulk("12")]), list([bulk("free"), bulk(""), Value::Nil])];
    for reply in filled_oddly {
        let outcomes =
            done(codec().begin(ID, &ops, LEFT, UNIX_MS).unwrap().replies(vec![filled([one(), reply.clone()])]));
        assert_eq!(outcomes[0], Outcome::Applied(Applied::Renewed));
        assert_eq!(is_protocol(&outcomes[1]), reply != one());
    }
    for reply in [
        filled([one()]),
        filled([one(), one(), one()]),
        named(list([one(), one()])),
        named(one()),
        bulk("renewed"),
        Value::Nil,
    ] {
        let outcomes = done(codec().begin(ID, &ops, LEFT, UNIX_MS).unwrap().replies(vec![reply]));
        assert!(outcomes.len() == 2 && outcomes.iter().all(is_protocol));
    }
    let down = Value::Error("LOADING Redis is loading the dataset in memory".into());
    let outcomes = done(codec().begin(ID, &ops, LEFT, UNIX_MS).unwrap().replies(vec![down]));
    assert!(outcomes.iter().all(|outcome| matches!(outcome, Outcome::NotApplied(Refusal::Unavailable(_)))));
}

#[test]
fn another_number_of_replies_says_nothing() {
    for replies in [vec![], vec![released(), Value::Nil]] {
        assert!(is_protocol(
            &done(codec().begin(ID, &[on("a", release())], LEFT, UNIX_MS).unwrap().replies(replies))[0]
        ));
    }
    assert_eq!(codec().begin(ID, &[], LEFT, UNIX_MS).unwrap().replies(vec![]), Progress::Done(vec![]));
}

#[test]
fn grants_are_read_exactly() {
    let granted = |counter: Value| answered(acquire(), list([bulk("granted"), counter]));
    let applied = |counter| Outcome::Applied(Applied::Acquired { counter: token(counter) });
    let most = Token::MAX.get();
    assert_eq!(granted(bulk("9007199254740991")), applied(most));
    assert_eq!(granted(Value::Integer(9_007_199_254_740_991)), applied(most));
    assert_eq!(granted(Value::Simple("12".into())), applied(12));
    for counter in [
        bulk("9007199254740992"),
        bulk("0"),
        bulk("-1"),
        bulk("1.0"),
        bulk("1e3"),
        bulk("+1"),
        bulk(" 1"),
        bulk(""),
        Value::Integer(-5),
        Value::Integer(1 << 53),
        Value::Double("12".into()),
        Value::BigNumber("12".into()),
        Value::Boolean(true),
        Value::Nil,
        list([Value::Integer(1)]),
    ] {
        assert!(is_protocol(&granted(counter.clone())), "{counter:?}");
    }
}

#[test]
fn an_answer_to_another_question_grants_nothing() {
    let granted = list([bulk("granted"), bulk("12")]);
    let replies = [
        (acquire(), list([bulk("renewed")])),
        (acquire(), list([bulk("granted")])),
        (acquire(), list([bulk("granted"), bulk("1"), bulk("2")])),
        (acquire(), list([])),
        (acquire(), Value::Nil),
        (acquire(), Value::Simple("OK".into())),
        (acquire(), bulk("granted")),
        (acquire(), Value::Push(vec![bulk("granted"), bulk("12")])),
        (acquire(), held(&format!("{HEX}@me;1700000000000"))),
        (acquire(), list([bulk("error"), bulk("READONLY")])),
        (renew(), granted.clone()),
        (renew(), held(&format!("{HEX}@me;1700000000000"))),
        (release(), granted.clone()),
        (release(), list([bulk("renewed")])),
        (raise(), list([bulk("raised"), bulk("8")])),
        (raise(), granted.clone()),
        (Op::Read, granted),
        (Op::Read, list([bulk("held"), bulk(RIVAL_VALUE), Value::Integer(-3), bulk("41")])),
        (Op::Read, list([bulk("held"), bulk(RIVAL_VALUE), Value::Nil, bulk("41")])),
        (Op::Read, list([bulk("held"), bulk(RIVAL_VALUE), Value::Integer(5), bulk("-41")])),
        (Op::Read, list([bulk("foreign"), bulk(&"x".repeat(257)), Value::Integer(5)])),
    ];
    for (op, reply) in replies {
        let outcome = answered(op.clone(), reply.clone());
        assert!(is_protocol(&outcome), "{op:?} {reply:?} {outcome:?}");
    }
}

#[test]
fn an_answer_to_another_request_is_for_nobody() {
    for name in [bulk("16"), bulk("017"), bulk("1"), bulk(""), Value::Integer(17), Value::Nil] {
        let reply = |word| list([bulk(word), name.clone()]);
        let granted = list([bulk("granted"), bulk("12"), name.clone()]);
        for (op, reply) in
            [(acquire(), granted), (release(), reply("free")), (Op::Read, list([bulk("free"), bulk("")]))]
        {
            let outcomes = done(codec().begin(ID, &[on("a", op)], LEFT, UNIX_MS).unwrap().replies(vec![reply]));
            assert!(outcomes.iter().all(is_protocol), "{name:?} {outcomes:?}");
        }
        let Value::Array(mut renewals) = filled([list([bulk("renewed")])]) else { panic!("no array") };
        *renewals.last_mut().unwrap() = name.clone();
        let mut exchange = codec().begin(ID, &[on("a", renew())], LEFT, UNIX_MS).unwrap();
        assert!(is_protocol(&done(exchange.replies(vec![Value::Array(renewals)]))[0]), "{name:?}");
    }
}

#[test]
fn a_rival_is_shown() {
    let holding = conflict(answered(acquire(), held(RIVAL_VALUE))).holding.unwrap();
    assert_eq!(holding.holder, Holder::Lease { nonce: RIVAL, seq: None });
    assert_eq!(Some(holding.version), Version::new(RIVAL.as_bytes()));
    assert_eq!(holding.counter, Token::new(41));
    assert_eq!(holding.owner.unwrap().as_str(), "pod-7");
    assert_eq!(holding.left, Some(Duration::from_secs(5)));
    assert_eq!(holding.since_unix_ms, Some(1_700_000_000_000));
    assert_eq!(holding.data.unwrap().as_bytes(), b"foo");

    let no_counter = list([bulk("held"), bulk(RIVAL_VALUE), bulk("5000"), bulk("")]);
    let holding = conflict(answered(release(), no_counter)).holding.unwrap();
    assert_eq!((holding.counter, holding.left), (None, Some(Duration::from_secs(5))));
}

#[test]
fn whatever_others_write_is_held_by_others() {
    let holding = conflict(answered(acquire(), foreign(700))).holding.unwrap();
    assert_eq!((holding.holder, holding.left), (Holder::Foreign, Some(Duration::from_millis(700))));
    let for_ever = conflict(answered(acquire(), foreign(-1))).holding.unwrap();
    assert_eq!((for_ever.left, for_ever.record_ttl), (None, None));
    let gone = conflict(answered(acquire(), foreign(-2))).holding.unwrap();
    assert_eq!(gone.left, Some(Duration::ZERO));
    // Looks like ours to the server, and is not.
    let imitation = conflict(answered(acquire(), held("c3c3c3c3c3c3c3c3c3c3c3c3c3c3c3c3@pod-7"))).holding.unwrap();
    assert_eq!(imitation.holder, Holder::Foreign);
    let long = held(&format!("{HEX}@{}", "x".repeat(7000)));
    assert_eq!(conflict(answered(acquire(), long)).holding.unwrap().holder, Holder::Foreign);
    let Outcome::Applied(Applied::Read(seen)) = answered(Op::Read, foreign(700)) else { panic!("not read") };
    assert_eq!(seen.holding.unwrap().holder, Holder::Foreign);
    assert_eq!(answered(Op::Read, list([bulk("free"), bulk("")])), Outcome::Applied(Applied::Read(Seen::default())));
}

#[test]
fn what_cannot_be_is_refused_for_good() {
    assert_eq!(denial(answered(acquire(), list([bulk("corrupt")]))), DenialKind::CorruptRecord);
    assert_eq!(denial(answered(raise(), list([bulk("corrupt")]))), DenialKind::CorruptRecord);
    assert_eq!(denial(answered(acquire(), list([bulk("exhausted")]))), DenialKind::TokensExhausted);
    let held = |left| list([bulk("held"), bulk(RIVAL_VALUE), Value::Integer(left), bulk("7")]);
    assert_eq!(denial(answered(acquire(), held(48 * 3_600_000 + 1))), DenialKind::CorruptRecord);
    assert_eq!(denial(answered(Op::Read, held(i64::MAX))), DenialKind::CorruptRecord);
    // Other libraries lock for as long as they like.
    conflict(answered(acquire(), foreign(48 * 3_600_000 + 1)));
}

#[test]
fn what_makes_a_holder_waits_for_replicas() {
    for (op, times) in [(acquire(), 1), (renew(), 1), (release(), 0), (raise(), 1), (Op::Read, 0)] {
        let exchange = with_replicas(2).begin(ID, &[on("a", op)], LEFT, UNIX_MS).unwrap();
        assert_eq!(exchange.commands().len(), 1 + times);
        let wait = Command::new(["WAIT", "2", "3000"]);
        assert!(exchange.commands()[1..].iter().all(|command| *command == wait));
    }
    for (left, ms) in [(Duration::ZERO, "1"), (Duration::from_micros(10), "1"), (Duration::MAX, "31536000000")] {
        let exchange = with_replicas(0).begin(ID, &[on("a", renew())], left, UNIX_MS).unwrap();
        assert_eq!(exchange.commands()[1], Command::new(["WAIT", "1", ms]));
    }
}

#[test]
fn a_grant_counts_once_the_replicas_have_it() {
    let granted = list([bulk("granted"), bulk("12")]);
    let Value::Array(mut renewed) = filled([list([bulk("renewed")])]) else { panic!("no array") };
    renewed.pop();
    let renewed = Value::Array(renewed);
    let raised = list([bulk("raised"), bulk("12")]);
    let of = |op: Op, reply: &Value, wait: Value| {
        let mut exchange = with_replicas(2).begin(ID, &[on("a", op)], LEFT, UNIX_MS).unwrap();
        done(exchange.replies(vec![named(reply.clone()), wait])).remove(0)
    };
    for (op, reply) in [(acquire(), &granted), (renew(), &renewed), (raise(), &raised)] {
        for enough in [Value::Integer(2), Value::Integer(3), bulk("2")] {
            assert!(matches!(of(op.clone(), reply, enough), Outcome::Applied(_)));
        }
        let Outcome::Unknown(fault) = of(op.clone(), reply, Value::Integer(1)) else { panic!("one is enough") };
        assert_eq!(fault.kind, FaultKind::Server);
        assert!(fault.detail.unwrap().contains("1 of 2 replicas"));
        for odd in [Value::Nil, Value::Integer(-2), bulk("two")] {
            assert!(is_protocol(&of(op.clone(), reply, odd)));
        }
        let error = Value::Error("ERR unknown command 'WAIT'".into());
        let Outcome::Unknown(fault) = of(op.clone(), reply, error) else { panic!("nobody has confirmed it") };
        assert_eq!(fault.kind, FaultKind::Server);
        assert!(fault.detail.unwrap().contains("could not be asked: ERR unknown command 'WAIT'"));
    }
    let mut exchange = with_replicas(2).begin(ID, &[on("a", release())], LEFT, UNIX_MS).unwrap();
    assert_eq!(done(exchange.replies(vec![released()])), [Outcome::Applied(Applied::Released)]);
    conflict(of(acquire(), &held(RIVAL_VALUE), Value::Integer(0)));
}

/// An unknown digest would be followed by a WAIT all the same, and leave no time for a second round.
#[test]
fn where_replicas_are_awaited_scripts_are_sent_whole() {
    let exchange = with_replicas(1).begin(ID, &[on("a", acquire())], LEFT, UNIX_MS).unwrap();
    let words: Vec<_> = exchange.commands()[0].words().take(2).collect();
    assert_eq!(words, [&b"EVAL"[..], scripts::ACQUIRE.text.as_bytes()]);
}

#[test]
fn on_a_cluster_renewals_travel_by_slot() {
    let ops = ["a", "{x}1", "b", "{x}2", "x"].map(|name| on(name, renew()));
    let mut exchange = on_a_cluster().begin(ID, &ops, LEFT, UNIX_MS).unwrap();
    let keys: Vec<usize> = exchange.commands().iter().map(|command| written(command).1[0].parse().unwrap()).collect();
    assert_eq!(keys, [2, 6, 2]);
    let unknown = Value::Error("NOSCRIPT No matching script.".into());
    let moved = Value::Error("MOVED 3999 127.0.0.1:6381".into());
    assert_eq!(exchange.replies(vec![filled([list([bulk("renewed")])]), unknown, moved]), Progress::Again);
    assert_eq!(exchange.commands().len(), 1, "only what has no answer yet");
    let outcomes = done(exchange.replies(vec![filled([
        list([bulk("renewed")]),
        list([bulk("free"), bulk("")]),
        list([bulk("renewed")]),
    ])]));
    let renewed = Outcome::Applied(Applied::Renewed);
    assert_eq!([&outcomes[0], &outcomes[1], &outcomes[4]], [&renewed; 3]);
    assert!(matches!(outcomes[2], Outcome::NotApplied(Refusal::Unavailable(_))));
    conflict(outcomes[3].clone());
}

#[test]
fn a_name_that_no_cluster_can_lock_is_refused_there_only() {
    let ops = [on("a}", acquire())];
    assert!(codec().begin(ID, &ops, LEFT, UNIX_MS).is_ok());
    assert_eq!(on_a_cluster().begin(ID, &ops, LEFT, UNIX_MS).unwrap_err().kind, DenialKind::Other);
}

#[test]
fn lengths_of_time_reach_the_server_within_bounds() {
    let ttl = |length| {
        let exchange = codec().begin(ID, &[on("a", acquire_with("", None, length))], LEFT, UNIX_MS)?;
        Ok::<_, Denial>(written(&exchange.commands()[0]).1[4].clone())
    };
    assert_eq!(ttl(Duration::from_nanos(1_500_001)), Ok("2".into()), "a record outlives the belief in it");
    assert_eq!(ttl(Duration::ZERO), Ok("1".into()), "no time at all would delete the key");
    assert_eq!(ttl(MAX_RECORD_TTL), Ok("172800000".into()));
    assert!(ttl(MAX_RECORD_TTL + Duration::from_millis(1)).is_err());
    for (retention, ms) in [(Duration::ZERO, "1"), (Duration::MAX, "3153600000000")] {
        let codec = Codec::new(Settings { retention, ..Settings::default() });
        assert_eq!(written(&codec.begin(ID, &[on("a", renew())], LEFT, UNIX_MS).unwrap().commands()[0]).1[3], ms);
    }
}

#[test]
fn a_wake_up_names_its_resource() {
    for name in ["a", "{a}", "{x}a", "{}", "a}b"] {
        let resource = Resource::new(name).unwrap();
        assert_eq!(Codec::released_by(&Codec::channel(&resource), name.as_bytes()), Some(resource));
    }
    assert_eq!(Codec::released_by(b"{a}\x1fwake of name", b"b"), None);
    assert_eq!(Codec::released_by(b"{a}\x1fwake", b"a"), None, "that is where {{a}} is told");
    assert_eq!(Codec::released_by(b"{a}\x1ffence of name", b"a"), None);
    assert_eq!(Codec::released_by(b"", b""), None);
    assert_eq!(Codec::released_by(b"{\xff}\x1fwake of name", b"\xff"), None);
}

#[test]
fn debug_output_shows_no_nonce() {
    let exchange = codec().begin(ID, &[on("a", acquire())], LEFT, UNIX_MS).unwrap();
    let text = format!("{exchange:?} {:?}", exchange.commands()[0]);
    assert!(text.starts_with("Exchange { commands: [Command(\"EVALSHA\", "), "{text}");
    assert!(!text.contains("5a5a") && !text.contains("90, 90"), "{text}");
}

#[test]
fn one_server_may_answer_and_another_not() {
    let ops = [on("a", renew()), on("b", renew()), on("c", renew())];
    let mut exchange = on_a_cluster().begin(ID, &ops, LEFT, UNIX_MS).unwrap();
    let slots: Vec<_> = exchange.commands().iter().map(Command::slot).collect();
    assert_eq!(slots, ["a", "b", "c"].map(|name| Some(slot(name.as_bytes()))));
    let slot_of = |args: &[&str]| Command::new(args).slot();
    assert_eq!(slot_of(&["EVAL", "text", "1", "a"]), Some(slot(b"a")));
    for keyless in [&["SUBSCRIBE", "x", "y", "a"][..], &["EVALSHA", "digest", "0", "a"], &["EVAL", "text"], &[]] {
        assert_eq!(slot_of(keyless), None, "{keyless:?}");
    }
    let renewed = || Ok(filled([list([bulk("renewed")])]));
    let lost = Outcome::Unknown(Fault::of(FaultKind::Reset));
    let answers = vec![renewed(), Err(lost.clone()), Ok(Value::Error("NOSCRIPT No matching script.".into()))];
    assert_eq!(exchange.answers(&mut (), answers), Progress::Again);
    assert_eq!(exchange.commands().len(), 1, "only what was not known");
    let outcomes = done(exchange.answers(&mut (), vec![renewed()]));
    assert_eq!(outcomes, [Outcome::Applied(Applied::Renewed), lost, Outcome::Applied(Applied::Renewed)]);
}
