//! The queue of waiters that a store keeps: who leaves it, and for whom the lock is reserved.

use core::time::Duration;

use super::{Client, LockIndex};
use crate::event::Event;
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
