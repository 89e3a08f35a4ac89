//! Attempts at a run: how often its work was begun, so that work that always fails is given up.
//!
//! They are counted in a record of their own: the result of a completion, which every store keeps and every quorum agrees on. The
//! holder of the run reads it, writes the next count, and begins once a majority has confirmed that; so an attempt counts however it ends.
//!
//! | bytes | content |
//! |---|---|
//! | 4 | the number of attempts that were begun, the highest byte first |
//! | 4 | how many were allowed |
//! | 8 | when the first of them began, in milliseconds since 1970 |
//! | 8 | when the next one may begin, in milliseconds since 1970 |
//! | 0 to 256 | why the last one failed, in UTF-8; empty if nobody said so |

use alloc::borrow::ToOwned;
use alloc::string::String;
use alloc::vec::Vec;
use core::num::NonZeroU32;
use core::time::Duration;

use crate::about::{ResultKind, RunResult};
use crate::config::{RunOptions, Span};
use crate::ids::Nonce;
use crate::op::Seen;
use crate::view::held_by;

/// How often the work of a run was begun.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Attempts {
    /// The number of attempts that were begun.
    pub count: u32,
    /// How many were allowed when the last one began.
    pub max: u32,
    /// When the first of them began, in milliseconds since 1970 by the clock of the one that began it.
    pub since_unix_ms: u64,
    /// When the next one may begin, in milliseconds since 1970 by the clock of the one that began the last.
    pub retry_unix_ms: u64,
    /// Why the last one failed; `None` where it did not say so, or is still under way.
    pub reason: Option<String>,
}

/// How often the work of a run may be begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct AttemptLimit {
    /// The number of attempts.
    pub max: NonZeroU32,
    /// The pause from the start of an attempt to the start of the next one.
    pub retry_after: Duration,
}

impl AttemptLimit {
    /// The limit that these settings of a run ask for; `None` where attempts are not counted.
    ///
    /// # Errors
    /// Settings that contradict each other, or that cannot be.
    pub fn new(max: Option<u32>, retry_after: Option<Duration>, run: &RunOptions) -> Result<Option<Self>, String> {
        let Some(max) = max else {
            return match retry_after {
                Some(_) => {
                    Err("a pause between attempts needs a number of attempts: give one, or leave the pause out"
                        .to_owned())
                }
                None => Ok(None),
            };
        };
        let max = NonZeroU32::new(max).ok_or("with 0 attempts the work would never begin: allow 1 or more")?;
        if run.even_if_done {
            return Err(
                "attempts are counted until the work is done, and this request does it although it is done: leave one of \
                 them out"
                    .to_owned(),
            );
        }
        let retry_after = retry_after.unwrap_or_default();
        if retry_after >= run.keep {
            return Err(alloc::format!(
                "the pause of {} between attempts has to be shorter than the time for which they are remembered: as long as the \
                 completion is kept, {}",
                Span(retry_after),
                Span(run.keep)
            ));
        }
        Ok(Some(Self { max, retry_after }))
    }
}

/// The decision about the next attempt.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum NextAttempt {
    /// It may, once these are written.
    Begin(Attempts),
    /// Not before these say so.
    Later(Attempts),
    /// As often as allowed it was begun, and never finished.
    GivenUp(Attempts),
}

const HEAD: usize = 24;

impl Attempts {
    /// The most bytes of a reason.
    pub const MAX_REASON_BYTES: usize = 256;

    /// Decides if another attempt may begin at that time, by the attempts that any node shows. After each, the pause has to pass,
    /// however it ended.
    pub fn next(shown: impl IntoIterator<Item = Self>, limit: AttemptLimit, unix_ms: u64) -> NextAttempt {
        let AttemptLimit { max, retry_after } = limit;
        let last = Self::latest(shown);
        let pause_ms = u64::try_from(retry_after.as_millis()).unwrap_or(u64::MAX);
        match last {
            Some(last) if last.count >= max.get() => NextAttempt::GivenUp(last),
            // A longer pause is none that was asked for, but of a clock that was set.
            Some(last) if (1..=pause_ms).contains(&last.retry_unix_ms.saturating_sub(unix_ms)) => {
                NextAttempt::Later(last)
            }
            last => NextAttempt::Begin(Self {
                count: last.as_ref().map_or(0, |last| last.count).saturating_add(1),
                max: max.get(),
                since_unix_ms: last.map_or(unix_ms, |last| last.since_unix_ms),
                retry_unix_ms: unix_ms.saturating_add(pause_ms),
                reason: None,
            }),
        }
    }

    /// The latest of the attempts that nodes show: some may have missed the latest one, or the reason why it failed.
    pub fn latest(shown: impl IntoIterator<Item = Self>) -> Option<Self> {
        shown.into_iter().max_by_key(|attempts| (attempts.count, attempts.reason.is_some()))
    }

    /// The attempts that nodes show while the lock of their record is held. Only nodes count that show this holder: others may be
    /// empty since they lost their data, or behind. `None` if they are no majority.
    pub fn beside<'a>(nodes: impl ExactSizeIterator<Item = Option<&'a Seen>>, holder: &Nonce) -> Option<Vec<Self>> {
        held_by(nodes, holder).map(|shown| shown.into_iter().filter_map(Self::of).collect())
    }

    /// The attempts that a node shows.
    pub fn of(seen: &Seen) -> Option<Self> {
        Self::read(&seen.done.as_ref()?.about.as_ref()?.result()?)
    }

    /// The same attempts, the last of which has failed for this reason. Control characters become spaces, and what is longer than
    /// [`Attempts::MAX_REASON_BYTES`] is cut.
    #[must_use]
    pub fn failed(&self, reason: &str) -> Self {
        Self { reason: Some(one_line(reason)).filter(|reason| !reason.is_empty()), ..self.clone() }
    }

    /// Tells if no further attempt is made.
    pub const fn are_used_up(&self) -> bool {
        self.count >= self.max
    }

    /// The result that keeps them.
    pub fn to_result(&self) -> RunResult {
        let reason = one_line(self.reason.as_deref().unwrap_or_default());
        let mut bytes = Vec::with_capacity(HEAD + reason.len());
        bytes.extend_from_slice(&self.count.to_be_bytes());
        bytes.extend_from_slice(&self.max.to_be_bytes());
        bytes.extend_from_slice(&self.since_unix_ms.to_be_bytes());
        bytes.extend_from_slice(&self.retry_unix_ms.to_be_bytes());
        bytes.extend_from_slice(reason.as_bytes());
        RunResult::required(bytes)
    }

    /// Reads what a store shows; `None` for a result that has none.
    pub fn read(result: &RunResult) -> Option<Self> {
        let (bytes, is_bytes) = (result.as_bytes(), result.kind() == ResultKind::Bytes);
        let (count, rest) = bytes.split_first_chunk().filter(|_| is_bytes)?;
        let (max, rest) = rest.split_first_chunk()?;
        let (since, rest) = rest.split_first_chunk()?;
        let (retry, reason) = rest.split_first_chunk()?;
        let attempts = Self {
            count: u32::from_be_bytes(*count),
            max: u32::from_be_bytes(*max),
            since_unix_ms: u64::from_be_bytes(*since),
            retry_unix_ms: u64::from_be_bytes(*retry),
            reason: None,
        };
        // Nobody but us writes there; what is longer or has control characters is still no reason to print.
        Some(attempts.failed(core::str::from_utf8(reason).ok()?)).filter(|attempts| attempts.count > 0)
    }
}

fn one_line(reason: &str) -> String {
    let mut line = String::new();
    for char in reason.chars().map(|char| if char.is_control() { ' ' } else { char }) {
        if line.len() + char.len_utf8() > Attempts::MAX_REASON_BYTES {
            break;
        }
        line.push(char);
    }
    line.trim().into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;
    use alloc::vec;

    const TWO: AttemptLimit = AttemptLimit { max: NonZeroU32::new(2).unwrap(), retry_after: MINUTE };
    const MINUTE: Duration = Duration::from_secs(60);

    fn begun(next: NextAttempt) -> Attempts {
        let NextAttempt::Begin(attempts) = next else { panic!("{next:?}") };
        attempts
    }

    #[test]
    fn attempts_are_counted_until_they_are_used_up() {
        let first = begun(Attempts::next([], TWO, 1_000));
        assert_eq!(first, Attempts { count: 1, max: 2, since_unix_ms: 1_000, retry_unix_ms: 61_000, reason: None });
        assert_eq!(Attempts::next([first.clone()], TWO, 60_999), NextAttempt::Later(first.clone()));
        let second = begun(Attempts::next([first.failed("no disk")], TWO, 61_000));
        assert_eq!((second.count, second.since_unix_ms, second.reason.clone()), (2, 1_000, None));
        assert!(second.are_used_up() && !first.are_used_up());
        let shown = [first.clone(), second.clone(), first.clone()];
        assert_eq!(Attempts::next(shown, TWO, 62_000), NextAttempt::GivenUp(second.clone()), "before the pause, too");
        let failed = [second.failed("no disk"), second.clone(), first.failed("no paper")];
        assert_eq!(
            Attempts::next(failed, TWO, 62_000),
            NextAttempt::GivenUp(second.failed("no disk")),
            "the last node has missed the reason"
        );
        let more = AttemptLimit { max: NonZeroU32::new(3).unwrap(), ..TWO };
        assert_eq!(begun(Attempts::next([second], more, 200_000)).count, 3, "more were allowed");
        assert_eq!(begun(Attempts::next([first], TWO, 500)).count, 2, "the clock was set back");
    }

    #[test]
    fn without_a_pause_the_next_one_begins_at_once() {
        let at_once = AttemptLimit { retry_after: Duration::ZERO, ..TWO };
        let first = begun(Attempts::next([], at_once, 1_000));
        assert_eq!(begun(Attempts::next([first], at_once, 1_000)).count, 2);
    }

    #[test]
    fn limits_that_cannot_be_are_refused() {
        let run = RunOptions::default();
        let of = |max, retry_after| AttemptLimit::new(max, retry_after, &run);
        assert_eq!(of(None, None), Ok(None));
        assert_eq!(of(Some(2), Some(MINUTE)), Ok(Some(TWO)));
        assert_eq!(of(Some(2), None), Ok(Some(AttemptLimit { retry_after: Duration::ZERO, ..TWO })));
        for (refused, why) in [
            (of(None, Some(MINUTE)), "a pause between attempts needs a number of attempts"),
            (of(Some(0), None), "with 0 attempts the work would never begin"),
            (of(Some(2), Some(run.keep)), "the pause of 604800 s (7 d) between attempts has to be shorter"),
            (AttemptLimit::new(Some(2), None, &RunOptions { even_if_done: true, ..run }), "leave one of them out"),
        ] {
            assert!(refused.as_ref().is_err_and(|message| message.contains(why)), "{refused:?}");
        }
    }

    #[test]
    fn a_record_is_these_bytes_and_reads_back() {
        let attempts = Attempts { count: 2, max: 3, since_unix_ms: 0x0102, retry_unix_ms: 0x0304, reason: None };
        let bytes = [0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 0, 0, 3, 4];
        assert_eq!(attempts.to_result().as_bytes(), bytes);
        assert_eq!(Attempts::read(&attempts.to_result()), Some(attempts.clone()));
        let failed = attempts.failed("ValueError: é");
        assert_eq!(failed.to_result().as_bytes(), [&bytes[..], "ValueError: é".as_bytes()].concat());
        assert_eq!(Attempts::read(&failed.to_result()), Some(failed));
        let of = |bytes: &[u8]| Attempts::read(&RunResult::bytes(bytes).unwrap());
        for bad in [vec![], vec![1; 23], vec![0; 24], [&bytes[..], b"\xff"].concat()] {
            assert_eq!(of(&bad), None);
        }
        assert_eq!(Attempts::read(&RunResult::output(&bytes).unwrap()), None, "the output of a command");
    }

    #[test]
    fn reasons_are_one_line_of_bounded_length() {
        let attempts = begun(Attempts::next([], TWO, 0));
        let reason = |text: &str| attempts.failed(text).reason;
        assert_eq!(reason(" no\ndisk\u{1b}[31m\0 "), Some("no disk [31m".to_string()));
        assert_eq!(reason("\n"), None);
        assert_eq!(reason(&"x".repeat(300)).map(|kept| kept.len()), Some(256));
        assert_eq!(
            reason(&["x".repeat(255).as_str(), "é"].concat()).map(|kept| kept.len()),
            Some(255),
            "no half character"
        );
    }
}
