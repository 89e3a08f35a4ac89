//! Pauses between attempts after failures, each twice as long as the last.

use std::time::Duration;

#[cfg(feature = "network")]
use leasehold_core::Monotonic;

#[cfg(feature = "network")]
use crate::clock;

/// The pauses after consecutive failures; a success starts them anew.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pauses {
    longest: Duration,
    next: Duration,
}

impl Pauses {
    /// The pauses between attempts to connect.
    pub(super) const CONNECTING: Self = Self::new(Duration::from_millis(20), Duration::from_secs(1));

    pub(crate) const fn new(first: Duration, longest: Duration) -> Self {
        Self { longest, next: first }
    }

    /// The pause after another failure.
    pub(crate) fn next(&mut self) -> Duration {
        let pause = self.next;
        self.next = self.longest.min(pause * 2);
        pause
    }
}

/// The result of the last attempt to connect.
#[cfg(feature = "network")]
#[derive(Debug)]
pub(super) struct LastAttempt<W> {
    pauses: Pauses,
    failed: Option<(W, Monotonic)>,
}

#[cfg(feature = "network")]
impl<W> Default for LastAttempt<W> {
    fn default() -> Self {
        Self { pauses: Pauses::CONNECTING, failed: None }
    }
}

#[cfg(feature = "network")]
impl<W: Clone> LastAttempt<W> {
    /// The last error, as long as its pause lasts; `None` after it, and after a success.
    pub(super) fn forbids_another(&self) -> Option<W> {
        self.failed.as_ref().filter(|(_, until)| clock::monotonic() < *until).map(|(why, _)| why.clone())
    }

    pub(super) fn succeeded(&mut self) {
        *self = Self::default();
    }

    pub(super) fn failed(&mut self, why: W) {
        self.failed = Some((why, clock::monotonic().plus(self.pauses.next())));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_the_longest() {
        let mut pauses = Pauses::new(Duration::from_millis(20), Duration::from_millis(70));
        assert_eq!(
            [pauses.next(), pauses.next(), pauses.next(), pauses.next()].map(|p| p.as_millis()),
            [20, 40, 70, 70]
        );
    }

    #[cfg(feature = "network")]
    #[test]
    fn a_failure_is_repeated_until_its_pause_is_over() {
        let mut last =
            LastAttempt { pauses: Pauses::new(Duration::from_secs(60), Duration::from_secs(60)), failed: None };
        assert_eq!(last.forbids_another(), None);
        last.failed("refused");
        assert_eq!(last.forbids_another(), Some("refused"));
        last.succeeded();
        assert_eq!(last.forbids_another(), None);
        last.pauses = Pauses::new(Duration::ZERO, Duration::ZERO);
        last.failed("refused");
        assert_eq!(last.forbids_another(), None, "the pause is over at once");
    }
}
