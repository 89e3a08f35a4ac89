//! Leases, put together from the journals of all workers.

use std::collections::BTreeMap;

use super::journal::{Event, Journal};

/// Two ends that are closer together than this are the same end, read twice.
const SAME_END: u64 = 1_000_000;

/// A lease. Times are the machine's monotonic clock in nanoseconds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lease {
    /// The fencing token.
    pub token: u64,
    /// The holder, such as `python-1`.
    pub worker: String,
    /// The holder's group.
    pub group: usize,
    /// The time just before the holder asked for it.
    pub asked: u64,
    /// The time just after the answer.
    pub granted: u64,
    /// The end of the lease without any renewal, by its holder.
    pub first_until: u64,
    /// The end of the lease with the renewals that were seen, by its holder.
    pub until: u64,
    /// True if the worker's watch thread followed its renewals.
    pub is_watched: bool,
    /// The number of renewals that were seen.
    pub renewals: u64,
    /// The last instant at which its holder is known to have found it valid.
    pub believed: Option<u64>,
    /// The time when the client reported its loss.
    pub notified: Option<u64>,
    /// The time when the worker noticed its loss.
    pub lost: Option<u64>,
    /// The time when the worker gave up waiting for the report.
    pub not_notified: Option<u64>,
    /// The time just before its release.
    pub releasing: Option<u64>,
    /// The number of times that the guard rejected its token.
    pub refusals: u64,
    /// True if the guard rejected its token while the lease was valid.
    pub is_contradicted: bool,
    /// The time when its process was killed.
    pub gone: u64,
}

impl Lease {
    /// The time from which its holder does not believe in it any more.
    pub fn ends(&self) -> u64 {
        let end = [self.notified, self.lost, self.releasing].into_iter().flatten().fold(self.until, u64::min);
        // A check that passed later counts more than any report.
        end.max(self.believed.map_or(0, |at| at + 1))
    }

    /// True if it was found valid after its loss was known.
    pub fn is_revived(&self) -> bool {
        let known = [self.notified, self.lost].into_iter().flatten().min();
        known.zip(self.believed).is_some_and(|(known, believed)| known < believed)
    }
}

/// All leases that were granted, in the order of their tokens. A token that was granted twice is there twice.
pub fn leases(journals: &[Journal]) -> Vec<Lease> {
    let mut leases = Vec::new();
    for journal in journals {
        let mut asked = 0;
        let mut own: BTreeMap<usize, Lease> = BTreeMap::new();
        let mut last: BTreeMap<u64, usize> = BTreeMap::new();
        for entry in &journal.entries {
            let at = entry.at;
            let token = match entry.event {
                Event::Asked => {
                    asked = at;
                    continue;
                }
                Event::Granted { token, until, is_watched } => {
                    let lease = Lease {
                        token,
                        worker: journal.worker.clone(),
                        group: journal.group,
                        asked,
                        granted: at,
                        first_until: until,
                        until,
                        is_watched,
                        gone: journal.ended,
                        ..Lease::default()
                    };
                    last.insert(token, own.len());
                    own.insert(own.len(), lease);
                    continue;
                }
                Event::Started | Event::Failed { .. } | Event::Stalled { .. } => continue,
                Event::Valid { token, .. }
                | Event::Checked { token }
                | Event::Refused { token, .. }
                | Event::Notified { token }
                | Event::Lost { token }
                | Event::NotNotified { token }
                | Event::Releasing { token }
                | Event::Released { token } => token,
            };
            let Some(lease) = last.get(&token).and_then(|number| own.get_mut(number)) else { continue };
            match entry.event {
                Event::Valid { until, .. } => {
                    lease.renewals += u64::from(until > lease.until + SAME_END);
                    lease.until = lease.until.max(until);
                    lease.believed = lease.believed.max(Some(at));
                }
                Event::Checked { .. } => lease.believed = lease.believed.max(Some(at)),
                Event::Refused { is_valid, .. } => {
                    lease.refusals += 1;
                    lease.is_contradicted |= is_valid;
                }
                Event::Notified { .. } => _ = lease.notified.get_or_insert(at),
                Event::Lost { .. } => _ = lease.lost.get_or_insert(at),
                Event::NotNotified { .. } => _ = lease.not_notified.get_or_insert(at),
                Event::Releasing { .. } => _ = lease.releasing.get_or_insert(at),
                Event::Started
                | Event::Asked
                | Event::Granted { .. }
                | Event::Released { .. }
                | Event::Failed { .. }
                | Event::Stalled { .. } => {}
            }
        }
        leases.extend(own.into_values());
    }
    leases.sort_by_key(|lease| (lease.token, lease.granted));
    leases
}
