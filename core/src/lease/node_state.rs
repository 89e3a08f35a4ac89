//! The knowledge about each node that all locks of a client share.

use crate::config::{Config, Quorum};
use crate::lease::breaker::CircuitBreaker;
use crate::member::{Bootstrap, LossId};
use crate::one_or_many::OneOrMany;
use crate::time::{Monotonic, abstention};

/// The knowledge about a node.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
pub(crate) struct NodeState {
    pub(crate) memory: Memory,
    pub(crate) breaker: CircuitBreaker,
    pub(crate) lacks_credentials: bool,
}

/// The memory of a node of a quorum, as far as the node has shown it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub(crate) enum Memory {
    /// Nothing so far.
    #[default]
    Unknown,
    /// It votes; this loss, if it had one, is over.
    Votes(Option<LossId>),
    /// It abstains.
    Joining {
        stamp: LossId,
        /// The reply that showed this stamp first.
        since: Monotonic,
        /// All nodes were seen like this at once, and waited out: the quorum is new.
        is_new: bool,
    },
}

impl Memory {
    pub(crate) fn note_abstention(&mut self, stamp: LossId, now: Monotonic) {
        if !matches!(self, Self::Joining { stamp: known, .. } if *known == stamp) {
            *self = Self::Joining { stamp, since: now, is_new: false };
        }
    }

    /// Notes that the node votes; `doubt` is the loss that its answer named.
    pub(crate) fn note_vote(&mut self, doubt: Option<LossId>) {
        *self = match (*self, doubt) {
            (Self::Votes(known), None) => Self::Votes(known),
            (Self::Unknown | Self::Joining { .. }, None) => Self::Votes(None),
            (_, Some(stamp)) => Self::Votes(Some(stamp)),
        };
    }

    /// Notes that the node was seen to vote. An answer to a request of ours tells more, so it is not overwritten.
    pub(crate) fn note_seen_to_vote(&mut self, doubt: Option<LossId>) {
        if *self == Self::Unknown {
            *self = Self::Votes(doubt);
        }
    }

    /// The instant at which its abstention is over; `None` where it does not abstain.
    pub(crate) fn abstains_until(&self, config: &Config) -> Option<Monotonic> {
        let max_ttl = config.quorum().map(Quorum::max_ttl)?;
        match self {
            Self::Joining { since, .. } => Some(since.plus(abstention(max_ttl, config.drift()))),
            Self::Unknown | Self::Votes(_) => None,
        }
    }

    pub(crate) fn is_known_to_vote(&self) -> bool {
        matches!(self, Self::Votes(_))
    }

    fn waited_out(&self, now: Monotonic, config: &Config) -> Option<LossId> {
        let stamp = match self {
            Self::Joining { stamp, .. } => *stamp,
            Self::Unknown | Self::Votes(_) => return None,
        };
        self.abstains_until(config).is_some_and(|until| now >= until).then_some(stamp)
    }
}

/// The loss of a node that is known to be over, and the evidence that the quorum is new.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct KnownLoss {
    pub(crate) loss: Option<LossId>,
    pub(crate) bootstrap: Bootstrap,
}

/// The losses that are known to be over, for each node.
///
/// Where no node is known to vote, the quorum may be new: abstentions are respected until all nodes were seen to abstain
/// at once. A node that is asked to vote before stays in doubt for days.
pub(crate) fn known_losses(nodes: &[NodeState], now: Monotonic, config: &Config) -> OneOrMany<KnownLoss> {
    let somebody_votes = nodes.iter().any(|node| node.memory.is_known_to_vote());
    let known = |node: &NodeState| {
        let (loss, bootstrap) = match node.memory {
            Memory::Unknown => (None, Bootstrap::No),
            Memory::Votes(loss) => (loss, Bootstrap::No),
            Memory::Joining { stamp, is_new: true, .. } => (Some(stamp), Bootstrap::Yes),
            Memory::Joining { .. } if somebody_votes => (node.memory.waited_out(now, config), Bootstrap::No),
            Memory::Joining { .. } => (None, Bootstrap::No),
        };
        KnownLoss { loss, bootstrap }
    };
    nodes.iter().map(known).collect()
}

/// Notes that all nodes have abstained in one attempt, which began at `began`. If every one of them had been waited out by
/// then, there was an instant at which no node remembered anything: the quorum is new.
pub(crate) fn note_all_abstained(nodes: &mut [NodeState], began: Monotonic, config: &Config) {
    if nodes.iter().all(|node| node.memory.waited_out(began, config).is_some()) {
        for node in nodes {
            if let Memory::Joining { is_new, .. } = &mut node.memory {
                *is_new = true;
            }
        }
    }
}
