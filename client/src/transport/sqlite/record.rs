//! A row. Every column is checked: any user who can write the file can write anything into it.

use std::time::Duration;

use leasehold_core::config::Ttl;
use leasehold_core::member::RETENTION;
use leasehold_core::op::{Applied, Denial, DenialKind, Op, Outcome};
use leasehold_core::store::{self, BootId, CompletionRecord, LeaseRecord, Record, StoreNow};
use leasehold_core::{Monotonic, Nonce, Owner, Payload, Resource, Seq, Token};
use leasehold_wire::listing::{PAGE, Page, Which};
use leasehold_wire::session_text;
use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{Connection, OptionalExtension, Row, params};

use super::abouts;

const READ: &str = "SELECT counter, nonce, seq, released, ttl_ns, boot, expires_ns, since_ms, owner, data, \
                    done_nonce, done_token, done_owner, done_ms, done_until FROM leases WHERE resource = ?1";
const READ_ALL: &str = "SELECT resource, counter, nonce, seq, released, ttl_ns, boot, expires_ns, since_ms, owner, \
                        data, done_nonce, done_token, done_owner, done_ms, done_until FROM leases ORDER BY resource";
const READ_PAGE: &str = "SELECT resource, counter, nonce, seq, released, ttl_ns, boot, expires_ns, since_ms, owner, \
                         data, done_nonce, done_token, done_owner, done_ms, done_until FROM leases \
                         WHERE resource >= ?1 AND (resource > ?1 OR ?1 = ?2) ORDER BY resource LIMIT ?3";
const WRITE: &str = "INSERT OR REPLACE INTO leases (resource, counter, touched_ms, nonce, seq, released, ttl_ns, boot, \
                     expires_ns, since_ms, owner, data, done_nonce, done_token, done_owner, done_ms, done_until) VALUES \
                     (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17)";

/// Finds a few neighbours of a new name, in a circle, whose counter no longer matters. Names that count upwards or have
/// a date are followed by their oldest relatives, so a few for each new name keep ever-new names from filling the disk.
/// A row of another boot that was not released is never certainly free.
const FORGET: &str = "DELETE FROM leases WHERE resource IN (
        SELECT resource FROM (SELECT resource FROM leases WHERE resource > ?1 ORDER BY resource LIMIT 4)
        UNION SELECT resource FROM (SELECT resource FROM leases ORDER BY resource LIMIT 4))
    AND touched_ms < ?2 AND (released = 1 OR (boot = ?3 AND expires_ns <= ?4))
    AND (done_until IS NULL OR done_until <= ?5)";

/// The columns of a row.
pub(super) type FoundRow = Result<Option<Record>, Denial>;

/// Reads the row of a resource. The outer error is SQLite's, the inner one that of the row.
pub(super) fn read(db: &Connection, resource: &Resource) -> rusqlite::Result<FoundRow> {
    let found = db.prepare_cached(READ)?.query_row([resource.as_str()], |row| Ok(decode(row))).optional()?;
    let mut found = found.transpose();
    if let Ok(Some(Record { completion: Some(completion), .. })) = &mut found {
        completion.about = abouts::read(db, resource.as_str(), &completion.nonce)?;
    }
    Ok(found)
}

/// Calls `each` with every row, and its name if it has one.
pub(super) fn read_all(db: &Connection, mut each: impl FnMut(&str, Result<Record, Denial>)) -> rusqlite::Result<()> {
    let mut statement = db.prepare(READ_ALL)?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let name = row.get_ref("resource")?;
        each(name.as_str().unwrap_or("?"), decode(row));
    }
    Ok(())
}

/// Reads a page of the names that begin with `prefix`, behind `after` if that is not empty. Rows that no honest client
/// writes are left out.
pub(super) fn read_page(
    db: &Connection,
    prefix: &str,
    after: &[u8],
    which: Which,
    now: &StoreNow,
) -> rusqlite::Result<Page> {
    let mut statement = db.prepare_cached(READ_PAGE)?;
    // A name need not be text, since anybody can write the file.
    let after = ToSqlOutput::Borrowed(ValueRef::Text(if after.is_empty() { prefix.as_bytes() } else { after }));
    let mut rows = statement.query((after, prefix, PAGE))?;
    let (mut page, mut looked_at) = (Page::default(), 0);
    while let Some(row) = rows.next()? {
        let ValueRef::Text(name) = row.get_ref("resource")? else { continue };
        if !name.starts_with(prefix.as_bytes()) {
            return Ok(Page { next: None, ..page });
        }
        looked_at += 1;
        page.next = Some(name.to_vec());
        let name = std::str::from_utf8(name).ok().and_then(|name| Resource::new(name).ok());
        if let (Some(name), Ok(record)) = (name, decode(row))
            && let Outcome::Applied(Applied::Read(seen)) = store::apply(Some(&record), &Op::Read, now).outcome
        {
            // The result of a run is in another table, and comes with a read.
            let is_whole = seen.done.is_none();
            page.records.extend(which.has(&name, &seen).then_some((name, is_whole.then_some(seen))));
        }
    }
    page.next = page.next.filter(|_| looked_at == PAGE);
    Ok(page)
}

/// Writes the row of a resource.
pub(super) fn write(db: &Connection, resource: &Resource, record: &Record, now: &StoreNow) -> rusqlite::Result<()> {
    // The core keeps the last lease as long as the counter, so there is one.
    let Some(lease) = &record.lease else { return Ok(()) };
    let completion = record.completion.as_ref();
    let row = params![
        resource.as_str(),
        integer(record.counter.get()),
        integer(now.unix_ms),
        lease.nonce.as_bytes(),
        lease.seq.get(),
        lease.released,
        integer(u64::try_from(lease.record_ttl.as_nanos()).unwrap_or(u64::MAX)),
        lease.boot.0,
        integer(lease.expires.ns()),
        integer(lease.since_unix_ms),
        session_text::write_owner(&lease.owner, lease.session.as_ref()),
        lease.data.as_ref().map(Payload::as_bytes),
        completion.map(|completion| completion.nonce.as_bytes()),
        completion.map(|completion| integer(completion.token.get())),
        completion.map(|completion| completion.owner.as_str()),
        completion.map(|completion| integer(completion.at_unix_ms)),
        completion.map(|completion| integer(completion.until_unix_ms)),
    ];
    db.prepare_cached(WRITE)?.execute(row)?;
    match completion {
        Some(completion) => abouts::write(db, resource.as_str(), completion.about.as_ref()),
        None => Ok(()),
    }
}

/// Forgets a few resources near a new one that have not been locked for a long time.
pub(super) fn forget_neighbours(db: &Connection, new: &Resource, now: &StoreNow) -> rusqlite::Result<usize> {
    let oldest = integer(now.unix_ms.saturating_sub(u64::try_from(RETENTION.as_millis()).unwrap_or(u64::MAX)));
    let (uptime, unix_ms) = (integer(now.uptime.ns()), integer(now.unix_ms));
    let forgotten = db.prepare_cached(FORGET)?.execute((new.as_str(), oldest, now.boot.0, uptime, unix_ms))?;
    abouts::forget_neighbours(db, new.as_str())?;
    Ok(forgotten)
}

fn integer(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

/// A row that cannot be read is an error and never "free": the lock may be held.
fn decode(row: &Row<'_>) -> Result<Record, Denial> {
    let record_ttl = Duration::from_nanos(number(row, "ttl_ns", u64::MAX)?);
    if record_ttl < Ttl::MIN {
        return Err(corrupt("ttl_ns", &format!("{record_ttl:?}, below the shortest lease, {:?}", Ttl::MIN)));
    }
    let counter = number(row, "counter", Token::MAX.get())?;
    let seq = number(row, "seq", u32::MAX.into())?;
    let holder = column(row, "owner")?.as_str().ok().and_then(session_text::read_owner);
    let (owner, session) = holder.ok_or_else(|| corrupt("owner", "text that is long or not printable"))?;
    let data = column(row, "data")?;
    let data = match data.as_blob_or_null() {
        Ok(bytes) => bytes.map(Payload::new).transpose().map_err(|error| corrupt("data", &error.to_string()))?,
        Err(_) => return Err(corrupt("data", &format!("{} instead of bytes", kind(data)))),
    };
    Ok(Record {
        counter: Token::new(counter).ok_or_else(|| corrupt("counter", "too large"))?,
        lease: Some(LeaseRecord {
            nonce: Nonce::from_bytes(bytes(row, "nonce")?),
            seq: Seq::new(u32::try_from(seq).map_err(|_| corrupt("seq", "too large"))?),
            released: number(row, "released", 1)? == 1,
            record_ttl,
            boot: BootId(bytes(row, "boot")?),
            expires: Monotonic::from_ns(number(row, "expires_ns", u64::MAX)?),
            since_unix_ms: number(row, "since_ms", u64::MAX)?,
            owner,
            data,
            session,
            // The table has no room for it: none is told here.
            told: 0,
        }),
        completion: if column(row, "done_until")? == ValueRef::Null { None } else { Some(completion(row)?) },
    })
}

fn completion(row: &Row<'_>) -> Result<CompletionRecord, Denial> {
    let owner = column(row, "done_owner")?.as_str().ok().and_then(|label| Owner::new(label).ok());
    Ok(CompletionRecord {
        nonce: Nonce::from_bytes(bytes(row, "done_nonce")?),
        token: Token::new(number(row, "done_token", Token::MAX.get())?)
            .ok_or_else(|| corrupt("done_token", "too large"))?,
        owner: owner.ok_or_else(|| corrupt("done_owner", "text that is long or not printable"))?,
        at_unix_ms: number(row, "done_ms", u64::MAX)?,
        until_unix_ms: number(row, "done_until", u64::MAX)?,
        about: None,
    })
}

fn column<'a>(row: &'a Row<'_>, name: &str) -> Result<ValueRef<'a>, Denial> {
    row.get_ref(name).map_err(|error| corrupt(name, &error.to_string()))
}

fn number(row: &Row<'_>, name: &str, max: u64) -> Result<u64, Denial> {
    let value = column(row, name)?;
    let Ok(integer) = value.as_i64() else {
        return Err(corrupt(name, &format!("{} instead of an integer", kind(value))));
    };
    match u64::try_from(integer) {
        Ok(number) if number <= max => Ok(number),
        Ok(_) => Err(corrupt(name, &format!("{integer}, above {max}"))),
        Err(_) => Err(corrupt(name, &format!("{integer}, below 0"))),
    }
}

fn bytes(row: &Row<'_>, name: &str) -> Result<[u8; 16], Denial> {
    let value = column(row, name)?;
    let Ok(bytes) = value.as_blob() else {
        return Err(corrupt(name, &format!("{} instead of 16 bytes", kind(value))));
    };
    bytes.try_into().map_err(|_| corrupt(name, &format!("{} bytes instead of 16", bytes.len())))
}

fn kind(value: ValueRef<'_>) -> &'static str {
    match value {
        ValueRef::Null => "nothing",
        ValueRef::Integer(_) => "an integer",
        ValueRef::Real(_) => "a fraction",
        ValueRef::Text(_) => "text",
        ValueRef::Blob(_) => "bytes",
    }
}

fn corrupt(column: &str, what: &str) -> Denial {
    Denial::new(
        DenialKind::CorruptRecord,
        &format!(
            "this record is damaged or was written by another program: column {column} holds {what}; if nobody holds \
             the lock, delete its row from the table \"leases\" by hand (tokens keep growing)"
        ),
    )
}
