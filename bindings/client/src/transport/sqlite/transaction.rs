//! One request, as one transaction.

use std::path::Path;

use leasehold_core::Monotonic;
use leasehold_core::op::{LockOp, Op, Outcome, Refusal};
use leasehold_core::store::{self, BootId, StoreNow};

use super::connection::Connection;
use super::record;
use super::trouble::{Kind, Trouble, commit_left_nothing};
use crate::clock;

/// Why a request brought no outcomes.
#[derive(Debug)]
pub(super) enum Stop {
    /// Certainly none of it happened.
    NotApplied(Trouble),
    /// Some or all of it may have happened.
    Unknown(Trouble),
}

/// Performs operations in order, all or none. Reading alone takes no lock.
pub(super) fn run(
    connection: &Connection,
    path: &Path,
    boot: BootId,
    ops: &[LockOp],
    until: Monotonic,
) -> Result<Vec<Outcome>, Stop> {
    if ops.iter().all(|op| matches!(op.op, Op::Read)) {
        return read(connection, boot, ops).map_err(|error| Stop::NotApplied(Trouble::from(error).at(path)));
    }
    let outcomes = match begin(connection, until).and_then(|()| apply(connection, boot, ops)) {
        Ok(Applied { outcomes, changed: true }) => outcomes,
        Ok(Applied { outcomes, changed: false }) => {
            roll_back(connection);
            return Ok(outcomes);
        }
        Err(trouble) => {
            roll_back(connection);
            return Err(Stop::NotApplied(trouble.at(path)));
        }
    };
    if let Err(error) = execute(connection, "COMMIT") {
        let nothing = commit_left_nothing(&error);
        roll_back(connection);
        let trouble = Trouble::from(error).at(path);
        return Err(if nothing { Stop::NotApplied(trouble) } else { Stop::Unknown(trouble) });
    }
    // Whoever deletes the file in the middle leaves us alone with the old one while others lock in a new one.
    if !connection.is_at(path) {
        let detail = "the file was deleted or replaced while it was being written";
        return Err(Stop::Unknown(Trouble::new(Kind::Io, detail).at(path)));
    }
    Ok(outcomes)
}

fn read(connection: &Connection, boot: BootId, ops: &[LockOp]) -> rusqlite::Result<Vec<Outcome>> {
    ops.iter()
        .map(|LockOp { resource, op, .. }| {
            let found = record::read(connection.db(), resource)?;
            Ok(decide(found, op, &clock::store_now(boot)).outcome)
        })
        .collect()
}

fn begin(connection: &Connection, until: Monotonic) -> Result<(), Trouble> {
    execute(connection, "BEGIN IMMEDIATE")?;
    // A process that was stopped while it waited has been given up by now: what it would write, nobody expects.
    if clock::monotonic() >= until {
        return Err(Trouble::new(Kind::Busy, "its turn came after the deadline"));
    }
    Ok(())
}

struct Applied {
    outcomes: Vec<Outcome>,
    changed: bool,
}

fn apply(connection: &Connection, boot: BootId, ops: &[LockOp]) -> Result<Applied, Trouble> {
    // Read once the lock is had: nobody else's record can change from here on.
    let now = clock::store_now(boot);
    let mut applied = Applied { outcomes: Vec::with_capacity(ops.len()), changed: false };
    for LockOp { resource, op, .. } in ops {
        let found = record::read(connection.db(), resource)?;
        let is_new = matches!(found, Ok(None));
        let decision = decide(found, op, &now);
        if let Some(record) = &decision.write {
            record::write(connection.db(), resource, record, &now)?;
            applied.changed = true;
            if is_new {
                record::forget_neighbours(connection.db(), resource, &now)?;
            }
        }
        applied.outcomes.push(decision.outcome);
    }
    Ok(applied)
}

fn decide(found: record::Found, op: &Op, now: &StoreNow) -> store::Decision {
    match found {
        Ok(record) => store::apply(record.as_ref(), op, now),
        Err(denial) => store::Decision { write: None, outcome: Outcome::NotApplied(Refusal::Denied(denial)) },
    }
}

fn execute(connection: &Connection, sql: &str) -> rusqlite::Result<()> {
    connection.db().prepare_cached(sql)?.execute([]).map(drop)
}

/// A connection that cannot even roll back is not idle, and so not used again; closing it rolls back.
fn roll_back(connection: &Connection) {
    if !connection.is_idle() {
        let _ = execute(connection, "ROLLBACK");
    }
}
