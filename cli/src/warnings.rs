//! Warnings of the client while it connects, on stderr.

use leasehold::ffi::{EventSubscriber, LogEvent};
use tracing::Metadata;
use tracing::level_filters::LevelFilter;

use crate::output::say;

/// Runs `work`, and prints the warnings of leasehold meanwhile. Only for this call: a program that offers the command
/// keeps its own log.
pub(crate) fn said<T>(work: impl FnOnce() -> T) -> T {
    let print = |_: &Metadata<'_>, event: LogEvent| say(event.message);
    tracing::subscriber::with_default(EventSubscriber::new(|| LevelFilter::WARN, print), work)
}
