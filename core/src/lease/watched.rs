//! The record in the way of an acquisition that watches it until it shows whether its holder lives.

use crate::ids::NodeId;
use crate::one_or_many::OneOrMany;
use crate::op::Holding;
use crate::time::Monotonic;
use crate::view::is_same;

/// The records that a watch has seen, one for each node.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Watched {
    /// When the record has stood for its time, and a last attempt had the time of a request.
    until: Monotonic,
    first: OneOrMany<(NodeId, Holding)>,
    lives: bool,
}

impl Watched {
    pub(crate) fn new(until: Monotonic) -> Self {
        Self { until, first: OneOrMany::default(), lives: false }
    }

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

    /// When there is nothing more to watch for; `None` if somebody was seen to hold the lock and to live.
    pub(crate) fn until(&self) -> Option<Monotonic> {
        (!self.lives).then_some(self.until)
    }
}
