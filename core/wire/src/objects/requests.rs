//! Reads and conditional writes of one object, as each service wants them.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;

use serde_json::json;

use super::{Codec, Method, Request, Service, cosmos};

/// The version of an object: an ETag with its quotes, or a generation.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Version(pub(super) String);

/// Of the API, as requests to Azure name it.
const AZURE_API: &str = "2021-12-02";
/// Between the parts of an upload to Google. No body of ours has a line that begins with it: JSON has no line breaks.
const BOUNDARY: &str = "leasehold-5e1f";

impl Codec {
    pub(super) fn read(&self, key: &str) -> Request {
        let (path, query) = match self.service {
            Service::S3 | Service::AzureBlob => (self.path(key), String::new()),
            Service::Gcs if self.is_xml => (self.path(key), String::new()),
            Service::Gcs => (format!("/storage/v1/b/{}/o/{}", self.root, encoded(key)), "alt=media".into()),
            Service::CosmosDb => return cosmos::read(&self.root, key),
        };
        Request { method: Method::Get, path, query, headers: self.headers(), body: Vec::new() }
    }

    /// Writes the object where it has this version; `None`: where there is none.
    pub(super) fn write(&self, key: &str, version: Option<&Version>, body: &[u8]) -> Request {
        let mut headers = self.headers();
        match self.service {
            Service::S3 | Service::AzureBlob => {
                headers.push(match version {
                    Some(Version(etag)) => ("if-match", etag.clone()),
                    None => ("if-none-match", "*".into()),
                });
                headers.push(("content-type", "application/json".into()));
                if self.service == Service::AzureBlob {
                    headers.push(("x-ms-blob-type", "BlockBlob".into()));
                }
                Request { method: Method::Put, path: self.path(key), query: String::new(), headers, body: body.into() }
            }
            Service::Gcs if self.is_xml => {
                let generation = version.map_or("0", |Version(generation)| generation.as_str());
                headers.push(("content-type", "application/json".into()));
                headers.push(("x-goog-if-generation-match", generation.into()));
                Request { method: Method::Put, path: self.path(key), query: String::new(), headers, body: body.into() }
            }
            Service::Gcs => {
                let generation = version.map_or("0", |Version(generation)| generation.as_str());
                let query = format!("ifGenerationMatch={generation}&uploadType=multipart");
                headers.push(("content-type", format!("multipart/related; boundary={BOUNDARY}")));
                let named = json!({ "name": key, "contentType": "application/json" });
                let head = "\r\nContent-Type: application/json; charset=UTF-8\r\n\r\n";
                let mut whole = format!("--{BOUNDARY}{head}{named}\r\n--{BOUNDARY}{head}").into_bytes();
                whole.extend_from_slice(body);
                whole.extend_from_slice(format!("\r\n--{BOUNDARY}--\r\n").as_bytes());
                let path = format!("/upload/storage/v1/b/{}/o", self.root);
                Request { method: Method::Post, path, query, headers, body: whole }
            }
            Service::CosmosDb => cosmos::write(&self.root, key, version, body),
        }
    }

    /// Asks for a page of the names that begin with `prefix`, at most `most`.
    pub(super) fn page(&self, prefix: &str, after: &str, most: u32) -> Request {
        let (plain_prefix, plain_after) = (prefix, after);
        let (prefix, after) = (encoded(prefix), encoded(after));
        // In the order of their names, as signatures want them.
        let optional = |name: &str| if after.is_empty() { String::new() } else { format!("{name}={after}&") };
        let (path, query) = match self.service {
            Service::S3 => {
                let token = optional("continuation-token");
                let path = if self.root.is_empty() { "/".to_string() } else { self.root.to_string() };
                (path, format!("{token}list-type=2&max-keys={most}&prefix={prefix}"))
            }
            Service::AzureBlob => {
                let marker = optional("marker");
                let query = format!("comp=list&{marker}maxresults={most}&prefix={prefix}&restype=container");
                (self.root.to_string(), query)
            }
            Service::Gcs => {
                let token = optional("pageToken");
                let fields = encoded("items/name,nextPageToken");
                let query = format!("fields={fields}&maxResults={most}&{token}prefix={prefix}");
                (format!("/storage/v1/b/{}/o", self.root), query)
            }
            Service::CosmosDb => return cosmos::page(&self.root, plain_prefix, plain_after, most),
        };
        Request { method: Method::Get, path, query, headers: self.headers(), body: Vec::new() }
    }

    fn path(&self, key: &str) -> String {
        // The slashes between the parts of a key stay.
        let parts: Vec<String> = key.split('/').map(encoded).collect();
        format!("{}/{}", self.root, parts.join("/"))
    }

    pub(super) fn headers(&self) -> Vec<(&'static str, String)> {
        match self.service {
            Service::AzureBlob => vec![("x-ms-version", AZURE_API.into())],
            Service::CosmosDb => cosmos::headers(),
            Service::S3 | Service::Gcs => Vec::new(),
        }
    }
}

/// Writes everything but letters, digits and `-._~` as `%XX`.
pub(super) fn encoded(text: &str) -> String {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            let digit = |value: u8| char::from(DIGITS[usize::from(value & 15)]);
            encoded.extend(['%', digit(byte >> 4), digit(byte)]);
        }
    }
    encoded
}

/// Reads what [`encoded`] writes; `None` for anything else.
pub(super) fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'%' => {
                let pair = [rest.next()?, rest.next()?];
                u8::from_str_radix(core::str::from_utf8(&pair).ok()?, 16).ok()?
            }
            byte => byte,
        });
    }
    let decoded = String::from_utf8(bytes).ok()?;
    (encoded(&decoded) == text).then_some(decoded)
}
