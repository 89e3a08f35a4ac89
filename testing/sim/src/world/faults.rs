//! The injection of faults, their end, and the progress that must follow some time after it.

use std::time::Duration;

use leasehold_core::time::abstention;
use leasehold_core::{LockId, Nonce};

use super::host::SimHost;
use super::nodes::Windows;
use super::{Due, World};
use crate::clock::{Clock, TrueTime};
use crate::counts::Struck;
use crate::ledger::{ProcessId, longest_stand};
use crate::promise::Promise;
use crate::script::{self, Ending, Job, What};
use crate::store::{By, StoredRecord};

/// The longest sleep of a waiter, and the longest where the store throttles.
pub(super) const LONGEST_POLL: Duration = Duration::from_secs(2);
pub(super) const LONGEST_THROTTLED_POLL: Duration = Duration::from_secs(20);

/// A lease whose client was closed.
pub(super) struct Closed {
    host: usize,
    lock: LockId,
    of: usize,
    nonce: Nonce,
}

impl World<'_> {
    pub(super) fn fault(&mut self, n: usize) {
        if self.healed {
            return;
        }
        match self.script.faults[n].what {
            What::Crash { host, for_ns } => self.crash(host, for_ns),
            What::Reboot { host, for_ns } => self.reboot(host, for_ns),
            What::Fork { host, child } => self.fork(host, child),
            What::Stop { host, for_ns } => self.stop(host, for_ns),
            What::Suspend { host, for_ns } => self.suspend(host, for_ns),
            What::WallJump { host, by_ms } => self.set_wall_clock(host, by_ms),
            What::Rate { host, rate_ppm } => self.set_rate(host, rate_ppm),
            What::Partition { host, ref nodes, for_ns } => self.cut_off(host, nodes, for_ns),
            What::StoreDown { node, for_ns } => {
                self.window(Struck::StoreDown, node, for_ns, |windows| &mut windows.down)
            }
            What::StoreSilent { node, for_ns } => {
                self.window(Struck::StoreSilent, node, for_ns, |windows| &mut windows.silent);
            }
            What::StoreErrors { node, for_ns } => {
                self.window(Struck::StoreErrors, node, for_ns, |windows| &mut windows.errors);
            }
            What::Throttle { node, for_ns } => {
                self.window(Struck::Throttling, node, for_ns, |windows| &mut windows.throttle);
            }
            What::Credentials { node, for_ns } => {
                self.window(Struck::NoCredentials, node, for_ns, |windows| &mut windows.credentials);
            }
            What::Denied { node, for_ns } => self.window(Struck::Denied, node, for_ns, |windows| &mut windows.denied),
            What::StoreRate { node, rate_ppm } => {
                self.nodes[node].store.clock_mut().set_rate(self.now, rate_ppm);
                self.strike_store(Struck::RateChanged, node);
            }
            What::StoreJump { node, by_ms } => {
                self.nodes[node].store.clock_mut().jump(self.now, by_ms * 1_000_000);
                self.strike_store(Struck::StoreJumped, node);
            }
            What::StoreWiped => {
                self.nodes[0].store.wipe();
                self.queues.forget();
                self.strike(Struck::StoreWiped, None);
            }
            What::NodeWiped { node } => self.wipe_node(node),
            What::NodeRestart { node, for_ns, data } => self.restart_node(n, node, for_ns, data),
            What::Evicted { node, resource } => {
                self.nodes[node].store.evict(&self.resources[resource]);
                self.strike_store(Struck::Evicted, node);
            }
            What::Revoked { resource } => self.revoke(resource),
        }
        for resource in 0..self.resources.len() {
            self.record_stores(resource);
            self.remember(resource, None);
            self.audit(resource);
        }
    }

    fn strike(&mut self, fault: Struck, host: Option<usize>) {
        self.counts.strike(fault);
        self.record(|recorder, now| recorder.fault(host, fault.words(), now));
    }

    /// Counts a fault of a store. In a world with one store it is drawn on no lane; of several nodes it is drawn on its
    /// own.
    pub(super) fn strike_store(&mut self, fault: Struck, node: usize) {
        if self.is_quorum() { self.strike_node(fault, node) } else { self.strike(fault, None) }
    }

    /// The store is in trouble of one kind for a while.
    fn window(&mut self, fault: Struck, node: usize, for_ns: u64, which: impl FnOnce(&mut Windows) -> &mut TrueTime) {
        *which(&mut self.nodes[node].windows) = self.after(for_ns);
        self.counts.strike(fault);
        self.record(|recorder, now| recorder.node_trouble(node, fault.words(), now, for_ns));
    }

    fn crash(&mut self, host: usize, for_ns: u64) {
        self.kill(host);
        self.strike(Struck::Crashed, Some(host));
        self.push(self.after(for_ns), Due::Start { host });
    }

    fn reboot(&mut self, first: usize, for_ns: u64) {
        let again = self.after(for_ns);
        // The clocks begin again before anybody reads them.
        self.push(again, Due::Rebooted { host: first });
        for host in self.machine(first) {
            self.kill(host);
            let down_until = &mut self.hosts[host].down_until;
            *down_until = again.max(*down_until);
            self.push(again, Due::Start { host });
        }
        self.strike(Struck::Rebooted, Some(first));
    }

    /// The machine is up again: another boot, and an uptime that begins again, unless a second one has followed.
    pub(super) fn rebooted(&mut self, host: usize) {
        if self.healed {
            return;
        }
        let mut machine = self.machine(host);
        machine.retain(|host| self.hosts[*host].down_until <= self.now);
        for host in machine {
            let rate_ppm = self.script.hosts.get(host).map_or(0, |spec| spec.rate_ppm);
            let host = &mut self.hosts[host];
            host.boot = host.boot.wrapping_add(1_000);
            host.clock = Clock::new(0, rate_ppm);
            host.clock.set_rate(TrueTime(0), rate_ppm);
            let shows = host.clock.shows(self.now);
            host.clock.jump(self.now, -i64::try_from(shows).unwrap_or(i64::MAX));
        }
    }

    fn stop(&mut self, host: usize, for_ns: u64) {
        self.strike(Struck::Stopped, Some(host));
        self.pause(host, for_ns, "stopped");
    }

    fn suspend(&mut self, first: usize, for_ns: u64) {
        self.strike(Struck::Suspended, Some(first));
        for host in self.machine(first) {
            self.pause(host, for_ns, "suspended");
            if self.script.hosts.get(host).is_some_and(|spec| spec.forgets_suspend) {
                let now = self.now;
                self.hosts[host].clock.stop(now);
            }
        }
        self.push(self.after(for_ns), Due::Resumed { host: first });
    }

    /// The machine runs again.
    pub(super) fn resumed(&mut self, host: usize) {
        if self.healed {
            return;
        }
        for host in self.machine(host) {
            self.hosts[host].clock.go_on(self.now);
            self.wake_again(host);
        }
    }

    fn set_wall_clock(&mut self, host: usize, by_ms: i64) {
        self.strike(Struck::WallJumped, Some(host));
        self.hosts[host].unix_offset_ms += by_ms;
    }

    fn set_rate(&mut self, first: usize, rate_ppm: i32) {
        self.strike(Struck::RateChanged, Some(first));
        for host in self.machine(first) {
            self.hosts[host].clock.set_rate(self.now, rate_ppm);
            self.wake_again(host);
            // Its deadlines come at other instants now.
            let process = self.hosts[host].process;
            let ends: Vec<_> = self.ledger.beliefs().filter(|belief| belief.process == process).cloned().collect();
            ends.iter().for_each(|belief| self.probe_before(process, belief.deadline, belief.resource));
        }
    }

    fn cut_off(&mut self, host: usize, nodes: &[usize], for_ns: u64) {
        let until = self.after(for_ns);
        for (node, cut_until) in self.hosts[host].cut_until.iter_mut().enumerate() {
            if nodes.is_empty() || nodes.contains(&node) {
                *cut_until = until;
            }
        }
        self.strike(Struck::Partitioned, Some(host));
        let named: String = nodes.iter().map(|node| format!(" {node}")).collect();
        let what = if nodes.is_empty() { "cut off".to_owned() } else { format!("cut off from node{named}") };
        self.record(|recorder, now| recorder.host_trouble(host, &what, now, for_ns));
    }

    fn wake_again(&mut self, host: usize) {
        let process = self.hosts[host].process;
        if self.is_alive(process) {
            self.set_alarm(process);
        }
    }

    /// A copy of a process: its leases are dead in the child, which starts a client of its own with the same seed, and
    /// goes on counting locks where its parent stood.
    fn fork(&mut self, parent: usize, child: usize) {
        if self.hosts[parent].client.is_none() || self.hosts[child].client.is_some() {
            return;
        }
        self.strike(Struck::Forked, Some(parent));
        let (seed, drawn, next_lock, machine, clock, boot) = {
            let parent = &self.hosts[parent];
            (parent.seed, parent.drawn, parent.next_lock, parent.machine, parent.clock, parent.boot)
        };
        let copy = &mut self.hosts[child];
        copy.seed = seed;
        copy.drawn = drawn;
        // The start adds one, as every new process does.
        copy.seed[31] = copy.seed[31].wrapping_sub(1);
        copy.next_lock = next_lock;
        copy.machine = machine;
        copy.clock = clock;
        copy.boot = boot;
        self.start(child);
    }

    /// Ends all faults.
    pub(super) fn heal(&mut self) {
        // Before any process is killed, and before lateness is excused.
        self.look_at_waiters();
        self.healed = true;
        self.schedule.heal();
        self.nodes.iter_mut().for_each(|node| node.windows = Windows::default());
        for n in 0..self.hosts.len() {
            let now = self.now;
            let host = &mut self.hosts[n];
            host.busy_until = now;
            host.cut_until.fill(now);
            host.clock.go_on(now);
            self.wake_again(n);
        }
        for client in &mut self.foreign_clients {
            client.dies();
        }
        self.record(|recorder, now| recorder.fault(None, "everything is well again", now));
        match self.script.world.ending {
            Ending::Crash => {
                for n in 0..self.hosts.len() {
                    self.kill(n);
                }
                self.newcomer();
            }
            Ending::Close => {
                self.closing = true;
                for n in 0..self.hosts.len() {
                    self.stop_workers(n);
                    let process = self.hosts[n].process;
                    for lock in self.ledger.held_by(process) {
                        let now = self.hosts[n].now(self.now).monotonic;
                        // A lease that has expired is not released any more.
                        let belief = self.ledger.belief(process, lock).filter(|belief| now < belief.deadline);
                        let held = belief.map(|held| Closed { host: n, lock, of: held.resource, nonce: held.nonce });
                        self.closed.extend(held);
                        self.no_longer_believes(process, lock, "closed");
                    }
                    self.drive(process, None, |client, now| client.close(now));
                }
                let latency = Duration::from_nanos(self.script.world.latency_ns);
                let soon = self.last_arrival.max(self.now).plus(latency * 4 + self.config.request_timeout() * 4);
                self.push(soon, Due::JudgeClosed);
                let at = self.after(self.script.longest_record_ns() + 5_000_000_000);
                self.push(at, Due::Judge);
            }
            Ending::Inherit => {
                let holders: Vec<usize> = self.ledger.beliefs().map(|belief| belief.process.host).collect();
                for n in holders {
                    self.kill(n);
                }
                // A throttled waiter may be in the middle of its longest sleep.
                let throttled = self.hosts.iter().any(|host| !host.throttled.is_empty());
                let poll = if throttled { LONGEST_THROTTLED_POLL } else { LONGEST_POLL };
                let waited_for = self.resources_waited_for();
                self.want(&waited_for, poll);
            }
        }
    }

    /// Demands a grant of each of these resources, within the promised time.
    fn want(&mut self, resources: &[usize], poll: Duration) {
        let latency = Duration::from_nanos(self.script.world.latency_ns);
        for resource in resources.iter().copied() {
            let foreign_clients = self.script.foreign_clients.iter().filter(|client| client.resource == resource);
            let foreign = foreign_clients.map(|client| Duration::from_nanos(client.ttl_ns)).max().unwrap_or_default();
            let stands = longest_stand(self.ledger.longest_ttl(resource).max(foreign), self.drift);
            let request = self.config.request_timeout();
            // A poll is measured by the waiter's clock, and one request may just have been sent in vain.
            let by = self.last_arrival.max(self.now).plus(stands + poll * 21 / 20 + latency * 4 + request * 2);
            let by = if self.is_quorum() { by.plus(self.time_of_doubt(resource, poll)) } else { by };
            self.wanted.insert(resource, by);
            self.push(by, Due::Judge);
        }
    }

    /// The time that may be added in a quorum: attempts that only split the votes, or show which nodes are in doubt;
    /// and where the nodes that are not in doubt are no majority, the time for which the others abstain.
    fn time_of_doubt(&self, resource: usize, poll: Duration) -> Duration {
        let abstaining = self.nodes.iter().filter(|node| node.abstains()).count();
        let doubted = self.nodes.iter().filter(|node| node.is_doubted(&self.resources[resource])).count();
        let spare = self.nodes.len() - self.majority();
        let waits = abstaining > 0 && abstaining + doubted > spare;
        let attempts = (poll * 21 / 20 + self.config.request_timeout() * 6) * 5;
        match self.config.quorum().filter(|_| waits) {
            // By the waiter's clock, from an answer that is still to come.
            Some(quorum) => attempts + abstention(quorum.max_ttl(), self.drift) * 21 / 20,
            None => attempts,
        }
    }

    /// The answer of a throttled store may be read after the world got well: who reads it may sleep for long once more.
    pub(super) fn has_patience_with(&mut self, process: ProcessId, lock: Option<LockId>) {
        if !self.healed {
            return;
        }
        let Some(resource) = lock.and_then(|lock| self.resource_of(process, lock)) else { return };
        if let Some(by) = self.wanted.get_mut(&resource) {
            let latency = Duration::from_nanos(self.script.world.latency_ns);
            let wakes_by =
                self.now.plus(LONGEST_THROTTLED_POLL * 21 / 20 + latency * 4 + self.config.request_timeout() * 2);
            *by = wakes_by.max(*by);
            let by = *by;
            self.push(by, Due::Judge);
        }
    }

    /// A process that was never seen before wants every lock.
    fn newcomer(&mut self) {
        let n = self.hosts.len();
        let job = |resource| Job { resource, ttl_ns: 1_000_000_000, hold_ns: 1_000_000, ..Job::default() };
        let resources: Vec<usize> = (0..self.resources.len()).collect();
        let workers = resources.iter().map(|resource| vec![job(*resource)]).collect();
        let spec = script::Host { workers, ..script::Host::default() };
        let mut host = SimHost::new(n, &spec, self.script);
        if self.script.world.one_kernel() {
            (host.clock, host.boot) = (self.hosts[0].clock, self.hosts[0].boot);
        }
        self.hosts.push(host);
        self.record(|recorder, _| recorder.newcomer(n));
        self.want(&resources, LONGEST_POLL);
        self.start(n);
    }

    /// Checks that the leases of closed clients were released, and did not just expire.
    pub(super) fn judge_closed(&mut self) {
        for Closed { host, lock, of, nonce } in std::mem::take(&mut self.closed) {
            let stored_records = self.stored_records(of, host);
            let stands =
                |n: &usize| stored_records[*n].is_some_and(|stored: StoredRecord| stored.by == By::Attempt(nonce));
            let is_forgotten = |n: &usize| stands(n) && self.ledger.is_unreleased(nonce, *n);
            let nodes: Vec<usize> = (0..stored_records.len()).filter(is_forgotten).collect();
            if !nodes.is_empty() {
                let text = format!("the client of lock {lock} was closed, and its record still stands on {nodes:?}");
                self.record_violation(Promise::Orphans, Some(host), Some(of), text);
            }
        }
    }

    /// Checks everything that was due by now.
    pub(super) fn judge(&mut self) {
        if self.closing {
            self.closing = false;
            for n in 0..self.hosts.len() {
                if let Some(client) = self.hosts[n].client.as_ref().filter(|client| !client.is_idle()) {
                    let text = format!("closed, and never idle: {:?}", client.stats());
                    self.record_violation(Promise::Bounds, Some(n), None, text);
                }
                self.kill(n);
            }
            return self.newcomer();
        }
        let late: Vec<usize> = self.wanted.iter().filter(|(_, by)| **by <= self.now).map(|(of, _)| *of).collect();
        for resource in late {
            self.wanted.remove(&resource);
            let text = "nobody got the lock in the time that is promised after its holder's death".into();
            self.record_violation(Promise::Succession, None, Some(resource), text);
        }
    }
}
