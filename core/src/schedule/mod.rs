//! Schedules: which [occurrence](Occurrence) of a job is meant, and when a job is due by local time.
//!
//! The key of a local time is that nominal time with the name of the zone, such as `2026-10-25T02:30[Europe/Berlin]`. Machines whose
//! tables of zones differ agree on it, and clocks that are set back show no time a second time. Zones are the host's: it gives the
//! [offsets](Offset) that counted lately.

mod cron;
mod error;
mod occurrence;

use alloc::format;
use alloc::string::String;
use core::fmt;
use core::time::Duration;

pub use error::ScheduleError;
pub use occurrence::{Occurrence, OccurrenceError, Present};

use crate::run::{check_periods, date};
use cron::Cron;

const DAY: Duration = Duration::from_secs(86_400);
const DAY_MS: i64 = 1_440 * MINUTE_MS;
const MINUTE_MS: i64 = 60_000;

/// How far back a host has to know the offsets of a zone: 2 days. No zone sets its clocks back by as much.
pub const OFFSETS_BACK: Duration = DAY.saturating_mul(2);

/// An offset of local time from UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Offset {
    /// When it began to count, in milliseconds since 1970 in UTC.
    pub since_unix_ms: u64,
    /// Milliseconds by which local time is ahead of UTC.
    pub ahead_ms: i64,
}

/// The time that a clock on a wall shows, as milliseconds since it showed the start of 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LocalTime(i64);

impl LocalTime {
    /// The latest time that the clocks of a zone have shown until now. While an hour comes a second time, that is its end.
    ///
    /// The offsets are those that counted in the last [`OFFSETS_BACK`], oldest first. Without any, local time is UTC.
    pub fn latest_shown(unix_ms: u64, offsets: &[Offset]) -> Self {
        let shown = |at: u64, ahead_ms: i64| i64::try_from(at).unwrap_or(i64::MAX).saturating_add(ahead_ms);
        let ends =
            offsets.iter().skip(1).map(|next| next.since_unix_ms.saturating_sub(1).min(unix_ms)).chain([unix_ms]);
        let latest = offsets.iter().zip(ends).map(|(offset, end)| shown(end, offset.ahead_ms)).max();
        Self(latest.unwrap_or_else(|| shown(unix_ms, 0)))
    }

    fn day(self) -> i64 {
        self.0.div_euclid(DAY_MS)
    }

    fn minute_of_day(self) -> u32 {
        u32::try_from(self.0.rem_euclid(DAY_MS) / MINUTE_MS).unwrap_or_default()
    }
}

/// As ISO 8601 writes it, without an offset, and with seconds and milliseconds only where there are some.
impl fmt::Display for LocalTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (year, month, day) = date(self.day());
        let (minute, ms) = (self.minute_of_day(), self.0.rem_euclid(MINUTE_MS));
        write!(f, "{year:04}-{month:02}-{day:02}T{:02}:{:02}", minute / 60, minute % 60)?;
        if ms != 0 {
            write!(f, ":{:02}", ms / 1000)?;
        }
        if ms % 1000 != 0 {
            write!(f, ".{:03}", ms % 1000)?;
        }
        Ok(())
    }
}

/// The local times at which a job is due.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Schedule(Times);

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Times {
    Every { every_ms: i64, offset_ms: i64 },
    Cron(Cron),
}

/// One time at which a job is due.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Due {
    /// The key of its run.
    pub key: String,
    /// From it to the next one on a clock that nobody moves.
    pub until_next: Duration,
}

impl Schedule {
    /// Once in every period by local time, the first of which began `offset` after the start of 1970, a Thursday. With a time of
    /// day such as `02:00`, periods are whole days that begin at it.
    ///
    /// # Errors
    /// As [`period_key`](crate::period_key), and a time that is none, or one for periods that are not whole days.
    pub fn every(every: Duration, offset: Duration, at: Option<&str>) -> Result<Self, ScheduleError> {
        let is_whole_days = every.as_nanos().is_multiple_of(DAY.as_nanos());
        if at.is_some() && !is_whole_days {
            return Err(ScheduleError::NotWholeDays);
        }
        let offset = offset.saturating_add(at.map(time_of_day).transpose()?.unwrap_or_default());
        check_periods(every, offset).map_err(ScheduleError::Periods)?;
        let ms = |length: Duration| i64::try_from(length.as_millis()).unwrap_or(i64::MAX);
        Ok(Self(Times::Every { every_ms: ms(every), offset_ms: ms(offset) }))
    }

    /// The times of a cron expression: minute, hour, day of the month, month and day of the week, as cron on Unix reads them. Each
    /// field is `*`, or numbers with `,`, `-` and `/`, or English names of three letters for months and days of the week.
    ///
    /// # Errors
    /// Another number of fields, a value out of bounds, and days that never come, such as 30 February.
    pub fn cron(expression: &str) -> Result<Self, ScheduleError> {
        Cron::read(expression).map(|cron| Self(Times::Cron(cron)))
    }

    /// The longest time from one time to the next, on a clock that nobody moves.
    pub fn longest(&self) -> Duration {
        match &self.0 {
            Times::Every { every_ms, .. } => Duration::from_millis(every_ms.unsigned_abs()),
            Times::Cron(cron) => cron.longest(),
        }
    }

    /// The last time at which the job was due, until now.
    pub fn due(&self, latest_shown: LocalTime, zone: &str) -> Due {
        let (due, next) = match &self.0 {
            Times::Every { every_ms, offset_ms } => {
                let since = latest_shown.0.saturating_sub(*offset_ms).rem_euclid(*every_ms);
                let due = latest_shown.0.saturating_sub(since);
                (LocalTime(due), LocalTime(due.saturating_add(*every_ms)))
            }
            Times::Cron(cron) => {
                let due = cron.last(latest_shown);
                (due, cron.after(due))
            }
        };
        Due { key: format!("{due}[{zone}]"), until_next: Duration::from_millis(next.0.abs_diff(due.0)) }
    }
}

/// Hours and minutes, as `02:00`.
fn time_of_day(text: &str) -> Result<Duration, ScheduleError> {
    let number = |text: &str, most: u64| {
        let is_number = text.len() == 2 && text.bytes().all(|byte| byte.is_ascii_digit());
        is_number.then(|| text.parse::<u64>().ok())?.filter(|number| *number <= most)
    };
    let parts = text.split_once(':').and_then(|(hours, minutes)| Some((number(hours, 23)?, number(minutes, 59)?)));
    let (hours, minutes) = parts.ok_or_else(|| ScheduleError::TimeOfDay { given: text.into() })?;
    Ok(Duration::from_secs(hours * 3_600 + minutes * 60))
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;
    use alloc::vec::Vec;

    const HOUR: i64 = 3_600_000;
    /// 01:00 in UTC on 25 October 2026, when Berlin sets its clocks from 03:00 back to 02:00.
    const BACK: u64 = 1_792_890_000_000;
    /// 01:00 in UTC on 29 March 2026, when Berlin sets its clocks from 02:00 forward to 03:00.
    const FORWARD: u64 = 1_774_746_000_000;

    fn berlin(unix_ms: u64) -> LocalTime {
        let changes = [(0, HOUR), (FORWARD, 2 * HOUR), (BACK, HOUR)];
        let offsets: Vec<Offset> = changes
            .into_iter()
            .filter(|(since, _)| *since <= unix_ms)
            .map(|(since_unix_ms, ahead_ms)| Offset { since_unix_ms, ahead_ms })
            .collect();
        LocalTime::latest_shown(unix_ms, &offsets)
    }

    fn keys(schedule: &Schedule, from: u64, hours: u64) -> Vec<String> {
        let mut keys: Vec<String> =
            (0..hours * 60).map(|minute| schedule.due(berlin(from + minute * 60_000), "Europe/Berlin").key).collect();
        keys.dedup();
        keys
    }

    #[test]
    fn a_time_that_comes_twice_is_due_once() {
        let schedule = Schedule::cron("30 2 * * *").unwrap();
        let midnight = BACK - 3 * 3_600_000;
        assert_eq!(
            keys(&schedule, midnight, 24),
            ["2026-10-24T02:30[Europe/Berlin]", "2026-10-25T02:30[Europe/Berlin]"]
        );
        let half_hours = keys(&Schedule::cron("*/30 * * * *").unwrap(), BACK - 3_600_000, 3);
        let times: Vec<&str> = half_hours.iter().map(|key| &key[11..16]).collect();
        assert_eq!(times, ["02:00", "02:30", "03:00", "03:30"], "and none is repeated");
    }

    #[test]
    fn a_time_that_clocks_leave_out_is_due_all_the_same() {
        let midnight = FORWARD - 3_600_000;
        for schedule in
            [Schedule::cron("30 2 * * *").unwrap(), Schedule::every(DAY, Duration::ZERO, Some("02:30")).unwrap()]
        {
            assert_eq!(
                keys(&schedule, midnight, 23),
                ["2026-03-28T02:30[Europe/Berlin]", "2026-03-29T02:30[Europe/Berlin]"]
            );
            let key = |at| schedule.due(berlin(at), "Z").key;
            assert_eq!((key(FORWARD - 1), key(FORWARD)), ("2026-03-28T02:30[Z]".into(), "2026-03-29T02:30[Z]".into()));
        }
    }

    #[test]
    fn clocks_that_are_set_back_show_nothing_new_until_they_catch_up() {
        assert_eq!(berlin(BACK - 1).to_string(), "2026-10-25T02:59:59.999");
        assert_eq!(berlin(BACK), berlin(BACK - 1));
        assert_eq!(berlin(BACK + 3_599_999), berlin(BACK - 1));
        assert_eq!(berlin(BACK + 3_600_000).to_string(), "2026-10-25T03:00");
        assert_eq!(LocalTime::latest_shown(BACK, &[]).to_string(), "2026-10-25T01:00");
        assert_eq!(
            LocalTime::latest_shown(u64::MAX, &[Offset { since_unix_ms: 0, ahead_ms: HOUR }]),
            LocalTime(i64::MAX)
        );
    }

    #[test]
    fn periods_by_local_time_begin_at_their_offset() {
        for (offset, at) in [(4 * DAY + Duration::from_secs(7_200), None), (4 * DAY, Some("02:00"))] {
            let monday = Schedule::every(7 * DAY, offset, at).unwrap().due(berlin(BACK), "Europe/Berlin");
            assert_eq!(monday.key, "2026-10-19T02:00[Europe/Berlin]", "a Monday");
            assert_eq!(monday.until_next, 7 * DAY);
        }
        let odd = Schedule::every(Duration::from_millis(1_500), Duration::ZERO, None).unwrap();
        assert_eq!(odd.due(LocalTime(1_700), "UTC").key, "1970-01-01T00:00:01.500[UTC]");
        assert_eq!(odd.due(LocalTime(-1), "UTC").key, "1969-12-31T23:59:58.500[UTC]");
    }

    #[test]
    fn odd_periods_and_times_of_day_are_refused() {
        let words = |every, offset, at| Schedule::every(every, offset, at).unwrap_err().to_string();
        assert!(words(DAY, DAY, None).contains("offset (it must be below the period)"));
        assert!(words(Duration::ZERO, Duration::ZERO, None).contains("every is 0 s"));
        assert!(words(2 * DAY, 2 * DAY - Duration::from_secs(60), Some("00:01")).contains("offset"));
        for every in [DAY / 2, DAY + Duration::from_nanos(1)] {
            assert!(words(every, Duration::ZERO, Some("02:00")).contains("whole days"), "{every:?}");
        }
        for odd in ["", "2", "24:00", "02:60", "2:00", "+2:00", "02:00:00", "02:0x", "aa:bb", "0200", "٠٢:٠٠"] {
            assert!(words(DAY, Duration::ZERO, Some(odd)).contains(&format!("{odd:?} is no time of day")), "{odd}");
        }
        let last = Schedule::every(DAY, Duration::ZERO, Some("23:59")).unwrap();
        assert_eq!(last.due(LocalTime(0), "UTC").key, "1969-12-31T23:59[UTC]");
    }
}
