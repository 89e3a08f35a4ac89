//! Replacing: the newest request for a run gets it, and its runner is asked to end. The core decides, and this does what it says.

use std::time::Duration;

use leasehold_core::config::RunOptions;
use leasehold_core::{
    Monotonic, Nonce, RecordLock, ReplaceAnswer, ReplaceStep, Replacing, Resource, Runner, Token, newest_beside,
};
use tracing::Level;

use crate::admin::release_if::HolderMatch;
use crate::admin::revoke::RevokeOutcome;
use crate::client::Client;
use crate::error::{Error, ErrorKind, LockInfo};
use crate::locks::lease::Lease;
use crate::locks::request::{LockRequest, Until};
use crate::runs::completion::Completion;
use crate::{metrics, reports};

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
    let record = resource.of_newest().map_err(|error| Error::config(error.to_string()).on(resource.as_str()))?;
    let record = lock.client().lock(record.as_str()).labelled_as(&lock)?;
    let nothing_yet = Request {
        record,
        lock,
        run,
        resource,
        holder: None,
        done: None,
        lease: None,
        unreported: None,
        told: None,
        refusal: None,
        trouble: None,
    };
    nothing_yet.acquire(until).await
}

struct Request {
    lock: LockRequest,
    run: RunOptions,
    resource: Resource,
    record: LockRequest,
    /// As they were shown last.
    holder: Option<LockInfo>,
    done: Option<Completion>,
    /// That of the run.
    lease: Option<Lease>,
    /// The runner that this request was the first to revoke, until that is reported.
    unreported: Option<Nonce>,
    /// The runner that was revoked.
    told: Option<Nonce>,
    /// The refusal, and the error, that came last.
    refusal: Option<Error>,
    trouble: Option<Error>,
}

impl Request {
    fn client(&self) -> &Client {
        self.lock.client()
    }

    async fn acquire(mut self, until: Monotonic) -> Result<Option<Lease>, Error> {
        self.refuse_own()?;
        let mut replacing = Replacing::new(self.run.even_if_done, until);
        let mut step = ReplaceStep::Look;
        loop {
            if !step.keeps_lease()
                && let Some(lease) = self.lease.take()
            {
                // The caller gets what was found; this release is not reported.
                let _ = lease.release_by(self.client().caller).await;
            }
            let answered = match step {
                ReplaceStep::Look => self.look().await,
                ReplaceStep::TakeNumber(lock) => self.take_number(lock).await,
                ReplaceStep::Ask { even_if_done, wait } => self.ask(even_if_done, wait).await,
                ReplaceStep::ReadNewest(lock) => self.read_newest(lock).await,
                ReplaceStep::CountNewest(lock) => self.count_newest(lock).await,
                ReplaceStep::End(nonce) => self.end(nonce).await,
                ReplaceStep::Begin => match self.lease.take() {
                    Some(lease) => match lease.check(Duration::ZERO) {
                        Ok(()) => return Ok(Some(lease)),
                        Err(lost) => Err(lost),
                    },
                    None => return Err(self.error(None)),
                },
                ReplaceStep::Replaced => return Ok(None),
                ReplaceStep::Done => {
                    let done = self.done.take().map(|done| Error::done(self.resource.as_str(), done));
                    return Err(self.error(done));
                }
                ReplaceStep::Running => {
                    let refusal = self.refusal.take();
                    return Err(self.error(refusal));
                }
                ReplaceStep::Unsettled => {
                    let message = "too few nodes show which request is the newest";
                    return Err(Error::new(ErrorKind::StoreUnavailable, message).on(self.resource.as_str()));
                }
                ReplaceStep::Fail => {
                    let trouble = self.trouble.take();
                    return Err(self.error(trouble));
                }
            };
            let answer = answered.unwrap_or_else(|error| {
                let may_pass = matches!(error.kind(), ErrorKind::StoreUnavailable | ErrorKind::Lost);
                self.trouble = Some(error);
                ReplaceAnswer::Failed { may_pass }
            });
            step = replacing.next(answer, self.lock.time().monotonic());
        }
    }

    fn error(&self, known: Option<Error>) -> Error {
        let unknown = || Error::new(ErrorKind::StoreUnavailable, "the runner cannot be replaced");
        known.unwrap_or_else(unknown).on(self.resource.as_str())
    }

    async fn look(&mut self) -> Result<ReplaceAnswer, Error> {
        (self.holder, self.done) = self.client().inspect_marked(self.resource.as_str()).await?;
        Ok(ReplaceAnswer::Looked { runner: self.holder.as_ref().map(runner), done: self.done.is_some() })
    }

    async fn ask(&mut self, even_if_done: bool, wait: Duration) -> Result<ReplaceAnswer, Error> {
        let run = RunOptions { even_if_done, ..self.run };
        match self.lock.clone().untold().run(run).wait(wait).acquire().await {
            Ok(lease) => {
                self.lease = Some(lease);
                Ok(ReplaceAnswer::Granted)
            }
            Err(error) if matches!(error.kind(), ErrorKind::Busy | ErrorKind::TimedOut) => {
                // A runner of this very client is known without the store having shown it.
                self.holder = error.holder().filter(|holder| holder.nonce.is_some() || holder.foreign).cloned();
                self.refusal = Some(error);
                Ok(ReplaceAnswer::Refused(self.holder.as_ref().map(runner)))
            }
            Err(error) => Err(error),
        }
    }

    async fn take_number(&mut self, lock: RecordLock) -> Result<ReplaceAnswer, Error> {
        let taken = self.record(lock, true).acquire().await.map_err(|error| self.not_written(&error))?;
        self.write(&taken).await
    }

    async fn write(&mut self, taken: &Lease) -> Result<ReplaceAnswer, Error> {
        let Some(number) = Token::new(taken.token()) else { return Ok(ReplaceAnswer::Failed { may_pass: false }) };
        let Err(error) = taken.finish_by(None, self.client().caller).await else {
            return Ok(ReplaceAnswer::Numbered(number));
        };
        let error = self.not_written(&error);
        if error.kind() != ErrorKind::StoreUnavailable {
            return Err(error);
        }
        self.trouble = Some(error);
        Ok(ReplaceAnswer::Unconfirmed(number))
    }

    async fn read_newest(&mut self, lock: RecordLock) -> Result<ReplaceAnswer, Error> {
        let error = match self.record(lock, false).acquire().await {
            // The store has forgotten the record.
            Ok(taken) => return self.write(&taken).await,
            Err(error) => error,
        };
        let newest = error.completion().and_then(|newest| Some((Token::new(newest.token)?, newest.result_unsettled)));
        let (token, unsettled) = newest.ok_or_else(|| self.not_read(&error))?;
        Ok(ReplaceAnswer::Newest { token, unsettled })
    }

    async fn count_newest(&self, lock: RecordLock) -> Result<ReplaceAnswer, Error> {
        let taken = self.record(lock, true).acquire().await.map_err(|error| self.not_read(&error))?;
        let nodes = self.client().inspect_nodes(taken.resource()).await;
        let counted = taken.nonce().zip(nodes.as_ref().ok());
        let counted = counted.and_then(|(holder, nodes)| newest_beside(nodes.iter().map(Option::as_ref), &holder));
        // The caller gets what was found; this release is not reported.
        let _ = taken.release_by(self.client().caller).await;
        nodes.map(|_| ReplaceAnswer::Counted(counted)).map_err(|error| self.not_read(&error))
    }

    /// The request for the record of the newest request.
    fn record(&self, RecordLock { ttl, wait }: RecordLock, even_if_done: bool) -> LockRequest {
        let longest = self.client().shared.quorum().map_or(Duration::MAX, |quorum| quorum.max_ttl());
        let run = RunOptions { even_if_done, ..RunOptions::default() };
        self.record.clone().ttl(ttl.min(longest)).wait(wait).run(run)
    }

    fn not_written(&self, error: &Error) -> Error {
        self.not_begun(
            error,
            format!("the work is not begun: that this is the newest request cannot be written down: {error}"),
        )
    }

    fn not_read(&self, error: &Error) -> Error {
        self.not_begun(error, format!("the work is not begun: which request is the newest cannot be read: {error}"))
    }

    fn not_begun(&self, error: &Error, message: String) -> Error {
        let is_told_as_it_is = matches!(error.kind(), ErrorKind::StoreRefused | ErrorKind::Closed | ErrorKind::Config);
        let kind = if is_told_as_it_is { error.kind() } else { ErrorKind::StoreUnavailable };
        Error::new(kind, message).on(self.resource.as_str())
    }

    /// Asks the runner to end.
    async fn end(&mut self, nonce: Nonce) -> Result<ReplaceAnswer, Error> {
        let Some(holder) = self.holder.as_ref().filter(|holder| holder.nonce == Some(nonce)) else {
            return Ok(ReplaceAnswer::Failed { may_pass: true });
        };
        if self.told != Some(nonce) && !holder.revoked {
            self.unreported = Some(nonce);
        }
        let is_news = self.unreported == Some(nonce);
        let this = HolderMatch::default().lease(holder);
        match self.client().revoke(self.resource.as_str(), this).await? {
            RevokeOutcome::Revoked(told) if is_news => self.report(told),
            RevokeOutcome::Revoked(_) | RevokeOutcome::Free => {}
            // Other nodes have answered, or another one runs by now.
            RevokeOutcome::NotMatched(_) => return Ok(ReplaceAnswer::Failed { may_pass: true }),
        }
        (self.told, self.unreported) = (Some(nonce), None);
        Ok(ReplaceAnswer::Ended)
    }

    fn report(&self, told: LockInfo) {
        let resource = self.resource.as_str().to_owned();
        reports::make_or_queue(Level::INFO, move || {
            let (owner, token) = (told.owner.as_deref().unwrap_or_default(), told.token);
            tracing::info!(name: "run.replaced", target: "leasehold", resource, owner, token, "run.replaced: the runner is asked to end, for a newer request");
            metrics::run("replaced");
        });
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

fn runner(holder: &LockInfo) -> Runner {
    Runner { nonce: holder.nonce, is_revoked: holder.revoked }
}
