//! One request over HTTP and its answer, as far as they have come.

use alloc::vec;
use alloc::vec::Vec;
use core::time::Duration;

use leasehold_core::{Monotonic, RequestId};
use leasehold_wire::client::{HttpRequest, HttpResponse, Response};
use leasehold_wire::rest::MAX_BODY;

use crate::http::{broken, failed, fields, heard, not_sent, parts, patience, unfit, words};
use crate::wasi::http::outgoing_handler;
use crate::wasi::http::types::{
    FutureIncomingResponse, IncomingBody, IncomingResponse, Method, OutgoingBody, OutgoingRequest,
};
use crate::wasi::io::poll::Pollable;
use crate::wasi::io::streams::{InputStream, OutputStream, StreamError};

/// Of an answer, at once.
const PIECE: u64 = 16 << 10;

/// A request that has been sent. Dropped, it is given up.
pub(crate) struct Exchange {
    pub(crate) id: RequestId,
    /// Nobody waits for an answer any longer.
    pub(crate) deadline: Monotonic,
    upload: Option<Upload>,
    download: Download,
}

/// The body on its way out. In this order: a stream has to go before what it belongs to.
struct Upload {
    stream: OutputStream,
    body: OutgoingBody,
    rest: Vec<u8>,
}

enum Download {
    Awaited(FutureIncomingResponse),
    Begun(Answer),
}

/// In this order as well.
struct Answer {
    stream: InputStream,
    _body: IncomingBody,
    /// The length that the server has announced.
    length: Option<usize>,
    response: HttpResponse,
}

impl Exchange {
    /// Hands a request to the host.
    ///
    /// # Errors
    /// It did not leave.
    pub(crate) fn begin(request: HttpRequest, left: Duration) -> Result<Self, Response> {
        let fields = fields(&request)?;
        let HttpRequest { id, node: _, deadline, method: _, url, headers: _, body } = request;
        let (scheme, authority, path) = parts(&url).ok_or_else(unfit)?;
        let outgoing = OutgoingRequest::new(fields);
        outgoing.set_method(&Method::Post).map_err(|()| unfit())?;
        outgoing.set_scheme(Some(&scheme)).map_err(|()| unfit())?;
        outgoing.set_authority(Some(authority)).map_err(|()| unfit())?;
        outgoing.set_path_with_query(Some(path)).map_err(|()| unfit())?;
        let content = outgoing.body().map_err(|()| unfit())?;
        let stream = content.write().map_err(|()| unfit())?;
        let response =
            outgoing_handler::handle(outgoing, Some(patience(left))).map_err(|code| not_sent(&words(&code)))?;
        let upload = Some(Upload { stream, body: content, rest: body });
        Ok(Self { id, deadline, upload, download: Download::Awaited(response) })
    }

    /// Goes on as far as nothing has to be waited for, and answers what became of the request, once that is known.
    pub(crate) fn advance(&mut self) -> Option<Response> {
        self.upload = self.upload.take().and_then(Upload::advance);
        if let Download::Awaited(future) = &self.download {
            match future.get()? {
                Ok(Ok(response)) => match Answer::begin(&response) {
                    Some(answer) => self.download = Download::Begun(answer),
                    None => return Some(broken("the answer has no body that can be read")),
                },
                Ok(Err(code)) => return Some(failed(&code)),
                Err(()) => return Some(broken("the host has no answer")),
            }
        }
        match &mut self.download {
            Download::Awaited(_) => None,
            Download::Begun(answer) => answer.advance(),
        }
    }

    /// The streams and futures to wait for before `advance` can go on.
    pub(crate) fn awaits(&self) -> impl Iterator<Item = Pollable> {
        let download = match &self.download {
            Download::Awaited(future) => future.subscribe(),
            Download::Begun(answer) => answer.stream.subscribe(),
        };
        self.upload.as_ref().map(|upload| upload.stream.subscribe()).into_iter().chain([download])
    }
}

impl Upload {
    /// Sends what the stream takes, and returns itself until all is sent. An upload that fails is dropped: the response
    /// says why.
    fn advance(mut self) -> Option<Self> {
        while !self.rest.is_empty() {
            let room = usize::try_from(self.stream.check_write().ok()?).unwrap_or(usize::MAX);
            if room == 0 {
                return Some(self);
            }
            let piece = self.rest.drain(..room.min(self.rest.len())).collect::<Vec<_>>();
            self.stream.write(&piece).ok()?;
        }
        let Self { stream, body, rest: _ } = self;
        drop(stream);
        let _ = OutgoingBody::finish(body, None);
        None
    }
}

impl Answer {
    fn begin(response: &IncomingResponse) -> Option<Self> {
        let (headers, length) = heard(&response.headers());
        let body = response.consume().ok()?;
        let stream = body.stream().ok()?;
        let response = HttpResponse { status: response.status(), headers, body: Vec::new() };
        Some(Self { stream, _body: body, length, response })
    }

    fn advance(&mut self) -> Option<Response> {
        // One byte more shows that it is too long.
        while self.response.body.len() <= MAX_BODY {
            match self.stream.read(PIECE) {
                Ok(piece) if piece.is_empty() => return None,
                Ok(piece) => self.response.body.extend(piece),
                Err(StreamError::Closed) => {
                    if self.length.is_some_and(|length| self.response.body.len() < length) {
                        return Some(broken("the answer ends too early"));
                    }
                    break;
                }
                Err(StreamError::LastOperationFailed(_)) => return Some(broken("the answer breaks off")),
            }
        }
        self.response.body.truncate(MAX_BODY + 1);
        let empty = HttpResponse { status: 0, headers: vec![], body: vec![] };
        Some(Response::Http(core::mem::replace(&mut self.response, empty)))
    }
}
