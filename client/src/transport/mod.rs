//! How requests reach stores: the only place that knows files and sockets.

#[cfg(feature = "network")]
mod connections;
#[cfg(any(feature = "redis", feature = "http"))]
mod durability;
#[cfg(feature = "dynamodb")]
pub(crate) mod dynamodb;
#[cfg(feature = "http")]
mod http;
#[cfg(any(feature = "redis", feature = "http"))]
mod info;
mod lazy_store;
#[cfg(any(feature = "redis", feature = "http"))]
mod membership;
mod memory;
mod pauses;
#[cfg(any(feature = "http", feature = "dynamodb"))]
mod readiness;
#[cfg(feature = "redis")]
mod redis;
#[cfg(feature = "sqlite")]
pub(crate) mod sqlite;
#[cfg(feature = "network")]
mod tls;
mod wakeups;
#[cfg(any(feature = "http", feature = "dynamodb"))]
mod web;

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;

use leasehold_core::member::{Marker, RunId};
use leasehold_core::op::{Outcome, TransportFault};
use leasehold_core::{NodeConfig, Resource, Transmit};

use crate::doctor::Finding;
use crate::error::Error;
use crate::url::StoreUrl;
pub(crate) use lazy_store::LazyStore;

/// What came of a request: one outcome for each operation, in order; an error speaks for all of them.
pub(crate) type Answer = Result<Vec<Outcome>, TransportFault>;
/// An [`Answer`] that is on its way.
pub(crate) type Answering = Pin<Box<dyn Future<Output = Answer> + Send>>;
/// Takes an [`Answer`].
pub(crate) type Done = Box<dyn FnOnce(Answer) + Send>;

/// One store, as the driver sees it.
pub(crate) trait Transport: Send + Sync {
    /// What the store can do.
    fn config(&self) -> NodeConfig;

    /// Whether a request is answered in microseconds without any waiting, so that any thread may perform it.
    fn is_instant(&self) -> bool;

    /// Performs a request on the calling thread, and gives up at its deadline.
    ///
    /// `pool` tells whose thread it is: renewals must not wait for the connections of callers.
    fn perform(&self, request: &Transmit, pool: Pool) -> Answer;

    /// The store again, if it is behind a socket, and so can be asked without holding up a thread.
    fn network(&self) -> Option<&dyn Network> {
        None
    }

    /// Tells `watcher` of each release of the resource that is seen here, until [`Transport::unwatch`]. Called with the
    /// driver locked: must neither block nor wait for the store.
    fn watch(&self, resource: &Resource, watcher: &Arc<dyn Watcher>);

    /// Ends [`Transport::watch`].
    fn unwatch(&self, resource: &Resource, watcher: &Arc<dyn Watcher>);

    /// Looks for what could make locks fail, and says what to do about it.
    fn diagnose(&self) -> Vec<Finding>;

    /// The same, for a node of a quorum, whose memory counts for more.
    fn diagnose_node(&self) -> Vec<Finding> {
        self.diagnose()
    }

    /// What the store remembers of the quorum that it is a node of.
    fn look(&self) -> Result<Found, Error>;

    /// Writes a marker in the place of the one that was found, or none; `false` where that one is no longer there.
    fn mark(&self, found: &[u8], marker: Option<&Marker>) -> Result<bool, Error>;

    /// How far the store's clock is ahead of ours, and by how much that may be wrong, in milliseconds. `None` where it
    /// is the same clock, or does not tell.
    fn clock_offset(&self) -> Option<(i64, u64)> {
        None
    }
}

/// What a store remembers of the quorum that it is a node of.
#[derive(Clone, Debug, Default)]
pub(crate) struct Found {
    /// The marker, where there is one that this version understands.
    pub(crate) marker: Option<Marker>,
    /// The marker as it is written; empty where there is none.
    pub(crate) text: Vec<u8>,
    /// The run of its server; `None` where it has none, or does not tell.
    pub(crate) run: Option<RunId>,
    /// Why the run could not be asked, in the server's words.
    pub(crate) run_refused: Option<String>,
    /// Which file it is, under whatever name; `None` where it is none.
    pub(crate) file: Option<FileId>,
    /// Which table it is, under whatever address; `None` where it is none, or that is not to be known.
    pub(crate) table: Option<String>,
}

/// What tells one file from another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct FileId {
    pub(crate) device: u64,
    pub(crate) inode: u64,
}

/// A store that waits for sockets, not for disks.
pub(crate) trait Network: Sync {
    /// Performs a request on the runtime of the calling task.
    ///
    /// # Errors
    /// The request, where there is no runtime that could.
    fn call_on_caller(&self, request: Transmit) -> Result<Answering, Transmit>;

    /// Performs a request in the background, beside whatever else is under way. Does not block.
    fn call_in_background(&self, request: Transmit, done: Done);
}

/// Whose thread performs a request; connections share no connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pool {
    /// The caller's own thread, which waits for the answer.
    Caller,
    /// A thread of the client's.
    Background,
}

/// Who wants to hear of releases. Its methods must not block, and must not call back into the transport.
pub(crate) trait Watcher: Send + Sync {
    /// From now on releases of the resource are seen.
    fn subscribed(&self, resource: &Resource);

    /// A resource was released.
    fn released(&self, resource: &Resource);
}

/// Opens the store that a url names.
pub(crate) fn open(url: &StoreUrl) -> Result<Arc<dyn Transport>, Error> {
    match url {
        StoreUrl::Memory { name } => Ok(memory::open(name.as_deref())),
        #[cfg(feature = "sqlite")]
        StoreUrl::Sqlite { path } => Ok(Arc::new(sqlite::Sqlite::open(path)?)),
        #[cfg(not(feature = "sqlite"))]
        StoreUrl::Sqlite { .. } => Err(Error::config("this build has no SQLite: enable the feature `sqlite`")),
        #[cfg(feature = "redis")]
        StoreUrl::Redis(url) => Ok(Arc::new(redis::Redis::open(url)?)),
        #[cfg(feature = "http")]
        StoreUrl::Http(url) => Ok(Arc::new(http::Http::open(url)?)),
        #[cfg(feature = "dynamodb")]
        StoreUrl::Dynamodb(url) => Ok(Arc::new(dynamodb::Dynamodb::open(url)?)),
    }
}

/// A message about a store, without repeating a name that it already has.
pub(crate) fn of(store: &dyn fmt::Display, said: &dyn fmt::Display) -> String {
    let prefix = format!("{store}: ");
    format!("{prefix}{}", said.to_string().replace(&prefix, ""))
}

/// What a store can do, known before it is opened.
pub(crate) fn node_config(url: &StoreUrl) -> NodeConfig {
    match url {
        StoreUrl::Memory { .. } => memory::config(),
        #[cfg(feature = "sqlite")]
        StoreUrl::Sqlite { .. } => sqlite::config(),
        #[cfg(not(feature = "sqlite"))]
        StoreUrl::Sqlite { .. } => NodeConfig::default(),
        #[cfg(feature = "redis")]
        StoreUrl::Redis(url) => redis::config(url),
        #[cfg(feature = "http")]
        StoreUrl::Http(url) => http::config(url),
        #[cfg(feature = "dynamodb")]
        StoreUrl::Dynamodb(url) => dynamodb::config(url),
    }
}
