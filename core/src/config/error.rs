//! The error of a setting that does not fit.

use alloc::boxed::Box;
use core::fmt;
use core::time::Duration;

use super::span::Span;

/// Why a setting was refused. Every message names the value, the bound and the setting.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ConfigError {
    /// A resource without a name.
    EmptyResource,
    /// A key of a run without a name.
    EmptyKey,
    /// A text or payload above its bound.
    TooLong {
        /// Which setting.
        what: &'static str,
        /// Its size in bytes.
        bytes: usize,
        /// The most bytes it may have.
        max: usize,
    },
    /// A NUL, newline or other control character in a name or label.
    ControlCharacter {
        /// Which setting.
        what: &'static str,
        /// Byte offset of the character.
        at: usize,
        /// Its code point.
        code: u32,
    },
    /// A label of a session that is empty, too long, or has a character that not every store can keep in a name.
    SessionLabel {
        /// The label given; of a long one its beginning.
        given: Box<str>,
    },
    /// A duration below its bound.
    TooShort {
        /// Which setting.
        what: &'static str,
        /// The value given.
        value: Duration,
        /// The smallest allowed.
        min: Duration,
    },
    /// A duration above its bound.
    TooFar {
        /// Which setting.
        what: &'static str,
        /// The value given.
        value: Duration,
        /// The largest allowed.
        max: Duration,
    },
    /// A completion of finished work that would end before the lease of its run.
    KeepBelowTtl {
        /// How long the completion would stand.
        keep: Duration,
        /// The ttl of the lease.
        ttl: Duration,
    },
    /// A drift outside its bounds, in parts per million.
    Drift {
        /// The value given.
        ppm: u32,
        /// The smallest allowed.
        min: u32,
        /// The largest allowed.
        max: u32,
    },
    /// No node at all, or more than can be counted.
    Nodes {
        /// How many were given.
        count: usize,
        /// The most.
        max: usize,
    },
    /// A limit of zero, which would allow nothing.
    ZeroLimit {
        /// Which limit.
        what: &'static str,
    },
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::EmptyResource => f.write_str("the resource has no name; give it 1 to 1024 bytes"),
            Self::EmptyKey => f.write_str("the key is empty; name the occurrence of the job, such as its date"),
            Self::TooLong { what, bytes, max } => write!(f, "{what} has {bytes} bytes; at most {max} are allowed"),
            Self::ControlCharacter { what, at, code } => {
                write!(f, "{what} has the control character U+{code:04X} at byte {at}; names hold printable text only")
            }
            Self::SessionLabel { given } => write!(
                f,
                "session {given:?} does not fit: a session is named by 1 to 64 letters, digits and -_.:@/ characters, \
                 such as \"worker-7\""
            ),
            Self::TooShort { what, value, min } => {
                write!(f, "{what} is {}, but must be at least {}", Span(*value), Span(*min))
            }
            Self::TooFar { what, value, max } => {
                write!(f, "{what} is {}, but must be at most {}", Span(*value), Span(*max))
            }
            Self::KeepBelowTtl { keep, ttl } => write!(
                f,
                "the completion would be kept for {}, less than the ttl of {}: make keep or cooldown longer, or the \
                 ttl shorter",
                Span(*keep),
                Span(*ttl)
            ),
            Self::Drift { ppm, min, max } => write!(f, "drift of {ppm} ppm is outside {min} to {max} ppm"),
            Self::Nodes { count, max } => write!(f, "{count} nodes configured; there must be 1 to {max}"),
            Self::ZeroLimit { what } => write!(f, "{what} is 0, which would allow nothing; the smallest is 1"),
        }
    }
}

impl core::error::Error for ConfigError {}

/// # Errors
/// A value above the largest.
pub(crate) fn at_most(what: &'static str, value: Duration, max: Duration) -> Result<(), ConfigError> {
    if value > max { Err(ConfigError::TooFar { what, value, max }) } else { Ok(()) }
}
