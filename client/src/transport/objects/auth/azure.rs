//! Keys, signatures and tokens of Azure, for Blob Storage and for Cosmos DB.

use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use leasehold_wire::objects::Service;
use reqsign_azure_storage as azure;
use reqsign_core::time::Timestamp;
use reqsign_core::{Context, Env, HttpSend, ProvideCredentialDyn};
use zeroize::Zeroizing;

use super::oauth::{RULES, Tool, context};
use super::{CloudKeys, Secret};
use crate::transport::credentials::sender::Sender;
use crate::transport::credentials::{NoKeys, PATIENCE, Source};
use crate::url::azure::{self as azure_url, ConnectionString, EMULATOR};

/// The audience of tokens for Azure's storage, as arguments have it, and as queries and forms do.
const OF_STORAGE: [&str; 2] = ["https://storage.azure.com", "https%3A%2F%2Fstorage.azure.com"];

const ADVICE: &str = "; set a key of the account or a signature, or the variables of a service principal or a workload \
                      identity, give the machine an identity, or run `az login`";
const REFUSED: &str = "; this is a refusal, and waiting does not help: renew what is named there";

/// The variables of an account.
struct Variables {
    account: Option<&'static str>,
    keys: &'static [&'static str],
    connection_strings: [&'static str; 2],
    signature: Option<&'static str>,
}

const OF_BLOBS: Variables = Variables {
    account: Some("AZURE_STORAGE_ACCOUNT"),
    keys: &["AZURE_STORAGE_KEY", "AZURE_STORAGE_ACCOUNT_KEY"],
    connection_strings: azure_url::OF_BLOBS,
    signature: Some("AZURE_STORAGE_SAS_TOKEN"),
};
const OF_COSMOS: Variables = Variables {
    account: None,
    keys: &["AZURE_COSMOS_KEY", "COSMOS_KEY"],
    connection_strings: azure_url::OF_COSMOS,
    signature: None,
};

/// Searches where Azure's own tools do, and in the variables with keys first.
pub(in crate::transport::objects) struct Azure {
    service: Service,
    account: String,
    sender: Sender,
    app: Option<App>,
    context: Context,
}

/// The endpoint of an app in App Service, Functions or Container Apps, which speaks nearly as that of a machine.
#[derive(Clone)]
struct App {
    endpoint: String,
    secret: Zeroizing<String>,
}

impl App {
    const NAME: &str = "the app's identity";
    const SECRET: &str = "IDENTITY_HEADER";
    const OF_MACHINES: &str = "api-version=2018-02-01";
    const OF_APPS: &str = "api-version=2019-08-01";

    fn of(env: &impl Env) -> Option<Self> {
        let variable = |name| env.var(name).filter(|value| !value.is_empty());
        Some(Self { endpoint: variable("IDENTITY_ENDPOINT")?, secret: Zeroizing::new(variable(Self::SECRET)?) })
    }
}

/// A source of tokens, and the variable with which somebody says that it is meant. A source that is meant but gives
/// nothing ends the search: going on would mean asking as somebody else.
struct Provider {
    name: &'static str,
    variable: Option<&'static str>,
    provider: Box<dyn ProvideCredentialDyn<Credential = azure::Credential>>,
}

fn providers(app: Option<&App>) -> [Provider; 7] {
    let meant = |name, variable, provider| Provider { name, variable: Some(variable), provider };
    let tried = |name, provider| Provider { name, variable: None, provider };
    [
        meant(
            "the client certificate",
            "AZURE_CLIENT_CERTIFICATE_PATH",
            Box::new(azure::ClientCertificateCredentialProvider::new()),
        ),
        meant("the client secret", "AZURE_CLIENT_SECRET", Box::new(azure::ClientSecretCredentialProvider::new())),
        meant(
            "Azure Pipelines",
            "AZURE_SERVICE_CONNECTION_ID",
            Box::new(azure::AzurePipelinesCredentialProvider::new()),
        ),
        meant(
            "the workload identity",
            "AZURE_FEDERATED_TOKEN_FILE",
            Box::new(azure::WorkloadIdentityCredentialProvider::new()),
        ),
        meant(
            App::NAME,
            App::SECRET,
            Box::new(azure::ImdsCredentialProvider::new().with_endpoint(app.map_or("", |app| app.endpoint.as_str()))),
        ),
        tried("the machine's identity", Box::new(azure::ImdsCredentialProvider::new())),
        // Last, as it is the slowest: the login of a person.
        tried("az login", Box::new(azure::AzureCliCredentialProvider::new())),
    ]
}

impl Azure {
    /// Of the account at `host`.
    pub(super) fn new(service: Service, account: &str, host: &str, env: impl Env) -> Self {
        Self::with(service, account, host, env, Sender::new(RULES))
    }

    pub(super) fn with(service: Service, account: &str, host: &str, env: impl Env, sender: Sender) -> Self {
        let audience = match service {
            Service::CosmosDb => Audience::Cosmos { resource: azure_url::cosmos_resource(account, host) },
            Service::S3 | Service::AzureBlob | Service::Gcs => Audience::Storage,
        };
        let for_tool = audience.clone();
        let tool = Tool {
            path: env.var("PATH"),
            sender: sender.clone(),
            argument: Box::new(move |text| for_tool.in_place_of_storage(text)),
        };
        let app = App::of(&env);
        let http = ForAudience { audience, app: app.clone(), sender: sender.clone() };
        let context = context(env, http).with_command_execute(tool);
        Self { service, account: account.to_owned(), sender, app, context }
    }

    fn variable(&self, name: &str) -> Option<String> {
        self.context.env_var(name).map(|value| value.trim().to_owned()).filter(|value| !value.is_empty())
    }

    fn of_variables(&self) -> Option<CloudKeys> {
        let names = if self.service == Service::CosmosDb { OF_COSMOS } else { OF_BLOBS };
        if names.account.and_then(|name| self.variable(name)).is_some_and(|account| account != self.account) {
            return None;
        }
        let found = |name: &str, secret: Secret| CloudKeys { secret, expires_unix_ms: None, source: name.to_owned() };
        let keys = names
            .keys
            .iter()
            .find_map(|name| Some(found(name, Secret::AccountKey(Zeroizing::new(self.variable(name)?)))));
        let connection = || {
            names.connection_strings.iter().find_map(|name| {
                let text = Zeroizing::new(self.variable(name)?);
                Some(found(name, secret_of(&text, &self.account)?))
            })
        };
        let signature = || {
            let name = names.signature?;
            Some(found(name, Secret::AccessSignature(Zeroizing::new(self.variable(name)?))))
        };
        keys.or_else(connection).or_else(signature)
    }
}

/// The secret in a connection string, unless that is of another account.
fn secret_of(text: &str, account: &str) -> Option<Secret> {
    let string = ConnectionString(text);
    if string.account() != Some(account) {
        return None;
    }
    let secret = |value: &str| Zeroizing::new(value.to_owned());
    let key = string.part("AccountKey").or_else(|| string.is_of_emulator().then_some(EMULATOR.1));
    let signature = || string.part("SharedAccessSignature");
    key.map(|key| Secret::AccountKey(secret(key)))
        .or_else(|| signature().map(|text| Secret::AccessSignature(secret(text))))
}

impl Source for Azure {
    type Keys = CloudKeys;
    const CLOUD: &'static str = "Azure";

    fn patience(&self) -> Duration {
        PATIENCE
    }

    fn waiting_for(&self) -> String {
        self.sender.waiting_for()
    }

    async fn search(&self) -> Result<CloudKeys, NoKeys> {
        self.sender.reset();
        if let Some(found) = self.of_variables() {
            return Ok(found);
        }
        let mut tried = Vec::new();
        for Provider { name, variable, provider } in providers(self.app.as_ref()) {
            let meant = variable.filter(|variable| self.variable(variable).is_some());
            if name == App::NAME && self.app.is_none() {
                continue;
            }
            let why = match (provider.provide_credential_dyn(&self.context).await, meant) {
                (Ok(Some(credential)), _) => return Ok(found(credential, name)),
                (Ok(None), None) => continue,
                (Ok(None), Some(variable)) => {
                    format!("{variable} is set, but not all that belongs to it, or its file is missing")
                }
                (Err(error), _) => self.sender.describe(&error),
            };
            if meant.is_some() {
                let what = format!("no Azure credentials: {name}: {why}");
                return Err(NoKeys::of_named_source(what, REFUSED, &self.sender));
            }
            tried.push(format!("{name}: {why}"));
        }
        Err(NoKeys::missing(format!("no Azure credentials: {}{ADVICE}", tried.join("; "))))
    }
}

fn found(credential: azure::Credential, source: &str) -> CloudKeys {
    let unix_ms = |at: Timestamp| u64::try_from(at.as_second()).unwrap_or(0).saturating_mul(1_000);
    let (secret, expires) = match credential {
        azure::Credential::SharedKey { account_key, .. } => (Secret::AccountKey(Zeroizing::new(account_key)), None),
        azure::Credential::SasToken { token, expires_at } => {
            (Secret::AccessSignature(Zeroizing::new(token)), expires_at)
        }
        azure::Credential::BearerToken { token, expires_in } => (Secret::Token(Zeroizing::new(token)), expires_in),
    };
    CloudKeys { secret, expires_unix_ms: expires.map(unix_ms), source: source.to_owned() }
}

/// The service that tokens are for: the providers of `reqsign` ask for tokens of storage only.
#[derive(Clone)]
enum Audience {
    Storage,
    Cosmos { resource: String },
}

impl Audience {
    /// The same request, for this audience.
    fn in_place_of_storage(&self, text: &str) -> String {
        match self {
            Self::Storage => text.to_owned(),
            Self::Cosmos { resource } => {
                let [plain, encoded] = OF_STORAGE;
                text.replace(encoded, &resource.replace("://", "%3A%2F%2F")).replace(plain, resource)
            }
        }
    }
}

struct ForAudience {
    audience: Audience,
    app: Option<App>,
    sender: Sender,
}

impl fmt::Debug for ForAudience {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ForAudience")
    }
}

impl HttpSend for ForAudience {
    async fn http_send(&self, request: http::Request<Bytes>) -> reqsign_core::Result<http::Response<Bytes>> {
        let (mut parts, body) = request.into_parts();
        let mut uri = self.audience.in_place_of_storage(&parts.uri.to_string());
        if let Some(app) = self.app.as_ref().filter(|app| uri.starts_with(&format!("{}?", app.endpoint))) {
            uri = uri.replace(App::OF_MACHINES, App::OF_APPS);
            let mut secret = http::HeaderValue::try_from(app.secret.as_str())
                .map_err(|_| reqsign_core::Error::unexpected("the app's secret cannot be sent"))?;
            secret.set_sensitive(true);
            parts.headers.insert("x-identity-header", secret);
        }
        parts.uri = uri.parse().map_err(|_| reqsign_core::Error::unexpected("the address cannot be written"))?;
        let body = Bytes::from(self.audience.in_place_of_storage(&String::from_utf8_lossy(&body)));
        // That of the other body.
        parts.headers.remove(http::header::CONTENT_LENGTH);
        self.sender.http_send(http::Request::from_parts(parts, body)).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_requested_for_the_account() {
        let cosmos = Audience::Cosmos { resource: "https://acme.documents.azure.com".into() };
        let form = "client_id=1&scope=https%3A%2F%2Fstorage.azure.com%2F.default&grant_type=client_credentials";
        let asked = "client_id=1&scope=https%3A%2F%2Facme.documents.azure.com%2F.default&grant_type=client_credentials";
        assert_eq!(cosmos.in_place_of_storage(form), asked);
        assert_eq!(cosmos.in_place_of_storage("https://storage.azure.com/"), "https://acme.documents.azure.com/");
        assert_eq!(Audience::Storage.in_place_of_storage(form), form);
    }

    #[test]
    fn a_connection_string_is_of_one_account() {
        let key = |text: &str| Secret::AccountKey(Zeroizing::new(text.to_owned()));
        let signature = Secret::AccessSignature(Zeroizing::new("sv=1&sig=QUJD%3D".to_owned()));
        let long = "DefaultEndpointsProtocol=https;AccountName=acme;AccountKey=QUJD=;EndpointSuffix=core.windows.net";
        for (text, secret) in [
            (long, Some(key("QUJD="))),
            ("AccountEndpoint=https://acme.documents.azure.com:443/;AccountKey=QUJD;", Some(key("QUJD"))),
            (
                "BlobEndpoint=https://acme.blob.core.windows.net/;SharedAccessSignature=sv=1&sig=QUJD%3D",
                Some(signature),
            ),
            ("AccountName=other;AccountKey=QUJD", None),
            ("UseDevelopmentStorage=true", None),
            ("AccountKey=QUJD", None),
            ("", None),
        ] {
            assert!(secret_of(text, "acme") == secret, "{text}");
        }
    }
}
