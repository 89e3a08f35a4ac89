//! Counting votes: how many nodes make a majority, how long a majority vouches for a lease, and which token it grants.
//!
//! A single store is a quorum of one and goes through the same code.

use alloc::vec;
use alloc::vec::Vec;

use crate::config::Config;
use crate::ids::{NodeId, Token};
use crate::time::Monotonic;

/// `floor(n / 2) + 1` of the *configured* nodes, however many can be reached.
pub const fn majority(nodes: usize) -> usize {
    nodes / 2 + 1
}

/// The instant until which at least `q` nodes hold our record: the q-th largest of their deadlines.
///
/// Before it a rival can win at most `n - q` nodes, which is no majority.
pub fn shared_deadline(deadlines: impl Iterator<Item = Option<Monotonic>>, q: usize) -> Option<Monotonic> {
    let mut known = [Monotonic::default(); Config::MAX_NODES];
    let mut count = 0;
    for (slot, deadline) in known.iter_mut().zip(deadlines.flatten()) {
        *slot = deadline;
        count += 1;
    }
    if count < q || q == 0 {
        return None;
    }
    known[..count].sort_unstable_by(|a, b| b.cmp(a));
    known.get(q - 1).copied()
}

/// What a [`Tally`] says so far.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// More answers are needed.
    Open,
    /// These nodes granted, but at a lower counter: lift them to the token.
    Raise {
        /// The nodes.
        nodes: Vec<NodeId>,
        /// What their counters must reach.
        token: Token,
    },
    /// A majority answered exactly this token.
    Granted(Token),
    /// A majority can no longer be reached.
    Lost,
}

/// Exact-ack: the token is granted once a majority has answered exactly it.
///
/// Every node mints on its own, so the highest answer `f` may be known to one node only, and a plain maximum could
/// repeat or fall. Nodes below `f` are lifted to it while they still hold our record; an answer above `f` becomes the
/// new `f`, and only answers equal to that one count. The machine knows no time.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Tally {
    q: usize,
    votes: Vec<Vote>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Vote {
    Open,
    Counter(Token),
    Refused,
}

impl Tally {
    /// Nobody has answered.
    pub fn new(nodes: usize) -> Self {
        Self { q: majority(nodes), votes: vec![Vote::Open; nodes] }
    }

    /// The node granted, or was raised, and its counter shows this.
    pub fn answer(&mut self, node: NodeId, counter: Token) {
        if let Some(vote) = self.votes.get_mut(node.index()) {
            *vote = match *vote {
                Vote::Counter(before) => Vote::Counter(before.max(counter)),
                Vote::Open | Vote::Refused => Vote::Counter(counter),
            };
        }
    }

    /// The node does not hold our record, or will not tell in time.
    pub fn refuse(&mut self, node: NodeId) {
        if let Some(vote) = self.votes.get_mut(node.index()) {
            *vote = Vote::Refused;
        }
    }

    /// Where the count stands.
    pub fn verdict(&self) -> Verdict {
        let refused = self.votes.iter().filter(|vote| **vote == Vote::Refused).count();
        if self.votes.len() - refused < self.q {
            return Verdict::Lost;
        }
        let counters = || {
            self.votes.iter().enumerate().filter_map(|(node, vote)| match vote {
                Vote::Counter(counter) => Some((node, *counter)),
                Vote::Open | Vote::Refused => None,
            })
        };
        if counters().count() < self.q {
            return Verdict::Open;
        }
        let Some(highest) = counters().map(|(_, counter)| counter).max() else { return Verdict::Open };
        if counters().filter(|(_, counter)| *counter == highest).count() >= self.q {
            return Verdict::Granted(highest);
        }
        let nodes = counters()
            .filter(|(_, counter)| *counter < highest)
            .filter_map(|(node, _)| u16::try_from(node).ok().map(NodeId::new))
            .collect();
        Verdict::Raise { nodes, token: highest }
    }
}
