//! All acquisitions of a client: found by id when the embedder names one, and by place inside the client.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use crate::config::{LockOptions, Wait};
use crate::event::Failure;
use crate::ids::{LockId, Resource};
use crate::lease::Machine;
use crate::timers::Entry;

/// One acquisition.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Lock {
    pub(super) id: LockId,
    /// Tells this acquisition from earlier ones in the same place, whose replies may still be on their way.
    pub(super) generation: u64,
    /// Acquisitions before this generation were there when this one got its turn, so its answer is news for them too.
    pub(super) turn: u64,
    pub(super) resource: Resource,
    pub(super) options: LockOptions,
    /// It may have a place in the queue of its store.
    pub(super) in_queue: bool,
    pub(super) machine: Machine,
    pub(super) timer: Entry,
    pub(super) start: Entry,
}

impl Lock {
    /// Returns true if it asks once about the same run, so that both have one answer.
    pub(super) fn asks_like(&self, options: &LockOptions) -> bool {
        let is_of_run = options.run().is_some() && self.options.run() == options.run();
        is_of_run && self.options.wait() == Wait::Once && options.wait() == Wait::Once
    }

    /// Returns true if the failure of an acquisition with these options is one of this acquisition as well.
    pub(super) fn fails_by(&self, failure: &Failure, options: &LockOptions) -> bool {
        match failure {
            Failure::Done(_) | Failure::Busy { .. } => true,
            // Of its owner or its data, perhaps.
            Failure::Refused(_) | Failure::Cancelled => false,
            // A grant may have come too late for its ttl.
            Failure::TimedOut { .. }
            | Failure::Throttled(_)
            | Failure::Unavailable(_)
            | Failure::Abstains { .. }
            | Failure::CompletionsInDoubt => self.options.ttl() == options.ttl(),
        }
    }
}

/// The slot of an acquisition; taken again once it has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct LockIndex(u32);

/// The acquisitions.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
pub(super) struct Locks {
    by_id: BTreeMap<LockId, LockIndex>,
    places: Vec<Option<Lock>>,
    free: Vec<LockIndex>,
    next_generation: u64,
}

impl Locks {
    pub(super) fn find(&self, id: LockId) -> Option<LockIndex> {
        self.by_id.get(&id).copied()
    }

    pub(super) fn get(&self, place: LockIndex) -> Option<&Lock> {
        self.places.get(place.0 as usize)?.as_ref()
    }

    pub(super) fn get_mut(&mut self, place: LockIndex) -> Option<&mut Lock> {
        self.places.get_mut(place.0 as usize)?.as_mut()
    }

    /// The acquisition in a place, unless it is a later one.
    pub(super) fn of_generation(&self, place: LockIndex, generation: u64) -> Option<&Lock> {
        self.get(place).filter(|lock| lock.generation == generation)
    }

    /// Inserts an acquisition. The caller has checked that the id is not in use, and that there is room.
    pub(super) fn insert(
        &mut self,
        id: LockId,
        resource: Resource,
        options: LockOptions,
        machine: Machine,
    ) -> Option<LockIndex> {
        let place = match self.free.pop() {
            Some(place) => place,
            None => {
                let place = LockIndex(u32::try_from(self.places.len()).ok()?);
                self.places.push(None);
                place
            }
        };
        let generation = self.next_generation;
        self.next_generation += 1;
        self.by_id.insert(id, place);
        *self.places.get_mut(place.0 as usize)? = Some(Lock {
            id,
            generation,
            turn: generation,
            resource,
            options,
            in_queue: false,
            machine,
            timer: None,
            start: None,
        });
        Some(place)
    }

    /// Notes that an acquisition gets its turn.
    pub(super) fn note_turn(&mut self, place: LockIndex) {
        let turn = self.next_generation;
        if let Some(lock) = self.get_mut(place) {
            lock.turn = turn;
        }
    }

    pub(super) fn remove(&mut self, place: LockIndex) -> Option<Lock> {
        let lock = self.places.get_mut(place.0 as usize)?.take()?;
        self.by_id.remove(&lock.id);
        self.free.push(place);
        Some(lock)
    }

    pub(super) fn len(&self) -> usize {
        self.by_id.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.by_id.is_empty()
    }

    /// All places, in the order of the lock ids.
    pub(super) fn places(&self) -> impl Iterator<Item = LockIndex> + '_ {
        self.by_id.values().copied()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Lock> {
        self.places.iter().flatten()
    }
}
