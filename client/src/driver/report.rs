//! Log events with stable names, and metrics.
//!
//! Resource names are in log events and never in metric labels, where each would become a time series of its own.

use std::time::Duration;

use leasehold_core::op::Op;
use leasehold_core::{Event, Failure, LockId, Monotonic, Transmit};
use tracing::Level;

use super::lease_state::{LeaseState, Purpose};
use crate::host::sync::Arc;
use crate::host::time::Time;
use crate::{metrics, reports};

/// An event with the rest of its log line, taken under the mutex and reported after it.
pub(super) struct Report {
    event: Event,
    lease: Arc<LeaseState>,
    /// Since the acquisition began, or for a lease since its grant.
    age: Duration,
    /// The same was warned of a moment ago.
    is_repeated: bool,
}

/// While a store is away, one warning of late renewals tells as much as one for each lease and try.
const LATE_WARNING_INTERVAL: Duration = Duration::from_secs(60);

impl Report {
    /// `last_late_warning` is when this client last warned of a late renewal.
    pub(super) fn of(
        event: Event,
        lease: Arc<LeaseState>,
        now: Monotonic,
        last_late_warning: &mut Option<Monotonic>,
    ) -> Self {
        let is_late = matches!(event, Event::RenewDelayed { .. });
        let is_repeated = is_late && last_late_warning.is_some_and(|told| now.since(told) < LATE_WARNING_INTERVAL);
        if is_late && !is_repeated {
            *last_late_warning = Some(now);
        }
        let age = lease.age(now);
        Self { event, lease, age, is_repeated }
    }

    pub(super) fn lease(&self) -> &LeaseState {
        &self.lease
    }

    pub(super) fn lock(&self) -> LockId {
        self.lease.lock()
    }

    pub(super) fn level(&self) -> Level {
        match self.event {
            Event::Renewed { recovered: false, .. } => Level::TRACE,
            Event::Failed { failure: Failure::Done(_), .. } => Level::INFO,
            Event::Contended { .. } | Event::Failed { .. } => Level::DEBUG,
            Event::RenewDelayed { .. } if self.is_repeated => Level::DEBUG,
            Event::Acquired { .. }
            | Event::Renewed { .. }
            | Event::Released { confirmed: true, .. }
            | Event::Finished { confirmed: true, .. } => Level::INFO,
            Event::RenewDelayed { .. }
            | Event::Shortened { .. }
            | Event::Expiring { .. }
            | Event::Released { confirmed: false, .. }
            | Event::Finished { confirmed: false, .. } => Level::WARN,
            Event::Lost { .. } => Level::ERROR,
        }
    }

    pub(super) fn emit(self) {
        let Self { event, lease, age, is_repeated } = self;
        let (resource, owner, token) = (lease.resource().as_str(), lease.owner().as_str(), lease.token());
        let age_s = age.as_secs_f64();
        match event {
            Event::Acquired { token, recovered, .. } => {
                let token = token.get();
                if recovered {
                    tracing::info!(name: "lock.recovered", target: "leasehold", resource, owner, token, "lock.recovered: the reply was lost, but the record shows that the lock was granted to this client");
                }
                tracing::info!(name: "lock.acquired", target: "leasehold", resource, owner, token, wait_s = age_s, "lock.acquired");
                let is_of_a_run = matches!(lease.purpose(), Purpose::Run { .. }) && lease.was_contended();
                if is_of_a_run && !lease.resource().is_beside_a_run() {
                    tracing::info!(name: "run.taken_over", target: "leasehold", resource, owner, token, wait_s = age_s, "run.taken_over: the previous runner has gone without a completion");
                    metrics::run("taken_over");
                }
                metrics::acquire("acquired");
                metrics::wait(age);
            }
            Event::Contended { holding, .. } => {
                let holder = holding.owner.as_ref().map_or("", |owner| owner.as_str());
                let position = lease.place();
                tracing::debug!(name: "lock.contended", target: "leasehold", resource, owner, holder, position, "lock.contended");
            }
            Event::Failed { failure: Failure::Done(completion), .. } if !lease.resource().is_beside_a_run() => {
                let (done_by, done_token) = (completion.owner.as_str(), completion.token.get());
                tracing::info!(name: "run.skipped", target: "leasehold", resource, owner, done_by, done_token, wait_s = age_s, "run.skipped: the work is done");
                metrics::run("skipped");
                metrics::acquire("done");
                metrics::wait(age);
            }
            Event::Failed { failure, .. } => {
                let outcome = outcome_name(&failure);
                tracing::debug!(name: "lock.failed", target: "leasehold", resource, owner, outcome, wait_s = age_s, "lock.failed");
                metrics::acquire(outcome);
                metrics::wait(age);
            }
            Event::Renewed { left, recovered, .. } => {
                let validity_left_s = left.as_secs_f64();
                if recovered {
                    tracing::info!(name: "lock.recovered", target: "leasehold", resource, owner, token, "lock.recovered: the reply was lost, but the record shows that the lease was renewed");
                }
                tracing::trace!(name: "lock.renewed", target: "leasehold", resource, owner, token, validity_left_s, "lock.renewed");
                metrics::renew(if recovered { "recovered" } else { "renewed" });
                metrics::validity_left(left);
            }
            Event::RenewDelayed { fault, .. } => {
                if is_repeated {
                    tracing::debug!(name: "lock.renew_late", target: "leasehold", resource, owner, token, fault = %fault, "lock.renew_late: a renewal failed, another follows");
                } else {
                    tracing::warn!(name: "lock.renew_late", target: "leasehold", resource, owner, token, fault = %fault, "lock.renew_late: a renewal failed, another follows; more within a minute are logged at debug level");
                }
                metrics::renew("delayed");
            }
            Event::Shortened { .. } => {
                tracing::warn!(name: "lock.shortened", target: "leasehold", resource, owner, token, "lock.shortened: a node lost the record");
            }
            Event::Expiring { .. } => {
                let fault = lease.renew_fault().map(|fault| fault.to_string());
                tracing::warn!(name: "lock.expiring", target: "leasehold", resource, owner, token, fault, "lock.expiring: no renewal has succeeded and little validity is left");
            }
            Event::Lost { reason, .. } => {
                let why = reason.name();
                let fault = lease.renew_fault().map(|fault| fault.to_string());
                tracing::error!(name: "lock.lost", target: "leasehold", resource, owner, token, reason = why, fault, held_s = age_s, "lock.lost: the work must stop");
                metrics::lost(why);
                metrics::hold(age);
            }
            Event::Finished { confirmed, .. } if lease.resource().is_beside_a_run() => {
                tracing::debug!(name: "run.noted", target: "leasehold", resource, owner, token, confirmed, "run.noted");
                metrics::hold(age);
            }
            Event::Finished { confirmed: true, .. } if lease.purpose() == Purpose::Forgetting => {
                tracing::info!(name: "run.forgotten", target: "leasehold", resource, owner, token, "run.forgotten: the completion is gone, and the work may be done again");
                metrics::run("forgotten");
                metrics::hold(age);
            }
            Event::Finished { confirmed: true, result_dropped, .. } => {
                if result_dropped {
                    let fault = lease.finish_fault().map(|(_, why)| why);
                    tracing::warn!(name: "run.result_dropped", target: "leasehold", resource, owner, token, fault, "run.result_dropped: the work is done, but the store had no room for its result");
                }
                tracing::info!(name: "run.finished", target: "leasehold", resource, owner, token, held_s = age_s, "run.finished");
                metrics::run("finished");
                metrics::hold(age);
            }
            Event::Finished { confirmed: false, .. } => {
                let fault = lease.finish_fault().map(|(_, why)| why);
                tracing::warn!(name: "run.finish_unconfirmed", target: "leasehold", resource, owner, token, fault, held_s = age_s, "run.finish_unconfirmed: the work was done, but the store did not confirm its completion");
                metrics::run("finish_unconfirmed");
                metrics::hold(age);
            }
            Event::Released { confirmed: true, .. } => {
                tracing::info!(name: "lock.released", target: "leasehold", resource, owner, token, held_s = age_s, "lock.released");
                metrics::release("confirmed");
                metrics::hold(age);
            }
            Event::Released { confirmed: false, .. } => {
                tracing::warn!(name: "lock.release_unconfirmed", target: "leasehold", resource, owner, token, held_s = age_s, "lock.release_unconfirmed: an answer was lost, but the lock is free by now");
                metrics::release("unconfirmed");
                metrics::hold(age);
            }
        }
    }
}

/// A measurement of how long a renewal takes.
pub(super) struct Stopwatch(Option<(Time, Monotonic)>);

impl Stopwatch {
    pub(super) fn start(request: &Transmit, time: &Time) -> Self {
        let is_renewal = matches!(request.ops.first().map(|op| &op.op), Some(Op::Renew(_)));
        Self(is_renewal.then(|| (time.clone(), time.monotonic())))
    }

    pub(super) fn stop(self) {
        if let Some((time, asked)) = self.0.filter(|_| cfg!(feature = "metrics")) {
            let took = time.monotonic().since(asked);
            reports::queue(Level::TRACE, move || metrics::renew_duration(took));
        }
    }
}

fn outcome_name(failure: &Failure) -> &'static str {
    match failure {
        Failure::Busy { .. } => "busy",
        Failure::TimedOut { .. } => "timed_out",
        Failure::Throttled(_) => "throttled",
        Failure::Unavailable(_) => "unavailable",
        Failure::Abstains { .. } => "abstains",
        Failure::Refused(_) => "refused",
        Failure::Done(_) => "done",
        Failure::CompletionsInDoubt => "completions_in_doubt",
        Failure::Cancelled => "cancelled",
    }
}
