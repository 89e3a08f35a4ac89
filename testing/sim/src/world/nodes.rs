//! The nodes of the world, one store or a quorum, and their faults.

use std::collections::BTreeMap;
use std::time::Duration;

use leasehold_core::member::Phase;
use leasehold_core::op::{Applied, Op, Outcome, Refusal};
use leasehold_core::quorum::majority;
use leasehold_core::store::StoreNow;
use leasehold_core::{Nonce, Resource, Token};

use super::World;
use crate::clock::TrueTime;
use crate::counts::{Sometimes, Struck};
use crate::promise::Promise;
use crate::script::{Data, QUORUM, Script, What};
use crate::store::{By, Kind, Snapshot, Spec, Store, StoredRecord};

/// One node.
pub(super) struct Node {
    pub(super) store: Store,
    pub(super) windows: Windows,
    spec: Spec,
    /// The data of some time before a fault that restores it, by the number of the fault.
    past: BTreeMap<usize, Snapshot>,
}

/// The ends of a node's faults, by kind.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Windows {
    pub(super) down: TrueTime,
    pub(super) silent: TrueTime,
    pub(super) errors: TrueTime,
    pub(super) throttle: TrueTime,
    pub(super) credentials: TrueTime,
    pub(super) denied: TrueTime,
}

impl Node {
    pub(super) fn all(script: &Script) -> Vec<Self> {
        let world = &script.world;
        let node = |spec: &Spec| {
            let mut store = Store::new(spec);
            if world.is_quorum() && !world.unmarked {
                store.mark(QUORUM, Duration::from_nanos(world.max_ttl_ns));
            }
            Self { store, windows: Windows::default(), spec: spec.clone(), past: BTreeMap::new() }
        };
        world.specs().iter().map(node).collect()
    }

    /// True if no attempt gets its vote now.
    pub(super) fn abstains(&self) -> bool {
        let marker = self.store.membership(self.spec.durability());
        marker.is_none_or(|marker| marker.phase == Phase::Joining)
    }

    /// Its counter of a resource is not believed.
    pub(super) fn is_doubted(&self, resource: &Resource) -> bool {
        let marker = self.store.membership(self.spec.durability());
        marker.is_some_and(|marker| {
            matches!(marker.phase, Phase::Rejoined { .. }) && self.store.raised_since(resource) != Some(marker.stamp)
        })
    }

    /// The holder of a resource, and the run whose completion says that its work is done.
    pub(super) fn records_of(
        &self,
        resource: &Resource,
        at: TrueTime,
        caller: &StoreNow,
    ) -> (Option<By>, Option<Nonce>) {
        let holder = self.store.stored(resource, at, caller).map(|stored| stored.by);
        (holder, self.store.done_by(resource, at, caller))
    }

    pub(super) fn is_away(&self, at: TrueTime) -> bool {
        at < self.windows.down.max(self.windows.silent)
    }
}

/// Tokens that the nodes have forgotten, as the world knows and no client can.
#[derive(Clone, Debug, Default)]
pub(super) struct Memory {
    /// The highest token of each resource that anybody was granted.
    granted: BTreeMap<usize, Token>,
    /// The time since when no node knew a resource's token any more, or all nodes were in doubt at once, so that a
    /// quorum without a past could be born.
    pub(super) counters_lost: BTreeMap<usize, TrueTime>,
}

impl World<'_> {
    pub(super) const fn majority(&self) -> usize {
        majority(self.nodes.len())
    }

    pub(super) fn is_quorum(&self) -> bool {
        self.script.world.is_quorum()
    }

    /// The records that block others on a resource, node by node.
    pub(super) fn stored_records(&self, resource: usize, host: usize) -> Vec<Option<StoredRecord>> {
        let caller = self.store_now(host);
        let name = &self.resources[resource];
        self.nodes.iter().map(|node| node.store.stored(name, self.now, &caller)).collect()
    }

    /// The number of nodes that block others for this attempt: they hold its record, or vote for no attempt.
    pub(super) fn backing(&self, resource: usize, host: usize, by: By) -> usize {
        let stored_records = self.stored_records(resource, host);
        let backs = |(node, stored): &(&Node, Option<StoredRecord>)| {
            stored.is_some_and(|stored| stored.by == by) || (self.is_quorum() && node.abstains())
        };
        self.nodes.iter().zip(stored_records).filter(backs).count()
    }

    /// Notes what tokens rest on: that one node at least remembers the highest.
    pub(super) fn remember(&mut self, resource: usize, granted: Option<Token>) {
        if !self.is_quorum() {
            return;
        }
        if let Some(token) = granted {
            let highest = self.memory.granted.entry(resource).or_insert(token);
            *highest = token.max(*highest);
        }
        if self.nodes.iter().all(Node::abstains) {
            // A quorum without a past may be born, which knows of no completion.
            self.ledger.forget_completions();
        }
        let Some(highest) = self.memory.granted.get(&resource).copied() else { return };
        let name = &self.resources[resource];
        let knows = |node: &Node| node.store.counter(name, self.now).is_some_and(|counter| counter >= highest);
        if !self.nodes.iter().any(knows) || self.nodes.iter().all(Node::abstains) {
            self.memory.counters_lost.entry(resource).or_insert(self.now);
        }
    }

    /// The shortest time for which a completion stands, as far as clocks allow.
    pub(super) fn stands_for(&self, keep_ns: u64) -> Duration {
        let drift = keep_ns / 1_000_000 * u64::from(self.script.world.drift_ppm);
        let spread = self.script.wall_spread_ms() * 1_000_000;
        let has = |kind| self.script.world.specs().iter().any(|spec| spec.kind == kind);
        // Clients' wall clocks decide there; a table's completions stand a minute longer for that.
        let by_walls = match (has(Kind::Sqlite), has(Kind::Dynamodb)) {
            (true, _) => spread,
            (false, true) => spread.saturating_sub(60_000_000_000),
            (false, false) => 0,
        };
        Duration::from_nanos(keep_ns.saturating_sub(2 * drift + by_walls + 10_000_000))
    }

    /// A finish has been carried out, or refused: nobody but the holder may have written a completion.
    pub(super) fn check_mark(
        &mut self,
        node: usize,
        resource: usize,
        nonce: Nonce,
        holder: Option<By>,
        done: Option<Nonce>,
        caller: &StoreNow,
    ) {
        let now = self.nodes[node].records_of(&self.resources[resource], self.now, caller).1;
        if now != done && now.is_some() && (holder != Some(By::Attempt(nonce)) || now != Some(nonce)) {
            let text = format!("node {node} has a completion of {now:?}, and its lock was held by {holder:?}");
            self.record_violation(Promise::Once, None, Some(resource), text);
        }
    }

    pub(super) fn take_snapshot(&mut self, fault: usize) {
        if let What::NodeRestart { node, .. } = self.script.faults[fault].what {
            let node = &mut self.nodes[node];
            node.past.insert(fault, node.store.snapshot());
        }
    }

    pub(super) fn wipe_node(&mut self, node: usize) {
        self.nodes[node].store.wipe();
        self.strike_node(Struck::NodeWiped, node);
    }

    pub(super) fn restart_node(&mut self, fault: usize, n: usize, for_ns: u64, data: Data) {
        let until = self.after(for_ns);
        let node = &mut self.nodes[n];
        node.store.restart();
        node.windows.down = until.max(node.windows.down);
        let struck = match data {
            Data::Kept => Struck::NodeRestarted,
            Data::Lost => {
                node.store.wipe();
                Struck::NodeLostData
            }
            Data::Lags { .. } => {
                if let Some(past) = node.past.remove(&fault) {
                    node.store.restore(past);
                }
                Struck::NodePromoted
            }
        };
        self.strike_node(struck, n);
        self.record(|recorder, now| recorder.node_trouble(n, "down", now, for_ns));
    }

    pub(super) fn strike_node(&mut self, fault: Struck, node: usize) {
        self.counts.strike(fault);
        self.record(|recorder, now| recorder.node_fault(node, fault.words(), now));
    }

    /// Counts the result of one operation at a node of a quorum. `before` is the node's phase before it.
    pub(super) fn see_vote(&mut self, n: usize, op: &Op, outcome: &Outcome, before: Option<Phase>) {
        match (before, self.phase(n)) {
            (Some(Phase::Joining), Some(Phase::Member)) => self.counts.see(Sometimes::Born),
            (Some(Phase::Joining), Some(Phase::Rejoined { .. })) => self.counts.see(Sometimes::Rejoined),
            (_, _) => {}
        }
        match (op, outcome) {
            (Op::Raise(_), Outcome::Applied(Applied::Raised { .. })) => self.counts.see(Sometimes::WroteBack),
            (Op::Acquire(_), Outcome::NotApplied(Refusal::Abstains { .. })) => self.counts.see(Sometimes::Abstained),
            (Op::Renew(_), Outcome::NotApplied(Refusal::Abstains { .. })) => self.counts.see(Sometimes::KeptInDoubt),
            (Op::Acquire(op), Outcome::Applied(_)) if self.ledger.is_repair(&op.nonce, n, op.seq) => {
                self.counts.see(Sometimes::Repaired);
            }
            (_, _) => {}
        }
    }

    pub(super) fn phase(&self, node: usize) -> Option<Phase> {
        let node = &self.nodes[node];
        node.store.membership(node.spec.durability()).map(|marker| marker.phase)
    }

    /// Counts a grant with fewer than all nodes within reach.
    pub(super) fn see_reach(&mut self, host: usize) {
        let cut = |n: usize| self.now < self.hosts[host].cut_until[n];
        if self.nodes.iter().enumerate().any(|(n, node)| node.is_away(self.now) || cut(n)) {
            self.counts.see(Sometimes::MinorityDown);
        }
    }
}
