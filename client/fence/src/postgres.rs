//! Guards for data in PostgreSQL.

use leasehold_core::Token;
use leasehold_core::fence::Rejected;

use crate::marks::{not_later, number, verdict};
use crate::sql::{no_row, quoted, quoted_name, row_is_gone, several_rows};
use crate::{Error, ErrorKind};

/// PostgreSQL cuts longer names, so that two of them could become one.
const LONGEST_NAME: usize = 63;

/// The beginning of a claim. One that were answered and lost in a crash would let through whom it has shut out. A check is
/// lost only together with the write that it let through.
const ON_DISK: &str = "WITH leasehold_on_disk AS MATERIALIZED (SELECT CASE WHEN current_setting('synchronous_commit') = \
                       'off' THEN set_config('synchronous_commit', 'on', true) END)";

/// Keeps the marks of guarded items in a table of its own, in the database of the data that they guard.
///
/// This is SQL text for the driver that you have, with or without async: `$1` is the item, `$2` the token as a bigint
/// (see [`PostgresGuard::parameters`]). Each statement answers the item's mark, and [`PostgresGuard::outcome`] says what
/// that means, so a claim and a check are one round trip each.
///
/// The mark of an item outlives the item: a stale holder can neither write to a row that a later holder has deleted nor
/// bring it back. Items are named by text; the natural name is the resource of the lock.
///
/// ```no_run
/// use leasehold_fence::PostgresGuard;
/// use postgres::{Client, NoTls};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let token: u64 = 34; // lease.token()
/// let mut db = Client::connect("host=localhost user=app", NoTls)?;
/// let guard = PostgresGuard::new();
/// db.batch_execute(guard.create_sql())?; // once, with your migrations
///
/// let (item, number) = PostgresGuard::parameters("invoice/42", token)?;
/// let mark = db.query_opt(guard.claim_sql(), &[&item, &number])?; // before the first read
/// PostgresGuard::outcome(item, token, mark.map(|row| row.get(0)))?;
/// let total: i64 = db.query_one("SELECT total FROM invoices WHERE id = 42", &[])?.get(0);
///
/// let mut change = db.transaction()?;
/// let mark = change.query_opt(guard.check_sql(), &[&item, &number])?; // with every write, before it
/// PostgresGuard::outcome(item, token, mark.map(|row| row.get(0)))?; // an error drops the transaction: rolled back
/// change.execute("UPDATE invoices SET total = $1 WHERE id = 42", &[&(total + 10)])?;
/// change.commit()?;
/// # Ok(())
/// # }
/// ```
///
/// # Transactions
/// A check holds the mark's row until its transaction ends, so a claim waits for the writes that were let through, and a
/// check waits for a claim that is under way. **Outside of a transaction a check is worth nothing**, and nobody notices.
/// A claim may be inside or outside; if it is rolled back, it has not happened. Where one transaction has several items,
/// take them in the same order everywhere, or PostgreSQL ends one of two transactions that wait for each other.
///
/// READ COMMITTED (the default), REPEATABLE READ and SERIALIZABLE are all right, and each was tested. In the latter two a
/// transaction whose snapshot is older than another's claim or check fails with the driver's error for SQLSTATE 40001:
/// run it again from the start, reads included. A claim has `synchronous_commit` on for its transaction. Replicas that lose commits in a failover lose marks with the data.
#[derive(Clone, Debug)]
pub struct PostgresGuard {
    create: String,
    claim: String,
    check: String,
    read: String,
}

impl PostgresGuard {
    /// Marks in the table `leasehold_fence`, looked for along the search path.
    pub fn new() -> Self {
        Self::of(&quoted_name("leasehold_fence"))
    }

    /// Marks in a table of this name, looked for along the search path. It is taken as it is, dots and capitals
    /// included.
    ///
    /// # Errors
    /// [`ErrorKind::Config`]: the name is empty, longer than 63 bytes, or has a NUL.
    pub fn with_table(name: &str) -> Result<Self, Error> {
        identifier("table", name).map(|table| Self::of(&table))
    }

    /// As [`PostgresGuard::with_table`], in a schema of this name, which has to exist.
    ///
    /// # Errors
    /// [`ErrorKind::Config`]: a name is empty, longer than 63 bytes, or has a NUL.
    pub fn in_schema(schema: &str, table: &str) -> Result<Self, Error> {
        Ok(Self::of(&format!("{}.{}", identifier("schema", schema)?, identifier("table", table)?)))
    }

    fn of(table: &str) -> Self {
        // COLLATE "C": an index in the order of the C library is silently wrong after an upgrade of that library, and a
        // mark that is not found does not guard.
        // GREATEST: a holder writes more than once. A refused token rewrites the mark as it was; that way the answer is
        // always the mark, locked, in one round trip. The row is written, not only locked, so that a transaction with
        // an older snapshot fails instead of reading around the write that was let through here.
        Self {
            create: format!(
                "CREATE TABLE IF NOT EXISTS {table} (item text COLLATE \"C\" NOT NULL PRIMARY KEY, \
                 fence bigint NOT NULL CHECK (fence BETWEEN 0 AND {max}))",
                max = Token::MAX
            ),
            claim: format!(
                "{ON_DISK} INSERT INTO {table} AS mark (item, fence) SELECT $1::text, $2::bigint FROM leasehold_on_disk \
                 ON CONFLICT (item) DO UPDATE SET fence = GREATEST(mark.fence, EXCLUDED.fence) RETURNING mark.fence"
            ),
            check: format!(
                "UPDATE {table} AS mark SET fence = GREATEST(mark.fence, $2::bigint) WHERE mark.item = $1::text \
                 RETURNING mark.fence"
            ),
            read: format!("SELECT mark.fence FROM {table} AS mark WHERE mark.item = $1::text"),
        }
    }

    /// Makes the table of marks unless it is there. No parameters, no answer.
    ///
    /// It belongs with your migrations: of two that run it at the same time, PostgreSQL may tell one that the name is
    /// taken, which is harmless.
    pub fn create_sql(&self) -> &str {
        &self.create
    }

    /// Makes the token (`$2`) the only one that is accepted for the item (`$1`) from now on, apart from higher ones. Run
    /// it with each new lease, **before** reading the item. One row with one bigint for [`PostgresGuard::outcome`].
    pub fn claim_sql(&self) -> &str {
        &self.claim
    }

    /// Checks if a write with the token (`$2`) to the item (`$1`) may happen. Run it in the transaction of the write,
    /// as a statement before the write; when the outcome is an error, roll back. At most one row with one bigint for
    /// [`PostgresGuard::outcome`].
    pub fn check_sql(&self) -> &str {
        &self.check
    }

    /// The highest token that has claimed the item (`$1`): one row with one bigint, or none.
    pub fn read_sql(&self) -> &str {
        &self.read
    }

    /// The parameters of a claim or a check as PostgreSQL takes them.
    ///
    /// # Errors
    /// [`ErrorKind::Config`] for a token above 2^53 - 1, and for an item with a NUL, which PostgreSQL cannot keep.
    pub fn parameters(item: &str, token: u64) -> Result<(&str, i64), Error> {
        let token = number(token).map_err(|error| error.on(item))?;
        if item.contains('\0') {
            return Err(Error::config("PostgreSQL cannot store NUL: name the item without it").on(item));
        }
        Ok((item, parameter(token)))
    }

    /// Judges the answer to a claim or a check: the bigint of its row, `None` where there was no row.
    ///
    /// # Errors
    /// [`ErrorKind::StaleToken`] when a later holder has claimed the item; the message has both tokens.
    /// [`ErrorKind::Config`] for a token above 2^53 - 1 and for an item that was never claimed.
    /// [`ErrorKind::StoreRefused`] for a mark that is no token.
    pub fn outcome(item: &str, token: u64, mark: Option<i64>) -> Result<(), Error> {
        number(token).and_then(|token| verdict(token, mark.ok_or(Rejected::Unclaimed)?)).map_err(|error| error.on(item))
    }
}

impl Default for PostgresGuard {
    fn default() -> Self {
        Self::new()
    }
}

/// Uses a column of your own table as the mark of each row.
///
/// The column has to be a bigint that nothing else writes; NULL means that the row was never claimed. The key has to
/// name one row. Never delete a guarded row, mark it as deleted instead: the mark goes with the row, and a stale holder
/// could insert it again. Where rows come and go, use [`PostgresGuard`]; what is said there about transactions holds
/// here.
///
/// `$1` is the key, of the type that your column has, `$2` the token as a bigint.
///
/// ```no_run
/// use leasehold_fence::PostgresRowGuard;
/// # use postgres::{Client, NoTls};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let token: u64 = 34; // lease.token()
/// # let mut db = Client::connect("host=localhost user=app", NoTls)?;
/// // CREATE TABLE jobs (id bigint PRIMARY KEY, state text, fence bigint)
/// let guard = PostgresRowGuard::new("jobs", "id", "fence")?;
/// let (key, number) = (7_i64, PostgresRowGuard::parameter(token)?);
///
/// let rows = db.query(guard.claim_sql(), &[&key, &number])?; // before the first read
/// let marks: Vec<Option<i64>> = rows.iter().map(|row| row.get(0)).collect();
/// PostgresRowGuard::claim_outcome(token, &marks)?;
///
/// // A write to the row itself can carry its check, and then needs no transaction.
/// let write = format!("UPDATE jobs SET state = 'done', {} WHERE id = $1 AND {}", guard.raise(2), guard.condition(2));
/// if db.execute(&write, &[&key, &number])? == 0 {
///     let rows = db.query(guard.read_sql(), &[&key])?;
///     let marks: Vec<Option<i64>> = rows.iter().map(|row| row.get(0)).collect();
///     return Err(PostgresRowGuard::refusal(token, &marks).into());
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct PostgresRowGuard {
    fence: String,
    claim: String,
    check: String,
    read: String,
}

impl PostgresRowGuard {
    /// Guards rows of `table`, found by `key_column` and marked in `fence_column`.
    ///
    /// # Errors
    /// [`ErrorKind::Config`]: a name is empty, longer than 63 bytes, or has a NUL.
    pub fn new(table: &str, key_column: &str, fence_column: &str) -> Result<Self, Error> {
        let (table, key) = (identifier("table", table)?, identifier("column", key_column)?);
        let fence = identifier("column", fence_column)?;
        let condition = condition(&fence, 2);
        // A mark that is not raised is written as it was, for the reasons of `PostgresGuard::of`.
        let update = |raise: &str, from: &str| {
            format!(
                "UPDATE {table} SET {fence} = CASE WHEN {raise} THEN $2::bigint ELSE {fence} END{from} WHERE {key} = $1 \
                 RETURNING {fence}::bigint"
            )
        };
        let claim = format!("$2::bigint BETWEEN 0 AND {} AND ({fence} IS NULL OR {condition})", Token::MAX);
        Ok(Self {
            claim: format!("{ON_DISK} {}", update(&claim, " FROM leasehold_on_disk")),
            check: update(&format!("$2::bigint <= {} AND {condition}", Token::MAX), ""),
            read: format!("SELECT {fence}::bigint FROM {table} WHERE {key} = $1"),
            fence,
        })
    }

    /// Makes the token (`$2`) the only one that is accepted for the row with this key (`$1`) from now on, apart from
    /// higher ones. Run it with each new lease, **before** reading the row. A bigint or NULL for each row with the key,
    /// for [`PostgresRowGuard::claim_outcome`].
    pub fn claim_sql(&self) -> &str {
        &self.claim
    }

    /// Checks if a write with the token (`$2`) to the row with this key (`$1`) may happen. Run it in the transaction of
    /// the write, as a statement before the write; when the outcome is an error, roll back. A bigint or NULL for each
    /// row with the key, for [`PostgresRowGuard::check_outcome`].
    pub fn check_sql(&self) -> &str {
        &self.check
    }

    /// The highest token that has claimed the row with this key (`$1`): a bigint or NULL for each row with the key.
    pub fn read_sql(&self) -> &str {
        &self.read
    }

    /// The assignment that raises the mark, for the SET list of an UPDATE of your own, where `$parameter` is the token.
    /// It needs [`PostgresRowGuard::condition`] in the same statement.
    pub fn raise(&self, parameter: usize) -> String {
        format!("{} = ${parameter}::bigint", self.fence)
    }

    /// The condition for an UPDATE of your own, to be added to its WHERE with AND, where `$parameter` is the token.
    /// When no row was updated, nothing was written, and [`PostgresRowGuard::refusal`] gives the reason.
    pub fn condition(&self, parameter: usize) -> String {
        condition(&self.fence, parameter)
    }

    /// The token as PostgreSQL takes it.
    ///
    /// # Errors
    /// [`ErrorKind::Config`] for a token above 2^53 - 1.
    pub fn parameter(token: u64) -> Result<i64, Error> {
        number(token).map(parameter)
    }

    /// Judges the answer to a claim, given the one column of all its rows.
    ///
    /// # Errors
    /// [`ErrorKind::StaleToken`] when a later holder has claimed the row; the message has both tokens.
    /// [`ErrorKind::Config`] for a token above 2^53 - 1, for a row that does not exist, and for a key that names several
    /// rows: then roll back. [`ErrorKind::StoreRefused`] for a mark that is no token.
    pub fn claim_outcome(token: u64, marks: &[Option<i64>]) -> Result<(), Error> {
        verdict(number(token)?, only(marks, no_row)?)
    }

    /// Judges the answer to a check, given the one column of all its rows.
    ///
    /// # Errors
    /// As [`PostgresRowGuard::claim_outcome`]; [`ErrorKind::StaleToken`] also for a row that does not exist, since a
    /// later holder may have deleted it; [`ErrorKind::Config`] also for a row that was never claimed.
    pub fn check_outcome(token: u64, marks: &[Option<i64>]) -> Result<(), Error> {
        verdict(number(token)?, only(marks, row_is_gone)?)
    }

    /// The reason why an UPDATE of your own with [`PostgresRowGuard::condition`] has updated no row, given the answer
    /// to [`PostgresRowGuard::read_sql`] after it. Always an error, of the kinds of
    /// [`PostgresRowGuard::check_outcome`]; [`ErrorKind::StoreUnavailable`] where the reason has passed by now.
    pub fn refusal(token: u64, marks: &[Option<i64>]) -> Error {
        let stands_against = || not_later(number(token)?, only(marks, row_is_gone)?);
        match stands_against() {
            Err(error) => error,
            Ok(_) => Error::new(
                ErrorKind::StoreUnavailable,
                "nothing was written, but not because of this mark: it has just changed, or something else is wrong",
            ),
        }
    }
}

fn condition(fence: &str, parameter: usize) -> String {
    format!("{fence} BETWEEN 0 AND ${parameter}::bigint")
}

fn only(marks: &[Option<i64>], missing: impl FnOnce() -> Error) -> Result<i64, Error> {
    match marks {
        [] => Err(missing()),
        [mark] => mark.ok_or_else(|| Rejected::Unclaimed.into()),
        several => Err(several_rows(several.len())),
    }
}

fn parameter(token: Token) -> i64 {
    i64::try_from(token.get()).unwrap_or(i64::MAX)
}

fn identifier(what: &str, name: &str) -> Result<String, Error> {
    if name.len() > LONGEST_NAME {
        return Err(Error::config(format!("{what} {name:?}: a name has at most {LONGEST_NAME} bytes")));
    }
    quoted(what, name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sql::in_the_guide;

    #[test]
    fn the_guide_has_these_statements() {
        let guard = PostgresGuard::new();
        for statement in [guard.create_sql(), guard.claim_sql(), guard.check_sql()] {
            assert!(in_the_guide(statement), "docs/fencing.md has no {statement}");
        }
    }
}
