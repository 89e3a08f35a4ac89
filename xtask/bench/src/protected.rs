//! What a lock protects: one number, which processes read, and write back changed.
//!
//! It lives in a database of its own, apart from the lock store. Each accepted write is logged in its own transaction,
//! so the log and the number agree whatever is killed, except for updates that were written over by another.

use std::path::Path;

use rusqlite::{Connection, Result, Transaction, TransactionBehavior};
use rustix::time::{ClockId, clock_gettime};

use crate::database;

/// A handle of one process.
pub struct Protected {
    db: Connection,
    guarded: bool,
}

/// What became of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Write {
    /// The number is what was written.
    Done,
    /// The guard has seen a later token; nothing is changed.
    Refused,
}

/// An accepted write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Logged {
    /// The fencing token it came with.
    pub token: Option<u64>,
    /// Who wrote.
    pub writer: String,
    /// Which of the writer's leases it was.
    pub lease: i64,
    /// When, in nanoseconds of the machine's monotonic clock.
    pub at_ns: i64,
}

impl Protected {
    /// Makes a new one that holds `value`.
    ///
    /// # Errors
    /// SQLite's.
    pub fn create(path: &Path, guarded: bool, value: i64) -> Result<Self> {
        let db = database::open(path)?;
        db.execute_batch(
            "CREATE TABLE item (value INTEGER NOT NULL, fence INTEGER NOT NULL DEFAULT 0);
             CREATE TABLE log (
                 id INTEGER PRIMARY KEY, token INTEGER, writer TEXT NOT NULL, lease INTEGER NOT NULL, at_ns INTEGER NOT NULL
             );",
        )?;
        db.execute("INSERT INTO item (value) VALUES (?1)", [value])?;
        Ok(Self { db, guarded })
    }

    /// Opens one that exists.
    ///
    /// # Errors
    /// SQLite's.
    pub fn open(path: &Path, guarded: bool) -> Result<Self> {
        Ok(Self { db: database::open(path)?, guarded })
    }

    /// Whether tokens are compared.
    pub fn is_guarded(&self) -> bool {
        self.guarded
    }

    /// Reads the number as a holder does, after a claim if there is a guard; `None` when the claim is refused.
    ///
    /// # Errors
    /// SQLite's.
    pub fn read(&mut self, token: Option<u64>) -> Result<Option<i64>> {
        if !self.guarded {
            return self.value().map(Some);
        }
        let change = self.begin()?;
        if !claim(&change, token)? {
            return Ok(None);
        }
        let value = number(&change)?;
        change.commit()?;
        Ok(Some(value))
    }

    /// Writes the number, if the guard has nothing against it.
    ///
    /// # Errors
    /// SQLite's.
    pub fn write(&mut self, value: i64, token: Option<u64>, writer: &str, lease: i64) -> Result<Write> {
        let guarded = self.guarded;
        let change = self.begin()?;
        if guarded && !claim(&change, token)? {
            return Ok(Write::Refused);
        }
        change.prepare_cached("UPDATE item SET value = ?1")?.execute([value])?;
        change
            .prepare_cached("INSERT INTO log (token, writer, lease, at_ns) VALUES (?1, ?2, ?3, ?4)")?
            .execute((token.map(u64::cast_signed), writer, lease, now_ns()))?;
        change.commit()?;
        Ok(Write::Done)
    }

    /// The number, without any claim.
    ///
    /// # Errors
    /// SQLite's.
    pub fn value(&self) -> Result<i64> {
        number(&self.db)
    }

    /// All accepted writes, in order.
    ///
    /// # Errors
    /// SQLite's.
    pub fn log(&self) -> Result<Vec<Logged>> {
        let mut rows = self.db.prepare("SELECT token, writer, lease, at_ns FROM log ORDER BY id")?;
        let logged = |row: &rusqlite::Row<'_>| {
            let token: Option<i64> = row.get(0)?;
            Ok(Logged { token: token.map(i64::cast_unsigned), writer: row.get(1)?, lease: row.get(2)?, at_ns: row.get(3)? })
        };
        rows.query_map([], logged)?.collect()
    }

    fn begin(&mut self) -> Result<Transaction<'_>> {
        self.db.transaction_with_behavior(TransactionBehavior::Immediate)
    }
}

fn claim(db: &Connection, token: Option<u64>) -> Result<bool> {
    Ok(db.prepare_cached("UPDATE item SET fence = ?1 WHERE fence <= ?1")?.execute([token.map(u64::cast_signed)])? == 1)
}

fn number(db: &Connection) -> Result<i64> {
    db.prepare_cached("SELECT value FROM item")?.query_row([], |row| row.get(0))
}

/// The machine's monotonic clock, the same for all its processes.
pub fn now_ns() -> i64 {
    let at = clock_gettime(ClockId::Monotonic);
    at.tv_sec.saturating_mul(1_000_000_000).saturating_add(at.tv_nsec)
}
