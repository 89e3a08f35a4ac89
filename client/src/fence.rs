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
//! | rows in SQLite (feature `sqlite`) | [`SqliteGuard`], [`SqliteRowGuard`] |
//! | rows in PostgreSQL | [`PostgresGuard`], [`PostgresRowGuard`]: SQL for the driver that you have |
//! | keys in Redis | [`RedisGuard`]: Lua for the client library that you have |
//! | items in DynamoDB | [`DynamodbGuard`]: pieces of expressions for the client library that you have |
//! | items in Cosmos DB | [`CosmosGuard`]: pieces of patches for the client library that you have |
//! | objects in S3, R2, Azure Blob Storage, Google Cloud Storage | [`ObjectGuard`]: bodies for conditional writes with the client library that you have |
//!
//! In a database one kind keeps its marks in a table of its own, where they outlive your rows, and
//! the other uses a column of your table.

#![allow(clippy::disallowed_types, reason = "fences know SQLite")]

mod cosmos;
mod dynamodb;
mod guards;
mod marks;
mod objects;
mod postgres;
mod redis;
mod sql;
#[cfg(feature = "sqlite")]
mod sqlite;

pub use leasehold_core::Token;
pub use leasehold_core::fence::{Guard, Rejected};
#[cfg(feature = "sqlite")]
pub use rusqlite;

pub use self::cosmos::CosmosGuard;
pub use self::dynamodb::{DynamodbGuard, Shown};
pub use self::guards::Guards;
#[doc(hidden)]
pub use self::guards::Writing;
pub use self::objects::ObjectGuard;
pub use self::postgres::{PostgresGuard, PostgresRowGuard};
pub use self::redis::RedisGuard;
#[cfg(feature = "sqlite")]
pub use self::sqlite::{SqliteGuard, SqliteRowGuard};
