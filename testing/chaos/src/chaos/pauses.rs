//! Times in which workers did not run. A worker's own word does not count here, because it may be at fault.

use std::collections::BTreeMap;

use super::faults::{Fault, Kind, Target};

/// The start and the end of a span, in nanoseconds.
pub type Span = (u64, u64);

/// All that kept workers from running.
#[derive(Debug)]
pub struct Pauses<'a> {
    /// Stops by the injector, by worker.
    stopped: BTreeMap<&'a str, Vec<Span>>,
    /// Times in which a thread that slept in short steps was not woken.
    stalls: &'a [Span],
    /// Instants, and the total time for which processes had waited for a processor until then, as the kernel counts it.
    pressure: &'a [(u64, u64)],
}

impl<'a> Pauses<'a> {
    /// Collects the stops of `faults`, and what the machine showed.
    pub fn of(faults: &'a [Fault], stalls: &'a [Span], pressure: &'a [(u64, u64)]) -> Self {
        let mut stopped: BTreeMap<&str, Vec<Span>> = BTreeMap::new();
        for fault in faults {
            if let (Kind::Stop, Target::Worker(name)) = (fault.kind, &fault.target) {
                stopped.entry(name).or_default().push((fault.from, fault.to));
            }
        }
        stopped.values_mut().for_each(|stops| stops.sort_unstable());
        Self { stopped, stalls, pressure }
    }

    /// The time for which a worker could run between these instants.
    pub fn ran(&self, worker: &str, from: u64, to: u64) -> u64 {
        self.between_stops(worker, from, to).into_iter().map(|(from, to)| (to - from) - self.starved(from, to)).sum()
    }

    /// The time for which the injector had not stopped a worker between these instants.
    pub fn not_stopped(&self, worker: &str, from: u64, to: u64) -> u64 {
        self.between_stops(worker, from, to).into_iter().map(|(from, to)| to - from).sum()
    }

    fn between_stops(&self, worker: &str, from: u64, to: u64) -> Vec<Span> {
        without((from, to), self.stopped.get(worker).map(Vec::as_slice).unwrap_or_default())
    }

    /// The time for which the machine may have kept a worker from running between these instants.
    fn starved(&self, from: u64, to: u64) -> u64 {
        self.stalled(from, to).max(self.waited(from, to))
    }

    /// The time for which the machine woke no thread between these instants.
    pub fn stalled(&self, from: u64, to: u64) -> u64 {
        let within = |(start, end): &Span| (*end).min(to).saturating_sub((*start).max(from));
        self.stalls.iter().map(within).sum::<u64>().min(to - from)
    }

    /// The time for which processes waited for a processor between these instants; 0 where the kernel does not count
    /// it.
    pub fn waited(&self, from: u64, to: u64) -> u64 {
        let before = self.pressure[..self.pressure.partition_point(|(at, _)| *at <= from)].last();
        let after = self.pressure.get(self.pressure.partition_point(|(at, _)| *at < to)).or(self.pressure.last());
        match (before, after) {
            (Some((_, before)), Some((_, after))) => after.saturating_sub(*before).min(to - from),
            _ => 0,
        }
    }

    /// The longest time for which the machine woke no thread.
    pub fn longest_stall(&self) -> u64 {
        self.stalls.iter().map(|(from, to)| to - from).max().unwrap_or(0)
    }
}

/// The parts of a span outside of others, which are in order.
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
