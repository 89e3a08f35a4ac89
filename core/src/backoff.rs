//! The sleep between tries: truncated exponential backoff with full jitter.
//!
//! Full jitter spreads waiters over the whole interval, so that they do not return in step (Brooker, "Exponential
//! Backoff And Jitter", 2015).

use core::time::Duration;

use crate::config::Ttl;
use crate::time::{fraction_of, retry_cap};

/// The bounds of a backoff.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Backoff {
    base: Duration,
    cap: Duration,
}

impl Backoff {
    /// For a lock held by somebody else, or a store that is down: 50 ms doubling to 2 s.
    pub const NORMAL: Self = Self { base: Duration::from_millis(50), cap: Duration::from_secs(2) };
    /// For a store that throttles: 200 ms doubling to 20 s.
    pub const THROTTLED: Self = Self { base: Duration::from_millis(200), cap: Duration::from_secs(20) };

    /// For a release without a definite answer: as [`Backoff::NORMAL`], but up to a sixth of the record's ttl.
    ///
    /// While a store is down every try of a waiter may leave such a release behind. The longer records stand, the more of
    /// them gather, so each of them must be slower to keep the load of all together the same.
    pub fn of_release(record_ttl: Duration) -> Self {
        Self { cap: Self::NORMAL.cap.max(record_ttl / 6), ..Self::NORMAL }
    }

    /// For a renewal that failed: a quarter of the longest pause, doubling to all of it; all of it at once if the store
    /// throttles.
    pub fn of_renewal(ttl: Ttl, throttled: bool) -> Self {
        let cap = retry_cap(ttl);
        Self { base: if throttled { cap } else { cap / 4 }, cap }
    }

    /// The pause before try number `tries`, as [`Backoff::sleep`], but at least three quarters of its longest: the first of
    /// many leases that wait for one node asks for all.
    pub fn steady(self, tries: u32, jitter: u32) -> Duration {
        let most = self.base.saturating_mul(1 << tries.min(20)).min(self.cap);
        most - fraction_of(most / 4, jitter)
    }

    /// The sleep before try number `tries` (0 for the first retry); `jitter` is a fraction of 2^32.
    ///
    /// Uniform from a tenth of the base, so that nobody spins, to `base * 2^tries`, at most the cap.
    pub fn sleep(self, tries: u32, jitter: u32) -> Duration {
        let least = self.base / 10;
        let most = self.base.saturating_mul(1 << tries.min(20)).min(self.cap);
        least + fraction_of(most - least, jitter)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sleep_grows_to_its_cap_and_is_never_zero() {
        let longest: [u128; 8] = core::array::from_fn(|n| Backoff::NORMAL.sleep(n as u32, u32::MAX).as_millis());
        assert_eq!(longest, [49, 99, 199, 399, 799, 1599, 1999, 1999]);
        assert_eq!(Backoff::NORMAL.sleep(60, 0), Duration::from_millis(5));
        assert_eq!(Backoff::THROTTLED.sleep(u32::MAX, u32::MAX).as_secs(), 19);
    }

    #[test]
    fn renewal_backoff_doubles_to_a_sixth_of_the_ttl() {
        let ttl = Ttl::new(Duration::from_secs(96)).unwrap();
        let pauses = |throttled| {
            let backoff = Backoff::of_renewal(ttl, throttled);
            core::array::from_fn(|n| {
                (backoff.steady(n as u32, 0).as_secs(), backoff.steady(n as u32, u32::MAX).as_millis())
            })
        };
        assert_eq!(pauses(false), [(4, 3000), (8, 6000), (16, 12000), (16, 12000), (16, 12000)]);
        assert_eq!(pauses(true), [(16, 12000); 5]);
    }

    #[test]
    fn release_backoff_grows_with_the_record_ttl() {
        let longest = |ttl| Backoff::of_release(Duration::from_secs(ttl)).sleep(u32::MAX, u32::MAX).as_secs();
        assert_eq!([1, 12, 60, 86_400].map(longest), [1, 1, 9, 14_399]);
        assert_eq!(Backoff::of_release(Duration::from_secs(60)).sleep(0, u32::MAX).as_millis(), 49, "at first at once");
    }
}
