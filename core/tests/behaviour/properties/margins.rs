//! Holders and observers with the largest allowed clock errors never overlap, to the last nanosecond.

use std::time::Duration;

use leasehold_core::Monotonic;
use leasehold_core::backoff::Backoff;
use leasehold_core::config::{Drift, Ttl};
use leasehold_core::time::{
    Format, danger_at, deadline_of, default_renew_every, fraction_of, observed_until, renew_at, request_timeout,
    retry_cap, takeover_bound,
};
use proptest::prelude::*;

const PPM: u128 = 1_000_000;

/// A drift, and two clock rates within it, in parts per million of true time.
fn rates() -> impl Strategy<Value = (Drift, u128, u128)> {
    (100_u32..=100_000).prop_flat_map(|rho| {
        let within = || {
            let extremes = prop_oneof![Just(1_000_000 - rho), Just(1_000_000), Just(1_000_000 + rho)];
            prop_oneof![extremes, 1_000_000 - rho..=1_000_000 + rho].prop_map(u128::from)
        };
        (Just(Drift::from_ppm(rho).unwrap()), within(), within())
    })
}

fn ttls() -> impl Strategy<Value = Ttl> {
    prop_oneof![Just(100), Just(86_400_000), 100_u64..=86_400_000]
        .prop_map(|ms| Ttl::new(Duration::from_millis(ms)).unwrap())
}

fn instants() -> impl Strategy<Value = Monotonic> {
    (0..1_u64 << 60).prop_map(Monotonic::from_ns)
}

/// Returns true if `first` nanoseconds of a clock at rate `r1` pass before `second` of one at rate `r2`, in true time.
fn passes_before(first: Duration, r1: u128, second: Duration, r2: u128) -> bool {
    first.as_nanos() * r2 < second.as_nanos() * r1
}

proptest! {
    #[test]
    fn a_holder_stops_believing_before_an_observer_takes_over(
        (drift, holder, observer) in rates(), ttl in ttls(), sent in instants(), seen in instants(),
    ) {
        // Both start in the same true instant: the observer can see the record no earlier than it was sent.
        let believed = deadline_of(sent, ttl, drift).since(sent);
        let observed = observed_until(seen, ttl.get(), drift, Format::Leasehold).since(seen);
        prop_assert!(passes_before(believed, holder, observed, observer), "{believed:?} {observed:?}");
    }

    #[test]
    fn a_holder_stops_believing_before_a_store_expires_its_record(
        (drift, holder, store) in rates(), ttl in ttls(), sent in instants(),
    ) {
        let believed = deadline_of(sent, ttl, drift).since(sent);
        prop_assert!(passes_before(believed, holder, ttl.get(), store));
    }

    #[test]
    fn a_holder_without_margins_stops_before_an_observer_takes_over(
        (drift, holder, observer) in rates(), ttl in ttls(), seen in instants(),
    ) {
        let observed = observed_until(seen, ttl.get(), drift, Format::Foreign).since(seen);
        prop_assert!(passes_before(ttl.get(), holder, observed, observer));
    }

    #[test]
    fn margins_are_rounded_to_the_safe_side(
        drift in 100_u32..=100_000, ttl in ttls(), shown_ns in 0_u64..172_800_000_000_000, at in instants(),
    ) {
        let rho = u128::from(drift);
        let drift = Drift::from_ppm(drift).unwrap();
        // In millionths of a nanosecond, so that nothing is rounded here.
        let exact_margin = 2 * rho * ttl.get().as_nanos() + 2_000_000 * PPM;
        let margin = (ttl.get() - deadline_of(at, ttl, drift).since(at)).as_nanos() * PPM;
        prop_assert!(margin >= exact_margin && margin < exact_margin + 2 * PPM);
        // A record may show any length.
        let (shown, shown_ns) = (Duration::from_nanos(shown_ns), u128::from(shown_ns));
        let observed = |format| observed_until(at, shown, drift, format).since(at).as_nanos();
        let (ours, exact) = (observed(Format::Leasehold) * PPM, shown_ns * (PPM + rho));
        prop_assert!(ours >= exact && ours < exact + PPM);
        let (foreign, exact) = ((observed(Format::Foreign) - 2_000_000) * (PPM - rho), shown_ns * (PPM + rho));
        prop_assert!(foreign >= exact && foreign < exact + (PPM - rho));
    }

    #[test]
    fn takeover_is_bounded((drift, _, observer) in rates(), ttl in ttls(), delay in 0_u64..=86_400_000) {
        let delay = Duration::from_millis(delay);
        let at = Monotonic::from_ns(7);
        let observed = observed_until(at, ttl.get() + delay, drift, Format::Leasehold).since(at);
        let bound = takeover_bound(ttl, delay, drift);
        // The observer's clock may be slow; one nanosecond of its own rounding is allowed for.
        prop_assert!((observed.as_nanos() - 1) * PPM <= bound.as_nanos() * observer);
    }

    #[test]
    fn longer_ttl_means_later_deadline_and_observation(drift in 100_u32..=100_000, a in ttls(), b in ttls()) {
        let drift = Drift::from_ppm(drift).unwrap();
        let at = Monotonic::from_ns(5);
        let (short, long) = (a.min(b), a.max(b));
        prop_assert!(deadline_of(at, short, drift) <= deadline_of(at, long, drift));
        for format in [Format::Leasehold, Format::Foreign] {
            prop_assert!(observed_until(at, short.get(), drift, format) <= observed_until(at, long.get(), drift, format));
        }
    }

    #[test]
    fn a_lease_can_be_renewed_twice_before_it_is_in_danger(ttl in ttls(), jitter: u32, sent in instants()) {
        let drift = Drift::default();
        let deadline = deadline_of(sent, ttl, drift);
        let first = renew_at(sent, default_renew_every(ttl), jitter);
        let timeout = request_timeout(ttl, Duration::from_secs(3600));
        prop_assert!(first.plus(timeout).plus(retry_cap(ttl)).plus(Duration::ZERO) <= danger_at(deadline, ttl));
        prop_assert!(danger_at(deadline, ttl) < deadline);
        prop_assert!(first > sent);
    }

    #[test]
    fn sleeps_stay_within_their_bounds(tries: u32, jitter: u32, more: u32) {
        for (backoff, base, cap) in [(Backoff::NORMAL, 50, 2_000), (Backoff::THROTTLED, 200, 20_000)] {
            let (base, cap) = (Duration::from_millis(base), Duration::from_millis(cap));
            let most = cap.min(base * (1 << tries.min(10)));
            let sleep = backoff.sleep(tries, jitter);
            prop_assert!(sleep >= base / 10 && sleep <= most, "{sleep:?}");
            prop_assert!(backoff.sleep(tries, jitter.min(more)) <= backoff.sleep(tries, jitter.max(more)));
        }
    }

    #[test]
    fn a_fraction_is_less_than_the_whole(ns: u64, fraction: u32) {
        let whole = Duration::from_nanos(ns);
        let part = fraction_of(whole, fraction);
        prop_assert!(part < whole || ns == 0);
        prop_assert_eq!(part.as_nanos(), (u128::from(ns) * u128::from(fraction)) >> 32);
    }
}
