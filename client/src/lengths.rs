//! Lengths of time that were most likely meant in a smaller unit, such as a period of 86,400,000 s.
//!
//! The Node package says the same about its milliseconds in `node/lib/lengths.cjs`.

use std::time::Duration;

use leasehold_core::config::MAX_KEEP;

const HOUR: Duration = Duration::from_secs(3600);
/// The longest that nobody doubts.
const YEAR: Duration = Duration::from_secs(366 * 24 * 3600);

/// The length that was meant, if this one is hardly a period, a cooldown or the time for which a completion stands: it is longer
/// than a year, and a thousandth of it is whole hours. Ten years are not doubted, nor is the longest `keep` that there is.
pub fn meant(length: Duration) -> Option<Duration> {
    let thousandth = length / 1000;
    let is_doubted = length > YEAR
        && length < MAX_KEEP
        && thousandth * 1000 == length
        && thousandth.as_nanos().is_multiple_of(HOUR.as_nanos());
    is_doubted.then_some(thousandth)
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: u64 = 24 * 3600;

    #[test]
    fn what_is_longer_than_a_year_and_was_whole_hours_of_a_smaller_unit_is_doubted() {
        for (secs, thousandth) in [(1000 * DAY, DAY), (7000 * DAY, 7 * DAY), (10_000 * 3600, 10 * 3600)] {
            assert_eq!(meant(Duration::from_secs(secs)), Some(Duration::from_secs(thousandth)), "{secs} s");
        }
        for secs in
            [0, 3600, 30 * DAY, 365 * DAY, 366 * DAY, 2 * 365 * DAY, 10 * 365 * DAY, 1000 * DAY + 1, 36_500 * DAY]
        {
            assert_eq!(meant(Duration::from_secs(secs)), None, "{secs} s");
        }
        assert_eq!(meant(Duration::MAX), None);
    }
}
