//! Rows with any contents, for the fuzzers of `testing/fuzz`.

use leasehold_core::Resource;
use leasehold_core::op::Denial;
use leasehold_core::store::{Record, StoreNow};
use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{Connection, Error, params_from_iter};

use super::record;

/// The value of a column, of any type.
#[derive(Clone, Debug, PartialEq)]
#[expect(missing_docs, reason = "SQLite's own types")]
pub enum Cell {
    Null,
    Integer(i64),
    Real(f64),
    Text(Vec<u8>),
    Blob(Vec<u8>),
}

/// No `impl ToSql`: it would show a type of rusqlite in the public face.
fn bound(cell: &Cell) -> ToSqlOutput<'_> {
    ToSqlOutput::Borrowed(match cell {
        Cell::Null => ValueRef::Null,
        Cell::Integer(number) => ValueRef::Integer(*number),
        Cell::Real(fraction) => ValueRef::Real(*fraction),
        Cell::Text(text) => ValueRef::Text(text),
        Cell::Blob(bytes) => ValueRef::Blob(bytes),
    })
}

const LOOSE: &str = "CREATE TABLE leases (resource PRIMARY KEY, counter, touched_ms, nonce, seq, released, ttl_ns, boot, \
                     expires_ns, since_ms, owner, data, done_nonce, done_token, done_owner, done_ms, done_until)";
const INSERT: &str = "INSERT OR REPLACE INTO leases (resource, counter, touched_ms, nonce, seq, released, ttl_ns, boot, \
                      expires_ns, since_ms, owner, data) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)";

thread_local! {
    static TABLE: Result<Connection, Error> = Connection::open_in_memory().and_then(|db| {
        db.execute_batch(LOOSE)?;
        Ok(db)
    });
}

fn with_table<T>(use_: impl FnOnce(&Connection) -> Result<T, Error>) -> T {
    TABLE.with(|table| {
        let done = table.as_ref().map(use_);
        done.expect("invariant: memory can be opened").expect("invariant: the table takes everything")
    })
}

/// Reads a row with these columns, in the order of the table and without the name.
///
/// # Errors
/// The row is not valid.
pub fn read_back(resource: &Resource, cells: &[Cell; 11]) -> Result<Option<Record>, Denial> {
    with_table(|db| {
        let name = Cell::Text(resource.as_str().as_bytes().to_vec());
        db.prepare_cached(INSERT)?.execute(params_from_iter([&name].into_iter().chain(cells).map(bound)))?;
        record::read(db, resource)
    })
}

/// Writes a row and reads it back.
///
/// # Errors
/// The row is not valid.
pub fn written(resource: &Resource, record: &Record, now: &StoreNow) -> Result<Option<Record>, Denial> {
    with_table(|db| {
        record::write(db, resource, record, now)?;
        record::read(db, resource)
    })
}
