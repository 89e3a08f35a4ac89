//! The reference store: one operation on one record, as a pure function.
//!
//! The embedded stores wrap it, and model stores extend it. It keeps the counter apart from the lease: a release ends
//! the lease only. A released record keeps the nonce of its attempt, so that a delayed send of that attempt is refused
//! instead of granted to a client that has left.

use alloc::boxed::Box;
use core::time::Duration;

use crate::about::About;
use crate::config::{MAX_KEEP, MAX_RECORD_TTL};
use crate::ids::{Nonce, Owner, Payload, Seq, Token, Version};
use crate::op::{
    Acquire, Applied, Completion, Denial, DenialKind, Finish, Holder, Holding, Op, Outcome, Raise, Refusal, Renew,
    Revoke, Seen, Session, Tell,
};
use crate::time::Monotonic;

/// The id of one run of one kernel: uptimes are comparable within it only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BootId(pub [u8; 16]);

/// The store's clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct StoreNow {
    /// The boot that the uptime belongs to.
    pub boot: BootId,
    /// Time since boot, suspend included. Decides expiry.
    pub uptime: Monotonic,
    /// Milliseconds since 1970, for people.
    pub unix_ms: u64,
}

/// One resource in a store.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Record {
    /// The highest token ever minted here.
    pub counter: Token,
    /// The last lease, running or not.
    pub lease: Option<LeaseRecord>,
    /// The last completion of finished work, standing or not.
    pub completion: Option<CompletionRecord>,
}

/// The completion part of a [`Record`]. Wall clocks decide how long it stands: it outlives restarts of the machine.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CompletionRecord {
    /// The attempt that finished the work.
    pub nonce: Nonce,
    /// The fencing token of its lease.
    pub token: Token,
    /// Label for people.
    pub owner: Owner,
    /// When it was written, in milliseconds since 1970.
    pub at_unix_ms: u64,
    /// When it ends, in milliseconds since 1970.
    pub until_unix_ms: u64,
    /// The record of the run.
    pub about: Option<About>,
}

/// The lease part of a [`Record`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct LeaseRecord {
    /// The attempt that was granted.
    pub nonce: Nonce,
    /// The send of it that wrote last; [`Seq::LAST`] once it is revoked.
    pub seq: Seq,
    /// Freed by its holder.
    pub released: bool,
    /// The time that the record stands from the last write on: ttl + lock_delay.
    pub record_ttl: Duration,
    /// The boot in which `expires` counts.
    pub boot: BootId,
    /// The uptime at which the record runs out.
    pub expires: Monotonic,
    /// When the lease was granted, in milliseconds since 1970.
    pub since_unix_ms: u64,
    /// Label for people.
    pub owner: Owner,
    /// Bytes for others to read.
    pub data: Option<Payload>,
    /// The session that the lease belongs to.
    pub session: Option<Session>,
    /// The number of tells in this record, of all leases. It wraps: only a change means something.
    pub told: u64,
}

/// The decision of [`apply`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Decision {
    /// The record to write; `None` leaves the store as it is.
    pub write: Option<Record>,
    /// The answer.
    pub outcome: Outcome,
}

impl Decision {
    fn keep(outcome: Outcome) -> Self {
        Self { write: None, outcome }
    }

    fn write(record: Record, applied: Applied) -> Self {
        Self { write: Some(record), outcome: Outcome::Applied(applied) }
    }

    fn conflict(record: Option<&Record>, now: &StoreNow) -> Self {
        Self::keep(Outcome::NotApplied(Refusal::Conflict(Seen { done: None, ..seen(record, now) })))
    }

    fn denied(kind: DenialKind, detail: &str) -> Self {
        Self::keep(Outcome::NotApplied(Refusal::Denied(Denial::new(kind, detail))))
    }
}

/// Decides on one operation on one record, atomically.
pub fn apply(record: Option<&Record>, op: &Op, now: &StoreNow) -> Decision {
    if let Some(lease) = record.and_then(|record| record.lease.as_ref()).filter(|lease| lease.is_dishonest(now)) {
        return Decision::denied(
            DenialKind::CorruptRecord,
            &alloc::format!(
                "the record says it lasts {:?} and ends {:?} from now, which no client writes; if nobody holds the \
                 lock, remove the record by hand",
                lease.record_ttl,
                lease.expires.since(now.uptime)
            ),
        );
    }
    if let Some(completion) =
        record.and_then(|record| record.completion.as_ref()).filter(|completion| completion.is_dishonest())
    {
        return Decision::denied(
            DenialKind::CorruptRecord,
            &alloc::format!(
                "the completion says that it was written at {} and is kept until {} ms since 1970, which no client \
                 writes; remove it by hand",
                completion.at_unix_ms,
                completion.until_unix_ms
            ),
        );
    }
    match op {
        Op::Acquire(op) => acquire(record, op, now),
        Op::Renew(op) => renew(record, op, now),
        Op::Release(op) => match lease_of(record, &op.nonce).filter(|(_, lease)| !lease.released) {
            Some((record, lease)) => {
                let lease = LeaseRecord { released: true, ..lease.clone() };
                Decision::write(Record { lease: Some(lease), ..record.clone() }, Applied::Released)
            }
            None => Decision::conflict(record, now),
        },
        Op::Finish(op) => finish(record, op, now),
        Op::Revoke(op) => revoke(record, op, now),
        Op::Tell(op) => tell(record, op, now),
        Op::Raise(op) => raise(record, op, now),
        Op::Read => Decision::keep(Outcome::Applied(Applied::Read(seen(record, now)))),
    }
}

/// The content of a record for a reader.
pub fn seen(record: Option<&Record>, now: &StoreNow) -> Seen {
    let holding = record.and_then(|record| {
        let lease = record.lease.as_ref()?;
        if !lease.released && lease.ran_out(now) {
            return None;
        }
        Some(Box::new(Holding {
            holder: Holder::Lease { nonce: lease.nonce, seq: Some(lease.seq) },
            version: lease.version(),
            released: lease.released,
            counter: Some(record.counter),
            owner: Some(lease.owner.clone()),
            record_ttl: Some(lease.record_ttl),
            left: (lease.boot == now.boot).then(|| lease.expires.since(now.uptime)),
            since_unix_ms: Some(lease.since_unix_ms),
            data: lease.data.clone(),
            session: lease.session.clone(),
            told: lease.told,
        }))
    });
    Seen { holding, done: record.and_then(|record| standing(record, now)).map(|completion| completion.shown(now)) }
}

fn standing<'a>(record: &'a Record, now: &StoreNow) -> Option<&'a CompletionRecord> {
    record.completion.as_ref().filter(|completion| now.unix_ms < completion.until_unix_ms)
}

fn acquire(record: Option<&Record>, op: &Acquire, now: &StoreNow) -> Decision {
    if let Some(completion) = record.filter(|_| op.unless_done).and_then(|record| standing(record, now)) {
        return Decision::keep(Outcome::NotApplied(Refusal::Done(completion.shown(now))));
    }
    if let Some(lease) = record.and_then(|record| record.lease.as_ref()) {
        // A delayed first send would overwrite a renewal, or take back a released lock. A later send may find a record that
        // has run out, if its holder has the lock on other nodes and was cut off from this one.
        if lease.nonce == op.nonce && (lease.released || !lease.ran_out(now) || op.seq <= lease.seq) {
            return Decision::conflict(record, now);
        }
        let waited_out = lease.boot != now.boot && op.expect.as_ref().is_some_and(|seen| *seen == lease.version());
        if !(lease.released || lease.ran_out(now) || waited_out) {
            return Decision::conflict(record, now);
        }
    }
    let counter = record.map_or(Token::ZERO, |record| record.counter);
    let Some(token) = counter.next().map(|next| next.max(op.floor)) else {
        return Decision::denied(
            DenialKind::TokensExhausted,
            "the token counter is at 2^53 - 1, which no client reaches; remove the record by hand",
        );
    };
    let lease = LeaseRecord {
        nonce: op.nonce,
        seq: op.seq,
        released: false,
        record_ttl: op.record_ttl,
        boot: now.boot,
        expires: now.uptime.plus(op.record_ttl),
        since_unix_ms: now.unix_ms,
        owner: op.owner.clone(),
        data: op.data.clone(),
        session: op.session.clone(),
        told: record.and_then(|record| record.lease.as_ref()).map_or(0, |lease| lease.told),
    };
    let completion = record.and_then(|record| record.completion.clone());
    Decision::write(Record { counter: token, lease: Some(lease), completion }, Applied::Acquired { counter: token })
}

fn renew(record: Option<&Record>, op: &Renew, now: &StoreNow) -> Decision {
    match lease_of(record, &op.nonce) {
        // An older send that arrives late must not undo the write of a newer one.
        Some((record, lease)) if !lease.released && !lease.ran_out(now) && lease.seq < op.seq => {
            let expires = now.uptime.plus(op.record_ttl);
            let lease = LeaseRecord {
                seq: op.seq,
                // Observers wait this long, so it must cover the ttl of every earlier send.
                record_ttl: lease.record_ttl.max(op.record_ttl),
                boot: now.boot,
                expires: if lease.boot == now.boot { lease.expires.max(expires) } else { expires },
                ..lease.clone()
            };
            let applied = renewed(lease.told);
            Decision::write(Record { lease: Some(lease), ..record.clone() }, applied)
        }
        Some(_) | None => Decision::conflict(record, now),
    }
}

fn finish(record: Option<&Record>, op: &Finish, now: &StoreNow) -> Decision {
    match lease_of(record, &op.nonce) {
        // Every grant moves the counter, so another one shows another grant: that of a late copy of the acquire, made after the
        // record was others' in between.
        Some((record, lease)) if !lease.released && !lease.ran_out(now) && record.counter == op.counter => {
            let keep_ms = u64::try_from(op.keep.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX);
            let completion = CompletionRecord {
                nonce: op.nonce,
                token: op.token,
                owner: op.owner.clone(),
                at_unix_ms: now.unix_ms,
                until_unix_ms: now.unix_ms.saturating_add(keep_ms),
                about: op.about.clone(),
            };
            let lease = LeaseRecord { released: true, ..lease.clone() };
            Decision::write(
                Record { counter: record.counter, lease: Some(lease), completion: Some(completion) },
                Applied::Finished,
            )
        }
        // The answer to an earlier send was lost.
        _ if record.and_then(|record| standing(record, now)).is_some_and(|completion| completion.nonce == op.nonce) => {
            Decision::keep(Outcome::Applied(Applied::Finished))
        }
        Some(_) | None => Decision::conflict(record, now),
    }
}

fn revoke(record: Option<&Record>, op: &Revoke, now: &StoreNow) -> Decision {
    match lease_of(record, &op.nonce) {
        Some((record, lease)) if !lease.released && !lease.ran_out(now) => {
            let lease = LeaseRecord { seq: Seq::LAST, ..lease.clone() };
            Decision::write(Record { lease: Some(lease), ..record.clone() }, Applied::Revoked)
        }
        Some(_) | None => Decision::conflict(record, now),
    }
}

/// The answer to a renewal of a record that has counted so many tells.
pub fn renewed(told: u64) -> Applied {
    if told == 0 { Applied::Renewed } else { Applied::RenewedTold { told } }
}

fn tell(record: Option<&Record>, op: &Tell, now: &StoreNow) -> Decision {
    match lease_of(record, &op.nonce) {
        Some((record, lease)) if !lease.released && !lease.ran_out(now) => {
            let lease = LeaseRecord { told: lease.told.wrapping_add(1), ..lease.clone() };
            Decision::write(Record { lease: Some(lease), ..record.clone() }, Applied::Told)
        }
        Some(_) | None => Decision::conflict(record, now),
    }
}

fn raise(record: Option<&Record>, op: &Raise, now: &StoreNow) -> Decision {
    match lease_of(record, &op.nonce) {
        Some((record, lease)) if !lease.released && !lease.ran_out(now) => {
            let counter = record.counter.max(op.token);
            Decision::write(Record { counter, ..record.clone() }, Applied::Raised { counter })
        }
        Some(_) | None => Decision::conflict(record, now),
    }
}

fn lease_of<'a>(record: Option<&'a Record>, nonce: &Nonce) -> Option<(&'a Record, &'a LeaseRecord)> {
    let record = record?;
    record.lease.as_ref().filter(|lease| lease.nonce == *nonce).map(|lease| (record, lease))
}

impl LeaseRecord {
    fn version(&self) -> Version {
        Version::of(&self.nonce, self.seq)
    }

    /// Returns true if the record is certainly over. A record of another boot never is: its uptime means nothing here, so
    /// observers wait it out.
    fn ran_out(&self, now: &StoreNow) -> bool {
        self.boot == now.boot && now.uptime >= self.expires
    }

    fn is_dishonest(&self, now: &StoreNow) -> bool {
        self.record_ttl > MAX_RECORD_TTL
            || (self.boot == now.boot && !self.released && self.expires.since(now.uptime) > MAX_RECORD_TTL)
    }
}

impl CompletionRecord {
    fn shown(&self, now: &StoreNow) -> Box<Completion> {
        Box::new(Completion {
            token: self.token,
            owner: self.owner.clone(),
            at_unix_ms: self.at_unix_ms,
            left: Duration::from_millis(self.until_unix_ms.saturating_sub(now.unix_ms)),
            // A record that another attempt has left belongs to another completion.
            about: self.about.clone().filter(|about| about.nonce() == self.nonce),
            unsettled: false,
        })
    }

    fn is_dishonest(&self) -> bool {
        Duration::from_millis(self.until_unix_ms.saturating_sub(self.at_unix_ms)) > MAX_KEEP
    }
}
