//! Several nodes: a majority decides, each node has its own deadline, and the token is the one that a majority answered
//! exactly.

use crate::common::*;
use leasehold_core::member::QuorumId;
use leasehold_core::op::{Applied, Fault, FaultKind, Holding, Op, Outcome, Refusal, TransportFault};
use leasehold_core::{Config, NodeConfig, Quorum};
use leasehold_core::{Event, Failure, LostReason, NodeId, Token};

pub(crate) fn nodes_of(world: &World, host: usize, wanted: &str) -> Vec<u16> {
    let of_kind = world.hosts[host].wire.iter().filter(|transmit| kind(&transmit.ops[0].op) == wanted);
    of_kind.map(|transmit| transmit.node.get()).collect()
}

pub(crate) fn answer_from(world: &mut World, node: u16, outcome: Outcome) {
    let transmit = world.take_for(0, node);
    world.answer(0, transmit.id, Ok(vec![outcome]));
}

fn raised(counter: u64) -> Outcome {
    Outcome::Applied(Applied::Raised { counter: Token::new(counter).unwrap() })
}

pub(crate) fn theirs() -> Outcome {
    conflict(Some(holding(other_nonce(), Some(1))))
}

#[test]
fn all_nodes_are_asked_at_once_with_one_floor() {
    let mut world = World::quorum(5, 1);
    world.acquire(0, 1, "r", options());
    assert_eq!(nodes_of(&world, 0, "acquire"), [0, 1, 2, 3, 4]);
    let ops: Vec<_> = world.hosts[0].wire.iter().map(|transmit| transmit.ops[0].op.clone()).collect();
    let acquires: Vec<_> = ops.iter().filter_map(|op| if let Op::Acquire(op) = op { Some(op) } else { None }).collect();
    assert!(acquires.iter().all(|op| op.floor == acquires[0].floor && op.nonce == acquires[0].nonce));
    let seqs: std::collections::BTreeSet<_> = acquires.iter().map(|op| op.seq).collect();
    assert_eq!(seqs.len(), 5, "every send has its own number");
}

#[test]
fn grant_needs_a_majority() {
    let mut world = World::quorum(3, 1);
    world.acquire(0, 1, "r", options());
    world.deliver_to(0, 2);
    assert_eq!(world.state(0, 1), Some("Acquiring"));
    world.deliver_to(0, 0);
    assert_eq!(world.state(0, 1), Some("Held"));
    assert_eq!(token(&world.take_events(0)).get(), EPOCH_FLOOR);
}

#[test]
fn the_majority_is_of_the_configured_nodes() {
    for (nodes, majority) in [(1, 1), (2, 2), (3, 2), (4, 3), (5, 3), (7, 4)] {
        let mut world = World::quorum(nodes, 1);
        world.acquire(0, 1, "r", options());
        for granted in 1..=majority {
            assert_ne!(world.state(0, 1), Some("Held"), "{granted} of {nodes}");
            world.deliver(0);
        }
        assert_eq!(world.state(0, 1), Some("Held"), "{majority} of {nodes}");
    }
}

#[test]
fn a_minority_may_be_down() {
    let mut world = World::quorum(5, 1);
    world.acquire(0, 1, "r", options());
    for _ in 0..600 {
        let (up, _): (Vec<_>, Vec<_>) =
            std::mem::take(&mut world.hosts[0].wire).into_iter().partition(|transmit| transmit.node.get() < 3);
        for transmit in up {
            world.carry(0, &transmit);
        }
        world.pass_cut_off(ms(100));
        assert!(world.remaining(0, 1) > secs(15));
    }
    world.release(0, 1);
    for node in 0..3 {
        world.deliver_to(0, node);
    }
    assert!((0..3).all(|node| !world.is_held(node, "r")));
}

#[test]
fn majority_down_fails_as_unavailable() {
    let mut world = World::quorum(3, 1);
    world.acquire(0, 1, "r", once());
    world.deliver_to(0, 0);
    for node in [1, 2] {
        let transmit = world.take_for(0, node);
        world.answer(
            0,
            transmit.id,
            Ok(vec![Outcome::NotApplied(Refusal::Unavailable(leasehold_core::op::Fault::of(
                leasehold_core::op::FaultKind::Unreachable,
            )))]),
        );
    }
    assert!(matches!(failure(&world.take_events(0)), Failure::Unavailable(_)));
    assert_eq!(nodes_of(&world, 0, "release"), [0], "the one that granted is released, those that refused are not");
    world.deliver_all();
    assert!(!world.is_held(0, "r"));
}

#[test]
fn a_lost_tally_releases_on_every_node_not_known_to_have_refused() {
    let mut world = World::quorum(5, 1);
    world.acquire(0, 1, "r", once());
    world.deliver_to(0, 0);
    for node in [1, 2, 3] {
        answer_from(&mut world, node, theirs());
    }
    // Node 4 has not answered at all.
    assert!(matches!(failure(&world.take_events(0)), Failure::Busy { .. }));
    assert_eq!(nodes_of(&world, 0, "release"), [0, 4]);
}

#[test]
fn a_lower_counter_is_raised_before_the_grant() {
    let mut world = World::quorum(3, 1);
    world.acquire(0, 1, "r", options());
    answer_from(&mut world, 0, acquired(5));
    answer_from(&mut world, 1, acquired(9));
    assert_eq!(world.take_events(0), [], "two grants, and no majority for one number");
    assert_eq!(nodes_of(&world, 0, "raise"), [0]);
    let raise = world.hosts[0].wire.iter().find(|transmit| transmit.node == NodeId::new(0)).unwrap();
    assert!(matches!(raise.ops[0].op, Op::Raise(op) if op.token.get() == 9));
    answer_from(&mut world, 0, raised(9));
    assert_eq!(token(&world.take_events(0)).get(), 9);
}

#[test]
fn higher_counter_restarts_the_count() {
    let mut world = World::quorum(3, 1);
    world.acquire(0, 1, "r", options());
    answer_from(&mut world, 0, acquired(5));
    answer_from(&mut world, 1, acquired(9));
    // Another client had raised the node further: its counter is above the requested token.
    answer_from(&mut world, 0, raised(12));
    assert_eq!(world.take_events(0), [], "9 and 12 are not the same number");
    assert_eq!(nodes_of(&world, 0, "raise"), [1]);
    answer_from(&mut world, 1, raised(12));
    assert_eq!(token(&world.take_events(0)).get(), 12);
}

#[test]
fn third_node_can_complete_the_acks() {
    let mut world = World::quorum(3, 1);
    world.acquire(0, 1, "r", options());
    answer_from(&mut world, 0, acquired(5));
    answer_from(&mut world, 1, acquired(9));
    answer_from(&mut world, 2, acquired(9));
    assert_eq!(token(&world.take_events(0)).get(), 9);
}

#[test]
fn real_stores_with_unequal_counters_agree_after_a_raise() {
    let mut world = World::quorum(3, 2);
    // Node 1 alone was used by a client with a clock far ahead.
    world.hosts[1].unix_ms = Some(EPOCH_UNIX_MS + 1_000_000);
    world.acquire(1, 1, "r", once());
    world.deliver_to(1, 1);
    world.release(1, 1);
    world.deliver_all();
    world.take_events(1);
    let token = world.hold(0, 1, "r", options());
    assert_eq!(token.get(), EPOCH_FLOOR + 1_000_000_001);
    let counters: Vec<_> = (0..3).map(|node| world.record(node, "r").counter).collect();
    assert!(counters.iter().filter(|counter| **counter == token).count() >= 2, "{counters:?}");
}

#[test]
fn record_gone_before_its_raise_fails_the_attempt() {
    let mut world = World::quorum(2, 1);
    world.acquire(0, 1, "r", once());
    answer_from(&mut world, 0, acquired(5));
    answer_from(&mut world, 1, acquired(9));
    answer_from(&mut world, 0, conflict(None));
    assert_eq!(failure(&world.take_events(0)), Failure::Busy { holding: None });
    assert_eq!(nodes_of(&world, 0, "release"), [1]);
}

#[test]
fn node_that_lost_our_record_before_the_raise_does_not_count() {
    let mut world = World::quorum(3, 1);
    world.acquire(0, 1, "r", options());
    let sent = world.now(0).monotonic;
    let lost = world.take_for(0, 1);
    let reset_third = world.take_for(0, 2);
    // Node 2 is asked again 100 ms later, so that its deadline is the latest of all.
    world.answer(0, reset_third.id, Err(reset()));
    world.jump(ms(150));
    world.tick(0);
    answer_from(&mut world, 2, acquired(5));
    world.answer(0, lost.id, Ok(vec![acquired(9)]));
    assert_eq!(nodes_of(&world, 0, "raise"), [2]);
    answer_from(&mut world, 2, conflict(None));
    answer_from(&mut world, 0, acquired(9));
    let [Event::Acquired { deadline, .. }] = world.take_events(0)[..] else { panic!("granted by nodes 0 and 1") };
    assert_eq!(deadline, sent.plus(validity(secs(30))));
    world.jump(ms(10));
    // Only the two that hold our record are renewed.
    world.pass_until_sent(0);
    world.pass_cut_off(ms(300));
    assert_eq!(nodes_of(&world, 0, "renew"), [0, 1]);
}

#[test]
fn the_deadline_is_that_of_the_qth_node() {
    let mut world = World::quorum(5, 1);
    world.acquire(0, 1, "r", options());
    let sent = world.now(0).monotonic;
    let first: Vec<_> = world.hosts[0].wire.drain(..).collect();
    for transmit in &first {
        // Nodes 0 to 2 never got the first send; 3 and 4 did.
        if transmit.node.get() >= 3 {
            world.carry(0, transmit);
        }
    }
    world.pass_cut_off(ms(500));
    let resent = world.now(0).monotonic;
    world.deliver_to(0, 0);
    let [Event::Acquired { deadline, .. }] = world.take_events(0)[..] else { panic!("granted by three") };
    // Two deadlines count from the first sends and one from the second: the third largest is an early one.
    assert_eq!(deadline, sent.plus(validity(secs(30))));

    world.deliver_to(0, 1);
    assert_eq!(world.take_events(0), [], "two late ones, two early ones: the third largest is still early");
    world.deliver_to(0, 2);
    let [Event::Renewed { deadline, recovered: false, .. }] = world.take_events(0)[..] else { panic!("moved") };
    assert_eq!(deadline, resent.plus(validity(secs(30))), "three late ones: now the third largest is late");
}

/// Three nodes that hold a lease, with its renewals in flight.
fn renewing() -> World {
    let mut world = World::quorum(3, 1);
    world.hold(0, 1, "r", options());
    world.pass_until_sent(0);
    assert_eq!(nodes_of(&world, 0, "renew"), [0, 1, 2]);
    world
}

#[test]
fn a_majority_of_renewals_moves_the_deadline() {
    let mut world = renewing();
    let sent = world.now(0).monotonic;
    world.deliver_to(0, 2);
    assert_eq!(world.take_events(0), [], "one node alone vouches for nothing");
    world.deliver_to(0, 1);
    let [Event::Renewed { deadline, .. }] = world.take_events(0)[..] else { panic!("renewed") };
    assert_eq!(deadline, sent.plus(validity(secs(30))));
}

#[test]
fn unanswered_renewal_keeps_the_deadline_of_the_node() {
    let mut world = renewing();
    let before = world.remaining(0, 1);
    for node in [0, 1] {
        let transmit = world.take_for(0, node);
        world.answer(0, transmit.id, Err(timeout()));
    }
    assert_eq!(world.remaining(0, 1), before);
    assert!(!has(&world.take_events(0), |event| matches!(event, Event::Shortened { .. } | Event::Lost { .. })));
}

#[test]
fn a_node_without_our_record_shortens_the_lease_and_a_second_one_ends_it() {
    let mut world = renewing();
    world.deliver_to(0, 0);
    world.deliver_to(0, 1);
    let late = world.take_events(0);
    assert!(has(&late, |event| matches!(event, Event::Renewed { .. })));
    let extended = world.remaining(0, 1);
    answer_from(&mut world, 2, theirs());
    assert_eq!(world.take_events(0), [], "the other two still vouch for as long");
    assert_eq!(world.remaining(0, 1), extended);

    world.pass_until_sent(0);
    assert_eq!(nodes_of(&world, 0, "renew"), [0, 1], "what is not ours is not renewed");
    answer_from(&mut world, 0, theirs());
    let reason = loss(&world.take_events(0));
    assert!(matches!(reason, LostReason::TakenOver { by: Some(_) }), "{reason:?}");
}

#[test]
fn losing_one_of_the_latest_nodes_moves_the_deadline_back() {
    let mut world = renewing();
    let before = world.now(0).monotonic.plus(world.remaining(0, 1));
    world.deliver_to(0, 0);
    world.deliver_to(0, 1);
    world.take_events(0);
    // Node 2 stays at its first deadline; node 1 restarts without data and says so only now.
    world.take_for(0, 2);
    world.pass_until_sent(0);
    while world.hosts[0].wire.iter().all(|transmit| transmit.node.get() != 1) {
        world.hosts[0].wire.clear();
        world.pass_until_sent(0);
    }
    answer_from(&mut world, 1, conflict(None));
    let events = world.take_events(0);
    assert!(has(&events, |event| *event == Event::Shortened { lock: lock(1), deadline: before }), "{events:?}");
    assert_eq!(world.now(0).monotonic.plus(world.remaining(0, 1)), before);
}

#[test]
fn abstaining_nodes_still_count_until_their_deadline() {
    let abstains = Outcome::NotApplied(Refusal::Abstains { stamp: None });
    for (answer, lost) in [(abstains, false), (conflict(None), true)] {
        let config = Config::new(vec![NodeConfig::default(); 3]).unwrap();
        let mut world = World::with_config(&config.with_quorum(Quorum::new(QuorumId([1; 16]), secs(60)).unwrap()), 1);
        world.acquire(0, 1, "r", options());
        for node in 0..3 {
            answer_from(&mut world, node, acquired(5));
        }
        world.pass_until_sent(0);
        for node in [0, 1] {
            answer_from(&mut world, node, answer.clone());
        }
        assert_eq!(world.state(0, 1).is_none(), lost, "rivals abstain there, so nobody else can have it");
    }
}

#[test]
fn a_release_goes_to_every_node_that_may_have_our_record() {
    let mut world = World::quorum(3, 1);
    world.acquire(0, 1, "r", options());
    world.deliver_to(0, 0);
    world.deliver_to(0, 1);
    // Node 2 has not answered yet.
    world.release(0, 1);
    assert_eq!(nodes_of(&world, 0, "release"), [0, 1, 2]);
    world.deliver_to(0, 0);
    assert!(!has(&world.take_events(0), |event| matches!(event, Event::Released { .. })));
    world.deliver_to(0, 1);
    // A majority is free, so rivals can have it.
    assert!(has(&world.take_events(0), |event| matches!(event, Event::Released { confirmed: true, .. })));
    world.deliver_all();
    assert_eq!(world.take_events(0), [], "told once");
    assert!(!world.is_held(2, "r"));
}

#[test]
fn release_ends_with_a_majority_and_continues_in_background() {
    let mut world = World::quorum(3, 1);
    world.hold(0, 1, "r", options());
    world.release(0, 1);
    for node in [0, 1] {
        world.deliver_to(0, node);
    }
    assert!(has(&world.take_events(0), |event| matches!(event, Event::Released { confirmed: true, .. })));
    assert_eq!(world.state(0, 1), None);
    // The release to the third node got lost; it is sent again without help.
    let _ = world.take_for(0, 2);
    assert!(world.is_held(2, "r"));
    world.pass(secs(2));
    assert!(!world.is_held(2, "r"));
    assert!(world.hosts[0].client.is_idle());
}

/// The caller of `close` waits until the client is idle.
#[test]
fn late_release_answer_of_a_minority_is_used() {
    let mut world = World::quorum(3, 1);
    world.hold(0, 1, "r", options());
    world.release(0, 1);
    for node in [0, 1] {
        world.deliver_to(0, node);
    }
    assert_eq!(world.state(0, 1), None);
    assert!(!world.hosts[0].client.is_idle(), "the third node still has the record");
    world.deliver_to(0, 2);
    assert!(world.hosts[0].client.is_idle(), "without asking again, and without any time having passed");
    assert_eq!(world.on_the_wire(0), [""; 0]);
    assert!(!world.is_held(2, "r"));
}

#[test]
fn broken_lock_is_not_reacquired_by_repair() {
    let mut world = World::quorum(3, 1);
    world.hold(0, 1, "r", options());
    world.break_at(0, "r");
    world.pass(secs(60));
    assert!(!world.is_held(0, "r"), "two of three still carry it, and the third is left in peace");
    assert_eq!(world.state(0, 1), Some("Held"));
    world.break_at(1, "r");
    world.pass(secs(60));
    assert!(matches!(loss(&world.take_events(0)), LostReason::Released));
}

#[test]
fn release_reports_a_loss_when_the_majority_is_gone() {
    for (broken, is_lost) in [(0, false), (1, false), (2, true), (3, true)] {
        let mut world = World::quorum(3, 1);
        world.hold(0, 1, "r", options());
        world.deliver_all();
        (0..broken).for_each(|node| world.break_at(node, "r"));
        world.release(0, 1);
        world.deliver_all();
        let expected = match is_lost {
            true => Event::Lost { lock: lock(1), reason: LostReason::Released },
            false => Event::Released { lock: lock(1), confirmed: true },
        };
        assert_eq!(world.take_events(0).last(), Some(&expected), "broken on {broken} of 3");
        assert!(world.hosts[0].client.is_idle() && (0..3).all(|node| !world.is_held(node, "r")));
    }
}

/// Two of three nodes granted, and one of them is dead by then: others can have the lock, so nobody waits for that node.
#[test]
fn release_does_not_wait_for_a_dead_node() {
    let mut world = World::quorum(3, 1);
    world.acquire(0, 1, "r", options());
    world.deliver_to(0, 0);
    world.deliver_to(0, 1);
    let third = world.take_for(0, 2);
    world.answer(0, third.id, Err(TransportFault::NotSent(Fault::of(FaultKind::Unreachable))));
    world.take_events(0);
    world.release(0, 1);
    while let Some(transmit) = world.hosts[0].wire.pop_front() {
        let answer = match transmit.node.get() {
            1 => Err(TransportFault::NotSent(Fault::of(FaultKind::Unreachable))),
            _ => Ok(world.perform(&transmit)),
        };
        world.answer(0, transmit.id, answer);
    }
    assert_eq!(world.take_events(0), [Event::Released { lock: lock(1), confirmed: false }]);
}

/// One node refuses, one is ours, and the third decides, but does not answer.
#[test]
fn release_waits_for_the_deciding_node() {
    for is_broken in [false, true] {
        let mut world = World::quorum(3, 1);
        world.hold(0, 1, "r", options());
        world.deliver_all();
        world.take_events(0);
        world.break_at(0, "r");
        if is_broken {
            world.break_at(2, "r");
        }
        world.release(0, 1);
        world.deliver_to(0, 0);
        world.deliver_to(0, 1);
        assert_eq!(world.take_events(0), []);
        world.deliver_to(0, 2);
        let events = world.take_events(0);
        assert_eq!(has(&events, |event| matches!(event, Event::Lost { .. })), is_broken, "{events:?}");
    }
}

#[test]
fn a_late_acquire_does_not_outlive_the_release() {
    let mut world = World::quorum(3, 1);
    world.acquire(0, 1, "r", options());
    world.deliver_to(0, 0);
    world.deliver_to(0, 1);
    let late = world.take_for(0, 2);
    world.release(0, 1);
    world.overtake(0, &late);
    world.pass(secs(5));
    assert!(!world.is_held(2, "r"), "an orphan is left on node 2");
}

#[test]
fn late_acquire_answer_does_not_end_the_release() {
    let mut world = World::quorum(3, 1);
    world.acquire(0, 1, "r", options());
    world.deliver_to(0, 0);
    world.deliver_to(0, 1);
    let late = world.take_for(0, 2);
    world.release(0, 1);
    let release = world.take_for(0, 2);
    let (found_nothing, granted) = (world.perform(&release), world.perform(&late));
    world.answer(0, late.id, Ok(granted));
    world.answer(0, release.id, Ok(found_nothing));
    assert_eq!(nodes_of(&world, 0, "release"), [0, 1, 2], "at once");
    world.deliver_all();
    assert!(!world.is_held(2, "r"));
}

#[test]
fn record_without_seq_counts_from_the_earliest_send() {
    let mut world = World::quorum(3, 1);
    world.acquire(0, 1, "r", options());
    world.deliver_to(0, 0);
    world.deliver_to(0, 1);
    world.take_events(0);
    let nonce = world.hosts[0].wire[0].ops[0].op.nonce().unwrap();
    answer_from(&mut world, 2, conflict(Some(Holding { counter: None, ..holding(nonce, None) })));
    world.release(0, 1);
    assert_eq!(nodes_of(&world, 0, "release"), [0, 1, 2], "our record stands there as well");
}

#[test]
fn two_concurrent_clients_never_both_hold() {
    for order in 0..64_u32 {
        let mut world = World::quorum(3, 2);
        world.acquire(0, 1, "r", once());
        world.acquire(1, 1, "r", once());
        for bit in 0..6 {
            let host = usize::from(order & (1 << bit) != 0);
            let host = if world.hosts[host].wire.is_empty() { 1 - host } else { host };
            if !world.hosts[host].wire.is_empty() {
                world.deliver(host);
            }
        }
        world.deliver_all();
        let held = (0..2).filter(|host| world.remaining(*host, 1) > secs(0)).count();
        assert!(held <= 1, "order {order:06b}");
    }
}

#[test]
fn pending_raise_does_not_spin() {
    let mut world = World::quorum(5, 1);
    world.acquire(0, 1, "r", options());
    answer_from(&mut world, 0, acquired(5));
    answer_from(&mut world, 1, acquired(7));
    answer_from(&mut world, 2, acquired(7));
    // Node 0 is to be raised, and the connection to it breaks: it is tried again a little later.
    let raise = world.take_for(0, 0);
    world.answer(0, raise.id, Err(reset()));
    // Meanwhile the counters of the other nodes change, and two of them lose our record.
    answer_from(&mut world, 3, acquired(9));
    for node in [1, 2] {
        answer_from(&mut world, node, conflict(None));
    }
    assert_eq!(world.state(0, 1), Some("Acquiring"), "nodes 0, 3 and 4 may still agree");
    world.pass_cut_off(ms(200));
    answer_from(&mut world, 4, acquired(9));
    assert_eq!(nodes_of(&world, 0, "raise"), [0], "now it is raised");
    answer_from(&mut world, 0, raised(9));
    assert_eq!(token(&world.take_events(0)).get(), 9);
}

#[test]
fn unanswered_raise_is_resent_and_then_given_up() {
    let mut world = World::quorum(3, 1);
    world.acquire(0, 1, "r", once());
    answer_from(&mut world, 2, theirs());
    answer_from(&mut world, 0, acquired(5));
    answer_from(&mut world, 1, acquired(9));
    for send in 1..=3 {
        assert_eq!(nodes_of(&world, 0, "raise"), [0], "send {send}");
        let raise = world.take_for(0, 0);
        world.answer(0, raise.id, Err(timeout()));
    }
    assert!(matches!(failure(&world.take_events(0)), Failure::Busy { .. }));
    assert_eq!(nodes_of(&world, 0, "release"), [0, 1], "granted or raised, both are released");
}

#[test]
fn answer_to_an_earlier_attempt_is_ignored() {
    let mut world = World::quorum(3, 1);
    world.acquire(0, 1, "r", options());
    answer_from(&mut world, 0, theirs());
    answer_from(&mut world, 1, theirs());
    // The attempt has already failed; node 2 has not answered it when the next one begins.
    let slow = world.take_for(0, 2);
    while nodes_of(&world, 0, "acquire").is_empty() {
        world.hosts[0].wire.clear();
        world.pass_until_sent(0);
    }
    assert_eq!(nodes_of(&world, 0, "acquire"), [0, 1, 2]);
    world.answer(0, slow.id, Ok(vec![acquired(5)]));
    answer_from(&mut world, 0, acquired(5));
    assert_eq!(world.state(0, 1), Some("Acquiring"), "node 2 spoke of another attempt");
    answer_from(&mut world, 1, acquired(5));
    assert_eq!(world.state(0, 1), Some("Held"));
}

#[test]
fn answer_to_an_earlier_attempt_does_not_affect_the_lease() {
    let mut world = World::quorum(3, 1);
    world.acquire(0, 1, "r", options());
    answer_from(&mut world, 0, theirs());
    answer_from(&mut world, 1, theirs());
    let slow = world.take_for(0, 2);
    while nodes_of(&world, 0, "acquire").is_empty() {
        world.hosts[0].wire.clear();
        world.pass_until_sent(0);
    }
    answer_from(&mut world, 0, acquired(5));
    answer_from(&mut world, 1, acquired(5));
    assert_eq!(world.state(0, 1), Some("Held"));
    world.answer(0, slow.id, Ok(vec![theirs()]));
    answer_from(&mut world, 2, acquired(5));
    while nodes_of(&world, 0, "renew").is_empty() {
        world.hosts[0].wire.clear();
        world.pass_until_sent(0);
    }
    assert_eq!(nodes_of(&world, 0, "renew"), [0, 1, 2]);
}
