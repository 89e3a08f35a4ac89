//! One pool of connections to the members of an etcd, and its readiness.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::future::join_all;
use leasehold_core::op::{Fault, FaultKind, Outcome, Refusal, TransportFault};
use leasehold_core::{Monotonic, Transmit};
use leasehold_wire::errors::login_refused_again;
use leasehold_wire::etcd::{Memory, Progress, Request, Response, Session, classify, token};
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderValue};
use reqwest::{Client, RequestBuilder};
use tracing::Level;

use crate::error::Error;
use crate::host::clock;
use crate::host::sync::Mutex;
use crate::reports;
use crate::transport::connections::Link;
use crate::transport::pauses::patience;
use crate::transport::readiness::{CONNECT_PATIENCE, Greeted, NoServer, Readiness, catch_up, in_time};
use crate::transport::web::{self, Pool, Web};
use crate::transport::{Answer, Answering};
use crate::url::Reach;
use crate::url::etcd::EtcdUrl;

/// The longest body that is read; no answer to us is longer.
const MOST_BODY: usize = 1 << 20;

/// Access to the members, which all links share.
pub(super) struct Access {
    url: EtcdUrl,
    bases: Vec<String>,
    web: Arc<Web>,
    /// The member that answered last.
    current: AtomicUsize,
    token: Mutex<Option<String>>,
    memory: Mutex<Memory>,
}

impl Access {
    /// # Errors
    /// A certificate cannot be read.
    pub(super) fn new(url: &EtcdUrl) -> Result<Self, Error> {
        let wrong = |what: String| Error::config(format!("{url}: {what}"));
        let shown = url.shown.as_ref().map(|(certificate, key)| (certificate.as_path(), key.as_path()));
        let web = Web::new(url.reach, url.ca.as_deref(), shown).map_err(wrong)?;
        let scheme = if url.reach == Reach::Tls { "https" } else { "http" };
        let bases = url.hosts.iter().map(|host| format!("{scheme}://{host}")).collect();
        Ok(Self {
            url: url.clone(),
            bases,
            web: Arc::new(web),
            current: AtomicUsize::new(0),
            token: Mutex::default(),
            memory: Mutex::default(),
        })
    }
}

impl fmt::Display for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.url.fmt(f)
    }
}

/// A pool that requests share, each on a connection of its own while it lasts.
///
/// It greets the members by a read, and by logging in.
pub(super) struct EtcdLink {
    access: Arc<Access>,
    pool: Pool,
    session: Session,
    readiness: Arc<Readiness>,
}

/// A response, or the outcome that its absence means.
type Asked = Result<Response, Outcome>;

impl EtcdLink {
    pub(super) fn new(access: Arc<Access>, session: Session) -> Self {
        let pool = Pool::new(Arc::clone(&access.web));
        Self { access, pool, session, readiness: Arc::default() }
    }

    /// Waits until a member has answered.
    ///
    /// # Errors
    /// None does, or the login is refused.
    pub(super) async fn wait_ready(self: &Arc<Self>, patience: Duration) -> Greeted {
        self.readiness.wait(patience, || Arc::clone(self).greet()).await
    }

    async fn greet(self: Arc<Self>) -> Greeted {
        let deadline = clock::monotonic().plus(CONNECT_PATIENCE);
        let met = match self.command(&self.session.look(), deadline).await {
            // Without a leader or a right, it is there all the same: each request is judged by its own answer.
            Ok(_) => Ok(()),
            Err(Outcome::NotApplied(Refusal::Unavailable(fault))) => Err(NoServer::Fault(fault)),
            Err(outcome) => Err(NoServer::from(outcome)),
        };
        if let Err(why) = &met {
            why.report(Arc::clone(&self.access));
        }
        met
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
    pub(super) async fn token(&self, refused: Option<String>, deadline: Monotonic) -> Result<Option<String>, Outcome> {
        let Some((user, password)) = &self.access.url.login else { return Ok(None) };
        let known = self.access.token.lock().clone();
        if known.is_some() && known != refused {
            return Ok(known);
        }
        let response = self.anywhere(&self.session.login(user, password), None, deadline).await;
        // Nothing of the request itself has left.
        let fresh = response.and_then(|response| token(&response)).map_err(|outcome| match outcome {
            Outcome::Unknown(fault) => Outcome::NotApplied(Refusal::Unavailable(fault)),
            Outcome::NotApplied(refusal) if known.is_some() => Outcome::NotApplied(login_refused_again(refusal)),
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

    async fn post(&self, at: usize, request: &Request, token: Option<&str>, deadline: Monotonic) -> Asked {
        self.post_dated(at, request, token, deadline).await.map(|(response, _)| response)
    }

    /// The same, and the clock of the member.
    async fn post_dated(
        &self,
        at: usize,
        request: &Request,
        token: Option<&str>,
        deadline: Monotonic,
    ) -> Result<(Response, Option<String>), Outcome> {
        let base = self.access.bases.get(at).map_or("", String::as_str);
        let ask = |client: &Client| written(client, base, request, token);
        let answered =
            self.pool.send(deadline, &*self.access, MOST_BODY, ask).await.map_err(|fault| fault.outcome())?;
        let date = answered.header("date").map(str::to_owned);
        Ok((Response { status: answered.status, body: answered.body }, date))
    }

    /// Asks one member a question about itself; the answer comes with its clock.
    pub(super) async fn member(&self, at: usize, request: &Request) -> Result<(Response, Option<String>), Outcome> {
        let deadline = clock::monotonic().plus(CONNECT_PATIENCE);
        let token = self.token(None, deadline).await?;
        self.post_dated(at, request, token.as_deref(), deadline).await
    }

    /// The most bytes that etcd keeps, as its metrics show it.
    pub(super) async fn quota(&self) -> Option<u64> {
        let base = self.access.bases.get(self.access.current.load(Ordering::Relaxed))?;
        let deadline = clock::monotonic().plus(CONNECT_PATIENCE);
        let ask = |client: &Client| Ok(client.get(format!("{base}/metrics")));
        let answered = self.pool.send(deadline, &*self.access, MOST_BODY, ask).await.ok()?;
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
        let at = (self.access.current.load(Ordering::Relaxed) + skipped) % self.access.bases.len();
        let base = self.access.bases.get(at).map_or("", String::as_str);
        let (_, client) = self.pool.client().map_err(not_sent)?;
        let asked = written(&client, base, request, token).map_err(not_sent)?;
        let asked = asked.header("grpc-metadata-hasleader", "true");
        let broken = |error| web::fault(error, &*self.access).outcome();
        let mut response = asked.send().await.map_err(broken)?;
        match response.status().as_u16() {
            200 => Ok(response),
            status => {
                let body = web::read(&mut response, MOST_BODY).await.map_err(broken)?;
                Err(classify(&Response { status, body }))
            }
        }
    }

    pub(super) fn access(&self) -> &Access {
        &self.access
    }
}

fn written(client: &Client, base: &str, request: &Request, token: Option<&str>) -> Result<RequestBuilder, Fault> {
    let asked = client
        .post(format!("{base}{}", request.path))
        .header(CONTENT_TYPE, HeaderValue::from_static("application/json"))
        .body(request.body.clone());
    let Some(token) = token else { return Ok(asked) };
    let unwritable = |_| Fault::new(FaultKind::Protocol, "the token of etcd cannot be encoded");
    let mut token = HeaderValue::try_from(token).map_err(unwritable)?;
    token.set_sensitive(true);
    Ok(asked.header(AUTHORIZATION, token))
}

fn not_sent(fault: Fault) -> Outcome {
    TransportFault::NotSent(fault).outcome()
}

impl EtcdLink {
    async fn exchange(self: &Arc<Self>, request: &Transmit) -> Answer {
        let mut exchange = self.session.begin(&self.access.memory.lock(), &request.ops, clock::unix_ms());
        catch_up().await;
        loop {
            let asked = exchange.requests().iter().map(|asked| self.command(asked, request.deadline));
            let answers = join_all(asked).await;
            if answers.iter().any(Result::is_err) {
                self.readiness.reset();
            }
            let mut memory = self.access.memory.lock();
            let had_lost = memory.has_lost();
            let progress = exchange.answers(&mut memory, answers);
            let has_lost = memory.has_lost();
            drop(memory);
            if has_lost && !had_lost {
                self.report_loss();
            }
            if let Progress::Done(outcomes) = progress {
                return Ok(outcomes);
            }
        }
    }

    fn report_loss(self: &Arc<Self>) {
        let link = Arc::clone(self);
        reports::queue(Level::WARN, move || {
            tracing::warn!(target: "leasehold", store = %link.access,
                "its data is older than it was, or of another cluster: locks and tokens may come again");
        });
    }
}

impl Link for EtcdLink {
    fn ask(self: Arc<Self>, request: Transmit) -> Answering {
        Box::pin(async move {
            match in_time(request.deadline, self.wait_ready(patience(&request))).await {
                Ok(()) => self.exchange(&request).await,
                Err(why) => why.answer(&request),
            }
        })
    }

    fn is_ready(&self) -> bool {
        self.readiness.is_ready()
    }

    fn prepare(self: Arc<Self>) {
        let _ = self.readiness.begin(CONNECT_PATIENCE, || Arc::clone(&self).greet());
    }
}
