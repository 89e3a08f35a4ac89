//! The sender of a request to a storage service, as each service wants it: in headers, or in the query.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::{Codec, Request, Service, azure, cosmos};
use crate::sigv4::{Credentials, Headers, Signer};

/// Google ignores the region of a signature.
const NO_REGION: &str = "auto";

/// The credentials that a request is signed with.
#[derive(Clone, Copy)]
pub enum Right<'a> {
    /// Nothing.
    Nobody,
    /// For [`Service::S3`] and Google's XML API.
    Aws {
        /// The keys.
        keys: &'a Credentials,
        /// The region, which Google does not look at.
        region: &'a str,
    },
    /// For all services but [`Service::S3`].
    Token(&'a str),
    /// For [`Service::AzureBlob`] and [`Service::CosmosDb`].
    AccountKey {
        /// The account.
        account: &'a str,
        /// Its key, in base64.
        key: &'a str,
    },
    /// For [`Service::AzureBlob`]: a shared access signature, such as `sv=...&sig=...`.
    AccessSignature(&'a str),
}

/// A request as it leaves.
pub struct Signed {
    /// The path and the query, which a shared access signature is a part of.
    pub target: String,
    /// All headers.
    pub headers: Headers,
    /// The body.
    pub body: Vec<u8>,
}

impl Codec {
    /// Signs a request to `host` at `unix_ms` by the service's clock; `None` for an account's key that is none.
    pub fn signed(
        &self,
        mut request: Request,
        host: &str,
        right: Right<'_>,
        signer: &mut Signer,
        unix_ms: u64,
    ) -> Option<Signed> {
        let is_cosmos = self.service == Service::CosmosDb;
        if is_cosmos || self.service == Service::AzureBlob {
            cosmos::set_date(&mut request, unix_ms);
        }
        let authorization = match right {
            Right::Aws { keys, region } => {
                let headers = if self.is_xml {
                    signer.sign_google_object(&request, host, NO_REGION, keys, unix_ms)
                } else {
                    signer.sign_object(&request, host, region, keys, unix_ms)
                };
                return Some(Signed::new(request, headers));
            }
            Right::Token(token) if is_cosmos => Some(cosmos::with_token(token)),
            Right::Token(token) => Some(format!("Bearer {token}")),
            Right::AccountKey { key, .. } if is_cosmos => {
                let date = request.headers.iter().find(|(name, _)| *name == "x-ms-date");
                let date = date.map(|(_, date)| date.as_str()).unwrap_or_default();
                Some(cosmos::with_key(request.method, &request.path, date, key)?)
            }
            Right::AccountKey { account, key } => Some(azure::with_account_key(&request, account, key)?),
            Right::AccessSignature(signature) => {
                request.query = azure::with_signature(&request, signature);
                None
            }
            Right::Nobody => None,
        };
        let mut headers = core::mem::take(&mut request.headers);
        headers.extend(authorization.map(|value| ("authorization", value)));
        Some(Signed::new(request, Headers::new(headers)))
    }
}

impl Signed {
    fn new(request: Request, headers: Headers) -> Self {
        let separator = if request.query.is_empty() { "" } else { "?" };
        Self { target: format!("{}{separator}{}", request.path, request.query), headers, body: request.body }
    }
}
