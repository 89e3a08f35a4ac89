//! Work with a deadline.

use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use leasehold_core::Monotonic;

use crate::host::clock;

/// Waits for `work` until a deadline. Timers of runtimes do not count suspended time, so the clock is checked again.
///
/// Past the deadline `work` is not polled any more, however late this is: the core counts on it that a request which has not left by
/// its deadline never will.
pub(super) async fn until<R>(deadline: Monotonic, work: impl Future<Output = R>) -> Option<R> {
    const LONGEST_NAP: Duration = Duration::from_secs(1);
    let mut work = pin!(work);
    let mut in_time = poll_fn(|context| {
        if deadline <= clock::monotonic() {
            return Poll::Ready(None);
        }
        work.as_mut().poll(context).map(Some)
    });
    loop {
        let left = deadline.since(clock::monotonic());
        if let Ok(result) = tokio::time::timeout(left.min(LONGEST_NAP), &mut in_time).await {
            return result;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::thread;

    use tokio::runtime::Builder;

    use super::*;

    #[test]
    fn work_does_not_go_on_past_its_deadline_however_late_it_is_polled() {
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        let polls = AtomicUsize::new(0);
        let deadline = clock::monotonic().plus(Duration::from_millis(50));
        let done = runtime.block_on(until(
            deadline,
            poll_fn(|context| {
                if polls.fetch_add(1, Ordering::Relaxed) == 0 {
                    while clock::monotonic() < deadline {
                        thread::yield_now();
                    }
                    context.waker().wake_by_ref();
                    return Poll::Pending;
                }
                Poll::Ready(())
            }),
        ));
        assert_eq!((done, polls.into_inner()), (None, 1));
    }
}
