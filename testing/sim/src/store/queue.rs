//! The queues of waiters that a Redis keeps beside its locks, and the channels of clients.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use leasehold_core::Resource;
use leasehold_core::time::{OPEN_EVERY, OPEN_FOR, OPEN_WITHIN};

use super::{Ticket, whole_ms};

/// The most tickets without a receiver that one script passes over.
const MOST_PASSED: usize = 32;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Hands {
    since_ms: u64,
    /// Until then it is free for others.
    open_until_ms: u64,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Queues {
    waiting: BTreeMap<Resource, Vec<Ticket>>,
    /// Clients whose channels have a receiver.
    listening: BTreeSet<u64>,
    messages: Vec<(Ticket, Resource, Duration)>,
    /// When locks began to pass from hand to hand, or were free for others last.
    hands: BTreeMap<Resource, Hands>,
}

impl Queues {
    pub(super) fn listens(&mut self, client: u64, on: bool) {
        if on {
            self.listening.insert(client);
        } else {
            self.listening.remove(&client);
        }
    }

    /// Joins, if a message to the client is received; who stands in the queue keeps the place.
    pub(super) fn join(&mut self, resource: &Resource, ticket: Ticket) {
        if self.listening.contains(&ticket.client) {
            let queue = self.waiting.entry(resource.clone()).or_default();
            if !queue.contains(&ticket) {
                queue.push(ticket);
            }
        }
    }

    /// Takes the first who is alive out of the queue, and tells it. `None` if nobody is, and where it is the turn of who asks.
    pub(super) fn serve(&mut self, resource: &Resource, asks: Option<Ticket>) -> Option<Ticket> {
        let next = self.next(resource, asks)?;
        self.messages.push((next, resource.clone(), Duration::ZERO));
        Some(next)
    }

    /// The same where the lock is released: `Some(None)` leaves it free for a while, and the first in the queue its place.
    pub(super) fn pass_on(&mut self, resource: &Resource, now_ms: u64) -> Option<Option<Ticket>> {
        let next = self.next(resource, None)?;
        let since = self.hands.get(resource).map(|hands| now_ms.saturating_sub(hands.since_ms));
        let [every, within, open_for] = [OPEN_EVERY, OPEN_EVERY + OPEN_WITHIN, OPEN_FOR].map(whole_ms);
        let opens = since.is_some_and(|since| (every..within).contains(&since));
        if opens || since.is_none_or(|since| since >= within) {
            let since_ms = now_ms + if opens { open_for } else { 0 };
            self.hands.insert(resource.clone(), Hands { since_ms, open_until_ms: since_ms });
        }
        self.messages.push((next, resource.clone(), if opens { OPEN_FOR } else { Duration::ZERO }));
        if opens {
            self.waiting.entry(resource.clone()).or_default().insert(0, next);
        }
        Some((!opens).then_some(next))
    }

    /// How long a lock that is free is so for others, because somebody else is the first in the queue, alive or not; `None` where it may
    /// be taken.
    pub(super) fn open_before(&self, resource: &Resource, ticket: Ticket, now_ms: u64) -> Option<u64> {
        let first = self.waiting.get(resource)?.first()?;
        self.open_left(resource, now_ms).filter(|_| *first != ticket)
    }

    pub(super) fn open_left(&self, resource: &Resource, now_ms: u64) -> Option<u64> {
        self.hands.get(resource)?.open_until_ms.checked_sub(now_ms).filter(|left| *left > 0)
    }

    pub(super) fn hands_left(&self, resource: &Resource, now_ms: u64) -> Option<Duration> {
        let until_ms = self.hands.get(resource)?.since_ms + whole_ms(OPEN_EVERY + OPEN_WITHIN);
        until_ms.checked_sub(now_ms).filter(|left| *left > 0).map(Duration::from_millis)
    }

    fn next(&mut self, resource: &Resource, asks: Option<Ticket>) -> Option<Ticket> {
        let queue = self.waiting.get_mut(resource)?;
        for _ in 0..MOST_PASSED {
            if queue.is_empty() {
                return None;
            }
            let next = queue.remove(0);
            if Some(next) == asks {
                return None;
            }
            if self.listening.contains(&next.client) {
                return Some(next);
            }
        }
        None
    }

    pub(super) fn leave(&mut self, resource: &Resource, ticket: Ticket) {
        if let Some(queue) = self.waiting.get_mut(resource) {
            queue.retain(|other| *other != ticket);
        }
    }

    pub(super) fn of(&self, resource: &Resource) -> &[Ticket] {
        self.waiting.get(resource).map_or(&[], Vec::as_slice)
    }

    pub(super) fn take_messages(&mut self) -> Vec<(Ticket, Resource, Duration)> {
        std::mem::take(&mut self.messages)
    }

    /// The data is gone; connections are not.
    pub(super) fn wipe(&mut self) {
        self.waiting.clear();
        self.hands.clear();
    }
}
