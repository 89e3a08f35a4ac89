//! The quorum membership of the file, in tables that are made when it becomes a node.

use leasehold_core::Resource;
use leasehold_core::member::{LossId, Marker};
use leasehold_core::op::{Denial, DenialKind};
use rusqlite::{Connection, OptionalExtension};

const CREATE: &str = "
CREATE TABLE IF NOT EXISTS quorum (
    one    INTEGER NOT NULL PRIMARY KEY CHECK (one = 1),
    marker TEXT    NOT NULL
) STRICT;
CREATE TABLE IF NOT EXISTS quorum_trust (
    resource TEXT NOT NULL PRIMARY KEY,
    stamp    BLOB NOT NULL
) STRICT, WITHOUT ROWID;
";

/// The membership that the file remembers.
#[derive(Debug, Default)]
pub(super) struct Remembered {
    pub(super) marker: Option<Marker>,
    /// The loss since which the counter of the resource was raised.
    pub(super) trusted: Option<LossId>,
}

/// Reads the membership. The outer error is SQLite's, the inner one that of the contents.
pub(super) fn read(db: &Connection, resource: &Resource) -> rusqlite::Result<Result<Remembered, Denial>> {
    let Some(text) = text(db)? else { return Ok(Ok(Remembered::default())) };
    let Some(marker) = Marker::parse(text.as_bytes()) else { return Ok(Err(unknown_form())) };
    let mut trust = db.prepare_cached("SELECT stamp FROM quorum_trust WHERE resource = ?1")?;
    let trusted = trust.query_row([resource.as_str()], |row| row.get::<_, Vec<u8>>(0)).optional()?;
    let trusted = trusted.and_then(|stamp| stamp.try_into().ok()).map(LossId);
    Ok(Ok(Remembered { marker: Some(marker), trusted }))
}

/// The marker as it is stored; `None` also where the tables do not exist.
pub(super) fn text(db: &Connection) -> rusqlite::Result<Option<String>> {
    let tables = "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name = 'quorum'";
    if db.prepare_cached(tables)?.query_row([], |row| row.get::<_, i64>(0))? == 0 {
        return Ok(None);
    }
    db.prepare_cached("SELECT marker FROM quorum WHERE one = 1")?.query_row([], |row| row.get(0)).optional()
}

/// Writes the marker, and forgets trust that was gained after an earlier loss.
pub(super) fn write_marker(db: &Connection, marker: &Marker) -> rusqlite::Result<()> {
    db.execute_batch(CREATE)?;
    db.prepare_cached("INSERT OR REPLACE INTO quorum (one, marker) VALUES (1, ?1)")?.execute([marker.text()])?;
    db.prepare_cached("DELETE FROM quorum_trust WHERE stamp <> ?1")?.execute([marker.stamp.0]).map(drop)
}

/// Removes the marker of a file that has one.
pub(super) fn remove_marker(db: &Connection) -> rusqlite::Result<()> {
    db.prepare_cached("DELETE FROM quorum")?.execute([]).map(drop)
}

pub(super) fn write_trust(db: &Connection, resource: &Resource, stamp: LossId) -> rusqlite::Result<()> {
    let insert = "INSERT OR REPLACE INTO quorum_trust (resource, stamp) VALUES (?1, ?2)";
    db.prepare_cached(insert)?.execute((resource.as_str(), stamp.0)).map(drop)
}

fn unknown_form() -> Denial {
    let detail = "the table \"quorum\" holds a membership that this version does not know; update leasehold, or mark \
                  the nodes again with `leasehold quorum init --force` while nobody holds a lock";
    Denial::new(DenialKind::Membership, detail)
}
