//! An ack counts as long as the record behind it stands: once the record may be gone, the node may vote for others.

use crate::common::*;
use leasehold_core::op::{Applied, Op, Outcome};
use leasehold_core::{Event, Monotonic, Token, Transmit};

fn answer_from(world: &mut World, node: u16, outcome: Outcome) {
    let transmit = world.take_for(0, node);
    world.answer(0, transmit.id, Ok(vec![outcome]));
}

fn raised(counter: u64) -> Outcome {
    Outcome::Applied(Applied::Raised { counter: Token::new(counter).unwrap() })
}

/// Three nodes that have granted, and the deadlines of the first and of the other two.
struct Raising {
    world: World,
    first: Monotonic,
    later: Monotonic,
    /// The raises of nodes 1 and 2 to 9, which node 0 answered at once.
    raises: [Transmit; 2],
}

/// The requests to nodes 1 and 2 got lost and were sent again, so that their deadlines are later than that of node 0.
fn raising() -> Raising {
    let mut world = World::quorum(3, 1);
    world.acquire(0, 1, "r", options());
    let first = world.now(0).monotonic.plus(validity(secs(30)));
    answer_from(&mut world, 0, acquired(9));
    for node in [1, 2] {
        let lost = world.take_for(0, node);
        world.answer(0, lost.id, Err(reset()));
    }
    world.jump(secs(1));
    world.tick(0);
    let later = world.now(0).monotonic.plus(validity(secs(30)));
    for node in [1, 2] {
        answer_from(&mut world, node, acquired(5));
    }
    // The first raises get no answer; the second ones leave shortly before the deadline of node 0.
    world.hosts[0].wire.clear();
    let almost = first.since(world.now(0).monotonic) - ms(100);
    world.jump(almost);
    world.tick(0);
    assert_eq!(world.take_events(0), [], "nobody but node 0 has 9");
    let raises = [1, 2].map(|node| world.take_for(0, node));
    assert!(raises.iter().all(|raise| matches!(raise.ops[0].op, Op::Raise(op) if op.token.get() == 9)));
    Raising { world, first, later, raises }
}

impl Raising {
    fn until(&mut self, at: Monotonic) {
        let now = self.world.now(0).monotonic;
        self.world.jump(at.since(now));
    }

    fn answered(&mut self, raise: usize, outcome: Outcome) -> Vec<Event> {
        let id = self.raises[raise].id;
        self.world.answer(0, id, Ok(vec![outcome]));
        self.world.take_events(0)
    }
}

fn ends_at(events: &[Event], at: Monotonic) -> bool {
    has(events, |event| matches!(event, Event::Acquired { deadline, .. } if *deadline == at))
}

fn just_before(at: Monotonic) -> Monotonic {
    Monotonic::from_ns(at.ns() - 1)
}

#[test]
fn an_ack_counts_until_its_deadline() {
    let mut raising = raising();
    raising.until(just_before(raising.first));
    let events = raising.answered(0, raised(9));
    assert_eq!(token(&events).get(), 9);
    assert!(ends_at(&events, raising.later), "as two nodes were asked later: {events:?}");
}

#[test]
fn an_ack_whose_deadline_passed_while_others_were_raised_does_not_count() {
    let mut raising = raising();
    raising.until(raising.first);
    assert_eq!(raising.answered(0, raised(9)), [], "nodes 1 and 2 still vouch, but only one of them has acknowledged");
    assert_eq!(raising.world.state(0, 1), Some("Acquiring"));
    let events = raising.answered(1, raised(9));
    assert_eq!(token(&events).get(), 9);
    assert!(ends_at(&events, raising.later), "{events:?}");
}

#[test]
fn attempt_without_the_expired_ack_can_be_lost() {
    let mut raising = raising();
    raising.until(raising.first);
    assert_eq!(raising.answered(0, raised(9)), []);
    let gone = conflict(Some(holding(other_nonce(), Some(1))));
    let events = raising.answered(1, gone);
    assert!(matches!(events[..], [Event::Contended { .. }]), "node 1 alone is no majority: {events:?}");
    assert_ne!(raising.world.state(0, 1), Some("Acquiring"));
    assert_ne!(raising.world.state(0, 1), Some("Held"));
}
