//! One seed on trial: its run is repeated, and held against the promises that its faults leave standing.

use std::collections::BTreeMap;

use crate::clock::TrueTime;
use crate::counts::Counts;
use crate::fault_schedule::FaultSchedule;
use crate::promise::{Assumptions, Promise, Violation};
use crate::script::Script;
use crate::swarm::{self, Lot};
use crate::world::{self, Report};

/// The result of one run.
#[derive(Clone, Debug)]
pub struct Trial {
    /// The whole run, ready to be repeated.
    pub script: Script,
    /// The counts of faults and events.
    pub counts: Counts,
    /// Promises that were due, and broken.
    pub broken: Vec<Violation>,
    /// Promises that were broken after the faults had taken their ground away.
    pub expected: Vec<Violation>,
    /// Nodes forgot tokens while wall clocks were off: what rests on tokens was not judged from then on.
    pub forgot: bool,
    /// The second run did something else.
    pub differed: bool,
    /// The digest of all outputs of all clients.
    pub digest: u64,
}

impl Trial {
    /// Nothing is wrong.
    pub fn passed(&self) -> bool {
        self.broken.is_empty() && !self.differed
    }
}

/// Runs a seed.
pub fn seed(seed: u64, lot: Lot) -> Trial {
    let (mut script, odds) = swarm::draw(seed, lot);
    let first = world::run(&script, FaultSchedule::drawn(odds), false);
    script.messages.clone_from(&first.messages);
    script.stalls.clone_from(&first.stalls);
    // The run that was drawn is a script now. The second run shows whether the script is complete.
    let second = world::run(&script, FaultSchedule::written(&script), false);
    verdict(script, first, &second)
}

/// Runs a script.
pub fn script(script: &Script) -> Trial {
    let first = world::run(script, FaultSchedule::written(script), false);
    let second = world::run(script, FaultSchedule::written(script), false);
    verdict(script.clone(), first, &second)
}

fn verdict(script: Script, first: Report, second: &Report) -> Trial {
    let kept = Assumptions::of(&script);
    let lost = &first.counters_lost;
    let forgot = !lost.is_empty() && !without_counters(kept).allow(Promise::Tokens);
    let timeline = |report: &Report| (report.digest, report.counts.clone(), report.violations.clone());
    let differed = timeline(&first) != timeline(second);
    let (broken, expected) = first.violations.iter().cloned().partition(|violation| is_due(kept, lost, violation));
    let digest = first.digest;
    Trial { script, counts: first.counts, broken, expected, forgot, differed, digest }
}

/// True if a promise was due that was broken. Lost counters excuse what rests on them on their own resource, from then
/// on.
fn is_due(kept: Assumptions, lost: &BTreeMap<usize, TrueTime>, violation: &Violation) -> bool {
    let is_forgotten = match violation.resource {
        Some(resource) => lost.get(&resource).is_some_and(|since| *since <= violation.at_ns),
        None => !lost.is_empty(),
    };
    (if is_forgotten { without_counters(kept) } else { kept }).allow(violation.promise)
}

fn without_counters(kept: Assumptions) -> Assumptions {
    Assumptions { counters: false, ..kept }
}

/// True if a script breaks a promise that is due, or was expected to fall.
pub fn breaks(script: &Script, promise: Promise) -> bool {
    replay(script).breaks(promise)
}

/// Runs a script once.
pub(crate) fn replay(script: &Script) -> Report {
    world::run(script, FaultSchedule::written(script), false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lost_counters_excuse_later_tokens_of_their_resource() {
        let kept = Assumptions {
            rates: true,
            records: true,
            suspend: true,
            manners: true,
            counters: true,
            walls: false,
            nonces: true,
            guarded_items: true,
            dones: true,
            alone: true,
        };
        let lost = BTreeMap::from([(1, TrueTime(500))]);
        let is_due = |promise, resource, at| {
            let at_ns = TrueTime(at);
            is_due(kept, &lost, &Violation { promise, at_ns, host: None, resource, text: String::new() })
        };
        assert!(is_due(Promise::Tokens, Some(1), 499), "they were there still");
        assert!(is_due(Promise::Tokens, Some(2), 500), "another resource");
        assert!(is_due(Promise::OneHolder, Some(1), 500), "it does not rest on them");
        assert!(!is_due(Promise::Tokens, Some(1), 500));
        assert!(!is_due(Promise::Tokens, None, 500));
    }
}
