//! One open connection to the file.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use leasehold_core::Monotonic;
use rusqlite::config::DbConfig;
use rusqlite::{MAIN_DB, OpenFlags};

use super::error::{Kind, SqliteError};
use super::schema;
use crate::host::clock;
use crate::host::fork::gate;
use crate::transport::FileId;

/// A connection, and the file it leads to. Use it and drop it only inside the gate.
pub(super) struct Connection {
    db: rusqlite::Connection,
    file: FileId,
    /// The time at which the current request stops waiting for other writers.
    until: Arc<AtomicU64>,
}

impl Connection {
    /// Opens the file, initialises a new one, and waits until the deadline for others who do the same.
    pub(super) fn open(path: &Path, until: Monotonic) -> Result<Self, SqliteError> {
        loop {
            match Self::try_open(path, until) {
                // A change of the journal mode does not always call the busy handler.
                Err(error) if error.kind() == Kind::Busy && may_wait(until) => pause(),
                Err(error) => return Err(error.at(path)),
                Ok(connection) => return Ok(connection),
            }
        }
    }

    fn try_open(path: &Path, until: Monotonic) -> Result<Self, SqliteError> {
        let before = FileId::of(path);
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let mut db = rusqlite::Connection::open_with_flags(path, flags)?;
        let until = Arc::new(AtomicU64::new(until.ns()));
        db.busy_handler(Some({
            let until = Arc::clone(&until);
            move |_| {
                let go_on = may_wait(Monotonic::from_ns(until.load(Ordering::Relaxed)));
                if go_on {
                    pause();
                }
                go_on
            }
        }))?;
        let file = match (before, FileId::of(path)) {
            (Some(before), Some(after)) if before == after => after,
            // Just created, or replaced meanwhile: the open file is unknown.
            _ => {
                let connection = Self { db, file: FileId { device: 0, inode: 0 }, until };
                connection.abandon();
                return Err(SqliteError::new(Kind::Busy, "the file is being created or replaced"));
            }
        };
        // SQLite falls back to reading only, and would report it at the first write.
        if db.is_readonly(MAIN_DB)? {
            return Err(SqliteError::new(Kind::Permission, "the file can only be read"));
        }
        schema::configure(&db)?;
        schema::adopt(&db)?;
        Ok(Self { db, file, until })
    }

    pub(super) fn db(&self) -> &rusqlite::Connection {
        &self.db
    }

    /// Sets the time at which statements stop waiting for other writers.
    pub(super) fn give_up_at(&self, until: Monotonic) {
        self.until.store(until.ns(), Ordering::Relaxed);
    }

    /// Tells if the path still leads to this file: it may have been deleted or replaced.
    pub(super) fn is_at(&self, path: &Path) -> bool {
        FileId::of(path) == Some(self.file)
    }

    /// Tells if it can serve another request.
    pub(super) fn is_idle(&self) -> bool {
        self.db.is_autocommit()
    }

    /// Closes it without a checkpoint. A checkpoint uses the name, which may belong to another file by now; before a
    /// fork it would only take time.
    pub(super) fn abandon(self) {
        let _ = self.db.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true);
    }
}

fn may_wait(until: Monotonic) -> bool {
    !gate::is_closing() && clock::monotonic() < until
}

/// SQLite's own pauses grow with every try, so the longest waiter would come last; short ones of random length
/// serve all alike.
pub(super) fn pause() {
    let random = getrandom::u32().unwrap_or(0);
    thread::sleep(Duration::from_micros(100 + u64::from(random % 400)));
}
