//! One node of a quorum: the reference [`store`](crate::store) behind a memory that may be in doubt.

use crate::member::{Answer, CounterTrust, Durability, LossId, Marker, Membership, Phase, QuorumId, RunId, admit};
use crate::op::{Applied, Denial, DenialKind, Op, Outcome, Refusal, Release, Renew};
use crate::quorum::Trust;
use crate::store::{Record, StoreNow, apply};

/// The memory of a node beside its records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct NodeMemory<'a> {
    /// Its membership.
    pub marker: Option<&'a Marker>,
    /// The loss since which the counter of this resource was raised.
    pub trusted: Option<&'a LossId>,
    /// The server's run now; `None` for a store that has none.
    pub run: Option<&'a RunId>,
}

/// The decision of [`serve`]; all of it is written at once.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Served {
    /// The record to write; `None` leaves it as it is.
    pub record: Option<Record>,
    /// The marker to write.
    pub marker: Option<Marker>,
    /// The loss to write beside the resource: since then its counter is trusted.
    pub trusted: Option<LossId>,
    /// The answer.
    pub outcome: Outcome,
}

impl Served {
    fn only(outcome: Outcome) -> Self {
        Self { record: None, marker: None, trusted: None, outcome }
    }
}

impl Op {
    /// Returns true if two clients may write the very same record with it, each for a reason of its own. A store that finds such a
    /// record in place of its own write must not take it for that.
    pub const fn is_written_alike(&self) -> bool {
        matches!(self, Self::Tell(_))
    }

    /// Returns true if [`serve`] needs the membership of the node.
    pub fn asks_a_quorum(&self) -> bool {
        match self {
            Self::Acquire(acquire) => acquire.member.is_some(),
            Self::Renew(renew) => renew.quorum.is_some(),
            Self::Release(release) => release.quorum.is_some(),
            Self::Finish(finish) => finish.quorum.is_some(),
            Self::Raise(_) => true,
            Self::Revoke(_) | Self::Tell(_) | Self::Read => false,
        }
    }
}

/// Carries out one operation at one node, atomically. Operations that name no quorum are those of a single store.
pub fn serve(record: Option<&Record>, memory: NodeMemory<'_>, op: &Op, now: &StoreNow) -> Served {
    match op {
        Op::Acquire(acquire) => match &acquire.member {
            Some(asked) => vote(record, memory, op, asked, now),
            None => plain(record, op, now),
        },
        Op::Renew(Renew { quorum, .. }) | Op::Release(Release { quorum, .. }) => {
            missing_or_forgotten(plain(record, op, now), memory, *quorum)
        }
        Op::Finish(finish) => missing_or_forgotten(plain(record, op, now), memory, finish.quorum),
        Op::Raise(raise) => {
            let served = plain(record, op, now);
            let raised = matches!(served.outcome, Outcome::Applied(Applied::Raised { .. }));
            let is_meant = |marker: &&Marker| {
                raised && matches!(marker.phase, Phase::Rejoined { .. }) && raise.loss == Some(marker.stamp)
            };
            Served { trusted: memory.marker.filter(is_meant).map(|marker| marker.stamp), ..served }
        }
        Op::Revoke(_) | Op::Tell(_) | Op::Read => plain(record, op, now),
    }
}

impl NodeMemory<'_> {
    /// Returns true if a missing record may have been forgotten; the node votes for nobody then. A record in its place may
    /// be older: the node may be a replica that never got the missing one.
    pub fn is_in_doubt(&self, durability: Durability) -> bool {
        let Some(marker) = self.marker else { return true };
        let restarted = durability == Durability::NotDeclared && marker.is_of_another_run(self.run);
        marker.phase == Phase::Joining || restarted
    }
}

/// Tells a record that is missing from one that the node may have forgotten.
fn missing_or_forgotten(served: Served, memory: NodeMemory<'_>, quorum: Option<Durability>) -> Served {
    match (quorum, &served.outcome) {
        (Some(durability), Outcome::NotApplied(Refusal::Conflict(_))) if memory.is_in_doubt(durability) => {
            Served::only(Outcome::NotApplied(Refusal::Abstains { stamp: None }))
        }
        _ => served,
    }
}

fn plain(record: Option<&Record>, op: &Op, now: &StoreNow) -> Served {
    let decision = apply(record, op, now);
    Served { record: decision.write, marker: None, trusted: None, outcome: decision.outcome }
}

/// Trust in completions is trust in all that the node remembers: a counter that was raised after a loss says nothing of completions.
fn vote(record: Option<&Record>, memory: NodeMemory<'_>, op: &Op, asked: &Membership, now: &StoreNow) -> Served {
    let asked = &Membership { fresh: asked.fresh.found_at(now.unix_ms), ..asked.clone() };
    let admission = admit(memory.marker, asked, memory.run, now.unix_ms);
    let counters = match admission.answer {
        Answer::Votes(counters) => counters,
        Answer::Abstains(stamp) => {
            let refusal = Refusal::Abstains { stamp: Some(stamp) };
            return Served { marker: admission.write, ..Served::only(Outcome::NotApplied(refusal)) };
        }
        Answer::WrongQuorum { quorum, max_ttl_ms } => {
            let denial = wrong_quorum((asked.quorum, asked.max_ttl_ms), Some((quorum, max_ttl_ms)));
            return Served::only(Outcome::NotApplied(Refusal::Denied(denial)));
        }
    };
    let mut served = Served { marker: admission.write, ..plain(record, op, now) };
    let raised = memory.trusted.filter(|_| !matches!(op, Op::Acquire(acquire) if acquire.unless_done));
    if let (CounterTrust::ByResource(stamp), Trust::Doubtful) = (counters, counters.trust(raised)) {
        served.outcome = in_doubt(served.outcome, stamp);
    }
    served
}

/// The same answer from a node whose counter of the resource is in doubt since this loss: a grant comes with a warning, a
/// conflict without the counter; other answers stay as they are.
pub fn in_doubt(outcome: Outcome, stamp: LossId) -> Outcome {
    match outcome {
        Outcome::Applied(Applied::Acquired { counter }) => {
            Outcome::Applied(Applied::AcquiredInDoubt { counter, stamp })
        }
        Outcome::NotApplied(Refusal::Conflict(mut seen)) => {
            if let Some(holding) = &mut seen.holding {
                holding.counter = None;
            }
            Outcome::NotApplied(Refusal::Conflict(seen))
        }
        other @ (Outcome::Applied(_) | Outcome::NotApplied(_) | Outcome::Unknown(_)) => other,
    }
}

/// The refusal of a node of another quorum, with advice. `theirs` is the quorum and the `max_ttl` in milliseconds of its
/// marker; `None` if this version cannot read it.
pub fn wrong_quorum(ours: (QuorumId, u64), theirs: Option<(QuorumId, u64)>) -> Denial {
    let detail = match theirs {
        Some((quorum, max_ttl_ms)) if quorum == ours.0 => alloc::format!(
            "this node's quorum has a max_ttl of {max_ttl_ms} ms, but this client has one of {} ms: give all clients \
             the same max_ttl, because a node that has lost its data abstains for that long",
            ours.1
        ),
        Some((quorum, _)) => alloc::format!(
            "this node belongs to the quorum {quorum}, but this client uses the quorum {}, and the two could grant the \
             same lock. Give all clients the same list of nodes; after a change of nodes, mark them again with \
             `leasehold quorum init --force` while nobody holds a lock",
            ours.0
        ),
        None => {
            "this node's membership record has a format that this version does not know; update leasehold, or mark its \
             nodes again with `leasehold quorum init --force` while nobody holds a lock"
                .into()
        }
    };
    Denial::new(DenialKind::Membership, &detail)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::{Nonce, Owner, Seq, Token};
    use crate::member::tests::asked;
    use crate::op::{Acquire, Raise};
    use alloc::boxed::Box;
    use core::time::Duration;

    const NONCE: Nonce = Nonce::from_bytes([7; 16]);
    const TTL: Duration = Duration::from_secs(30);

    fn acquire(member: Option<Membership>) -> Op {
        Op::Acquire(Box::new(Acquire {
            owner: Owner::new("worker").unwrap(),
            member,
            ..Acquire::new(NONCE, Seq::new(1), TTL)
        }))
    }

    fn renew(quorum: Option<Durability>) -> Op {
        Op::Renew(Renew { nonce: NONCE, seq: Seq::new(2), record_ttl: TTL, quorum })
    }

    fn release(quorum: Option<Durability>) -> Op {
        Op::Release(Release { nonce: NONCE, quorum })
    }

    #[test]
    fn only_operations_of_a_quorum_need_the_membership() {
        let raise = Op::Raise(Raise { nonce: NONCE, token: Token::ZERO, loss: None });
        let doubted = Some(Durability::NotDeclared);
        for asks in [acquire(Some(asked())), renew(doubted), release(doubted), raise] {
            assert!(asks.asks_a_quorum(), "{asks:?}");
        }
        for asks_not in [acquire(None), renew(None), release(None), Op::Read] {
            assert!(!asks_not.asks_a_quorum(), "{asks_not:?}");
        }
    }
}
