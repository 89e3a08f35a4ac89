//! Generated from `wit/leasehold.wit` by `cargo xtask component --bless`. Do not edit.

use crate::wit::types::{ConfigError, RunRecord};
use crate::face::*;

/// What there is beside values.
pub(crate) trait Guest {
    /// The resource of one occurrence of a job: `name@key`. The key tells one occurrence from the others: a date, an
    /// invoice, a batch; without one, the job has one occurrence at a time. `@` and `%` within a part are written `%40` and
    /// `%25`, so that no two pairs share a resource. Fails for an empty name or key, a control character, and more than
    /// 1,024 bytes together.
    fn run_resource(name: String, key: Option<String>) -> Result<String, ConfigError>;
    /// The key of a job that runs once in every period: the start of the period in UTC, such as `2026-11-24T00:00:00Z`.
    /// Periods begin `offset-ms` after the start of 1970, a Thursday, and follow one another. Fails for a period below 1,000
    /// or above 3,153,600,000,000 (100 years), and an offset that is not below the period.
    fn period_key(unix_ms: u64, every_ms: u64, offset_ms: u64) -> Result<String, ConfigError>;
    /// Reads the record of a run, as a completion shows it; absent for one that is damaged, or of a later version.
    fn read_about(about: Vec<u8>) -> Option<RunRecord>;
}

/// Calls a function of the interface by its name.
///
/// # Errors
/// Whatever the function refuses, and arguments that it does not take.
pub fn call<S: Source, W: Sink>(name: &str, args: &[S], to: &W) -> Result<W::Value, Problem> {
    match name {
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
        "read-about" => {
            let [about] = arguments(args)?;
            let about = argument(about, "about")?;
            let made = <crate::Component as Guest>::read_about(about);
            Ok(made.write(to))
        }
        _ => Err(Problem::no_call(name)),
    }
}
