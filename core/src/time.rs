//! Every formula about time, and the instants it works on.
//!
//! A clock's *rate* may be wrong by at most the [`Drift`] rho; offsets between clocks do not matter. All margins are
//! rounded so that a holder stops earlier and an observer waits longer, never the other way.

use core::time::Duration;

use crate::config::ttl::{Drift, Ttl};

/// The embedder's monotonic clock in nanoseconds; it must go on counting while the machine is suspended.
///
/// Only differences mean anything. On Linux this is `CLOCK_BOOTTIME`; a clock that stops in suspend breaks the
/// promise of one holder at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Monotonic(u64);

impl Monotonic {
    /// An instant that never comes.
    pub const FAR: Self = Self(u64::MAX);

    /// From nanoseconds.
    pub const fn from_ns(ns: u64) -> Self {
        Self(ns)
    }

    /// Nanoseconds.
    pub const fn ns(self) -> u64 {
        self.0
    }

    /// Later by `duration`; stops at [`Monotonic::FAR`].
    pub fn plus(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(ns(duration)))
    }

    /// Time from `earlier` until this instant; zero when `earlier` is later.
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

/// The embedder's clocks, sampled after the last input was read and before the first output is performed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Now {
    /// Decides everything about validity. A value below an earlier one counts as that earlier one.
    pub monotonic: Monotonic,
    /// Milliseconds since 1970, for token floors and readable records only; never for validity.
    pub unix_ms: u64,
}

const MARGIN: Duration = Duration::from_millis(2);
const PPM: u128 = 1_000_000;

/// The end of a lease's validity for its holder: `sent + ttl - (2 rho ttl + 2 ms)`.
///
/// `sent` was sampled *before* the request could leave. Two rho, because the holder's clock may run slow while the
/// store's or an observer's runs fast; 2 ms for clocks that count in whole milliseconds.
pub fn deadline_of(sent: Monotonic, ttl: Ttl, drift: Drift) -> Monotonic {
    let ttl_ns = u128::from(ns(ttl.get()));
    let margin = 2_u128.saturating_mul(share_up(ttl_ns, drift)).saturating_add(u128::from(ns(MARGIN)));
    sent.plus(from_ns(ttl_ns.saturating_sub(margin)))
}

/// The writer of a record under observation, which decides about its margins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Format {
    /// Leasehold: its holder stops early.
    Leasehold,
    /// Another library, whose holder may go on for the whole ttl by its own clock.
    Foreign,
}

/// When a record that has shown the same version since `seen` may be taken over.
///
/// `seen` is the clock **after** the reply that showed the record arrived; `ttl` is the one written in the record.
/// `ttl (1 + rho)` for our own format, `ttl (1 + rho) / (1 - rho) + 2 ms` for others.
pub fn observed_until(seen: Monotonic, ttl: Duration, drift: Drift, format: Format) -> Monotonic {
    match format {
        Format::Leasehold => {
            let ttl_ns = u128::from(ns(ttl));
            seen.plus(from_ns(ttl_ns.saturating_add(share_up(ttl_ns, drift))))
        }
        Format::Foreign => seen.plus(worst_case(ttl, drift).saturating_add(MARGIN)),
    }
}

/// The first sight of a version so long `ago`, which an earlier process of this machine has noted: the margins of
/// [`observed_until`] apply to all of the time since. `ago` is measured by this clock, so it is never before its start.
pub fn first_sight(now: Monotonic, ago: Duration) -> Monotonic {
    Monotonic(now.0.saturating_sub(ns(ago)))
}

/// The longest pause between two looks at a record that is watched: a twelfth of its ttl. A holder renews every third of that,
/// so it is seen to live soon after it has renewed.
pub fn look_again(record_ttl: Duration) -> Duration {
    record_ttl / 12
}

/// The longest time that a record may stand in the way after its holder died, in true time:
/// `(ttl + lock_delay) (1 + rho) / (1 - rho)`.
pub fn takeover_bound(ttl: Ttl, lock_delay: Duration, drift: Drift) -> Duration {
    worst_case(ttl.get().saturating_add(lock_delay), drift)
}

/// The time for which a node of a quorum abstains that may have lost its data, counted from the reply that showed it:
/// `max_ttl (1 + rho) / (1 - rho) + 1 s`. By then, every lease that it granted before has expired, by any
/// clock within the drift.
pub fn abstention(max_ttl: Duration, drift: Drift) -> Duration {
    worst_case(max_ttl, drift).saturating_add(Duration::from_secs(1))
}

/// How long a waiter sleeps that found the lock reserved for another, with `left` to go: until then, and 1 to 20 ms more. The
/// further behind it stands, the longer it may be, by 10 ms for each place, up to 100 ms: so those behind do not all ask at the same instant,
/// and one who does not take its turn still costs no more than 600 ms, however many of them there are. At most 2 s.
///
/// `place` counts from 1, and `jitter` is a fraction of 2^32.
pub fn after_reservation(left: Duration, place: u64, jitter: u32) -> Duration {
    const LONGEST: Duration = Duration::from_secs(2);
    const SHORTEST: Duration = Duration::from_millis(1);
    let widest = place.saturating_mul(10).saturating_add(10).min(100);
    let spread = fraction_of(Duration::from_millis(widest).saturating_sub(SHORTEST), jitter);
    left.saturating_add(SHORTEST).saturating_add(spread).min(LONGEST)
}

/// How long a client stays out of the queue for a lock after it saw a holder of another library there: 60 s. Such a holder does not
/// stand in the queue, and a lock that goes from hand to hand is never free for it.
pub const AWAY_FROM_QUEUE: Duration = Duration::from_secs(60);

/// How long a lock that passes from hand to hand is free for others, and how often: 50 ms, every 5 s. Libraries that poll for it get in
/// there, and nowhere else.
pub const OPEN_FOR: Duration = Duration::from_millis(50);
/// How long a lock passes from hand to hand before it is free for [`OPEN_FOR`]: 5 s.
pub const OPEN_EVERY: Duration = Duration::from_secs(5);
/// Hand-overs that are further apart than this do not keep anybody out: 60 s.
pub const OPEN_WITHIN: Duration = Duration::from_secs(60);

/// The next report of a wait that began then, if the last one came after `told`: once it has lasted for 5 s, and whenever it has
/// lasted twice as long as the last time. Zero stands for a wait that was not reported yet.
pub fn wait_told_at(began: Monotonic, told: Duration) -> Monotonic {
    began.plus(SILENT_WAIT.max(told.saturating_mul(2)))
}

/// Waits that are no longer than this are not reported: 5 s.
pub const SILENT_WAIT: Duration = Duration::from_secs(5);

/// When to renew a node's lease: `every` after the send that was confirmed, earlier by up to a quarter of it.
///
/// `jitter` is a fraction of 2^32; without it, leases taken together would be renewed together forever.
pub fn renew_at(sent: Monotonic, every: Duration, jitter: u32) -> Monotonic {
    sent.plus(every.saturating_sub(fraction_of(every / 4, jitter)))
}

/// Renewal interval where none is set: a third of the ttl, so that two more tries fit before the lease is in danger.
pub fn default_renew_every(ttl: Ttl) -> Duration {
    ttl.get() / 3
}

/// The time to wait for one reply: a sixth of the ttl, at most `cap`.
pub fn request_timeout(ttl: Ttl, cap: Duration) -> Duration {
    cap.min(ttl.get() / 6)
}

/// How long an attempt to connect is awaited before another is begun beside it, which asks again where to go: a quarter of the
/// record's ttl, at most `cap`, at least a thirty-second of that.
///
/// The renewal that finds the connection dead comes a third of the ttl after the last, and is awaited for a sixth. So half of the
/// lease is left, and two attempts fit into it. The first goes on meanwhile: a distant server may need longer.
pub fn another_connection_after(record_ttl: Duration, cap: Duration) -> Duration {
    (record_ttl / 4).clamp(cap / 32, cap)
}

/// How much of the time that a request has left a transport uses before it gives up by itself: all but an eighth. At the deadline the
/// caller hears only that no reply came; the transport knows why.
pub fn time_to_say_why(left: Duration) -> Duration {
    left.saturating_sub(left / 8)
}

/// When to warn the holder: a sixth of the ttl before the deadline.
pub fn danger_at(deadline: Monotonic, ttl: Ttl) -> Monotonic {
    Monotonic(deadline.0.saturating_sub(ns(ttl.get() / 6)))
}

/// The longest pause before a failed renewal is tried again, a sixth of the ttl. It is as long as the danger zone, so one
/// more try falls into that. If it were shorter, a store that is down would get more requests than one that serves.
pub fn retry_cap(ttl: Ttl) -> Duration {
    ttl.get() / 6
}

/// When a renewal that `failed` then is tried again, which would be at `retry_at`: before the holder is warned, and before the lease
/// ends, there is one more try, a twenty-fourth of the ttl earlier, which leaves time for its answer. A store that serves again
/// in the middle of a pause would otherwise be asked too late. Not within a twelfth of the ttl after a failure, and before the
/// end a twenty-fourth: that of another lease tells as much, and each of many would ask for itself.
pub fn retry_in_time(failed: Monotonic, retry_at: Monotonic, deadline: Monotonic, ttl: Ttl) -> Monotonic {
    let share = ttl.get() / 24;
    let last_before = |at: Monotonic| Monotonic(at.0.saturating_sub(ns(share)));
    let last_tries = [(danger_at(deadline, ttl), 2 * share), (deadline, share)];
    last_tries
        .into_iter()
        .map(|(at, rest)| (last_before(at), rest))
        .filter(|(last, _)| failed < *last)
        .fold(retry_at, |at, (last, rest)| at.min(last.max(failed.plus(rest))))
}

/// Renewals due within this, a twelfth of the ttl, travel in one request.
pub fn batch_window(ttl: Ttl) -> Duration {
    ttl.get() / 12
}

/// How long the row of a lock stands by itself if it belongs to a session: a hundred and twenty times as long as the lease, at
/// most 24 h. Those who know of no sessions wait for so long, and so does everybody where the session lives, but nobody in it
/// believes in the row.
pub fn row_ttl(ttl: Duration) -> Duration {
    const LONGEST: Duration = Duration::from_secs(24 * 3600);
    ttl.saturating_mul(120).min(LONGEST).max(ttl)
}

/// When such a row is written again: a third of its ttl after it was written.
pub fn row_due(written: Monotonic, row_ttl: Duration) -> Monotonic {
    written.plus(row_ttl / 3)
}

/// The instant from which a lease counts that is kept by the heartbeat of its session: the send of that, unless the row
/// would then run out before the lease: `written + (row_ttl - ttl) (1 - 2 rho)`.
pub fn counted_from(
    heartbeat: Monotonic,
    written: Monotonic,
    row_ttl: Duration,
    ttl: Duration,
    drift: Drift,
) -> Monotonic {
    let longer = u128::from(ns(row_ttl.saturating_sub(ttl)));
    let margin = 2_u128.saturating_mul(share_up(longer, drift));
    heartbeat.min(written.plus(from_ns(longer.saturating_sub(margin))))
}

/// Until when the last heartbeat of a session also renews its locks: for a sixth of their ttl. Their own renewals, every third
/// of it, then come together, and one heartbeat serves them all.
pub fn heartbeat_serves_until(heartbeat: Monotonic, ttl: Duration) -> Monotonic {
    heartbeat.plus(ttl / 6)
}

/// Until when a new lock can be taken without another heartbeat: for a third of its ttl.
pub fn heartbeat_grants_until(heartbeat: Monotonic, ttl: Duration) -> Monotonic {
    heartbeat.plus(ttl / 3)
}

/// The start of the period that an instant lies in, in milliseconds since 1970. Periods follow one another from `offset`
/// after the start of 1970 in UTC; those before it are not counted.
pub fn period_start(unix_ms: u64, every_ms: u64, offset_ms: u64) -> u64 {
    let since = unix_ms.saturating_sub(offset_ms);
    offset_ms.saturating_add(since - since % every_ms.max(1))
}

/// `fraction / 2^32` of a duration, rounded down.
pub fn fraction_of(duration: Duration, fraction: u32) -> Duration {
    from_ns(u128::from(ns(duration)).saturating_mul(u128::from(fraction)) >> 32)
}

/// `rho` of a length of time, rounded up.
fn share_up(length_ns: u128, drift: Drift) -> u128 {
    length_ns.saturating_mul(u128::from(drift.ppm())).div_ceil(PPM)
}

fn worst_case(length: Duration, drift: Drift) -> Duration {
    let rho = u128::from(drift.ppm());
    let stretched = u128::from(ns(length)).saturating_mul(PPM.saturating_add(rho));
    from_ns(stretched.div_ceil(PPM.saturating_sub(rho).max(1)))
}

pub(crate) fn ns(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

fn from_ns(ns: u128) -> Duration {
    Duration::from_nanos(u64::try_from(ns).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT: Monotonic = Monotonic::from_ns(1_000_000_000);

    fn ttl(ms: u64) -> Ttl {
        Ttl::new(Duration::from_millis(ms)).unwrap()
    }

    #[test]
    fn deadline_leaves_twice_the_drift_and_two_milliseconds() {
        let deadline = deadline_of(AT, ttl(30_000), Drift::default());
        assert_eq!(deadline.since(AT), Duration::from_millis(30_000 - 600 - 2));
        assert_eq!(deadline_of(AT, ttl(100), Drift::default()).since(AT), Duration::from_millis(96));
    }

    #[test]
    fn an_observer_waits_longer_for_foreign_records() {
        let length = Duration::from_secs(20);
        let ours = observed_until(AT, length, Drift::default(), Format::Leasehold);
        let foreign = observed_until(AT, length, Drift::default(), Format::Foreign);
        assert_eq!(ours.since(AT), Duration::from_millis(20_200));
        assert_eq!(foreign.since(AT), Duration::from_nanos(20_404_040_405) + Duration::from_millis(2));
    }

    #[test]
    fn a_lease_of_a_session_ends_before_its_row_does() {
        let (drift, lease) = (Drift::default(), ttl(30_000));
        let row = row_ttl(lease.get());
        assert_eq!(row, Duration::from_secs(3600));
        assert_eq!(row_ttl(Duration::from_secs(48 * 3600)), Duration::from_secs(48 * 3600));
        let of_row = deadline_of(AT, Ttl::new(row).unwrap(), drift);
        for late in [0, 600, 1_200, 3_500, 3_540, 3_600, 40_000] {
            let heartbeat = AT.plus(Duration::from_secs(late));
            let since = counted_from(heartbeat, AT, row, lease.get(), drift);
            assert!(since <= heartbeat && deadline_of(since, lease, drift) <= of_row, "{late}");
        }
        assert_eq!(counted_from(AT, AT, row, lease.get(), drift), AT);
    }

    #[test]
    fn two_attempts_to_connect_fit_into_a_lease() {
        const CAP: Duration = Duration::from_secs(5);
        for ms in [1_000, 3_000, 9_000, 15_000, 30_000, 3_600_000] {
            let lease = ttl(ms);
            let (second, third) = (another_connection_after(lease.get(), CAP), request_timeout(lease, CAP));
            let found = AT.plus(default_renew_every(lease)).plus(third);
            assert!(found.plus(second) < danger_at(deadline_of(AT, lease, Drift::default()), lease), "{ms}");
        }
        assert_eq!(another_connection_after(Duration::MAX, CAP), CAP);
        assert!(another_connection_after(Duration::from_millis(100), CAP) > Duration::from_millis(100));
    }

    #[test]
    fn instants_saturate() {
        assert_eq!(Monotonic::FAR.plus(Duration::MAX), Monotonic::FAR);
        assert_eq!(AT.plus(Duration::MAX), Monotonic::FAR);
        assert_eq!(AT.since(Monotonic::FAR), Duration::ZERO);
        assert_eq!(observed_until(AT, Duration::MAX, Drift::default(), Format::Foreign), Monotonic::FAR);
    }

    #[test]
    fn a_wait_is_told_of_after_five_seconds_and_then_each_time_it_has_doubled() {
        let mut told = Duration::ZERO;
        let all = core::array::from_fn(|_| {
            told = wait_told_at(AT, told).since(AT);
            told.as_secs()
        });
        assert_eq!(all, [5, 10, 20, 40, 80]);
        assert_eq!(wait_told_at(AT, Duration::MAX), Monotonic::FAR);
    }

    #[test]
    fn a_renewal_is_tried_before_the_warning_and_before_the_end_whatever_the_pause() {
        let at = |seconds| AT.plus(Duration::from_secs(seconds));
        let retry = |failed, planned| retry_in_time(at(failed), at(planned), at(96), ttl(96_000)).since(AT).as_secs();
        // The warning comes at 80; a twenty-fourth of the ttl is 4, a twelfth 8.
        assert_eq!([retry(40, 56), retry(67, 83), retry(76, 92), retry(80, 96)], [56, 76, 92, 92]);
        assert_eq!([retry(70, 86), retry(90, 106), retry(92, 108)], [78, 94, 108]);
    }

    #[test]
    fn renewals_are_early_never_late() {
        let every = Duration::from_secs(10);
        assert_eq!(renew_at(AT, every, 0).since(AT), every);
        let earliest = renew_at(AT, every, u32::MAX).since(AT);
        assert!(earliest >= Duration::from_millis(7_500) && earliest < Duration::from_millis(7_501));
    }
}
