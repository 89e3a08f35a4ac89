//! The client's metrics as single samples, because each library for metrics counts in its own way.

use metrics::{
    Counter, CounterFn, Gauge, Histogram, HistogramFn, Key, KeyName, Metadata, Recorder, SharedString, Unit,
};

use super::observe;
use crate::host::sync::Arc;
use crate::host::sync::atomic::{AtomicBool, Ordering};

/// One step of a counter, or one value of a histogram.
#[derive(Clone, Debug)]
pub struct Sample {
    /// Such as `leasehold_lost_total`.
    pub name: String,
    /// `counter` or `histogram`.
    pub kind: &'static str,
    /// The step of a counter; for a histogram, seconds.
    pub value: f64,
    /// Never the name of a resource.
    pub labels: Vec<(String, String)>,
}

static IS_WANTED: AtomicBool = AtomicBool::new(false);

/// Turns samples on or off.
pub(super) fn want(samples: bool) {
    static BEGUN: AtomicBool = AtomicBool::new(false);
    IS_WANTED.store(samples, Ordering::Release);
    if samples && !BEGUN.swap(true, Ordering::AcqRel) {
        // Fails if the process has another recorder; but what is linked into a binding belongs to it alone.
        let _ = metrics::set_global_recorder(Book);
    }
}

struct Book;

struct Entry(Key);

impl Entry {
    fn note(&self, kind: &'static str, value: f64) {
        if !IS_WANTED.load(Ordering::Acquire) {
            return;
        }
        let labels = self.0.labels().map(|label| (label.key().to_owned(), label.value().to_owned())).collect();
        observe::note_sample(&Sample { name: self.0.name().to_owned(), kind, value, labels });
    }
}

impl CounterFn for Entry {
    fn increment(&self, by: u64) {
        #[expect(clippy::cast_precision_loss, reason = "the client counts by one")]
        self.note("counter", by as f64);
    }

    fn absolute(&self, _: u64) {}
}

impl HistogramFn for Entry {
    fn record(&self, value: f64) {
        self.note("histogram", value);
    }
}

impl Recorder for Book {
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        Counter::from_arc(Arc::new(Entry(key.clone())))
    }

    fn register_gauge(&self, _: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::noop()
    }

    fn register_histogram(&self, key: &Key, _: &Metadata<'_>) -> Histogram {
        Histogram::from_arc(Arc::new(Entry(key.clone())))
    }
}
