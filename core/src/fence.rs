//! The check that the protected resource runs: it rejects writes with an older token.
//!
//! A lock alone cannot protect anything: between a holder's check and its write any time can pass. The resource itself
//! has to compare tokens, atomically with the write. A new holder **claims** before it reads, otherwise a stale write
//! could land between its read and its first write; then it **checks** with every write.

use core::fmt;

use crate::ids::Token;

/// The high-water mark of one guarded item.
///
/// Keep it beside the item and update both in one transaction. One mark belongs to one lock resource: tokens of
/// different resources are not comparable.
///
/// ```
/// use leasehold_core::{Token, fence::Guard};
///
/// let (old, new) = (Token::new(33).unwrap(), Token::new(34).unwrap());
/// let mut guard = Guard::default();
/// guard.claim(old)?;
/// guard.check(old)?;                       // a holder may write as often as it likes
/// guard.claim(new)?;                       // the next holder, before it reads
/// assert!(guard.check(old).is_err());      // the stale one wakes up
/// # Ok::<(), leasehold_core::fence::Rejected>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct Guard {
    mark: Option<Mark>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Mark {
    token: Token,
    write: u64,
}

/// The reason why a claim or a write was rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Rejected {
    /// A later holder has claimed the item.
    Stale {
        /// The token that was presented.
        token: Token,
        /// The highest token the item has seen.
        high_water: Token,
    },
    /// A write of the same lease with a higher number has already been accepted.
    OutOfOrder {
        /// The number that was presented.
        write: u64,
        /// The highest number accepted.
        last: u64,
    },
    /// Nobody has claimed the item; a holder must claim before it writes.
    Unclaimed,
}

impl fmt::Display for Rejected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stale { token, high_water } => {
                write!(f, "token {token} is stale: a later holder has claimed this item with {high_water}")
            }
            Self::OutOfOrder { write, last } => {
                write!(f, "write {write} of this lease is out of order: write {last} has already been accepted")
            }
            Self::Unclaimed => f.write_str("this item was never claimed; claim it before reading or writing"),
        }
    }
}

impl core::error::Error for Rejected {}

impl Guard {
    /// A mark as read from storage; `None` where the item was never claimed.
    pub const fn with_high_water(token: Option<Token>) -> Self {
        Self {
            mark: match token {
                Some(token) => Some(Mark { token, write: 0 }),
                None => None,
            },
        }
    }

    /// The highest token seen, to be written back to storage.
    pub fn high_water(&self) -> Option<Token> {
        self.mark.map(|mark| mark.token)
    }

    /// Makes `token` the only one accepted from now on, apart from higher ones. Call it before reading the item.
    ///
    /// # Errors
    /// [`Rejected::Stale`].
    pub fn claim(&mut self, token: Token) -> Result<(), Rejected> {
        match self.mark {
            Some(mark) if token < mark.token => Err(Rejected::Stale { token, high_water: mark.token }),
            Some(mark) if token == mark.token => Ok(()),
            Some(_) | None => {
                self.mark = Some(Mark { token, write: 0 });
                Ok(())
            }
        }
    }

    /// Checks a write with `token`. Equal tokens are accepted: a holder writes more than once.
    ///
    /// # Errors
    /// [`Rejected::Stale`], [`Rejected::Unclaimed`].
    pub fn check(&mut self, token: Token) -> Result<(), Rejected> {
        if self.mark.is_none() {
            return Err(Rejected::Unclaimed);
        }
        self.claim(token)
    }

    /// As [`Guard::check`], and also refuses delayed writes of the same lease: `write` must grow with each one.
    ///
    /// # Errors
    /// [`Rejected::Stale`], [`Rejected::Unclaimed`], [`Rejected::OutOfOrder`]. Numbers start at 1.
    pub fn check_in_order(&mut self, token: Token, write: u64) -> Result<(), Rejected> {
        self.check(token)?;
        match &mut self.mark {
            Some(mark) if write <= mark.write => Err(Rejected::OutOfOrder { write, last: mark.write }),
            Some(mark) => {
                mark.write = write;
                Ok(())
            }
            None => Err(Rejected::Unclaimed),
        }
    }
}
