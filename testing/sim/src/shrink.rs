//! Makes a failing script smaller, until nothing can be left out without losing the failure.
//!
//! Delta debugging (Zeller and Hildebrandt, 2002) over everything a script lists, then simpler values for what is left.

use std::time::Duration;

use crate::clock::TrueTime;
use crate::promise::Promise;
use crate::script::{Ending, Script, Way};
use crate::{trial, world};

/// The most that one shrink may cost. Most runs take a thousand steps, so the replays run out first. Of runs without
/// end, the steps allow a hundred.
const MOST: Cost = Cost { replays: 20_000, steps: 100 * world::MOST_STEPS };

#[derive(Clone, Copy, Debug, Default)]
struct Cost {
    replays: usize,
    /// Steps of the simulated world.
    steps: u64,
}

/// A script that still breaks the promise, with much less in it.
pub fn shrink(script: &Script, promise: Promise) -> Script {
    let mut shrinker = Shrinker { best: script.clone(), promise, most: MOST, spent: Cost::default() };
    shrinker.run();
    shrinker.best
}

struct Shrinker {
    best: Script,
    promise: Promise,
    most: Cost,
    spent: Cost,
}

impl Shrinker {
    fn run(&mut self) {
        loop {
            let before = self.best.clone();
            self.end_early();
            self.thin(|script| &mut script.messages);
            self.thin(|script| &mut script.stalls);
            self.thin(|script| &mut script.faults);
            self.thin(|script| &mut script.foreign_clients);
            self.thin_jobs();
            self.simplify();
            if self.best == before || self.is_spent() {
                return;
            }
        }
    }

    fn is_spent(&self) -> bool {
        self.spent.replays >= self.most.replays || self.spent.steps >= self.most.steps
    }

    /// Keeps a change if the failure stays.
    fn attempt(&mut self, change: impl FnOnce(&mut Script)) -> bool {
        if self.is_spent() {
            return false;
        }
        let mut candidate = self.best.clone();
        change(&mut candidate);
        if candidate == self.best || candidate.check().is_err() {
            return false;
        }
        let report = trial::replay(&candidate);
        self.spent.replays += 1;
        self.spent.steps += report.counts.steps;
        let fails = report.breaks(self.promise);
        if fails {
            self.best = candidate;
        }
        fails
    }

    /// Leaves out as many entries of a list as possible: halves first, then ever smaller pieces.
    fn thin<T: Clone + PartialEq>(&mut self, list: impl Fn(&mut Script) -> &mut Vec<T>) {
        let mut piece = list(&mut self.best).len();
        while piece > 0 {
            let mut at = 0;
            while at < list(&mut self.best).len() {
                let left_out = self.attempt(|script| {
                    let list = list(script);
                    let end = (at + piece).min(list.len());
                    list.drain(at..end);
                });
                if !left_out {
                    at += piece;
                }
            }
            piece /= 2;
        }
    }

    /// Hosts keep their places, since faults and messages name them by number; but they may have nothing to do.
    fn thin_jobs(&mut self) {
        for host in 0..self.best.hosts.len() {
            self.attempt(|script| script.hosts[host].workers.clear());
            for worker in 0..self.best.hosts[host].workers.len() {
                self.thin(|script| &mut script.hosts[host].workers[worker]);
            }
            self.thin(|script| &mut script.hosts[host].workers);
        }
        while self.best.hosts.len() > 1 && self.attempt(|script| drop(script.hosts.pop())) {}
    }

    fn end_early(&mut self) {
        let at = self.best.world.heals_ns.0;
        for share in [1, 2, 4, 6, 7] {
            if self.attempt(|script| script.world.heals_ns = TrueTime(at / 8 * share)) {
                break;
            }
        }
        for ending in [Ending::Inherit, Ending::Close] {
            if self.best.world.ending != ending && self.attempt(|script| script.world.ending = ending) {
                break;
            }
        }
    }

    /// Plain values instead of odd ones.
    fn simplify(&mut self) {
        self.attempt(|script| script.world.watch = false);
        self.attempt(|script| script.world.resources = 1);
        for host in 0..self.best.hosts.len() {
            self.attempt(|script| script.hosts[host].rate_ppm = 0);
            self.attempt(|script| script.hosts[host].unix_offset_ms = 0);
            for worker in 0..self.best.hosts[host].workers.len() {
                for job in 0..self.best.hosts[host].workers[worker].len() {
                    self.simplify_job(host, worker, job);
                }
            }
        }
        self.attempt(|script| script.world.unmarked = false);
        for node in 0..self.best.world.specs().len() {
            self.attempt(|script| script.world.specs_mut()[node].rate_ppm = 0);
            self.attempt(|script| script.world.specs_mut()[node].retention = Duration::MAX);
        }
        for n in 0..self.best.messages.len() {
            self.attempt(|script| script.messages[n].request = Way::default());
            self.attempt(|script| script.messages[n].reply = Way::default());
            self.attempt(|script| script.messages[n].reset_ns = None);
            self.attempt(|script| script.messages[n].request.delay_ns = 0);
            self.attempt(|script| script.messages[n].request.copy_ns = None);
            self.attempt(|script| script.messages[n].reply.delay_ns = 0);
            self.attempt(|script| script.messages[n].reply.copy_ns = None);
            self.rounder(|script| Some(&mut script.messages[n].request.delay_ns));
            self.rounder(|script| Some(&mut script.messages[n].reply.delay_ns));
            self.rounder(|script| script.messages[n].request.copy_ns.as_mut());
        }
        for n in 0..self.best.stalls.len() {
            self.rounder(|script| Some(&mut script.stalls[n].for_ns));
        }
        for n in 0..self.best.faults.len() {
            self.rounder(|script| Some(&mut script.faults[n].at_ns.0));
        }
    }

    fn simplify_job(&mut self, host: usize, worker: usize, n: usize) {
        self.attempt(|script| script.hosts[host].workers[worker][n].writes = 0);
        self.attempt(|script| script.hosts[host].workers[worker][n].careless = false);
        self.attempt(|script| script.hosts[host].workers[worker][n].cancel_ns = None);
        self.attempt(|script| script.hosts[host].workers[worker][n].watches = false);
        self.attempt(|script| script.hosts[host].workers[worker][n].wait_ns = None);
        self.attempt(|script| script.hosts[host].workers[worker][n].max_hold_ns = None);
        self.attempt(|script| script.hosts[host].workers[worker][n].no_renewal = false);
        self.attempt(|script| script.hosts[host].workers[worker][n].lock_delay_ns = 0);
        self.attempt(|script| script.hosts[host].workers[worker][n].after_ns = 0);
        self.rounder(|script| Some(&mut script.hosts[host].workers[worker][n].after_ns));
        self.rounder(|script| Some(&mut script.hosts[host].workers[worker][n].hold_ns));
        self.rounder(|script| script.hosts[host].workers[worker][n].cancel_ns.as_mut());
        self.rounder(|script| script.hosts[host].workers[worker][n].wait_ns.as_mut());
    }

    /// The roundest value that will do: whole seconds, then parts of them.
    fn rounder(&mut self, value: impl Fn(&mut Script) -> Option<&mut u64>) {
        for unit in [1_000_000_000, 100_000_000, 10_000_000, 1_000_000, 100_000] {
            for up in [0, 1] {
                let rounded = self.attempt(|script| {
                    if let Some(value) = value(script) {
                        *value = (*value / unit + up) * unit;
                    }
                });
                if rounded {
                    return;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::script::Job;
    use crate::swarm::{Family, Lot};

    /// A worker that writes so often that the run is cut off.
    fn endless() -> Script {
        let job = Job { ttl_ns: 1_000_000_000, hold_ns: 60_000_000_000, writes: 10_000, ..Job::default() };
        let mut script = crate::swarm::draw(0, Lot::Kept(Family::Store)).0;
        script.foreign_clients.clear();
        script.faults.clear();
        script.hosts.truncate(1);
        script.hosts[0].workers = vec![vec![job; 50]];
        script.world.heals_ns = TrueTime(3_600_000_000_000);
        script
    }

    #[test]
    fn shrink_limits_endless_runs() {
        let script = endless();
        assert!(trial::breaks(&script, Promise::Bounds), "it reaches the limit of steps");
        let most = Cost { steps: 2 * world::MOST_STEPS, ..MOST };
        let mut shrinker = Shrinker { best: script, promise: Promise::Bounds, most, spent: Cost::default() };
        shrinker.run();
        assert!(shrinker.spent.replays > 1 && shrinker.spent.steps < most.steps + world::MOST_STEPS + 2);
        assert!(trial::breaks(&shrinker.best, Promise::Bounds));
    }
}
