//! The record in the way of an acquisition that waits for no living holder: watched until it shows whether its holder lives.

use crate::ids::NodeId;
use crate::one_or_many::OneOrMany;
use crate::op::Holding;
use crate::view::is_same;

/// The records that a watch has seen, one for each node.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
pub(crate) struct Watched {
    first: OneOrMany<(NodeId, Holding)>,
    lives: bool,
}

impl Watched {
    /// Notes the record that a node shows, of a client of so many nodes.
    ///
    /// A holder that renews its record lives. So does another holder in its place, on a single store. On one node of several
    /// that may be an attempt that comes to nothing, so it is watched from then on.
    pub(crate) fn saw(&mut self, node: NodeId, holding: &Holding, nodes: usize) {
        let Some((_, first)) = self.first.iter_mut().find(|(id, _)| *id == node) else {
            return self.first.push((node, holding.clone()));
        };
        if first.version != holding.version {
            self.lives |= nodes == 1 || is_same(first, holding);
            *first = holding.clone();
        }
    }

    /// Returns true if somebody was seen to hold the lock and to live.
    pub(crate) const fn lives(&self) -> bool {
        self.lives
    }
}
