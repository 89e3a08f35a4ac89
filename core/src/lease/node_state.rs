//! The knowledge about each node that all locks of a client share.

use alloc::vec::Vec;

use crate::config::{Config, Quorum};
use crate::lease::breaker::CircuitBreaker;
use crate::member::{Bootstrap, LossId};
use crate::time::{Monotonic, abstention};

/// What is known of a node.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
pub(crate) struct NodeState {
    pub(crate) memory: Memory,
    pub(crate) breaker: CircuitBreaker,
    pub(crate) lacks_credentials: bool,
}

/// What a node of a quorum has shown of its memory.
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
        /// All nodes were seen like this at once, and waited out: the quorum is yet to be born.
        unborn: bool,
    },
}

impl Memory {
    pub(crate) fn abstains(&mut self, stamp: LossId, now: Monotonic) {
        if !matches!(self, Self::Joining { stamp: known, .. } if *known == stamp) {
            *self = Self::Joining { stamp, since: now, unborn: false };
        }
    }

    /// `doubt` is the loss that its answer named.
    pub(crate) fn votes(&mut self, doubt: Option<LossId>) {
        *self = match (*self, doubt) {
            (Self::Votes(known), None) => Self::Votes(known),
            (Self::Unknown | Self::Joining { .. }, None) => Self::Votes(None),
            (_, Some(stamp)) => Self::Votes(Some(stamp)),
        };
    }

    /// A look from outside tells nothing that an answer has not told better.
    pub(crate) fn seen_to_vote(&mut self, doubt: Option<LossId>) {
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

/// What an attempt says of the losses that it knows to be over: for each node the loss, and whether the quorum is to be
/// born of it.
///
/// Where no node is known to vote, all may be new: their abstentions are kept to until all nodes were seen to abstain at
/// once. Were one of them asked to vote before, it would stay in doubt for days.
pub(crate) fn losses_over(nodes: &[NodeState], now: Monotonic, config: &Config) -> Vec<(Option<LossId>, Bootstrap)> {
    let somebody_votes = nodes.iter().any(|node| node.memory.is_known_to_vote());
    let over = |node: &NodeState| match node.memory {
        Memory::Unknown => (None, Bootstrap::No),
        Memory::Votes(stamp) => (stamp, Bootstrap::No),
        Memory::Joining { stamp, unborn: true, .. } => (Some(stamp), Bootstrap::Yes),
        Memory::Joining { .. } if somebody_votes => (node.memory.waited_out(now, config), Bootstrap::No),
        Memory::Joining { .. } => (None, Bootstrap::No),
    };
    nodes.iter().map(over).collect()
}

/// All nodes have abstained in one attempt, which began at `began`. Where every one of them had been waited out by then,
/// there was an instant at which nobody remembered anything: a quorum can be born.
pub(crate) fn all_abstained(nodes: &mut [NodeState], began: Monotonic, config: &Config) {
    if nodes.iter().all(|node| node.memory.waited_out(began, config).is_some()) {
        for node in nodes {
            if let Memory::Joining { unborn, .. } = &mut node.memory {
                *unborn = true;
            }
        }
    }
}
