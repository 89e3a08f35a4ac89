//! Runs: the names under which work is done once.
//!
//! A run is a lease whose success is written down as a completion. Its resource is the name of the job and the key that tells
//! one occurrence of the job from the others: a date, an invoice, a batch.

use alloc::format;
use alloc::string::String;
use core::time::Duration;

use crate::config::error::at_most;
use crate::config::{ConfigError, MAX_KEEP};
use crate::ids::{Resource, check_text};
use crate::time::period_start;

/// The shortest period of a job that runs periodically: 1 s.
pub const MIN_PERIOD: Duration = Duration::from_secs(1);

impl Resource {
    /// The resource of one occurrence of a job: `name@key`. `@` and `%` within a part are written `%40` and `%25`, so
    /// that no two pairs share a resource. Without a key, which leaves `name@`, the job has one occurrence at a time.
    ///
    /// # Errors
    /// An empty name or key, one with a control character, or more than [`Resource::MAX_BYTES`] together.
    pub fn of_run(name: &str, key: Option<&str>) -> Result<Self, ConfigError> {
        if name.is_empty() {
            return Err(ConfigError::EmptyResource);
        }
        if key == Some("") {
            return Err(ConfigError::EmptyKey);
        }
        check_text("name", name, Self::MAX_BYTES)?;
        check_text("key", key.unwrap_or_default(), Self::MAX_BYTES)?;
        let escaped = |part: &str| part.replace('%', "%25").replace('@', "%40");
        let resource = format!("{}@{}", escaped(name), escaped(key.unwrap_or_default()));
        check_text("the name with its key", &resource, Self::MAX_BYTES)?;
        Self::new(&resource)
    }

    /// The name and the key of a run's resource; `None` for a resource that no run has.
    pub fn parts_of_run(&self) -> Option<(String, Option<String>)> {
        let (name, key) = self.as_str().split_once('@')?;
        let plain = |part: &str| part.replace("%40", "@").replace("%25", "%");
        let (name, key) = (plain(name), Some(plain(key)).filter(|key| !key.is_empty()));
        let is_of_run = Self::of_run(&name, key.as_deref()).is_ok_and(|resource| resource == *self);
        is_of_run.then_some((name, key))
    }

    /// Returns true if it may be the resource of a run, so that a completion may lie beside the record: it has an `@`.
    pub fn may_be_of_run(&self) -> bool {
        self.as_str().contains('@')
    }
}

/// The key of a job that runs once in every period: the start of the period in UTC, such as `2026-11-24T00:00:00Z`.
/// Periods begin `offset` after the start of 1970, a Thursday, and follow one another.
///
/// # Errors
/// A period below [`MIN_PERIOD`] or above [`MAX_KEEP`], or an offset that is not below the period.
pub fn period_key(unix_ms: u64, every: Duration, offset: Duration) -> Result<String, ConfigError> {
    check_periods(every, offset)?;
    let ms = |length: Duration| u64::try_from(length.as_millis()).unwrap_or(u64::MAX);
    Ok(utc(period_start(unix_ms, ms(every), ms(offset))))
}

pub(crate) fn check_periods(every: Duration, offset: Duration) -> Result<(), ConfigError> {
    if every < MIN_PERIOD {
        return Err(ConfigError::TooShort { what: "every", value: every, min: MIN_PERIOD });
    }
    at_most("every", every, MAX_KEEP)?;
    if offset >= every {
        return Err(ConfigError::TooFar { what: "offset (it must be below the period)", value: offset, max: every });
    }
    Ok(())
}

/// An instant as ISO 8601 writes it, with milliseconds only where there are some.
fn utc(unix_ms: u64) -> String {
    let (seconds, ms) = (unix_ms / 1000, unix_ms % 1000);
    let (year, month, day) = date(i64::try_from(seconds / 86_400).unwrap_or(i64::MAX));
    let (hour, minute, second) = (seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
    let fraction = if ms == 0 { String::new() } else { format!(".{ms:03}") };
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}{fraction}Z")
}

/// Year, month and day of a number of days since 1970. The year is taken to begin in March, so that the leap day is its last.
pub(crate) fn date(days: i64) -> (i64, u32, u32) {
    let days = days.saturating_add(719_468);
    let (era, day_of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let small = |number: i64| u32::try_from(number).unwrap_or_default();
    (era * 400 + year_of_era + i64::from(month <= 2), small(month), small(day))
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    const DAY: Duration = Duration::from_secs(86_400);

    fn name(name: &str, key: Option<&str>) -> String {
        Resource::of_run(name, key).unwrap().as_str().to_string()
    }

    #[test]
    fn resources_of_runs_tell_names_from_keys() {
        assert_eq!(name("nightly", Some("2026-11-24")), "nightly@2026-11-24");
        assert_eq!(name("nightly", None), "nightly@");
        assert!(
            Resource::new("nightly@").unwrap().may_be_of_run() && !Resource::new("nightly").unwrap().may_be_of_run()
        );
        assert_ne!(name("a@b", Some("c")), name("a", Some("b@c")));
        assert_ne!(name("a%40b", Some("c")), name("a@b", Some("c")));
        assert_eq!(name("a@b%", Some("%@")), "a%40b%25@%25%40");
    }

    #[test]
    fn resources_of_runs_are_taken_apart() {
        let parts = |resource: &str| Resource::new(resource).unwrap().parts_of_run();
        let run = |name: &str, key: Option<&str>| Some((name.to_string(), key.map(ToString::to_string)));
        assert_eq!(parts("nightly@2026-11-24"), run("nightly", Some("2026-11-24")));
        assert_eq!(parts("nightly@"), run("nightly", None));
        assert_eq!(parts("a%40b%25@%2540"), run("a@b%", Some("%40")));
        for lock in ["nightly", "@key", "a@b@c", "50%@key", "a@50%41"] {
            assert_eq!(parts(lock), None, "{lock}");
        }
    }

    #[test]
    fn odd_names_and_keys_are_refused() {
        for (name, key, words) in [
            ("", Some("s"), "no name"),
            ("n", Some(""), "key is empty"),
            ("n", Some("a\nb"), "key has the control character U+000A"),
            ("n\0", Some("s"), "name has the control character U+0000"),
        ] {
            let error = Resource::of_run(name, key).unwrap_err().to_string();
            assert!(error.contains(words), "{error}");
        }
        assert!(Resource::of_run(&"n".repeat(1_020), Some("abc")).is_ok());
        let error = Resource::of_run(&"n".repeat(1_020), Some("ab@")).unwrap_err().to_string();
        assert_eq!(error, "the name with its key has 1026 bytes; at most 1024 are allowed");
    }

    #[test]
    fn keys_are_the_starts_of_periods() {
        let at = |unix_ms, every, offset| period_key(unix_ms, every, offset).unwrap();
        let noon = 1_795_608_000_000;
        assert_eq!(at(noon, DAY, Duration::ZERO), "2026-11-25T00:00:00Z");
        assert_eq!(at(noon, DAY, DAY / 2), "2026-11-25T12:00:00Z");
        assert_eq!(at(noon - 1, DAY, DAY / 2), "2026-11-24T12:00:00Z");
        assert_eq!(at(noon, 7 * DAY, 4 * DAY), "2026-11-23T00:00:00Z", "a Monday");
        assert_eq!(at(noon + 1_700, Duration::from_millis(1_500), Duration::ZERO), "2026-11-25T12:00:01.500Z");
        assert_eq!(at(0, DAY, DAY / 2), "1970-01-01T12:00:00Z", "the first");
        assert_eq!(at(1_709_164_800_000, DAY, Duration::ZERO), "2024-02-29T00:00:00Z");
        assert_eq!(at(4_107_542_400_000, DAY, Duration::ZERO), "2100-03-01T00:00:00Z", "no leap year");
    }

    #[test]
    fn odd_periods_are_refused() {
        for (every, offset, words) in [
            (Duration::ZERO, Duration::ZERO, "every is 0 s, but must be at least 1 s"),
            (Duration::MAX, Duration::ZERO, "every"),
            (DAY, DAY, "offset (it must be below the period) is 86400 s (1 d)"),
        ] {
            let error = period_key(0, every, offset).unwrap_err().to_string();
            assert!(error.contains(words), "{error}");
        }
    }
}
