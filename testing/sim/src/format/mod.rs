//! What goes into a client and what comes out of it, as JSON: the format of golden vectors and conformance suites.
//! Simulator scripts (`crate::script`) describe whole worlds, with the same conventions.
//!
//! Every type mirrors one of the core under the same name. `From<&core>` writes it down and cannot fail; `to_core`
//! reads it back, and names the field that no core value can have. What the files look like is said for people in
//! `core/vectors/README.md`.

mod bytes;
mod events;
mod inputs;
mod member;
mod ops;
mod print;
mod settings;
mod vector;
mod wire;

use std::fmt;

pub(crate) use bytes::{array, to_hex};
pub use events::{CommandError, Event, Failure, LostReason, Output, Transmit};
pub use inputs::{Input, Reply};
pub use member::{Durability, Membership, Quorum};
pub use ops::{Applied, Denial, Fault, Holder, Holding, LockOp, Op, Outcome, Refusal, Seen};
pub use print::pretty;
pub use settings::{Config, Limits, LockOptions, NodeConfig, Renewal, Wait};
pub use vector::{Start, Step, Vector, difference};
pub use wire::{Access, Credentials, Dialect, Store, WireInput, WireOutput, WireRequest, WireStep, WireVector, Wired};

use leasehold_core::Monotonic;
use serde::de::{Deserialize, Deserializer, Error as _, Visitor};
use serde::ser::{Serialize, Serializer};
use std::time::Duration;

/// The version of the format that is written and understood here; stands as `format` in the head of every file.
pub const FORMAT: u32 = 1;

/// The largest integer in a file: every language holds it exactly.
pub const LARGEST: u64 = (1 << 53) - 1;

/// What is wrong in a file, and with which field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    path: String,
    message: String,
}

impl Error {
    /// About the value at hand; [`Within::within`] says where that stands.
    pub fn new(message: impl fmt::Display) -> Self {
        Self { path: String::new(), message: message.to_string() }
    }

    fn under(self, field: &str) -> Self {
        let dot = if self.path.is_empty() || self.path.starts_with('[') { "" } else { "." };
        Self { path: format!("{field}{dot}{}", self.path), ..self }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.path.is_empty() { f.write_str(&self.message) } else { write!(f, "{}: {}", self.path, self.message) }
    }
}

impl std::error::Error for Error {}

/// Says in which field an error is.
pub trait Within<T> {
    /// The same, with the error placed in `field`.
    ///
    /// # Errors
    /// The one at hand.
    fn within(self, field: &str) -> Result<T, Error>;
}

impl<T, E: Into<Error>> Within<T> for Result<T, E> {
    fn within(self, field: &str) -> Result<T, Error> {
        self.map_err(|error| error.into().under(field))
    }
}

impl From<leasehold_core::ConfigError> for Error {
    fn from(error: leasehold_core::ConfigError) -> Self {
        Self::new(error)
    }
}

/// Converts every element, and says which one cannot be.
fn each<T, U>(items: &[T], convert: impl Fn(&T) -> Result<U, Error>) -> Result<Vec<U>, Error> {
    items.iter().enumerate().map(|(at, item)| convert(item).within(&format!("[{at}]"))).collect()
}

fn integer(value: u64) -> Result<u64, Error> {
    if value <= LARGEST { Ok(value) } else { Err(Error::new(format!("{value} is above the largest, 2^53 - 1"))) }
}

fn token(value: u64) -> Result<leasehold_core::Token, Error> {
    let above = || Error::new(format!("a token of {value} is above the largest, 2^53 - 1"));
    leasehold_core::Token::new(value).ok_or_else(above)
}

fn duration(ns: u64) -> Result<Duration, Error> {
    integer(ns).map(Duration::from_nanos)
}

fn ns(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// An instant on the client's monotonic clock, in nanoseconds; `null` for one that never comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct At(Monotonic);

impl At {
    fn to_core(self) -> Result<Monotonic, Error> {
        if self.0 < Monotonic::FAR {
            integer(self.0.ns())?;
        }
        Ok(self.0)
    }

    /// The instant.
    pub const fn instant(self) -> Monotonic {
        self.0
    }
}

impl From<Monotonic> for At {
    fn from(at: Monotonic) -> Self {
        Self(at)
    }
}

impl Serialize for At {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.0 == Monotonic::FAR { serializer.serialize_unit() } else { serializer.serialize_u64(self.0.ns()) }
    }
}

impl<'de> Deserialize<'de> for At {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;

        impl Visitor<'_> for Reader {
            type Value = At;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an instant in nanoseconds, or null for never")
            }

            fn visit_unit<E: serde::de::Error>(self) -> Result<At, E> {
                Ok(At(Monotonic::FAR))
            }

            fn visit_u64<E: serde::de::Error>(self, ns: u64) -> Result<At, E> {
                Ok(At(Monotonic::from_ns(ns)))
            }
        }

        // Not an option: a field that is missing would read as null.
        deserializer.deserialize_any(Reader).map_err(D::Error::custom)
    }
}

/// The same names here and in the core, for enums without payload.
macro_rules! names {
    ($(#[$about:meta])* $name:ident = $core:ty { $($(#[$case_about:meta])* $case:ident,)* }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
        #[serde(rename_all = "snake_case")]
        pub enum $name { $($(#[$case_about])* $case,)* }

        impl From<$core> for $name {
            fn from(core: $core) -> Self {
                match core { $(<$core>::$case => Self::$case,)* }
            }
        }

        impl From<$name> for $core {
            fn from(name: $name) -> Self {
                match name { $($name::$case => Self::$case,)* }
            }
        }
    };
}
use names;
