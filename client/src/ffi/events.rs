//! The client's log events, without the machinery of `tracing`.

use std::fmt::{Debug, Write as _};

use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

/// An event of the client.
#[derive(Debug, Default)]
pub struct LogEvent {
    /// The message for people.
    pub message: String,
    /// Its details: `resource`, `token` and so on; lengths of time are seconds.
    pub fields: Vec<(&'static str, Value)>,
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
    /// A length of time in seconds, for example.
    Number(f64),
    /// Yes or no.
    Flag(bool),
}

/// A subscriber of `tracing` that passes the client's events on, and ignores spans and other libraries.
#[derive(Debug)]
pub struct EventSubscriber<L, F> {
    most: L,
    handle: F,
}

impl<L, F> EventSubscriber<L, F>
where
    L: Fn() -> LevelFilter + 'static,
    F: Fn(&Metadata<'static>, LogEvent) + 'static,
{
    /// Calls `handle` for each event up to the level `most`.
    pub const fn new(most: L, handle: F) -> Self {
        Self { most, handle }
    }
}

impl<L, F> Subscriber for EventSubscriber<L, F>
where
    L: Fn() -> LevelFilter + 'static,
    F: Fn(&Metadata<'static>, LogEvent) + 'static,
{
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        let is_ours = metadata.target().split("::").next() == Some("leasehold");
        metadata.is_event() && is_ours && *metadata.level() <= (self.most)()
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some((self.most)())
    }

    fn event(&self, event: &Event<'_>) {
        let mut seen = LogEvent::default();
        event.record(&mut seen);
        (self.handle)(event.metadata(), seen);
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

impl Visit for LogEvent {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        let mut text = String::new();
        // Writing to a text does not fail.
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
