//! Nodes that remember the quorum they belong to: a node that has lost its data abstains, votes again, and is trusted only
//! after its counter was raised.

use std::time::Duration;

use crate::common::*;
use leasehold_core::member::{Durability, LossId, Marker, Phase, QuorumId, RunId};
use leasehold_core::op::{Acquire, Applied, DenialKind, Fault, FaultKind, Op, Outcome, Refusal, TransportFault};
use leasehold_core::{Client, Config, Error, Event, Failure, NodeConfig, NodeId, Output, Quorum, Token, Transmit};

const QUORUM: QuorumId = QuorumId([0xa1; 16]);
const OTHER: QuorumId = QuorumId([0xb2; 16]);
/// The id of a loss that a client has waited out.
const LOSS: LossId = LossId([0xcc; 16]);
/// The abstention for records of at most 60 s, at the default drift of 1%: 60 s * 1.01 / 0.99 + 1 s.
const ABSTENTION: Duration = Duration::from_nanos(62_212_121_213);
/// A time above all pauses between tries.
const SOON: Duration = secs(6);

fn config_of(id: QuorumId, max_ttl: Duration, durability: Durability) -> Config {
    let nodes = vec![NodeConfig { durability, ..NodeConfig::default() }; 3];
    Config::new(nodes).unwrap().with_quorum(Quorum::new(id, max_ttl).unwrap())
}

fn config() -> Config {
    config_of(QUORUM, secs(60), Durability::NotDeclared)
}

/// Three new nodes.
fn unborn(hosts: usize) -> World {
    World::with_config(&config(), hosts)
}

/// Three nodes that have always been of the quorum.
pub(crate) fn born(hosts: usize) -> World {
    let mut world = unborn(hosts);
    for store in &mut world.stores {
        store.marker = Some(marker(QUORUM, 60_000, Phase::Member));
    }
    world
}

fn marker(quorum: QuorumId, max_ttl_ms: u64, phase: Phase) -> Marker {
    Marker { quorum, max_ttl_ms, stamp: LOSS, phase, run: None }
}

fn phase(world: &World, node: usize) -> Option<Phase> {
    world.stores[node].marker.as_ref().map(|marker| marker.phase)
}

/// Returns true if two nodes have a record of the same attempt.
fn agree(world: &World, one: usize, other: usize) -> bool {
    let of = |node: usize| world.stores[node].records.get(&resource("r"))?.lease.as_ref().map(|lease| lease.nonce);
    of(one).is_some() && of(one) == of(other)
}

fn is_back(world: &World, node: usize) -> bool {
    matches!(phase(world, node), Some(Phase::Rejoined { .. }))
}

/// The node has lost its data, and a client has waited that out.
pub(crate) fn rejoin(world: &mut World, node: usize) {
    world.stores[node].lose_data();
    world.stores[node].marker = Some(marker(QUORUM, 60_000, Phase::Rejoined { trusted_from_unix_ms: u64::MAX }));
}

pub(crate) fn nodes_of(world: &World, host: usize, wanted: &str) -> Vec<u16> {
    let of_kind = world.hosts[host].wire.iter().filter(|transmit| kind(&transmit.ops[0].op) == wanted);
    of_kind.map(|transmit| transmit.node.get()).collect()
}

/// The next request to the node, and its answer.
pub(crate) fn answer_of(world: &mut World, host: usize, node: u16) -> (Transmit, Outcome) {
    let transmit = world.take_for(host, node);
    let outcomes = world.perform(&transmit);
    world.answer(host, transmit.id, Ok(outcomes.clone()));
    (transmit, outcomes[0].clone())
}

pub(crate) fn refuse_connection(world: &mut World, host: usize, node: u16) {
    let transmit = world.take_for(host, node);
    let away = TransportFault::NotSent(Fault::of(FaultKind::Unreachable));
    world.answer(host, transmit.id, Err(away));
}

/// A record that another client has left on one node.
pub(crate) fn occupy(world: &mut World, node: u16, name: &str, floor: Token) {
    let (now, fresh, time) = (world.now(0), world.fresh(), world.time);
    let mut somebody = Client::new(config(), [9; 32], now);
    somebody.acquire(lock(1), resource(name), options(), &fresh, now).unwrap();
    let Output::Transmit(transmit) = somebody.poll_output(now) else { panic!("a request") };
    let Op::Acquire(acquire) = &transmit.ops[0].op else { panic!("an acquire") };
    let op = Op::Acquire(Box::new(Acquire { floor, member: None, ..(**acquire).clone() }));
    let outcome = world.stores[usize::from(node)].perform(&resource(name), &op, time);
    assert!(matches!(outcome, Outcome::Applied(_)), "{outcome:?}");
}

fn is_lost(events: &[Event]) -> bool {
    has(events, |event| matches!(event, Event::Lost { .. } | Event::Shortened { .. }))
}

#[test]
fn new_quorum_votes_after_one_abstention() {
    let mut world = unborn(2);
    world.acquire(0, 1, "r", options());
    world.deliver_all();
    assert!((0..3).all(|node| phase(&world, node) == Some(Phase::Joining)));
    world.pass(secs(20));
    // Each client waits by its own clock, from the first answer that it has seen itself.
    for (host, left) in [(0, ABSTENTION - secs(20)), (1, ABSTENTION)] {
        world.acquire(host, 2, "s", once());
        world.deliver_all();
        assert_eq!(failure(&world.take_events(host)), Failure::Abstains { left });
    }
    world.pass(ABSTENTION - secs(20) - ms(1));
    assert_eq!(world.take_events(0), []);
    assert!((0..3).all(|node| phase(&world, node) == Some(Phase::Joining) && !world.is_held(node, "r")));
    world.pass(SOON);
    let token = token(&world.take_events(0));
    assert!(token.get() >= EPOCH_UNIX_MS);
    assert!((0..3).all(|node| phase(&world, node) == Some(Phase::Member)), "none of them is in doubt");
    world.acquire(1, 3, "s", once());
    world.deliver_all();
    assert_eq!(world.state(1, 3), Some("Held"), "later clients need not wait");
}

/// Two answers decide that an attempt has failed. The third is awaited all the same.
#[test]
fn new_quorum_votes_even_with_a_slow_node() {
    let mut world = unborn(1);
    world.acquire(0, 1, "r", options());
    world.pass(ABSTENTION + SOON);
    assert_eq!(world.state(0, 1), Some("Held"));
}

#[test]
fn new_quorum_needs_all_of_its_nodes() {
    let mut world = unborn(1);
    world.acquire(0, 1, "r", options());
    without_node_2(&mut world, 2 * ABSTENTION);
    assert_eq!(world.take_events(0), [], "the third may remember what the two have lost");
    assert!((0..2).all(|node| phase(&world, node) == Some(Phase::Joining)));
}

/// Time passes, and host 0 reaches only the other two nodes.
fn without_node_2(world: &mut World, length: Duration) {
    let end = world.time + length;
    while world.time < end {
        while let Some(transmit) = world.hosts[0].wire.front().cloned() {
            if transmit.node.get() == 2 {
                refuse_connection(world, 0, 2)
            } else {
                world.deliver(0);
            }
        }
        world.pass_cut_off(ms(100));
    }
}

#[test]
fn old_abstention_is_no_proof_of_a_new_quorum() {
    let mut world = unborn(2);
    world.acquire(0, 1, "r", once());
    world.deliver_all();
    assert!(matches!(failure(&world.take_events(0)), Failure::Abstains { .. }));
    // Another client waits until the new quorum votes, and gets a lock; then a majority forgets it.
    world.acquire(1, 1, "s", options());
    world.pass(ABSTENTION + SOON);
    token(&world.take_events(1));
    world.stores[0].lose_data();
    world.stores[1].lose_data();
    world.acquire(0, 2, "s", options());
    without_node_2(&mut world, 2 * ABSTENTION);
    assert_eq!(world.take_events(0), [], "the third, which is away now, remembers");
    assert!((0..2).all(|node| phase(&world, node) == Some(Phase::Joining)));
}

#[test]
fn second_loss_restarts_the_abstention() {
    let mut world = unborn(1);
    world.acquire(0, 1, "r", options());
    world.pass(secs(30));
    let before = world.stores[2].marker.clone();
    world.stores[2].lose_data();
    world.pass(SOON);
    let after = world.stores[2].marker.clone();
    assert_ne!(before.map(|marker| marker.stamp), after.map(|marker| marker.stamp), "another loss, another name");
    world.acquire(0, 2, "s", once());
    world.deliver_all();
    let Failure::Abstains { left } = failure(&world.take_events(0)) else { panic!("all abstain") };
    assert!(left > ABSTENTION - SOON && left <= ABSTENTION, "as long as the last of them: {left:?}");
    world.pass(ABSTENTION - SOON - ms(1));
    assert_eq!(world.take_events(0), [], "the other two were ready long ago");
    world.pass(2 * SOON);
    token(&world.take_events(0));
    assert!((0..3).all(|node| phase(&world, node) == Some(Phase::Member)));
}

#[test]
fn node_that_lost_its_data_counts_until_its_deadline() {
    let mut world = born(1);
    world.hold(0, 1, "r", options());
    let deadline = world.now(0).monotonic.plus(world.remaining(0, 1));
    world.stores[1].lose_data();
    // Node 0 loses the record without noticing.
    world.stores[0].records.clear();
    world.pass_until_sent(0);
    let (_, outcome) = answer_of(&mut world, 0, 1);
    assert_eq!(outcome, Outcome::NotApplied(Refusal::Abstains { stamp: None }));
    let events = world.take_events(0);
    assert!(matches!(events[..], [Event::RenewDelayed { deadline: at, .. }] if at == deadline), "{events:?}");
    let (_, outcome) = answer_of(&mut world, 0, 0);
    assert_eq!(outcome, conflict(None));
    assert_eq!(world.take_events(0), [], "nodes 1 and 2 are a majority, as of the first sends");
    assert_eq!(world.now(0).monotonic.plus(world.remaining(0, 1)), deadline);
    world.deliver_to(0, 2);
    assert_eq!(world.take_events(0), [], "the one renewal alone moves nothing");
    // Its promise to us ends at its deadline, as before.
    world.pass_until_sent(0);
    assert_eq!(nodes_of(&world, 0, "acquire"), [1], "it is asked for its vote from now on");
}

#[test]
fn a_node_that_lost_its_data_is_repaired_after_its_abstention() {
    let mut world = born(2);
    let token = world.hold(0, 1, "r", options());
    world.stores[1].lose_data();
    let mut asked = 0;
    while !agree(&world, 0, 1) {
        world.pass(secs(1));
        asked += 1;
        assert!(asked < 90, "the node is asked until it has our record again");
        assert!(is_back(&world, 1) || !world.is_held(1, "r"), "nobody has its vote yet");
        // A rival waits it out as well.
        world.acquire(1, asked, "r", once());
        world.deliver_all();
        assert!(matches!(failure(&world.take_events(1)), Failure::Busy { .. }));
    }
    assert!(asked > ABSTENTION.as_secs());
    assert!(!is_lost(&world.take_events(0)));
    assert!(world.record(1, "r").counter >= token, "it votes for this lease, so it knows its token");
    assert_eq!(world.stores[1].trusted.len(), 1, "and all that came before, since nobody can have a higher one now");
    // The node counts: with one of the others down for good, the lease goes on.
    world.stores[0].records.clear();
    world.stores[0].marker = Some(marker(OTHER, 60_000, Phase::Member));
    world.pass(secs(60));
    assert!(!has(&world.take_events(0), |event| matches!(event, Event::Lost { .. })));
    assert!(world.remaining(0, 1) > secs(15));
}

#[test]
fn a_rolling_restart_loses_no_lease() {
    let mut world = born(2);
    let first = world.hold(0, 1, "r", options());
    for node in 0..3 {
        world.stores[node].lose_data();
        let until = world.time + ABSTENTION + secs(20);
        while !(is_back(&world, node) && world.is_held(node, "r")) {
            world.pass(ms(500));
            assert!(world.time < until, "node {node} comes back");
            assert!(world.remaining(0, 1) > secs(10), "node {node}");
        }
        assert!(!is_lost(&world.take_events(0)), "node {node}");
        world.acquire(1, node as u64, "r", once());
        world.deliver_all();
        assert!(matches!(failure(&world.take_events(1)), Failure::Busy { .. }));
    }
    world.pass(secs(60));
    assert!(!is_lost(&world.take_events(0)) && world.remaining(0, 1) > secs(15));
    world.release(0, 1);
    world.deliver_all();
    // All three are in doubt now, and still grant a token, since all of them were read.
    world.hosts[1].unix_ms = Some(0);
    world.acquire(1, 9, "r", options());
    world.pass(SOON);
    assert!(token(&world.take_events(1)) > first);
}

/// Nodes 0 and 2 have minted tokens, node 1 has forgotten them, and the clock of host 1 is too low to pass them. Another
/// client holds node 2, so that node 1 is needed.
fn needed(knows_of_the_loss: bool) -> (World, Token) {
    let mut world = born(2);
    world.hosts[1].unix_ms = Some(0);
    for id in 1..=3 {
        world.hold(0, id, "r", options());
        world.release(0, id);
        world.deliver_all();
    }
    rejoin(&mut world, 1);
    let above = Token::new(2 * EPOCH_FLOOR).unwrap();
    occupy(&mut world, 2, "r", above);
    if knows_of_the_loss {
        world.acquire(1, 1, "s", once());
        world.deliver_all();
        world.release(1, 1);
        world.deliver_all();
        world.take_events(1);
    }
    (world, above)
}

#[test]
fn doubtful_node_is_raised_above_all_shown_counters() {
    let (mut world, above) = needed(true);
    world.acquire(1, 2, "r", once());
    let (_, outcome) = answer_of(&mut world, 1, 1);
    let Outcome::Applied(Applied::AcquiredInDoubt { counter, stamp: LOSS }) = outcome else { panic!("{outcome:?}") };
    assert!(counter.get() < 10, "it begins from nothing: {counter}");
    world.deliver_to(1, 0);
    assert_eq!(world.take_events(1), [], "one other node is not enough to know of every token");
    world.deliver_to(1, 2);
    assert_eq!(nodes_of(&world, 1, "raise"), [0, 1]);
    world.deliver_to(1, 0);
    assert_eq!(world.take_events(1), [], "the one in doubt still has to be raised");
    world.deliver_to(1, 1);
    assert_eq!(token(&world.take_events(1)), above.next().unwrap());
    assert_eq!(world.stores[1].trusted.get(&resource("r")), Some(&LOSS));
    // From now on it is trusted.
    world.release(1, 2);
    world.deliver_all();
    world.acquire(1, 3, "r", once());
    let (_, outcome) = answer_of(&mut world, 1, 1);
    assert!(matches!(outcome, Outcome::Applied(Applied::Acquired { counter }) if counter > above), "{outcome:?}");
}

#[test]
fn doubtful_node_with_a_lost_reply_does_not_count() {
    let (mut world, _) = needed(true);
    world.acquire(1, 2, "r", once());
    let lost = world.take_for(1, 1);
    world.perform(&lost);
    world.answer(1, lost.id, Err(timeout()));
    let (_, outcome) = answer_of(&mut world, 1, 1);
    let Outcome::NotApplied(Refusal::Conflict(seen)) = outcome else { panic!("{outcome:?}") };
    assert_eq!(seen.holding.unwrap().counter, None, "what it counts is no token yet");
    world.deliver_to(1, 0);
    world.deliver_to(1, 2);
    assert!(matches!(failure(&world.take_events(1)), Failure::Busy { .. }));
    assert_eq!(nodes_of(&world, 1, "release"), [0, 1]);
}

#[test]
fn attempt_before_the_loss_was_known_excludes_the_node() {
    let (mut world, above) = needed(false);
    world.acquire(1, 2, "r", once());
    world.deliver_to(1, 0);
    let (_, outcome) = answer_of(&mut world, 1, 1);
    assert!(matches!(outcome, Outcome::Applied(Applied::AcquiredInDoubt { .. })), "{outcome:?}");
    world.deliver_to(1, 2);
    assert!(matches!(failure(&world.take_events(1)), Failure::Busy { .. }));
    assert_eq!(nodes_of(&world, 1, "release"), [0, 1], "its record is ours, and given back");
    world.deliver_all();
    world.acquire(1, 3, "r", once());
    world.deliver_all();
    assert!(token(&world.take_events(1)) > above);
}

#[test]
fn node_seen_to_vote_counts_in_the_first_attempt() {
    let (mut world, above) = needed(false);
    let now = world.now(1);
    world.hosts[1].client.node_votes(NodeId::new(1), Some(LOSS), now);
    world.acquire(1, 2, "r", once());
    world.deliver_all();
    assert!(token(&world.take_events(1)) > above);
}

#[test]
fn nodes_of_another_quorum_refuse_and_name_both() {
    for (id, max_ttl, said) in [
        (OTHER, secs(60), [format!("{QUORUM}"), format!("{OTHER}")]),
        (QUORUM, secs(40), ["60000 ms".into(), "40000 ms".into()]),
    ] {
        let mut world = born(0);
        let host = world.add_host(&config_of(id, max_ttl, Durability::NotDeclared), 0);
        world.acquire(host, 1, "r", options());
        world.deliver_all();
        let failure = failure(&world.take_events(host));
        let Failure::Refused(denial) = failure else { panic!("{failure:?}") };
        assert_eq!(denial.kind, DenialKind::Membership);
        assert!(said.iter().all(|said| denial.detail.contains(said)), "{denial}");
        assert!((0..3).all(|node| phase(&world, node) == Some(Phase::Member) && !world.is_held(node, "r")));
    }
}

#[test]
fn minority_of_another_quorum_does_not_block_a_grant() {
    for first in [0, 2] {
        let mut world = born(1);
        world.stores[first].marker = Some(marker(OTHER, 60_000, Phase::Member));
        world.hold(0, 1, "r", options());
        world.pass(secs(120));
        let events = world.take_events(0);
        assert!(has(&events, |event| matches!(event, Event::Renewed { .. })));
        assert!(!is_lost(&events) && world.remaining(0, 1) > secs(15), "{events:?}");
        assert!(!world.is_held(first, "r"));
    }
}

#[test]
fn record_ttl_above_max_ttl_is_rejected() {
    let mut world = born(1);
    let (now, fresh) = (world.now(0), world.fresh());
    let mut acquire = |ttl, lock_delay| {
        let options = with(|o| o.ttl(ttl).lock_delay(lock_delay));
        world.hosts[0].client.acquire(lock(1), resource("r"), options, &fresh, now)
    };
    let error = acquire(secs(50), secs(11)).unwrap_err();
    assert_eq!(error, Error::AboveMaxTtl { record_ttl: secs(61), max_ttl: secs(60) });
    let text = error.to_string();
    assert!(text.contains("61 s") && text.contains("60 s") && text.contains("max_ttl"), "{text}");
    assert_eq!(acquire(secs(50), secs(10)), Ok(()));
}

#[test]
fn a_node_of_another_run_votes_only_if_it_is_declared_durable() {
    for (durability, expected) in [(Durability::NotDeclared, Phase::Joining), (Durability::Declared, Phase::Member)] {
        let mut world = World::with_config(&config_of(QUORUM, secs(60), durability), 1);
        for store in &mut world.stores {
            let run = RunId::new("one");
            store.marker = Some(Marker { run: run.clone(), ..marker(QUORUM, 60_000, Phase::Member) });
            store.run = run;
        }
        world.hold(0, 1, "r", options());
        world.stores[0].run = RunId::new("two");
        world.acquire(0, 2, "s", once());
        world.deliver_all();
        assert_eq!(phase(&world, 0), Some(expected), "{durability:?}");
        assert_eq!(world.is_held(0, "s"), expected == Phase::Member, "{durability:?}");
        world.release(0, 2);
        world.deliver_all();
        // It still has the record of the lease, which stands as before.
        world.pass(secs(30));
        let events = world.take_events(0);
        assert!(!is_lost(&events) && !has(&events, |event| matches!(event, Event::RenewDelayed { .. })), "{events:?}");
        world.stores[0].records.remove(&resource("r"));
        world.pass_until_sent(0);
        let (_, outcome) = answer_of(&mut world, 0, 0);
        let abstains = Outcome::NotApplied(Refusal::Abstains { stamp: None });
        assert_eq!(outcome, if expected == Phase::Member { conflict(None) } else { abstains }, "{durability:?}");
    }
}

/// Otherwise one more failure within days would leave too few trusted counters.
#[test]
fn holder_raises_a_doubtful_node_outside_the_majority() {
    let mut world = born(2);
    rejoin(&mut world, 2);
    let token = world.hold(0, 1, "r", options());
    world.deliver_all();
    assert!(world.stores[2].trusted.contains_key(&resource("r")));
    assert_eq!(world.record(2, "r").counter, token);
    world.release(0, 1);
    world.deliver_all();
    // One of the others fails for good, and the next holder does without it.
    world.stores[0].marker = Some(marker(OTHER, 60_000, Phase::Member));
    world.acquire(1, 1, "r", options());
    world.deliver_all();
    assert!(self::token(&world.take_events(1)) > token);
}

/// Only a holder raises counters.
#[test]
fn doubtful_node_is_not_raised_after_the_lease() {
    let mut world = born(1);
    rejoin(&mut world, 2);
    world.acquire(0, 1, "r", options());
    world.deliver_to(0, 0);
    world.deliver_to(0, 1);
    world.release(0, 1);
    world.deliver_all();
    assert!(world.stores[2].trusted.is_empty());
}

/// A node that has forgotten votes for nobody, so no rival had the lock.
#[test]
fn release_counts_abstaining_nodes_as_kept() {
    let mut world = born(1);
    world.hold(0, 1, "r", options());
    world.deliver_all();
    world.stores[0].lose_data();
    world.stores[1].lose_data();
    world.release(0, 1);
    world.deliver_all();
    assert_eq!(world.take_events(0).last(), Some(&Event::Released { lock: lock(1), confirmed: true }));
}
