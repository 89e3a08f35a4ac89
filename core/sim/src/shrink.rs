//! Makes a failing script smaller, until nothing can be left out without losing the failure.
//!
//! Delta debugging (Zeller and Hildebrandt, 2002) over everything a script lists, then simpler values for what is left.

use crate::clock::TrueTime;
use crate::promise::Promise;
use crate::script::{Ending, Script, Way};
use crate::trial;

/// Replays that one shrink may cost.
const MOST_REPLAYS: usize = 20_000;

/// A script that still breaks the promise, with much less in it.
pub fn shrink(script: &Script, promise: Promise) -> Script {
    let mut shrinker = Shrinker { best: script.clone(), promise, replays: 0 };
    loop {
        let before = shrinker.best.clone();
        shrinker.end_early();
        shrinker.thin(|script| &mut script.messages);
        shrinker.thin(|script| &mut script.stalls);
        shrinker.thin(|script| &mut script.faults);
        shrinker.thin(|script| &mut script.strangers);
        shrinker.thin_jobs();
        shrinker.simplify();
        if shrinker.best == before || shrinker.replays >= MOST_REPLAYS {
            return shrinker.best;
        }
    }
}

struct Shrinker {
    best: Script,
    promise: Promise,
    replays: usize,
}

impl Shrinker {
    /// Keeps a change if the failure stays.
    fn attempt(&mut self, change: impl FnOnce(&mut Script)) -> bool {
        let mut candidate = self.best.clone();
        change(&mut candidate);
        if candidate == self.best || candidate.check().is_err() || self.replays >= MOST_REPLAYS {
            return false;
        }
        self.replays += 1;
        let fails = trial::breaks(&candidate, self.promise);
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
        self.attempt(|script| script.world.store.rate_ppm = 0);
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
