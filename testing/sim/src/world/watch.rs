//! The invariants of every step, seen from outside the core.

use std::collections::BTreeSet;
use std::time::Duration;

use leasehold_core::op::{LockOp, Op};
use leasehold_core::{Client, LockId, Monotonic, Now};

use super::faults::{LONGEST_POLL, LONGEST_THROTTLED_POLL};
use super::{Due, World};
use crate::clock::TrueTime;
use crate::counts::Sometimes;
use crate::ledger::ProcessId;
use crate::promise::Promise;
use crate::store::By;

/// Much less than any waiter may sleep.
const BETWEEN_LOOKS: Duration = Duration::from_secs(1);

impl World<'_> {
    /// Just before a lease ends by its own clock is when its record is most likely to be gone.
    pub(super) fn probe_before(&mut self, process: ProcessId, deadline: Monotonic, resource: usize) {
        let at = self.hosts[process.host].clock.when(deadline.ns());
        self.push(TrueTime(at.0.saturating_sub(1)), Due::Probe { resource });
    }

    /// Checks the invariants of a host that has just run.
    pub(super) fn look_after(&mut self, process: ProcessId, now: Now) {
        let Some(client) = self.hosts[process.host].client.take() else { return };
        let undecided: Vec<_> = self.ledger.undecided(process).map(|(lock, _)| lock).collect();
        for lock in undecided {
            if client.state(lock) != Some("Acquiring") && self.ledger.decided(self.now, process, lock) {
                self.counts.see(Sometimes::GivenUp);
            }
        }
        let (mut overdue, mut held_for_long) = (Vec::new(), Vec::new());
        let mut audited = BTreeSet::new();
        for belief in self.ledger.beliefs().filter(|belief| belief.process == process) {
            let left = client.remaining(belief.lock, now);
            let told = belief.deadline.since(now.monotonic);
            if told.is_zero() || left != told {
                overdue.push((belief.resource, belief.lock, left, told));
            }
            audited.insert(belief.resource);
            let job = self.hosts[process.host].wanted.get(&belief.lock);
            if let Some((max_hold, ttl)) = job.and_then(|job| Some((job.max_hold_ns?, job.ttl_ns))) {
                let most = Duration::from_nanos(max_hold + ttl);
                let held = now.monotonic.since(belief.granted);
                if held > most {
                    held_for_long.push((belief.resource, belief.lock, held, most));
                }
            }
        }
        for (resource, lock, left, told) in overdue {
            let text = if told.is_zero() {
                format!("the deadline of lock {lock} has passed, and its holder was not told")
            } else {
                format!("lock {lock} says {left:?} left, its holder was told {told:?}")
            };
            self.record_violation(Promise::Loss, Some(process.host), Some(resource), text);
        }
        for (resource, lock, held, most) in held_for_long {
            let text = format!("lock {lock} has been held for {held:?}, which its max_hold limits to {most:?}");
            self.record_violation(Promise::Loss, Some(process.host), Some(resource), text);
        }
        self.check_waiters(process, &client, now);
        let stats = client.stats();
        let alive = self.hosts[process.host].workers.len();
        let limit = alive * self.most_orphans;
        if stats.locks > 2 * alive
            || stats.orphans > limit
            || stats.in_flight > (3 * alive + limit) * self.nodes.len()
            || stats.undrained > 0
        {
            let text = format!("{alive} workers, and the client keeps {stats:?}");
            self.record_violation(Promise::Bounds, Some(process.host), None, text);
        }
        self.hosts[process.host].client = Some(client);
        for resource in audited {
            self.audit(resource);
        }
    }

    /// Now and then, since a client that has forgotten its alarm never runs.
    pub(super) fn look_again(&mut self) {
        self.look_at_waiters();
        self.look_at_queues();
        if !self.healed {
            self.push(self.now.plus(BETWEEN_LOOKS), Due::Look);
        }
    }

    /// Checks that no process that could run is late with anything.
    pub(super) fn look_at_waiters(&mut self) {
        for n in 0..self.hosts.len() {
            let host = &mut self.hosts[n];
            let (now, process) = (host.now(self.now), host.process);
            if host.busy_until > self.now || host.stale_now {
                continue;
            }
            host.catch_up(now, self.config.request_timeout());
            let Some(client) = host.client.take() else { continue };
            self.check_waiters(process, &client, now);
            self.hosts[n].client = Some(client);
        }
    }

    /// Requests say what the job says, and renewals keep their pace.
    pub(super) fn check_request(&mut self, process: ProcessId, op: &LockOp, resource: usize, now: Now) {
        let asks = match &op.op {
            Op::Acquire(op) => op.record_ttl,
            Op::Renew(op) => op.record_ttl,
            Op::Release(_) | Op::Finish(_) | Op::Revoke(_) | Op::Tell(_) | Op::Raise(_) | Op::Read => return,
        };
        let nodes = self.nodes.len() as u64;
        let host = &mut self.hosts[process.host];
        let Some(job) = host.wanted.get(&op.lock) else { return };
        let whole = |ns: u64| Duration::from_millis(ns / 1_000_000);
        let (ttl, wanted) = (whole(job.ttl_ns), whole(job.ttl_ns) + whole(job.lock_delay_ns));
        let mut found = Vec::new();
        if asks != wanted {
            found
                .push((Promise::Orphans, format!("lock {} asks for a record of {asks:?}, not of {wanted:?}", op.lock)));
        }
        if matches!(op.op, Op::Renew(_)) {
            let tries = host.tries.entry(op.lock).or_default();
            tries.renewed_since = if tries.renewals == 0 { now.monotonic } else { tries.renewed_since };
            tries.renewals += 1;
            let passed = now.monotonic.since(tries.renewed_since);
            // A failed renewal is tried again after at most a sixth of the ttl, at first after less.
            let most = 12 + u64::try_from(40 * passed.as_nanos() / ttl.as_nanos().max(1)).unwrap_or(u64::MAX);
            if tries.renewals > most.saturating_mul(nodes) {
                let text = format!("lock {} was renewed {} times in {passed:?}", op.lock, tries.renewals);
                found.push((Promise::Bounds, text));
            }
        }
        for (promise, text) in found {
            self.record_violation(promise, Some(process.host), Some(resource), text);
        }
    }

    /// No waiter sleeps past its poll timer, and none asks more often than its pace allows.
    fn check_waiters(&mut self, process: ProcessId, client: &Client, now: Now) {
        let mut found = Vec::new();
        let host = &self.hosts[process.host];
        for (lock, since) in &host.active {
            if client.state(*lock) != Some("Waiting") {
                continue;
            }
            let most = if host.throttled.contains(lock) { LONGEST_THROTTLED_POLL } else { LONGEST_POLL };
            let idle = now.monotonic.since(*since);
            if idle > most + 2 * self.config.request_timeout() {
                found.push((Promise::Waiting, format!("lock {lock} has not tried for {idle:?}, {most:?} at most")));
            }
        }
        for (lock, until) in host.patience.iter().filter(|(_, until)| now.monotonic > **until) {
            if matches!(client.state(*lock), Some("Idle" | "Acquiring" | "Waiting")) {
                let late = now.monotonic.since(*until);
                found.push((
                    Promise::Waiting,
                    format!("lock {lock} still waits, {late:?} after its wait should have ended"),
                ));
            }
        }
        for (lock, tries) in &host.tries {
            let passed = now.monotonic.since(tries.since);
            let most = 20 + 3 * tries.wakeups + u64::try_from(passed.as_millis() / 15).unwrap_or(u64::MAX);
            if tries.sends > most.saturating_mul(self.nodes.len() as u64) {
                found.push((Promise::Bounds, format!("lock {lock} has asked {} times in {passed:?}", tries.sends)));
            }
        }
        for (promise, text) in found {
            self.record_violation(promise, Some(process.host), None, text);
        }
    }

    pub(super) fn waiting_on(&self, process: ProcessId, resource: usize) -> Vec<LockId> {
        let host = &self.hosts[process.host];
        let Some(client) = &host.client else { return Vec::new() };
        let waits = |lock: &LockId| {
            client.state(*lock) == Some("Waiting")
                && self.resource_of(process, *lock) == Some(resource)
                && self.ledger.is_blocked(process, *lock, self.nodes.len())
        };
        host.active.keys().copied().filter(waits).collect()
    }

    pub(super) fn must_have_tried(&mut self, process: ProcessId, waiting: &[LockId], after: &str) {
        let host = &self.hosts[process.host];
        let Some(client) = &host.client else { return };
        let asleep: Vec<_> = waiting.iter().filter(|lock| client.state(**lock) == Some("Waiting")).copied().collect();
        let now = host.now(self.now).monotonic;
        for lock in asleep {
            if self.hosts[process.host].active.get(&lock).is_none_or(|at| *at < now) {
                let text = format!("lock {lock} went back to sleep after {after}, without a try");
                self.record_violation(Promise::Waiting, Some(process.host), None, text);
            }
        }
    }

    /// Checks that at most one process believes, and that the store has its record.
    pub(super) fn audit(&mut self, resource: usize) {
        let mut believers = Vec::new();
        for belief in self.ledger.beliefs().filter(|belief| belief.resource == resource) {
            let host = &self.hosts[belief.process.host];
            // The deadline that callers read, where the core has moved it closer and they do not know it yet.
            let told = host.published.get(&belief.lock).copied().flatten().filter(|_| host.process == belief.process);
            if host.now(self.now).monotonic < told.map_or(belief.deadline, |told| told.max(belief.deadline)) {
                believers.push(belief.clone());
            }
        }
        for belief in &believers {
            let backing = self.backing(resource, belief.process.host, By::Attempt(belief.nonce));
            if backing < self.majority() {
                let stored = self.stored_records(resource, belief.process.host)[0];
                let whose = match stored.map(|stored| stored.by) {
                    _ if self.is_quorum() => format!("backed by {backing} nodes only"),
                    None => "nobody's".to_owned(),
                    Some(By::Attempt(_)) => "another client's".to_owned(),
                    Some(By::Foreign(_)) => "a foreign client's".to_owned(),
                };
                let text =
                    format!("lock {} (token {}) is believed in, but the record is {whose}", belief.lock, belief.token);
                self.record_violation(Promise::Backed, Some(belief.process.host), Some(resource), text);
            }
        }
        if let [first, second, ..] = &believers[..] {
            let text = format!(
                "host {} (token {}) and host {} (token {}) both hold the lock",
                first.process.host, first.token, second.process.host, second.token
            );
            self.record_violation(Promise::OneHolder, Some(second.process.host), Some(resource), text);
        }
    }
}
