//! Every order, within bounds, in which a change of the number of permits and those who read it can meet: each step of the
//! one who changes it, and each of its requests, may come as late as it likes, or twice. The record is the real reference store.
//!
//! Searched for: somebody inside who counted one number, beside a record of another one (decision 0038).

use std::collections::HashSet;
use std::time::Duration;

use leasehold_core::op::{Acquire, Applied, Finish, Op, Outcome, Release, Renew, Seen};
use leasehold_core::store::{BootId, Record, StoreNow, apply};
use leasehold_core::{Monotonic, Nonce, Owner, Seq, Token};

const BEFORE: &str = "permits=2";
const AFTER: &str = "permits=1";
/// In ticks, as all times here.
const LOCK_TTL: u64 = 2;
const END: u64 = 6;
const READERS: usize = 2;

#[derive(Clone, Copy, Debug)]
struct Rules {
    /// The mistake of checking the locks before the record is held.
    checks_before: bool,
    /// The mistake of counting a number whose record is held.
    ignores_held: bool,
    /// Records are over when readers have observed them, and not by themselves.
    observed: bool,
    record_ttl: u64,
    /// The mistake of a store that compares the attempt of a finish, and not its grant.
    any_grant: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Setter {
    Starts,
    Begins,
    Holds(Token),
    Checked(Token),
    Finishes,
    Ended,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Reader {
    Outside,
    Inside,
    /// It saw the record held, first at this time.
    Doubts(u64),
    HoldsRecord,
    Counted(bool),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Sent {
    Begin,
    Renew,
    Finish(Token),
}

#[derive(Clone, PartialEq, Eq, Hash)]
struct World {
    now: u64,
    record: Option<Record>,
    setter: Setter,
    renewed: bool,
    copies: u8,
    flight: Vec<Sent>,
    readers: [Reader; READERS],
}

fn nonce(of: u8) -> Nonce {
    Nonce::from_bytes([of; 16])
}

fn acquire(of: u8, rules: &Rules) -> Op {
    Op::Acquire(Box::new(Acquire::new(nonce(of), Seq::new(1), ticks(rules.record_ttl))))
}

fn finish(of: u8, token: Token, label: &str) -> Op {
    let owner = Owner::new(label).unwrap();
    Op::Finish(Box::new(Finish {
        nonce: nonce(of),
        token,
        counter: token,
        keep: Duration::from_secs(1_000_000),
        owner,
        about: None,
        quorum: None,
    }))
}

fn ticks(ticks: u64) -> Duration {
    Duration::from_secs(ticks)
}

/// Takes a change of the world as one more step.
type Add<'a> = dyn FnMut(&dyn Fn(&mut World)) + 'a;

impl World {
    fn new(rules: &Rules) -> Self {
        let mut world = Self {
            now: 0,
            record: None,
            setter: Setter::Starts,
            renewed: false,
            copies: 1,
            flight: Vec::new(),
            readers: [Reader::Outside; READERS],
        };
        let Outcome::Applied(Applied::Acquired { counter }) = world.ask(&acquire(99, rules), rules) else {
            panic!("it is free")
        };
        world.ask(&finish(99, counter, BEFORE), rules);
        world
    }

    fn ask(&mut self, op: &Op, rules: &Rules) -> Outcome {
        self.ask_at(op, if rules.observed { Monotonic::default() } else { Monotonic::default().plus(ticks(self.now)) })
    }

    fn ask_at(&mut self, op: &Op, uptime: Monotonic) -> Outcome {
        let decision = apply(self.record.as_ref(), op, &StoreNow { boot: BootId([7; 16]), uptime, unix_ms: 1_000 });
        self.record = decision.write.or(self.record.take());
        decision.outcome
    }

    fn read(&mut self, rules: &Rules) -> Seen {
        match self.ask(&Op::Read, rules) {
            Outcome::Applied(Applied::Read(seen)) => seen,
            other => panic!("{other:?}"),
        }
    }

    fn locks_are_free(&self) -> bool {
        self.now >= LOCK_TTL || self.setter == Setter::Ended
    }

    fn is_changed(&self) -> bool {
        self.record
            .as_ref()
            .and_then(|record| record.completion.as_ref())
            .is_some_and(|completion| completion.owner.as_str() == AFTER)
    }

    fn is_wrong(&self) -> bool {
        let changed = self.is_changed();
        self.readers.iter().any(|reader| matches!(reader, Reader::Counted(counted) if *counted != changed))
    }

    /// The worlds that one more step leads to.
    fn next(&self, rules: &Rules) -> Vec<Self> {
        let mut all = Vec::new();
        let mut add = |change: &dyn Fn(&mut Self)| {
            let mut next = self.clone();
            change(&mut next);
            next.flight.sort_unstable();
            all.push(next);
        };
        if self.now < END {
            add(&|next| next.now += 1);
        }
        self.setter_steps(rules, &mut add);
        for index in 0..self.flight.len() {
            add(&|next| {
                let sent = next.flight.remove(index);
                next.land(sent, rules);
            });
            if self.copies > 0 {
                add(&|next| {
                    next.copies -= 1;
                    next.land(next.flight[index], rules);
                });
            }
        }
        for reader in 0..READERS {
            add(&|next| next.reader_step(reader, rules));
        }
        all
    }

    fn setter_steps(&self, rules: &Rules, add: &mut Add<'_>) {
        let is_held = self.now < LOCK_TTL;
        match self.setter {
            Setter::Starts if rules.checks_before && !is_held => add(&|next| next.setter = Setter::Ended),
            Setter::Starts => add(&|next| {
                next.setter = Setter::Begins;
                next.flight.push(Sent::Begin);
            }),
            Setter::Holds(token) => {
                if rules.checks_before || is_held {
                    add(&|next| next.setter = Setter::Checked(token));
                } else {
                    add(&|next| next.setter = Setter::Ended);
                }
            }
            Setter::Checked(token) => add(&|next| {
                next.setter = Setter::Finishes;
                next.flight.push(Sent::Finish(token));
            }),
            Setter::Begins | Setter::Finishes | Setter::Ended => {}
        }
        if matches!(self.setter, Setter::Holds(_) | Setter::Checked(_)) && !self.renewed {
            add(&|next| {
                next.renewed = true;
                next.flight.push(Sent::Renew);
            });
        }
    }

    fn land(&mut self, sent: Sent, rules: &Rules) {
        match sent {
            Sent::Begin => match self.ask(&acquire(1, rules), rules) {
                Outcome::Applied(Applied::Acquired { counter }) if self.setter == Setter::Begins => {
                    self.setter = Setter::Holds(counter);
                }
                _ if self.setter == Setter::Begins => self.setter = Setter::Ended,
                _ => {}
            },
            Sent::Renew => {
                let renew =
                    Renew { nonce: nonce(1), seq: Seq::new(2), record_ttl: ticks(rules.record_ttl), quorum: None };
                self.ask(&Op::Renew(renew), rules);
            }
            Sent::Finish(token) => {
                let counter = self.record.as_ref().map_or(token, |record| record.counter);
                let token = if rules.any_grant { counter } else { token };
                self.ask(&finish(1, token, AFTER), rules);
                self.setter = Setter::Ended;
            }
        }
    }

    fn reader_step(&mut self, index: usize, rules: &Rules) {
        let of = 10 + u8::try_from(index).unwrap();
        self.readers[index] = match self.readers[index] {
            Reader::Outside if self.locks_are_free() => Reader::Inside,
            Reader::Inside => {
                let is_free = self.read(rules).held().is_none();
                if is_free || rules.ignores_held {
                    Reader::Counted(self.is_changed())
                } else {
                    Reader::Doubts(self.now)
                }
            }
            Reader::Doubts(since) => match self.take_over(of, since, rules) {
                true => Reader::HoldsRecord,
                false => Reader::Doubts(since),
            },
            Reader::HoldsRecord => {
                let counted = Reader::Counted(self.is_changed());
                self.ask(&Op::Release(Release { nonce: nonce(of), quorum: None }), rules);
                counted
            }
            same => same,
        };
    }

    fn take_over(&mut self, of: u8, since: u64, rules: &Rules) -> bool {
        let over = self.record.as_ref().and_then(|record| record.lease.as_ref()).map(|lease| lease.expires);
        let outcome = match over {
            Some(over) if rules.observed && self.now >= since + rules.record_ttl => {
                self.ask_at(&acquire(of, rules), over)
            }
            _ => self.ask(&acquire(of, rules), rules),
        };
        matches!(outcome, Outcome::Applied(_))
    }
}

/// The number of states, and whether one of them is wrong.
fn search(rules: &Rules) -> (usize, bool) {
    let first = World::new(rules);
    let (mut seen, mut open) = (HashSet::from([first.clone()]), vec![first]);
    let mut ends = [false; 2];
    while let Some(world) = open.pop() {
        if world.is_wrong() {
            return (seen.len(), true);
        }
        for reader in &world.readers {
            if let Reader::Counted(counted) = reader {
                ends[usize::from(*counted)] = true;
            }
        }
        for next in world.next(rules) {
            if seen.insert(next.clone()) {
                open.push(next);
            }
        }
    }
    assert_eq!(ends, [true; 2], "both numbers are counted somewhere, or nothing was searched");
    (seen.len(), false)
}

#[test]
fn nobody_inside_sees_the_number_change() {
    for observed in [false, true] {
        for record_ttl in [1, 3] {
            let rules = Rules { checks_before: false, ignores_held: false, any_grant: false, observed, record_ttl };
            let (states, is_wrong) = search(&rules);
            println!("{rules:?}: {states} states");
            assert!(!is_wrong, "{rules:?}");
        }
    }
}

#[test]
fn each_part_of_the_rule_is_needed() {
    for observed in [false, true] {
        for (checks_before, ignores_held, any_grant) in
            [(true, false, false), (false, true, false), (true, true, false), (false, false, true)]
        {
            let rules = Rules { checks_before, ignores_held, any_grant, observed, record_ttl: 3 };
            assert!(search(&rules).1, "{rules:?}");
        }
    }
}
