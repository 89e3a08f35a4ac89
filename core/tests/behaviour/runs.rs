//! Runs: work that is done once, by the completion that its finish leaves behind.

use std::time::Duration;

use crate::common::*;
use crate::quorum_memory::{born, occupy, refuse_connection, rejoin};
use leasehold_core::config::RunOptions;
use leasehold_core::op::{Applied, Denial, DenialKind, Op, Outcome, Refusal};
use leasehold_core::{
    Error, Event, Failure, LockOptions, LostReason, NodeId, Resource, RunResult, Token, Wait, period_key,
};

const KEEP: Duration = secs(3_600);
pub(crate) const RUN: RunOptions = RunOptions { keep: KEEP, trust_quorum: false, even_if_done: false };

/// A run that steps aside where somebody else is at it.
pub(crate) fn run() -> LockOptions {
    with(|o| o.run(RUN).wait(Wait::Once))
}

/// A run that stands by.
fn standing_by() -> LockOptions {
    with(|o| o.run(RUN))
}

pub(crate) fn finish(world: &mut World, host: usize, id: u64) {
    finish_with(world, host, id, None);
}

pub(crate) fn finish_with(world: &mut World, host: usize, id: u64, result: Option<RunResult>) {
    let now = world.now(host);
    world.hosts[host].client.finish(lock(id), result, now).unwrap();
    world.drain(host);
}

fn is_finished(events: &[Event], confirmed: bool) -> bool {
    has(events, |event| matches!(event, Event::Finished { confirmed: as_said, .. } if *as_said == confirmed))
}

fn is_done(failure: &Failure) -> bool {
    matches!(failure, Failure::Done(_))
}

#[test]
fn a_finished_run_is_done_for_all_who_come_later_until_its_mark_ends() {
    let mut world = World::new(2);
    let token = world.hold(0, 1, "r", with(|o| o.run(RUN).owner("one")));
    finish(&mut world, 0, 1);
    world.deliver_all();
    assert!(is_finished(&world.take_events(0), true) && !world.is_held(0, "r"));
    for later in [secs(0), KEEP - ms(1)] {
        world.jump(later);
        world.acquire(1, 2, "r", run());
        world.deliver_all();
        let Failure::Done(completion) = failure(&world.take_events(1)) else { panic!("done") };
        assert_eq!((completion.token, completion.owner.as_str(), completion.at_unix_ms), (token, "one", EPOCH_UNIX_MS));
        assert_eq!(completion.left, KEEP - later);
    }
    world.jump(ms(1));
    assert!(world.hold(1, 3, "r", run()) > token);
}

#[test]
fn a_plain_lock_does_not_look_at_marks() {
    let mut world = World::new(1);
    world.hold(0, 1, "r", run());
    finish(&mut world, 0, 1);
    world.deliver_all();
    world.take_events(0);
    world.hold(0, 2, "r", options());
    world.release(0, 2);
    world.deliver_all();
    world.take_events(0);
    world.acquire(0, 3, "r", run());
    world.deliver_all();
    assert!(is_done(&failure(&world.take_events(0))), "and does not remove them");
}

#[test]
fn a_run_that_is_released_leaves_no_completion() {
    let mut world = World::new(2);
    world.hold(0, 1, "r", run());
    world.release(0, 1);
    world.deliver_all();
    world.hold(1, 1, "r", run());
}

#[test]
fn who_stands_by_is_told_when_the_runner_has_finished() {
    for mut world in [World::new(2), World::reading(2)] {
        world.hold(0, 1, "r", run());
        world.acquire(1, 2, "r", standing_by());
        world.pass(secs(10));
        finish(&mut world, 0, 1);
        world.deliver_all();
        world.notify(1, "r");
        world.deliver_all();
        assert!(is_done(&failure(&world.take_events(1))));
    }
}

#[test]
fn who_stands_by_takes_over_from_a_runner_that_died() {
    let mut world = World::new(2);
    let first = world.hold(0, 1, "r", run());
    world.acquire(1, 2, "r", standing_by());
    // The first host never runs again.
    world.hosts[0].wake_at = leasehold_core::Monotonic::FAR;
    world.pass(secs(60));
    let second = token(&world.take_events(1));
    assert!(second > first);
    finish(&mut world, 1, 2);
    world.deliver_all();
    assert!(is_finished(&world.take_events(1), true));
}

#[test]
fn who_stands_by_runs_once_a_mark_that_it_did_not_see_has_ended() {
    for mut world in [World::new(2), World::reading(2)] {
        let first = world.hold(0, 1, "r", run());
        world.acquire(1, 2, "r", standing_by());
        world.pass(secs(10));
        finish(&mut world, 0, 1);
        world.deliver_all();
        assert!(is_finished(&world.take_events(0), true));
        // Its host is suspended for as long as the completion stands.
        world.jump(KEEP);
        world.pass(secs(60));
        assert!(token(&world.take_events(1)) > first);
    }
}

#[test]
fn a_clock_that_jumps_over_the_start_of_a_period_repeats_no_period() {
    const DAY: Duration = secs(86_400);
    let mut world = World::new(1);
    let today = EPOCH_UNIX_MS;
    let tomorrow = today + 86_400_000;
    for (id, (clock, runs)) in (1..).zip([(today, true), (tomorrow, true), (today, false), (tomorrow, false)]) {
        let key = period_key(clock, DAY, Duration::ZERO).unwrap();
        world.acquire(0, id, Resource::of_run("job", Some(&key)).unwrap().as_str(), run());
        world.deliver_all();
        let events = world.take_events(0);
        if !runs {
            assert!(is_done(&failure(&events)), "{key}: {events:?}");
            continue;
        }
        token(&events);
        finish(&mut world, 0, id);
        world.deliver_all();
        assert!(is_finished(&world.take_events(0), true));
    }
}

#[test]
fn a_finish_after_the_loss_is_lost_and_leaves_no_completion() {
    let mut world = World::new(2);
    world.hold(0, 1, "r", with(|o| o.run(RUN).no_renewal()));
    world.jump(secs(31));
    world.hold(1, 2, "r", run());
    // The first runner was stopped and does not know yet.
    let now = world.now(0);
    assert_eq!(world.hosts[0].client.finish(lock(1), None, now), Err(Error::UnknownLock));
    world.tick(0);
    assert_eq!(loss(&world.take_events(0)), LostReason::Expired);
    finish(&mut world, 1, 2);
    world.deliver_all();
    assert!(is_finished(&world.take_events(1), true));
}

#[test]
fn a_finish_after_a_break_is_lost_and_leaves_no_completion() {
    let mut world = World::new(2);
    world.hold(0, 1, "r", run());
    world.break_at(0, "r");
    finish(&mut world, 0, 1);
    world.deliver_all();
    assert_eq!(loss(&world.take_events(0)), LostReason::Released);
    world.hold(1, 1, "r", run());
}

#[test]
fn a_finish_whose_reply_was_lost_is_found_by_its_completion() {
    let mut world = World::new(1);
    world.hold(0, 1, "r", run());
    finish(&mut world, 0, 1);
    let transmit = world.lose_reply(0);
    world.answer(0, transmit.id, Err(reset()));
    assert_eq!(world.take_events(0), []);
    world.pass(secs(5));
    assert!(is_finished(&world.take_events(0), true));
}

#[test]
fn a_finish_that_never_arrived_is_sent_again() {
    let mut world = World::new(1);
    world.hold(0, 1, "r", run());
    finish(&mut world, 0, 1);
    let transmit = world.take(0);
    world.answer(0, transmit.id, Err(reset()));
    world.pass(secs(5));
    assert!(is_finished(&world.take_events(0), true));
}

#[test]
fn a_finish_that_cannot_be_answered_ends_unconfirmed() {
    let mut world = World::new(1);
    world.hold(0, 1, "r", run());
    finish(&mut world, 0, 1);
    world.pass_cut_off(secs(29));
    assert_eq!(world.take_events(0), []);
    world.pass_cut_off(secs(2));
    assert!(is_finished(&world.take_events(0), false));
}

#[test]
fn a_full_store_is_asked_again_and_the_run_is_not_finished_meanwhile() {
    let mut world = World::new(1);
    world.hold(0, 1, "r", run());
    finish(&mut world, 0, 1);
    let full = || Outcome::NotApplied(Refusal::Denied(Denial::new(DenialKind::StorageFull, "no room left")));
    world.answer_with(0, full());
    assert_eq!(world.take_events(0), []);
    world.pass(secs(5));
    assert!(is_finished(&world.take_events(0), true));
}

#[test]
fn only_a_run_that_is_held_can_be_finished_and_once() {
    let mut world = World::new(1);
    let now = world.now(0);
    assert_eq!(world.hosts[0].client.finish(lock(9), None, now), Err(Error::UnknownLock));
    world.hold(0, 1, "plain", options());
    assert_eq!(world.hosts[0].client.finish(lock(1), None, now), Err(Error::NotARun));
    world.acquire(0, 2, "r", run());
    assert_eq!(world.hosts[0].client.finish(lock(2), None, now), Err(Error::UnknownLock), "not held yet");
    world.deliver_all();
    finish(&mut world, 0, 2);
    assert_eq!(world.hosts[0].client.finish(lock(2), None, now), Err(Error::UnknownLock), "twice");
    world.deliver_all();
    world.take_events(0);
    world.hold(0, 3, "s", run());
    world.hosts[0].client.close(now);
    assert_eq!(world.hosts[0].client.finish(lock(3), None, now), Err(Error::UnknownLock), "after close");
}

#[test]
fn marks_are_kept_for_the_ttl_at_least_and_100_years_at_most() {
    let keep =
        |keep| LockOptions::builder().run(RunOptions { keep, ..RUN }).build().map(drop).map_err(|e| e.to_string());
    assert_eq!(
        keep(secs(29)),
        Err("the completion would be kept for 29 s, less than the ttl of 30 s: make keep or cooldown longer, or the \
             ttl shorter"
            .into())
    );
    assert_eq!(keep(secs(30)), Ok(()));
    assert!(keep(secs(0)).is_err());
    let removing = |keep| LockOptions::builder().run(RunOptions { keep, even_if_done: true, ..RUN }).build();
    assert!(removing(secs(0)).is_ok() && removing(secs(29)).is_err());
    assert_eq!(keep(secs(100 * 365 * 86_400)), Ok(()));
    assert!(keep(secs(100 * 365 * 86_400 + 1)).unwrap_err().contains("must be at most"));
    let mut world = born(1);
    let (now, fresh) = (world.now(0), world.fresh());
    let long = LockOptions::builder().run(RunOptions { keep: secs(8 * 86_400), ..RUN }).build().unwrap();
    let refused = world.hosts[0].client.acquire(lock(1), resource("r"), long, &fresh, now);
    assert_eq!(refused, Err(Error::AboveMaxKeep { keep: secs(8 * 86_400), max_keep: secs(7 * 86_400) }));
}

#[test]
fn a_run_that_removes_the_mark_lets_the_work_be_done_again_at_once() {
    let mut world = World::new(2);
    world.hold(0, 1, "r", run());
    finish(&mut world, 0, 1);
    world.deliver_all();
    world.take_events(0);
    let removing = with(|o| o.run(RunOptions { keep: secs(0), even_if_done: true, ..RUN }));
    world.hold(0, 2, "r", removing);
    finish(&mut world, 0, 2);
    world.deliver_all();
    assert!(is_finished(&world.take_events(0), true));
    world.hold(1, 1, "r", run());
}

#[test]
fn a_completion_of_a_thousand_years_is_refused_as_corrupt() {
    let mut world = World::new(1);
    world.hold(0, 1, "r", run());
    finish(&mut world, 0, 1);
    world.deliver_all();
    world.take_events(0);
    let record = world.stores[0].records.get_mut(&resource("r")).unwrap();
    record.completion.as_mut().unwrap().until_unix_ms = u64::MAX;
    world.acquire(0, 2, "r", run());
    world.deliver_all();
    let Failure::Refused(denial) = failure(&world.take_events(0)) else { panic!("refused") };
    assert_eq!(denial.kind, DenialKind::CorruptRecord);
}

#[test]
fn a_majority_of_marks_finishes_a_run_on_a_quorum() {
    let mut world = born(2);
    world.hold(0, 1, "r", run());
    world.stores[2].records.clear();
    finish(&mut world, 0, 1);
    assert_eq!(world.on_the_wire(0), ["finish"; 3]);
    world.deliver_all();
    assert!(is_finished(&world.take_events(0), true));
    // Any node that shows the completion ends the attempt, whatever the others say; they are heard for what the run has left.
    world.acquire(1, 2, "r", run());
    world.deliver_to(1, 2);
    assert_eq!(world.take_events(1), []);
    world.deliver_to(1, 0);
    assert_eq!(world.take_events(1), []);
    world.deliver_to(1, 1);
    assert!(is_done(&failure(&world.take_events(1))));
    world.pass(secs(1));
    assert!((0..3).all(|node| !world.is_held(node, "r")), "what was granted is released");
}

/// A finish names the counter that the node shows, which the raise is about to change.
#[test]
fn a_node_that_is_being_raised_gets_the_mark_once_it_has_answered() {
    let mut world = World::quorum(3, 1);
    world.acquire(0, 1, "r", run());
    let token = |counter| Token::new(counter).unwrap();
    for (node, counter) in [(0, 9), (1, 5), (2, 5)] {
        let asked = world.take_for(0, node);
        world.answer(0, asked.id, Ok(vec![acquired(counter)]));
    }
    let raises = [1, 2].map(|node| world.take_for(0, node));
    let raised = || Ok(vec![Outcome::Applied(Applied::Raised { counter: token(9) })]);
    world.answer(0, raises[0].id, raised());
    assert!(matches!(world.take_events(0)[..], [Event::Acquired { .. }]), "two nodes have it");
    finish(&mut world, 0, 1);
    assert_eq!(world.on_the_wire(0), ["finish"; 2], "the third is waited for");
    world.answer(0, raises[1].id, raised());
    world.tick(0);
    let finishes: Vec<_> = [0, 1, 2].map(|node| world.take_for(0, node)).into();
    let counters = finishes.iter().map(|sent| match &sent.ops[0].op {
        Op::Finish(finish) => finish.counter,
        other => panic!("{other:?}"),
    });
    assert_eq!(counters.collect::<Vec<_>>(), [token(9); 3]);
}

#[test]
fn a_completion_that_only_a_minority_has_leaves_the_finish_unconfirmed() {
    let mut world = born(2);
    world.hold(0, 1, "r", run());
    world.stores[1].records.clear();
    world.stores[2].records.clear();
    finish(&mut world, 0, 1);
    world.deliver_all();
    assert!(is_finished(&world.take_events(0), false));
}

#[test]
fn a_run_that_no_node_has_any_more_is_lost() {
    let mut world = born(2);
    world.hold(0, 1, "r", run());
    for store in &mut world.stores {
        store.records.clear();
    }
    finish(&mut world, 0, 1);
    world.deliver_all();
    assert_eq!(loss(&world.take_events(0)), LostReason::RecordGone);
}

#[test]
fn nodes_that_may_have_lost_marks_do_not_count_for_a_run() {
    let mut world = born(2);
    world.hold(0, 1, "r", run());
    finish(&mut world, 0, 1);
    world.deliver_all();
    rejoin(&mut world, 0);
    rejoin(&mut world, 1);
    // The node that remembers is away.
    let without_the_third = |world: &mut World, id, options| {
        world.acquire(1, id, "r", options);
        refuse_connection(world, 1, 2);
        world.deliver_all();
        world.take_events(1)
    };
    assert_eq!(failure(&without_the_third(&mut world, 2, run())), Failure::CompletionsInDoubt);
    // A plain lock raises their counters, which says nothing of completions.
    let (now, loss) = (world.now(1), world.stores[0].marker.as_ref().map(|marker| marker.stamp));
    for node in 0..2 {
        world.hosts[1].client.node_votes(NodeId::new(node), loss, now);
    }
    world.hold(1, 3, "r", options());
    world.pass(secs(20));
    assert_eq!([0, 1].map(|node: usize| world.stores[node].trusted.len()), [1, 1], "the counters are trusted again");
    world.release(1, 3);
    world.deliver_all();
    world.take_events(1);
    assert_eq!(failure(&without_the_third(&mut world, 4, run())), Failure::CompletionsInDoubt);
}

#[test]
fn a_record_on_the_only_node_that_counts_is_no_runner() {
    for order in [[0, 1, 2], [0, 2, 1], [2, 0, 1]] {
        let mut world = born(1);
        rejoin(&mut world, 0);
        rejoin(&mut world, 1);
        occupy(&mut world, 2, "r", Token::ZERO);
        world.acquire(0, 1, "r", run());
        for node in order {
            world.deliver_to(0, node);
        }
        assert_eq!(failure(&world.take_events(0)), Failure::CompletionsInDoubt, "{order:?}");
    }
}

#[test]
fn an_operator_may_trust_nodes_that_have_lost_marks() {
    let mut world = born(1);
    rejoin(&mut world, 0);
    rejoin(&mut world, 1);
    let (now, loss) = (world.now(0), world.stores[0].marker.as_ref().map(|marker| marker.stamp));
    for node in 0..2 {
        world.hosts[0].client.node_votes(NodeId::new(node), loss, now);
    }
    world.acquire(0, 1, "r", run());
    world.deliver_all();
    assert_eq!(failure(&world.take_events(0)), Failure::CompletionsInDoubt);
    world.hold(0, 2, "r", with(|o| o.run(RunOptions { trust_quorum: true, ..RUN }).wait(Wait::Once)));
}

#[test]
fn an_acquire_of_a_run_asks_for_marks_in_every_send() {
    let mut world = World::new(1);
    world.acquire(0, 1, "r", run());
    for _ in 0..3 {
        let transmit = world.take(0);
        assert!(matches!(&transmit.ops[0].op, Op::Acquire(acquire) if acquire.unless_done));
        world.answer(0, transmit.id, Err(reset()));
        world.pass_cut_off(secs(1));
        if world.hosts[0].wire.is_empty() {
            break;
        }
    }
}
