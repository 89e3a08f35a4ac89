//! A node of a quorum that did not answer when the client connected. It is opened, and checked to be none of the
//! others, as soon as it answers.
//!
//! Until then it refuses requests at once, so that the other nodes decide without waiting for it.

use std::sync::{Arc, OnceLock, Weak};
use std::thread;
use std::time::Duration;

use leasehold_core::member::Marker;
use leasehold_core::op::{Fault, FaultKind, TransportFault};
use leasehold_core::{NodeConfig, Resource, Transmit};
use leasehold_wire::listing::{Page, Which};

use super::pauses::Pauses;
use super::{Answer, Answering, Done, Network, NodeRecord, Pool, Transport, UnderLock, Watcher};
use crate::admin::checks::store as check;
use crate::admin::doctor::Finding;
use crate::error::{Error, ErrorKind};
use crate::host::clock;
use crate::host::sync::{Condvar, Mutex};
use crate::quorum::identity::{KnownServers, register};
use crate::url::place::{Place, Site};

/// A store that may not be open yet. Dropping it ends the attempts to open it.
pub(crate) struct LazyStore {
    config: NodeConfig,
    is_network: bool,
    opening: Arc<Opening>,
}

/// The state shared by the attempts to open the store and the callers that use it.
struct Opening {
    store: OnceLock<Arc<dyn Transport>>,
    state: Mutex<State>,
    closed: Condvar,
}

struct State {
    /// The reason why it is not open.
    why: Error,
    /// Watchers to be registered once it is open.
    watchers: Vec<(Resource, Weak<dyn Watcher>)>,
    is_closed: bool,
}

impl LazyStore {
    /// Starts the attempts. `known` are the nodes that are open already; `opened` is the store, if it was opened but
    /// not looked at.
    pub(crate) fn start(
        place: Arc<dyn Place>,
        name: String,
        mut opened: Option<Arc<dyn Transport>>,
        why: &Error,
        known: KnownServers,
    ) -> Self {
        Self::begin(place.config(), place.facts().site == Site::Network, why, move || {
            let store = match &opened {
                Some(store) => Arc::clone(store),
                None => Arc::clone(opened.insert(place.open()?)),
            };
            match register(&known, &name, &store.look()?) {
                Ok(()) => Ok(store),
                Err(other) => Err(Error::config(format!(
                    "{name} is the same server as {other}, so it gets no second vote: name each server once"
                ))),
            }
        })
    }

    fn begin(
        config: NodeConfig,
        is_network: bool,
        why: &Error,
        mut attempt: impl FnMut() -> Result<Arc<dyn Transport>, Error> + Send + 'static,
    ) -> Self {
        let state = State { why: why.clone(), watchers: Vec::new(), is_closed: false };
        let opening =
            Arc::new(Opening { store: OnceLock::new(), state: Mutex::new(state), closed: Condvar::default() });
        let theirs = Arc::clone(&opening);
        let retry_open = move || {
            let mut pauses = Pauses::CONNECTING;
            while theirs.is_wanted_after(pauses.next()) {
                match attempt() {
                    Ok(store) => return theirs.open(store),
                    Err(error) => theirs.state.lock().why = error,
                }
            }
        };
        if let Err(error) = thread::Builder::new().name("leasehold-reopen".to_owned()).spawn(retry_open) {
            opening.state.lock().why = Error::internal(format!("cannot start a thread to open it: {error}"));
        }
        Self { config, is_network, opening }
    }

    fn store(&self) -> Option<&Arc<dyn Transport>> {
        self.opening.store.get()
    }

    fn fault(&self) -> TransportFault {
        TransportFault::NotSent(Fault::new(FaultKind::Unreachable, &self.opening.state.lock().why.to_string()))
    }

    /// The store, or the reason why it is not open.
    fn opened(&self) -> Result<&Arc<dyn Transport>, Error> {
        self.store().ok_or_else(|| {
            let why = self.opening.state.lock().why.clone();
            // Any reason may pass.
            Error::new(ErrorKind::StoreUnavailable, why.to_string())
        })
    }
}

impl Opening {
    /// Waits, and tells if the store is still wanted.
    fn is_wanted_after(&self, pause: Duration) -> bool {
        let until = clock::monotonic().plus(pause);
        let mut state = self.state.lock();
        while !state.is_closed {
            let left = until.since(clock::monotonic());
            if left.is_zero() {
                return true;
            }
            state = self.closed.wait_timeout(state, left);
        }
        false
    }

    fn open(&self, store: Arc<dyn Transport>) {
        // Locked throughout, so that no watcher that comes in between is forgotten.
        let mut state = self.state.lock();
        if state.is_closed {
            return;
        }
        for (resource, watcher) in state.watchers.drain(..) {
            if let Some(watcher) = watcher.upgrade() {
                store.watch(&resource, &watcher);
            }
        }
        let _ = self.store.set(store);
    }
}

impl UnderLock for LazyStore {
    fn behind(&self) -> Option<&dyn Transport> {
        self.store().map(|store| &**store)
    }

    fn watch(&self, resource: &Resource, watcher: &Arc<dyn Watcher>) {
        // The lock may wait for the thread that opens the store, which holds it only for a moment.
        let mut state = self.opening.state.lock();
        match self.store() {
            Some(store) => {
                drop(state);
                store.watch(resource, watcher);
            }
            None => {
                state.watchers.retain(|(_, other)| other.strong_count() > 0);
                state.watchers.push((resource.clone(), Arc::downgrade(watcher)));
            }
        }
    }

    fn unwatch(&self, resource: &Resource, watcher: &Arc<dyn Watcher>) {
        let mut state = self.opening.state.lock();
        match self.store() {
            Some(store) => {
                drop(state);
                store.unwatch(resource, watcher);
            }
            None => {
                let watcher = Arc::downgrade(watcher);
                state.watchers.retain(|(name, other)| name != resource || !other.ptr_eq(&watcher));
            }
        }
    }
}

impl Transport for LazyStore {
    fn config(&self) -> NodeConfig {
        self.config
    }

    fn perform(&self, request: &Transmit, pool: Pool) -> Answer {
        match self.store() {
            Some(store) => store.perform(request, pool),
            None => Err(self.fault()),
        }
    }

    fn close(&self) {
        self.opening.state.lock().is_closed = true;
        self.opening.closed.notify_all();
        self.store().into_iter().for_each(|store| store.close());
    }

    fn network(&self) -> Option<&dyn Network> {
        self.is_network.then_some(self)
    }

    fn diagnose(&self) -> Vec<Finding> {
        self.opened().map_or_else(not_open, |store| store.diagnose())
    }

    fn look(&self) -> Result<NodeRecord, Error> {
        self.opened()?.look()
    }

    fn mark(&self, found: &[u8], marker: Option<&Marker>) -> Result<bool, Error> {
        self.opened()?.mark(found, marker)
    }

    fn list(&self, prefix: &str, after: &[u8], which: Which) -> Result<Page, Error> {
        self.opened()?.list(prefix, after, which)
    }
}

fn not_open(error: Error) -> Vec<Finding> {
    vec![
        check::OPEN
            .fails(error.to_string(), "check that the node runs and answers; the client connects as soon as it does"),
    ]
}

impl Network for LazyStore {
    fn call_on_caller(&self, request: Transmit) -> Result<Answering, Transmit> {
        match self.store().and_then(|store| store.network()) {
            Some(network) => network.call_on_caller(request),
            None => Ok(Box::pin(std::future::ready(Err(self.fault())))),
        }
    }

    fn call_in_background(&self, request: Transmit, done: Done) {
        match self.store().and_then(|store| store.network()) {
            Some(network) => network.call_in_background(request, done),
            None => done(Err(self.fault())),
        }
    }

    fn call_here(&self, request: Transmit, done: Done) {
        match self.store().and_then(|store| store.network()) {
            Some(network) => network.call_here(request, done),
            None => done(Err(self.fault())),
        }
    }
}

impl Drop for LazyStore {
    fn drop(&mut self) {
        self.opening.state.lock().is_closed = true;
        self.opening.closed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use leasehold_core::{Monotonic, NodeId, RequestId};

    use super::super::memory;
    use leasehold_servers::wait_until;

    use super::super::wakeups::tests::RecordingWatcher;
    use super::*;

    fn closed() -> Error {
        Error::new(ErrorKind::StoreUnavailable, "nobody is there")
    }

    fn nothing() -> Transmit {
        Transmit {
            id: RequestId::new(1),
            node: NodeId::new(0),
            deadline: Monotonic::FAR,
            ops: [].into_iter().collect(),
        }
    }

    #[test]
    fn it_refuses_at_once_and_serves_once_it_is_open() {
        let (go, tries) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let (gate, count) = (Arc::clone(&go), Arc::clone(&tries));
        let late = LazyStore::begin(memory::config(), false, &closed(), move || {
            count.fetch_add(1, Ordering::SeqCst);
            if gate.load(Ordering::SeqCst) == 0 { Err(closed()) } else { Ok(memory::open(None)) }
        });
        let Err(TransportFault::NotSent(fault)) = late.perform(&nothing(), Pool::Caller) else {
            panic!("it is closed")
        };
        assert!(fault.to_string().contains("nobody is there") && late.look().is_err());
        let (heard, watcher) = RecordingWatcher::new();
        let (kept, left) = (Resource::new("kept").unwrap(), Resource::new("left").unwrap());
        late.watch(&kept, &watcher);
        late.watch(&left, &watcher);
        late.unwatch(&left, &watcher);
        wait_until("it is so", || tries.load(Ordering::SeqCst) > 2);
        go.store(1, Ordering::SeqCst);
        wait_until("it is so", || late.store().is_some());
        assert!(late.perform(&nothing(), Pool::Caller).is_ok() && late.look().is_ok() && late.is_instant());
        assert!(late.keeps_queue(), "the store does, and this stand-in says nothing of it");
        assert_eq!(heard.subscribed(), ["kept"]);
    }

    #[test]
    fn dropping_it_ends_the_attempts() {
        let (trying, tries) = (Arc::new(()), Arc::new(AtomicUsize::new(0)));
        let (alive, count) = (Arc::clone(&trying), Arc::clone(&tries));
        let late = LazyStore::begin(memory::config(), false, &closed(), move || {
            let _ = &alive;
            count.fetch_add(1, Ordering::SeqCst);
            Err(closed())
        });
        wait_until("it is so", || tries.load(Ordering::SeqCst) > 0);
        drop(late);
        wait_until("it is so", || Arc::strong_count(&trying) == 1);
    }

    #[test]
    fn a_store_opened_after_the_drop_is_dropped() {
        let made: Arc<dyn Transport> = memory::open(None);
        let (store, trying) = (Arc::clone(&made), Arc::new(Mutex::new(())));
        let held = trying.lock();
        let begun = Arc::new(AtomicUsize::new(0));
        let (turn, seen) = (Arc::clone(&trying), Arc::clone(&begun));
        let late = LazyStore::begin(memory::config(), false, &closed(), move || {
            seen.fetch_add(1, Ordering::SeqCst);
            let _turn = turn.lock();
            Ok(Arc::clone(&store))
        });
        wait_until("it is so", || begun.load(Ordering::SeqCst) == 1);
        drop(late);
        drop(held);
        wait_until("it is so", || Arc::strong_count(&made) == 1);
    }
}
