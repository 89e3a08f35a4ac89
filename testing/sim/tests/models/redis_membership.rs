//! A real Redis's memory of its quorum, against the core's own `admit`: the same random requests to both.
//!
//! `LEASEHOLD_SEEDS` sets the number of runs.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use leasehold_core::member::{
    Admission, Answer, Bootstrap, CounterTrust, Durability, LossId, Marker, Membership, Phase, QuorumId, RETENTION,
    RunId, admit,
};
use leasehold_core::node::NodeMemory;
use leasehold_core::op::{Acquire, Applied, DenialKind, Finish, LockOp, Op, Outcome, Raise, Refusal, Release, Renew};
use leasehold_core::quorum::Trust;
use leasehold_core::{LockId, Nonce, Owner, Resource, Seq, Token};
use leasehold_servers::redis::Server;
use leasehold_sim::rng::{Draws, Stream};
use leasehold_wire::redis::{found, look};
use leasehold_wire::resp::Value;

use crate::redis_model::wire::Wire;

const SEEDS: u64 = 24;
const STEPS: usize = 200;
const NAMES: [&str; 2] = ["a", "{x}b"];
const TTL: Duration = Duration::from_secs(3600);
const OURS: (QuorumId, u64) = (QuorumId([1; 16]), 60_000);
const MARKER: &[u8] = b"leasehold\x1fquorum";

/// Situations that a run must meet to prove anything.
const SOMETIMES: [&str; 20] = [
    "marked as joining",
    "marked after another run",
    "abstains",
    "rejoined",
    "born",
    "trusted at last",
    "another quorum",
    "another max_ttl",
    "granted",
    "granted in doubt",
    "conflict in doubt",
    "raised to trust",
    "trusted by resource",
    "renewal in doubt",
    "gone for certain",
    "finished",
    "finished before",
    "finish in doubt",
    "done",
    "doubted for a run",
];

/// One resource, as it should be.
#[derive(Default)]
struct Lock {
    holder: Option<Nonce>,
    counter: Option<Token>,
    trust: Option<LossId>,
    /// The attempt whose mark says that the work is done.
    done: Option<Nonce>,
}

struct Node {
    wire: Wire,
    run: RunId,
    marker: Option<Marker>,
    locks: BTreeMap<&'static str, Lock>,
    stamps: u8,
    stamps_seen: BTreeSet<LossId>,
    seen: BTreeSet<&'static str>,
}

fn lock_op(name: &str, op: Op) -> LockOp {
    LockOp { lock: LockId::new(1), resource: Resource::new(name).unwrap(), op }
}

fn nonce(draws: &mut Draws) -> Nonce {
    Nonce::from_bytes([*draws.pick(&[1, 2, 3]); 16])
}

impl Node {
    fn new(server: &Server, seed: u64) -> Self {
        let mut wire = Wire::open(server, RETENTION, seed);
        wire.call(&[b"FLUSHALL"]);
        let run = remembered(&mut wire).1.expect("a server tells its run");
        let locks = NAMES.iter().map(|name| (*name, Lock::default())).collect();
        Self { wire, run, marker: None, locks, stamps: 0, stamps_seen: BTreeSet::new(), seen: BTreeSet::new() }
    }

    fn ask(&mut self, name: &str, op: Op) -> Outcome {
        self.wire.ask(&[lock_op(name, op)]).1.remove(0)
    }

    fn membership(&mut self, draws: &mut Draws) -> Membership {
        self.stamps += 1;
        let known = self.marker.as_ref().map(|marker| marker.stamp);
        Membership {
            quorum: if draws.below(20) == 0 { QuorumId([9; 16]) } else { OURS.0 },
            max_ttl_ms: if draws.below(20) == 0 { 1 } else { OURS.1 },
            durability: *draws.pick(&[Durability::Declared, Durability::NotDeclared]),
            fresh: LossId([self.stamps; 16]),
            waited_out: *draws.pick(&[None, known, known, Some(LossId([200; 16]))]),
            bootstrap: *draws.pick(&[Bootstrap::Yes, Bootstrap::No, Bootstrap::No]),
            retention: RETENTION,
        }
    }

    fn vote(&mut self, name: &'static str, draws: &mut Draws) {
        let (asked, nonce) = (self.membership(draws), nonce(draws));
        let floor = Token::new(draws.below(1_000)).unwrap();
        let unless_done = draws.one_in(3);
        let (before, now_ms) = (self.marker.clone(), self.now_ms());
        let Admission { write, answer } = admit(before.as_ref(), &asked, Some(&self.run), now_ms);
        let acquire = Acquire {
            floor,
            owner: Owner::new("me").unwrap(),
            member: Some(asked.clone()),
            unless_done,
            ..Acquire::new(nonce, Seq::new(1), TTL)
        };
        let outcome = self.ask(name, Op::Acquire(Box::new(acquire)));
        // The server names a loss after the moment at which it finds it.
        let named = match (&write, &outcome) {
            (Some(marker), Outcome::NotApplied(Refusal::Abstains { stamp: Some(stamp) })) => {
                assert!(self.stamps_seen.insert(*stamp) && *stamp != asked.fresh, "a name of its own");
                Some(Marker { stamp: *stamp, ..marker.clone() })
            }
            _ => write.clone(),
        };
        if let Some(marker) = &write {
            self.see(match (marker.phase, before.is_some()) {
                (Phase::Joining, false) => "marked as joining",
                (Phase::Joining, true) => "marked after another run",
                (Phase::Member, _) => "born",
                (Phase::Rejoined { .. }, _) => "rejoined",
            });
        }
        let is_new = write.as_ref().is_some_and(|marker| marker.phase == Phase::Joining);
        self.marker = named.or(before);
        let lock = self.locks.get_mut(name).unwrap();
        let counters = match answer {
            Answer::Abstains(stamp) => {
                let named = self.marker.as_ref().map_or(stamp, |marker| marker.stamp);
                let stamp = if is_new { named } else { stamp };
                assert_eq!(outcome, Outcome::NotApplied(Refusal::Abstains { stamp: Some(stamp) }));
                return self.see("abstains");
            }
            Answer::WrongQuorum { quorum, .. } => {
                let Outcome::NotApplied(Refusal::Denied(denial)) = &outcome else { panic!("{outcome:?}") };
                assert_eq!(denial.kind, DenialKind::Membership);
                assert!(denial.detail.contains(&OURS.1.to_string()) || denial.detail.contains(&quorum.to_string()));
                return self.see(if asked.quorum == OURS.0 { "another max_ttl" } else { "another quorum" });
            }
            Answer::Votes(counters) => counters,
        };
        if unless_done && lock.done.is_some() {
            assert!(matches!(outcome, Outcome::NotApplied(Refusal::Done(_))), "{outcome:?}");
            return self.see("done");
        }
        let trust = counters.trust(lock.trust.as_ref().filter(|_| !unless_done));
        let marked = self.marker.as_ref().map(|marker| (marker.phase, marker.stamp));
        let mut seen = match (counters, trust, marked) {
            (CounterTrust::ByResource(_), Trust::Trusted, _) => vec!["trusted by resource"],
            // Were it not for the time that has passed, it would be doubted.
            (CounterTrust::Trusted, _, Some((Phase::Rejoined { .. }, loss))) if lock.trust != Some(loss) => {
                vec!["trusted at last"]
            }
            (_, _, _) => vec![],
        };
        if unless_done && trust != counters.trust(lock.trust.as_ref()) {
            seen.push("doubted for a run");
        }
        match (lock.holder.filter(|holder| *holder != nonce), outcome) {
            (None, Outcome::Applied(applied)) => {
                let counter = match (applied, counters) {
                    (Applied::Acquired { counter }, _) if trust == Trust::Trusted => {
                        seen.push("granted");
                        counter
                    }
                    (Applied::AcquiredInDoubt { counter, stamp }, CounterTrust::ByResource(loss)) => {
                        assert!(trust == Trust::Doubtful && stamp == loss);
                        seen.push("granted in doubt");
                        counter
                    }
                    (applied, counters) => panic!("{applied:?} of {counters:?}"),
                };
                match (lock.holder, lock.counter) {
                    (Some(_), known) => assert_eq!(Some(counter), known, "a resend mints nothing"),
                    (None, Some(known)) => assert_eq!(counter, known.next().unwrap().max(floor)),
                    (None, None) => assert!(counter >= floor),
                }
                (lock.holder, lock.counter) = (Some(nonce), Some(counter));
            }
            (Some(rival), Outcome::NotApplied(Refusal::Conflict(shown))) => {
                let holding = shown.holding.unwrap();
                assert!(holding.is_of(&rival));
                match trust {
                    Trust::Trusted => assert_eq!(holding.counter, lock.counter),
                    Trust::Doubtful => {
                        assert_eq!(holding.counter, None);
                        seen.push("conflict in doubt");
                    }
                }
            }
            (holder, outcome) => panic!("{holder:?} {outcome:?}"),
        }
        seen.into_iter().for_each(|what| self.see(what));
    }

    fn renew(&mut self, name: &'static str, draws: &mut Draws) {
        let (nonce, durability) = (nonce(draws), *draws.pick(&[Durability::Declared, Durability::NotDeclared]));
        let renew = Renew { nonce, seq: Seq::new(2), record_ttl: TTL, quorum: Some(durability) };
        let memory = NodeMemory { marker: self.marker.as_ref(), trusted: None, run: Some(&self.run) };
        let in_doubt = memory.is_in_doubt(durability);
        let outcome = self.ask(name, Op::Renew(renew));
        match (self.locks[name].holder, outcome) {
            (Some(holder), Outcome::Applied(Applied::Renewed)) => assert_eq!(holder, nonce),
            (Some(holder), Outcome::NotApplied(Refusal::Conflict(seen))) => {
                assert!(!in_doubt && holder != nonce && seen.held().is_some_and(|holding| holding.is_of(&holder)));
            }
            (holder, Outcome::NotApplied(Refusal::Abstains { stamp: None })) => {
                assert!(in_doubt && holder != Some(nonce));
                self.see("renewal in doubt");
            }
            (None, Outcome::NotApplied(Refusal::Conflict(seen))) => {
                assert!(!in_doubt && seen.held().is_none());
                assert_eq!(seen.holding.and_then(|over| over.counter), self.locks[name].counter, "what is left of it");
                self.see("gone for certain");
            }
            (holder, outcome) => panic!("{holder:?} {outcome:?}"),
        }
    }

    fn raise(&mut self, name: &'static str, draws: &mut Draws) {
        let (nonce, more) = (nonce(draws), draws.below(3));
        let current = self.marker.as_ref().map(|marker| marker.stamp);
        let loss = *draws.pick(&[current, current, None, Some(LossId([200; 16]))]);
        let lock = &self.locks[name];
        let token = Token::new(lock.counter.map_or(5, Token::get) + more).unwrap();
        let (holder, known) = (lock.holder, lock.counter);
        match (self.ask(name, Op::Raise(Raise { nonce, token, loss })), holder == Some(nonce)) {
            (Outcome::Applied(Applied::Raised { counter }), true) => {
                assert_eq!(Some(counter), known.max(Some(token)));
                let doubt = self.marker.as_ref().filter(|marker| matches!(marker.phase, Phase::Rejoined { .. }));
                let doubt = doubt.map(|marker| marker.stamp).filter(|stamp| loss == Some(*stamp));
                let lock = self.locks.get_mut(name).unwrap();
                lock.counter = Some(counter);
                lock.trust = doubt.or(lock.trust);
                if doubt.is_some() {
                    self.see("raised to trust");
                }
            }
            (Outcome::NotApplied(Refusal::Conflict(_)), false) => {}
            (outcome, ours) => panic!("{outcome:?} {ours}"),
        }
    }

    fn release(&mut self, name: &'static str, draws: &mut Draws) {
        let nonce = nonce(draws);
        let outcome = self.ask(name, Op::Release(Release { nonce, quorum: None }));
        let lock = self.locks.get_mut(name).unwrap();
        let ours = lock.holder == Some(nonce);
        assert_eq!(ours, outcome == Outcome::Applied(Applied::Released), "{outcome:?}");
        lock.holder = lock.holder.filter(|_| !ours);
    }

    fn finish(&mut self, name: &'static str, draws: &mut Draws) {
        let (nonce, durability) = (nonce(draws), *draws.pick(&[Durability::Declared, Durability::NotDeclared]));
        let owner = Owner::new("me").unwrap();
        let known = self.locks[name].counter.unwrap_or(Token::MAX);
        let counter = if draws.one_in(5) { Token::ZERO } else { known };
        let finish =
            Finish { nonce, token: Token::MAX, counter, keep: TTL, owner, about: None, quorum: Some(durability) };
        let memory = NodeMemory { marker: self.marker.as_ref(), trusted: None, run: Some(&self.run) };
        let in_doubt = memory.is_in_doubt(durability);
        let outcome = self.ask(name, Op::Finish(Box::new(finish)));
        let lock = self.locks.get_mut(name).unwrap();
        let ours = lock.holder == Some(nonce) && lock.counter == Some(counter);
        let before = lock.done == Some(nonce);
        match outcome {
            Outcome::Applied(Applied::Finished) if ours => {
                (lock.holder, lock.done) = (None, Some(nonce));
                self.see("finished");
            }
            Outcome::Applied(Applied::Finished) if before => self.see("finished before"),
            Outcome::NotApplied(Refusal::Abstains { stamp: None }) if !ours && !before && in_doubt => {
                self.see("finish in doubt");
            }
            Outcome::NotApplied(Refusal::Conflict(_)) if !ours && !before && !in_doubt => {}
            outcome => panic!("{outcome:?} of {ours} {before} {in_doubt}"),
        }
    }

    fn wipe(&mut self) {
        self.wire.call(&[b"FLUSHALL"]);
        self.marker = None;
        self.locks.values_mut().for_each(|lock| *lock = Lock::default());
    }

    /// Changes the marker without any client.
    fn tamper(&mut self, change: impl FnOnce(&mut Marker)) {
        let Some(marker) = &mut self.marker else { return };
        change(marker);
        let text = marker.text();
        self.wire.call(&[b"SET", MARKER, text.as_bytes()]);
    }

    fn now_ms(&mut self) -> u64 {
        self.wire.timed(&[]).0.to_ms
    }

    /// The marker is what `admit` says, but for the moment at which the server's clock was read.
    fn compare(&mut self) {
        let (real, run) = remembered(&mut self.wire);
        assert_eq!(run.as_ref(), Some(&self.run));
        let near = |a: &Marker, b: &Marker| match (a.phase, b.phase) {
            (Phase::Rejoined { trusted_from_unix_ms: a }, Phase::Rejoined { trusted_from_unix_ms: b }) => {
                a.abs_diff(b) < 60_000
            }
            (a, b) => a == b,
        };
        match (&real, &self.marker) {
            (Some(real), Some(model)) => {
                assert!(near(real, model), "{real} is not {model}");
                assert_eq!(Marker { phase: model.phase, ..real.clone() }, *model);
            }
            (real, model) => assert_eq!(real, model),
        }
        self.marker = real;
        for (name, lock) in &self.locks {
            let key = if *name == "a" { "{a}\x1ftrust of name".to_owned() } else { format!("{name}\x1ftrust") };
            let trust = self.wire.call(&[b"GET", key.as_bytes()]);
            let stamp = lock.trust.map(|stamp| Value::Bulk(stamp.to_string().into_bytes()));
            assert_eq!(trust, stamp.unwrap_or(Value::Nil), "{name}");
        }
    }

    fn see(&mut self, what: &'static str) {
        debug_assert!(SOMETIMES.contains(&what), "{what}");
        self.seen.insert(what);
    }
}

fn remembered(wire: &mut Wire) -> (Option<Marker>, Option<RunId>) {
    let replies: Vec<Value> = wire.timed(&look()).1;
    let found = found(&replies).unwrap();
    assert_eq!(found.marker.is_some(), !found.text.is_empty());
    (found.marker, found.run)
}

#[test]
fn redis_membership_agrees_with_admit() {
    let seeds = std::env::var("LEASEHOLD_SEEDS").map_or(SEEDS, |text| text.parse().expect("a number of seeds"));
    let server = Server::start();
    let mut seen = BTreeSet::new();
    for seed in 0..seeds {
        let mut draws = Stream::new(seed, "membership").draws();
        let mut node = Node::new(&server, seed);
        for step in 0..STEPS {
            let name = *draws.pick(&NAMES);
            match draws.below(40) {
                0..=19 => node.vote(name, &mut draws),
                20..=25 => node.renew(name, &mut draws),
                26..=30 => node.raise(name, &mut draws),
                31..=33 => node.release(name, &mut draws),
                34 | 35 => node.finish(name, &mut draws),
                36 => node.wipe(),
                37 => node.tamper(|marker| marker.run = RunId::new("0123456789abcdef")),
                38 => node.tamper(|marker| {
                    if let Phase::Rejoined { trusted_from_unix_ms } = &mut marker.phase {
                        *trusted_from_unix_ms = 1;
                    }
                }),
                _ => {
                    node.wire.call(&[b"SCRIPT", b"FLUSH"]);
                }
            }
            println!("seed {seed}, step {step}");
            node.compare();
        }
        seen.append(&mut node.seen);
    }
    let never: Vec<_> = SOMETIMES.iter().filter(|what| !seen.contains(*what)).collect();
    assert!(seeds < SEEDS || never.is_empty(), "never seen: {never:?}");
}
