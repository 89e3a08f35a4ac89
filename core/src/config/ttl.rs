//! Durations of leases, and the error rate of clocks.

use core::time::Duration;

use super::error::{ConfigError, at_most};

/// How long a grant lasts without renewal: 100 ms to 24 h, 30 s by default.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ttl(Duration);

impl Ttl {
    /// The smallest: margins and one round trip must fit.
    pub const MIN: Duration = Duration::from_millis(100);
    /// The largest: a dead holder blocks the others for this long.
    pub const MAX: Duration = Duration::from_secs(24 * 3600);

    /// Rounds down to whole milliseconds, which is what stores count in.
    ///
    /// # Errors
    /// Outside [`Ttl::MIN`] to [`Ttl::MAX`].
    pub fn new(value: Duration) -> Result<Self, ConfigError> {
        if value < Self::MIN {
            return Err(ConfigError::TooShort { what: "ttl", value, min: Self::MIN });
        }
        at_most("ttl", value, Self::MAX)?;
        Ok(Self(Duration::new(value.as_secs(), value.subsec_millis() * 1_000_000)))
    }

    /// The duration.
    pub const fn get(self) -> Duration {
        self.0
    }
}

impl Default for Ttl {
    fn default() -> Self {
        Self(Duration::from_secs(30))
    }
}

/// The largest `ttl + lock_delay` that a record may carry; one above it was not written by an honest client.
pub const MAX_RECORD_TTL: Duration = Duration::from_secs(48 * 3600);

/// The longest that a completion of finished work may stand: 100 years.
pub const MAX_KEEP: Duration = Duration::from_secs(100 * 365 * 24 * 3600);

/// How far the rate of a clock may be off, in parts per million: 100 to 100,000, by default 10,000 (1%).
///
/// It must cover the slewing that time daemons do. Every client of a store should use the same value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Drift(u32);

impl Drift {
    const MIN: u32 = 100;
    const MAX: u32 = 100_000;

    /// # Errors
    /// Outside 100 to 100,000 ppm.
    pub const fn from_ppm(ppm: u32) -> Result<Self, ConfigError> {
        if ppm < Self::MIN || ppm > Self::MAX {
            return Err(ConfigError::Drift { ppm, min: Self::MIN, max: Self::MAX });
        }
        Ok(Self(ppm))
    }

    /// Parts per million.
    pub const fn ppm(self) -> u32 {
        self.0
    }
}

impl Default for Drift {
    fn default() -> Self {
        Self(10_000)
    }
}
