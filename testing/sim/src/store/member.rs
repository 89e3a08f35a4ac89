//! The state of a node beside its records: its quorum, and the resources that were raised since it last lost its
//! memory.

use std::collections::BTreeMap;

use leasehold_core::Resource;
use leasehold_core::member::{
    Admission, Answer as Admitted, Durability, LossId, Marker, Membership, Phase, RunId, admit,
};
use leasehold_core::op::{Denial, DenialKind, Outcome, Refusal};
use leasehold_core::quorum::Trust;

/// It is stored beside the locks, so it is lost along with them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct MemberState {
    pub(super) marker: Option<Marker>,
    pub(super) trust: BTreeMap<Resource, Raised>,
}

/// The trust entry of a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Raised {
    pub(super) since: LossId,
    /// `None` keeps it for good.
    pub(super) expires_ms: Option<u64>,
}

/// The decision about an acquire.
pub(super) enum Vote {
    /// It goes on to the lock; with a loss, if the counter is in doubt because of it.
    Counts(Option<LossId>),
    /// It ends here.
    Refused(Outcome),
}

impl MemberState {
    /// Decides the node's vote on an acquire, before the lock is looked at. Where the node is declared durable, the
    /// server does not look up its run. `marks` asks for trust in marks of finished work, which a raised counter does not
    /// bring.
    pub(super) fn vote(
        &mut self,
        asked: &Membership,
        run: &RunId,
        resource: &Resource,
        marks: bool,
        now_ms: u64,
    ) -> Vote {
        let asks = asked.durability == Durability::NotDeclared || self.marker.is_none();
        let asked = &Membership { fresh: asked.fresh.found_at(now_ms), ..asked.clone() };
        let Admission { write, answer } = admit(self.marker.as_ref(), asked, asks.then_some(run), now_ms);
        if let Some(marker) = write {
            self.marker = Some(marker);
        }
        match answer {
            Admitted::Votes(stored) => {
                let raised = self
                    .trust
                    .get(resource)
                    .filter(|_| !marks)
                    .filter(|raised| raised.expires_ms.is_none_or(|at| now_ms < at));
                let doubtful = stored.trust(raised.map(|raised| &raised.since)) == Trust::Doubtful;
                let loss = self.marker.as_ref().map(|marker| marker.stamp);
                Vote::Counts(loss.filter(|_| doubtful))
            }
            Admitted::Abstains(stamp) => Vote::Refused(Outcome::NotApplied(Refusal::Abstains { stamp: Some(stamp) })),
            Admitted::WrongQuorum { quorum, .. } => {
                let denial = Denial::new(DenialKind::Membership, &format!("a node of quorum {quorum}"));
                Vote::Refused(Outcome::NotApplied(Refusal::Denied(denial)))
            }
        }
    }

    /// The counter of a resource was raised because of a loss.
    pub(super) fn raised(&mut self, resource: &Resource, loss: Option<LossId>, expires_ms: Option<u64>) {
        if let Some(Marker { phase: Phase::Rejoined { .. }, stamp, .. }) = &self.marker
            && loss == Some(*stamp)
        {
            self.trust.insert(resource.clone(), Raised { since: *stamp, expires_ms });
        }
    }
}
