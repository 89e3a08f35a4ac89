//! The client's part in queues of waiters: its own channel, and the places that its acquisitions have.

use std::time::Duration;

use leasehold_core::queue::Reserved;
use leasehold_core::{LockId, Monotonic, Resource};
use leasehold_wire::redis::{ClientId, Subscription};

use crate::error::Error;
use crate::host::clock;
use crate::host::entropy::fill;
use crate::host::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use crate::host::sync::{HashMap, Mutex};

/// The most names whose places are remembered. Beyond it, waiters of other names also subscribe to hints.
const MOST_PLACES: usize = 100_000;

/// The queues of one server in which this client stands.
pub(super) struct Queues {
    client: ClientId,
    /// An acquisition has asked for a place.
    is_wanted: AtomicBool,
    /// The number of the subscription to the client's channel; 0 while there is none.
    generation: AtomicU64,
    last_generation: AtomicU64,
    places: Mutex<HashMap<Resource, Place>>,
}

#[derive(Clone, Copy)]
struct Place {
    lock: LockId,
    number: u64,
    generation: u64,
    /// The lock is reserved for another until then.
    reserved_until: Option<Monotonic>,
}

impl Queues {
    /// # Errors
    /// The system gives no random bytes.
    pub(super) fn new() -> Result<Self, Error> {
        let mut random = [0; 16];
        fill(&mut random)?;
        Ok(Self {
            client: ClientId::new(random),
            is_wanted: AtomicBool::new(false),
            generation: AtomicU64::new(0),
            last_generation: AtomicU64::new(0),
            places: Mutex::default(),
        })
    }

    pub(super) const fn client(&self) -> &ClientId {
        &self.client
    }

    pub(super) fn is_wanted(&self) -> bool {
        self.is_wanted.load(Ordering::Relaxed)
    }

    /// The subscription that an acquire may rely on. Asking for it has the channel subscribed with the next wait.
    pub(super) fn subscription(&self) -> Option<Subscription> {
        self.is_wanted.store(true, Ordering::Relaxed);
        let generation = self.generation.load(Ordering::Acquire);
        (generation > 0).then_some(Subscription { client: self.client, generation })
    }

    /// The channel is subscribed from now on. Returns the number of that subscription.
    pub(super) fn subscribed(&self) -> u64 {
        let generation = self.last_generation.fetch_add(1, Ordering::Relaxed) + 1;
        self.generation.store(generation, Ordering::Release);
        generation
    }

    /// A subscription has ended. A later one stands.
    pub(super) fn unsubscribed(&self, generation: u64) {
        let _ = self.generation.compare_exchange(generation, 0, Ordering::AcqRel, Ordering::Relaxed);
    }

    /// Tells if the channel is subscribed by this subscription.
    pub(super) fn is_subscribed_as(&self, generation: u64) -> bool {
        generation > 0 && self.generation.load(Ordering::Acquire) == generation
    }

    pub(super) fn is_subscribed(&self) -> bool {
        self.generation.load(Ordering::Acquire) > 0
    }

    /// Notes the place of an acquisition in the queue of a resource, counted from 1; `None` if it has none.
    pub(super) fn note(
        &self,
        resource: &Resource,
        lock: LockId,
        subscription: Option<Subscription>,
        place: Option<u64>,
        reserved: Option<Duration>,
    ) {
        let mut places = self.places.lock();
        match subscription.zip(place) {
            Some((Subscription { generation, .. }, number)) => {
                if places.len() < MOST_PLACES || places.contains_key(resource) {
                    let reserved_until = reserved.map(|left| clock::monotonic().plus(left));
                    places.insert(resource.clone(), Place { lock, number, generation, reserved_until });
                }
            }
            None if places.is_empty() => {}
            None => {
                places.remove(resource);
            }
        }
    }

    /// Forgets the place of an acquisition that has ended.
    pub(super) fn forget(&self, resource: &Resource, lock: LockId) {
        let mut places = self.places.lock();
        if places.get(resource).is_some_and(|place| place.lock == lock) {
            places.remove(resource);
        }
    }

    /// The place of an acquisition, as the server has last told.
    pub(super) fn place(&self, resource: &Resource, lock: Option<LockId>) -> Option<u64> {
        self.places
            .lock()
            .get(resource)
            .filter(|place| lock.is_none_or(|lock| place.lock == lock))
            .map(|place| place.number)
    }

    /// The reservation for another that an acquisition has to wait for, as the server has last told.
    pub(super) fn reserved(&self, resource: &Resource, lock: LockId) -> Option<Reserved> {
        let place = self.places.lock().get(resource).copied().filter(|place| place.lock == lock)?;
        Some(Reserved { left: place.reserved_until?.since(clock::monotonic()), place: place.number })
    }

    /// Tells if releases of the resource are told on the client's own channel, so that no other is needed.
    pub(super) fn is_told_of(&self, resource: &Resource) -> bool {
        let generation = self.generation.load(Ordering::Acquire);
        generation > 0 && self.places.lock().get(resource).is_some_and(|place| place.generation == generation)
    }
}
