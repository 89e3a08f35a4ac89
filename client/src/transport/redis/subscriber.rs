//! Wake-ups: one connection that listens for releases while there are waiters.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Weak};
use std::time::Duration;

use futures_util::FutureExt;
use leasehold_core::{LockId, Resource};
use leasehold_wire::redis::Session;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::time::{sleep, timeout};
use tracing::Level;

use super::access::Access;
use super::connection::{Listening, Message};
use super::line::Lines;
use super::link::NoConnection;
use super::store_link::StoreLink;
use crate::clock;
use crate::reports;
use crate::sync::Mutex;
use crate::transport::Watcher;
use crate::transport::connections::Connections;
use crate::transport::pauses::Pauses;

/// The time limit for a confirmation; after it the connection counts as dead.
const CONFIRM_PATIENCE: Duration = Duration::from_secs(2);
/// The pauses between attempts to connect after a failure; waiters poll meanwhile.
const PAUSES: Pauses = Pauses::new(Duration::from_millis(50), Duration::from_secs(5));
/// The time for which the connection is kept after the last waiter has gone.
const IDLE: Duration = Duration::from_secs(30);
/// The channels in one command.
const CHUNK: usize = 100;

/// Listens in the background until it is dropped.
pub(super) struct Subscriber {
    access: Arc<Access>,
    connections: Arc<Connections<StoreLink>>,
    changes: Mutex<Option<UnboundedSender<Change>>>,
}

enum Change {
    Watch(Resource, Weak<dyn Watcher>),
    Unwatch(Resource),
}

impl Subscriber {
    pub(super) fn new(access: Arc<Access>, connections: Arc<Connections<StoreLink>>) -> Self {
        Self { access, connections, changes: Mutex::default() }
    }

    pub(super) fn watch(&self, resource: &Resource, watcher: &Arc<dyn Watcher>) {
        self.change(Change::Watch(resource.clone(), Arc::downgrade(watcher)));
    }

    pub(super) fn unwatch(&self, resource: &Resource) {
        self.change(Change::Unwatch(resource.clone()));
    }

    /// Gives up a ticket in the background, if there may be one.
    pub(super) fn leave_line(&self, lines: &Lines, resource: &Resource, lock: LockId) {
        if lines.is_subscribed() {
            leave_line(&self.connections, lines, resource, lock);
        }
    }

    fn change(&self, change: Change) {
        let mut changes = self.changes.lock();
        if changes.is_none() {
            // Without a background runtime, waiters rely on their timers.
            let Ok((runtime, _)) = self.connections.background() else { return };
            let (sender, receiver) = unbounded_channel();
            let listener = Listener {
                access: Arc::clone(&self.access),
                watchers: HashMap::new(),
                last_watcher: None,
                hinted: HashSet::new(),
            };
            runtime.spawn(listener.run(receiver));
            *changes = Some(sender);
        }
        if let Some(sender) = changes.as_ref() {
            let _ = sender.send(change);
        }
    }
}

/// Sends the command that gives up a ticket. One that is lost leaves a ticket that is passed over in its turn.
fn leave_line(connections: &Connections<StoreLink>, lines: &Lines, resource: &Resource, lock: LockId) {
    let Ok((runtime, link)) = connections.background() else { return };
    let command = Session::leave(lines.client(), resource, lock);
    runtime.spawn(async move {
        if let StoreLink::Single(link) = &*link {
            let deadline = clock::monotonic().plus(CONFIRM_PATIENCE);
            let _ = link.command(&[command], deadline).await;
        }
    });
}

struct Listener {
    access: Arc<Access>,
    watchers: HashMap<Resource, Weak<dyn Watcher>>,
    /// It also hears of tickets for which nobody waits: some have ended, and others are about to learn that they wait.
    last_watcher: Option<Weak<dyn Watcher>>,
    /// Those whose hints are subscribed to.
    hinted: HashSet<Resource>,
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
    async fn run(mut self, mut changes: UnboundedReceiver<Change>) {
        let mut pauses = PAUSES;
        loop {
            if self.watchers.is_empty() {
                let Some(change) = changes.recv().await else { return };
                self.note(change);
                continue;
            }
            match self.access.listen().await {
                Ok(mut connection) => {
                    let stop = self.listen(&mut connection, &mut changes, &mut pauses).await;
                    self.hinted.clear();
                    if let Some(lines) = self.access.lines() {
                        lines.unsubscribed();
                    }
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
                    tracing::warn!(target: "leasehold", %store, ?refusal, "no wake-ups: waiters poll");
                }),
            }
            let rest = sleep(pauses.next());
            let mut rest = std::pin::pin!(rest);
            loop {
                tokio::select! {
                    () = &mut rest => break,
                    change = changes.recv() => match change {
                        Some(change) => { self.note(change); }
                        None => return,
                    },
                }
            }
        }
    }

    async fn listen(
        &mut self,
        connection: &mut Listening,
        changes: &mut UnboundedReceiver<Change>,
        pauses: &mut Pauses,
    ) -> Stop {
        if !self.subscribe_own(connection).await {
            return Stop::Broken;
        }
        let all: Vec<Resource> = self.watchers.keys().cloned().collect();
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
                change = changes.recv() => {
                    let Some(change) = change else { return Stop::Over };
                    // Many waiters come and go at once: their changes are sent together.
                    let mut touched = vec![self.note(change)];
                    while let Ok(change) = changes.try_recv() {
                        touched.push(self.note(change));
                    }
                    touched.sort_unstable();
                    touched.dedup();
                    let (mut wanted, mut left): (Vec<_>, Vec<_>) =
                        touched.into_iter().partition(|resource| self.watchers.contains_key(resource));
                    if !wanted.is_empty() && !self.subscribe_own(connection).await {
                        return Stop::Broken;
                    }
                    // Who stands in line is told on the client's own channel.
                    let lines = self.access.lines().cloned();
                    wanted.retain(|resource| !lines.as_ref().is_some_and(|lines| lines.is_told_of(resource)));
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
                () = idle, if self.watchers.is_empty() => return Stop::Idle,
            }
        }
    }

    /// Notes a change, and returns its resource.
    fn note(&mut self, change: Change) -> Resource {
        match change {
            Change::Watch(resource, watcher) => {
                self.last_watcher = Some(Weak::clone(&watcher));
                self.watchers.insert(resource.clone(), watcher);
                resource
            }
            Change::Unwatch(resource) => {
                self.watchers.remove(&resource);
                resource
            }
        }
    }

    /// Subscribes to the client's own channel, once somebody wants to stand in line. A user without the right to it does
    /// without a place.
    async fn subscribe_own(&self, connection: &mut Listening) -> bool {
        let Some(lines) = self.access.lines().filter(|lines| lines.is_wanted() && !lines.is_subscribed()) else {
            return true;
        };
        let channels = vec![lines.client().channel()];
        match timeout(CONFIRM_PATIENCE, connection.change("SUBSCRIBE", channels)).await {
            Ok(Ok(())) => lines.subscribed(),
            Ok(Err(error)) => self.report(Level::DEBUG, move |store| {
                tracing::debug!(target: "leasehold", %store, %error, "no place in line: waiters are told with all others");
            }),
            Err(_) => return false,
        }
        true
    }

    /// Subscribes, and notifies the watchers after the confirmation: so no release in between is missed.
    async fn subscribe(&mut self, connection: &mut Listening, resources: &[Resource]) -> bool {
        match send(connection, "SUBSCRIBE", resources).await {
            Some(Ok(())) => {
                self.hinted.extend(resources.iter().cloned());
                for resource in resources {
                    if let Some(watcher) = self.watchers.get(resource).and_then(Weak::upgrade) {
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

    fn report(&self, level: Level, report: impl FnOnce(&Access) + Send + 'static) {
        let access = Arc::clone(&self.access);
        reports::queue(level, move || report(&access));
    }

    fn tell(&self, (channel, payload): &Message) {
        if self.access.lines().is_some_and(|lines| lines.client().channel() == *channel) {
            // A test has nothing to say.
            if let Some((resource, lock)) = Session::reserved_by(payload)
                && let Some(watcher) = self.last_watcher.as_ref().and_then(Weak::upgrade)
            {
                watcher.reserved(&resource, lock);
            }
            return;
        }
        if let Some(resource) = Session::released_by(channel, payload)
            && let Some(watcher) = self.watchers.get(&resource).and_then(Weak::upgrade)
        {
            watcher.released(&resource);
        }
    }
}

/// Changes the subscription. `None` where it is not confirmed in time.
async fn send(connection: &mut Listening, name: &str, resources: &[Resource]) -> Option<Result<(), String>> {
    let channels = resources.iter().map(Session::channel).collect();
    timeout(CONFIRM_PATIENCE, connection.change(name, channels)).await.ok()
}
