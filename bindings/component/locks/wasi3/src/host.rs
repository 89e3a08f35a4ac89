//! What the machine asks of its host, in the terms of WASI 0.3.

use core::future::{Future as _, poll_fn};
use core::pin::pin;
use core::task::Poll;
use core::time::Duration;

use crate::exchange::Exchange;
use crate::wasi::clocks::{monotonic_clock, system_clock};
use crate::wasi::random::random;

/// What the clocks show, in nanoseconds: since whenever, and since 1970.
pub(crate) fn clocks() -> (u64, u64) {
    let wall = system_clock::now();
    let seconds = u64::try_from(wall.seconds).unwrap_or(0);
    (monotonic_clock::now(), seconds.saturating_mul(1_000_000_000).saturating_add(wall.nanoseconds.into()))
}

pub(crate) fn random_word() -> u64 {
    random::get_random_u64()
}

/// Waits until one of the exchanges has an answer, or for so long.
pub(crate) async fn pause(exchanges: &mut [Exchange], left: Duration) {
    let mut timer = pin!(monotonic_clock::wait_for(u64::try_from(left.as_nanos()).unwrap_or(u64::MAX)));
    poll_fn(|context| {
        let mut is_over = timer.as_mut().poll(context).is_ready();
        for exchange in &mut *exchanges {
            is_over |= exchange.poll(context);
        }
        if is_over { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
}
