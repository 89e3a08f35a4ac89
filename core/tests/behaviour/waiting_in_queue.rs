//! A client that stands in the queue behind others: when it comes back, and where it stands in no queue.

use std::time::Duration;

use crate::common::*;
use leasehold_core::config::NodeConfig;
use leasehold_core::node::NodeMemory;
use leasehold_core::op::{Acquire, Holder, Holding, Op, Outcome, Release};
use leasehold_core::queue::{self, ClientId, Ticket, Waiter, serve_in_queue};
use leasehold_core::store::{BootId, StoreNow};
use leasehold_core::{Config, Monotonic, Nonce, Owner, Seq, Wait};

fn busy() -> Outcome {
    conflict(Some(Holding { left: Some(secs(3600)), ..holding(other_nonce(), Some(1)) }))
}

/// A lock that is free from now on, and `before` waiters who never come. How long it takes until one who stands behind them, and
/// has just asked, has the lock, with the timers of the client alone.
fn idle_behind(before: u8, seed: usize) -> Duration {
    let mut world = World::new(seed + 1);
    world.hosts.swap(0, seed);
    world.acquire(0, 1, "r", with(|options| options.wait(Wait::Forever)));
    let ticket = |n: u8| Ticket { client: ClientId([n; 16]), lock: lock(u64::from(n)) };
    let now = |world: &World| StoreNow {
        boot: BootId([1; 16]),
        uptime: Monotonic::default().plus(secs(1_000) + world.time),
        unix_ms: 1,
    };
    let acquire = |n: u8| {
        Op::Acquire(Box::new(Acquire {
            owner: Owner::new("me").unwrap(),
            in_queue: true,
            ..Acquire::new(Nonce::from_bytes([n; 16]), Seq::new(1), secs(30))
        }))
    };
    let (me, holder) = (before + 1, before + 2);
    let (mut record, mut queue) = (None, Vec::new());
    let mut ask = |n: u8, op: &Op, now: StoreNow, queue: &mut Vec<Waiter>| {
        let decided = serve_in_queue(record.as_ref(), NodeMemory::default(), queue, ticket(n), op, &now);
        record = decided.served.record.or(record.take());
        *queue = decided.queue.unwrap_or(std::mem::take(queue));
        decided.served.outcome
    };
    ask(holder, &acquire(holder), now(&world), &mut queue);
    for n in 1..=me {
        ask(n, &acquire(n), now(&world), &mut queue);
    }
    let held = busy();
    world.hosts[0].client.placed(lock(1), None);
    world.answer_with(0, held);
    let began = world.time;
    let nonce = Nonce::from_bytes([holder; 16]);
    ask(holder, &Op::Release(Release { nonce, quorum: None }), now(&world), &mut queue);
    loop {
        world.pass_until_sent(0);
        let at = now(&world);
        let outcome = ask(me, &acquire(me), at, &mut queue);
        if let Outcome::Applied(_) = outcome {
            return world.time - began;
        }
        // Who stands in the queue is seen, as far as the others are concerned: they are stopped.
        queue.iter_mut().for_each(|waiter| waiter.seen = at.uptime);
        world.hosts[0].client.placed(lock(1), queue::reserved_before(&queue, ticket(me), &at));
        world.answer_with(0, outcome);
    }
}

#[test]
fn stopped_waiters_cost_little_more_than_half_a_second_each_and_a_poll() {
    for before in [1, 6, 12, 20, 40] {
        let promised = ms(600) * (u32::from(before) + 1) + secs(2);
        for seed in 0..20 {
            let idle = idle_behind(before, seed);
            assert!(idle <= promised, "{before} stopped: idle for {idle:?}, promised {promised:?}");
        }
    }
}

#[test]
fn who_sees_another_library_stays_out_of_line_for_a_minute() {
    let config = Config::new(vec![NodeConfig::default()]).unwrap().with_queues(true);
    let mut world = World::with_config(&config, 1);
    let in_queue = |world: &World| {
        let [only] = &world.hosts[0].wire[0].ops[..] else { panic!("one operation") };
        matches!(&only.op, Op::Acquire(acquire) if acquire.in_queue)
    };
    world.acquire(0, 1, "r", with(|options| options.wait(Wait::Forever)));
    assert!(in_queue(&world));
    world.hosts[0].client.placed(lock(1), None);
    world.answer_with(0, conflict(Some(Holding { holder: Holder::Foreign, ..holding(other_nonce(), Some(1)) })));
    assert_eq!(world.hosts[0].client.next_departure(), None);
    let began = world.time;
    world.pass_until_sent(0);
    // What it left in the queue would be told of turns that it does not take.
    assert_eq!(world.hosts[0].client.next_departure().map(|departure| departure.lock), Some(lock(1)));
    while world.time - began < secs(60) {
        assert!(!in_queue(&world), "{:?} later", world.time - began);
        world.answer_with(0, busy());
        world.pass_until_sent(0);
        assert_eq!(world.hosts[0].client.next_departure(), None);
    }
    assert!(in_queue(&world), "and then it stands there again");
}

#[test]
fn who_is_told_to_come_later_leaves_the_lock_free_until_then() {
    let mut world = World::new(1);
    world.acquire(0, 1, "r", with(|options| options.wait(Wait::Forever)));
    world.hosts[0].client.placed(lock(1), None);
    world.answer_with(0, busy());
    let (began, now) = (world.time, world.now(0));
    world.hosts[0].client.reserved(&resource("r"), lock(1), ms(50), now);
    world.tick(0);
    assert!(world.hosts[0].wire.is_empty(), "nothing is sent before");
    world.pass_until_sent(0);
    assert_eq!(world.time - began, ms(50));
}
