//! The wait of `exec` for the lock, and when it is reported to people and logs.

use std::cell::Cell;
use std::io::{IsTerminal, stderr};
use std::time::Duration;

use leasehold::ffi;

/// The first report at a terminal.
const SHORT: Duration = Duration::from_secs(1);

pub(super) struct Patience {
    /// By the client's own clock.
    start_ns: u64,
    /// `None` waits forever.
    wait: Option<Duration>,
    /// The length of the wait at its next report.
    tell_at: Cell<Duration>,
}

impl Patience {
    pub(super) fn start(wait: Option<Duration>) -> Self {
        let first = if stderr().is_terminal() { SHORT } else { ffi::wait_told_after(Duration::ZERO) };
        Self { start_ns: ffi::clocks().0, wait, tell_at: Cell::new(first) }
    }

    /// The rest of the wait; `None` is forever.
    pub(super) fn left(&self) -> Option<Duration> {
        self.wait.map(|wait| wait.saturating_sub(self.passed()))
    }

    /// How long it has lasted.
    pub(super) fn passed(&self) -> Duration {
        Duration::from_nanos(ffi::clocks().0.saturating_sub(self.start_ns))
    }

    /// True when the wait has to be reported: once after a while, and then ever more seldom.
    pub(super) fn is_due(&self) -> bool {
        let passed = self.passed();
        let is_due = passed >= self.tell_at.get();
        if is_due {
            self.tell_at.set(ffi::wait_told_after(passed));
        }
        is_due
    }
}
