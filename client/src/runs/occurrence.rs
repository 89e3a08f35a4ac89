//! The occurrence of a job that a request is about, and how long its completion stands.

use std::time::Duration;

use leasehold_core::config::{MAX_KEEP, RunOptions, Span};
use leasehold_core::schedule::Schedule;
use leasehold_core::{ConfigError, period_key};

#[cfg(feature = "local-time")]
#[path = "local_time.rs"]
mod local_time;
#[cfg(not(feature = "local-time"))]
#[path = "without_local_time.rs"]
mod local_time;

pub(super) use local_time::LocalTimes;

/// Without any of these, work would be done once and not again for seven days, and nobody would have said so.
const UNSPOKEN: &str = if cfg!(feature = "local-time") {
    "say when the work may be done again: key (never for this key, such as a date), every (in the next period), cron (at its \
     next time, by the clocks of tz), cooldown (after this time), or keep (after this time, if the name alone identifies the work)"
} else {
    "say when the work may be done again: key (never for this key, such as a date), every (in the next period), cooldown \
     (after this time), or keep (after this time, if the name alone identifies the work)"
};

/// The settings that say which part of a job is done once. Without a key, period or schedule it is the job as a whole: once done,
/// it is done until its completion ends.
#[derive(Clone, Debug, Default)]
pub(super) struct Occurrence {
    pub(super) key: Option<String>,
    pub(super) every: Option<Duration>,
    pub(super) offset: Duration,
    pub(super) local: LocalTimes,
    pub(super) cooldown: Option<Duration>,
    pub(super) keep: Option<Duration>,
}

/// The present occurrence.
pub(super) struct Present {
    pub(super) key: Option<String>,
    next: Next,
}

/// The time until the one after it begins.
enum Next {
    Never,
    /// After this long on every clock.
    After(Duration),
    /// After this long on a clock that may be set forward or back meanwhile, by a schedule.
    OnTheWall(Duration, Schedule),
}

impl Occurrence {
    /// # Errors
    /// Settings that contradict each other, or that cannot be.
    pub(super) fn present(&self, unix_ms: u64) -> Result<Present, String> {
        let told = |error: ConfigError| error.to_string();
        if [self.key.is_some(), self.every.is_some(), self.local.has_cron()].into_iter().filter(|given| *given).count()
            > 1
        {
            return Err("a run has one of key, every and cron, not two: leave the others out".to_owned());
        }
        if !self.offset.is_zero() && self.every.is_none() {
            return Err("an offset moves the start of the periods, so it needs every: add every, or leave offset out"
                .to_owned());
        }
        if let Some((due, schedule)) = self.local.due(self.every, self.offset, unix_ms)? {
            return Ok(Present { key: Some(due.key), next: Next::OnTheWall(due.until_next, schedule) });
        }
        Ok(match self.every {
            Some(every) => {
                Present { key: Some(period_key(unix_ms, every, self.offset).map_err(told)?), next: Next::After(every) }
            }
            None => Present { key: self.key.clone(), next: Next::Never },
        })
    }

    /// How long the completion of the present occurrence stands.
    ///
    /// # Errors
    /// Settings that contradict each other, or a completion that would end before the period.
    pub(super) fn kept(&self, present: &Present, is_of_quorum: bool, removes: bool) -> Result<Duration, String> {
        let asked = self.cooldown.or(self.keep);
        if present.key.is_none() && asked.is_none() {
            return Err(UNSPOKEN.to_owned());
        }
        if self.cooldown.is_some() && present.key.is_some() {
            return Err("a run has a key or a cooldown, not both".to_owned());
        }
        if self.cooldown.is_some() && self.keep.is_some() {
            return Err("the cooldown already says how long the completion is kept: leave keep out".to_owned());
        }
        let default = RunOptions::default().keep;
        match (&present.next, asked) {
            (Next::Never, _) => Ok(asked.unwrap_or(default)),
            (_, Some(Duration::ZERO)) if removes => Ok(Duration::ZERO),
            (Next::After(period), Some(keep)) if keep < *period => Err(format!(
                "keep of {} is shorter than the period of {}, in which the job would be done again: keep the \
                 completion for the period at least",
                Span(keep),
                Span(*period)
            )),
            (Next::After(_), Some(keep)) => Ok(keep),
            // No completion stands for longer on a quorum.
            (Next::After(period), None) if *period <= default && is_of_quorum => Ok(default),
            // The next period may begin later by the clock of another machine.
            (Next::After(period), None) => Ok(default.max(period.saturating_mul(2).min(MAX_KEEP))),
            // Refused at once, and not when the longest pause comes.
            (Next::OnTheWall(_, schedule), _) if is_of_quorum && schedule.longest() + LONGEST_SHIFT > default => {
                Err(format!(
                    "this schedule pauses for up to {}, and a quorum keeps completions for {} at most, a day of which is for \
                     clocks that are set back: choose times that are at most {} apart, or a single store",
                    Span(schedule.longest()),
                    Span(default),
                    Span(default - LONGEST_SHIFT)
                ))
            }
            // Times of a schedule are not equally far apart, so no single keep could be refused at all of them.
            (Next::OnTheWall(length, _), _) => {
                Ok(asked.unwrap_or(default).max(length.saturating_add(LONGEST_SHIFT).min(MAX_KEEP)))
            }
        }
    }
}

/// The most by which a zone sets its clocks back: by a day, at the date line.
const LONGEST_SHIFT: Duration = Duration::from_secs(86_400);

#[cfg(all(test, feature = "local-time"))]
mod tests {
    use super::*;

    #[test]
    fn schedules_with_longer_pauses_than_a_quorum_keeps_are_refused_at_once() {
        let kept = |cron: &str, is_of_quorum| {
            let local = LocalTimes { at: None, tz: Some("Europe/Berlin".to_owned()), cron: Some(cron.to_owned()) };
            let occurrence = Occurrence { local, ..Occurrence::default() };
            // A Monday, when the next time of all these is close.
            occurrence.kept(&occurrence.present(1_792_890_000_000).unwrap(), is_of_quorum, false)
        };
        let week = Duration::from_secs(7 * 86_400);
        assert_eq!(kept("0 2 * * 1-5", true), Ok(week));
        assert_eq!(kept("0 2 * * 1,6", true), Ok(week));
        for rare in ["0 2 * * 1", "0 2 * 1-6 *", "0 2 1 * *"] {
            let error = kept(rare, true).unwrap_err();
            assert!(error.starts_with("this schedule pauses for up to ") && error.contains(" (6 d) apart"), "{error}");
            assert!(kept(rare, false).is_ok(), "a single store keeps it as long as it takes");
        }
    }
}
