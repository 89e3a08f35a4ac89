//! Fencing tokens grow strictly with every grant, over release, expiry, takeover and loss of the store's data.

use crate::common::*;
use leasehold_core::op::{Holding, Op};
use leasehold_core::store::BootId;
use leasehold_core::{Event, Failure, Token};
use std::time::Duration;

fn floor(world: &World, host: usize) -> Token {
    let Op::Acquire(op) = &world.hosts[host].wire[0].ops[0].op else { panic!("an acquire") };
    op.floor
}

#[test]
fn tokens_grow_over_release_expiry_and_takeover() {
    let mut world = World::new(2);
    let mut last = Token::ZERO;
    let mut grown = |token: Token| {
        assert!(token > last, "{token} after {last}");
        last = token;
    };
    grown(world.hold(0, 1, "r", options()));
    world.release(0, 1);
    world.deliver_all();
    world.take_events(0);
    grown(world.hold(0, 2, "r", options()));
    // It expires.
    world.jump(secs(31));
    grown(world.hold(1, 1, "r", options()));
    // The machine is gone.
    world.hosts[1].wake_at = leasehold_core::Monotonic::FAR;
    world.stores[0].boot = BootId([7; 16]);
    world.take_events(0);
    world.acquire(0, 3, "r", options());
    world.pass(secs(35));
    grown(token(&world.take_events(0)));
}

#[test]
fn a_renewal_and_a_resend_mint_nothing() {
    let mut world = World::new(1);
    world.acquire(0, 1, "r", options());
    world.lose_reply(0);
    world.pass_cut_off(ms(500));
    world.deliver(0);
    let held = token(&world.take_events(0));
    world.pass(secs(600));
    assert_eq!(world.record(0, "r").counter, held);
}

#[test]
fn wall_clock_floor_passes_a_wiped_counter() {
    let mut world = World::new(2);
    let first = world.hold(0, 1, "r", options());
    world.stores[0].records.clear();
    world.jump(ms(1));
    let second = world.hold(1, 1, "r", options());
    assert!(second > first, "{second} after {first}");
}

#[test]
fn tokens_grow_although_the_store_is_wiped() {
    let mut world = World::new(1);
    let mut last = Token::ZERO;
    for id in 0..20 {
        let token = world.hold(0, id, "r", options());
        assert!(token > last, "{token} after {last}");
        last = token;
        world.release(0, id);
        world.deliver_all();
        world.take_events(0);
        if id % 3 != 1 {
            world.stores[0].records.clear();
        }
    }
}

#[test]
fn floor_is_the_wall_clock_or_one_above_the_last_token() {
    let mut world = World::new(2);
    world.acquire(0, 1, "r", options());
    assert_eq!(floor(&world, 0).get(), EPOCH_FLOOR);
    world.deliver(0);

    // A client whose clock is an hour ahead.
    world.hosts[1].unix_ms = Some(EPOCH_UNIX_MS + 3_600_000);
    let ahead = world.hold(1, 1, "s", options());
    assert_eq!(ahead.get(), EPOCH_FLOOR + 3_600_000_000);
    world.acquire(0, 2, "s", once());
    world.deliver_all();
    world.acquire(0, 3, "s", once());
    assert_eq!(floor(&world, 0), ahead.next().unwrap(), "seen in the way, so outbid, even if the store forgets it");
    world.acquire(0, 4, "t", once());
    let last = world.hosts[0].wire.pop_back().unwrap();
    assert!(matches!(&last.ops[0].op, Op::Acquire(op) if op.floor.get() == EPOCH_FLOOR), "for that resource only");
}

/// No counter is shown by a majority: the next token is above all of them.
#[test]
fn floor_is_above_the_counters_of_all_nodes() {
    let ahead = EPOCH_FLOOR + 3_600_000_000;
    let shows = |counter: u64| Holding { counter: Token::new(counter), ..holding(other_nonce(), Some(1)) };
    let mut world = World::quorum(3, 1);
    world.acquire(0, 1, "r", once());
    for (node, counter) in [(0, ahead + 1), (1, ahead)] {
        let transmit = world.take_for(0, node);
        world.answer(0, transmit.id, Ok(vec![conflict(Some(shows(counter)))]));
    }
    assert!(
        matches!(failure(&world.take_events(0)), Failure::Busy { holding: Some(holding) } if holding.counter.is_none())
    );
    world.hosts[0].wire.clear();
    world.acquire(0, 2, "r", once());
    assert_eq!(floor(&world, 0).get(), ahead + 2);
}

#[test]
fn remembered_tokens_are_bounded() {
    use leasehold_core::config::{Limits, NodeConfig};
    let limits = Limits { observations: 10, ..Limits::default() };
    let config = leasehold_core::Config::new(vec![NodeConfig::default()]).unwrap().with_limits(limits).unwrap();
    let mut world = World::with_config(&config, 1);
    world.hosts[0].unix_ms = Some(0);
    let size = |world: &World| format!("{:?}", world.hosts[0].client).len();
    for id in 0..100 {
        // Minted by the store, so ahead of a wall clock that stands at zero.
        for _ in 0..2 {
            world.hold(0, id, &format!("resource-{id}"), options());
            world.release(0, id);
            world.deliver_all();
            world.take_events(0);
        }
    }
    let before = size(&world);
    for id in 100..200 {
        world.hold(0, id, &format!("resource-{id}"), options());
        world.release(0, id);
        world.deliver_all();
        world.take_events(0);
    }
    assert!(size(&world) < before + 200, "{} bytes of state after {before}", size(&world));
}

#[test]
fn a_grant_in_the_same_millisecond_is_still_higher() {
    let mut world = World::new(3);
    let mut last = Token::ZERO;
    for turn in 0..30 {
        let host = turn % 3;
        let token = world.hold(host, 1, "r", options());
        assert!(token > last);
        last = token;
        world.release(host, 1);
        world.deliver_all();
        world.take_events(host);
    }
    assert!(last.get() >= EPOCH_UNIX_MS + 29);
}

#[test]
fn the_event_carries_the_token_of_the_record() {
    let mut world = World::new(1);
    world.acquire(0, 1, "r", options());
    world.deliver(0);
    let [Event::Acquired { token, .. }] = world.take_events(0)[..] else { panic!("one grant") };
    assert_eq!(token, world.record(0, "r").counter);
}

/// A lock that is granted more than once in a millisecond, on a store that then forgets its counter.
#[test]
fn token_does_not_fall_after_quick_grants_and_a_lost_counter() {
    let mut world = World::new(2);
    let mut highest = Token::ZERO;
    for id in 1..=50 {
        highest = world.hold(0, id, "r", options());
        world.release(0, id);
        world.deliver_all();
    }
    world.stores[0].records.clear();
    world.pass(Duration::from_millis(1));
    // A client that has seen none of them.
    assert!(world.hold(1, 1, "r", options()) > highest);
}
