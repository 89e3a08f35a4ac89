//! Wake-ups: one connection that listens for releases while somebody waits.

use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use ::redis::aio::PubSubSink;
use futures_util::{FutureExt, StreamExt};
use leasehold_core::Resource;
use leasehold_wire::redis::Session;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::unconstrained;
use tokio::time::{sleep, timeout};
use tracing::Level;

use super::access::{Access, Listening};
use super::link::NoConnection;
use super::store_link::StoreLink;
use crate::reports;
use crate::sync::Mutex;
use crate::transport::Watcher;
use crate::transport::connections::Connections;
use crate::transport::pauses::Pauses;

/// The time limit for a confirmation; after it the connection counts as dead.
const CONFIRM_PATIENCE: Duration = Duration::from_secs(2);
/// Until the next connection is tried after a failure; waiters poll meanwhile.
const PAUSES: Pauses = Pauses::new(Duration::from_millis(50), Duration::from_secs(5));
/// The time for which the connection is kept after the last waiter has gone.
const IDLE: Duration = Duration::from_secs(30);
/// Channels in one command. Their confirmations come at once, and count as one (see `limit`).
const CHUNK: usize = 100;

/// Listens, in the background, for as long as it is not dropped.
pub(super) struct Subscriber {
    access: Arc<Access>,
    connections: Arc<Connections<StoreLink>>,
    wishes: Mutex<Option<UnboundedSender<Wish>>>,
}

enum Wish {
    Watch(Resource, Weak<dyn Watcher>),
    Unwatch(Resource),
}

impl Subscriber {
    pub(super) fn new(access: Arc<Access>, connections: Arc<Connections<StoreLink>>) -> Self {
        Self { access, connections, wishes: Mutex::default() }
    }

    pub(super) fn watch(&self, resource: &Resource, watcher: &Arc<dyn Watcher>) {
        self.wish(Wish::Watch(resource.clone(), Arc::downgrade(watcher)));
    }

    pub(super) fn unwatch(&self, resource: &Resource) {
        self.wish(Wish::Unwatch(resource.clone()));
    }

    fn wish(&self, wish: Wish) {
        let mut wishes = self.wishes.lock();
        if wishes.is_none() {
            // Where there is no background to listen in, waiters have their timers.
            let Ok((runtime, _)) = self.connections.background() else { return };
            let (sender, receiver) = unbounded_channel();
            runtime.spawn(Listener { access: Arc::clone(&self.access), watchers: HashMap::new() }.run(receiver));
            *wishes = Some(sender);
        }
        if let Some(sender) = wishes.as_ref() {
            let _ = sender.send(wish);
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
    /// Nobody has waited for a while.
    Idle,
    Broken,
}

impl Listener {
    async fn run(mut self, mut wishes: UnboundedReceiver<Wish>) {
        let mut pauses = PAUSES;
        loop {
            if self.watchers.is_empty() {
                let Some(wish) = wishes.recv().await else { return };
                self.note(wish);
                continue;
            }
            match self.access.listen().await {
                Ok(mut connection) => match self.listen(&mut connection, &mut wishes, &mut pauses).await {
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
                    wish = wishes.recv() => match wish {
                        Some(wish) => { self.note(wish); }
                        None => return,
                    },
                }
            }
        }
    }

    async fn listen(
        &mut self,
        connection: &mut Listening,
        wishes: &mut UnboundedReceiver<Wish>,
        pauses: &mut Pauses,
    ) -> Stop {
        let all: Vec<Resource> = self.watchers.keys().cloned().collect();
        for some in all.chunks(CHUNK) {
            if !self.subscribe(&mut connection.sink, some).await {
                return Stop::Broken;
            }
            self.catch_up(connection);
        }
        let (access, address) = (Arc::clone(&self.access), connection.address.clone());
        let mut elsewhere = std::pin::pin!(access.turns_away_from(address.as_ref()));
        // As long as those who tell where to listen disagree with what was found, one try must not follow the other.
        if elsewhere.as_mut().now_or_never().is_some() {
            return Stop::Broken;
        }
        *pauses = PAUSES;
        loop {
            let idle = sleep(IDLE);
            tokio::select! {
                // Another server has what is told by now.
                () = &mut elsewhere => return Stop::Broken,
                message = connection.stream.next() => match message {
                    Some(message) => {
                        self.tell(&message);
                        self.catch_up(connection);
                    }
                    None => return Stop::Broken,
                },
                wish = wishes.recv() => {
                    let Some(wish) = wish else { return Stop::Over };
                    // Many waiters come and go at once: what they want travels together.
                    let mut touched = vec![self.note(wish)];
                    while let Ok(wish) = wishes.try_recv() {
                        touched.push(self.note(wish));
                    }
                    touched.sort_unstable();
                    touched.dedup();
                    let (wanted, left): (Vec<_>, Vec<_>) =
                        touched.into_iter().partition(|resource| self.watchers.contains_key(resource));
                    for some in wanted.chunks(CHUNK) {
                        if !self.subscribe(&mut connection.sink, some).await {
                            return Stop::Broken;
                        }
                        self.catch_up(connection);
                    }
                    for some in left.chunks(CHUNK) {
                        if !unsubscribe(&mut connection.sink, some).await {
                            return Stop::Broken;
                        }
                        self.catch_up(connection);
                    }
                }
                () = idle, if self.watchers.is_empty() => return Stop::Idle,
            }
        }
    }

    /// Takes everything whole that has come. Only after something whole came, so that a message without end is not taken
    /// for one that nothing has come of yet.
    fn catch_up(&self, connection: &mut Listening) {
        // Unconstrained, or else it would seem to be over before it is.
        while let Some(Some(message)) = unconstrained(connection.stream.next()).now_or_never() {
            self.tell(&message);
        }
        connection.limit.reset();
    }

    /// Answers what the wish is about.
    fn note(&mut self, wish: Wish) -> Resource {
        match wish {
            Wish::Watch(resource, watcher) => {
                self.watchers.insert(resource.clone(), watcher);
                resource
            }
            Wish::Unwatch(resource) => {
                self.watchers.remove(&resource);
                resource
            }
        }
    }

    /// Tells the watchers once the server has confirmed: a release in between is then not missed.
    async fn subscribe(&self, sink: &mut PubSubSink, resources: &[Resource]) -> bool {
        if resources.is_empty() {
            return true;
        }
        let channels: Vec<Vec<u8>> = resources.iter().map(Session::channel).collect();
        match timeout(CONFIRM_PATIENCE, sink.subscribe(channels)).await {
            Ok(Ok(())) => {
                for resource in resources {
                    if let Some(watcher) = self.watchers.get(resource).and_then(Weak::upgrade) {
                        watcher.subscribed(resource);
                    }
                }
                true
            }
            Ok(Err(error)) => {
                self.report(Level::WARN, move |store| {
                    tracing::warn!(target: "leasehold", %store, %error, "no wake-ups: waiters poll");
                });
                false
            }
            Err(_) => false,
        }
    }

    fn report(&self, level: Level, report: impl FnOnce(&Access) + Send + 'static) {
        let access = Arc::clone(&self.access);
        reports::leave(level, move || report(&access));
    }

    fn tell(&self, message: &::redis::Msg) {
        let channel = message.get_channel_name().as_bytes();
        let resource = Session::released_by(channel, message.get_payload_bytes());
        if let Some(resource) = resource
            && let Some(watcher) = self.watchers.get(&resource).and_then(Weak::upgrade)
        {
            watcher.released(&resource);
        }
    }
}

async fn unsubscribe(sink: &mut PubSubSink, resources: &[Resource]) -> bool {
    if resources.is_empty() {
        return true;
    }
    let channels: Vec<Vec<u8>> = resources.iter().map(Session::channel).collect();
    matches!(timeout(CONFIRM_PATIENCE, sink.unsubscribe(channels)).await, Ok(Ok(())))
}
