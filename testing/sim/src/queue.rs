//! The waiters of each lock in the order of their joining, kept outside the store that serves its line.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::clock::TrueTime;
use crate::store::Ticket;

/// No reservation ends sooner, whatever the rate of the store's clock.
const SHORTEST_TURN: Duration = Duration::from_millis(250);
/// No reservation stands longer.
const LONGEST_TURN: Duration = Duration::from_secs(1);

/// The queues of all locks; see the module.
#[derive(Debug, Default)]
pub struct Queues {
    waiting: BTreeMap<usize, Vec<Place>>,
    /// The last turn that was told.
    turns: BTreeMap<usize, TrueTime>,
}

#[derive(Clone, Copy, Debug)]
struct Place {
    ticket: Ticket,
    /// The time at which it was told of its turn.
    called: Option<TrueTime>,
}

impl Queues {
    /// A ticket was refused and stands in the queue from now on, if it does not already. Who missed a turn begins at the end.
    pub fn joined(&mut self, resource: usize, ticket: Ticket) {
        let places = self.waiting.entry(resource).or_default();
        places.retain(|place| place.ticket != ticket || place.called.is_none());
        if !places.iter().any(|place| place.ticket == ticket) {
            places.push(Place { ticket, called: None });
        }
    }

    /// It is the turn of a ticket.
    pub fn called(&mut self, resource: usize, ticket: Ticket, at: TrueTime) {
        self.turns.insert(resource, at);
        let places = self.waiting.entry(resource).or_default();
        places.iter_mut().filter(|place| place.ticket == ticket).for_each(|place| place.called = Some(at));
    }

    /// A ticket was given up.
    pub fn left(&mut self, resource: usize, ticket: Ticket) {
        self.waiting.entry(resource).or_default().retain(|place| place.ticket != ticket);
    }

    /// A ticket has the lock. Returns one that is alive, joined before it, and has had no turn yet.
    pub fn granted(
        &mut self,
        resource: usize,
        ticket: Ticket,
        at: TrueTime,
        is_alive: impl Fn(Ticket) -> bool,
    ) -> Option<Ticket> {
        let places = self.waiting.entry(resource).or_default();
        let before = places.iter().take_while(|place| place.ticket != ticket);
        let has_claim = |place: &&Place| place.called.is_none_or(|called| at.since(called) < SHORTEST_TURN);
        let passed_over = before.filter(has_claim).map(|place| place.ticket).find(|ticket| is_alive(*ticket));
        places.retain(|place| place.ticket != ticket);
        passed_over
    }

    /// The first who is alive and has had no turn.
    pub fn first(&self, resource: usize, is_alive: impl Fn(Ticket) -> bool) -> Option<Ticket> {
        let places = self.waiting.get(&resource)?.iter().filter(|place| place.called.is_none());
        places.map(|place| place.ticket).find(|ticket| is_alive(*ticket))
    }

    /// Tells if the last turn must be over.
    pub fn is_turn_over(&self, resource: usize, at: TrueTime) -> bool {
        self.turns.get(&resource).is_some_and(|turn| at.since(*turn) > LONGEST_TURN)
    }

    /// A store that has lost its data owes nobody a place.
    pub fn forget(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use leasehold_core::LockId;

    fn ticket(client: u64) -> Ticket {
        Ticket { client, lock: LockId::new(1) }
    }

    fn at(ms: u64) -> TrueTime {
        TrueTime(ms * 1_000_000)
    }

    #[test]
    fn who_joined_first_must_not_be_passed_over() {
        let mut queues = Queues::default();
        for client in [1, 2, 3] {
            queues.joined(0, ticket(client));
        }
        queues.joined(0, ticket(1));
        assert_eq!(queues.granted(0, ticket(3), at(0), |_| true), Some(ticket(1)));
        assert_eq!(queues.granted(0, ticket(2), at(0), |other| other != ticket(1)), None, "it is dead");
        assert_eq!(queues.granted(0, ticket(4), at(0), |_| true), Some(ticket(1)), "who never joined comes last");
        queues.left(0, ticket(1));
        assert_eq!(queues.granted(0, ticket(5), at(0), |_| true), None);
    }

    #[test]
    fn a_turn_that_was_missed_is_over() {
        let mut queues = Queues::default();
        queues.joined(0, ticket(1));
        queues.joined(0, ticket(2));
        queues.called(0, ticket(1), at(0));
        assert_eq!(queues.first(0, |_| true), Some(ticket(2)));
        assert_eq!(
            queues.granted(0, ticket(3), at(100), |other| other == ticket(1)),
            Some(ticket(1)),
            "still its turn"
        );
        assert_eq!(queues.granted(0, ticket(2), at(500), |_| true), None);
        queues.joined(0, ticket(4));
        queues.joined(0, ticket(1));
        assert_eq!(queues.granted(0, ticket(1), at(600), |_| true), Some(ticket(4)), "it began at the end again");
        assert!(!queues.is_turn_over(0, at(900)) && queues.is_turn_over(0, at(1_100)));
    }
}
