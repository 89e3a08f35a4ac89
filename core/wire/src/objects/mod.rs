//! Operations as conditional reads and writes of objects in a cloud's storage service, and what the answers mean.
//!
//! One lock is one object, `PREFIX` `lock/NAME.json`: the counter, the last lease and the completion of finished work, as JSON.
//! In a quorum the object `PREFIX` `quorum.json` holds a [`Marker`]. An operation reads the object, is decided by the core's own
//! [`serve`](leasehold_core::node::serve), and is written on the condition that nobody has written since: by the ETag, or
//! by the generation. A late request finds another version and does nothing. No object is ever deleted, and no body
//! occurs twice. An object that was written from here needs no read: the next operation is decided by the [`Memory`] of it.
//!
//! Nothing runs out by itself: observers wait, and then name the version that stood still
//! ([`Acquire::expect`](leasehold_core::op::Acquire::expect)).
//!
//! There is no call that reads the marker and writes a lock at once. So the marker is read once more after a lock was
//! written, or refused: one that is still the same stood when the lock was written, since no text of a marker comes twice.
//!
//! ```
//! use leasehold_core::op::{LockOp, Op, Outcome};
//! use leasehold_core::{LockId, Resource};
//! use leasehold_wire::objects::{Memory, Method, Request, Service, Codec};
//! use leasehold_wire::{Exchange as _, HttpResponse, Progress};
//!
//! // A real host signs the request, sends it, and has timeouts.
//! fn send(request: &Request) -> Result<HttpResponse, Outcome> {
//!     assert_eq!((request.method, request.path.as_str()), (Method::Get, "/locks/prod/lock/invoice%252F42.json"));
//!     let body = b"<Error><Code>NoSuchKey</Code></Error>".to_vec();
//!     Ok(HttpResponse::new(404, body))
//! }
//!
//! let codec = Codec::new(Service::S3, "/locks", "prod/");
//! let ops = [LockOp { lock: LockId::new(1), resource: Resource::new("invoice/42")?, op: Op::Read }];
//! let mut memory = Memory::default();
//! let mut exchange = codec.begin(&memory, &ops, 1_700_000_000_000);
//! let outcomes = loop {
//!     let answers = exchange.requests().iter().map(send).collect();
//!     match exchange.answers(&mut memory, answers) {
//!         Progress::Done(outcomes) => break outcomes,
//!         Progress::Again => {}
//!     }
//! };
//! assert!(matches!(outcomes[..], [Outcome::Applied(_)]));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod azure;
pub mod cas;
mod cosmos;
mod errors;
mod exchange;
mod listing;
mod memory;
mod refusals;
mod requests;
mod settings;
mod signing;
#[cfg(test)]
mod tests;
mod trial;

use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;

use sha2::{Digest, Sha256};

use leasehold_core::Resource;
use leasehold_core::member::Marker;
use leasehold_core::op::{LockOp, Outcome, Refusal};

pub use cosmos::{Properties, with_key};
pub use exchange::Exchange;
pub use listing::Names;
pub use memory::Memory;
pub(crate) use refusals::tables as known;
pub use settings::{Harm, Question, Setting};
pub use signing::{Right, Signed};
pub use trial::{Race, Trial, Verdict};

use errors::{Heard, misfit};
use requests::Version;

use crate::http::HttpResponse;
use crate::sigv4::hex;

/// The folder of locks below the prefix.
const LOCKS: &str = "lock";
const END: &str = ".json";
/// The field with the name of a lock whose object's name does not tell it.
const LONG_NAME: &str = "name";

/// The name of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Key {
    text: String,
    /// The name of the lock, where the object's does not tell it.
    long_name: Option<String>,
}

/// A storage service, by its API.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Service {
    /// Amazon S3, and services with its API that honour `If-Match` and `If-None-Match`.
    S3,
    /// Azure Blob Storage.
    AzureBlob,
    /// Google Cloud Storage, by its JSON API unless [`Codec::with_xml`] says otherwise.
    Gcs,
    /// Azure Cosmos DB for NoSQL, in a container whose partition key is `/id`.
    CosmosDb,
}

impl Service {
    /// The longest name of an object, in bytes.
    const fn most_key(self) -> usize {
        match self {
            Self::S3 | Self::AzureBlob | Self::Gcs => 1024,
            Self::CosmosDb => 255,
        }
    }
}

/// The method of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Method {
    /// Reads.
    Get,
    /// Writes.
    Put,
    /// Writes, on services that name the object in the body; or asks for names.
    Post,
}

impl Method {
    /// Its name in a request line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Put => "PUT",
            Self::Post => "POST",
        }
    }
}

/// A request, not signed yet. `Debug` does not show the body, which names attempts.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Request {
    /// The method.
    pub method: Method,
    /// The path as it is sent, percent-encoded.
    pub path: String,
    /// The query as it is sent, percent-encoded, in the order of its names; it may be empty.
    pub query: String,
    /// Names in lowercase, and values.
    pub headers: Vec<(&'static str, String)>,
    /// The body.
    pub body: Vec<u8>,
}

impl Request {
    /// Returns true for a request that may write. Another may be sent again.
    pub fn writes(&self) -> bool {
        self.method != Method::Get && !cosmos::is_query(self)
    }
}

impl fmt::Debug for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} {}?{} with {} bytes", self.method, self.path, self.query, self.body.len())
    }
}

/// The quorum membership that was found.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
pub struct FoundMarker {
    /// The marker, if there is one that this version understands.
    pub marker: Option<Marker>,
    /// The marker as it is written; empty where there is none.
    pub text: Vec<u8>,
    version: Option<Version>,
}

/// How to speak to one bucket or container. It knows nothing of connections and may be shared.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Codec {
    service: Service,
    /// The path of the bucket or container, without a slash at its end.
    root: Arc<str>,
    prefix: Arc<str>,
    /// Google's XML API.
    is_xml: bool,
}

impl Codec {
    /// A codec for the objects whose names begin with a prefix, such as `leasehold/`.
    ///
    /// | service | `root` |
    /// |---|---|
    /// | [`Service::S3`] | empty where the host names the bucket, else `/BUCKET` |
    /// | [`Service::AzureBlob`] | `/CONTAINER`, or `/ACCOUNT/CONTAINER` where the host does not name the account |
    /// | [`Service::Gcs`] | `BUCKET` |
    /// | [`Service::CosmosDb`] | `/dbs/DATABASE/colls/CONTAINER` |
    pub fn new(service: Service, root: &str, prefix: &str) -> Self {
        Self { service, root: root.into(), prefix: prefix.into(), is_xml: false }
    }

    /// The same by Google's XML API, which takes HMAC keys too; `root` is `/BUCKET`. It has no [`Codec::list`].
    #[must_use]
    pub const fn with_xml(mut self) -> Self {
        self.is_xml = true;
        self
    }

    /// The service.
    pub const fn service(&self) -> Service {
        self.service
    }

    /// Begins an exchange. `unix_ms`, the sender's milliseconds since 1970, is for completions of finished work and for people.
    pub fn begin(&self, memory: &Memory, ops: &[LockOp], unix_ms: u64) -> Exchange {
        Exchange::new(self, memory, ops, unix_ms)
    }

    /// Asks for the marker; [`Codec::found`] reads the answer.
    pub fn look(&self) -> Request {
        self.read(&self.marker_key())
    }

    /// Reads the answer to [`Codec::look`].
    ///
    /// # Errors
    /// The marker could not be read.
    pub fn found(&self, response: &HttpResponse) -> Result<FoundMarker, Outcome> {
        match self.heard_read(Ok(response)) {
            Heard::Read(row) => {
                let text = row.body.as_deref().map_or_else(|| Ok(String::new()), memory::marker_text);
                let text = text.map_err(|denial| Outcome::NotApplied(Refusal::Denied(denial)))?;
                Ok(FoundMarker {
                    marker: Marker::parse(text.as_bytes()),
                    text: text.into_bytes(),
                    version: row.version,
                })
            }
            Heard::Failed(outcome) => Err(outcome),
            Heard::Written(_) | Heard::Raced => Err(misfit()),
        }
    }

    /// Writes a marker in the place of the one that was found, if that is still there, or none; [`Codec::marked`] reads
    /// the answer.
    pub fn mark(&self, found: &FoundMarker, marker: Option<&Marker>) -> Request {
        let text = marker.map(Marker::text).unwrap_or_default();
        self.write(&self.marker_key(), found.version.as_ref(), &memory::marker_body(&text))
    }

    /// Tells if that was done; not where another marker has come meanwhile.
    ///
    /// # Errors
    /// It was not, or nobody knows.
    pub fn marked(&self, response: &HttpResponse) -> Result<bool, Outcome> {
        match self.heard_write(Ok(response)) {
            Heard::Written(_) => Ok(true),
            Heard::Raced => Ok(false),
            Heard::Failed(outcome) => Err(outcome),
            Heard::Read(_) => Err(misfit()),
        }
    }

    fn marker_key(&self) -> String {
        alloc::format!("{}quorum.json", self.prefix)
    }

    fn key(&self, resource: &Resource) -> Key {
        self.key_in(LOCKS, resource)
    }

    /// The object of a name in a folder. A name that does not fit is cut, and its digest follows an exclamation mark, which
    /// no other key has; the object then holds the name.
    fn key_in(&self, folder: &str, resource: &Resource) -> Key {
        let whole = alloc::format!("{}{folder}/{}", self.prefix, requests::encoded(resource.as_str()));
        let most = self.service.most_key();
        if whole.len() + END.len() <= most {
            return Key { text: whole + END, long_name: None };
        }
        let digest = hex(&Sha256::digest(resource.as_str().as_bytes()));
        let mut text = whole;
        // The key is ASCII.
        text.truncate(most.saturating_sub(END.len() + digest.len() + 1));
        let text = alloc::format!("{text}!{digest}{END}");
        Key { text, long_name: Some(resource.as_str().into()) }
    }

    /// The beginning of the keys of locks whose names begin with `prefix`.
    fn below(&self, prefix: &str) -> String {
        alloc::format!("{}{LOCKS}/{}", self.prefix, requests::encoded(prefix))
    }
}
