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
//!
//! In a database one kind keeps its marks in a table of its own, where they outlive your rows, and
//! the other uses a column of your table.

mod dynamodb;
mod guards;
mod postgres;
mod redis;
mod sql;
#[cfg(feature = "sqlite")]
mod sqlite;

pub use leasehold_core::Token;
pub use leasehold_core::fence::{Guard, Rejected};
#[cfg(feature = "sqlite")]
pub use rusqlite;

pub use self::dynamodb::{DynamodbGuard, Shown};
pub use self::guards::Guards;
#[doc(hidden)]
pub use self::guards::Writing;
pub use self::postgres::{PostgresGuard, PostgresRowGuard};
pub use self::redis::RedisGuard;
#[cfg(feature = "sqlite")]
pub use self::sqlite::{SqliteGuard, SqliteRowGuard};
use crate::error::{Error, ErrorKind};

impl From<Rejected> for Error {
    fn from(rejected: Rejected) -> Self {
        let kind = match rejected {
            Rejected::Stale { .. } | Rejected::OutOfOrder { .. } => ErrorKind::StaleToken,
            Rejected::Unclaimed => ErrorKind::Config,
        };
        Self::new(kind, rejected.to_string())
    }
}

fn number(token: u64) -> Result<Token, Error> {
    Token::new(token)
        .ok_or_else(|| Error::config(format!("{token} is not a fencing token: the largest is {}", Token::MAX)))
}

/// A mark as a store answers it.
fn token_of(mark: i64) -> Option<Token> {
    u64::try_from(mark).ok().and_then(Token::new)
}

/// Compares a store's mark with `token`. Returns the mark, or an error if it is higher.
fn not_later(token: Token, mark: i64) -> Result<Token, Error> {
    match token_of(mark) {
        Some(high_water) if high_water > token => Err(Rejected::Stale { token, high_water }.into()),
        Some(mark) => Ok(mark),
        None => Err(no_token(&mark)),
    }
}

/// As [`not_later`], of a mark that was to be raised to `token` before it was answered.
fn verdict(token: Token, mark: i64) -> Result<(), Error> {
    let mark = not_later(token, mark)?;
    if mark < token {
        let advice = "it is kept where a token does not fit, or this is not an answer to the guard";
        let message = format!("the mark is {mark} and was not raised to {token}: {advice}");
        return Err(Error::new(ErrorKind::StoreRefused, message));
    }
    Ok(())
}

fn no_token(mark: &dyn std::fmt::Display) -> Error {
    Error::new(ErrorKind::StoreRefused, format!("the mark is not a token but {mark}; let only the guard write it"))
}
