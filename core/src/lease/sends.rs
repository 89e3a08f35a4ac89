//! The time of each unsettled send, so that a record can tell which of them took effect.

use crate::ids::Seq;
use crate::time::Monotonic;

/// More tries than fit into a ttl: an older send can no longer lengthen a lease.
const MOST: usize = 4;

/// The latest sends to one node whose outcome is not known, oldest first.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
pub(crate) struct Sends([Option<(Seq, Monotonic)>; MOST]);

impl Sends {
    pub(crate) fn push(&mut self, seq: Seq, sent: Monotonic) {
        if self.0[MOST - 1].is_some() {
            self.0.rotate_left(1);
            self.0[MOST - 1] = None;
        }
        if let Some(free) = self.0.iter_mut().find(|slot| slot.is_none()) {
            *free = Some((seq, sent));
        }
    }

    /// The time at which this send left.
    pub(crate) fn sent_at(&self, seq: Seq) -> Option<Monotonic> {
        self.0.iter().flatten().find(|(known, _)| *known == seq).map(|(_, at)| *at)
    }

    pub(crate) fn earliest(&self) -> Option<Monotonic> {
        self.0[0].map(|(_, at)| at)
    }

    /// Forgets a send that certainly did nothing, and never will.
    pub(crate) fn settle(&mut self, seq: Seq) {
        self.retain(|known| known != seq);
    }

    /// Forgets a send that took effect, and all that left before it.
    pub(crate) fn settle_through(&mut self, seq: Seq) {
        self.retain(|known| known > seq);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0[0].is_none()
    }

    fn retain(&mut self, keep: impl Fn(Seq) -> bool) {
        let mut kept = [None; MOST];
        let left = self.0.iter().flatten().filter(|(seq, _)| keep(*seq));
        for (slot, send) in kept.iter_mut().zip(left) {
            *slot = Some(*send);
        }
        self.0 = kept;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;
    use alloc::vec::Vec;

    fn at(ns: u64) -> Monotonic {
        Monotonic::from_ns(ns)
    }

    /// Sends 1 to `last`, each at ten times its number.
    fn up_to(last: u32) -> Sends {
        let mut sends = Sends::default();
        (1..=last).for_each(|seq| sends.push(Seq::new(seq), at(u64::from(seq) * 10)));
        sends
    }

    fn known(sends: &Sends) -> Vec<u32> {
        (1..10).filter(|seq| sends.sent_at(Seq::new(*seq)).is_some()).collect()
    }

    #[test]
    fn applied_send_settles_all_earlier_sends() {
        let mut sends = up_to(4);
        sends.settle_through(Seq::new(2));
        assert_eq!((known(&sends), sends.earliest()), (vec![3, 4], Some(at(30))));
        sends.settle_through(Seq::new(4));
        assert!(sends.is_empty() && sends.earliest().is_none());
    }

    #[test]
    fn refused_send_settles_only_itself() {
        let mut sends = up_to(3);
        sends.settle(Seq::new(2));
        assert_eq!((known(&sends), sends.sent_at(Seq::new(3))), (vec![1, 3], Some(at(30))));
        sends.push(Seq::new(5), at(50));
        assert_eq!(known(&sends), [1, 3, 5]);
    }

    #[test]
    fn oldest_send_is_dropped_when_full() {
        assert_eq!((known(&up_to(6)), up_to(6).earliest()), (vec![3, 4, 5, 6], Some(at(30))));
    }
}
