//! The same commands over HTTP: Upstash's REST interface and Webdis.
//!
//! One request carries one command. There is no connection that could be named, so nothing can be said of replicas:
//! [`Settings::replicas`](super::redis::Settings::replicas) is for RESP only, and renewals of a cluster's slots, which
//! are commands of their own, need requests of their own.
//!
//! Webdis 0.1.9 never answers a request with `Connection: close` whose body comes in a later packet than its headers:
//! keep connections open.

use alloc::borrow::ToOwned;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt::{self, Write};

use serde_json::Value as Json;

use crate::errors::{Known, Means, find, known};
use crate::redis::{Command, Exchange};
use crate::resp::Value;
use leasehold_core::op::{Denial, DenialKind, Fault, FaultKind, Outcome, Refusal};

#[cfg(test)]
mod tests;

/// The longest body that is read; a longer one is of no reply to us.
pub const MAX_BODY: usize = 1 << 20;

pub(super) const MAX_DEPTH: usize = 32;

/// Which of the two.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Dialect {
    /// A JSON array in, `{"result": ...}` or `{"error": ...}` out.
    Upstash,
    /// A path in, `{"COMMAND": ...}` out, errors with status 200.
    Webdis,
}

/// A request to be sent to the server that the URL names. `Debug` does not show the token.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct HttpRequest {
    /// Always `POST`.
    pub method: &'static str,
    /// Below the path of the URL, if that has any.
    pub path: String,
    /// Names in lowercase.
    pub headers: Vec<(&'static str, String)>,
    /// The command.
    pub body: Vec<u8>,
}

impl fmt::Debug for HttpRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let headers: Vec<&str> = self.headers.iter().map(|(name, _)| *name).collect();
        write!(f, "{} {} with {headers:?} and {} bytes", self.method, self.path, self.body.len())
    }
}

/// The request for the command of an exchange.
///
/// Of several commands only the first is sent, and the exchange calls all unknown for want of replies: see above for
/// which exchanges have more than one. Arguments are UTF-8, as all of ours are.
pub fn request(dialect: Dialect, commands: &[Command], token: Option<&str>) -> HttpRequest {
    let args = commands.first().into_iter().flat_map(Command::words);
    let (content_type, body) = match dialect {
        Dialect::Upstash => {
            let args = args.map(|arg| Json::String(String::from_utf8_lossy(arg).into_owned())).collect();
            // Exactly this: servers compare the whole text.
            ("application/json", Json::Array(args).to_string())
        }
        Dialect::Webdis => ("application/x-www-form-urlencoded", path_of(args)),
    };
    let mut headers = alloc::vec![("content-type", content_type.to_owned())];
    headers.extend(token.map(|token| ("authorization", alloc::format!("Bearer {token}"))));
    HttpRequest { method: "POST", path: "/".to_owned(), headers, body: body.into_bytes() }
}

/// An exchange whose rounds have one command each, as those have without replicas: one operation, or renewals, which share
/// it, and the core sends nothing else together.
///
/// # Errors
/// It has several commands, and a request carries one.
pub fn only_one(exchange: Exchange) -> Result<Exchange, Denial> {
    if exchange.commands().len() == 1 {
        return Ok(exchange);
    }
    let detail = "operations that share no command cannot be asked for together over HTTP";
    Err(Denial::new(DenialKind::Other, detail))
}

/// Nothing but letters, digits, `-` and `_` stands for itself: a dot could begin what Webdis takes for an extension.
fn path_of<'a>(args: impl Iterator<Item = &'a [u8]>) -> String {
    let mut path = String::new();
    for (index, arg) in args.enumerate() {
        if index > 0 {
            path.push('/');
        }
        for byte in arg {
            if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_') {
                path.push(char::from(*byte));
            } else {
                // Writing to a string cannot fail.
                let _ = write!(path, "%{byte:02X}");
            }
        }
    }
    path
}

/// The parts of a response that are looked at beside its body.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Head<'a> {
    /// The status.
    pub status: u16,
    /// The header `Content-Type`.
    pub content_type: Option<&'a str>,
    /// The header `Location`.
    pub location: Option<&'a str>,
}

/// The statuses that are known. With others it may have been done.
pub(crate) const KNOWN: [Known; 7] = [
    known("401", Means::Final(DenialKind::Permission), TOKEN),
    known("403", Means::Final(DenialKind::Permission), TOKEN),
    known("404", Means::Final(DenialKind::Other), "there is no such page: check the host and path of the URL"),
    known(
        "405",
        Means::Final(DenialKind::Other),
        "the server takes no POST here: check the URL, and which of Upstash and Webdis it is",
    ),
    known(
        "413",
        Means::Final(DenialKind::Other),
        "the request is too large for the server: raise its limit for the size of requests",
    ),
    known("429", Means::TooMany, "too many requests"),
    known("5*", Means::Unfinished, "the server, or a proxy before it, has failed"),
];

const TOKEN: &str =
    "the server refuses the token, or its rights: check that it is this database's token and not a read-only one";

/// Shorter secrets are found in texts that have nothing to do with them.
const SECRET_BYTES: usize = 8;

/// The reply in a response to a request with one command. A redirection needs no body. `secret` is the token or password
/// that the request carried: it is left out of what the server's words are quoted with.
///
/// # Errors
/// What the response means for every operation of the request, where it holds no reply.
pub fn judge(dialect: Dialect, head: &Head<'_>, body: &[u8], secret: Option<&str>) -> Result<Value, Outcome> {
    judge_without(dialect, head, body, secret.as_slice())
}

/// [`judge`], where a secret is known in several forms.
pub(super) fn judge_without(
    dialect: Dialect,
    head: &Head<'_>,
    body: &[u8],
    secrets: &[&str],
) -> Result<Value, Outcome> {
    if (300..400).contains(&head.status) {
        return Err(redirected_without(head.location, secrets));
    }
    reply_without(dialect, head.status, head.content_type, body, secrets)
}

/// The replies in a response, one for the one command of the request.
///
/// # Errors
/// What the response means for every operation of the request, where it holds no reply.
pub fn replies(dialect: Dialect, status: u16, content_type: Option<&str>, body: &[u8]) -> Result<Vec<Value>, Outcome> {
    reply_without(dialect, status, content_type, body, &[]).map(|reply| alloc::vec![reply])
}

fn reply_without(
    dialect: Dialect,
    status: u16,
    content_type: Option<&str>,
    body: &[u8],
    secrets: &[&str],
) -> Result<Value, Outcome> {
    // Only as text, since JSON may write the same characters in several ways.
    let parsed = || {
        let reply = reply(dialect, content_type, body)?;
        Ok(if let Value::Error(error) = reply { Value::Error(without(secrets, error)) } else { reply })
    };
    let said = || match parsed() {
        Ok(Value::Error(error)) => alloc::format!(" (the server said: {})", super::redis::said(&error)),
        Ok(_) | Err(_) => String::new(),
    };
    match status {
        200 => parsed().map_err(|what| unknown(status, what)),
        // Upstash says with a status that Redis refused; others say so of requests that they may have passed on.
        400 => match parsed() {
            Ok(Value::Error(error)) if dialect == Dialect::Upstash => Ok(Value::Error(error)),
            Ok(_) => Err(unknown(status, "no error")),
            Err(what) => Err(unknown(status, what)),
        },
        300..400 => Err(redirected(None)),
        _ => Err(match find(&KNOWN, &status.to_string()) {
            Some(known) => known.means.outcome(&alloc::format!("{} (status {status}){}", known.advice, said())),
            None => unknown(status, "no success"),
        }),
    }
}

/// Returns the outcome of a redirection; it is not followed, for the token is meant for one host only.
pub fn redirected(location: Option<&str>) -> Outcome {
    redirected_without(location, &[])
}

fn redirected_without(location: Option<&str>, secrets: &[&str]) -> Outcome {
    let to = match location.and_then(host_of) {
        Some(host) => alloc::format!("to {:?}", without(secrets, host.to_owned())),
        None => "elsewhere".to_owned(),
    };
    let detail = alloc::format!("the server redirects {to}, which is not followed: put the final address into the URL");
    denied(DenialKind::Other, &detail)
}

/// Host and port alone: the rest of a location may hold secrets.
fn host_of(location: &str) -> Option<&str> {
    let (_, rest) = location.split_once("//")?;
    let authority = rest.split(['/', '?', '#', '\\']).next()?;
    let host = authority.rsplit('@').next()?;
    let could_be = |byte: u8| byte.is_ascii_alphanumeric() || b".-_:[]".contains(&byte);
    (!host.is_empty() && host.len() <= 260 && host.bytes().all(could_be)).then_some(host)
}

fn without(secrets: &[&str], text: String) -> String {
    let long = secrets.iter().filter(|secret| secret.len() >= SECRET_BYTES);
    long.fold(text, |text, secret| text.replace(secret, "*"))
}

fn reply(dialect: Dialect, content_type: Option<&str>, body: &[u8]) -> Result<Value, &'static str> {
    if content_type.is_some_and(|kind| !kind.to_ascii_lowercase().contains("json")) {
        return Err("no JSON, by its content type");
    }
    if body.len() > MAX_BODY {
        return Err("a body longer than allowed");
    }
    if depth(body) > MAX_DEPTH {
        return Err("JSON nested deeper than allowed");
    }
    let Ok(Json::Object(fields)) = serde_json::from_slice(body) else { return Err("no JSON object") };
    let mut fields = fields.into_iter();
    let (Some((name, json)), None) = (fields.next(), fields.next()) else { return Err("not one field") };
    match (dialect, name.as_str(), json) {
        (Dialect::Upstash, "result", json) => value(json),
        (Dialect::Upstash, "error", Json::String(error)) => Ok(Value::Error(error)),
        (Dialect::Upstash, ..) => Err("neither result nor error"),
        (Dialect::Webdis, _, json) => webdis(json),
    }
}

/// A status or an error is a pair whose first half says which; no other reply of ours begins so.
fn webdis(json: Json) -> Result<Value, &'static str> {
    if let Json::Array(items) = &json
        && let [Json::Bool(fine), rest @ ..] = items.as_slice()
    {
        return match (fine, rest) {
            (true, [Json::String(text)]) => Ok(Value::Simple(text.clone().into())),
            (false, [Json::String(text)]) => Ok(Value::Error(text.clone())),
            _ => Err("a status without text"),
        };
    }
    value(json)
}

fn value(json: Json) -> Result<Value, &'static str> {
    Ok(match json {
        Json::Null => Value::Nil,
        Json::Bool(yes) => Value::Boolean(yes),
        // A fraction or an exponent may have lost digits already.
        Json::Number(number) => Value::Integer(number.as_i64().ok_or("a number that is no integer")?),
        Json::String(text) => Value::Bulk(text.into_bytes()),
        Json::Array(items) => Value::Array(items.into_iter().map(value).collect::<Result<_, _>>()?),
        Json::Object(_) => return Err("an object in the reply"),
    })
}

/// How deep the brackets go, as far as they are no part of strings. Wrong JSON may give any answer, and is refused
/// afterwards.
pub(super) fn depth(body: &[u8]) -> usize {
    let (mut now, mut most, mut in_string, mut escaped) = (0_usize, 0, false, false);
    for byte in body {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => in_string = !in_string,
            b'[' | b'{' if !in_string => {
                now += 1;
                most = most.max(now);
            }
            b']' | b'}' if !in_string => now = now.saturating_sub(1),
            _ => {}
        }
    }
    most
}

/// The status alone, never the body: a page of a proxy may show what was sent.
fn unknown(status: u16, what: &str) -> Outcome {
    let kind = if status == 200 { FaultKind::Protocol } else { FaultKind::Server };
    Outcome::Unknown(Fault::new(kind, &alloc::format!("HTTP status {status}, {what}")))
}

fn denied(kind: DenialKind, detail: &str) -> Outcome {
    Outcome::NotApplied(Refusal::Denied(Denial::new(kind, detail)))
}
