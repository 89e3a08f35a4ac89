//! The tables of locks and of items, and the rights that its users need, as SQL.

use alloc::format;
use alloc::string::String;

use leasehold_core::{Resource, Token};

/// The name of the table in its schema.
pub const TABLE: &str = "leasehold";

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

/// A name in double quotes, taken as it is.
pub fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// The statement that makes the table, unless it is there.
///
/// Names are sorted by their bytes: an index in the order of the C library is silently wrong after an upgrade of that
/// library, and a lock that is not found is free. The free room in each page lets updates leave the index alone.
pub fn create(schema: &str) -> String {
    format!(
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
    trust      text,
    marker     text
) WITH (fillfactor = 70)",
        table = table(schema),
        longest = Resource::MAX_BYTES,
        max = Token::MAX,
    )
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

/// The least rights of a user that locks, given to `role`.
pub fn grant(schema: &str, role: &str) -> [String; 3] {
    [
        format!("GRANT USAGE ON SCHEMA {} TO {}", quoted(schema), quoted(role)),
        format!("GRANT SELECT, INSERT, UPDATE, DELETE ON {} TO {}", table(schema), quoted(role)),
        format!("GRANT SELECT, INSERT, UPDATE ON {} TO {}", items(schema), quoted(role)),
    ]
}
