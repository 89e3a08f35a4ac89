//! The table of `cargo xtask chaos cron`.

use std::path::Path;

use super::{Counts, Manner, play};
use crate::Result;
use crate::chaos::environment::StoreKind;

const COLUMNS: [&str; 16] = [
    "store",
    "as",
    "killed",
    "stopped",
    "begun more than once",
    "finished once",
    "finished again",
    "written again",
    "refused by the guard",
    "lost",
    "unconfirmed",
    "store not reached",
    "marked",
    "given up",
    "of these early",
    "result missing",
];

/// Plays the keys on each store, as runs and under locks, and prints what became of them.
///
/// # Errors
/// When a key was not done, or finished twice as a run.
pub fn show(stores: &[StoreKind], keys: u64, seed: u64, folder: &Path) -> Result {
    println!("Eight processes, with clocks up to 3 s apart, start a job in each of {keys} keys; seed {seed}.\n");
    println!("| {} |\n|---|---|{}", COLUMNS.join(" | "), "---:|".repeat(COLUMNS.len() - 2));
    let mut broken = Vec::new();
    for store in stores {
        for manner in Manner::ALL {
            let folder = folder.join(format!("{}-{}", store.name(), manner.name()));
            let counts = play(*store, manner, keys, seed, &folder)?;
            println!("| {} | {} | {} |", store.name(), manner.name(), numbers(&counts, manner));
            let why = match manner {
                Manner::Runs => counts.broken(),
                Manner::Attempts => counts.broken_by_attempts(),
                Manner::Locks => None,
            };
            broken.extend(why.map(|why| format!("{} as {}: {why}", store.name(), manner.name())));
        }
    }
    if broken.is_empty() { Ok(()) } else { Err(broken.join("\n       ").into()) }
}

fn numbers(counts: &Counts, manner: Manner) -> String {
    let of_runs = [counts.marked, counts.given_up, counts.given_up_early, counts.missing];
    let of_runs = of_runs.map(|count| if manner == Manner::Locks { "-".to_owned() } else { count.to_string() });
    let numbers = [
        counts.kills,
        counts.stops,
        counts.begun_again,
        counts.finished_once,
        counts.finished_again,
        counts.written_again,
        counts.refused,
        counts.lost,
        counts.unconfirmed,
        counts.unavailable,
    ];
    numbers.iter().map(u64::to_string).chain(of_runs).collect::<Vec<_>>().join(" | ")
}
