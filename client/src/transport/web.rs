//! The HTTP client of all stores behind HTTP, and the one policy for their connections.

use std::error::Error as _;
use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use leasehold_core::Monotonic;
use leasehold_core::op::{Fault, FaultKind, TransportFault};
use leasehold_wire::HttpResponse;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, ClientBuilder, RequestBuilder, Response, redirect};
use rustls::{ClientConfig, RootCertStore};
use tokio::sync::Semaphore;

use super::deadline::until;
use super::readiness::CONNECT_PATIENCE;
use super::tls::OwnCertificate;
use super::{tcp, tls};
use crate::host::clock;
use crate::host::sync::Mutex;
use crate::host::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use crate::url::Exposure;

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

/// How to connect to one store, for all of its pools.
pub(super) struct Web {
    tls: ClientConfig,
    reach: Exposure,
    /// Counts how often a connection fell silent or broke under a request. Pools then begin again, since what has become of
    /// one connection has become of the idle ones too: nobody shall try them all.
    breaks: AtomicU64,
}

impl Web {
    /// # Errors
    /// A certificate cannot be read, or there is no file descriptor.
    pub(super) fn new(reach: Exposure, ca: Option<&Path>, own: OwnCertificate<'_>) -> Result<Self, String> {
        let tls = match (reach, own) {
            (Exposure::Loopback | Exposure::Plaintext, _) => without_tls(),
            (Exposure::Tls, own) => tls::config(ca, own)?,
        };
        let web = Self { tls, reach, breaks: AtomicU64::new(0) };
        web.client().map_err(|fault| fault.to_string())?;
        Ok(web)
    }

    fn client(&self) -> Result<Client, Fault> {
        let unable = |error: &dyn fmt::Display| Fault::new(FaultKind::Unreachable, &format!("no HTTP client: {error}"));
        // Requests to this machine may have secrets in clear text.
        let way = if self.reach == Exposure::Loopback { Way::Direct } else { Way::AsAsked };
        let client = builder(self.tls.clone(), way)
            .map_err(|error| unable(&error))?
            .https_only(self.reach == Exposure::Tls)
            .connect_timeout(CONNECT_PATIENCE)
            .pool_idle_timeout(IDLE)
            .pool_max_idle_per_host(MOST_CONNECTIONS)
            .tcp_nodelay(true)
            .tcp_keepalive(tcp::KEEPALIVE);
        client.build().map_err(|error| unable(&error))
    }
}

/// The clock of a server that has shown that ours is wrong; ours until then. For signatures, and for times that people read.
#[derive(Default)]
pub(super) struct ServerClock {
    ahead_ms: AtomicI64,
}

impl ServerClock {
    /// Milliseconds since 1970.
    pub(super) fn unix_ms(&self) -> u64 {
        clock::unix_ms().saturating_add_signed(self.ahead_ms.load(Ordering::Relaxed))
    }

    pub(super) fn set(&self, unix_ms: u64) {
        let ahead = i128::from(unix_ms) - i128::from(clock::unix_ms());
        self.ahead_ms.store(i64::try_from(ahead).unwrap_or(0), Ordering::Relaxed);
    }
}

/// Adds headers, whose values are not shown, and a body.
///
/// # Errors
/// A header has characters that none has.
pub(super) fn written<'n, 'v>(
    mut asked: RequestBuilder,
    headers: impl IntoIterator<Item = (&'n str, &'v str)>,
    body: Vec<u8>,
) -> Result<RequestBuilder, Fault> {
    for (name, value) in headers {
        let unwritable = || Fault::new(FaultKind::Protocol, &format!("the header {name} cannot be encoded"));
        let mut value = HeaderValue::try_from(value).map_err(|_| unwritable())?;
        value.set_sensitive(true);
        asked = asked.header(HeaderName::try_from(name).map_err(|_| unwritable())?, value);
    }
    Ok(asked.body(body))
}

/// Connections to one store that live in one runtime. Each request has one to itself while it lasts.
pub(super) struct Pool {
    web: Arc<Web>,
    room: Semaphore,
    /// The client, and the count of breaks when it was made.
    client: Mutex<Option<(u64, Client)>>,
}

impl Pool {
    pub(super) fn new(web: Arc<Web>) -> Self {
        Self { web, room: Semaphore::new(MOST_CONNECTIONS), client: Mutex::default() }
    }

    /// The client for a request, and the count of breaks that it knows of. Without connections where there was another break.
    ///
    /// # Errors
    /// There is not enough memory, or no file descriptor.
    pub(super) fn client(&self) -> Result<(u64, Client), Fault> {
        let breaks = self.web.breaks.load(Ordering::SeqCst);
        let mut client = self.client.lock();
        if let Some((known, client)) = &*client
            && *known == breaks
        {
            return Ok((*known, client.clone()));
        }
        let made = (breaks, self.web.client()?);
        *client = Some(made.clone());
        Ok(made)
    }

    /// Sends what `ask` makes, and reads the answer. A request without an answer by the deadline closes its connection, so
    /// that no other request gets its answer, and no pool of the store uses its idle connections any more.
    ///
    /// # Errors
    /// No connection, or no answer by the deadline.
    pub(super) async fn send(
        &self,
        deadline: Monotonic,
        server: &(dyn fmt::Display + Sync),
        most: usize,
        ask: impl FnOnce(&Client) -> Result<RequestBuilder, Fault>,
    ) -> Result<HttpResponse, TransportFault> {
        // The semaphore is never closed.
        let Some(_turn) = until(deadline, self.room.acquire()).await else {
            return Err(TransportFault::NotSent(Fault::new(FaultKind::Busy, "too many requests are under way")));
        };
        let (breaks, client) = self.client().map_err(TransportFault::NotSent)?;
        let asked = ask(&client).map_err(TransportFault::NotSent)?;
        drop(client);
        let answer = until(deadline, async {
            let mut response = asked.send().await?;
            let (status, headers) = (response.status().as_u16(), looked_at(response.headers()));
            reqwest::Result::Ok(HttpResponse { status, headers, body: read(&mut response, most).await? })
        });
        let answer = match answer.await {
            Some(answer) => answer.map_err(|error| fault(error, server)),
            None => Err(TransportFault::Unknown(Fault::of(FaultKind::Timeout))),
        };
        if let Err(TransportFault::Unknown(_)) = answer {
            // Those that began before an earlier break say nothing about the connections of today.
            let _ = self.web.breaks.compare_exchange(breaks, breaks + 1, Ordering::SeqCst, Ordering::SeqCst);
        }
        answer
    }
}

fn looked_at(headers: &HeaderMap) -> Vec<(String, String)> {
    let text = |name: &str| headers.get(name)?.to_str().ok().map(str::to_owned);
    HttpResponse::HEADERS.iter().filter_map(|name| Some(((*name).to_owned(), text(name)?))).collect()
}

/// The way to a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    Direct,
    /// Through the proxies that the environment names, for those who have said so.
    AsAsked,
}

/// The variable that says so.
const PROXY: &str = "LEASEHOLD_PROXY";

/// Tells if proxies of the environment are to be used.
///
/// # Errors
/// The variable says something else.
fn wants_proxies() -> Result<bool, String> {
    match std::env::var(PROXY).unwrap_or_default().as_str() {
        "" => Ok(false),
        "environment" => Ok(true),
        _ => Err(format!(
            "{PROXY} must be `environment`, which uses HTTPS_PROXY, HTTP_PROXY and NO_PROXY, or must not be set"
        )),
    }
}

/// A client without redirects, retries, referers and compression.
///
/// # Errors
/// The environment asks for something that is not there.
pub(super) fn builder(tls: ClientConfig, way: Way) -> Result<ClientBuilder, String> {
    let builder = Client::builder()
        .user_agent(concat!("leasehold/", env!("CARGO_PKG_VERSION")))
        .tls_backend_preconfigured(tls)
        .http1_only()
        .redirect(redirect::Policy::none())
        // The core decides on retries.
        .retry(reqwest::retry::never())
        .referer(false)
        // Other crates in the same build may have enabled these features.
        .no_gzip()
        .no_brotli()
        .no_zstd()
        .no_deflate();
    Ok(if way == Way::AsAsked && wants_proxies()? { builder } else { builder.no_proxy() })
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
