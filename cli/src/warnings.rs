//! Warnings of the client while it connects, on stderr.

use leasehold::ffi::{EventSubscriber, LogEvent};
use tracing::level_filters::LevelFilter;
use tracing::{Level, Metadata};

use crate::output::say;

/// The event that tells which file a relative path is. A program has its log for that.
const RELATIVE: &str = "store.relative";

/// Runs `work`, and prints the warnings of leasehold meanwhile, and which file a relative path is. Only for this call: a program that offers the command
/// keeps its own log.
pub(crate) fn said<T>(work: impl FnOnce() -> T) -> T {
    let print = |metadata: &Metadata<'_>, event: LogEvent| {
        if *metadata.level() <= Level::WARN || metadata.name() == RELATIVE {
            say(event.message);
        }
    };
    tracing::subscriber::with_default(EventSubscriber::new(|| LevelFilter::INFO, print), work)
}
