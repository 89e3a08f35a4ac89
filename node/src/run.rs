//! Runs: work that is done once.

use std::time::Duration;

use leasehold::ffi::{self, Held};
use leasehold::{CompletionStatement, Once, RunRequest, RunResult};
use napi::Either;
use napi::bindgen_prelude::{Buffer, Null, Uint8Array};
use napi_derive::napi;

use crate::failure::Failure;
use crate::info::{LockInfo, whole};
use crate::options::{length, milliseconds, natural, patience, renewal};
use crate::reactor::{Operation, Outcome};

/// Settings of a run.
#[napi(object, object_to_js = false)]
pub struct RunOptions {
    /// See `RunRequest::key`.
    pub key: Option<String>,
    /// See `RunRequest::every`.
    pub every: Option<f64>,
    /// See `RunRequest::offset`.
    pub offset: Option<f64>,
    /// See `RunRequest::at`.
    pub at: Option<String>,
    /// See `RunRequest::tz`.
    pub tz: Option<String>,
    /// See `RunRequest::cron`.
    pub cron: Option<String>,
    /// See `RunRequest::cooldown`.
    pub cooldown: Option<f64>,
    /// See `RunRequest::keep`.
    pub keep: Option<f64>,
    /// See `RunRequest::wait`; infinity is forever.
    pub wait: Option<f64>,
    /// See `RunRequest::ttl`.
    pub ttl: Option<f64>,
    /// See `RunRequest::owner`.
    pub owner: Option<String>,
    /// See `RunRequest::data`.
    pub data: Option<Uint8Array>,
    /// See `RunRequest::lock_delay`.
    pub lock_delay: Option<f64>,
    /// See `RunRequest::max_hold`.
    pub max_hold: Option<f64>,
    /// See `RunRequest::renew_every`.
    pub renew_every: Option<f64>,
    /// The default is true; `renew: false` turns renewals off.
    pub renew: Option<bool>,
    /// See `RunRequest::trust_quorum`.
    pub trust_quorum: Option<bool>,
    /// See `RunRequest::even_if_done`.
    pub even_if_done: Option<bool>,
    /// See `RunRequest::replace`.
    pub replace: Option<bool>,
    /// See `RunRequest::max_attempts`.
    pub max_attempts: Option<f64>,
    /// See `RunRequest::retry_after`.
    pub retry_after: Option<f64>,
    /// See `RunRequest::watch_holder`.
    pub watch_holder: Option<bool>,
}

impl RunOptions {
    pub(crate) fn request(self, mut request: RunRequest) -> Result<RunRequest, Failure> {
        type Set = fn(RunRequest, Duration) -> RunRequest;
        let lengths: [(&str, Option<f64>, Set); 8] = [
            ("every", self.every, RunRequest::every),
            ("offset", self.offset, RunRequest::offset),
            ("cooldown", self.cooldown, RunRequest::cooldown),
            ("keep", self.keep, RunRequest::keep),
            ("ttl", self.ttl, RunRequest::ttl),
            ("lockDelay", self.lock_delay, RunRequest::lock_delay),
            ("maxHold", self.max_hold, RunRequest::max_hold),
            ("retryAfter", self.retry_after, RunRequest::retry_after),
        ];
        for (name, given, set) in lengths {
            if let Some(ms) = given {
                request = set(request, length(name, ms)?);
            }
        }
        for (given, set) in [
            (self.key, RunRequest::key as fn(RunRequest, String) -> RunRequest),
            (self.at, RunRequest::at),
            (self.tz, RunRequest::tz),
            (self.cron, RunRequest::cron),
        ] {
            request = given.into_iter().fold(request, set);
        }
        if self.wait.is_some() {
            request = request.wait(patience(self.wait)?.unwrap_or(Duration::MAX));
        }
        if let Some(owner) = self.owner {
            request = request.owner(owner);
        }
        if let Some(data) = self.data {
            request = request.data(&data);
        }
        if self.trust_quorum == Some(true) {
            request = request.trust_quorum();
        }
        if self.even_if_done == Some(true) {
            request = request.even_if_done();
        }
        if self.replace == Some(true) {
            request = request.replace();
        }
        if let Some(max) = self.max_attempts {
            // A larger number is not reached either.
            request = request.max_attempts(u32::try_from(natural("maxAttempts", max)?).unwrap_or(u32::MAX));
        }
        if self.watch_holder == Some(true) {
            request = request.watch_holder();
        }
        renewal(self.renew, self.renew_every, request, RunRequest::renew_every, RunRequest::no_renewal)
    }
}

/// The completion of finished work.
#[napi(object, object_from_js = false)]
pub struct Completion {
    /// When the work was finished, since 1970.
    pub at: f64,
    /// The label of the run that did it.
    pub owner: Option<String>,
    /// Its fencing token.
    pub token: i64,
    /// Time for which the completion still stands.
    pub left: f64,
    /// The kind of the result, if one was left: `bytes`, `json` or `output`.
    pub kind: Option<String>,
    /// The result.
    pub result: Option<Buffer>,
    /// There may be a result that is not told yet.
    pub unsettled: bool,
    /// When the run began, since 1970, if it left a result.
    pub began: Option<f64>,
}

impl From<leasehold::Completion> for Completion {
    fn from(completion: leasehold::Completion) -> Self {
        Self {
            at: since_1970(completion.at_unix_ms),
            owner: completion.owner,
            token: whole(completion.token),
            left: milliseconds(completion.left),
            kind: completion.result.as_ref().map(|result| result.kind().to_owned()),
            result: completion.result.map(|result| result.as_bytes().to_vec().into()),
            unsettled: completion.result_unsettled,
            began: completion.began_unix_ms.map(since_1970),
        }
    }
}

/// How often the work of a run was begun.
#[napi(object, object_from_js = false)]
pub struct Attempts {
    /// The number of attempts that were begun.
    pub count: u32,
    /// How many were allowed when the last one began.
    pub max: u32,
    /// When the first of them began, since 1970.
    pub since: f64,
    /// When the next one may begin, since 1970.
    pub retry_at: f64,
    /// The reason why the last one failed; null where it did not say so, or is still under way.
    pub reason: Either<String, Null>,
}

impl From<leasehold::Attempts> for Attempts {
    fn from(attempts: leasehold::Attempts) -> Self {
        Self {
            count: attempts.count,
            max: attempts.max,
            since: since_1970(attempts.since_unix_ms),
            retry_at: since_1970(attempts.retry_unix_ms),
            reason: attempts.reason.map_or(Either::B(Null), Either::A),
        }
    }
}

fn since_1970(unix_ms: u64) -> f64 {
    milliseconds(Duration::from_millis(unix_ms))
}

/// The reason why there is nothing to do: a completion, attempts whose pause is not over, or else somebody who is at it.
#[napi(object, object_from_js = false)]
#[derive(Default)]
pub struct Skipped {
    /// The completion of the work that is done.
    pub completion: Option<Completion>,
    /// The attempts that have failed, in the pause before the next one.
    pub attempts: Option<Attempts>,
    /// The holder, as far as the store shows it.
    pub holder: Option<LockInfo>,
    /// A newer call has taken the place of this one.
    pub replaced: bool,
}

/// The state of one occurrence of a job.
#[napi(object, object_from_js = false)]
pub struct RunInfo {
    /// The resource that stands for it.
    pub resource: String,
    /// The name of the job.
    pub name: String,
    /// The key of the occurrence.
    pub key: Option<String>,
    /// The runner.
    pub holder: Option<LockInfo>,
    /// The completion.
    pub done: Option<Completion>,
    /// The attempts at its work, where they are counted.
    pub attempts: Option<Attempts>,
}

impl From<leasehold::RunInfo> for RunInfo {
    fn from(info: leasehold::RunInfo) -> Self {
        Self {
            resource: info.resource,
            name: info.name,
            key: info.key,
            holder: info.holder.map(Into::into),
            done: info.done.map(Into::into),
            attempts: info.attempts.map(Into::into),
        }
    }
}

/// A run whose completion is in a transaction of the user's, which decides if the work is done even if the lease is lost meanwhile.
#[napi]
pub struct Marking {
    held: Held,
    statement: CompletionStatement,
}

impl Marking {
    pub(crate) fn of(held: &Held, outcome: ffi::RunOutcome) -> Result<Self, Failure> {
        Ok(Self { statement: ffi::completion_in(held, outcome)?, held: held.clone() })
    }
}

#[napi]
impl Marking {
    /// See `CompletionStatement::sql`.
    #[napi(getter, catch_unwind)]
    pub fn sql(&self) -> String {
        self.statement.sql.clone()
    }

    /// See `CompletionStatement::parameter`.
    #[napi(getter, catch_unwind)]
    pub fn parameter(&self) -> Vec<String> {
        self.statement.parameter.clone()
    }

    /// See `Run::finish`.
    #[napi(catch_unwind)]
    pub fn finish(&self) -> Operation {
        let held = self.held.clone();
        Operation::new(async move {
            ffi::finish_async(&held, None).await?;
            Ok(Outcome::Nothing)
        })
    }
}

/// The result that a run is finished with, by its kind; `unfit` is the reason why there is none that can be kept.
pub(crate) fn outcome(kind: Option<&str>, text: Option<String>, bytes: Option<Vec<u8>>) -> ffi::RunOutcome {
    match (kind?, text, bytes) {
        ("json", Some(text), _) => Some(Ok(RunResult::Json(text))),
        ("bytes", _, Some(bytes)) => Some(Ok(RunResult::Bytes(bytes))),
        ("output", _, Some(bytes)) => Some(Ok(RunResult::Output(bytes))),
        (_, reason, _) => Some(Err(reason.unwrap_or_else(|| "it has no kind".to_owned()))),
    }
}

pub(crate) fn begun(once: Once) -> Outcome {
    match once {
        Once::Run(run) => Outcome::Run(run),
        Once::Done(completion) => {
            Outcome::Skipped(Skipped { completion: Some(completion.into()), ..Skipped::default() })
        }
        Once::Running(holder) => Outcome::Skipped(Skipped { holder: holder.map(Into::into), ..Skipped::default() }),
        Once::Later(attempts) => Outcome::Skipped(Skipped { attempts: Some(attempts.into()), ..Skipped::default() }),
        Once::Replaced => Outcome::Skipped(Skipped { replaced: true, ..Skipped::default() }),
        _ => Outcome::Skipped(Skipped::default()),
    }
}
