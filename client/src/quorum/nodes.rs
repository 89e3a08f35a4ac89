//! The nodes of a quorum, by url and name, and the id that they have in common.

use std::collections::HashSet;
use std::time::Duration;

use leasehold_core::Quorum as Agreed;
use leasehold_core::config::Drift;
use leasehold_core::member::QuorumId;
use leasehold_core::quorum::majority;
use leasehold_core::time::abstention;

use crate::error::Error;
use crate::host::sync::Arc;
use crate::url::StoreUrl;
use crate::url::place::Place;

/// The part of a quorum that its client keeps.
pub(crate) struct Nodes {
    pub(super) urls: Vec<StoreUrl>,
    pub(super) places: Vec<Arc<dyn Place>>,
    pub(super) names: Vec<String>,
    pub(super) agreed: Agreed,
    pub(super) drift: Drift,
}

/// One node, as it is named.
#[derive(Clone, Copy)]
pub(super) struct Named<'a> {
    pub(super) place: &'a Arc<dyn Place>,
    pub(super) name: &'a str,
}

impl Nodes {
    /// In the order in which they were named.
    pub(crate) fn urls(&self) -> &[StoreUrl] {
        &self.urls
    }

    /// The name of a node in messages.
    pub(crate) fn name(&self, node: usize) -> &str {
        self.names.get(node).map_or("?", String::as_str)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = Named<'_>> {
        self.places.iter().zip(&self.names).map(|(place, name)| Named { place, name })
    }

    pub(super) fn majority(&self) -> usize {
        majority(self.names.len())
    }

    /// The longest ttl of their locks.
    pub(crate) fn max_ttl(&self) -> Duration {
        self.agreed.max_ttl()
    }

    pub(super) fn abstention(&self) -> Duration {
        abstention(self.max_ttl(), self.drift)
    }
}

/// # Errors
/// The same store twice.
pub(crate) fn refuse_doubles(places: &[Arc<dyn Place>], names: &[String]) -> Result<(), Error> {
    let mut seen = HashSet::new();
    for (place, name) in places.iter().zip(names) {
        // Without a name, each is a store of its own.
        if !place.is_shared() {
            continue;
        }
        if !seen.insert(name) {
            return Err(Error::config(format!(
                "{name} is named twice, so its failure would take two votes at once; name each node once"
            )));
        }
    }
    Ok(())
}

/// The id that was given, or else the one that follows from the names of the nodes.
pub(crate) fn id(given: Option<&str>, names: &[String]) -> Result<QuorumId, Error> {
    const MAX_BYTES: usize = 256;
    let majority = majority(names.len());
    let Some(text) = given else {
        return Ok(QuorumId::of(&names.iter().map(String::as_str).collect::<Vec<_>>(), majority));
    };
    if text.is_empty() || text.len() > MAX_BYTES {
        return Err(Error::config(format!("quorum_id has {} bytes; it must have 1 to {MAX_BYTES}", text.len())));
    }
    Ok(leasehold_core::member::LossId::parse(text).map_or_else(|| QuorumId::of(&[text], majority), |id| QuorumId(id.0)))
}
