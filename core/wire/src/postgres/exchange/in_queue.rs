//! The part of an exchange that is about queues of waiters.

use leasehold_core::op::{LockOp, Op, Outcome, Refusal};
use leasehold_core::queue::Ticket;

use super::super::queue::{self, Head};
use super::super::rows::{self, Row};
use super::{Exchange, Next, Step, busy, explained};

impl Exchange {
    /// The ticket of the only open operation.
    pub(super) fn ticket(&self) -> Option<Ticket> {
        let LockOp { lock, .. } = self.ops.get(*self.open.first()?)?;
        Some(Ticket { client: self.asker?.client, lock: *lock })
    }

    /// Notes whose turn has come by a statement that freed a lock.
    pub(super) fn note_turn(&mut self, op: &Op, rows: &[Row]) {
        let frees = matches!(op, Op::Release(_) | Op::Finish(_)) && self.texts.queues.is_some();
        if let Some(ticket) = rows.first().filter(|_| frees).and_then(|row| queue::turn(row.get(1))) {
            self.told.turns.push((self.ops[self.open[0]].resource.clone(), ticket));
        }
    }

    /// An acquire that was refused looks for the reason where it may join the queue.
    pub(super) fn by_way_of_the_queue(&self, op: &Op, next: Next) -> Next {
        match (next, op, self.asker) {
            // Somebody may wait.
            (Next::Go(Step::Read), Op::Release(_), _) if self.texts.queues.is_some() && self.tries == 0 => Next::Retry,
            (Next::Go(Step::Read), Op::Acquire(acquire), Some(asker)) if acquire.member.is_none() => {
                let is_known = asker.is_seen || self.told.is_seen || !acquire.in_queue;
                Next::Go(if is_known { Step::Join } else { Step::See })
            }
            (next, _, _) => next,
        }
    }

    /// Reads what stands in the way of an acquire, its place included.
    pub(super) fn joined(&mut self, rows: &[Row]) -> Next {
        let (Some(ticket), [row]) = (self.ticket(), rows) else { return Next::Done(busy()) };
        let LockOp { resource, lock, op } = &self.ops[self.open[0]];
        let Some((row, [head, place])) = row.split_last_chunk() else { return Next::Done(busy()) };
        let Ok((memory, found)) = rows::read(row) else { return Next::Done(busy()) };
        let found = match found.map(|(_, found)| found).transpose() {
            Ok(found) => found,
            Err(denial) => return Next::Done(Outcome::NotApplied(Refusal::Denied(denial))),
        };
        let Op::Acquire(acquire) = op else { return Next::Done(busy()) };
        let is_kept = Head::of(head).is_some_and(|head| head.comes_before(ticket, acquire));
        let next = explained(op, found.as_ref(), &memory, is_kept);
        if let (Some(place), Next::Done(_)) = (queue::number(place), &next) {
            let head = Head::of(head).filter(|_| found.as_ref().is_none_or(|found| !found.is_live()));
            if let Some(left) = head.and_then(|head| head.reserved_for(memory.unix_ms)) {
                self.told.reserved.push((resource.clone(), *lock, left));
            }
            self.told.places.push((resource.clone(), *lock, place));
        }
        next
    }
}
