//! `/metrics`, in the text format of Prometheus. No label names a resource.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;

use super::state::Service;

pub(super) async fn show(State(service): State<Arc<Service>>) -> impl IntoResponse {
    ([(CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], text(&service))
}

fn text(service: &Service) -> String {
    let counts = &service.counts;
    let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
    let waiting: usize = service.waiting().values().sum();
    let counters = [
        ("leasehold_serve_requests_total", "Requests that were let in.", read(&counts.requests)),
        (
            "leasehold_serve_refused_total",
            "Requests without a token, for another host, of a foreign page, or too long.",
            read(&counts.refused),
        ),
        ("leasehold_serve_granted_total", "Locks and runs that were granted.", read(&counts.granted)),
        (
            "leasehold_serve_busy_total",
            "Locks that others held for as long as the client would wait.",
            read(&counts.busy),
        ),
        ("leasehold_serve_failed_total", "Acquisitions that failed for another reason.", read(&counts.failed)),
        ("leasehold_serve_renewed_total", "Renewals by clients.", read(&counts.renewed)),
        ("leasehold_serve_released_total", "Releases and finishes by clients.", read(&counts.released)),
        ("leasehold_serve_lost_total", "Leases that were lost while held.", read(&counts.lost)),
        ("leasehold_serve_abandoned_total", "Leases whose clients let the ttl pass.", read(&counts.abandoned)),
    ];
    let gauges = [
        ("leasehold_serve_leases", "Leases that are kept by calls.", service.held()),
        ("leasehold_serve_waiting", "Requests that wait for a lock.", waiting),
    ];
    let counters = counters.map(|(name, help, value)| sample(name, help, "counter", &value.to_string()));
    let gauges = gauges.map(|(name, help, value)| sample(name, help, "gauge", &value.to_string()));
    [counters.concat(), gauges.concat()].concat()
}

fn sample(name: &str, help: &str, kind: &str, value: &str) -> String {
    format!("# HELP {name} {help}\n# TYPE {name} {kind}\n{name} {value}\n")
}
