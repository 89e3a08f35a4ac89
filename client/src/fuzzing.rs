//! Parsers that are private, for the fuzzers of `testing/fuzz`: no part of what is promised, and in no build without the
//! feature `fuzzing`.

#[cfg(feature = "dynamodb")]
pub use crate::aws::profiles::fuzzing::{Properties, profiles};
use crate::error::Error;
#[cfg(feature = "dynamodb")]
pub use crate::transport::dynamodb::fuzzing::{FoundKeys, command_line, is_asked_for_keys, keys};
#[cfg(feature = "sqlite")]
pub use crate::transport::sqlite::fuzzing::{Cell, read_back, written};
use crate::url::StoreUrl;
use crate::url::environment::EnvVars;

/// Reads a url in an environment of its own.
///
/// # Errors
/// Those of the parser, and what is missing or wrong in that environment.
pub fn url(text: &str, variable: impl Fn(&str) -> Option<String> + Send + Sync + 'static) -> Result<StoreUrl, Error> {
    Ok(text.parse::<StoreUrl>()?.place_in(&EnvVars::new(variable))?.into())
}
