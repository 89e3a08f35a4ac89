//! A process around the real core: it reads its clock, passes in what arrived, and carries out the outputs.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::Hash;
use std::time::Duration;

use leasehold_core::op::Op;
use leasehold_core::store::{BootId, StoreNow};
use leasehold_core::{Client, LockId, Monotonic, NodeId, Now, Output, Transmit};

use super::worker::Worker;
use super::{Due, Input, World};
use crate::clock::{Clock, TrueTime};
use crate::counts::Struck;
use crate::ledger::ProcessId;
use crate::promise::Promise;
use crate::rng::Stream;
use crate::script::{Host as Spec, Peer, Script, Stall, StallPoint};
use crate::store::BEGAN_UNIX_MS;

/// The boot in which all processes of a single machine begin.
pub(super) const FIRST_BOOT: u32 = 1;

pub(super) struct SimHost {
    pub(super) process: ProcessId,
    pub(super) client: Option<Client>,
    pub(super) workers: Vec<Worker>,
    pub(super) jobs: Vec<Vec<crate::script::Job>>,
    /// Hosts with the same number are processes of one machine.
    pub(super) machine: usize,
    pub(super) clock: Clock,
    pub(super) boot: u32,
    pub(super) unix_offset_ms: i64,
    pub(super) busy_until: TrueTime,
    /// The machine is down until then.
    pub(super) down_until: TrueTime,
    /// Nothing gets through to each node until then.
    pub(super) cut_until: Vec<TrueTime>,
    pub(super) next_lock: u64,
    /// The job of each lock.
    pub(super) wanted: BTreeMap<LockId, crate::script::Job>,
    /// Responses that clients of earlier lives ignored.
    pub(super) ignored: u64,
    pub(super) seed: [u8; 32],
    /// Draws from a generator of its own.
    pub(super) drawn: u64,
    pub(super) stale_now: bool,
    last_now: Option<Now>,
    /// True if it did not run for a while, so its work is late.
    late: bool,
    steps: u64,
    /// The stall of the next step, once it was asked for.
    stall: Option<Option<Stall>>,
    wake_ticket: u64,
    wake_at: Monotonic,
    sent: BTreeMap<(Peer, usize), u64>,
    /// The deadline that a caller's check reads; `None` once a check or the core has found it passed.
    pub(super) published: BTreeMap<LockId, Option<Monotonic>>,
    /// Locks of which a check has said that they are lost.
    pub(super) said_lost: BTreeSet<LockId>,
    /// The time of the last progress of an acquisition, by this clock.
    pub(super) active: BTreeMap<LockId, Monotonic>,
    pub(super) throttled: BTreeSet<LockId>,
    pub(super) woken: BTreeMap<LockId, TrueTime>,
    pub(super) tries: BTreeMap<LockId, Tries>,
    /// The time by which acquisitions with a limit must have ended.
    pub(super) patience: BTreeMap<LockId, Monotonic>,
}

/// The cost of an acquisition so far.
#[derive(Clone, Copy, Default)]
pub(super) struct Tries {
    pub(super) since: Monotonic,
    pub(super) sends: u64,
    pub(super) wakeups: u64,
    pub(super) renewed_since: Monotonic,
    pub(super) renewals: u64,
}

impl SimHost {
    pub(super) fn new(n: usize, spec: &Spec, script: &Script) -> Self {
        let stream = Stream::new(script.seed.unwrap_or(0), "client").of(n as u64);
        // Clocks do not agree on the time; on one machine they do.
        let offset = if script.world.kernels_apart { n as u64 * 77_000_000_000 } else { 0 };
        Self {
            process: ProcessId { host: n, n: 0 },
            client: None,
            workers: Vec::new(),
            jobs: spec.workers.clone(),
            machine: if script.world.one_kernel() { 0 } else { n },
            clock: Clock::new(1_000_000_000_000 + offset, spec.rate_ppm),
            boot: if script.world.one_kernel() { FIRST_BOOT } else { u32::try_from(n + 1).unwrap_or(u32::MAX) },
            unix_offset_ms: spec.unix_offset_ms,
            busy_until: TrueTime(0),
            down_until: TrueTime(0),
            cut_until: vec![TrueTime(0); script.world.specs().len()],
            next_lock: 0,
            wanted: BTreeMap::new(),
            ignored: 0,
            seed: std::array::from_fn(|at| stream.at(at as u64).to_le_bytes()[0]),
            drawn: 0,
            stale_now: spec.stale_now,
            last_now: None,
            late: false,
            steps: 0,
            stall: None,
            wake_ticket: 0,
            wake_at: Monotonic::FAR,
            sent: BTreeMap::new(),
            published: BTreeMap::new(),
            said_lost: BTreeSet::new(),
            active: BTreeMap::new(),
            throttled: BTreeSet::new(),
            woken: BTreeMap::new(),
            tries: BTreeMap::new(),
            patience: BTreeMap::new(),
        }
    }

    /// Moves work that was due while the process did not run.
    pub(super) fn catch_up(&mut self, now: Now, request_timeout: Duration) {
        if std::mem::take(&mut self.late) {
            self.active.values_mut().for_each(|since| *since = now.monotonic);
            let grace = now.monotonic.plus(request_timeout * 4);
            self.patience.values_mut().for_each(|until| *until = grace.max(*until));
        }
    }

    pub(super) fn now(&self, at: TrueTime) -> Now {
        let unix = i64::try_from(BEGAN_UNIX_MS + at.0 / 1_000_000).unwrap_or(i64::MAX);
        let unix_ms = u64::try_from(unix.saturating_add(self.unix_offset_ms)).unwrap_or(0);
        Now { monotonic: Monotonic::from_ns(self.clock.shows(at)), unix_ms }
    }

    /// The number of the next message to a peer.
    pub(super) fn number(&mut self, to: Peer, node: usize) -> u64 {
        let n = self.sent.entry((to, node)).or_default();
        *n += 1;
        *n
    }

    pub(super) fn forget_lock(&mut self, lock: LockId) {
        self.published.remove(&lock);
        self.active.remove(&lock);
        self.throttled.remove(&lock);
        self.woken.remove(&lock);
        self.tries.remove(&lock);
        self.patience.remove(&lock);
    }
}

fn id(node: usize) -> NodeId {
    NodeId::new(u16::try_from(node).unwrap_or(u16::MAX))
}

impl World<'_> {
    /// The clocks of a host as a store inside it would read them.
    pub(super) fn store_now(&self, host: usize) -> StoreNow {
        let host = &self.hosts[host];
        let now = host.now(self.now);
        let mut boot = [0; 16];
        boot[..4].copy_from_slice(&host.boot.to_le_bytes());
        StoreNow { boot: BootId(boot), uptime: now.monotonic, unix_ms: now.unix_ms }
    }

    /// A process comes to process.
    pub(super) fn start(&mut self, n: usize) {
        if self.healed && n < self.script.hosts.len() {
            return;
        }
        let config = self.config.clone();
        let host = &mut self.hosts[n];
        if host.client.is_some() {
            return;
        }
        if host.down_until > self.now {
            let at = host.down_until;
            return self.push(at, Due::Start { host: n });
        }
        host.process.n += 1;
        host.busy_until = self.now;
        host.last_now = None;
        host.wake_at = Monotonic::FAR;
        let now = host.now(self.now);
        host.seed[31] = host.seed[31].wrapping_add(1);
        host.client = Some(Client::new(config, host.seed, now));
        self.record(|recorder, now| recorder.lives(n, now));
        self.start_workers(n);
    }

    /// A process ends, with all that it believed.
    pub(super) fn kill(&mut self, n: usize) {
        let Some(client) = self.hosts[n].client.take() else { return };
        self.hangs_up(n);
        let host = &mut self.hosts[n];
        host.ignored += client.stats().ignored_responses;
        host.stall = None;
        for lock in host.published.keys().copied().collect::<Vec<_>>() {
            host.forget_lock(lock);
        }
        let process = host.process;
        host.active.clear();
        host.throttled.clear();
        host.woken.clear();
        host.tries.clear();
        host.patience.clear();
        for belief in self.ledger.died(process) {
            self.record(|recorder, now| recorder.belief_ends(process, belief.lock, now, "crashed"));
        }
        self.record(|recorder, now| recorder.dies(n, now));
    }

    /// Something reaches a process: as soon as it runs, it reads its clock and hands it in.
    pub(super) fn step(&mut self, process: ProcessId, input: Input) {
        if !self.is_alive(process) {
            return;
        }
        let host = &mut self.hosts[process.host];
        if matches!(input, Input::Wake { ticket } if ticket != host.wake_ticket) {
            return;
        }
        if host.busy_until > self.now {
            let at = host.busy_until;
            return self.push(at, Due::Client { process, input });
        }
        let stall = match host.stall.take() {
            Some(drawn) => drawn,
            None => {
                host.steps += 1;
                let n = host.steps;
                self.schedule.stall(process.host, n)
            }
        };
        if let Some(Stall { place: StallPoint::Before, for_ns, .. }) = stall {
            self.counts.strike(Struck::StalledBefore);
            self.hosts[process.host].stall = Some(None);
            self.pause(process.host, for_ns, "held up");
            let at = self.hosts[process.host].busy_until;
            return self.push(at, Due::Client { process, input });
        }
        self.hand_in(process, input, stall);
    }

    fn hand_in(&mut self, process: ProcessId, input: Input, stall: Option<Stall>) {
        match input {
            Input::Wake { .. } => {
                let fresh = self.fresh(process.host);
                self.drive(process, stall, |client, now| client.handle_timeout(&fresh, now));
            }
            Input::Reply { id, result } => {
                self.note_reply(process, id, &result);
                let placed = self.placed(process);
                self.drive(process, stall, |client, now| {
                    placed.into_iter().for_each(|(lock, reserved)| client.placed(lock, reserved));
                    client.handle_response(id, result, now);
                });
            }
            Input::Notified { resource } => {
                let name = self.resources[resource].clone();
                let waiting = self.waiting_on(process, resource);
                let at = self.now;
                self.hosts[process.host].woken.extend(waiting.iter().map(|lock| (*lock, at)));
                self.allow_a_try(process);
                self.drive(process, stall, |client, now| client.notified(&name, now));
                self.must_have_tried(process, &waiting, "a wake-up");
            }
            Input::Subscribed { resource, node } => {
                let name = self.resources[resource].clone();
                let waiting = self.waiting_on(process, resource);
                self.allow_a_try(process);
                self.drive(process, stall, |client, now| client.subscribed(id(node), &name, now));
                self.must_have_tried(process, &waiting, "its subscription was confirmed");
            }
            Input::Reserved { resource, lock, after } => {
                let name = self.resources[resource].clone();
                let mut waiting = self.waiting_on(process, resource);
                waiting.retain(|waits| *waits == lock);
                self.allow_a_try(process);
                self.drive(process, stall, |client, now| client.reserved(&name, lock, after, now));
                if after.is_zero() {
                    self.must_have_tried(process, &waiting, "its turn came");
                }
            }
            Input::Credentials { node } => {
                self.drive(process, stall, |client, now| client.credentials_renewed(id(node), now));
            }
        }
    }

    /// Each wake-up may cost a try out of turn.
    fn allow_a_try(&mut self, process: ProcessId) {
        for tries in self.hosts[process.host].tries.values_mut() {
            tries.wakeups += 1;
        }
    }

    /// The process does not run for a while.
    pub(super) fn pause(&mut self, n: usize, for_ns: u64, why: &'static str) {
        let until = self.after(for_ns);
        let host = &mut self.hosts[n];
        host.busy_until = host.busy_until.max(until);
        host.late = true;
        self.record(|recorder, now| recorder.pauses(n, now, until, why));
    }

    /// Hands something to the client, and carries out all that it wants.
    pub(super) fn drive<R>(
        &mut self,
        process: ProcessId,
        stall: Option<Stall>,
        hand_in: impl FnOnce(&mut Client, Now) -> R,
    ) -> Option<R> {
        let mut client = self.hosts[process.host].client.take()?;
        let fresh_now = self.hosts[process.host].now(self.now);
        let stale = self.hosts[process.host].last_now.filter(|_| self.hosts[process.host].stale_now);
        let now = stale.unwrap_or(fresh_now);
        let host = &mut self.hosts[process.host];
        host.last_now = Some(fresh_now);
        host.catch_up(now, self.config.request_timeout());
        let result = hand_in(&mut client, now);
        let mut outputs = Vec::new();
        let mut departures = Vec::new();
        let mut spins = 0;
        let wake_at = loop {
            match client.poll_output(now) {
                Output::WakeAt(at) if at <= now.monotonic && spins < 50 => {
                    spins += 1;
                    let fresh = self.fresh(process.host);
                    client.handle_timeout(&fresh, now);
                }
                Output::WakeAt(at) => break at,
                output @ (Output::Transmit(_)
                | Output::Event(_)
                | Output::Subscribe { .. }
                | Output::Unsubscribe { .. }
                | Output::NeedCredentials { .. }
                | Output::Rejected { .. }) => outputs.push(output),
            }
        };
        departures.extend(std::iter::from_fn(|| client.next_departure()));
        self.hosts[process.host].client = Some(client);
        if spins >= 50 {
            self.record_violation(Promise::Bounds, Some(process.host), None, "the client spins at one instant".into());
        }
        (self.now, process).hash(&mut self.digest);
        outputs.hash(&mut self.digest);

        let mut leaves = self.now;
        if let Some(Stall { place, for_ns, .. }) = stall {
            leaves = self.after(for_ns);
            if place == StallPoint::Process {
                self.counts.strike(Struck::StalledProcess);
                self.pause(process.host, for_ns, "held up before sending");
            } else {
                self.counts.strike(Struck::StalledDriver);
            }
        }
        departures.into_iter().for_each(|departure| self.depart(process, &departure, leaves));
        let mut events = Vec::new();
        for output in outputs {
            match output {
                Output::Transmit(transmit) => self.transmit(process, transmit, leaves, now),
                Output::Event(event) => {
                    self.note_event(process, &event);
                    events.push(event);
                }
                Output::Subscribe { resource, node } => self.subscribe(process, &resource, node, true, leaves),
                Output::Unsubscribe { resource, node } => self.subscribe(process, &resource, node, false, leaves),
                Output::NeedCredentials { node } => {
                    // As soon as possible, so that only the core's own pacing keeps it from asking without end.
                    let at = leaves.plus(Duration::from_nanos(self.script.world.latency_ns));
                    self.push(at, Due::Client { process, input: Input::Credentials { node: node.index() } });
                }
                Output::Rejected { .. } | Output::WakeAt(_) => {}
            }
        }
        self.look_after(process, now);
        if !events.is_empty() {
            if leaves > self.now {
                self.check_before_publishing(process, &events);
                self.push(leaves, Due::Publish { process, events });
            } else {
                self.publish(process, events);
            }
        }
        self.sleep_until(process, wake_at);
        result.into()
    }

    fn transmit(&mut self, process: ProcessId, transmit: Transmit, leaves: TrueTime, now: Now) {
        for op in &transmit.ops {
            let Some(resource) = self.number_of(&op.resource) else { continue };
            self.ledger.sent(leaves, process, &transmit, resource, op);
            let host = &mut self.hosts[process.host];
            host.active.insert(op.lock, now.monotonic);
            self.check_request(process, op, resource, now);
            let host = &mut self.hosts[process.host];
            if matches!(op.op, Op::Acquire(_) | Op::Read) {
                let tries = host.tries.entry(op.lock).or_default();
                tries.since = if tries.sends == 0 { now.monotonic } else { tries.since };
                tries.sends += 1;
            }
        }
        self.send(process, transmit, leaves);
    }

    pub(super) fn number_of(&self, resource: &leasehold_core::Resource) -> Option<usize> {
        self.resources.iter().position(|known| known == resource)
    }

    fn sleep_until(&mut self, process: ProcessId, at: Monotonic) {
        self.hosts[process.host].wake_at = at;
        self.set_alarm(process);
    }

    /// Sets the alarm for when the host's clock, as it runs now, shows the time that its client asked for.
    pub(super) fn set_alarm(&mut self, process: ProcessId) {
        let host = &mut self.hosts[process.host];
        host.wake_ticket += 1;
        let ticket = host.wake_ticket;
        if host.wake_at < Monotonic::FAR && host.client.is_some() {
            let at = host.clock.when(host.wake_at.ns());
            if at < TrueTime::FAR {
                self.push(at, Due::Client { process, input: Input::Wake { ticket } });
            }
        }
    }
}
