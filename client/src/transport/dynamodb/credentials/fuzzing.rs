//! Searches for keys with made-up answers, for the fuzzers of `testing/fuzz`.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use http::Response;
use tokio::runtime::Builder;

use super::environment::{self, Environment};
use super::{PATIENCE, chain};
use crate::aws::EnvVars;
use crate::host::sync::Mutex;
use crate::transport::credentials::command::Program;

/// Status and body.
type Answer = (u16, Vec<u8>);

/// Answers for the requests, in order, and then none.
#[derive(Clone, Default)]
pub(in crate::transport) struct Answers(Arc<Mutex<VecDeque<Answer>>>);

impl Answers {
    pub(in crate::transport) fn next(&self) -> Result<Response<Bytes>, String> {
        let next = self.0.lock().pop_front();
        let (status, body) = next.ok_or("nobody answers")?;
        Response::builder().status(status).body(Bytes::from(body)).map_err(|error| error.to_string())
    }
}

/// Keys that were found.
#[derive(Clone, PartialEq, Eq)]
pub struct FoundKeys {
    /// The id, the secret, and the token if there is one.
    pub parts: Vec<String>,
    /// When they expire.
    pub expires_unix_ms: Option<u64>,
    /// Their debug output.
    pub shown: String,
}

/// Searches for keys in this environment, with these answers.
///
/// # Errors
/// The error message of the search.
pub fn keys(
    profile: Option<&str>,
    variable: impl Fn(&str) -> Option<String> + Send + Sync + 'static,
    answers: Vec<Answer>,
) -> Result<FoundKeys, String> {
    let answers = Answers(Arc::new(Mutex::new(answers.into())));
    let environment = Environment::answered(EnvVars::new(variable), profile, answers);
    let runtime = Builder::new_current_thread().enable_time().build().map_err(|error| error.to_string())?;
    let keys = runtime.block_on(chain::search(&environment)).map_err(|why| why.to_string())?;
    let shown = format!("{keys:?}");
    let mut parts = vec![keys.access_key_id.clone(), keys.secret_access_key.as_str().to_owned()];
    parts.extend(keys.session_token.as_ref().map(|token| token.as_str().to_owned()));
    Ok(FoundKeys { parts, expires_unix_ms: keys.expires_unix_ms, shown })
}

/// The words of a `credential_process`.
///
/// # Errors
/// The line cannot be parsed.
pub fn command_line(line: &str) -> Result<Vec<String>, String> {
    Program::parse(line, PATIENCE).map(Program::into_words)
}

/// Tells if requests for keys may go to this address.
pub fn is_asked_for_keys(url: &str) -> bool {
    url.parse().is_ok_and(|url| environment::is_asked(&url))
}
