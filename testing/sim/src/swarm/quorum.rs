//! Quorums: 3 or 5 nodes of mixed kinds that restart, forget, and come back as replicas.

use std::time::Duration;

use leasehold_core::quorum::majority;

use super::{Broken, MS, SECOND, Swarm};
use crate::clock::TrueTime;
use crate::fault_schedule::Odds;
use crate::rng::Draws;
use crate::script::{Data, Fault, Script, What};
use crate::store::{Kind, Spec};

pub(super) fn draw(mut swarm: Swarm) -> (Script, Odds) {
    let mut draws = swarm.stream("quorum").draws();
    swarm.nodes = *draws.pick(&[3, 3, 5]);
    swarm.kind = Kind::Redis;
    swarm.kernels_apart = true;
    swarm.resources = swarm.resources.min(2);
    // Beyond the longest record of most runs, so that what a node has forgotten is over well before the end.
    swarm.heals_ns = swarm.ttl_ns * draws.between(8, 20) + draws.between(2, 8) * SECOND;
    swarm.late_nodes = swarm.forgets_counters() || draws.one_in(2);
    let forgets = swarm.has("amnesia");
    if forgets {
        swarm.heals_ns += 2 * swarm.ttl_ns + 3 * SECOND;
    }
    let (mut script, odds) = swarm.draw();
    if forgets && !swarm.forgets_counters() {
        // Far enough ahead that no later floor makes up for a token that was forgotten.
        script.hosts[0].unix_offset_ms += 20_000;
    }
    let longest_ns = script.longest_record_ns().max(SECOND);
    let world = &mut script.world;
    world.store = None;
    world.nodes = (0..swarm.nodes).map(|n| swarm.node_spec(n)).collect();
    world.reads = draws.one_in(4);
    world.unmarked = draws.one_in(3);
    let is_observed = world.nodes.iter().any(|node| node.kind == Kind::Dynamodb);
    world.sessions = is_observed && swarm.broken.is_none() && swarm.has("sessions");
    // Whole milliseconds, as in markers.
    world.max_ttl_ns = (longest_ns + draws.below(longest_ns / 2)).next_multiple_of(MS);
    if swarm.has("retention") {
        let retention = Duration::from_nanos((world.max_ttl_ns + 2 * SECOND).max(swarm.ttl_ns * 4));
        world.nodes.iter_mut().filter(|spec| spec.kind == Kind::Redis).for_each(|spec| spec.retention = retention);
    }
    script.name = format!("quorum seed {}", swarm.seed);
    (script, odds)
}

impl Swarm {
    fn node_spec(&self, n: usize) -> Spec {
        let mut draws = self.stream("node").of(n as u64).draws();
        let undurable = self.broken == Some(Broken::Undurable);
        let kind = if undurable {
            Kind::Redis
        } else {
            *draws.pick(&[Kind::Redis, Kind::Redis, Kind::Memory, Kind::Dynamodb, Kind::Dynamodb])
        };
        let durable = draws.one_in(3);
        Spec {
            rate_ppm: if kind == Kind::Dynamodb { 0 } else { self.node_rate(&mut draws) },
            durable: undurable || (durable && kind == Kind::Redis),
            ..Spec::of(kind)
        }
    }

    pub(super) fn node_rate(&self, draws: &mut Draws) -> i32 {
        let rate = self.rate(draws);
        if self.late_nodes { -rate.abs() } else { rate }
    }

    /// One of the nodes; where there is only one, nothing is drawn.
    pub(super) fn node(&self, draws: &mut Draws) -> usize {
        if self.nodes == 1 { 0 } else { usize::try_from(draws.below(self.nodes as u64)).unwrap_or(0) }
    }

    /// Any of the nodes, at least one; none are named where there is only one, which means it.
    pub(super) fn some_nodes(&self, draws: &mut Draws) -> Vec<usize> {
        if self.nodes == 1 {
            return Vec::new();
        }
        let named = draws.between(1, (1 << self.nodes) - 1);
        (0..self.nodes).filter(|node| named >> node & 1 == 1).collect()
    }

    /// The faults of a quorum's nodes.
    pub(super) fn node_faults(&self) -> Vec<Fault> {
        let mut faults = Vec::new();
        if self.nodes == 1 {
            return faults;
        }
        let long = |draws: &mut Draws| draws.below(self.ttl_ns / 2) << draws.below(4);
        let mut add = |kind: &str, most: u64, what: &dyn Fn(&mut Draws, u64) -> Option<What>| {
            let mut draws = self.stream(kind).of(1).draws();
            for _ in 0..if self.has(kind) { draws.between(1, most) } else { 0 } {
                let at_ns = draws.below(self.heals_ns);
                faults.extend(what(&mut draws, at_ns).map(|what| Fault { at_ns: TrueTime(at_ns), what }));
            }
        };
        let restart = |node, for_ns, data| Some(What::NodeRestart { node, for_ns, data });
        add("node restart", 3, &|draws, _| restart(self.node(draws), long(draws), Data::Kept));
        add("node empty", 3, &|draws, _| restart(self.node(draws), long(draws), Data::Lost));
        add("node promoted", 3, &|draws, at_ns| {
            let (node, for_ns, by_ns) = (self.node(draws), long(draws) / 4, long(draws) / 2);
            let spec = self.node_spec(node);
            // A node that cannot tell that it has forgotten must not forget.
            let tells = spec.kind == Kind::Redis && !spec.durable;
            restart(node, for_ns, Data::Lags { by_ns: by_ns.min(at_ns) }).filter(|_| tells)
        });
        add("node wiped", 3, &|draws, _| Some(What::NodeWiped { node: self.node(draws) }));
        if self.has("rolling") {
            let mut draws = self.stream("rolling").of(1).draws();
            let data = *draws.pick(&[Data::Kept, Data::Lost]);
            let (from, apart, away) = (draws.below(self.heals_ns / 2), long(&mut draws), long(&mut draws) / 4);
            faults.extend((0..self.nodes).map(|node| Fault {
                at_ns: TrueTime(from + apart * node as u64),
                what: What::NodeRestart { node, for_ns: away, data },
            }));
        }
        if self.has("amnesia") {
            faults.extend(self.amnesia());
        }
        let mut draws = self.stream("broken").of(1).draws();
        let at_ns = TrueTime(self.heals_ns / 4 + draws.below(self.heals_ns / 2));
        if self.broken == Some(Broken::Majority) {
            let first = self.node(&mut draws);
            let wiped = (first..first + majority(self.nodes)).map(|node| node % self.nodes);
            faults.extend(wiped.map(|node| Fault { at_ns, what: What::NodeWiped { node } }));
        }
        if self.broken == Some(Broken::Undurable) {
            let by_ns = (self.ttl_ns + draws.below(self.ttl_ns)).min(at_ns.0);
            faults.extend(
                (0..majority(self.nodes)).map(|node| Fault {
                    at_ns,
                    what: What::NodeRestart { node, for_ns: 0, data: Data::Lags { by_ns } },
                }),
            );
        }
        faults
    }

    /// The faults with which a node's lost memory matters: others had no part in the grants that it forgets, and those
    /// that had are out of reach when it votes again.
    fn amnesia(&self) -> Vec<Fault> {
        let mut draws = self.stream("amnesia").of(1).draws();
        let (spare, first) = (self.nodes / 2, self.node(&mut draws));
        let node = |n: usize| (first + n) % self.nodes;
        let from = draws.below(self.heals_ns / 4);
        let forgets = from + self.ttl_ns + draws.below(self.ttl_ns);
        let again = forgets + draws.below(3 * self.ttl_ns);
        let down = |at: u64, to: u64, n: usize| Fault {
            at_ns: TrueTime(at),
            what: What::StoreDown { node: node(n), for_ns: to.saturating_sub(at) },
        };
        let mut faults: Vec<Fault> = (0..spare).map(|n| down(from, forgets, n)).collect();
        // The one that forgets, and the others that were granted anything meanwhile.
        faults.push(Fault { at_ns: TrueTime(forgets), what: What::NodeWiped { node: node(spare) } });
        faults.extend((spare + 1..self.nodes).map(|n| down(again, self.heals_ns, n)));
        faults
    }
}
