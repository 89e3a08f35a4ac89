//! Tokens of Google.

use std::time::Duration;

use reqsign_core::{Context, Env, ProvideCredential};
use reqsign_google as google;
use zeroize::Zeroizing;

use super::sender::{PATIENCE, context};
use super::{Found, Secret};
use crate::transport::dynamodb::credentials::{NoKeys, Source};

/// Searches where Google's own tools do.
#[derive(Debug)]
pub(crate) struct Google {
    pub(super) context: Context,
}

impl Google {
    pub(super) fn new(env: impl Env) -> Self {
        Self { context: context(env, None) }
    }

    async fn token(&self) -> reqsign_core::Result<Option<google::Token>> {
        let found = google::DefaultCredentialProvider::new().provide_credential(&self.context).await?;
        match found {
            Some(google::Credential { service_account: Some(account), token: None, .. }) => {
                let exchange = google::ServiceAccountTokenCredentialProvider::new(account);
                Ok(exchange.provide_credential(&self.context).await?.and_then(|found| found.token))
            }
            found => Ok(found.and_then(|found| found.token)),
        }
    }
}

impl Source for Google {
    type Keys = Found;
    const CLOUD: &'static str = "Google";

    fn patience(&self) -> Duration {
        PATIENCE
    }

    fn waiting_for(&self) -> String {
        "a source of tokens".to_owned()
    }

    async fn search(&self) -> Result<Found, NoKeys> {
        // Not the context of an error, where tokens may stand.
        let token = self.token().await.map_err(|error| {
            NoKeys::missing(format!("no Google credentials: the source of tokens has failed ({})", error.kind()))
        })?;
        let token = token.ok_or_else(|| {
            NoKeys::missing(
                "no Google credentials: name a file in GOOGLE_APPLICATION_CREDENTIALS, or give the machine a service \
                 account, or run `gcloud auth application-default login`",
            )
        })?;
        let unix_ms = |at: reqsign_core::time::Timestamp| u64::try_from(at.as_second()).unwrap_or(0) * 1_000;
        Ok(Found {
            secret: Secret::Token(Zeroizing::new(token.access_token)),
            expires_unix_ms: token.expires_at.map(unix_ms),
            source: "Google's environment and tools",
        })
    }
}
