//! Metrics, behind the `metrics` crate's facade: without the feature every call here is empty.
//!
//! All units are seconds. Wait and hold time are apart, since a slow lock and a slow job need different cures.

#![cfg_attr(not(feature = "metrics"), expect(unused_variables, reason = "nothing is recorded without the feature"))]

use std::time::Duration;

/// An acquisition ended, with this outcome.
pub(crate) fn acquire(outcome: &'static str) {
    #[cfg(feature = "metrics")]
    metrics::counter!("leasehold_acquire_total", "outcome" => outcome).increment(1);
}

/// A lease was lost, for this reason.
pub(crate) fn lost(reason: &'static str) {
    #[cfg(feature = "metrics")]
    metrics::counter!("leasehold_lost_total", "reason" => reason).increment(1);
}

/// A renewal ended, with this outcome.
pub(crate) fn renew(outcome: &'static str) {
    #[cfg(feature = "metrics")]
    metrics::counter!("leasehold_renew_total", "outcome" => outcome).increment(1);
}

/// A release ended, with this outcome.
pub(crate) fn release(outcome: &'static str) {
    #[cfg(feature = "metrics")]
    metrics::counter!("leasehold_release_total", "outcome" => outcome).increment(1);
}

/// A run was finished, skipped or taken over.
pub(crate) fn run(outcome: &'static str) {
    #[cfg(feature = "metrics")]
    metrics::counter!("leasehold_run_total", "outcome" => outcome).increment(1);
}

/// Time from the call to the grant or failure.
pub(crate) fn wait(time: Duration) {
    #[cfg(feature = "metrics")]
    metrics::histogram!("leasehold_wait_seconds").record(time.as_secs_f64());
}

/// Time from the grant to the end of the lease.
pub(crate) fn hold(time: Duration) {
    #[cfg(feature = "metrics")]
    metrics::histogram!("leasehold_hold_seconds").record(time.as_secs_f64());
}

/// Time that one renewal request took.
pub(crate) fn renew_duration(time: Duration) {
    #[cfg(feature = "metrics")]
    metrics::histogram!("leasehold_renew_duration_seconds").record(time.as_secs_f64());
}

/// Validity that was left when a renewal succeeded: the best early warning.
pub(crate) fn validity_left(time: Duration) {
    #[cfg(feature = "metrics")]
    metrics::histogram!("leasehold_validity_left_seconds").record(time.as_secs_f64());
}

/// A callback of a lease, an election or of shards has failed.
pub(crate) fn callback_failed(callback: &'static str) {
    #[cfg(feature = "metrics")]
    metrics::counter!("leasehold_callback_failures_total", "callback" => callback).increment(1);
}

/// So many reports were dropped: events and, with them, samples.
pub(crate) fn dropped(reports: u64) {
    #[cfg(feature = "metrics")]
    metrics::counter!("leasehold_events_dropped_total").increment(reports);
}
