//! Requests to nodes of a quorum, and the meaning of their answers.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec;

use super::*;
use crate::Progress;
use crate::resp::Value;
use leasehold_core::member::{QuorumId, RETENTION};
use leasehold_core::op::{Acquire, Applied, Fault, FaultKind, Outcome, Raise, Refusal, Renew};
use leasehold_core::{LockId, Nonce, Owner, Seq, Token};

const NONCE: Nonce = Nonce::from_bytes([0x5a; 16]);
const HEX: &str = "5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a";
const ONES: &str = "01010101010101010101010101010101";
const TWOS: &str = "02020202020202020202020202020202";
const THREES: &str = "03030303030303030303030303030303";
const LEFT: Duration = Duration::from_secs(4);
const ID: RequestId = RequestId::new(17);

fn on(resource: &str, op: Op) -> LockOp {
    LockOp { lock: LockId::new(1), resource: Resource::new(resource).unwrap(), op }
}

fn vote(waited_out: Option<LossId>, bootstrap: Bootstrap, durability: Durability) -> Op {
    Op::Acquire(Box::new(Acquire {
        floor: Token::new(7).unwrap(),
        owner: Owner::new("me").unwrap(),
        member: Some(Membership {
            quorum: QuorumId([1; 16]),
            max_ttl_ms: 60_000,
            durability,
            fresh: LossId([2; 16]),
            waited_out,
            bootstrap,
            retention: RETENTION,
        }),
        ..Acquire::new(NONCE, Seq::new(1), Duration::from_secs(30))
    }))
}

fn plain_vote() -> Op {
    vote(None, Bootstrap::No, Durability::NotDeclared)
}

fn keep(durability: Durability) -> Op {
    let record_ttl = Duration::from_secs(30);
    Op::Renew(Renew { nonce: NONCE, seq: Seq::new(2), record_ttl, quorum: Some(durability) })
}

fn codec() -> Codec {
    Codec::new(Settings::default())
}

fn begun(ops: &[LockOp]) -> Exchange {
    codec().begin(ID, ops, LEFT, 1_700_000_000_000).unwrap()
}

/// The script's name, and the arguments after it.
fn written(command: &Command) -> (&'static str, Vec<String>) {
    let mut words = command.words().skip(1);
    let digest = words.next().unwrap();
    let script = SCRIPTS.iter().find(|script| script.sha1.as_bytes() == digest).unwrap();
    (script.name, words.map(|word| String::from_utf8(word.to_vec()).unwrap()).collect())
}

fn only_command(ops: &[LockOp]) -> (&'static str, Vec<String>) {
    let exchange = begun(ops);
    let [command] = exchange.commands() else { panic!("not one command") };
    written(command)
}

/// The outcome if this is the answer; its last part names the request.
fn answered(op: Op, parts: &[&str]) -> Outcome {
    let parts = parts.iter().chain(&["17"]).map(|part| Value::Bulk(part.as_bytes().to_vec()));
    match begun(&[on("a", op)]).replies(vec![Value::Array(parts.collect())]) {
        Progress::Done(mut outcomes) => outcomes.remove(0),
        Progress::Again => panic!("one more round"),
    }
}

fn is_protocol(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Unknown(Fault { kind: FaultKind::Protocol, .. }))
}

#[test]
fn a_vote_tells_the_node_what_it_should_remember() {
    let start = ["4", "a", "{a}\x1ffence of name", "leasehold\x1fquorum", "{a}\x1ftrust of name"];
    let acquire = [&format!("{HEX}@me;1700000000000"), "30000", "604800000", "7", ONES, "60000", TWOS];
    for (op, end) in [
        (plain_vote(), ["", "", "ask", "17"]),
        (vote(Some(LossId([3; 16])), Bootstrap::Yes, Durability::Declared), [THREES, "birth", "", "17"]),
    ] {
        let (name, args) = only_command(&[on("a", op)]);
        assert_eq!(name, "vote");
        assert_eq!(args, [start.as_slice(), &acquire, &end].concat());
    }
}

#[test]
fn renewals_in_a_quorum_are_one_call_with_the_marker_last() {
    let ops = ["a", "b"].map(|name| on(name, keep(Durability::NotDeclared)));
    let (name, args) = only_command(&ops);
    assert_eq!(name, "keep");
    let keys = ["5", "a", "{a}\x1ffence of name", "b", "{b}\x1ffence of name", "leasehold\x1fquorum"];
    let rest = ["604800000", HEX, "30000", HEX, "30000", "ask", "17"];
    assert_eq!(args, [keys.as_slice(), &rest].concat());
    let (_, args) = only_command(&[on("a", keep(Durability::Declared))]);
    assert_eq!(args[4..], ["604800000", HEX, "30000", "", "17"]);
}

#[test]
fn renewals_of_a_quorum_and_others_do_not_share_a_call() {
    let single = Op::Renew(Renew { quorum: None, ..renew_of(&keep(Durability::Declared)) });
    let ops = [on("a", keep(Durability::Declared)), on("b", single)];
    assert_eq!(begun(&ops).commands().len(), 2);
}

fn renew_of(op: &Op) -> Renew {
    let Op::Renew(renew) = op else { panic!("no renewal") };
    *renew
}

#[test]
fn a_vote_is_granted_doubted_withheld_or_refused() {
    let counter = Token::new(12).unwrap();
    assert_eq!(answered(plain_vote(), &["granted", "12"]), Outcome::Applied(Applied::Acquired { counter }));
    let doubt = Applied::AcquiredInDoubt { counter, stamp: LossId([2; 16]) };
    assert_eq!(answered(plain_vote(), &["doubtful", "12", TWOS]), Outcome::Applied(doubt));
    let abstains = |stamp| Outcome::NotApplied(Refusal::Abstains { stamp });
    assert_eq!(answered(plain_vote(), &["abstains", TWOS]), abstains(Some(LossId([2; 16]))));
    assert_eq!(answered(keep(Durability::Declared), &["abstains", "", "", ""]), abstains(None));
}

#[test]
fn a_stranger_says_where_it_belongs() {
    for (answer, expected) in [
        (["stranger", TWOS, "60000"], [TWOS, ONES]),
        (["stranger", ONES, "1000"], ["1000 ms", "60000 ms"]),
        (["stranger", "", ""], ["does not know", "--force"]),
        (["stranger", ONES, "odd"], ["does not know", "--force"]),
        (["stranger", "33333\0\0\0T33333333333", "60000"], ["does not know", "--force"]),
    ] {
        let outcome = answered(plain_vote(), &answer);
        let Outcome::NotApplied(Refusal::Denied(denial)) = outcome else { panic!("{outcome:?}") };
        assert_eq!(denial.kind, DenialKind::Membership);
        assert!(expected.iter().all(|words| denial.detail.contains(words)), "{}", denial.detail);
    }
}

#[test]
fn answers_that_no_node_of_a_quorum_gives_grant_nothing() {
    for parts in [
        &["doubtful", "12"][..],
        &["doubtful", "12", "abc"],
        &["doubtful", "0", TWOS],
        &["doubtful", "12", &TWOS.to_uppercase().replace('0', "A")],
        &["abstains"],
        &["abstains", "later"],
        &["stranger", TWOS],
    ] {
        assert!(is_protocol(&answered(plain_vote(), parts)), "{parts:?}");
    }
    // A store that nobody called a quorum has nothing to abstain from.
    let single = match plain_vote() {
        Op::Acquire(acquire) => Op::Acquire(Box::new(Acquire { member: None, ..*acquire })),
        other => other,
    };
    for parts in [&["doubtful", "12", TWOS][..], &["abstains", TWOS], &["stranger", TWOS, "60000"]] {
        assert!(is_protocol(&answered(single.clone(), parts)), "{parts:?}");
    }
}

#[test]
fn a_cluster_is_no_node_of_a_quorum() {
    let cluster = Codec::new(Settings { topology: Topology::Cluster, ..Settings::default() });
    let raise = Op::Raise(Raise { nonce: NONCE, token: Token::new(9).unwrap(), loss: None });
    for op in [plain_vote(), keep(Durability::NotDeclared), raise] {
        let denial = cluster.begin(ID, &[on("a", op)], LEFT, 1).unwrap_err();
        assert_eq!(denial.kind, DenialKind::Membership);
    }
}
