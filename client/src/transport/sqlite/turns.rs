//! The thread that looks after the places of one client in line: it sees the turns that other processes give, says that the
//! client is alive, and gives up places.
//!
//! Within one process a turn is told at once. Other processes cannot tell, so who waits looks: the first in line every
//! millisecond at best, those behind it less often, and all of them less often the longer nothing happens.

use std::time::Duration;

use leasehold_core::line::{self, Reserved, Ticket, UNSEEN};
use leasehold_core::store::StoreNow;
use leasehold_core::{LockId, Monotonic, Resource};

use super::file::File;
use super::{line as rows, transaction};
use crate::host::clock;
use crate::host::sync::{Arc, Condvar, HashMap, Mutex};
use crate::host::threads;
use crate::transport::Pool;

/// The first in line looks this often while locks change hands, and that often while they do not.
const LOOKS: (Duration, Duration) = (Duration::from_millis(1), Duration::from_millis(20));
/// The one at this place looks this many times less often, and those behind it as well.
const LAST_PLACE: u64 = 10;
/// How soon a turn that was told, and not taken, is told again.
const TOLD: Duration = Duration::from_millis(100);
/// The time for which the file is waited for.
const PATIENCE: Duration = Duration::from_secs(1);

/// The places of a client, and the thread that looks after them, once there is one.
pub(super) struct Turns {
    file: Arc<File>,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    places: HashMap<(Resource, LockId), Place>,
    /// Places that are to be given up.
    given_up: Vec<(Resource, LockId)>,
    is_running: bool,
    is_stopped: bool,
}

#[derive(Clone, Copy)]
struct Place {
    number: u64,
    since: Monotonic,
    looks_at: Monotonic,
    /// The lock is reserved for another until then.
    reserved_until: Option<Monotonic>,
}

impl Place {
    fn pause(&self, now: Monotonic) -> Duration {
        let of_first = (now.since(self.since) / 16).clamp(LOOKS.0, LOOKS.1);
        of_first * u32::try_from(self.number.clamp(1, LAST_PLACE)).unwrap_or(1)
    }
}

impl Turns {
    pub(super) fn of(file: &Arc<File>) -> Self {
        Self { file: Arc::clone(file), shared: Arc::default() }
    }

    /// Notes the place that an acquisition has now, among those who wait; `None` if it has none.
    pub(super) fn note(&self, resource: &Resource, lock: LockId, number: Option<u64>, reserved: Option<Reserved>) {
        let mut state = self.shared.state.lock();
        let key = (resource.clone(), lock);
        match number {
            Some(number) => {
                let now = clock::monotonic();
                let reserved_until = reserved.map(|reserved| now.plus(reserved.left));
                let place = Place { number, since: now, looks_at: now.plus(LOOKS.0), reserved_until };
                let known = state.places.entry(key).or_insert(place);
                (known.number, known.reserved_until) = (number, reserved_until);
                self.go_on(&mut state);
            }
            None if state.places.is_empty() => {}
            None => drop(state.places.remove(&key)),
        }
    }

    /// Gives up a place, later.
    pub(super) fn leave(&self, resource: &Resource, lock: LockId) {
        let mut state = self.shared.state.lock();
        let key = (resource.clone(), lock);
        state.places.remove(&key);
        state.given_up.push(key);
        self.go_on(&mut state);
    }

    /// The place of an acquisition, as it was last seen.
    pub(super) fn place(&self, resource: &Resource, lock: Option<LockId>) -> Option<u64> {
        let state = self.shared.state.lock();
        let is_asked =
            |(name, number): &(Resource, LockId)| name == resource && lock.is_none_or(|lock| lock == *number);
        state.places.iter().find(|(key, _)| is_asked(key)).map(|(_, place)| place.number)
    }

    /// The reservation for another that an acquisition had to wait for when it last asked.
    pub(super) fn reserved_before(&self, resource: &Resource, lock: LockId) -> Option<Reserved> {
        let place = *self.shared.state.lock().places.get(&(resource.clone(), lock))?;
        Some(Reserved { left: place.reserved_until?.since(clock::monotonic()), place: place.number })
    }

    /// Ends the thread, once all that is given up is.
    pub(super) fn stop(&self) {
        let mut state = self.shared.state.lock();
        let places: Vec<_> = state.places.drain().map(|(key, _)| key).collect();
        state.given_up.extend(places);
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

/// The next task of the thread.
enum Work {
    Leave(Vec<(Resource, LockId)>),
    Look(Vec<(Resource, LockId)>),
    See,
    End,
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
    let mut seen_at = clock::monotonic();
    loop {
        match next(shared, seen_at) {
            Work::Leave(places) => leave(&file, &places),
            Work::Look(places) => look(&file, shared, places),
            Work::See => {
                let until = clock::monotonic().plus(PATIENCE);
                // A waiter that is not seen loses its place, and joins again.
                let _ = file.with_connection(Pool::Background, until, |connection| {
                    transaction::see(connection, file.path(), file.client(), until)
                });
                seen_at = clock::monotonic();
            }
            Work::End => return,
        }
    }
}

/// Waits until there is something to do.
fn next(shared: &Shared, seen_at: Monotonic) -> Work {
    let mut state = shared.state.lock();
    loop {
        if !state.given_up.is_empty() {
            return Work::Leave(std::mem::take(&mut state.given_up));
        }
        if state.is_stopped {
            return Work::End;
        }
        if state.places.is_empty() {
            state = shared.changed.wait(state);
            continue;
        }
        let now = clock::monotonic();
        if now.since(seen_at) > UNSEEN / 5 {
            return Work::See;
        }
        let due: Vec<_> = state.places.iter().filter(|(_, place)| place.looks_at <= now).collect();
        if !due.is_empty() {
            return Work::Look(due.into_iter().map(|(key, _)| key.clone()).collect());
        }
        let soonest = state.places.values().map(|place| place.looks_at).min().unwrap_or(now);
        state = shared.changed.wait_timeout(state, soonest.since(now));
    }
}

fn leave(file: &File, places: &[(Resource, LockId)]) {
    let until = clock::monotonic().plus(PATIENCE);
    let left = file.with_connection(Pool::Background, until, |connection| {
        transaction::leave(connection, file.path(), file.client(), places, until)
    });
    // A row that stays in line is passed over in its turn.
    for (resource, turn) in left.unwrap_or_default() {
        file.wakeups().reserved(&resource, turn);
    }
}

fn look(file: &File, shared: &Shared, places: Vec<(Resource, LockId)>) {
    let until = clock::monotonic().plus(PATIENCE);
    let (boot, client) = file.client();
    let seen = file.with_connection(Pool::Background, until, |connection| {
        let lines = places.iter().map(|(resource, _)| rows::read(connection.db(), resource));
        lines.collect::<Result<Vec<_>, _>>().map_err(|error| transaction::Stop::NotApplied(error.into()))
    });
    let (lines, now) = (seen.unwrap_or_default(), clock::store_now(boot));
    let mut due = Vec::new();
    let mut state = shared.state.lock();
    for (at, key) in places.into_iter().enumerate() {
        let Some(place) = state.places.get_mut(&key) else { continue };
        let ticket = Ticket { client, lock: key.1 };
        match lines.get(at) {
            Some(line) if line::is_due(line, ticket, &now) => {
                place.looks_at = now.uptime.plus(TOLD);
                due.push((key.0, ticket));
            }
            Some(line) => note_place(place, line, ticket, &now),
            None => place.looks_at = now.uptime.plus(TOLD),
        }
    }
    drop(state);
    for (resource, ticket) in due {
        file.wakeups().reserved(&resource, ticket);
    }
}

fn note_place(place: &mut Place, line: &[line::Waiter], ticket: Ticket, now: &StoreNow) {
    let number = line::waiting(line, now).position(|waiter| waiter.ticket == ticket).map_or(1, |at| at as u64 + 1);
    if number != place.number {
        (place.number, place.since) = (number, now.uptime);
    }
    place.looks_at = now.uptime.plus(place.pause(now.uptime));
}
