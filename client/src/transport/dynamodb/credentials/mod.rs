//! The keys that requests to AWS are signed with, searched as AWS's own tools do it ([`chain`]).

mod chain;
mod environment;
#[cfg(feature = "fuzzing")]
pub(crate) mod fuzzing;
mod roles;
#[cfg(test)]
mod tests;

use std::fmt;
use std::ops::Deref;
use std::time::Duration;

use leasehold_wire::sigv4;
use reqsign_aws_v4::Credential;

pub(crate) use self::environment::Environment;
pub(super) use crate::transport::credentials::PATIENCE;
use crate::transport::credentials::{self, Expiring, NoKeys, Source};

pub(crate) type CredentialCache = credentials::CredentialCache<Environment>;

impl Source for Environment {
    type Keys = Keys;
    const CLOUD: &'static str = "AWS";

    fn patience(&self) -> Duration {
        self.patience()
    }

    fn waiting_for(&self) -> String {
        self.waiting_for()
    }

    fn search(&self) -> impl Future<Output = Result<Keys, NoKeys>> {
        chain::search(self)
    }
}

/// The keys that requests are signed with.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Keys {
    pub(crate) signing: sigv4::Credentials,
    /// In milliseconds since 1970, by the clock of their source; `None` where they do not expire.
    pub(crate) expires_unix_ms: Option<u64>,
    /// The source of the keys, for messages.
    pub(crate) source: String,
}

impl Keys {
    /// # Errors
    /// A part of the keys is empty or has characters that it cannot have. The message does not repeat it.
    fn new(credential: Credential, source: impl Into<String>) -> Result<Self, String> {
        let Credential { access_key_id, secret_access_key, session_token, expires_in } = credential;
        let session_token = session_token.filter(|token| !token.is_empty());
        let signing = sigv4::Credentials { access_key_id, secret_access_key, session_token };
        let is_plain = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic());
        let parts = [
            ("access key id", Some(signing.access_key_id.as_str())),
            ("secret access key", Some(signing.secret_access_key.as_str())),
            ("session token", signing.session_token.as_deref()),
        ];
        for (what, part) in parts {
            if part.is_some_and(|part| !is_plain(part)) {
                return Err(format!("the {what} is empty, or has characters that no {what} has"));
            }
        }
        let expires_unix_ms = expires_in.map(|at| u64::try_from(at.as_second()).unwrap_or(0).saturating_mul(1_000));
        Ok(Self { signing, expires_unix_ms, source: source.into() })
    }
}

impl Deref for Keys {
    type Target = sigv4::Credentials;

    fn deref(&self) -> &sigv4::Credentials {
        &self.signing
    }
}

impl Expiring for Keys {
    fn expires_unix_ms(&self) -> Option<u64> {
        self.expires_unix_ms
    }

    fn are_the_same_as(&self, other: &Self) -> bool {
        self.signing == other.signing
    }

    fn source(&self) -> &str {
        &self.source
    }
}

impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keys")
            .field("access_key_id", &"...")
            .field("session_token", &self.session_token.as_ref().map(|_| "..."))
            .field("expires_unix_ms", &self.expires_unix_ms)
            .field("source", &self.source)
            .finish_non_exhaustive()
    }
}
