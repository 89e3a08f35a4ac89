//! The right to use an account of Cosmos DB, and the properties that locks need.

use std::fmt;

use leasehold_wire::objects::{Method, Properties, with_key, with_token};
use reqsign_azure_storage as azure;
use reqsign_core::{Context, Env, ProvideCredential, SignRequest, Signer};

use super::Objects;
use super::auth::context;
use crate::error::{Error, ErrorKind};

/// Variables with a key of the account.
const KEYS: [&str; 2] = ["AZURE_COSMOS_KEY", "COSMOS_KEY"];
const CONNECTION_STRINGS: [&str; 2] = ["AZURE_COSMOS_CONNECTION_STRING", "COSMOS_CONNECTION_STRING"];
/// The audience of tokens for Azure's storage, as a query or form writes it.
const OF_STORAGE: &str = "https%3A%2F%2Fstorage.azure.com";

/// A key of the account, or a token of Entra ID from where Azure's own tools find one.
pub(super) fn signer(account: &str, env: impl Env) -> Signer<azure::Credential> {
    let chain = azure::DefaultCredentialProvider::builder().no_azure_cli().no_env().build();
    let provider = chain.push_front(AccountKey { account: account.to_owned() });
    Signer::new(context(env, Some(account.to_owned())), provider, CosmosSigner)
}

/// The same request for a token, for an account of Cosmos DB: the providers of `reqsign` ask for tokens of storage only.
pub(super) fn for_account(text: &str, account: &str) -> String {
    text.replace(OF_STORAGE, &format!("https%3A%2F%2F{account}.documents.azure.com"))
}

struct AccountKey {
    account: String,
}

impl fmt::Debug for AccountKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AccountKey")
    }
}

impl ProvideCredential for AccountKey {
    type Credential = azure::Credential;

    async fn provide_credential(&self, context: &Context) -> reqsign_core::Result<Option<azure::Credential>> {
        let variable = |name: &&str| context.env_var(name).filter(|value| !value.trim().is_empty());
        let of_connection = |text: String| {
            let part = |name: &str| {
                let pairs = text.split(';').filter_map(|pair| pair.trim().split_once('='));
                pairs.filter(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value.to_owned()).next()
            };
            // That of another account is not for this one.
            let host = part("AccountEndpoint")?;
            let host = host.split_once("://").map_or(host.as_str(), |(_, host)| host);
            part("AccountKey").filter(|_| host.split(['.', ':', '/']).next() == Some(self.account.as_str()))
        };
        let key = KEYS.iter().find_map(variable);
        let key = key.or_else(|| CONNECTION_STRINGS.iter().filter_map(variable).find_map(of_connection));
        Ok(key.map(|key| azure::Credential::with_shared_key(&self.account, key.trim())))
    }
}

/// Signs a request that has the header `x-ms-date`.
#[derive(Debug)]
struct CosmosSigner;

impl SignRequest for CosmosSigner {
    type Credential = azure::Credential;

    async fn sign_request(
        &self,
        _context: &Context,
        request: &mut http::request::Parts,
        credential: Option<&azure::Credential>,
        _expires_in: Option<std::time::Duration>,
    ) -> reqsign_core::Result<()> {
        let invalid = |what: &str| reqsign_core::Error::credential_invalid(what.to_owned());
        let method = match request.method {
            http::Method::GET => Method::Get,
            http::Method::PUT => Method::Put,
            _ => Method::Post,
        };
        let date = request.headers.get("x-ms-date").and_then(|date| date.to_str().ok()).unwrap_or_default();
        let value = match credential {
            Some(azure::Credential::SharedKey { account_key, .. }) => {
                with_key(method, request.uri.path(), date, account_key)
                    .ok_or_else(|| invalid("the key is not base64"))?
            }
            Some(azure::Credential::BearerToken { token, .. }) => with_token(token),
            Some(azure::Credential::SasToken { .. }) => {
                return Err(invalid("Cosmos DB takes no shared access signature"));
            }
            None => return Err(invalid("there are no credentials")),
        };
        let mut value = http::HeaderValue::try_from(value).map_err(|_| invalid("the token cannot be sent"))?;
        value.set_sensitive(true);
        request.headers.insert(http::header::AUTHORIZATION, value);
        Ok(())
    }
}

/// Looks at the account and the container.
///
/// # Errors
/// They could not be read, or locks cannot be kept there.
pub(super) fn check(store: &Objects) -> Result<Properties, Error> {
    let asked = store.ask(store.session.account()).and_then(|answer| store.session.properties(&answer));
    let properties = asked.map_err(|outcome| store.judged(outcome))?;
    if properties.has_several_write_regions {
        let message = format!(
            "{}: the account takes writes in several regions, of which the last one wins, so two clients could hold a \
             lock; use an account with one write region",
            store.url
        );
        return Err(Error::new(ErrorKind::StoreRefused, message));
    }
    let asked = store.ask(store.session.container()).and_then(|answer| store.session.check_container(&answer));
    asked.map_err(|outcome| store.judged(outcome))?;
    Ok(properties)
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
}
