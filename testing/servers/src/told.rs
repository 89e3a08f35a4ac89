//! Whatever a library tells of itself while a test runs, at every level, in the file that `LEASEHOLD_TELL` names: `cargo
//! xtask test` looks for secrets there. Not in the test's own output, where it would hide why a test has failed.

use std::env;
use std::fmt::{Debug, Write as _};
use std::fs::File;
use std::io::Write as _;
use std::sync::{Once, OnceLock};

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

struct Told;

/// Shared by all processes of a run.
static FILE: OnceLock<File> = OnceLock::new();

/// What every line begins with.
const TOLD: &str = "told:";

/// From the first server of a process on.
pub(crate) fn listen() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        if let Some(path) = env::var_os("LEASEHOLD_TELL") {
            let file = File::options().create(true).append(true).open(&path);
            let _ = FILE.set(file.expect("the file that LEASEHOLD_TELL names can be written"));
            // Where a test has set another one, it looks itself.
            let _ = tracing::subscriber::set_global_default(Told);
            if log::set_logger(&Told).is_ok() {
                log::set_max_level(log::LevelFilter::Trace);
            }
        }
    });
}

struct Line(String);

impl Line {
    fn of(metadata: &Metadata<'_>) -> Self {
        Self(format!("{TOLD} {} {} {}", metadata.level(), metadata.target(), metadata.name()))
    }

    /// In one piece, so that lines of several processes do not mix.
    fn end(mut self) {
        self.0.push('\n');
        if let Some(mut file) = FILE.get() {
            file.write_all(self.0.as_bytes()).expect("the file that LEASEHOLD_TELL names can be written");
        }
    }
}

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        let _ = write!(self.0, " {field}={value:?}");
    }
}

impl Subscriber for Told {
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
        let mut line = Line(TOLD.to_owned());
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

impl log::Log for Told {
    fn enabled(&self, _: &log::Metadata<'_>) -> bool {
        true
    }

    fn log(&self, record: &log::Record<'_>) {
        Line(format!("{TOLD} {} {} {}", record.level(), record.target(), record.args())).end();
    }

    fn flush(&self) {}
}
