//! The model of DynamoDB against a real one: the same random requests to both, and everything that can be seen
//! compared.
//!
//! Requests to the real one go through the client's code, so the conditions, the answers and their meaning are tested
//! too. An operation may take several requests, and others come in between. `LEASEHOLD_SEEDS` sets the number of runs.

mod dice;
mod java;
mod pair;
mod race;
mod undone;
mod wire;

use std::collections::BTreeMap;

use leasehold_core::op::{Applied, DenialKind, Op, Outcome, Refusal};
use leasehold_servers::dynamodb::Server;
use leasehold_sim::store::{ForeignAct, ForeignAnswer, Form};

use dice::{Dice, Step};
use pair::Pair;

const SEEDS: u64 = 24;
const STEPS: usize = 150;
/// Steps of a failed run that are shown.
const SHOWN: usize = 12;

/// Situations that the runs must meet to prove anything.
const SOMETIMES: [&str; 40] = [
    "granted at the floor",
    "granted one above",
    "granted in doubt",
    "taken over",
    "refused",
    "refused by its own row",
    "refused in the second form",
    "tokens used up",
    "abstains",
    "a stranger",
    "busy marker",
    "marked",
    "unreadable",
    "unknown",
    "freed again",
    "taken again",
    "earlier send taken up",
    "throttled",
    "unavailable",
    "renewed",
    "not renewed",
    "renewal in doubt",
    "released",
    "not released",
    "done",
    "finished",
    "not finished",
    "raised",
    "raised in two requests",
    "not raised",
    "revoked",
    "not revoked",
    "read",
    "foreign: new",
    "foreign: released",
    "foreign: expired",
    "foreign: heartbeat",
    "foreign: deleted",
    "foreign: kept",
    "foreign: refused",
];

#[derive(Default)]
struct Tally {
    seen: BTreeMap<&'static str, u32>,
    requests: u32,
}

impl Tally {
    fn count(&mut self, what: &'static str) {
        debug_assert!(SOMETIMES.contains(&what), "{what}");
        *self.seen.entry(what).or_default() += 1;
    }

    fn outcome(&mut self, op: &Op, form: &Form, outcome: &Outcome) {
        if matches!(form, Form::Undo(_)) && matches!(outcome, Outcome::NotApplied(_)) {
            self.count("freed again");
        }
        if matches!(form, Form::Keep(_)) {
            self.count("earlier send taken up");
        }
        let what = match (op, outcome) {
            (_, Outcome::Unknown(_)) => "unknown",
            (_, Outcome::NotApplied(Refusal::Throttled(_))) => "throttled",
            (_, Outcome::NotApplied(Refusal::Unavailable(_))) => {
                if matches!(form, Form::Undo(_)) {
                    "busy marker"
                } else {
                    "unavailable"
                }
            }
            (_, Outcome::NotApplied(Refusal::Denied(denial))) => match denial.kind {
                DenialKind::TokensExhausted => "tokens used up",
                DenialKind::Membership => "a stranger",
                DenialKind::Schema | DenialKind::CorruptRecord => "unreadable",
                other @ (DenialKind::Permission | DenialKind::StorageFull | DenialKind::Other) => panic!("{other:?}"),
            },
            (Op::Acquire(op), Outcome::Applied(Applied::Acquired { counter })) => {
                if op.expect.is_some() {
                    self.count("taken over");
                }
                if *counter == op.floor { "granted at the floor" } else { "granted one above" }
            }
            (Op::Acquire(_), Outcome::Applied(Applied::AcquiredInDoubt { .. })) => "granted in doubt",
            (Op::Acquire(op), Outcome::NotApplied(Refusal::Conflict(seen))) => {
                if *form == Form::Step {
                    self.count("refused in the second form");
                }
                let own = seen.holding.as_ref().is_some_and(|holding| holding.is_of(&op.nonce));
                if own { "refused by its own row" } else { "refused" }
            }
            (Op::Acquire(_), Outcome::NotApplied(Refusal::Abstains { .. })) => "abstains",
            (Op::Renew(_), Outcome::Applied(_)) => "renewed",
            (Op::Renew(_), Outcome::NotApplied(Refusal::Abstains { .. })) => "renewal in doubt",
            (Op::Renew(_), Outcome::NotApplied(_)) => "not renewed",
            (Op::Release(_), Outcome::Applied(_)) => "released",
            (Op::Release(_), Outcome::NotApplied(_)) => "not released",
            (Op::Acquire(_), Outcome::NotApplied(Refusal::Done(_))) => "done",
            (Op::Finish(_), Outcome::Applied(_)) => "finished",
            (Op::Finish(_), Outcome::NotApplied(_)) => "not finished",
            (Op::Raise(_), Outcome::Applied(_)) if *form == Form::Step => "raised in two requests",
            (Op::Raise(_), Outcome::Applied(_)) => "raised",
            (Op::Raise(_), Outcome::NotApplied(_)) => "not raised",
            (Op::Revoke(_), Outcome::Applied(_)) => "revoked",
            (Op::Revoke(_), Outcome::NotApplied(_)) => "not revoked",
            (Op::Read, Outcome::Applied(Applied::Read(_))) => "read",
            (op, outcome) => panic!("{op:?} ends as {outcome:?}"),
        };
        self.count(what);
    }

    fn foreign(&mut self, act: &ForeignAct, answer: &ForeignAnswer) {
        self.count(match (act, answer) {
            (_, ForeignAnswer::Refused) => "foreign: refused",
            (ForeignAct::AcquireNew { .. }, _) => "foreign: new",
            (ForeignAct::AcquireReleased { .. }, _) => "foreign: released",
            (ForeignAct::AcquireExpired { .. }, _) => "foreign: expired",
            (ForeignAct::Heartbeat { .. }, _) => "foreign: heartbeat",
            (ForeignAct::ReleaseDelete { .. }, _) => "foreign: deleted",
            (ForeignAct::ReleaseKeep { .. }, _) => "foreign: kept",
            (ForeignAct::Read, _) => "read",
        });
    }
}

/// Shows what was done last, if the test fails meanwhile.
struct Story {
    seed: u64,
    steps: Vec<Step>,
}

impl Drop for Story {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let from = self.steps.len().saturating_sub(SHOWN);
            eprintln!("seed {}, step {}; what was done last:", self.seed, self.steps.len());
            self.steps[from..].iter().for_each(|step| eprintln!("  {step:?}"));
        }
    }
}

fn run(server: &Server, seed: u64, tally: &mut Tally) {
    let (mut pair, mut dice) = (Pair::new(server, seed), Dice::new(seed));
    let mut story = Story { seed, steps: Vec::new() };
    for _ in 0..STEPS {
        let step = dice.step(|resource| pair.known(resource));
        story.steps.push(step.clone());
        take(&mut pair, &mut dice, step, tally);
    }
    pair.compare_all();
}

fn take(pair: &mut Pair, dice: &mut Dice, step: Step, tally: &mut Tally) {
    match step {
        Step::Ask { resource, op, fates, between } => {
            let mut both = pair.begin(&resource, &op);
            let mut between = between.into_iter();
            for fate in fates {
                tally.requests += 1;
                let undone = pair.undone(&resource).filter(|nonce| op.nonce() == Some(*nonce));
                let answer = pair.advance(&mut both, fate);
                if matches!(op, Op::Acquire(_)) && undone.is_some() && pair.undone(&resource).is_none() {
                    tally.count("taken again");
                }
                if let Some((form, outcome)) = answer {
                    tally.outcome(&op, &form, &outcome);
                    return pair.compare(&resource);
                }
                if matches!(both.form(), Form::Mark(_)) {
                    tally.count("marked");
                }
                if let Some(step) = between.next() {
                    take(pair, dice, step, tally);
                }
            }
            panic!("more requests than any operation takes: {op:?}");
        }
        Step::Foreign { resource, act } => {
            let answer = pair.foreign(&resource, &act);
            tally.foreign(&act, &answer);
            if let ForeignAnswer::Held(mark) = answer {
                dice.held(&resource, mark);
            }
            pair.compare(&resource);
        }
        Step::Evict(resource) => {
            pair.evict(&resource);
            pair.compare(&resource);
        }
        Step::Delete(resource) => {
            pair.delete(&resource);
            pair.compare(&resource);
        }
        Step::Obscure(resource) => {
            pair.obscure(&resource);
            pair.compare(&resource);
        }
        Step::Wipe => {
            pair.wipe();
            pair.compare_all();
        }
        Step::Mark(marker) => pair.mark(marker.as_ref()),
    }
}

#[test]
fn dynamodb_model_agrees_with_a_real_table() {
    let seeds = std::env::var("LEASEHOLD_SEEDS").map_or(SEEDS, |text| text.parse().expect("a number of seeds"));
    let (server, mut tally) = (Server::shared(), Tally::default());
    for seed in 0..seeds {
        run(&server, seed, &mut tally);
    }
    println!("{} requests; {:?}", tally.requests, tally.seen);
    if seeds >= SEEDS {
        let never: Vec<_> = SOMETIMES.iter().filter(|what| !tally.seen.contains_key(*what)).collect();
        assert!(never.is_empty(), "never seen: {never:?}");
    }
}
