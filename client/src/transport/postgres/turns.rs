//! The places of one client in line, and the task that looks after them: it says that the client is alive, looks for turns
//! that nobody tells, and gives up places.
//!
//! The server tells of turns only where somebody listens. Elsewhere who waits looks: the first in line every few milliseconds at best,
//! those behind it less often, and all of them less often the longer nothing happens.

use std::sync::OnceLock;
use std::time::Duration;

use leasehold_core::line::{ClientId, Reserved, Ticket, UNSEEN};
use leasehold_core::{LockId, Monotonic, Resource};
use leasehold_wire::postgres::{Asker, Session, Statement, Told};
use tokio::sync::Notify;

use super::link::PostgresLink;
use crate::host::clock;
use crate::host::sync::{Arc, HashMap, Mutex, Weak};
use crate::transport::connections::{Connections, until};
use crate::transport::wakeups::Wakeups;

/// The first in line looks this often while locks change hands, and that often while they do not.
const LOOKS: (Duration, Duration) = (Duration::from_millis(2), Duration::from_millis(100));
/// The same for one who is told of its turn.
const LOOKS_OF_LISTENERS: (Duration, Duration) = (Duration::from_millis(200), Duration::from_secs(1));
/// The one at this place looks this many times less often, and those behind it as well.
const LAST_PLACE: u64 = 10;
/// How soon a turn that was told, and not taken, is told again.
const TOLD: Duration = Duration::from_millis(100);
/// The longest that a statement of the task may take.
const PATIENCE: Duration = Duration::from_secs(1);
/// A client that was seen this long ago says first that it is alive.
const LATELY: Duration = Duration::from_secs(5);

/// The places of a client, and the task that looks after them, once there is one.
pub(super) struct Turns {
    client: ClientId,
    session: Session,
    wakeups: Arc<Wakeups>,
    looks: (Duration, Duration),
    connections: OnceLock<Weak<Connections<PostgresLink>>>,
    state: Mutex<State>,
    changed: Notify,
}

#[derive(Default)]
struct State {
    places: HashMap<(Resource, LockId), Place>,
    /// Places that are to be given up.
    given_up: Vec<(Resource, LockId)>,
    seen_at: Option<Monotonic>,
    /// Somebody had a place then.
    waited_at: Monotonic,
    is_running: bool,
}

#[derive(Clone, Copy)]
struct Place {
    number: u64,
    since: Monotonic,
    looks_at: Monotonic,
    /// The lock is reserved for another until then.
    reserved_until: Option<Monotonic>,
}

/// The next work of the task.
enum Work {
    Leave(Vec<(Resource, LockId)>),
    Look(Vec<(Resource, LockId)>),
    See,
    Wait(Monotonic),
    End,
}

impl Turns {
    /// `session` has lines.
    pub(super) fn new(client: ClientId, session: Session, wakeups: Arc<Wakeups>, listens: bool) -> Self {
        Self {
            client,
            session,
            wakeups,
            looks: if listens { LOOKS_OF_LISTENERS } else { LOOKS },
            connections: OnceLock::new(),
            state: Mutex::default(),
            changed: Notify::new(),
        }
    }

    /// Names the connections that the task uses.
    pub(super) fn use_connections(&self, connections: &Arc<Connections<PostgresLink>>) {
        let _ = self.connections.set(Arc::downgrade(connections));
    }

    pub(super) const fn client(&self) -> ClientId {
        self.client
    }

    pub(super) const fn session(&self) -> &Session {
        &self.session
    }

    /// The one who sends a request for these acquisitions.
    pub(super) fn asker(&self, locks: impl IntoIterator<Item = (Resource, LockId)>) -> Asker {
        let state = self.state.lock();
        let is_seen = state.seen_at.is_some_and(|at| clock::monotonic().since(at) < LATELY);
        let has_place = !state.places.is_empty() && locks.into_iter().any(|key| state.places.contains_key(&key));
        Asker { client: self.client, is_seen, has_place }
    }

    /// Notes what a request for these acquisitions was told.
    pub(super) fn note(self: &Arc<Self>, told: Told, acquisitions: impl IntoIterator<Item = (Resource, LockId)>) {
        for (resource, ticket) in told.turns {
            self.wakeups.reserved(&resource, ticket);
        }
        let now = clock::monotonic();
        let mut state = self.state.lock();
        if told.is_seen {
            state.seen_at = Some(now);
        }
        if !state.places.is_empty() {
            for key in acquisitions {
                if !told.places.iter().any(|(resource, lock, _)| (resource, lock) == (&key.0, &key.1)) {
                    state.places.remove(&key);
                }
            }
        }
        if told.places.is_empty() {
            return;
        }
        for (resource, lock, number) in told.places {
            let reserved = told.reserved.iter().find(|(name, id, _)| (name, id) == (&resource, &lock));
            let reserved_until = reserved.map(|(_, _, left)| now.plus(*left));
            let place = Place { number, since: now, looks_at: now.plus(self.looks.0), reserved_until };
            let known = state.places.entry((resource, lock)).or_insert(place);
            (known.number, known.reserved_until) = (number, reserved_until);
        }
        self.go_on(&mut state);
    }

    /// Gives up a place, later.
    pub(super) fn leave(self: &Arc<Self>, resource: &Resource, lock: LockId) {
        let mut state = self.state.lock();
        let key = (resource.clone(), lock);
        state.places.remove(&key);
        state.given_up.push(key);
        self.go_on(&mut state);
    }

    /// The place of an acquisition, as it was last seen.
    pub(super) fn place(&self, resource: &Resource, lock: Option<LockId>) -> Option<u64> {
        let state = self.state.lock();
        let is_asked =
            |(name, number): &(Resource, LockId)| name == resource && lock.is_none_or(|lock| lock == *number);
        state.places.iter().find(|(key, _)| is_asked(key)).map(|(_, place)| place.number)
    }

    /// The reservation for another that an acquisition had to wait for when it last asked.
    pub(super) fn reserved_before(&self, resource: &Resource, lock: LockId) -> Option<Reserved> {
        let place = *self.state.lock().places.get(&(resource.clone(), lock))?;
        Some(Reserved { left: place.reserved_until?.since(clock::monotonic()), place: place.number })
    }

    /// Gives up all places, and waits for that.
    pub(super) fn end(self: &Arc<Self>) {
        let mut state = self.state.lock();
        let places: Vec<_> = state.places.drain().map(|(key, _)| key).collect();
        let mut given_up = std::mem::take(&mut state.given_up);
        drop(state);
        given_up.extend(places);
        let Some(connections) = self.connections.get().and_then(Weak::upgrade).filter(|_| !given_up.is_empty()) else {
            return;
        };
        let turns = Arc::clone(self);
        let leave = |link| async move {
            until(clock::monotonic().plus(PATIENCE), turns.leave_all(&link, given_up)).await;
        };
        // What stays in line is passed over in its turn.
        let _ = connections.block_on_background(leave);
    }

    fn go_on(self: &Arc<Self>, state: &mut State) {
        if state.is_running {
            return self.changed.notify_one();
        }
        let background = self.connections.get().and_then(Weak::upgrade).map(|connections| connections.background());
        // Without the task waiters poll.
        if let Some(Ok((runtime, link))) = background {
            state.is_running = true;
            let turns = Arc::clone(self);
            runtime.spawn(async move { turns.run(link).await });
        }
    }

    async fn run(self: Arc<Self>, link: Arc<PostgresLink>) {
        loop {
            match self.next() {
                Work::Leave(places) => self.leave_all(&link, places).await,
                Work::Look(places) => self.look(&link, places).await,
                Work::See => self.see(&link).await,
                Work::Wait(at) => drop(until(at, self.changed.notified()).await),
                Work::End => return,
            }
        }
    }

    fn next(&self) -> Work {
        let mut state = self.state.lock();
        if !state.given_up.is_empty() {
            return Work::Leave(std::mem::take(&mut state.given_up));
        }
        let now = clock::monotonic();
        if !state.places.is_empty() {
            state.waited_at = now;
        } else if now.since(state.waited_at) > UNSEEN {
            // The next one to wait says again that it is alive.
            state.is_running = false;
            return Work::End;
        }
        let sees_at = state.seen_at.map_or(now, |at| at.plus(UNSEEN / 5));
        if sees_at <= now {
            return Work::See;
        }
        let due = state.places.iter().filter(|(_, place)| place.looks_at <= now);
        let due: Vec<_> = due.map(|(key, _)| key.clone()).collect();
        if !due.is_empty() {
            return Work::Look(due);
        }
        Work::Wait(state.places.values().map(|place| place.looks_at).min().unwrap_or(sees_at).min(sees_at))
    }

    async fn ask(&self, link: &Arc<PostgresLink>, statement: &Statement) -> Option<leasehold_wire::postgres::Answer> {
        link.command(statement, clock::monotonic().plus(PATIENCE)).await.ok()
    }

    async fn leave_all(&self, link: &Arc<PostgresLink>, places: Vec<(Resource, LockId)>) {
        for (resource, lock) in places {
            let statement = self.session.leave(&resource, Ticket { client: self.client, lock }, PATIENCE * 3 / 4);
            let left = self.ask(link, &statement).await;
            if let Some(turn) = left.as_ref().and_then(Session::left) {
                self.wakeups.reserved(&resource, turn);
            }
        }
    }

    async fn see(&self, link: &Arc<PostgresLink>) {
        // A waiter that is not seen loses its place, and joins again.
        self.ask(link, &self.session.see(self.client)).await;
        self.state.lock().seen_at = Some(clock::monotonic());
        self.ask(link, &self.session.forget_unseen()).await;
    }

    async fn look(&self, link: &Arc<PostgresLink>, places: Vec<(Resource, LockId)>) {
        let answer = self.ask(link, &self.session.look_at_places(self.client, &places)).await;
        let sights = answer.and_then(|answer| Session::sights(answer).ok()).unwrap_or_default();
        let now = clock::monotonic();
        let mut due = Vec::new();
        let mut state = self.state.lock();
        for key in places {
            let Some(place) = state.places.get_mut(&key) else { continue };
            let sight = sights.iter().find(|sight| (&sight.resource, &sight.lock) == (&key.0, &key.1));
            match sight {
                Some(sight) if !sight.is_due => {
                    let number = sight.place.unwrap_or(1);
                    if number != place.number {
                        (place.number, place.since) = (number, now);
                    }
                    place.looks_at = now.plus(place.pause(self.looks, now));
                }
                sight => {
                    place.looks_at = now.plus(TOLD);
                    due.extend(sight.map(|_| key));
                }
            }
        }
        drop(state);
        for (resource, lock) in due {
            self.wakeups.reserved(&resource, Ticket { client: self.client, lock });
        }
    }
}

impl Place {
    fn pause(&self, (often, seldom): (Duration, Duration), now: Monotonic) -> Duration {
        let of_first = (now.since(self.since) / 16).clamp(often, seldom);
        of_first * u32::try_from(self.number.clamp(1, LAST_PLACE)).unwrap_or(1)
    }
}
