//! Failovers that were seen while the client was connected. Replication is asynchronous, so the new master may lack
//! locks that the old one had acknowledged: each failover is reported in the log and by `doctor`.

use tracing::Level;

use crate::host::clock;
use crate::host::sync::Mutex;
use crate::reports;
use crate::url::redis::Address;

/// The most failovers that are kept.
const MOST_KEPT: usize = 16;

/// One failover.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Failover {
    pub(super) from: Address,
    pub(super) to: Address,
    /// When it was noticed, in milliseconds since 1970.
    pub(super) unix_ms: u64,
}

/// The failovers since the client connected.
#[derive(Default)]
pub(super) struct Failovers(Mutex<Vec<Failover>>);

impl Failovers {
    pub(super) fn note(&self, from: &Address, to: &Address) {
        let failover = Failover { from: from.clone(), to: to.clone(), unix_ms: clock::unix_ms() };
        let mut all = self.0.lock();
        if all.len() == MOST_KEPT {
            all.remove(0);
        }
        all.push(failover.clone());
        drop(all);
        reports::queue(Level::WARN, move || {
            let Failover { from, to, .. } = failover;
            tracing::warn!(
                target: "leasehold",
                %from,
                %to,
                "another Redis server is the master now; replication is asynchronous, so locks that the old master had \
                 acknowledged may be lost, and may be granted again while their holders still work"
            );
        });
    }

    /// All of them, the latest last.
    pub(super) fn all(&self) -> Vec<Failover> {
        self.0.lock().clone()
    }
}
