//! The places of one client in the queue, and the next work for them. A thread (SQLite) or a task (PostgreSQL) does it.
//!
//! Where nobody reports a turn, waiters look: the first in the queue often, those behind it less often, and all of them less often the
//! longer nothing happens.

use std::time::Duration;

use leasehold_core::queue::{Reserved, UNSEEN};
use leasehold_core::{LockId, Monotonic, Resource};

use crate::host::sync::HashMap;

/// The one at this place looks this many times less often, and those behind it as well.
const LAST_PLACE: u64 = 10;
/// How soon a turn that was announced, and not taken, is announced again.
const TOLD: Duration = Duration::from_millis(100);

/// An acquisition of a lock.
pub(super) type Key = (Resource, LockId);

/// How often the one who looks after places has to act.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    /// The first in the queue looks this often while locks change hands, and that often while they do not.
    pub(super) looks: (Duration, Duration),
    /// The client says for this long that it is alive, after it had its last place.
    pub(super) lingers: Duration,
}

/// The places of a client.
#[derive(Debug)]
pub(super) struct Places {
    pace: Pace,
    places: HashMap<Key, Place>,
    /// Places that are to be given up.
    given_up: Vec<Key>,
    /// The store has noted then that the client is alive.
    seen_at: Option<Monotonic>,
    /// Somebody had a place then.
    waited_at: Monotonic,
}

#[derive(Clone, Copy, Debug)]
struct Place {
    number: u64,
    since: Monotonic,
    looks_at: Monotonic,
    /// The lock is reserved for another until then.
    reserved_until: Option<Monotonic>,
}

/// The next work for the places.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Work {
    /// Give these up.
    Leave(Vec<Key>),
    /// Look at these, and report each by [`Places::sighted`].
    Look(Vec<Key>),
    /// Say that the client is alive, and report that by [`Places::see`].
    See,
    /// Nothing, until then.
    Wait(Monotonic),
    /// Nothing, until somebody has a place.
    Rest,
}

/// The place of an acquisition, as it was seen in the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sight {
    /// It should try now.
    Due,
    /// It waits, at this place.
    Waits(u64),
}

impl Places {
    pub(super) fn new(pace: Pace) -> Self {
        let (places, given_up) = (HashMap::default(), Vec::new());
        Self { pace, places, given_up, seen_at: None, waited_at: Monotonic::from_ns(0) }
    }

    /// Notes the place that an acquisition was told, and how long the lock is reserved for another; `None` if it has none.
    pub(super) fn note(&mut self, key: Key, told: Option<(u64, Option<Duration>)>, now: Monotonic) {
        let Some((number, reserved)) = told else {
            self.places.remove(&key);
            return;
        };
        let reserved_until = reserved.map(|left| now.plus(left));
        let place = Place { number, since: now, looks_at: now.plus(self.pace.looks.0), reserved_until };
        let known = self.places.entry(key).or_insert(place);
        (known.number, known.reserved_until) = (number, reserved_until);
    }

    /// Gives up a place, later.
    pub(super) fn leave(&mut self, key: Key) {
        self.places.remove(&key);
        self.given_up.push(key);
    }

    /// Gives up all places, later.
    pub(super) fn leave_all(&mut self) {
        self.given_up.extend(self.places.drain().map(|(key, _)| key));
    }

    /// Takes the places that are to be given up.
    pub(super) fn take_given_up(&mut self) -> Vec<Key> {
        std::mem::take(&mut self.given_up)
    }

    /// The store has noted that the client is alive.
    pub(super) fn see(&mut self, now: Monotonic) {
        self.seen_at = Some(now);
    }

    /// The time since the store has noted that.
    #[cfg(feature = "postgres")]
    pub(super) fn unseen_for(&self, now: Monotonic) -> Duration {
        self.seen_at.map_or(Duration::MAX, |at| now.since(at))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    #[cfg(feature = "postgres")]
    pub(super) fn has(&self, key: &Key) -> bool {
        self.places.contains_key(key)
    }

    /// The place of an acquisition, as it was last seen; without one named, of one of the lock.
    pub(super) fn place(&self, resource: &Resource, lock: Option<LockId>) -> Option<u64> {
        let is_asked = |(name, number): &Key| name == resource && lock.is_none_or(|lock| lock == *number);
        self.places.iter().find(|(key, _)| is_asked(key)).map(|(_, place)| place.number)
    }

    /// The reservation for another that an acquisition had to wait for when it last asked.
    pub(super) fn reserved_before(&self, resource: &Resource, lock: LockId, now: Monotonic) -> Option<Reserved> {
        let place = self.places.get(&(resource.clone(), lock))?;
        Some(Reserved { left: place.reserved_until?.since(now), place: place.number })
    }

    /// The next work.
    pub(super) fn next(&mut self, now: Monotonic) -> Work {
        if !self.given_up.is_empty() {
            return Work::Leave(self.take_given_up());
        }
        if !self.places.is_empty() {
            self.waited_at = now;
        } else if now.since(self.waited_at) >= self.pace.lingers {
            return Work::Rest;
        }
        let sees_at = self.seen_at.map_or(now, |at| at.plus(UNSEEN / 5));
        if sees_at <= now {
            return Work::See;
        }
        let due: Vec<Key> =
            self.places.iter().filter(|(_, place)| place.looks_at <= now).map(|(key, _)| key.clone()).collect();
        if !due.is_empty() {
            return Work::Look(due);
        }
        let looks = self.places.values().map(|place| place.looks_at);
        Work::Wait(looks.fold(sees_at, Ord::min))
    }

    /// Notes what was seen of a place, `None` if nothing could be. Tells if its turn is to be told now.
    pub(super) fn sighted(&mut self, key: &Key, sight: Option<Sight>, now: Monotonic) -> bool {
        let Some(place) = self.places.get_mut(key) else { return false };
        if let Some(Sight::Waits(number)) = sight {
            if number != place.number {
                (place.number, place.since) = (number, now);
            }
            place.looks_at = now.plus(place.pause(self.pace.looks, now));
        } else {
            place.looks_at = now.plus(TOLD);
        }
        sight == Some(Sight::Due)
    }
}

impl Place {
    fn pause(&self, (often, seldom): (Duration, Duration), now: Monotonic) -> Duration {
        let of_first = (now.since(self.since) / 16).clamp(often, seldom);
        of_first * u32::try_from(self.number.clamp(1, LAST_PLACE)).unwrap_or(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);
    const PACE: Pace = Pace { looks: (MS, Duration::from_millis(20)), lingers: Duration::ZERO };

    fn key(lock: u64) -> Key {
        (Resource::new("job").unwrap(), LockId::new(lock))
    }

    fn at(ms: u64) -> Monotonic {
        Monotonic::from_ns(ms * 1_000_000)
    }

    /// One place, of the lock 1, noted and seen at the start.
    fn waiting(number: u64, pace: Pace) -> Places {
        let mut places = Places::new(pace);
        places.see(at(0));
        places.note(key(1), Some((number, None)), at(0));
        places
    }

    #[test]
    fn one_who_waits_looks_less_often_behind_others_and_while_nothing_happens() {
        let next_look = |number: u64, now: u64| {
            let mut places = waiting(number, PACE);
            assert!(!places.sighted(&key(1), Some(Sight::Waits(number)), at(now)));
            places.see(at(now));
            match places.next(at(now)) {
                Work::Wait(until) => until.since(at(now)),
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(
            [(1, 0), (1, 160), (1, 999), (3, 160), (99, 160)].map(|(place, now)| next_look(place, now)),
            [MS, 10 * MS, 20 * MS, 30 * MS, 100 * MS]
        );
        let mut places = waiting(2, PACE);
        assert!(!places.sighted(&key(1), Some(Sight::Waits(1)), at(160)), "it has moved up");
        assert_eq!((places.next(at(160)), places.place(&key(1).0, None)), (Work::Wait(at(161)), Some(1)));
    }

    #[test]
    fn a_turn_is_told_again_while_it_is_not_taken() {
        let mut places = waiting(1, PACE);
        assert_eq!(places.next(at(0)), Work::Wait(at(1)));
        assert_eq!(places.next(at(1)), Work::Look(vec![key(1)]));
        assert!(places.sighted(&key(1), Some(Sight::Due), at(1)));
        assert_eq!(places.next(at(1)), Work::Wait(at(101)));
        assert!(!places.sighted(&key(1), None, at(101)) && !places.sighted(&key(2), Some(Sight::Due), at(101)));
        assert_eq!(places.next(at(101)), Work::Wait(at(201)), "what could not be seen is looked at again");
    }

    #[test]
    fn places_are_given_up_first_and_then_it_rests() {
        let mut places = waiting(1, PACE);
        places.note(key(2), Some((2, None)), at(0));
        places.leave(key(1));
        assert_eq!(places.next(at(50)), Work::Leave(vec![key(1)]));
        assert_eq!(places.next(at(50)), Work::Look(vec![key(2)]));
        places.leave_all();
        assert!(places.is_empty());
        assert_eq!((places.next(at(50)), places.next(at(50))), (Work::Leave(vec![key(2)]), Work::Rest));
        places.note(key(1), Some((1, None)), at(60));
        places.note(key(1), None, at(61));
        assert_eq!(places.next(at(61)), Work::Rest);
    }

    #[test]
    fn a_client_says_that_it_is_alive_while_it_waits_and_a_while_longer() {
        let mut places = waiting(1, Pace { lingers: UNSEEN, ..PACE });
        places.sighted(&key(1), Some(Sight::Waits(1)), at(1_999));
        assert_eq!([places.next(at(1_999)), places.next(at(2_000))], [Work::Wait(at(2_000)), Work::See]);
        places.see(at(2_000));
        places.note(key(1), None, at(2_000));
        assert_eq!(places.next(at(2_000)), Work::Wait(at(4_000)));
        assert_eq!([places.next(at(4_000)), places.next(at(11_999))], [Work::See, Work::See]);
        assert_eq!(places.next(at(12_000)), Work::Rest);
        let mut never = Places::new(PACE);
        never.note(key(1), Some((1, None)), at(0));
        assert_eq!(never.next(at(0)), Work::See);
    }

    #[test]
    fn a_reservation_for_another_shrinks_with_time() {
        let mut places = waiting(1, PACE);
        assert_eq!(places.reserved_before(&key(1).0, key(1).1, at(0)), None);
        places.note(key(1), Some((3, Some(500 * MS))), at(10));
        let left = |now| places.reserved_before(&key(1).0, key(1).1, at(now)).map(|reserved| reserved.left);
        assert_eq!([left(10), left(110), left(600)], [Some(500 * MS), Some(400 * MS), Some(Duration::ZERO)]);
        assert_eq!(places.place(&key(1).0, Some(key(2).1)), None);
    }
}
