//! The HTTP client of all stores behind HTTP: it speaks directly to one server.

use std::error::Error as _;
use std::fmt;
use std::time::Duration;

use leasehold_core::op::{Fault, FaultKind, TransportFault};
use reqwest::header::HeaderName;
use reqwest::{Client, ClientBuilder, Response, redirect};
use rustls::{ClientConfig, RootCertStore};

use super::readiness::CONNECT_PATIENCE;
use super::{tcp, tls};

/// Idle connections are closed on this side first: servers and proxies close them after about a minute.
const IDLE: Duration = Duration::from_secs(30);
/// The most connections of one pool; more requests wait. All are kept, so that many callers do not make new ones all the time.
pub(super) const MOST_CONNECTIONS: usize = 32;

/// A configuration for servers without TLS.
pub(super) fn without_tls() -> ClientConfig {
    // No effect where the application has installed its own.
    let _ = rustls::crypto::ring::default_provider().install_default();
    ClientConfig::builder().with_root_certificates(RootCertStore::empty()).with_no_client_auth()
}

/// A client for one pool: its connections belong to the runtime that makes them.
///
/// # Errors
/// There is not enough memory, or no file descriptor.
pub(super) fn client(tls: &ClientConfig, https_only: bool) -> Result<Client, Fault> {
    let client = builder(tls.clone())
        .https_only(https_only)
        .connect_timeout(CONNECT_PATIENCE)
        .pool_idle_timeout(IDLE)
        .pool_max_idle_per_host(MOST_CONNECTIONS)
        .tcp_nodelay(true)
        .tcp_keepalive(tcp::KEEPALIVE);
    let unable = |error: &reqwest::Error| Fault::new(FaultKind::Unreachable, &format!("no HTTP client: {error}"));
    client.build().map_err(|error| unable(&error))
}

/// A client without redirects, retries, proxies, referers and compression.
pub(super) fn builder(tls: ClientConfig) -> ClientBuilder {
    Client::builder()
        .user_agent(concat!("leasehold/", env!("CARGO_PKG_VERSION")))
        .tls_backend_preconfigured(tls)
        .http1_only()
        .redirect(redirect::Policy::none())
        // The core decides on retries.
        .retry(reqwest::retry::never())
        .referer(false)
        .no_proxy()
        // Other crates in the same build may have enabled these features.
        .no_gzip()
        .no_brotli()
        .no_zstd()
        .no_deflate()
}

/// Converts a failure below HTTP, at `server`. Before there is a connection, no byte of a request has left.
pub(super) fn fault(error: reqwest::Error, server: &dyn fmt::Display) -> TransportFault {
    let never_left = error.is_connect() || error.is_builder();
    let timed_out = error.is_timeout();
    let said = innermost(&error.without_url());
    if never_left {
        let advice = tls::advice(&said);
        return TransportFault::NotSent(Fault::new(FaultKind::Unreachable, &format!("{server}: {said}{advice}")));
    }
    let kind = if timed_out { FaultKind::Timeout } else { FaultKind::Reset };
    TransportFault::Unknown(Fault::new(kind, &said))
}

/// The innermost cause: the outer errors only say that something failed.
pub(super) fn innermost(error: &reqwest::Error) -> String {
    let Some(mut cause) = error.source() else { return error.to_string() };
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    cause.to_string()
}

/// The body, up to one byte more than an answer may have. The length that the head declares is ignored.
///
/// # Errors
/// The connection ends before it does.
pub(super) async fn read(response: &mut Response, most: usize) -> reqwest::Result<Vec<u8>> {
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await? {
        let room = most + 1 - body.len();
        body.extend_from_slice(&chunk[..chunk.len().min(room)]);
        if body.len() > most {
            break;
        }
    }
    Ok(body)
}

/// A header of a response, if it is text.
pub(super) fn header(response: &Response, name: HeaderName) -> Option<String> {
    response.headers().get(name)?.to_str().ok().map(str::to_owned)
}
