//! The interface `runs`: the names of work that is done once, its results, and the attempts at it.

use alloc::string::String;
use alloc::vec::Vec;
use core::num::NonZeroU32;
use core::time::Duration;

use leasehold_core::op::{self, Applied, Seen};
use leasehold_core::{self as core_, About, AttemptLimit, Attempts, NextAttempt, Resource, period_key};

use crate::Component;
use crate::ops::{all, ms_down};
use crate::outcomes::{nonce, outcome};
use crate::settings::{refused, run_options};
use crate::wit::ops::Outcome;
use crate::wit::runs as wit;
use crate::wit::types::{ConfigError, OtherError, ResultKind, RunOptions, RunRecord, RunResult, ZeroLimit};

impl wit::Guest for Component {
    fn run_resource(name: String, key: Option<String>) -> Result<String, ConfigError> {
        Resource::of_run(&name, key.as_deref()).map(|resource| resource.as_str().into()).map_err(refused)
    }

    fn period_key(unix_ms: u64, every_ms: u64, offset_ms: u64) -> Result<String, ConfigError> {
        period_key(unix_ms, Duration::from_millis(every_ms), Duration::from_millis(offset_ms)).map_err(refused)
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
        found.into_iter().max_by_key(|attempts| attempts.count).map(lowered)
    }

    fn fail_attempt(attempts: wit::Attempts, reason: String) -> wit::Attempts {
        lowered(given(attempts).failed(&reason))
    }

    fn keep_attempts(attempts: wit::Attempts) -> RunResult {
        shown(&given(attempts).to_result())
    }
}

/// The record of a node, if it has answered.
fn contents(said: Outcome) -> Option<Seen> {
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
