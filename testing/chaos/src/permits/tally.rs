//! The journals of the workers, by permit, and what they show.

use std::fmt;

use serde_json::Value;

use crate::chaos::check::{duplicates, overlaps};
use crate::chaos::journal::{Entry, Event, Journal};
use crate::chaos::timeline::{Lease, leases};

/// The lines of the workers so far, by process and permit.
#[derive(Default)]
pub struct Tally {
    /// By process and by permit: the tokens of one permit say nothing of another one's.
    journals: Vec<Vec<Journal>>,
    errors: u64,
    kills: u64,
    /// The times a worker was stopped.
    pub stops: u64,
    /// The faults of the store and of the ways to it.
    pub store_faults: u64,
    /// A line that no worker writes.
    strange: Option<String>,
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
        self.journals.push(Vec::new());
        self.journals.len() - 1
    }

    /// Takes a line of a process.
    pub fn hear(&mut self, process: usize, line: &str) {
        let value: Value = serde_json::from_str(line).unwrap_or_default();
        let permit = value["permit"].as_u64().and_then(|permit| usize::try_from(permit).ok());
        match (Entry::parse(line), permit) {
            (Ok(Entry { event: Event::Failed { .. }, .. }), None) => self.errors += 1,
            (Ok(entry), Some(permit)) => {
                let own = &mut self.journals[process];
                while own.len() <= permit {
                    own.push(Journal { worker: format!("worker-{process}"), ..Journal::default() });
                }
                own[permit].entries.push(entry);
            }
            (Ok(_) | Err(_), _) => self.strange = Some(line.to_owned()),
        }
    }

    /// Notes that a process was killed.
    pub fn end(&mut self, process: usize, at: u64) {
        self.kills += 1;
        self.journals[process].iter_mut().for_each(|journal| journal.ended = at);
    }

    /// Compares the journals with the promises of a semaphore.
    pub fn counts(&self, permits: usize) -> Counts {
        let mut counts = Counts {
            permits,
            errors: self.errors,
            kills: self.kills,
            stops: self.stops,
            store_faults: self.store_faults,
            strange: self.strange.clone(),
            ..Counts::default()
        };
        let mut all = Vec::new();
        for permit in 0..self.journals.iter().map(Vec::len).max().unwrap_or_default() {
            let journals: Vec<_> = self.journals.iter().filter_map(|own| own.get(permit).cloned()).collect();
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
