//! Tokens of Google.

use std::time::Duration;

use reqsign_core::time::Timestamp;
use reqsign_core::{Context, Env, ProvideCredential, ProvideCredentialDyn};
use reqsign_google as google;
use zeroize::Zeroizing;

use super::oauth::{RULES, context};
use super::{CloudKeys, Secret};
use crate::transport::credentials::sender::Sender;
use crate::transport::credentials::{NoKeys, PATIENCE, Source};

const FILE: &str = "GOOGLE_APPLICATION_CREDENTIALS";
const ADVICE: &str = "; name a file in GOOGLE_APPLICATION_CREDENTIALS, give the machine a service account, or run \
                      `gcloud auth application-default login`";
const REFUSED: &str = "; this is a refusal, and waiting does not help: renew the file, or the right of its account";

/// Searches where Google's own tools do.
pub(in crate::transport::objects) struct Google {
    sender: Sender,
    context: Context,
}

type Provider = Box<dyn ProvideCredentialDyn<Credential = google::Credential>>;

impl Google {
    pub(super) fn new(env: impl Env) -> Self {
        Self::with(env, Sender::new(RULES))
    }

    pub(super) fn with(env: impl Env, sender: Sender) -> Self {
        Self { context: context(env, sender.clone()), sender }
    }

    async fn token(&self, provider: &Provider) -> reqsign_core::Result<Option<google::Token>> {
        let found = provider.provide_credential_dyn(&self.context).await?;
        match found {
            // Its signer would get a token for each request.
            Some(google::Credential { service_account: Some(account), token: None, .. }) => {
                let exchange = google::ServiceAccountTokenCredentialProvider::new(account);
                Ok(exchange.provide_credential(&self.context).await?.and_then(|found| found.token))
            }
            found => Ok(found.and_then(|found| found.token)),
        }
    }
}

impl Source for Google {
    type Keys = CloudKeys;
    const CLOUD: &'static str = "Google";

    fn patience(&self) -> Duration {
        PATIENCE
    }

    fn waiting_for(&self) -> String {
        self.sender.waiting_for()
    }

    async fn search(&self) -> Result<CloudKeys, NoKeys> {
        self.sender.reset();
        let providers: [(&str, Provider); 3] = [
            (FILE, Box::new(google::EnvCredentialProvider::new())),
            ("gcloud's login", Box::new(google::WellKnownCredentialProvider::new())),
            ("the machine's service account", Box::new(google::VmMetadataCredentialProvider::new())),
        ];
        let mut tried = Vec::new();
        for (name, provider) in providers {
            let why = match self.token(&provider).await {
                Ok(Some(token)) => return Ok(found(token, name)),
                Ok(None) if name == FILE => format!("{FILE} is not set"),
                Ok(None) => format!("{name}: there is none"),
                // A file that is named and does not serve ends the search: going on would mean asking as somebody else.
                Err(error) if name == FILE => {
                    let what = format!("no Google credentials: {FILE}: {}", self.sender.describe(&error));
                    return Err(NoKeys::of_named_source(what, REFUSED, &self.sender));
                }
                Err(error) => format!("{name}: {}", self.sender.describe(&error)),
            };
            tried.push(why);
        }
        Err(NoKeys::missing(format!("no Google credentials: {}{ADVICE}", tried.join("; "))))
    }
}

fn found(token: google::Token, source: &str) -> CloudKeys {
    let unix_ms = |at: Timestamp| u64::try_from(at.as_second()).unwrap_or(0).saturating_mul(1_000);
    CloudKeys {
        secret: Secret::Token(Zeroizing::new(token.access_token)),
        expires_unix_ms: token.expires_at.map(unix_ms),
        source: source.to_owned(),
    }
}
