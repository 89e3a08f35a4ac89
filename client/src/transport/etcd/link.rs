//! One pool of connections to the members of an etcd.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::future::join_all;
use leasehold_core::op::{Fault, FaultKind, Outcome, Refusal, TransportFault};
use leasehold_core::{Monotonic, Transmit};
use leasehold_wire::etcd::{Progress, Request, Response, Session, classify, token};
use reqwest::Client;
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderValue};
use rustls::ClientConfig;
use tokio::sync::Semaphore;

use crate::clock;
use crate::error::Error;
use crate::sync::Mutex;
use crate::transport::connections::{Link, until};
use crate::transport::readiness::catch_up;
use crate::transport::web::{self, MOST_CONNECTIONS};
use crate::transport::{Answering, tls};
use crate::url::Reach;
use crate::url::etcd::EtcdUrl;

/// The longest body that is read; no answer to us is longer.
const MOST_BODY: usize = 1 << 20;

/// Access to the members, which all links share.
pub(super) struct Access {
    url: EtcdUrl,
    bases: Vec<String>,
    tls: ClientConfig,
    /// The member that answered last.
    current: AtomicUsize,
    token: Mutex<Option<String>>,
}

impl Access {
    /// # Errors
    /// A certificate cannot be read.
    pub(super) fn new(url: &EtcdUrl) -> Result<Self, Error> {
        let wrong = |what: String| Error::config(format!("{url}: {what}"));
        let (scheme, tls) = match (url.reach, &url.shown) {
            (Reach::Tls, shown) => {
                let trusting = tls::trusting(url.ca.as_deref()).map_err(wrong)?;
                let tls = match shown {
                    Some((certificate, key)) => tls::showing(trusting, certificate, key).map_err(wrong)?,
                    None => trusting.with_no_client_auth(),
                };
                ("https", tls)
            }
            (Reach::Loopback | Reach::Plaintext, _) => ("http", web::without_tls()),
        };
        let bases = url.hosts.iter().map(|host| format!("{scheme}://{host}")).collect();
        Ok(Self { url: url.clone(), bases, tls, current: AtomicUsize::new(0), token: Mutex::default() })
    }
}

impl fmt::Display for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.url.fmt(f)
    }
}

/// A pool that requests share, each on a connection of its own while it lasts.
pub(super) struct EtcdLink {
    access: Arc<Access>,
    client: Result<Client, Fault>,
    session: Session,
    room: Semaphore,
}

/// A response, or the outcome that its absence means.
type Asked = Result<Response, Outcome>;

impl EtcdLink {
    pub(super) fn new(access: Arc<Access>, session: Session) -> Self {
        let client = web::client(&access.tls, access.url.reach == Reach::Tls);
        Self { access, client, session, room: Semaphore::new(MOST_CONNECTIONS) }
    }

    /// Sends a request. One whose token was refused is sent once more, with a fresh one.
    pub(super) async fn command(&self, request: &Request, deadline: Monotonic) -> Asked {
        let used = self.token(None, deadline).await?;
        let asked = self.anywhere(request, used.as_deref(), deadline).await?;
        if asked.status == 200 || !matches!(classify(&asked), Outcome::NotApplied(Refusal::NeedsCredentials(_))) {
            return Ok(asked);
        }
        let fresh = self.token(used, deadline).await?;
        self.anywhere(request, fresh.as_deref(), deadline).await
    }

    /// The token of the user, other than one that was refused; `None` where the url names no user.
    async fn token(&self, refused: Option<String>, deadline: Monotonic) -> Result<Option<String>, Outcome> {
        let Some((user, password)) = &self.access.url.login else { return Ok(None) };
        let known = self.access.token.lock().clone();
        if known.is_some() && known != refused {
            return Ok(known);
        }
        let response = self.anywhere(&self.session.login(user, password), None, deadline).await;
        // Nothing of the request itself has left.
        let fresh = response.and_then(|response| token(&response)).map_err(|outcome| match outcome {
            Outcome::Unknown(fault) => Outcome::NotApplied(Refusal::Unavailable(fault)),
            Outcome::Applied(_) | Outcome::NotApplied(_) => outcome,
        })?;
        *self.access.token.lock() = Some(fresh.clone());
        Ok(Some(fresh))
    }

    /// Asks one member after the other, as long as nothing can have been written; each has its part of the time.
    async fn anywhere(&self, request: &Request, token: Option<&str>, deadline: Monotonic) -> Asked {
        let members = self.access.bases.len();
        let mut last = Err(TransportFault::NotSent(Fault::of(FaultKind::Unreachable)).outcome());
        let first = self.access.current.load(Ordering::Relaxed);
        for tried in 0..members {
            let at = (first + tried) % members;
            let now = clock::monotonic();
            let part = deadline.since(now) / u32::try_from(members - tried).unwrap_or(1);
            let until_then = if request.writes { deadline } else { now.plus(part) };
            last = self.post(at, request, token, until_then).await;
            let has_failed = match &last {
                Ok(response) => response.status != 200 && matches!(classify(response), Outcome::Unknown(_)),
                Err(_) => true,
            };
            if !has_failed {
                return last;
            }
            let next = (at + 1) % members;
            let _ = self.access.current.compare_exchange(at, next, Ordering::Relaxed, Ordering::Relaxed);
            let may_be_applied = !matches!(last, Err(Outcome::NotApplied(_)));
            if request.writes && may_be_applied {
                return last;
            }
        }
        last
    }

    /// A request without an answer by the deadline closes its connection, so that no other request gets its answer.
    async fn post(&self, at: usize, request: &Request, token: Option<&str>, deadline: Monotonic) -> Asked {
        let not_sent = |fault: &Fault| TransportFault::NotSent(fault.clone()).outcome();
        let client = self.client.as_ref().map_err(not_sent)?;
        // The semaphore is never closed.
        let Some(_turn) = until(deadline, self.room.acquire()).await else {
            return Err(not_sent(&Fault::new(FaultKind::Busy, "too many requests are under way")));
        };
        let base = self.access.bases.get(at).map_or("", String::as_str);
        let mut asked = client
            .post(format!("{base}{}", request.path))
            .header(CONTENT_TYPE, HeaderValue::from_static("application/json"))
            .body(request.body.clone());
        if let Some(token) = token {
            let unwritable = |_| not_sent(&Fault::new(FaultKind::Protocol, "the token of etcd cannot be encoded"));
            let mut token = HeaderValue::try_from(token).map_err(unwritable)?;
            token.set_sensitive(true);
            asked = asked.header(AUTHORIZATION, token);
        }
        let broken = |error| web::fault(error, &*self.access).outcome();
        let answer = until(deadline, async {
            let mut response = asked.send().await.map_err(broken)?;
            let status = response.status().as_u16();
            Ok(Response { status, body: web::read(&mut response, MOST_BODY).await.map_err(broken)? })
        });
        answer.await.unwrap_or_else(|| Err(TransportFault::Unknown(Fault::of(FaultKind::Timeout)).outcome()))
    }
}

impl Link for EtcdLink {
    fn ask(self: Arc<Self>, request: Transmit) -> Answering {
        Box::pin(async move {
            let mut exchange = self.session.begin(&request.ops, clock::unix_ms());
            catch_up().await;
            loop {
                let asked = exchange.requests().iter().map(|asked| self.command(asked, request.deadline));
                if let Progress::Done(outcomes) = exchange.answers(join_all(asked).await) {
                    return Ok(outcomes);
                }
            }
        })
    }

    /// Every exchange begins with a read, which greets the server.
    fn is_ready(&self) -> bool {
        true
    }

    fn prepare(self: Arc<Self>) {}
}
