//! One request over HTTP and its answer.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll};
use core::time::Duration;

use leasehold_core::op::{Fault, FaultKind, TransportFault};
use leasehold_core::wire::client::{HttpRequest, HttpResponse, Response};
use leasehold_core::wire::rest::MAX_BODY;
use leasehold_core::{Monotonic, RequestId};
use wit_bindgen::rt::async_support::StreamResult;

use crate::bindings::{wit_future, wit_stream};
use crate::wasi::http::client;
use crate::wasi::http::types::{ErrorCode, Fields, Method, Request, RequestOptions, Response as Incoming, Scheme};

/// What the core wants to know of a response.
const HEADERS: [&str; 3] = ["content-type", "date", "location"];

/// A request that has been sent. Dropped, it is given up.
pub(crate) struct Exchange {
    pub(crate) id: RequestId,
    pub(crate) deadline: Monotonic,
    future: Pin<Box<dyn Future<Output = Response>>>,
    answered: Option<Response>,
}

impl Exchange {
    /// Hands a request to the host, as soon as somebody waits.
    pub(crate) fn begin(request: HttpRequest, left: Duration) -> Result<Self, Response> {
        let (id, deadline) = (request.id, request.deadline);
        Ok(Self { id, deadline, future: Box::pin(performed(request, left)), answered: None })
    }

    /// Goes on as far as that is possible, and says whether there is an answer.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> bool {
        if self.answered.is_none()
            && let Poll::Ready(response) = self.future.as_mut().poll(cx)
        {
            self.answered = Some(response);
        }
        self.answered.is_some()
    }

    pub(crate) fn advance(&mut self) -> Option<Response> {
        self.answered.take()
    }
}

async fn performed(request: HttpRequest, left: Duration) -> Response {
    sent(request, left).await.unwrap_or_else(|response| response)
}

async fn sent(request: HttpRequest, left: Duration) -> Result<Response, Response> {
    let HttpRequest { id: _, node: _, deadline: _, method: _, url, headers, body } = request;
    let unfit = || not_sent("the host does not take the request");
    let mut fields: Vec<_> =
        headers.iter().map(|(name, value)| (name.to_string(), value.as_bytes().to_vec())).collect();
    fields.push(("content-length".into(), body.len().to_string().into_bytes()));
    let fields = Fields::from_list(&fields).map_err(|_| unfit())?;
    let (scheme, authority, path) = parts(&url).ok_or_else(unfit)?;
    let (mut writer, reader) = wit_stream::new::<u8>();
    let (trailers_writer, trailers) = wit_future::new(|| Ok(None));
    drop(trailers_writer);
    let (outgoing, _transmitted) = Request::new(fields, Some(reader), trailers, Some(patience(left)));
    outgoing.set_method(&Method::Post).map_err(|()| unfit())?;
    outgoing.set_scheme(Some(&scheme)).map_err(|()| unfit())?;
    outgoing.set_authority(Some(authority)).map_err(|()| unfit())?;
    outgoing.set_path_with_query(Some(path)).map_err(|()| unfit())?;
    let mut upload = core::pin::pin!(async move {
        writer.write_all(body).await;
        drop(writer);
    });
    let mut answer = core::pin::pin!(client::send(outgoing));
    let mut is_sent = false;
    let response = core::future::poll_fn(|cx| {
        if !is_sent {
            is_sent = upload.as_mut().poll(cx).is_ready();
        }
        answer.as_mut().poll(cx)
    })
    .await
    .map_err(|code| failed(&code))?;
    read(response).await
}

async fn read(response: Incoming) -> Result<Response, Response> {
    let fields = response.get_headers();
    let first = |name: &str| fields.get(name).into_iter().next().and_then(|value| String::from_utf8(value).ok());
    let headers = HEADERS.iter().filter_map(|name| Some((name.to_string(), first(name)?))).collect();
    let length: Option<usize> = first("content-length").and_then(|length| length.trim().parse().ok());
    drop(fields);
    let status = response.get_status_code();
    let (_done, result) = wit_future::new(|| Ok(()));
    let (mut stream, _trailers) = Incoming::consume_body(response, result);
    let mut body = Vec::new();
    while body.len() <= MAX_BODY {
        let (state, piece) = stream.read(Vec::with_capacity(16 << 10)).await;
        body.extend(piece);
        if matches!(state, StreamResult::Dropped) {
            break;
        }
    }
    if body.len() <= MAX_BODY && length.is_some_and(|length| body.len() < length) {
        return Err(broken("the answer ends too early"));
    }
    body.truncate(MAX_BODY + 1);
    Ok(Response::Http(HttpResponse { status, headers, body }))
}

fn patience(left: Duration) -> RequestOptions {
    let options = RequestOptions::new();
    let left = Some(u64::try_from(left.as_nanos()).unwrap_or(u64::MAX));
    let _ = options.set_connect_timeout(left);
    let _ = options.set_first_byte_timeout(left);
    let _ = options.set_between_bytes_timeout(left);
    options
}

fn parts(url: &str) -> Option<(Scheme, &str, &str)> {
    let (scheme, rest) = url.split_once("://")?;
    let scheme = match scheme {
        "https" => Scheme::Https,
        "http" => Scheme::Http,
        _ => return None,
    };
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    Some((scheme, authority, if path.is_empty() { "/" } else { path }))
}

fn failed(code: &ErrorCode) -> Response {
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
fn words(code: &ErrorCode) -> String {
    format!("{code:?}").replace("ErrorCode::", "")
}

fn not_sent(detail: &str) -> Response {
    Response::Fault(TransportFault::NotSent(Fault::new(FaultKind::Unreachable, detail)))
}

fn unknown(kind: FaultKind, detail: &str) -> Response {
    Response::Fault(TransportFault::Unknown(Fault::new(kind, detail)))
}

fn broken(detail: &str) -> Response {
    unknown(FaultKind::Reset, detail)
}
