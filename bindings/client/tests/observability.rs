//! What operators see: events with stable names, metrics without resource names, and no nonce anywhere.

#![allow(clippy::unwrap_used, clippy::wildcard_enum_match_arm, reason = "these are tests, and their helpers are too")]

mod common;

use common::log::Log;
use common::{eventually, ms};
use leasehold::blocking::Client;

#[test]
fn events_have_stable_names_and_tell_who_and_why() {
    let log = Log::default();
    tracing::subscriber::set_global_default(log.clone()).unwrap();
    let client = Client::connect("memory:observed").unwrap();
    let lease = client.lock("invoice/42").owner("worker-1").acquire().unwrap();
    assert!(log.has("span lock.acquire", &["invoice/42"]));
    eventually("the grant is told", || log.has("lock.acquired", &["owner=\"worker-1\""]));
    assert!(log.has("lock.acquired", &[&format!("token={}", lease.token())]));

    let other = Client::connect("memory:observed").unwrap();
    other.lock("invoice/42").wait(ms(20)).acquire().unwrap_err();
    eventually("the contention is told", || log.has("lock.contended", &["holder=\"worker-1\""]));

    lease.release().unwrap();
    assert!(log.has("span lock.release", &["invoice/42"]));
    eventually("the release is told", || log.has("lock.released", &["held_s="]));

    let short = client.lock("short").ttl(ms(150)).no_renewal().acquire().unwrap();
    short.lost();
    eventually("the danger is told", || log.has("lock.expiring", &["resource=\"short\""]));
    eventually("the loss is told", || log.has("lock.lost", &["reason=\"expired\""]));
    client.close().unwrap();

    assert!(!log.has("", &["nonce"]) && !log.has("", &["Nonce"]), "{log:?}");
}

#[cfg(feature = "metrics")]
mod metrics_facade {
    use std::sync::{Arc, Mutex};

    use super::*;
    use metrics::{
        Counter, CounterFn, Gauge, Histogram, HistogramFn, Key, KeyName, Metadata, Recorder, SharedString, Unit,
    };

    /// Keeps every name with its labels.
    #[derive(Clone, Default)]
    struct Book(Arc<Mutex<Vec<String>>>);

    struct Entry(Book, String);

    impl Entry {
        fn of(book: &Book, key: &Key) -> Arc<Self> {
            let labels: Vec<String> = key.labels().map(|label| format!("{}={}", label.key(), label.value())).collect();
            Arc::new(Self(book.clone(), format!("{} {}", key.name(), labels.join(","))))
        }

        fn write(&self) {
            self.0.0.lock().unwrap().push(self.1.clone());
        }
    }

    impl CounterFn for Entry {
        fn increment(&self, _: u64) {
            self.write();
        }

        fn absolute(&self, _: u64) {}
    }

    impl HistogramFn for Entry {
        fn record(&self, value: f64) {
            assert!((0.0..60.0).contains(&value), "seconds, not {value}");
            self.write();
        }
    }

    impl Recorder for Book {
        fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
        fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
        fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

        fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
            Counter::from_arc(Entry::of(self, key))
        }

        fn register_gauge(&self, _: &Key, _: &Metadata<'_>) -> Gauge {
            Gauge::noop()
        }

        fn register_histogram(&self, key: &Key, _: &Metadata<'_>) -> Histogram {
            Histogram::from_arc(Entry::of(self, key))
        }
    }

    #[test]
    fn metrics_count_outcomes_and_never_name_a_resource() {
        let book = Book::default();
        metrics::set_global_recorder(book.clone()).unwrap();
        let client = Client::connect("memory:").unwrap();
        let lease = client.lock("invoice/42").ttl(ms(200)).acquire().unwrap();
        assert!(client.lock("invoice/42").try_acquire().unwrap().is_none());
        let has = |line: &str| book.0.lock().unwrap().iter().any(|entry| entry == line);
        for line in [
            "leasehold_acquire_total outcome=acquired",
            "leasehold_acquire_total outcome=busy",
            "leasehold_wait_seconds ",
            "leasehold_renew_total outcome=renewed",
            "leasehold_renew_duration_seconds ",
            "leasehold_validity_left_seconds ",
        ] {
            eventually(line, || has(line));
        }
        lease.release().unwrap();
        let lost = client.lock("other").ttl(ms(150)).no_renewal().acquire().unwrap();
        lost.lost();
        for line in [
            "leasehold_release_total outcome=confirmed",
            "leasehold_lost_total reason=expired",
            "leasehold_hold_seconds ",
        ] {
            eventually(line, || has(line));
        }
        assert!(!book.0.lock().unwrap().iter().any(|entry| entry.contains("invoice")));
    }
}
