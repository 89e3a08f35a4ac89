//! One HTTP connection: requests in, answers out, or something worse.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::sync::atomic::Ordering;

use serde_json::{Value, json};

use super::command::{self, Encoding, Gateway};
use super::{Misbehave, Shared};
use crate::PATIENCE;
use crate::http::{Head, MOST_BODY};

const PAGE: &str =
    "<!DOCTYPE html>\n<html><head><title>Sign in</title></head><body>Welcome to our network</body></html>\n";

/// An answer on its way.
struct Answer {
    status: u16,
    kind: &'static str,
    location: Option<String>,
    body: String,
}

impl Answer {
    fn json(status: u16, body: &Value) -> Self {
        Self::text(status, body.to_string())
    }

    fn text(status: u16, body: String) -> Self {
        Self { status, kind: "application/json", location: None, body }
    }

    fn error(status: u16, message: &str) -> Self {
        Self::json(status, &json!({ "error": message }))
    }

    fn head(&self) -> String {
        let mut head = format!("HTTP/1.1 {} {}\r\n", self.status, reason(self.status));
        head.push_str(&format!("Content-Type: {}\r\nContent-Length: {}\r\n", self.kind, self.body.len()));
        if let Some(location) = &self.location {
            head.push_str(&format!("Location: {location}\r\n"));
        }
        head + "\r\n"
    }
}

/// Serves requests until either side has had enough.
pub(super) fn connection(shared: &Shared, mut stream: &TcpStream) {
    let mut gateway = Gateway::new(shared.redis_port, shared.redis.clone());
    let mut unread = Vec::new();
    let prepared = stream.set_nodelay(true).and_then(|()| stream.set_write_timeout(Some(PATIENCE)));
    if prepared.is_err() {
        return;
    }
    loop {
        let (head, body) = match next_request(stream, &mut unread) {
            Ok(Some(request)) => request,
            Ok(None) | Err(Refused::Gone) => return,
            Err(Refused::With(answer)) => {
                shared.requests.fetch_add(1, Ordering::SeqCst);
                let _ = send(stream, &answer);
                return;
            }
        };
        shared.requests.fetch_add(1, Ordering::SeqCst);
        let sent = match shared.misbehaviour(&body) {
            None => send(stream, &answer(shared, &mut gateway, &head, &body)),
            Some(Misbehave::Status(status, body)) => send(stream, &Answer::text(status, body)),
            Some(Misbehave::Html) => {
                let page = Answer { status: 200, kind: "text/html", location: None, body: PAGE.to_owned() };
                send(stream, &page)
            }
            Some(Misbehave::Large(bytes)) => send(stream, &Answer::json(200, &json!({ "result": "x".repeat(bytes) }))),
            Some(Misbehave::Redirect(url)) => {
                let away = Answer { location: Some(url), ..Answer::text(307, String::new()) };
                send(stream, &away)
            }
            Some(Misbehave::HalfBody) => {
                let whole = answer(shared, &mut gateway, &head, &body);
                let half = &whole.body.as_bytes()[..whole.body.len() / 2];
                let _ = stream.write_all(whole.head().as_bytes()).and_then(|()| stream.write_all(half));
                return;
            }
            Some(Misbehave::Hang) => {
                // Further bytes are read and ignored.
                while stream.read(&mut [0; 1024]).is_ok_and(|read| read > 0) {}
                return;
            }
            Some(Misbehave::CloseBeforeAnswer) => return,
            Some(Misbehave::CloseAfterApplying) => {
                answer(shared, &mut gateway, &head, &body);
                return;
            }
        };
        let closes = head.header("connection").is_some_and(|value| value.eq_ignore_ascii_case("close"));
        if sent.is_err() || closes || head.start.ends_with("HTTP/1.0") {
            return;
        }
    }
}

/// The reason why there is no request to serve.
enum Refused {
    Gone,
    With(Answer),
}

impl From<io::Error> for Refused {
    fn from(_: io::Error) -> Self {
        Self::Gone
    }
}

/// The next request with its body; `None` when the client has no more.
fn next_request(mut stream: &TcpStream, unread: &mut Vec<u8>) -> Result<Option<(Head, Vec<u8>)>, Refused> {
    let bad = |why: String| Refused::With(Answer::error(400, &format!("ERR {why}")));
    let mut read = |unread: &mut Vec<u8>| -> io::Result<bool> {
        let mut chunk = [0; 16 << 10];
        let read = stream.read(&mut chunk)?;
        unread.extend_from_slice(&chunk[..read]);
        Ok(read > 0)
    };
    let head = loop {
        if let Some(head) = Head::parse(unread).map_err(bad)? {
            break head;
        }
        if !read(unread)? {
            return Ok(None);
        }
    };
    let length = match head.body_length() {
        Ok(length) => length.unwrap_or(0),
        Err(why) => return Err(Refused::With(Answer::error(411, &format!("ERR {why}")))),
    };
    if length > MOST_BODY {
        let message = format!("ERR max request size exceeded. Limit: {MOST_BODY} bytes, Actual: {length} bytes");
        return Err(Refused::With(Answer::error(413, &message)));
    }
    while unread.len() < head.length + length {
        if !read(unread)? {
            return Ok(None);
        }
    }
    let body = unread[head.length..head.length + length].to_vec();
    unread.drain(..head.length + length);
    Ok(Some((head, body)))
}

/// The proper answer.
fn answer(shared: &Shared, gateway: &mut Gateway, head: &Head, body: &[u8]) -> Answer {
    let mut words = head.start.split(' ');
    let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    if head.header("authorization").and_then(|value| value.strip_prefix("Bearer ")) != Some(&shared.token) {
        return Answer::error(401, "WRONGPASS invalid or missing auth token");
    }
    if method != "POST" {
        return Answer::error(405, "ERR method not allowed");
    }
    let encoding = match head.header("upstash-encoding") {
        Some("base64") => Encoding::Base64,
        Some(_) | None => Encoding::Text,
    };
    let done = match path {
        "/" => gateway.single(body, encoding),
        "/pipeline" => gateway.pipeline(body, encoding),
        "/multi-exec" => gateway.transaction(body, encoding),
        _ => Err(command::Failure::Refused(format!("ERR Command is not available: '{path}'"))),
    };
    match done {
        Ok(body) => Answer::json(200, &body),
        Err(command::Failure::Refused(message)) => Answer::error(400, &message),
        Err(command::Failure::NoRedis(message)) => Answer::error(500, &message),
    }
}

fn send(mut stream: &TcpStream, answer: &Answer) -> io::Result<()> {
    let mut message = answer.head().into_bytes();
    message.extend_from_slice(answer.body.as_bytes());
    stream.write_all(&message)
}

fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        307 => "Temporary Redirect",
        400 => "Bad Request",
        401 => "Unauthorized",
        405 => "Method Not Allowed",
        411 => "Length Required",
        413 => "Content Too Large",
        429 => "Too Many Requests",
        500 => "Internal Server Error",
        503 => "Service Unavailable",
        _ => "Whatever",
    }
}
