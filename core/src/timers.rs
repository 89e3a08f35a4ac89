//! Deadlines in order: at most one for each key.

use alloc::collections::{BTreeMap, BTreeSet};

use crate::time::Monotonic;

/// A queue of keys ordered by when they are due.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Timers<K: Ord> {
    due: BTreeSet<(Monotonic, K)>,
    of: BTreeMap<K, Monotonic>,
}

impl<K: Ord + Copy> Timers<K> {
    pub(crate) const fn new() -> Self {
        Self { due: BTreeSet::new(), of: BTreeMap::new() }
    }

    /// Sets, moves or (with `None`) clears the key's deadline.
    pub(crate) fn set(&mut self, key: K, at: Option<Monotonic>) {
        let before = match at {
            Some(at) => self.of.insert(key, at),
            None => self.of.remove(&key),
        };
        if before == at {
            return;
        }
        if let Some(before) = before {
            self.due.remove(&(before, key));
        }
        if let Some(at) = at {
            self.due.insert((at, key));
        }
    }

    /// The earliest deadline.
    pub(crate) fn next(&self) -> Option<Monotonic> {
        self.due.first().map(|(at, _)| *at)
    }

    /// Takes the earliest key that is due.
    pub(crate) fn pop_due(&mut self, now: Monotonic) -> Option<K> {
        let (at, key) = *self.due.first()?;
        if at > now {
            return None;
        }
        self.set(key, None);
        Some(key)
    }

    /// Keys due after `from`, up to and including `until`, in order.
    pub(crate) fn between(&self, from: Monotonic, until: Monotonic) -> impl Iterator<Item = K> + '_ {
        self.due.iter().skip_while(move |(at, _)| *at <= from).take_while(move |(at, _)| *at <= until).map(|(_, k)| *k)
    }
}
