//! Guards for the protected resource: they reject holders of older tokens.
//!
//! A lock alone cannot protect anything. Between a holder's last check and its write any time can pass: the process is
//! stopped, the machine sleeps, a packet waits. Meanwhile the lease runs out, somebody else is granted the lock with a
//! higher token, and then the old write arrives. Only the resource itself can refuse it, by comparing tokens in one
//! atomic step with the write.
//!
//! 1. **Claim** every item before you read any. The claim raises the item's mark to your token; a stale write that
//!    arrives later is refused, even if you have not written yet.
//! 2. **Check** with every write, in the same transaction. Equal tokens pass: a holder writes more than once.
//!
//! One mark belongs to one lock resource, since tokens of different resources cannot be compared. Within one lease a
//! mark cannot order the holder's own delayed writes; [`Guard::check_in_order`] can.
//!
//! | what is protected | guard |
//! |---|---|
//! | one item of your own process | [`Guard`], the rule itself |
//! | many items of your own process | [`Guards`], for any number of threads |
//! | rows in SQLite | [`SqliteGuard`], [`SqliteRowGuard`]: for connections of rusqlite 0.41 with the feature `rusqlite-0_41`, and for any other driver that you have |
//! | rows in PostgreSQL | [`PostgresGuard`], [`PostgresRowGuard`]: SQL for the driver that you have |
//! | keys in Redis | [`RedisGuard`]: Lua for the client library that you have |
//! | items in DynamoDB | [`DynamodbGuard`]: pieces of expressions for the client library that you have |
//! | items in Cosmos DB | [`CosmosGuard`]: pieces of patches for the client library that you have |
//! | objects in S3, R2, Azure Blob Storage, Google Cloud Storage | [`ObjectGuard`]: bodies for conditional writes with the client library that you have |
//!
//! In a database one kind keeps its marks in a table of its own, where they outlive your rows, and
//! the other uses a column of your table.
//!
//! The crate `leasehold` has all of this as `leasehold::fence`. `cargo add leasehold-fence --features rusqlite-0_41` gives it the
//! connections of rusqlite.

#![cfg_attr(not(test), warn(clippy::disallowed_methods, clippy::disallowed_types))]

mod connection;
mod cosmos;
mod dynamodb;
mod error;
mod guards;
mod marks;
mod objects;
mod postgres;
mod redis;
mod sql;
mod sqlite;
mod sync;

pub use leasehold_core::fence::{Guard, Rejected};
pub use leasehold_core::{ErrorKind, Token};

pub use connection::{SqliteConnection, SqliteValue};
pub use cosmos::CosmosGuard;
pub use dynamodb::{DynamodbGuard, Shown};
pub use error::Error;
pub use guards::Guards;
#[doc(hidden)]
pub use guards::Writing;
pub use objects::ObjectGuard;
pub use postgres::{PostgresGuard, PostgresRowGuard};
pub use redis::RedisGuard;
pub use sqlite::{SqliteGuard, SqliteRowGuard};
