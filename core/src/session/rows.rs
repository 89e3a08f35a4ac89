//! The rows of our own locks on one node: until when somebody believes in them, and what others have done to them.

use core::time::Duration;

use super::{Moment, Node, Work, rival};
use crate::ids::{LockId, Nonce, Resource};
use crate::op::{Op, Outcome, Refusal, Seen};
use crate::time::{Format, Monotonic, counted_from, observed_until};

/// A row of ours, or what may be one.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct OwnRow {
    pub(super) lock: LockId,
    pub(super) resource: Resource,
    /// The nonce of the session that it names.
    pub(super) session: Nonce,
    pub(super) row_ttl: Duration,
    /// The send of the last write of it that counts.
    pub(super) written: Monotonic,
    /// [`Own::news`](super::own::Own::news) when it was written or read last. With any later news, others may have changed it.
    pub(super) news: u64,
    pub(super) is_revoked: bool,
    /// Its node has lost the session, and perhaps the row: it does not vote, and refuses nothing.
    pub(super) is_forgotten: bool,
    /// Acquires of the attempt that are under way.
    pub(super) in_flight: u8,
    /// One had an unknown outcome, and may yet land.
    pub(super) may_land: bool,
    /// Until then somebody may believe in it.
    pub(super) until: Monotonic,
    /// It is not released by us before.
    pub(super) free_at: Monotonic,
    /// Its release has left because nobody believed in it: whatever lands after that may be released, too, so that the attempt
    /// counts for nothing any more.
    pub(super) is_freed: bool,
    /// A release of that kind may yet land.
    pub(super) may_be_freed: bool,
    pub(super) patience: Duration,
}

impl OwnRow {
    pub(super) fn due(&self) -> Monotonic {
        self.until.max(self.free_at)
    }
}

impl<T> Node<T> {
    pub(super) fn sweep_by(&mut self, at: Monotonic) {
        self.sweep_at = Some(self.sweep_at.map_or(at, |before| before.min(at)));
    }

    pub(super) fn row_of(&mut self, work: &Work<T>) -> Option<&mut OwnRow> {
        self.rows.get_mut(&work.op.nonce()?)
    }

    /// The refusal of a renewal whose row is worth nothing any more.
    pub(super) fn lost(&self, work: &Work<T>) -> Option<Outcome> {
        let Op::Renew(renew) = &work.op else { return None };
        let row = self.rows.get(&renew.nonce);
        if row.is_some_and(|row| row.is_revoked) {
            return Some(rival::revoked(&renew.nonce));
        }
        if row.is_some_and(|row| row.is_forgotten) {
            return Some(Outcome::NotApplied(Refusal::Abstains { stamp: None }));
        }
        let is_of_ours =
            |row: &OwnRow| !row.is_freed && self.own.as_ref().is_some_and(|own| own.nonce() == row.session);
        (!row.is_some_and(is_of_ours)).then(|| Outcome::NotApplied(Refusal::Conflict(Seen::default())))
    }

    /// Notes that somebody may believe in a row, by a request that left at `since`.
    pub(super) fn keep(&mut self, work: &Work<T>, since: Monotonic, moment: Moment<'_>) {
        let until = observed_until(since, work.ttl, moment.drift, Format::Leasehold);
        if let Some(row) = self.row_of(work) {
            row.until = row.until.max(until);
            self.sweep_by(until);
        }
    }

    /// The instant from which a row of ours counts; `None` if it counts for nothing.
    pub(super) fn since(&mut self, work: &Work<T>, moment: Moment<'_>) -> Option<Monotonic> {
        let own = self.own.as_ref()?;
        let (nonce, heartbeat) = (own.nonce(), own.since(work.ttl)?);
        let row = self.row_of(work).filter(|row| row.session == nonce && !row.is_freed)?;
        let since = counted_from(heartbeat, row.written, row.row_ttl, work.ttl, moment.drift);
        self.keep(work, since, moment);
        Some(since)
    }

    pub(super) fn note_row(&mut self, work: &Work<T>, sent: Monotonic, outcome: &Outcome) {
        let Some(nonce) = work.op.nonce() else { return };
        let Some(row) = self.rows.get_mut(&nonce) else { return };
        if let Op::Acquire(_) = &work.op {
            row.in_flight = row.in_flight.saturating_sub(1);
        }
        let is_gone = match (&work.op, outcome) {
            (Op::Acquire(_), Outcome::Unknown(_)) => {
                row.may_land = true;
                false
            }
            (Op::Acquire(_), Outcome::NotApplied(Refusal::Conflict(seen))) => {
                !seen.held().is_some_and(|holding| holding.is_of(&nonce))
            }
            (Op::Acquire(_), Outcome::NotApplied(_)) => true,
            (Op::Renew(_), Outcome::Applied(_)) => {
                row.written = row.written.max(sent);
                false
            }
            (Op::Release(_) | Op::Finish(_), Outcome::Applied(_) | Outcome::NotApplied(Refusal::Conflict(_))) => true,
            (_, _) => false,
        };
        // An acquire that may yet land is looked after until nobody can believe in it, and released then.
        if is_gone && !row.may_land && row.in_flight == 0 {
            self.rows.remove(&nonce);
        }
    }
}
