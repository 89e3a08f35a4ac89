//! One pool of connections to a storage service, and its readiness.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use futures_util::future::join_all;
use leasehold_core::op::{Denial, DenialKind, Fault, FaultKind, Outcome, Refusal, TransportFault};
use leasehold_core::{Monotonic, Nonce, Transmit};
use leasehold_wire::objects::{
    Harm, Memory, Method, Progress, Race, Repeat, Request, Response, Session, Trial, Verdict, repeat,
};
use leasehold_wire::sigv4::http_date;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, Url};

use super::auth::{Auth, Signed, Used};
use crate::error::Error;
use crate::host::clock;
use crate::host::entropy::fill;
use crate::host::sync::Mutex;
use crate::transport::connections::{Link, until};
use crate::transport::pauses::patience;
use crate::transport::readiness::{CONNECT_PATIENCE, Greeted, NoServer, Readiness, catch_up, in_time};
use crate::transport::web::{Pool, Web};
use crate::transport::{Answer, Answering};
use crate::url::objects::ObjectsUrl;

/// The longest body that is read; no answer to us is longer.
const MOST_BODY: usize = 1 << 20;

/// How often a trial begins again because another came between.
const MOST_TRIALS: usize = 5;

/// Access to the bucket, which all links share.
pub(super) struct Access {
    url: ObjectsUrl,
    /// The value of the header `Host`.
    host: String,
    web: Arc<Web>,
    auth: Auth,
    memory: Mutex<Memory>,
    /// The trial of conditions, before the first write to a service that is not the cloud's own.
    trial: Arc<Readiness>,
    /// The offset of the service's clock from ours, for signatures.
    ahead_ms: AtomicI64,
}

impl Access {
    /// # Errors
    /// A certificate cannot be read.
    pub(super) fn new(url: &ObjectsUrl) -> Result<Self, Error> {
        let wrong = |what: String| Error::config(format!("{url}: {what}"));
        let web = Web::new(url.reach, url.ca.as_deref(), None).map_err(wrong)?;
        let (_, host) = url.base.split_once("://").unwrap_or(("", &url.base));
        Ok(Self {
            url: url.clone(),
            host: host.to_owned(),
            web: Arc::new(web),
            auth: Auth::new(url),
            memory: Mutex::default(),
            trial: Arc::default(),
            ahead_ms: AtomicI64::new(0),
        })
    }

    /// Notes if a read may miss a write that was answered before.
    pub(super) fn set_may_be_stale(&self, may_be_stale: bool) {
        self.memory.lock().set_may_be_stale(may_be_stale);
    }

    fn unix_ms(&self) -> u64 {
        clock::unix_ms().saturating_add_signed(self.ahead_ms.load(Ordering::Relaxed))
    }

    /// Sets the service's clock by the header `date` of an answer.
    fn set_clock(&self, response: &Response) {
        let date = response.headers.iter().find(|(name, _)| name == "date");
        if let Some(unix_ms) = date.and_then(|(_, date)| http_date(date)) {
            let ahead = i128::from(unix_ms) - i128::from(clock::unix_ms());
            self.ahead_ms.store(i64::try_from(ahead).unwrap_or(0), Ordering::Relaxed);
        }
    }
}

impl fmt::Display for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.url.fmt(f)
    }
}

/// A pool that requests share, each on a connection of its own while it lasts.
///
/// It greets the service by reading the marker.
pub(super) struct ObjectsLink {
    access: Arc<Access>,
    pool: Pool,
    session: Session,
    readiness: Arc<Readiness>,
}

/// A response, or the outcome that its absence means.
type Asked = Result<Response, Outcome>;

impl ObjectsLink {
    pub(super) fn new(access: Arc<Access>, session: Session) -> Self {
        let pool = Pool::new(Arc::clone(&access.web));
        Self { access, pool, session, readiness: Arc::default() }
    }

    async fn wait_ready(self: &Arc<Self>, patience: Duration) -> Greeted {
        self.readiness.wait(patience, || Arc::clone(self).greet()).await
    }

    async fn greet(self: Arc<Self>) -> Greeted {
        let deadline = clock::monotonic().plus(CONNECT_PATIENCE);
        let met = match self.command(&self.session.look(), deadline).await {
            // Without a right, it is there all the same: each request is judged by its own answer.
            Ok(_) => Ok(()),
            Err(Outcome::NotApplied(Refusal::Unavailable(fault))) => Err(NoServer::Fault(fault)),
            Err(outcome) => Err(NoServer::from(outcome)),
        };
        if let Err(why) = &met {
            why.report(Arc::clone(&self.access));
        }
        met
    }

    /// Sends a request. The clouds' own services are known to honour conditions; others have to show it before the first write.
    pub(super) async fn command(self: &Arc<Self>, request: &Request, deadline: Monotonic) -> Asked {
        if self.access.url.is_named && request.writes() {
            // Not for longer: a caller that has left no longer drives the trial that it began.
            let tried = self.access.trial.wait(CONNECT_PATIENCE, || Arc::clone(self).try_before_writes());
            in_time(deadline, tried).await.map_err(|why| why.before().outcome())?;
        }
        self.untried(request, deadline).await
    }

    async fn try_before_writes(self: Arc<Self>) -> Greeted {
        self.try_conditions(&mut Vec::new()).await.map_err(NoServer::from)
    }

    /// Refuses a service that writes although a condition is false, as several emulators do. `harms` are those that its
    /// answers tell.
    ///
    /// # Errors
    /// It does so, or nobody knows.
    pub(super) async fn try_conditions(&self, harms: &mut Vec<Harm>) -> Result<(), Outcome> {
        for _ in 0..MOST_TRIALS {
            let mut random = [0; 16];
            fill(&mut random).map_err(|error| not_sent(&Fault::new(FaultKind::Server, &error.to_string())))?;
            let (mut trial, mut request) = Trial::begin(&self.session, Nonce::from_bytes(random));
            loop {
                let answer = self.untried(&request, clock::monotonic().plus(CONNECT_PATIENCE)).await;
                harms.extend(answer.iter().flat_map(|response| self.session.harms_of_write(response)));
                match trial.answer(answer.as_ref().map_err(Clone::clone)) {
                    Verdict::Ask(next) => request = next,
                    Verdict::Sound => return Ok(()),
                    Verdict::Disturbed => break,
                    Verdict::Ignored(what) => {
                        let message = format!(
                            "it ignores conditions, so it cannot keep locks ({what}); use a service that honours If-Match \
                             and If-None-Match"
                        );
                        return Err(Outcome::NotApplied(Refusal::Denied(Denial::new(DenialKind::Other, &message))));
                    }
                    Verdict::Failed(outcome) => return Err(outcome),
                }
            }
        }
        let fault =
            Fault::new(FaultKind::Busy, "others try its conditions at the same time, so that nothing was shown");
        Err(Outcome::NotApplied(Refusal::Unavailable(fault)))
    }

    /// The number of writes that a service has made of several at once, where it may make one.
    ///
    /// # Errors
    /// The object cannot be read.
    pub(super) async fn race(&self) -> Result<usize, Outcome> {
        let mut random = [0; 16];
        fill(&mut random).map_err(|error| not_sent(&Fault::new(FaultKind::Server, &error.to_string())))?;
        let deadline = clock::monotonic().plus(CONNECT_PATIENCE);
        let (race, look) = Race::begin(&self.session, Nonce::from_bytes(random));
        let seen = self.untried(&look, deadline).await;
        let writes = race.writes(seen.as_ref().map_err(Clone::clone))?;
        let answers = join_all(writes.iter().map(|write| self.untried(write, deadline))).await;
        Ok(answers.iter().filter(|answer| race.is_made(answer.as_ref().map_err(Clone::clone))).count())
    }

    /// Sends a request. One that was refused for its keys or for its time is signed again, and sent once more.
    async fn untried(&self, request: &Request, deadline: Monotonic) -> Asked {
        let (response, used) = self.send(request, deadline).await?;
        match repeat(&self.session, &response) {
            None => return Ok(response),
            Some(Repeat::ServerTime) => self.access.set_clock(&response),
            Some(Repeat::FreshCredentials) => {
                let renewed = until(deadline, self.access.auth.renew(&used)).await;
                renewed.unwrap_or_else(|| Err(no_keys_in_time())).map_err(Outcome::NotApplied)?;
            }
        }
        self.send(request, deadline).await.map(|(response, _)| response)
    }

    async fn send(&self, request: &Request, deadline: Monotonic) -> Result<(Response, Used), Outcome> {
        let signed = self.access.auth.sign(request, &self.access.host, self.access.unix_ms());
        let signed = until(deadline, signed).await.unwrap_or_else(|| Err(no_keys_in_time()));
        let Signed { headers, query, used } = signed.map_err(Outcome::NotApplied)?;
        let separator = if query.is_empty() { "" } else { "?" };
        let uri = format!("{}{}{separator}{query}", self.access.url.base, request.path);
        let unwritable = |_| not_sent(&Fault::new(FaultKind::Protocol, "the request cannot be written"));
        let mut written = HeaderMap::new();
        for (name, value) in &headers {
            let name = HeaderName::try_from(name).map_err(|_| unwritable(()))?;
            let mut value = HeaderValue::try_from(value).map_err(|_| unwritable(()))?;
            value.set_sensitive(true);
            written.insert(name, value);
        }
        let method = match request.method {
            Method::Get => reqwest::Method::GET,
            Method::Put => reqwest::Method::PUT,
            Method::Post => reqwest::Method::POST,
        };
        let url = Url::parse(&uri).map_err(|_| unwritable(()))?;
        let ask = |client: &Client| Ok(client.request(method, url).headers(written).body(request.body.clone()));
        let answered =
            self.pool.send(deadline, &*self.access, MOST_BODY, ask).await.map_err(|fault| fault.outcome())?;
        let named =
            Response::HEADERS.iter().filter_map(|name| Some(((*name).to_owned(), answered.header(name)?.to_owned())));
        let headers = named.collect();
        Ok((Response { status: answered.status, headers, body: answered.body }, used))
    }

    async fn exchange(self: &Arc<Self>, request: &Transmit) -> Answer {
        let mut exchange = self.session.begin(&self.access.memory.lock(), &request.ops, self.access.unix_ms());
        catch_up().await;
        loop {
            let asked = exchange.requests().iter().map(|asked| self.command(asked, request.deadline));
            let answers = join_all(asked).await;
            if answers.iter().any(Result::is_err) {
                self.readiness.reset();
            }
            if let Progress::Done(outcomes) = exchange.answers(&mut self.access.memory.lock(), answers) {
                return Ok(outcomes);
            }
        }
    }
}

fn not_sent(fault: &Fault) -> Outcome {
    TransportFault::NotSent(fault.clone()).outcome()
}

fn no_keys_in_time() -> Refusal {
    Refusal::NeedsCredentials(Fault::new(FaultKind::Timeout, "there were no valid keys in time"))
}

impl Link for ObjectsLink {
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
