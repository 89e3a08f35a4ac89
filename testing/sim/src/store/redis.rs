//! One Redis: two keys for each resource, both with an expiry by the server's wall clock, and scripts that run alone.

use std::collections::BTreeMap;
use std::time::Duration;

use leasehold_core::member::RunId;
use leasehold_core::node::{NodeMemory, in_doubt};
use leasehold_core::op::{
    Acquire, Applied, Completion, Finish, Holder, Holding, Op, Outcome, Refusal, Release, Renew, Seen,
};
use leasehold_core::queue::Reserved;
use leasehold_core::session::none_is_told;
use leasehold_core::{About, Nonce, Owner, Resource, Seq, Token, Version};

use crate::clock::{Clock, TrueTime};
use crate::store::member::{MemberState, Vote};
use crate::store::queue::Queues;
use crate::store::{
    Answer, Ask, By, Mark, NS_PER_MS, StoredRecord, Ticket, applied, conflict, exhausted, run_id, whole_ms,
};

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Redis {
    pub(super) locks: BTreeMap<Resource, Lock>,
    fences: BTreeMap<Resource, Fence>,
    dones: BTreeMap<Resource, Done>,
    pub(super) queues: Queues,
    pub(super) member: MemberState,
    retention_ms: Option<u64>,
}

/// The lock key: the value is all there is, so no send number and no length of lease.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Lock {
    pub(super) value: Value,
    pub(super) expires_ms: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Value {
    Ours {
        nonce: Nonce,
        owner: Owner,
        revoked: bool,
    },
    Foreign(Mark),
    /// The lock belongs to the next in the queue, who was told so.
    Reserved(Ticket),
}

/// The fence key.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Fence {
    counter: Token,
    /// `None` keeps it for good.
    expires_ms: Option<u64>,
}

/// The key with the completion of finished work.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Done {
    nonce: Nonce,
    token: Token,
    owner: Owner,
    /// By the wall clock of the client that finished.
    at_unix_ms: u64,
    expires_ms: u64,
    about: Option<About>,
}

impl Value {
    pub(super) fn version(&self) -> Option<Version> {
        match self {
            Self::Ours { nonce, .. } => Version::new(nonce.as_bytes()),
            Self::Foreign(mark) => mark.version(),
            Self::Reserved(_) => None,
        }
    }
}

/// A counter below it was lost and counted up since: microseconds of a clock have 16 digits.
const YOUNGEST_CLOCK: u64 = 1_000_000_000_000_000;

/// How long a lock is reserved for the next in the queue.
const GRACE: Duration = Duration::from_millis(500);

/// The real server waits for the millisecond after; the earlier is the harder for holders.
const fn is_over(expires_ms: u64, now_ms: u64) -> bool {
    now_ms >= expires_ms
}

impl Redis {
    pub(super) fn new(retention: Duration) -> Self {
        let retention_ms = (retention < Duration::MAX).then(|| whole_ms(retention));
        Self {
            locks: BTreeMap::new(),
            fences: BTreeMap::new(),
            dones: BTreeMap::new(),
            queues: Queues::default(),
            member: MemberState::default(),
            retention_ms,
        }
    }

    pub(super) fn ask(&mut self, ask: &Ask<'_>, now_ms: u64, run: u32) -> Answer {
        let resource = ask.resource;
        self.expire(resource, now_ms);
        match ask.op {
            Op::Acquire(op) => match &op.member {
                Some(asked) => match self.member.vote(asked, &run_id(run), resource, op.unless_done, now_ms) {
                    Vote::Counts(None) => self.acquire(resource, op, now_ms),
                    Vote::Counts(Some(loss)) => match self.acquire(resource, op, now_ms) {
                        Answer::Done(outcome) => Answer::Done(in_doubt(outcome, loss)),
                        Answer::Again(form) => Answer::Again(form),
                    },
                    Vote::Refused(outcome) => Answer::Done(outcome),
                },
                None => self.acquire_in_queue(resource, op, ask.ticket, now_ms),
            },
            Op::Renew(op) if self.is_of(resource, &op.nonce) && !self.is_revoked(resource) => {
                self.lengthen(resource, now_ms, op.record_ttl);
                self.refresh(resource, now_ms);
                applied(Applied::Renewed)
            }
            Op::Release(op) if self.is_of(resource, &op.nonce) => {
                // Nothing shows afterwards that this attempt was here: a delayed acquire of it finds a free lock.
                // The counter is kept no longer for it.
                self.locks.remove(resource);
                let next = self.queues.pass_on(resource, now_ms).flatten();
                self.reserve(resource, next, now_ms);
                applied(Applied::Released)
            }
            // Of what the script writes the mark is all that counts: before it, nothing has happened.
            Op::Finish(op) if self.is_of(resource, &op.nonce) && self.counter(resource, now_ms) == Some(op.counter) => {
                self.finish(resource, op, ask.caller.unix_ms, now_ms);
                applied(Applied::Finished)
            }
            Op::Finish(op) if self.dones.get(resource).is_some_and(|done| done.nonce == op.nonce) => {
                self.keep(resource, op, now_ms);
                applied(Applied::Finished)
            }
            Op::Revoke(op) if self.is_of(resource, &op.nonce) => {
                self.revoke(resource);
                applied(Applied::Revoked)
            }
            Op::Raise(op) if self.is_of(resource, &op.nonce) && !self.is_revoked(resource) => {
                let counter = self.counter(resource, now_ms).map_or(op.token, |counter| counter.max(op.token));
                self.count(resource, counter, now_ms);
                self.member.raised(
                    resource,
                    op.loss,
                    self.retention_ms.map(|retention_ms| now_ms.saturating_add(retention_ms)),
                );
                applied(Applied::Raised { counter })
            }
            Op::Renew(Renew { quorum: Some(durability), .. })
            | Op::Release(Release { quorum: Some(durability), .. })
                if self.remembers(&run_id(run)).is_in_doubt(*durability) =>
            {
                self.refresh(resource, now_ms);
                Answer::Done(Outcome::NotApplied(Refusal::Abstains { stamp: None }))
            }
            Op::Finish(op) => {
                self.keep(resource, op, now_ms);
                let doubts = op.quorum.is_some_and(|durability| self.remembers(&run_id(run)).is_in_doubt(durability));
                match doubts {
                    true => Answer::Done(Outcome::NotApplied(Refusal::Abstains { stamp: None })),
                    false => conflict(self.seen_by(resource, op.nonce, now_ms)),
                }
            }
            Op::Renew(Renew { nonce, .. }) | Op::Release(Release { nonce, .. }) => {
                // The scripts always write, so that a read-only replica cannot answer.
                self.refresh(resource, now_ms);
                conflict(self.seen_by(resource, *nonce, now_ms))
            }
            Op::Revoke(_) => {
                self.refresh(resource, now_ms);
                conflict(self.seen(resource, now_ms))
            }
            Op::Raise(_) => conflict(self.seen(resource, now_ms)),
            Op::Tell(_) => Answer::Done(Outcome::NotApplied(Refusal::Denied(none_is_told()))),
            Op::Read => {
                let done = self.done(resource, now_ms).filter(|_| resource.may_be_of_run());
                applied(Applied::Read(Seen { done, ..self.seen(resource, now_ms) }))
            }
        }
    }

    /// The node's membership, for an answer about a missing record.
    const fn remembers<'a>(&'a self, run: &'a RunId) -> NodeMemory<'a> {
        NodeMemory { marker: self.member.marker.as_ref(), trusted: None, run: Some(run) }
    }

    /// The acquire of a waiter: it takes what is reserved for it, serves the queue before it takes a free lock, and joins the
    /// queue where it is refused.
    fn acquire_in_queue(&mut self, resource: &Resource, op: &Acquire, ticket: Option<Ticket>, now_ms: u64) -> Answer {
        let Some(ticket) = ticket.filter(|_| op.in_queue) else { return self.acquire(resource, op, now_ms) };
        match self.locks.get(resource).map(|lock| &lock.value) {
            None if self.queues.open_before(resource, ticket, now_ms).is_some() => {
                self.queues.join(resource, ticket);
                return conflict(Seen::default());
            }
            None => self.free(resource, Some(ticket), now_ms),
            Some(Value::Reserved(next)) if *next == ticket => drop(self.locks.remove(resource)),
            Some(_) => {}
        }
        let answer = self.acquire(resource, op, now_ms);
        if matches!(answer, Answer::Done(Outcome::NotApplied(Refusal::Conflict(_)))) {
            self.queues.join(resource, ticket);
        }
        answer
    }

    /// Frees the lock, or reserves it for the first in the queue who is alive. The turn of who asks needs no message.
    fn free(&mut self, resource: &Resource, asks: Option<Ticket>, now_ms: u64) {
        self.locks.remove(resource);
        let next = self.queues.serve(resource, asks);
        self.reserve(resource, next, now_ms);
    }

    fn reserve(&mut self, resource: &Resource, next: Option<Ticket>, now_ms: u64) {
        if let Some(next) = next {
            self.set(resource, Value::Reserved(next), now_ms, GRACE);
        }
    }

    pub(super) fn leave(&mut self, resource: &Resource, ticket: Ticket, now_ms: u64) {
        self.expire(resource, now_ms);
        self.queues.leave(resource, ticket);
        if self.locks.get(resource).is_some_and(|lock| lock.value == Value::Reserved(ticket)) {
            self.free(resource, None, now_ms);
        }
    }

    pub(super) fn reserved_before(&self, resource: &Resource, ticket: Ticket, now_ms: u64) -> Option<Reserved> {
        let at = self.queues.of(resource).iter().position(|other| *other == ticket)?;
        let left_ms = match self.locks.get(resource) {
            Some(lock) if self.reserved_for(resource, now_ms).is_some() => lock.expires_ms.saturating_sub(now_ms),
            Some(_) => return None,
            None => self.queues.open_left(resource, now_ms).filter(|_| at > 0)?,
        };
        let left = Duration::from_millis(left_ms);
        Some(Reserved { left, place: at as u64 + 1 })
    }

    pub(super) fn reserved_for(&self, resource: &Resource, now_ms: u64) -> Option<Ticket> {
        match self.locks.get(resource).filter(|lock| !is_over(lock.expires_ms, now_ms))?.value {
            Value::Reserved(ticket) => Some(ticket),
            Value::Ours { .. } | Value::Foreign(_) => None,
        }
    }

    fn acquire(&mut self, resource: &Resource, op: &Acquire, now_ms: u64) -> Answer {
        if let Some(done) = self.done(resource, now_ms).filter(|_| op.unless_done) {
            return Answer::Done(Outcome::NotApplied(Refusal::Done(done)));
        }
        let ours = self.is_of(resource, &op.nonce) && !self.is_revoked(resource);
        if !ours && self.locks.contains_key(resource) {
            return conflict(self.seen(resource, now_ms));
        }
        // A resend must not mint: the answer to the send before it may still arrive, with another token.
        let old = self.counter(resource, now_ms);
        let next = match old {
            Some(counter) if ours => counter,
            Some(counter) => {
                let Some(next) = counter.next() else { return Answer::Done(exhausted()) };
                next
            }
            None => Token::ZERO,
        };
        let mut counter = next.max(op.floor);
        if old.is_none_or(|old| old.get() < YOUNGEST_CLOCK) {
            // The server's own clock counts too, so that a forgotten counter is passed whatever the client sends.
            counter = counter.max(Token::new(now_ms.saturating_mul(1_000).max(1)).unwrap_or(Token::MAX));
        }
        if ours {
            self.lengthen(resource, now_ms, op.record_ttl);
        } else {
            let value = Value::Ours { nonce: op.nonce, owner: op.owner.clone(), revoked: false };
            self.set(resource, value, now_ms, op.record_ttl);
        }
        self.count(resource, counter, now_ms);
        applied(Applied::Acquired { counter })
    }

    pub(super) fn stored(&self, resource: &Resource, now_ms: u64, wall: &Clock) -> Option<StoredRecord> {
        let lock = self.locks.get(resource).filter(|lock| !is_over(lock.expires_ms, now_ms))?;
        let by = match &lock.value {
            Value::Ours { nonce, .. } => By::Attempt(*nonce),
            Value::Foreign(mark) => By::Foreign(mark.by),
            Value::Reserved(_) => return None,
        };
        Some(StoredRecord { by, until: Some(wall.when(lock.expires_ms.saturating_mul(NS_PER_MS))) })
    }

    pub(super) fn counter(&self, resource: &Resource, now_ms: u64) -> Option<Token> {
        let fence = self.fences.get(resource)?;
        fence.expires_ms.is_none_or(|expires_ms| !is_over(expires_ms, now_ms)).then_some(fence.counter)
    }

    pub(super) fn forgotten(&self, resource: &Resource, now_ms: u64, wall: &Clock) -> Option<TrueTime> {
        self.counter(resource, now_ms)?;
        let expires_ms = self.fences.get(resource)?.expires_ms?;
        Some(wall.when(expires_ms.saturating_mul(NS_PER_MS)))
    }

    pub(super) fn wipe(&mut self) {
        self.locks.clear();
        self.fences.clear();
        self.dones.clear();
        self.queues.wipe();
        self.member = MemberState::default();
    }

    pub(super) fn evict(&mut self, resource: &Resource) {
        self.locks.remove(resource);
    }

    /// Drops all records that have run out, so that the rest can be taken for live.
    pub(super) fn expire(&mut self, resource: &Resource, now_ms: u64) {
        if self.locks.get(resource).is_some_and(|lock| is_over(lock.expires_ms, now_ms)) {
            self.locks.remove(resource);
        }
        if self.counter(resource, now_ms).is_none() {
            self.fences.remove(resource);
        }
        if self.dones.get(resource).is_some_and(|done| is_over(done.expires_ms, now_ms)) {
            self.dones.remove(resource);
        }
    }

    pub(super) fn set(&mut self, resource: &Resource, value: Value, now_ms: u64, ttl: Duration) {
        let expires_ms = now_ms.saturating_add(whole_ms(ttl));
        self.locks.insert(resource.clone(), Lock { value, expires_ms });
    }

    /// An older send that arrives late must not undo a newer one's write.
    fn lengthen(&mut self, resource: &Resource, now_ms: u64, ttl: Duration) {
        if let Some(lock) = self.locks.get_mut(resource) {
            lock.expires_ms = lock.expires_ms.max(now_ms.saturating_add(whole_ms(ttl)));
        }
    }

    fn count(&mut self, resource: &Resource, counter: Token, now_ms: u64) {
        let expires_ms = self.retention_ms.map(|retention_ms| now_ms.saturating_add(retention_ms));
        self.fences.insert(resource.clone(), Fence { counter, expires_ms });
    }

    fn finish(&mut self, resource: &Resource, op: &Finish, at_unix_ms: u64, now_ms: u64) {
        let done = Done {
            about: op.about.clone(),
            nonce: op.nonce,
            token: op.token,
            owner: op.owner.clone(),
            at_unix_ms,
            expires_ms: now_ms.saturating_add(whole_ms(op.keep)),
        };
        self.dones.insert(resource.clone(), done);
        self.free(resource, None, now_ms);
        self.keep(resource, op, now_ms);
    }

    /// The counter outlives the mark.
    fn keep(&mut self, resource: &Resource, op: &Finish, now_ms: u64) {
        if let Some(counter) = self.counter(resource, now_ms) {
            let kept_ms = self.retention_ms.map(|retention_ms| retention_ms.max(whole_ms(op.keep)));
            let expires_ms = kept_ms.map(|kept_ms| now_ms.saturating_add(kept_ms));
            self.fences.insert(resource.clone(), Fence { counter, expires_ms });
        }
    }

    fn done(&self, resource: &Resource, now_ms: u64) -> Option<Box<Completion>> {
        let done = self.dones.get(resource).filter(|done| !is_over(done.expires_ms, now_ms))?;
        Some(Box::new(Completion {
            token: done.token,
            owner: done.owner.clone(),
            at_unix_ms: done.at_unix_ms,
            left: Duration::from_millis(done.expires_ms - now_ms),
            about: done.about.clone(),
            unsettled: false,
        }))
    }

    pub(super) fn done_by(&self, resource: &Resource, now_ms: u64) -> Option<Nonce> {
        self.dones.get(resource).filter(|done| !is_over(done.expires_ms, now_ms)).map(|done| done.nonce)
    }

    fn refresh(&mut self, resource: &Resource, now_ms: u64) {
        if let Some(counter) = self.counter(resource, now_ms) {
            self.count(resource, counter, now_ms);
        }
    }

    fn is_of(&self, resource: &Resource, theirs: &Nonce) -> bool {
        let value = self.locks.get(resource).map(|lock| &lock.value);
        matches!(value, Some(Value::Ours { nonce, .. }) if nonce == theirs)
    }

    fn is_revoked(&self, resource: &Resource) -> bool {
        let value = self.locks.get(resource).map(|lock| &lock.value);
        matches!(value, Some(Value::Ours { revoked: true, .. }))
    }

    /// Changes the value alone.
    fn revoke(&mut self, resource: &Resource) {
        if let Some(Value::Ours { revoked, .. }) = self.locks.get_mut(resource).map(|lock| &mut lock.value) {
            *revoked = true;
        }
    }

    /// The content as this attempt sees it, whose record is not there: a counter shows that its lease is over.
    fn seen_by(&self, resource: &Resource, nonce: Nonce, now_ms: u64) -> Seen {
        let seen = self.seen(resource, now_ms);
        let counter = self.counter(resource, now_ms).filter(|_| seen.holding.is_none());
        let Some((counter, version)) = counter.zip(Version::new(nonce.as_bytes())) else { return seen };
        let over = Holding::of(Holder::Lease { nonce, seq: None }, version);
        Seen { holding: Some(Box::new(Holding { released: true, counter: Some(counter), ..over })), done: None }
    }

    fn seen(&self, resource: &Resource, now_ms: u64) -> Seen {
        let holding = self.locks.get(resource).and_then(|lock| {
            // The counter is looked up for records of ours alone.
            let (holder, owner, counter) = match &lock.value {
                Value::Ours { nonce, owner, revoked } => {
                    let holder = Holder::Lease { nonce: *nonce, seq: revoked.then_some(Seq::LAST) };
                    (holder, Some(owner.clone()), self.counter(resource, now_ms))
                }
                Value::Foreign(_) => (Holder::Foreign, None, None),
                Value::Reserved(_) => return None,
            };
            Some(Box::new(Holding {
                holder,
                version: lock.value.version()?,
                released: false,
                counter,
                owner,
                record_ttl: None,
                left: Some(Duration::from_millis(lock.expires_ms - now_ms)),
                since_unix_ms: None,
                data: None,
                session: None,
                told: 0,
            }))
        });
        Seen { holding, done: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::tests::*;
    use crate::store::{BEGAN_UNIX_MS, ForeignAct, ForeignAnswer, Kind, Spec};

    fn bench() -> Bench {
        Bench::new(Kind::Redis)
    }

    #[test]
    fn resend_extends_and_mints_no_token() {
        let mut bench = bench();
        let first = bench.grant(1, 1);
        bench.pass(400);
        assert_eq!(bench.grant(1, 2), first);
        assert_eq!(bench.until(), Some(1_400));
        assert_eq!(bench.ask(&acquire_for(1, 3, 100)), granted(first));
        assert_eq!(bench.until(), Some(1_400), "a shorter resend shortens nothing");
        assert_eq!(bench.counter(), Some(first));
    }

    #[test]
    fn renewal_never_shortens_or_creates() {
        let mut bench = bench();
        bench.grant(1, 1);
        assert_eq!(bench.ask(&renew_for(1, 2, 300)), renewed());
        assert_eq!(bench.until(), Some(1_000));
        assert_eq!(bench.ask(&renew_for(1, 3, 5_000)), renewed());
        assert_eq!(bench.ask(&renew(1, 2)), renewed(), "an older send that comes late");
        assert_eq!(bench.until(), Some(5_000));
        bench.pass(5_000);
        let (_, _, released) = shown(&bench.ask(&renew(1, 4))).expect("the counter still stands");
        assert!(released);
        assert_eq!(bench.holder(), None);
    }

    #[test]
    fn record_expires_by_the_server_clock() {
        let spec = Spec { rate_ppm: 100_000, ..Spec::of(Kind::Redis) };
        let mut bench = Bench::with(&spec);
        bench.grant(1, 1);
        let until = bench.stored().and_then(|stored| stored.until);
        assert_eq!(until, Some(TrueTime(909_090_910)), "a clock that is a tenth too fast");
        bench.store.clock_mut().jump(TrueTime(0), 600_000_000);
        assert_eq!(bench.left(2), Some(Duration::from_millis(400)));
        bench.store.clock_mut().jump(TrueTime(0), 400_000_000);
        assert_eq!(bench.holder(), None);
        assert!(is_grant(&bench.ask(&acquire(2, 1))));
    }

    #[test]
    fn token_is_at_least_floor_and_server_time() {
        let behind = Spec { unix_offset_ms: -5_000, ..Spec::of(Kind::Redis) };
        assert_eq!(Bench::with(&behind).grant(1, 1).get(), (BEGAN_UNIX_MS - 5_000) * 1_000);
        let mut bench = bench();
        assert_eq!(bench.grant(1, 1).get(), BEGAN_UNIX_MS * 1_000, "a client whose floor is low");
        bench.ask(&release(1));
        let floor = token(BEGAN_UNIX_MS * 1_000 + 77);
        assert_eq!(bench.ask(&acquire_above(2, 1, floor)), granted(floor));
        bench.ask(&release(2));
        assert_eq!(bench.grant(3, 1).get(), floor.get() + 1);
    }

    #[test]
    fn forgotten_counter_is_below_the_server_time() {
        let spec = Spec { retention: Duration::from_secs(60), ..Spec::of(Kind::Redis) };
        let first = BEGAN_UNIX_MS * 1_000;
        for (op, outcome, kept_ms) in [
            (acquire(1, 2), granted(token(first)), 60_900),
            (renew(1, 2), renewed(), 60_900),
            (raise(1, first), raised(first), 60_900),
            (release(1), released(), 60_000),
        ] {
            let mut bench = Bench::with(&spec);
            assert_eq!(bench.grant(1, 1).get(), first);
            bench.pass(900);
            assert_eq!(bench.ask(&op), outcome);
            bench.pass(kept_ms - 901);
            assert_eq!(bench.counter(), Some(token(first)), "{op:?}");
            bench.pass(1);
            assert_eq!(bench.counter(), None, "{op:?}");
            assert_eq!(bench.grant(2, 1).get(), (BEGAN_UNIX_MS + kept_ms) * 1_000);
        }
    }

    #[test]
    fn tokens_fall_after_data_loss_with_a_clock_ahead() {
        let mut bench = bench();
        let high = token(BEGAN_UNIX_MS * 2_000);
        bench.ask(&acquire_above(1, 1, high));
        bench.store.wipe();
        assert!(bench.grant(2, 1) < high, "nothing is left that knows");
    }

    #[test]
    fn late_acquire_after_release_is_an_orphan() {
        let mut bench = bench();
        let first = bench.grant(1, 2);
        assert_eq!(bench.ask(&release(1)), released());
        let orphan = bench.grant(1, 1);
        assert!(orphan > first, "a grant of its own");
        assert_eq!(shown(&bench.ask(&acquire(2, 1))), Some((1, None, false)));
        bench.pass(1_000);
        assert!(bench.grant(2, 2) > orphan);
    }

    #[test]
    fn foreign_clients_and_ours_exclude_each_other() {
        let mut bench = bench();
        let mark = Mark { by: 7, count: 1 };
        let take = ForeignAct::AcquireNew { mark, ttl: Duration::from_millis(500) };
        assert_eq!(bench.foreign(&take), ForeignAnswer::Held(mark));
        let seen = holding(&bench.ask(&acquire(1, 1)));
        assert_eq!((seen.holder, seen.left), (Holder::Foreign, Some(Duration::from_millis(500))));
        assert_eq!((seen.owner, seen.counter), (None, None), "nobody of ours holds it");
        assert_eq!(bench.stored().map(|stored| stored.by), Some(By::Foreign(7)));
        assert!(bench.ask(&release(1)) != released() && bench.ask(&renew(1, 2)) != renewed());
        bench.pass(500);
        bench.grant(1, 3);
        assert_eq!(bench.foreign(&take), ForeignAnswer::Refused);
        let keep = ForeignAct::Heartbeat { mark, ttl: TTL };
        assert_eq!(bench.foreign(&keep), ForeignAnswer::Refused, "it has run out");
        assert_eq!(bench.foreign(&ForeignAct::ReleaseDelete { mark }), ForeignAnswer::Refused);
        assert_eq!(bench.holder(), Some(1));
        bench.ask(&release(1));
        bench.foreign(&take);
        assert_eq!(bench.foreign(&keep), ForeignAnswer::Held(mark));
        assert_eq!(bench.foreign(&ForeignAct::ReleaseDelete { mark }), ForeignAnswer::Released);
        assert!(bench.counter().is_some(), "our counter is a key of its own");
    }
}
