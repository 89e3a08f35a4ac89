//! The journals of the workers, by permit, and what they show.

use std::fmt;

use crate::chaos::by_lock::Journals;
use crate::chaos::check::{duplicates, overlaps};
use crate::chaos::timeline::{Lease, leases};

/// The lines of the workers so far, by process and permit.
#[derive(Default)]
pub struct Tally {
    /// By process and by permit.
    journals: Journals,
    kills: u64,
    /// The times a worker was stopped.
    pub stops: u64,
    /// The faults of the store and of the ways to it.
    pub store_faults: u64,
}

/// The result.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// The permits that were granted.
    pub grants: u64,
    /// The most processes that believed at the same instant that they hold a permit.
    pub most_at_once: usize,
    /// The number of permits.
    pub permits: usize,
    /// Two processes that believed at once that they hold the same permit.
    pub overlaps: Vec<String>,
    /// Tokens of one permit that were granted twice.
    pub duplicates: u64,
    /// Permits that were lost, as their holders were told.
    pub losses: u64,
    errors: u64,
    kills: u64,
    stops: u64,
    store_faults: u64,
    strange: Option<String>,
}

impl Tally {
    /// A new process; the answer is its number.
    pub fn open(&mut self) -> usize {
        let worker = format!("worker-{}", self.journals.processes());
        self.journals.open(worker, 0)
    }

    /// Takes a line of a process.
    pub fn hear(&mut self, process: usize, line: &str) {
        self.journals.hear(process, line);
    }

    /// Notes that a process was killed.
    pub fn end(&mut self, process: usize, at: u64) {
        self.kills += 1;
        self.journals.end(process, at);
    }

    /// Compares the journals with the promises of a semaphore.
    pub fn counts(&self, permits: usize) -> Counts {
        let mut counts = Counts {
            permits,
            errors: self.journals.errors,
            kills: self.kills,
            stops: self.stops,
            store_faults: self.store_faults,
            strange: self.journals.strange.clone(),
            ..Counts::default()
        };
        let mut all = Vec::new();
        for (permit, journals) in self.journals.by_lock().into_iter().enumerate() {
            let held = leases(&journals);
            counts.overlaps.extend(overlaps(&held).into_iter().map(|what| format!("of permit {permit}, {what}")));
            counts.duplicates += duplicates(&held);
            all.extend(held);
        }
        counts.grants = all.len() as u64;
        counts.losses = all.iter().filter(|lease| lease.notified.is_some() || lease.lost.is_some()).count() as u64;
        counts.most_at_once = most_at_once(&all);
        counts
    }
}

/// The most leases that were believed in at the same instant. One ends before another begins at that instant.
fn most_at_once(leases: &[Lease]) -> usize {
    let believed = leases.iter().filter(|lease| lease.granted < lease.ends());
    let mut changes: Vec<(u64, isize)> = believed.flat_map(|lease| [(lease.granted, 1), (lease.ends(), -1)]).collect();
    changes.sort_unstable();
    let running = changes.iter().scan(0, |count, (_, change)| {
        *count += change;
        Some(*count)
    });
    running.max().unwrap_or_default().unsigned_abs()
}

impl Counts {
    /// The promises that were not kept, and the reasons why the run proves nothing, in words.
    pub fn broken(&self) -> Vec<String> {
        let Self { most_at_once, permits, duplicates, overlaps, .. } = self;
        let mut broken = Vec::new();
        if most_at_once > permits {
            broken.push(format!("{most_at_once} held one of {permits} permits at once"));
        }
        if *duplicates > 0 {
            broken.push(format!("{duplicates} tokens were granted twice"));
        }
        broken.extend(overlaps.first().map(|first| format!("{} times two held one permit: {first}", overlaps.len())));
        broken.extend(self.strange.as_ref().map(|line| format!("a worker told: {line}")));
        if most_at_once < permits {
            broken
                .push(format!("no more than {most_at_once} of {permits} permits were held at once: run it for longer"));
        }
        broken
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { grants, most_at_once, duplicates, losses, errors, kills, stops, store_faults, .. } = self;
        let overlaps = self.overlaps.len();
        write!(
            f,
            "{grants} | {most_at_once} | {overlaps} | {duplicates} | {losses} | {errors} | {kills} | {stops} | {store_faults}"
        )
    }
}
