//! Generated from `wit/leasehold.wit` by `cargo xtask component --bless`. Do not edit.
//!
//! Names for runs, work that is done once, and the attempts at them.
//!
//! A run is a lease whose success is written down as a completion. Acquire the resource of `plan-run` with `lock-options.run`, do the
//! work, and call `client.finish`; after a failure call `client.release`, so that another machine may try.
//!
//! Where attempts are counted, the count is the result of a completion of its own. Once the run is held, acquire `attempts-resource`
//! as a run with `even-if-done` and the same `keep-ms`, read it by `client.read`, and call `count-attempt`. If another one may begin,
//! finish the count with `keep-attempts`. Then begin the work, if the store has confirmed that, and the run is still held.
//!
//! A request that asks the runner to end, for a newer one, takes the steps of a `replacement`.

mod calls;
mod values;

use crate::wit::ops::{Completion, Holding, Outcome, Seen};

pub use calls::{Replacement, call};
pub(crate) use calls::{Guest, GuestReplacement};

/// The settings that say which part of a job is done once. One of `key`, `every-ms` and `cron` names the occurrence; without any, it
/// is the job as a whole, which needs a cooldown or a time for which its completion is kept.
pub struct Occurrence {
    /// The name of the occurrence: a date, an invoice, a batch.
    pub key: Option<String>,
    /// One occurrence in each period of this length, at least 1,000. Its key is the start of the period, in UTC or by the clocks
    /// of `tz`.
    pub every_ms: Option<u64>,
    /// How long after the start of 1970, a Thursday, the periods begin; less than a period. Default 0.
    pub offset_ms: Option<u64>,
    /// The time of day at which the periods begin, from `00:00` to `23:59` by the clocks of `tz`. They are whole days then.
    pub at: Option<String>,
    /// The zone by whose clocks `every-ms` and `cron` count, by its name in the IANA database, as it was typed: it ends the key.
    pub tz: Option<String>,
    /// One occurrence for each time of a cron expression of five fields by the clocks of `tz`: the latest one until now.
    pub cron: Option<String>,
    /// Once done, the job is not done again for so long. In place of a key.
    pub cooldown_ms: Option<u64>,
    /// How long the completion stands: at least the ttl and the period. Default 604,800,000 (7 days), or what a longer period takes.
    pub keep_ms: Option<u64>,
}

/// The offset of the clocks of a zone since they were set.
pub struct ZoneOffset {
    /// The time at which it began to count, in milliseconds since 1970.
    pub since_unix_ms: u64,
    /// The local time that they showed then, in milliseconds since they showed the start of 1970.
    pub shown_ms: u64,
}

/// The resource of an occurrence, and how long its completion stands.
pub struct RunPlan {
    /// The resource to acquire.
    pub resource: String,
    /// The `keep-ms` of its run.
    pub keep_ms: u64,
}

/// How often the work of a run may be begun.
pub struct AttemptLimit {
    /// The number of attempts, 1 or more.
    pub max: u32,
    /// The pause from the start of an attempt to the start of the next one.
    pub retry_after_ms: u64,
}

/// How often the work of a run was begun.
pub struct Attempts {
    /// The number of attempts that were begun.
    pub count: u32,
    /// How many were allowed when the last one began.
    pub max: u32,
    /// When the first of them began, in milliseconds since 1970 by the clock of the one that began it.
    pub since_unix_ms: u64,
    /// When the next one may begin, in milliseconds since 1970 by the clock of the one that began the last.
    pub retry_unix_ms: u64,
    /// Why the last one failed; absent where it did not say so, or is still under way.
    pub reason: Option<String>,
}

/// The decision about the next attempt.
pub enum NextAttempt {
    /// It may begin, once these are written.
    Begin(Attempts),
    /// Not before these say so.
    Later(Attempts),
    /// As often as allowed it was begun, and never finished.
    GivenUp(Attempts),
    /// Too few nodes show the holder of the count: read it again.
    Unsure,
}

/// How to lock the `newest-resource`.
pub struct ReplaceRecord {
    /// The ttl in milliseconds, where a quorum does not allow less.
    pub ttl_ms: u64,
    /// The wait in milliseconds.
    pub wait_ms: u64,
}

/// Payload of `replace-step.end`.
pub struct ReplaceEnd {
    /// The nonce of the lease to revoke.
    pub holder: Vec<u8>,
}

/// Payload of `replace-step.ask`: how to acquire the run.
pub struct ReplaceAsk {
    /// The `even-if-done` of its run.
    pub even_if_done: bool,
    /// The wait in milliseconds; 0 asks once.
    pub wait_ms: u64,
}

/// The next step of a request that replaces the runner.
pub enum ReplaceStep {
    /// Read the run, by `client.read` and `read-run`: `looked`.
    Look,
    /// Acquire the `newest-resource` as a run with `even-if-done`, and finish it: `numbered`, or `unconfirmed`.
    TakeNumber(ReplaceRecord),
    /// Acquire the run: `granted` or `refused`.
    Ask(ReplaceAsk),
    /// Acquire the `newest-resource` as a run that may be done: `newest`. Where the lock is granted, since the store has forgotten the
    /// completion, finish it as in `take-number`.
    ReadNewest(ReplaceRecord),
    /// Acquire the `newest-resource` as a run with `even-if-done`, read it by `client.read`, and release it: `counted`.
    CountNewest(ReplaceRecord),
    /// Revoke this lease: `ended`.
    End(ReplaceEnd),
    /// The work is the caller's, if its lease is still held; else `failed`.
    Begin,
    /// A newer request has taken the place of this one.
    Replaced,
    /// The work was done before this request, as the last `look` has shown.
    Done,
    /// The runner has not ended in time, or cannot be asked to: the refusal that came last is the answer.
    Running,
    /// Too few nodes show which request is the newest.
    Unsettled,
    /// The error that came last is the answer.
    Fail,
}

/// Payload of `replace-answer.numbered` and `replace-answer.unconfirmed`.
pub struct ReplaceNumber {
    /// The token of the completion.
    pub token: u64,
}

/// Payload of `replace-answer.counted`.
pub struct ReplaceCount {
    /// The answers of `client.take-read`.
    pub read: Vec<Outcome>,
    /// The nonce of the lock, by `client.nonce`.
    pub holder: Vec<u8>,
}

/// Payload of `replace-answer.refused`.
pub struct ReplaceRunner {
    /// The holder of the run, as `failure.busy` and `failure.timed-out` show it.
    pub holding: Option<Holding>,
}

/// Payload of `replace-answer.failed`.
pub struct ReplaceTrouble {
    /// It may pass by itself: the store did not answer, or the lease was lost.
    pub may_pass: bool,
}

/// The outcome of a step.
pub enum ReplaceAnswer {
    /// The state of the run.
    Looked(Seen),
    /// The completion was written, with this token.
    Numbered(ReplaceNumber),
    /// The completion may be written, with this token: the store has not answered. That error is the one that came last.
    Unconfirmed(ReplaceNumber),
    /// The run is acquired.
    Granted,
    /// Somebody has the run.
    Refused(ReplaceRunner),
    /// The completion that has refused the acquisition.
    Newest(Completion),
    /// The nodes' records while the `newest-resource` was locked.
    Counted(ReplaceCount),
    /// The lease is revoked, or over.
    Ended,
    /// An error.
    Failed(ReplaceTrouble),
}
