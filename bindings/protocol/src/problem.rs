//! Why a call failed, in words.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::face::{Sink, Unfit, Write};
use crate::wit::client::Error;
use crate::wit::fence::Rejected;
use crate::wit::redis::Malformed;
use crate::wit::types::ConfigError;

/// Why a call failed.
pub enum Problem {
    /// An argument that is no such value.
    Unfit(Unfit),
    /// A setting or an argument that the client refuses.
    Config(ConfigError),
    /// A command that was not accepted.
    Command(Error),
    /// A token or a write that a guard refuses.
    Rejected(Rejected),
    /// A reply that is not valid RESP, or is too long.
    Malformed(Malformed),
    /// A bug of leasehold's: the object is of no further use.
    Broken(String),
}

/// A call whose panic, which would be a bug of leasehold's, ends here.
///
/// # Errors
/// Those of the call.
pub fn contained<T>(call: impl FnOnce() -> Result<T, Problem>) -> Result<T, Problem> {
    catch_unwind(AssertUnwindSafe(call)).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str).or(panic.downcast_ref::<&str>().copied());
        Err(Problem::Broken(format!("this is a bug of leasehold: {}", text.unwrap_or("a panic without a message"))))
    })
}

impl Problem {
    pub(crate) fn no_call(name: &str) -> Self {
        Self::Unfit(Unfit::ty(format_args!("there is no call {name:?}")))
    }

    /// The reason of a refusal as a value of a language, for commands and guards.
    pub fn reason<W: Sink>(self, to: &W) -> Option<W::Value> {
        match self {
            Self::Command(error) => Some(error.write(to)),
            Self::Rejected(rejected) => Some(rejected.write(to)),
            Self::Config(_) | Self::Unfit(_) | Self::Malformed(_) | Self::Broken(_) => None,
        }
    }
}

impl From<Unfit> for Problem {
    fn from(unfit: Unfit) -> Self {
        Self::Unfit(unfit)
    }
}

impl From<ConfigError> for Problem {
    fn from(error: ConfigError) -> Self {
        Self::Config(error)
    }
}

impl From<Error> for Problem {
    fn from(error: Error) -> Self {
        match error {
            // What was wrong with it is no different from what is wrong with settings.
            Error::Invalid(invalid) => Self::Config(invalid.error),
            error @ (Error::DuplicateLock
            | Error::UnknownLock
            | Error::TooManyLocks(_)
            | Error::AboveMaxTtl(_)
            | Error::AboveMaxKeep(_)
            | Error::NotARun
            | Error::Closed
            | Error::Other(_)) => Self::Command(error),
        }
    }
}

impl From<Rejected> for Problem {
    fn from(rejected: Rejected) -> Self {
        Self::Rejected(rejected)
    }
}

impl From<Malformed> for Problem {
    fn from(malformed: Malformed) -> Self {
        Self::Malformed(malformed)
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unfit(unfit) => unfit.fmt(f),
            Self::Config(error) => error.fmt(f),
            Self::Command(error) => error.fmt(f),
            Self::Rejected(rejected) => rejected.fmt(f),
            Self::Malformed(malformed) => f.write_str(&malformed.message),
            Self::Broken(message) => f.write_str(message),
        }
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::EmptyResource => f.write_str("the name of the resource is empty"),
            Self::EmptyKey => f.write_str("the key is empty; name the occurrence of the job, such as its date"),
            Self::TooLong(it) => write!(f, "{} has {} bytes; at most {} are allowed", it.what, it.bytes, it.max_bytes),
            Self::ControlCharacter(it) => {
                write!(f, "{} has the control character U+{:04X} at byte {}", it.what, it.code, it.at)
            }
            Self::SessionLabel(it) => write!(
                f,
                "session {:?} does not fit: a session is named by 1 to 64 letters, digits and -_.:@/ characters",
                it.given
            ),
            Self::TooShort(it) => {
                write!(f, "{} is {} ms, but must be at least {} ms", it.what, it.value_ms, it.min_ms)
            }
            Self::TooFar(it) => write!(f, "{} is {} ms, but must be at most {} ms", it.what, it.value_ms, it.max_ms),
            Self::KeepBelowTtl(it) => {
                write!(f, "the completion would be kept for {} ms, less than the ttl of {} ms", it.keep_ms, it.ttl_ms)
            }
            Self::Drift(it) => write!(f, "drift of {} ppm is outside {} to {} ppm", it.ppm, it.min_ppm, it.max_ppm),
            Self::Nodes(it) => write!(f, "{} nodes were given; there must be 1 to {}", it.count, it.max),
            Self::ZeroLimit(it) => write!(f, "a limit of 0 {} allows nothing", it.what),
            Self::TooFewBytes(it) => {
                write!(f, "{} has {} bytes; at least {} are needed", it.what, it.bytes, it.min_bytes)
            }
            Self::Stores(it) => write!(f, "{} stores were given for {} nodes", it.count, it.nodes),
            Self::Store(it) => write!(f, "store {}: {}", it.node, it.detail),
            Self::Other(it) => f.write_str(&it.message),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::DuplicateLock => f.write_str("the lock id is in use; take a new one for each acquisition"),
            Self::UnknownLock => f.write_str("this lock is not held: it was never acquired, was lost, or was released"),
            Self::TooManyLocks(it) => {
                write!(f, "this client holds or waits for {} locks, which is its limit", it.limit)
            }
            Self::AboveMaxTtl(it) => write!(
                f,
                "ttl + lock_delay is {} ms, but must be at most {} ms, the quorum's max_ttl",
                it.record_ttl_ms, it.max_ttl_ms
            ),
            Self::AboveMaxKeep(it) => {
                write!(f, "keep is {} ms, but must be at most {} ms in a quorum", it.keep_ms, it.max_keep_ms)
            }
            Self::NotARun => {
                f.write_str("this is a plain lock, which has no completion; release it, or acquire it as a run")
            }
            Self::Closed => f.write_str("the client was closed"),
            Self::Invalid(it) => it.error.fmt(f),
            Self::Other(it) => f.write_str(&it.message),
        }
    }
}

impl fmt::Display for Rejected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stale(it) => {
                write!(f, "token {} is stale: a later holder has claimed this item with {}", it.token, it.high_water)
            }
            Self::OutOfOrder(it) => write!(
                f,
                "write {} of this lease is out of order: write {} has already been accepted",
                it.write, it.last
            ),
            Self::Unclaimed => f.write_str("this item was never claimed; claim it before reading or writing"),
            Self::InvalidToken(it) => write!(f, "{} is not a token: tokens are 0 to {}", it.token, it.max),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_ends_here_and_says_what_it_was() {
        type Call = fn() -> Result<(), Problem>;
        let panics: [(Call, &str); 3] = [
            (|| panic!("number {}", 5), "number 5"),
            (|| panic!("plain"), "plain"),
            (|| std::panic::panic_any(5), "without a message"),
        ];
        for (panic, said) in panics {
            let Err(Problem::Broken(message)) = contained(panic) else { panic!("a panic is a problem") };
            assert!(message.contains(said), "{message}");
        }
        assert!(contained(|| Ok(())).is_ok());
    }
}
