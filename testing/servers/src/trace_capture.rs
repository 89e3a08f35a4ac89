//! Captures the log output of all libraries while tests run, at every level, in the file that `LEASEHOLD_TRACE_FILE`
//! names. `cargo xtask test` searches it for secrets. In the test's own output it would hide the reason of a failure.

use std::env;
use std::fmt::{Debug, Write as _};
use std::fs::File;
use std::io::Write as _;
use std::sync::{Once, OnceLock};

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

struct TraceCapture;

/// Shared by all processes of a run.
static FILE: OnceLock<File> = OnceLock::new();

/// The prefix of every line.
const PREFIX: &str = "captured:";

/// Starts capturing, with the first server of a process.
pub(crate) fn listen() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        if let Some(path) = env::var_os("LEASEHOLD_TRACE_FILE") {
            let file = File::options().create(true).append(true).open(&path);
            let _ = FILE.set(file.expect("the file that LEASEHOLD_TRACE_FILE names can be written"));
            // A test that has set a subscriber of its own checks that itself.
            let _ = tracing::subscriber::set_global_default(TraceCapture);
            if log::set_logger(&TraceCapture).is_ok() {
                log::set_max_level(log::LevelFilter::Trace);
            }
        }
    });
}

struct Line(String);

impl Line {
    fn of(metadata: &Metadata<'_>) -> Self {
        Self(format!("{PREFIX} {} {} {}", metadata.level(), metadata.target(), metadata.name()))
    }

    /// Writes the line at once, so that lines of several processes do not mix.
    fn end(mut self) {
        self.0.push('\n');
        if let Some(mut file) = FILE.get() {
            file.write_all(self.0.as_bytes()).expect("the file that LEASEHOLD_TRACE_FILE names can be written");
        }
    }
}

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        let _ = write!(self.0, " {field}={value:?}");
    }
}

impl Subscriber for TraceCapture {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        let mut line = Line::of(span.metadata());
        span.record(&mut line);
        line.end();
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, values: &Record<'_>) {
        let mut line = Line(PREFIX.to_owned());
        values.record(&mut line);
        line.end();
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut line = Line::of(event.metadata());
        event.record(&mut line);
        line.end();
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

impl log::Log for TraceCapture {
    fn enabled(&self, _: &log::Metadata<'_>) -> bool {
        true
    }

    fn log(&self, record: &log::Record<'_>) {
        Line(format!("{PREFIX} {} {} {}", record.level(), record.target(), record.args())).end();
    }

    fn flush(&self) {}
}
