//! The timer thread: it does what is due, for as long as the client lives. By the time of a test, the world does the same without a
//! thread.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use leasehold_core::{Entropy, Monotonic};

use super::worker::StoreWorkers;
use super::{Caller, Driver};
use crate::host::sync::Arc;
use crate::host::time::Kept;

/// How soon the timer thread looks again where the system gives no random bytes.
const WITHOUT_ENTROPY: Duration = Duration::from_millis(100);

impl Kept for Driver {
    fn due(&self) -> Monotonic {
        if self.timer_wakeup.has_hints() { Monotonic::default() } else { self.state.lock().due() }
    }

    fn turn(self: Arc<Self>) -> bool {
        let mut fresh: Entropy = [0; 16];
        let has_entropy = self.time.fill(&mut fresh).is_ok();
        let is_over = self.on_timer(has_entropy.then_some(&fresh));
        if is_over {
            self.stop_timer();
        } else {
            self.state.lock().on_timer_sleep(self.time.monotonic());
        }
        is_over
    }
}

impl Driver {
    pub(super) fn run_timer(self: Arc<Self>) {
        loop {
            let mut fresh: Entropy = [0; 16];
            let has_entropy = self.time.fill(&mut fresh).is_ok();
            // Wakers run here, too; a panic of theirs must not end all leases.
            let on_timer = || self.on_timer(has_entropy.then_some(&fresh));
            if catch_unwind(AssertUnwindSafe(on_timer)).unwrap_or(false) {
                return self.stop_timer();
            }
            let until = self.state.lock().on_timer_sleep(self.time.monotonic());
            let at_least = if has_entropy { Duration::ZERO } else { WITHOUT_ENTROPY };
            self.timer_wakeup.sleep_until(until.max(self.time.monotonic().plus(at_least)));
        }
    }

    /// Answers whether the client is closed and nothing is left to do.
    fn on_timer(self: &Arc<Self>, fresh: Option<&Entropy>) -> bool {
        let hints = self.timer_wakeup.take_hints();
        let on_timer = |state: &mut super::State, now| {
            state.on_timer(hints, fresh, now);
            state.is_over()
        };
        self.turn(Caller::Background, None, on_timer).0
    }

    /// A thread that waits for the end may be about to leave the process, so that stores are closed before it is woken.
    fn stop_timer(self: Arc<Self>) {
        let wakeup = Arc::clone(&self.timer_wakeup);
        // Handles may stay for long: what they share ends here.
        self.transports.iter().for_each(|transport| transport.close());
        self.workers.iter().for_each(StoreWorkers::close);
        self.callbacks.close();
        drop(self);
        wakeup.stop();
    }
}
