//! The queues of waiters, in a table that is made with the first of them. What they mean is decided by the core's
//! [`queue`](leasehold_core::queue). A row that no honest client writes is no place.

use leasehold_core::queue::{ClientId, Ticket, UNSEEN, Waiter};
use leasehold_core::store::{BootId, StoreNow};
use leasehold_core::{LockId, Monotonic, Resource};
use rusqlite::{Connection, Row, params};

/// Places count upwards. Uptimes are of the boot that the row names; `joined_ms` is for people.
const CREATE: &str = "
CREATE TABLE IF NOT EXISTS waiters (
    resource    TEXT    NOT NULL,
    place       INTEGER NOT NULL,
    client      BLOB    NOT NULL,
    lock        INTEGER NOT NULL,
    joined_ms   INTEGER NOT NULL,
    boot        BLOB    NOT NULL,
    seen_ns     INTEGER NOT NULL,
    reserved_ns INTEGER,
    PRIMARY KEY (resource, place)
) STRICT, WITHOUT ROWID;
";
const EXISTS: &str = "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name = 'waiters'";
const READ: &str = "SELECT client, lock, joined_ms, boot, seen_ns, reserved_ns FROM waiters WHERE resource = ?1 \
                    ORDER BY place";
const REMOVE: &str = "DELETE FROM waiters WHERE resource = ?1 AND client = ?2 AND lock = ?3";
const CHANGE: &str =
    "UPDATE waiters SET seen_ns = ?4, reserved_ns = ?5 WHERE resource = ?1 AND client = ?2 AND lock = ?3";
const ADD: &str = "INSERT INTO waiters (resource, place, client, lock, joined_ms, boot, seen_ns, reserved_ns) VALUES \
                   (?1, (SELECT coalesce(max(place), 0) + 1 FROM waiters WHERE resource = ?1), ?2, ?3, ?4, ?5, ?6, ?7)";
const SEE: &str = "UPDATE waiters SET seen_ns = ?2 WHERE client = ?1";
const FORGET: &str = "DELETE FROM waiters WHERE boot <> ?1 OR seen_ns < ?2";

/// The queue of a resource, in its order.
pub(super) fn read(db: &Connection, resource: &Resource) -> rusqlite::Result<Vec<Waiter>> {
    if !exists(db)? {
        return Ok(Vec::new());
    }
    let mut statement = db.prepare_cached(READ)?;
    let rows = statement.query_map([resource.as_str()], |row| Ok(decode(row).ok()))?;
    rows.filter_map(Result::transpose).collect()
}

/// Turns one line into another, which has those that it keeps in the same order.
pub(super) fn write(db: &Connection, resource: &Resource, old: &[Waiter], new: &[Waiter]) -> rusqlite::Result<()> {
    let of = |queue: &[Waiter], ticket| queue.iter().find(|waiter| waiter.ticket == ticket).copied();
    for Waiter { ticket, .. } in old.iter().filter(|waiter| of(new, waiter.ticket).is_none()) {
        db.prepare_cached(REMOVE)?.execute(params![resource.as_str(), ticket.client.0, lock(*ticket)])?;
    }
    for waiter in new {
        let Waiter { ticket, joined_unix_ms, boot, seen, reserved_until } = *waiter;
        let reserved = reserved_until.map(|until| integer(until.ns()));
        match of(old, ticket) {
            Some(same) if same == *waiter => {}
            Some(_) => {
                let row = params![resource.as_str(), ticket.client.0, lock(ticket), integer(seen.ns()), reserved];
                db.prepare_cached(CHANGE)?.execute(row)?;
            }
            None => {
                db.execute_batch(CREATE)?;
                let (name, client, joined) = (resource.as_str(), ticket.client.0, integer(joined_unix_ms));
                let row = params![name, client, lock(ticket), joined, boot.0, integer(seen.ns()), reserved];
                db.prepare_cached(ADD)?.execute(row)?;
            }
        }
    }
    Ok(())
}

/// Notes that a client was seen, and forgets those that were not.
pub(super) fn see(db: &Connection, client: ClientId, now: &StoreNow) -> rusqlite::Result<()> {
    if !exists(db)? {
        return Ok(());
    }
    db.prepare_cached(SEE)?.execute(params![client.0, integer(now.uptime.ns())])?;
    let unseen = now.uptime.ns().saturating_sub(u64::try_from(UNSEEN.as_nanos()).unwrap_or(u64::MAX));
    db.prepare_cached(FORGET)?.execute(params![now.boot.0, integer(unseen)]).map(drop)
}

fn exists(db: &Connection) -> rusqlite::Result<bool> {
    db.prepare_cached(EXISTS)?.query_row([], |row| Ok(row.get::<_, i64>(0)? > 0))
}

fn decode(row: &Row<'_>) -> rusqlite::Result<Waiter> {
    let uptime = |ns: i64| Monotonic::from_ns(u64::try_from(ns).unwrap_or(0));
    Ok(Waiter {
        ticket: Ticket {
            client: ClientId(row.get("client")?),
            lock: LockId::new(row.get::<_, i64>("lock")?.cast_unsigned()),
        },
        joined_unix_ms: u64::try_from(row.get::<_, i64>("joined_ms")?).unwrap_or(0),
        boot: BootId(row.get("boot")?),
        seen: uptime(row.get("seen_ns")?),
        reserved_until: row.get::<_, Option<i64>>("reserved_ns")?.map(uptime),
    })
}

fn lock(ticket: Ticket) -> i64 {
    ticket.lock.get().cast_signed()
}

fn integer(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}
