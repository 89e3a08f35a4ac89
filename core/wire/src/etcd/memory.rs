//! The memory of what one etcd has shown last.

use alloc::collections::BTreeMap;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use leasehold_core::member::RunId;

use super::txn::{Position, Row, RowVersion};

/// The most keys that are remembered: more than a client holds locks.
const MOST_ROWS: usize = 4096;

/// The memory of what an etcd has shown last: the keys that were written from here, whose next operation needs no read, and how far its
/// history went. Keep one for each store.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
pub struct Memory {
    rows: BTreeMap<String, Vec<u8>>,
    furthest: Option<Position>,
    has_lost: bool,
}

impl Memory {
    /// Tells if the store has shown an older revision than before, or another cluster, and no quorum has been told since:
    /// a backup was restored, or its members lost what they had acknowledged.
    pub const fn has_lost(&self) -> bool {
        self.has_lost
    }

    /// The id of the cluster, which differs after a backup was restored under another token.
    pub(super) fn run(&self) -> Option<RunId> {
        RunId::new(&self.furthest?.cluster.to_string())
    }

    pub(super) fn row(&self, key: &str) -> Option<Row> {
        let value = self.rows.get(key)?.clone();
        Some(Row { key: key.into(), version: RowVersion::Value, value: Some(value) })
    }

    pub(super) fn wrote(&mut self, key: &str, value: &[u8]) {
        if self.rows.len() >= MOST_ROWS && !self.rows.contains_key(key) {
            self.rows.pop_first();
        }
        self.rows.insert(key.into(), value.to_vec());
    }

    pub(super) fn forget(&mut self, key: &str) {
        self.rows.remove(key);
    }

    pub(super) const fn furthest(&self) -> Option<Position> {
        self.furthest
    }

    /// Notes an answer to a request that was written when `before` was the furthest.
    pub(super) fn saw(&mut self, now: Position, before: Option<Position>) {
        let is_older = |before: Position| now.cluster != before.cluster || now.revision < before.revision;
        if before.is_some_and(is_older) {
            if self.furthest == before || self.furthest.is_some_and(is_older) {
                self.has_lost = true;
                self.rows.clear();
                self.furthest = Some(now);
            }
            return;
        }
        let furthest = self.furthest.get_or_insert(now);
        if furthest.cluster == now.cluster {
            furthest.revision = furthest.revision.max(now.revision);
        }
    }

    /// The node has been marked as one that lost its data.
    pub(super) fn told(&mut self) {
        self.has_lost = false;
    }
}
