//! The routes, and what they do.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Extension, Json, Router};
use futures_util::stream;
use leasehold::{Client, Error, ErrorKind, Lease, LockInfo, Once, RunInfo, RunRequest, ffi};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::sleep;

use super::keys::{Attempt, Claim, KEY, key};
use super::leases::{again, finish, release, renew};
use super::list::{inspect, list};
use super::reply::{Reply, read, whole};
use super::state::{Service, Share, Work};
use super::{metrics, page};
use crate::output::{attempts_json, completion_json, lock_json, ms};

/// The description of all this for programs.
pub(super) const OPENAPI: &str = include_str!("openapi.json");
/// The ttl of a lease unless the request has another.
const TTL: Duration = Duration::from_secs(30);
/// The longest wait of one request.
const MOST_WAIT: Duration = Duration::from_secs(3_600);
/// The path that needs no token: it says that the daemon answers, and nothing else.
pub(super) const HEALTH: &str = "/healthz";
/// The beginning of the labels of the daemon's clients.
const SERVE: &str = "serve:";

/// The client of a request, by its token's name.
#[derive(Clone)]
pub(super) struct Caller(pub(super) String);

pub(super) type Shared = State<Arc<Service>>;
pub(super) type Answer = Result<Json<Value>, Reply>;

pub(super) fn routes(service: Arc<Service>) -> Router {
    Router::new()
        .route("/", get(page::show))
        .route("/healthz", get(|| async { Json(json!({ "ok": true })) }))
        .route("/metrics", get(metrics::show))
        .route("/openapi.json", get(|| async { ([(CONTENT_TYPE, "application/json")], OPENAPI) }))
        .route("/v1/acquire", post(acquire))
        .route("/v1/hold", post(hold))
        .route("/v1/leases/{id}/renew", post(renew))
        .route("/v1/leases/{id}/release", post(release))
        .route("/v1/leases/{id}/finish", post(finish))
        .route("/v1/once", post(once))
        .route("/v1/inspect", get(inspect))
        .route("/v1/list", get(list::<LockInfo>))
        .route("/v1/runs", get(list::<RunInfo>))
        .fallback(|| async { Reply::no_route() })
        .method_not_allowed_fallback(|| async { Reply::wrong_method() })
        .with_state(service)
}

/// A lock that is asked for.
#[derive(Deserialize, Hash)]
#[serde(deny_unknown_fields)]
struct Asked {
    resource: String,
    #[serde(default, deserialize_with = "whole")]
    ttl_ms: Option<u64>,
    #[serde(default, deserialize_with = "whole")]
    wait_ms: Option<u64>,
    owner: Option<String>,
    data: Option<String>,
}

/// A run that is asked for.
#[derive(Deserialize, Hash)]
#[serde(deny_unknown_fields)]
struct AskedOnce {
    name: String,
    key: Option<String>,
    #[serde(default, deserialize_with = "whole")]
    ttl_ms: Option<u64>,
    #[serde(default, deserialize_with = "whole")]
    wait_ms: Option<u64>,
    #[serde(default, deserialize_with = "whole")]
    keep_ms: Option<u64>,
    #[serde(default, deserialize_with = "whole")]
    every_ms: Option<u64>,
    #[serde(default, deserialize_with = "whole")]
    offset_ms: Option<u64>,
    replace: Option<bool>,
    max_attempts: Option<u32>,
    #[serde(default, deserialize_with = "whole")]
    retry_after_ms: Option<u64>,
    at: Option<String>,
    tz: Option<String>,
    cron: Option<String>,
    owner: Option<String>,
}

impl AskedOnce {
    fn request(&self, client: &Client) -> RunRequest {
        let mut run = client.once(&self.name);
        for (given, set) in [
            (self.keep_ms, RunRequest::keep as fn(RunRequest, Duration) -> RunRequest),
            (self.every_ms, RunRequest::every),
            (self.offset_ms, RunRequest::offset),
            (self.retry_after_ms, RunRequest::retry_after),
        ] {
            run = given.map(Duration::from_millis).into_iter().fold(run, set);
        }
        for (given, set) in [
            (&self.key, RunRequest::key as fn(RunRequest, String) -> RunRequest),
            (&self.at, RunRequest::at),
            (&self.tz, RunRequest::tz),
            (&self.cron, RunRequest::cron),
        ] {
            run = given.clone().into_iter().fold(run, set);
        }
        let run = if self.replace == Some(true) { run.replace() } else { run };
        self.max_attempts.into_iter().fold(run, RunRequest::max_attempts)
    }
}

async fn acquire(State(service): Shared, Extension(caller): Extension<Caller>, request: Request) -> Answer {
    let begun = ffi::clocks().0;
    let key = key(request.headers())?;
    let asked: Asked = read(request).await?;
    let sent = service.sent(key, "acquire", &asked);
    let attempt = match service.claim(&caller.0, sent, waits(asked.wait_ms)).await? {
        Claim::Again(id) => return Ok(Json(repeated(again(&service, &caller, &id, begun)?, true))),
        Claim::New(attempt) => attempt,
    };
    let (lease, ttl) = granted(&service, &caller, asked).await?;
    keep(&service, &caller, Work::Lock(lease), attempt, ttl, begun).map(Json)
}

/// A granted lock, while the request lasts.
async fn granted(service: &Arc<Service>, caller: &Caller, asked: Asked) -> Result<(Lease, Duration), Reply> {
    let ttl = asked.ttl_ms.map_or(TTL, Duration::from_millis);
    let owner = label(caller, asked.owner)?;
    let mut request = service.client.lock(&asked.resource).ttl(ttl).wait(wait(asked.wait_ms)?).owner(owner);
    if let Some(data) = asked.data {
        request = request.data(data);
    }
    let waiting = service.wait(&asked.resource);
    let lease = request.await.map_err(|error| failed(service, error))?;
    drop(waiting);
    service.counts.granted.fetch_add(1, Ordering::Relaxed);
    service.watch(&lease);
    Ok((lease, ttl))
}

/// The label of a client's lock. No client has the label that another one has by default.
fn label(caller: &Caller, asked: Option<String>) -> Result<String, Reply> {
    let own = format!("{SERVE}{}", caller.0);
    let Some(label) = asked else { return Ok(own) };
    let begins = label.trim_start().get(..SERVE.len()).is_some_and(|start| start.eq_ignore_ascii_case(SERVE));
    if begins && label != own {
        return Err(Reply::bad(format!(
            "an owner that begins with {SERVE} is the label of another client of this daemon: leave it out, or write another \
             one"
        )));
    }
    Ok(label)
}

/// Hands a lease out, to be kept by calls.
fn keep(
    service: &Arc<Service>,
    caller: &Caller,
    work: Work,
    attempt: Attempt,
    ttl: Duration,
    begun: u64,
) -> Result<Value, Reply> {
    let id = id()?;
    // To its end, so that a request that waits with the same key finds the lease.
    let Attempt { share, key, .. } = attempt;
    let work = service.keep(id.clone(), work, share, ttl);
    if let Some(key) = key {
        service.grant(&caller.0, &key, &id);
    }
    Ok(repeated(lease_json(&work, Some(&id), ttl, begun), false))
}

/// An answer that says if its lease was granted before, to a request with the same key.
fn repeated(mut answer: Value, is_repeated: bool) -> Value {
    answer["repeated"] = is_repeated.into();
    answer
}

/// Holds a lock for as long as the connection is open and its body is read.
async fn hold(
    State(service): Shared,
    Extension(caller): Extension<Caller>,
    request: Request,
) -> Result<Response, Reply> {
    let begun = ffi::clocks().0;
    if request.headers().contains_key(KEY) {
        return Err(Reply::bad(
            "here the lease lasts as long as the connection, so a repeated request cannot get it: leave \
             Idempotency-Key out",
        ));
    }
    let asked: Asked = read(request).await?;
    let share = service.share(&caller.0)?;
    let turn = service.occupy()?;
    let (lease, ttl) = granted(&service, &caller, asked).await?;
    let lost = Box::pin(lease.lost());
    let first = event("acquired", lease_json(&lease, None, ttl, begun));
    // Dropped when the client has gone, and the lease with it.
    let held = Held { lease, ttl, lost, _share: share, _turn: turn, next: Some(first) };
    let lines = stream::unfold(Some(held), |held| async move {
        let mut held = held?;
        let (line, is_over) = held.next().await;
        Some((Ok::<_, Infallible>(line), (!is_over).then_some(held)))
    });
    let headers = [(CONTENT_TYPE, "application/x-ndjson"), (axum::http::header::CACHE_CONTROL, "no-store")];
    Ok((headers, Body::from_stream(lines)).into_response())
}

struct Held<F> {
    lease: Lease,
    ttl: Duration,
    lost: F,
    /// Counts while it lives.
    _share: Share,
    _turn: OwnedSemaphorePermit,
    next: Option<String>,
}

impl<F: Future<Output = Error> + Unpin> Held<F> {
    /// The next line, and whether it is the last one.
    async fn next(&mut self) -> (String, bool) {
        if let Some(first) = self.next.take() {
            return (first, false);
        }
        tokio::select! {
            why = &mut self.lost => {
                (event("lost", json!({ "error": { "kind": why.kind().name(), "message": why.to_string() } })), true)
            }
            () = sleep(self.ttl / 3) => {
                (event("held", lease_json(&self.lease, None, self.ttl, ffi::clocks().0)), false)
            }
        }
    }
}

fn event(name: &str, mut fields: Value) -> String {
    fields["event"] = name.into();
    format!("{fields}\n")
}

async fn once(State(service): Shared, Extension(caller): Extension<Caller>, request: Request) -> Answer {
    let begun = ffi::clocks().0;
    let key = key(request.headers())?;
    let asked: AskedOnce = read(request).await?;
    if asked.key.as_ref().or(asked.cron.as_ref()).is_none() && asked.keep_ms.or(asked.every_ms).is_none() {
        let message = "give key, which names the occurrence of the job, every_ms or cron, by which the clock names it, or keep_ms, for \
                       how long it is not done again";
        return Err(Reply::bad(message));
    }
    let sent = service.sent(key, "once", &asked);
    let attempt = match service.claim(&caller.0, sent, waits(asked.wait_ms)).await? {
        Claim::Again(id) => return Ok(Json(repeated(again(&service, &caller, &id, begun)?, true))),
        Claim::New(attempt) => attempt,
    };
    let ttl = asked.ttl_ms.map_or(TTL, Duration::from_millis);
    let run = asked.request(&service.client).ttl(ttl).wait(wait(asked.wait_ms)?).owner(label(&caller, asked.owner)?);
    let waiting = service.wait(&run.resource()?);
    let once = run.await;
    drop(waiting);
    if let Err(error) = &once
        && let Some(attempts) = error.attempts()
    {
        return Ok(Json(json!({ "state": "given_up", "attempts": attempts_json(attempts) })));
    }
    match once.map_err(|error| failed(&service, error))? {
        Once::Run(run) => {
            service.counts.granted.fetch_add(1, Ordering::Relaxed);
            service.watch(&run);
            let mut answer = keep(&service, &caller, Work::Run(run), attempt, ttl, begun)?;
            answer["state"] = "run".into();
            Ok(Json(answer))
        }
        Once::Done(completion) => Ok(Json(json!({ "state": "done", "completion": completion_json(&completion) }))),
        Once::Running(holder) => Ok(Json(json!({ "state": "running", "holder": holder.as_ref().map(lock_json) }))),
        Once::Later(attempts) => Ok(Json(json!({ "state": "later", "attempts": attempts_json(&attempts) }))),
        Once::Replaced => Ok(Json(json!({ "state": "replaced" }))),
        _ => Ok(Json(json!({ "state": "running", "holder": null }))),
    }
}

/// A lease for its client. `valid_ms` counts from the moment at which the request was sent, by the client's own clock.
pub(super) fn lease_json(lease: &Lease, id: Option<&str>, ttl: Duration, begun: u64) -> Value {
    // The daemon keeps the lease itself, so only its own part may be shorter than the client's.
    let valid = lease.remaining().min(ttl - ttl / 50);
    // The request was sent before it began here: what it has waited is over by any clock, but for a fiftieth.
    let waited = Duration::from_nanos(ffi::clocks().0.saturating_sub(begun));
    let valid = valid + (waited - waited / 50);
    json!({
        "id": id, "resource": lease.resource(), "owner": lease.owner(), "token": lease.token(),
        "ttl_ms": ms(ttl), "valid_ms": ms(valid),
    })
}

fn waits(asked: Option<u64>) -> bool {
    asked.is_some_and(|wait| wait > 0)
}

fn wait(asked: Option<u64>) -> Result<Duration, Reply> {
    let wait = asked.map_or(Duration::ZERO, Duration::from_millis);
    if wait > MOST_WAIT {
        return Err(Reply::bad(format!(
            "wait_ms must be at most {}; wait for longer by repeating the request",
            ms(MOST_WAIT)
        )));
    }
    Ok(wait)
}

fn failed(service: &Service, error: Error) -> Reply {
    let is_busy = matches!(error.kind(), ErrorKind::Busy | ErrorKind::TimedOut);
    let count = if is_busy { &service.counts.busy } else { &service.counts.failed };
    // Nobody is to be alarmed for a mistake of the client.
    if error.kind() != ErrorKind::Config {
        count.fetch_add(1, Ordering::Relaxed);
    }
    error.into()
}

/// An id that nobody can guess: a caller that knows it can renew and release the lease.
pub(super) fn id() -> Result<String, Reply> {
    id_by(getrandom::fill)
}

fn id_by(fill: impl FnOnce(&mut [u8]) -> Result<(), getrandom::Error>) -> Result<String, Reply> {
    let mut bytes = [0; 16];
    fill(&mut bytes).map_err(|error| Reply::internal(format!("the system has no random numbers: {error}")))?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use axum::http::StatusCode;
    use axum::response::IntoResponse;

    use super::*;

    #[test]
    fn a_system_without_random_numbers_is_no_mistake_of_the_client() {
        let refused = id_by(|_| Err(getrandom::Error::UNSUPPORTED)).map_err(IntoResponse::into_response);
        assert!(refused.is_err_and(|reply| reply.status() == StatusCode::INTERNAL_SERVER_ERROR));
        assert!(id_by(getrandom::fill).is_ok_and(|id| id.len() == 32));
    }

    #[test]
    fn nobody_has_the_label_of_another_client() {
        let alice = Caller("alice".to_owned());
        let label = |owner: Option<&str>| label(&alice, owner.map(str::to_owned)).ok();
        assert_eq!(label(None).as_deref(), Some("serve:alice"));
        for own in ["serve:alice", "web-7", "server", "serve", "", "se\u{e9}rve:"] {
            assert_eq!(label(Some(own)).as_deref(), Some(own));
        }
        for other in ["serve:bob", "SERVE:alice", " serve:alice", "serve:", "serve:alice "] {
            assert_eq!(label(Some(other)), None, "{other}");
        }
    }
}
