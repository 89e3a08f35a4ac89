//! The model of Redis against a real one: the same random operations on both, and everything that can be seen compared.
//!
//! The real one is spoken to as clients do, so that the scripts, their replies and the decoder are tested too. Its
//! clock is moved, and nothing sleeps. `LEASEHOLD_SEEDS` sets how many runs there are.

mod dice;
mod pair;
pub(crate) mod wire;

use std::collections::BTreeMap;

use leasehold_core::Token;
use leasehold_core::op::{Applied, DenialKind, LockOp, Op, Outcome, Refusal};
use leasehold_servers::redis::Server;
use leasehold_sim::store::{By, ForeignAct, ForeignAnswer};

use dice::{Dice, Known, NAMES, Step, named};
use pair::{Pair, Stalled};

const SEEDS: u64 = 32;
const STEPS: usize = 150;
/// Steps of a failed run that are shown.
const SHOWN: usize = 12;

/// Situations that a run must meet to prove anything.
const SOMETIMES: [&str; 24] = [
    "granted",
    "granted at the server's time",
    "granted at the floor",
    "granted one above",
    "granted again",
    "refused for one of ours",
    "refused for a foreign client",
    "tokens used up",
    "renewed",
    "renewed and refused in one request",
    "not renewed",
    "released",
    "not released",
    "done",
    "finished",
    "not finished",
    "raised",
    "not raised",
    "revoked",
    "not revoked",
    "foreign lock taken",
    "foreign lock lengthened",
    "record run out",
    "counter forgotten",
];

#[derive(Default)]
struct Tally {
    seen: BTreeMap<&'static str, u32>,
    stalled: u32,
    steps: u32,
}

impl Tally {
    fn count(&mut self, what: &'static str) {
        debug_assert!(SOMETIMES.contains(&what), "{what}");
        *self.seen.entry(what).or_default() += 1;
    }

    fn outcome(&mut self, LockOp { op, .. }: &LockOp, outcome: &Outcome, before: &Before) {
        match (op, outcome) {
            (Op::Acquire(op), Outcome::Applied(Applied::Acquired { .. }))
                if before.holder == Some(By::Attempt(op.nonce)) =>
            {
                self.count("granted again");
            }
            (Op::Acquire(op), Outcome::Applied(Applied::Acquired { counter })) => {
                self.count("granted");
                if *counter == op.floor {
                    self.count("granted at the floor");
                } else if before.counter.and_then(Token::next) == Some(*counter) {
                    self.count("granted one above");
                } else {
                    self.count("granted at the server's time");
                }
            }
            (Op::Acquire(_), Outcome::NotApplied(Refusal::Conflict(_))) => {
                let foreign = matches!(before.holder, Some(By::Foreign(_)));
                self.count(if foreign { "refused for a foreign client" } else { "refused for one of ours" });
            }
            (Op::Acquire(_), Outcome::NotApplied(Refusal::Denied(denial))) => {
                assert_eq!(denial.kind, DenialKind::TokensExhausted);
                self.count("tokens used up");
            }
            (Op::Renew(_), Outcome::Applied(_)) => self.count("renewed"),
            (Op::Release(_), Outcome::Applied(_)) => self.count("released"),
            (Op::Raise(_), Outcome::Applied(_)) => self.count("raised"),
            (Op::Renew(_), Outcome::NotApplied(_)) => self.count("not renewed"),
            (Op::Release(_), Outcome::NotApplied(_)) => self.count("not released"),
            (Op::Acquire(_), Outcome::NotApplied(Refusal::Done(_))) => self.count("done"),
            (Op::Finish(_), Outcome::Applied(_)) => self.count("finished"),
            (Op::Finish(_), Outcome::NotApplied(_)) => self.count("not finished"),
            (Op::Raise(_), Outcome::NotApplied(_)) => self.count("not raised"),
            (Op::Revoke(_), Outcome::Applied(_)) => self.count("revoked"),
            (Op::Revoke(_), Outcome::NotApplied(_)) => self.count("not revoked"),
            (Op::Read, Outcome::Applied(Applied::Read(_))) => {}
            (op, outcome) => panic!("{op:?} ends as {outcome:?}"),
        }
    }
}

/// The state of a resource before a step.
struct Before {
    holder: Option<By>,
    counter: Option<Token>,
}

impl Before {
    fn of(pair: &Pair<'_>) -> Vec<Self> {
        let before = |name: &&str| {
            let resource = named(name);
            Self { holder: pair.holder(&resource), counter: pair.counter(&resource) }
        };
        NAMES.iter().map(before).collect()
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
    let mut now_ms = pair.clear();
    let mut stalled = false;
    for _ in 0..STEPS {
        if stalled {
            // A busy machine spoils a step, not the run.
            tally.stalled += 1;
            pair.wipe();
        }
        let step = dice.step(now_ms, |resource| {
            let holder = match pair.holder(resource) {
                Some(By::Attempt(nonce)) => Some(nonce),
                Some(By::Foreign(_)) | None => None,
            };
            Known { counter: pair.counter(resource), holder }
        });
        story.steps.push(step.clone());
        tally.steps += 1;
        stalled = take(&mut pair, &mut dice, &step, tally).is_err();
        now_ms = pair.clear();
    }
}

fn take(pair: &mut Pair<'_>, dice: &mut Dice, step: &Step, tally: &mut Tally) -> Result<(), Stalled> {
    let before = Before::of(pair);
    match step {
        Step::Pass { ms } => pair.move_clock(*ms),
        Step::SetBack { ms } => {
            // Records that have run out must be gone from both: the server removes them at a time of its choice.
            pair.clear();
            pair.compare()?;
            pair.move_clock(-ms);
        }
        Step::Ask(_) | Step::Foreign { .. } | Step::Evict(_) | Step::Wipe | Step::ForgetScripts => {}
    }
    pair.clear();
    match step {
        Step::Ask(ops) => {
            let before = Before::of(pair);
            let outcomes = pair.ask(ops)?;
            let (mut renewed, mut refused) = (false, false);
            for (op, outcome) in ops.iter().zip(&outcomes) {
                let at = NAMES.iter().position(|name| *name == op.resource.as_str()).expect("one of these");
                tally.outcome(op, outcome, &before[at]);
                renewed |= matches!(outcome, Outcome::Applied(Applied::Renewed));
                refused |= matches!((&op.op, outcome), (Op::Renew(_), Outcome::NotApplied(_)));
            }
            if renewed && refused {
                tally.count("renewed and refused in one request");
            }
        }
        Step::Foreign { resource, act, guise } => match pair.foreign(resource, act, *guise)? {
            ForeignAnswer::Held(mark) => {
                let taken = matches!(act, ForeignAct::AcquireNew { .. });
                tally.count(if taken { "foreign lock taken" } else { "foreign lock lengthened" });
                dice.held(resource, mark, *guise);
            }
            ForeignAnswer::Released | ForeignAnswer::Refused | ForeignAnswer::Read(_) => {}
        },
        Step::Evict(resource) => pair.evict(resource),
        Step::Wipe => pair.wipe(),
        Step::ForgetScripts => {
            pair.wire.call(&[b"SCRIPT", b"FLUSH"]);
        }
        Step::Pass { .. } | Step::SetBack { .. } => {}
    }
    pair.compare()?;
    if matches!(step, Step::Pass { .. }) {
        for (before, after) in before.iter().zip(Before::of(pair)) {
            if before.holder.is_some() && after.holder.is_none() {
                tally.count("record run out");
            }
            if before.counter.is_some() && after.counter.is_none() {
                tally.count("counter forgotten");
            }
        }
    }
    Ok(())
}

#[test]
fn redis_model_agrees_with_a_real_server() {
    let seeds = std::env::var("LEASEHOLD_SEEDS").map_or(SEEDS, |text| text.parse().expect("a number of seeds"));
    let server = Server::builder().with_clock_offset().start();
    let mut tally = Tally::default();
    for seed in 0..seeds {
        run(&server, seed, &mut tally);
    }
    println!("{} steps, {} spoiled; {:?}", tally.steps, tally.stalled, tally.seen);
    if seeds >= SEEDS {
        let never: Vec<_> = SOMETIMES.iter().filter(|what| !tally.seen.contains_key(*what)).collect();
        assert!(never.is_empty(), "never seen: {never:?}, with {} of {} steps spoiled", tally.stalled, tally.steps);
    }
}
