//! A bucket or container: its address, and the right to use it.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::endpoint::{Endpoint, Paths};
use super::face::HttpResponse;
use super::node::OPEN_TO_ALL;
use super::store::{Access, Credentials, ObjectsService, ObjectsStore};
use super::web::Written;
use crate::objects::{
    Memory, Request, Response, Service, Session, set_date, with_account_key, with_key, with_signature, with_token,
};
use crate::sigv4::{Headers, Signer};

/// Google ignores the region of a signature.
const NO_REGION: &str = "auto";

/// Cloud storage in this program. Without the feature `objects` there is no such value, and compilers leave out all that has
/// one.
#[derive(Clone, Copy, Debug)]
pub(super) enum Offered {
    #[cfg(feature = "objects")]
    Yes,
}

impl Offered {
    const fn here() -> Result<Self, &'static str> {
        #[cfg(feature = "objects")]
        return Ok(Self::Yes);
        #[cfg(not(feature = "objects"))]
        Err("this program is built without cloud storage: build it with the feature `objects` of leasehold-wire")
    }
}

#[derive(Clone, Debug)]
pub(super) struct Objects {
    pub(super) offered: Offered,
    pub(super) session: Session,
    pub(super) memory: Memory,
    pub(super) access: Access,
    pub(super) service: ObjectsService,
    endpoint: Endpoint,
    region: String,
    /// The account of Azure, which signatures name.
    account: String,
    signer: Signer,
}

impl Objects {
    /// A node of a quorum must be known to read what was written.
    pub(super) fn new(store: ObjectsStore, is_single: bool) -> Result<Self, &'static str> {
        let endpoint = Endpoint::parse(&store.url, Paths::None)?;
        if store.access == Access::WithCredentials && !endpoint.keeps_secrets(store.plaintext) {
            return Err(OPEN_TO_ALL);
        }
        let parts: Vec<&str> = store.place.split('/').collect();
        let is_name = |part: &&str| {
            let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
            !part.is_empty() && part.bytes().all(is_plain) && !part.bytes().all(|byte| byte == b'.')
        };
        let is_place = parts.iter().all(is_name) || store.place.is_empty();
        let (service, root) = match (store.service, parts.as_slice()) {
            (ObjectsService::S3, [""]) => (Service::S3, String::new()),
            (ObjectsService::S3, [bucket]) => (Service::S3, format!("/{bucket}")),
            (ObjectsService::AzureBlob, [_] | [_, _]) if !store.place.is_empty() => {
                (Service::AzureBlob, format!("/{}", store.place))
            }
            (ObjectsService::Gcs, [bucket]) if !bucket.is_empty() => (Service::Gcs, (*bucket).to_owned()),
            (ObjectsService::GcsXml, [bucket]) if !bucket.is_empty() => (Service::Gcs, format!("/{bucket}")),
            (ObjectsService::CosmosDb, [database, container]) => {
                (Service::CosmosDb, format!("/dbs/{database}/colls/{container}"))
            }
            _ => return Err(NO_PLACE),
        };
        if !is_place {
            return Err(NO_PLACE);
        }
        let is_prefix = |prefix: &str| {
            let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte);
            prefix.len() <= 100 && prefix.bytes().all(is_plain) && prefix.ends_with('/') && !prefix.contains("//")
        };
        if !is_prefix(&store.prefix) || store.prefix.split('/').any(|part| part == "." || part == "..") {
            return Err("a prefix has at most 100 letters, digits and -._~ between single slashes, and ends with one");
        }
        if service == Service::S3 && !is_region(&store.region) {
            return Err("the region is no name of one, such as eu-west-1");
        }
        if service == Service::CosmosDb && !is_single {
            return Err("Cosmos DB cannot be a node of a quorum here: nobody has checked that its reads are not stale");
        }
        let session = Session::new(service, &root, &store.prefix);
        let session = if store.service == ObjectsService::GcsXml { session.with_xml() } else { session };
        // The host names it, but not that of an emulator.
        let account = match parts.as_slice() {
            [account, _] if service == Service::AzureBlob => (*account).to_owned(),
            _ => endpoint.host().split(['.', ':']).next().unwrap_or_default().to_owned(),
        };
        let (memory, signer) = (Memory::default(), Signer::new());
        let (service, region, access) = (store.service, store.region, store.access);
        let made = |offered| Self { offered, session, memory, access, service, endpoint, region, account, signer };
        Offered::here().map(made)
    }

    /// # Errors
    /// The store takes no credentials of this kind, or nobody has such.
    pub(super) fn check(&self, credentials: &Credentials) -> Result<(), &'static str> {
        use ObjectsService::{AzureBlob, CosmosDb, Gcs, GcsXml, S3};
        match (self.service, credentials) {
            (_, _) if self.access == Access::Anonymous => Err("the store's access says that it takes no credentials"),
            (S3, Credentials::Aws(_)) | (AzureBlob | Gcs | GcsXml | CosmosDb, Credentials::Token(_)) => Ok(()),
            (GcsXml, Credentials::Aws(aws)) if aws.keys.session_token.is_none() => Ok(()),
            (AzureBlob | CosmosDb, Credentials::AccountKey(_)) | (AzureBlob, Credentials::AccessSignature(_)) => Ok(()),
            (S3, _) => Err("S3 takes credentials of AWS, or keys of a service with its API"),
            (AzureBlob, _) => Err("Azure takes the key of the account, a shared access signature or a token"),
            (Gcs, _) => Err("Google's JSON API takes a token"),
            (GcsXml, _) => Err("Google's XML API takes an HMAC key, as that of AWS, or a token"),
            (CosmosDb, _) => Err("Cosmos DB takes the key of the account or a token"),
        }
    }

    /// A request with these credentials, by the service's clock; `None` for a key that is none.
    pub(super) fn signed(&mut self, request: &Request, given: Option<&Credentials>, unix_ms: u64) -> Option<Written> {
        let mut request = request.clone();
        if matches!(self.service, ObjectsService::AzureBlob | ObjectsService::CosmosDb) {
            set_date(&mut request, unix_ms);
        }
        let is_cosmos = self.service == ObjectsService::CosmosDb;
        let authorization = match given {
            Some(Credentials::Aws(aws)) => {
                let host = self.endpoint.host();
                let headers = if self.service == ObjectsService::GcsXml {
                    self.signer.sign_google_object(&request, host, NO_REGION, &aws.keys, unix_ms)
                } else {
                    self.signer.sign_object(&request, host, &self.region, &aws.keys, unix_ms)
                };
                return Some(self.written(request, headers));
            }
            Some(Credentials::Token(bearer)) if is_cosmos => Some(with_token(&bearer.token)),
            Some(Credentials::Token(bearer)) => Some(format!("Bearer {}", bearer.token)),
            Some(Credentials::AccountKey(account)) if is_cosmos => {
                let date = request.headers.iter().find(|(name, _)| *name == "x-ms-date");
                let date = date.map(|(_, date)| date.clone()).unwrap_or_default();
                Some(with_key(request.method, &request.path, &date, &account.key)?)
            }
            Some(Credentials::AccountKey(account)) => Some(with_account_key(&request, &self.account, &account.key)?),
            Some(Credentials::AccessSignature(signature)) => {
                request.query = with_signature(&request, &signature.query);
                None
            }
            Some(Credentials::Password(_)) | None => None,
        };
        let mut headers = core::mem::take(&mut request.headers);
        headers.extend(authorization.map(|value| ("authorization", value)));
        Some(self.written(request, Headers::new(headers)))
    }

    fn written(&self, request: Request, headers: Headers) -> Written {
        let separator = if request.query.is_empty() { "" } else { "?" };
        let url = self.endpoint.url(&format!("{}{separator}{}", request.path, request.query));
        Written { method: request.method.name(), url, headers, body: request.body }
    }
}

/// The part of a response that the session looks at.
pub(super) fn response(response: HttpResponse) -> Response {
    let named = |name: &&str| response.header(name).map(|value| ((*name).to_owned(), value.to_owned()));
    let headers = Response::HEADERS.iter().filter_map(named).collect();
    Response { status: response.status, headers, body: response.body }
}

pub(super) fn is_region(text: &str) -> bool {
    (1..=64).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

const NO_PLACE: &str = "the place is no name of a bucket or container: give S3 and Google BUCKET, Azure CONTAINER, Cosmos DB \
                        DATABASE/CONTAINER";
