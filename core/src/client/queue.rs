//! The queue of waiters that a store keeps: who leaves it, and for whom the lock is reserved. And what those learn who ask about the
//! same run in one client.

use alloc::vec::Vec;
use core::time::Duration;

use super::{Client, Lock, LockIndex, Output};
use crate::config::LockOptions;
use crate::event::{Event, Failure};
use crate::ids::{LockId, NodeId, Resource};
use crate::lease::Input as LeaseInput;
use crate::queue::Reserved;
use crate::time::Now;

/// A ticket that is given up: the store removes it from its queue, and passes on what is reserved for it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Departure {
    /// The store.
    pub node: NodeId,
    /// The resource.
    pub resource: Resource,
    /// The ticket.
    pub lock: LockId,
}

/// The only store of a client with queues.
const NODE: NodeId = NodeId::new(0);

impl Client {
    /// Takes the news that the lock is reserved for one of our tickets. Its waiter tries at once. A ticket that has ended or
    /// is being released declines, so that the next in the queue need not wait for the end of the reservation.
    ///
    /// The news may be late or doubled: a ticket that has the lock by now ignores it.
    ///
    /// With `after` the lock is free for that long, so that other libraries come in between; nothing is reserved, and the waiter
    /// tries then.
    pub fn reserved(&mut self, resource: &Resource, lock: LockId, after: Duration, now: Now) {
        self.advance(now, None);
        let place = self.locks.find(lock);
        let is_over = |place: &LockIndex| self.locks.get(*place).is_none_or(|lock| lock.machine.is_over());
        match place.filter(|place| !is_over(place)) {
            Some(place) => self.drive(place, LeaseInput::Wake { after }),
            None => self.departures.push_back(Departure { node: NODE, resource: resource.clone(), lock }),
        }
    }

    /// Notes that the store has given an acquisition a place in its queue. It is notified of its turn, and so asks less often. Call
    /// it before [`Client::handle_response`] takes the answer that says so, with the reservation for another that it met, if
    /// there is one: nobody is told when that ends.
    pub fn placed(&mut self, lock: LockId, reserved: Option<Reserved>) {
        if let Some(lock) = self.locks.find(lock).and_then(|place| self.locks.get_mut(place)) {
            lock.machine.note_place(reserved);
        }
    }

    /// The next ticket to give up, for embedders that have asked for [queues](crate::Config::with_queues). One request is
    /// enough, and its answer does not matter: what it leaves in the queue is passed over in its turn.
    pub fn next_departure(&mut self) -> Option<Departure> {
        self.departures.pop_front()
    }

    /// Returns true if an acquisition that asks once about a run waits for the answer that another one is about to get. The store is then asked
    /// again for all that have come meanwhile, since that answer may be older than their questions.
    pub(super) fn joins_others(&self, resource: &Resource, options: &LockOptions) -> bool {
        let Some(queue) = self.queues.get(resource) else { return false };
        let last =
            queue.waiting.iter().rev().find_map(|&(place, generation)| self.locks.of_generation(place, generation));
        let asks = |lock: &Lock| lock.machine.is_pending() && lock.asks_like(options);
        // Before the last one are only such that have joined as well.
        self.locks.get(queue.head).is_some_and(asks) && last.is_none_or(asks)
            || self.is_ending(queue.head) && last.is_some_and(asks)
    }

    /// The answer that the end of an acquisition is for those who have joined it, and the generation before which they have.
    pub(super) fn answer_for_others(&self, place: LockIndex, event: &Event) -> Option<(Failure, u64)> {
        let lock = self.locks.get(place).filter(|lock| lock.asks_like(&lock.options))?;
        let head = self.queues.get(&lock.resource)?.head;
        if head != place {
            return None;
        }
        if let Event::Acquired { .. } = event {
            return Some((Failure::Busy { holding: self.describe(place).map(Into::into) }, u64::MAX));
        }
        let Event::Failed { failure, .. } = event else { return None };
        (*failure != Failure::Cancelled).then(|| (failure.clone(), lock.turn))
    }

    /// Ends those who have joined an acquisition before that generation.
    pub(super) fn fail_others(&mut self, place: LockIndex, failure: &Failure, before: u64) {
        let Some(lock) = self.locks.get(place) else { return };
        let Some(queue) = self.queues.get(&lock.resource) else { return };
        let joined = |&(waiting, generation): &(LockIndex, u64)| {
            let Some(other) = self.locks.of_generation(waiting, generation) else { return Some(None) };
            (generation < before && other.asks_like(&lock.options) && other.fails_by(failure, &lock.options))
                .then_some(Some((waiting, other.id)))
        };
        let joined: Vec<(LockIndex, LockId)> = queue.waiting.iter().map_while(joined).flatten().collect();
        for (waiting, lock) in joined {
            self.outputs.push_back(Output::Event(Event::Failed { lock, failure: failure.clone() }));
            self.drop_lock(waiting);
        }
    }

    /// Notes an event of a lock that may have a place in the queue.
    pub(super) fn note_place(&mut self, event: &Event) {
        let Some(place) = self.locks.find(event.lock()) else { return };
        let Some(lock) = self.locks.get_mut(place).filter(|lock| lock.in_queue) else { return };
        match event {
            Event::Acquired { .. } => lock.in_queue = false,
            Event::Failed { .. } => {
                lock.in_queue = false;
                let (lock, resource) = (lock.id, lock.resource.clone());
                self.departures.push_back(Departure { node: NODE, resource, lock });
            }
            Event::Contended { .. }
            | Event::Renewed { .. }
            | Event::RenewDelayed { .. }
            | Event::Shortened { .. }
            | Event::Expiring { .. }
            | Event::Lost { .. }
            | Event::Released { .. }
            | Event::Finished { .. } => {}
        }
    }
}
