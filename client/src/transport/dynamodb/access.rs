//! The address of the table, signed requests to it, and what their answers call for.

use std::fmt;
use std::sync::Arc;

use leasehold_core::op::{Denial, Fault, FaultKind, Outcome, TransportFault};
use leasehold_core::{Monotonic, Transmit};
use leasehold_wire::dynamodb::{Codec, Exchange, Request};
use leasehold_wire::sigv4::Signer;
use leasehold_wire::{Exchange as _, HttpResponse, Progress, Repeat};
use reqwest::{Client, RequestBuilder, Url};

use super::credentials::{CredentialCache, Environment, Keys};
use crate::error::Error;
use crate::host::clock;
use crate::host::sync::Mutex;
use crate::transport::readiness::{CONNECT_PATIENCE, Greeted, NoServer};
use crate::transport::web::{ServerClock, Web, written};
use crate::transport::web_link::{Asked, NoAnswer, WebLink, WebStore, found_by};
use crate::url::dynamodb::DynamodbUrl;

pub(super) type DynamodbLink = WebLink<DynamodbAccess>;

/// Access to one table.
pub(super) struct DynamodbAccess {
    codec: Codec,
    /// Scheme, host and port.
    base: Url,
    /// The value of the header `Host`.
    host: String,
    region: String,
    web: Arc<Web>,
    credentials: CredentialCache,
    signer: Mutex<Signer>,
    clock: ServerClock,
    shown: String,
}

impl DynamodbAccess {
    /// # Errors
    /// A certificate cannot be read.
    pub(super) fn new(url: &DynamodbUrl, codec: Codec) -> Result<Self, Error> {
        let wrong = |what: String| Error::config(format!("{url}: {what}"));
        let web = Web::new(url.endpoint.reach, url.ca.as_deref(), None).map_err(wrong)?;
        let base = &url.endpoint.base;
        Ok(Self {
            codec,
            host: host_header(base).to_owned(),
            base: Url::parse(base).map_err(|error| wrong(error.to_string()))?,
            region: url.region.clone(),
            web: Arc::new(web),
            credentials: CredentialCache::new(Environment::new(url.profile.as_deref(), &url.region)),
            signer: Mutex::new(Signer::new()),
            clock: ServerClock::default(),
            shown: url.to_string(),
        })
    }

    /// A request, signed now, by the server's clock if it is known.
    ///
    /// # Errors
    /// The request cannot be encoded.
    fn request(&self, client: &Client, request: &Request, keys: &Keys) -> Result<RequestBuilder, Fault> {
        let mut signer = self.signer.lock();
        let headers = signer.sign(request, &self.host, &self.region, keys, self.clock.unix_ms());
        drop(signer);
        written(client.post(self.base.clone()), headers.iter(), request.body.clone())
    }
}

impl WebStore for DynamodbAccess {
    type Exchange = Exchange;
    type Keys = Arc<Keys>;

    fn web(&self) -> &Arc<Web> {
        &self.web
    }

    fn begin(&self, request: &Transmit) -> Result<Exchange, Denial> {
        self.codec.begin(&request.ops, self.clock.unix_ms())
    }

    fn take(self: &Arc<Self>, exchange: &mut Exchange, answers: Vec<Asked<Self>>) -> Progress {
        exchange.answers(&mut (), answers)
    }

    async fn keys(link: &DynamodbLink, refused: Option<&Arc<Keys>>, deadline: Monotonic) -> Result<Arc<Keys>, Outcome> {
        let credentials = &link.store.credentials;
        let search = async {
            let found = match refused {
                Some(refused) => credentials.other_than(refused).await,
                None => credentials.keys().await,
            };
            found.map_err(|why| why.refusal())
        };
        found_by(deadline, search).await
    }

    async fn send(
        link: &DynamodbLink,
        request: &Request,
        keys: &Arc<Keys>,
        deadline: Monotonic,
    ) -> Result<HttpResponse, NoAnswer> {
        Ok(link.post(deadline, |client| link.store.request(client, request, keys)).await?)
    }

    fn repeat(&self, response: &HttpResponse) -> Option<Repeat> {
        self.codec.repeat(response)
    }

    fn set_clock(&self, unix_ms: u64) {
        self.clock.set(unix_ms);
    }

    /// A health check, which needs no keys, and then a search for keys. Any answer will do: DynamoDB Local answers that it
    /// wants a signature.
    async fn greet(link: &Arc<DynamodbLink>) -> Greeted {
        let store = &link.store;
        let deadline = clock::monotonic().plus(CONNECT_PATIENCE);
        match link.post(deadline, |client| Ok(client.get(store.base.clone()))).await {
            // The search has its own time limit and error message.
            Ok(_) => store.credentials.keys().await.map(|_| ()).map_err(|why| NoServer::Refused(why.refusal())),
            Err(TransportFault::NotSent(fault) | TransportFault::Unknown(fault)) => {
                if fault.kind != FaultKind::Timeout {
                    return Err(NoServer::Fault(fault));
                }
                let detail = format!("{store}: no connection within {CONNECT_PATIENCE:?}");
                Err(NoServer::Fault(Fault::new(FaultKind::Timeout, &detail)))
            }
        }
    }
}

/// The authority without the scheme's default port, because HTTP clients leave it out.
fn host_header(base: &str) -> &str {
    let (scheme, host) = base.split_once("://").unwrap_or(("", base));
    let usual = if scheme == "https" { ":443" } else { ":80" };
    host.strip_suffix(usual).unwrap_or(host)
}

impl fmt::Display for DynamodbAccess {
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
