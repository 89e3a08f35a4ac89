//! Answers, errors and bodies.

use std::time::Duration;

use axum::Json;
use axum::body::to_bytes;
use axum::extract::{Query, Request};
use axum::http::header::RETRY_AFTER;
use axum::http::{StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use leasehold::{Error, ErrorKind};
use serde::Deserialize;
use serde::de::{DeserializeOwned, Deserializer, Error as _};
use serde_json::{Number, Value, json};

use crate::output::lock_json;

/// The longest head: method, path and headers.
pub(super) const MOST_HEAD: usize = 64 << 10;
/// The longest body, which has room for a name, a label and data, however they are escaped.
pub(super) const MOST_BODY: usize = 64 << 10;
/// The time in which a body must have come.
pub(super) const BODY_PATIENCE: Duration = Duration::from_secs(10);

/// An answer that is an error.
#[derive(Clone)]
pub(super) struct Reply {
    pub(super) status: StatusCode,
    body: Value,
}

impl Reply {
    fn new(status: StatusCode, kind: &str, message: impl Into<String>) -> Self {
        Self { status, body: json!({ "error": { "kind": kind, "message": message.into() } }) }
    }

    pub(super) fn bad(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "config", message)
    }

    pub(super) fn internal(message: impl Into<String>) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", message)
    }

    pub(super) fn limit(message: impl Into<String>) -> Self {
        Self::new(StatusCode::TOO_MANY_REQUESTS, "limit", message)
    }

    pub(super) fn unauthorized() -> Self {
        let message = "send one of the daemon's tokens: Authorization: Bearer TOKEN";
        Self::new(StatusCode::UNAUTHORIZED, "unauthorized", message)
    }

    pub(super) fn wrong_host(host: &str) -> Self {
        let message = format!(
            "this daemon serves its own machine only, but the request is for {host:?}: send it to localhost or \
             127.0.0.1"
        );
        Self::new(StatusCode::MISDIRECTED_REQUEST, "wrong_host", message)
    }

    pub(super) fn foreign_page() -> Self {
        let message = "a browser sent this request for the page of another site: open the page of the daemon itself, \
                       and let programs send no header Origin";
        Self::new(StatusCode::FORBIDDEN, "foreign_origin", message)
    }

    pub(super) fn long_head() -> Self {
        let message = format!("the path and the headers are longer than {MOST_HEAD} bytes");
        Self::new(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE, "config", message)
    }

    pub(super) fn long_body() -> Self {
        let message = format!("the body is longer than {MOST_BODY} bytes, or was cut off");
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "config", message)
    }

    pub(super) fn wrong_type() -> Self {
        let message = "send the header Content-Type: application/json, once";
        Self::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "config", message)
    }

    pub(super) fn not_a_run() -> Self {
        let message =
            "this lease is a lock, not a run, so there is nothing to finish; it is still held: release it instead";
        Self::new(StatusCode::BAD_REQUEST, "not_a_run", message)
    }

    pub(super) fn key_used(message: &str) -> Self {
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, "key_used", message)
    }

    pub(super) fn no_route() -> Self {
        Self::new(StatusCode::NOT_FOUND, "config", "there is nothing at this path: /openapi.json has all paths")
    }

    pub(super) fn wrong_method() -> Self {
        let message = "this path does not take this method: /openapi.json has the methods of each path";
        Self::new(StatusCode::METHOD_NOT_ALLOWED, "config", message)
    }

    pub(super) fn unknown_lease() -> Self {
        let message = "no such lease: it was released or finished, or its ttl has passed without a renewal";
        Self::new(StatusCode::NOT_FOUND, "unknown_lease", message)
    }
}

impl From<Error> for Reply {
    fn from(error: Error) -> Self {
        if error.kind() == ErrorKind::Closed {
            let message =
                "the daemon is stopping, and this request has acquired nothing: try again, or ask another daemon";
            return Self::new(StatusCode::SERVICE_UNAVAILABLE, "stopping", message);
        }
        let status = match error.kind() {
            ErrorKind::Busy | ErrorKind::TimedOut => StatusCode::CONFLICT,
            ErrorKind::Lost | ErrorKind::NotOwned => StatusCode::GONE,
            ErrorKind::Config => StatusCode::BAD_REQUEST,
            ErrorKind::StoreUnavailable => StatusCode::SERVICE_UNAVAILABLE,
            ErrorKind::StoreRefused => StatusCode::BAD_GATEWAY,
            ErrorKind::FinishUnconfirmed => StatusCode::GATEWAY_TIMEOUT,
            ErrorKind::ResultNotKept => StatusCode::INSUFFICIENT_STORAGE,
            ErrorKind::Closed
            | ErrorKind::Cancelled
            | ErrorKind::StaleToken
            | ErrorKind::Done
            | ErrorKind::Internal
            | _ => StatusCode::INTERNAL_SERVER_ERROR,
        };
        let mut reply = Self::new(status, error.kind().name(), error.to_string());
        if let Some(holder) = error.holder() {
            reply.body["error"]["holder"] = lock_json(holder);
        }
        reply
    }
}

impl IntoResponse for Reply {
    fn into_response(self) -> Response {
        let mut response = (self.status, Json(self.body)).into_response();
        if self.status == StatusCode::SERVICE_UNAVAILABLE {
            response.headers_mut().insert(RETRY_AFTER, axum::http::HeaderValue::from_static("1"));
        }
        response
    }
}

/// Reads what stands behind the question mark.
pub(super) fn query<T: DeserializeOwned>(uri: &Uri) -> Result<T, Reply> {
    Query::try_from_uri(uri).map(|Query(asked)| asked).map_err(|error| {
        let why = error.body_text();
        let why = why.rsplit_once("query string: ").map_or(&*why, |(_, why)| why);
        Reply::bad(format!("the query is not what is expected: {why}"))
    })
}

/// Reads the body of a request, an object. A request without a body is one without fields.
pub(super) async fn read<T: DeserializeOwned>(request: Request) -> Result<T, Reply> {
    if request.uri().query().is_some() {
        return Err(Reply::bad("this request takes no query: put its fields into the body"));
    }
    let late = || Reply::new(StatusCode::REQUEST_TIMEOUT, "config", "the body did not arrive in time");
    let body =
        tokio::time::timeout(BODY_PATIENCE, to_bytes(request.into_body(), MOST_BODY)).await.map_err(|_| late())?;
    let body = body.map_err(|_| Reply::long_body())?;
    let body = body.trim_ascii();
    // A list would be taken for the fields in their order.
    if !body.is_empty() && !body.starts_with(b"{") {
        return Err(Reply::bad("the body must be a JSON object"));
    }
    serde_json::from_slice(if body.is_empty() { b"{}" } else { body })
        .map_err(|error| Reply::bad(format!("the body is not what is expected: {error}")))
}

/// A number of milliseconds. Languages without whole numbers may write it with a fraction of zero.
pub(super) fn whole<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    let Some(number) = Option::<Number>::deserialize(deserializer)? else { return Ok(None) };
    let text = number.to_string();
    let digits = text.strip_suffix(".0").unwrap_or(&text);
    digits
        .parse()
        .map(Some)
        .map_err(|_| D::Error::custom(format_args!("{number} is not a whole number of milliseconds")))
}
