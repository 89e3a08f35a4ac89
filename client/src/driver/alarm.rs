//! What the background thread sleeps on, and what others leave for it.

use std::time::Duration;

use leasehold_core::{Monotonic, NodeId, Resource};

use crate::clock;
use crate::sync::{Arc, Condvar, HashSet, Mutex, MutexGuard};
use crate::transport::Watcher;

/// Timers of the operating system do not count suspended time, so no sleep is longer than this.
const LONGEST_NAP: Duration = Duration::from_secs(1);

/// Wakes the background thread. Its mutex is a leaf: nothing else is locked while it is held.
#[derive(Default)]
pub(crate) struct Alarm {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    ringing: bool,
    stopped: bool,
    hints: HashSet<Hint>,
}

/// Something that the core should hear of.
#[derive(PartialEq, Eq, Hash)]
pub(crate) enum Hint {
    Released(Resource),
    Subscribed(NodeId, Resource),
}

impl Alarm {
    pub(crate) fn ring(&self) {
        self.lock().ringing = true;
        self.changed.notify_all();
    }

    pub(crate) fn take_hints(&self) -> HashSet<Hint> {
        std::mem::take(&mut self.lock().hints)
    }

    /// Returns when the time has come, or somebody rang since the last sleep.
    pub(crate) fn sleep_until(&self, until: Monotonic) {
        let mut state = self.lock();
        while !std::mem::take(&mut state.ringing) {
            let left = until.since(clock::monotonic());
            if left.is_zero() {
                return;
            }
            state = self.wait(state, left.min(LONGEST_NAP));
        }
    }

    pub(crate) fn stop(&self) {
        self.lock().stopped = true;
        self.changed.notify_all();
    }

    /// Waits for [`Alarm::stop`]; answers whether it came.
    pub(crate) fn wait_stopped(&self, patience: Duration) -> bool {
        self.wait_while(patience, |state| !state.stopped);
        self.lock().stopped
    }

    /// Waits until a condition holds, looking again at each ring.
    pub(crate) fn wait_until(&self, patience: Duration, is_so: impl Fn() -> bool) {
        self.wait_while(patience, |_| !is_so());
    }

    fn wait_while(&self, patience: Duration, still: impl Fn(&State) -> bool) {
        let until = clock::monotonic().plus(patience);
        let mut state = self.lock();
        while still(&state) {
            let left = until.since(clock::monotonic());
            if left.is_zero() {
                return;
            }
            state = self.wait(state, left.min(LONGEST_NAP));
        }
    }

    fn hint(&self, hint: Hint) {
        let mut state = self.lock();
        state.hints.insert(hint);
        state.ringing = true;
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

/// Hears what one store tells, and leaves it to the background thread.
pub(crate) struct Ear {
    pub(crate) node: NodeId,
    pub(crate) alarm: Arc<Alarm>,
}

impl Watcher for Ear {
    fn subscribed(&self, resource: &Resource) {
        self.alarm.hint(Hint::Subscribed(self.node, resource.clone()));
    }

    fn released(&self, resource: &Resource) {
        self.alarm.hint(Hint::Released(resource.clone()));
    }
}
