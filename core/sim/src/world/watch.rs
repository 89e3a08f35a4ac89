//! What must hold at every step, seen from outside the core.

use std::collections::BTreeSet;
use std::time::Duration;

use leasehold_core::{Client, LockId, Monotonic, Now};

use super::{Due, World};
use crate::clock::TrueTime;
use crate::counts::Sometimes;
use crate::ledger::Life;
use crate::promise::Promise;
use crate::store::By;

impl World<'_> {
    /// Just before a lease ends by its own clock is when its record is most likely to be gone.
    pub(super) fn probe_before(&mut self, life: Life, deadline: Monotonic, resource: usize) {
        let at = self.hosts[life.host].clock.when(deadline.ns());
        self.push(TrueTime(at.0.saturating_sub(1)), Due::Probe { resource });
    }

    /// What must hold whenever a host has just run.
    pub(super) fn look_after(&mut self, life: Life, now: Now) {
        let Some(client) = self.hosts[life.host].client.take() else { return };
        let undecided: Vec<_> = self.ledger.undecided(life).map(|(lock, _)| lock).collect();
        for lock in undecided {
            if client.state(lock) != Some("Acquiring") && self.ledger.decided(self.now, life, lock) {
                self.counts.see(Sometimes::GivenUp);
            }
        }
        let mut overdue = Vec::new();
        let mut audited = BTreeSet::new();
        for belief in self.ledger.beliefs().filter(|belief| belief.life == life) {
            let left = client.remaining(belief.lock, now);
            let told = belief.deadline.since(now.monotonic);
            if told.is_zero() || left != told {
                overdue.push((belief.resource, belief.lock, left, told));
            }
            audited.insert(belief.resource);
        }
        for (resource, lock, left, told) in overdue {
            let text = format!("lock {lock} says {left:?} left, its holder was told {told:?}");
            self.accuse(Promise::Loss, Some(life.host), Some(resource), text);
        }
        self.check_waiters(life, &client, now);
        let stats = client.stats();
        let alive = self.hosts[life.host].workers.len();
        let limit = alive * self.most_orphans;
        if stats.locks > 2 * alive
            || stats.orphans > limit
            || stats.in_flight > 3 * alive + limit
            || stats.undrained > 0
        {
            let text = format!("{alive} workers, and the client keeps {stats:?}");
            self.accuse(Promise::Bounds, Some(life.host), None, text);
        }
        self.hosts[life.host].client = Some(client);
        for resource in audited {
            self.audit(resource);
        }
    }

    /// No waiter sleeps past its poll timer, and none asks more often than its pace allows.
    fn check_waiters(&mut self, life: Life, client: &Client, now: Now) {
        let mut found = Vec::new();
        let host = &self.hosts[life.host];
        for (lock, since) in &host.active {
            if client.state(*lock) != Some("Waiting") {
                continue;
            }
            let most = if host.throttled.contains(lock) { Duration::from_secs(20) } else { Duration::from_secs(2) };
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
            if tries.sends > most {
                found.push((Promise::Bounds, format!("lock {lock} has asked {} times in {passed:?}", tries.sends)));
            }
        }
        for (promise, text) in found {
            self.accuse(promise, Some(life.host), None, text);
        }
    }

    pub(super) fn waiting_on(&self, life: Life, resource: usize) -> Vec<LockId> {
        let host = &self.hosts[life.host];
        let Some(client) = &host.client else { return Vec::new() };
        let waits = |lock: &LockId| {
            client.state(*lock) == Some("Waiting")
                && self.resource_of(life, *lock) == Some(resource)
                && self.ledger.is_blocked(life, *lock)
        };
        host.active.keys().copied().filter(waits).collect()
    }

    pub(super) fn must_have_tried(&mut self, life: Life, waiting: &[LockId], after: &str) {
        let host = &self.hosts[life.host];
        let Some(client) = &host.client else { return };
        let asleep: Vec<_> = waiting.iter().filter(|lock| client.state(**lock) == Some("Waiting")).copied().collect();
        let now = host.now(self.now).monotonic;
        for lock in asleep {
            if self.hosts[life.host].active.get(&lock).is_none_or(|at| *at < now) {
                let text = format!("lock {lock} went back to sleep after {after}, without a try");
                self.accuse(Promise::Waiting, Some(life.host), None, text);
            }
        }
    }

    /// Nobody but one believes, and the store knows whom.
    pub(super) fn audit(&mut self, resource: usize) {
        let mut believers = Vec::new();
        for belief in self.ledger.beliefs().filter(|belief| belief.resource == resource) {
            let now = self.hosts[belief.life.host].now(self.now).monotonic;
            if now < belief.deadline {
                believers.push(belief.clone());
            }
        }
        for belief in &believers {
            let caller = self.store_now(belief.life.host);
            let standing = self.store.standing(&self.resources[resource], self.now, &caller);
            if standing.is_none_or(|standing| standing.by != By::Attempt(belief.nonce)) {
                let whose = match standing.map(|standing| standing.by) {
                    None => "nobody's",
                    Some(By::Attempt(_)) => "another client's",
                    Some(By::Foreign(_)) => "a foreign client's",
                };
                let text =
                    format!("lock {} (token {}) is believed in, but the record is {whose}", belief.lock, belief.token);
                self.accuse(Promise::Backed, Some(belief.life.host), Some(resource), text);
            }
        }
        if let [first, second, ..] = &believers[..] {
            let text = format!(
                "host {} (token {}) and host {} (token {}) both hold the lock",
                first.life.host, first.token, second.life.host, second.token
            );
            self.accuse(Promise::OneHolder, Some(second.life.host), Some(resource), text);
        }
    }
}
