//! The right to use a bucket or container: who signs requests, and with what.
//!
//! Keys of AWS come from the same search as those for DynamoDB. Keys and tokens of Azure and Google are found by
//! `reqsign`'s crates, in the order of each cloud's own tools, and kept as those of AWS are.

mod azure;
mod google;
mod oauth;

use std::sync::Arc;

use leasehold_core::op::Refusal;
use leasehold_wire::objects::{Right, Service};
use reqsign_core::OsEnv;
use zeroize::Zeroizing;

use self::azure::Azure;
use self::google::Google;
use crate::transport::credentials::{CredentialCache, Expiring, NoKeys};
use crate::transport::dynamodb::credentials::{self as aws, Environment, Keys};
use crate::url::Exposure;
use crate::url::objects::ObjectsUrl;

/// Signs requests, with the keys or tokens that it keeps.
pub(super) enum Auth {
    Aws {
        keys: aws::CredentialCache,
        region: String,
    },
    Azure {
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
    Found(Arc<CloudKeys>),
    Nothing,
}

/// Credentials of Azure or Google.
pub(super) struct CloudKeys {
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

impl Expiring for CloudKeys {
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
                region: url.region.clone(),
            },
            Service::AzureBlob | Service::CosmosDb => {
                let account = url.place.split('/').next().unwrap_or_default().to_owned();
                let host = url.host().unwrap_or_default();
                Self::Azure { found: CredentialCache::new(Azure::new(url.service, &account, &host, OsEnv)), account }
            }
            // A token would be readable on the way.
            Service::Gcs if url.reach != Exposure::Tls => Self::Nobody,
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

    /// The form of these credentials that requests are signed with.
    pub(super) fn right<'a>(&'a self, used: &'a Used) -> Right<'a> {
        let account = match self {
            Self::Azure { account, .. } => account.as_str(),
            Self::Aws { .. } | Self::Google { .. } | Self::Nobody => "",
        };
        let region = match self {
            Self::Aws { region, .. } => region.as_str(),
            Self::Azure { .. } | Self::Google { .. } | Self::Nobody => "",
        };
        match used {
            Used::Aws(keys) => Right::Aws { keys, region },
            Used::Found(found) => match &found.secret {
                Secret::AccountKey(key) => Right::AccountKey { account, key },
                Secret::AccessSignature(signature) => Right::AccessSignature(signature),
                Secret::Token(token) => Right::Token(token),
            },
            Used::Nothing => Right::Nobody,
        }
    }
}

impl Used {
    /// The refusal of a key with which nothing can be signed.
    pub(super) fn is_no_key(&self) -> Refusal {
        let source = match self {
            Self::Aws(keys) => keys.source(),
            Self::Found(found) => found.source(),
            Self::Nothing => "",
        };
        NoKeys::refused(format!("{source} is no key of an account: it is not base64")).refusal()
    }
}

#[cfg(test)]
mod tests;
