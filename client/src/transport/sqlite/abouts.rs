//! Records of runs, beside the completions of their rows, in a table that is made with the first of them.
//!
//! Not in columns of the row: a client that does not know them replaces whole rows.

use leasehold_core::{About, Nonce};
use rusqlite::{Connection, OptionalExtension};

const CREATE: &str = "
CREATE TABLE IF NOT EXISTS abouts (
    resource TEXT NOT NULL PRIMARY KEY,
    about    BLOB NOT NULL
) STRICT, WITHOUT ROWID";

/// Removes those of a few neighbours whose row was forgotten.
const FORGET: &str = "DELETE FROM abouts WHERE resource IN (
        SELECT resource FROM (SELECT resource FROM abouts WHERE resource > ?1 ORDER BY resource LIMIT 4)
        UNION SELECT resource FROM (SELECT resource FROM abouts ORDER BY resource LIMIT 4))
    AND resource NOT IN (SELECT resource FROM leases)";

/// The record of the run of an attempt. What does not read as one of it is none.
pub(super) fn read(db: &Connection, resource: &str, of: &Nonce) -> rusqlite::Result<Option<About>> {
    if !has_table(db)? {
        return Ok(None);
    }
    let mut select = db.prepare_cached("SELECT about FROM abouts WHERE resource = ?1")?;
    let about = select
        .query_row([resource], |row| Ok(row.get_ref(0)?.as_blob().ok().and_then(|bytes| About::beside(bytes, of))));
    Ok(about.optional()?.flatten())
}

/// Replaces the record of a resource.
pub(super) fn write(db: &Connection, resource: &str, about: Option<&About>) -> rusqlite::Result<()> {
    if let Some(about) = about {
        db.execute_batch(CREATE)?;
        let insert = "INSERT OR REPLACE INTO abouts (resource, about) VALUES (?1, ?2)";
        db.prepare_cached(insert)?.execute((resource, about.as_bytes()))?;
    } else if has_table(db)? {
        db.prepare_cached("DELETE FROM abouts WHERE resource = ?1")?.execute([resource])?;
    }
    Ok(())
}

pub(super) fn forget_neighbours(db: &Connection, new: &str) -> rusqlite::Result<()> {
    if has_table(db)? {
        db.prepare_cached(FORGET)?.execute([new])?;
    }
    Ok(())
}

fn has_table(db: &Connection) -> rusqlite::Result<bool> {
    let tables = "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name = 'abouts'";
    Ok(db.prepare_cached(tables)?.query_row([], |row| row.get::<_, i64>(0))? == 1)
}
