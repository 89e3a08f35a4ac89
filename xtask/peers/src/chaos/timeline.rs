//! The books of all workers, put together lease by lease.

use std::collections::BTreeMap;

use super::books::{Book, What};

/// What is known of one grant. Times are the machine's monotonic clock in nanoseconds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lease {
    /// The fencing token.
    pub token: u64,
    /// The holder, such as `python-1`.
    pub worker: String,
    /// Which way to the stores it goes.
    pub group: usize,
    /// Before it asked.
    pub asked: u64,
    /// After the answer.
    pub granted: u64,
    /// Until when the holder would believe in it, as far as it was seen to be renewed.
    pub until: u64,
    /// When the client told of its loss.
    pub told: Option<u64>,
    /// When the worker noticed.
    pub lost: Option<u64>,
    /// When the worker gave up waiting to be told.
    pub untold: Option<u64>,
    /// Before it was given back.
    pub releasing: Option<u64>,
    /// The guard has refused it.
    pub refused: Option<u64>,
}

impl Lease {
    /// From here on the holder does not believe in it any more, whoever asks.
    pub fn ends(&self) -> u64 {
        [self.told, self.lost, self.releasing].into_iter().flatten().fold(self.until, u64::min)
    }
}

/// All grants that a worker was told of, in the order of their tokens; a token that was given out twice is there twice.
pub fn leases(books: &[Book]) -> Vec<Lease> {
    let mut leases = Vec::new();
    for book in books {
        let mut asked = 0;
        let mut own: BTreeMap<usize, Lease> = BTreeMap::new();
        let mut last: BTreeMap<u64, usize> = BTreeMap::new();
        for entry in &book.entries {
            let at = entry.at;
            let token = match entry.what {
                What::Asked => {
                    asked = at;
                    continue;
                }
                What::Granted { token, until } => {
                    let (worker, group) = (book.worker.clone(), book.group);
                    let lease = Lease { token, worker, group, asked, granted: at, until, ..Lease::default() };
                    last.insert(token, own.len());
                    own.insert(own.len(), lease);
                    continue;
                }
                What::Started | What::Failed { .. } | What::Stalled { .. } => continue,
                What::Valid { token, .. }
                | What::Refused { token }
                | What::Told { token }
                | What::Lost { token }
                | What::Untold { token }
                | What::Releasing { token }
                | What::Released { token } => token,
            };
            let Some(lease) = last.get(&token).and_then(|number| own.get_mut(number)) else { continue };
            match entry.what {
                What::Valid { until, .. } => lease.until = lease.until.max(until),
                What::Refused { .. } => _ = lease.refused.get_or_insert(at),
                What::Told { .. } => _ = lease.told.get_or_insert(at),
                What::Lost { .. } => _ = lease.lost.get_or_insert(at),
                What::Untold { .. } => _ = lease.untold.get_or_insert(at),
                What::Releasing { .. } => _ = lease.releasing.get_or_insert(at),
                What::Started
                | What::Asked
                | What::Granted { .. }
                | What::Released { .. }
                | What::Failed { .. }
                | What::Stalled { .. } => {}
            }
        }
        leases.extend(own.into_values());
    }
    leases.sort_by_key(|lease| (lease.token, lease.granted));
    leases
}
