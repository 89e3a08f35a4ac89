//! Attempts to connect: how long one is awaited, and the pauses after failures, each twice as long as the last.

use std::time::Duration;

#[cfg(feature = "network")]
use leasehold_core::op::Op;
#[cfg(feature = "network")]
use leasehold_core::time::another_connection_after;
#[cfg(feature = "network")]
use leasehold_core::{Monotonic, Transmit};
#[cfg(feature = "network")]
use tokio::sync::watch;

#[cfg(feature = "network")]
use crate::host::clock;

/// The pauses after consecutive failures; a success starts them again.
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

/// The time limit for a connection, greeting included.
#[cfg(feature = "network")]
pub(super) const CONNECT_PATIENCE: Duration = Duration::from_secs(5);

/// How long this request leaves an attempt to connect alone, before it begins another one: leases must not be lost for want of a
/// second attempt.
#[cfg(feature = "network")]
pub(super) fn patience(request: &Transmit) -> Duration {
    let ttls = request.ops.iter().filter_map(|op| match &op.op {
        Op::Acquire(acquire) => Some(acquire.record_ttl),
        Op::Renew(renew) => Some(renew.record_ttl),
        Op::Release(_) | Op::Finish(_) | Op::Raise(_) | Op::Revoke(_) | Op::Tell(_) | Op::Read => None,
    });
    another_connection_after(ttls.min().unwrap_or(CONNECT_PATIENCE * 4), CONNECT_PATIENCE)
}

/// An attempt to connect that is under way, and when it began.
#[cfg(feature = "network")]
pub(super) struct UnderWay<T> {
    done: watch::Receiver<Option<T>>,
    began: Monotonic,
}

#[cfg(feature = "network")]
impl<T> UnderWay<T> {
    pub(super) fn since_now(done: watch::Receiver<Option<T>>) -> Self {
        Self { done, began: clock::monotonic() }
    }

    /// Its result to come; `None` if it takes too long, or if the runtime that was making it may be gone.
    pub(super) fn awaited(&self, patience: Duration) -> Option<watch::Receiver<Option<T>>> {
        let is_young = clock::monotonic().since(self.began) < patience;
        (is_young && self.done.has_changed().is_ok()).then(|| self.done.clone())
    }

    /// Tells if this is the attempt.
    pub(super) fn is(&self, done: &watch::Receiver<Option<T>>) -> bool {
        self.done.same_channel(done)
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
    fn an_attempt_is_awaited_for_as_long_as_a_lease_allows() {
        let (done, receiver) = watch::channel(None::<()>);
        let attempt = UnderWay::since_now(receiver);
        assert!(attempt.awaited(Duration::from_secs(60)).is_some());
        assert!(attempt.awaited(Duration::ZERO).is_none(), "another one is begun");
        drop(done);
        assert!(attempt.awaited(Duration::from_secs(60)).is_none(), "nobody makes it any more");
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
