//! Inputs and outputs of a [`WireClient`](super::WireClient), in addition to those of the core's own client.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use super::store::Credentials;
use crate::http::HttpResponse;
use crate::postgres;
use crate::redis::Command;
use crate::resp::Value;
use crate::sigv4::Headers;
use leasehold_core::op::{Outcome, TransportFault};
use leasehold_core::time::Monotonic;
use leasehold_core::{NodeId, RequestId};

/// An output of a client for its host, drained by [`poll_output`](super::WireClient::poll_output).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// An output of the core's own client. [`Transmit`](leasehold_core::Output::Transmit) comes for
    /// [`Store::Operations`](super::Store::Operations) alone.
    Core(leasehold_core::Output),
    /// Send this request over HTTP, and hand the response to [`handle_response`](super::WireClient::handle_response).
    HttpRequest(HttpRequest),
    /// Send these commands to a Redis, and hand the replies to [`handle_response`](super::WireClient::handle_response).
    RedisCommands(RedisCommands),
    /// Have a PostgreSQL execute this, and hand what it says to [`handle_response`](super::WireClient::handle_response).
    Statement(Statement),
}

/// A request over HTTP, to be sent once: whether to send again is for the client to decide. The host follows no
/// redirection, repeats nothing by itself, and adds no headers but those of HTTP itself (`host` as the URL has it,
/// `content-length`, `user-agent`).
///
/// It was signed when it was handed out, so it should leave soon. `Debug` shows neither the body nor the values of
/// headers.
#[derive(Clone, PartialEq, Eq)]
pub struct HttpRequest {
    /// Correlates the response. What is one request to a node may become several, each with an id of its own.
    pub id: RequestId,
    /// To whom.
    pub node: NodeId,
    /// When the host may stop waiting; the client counts the request as unknown from then on.
    pub deadline: Monotonic,
    /// `GET`, `PUT` or `POST`.
    pub method: &'static str,
    /// Where to, whole. With a shared access signature of Azure its query is a secret.
    pub url: String,
    /// In lowercase, each name once. The values are overwritten when dropped.
    pub headers: Headers,
    /// UTF-8. It names attempts, and so holds secrets too.
    pub body: Vec<u8>,
}

impl fmt::Debug for HttpRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { id, node, deadline, method, url, headers, body } = self;
        f.debug_struct("HttpRequest")
            .field("id", id)
            .field("node", node)
            .field("deadline", deadline)
            .field("method", method)
            .field("url", &url.split('?').next().unwrap_or_default())
            .field("headers", headers)
            .field("bytes", &body.len())
            .finish()
    }
}

/// Commands to be sent to a Redis once, at once and in order. If one of them is `WAIT`, on a connection that nobody else
/// writes to until all replies are there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RedisCommands {
    /// Correlates the replies. What is one request to a node may become several, each with an id of its own.
    pub id: RequestId,
    /// To whom.
    pub node: NodeId,
    /// When the host may stop waiting; the client counts the request as unknown from then on. A connection on which
    /// replies are still missing then must be closed: they would be taken for those of later commands.
    pub deadline: Monotonic,
    /// At least one. [`encode`](crate::resp::encode) writes them as bytes.
    pub commands: Vec<Command>,
}

/// A statement for PostgreSQL, to be sent once, as a transaction of its own. `Debug` does not show its parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Statement {
    /// Correlates the answer. What is one request to a node may become several, each with an id of its own.
    pub id: RequestId,
    /// To whom.
    pub node: NodeId,
    /// When the host may stop waiting; the client counts the request as unknown from then on.
    pub deadline: Monotonic,
    /// The text and the parameters.
    pub statement: postgres::Statement,
}

/// The result of a request. An answer of another kind than was asked for counts as unknown.
#[derive(Clone, PartialEq)]
pub enum Response {
    /// The node answered, to [`Transmit`](leasehold_core::Output::Transmit): one outcome for each operation.
    Outcomes(Vec<Outcome>),
    /// The server answered, to [`Output::HttpRequest`], whatever its status.
    Http(HttpResponse),
    /// The server answered, to [`Output::RedisCommands`]: one reply to each command, in order, errors included.
    Redis(Vec<Value>),
    /// The server answered, to [`Output::Statement`]: rows, or what its error means.
    Postgres(postgres::Answer),
    /// There is no whole answer.
    Fault(TransportFault),
}

impl fmt::Debug for Response {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Outcomes(outcomes) => f.debug_tuple("Outcomes").field(outcomes).finish(),
            Self::Http(response) => f.debug_tuple("Http").field(response).finish(),
            Self::Redis(replies) => write!(f, "Redis({} replies)", replies.len()),
            Self::Postgres(answer) => f.debug_tuple("Postgres").field(answer).finish(),
            Self::Fault(fault) => f.debug_tuple("Fault").field(fault).finish(),
        }
    }
}

/// The same commands as the methods of [`WireClient`](super::WireClient), for hosts where a call is expensive.
#[derive(Clone, Debug, PartialEq)]
pub enum Input {
    /// An input of the core's own client.
    Core(leasehold_core::Input),
    /// See [`handle_response`](super::WireClient::handle_response).
    Response {
        /// The request.
        id: RequestId,
        /// The result of the request.
        response: Response,
    },
    /// See [`set_credentials`](super::WireClient::set_credentials).
    SetCredentials {
        /// The node that the credentials are for.
        node: NodeId,
        /// Credentials that the node's requests carry from now on.
        credentials: Credentials,
    },
}
