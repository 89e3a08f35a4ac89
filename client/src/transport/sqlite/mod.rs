//! A store in a SQLite file, for the processes of one machine.
//!
//! Every operation is a transaction around the core's reference store, and reaches the disk before it is answered. A
//! new file gets the permissions that the umask allows; SQLite gives the same to the files that it keeps beside it.
//! A user who can write the file can break every lock in it; a user who can read it sees owners and data.

mod connection;
mod doctor;
mod error;
#[cfg(feature = "fuzzing")]
pub(crate) mod fuzzing;
mod membership;
mod queue;
mod record;
mod schema;
mod transaction;

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};
use std::time::Duration;

use leasehold_core::config::Poll;
use leasehold_core::member::{Durability, Marker};
use leasehold_core::op::{Applied, LockOp, Outcome, TransportFault};
use leasehold_core::store::BootId;
use leasehold_core::{Monotonic, NodeConfig, Resource, Transmit};
use leasehold_wire::listing::Page;
use tracing::Level;

use self::error::{Kind, SqliteError};
use self::queue::{Queue, Queues};
use self::transaction::Stop;
use super::wakeups::Wakeups;
use super::{Answer, FileId, Found, Pool, Transport, Watcher};
use crate::clock;
use crate::doctor::Finding;
use crate::error::{Error, ErrorKind};
use crate::fork::gate::{self, CloseBeforeFork, Pass, Shut};
use crate::fork::{self, PerProcess};
use crate::reports;
use crate::sync::Mutex;
use crate::url::StoreUrl;

/// The time for which opening waits for other processes that open or write the same file.
const OPEN_PATIENCE: Duration = Duration::from_secs(5);

type Shared = Mutex<BTreeMap<PathBuf, Weak<Wakeups>>>;
static WAKEUPS: PerProcess<Shared> = PerProcess::new(|| Mutex::new(BTreeMap::new()));

/// The properties of such a store. Every commit reaches the disk before it is answered.
pub(super) fn config() -> NodeConfig {
    NodeConfig { poll: Poll::Read, watch: true, batch: 100, durability: Durability::Declared }
}

/// A SQLite file with leases.
pub(super) struct Sqlite {
    path: PathBuf,
    boot: BootId,
    queues: Arc<Queues>,
    wakeups: Arc<Wakeups>,
    generation: u64,
}

impl Sqlite {
    /// Opens the file, and creates it if there is none. The folder must exist, unless it is the one of the default
    /// store.
    pub(super) fn open(path: &Path) -> Result<Self, Error> {
        let cannot = |what: &str, error: std::io::Error| {
            Error::new(ErrorKind::StoreUnavailable, format!("{}: {what}: {error}", path.display()))
        };
        fork::install().map_err(|error| cannot("cannot be protected from forks", error))?;
        // The path must lead to the same file after the process has changed its folder.
        let path = &std::path::absolute(path).map_err(|error| cannot("no file can have this name", error))?;
        make_default_folder(path).map_err(|error| cannot("its folder cannot be created", error))?;
        let boot = clock::boot_id().map_err(|error| {
            cannot(
                "the boot id of this machine cannot be read, so the age of leases is unknown (is /proc there?)",
                error,
            )
        })?;
        let mut store = Self {
            path: path.clone(),
            boot,
            queues: Arc::new(Queues::new()),
            wakeups: Arc::default(),
            generation: fork::generation(),
        };
        {
            let pass = gate::enter(Monotonic::FAR).map_err(|shut| Error::from(SqliteError::from(shut)))?;
            gate::register(&pass, store.queues.clone());
        }
        let until = clock::monotonic().plus(OPEN_PATIENCE);
        store.with_connection(Pool::Caller, until, |_| Ok(())).map_err(given_up)?;
        if let Some(kind) = doctor::shared_by_hosts(path) {
            let path = path.clone();
            reports::make_or_queue(Level::WARN, move || {
                let file = path.display();
                tracing::warn!(target: "leasehold", %file, kind, "{file} is on a network file system ({kind}): several machines that use it have no exclusion, and the file can be damaged; keep it on a local disk");
            });
        }
        // By its real path, which a new file has only now.
        store.wakeups = wakeups_of(path);
        Ok(store)
    }

    fn queue(&self, pool: Pool) -> &Queue {
        match pool {
            Pool::Caller => &self.queues.callers,
            Pool::Background => &self.queues.background,
        }
    }

    /// Gives `work` a connection. In all cases the connection is kept or closed inside the gate.
    fn with_connection<R>(
        &self,
        pool: Pool,
        until: Monotonic,
        mut work: impl FnMut(&connection::Connection) -> Result<R, Stop>,
    ) -> Result<R, Stop> {
        if self.generation != fork::generation() {
            let detail = "this store belongs to the parent process; connect again after the fork";
            return Err(Stop::NotApplied(SqliteError::new(Kind::Io, detail)));
        }
        loop {
            let Some(turn) = self.queue(pool).turn(until) else {
                let busy = SqliteError::new(Kind::Busy, "other threads of this process came first");
                return Err(Stop::NotApplied(busy.at(&self.path)));
            };
            let done = {
                let _inside: Pass = gate::enter(until).map_err(|shut| Stop::NotApplied(shut.into()))?;
                match turn.connection(&self.path, until) {
                    Err(error) => Err(Stop::NotApplied(error)),
                    Ok(connection) => {
                        let done = work(&connection);
                        if connection.is_idle() && (done.is_ok() || is_busy(&done)) {
                            turn.keep(connection);
                        } else {
                            connection.abandon();
                        }
                        done
                    }
                }
            };
            // Also when a fork wanted all threads to leave, and those that waited for the file answered "busy".
            if is_busy(&done) && clock::monotonic() < until {
                connection::pause();
                continue;
            }
            return done;
        }
    }

    fn run(&self, ops: &[LockOp], deadline: Monotonic, pool: Pool) -> Result<Vec<Outcome>, Stop> {
        // The wait for the file ends before the core's deadline, after which a plain "busy" would be in doubt.
        let now = clock::monotonic();
        let until = now.plus(deadline.since(now) * 7 / 8);
        self.with_connection(pool, until, |connection| transaction::run(connection, &self.path, self.boot, ops, until))
    }
}

fn given_up(stop: Stop) -> Error {
    match stop {
        Stop::NotApplied(error) | Stop::Unknown(error) => Error::from(error),
    }
}

fn is_busy<R>(done: &Result<R, Stop>) -> bool {
    matches!(done, Err(Stop::NotApplied(error)) if error.kind() == Kind::Busy)
}

impl Transport for Sqlite {
    fn config(&self) -> NodeConfig {
        config()
    }

    fn perform(&self, request: &Transmit, pool: Pool) -> Answer {
        let outcomes = match self.run(&request.ops, request.deadline, pool) {
            Ok(outcomes) => outcomes,
            Err(Stop::Unknown(error)) => return Err(TransportFault::Unknown(error.fault())),
            Err(Stop::NotApplied(error)) => {
                return Ok(vec![Outcome::NotApplied(error.refusal()); request.ops.len()]);
            }
        };
        for (op, outcome) in request.ops.iter().zip(&outcomes) {
            if matches!(outcome, Outcome::Applied(Applied::Released | Applied::Finished)) {
                self.wakeups.released(&op.resource);
            }
        }
        Ok(outcomes)
    }

    fn watch(&self, resource: &Resource, watcher: &Arc<dyn Watcher>) {
        self.wakeups.watch(resource, watcher);
    }

    fn unwatch(&self, resource: &Resource, watcher: &Arc<dyn Watcher>) {
        self.wakeups.unwatch(resource, watcher);
    }

    fn diagnose(&self) -> Vec<Finding> {
        doctor::diagnose(self)
    }

    fn look(&self) -> Result<Found, Error> {
        let until = clock::monotonic().plus(OPEN_PATIENCE);
        let looked = self.with_connection(Pool::Caller, until, |connection| {
            membership::text(connection.db()).map_err(|error| Stop::NotApplied(SqliteError::from(error).at(&self.path)))
        });
        let text = looked.map_err(given_up)?.unwrap_or_default().into_bytes();
        let file = std::fs::metadata(&self.path).ok();
        let file = file.map(|file| FileId { device: file.dev(), inode: file.ino() });
        Ok(Found { marker: Marker::parse(&text), text, file, ..Found::default() })
    }

    fn list(&self, prefix: &str, after: &[u8]) -> Result<Page, Error> {
        let until = clock::monotonic().plus(OPEN_PATIENCE);
        let page = self.with_connection(Pool::Caller, until, |connection| {
            record::read_page(connection.db(), prefix, after, &clock::store_now(self.boot))
                .map_err(|error| Stop::NotApplied(SqliteError::from(error).at(&self.path)))
        });
        page.map_err(given_up)
    }

    fn mark(&self, found: &[u8], marker: Option<&Marker>) -> Result<bool, Error> {
        let until = clock::monotonic().plus(OPEN_PATIENCE);
        let marked = self.with_connection(Pool::Caller, until, |connection| {
            transaction::mark(connection, &self.path, found, marker, until)
        });
        marked.map_err(given_up)
    }
}

impl Drop for Sqlite {
    fn drop(&mut self) {
        // A forked child has nothing to close: the fork did it, or it was unclean, and the gate stays shut.
        let Ok(pass) = gate::enter(Monotonic::FAR) else { return };
        let erased: Arc<dyn CloseBeforeFork> = self.queues.clone();
        gate::unregister(&pass, &erased);
        self.queues.close();
    }
}

impl From<Shut> for SqliteError {
    fn from(shut: Shut) -> Self {
        match shut {
            Shut::Forking => Self::new(Kind::Busy, "this process is being forked"),
            Shut::Unclean => Self::new(
                Kind::Permission,
                "this process was forked while another thread of its parent was inside SQLite, so it must not use \
                 SQLite; exec a new program, or fork when no lock is being taken",
            ),
        }
    }
}

/// The wake-ups of a file: one object in each process, for all stores that have the file open.
fn wakeups_of(path: &Path) -> Arc<Wakeups> {
    let path = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let mut shared = WAKEUPS.get().lock();
    if let Some(wakeups) = shared.get(&path).and_then(Weak::upgrade) {
        return wakeups;
    }
    shared.retain(|_, wakeups| wakeups.strong_count() > 0);
    let wakeups = Arc::default();
    shared.insert(path, Arc::downgrade(&wakeups));
    wakeups
}

/// Creates the folder of the default store only. A folder that the user names may be mistyped, or a volume that is not
/// mounted.
fn make_default_folder(path: &Path) -> std::io::Result<()> {
    match (path.parent(), StoreUrl::default_store()) {
        (Some(folder), Ok(StoreUrl::Sqlite { path: default })) if default == path => std::fs::create_dir_all(folder),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests;
