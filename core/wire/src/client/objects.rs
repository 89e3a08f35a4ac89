//! A bucket or container: its address, and the right to use it.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::endpoint::{Endpoint, Paths};
use super::node::OPEN_TO_ALL;
use super::store::{Access, Credentials, ObjectsService, ObjectsStore};
use crate::objects::{Codec, Memory, Service};
use crate::sigv4::Signer;

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
    pub(super) codec: Codec,
    pub(super) memory: Memory,
    pub(super) access: Access,
    pub(super) service: ObjectsService,
    pub(super) endpoint: Endpoint,
    pub(super) region: String,
    /// The account of Azure, which signatures name.
    pub(super) account: String,
    pub(super) signer: Signer,
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
            return Err("the region is not a valid name; write one such as eu-west-1");
        }
        if service == Service::CosmosDb && !is_single {
            return Err(
                "Cosmos DB cannot be a node of a quorum here: its consistency was not checked, so its reads may be \
                 stale",
            );
        }
        let codec = Codec::new(service, &root, &store.prefix);
        let codec = if store.service == ObjectsService::GcsXml { codec.with_xml() } else { codec };
        // The host names it, but not that of an emulator.
        let account = match parts.as_slice() {
            [account, _] if service == Service::AzureBlob => (*account).to_owned(),
            _ => endpoint.host().split(['.', ':']).next().unwrap_or_default().to_owned(),
        };
        let (memory, signer) = (Memory::default(), Signer::new());
        let (service, region, access) = (store.service, store.region, store.access);
        let made = |offered| Self { offered, codec, memory, access, service, endpoint, region, account, signer };
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
}

pub(super) fn is_region(text: &str) -> bool {
    (1..=64).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

const NO_PLACE: &str = "the place is no name of a bucket or container: give S3 and Google BUCKET, Azure CONTAINER, \
                        Cosmos DB DATABASE/CONTAINER";
