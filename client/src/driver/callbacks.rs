//! Where the callbacks of users run: one after the other on a thread kept for them, and beside it on further ones while a
//! callback takes long, since what stands behind it may be the news of a loss.

use std::collections::VecDeque;
use std::time::Duration;

use leasehold_core::Monotonic;

use super::Callback;
use crate::clock;
use crate::sync::{Arc, Condvar, Mutex, MutexGuard};

/// How long a callback waits for the one before it.
const PATIENCE: Duration = Duration::from_millis(100);
/// Threads in all: callbacks that hang on so many withhold the others.
const MOST: usize = 16;

/// Dropping it ends the threads, once all callbacks were called.
#[derive(Default)]
pub(crate) struct Callbacks(Arc<Shared>);

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    due: VecDeque<Callback>,
    threads: usize,
    running: usize,
    /// When the first that is due may be called though others run.
    not_before: Monotonic,
    is_closed: bool,
}

impl Callbacks {
    /// Queues a callback. Where no thread can be started, the caller calls it.
    pub(crate) fn give(&self, callback: Callback) {
        let mut state = self.0.lock();
        if state.due.is_empty() {
            state.not_before = clock::monotonic().plus(PATIENCE);
        }
        state.due.push_back(callback);
        self.0.have_somebody_ready(&mut state);
        let alone = if state.threads == 0 { state.due.pop_back() } else { None };
        drop(state);
        self.0.changed.notify_all();
        if let Some(callback) = alone {
            call(callback);
        }
    }
}

impl Drop for Callbacks {
    fn drop(&mut self) {
        self.0.lock().is_closed = true;
        self.0.changed.notify_all();
    }
}

impl Shared {
    fn have_somebody_ready(self: &Arc<Self>, state: &mut State) {
        if state.threads == state.running && state.threads < MOST {
            let shared = Arc::clone(self);
            state.threads += usize::from(super::spawn("leasehold-callbacks", move || shared.serve()).is_ok());
        }
    }

    fn serve(self: Arc<Self>) {
        let mut state = self.lock();
        loop {
            // One is enough to wait.
            if state.due.is_empty() && (state.is_closed || state.threads - state.running > 1) {
                state.threads -= 1;
                return;
            }
            let left = state.not_before.since(clock::monotonic());
            if state.due.is_empty() {
                state = self.changed.wait(state);
            } else if state.running > 0 && !left.is_zero() {
                state = self.changed.wait_timeout(state, left);
            } else if let Some(callback) = state.due.pop_front() {
                state.running += 1;
                state.not_before = clock::monotonic().plus(PATIENCE);
                if !state.due.is_empty() {
                    self.have_somebody_ready(&mut state);
                }
                drop(state);
                call(callback);
                state = self.lock();
                state.running -= 1;
                self.changed.notify_all();
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }
}

/// A panic has been printed, and must not take the callbacks behind it along.
fn call(callback: Callback) {
    let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(callback));
}
