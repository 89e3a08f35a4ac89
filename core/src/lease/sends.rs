//! When each unsettled send left, so that a record can tell which of them took effect.

use alloc::vec::Vec;

use crate::ids::Seq;
use crate::time::Monotonic;

/// Sends to one node whose fate is not known.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
pub(crate) struct Sends(Vec<(Seq, Monotonic)>);

impl Sends {
    /// More than a ttl's worth of tries; an older one can no longer lengthen a lease.
    const MAX: usize = 8;

    pub(crate) fn push(&mut self, seq: Seq, sent: Monotonic) {
        if self.0.len() == Self::MAX {
            self.0.remove(0);
        }
        self.0.push((seq, sent));
    }

    /// When this send left.
    pub(crate) fn sent_at(&self, seq: Seq) -> Option<Monotonic> {
        self.0.iter().find(|(known, _)| *known == seq).map(|(_, at)| *at)
    }

    pub(crate) fn earliest(&self) -> Option<Monotonic> {
        self.0.first().map(|(_, at)| *at)
    }

    /// This send certainly did nothing, and never will.
    pub(crate) fn settle(&mut self, seq: Seq) {
        self.0.retain(|(known, _)| *known != seq);
    }

    /// This send took effect; what left before it can no longer matter.
    pub(crate) fn settle_through(&mut self, seq: Seq) {
        self.0.retain(|(known, _)| *known > seq);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
