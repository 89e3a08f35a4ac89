//! The routes, and what they do.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use axum::body::Body;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, Request, State};
use axum::http::Uri;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Extension, Json, Router};
use futures_util::stream;
use leasehold::{Error, ErrorKind, Lease, Once, ffi};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::sleep;

use super::reply::{Reply, query, read};
use super::state::{Service, Share, Work};
use super::{metrics, page};
use crate::output::{lock_json, mark_json, ms};

/// The description of all this for programs.
pub(super) const OPENAPI: &str = include_str!("openapi.json");
/// The ttl of a lease unless the request has another.
const TTL: Duration = Duration::from_secs(30);
/// The longest wait of one request.
const MOST_WAIT: Duration = Duration::from_secs(3_600);
/// The most locks of one list.
const MOST_LISTED: usize = 10_000;
/// The time after which a list is cut off, since the store keeps too many other things.
const LIST_PATIENCE: Duration = Duration::from_secs(10);

/// The client of a request, by its token's name.
#[derive(Clone)]
pub(super) struct Caller(pub(super) String);

type Shared = State<Arc<Service>>;
type Answer = Result<Json<Value>, Reply>;
type LeaseId = Result<Path<String>, PathRejection>;

pub(super) fn routes(service: Arc<Service>) -> Router {
    Router::new()
        .route("/", get(page::show))
        .route("/metrics", get(metrics::show))
        .route("/openapi.json", get(|| async { ([(CONTENT_TYPE, "application/json")], OPENAPI) }))
        .route("/v1/acquire", post(acquire))
        .route("/v1/hold", post(hold))
        .route("/v1/leases/{id}/renew", post(renew))
        .route("/v1/leases/{id}/release", post(release))
        .route("/v1/leases/{id}/finish", post(finish))
        .route("/v1/once", post(once))
        .route("/v1/inspect", get(inspect))
        .route("/v1/list", get(list))
        .fallback(|| async { Reply::no_route() })
        .method_not_allowed_fallback(|| async { Reply::wrong_method() })
        .with_state(service)
}

/// A lock that is asked for.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Asked {
    resource: String,
    ttl_ms: Option<u64>,
    wait_ms: Option<u64>,
    owner: Option<String>,
    data: Option<String>,
}

/// A run that is asked for.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AskedOnce {
    name: String,
    slot: Option<String>,
    ttl_ms: Option<u64>,
    wait_ms: Option<u64>,
    keep_ms: Option<u64>,
    owner: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Named {
    resource: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Listed {
    #[serde(default)]
    prefix: String,
    limit: Option<usize>,
}

async fn acquire(State(service): Shared, Extension(caller): Extension<Caller>, request: Request) -> Answer {
    let begun = ffi::clocks().0;
    let asked: Asked = read(request).await?;
    let share = service.share(&caller.0)?;
    let _turn = asked.wait_ms.is_some_and(|wait| wait > 0).then(|| service.occupy()).transpose()?;
    let (lease, ttl) = granted(&service, &caller, asked).await?;
    keep(&service, Work::Lock(lease), share, ttl, begun)
}

/// A granted lock, while the request lasts.
async fn granted(service: &Arc<Service>, caller: &Caller, asked: Asked) -> Result<(Lease, Duration), Reply> {
    let ttl = asked.ttl_ms.map_or(TTL, Duration::from_millis);
    let owner = asked.owner.unwrap_or_else(|| format!("serve:{}", caller.0));
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

/// Hands a lease out, to be kept by calls.
fn keep(service: &Arc<Service>, work: Work, share: Share, ttl: Duration, begun: u64) -> Answer {
    let id = id()?;
    let work = service.keep(id.clone(), work, share, ttl);
    Ok(Json(lease_json(&work, Some(&id), ttl, begun)))
}

/// Holds a lock for as long as the connection is open and its body is read.
async fn hold(
    State(service): Shared,
    Extension(caller): Extension<Caller>,
    request: Request,
) -> Result<Response, Reply> {
    let begun = ffi::clocks().0;
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

async fn renew(State(service): Shared, Extension(caller): Extension<Caller>, id: LeaseId) -> Answer {
    let begun = ffi::clocks().0;
    let id = known(id)?;
    let (work, ttl) = service.renew(&id, &caller.0).ok_or_else(Reply::unknown_lease)?;
    if let Err(lost) = work.check(Duration::from_millis(1)) {
        drop(service.take(&id, &caller.0));
        return Err(lost.into());
    }
    service.counts.renewed.fetch_add(1, Ordering::Relaxed);
    Ok(Json(lease_json(&work, Some(&id), ttl, begun)))
}

async fn release(State(service): Shared, Extension(caller): Extension<Caller>, id: LeaseId) -> Answer {
    let work = service.take(&known(id)?, &caller.0).ok_or_else(Reply::unknown_lease)?;
    work.release().await?;
    service.counts.released.fetch_add(1, Ordering::Relaxed);
    Ok(Json(json!({ "resource": work.resource(), "token": work.token(), "released": true })))
}

async fn once(State(service): Shared, Extension(caller): Extension<Caller>, request: Request) -> Answer {
    let begun = ffi::clocks().0;
    let asked: AskedOnce = read(request).await?;
    let share = service.share(&caller.0)?;
    let _turn = asked.wait_ms.is_some_and(|wait| wait > 0).then(|| service.occupy()).transpose()?;
    let ttl = asked.ttl_ms.map_or(TTL, Duration::from_millis);
    let owner = asked.owner.unwrap_or_else(|| format!("serve:{}", caller.0));
    let mut run = service.client.once(&asked.name).ttl(ttl).wait(wait(asked.wait_ms)?).owner(owner);
    if let Some(slot) = asked.slot {
        run = run.slot(slot);
    }
    if let Some(keep) = asked.keep_ms {
        run = run.keep(Duration::from_millis(keep));
    }
    let waiting = service.wait(&run.resource()?);
    let once = run.await.map_err(|error| failed(&service, error))?;
    drop(waiting);
    match once {
        Once::Run(run) => {
            service.counts.granted.fetch_add(1, Ordering::Relaxed);
            service.watch(&run);
            let mut answer = keep(&service, Work::Run(run), share, ttl, begun)?;
            answer["state"] = "run".into();
            Ok(answer)
        }
        Once::Done(mark) => Ok(Json(json!({ "state": "done", "mark": mark_json(&mark) }))),
        Once::Running(holder) => Ok(Json(json!({ "state": "running", "holder": holder.as_ref().map(lock_json) }))),
    }
}

async fn finish(State(service): Shared, Extension(caller): Extension<Caller>, id: LeaseId) -> Answer {
    let work = service.take(&known(id)?, &caller.0).ok_or_else(Reply::unknown_lease)?;
    let Work::Run(run) = &*work else {
        drop(work.release().await);
        return Err(Reply::bad("this lease is a lock and no run: there is nothing to finish; it is released"));
    };
    run.finish().await?;
    service.counts.released.fetch_add(1, Ordering::Relaxed);
    Ok(Json(json!({ "resource": run.resource(), "token": run.token(), "finished": true })))
}

/// The id in a path. One that is no text is of no lease.
fn known(id: LeaseId) -> Result<String, Reply> {
    id.map(|Path(id)| id).map_err(|_| Reply::unknown_lease())
}

async fn inspect(State(service): Shared, uri: Uri) -> Answer {
    let asked: Named = query(&uri)?;
    let holder = service.client.inspect(&asked.resource).await?;
    Ok(Json(holder.as_ref().map_or_else(|| json!({ "resource": asked.resource, "held": false }), lock_json)))
}

async fn list(State(service): Shared, uri: Uri) -> Answer {
    let asked: Listed = query(&uri)?;
    let limit = asked.limit.unwrap_or(1_000).clamp(1, MOST_LISTED);
    let (locks, complete) = listed(&service, &asked.prefix, limit).await?;
    Ok(Json(json!({ "locks": locks.iter().map(lock_json).collect::<Vec<_>>(), "complete": complete })))
}

/// Some locks, and whether they are all.
pub(super) async fn listed(
    service: &Service,
    prefix: &str,
    limit: usize,
) -> Result<(Vec<leasehold::LockInfo>, bool), Error> {
    let mut listing = service.client.list(prefix);
    let mut locks = Vec::new();
    let over = sleep(LIST_PATIENCE);
    tokio::pin!(over);
    loop {
        let next = tokio::select! {
            next = listing.next() => next?,
            () = &mut over => return Ok((locks, false)),
        };
        match next {
            Some(lock) if locks.len() < limit => locks.push(lock),
            next => return Ok((locks, next.is_none())),
        }
    }
}

/// A lease for its client. `valid_ms` counts from the moment at which the request was sent, by the client's own clock.
fn lease_json(lease: &Lease, id: Option<&str>, ttl: Duration, begun: u64) -> Value {
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

fn wait(asked: Option<u64>) -> Result<Duration, Reply> {
    let wait = asked.map_or(Duration::ZERO, Duration::from_millis);
    if wait > MOST_WAIT {
        return Err(Reply::bad(format!("wait_ms is longer than {}; ask again after it", ms(MOST_WAIT))));
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
fn id() -> Result<String, Reply> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(|error| Reply::bad(format!("the system has no random numbers: {error}")))?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}
