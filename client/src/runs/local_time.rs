//! Times of a zone: the offsets of its clocks, of which the core makes the keys.

use std::time::Duration;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use leasehold_core::schedule::{Due, LocalTime, OFFSETS_BACK, Offset, Schedule};

/// The settings of a request that are about local time.
#[derive(Clone, Debug, Default)]
pub(crate) struct LocalTimes {
    pub(crate) at: Option<String>,
    pub(crate) tz: Option<String>,
    pub(crate) cron: Option<String>,
}

impl LocalTimes {
    pub(crate) fn has_cron(&self) -> bool {
        self.cron.is_some()
    }

    /// The time that is due by the clocks of the zone, and all times; `None` for a request without a zone.
    ///
    /// # Errors
    /// Settings that contradict each other, or that cannot be.
    pub(crate) fn due(
        &self,
        every: Option<Duration>,
        offset: Duration,
        unix_ms: u64,
    ) -> Result<Option<(Due, Schedule)>, String> {
        if self.at.is_some() && every.is_none() {
            return Err("at is the time of day at which the periods of every begin: add every, such as one day, or give cron in \
                        place of at"
                .to_owned());
        }
        let Some(tz) = &self.tz else {
            return match self.at.as_ref().or(self.cron.as_ref()) {
                Some(_) => {
                    Err("at and cron are local times: add tz, the zone, such as Europe/Berlin or UTC".to_owned())
                }
                None => Ok(None),
            };
        };
        let schedule = match (&self.cron, every) {
            (Some(cron), _) => Schedule::cron(cron),
            (None, Some(every)) => Schedule::every(every, offset, self.at.as_deref()),
            (None, None) => return Err("tz is the zone of every or cron: add one of them, or leave tz out".to_owned()),
        };
        let schedule = schedule.map_err(|error| error.to_string())?;
        let shown = LocalTime::latest_shown(unix_ms, &offsets(&zone(tz)?, unix_ms)?);
        Ok(Some((schedule.due(shown, tz), schedule)))
    }
}

/// # Errors
/// A name that the database of zones does not have.
fn zone(name: &str) -> Result<TimeZone, String> {
    TimeZone::get(name).ok().filter(|zone| !zone.is_unknown()).ok_or_else(|| {
        format!("{name:?} is no zone that this machine knows: give its name in the IANA database, such as Europe/Berlin or UTC")
    })
}

/// The offsets that counted lately, as the core wants them.
///
/// # Errors
/// A clock so far off that the calendar has no such time.
fn offsets(zone: &TimeZone, unix_ms: u64) -> Result<Vec<Offset>, String> {
    let instant = |unix_ms: u64| i64::try_from(unix_ms).ok().and_then(|ms| Timestamp::from_millisecond(ms).ok());
    let offset = |at: Timestamp| Offset {
        since_unix_ms: u64::try_from(at.as_millisecond()).unwrap_or_default(),
        ahead_ms: i64::from(zone.to_offset(at).seconds()) * 1000,
    };
    let from = unix_ms.saturating_sub(u64::try_from(OFFSETS_BACK.as_millis()).unwrap_or(u64::MAX));
    let (Some(from), Some(now)) = (instant(from), instant(unix_ms)) else {
        return Err("the clock of this machine is too far off for local time: set it".to_owned());
    };
    let changes = zone.following(from).map(|change| change.timestamp()).take_while(|change| *change <= now);
    Ok([from].into_iter().chain(changes).map(offset).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 01:00 in UTC on 25 October 2026, when Berlin sets its clocks from 03:00 back to 02:00.
    const BACK: u64 = 1_792_890_000_000;
    const HOUR: u64 = 3_600_000;
    const DAY: Duration = Duration::from_secs(86_400);

    fn key(tz: &str, cron: &str, unix_ms: u64) -> String {
        let times = LocalTimes { at: None, tz: Some(tz.to_owned()), cron: Some(cron.to_owned()) };
        times.due(None, Duration::ZERO, unix_ms).unwrap().unwrap().0.key
    }

    #[test]
    fn zones_give_the_offsets_that_counted_lately() {
        let shown = |ms: i64| offsets(&zone("Europe/Berlin").unwrap(), BACK.saturating_add_signed(ms)).unwrap();
        let ahead = |ms| shown(ms).iter().map(|offset| offset.ahead_ms / 3_600_000).collect::<Vec<_>>();
        assert_eq!(
            (ahead(-1), ahead(0), ahead(47 * 3_600_000), ahead(49 * 3_600_000)),
            (vec![2], vec![2, 1], vec![2, 1], vec![1])
        );
        assert_eq!(shown(0)[1].since_unix_ms, BACK);
    }

    #[test]
    fn zones_are_known_where_the_system_has_none() {
        assert!(jiff::tz::TimeZoneDatabase::bundled().get("Europe/Berlin").is_ok());
    }

    #[test]
    fn keys_are_local_times_with_the_zone_as_typed() {
        assert_eq!(key("Europe/Berlin", "30 2 * * *", BACK + 12 * HOUR), "2026-10-25T02:30[Europe/Berlin]");
        assert_eq!(key("europe/berlin", "30 2 * * *", BACK + 12 * HOUR), "2026-10-25T02:30[europe/berlin]");
        assert_eq!(key("America/New_York", "30 2 * * *", BACK), "2026-10-24T02:30[America/New_York]");
        assert_eq!(key("Asia/Kolkata", "30 6 * * *", BACK), "2026-10-25T06:30[Asia/Kolkata]");
        assert_eq!(key("UTC", "30 2 * * *", BACK + HOUR), "2026-10-24T02:30[UTC]");
        // Samoa left out 30 December 2011 when it crossed the date line; it stayed on the 31st, and repeated nothing.
        let after = 1_325_239_200_000 + HOUR;
        assert_eq!(key("Pacific/Apia", "0 12 30 12 *", after), "2011-12-30T12:00[Pacific/Apia]");
    }

    #[test]
    fn the_time_of_day_moves_the_periods_of_a_zone() {
        let times = LocalTimes { at: Some("02:30".to_owned()), tz: Some("Europe/Berlin".to_owned()), cron: None };
        let at = |unix_ms| times.due(Some(DAY), Duration::ZERO, unix_ms).unwrap().unwrap().0.key;
        assert_eq!(at(BACK - HOUR / 2 - 1), "2026-10-24T02:30[Europe/Berlin]");
        for minutes in [-30, 0, 29, 30, 31, 59, 60, 600] {
            assert_eq!(
                at(BACK.saturating_add_signed(minutes * 60_000)),
                "2026-10-25T02:30[Europe/Berlin]",
                "{minutes}"
            );
        }
    }

    #[test]
    fn settings_that_cannot_be_are_refused() {
        let day = Some(DAY);
        for (at, tz, cron, every, words) in [
            (Some("02:00"), Some("UTC"), None, None, "add every"),
            (Some("02:00"), None, None, day, "add tz"),
            (None, None, Some("0 2 * * *"), None, "add tz"),
            (None, Some("UTC"), None, None, "leave tz out"),
            (None, Some("Europe/Berln"), None, day, "\"Europe/Berln\" is no zone"),
            (None, Some(""), None, day, "\"\" is no zone"),
            (None, Some("../../etc/passwd"), None, day, "is no zone"),
            (None, Some("Etc/Unknown"), None, day, "is no zone"),
            (None, Some("UTC"), Some("0 0 30 2 *"), None, "never comes"),
            (None, Some("UTC"), Some("@daily"), None, "5 fields"),
            (Some("25:00"), Some("UTC"), None, day, "\"25:00\" is no time of day"),
            (Some("02:00"), Some("UTC"), None, Some(DAY / 2), "whole days"),
        ] {
            let given = |text: Option<&str>| text.map(str::to_owned);
            let times = LocalTimes { at: given(at), tz: given(tz), cron: given(cron) };
            let error = times.due(every, Duration::ZERO, BACK).unwrap_err();
            assert!(error.contains(words), "{error}");
        }
        assert!(offsets(&zone("UTC").unwrap(), u64::MAX).is_err());
    }
}
