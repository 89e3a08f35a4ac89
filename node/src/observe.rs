//! The client's events, on their way to observers in JavaScript.

use std::sync::Arc;

use leasehold::ffi::observe::{EventQueue, Fetched as Queued, Item, Level, Value as Field};
use napi::bindgen_prelude::Function;
use napi::threadsafe_function::{ThreadsafeFunction, ThreadsafeFunctionCallMode};
use napi::{Result, Status};
use napi_derive::napi;

use crate::value::Value;

const LEVELS: [(Level, &str); 5] = [
    (Level::Trace, "trace"),
    (Level::Debug, "debug"),
    (Level::Info, "info"),
    (Level::Warn, "warn"),
    (Level::Error, "error"),
];

/// The observers of one event loop, for all clients of the process.
#[napi]
pub struct Observation(Arc<EventQueue>);

#[napi]
impl Observation {
    /// `ring` is called on the loop when there are items to [`Observation::fetch`]. This does not keep the process alive.
    #[napi(constructor, catch_unwind)]
    pub fn new(ring: Function<'_, (), ()>) -> Result<Self> {
        type Call = ThreadsafeFunction<(), (), (), Status, false, true>;
        let call: Call = ring.build_threadsafe_function::<()>().callee_handled::<false>().weak::<true>().build()?;
        // Once the loop has ended there is nothing to notify.
        Ok(Self(EventQueue::open(move || {
            call.call((), ThreadsafeFunctionCallMode::NonBlocking);
        })))
    }

    /// Sets the least level of events, or none without one, and turns samples on or off.
    #[napi(catch_unwind)]
    pub fn want(&self, level: Option<String>, samples: bool) {
        let level = level.and_then(|name| LEVELS.iter().find(|(_, known)| **known == *name));
        self.0.want(level.map(|(level, _)| *level), samples);
    }

    /// The items since the last call, as objects, and the number of items that were dropped.
    #[napi(catch_unwind)]
    pub fn fetch(&self) -> Fetched {
        let Queued { items, dropped } = self.0.fetch();
        // The number of drops never comes near 2^53.
        #[expect(clippy::cast_precision_loss, reason = "as above")]
        let dropped = dropped as f64;
        Fetched { items: items.into_iter().map(shown).collect(), dropped }
    }
}

impl Drop for Observation {
    fn drop(&mut self) {
        self.0.close();
    }
}

/// Items that were fetched.
#[napi(object, object_from_js = false)]
pub struct Fetched {
    /// Events, which have a `level`, and samples, which have a `kind`.
    pub items: Vec<Value>,
    /// The number of items that were dropped.
    pub dropped: f64,
}

fn shown(item: Item) -> Value {
    let text = |text: &str| Value::Text(text.to_owned());
    let properties = match item {
        Item::Event { name, level, unix_ms, message, fields } => {
            let level = LEVELS.iter().find(|(known, _)| *known == level).map_or("error", |(_, name)| *name);
            let fields = fields.into_iter().map(|(name, field)| (name.to_owned(), plain(field))).collect();
            vec![
                ("event".to_owned(), text(name)),
                ("level".to_owned(), text(level)),
                ("time".to_owned(), number(unix_ms)),
                ("message".to_owned(), Value::Text(message)),
                ("fields".to_owned(), Value::Object(fields)),
            ]
        }
        Item::Sample(sample) => {
            let labels = sample.labels.into_iter().map(|(name, value)| (name, Value::Text(value))).collect();
            vec![
                ("name".to_owned(), Value::Text(sample.name)),
                ("kind".to_owned(), text(sample.kind)),
                ("value".to_owned(), Value::Number(sample.value)),
                ("labels".to_owned(), Value::Object(labels)),
            ]
        }
    };
    Value::Object(properties)
}

fn plain(field: Field) -> Value {
    match field {
        Field::Text(text) => Value::Text(text),
        Field::Whole(whole) => number(whole),
        #[expect(clippy::cast_precision_loss, reason = "the client tells of nothing that large")]
        Field::Signed(signed) => Value::Number(signed as f64),
        Field::Number(number) => Value::Number(number),
        Field::Flag(flag) => Value::Flag(flag),
    }
}

/// Tokens and times are below 2^53.
#[expect(clippy::cast_precision_loss, reason = "as above")]
fn number(whole: u64) -> Value {
    Value::Number(whole as f64)
}
