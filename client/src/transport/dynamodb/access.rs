//! The address of the table, and signed requests to it.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use leasehold_core::op::{Fault, FaultKind, Refusal};
use leasehold_wire::dynamodb::Request;
use leasehold_wire::sigv4::{self, Signer};
use reqwest::header::{HeaderName, HeaderValue};
use reqwest::{Client, RequestBuilder, Url};

use super::credentials::{CredentialCache, Environment, Keys};
use crate::error::Error;
use crate::host::clock;
use crate::host::sync::Mutex;
use crate::transport::web::{Pool, Web};
use crate::url::dynamodb::DynamodbUrl;

/// The most of a body that is read.
pub(super) const MOST_BODY: usize = 1 << 20;

/// Access to one table.
pub(super) struct Access {
    /// Scheme, host and port.
    base: Url,
    /// The value of the header `Host`.
    host: String,
    region: String,
    web: Arc<Web>,
    credentials: CredentialCache,
    signer: Mutex<Signer>,
    /// The offset of the server's clock from ours; for signatures, and for times that people read.
    ahead_ms: AtomicI64,
    shown: String,
}

impl Access {
    /// # Errors
    /// A certificate cannot be read.
    pub(super) fn new(url: &DynamodbUrl) -> Result<Self, Error> {
        let wrong = |what: String| Error::config(format!("{url}: {what}"));
        let web = Web::new(url.endpoint.reach, url.ca.as_deref(), None).map_err(wrong)?;
        let base = &url.endpoint.base;
        Ok(Self {
            host: host_header(base).to_owned(),
            base: Url::parse(base).map_err(|error| wrong(error.to_string()))?,
            region: url.region.clone(),
            web: Arc::new(web),
            credentials: CredentialCache::new(Environment::new(url.profile.as_deref(), &url.region)),
            signer: Mutex::new(Signer::new()),
            ahead_ms: AtomicI64::new(0),
            shown: url.to_string(),
        })
    }

    /// Connections for one runtime.
    pub(super) fn pool(&self) -> Pool {
        Pool::new(Arc::clone(&self.web))
    }

    /// The health check of a server, which needs no keys.
    pub(super) fn greeting(&self, client: &Client) -> RequestBuilder {
        client.get(self.base.clone())
    }

    pub(super) async fn keys(&self) -> Result<Arc<Keys>, Refusal> {
        self.credentials.keys().await.map_err(|why| why.refusal())
    }

    /// Other keys than those that the server has refused.
    pub(super) async fn other_keys(&self, refused: &Arc<Keys>) -> Result<Arc<Keys>, Refusal> {
        self.credentials.other_than(refused).await.map_err(|why| why.refusal())
    }

    /// A request, signed now, by the server's clock if it is known.
    ///
    /// # Errors
    /// The request cannot be encoded.
    pub(super) fn request(&self, client: &Client, request: &Request, keys: &Keys) -> Result<RequestBuilder, Fault> {
        let credentials = sigv4::Credentials {
            access_key_id: keys.access_key_id.clone(),
            secret_access_key: String::clone(&keys.secret_access_key),
            session_token: keys.session_token.as_deref().cloned(),
        };
        let mut signer = self.signer.lock();
        let headers = signer.sign(request, &self.host, &self.region, &credentials, self.unix_ms());
        drop(signer);
        let mut asked = client.post(self.base.clone());
        for (name, value) in headers.iter() {
            let unwritable = |_| Fault::new(FaultKind::Protocol, &format!("the header {name} cannot be encoded"));
            let mut value = HeaderValue::try_from(value).map_err(unwritable)?;
            value.set_sensitive(true);
            asked = asked.header(HeaderName::from_static(name), value);
        }
        Ok(asked.body(request.body.clone()))
    }

    /// Milliseconds since 1970 by the server's clock, if it is known, or else by ours.
    pub(super) fn unix_ms(&self) -> u64 {
        clock::unix_ms().saturating_add_signed(self.ahead_ms.load(Ordering::Relaxed))
    }

    /// Sets the server's clock, in milliseconds since 1970, for later signatures.
    pub(super) fn set_clock(&self, unix_ms: u64) {
        let ahead = i128::from(unix_ms) - i128::from(clock::unix_ms());
        self.ahead_ms.store(i64::try_from(ahead).unwrap_or(0), Ordering::Relaxed);
    }
}

/// The authority without the scheme's default port, because HTTP clients leave it out.
fn host_header(base: &str) -> &str {
    let (scheme, host) = base.split_once("://").unwrap_or(("", base));
    let usual = if scheme == "https" { ":443" } else { ":80" };
    host.strip_suffix(usual).unwrap_or(host)
}

impl fmt::Display for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_signed_host_is_the_one_that_is_sent() {
        for (base, host) in [
            ("https://dynamodb.eu-west-1.amazonaws.com", "dynamodb.eu-west-1.amazonaws.com"),
            ("https://example.com:443", "example.com"),
            ("https://example.com:80", "example.com:80"),
            ("http://127.0.0.1:8000", "127.0.0.1:8000"),
            ("http://127.0.0.1:80", "127.0.0.1"),
            ("http://[::1]:8000", "[::1]:8000"),
        ] {
            assert_eq!(host_header(base), host);
        }
    }
}
