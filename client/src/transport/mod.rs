//! The transports to stores: the only module that knows files and sockets.

#![allow(clippy::disallowed_types, reason = "only transports know sockets and SQLite")]
#![allow(
    clippy::disallowed_methods,
    reason = "servers and files keep the time of machines; stores in memory do not, and refuse it"
)]

#[cfg(feature = "network")]
mod background;
#[cfg(feature = "network")]
#[cfg_attr(
    not(any(feature = "redis", feature = "http", feature = "dynamodb", feature = "etcd")),
    allow(dead_code, reason = "callers of PostgreSQL share the connections of the background")
)]
mod callers;
#[cfg(feature = "network")]
#[cfg_attr(
    not(any(feature = "redis", feature = "http", feature = "dynamodb", feature = "etcd")),
    allow(dead_code, reason = "callers of PostgreSQL share the connections of the background")
)]
mod connections;
#[cfg(feature = "dynamodb")]
mod credentials;
#[cfg(feature = "network")]
mod deadline;
#[cfg(any(feature = "redis", feature = "http"))]
mod durability;
#[cfg(feature = "dynamodb")]
pub(crate) mod dynamodb;
#[cfg(all(test, feature = "sqlite"))]
mod errors_page;
#[cfg(feature = "etcd")]
mod etcd;
mod file_id;
#[cfg(feature = "http")]
mod http;
#[cfg(any(feature = "redis", feature = "http"))]
mod info;
pub(crate) mod items;
mod lazy_store;
#[cfg(any(feature = "redis", feature = "http"))]
mod membership;
mod memory;
#[cfg(feature = "objects")]
mod objects;
pub(crate) mod pauses;
#[cfg(any(feature = "sqlite", feature = "postgres"))]
mod places;
#[cfg(feature = "postgres")]
pub(crate) mod postgres;
#[cfg(any(feature = "http", feature = "dynamodb", feature = "etcd", feature = "postgres"))]
#[cfg_attr(not(feature = "dynamodb"), allow(dead_code, reason = "stores that sign requests need more of it"))]
mod readiness;
#[cfg(feature = "redis")]
mod redis;
#[cfg(feature = "sqlite")]
pub(crate) mod sqlite;
#[cfg(feature = "network")]
mod tcp;
#[cfg(feature = "testing")]
pub(crate) mod test_store;
#[cfg(feature = "network")]
mod tls;
mod wakeups;
#[cfg(any(feature = "http", feature = "dynamodb", feature = "etcd"))]
#[cfg_attr(not(feature = "dynamodb"), allow(dead_code, reason = "stores that sign requests need more of it"))]
mod web;
#[cfg(any(feature = "http", feature = "etcd", feature = "objects"))]
mod web_checks;
#[cfg(any(feature = "http", feature = "dynamodb", feature = "etcd"))]
#[cfg_attr(not(feature = "dynamodb"), allow(dead_code, reason = "stores that sign requests need more of it"))]
mod web_link;

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;

use std::time::Duration;

use leasehold_core::member::{Marker, RunId};
use leasehold_core::op::{Outcome, TransportFault};
use leasehold_core::queue::Reserved;
use leasehold_core::{LockId, NodeConfig, Resource, Transmit};
use leasehold_wire::listing::{Page, Which};

use crate::admin::doctor::Finding;
use crate::error::Error;
pub(crate) use file_id::FileId;
pub(crate) use lazy_store::LazyStore;

/// The result of a request: one outcome for each operation, in order; an error stands for all of them.
pub(crate) type Answer = Result<Vec<Outcome>, TransportFault>;
/// An [`Answer`] under way.
pub(crate) type Answering = Pin<Box<dyn Future<Output = Answer> + Send>>;
/// Takes an [`Answer`].
pub(crate) type Done = Box<dyn FnOnce(Answer) + Send>;

/// Declares methods with a default, each of which asks the store behind a stand-in first: a stand-in that knows nothing of a method
/// cannot lose it.
macro_rules! asked_behind {
    ($($(#[$about:meta])* fn $name:ident(&$this:ident $(, $given:ident: $type:ty)*) $(-> $answer:ty)? { $otherwise:expr })+) => {$(
        $(#[$about])*
        fn $name(&$this $(, $given: $type)*) $(-> $answer)? {
            match $this.behind() {
                Some(store) => store.$name($($given),*),
                None => $otherwise,
            }
        }
    )+};
}

/// The questions to a store while the driver is locked. None blocks, or waits for the store. The state behind that lock holds nothing
/// else of a store.
pub(crate) trait UnderLock: Send + Sync {
    /// The store that this one stands for, once it is open.
    fn behind(&self) -> Option<&dyn Transport> {
        None
    }

    asked_behind! {
        /// Notifies `watcher` of each release of the resource that is seen here, until [`UnderLock::unwatch`]. It is called
        /// with the driver locked, so it must neither block nor wait for the store. Where no release is seen, waiters poll.
        fn watch(&self, resource: &Resource, watcher: &Arc<dyn Watcher>) { {} }

        /// Ends [`UnderLock::watch`].
        fn unwatch(&self, resource: &Resource, watcher: &Arc<dyn Watcher>) { {} }

        /// Gives up the place of an acquisition in the queue of waiters, and what is reserved for it. Like
        /// [`UnderLock::watch`], it only notes that: nobody waits for it.
        fn leave_queue(&self, resource: &Resource, lock: LockId) { {} }

        /// The place of an acquisition in the queue of waiters, counted from 1, as the store has last told; without one named, of
        /// the one that waits.
        fn place_in_queue(&self, resource: &Resource, lock: Option<LockId>) -> Option<u64> { None }

        /// The reservation for another that an acquisition in the queue has to wait for, as the store has last told.
        fn reserved_before(&self, resource: &Resource, lock: LockId) -> Option<Reserved> { None }
    }
}

/// One store, as the driver sees it.
pub(crate) trait Transport: UnderLock {
    /// The store's properties.
    fn config(&self) -> NodeConfig;

    /// Performs a request on the calling thread, and gives up at its deadline.
    ///
    /// `pool` is the kind of that thread: renewals must not wait for the connections of callers.
    fn perform(&self, request: &Transmit, pool: Pool) -> Answer;

    /// Checks for conditions that could make locks fail, with advice.
    fn diagnose(&self) -> Vec<Finding>;

    /// Reads the quorum membership that the store remembers.
    fn look(&self) -> Result<NodeRecord, Error>;

    /// Replaces the marker that was found by another, or by none; `false` if it has changed meanwhile.
    fn mark(&self, found: &[u8], marker: Option<&Marker>) -> Result<bool, Error>;

    /// One page of the locks whose names begin with `prefix`. `after` is empty, or where the last page has ended.
    fn list(&self, prefix: &str, after: &[u8], which: Which) -> Result<Page, Error>;

    asked_behind! {
        /// Tells if requests are answered within microseconds and without waiting, so that any thread may perform them.
        fn is_instant(&self) -> bool { false }

        /// The store again, if it is behind a socket, so that requests need not block a thread.
        fn network(&self) -> Option<&dyn Network> { None }

        /// Ends connections and threads: the client is closed, and nothing is left to do. A request after it reaches no store.
        fn close(&self) { {} }

        /// Tells if waiters of a client that has this store alone may stand in the queue.
        fn keeps_queue(&self) -> bool { false }

        /// Why a client with a session cannot use the store.
        fn refuses_sessions(&self) -> Option<&'static str> { None }

        /// Looks at the queue of waiters; `None` where nobody waits, and where it cannot be seen.
        fn queue(&self, resource: &Resource) -> Option<Queue> { None }

        /// The same for a node of a quorum, which has stricter conditions.
        fn diagnose_node(&self) -> Vec<Finding> { self.diagnose() }

        /// Tells if several reads can be one request.
        fn reads_together(&self) -> bool { true }

        /// The offset of the store's clock from ours, and its error, in milliseconds. `None` where it is the same clock, or
        /// cannot be read.
        fn clock_offset(&self) -> Option<(i64, u64)> { None }
    }
}

/// The queue of waiters of a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Queue {
    pub(crate) waiting: u64,
    /// When the first of them joined.
    pub(crate) since_unix_ms: u64,
}

/// The quorum membership that a store remembers.
#[derive(Clone, Debug, Default)]
pub(crate) struct NodeRecord {
    /// The marker, if this version understands it.
    pub(crate) marker: Option<Marker>,
    /// The marker as it is stored; empty where there is none.
    pub(crate) text: Vec<u8>,
    /// The run of its server; `None` where it has none, or does not show it.
    pub(crate) run: Option<RunId>,
    /// The server's words, where the run could not be read.
    pub(crate) run_refused: Option<String>,
    /// The identity of the file, whatever its name; `None` for other stores.
    pub(crate) file: Option<FileId>,
    /// The identity of the table, whatever its address; `None` for other stores, and where it cannot be read.
    pub(crate) table: Option<String>,
}

/// The error of a url that names a socket file.
#[cfg(all(windows, any(feature = "redis", feature = "postgres")))]
const NO_SOCKET_FILES: &str = "socket files are for Unix: name a host and a port";

/// A store behind a socket.
pub(crate) trait Network: Sync {
    /// Performs a request on the runtime of the calling task.
    ///
    /// # Errors
    /// The request, where that runtime cannot perform it.
    fn call_on_caller(&self, request: Transmit) -> Result<Answering, Transmit>;

    /// Performs a request in the background, beside others. Does not block.
    fn call_in_background(&self, request: Transmit, done: Done);

    /// Performs a request in the runtime of the task that runs now, if callers live there and it could leave at once; in
    /// the background otherwise. Does not block.
    #[cfg_attr(not(feature = "redis"), allow(dead_code, reason = "only Redis keeps lines"))]
    fn call_here(&self, request: Transmit, done: Done) {
        self.call_in_background(request, done);
    }
}

/// The kind of thread that performs a request. The two share no connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pool {
    /// The caller's own thread, which waits for the answer.
    Caller,
    /// A thread of the client.
    Background,
}

/// A receiver of releases. Its methods must not block, and must not call back into the transport.
pub(crate) trait Watcher: Send + Sync {
    /// Releases of the resource are seen from now on.
    fn subscribed(&self, resource: &Resource);

    /// A resource was released.
    fn released(&self, resource: &Resource);

    /// It is the turn of an acquisition that stands in the queue, after the lock was free for others for a while.
    #[cfg_attr(not(feature = "redis"), allow(dead_code, reason = "only Redis tells it like this"))]
    fn reserved(&self, _resource: &Resource, _lock: LockId, _after: Duration) {}

    /// The same, told where the driver may be locked: the timer thread passes it on.
    fn note_reserved(&self, _resource: &Resource, _lock: LockId) {}
}

/// A message about a store, without repeating a name that it already has.
pub(crate) fn of(store: &dyn fmt::Display, said: &dyn fmt::Display) -> String {
    let prefix = format!("{store}: ");
    format!("{prefix}{}", said.to_string().replace(&prefix, ""))
}

#[cfg(test)]
mod tests {
    /// The methods with a body that one of the traits declares beside `asked_behind!`.
    fn beside(declared: &str) -> Vec<&'static str> {
        let block = include_str!("mod.rs").split_once(declared).and_then(|(_, rest)| rest.split_once("\n}\n"));
        let (block, _) = block.expect("it is in this file");
        block.lines().filter(|line| line.starts_with("    fn ") && line.ends_with('{')).collect()
    }

    #[test]
    fn a_stand_in_asks_the_store_behind_it_for_whatever_has_a_default() {
        assert_eq!(beside("trait UnderLock"), ["    fn behind(&self) -> Option<&dyn Transport> {"]);
        assert_eq!(beside("trait Transport:"), [""; 0]);
    }
}
