//! The samples of the rounds of a benchmark, kept for each peer.

use crate::figures::{median, percentile};
use crate::records::Case;

use super::cost::{Cost, us_each};

/// The pairs of acquire and release of one peer.
#[derive(Default)]
pub struct Samples {
    /// Nanoseconds, all together.
    times: Vec<u64>,
    /// The median of each round.
    rounds: Vec<f64>,
    cost: Cost,
}

impl Samples {
    /// One round: what each pair took in nanoseconds, and what all of them cost.
    pub fn add(&mut self, mut times: Vec<u64>, cost: Cost) {
        times.sort_unstable();
        self.rounds.push(percentile(&times, 0.5) as f64);
        self.times.append(&mut times);
        self.times.sort_unstable();
        self.cost += cost;
    }

    /// The medians of the rounds, for [`Samples::ratio`].
    pub fn rounds(&self) -> &[f64] {
        &self.rounds
    }

    /// The time below which `share` of the pairs stayed, in microseconds.
    pub fn us(&self, share: f64) -> f64 {
        percentile(&self.times, share) as f64 / 1e3
    }

    /// Processor time of this process for a pair, in microseconds.
    pub fn client_us(&self) -> f64 {
        us_each(self.cost.client, self.times.len())
    }

    /// Processor time of the servers for a pair, in microseconds.
    pub fn server_us(&self) -> f64 {
        us_each(self.cost.server, self.times.len())
    }

    /// The ratio of a pair's time to that of others, round by round.
    pub fn ratio(&self, bare: &[f64]) -> f64 {
        let ratios: Vec<f64> = self.rounds.iter().zip(bare).map(|(ours, theirs)| ours / theirs).collect();
        median(&ratios)
    }
}

/// Records the figures of all, with their ratios to the first one.
pub fn tell(case: &str, all: &[(&str, &Samples)]) {
    let Some((_, base)) = all.first() else { return };
    let medians: Vec<_> = all.iter().map(|(who, seen)| (*who, seen.us(0.5), seen.ratio(base.rounds()))).collect();
    Case(case, "p50", "us").in_turns(&medians);
    let of = |value: &dyn Fn(&Samples) -> f64| all.iter().map(|(who, seen)| (*who, value(seen))).collect::<Vec<_>>();
    Case(case, "p99", "us").side_by_side(&of(&|seen| seen.us(0.99)));
    Case(case, "CPU", "us").side_by_side(&of(&Samples::client_us));
    // Not every store says what it cost.
    if base.server_us() > 0.0 {
        Case(case, "CPU in Redis", "us").side_by_side(&of(&Samples::server_us));
    }
}
