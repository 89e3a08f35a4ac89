//! When workers did not run, and who says so: never the worker itself, which may be what is at fault.

use std::collections::BTreeMap;

use super::blows::{Blow, Kind, Target};

/// From when until when, in nanoseconds.
pub type Span = (u64, u64);

/// What kept workers from running.
#[derive(Debug)]
pub struct Pauses<'a> {
    /// They were stopped.
    stopped: BTreeMap<&'a str, Vec<Span>>,
    /// The machine did not wake somebody who had asked for it.
    stalls: &'a [Span],
    /// For how long in all somebody had waited for a processor at an instant, as the kernel counts it.
    pressure: &'a [(u64, u64)],
}

impl<'a> Pauses<'a> {
    pub fn of(blows: &'a [Blow], stalls: &'a [Span], pressure: &'a [(u64, u64)]) -> Self {
        let mut stopped: BTreeMap<&str, Vec<Span>> = BTreeMap::new();
        for blow in blows {
            if let (Kind::Stop, Target::Worker(name)) = (blow.kind, &blow.target) {
                stopped.entry(name).or_default().push((blow.from, blow.to));
            }
        }
        stopped.values_mut().for_each(|stops| stops.sort_unstable());
        Self { stopped, stalls, pressure }
    }

    /// For how long a worker could run between these instants.
    pub fn ran(&self, worker: &str, from: u64, to: u64) -> u64 {
        self.between_stops(worker, from, to).into_iter().map(|(from, to)| (to - from) - self.starved(from, to)).sum()
    }

    /// For how long nobody had stopped a worker between these instants.
    pub fn not_stopped(&self, worker: &str, from: u64, to: u64) -> u64 {
        self.between_stops(worker, from, to).into_iter().map(|(from, to)| to - from).sum()
    }

    fn between_stops(&self, worker: &str, from: u64, to: u64) -> Vec<Span> {
        without((from, to), self.stopped.get(worker).map(Vec::as_slice).unwrap_or_default())
    }

    /// For how long nobody could be sure to run between these instants, though nobody was stopped.
    fn starved(&self, from: u64, to: u64) -> u64 {
        self.stalled(from, to).max(self.waited(from, to))
    }

    /// For how long the machine woke nobody between these instants.
    pub fn stalled(&self, from: u64, to: u64) -> u64 {
        let within = |(start, end): &Span| (*end).min(to).saturating_sub((*start).max(from));
        self.stalls.iter().map(within).sum::<u64>().min(to - from)
    }

    /// For how long somebody waited for a processor between these instants; 0 where the kernel does not say.
    pub fn waited(&self, from: u64, to: u64) -> u64 {
        let before = self.pressure[..self.pressure.partition_point(|(at, _)| *at <= from)].last();
        let after = self.pressure.get(self.pressure.partition_point(|(at, _)| *at < to)).or(self.pressure.last());
        match (before, after) {
            (Some((_, before)), Some((_, after))) => after.saturating_sub(*before).min(to - from),
            _ => 0,
        }
    }

    /// The longest that the machine woke nobody.
    pub fn longest_stall(&self) -> u64 {
        self.stalls.iter().map(|(from, to)| to - from).max().unwrap_or(0)
    }
}

/// What is left of a span outside of others, which are in order.
fn without((mut from, to): Span, others: &[Span]) -> Vec<Span> {
    let mut left = Vec::new();
    for (start, end) in others.iter().filter(|(start, _)| *start < to) {
        if from < *start {
            left.push((from, *start));
        }
        from = from.max(*end);
    }
    if from < to {
        left.push((from, to));
    }
    left
}
