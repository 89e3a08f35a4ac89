//! Sightings of records that only observers can declare dead, for short-lived processes that tell later ones.

use std::io;
use std::time::Duration;

use leasehold_core::{NodeId, Resource};

use crate::client::Client;
use crate::host::clock;
use crate::url::StoreUrl;

/// A record in the way of a lock, as a client has seen it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sighting {
    /// The url of the store that showed it, without secrets.
    pub store: String,
    /// Tells its version from all others.
    pub version: [u8; 16],
    /// When this version was first seen, by the first of [`clocks`](super::clocks).
    pub since_ns: u64,
    /// It has stood for so long that the next attempt takes the lock over.
    pub is_over: bool,
}

/// The sightings of the records in the way of a lock.
pub fn sightings(client: &Client, resource: &str) -> Vec<Sighting> {
    let Ok(resource) = Resource::new(resource) else { return Vec::new() };
    let (driver, now) = (client.driver(), client.time().monotonic());
    let seen = driver.sightings(&resource).into_iter();
    let with_store = seen.filter_map(|sighting| {
        let store = client.stores().get(sighting.node.index()).map(StoreUrl::to_string)?;
        let is_over = now >= sighting.until;
        Some(Sighting { store, version: sighting.version.digest(), since_ns: sighting.since.ns(), is_over })
    });
    with_store.collect()
}

/// Tells the client that an earlier process of this machine, since its last start, has first seen a version so long ago. It counts
/// only once the store shows that version again.
pub fn seen_before(client: &Client, resource: &str, store: &str, version: [u8; 16], ago: Duration) {
    let Ok(resource) = Resource::new(resource) else { return };
    let nodes = (0..).map(NodeId::new).zip(client.stores()).filter(|(_, url)| url.to_string() == store);
    for (node, _) in nodes {
        client.driver().seen_before(&resource, node, version, ago);
    }
}

/// Names the stretch of time in which the first of [`clocks`](super::clocks) can be compared between processes: the start of the
/// system, and the time namespace.
///
/// # Errors
/// The system does not tell.
pub fn boot_id() -> io::Result<[u8; 16]> {
    clock::boot_id().map(|boot| boot.0)
}
