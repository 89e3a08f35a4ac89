//! The tables of locks, of those who wait for them, and of items, and the rights that its users need, as SQL.

use alloc::format;
use alloc::string::String;

use leasehold_core::{Resource, Token};

use super::sql::BEFORE;

/// The name of the table in its schema.
pub const TABLE: &str = "leasehold";
/// The name of the table of clients that wait, in the same schema.
pub const WAITERS: &str = "leasehold_waiters";

/// The name of the table of items for compare-and-set, beside it.
pub const ITEMS: &str = "leasehold_items";

/// The table with its schema, quoted.
pub fn table(schema: &str) -> String {
    format!("{}.{}", quoted(schema), quoted(TABLE))
}

/// The table of items with its schema, quoted.
pub fn items(schema: &str) -> String {
    format!("{}.{}", quoted(schema), quoted(ITEMS))
}

/// The table of clients that wait with its schema, quoted.
pub fn waiters(schema: &str) -> String {
    format!("{}.{}", quoted(schema), quoted(WAITERS))
}

/// A name in double quotes, taken as it is.
pub fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// The statements that make the tables, unless they are there.
///
/// Names are sorted by their bytes: an index in the order of the C library is silently wrong after an upgrade of that
/// library, and a lock that is not found is free. The free room in each page lets updates leave the index alone.
///
/// The column of the owner holds the session as well: see [`session_text`](crate::session_text).
///
/// The second table only tells who is alive, so a crash may empty it.
pub fn create(schema: &str) -> [String; 2] {
    let locks = format!(
        "CREATE TABLE IF NOT EXISTS {table} (
    resource   text COLLATE \"C\" NOT NULL PRIMARY KEY CHECK (octet_length(resource) BETWEEN 1 AND {longest}),
    counter    bigint NOT NULL CHECK (counter BETWEEN 0 AND {max}),
    nonce      bytea NOT NULL CHECK (octet_length(nonce) = 16),
    seq        bigint NOT NULL CHECK (seq BETWEEN 0 AND 4294967295),
    released   boolean NOT NULL,
    ttl_us     bigint NOT NULL CHECK (ttl_us >= 0),
    since      timestamptz NOT NULL CHECK (isfinite(since)),
    expires_at timestamptz NOT NULL CHECK (isfinite(expires_at)),
    owner      text NOT NULL,
    data       bytea,
    done_nonce bytea,
    done_token bigint,
    done_owner text,
    done_at    timestamptz CHECK (isfinite(done_at)),
    done_until timestamptz CHECK (isfinite(done_until)),
    about      text,
    trust      text,
    marker     text,
    line       bytea
) WITH (fillfactor = 70)",
        table = table(schema),
        longest = Resource::MAX_BYTES,
        max = Token::MAX,
    );
    let waiters = format!(
        "CREATE UNLOGGED TABLE IF NOT EXISTS {} (
    client  bytea NOT NULL PRIMARY KEY CHECK (octet_length(client) = 16),
    seen_at timestamptz NOT NULL CHECK (isfinite(seen_at))
) WITH (fillfactor = 50)",
        waiters(schema)
    );
    [locks, waiters]
}

/// The statement that gives a table of an earlier version its columns for queues and for records of runs. It waits for transactions that use the table,
/// and others wait for it.
pub fn upgrade(schema: &str) -> String {
    let table = table(schema);
    format!("ALTER TABLE {table} ADD COLUMN IF NOT EXISTS line bytea, ADD COLUMN IF NOT EXISTS about text")
}

/// A statement that makes something, in one transaction with what has that on disk before it is answered: commands for the
/// simple protocol.
pub fn on_disk(statement: &str) -> String {
    format!("{BEFORE}; {statement}")
}

/// An expression that tells if there is all that queues need, and if this user may use it.
pub(super) fn has_queues(schema: &str) -> String {
    let (line, waiters) = (has_column(schema, "line"), regclass(&waiters(schema)));
    format!(
        "{line} AND coalesce(has_table_privilege({waiters}, 'SELECT') AND has_table_privilege({waiters}, 'INSERT') \
         AND has_table_privilege({waiters}, 'UPDATE'), false)"
    )
}

/// An expression that tells if the table of locks has this column, which tables of earlier versions may lack.
pub(super) fn has_column(schema: &str, name: &str) -> String {
    let locks = regclass(&table(schema));
    format!(
        "EXISTS (SELECT FROM pg_attribute AS a WHERE a.attrelid = {locks} AND a.attname = '{name}' AND NOT a.attisdropped)"
    )
}

fn regclass(table: &str) -> String {
    format!("to_regclass({})", literal(table))
}

/// The statement that makes the table of items for compare-and-set, unless it is there.
pub fn create_items(schema: &str) -> String {
    format!(
        "CREATE TABLE IF NOT EXISTS {items} (
    name      text COLLATE \"C\" NOT NULL PRIMARY KEY CHECK (octet_length(name) BETWEEN 1 AND {longest}),
    version   bigint NOT NULL CHECK (version BETWEEN 1 AND {max}),
    value     bytea NOT NULL,
    write_ids text NOT NULL
)",
        items = items(schema),
        longest = Resource::MAX_BYTES,
        max = Token::MAX,
    )
}

/// A text as a constant, whatever the settings of the session are.
fn literal(text: &str) -> String {
    format!("E'{}'", text.replace('\\', "\\\\").replace('\'', "''"))
}

/// The least rights of a user that locks, given to `role`.
pub fn grant(schema: &str, role: &str) -> [String; 4] {
    let all = |table: String| format!("GRANT SELECT, INSERT, UPDATE, DELETE ON {table} TO {}", quoted(role));
    [
        format!("GRANT USAGE ON SCHEMA {} TO {}", quoted(schema), quoted(role)),
        all(table(schema)),
        all(waiters(schema)),
        format!("GRANT SELECT, INSERT, UPDATE ON {} TO {}", items(schema), quoted(role)),
    ]
}
