//! Keeps what is told, for those who ask whether it was.

use std::sync::{Arc, Mutex};

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

/// The names and fields of all events and spans of this library, events with their level behind the name.
#[derive(Clone, Debug, Default)]
pub(crate) struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    /// Returns true if one line begins so and has all these parts.
    pub(crate) fn has(&self, start: &str, parts: &[&str]) -> bool {
        let fits = |line: &String| line.starts_with(start) && parts.iter().all(|part| line.contains(part));
        self.0.lock().unwrap().iter().any(fits)
    }

    /// How many lines begin so.
    #[allow(dead_code, reason = "not every suite counts")]
    pub(crate) fn count(&self, start: &str) -> usize {
        self.0.lock().unwrap().iter().filter(|line| line.starts_with(start)).count()
    }

    pub(crate) fn clear(&self) {
        self.0.lock().unwrap().clear();
    }

    fn keep(&self, mut line: String, fields: impl FnOnce(&mut Line)) {
        let mut rest = Line(String::new());
        fields(&mut rest);
        line.push_str(&rest.0);
        self.0.lock().unwrap().push(line);
    }
}

struct Line(String);

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        self.0.push_str(&format!(" {field}={value:?}"));
    }
}

impl Subscriber for Log {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == "leasehold"
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        self.keep(format!("span {}", span.metadata().name()), |line| span.record(line));
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let metadata = event.metadata();
        self.keep(format!("{} {}", metadata.name(), metadata.level()), |line| event.record(line));
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}
