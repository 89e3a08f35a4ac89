//! The form of inputs, outputs and settings in the golden vectors: feature `serde`.
//!
//! Most types derive their form. This module has the rest. Bytes are lower-case hexadecimal digits, durations and instants
//! are nanoseconds, and a value without fields is an empty object. What is read is checked as by the constructors.

use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use core::time::Duration;

use serde::de::{Deserialize, Deserializer, Error};
use serde::ser::{Serialize, SerializeMap, Serializer};

use crate::about::{About, ResultKind, RunResult};
use crate::config::{Config, Drift, LockOptions, Quorum, Ttl};
use crate::ids::{Nonce, Owner, Payload, Resource, SessionLabel, Token, Version};
use crate::member::{LossId, QuorumId, RETENTION};
use crate::op::{Denial, DenialKind, Fault, Outcome, TransportFault};
use crate::time::{Monotonic, ns};

/// Bytes as they are written.
struct Hex<'a>(&'a [u8]);

impl fmt::Display for Hex<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

fn bytes(text: &str) -> Result<Vec<u8>, String> {
    let digit = |byte: &u8| match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    };
    let pair = |pair: &[u8]| Some(digit(pair.first()?)? << 4 | digit(pair.get(1)?)?);
    let bytes = text.as_bytes().chunks(2).map(pair).collect::<Option<_>>();
    bytes.ok_or_else(|| format!("{text:?} is not an even number of lower-case hexadecimal digits"))
}

fn array<const N: usize>(text: &str) -> Result<[u8; N], String> {
    let bytes = bytes(text)?;
    let count = bytes.len();
    bytes.try_into().map_err(|_| format!("{count} bytes where there must be {N}"))
}

/// A result as it is written.
#[derive(serde::Serialize, serde::Deserialize)]
struct ResultForm {
    kind: ResultKind,
    bytes: String,
}

/// Implements the form of a type: how it is written, and how it is read, with an error that has a text.
macro_rules! form {
    ($($name:ty = $form:ty: |$value:ident| $write:expr, |$read:ident| $parse:expr;)*) => {$(
        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                let $value = self;
                $write.serialize(serializer)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let $read = <$form>::deserialize(deserializer)?;
                $parse.map_err(D::Error::custom)
            }
        }
    )*};
}

form! {
    Resource = String: |name| name.as_str(), |text| Self::new(&text);
    Owner = String: |owner| owner.as_str(), |text| Self::new(&text);
    SessionLabel = String: |label| label.as_str(), |text| Self::new(&text);
    Nonce = String: |nonce| format!("{}", Hex(nonce.as_bytes())), |text| array(&text).map(Self::from_bytes);
    Payload = String: |data| format!("{}", Hex(data.as_bytes())), |text| {
        bytes(&text).and_then(|bytes| Self::new(&bytes).map_err(|error| format!("{error}")))
    };
    About = String: |about| format!("{}", Hex(about.as_bytes())), |text| {
        bytes(&text).and_then(|bytes| Self::read(&bytes).ok_or(format!("no record of a run: {} bytes", bytes.len())))
    };
    RunResult = ResultForm: |result| {
        ResultForm { kind: result.kind(), bytes: format!("{}", Hex(result.as_bytes())) }
    }, |read| {
        let ResultForm { kind, bytes: text } = read;
        bytes(&text).and_then(|bytes| Self::read(kind, &bytes).ok_or(format!("no result: {} bytes", bytes.len())))
    };
    Version = String: |version| format!("{}", Hex(version.as_bytes())), |text| {
        bytes(&text).and_then(|bytes| Self::new(&bytes).ok_or(format!("a version of {} bytes", bytes.len())))
    };
    QuorumId = String: |id| format!("{}", Hex(&id.0)), |text| array(&text).map(Self);
    LossId = String: |loss| format!("{}", Hex(&loss.0)), |text| array(&text).map(Self);
    Token = u64: |token| token.get(), |value| {
        Self::new(value).ok_or(format!("a token of {value} is above the largest, 2^53 - 1"))
    };
    Monotonic = Option<u64>: |at| (*at < Self::FAR).then(|| at.ns()), |at| {
        Ok::<_, String>(at.map_or(Self::FAR, Self::from_ns))
    };
    Ttl = u64: |ttl| ns(ttl.get()), |value| Self::new(Duration::from_nanos(value));
    Drift = u32: |drift| drift.ppm(), |ppm| Self::from_ppm(ppm);
}

/// A refusal of what a constructor would round.
fn exactly<T: PartialEq, E: Error>(given: &T, made: T) -> Result<T, E> {
    if *given == made { Ok(made) } else { Err(E::custom("a setting that would be rounded")) }
}

impl Serialize for Config {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Self::serialize(self, serializer)
    }
}

impl<'de> Deserialize<'de> for Config {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let given = Self::deserialize(deserializer)?;
        let mut config = Self::new(given.nodes().to_vec()).map_err(D::Error::custom)?.with_drift(given.drift());
        if let Some(quorum) = given.quorum() {
            config = config.with_quorum(*quorum);
        }
        config = config.with_observed(given.observed());
        if let Some(session) = given.session() {
            config = config.with_session(session.clone());
        }
        let config = config
            .with_queues(given.queues())
            .with_request_timeout(given.request_timeout())
            .map_err(D::Error::custom)?;
        exactly(&given, config.with_limits(given.limits()).map_err(D::Error::custom)?)
    }
}

impl Serialize for Quorum {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Self::serialize(self, serializer)
    }
}

impl<'de> Deserialize<'de> for Quorum {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let given = Self::deserialize(deserializer)?;
        exactly(&given, Self::new(given.id(), given.max_ttl()).map_err(D::Error::custom)?)
    }
}

impl Serialize for LockOptions {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Self::serialize(self, serializer)
    }
}

impl<'de> Deserialize<'de> for LockOptions {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let given = Self::deserialize(deserializer)?;
        let mut builder = Self::builder().ttl(given.ttl().get()).wait(given.wait()).lock_delay(given.lock_delay());
        builder = match given.renew_every() {
            Some(every) => builder.renew_every(every),
            None => builder.no_renewal(),
        };
        if let Some(max_hold) = given.max_hold() {
            builder = builder.max_hold(max_hold);
        }
        if let Some(data) = given.data() {
            builder = builder.data(data.as_bytes());
        }
        if let Some(run) = given.run() {
            builder = builder.run(run);
        }
        builder = builder.fair(given.fair());
        exactly(&given, builder.owner(given.owner().as_str()).build().map_err(D::Error::custom)?)
    }
}

pub(crate) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

pub(crate) const fn retention() -> Duration {
    RETENTION
}

pub(crate) fn is_retention(value: &Duration) -> bool {
    *value == RETENTION
}

/// Bytes of a fixed number, for `serde(with)`.
pub mod hex {
    use super::*;

    /// Writes bytes.
    ///
    /// # Errors
    /// The serializer's.
    pub fn serialize<S: Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&Hex(bytes))
    }

    /// Reads bytes.
    ///
    /// # Errors
    /// The deserializer's; other than `N` bytes.
    pub fn deserialize<'de, const N: usize, D: Deserializer<'de>>(deserializer: D) -> Result<[u8; N], D::Error> {
        array(&String::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}

pub(crate) mod nanos {
    use super::*;

    pub(crate) fn serialize<S: Serializer>(value: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u64(ns(*value))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
        u64::deserialize(deserializer).map(Duration::from_nanos)
    }

    pub(crate) mod option {
        use super::*;

        pub(crate) fn serialize<S: Serializer>(value: &Option<Duration>, serializer: S) -> Result<S::Ok, S::Error> {
            value.map(ns).serialize(serializer)
        }

        pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Duration>, D::Error> {
            Ok(Option::deserialize(deserializer)?.map(Duration::from_nanos))
        }
    }
}

/// A variant without fields.
pub(crate) mod empty {
    use super::*;

    #[derive(serde::Deserialize)]
    struct Empty {}

    pub(crate) fn serialize<S: Serializer>(serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_map(Some(0))?.end()
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<(), D::Error> {
        Empty::deserialize(deserializer).map(|Empty {}| ())
    }
}

/// The duration of [`Wait::For`](crate::Wait::For) and [`Wait::Watch`](crate::Wait::Watch).
pub(crate) mod wait {
    use super::*;

    #[derive(serde::Serialize, serde::Deserialize)]
    struct For {
        #[serde(rename = "wait_ns", with = "nanos")]
        wait: Duration,
    }

    pub(crate) fn serialize<S: Serializer>(wait: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
        For { wait: *wait }.serialize(serializer)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
        For::deserialize(deserializer).map(|For { wait }| wait)
    }
}

/// The time between renewals.
pub(crate) mod renewal {
    use super::*;

    #[derive(serde::Serialize, serde::Deserialize)]
    #[serde(rename_all = "snake_case")]
    enum Renewal {
        Off {},
        Every {
            #[serde(rename = "interval_ns", with = "nanos")]
            interval: Duration,
        },
    }

    pub(crate) fn serialize<S: Serializer>(every: &Option<Duration>, serializer: S) -> Result<S::Ok, S::Error> {
        every.map_or(Renewal::Off {}, |interval| Renewal::Every { interval }).serialize(serializer)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Duration>, D::Error> {
        Ok(match Renewal::deserialize(deserializer)? {
            Renewal::Off {} => None,
            Renewal::Every { interval } => Some(interval),
        })
    }
}

/// The words of a fault or denial, bounded as by [`Denial::new`].
pub(crate) mod detail {
    use super::*;

    pub(crate) fn serialize<S: Serializer>(detail: &Arc<str>, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(detail)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Arc<str>, D::Error> {
        Ok(Denial::new(DenialKind::Other, &String::deserialize(deserializer)?).detail)
    }

    pub(crate) mod option {
        use super::*;

        pub(crate) fn serialize<S: Serializer>(detail: &Option<Arc<str>>, serializer: S) -> Result<S::Ok, S::Error> {
            detail.as_deref().serialize(serializer)
        }

        pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Arc<str>>, D::Error> {
            let bounded = |detail: String| Denial::new(DenialKind::Other, &detail).detail;
            Ok(Option::deserialize(deserializer)?.map(bounded))
        }
    }
}

/// The result of a request.
pub(crate) mod result {
    use super::*;

    #[derive(serde::Serialize, serde::Deserialize)]
    #[serde(rename_all = "snake_case")]
    enum Reply {
        Answered { outcomes: Vec<Outcome> },
        NotSent(Fault),
        Unknown(Fault),
    }

    pub(crate) fn serialize<S: Serializer>(
        result: &Result<Vec<Outcome>, TransportFault>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        let reply = match result.clone() {
            Ok(outcomes) => Reply::Answered { outcomes },
            Err(TransportFault::NotSent(fault)) => Reply::NotSent(fault),
            Err(TransportFault::Unknown(fault)) => Reply::Unknown(fault),
        };
        reply.serialize(serializer)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Result<Vec<Outcome>, TransportFault>, D::Error> {
        Ok(match Reply::deserialize(deserializer)? {
            Reply::Answered { outcomes } => Ok(outcomes),
            Reply::NotSent(fault) => Err(TransportFault::NotSent(fault)),
            Reply::Unknown(fault) => Err(TransportFault::Unknown(fault)),
        })
    }
}
