//! Runs, for bindings.

use leasehold_core::{Attempts, Resource};

use super::{asking, wait};
use crate::driver::Caller;
use crate::error::{Error, ErrorKind};
use crate::exec;
use crate::locks::lease::Lease;
use crate::runs::attempts;
use crate::runs::once::{Once, Run, RunRequest};
use crate::runs::result::{Given, RunResult};

/// Begins a run, as awaiting the request does. Gives up, with nothing held, once `interrupted` returns `true`.
///
/// # Errors
/// As there; [`ErrorKind::Cancelled`] when it was interrupted.
pub fn begin_run(request: RunRequest, interrupted: impl FnMut() -> bool) -> Result<Once, Error> {
    wait(request.by(Caller::Blocking).begin(), interrupted)
}

/// Refuses at once the settings that [`begin_run`] would refuse.
///
/// # Errors
/// [`ErrorKind::Config`].
pub fn check_run(request: &RunRequest) -> Result<(), Error> {
    request.check()
}

/// The lease of a run, for a host that has one kind of handle: [`finish`] and [`finish_async`] finish it.
pub fn run_lease(run: Run) -> Lease {
    run.into_lease()
}

/// The result that a run is finished with: none, one, or the reason why the host could not write it down.
pub type RunOutcome = Option<Result<RunResult, String>>;

fn given(outcome: RunOutcome) -> Given {
    outcome.map(|result| result.and_then(|result| result.to_keep()))
}

/// See [`Run::finish_with`]. A result that cannot be kept, or written down at all, is an error once the completion stands. Waits no
/// longer once `interrupted` returns `true`; the finish goes on in the background.
///
/// # Errors
/// As there; [`ErrorKind::Cancelled`] when it was interrupted.
pub fn finish(lease: &Lease, outcome: RunOutcome, interrupted: impl FnMut() -> bool) -> Result<(), Error> {
    exec::block_on_until(lease.finish_by(given(outcome), Caller::Blocking), asking(interrupted)).unwrap_or_else(
        |stopped| {
            let message = "the wait for the answer to the finish was interrupted: the finish goes on in the background";
            Err(stopped.into_error(|| Error::new(ErrorKind::Cancelled, message).on(lease.resource())))
        },
    )
}

/// See [`Run::finish_with`]. Dropping the future does not stop the finish.
///
/// # Errors
/// As there.
pub async fn finish_async(lease: &Lease, outcome: RunOutcome) -> Result<(), Error> {
    lease.finish_by(given(outcome), Caller::Async).await
}

/// See [`Run::fail`]. Waits no longer once `interrupted` returns `true`; the release goes on in the background.
///
/// # Errors
/// As there; [`ErrorKind::Cancelled`] when it was interrupted.
pub fn fail(lease: &Lease, reason: &str, interrupted: impl FnMut() -> bool) -> Result<(), Error> {
    exec::block_on_until(attempts::fail(lease, reason, Caller::Blocking), asking(interrupted)).unwrap_or_else(
        |stopped| {
            let message =
                "the wait for the answer to the release was interrupted: the release goes on in the background";
            Err(stopped.into_error(|| Error::new(ErrorKind::Cancelled, message).on(lease.resource())))
        },
    )
}

/// See [`Run::fail`].
///
/// # Errors
/// As there.
pub async fn fail_async(lease: &Lease, reason: &str) -> Result<(), Error> {
    attempts::fail(lease, reason, Caller::Async).await
}

/// See [`Run::attempts`].
pub fn attempts(lease: &Lease) -> Option<&Attempts> {
    lease.counting().map(|counting| &counting.attempts)
}

/// See [`Run::completion_in_with`].
///
/// # Errors
/// As there.
#[cfg(feature = "postgres")]
pub fn completion_in(lease: &Lease, outcome: RunOutcome) -> Result<crate::CompletionStatement, Error> {
    let result = given(outcome).transpose().map_err(|why| Error::config(why).on(lease.resource()))?;
    lease.completion_in(result.as_ref())
}

/// The name and the key of a run's resource; `None` for a resource that no run has.
pub fn parts_of_run(resource: &str) -> Option<(String, Option<String>)> {
    Resource::new(resource).ok()?.parts_of_run()
}

/// Decides if the error of a finish is raised at the end of a run's body: not if the body has finished or released the run
/// itself.
///
/// # Errors
/// That of the finish, in all other cases.
pub fn run_left(was_lost: bool, finished: Result<(), Error>) -> Result<(), Error> {
    match finished {
        Err(error) if error.kind() == ErrorKind::NotOwned && !was_lost => Ok(()),
        finished => finished,
    }
}
