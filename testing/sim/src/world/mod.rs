//! The simulated world: a heap of things to come, ordered by true time, and everything they happen to.

mod events;
mod faults;
mod foreign_client;
mod host;
mod network;
mod nodes;
mod queue;
mod supervisor;
mod watch;
mod worker;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

use leasehold_core::config::Drift;
use leasehold_core::op::{Outcome, TransportFault};
use leasehold_core::{Config, Entropy, Event, LockId, Nonce, RequestId, Resource, Token};

use crate::clock::TrueTime;
use crate::counts::{Counts, Sometimes};
use crate::fault_schedule::FaultSchedule;
use crate::ledger::{Ledger, ProcessId};
use crate::promise::{Promise, Violation};
use crate::queue::Queues;
use crate::recorder::Recorder;
use crate::register::{self, Register};
use crate::script::{Data, Message, Script, Stall, What};
use crate::timeline::Timeline;
use faults::Closed;
use foreign_client::ForeignClient;
use host::SimHost;
use network::Packet;
use nodes::{Memory, Node};
use supervisor::Tell;

/// The result of one run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// The counts of faults and events.
    pub counts: Counts,
    /// All violations, even where no promise was due.
    pub violations: Vec<Violation>,
    /// The times since when the nodes of a quorum have forgotten the tokens of a resource beyond what the protocol
    /// stands.
    pub counters_lost: BTreeMap<usize, TrueTime>,
    /// The digest of all outputs of all clients. Two runs of one script agree on it.
    pub digest: u64,
    /// The messages with faults.
    pub messages: Vec<Message>,
    /// The stalls of processes.
    pub stalls: Vec<Stall>,
    /// The timeline, if it was asked for.
    pub timeline: Option<Timeline>,
}

impl Report {
    /// True if a promise was broken, due or not.
    pub fn breaks(&self, promise: Promise) -> bool {
        self.violations.iter().any(|violation| violation.promise == promise)
    }
}

/// Lets a script run its course.
pub fn run(script: &Script, schedule: FaultSchedule, with_timeline: bool) -> Report {
    let mut world = World::new(script, schedule, with_timeline);
    world.run();
    world.report()
}

/// The steps after which a run counts as one that never ends.
pub(crate) const MOST_STEPS: u64 = 400_000;

struct World<'a> {
    script: &'a Script,
    config: Config,
    drift: Drift,
    resources: Vec<Resource>,
    schedule: FaultSchedule,
    now: TrueTime,
    heap: BinaryHeap<Reverse<Entry>>,
    pushed: u64,
    nodes: Vec<Node>,
    memory: Memory,
    registers: Vec<Register>,
    hosts: Vec<SimHost>,
    foreign_clients: Vec<ForeignClient>,
    watchers: BTreeSet<(usize, ProcessId, usize)>,
    ledger: Ledger,
    queues: Queues,
    /// The last holder of each resource, and whether it has released.
    last_held: BTreeMap<usize, LastHolder>,
    /// The attempts that were revoked, on these nodes.
    revoked: BTreeSet<(Nonce, usize)>,
    counts: Counts,
    digest: DefaultHasher,
    drawn: u64,
    /// The time when the last message under way arrives.
    last_arrival: TrueTime,
    healed: bool,
    closing: bool,
    closed: Vec<Closed>,
    /// Resources that must be granted, and by when.
    wanted: BTreeMap<usize, TrueTime>,
    /// Releases of attempts that one worker may leave behind: they last as long as a record, and its tries are paced.
    most_orphans: usize,
    recorder: Option<Recorder>,
}

#[derive(Clone, Copy)]
struct LastHolder {
    process: ProcessId,
    lock: LockId,
    released: bool,
}

/// Something to come.
enum Due {
    Client { process: ProcessId, input: Input },
    Worker { process: ProcessId, worker: usize, step: u64 },
    Publish { process: ProcessId, events: Vec<Event> },
    Arrive(Box<Packet>),
    Watch { process: ProcessId, resource: usize, node: usize, on: bool },
    Leave { process: ProcessId, resource: usize, node: usize, lock: LockId },
    RegisterRequest { process: ProcessId, worker: usize, lock: LockId, token: Token, ask: register::Ask, back: Message },
    RegisterReply { process: ProcessId, worker: usize, lock: LockId, ask: register::Ask, reply: register::Reply },
    ForeignClient(usize),
    Tell(Box<Tell>),
    Fault(usize),
    Snapshot { fault: usize },
    Resumed { host: usize },
    Rebooted { host: usize },
    Start { host: usize },
    Probe { resource: usize },
    Look,
    Check { process: ProcessId, lock: LockId },
    Heal,
    Judge,
    JudgeClosed,
}

/// Something that reaches a client. Of the timers only the last one that was set counts.
enum Input {
    Wake { ticket: u64 },
    Reply { id: RequestId, result: Result<Vec<Outcome>, TransportFault> },
    Notified { resource: usize },
    Subscribed { resource: usize, node: usize },
    Reserved { resource: usize, lock: LockId, after: Duration },
    Credentials { node: usize },
}

struct Entry {
    at: TrueTime,
    order: u64,
    due: Due,
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        (self.at, self.order) == (other.at, other.order)
    }
}

impl Eq for Entry {}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Entry {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.at, self.order).cmp(&(other.at, other.order))
    }
}

impl<'a> World<'a> {
    fn new(script: &'a Script, schedule: FaultSchedule, with_timeline: bool) -> Self {
        let settings = &script.world;
        let config =
            settings.config().expect("invariant: scripts are checked when they are read, and drawn within bounds");
        let drift = config.drift();
        let resources = (0..settings.resources).map(|n| Resource::new(&format!("r{n}")).expect("a plain name"));
        let mut world = Self {
            script,
            config,
            drift,
            resources: resources.collect(),
            schedule,
            now: TrueTime(0),
            heap: BinaryHeap::new(),
            pushed: 0,
            nodes: Node::all(script),
            memory: Memory::default(),
            registers: vec![Register::default(); settings.resources],
            hosts: Vec::new(),
            foreign_clients: script.foreign_clients.iter().map(ForeignClient::new).collect(),
            watchers: BTreeSet::new(),
            ledger: Ledger::default(),
            queues: Queues::default(),
            last_held: BTreeMap::new(),
            revoked: BTreeSet::new(),
            counts: Counts::default(),
            digest: DefaultHasher::new(),
            drawn: 0,
            last_arrival: TrueTime(0),
            healed: false,
            closing: false,
            closed: Vec::new(),
            wanted: BTreeMap::new(),
            most_orphans: 16 + 3 * usize::try_from(script.longest_record_ns() / 1_000_000_000).unwrap_or(0),
            recorder: with_timeline.then(|| Recorder::new(script)),
        };
        for (n, spec) in script.hosts.iter().enumerate() {
            world.hosts.push(SimHost::new(n, spec, script));
            if !spec.unborn {
                world.push(TrueTime(0), Due::Start { host: n });
            }
        }
        for (n, fault) in script.faults.iter().enumerate() {
            if let What::NodeRestart { data: Data::Lags { by_ns }, .. } = fault.what {
                world.push(TrueTime(fault.at_ns.0.saturating_sub(by_ns)), Due::Snapshot { fault: n });
            }
            world.push(fault.at_ns, Due::Fault(n));
        }
        for (n, client) in script.foreign_clients.iter().enumerate() {
            world.push(client.at_ns, Due::ForeignClient(n));
        }
        world.push(settings.heals_ns, Due::Heal);
        world.push(TrueTime(0), Due::Look);
        world
    }

    fn push(&mut self, at: TrueTime, due: Due) {
        self.pushed += 1;
        self.heap.push(Reverse(Entry { at: at.max(self.now), order: self.pushed, due }));
    }

    fn after(&self, ns: u64) -> TrueTime {
        self.now.plus(Duration::from_nanos(ns))
    }

    fn run(&mut self) {
        while let Some(Reverse(Entry { at, due, .. })) = self.heap.pop() {
            self.now = at;
            self.counts.steps += 1;
            if self.counts.steps > MOST_STEPS {
                self.record_violation(Promise::Bounds, None, None, format!("{MOST_STEPS} steps, and no end"));
                return;
            }
            self.handle(due);
            if self.healed && !self.closing && self.wanted.is_empty() {
                return;
            }
        }
    }

    fn handle(&mut self, due: Due) {
        match due {
            Due::Client { process, input } => self.step(process, input),
            Due::Worker { process, worker, step } => self.worker_step(process, worker, step),
            Due::Publish { process, events } => self.publish(process, events),
            Due::Arrive(packet) => self.arrive(*packet),
            Due::Watch { process, resource, node, on } => self.watch(process, resource, node, on),
            Due::Leave { process, resource, node, lock } => self.departed(process, resource, node, lock),
            Due::RegisterRequest { process, worker, lock, token, ask, back } => {
                self.on_register_request(process, worker, lock, token, ask, &back);
            }
            Due::RegisterReply { process, worker, lock, ask, reply } => {
                self.on_register_reply(process, worker, lock, ask, reply);
            }
            Due::ForeignClient(n) => self.foreign_client(n),
            Due::Tell(tell) => self.told(&tell),
            Due::Fault(n) => self.fault(n),
            Due::Snapshot { fault } => self.take_snapshot(fault),
            Due::Resumed { host } => self.resumed(host),
            Due::Rebooted { host } => self.rebooted(host),
            Due::Start { host } => self.start(host),
            Due::Probe { resource } => self.audit(resource),
            Due::Look => self.look_again(),
            Due::Check { process, lock } => self.check_just_then(process, lock),
            Due::Heal => self.heal(),
            Due::Judge => self.judge(),
            Due::JudgeClosed => self.judge_closed(),
        }
    }

    fn record_violation(&mut self, promise: Promise, host: Option<usize>, resource: Option<usize>, text: String) {
        self.ledger.record_violation(promise, self.now, host, resource, text);
    }

    /// 16 bytes that never repeat, unless the process has a generator of its own, which can be copied.
    fn fresh(&mut self, host: usize) -> Entropy {
        let own = self.script.hosts.get(host).is_some_and(|spec| spec.own_entropy);
        let (mut bytes, drawn) =
            if own { ([0xa5; 16], &mut self.hosts[host].drawn) } else { ([0x5a; 16], &mut self.drawn) };
        *drawn += 1;
        bytes[..8].copy_from_slice(&drawn.to_le_bytes());
        bytes
    }

    fn is_alive(&self, process: ProcessId) -> bool {
        self.hosts.get(process.host).is_some_and(|host| host.process == process && host.client.is_some())
    }

    /// Hosts that run on the same machine, and so share its clock and its fate.
    fn machine(&self, host: usize) -> Vec<usize> {
        let machine = self.hosts[host].machine;
        (0..self.hosts.len()).filter(|n| self.hosts[*n].machine == machine).collect()
    }

    fn report(mut self) -> Report {
        self.counts.time_ms = self.now.0 / 1_000_000;
        for host in &self.hosts {
            let ignored = host.ignored + host.client.as_ref().map_or(0, |client| client.stats().ignored_responses);
            for _ in 0..ignored {
                self.counts.see(Sometimes::Ignored);
            }
        }
        self.counts.time_ms.hash(&mut self.digest);
        self.counts.steps.hash(&mut self.digest);
        let violations = self.ledger.violations().to_vec();
        let timeline = self.recorder.map(|recorder| recorder.finish(self.now, &violations, &self.script.hosts));
        let (messages, stalls) = self.schedule.recorded();
        let counters_lost = std::mem::take(&mut self.memory.counters_lost);
        Report {
            counts: self.counts,
            violations,
            counters_lost,
            digest: self.digest.finish(),
            messages,
            stalls,
            timeline,
        }
    }
}

impl World<'_> {
    /// Adds to the timeline, if there is one.
    fn record(&mut self, what: impl FnOnce(&mut Recorder, TrueTime)) {
        let now = self.now;
        if let Some(recorder) = &mut self.recorder {
            what(recorder, now);
        }
    }

    fn record_stores(&mut self, resource: usize) {
        if self.recorder.is_none() {
            return;
        }
        for (n, stored) in self.stored_records(resource, 0).into_iter().enumerate() {
            let counter = self.nodes[n].store.counter(&self.resources[resource], self.now);
            self.record(|recorder, now| recorder.record(n, resource, stored, counter, now));
        }
    }
}
