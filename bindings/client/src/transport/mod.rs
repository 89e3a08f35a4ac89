//! How requests reach stores: the only place that knows files and sockets.

mod memory;
#[cfg(feature = "sqlite")]
mod sqlite;
mod wakeups;

use std::sync::Arc;
use std::time::Duration;

use leasehold_core::op::{Outcome, TransportFault};
use leasehold_core::{NodeConfig, Resource, Transmit};

use crate::doctor::Finding;
use crate::error::Error;
use crate::url::StoreUrl;

/// How long an embedded store remembers the token counter of a resource that nobody locks. Far above the longest lease;
/// by then the clock, which is the floor of every new token, has long passed what is forgotten.
const RETENTION: Duration = Duration::from_secs(7 * 24 * 3600);

/// One store, as the driver sees it.
pub(crate) trait Transport: Send + Sync {
    /// What the store can do.
    fn config(&self) -> NodeConfig;

    /// Whether a request is answered in microseconds without any waiting, so that any thread may perform it.
    fn is_instant(&self) -> bool;

    /// Performs a request on the calling thread, and gives up at its deadline. One outcome for each operation, in
    /// order; an error speaks for all of them.
    ///
    /// `lane` tells whose thread it is: renewals must not wait for the connections of callers.
    fn perform(&self, request: &Transmit, lane: Lane) -> Result<Vec<Outcome>, TransportFault>;

    /// Calls `watcher` after each release of the resource that this process sees, until [`Transport::unwatch`].
    fn watch(&self, resource: &Resource, watcher: &Arc<dyn Watcher>);

    /// Ends [`Transport::watch`].
    fn unwatch(&self, resource: &Resource, watcher: &Arc<dyn Watcher>);

    /// Looks for what could make locks fail, and says what to do about it.
    fn diagnose(&self) -> Vec<Finding>;
}

/// Whose thread performs a request; lanes share no connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lane {
    /// The caller's own thread, which waits for the answer.
    Caller,
    /// A thread of the client's.
    Background,
}

/// Who wants to hear of releases.
pub(crate) trait Watcher: Send + Sync {
    /// A resource was released. Must not block, and must not call back into the transport.
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
    }
}
