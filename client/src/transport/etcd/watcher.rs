//! Wake-ups: streams of the changes of those locks that somebody waits for.
//!
//! They are a convenience: while there is none, waiters poll.

use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use leasehold_core::Resource;
use leasehold_core::op::{Fault, FaultKind, Outcome, Refusal};
use leasehold_wire::etcd::{Codec, Watched};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::JoinHandle;
use tracing::Level;

use super::members::{EtcdAccess, EtcdLink};
use crate::host::clock;
use crate::host::sync::Mutex;
use crate::reports;
use crate::transport::Watcher;
use crate::transport::connections::Connections;
use crate::transport::deadline::until;
use crate::transport::pauses::Pauses;
use crate::transport::readiness::CONNECT_PATIENCE;
use crate::transport::web_link::WebStore as _;

/// The most streams of one client. A stream cannot be told of more locks, so those that come later get one of their own.
const MOST_STREAMS: usize = 8;
/// The longest line that is read. Nothing of one lock is longer.
const MOST_LINE: usize = 1 << 20;
/// The pauses between attempts to connect after a failure; waiters poll meanwhile.
const PAUSES: Pauses = Pauses::new(Duration::from_millis(50), Duration::from_secs(5));

type Waiting = Arc<Mutex<HashMap<Resource, Weak<dyn Watcher>>>>;

/// Watches in the background until it is dropped.
pub(super) struct EtcdWatcher {
    connections: Arc<Connections<EtcdLink>>,
    codec: Codec,
    changes: Mutex<Option<UnboundedSender<Change>>>,
}

enum Change {
    Watch(Resource, Weak<dyn Watcher>),
    Unwatch(Resource),
}

impl EtcdWatcher {
    pub(super) fn new(connections: Arc<Connections<EtcdLink>>, codec: Codec) -> Self {
        Self { connections, codec, changes: Mutex::default() }
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
            let Ok((runtime, link)) = self.connections.background() else { return };
            let (sender, receiver) = unbounded_channel();
            let streams = Streams { link, codec: self.codec.clone(), waiting: Waiting::default(), open: Vec::new() };
            runtime.spawn(streams.run(receiver));
            *changes = Some(sender);
        }
        if let Some(sender) = changes.as_ref() {
            let _ = sender.send(change);
        }
    }
}

/// All streams. Dropped, they end.
struct Streams {
    link: Arc<EtcdLink>,
    codec: Codec,
    waiting: Waiting,
    open: Vec<Stream>,
}

/// The stream of some locks.
struct Stream {
    of: Vec<Resource>,
    task: JoinHandle<()>,
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Streams {
    async fn run(mut self, mut changes: UnboundedReceiver<Change>) {
        while let Some(first) = changes.recv().await {
            let mut waiting = self.waiting.lock();
            let mut new = Vec::new();
            // Many waiters come and go at once.
            for change in std::iter::once(first).chain(std::iter::from_fn(|| changes.try_recv().ok())) {
                match change {
                    Change::Watch(resource, watcher) => {
                        waiting.insert(resource.clone(), watcher);
                        new.push(resource);
                    }
                    Change::Unwatch(resource) => drop(waiting.remove(&resource)),
                }
            }
            new.sort_unstable();
            new.dedup();
            new.retain(|resource| waiting.contains_key(resource));
            self.open.iter_mut().for_each(|stream| {
                stream.of.retain(|resource| waiting.contains_key(resource) && !new.contains(resource));
            });
            self.open.retain(|stream| !stream.of.is_empty());
            if !new.is_empty() && self.open.len() >= MOST_STREAMS {
                self.open.clear();
                new = waiting.keys().cloned().collect();
            }
            drop(waiting);
            if !new.is_empty() {
                let (link, codec) = (Arc::clone(&self.link), self.codec.clone());
                let task = tokio::spawn(follow(link, codec, Arc::clone(&self.waiting), new.clone()));
                self.open.push(Stream { of: new, task });
            }
        }
    }
}

/// Follows the changes of locks, on one member after another.
async fn follow(link: Arc<EtcdLink>, codec: Codec, waiting: Waiting, resources: Vec<Resource>) {
    let (mut pauses, mut refused, mut failures) = (PAUSES, None, 0);
    loop {
        let token =
            match EtcdAccess::keys(&link, refused.take().as_ref(), clock::monotonic().plus(CONNECT_PATIENCE)).await {
                Ok(token) => token,
                Err(_) => {
                    tokio::time::sleep(pauses.next()).await;
                    continue;
                }
            };
        let mut has_begun = false;
        let why = follow_once(&link, &codec, &waiting, &resources, (failures, token.as_deref()), &mut has_begun).await;
        if has_begun {
            pauses = PAUSES;
        }
        failures += 1;
        if matches!(why, Outcome::NotApplied(Refusal::NeedsCredentials(_))) {
            refused = Some(token);
        }
        let store = Arc::clone(&link.store);
        let why = match why {
            Outcome::Unknown(fault) => fault.to_string(),
            Outcome::NotApplied(refusal) => refusal.to_string(),
            Outcome::Applied(_) => "the watch has ended".to_owned(),
        };
        reports::queue(Level::DEBUG, move || {
            tracing::debug!(target: "leasehold", %store, why, "wake-ups interrupted");
        });
        tokio::time::sleep(pauses.next()).await;
    }
}

/// Follows until the stream ends, and returns the reason.
async fn follow_once(
    link: &EtcdLink,
    codec: &Codec,
    waiting: &Waiting,
    resources: &[Resource],
    (failures, token): (usize, Option<&str>),
    has_begun: &mut bool,
) -> Outcome {
    let patience = clock::monotonic().plus(CONNECT_PATIENCE);
    let mut stream = match until(patience, link.stream(failures, &codec.watch(resources), token)).await {
        Some(Ok(stream)) => stream,
        Some(Err(outcome)) => return outcome,
        None => return Outcome::Unknown(Fault::of(FaultKind::Timeout)),
    };
    let watcher_of = |resource: &Resource| waiting.lock().get(resource).and_then(Weak::upgrade);
    let mut not_yet = resources.iter();
    let mut buffer: Vec<u8> = Vec::new();
    loop {
        let chunk = if not_yet.as_slice().is_empty() {
            stream.chunk().await
        } else {
            match until(patience, stream.chunk()).await {
                Some(chunk) => chunk,
                None => return Outcome::Unknown(Fault::of(FaultKind::Timeout)),
            }
        };
        match chunk {
            Ok(Some(chunk)) => buffer.extend_from_slice(&chunk),
            Ok(None) | Err(_) => return Outcome::Unknown(Fault::of(FaultKind::Reset)),
        }
        while let Some(end) = buffer.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = buffer.drain(..=end).collect();
            match codec.watched(&line) {
                Ok(Watched::Begun) => {
                    *has_begun = true;
                    // A release before now was not told: they look for themselves.
                    if let Some((resource, watcher)) = not_yet.next().and_then(|one| Some((one, watcher_of(one)?))) {
                        watcher.subscribed(resource);
                    }
                }
                Ok(Watched::Released(resources)) => {
                    for resource in &resources {
                        if let Some(watcher) = watcher_of(resource) {
                            watcher.released(resource);
                        }
                    }
                }
                Err(outcome) => return outcome,
            }
        }
        if buffer.len() > MOST_LINE {
            return Outcome::Unknown(Fault::of(FaultKind::Protocol));
        }
    }
}
