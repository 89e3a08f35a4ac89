//! A bucket or container: how its requests are signed, and the trial before the first write.

use std::fmt;
use std::sync::Arc;

use futures_util::future::join_all;
use leasehold_core::op::{Denial, DenialKind, Fault, FaultKind, Outcome, Refusal, TransportFault};
use leasehold_core::{Monotonic, Nonce, Transmit};
use leasehold_wire::objects::{Codec, Exchange, Harm, Memory, Race, Request, Signed, Trial, Verdict};
use leasehold_wire::sigv4::Signer;
use leasehold_wire::{Exchange as _, HttpResponse, Progress, Repeat};
use reqwest::Method;

use super::auth::{Auth, Used};
use crate::error::Error;
use crate::host::clock;
use crate::host::entropy::fill;
use crate::host::sync::Mutex;
use crate::transport::readiness::{CONNECT_PATIENCE, Greeted, NoServer, Readiness, in_time};
use crate::transport::web::{ServerClock, Web, written};
use crate::transport::web_link::{Asked, NoAnswer, WebLink, WebStore, found_by};
use crate::url::objects::ObjectsUrl;

pub(super) type ObjectsLink = WebLink<ObjectsAccess>;

/// How often a trial begins again because another came between.
const MOST_TRIALS: usize = 5;

/// Access to the bucket, which all links share.
pub(super) struct ObjectsAccess {
    url: ObjectsUrl,
    codec: Codec,
    /// The value of the header `Host`.
    host: String,
    web: Arc<Web>,
    auth: Auth,
    memory: Mutex<Memory>,
    /// The trial of conditions, before the first write to a service that is not the cloud's own.
    trial: Arc<Readiness>,
    clock: ServerClock,
    signer: Mutex<Signer>,
}

impl ObjectsAccess {
    /// # Errors
    /// A certificate cannot be read.
    pub(super) fn new(url: &ObjectsUrl, codec: Codec) -> Result<Self, Error> {
        let wrong = |what: String| Error::config(format!("{url}: {what}"));
        let web = Web::new(url.reach, url.ca.as_deref(), None).map_err(wrong)?;
        let (_, host) = url.base.split_once("://").unwrap_or(("", &url.base));
        Ok(Self {
            url: url.clone(),
            codec,
            host: host.to_owned(),
            web: Arc::new(web),
            auth: Auth::new(url),
            memory: Mutex::default(),
            trial: Arc::default(),
            clock: ServerClock::default(),
            signer: Mutex::new(Signer::new()),
        })
    }

    /// Notes if a read may miss a write that was answered before.
    pub(super) fn set_may_be_stale(&self, may_be_stale: bool) {
        self.memory.lock().set_may_be_stale(may_be_stale);
    }
}

impl fmt::Display for ObjectsAccess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.url.fmt(f)
    }
}

impl WebStore for ObjectsAccess {
    type Exchange = Exchange;
    type Keys = Used;

    fn web(&self) -> &Arc<Web> {
        &self.web
    }

    fn begin(&self, request: &Transmit) -> Result<Exchange, Denial> {
        Ok(self.codec.begin(&self.memory.lock(), &request.ops, self.clock.unix_ms()))
    }

    fn take(self: &Arc<Self>, exchange: &mut Exchange, answers: Vec<Asked<Self>>) -> Progress {
        exchange.answers(&mut self.memory.lock(), answers)
    }

    async fn keys(link: &ObjectsLink, refused: Option<&Used>, deadline: Monotonic) -> Result<Used, Outcome> {
        found_by(deadline, link.store.auth.keys(refused)).await
    }

    async fn send(
        link: &ObjectsLink,
        request: &Request,
        keys: &Used,
        deadline: Monotonic,
    ) -> Result<HttpResponse, NoAnswer> {
        let store = &link.store;
        let (right, unix_ms) = (store.auth.right(keys), store.clock.unix_ms());
        let signed = store.codec.signed(request.clone(), &store.host, right, &mut store.signer.lock(), unix_ms);
        let no_key = || NoAnswer::Judged(Outcome::NotApplied(keys.is_no_key()));
        let Signed { target, headers, body } = signed.ok_or_else(no_key)?;
        let ask = |client: &reqwest::Client| {
            let asked = client.request(method(request), format!("{}{target}", store.url.base));
            written(asked, headers.iter(), body)
        };
        Ok(link.post(deadline, ask).await?)
    }

    fn repeat(&self, response: &HttpResponse) -> Option<Repeat> {
        self.codec.repeat(response)
    }

    fn set_clock(&self, unix_ms: u64) {
        self.clock.set(unix_ms);
    }

    /// The clouds' own services are known to honour conditions; others have to show it before the first write.
    async fn may_ask(link: &Arc<ObjectsLink>, asks: &[Request], deadline: Monotonic) -> Result<(), Outcome> {
        if !link.store.url.is_named || !asks.iter().any(Request::writes) {
            return Ok(());
        }
        // Not for longer: a caller that has left no longer drives the trial that it began.
        let tried = link.store.trial.wait(CONNECT_PATIENCE, || Arc::clone(link).try_before_writes());
        in_time(deadline, tried).await.map_err(|why| why.before().outcome())
    }

    /// A look at the marker. Without a right to it, the service is there all the same: each request is judged by its own
    /// answer.
    async fn greet(link: &Arc<ObjectsLink>) -> Greeted {
        let deadline = clock::monotonic().plus(CONNECT_PATIENCE);
        let met = link.untried(&link.store.codec.look(), deadline).await;
        met.map(|_| ()).map_err(|why| NoServer::ungreeted(why.outcome()))
    }
}

impl ObjectsLink {
    async fn asked(&self, request: &Request, deadline: Monotonic) -> Asked<ObjectsAccess> {
        self.untried(request, deadline).await.map_err(|why| why.outcome())
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
            let (mut trial, mut request) = Trial::begin(&self.store.codec, Nonce::from_bytes(random));
            loop {
                let deadline = clock::monotonic().plus(CONNECT_PATIENCE);
                let answer = self.asked(&request, deadline).await;
                harms.extend(answer.iter().flat_map(|response| self.store.codec.harms_of_write(response)));
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
        let fault = Fault::new(
            FaultKind::Busy,
            "other clients test its conditional writes at the same time, so the test had no result",
        );
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
        let (race, look) = Race::begin(&self.store.codec, Nonce::from_bytes(random));
        let seen = self.asked(&look, deadline).await;
        let writes = race.writes(seen.as_ref().map_err(Clone::clone))?;
        let answers = join_all(writes.iter().map(|write| self.asked(write, deadline))).await;
        Ok(answers.iter().filter(|answer| race.is_made(answer.as_ref().map_err(Clone::clone))).count())
    }
}

fn method(request: &Request) -> Method {
    match request.method {
        leasehold_wire::objects::Method::Get => Method::GET,
        leasehold_wire::objects::Method::Put => Method::PUT,
        leasehold_wire::objects::Method::Post => Method::POST,
    }
}

fn not_sent(fault: &Fault) -> Outcome {
    TransportFault::NotSent(fault.clone()).outcome()
}
