//! Cron expressions of five fields.

use core::ops::RangeInclusive;
use core::time::Duration;

use super::{DAY_MS, LocalTime, MINUTE_MS, ScheduleError};
use crate::run::date;

/// Days after which the calendar repeats itself: 400 years.
const CALENDAR: i64 = 146_097;
const MONTHS: [&str; 12] = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
const WEEKDAYS: [&str; 7] = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];

/// A set of the values of a field: bit `n` stands for `n`.
type Values = u64;

struct Field {
    name: &'static str,
    bounds: (u32, u32),
    /// Names for the values from the smallest on.
    names: &'static [&'static str],
}

const FIELDS: [Field; 5] = [
    Field { name: "minute", bounds: (0, 59), names: &[] },
    Field { name: "hour", bounds: (0, 23), names: &[] },
    Field { name: "day of the month", bounds: (1, 31), names: &[] },
    Field { name: "month", bounds: (1, 12), names: &MONTHS },
    Field { name: "day of the week", bounds: (0, 7), names: &WEEKDAYS },
];

impl Field {
    fn read(&self, text: &str) -> Result<Values, ScheduleError> {
        text.split(',').try_fold(0, |values, part| {
            let refused = || ScheduleError::Part { part: part.into(), field: self.name, bounds: self.bounds };
            self.part(part).map(|more| values | more).ok_or_else(refused)
        })
    }

    /// `*`, `5`, `1-5`, and each with a step, as in `*/15`. A step after a single value goes on to the largest.
    fn part(&self, part: &str) -> Option<Values> {
        let (range, step) = match part.split_once('/') {
            Some((range, step)) => (range, Some(number(step).filter(|step| *step > 0)?)),
            None => (part, None),
        };
        let (from, to) = match range.split_once('-') {
            Some((from, to)) => (self.value(from)?, self.value(to)?),
            None if range == "*" => self.bounds,
            None => (self.value(range)?, if step.is_some() { self.bounds.1 } else { self.value(range)? }),
        };
        (from <= to).then(|| bits(from..=to, step.unwrap_or(1)))
    }

    fn value(&self, text: &str) -> Option<u32> {
        let named = self.names.iter().position(|name| name.eq_ignore_ascii_case(text));
        let value = match named {
            Some(place) => self.bounds.0.checked_add(u32::try_from(place).ok()?)?,
            None => number(text)?,
        };
        (self.bounds.0..=self.bounds.1).contains(&value).then_some(value)
    }
}

fn number(text: &str) -> Option<u32> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?
}

fn bits(values: RangeInclusive<u32>, step: u32) -> Values {
    values.step_by(usize::try_from(step).unwrap_or(usize::MAX)).fold(0, |bits, value| bits | 1 << value)
}

fn has(values: Values, value: u32) -> bool {
    value < Values::BITS && values & (1 << value) != 0
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Cron {
    minutes: Values,
    hours: Values,
    days: Values,
    months: Values,
    weekdays: Values,
    /// A day has to be in both fields of days if one of them begins with `*`. Or else one is enough, as cron has it.
    is_in_both: bool,
}

impl Cron {
    pub(super) fn read(expression: &str) -> Result<Self, ScheduleError> {
        let count = expression.split_whitespace().count();
        if count != FIELDS.len() {
            return Err(ScheduleError::Fields { count });
        }
        let (mut values, mut is_in_both) = ([0; FIELDS.len()], false);
        for (place, (field, text)) in FIELDS.iter().zip(expression.split_whitespace()).enumerate() {
            values[place] = field.read(text)?;
            is_in_both |= matches!(place, 2 | 4) && text.starts_with('*');
        }
        let [minutes, hours, days, months, weekdays] = values;
        // 7 is a Sunday, too.
        let weekdays = weekdays | weekdays >> 7 & 1;
        let cron = Self { minutes, hours, days, months, weekdays, is_in_both };
        if (0..CALENDAR).any(|day| cron.is_on(day)) { Ok(cron) } else { Err(ScheduleError::Never) }
    }

    /// Tells if it is due on that day after the start of 1970.
    fn is_on(&self, day: i64) -> bool {
        let (_, month, of_month) = date(day);
        let weekday = u32::try_from(day.saturating_add(4).rem_euclid(7)).unwrap_or_default();
        let (is_day, is_weekday) = (has(self.days, of_month), has(self.weekdays, weekday));
        has(self.months, month) && if self.is_in_both { is_day && is_weekday } else { is_day || is_weekday }
    }

    /// The minutes of a day at which it is due.
    fn minutes_of_day(&self) -> impl DoubleEndedIterator<Item = u32> {
        (0..24)
            .filter(|hour| has(self.hours, *hour))
            .flat_map(|hour| (0..60).filter(|minute| has(self.minutes, *minute)).map(move |minute| hour * 60 + minute))
    }

    /// The last time at which it was due, until then.
    pub(super) fn last(&self, until: LocalTime) -> LocalTime {
        let last = |day, minute| self.minutes_of_day().rev().find(|due| *due <= minute).map(|due| at(day, due));
        let today = self.is_on(until.day()).then(|| last(until.day(), until.minute_of_day())).flatten();
        let day = (1..=CALENDAR).map(|back| until.day().saturating_sub(back)).find(|day| self.is_on(*day));
        today.or_else(|| last(day?, u32::MAX)).unwrap_or(until)
    }

    /// The first time at which it is due after that.
    pub(super) fn after(&self, past: LocalTime) -> LocalTime {
        let first = |day, minute| self.minutes_of_day().find(|due| minute < Some(*due)).map(|due| at(day, due));
        let today = self.is_on(past.day()).then(|| first(past.day(), Some(past.minute_of_day()))).flatten();
        let day = (1..=CALENDAR).map(|on| past.day().saturating_add(on)).find(|day| self.is_on(*day));
        today.or_else(|| first(day?, None)).unwrap_or(past)
    }

    /// The longest time from one to the next, in the 28 years after which days of the week fall on the same dates again.
    pub(super) fn longest(&self) -> Duration {
        const CYCLE: i64 = 28 * 365 + 7;
        // And the first ones once more, after the last.
        let on = (0..2 * CYCLE).filter(|day| self.is_on(*day));
        let (first, last) = (self.minutes_of_day().next(), self.minutes_of_day().next_back());
        let from = |day, minute: Option<u32>| at(day, minute.unwrap_or_default());
        let nights = on.clone().zip(on.skip(1)).map(|(one, next)| from(next, first).0.abs_diff(from(one, last).0));
        let minutes = self
            .minutes_of_day()
            .zip(self.minutes_of_day().skip(1))
            .map(|(one, next)| from(0, Some(next)).0.abs_diff(from(0, Some(one)).0));
        Duration::from_millis(nights.chain(minutes).max().unwrap_or(u64::MAX))
    }
}

fn at(day: i64, minute: u32) -> LocalTime {
    LocalTime(day.saturating_mul(DAY_MS).saturating_add(i64::from(minute) * MINUTE_MS))
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::{String, ToString};
    use alloc::vec::Vec;

    /// Midnight of Tuesday, 24 November 2026.
    const DAY: i64 = 20_781;

    fn cron(expression: &str) -> Cron {
        Cron::read(expression).unwrap_or_else(|error| panic!("{expression}: {error}"))
    }

    fn next(expression: &str, count: usize) -> Vec<String> {
        let (cron, mut past) = (cron(expression), at(DAY, 12 * 60));
        let mut next = || {
            past = cron.after(past);
            past.to_string()
        };
        (0..count).map(|_| next()).collect()
    }

    #[test]
    fn expressions_are_due_as_cron_has_it() {
        assert_eq!(
            next("0 2 * * 1-5", 4),
            ["2026-11-25T02:00", "2026-11-26T02:00", "2026-11-27T02:00", "2026-11-30T02:00"]
        );
        assert_eq!(next("*/20 12 * * *", 3), ["2026-11-24T12:20", "2026-11-24T12:40", "2026-11-25T12:00"]);
        assert_eq!(next("5,50-52/2 23 31 * *", 3), ["2026-12-31T23:05", "2026-12-31T23:50", "2026-12-31T23:52"]);
        assert_eq!(next("0 0 29 FEB *", 2), ["2028-02-29T00:00", "2032-02-29T00:00"]);
        assert_eq!(next("0 0 1 JAN-mar/2 *", 3), ["2027-01-01T00:00", "2027-03-01T00:00", "2028-01-01T00:00"]);
        assert_eq!(next("50/4 12 * * Sun,7,0", 3), ["2026-11-29T12:50", "2026-11-29T12:54", "2026-11-29T12:58"]);
        assert_eq!(next("0 9 * * 5-7", 3), ["2026-11-27T09:00", "2026-11-28T09:00", "2026-11-29T09:00"]);
        assert_eq!(
            next("0 0 1 * 3", 3),
            ["2026-11-25T00:00", "2026-12-01T00:00", "2026-12-02T00:00"],
            "one of them is enough"
        );
        assert_eq!(next("0 0 */10 * 3", 2), ["2027-03-31T00:00", "2027-04-21T00:00"], "both");
    }

    #[test]
    fn last_and_after_are_neighbours_and_agree_with_each_minute() {
        for expression in ["0 2 * * 1-5", "*/7 3,22 * * *", "59 23 31 * *", "0 0 1 1 *", "* * * * *", "30 4 1,15 * 5"] {
            let cron = cron(expression);
            let is_due = |time: LocalTime| {
                let (hour, minute) = (time.minute_of_day() / 60, time.minute_of_day() % 60);
                cron.is_on(time.day()) && has(cron.hours, hour) && has(cron.minutes, minute)
            };
            let mut last = cron.last(at(DAY, 0));
            for minute in 1..=30 * 1440 {
                let now = LocalTime(at(DAY, 0).0 + minute * MINUTE_MS);
                if is_due(now) {
                    assert_eq!(cron.after(last), now, "{expression}");
                    last = now;
                }
                assert_eq!(cron.last(LocalTime(now.0 + 59_999)), last, "{expression} at {now}");
            }
        }
    }

    #[test]
    fn the_longest_time_between_two_is_known() {
        let hours = |expression: &str| cron(expression).longest().as_secs() / 3600;
        for (expression, longest) in [
            ("0 * * * *", 1),
            ("0 2 * * *", 24),
            ("0 2,4 * * *", 22),
            ("0 2 * * 1-5", 72),
            ("0 2 * * 1", 168),
            ("0 0 1 * *", 31 * 24),
            ("0 0 * 2-11 *", 63 * 24),
            ("0 0 29 2 *", 1461 * 24),
        ] {
            assert_eq!(hours(expression), longest, "{expression}");
        }
    }

    #[test]
    fn what_is_rare_is_found_and_what_never_comes_is_refused() {
        assert_eq!(cron("0 0 29 2 */7").last(at(DAY, 0)).to_string(), "2004-02-29T00:00", "a Sunday");
        assert_eq!(cron("0 0 29 2 */7").after(at(DAY, 0)).to_string(), "2032-02-29T00:00");
        assert_eq!(cron("0 0 29 2 *").last(at(11_016 - 365, 0)).to_string(), "1996-02-29T00:00");
        for never in ["0 0 30 2 *", "0 0 31 2,4,6,9,11 *", "0 0 31 feb *"] {
            assert_eq!(Cron::read(never), Err(ScheduleError::Never), "{never}");
        }
        assert!(Cron::read("0 0 30 2 1").is_ok(), "on Mondays");
    }

    #[test]
    fn odd_expressions_are_refused_with_what_may_stand_there() {
        for (expression, words) in [
            ("", "has 5 fields, not 0"),
            ("0 2 * *", "has 5 fields, not 4"),
            ("0 0 2 * * *", "has 5 fields, not 6"),
            ("60 2 * * *", "\"60\" is no minute"),
            ("0 24 * * *", "\"24\" is no hour"),
            ("0 2 0 * *", "\"0\" is no day of the month of a cron expression: give *, numbers from 1 to 31"),
            ("0 2 * 13 *", "\"13\" is no month"),
            ("0 2 * * 8", "\"8\" is no day of the week"),
            ("0 2 * * 6-1", "\"6-1\" is no day of the week"),
            ("*/0 2 * * *", "\"*/0\" is no minute"),
            ("1,,2 2 * * *", "\"\" is no minute"),
            ("+1 2 * * *", "\"+1\" is no minute"),
            ("0 2 L * *", "\"L\" is no day of the month"),
            ("99999999999 2 * * *", "is no minute"),
            ("-1 2 * * *", "\"-1\" is no minute"),
        ] {
            let error = Cron::read(expression).unwrap_err().to_string();
            assert!(error.contains(words), "{expression:?}: {error}");
        }
    }
}
