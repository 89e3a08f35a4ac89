//! The right to ask: the names and tokens of clients, the hosts that requests may be for, and the pages that may send them.
//!
//! All of it is looked at before anything else, for every path.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::header::{
    AUTHORIZATION, CACHE_CONTROL, CONTENT_LENGTH, CONTENT_TYPE, HOST, HeaderName, ORIGIN, WWW_AUTHENTICATE,
};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, Version};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use subtle::ConstantTimeEq;

use super::api::{Caller, HEALTH};
use super::reply::{MOST_BODY, MOST_HEAD, Reply};
use super::state::Service;
use crate::args::ServeArgs;
use crate::output::{Failure, say};

/// The shortest token that is taken.
const SHORTEST: usize = 16;
/// The longest name of a client, which is a part of the labels of its locks.
const LONGEST_NAME: usize = 64;

/// The clients that are let in.
pub(super) struct AllowedClients {
    /// Names and tokens; anybody who reaches the daemon if there is none.
    tokens: Vec<(String, String)>,
    /// Requests must be for this machine, so that no web page can reach the daemon by a name of its own.
    is_loopback: bool,
}

impl AllowedClients {
    /// # Errors
    /// The daemon would be open to other machines, or its tokens cannot be read.
    pub(super) fn new(args: &ServeArgs) -> Result<Self, Failure> {
        let is_local = args.socket.is_some() || args.listen.ip().is_loopback();
        let has_tls = args.tls_cert.is_some() && args.tls_key.is_some();
        if args.tls_cert.is_some() != args.tls_key.is_some() {
            return Err(Failure::usage("--tls-cert and --tls-key belong together: name both files"));
        }
        let is_guarded = has_tls && args.tokens.is_some();
        if !(is_local || is_guarded) {
            return Err(Failure::usage(format!(
                "{} is open to other machines, where anybody could take and release locks: add --tls-cert FILE, --tls-key \
                 FILE and --tokens FILE, or listen on 127.0.0.1 or a --socket",
                args.listen
            )));
        }
        for secret in [&args.tokens, &args.tls_key].into_iter().flatten() {
            warn_if_open(secret);
        }
        let tokens = args.tokens.as_deref().map(read).transpose()?.unwrap_or_default();
        Ok(Self { is_loopback: args.socket.is_none() && tokens.is_empty(), tokens })
    }

    /// The name of the client that sent a request.
    fn caller(&self, request: &Request) -> Result<Caller, Reply> {
        let headers = request.headers();
        if head_bytes(request) > MOST_HEAD {
            return Err(Reply::long_head());
        }
        let host = host(request)?;
        if self.is_loopback && !is_this_machine(host) {
            return Err(Reply::wrong_host(host));
        }
        if is_of_foreign_page(headers, host) {
            return Err(Reply::foreign_page());
        }
        let length = headers.get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
        if length.is_some_and(|length| length > MOST_BODY as u64) {
            return Err(Reply::long_body());
        }
        // No page can send JSON to another site unasked, even one whose browser says nothing about it.
        if request.method() == Method::POST && !is_json(headers) {
            return Err(Reply::wrong_type());
        }
        if request.uri().path() == HEALTH {
            return Ok(Caller(String::new()));
        }
        if self.tokens.is_empty() {
            return Ok(Caller("local".to_owned()));
        }
        let shown = only(headers, &AUTHORIZATION).ok().flatten().and_then(token);
        let shown = shown.ok_or_else(Reply::unauthorized)?;
        let mut found = None;
        // All are compared, however early one fits, and as long for tokens that begin alike as for others.
        for (name, token) in &self.tokens {
            if token.as_bytes().ct_eq(shown.as_bytes()).into() {
                found = Some(name);
            }
        }
        found.map(|name| Caller(name.clone())).ok_or_else(Reply::unauthorized)
    }
}

/// The routes, for those who may use them.
pub(super) fn guarded(routes: Router, access: AllowedClients, service: Arc<Service>) -> Router {
    routes.layer(from_fn_with_state((Arc::new(access), service), check))
}

async fn check(
    State((access, service)): State<(Arc<AllowedClients>, Arc<Service>)>,
    mut request: Request,
    next: Next,
) -> Response {
    match access.caller(&request) {
        Ok(caller) => {
            service.counts.requests.fetch_add(1, Ordering::Relaxed);
            request.extensions_mut().insert(caller);
            let mut response = next.run(request).await;
            let headers = response.headers_mut();
            headers.entry(CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
            headers.insert("x-content-type-options", HeaderValue::from_static("nosniff"));
            response
        }
        Err(reply) => {
            service.counts.refused.fetch_add(1, Ordering::Relaxed);
            let mut response = reply.into_response();
            // A browser asks for the token as a password.
            let basic = HeaderValue::from_static("Basic realm=\"leasehold: any name, the token as password\"");
            if response.status() == StatusCode::UNAUTHORIZED {
                response.headers_mut().insert(WWW_AUTHENTICATE, basic);
            }
            response
        }
    }
}

/// The token that a header shows: as it is, or as the password of a browser.
fn token(header: &str) -> Option<String> {
    let (scheme, rest) = header.split_once(' ')?;
    if scheme.eq_ignore_ascii_case("bearer") {
        return Some(rest.trim().to_owned());
    }
    if !scheme.eq_ignore_ascii_case("basic") {
        return None;
    }
    let pair = String::from_utf8(STANDARD.decode(rest.trim()).ok()?).ok()?;
    pair.split_once(':').map(|(_, password)| password.to_owned())
}

/// The bytes of the first line and the headers, as they came.
fn head_bytes(request: &Request) -> usize {
    let uri = request.uri();
    let authority = uri.authority().map_or(0, |authority| authority.as_str().len() + "https://".len());
    let path = uri.path_and_query().map_or(0, |path| path.as_str().len());
    let line = request.method().as_str().len() + authority + path + "  HTTP/1.1\r\n".len();
    let headers = request.headers().iter();
    line + headers.map(|(name, value)| name.as_str().len() + value.len() + ": \r\n".len()).sum::<usize>() + "\r\n".len()
}

/// The host that a request is for, which is said once.
fn host(request: &Request) -> Result<&str, Reply> {
    let bad = || Reply::bad("send one header Host, with the name of this daemon");
    let host = match only(request.headers(), &HOST) {
        Ok(host) => host,
        Err(()) => return Err(bad()),
    };
    let is_old = request.version() < Version::HTTP_11;
    match (host, request.uri().authority()) {
        (None, _) if !is_old => Err(bad()),
        // The one in the first line counts.
        (Some(host), Some(authority)) if !host.eq_ignore_ascii_case(authority.as_str()) => Err(bad()),
        (host, _) => Ok(host.unwrap_or_default()),
    }
}

/// A page that was not sent by this daemon has its browser make the request. Programs send none of these headers.
fn is_of_foreign_page(headers: &HeaderMap, host: &str) -> bool {
    let site = HeaderName::from_static("sec-fetch-site");
    let is_own_site = match only(headers, &site) {
        Ok(site) => site.is_none_or(|site| matches!(site, "same-origin" | "none")),
        Err(()) => false,
    };
    let is_own_origin = match only(headers, &ORIGIN) {
        Ok(origin) => origin.is_none_or(|origin| {
            origin.split_once("://").is_some_and(|(_, authority)| authority.eq_ignore_ascii_case(host))
        }),
        Err(()) => false,
    };
    !(is_own_site && is_own_origin)
}

fn is_json(headers: &HeaderMap) -> bool {
    only(headers, &CONTENT_TYPE).is_ok_and(|kind| {
        let kind = kind.and_then(|kind| kind.split(';').next()).unwrap_or_default();
        kind.trim().eq_ignore_ascii_case("application/json")
    })
}

/// The value of a header; an error if there are several, or one that is no text.
fn only<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Result<Option<&'a str>, ()> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (None, _) => Ok(None),
        (Some(value), None) => value.to_str().map(Some).map_err(drop),
        (Some(_), Some(_)) => Err(()),
    }
}

fn is_this_machine(host: &str) -> bool {
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => host.split(':').next().unwrap_or_default(),
    };
    name.eq_ignore_ascii_case("localhost") || name.parse().is_ok_and(|ip: std::net::IpAddr| ip.is_loopback())
}

/// Warns of a secret that other users of the machine can read. A group may be the daemon's own.
fn warn_if_open(secret: &Path) {
    // One that cannot be looked at cannot be read either, which is reported.
    let Ok(mode) = std::fs::metadata(secret).map(|file| file.permissions().mode()) else { return };
    if mode & 0o027 != 0 {
        let (mode, file) = (mode & 0o777, secret.display());
        say(format_args!("{file}: its mode {mode:03o} lets other users read or change this secret: chmod 600 {file}"));
    }
}

fn read(file: &Path) -> Result<Vec<(String, String)>, Failure> {
    let wrong = |what: String| Failure::usage(format!("{}: {what}", file.display()));
    let text = std::fs::read_to_string(file).map_err(|error| wrong(format!("cannot be read: {error}")))?;
    let mut tokens: Vec<(String, String)> = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let number = index + 1;
        let Some((name, token)) = line.split_once(char::is_whitespace) else {
            return Err(wrong(format!("line {number} is not: NAME TOKEN")));
        };
        if name.len() > LONGEST_NAME || name.contains(char::is_control) {
            return Err(wrong(format!(
                "line {number}: a name has {LONGEST_NAME} bytes at most, and no control characters"
            )));
        }
        let token = token.trim();
        if token.len() < SHORTEST || token.contains(char::is_whitespace) {
            return Err(wrong(format!("line {number}: a token has {SHORTEST} characters or more, and no space")));
        }
        if tokens.iter().any(|(_, other)| other == token) {
            return Err(wrong(format!("line {number}: two clients have the same token")));
        }
        tokens.push((name.to_owned(), token.to_owned()));
    }
    if tokens.is_empty() {
        return Err(wrong("there is no token in it; write lines of NAME TOKEN".to_owned()));
    }
    Ok(tokens)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_this_machine_are_its_own() {
        for host in ["localhost", "LOCALHOST:80", "127.0.0.1", "127.9.9.9:7070", "[::1]:7070", "[::1]"] {
            assert!(is_this_machine(host), "{host}");
        }
        for host in ["", "example.com", "localhost.example.com", "10.0.0.1:7070", "[2001:db8::1]", "::1"] {
            assert!(!is_this_machine(host), "{host}");
        }
    }

    #[test]
    fn only_the_daemons_own_pages_may_ask() {
        let is_foreign = |lines: &[(&'static str, &'static str)]| {
            let mut headers = HeaderMap::new();
            for (name, value) in lines {
                headers.append(*name, HeaderValue::from_static(value));
            }
            is_of_foreign_page(&headers, "localhost:7070")
        };
        for own in [
            &[][..],
            &[("origin", "http://localhost:7070")],
            &[("origin", "https://LOCALHOST:7070"), ("sec-fetch-site", "same-origin")],
            &[("sec-fetch-site", "none")],
        ] {
            assert!(!is_foreign(own), "{own:?}");
        }
        for foreign in [
            &[("origin", "http://evil.example")][..],
            &[("origin", "http://localhost:3000")],
            &[("origin", "http://localhost")],
            &[("origin", "null")],
            &[("origin", "")],
            &[("origin", "http://localhost:7070"), ("origin", "http://evil.example")],
            &[("sec-fetch-site", "cross-site")],
            &[("sec-fetch-site", "same-site"), ("origin", "http://localhost:7070")],
        ] {
            assert!(is_foreign(foreign), "{foreign:?}");
        }
    }

    #[test]
    fn tokens_are_found_in_both_schemes() {
        assert_eq!(token("Bearer abc").as_deref(), Some("abc"));
        assert_eq!(token("basic eDphYmM=").as_deref(), Some("abc"));
        for odd in ["", "Bearer", "Digest abc", "Basic !", "Basic YWJj"] {
            assert_eq!(token(odd), None, "{odd}");
        }
    }
}
