//! A store in a SQLite file, for the processes of one machine.
//!
//! Every operation is a transaction around the core's reference store, and reaches the disk before it is answered. A
//! new file gets the permissions that the umask allows; SQLite gives the same to the files that it keeps beside it.
//! A user who can write the file can break every lock in it; a user who can read it sees owners and data.

mod abouts;
mod connection;
mod doctor;
mod error;
mod file;
#[cfg(feature = "fuzzing")]
pub(crate) mod fuzzing;
mod items;
mod membership;
mod queue;
mod record;
mod schema;
mod transaction;
mod turns;
mod waiters;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};
use std::time::Duration;

use leasehold_core::config::Poll;
use leasehold_core::member::{Durability, Marker};
use leasehold_core::op::{Applied, LockOp, Op, Outcome, TransportFault};
use leasehold_core::queue::{ClientId, Reserved};
use leasehold_core::{LockId, Monotonic, NodeConfig, Resource, Transmit};
use leasehold_wire::listing::{Page, Which};
use tracing::Level;

#[cfg(test)]
pub(super) use self::error::KNOWN_ERRORS;
use self::error::SqliteError;
use self::file::File;
use self::transaction::{Done, Stop};
use self::turns::Turns;
use super::items::Store;
use super::wakeups::Wakeups;
use super::{Answer, FileId, NodeRecord, Pool, Queue, Transport, UnderLock, Watcher};
use crate::admin::doctor::Finding;
use crate::error::{Error, ErrorKind};
use crate::host::clock;
use crate::host::entropy::fill;
use crate::host::fork::{self, PerProcess};
use crate::host::sync::Mutex;
use crate::reports;
use crate::url::HERE;
use crate::url::place::{Expiry, Facts, Place, Site};
use crate::url::sqlite::SqliteUrl;

/// The time for which opening waits for other processes that open or write the same file.
const OPEN_PATIENCE: Duration = Duration::from_secs(5);

type Shared = Mutex<BTreeMap<PathBuf, Weak<Wakeups>>>;
static WAKEUPS: PerProcess<Shared> = PerProcess::new(|| Mutex::new(BTreeMap::new()));

impl Place for SqliteUrl {
    fn facts(&self) -> Facts {
        Facts { site: Site::Machine, expiry: Expiry::ByStore }
    }

    fn config(&self) -> NodeConfig {
        config()
    }

    fn store(&self) -> Result<Arc<dyn Store>, Error> {
        Ok(Arc::new(Sqlite::open(&self.path)?))
    }

    fn machine(&self) -> Option<String> {
        Some(HERE.to_owned())
    }

    fn node_name(&self) -> String {
        self.real()
    }

    fn shown(&self) -> String {
        self.whole().to_string_lossy().into_owned()
    }

    fn handed_on(&self) -> Option<OsString> {
        Some(self.whole())
    }
}

/// The properties of such a store. Every commit reaches the disk before it is answered.
const fn config() -> NodeConfig {
    NodeConfig { poll: Poll::Read, watch: true, batch: 100, durability: Durability::Declared }
}

/// A SQLite file with leases.
pub(super) struct Sqlite {
    file: Arc<File>,
    turns: Turns,
}

impl Sqlite {
    /// Opens the file, and creates it if there is none. The folder must exist, unless it is the one of the default
    /// store.
    pub(super) fn open(path: &Path) -> Result<Self, Error> {
        let cannot = |what: &str, error: std::io::Error| {
            Error::new(ErrorKind::StoreUnavailable, format!("{}: {what}: {error}", path.display()))
        };
        fork::install().map_err(|error| cannot("cannot be protected from forks", error))?;
        let is_relative = path.is_relative();
        // The path must lead to the same file after the process has changed its folder.
        let path = &std::path::absolute(path).map_err(|error| cannot("no file can have this name", error))?;
        make_default_folder(path).map_err(|error| cannot("its folder cannot be created", error))?;
        let boot = clock::boot_id().map_err(|error| {
            cannot(
                "the boot id of this machine cannot be read, so the age of leases is unknown (is /proc there?)",
                error,
            )
        })?;
        let mut client = [0; 16];
        fill(&mut client)?;
        let mut file = File::new(path, boot, ClientId(client)).map_err(Error::from)?;
        let until = clock::monotonic().plus(OPEN_PATIENCE);
        file.with_connection(Pool::Caller, until, |_| Ok(())).map_err(given_up)?;
        if let Some(kind) = doctor::shared_by_hosts(path) {
            let path = path.clone();
            reports::make_or_queue(Level::WARN, move || {
                let file = path.display();
                tracing::warn!(target: "leasehold", %file, kind, "{file} is on a network file system ({kind}): several machines that use it have no exclusion, and the file can be damaged; keep it on a local disk");
            });
        }
        if is_relative {
            let path = path.clone();
            reports::make_or_queue(Level::INFO, move || {
                let file = path.display();
                tracing::info!(name: "store.relative", target: "leasehold", %file, "the path of the store is relative, so it is {file}, and another file in another folder: processes exclude each other only where it is the same one");
            });
        }
        // By its real path, which a new file has only now.
        file.share(wakeups_of(path));
        let file = Arc::new(file);
        Ok(Self { turns: Turns::of(&file), file })
    }

    fn run(&self, ops: &[LockOp], deadline: Monotonic, pool: Pool) -> Result<Vec<Done>, Stop> {
        // The wait for the file ends before the core's deadline, after which a plain "busy" would be in doubt.
        let now = clock::monotonic();
        let until = now.plus(deadline.since(now) * 7 / 8);
        let file = &self.file;
        file.with_connection(pool, until, |connection| {
            transaction::run(connection, file.path(), file.client(), ops, until)
        })
    }
}

fn given_up(stop: Stop) -> Error {
    match stop {
        Stop::NotApplied(error) | Stop::Unknown(error) => Error::from(error),
    }
}

impl UnderLock for Sqlite {
    fn watch(&self, resource: &Resource, watcher: &Arc<dyn Watcher>) {
        self.file.wakeups().tell(self.file.client().1, watcher);
        self.file.wakeups().watch(resource, watcher);
    }

    fn unwatch(&self, resource: &Resource, watcher: &Arc<dyn Watcher>) {
        self.file.wakeups().unwatch(resource, watcher);
    }

    fn leave_queue(&self, resource: &Resource, lock: LockId) {
        if !self.file.is_inherited() {
            self.turns.leave(resource, lock);
        }
    }

    fn place_in_queue(&self, resource: &Resource, lock: Option<LockId>) -> Option<u64> {
        self.turns.place(resource, lock)
    }

    fn reserved_before(&self, resource: &Resource, lock: LockId) -> Option<Reserved> {
        self.turns.reserved_before(resource, lock)
    }
}

impl Transport for Sqlite {
    fn config(&self) -> NodeConfig {
        config()
    }

    fn perform(&self, request: &Transmit, pool: Pool) -> Answer {
        let done = match self.run(&request.ops, request.deadline, pool) {
            Ok(done) => done,
            Err(Stop::Unknown(error)) => return Err(TransportFault::Unknown(error.fault())),
            Err(Stop::NotApplied(error)) => {
                return Ok(vec![Outcome::NotApplied(error.refusal()); request.ops.len()]);
            }
        };
        let wakeups = self.file.wakeups();
        for (LockOp { lock, resource, op }, done) in request.ops.iter().zip(&done) {
            if matches!(op, Op::Acquire(_)) {
                self.turns.note(resource, *lock, done.place, done.reserved);
            }
            if let Some(turn) = done.turn {
                wakeups.reserved(resource, turn);
            }
            // All who stand by for the end of the work are told.
            let is_free = matches!(done.outcome, Outcome::Applied(Applied::Released)) && done.turn.is_none();
            if is_free || matches!(done.outcome, Outcome::Applied(Applied::Finished)) {
                wakeups.released(resource);
            }
        }
        Ok(done.into_iter().map(|done| done.outcome).collect())
    }

    fn close(&self) {
        if !self.file.is_inherited() {
            self.turns.stop();
            self.file.close();
        }
    }

    fn keeps_queue(&self) -> bool {
        true
    }

    fn queue(&self, resource: &Resource) -> Option<Queue> {
        let until = clock::monotonic().plus(OPEN_PATIENCE);
        let queue = self.file.with_connection(Pool::Caller, until, |connection| {
            waiters::read(connection.db(), resource).map_err(|error| Stop::NotApplied(error.into()))
        });
        let (queue, now) = (queue.ok()?, clock::store_now(self.file.boot()));
        let mut waiting = leasehold_core::queue::waiting(&queue, &now);
        let since_unix_ms = waiting.next()?.joined_unix_ms;
        Some(Queue { waiting: 1 + waiting.count() as u64, since_unix_ms })
    }

    fn diagnose(&self) -> Vec<Finding> {
        doctor::diagnose(&self.file)
    }

    fn look(&self) -> Result<NodeRecord, Error> {
        let until = clock::monotonic().plus(OPEN_PATIENCE);
        let looked = self.file.with_connection(Pool::Caller, until, |connection| {
            membership::text(connection.db())
                .map_err(|error| Stop::NotApplied(SqliteError::from(error).at(self.file.path())))
        });
        let text = looked.map_err(given_up)?.unwrap_or_default().into_bytes();
        let file = FileId::of(self.file.path());
        Ok(NodeRecord { marker: Marker::parse(&text), text, file, ..NodeRecord::default() })
    }

    fn list(&self, prefix: &str, after: &[u8], which: Which) -> Result<Page, Error> {
        let until = clock::monotonic().plus(OPEN_PATIENCE);
        let page = self.file.with_connection(Pool::Caller, until, |connection| {
            record::read_page(connection.db(), prefix, after, which, &clock::store_now(self.file.boot()))
                .map_err(|error| Stop::NotApplied(SqliteError::from(error).at(self.file.path())))
        });
        page.map_err(given_up)
    }

    fn mark(&self, found: &[u8], marker: Option<&Marker>) -> Result<bool, Error> {
        let until = clock::monotonic().plus(OPEN_PATIENCE);
        let marked = self.file.with_connection(Pool::Caller, until, |connection| {
            transaction::mark(connection, self.file.path(), found, marker, until)
        });
        marked.map_err(given_up)
    }
}

impl Drop for Sqlite {
    fn drop(&mut self) {
        if !self.file.is_inherited() {
            self.turns.stop();
            self.file.wakeups().forget(self.file.client().1);
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
    match (path.parent(), SqliteUrl::of_user()) {
        (Some(folder), Ok(default)) if default.path == path => std::fs::create_dir_all(folder),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests;
