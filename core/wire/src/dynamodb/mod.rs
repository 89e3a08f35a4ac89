//! Operations as conditional writes of single rows of a DynamoDB table, and what the answers mean.
//!
//! The rows are those of the AWS lock client for Java, which can share the table; so can whatever else locks in its
//! format. One lock is one row:
//!
//! | attribute | type | |
//! |---|---|---|
//! | partition key, `key` unless named otherwise | S | the resource; a sort key has the same value for all locks |
//! | `ownerName` | S | the label |
//! | `leaseDuration` | S | how long observers wait, in decimal milliseconds |
//! | `recordVersionNumber` | S | `<nonce>:<seq>`, new with every acquire and renewal, left alone by a release |
//! | `isReleased` | S | `"1"` once released, absent before |
//! | `data` | B | the bytes of the last holder that wrote some |
//! | `dataNonce` | S | `<nonce>:` of that one, where it is one of ours; another of ours has no data |
//! | `fencingToken` | N | the counter; Java's clients may drop it, the floor then makes up for it |
//! | `grantedAt` | N | when the lease was granted, in milliseconds since 1970 |
//! | `freedAt` | N | when it was last released, which tells a release from one by somebody else |
//! | `quorumTrust` | S | in a quorum: the loss of data since which the counter was raised |
//! | `undoneVersion` | S | in a quorum: the version that was freed again because the table did not vote |
//!
//! In a quorum the row `leasehold` 0x1F `quorum` holds a [`Marker`](leasehold_core::member::Marker) in `quorumMarker`, and reads as
//! a released lock.
//!
//! Nothing runs out by itself: observers wait, and then name the version that stood still
//! ([`Acquire::expect`](leasehold_core::op::Acquire::expect)). Transactions are not used, for tables that are strongly consistent
//! across Regions have none; tables that are eventually so exclude nobody, see [`table::judge`]. The rights that are
//! needed are `dynamodb:GetItem` and `dynamodb:UpdateItem`.
//!
//! ```
//! use leasehold_core::op::{LockOp, Op, Outcome, TransportFault};
//! use leasehold_wire::dynamodb::{Request, Codec, Settings};
//! use leasehold_wire::sigv4::{Credentials, Signer};
//! use leasehold_wire::{Exchange as _, HttpResponse, Progress, Repeat, Repeats};
//! use leasehold_core::{LockId, Resource};
//!
//! // A real host opens a connection here, and has timeouts.
//! fn post(request: &Request, signer: &mut Signer, unix_ms: u64) -> Result<HttpResponse, TransportFault> {
//!     let credentials = Credentials {
//!         access_key_id: "AKIDEXAMPLE".into(),
//!         secret_access_key: "secret".into(),
//!         session_token: None,
//!     };
//!     let host = "dynamodb.eu-west-1.amazonaws.com";
//!     let headers = signer.sign(request, host, "eu-west-1", &credentials, unix_ms);
//!     assert!(headers.iter().any(|(name, _)| name == "authorization"));
//!     Ok(HttpResponse::new(200, b"{}".to_vec()))
//! }
//!
//! let codec = Codec::new(Settings::new("locks").map_err(|denial| denial.to_string())?);
//! let ops = [LockOp { lock: LockId::new(1), resource: Resource::new("invoice/42")?, op: Op::Read }];
//! let (mut signer, mut unix_ms) = (Signer::new(), 1_700_000_000_000);
//! let mut exchange = codec.begin(&ops, unix_ms).map_err(|denial| denial.to_string())?;
//! let outcomes = loop {
//!     let mut repeats = Repeats::default();
//!     let answer = loop {
//!         // One operation has one request at a time.
//!         let answer = post(&exchange.requests()[0], &mut signer, unix_ms).map_err(|fault| fault.outcome());
//!         let refused = answer.as_ref().ok().and_then(|response| codec.repeat(response));
//!         match refused.filter(|repeat| repeats.allow(*repeat)) {
//!             None => break answer,
//!             Some(Repeat::FreshCredentials) => {} // fetch others first
//!             Some(Repeat::ServerTime(shown)) => {
//!                 unix_ms = shown;
//!                 exchange.set_clock(shown);
//!             }
//!         }
//!     };
//!     match exchange.answers(&mut (), vec![answer]) {
//!         Progress::Done(outcomes) => break outcomes,
//!         Progress::Again => {}
//!     }
//! };
//! assert!(matches!(outcomes[..], [Outcome::Applied(_)]));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! An [`Exchange`] has a request for each operation that is still open. They do not depend on each other, may be sent at
//! the same time, and are signed by [`sigv4`](super::sigv4). HTTP clients must not repeat them by themselves: a request
//! that arrives a second time, much later, is one that nobody expects.

pub mod cas;
mod errors;
mod exchange;
mod expressions;
pub(crate) mod json;
mod listing;
mod lock;
mod membership;
mod record;
mod settings;
pub mod table;
#[cfg(test)]
mod tests;

use alloc::vec::Vec;
use core::fmt;

use serde_json::Value as Json;

pub(crate) use errors::KNOWN;
pub use errors::{ErrorClass, classify};
pub use exchange::Exchange;
pub use membership::FoundMarker;
pub use settings::{Settings, SortKey};

use crate::exchange::Repeat;
use crate::http::HttpResponse;
use leasehold_core::op::{Denial, LockOp};

/// An operation of DynamoDB.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "DynamoDB's own names")]
pub enum Target {
    GetItem,
    UpdateItem,
    CreateTable,
    DescribeTable,
    UpdateTimeToLive,
    DescribeTimeToLive,
    Scan,
}

impl Target {
    /// The value of the header `x-amz-target`.
    pub const fn header(self) -> &'static str {
        match self {
            Self::GetItem => "DynamoDB_20120810.GetItem",
            Self::UpdateItem => "DynamoDB_20120810.UpdateItem",
            Self::CreateTable => "DynamoDB_20120810.CreateTable",
            Self::DescribeTable => "DynamoDB_20120810.DescribeTable",
            Self::UpdateTimeToLive => "DynamoDB_20120810.UpdateTimeToLive",
            Self::DescribeTimeToLive => "DynamoDB_20120810.DescribeTimeToLive",
            Self::Scan => "DynamoDB_20120810.Scan",
        }
    }
}

/// A request to be signed and sent as `POST /`. `Debug` does not show the body, which names attempts.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Request {
    /// The operation.
    pub target: Target,
    /// JSON.
    pub body: Vec<u8>,
}

impl Request {
    fn new(target: Target, body: &Json) -> Self {
        Self { target, body: json::written(body) }
    }
}

impl fmt::Debug for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} with {} bytes", self.target, self.body.len())
    }
}

/// How to speak to one table. It knows nothing of connections and may be shared.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Codec {
    settings: Settings,
}

impl Codec {
    /// A codec for this table.
    pub const fn new(settings: Settings) -> Self {
        Self { settings }
    }

    /// As it was told.
    pub const fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Begins an exchange. `unix_ms`, the sender's milliseconds since 1970, is for people to read, for DynamoDB's time to
    /// live, and for how long a node of a quorum is in doubt.
    ///
    /// # Errors
    /// A record that would last longer than [`MAX_RECORD_TTL`](leasehold_core::config::MAX_RECORD_TTL).
    pub fn begin(&self, ops: &[LockOp], unix_ms: u64) -> Result<Exchange, Denial> {
        Exchange::new(self.settings.clone(), ops, unix_ms)
    }

    /// Something to do before a request that got this response is sent once more; `None` where that would not help.
    pub fn repeat(&self, response: &HttpResponse) -> Option<Repeat> {
        match (response.status != 200).then(|| classify(&self.settings, response))? {
            ErrorClass::Repeat(repeat, _) => Some(repeat),
            ErrorClass::ConditionFailed | ErrorClass::Refused(_) | ErrorClass::Unknown(_) => None,
        }
    }
}
