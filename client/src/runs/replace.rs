//! Replacing: the newest request for a run gets it, and its runner is asked to end.
//!
//! A request takes a number: the token of a completion that it writes to a record of its own beside the run. A later number
//! is newer, whatever clocks say, and all who wait look at the record. A request without a number could not be told
//! from an older one that is granted late, so each takes one before it asks for the run.

use std::time::Duration;

use leasehold_core::config::RunOptions;
use leasehold_core::{Monotonic, Resource};
use tracing::Level;

use crate::admin::release_if::HolderMatch;
use crate::admin::revoke::RevokeOutcome;
use crate::client::Client;
use crate::error::{Error, ErrorKind, LockInfo};
use crate::locks::lease::Lease;
use crate::locks::request::{LockRequest, Until};
use crate::{metrics, reports};

/// How long the record is locked without renewal: it is written at once.
const RECORD_TTL: Duration = Duration::from_secs(10);
/// Another request may have died with the lock of the record.
const RECORD_WAIT: Duration = Duration::from_secs(20);
/// How often the nodes are asked which request is the newest, where too few have answered.
const LOOKS: u32 = 5;
/// How long a request waits before it looks for a newer one, and for another runner: at first, and at most, since the time doubles.
const LOOK_FIRST: Duration = Duration::from_secs(1);
const LOOK_MOST: Duration = Duration::from_secs(8);

/// Acquires a run that somebody may have: that runner is revoked, and waited for until it has let go or its lease has run out. `None`: a
/// newer request has taken the place of this one.
///
/// # Errors
/// [`ErrorKind::Done`]: the work was done before. [`ErrorKind::TimedOut`]: the runner has not ended within the wait, or cannot be
/// revoked ([`ErrorKind::Busy`]). [`ErrorKind::Config`]: the caller runs it itself.
pub(super) async fn acquire(lock: LockRequest, run: RunOptions) -> Result<Option<Lease>, Error> {
    let resource = Resource::new(lock.resource()).map_err(|error| Error::config(error.to_string()))?;
    let until = match Until::of(&lock)? {
        Until::Time(until) => until,
        // Its runner ends: it cannot renew its lease once that is revoked.
        Until::Once | Until::Watch | Until::Forever => Monotonic::FAR,
    };
    Replacing { record: record(lock.client(), &resource)?.labelled_as(&lock)?, lock, run, resource, until }
        .acquire()
        .await
}

/// The request for the record of the newest request for a run.
fn record(client: &Client, resource: &Resource) -> Result<LockRequest, Error> {
    let record = resource.of_newest().map_err(|error| Error::config(error.to_string()).on(resource.as_str()))?;
    let longest = client.shared.quorum().map_or(Duration::MAX, |quorum| quorum.max_ttl());
    Ok(client.lock(record.as_str()).ttl(RECORD_TTL.min(longest)).wait(RECORD_WAIT))
}

/// The result of a look at the run.
enum Seen {
    /// There is a newer request.
    Newer,
    /// A client of another library, whom nobody can ask to end.
    Foreign,
    /// A runner, who was asked to end.
    Runner,
    Nobody,
}

struct Replacing {
    lock: LockRequest,
    run: RunOptions,
    resource: Resource,
    record: LockRequest,
    until: Monotonic,
}

impl Replacing {
    fn client(&self) -> &Client {
        self.lock.client()
    }

    async fn acquire(self) -> Result<Option<Lease>, Error> {
        self.refuse_own()?;
        let (holder, done) = self.client().inspect_marked(self.resource.as_str()).await?;
        // What a runner finishes after this request has begun is the work of an older one.
        let mut runs = holder.is_some();
        if let Some(done) = done.filter(|_| !runs && !self.run.even_if_done) {
            return Err(Error::done(self.resource.as_str(), done));
        }
        let mut number = self.take_number().await?;
        let mut wait = Duration::ZERO;
        loop {
            let trouble = match self.request(runs, wait).acquire().await {
                Ok(lease) => {
                    let is_newest = self.is_newest(&mut number).await;
                    match (is_newest, lease.check(Duration::ZERO)) {
                        (Ok(true), Ok(())) => return Ok(Some(lease)),
                        (is_newest, is_held) => {
                            // The caller is told what was found, and not of this release.
                            let _ = lease.release_by(self.client().caller).await;
                            match (is_newest, is_held) {
                                (Ok(false), _) => return Ok(None),
                                (Err(trouble), _) | (Ok(true), Err(trouble)) => trouble,
                                (Ok(true), Ok(())) => continue,
                            }
                        }
                    }
                }
                Err(error) if matches!(error.kind(), ErrorKind::Busy | ErrorKind::TimedOut) => {
                    match self.look(error.holder().cloned(), &mut number).await {
                        Ok(Seen::Newer) => return Ok(None),
                        Ok(Seen::Foreign) => return Err(error),
                        Ok(Seen::Runner) => runs = true,
                        Ok(Seen::Nobody) => {}
                        Err(trouble) if trouble.kind() != ErrorKind::StoreUnavailable => return Err(trouble),
                        Err(_) => {}
                    }
                    error
                }
                Err(error) => error,
            };
            // With its number it has taken the place of others, so it goes on as long as it may.
            let may_pass = matches!(
                trouble.kind(),
                ErrorKind::Busy | ErrorKind::TimedOut | ErrorKind::StoreUnavailable | ErrorKind::Lost
            );
            if !may_pass || self.left().is_zero() {
                return Err(trouble);
            }
            wait = (wait * 2).clamp(LOOK_FIRST, LOOK_MOST);
        }
    }

    /// Looks who has the run, and asks that runner to end if no newer request has come: one that is seen before has an older number, which
    /// it took before it was granted.
    async fn look(&self, shown: Option<LockInfo>, number: &mut u64) -> Result<Seen, Error> {
        let holder = match shown.filter(|holder| holder.nonce.is_some() || holder.foreign) {
            Some(holder) => Some(holder),
            // A runner of this very client is known without the store having shown it.
            None => self.client().inspect_marked(self.resource.as_str()).await?.0,
        };
        if !self.is_newest(number).await? {
            return Ok(Seen::Newer);
        }
        match holder {
            Some(holder) if holder.foreign => Ok(Seen::Foreign),
            Some(holder) => self.end(&holder).await.map(|()| Seen::Runner),
            None => Ok(Seen::Nobody),
        }
    }

    /// The request for the run, which waits for so long at most.
    fn request(&self, runs: bool, wait: Duration) -> LockRequest {
        let run = RunOptions { even_if_done: runs || self.run.even_if_done, ..self.run };
        self.lock.clone().untold().run(run).wait(wait.min(self.left()))
    }

    fn left(&self) -> Duration {
        self.until.since(self.lock.time().monotonic())
    }

    /// Becomes the newest request.
    async fn take_number(&self) -> Result<u64, Error> {
        let run = RunOptions { even_if_done: true, ..RunOptions::default() };
        let taken = self.record.clone().run(run).acquire().await.map_err(|error| self.not_written(&error))?;
        self.write(&taken).await
    }

    async fn write(&self, taken: &Lease) -> Result<u64, Error> {
        let written = taken.finish_by(None, self.client().caller).await;
        written.map(|()| taken.token()).map_err(|error| self.not_written(&error))
    }

    fn not_written(&self, error: &Error) -> Error {
        self.trouble(
            error,
            format!("the work is not begun: that this is the newest request cannot be written down: {error}"),
        )
    }

    fn not_read(&self, error: &Error) -> Error {
        self.trouble(error, format!("the work is not begun: which request is the newest cannot be read: {error}"))
    }

    fn trouble(&self, error: &Error, message: String) -> Error {
        let is_told_as_it_is = matches!(error.kind(), ErrorKind::StoreRefused | ErrorKind::Closed | ErrorKind::Config);
        let kind = if is_told_as_it_is { error.kind() } else { ErrorKind::StoreUnavailable };
        Error::new(kind, message).on(self.resource.as_str())
    }

    /// Tells if no newer request has taken a number.
    async fn is_newest(&self, number: &mut u64) -> Result<bool, Error> {
        for _ in 0..LOOKS {
            let error = match self.record.clone().run(RunOptions::default()).acquire().await {
                // The store has forgotten the record.
                Ok(taken) => {
                    *number = self.write(&taken).await?;
                    return Ok(true);
                }
                Err(error) => error,
            };
            match error.completion() {
                Some(newest) if newest.token > *number => return Ok(false),
                Some(newest) if !newest.result_unsettled => return Ok(true),
                // Too few nodes have answered: the others may know a newer one.
                Some(_) => {}
                None => return Err(self.not_read(&error)),
            }
        }
        let message = "too few nodes show which request is the newest";
        Err(Error::new(ErrorKind::StoreUnavailable, message).on(self.resource.as_str()))
    }

    /// Asks this runner to end.
    async fn end(&self, holder: &LockInfo) -> Result<(), Error> {
        if holder.revoked {
            return Ok(());
        }
        let this = HolderMatch::default().lease(holder);
        if let RevokeOutcome::Revoked(holder) = self.client().revoke(self.resource.as_str(), this).await? {
            let resource = self.resource.as_str().to_owned();
            reports::make_or_queue(Level::INFO, move || {
                let (owner, token) = (holder.owner.as_deref().unwrap_or_default(), holder.token);
                tracing::info!(name: "run.replaced", target: "leasehold", resource, owner, token, "run.replaced: the runner is asked to end, for a newer request");
                metrics::run("replaced");
            });
        }
        Ok(())
    }

    /// # Errors
    /// The caller runs the work itself, and would wait for itself.
    fn refuse_own(&self) -> Result<(), Error> {
        if !self.lock.is_held_by_caller(self.resource.as_str())? {
            return Ok(());
        }
        let message = "this thread or task runs the work itself, and would wait for itself to end: finish or release that run first";
        Err(Error::config(message).on(self.resource.as_str()))
    }
}
