//! True time, which nothing in the simulated world can read, and the clocks that show an approximation of it.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Nanoseconds of true time since the world began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TrueTime(pub u64);

impl TrueTime {
    /// An instant that never comes.
    pub const FAR: Self = Self(u64::MAX);

    /// Later by `duration`; stops at [`TrueTime::FAR`].
    #[must_use]
    pub fn plus(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)))
    }

    /// Time from `earlier` until this instant; zero when `earlier` is later.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

/// A clock that runs at a rate of its own, and may be set or stopped. Its time is linear from the last change on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Clock {
    /// The excess of its rate over true time, in parts per million.
    rate_ppm: i32,
    stopped: bool,
    changed: TrueTime,
    showed: u64,
}

const PPM: u128 = 1_000_000;

impl Clock {
    /// Shows `showed` nanoseconds at the beginning of the world.
    pub const fn new(showed: u64, rate_ppm: i32) -> Self {
        Self { rate_ppm, stopped: false, changed: TrueTime(0), showed }
    }

    /// The time that it shows, in nanoseconds.
    pub fn shows(&self, at: TrueTime) -> u64 {
        if self.stopped {
            return self.showed;
        }
        let passed = u128::from(at.0.saturating_sub(self.changed.0));
        let shown = passed * self.parts() / PPM;
        self.showed.saturating_add(u64::try_from(shown).unwrap_or(u64::MAX))
    }

    /// The first instant at which it shows `shown` or more, unless it is changed before; `FAR` while it stands still.
    pub fn when(&self, shown: u64) -> TrueTime {
        if shown <= self.showed {
            return self.changed;
        }
        if self.stopped {
            return TrueTime::FAR;
        }
        let passed = (u128::from(shown - self.showed) * PPM).div_ceil(self.parts());
        TrueTime(self.changed.0.saturating_add(u64::try_from(passed).unwrap_or(u64::MAX)))
    }

    /// Runs at another rate from now on.
    pub fn set_rate(&mut self, at: TrueTime, rate_ppm: i32) {
        self.rebase(at);
        self.rate_ppm = rate_ppm;
    }

    /// Jumps by so many nanoseconds.
    pub fn jump(&mut self, at: TrueTime, by_ns: i64) {
        self.rebase(at);
        self.showed = self.showed.saturating_add_signed(by_ns);
    }

    /// Stands still from now on.
    pub fn stop(&mut self, at: TrueTime) {
        self.rebase(at);
        self.stopped = true;
    }

    /// Goes on after a stop.
    pub fn go_on(&mut self, at: TrueTime) {
        self.rebase(at);
        self.stopped = false;
    }

    fn rebase(&mut self, at: TrueTime) {
        self.showed = self.shows(at);
        self.changed = at;
    }

    fn parts(&self) -> u128 {
        u128::try_from(1_000_000_i64 + i64::from(self.rate_ppm)).unwrap_or(1).max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clock_when_is_the_first_instant_of_a_time() {
        for rate in [-10_000, 0, 1, 9_999, 100_000] {
            let clock = Clock::new(77, rate);
            for shown in [78, 1_000, 123_456_789, 60_000_000_000] {
                let at = clock.when(shown);
                assert!(clock.shows(at) >= shown && clock.shows(TrueTime(at.0 - 1)) < shown, "{rate} ppm, {shown}");
            }
        }
    }

    #[test]
    fn stopped_clock_resumes_where_it_stopped() {
        let mut clock = Clock::new(0, 0);
        clock.stop(TrueTime(100));
        assert_eq!((clock.shows(TrueTime(900)), clock.when(101)), (100, TrueTime::FAR));
        clock.go_on(TrueTime(1_000));
        assert_eq!((clock.shows(TrueTime(1_005)), clock.when(105)), (105, TrueTime(1_005)));
    }

    #[test]
    fn jumps_and_rates_change_a_clock() {
        let mut clock = Clock::new(1_000, 0);
        clock.jump(TrueTime(500), -400);
        assert_eq!(clock.shows(TrueTime(500)), 1_100);
        clock.set_rate(TrueTime(500), 100_000);
        assert_eq!(clock.shows(TrueTime(1_500)), 2_200);
    }
}
