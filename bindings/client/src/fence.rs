//! Guards for the protected resource: refuse whoever holds an older token.
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
//! [`Guard`] is the rule itself, for whatever you keep in your own process. With the feature `sqlite` there are two for
//! SQLite: [`SqliteGuard`] keeps its marks in a table of its own, where they survive whatever happens to your rows, and
//! [`SqliteRowGuard`] uses a column of your table.

#[cfg(feature = "sqlite")]
mod sqlite;

pub use leasehold_core::Token;
pub use leasehold_core::fence::{Guard, Rejected};
#[cfg(feature = "sqlite")]
pub use rusqlite;

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
