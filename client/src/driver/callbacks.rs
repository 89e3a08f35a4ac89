//! Threads that run the callbacks of users: one callback after the other on one thread, and on further threads while a
//! callback takes long, since the next one may tell of a loss.

use std::collections::VecDeque;
use std::time::Duration;

use leasehold_core::Monotonic;

use crate::error::Error;
use crate::host::sync::{Arc, Condvar, Mutex, MutexGuard};
use crate::host::threads;
use crate::host::time::Time;

pub(crate) use crate::host::time::Callback;

/// A callback that is given the reason of a loss.
pub(crate) type OnLost = Box<dyn FnOnce(Error) + Send>;

/// How long a callback waits for the one before it.
const WAIT_FOR_PREVIOUS: Duration = Duration::from_millis(100);
/// Where callbacks hang on so many threads, the others are not called.
const MAX_THREADS: usize = 16;

/// A queue of callbacks. Dropping it ends the threads, once all callbacks were called.
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
    /// When the first callback that is due may be called though others run.
    not_before: Monotonic,
    is_closed: bool,
}

impl Callbacks {
    /// Ends the threads, once all callbacks were called. Later ones are called all the same.
    pub(crate) fn close(&self) {
        self.0.lock().is_closed = true;
        self.0.changed.notify_all();
    }

    /// Queues a callback. Where no thread can be started, the caller calls it.
    pub(crate) fn queue(&self, callback: Callback) {
        let mut state = self.0.lock();
        if state.due.is_empty() {
            state.not_before = Time::System.monotonic().plus(WAIT_FOR_PREVIOUS);
        }
        state.due.push_back(callback);
        self.0.ensure_idle_thread(&mut state);
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
        self.close();
    }
}

impl Shared {
    fn ensure_idle_thread(self: &Arc<Self>, state: &mut State) {
        if state.threads == state.running && state.threads < MAX_THREADS {
            let shared = Arc::clone(self);
            state.threads += usize::from(threads::spawn("leasehold-callbacks", move || shared.serve()).is_ok());
        }
    }

    fn serve(self: Arc<Self>) {
        let mut state = self.lock();
        loop {
            // One idle thread is enough.
            if state.due.is_empty() && (state.is_closed || state.threads - state.running > 1) {
                state.threads -= 1;
                return;
            }
            let left = state.not_before.since(Time::System.monotonic());
            if state.due.is_empty() {
                state = self.changed.wait(state);
            } else if state.running > 0 && !left.is_zero() {
                state = self.changed.wait_timeout(state, left);
            } else if let Some(callback) = state.due.pop_front() {
                state.running += 1;
                state.not_before = Time::System.monotonic().plus(WAIT_FOR_PREVIOUS);
                if !state.due.is_empty() {
                    self.ensure_idle_thread(&mut state);
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

/// A panic must not end the callbacks behind it. That of a user's code has been told.
fn call(callback: Callback) {
    let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(callback));
}
