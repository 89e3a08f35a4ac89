//! Wake-ups: one connection that listens for releases while there are waiters.

use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use futures_util::FutureExt;
use leasehold_core::Resource;
use leasehold_wire::redis::Session;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::time::{sleep, timeout};
use tracing::Level;

use super::access::Access;
use super::connection::{Listening, Message};
use super::link::NoConnection;
use super::store_link::StoreLink;
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

    fn change(&self, change: Change) {
        let mut changes = self.changes.lock();
        if changes.is_none() {
            // Without a background runtime, waiters rely on their timers.
            let Ok((runtime, _)) = self.connections.background() else { return };
            let (sender, receiver) = unbounded_channel();
            runtime.spawn(Listener { access: Arc::clone(&self.access), watchers: HashMap::new() }.run(receiver));
            *changes = Some(sender);
        }
        if let Some(sender) = changes.as_ref() {
            let _ = sender.send(change);
        }
    }
}

struct Listener {
    access: Arc<Access>,
    watchers: HashMap<Resource, Weak<dyn Watcher>>,
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
                Ok(mut connection) => match self.listen(&mut connection, &mut changes, &mut pauses).await {
                    Stop::Over => return,
                    Stop::Idle => continue,
                    Stop::Broken => self.report(Level::DEBUG, |store| {
                        tracing::debug!(target: "leasehold", %store, "wake-ups interrupted");
                    }),
                },
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
                    let (wanted, left): (Vec<_>, Vec<_>) =
                        touched.into_iter().partition(|resource| self.watchers.contains_key(resource));
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
                self.watchers.insert(resource.clone(), watcher);
                resource
            }
            Change::Unwatch(resource) => {
                self.watchers.remove(&resource);
                resource
            }
        }
    }

    /// Subscribes, and notifies the watchers after the confirmation: so no release in between is missed.
    async fn subscribe(&self, connection: &mut Listening, resources: &[Resource]) -> bool {
        match send(connection, "SUBSCRIBE", resources).await {
            Some(Ok(())) => {
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
