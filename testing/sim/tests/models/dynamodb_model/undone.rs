//! Locks that were freed again because the table does not vote, and what comes late to them: at a table and its model.

use std::time::Duration;

use leasehold_core::member::{Bootstrap, Durability, LossId, Marker, Membership, Phase, QuorumId, RETENTION};
use leasehold_core::op::{Acquire, Applied, Op, Outcome, Refusal, Release, Renew};
use leasehold_core::{Nonce, Owner, Resource, Seq, Token};
use leasehold_servers::dynamodb::Server;
use leasehold_sim::store::{ForeignAct, ForeignAnswer, Form, Mark};
use serde_json::json;

use super::pair::{Both, Pair};
use super::wire::Fate;

const QUORUM: QuorumId = QuorumId([1; 16]);
const TTL: Duration = Duration::from_secs(30);
const HOLDER: Nonce = Nonce::from_bytes([1; 16]);
const RIVAL: Nonce = Nonce::from_bytes([2; 16]);

/// A table that one name is locked in.
struct Table {
    pair: Pair,
    name: Resource,
}

impl Table {
    /// It has lost its memory, and does not vote.
    fn joining(server: &Server, seed: u64) -> Self {
        let mut table = Self { pair: Pair::new(server, seed), name: Resource::new("invoice/42").unwrap() };
        table.mark(Phase::Joining);
        table
    }

    fn mark(&mut self, phase: Phase) {
        let marker = Marker { quorum: QUORUM, max_ttl_ms: 60_000, stamp: LossId([7; 16]), phase, run: None };
        self.pair.mark(Some(&marker));
    }

    fn ask(&mut self, op: &Op) -> Outcome {
        let mut both = self.pair.begin(&self.name, op);
        self.finish(&mut both)
    }

    fn finish(&mut self, both: &mut Both) -> Outcome {
        loop {
            let answer = self.pair.advance(both, Fate::Answered);
            self.pair.compare(&self.name);
            if let Some((_, outcome)) = answer {
                return outcome;
            }
        }
    }

    /// An acquire whose last request, the one that undoes it, is still under way.
    fn about_to_undo(&mut self, seq: u32) -> Both {
        let mut both = self.pair.begin(&self.name, &acquire(HOLDER, seq));
        while !matches!(both.form(), Form::Undo(_)) {
            assert_eq!(self.pair.advance(&mut both, Fate::Answered), None);
        }
        both
    }

    fn holder(&self) -> Option<Nonce> {
        self.pair.known(&self.name).holder.filter(|_| self.pair.undone(&self.name).is_none())
    }
}

fn acquire(nonce: Nonce, seq: u32) -> Op {
    Op::Acquire(Box::new(Acquire {
        floor: Token::new(100).unwrap(),
        owner: Owner::new("holder").unwrap(),
        member: Some(Membership {
            quorum: QUORUM,
            max_ttl_ms: 60_000,
            durability: Durability::Declared,
            fresh: LossId([9; 16]),
            waited_out: None,
            bootstrap: Bootstrap::No,
            retention: RETENTION,
        }),
        ..Acquire::new(nonce, Seq::new(seq), TTL)
    }))
}

/// Its floor is above the counter, so that nothing but the row's version is in its way.
fn acquire_above(seq: u32) -> Op {
    let Op::Acquire(acquire) = acquire(HOLDER, seq) else { unreachable!() };
    Op::Acquire(Box::new(Acquire { floor: Token::new(1_000).unwrap(), ..*acquire }))
}

fn renew(seq: u32) -> Op {
    Op::Renew(Renew { nonce: HOLDER, seq: Seq::new(seq), record_ttl: TTL, quorum: None })
}

fn release() -> Op {
    Op::Release(Release { nonce: HOLDER, quorum: None })
}

fn granted(token: u64) -> Outcome {
    Outcome::Applied(Applied::Acquired { counter: Token::new(token).unwrap() })
}

fn is_abstention(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::NotApplied(Refusal::Abstains { .. }))
}

fn is_conflict(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::NotApplied(Refusal::Conflict(_)))
}

#[test]
fn only_later_sends_take_an_undone_lock() {
    let server = Server::shared();
    let mut table = Table::joining(&server, 0);
    for seq in [12, 14] {
        assert!(is_abstention(&table.ask(&acquire(HOLDER, seq))));
        assert_eq!(table.pair.undone(&table.name), Some(HOLDER), "also of what was taken again");
    }
    table.mark(Phase::Member);
    for seq in [11, 13, 14] {
        assert!(is_conflict(&table.ask(&acquire_above(seq))), "{seq}");
        assert!(is_conflict(&table.ask(&renew(seq))), "{seq}");
    }
    assert!(is_conflict(&table.ask(&renew(15))), "a heartbeat is no acquire");
    let Op::Acquire(outside) = acquire_above(16) else { unreachable!() };
    let outside = Op::Acquire(Box::new(Acquire { member: None, ..*outside }));
    assert!(is_conflict(&table.ask(&outside)), "outside a quorum nothing is undone");
    assert_eq!(table.holder(), None);
    assert_eq!(table.ask(&acquire(HOLDER, 17)), granted(102));
    assert_eq!(table.ask(&renew(18)), Outcome::Applied(Applied::Renewed));
    for seq in [11, 17] {
        assert!(is_conflict(&table.ask(&acquire_above(seq))), "{seq}");
    }
    assert_eq!(table.ask(&release()), Outcome::Applied(Applied::Released));
    assert!(is_conflict(&table.ask(&acquire_above(19))), "its holder has left");
    assert_eq!(table.ask(&acquire(RIVAL, 1)), granted(103));
}

#[test]
fn late_undo_frees_no_later_lock() {
    let server = Server::shared();
    let mut table = Table::joining(&server, 1);
    let mut late = table.about_to_undo(1);
    table.mark(Phase::Member);
    assert!(is_conflict(&table.ask(&acquire(HOLDER, 2))), "it shows the later send");
    assert!(is_abstention(&table.finish(&mut late)));
    assert_eq!(table.holder(), Some(HOLDER));

    let mut table = Table::joining(&server, 2);
    let mut late = table.about_to_undo(1);
    assert_eq!(table.ask(&renew(2)), Outcome::Applied(Applied::Renewed));
    assert!(is_abstention(&table.finish(&mut late)));
    assert_eq!(table.holder(), Some(HOLDER), "a heartbeat came first");

    let mut table = Table::joining(&server, 0);
    let mut late = table.about_to_undo(1);
    assert_eq!(table.ask(&release()), Outcome::Applied(Applied::Released));
    assert!(is_abstention(&table.finish(&mut late)));
    table.mark(Phase::Member);
    assert!(is_conflict(&table.ask(&acquire_above(2))), "its holder has left");

    let mut table = Table::joining(&server, 1);
    let mut late = table.about_to_undo(1);
    table.pair.evict(&table.name.clone());
    assert!(is_abstention(&table.finish(&mut late)));
    assert_eq!(table.pair.undone(&table.name), None, "somebody took it away by hand");
}

#[test]
fn release_of_an_undone_lock_is_final() {
    let server = Server::shared();
    let mut table = Table::joining(&server, 0);
    assert!(is_abstention(&table.ask(&acquire(HOLDER, 1))));
    assert_eq!(table.ask(&release()), Outcome::Applied(Applied::Released));
    table.mark(Phase::Member);
    assert!(is_conflict(&table.ask(&acquire_above(2))));
    assert_eq!(table.ask(&acquire(RIVAL, 1)), granted(101));
}

#[test]
fn client_in_between_keeps_the_lock() {
    let server = Server::shared();
    let mut table = Table::joining(&server, 0);
    assert!(is_abstention(&table.ask(&acquire(HOLDER, 1))));
    table.mark(Phase::Member);
    assert_eq!(table.ask(&acquire(RIVAL, 1)), granted(101));
    assert!(is_conflict(&table.ask(&acquire_above(2))));
    assert_eq!(table.holder(), Some(RIVAL));

    let mut table = Table::joining(&server, 1);
    assert!(is_abstention(&table.ask(&acquire(HOLDER, 1))));
    table.mark(Phase::Member);
    let mark = Mark { by: 7, count: 1 };
    let java = ForeignAct::AcquireReleased { mark, ttl: TTL };
    assert_eq!(table.pair.foreign(&table.name.clone(), &java), ForeignAnswer::Held(mark));
    assert!(is_conflict(&table.ask(&acquire_above(2))));
    assert!(is_conflict(&table.ask(&release())));
    let left = ForeignAct::ReleaseKeep { mark };
    assert_eq!(table.pair.foreign(&table.name.clone(), &left), ForeignAnswer::Released);
    assert_eq!(table.ask(&acquire(HOLDER, 3)), granted(100), "Java has dropped the counter");
}

/// With `withUpdateExistingLockRecord(true)` Java's client leaves what it does not know in the row.
#[test]
fn undone_mark_does_not_apply_to_java_locks() {
    let server = Server::shared();
    let mut table = Table::joining(&server, 0);
    assert!(is_abstention(&table.ask(&acquire(HOLDER, 1))));
    table.mark(Phase::Member);
    let name = table.name.as_str().to_owned();
    let rest = json!({
        "UpdateExpression": "SET #rvn = :rvn, #on = :on, #ld = :ld REMOVE #ir",
        "ExpressionAttributeNames": {
            "#rvn": "recordVersionNumber", "#on": "ownerName", "#ld": "leaseDuration", "#ir": "isReleased",
        },
        "ExpressionAttributeValues": {
            ":rvn": { "S": "0b1f0e9c-9f4a-4a36-8f0e-3a1a6c1d2e3f" }, ":on": { "S": "java" }, ":ld": { "S": "20000" },
            ":ir": { "S": "1" },
        },
    });
    assert!(table.pair.wire.conditional("UpdateItem", &name, "attribute_exists(#pk) AND #ir = :ir", &rest));
    let undone = json!({ "S": format!("{}:0000000001", "01".repeat(16)) });
    assert_eq!(table.pair.wire.row(&name).unwrap()["undoneVersion"], undone);
    let ask = |table: &Table, op: &Op| {
        let mut flight = table.pair.wire.begin(&table.name, op);
        (0..9).find_map(|_| table.pair.wire.advance(&mut flight, Fate::Answered)).unwrap()
    };
    assert!(is_conflict(&ask(&table, &acquire_above(2))), "Java holds it");
    assert!(is_conflict(&ask(&table, &release())));
    table.pair.wire.set(&name, "isReleased", "1");
    assert_eq!(ask(&table, &acquire(HOLDER, 3)), granted(101));
    assert_eq!(table.pair.wire.row(&name).unwrap().get("undoneVersion"), None);
}
