//! The queue of waiters beside a lock in an embedded store, as pure functions: who joins, whose turn it is, who is passed over.
//!
//! A store keeps the queue beside the record, and changes both at once. The queue never grants anything: it only refuses a lock
//! that [`serve`] would grant, because it is reserved or because others came first. So a line that is
//! wrong costs time, and never exclusion.
//!
//! A lock that is freed is reserved for the first in the queue for [`RESERVED`]. Who does not take it by then loses its place. Who
//! was not seen for [`UNSEEN`], or in an earlier boot, is passed over at once.

use alloc::vec::Vec;
use core::time::Duration;

use crate::ids::LockId;
use crate::node::{NodeMemory, Served, serve};
use crate::op::{Acquire, Applied, Op, Outcome, Refusal, Seen};
use crate::store::{BootId, Record, StoreNow};
use crate::time::Monotonic;

/// How long a lock is reserved for the first in the queue.
pub const RESERVED: Duration = Duration::from_millis(500);
/// How long a waiter keeps its place without being seen: five times the longest sleep between two polls.
pub const UNSEEN: Duration = Duration::from_secs(10);
/// The most places in a line. Who finds no place polls.
const MOST: usize = 10_000;

/// The random name of a client of the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClientId(pub [u8; 16]);

/// A claim to a place in the queue: one acquisition of one client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket {
    /// The client.
    pub client: ClientId,
    /// Its acquisition.
    pub lock: LockId,
}

/// A reservation as somebody else in the queue sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Reserved {
    /// How long the lock is reserved still.
    pub left: Duration,
    /// The place of who sees it, among those who wait, counted from 1.
    pub place: u64,
}

/// A place in the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Waiter {
    /// The acquisition that waits.
    pub ticket: Ticket,
    /// When it joined, in milliseconds since 1970, for people.
    pub joined_unix_ms: u64,
    /// The boot in which the uptimes count.
    pub boot: BootId,
    /// The uptime at which it was last seen.
    pub seen: Monotonic,
    /// The lock is reserved for it until this uptime.
    pub reserved_until: Option<Monotonic>,
}

/// The decision of [`serve_in_queue`]; all of it is written at once.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Decision {
    /// The writes beside the queue, and the answer.
    pub served: Served,
    /// The queue to write; `None` leaves it as it is.
    pub queue: Option<Vec<Waiter>>,
    /// The ticket whose turn has come, which is to be told.
    pub turn: Option<Ticket>,
}

impl Waiter {
    fn stands(&self, now: &StoreNow) -> bool {
        let is_seen = self.boot == now.boot && now.uptime.since(self.seen) <= UNSEEN;
        is_seen && (self.reserved_until.is_none() || self.has_the_turn(now))
    }

    /// Tells if the lock is reserved for it. A time that no honest client writes reserves nothing.
    fn has_the_turn(&self, now: &StoreNow) -> bool {
        self.boot == now.boot
            && self.reserved_until.is_some_and(|until| now.uptime < until && until.since(now.uptime) <= RESERVED)
    }
}

/// Carries out one operation of a ticket on a record and its queue.
pub fn serve_in_queue(
    record: Option<&Record>,
    memory: NodeMemory<'_>,
    queue: &[Waiter],
    ticket: Ticket,
    op: &Op,
    now: &StoreNow,
) -> Decision {
    let served = serve(record, memory, op, now);
    let mut standing: Vec<Waiter> = queue.iter().filter(|waiter| waiter.stands(now)).copied().collect();
    let mut turn = None;
    let served = match (op, &served.outcome) {
        (Op::Acquire(acquire), Outcome::Applied(_)) if acquire.member.is_none() => {
            if comes_first(&standing, ticket, acquire) {
                standing.retain(|waiter| waiter.ticket != ticket);
                served
            } else {
                turn = call(&mut standing, now);
                join(&mut standing, ticket, acquire, now);
                refused()
            }
        }
        (Op::Acquire(acquire), Outcome::NotApplied(Refusal::Conflict(_))) if !is_late_copy(record, acquire) => {
            join(&mut standing, ticket, acquire, now);
            served
        }
        (Op::Release(_), Outcome::Applied(Applied::Released))
        | (Op::Finish(_), Outcome::Applied(Applied::Finished)) => {
            turn = call(&mut standing, now);
            served
        }
        (_, _) => served,
    };
    Decision { served, turn, queue: (standing != queue).then_some(standing) }
}

/// Gives up a ticket, and passes on what is reserved for it. Returns the queue to write, and whose turn it is.
pub fn leave(queue: &[Waiter], ticket: Ticket, now: &StoreNow) -> (Option<Vec<Waiter>>, Option<Ticket>) {
    let Some(left) = queue.iter().find(|waiter| waiter.ticket == ticket) else { return (None, None) };
    let stays = |waiter: &&Waiter| waiter.ticket != ticket && waiter.stands(now);
    let mut standing: Vec<Waiter> = queue.iter().filter(stays).copied().collect();
    let turn = if left.has_the_turn(now) { call(&mut standing, now) } else { None };
    (Some(standing), turn)
}

/// Tells if an acquisition that stands in the queue should try now: the lock is reserved for it, it has lost its place, or somebody
/// did not take its turn. A waiter that sees that tries, at whatever place: the try passes the turn on to the first, who may be dead
/// as well.
pub fn is_due(queue: &[Waiter], ticket: Ticket, now: &StoreNow) -> bool {
    let turn_was_missed = queue.iter().any(|waiter| waiter.reserved_until.is_some() && !waiter.has_the_turn(now));
    let own = queue.iter().find(|waiter| waiter.ticket == ticket && waiter.stands(now));
    turn_was_missed || own.is_none_or(|own| own.has_the_turn(now))
}

/// The reservation that a ticket in the queue has to wait for; `None` where there is none, or it is its own.
pub fn reserved_before(queue: &[Waiter], ticket: Ticket, now: &StoreNow) -> Option<Reserved> {
    let until = queue.iter().find(|waiter| waiter.has_the_turn(now))?.reserved_until?;
    let at = waiting(queue, now).position(|waiter| waiter.ticket == ticket)?;
    Some(Reserved { left: until.since(now.uptime), place: at as u64 + 1 })
}

/// The ticket that the lock is reserved for.
pub fn reserved_for(queue: &[Waiter], now: &StoreNow) -> Option<Ticket> {
    queue.iter().find(|waiter| waiter.has_the_turn(now)).map(|waiter| waiter.ticket)
}

/// Those who still wait for their turn, in their order.
pub fn waiting<'a>(queue: &'a [Waiter], now: &'a StoreNow) -> impl Iterator<Item = &'a Waiter> {
    queue.iter().filter(|waiter| waiter.stands(now) && waiter.reserved_until.is_none())
}

/// Tells if a ticket may take a lock that is free. Who asks without a place takes what is reserved for nobody.
fn comes_first(standing: &[Waiter], ticket: Ticket, acquire: &Acquire) -> bool {
    let Some(first) = standing.first() else { return true };
    first.ticket == ticket || !acquire.in_queue && first.reserved_until.is_none()
}

/// Reserves the lock for the first in the queue. `None` if nobody waits, and where its turn was told before.
fn call(standing: &mut [Waiter], now: &StoreNow) -> Option<Ticket> {
    let first = standing.first_mut().filter(|first| first.reserved_until.is_none())?;
    first.reserved_until = Some(now.uptime.plus(RESERVED));
    Some(first.ticket)
}

/// Adds a waiter at the end, or notes that it was seen: not each time, since stores write that to a disk.
fn join(standing: &mut Vec<Waiter>, ticket: Ticket, acquire: &Acquire, now: &StoreNow) {
    if !acquire.in_queue {
        return;
    }
    if let Some(waiter) = standing.iter_mut().find(|waiter| waiter.ticket == ticket) {
        if now.uptime.since(waiter.seen) > UNSEEN / 5 {
            waiter.seen = now.uptime;
        }
    } else if standing.len() < MOST {
        let (joined_unix_ms, boot, seen) = (now.unix_ms, now.boot, now.uptime);
        standing.push(Waiter { ticket, joined_unix_ms, boot, seen, reserved_until: None });
    }
}

/// Tells if an attempt that is refused has been granted before. Nobody waits for the answer to such a copy.
fn is_late_copy(record: Option<&Record>, acquire: &Acquire) -> bool {
    record.and_then(|record| record.lease.as_ref()).is_some_and(|lease| lease.nonce == acquire.nonce)
}

/// The answer to an acquire of a lock that is free, and kept for others. Nothing is written.
fn refused() -> Served {
    let outcome = Outcome::NotApplied(Refusal::Conflict(Seen::default()));
    Served { record: None, marker: None, trusted: None, outcome }
}
