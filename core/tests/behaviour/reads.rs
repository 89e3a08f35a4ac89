//! Reads of a record on all nodes, and the attempts at a run that they show.

use crate::common::*;
use crate::quorum_memory::born;
use crate::runs::{finish_with, run};
use leasehold_core::config::RunOptions;
use leasehold_core::op::{Applied, Op, Outcome, Seen};
use leasehold_core::{Attempts, ReadId};

/// The resource of a count of attempts.
const COUNT: &str = "r@@attempts";

fn count(count: u32) -> Attempts {
    Attempts { count, max: 3, since_unix_ms: 1, retry_unix_ms: 2, reason: None }
}

fn read(world: &mut World, name: &str) -> ReadId {
    let now = world.now(0);
    let read = world.hosts[0].client.read(&resource(name), now);
    world.drain(0);
    read
}

fn take(world: &mut World, read: ReadId) -> Option<Vec<Outcome>> {
    world.hosts[0].client.take_read(read)
}

fn seen(outcome: &Outcome) -> Option<&Seen> {
    match outcome {
        Outcome::Applied(Applied::Read(seen)) => Some(seen),
        _ => None,
    }
}

fn beside(world: &World, answers: &[Outcome], id: u64) -> Option<Vec<Attempts>> {
    let nonce = world.hosts[0].client.nonce(lock(id)).unwrap();
    let shown: Vec<Option<&Seen>> = answers.iter().map(seen).collect();
    Attempts::beside(shown.into_iter(), &nonce)
}

#[test]
fn a_read_tells_what_each_node_has_and_tells_it_once() {
    let mut world = born(2);
    world.hold(1, 1, "r", options());
    let id = read(&mut world, "r");
    assert_eq!(world.on_the_wire(0), ["read"; 3]);
    world.deliver_to(0, 2);
    world.deliver_to(0, 0);
    assert_eq!(take(&mut world, id), None, "one has not answered");
    world.deliver_to(0, 1);
    let answers = take(&mut world, id).unwrap();
    assert_eq!(answers.iter().filter_map(seen).filter(|seen| seen.held().is_some()).count(), 3);
    assert_eq!(take(&mut world, id), None);
}

#[test]
fn a_node_that_does_not_answer_in_time_is_unknown() {
    let mut world = born(1);
    let id = read(&mut world, "r");
    world.deliver_to(0, 0);
    world.deliver_to(0, 2);
    world.pass_cut_off(secs(1));
    let answers = take(&mut world, id).unwrap();
    assert!(matches!(answers[..], [Outcome::Applied(_), Outcome::Unknown(_), Outcome::Applied(_)]), "{answers:?}");
}

#[test]
fn attempts_count_where_a_majority_shows_their_holder() {
    let mut world = born(1);
    let again = || with(|builder| builder.run(RunOptions { even_if_done: true, ..RunOptions::default() }));
    world.hold(0, 1, COUNT, again());
    finish_with(&mut world, 0, 1, Some(count(1).to_result()));
    world.deliver_all();
    world.hold(0, 2, COUNT, again());
    let id = read(&mut world, COUNT);
    world.deliver_all();
    let answers = take(&mut world, id).unwrap();
    assert_eq!(beside(&world, &answers, 2), Some(vec![count(1); 3]));
    // Two of the nodes have lost their data: what the third shows may be behind.
    world.stores[0].records.clear();
    world.stores[1].records.clear();
    let id = read(&mut world, COUNT);
    world.deliver_all();
    let answers = take(&mut world, id).unwrap();
    assert_eq!(beside(&world, &answers, 2), None);
}

/// A host that passes the bytes on must not be able to lose the number either.
#[test]
fn a_count_is_never_written_without_its_number_although_a_host_made_the_result() {
    let bytes = leasehold_core::RunResult::bytes(count(2).to_result().as_bytes()).unwrap();
    for (name, carries) in [(COUNT, true), ("r", false)] {
        let mut world = World::new(1);
        world.hold(0, 1, name, run());
        finish_with(&mut world, 0, 1, Some(bytes.clone()));
        world.answer_with(0, crate::results::full());
        world.pass_until_sent(0);
        let sent = world.take(0);
        assert!(matches!(&sent.ops[0].op, Op::Finish(finish) if finish.about.is_some() == carries), "{name}");
    }
}
