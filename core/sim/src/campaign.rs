//! Many seeds, on all cores, and what they add up to.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::counts::Counts;
use crate::promise::Promise;
use crate::swarm::Broken;
use crate::trial::{self, Trial};

/// Which seeds to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// From the first to before the second.
    Seeds(u64, u64),
    /// From 0 on, for so long.
    Time(Duration),
}

/// What came of them.
#[derive(Debug, Default)]
pub struct Outcome {
    /// How many seeds ran; each of them twice.
    pub seeds: u64,
    /// What happened, all together.
    pub counts: Counts,
    /// Runs in which a promise that was due was broken, or that differed when repeated; the lowest seeds first.
    pub failures: Vec<Trial>,
    /// The lowest seed that broke a promise of which the ground had been taken away, for each promise.
    pub expected: Vec<(Promise, u64)>,
}

/// Failures that are kept, and after which no new seed is begun.
const ENOUGH: usize = 5;

/// Runs them all, unless enough of them fail.
pub fn run(extent: Extent, broken: Option<Broken>) -> Outcome {
    let (first, end, until) = match extent {
        Extent::Seeds(first, end) => (first, end, None),
        Extent::Time(time) => (0, u64::MAX, Some(Instant::now() + time)),
    };
    let (next, stop, outcome) = (AtomicU64::new(first), AtomicBool::new(false), Mutex::new(Outcome::default()));
    let work = || {
        let mut mine = Outcome::default();
        while !stop.load(Ordering::Relaxed) && until.is_none_or(|until| Instant::now() < until) {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= end {
                break;
            }
            let trial = trial::seed(seed, broken);
            mine.seeds += 1;
            mine.counts.add(&trial.counts);
            for violation in &trial.expected {
                if !mine.expected.iter().any(|(promise, _)| *promise == violation.promise) {
                    mine.expected.push((violation.promise, seed));
                }
            }
            if !trial.passed() {
                mine.failures.push(trial);
                stop.store(mine.failures.len() >= ENOUGH, Ordering::Relaxed);
            }
        }
        if let Ok(mut outcome) = outcome.lock() {
            outcome.merge(mine);
        }
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(work);
        }
    });
    let mut outcome = outcome.into_inner().unwrap_or_default();
    outcome.failures.sort_by_key(|trial| trial.script.seed);
    outcome.expected.sort_unstable();
    outcome
}

impl Outcome {
    fn merge(&mut self, other: Self) {
        self.seeds += other.seeds;
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
