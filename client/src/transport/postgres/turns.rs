//! The places of one client in the queue, and the task that looks after them: it says that the client is alive, looks for turns
//! that nobody tells, and gives up places.
//!
//! The server tells of turns only where somebody listens. Elsewhere waiters look: the first in the queue every few milliseconds at best,
//! those behind it less often, and all of them less often the longer nothing happens.

use std::sync::OnceLock;
use std::time::Duration;

use leasehold_core::queue::{ClientId, Reserved, Ticket, UNSEEN};
use leasehold_core::{LockId, Resource};
use leasehold_wire::postgres::{Asker, Codec, Statement, Told};
use tokio::sync::Notify;

use super::link::PostgresLink;
use crate::host::clock;
use crate::host::sync::{Arc, Mutex, Weak};
use crate::transport::connections::Connections;
use crate::transport::deadline::until;
use crate::transport::places::{Key, Pace, Places, Sight, Work};
use crate::transport::wakeups::Wakeups;

const PACE: Pace = Pace { looks: (Duration::from_millis(2), Duration::from_millis(100)), lingers: UNSEEN };
/// The same for one who is told of its turn.
const PACE_OF_LISTENERS: Pace = Pace { looks: (Duration::from_millis(200), Duration::from_secs(1)), ..PACE };
/// The longest that a statement of the task may take.
const PATIENCE: Duration = Duration::from_secs(1);
/// A client that was seen this long ago says first that it is alive.
const LATELY: Duration = Duration::from_secs(5);

/// The places of a client, and the task that looks after them, once there is one.
pub(super) struct Turns {
    client: ClientId,
    codec: Codec,
    wakeups: Arc<Wakeups>,
    connections: OnceLock<Weak<Connections<PostgresLink>>>,
    state: Mutex<State>,
    changed: Notify,
}

struct State {
    places: Places,
    is_running: bool,
}

impl Turns {
    /// `codec` has queues.
    pub(super) fn new(client: ClientId, codec: Codec, wakeups: Arc<Wakeups>, listens: bool) -> Self {
        Self {
            client,
            codec,
            wakeups,
            connections: OnceLock::new(),
            state: Mutex::new(State {
                places: Places::new(if listens { PACE_OF_LISTENERS } else { PACE }),
                is_running: false,
            }),
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

    pub(super) const fn codec(&self) -> &Codec {
        &self.codec
    }

    /// The one who sends a request for these acquisitions.
    pub(super) fn asker(&self, locks: impl IntoIterator<Item = Key>) -> Asker {
        let places = &self.state.lock().places;
        let is_seen = places.unseen_for(clock::monotonic()) < LATELY;
        let has_place = !places.is_empty() && locks.into_iter().any(|key| places.has(&key));
        Asker { client: self.client, is_seen, has_place }
    }

    /// Notes what a request for these acquisitions was told.
    pub(super) fn note(self: &Arc<Self>, told: Told, acquisitions: impl IntoIterator<Item = Key>) {
        for (resource, ticket) in told.turns {
            self.wakeups.reserved(&resource, ticket);
        }
        let now = clock::monotonic();
        let mut state = self.state.lock();
        if told.is_seen {
            state.places.see(now);
        }
        if !state.places.is_empty() {
            for key in acquisitions {
                if !told.places.iter().any(|(resource, lock, _)| (resource, lock) == (&key.0, &key.1)) {
                    state.places.note(key, None, now);
                }
            }
        }
        if told.places.is_empty() {
            return;
        }
        for (resource, lock, number) in told.places {
            let reserved = told.reserved.iter().find(|(name, id, _)| (name, id) == (&resource, &lock));
            state.places.note((resource, lock), Some((number, reserved.map(|(_, _, left)| *left))), now);
        }
        self.go_on(&mut state);
    }

    /// Gives up a place, later.
    pub(super) fn leave(self: &Arc<Self>, resource: &Resource, lock: LockId) {
        let mut state = self.state.lock();
        state.places.leave((resource.clone(), lock));
        self.go_on(&mut state);
    }

    /// The place of an acquisition, as it was last seen.
    pub(super) fn place(&self, resource: &Resource, lock: Option<LockId>) -> Option<u64> {
        self.state.lock().places.place(resource, lock)
    }

    /// The reservation for another that an acquisition had to wait for when it last asked.
    pub(super) fn reserved_before(&self, resource: &Resource, lock: LockId) -> Option<Reserved> {
        self.state.lock().places.reserved_before(resource, lock, clock::monotonic())
    }

    /// Gives up all places, and waits for that.
    pub(super) fn end(self: &Arc<Self>) {
        let mut state = self.state.lock();
        state.places.leave_all();
        let given_up = state.places.take_given_up();
        drop(state);
        let Some(connections) = self.connections.get().and_then(Weak::upgrade).filter(|_| !given_up.is_empty()) else {
            return;
        };
        let turns = Arc::clone(self);
        let leave = |link| async move {
            until(clock::monotonic().plus(PATIENCE), turns.leave_all(&link, given_up)).await;
        };
        // What stays in the queue is passed over in its turn.
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
                Work::Look(places) => self.look(&link, &places).await,
                Work::See => self.see(&link).await,
                Work::Wait(at) => drop(until(at, self.changed.notified()).await),
                Work::Rest => return,
            }
        }
    }

    fn next(&self) -> Work {
        let mut state = self.state.lock();
        let work = state.places.next(clock::monotonic());
        // The next one to wait says again that it is alive.
        state.is_running = work != Work::Rest;
        work
    }

    async fn ask(&self, link: &Arc<PostgresLink>, statement: &Statement) -> Option<leasehold_wire::postgres::Answer> {
        link.command(statement, clock::monotonic().plus(PATIENCE)).await.ok()
    }

    async fn leave_all(&self, link: &Arc<PostgresLink>, places: Vec<Key>) {
        for (resource, lock) in places {
            let statement = self.codec.leave(&resource, Ticket { client: self.client, lock }, PATIENCE * 3 / 4);
            let left = self.ask(link, &statement).await;
            if let Some(turn) = left.as_ref().and_then(Codec::left) {
                self.wakeups.reserved(&resource, turn);
            }
        }
    }

    async fn see(&self, link: &Arc<PostgresLink>) {
        // A waiter that is not seen loses its place, and joins again.
        self.ask(link, &self.codec.see(self.client)).await;
        self.state.lock().places.see(clock::monotonic());
        self.ask(link, &self.codec.forget_unseen()).await;
    }

    async fn look(&self, link: &Arc<PostgresLink>, places: &[Key]) {
        let answer = self.ask(link, &self.codec.look_at_places(self.client, places)).await;
        let sights = answer.and_then(|answer| Codec::sights(answer).ok()).unwrap_or_default();
        let now = clock::monotonic();
        let mut state = self.state.lock();
        let due = places.iter().filter(|key| {
            let seen = sights.iter().find(|sight| (&sight.resource, &sight.lock) == (&key.0, &key.1));
            let sight = seen.map(|seen| if seen.is_due { Sight::Due } else { Sight::Waits(seen.place.unwrap_or(1)) });
            state.places.sighted(key, sight, now)
        });
        let due: Vec<&Key> = due.collect();
        drop(state);
        for (resource, lock) in due {
            self.wakeups.reserved(resource, Ticket { client: self.client, lock: *lock });
        }
    }
}
