//! Foreign versions under observation: how a dead holder is told from a living one where the store does not expire.
//!
//! An observation belongs to a node, a resource and a version, and outlives attempts: a caller that tries once a
//! second must still find out that nothing moved for a whole ttl.

use alloc::collections::BTreeMap;

use crate::config::Drift;
use crate::ids::{NodeId, Resource, Version};
use crate::op::Holding;
use crate::time::{Monotonic, observed_until};

/// What one client has seen of records that only observers can declare dead.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Observations {
    seen: BTreeMap<(Resource, NodeId), Observation>,
    limit: usize,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Observation {
    version: Version,
    until: Monotonic,
}

impl Observations {
    pub(crate) const fn new(limit: usize) -> Self {
        Self { seen: BTreeMap::new(), limit }
    }

    /// A reply that arrived at `now` shows `holding`. Answers when it may be taken over; `None` where the store
    /// itself expires it, or the record names no ttl to wait out.
    pub(crate) fn note(
        &mut self,
        node: NodeId,
        resource: &Resource,
        holding: &Holding,
        now: Monotonic,
        drift: Drift,
    ) -> Option<Monotonic> {
        if holding.released || holding.left.is_some() {
            self.forget(node, resource);
            return None;
        }
        let ttl = holding.record_ttl?;
        let key = (resource.clone(), node);
        if let Some(known) = self.seen.get(&key).filter(|known| known.version == holding.version) {
            return Some(known.until);
        }
        if self.seen.len() >= self.limit && !self.seen.contains_key(&key) {
            self.make_room(now);
        }
        let until = observed_until(now, ttl, drift, holding.format());
        self.seen.insert(key, Observation { version: holding.version.clone(), until });
        Some(until)
    }

    /// The version that has stood still for its whole ttl.
    pub(crate) fn ran_out(&self, node: NodeId, resource: &Resource, now: Monotonic) -> Option<Version> {
        let known = self.seen.get(&(resource.clone(), node))?;
        (now >= known.until).then(|| known.version.clone())
    }

    /// The node showed something else.
    pub(crate) fn forget(&mut self, node: NodeId, resource: &Resource) {
        if !self.seen.is_empty() {
            self.seen.remove(&(resource.clone(), node));
        }
    }

    /// Dropping an observation only makes a takeover later: one that ran out long ago goes first, else the youngest.
    fn make_room(&mut self, now: Monotonic) {
        let by_age = |(_, known): &(&(Resource, NodeId), &Observation)| known.until;
        let oldest = self.seen.iter().min_by_key(by_age).filter(|(_, known)| known.until <= now);
        if let Some(key) = oldest.or_else(|| self.seen.iter().max_by_key(by_age)).map(|(key, _)| key.clone()) {
            self.seen.remove(&key);
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.seen.len()
    }
}
