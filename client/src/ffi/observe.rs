//! A queue of the client's events and metrics, for loggers and observers in another language.
//!
//! The threads of the client put events and samples into bounded lists, and wait for nobody: not for an interpreter,
//! and not for handlers of logging. The binding is notified, and fetches the list on a thread of its own.
//!
//! This is for a library that is loaded into another process and belongs to the binding alone: the first [`EventQueue`]
//! that wants something becomes the global subscriber of `tracing` and recorder of `metrics`.

use std::fmt::{Debug, Write as _};

use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::Interest;
use tracing::{Event, Metadata, Subscriber};

use super::samples;
use crate::clock;
use crate::fork::PerProcess;
use crate::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use crate::sync::{Arc, Mutex};

pub use super::samples::Sample;

/// The length limit of a queue. Later items are dropped and counted.
const MOST: usize = 10_000;

/// The level of an event, from the least up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Each renewal.
    Trace,
    /// That somebody else holds a lock, say.
    Debug,
    /// Grants and releases.
    Info,
    /// A problem that may come soon.
    Warn,
    /// A failure: a lost lease.
    Error,
}

impl Level {
    const ALL: [Self; 5] = [Self::Trace, Self::Debug, Self::Info, Self::Warn, Self::Error];

    const fn filter(self) -> LevelFilter {
        match self {
            Self::Trace => LevelFilter::TRACE,
            Self::Debug => LevelFilter::DEBUG,
            Self::Info => LevelFilter::INFO,
            Self::Warn => LevelFilter::WARN,
            Self::Error => LevelFilter::ERROR,
        }
    }

    fn of(level: tracing::Level) -> Self {
        Self::ALL.into_iter().find(|known| known.filter() == level).unwrap_or(Self::Error)
    }
}

/// Something that happened, or was measured.
#[derive(Clone, Debug)]
pub enum Item {
    /// An event of the log.
    Event {
        /// Such as `lock.lost`; empty for one without a stable name.
        name: &'static str,
        /// Its level.
        level: Level,
        /// When it happened, in milliseconds since 1970.
        unix_ms: u64,
        /// The message for people.
        message: String,
        /// Its details: `resource`, `token` and so on; lengths of time are seconds.
        fields: Vec<(&'static str, Value)>,
    },
    /// One step of a counter, or one value of a histogram.
    Sample(Sample),
}

/// A field of an event.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// Text.
    Text(String),
    /// A number that is never negative, such as a token.
    Whole(u64),
    /// An integer.
    Signed(i64),
    /// A length of time in seconds, say.
    Number(f64),
    /// Yes or no.
    Flag(bool),
}

/// Items that were fetched.
#[derive(Clone, Debug, Default)]
pub struct Noted {
    /// In the order in which it was noted.
    pub items: Vec<Item>,
    /// The number of items that were dropped.
    pub dropped: u64,
}

/// A queue of events and samples, for one listener of the binding.
pub struct Desk {
    noted: Mutex<Noted>,
    ring: Box<dyn Fn() + Send + Sync>,
    /// As an index into [`Level::ALL`], whose end stands for no level at all.
    least: AtomicUsize,
    samples: AtomicBool,
}

/// Those that are open. A forked child has none: its parent's listeners are not there.
static OPEN: PerProcess<Mutex<Vec<Arc<Desk>>>> = PerProcess::new(|| Mutex::new(Vec::new()));
/// The least that any of them wants, as an index like [`Desk::least`].
static LEAST: AtomicUsize = AtomicUsize::new(Level::ALL.len());

impl Desk {
    /// One that wants to hear nothing yet. `ring` has the host call [`Desk::fetch`], soon and on a thread of its own; it must
    /// not wait.
    pub fn open(ring: impl Fn() + Send + Sync + 'static) -> Arc<Self> {
        let desk = Arc::new(Self {
            noted: Mutex::default(),
            ring: Box::new(ring),
            least: AtomicUsize::new(Level::ALL.len()),
            samples: AtomicBool::new(false),
        });
        OPEN.get().lock().push(Arc::clone(&desk));
        desk
    }

    /// From now on events of this level and above are noted here, none without a level; and samples of metrics if `samples`
    /// says so.
    pub fn want(&self, least: Option<Level>, samples: bool) {
        static INSTALLED: AtomicBool = AtomicBool::new(false);
        self.least.store(least.map_or(Level::ALL.len(), |least| least as usize), Ordering::Release);
        self.samples.store(samples, Ordering::Release);
        if least.is_some() && !INSTALLED.swap(true, Ordering::AcqRel) {
            // Nobody else is there to be asked.
            let _ = tracing::subscriber::set_global_default(Listener);
        }
        agree();
    }

    /// Takes what was noted. The next note rings again.
    pub fn fetch(&self) -> Noted {
        std::mem::take(&mut *self.noted.lock())
    }

    /// Nothing is noted here any more.
    pub fn close(&self) {
        OPEN.get().lock().retain(|open| !std::ptr::eq(&**open, self));
        agree();
    }

    fn wants(&self, level: Level) -> bool {
        level as usize >= self.least.load(Ordering::Acquire)
    }

    fn note(&self, item: Item) {
        let mut noted = self.noted.lock();
        if noted.items.len() >= MOST {
            noted.dropped += 1;
            return;
        }
        noted.items.push(item);
        let is_first = noted.items.len() == 1;
        drop(noted);
        if is_first {
            (self.ring)();
        }
    }
}

impl Debug for Desk {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Desk").finish_non_exhaustive()
    }
}

/// Has told what any desk wants, and no more.
fn agree() {
    let open = OPEN.get().lock();
    let least = open.iter().map(|desk| desk.least.load(Ordering::Acquire)).min().unwrap_or(Level::ALL.len());
    samples::want(open.iter().any(|desk| desk.samples.load(Ordering::Acquire)));
    // Before the next one looks around, whose answer is newer.
    let was = LEAST.swap(least, Ordering::AcqRel);
    drop(open);
    if was != least {
        tracing::callsite::rebuild_interest_cache();
    }
}

pub(super) fn note_sample(sample: &Sample) {
    for desk in OPEN.get().lock().iter().filter(|desk| desk.samples.load(Ordering::Acquire)) {
        desk.note(Item::Sample(sample.clone()));
    }
}

/// Takes the events of the client, and nobody else's.
struct Listener;

impl Listener {
    fn least() -> LevelFilter {
        Level::ALL.get(LEAST.load(Ordering::Acquire)).map_or(LevelFilter::OFF, |level| level.filter())
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
        let level = Level::of(*metadata.level());
        // An event without a name of its own is named after its place in the source.
        let name = if metadata.name().starts_with("event ") { "" } else { metadata.name() };
        let Parts { message, fields } = parts;
        let item = Item::Event { name, level, unix_ms: clock::now().unix_ms, message, fields };
        for desk in OPEN.get().lock().iter().filter(|desk| desk.wants(level)) {
            desk.note(item.clone());
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    /// The items of this test: others run beside it.
    fn told(desk: &Desk) -> Vec<String> {
        let name = |item| match item {
            Item::Event { name, .. } => name.to_owned(),
            Item::Sample(sample) => sample.name,
        };
        desk.fetch().items.into_iter().map(name).filter(|name| name.starts_with("test.")).collect()
    }

    #[test]
    fn each_desk_hears_what_it_wants_and_is_rung_for_once() {
        let rung = Arc::new(AtomicUsize::new(0));
        let rings = Arc::clone(&rung);
        let all = Desk::open(move || {
            rings.fetch_add(1, Ordering::Relaxed);
        });
        let some = Desk::open(|| {});
        let tell = || {
            tracing::info!(name: "test.granted", target: "leasehold", resource = "a", "granted");
            tracing::error!(name: "test.lost", target: "leasehold", resource = "a", "lost");
            tracing::error!(name: "test.theirs", target: "another", "of another library");
            metrics::counter!("test.total", "reason" => "expired").increment(1);
        };
        tell();
        assert!(told(&all).is_empty() && told(&some).is_empty());

        all.want(Some(Level::Info), true);
        some.want(Some(Level::Error), false);
        tell();
        assert_eq!(rung.load(Ordering::Relaxed), 1, "what is noted behind the first is found with it");
        assert_eq!(told(&all), ["test.granted", "test.lost", "test.total"]);
        assert_eq!(told(&some), ["test.lost"]);

        all.close();
        tell();
        assert!(told(&all).is_empty());
        assert_eq!(told(&some), ["test.lost"]);
        some.want(None, false);
        tell();
        assert!(told(&some).is_empty());
        some.close();
    }

    #[test]
    fn what_nobody_fetches_is_dropped_and_counted() {
        let desk = Desk::open(|| {});
        let sample = Sample { name: "n".into(), kind: "counter", value: 1.0, labels: Vec::new() };
        for _ in 0..MOST + 3 {
            desk.note(Item::Sample(sample.clone()));
        }
        let Noted { items, dropped } = desk.fetch();
        assert_eq!((items.len(), dropped), (MOST, 3));
        assert_eq!(desk.fetch().dropped, 0);
        desk.close();
    }
}
