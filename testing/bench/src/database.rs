//! SQLite databases other than the lock store: what the locks protect.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rusqlite::{Connection, Result};
use rustix::time::{ClockId, clock_gettime};

/// Opens a database that many processes share, creating it if need be. Writers wait for each other as long as it takes.
///
/// # Errors
/// SQLite's.
pub fn open(path: &Path) -> Result<Connection> {
    let mut db = Connection::open(path)?;
    db.busy_handler(Some(|_tries| {
        pause();
        true
    }))?;
    db.execute_batch("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;")?;
    Ok(db)
}

/// Sleeps a short time of random length. SQLite's own pauses grow with every try, and starve the longest waiter.
pub fn pause() {
    // A sequence for each process, started from its id, is as much chance as is needed.
    static DRAWS: AtomicU64 = AtomicU64::new(0);
    let draw = DRAWS.fetch_add(1, Ordering::Relaxed);
    let random = crate::rng::Rng::new(std::process::id().into(), draw).draw();
    std::thread::sleep(Duration::from_micros(100 + random % 400));
}

/// The machine's monotonic clock, the same for all its processes.
pub fn now_ns() -> i64 {
    let at = clock_gettime(ClockId::Monotonic);
    at.tv_sec.saturating_mul(1_000_000_000).saturating_add(at.tv_nsec)
}
