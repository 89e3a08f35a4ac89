//! The least that taking and giving back a lock in SQLite can cost: one transaction for each, and nothing else.
//!
//! Each reads the row and writes it, as leasehold does, in leasehold's own table.

use std::path::Path;
use std::time::{Duration, Instant};

use rusqlite::{Connection, OptionalExtension, Result, Row};

use crate::database;

const READ: &str = "SELECT counter, nonce, seq, released, ttl_ns, boot, expires_ns, since_ms, owner, data \
                    FROM leases WHERE resource = ?1";
const WRITE: &str = "INSERT OR REPLACE INTO leases (resource, counter, touched_ms, nonce, seq, released, ttl_ns, boot, \
                     expires_ns, since_ms, owner, data) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)";
const TTL_NS: i64 = 30_000_000_000;

/// A lock without leases: no expiry, no renewal, no deadline, one kind of error.
pub struct Bare {
    db: Connection,
    resource: String,
    owner: String,
}

impl Bare {
    /// Opens a file whose tables leasehold has made.
    ///
    /// # Errors
    /// SQLite's.
    pub fn open(path: &Path, resource: &str) -> Result<Self> {
        let db = database::open(path)?;
        Ok(Self { db, resource: resource.to_owned(), owner: format!("bare:{}:main", std::process::id()) })
    }

    /// Takes the lock; `false` when it is not free within `wait`.
    ///
    /// # Errors
    /// SQLite's.
    pub fn acquire(&mut self, wait: Duration) -> Result<bool> {
        let begin = Instant::now();
        loop {
            self.execute("BEGIN IMMEDIATE")?;
            match self.read()? {
                Some((_, false)) => {
                    self.execute("ROLLBACK")?;
                    if begin.elapsed() >= wait {
                        return Ok(false);
                    }
                    database::pause();
                }
                found => {
                    self.write(found.map_or(1, |(counter, _)| counter + 1), false)?;
                    self.execute("COMMIT")?;
                    return Ok(true);
                }
            }
        }
    }

    /// Gives the lock back.
    ///
    /// # Errors
    /// SQLite's.
    pub fn release(&mut self) -> Result<()> {
        self.execute("BEGIN IMMEDIATE")?;
        if let Some((counter, false)) = self.read()? {
            self.write(counter, true)?;
        }
        self.execute("COMMIT")
    }

    /// The counter, and whether the lock is free.
    fn read(&self) -> Result<Option<(i64, bool)>> {
        let all = |row: &Row<'_>| {
            for column in 0..10 {
                std::hint::black_box(row.get_ref(column)?);
            }
            Ok((row.get(0)?, row.get(3)?))
        };
        self.db.prepare_cached(READ)?.query_row([&self.resource], all).optional()
    }

    fn write(&self, counter: i64, released: bool) -> Result<()> {
        let (ms, ns) = (counter / 1_000_000, database::now_ns());
        let row = (
            &self.resource,
            counter,
            ms,
            [7_u8; 16],
            1_i64,
            released,
            TTL_NS,
            [9_u8; 16],
            ns + TTL_NS,
            ms,
            &self.owner,
            None::<&[u8]>,
        );
        self.db.prepare_cached(WRITE)?.execute(row).map(drop)
    }

    fn execute(&self, sql: &str) -> Result<()> {
        self.db.prepare_cached(sql)?.execute([]).map(drop)
    }
}
