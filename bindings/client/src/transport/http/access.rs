//! Making clients of HTTP: where to, TLS, who we are.

use std::error::Error as _;
use std::fmt;
use std::time::Duration;

use leasehold_core::op::{Fault, FaultKind, TransportFault};
use leasehold_core::wire::redis::Command;
use leasehold_core::wire::rest::{self, Dialect};
use reqwest::header::{AUTHORIZATION, HeaderName, HeaderValue};
use reqwest::{Client, RequestBuilder, redirect};
use rustls::{ClientConfig, RootCertStore};

use crate::error::Error;
use crate::transport::tls;
use crate::url::http::{HttpUrl, Login, Reach};

/// How long the first answer may take, connecting included.
pub(super) const CONNECT_PATIENCE: Duration = Duration::from_secs(5);
/// Connections are closed on this side first, for servers and what stands before them keep idle ones about a minute.
const IDLE: Duration = Duration::from_secs(30);
/// Of one lane; more requests wait for their turn. As many are kept, so that a crowd does not make new ones all the time.
pub(super) const MOST_CONNECTIONS: usize = 32;
/// A peer that vanished without a word is noticed after about this long, where nothing else notices it.
const KEEPALIVE: Duration = Duration::from_secs(15);
/// Shorter secrets are found in texts that have nothing to do with them.
const SECRET_BYTES: usize = 8;

/// The way to one server.
pub(super) struct Access {
    pub(super) dialect: Dialect,
    pub(super) reach: Reach,
    pub(super) login: Login,
    base: String,
    /// Made once, since reading the certificates of the system takes 20 ms; clones share them, and TLS sessions.
    tls: ClientConfig,
    shown: String,
}

impl Access {
    /// # Errors
    /// A certificate cannot be read.
    pub(super) fn new(url: &HttpUrl) -> Result<Self, Error> {
        let wrong = |what: String| Error::config(format!("{url}: {what}"));
        let tls = match url.reach {
            Reach::Tls => tls::trusting(url.ca.as_deref()).map_err(wrong)?.with_no_client_auth(),
            Reach::Loopback | Reach::Plaintext => {
                // Without effect where the application has chosen its own.
                let _ = rustls::crypto::ring::default_provider().install_default();
                let roots = RootCertStore::empty();
                ClientConfig::builder().with_root_certificates(roots).with_no_client_auth()
            }
        };
        let access = Self {
            dialect: url.dialect,
            reach: url.reach,
            login: url.login.clone(),
            base: url.base.clone(),
            tls,
            shown: url.to_string(),
        };
        access.client().map_err(|fault| wrong(fault.to_string()))?;
        Ok(access)
    }

    /// A client for one lane: its connections belong to the runtime that makes them.
    pub(super) fn client(&self) -> Result<Client, Fault> {
        let client = Client::builder()
            .user_agent(concat!("leasehold/", env!("CARGO_PKG_VERSION")))
            .tls_backend_preconfigured(self.tls.clone())
            .https_only(self.reach == Reach::Tls)
            .connect_timeout(CONNECT_PATIENCE)
            .pool_idle_timeout(IDLE)
            .pool_max_idle_per_host(MOST_CONNECTIONS)
            .tcp_nodelay(true)
            .tcp_keepalive(KEEPALIVE)
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
            .no_deflate();
        let unable = |error: &reqwest::Error| Fault::new(FaultKind::Unreachable, &format!("no HTTP client: {error}"));
        client.build().map_err(|error| unable(&error))
    }

    /// # Errors
    /// The request cannot be written down.
    pub(super) fn request(&self, client: &Client, command: &Command) -> Result<RequestBuilder, Fault> {
        let token = match &self.login {
            Login::Token(token) => Some(token.as_str()),
            Login::Nobody | Login::Basic { .. } => None,
        };
        let asked = rest::request(self.dialect, std::slice::from_ref(command), token);
        let mut request = client.post(format!("{}{}", self.base, asked.path));
        for (name, value) in asked.headers {
            let unwritable = |_| Fault::new(FaultKind::Protocol, &format!("the header {name} cannot be written"));
            let mut value = HeaderValue::try_from(value).map_err(unwritable)?;
            let name = HeaderName::from_static(name);
            value.set_sensitive(name == AUTHORIZATION);
            request = request.header(name, value);
        }
        if let Login::Basic { user, password } = &self.login {
            request = request.basic_auth(user, Some(password.as_str()));
        }
        Ok(request.body(asked.body))
    }

    /// What went wrong below HTTP. Before a connection stands, nothing of a request has left.
    pub(super) fn trouble(&self, error: reqwest::Error) -> TransportFault {
        let never_left = error.is_connect() || error.is_builder();
        let timed_out = error.is_timeout();
        let said = innermost(&error.without_url());
        if never_left {
            let advice = if said.contains("certificate") {
                "; if the server's certificate is of an authority of your own, name its file in the parameter ca"
            } else {
                ""
            };
            return TransportFault::NotSent(Fault::new(FaultKind::Unreachable, &format!("{self}: {said}{advice}")));
        }
        let kind = if timed_out { FaultKind::Timeout } else { FaultKind::Reset };
        TransportFault::Unknown(Fault::new(kind, &said))
    }

    /// Whether a text repeats the token or password, and so must not be shown.
    pub(super) fn is_betrayed_by(&self, text: &[u8]) -> bool {
        let secret = match &self.login {
            Login::Nobody => return false,
            Login::Token(secret) | Login::Basic { password: secret, .. } => secret.as_bytes(),
        };
        secret.len() >= SECRET_BYTES && text.windows(secret.len()).any(|part| part == secret)
    }

    /// What the server ought to be.
    pub(super) fn kind_of_server(&self) -> &'static str {
        match self.dialect {
            Dialect::Upstash => "an Upstash REST server",
            Dialect::Webdis => "a Webdis",
        }
    }
}

impl fmt::Display for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown)
    }
}

/// The layers above only say that something failed.
fn innermost(error: &reqwest::Error) -> String {
    let Some(mut cause) = error.source() else { return error.to_string() };
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    cause.to_string()
}
