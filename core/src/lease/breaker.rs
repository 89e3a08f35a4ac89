//! The circuit breaker of a node: while the node fails, one request at a time tests whether it is back.
//!
//! The leases of a client share it. Otherwise each lease would try again by itself, and a node that is down or throttles
//! would get far more requests than one that serves.

use crate::time::Monotonic;

/// The circuit breaker of one node, for renewals; open while there are failures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub(crate) struct CircuitBreaker {
    /// Requests in a row that the node did not serve.
    failures: u32,
    /// When the last of them failed.
    failed_at: Monotonic,
    throttled: bool,
    probe: Option<Probe>,
}

/// The request that tests whether the node is back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Probe {
    sent: Monotonic,
    /// It has failed by then.
    until: Monotonic,
    renewals: usize,
}

impl CircuitBreaker {
    /// The number of requests in a row that the node did not serve.
    pub(crate) fn failures(&self) -> u32 {
        self.failures
    }

    pub(crate) fn failed_at(&self) -> Monotonic {
        self.failed_at
    }

    pub(crate) fn is_throttled(&self) -> bool {
        self.throttled
    }

    /// Notes that the node has answered, with any answer.
    pub(crate) fn served(&mut self) {
        *self = Self::default();
    }

    /// Notes that the node did not serve a request. Requests that left before an earlier one failed say nothing new.
    pub(crate) fn failed(&mut self, sent: Monotonic, now: Monotonic, throttled: bool) {
        self.probe = None;
        if self.failures == 0 || sent > self.failed_at {
            self.failures = self.failures.saturating_add(1);
            (self.failed_at, self.throttled) = (now, throttled);
        }
    }

    /// Lets a request leave now, or returns when to ask again. `retry_at` is when this lease would try, `until` when the
    /// request will have failed, and `batch` the number of renewals that fit into one request.
    pub(crate) fn admit(
        &mut self,
        now: Monotonic,
        retry_at: Monotonic,
        until: Monotonic,
        batch: usize,
    ) -> Result<(), Monotonic> {
        if self.failures == 0 {
            return Ok(());
        }
        match &mut self.probe {
            Some(probe) if probe.sent == now && probe.renewals < batch => probe.renewals += 1,
            Some(probe) if probe.until > now => return Err(probe.until),
            Some(_) | None if retry_at > now => return Err(retry_at),
            Some(_) | None => self.probe = Some(Probe { sent: now, until, renewals: 1 }),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ns: u64) -> Monotonic {
        Monotonic::from_ns(ns)
    }

    #[test]
    fn open_breaker_admits_one_request_at_a_time() {
        let mut node = CircuitBreaker::default();
        assert_eq!(node.admit(at(0), at(9), at(9), 1), Ok(()), "a node that serves is asked at any time");
        node.failed(at(10), at(20), false);
        assert_eq!(node.admit(at(21), at(30), at(40), 2), Err(at(30)), "not before its pause is over");
        assert_eq!(node.admit(at(30), at(30), at(40), 2), Ok(()));
        assert_eq!(node.admit(at(30), at(35), at(40), 2), Ok(()), "what fits into the same request may come along");
        assert_eq!(node.admit(at(30), at(30), at(40), 2), Err(at(40)));
        assert_eq!(node.admit(at(39), at(30), at(49), 2), Err(at(40)), "while it is under way");
        assert_eq!(node.admit(at(40), at(30), at(50), 2), Ok(()), "its end was not reported");
        node.served();
        assert_eq!(node.admit(at(41), at(99), at(99), 1), Ok(()));
    }

    #[test]
    fn concurrent_requests_count_as_one_failure() {
        let mut node = CircuitBreaker::default();
        node.failed(at(10), at(20), true);
        node.failed(at(11), at(21), false);
        node.failed(at(20), at(22), false);
        assert_eq!((node.failures(), node.failed_at(), node.is_throttled()), (1, at(20), true));
        node.failed(at(21), at(30), false);
        assert_eq!((node.failures(), node.failed_at(), node.is_throttled()), (2, at(30), false));
    }
}
