//! A queue of the client's events and metrics, for loggers and observers in another language.
//!
//! The threads of the client put events and samples into bounded lists, and wait for nobody: not for an interpreter,
//! and not for handlers of logging. The binding is notified, and fetches the list on a thread of its own.
//!
//! This is for a library that is loaded into another process and belongs to the binding alone: the first [`EventQueue`]
//! that wants something becomes the global subscriber of `tracing` and recorder of `metrics`.

use std::fmt::Debug;
use std::io::Write as _;

use tracing::level_filters::LevelFilter;
use tracing::{Dispatch, Metadata, dispatcher};

use super::events::{EventSubscriber, LogEvent};
use super::samples;
use crate::client::Client;
use crate::connect::ClientBuilder;
use crate::error::Error;
use crate::host::fork::PerProcess;
use crate::host::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use crate::host::sync::{Arc, Mutex};
use crate::host::time::Time;
use crate::stores::Stores;

pub use super::events::Value;
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

/// Items that were fetched.
#[derive(Clone, Debug, Default)]
pub struct Fetched {
    /// In the order of their arrival.
    pub items: Vec<Item>,
    /// The number of items that were dropped.
    pub dropped: u64,
}

/// A queue of events and samples, for one listener of the binding.
pub struct EventQueue {
    items: Mutex<Fetched>,
    notify: Box<dyn Fn() + Send + Sync>,
    /// An index into [`Level::ALL`]; its end stands for no level.
    least: AtomicUsize,
    samples: AtomicBool,
}

/// The open queues. A forked child has none, because it has none of its parent's listeners.
static OPEN: PerProcess<Mutex<Vec<Arc<EventQueue>>>> = PerProcess::new(|| Mutex::new(Vec::new()));
/// The least level that any of them wants, as an index like [`EventQueue::least`].
static LEAST: AtomicUsize = AtomicUsize::new(Level::ALL.len());

/// A client was made by [`connect`].
static IS_BOUND: AtomicBool = AtomicBool::new(false);

impl EventQueue {
    /// Opens a queue that wants nothing yet. `notify` makes the binding call [`EventQueue::fetch`], soon and on a thread of
    /// its own. It must not block.
    pub fn open(notify: impl Fn() + Send + Sync + 'static) -> Arc<Self> {
        let queue = Arc::new(Self {
            items: Mutex::default(),
            notify: Box::new(notify),
            least: AtomicUsize::new(Level::ALL.len()),
            samples: AtomicBool::new(false),
        });
        OPEN.get().lock().push(Arc::clone(&queue));
        queue
    }

    /// Sets the least level of events, or none, and turns samples of metrics on or off.
    pub fn want(&self, least: Option<Level>, samples: bool) {
        static INSTALLED: AtomicBool = AtomicBool::new(false);
        self.least.store(least.map_or(Level::ALL.len(), |least| least as usize), Ordering::Release);
        self.samples.store(samples, Ordering::Release);
        if least.is_some() && !INSTALLED.swap(true, Ordering::AcqRel) {
            // Fails if the process has another subscriber; but what is linked into a binding belongs to it alone.
            let _ = tracing::subscriber::set_global_default(EventSubscriber::new(least_level, note_event));
        }
        agree();
    }

    /// Takes all items. The next item notifies the binding again.
    pub fn fetch(&self) -> Fetched {
        std::mem::take(&mut *self.items.lock())
    }

    /// Closes the queue: it gets no more items.
    pub fn close(&self) {
        OPEN.get().lock().retain(|open| !std::ptr::eq(&**open, self));
        agree();
    }

    fn wants(&self, level: Level) -> bool {
        level as usize >= self.least.load(Ordering::Acquire)
    }

    fn note(&self, item: Item) {
        let mut queued = self.items.lock();
        if queued.items.len() >= MOST {
            queued.dropped += 1;
            return;
        }
        queued.items.push(item);
        let is_first = queued.items.len() == 1;
        drop(queued);
        if is_first {
            (self.notify)();
        }
    }
}

impl Debug for EventQueue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EventQueue").finish_non_exhaustive()
    }
}

/// Tells `tracing` and the recorder what any queue wants.
fn agree() {
    let open = OPEN.get().lock();
    let least = open.iter().map(|queue| queue.least.load(Ordering::Acquire)).min().unwrap_or(Level::ALL.len());
    samples::want(open.iter().any(|queue| queue.samples.load(Ordering::Acquire)));
    // Before another thread computes a newer value.
    let was = LEAST.swap(least, Ordering::AcqRel);
    drop(open);
    if was != least {
        tracing::callsite::rebuild_interest_cache();
    }
}

/// See [`ClientBuilder::connect`]. The texts are warnings about the stores, where no queue wants events of any level: the
/// binding shows them in the way of its language.
///
/// # Errors
/// As there.
pub fn connect(builder: ClientBuilder, stores: impl Stores) -> Result<(Client, Vec<String>), Error> {
    IS_BOUND.store(true, Ordering::Relaxed);
    if least_level() != LevelFilter::OFF {
        return Ok((builder.open(&stores.urls()?, Time::System)?, Vec::new()));
    }
    let unheard = Arc::new(Mutex::new(Vec::new()));
    let into = Arc::clone(&unheard);
    let log = EventSubscriber::new(|| LevelFilter::WARN, move |_, event| into.lock().push(event.message));
    let client = dispatcher::with_default(&Dispatch::new(log), || builder.open(&stores.urls()?, Time::System))?;
    let unheard = std::mem::take(&mut *unheard.lock());
    Ok((client, unheard))
}

/// As [`connect`], on a thread of its own.
///
/// # Errors
/// As there.
pub async fn connect_async(
    builder: ClientBuilder,
    stores: impl Stores + Send + 'static,
) -> Result<(Client, Vec<String>), Error> {
    Time::System.offload(move || connect(builder, stores)).await?
}

/// Bindings write it to stderr where nobody has asked for events yet: a program without a log would wait without a word. Programs
/// in Rust have a log or none.
pub(crate) fn tell_unobserved(message: &str) {
    if IS_BOUND.load(Ordering::Relaxed) && OPEN.get().lock().is_empty() {
        // One write, so that lines of others stay whole. A closed stderr is nobody's.
        let _ = std::io::stderr().write_all(format!("leasehold: {message}\n").as_bytes());
    }
}

pub(super) fn note_sample(sample: &Sample) {
    for queue in OPEN.get().lock().iter().filter(|queue| queue.samples.load(Ordering::Acquire)) {
        queue.note(Item::Sample(sample.clone()));
    }
}

/// The least level that any queue wants.
fn least_level() -> LevelFilter {
    Level::ALL.get(LEAST.load(Ordering::Acquire)).map_or(LevelFilter::OFF, |level| level.filter())
}

fn note_event(metadata: &Metadata<'static>, event: LogEvent) {
    let level = Level::of(*metadata.level());
    // An event without a name of its own is named after its place in the source.
    let name = if metadata.name().starts_with("event ") { "" } else { metadata.name() };
    let LogEvent { message, fields } = event;
    let item = Item::Event { name, level, unix_ms: Time::System.now().unix_ms, message, fields };
    for queue in OPEN.get().lock().iter().filter(|queue| queue.wants(level)) {
        queue.note(item.clone());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The items of this test: others run beside it.
    fn told(queue: &EventQueue) -> Vec<String> {
        let name = |item| match item {
            Item::Event { name, .. } => name.to_owned(),
            Item::Sample(sample) => sample.name,
        };
        queue.fetch().items.into_iter().map(name).filter(|name| name.starts_with("test.")).collect()
    }

    #[test]
    fn a_queue_gets_what_it_wants_and_notifies_once() {
        let rung = Arc::new(AtomicUsize::new(0));
        let rings = Arc::clone(&rung);
        let all = EventQueue::open(move || {
            rings.fetch_add(1, Ordering::Relaxed);
        });
        let some = EventQueue::open(|| {});
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
        assert_eq!(rung.load(Ordering::Relaxed), 1, "later items are fetched with the first");
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
    fn items_beyond_the_limit_are_dropped_and_counted() {
        let queue = EventQueue::open(|| {});
        let sample = Sample { name: "n".into(), kind: "counter", value: 1.0, labels: Vec::new() };
        for _ in 0..MOST + 3 {
            queue.note(Item::Sample(sample.clone()));
        }
        let Fetched { items, dropped } = queue.fetch();
        assert_eq!((items.len(), dropped), (MOST, 3));
        assert_eq!(queue.fetch().dropped, 0);
        queue.close();
    }
}
