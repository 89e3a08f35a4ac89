//! The queue of waiters in an embedded store: who gets a lock that is free, and who is passed over.

use core::time::Duration;

use leasehold_core::node::NodeMemory;
use leasehold_core::op::{Acquire, Applied, Op, Outcome, Refusal, Release};
use leasehold_core::queue::{self, ClientId, Decision, RESERVED, Ticket, UNSEEN, Waiter, serve_in_queue};
use leasehold_core::store::{BootId, Record, StoreNow};
use leasehold_core::{LockId, Monotonic, Nonce, Owner, Seq};

use crate::common::{ms, secs};

const TTL: Duration = Duration::from_secs(30);

/// A lock and its queue.
struct Shop {
    record: Option<Record>,
    queue: Vec<Waiter>,
    now: StoreNow,
}

const fn ticket(n: u8) -> Ticket {
    Ticket { client: ClientId([n; 16]), lock: LockId::new(n as u64) }
}

impl Shop {
    fn new() -> Self {
        let now = StoreNow { boot: BootId([1; 16]), uptime: Monotonic::default().plus(secs(1_000)), unix_ms: 1 };
        Self { record: None, queue: Vec::new(), now }
    }

    fn pass(&mut self, time: Duration) {
        self.now.uptime = self.now.uptime.plus(time);
    }

    fn ask(&mut self, n: u8, op: &Op) -> (Outcome, Option<Ticket>) {
        let memory = NodeMemory::default();
        let Decision { served, queue, turn } =
            serve_in_queue(self.record.as_ref(), memory, &self.queue, ticket(n), op, &self.now);
        self.record = served.record.or(self.record.take());
        self.queue = queue.unwrap_or(std::mem::take(&mut self.queue));
        (served.outcome, turn)
    }

    /// Tells if the lock is granted, and whose turn has come.
    fn acquire(&mut self, n: u8, in_queue: bool) -> (bool, Option<Ticket>) {
        let op = Op::Acquire(Box::new(Acquire {
            owner: Owner::new("me").unwrap(),
            in_queue,
            ..Acquire::new(Nonce::from_bytes([n; 16]), Seq::new(1), TTL)
        }));
        let (outcome, turn) = self.ask(n, &op);
        match outcome {
            Outcome::Applied(Applied::Acquired { .. }) => (true, turn),
            Outcome::NotApplied(Refusal::Conflict(_)) => (false, turn),
            other => panic!("{other:?}"),
        }
    }

    fn waits(&mut self, n: u8) {
        assert_eq!(self.acquire(n, true), (false, None));
    }

    fn release(&mut self, n: u8) -> Option<Ticket> {
        let (outcome, turn) = self.ask(n, &Op::Release(Release { nonce: Nonce::from_bytes([n; 16]), quorum: None }));
        assert_eq!(outcome, Outcome::Applied(Applied::Released));
        turn
    }

    fn leave(&mut self, n: u8) -> Option<Ticket> {
        let (queue, turn) = queue::leave(&self.queue, ticket(n), &self.now);
        self.queue = queue.unwrap_or(std::mem::take(&mut self.queue));
        turn
    }

    fn waiting(&self) -> Vec<Ticket> {
        queue::waiting(&self.queue, &self.now).map(|waiter| waiter.ticket).collect()
    }
}

/// 1 holds the lock, 2 and 3 wait.
fn two_wait() -> Shop {
    let mut shop = Shop::new();
    assert_eq!(shop.acquire(1, true), (true, None));
    shop.waits(2);
    shop.waits(3);
    shop
}

#[test]
fn a_release_hands_the_lock_to_the_first_in_queue() {
    let mut shop = two_wait();
    assert_eq!(shop.waiting(), [ticket(2), ticket(3)]);
    assert_eq!(shop.release(1), Some(ticket(2)));
    assert_eq!(queue::reserved_for(&shop.queue, &shop.now), Some(ticket(2)));
    // Neither who comes back, nor who does not queue, nor the next but one.
    assert_eq!(shop.acquire(4, true), (false, None));
    assert_eq!(shop.acquire(5, false), (false, None));
    assert_eq!(shop.acquire(3, true), (false, None));
    assert_eq!(shop.acquire(2, true), (true, None));
    assert_eq!(shop.waiting(), [ticket(3), ticket(4)]);
    assert_eq!(shop.release(2), Some(ticket(3)));
}

#[test]
fn a_turn_that_is_not_taken_is_passed_on_when_it_is_over() {
    let mut shop = two_wait();
    assert_eq!(shop.release(1), Some(ticket(2)));
    shop.pass(RESERVED - ms(1));
    assert!(!queue::is_due(&shop.queue, ticket(3), &shop.now));
    assert_eq!(shop.acquire(3, true), (false, None));
    shop.pass(ms(1));
    assert!(queue::is_due(&shop.queue, ticket(3), &shop.now), "it came to the head");
    assert_eq!(shop.acquire(4, true), (false, Some(ticket(3))), "the next is told");
    assert_eq!(shop.acquire(3, true), (true, None));
    // A waiter that has missed its turn stands at the end.
    assert!(queue::is_due(&shop.queue, ticket(2), &shop.now));
    shop.waits(2);
    assert_eq!(shop.waiting(), [ticket(4), ticket(2)]);
}

#[test]
fn who_is_not_seen_is_passed_over() {
    let mut shop = two_wait();
    shop.pass(UNSEEN / 2);
    shop.waits(3);
    shop.pass(UNSEEN / 2 + ms(1));
    assert_eq!(shop.waiting(), [ticket(3)]);
    assert_eq!(shop.release(1), Some(ticket(3)));
}

#[test]
fn who_waits_since_an_earlier_boot_is_passed_over() {
    let mut shop = two_wait();
    shop.now.boot = BootId([2; 16]);
    assert_eq!(shop.waiting(), []);
    shop.waits(4);
    assert_eq!(shop.release(1), Some(ticket(4)));
}

#[test]
fn a_ticket_that_is_given_up_passes_its_turn_on() {
    let mut shop = two_wait();
    assert_eq!(shop.leave(2), None, "the lock is held");
    shop.waits(4);
    assert_eq!(shop.release(1), Some(ticket(3)));
    assert_eq!(shop.leave(5), None, "it does not stand in the queue");
    assert_eq!(shop.leave(3), Some(ticket(4)));
    assert_eq!(shop.leave(4), None);
    assert_eq!(shop.queue, []);
    assert_eq!(shop.acquire(1, false), (false, None), "a released attempt stays refused");
    assert_eq!(shop.acquire(6, false), (true, None));
}

#[test]
fn a_waiter_that_sees_a_missed_turn_passes_it_on() {
    let mut shop = two_wait();
    shop.waits(4);
    assert_eq!(shop.release(1), Some(ticket(2)));
    assert!(!queue::is_due(&shop.queue, ticket(4), &shop.now), "it is the turn of another");
    assert_eq!(queue::reserved_before(&shop.queue, ticket(4), &shop.now).unwrap().place, 2);
    shop.pass(RESERVED);
    // 3 is as dead as 2: if only the first in the queue noticed, nobody would.
    assert!(queue::is_due(&shop.queue, ticket(4), &shop.now));
    assert_eq!(shop.acquire(4, true), (false, Some(ticket(3))));
    assert!(!queue::is_due(&shop.queue, ticket(4), &shop.now));
    let before = queue::reserved_before(&shop.queue, ticket(4), &shop.now).unwrap();
    assert_eq!((before.left, before.place), (RESERVED, 1));
    shop.pass(RESERVED);
    assert!(queue::is_due(&shop.queue, ticket(4), &shop.now));
    assert_eq!(shop.acquire(4, true), (true, None));
}

#[test]
fn a_lock_that_ran_out_goes_to_the_first_in_queue() {
    let mut shop = two_wait();
    for _ in 0..4 {
        shop.pass(TTL / 4);
        shop.queue.iter_mut().for_each(|waiter| waiter.seen = shop.now.uptime);
    }
    assert_eq!(shop.acquire(3, true), (false, Some(ticket(2))));
    assert_eq!(shop.acquire(2, true), (true, None));
}

#[test]
fn who_does_not_queue_takes_a_lock_that_is_reserved_for_nobody() {
    let mut shop = two_wait();
    for _ in 0..4 {
        shop.pass(TTL / 4);
        shop.queue.iter_mut().for_each(|waiter| waiter.seen = shop.now.uptime);
    }
    assert_eq!(shop.acquire(4, false), (true, None));
    assert_eq!(shop.waiting(), [ticket(2), ticket(3)], "they keep their places");
}

#[test]
fn a_reservation_that_no_honest_client_writes_reserves_nothing() {
    let mut shop = two_wait();
    assert_eq!(shop.release(1), Some(ticket(2)));
    shop.queue[0].reserved_until = Some(Monotonic::FAR);
    assert_eq!(shop.acquire(4, false), (true, None));
}

#[test]
fn a_line_has_an_end() {
    let mut shop = two_wait();
    shop.queue =
        (0..10_000).map(|n| Waiter { ticket: Ticket { lock: LockId::new(n), ..ticket(9) }, ..shop.queue[0] }).collect();
    shop.waits(2);
    assert_eq!(shop.queue.len(), 10_000);
}
