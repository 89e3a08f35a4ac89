//! The common behaviour of all model stores, and the bench on which they are tested.

use std::time::Duration;

use leasehold_core::op::{Acquire, Applied, Holder, Holding, Op, Outcome, Raise, Refusal, Release, Renew};
use leasehold_core::store::{BootId, StoreNow};
use leasehold_core::{Monotonic, Nonce, Owner, Resource, Seq, Token, Version};

use crate::clock::TrueTime;
use crate::store::{Answer, Ask, By, ForeignAct, ForeignAnswer, Form, Kind, NS_PER_MS, Spec, Store, StoredRecord};

pub(super) const TTL: Duration = Duration::from_secs(1);
pub(super) const FLOOR: u64 = 100;
const KINDS: [Kind; 3] = [Kind::Sqlite, Kind::Redis, Kind::Dynamodb];

/// A store, one resource in it, and a process whose clock is right.
pub(super) struct Bench {
    pub(super) store: Store,
    pub(super) boot: u8,
    at: TrueTime,
    resource: Resource,
}

impl Bench {
    pub(super) fn new(kind: Kind) -> Self {
        Self::with(&Spec::of(kind))
    }

    pub(super) fn with(spec: &Spec) -> Self {
        let resource = Resource::new("invoice/42").unwrap();
        Self { store: Store::new(spec), boot: 0, at: TrueTime(0), resource }
    }

    pub(super) fn pass(&mut self, ms: u64) {
        self.at = self.at.plus(Duration::from_millis(ms));
    }

    pub(super) fn ask_once(&mut self, op: &Op, form: Form) -> Answer {
        let caller = self.caller();
        self.store.ask(&Ask { resource: &self.resource, op, form, at: self.at, caller, ticket: None })
    }

    /// As a codec asks: in the other form when the store says so.
    pub(super) fn ask(&mut self, op: &Op) -> Outcome {
        let first = self.ask_once(op, Form::Floor);
        let answer = if let Answer::Again(form) = first { self.ask_once(op, form) } else { first };
        match answer {
            Answer::Done(outcome) => outcome,
            Answer::Again(form) => panic!("a third request, {form:?}, for one send"),
        }
    }

    pub(super) fn grant(&mut self, who: u8, seq: u32) -> Token {
        match self.ask(&acquire(who, seq)) {
            Outcome::Applied(Applied::Acquired { counter }) => counter,
            other => panic!("no grant: {other:?}"),
        }
    }

    pub(super) fn foreign(&mut self, act: &ForeignAct) -> ForeignAnswer {
        self.store.foreign(&self.resource, act, self.at)
    }

    pub(super) fn evict(&mut self) {
        self.store.evict(&self.resource);
    }

    pub(super) fn stored(&self) -> Option<StoredRecord> {
        self.store.stored(&self.resource, self.at, &self.caller())
    }

    pub(super) fn holder(&self) -> Option<u8> {
        self.stored().map(|stored| match stored.by {
            By::Attempt(nonce) => nonce.as_bytes()[0],
            By::Foreign(id) => panic!("held by a foreign client, {id}"),
        })
    }

    /// In milliseconds of true time.
    pub(super) fn until(&self) -> Option<u64> {
        Some(self.stored()?.until?.0 / NS_PER_MS)
    }

    pub(super) fn counter(&self) -> Option<Token> {
        self.store.counter(&self.resource, self.at)
    }

    pub(super) fn left(&mut self, who: u8) -> Option<Duration> {
        holding(&self.ask(&acquire(who, 99))).left
    }

    fn caller(&self) -> StoreNow {
        StoreNow { boot: BootId([self.boot; 16]), uptime: Monotonic::from_ns(self.at.0), unix_ms: 0 }
    }
}

pub(super) fn token(value: u64) -> Token {
    Token::new(value).unwrap()
}

fn nonce(who: u8) -> Nonce {
    Nonce::from_bytes([who; 16])
}

pub(super) fn version(who: u8, seq: u32) -> Version {
    Version::of(&nonce(who), Seq::new(seq))
}

fn acquire_op(who: u8, seq: u32) -> Acquire {
    let owner = Owner::new("somebody").unwrap();
    let (nonce, seq, floor) = (nonce(who), Seq::new(seq), token(FLOOR));
    Acquire { floor, owner, ..Acquire::new(nonce, seq, TTL) }
}

pub(super) fn acquire(who: u8, seq: u32) -> Op {
    Op::Acquire(Box::new(acquire_op(who, seq)))
}

pub(super) fn acquire_for(who: u8, seq: u32, ms: u64) -> Op {
    Op::Acquire(Box::new(Acquire { record_ttl: Duration::from_millis(ms), ..acquire_op(who, seq) }))
}

pub(super) fn acquire_above(who: u8, seq: u32, floor: Token) -> Op {
    Op::Acquire(Box::new(Acquire { floor, ..acquire_op(who, seq) }))
}

pub(super) fn takeover(who: u8, seq: u32, seen: &Version) -> Op {
    Op::Acquire(Box::new(Acquire { expect: Some(seen.clone()), ..acquire_op(who, seq) }))
}

pub(super) fn renew_for(who: u8, seq: u32, ms: u64) -> Op {
    Op::Renew(Renew { nonce: nonce(who), seq: Seq::new(seq), record_ttl: Duration::from_millis(ms), quorum: None })
}

pub(super) fn renew(who: u8, seq: u32) -> Op {
    renew_for(who, seq, 1_000)
}

pub(super) fn release(who: u8) -> Op {
    Op::Release(Release { nonce: nonce(who), quorum: None })
}

pub(super) fn raise(who: u8, to: u64) -> Op {
    Op::Raise(Raise { nonce: nonce(who), token: token(to), loss: None })
}

pub(super) fn granted(counter: Token) -> Outcome {
    Outcome::Applied(Applied::Acquired { counter })
}

pub(super) fn renewed() -> Outcome {
    Outcome::Applied(Applied::Renewed)
}

pub(super) fn released() -> Outcome {
    Outcome::Applied(Applied::Released)
}

pub(super) fn raised(counter: u64) -> Outcome {
    Outcome::Applied(Applied::Raised { counter: token(counter) })
}

pub(super) fn is_grant(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Applied(Applied::Acquired { .. }))
}

/// The record that a refusal shows; fails on a grant, and on a refusal that shows none.
pub(super) fn holding(outcome: &Outcome) -> Holding {
    match outcome {
        Outcome::NotApplied(Refusal::Conflict(seen)) => *seen.holding.clone().expect("a record"),
        other => panic!("not refused: {other:?}"),
    }
}

/// The writer of the record in a refusal, its send, and whether it is released; fails on a grant.
pub(super) fn shown(outcome: &Outcome) -> Option<(u8, Option<u32>, bool)> {
    let Outcome::NotApplied(Refusal::Conflict(seen)) = outcome else { panic!("not refused: {outcome:?}") };
    seen.holding.as_ref().map(|holding| match holding.holder {
        Holder::Lease { nonce, seq } => (nonce.as_bytes()[0], seq.map(Seq::get), holding.released),
        Holder::Foreign => panic!("a foreign record"),
    })
}

pub(super) fn shown_in(answer: &Answer) -> Option<(u8, Option<u32>, bool)> {
    match answer {
        Answer::Done(outcome) => shown(outcome),
        Answer::Again(form) => panic!("not decided: {form:?}"),
    }
}

const fn keeps_seq(kind: Kind) -> bool {
    matches!(kind, Kind::Sqlite | Kind::Dynamodb)
}

fn seq_in(kind: Kind, seq: u32) -> Option<u32> {
    keeps_seq(kind).then_some(seq)
}

#[test]
fn one_attempt_at_a_time() {
    for kind in KINDS {
        let mut bench = Bench::new(kind);
        let first = bench.grant(1, 1);
        assert!(first.get() >= FLOOR, "{kind:?}");
        let refused = bench.ask(&acquire(2, 1));
        assert_eq!(shown(&refused), Some((1, seq_in(kind, 1), false)), "{kind:?}");
        assert_eq!(holding(&refused).counter, Some(first), "{kind:?}");
        assert_eq!((bench.holder(), bench.counter()), (Some(1), Some(first)), "{kind:?}");
        let Outcome::Applied(Applied::Read(seen)) = bench.ask(&Op::Read) else { panic!("{kind:?} reads") };
        assert_eq!(seen.held(), Some(&holding(&refused)), "{kind:?}");
    }
}

#[test]
fn dead_holder_is_replaced() {
    for kind in KINDS {
        let mut bench = Bench::new(kind);
        let first = bench.grant(1, 1);
        bench.pass(999);
        let seen = holding(&bench.ask(&acquire(2, 1)));
        bench.pass(1);
        let op = if seen.left.is_some() { acquire(2, 2) } else { takeover(2, 2, &seen.version) };
        assert!(is_grant(&bench.ask(&op)), "{kind:?}");
        assert_eq!(bench.holder(), Some(2), "{kind:?}");
        assert!(bench.counter() > Some(first), "{kind:?}");
        assert_eq!(shown(&bench.ask(&renew(1, 2))), Some((2, seq_in(kind, 2), false)), "{kind:?}");
        assert_eq!(shown(&bench.ask(&release(1))), Some((2, seq_in(kind, 2), false)), "{kind:?}");
        assert_eq!(shown(&bench.ask(&raise(1, 1 << 50))), Some((2, seq_in(kind, 2), false)), "{kind:?}");
        assert_eq!(bench.holder(), Some(2), "{kind:?}: a former holder changes nothing");
    }
}

#[test]
fn only_the_holder_renews_and_only_while_it_holds() {
    for kind in KINDS {
        let mut bench = Bench::new(kind);
        assert_eq!(shown(&bench.ask(&renew(1, 1))), None, "{kind:?} creates no record");
        bench.grant(1, 1);
        bench.pass(600);
        assert_eq!(bench.ask(&renew(1, 2)), renewed(), "{kind:?}");
        bench.pass(600);
        assert_eq!(shown(&bench.ask(&acquire(2, 1))), Some((1, seq_in(kind, 2), false)), "{kind:?}: it still stands");
        assert_eq!(shown(&bench.ask(&renew(2, 2))), Some((1, seq_in(kind, 2), false)), "{kind:?}");
        assert_eq!(bench.ask(&release(1)), released(), "{kind:?}");
        assert!(!matches!(bench.ask(&renew(1, 3)), Outcome::Applied(_)), "{kind:?}");
        assert_eq!(bench.holder(), None, "{kind:?}");
    }
}

#[test]
fn tokens_grow_through_releases_raises_and_low_floors() {
    for kind in KINDS {
        let mut bench = Bench::new(kind);
        let mut last = Token::ZERO;
        for round in 1..20_u8 {
            let floor = token(if round % 3 == 0 { last.get() + 1_000 } else { 1 });
            let Outcome::Applied(Applied::Acquired { counter }) = bench.ask(&acquire_above(round, 1, floor)) else {
                panic!("{kind:?} refused round {round}")
            };
            assert!(counter > last && counter >= floor, "{kind:?}, round {round}: {counter} after {last}");
            let higher = counter.get() + u64::from(round % 2) * 10;
            assert_eq!(bench.ask(&raise(round, higher)), raised(higher), "{kind:?}");
            assert_eq!(bench.ask(&raise(round, higher - 1)), raised(higher), "{kind:?} lowers nothing");
            assert_eq!(bench.ask(&release(round)), released(), "{kind:?}");
            assert!(!matches!(bench.ask(&raise(round, 1 << 50)), Outcome::Applied(_)), "{kind:?}: not its any more");
            assert_eq!((bench.holder(), bench.counter()), (None, Some(token(higher))), "{kind:?}");
            last = token(higher);
        }
    }
}

#[test]
fn tokens_run_out_at_the_top() {
    for kind in KINDS {
        let mut bench = Bench::new(kind);
        assert_eq!(bench.ask(&acquire_above(1, 1, Token::MAX)), granted(Token::MAX), "{kind:?}");
        bench.ask(&release(1));
        let refused = bench.ask(&acquire(2, 1));
        assert!(matches!(refused, Outcome::NotApplied(Refusal::Denied(_))), "{kind:?}: {refused:?}");
    }
}

#[test]
fn eviction_keeps_the_counter_and_wipe_does_not() {
    for kind in KINDS {
        let mut bench = Bench::new(kind);
        let first = bench.grant(1, 1);
        bench.evict();
        assert_eq!((bench.holder(), bench.counter()), (None, Some(first)), "{kind:?}");
        assert!(!matches!(bench.ask(&renew(1, 2)), Outcome::Applied(_)), "{kind:?}");
        assert_eq!(bench.grant(2, 1).get(), first.get() + 1, "{kind:?}");
        bench.store.wipe();
        assert_eq!((bench.holder(), bench.counter()), (None, None), "{kind:?}");
        assert_eq!(shown(&bench.ask(&renew(2, 2))), None, "{kind:?}");
    }
}

/// An acquire is sent twice, the second send is answered, a renewal follows; then the first one arrives.
#[test]
fn delayed_first_send_cannot_overwrite_a_heartbeat() {
    for kind in KINDS {
        let mut bench = Bench::new(kind);
        let first = bench.grant(1, 2);
        bench.pass(600);
        assert_eq!(bench.ask(&renew_for(1, 3, 5_000)), renewed(), "{kind:?}");
        let late = bench.ask(&acquire(1, 1));
        if keeps_seq(kind) {
            assert_eq!(shown(&late), Some((1, Some(3), false)), "{kind:?}");
        } else {
            assert_eq!(late, granted(first), "{kind:?} mints nothing");
        }
        bench.pass(4_999);
        let seen = holding(&bench.ask(&acquire(2, 1)));
        let heartbeat = if keeps_seq(kind) { version(1, 3) } else { Version::new(nonce(1).as_bytes()).unwrap() };
        assert_eq!((seen.version, seen.counter), (heartbeat, Some(first)), "{kind:?}");
    }
}

#[test]
fn late_older_renewal_is_ignored() {
    for kind in [Kind::Sqlite, Kind::Dynamodb] {
        let mut bench = Bench::new(kind);
        bench.grant(1, 1);
        assert_eq!(bench.ask(&renew(1, 3)), renewed(), "{kind:?}: the second was lost, or is late");
        for late in [2, 3] {
            assert_eq!(shown(&bench.ask(&renew(1, late))), Some((1, Some(3), false)), "{kind:?}, send {late}");
        }
    }
}

/// Arbitrary operations of four attempts at a time, against what must hold of any lock.
#[test]
fn random_walks_keep_exclusion_and_token_order() {
    for kind in KINDS {
        let (mut bench, mut dice, mut top) = (Bench::new(kind), 0x9e37_79b9_u64, Token::ZERO);
        let (mut seen_last, mut grants, mut takeovers) = (None, 0, 0);
        for step in 0..20_000_u32 {
            dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let roll = |sides: u64, of: u32| (dice >> (20 + of)) % sides;
            // Attempts come and go, and some that have gone are heard of late.
            let who = u8::try_from(u64::from(step / 200) + roll(4, 0)).unwrap();
            bench.pass(roll(300, 8));
            let op = match (roll(8, 24), &seen_last) {
                (0..2, _) => acquire(who, step),
                (2, Some(seen)) => takeover(who, step, seen),
                (2..5, _) => renew(who, step),
                (5, _) => release(who),
                (6, _) => raise(who, top.get() + roll(3, 30)),
                _ => acquire(who, step / 2),
            };
            let before = bench.holder();
            let outcome = bench.ask(&op);
            let after = bench.holder();
            match &outcome {
                Outcome::Applied(Applied::Acquired { .. }) if before == Some(who) && kind == Kind::Redis => {
                    assert_eq!(bench.counter(), Some(top), "{kind:?}, step {step}: a resend minted");
                }
                Outcome::Applied(Applied::Acquired { counter }) => {
                    assert!(*counter > top, "{kind:?}, step {step}: {counter} after {top}");
                    let taken_over = before.is_some_and(|holder| holder != who);
                    let expected = matches!(&op, Op::Acquire(op) if op.expect.is_some());
                    assert!(before.is_none() || (taken_over && expected), "{kind:?}, step {step}: {op:?}");
                    assert_eq!(after, Some(who), "{kind:?}, step {step}");
                    (top, grants) = (*counter, grants + 1);
                    takeovers += u32::from(taken_over);
                }
                Outcome::Applied(Applied::Renewed) => assert_eq!((before, after), (Some(who), Some(who)), "{kind:?}"),
                Outcome::Applied(Applied::Released) => {
                    assert!(before.is_none_or(|holder| holder == who), "{kind:?}, step {step}");
                    assert_eq!(after, None, "{kind:?}, step {step}");
                }
                Outcome::Applied(Applied::Raised { counter }) => {
                    assert!(before == Some(who) && *counter >= top, "{kind:?}, step {step}");
                    top = *counter;
                }
                Outcome::NotApplied(Refusal::Conflict(seen)) => {
                    assert_eq!(before, after, "{kind:?}, step {step}: a refusal changed something");
                    seen_last = seen.held().map(|holding| holding.version.clone());
                }
                other => panic!("{kind:?}, step {step}: {other:?}"),
            }
            assert!(bench.counter().is_none_or(|counter| counter == top), "{kind:?}, step {step}");
        }
        assert!(grants > 500 && (takeovers > 100 || kind != Kind::Dynamodb), "{kind:?}: {grants} grants, {takeovers}");
    }
}

#[test]
fn spec_is_plain_json() {
    let spec = Spec { rate_ppm: -5, retention: Duration::from_secs(7), ..Spec::of(Kind::Dynamodb) };
    let text = serde_json::to_string(&spec).unwrap();
    assert_eq!(text, r#"{"kind":"dynamodb","rate_ppm":-5,"unix_offset_ms":0,"retention_ns":7000000000}"#);
    assert_eq!(serde_json::from_str::<Spec>(&text).unwrap(), spec);
    assert_eq!(serde_json::from_str::<Spec>(r#"{"kind":"redis"}"#).unwrap(), Spec::of(Kind::Redis));
    assert!(serde_json::from_str::<Spec>(r#"{"kind":"redis","ttl":1}"#).is_err());
}
