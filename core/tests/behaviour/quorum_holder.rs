//! The holder of a lock is the one that most nodes show, not the one in the last answer.

use crate::common::*;
use leasehold_core::config::{NodeConfig, Poll};
use leasehold_core::op::{Applied, Denial, DenialKind, Fault, FaultKind, Holder, Holding, Op, Outcome, Refusal, Seen};
use leasehold_core::{Event, Failure, Nonce, Token, Wait};

fn answer_from(world: &mut World, node: u16, outcome: Outcome) {
    let transmit = world.take_for(0, node);
    world.answer(0, transmit.id, Ok(vec![outcome]));
}

fn record(nonce: u8, counter: u64) -> Holding {
    Holding { counter: Token::new(counter), ..holding(Nonce::from_bytes([nonce; 16]), Some(1)) }
}

fn held_by(nonce: u8, counter: u64) -> Outcome {
    conflict(Some(record(nonce, counter)))
}

fn unavailable() -> Outcome {
    Outcome::NotApplied(Refusal::Unavailable(Fault::of(FaultKind::Unreachable)))
}

/// The holder and the token that the failure names.
fn named(failure: Failure) -> (u8, Option<u64>) {
    let (Failure::Busy { holding: Some(holding) } | Failure::TimedOut { holding: Some(holding) }) = failure else {
        panic!("it names nobody: {failure:?}")
    };
    let Holder::Lease { nonce, .. } = holding.holder else { panic!("it is no lease: {holding:?}") };
    (nonce.as_bytes()[0], holding.counter.map(Token::get))
}

#[test]
fn failure_names_the_holder_that_most_nodes_show() {
    for dissenter in 0..3 {
        for order in [[0, 1, 2], [1, 2, 0], [2, 0, 1]] {
            let mut world = World::quorum(5, 1);
            world.acquire(0, 1, "r", once());
            for node in order {
                answer_from(&mut world, node, if node == dissenter { held_by(2, 9) } else { held_by(1, 7) });
            }
            let told = named(failure(&world.take_events(0)));
            assert_eq!(told, (1, Some(7)), "{dissenter} shows another, and answers come as {order:?}");
        }
    }
}

#[test]
fn node_with_our_record_shows_no_other_holder() {
    let mut world = World::quorum(5, 1);
    world.acquire(0, 1, "r", once());
    answer_from(&mut world, 4, acquired(12));
    for (node, counter) in [(0, 7), (1, 7), (2, 9)] {
        answer_from(&mut world, node, held_by(1, counter));
    }
    let told = named(failure(&world.take_events(0)));
    assert_eq!(told, (1, Some(7)), "node 3 alone could not make a majority of 9");
}

#[test]
fn denying_node_does_not_hide_the_holder() {
    let denied = || Outcome::NotApplied(Refusal::Denied(Denial::new(DenialKind::Permission, "no")));
    let mut world = World::quorum(3, 1);
    world.acquire(0, 1, "r", once());
    answer_from(&mut world, 0, denied());
    answer_from(&mut world, 1, held_by(1, 7));
    assert_eq!(named(failure(&world.take_events(0))), (1, None));
    let mut world = World::quorum(3, 1);
    world.acquire(0, 1, "r", once());
    answer_from(&mut world, 0, denied());
    answer_from(&mut world, 1, denied());
    assert!(matches!(failure(&world.take_events(0)), Failure::Refused(_)), "nobody can be granted it");
}

#[test]
fn uncertain_counter_is_not_reported_as_token() {
    let mut world = World::quorum(3, 1);
    world.acquire(0, 1, "r", once());
    answer_from(&mut world, 0, held_by(1, 7));
    answer_from(&mut world, 1, held_by(1, 9));
    assert_eq!(named(failure(&world.take_events(0))), (1, None), "either may be the one that a majority has");
    let mut world = World::new(1);
    world.acquire(0, 1, "r", once());
    answer_from(&mut world, 0, held_by(1, 7));
    assert_eq!(named(failure(&world.take_events(0))), (1, Some(7)), "a single store knows");
}

#[test]
fn unreachable_node_does_not_hide_the_holder() {
    let mut world = World::of(vec![NodeConfig { poll: Poll::Read, ..NodeConfig::default() }; 3], 1);
    world.acquire(0, 1, "r", with(|o| o.wait(Wait::For(secs(5)))));
    answer_from(&mut world, 0, held_by(1, 7));
    answer_from(&mut world, 1, held_by(1, 7));
    let told = loop {
        let events = world.take_events(0);
        if !matches!(events[..], [] | [Event::Contended { .. }]) {
            break failure(&events);
        }
        let sent = std::mem::take(&mut world.hosts[0].wire);
        for transmit in sent {
            let outcome = match (&transmit.ops[0].op, transmit.node.get()) {
                (Op::Release(_), _) => Outcome::Applied(Applied::Released),
                (Op::Read, 0) => {
                    Outcome::Applied(Applied::Read(Seen { holding: Some(Box::new(record(1, 7))), done: None }))
                }
                _ => unavailable(),
            };
            world.answer(0, transmit.id, Ok(vec![outcome]));
        }
        world.pass_cut_off(ms(10));
    };
    assert_eq!(named(told), (1, None), "who answers last is away, and the lock is held");
}

#[test]
fn unanswered_look_keeps_the_last_reply() {
    let mut world = World::of(vec![NodeConfig { poll: Poll::Read, ..NodeConfig::default() }; 3], 1);
    world.acquire(0, 1, "r", with(|o| o.wait(Wait::For(secs(1)))));
    answer_from(&mut world, 0, held_by(1, 7));
    answer_from(&mut world, 1, held_by(1, 7));
    world.hosts[0].wire.clear();
    world.pass_until_sent(0);
    answer_from(&mut world, 0, unavailable());
    world.hosts[0].wire.clear();
    world.pass_cut_off(ms(400));
    world.jump(secs(1));
    world.tick(0);
    let told = failure(&world.take_events(0));
    assert_eq!(named(told), (1, None), "the other one has shown it, and not been heard of since");
}
