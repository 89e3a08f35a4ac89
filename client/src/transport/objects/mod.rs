//! Objects in a cloud's storage service: conditional reads and writes over HTTPS.
//!
//! The formats of messages are in `leasehold_wire::objects`; this module signs them ([`auth`]) and sends them. The core
//! alone decides on retries. No service notifies us of releases, so waiters poll by reads.

mod auth;
mod bucket;
mod cosmos;
mod doctor;
mod items;
mod settings;

use std::sync::Arc;

use leasehold_core::config::Poll;
use leasehold_core::member::Marker;
use leasehold_core::op::{Outcome, Refusal};
use leasehold_core::{NodeConfig, Transmit};
use leasehold_wire::HttpResponse;
use leasehold_wire::listing::{Page, Which};
use leasehold_wire::objects::{Codec, Properties, Request, Service};

use self::bucket::{ObjectsAccess, ObjectsLink};
use super::connections::{Connections, Homes};
use super::items::Store;
use super::readiness::{CONNECT_PATIENCE, NoServer};
use super::web::MOST_CONNECTIONS;
use super::{Answer, Network, NodeRecord, Pool, Transport, UnderLock};
use crate::admin::doctor::Finding;
use crate::error::{Error, ErrorKind};
use crate::host::clock;
use crate::host::fork;
use crate::url::objects::ObjectsUrl;
use crate::url::place::{Expiry, Facts, Place, Site};
use crate::url::reach::machine;

impl Place for ObjectsUrl {
    fn facts(&self) -> Facts {
        Facts { site: Site::Network, expiry: Expiry::ByObservers }
    }

    fn config(&self) -> NodeConfig {
        NodeConfig { poll: Poll::Read, watch: false, batch: MOST_CONNECTIONS, durability: self.durability }
    }

    fn store(&self) -> Result<Arc<dyn Store>, Error> {
        Ok(Arc::new(Objects::open(self)?))
    }

    fn machine(&self) -> Option<String> {
        self.host().as_deref().map(machine)
    }
}

/// One bucket or container.
pub(super) struct Objects {
    connections: Arc<Connections<ObjectsLink>>,
    codec: Codec,
    url: ObjectsUrl,
    /// Of an account of Cosmos DB.
    properties: Option<Properties>,
}

impl Objects {
    /// Reads the marker, so that a wrong url, key or permission is reported at once.
    pub(super) fn open(url: &ObjectsUrl) -> Result<Self, Error> {
        fork::install().map_err(|error| Error::internal(format!("cannot watch for forks: {error}")))?;
        let codec = Codec::new(url.service, &url.root, &url.prefix);
        let access = Arc::new(ObjectsAccess::new(url, codec.clone())?);
        let links = Arc::clone(&access);
        let connections = Arc::new(Connections::new(Homes::Runtimes, move |_| ObjectsLink::new(Arc::clone(&links))));
        let mut store = Self { connections, codec, url: url.clone(), properties: None };
        if url.service == Service::CosmosDb {
            let properties = cosmos::check(&store)?;
            access.set_may_be_stale(properties.reads_may_be_stale());
            store.properties = Some(properties);
        }
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

impl UnderLock for Objects {}

impl Transport for Objects {
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

    fn refuses_sessions(&self) -> Option<&'static str> {
        self.properties.as_ref().filter(|found| found.reads_may_be_stale()).map(|_| Properties::NO_SESSIONS)
    }

    fn diagnose(&self) -> Vec<Finding> {
        doctor::diagnose(self)
    }

    fn look(&self) -> Result<NodeRecord, Error> {
        let found = self.ask(self.codec.look()).and_then(|response| self.codec.found(&response));
        let found = found.map_err(|outcome| self.judged(outcome))?;
        Ok(NodeRecord { marker: found.marker, text: found.text, ..NodeRecord::default() })
    }

    /// The marker is read once more, for its version.
    fn mark(&self, found: &[u8], marker: Option<&Marker>) -> Result<bool, Error> {
        if marker.is_some() && self.properties.as_ref().is_some_and(Properties::reads_may_be_stale) {
            return Err(Error::new(ErrorKind::StoreRefused, format!("{}: {}", self.url, Properties::NO_NODE)));
        }
        let now = self.ask(self.codec.look()).and_then(|response| self.codec.found(&response));
        let now = now.map_err(|outcome| self.judged(outcome))?;
        if now.text != found {
            return Ok(false);
        }
        let marked = self.ask(self.codec.mark(&now, marker)).and_then(|response| self.codec.marked(&response));
        marked.map_err(|outcome| self.judged(outcome))
    }

    fn list(&self, prefix: &str, after: &[u8], _: Which) -> Result<Page, Error> {
        let response = self.ask(self.codec.list(prefix, after));
        let names = response.and_then(|response| self.codec.listed(&response));
        let mut names = names.map_err(|outcome| self.judged(outcome))?;
        for read in names.reads {
            let name = self.ask(read).and_then(|response| self.codec.name_in(&response));
            names.names.extend(name.map_err(|outcome| self.judged(outcome))?);
        }
        Ok(Page::of_names(names.names, names.next))
    }
}
