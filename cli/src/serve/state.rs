//! The leases that the daemon holds for its clients, and what it tells about them.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::ops::Deref;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use leasehold::{Client, Error, Lease, Run, ffi};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::keys::{Key, Prints};
use super::leases::Ended;
use super::list::Cursor;
use super::recent::Recent;
use super::reply::Reply;

/// The most ends of leases that are remembered of each client.
const ENDS: usize = 1_000;
/// The most places in lists that are remembered of each client.
const CURSORS: usize = 100;
/// The most losses that are remembered.
const LOSSES: usize = 50;

/// Everything that the requests share.
pub(super) struct Service {
    pub(super) client: Client,
    pub(super) store: String,
    /// The most leases and waits of one client.
    pub(super) most: usize,
    /// Connections that may wait or hold. The others are left for renewals and releases.
    occupied: Arc<Semaphore>,
    table: Mutex<Table>,
    pub(super) prints: Prints,
    pub(super) counts: Counts,
}

/// All that is held, waited for and remembered.
pub(super) struct Table {
    /// By the ids of the leases.
    pub(super) held: HashMap<String, Entry>,
    /// Leases that clients have released or finished, by their ids.
    pub(super) ended: Recent<Ended>,
    /// Keys of acquisitions.
    pub(super) keys: Recent<Key>,
    /// Places in lists.
    pub(super) cursors: Recent<Cursor>,
    /// The number of requests that wait for each resource.
    waiting: BTreeMap<String, usize>,
    /// Leases and waits of each client.
    of_client: HashMap<String, usize>,
    losses: VecDeque<Loss>,
}

/// One lease, which its client keeps by calls.
pub(super) struct Entry {
    pub(super) work: Arc<Work>,
    pub(super) client: String,
    ttl: Duration,
    until: u64,
}

/// A held lock, or a run.
pub(super) enum Work {
    Lock(Lease),
    Run(Run),
}

impl Deref for Work {
    type Target = Lease;

    fn deref(&self) -> &Lease {
        match self {
            Self::Lock(lease) => lease,
            Self::Run(run) => run,
        }
    }
}

/// A lease that was lost, or that its client did not keep.
#[derive(Clone)]
pub(super) struct Loss {
    pub(super) unix_ms: u64,
    pub(super) resource: String,
    pub(super) owner: String,
    pub(super) token: u64,
    pub(super) why: String,
}

/// Counters of `/metrics`, and nothing that names a resource.
#[derive(Default)]
pub(super) struct Counts {
    pub(super) granted: AtomicU64,
    pub(super) busy: AtomicU64,
    pub(super) failed: AtomicU64,
    pub(super) renewed: AtomicU64,
    pub(super) released: AtomicU64,
    pub(super) lost: AtomicU64,
    pub(super) abandoned: AtomicU64,
    pub(super) requests: AtomicU64,
    pub(super) refused: AtomicU64,
}

/// A place in a client's share of the daemon, given back when it is dropped.
pub(super) struct Share {
    service: Arc<Service>,
    client: String,
}

/// A request that waits for a resource, until it is dropped.
pub(super) struct Waiting {
    service: Arc<Service>,
    resource: String,
}

impl Service {
    pub(super) fn new(client: Client, store: String, most: usize, connections: usize) -> Self {
        let occupied = Arc::new(Semaphore::new((connections - connections / 4).max(1)));
        let table = Table {
            held: HashMap::new(),
            ended: Recent::new(ENDS),
            // A client has so many leases and waits, each with one key at most: as many more are remembered, and never few.
            keys: Recent::new((2 * most).max(ENDS)),
            cursors: Recent::new(CURSORS),
            waiting: BTreeMap::new(),
            of_client: HashMap::new(),
            losses: VecDeque::new(),
        };
        Self {
            client,
            store,
            most,
            occupied,
            table: Mutex::new(table),
            prints: Prints::new(),
            counts: Counts::default(),
        }
    }

    /// # Errors
    /// Three quarters of the connections wait or hold already.
    pub(super) fn occupy(&self) -> Result<OwnedSemaphorePermit, Reply> {
        Arc::clone(&self.occupied).try_acquire_owned().map_err(|_| {
            Reply::limit(
                "three quarters of the daemon's connections wait for locks or hold them, and the others are for renewals: \
                 try again without wait_ms, or start the daemon with a larger --max-connections",
            )
        })
    }

    /// # Errors
    /// The client has as many leases and waits as it may.
    pub(super) fn share(self: &Arc<Self>, client: &str) -> Result<Share, Reply> {
        let mut table = self.table();
        let count = table.of_client.entry(client.to_owned()).or_default();
        if *count >= self.most {
            return Err(Reply::limit(format!(
                "this client has {} leases and waits, and may have no more: release some, or start the daemon with a \
                 larger --max-leases",
                self.most
            )));
        }
        *count += 1;
        Ok(Share { service: Arc::clone(self), client: client.to_owned() })
    }

    pub(super) fn wait(self: &Arc<Self>, resource: &str) -> Waiting {
        *self.table().waiting.entry(resource.to_owned()).or_default() += 1;
        Waiting { service: Arc::clone(self), resource: resource.to_owned() }
    }

    /// Tells people when the lease is lost.
    pub(super) fn watch(self: &Arc<Self>, lease: &Lease) {
        let (service, resource, owner) = (Arc::clone(self), lease.resource().to_owned(), lease.owner().to_owned());
        let token = lease.token();
        lease.on_lost(move |why: Error| {
            service.counts.lost.fetch_add(1, Ordering::Relaxed);
            service.note(Loss { unix_ms: ffi::clocks().1, resource, owner, token, why: why.to_string() });
        });
    }

    /// Keeps a lease until its client releases it, or lets its ttl pass without a call.
    pub(super) fn keep(&self, id: String, work: Work, share: Share, ttl: Duration) -> Arc<Work> {
        let work = Arc::new(work);
        let entry = Entry { work: Arc::clone(&work), client: share.hand_over(), ttl, until: until(ttl) };
        self.table().held.insert(id, entry);
        work
    }

    /// The lease of this id, whose ttl begins again.
    pub(super) fn renew(&self, id: &str, client: &str) -> Option<(Arc<Work>, Duration)> {
        let mut table = self.table();
        let entry = table.held.get_mut(id).filter(|entry| entry.client == client)?;
        entry.until = until(entry.ttl);
        Some((Arc::clone(&entry.work), entry.ttl))
    }

    /// Takes a lease that was lost out of the daemon's care.
    pub(super) fn forget(&self, id: &str) {
        let lost = self.table().remove(id);
        drop(lost);
    }

    /// Drops the leases whose clients have not called in time, and with that releases them.
    pub(super) fn drop_abandoned(&self) {
        let (now, unix_ms) = ffi::clocks();
        let mut abandoned = Vec::new();
        let mut table = self.table();
        let ids: Vec<String> =
            table.held.iter().filter(|(_, entry)| entry.until <= now).map(|(id, _)| id.clone()).collect();
        for id in ids {
            abandoned.extend(table.remove(&id));
        }
        drop(table);
        for work in abandoned.iter().filter(|work| !work.is_lost()) {
            self.counts.abandoned.fetch_add(1, Ordering::Relaxed);
            self.note(Loss {
                unix_ms,
                resource: work.resource().to_owned(),
                owner: work.owner().to_owned(),
                token: work.token(),
                why: "its client did not renew it in time; it was released".to_owned(),
            });
        }
    }

    pub(super) fn drop_all(&self) {
        let held = std::mem::take(&mut self.table().held);
        drop(held);
    }

    /// The newest first.
    pub(super) fn losses(&self) -> Vec<Loss> {
        self.table().losses.iter().rev().cloned().collect()
    }

    pub(super) fn waiting(&self) -> BTreeMap<String, usize> {
        self.table().waiting.clone()
    }

    pub(super) fn held(&self) -> usize {
        self.table().held.len()
    }

    fn note(&self, loss: Loss) {
        let mut table = self.table();
        if table.losses.len() == LOSSES {
            table.losses.pop_front();
        }
        table.losses.push_back(loss);
    }

    pub(super) fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Table {
    pub(super) fn remove(&mut self, id: &str) -> Option<Arc<Work>> {
        let entry = self.held.remove(id)?;
        self.give_back(&entry.client);
        Some(entry.work)
    }

    fn give_back(&mut self, client: &str) {
        if let Some(count) = self.of_client.get_mut(client) {
            *count -= 1;
            if *count == 0 {
                self.of_client.remove(client);
            }
        }
    }
}

impl Share {
    /// Leaves it to the entry of a lease to give the share back.
    fn hand_over(mut self) -> String {
        std::mem::take(&mut self.client)
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.service.table().give_back(&self.client);
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        let mut table = self.service.table();
        if let Some(count) = table.waiting.get_mut(&self.resource) {
            *count -= 1;
            if *count == 0 {
                table.waiting.remove(&self.resource);
            }
        }
    }
}

/// The end of a client's time, by the daemon's clock: a fiftieth later than by the client's, whose clock may be slower.
fn until(ttl: Duration) -> u64 {
    let ttl = u64::try_from(ttl.as_nanos()).unwrap_or(u64::MAX);
    ffi::clocks().0.saturating_add(ttl).saturating_add(ttl / 50)
}
