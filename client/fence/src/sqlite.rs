//! Guards for data in SQLite.

use leasehold_core::Token;
use leasehold_core::fence::Rejected;

use crate::connection::{SqliteConnection, SqliteValue};
use crate::marks::{number, token_of};
use crate::sql::{no_row, quoted, quoted_name, row_is_gone, several_rows};
use crate::{Error, ErrorKind};

/// Keeps the marks of guarded items in a table of its own, in the database of the data that they guard.
///
/// The mark of an item outlives the item: a stale holder can neither write to a row that a later holder has deleted nor
/// bring it back. Items are named by text; the natural name is the resource of the lock.
///
/// ```
/// use leasehold_fence::SqliteGuard;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let (older, token) = (33, 34); // lease.token()
/// let mut db = rusqlite::Connection::open_in_memory()?;
/// # db.execute_batch("CREATE TABLE invoices (id PRIMARY KEY, total); INSERT INTO invoices VALUES (42, 100)")?;
/// let guard = SqliteGuard::new();
/// guard.create(&db)?;
///
/// guard.claim(&db, "invoice/42", token)?; // before the first read
/// let total: i64 = db.query_row("SELECT total FROM invoices WHERE id = 42", [], |row| row.get(0))?;
///
/// let change = db.transaction()?;
/// guard.check(&change, "invoice/42", token)?; // with every write
/// change.execute("UPDATE invoices SET total = ?1 WHERE id = 42", [total + 10])?;
/// change.commit()?;
///
/// // A holder of an older token is rejected.
/// let change = db.transaction()?;
/// let late = guard.check(&change, "invoice/42", older).unwrap_err();
/// assert_eq!(late.kind(), leasehold_fence::ErrorKind::StaleToken);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct SqliteGuard {
    create: String,
    claim: String,
    check: String,
    read: String,
}

impl SqliteGuard {
    /// Marks in the table `leasehold_fence`.
    pub fn new() -> Self {
        Self::of(&quoted_name("leasehold_fence"))
    }

    /// Marks in a table of this name.
    ///
    /// # Errors
    /// [`ErrorKind::Config`]: the name is empty or has a NUL.
    pub fn with_table(name: &str) -> Result<Self, Error> {
        quoted("table", name).map(|table| Self::of(&table))
    }

    fn of(table: &str) -> Self {
        // `<=`: a holder writes more than once. The type is looked at because text compares above all integers.
        Self {
            create: format!(
                "CREATE TABLE IF NOT EXISTS {table} \
                 (item TEXT NOT NULL PRIMARY KEY, fence INTEGER NOT NULL) STRICT, WITHOUT ROWID"
            ),
            claim: format!(
                "INSERT INTO {table} (item, fence) VALUES (?1, ?2) ON CONFLICT (item) DO UPDATE SET fence = ?2 \
                 WHERE typeof({table}.fence) = 'integer' AND {table}.fence <= ?2"
            ),
            check: format!(
                "UPDATE {table} SET fence = ?2 \
                 WHERE {table}.item = ?1 AND typeof({table}.fence) = 'integer' AND {table}.fence <= ?2"
            ),
            read: format!("SELECT {table}.fence FROM {table} WHERE {table}.item = ?1"),
        }
    }

    /// Makes the table of marks unless it is there.
    ///
    /// # Errors
    /// [`ErrorKind::StoreUnavailable`] when the database is busy, [`ErrorKind::StoreRefused`] for anything else that
    /// SQLite says.
    pub fn create(&self, db: &impl SqliteConnection) -> Result<(), Error> {
        db.execute(&self.create, &[]).map_err(failed(db)).map(drop)
    }

    /// Makes `token` the only one that is accepted from now on, apart from higher ones. Call it with each new lease,
    /// **before** reading the item. It may run inside a transaction or outside; if the transaction is rolled back, so is
    /// the claim.
    ///
    /// # Errors
    /// [`ErrorKind::StaleToken`] when a later holder has claimed the item; the message has both tokens.
    /// [`ErrorKind::Config`] for a token above 2^53 - 1. [`ErrorKind::StoreUnavailable`] when the database is busy,
    /// [`ErrorKind::StoreRefused`] for anything else that SQLite says.
    pub fn claim(&self, db: &impl SqliteConnection, item: &str, token: u64) -> Result<(), Error> {
        let token = number(token)?;
        raise(db, [&self.claim, &self.read], item.into(), token, |marks| Self::refusal(item, token.get(), marks))
    }

    /// Checks if a write with `token` may happen. Call it in the transaction of the write, before the write; when it
    /// fails, roll back.
    ///
    /// # Errors
    /// As [`SqliteGuard::claim`]; [`ErrorKind::Config`] also for an item that was never claimed, and outside of a
    /// transaction, where the answer would be worth nothing.
    pub fn check(&self, db: &impl SqliteConnection, item: &str, token: u64) -> Result<(), Error> {
        let token = number(token)?;
        within_transaction(db)?;
        raise(db, [&self.check, &self.read], item.into(), token, |marks| Self::refusal(item, token.get(), marks))
    }

    /// The highest token that has claimed the item; `None` where none has.
    ///
    /// # Errors
    /// [`ErrorKind::StoreUnavailable`] when the database is busy, [`ErrorKind::StoreRefused`] for anything else that
    /// SQLite says, and for a mark that is no token.
    pub fn high_water(&self, db: &impl SqliteConnection, item: &str) -> Result<Option<u64>, Error> {
        let marks = db.column(&self.read, &[item.into()]).map_err(failed(db))?;
        let Some(mark) = marks.first() else { return Ok(None) };
        let token = as_token(mark).ok_or_else(|| no_token(mark).on(item))?;
        Ok(Some(token.get()))
    }
}

/// For code that runs the statements itself: `?1` is the item, `?2` the token. A claim or check that changes no row was refused.
impl SqliteGuard {
    /// See [`SqliteGuard::create`].
    pub fn create_sql(&self) -> &str {
        &self.create
    }

    /// See [`SqliteGuard::claim`].
    pub fn claim_sql(&self) -> &str {
        &self.claim
    }

    /// See [`SqliteGuard::check`], also for the transaction that it needs.
    pub fn check_sql(&self) -> &str {
        &self.check
    }

    /// The mark of the item (`?1`): one row, or none.
    pub fn read_sql(&self) -> &str {
        &self.read
    }

    /// The reason why a claim or a check has changed no row, given the answer to [`SqliteGuard::read_sql`] after it.
    /// Always an error, of the kinds of [`SqliteGuard::check`].
    pub fn refusal(item: &str, token: u64, marks: &[SqliteValue]) -> Error {
        refusal(token, marks, Rejected::Unclaimed.into()).on(item)
    }
}

impl Default for SqliteGuard {
    fn default() -> Self {
        Self::new()
    }
}

/// Uses a column of your own table as the mark of each row.
///
/// The column has to be an INTEGER that nothing else writes; NULL means that the row was never claimed. The key has to
/// name one row. Never delete a guarded row, mark it as deleted instead: the mark goes with the row, and a stale holder
/// could insert it again. Where rows come and go, use [`SqliteGuard`].
///
/// ```
/// use leasehold_fence::SqliteRowGuard;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let token = 34; // lease.token()
/// let mut db = rusqlite::Connection::open_in_memory()?;
/// db.execute_batch("CREATE TABLE jobs (id INTEGER PRIMARY KEY, state TEXT, fence INTEGER)")?;
/// db.execute_batch("INSERT INTO jobs (id, state) VALUES (7, 'new')")?;
/// let guard = SqliteRowGuard::new("jobs", "id", "fence")?;
///
/// guard.claim(&db, 7, token)?; // before the first read
/// let change = db.transaction()?;
/// guard.check(&change, 7, token)?; // with every write
/// change.execute("UPDATE jobs SET state = 'done' WHERE id = 7", [])?;
/// change.commit()?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct SqliteRowGuard {
    claim: String,
    check: String,
    read: String,
}

impl SqliteRowGuard {
    /// Guards rows of `table`, found by `key_column` and marked in `fence_column`.
    ///
    /// # Errors
    /// [`ErrorKind::Config`]: a name is empty or has a NUL.
    pub fn new(table: &str, key_column: &str, fence_column: &str) -> Result<Self, Error> {
        let (table, key, fence) =
            (quoted("table", table)?, quoted("column", key_column)?, quoted("column", fence_column)?);
        // With the table's name before it, a mistyped column is an error; alone, SQLite would take it for a string.
        let raise = format!("UPDATE {table} SET {fence} = ?2 WHERE {table}.{key} = ?1");
        // Of several rows a stale token may be high enough for one, and the write that follows would reach them all.
        let alone = format!("(SELECT count(*) FROM {table} WHERE {table}.{key} = ?1) = 1");
        let not_later = format!("typeof({table}.{fence}) = 'integer' AND {table}.{fence} <= ?2");
        Ok(Self {
            claim: format!("{raise} AND ({table}.{fence} IS NULL OR ({not_later})) AND {alone}"),
            check: format!("{raise} AND {not_later} AND {alone}"),
            read: format!("SELECT {table}.{fence} FROM {table} WHERE {table}.{key} = ?1"),
        })
    }

    /// Makes `token` the only one that is accepted for the row from now on, apart from higher ones. Call it with each
    /// new lease, **before** reading the row. It may run inside a transaction or outside; if the transaction is rolled
    /// back, so is the claim.
    ///
    /// # Errors
    /// [`ErrorKind::StaleToken`] when a later holder has claimed the row; the message has both tokens.
    /// [`ErrorKind::Config`] for a token above 2^53 - 1, for a row that does not exist, and for a key that names several
    /// rows. [`ErrorKind::StoreUnavailable`] when the database is busy, [`ErrorKind::StoreRefused`] for anything else
    /// that SQLite says, and for a mark that is no token.
    pub fn claim(&self, db: &impl SqliteConnection, key: impl Into<SqliteValue>, token: u64) -> Result<(), Error> {
        raise(db, [&self.claim, &self.read], key.into(), number(token)?, |marks| Self::claim_refusal(token, marks))
    }

    /// Checks if a write with `token` to the row may happen. Call it in the transaction of the write, before the write;
    /// when it fails, roll back.
    ///
    /// # Errors
    /// As [`SqliteRowGuard::claim`]; [`ErrorKind::StaleToken`] also for a row that does not exist, since a later holder
    /// may have deleted it; [`ErrorKind::Config`] also for a row that was never claimed, and outside of a transaction.
    pub fn check(&self, db: &impl SqliteConnection, key: impl Into<SqliteValue>, token: u64) -> Result<(), Error> {
        let token = number(token)?;
        within_transaction(db)?;
        raise(db, [&self.check, &self.read], key.into(), token, |marks| Self::check_refusal(token.get(), marks))
    }
}

/// For code that runs the statements itself: `?1` is the key, `?2` the token. A claim or check that changes no row was refused.
impl SqliteRowGuard {
    /// See [`SqliteRowGuard::claim`].
    pub fn claim_sql(&self) -> &str {
        &self.claim
    }

    /// See [`SqliteRowGuard::check`], also for the transaction that it needs.
    pub fn check_sql(&self) -> &str {
        &self.check
    }

    /// The marks of the rows with this key (`?1`).
    pub fn read_sql(&self) -> &str {
        &self.read
    }

    /// The reason why a claim has changed no row, given the answer to [`SqliteRowGuard::read_sql`] after it. Always an
    /// error, of the kinds of [`SqliteRowGuard::claim`].
    pub fn claim_refusal(token: u64, marks: &[SqliteValue]) -> Error {
        refusal(token, marks, no_row())
    }

    /// The reason why a check has changed no row, given the answer to [`SqliteRowGuard::read_sql`] after it. Always an
    /// error, of the kinds of [`SqliteRowGuard::check`].
    pub fn check_refusal(token: u64, marks: &[SqliteValue]) -> Error {
        refusal(token, marks, row_is_gone())
    }
}

/// Runs a claim or a check. If it changes no row, reads the marks for the refusal.
fn raise(
    db: &impl SqliteConnection,
    [raise, read]: [&str; 2],
    key: SqliteValue,
    token: Token,
    refusal: impl FnOnce(&[SqliteValue]) -> Error,
) -> Result<(), Error> {
    let parameters = [key, i64::try_from(token.get()).unwrap_or(i64::MAX).into()];
    match db.execute(raise, &parameters).map_err(failed(db))? {
        0 => Err(refusal(&db.column(read, &parameters[..1]).map_err(failed(db))?)),
        _ => Ok(()),
    }
}

/// The reason why a mark was not raised.
fn refusal(token: u64, marks: &[SqliteValue], missing: Error) -> Error {
    let token = match number(token) {
        Ok(token) => token,
        Err(error) => return error,
    };
    match marks {
        [] => missing,
        [SqliteValue::Null] => Rejected::Unclaimed.into(),
        [mark] => match as_token(mark) {
            Some(high_water) if high_water > token => Rejected::Stale { token, high_water }.into(),
            // Outside of a transaction the row may have come only now.
            Some(_) => Error::new(ErrorKind::StoreUnavailable, "the mark has just changed; try again"),
            None => no_token(mark),
        },
        several => several_rows(several.len()),
    }
}

fn as_token(mark: &SqliteValue) -> Option<Token> {
    match mark {
        SqliteValue::Integer(mark) => token_of(*mark),
        SqliteValue::Null | SqliteValue::Real(_) | SqliteValue::Text(_) | SqliteValue::Blob(_) => None,
    }
}

fn no_token(mark: &SqliteValue) -> Error {
    Error::new(
        ErrorKind::StoreRefused,
        format!("the mark is not a token but {mark:?}; let only the guard write it, into a column declared as INTEGER"),
    )
}

/// Outside of one, another holder could claim between the check and the write.
fn within_transaction(db: &impl SqliteConnection) -> Result<(), Error> {
    if !db.is_in_transaction() {
        return Err(Error::config("check belongs in the transaction of the write: begin one first"));
    }
    Ok(())
}

/// Makes errors of errors of this connection's driver.
fn failed<D: SqliteConnection>(_: &D) -> impl Fn(D::Error) -> Error {
    |error| {
        if D::is_busy(&error) {
            let message = format!("the database is busy ({error}); roll back and try the transaction again");
            return Error::new(ErrorKind::StoreUnavailable, message);
        }
        Error::new(ErrorKind::StoreRefused, format!("the guard's table cannot be used: {error}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sql::in_the_guide;

    #[test]
    fn the_guide_has_these_statements() {
        let guard = SqliteGuard::new();
        for statement in [&guard.create, &guard.claim, &guard.check] {
            assert!(in_the_guide(statement), "docs/fencing.md has no {statement}");
        }
    }
}
