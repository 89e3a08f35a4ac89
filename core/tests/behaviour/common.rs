//! A small world: clients, model stores, and a network that the test controls.
//!
//! Every host has a clock of its own that may run fast or slow. The world keeps the true time, which no client sees.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use leasehold_core::config::{LockOptionsBuilder, Poll};
use leasehold_core::member::{LossId, Marker, RunId};
use leasehold_core::node::{NodeMemory, serve};
use leasehold_core::op::{Applied, Fault, FaultKind, Holding, Op, Outcome, Refusal, Release, Revoke, TransportFault};
use leasehold_core::store::{BootId, Record, StoreNow};
use leasehold_core::{
    Client, Config, Entropy, Event, Failure, LockId, LockOptions, LostReason, Monotonic, NodeConfig, NodeId, Nonce,
    Now, Output, RequestId, Resource, Seq, Token, Transmit, Wait,
};

/// The first true instant, far from zero so that nothing saturates unnoticed.
pub(crate) const EPOCH: Duration = Duration::from_secs(1_000_000);
/// The wall clock at the first true instant.
pub(crate) const EPOCH_UNIX_MS: u64 = 1_700_000_000_000;
/// The token floor at that time: microseconds.
pub(crate) const EPOCH_FLOOR: u64 = EPOCH_UNIX_MS * 1_000;

pub(crate) const fn ms(value: u64) -> Duration {
    Duration::from_millis(value)
}

pub(crate) const fn secs(value: u64) -> Duration {
    Duration::from_secs(value)
}

pub(crate) fn lock(id: u64) -> LockId {
    LockId::new(id)
}

pub(crate) fn resource(name: &str) -> Resource {
    Resource::new(name).unwrap()
}

/// Options with the default ttl of 30 s.
pub(crate) fn options() -> LockOptions {
    LockOptions::builder().build().unwrap()
}

pub(crate) fn with(set: impl FnOnce(LockOptionsBuilder) -> LockOptionsBuilder) -> LockOptions {
    set(LockOptions::builder()).build().unwrap()
}

pub(crate) fn once() -> LockOptions {
    with(|o| o.wait(Wait::Once))
}

pub(crate) fn ttl(value: Duration) -> LockOptions {
    with(|o| o.ttl(value))
}

/// Validity of a lease from its send on: the ttl less both margins, at the default drift of 1%.
pub(crate) fn validity(ttl: Duration) -> Duration {
    ttl - ttl / 50 - ms(2)
}

/// Bytes that never repeat within one process.
pub(crate) fn entropy(n: u64) -> Entropy {
    let mut bytes = [0xa5; 16];
    bytes[..8].copy_from_slice(&n.to_le_bytes());
    bytes
}

pub(crate) fn timeout() -> TransportFault {
    TransportFault::Unknown(Fault::of(FaultKind::Timeout))
}

pub(crate) fn reset() -> TransportFault {
    TransportFault::Unknown(Fault::of(FaultKind::Reset))
}

/// The token of the single grant among these events.
pub(crate) fn token(events: &[Event]) -> Token {
    let mut tokens =
        events.iter().filter_map(|event| if let Event::Acquired { token, .. } = event { Some(*token) } else { None });
    let first = tokens.next().unwrap_or_else(|| panic!("no grant among {events:?}"));
    assert_eq!(tokens.next(), None, "one grant, not two, among {events:?}");
    first
}

/// The only failure among these events.
pub(crate) fn failure(events: &[Event]) -> Failure {
    let mut failures = events
        .iter()
        .filter_map(|event| if let Event::Failed { failure, .. } = event { Some(failure.clone()) } else { None });
    let first = failures.next().unwrap_or_else(|| panic!("no failure among {events:?}"));
    assert_eq!(failures.next(), None, "one failure, not two, among {events:?}");
    first
}

/// The only loss among these events.
pub(crate) fn loss(events: &[Event]) -> LostReason {
    let mut reasons = events
        .iter()
        .filter_map(|event| if let Event::Lost { reason, .. } = event { Some(reason.clone()) } else { None });
    let first = reasons.next().unwrap_or_else(|| panic!("no loss among {events:?}"));
    assert_eq!(reasons.next(), None, "lost once, not twice, among {events:?}");
    first
}

pub(crate) fn has(events: &[Event], wanted: impl Fn(&Event) -> bool) -> bool {
    events.iter().any(wanted)
}

pub(crate) fn kind(op: &Op) -> &'static str {
    match op {
        Op::Acquire(_) => "acquire",
        Op::Renew(_) => "renew",
        Op::Release(_) => "release",
        Op::Finish(_) => "finish",
        Op::Revoke(_) => "revoke",
        Op::Tell(_) => "tell",
        Op::Raise(_) => "raise",
        Op::Read => "read",
    }
}

/// One node: records, its marker, and a clock that runs at its own rate.
#[derive(Clone)]
pub(crate) struct Store {
    pub(crate) records: BTreeMap<Resource, Record>,
    pub(crate) marker: Option<Marker>,
    /// Resources whose counter was raised, and the loss after which.
    pub(crate) trusted: BTreeMap<Resource, LossId>,
    pub(crate) run: Option<RunId>,
    pub(crate) boot: BootId,
    /// How much faster than true time its clock runs, in parts per million.
    pub(crate) rate_ppm: i64,
    /// Nothing runs out by itself: all records seem to come from another boot.
    pub(crate) is_observed: bool,
}

/// The boot of all records of a store where nothing runs out.
const ELSEWHERE: BootId = BootId([9; 16]);

impl Store {
    pub(crate) fn now(&self, time: Duration) -> StoreNow {
        let since = time.saturating_sub(EPOCH);
        StoreNow {
            boot: self.boot,
            uptime: Monotonic::from_ns(scaled(time, self.rate_ppm)),
            unix_ms: EPOCH_UNIX_MS + u64::try_from(since.as_millis()).unwrap(),
        }
    }

    pub(crate) fn perform(&mut self, resource: &Resource, op: &Op, time: Duration) -> Outcome {
        let trusted = self.trusted.get(resource);
        let memory = NodeMemory { marker: self.marker.as_ref(), trusted, run: self.run.as_ref() };
        let served = serve(self.records.get(resource), memory, op, &self.now(time));
        if let Some(mut record) = served.record {
            if let Some(lease) = record.lease.as_mut().filter(|_| self.is_observed) {
                lease.boot = ELSEWHERE;
            }
            self.records.insert(resource.clone(), record);
        }
        if let Some(stamp) = served.trusted {
            self.trusted.insert(resource.clone(), stamp);
        }
        self.marker = served.marker.or_else(|| self.marker.take());
        served.outcome
    }

    /// All that it kept is gone.
    pub(crate) fn lose_data(&mut self) {
        self.records.clear();
        self.trusted.clear();
        self.marker = None;
    }
}

/// One client and whatever drives it.
#[derive(Clone)]
pub(crate) struct Host {
    pub(crate) client: Client,
    /// Events since they were last taken.
    pub(crate) events: Vec<Event>,
    /// Requests that have left and have met no fate yet.
    pub(crate) wire: VecDeque<Transmit>,
    /// Every other output since it was last looked at.
    pub(crate) others: Vec<Output>,
    /// Every attempt, and the number of its last send.
    last_send: BTreeMap<(Nonce, NodeId, Resource), Seq>,
    pub(crate) wake_at: Monotonic,
    pub(crate) rate_ppm: i64,
    /// The offset of the clock, so that hosts do not agree on the time.
    pub(crate) offset: Duration,
    pub(crate) unix_ms: Option<u64>,
}

impl Host {
    pub(crate) fn now(&self, time: Duration) -> Now {
        let since = time.saturating_sub(EPOCH);
        Now {
            monotonic: Monotonic::from_ns(scaled(time, self.rate_ppm)).plus(self.offset),
            unix_ms: self.unix_ms.unwrap_or(EPOCH_UNIX_MS + u64::try_from(since.as_millis()).unwrap()),
        }
    }

    /// Every acquire and renewal of an attempt has a number of its own, and those to one node leave in that order: a record
    /// that shows the number tells which one took effect.
    fn count_sends(&mut self, transmit: &Transmit) {
        for op in &transmit.ops {
            let (nonce, seq) = match &op.op {
                Op::Acquire(acquire) => (acquire.nonce, acquire.seq),
                Op::Renew(renew) => (renew.nonce, renew.seq),
                Op::Release(_) | Op::Finish(_) | Op::Revoke(_) | Op::Tell(_) | Op::Raise(_) | Op::Read => continue,
            };
            let before = self.last_send.insert((nonce, transmit.node, op.resource.clone()), seq);
            // The row of a dead session is written by the send that was refused before.
            let is_again = matches!(&op.op, Op::Acquire(acquire) if acquire.expect.is_some());
            assert!(
                before.is_none_or(|before| before < seq || is_again && before == seq),
                "{before:?} and then {seq:?}"
            );
        }
    }

    /// The first true instant at which this host's clock shows `at`.
    pub(crate) fn true_time_of(&self, at: Monotonic) -> Duration {
        let local = u128::from(at.since(Monotonic::from_ns(0).plus(self.offset)).as_nanos() as u64);
        let rate = u128::try_from(1_000_000 + self.rate_ppm).unwrap();
        Duration::from_nanos(u64::try_from((local * 1_000_000).div_ceil(rate)).unwrap())
    }
}

fn scaled(time: Duration, rate_ppm: i64) -> u64 {
    let rate = u128::try_from(1_000_000 + rate_ppm).unwrap();
    u64::try_from(time.as_nanos() * rate / 1_000_000).unwrap()
}

#[derive(Clone)]
pub(crate) struct World {
    /// True time.
    pub(crate) time: Duration,
    pub(crate) stores: Vec<Store>,
    pub(crate) hosts: Vec<Host>,
    drawn: u64,
}

impl World {
    /// One store and as many hosts.
    pub(crate) fn new(hosts: usize) -> Self {
        Self::of(vec![NodeConfig::default()], hosts)
    }

    /// One store where a look is cheaper than a refused acquire.
    pub(crate) fn reading(hosts: usize) -> Self {
        Self::of(vec![NodeConfig { poll: Poll::Read, ..NodeConfig::default() }], hosts)
    }

    /// As many independent nodes.
    pub(crate) fn quorum(nodes: usize, hosts: usize) -> Self {
        Self::of(vec![NodeConfig::default(); nodes], hosts)
    }

    pub(crate) fn of(nodes: Vec<NodeConfig>, hosts: usize) -> Self {
        Self::with_config(&Config::new(nodes).unwrap(), hosts)
    }

    pub(crate) fn with_config(config: &Config, hosts: usize) -> Self {
        let store = Store {
            records: BTreeMap::new(),
            marker: None,
            trusted: BTreeMap::new(),
            run: None,
            boot: BootId([1; 16]),
            rate_ppm: 0,
            is_observed: false,
        };
        let mut world = Self { time: EPOCH, stores: vec![store; config.nodes().len()], hosts: Vec::new(), drawn: 0 };
        for node in config.observed() {
            world.stores[node.index()].is_observed = true;
        }
        for _ in 0..hosts {
            world.add_host(config, 0);
        }
        world
    }

    /// Another host, whose clock is `rate_ppm` fast.
    pub(crate) fn add_host(&mut self, config: &Config, rate_ppm: i64) -> usize {
        let at = self.hosts.len();
        let start = Now { monotonic: Monotonic::from_ns(0), unix_ms: 0 };
        let seed = [u8::try_from(at + 1).unwrap(); 32];
        self.hosts.push(Host {
            client: Client::new(config.clone(), seed, start),
            events: Vec::new(),
            wire: VecDeque::new(),
            others: Vec::new(),
            last_send: BTreeMap::new(),
            wake_at: Monotonic::FAR,
            rate_ppm,
            offset: secs(at as u64 * 77),
            unix_ms: None,
        });
        at
    }

    pub(crate) fn now(&self, host: usize) -> Now {
        self.hosts[host].now(self.time)
    }

    pub(crate) fn fresh(&mut self) -> Entropy {
        self.drawn += 1;
        entropy(self.drawn)
    }

    pub(crate) fn acquire(&mut self, host: usize, id: u64, name: &str, options: LockOptions) {
        let (now, fresh) = (self.now(host), self.fresh());
        self.hosts[host].client.acquire(lock(id), resource(name), options, &fresh, now).unwrap();
        self.drain(host);
    }

    /// An acquisition that is granted at once; answers the token.
    pub(crate) fn hold(&mut self, host: usize, id: u64, name: &str, options: LockOptions) -> Token {
        self.acquire(host, id, name, options);
        self.deliver_all();
        token(&self.take_events(host))
    }

    pub(crate) fn release(&mut self, host: usize, id: u64) {
        let now = self.now(host);
        self.hosts[host].client.release(lock(id), now).unwrap();
        self.drain(host);
    }

    pub(crate) fn notify(&mut self, host: usize, name: &str) {
        let now = self.now(host);
        self.hosts[host].client.notified(&resource(name), now);
        self.tick(host);
    }

    /// Runs the host as after a wake-up.
    pub(crate) fn tick(&mut self, host: usize) {
        let (now, fresh) = (self.now(host), self.fresh());
        self.hosts[host].client.handle_timeout(&fresh, now);
        self.drain(host);
    }

    /// Polls until nothing is left to do.
    pub(crate) fn drain(&mut self, host: usize) {
        let now = self.now(host);
        let host = &mut self.hosts[host];
        loop {
            match host.client.poll_output(now) {
                Output::Transmit(transmit) => {
                    host.count_sends(&transmit);
                    host.wire.push_back(transmit);
                }
                Output::Event(event) => host.events.push(event),
                Output::WakeAt(at) => {
                    host.wake_at = at;
                    return;
                }
                other @ (Output::Subscribe { .. }
                | Output::Unsubscribe { .. }
                | Output::NeedCredentials { .. }
                | Output::Rejected { .. }) => host.others.push(other),
            }
        }
    }

    pub(crate) fn take_events(&mut self, host: usize) -> Vec<Event> {
        std::mem::take(&mut self.hosts[host].events)
    }

    /// The oldest request on the host's wire.
    pub(crate) fn take(&mut self, host: usize) -> Transmit {
        self.hosts[host].wire.pop_front().expect("a request on the wire")
    }

    /// The oldest request to one node.
    pub(crate) fn take_for(&mut self, host: usize, node: u16) -> Transmit {
        let wire = &mut self.hosts[host].wire;
        let at = wire.iter().position(|transmit| transmit.node == NodeId::new(node)).expect("a request to the node");
        wire.remove(at).unwrap()
    }

    /// Lets the node do what the request says, now.
    pub(crate) fn perform(&mut self, transmit: &Transmit) -> Vec<Outcome> {
        let store = &mut self.stores[transmit.node.index()];
        transmit.ops.iter().map(|op| store.perform(&op.resource, &op.op, self.time)).collect()
    }

    pub(crate) fn answer(&mut self, host: usize, id: RequestId, result: Result<Vec<Outcome>, TransportFault>) {
        let now = self.now(host);
        self.hosts[host].client.handle_response(id, result, now);
        self.tick(host);
    }

    /// Answers the oldest request with this, whatever the store would have said.
    pub(crate) fn answer_with(&mut self, host: usize, outcome: Outcome) {
        let transmit = self.take(host);
        self.answer(host, transmit.id, Ok(vec![outcome]));
    }

    /// Carries the oldest request to its node, and the reply back.
    pub(crate) fn deliver(&mut self, host: usize) -> Transmit {
        let transmit = self.take(host);
        self.carry(host, &transmit);
        transmit
    }

    pub(crate) fn deliver_to(&mut self, host: usize, node: u16) -> Transmit {
        let transmit = self.take_for(host, node);
        self.carry(host, &transmit);
        transmit
    }

    pub(crate) fn carry(&mut self, host: usize, transmit: &Transmit) {
        let outcomes = self.perform(transmit);
        self.answer(host, transmit.id, Ok(outcomes));
    }

    /// Frees a lock on one node in its holder's name, as `leasehold break` does.
    pub(crate) fn break_at(&mut self, node: usize, name: &str) {
        let nonce = self.record(node, name).lease.as_ref().unwrap().nonce;
        let time = self.time;
        self.stores[node].perform(&resource(name), &Op::Release(Release { nonce, quorum: None }), time);
    }

    /// Marks a lock on one node, as `leasehold revoke` does.
    pub(crate) fn revoke_at(&mut self, node: usize, name: &str) -> Outcome {
        let nonce = self.record(node, name).lease.as_ref().unwrap().nonce;
        let time = self.time;
        self.stores[node].perform(&resource(name), &Op::Revoke(Revoke { nonce }), time)
    }

    /// The oldest request reaches its node, and the reply gets lost.
    pub(crate) fn lose_reply(&mut self, host: usize) -> Transmit {
        let transmit = self.take(host);
        self.perform(&transmit);
        transmit
    }

    /// Carries all requests and replies until every wire is empty.
    pub(crate) fn deliver_all(&mut self) {
        for _ in 0..1_000_000 {
            let Some(host) = self.hosts.iter().position(|host| !host.wire.is_empty()) else { return };
            self.deliver(host);
        }
        panic!("the traffic never ends");
    }

    /// All that a host has sent arrives and is answered, and then a request that was slower.
    pub(crate) fn overtake(&mut self, host: usize, slower: &Transmit) {
        while !self.hosts[host].wire.is_empty() {
            self.deliver(host);
        }
        self.perform(slower);
    }

    /// Time passes, hosts wake up when they asked for it, and the network delivers at once.
    pub(crate) fn pass(&mut self, length: Duration) {
        self.run_until(self.time + length, true);
    }

    /// Time passes and hosts wake up, but the network is down: what is sent stays on the wire.
    pub(crate) fn pass_cut_off(&mut self, length: Duration) {
        self.run_until(self.time + length, false);
    }

    /// Time passes, with the network down, until the host sends something.
    pub(crate) fn pass_until_sent(&mut self, host: usize) {
        while self.hosts[host].wire.is_empty() {
            assert!(self.hosts[host].wake_at < Monotonic::FAR, "the host would sleep forever");
            let at = self.hosts[host].true_time_of(self.hosts[host].wake_at);
            self.pass_cut_off(at.saturating_sub(self.time));
        }
    }

    /// Time passes and nobody runs: the machine was suspended, or the process stopped.
    pub(crate) fn jump(&mut self, length: Duration) {
        self.time += length;
    }

    fn run_until(&mut self, end: Duration, network: bool) {
        let mut idle_wakes = 0;
        loop {
            if network {
                self.deliver_all();
            }
            let next = (0..self.hosts.len())
                .filter(|host| self.hosts[*host].wake_at < Monotonic::FAR)
                .map(|host| (self.hosts[host].true_time_of(self.hosts[host].wake_at), host))
                .min();
            let Some((at, host)) = next.filter(|(at, _)| *at <= end) else { break };
            idle_wakes = if at > self.time { 0 } else { idle_wakes + 1 };
            assert!(idle_wakes < 1_000, "host {host} spins");
            self.time = self.time.max(at);
            self.tick(host);
        }
        self.time = end;
    }

    /// The record of the store for a resource.
    pub(crate) fn record(&self, node: usize, name: &str) -> &Record {
        self.stores[node].records.get(&resource(name)).expect("a record")
    }

    pub(crate) fn is_held(&self, node: usize, name: &str) -> bool {
        let record = self.stores[node].records.get(&resource(name));
        let now = self.stores[node].now(self.time);
        record
            .and_then(|record| record.lease.as_ref())
            .is_some_and(|lease| !lease.released && (lease.boot != now.boot || now.uptime < lease.expires))
    }

    pub(crate) fn remaining(&self, host: usize, id: u64) -> Duration {
        self.hosts[host].client.remaining(lock(id), self.now(host))
    }

    pub(crate) fn state(&self, host: usize, id: u64) -> Option<&'static str> {
        self.hosts[host].client.state(lock(id))
    }

    /// The kinds of operation on the host's wire, in order.
    pub(crate) fn on_the_wire(&self, host: usize) -> Vec<&'static str> {
        self.hosts[host].wire.iter().flat_map(|transmit| transmit.ops.iter().map(|op| kind(&op.op))).collect()
    }
}

/// A refusal that shows the holder of the record.
pub(crate) fn conflict(holding: Option<Holding>) -> Outcome {
    Outcome::NotApplied(Refusal::Conflict(leasehold_core::op::Seen { holding: holding.map(Box::new), done: None }))
}

pub(crate) fn acquired(counter: u64) -> Outcome {
    Outcome::Applied(Applied::Acquired { counter: Token::new(counter).unwrap() })
}

/// A record of a lease as an honest store shows it.
pub(crate) fn holding(nonce: Nonce, seq: Option<u32>) -> Holding {
    use leasehold_core::op::Holder;
    use leasehold_core::{Owner, Seq, Version};
    Holding {
        holder: Holder::Lease { nonce, seq: seq.map(Seq::new) },
        version: Version::of(&nonce, Seq::new(seq.unwrap_or(0))),
        released: false,
        counter: Token::new(EPOCH_UNIX_MS),
        owner: Some(Owner::new("somebody").unwrap()),
        record_ttl: Some(secs(30)),
        left: Some(secs(20)),
        since_unix_ms: Some(EPOCH_UNIX_MS),
        data: None,
        session: None,
        told: 0,
    }
}

pub(crate) fn other_nonce() -> Nonce {
    Nonce::from_bytes([0xee; 16])
}
