//! Redis and Valkey over a socket.
//!
//! What is said stands in `leasehold_core::wire::redis`; here is how it gets there. Connections are made when they are
//! needed, and each lane has its own, so that a caller's runtime that stands still holds up no renewal.

mod access;
pub(super) mod doctor;
mod link;
mod meter;
mod subscriber;
mod value;

use std::sync::Arc;

use leasehold_core::config::Poll;
use leasehold_core::op::{Fault, FaultKind, Refusal};
use leasehold_core::wire::redis::{Command, Replicas, Session, Settings, refusal};
use leasehold_core::wire::resp::Value;
use leasehold_core::{NodeConfig, Resource, Transmit};

use self::access::{Access, CONNECT_PATIENCE};
use self::link::{NoConnection, RedisLink, Spares};
use self::subscriber::Subscriber;
use super::lanes::Lanes;
use super::{Answer, Answering, Done, Lane, Network, Transport, Watcher};
use crate::clock;
use crate::doctor::Finding;
use crate::error::{Error, ErrorKind};
use crate::fork;
use crate::url::redis::RedisUrl;

/// One Redis.
pub(super) struct Redis {
    lanes: Arc<Lanes<RedisLink>>,
    subscriber: Subscriber,
    access: Arc<Access>,
    url: RedisUrl,
}

impl Redis {
    /// Connects once, so that a wrong url, password or host is told here and now.
    pub(super) fn open(url: &RedisUrl) -> Result<Self, Error> {
        fork::install().map_err(|error| Error::config(format!("cannot watch for forks: {error}")))?;
        let access = Arc::new(Access::new(url)?);
        let settings = Settings { replicas: url.replicas.map(|count| Replicas { count }), ..Settings::default() };
        let (links, session) = (Arc::clone(&access), Session::new(settings));
        let spares = if url.replicas.is_some() { Spares::ForWaits } else { Spares::None };
        let lanes = Arc::new(Lanes::new(move || RedisLink::new(Arc::clone(&links), session.clone(), spares)));
        let subscriber = Subscriber::new(Arc::clone(&access), Arc::clone(&lanes));
        let store = Self { lanes, subscriber, access, url: url.clone() };
        store.greet().map_err(|why| match why {
            NoConnection::Fault(fault) => Error::new(ErrorKind::StoreUnavailable, format!("{url}: {fault}")),
            NoConnection::Refused(Refusal::Denied(denial)) => {
                Error::new(ErrorKind::StoreRefused, format!("{url}: {denial}"))
            }
            NoConnection::Refused(
                Refusal::Unavailable(fault) | Refusal::Throttled(fault) | Refusal::NeedsCredentials(fault),
            ) => Error::new(ErrorKind::StoreUnavailable, format!("{url}: {fault}")),
            NoConnection::Refused(Refusal::Conflict(_) | Refusal::Abstains { .. }) => {
                Error::new(ErrorKind::StoreUnavailable, format!("{url}: the server does not serve now"))
            }
        })?;
        Ok(store)
    }

    /// In the background, whose connection then serves all lanes until they have their own.
    fn greet(&self) -> Result<(), NoConnection> {
        let deadline = clock::monotonic().plus(CONNECT_PATIENCE);
        let ping = Command { args: vec![b"PING".to_vec()] };
        let done = self.lanes.block_on_background(move |link| async move { link.command(&[ping], deadline).await });
        let replies = done.map_err(NoConnection::Fault)??;
        match replies.first() {
            // A user who may not PING has got in all the same.
            Some(Value::Error(said)) if !said.starts_with("NOPERM") => match refusal(said) {
                Some(refusal) => Err(NoConnection::Refused(refusal)),
                None => Err(NoConnection::Fault(Fault::new(FaultKind::Server, said))),
            },
            Some(_) | None => Ok(()),
        }
    }
}

impl Transport for Redis {
    fn config(&self) -> NodeConfig {
        NodeConfig { poll: Poll::Acquire, watch: true, batch: 100 }
    }

    fn is_instant(&self) -> bool {
        false
    }

    fn perform(&self, request: &Transmit, _lane: Lane) -> Answer {
        self.lanes.perform(request)
    }

    fn network(&self) -> Option<&dyn Network> {
        Some(self)
    }

    fn watch(&self, resource: &Resource, watcher: &Arc<dyn Watcher>) {
        self.subscriber.watch(resource, watcher);
    }

    fn unwatch(&self, resource: &Resource, _watcher: &Arc<dyn Watcher>) {
        self.subscriber.unwatch(resource);
    }

    fn diagnose(&self) -> Vec<Finding> {
        doctor::diagnose(&self.lanes, &self.access, &self.url)
    }
}

impl Network for Redis {
    fn ask_here(&self, request: Transmit) -> Result<Answering, Transmit> {
        self.lanes.ask_here(request)
    }

    fn ask_behind(&self, request: Transmit, done: Done) {
        self.lanes.ask_behind(request, done);
    }
}
