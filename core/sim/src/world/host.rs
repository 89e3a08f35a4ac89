//! A process around the real core: it reads its clock, hands in what arrived, and carries out what comes of it.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::Hash;
use std::time::Duration;

use leasehold_core::op::Op;
use leasehold_core::store::{BootId, StoreNow};
use leasehold_core::{Client, Event, Failure, LockId, LostReason, Monotonic, Now, Output, Transmit};

use super::worker::Worker;
use super::{Due, Tenure, World};
use crate::chance::Stream;
use crate::clock::{Clock, TrueTime};
use crate::counts::{Sometimes, Struck};
use crate::ledger::Life;
use crate::promise::Promise;
use crate::script::{Host as Spec, Peer, Place, Script, Stall};
use crate::store::BEGAN_UNIX_MS;

/// The boot in which all processes of a single machine begin.
pub(super) const FIRST_BOOT: u32 = 1;

pub(super) struct Host {
    pub(super) life: Life,
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
    /// Nothing gets through to the store until then.
    pub(super) cut_until: TrueTime,
    pub(super) next_lock: u64,
    /// What each lock is wanted for.
    pub(super) wanted: BTreeMap<LockId, crate::script::Job>,
    /// Responses that clients of earlier lives ignored.
    pub(super) ignored: u64,
    pub(super) seed: [u8; 32],
    /// Draws from a generator of its own.
    pub(super) drawn: u64,
    stale_now: bool,
    last_now: Option<Now>,
    /// It did not run for a while, so what it was to do in time is late.
    late: bool,
    steps: u64,
    /// What holds up the next step, once it was asked for.
    stall: Option<Option<Stall>>,
    wake_ticket: u64,
    wake_at: Monotonic,
    sent: BTreeMap<Peer, u64>,
    /// The deadline that a caller's check reads; `None` once a check or the core has found it passed.
    published: BTreeMap<LockId, Option<Monotonic>>,
    /// Locks of which a check has said that they are lost.
    said_lost: BTreeSet<LockId>,
    /// When something last moved for an acquisition, by this clock.
    pub(super) active: BTreeMap<LockId, Monotonic>,
    pub(super) throttled: BTreeSet<LockId>,
    pub(super) woken: BTreeMap<LockId, TrueTime>,
    pub(super) tries: BTreeMap<LockId, Tries>,
    /// When acquisitions that do not wait for ever must have ended.
    pub(super) patience: BTreeMap<LockId, Monotonic>,
}

/// What an acquisition has cost so far.
#[derive(Clone, Copy, Default)]
pub(super) struct Tries {
    pub(super) since: Monotonic,
    pub(super) sends: u64,
    pub(super) wakeups: u64,
    pub(super) renewed_since: Monotonic,
    pub(super) renewals: u64,
}

impl Host {
    pub(super) fn new(n: usize, spec: &Spec, script: &Script) -> Self {
        let stream = Stream::new(script.seed.unwrap_or(0), "client").of(n as u64);
        // Clocks do not agree on the time; on one machine they do.
        let offset = if script.world.kernels_apart { n as u64 * 77_000_000_000 } else { 0 };
        Self {
            life: Life { host: n, n: 0 },
            client: None,
            workers: Vec::new(),
            jobs: spec.workers.clone(),
            machine: if script.world.one_kernel() { 0 } else { n },
            clock: Clock::new(1_000_000_000_000 + offset, spec.rate_ppm),
            boot: if script.world.one_kernel() { FIRST_BOOT } else { u32::try_from(n + 1).unwrap_or(u32::MAX) },
            unix_offset_ms: spec.unix_offset_ms,
            busy_until: TrueTime(0),
            down_until: TrueTime(0),
            cut_until: TrueTime(0),
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

    pub(super) fn now(&self, at: TrueTime) -> Now {
        let unix = i64::try_from(BEGAN_UNIX_MS + at.0 / 1_000_000).unwrap_or(i64::MAX);
        let unix_ms = u64::try_from(unix.saturating_add(self.unix_offset_ms)).unwrap_or(0);
        Now { monotonic: Monotonic::from_ns(self.clock.shows(at)), unix_ms }
    }

    /// The number of the next message to a peer.
    pub(super) fn number(&mut self, to: Peer) -> u64 {
        let n = self.sent.entry(to).or_default();
        *n += 1;
        *n
    }

    fn forget_lock(&mut self, lock: LockId) {
        self.published.remove(&lock);
        self.active.remove(&lock);
        self.throttled.remove(&lock);
        self.woken.remove(&lock);
        self.tries.remove(&lock);
        self.patience.remove(&lock);
    }
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

    /// A process comes to life.
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
        host.life.n += 1;
        host.busy_until = self.now;
        host.last_now = None;
        host.wake_at = Monotonic::FAR;
        let now = host.now(self.now);
        host.seed[31] = host.seed[31].wrapping_add(1);
        host.client = Some(Client::new(config, host.seed, now));
        self.tell(|teller, now| teller.lives(n, now));
        self.employ(n);
    }

    /// A process ends, with all that it believed.
    pub(super) fn kill(&mut self, n: usize) {
        let Some(client) = self.hosts[n].client.take() else { return };
        let host = &mut self.hosts[n];
        host.ignored += client.stats().ignored_responses;
        host.stall = None;
        for lock in host.published.keys().copied().collect::<Vec<_>>() {
            host.forget_lock(lock);
        }
        let life = host.life;
        host.active.clear();
        host.throttled.clear();
        host.woken.clear();
        host.tries.clear();
        host.patience.clear();
        for belief in self.ledger.died(life) {
            self.tell(|teller, now| teller.belief_ends(life, belief.lock, now, "crashed"));
        }
        self.tell(|teller, now| teller.dies(n, now));
    }

    /// Something reaches a process: as soon as it runs, it reads its clock and hands it in.
    pub(super) fn step(&mut self, due: Due) {
        let (Due::Wake { life, .. }
        | Due::Reply { life, .. }
        | Due::Notified { life, .. }
        | Due::Subscribed { life, .. }
        | Due::Credentials { life }) = due
        else {
            return;
        };
        if !self.is_alive(life) {
            return;
        }
        if let Due::Wake { ticket, .. } = due
            && ticket != self.hosts[life.host].wake_ticket
        {
            return;
        }
        let host = &mut self.hosts[life.host];
        if host.busy_until > self.now {
            let at = host.busy_until;
            return self.push(at, due);
        }
        let stall = match host.stall.take() {
            Some(drawn) => drawn,
            None => {
                host.steps += 1;
                let n = host.steps;
                self.fates.stall(life.host, n)
            }
        };
        if let Some(Stall { place: Place::Before, for_ns, .. }) = stall {
            self.counts.strike(Struck::StalledBefore);
            self.hosts[life.host].stall = Some(None);
            self.pause(life.host, for_ns, "held up");
            let at = self.hosts[life.host].busy_until;
            return self.push(at, due);
        }
        match due {
            Due::Wake { .. } => {
                let fresh = self.fresh(life.host);
                self.drive(life, stall, |client, now| client.handle_timeout(&fresh, now));
            }
            Due::Reply { id, result, .. } => {
                self.note_reply(life, id, &result);
                self.drive(life, stall, |client, now| client.handle_response(id, result, now));
            }
            Due::Notified { resource, .. } => {
                let name = self.resources[resource].clone();
                let waiting = self.waiting_on(life, resource);
                let at = self.now;
                for lock in &waiting {
                    self.hosts[life.host].woken.insert(*lock, at);
                }
                for tries in self.hosts[life.host].tries.values_mut() {
                    tries.wakeups += 1;
                }
                self.drive(life, stall, |client, now| client.notified(&name, now));
                self.must_have_tried(life, &waiting, "a wake-up");
            }
            Due::Subscribed { resource, .. } => {
                let name = self.resources[resource].clone();
                let waiting = self.waiting_on(life, resource);
                for tries in self.hosts[life.host].tries.values_mut() {
                    tries.wakeups += 1;
                }
                let node = leasehold_core::NodeId::new(0);
                self.drive(life, stall, |client, now| client.subscribed(node, &name, now));
                self.must_have_tried(life, &waiting, "its subscription was confirmed");
            }
            Due::Credentials { .. } => {
                let node = leasehold_core::NodeId::new(0);
                self.drive(life, stall, |client, now| client.credentials_renewed(node, now));
            }
            Due::Worker { .. }
            | Due::Publish { .. }
            | Due::Arrive(_)
            | Due::Watch { .. }
            | Due::AtRegister { .. }
            | Due::FromRegister { .. }
            | Due::Stranger(_)
            | Due::Fault(_)
            | Due::FaultOver(_)
            | Due::Start { .. }
            | Due::Probe { .. }
            | Due::Check { .. }
            | Due::Heal
            | Due::Judge => {}
        }
    }

    /// The process does not run for a while.
    pub(super) fn pause(&mut self, n: usize, for_ns: u64, why: &'static str) {
        let until = self.after(for_ns);
        let host = &mut self.hosts[n];
        host.busy_until = host.busy_until.max(until);
        host.late = true;
        self.tell(|teller, now| teller.pauses(n, now, until, why));
    }

    /// Hands something to the client, and carries out all that it wants.
    pub(super) fn drive<R>(
        &mut self,
        life: Life,
        stall: Option<Stall>,
        hand_in: impl FnOnce(&mut Client, Now) -> R,
    ) -> Option<R> {
        let mut client = self.hosts[life.host].client.take()?;
        let fresh_now = self.hosts[life.host].now(self.now);
        let stale = self.hosts[life.host].last_now.filter(|_| self.hosts[life.host].stale_now);
        let now = stale.unwrap_or(fresh_now);
        let host = &mut self.hosts[life.host];
        host.last_now = Some(fresh_now);
        if std::mem::take(&mut host.late) {
            host.active.values_mut().for_each(|since| *since = now.monotonic);
            let grace = now.monotonic.plus(self.config.request_timeout() * 4);
            host.patience.values_mut().for_each(|until| *until = grace.max(*until));
        }
        let result = hand_in(&mut client, now);
        let mut outputs = Vec::new();
        let mut spins = 0;
        let wake_at = loop {
            match client.poll_output(now) {
                Output::WakeAt(at) if at <= now.monotonic && spins < 50 => {
                    spins += 1;
                    let fresh = self.fresh(life.host);
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
        self.hosts[life.host].client = Some(client);
        if spins >= 50 {
            self.accuse(Promise::Bounds, Some(life.host), None, "the client spins at one instant".into());
        }
        (self.now, life).hash(&mut self.digest);
        outputs.hash(&mut self.digest);

        let mut leaves = self.now;
        if let Some(Stall { place, for_ns, .. }) = stall {
            leaves = self.after(for_ns);
            if place == Place::Process {
                self.counts.strike(Struck::StalledProcess);
                self.pause(life.host, for_ns, "held up before sending");
            } else {
                self.counts.strike(Struck::StalledDriver);
            }
        }
        let mut events = Vec::new();
        for output in outputs {
            match output {
                Output::Transmit(transmit) => self.transmit(life, transmit, leaves, now),
                Output::Event(event) => {
                    self.note_event(life, &event);
                    events.push(event);
                }
                Output::Subscribe { resource, .. } => self.subscribe(life, &resource, true, leaves),
                Output::Unsubscribe { resource, .. } => self.subscribe(life, &resource, false, leaves),
                Output::NeedCredentials { .. } => {
                    // As fast as can be, so that nothing but the core's own pace keeps it from asking for ever.
                    let at = leaves.plus(Duration::from_nanos(self.script.world.latency_ns));
                    self.push(at, Due::Credentials { life });
                }
                Output::Rejected { .. } | Output::WakeAt(_) => {}
            }
        }
        self.look_after(life, now);
        if !events.is_empty() {
            if leaves > self.now {
                self.check_before_publishing(life, &events);
                self.push(leaves, Due::Publish { life, events });
            } else {
                self.publish(life, events);
            }
        }
        self.sleep_until(life, wake_at);
        result.into()
    }

    fn transmit(&mut self, life: Life, transmit: Transmit, leaves: TrueTime, now: Now) {
        for op in &transmit.ops {
            let Some(resource) = self.number_of(&op.resource) else { continue };
            self.ledger.sent(leaves, life, &transmit, resource, op);
            let host = &mut self.hosts[life.host];
            host.active.insert(op.lock, now.monotonic);
            self.check_request(life, op, resource, now);
            let host = &mut self.hosts[life.host];
            if matches!(op.op, Op::Acquire(_) | Op::Read) {
                let tries = host.tries.entry(op.lock).or_default();
                tries.since = if tries.sends == 0 { now.monotonic } else { tries.since };
                tries.sends += 1;
            }
        }
        self.send(life, transmit, leaves);
    }

    pub(super) fn number_of(&self, resource: &leasehold_core::Resource) -> Option<usize> {
        self.resources.iter().position(|known| known == resource)
    }

    fn sleep_until(&mut self, life: Life, at: Monotonic) {
        self.hosts[life.host].wake_at = at;
        self.set_alarm(life);
    }

    /// Sets the alarm for when the host's clock, as it runs now, shows the time that its client asked for.
    pub(super) fn set_alarm(&mut self, life: Life) {
        let host = &mut self.hosts[life.host];
        host.wake_ticket += 1;
        let ticket = host.wake_ticket;
        if host.wake_at < Monotonic::FAR && host.client.is_some() {
            let at = host.clock.when(host.wake_at.ns());
            if at < TrueTime::FAR {
                self.push(at, Due::Wake { life, ticket });
            }
        }
    }

    /// The books, at the instant at which the core has decided.
    fn note_event(&mut self, life: Life, event: &Event) {
        let lock = event.lock();
        match event {
            Event::Acquired { token, deadline, recovered, .. } => {
                let Some(resource) = self.resource_of(life, lock) else { return };
                let granted = self.hosts[life.host].now(self.now).monotonic;
                if self.ledger.granted(self.now, life, lock, resource, *token, *deadline, granted) {
                    self.counts.see(Sometimes::Observed);
                }
                self.see_grant(life, lock, resource, *recovered);
                self.tell(|teller, now| teller.believes(life, lock, resource, *token, now));
                self.probe_before(life, *deadline, resource);
                if self.wanted.remove(&resource).is_some() {
                    self.counts.see(Sometimes::Succeeded);
                }
            }
            Event::Renewed { deadline, recovered, .. } => {
                self.counts.see(if *recovered { Sometimes::RecoveredRenewal } else { Sometimes::Renewed });
                self.ledger.moved(self.now, life, lock, *deadline, true);
                let belief = self.ledger.belief(life, lock);
                if belief.is_some_and(|belief| belief.renewals == 3) {
                    self.counts.see(Sometimes::LongLease);
                }
                if let Some(resource) = self.resource_of(life, lock) {
                    self.probe_before(life, *deadline, resource);
                }
            }
            Event::Shortened { deadline, .. } => self.ledger.moved(self.now, life, lock, *deadline, false),
            Event::Lost { reason, .. } => {
                let by_clock = matches!(reason, LostReason::Expired | LostReason::MaxHold);
                self.counts.see(if by_clock { Sometimes::LostByClock } else { Sometimes::LostToOther });
                match self.ledger.ended(life, lock) {
                    None => {
                        let text = format!("lock {lock} is told lost, though it was over");
                        self.accuse(Promise::Loss, Some(life.host), None, text);
                    }
                    Some(belief) if !by_clock => {
                        let text = format!("lock {lock} is lost before its deadline: {reason}");
                        self.accuse(Promise::Backed, Some(life.host), Some(belief.resource), text);
                    }
                    Some(_) => {}
                }
                self.tell(|teller, now| teller.belief_ends(life, lock, now, reason.name()));
            }
            Event::Released { confirmed, .. } => {
                self.counts.see(if *confirmed { Sometimes::Released } else { Sometimes::ReleasedUnconfirmed });
            }
            Event::Expiring { .. } => self.counts.see(Sometimes::Expiring),
            Event::RenewDelayed { .. } => self.counts.see(Sometimes::RenewDelayed),
            Event::Failed { failure, .. } => {
                if let (Failure::Refused(_), Some(resource)) = (failure, self.resource_of(life, lock)) {
                    self.wanted.remove(&resource);
                }
                match failure {
                    Failure::Busy { .. } => self.counts.see(Sometimes::Busy),
                    Failure::TimedOut { .. } => self.counts.see(Sometimes::TimedOut),
                    Failure::Cancelled => self.counts.see(Sometimes::Cancelled),
                    Failure::Unavailable(_) | Failure::Throttled(_) => self.counts.see(Sometimes::Unavailable),
                    Failure::Refused(_) => self.counts.see(Sometimes::Refused),
                    Failure::Abstains { .. } => {}
                }
            }
            Event::Contended { .. } => {}
        }
    }

    fn see_grant(&mut self, life: Life, lock: LockId, resource: usize, recovered: bool) {
        self.counts.see(Sometimes::Granted);
        if recovered {
            self.counts.see(Sometimes::RecoveredAcquire);
        }
        let latency = self.script.world.latency_ns;
        let host = &mut self.hosts[life.host];
        if host.woken.get(&lock).is_some_and(|at| self.now.since(*at) <= Duration::from_nanos(latency * 3)) {
            self.counts.see(Sometimes::WokenUp);
        }
        let tenure = Tenure { life, lock, given_back: false };
        if self.last_held.insert(resource, tenure).is_some_and(|last| !last.given_back) {
            self.counts.see(Sometimes::Takeover);
        }
        for n in 0..self.strangers.len() {
            if let Some(until) = self.strangers[n].believes_until(resource).filter(|until| *until > self.now) {
                let text = format!("granted while a foreign client believes, for another {:?}", until.since(self.now));
                self.accuse(Promise::OneHolder, Some(life.host), Some(resource), text);
            }
        }
    }

    /// What a caller's check finds. One that finds the deadline passed makes sure that it stays lost.
    pub(super) fn check(&mut self, life: Life, lock: LockId) -> bool {
        let host = &mut self.hosts[life.host];
        let now = host.now(self.now).monotonic;
        match host.published.get_mut(&lock) {
            Some(published) if published.is_some_and(|deadline| now < deadline) => {
                if host.said_lost.contains(&lock) {
                    let text = format!("lock {lock} is valid again, after a check has said that it is lost");
                    self.accuse(Promise::Loss, Some(life.host), None, text);
                }
                true
            }
            Some(published) => {
                *published = None;
                host.said_lost.insert(lock);
                self.declare_lost(life, lock);
                false
            }
            None => false,
        }
    }

    /// While a renewal is not published, a caller that asks at the old deadline is told that the lease is lost.
    fn check_before_publishing(&mut self, life: Life, events: &[Event]) {
        for event in events.iter().filter(|event| matches!(event, Event::Renewed { .. })) {
            let host = &self.hosts[life.host];
            if let Some(Some(deadline)) = host.published.get(&event.lock()) {
                let at = host.clock.when(deadline.ns());
                self.push(at, Due::Check { life, lock: event.lock() });
            }
        }
    }

    pub(super) fn check_just_then(&mut self, life: Life, lock: LockId) {
        if self.is_alive(life) && self.hosts[life.host].busy_until <= self.now {
            self.check(life, lock);
        }
    }

    fn declare_lost(&mut self, life: Life, lock: LockId) {
        let was_held = self.ledger.belief(life, lock).is_some();
        let told = self.drive(life, None, |client, now| client.declare_lost(lock, now));
        if was_held && told == Some(Ok(())) {
            self.counts.see(Sometimes::DeclaredLost);
            if self.ledger.belief(life, lock).is_some() {
                let text = format!("lock {lock} was declared lost, and is held all the same");
                self.accuse(Promise::Loss, Some(life.host), None, text);
            }
        }
    }

    /// Callers learn what was decided; a deadline is published only if no check has found the old one passed.
    pub(super) fn publish(&mut self, life: Life, events: Vec<Event>) {
        if !self.is_alive(life) {
            return;
        }
        let busy_until = self.hosts[life.host].busy_until;
        if busy_until > self.now {
            return self.push(busy_until, Due::Publish { life, events });
        }
        for event in events {
            let lock = event.lock();
            let host = &mut self.hosts[life.host];
            let now = host.now(self.now).monotonic;
            match &event {
                Event::Acquired { deadline, .. } => {
                    host.published.insert(lock, Some(*deadline).filter(|deadline| now < *deadline));
                }
                Event::Renewed { deadline, .. } | Event::Shortened { deadline, .. } => {
                    let published = host.published.entry(lock).or_insert(None);
                    *published = published.filter(|before| now < *before).map(|_| *deadline);
                }
                Event::Lost { .. } | Event::Released { .. } | Event::Failed { .. } => host.forget_lock(lock),
                Event::Contended { .. } | Event::RenewDelayed { .. } | Event::Expiring { .. } => {}
            }
            let host = &self.hosts[life.host];
            match host.published.get(&lock) {
                Some(None) => self.declare_lost(life, lock),
                Some(Some(_)) if host.said_lost.contains(&lock) => {
                    let text = format!("lock {lock} is published as held, after a check has said that it is lost");
                    self.accuse(Promise::Loss, Some(life.host), None, text);
                }
                Some(Some(_)) | None => {}
            }
            self.worker_hears(life, &event);
        }
    }
}
