//! Parsers that are private, for the fuzzers of `testing/fuzz`: no part of what is promised, and in no build without the
//! feature `fuzzing`.

#[cfg(feature = "dynamodb")]
use crate::aws::EnvVars;
#[cfg(feature = "dynamodb")]
pub use crate::aws::profiles::fuzzing::{Properties, profiles};
#[cfg(any(feature = "dynamodb", feature = "http"))]
use crate::error::Error;
#[cfg(feature = "dynamodb")]
pub use crate::transport::dynamodb::fuzzing::{Found, command_line, is_asked_for_keys, keys};
#[cfg(feature = "sqlite")]
pub use crate::transport::sqlite::fuzzing::{Cell, read_back, written};
#[cfg(any(feature = "dynamodb", feature = "http"))]
use crate::url::StoreUrl;

/// A url of cloud storage, in an environment of its own.
///
/// # Errors
/// Those of the parser.
#[cfg(feature = "objects")]
pub fn objects_url(
    url: &str,
    variable: impl Fn(&str) -> Option<String> + Send + Sync + 'static,
) -> Result<StoreUrl, Error> {
    crate::url::objects::ObjectsUrl::parse(url, &EnvVars::new(variable)).map(StoreUrl::Objects)
}

/// A url of DynamoDB, in an environment of its own.
///
/// # Errors
/// Those of the parser.
#[cfg(feature = "dynamodb")]
pub fn dynamodb_url(
    url: &str,
    variable: impl Fn(&str) -> Option<String> + Send + Sync + 'static,
) -> Result<StoreUrl, Error> {
    crate::url::dynamodb::DynamodbUrl::parse(url, &EnvVars::new(variable)).map(StoreUrl::Dynamodb)
}

/// A url of a Redis behind HTTP, in an environment of its own.
///
/// # Errors
/// Those of the parser.
#[cfg(feature = "http")]
pub fn http_url(url: &str, variable: impl Fn(&str) -> Option<String>) -> Result<StoreUrl, Error> {
    crate::url::http::HttpUrl::parse(url, variable).map(StoreUrl::Http)
}
