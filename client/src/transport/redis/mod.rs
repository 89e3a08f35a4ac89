//! Redis and Valkey over a socket: one server, the master that Sentinels name, or a cluster.
//!
//! The formats of messages are in `leasehold_wire::redis`; this module sends them. Connections are made when they
//! are needed, and each kind of caller has its own, so that a caller's blocked runtime delays no renewal.

mod access;
mod cluster;
mod connection;
mod departures;
mod doctor;
mod failovers;
mod items;
mod link;
mod queue;
mod sentinel;
mod store_link;
mod subscriber;

use std::sync::Arc;

use leasehold_core::config::Poll;
use leasehold_core::member::Marker;
use leasehold_core::op::{Denial, DenialKind, Fault, FaultKind, Refusal};
use leasehold_core::queue::Reserved;
use leasehold_core::{LockId, NodeConfig, Resource, Transmit};
use leasehold_wire::listing::{Page, Which};
use leasehold_wire::redis::{Codec, Command, Replicas, Settings, Topology, list, look, refusal};
use leasehold_wire::resp::Value;

use self::access::{CONNECT_PATIENCE, RedisAccess};
use self::cluster::link::ClusterLink;
use self::departures::Departures;
use self::doctor::Part;
use self::link::{NoConnection, RedisLink, Spares};
use self::store_link::StoreLink;
use self::subscriber::Subscriber;
use super::connections::{Connections, Homes, Link};
use super::items::Store;
use super::membership;
use super::{Answer, Network, NodeRecord, Pool, Queue, Transport, UnderLock, Watcher};
use crate::admin::doctor::Finding;
use crate::error::{Error, ErrorKind};
use crate::host::clock;
use crate::host::fork;
use crate::url::HERE;
use crate::url::place::{Expiry, Facts, Place, Site};
use crate::url::reach::machine;
use crate::url::redis::{RedisPlace, RedisUrl};

impl Place for RedisUrl {
    fn facts(&self) -> Facts {
        Facts { site: Site::Network, expiry: Expiry::ByStore }
    }

    fn config(&self) -> NodeConfig {
        NodeConfig { poll: Poll::Acquire, watch: true, durability: self.durability, ..NodeConfig::default() }
    }

    fn store(&self) -> Result<Arc<dyn Store>, Error> {
        Ok(Arc::new(Redis::open(self)?))
    }

    fn machine(&self) -> Option<String> {
        match &self.place {
            RedisPlace::Unix { .. } => Some(HERE.to_owned()),
            RedisPlace::Tcp { host, .. } | RedisPlace::Tls { host, .. } => Some(machine(host)),
            RedisPlace::Cluster { .. } | RedisPlace::Sentinel { .. } => None,
        }
    }

    /// Different spellings of a host are the same.
    fn node_name(&self) -> String {
        match &self.place {
            RedisPlace::Unix { .. } => self.to_string(),
            RedisPlace::Tcp { .. }
            | RedisPlace::Tls { .. }
            | RedisPlace::Cluster { .. }
            | RedisPlace::Sentinel { .. } => self.to_string().to_ascii_lowercase(),
        }
    }

    fn database(&self) -> Option<u32> {
        Some(self.db)
    }
}

/// One Redis, or one cluster.
pub(super) struct Redis {
    connections: Arc<Connections<StoreLink>>,
    subscriber: Subscriber,
    departures: Departures,
    access: Arc<RedisAccess>,
    url: RedisUrl,
}

impl Redis {
    /// Connects once, so that a wrong url, password or host is reported at once.
    pub(super) fn open(url: &RedisUrl) -> Result<Self, Error> {
        fork::install().map_err(|error| Error::internal(format!("cannot watch for forks: {error}")))?;
        let access = Arc::new(RedisAccess::new(url)?);
        let settings = settings(url, &access);
        let (links, codec) = (Arc::clone(&access), Codec::new(settings));
        let spares = if url.replicas.is_some() { Spares::ForWaits } else { Spares::None };
        // Requests that wait for replicas have connections of their own, which are driven by runtimes.
        let homes = if url.replicas.is_some() { Homes::Runtimes } else { Homes::Any };
        let connections = Arc::new(Connections::new(homes, move |home| {
            let (access, codec) = (Arc::clone(&links), codec.clone());
            match links.cluster() {
                None => StoreLink::Single(Arc::new(RedisLink::new(access, codec, spares, home))),
                Some(cluster) => {
                    let cluster = Arc::clone(cluster);
                    StoreLink::Cluster(Arc::new(ClusterLink::new(access, cluster, codec, spares, home)))
                }
            }
        }));
        let subscriber = Subscriber::new(Arc::clone(&access), Arc::clone(&connections));
        let store = Self { connections, subscriber, departures: Departures::default(), access, url: url.clone() };
        store.greet().map_err(|why| to_error(url, why))?;
        Ok(store)
    }

    /// Greets the server in the background, whose connection then serves all callers until they have their own.
    fn greet(&self) -> Result<(), NoConnection> {
        let deadline = clock::monotonic().plus(CONNECT_PATIENCE);
        // With no replica to wait for, a server that knows WAIT answers at once.
        let wait = self.url.replicas.map(|_| Command::new(["WAIT", "0", "0"]));
        let words: Vec<Command> = [Command::new(["PING"])].into_iter().chain(wait).collect();
        let access = Arc::clone(&self.access);
        let greeting = move |link: Arc<StoreLink>| async move {
            match (&*link, access.cluster()) {
                (StoreLink::Single(link), _) => link.command(&words, deadline).await,
                (StoreLink::Cluster(_), None) => Ok(Vec::new()),
                (StoreLink::Cluster(_), Some(cluster)) => {
                    cluster.begin(&access).await?;
                    link.prepare();
                    Ok(Vec::new())
                }
            }
        };
        let replies = self.connections.block_on_background(greeting).map_err(NoConnection::Fault)??;
        if let Some(Value::Error(said)) = replies.get(1)
            && let Some(Refusal::Denied(Denial { kind, detail })) = refusal(said)
        {
            let detail = format!(
                "wait_replicas needs the command WAIT, which the server refuses: leave it out of the url, or \
                                  use a server that has it and a user who may send it ({detail})"
            );
            return Err(NoConnection::Refused(Refusal::Denied(Denial::new(kind, &detail))));
        }
        match replies.first() {
            // A user who may not PING is logged in all the same.
            Some(Value::Error(said)) if !said.starts_with("NOPERM") => match refusal(said) {
                Some(refusal) => Err(NoConnection::Refused(refusal)),
                None => Err(NoConnection::Fault(Fault::new(FaultKind::Server, said))),
            },
            Some(_) | None => Ok(()),
        }
    }
}

impl Redis {
    fn commands(&self, commands: Vec<Command>) -> Result<Vec<Value>, NoConnection> {
        let deadline = clock::monotonic().plus(CONNECT_PATIENCE);
        let ask = move |link: Arc<StoreLink>| async move {
            match &*link {
                StoreLink::Single(link) => link.command(&commands, deadline).await,
                StoreLink::Cluster(_) => Err(NoConnection::Refused(Refusal::Denied(Denial::new(
                    DenialKind::Membership,
                    "a Redis Cluster cannot be a node of a quorum",
                )))),
            }
        };
        self.connections.block_on_background(ask).map_err(NoConnection::Fault)?
    }

    fn ask(&self, commands: Vec<Command>) -> Result<Vec<Value>, Error> {
        self.commands(commands).map_err(|why| to_error(&self.url, why))
    }
}

fn to_error(url: &RedisUrl, why: NoConnection) -> Error {
    match why {
        NoConnection::Fault(fault) => Error::new(ErrorKind::StoreUnavailable, super::of(url, &fault)),
        NoConnection::Refused(refusal) => membership::refused(url, &refusal),
    }
}

fn settings(url: &RedisUrl, access: &RedisAccess) -> Settings {
    let topology = if access.cluster().is_some() { Topology::Cluster } else { Topology::Single };
    Settings { replicas: url.replicas.map(|count| Replicas { count }), topology, ..Settings::default() }
}

impl UnderLock for Redis {
    fn watch(&self, resource: &Resource, watcher: &Arc<dyn Watcher>) {
        self.subscriber.watch(resource, watcher);
    }

    fn unwatch(&self, resource: &Resource, _watcher: &Arc<dyn Watcher>) {
        self.subscriber.unwatch(resource);
    }

    fn leave_queue(&self, resource: &Resource, lock: LockId) {
        if let Some(queues) = self.access.queues() {
            queues.forget(resource, lock);
            self.departures.leave(&self.connections, queues, resource, lock);
        }
    }

    fn place_in_queue(&self, resource: &Resource, lock: Option<LockId>) -> Option<u64> {
        self.access.queues()?.place(resource, lock)
    }

    fn reserved_before(&self, resource: &Resource, lock: LockId) -> Option<Reserved> {
        self.access.queues()?.reserved(resource, lock)
    }
}

impl Transport for Redis {
    fn config(&self) -> NodeConfig {
        self.url.config()
    }

    fn perform(&self, request: &Transmit, _pool: Pool) -> Answer {
        self.connections.perform(request)
    }

    fn network(&self) -> Option<&dyn Network> {
        Some(&*self.connections)
    }

    fn close(&self) {
        self.departures.end(&self.connections);
        self.subscriber.close();
        self.connections.close();
    }

    fn keeps_queue(&self) -> bool {
        self.access.queues().is_some()
    }

    fn queue(&self, resource: &Resource) -> Option<Queue> {
        if !self.keeps_queue() {
            return None;
        }
        let queue = Codec::queue(&self.commands(Codec::look_at_queue(resource).into()).ok()?)?;
        Some(Queue { waiting: queue.waiting, since_unix_ms: queue.since_unix_ms })
    }

    fn diagnose(&self) -> Vec<Finding> {
        doctor::diagnose(&self.connections, &self.access, &self.url, Part::Alone)
    }

    fn diagnose_node(&self) -> Vec<Finding> {
        doctor::diagnose(&self.connections, &self.access, &self.url, Part::Node)
    }

    fn look(&self) -> Result<NodeRecord, Error> {
        membership::found(&self.url, &self.ask(look().into())?)
    }

    fn mark(&self, found: &[u8], marker: Option<&Marker>) -> Result<bool, Error> {
        membership::mark(&self.url, found, marker, |commands| self.ask(commands))
    }

    fn list(&self, prefix: &str, after: &[u8], which: Which) -> Result<Page, Error> {
        let Some(cluster) = self.access.cluster() else {
            return membership::page(&self.url, prefix, &self.ask(vec![list(prefix, after, which)])?);
        };
        let Some(place) = cluster.place(after) else {
            let what = super::of(&self.url, &"no master of the cluster is known");
            return if after.is_empty() {
                Err(Error::new(ErrorKind::StoreUnavailable, what))
            } else {
                Ok(Page::default())
            };
        };
        let deadline = clock::monotonic().plus(CONNECT_PATIENCE);
        let (node, command) = (place.node.clone(), list(prefix, &place.after, which));
        let ask = move |link: Arc<StoreLink>| async move { link.to(&node).command(&[command], deadline).await };
        let replies = self.connections.block_on_background(ask).map_err(NoConnection::Fault).flatten();
        let replies = replies.map_err(|why| {
            cluster.refresh(&self.access);
            to_error(&self.url, why)
        })?;
        Ok(cluster.page_of(&place.node, membership::page(&self.url, prefix, &replies)?))
    }

    fn clock_offset(&self) -> Option<(i64, u64)> {
        membership::clock_offset(|commands| self.ask(commands))
    }
}
