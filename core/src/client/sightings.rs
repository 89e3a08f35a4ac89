//! Sightings of records that only observers can declare dead, for people and for later processes.

use alloc::vec::Vec;
use core::time::Duration;

use super::Client;
use crate::ids::{NodeId, Resource};
use crate::observe::Sighting;
use crate::time::Now;

impl Client {
    /// The records of a resource that stand in the way and are under observation, by node. They outlive the acquisitions that
    /// met them.
    pub fn sightings(&self, resource: &Resource) -> Vec<Sighting> {
        self.env.observations.sightings(resource).collect()
    }

    /// Notes that an earlier process of this machine has first seen a version so long ago: the one with that
    /// [digest](crate::Version::digest). It counts only once a record shows the same version here: then the record has stood for
    /// as long, and may be taken over the sooner.
    ///
    /// Call it before the acquisition, which must not try only [once](crate::Wait::Once): the first attempt shows the version,
    /// and the next one takes over. `ago` must not be longer than the true time by more than the drift of the clock: pass
    /// nothing that was measured across a boot, or by a wall clock alone.
    pub fn seen_before(&mut self, resource: &Resource, node: NodeId, digest: [u8; 16], ago: Duration, now: Now) {
        self.advance(now, None);
        let at = self.env.now.monotonic;
        self.env.observations.seen_before(node, resource, digest, ago, at);
    }
}
