//! One request over HTTP and its answer.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll};
use core::time::Duration;

use leasehold_wire::client::{HttpRequest, HttpResponse, Response};
use leasehold_wire::rest::MAX_BODY;
use leasehold_core::{Monotonic, RequestId};
use wit_bindgen::rt::async_support::StreamResult;

use crate::bindings::{wit_future, wit_stream};
use crate::http::{broken, failed, fields, heard, parts, patience, unfit};
use crate::wasi::http::client;
use crate::wasi::http::types::{Method, Request, Response as Incoming};

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
    let fields = fields(&request)?;
    let HttpRequest { url, body, .. } = request;
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
    let (headers, length) = heard(&response.get_headers());
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
