//! The timer thread's sleep, and the hints that stores leave for it.

use std::collections::BTreeSet;
use std::time::Duration;

use leasehold_core::{LockId, Monotonic, NodeId, Resource};

use super::Driver;
use crate::host::sync::{Arc, Condvar, Mutex, MutexGuard, Weak};
use crate::host::time::Time;
use crate::transport::Watcher;

/// Timers of the operating system do not count suspended time, so no sleep is longer than this.
const MAX_SLEEP: Duration = Duration::from_secs(1);

/// Wakes the timer thread. Its mutex is a leaf: nothing else is locked while it is held.
#[derive(Default)]
pub(crate) struct TimerWakeup {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    is_woken: bool,
    is_stopped: bool,
    /// In an order that is the same each time.
    hints: BTreeSet<Hint>,
}

/// A message of a store's for the core.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Hint {
    Released(Resource),
    Subscribed(NodeId, Resource),
    Reserved(Resource, LockId),
}

impl TimerWakeup {
    pub(crate) fn wake(&self) {
        self.lock().is_woken = true;
        self.changed.notify_all();
    }

    pub(crate) fn take_hints(&self) -> BTreeSet<Hint> {
        std::mem::take(&mut self.lock().hints)
    }

    /// Returns when the time has come, or after a call of [`TimerWakeup::wake`] since the last sleep.
    pub(crate) fn sleep_until(&self, until: Monotonic) {
        let mut state = self.lock();
        while !std::mem::take(&mut state.is_woken) {
            let left = until.since(Time::System.monotonic());
            if left.is_zero() {
                return;
            }
            state = self.wait(state, left.min(MAX_SLEEP));
        }
    }

    pub(crate) fn stop(&self) {
        self.lock().is_stopped = true;
        self.changed.notify_all();
    }

    /// Waits for [`TimerWakeup::stop`]; answers whether it came.
    pub(crate) fn wait_stopped(&self, timeout: Duration) -> bool {
        self.wait_while(timeout, |state| !state.is_stopped);
        self.is_stopped()
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.lock().is_stopped
    }

    #[cfg_attr(not(feature = "testing"), allow(dead_code, reason = "on a machine, a thread keeps time"))]
    pub(crate) fn has_hints(&self) -> bool {
        !self.lock().hints.is_empty()
    }

    /// Waits until a condition holds, and checks it at each call of [`TimerWakeup::wake`].
    pub(crate) fn wait_until(&self, timeout: Duration, holds: impl Fn() -> bool) {
        self.wait_while(timeout, |_| !holds());
    }

    fn wait_while(&self, timeout: Duration, condition: impl Fn(&State) -> bool) {
        let until = Time::System.monotonic().plus(timeout);
        let mut state = self.lock();
        while condition(&state) {
            let left = until.since(Time::System.monotonic());
            if left.is_zero() {
                return;
            }
            state = self.wait(state, left.min(MAX_SLEEP));
        }
    }

    fn hint(&self, hint: Hint) {
        let mut state = self.lock();
        state.hints.insert(hint);
        state.is_woken = true;
        drop(state);
        self.changed.notify_all();
    }

    fn wait<'a>(&self, state: MutexGuard<'a, State>, left: Duration) -> MutexGuard<'a, State> {
        self.changed.wait_timeout(state, left)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }
}

/// Forwards what one store tells: hints to the timer thread, and turns at once.
pub(crate) struct WakeupForwarder {
    pub(crate) node: NodeId,
    pub(crate) timer: Arc<TimerWakeup>,
    /// Empty until the driver has started.
    #[cfg_attr(not(feature = "redis"), allow(dead_code, reason = "only Redis keeps lines"))]
    pub(crate) driver: Arc<Mutex<Weak<Driver>>>,
}

impl Watcher for WakeupForwarder {
    fn subscribed(&self, resource: &Resource) {
        self.timer.hint(Hint::Subscribed(self.node, resource.clone()));
    }

    fn released(&self, resource: &Resource) {
        self.timer.hint(Hint::Released(resource.clone()));
    }

    fn note_reserved(&self, resource: &Resource, lock: LockId) {
        self.timer.hint(Hint::Reserved(resource.clone(), lock));
    }

    fn reserved(&self, resource: &Resource, lock: LockId, after: Duration) {
        // Who waits for a whole lock would feel a detour by the timer thread.
        let driver = self.driver.lock().upgrade();
        if let Some(driver) = driver {
            driver.on_reserved(resource, lock, after);
        }
    }
}
