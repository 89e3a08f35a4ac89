//! Answers, errors and bodies.

use std::time::Duration;

use axum::Json;
use axum::body::to_bytes;
use axum::extract::{Query, Request};
use axum::http::header::{CONTENT_TYPE, RETRY_AFTER};
use axum::http::{StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use leasehold::{Error, ErrorKind};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::output::lock_json;

/// The longest body, which has room for a name, a label and data, however they are escaped.
pub(super) const MOST_BODY: usize = 64 << 10;
/// The time in which a body must have come.
pub(super) const BODY_PATIENCE: Duration = Duration::from_secs(10);

/// An answer that is an error.
pub(super) struct Reply {
    status: StatusCode,
    body: Value,
}

impl Reply {
    fn new(status: StatusCode, kind: &str, message: impl Into<String>) -> Self {
        Self { status, body: json!({ "error": { "kind": kind, "message": message.into() } }) }
    }

    pub(super) fn bad(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "config", message)
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
            "this daemon serves its own machine only, and the request is for {host:?}: send it to localhost or 127.0.0.1"
        );
        Self::new(StatusCode::MISDIRECTED_REQUEST, "wrong_host", message)
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
        let status = match error.kind() {
            ErrorKind::Busy | ErrorKind::TimedOut => StatusCode::CONFLICT,
            ErrorKind::Lost | ErrorKind::NotOwned => StatusCode::GONE,
            ErrorKind::Config => StatusCode::BAD_REQUEST,
            ErrorKind::StoreUnavailable | ErrorKind::Closed => StatusCode::SERVICE_UNAVAILABLE,
            ErrorKind::StoreRefused => StatusCode::BAD_GATEWAY,
            ErrorKind::FinishUnconfirmed => StatusCode::GATEWAY_TIMEOUT,
            ErrorKind::Cancelled | ErrorKind::StaleToken | ErrorKind::Done | ErrorKind::Internal | _ => {
                StatusCode::INTERNAL_SERVER_ERROR
            }
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

/// Reads the body of a request. Its type must be JSON, which no web page can send to another site unasked.
pub(super) async fn read<T: DeserializeOwned>(request: Request) -> Result<T, Reply> {
    let kind = request.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    if !kind.split(';').next().is_some_and(|kind| kind.trim().eq_ignore_ascii_case("application/json")) {
        let message = "send the header Content-Type: application/json";
        return Err(Reply::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "config", message));
    }
    let late = || Reply::new(StatusCode::REQUEST_TIMEOUT, "config", "the body did not come in time");
    let body =
        tokio::time::timeout(BODY_PATIENCE, to_bytes(request.into_body(), MOST_BODY)).await.map_err(|_| late())?;
    let body = body.map_err(|_| {
        let message = format!("the body is longer than {MOST_BODY} bytes, or was cut off");
        Reply::new(StatusCode::PAYLOAD_TOO_LARGE, "config", message)
    })?;
    serde_json::from_slice(&body).map_err(|error| Reply::bad(format!("the body is not what is expected: {error}")))
}
