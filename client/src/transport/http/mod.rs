//! Redis behind HTTP: Upstash's REST interface and Webdis.
//!
//! The formats of messages are in `leasehold_wire`; this module sends them over HTTP/1.1, on connections that are
//! kept, one pool for each kind of caller. It speaks only to the server that the url names, through a proxy only where somebody
//! asks for that, and follows no redirects, because the token is meant for one host. The server sends no
//! notifications of releases, so waiters poll.

mod access;
mod doctor;
mod items;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use leasehold_core::config::Poll;
use leasehold_core::member::Marker;
use leasehold_core::{NodeConfig, Transmit};
use leasehold_wire::listing::{Page, Which};
use leasehold_wire::redis::{Command, list, look_by_script};
use leasehold_wire::resp::Value;

use self::access::{HttpAccess, HttpLink};
use super::connections::{Connections, Homes};
use super::items::Store;
use super::membership;
use super::readiness::{CONNECT_PATIENCE, NoServer};
use super::{Answer, Network, NodeRecord, Pool, Transport, UnderLock};
use crate::admin::doctor::Finding;
use crate::error::Error;
use crate::host::clock;
use crate::host::fork;
use crate::url::http::HttpUrl;
use crate::url::place::{Expiry, Facts, Place, Site};
use crate::url::reach::machine;

impl Place for HttpUrl {
    fn facts(&self) -> Facts {
        Facts { site: Site::Network, expiry: Expiry::ByStore }
    }

    fn config(&self) -> NodeConfig {
        NodeConfig { poll: Poll::Acquire, watch: false, durability: self.durability, ..NodeConfig::default() }
    }

    fn store(&self) -> Result<Arc<dyn Store>, Error> {
        Ok(Arc::new(Http::open(self)?))
    }

    fn machine(&self) -> Option<String> {
        self.host().as_deref().map(machine)
    }
}

/// One Redis behind HTTP.
pub(super) struct Http {
    access: Arc<HttpAccess>,
    connections: Arc<Connections<HttpLink>>,
    url: HttpUrl,
}

impl Http {
    /// Sends a first request, so that a wrong url, token or host is reported at once.
    pub(super) fn open(url: &HttpUrl) -> Result<Self, Error> {
        fork::install().map_err(|error| Error::internal(format!("cannot watch for forks: {error}")))?;
        let access = Arc::new(HttpAccess::new(url)?);
        let links = Arc::clone(&access);
        let connections = Arc::new(Connections::new(Homes::Runtimes, move |_| HttpLink::new(Arc::clone(&links))));
        let store = Self { access, connections, url: url.clone() };
        store.greet().map_err(|why| why.error(url))?;
        Ok(store)
    }

    /// Greets the server in the background, whose connections then serve all callers until they have their own.
    fn greet(&self) -> Result<(), NoServer> {
        let deadline = clock::monotonic().plus(CONNECT_PATIENCE);
        self.connections
            .block_on_background(move |link| async move { link.ready_by(deadline).await })
            .map_err(NoServer::Fault)?
    }
}

impl Http {
    /// In turn, because each is a request of its own.
    fn ask(&self, commands: Vec<Command>) -> Result<Vec<Value>, Error> {
        let deadline = clock::monotonic().plus(CONNECT_PATIENCE);
        let asked = self.connections.block_on(move |link| async move {
            let mut replies = Vec::with_capacity(commands.len());
            for command in &commands {
                replies.push(link.greeted(command, deadline).await.map_err(|why| link.store.no_server(why))?);
            }
            Ok(replies)
        });
        asked.unwrap_or_else(|fault| Err(NoServer::Fault(fault))).map_err(|why| why.error(&self.url))
    }
}

impl UnderLock for Http {}

impl Transport for Http {
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
        doctor::diagnose(&self.access, &self.connections, self.url.durability)
    }

    fn look(&self) -> Result<NodeRecord, Error> {
        // Webdis splits the reply to INFO, except in a script.
        membership::found(&self.url, &self.ask(look_by_script().into())?)
    }

    fn mark(&self, found: &[u8], marker: Option<&Marker>) -> Result<bool, Error> {
        membership::mark(&self.url, found, marker, |commands| self.ask(commands))
    }

    fn list(&self, prefix: &str, after: &[u8], which: Which) -> Result<Page, Error> {
        membership::page(&self.url, prefix, &self.ask(vec![list(prefix, after, which)])?)
    }

    /// Each is a request of its own over HTTP.
    fn reads_together(&self) -> bool {
        false
    }

    fn clock_offset(&self) -> Option<(i64, u64)> {
        membership::clock_offset(|commands| self.ask(commands))
    }
}
