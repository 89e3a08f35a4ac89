//! Conversions between the core's HTTP requests and responses and those of WASI.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::time::Duration;

use leasehold_core::op::{Fault, FaultKind, TransportFault};
use leasehold_wire::client::{HttpRequest, Response};

use crate::wasi::http::types::{ErrorCode, Fields, RequestOptions, Scheme};

/// The response headers that the core reads.
const HEADERS: [&str; 3] = ["content-type", "date", "location"];

/// The headers of a request.
///
/// # Errors
/// The host does not take them.
pub(crate) fn fields(request: &HttpRequest) -> Result<Fields, Response> {
    let mut all: Vec<_> =
        request.headers.iter().map(|(name, value)| (name.to_string(), value.as_bytes().to_vec())).collect();
    // Without it the body would be sent in chunks, which not every server reads.
    all.push(("content-length".into(), request.body.len().to_string().into_bytes()));
    Fields::from_list(&all).map_err(|_| unfit())
}

pub(crate) fn unfit() -> Response {
    not_sent("the host does not take the request")
}

/// Of the headers of a response, those that the core wants, and how long its body is to be.
pub(crate) fn heard(fields: &Fields) -> (Vec<(String, String)>, Option<usize>) {
    let first = |name: &str| fields.get(name).into_iter().next().and_then(|value| String::from_utf8(value).ok());
    let headers = HEADERS.iter().filter_map(|name| Some((name.to_string(), first(name)?))).collect();
    (headers, first("content-length").and_then(|length| length.trim().parse().ok()))
}

/// The host may give up when nobody waits any longer; where it cannot, it does not matter.
pub(crate) fn patience(left: Duration) -> RequestOptions {
    let options = RequestOptions::new();
    let left = Some(u64::try_from(left.as_nanos()).unwrap_or(u64::MAX));
    let _ = options.set_connect_timeout(left);
    let _ = options.set_first_byte_timeout(left);
    let _ = options.set_between_bytes_timeout(left);
    options
}

pub(crate) fn parts(url: &str) -> Option<(Scheme, &str, &str)> {
    let (scheme, rest) = url.split_once("://")?;
    let scheme = match scheme {
        "https" => Scheme::Https,
        "http" => Scheme::Http,
        _ => return None,
    };
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    Some((scheme, authority, if path.is_empty() { "/" } else { path }))
}

pub(crate) fn failed(code: &ErrorCode) -> Response {
    if is_before_connection(code) { not_sent(&words(code)) } else { unknown(kind(code), &words(code)) }
}

/// Nothing can have left.
fn is_before_connection(code: &ErrorCode) -> bool {
    matches!(
        code,
        ErrorCode::DnsTimeout
            | ErrorCode::DnsError(_)
            | ErrorCode::DestinationNotFound
            | ErrorCode::DestinationIpProhibited
            | ErrorCode::DestinationIpUnroutable
            | ErrorCode::ConnectionRefused
    )
}

fn kind(code: &ErrorCode) -> FaultKind {
    let is_late = matches!(
        code,
        ErrorCode::ConnectionTimeout
            | ErrorCode::ConnectionReadTimeout
            | ErrorCode::ConnectionWriteTimeout
            | ErrorCode::HttpResponseTimeout
    );
    let is_nonsense = matches!(code, ErrorCode::HttpProtocolError);
    match (is_late, is_nonsense) {
        (true, _) => FaultKind::Timeout,
        (_, true) => FaultKind::Protocol,
        (false, false) => FaultKind::Reset,
    }
}

/// As WASI calls it.
pub(crate) fn words(code: &ErrorCode) -> String {
    format!("{code:?}").replace("ErrorCode::", "")
}

pub(crate) fn not_sent(detail: &str) -> Response {
    Response::Fault(TransportFault::NotSent(Fault::new(FaultKind::Unreachable, detail)))
}

fn unknown(kind: FaultKind, detail: &str) -> Response {
    Response::Fault(TransportFault::Unknown(Fault::new(kind, detail)))
}

pub(crate) fn broken(detail: &str) -> Response {
    unknown(FaultKind::Reset, detail)
}
