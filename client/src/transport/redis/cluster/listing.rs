//! Pages of the locks of a cluster: its masters in turn.

use leasehold_wire::listing::Page;

use super::Cluster;
use crate::url::redis::Address;

/// The place where a page of a cluster begins: a master, and its own place.
pub(in super::super) struct ClusterPageStart {
    pub(in super::super) node: Address,
    pub(in super::super) after: Vec<u8>,
}

impl Cluster {
    /// The place that a page has left as its end. A master that is no longer there is passed over: its slots have moved to
    /// others. `None` behind the last master, and where no master is known.
    pub(in super::super) fn place(&self, after: &[u8]) -> Option<ClusterPageStart> {
        let (name, after) = match after.iter().rposition(|byte| *byte == b' ') {
            Some(at) => (String::from_utf8_lossy(&after[..at]).into_owned(), &after[at + 1..]),
            None => (String::new(), &[][..]),
        };
        let node = self.masters().into_iter().find(|node| node.to_string() >= name)?;
        let after = if node.to_string() == name { after.to_vec() } else { Vec::new() };
        Some(ClusterPageStart { node, after })
    }

    /// The page of one master, with a place that says which.
    pub(in super::super) fn page_of(&self, node: &Address, page: Page) -> Page {
        let name = node.to_string();
        let next = match page.next {
            Some(after) => Some([name.as_bytes(), b" ", &after].concat()),
            None => self
                .masters()
                .into_iter()
                .map(|node| node.to_string())
                .find(|other| *other > name)
                .map(|other| [other.as_bytes(), b" "].concat()),
        };
        Page { next, ..page }
    }

    fn masters(&self) -> Vec<Address> {
        let mut masters: Vec<Address> = self.map().shards().iter().map(|shard| shard.master.clone()).collect();
        masters.sort_by_key(Address::to_string);
        masters.dedup();
        masters
    }
}
