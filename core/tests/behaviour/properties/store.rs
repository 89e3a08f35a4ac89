//! The reference store under random operations of several attempts, on several boots: the rules that clients rely on.

use std::collections::BTreeSet;
use std::time::Duration;

use leasehold_core::op::{Acquire, Applied, Finish, Op, Outcome, Raise, Refusal, Release, Renew, Revoke, Tell};
use leasehold_core::store::{BootId, LeaseRecord, Record, StoreNow, apply, seen};
use leasehold_core::{About, Monotonic, Nonce, Owner, Seq, Token, Version};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

#[derive(Clone, Copy, Debug)]
struct Move {
    attempt: u8,
    op: &'static str,
    seq: u32,
    ttl_ms: u64,
    floor: u64,
    expects: bool,
    unless_done: bool,
    boot: u8,
    pause_ms: u64,
}

fn moves() -> impl Strategy<Value = Vec<Move>> {
    let op =
        select(vec!["acquire", "acquire", "renew", "renew", "release", "finish", "raise", "revoke", "tell", "read"]);
    let one =
        (0_u8..4, op, 0_u32..6, select(vec![100, 200, 1_000]), 0_u64..40, any::<(bool, bool)>(), 0_u8..8, 0_u64..150);
    let one = one.prop_map(|(attempt, op, seq, ttl_ms, floor, (expects, unless_done), boot, pause_ms)| Move {
        attempt,
        op,
        seq,
        ttl_ms,
        floor,
        expects,
        unless_done,
        // Mostly one kernel.
        boot: boot / 7,
        pause_ms,
    });
    vec(one, 1..120)
}

fn op_of(step: &Move, version: Option<&Version>, counter: Token) -> Op {
    let nonce = Nonce::from_bytes([step.attempt; 16]);
    let (seq, record_ttl) = (Seq::new(step.seq), Duration::from_millis(step.ttl_ms));
    match step.op {
        "acquire" => Op::Acquire(Box::new(Acquire {
            floor: Token::new(step.floor).unwrap(),
            expect: version.filter(|_| step.expects).cloned(),
            owner: Owner::new("").unwrap(),
            unless_done: step.unless_done,
            ..Acquire::new(nonce, seq, record_ttl)
        })),
        "renew" => Op::Renew(Renew { nonce, seq, record_ttl, quorum: None }),
        "release" => Op::Release(Release { quorum: None, nonce }),
        "finish" => Op::Finish(Box::new(Finish {
            nonce,
            token: Token::new(step.floor).unwrap(),
            // Mostly that of the grant.
            counter: if step.floor.is_multiple_of(4) { Token::new(step.floor).unwrap() } else { counter },
            keep: Duration::from_millis(step.ttl_ms),
            owner: Owner::new("").unwrap(),
            about: step.floor.is_multiple_of(3).then(|| About::new(&nonce, step.ttl_ms, 0, None)),
            quorum: None,
        })),
        "revoke" => Op::Revoke(Revoke { nonce }),
        "tell" => Op::Tell(Tell { nonce }),
        "raise" => Op::Raise(Raise { nonce, token: Token::new(step.floor).unwrap(), loss: None }),
        _ => Op::Read,
    }
}

/// Returns true if a lease stands, by the record.
fn stands(record: Option<&Record>, now: &StoreNow) -> bool {
    let lease = record.and_then(|record| record.lease.as_ref());
    lease.is_some_and(|lease| !lease.released && (lease.boot != now.boot || now.uptime < lease.expires))
}

proptest! {
    #[test]
    fn store_rules_hold_for_random_operations(moves in moves()) {
        let mut record: Option<Record> = None;
        let mut time = Duration::from_secs(1);
        let mut granted = BTreeSet::new();
        for step in moves {
            time += Duration::from_millis(step.pause_ms);
            let now = StoreNow { boot: BootId([step.boot; 16]), uptime: Monotonic::from_ns(0).plus(time), unix_ms: u64::try_from(time.as_millis()).unwrap() };
            let before = record.clone();
            let lease = before.as_ref().and_then(|record| record.lease.as_ref());
            let version = lease.map(|lease| Version::of(&lease.nonce, lease.seq));
            let counter = |record: Option<&Record>| record.map_or(Token::ZERO, |record| record.counter);
            let op = op_of(&step, version.as_ref(), counter(before.as_ref()));
            let is_of_grant = !matches!(&op, Op::Finish(finish) if finish.counter != counter(before.as_ref()));
            let nonce = Nonce::from_bytes([step.attempt; 16]);
            let ours = lease.filter(|lease| lease.nonce == nonce);
            let completion = before.as_ref().and_then(|record| record.completion.as_ref());
            let is_done = completion.is_some_and(|completion| now.unix_ms < completion.until_unix_ms);
            let decision = apply(before.as_ref(), &op, &now);
            if let Some(written) = decision.write.clone() {
                record = Some(written);
            }
            let after = record.as_ref();
            prop_assert!(counter(after) >= counter(before.as_ref()), "counters never fall");

            match &decision.outcome {
                Outcome::Applied(Applied::Acquired { counter: token }) => {
                    prop_assert!(*token > counter(before.as_ref()) && token.get() >= step.floor);
                    prop_assert_eq!(counter(after), *token);
                    prop_assert!(granted.insert(*token), "a token is granted once");
                    prop_assert!(!step.unless_done || !is_done, "nothing is done twice");
                    let spent = |was: &LeaseRecord| !was.released && was.seq.get() < step.seq;
                    prop_assert!(ours.is_none_or(spent), "an attempt never writes over its own record, unless that has run out");
                    let waited_out = step.expects && lease.is_some_and(|lease| lease.boot != now.boot);
                    prop_assert!(!stands(before.as_ref(), &now) || waited_out, "two leases at once");
                    let lease = after.and_then(|record| record.lease.as_ref()).unwrap();
                    prop_assert_eq!((lease.nonce, lease.seq, lease.released), (nonce, Seq::new(step.seq), false));
                    prop_assert_eq!(lease.expires.since(now.uptime), Duration::from_millis(step.ttl_ms));
                }
                Outcome::Applied(renewed @ (Applied::Renewed | Applied::RenewedTold { .. })) => {
                    prop_assert_eq!(renewed, &leasehold_core::store::renewed(ours.unwrap().told));
                    let (was, is) = (ours.unwrap(), after.and_then(|record| record.lease.as_ref()).unwrap());
                    prop_assert!(stands(before.as_ref(), &now), "nothing is renewed that is over");
                    prop_assert!(is.seq > was.seq && is.nonce == was.nonce && !is.released);
                    prop_assert!(was.boot != is.boot || is.expires >= was.expires, "never shorter");
                    prop_assert!(is.record_ttl >= was.record_ttl, "nor what observers wait for");
                    prop_assert!(is.record_ttl >= Duration::from_millis(step.ttl_ms), "which covers this renewal too");
                    prop_assert!(is.expires.since(now.uptime) >= Duration::from_millis(step.ttl_ms));
                    prop_assert_eq!(counter(after), counter(before.as_ref()));
                }
                Outcome::Applied(Applied::Released) => {
                    prop_assert!(ours.is_some_and(|lease| !lease.released), "nobody frees what is not theirs, or free");
                    prop_assert!(!stands(after, &now));
                    prop_assert_eq!(counter(after), counter(before.as_ref()));
                }
                Outcome::Applied(Applied::Finished) => {
                    let by_us = |record: Option<&Record>| {
                        let completion = record.and_then(|record| record.completion.as_ref());
                        completion.is_some_and(|completion| completion.nonce == nonce && now.unix_ms < completion.until_unix_ms)
                    };
                    prop_assert!(by_us(after));
                    if !by_us(before.as_ref()) {
                        prop_assert!(ours.is_some() && stands(before.as_ref(), &now), "only what is ours is finished");
                        prop_assert!(is_of_grant, "and under its own grant");
                    }
                    prop_assert!(after == before.as_ref() || !stands(after, &now));
                    prop_assert_eq!(counter(after), counter(before.as_ref()));
                }
                Outcome::NotApplied(Refusal::Done(shown)) => {
                    prop_assert_eq!(after, before.as_ref(), "a refusal changes nothing");
                    prop_assert!(is_done && step.unless_done && step.op == "acquire");
                    prop_assert_eq!(&Some(shown.clone()), &seen(before.as_ref(), &now).done);
                }
                Outcome::Applied(Applied::Raised { counter: raised }) => {
                    prop_assert!(ours.is_some() && stands(before.as_ref(), &now));
                    prop_assert!(raised.get() >= step.floor);
                    prop_assert_eq!(counter(after), *raised);
                    prop_assert_eq!(after.unwrap().lease.as_ref(), lease);
                }
                Outcome::Applied(Applied::Revoked) => {
                    let was = ours.unwrap();
                    prop_assert!(stands(before.as_ref(), &now), "nothing is revoked that is over");
                    let is = after.and_then(|record| record.lease.as_ref()).unwrap();
                    prop_assert_eq!(is, &LeaseRecord { seq: Seq::LAST, ..was.clone() }, "the expiry stays");
                    prop_assert_eq!(counter(after), counter(before.as_ref()));
                }
                Outcome::Applied(Applied::Told) => {
                    let was = ours.unwrap();
                    prop_assert!(stands(before.as_ref(), &now), "nobody is told of what is over");
                    let is = after.and_then(|record| record.lease.as_ref()).unwrap();
                    prop_assert_eq!(is, &LeaseRecord { told: was.told + 1, ..was.clone() }, "and nothing else changes");
                    prop_assert_eq!(counter(after), counter(before.as_ref()));
                }
                Outcome::Applied(Applied::Read(shown)) => {
                    prop_assert_eq!(shown.held().is_some(), stands(before.as_ref(), &now));
                    prop_assert_eq!(after, before.as_ref());
                }
                Outcome::NotApplied(Refusal::Conflict(shown)) => {
                    prop_assert_eq!(after, before.as_ref(), "a refusal changes nothing");
                    prop_assert_eq!(&shown.holding, &seen(before.as_ref(), &now).holding, "and shows what stood in the way");
                    match step.op {
                        "acquire" => prop_assert!(ours.is_some() || stands(before.as_ref(), &now)),
                        "release" => prop_assert!(ours.is_none_or(|lease| lease.released)),
                        "renew" => {
                            let fresh = ours.is_some_and(|lease| lease.seq < Seq::new(step.seq));
                            prop_assert!(!fresh || !stands(before.as_ref(), &now));
                        }
                        _ => prop_assert!(ours.is_none() || !stands(before.as_ref(), &now) || !is_of_grant),
                    }
                }
                other @ (Outcome::Applied(Applied::AcquiredInDoubt { .. })
                | Outcome::NotApplied(_)
                | Outcome::Unknown(_)) => {
                    return Err(TestCaseError::fail(format!("{other:?}")));
                }
            }
        }
    }

    #[test]
    fn versions_differ_by_nonce_and_seq(seq in 0_u32..1_000, other in 0_u32..1_000, who in 0_u8..3, whom in 0_u8..3) {
        let version = |who, seq| Version::of(&Nonce::from_bytes([who; 16]), Seq::new(seq));
        prop_assert_eq!(version(who, seq) == version(whom, other), (who, seq) == (whom, other));
    }
}
