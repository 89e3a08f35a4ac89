//! The error of a schedule that cannot be.

use alloc::boxed::Box;
use core::fmt;

use crate::config::ConfigError;

/// The reason why a schedule was refused.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ScheduleError {
    /// A period or an offset out of its bounds.
    Periods(ConfigError),
    /// A time of day that no clock shows.
    TimeOfDay {
        /// The text that was given.
        given: Box<str>,
    },
    /// A time of day with periods that are not whole days.
    NotWholeDays,
    /// A cron expression with another number of fields.
    Fields {
        /// How many it has.
        count: usize,
    },
    /// A part of a field of a cron expression that is no value, range or step of it.
    Part {
        /// The part.
        part: Box<str>,
        /// The field.
        field: &'static str,
        /// Its smallest and largest value.
        bounds: (u32, u32),
    },
    /// A cron expression that names days that never come.
    Never,
}

impl fmt::Display for ScheduleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Periods(error) => error.fmt(f),
            Self::TimeOfDay { given } => {
                write!(f, "{given:?} is no time of day: write hours and minutes, from 00:00 to 23:59")
            }
            Self::NotWholeDays => f.write_str(
                "at is a time of day, so every has to be whole days: make it 1 day, or give an offset or cron",
            ),
            Self::Fields { count } => write!(
                f,
                "a cron expression has 5 fields, not {count}: minute, hour, day of the month, month and day of the \
                 week, such as \"0 2 * * 1-5\""
            ),
            Self::Part { part, field, bounds: (min, max) } => write!(
                f,
                "{part:?} is no {field} of a cron expression: give *, numbers from {min} to {max}, ranges that ascend \
                 such as {min}-{max}, steps such as */2, or a list of these with commas"
            ),
            Self::Never => {
                f.write_str("the cron expression never comes: no month that it names has such a day; name another day")
            }
        }
    }
}

impl core::error::Error for ScheduleError {}
