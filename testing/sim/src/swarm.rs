//! From a seed to a run: a world, the jobs of its workers, and a random subset of all faults.
//!
//! Swarm testing (Groce and others, 2012): a run in which only a few kinds of faults are possible reaches places that a
//! run with all of them at once never does. So each seed switches each kind on or off, and chooses how bad it is.

mod broken;
mod quorum;

use std::time::Duration;

use crate::clock::TrueTime;
use crate::fault_schedule::Odds;
use crate::rng::{Draws, Stream};
use crate::script::{Ending, FORMAT, Fault, ForeignClient, Host, Job, Script, What, World};
use crate::store::{self, Kind};

pub use broken::Broken;

const MS: u64 = 1_000_000;
const SECOND: u64 = 1_000 * MS;

/// Kinds of worlds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// One store.
    Store,
    /// Several nodes.
    Quorum,
}

/// The purpose of a seed. A seed means another world for each purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lot {
    /// A world in which all assumptions are kept.
    Kept(Family),
    /// A world in which one is broken.
    Broken(Broken),
}

/// The run of a seed, and the odds of the faults of messages.
pub fn draw(seed: u64, lot: Lot) -> (Script, Odds) {
    let (family, broken) = match lot {
        Lot::Kept(family) => (family, None),
        Lot::Broken(broken) => (broken.family(), Some(broken)),
    };
    match family {
        Family::Store => Swarm::new(seed, broken).draw(),
        Family::Quorum => quorum::draw(Swarm::new(seed, broken)),
    }
}

struct Swarm {
    seed: u64,
    broken: Option<Broken>,
    kind: Kind,
    drift_ppm: u32,
    kernels_apart: bool,
    hosts: usize,
    resources: usize,
    nodes: usize,
    /// No server's clock is ahead, so that tokens made of its time are no problem for others.
    late_nodes: bool,
    /// The ttl that most of the run is about.
    ttl_ns: u64,
    heals_ns: u64,
}

impl Swarm {
    fn new(seed: u64, broken: Option<Broken>) -> Self {
        let mut draws = Stream::new(seed, "world").draws();
        let kind = match broken {
            Some(Broken::ServerClock) => Kind::Redis,
            // Only there does a reader decide that a record has run out.
            Some(Broken::StaleNow) => Kind::Dynamodb,
            Some(
                Broken::Rates
                | Broken::Wiped
                | Broken::Evicted
                | Broken::Suspend
                | Broken::Marks
                | Broken::Majority
                | Broken::Undurable,
            )
            | None => *draws.pick(&[Kind::Redis, Kind::Dynamodb, Kind::Sqlite]),
        };
        let ttl_ns = *draws.pick(&[300, 500, 1_000, 1_000, 2_000, 5_000]) * MS;
        Self {
            seed,
            broken,
            kind,
            // Wide margins would forgive a clock that was read a little early.
            drift_ppm: if broken == Some(Broken::StaleNow) {
                1_000
            } else {
                *draws.pick(&[10_000, 10_000, 1_000, 50_000])
            },
            kernels_apart: kind != Kind::Sqlite || draws.one_in(2),
            hosts: usize::try_from(draws.between(2, 5)).unwrap_or(2),
            resources: usize::try_from(draws.between(1, 3)).unwrap_or(1),
            nodes: 1,
            late_nodes: false,
            ttl_ns,
            heals_ns: ttl_ns * draws.between(8, 16) + SECOND,
        }
    }

    fn stream(&self, purpose: &str) -> Stream {
        Stream::new(self.seed, purpose)
    }

    /// True if this seed has this kind of fault at all.
    fn has(&self, kind: &str) -> bool {
        let needed: &[&str] = match self.broken {
            // The faults with which a clock that was read early matters.
            Some(Broken::StaleNow) => &["delayed", "partition", "silent"],
            // A write that comes after the deletion, and a claim before it that brings the mark back.
            Some(Broken::Marks) => &["delayed", "copied"],
            Some(Broken::Majority) => &["walls"],
            Some(
                Broken::Rates
                | Broken::ServerClock
                | Broken::Wiped
                | Broken::Evicted
                | Broken::Suspend
                | Broken::Undurable,
            )
            | None => &[],
        };
        needed.contains(&kind) || self.stream("swarm").of(self.stream(kind).at(0)).draws().one_in(3)
    }

    fn draw(&self) -> (Script, Odds) {
        let mut draws = self.stream("settings").draws();
        let mut hosts: Vec<Host> = (0..self.hosts).map(|n| self.host(n)).collect();
        let faults = self.faults(&mut hosts);
        let foreign_clients = self.foreign_clients();
        let request_timeout_ns = *draws.pick(&[50, 100, 500]) * MS;
        let world = World {
            drift_ppm: self.drift_ppm,
            request_timeout_ns,
            // Below a millisecond the network does not hide what clocks of whole milliseconds round away.
            latency_ns: *draws.pick(&[MS / 10, MS, 2 * MS, 5 * MS]),
            store: Some(self.store()),
            nodes: Vec::new(),
            max_ttl_ns: 0,
            unmarked: false,
            reads: self.kind == Kind::Dynamodb || (self.kind == Kind::Sqlite && draws.one_in(2)),
            watch: self.kind == Kind::Redis && draws.one_in(2),
            queues: self.kind == Kind::Redis && self.has("lines"),
            sessions: self.kind == Kind::Dynamodb
                && self.broken.is_none()
                && self.has("sessions")
                && self.has("heartbeat"),
            kernels_apart: self.kernels_apart,
            resources: self.resources,
            heals_ns: TrueTime(self.heals_ns),
            ending: *draws.pick(&[Ending::Crash, Ending::Close, Ending::Inherit]),
        };
        let mut script = Script {
            format: FORMAT,
            name: format!("seed {}", self.seed),
            why: String::new(),
            seed: Some(self.seed),
            world,
            hosts,
            faults,
            messages: Vec::new(),
            stalls: Vec::new(),
            foreign_clients,
        };
        if self.nodes == 1 && self.kind == Kind::Redis && self.has("retention") {
            // Above any record, as in reality, and yet short enough to have an effect.
            let retention = Duration::from_nanos(script.longest_record_ns().max(self.ttl_ns * 4));
            script.world.specs_mut()[0].retention = retention;
        }
        (script, self.odds())
    }

    fn store(&self) -> store::Spec {
        let mut draws = self.stream("store").draws();
        let mut spec = store::Spec::of(self.kind);
        if self.kind == Kind::Redis {
            spec.rate_ppm = self.rate(&mut draws);
        }
        spec
    }

    /// A rate at the edge of what is allowed, where margins are needed, or far beyond, if that assumption is broken.
    fn rate(&self, draws: &mut Draws) -> i32 {
        let most = i32::try_from(self.drift_ppm).unwrap_or(0);
        let most = if self.broken == Some(Broken::Rates) { most * 8 } else { most };
        *draws.pick(&[-most, most, -most, most, 0])
    }

    fn host(&self, n: usize) -> Host {
        let mut draws = self.stream("host").of(n as u64).draws();
        // One machine has one clock.
        let rate_ppm =
            if self.kernels_apart { self.rate(&mut draws) } else { self.rate(&mut self.stream("clock").draws()) };
        let skewed = self.has("walls") && !self.forgets_counters();
        let workers = draws.between(1, 3);
        Host {
            rate_ppm,
            unix_offset_ms: if skewed { i64::try_from(draws.below(10_000)).unwrap_or(0) - 5_000 } else { 0 },
            forgets_suspend: self.broken == Some(Broken::Suspend),
            stale_now: self.broken == Some(Broken::StaleNow),
            own_entropy: false,
            unborn: false,
            workers: (0..workers).map(|worker| self.jobs(n, worker)).collect(),
        }
    }

    /// Counters that may be gone leave it to honest wall clocks that tokens grow.
    fn forgets_counters(&self) -> bool {
        self.broken == Some(Broken::Wiped)
            || (self.kind == Kind::Redis && self.has("retention"))
            || (self.kind == Kind::Dynamodb && self.has("strangers"))
    }

    /// Sessions that are told of revoked leases while they grow: a late word must take nothing away.
    fn has_growing_sessions(&self) -> bool {
        let is_observed = self.nodes > 1 || self.kind == Kind::Dynamodb;
        is_observed && self.broken.is_none() && self.has("sessions") && self.has("supervised")
    }

    fn jobs(&self, host: usize, worker: u64) -> Vec<Job> {
        let mut draws = self.stream("jobs").of(host as u64 * 16 + worker).draws();
        let (no_renewal, max_hold) = (self.has("no renewal"), self.has("max hold"));
        let (lock_delay, mixed_ttls) = (self.has("lock delay"), self.has("mixed ttls") || self.has_growing_sessions());
        let (cancels, careless) = (self.has("cancel"), self.has("careless"));
        let mut runs = self.stream("runs").of(host as u64 * 16 + worker).draws();
        let has_runs = self.has("runs");
        let mut watches = self.stream("watches").of(host as u64 * 16 + worker).draws();
        let count = draws.between(2, 5);
        (0..count)
            .map(|_| {
                let ttl_ns = if mixed_ttls { self.ttl_ns * draws.between(1, 3) } else { self.ttl_ns };
                let wait_ns = match draws.below(4) {
                    0 => Some(draws.below(ttl_ns * 3)),
                    1 if draws.one_in(2) => Some(0),
                    _ => None,
                };
                let is_run = has_runs && !runs.one_in(4);
                // Some completions end in time to be followed by other work.
                let keep_ns = if runs.one_in(3) { 3_600 * SECOND } else { ttl_ns * runs.between(1, 4) };
                Job {
                    keep_ns: is_run.then_some(keep_ns),
                    fails: is_run && runs.one_in(4),
                    after_ns: draws.below(ttl_ns),
                    resource: usize::try_from(draws.below(self.resources as u64)).unwrap_or(0),
                    ttl_ns,
                    wait_ns,
                    watches: wait_ns.is_some() && watches.one_in(2),
                    lock_delay_ns: if lock_delay && draws.one_in(2) { draws.below(ttl_ns) } else { 0 },
                    max_hold_ns: (max_hold && draws.one_in(3)).then(|| ttl_ns + draws.below(ttl_ns * 2)),
                    no_renewal: no_renewal && draws.one_in(2),
                    cancel_ns: (cancels && draws.one_in(3)).then(|| draws.below(ttl_ns)),
                    hold_ns: if draws.one_in(3) { draws.below(20 * MS) } else { draws.below(ttl_ns * 3) },
                    writes: u32::try_from(draws.below(5)).unwrap_or(0),
                    careless: careless && draws.one_in(2),
                    deletes: self.broken == Some(Broken::Marks),
                }
            })
            .collect()
    }

    fn faults(&self, hosts: &mut Vec<Host>) -> Vec<Fault> {
        let mut faults = Vec::new();
        let one_kernel = self.kind == Kind::Sqlite && !self.kernels_apart;
        let host = |draws: &mut Draws| usize::try_from(draws.below(self.hosts as u64)).unwrap_or(0);
        let node = |draws: &mut Draws| self.node(draws);
        // Around the length of a ttl is where it gets interesting.
        let long = |draws: &mut Draws| draws.below(self.ttl_ns / 2) << draws.below(4);
        let mut add = |kind: &str, enabled: bool, most: u64, what: &dyn Fn(&mut Draws) -> What| {
            let mut draws = self.stream(kind).of(1).draws();
            for _ in 0..if enabled { draws.between(1, most) } else { 0 } {
                let at_ns = TrueTime(draws.below(self.heals_ns));
                faults.push(Fault { at_ns, what: what(&mut draws) });
            }
        };
        add("crash", self.has("crash"), 3, &|draws| What::Crash { host: host(draws), for_ns: long(draws) });
        add("reboot", self.has("reboot"), 2, &|draws| What::Reboot { host: host(draws), for_ns: long(draws) });
        add("stop", self.has("stop"), 5, &|draws| What::Stop { host: host(draws), for_ns: long(draws) });
        let suspends = self.has("suspend") || self.broken == Some(Broken::Suspend);
        add("suspend", suspends, 3, &|draws| What::Suspend { host: host(draws), for_ns: long(draws) });
        let wall = self.has("walls") && !self.forgets_counters();
        add("wall", wall, 3, &|draws| {
            let by_ms = i64::try_from(draws.below(20_000)).unwrap_or(0) - 10_000;
            What::WallJump { host: host(draws), by_ms }
        });
        add("rate", self.has("rate") && !one_kernel, 4, &|draws| What::Rate {
            host: host(draws),
            rate_ppm: self.rate(draws),
        });
        add("partition", self.has("partition") && self.kind != Kind::Sqlite, 4, &|draws| What::Partition {
            host: host(draws),
            nodes: self.some_nodes(draws),
            for_ns: long(draws),
        });
        add("down", self.has("down"), 3, &|draws| What::StoreDown { node: node(draws), for_ns: long(draws) });
        add("silent", self.has("silent"), 3, &|draws| What::StoreSilent { node: node(draws), for_ns: long(draws) });
        add("errors", self.has("errors"), 3, &|draws| What::StoreErrors { node: node(draws), for_ns: long(draws) });
        add("throttle", self.has("throttle"), 3, &|draws| What::Throttle { node: node(draws), for_ns: long(draws) });
        add("credentials", self.has("credentials"), 2, &|draws| What::Credentials {
            node: node(draws),
            for_ns: long(draws),
        });
        add("denied", self.has("denied"), 2, &|draws| What::Denied { node: node(draws), for_ns: long(draws) / 4 });
        add("store rate", self.has("store rate") && self.kind == Kind::Redis, 3, &|draws| What::StoreRate {
            node: node(draws),
            rate_ppm: self.node_rate(draws),
        });
        add("store jump", self.broken == Some(Broken::ServerClock), 3, &|draws| What::StoreJump {
            node: 0,
            by_ms: i64::try_from(long(draws) / MS).unwrap_or(0),
        });
        add("wiped", self.broken == Some(Broken::Wiped), 2, &|_| What::StoreWiped);
        add("evicted", self.broken == Some(Broken::Evicted), 4, &|draws| What::Evicted {
            node: 0,
            resource: usize::try_from(draws.below(self.resources as u64)).unwrap_or(0),
        });
        add("revoked", self.has("revoked"), 6, &|draws| What::Revoked {
            resource: usize::try_from(draws.below(self.resources as u64)).unwrap_or(0),
        });
        add("supervised", self.has_growing_sessions(), 8, &|draws| What::Revoked {
            resource: usize::try_from(draws.below(self.resources as u64)).unwrap_or(0),
        });
        if self.has("fork") {
            let mut draws = self.stream("fork").of(1).draws();
            let parent = host(&mut draws);
            let workers = (0..hosts[parent].workers.len() as u64).map(|worker| self.jobs(self.hosts, worker)).collect();
            hosts.push(Host { workers, unborn: true, ..hosts[parent].clone() });
            let at_ns = TrueTime(draws.below(self.heals_ns / 2));
            faults.push(Fault { at_ns, what: What::Fork { host: parent, child: hosts.len() - 1 } });
        }
        faults.extend(self.node_faults());
        faults.sort_by_key(|fault| fault.at_ns);
        faults
    }

    fn foreign_clients(&self) -> Vec<ForeignClient> {
        if self.kind == Kind::Sqlite || self.nodes > 1 || !self.has("strangers") {
            return Vec::new();
        }
        let mut draws = self.stream("strangers").of(1).draws();
        let count = draws.between(1, 3);
        (0..count)
            .map(|_| {
                let mut rates = self.stream("stranger clock").draws();
                let rate_ppm = if self.broken == Some(Broken::Rates) { 0 } else { self.rate(&mut rates) };
                ForeignClient {
                    at_ns: TrueTime(draws.below(self.heals_ns)),
                    resource: usize::try_from(draws.below(self.resources as u64)).unwrap_or(0),
                    ttl_ns: self.ttl_ns,
                    rate_ppm,
                    hold_ns: draws.below(self.ttl_ns * 3),
                    releases: draws.one_in(2),
                }
            })
            .collect()
    }

    fn odds(&self) -> Odds {
        let mut draws = self.stream("odds").draws();
        let mut odds = |kind: &str, often: &[u64]| {
            let once_in = *draws.pick(often);
            if self.has(kind) { once_in } else { 0 }
        };
        Odds {
            seed: self.seed,
            lost: odds("lost", &[4, 10, 30]),
            jitter: odds("jitter", &[1, 2]),
            delayed: odds("delayed", if self.broken == Some(Broken::StaleNow) { &[2] } else { &[10, 30, 100] }),
            late_tells: *self.stream("late tells").draws().pick(&[1, 2]),
            copied: odds("copied", &[10, 30]),
            reset: odds("reset", &[8, 30]),
            stalled: odds("stalled", &[20, 60, 200]),
            jitter_ns: 20 * MS,
            // Later than a reply is awaited it would not be heard at all.
            delay_ns: if self.broken == Some(Broken::StaleNow) { self.ttl_ns / 6 } else { self.ttl_ns * 2 },
        }
    }
}
