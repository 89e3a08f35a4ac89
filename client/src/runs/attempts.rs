//! Attempts at a run, counted in the store, so that work that always fails is given up.
//!
//! The holder of the run writes the count before the work begins. The record has a lock of its own: what a former runner still sends
//! when its lease is over does not change a count that a later one has written.

use std::time::Duration;

use leasehold_core::config::RunOptions;
use leasehold_core::{AttemptLimit, Attempts, NextAttempt, Resource};
use tracing::Level;

use crate::client::Client;
use crate::driver::Caller;
use crate::error::{Error, ErrorKind};
use crate::locks::lease::Lease;
use crate::locks::request::LockRequest;
use crate::runs::completion::Completion;
use crate::runs::once::{Once, Run};
use crate::runs::result::RunResult;
use crate::{metrics, reports};

/// How long the record is locked without renewal: it is read and written at once.
const RECORD_TTL: Duration = Duration::from_secs(10);
/// A former runner may have died with the lock of the record.
const RECORD_WAIT: Duration = Duration::from_secs(20);
/// How long a failure waits to say why, as a release does for its answer.
const REASON_WAIT: Duration = Duration::from_secs(2);

/// How often the nodes are asked for the count, where too few have answered as they must.
const LOOKS: u32 = 5;

/// The attempts at the work of a lease, and the request for their record.
pub(crate) struct Counting {
    pub(crate) attempts: Attempts,
    record: LockRequest,
}

/// Counts an attempt at the work of this lease, and answers what is to be done.
///
/// # Errors
/// It could not be counted, so the work must not begin.
pub(super) async fn begin(lease: Lease, run: RunOptions, limit: AttemptLimit, client: Client) -> Result<Once, Error> {
    let record = request(&client, lease.resource(), run)?.owner(lease.owner());
    let next = count(&lease, &record, limit).await;
    if let Ok(NextAttempt::Begin(attempts)) = next {
        return Ok(Once::Run(Run::of(lease.with_counting(Counting { attempts, record }))));
    }
    // The caller is told what the store has said, and not of this release.
    let _ = lease.release_by(client.caller).await;
    match next {
        Ok(NextAttempt::Begin(attempts) | NextAttempt::Later(attempts)) => Ok(Once::Later(attempts)),
        Ok(NextAttempt::GivenUp(attempts)) => Err(given_up(lease.resource(), attempts)),
        // Somebody else has begun meanwhile, or is about to.
        Err(error) if matches!(error.kind(), ErrorKind::TimedOut | ErrorKind::Lost) => {
            Ok(Once::Running(error.holder().cloned()))
        }
        Err(error) => Err(error),
    }
}

async fn count(lease: &Lease, record: &LockRequest, limit: AttemptLimit) -> Result<NextAttempt, Error> {
    let (client, taken) = (record.client(), record.clone().acquire().await?);
    let shown = written(client, &taken).await?;
    let next = Attempts::next(shown, limit, record.time().unix_ms());
    match &next {
        NextAttempt::Begin(attempts) => write(lease, &taken, attempts, client.caller).await?,
        NextAttempt::Later(_) | NextAttempt::GivenUp(_) => taken.release_by(client.caller).await?,
    }
    Ok(next)
}

/// The attempts that the nodes show while their record is held.
async fn written(client: &Client, taken: &Lease) -> Result<Vec<Attempts>, Error> {
    let holder = taken.nonce();
    for _ in 0..LOOKS {
        let nodes = client.inspect_nodes(taken.resource()).await?;
        let shown = holder.and_then(|holder| Attempts::beside(nodes.iter().map(Option::as_ref), &holder));
        if let Some(shown) = shown {
            return Ok(shown);
        }
        taken.check(Duration::ZERO)?;
    }
    let message = "too few nodes show the attempts at the work, so it is not begun";
    Err(Error::new(ErrorKind::StoreUnavailable, message).on(taken.resource()))
}

/// Writes the attempts while their record is held. The run must be held before that, or its next runner may have read the record
/// already, and after it, or the next runner may begin as well.
async fn write(lease: &Lease, taken: &Lease, attempts: &Attempts, caller: Caller) -> Result<(), Error> {
    lease.check(Duration::ZERO)?;
    taken.finish_by(Some(Ok(attempts.to_result())), caller).await.map_err(|error| {
        let message =
            format!("this attempt at the work may count, and is not begun: it cannot be written down: {error}");
        let kind = if error.kind() == ErrorKind::StoreRefused { error.kind() } else { ErrorKind::StoreUnavailable };
        Error::new(kind, message).on(lease.resource())
    })?;
    lease.check(Duration::ZERO)
}

/// The request for the record of the attempts at a run.
///
/// # Errors
/// [`ErrorKind::Config`]: the name of the run is too long for it.
fn request(client: &Client, resource: &str, run: RunOptions) -> Result<LockRequest, Error> {
    let record = record(resource)?;
    let longest = client.shared.quorum().map_or(Duration::MAX, |quorum| quorum.max_ttl());
    let run = RunOptions { even_if_done: true, ..run };
    Ok(client.lock(record.as_str()).ttl(RECORD_TTL.min(longest).min(run.keep)).wait(RECORD_WAIT).run(run))
}

fn record(resource: &str) -> Result<Resource, Error> {
    let record = Resource::new(resource).and_then(|resource| resource.of_attempts());
    record.map_err(|error| Error::config(error.to_string()).on(resource))
}

fn given_up(resource: &str, attempts: Attempts) -> Error {
    let count = attempts.count;
    let (of, last) = (resource.to_owned(), attempts.reason.clone());
    reports::make_or_queue(Level::WARN, move || {
        tracing::warn!(name: "run.given_up", target: "leasehold", resource = of, attempts = count, reason = last, "run.given_up: the work was begun as often as allowed, and never finished");
        metrics::run("given_up");
    });
    let why = attempts.reason.as_deref().map(|reason| format!("; the last one failed: {reason}")).unwrap_or_default();
    let times = if count == 1 { "1 attempt".to_owned() } else { format!("{count} attempts") };
    let message =
        format!("given up after {times} without a finish{why}. Mend it, and forget the run to have it tried again");
    Error::new(ErrorKind::GivenUp, message).with_attempts(attempts).on(resource)
}

/// Says why the work has failed, where its attempts are counted, and releases the lease, so that another worker may do it.
///
/// # Errors
/// As [`Lease::release`].
pub(crate) async fn fail(lease: &Lease, reason: &str, caller: Caller) -> Result<(), Error> {
    if let Some(Counting { attempts, record }) = lease.counting()
        && lease.check(Duration::ZERO).is_ok()
        && let Err(error) = note(lease, record.clone().by(caller), &attempts.failed(reason)).await
    {
        let resource = lease.resource().to_owned();
        reports::make_or_queue(Level::WARN, move || {
            tracing::warn!(name: "run.reason_not_kept", target: "leasehold", resource, fault = %error, "run.reason_not_kept: the attempt counts, and why it failed was not written down");
        });
    }
    lease.release_by(caller).await
}

async fn note(lease: &Lease, record: LockRequest, attempts: &Attempts) -> Result<(), Error> {
    let client = record.client().clone();
    // A transaction may have written the completion, behind which the count must not last.
    if client.inspect_marked(lease.resource()).await?.1.is_some() {
        return Ok(());
    }
    let taken = record.wait(REASON_WAIT).acquire().await?;
    // An operator may have ended the lease, which its holder does not know yet: the count is then that of another runner.
    let counts = written(&client, &taken).await?.into_iter().map(|attempts| attempts.count);
    if counts.max() == Some(attempts.count) {
        return write(lease, &taken, attempts, client.caller).await;
    }
    taken.release_by(client.caller).await
}

/// The attempts that a completion has.
pub(crate) fn shown(completion: &Completion) -> Option<Attempts> {
    let Some(RunResult::Bytes(bytes)) = &completion.result else { return None };
    Attempts::read(&leasehold_core::RunResult::bytes(bytes).ok()?)
}

impl Client {
    /// The attempts at a run that the store shows.
    ///
    /// # Errors
    /// As [`Client::inspect`].
    pub(crate) async fn attempts(&self, resource: &str) -> Result<Option<Attempts>, Error> {
        // Where the name is too long, none were counted.
        let Ok(record) = record(resource) else { return Ok(None) };
        let nodes = self.inspect_nodes(record.as_str()).await?;
        Ok(Attempts::latest(nodes.iter().flatten().filter_map(Attempts::of)))
    }

    /// Removes the count of the attempts at a run.
    ///
    /// # Errors
    /// As [`Client::forget_run`].
    pub(crate) async fn forget_attempts(&self, resource: &str) -> Result<(), Error> {
        match record(resource) {
            Ok(record) => self.forget(record.as_str()).await.map(drop),
            Err(_) => Ok(()),
        }
    }
}
