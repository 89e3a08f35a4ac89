//! Wake-ups: one connection that listens for releases while there are waiters.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Weak};
use std::time::Duration;

use futures_util::FutureExt;
use leasehold_core::Resource;
use leasehold_wire::redis::Codec;
use tokio::runtime::{Handle, Id};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::time::{sleep, timeout};
use tracing::Level;

use super::access::RedisAccess;
use super::connection::{Listening as Channels, Message};
use super::link::NoConnection;
use super::store_link::StoreLink;
use crate::host::sync::Mutex;
use crate::reports;
use crate::transport::Watcher;
use crate::transport::connections::Connections;
use crate::transport::pauses::Pauses;

/// The time limit for a confirmation; after it the connection counts as dead.
pub(super) const CONFIRM_PATIENCE: Duration = Duration::from_secs(2);
/// The pauses between attempts to connect after a failure; waiters poll meanwhile.
const PAUSES: Pauses = Pauses::new(Duration::from_millis(50), Duration::from_secs(5));
/// The time for which the connection is kept after the last waiter has gone.
const IDLE: Duration = Duration::from_secs(30);
/// The channels in one command.
const CHUNK: usize = 100;

/// Listens until it is dropped.
pub(super) struct Subscriber {
    access: Arc<RedisAccess>,
    connections: Arc<Connections<StoreLink>>,
    watchers: Arc<Mutex<Watchers>>,
    listening: Mutex<Option<Listening>>,
}

/// Those who wait, by resource.
#[derive(Default)]
struct Watchers {
    of: HashMap<Resource, Weak<dyn Watcher>>,
    /// It also hears of tickets for which nobody waits: some have ended, and others are about to learn that they wait.
    last: Option<Weak<dyn Watcher>>,
}

/// A listener at work.
struct Listening {
    /// Takes the resources whose watchers have changed.
    changes: UnboundedSender<Resource>,
    /// The runtime of all callers, if it listens there; `None` in the background.
    home: Option<Id>,
}

impl Subscriber {
    pub(super) fn new(access: Arc<RedisAccess>, connections: Arc<Connections<StoreLink>>) -> Self {
        Self { access, connections, watchers: Arc::default(), listening: Mutex::default() }
    }

    pub(super) fn watch(&self, resource: &Resource, watcher: &Arc<dyn Watcher>) {
        let mut watchers = self.watchers.lock();
        watchers.last = Some(Arc::downgrade(watcher));
        watchers.of.insert(resource.clone(), Arc::downgrade(watcher));
        drop(watchers);
        self.change(resource);
    }

    pub(super) fn unwatch(&self, resource: &Resource) {
        self.watchers.lock().of.remove(resource);
        self.change(resource);
    }

    /// Listens no longer.
    pub(super) fn close(&self) {
        drop(self.listening.lock().take());
    }

    /// Has a change of watchers listened to. Where all callers are tasks of one runtime, that is done there: a turn is then
    /// heard, taken and told on one thread. From the moment at which others wait too, it is done in the background, since
    /// a runtime that is blocked must not keep a turn from them.
    fn change(&self, resource: &Resource) {
        let mut listening = self.listening.lock();
        let only = self.connections.only_runtime();
        let moves = |listening: &Listening| {
            listening.home.is_some_and(|home| only.as_ref().is_none_or(|only| only.id() != home))
        };
        let moved = listening.take_if(|listening| moves(listening)).is_some();
        if listening.is_none() {
            // Without a background runtime, waiters rely on their timers.
            let Ok((background, _)) = self.connections.background() else { return };
            let (changes, receiver) = unbounded_channel();
            let home = only.filter(|_| !moved);
            *listening = Some(Listening { changes, home: home.as_ref().map(Handle::id) });
            let shift = Shift {
                listener: Some(Listener {
                    access: Arc::clone(&self.access),
                    watchers: Arc::clone(&self.watchers),
                    hinted: HashSet::new(),
                    generation: 0,
                    changes: receiver,
                }),
                background: home.is_some().then(|| background.clone()),
            };
            home.unwrap_or(background).spawn(shift.run());
        }
        if let Some(listening) = listening.as_ref() {
            let _ = listening.changes.send(resource.clone());
        }
    }
}

/// A listener's time in a runtime. If that ends first, the listener goes on in the background.
struct Shift {
    listener: Option<Listener>,
    background: Option<Handle>,
}

impl Shift {
    async fn run(mut self) {
        if let Some(listener) = &mut self.listener {
            listener.run().await;
            self.listener = None;
        }
    }
}

impl Drop for Shift {
    fn drop(&mut self) {
        let Some(mut listener) = self.listener.take() else { return };
        listener.fall_silent();
        if let Some(background) = self.background.take() {
            background.spawn(Self { listener: Some(listener), background: None }.run());
        }
    }
}

struct Listener {
    access: Arc<RedisAccess>,
    watchers: Arc<Mutex<Watchers>>,
    /// Those whose hints are subscribed to.
    hinted: HashSet<Resource>,
    /// The number of its subscription to the client's own channel.
    generation: u64,
    changes: UnboundedReceiver<Resource>,
}

/// The reason why listening stopped.
enum Stop {
    /// The client is gone.
    Over,
    /// There have been no waiters for a while.
    Idle,
    Broken,
}

impl Listener {
    async fn run(&mut self) {
        let mut pauses = PAUSES;
        loop {
            if self.is_idle() {
                if self.changes.recv().await.is_none() {
                    return;
                }
                continue;
            }
            match self.access.listen().await {
                Ok(mut connection) => {
                    let stop = self.listen(&mut connection, &mut pauses).await;
                    self.fall_silent();
                    match stop {
                        Stop::Over => return,
                        Stop::Idle => continue,
                        Stop::Broken => self.report(Level::DEBUG, |store| {
                            tracing::debug!(target: "leasehold", %store, "wake-ups interrupted");
                        }),
                    }
                }
                Err(NoConnection::Fault(fault)) => self.report(Level::DEBUG, move |store| {
                    tracing::debug!(target: "leasehold", %store, %fault, "no wake-ups for now");
                }),
                Err(NoConnection::Refused(refusal)) => self.report(Level::WARN, move |store| {
                    tracing::warn!(target: "leasehold", %store, %refusal, "no wake-ups: waiters poll");
                }),
            }
            let rest = sleep(pauses.next());
            let mut rest = std::pin::pin!(rest);
            loop {
                tokio::select! {
                    () = &mut rest => break,
                    change = self.changes.recv() => if change.is_none() {
                        return;
                    },
                }
            }
        }
    }

    async fn listen(&mut self, connection: &mut Channels, pauses: &mut Pauses) -> Stop {
        if !self.subscribe_own(connection).await {
            return Stop::Broken;
        }
        let all: Vec<Resource> = self.watchers.lock().of.keys().cloned().collect();
        for some in all.chunks(CHUNK) {
            if !self.subscribe(connection, some).await {
                return Stop::Broken;
            }
        }
        let (access, address) = (Arc::clone(&self.access), connection.address.clone());
        let mut elsewhere = std::pin::pin!(access.turns_away_from(address.as_ref()));
        // If the Sentinels or the map disagree with the server that was found, attempts need a pause between them.
        if elsewhere.as_mut().now_or_never().is_some() {
            return Stop::Broken;
        }
        *pauses = PAUSES;
        loop {
            let idle = sleep(IDLE);
            tokio::select! {
                // Releases are published by another server now.
                () = &mut elsewhere => return Stop::Broken,
                message = connection.next() => match message {
                    Ok(message) => self.tell(&message),
                    Err(_) => return Stop::Broken,
                },
                change = self.changes.recv() => {
                    let Some(change) = change else { return Stop::Over };
                    // Many waiters come and go at once: their changes are sent together.
                    let mut touched = vec![change];
                    while let Ok(change) = self.changes.try_recv() {
                        touched.push(change);
                    }
                    touched.sort_unstable();
                    touched.dedup();
                    let (mut wanted, mut left): (Vec<_>, Vec<_>) = {
                        let watchers = self.watchers.lock();
                        touched.into_iter().partition(|resource| watchers.of.contains_key(resource))
                    };
                    if !wanted.is_empty() && !self.subscribe_own(connection).await {
                        return Stop::Broken;
                    }
                    // A waiter in the queue is notified on the client's own channel.
                    let queues = self.access.queues().cloned();
                    wanted.retain(|resource| !queues.as_ref().is_some_and(|queues| queues.is_told_of(resource)));
                    left.retain(|resource| self.hinted.remove(resource));
                    for some in wanted.chunks(CHUNK) {
                        if !self.subscribe(connection, some).await {
                            return Stop::Broken;
                        }
                    }
                    for some in left.chunks(CHUNK) {
                        if send(connection, "UNSUBSCRIBE", some).await.is_none_or(|done| done.is_err()) {
                            return Stop::Broken;
                        }
                    }
                }
                () = idle, if self.is_idle() => return Stop::Idle,
            }
        }
    }

    fn is_idle(&self) -> bool {
        self.watchers.lock().of.is_empty()
    }

    /// Nothing is subscribed any more.
    fn fall_silent(&mut self) {
        self.hinted.clear();
        if let Some(queues) = self.access.queues() {
            queues.unsubscribed(self.generation);
        }
    }

    /// Subscribes to the client's own channel, once somebody wants to stand in the queue. A user without the right to it does
    /// without a place.
    async fn subscribe_own(&mut self, connection: &mut Channels) -> bool {
        let generation = self.generation;
        let queues = self.access.queues().filter(|queues| queues.is_wanted() && !queues.is_subscribed_as(generation));
        let Some(queues) = queues else { return true };
        let channels = vec![queues.client().channel()];
        match timeout(CONFIRM_PATIENCE, connection.change("SUBSCRIBE", channels)).await {
            Ok(Ok(())) => self.generation = queues.subscribed(),
            Ok(Err(error)) => self.report(Level::DEBUG, move |store| {
                tracing::debug!(target: "leasehold", %store, %error, "no place in the queue: waiters are woken with \
                                                                      all others");
            }),
            Err(_) => return false,
        }
        true
    }

    /// Subscribes, and notifies the watchers after the confirmation: so no release in between is missed.
    async fn subscribe(&mut self, connection: &mut Channels, resources: &[Resource]) -> bool {
        match send(connection, "SUBSCRIBE", resources).await {
            Some(Ok(())) => {
                self.hinted.extend(resources.iter().cloned());
                for resource in resources {
                    if let Some(watcher) = self.watcher(resource) {
                        watcher.subscribed(resource);
                    }
                }
                true
            }
            Some(Err(error)) => {
                self.report(Level::WARN, move |store| {
                    tracing::warn!(target: "leasehold", %store, %error, "no wake-ups: waiters poll");
                });
                false
            }
            None => false,
        }
    }

    fn watcher(&self, resource: &Resource) -> Option<Arc<dyn Watcher>> {
        self.watchers.lock().of.get(resource).and_then(Weak::upgrade)
    }

    fn last_watcher(&self) -> Option<Arc<dyn Watcher>> {
        self.watchers.lock().last.as_ref().and_then(Weak::upgrade)
    }

    fn report(&self, level: Level, report: impl FnOnce(&RedisAccess) + Send + 'static) {
        let access = Arc::clone(&self.access);
        reports::queue(level, move || report(&access));
    }

    fn tell(&self, (channel, payload): &Message) {
        if self.access.queues().is_some_and(|queues| queues.client().channel() == *channel) {
            // A test has nothing to say.
            if let Some((resource, lock, after)) = Codec::reserved_by(payload)
                && let Some(watcher) = self.last_watcher()
            {
                watcher.reserved(&resource, lock, after);
            }
            return;
        }
        if let Some(resource) = Codec::released_by(channel, payload)
            && let Some(watcher) = self.watcher(&resource)
        {
            watcher.released(&resource);
        }
    }
}

/// Changes the subscription. `None` where it is not confirmed in time.
async fn send(connection: &mut Channels, name: &str, resources: &[Resource]) -> Option<Result<(), String>> {
    let channels = resources.iter().map(Codec::channel).collect();
    timeout(CONFIRM_PATIENCE, connection.change(name, channels)).await.ok()
}
