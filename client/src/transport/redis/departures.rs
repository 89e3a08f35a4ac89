//! Tickets that are given up. One that stays in the queue is passed over in its turn, and counted as a waiter until then.

use std::sync::Arc;
use std::time::Duration;

use leasehold_core::{LockId, Resource};
use leasehold_wire::redis::{Codec, Command};
use tokio::time::sleep;

use super::queue::Queues;
use super::store_link::StoreLink;
use super::subscriber::CONFIRM_PATIENCE;
use crate::host::clock;
use crate::host::sync::Mutex;
use crate::transport::connections::Connections;

/// The pause between two tries.
const PAUSE: Duration = Duration::from_millis(500);
/// The most tries for one ticket. A queue that nobody joins is forgotten after a minute.
const MOST_TRIES: u32 = 8;

/// The departures that the server has not confirmed.
#[derive(Clone, Default)]
pub(super) struct Departures(Arc<Mutex<Vec<Command>>>);

impl Departures {
    /// Gives up a ticket in the background, if there may be one.
    pub(super) fn leave(
        &self,
        connections: &Connections<StoreLink>,
        queues: &Queues,
        resource: &Resource,
        lock: LockId,
    ) {
        if !queues.is_subscribed() {
            return;
        }
        let Ok((runtime, link)) = connections.background() else { return };
        let command = Codec::leave(queues.client(), resource, lock);
        self.0.lock().push(command.clone());
        let departures = self.clone();
        runtime.spawn(async move {
            for _ in 0..MOST_TRIES {
                if send(&link, std::slice::from_ref(&command)).await {
                    break;
                }
                sleep(PAUSE).await;
            }
            departures.0.lock().retain(|other| *other != command);
        });
    }

    /// Sends those that are not confirmed once more, and waits for that: a client that is closed has no background for long.
    pub(super) fn end(&self, connections: &Connections<StoreLink>) {
        if connections.is_inherited() {
            return;
        }
        let rest = std::mem::take(&mut *self.0.lock());
        if !rest.is_empty() {
            let _ = connections.block_on_background(|link| async move { send(&link, &rest).await });
        }
    }
}

/// Answers whether the server has confirmed them.
async fn send(link: &StoreLink, commands: &[Command]) -> bool {
    let StoreLink::Single(link) = link else { return true };
    link.command(commands, clock::monotonic().plus(CONFIRM_PATIENCE)).await.is_ok()
}
