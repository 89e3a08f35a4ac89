//! The right to use a bucket or container: who signs requests, and with what.
//!
//! Keys of AWS come from the same search as those for DynamoDB. Keys and tokens of Azure and Google are found by
//! `reqsign`'s crates, in the order of each cloud's own tools, and kept as those of AWS are.

mod azure;
mod google;
mod oauth;

use std::sync::Arc;

use leasehold_core::op::Refusal;
use leasehold_wire::objects::{Request, Service, set_date, with_account_key, with_key, with_signature, with_token};
use leasehold_wire::sigv4;
use reqsign_core::OsEnv;
use zeroize::Zeroizing;

use self::azure::Azure;
use self::google::Google;
use crate::host::sync::Mutex;
use crate::transport::credentials::{CredentialCache, Expiring, NoKeys};
use crate::transport::dynamodb::credentials::{self as aws, Environment, Keys};
use crate::url::Reach;
use crate::url::objects::ObjectsUrl;

/// Signs requests, with the keys or tokens that it keeps.
pub(super) enum Auth {
    Aws {
        keys: aws::CredentialCache,
        signer: Mutex<sigv4::Signer>,
        region: String,
    },
    Azure {
        service: Service,
        account: String,
        found: CredentialCache<Azure>,
    },
    Google {
        found: CredentialCache<Google>,
    },
    /// An emulator, without TLS.
    Nobody,
}

/// The credentials of a request, which may be refused.
pub(super) enum Used {
    Aws(Arc<Keys>),
    Found(Arc<Found>),
    Nothing,
}

/// A request as it leaves.
pub(super) struct Signed {
    pub(super) headers: Vec<(String, String)>,
    /// With a signature that is a part of it.
    pub(super) query: String,
}

/// Credentials of Azure or Google.
pub(super) struct Found {
    secret: Secret,
    expires_unix_ms: Option<u64>,
    source: String,
}

#[derive(Clone, PartialEq, Eq)]
enum Secret {
    AccountKey(Zeroizing<String>),
    AccessSignature(Zeroizing<String>),
    Token(Zeroizing<String>),
}

impl Expiring for Found {
    fn expires_unix_ms(&self) -> Option<u64> {
        self.expires_unix_ms
    }

    fn are_the_same_as(&self, other: &Self) -> bool {
        self.secret == other.secret
    }

    fn source(&self) -> &str {
        &self.source
    }
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
                let host = url.host().unwrap_or_default();
                Self::Azure {
                    service,
                    found: CredentialCache::new(Azure::new(service, &account, &host, OsEnv)),
                    account,
                }
            }
            // A token would be readable on the way.
            Service::Gcs if url.reach != Reach::Tls => Self::Nobody,
            Service::Gcs => Self::Google { found: CredentialCache::new(Google::new(OsEnv)) },
        }
    }

    /// The credentials of this moment, or others than those that were refused.
    ///
    /// # Errors
    /// There are none.
    pub(super) async fn keys(&self, refused: Option<&Used>) -> Result<Used, Refusal> {
        let keys = match (self, refused) {
            (Self::Nobody, _) => return Ok(Used::Nothing),
            (Self::Aws { keys, .. }, Some(Used::Aws(refused))) => keys.other_than(refused).await.map(Used::Aws),
            (Self::Aws { keys, .. }, _) => keys.keys().await.map(Used::Aws),
            (Self::Azure { found, .. }, Some(Used::Found(refused))) => found.other_than(refused).await.map(Used::Found),
            (Self::Azure { found, .. }, _) => found.keys().await.map(Used::Found),
            (Self::Google { found }, Some(Used::Found(refused))) => found.other_than(refused).await.map(Used::Found),
            (Self::Google { found }, _) => found.keys().await.map(Used::Found),
        };
        keys.map_err(|why| why.refusal())
    }

    /// A request, signed with these at `unix_ms` by the service's clock.
    ///
    /// # Errors
    /// The credentials are none, or the service takes no such.
    pub(super) fn sign(&self, request: &Request, host: &str, unix_ms: u64, used: &Used) -> Result<Signed, Refusal> {
        match (self, used) {
            (Self::Aws { signer, region, .. }, Used::Aws(keys)) => {
                let credentials = sigv4::Credentials {
                    access_key_id: keys.access_key_id.clone(),
                    secret_access_key: String::clone(&keys.secret_access_key),
                    session_token: keys.session_token.as_deref().cloned(),
                };
                let headers = signer.lock().sign_object(request, host, region, &credentials, unix_ms);
                let headers = headers.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
                Ok(Signed { headers, query: request.query.clone() })
            }
            (Self::Azure { service, account, .. }, Used::Found(found)) => {
                for_azure(*service, account, request, found, unix_ms).map_err(|why| why.refusal())
            }
            (Self::Google { .. }, Used::Found(found)) => for_google(request, found).map_err(|why| why.refusal()),
            (Self::Aws { .. } | Self::Azure { .. } | Self::Google { .. } | Self::Nobody, _) => {
                Ok(Signed::new(request, None))
            }
        }
    }
}

impl Signed {
    fn new(request: &Request, authorization: Option<String>) -> Self {
        let headers = request.headers.iter().map(|(name, value)| ((*name).to_owned(), value.clone()));
        let authorization = authorization.map(|value| ("authorization".to_owned(), value));
        Self { headers: headers.chain(authorization).collect(), query: request.query.clone() }
    }
}

/// # Errors
/// The key is none, or the service takes no such credentials.
fn for_azure(
    service: Service,
    account: &str,
    request: &Request,
    found: &Found,
    unix_ms: u64,
) -> Result<Signed, NoKeys> {
    let mut request = request.clone();
    set_date(&mut request, unix_ms);
    let date = || request.headers.iter().find(|(name, _)| *name == "x-ms-date").map(|(_, date)| date.as_str());
    let authorization = match (&found.secret, service) {
        (Secret::AccountKey(key), Service::CosmosDb) => {
            with_key(request.method, &request.path, date().unwrap_or_default(), key).map(Some)
        }
        (Secret::AccountKey(key), _) => with_account_key(&request, account, key).map(Some),
        (Secret::Token(token), Service::CosmosDb) => Some(Some(with_token(token))),
        (Secret::Token(token), _) => Some(Some(bearer(token))),
        (Secret::AccessSignature(signature), _) => {
            request.query = with_signature(&request, signature);
            Some(None)
        }
    };
    let authorization = authorization
        .ok_or_else(|| NoKeys::refused(format!("{} is no key of an account: it is not base64", found.source)))?;
    Ok(Signed::new(&request, authorization))
}

/// # Errors
/// What was found is no token.
fn for_google(request: &Request, found: &Found) -> Result<Signed, NoKeys> {
    let Secret::Token(token) = &found.secret else { return Err(NoKeys::missing("no Google credentials: no token")) };
    Ok(Signed::new(request, Some(bearer(token))))
}

fn bearer(token: &str) -> String {
    format!("Bearer {token}")
}

#[cfg(test)]
mod tests;
