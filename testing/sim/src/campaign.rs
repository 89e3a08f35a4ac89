//! Many seeds, on all cores, and the sum of their results.

use std::panic::catch_unwind;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::counts::Counts;
use crate::promise::Promise;
use crate::swarm::Lot;
use crate::trial::{self, Trial};

/// The seeds to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// The seeds from the first to before the second.
    Seeds(u64, u64),
    /// The seeds from one on, for some time.
    Time {
        /// The first.
        from: u64,
        /// After this no new seed is begun.
        time: Duration,
    },
}

/// The result of a campaign.
#[derive(Debug, Default)]
pub struct Outcome {
    /// The number of seeds that ran, each of them twice.
    pub seeds: u64,
    /// The counts of all runs.
    pub counts: Counts,
    /// Runs in which a promise that was due was broken, or that differed when repeated; the lowest seeds first.
    pub failures: Vec<Trial>,
    /// The lowest seed that broke a promise of which the ground had been taken away, for each promise.
    pub expected: Vec<(Promise, u64)>,
    /// Seeds in which nodes forgot tokens while wall clocks were off.
    pub forgot: u64,
}

/// Failures that are kept, and after which no new seed is begun.
const ENOUGH: u64 = 5;

/// Runs them all, unless enough of them fail.
pub fn run(extent: Extent, lot: Lot) -> Outcome {
    let (first, end, until) = match extent {
        Extent::Seeds(first, end) => (first, end, None),
        Extent::Time { from, time } => (from, u64::MAX, Some(Instant::now() + time)),
    };
    let (next, failed) = (AtomicU64::new(first), AtomicU64::new(0));
    let (stop, outcome) = (AtomicBool::new(false), Mutex::new(Outcome::default()));
    let work = || {
        let mut mine = Outcome::default();
        while !stop.load(Ordering::Relaxed) && until.is_none_or(|until| Instant::now() < until) {
            let Some(seed) = take(&next, end) else { break };
            let trial = trial::seed(seed, lot);
            mine.seeds += 1;
            mine.counts.add(&trial.counts);
            mine.forgot += u64::from(trial.forgot);
            for violation in &trial.expected {
                if !mine.expected.iter().any(|(promise, _)| *promise == violation.promise) {
                    mine.expected.push((violation.promise, seed));
                }
            }
            if !trial.passed() {
                mine.failures.push(trial);
                if failed.fetch_add(1, Ordering::Relaxed) + 1 >= ENOUGH {
                    stop.store(true, Ordering::Relaxed);
                }
            }
        }
        if let Ok(mut outcome) = outcome.lock() {
            outcome.merge(mine);
        }
    };
    on_all_cores(work);
    let mut outcome = outcome.into_inner().unwrap_or_default();
    outcome.failures.sort_by_key(|trial| trial.script.seed);
    outcome.expected.sort_unstable();
    outcome
}

/// The first failure among many seeds.
#[derive(Debug)]
pub struct First {
    /// The seed, the lowest that fails, however many threads looked for it.
    pub seed: u64,
    /// The trial; `None` if the run ended in a panic.
    pub trial: Option<Box<Trial>>,
}

/// Runs seeds from `first` to before `end` until one fails; what happened in them, if none does.
///
/// # Errors
/// The lowest seed that fails.
pub fn first(first: u64, end: u64, lot: Lot) -> Result<Counts, First> {
    // Seeds are handed out in order, so once every thread is past the lowest that failed, none below it is left.
    let (next, lowest, found) = (AtomicU64::new(first), AtomicU64::new(end), Mutex::new((Counts::default(), None)));
    let work = || {
        let mut counts = Counts::default();
        while let Some(seed) = take(&next, lowest.load(Ordering::Relaxed)) {
            let trial = catch_unwind(|| Box::new(trial::seed(seed, lot))).ok();
            if let Some(trial) = trial.as_ref().filter(|trial| trial.passed()) {
                counts.add(&trial.counts);
            } else if lowest.fetch_min(seed, Ordering::Relaxed) > seed
                && let Ok(mut found) = found.lock()
                && found.1.as_ref().is_none_or(|known: &First| known.seed > seed)
            {
                found.1 = Some(First { seed, trial });
            }
        }
        if let Ok(mut found) = found.lock() {
            found.0.add(&counts);
        }
    };
    on_all_cores(work);
    let (counts, failure) = found.into_inner().unwrap_or_default();
    failure.map_or(Ok(counts), Err)
}

/// The next seed below the end.
fn take(next: &AtomicU64, end: u64) -> Option<u64> {
    next.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |seed| (seed < end).then(|| seed + 1)).ok()
}

fn on_all_cores(work: impl Fn() + Sync) {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(&work);
        }
    });
}

impl Outcome {
    fn merge(&mut self, other: Self) {
        self.seeds += other.seeds;
        self.forgot += other.forgot;
        self.counts.add(&other.counts);
        self.failures.extend(other.failures);
        for (promise, seed) in other.expected {
            match self.expected.iter_mut().find(|(known, _)| *known == promise) {
                Some((_, lowest)) => *lowest = seed.min(*lowest),
                None => self.expected.push((promise, seed)),
            }
        }
    }
}
