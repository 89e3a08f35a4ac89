//! The lines of waiters that a Redis keeps beside its locks, and the channels of clients.

use std::collections::{BTreeMap, BTreeSet};

use leasehold_core::Resource;

use super::Ticket;

/// The most tickets without a receiver that one script passes over.
const MOST_PASSED: usize = 32;

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Lines {
    waiting: BTreeMap<Resource, Vec<Ticket>>,
    /// Clients whose channels have a receiver.
    listening: BTreeSet<u64>,
    messages: Vec<(Ticket, Resource)>,
}

impl Lines {
    pub(super) fn listens(&mut self, client: u64, on: bool) {
        if on {
            self.listening.insert(client);
        } else {
            self.listening.remove(&client);
        }
    }

    /// Joins, if a message to the client is received; who stands in line keeps the place.
    pub(super) fn join(&mut self, resource: &Resource, ticket: Ticket) {
        if self.listening.contains(&ticket.client) {
            let line = self.waiting.entry(resource.clone()).or_default();
            if !line.contains(&ticket) {
                line.push(ticket);
            }
        }
    }

    /// Takes the first who is alive out of the line, and tells it. `None` if nobody is, and where it is the turn of who asks.
    pub(super) fn serve(&mut self, resource: &Resource, asks: Option<Ticket>) -> Option<Ticket> {
        let line = self.waiting.get_mut(resource)?;
        for _ in 0..MOST_PASSED {
            if line.is_empty() {
                return None;
            }
            let next = line.remove(0);
            if Some(next) == asks {
                return None;
            }
            if self.listening.contains(&next.client) {
                self.messages.push((next, resource.clone()));
                return Some(next);
            }
        }
        None
    }

    pub(super) fn leave(&mut self, resource: &Resource, ticket: Ticket) {
        if let Some(line) = self.waiting.get_mut(resource) {
            line.retain(|other| *other != ticket);
        }
    }

    pub(super) fn of(&self, resource: &Resource) -> &[Ticket] {
        self.waiting.get(resource).map_or(&[], Vec::as_slice)
    }

    pub(super) fn take_messages(&mut self) -> Vec<(Ticket, Resource)> {
        std::mem::take(&mut self.messages)
    }

    /// The data is gone; connections are not.
    pub(super) fn wipe(&mut self) {
        self.waiting.clear();
    }
}
