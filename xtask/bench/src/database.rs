//! SQLite databases other than the lock store: what the locks protect.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rusqlite::{Connection, Result};

/// Opens a database that many processes share, creating it if need be. Writers wait for each other as long as it takes.
///
/// # Errors
/// SQLite's.
pub fn open(path: &Path) -> Result<Connection> {
    let mut db = Connection::open(path)?;
    db.busy_handler(Some(pause))?;
    db.execute_batch("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;")?;
    Ok(db)
}

/// Sleeps a short time of random length: SQLite's own pauses grow with every try, and starve whoever waits longest.
fn pause(_tries: i32) -> bool {
    // A sequence for each process, started from its id, is as much chance as is needed.
    static DRAWS: AtomicU64 = AtomicU64::new(0);
    let draw = DRAWS.fetch_add(1, Ordering::Relaxed);
    let random = crate::chance::Chance::new(std::process::id().into(), draw).next();
    std::thread::sleep(Duration::from_micros(100 + random % 400));
    true
}
