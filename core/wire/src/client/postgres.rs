//! A table of PostgreSQL, whose statements the host has executed.

use leasehold_core::member::Durability;

use super::store::PostgresStore;
use crate::postgres::{Codec, Settings};

/// PostgreSQL in this program. Without the feature `postgres` there is no such value, and compilers leave out all that has one.
#[derive(Clone, Copy, Debug)]
pub(super) enum Offered {
    #[cfg(feature = "postgres")]
    Yes,
}

impl Offered {
    const fn here() -> Result<Self, &'static str> {
        #[cfg(feature = "postgres")]
        return Ok(Self::Yes);
        #[cfg(not(feature = "postgres"))]
        Err("this program is built without PostgreSQL: build it with the feature `postgres` of leasehold-wire")
    }
}

#[derive(Clone, Debug)]
pub(super) struct Postgres {
    pub(super) offered: Offered,
    pub(super) codec: Codec,
}

impl Postgres {
    pub(super) fn new(store: PostgresStore, durability: Durability) -> Result<Self, &'static str> {
        let offered = Offered::here()?;
        let PostgresStore { schema, notify } = store;
        if !is_schema(&schema) {
            return Err("a schema has 1 to 63 bytes and no control characters");
        }
        Ok(Self { offered, codec: Codec::new(&Settings { schema, notify, durability, queues: false }) })
    }
}

/// As long as PostgreSQL keeps it; a longer one it cuts.
fn is_schema(text: &str) -> bool {
    (1..=63).contains(&text.len()) && !text.chars().any(char::is_control)
}
