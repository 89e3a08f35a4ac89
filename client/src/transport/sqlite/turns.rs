//! The thread that looks after the places of one client in the queue: it sees the turns that other processes give, says that the
//! client is alive, and gives up places.
//!
//! Within one process a turn is reported at once. Other processes cannot report it, so waiters look: the first in the queue every
//! millisecond at best, those behind it less often, and all of them less often the longer nothing happens.

use std::time::Duration;

use leasehold_core::queue::{self, Reserved, Ticket};
use leasehold_core::{LockId, Resource};

use super::file::File;
use super::{transaction, waiters as rows};
use crate::host::clock;
use crate::host::sync::{Arc, Condvar, Mutex};
use crate::host::threads;
use crate::transport::Pool;
use crate::transport::places::{Key, Pace, Places, Sight, Work};

const PACE: Pace = Pace { looks: (Duration::from_millis(1), Duration::from_millis(20)), lingers: Duration::ZERO };
/// The time for which the file is waited for.
const PATIENCE: Duration = Duration::from_secs(1);

/// The places of a client, and the thread that looks after them, once there is one.
pub(super) struct Turns {
    file: Arc<File>,
    shared: Arc<Shared>,
}

struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    places: Places,
    is_running: bool,
    is_stopped: bool,
}

impl Turns {
    pub(super) fn of(file: &Arc<File>) -> Self {
        let state = State { places: Places::new(PACE), is_running: false, is_stopped: false };
        let shared = Shared { state: Mutex::new(state), changed: Condvar::default() };
        Self { file: Arc::clone(file), shared: Arc::new(shared) }
    }

    /// Notes the place that an acquisition has now, among those who wait; `None` if it has none.
    pub(super) fn note(&self, resource: &Resource, lock: LockId, number: Option<u64>, reserved: Option<Reserved>) {
        let mut state = self.shared.state.lock();
        let is_first = state.places.is_empty();
        if is_first && number.is_none() {
            return;
        }
        let now = clock::monotonic();
        if is_first {
            // A waiter that joins is seen.
            state.places.see(now);
        }
        let told = number.map(|number| (number, reserved.map(|reserved| reserved.left)));
        state.places.note((resource.clone(), lock), told, now);
        if number.is_some() {
            self.go_on(&mut state);
        }
    }

    /// Gives up a place, later.
    pub(super) fn leave(&self, resource: &Resource, lock: LockId) {
        let mut state = self.shared.state.lock();
        state.places.leave((resource.clone(), lock));
        self.go_on(&mut state);
    }

    /// The place of an acquisition, as it was last seen.
    pub(super) fn place(&self, resource: &Resource, lock: Option<LockId>) -> Option<u64> {
        self.shared.state.lock().places.place(resource, lock)
    }

    /// The reservation for another that an acquisition had to wait for when it last asked.
    pub(super) fn reserved_before(&self, resource: &Resource, lock: LockId) -> Option<Reserved> {
        self.shared.state.lock().places.reserved_before(resource, lock, clock::monotonic())
    }

    /// Ends the thread, once all that is given up is.
    pub(super) fn stop(&self) {
        let mut state = self.shared.state.lock();
        state.places.leave_all();
        state.is_stopped = true;
        self.shared.changed.notify_all();
        drop(self.shared.changed.wait_while(state, |state| state.is_running));
    }

    fn go_on(&self, state: &mut State) {
        if state.is_running || state.is_stopped {
            self.shared.changed.notify_all();
            return;
        }
        let (file, shared) = (Arc::clone(&self.file), Arc::clone(&self.shared));
        // Without the thread waiters poll.
        state.is_running = threads::spawn("leasehold-line", move || run(file, &shared)).is_ok();
    }
}

/// Says that the thread has ended, however it does: the end of the client waits for that.
struct MarkEnd<'a>(&'a Shared);

impl Drop for MarkEnd<'_> {
    fn drop(&mut self) {
        self.0.state.lock().is_running = false;
        self.0.changed.notify_all();
    }
}

fn run(file: Arc<File>, shared: &Shared) {
    let _end = MarkEnd(shared);
    // The file is closed by the thread that waits for this end, so this one lets go of it before.
    let file = file;
    while let Some(work) = next(shared) {
        match work {
            Work::Leave(places) => leave(&file, &places),
            Work::Look(places) => look(&file, shared, &places),
            Work::See => {
                let until = clock::monotonic().plus(PATIENCE);
                // A waiter that is not seen loses its place, and joins again.
                let _ = file.with_connection(Pool::Background, until, |connection| {
                    transaction::see(connection, file.path(), file.client(), until)
                });
                shared.state.lock().places.see(clock::monotonic());
            }
            Work::Wait(_) | Work::Rest => {}
        }
    }
}

/// Waits until there is something to do; `None` at the end.
fn next(shared: &Shared) -> Option<Work> {
    let mut state = shared.state.lock();
    loop {
        let now = clock::monotonic();
        state = match state.places.next(now) {
            Work::Leave(places) => return Some(Work::Leave(places)),
            _ if state.is_stopped => return None,
            Work::Rest => shared.changed.wait(state),
            Work::Wait(until) => shared.changed.wait_timeout(state, until.since(now)),
            work @ (Work::Look(_) | Work::See) => return Some(work),
        };
    }
}

fn leave(file: &File, places: &[Key]) {
    let until = clock::monotonic().plus(PATIENCE);
    let left = file.with_connection(Pool::Background, until, |connection| {
        transaction::leave(connection, file.path(), file.client(), places, until)
    });
    // A row that stays in the queue is passed over in its turn.
    for (resource, turn) in left.unwrap_or_default() {
        file.wakeups().reserved(&resource, turn);
    }
}

fn look(file: &File, shared: &Shared, places: &[Key]) {
    let until = clock::monotonic().plus(PATIENCE);
    let (boot, client) = file.client();
    let seen = file.with_connection(Pool::Background, until, |connection| {
        let queues = places.iter().map(|(resource, _)| rows::read(connection.db(), resource));
        queues.collect::<Result<Vec<_>, _>>().map_err(|error| transaction::Stop::NotApplied(error.into()))
    });
    let (queues, now) = (seen.unwrap_or_default(), clock::store_now(boot));
    let mut due = Vec::new();
    let mut state = shared.state.lock();
    for (at, key) in places.iter().enumerate() {
        let ticket = Ticket { client, lock: key.1 };
        let sight = queues.get(at).map(|queue| {
            let number = || queue::waiting(queue, &now).position(|waiter| waiter.ticket == ticket);
            if queue::is_due(queue, ticket, &now) {
                Sight::Due
            } else {
                Sight::Waits(number().map_or(1, |at| at as u64 + 1))
            }
        });
        if state.places.sighted(key, sight, now.uptime) {
            due.push((&key.0, ticket));
        }
    }
    drop(state);
    for (resource, ticket) in due {
        file.wakeups().reserved(resource, ticket);
    }
}
