//! Many sequences on one store, each on a new one, up to the first difference.

use std::io::Write;

use crate::allowed::{Used, table};
use crate::run::{Failure, Run, Side};
use crate::script::{Abilities, Step, script};
use crate::shrink::shrink;

/// Steps of a sequence.
const STEPS: u32 = 120;

/// The figures of a store that is the reference, but for what the table allows.
#[derive(Debug)]
pub struct Measured {
    /// Its name.
    pub store: String,
    /// How many sequences were run.
    pub sequences: usize,
    /// How many operations were sent.
    pub steps: u64,
    /// The rows that were needed.
    pub used: Used,
}

/// A difference.
#[derive(Debug)]
pub struct Disagreement {
    /// The store, the seed, the script and the difference, for people.
    pub text: String,
    /// The script, as short as it can be.
    pub script: Vec<Step>,
    /// The difference.
    pub failure: Failure,
}

/// How many sequences, with which of the seeds: `LEASEHOLD_DIFFERENTIAL=FACTOR` for the long run, `LEASEHOLD_SEED=SEED` for one.
pub fn seeds(few: u64) -> Vec<u64> {
    let number = |name| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    match (number("LEASEHOLD_SEED"), number("LEASEHOLD_DIFFERENTIAL")) {
        (Some(seed), _) => vec![seed],
        (None, factor) => (0..few * factor.unwrap_or(1)).collect(),
    }
}

/// Runs one script on a new store.
///
/// # Errors
/// The first difference.
pub fn follow(script: &[Step], side: &mut dyn Side) -> Result<(), Failure> {
    Run::new(side, &table(), &mut Used::new()).all(script)
}

/// Runs the sequences of these seeds.
///
/// # Errors
/// The first difference.
pub fn measure<'a>(
    seeds: &[u64],
    abilities: Abilities,
    new: impl Fn() -> Box<dyn Side + 'a>,
) -> Result<Measured, Box<Disagreement>> {
    let (table, mut used, mut steps) = (table(), Used::new(), 0);
    let run = |script: &[Step], used: &mut Used| -> (u64, Option<Failure>) {
        let mut side = new();
        let mut run = Run::new(&mut *side, &table, used);
        let failure = run.all(script).err();
        (run.steps, failure)
    };
    let store = new().store().to_owned();
    for seed in seeds {
        let whole = script(*seed, STEPS, abilities);
        let (asked, failure) = run(&whole, &mut used);
        steps += asked;
        if let Some(failure) = failure {
            let (script, failure) = shrink(&whole, failure, |script| run(script, &mut Used::new()).1);
            let shown: String = script.iter().map(|step| format!("{step:?}\n")).collect();
            let text = format!("{store} is not the reference, seed {seed} (LEASEHOLD_SEED={seed}):\n{shown}{failure}");
            return Err(Box::new(Disagreement { text, script, failure }));
        }
    }
    Ok(Measured { store, sequences: seeds.len(), steps, used })
}

impl Measured {
    /// The figures, and each row with how often it was needed.
    pub fn report(&self) -> String {
        let Self { store, sequences, steps, used } = self;
        let allowed: u64 = used.values().sum();
        let mut text =
            format!("DIFFERENTIAL {store}: {sequences} sequences, {steps} steps, 0 differences, {allowed} allowed\n");
        for (row, times) in used {
            text += &format!("ALLOWED {store}: {times} {} | {} | {} | {}\n", row.stores, row.step, row.field, row.rule);
        }
        text
    }

    /// Writes down which rows were needed, where `LEASEHOLD_ALLOWED` names a file: one that no store needs has to go.
    ///
    /// # Panics
    /// The file cannot be written.
    pub fn note(&self) {
        let Some(path) = std::env::var_os("LEASEHOLD_ALLOWED") else { return };
        let text: String = self.used.keys().map(|row| format!("{} {}\n", self.store, row.text)).collect();
        let file = std::fs::File::options().append(true).create(true).open(path);
        file.and_then(|mut file| file.write_all(text.as_bytes())).expect("LEASEHOLD_ALLOWED can be written");
    }
}
