//! Results: what the first caller of a run leaves for those who come later.

use crate::common::*;
use crate::quorum_memory::born;
use crate::runs::{RUN, finish_with, run};
use leasehold_core::config::RunOptions;
use leasehold_core::op::{Completion, Denial, DenialKind, Fault, FaultKind, Op, Outcome, Refusal};
use leasehold_core::{Attempts, Event, Failure, Nonce, RunResult};

fn json(text: &str) -> RunResult {
    RunResult::json(text).unwrap()
}

/// The run that leaves this result on all nodes.
fn done_with(world: &mut World, text: &str) {
    world.hold(0, 1, "r", run());
    finish_with(world, 0, 1, Some(json(text)));
    world.deliver_all();
    assert!(ended(&world.take_events(0)).is_some_and(|(confirmed, dropped)| confirmed && !dropped));
}

/// Confirmed, and the result dropped.
fn ended(events: &[Event]) -> Option<(bool, bool)> {
    events.iter().find_map(|event| match event {
        Event::Finished { confirmed, result_dropped, .. } => Some((*confirmed, *result_dropped)),
        _ => None,
    })
}

/// The completion that a later caller is told.
fn told(world: &mut World, id: u64) -> Completion {
    world.acquire(1, id, "r", run());
    world.deliver_all();
    world.pass(secs(5));
    let Failure::Done(completion) = failure(&world.take_events(1)) else { panic!("done") };
    *completion
}

fn result_of(completion: &Completion) -> Option<RunResult> {
    completion.about.as_ref().and_then(leasehold_core::About::result)
}

pub(crate) fn full() -> Outcome {
    Outcome::NotApplied(Refusal::Denied(Denial::new(DenialKind::StorageFull, "no room left")))
}

#[test]
fn all_who_come_later_get_the_result_of_the_first() {
    for mut world in [World::new(2), born(2)] {
        done_with(&mut world, "{\"rows\":7}");
        for id in [2, 3] {
            let completion = told(&mut world, id);
            assert_eq!((result_of(&completion), completion.unsettled), (Some(json("{\"rows\":7}")), false));
            assert_eq!(completion.about.map(|about| about.began_unix_ms()), Some(EPOCH_UNIX_MS));
        }
    }
}

#[test]
fn a_run_without_a_result_writes_no_record_of_itself() {
    let mut world = World::new(2);
    world.hold(0, 1, "r", run());
    finish_with(&mut world, 0, 1, None);
    let sent = world.take(0);
    assert!(matches!(&sent.ops[0].op, Op::Finish(finish) if finish.about.is_none()));
    world.carry(0, &sent);
    assert_eq!(ended(&world.take_events(0)), Some((true, false)), "nothing to drop");
    assert_eq!(result_of(&told(&mut world, 2)), None);
}

#[test]
fn a_record_of_another_attempt_is_no_result() {
    let mut world = World::new(2);
    done_with(&mut world, "1");
    // A client that knows no results has replaced the completion, and has kept the rest.
    let record = world.stores[0].records.get_mut(&resource("r")).unwrap();
    record.completion.as_mut().unwrap().nonce = Nonce::from_bytes([9; 16]);
    let completion = told(&mut world, 2);
    assert_eq!((result_of(&completion), completion.unsettled), (None, false));
}

#[test]
fn a_finish_after_the_loss_leaves_no_result() {
    let mut world = World::new(2);
    world.hold(0, 1, "r", run());
    world.break_at(0, "r");
    world.hold(1, 2, "r", run());
    finish_with(&mut world, 0, 1, Some(json("\"late\"")));
    world.deliver_all();
    assert!(has(&world.take_events(0), |event| matches!(event, Event::Lost { .. })));
    finish_with(&mut world, 1, 2, Some(json("\"in time\"")));
    world.deliver_all();
    assert_eq!(result_of(&told(&mut world, 3)), Some(json("\"in time\"")));
}

#[test]
fn a_store_that_refuses_the_result_gets_the_completion_without_it() {
    let mut world = World::new(2);
    world.hold(0, 1, "r", run());
    finish_with(&mut world, 0, 1, Some(json("1")));
    world.answer_with(0, full());
    let sent = world.take(0);
    assert!(matches!(&sent.ops[0].op, Op::Finish(finish) if finish.about.is_none()), "at once, and without");
    world.carry(0, &sent);
    assert_eq!(ended(&world.take_events(0)), Some((true, true)), "its caller is told");
    assert_eq!(result_of(&told(&mut world, 2)), None);
}

/// A count of attempts that a full store replaced by a bare completion would begin at zero again.
#[test]
fn a_count_of_attempts_is_never_written_without_its_number() {
    let attempts = Attempts { count: 3, max: 3, since_unix_ms: 1, retry_unix_ms: 2, reason: None };
    let mut world = World::new(2);
    world.hold(0, 1, "r", run());
    finish_with(&mut world, 0, 1, Some(attempts.to_result()));
    for _ in 0..3 {
        let sent = world.take(0);
        assert!(matches!(&sent.ops[0].op, Op::Finish(finish) if finish.about.is_some()));
        world.answer(0, sent.id, Ok(vec![full()]));
        world.pass_until_sent(0);
    }
    let sent = world.take(0);
    world.carry(0, &sent);
    assert_eq!(ended(&world.take_events(0)), Some((true, false)), "there is room again");
    let kept = result_of(&told(&mut world, 2)).unwrap();
    assert_eq!(Attempts::read(&kept), Some(attempts));
}

#[test]
fn a_store_that_says_twice_that_it_cannot_is_no_longer_asked_to_keep_the_result() {
    let cannot = |kind| Outcome::NotApplied(Refusal::Unavailable(Fault::of(kind)));
    for (kind, is_dropped) in [(FaultKind::Server, true), (FaultKind::Unreachable, false)] {
        let mut world = World::new(2);
        world.hold(0, 1, "r", run());
        finish_with(&mut world, 0, 1, Some(json("1")));
        for carries in [true, true, !is_dropped] {
            let sent = world.take(0);
            assert!(matches!(&sent.ops[0].op, Op::Finish(finish) if finish.about.is_some() == carries), "{kind:?}");
            world.answer(0, sent.id, Ok(vec![cannot(kind)]));
            if world.hosts[0].wire.is_empty() {
                world.pass_until_sent(0);
            }
        }
    }
}

#[test]
fn a_result_that_may_have_landed_is_kept_if_it_has() {
    let mut world = World::new(2);
    world.hold(0, 1, "r", run());
    finish_with(&mut world, 0, 1, Some(json("1")));
    let sent = world.lose_reply(0);
    world.answer(0, sent.id, Err(reset()));
    world.pass(secs(5));
    assert_eq!(ended(&world.take_events(0)), Some((true, false)));
    assert_eq!(result_of(&told(&mut world, 2)), Some(json("1")));
}

#[test]
fn a_result_that_was_sent_before_a_send_without_it_changes_nothing_later() {
    let mut world = World::new(2);
    world.hold(0, 1, "r", run());
    finish_with(&mut world, 0, 1, Some(json("1")));
    let slow = world.take(0);
    world.answer(0, slow.id, Err(reset()));
    world.pass_until_sent(0);
    world.answer_with(0, full());
    let bare = world.take(0);
    world.carry(0, &bare);
    assert_eq!(ended(&world.take_events(0)), Some((true, true)));
    let late = world.perform(&slow);
    assert_eq!(late, [Outcome::Applied(leasehold_core::op::Applied::Finished)], "its completion stands already");
    assert_eq!(result_of(&told(&mut world, 2)), None, "the first landing wins");
}

#[test]
fn a_finish_replaces_an_earlier_result_also_by_none() {
    let mut world = World::new(2);
    done_with(&mut world, "1");
    for (id, result) in [(2, Some(json("2"))), (3, None)] {
        let again = with(|o| o.run(RunOptions { even_if_done: true, ..RUN }));
        world.hold(0, id, "r", again);
        finish_with(&mut world, 0, id, result.clone());
        world.deliver_all();
        world.take_events(0);
        assert_eq!(result_of(&told(&mut world, id)), result);
    }
}

#[test]
fn a_node_without_room_does_not_hide_the_result_of_the_others() {
    let mut world = born(2);
    done_with(&mut world, "1");
    let full_one = world.stores[0].records.get_mut(&resource("r")).unwrap();
    full_one.completion.as_mut().unwrap().about = None;
    // The others are waited for only by those to whom a node with the result answers first.
    world.acquire(1, 2, "r", run());
    world.deliver_to(1, 1);
    assert_eq!(world.take_events(1), [], "one of three is no majority");
    world.deliver_to(1, 0);
    let Failure::Done(completion) = failure(&world.take_events(1)) else { panic!("done") };
    assert_eq!((result_of(&completion), completion.unsettled), (Some(json("1")), false));
}

#[test]
fn a_result_that_only_a_minority_shows_is_not_told() {
    let mut world = born(2);
    world.hold(0, 1, "r", run());
    finish_with(&mut world, 0, 1, Some(json("\"of a minority\"")));
    let finishes: Vec<_> = [0, 1, 2].map(|node| world.take_for(0, node)).into();
    world.perform(&finishes[0]);
    world.jump(secs(31));
    world.tick(0);
    assert_eq!(ended(&world.take_events(0)), Some((false, true)), "unconfirmed");
    let completion = told(&mut world, 2);
    assert_eq!((result_of(&completion), completion.unsettled), (None, true), "done, but by whose result?");
}

#[test]
fn a_majority_that_is_too_late_to_answer_leaves_the_result_unsettled() {
    let mut world = born(2);
    done_with(&mut world, "1");
    world.acquire(1, 2, "r", run());
    world.deliver_to(1, 0);
    for node in [1, 2] {
        let sent = world.take_for(1, node);
        assert_eq!(world.take_events(1), []);
        world.answer(1, sent.id, Err(timeout()));
    }
    let Failure::Done(completion) = failure(&world.take_events(1)) else { panic!("done") };
    assert_eq!((result_of(&completion), completion.unsettled), (None, true));
}
