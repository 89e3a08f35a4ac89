//! The interface `runs`: the names of work that is done once, its results, and the attempts at it.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use core::num::NonZeroU32;
use core::time::Duration;

use leasehold_core::op::{self, Applied, Seen};
use leasehold_core::schedule::{Occurrence, OccurrenceError, Offset, ScheduleError};
use leasehold_core::view::View;
use leasehold_core::{
    self as core_, About, AttemptLimit, Attempts, NextAttempt, Resource, Wait, check_replace, period_key,
};

use crate::Component;
use crate::answers;
use crate::ops::{all, ms_down};
use crate::outcomes::{nonce, outcome};
pub(crate) use crate::replacement::Replacement;
use crate::settings::{options, refused, run_options};
use crate::wit::ops::{Outcome, Seen as Shown};
use crate::wit::runs as wit;
use crate::wit::types::{
    ConfigError, LockOptions, OtherError, ResultKind, RunOptions, RunRecord, RunResult, ZeroLimit,
};

impl wit::Guest for Component {
    type Replacement = Replacement;

    fn plan_run(
        name: String,
        occurrence: wit::Occurrence,
        unix_ms: u64,
        offsets: Vec<wit::ZoneOffset>,
        is_quorum: bool,
        even_if_done: bool,
    ) -> Result<wit::RunPlan, ConfigError> {
        let occurrence = meant(occurrence);
        let present = occurrence.present(unix_ms, &all(offsets, offset)).map_err(unfit)?;
        let resource = Resource::of_run(&name, present.key.as_deref()).map_err(refused)?.as_str().into();
        let keep = occurrence.kept(&present, is_quorum, even_if_done).map_err(unfit)?;
        Ok(wit::RunPlan { resource, keep_ms: ms_down(keep) })
    }

    fn run_resource(name: String, key: Option<String>) -> Result<String, ConfigError> {
        Resource::of_run(&name, key.as_deref()).map(|resource| resource.as_str().into()).map_err(refused)
    }

    fn period_key(unix_ms: u64, every_ms: u64, offset_ms: u64) -> Result<String, ConfigError> {
        period_key(unix_ms, Duration::from_millis(every_ms), Duration::from_millis(offset_ms)).map_err(refused)
    }

    fn read_run(read: Vec<Outcome>) -> Shown {
        let view = View::new(all(read, contents));
        let holding = view.current().map(|shown| Box::new(shown.holding));
        answers::seen(&Seen { holding, done: view.done().map(Box::new) })
    }

    fn read_about(about: Vec<u8>) -> Option<RunRecord> {
        About::read(&about).map(|about| RunRecord {
            began_unix_ms: about.began_unix_ms(),
            attempts: about.attempts(),
            run_result: about.result().map(|result| shown(&result)),
        })
    }

    fn limit_attempts(
        max: Option<u32>,
        retry_after_ms: Option<u64>,
        run: RunOptions,
    ) -> Result<Option<wit::AttemptLimit>, ConfigError> {
        let limit = AttemptLimit::new(max, retry_after_ms.map(Duration::from_millis), &run_options(run));
        let limit = limit.map_err(|message| ConfigError::Other(OtherError { message }))?;
        Ok(limit.map(|limit| wit::AttemptLimit { max: limit.max.get(), retry_after_ms: ms_down(limit.retry_after) }))
    }

    fn attempts_resource(run: String) -> Result<String, ConfigError> {
        let record = Resource::new(&run).and_then(|run| run.of_attempts());
        record.map(|record| record.as_str().into()).map_err(refused)
    }

    fn count_attempt(
        read: Vec<Outcome>,
        holder: Vec<u8>,
        limit: wit::AttemptLimit,
        unix_ms: u64,
    ) -> Result<wit::NextAttempt, ConfigError> {
        let none = || ConfigError::ZeroLimit(ZeroLimit { what: "max".into() });
        let max = NonZeroU32::new(limit.max).ok_or_else(none)?;
        let limit = AttemptLimit { max, retry_after: Duration::from_millis(limit.retry_after_ms) };
        let nodes = all(read, contents);
        let held = nonce(&holder).and_then(|holder| Attempts::beside(nodes.iter().map(Option::as_ref), &holder));
        let Some(held) = held else { return Ok(wit::NextAttempt::Unsure) };
        Ok(match Attempts::next(held, limit, unix_ms) {
            NextAttempt::Begin(attempts) => wit::NextAttempt::Begin(lowered(attempts)),
            NextAttempt::Later(attempts) => wit::NextAttempt::Later(lowered(attempts)),
            NextAttempt::GivenUp(attempts) => wit::NextAttempt::GivenUp(lowered(attempts)),
        })
    }

    fn read_attempts(read: Vec<Outcome>, holder: Option<Vec<u8>>) -> Option<wit::Attempts> {
        let nodes = all(read, contents);
        let found = match holder {
            Some(holder) => Attempts::beside(nodes.iter().map(Option::as_ref), &nonce(&holder)?)?,
            None => nodes.iter().flatten().filter_map(Attempts::of).collect(),
        };
        Attempts::latest(found).map(lowered)
    }

    fn fail_attempt(attempts: wit::Attempts, reason: String) -> wit::Attempts {
        lowered(given(attempts).failed(&reason))
    }

    fn keep_attempts(attempts: wit::Attempts) -> RunResult {
        shown(&given(attempts).to_result())
    }

    fn newest_resource(run: String, options_: LockOptions, counts_attempts: bool) -> Result<String, ConfigError> {
        let wait = options(options_)?.wait();
        check_replace(counts_attempts, matches!(wait, Wait::Watch(_)), wait != Wait::Once)
            .map_err(|message| ConfigError::Other(OtherError { message }))?;
        let record = Resource::new(&run).and_then(|run| run.of_newest());
        record.map(|record| record.as_str().into()).map_err(refused)
    }
}

fn meant(occurrence: wit::Occurrence) -> Occurrence {
    let wit::Occurrence { key, every_ms, offset_ms, at, tz, cron, cooldown_ms, keep_ms } = occurrence;
    let length = |ms: Option<u64>| ms.map(Duration::from_millis);
    let offset = length(offset_ms).unwrap_or_default();
    Occurrence {
        key,
        every: length(every_ms),
        offset,
        at,
        tz,
        cron,
        cooldown: length(cooldown_ms),
        keep: length(keep_ms),
    }
}

fn offset(of: wit::ZoneOffset) -> Offset {
    let wit::ZoneOffset { since_unix_ms, shown_ms } = of;
    let ms = |since: u64| i64::try_from(since).unwrap_or(i64::MAX);
    Offset { since_unix_ms, ahead_ms: ms(shown_ms).saturating_sub(ms(since_unix_ms)) }
}

fn unfit(error: OccurrenceError) -> ConfigError {
    if let OccurrenceError::Times(ScheduleError::Periods(error)) = error {
        return refused(error);
    }
    ConfigError::Other(OtherError { message: alloc::format!("{error}") })
}

/// The record of a node, if it has answered.
pub(crate) fn contents(said: Outcome) -> Option<Seen> {
    match outcome(said) {
        op::Outcome::Applied(Applied::Read(seen)) => Some(seen),
        op::Outcome::Applied(_) | op::Outcome::NotApplied(_) | op::Outcome::Unknown(_) => None,
    }
}

fn lowered(attempts: Attempts) -> wit::Attempts {
    let Attempts { count, max, since_unix_ms, retry_unix_ms, reason } = attempts;
    wit::Attempts { count, max, since_unix_ms, retry_unix_ms, reason }
}

fn given(attempts: wit::Attempts) -> Attempts {
    let wit::Attempts { count, max, since_unix_ms, retry_unix_ms, reason } = attempts;
    Attempts { count, max, since_unix_ms, retry_unix_ms, reason }
}

/// The result that a run is finished with.
pub(crate) fn result(result: Option<RunResult>) -> Result<Option<core_::RunResult>, ConfigError> {
    let Some(RunResult { kind, bytes }) = result else { return Ok(None) };
    let made = match kind {
        ResultKind::Bytes => core_::RunResult::bytes(&bytes),
        ResultKind::Output => core_::RunResult::output(&bytes),
        ResultKind::Json => match core::str::from_utf8(&bytes) {
            Ok(text) => core_::RunResult::json(text),
            Err(error) => {
                let message = alloc::format!("the result is no JSON: {error}");
                return Err(ConfigError::Other(OtherError { message }));
            }
        },
    };
    made.map(Some).map_err(refused)
}

fn shown(result: &core_::RunResult) -> RunResult {
    let kind = match result.kind() {
        core_::ResultKind::Bytes => ResultKind::Bytes,
        core_::ResultKind::Json => ResultKind::Json,
        core_::ResultKind::Output => ResultKind::Output,
    };
    RunResult { kind, bytes: result.as_bytes().into() }
}
