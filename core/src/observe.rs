//! Foreign versions under observation: the way to tell a dead holder from a living one where the store does not expire
//! records.
//!
//! An observation belongs to a node, a resource and a version, and outlives attempts: a caller that tries once a second
//! must still find out that nothing changed for a whole ttl.

use alloc::collections::BTreeMap;
use core::time::Duration;

use crate::config::Drift;
use crate::ids::{NodeId, Resource, Version};
use crate::op::Holding;
use crate::time::{AWAY_FROM_QUEUE, Monotonic, first_sight, observed_until};

/// The observations of one client, of records that only observers can declare dead.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Observations {
    seen: BTreeMap<(Resource, NodeId), Observation>,
    /// Where a holder of another library was seen, and when last.
    foreign: BTreeMap<Resource, Monotonic>,
    /// First sights of earlier processes of this machine. They count once a record shows the same version here.
    earlier: BTreeMap<(Resource, NodeId), ([u8; 16], Monotonic)>,
    limit: usize,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Observation {
    version: Version,
    /// When it was first seen.
    since: Monotonic,
    /// When it was last seen.
    seen: Monotonic,
    until: Monotonic,
    /// Another version was seen before it.
    is_changed: bool,
}

/// A record that only observers can declare dead, as a client has seen it so far.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sighting {
    /// The node.
    pub node: NodeId,
    /// The version of the record.
    pub version: Version,
    /// When it was first seen.
    pub since: Monotonic,
    /// When it was last seen.
    pub seen: Monotonic,
    /// When the record may be taken over, unless its version changes before.
    pub until: Monotonic,
    /// Another version was seen before it: somebody has written the record meanwhile.
    pub is_changed: bool,
}

impl Observations {
    pub(crate) const fn new(limit: usize) -> Self {
        Self { seen: BTreeMap::new(), foreign: BTreeMap::new(), earlier: BTreeMap::new(), limit }
    }

    /// Notes that a reply that arrived at `now` shows `holding`. Returns when it may be taken over; `None` if the store
    /// itself expires it, or the record has no ttl to wait out.
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
        if let Some(known) = self.seen.get_mut(&key).filter(|known| known.version == holding.version) {
            known.seen = now;
            return Some(known.until);
        }
        if self.seen.len() >= self.limit && !self.seen.contains_key(&key) {
            self.make_room(now);
        }
        let earlier = self.earlier.remove(&key).filter(|(digest, _)| *digest == holding.version.digest());
        let since = earlier.map_or(now, |(_, since)| since.min(now));
        let until = observed_until(since, ttl, drift, holding.format());
        let is_changed = self.seen.contains_key(&key);
        self.seen.insert(key, Observation { version: holding.version.clone(), since, seen: now, until, is_changed });
        Some(until)
    }

    /// Notes that an earlier process has first seen the version with that digest so long ago.
    pub(crate) fn seen_before(
        &mut self,
        node: NodeId,
        resource: &Resource,
        digest: [u8; 16],
        ago: Duration,
        now: Monotonic,
    ) {
        let key = (resource.clone(), node);
        if self.earlier.len() < self.limit || self.earlier.contains_key(&key) {
            self.earlier.insert(key, (digest, first_sight(now, ago)));
        }
    }

    /// The records of a resource that are under observation, by node.
    pub(crate) fn sightings(&self, resource: &Resource) -> impl Iterator<Item = Sighting> {
        let all = (resource.clone(), NodeId::new(0))..=(resource.clone(), NodeId::new(u16::MAX));
        self.seen.range(all).map(|((_, node), seen)| Sighting {
            node: *node,
            version: seen.version.clone(),
            since: seen.since,
            seen: seen.seen,
            until: seen.until,
            is_changed: seen.is_changed,
        })
    }

    /// The version that has not changed for its whole ttl.
    pub(crate) fn ran_out(&self, node: NodeId, resource: &Resource, now: Monotonic) -> Option<Version> {
        let known = self.seen.get(&(resource.clone(), node))?;
        (now >= known.until).then(|| known.version.clone())
    }

    /// Forgets an observation, since the node showed something else.
    pub(crate) fn forget(&mut self, node: NodeId, resource: &Resource) {
        if !self.seen.is_empty() {
            self.seen.remove(&(resource.clone(), node));
        }
    }

    /// Notes that a holder of another library has the resource. Of too many, the one seen longest ago is forgotten: its waiters
    /// stand in the queue again.
    pub(crate) fn saw_foreign(&mut self, resource: &Resource, now: Monotonic) {
        self.foreign.retain(|_, seen| now.since(*seen) < AWAY_FROM_QUEUE);
        if self.foreign.len() >= self.limit && !self.foreign.contains_key(resource) {
            let oldest = self.foreign.iter().min_by_key(|(_, seen)| **seen).map(|(oldest, _)| oldest.clone());
            oldest.map(|oldest| self.foreign.remove(&oldest));
        }
        self.foreign.insert(resource.clone(), now);
    }

    /// Tells if a holder of another library was seen lately.
    pub(crate) fn is_shared(&self, resource: &Resource, now: Monotonic) -> bool {
        self.foreign.get(resource).is_some_and(|seen| now.since(*seen) < AWAY_FROM_QUEUE)
    }

    /// Drops an observation, which only makes a takeover later: the one that ran out first, otherwise the youngest.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::{Nonce, Seq};
    use crate::op::Holder;

    const TTL: Duration = Duration::from_secs(30);
    const START: Monotonic = Monotonic::from_ns(0);
    const LATER: Monotonic = Monotonic::from_ns(60_000_000_000);
    const NODE: NodeId = NodeId::new(0);

    /// The record of a lease that only observers can declare dead.
    fn holding(heartbeat: u32) -> Holding {
        let nonce = Nonce::from_bytes([7; 16]);
        let holder = Holder::Lease { nonce, seq: None };
        Holding { record_ttl: Some(TTL), ..Holding::of(holder, Version::of(&nonce, Seq::new(heartbeat))) }
    }

    fn resource(number: usize) -> Resource {
        Resource::new(&alloc::format!("job-{number}")).unwrap()
    }

    /// Of one resource, after it has shown `holding(1)` and then something else.
    fn after(then: impl FnOnce(&mut Observations, &Resource)) -> (usize, Option<Version>) {
        let (mut observations, job) = (Observations::new(2), resource(0));
        observations.note(NODE, &job, &holding(1), START, Drift::default());
        assert_eq!((observations.len(), observations.ran_out(NODE, &job, LATER)), (1, Some(holding(1).version)));
        then(&mut observations, &job);
        (observations.len(), observations.ran_out(NODE, &job, LATER))
    }

    #[test]
    fn holders_of_other_libraries_are_remembered_for_a_minute_and_within_bounds() {
        let mut observations = Observations::new(2);
        let at = |secs| START.plus(Duration::from_secs(secs));
        let shared = |observations: &Observations, secs| -> alloc::vec::Vec<usize> {
            (0..4).filter(|n| observations.is_shared(&resource(*n), at(secs))).collect()
        };
        observations.saw_foreign(&resource(0), at(0));
        observations.saw_foreign(&resource(1), at(10));
        assert_eq!((shared(&observations, 59), shared(&observations, 60)), (alloc::vec![0, 1], alloc::vec![1]));
        observations.saw_foreign(&resource(2), at(20));
        assert_eq!(shared(&observations, 20), [1, 2], "the one seen longest ago makes room");
        observations.saw_foreign(&resource(3), at(200));
        assert_eq!(observations.foreign.len(), 1, "what is over is forgotten");
    }

    #[test]
    fn released_and_expiring_records_are_not_observed() {
        for other in [
            Holding { released: true, ..holding(1) },
            Holding { left: Some(TTL), ..holding(1) },
            Holding { released: true, left: Some(TTL), ..holding(1) },
        ] {
            let forgotten = after(|observations, job| {
                assert_eq!(observations.note(NODE, job, &other, START, Drift::default()), None);
            });
            assert_eq!(forgotten, (0, None), "{other:?}");
        }
    }

    #[test]
    fn forgetting_removes_the_observation() {
        assert_eq!(after(|observations, job| observations.forget(NODE, job)), (0, None));
    }

    #[test]
    fn heartbeat_restarts_the_observation() {
        let renewed = after(|observations, job| {
            let until = observations.note(NODE, job, &holding(2), LATER, Drift::default());
            assert!(until.is_some_and(|until| until >= LATER.plus(TTL)), "{until:?}");
        });
        assert_eq!(renewed, (1, None));
    }

    #[test]
    fn expired_or_youngest_observation_is_dropped_when_full() {
        let mut observations = Observations::new(2);
        let note = |observations: &mut Observations, number, at| {
            observations.note(NODE, &resource(number), &holding(1), at, Drift::default());
        };
        let known = |observations: &Observations| -> alloc::vec::Vec<usize> {
            (0..5).filter(|n| observations.seen.contains_key(&(resource(*n), NODE))).collect()
        };
        let soon = Monotonic::from_ns(1);
        note(&mut observations, 0, START);
        note(&mut observations, 1, soon);
        note(&mut observations, 2, soon.plus(TTL / 2));
        assert_eq!(known(&observations), [0, 2], "nothing ran out: the youngest went");
        note(&mut observations, 3, LATER);
        assert_eq!(known(&observations), [2, 3], "the first ran out");
        note(&mut observations, 3, LATER.plus(TTL));
        assert_eq!(known(&observations), [2, 3], "a known key needs no room");
    }
}
