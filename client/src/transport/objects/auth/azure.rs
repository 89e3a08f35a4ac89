//! Keys and tokens of Azure, for Blob Storage and for Cosmos DB.

use std::time::Duration;

use leasehold_wire::objects::Service;
use reqsign_azure_storage as azure;
use reqsign_core::{Context, Env, ProvideCredential};
use zeroize::Zeroizing;

use super::sender::{PATIENCE, context};
use super::{Found, Secret};
use crate::transport::dynamodb::credentials::{NoKeys, Source};

/// The audience of tokens for Azure's storage, as a query or form writes it.
const OF_STORAGE: &str = "https%3A%2F%2Fstorage.azure.com";

/// The variables with a key of the account, and with its connection string.
struct Variables {
    keys: [&'static str; 2],
    connection_strings: [&'static str; 2],
}

const OF_BLOBS: Variables = Variables {
    keys: ["AZURE_STORAGE_KEY", "AZURE_STORAGE_ACCOUNT_KEY"],
    connection_strings: ["AZURE_STORAGE_CONNECTION_STRING", "AZURE_STORAGEBLOB_CONNECTIONSTRING"],
};
const OF_COSMOS: Variables = Variables {
    keys: ["AZURE_COSMOS_KEY", "COSMOS_KEY"],
    connection_strings: ["AZURE_COSMOS_CONNECTION_STRING", "COSMOS_CONNECTION_STRING"],
};

/// Searches where Azure's own tools do, and in the variables with keys first.
#[derive(Debug)]
pub(crate) struct Azure {
    service: Service,
    account: String,
    pub(super) context: Context,
}

impl Azure {
    pub(super) fn new(service: Service, account: &str, env: impl Env) -> Self {
        // Tokens for Cosmos DB are for one account.
        let audience = (service == Service::CosmosDb).then(|| account.to_owned());
        Self { service, account: account.to_owned(), context: context(env, audience) }
    }

    fn variable(&self, name: &str) -> Option<String> {
        self.context.env_var(name).map(|value| value.trim().to_owned()).filter(|value| !value.is_empty())
    }

    fn account_key(&self) -> Option<String> {
        let variables = if self.service == Service::CosmosDb { OF_COSMOS } else { OF_BLOBS };
        let key = variables.keys.iter().find_map(|name| self.variable(name));
        let connection = |name: &&str| key_of(&self.variable(name)?, &self.account);
        key.or_else(|| variables.connection_strings.iter().find_map(connection))
    }
}

/// The key in a connection string, unless that is of another account.
fn key_of(text: &str, account: &str) -> Option<String> {
    let part = |name: &str| {
        let mut pairs = text.split(';').filter_map(|pair| pair.trim().split_once('='));
        pairs.find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value.to_owned())
    };
    let named = part("AccountName").or_else(|| {
        let endpoint = part("AccountEndpoint")?;
        let host = endpoint.split_once("://").map_or(endpoint.as_str(), |(_, host)| host);
        host.split(['.', ':', '/']).next().map(str::to_owned)
    });
    part("AccountKey").filter(|_| named.as_deref() == Some(account))
}

impl Source for Azure {
    type Keys = Found;
    const CLOUD: &'static str = "Azure";

    fn patience(&self) -> Duration {
        PATIENCE
    }

    fn waiting_for(&self) -> String {
        "a source of tokens".to_owned()
    }

    async fn search(&self) -> Result<Found, NoKeys> {
        let found =
            |secret, expires_unix_ms| Found { secret, expires_unix_ms, source: "Azure's environment and tools" };
        if let Some(key) = self.account_key() {
            return Ok(found(Secret::AccountKey(Zeroizing::new(key)), None));
        }
        let chain = azure::DefaultCredentialProvider::builder().no_azure_cli();
        let chain = if self.service == Service::CosmosDb { chain.no_env() } else { chain };
        let mut credential = chain.build().provide_credential(&self.context).await.ok().flatten();
        if credential.is_none() {
            // Last, as it is the slowest: the login of a person.
            credential =
                azure::AzureCliCredentialProvider::new().provide_credential(&self.context).await.ok().flatten();
        }
        let token = |text: String| Zeroizing::new(text);
        let unix_ms = |at: reqsign_core::time::Timestamp| u64::try_from(at.as_second()).unwrap_or(0) * 1_000;
        match credential {
            Some(azure::Credential::SharedKey { account_key, .. }) => {
                Ok(found(Secret::AccountKey(token(account_key)), None))
            }
            Some(azure::Credential::SasToken { token: signature, .. }) => {
                Ok(found(Secret::AccessSignature(token(signature)), None))
            }
            Some(azure::Credential::BearerToken { token: text, expires_in }) => {
                Ok(found(Secret::Token(token(text)), expires_in.map(unix_ms)))
            }
            None => Err(NoKeys::missing(
                "no Azure credentials, or those that are set were refused: set the key of the account, or the variables of a \
                 workload identity or service principal, or give the machine an identity, or run `az login`",
            )),
        }
    }
}

/// The same request for a token, for an account of Cosmos DB: the providers of `reqsign` ask for tokens of storage only.
pub(super) fn for_account(text: &str, account: &str) -> String {
    text.replace(OF_STORAGE, &format!("https%3A%2F%2F{account}.documents.azure.com"))
}

/// The same for an argument of Azure's command line.
pub(super) fn argument_for_account<'a>(text: &'a str, account: &str) -> std::borrow::Cow<'a, str> {
    match text {
        "https://storage.azure.com/" => format!("https://{account}.documents.azure.com").into(),
        _ => text.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_asked_for_the_account() {
        let form = "client_id=1&scope=https%3A%2F%2Fstorage.azure.com%2F.default&grant_type=client_credentials";
        let asked = "client_id=1&scope=https%3A%2F%2Facme.documents.azure.com%2F.default&grant_type=client_credentials";
        assert_eq!(for_account(form, "acme"), asked);
    }

    #[test]
    fn a_connection_string_is_of_one_account() {
        for (text, key) in [
            (
                "DefaultEndpointsProtocol=https;AccountName=acme;AccountKey=QUJD=;EndpointSuffix=core.windows.net",
                Some("QUJD="),
            ),
            ("AccountEndpoint=https://acme.documents.azure.com:443/;AccountKey=QUJD;", Some("QUJD")),
            ("AccountName=other;AccountKey=QUJD", None),
            ("AccountKey=QUJD", None),
            ("", None),
        ] {
            assert_eq!(key_of(text, "acme").as_deref(), key, "{text}");
        }
    }
}
