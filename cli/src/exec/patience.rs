//! The wait of `exec` for the lock, and its announcement to people at a terminal.

use std::io::{IsTerminal, stderr};
use std::time::Duration;

use leasehold::ffi;

/// Waits longer than this are announced.
const SHORT: Duration = Duration::from_secs(1);

pub(super) struct Patience {
    /// By the client's own clock.
    start_ns: u64,
    /// `None` waits for ever.
    wait: Option<Duration>,
    /// False for a file or a pipe.
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

    /// True while the wait has not been announced.
    pub(super) fn is_long(&self) -> bool {
        self.is_watched && self.passed() >= SHORT
    }
}
