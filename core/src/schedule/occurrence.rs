//! The occurrence of a job that a request is about, and how long its completion stands.

use alloc::string::String;
use core::fmt;
use core::time::Duration;

use super::{Due, LocalTime, Offset, Schedule, ScheduleError};
use crate::config::{MAX_KEEP, RunOptions, Span};
use crate::run::period_key;

/// The most by which a zone sets its clocks back: by a day, at the date line.
const LONGEST_SHIFT: Duration = Duration::from_secs(86_400);

/// The settings that say which part of a job is done once. Without a key, period or schedule it is the job as a whole: once done,
/// it is done until its completion ends.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Occurrence {
    /// The name of the occurrence: a date, an invoice, a batch.
    pub key: Option<String>,
    /// The length of the periods in each of which there is one.
    pub every: Option<Duration>,
    /// How long after the start of 1970 the periods begin.
    pub offset: Duration,
    /// The time of day at which the periods begin.
    pub at: Option<String>,
    /// The zone by whose clocks periods and times of a cron expression count, as it was typed.
    pub tz: Option<String>,
    /// A cron expression, at each of whose times there is one.
    pub cron: Option<String>,
    /// How long the job as a whole is not done again.
    pub cooldown: Option<Duration>,
    /// How long the completion stands.
    pub keep: Option<Duration>,
}

/// The present occurrence of a job.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Present {
    /// Its key; `None` for the job as a whole.
    pub key: Option<String>,
    next: Next,
}

/// The time until the one after it begins.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Next {
    Never,
    /// After this long on every clock.
    After(Duration),
    /// After this long on a clock that may be set forward or back meanwhile, by a schedule.
    OnTheWall(Duration, Schedule),
}

impl Occurrence {
    /// The occurrence at that time. The offsets are those of the zone that counted in the last
    /// [`OFFSETS_BACK`](super::OFFSETS_BACK), oldest first; none are needed where no zone is named.
    ///
    /// # Errors
    /// Settings that contradict each other, or that cannot be.
    pub fn present(&self, unix_ms: u64, offsets: &[Offset]) -> Result<Present, OccurrenceError> {
        if [self.key.is_some(), self.every.is_some(), self.cron.is_some()].into_iter().filter(|given| *given).count()
            > 1
        {
            return Err(OccurrenceError::SeveralKeys);
        }
        if !self.offset.is_zero() && self.every.is_none() {
            return Err(OccurrenceError::OffsetWithoutPeriod);
        }
        if let Some((schedule, tz)) = self.schedule()? {
            if offsets.is_empty() {
                return Err(OccurrenceError::NoOffsets);
            }
            let Due { key, until_next } = schedule.due(LocalTime::latest_shown(unix_ms, offsets), tz);
            return Ok(Present { key: Some(key), next: Next::OnTheWall(until_next, schedule) });
        }
        Ok(match self.every {
            Some(every) => {
                let key = period_key(unix_ms, every, self.offset).map_err(ScheduleError::Periods)?;
                Present { key: Some(key), next: Next::After(every) }
            }
            None => Present { key: self.key.clone(), next: Next::Never },
        })
    }

    /// The times by the clocks of a zone, and its name; `None` where no zone is named.
    fn schedule(&self) -> Result<Option<(Schedule, &str)>, OccurrenceError> {
        if self.at.is_some() && self.every.is_none() {
            return Err(OccurrenceError::TimeOfDayWithoutPeriod);
        }
        let Some(tz) = self.tz.as_deref() else {
            let is_local = self.at.is_some() || self.cron.is_some();
            return if is_local { Err(OccurrenceError::NoZone) } else { Ok(None) };
        };
        let schedule = match (&self.cron, self.every) {
            (Some(cron), _) => Schedule::cron(cron),
            (None, Some(every)) => Schedule::every(every, self.offset, self.at.as_deref()),
            (None, None) => return Err(OccurrenceError::ZoneWithoutTimes),
        };
        Ok(Some((schedule?, tz)))
    }

    /// How long the completion of the present occurrence stands: on a quorum, or in a single store, and perhaps for a request whose
    /// finish removes a completion by a `keep` of zero.
    ///
    /// # Errors
    /// Settings that contradict each other, or a completion that would end before the period.
    pub fn kept(&self, present: &Present, is_of_quorum: bool, removes: bool) -> Result<Duration, OccurrenceError> {
        let asked = self.cooldown.or(self.keep);
        if present.key.is_none() && asked.is_none() {
            return Err(OccurrenceError::Unspoken);
        }
        if self.cooldown.is_some() && present.key.is_some() {
            return Err(OccurrenceError::KeyAndCooldown);
        }
        if self.cooldown.is_some() && self.keep.is_some() {
            return Err(OccurrenceError::KeepAndCooldown);
        }
        let default = RunOptions::default().keep;
        match (&present.next, asked) {
            (Next::Never, _) => Ok(asked.unwrap_or(default)),
            (_, Some(Duration::ZERO)) if removes => Ok(Duration::ZERO),
            (Next::After(period), Some(keep)) if keep < *period => {
                Err(OccurrenceError::KeepBelowPeriod { keep, period: *period })
            }
            (Next::After(_), Some(keep)) => Ok(keep),
            // No completion stands for longer on a quorum.
            (Next::After(period), None) if *period <= default && is_of_quorum => Ok(default),
            // The next period may begin later by the clock of another machine.
            (Next::After(period), None) => Ok(default.max(period.saturating_mul(2).min(MAX_KEEP))),
            // Refused at once, and not when the longest pause comes.
            (Next::OnTheWall(_, schedule), _) if is_of_quorum && schedule.longest() + LONGEST_SHIFT > default => {
                Err(OccurrenceError::LongPauses { longest: schedule.longest(), max: default })
            }
            // Times of a schedule are not equally far apart, so no single keep could be refused at all of them.
            (Next::OnTheWall(length, _), _) => {
                Ok(asked.unwrap_or(default).max(length.saturating_add(LONGEST_SHIFT).min(MAX_KEEP)))
            }
        }
    }
}

/// The reason why settings of an occurrence were refused.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum OccurrenceError {
    /// Nothing says when the work may be done again: it would be done once and not again for seven days, and nobody would have said so.
    Unspoken,
    /// More than one of a key, a period and a cron expression.
    SeveralKeys,
    /// An offset of periods that there are not.
    OffsetWithoutPeriod,
    /// A time of day for periods that there are not.
    TimeOfDayWithoutPeriod,
    /// Local times of no zone.
    NoZone,
    /// A zone without times by its clocks.
    ZoneWithoutTimes,
    /// A zone whose offsets the host did not give.
    NoOffsets,
    /// A cooldown of an occurrence with a key.
    KeyAndCooldown,
    /// A cooldown and another time for which the completion stands.
    KeepAndCooldown,
    /// Times that cannot be.
    Times(ScheduleError),
    /// A completion that would end before its period.
    KeepBelowPeriod {
        /// How long it would stand.
        keep: Duration,
        /// The period.
        period: Duration,
    },
    /// Times that are further apart than a quorum keeps completions.
    LongPauses {
        /// The longest time from one to the next.
        longest: Duration,
        /// How long a quorum keeps completions.
        max: Duration,
    },
}

impl From<ScheduleError> for OccurrenceError {
    fn from(error: ScheduleError) -> Self {
        Self::Times(error)
    }
}

impl fmt::Display for OccurrenceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unspoken => f.write_str(
                "say when the work may be done again: key (never for this key, such as a date), every (in the next \
                 period), cron (at its next time, by the clocks of tz), cooldown (after this time), or keep (after this time, if the \
                 name alone identifies the work)",
            ),
            Self::SeveralKeys => {
                f.write_str("a run has one of key, every and cron, not two: leave the others out")
            }
            Self::OffsetWithoutPeriod => f.write_str(
                "an offset moves the start of the periods, so it needs every: add every, or leave offset out",
            ),
            Self::TimeOfDayWithoutPeriod => f.write_str(
                "at is the time of day at which the periods of every begin: add every, such as one day, or give cron in \
                 place of at",
            ),
            Self::NoZone => {
                f.write_str("at and cron are local times: add tz, the zone, such as Europe/Berlin or UTC")
            }
            Self::ZoneWithoutTimes => {
                f.write_str("tz is the zone of every or cron: add one of them, or leave tz out")
            }
            Self::NoOffsets => f.write_str("the offsets of the zone are missing: the host gives those of the last two days"),
            Self::KeyAndCooldown => f.write_str("a run has a key or a cooldown, not both"),
            Self::KeepAndCooldown => {
                f.write_str("the cooldown already says how long the completion is kept: leave keep out")
            }
            Self::Times(error) => error.fmt(f),
            Self::KeepBelowPeriod { keep, period } => write!(
                f,
                "keep of {} is shorter than the period of {}, in which the job would be done again: keep the completion \
                 for the period at least",
                Span(*keep),
                Span(*period)
            ),
            Self::LongPauses { longest, max } => write!(
                f,
                "this schedule pauses for up to {}, and a quorum keeps completions for {} at most, a day of which is for \
                 clocks that are set back: choose times that are at most {} apart, or a single store",
                Span(*longest),
                Span(*max),
                Span(max.saturating_sub(LONGEST_SHIFT))
            ),
        }
    }
}

impl core::error::Error for OccurrenceError {}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    const HOUR: u64 = 3_600_000;
    const DAY: Duration = Duration::from_secs(86_400);
    const WEEK: Duration = Duration::from_secs(7 * 86_400);
    /// 01:00 in UTC on Sunday, 25 October 2026, when Berlin sets its clocks from 03:00 back to 02:00.
    const BACK: u64 = 1_792_890_000_000;
    /// The offsets of Berlin in the two days before.
    const BERLIN: [Offset; 2] = [
        Offset { since_unix_ms: BACK - 48 * HOUR, ahead_ms: 7_200_000 },
        Offset { since_unix_ms: BACK, ahead_ms: 3_600_000 },
    ];

    fn none() -> Occurrence {
        Occurrence::default()
    }

    fn text(text: &str) -> Option<String> {
        Some(text.to_string())
    }

    fn berlin(cron: &str) -> Occurrence {
        Occurrence { cron: text(cron), tz: text("Europe/Berlin"), ..none() }
    }

    fn periods(every: Duration) -> Occurrence {
        Occurrence { every: Some(every), ..none() }
    }

    fn key(of: &Occurrence) -> Option<String> {
        of.present(BACK, &BERLIN).unwrap().key
    }

    /// How long its completion stands in a single store.
    fn kept(of: &Occurrence) -> Result<Duration, OccurrenceError> {
        of.kept(&of.present(BACK, &BERLIN)?, false, false)
    }

    #[test]
    fn settings_name_an_occurrence() {
        assert_eq!(key(&Occurrence { key: text("2026-W43"), ..none() }), text("2026-W43"));
        assert_eq!(key(&Occurrence { cooldown: Some(DAY), ..none() }), None);
        assert_eq!(key(&periods(DAY)), text("2026-10-25T00:00:00Z"));
        assert_eq!(key(&Occurrence { offset: DAY / 2, ..periods(DAY) }), text("2026-10-24T12:00:00Z"));
        assert_eq!(key(&berlin("30 2 * * *")), text("2026-10-25T02:30[Europe/Berlin]"), "the clocks have shown it");
        let at = Occurrence { at: text("03:00"), tz: text("Europe/Berlin"), ..periods(DAY) };
        assert_eq!(key(&at), text("2026-10-24T03:00[Europe/Berlin]"), "and this not yet");
    }

    #[test]
    fn a_completion_outlasts_its_occurrence() {
        assert_eq!(kept(&Occurrence { key: text("k"), ..none() }), Ok(WEEK));
        assert_eq!(kept(&Occurrence { key: text("k"), keep: Some(DAY), ..none() }), Ok(DAY));
        assert_eq!(kept(&Occurrence { cooldown: Some(DAY), ..none() }), Ok(DAY));
        assert_eq!(kept(&periods(DAY)), Ok(WEEK));
        assert_eq!(kept(&periods(WEEK)), Ok(2 * WEEK));
        assert_eq!(kept(&periods(MAX_KEEP)), Ok(MAX_KEEP));
        assert_eq!(kept(&Occurrence { keep: Some(DAY), ..periods(DAY) }), Ok(DAY));
        assert_eq!(kept(&berlin("0 2 1 * *")), Ok(32 * DAY), "October's, and a day");
        assert_eq!(kept(&Occurrence { keep: Some(DAY), ..berlin("0 2 * * *") }), Ok(2 * DAY), "as much as it takes");
        assert_eq!(kept(&Occurrence { keep: Some(WEEK), ..berlin("0 2 * * *") }), Ok(WEEK));
    }

    #[test]
    fn a_finish_that_removes_a_completion_keeps_none() {
        for of in [periods(DAY), berlin("0 2 * * *")].map(|of| Occurrence { keep: Some(Duration::ZERO), ..of }) {
            let present = of.present(BACK, &BERLIN).unwrap();
            assert_eq!(of.kept(&present, false, true), Ok(Duration::ZERO));
            assert_ne!(of.kept(&present, false, false), Ok(Duration::ZERO));
        }
    }

    #[test]
    fn a_quorum_keeps_completions_for_a_week() {
        let on_quorum = |of: &Occurrence| of.kept(&of.present(BACK, &BERLIN).unwrap(), true, false);
        assert_eq!(on_quorum(&periods(WEEK)), Ok(WEEK));
        assert_eq!(on_quorum(&periods(8 * DAY)), Ok(16 * DAY), "which the machine refuses");
        assert_eq!(on_quorum(&berlin("0 2 * * 1-5")), Ok(WEEK));
        assert_eq!(on_quorum(&berlin("0 2 * * 1,6")), Ok(WEEK));
        for rare in ["0 2 * * 1", "0 2 * 1-6 *", "0 2 1 * *"] {
            let error = on_quorum(&berlin(rare)).unwrap_err().to_string();
            assert!(error.starts_with("this schedule pauses for up to ") && error.contains(" (6 d) apart"), "{error}");
            assert!(kept(&berlin(rare)).is_ok(), "a single store keeps it as long as it takes");
        }
    }

    #[test]
    fn settings_that_contradict_each_other_are_refused() {
        let with_key = || Occurrence { key: text("k"), ..none() };
        let at = || Occurrence { at: text("02:00"), ..none() };
        let zoned = || Occurrence { tz: text("Europe/Berlin"), ..none() };
        for (of, words) in [
            (none(), "say when the work may be done again: key ("),
            (Occurrence { every: Some(DAY), ..with_key() }, "one of key, every and cron"),
            (Occurrence { every: Some(DAY), ..berlin("0 2 * * *") }, "one of key, every and cron"),
            (Occurrence { key: text("k"), ..berlin("0 2 * * *") }, "one of key, every and cron"),
            (Occurrence { offset: DAY, ..with_key() }, "so it needs every"),
            (Occurrence { offset: DAY, ..berlin("0 2 * * *") }, "so it needs every"),
            (Occurrence { tz: text("UTC"), ..at() }, "add every"),
            (Occurrence { every: Some(DAY), ..at() }, "add tz"),
            (Occurrence { cron: text("0 2 * * *"), ..none() }, "add tz"),
            (zoned(), "leave tz out"),
            (Occurrence { cooldown: Some(DAY), ..zoned() }, "leave tz out"),
            (Occurrence { cooldown: Some(DAY), ..with_key() }, "a key or a cooldown"),
            (Occurrence { cooldown: Some(DAY), ..periods(DAY) }, "a key or a cooldown"),
            (Occurrence { cooldown: Some(DAY), keep: Some(DAY), ..none() }, "leave keep out"),
            (
                Occurrence { keep: Some(DAY / 2), ..periods(DAY) },
                "keep of 43200 s (12 h) is shorter than the period of 86400 s (1 d)",
            ),
            (periods(Duration::ZERO), "every is 0 s"),
            (Occurrence { offset: DAY, ..periods(DAY) }, "offset (it must be below the period)"),
            (berlin("0 0 30 2 *"), "never comes"),
            (Occurrence { every: Some(DAY / 2), ..at() }, "add tz"),
            (Occurrence { tz: text("UTC"), every: Some(DAY / 2), ..at() }, "whole days"),
        ] {
            let error = kept(&of).unwrap_err().to_string();
            assert!(error.contains(words), "{of:?}: {error}");
        }
    }

    #[test]
    fn a_host_that_gives_no_offsets_is_told() {
        assert_eq!(berlin("0 2 * * *").present(BACK, &[]), Err(OccurrenceError::NoOffsets));
        assert!(periods(DAY).present(BACK, &[]).is_ok());
    }
}
