//! Operations as transactions of etcd's v3 JSON gateway, and what the answers mean.
//!
//! One lock is one key, `PREFIX` `lock/` and the resource; its value is a JSON object with the counter, the last lease and
//! the mark of finished work. In a quorum the key `PREFIX` `quorum` holds a [`Marker`]. An operation reads the keys that it
//! needs, is decided by the core's own [`serve`](leasehold_core::node::serve), and writes only where nobody has written
//! since, by their `mod_revision`: a late request finds another revision and does nothing.
//!
//! Nothing runs out by itself: observers wait, and then name the version that stood still
//! ([`Acquire::expect`](leasehold_core::op::Acquire::expect)). Leases of etcd are not used: a leader that was replaced may
//! revoke those that live.
//!
//! ```
//! use leasehold_core::op::{LockOp, Op, Outcome};
//! use leasehold_core::{LockId, Resource};
//! use leasehold_wire::etcd::{Progress, Request, Response, Session};
//!
//! // A real host posts the body to the path, and has timeouts.
//! fn post(request: &Request) -> Result<Response, Outcome> {
//!     assert_eq!(request.path, "/v3/kv/txn");
//!     Ok(Response { status: 200, body: br#"{"succeeded": true, "responses": [{"response_range": {}}]}"#.to_vec() })
//! }
//!
//! let session = Session::new("leasehold/");
//! let ops = [LockOp { lock: LockId::new(1), resource: Resource::new("invoice/42")?, op: Op::Read }];
//! let mut exchange = session.begin(&ops, 1_700_000_000_000);
//! let outcomes = loop {
//!     let answers = exchange.requests().iter().map(post).collect();
//!     match exchange.answers(answers) {
//!         Progress::Done(outcomes) => break outcomes,
//!         Progress::Again => {}
//!     }
//! };
//! assert!(matches!(outcomes[..], [Outcome::Applied(_)]));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod errors;
mod exchange;
mod record;
#[cfg(test)]
mod tests;
mod txn;

use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;

use serde_json::{Value as Json, json};

use leasehold_core::Resource;
use leasehold_core::member::Marker;
use leasehold_core::op::{LockOp, Outcome};

pub use errors::classify;
pub use exchange::{Exchange, Progress};

use crate::dynamodb::json::object;
use txn::{Txn, misfit};

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

/// A response. `Debug` does not show the body.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Response {
    /// The HTTP status.
    pub status: u16,
    /// The body; more than 1 MiB is not read.
    pub body: Vec<u8>,
}

impl fmt::Debug for Response {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "status {} with {} bytes", self.status, self.body.len())
    }
}

/// The quorum membership that was found.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
pub struct Found {
    /// The marker, if there is one that this version understands.
    pub marker: Option<Marker>,
    /// The marker as it is written; empty where there is none.
    pub text: Vec<u8>,
}

/// How to speak to one etcd. It knows nothing of connections and may be shared.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Session {
    prefix: Arc<str>,
}

impl Session {
    /// A session with the keys below a prefix, such as `leasehold/`.
    pub fn new(prefix: &str) -> Self {
        Self { prefix: prefix.into() }
    }

    /// Begins an exchange. `unix_ms`, the sender's milliseconds since 1970, is for marks of finished work and for people.
    pub fn begin(&self, ops: &[LockOp], unix_ms: u64) -> Exchange {
        Exchange::new(self.clone(), ops, unix_ms)
    }

    /// Asks for a token for a user and a password; [`token`] reads the answer.
    pub fn login(&self, user: &str, password: &str) -> Request {
        let body = json!({ "name": user, "password": password });
        Request { path: "/v3/auth/authenticate", body: body.to_string().into_bytes(), writes: false }
    }

    /// Asks for the marker; [`Session::found`] reads the answer.
    pub fn look(&self) -> Request {
        Txn::reading(&[self.marker_key()])
    }

    /// Reads the answer to [`Session::look`].
    ///
    /// # Errors
    /// The marker could not be read.
    pub fn found(&self, response: &Response) -> Result<Found, Outcome> {
        let txn = Txn::parse(response, &[self.marker_key()])?;
        let text = txn.rows.into_iter().next().and_then(|row| row.value).unwrap_or_default();
        Ok(Found { marker: Marker::parse(&text), text })
    }

    /// Writes a marker in the place of the one that was found, if that is still there, or none; [`Session::marked`] reads
    /// the answer.
    pub fn mark(&self, found: &[u8], marker: Option<&Marker>) -> Request {
        Txn::replacing(&self.marker_key(), found, marker.map(|marker| marker.text().into_bytes()))
    }

    /// Tells if that was done; not where another marker has come meanwhile.
    ///
    /// # Errors
    /// It was not, or nobody knows.
    pub fn marked(&self, response: &Response) -> Result<bool, Outcome> {
        Txn::parse(response, &[]).map(|txn| txn.succeeded)
    }

    fn marker_key(&self) -> String {
        alloc::format!("{}quorum", self.prefix)
    }

    fn key(&self, resource: &Resource) -> String {
        alloc::format!("{}lock/{}", self.prefix, resource.as_str())
    }
}

/// The token in the answer to [`Session::login`].
///
/// # Errors
/// The login was refused, or failed.
pub fn token(response: &Response) -> Result<String, Outcome> {
    if response.status != 200 {
        return Err(classify(response));
    }
    let fields = object(&response.body).map_err(|_| misfit())?;
    fields.get("token").and_then(Json::as_str).map(ToString::to_string).ok_or_else(misfit)
}
