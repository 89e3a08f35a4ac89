//! The table of locks, and the rights that its users need, as SQL.

use alloc::format;
use alloc::string::String;

use leasehold_core::{Resource, Token};

/// The name of the table in its schema.
pub const TABLE: &str = "leasehold";

/// The table with its schema, quoted.
pub fn table(schema: &str) -> String {
    format!("{}.{}", quoted(schema), quoted(TABLE))
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

/// The least rights of a user that locks, given to `role`.
pub fn grant(schema: &str, role: &str) -> [String; 2] {
    [
        format!("GRANT USAGE ON SCHEMA {} TO {}", quoted(schema), quoted(role)),
        format!("GRANT SELECT, INSERT, UPDATE, DELETE ON {} TO {}", table(schema), quoted(role)),
    ]
}
