//! The right to use a bucket or container: who signs requests, and with what.
//!
//! Keys of AWS come from the same search as those for DynamoDB. Those of Azure and Google are found and used by
//! `reqsign`'s crates, in the order of each cloud's own tools.

use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::request::Parts;
use leasehold_core::op::{Fault, FaultKind, Refusal};
use leasehold_wire::objects::{Request, Service, set_date};
use leasehold_wire::sigv4;
use reqsign_azure_storage as azure;
use reqsign_core::{Context, Env, FileRead, HttpSend, OsEnv, ProvideCredential, Signer};
use reqsign_google as google;
use rustls::ClientConfig;

use super::cosmos;
use crate::aws;
use crate::sync::Mutex;
use crate::transport::dynamodb::credentials::{CredentialCache, Environment, Keys};
use crate::transport::{tls, web};
use crate::url::Reach;
use crate::url::objects::ObjectsUrl;

/// The longest a source of tokens may take.
const PATIENCE: Duration = Duration::from_secs(15);
const CONNECT: Duration = Duration::from_secs(5);
/// The longest answer with a token.
const MOST_BODY: usize = 256 << 10;
/// The addresses at which clouds serve their machines.
const METADATA: [&str; 3] = ["169.254.169.254", "metadata.google.internal", "169.254.169.253"];

/// Signs requests, with the keys or tokens that it keeps.
pub(super) enum Auth {
    Aws {
        keys: CredentialCache,
        signer: Mutex<sigv4::Signer>,
        region: String,
    },
    Azure {
        service: Service,
        account: String,
        signer: Mutex<Signer<azure::Credential>>,
    },
    Google {
        signer: Mutex<Signer<google::Credential>>,
    },
    /// An emulator, without TLS.
    Nobody,
}

/// The credentials of a request, which may be refused.
pub(super) enum Used {
    Aws(Arc<Keys>),
    Token,
}

impl Auth {
    pub(super) fn new(url: &ObjectsUrl) -> Self {
        match url.service {
            Service::S3 => Self::Aws {
                keys: CredentialCache::new(Environment::new(url.profile.as_deref(), &url.region)),
                signer: Mutex::new(sigv4::Signer::new()),
                region: url.region.clone(),
            },
            Service::AzureBlob | Service::CosmosDb => {
                let (service, account) = (url.service, url.place.split('/').next().unwrap_or_default().to_owned());
                Self::Azure { service, signer: Mutex::new(of_azure(service, &account, OsEnv)), account }
            }
            // A token would be readable on the way.
            Service::Gcs if url.reach != Reach::Tls => Self::Nobody,
            Service::Gcs => Self::Google { signer: Mutex::new(of_google(OsEnv)) },
        }
    }

    /// The headers of a request, signed at `unix_ms` by the service's clock.
    ///
    /// # Errors
    /// There are no keys.
    pub(super) async fn headers(
        &self,
        request: &Request,
        host: &str,
        uri: &str,
        unix_ms: u64,
    ) -> Result<(Vec<(String, String)>, Used), Refusal> {
        let plain = |headers: &[(&'static str, String)]| -> Vec<(String, String)> {
            headers.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect()
        };
        match self {
            Self::Nobody => Ok((plain(&request.headers), Used::Token)),
            Self::Aws { keys, signer, region } => {
                let keys = keys.keys().await.map_err(|why| why.refusal())?;
                let credentials = sigv4::Credentials {
                    access_key_id: keys.access_key_id.clone(),
                    secret_access_key: String::clone(&keys.secret_access_key),
                    session_token: keys.session_token.as_deref().cloned(),
                };
                let headers = signer.lock().sign_object(request, host, region, &credentials, unix_ms);
                let headers = headers.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
                Ok((headers, Used::Aws(keys)))
            }
            Self::Azure { service, signer, .. } => {
                let signer = signer.lock().clone();
                let mut request = request.clone();
                if *service == Service::CosmosDb {
                    set_date(&mut request, unix_ms);
                }
                signed(&signer, &request, uri).await.map(|headers| (headers, Used::Token))
            }
            Self::Google { signer } => {
                let signer = signer.lock().clone();
                signed(&signer, request, uri).await.map(|headers| (headers, Used::Token))
            }
        }
    }

    /// Finds other keys than those that were refused.
    ///
    /// # Errors
    /// There are none.
    pub(super) async fn renew(&self, refused: &Used) -> Result<(), Refusal> {
        match (self, refused) {
            (Self::Aws { keys, .. }, Used::Aws(refused)) => {
                keys.other_than(refused).await.map(|_| ()).map_err(|why| why.refusal())
            }
            (Self::Azure { service, account, signer }, _) => {
                *signer.lock() = of_azure(*service, account, OsEnv);
                Ok(())
            }
            (Self::Google { signer }, _) => {
                *signer.lock() = of_google(OsEnv);
                Ok(())
            }
            (Self::Aws { .. } | Self::Nobody, _) => Ok(()),
        }
    }
}

async fn signed<K: reqsign_core::SigningCredential>(
    signer: &Signer<K>,
    request: &Request,
    uri: &str,
) -> Result<Vec<(String, String)>, Refusal> {
    let refused = |what: String| Refusal::NeedsCredentials(Fault::new(FaultKind::Unreachable, &what));
    let mut parts = parts(request, uri).map_err(|error| refused(format!("the request cannot be written: {error}")))?;
    let asked = tokio::time::timeout(PATIENCE, signer.sign(&mut parts, None)).await;
    asked
        .map_err(|_| refused("no credentials came in time".to_owned()))?
        // Not its context, where tokens may stand.
        .map_err(|error| refused(format!("no credentials: {}", error.kind())))?;
    let text = |value: &http::HeaderValue| value.to_str().ok().map(str::to_owned);
    let headers = parts.headers.iter().filter_map(|(name, value)| Some((name.as_str().to_owned(), text(value)?)));
    Ok(headers.collect())
}

fn parts(request: &Request, uri: &str) -> Result<Parts, http::Error> {
    use leasehold_wire::objects::Method;
    let method = match request.method {
        Method::Get => http::Method::GET,
        Method::Put => http::Method::PUT,
        Method::Post => http::Method::POST,
    };
    let mut building = http::Request::builder().method(method).uri(uri);
    for (name, value) in &request.headers {
        building = building.header(*name, value);
    }
    if !request.body.is_empty() {
        building = building.header(http::header::CONTENT_LENGTH, request.body.len());
    }
    Ok(building.body(())?.into_parts().0)
}

/// How `reqsign`'s crates read and ask; for tokens of this account of Cosmos DB, if there is one.
pub(super) fn context(env: impl Env, account: Option<String>) -> Context {
    Context::new().with_env(env).with_file_read(Files).with_http_send(Sender { account })
}

fn of_azure(service: Service, account: &str, env: impl Env) -> Signer<azure::Credential> {
    if service == Service::CosmosDb {
        return cosmos::signer(account, env);
    }
    let chain = azure::DefaultCredentialProvider::builder().no_azure_cli().build();
    let provider = chain.push_front(AccountKey { account: account.to_owned() });
    Signer::new(context(env, None), provider, azure::RequestSigner::new())
}

fn of_google(env: impl Env) -> Signer<google::Credential> {
    Signer::new(context(env, None), google::DefaultCredentialProvider::new(), google::RequestSigner::new("storage"))
}

/// The key of the account in the variables of Azure's own tools.
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
        let variable = |name: &str| context.env_var(name).filter(|value| !value.trim().is_empty());
        let of_connection = || {
            let text = variable("AZURE_STORAGE_CONNECTION_STRING")?;
            let part =
                |name: &str| text.split(';').find_map(|pair| pair.split_once('=').filter(|(known, _)| *known == name));
            let is_ours = part("AccountName").is_some_and(|(_, account)| account == self.account);
            part("AccountKey").filter(|_| is_ours).map(|(_, key)| key.to_owned())
        };
        let key =
            variable("AZURE_STORAGE_KEY").or_else(|| variable("AZURE_STORAGE_ACCOUNT_KEY")).or_else(of_connection);
        Ok(key.map(|key| azure::Credential::with_shared_key(&self.account, &key)))
    }
}

/// Reads files of credentials.
#[derive(Debug)]
struct Files;

impl FileRead for Files {
    async fn file_read(&self, path: &str) -> reqsign_core::Result<Vec<u8>> {
        aws::read(Path::new(path)).map_err(reqsign_core::Error::from)
    }
}

/// Asks for tokens: over HTTPS, or by plain HTTP at the fixed addresses of machines and on this machine.
#[derive(Debug)]
struct Sender {
    account: Option<String>,
}

impl HttpSend for Sender {
    async fn http_send(&self, request: http::Request<Bytes>) -> reqsign_core::Result<http::Response<Bytes>> {
        let wrong = |what: &str| reqsign_core::Error::unexpected(what.to_owned());
        let host = request.uri().host().unwrap_or_default().to_owned();
        let is_here =
            host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback());
        let tls: ClientConfig = match request.uri().scheme_str() {
            Some("https") => tls::trusting(None).map_err(|error| wrong(&error))?.with_no_client_auth(),
            Some("http") if is_here || METADATA.contains(&host.as_str()) => web::without_tls(),
            _ => return Err(wrong("tokens are asked for over https only")),
        };
        let client = web::builder(tls).connect_timeout(CONNECT).timeout(PATIENCE).pool_max_idle_per_host(0);
        let client = client.build().map_err(|_| wrong("no HTTP client"))?;
        let (mut parts, mut body) = request.into_parts();
        let mut uri = parts.uri.to_string();
        if let Some(account) = &self.account {
            uri = cosmos::for_account(&uri, account);
            body = cosmos::for_account(&String::from_utf8_lossy(&body), account).into();
            // That of the other body.
            parts.headers.remove(http::header::CONTENT_LENGTH);
        }
        let asked = client.request(parts.method, uri).headers(parts.headers).body(body);
        let mut response = asked.send().await.map_err(|error| wrong(&web::innermost(&error.without_url())))?;
        let status = response.status();
        let body = web::read(&mut response, MOST_BODY).await.map_err(|_| wrong("the answer ended early"))?;
        let mut answer = http::Response::builder().status(status);
        for (name, value) in response.headers() {
            answer = answer.header(name, value);
        }
        answer.body(Bytes::from(body)).map_err(|_| wrong("the answer cannot be read"))
    }
}

#[cfg(test)]
mod tests;
