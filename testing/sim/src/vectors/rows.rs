//! The rows of the lease machine's table that a client took.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use leasehold_core::trace;

/// The counts belong to the process, so only one reader may run at a time.
static ALONE: Mutex<()> = Mutex::new(());

/// Rows taken from one moment on. No other thread counts meanwhile; a thread that asks for a second one waits forever.
pub(super) struct Counted {
    before: Vec<(&'static str, u64)>,
    _alone: MutexGuard<'static, ()>,
}

impl Counted {
    pub(super) fn new() -> Self {
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        Self { before: trace::rows(), _alone: alone }
    }

    /// Since the last time, in the order of the table; a row taken twice is there twice.
    pub(super) fn take(&mut self) -> Vec<&'static str> {
        let now = trace::rows();
        let counts = self.before.iter().zip(&now).map(|((name, before), (_, after))| (*name, after - before));
        let taken = counts.flat_map(|(name, count)| (0..count).map(move |_| name)).collect();
        self.before = now;
        taken
    }
}

/// The count of each row of the table, including rows that were never taken.
pub type Rows = BTreeMap<&'static str, u64>;

/// Every row of the table, before anybody took it.
pub fn untaken() -> Rows {
    trace::rows().into_iter().map(|(name, _)| (name, 0)).collect()
}
