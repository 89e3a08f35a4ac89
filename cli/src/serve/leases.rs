//! Calls for a lease that is held: renewals, releases and finishes.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use axum::extract::rejection::PathRejection;
use axum::extract::{Path, Request, State};
use axum::{Extension, Json};
use leasehold::{Error, RunResult, ffi};
use serde::{Deserialize, Deserializer};
use serde_json::{Value, json};
use tokio::sync::watch;

use super::api::{Answer, Caller, Shared, lease_json};
use super::reply::{Reply, read};
use super::state::{Service, Work};

type LeaseId = Result<Path<String>, PathRejection>;

/// The body of a call that has no fields.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Nothing {}

/// The body of a release.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct GivenBack {
    /// Why the work of a run has failed.
    reason: Option<String>,
}

/// The body of a finish.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Outcome {
    /// For those who come later; `null` is a result like any other.
    #[serde(default, deserialize_with = "present")]
    result: Option<Value>,
}

fn present<'de, D: Deserializer<'de>>(value: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(value).map(Some)
}

/// A way in which a client ends its lease.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    Release,
    Finish,
}

/// The words of a client that ends its lease.
enum Said {
    Nothing,
    Reason(String),
    Result(RunResult),
}

/// A lease that its client has ended, or is ending.
pub(super) struct Ended {
    end: End,
    /// `None` until the store has answered.
    result: Results,
}

type Results = watch::Receiver<Option<Result<Value, Reply>>>;

pub(super) async fn renew(
    State(service): Shared,
    Extension(caller): Extension<Caller>,
    id: LeaseId,
    request: Request,
) -> Answer {
    let begun = ffi::clocks().0;
    let Nothing {} = read(request).await?;
    let answer = again(&service, &caller, &known(id)?, begun)?;
    service.counts.renewed.fetch_add(1, Ordering::Relaxed);
    Ok(Json(answer))
}

/// A lease whose ttl begins again.
///
/// # Errors
/// The client has no such lease, or it was lost.
pub(super) fn again(service: &Arc<Service>, caller: &Caller, id: &str, begun: u64) -> Result<Value, Reply> {
    let (work, ttl) = service.renew(id, &caller.0).ok_or_else(Reply::unknown_lease)?;
    if let Err(lost) = work.check(Duration::from_millis(1)) {
        service.forget(id);
        return Err(lost.into());
    }
    let mut answer = lease_json(&work, Some(id), ttl, begun);
    if matches!(&*work, Work::Run(_)) {
        answer["state"] = "run".into();
    }
    Ok(answer)
}

pub(super) async fn release(
    State(service): Shared,
    Extension(caller): Extension<Caller>,
    id: LeaseId,
    request: Request,
) -> Answer {
    let GivenBack { reason } = read(request).await?;
    let said = reason.map_or(Said::Nothing, Said::Reason);
    service.end(&caller.0, known(id)?, End::Release, said).await.map(Json)
}

pub(super) async fn finish(
    State(service): Shared,
    Extension(caller): Extension<Caller>,
    id: LeaseId,
    request: Request,
) -> Answer {
    let Outcome { result } = read(request).await?;
    let said = result.map_or(Said::Nothing, |result| Said::Result(RunResult::Json(result.to_string())));
    service.end(&caller.0, known(id)?, End::Finish, said).await.map(Json)
}

/// The id in a path. One that is no text is of no lease.
fn known(id: LeaseId) -> Result<String, Reply> {
    id.map(|Path(id)| id).map_err(|_| Reply::unknown_lease())
}

impl Service {
    /// Ends a lease. A client that asks again gets the same result, which says that it was asked for before.
    async fn end(self: &Arc<Self>, client: &str, id: String, end: End, said: Said) -> Result<Value, Reply> {
        let (mut result, is_repeated) = self.ending(client, id, end, said)?;
        // The task that ends it lives as long as the daemon.
        let result = result.wait_for(Option::is_some).await.ok().and_then(|result| result.clone());
        let mut answer = result.unwrap_or_else(|| {
            Err(Reply::internal("the daemon does not know whether the lease has ended: try again"))
        })?;
        answer["repeated"] = is_repeated.into();
        Ok(answer)
    }

    /// The result of an end, which is begun unless it was before.
    ///
    /// # Errors
    /// The client has no such lease, or nothing is to be finished: then it keeps the lease.
    fn ending(self: &Arc<Self>, client: &str, id: String, end: End, said: Said) -> Result<(Results, bool), Reply> {
        let mut table = self.table();
        let Some(entry) = table.held.get(&id).filter(|entry| entry.client == client) else {
            let ended = table.ended.get(client, &id).filter(|ended| ended.end == end);
            return ended.map(|ended| (ended.result.clone(), true)).ok_or_else(Reply::unknown_lease);
        };
        if end == End::Finish && !matches!(&*entry.work, Work::Run(_)) {
            return Err(Reply::not_a_run());
        }
        let Some(work) = table.remove(&id) else { return Err(Reply::unknown_lease()) };
        let (told, result) = watch::channel(None);
        table.ended.put(client, id, Ended { end, result: result.clone() }, |_| true);
        drop(table);
        let service = Arc::clone(self);
        // Beside the request, which ends when its client goes, and may be asked again.
        tokio::spawn(async move {
            let ended = end.of(&work, said).await;
            if ended.is_ok() {
                service.counts.released.fetch_add(1, Ordering::Relaxed);
            }
            let answer = json!({ "resource": work.resource(), "token": work.token(), (end.name()): true });
            told.send_replace(Some(ended.map(|()| answer).map_err(Reply::from)));
        });
        Ok((result, false))
    }
}

impl End {
    fn name(self) -> &'static str {
        match self {
            Self::Release => "released",
            Self::Finish => "finished",
        }
    }

    async fn of(self, work: &Work, said: Said) -> Result<(), Error> {
        match (self, work, said) {
            (Self::Finish, Work::Run(run), Said::Result(result)) => run.finish_with(result).await,
            (Self::Finish, Work::Run(run), _) => run.finish().await,
            (Self::Release, Work::Run(run), Said::Reason(reason)) => run.fail(reason).await,
            (_, work, _) => work.release().await,
        }
    }
}
