//! The members of an etcd: how they are asked, one after the other, and who asks.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use leasehold_core::op::{Denial, Fault, FaultKind, Outcome, Refusal, TransportFault};
use leasehold_core::{Monotonic, Transmit};
use leasehold_wire::errors::login_refused_again;
use leasehold_wire::etcd::{Codec, Exchange, Memory, Request, classify, token};
use leasehold_wire::{Exchange as _, HttpResponse, Progress, Repeat};
use reqwest::{Client, RequestBuilder};
use tracing::Level;

use crate::error::Error;
use crate::host::clock;
use crate::host::sync::Mutex;
use crate::reports;
use crate::transport::readiness::{CONNECT_PATIENCE, Greeted, NoServer};
use crate::transport::web::{self, Web};
use crate::transport::web_link::{Asked, MOST_BODY, NoAnswer, WebLink, WebStore};
use crate::url::Exposure;
use crate::url::etcd::EtcdUrl;

pub(super) type EtcdLink = WebLink<EtcdAccess>;

/// Access to the members, which all links share.
pub(super) struct EtcdAccess {
    url: EtcdUrl,
    codec: Codec,
    bases: Vec<String>,
    web: Arc<Web>,
    /// The member that answered last.
    current: AtomicUsize,
    token: Mutex<Option<String>>,
    memory: Mutex<Memory>,
}

impl EtcdAccess {
    /// # Errors
    /// A certificate cannot be read.
    pub(super) fn new(url: &EtcdUrl, codec: Codec) -> Result<Self, Error> {
        let wrong = |what: String| Error::config(format!("{url}: {what}"));
        let shown = url.shown.as_ref().map(|(certificate, key)| (certificate.as_path(), key.as_path()));
        let web = Web::new(url.reach, url.ca.as_deref(), shown).map_err(wrong)?;
        let scheme = if url.reach == Exposure::Tls { "https" } else { "http" };
        let bases = url.hosts.iter().map(|host| format!("{scheme}://{host}")).collect();
        Ok(Self {
            url: url.clone(),
            codec,
            bases,
            web: Arc::new(web),
            current: AtomicUsize::new(0),
            token: Mutex::default(),
            memory: Mutex::default(),
        })
    }
}

impl fmt::Display for EtcdAccess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.url.fmt(f)
    }
}

impl WebStore for EtcdAccess {
    type Exchange = Exchange;
    /// The token of the user; `None` where the url names no user.
    type Keys = Option<String>;

    fn web(&self) -> &Arc<Web> {
        &self.web
    }

    fn begin(&self, request: &Transmit) -> Result<Exchange, Denial> {
        Ok(self.codec.begin(&self.memory.lock(), &request.ops, clock::unix_ms()))
    }

    fn take(self: &Arc<Self>, exchange: &mut Exchange, answers: Vec<Asked<Self>>) -> Progress {
        let mut memory = self.memory.lock();
        let had_lost = memory.has_lost();
        let progress = exchange.answers(&mut memory, answers);
        let has_lost = memory.has_lost();
        drop(memory);
        if has_lost && !had_lost {
            let store = Arc::clone(self);
            reports::queue(Level::WARN, move || {
                tracing::warn!(target: "leasehold", %store,
                    "its data is older than it was, or of another cluster: locks and tokens may come again");
            });
        }
        progress
    }

    async fn keys(
        link: &EtcdLink,
        refused: Option<&Option<String>>,
        deadline: Monotonic,
    ) -> Result<Option<String>, Outcome> {
        let store = &link.store;
        let Some((user, password)) = &store.url.login else { return Ok(None) };
        let known = store.token.lock().clone();
        if known.is_some() && refused != Some(&known) {
            return Ok(known);
        }
        let response = store.anywhere(link, &store.codec.login(user, password), None, deadline).await;
        let fresh = response.map_err(|why| why.outcome()).and_then(|response| token(&response));
        let fresh = fresh.map_err(|outcome| {
            // The pauses of greetings keep a wrong password from being tried all the time.
            link.doubt();
            match outcome {
                Outcome::Unknown(fault) => Outcome::NotApplied(Refusal::Unavailable(fault)),
                Outcome::NotApplied(refusal) if known.is_some() => Outcome::NotApplied(login_refused_again(refusal)),
                Outcome::Applied(_) | Outcome::NotApplied(_) => outcome,
            }
        })?;
        *store.token.lock() = Some(fresh.clone());
        Ok(Some(fresh))
    }

    async fn send(
        link: &EtcdLink,
        request: &Request,
        token: &Option<String>,
        deadline: Monotonic,
    ) -> Result<HttpResponse, NoAnswer> {
        link.store.anywhere(link, request, token.as_deref(), deadline).await
    }

    fn repeat(&self, response: &HttpResponse) -> Option<Repeat> {
        self.codec.repeat(response).filter(|_| self.url.login.is_some())
    }

    /// A read, and a login. Without a leader or a right, it is there all the same: each request is judged by its own answer.
    async fn greet(link: &Arc<EtcdLink>) -> Greeted {
        let deadline = clock::monotonic().plus(CONNECT_PATIENCE);
        let met = link.untried(&link.store.codec.look(), deadline).await;
        met.map(|_| ()).map_err(|why| NoServer::ungreeted(why.outcome()))
    }
}

impl EtcdAccess {
    /// Asks one member after the other, as long as nothing can have been written; each has its part of the time.
    async fn anywhere(
        &self,
        link: &EtcdLink,
        request: &Request,
        token: Option<&str>,
        deadline: Monotonic,
    ) -> Result<HttpResponse, NoAnswer> {
        let members = self.bases.len();
        let mut last = Err(NoAnswer::Transport(TransportFault::NotSent(Fault::of(FaultKind::Unreachable))));
        let first = self.current.load(Ordering::Relaxed);
        for tried in 0..members {
            let at = (first + tried) % members;
            let now = clock::monotonic();
            let part = deadline.since(now) / u32::try_from(members - tried).unwrap_or(1);
            let until_then = if request.writes { deadline } else { now.plus(part) };
            last = self.post(link, at, request, token, until_then).await;
            let has_failed = match &last {
                Ok(response) => response.status != 200 && matches!(classify(response), Outcome::Unknown(_)),
                Err(_) => true,
            };
            if !has_failed {
                return last;
            }
            let next = (at + 1) % members;
            let _ = self.current.compare_exchange(at, next, Ordering::Relaxed, Ordering::Relaxed);
            let may_be_applied = !matches!(last, Err(NoAnswer::Transport(TransportFault::NotSent(_))));
            if request.writes && may_be_applied {
                return last;
            }
        }
        last
    }

    /// Asks one member.
    async fn post(
        &self,
        link: &EtcdLink,
        at: usize,
        request: &Request,
        token: Option<&str>,
        deadline: Monotonic,
    ) -> Result<HttpResponse, NoAnswer> {
        let base = self.bases.get(at).map_or("", String::as_str);
        Ok(link.post(deadline, |client| written(client, base, request, token)).await?)
    }

    /// The member that answered last, or the one so many places behind it.
    fn base(&self, skipped: usize) -> &str {
        let at = (self.current.load(Ordering::Relaxed) + skipped) % self.bases.len();
        self.bases.get(at).map_or("", String::as_str)
    }
}

impl EtcdLink {
    /// Asks one member a question about itself.
    pub(super) async fn member(&self, at: usize, request: &Request) -> Result<HttpResponse, Outcome> {
        let deadline = clock::monotonic().plus(CONNECT_PATIENCE);
        let token = EtcdAccess::keys(self, None, deadline).await?;
        self.store.post(self, at, request, token.as_deref(), deadline).await.map_err(|why| why.outcome())
    }

    /// The most bytes that etcd keeps, as its metrics show it.
    pub(super) async fn quota(&self) -> Option<u64> {
        let deadline = clock::monotonic().plus(CONNECT_PATIENCE);
        let base = self.store.base(0);
        let answered = self.post(deadline, |client| Ok(client.get(format!("{base}/metrics")))).await.ok()?;
        let text = String::from_utf8(answered.body).ok()?;
        let line = text.lines().find_map(|line| line.strip_prefix("etcd_server_quota_backend_bytes "))?;
        // Written as 2.147483648e+09.
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a size, for a message")]
        line.trim().parse::<f64>().ok().map(|bytes| bytes as u64)
    }

    /// Opens a stream at a member that has a leader: the one that answered last, or one of the next.
    pub(super) async fn stream(
        &self,
        skipped: usize,
        request: &Request,
        token: Option<&str>,
    ) -> Result<reqwest::Response, Outcome> {
        let not_sent = |fault| TransportFault::NotSent(fault).outcome();
        let (_, client) = self.pool.client().map_err(not_sent)?;
        let asked = written(&client, self.store.base(skipped), request, token).map_err(not_sent)?;
        let asked = asked.header("grpc-metadata-hasleader", "true");
        let broken = |error| web::fault(error, &*self.store).outcome();
        let mut response = asked.send().await.map_err(broken)?;
        match response.status().as_u16() {
            200 => Ok(response),
            status => {
                let body = web::read(&mut response, MOST_BODY).await.map_err(broken)?;
                Err(classify(&HttpResponse::new(status, body)))
            }
        }
    }
}

fn written(client: &Client, base: &str, request: &Request, token: Option<&str>) -> Result<RequestBuilder, Fault> {
    let token = token.map(|token| ("authorization", token));
    let headers = [("content-type", "application/json")].into_iter().chain(token);
    web::written(client.post(format!("{base}{}", request.path)), headers, request.body.clone())
}
