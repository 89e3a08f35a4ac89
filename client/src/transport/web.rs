//! What all stores behind HTTP share: one server, spoken to directly, and nobody else.

use std::error::Error as _;
use std::fmt;
use std::time::Duration;

use leasehold_core::op::{Fault, FaultKind, TransportFault};
use reqwest::header::HeaderName;
use reqwest::{Client, ClientBuilder, Response, redirect};
use rustls::{ClientConfig, RootCertStore};

use super::tls;

/// How long the first answer may take, connecting included.
pub(super) const CONNECT_PATIENCE: Duration = Duration::from_secs(5);
/// Connections are closed on this side first, for servers and what stands before them keep idle ones about a minute.
const IDLE: Duration = Duration::from_secs(30);
/// Of one lane; more requests wait for their turn. As many are kept, so that a crowd does not make new ones all the time.
pub(super) const MOST_CONNECTIONS: usize = 32;
/// A peer that vanished without a word is noticed after about this long, where nothing else notices it.
const KEEPALIVE: Duration = Duration::from_secs(15);

/// For a server that is spoken to in plain text.
pub(super) fn without_tls() -> ClientConfig {
    // Without effect where the application has chosen its own.
    let _ = rustls::crypto::ring::default_provider().install_default();
    ClientConfig::builder().with_root_certificates(RootCertStore::empty()).with_no_client_auth()
}

/// A client for one pool: its connections belong to the runtime that makes them.
///
/// # Errors
/// There is no memory, or no file, for it.
pub(super) fn client(tls: &ClientConfig, https_only: bool) -> Result<Client, Fault> {
    let client = builder(tls.clone())
        .https_only(https_only)
        .connect_timeout(CONNECT_PATIENCE)
        .pool_idle_timeout(IDLE)
        .pool_max_idle_per_host(MOST_CONNECTIONS)
        .tcp_nodelay(true)
        .tcp_keepalive(KEEPALIVE);
    let unable = |error: &reqwest::Error| Fault::new(FaultKind::Unreachable, &format!("no HTTP client: {error}"));
    client.build().map_err(|error| unable(&error))
}

/// What no client of ours does: follow redirects, ask again, use proxies, tell where it comes from, unpack.
pub(super) fn builder(tls: ClientConfig) -> ClientBuilder {
    Client::builder()
        .user_agent(concat!("leasehold/", env!("CARGO_PKG_VERSION")))
        .tls_backend_preconfigured(tls)
        .http1_only()
        .redirect(redirect::Policy::none())
        // Whether to ask again is for the core to decide.
        .retry(reqwest::retry::never())
        .referer(false)
        .no_proxy()
        // Others in the same build may have turned these features on.
        .no_gzip()
        .no_brotli()
        .no_zstd()
        .no_deflate()
}

/// What went wrong below HTTP, at `server`. Before a connection stands, nothing of a request has left.
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

/// The layers above only say that something failed.
pub(super) fn innermost(error: &reqwest::Error) -> String {
    let Some(mut cause) = error.source() else { return error.to_string() };
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    cause.to_string()
}

/// A runtime that stood still hears only now which of its connections have been closed meanwhile; what is written to one
/// of those has an unknown fate.
pub(super) async fn catch_up() {
    tokio::task::yield_now().await;
}

/// The body, as far as it is worth reading: one byte more than an answer may have. What the head says of its length is
/// not looked at.
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

/// A header of an answer, if it is text.
pub(super) fn header(response: &Response, name: HeaderName) -> Option<String> {
    response.headers().get(name)?.to_str().ok().map(str::to_owned)
}
