//! The attribute of the table's time to live: from when on DynamoDB may remove a row, with its counter and its mark.

use std::hash::{Hash, Hasher};
use std::time::Duration;

use leasehold_core::Resource;
use leasehold_core::member::RETENTION;

/// In seconds since 1970; absent in a row that no client of ours has written.
///
/// It decides no answer, so rows that differ in nothing else are equal, and a search takes them for one.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::store) struct Kept(Option<u64>);

impl PartialEq for Kept {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Kept {}

impl Hash for Kept {
    fn hash<H: Hasher>(&self, _: &mut H) {}
}

impl Kept {
    /// The seconds since 1970.
    pub(in crate::store) const fn until(self) -> Option<u64> {
        self.0
    }

    /// At exactly this time, in milliseconds since 1970, and so much later.
    pub(in crate::store) const fn at(unix_ms: u64, length: Duration) -> Self {
        Self(Some(unix_ms / 1_000 + length.as_secs()))
    }

    /// After a write that a holder goes on from: what lies on the row of a run may have to stay for longer.
    pub(super) fn held(self, lock: &Resource, unix_ms: u64) -> Self {
        let now = Self::at(unix_ms, RETENTION);
        Self(if lock.may_be_of_run() { self.0.max(now.0) } else { now.0 })
    }

    /// After any other write of a lock.
    pub(super) fn left(self, lock: &Resource, unix_ms: u64) -> Self {
        if lock.may_be_of_run() { self } else { Self::at(unix_ms, RETENTION) }
    }
}
