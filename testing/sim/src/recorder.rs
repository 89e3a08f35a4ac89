//! Writes down the story of a run while it happens.

use std::collections::BTreeMap;

use leasehold_core::op::{Op, Outcome, Refusal, TransportFault};
use leasehold_core::{LockId, Nonce, Token, Transmit};

use crate::clock::TrueTime;
use crate::ledger::ProcessId;
use crate::promise::Violation;
use crate::register::{Ask, Reply};
use crate::script::{Host, Script};
use crate::store::{By, Kind, StoredRecord};
use crate::timeline::{Arrow, ArrowFate, ArrowKind, Lane, LaneKind, Mark, MarkKind, Span, SpanKind, Timeline};

/// The recorder; see the module.
#[derive(Debug)]
pub(crate) struct Recorder {
    timeline: Timeline,
    hosts: Vec<usize>,
    stores: Vec<usize>,
    registers: Vec<usize>,
    dead_since: BTreeMap<usize, TrueTime>,
    waits: BTreeMap<(ProcessId, LockId), (usize, TrueTime)>,
    beliefs: BTreeMap<(ProcessId, LockId), (usize, Token, TrueTime)>,
    records: BTreeMap<(usize, usize), (By, TrueTime, Option<TrueTime>)>,
    nonces: BTreeMap<Nonce, (usize, Option<u64>)>,
}

/// The journey of a message.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Journey {
    /// The resource, by number.
    pub(crate) resource: Option<usize>,
    pub(crate) sent: TrueTime,
    /// `None` if it gets lost.
    pub(crate) arrives: Option<TrueTime>,
    /// The time at which a copy of it arrives.
    pub(crate) copy: Option<TrueTime>,
    /// It takes longer than usual.
    pub(crate) delayed: bool,
}

impl Recorder {
    pub(crate) fn new(script: &Script) -> Self {
        let mut timeline = Timeline { title: script.name.clone(), ..Timeline::default() };
        let mut hosts = Vec::new();
        let mut lane = |name: String, kind, detail: String| {
            timeline.lanes.push(Lane { name, kind, detail });
            timeline.lanes.len() - 1
        };
        for (n, host) in script.hosts.iter().enumerate() {
            hosts.push(lane(format!("host {n}"), LaneKind::Host, clock_detail(host)));
        }
        let mut stores = Vec::new();
        for (n, spec) in script.world.specs().iter().enumerate() {
            let kind = match spec.kind {
                Kind::Sqlite if script.world.kernels_apart => "SQLite-like, kernels apart",
                Kind::Sqlite => "SQLite-like",
                Kind::Redis if spec.durable => "Redis-like, declared durable",
                Kind::Redis => "Redis-like",
                Kind::Dynamodb => "DynamoDB-like",
                Kind::Memory => "reference node",
            };
            let name = if script.world.is_quorum() { format!("node {n}") } else { "store".into() };
            stores.push(lane(name, LaneKind::Store, kind.into()));
        }
        let registers = (0..script.world.resources)
            .map(|n| lane(format!("register {n}"), LaneKind::Register, format!("guarded, behind lock r{n}")));
        let registers = registers.collect();
        let dead_since = hosts.iter().map(|lane| (*lane, TrueTime(0))).collect();
        Self {
            timeline,
            hosts,
            stores,
            registers,
            dead_since,
            waits: BTreeMap::new(),
            beliefs: BTreeMap::new(),
            records: BTreeMap::new(),
            nonces: BTreeMap::new(),
        }
    }

    pub(crate) fn newcomer(&mut self, n: usize) {
        let lane = Lane { name: "newcomer".into(), kind: LaneKind::Host, detail: "wants every lock".into() };
        self.timeline.lanes.push(lane);
        let lane = self.timeline.lanes.len() - 1;
        self.hosts.resize(n + 1, lane);
    }

    pub(crate) fn lives(&mut self, n: usize, now: TrueTime) {
        if let Some(from) = self.dead_since.remove(&self.hosts[n])
            && from < now
        {
            self.span(self.hosts[n], SpanKind::Dead, None, None, None, (from, now), "not running");
        }
    }

    pub(crate) fn dies(&mut self, n: usize, now: TrueTime) {
        self.dead_since.insert(self.hosts[n], now);
        let ended: Vec<_> = self.waits.keys().filter(|(process, _)| process.host == n).copied().collect();
        for (process, lock) in ended {
            self.waits_no_more(process, lock, now);
        }
    }

    pub(crate) fn pauses(&mut self, n: usize, from: TrueTime, to: TrueTime, why: &str) {
        self.span(self.hosts[n], SpanKind::Paused, None, None, None, (from, to), why);
    }

    pub(crate) fn waits(&mut self, process: ProcessId, lock: LockId, resource: usize, now: TrueTime) {
        self.waits.insert((process, lock), (resource, now));
    }

    pub(crate) fn waits_no_more(&mut self, process: ProcessId, lock: LockId, now: TrueTime) {
        if let Some((resource, from)) = self.waits.remove(&(process, lock)) {
            let lane = self.hosts[process.host];
            self.span(lane, SpanKind::Waiting, Some(resource), Some(lane), None, (from, now), "waits");
        }
    }

    pub(crate) fn believes(&mut self, process: ProcessId, lock: LockId, resource: usize, token: Token, now: TrueTime) {
        self.beliefs.insert((process, lock), (resource, token, now));
        self.mark(
            Some(self.hosts[process.host]),
            Some(resource),
            now,
            MarkKind::Event,
            format!("acquired, token {token}"),
        );
    }

    pub(crate) fn belief_ends(&mut self, process: ProcessId, lock: LockId, now: TrueTime, why: &str) {
        if let Some((resource, token, from)) = self.beliefs.remove(&(process, lock)) {
            let lane = self.hosts[process.host];
            self.span(lane, SpanKind::Belief, Some(resource), Some(lane), Some(token.get()), (from, now), why);
            self.mark(Some(lane), Some(resource), now, MarkKind::Event, format!("{why}, token {token}"));
        }
    }

    pub(crate) fn sends(&mut self, host: usize, transmit: &Transmit, journey: Journey) {
        let Some(first) = transmit.ops.first() else { return };
        let lane = self.hosts[host];
        let (kind, what) = match &first.op {
            Op::Acquire(op) => {
                self.nonces.entry(op.nonce).or_insert((lane, None));
                (ArrowKind::Acquire, format!("acquire {:?} send {}", op.nonce, op.seq))
            }
            Op::Renew(op) => (ArrowKind::Renew, format!("renew {:?} send {}", op.nonce, op.seq)),
            Op::Release(op) => (ArrowKind::Release, format!("release {:?}", op.nonce)),
            Op::Finish(op) => (ArrowKind::Release, format!("finish {:?}", op.nonce)),
            Op::Revoke(op) => (ArrowKind::Release, format!("revoke {:?}", op.nonce)),
            Op::Tell(_) => (ArrowKind::Release, "tell".into()),
            Op::Raise(op) => (ArrowKind::Raise, format!("raise to {}", op.token)),
            Op::Read => (ArrowKind::Read, "look".into()),
        };
        let more = if transmit.ops.len() > 1 { format!(" and {} more", transmit.ops.len() - 1) } else { String::new() };
        let label = format!("{what} of {}{more}", first.resource);
        let node = self.stores[transmit.node.index()];
        self.arrows(lane, node, kind, journey, label);
    }

    pub(crate) fn answers(
        &mut self,
        node: usize,
        host: usize,
        result: &Result<Vec<Outcome>, TransportFault>,
        journey: Journey,
    ) {
        let (kind, label) = match result {
            Ok(outcomes) => match outcomes.first() {
                Some(Outcome::Applied(applied)) => (ArrowKind::Applied, applied_words(applied)),
                Some(Outcome::NotApplied(refusal)) => (ArrowKind::NotApplied, refusal_words(refusal)),
                Some(Outcome::Unknown(fault)) => (ArrowKind::Unknown, fault.to_string()),
                None => (ArrowKind::Unknown, "nothing".into()),
            },
            Err(TransportFault::NotSent(fault) | TransportFault::Unknown(fault)) => {
                (ArrowKind::Unknown, fault.to_string())
            }
        };
        self.arrows(self.stores[node], self.hosts[host], kind, journey, label);
    }

    pub(crate) fn asks_register(&mut self, host: usize, resource: usize, token: Token, ask: Ask, journey: Journey) {
        let label = ask_words(ask, token);
        self.arrows(self.hosts[host], self.registers[resource], ArrowKind::Write, journey, label);
    }

    pub(crate) fn register_says(&mut self, resource: usize, token: Token, ask: Ask, reply: Reply, now: TrueTime) {
        let kind = if reply == Reply::Refused { MarkKind::Refused } else { MarkKind::Accepted };
        self.mark(Some(self.registers[resource]), Some(resource), now, kind, ask_words(ask, token));
    }

    pub(crate) fn fault(&mut self, host: Option<usize>, what: &str, now: TrueTime) {
        let lane = host.map(|n| self.hosts[n]);
        self.mark(lane, None, now, MarkKind::Fault, what.to_owned());
    }

    pub(crate) fn node_fault(&mut self, node: usize, what: &str, now: TrueTime) {
        self.mark(Some(self.stores[node]), None, now, MarkKind::Fault, what.to_owned());
    }

    pub(crate) fn host_trouble(&mut self, host: usize, what: &str, from: TrueTime, for_ns: u64) {
        self.trouble(self.hosts[host], what, from, for_ns);
    }

    pub(crate) fn node_trouble(&mut self, node: usize, what: &str, from: TrueTime, for_ns: u64) {
        self.trouble(self.stores[node], what, from, for_ns);
    }

    fn trouble(&mut self, lane: usize, what: &str, from: TrueTime, for_ns: u64) {
        let to = from.plus(std::time::Duration::from_nanos(for_ns));
        self.span(lane, SpanKind::Fault, None, None, None, (from, to), what);
    }

    /// Records the state of the store, with the counter.
    pub(crate) fn record(
        &mut self,
        node: usize,
        resource: usize,
        stored: Option<StoredRecord>,
        counter: Option<Token>,
        now: TrueTime,
    ) {
        let same = |(by, ..): &(By, TrueTime, Option<TrueTime>)| stored.is_some_and(|stored| stored.by == *by);
        if let Some(open) = self.records.get_mut(&(node, resource)).filter(|open| same(open)) {
            open.2 = stored.and_then(|stored| stored.until);
            return;
        }
        self.close_record(node, resource, now);
        if let Some(stored) = stored {
            if let By::Attempt(nonce) = stored.by
                && let Some((_, token)) = self.nonces.get_mut(&nonce)
            {
                *token = counter.map(Token::get);
            }
            self.records.insert((node, resource), (stored.by, now, stored.until));
        }
    }

    fn close_record(&mut self, node: usize, resource: usize, now: TrueTime) {
        let Some((by, from, until)) = self.records.remove(&(node, resource)) else { return };
        let to = until.map_or(now, |until| until.min(now));
        let (owner, token, label) = match by {
            By::Attempt(nonce) => {
                let (owner, token) = self.nonces.get(&nonce).copied().unzip();
                (owner, token.flatten(), format!("record of {nonce:?}"))
            }
            By::Foreign(n) => (None, None, format!("record of foreign client {n}")),
        };
        self.span(self.stores[node], SpanKind::Record, Some(resource), owner, token, (from, to), &label);
    }

    pub(crate) fn finish(mut self, now: TrueTime, violations: &[Violation], hosts: &[Host]) -> Timeline {
        for (process, lock) in self.waits.keys().copied().collect::<Vec<_>>() {
            self.waits_no_more(process, lock, now);
        }
        for (process, lock) in self.beliefs.keys().copied().collect::<Vec<_>>() {
            self.belief_ends(process, lock, now, "still held");
        }
        for (node, resource) in self.records.keys().copied().collect::<Vec<_>>() {
            self.close_record(node, resource, now);
        }
        for (lane, from) in std::mem::take(&mut self.dead_since) {
            self.span(lane, SpanKind::Dead, None, None, None, (from, now), "not running");
        }
        for violation in violations {
            let lane = violation.host.map(|n| self.hosts[n]);
            let label = format!("{} ({}): {}", violation.promise.code(), violation.promise.words(), violation.text);
            self.mark(lane, violation.resource, violation.at_ns, MarkKind::Violation, label);
        }
        let fact = |name: &str, value: String| (name.to_owned(), value);
        self.timeline.facts.push(fact("hosts", hosts.len().to_string()));
        self.timeline.facts.push(fact("true time", format!("{:.1} s", now.0 as f64 / 1e9)));
        self.timeline.end_ns = now;
        self.timeline
    }

    fn arrows(&mut self, from: usize, to: usize, kind: ArrowKind, journey: Journey, label: String) {
        let Journey { resource, sent: sent_ns, arrives: arrived_ns, copy, delayed } = journey;
        let fate = match arrived_ns {
            None => ArrowFate::Lost,
            Some(_) if delayed => ArrowFate::Delayed,
            Some(_) => ArrowFate::Normal,
        };
        let arrow = Arrow { from, to, resource, sent_ns, arrived_ns, kind, fate, label };
        if copy.is_some() {
            let fate = ArrowFate::Duplicate;
            self.timeline.arrows.push(Arrow { arrived_ns: copy, fate, ..arrow.clone() });
        }
        self.timeline.arrows.push(arrow);
    }

    #[expect(clippy::too_many_arguments, reason = "one span, told once")]
    fn span(
        &mut self,
        lane: usize,
        kind: SpanKind,
        resource: Option<usize>,
        owner: Option<usize>,
        token: Option<u64>,
        (from_ns, to_ns): (TrueTime, TrueTime),
        label: &str,
    ) {
        let label = label.to_owned();
        self.timeline.spans.push(Span { lane, kind, resource, owner, token, from_ns, to_ns, label });
    }

    fn mark(&mut self, lane: Option<usize>, resource: Option<usize>, at_ns: TrueTime, kind: MarkKind, label: String) {
        self.timeline.marks.push(Mark { lane, resource, at_ns, kind, label });
    }
}

fn clock_detail(host: &Host) -> String {
    let mut detail = match host.rate_ppm {
        0 => "clock exact".to_owned(),
        rate @ 1.. => format!("clock {}% fast", f64::from(rate) / 10_000.0),
        rate => format!("clock {}% slow", f64::from(-rate) / 10_000.0),
    };
    for (is_so, words) in [
        (host.forgets_suspend, ", stops in suspend"),
        (host.stale_now, ", read too early"),
        (host.own_entropy, ", random bytes of its own"),
        (host.unborn, ", forked"),
        (host.unix_offset_ms != 0, ", wall clock off"),
    ] {
        if is_so {
            detail.push_str(words);
        }
    }
    detail
}

fn ask_words(ask: Ask, token: Token) -> String {
    match ask {
        Ask::Claim => format!("claim with token {token}"),
        Ask::Write { n, .. } => format!("write {n} with token {token}"),
        Ask::Delete { n, .. } => format!("delete as write {n} with token {token}"),
    }
}

fn applied_words(applied: &leasehold_core::op::Applied) -> String {
    use leasehold_core::op::Applied;
    match applied {
        Applied::Acquired { counter } => format!("granted, token {counter}"),
        Applied::AcquiredInDoubt { counter, .. } => format!("granted, token {counter} in doubt"),
        Applied::Renewed => "renewed".into(),
        Applied::RenewedTold { told } => format!("renewed, told {told} times"),
        Applied::Told => "told".into(),
        Applied::Released => "released".into(),
        Applied::Finished => "finished".into(),
        Applied::Revoked => "revoked".into(),
        Applied::Raised { counter } => format!("raised to {counter}"),
        Applied::Read(seen) if seen.held().is_some() => "held".into(),
        Applied::Read(_) => "free".into(),
    }
}

fn refusal_words(refusal: &Refusal) -> String {
    match refusal {
        Refusal::Conflict(seen) if seen.held().is_some() => "held by another".into(),
        Refusal::Conflict(_) => "not ours".into(),
        Refusal::Done(mark) => format!("done with token {}", mark.token),
        Refusal::Throttled(_) => "throttled".into(),
        Refusal::Unavailable(fault) | Refusal::NeedsCredentials(fault) => fault.to_string(),
        Refusal::Abstains { .. } => "abstains".into(),
        Refusal::Denied(denial) => denial.to_string(),
    }
}
