//! Operations as transactions of etcd's v3 JSON gateway, and what the answers mean.
//!
//! One lock is one key, `PREFIX` `lock/` and the resource; its value is a JSON object with the counter, the last lease and
//! the completion of finished work. In a quorum the key `PREFIX` `quorum` holds a [`Marker`]. An operation reads the keys that it
//! needs, is decided by the core's own [`serve`](leasehold_core::node::serve), and writes only where nobody has written
//! since, by their `mod_revision`: a late request finds another revision and does nothing. A key that was written from
//! here needs no read: the next operation is decided by the [`Memory`] of it, and compares its value.
//!
//! Nothing runs out by itself: observers wait, and then name the version that stood still
//! ([`Acquire::expect`](leasehold_core::op::Acquire::expect)). Leases of etcd are not used: a leader that was replaced may
//! revoke those that live.
//!
//! ```
//! use leasehold_core::op::{LockOp, Op, Outcome};
//! use leasehold_core::{LockId, Resource};
//! use leasehold_wire::etcd::{Memory, Request, Codec};
//! use leasehold_wire::{Exchange as _, HttpResponse, Progress};
//!
//! // A real host posts the body to the path, and has timeouts.
//! fn post(request: &Request) -> Result<HttpResponse, Outcome> {
//!     assert_eq!(request.path, "/v3/kv/txn");
//!     Ok(HttpResponse::new(200, br#"{"succeeded": true, "responses": [{"response_range": {}}]}"#.to_vec()))
//! }
//!
//! let codec = Codec::new("leasehold/");
//! let ops = [LockOp { lock: LockId::new(1), resource: Resource::new("invoice/42")?, op: Op::Read }];
//! let mut memory = Memory::default();
//! let mut exchange = codec.begin(&memory, &ops, 1_700_000_000_000);
//! let outcomes = loop {
//!     let answers = exchange.requests().iter().map(post).collect();
//!     match exchange.answers(&mut memory, answers) {
//!         Progress::Done(outcomes) => break outcomes,
//!         Progress::Again => {}
//!     }
//! };
//! assert!(matches!(outcomes[..], [Outcome::Applied(_)]));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod admin;
pub mod cas;
mod errors;
mod exchange;
mod listing;
mod memory;
pub(crate) mod record;
#[cfg(test)]
mod tests;
mod txn;
mod watch;

use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;

use serde_json::{Value as Json, json};

use leasehold_core::Resource;
use leasehold_core::member::{Marker, RunId};
use leasehold_core::op::{LockOp, Outcome, Refusal};

pub use errors::classify;
pub(crate) use errors::table as known;
pub use exchange::Exchange;
pub use memory::Memory;
pub use watch::Watched;

use crate::dynamodb::json::object;
use crate::exchange::Repeat;
use crate::http::HttpResponse;
use txn::{Draft, Txn, misfit};

/// A request to be sent by `POST`. `Debug` does not show the body, which names attempts and may hold a password.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Request {
    /// Below the endpoint.
    pub path: &'static str,
    /// JSON.
    pub body: Vec<u8>,
    /// It may write. Another may be sent to any endpoint, and again.
    pub writes: bool,
}

impl fmt::Debug for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} with {} bytes", self.path, self.body.len())
    }
}

/// The quorum membership that was found.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
pub struct FoundMarker {
    /// The marker, if there is one that this version understands.
    pub marker: Option<Marker>,
    /// The marker as it is written; empty where there is none.
    pub text: Vec<u8>,
    /// The id of the cluster; `None` where the answer does not show it.
    pub run: Option<RunId>,
}

/// How to speak to one etcd. It knows nothing of connections and may be shared.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Codec {
    prefix: Arc<str>,
}

impl Codec {
    /// A codec for the keys below a prefix, such as `leasehold/`.
    pub fn new(prefix: &str) -> Self {
        Self { prefix: prefix.into() }
    }

    /// Begins an exchange. `unix_ms`, the sender's milliseconds since 1970, is for completions of finished work and for people.
    pub fn begin(&self, memory: &Memory, ops: &[LockOp], unix_ms: u64) -> Exchange {
        Exchange::new(self, memory, ops, unix_ms)
    }

    /// Something to do before a request that got this response is sent once more; `None` where that would not help.
    pub fn repeat(&self, response: &HttpResponse) -> Option<Repeat> {
        let is_refused = |outcome| matches!(outcome, Outcome::NotApplied(Refusal::NeedsCredentials(_)));
        (response.status != 200 && is_refused(classify(response))).then_some(Repeat::FreshCredentials)
    }

    /// Asks for a token for a user and a password; [`token`] reads the answer.
    pub fn login(&self, user: &str, password: &str) -> Request {
        let body = json!({ "name": user, "password": password });
        Request { path: "/v3/auth/authenticate", body: body.to_string().into_bytes(), writes: false }
    }

    /// Asks for the marker; [`Codec::found`] reads the answer.
    pub fn look(&self) -> Request {
        Draft::together(alloc::vec![Draft::reading(&[self.marker_key()])])
    }

    /// Reads the answer to [`Codec::look`].
    ///
    /// # Errors
    /// The marker could not be read.
    pub fn found(&self, response: &HttpResponse) -> Result<FoundMarker, Outcome> {
        let (txn, position) = one(response, &[self.marker_key()])?;
        let text = txn.rows.into_iter().next().and_then(|row| row.value).unwrap_or_default();
        let run = position.and_then(|position| RunId::new(&position.cluster.to_string()));
        Ok(FoundMarker { marker: Marker::parse(&text), text, run })
    }

    /// Writes a marker in the place of the one that was found, if that is still there, or none; [`Codec::marked`] reads
    /// the answer.
    pub fn mark(&self, found: &[u8], marker: Option<&Marker>) -> Request {
        let text = marker.map(|marker| marker.text().into_bytes());
        Draft::together(alloc::vec![Draft::replacing(&self.marker_key(), found, text)])
    }

    /// Tells if that was done; not where another marker has come meanwhile.
    ///
    /// # Errors
    /// It was not, or nobody knows.
    pub fn marked(&self, response: &HttpResponse) -> Result<bool, Outcome> {
        one(response, &[]).map(|(txn, _)| txn.succeeded)
    }

    fn marker_key(&self) -> String {
        alloc::format!("{}quorum", self.prefix)
    }

    fn key(&self, resource: &Resource) -> String {
        self.key_of(resource.as_str())
    }

    fn key_of(&self, name: &str) -> String {
        alloc::format!("{}lock/{name}", self.prefix)
    }
}

/// The answer to one transaction, which reads these keys.
fn one(response: &HttpResponse, keys: &[String]) -> Result<(Txn, Option<txn::Position>), Outcome> {
    let (txns, position) = txn::parse(response, &[keys])?;
    Ok((txns.into_iter().next().ok_or_else(misfit)?, position))
}

/// The token in the answer to [`Codec::login`].
///
/// # Errors
/// The login was refused, or failed.
pub fn token(response: &HttpResponse) -> Result<String, Outcome> {
    if response.status != 200 {
        return Err(classify(response));
    }
    let fields = object(&response.body).map_err(|_| misfit())?;
    fields.get("token").and_then(Json::as_str).map(ToString::to_string).ok_or_else(misfit)
}
