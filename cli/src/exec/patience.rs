//! How long `exec` waits, from its start on, and whether a person who watches wants to know for what.

use std::io::{IsTerminal, stderr};
use std::time::Duration;

use leasehold::ffi;

/// Waits longer than this are announced.
const SHORT: Duration = Duration::from_secs(1);

pub(super) struct Patience {
    /// On the client's own clock.
    start_ns: u64,
    /// `None` is for ever.
    wait: Option<Duration>,
    /// Nobody watches a file or a pipe.
    is_watched: bool,
}

impl Patience {
    pub(super) fn start(wait: Option<Duration>) -> Self {
        Self { start_ns: ffi::clocks().0, wait, is_watched: stderr().is_terminal() }
    }

    /// The rest of the wait; `None` is for ever.
    pub(super) fn left(&self) -> Option<Duration> {
        self.wait.map(|wait| wait.saturating_sub(self.passed()))
    }

    fn passed(&self) -> Duration {
        Duration::from_nanos(ffi::clocks().0.saturating_sub(self.start_ns))
    }

    /// Set while the wait has yet to be explained.
    pub(super) fn is_long(&self) -> bool {
        self.is_watched && self.passed() >= SHORT
    }
}
