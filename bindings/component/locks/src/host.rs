//! The clocks, the random numbers and the waiting that WASI 0.2 provides to the machine.

use alloc::vec;
use alloc::vec::Vec;
use core::time::Duration;

use crate::exchange::Exchange;
use crate::wasi::clocks::{monotonic_clock, wall_clock};
use crate::wasi::io::poll;
use crate::wasi::random::random;

/// The monotonic clock and the wall clock, in nanoseconds: since an arbitrary moment, and since 1970.
pub(crate) fn clocks() -> (u64, u64) {
    let wall = wall_clock::now();
    (monotonic_clock::now(), wall.seconds.saturating_mul(1_000_000_000).saturating_add(wall.nanoseconds.into()))
}

pub(crate) fn random_word() -> u64 {
    random::get_random_u64()
}

/// Waits until one of the exchanges can go on, or for so long.
pub(crate) fn pause(exchanges: &mut [Exchange], left: Duration) {
    let mut events = vec![monotonic_clock::subscribe_duration(u64::try_from(left.as_nanos()).unwrap_or(u64::MAX))];
    events.extend(exchanges.iter().flat_map(Exchange::awaits));
    poll::poll(&events.iter().collect::<Vec<_>>());
}
