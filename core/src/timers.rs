//! Deadlines in order. Each owner keeps its own entry, and passes it in to have it moved.

use alloc::collections::BTreeSet;

use crate::time::Monotonic;

/// A queue of keys ordered by when they are due.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Timers<K: Ord> {
    due: BTreeSet<(Monotonic, K)>,
}

/// The time of an owner's entry in the queue; `None` if it has none.
pub type Entry = Option<Monotonic>;

impl<K: Ord> Default for Timers<K> {
    fn default() -> Self {
        Self { due: BTreeSet::new() }
    }
}

impl<K: Ord + Copy> Timers<K> {
    /// Makes sure that `key` comes up by `at`, or, with `None`, that it does not come up any more.
    ///
    /// An entry that is too early stays: it comes up once for nothing, which is cheaper than moving it with every renewal.
    pub fn set(&mut self, key: K, entry: &mut Entry, at: Option<Monotonic>) {
        if let (Some(before), Some(at)) = (*entry, at)
            && before <= at
        {
            return;
        }
        if let Some(before) = entry.take() {
            self.due.remove(&(before, key));
        }
        if let Some(at) = at {
            self.due.insert((at, key));
            *entry = Some(at);
        }
    }

    /// The earliest deadline.
    pub fn next(&self) -> Option<Monotonic> {
        self.due.first().map(|(at, _)| *at)
    }

    /// Takes the earliest key that is due; its owner has no entry any more.
    pub fn pop_due(&mut self, now: Monotonic) -> Option<K> {
        self.due.first().filter(|(at, _)| *at <= now)?;
        self.due.pop_first().map(|(_, key)| key)
    }

    /// Keys due up to and including `until`, in order.
    pub fn up_to(&self, until: Monotonic) -> impl Iterator<Item = K> + '_ {
        self.due.iter().take_while(move |(at, _)| *at <= until).map(|(_, key)| *key)
    }
}
