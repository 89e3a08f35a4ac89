//! The books of all workers, put together lease by lease.

use std::collections::BTreeMap;

use super::books::{Book, What};

/// Ends that are closer together are the same, looked at twice.
const NEWS: u64 = 1_000_000;

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
    /// Until when the holder would have believed in it without a renewal.
    pub first_until: u64,
    /// Until when the holder would believe in it, as far as it was seen to be renewed.
    pub until: u64,
    /// Whether renewals were looked for.
    pub is_watched: bool,
    /// Renewals that were seen.
    pub renewals: u64,
    /// The last instant at which it is known to have been believed in.
    pub believed: Option<u64>,
    /// When the client told of its loss.
    pub told: Option<u64>,
    /// When the worker noticed.
    pub lost: Option<u64>,
    /// When the worker gave up waiting to be told.
    pub untold: Option<u64>,
    /// Before it was given back.
    pub releasing: Option<u64>,
    /// The guard has refused it, and it was valid all the same.
    pub is_contradicted: bool,
    /// When its process was killed.
    pub gone: u64,
}

impl Lease {
    /// From here on the holder does not believe in it any more, whoever asks.
    pub fn ends(&self) -> u64 {
        let end = [self.told, self.lost, self.releasing].into_iter().flatten().fold(self.until, u64::min);
        // Whatever it was told: who was seen to believe did believe.
        end.max(self.believed.map_or(0, |at| at + 1))
    }

    /// It was believed in after its loss was known.
    pub fn is_revived(&self) -> bool {
        let known = [self.told, self.lost].into_iter().flatten().min();
        known.zip(self.believed).is_some_and(|(known, believed)| known < believed)
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
                What::Granted { token, until, is_watched } => {
                    let lease = Lease {
                        token,
                        worker: book.worker.clone(),
                        group: book.group,
                        asked,
                        granted: at,
                        first_until: until,
                        until,
                        is_watched,
                        gone: book.ended,
                        ..Lease::default()
                    };
                    last.insert(token, own.len());
                    own.insert(own.len(), lease);
                    continue;
                }
                What::Started | What::Failed { .. } | What::Stalled { .. } => continue,
                What::Valid { token, .. }
                | What::Checked { token }
                | What::Refused { token, .. }
                | What::Told { token }
                | What::Lost { token }
                | What::Untold { token }
                | What::Releasing { token }
                | What::Released { token } => token,
            };
            let Some(lease) = last.get(&token).and_then(|number| own.get_mut(number)) else { continue };
            match entry.what {
                What::Valid { until, .. } => {
                    lease.renewals += u64::from(until > lease.until + NEWS);
                    lease.until = lease.until.max(until);
                    lease.believed = lease.believed.max(Some(at));
                }
                What::Checked { .. } => lease.believed = lease.believed.max(Some(at)),
                What::Refused { is_valid, .. } => lease.is_contradicted |= is_valid,
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
