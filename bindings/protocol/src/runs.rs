//! The interface `runs`: the names of work that is done once, and its results.

use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;

use leasehold_core::{self as core_, About, Resource, period_key};

use crate::Component;
use crate::settings::refused;
use crate::wit::runs as wit;
use crate::wit::types::{ConfigError, OtherError, ResultKind, RunRecord, RunResult};

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
