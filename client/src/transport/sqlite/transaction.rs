//! One request, as one transaction.

use std::path::Path;

use leasehold_core::Monotonic;
use leasehold_core::member::Marker;
use leasehold_core::node::{NodeMemory, Served, serve};
use leasehold_core::op::{LockOp, Op, Outcome, Refusal};
use leasehold_core::store::{BootId, StoreNow};

use super::connection::Connection;
use super::error::{Kind, SqliteError, commit_left_nothing};
use super::membership::{self, Remembered};
use super::record;
use crate::clock;

/// The reason why a request has no outcomes.
#[derive(Debug)]
pub(super) enum Stop {
    /// Certainly none of them happened.
    NotApplied(SqliteError),
    /// Some or all of them may have happened.
    Unknown(SqliteError),
}

/// Performs operations in order, all or none. Reads alone take no lock.
pub(super) fn run(
    connection: &Connection,
    path: &Path,
    boot: BootId,
    ops: &[LockOp],
    until: Monotonic,
) -> Result<Vec<Outcome>, Stop> {
    if ops.iter().all(|op| matches!(op.op, Op::Read)) {
        return read(connection, boot, ops).map_err(|error| Stop::NotApplied(SqliteError::from(error).at(path)));
    }
    let outcomes = match begin(connection, until).and_then(|()| apply(connection, boot, ops)) {
        Ok(Applied { outcomes, changed: true }) => outcomes,
        Ok(Applied { outcomes, changed: false }) => {
            roll_back(connection);
            return Ok(outcomes);
        }
        Err(error) => {
            roll_back(connection);
            return Err(Stop::NotApplied(error.at(path)));
        }
    };
    if let Err(error) = execute(connection, "COMMIT") {
        let nothing = commit_left_nothing(&error);
        roll_back(connection);
        let error = SqliteError::from(error).at(path);
        return Err(if nothing { Stop::NotApplied(error) } else { Stop::Unknown(error) });
    }
    // If the file was deleted meanwhile, this is the old file, and others lock in a new one.
    if !connection.is_at(path) {
        let detail = "the file was deleted or replaced while it was being written";
        return Err(Stop::Unknown(SqliteError::new(Kind::Io, detail).at(path)));
    }
    Ok(outcomes)
}

fn read(connection: &Connection, boot: BootId, ops: &[LockOp]) -> rusqlite::Result<Vec<Outcome>> {
    ops.iter()
        .map(|LockOp { resource, op, .. }| {
            let found = record::read(connection.db(), resource)?;
            Ok(decide(found, &Remembered::default(), op, &clock::store_now(boot)).outcome)
        })
        .collect()
}

/// Replaces the marker that was found; `false` if it has changed meanwhile.
pub(super) fn mark(
    connection: &Connection,
    path: &Path,
    found: &[u8],
    marker: Option<&Marker>,
    until: Monotonic,
) -> Result<bool, Stop> {
    let write = || -> Result<bool, SqliteError> {
        let text = membership::text(connection.db())?.unwrap_or_default();
        if text.as_bytes() != found {
            return Ok(false);
        }
        match marker {
            Some(marker) => membership::write_marker(connection.db(), marker)?,
            None => membership::remove_marker(connection.db())?,
        }
        Ok(true)
    };
    match begin(connection, until).and_then(|()| write()) {
        Ok(true) => {}
        Ok(false) => {
            roll_back(connection);
            return Ok(false);
        }
        Err(error) => {
            roll_back(connection);
            return Err(Stop::NotApplied(error.at(path)));
        }
    }
    execute(connection, "COMMIT").map(|()| true).map_err(|error| {
        roll_back(connection);
        Stop::Unknown(SqliteError::from(error).at(path))
    })
}

fn begin(connection: &Connection, until: Monotonic) -> Result<(), SqliteError> {
    execute(connection, "BEGIN IMMEDIATE")?;
    // A process that was stopped while it waited has been given up by now, so it must not write.
    if clock::monotonic() >= until {
        return Err(SqliteError::new(Kind::Busy, "its turn came after the deadline"));
    }
    Ok(())
}

struct Applied {
    outcomes: Vec<Outcome>,
    changed: bool,
}

fn apply(connection: &Connection, boot: BootId, ops: &[LockOp]) -> Result<Applied, SqliteError> {
    // Read after the lock was taken: from here on no other record can change.
    let now = clock::store_now(boot);
    let mut applied = Applied { outcomes: Vec::with_capacity(ops.len()), changed: false };
    for LockOp { resource, op, .. } in ops {
        let found = record::read(connection.db(), resource)?;
        let is_new = matches!(found, Ok(None));
        let remembered =
            if op.asks_a_quorum() { membership::read(connection.db(), resource)? } else { Ok(Remembered::default()) };
        let served = match remembered {
            Ok(remembered) => decide(found, &remembered, op, &now),
            Err(denial) => refused(Refusal::Denied(denial)),
        };
        if let Some(marker) = &served.marker {
            membership::write_marker(connection.db(), marker)?;
            applied.changed = true;
        }
        if let Some(stamp) = served.trusted {
            membership::write_trust(connection.db(), resource, stamp)?;
            applied.changed = true;
        }
        if let Some(record) = &served.record {
            record::write(connection.db(), resource, record, &now)?;
            applied.changed = true;
            if is_new {
                record::forget_neighbours(connection.db(), resource, &now)?;
            }
        }
        applied.outcomes.push(served.outcome);
    }
    Ok(applied)
}

fn decide(found: record::Found, remembered: &Remembered, op: &Op, now: &StoreNow) -> Served {
    let memory = NodeMemory { marker: remembered.marker.as_ref(), trusted: remembered.trusted.as_ref(), run: None };
    match found {
        Ok(record) => serve(record.as_ref(), memory, op, now),
        Err(denial) => refused(Refusal::Denied(denial)),
    }
}

fn refused(refusal: Refusal) -> Served {
    Served { record: None, marker: None, trusted: None, outcome: Outcome::NotApplied(refusal) }
}

fn execute(connection: &Connection, sql: &str) -> rusqlite::Result<()> {
    connection.db().prepare_cached(sql)?.execute([]).map(drop)
}

/// Rolls back. A connection that cannot even do that is not idle, and so not used again; closing it rolls back.
fn roll_back(connection: &Connection) {
    if !connection.is_idle() {
        let _ = execute(connection, "ROLLBACK");
    }
}
