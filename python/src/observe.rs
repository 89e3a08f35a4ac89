//! What the client tells, on its way to Python's loggers and observers of metrics.
//!
//! Events and samples are noted in a bounded list by whichever thread of the client has them, which waits for nobody: not
//! for the interpreter, and not for handlers of logging. A thread of Python's watches a pipe and fetches what was noted;
//! no frame of Rust is on its stack while it waits, so that the end of the interpreter can unwind it.

use std::fmt::{Debug, Write as _};
use std::io::{PipeReader, PipeWriter, Write, pipe};
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use leasehold::host::{self, PerProcess};
use pyo3::exceptions::{PyException, PyOSError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::Interest;
use tracing::{Event, Metadata, Subscriber};

use crate::samples;

/// What is not fetched in time is dropped, and counted.
const MOST: usize = 10_000;
/// How often loggers are asked for their level, at most.
const LOOK_EVERY_MS: u64 = 1_000;
const LEVELS: [(LevelFilter, u32); 5] = [
    (LevelFilter::TRACE, 5),
    (LevelFilter::DEBUG, 10),
    (LevelFilter::INFO, 20),
    (LevelFilter::WARN, 30),
    (LevelFilter::ERROR, 40),
];

/// As an index into [`LEVELS`], whose end stands for no level at all.
static LEVEL: AtomicUsize = AtomicUsize::new(LEVELS.len());
static DESK: PerProcess<Desk> = PerProcess::new(Desk::default);

/// Where threads of the client leave what they tell.
#[derive(Default)]
struct Desk {
    noted: Mutex<Noted>,
    bell: Mutex<Option<(PipeReader, PipeWriter)>>,
    looked_at_ms: AtomicU64,
}

#[derive(Default)]
struct Noted {
    items: Vec<Item>,
    dropped: u64,
}

enum Item {
    Event { name: &'static str, level: u32, unix_ms: u64, message: String, fields: Vec<(&'static str, Value)> },
    Sample(samples::Sample),
}

#[derive(IntoPyObject)]
enum Value {
    Text(String),
    Whole(u64),
    Signed(i64),
    Number(f64),
    Flag(bool),
}

/// Looks from time to time whether anybody listens: where a call of Python's begins that will have something to tell.
///
/// # Errors
/// What is no `Exception`: the handler of a signal wants to be heard.
pub(crate) fn look(py: Python<'_>) -> PyResult<()> {
    let (now, looked_at) = (host::clocks().1, &DESK.get().looked_at_ms);
    if now.abs_diff(looked_at.load(Ordering::Relaxed)) < LOOK_EVERY_MS {
        return Ok(());
    }
    looked_at.store(now, Ordering::Relaxed);
    let looked = py.import("leasehold._observe").and_then(|observe| observe.call_method0("look"));
    match looked {
        // A logger that is broken is no reason to refuse a lock.
        Err(error) if error.is_instance_of::<PyException>(py) => error.write_unraisable(py, None),
        looked => drop(looked?),
    }
    Ok(())
}

/// From now on events of this level of logging's and above are noted, and samples of metrics if `samples` says so. Answers
/// the descriptor on which something can be read once anything was noted.
#[pyfunction]
pub(crate) fn observe(level: u32, samples: bool) -> PyResult<i32> {
    static INSTALLED: AtomicBool = AtomicBool::new(false);
    let refuse = |error: std::io::Error| PyOSError::new_err(error.to_string());
    host::notice_forks().map_err(refuse)?;
    // Before the first event: whoever is first rings.
    let mut bell = locked(&DESK.get().bell);
    let (heard, _) = match &mut *bell {
        Some(bell) => bell,
        none => none.insert(pipe().map_err(refuse)?),
    };
    let heard = heard.as_raw_fd();
    drop(bell);
    let index = LEVELS.iter().position(|(_, number)| *number >= level).unwrap_or(LEVELS.len());
    if !INSTALLED.swap(true, Ordering::AcqRel) {
        // Nobody else is there to be asked: what is linked into this module belongs to it alone.
        let _ = tracing::subscriber::set_global_default(Listener);
    }
    if LEVEL.swap(index, Ordering::AcqRel) != index {
        tracing::callsite::rebuild_interest_cache();
    }
    samples::want(samples);
    Ok(heard)
}

/// Fetches what was noted, and how much more there was than could be kept.
#[pyfunction]
pub(crate) fn observed(py: Python<'_>) -> PyResult<(Vec<Bound<'_, PyAny>>, u64)> {
    let Noted { items, dropped } = std::mem::take(&mut *locked(&DESK.get().noted));
    let shown = items.into_iter().map(|item| match item {
        Item::Event { name, level, unix_ms, message, fields } => {
            let details = PyDict::new(py);
            fields.into_iter().try_for_each(|(key, value)| details.set_item(key, value))?;
            Ok((name, level, unix_ms, message, details).into_pyobject(py)?.into_any())
        }
        Item::Sample(sample) => {
            let labels = PyDict::new(py);
            sample.labels.into_iter().try_for_each(|(key, value)| labels.set_item(key, value))?;
            Ok((sample.name, sample.kind, sample.value, labels).into_pyobject(py)?.into_any())
        }
    });
    Ok((shown.collect::<PyResult<_>>()?, dropped))
}

pub(crate) fn note_sample(sample: samples::Sample) {
    note(Item::Sample(sample));
}

fn note(item: Item) {
    let desk = DESK.get();
    let mut noted = locked(&desk.noted);
    if noted.items.len() >= MOST {
        noted.dropped += 1;
        return;
    }
    noted.items.push(item);
    let is_first = noted.items.len() == 1;
    drop(noted);
    if is_first && let Some((_, rings)) = &mut *locked(&desk.bell) {
        // A few bytes at most are in the pipe, so it takes one more.
        let _ = rings.write(&[1]);
    }
}

/// Takes the events of the client, and nobody else's.
struct Listener;

impl Listener {
    fn least() -> LevelFilter {
        LEVELS.get(LEVEL.load(Ordering::Acquire)).map_or(LevelFilter::OFF, |(filter, _)| *filter)
    }
}

impl Subscriber for Listener {
    fn register_callsite(&self, metadata: &'static Metadata<'static>) -> Interest {
        if self.enabled(metadata) { Interest::always() } else { Interest::never() }
    }

    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.is_event() && metadata.target().starts_with("leasehold") && *metadata.level() <= Self::least()
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(Self::least())
    }

    fn event(&self, event: &Event<'_>) {
        let metadata = event.metadata();
        let mut parts = Parts::default();
        event.record(&mut parts);
        let level = LEVELS.iter().find(|(filter, _)| *filter == *metadata.level()).map_or(0, |(_, number)| *number);
        // An event without a name of its own is named after its place in the source.
        let name = if metadata.name().starts_with("event ") { "" } else { metadata.name() };
        note(Item::Event { name, level, unix_ms: host::clocks().1, message: parts.message, fields: parts.fields });
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

#[derive(Default)]
struct Parts {
    message: String,
    fields: Vec<(&'static str, Value)>,
}

impl Visit for Parts {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        let mut text = String::new();
        // Writing into a text does not fail.
        let _ = write!(text, "{value:?}");
        if field.name() == "message" {
            self.message = text;
        } else {
            self.fields.push((field.name(), Value::Text(text)));
        }
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.fields.push((field.name(), Value::Text(value.to_owned())));
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.fields.push((field.name(), Value::Whole(value)));
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.fields.push((field.name(), Value::Signed(value)));
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.fields.push((field.name(), Value::Number(value)));
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.fields.push((field.name(), Value::Flag(value)));
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
