//! etcd: transactions over the JSON gateway.
//!
//! The formats of messages are in `leasehold_wire::etcd`; this module sends them. Requests that write nothing try one
//! member after the other; one that may write is sent once, and the core alone decides what follows.

mod doctor;
mod items;
mod members;
#[cfg(test)]
mod tests;
mod watcher;

use std::sync::Arc;

use leasehold_core::config::Poll;
use leasehold_core::member::Marker;
use leasehold_core::op::{Outcome, Refusal};
use leasehold_core::{NodeConfig, Resource, Transmit};
use leasehold_wire::HttpResponse;
use leasehold_wire::etcd::{Codec, Request};
use leasehold_wire::listing::{Page, Which};

use self::members::{EtcdAccess, EtcdLink};
use self::watcher::EtcdWatcher;
use super::connections::{Connections, Homes};
use super::items::Store;
use super::readiness::{CONNECT_PATIENCE, NoServer};
use super::{Answer, Network, NodeRecord, Pool, Transport, UnderLock, Watcher};
use crate::admin::doctor::Finding;
use crate::error::Error;
use crate::host::clock;
use crate::host::fork;
use crate::url::etcd::EtcdUrl;
use crate::url::place::{Expiry, Facts, Place, Site};
use crate::url::reach::machine;

/// The most renewals in one transaction: half as many operations as etcd takes unless told otherwise.
const MOST_RENEWALS: usize = 64;

impl Place for EtcdUrl {
    fn facts(&self) -> Facts {
        Facts { site: Site::Network, expiry: Expiry::ByObservers }
    }

    fn config(&self) -> NodeConfig {
        NodeConfig { poll: Poll::Read, watch: true, batch: MOST_RENEWALS, durability: self.durability }
    }

    fn store(&self) -> Result<Arc<dyn Store>, Error> {
        Ok(Arc::new(Etcd::open(self)?))
    }

    fn machine(&self) -> Option<String> {
        self.host().map(machine)
    }
}

/// One etcd.
pub(super) struct Etcd {
    connections: Arc<Connections<EtcdLink>>,
    watcher: EtcdWatcher,
    codec: Codec,
    url: EtcdUrl,
}

impl Etcd {
    /// Reads the marker, so that a wrong url, password or role is reported at once.
    pub(super) fn open(url: &EtcdUrl) -> Result<Self, Error> {
        fork::install().map_err(|error| Error::internal(format!("cannot watch for forks: {error}")))?;
        let codec = Codec::new(&url.prefix);
        let access = Arc::new(EtcdAccess::new(url, codec.clone())?);
        let connections = Arc::new(Connections::new(Homes::Runtimes, move |_| EtcdLink::new(Arc::clone(&access))));
        let watcher = EtcdWatcher::new(Arc::clone(&connections), codec.clone());
        let store = Self { connections, watcher, codec, url: url.clone() };
        store.look()?;
        Ok(store)
    }

    fn ask(&self, request: Request) -> Result<HttpResponse, Outcome> {
        let deadline = clock::monotonic().plus(CONNECT_PATIENCE);
        let asked =
            self.connections.block_on_background(move |link| async move { link.command(&request, deadline).await });
        asked.unwrap_or_else(|fault| Err(Outcome::NotApplied(Refusal::Unavailable(fault))))
    }

    fn judged(&self, outcome: Outcome) -> Error {
        NoServer::from(outcome).error(&self.url)
    }
}

impl UnderLock for Etcd {
    fn watch(&self, resource: &Resource, watcher: &Arc<dyn Watcher>) {
        self.watcher.watch(resource, watcher);
    }

    fn unwatch(&self, resource: &Resource, _watcher: &Arc<dyn Watcher>) {
        self.watcher.unwatch(resource);
    }
}

impl Transport for Etcd {
    fn config(&self) -> NodeConfig {
        self.url.config()
    }

    fn perform(&self, request: &Transmit, _pool: Pool) -> Answer {
        self.connections.perform(request)
    }

    fn close(&self) {
        self.connections.close();
    }

    fn network(&self) -> Option<&dyn Network> {
        Some(&*self.connections)
    }

    fn diagnose(&self) -> Vec<Finding> {
        doctor::diagnose(self)
    }

    fn look(&self) -> Result<NodeRecord, Error> {
        let found = self.ask(self.codec.look()).and_then(|response| self.codec.found(&response));
        let found = found.map_err(|outcome| self.judged(outcome))?;
        Ok(NodeRecord { marker: found.marker, text: found.text, run: found.run, ..NodeRecord::default() })
    }

    fn mark(&self, found: &[u8], marker: Option<&Marker>) -> Result<bool, Error> {
        let marked = self.ask(self.codec.mark(found, marker)).and_then(|response| self.codec.marked(&response));
        marked.map_err(|outcome| self.judged(outcome))
    }

    fn list(&self, prefix: &str, after: &[u8], _: Which) -> Result<Page, Error> {
        let response = self.ask(self.codec.list(prefix, after));
        let page = response.and_then(|response| self.codec.listed(&response, clock::unix_ms()));
        page.map_err(|outcome| self.judged(outcome))
    }
}
