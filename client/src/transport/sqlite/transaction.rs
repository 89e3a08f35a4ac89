//! One request, as one transaction.

use std::path::Path;

use leasehold_core::Monotonic;
use leasehold_core::member::Marker;
use leasehold_core::node::{NodeMemory, Served};
use leasehold_core::op::{LockOp, Op, Outcome, Refusal};
use leasehold_core::queue::{self, ClientId, Decision, Reserved, Ticket, Waiter, serve_in_queue};
use leasehold_core::session::none_is_told;
use leasehold_core::store::{BootId, StoreNow};
use leasehold_core::{LockId, Resource};

use super::connection::Connection;
use super::error::{Kind, SqliteError, commit_left_nothing};
use super::membership::{self, Remembered};
use super::{record, waiters as rows};
use crate::host::clock;

/// The reason why a request has no outcomes.
#[derive(Debug)]
pub(super) enum Stop {
    /// Certainly none of them happened.
    NotApplied(SqliteError),
    /// Some or all of them may have happened.
    Unknown(SqliteError),
}

/// The end of an operation.
#[derive(Debug)]
pub(super) struct Done {
    pub(super) outcome: Outcome,
    /// The ticket whose turn has come.
    pub(super) turn: Option<Ticket>,
    /// The place of the one who asked, among those who wait.
    pub(super) place: Option<u64>,
    /// The reservation for another that it has to wait for.
    pub(super) reserved: Option<Reserved>,
}

/// Performs operations of a client in order, all or none. Reads alone take no lock.
pub(super) fn run(
    connection: &Connection,
    path: &Path,
    (boot, client): (BootId, ClientId),
    ops: &[LockOp],
    until: Monotonic,
) -> Result<Vec<Done>, Stop> {
    if ops.iter().all(|op| matches!(op.op, Op::Read)) {
        return read(connection, boot, ops).map_err(|error| Stop::NotApplied(SqliteError::from(error).at(path)));
    }
    write(connection, path, until, || apply(connection, boot, client, ops))
}

/// Gives up the places of a client in the queue. Returns whose turns have come by it.
pub(super) fn leave(
    connection: &Connection,
    path: &Path,
    (boot, client): (BootId, ClientId),
    places: &[(Resource, LockId)],
    until: Monotonic,
) -> Result<Vec<(Resource, Ticket)>, Stop> {
    write(connection, path, until, || {
        let now = clock::store_now(boot);
        let mut left = Applied { done: Vec::new(), changed: false };
        for (resource, lock) in places {
            let old = rows::read(connection.db(), resource)?;
            let (new, turn) = queue::leave(&old, Ticket { client, lock: *lock }, &now);
            if let Some(new) = new {
                rows::write(connection.db(), resource, &old, &new)?;
                left.changed = true;
            }
            left.done.extend(turn.map(|turn| (resource.clone(), turn)));
        }
        Ok(left)
    })
}

/// Notes that a client was seen, so that it keeps its places.
pub(super) fn see(
    connection: &Connection,
    path: &Path,
    (boot, client): (BootId, ClientId),
    until: Monotonic,
) -> Result<(), Stop> {
    let see = || {
        rows::see(connection.db(), client, &clock::store_now(boot))?;
        Ok(Applied { done: Vec::new(), changed: true })
    };
    write::<()>(connection, path, until, see).map(drop)
}

/// Does work in a transaction that writes, if anything has changed.
pub(super) fn write<R>(
    connection: &Connection,
    path: &Path,
    until: Monotonic,
    work: impl FnOnce() -> Result<Applied<R>, SqliteError>,
) -> Result<Vec<R>, Stop> {
    let outcomes = match begin(connection, until).and_then(|()| work()) {
        Ok(Applied { done, changed: true }) => done,
        Ok(Applied { done, changed: false }) => {
            roll_back(connection);
            return Ok(done);
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

fn read(connection: &Connection, boot: BootId, ops: &[LockOp]) -> rusqlite::Result<Vec<Done>> {
    ops.iter()
        .map(|LockOp { lock, resource, op }| {
            let found = record::read(connection.db(), resource)?;
            let ticket = Ticket { client: ClientId([0; 16]), lock: *lock };
            let decided = decide(found, &Remembered::default(), (&[], ticket), op, &clock::store_now(boot));
            Ok(Done { outcome: decided.served.outcome, turn: None, place: None, reserved: None })
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

pub(super) struct Applied<R> {
    pub(super) done: Vec<R>,
    pub(super) changed: bool,
}

fn apply(
    connection: &Connection,
    boot: BootId,
    client: ClientId,
    ops: &[LockOp],
) -> Result<Applied<Done>, SqliteError> {
    // Read after the lock was taken: from here on no other record can change.
    let now = clock::store_now(boot);
    let mut applied = Applied { done: Vec::with_capacity(ops.len()), changed: false };
    for LockOp { lock, resource, op } in ops {
        let found = record::read(connection.db(), resource)?;
        let is_new = matches!(found, Ok(None));
        let remembered =
            if op.asks_a_quorum() { membership::read(connection.db(), resource)? } else { Ok(Remembered::default()) };
        let queue = if has_a_queue(op) { rows::read(connection.db(), resource)? } else { Vec::new() };
        let ticket = Ticket { client, lock: *lock };
        let Decision { served, queue: new_queue, turn } = match remembered {
            Ok(remembered) => decide(found, &remembered, (&queue, ticket), op, &now),
            Err(denial) => refused(Refusal::Denied(denial)),
        };
        if let Some(new_queue) = &new_queue {
            rows::write(connection.db(), resource, &queue, new_queue)?;
            applied.changed = true;
        }
        let place = queue::waiting(new_queue.as_ref().unwrap_or(&queue), &now).position(|at| at.ticket == ticket);
        let reserved = queue::reserved_before(new_queue.as_ref().unwrap_or(&queue), ticket, &now);
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
        applied.done.push(Done { outcome: served.outcome, turn, place: place.map(|place| place as u64 + 1), reserved });
    }
    Ok(applied)
}

/// Tells if a line decides about an operation, or changes with it.
fn has_a_queue(op: &Op) -> bool {
    matches!(op, Op::Acquire(_) | Op::Release(_) | Op::Finish(_)) && !op.asks_a_quorum()
}

fn decide(
    found: record::FoundRow,
    remembered: &Remembered,
    (queue, ticket): (&[Waiter], Ticket),
    op: &Op,
    now: &StoreNow,
) -> Decision {
    let memory = NodeMemory { marker: remembered.marker.as_ref(), trusted: remembered.trusted.as_ref(), run: None };
    match found {
        Ok(_) if matches!(op, Op::Tell(_)) => refused(Refusal::Denied(none_is_told())),
        Ok(record) => serve_in_queue(record.as_ref(), memory, queue, ticket, op, now),
        Err(denial) => refused(Refusal::Denied(denial)),
    }
}

fn refused(refusal: Refusal) -> Decision {
    let outcome = Outcome::NotApplied(refusal);
    Decision { served: Served { record: None, marker: None, trusted: None, outcome }, queue: None, turn: None }
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
