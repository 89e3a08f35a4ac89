//! The schema of a database, and how to recognise it.

use rusqlite::Connection;

use super::error::{Kind, SqliteError};

/// Marks a SQLite file as ours: "LsHd".
const APPLICATION_ID: i32 = 0x4c73_4864;

/// The format of the tables. A later format that this version must not write has to rename the table as well: clients
/// that have the file open read this number only when they connect.
const FORMAT: i32 = 2;

/// The counter of tokens is beside the lease and not part of it: a release ends only the lease. Rows are sorted by
/// name, so that names that count upwards lie together. Lengths of time are nanoseconds; `expires_ns` is uptime in the
/// boot that the row names; the column of the owner holds the session as well; `since_ms` and `touched_ms` are for people and for forgetting. The columns of `done` are the last
/// completion of finished work, which ends by the wall clock.
const CREATE: &str = "
CREATE TABLE leases (
    resource   TEXT    NOT NULL PRIMARY KEY,
    counter    INTEGER NOT NULL,
    touched_ms INTEGER NOT NULL,
    nonce      BLOB    NOT NULL,
    seq        INTEGER NOT NULL,
    released   INTEGER NOT NULL,
    ttl_ns     INTEGER NOT NULL,
    boot       BLOB    NOT NULL,
    expires_ns INTEGER NOT NULL,
    since_ms   INTEGER NOT NULL,
    owner      TEXT    NOT NULL,
    data       BLOB,
    done_nonce BLOB,
    done_token INTEGER,
    done_owner TEXT,
    done_ms    INTEGER,
    done_until INTEGER
) STRICT, WITHOUT ROWID;
";

/// The contents of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Found {
    Empty,
    Ours,
}

/// Checks that the database is ours, with the settings that we need; initialises an empty one. Changes no other.
pub(super) fn adopt(db: &Connection) -> Result<(), SqliteError> {
    let found = within(db, "BEGIN", look)?;
    // Others may have changed it back, which SQLite allows while the file is not open elsewhere.
    let mode: String = db.query_row("PRAGMA journal_mode", [], |row| row.get(0))?;
    if mode != "wal" {
        let mode: String = db.query_row("PRAGMA journal_mode = WAL", [], |row| row.get(0))?;
        if mode != "wal" {
            return Err(SqliteError::new(
                Kind::Schema,
                format!(
                    "SQLite cannot keep a write-ahead log here (journal mode {mode}); name a file on a local file system"
                ),
            ));
        }
    }
    if found == Found::Empty {
        within(db, "BEGIN IMMEDIATE", |db| match look(db)? {
            Found::Empty => create(db),
            // Another process was faster.
            Found::Ours => Ok(()),
        })?;
    }
    Ok(())
}

/// The settings of one connection. A token that decreases after a power cut breaks a promise, so every commit reaches
/// the disk.
pub(super) fn configure(db: &Connection) -> Result<(), rusqlite::Error> {
    db.execute_batch(if cfg!(target_vendor = "apple") {
        "PRAGMA synchronous = FULL; PRAGMA trusted_schema = OFF; PRAGMA fullfsync = ON; \
         PRAGMA checkpoint_fullfsync = ON;"
    } else {
        "PRAGMA synchronous = FULL; PRAGMA trusted_schema = OFF;"
    })
}

fn create(db: &Connection) -> Result<(), SqliteError> {
    db.execute_batch(CREATE)?;
    db.pragma_update(None, "application_id", APPLICATION_ID)?;
    db.pragma_update(None, "user_version", FORMAT)?;
    Ok(())
}

fn look(db: &Connection) -> Result<Found, SqliteError> {
    let number = |pragma| db.pragma_query_value(None, pragma, |row| row.get::<_, i32>(0));
    let (application, format) = (number("application_id")?, number("user_version")?);
    let (objects, tables, triggers): (i64, i64, i64) = db.query_row(
        "SELECT count(*), count(CASE WHEN type = 'table' AND name = 'leases' THEN 1 END),
                count(CASE WHEN type = 'trigger' AND tbl_name = 'leases' THEN 1 END)
         FROM sqlite_schema",
        [],
        |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)),
    )?;
    match (application, format) {
        (0, 0) if objects == 0 => Ok(Found::Empty),
        (APPLICATION_ID, FORMAT) if tables == 1 && triggers == 0 => Ok(Found::Ours),
        (APPLICATION_ID, FORMAT) => Err(SqliteError::new(
            Kind::Schema,
            "the tables are not those that leasehold made: the table \"leases\" is missing or has a trigger; name \
             another file",
        )),
        (APPLICATION_ID, newer) if newer > FORMAT => Err(SqliteError::new(
            Kind::Schema,
            format!(
                "the database was made by a newer version of leasehold (format {newer}; this version knows \
                 {FORMAT}); update this program, or name another file"
            ),
        )),
        (APPLICATION_ID, 1) => Err(SqliteError::new(
            Kind::Schema,
            "the database was made before version 0.1.0 was released, and has no room for runs; name another file",
        )),
        (APPLICATION_ID, other) => Err(SqliteError::new(
            Kind::Schema,
            format!(
                "the database says that it has format {other}, which no version of leasehold made; name another file"
            ),
        )),
        _ => Err(SqliteError::new(
            Kind::Schema,
            "the database belongs to another application; locks need a file of their own, so name another one",
        )),
    }
}

/// Runs `work` in a transaction of the given kind.
fn within<R>(
    db: &Connection,
    begin: &str,
    work: impl FnOnce(&Connection) -> Result<R, SqliteError>,
) -> Result<R, SqliteError> {
    db.execute_batch(begin)?;
    let done = work(db).and_then(|done| Ok(db.execute_batch("COMMIT").map(|()| done)?));
    if done.is_err() && !db.is_autocommit() {
        let _ = db.execute_batch("ROLLBACK");
    }
    done
}
