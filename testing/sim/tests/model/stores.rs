//! One store, of three kinds, and the mistakes that a store can be given on purpose.

use std::collections::BTreeMap;
use std::time::Duration;

use leasehold_core::op::{Acquire, Applied, Completion, Holder, Holding, Op, Outcome, Refusal, Release, Renew, Seen};
use leasehold_core::store::{BootId, LeaseRecord, Record, StoreNow, apply};
use leasehold_core::{Monotonic, Nonce, Owner, Resource, Seq, Token, Version};
use leasehold_sim::clock::TrueTime;

use crate::host::LOCK;
use crate::world::{KEEP, WALL_MS};

/// The kind of store between the two clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Kind {
    /// Expires records by one clock; keeps send numbers, and the names of released attempts.
    Reference,
    /// Expires records by one clock, and keeps nothing else of an attempt: a resend lengthens, a release deletes.
    Redis,
    /// Expires nothing: who waits must watch a record stand still.
    Observed,
    /// The same, and the clients renew their sessions in the place of their locks.
    Sessions,
}

/// A mistake of the store, which the search has to find.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Bug {
    /// Grants everything.
    GrantsWhatIsHeld,
    /// Grants an attempt that has, or had, a record here once more.
    GrantsTwice,
    /// Lets an observer take over any record.
    TakesOverUncompared,
    /// Lets records run out after nine tenths of their time.
    ExpiresEarly,
    /// Frees the record for any client.
    ReleasesForAnyone,
    /// Renews the record for any client.
    RenewsForAnyone,
    /// Writes a record again for a renewal that finds none.
    RenewsWhatIsGone,
    /// Lets a delayed renewal undo a newer one.
    RenewsOutOfOrder,
    /// Counts tokens from zero again after a release.
    ForgetsTokens,
    /// Writes the completion of a run for any client.
    FinishesForAnyone,
    /// Takes another run's completion for that of the run that finishes.
    TakesAnyCompletionForOwn,
    /// Takes the completion of a run that finishes for another's.
    TakesOwnCompletionForAnothers,
    /// Grants a run although a completion stands.
    GrantsWhatIsDone,
    /// Deletes the record of a lease that is revoked.
    FreesWhatIsRevoked,
}

/// One resource in one store.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Store {
    Records(Option<Record>),
    /// By the names of the resources: the lock, and the sessions.
    Rows(BTreeMap<String, Record>),
    Redis {
        value: Option<Value>,
        counter: Token,
        completion: Option<Nonce>,
    },
}

/// The value under a key of Redis.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Value {
    nonce: Nonce,
    expires: TrueTime,
    revoked: bool,
}

/// The kernel that asks, and the one that all records of an observed store seem to come from.
const HERE: BootId = BootId([0; 16]);
const ELSEWHERE: BootId = BootId([1; 16]);

fn store_now(at: TrueTime) -> StoreNow {
    StoreNow { boot: HERE, uptime: Monotonic::from_ns(at.0), unix_ms: WALL_MS }
}

impl Store {
    pub(crate) fn new(kind: Kind) -> Self {
        match kind {
            Kind::Reference | Kind::Observed => Self::Records(None),
            Kind::Sessions => Self::Rows(BTreeMap::new()),
            Kind::Redis => Self::Redis { value: None, counter: Token::ZERO, completion: None },
        }
    }

    /// The attempt whose record stands at that instant.
    pub(crate) fn holder(&self, at: TrueTime) -> Option<Nonce> {
        match self {
            Self::Rows(rows) => {
                let stands = |name: &str| rows.get(name)?.lease.as_ref().filter(|lease| !lease.released);
                let lease = stands(LOCK)?;
                // It stands and falls with its session.
                let session = lease.session.as_ref()?;
                let record = stands(leasehold_core::session::resource_of(&session.label)?.as_str())?;
                (record.nonce == session.nonce).then_some(lease.nonce)
            }
            Self::Records(record) => {
                let lease = record.as_ref()?.lease.as_ref().filter(|lease| !lease.released)?;
                (lease.boot == ELSEWHERE || lease.expires.ns() > at.0).then_some(lease.nonce)
            }
            Self::Redis { value, .. } => value.filter(|value| value.expires > at).map(|value| value.nonce),
        }
    }

    /// The attempt whose record stands here or ran out here, unless it was released.
    pub(crate) fn last(&self) -> Option<Nonce> {
        self.holder(TrueTime(0))
    }

    /// The attempt whose completion says that the work is done. Completions never end here, since wall clocks stand still.
    pub(crate) fn done_by(&self) -> Option<Nonce> {
        match self {
            Self::Rows(rows) => rows.get(LOCK)?.completion.as_ref().map(|completion| completion.nonce),
            Self::Records(record) => record.as_ref()?.completion.as_ref().map(|completion| completion.nonce),
            Self::Redis { completion, .. } => *completion,
        }
    }

    /// The time when the record runs out by itself.
    pub(crate) fn expires(&self) -> Option<TrueTime> {
        match self {
            Self::Rows(_) => None,
            Self::Records(record) => {
                let lease = record.as_ref()?.lease.as_ref()?;
                (lease.boot == HERE && !lease.released).then_some(TrueTime(lease.expires.ns()))
            }
            Self::Redis { value, .. } => value.map(|value| value.expires),
        }
    }

    pub(crate) fn perform(
        &mut self,
        resource: &Resource,
        op: &Op,
        at: TrueTime,
        kind: Kind,
        bug: Option<Bug>,
    ) -> Outcome {
        match self {
            Self::Rows(rows) => {
                let mut record = rows.remove(resource.as_str());
                let outcome = on_records(&mut record, op, at, kind, bug);
                rows.extend(record.map(|record| (resource.as_str().to_owned(), record)));
                outcome
            }
            Self::Records(record) => on_records(record, op, at, kind, bug),
            Self::Redis { value, counter, completion } => on_redis(value, counter, completion, op, at, bug),
        }
    }
}

fn on_records(record: &mut Option<Record>, op: &Op, at: TrueTime, kind: Kind, bug: Option<Bug>) -> Outcome {
    let now = store_now(at);
    let mut op = op.clone();
    let mut before = record.clone();
    if let Some(bug) = bug {
        mistake(bug, &mut before, &mut op, &now);
    }
    let decision = apply(before.as_ref(), &op, &now);
    if let Some(mut written) = decision.write {
        if let Some(lease) = written.lease.as_mut().filter(|_| matches!(kind, Kind::Observed | Kind::Sessions)) {
            lease.boot = ELSEWHERE;
        }
        if let (Some(Bug::FreesWhatIsRevoked), Op::Revoke(_), Some(lease)) = (bug, &op, written.lease.as_mut()) {
            lease.released = true;
        }
        if bug == Some(Bug::ForgetsTokens) && matches!(op, Op::Release(_)) {
            written.counter = Token::ZERO;
        }
        *record = Some(written);
    }
    decision.outcome
}

/// Shows the store another record, or another operation, than there is.
fn mistake(bug: Bug, record: &mut Option<Record>, op: &mut Op, now: &StoreNow) {
    if record.as_ref().is_none_or(|record| record.lease.is_none()) {
        if let (Bug::ExpiresEarly, Op::Acquire(op)) = (bug, op) {
            op.record_ttl = op.record_ttl * 9 / 10;
        }
        return;
    }
    let completion = record.as_mut().and_then(|record| record.completion.as_mut());
    match (bug, &*op, completion) {
        (Bug::TakesAnyCompletionForOwn, Op::Finish(op), Some(completion)) => completion.nonce = op.nonce,
        (Bug::TakesOwnCompletionForAnothers, Op::Finish(_), Some(completion)) => {
            completion.nonce = Nonce::from_bytes([0xff; 16])
        }
        (Bug::GrantsWhatIsDone, Op::Acquire(_), Some(completion)) => completion.until_unix_ms = completion.at_unix_ms,
        _ => {}
    }
    let Some(Record { counter, lease: Some(lease), .. }) = record.as_mut() else { return };
    match (bug, op) {
        (Bug::FinishesForAnyone, Op::Finish(op)) => {
            (lease.nonce, lease.released, op.counter) = (op.nonce, false, *counter);
            lease.expires = Monotonic::FAR.min(now.uptime.plus(lease.record_ttl));
        }
        (Bug::GrantsWhatIsHeld, Op::Acquire(op)) if lease.nonce != op.nonce => lease.released = true,
        (Bug::GrantsTwice, Op::Acquire(op)) if lease.nonce == op.nonce => {
            *lease = LeaseRecord { nonce: Nonce::from_bytes([0xff; 16]), released: true, ..lease.clone() };
        }
        (Bug::TakesOverUncompared, Op::Acquire(op)) if op.expect.is_some() => {
            op.expect = Some(Version::of(&lease.nonce, lease.seq));
        }
        (Bug::ExpiresEarly, Op::Acquire(op)) => op.record_ttl = op.record_ttl * 9 / 10,
        (Bug::ExpiresEarly, Op::Renew(op)) => {
            op.record_ttl = op.record_ttl * 9 / 10;
            // The reference store never shortens, so the mistake has to begin with the grant.
            lease.expires = lease.expires.min(now.uptime.plus(op.record_ttl));
        }
        (Bug::ReleasesForAnyone, Op::Release(op)) => op.nonce = lease.nonce,
        (Bug::RenewsForAnyone, Op::Renew(op)) => op.nonce = lease.nonce,
        (Bug::RenewsWhatIsGone, Op::Renew(op)) if lease.nonce == op.nonce => {
            lease.released = false;
            lease.expires = Monotonic::FAR.min(now.uptime.plus(op.record_ttl));
        }
        (Bug::RenewsOutOfOrder, Op::Renew(op)) if lease.nonce == op.nonce => {
            lease.seq = Seq::new(op.seq.get() - 1);
        }
        _ => {}
    }
}

fn on_redis(
    value: &mut Option<Value>,
    counter: &mut Token,
    completion: &mut Option<Nonce>,
    op: &Op,
    at: TrueTime,
    bug: Option<Bug>,
) -> Outcome {
    *value = value.filter(|value| value.expires > at);
    let seen = seen(value.as_ref(), *counter, at);
    let is = |nonce: &Nonce| value.is_some_and(|value| value.nonce == *nonce);
    let is_renewed = |nonce: &Nonce| value.is_some_and(|value| value.nonce == *nonce && !value.revoked);
    let until = |ttl: Duration| {
        let early = bug == Some(Bug::ExpiresEarly);
        at.plus(if early { ttl * 9 / 10 } else { ttl })
    };
    match op {
        Op::Acquire(op) if op.unless_done && completion.is_some() && bug != Some(Bug::GrantsWhatIsDone) => {
            Outcome::NotApplied(Refusal::Done(Box::new(done())))
        }
        Op::Acquire(op) => {
            let Acquire { nonce, record_ttl, floor, .. } = **op;
            if is_renewed(&nonce) {
                lengthen(value, until(record_ttl));
            } else if value.is_none() || bug == Some(Bug::GrantsWhatIsHeld) {
                *value = Some(Value { nonce, expires: until(record_ttl), revoked: false });
                *counter = counter.next().expect("far from the last token").max(floor);
            } else {
                return Outcome::NotApplied(Refusal::Conflict(seen));
            }
            Outcome::Applied(Applied::Acquired { counter: *counter })
        }
        Op::Renew(Renew { nonce, record_ttl, .. }) if is_renewed(nonce) || bug == Some(Bug::RenewsForAnyone) => {
            lengthen(value, until(*record_ttl));
            Outcome::Applied(Applied::Renewed)
        }
        Op::Renew(Renew { nonce, record_ttl, .. }) if bug == Some(Bug::RenewsWhatIsGone) && value.is_none() => {
            *value = Some(Value { nonce: *nonce, expires: until(*record_ttl), revoked: false });
            Outcome::Applied(Applied::Renewed)
        }
        Op::Release(Release { nonce, .. }) if is(nonce) || bug == Some(Bug::ReleasesForAnyone) => {
            *value = None;
            if bug == Some(Bug::ForgetsTokens) {
                *counter = Token::ZERO;
            }
            Outcome::Applied(Applied::Released)
        }
        Op::Finish(finish)
            if (is(&finish.nonce) && finish.counter == *counter) || bug == Some(Bug::FinishesForAnyone) =>
        {
            (*value, *completion) = (None, Some(finish.nonce));
            Outcome::Applied(Applied::Finished)
        }
        Op::Finish(finish)
            if (*completion == Some(finish.nonce) && bug != Some(Bug::TakesOwnCompletionForAnothers))
                || (completion.is_some() && bug == Some(Bug::TakesAnyCompletionForOwn)) =>
        {
            Outcome::Applied(Applied::Finished)
        }
        Op::Revoke(revoke) if is(&revoke.nonce) => {
            *value =
                value.map(|value| Value { revoked: true, ..value }).filter(|_| bug != Some(Bug::FreesWhatIsRevoked));
            Outcome::Applied(Applied::Revoked)
        }
        Op::Raise(raise) if is(&raise.nonce) => {
            *counter = raise.token.max(*counter);
            Outcome::Applied(Applied::Raised { counter: *counter })
        }
        Op::Renew(_) | Op::Release(_) | Op::Finish(_) | Op::Revoke(_) | Op::Tell(_) | Op::Raise(_) => {
            Outcome::NotApplied(Refusal::Conflict(seen))
        }
        Op::Read => Outcome::Applied(Applied::Read(Seen { done: completion.map(|_| Box::new(done())), ..seen })),
    }
}

/// A mark as it is shown; no client looks at the rest of it.
fn done() -> Completion {
    let (token, owner) = (Token::MAX, Owner::default());
    Completion { token, owner, at_unix_ms: WALL_MS, left: KEEP, about: None, unsettled: false }
}

fn lengthen(value: &mut Option<Value>, until: TrueTime) {
    if let Some(value) = value {
        value.expires = value.expires.max(until);
    }
}

fn seen(value: Option<&Value>, counter: Token, at: TrueTime) -> Seen {
    let holding = value.map(|value| {
        Box::new(Holding {
            holder: Holder::Lease { nonce: value.nonce, seq: value.revoked.then_some(Seq::LAST) },
            version: Version::of(&value.nonce, Seq::new(0)),
            released: false,
            counter: Some(counter),
            owner: None,
            record_ttl: None,
            left: Some(value.expires.since(at)),
            since_unix_ms: None,
            data: None,
            session: None,
            told: 0,
        })
    });
    Seen { holding, done: None }
}
