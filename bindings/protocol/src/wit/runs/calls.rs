//! Generated from `wit/leasehold.wit` by `cargo xtask component --bless`. Do not edit.

use crate::wit::ops::{Outcome, Seen};
use crate::wit::types::{ConfigError, LockOptions, Now, RunOptions, RunRecord, RunResult};
use super::{AttemptLimit, Attempts, NextAttempt, Occurrence, ReplaceAnswer, ReplaceStep, RunPlan, ZoneOffset};
use crate::face::*;

/// What there is beside values.
pub(crate) trait Guest {
    /// See [`GuestReplacement`].
    #[allow(dead_code)]
    type Replacement: GuestReplacement;
    /// The occurrence of a job that these settings mean at that time, on a quorum or in a single store, and perhaps for a request that runs
    /// although the work is done. Where `tz` is given, the host gives the offsets of that zone that counted in the last 172,800,000 ms (2
    /// days), oldest first; the first one may have counted before, and begins there. Fails for settings that contradict each
    /// other, or that cannot be.
    fn plan_run(name: String, occurrence: Occurrence, unix_ms: u64, offsets: Vec<ZoneOffset>, is_quorum: bool, even_if_done: bool) -> Result<RunPlan, ConfigError>;
    /// The resource of one occurrence of a job: `name@key`. The key tells one occurrence from the others: a date, an
    /// invoice, a batch; without one, the job has one occurrence at a time. `@` and `%` within a part are written `%40` and
    /// `%25`, so that no two pairs share a resource. Fails for an empty name or key, a control character, and more than
    /// 1,024 bytes together.
    fn run_resource(name: String, key: Option<String>) -> Result<String, ConfigError>;
    /// The key of a job that runs once in every period: the start of the period in UTC, such as `2026-11-24T00:00:00Z`.
    /// Periods begin `offset-ms` after the start of 1970, a Thursday, and follow one another. Fails for a period below 1,000
    /// or above 3,153,600,000,000 (100 years), and an offset that is not below the period.
    fn period_key(unix_ms: u64, every_ms: u64, offset_ms: u64) -> Result<String, ConfigError>;
    /// The state of a run, or of a lock, that `client.take-read` shows: the record that most nodes show, unless a majority shows none, and
    /// the latest completion. Its counter is the token that a majority may have acknowledged. Nodes that have not answered show nothing.
    fn read_run(read: Vec<Outcome>) -> Seen;
    /// Reads the record of a run, as a completion shows it; absent for one that is damaged, or of a later version.
    fn read_about(about: Vec<u8>) -> Option<RunRecord>;
    /// The limit that these settings of a run ask for; absent where attempts are not counted. Fails for settings that contradict each
    /// other, or that cannot be.
    fn limit_attempts(max: Option<u32>, retry_after_ms: Option<u64>, run: RunOptions) -> Result<Option<AttemptLimit>, ConfigError>;
    /// The resource whose completion has the attempts at a run. Fails where the name of the run has more than 1,015 bytes.
    fn attempts_resource(run: String) -> Result<String, ConfigError>;
    /// Decides if another attempt may begin at that time, by what `client.take-read` has of the count. The holder is that of the count, by
    /// `client.nonce`. Fails for a limit of zero.
    fn count_attempt(read: Vec<Outcome>, holder: Vec<u8>, limit: AttemptLimit, unix_ms: u64) -> Result<NextAttempt, ConfigError>;
    /// The attempts that `client.take-read` shows: of the nodes that show this holder, if they are a majority, or of all.
    fn read_attempts(read: Vec<Outcome>, holder: Option<Vec<u8>>) -> Option<Attempts>;
    /// The same attempts, the last of which has failed for this reason. Control characters become spaces, and what is longer than 256
    /// bytes is cut.
    fn fail_attempt(attempts: Attempts, reason: String) -> Attempts;
    /// The result by which `client.finish` keeps them. A store without room for it is not given the completion alone.
    fn keep_attempts(attempts: Attempts) -> RunResult;
    /// The resource whose completion has the newest request for a run, among those that replace its runner. Fails where the name of the
    /// run has more than 1,017 bytes, for options that no acquisition takes, and for a request that counts attempts, watches the holder,
    /// or does not wait.
    fn newest_resource(run: String, options: LockOptions, counts_attempts: bool) -> Result<String, ConfigError>;
}

/// Calls a function of the interface by its name.
///
/// # Errors
/// Whatever the function refuses, and arguments that it does not take.
pub fn call<S: Source, W: Sink>(name: &str, args: &[S], to: &W) -> Result<W::Value, Problem> {
    match name {
        "plan-run" => {
            let [name, occurrence, unix_ms, offsets, is_quorum, even_if_done] = arguments(args)?;
            let name = argument(name, "name")?;
            let occurrence = argument(occurrence, "occurrence")?;
            let unix_ms = argument(unix_ms, "unix-ms")?;
            let offsets = argument(offsets, "offsets")?;
            let is_quorum = argument(is_quorum, "is-quorum")?;
            let even_if_done = argument(even_if_done, "even-if-done")?;
            let made = <crate::Component as Guest>::plan_run(name, occurrence, unix_ms, offsets, is_quorum, even_if_done)?;
            Ok(made.write(to))
        }
        "run-resource" => {
            let [name, key] = arguments(args)?;
            let name = argument(name, "name")?;
            let key = argument(key, "key")?;
            let made = <crate::Component as Guest>::run_resource(name, key)?;
            Ok(made.write(to))
        }
        "period-key" => {
            let [unix_ms, every_ms, offset_ms] = arguments(args)?;
            let unix_ms = argument(unix_ms, "unix-ms")?;
            let every_ms = argument(every_ms, "every-ms")?;
            let offset_ms = argument(offset_ms, "offset-ms")?;
            let made = <crate::Component as Guest>::period_key(unix_ms, every_ms, offset_ms)?;
            Ok(made.write(to))
        }
        "read-run" => {
            let [read] = arguments(args)?;
            let read = argument(read, "read")?;
            let made = <crate::Component as Guest>::read_run(read);
            Ok(made.write(to))
        }
        "read-about" => {
            let [about] = arguments(args)?;
            let about = argument(about, "about")?;
            let made = <crate::Component as Guest>::read_about(about);
            Ok(made.write(to))
        }
        "limit-attempts" => {
            let [max, retry_after_ms, run] = arguments(args)?;
            let max = argument(max, "max")?;
            let retry_after_ms = argument(retry_after_ms, "retry-after-ms")?;
            let run = argument(run, "run")?;
            let made = <crate::Component as Guest>::limit_attempts(max, retry_after_ms, run)?;
            Ok(made.write(to))
        }
        "attempts-resource" => {
            let [run] = arguments(args)?;
            let run = argument(run, "run")?;
            let made = <crate::Component as Guest>::attempts_resource(run)?;
            Ok(made.write(to))
        }
        "count-attempt" => {
            let [read, holder, limit, unix_ms] = arguments(args)?;
            let read = argument(read, "read")?;
            let holder = argument(holder, "holder")?;
            let limit = argument(limit, "limit")?;
            let unix_ms = argument(unix_ms, "unix-ms")?;
            let made = <crate::Component as Guest>::count_attempt(read, holder, limit, unix_ms)?;
            Ok(made.write(to))
        }
        "read-attempts" => {
            let [read, holder] = arguments(args)?;
            let read = argument(read, "read")?;
            let holder = argument(holder, "holder")?;
            let made = <crate::Component as Guest>::read_attempts(read, holder);
            Ok(made.write(to))
        }
        "fail-attempt" => {
            let [attempts, reason] = arguments(args)?;
            let attempts = argument(attempts, "attempts")?;
            let reason = argument(reason, "reason")?;
            let made = <crate::Component as Guest>::fail_attempt(attempts, reason);
            Ok(made.write(to))
        }
        "keep-attempts" => {
            let [attempts] = arguments(args)?;
            let attempts = argument(attempts, "attempts")?;
            let made = <crate::Component as Guest>::keep_attempts(attempts);
            Ok(made.write(to))
        }
        "newest-resource" => {
            let [run, options, counts_attempts] = arguments(args)?;
            let run = argument(run, "run")?;
            let options = argument(options, "options")?;
            let counts_attempts = argument(counts_attempts, "counts-attempts")?;
            let made = <crate::Component as Guest>::newest_resource(run, options, counts_attempts)?;
            Ok(made.write(to))
        }
        _ => Err(Problem::no_call(name)),
    }
}

/// Its calls.
pub(crate) trait GuestReplacement: Sized {
    /// A request that waits for so long in all, or without an end. Its first step is `look`.
    fn create(even_if_done: bool, wait_ms: Option<u64>, now: Now) -> Replacement;
    /// The step after this answer. An answer that does not fit the last step ends the request with `fail`.
    fn next(&self, answer: ReplaceAnswer, now: Now) -> ReplaceStep;
}

/// A request that replaces the runner of a run: the newest request gets the run, and its runner is asked to end. Do what `next`
/// returns, and give what has come of it to the following call. Before every step but `take-number`, `read-newest`, `count-newest`
/// and `begin`, release the lease of the run if there is one.
pub struct Replacement(pub(crate) crate::runs::Replacement);

impl Replacement {
    pub(crate) fn new(made: crate::runs::Replacement) -> Self {
        Self(made)
    }

    /// Makes one by the name of a static function.
    ///
    /// # Errors
    /// Whatever the function refuses, and arguments that it does not take.
    pub fn make<S: Source>(name: &str, args: &[S]) -> Result<Self, Problem> {
        match name {
            "create" => {
                let [even_if_done, wait_ms, now] = arguments(args)?;
                let even_if_done = argument(even_if_done, "even-if-done")?;
                let wait_ms = argument(wait_ms, "wait-ms")?;
                let now = argument(now, "now")?;
                Ok(<crate::runs::Replacement as GuestReplacement>::create(even_if_done, wait_ms, now))
            }
            _ => Err(Problem::no_call(name)),
        }
    }

    /// Calls a method by its name.
    ///
    /// # Errors
    /// Whatever the method refuses, and arguments that it does not take.
    pub fn call<S: Source, W: Sink>(&self, name: &str, args: &[S], to: &W) -> Result<W::Value, Problem> {
        match name {
            "next" => {
                let [answer, now] = arguments(args)?;
                let answer = argument(answer, "answer")?;
                let now = argument(now, "now")?;
                let made = self.0.next(answer, now);
                Ok(made.write(to))
            }
            _ => Err(Problem::no_call(name)),
        }
    }
}
