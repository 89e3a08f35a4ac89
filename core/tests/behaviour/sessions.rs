//! Sessions where nothing expires by itself: one heartbeat for many locks, and what rivals make of it.

use std::collections::BTreeMap;
use std::time::Duration;

use leasehold_core::config::Poll;
use leasehold_core::op::{Applied, Denial, DenialKind, Op, Outcome, Refusal, Renew, Session};
use leasehold_core::session::{resource_of, tell};
use leasehold_core::store::{LeaseRecord, Record};
use leasehold_core::{
    Config, Event, Failure, LockOptions, LostReason, NodeConfig, NodeId, Nonce, Resource, Seq, SessionLabel, Wait,
};

use crate::common::*;

fn observed(nodes: usize) -> Config {
    let node = NodeConfig { poll: Poll::Read, ..NodeConfig::default() };
    let all = (0..u16::try_from(nodes).unwrap()).map(NodeId::new);
    Config::new(vec![node; nodes]).unwrap().with_observed(all)
}

fn label(text: &str) -> SessionLabel {
    SessionLabel::new(text).unwrap()
}

/// Clients whose sessions are called "a", "b" and so on.
fn world_of(nodes: usize, hosts: usize) -> World {
    let mut world = World::with_config(&observed(nodes), 0);
    for name in ["a", "b", "c"].iter().take(hosts) {
        world.add_host(&observed(nodes).with_session(label(name)), 0);
    }
    world
}

fn world(hosts: usize) -> World {
    world_of(1, hosts)
}

/// How often each record was written while time passed, by the names of the resources.
fn writes(world: &mut World, length: Duration) -> BTreeMap<String, usize> {
    let end = world.time + length;
    let mut writes = BTreeMap::new();
    let mut before = world.stores[0].records.clone();
    while world.time < end {
        world.pass(ms(10));
        for (name, record) in &world.stores[0].records {
            if before.insert(name.clone(), record.clone()).as_ref() != Some(record) {
                *writes.entry(name.as_str().to_owned()).or_default() += 1;
            }
        }
    }
    writes
}

fn lease_of<'a>(world: &'a World, node: usize, name: &str) -> &'a leasehold_core::store::LeaseRecord {
    world.record(node, name).lease.as_ref().unwrap()
}

fn session_of(world: &World, node: usize, name: &str) -> Session {
    lease_of(world, node, name).session.clone().unwrap()
}

fn is_granted(events: &[Event]) -> bool {
    has(events, |event| matches!(event, Event::Acquired { .. }))
}

fn is_lost(events: &[Event]) -> bool {
    has(events, |event| matches!(event, Event::Lost { .. }))
}

/// Tells the holder of the lock's session that a row was changed, as `leasehold break` and `revoke` do.
fn tell_at(world: &mut World, node: usize, session: &Session) {
    let (record, time) = (resource_of(&session.label).unwrap(), world.time);
    assert_eq!(world.stores[node].perform(&record, &tell(session), time), Outcome::Applied(Applied::Told));
}

#[test]
fn one_heartbeat_renews_all_locks() {
    let mut world = world(1);
    for id in 0..50 {
        world.hold(0, id, &format!("r{id}"), options());
        world.pass(ms(300));
    }
    let writes = writes(&mut world, secs(300));
    assert_eq!(writes.keys().collect::<Vec<_>>(), ["session:a"], "no row is written");
    assert!((30..=41).contains(&writes["session:a"]), "{writes:?}: one for each period, of 7.5 to 10 s");
    assert!(!is_lost(&world.take_events(0)));
    for id in 0..50 {
        assert!(world.remaining(0, id) > secs(15));
    }
}

#[test]
fn a_session_without_locks_costs_nothing_and_goes_on_when_it_is_needed() {
    let mut world = world(1);
    world.hold(0, 1, "r", options());
    let session = session_of(&world, 0, "r");
    world.release(0, 1);
    assert_eq!(writes(&mut world, secs(3600)), BTreeMap::from([("r".into(), 1)]), "the release");
    world.hold(0, 2, "s", options());
    assert_eq!(session_of(&world, 0, "s"), session);
    assert!(world.remaining(0, 2) > secs(29));
}

#[test]
fn the_locks_of_a_dead_holder_are_free_once_its_session_is_buried() {
    for rival in [Some("b"), None] {
        let mut world = world(1);
        world.hold(0, 1, "r", options());
        world.hold(0, 2, "s", options());
        let of_rival = rival.map_or(observed(1), |name| observed(1).with_session(label(name)));
        let rival = world.add_host(&of_rival, 0);
        let dead = world.hosts.remove(0);
        let rival = rival - 1;
        world.acquire(rival, 7, "r", options());
        world.pass(secs(30));
        assert!(!is_granted(&world.take_events(rival)));
        world.pass(secs(3));
        assert!(is_granted(&world.take_events(rival)));
        world.hold(rival, 8, "s", options());

        // It wakes up, and its heartbeat is refused.
        world.hosts.push(dead);
        let woken = world.hosts.len() - 1;
        world.tick(woken);
        world.deliver_all();
        assert_eq!(loss(&world.take_events(woken).into_iter().take(1).collect::<Vec<_>>()), LostReason::Expired);
        assert_eq!(world.remaining(woken, 1), secs(0));
    }
}

#[test]
fn a_heartbeat_that_is_late_keeps_all_locks_if_nobody_has_buried_the_session() {
    let mut world = world(2);
    world.hold(0, 1, "r", options());
    world.acquire(1, 7, "r", options());
    world.pass(secs(5));
    let until_sent = {
        world.pass_until_sent(0);
        world.hosts[0].wire.len()
    };
    assert!(until_sent > 0);
    let heartbeat = world.lose_reply(0);
    assert!(matches!(heartbeat.ops[0].op, Op::Renew(_)));
    world.pass(secs(60));
    assert!(!is_granted(&world.take_events(1)), "the holder lives");
    assert!(!is_lost(&world.take_events(0)));
}

#[test]
fn a_burial_that_comes_after_a_heartbeat_is_refused() {
    let mut world = world(2);
    world.hold(0, 1, "r", options());
    world.acquire(1, 7, "r", options());
    world.deliver_all();
    // The holder stops until the rival means to bury it.
    world.hosts[0].wake_at = leasehold_core::Monotonic::FAR;
    let burial = loop {
        world.pass_until_sent(1);
        let transmit = world.take(1);
        if matches!(&transmit.ops[0].op, Op::Acquire(acquire) if acquire.expect.is_some()) {
            break transmit;
        }
        world.carry(1, &transmit);
    };
    assert_eq!(burial.ops[0].resource.as_str(), "session:a");
    // A heartbeat that was under way for long arrives first.
    let session = session_of(&world, 0, "r");
    let renew = Renew { nonce: session.nonce, seq: Seq::new(4), record_ttl: secs(30), quorum: None };
    let time = world.time;
    let renewed = world.stores[0].perform(&resource("session:a"), &Op::Renew(renew), time);
    assert_eq!(renewed, Outcome::Applied(Applied::Renewed));
    world.carry(1, &burial);
    world.deliver_all();
    assert!(!is_granted(&world.take_events(1)));
}

#[test]
fn a_row_that_is_written_too_late_is_nobodys() {
    let mut world = world(2);
    world.hold(0, 1, "r", options());
    world.acquire(0, 2, "late", options());
    let late = world.take(0);
    assert!(matches!(&late.ops[0].op, Op::Acquire(acquire) if acquire.session.is_some()));
    let _stopped = world.hosts[0].clone();
    world.hosts[0].wake_at = leasehold_core::Monotonic::FAR;
    world.acquire(1, 7, "r", options());
    world.pass(secs(40));
    assert!(is_granted(&world.take_events(1)), "the session is buried");
    world.perform(&late);
    assert!(world.is_held(0, "late"));
    world.hold(1, 8, "late", options());
}

#[test]
fn a_revoked_lock_of_a_living_session_is_told_and_the_others_stay() {
    let mut world = world(2);
    world.hold(0, 1, "r", options());
    world.hold(0, 2, "s", options());
    let session = session_of(&world, 0, "r");
    world.revoke_at(0, "r");
    tell_at(&mut world, 0, &session);
    world.pass(secs(20));
    assert_eq!(loss(&world.take_events(0)), LostReason::Revoked);
    assert!(world.is_held(0, "r") && world.remaining(0, 2) > secs(15));
    world.acquire(1, 7, "r", options());
    world.pass(secs(5));
    assert!(!is_granted(&world.take_events(1)), "the work may still run");
    world.release(0, 1);
    world.pass(secs(5));
    assert!(is_granted(&world.take_events(1)));
    world.pass(secs(60));
    assert!(!is_lost(&world.take_events(0)) && world.remaining(0, 2) > secs(15));
}

#[test]
fn a_broken_lock_of_a_living_session_is_told_and_the_others_stay() {
    let mut world = world(2);
    world.hold(0, 1, "r", options());
    world.hold(0, 2, "s", options());
    let session = session_of(&world, 0, "r");
    world.break_at(0, "r");
    world.hold(1, 7, "r", options());
    assert!(world.remaining(0, 1) > secs(0), "nobody has told it");
    tell_at(&mut world, 0, &session);
    world.pass(secs(20));
    assert!(matches!(loss(&world.take_events(0)), LostReason::TakenOver { .. }));
    world.pass(secs(60));
    assert!(!is_lost(&world.take_events(0)) && world.remaining(0, 2) > secs(15));
    assert!(world.remaining(1, 7) > secs(15));
}

#[test]
fn locks_that_were_not_changed_are_read_once_after_such_news() {
    let mut world = world(1);
    world.hold(0, 1, "r", options());
    world.hold(0, 2, "s", options());
    let session = session_of(&world, 0, "r");
    tell_at(&mut world, 0, &session);
    let (mut reads, end) = (0, world.time + secs(60));
    while world.time < end {
        world.pass_until_sent(0);
        let sent = world.deliver(0);
        reads += sent.ops.iter().filter(|op| op.op == Op::Read).count();
    }
    assert_eq!(reads, 2);
    assert!(!is_lost(&world.take_events(0)));
}

#[test]
fn a_tell_changes_its_own_number_and_nothing_else() {
    let mut world = world(1);
    world.hold(0, 1, "r", LockOptions::builder().ttl(secs(3)).build().unwrap());
    let session = session_of(&world, 0, "r");
    // It is written down now, and arrives after the session was renewed for a longer lock.
    let late = tell(&session);
    world.hold(0, 2, "s", LockOptions::builder().ttl(secs(20)).build().unwrap());
    let before = lease_of(&world, 0, "session:a").clone();
    assert_eq!(before.record_ttl, secs(20));
    let time = world.time;
    assert_eq!(world.stores[0].perform(&resource("session:a"), &late, time), Outcome::Applied(Applied::Told));
    assert_eq!(*lease_of(&world, 0, "session:a"), LeaseRecord { told: 1, ..before });
}

#[test]
fn any_number_of_tells_leaves_a_session_alive() {
    let mut world = world(1);
    world.hold(0, 1, "r", options());
    let session = session_of(&world, 0, "r");
    for told in 1..=40_000 {
        tell_at(&mut world, 0, &session);
        if told % 1_000 == 0 {
            world.pass(secs(10));
        }
    }
    world.pass(secs(60));
    assert!(!is_lost(&world.take_events(0)) && world.remaining(0, 1) > secs(15));
    assert_eq!(session_of(&world, 0, "r"), session);
}

#[test]
fn a_change_that_a_read_did_not_see_is_read_for_again() {
    let mut world = world(2);
    world.hold(0, 1, "r", options());
    world.hold(0, 2, "s", options());
    let session = session_of(&world, 0, "r");
    tell_at(&mut world, 0, &session);
    // The read of the first news has left for the store, and its answer is on the way.
    let read = loop {
        world.pass_until_sent(0);
        let sent = world.take(0);
        if sent.ops[0].op == Op::Read && sent.ops[0].resource.as_str() == "r" {
            break sent;
        }
        world.carry(0, &sent);
    };
    let answer = world.perform(&read);
    world.break_at(0, "r");
    tell_at(&mut world, 0, &session);
    // A longer lock has the session renewed meanwhile, which shows the second news.
    world.hold(0, 3, "t", LockOptions::builder().ttl(secs(60)).build().unwrap());
    world.answer(0, read.id, Ok(answer));
    world.pass(secs(20));
    assert!(is_lost(&world.take_events(0)), "the answer was older than the news");
    assert!(world.remaining(0, 2) > secs(15));
}

#[test]
fn revoking_a_dead_holder_again_does_not_keep_others_waiting() {
    let mut world = world(2);
    world.hold(0, 1, "r", options());
    let session = session_of(&world, 0, "r");
    world.hosts[0].wake_at = leasehold_core::Monotonic::FAR;
    world.acquire(1, 7, "r", options());
    world.pass(secs(1));
    world.revoke_at(0, "r");
    tell_at(&mut world, 0, &session);
    for _ in 0..7 {
        world.pass(secs(4));
        assert!(!is_granted(&world.take_events(1)), "its time is not over");
        if world.is_held(0, "r") {
            world.revoke_at(0, "r");
            tell_at(&mut world, 0, &session);
        }
    }
    world.pass(secs(4));
    assert!(is_granted(&world.take_events(1)), "it was seen to stand still for its time");
}

#[test]
fn a_revoked_session_ends_all_its_locks_and_new_ones_get_another() {
    let mut world = world(2);
    world.hold(0, 1, "r", options());
    world.hold(0, 2, "s", options());
    let session = session_of(&world, 0, "r");
    world.revoke_at(0, "session:a");
    world.pass(secs(20));
    let events = world.take_events(0);
    let revoked = |event: &&Event| matches!(event, Event::Lost { reason: LostReason::Revoked, .. });
    assert_eq!(events.iter().filter(revoked).count(), 2, "{events:?}");
    world.acquire(1, 7, "r", options());
    world.pass(secs(5));
    assert!(!is_granted(&world.take_events(1)), "the work may still run");
    world.hold(0, 3, "t", options());
    assert_ne!(session_of(&world, 0, "t").nonce, session.nonce);
    world.release(0, 1);
    world.pass(secs(5));
    assert!(is_granted(&world.take_events(1)));
}

#[test]
fn the_record_of_a_revoked_session_is_released_with_its_last_lock() {
    let mut world = world(1);
    world.hold(0, 1, "r", options());
    world.hold(0, 2, "s", options());
    world.revoke_at(0, "session:a");
    world.pass(secs(20));
    world.release(0, 1);
    world.pass(ms(100));
    assert!(world.is_held(0, "session:a"), "the work of another lock may still run");
    world.release(0, 2);
    world.pass(ms(100));
    assert!(!world.is_held(0, "session:a"));
    world.hold(0, 3, "t", options());
    assert_eq!(session_of(&world, 0, "t").label, label("a"));
}

#[test]
fn the_record_of_a_revoked_session_is_released_when_its_client_is_closed() {
    let mut world = world(1);
    world.hold(0, 1, "r", options());
    world.revoke_at(0, "session:a");
    world.pass(secs(20));
    let now = world.now(0);
    world.hosts[0].client.close(now);
    world.drain(0);
    world.deliver_all();
    assert!(world.hosts[0].client.is_idle() && !world.is_held(0, "session:a"));
}

#[test]
fn closing_frees_the_locks_and_the_session() {
    let mut world = world(1);
    world.hold(0, 1, "r", options());
    world.hold(0, 2, "s", options());
    let now = world.now(0);
    world.hosts[0].client.close(now);
    world.drain(0);
    assert!(!world.hosts[0].client.is_idle());
    world.deliver_all();
    assert!(world.hosts[0].client.is_idle());
    for name in ["r", "s", "session:a"] {
        assert!(!world.is_held(0, name), "{name}");
    }
}

#[test]
fn locks_of_a_session_that_ended_are_free_at_once() {
    let mut world = world(2);
    world.hold(0, 1, "r", options());
    world.break_at(0, "session:a");
    world.hold(1, 7, "r", options());
}

#[test]
fn a_lock_that_is_held_too_long_runs_out_though_its_session_lives() {
    let mut world = world(2);
    world.hold(0, 1, "r", with(|o| o.max_hold(secs(60))));
    world.hold(0, 2, "s", options());
    world.acquire(1, 7, "r", options());
    world.pass(secs(75));
    assert!(!is_granted(&world.take_events(1)));
    world.pass(secs(45));
    assert_eq!(loss(&world.take_events(0)), LostReason::MaxHold);
    assert!(is_granted(&world.take_events(1)));
    assert!(world.remaining(0, 2) > secs(15));
}

#[test]
fn an_attempt_that_lands_after_it_was_given_up_is_released_though_its_session_lives() {
    let mut world = world(2);
    world.hold(0, 2, "s", options());
    world.acquire(0, 1, "r", with(|o| o.wait(Wait::Once)));
    let late = world.take(0);
    world.release(0, 1);
    world.deliver_all();
    // The release came first and found nothing. The answer never comes.
    world.perform(&late);
    assert!(world.is_held(0, "r"));
    world.acquire(1, 7, "r", options());
    world.pass(secs(60));
    assert!(is_granted(&world.take_events(1)));
    assert!(!is_lost(&world.take_events(0)));
}

#[test]
fn a_row_that_its_living_session_knows_nothing_of_runs_out_by_itself() {
    let mut world = world(2);
    world.hold(0, 2, "s", options());
    let stray = {
        world.hold(0, 1, "r", options());
        world.record(0, "r").clone()
    };
    world.release(0, 1);
    world.deliver_all();
    world.stores[0].records.insert(resource("r"), stray);
    world.acquire(1, 7, "r", options());
    world.pass(secs(3600));
    assert!(!is_granted(&world.take_events(1)), "its time is 120 times the ttl");
    world.pass(secs(60));
    assert!(is_granted(&world.take_events(1)));
    // The holder itself needs not wait.
    world.release(1, 7);
    world.deliver_all();
    world.hold(0, 3, "r", options());
}

#[test]
fn rows_are_written_anew_now_and_then() {
    let mut world = world(2);
    world.hold(0, 1, "r", options());
    world.acquire(1, 7, "r", options());
    let writes = writes(&mut world, secs(7200));
    assert_eq!(writes["r"], 5, "every third of 3,600 s, and once at the end");
    assert!(!is_lost(&world.take_events(0)) && !is_granted(&world.take_events(1)));
}

#[test]
fn a_row_that_cannot_be_written_anew_ends_its_lock_in_time() {
    let mut world = world(1);
    world.hold(0, 1, "r", options());
    let end = world.time + secs(4000);
    let mut lost_at = None;
    while world.time < end && lost_at.is_none() {
        world.pass_until_sent(0);
        let transmit = world.take(0);
        match transmit.ops[0].resource.as_str() {
            "r" => world.answer(0, transmit.id, Err(timeout())),
            _ => world.carry(0, &transmit),
        }
        lost_at = is_lost(&world.take_events(0)).then_some(world.time - EPOCH);
    }
    let lost_at = lost_at.expect("a foreign client may take the row");
    assert!(lost_at <= secs(3600) - secs(72), "{lost_at:?}");
}

#[test]
fn a_longer_ttl_is_covered_before_it_counts() {
    let mut world = world(2);
    world.hold(0, 1, "r", options());
    world.hold(0, 2, "s", ttl(secs(120)));
    assert_eq!(lease_of(&world, 0, "session:a").record_ttl, secs(120));
    world.acquire(1, 7, "s", options());
    world.hosts.remove(0);
    world.pass(secs(119));
    assert!(!is_granted(&world.take_events(0)));
    world.pass(secs(5));
    assert!(is_granted(&world.take_events(0)));
}

#[test]
fn clients_with_the_same_label_have_sessions_of_their_own() {
    let mut world = World::with_config(&observed(1).with_session(label("w")), 3);
    for host in 0..3 {
        world.hold(host, 1, &format!("r{host}"), options());
    }
    let labels: Vec<String> = (0..3).map(|n| session_of(&world, 0, &format!("r{n}")).label.to_string()).collect();
    assert_eq!(labels, ["w", "w/2", "w/3"]);
    world.pass(secs(100));
    for host in 0..3 {
        assert!(!is_lost(&world.take_events(host)));
    }
}

#[test]
fn a_session_that_was_started_for_a_shorter_ttl_without_an_answer_is_ours() {
    let mut world = world(1);
    world.acquire(0, 1, "r", options());
    world.lose_reply(0);
    world.release(0, 1);
    world.acquire(0, 2, "s", ttl(secs(120)));
    world.pass(secs(20));
    assert!(is_granted(&world.take_events(0)));
    assert!(world.remaining(0, 2) > secs(80));
}

#[test]
fn a_session_that_was_started_by_a_send_without_an_answer_is_ours() {
    let mut world = world(1);
    world.acquire(0, 1, "r", options());
    world.lose_reply(0);
    world.pass(secs(10));
    assert!(is_granted(&world.take_events(0)));
    assert_eq!(session_of(&world, 0, "r").label, label("a"));
}

#[test]
fn what_is_not_a_session_keeps_others_out() {
    let mut world = world(2);
    world.hold(0, 1, "r", options());
    // Nobody can read its record.
    let corrupt = |record: &Record| {
        let mut record = record.clone();
        record.lease.as_mut().unwrap().record_ttl = secs(3600 * 1000);
        record
    };
    let broken = corrupt(world.record(0, "session:a"));
    world.stores[0].records.insert(resource("session:a"), broken);
    world.acquire(1, 7, "r", with(|o| o.wait(Wait::Once)));
    world.deliver_all();
    assert!(matches!(failure(&world.take_events(1)), leasehold_core::Failure::Refused { .. }));
}

#[test]
fn a_session_that_is_only_a_name_is_no_heartbeat() {
    let mut world = world(1);
    // A client that does not know that nothing expires here.
    let node = NodeConfig { poll: Poll::Read, ..NodeConfig::default() };
    let named = world.add_host(&Config::new(vec![node]).unwrap().with_session(label("n")), 0);
    world.hold(named, 1, "r", options());
    assert!(!session_of(&world, 0, "r").is_record());
    world.acquire(0, 7, "r", options());
    world.pass(secs(100));
    assert!(!is_granted(&world.take_events(0)), "it renews its row");
}

fn nonces(world: &World, name: &str) -> Vec<Option<Nonce>> {
    let of = |store: &Store| store.records.get(&Resource::new(name).unwrap())?.lease.as_ref().map(|lease| lease.nonce);
    world.stores.iter().map(of).collect()
}

#[test]
fn a_quorum_has_a_session_on_each_node() {
    let mut world = world_of(3, 1);
    world.hold(0, 1, "r", options());
    world.deliver_all();
    let sessions = nonces(&world, "session:a");
    assert!(sessions.iter().all(Option::is_some) && sessions[0] != sessions[1] && sessions[1] != sessions[2]);
    world.pass(secs(300));
    assert!(!is_lost(&world.take_events(0)) && world.remaining(0, 1) > secs(15));
}

#[test]
fn a_vote_counts_only_while_the_session_stands_on_its_node() {
    let mut world = world_of(3, 1);
    world.hold(0, 1, "r", options());
    world.deliver_all();
    world.break_at(0, "session:a");
    world.pass(secs(20));
    assert!(!is_lost(&world.take_events(0)), "two nodes are left");
    world.break_at(1, "session:a");
    world.pass(secs(20));
    let events = world.take_events(0);
    assert!(matches!(loss(&events), LostReason::RecordGone | LostReason::Expired), "{events:?}");
}

#[test]
fn a_session_that_its_node_has_forgotten_is_begun_anew() {
    let mut world = world(1);
    world.hold(0, 1, "r", options());
    let before = session_of(&world, 0, "r").nonce;
    world.pass_until_sent(0);
    assert_eq!(world.on_the_wire(0), ["renew"]);
    world.answer_with(0, Outcome::NotApplied(Refusal::Abstains { stamp: None }));
    assert!(!is_lost(&world.take_events(0)), "the node refuses nothing");
    world.hold(0, 2, "s", options());
    assert_ne!(session_of(&world, 0, "s").nonce, before, "a renewal would never have the node vote again");
}

#[test]
fn a_user_without_rights_on_the_session_is_told_which_record_is_meant() {
    let mut world = world(2);
    let denied = || Outcome::NotApplied(Refusal::Denied(Denial::new(DenialKind::Permission, "not allowed")));
    let told = |world: &mut World, host: usize, session: &str| {
        let Failure::Refused(denial) = failure(&world.take_events(host)) else { panic!("refused") };
        assert!(denial.detail.contains(session) && denial.detail.ends_with("not allowed"), "{denial}");
    };
    world.acquire(0, 1, "r", options());
    world.answer_with(0, denied());
    told(&mut world, 0, "session:a ");
    world.hold(0, 2, "r", options());
    world.acquire(1, 7, "r", options());
    while world.hosts[1].wire[0].ops.iter().all(|op| op.resource.as_str() != "session:a") {
        world.deliver(1);
    }
    world.answer_with(1, denied());
    told(&mut world, 1, "session:a ");
}
