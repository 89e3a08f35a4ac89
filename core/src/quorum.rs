//! Counting votes: the size of a majority, the time for which it vouches for a lease, and the token that it grants.
//!
//! A single store is a quorum of one and goes through the same code.

use alloc::vec::Vec;

use crate::ids::{NodeId, Token};
use crate::one_or_many::OneOrMany;
use crate::op::{Outcome, Refusal};
use crate::time::Monotonic;

/// The most nodes of a quorum.
pub(crate) const MAX_NODES: usize = 31;

/// `floor(n / 2) + 1` of the *configured* nodes, however many can be reached.
pub const fn majority(nodes: usize) -> usize {
    nodes / 2 + 1
}

/// Returns true if a lease is revoked, by the answers of all nodes: fewer than a majority renew it from then on. False if so few have its
/// record that it is over; `None` where that is open.
pub fn revoked(answers: &[Outcome]) -> Option<bool> {
    let spare = answers.len() - majority(answers.len());
    let marked = answers.iter().filter(|answer| matches!(answer, Outcome::Applied(_))).count();
    let without = answers.iter().filter(|answer| matches!(answer, Outcome::NotApplied(Refusal::Conflict(_)))).count();
    match marked {
        marked if marked > spare => Some(true),
        0 if without > spare => Some(false),
        _ => None,
    }
}

/// The instant until which at least `q` nodes hold our record: the q-th largest of their deadlines.
///
/// Before it a rival can win at most `n - q` nodes, which is no majority.
pub fn shared_deadline(deadlines: impl Iterator<Item = Option<Monotonic>>, q: usize) -> Option<Monotonic> {
    let mut known = [Monotonic::default(); MAX_NODES];
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

/// The result of a [`Tally`] so far.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// More answers are needed.
    Open,
    /// These nodes granted, but at a lower counter: raise them to the token.
    Raise {
        /// The nodes.
        nodes: Vec<NodeId>,
        /// The token that their counters must reach.
        token: Token,
    },
    /// A majority answered exactly this token.
    Granted(Token),
    /// A majority can no longer be reached.
    Lost,
}

/// The trust in a node's counter of a resource: that it covers every token that the node has ever acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Trust {
    /// It does: the node has forgotten nothing, or was raised after its loss.
    Trusted,
    /// The node has lost its memory and was not raised after that: its counter may be below a token it acknowledged.
    Doubtful,
}

/// Exact-ack: the token is granted once a majority has answered exactly it.
///
/// Every node mints on its own, so the highest answer `f` may be known to one node only, and a plain maximum could
/// repeat or fall. Nodes below `f` are raised to it while they still hold our record; an answer above `f` becomes the
/// new `f`, and only answers equal to that one count.
///
/// A doubtful vote counts only after it was raised. It is raised only if the trusted votes are no majority by themselves,
/// and `n - q + 1` trusted counters are known, from votes or from refusals. So many nodes share a node with every majority
/// that ever granted a token, so a token above all of them is new. If fewer trusted nodes are left, all nodes have to be
/// known; the floor has to do the rest.
///
/// The tally knows no time. Its caller withdraws a vote whose validity is over ([`Tally::refuse`]), and does not pass on
/// answers of an attempt that began before the doubtful node was known to vote again.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Tally {
    q: usize,
    nodes: OneOrMany<NodeVote>,
}

/// The vote of one node, and the counter that it has shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct NodeVote {
    vote: Vote,
    /// The highest counter it has shown, whether or not it votes.
    read: Option<Read>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Read {
    counter: Token,
    trust: Trust,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Vote {
    Open,
    Granted,
    Refused,
}

impl NodeVote {
    fn note(&mut self, counter: Token, trust: Trust) {
        self.read = Some(match self.read {
            // The later answer decides about trust: a node that was trusted before may have lost its memory since.
            Some(before) => Read { counter: before.counter.max(counter), trust },
            None => Read { counter, trust },
        });
    }

    fn granted(&self) -> Option<Read> {
        match self.vote {
            Vote::Granted => self.read,
            Vote::Open | Vote::Refused => None,
        }
    }

    fn trusts(&self) -> bool {
        self.read.is_some_and(|read| read.trust == Trust::Trusted)
    }
}

impl Tally {
    /// A tally without answers.
    pub fn new(nodes: usize) -> Self {
        Self { q: majority(nodes), nodes: (0..nodes).map(|_| NodeVote { vote: Vote::Open, read: None }).collect() }
    }

    /// Notes that the node granted, at this counter.
    pub fn answer(&mut self, node: NodeId, counter: Token, trust: Trust) {
        if let Some(node) = self.nodes.get_mut(node.index()) {
            node.note(counter, trust);
            node.vote = Vote::Granted;
        }
    }

    /// Notes that the node was raised as the verdict asked, to this counter: from now on it is trusted.
    pub fn raised(&mut self, node: NodeId, counter: Token) {
        self.answer(node, counter, Trust::Trusted);
    }

    /// Notes the counter of a node that does not vote for us, or not yet.
    pub fn saw(&mut self, node: NodeId, counter: Token, trust: Trust) {
        if let Some(node) = self.nodes.get_mut(node.index()) {
            node.note(counter, trust);
        }
    }

    /// Notes that the node does not hold our record, or will not answer in time. Its counter is remembered.
    pub fn refuse(&mut self, node: NodeId) {
        if let Some(node) = self.nodes.get_mut(node.index()) {
            node.vote = Vote::Refused;
        }
    }

    /// The result so far.
    ///
    /// It is open as long as an awaited answer can still change it. A tally that only doubtful votes could fill is lost
    /// once no awaited answer can show enough counters.
    pub fn verdict(&self) -> Verdict {
        let open = self.nodes.iter().filter(|node| node.vote == Vote::Open).count();
        let granting = self.nodes.iter().filter(|node| node.vote == Vote::Granted).count();
        if open + granting < self.q {
            return Verdict::Lost;
        }
        if granting < self.q {
            return Verdict::Open;
        }
        let trusted = || self.nodes.iter().filter(|node| node.trusts());
        let voting = trusted().filter(|node| node.vote == Vote::Granted).count();
        if voting >= self.q {
            return self.count(self.highest(trusted()), Trust::Trusted);
        }
        let need = self.nodes.len() - self.q + 1;
        let known = trusted().count();
        let all = self.nodes.iter().filter(|node| node.read.is_some()).count();
        if known >= need || all == self.nodes.len() {
            let refusing = self.nodes.iter().filter(|node| node.vote != Vote::Granted).filter_map(|node| node.read);
            let above = match refusing.map(|read| read.counter).max().map(Token::next) {
                Some(Some(above)) => above,
                // Tokens are used up: nothing new can be granted.
                Some(None) => return Verdict::Lost,
                None => Token::ZERO,
            };
            return self.count(self.highest(self.nodes.iter()).max(above), Trust::Doubtful);
        }
        let unread = |node: &&NodeVote| node.vote == Vote::Open && !node.trusts();
        let awaited = self.nodes.iter().filter(unread).count();
        let new = self.nodes.iter().filter(|node| node.vote == Vote::Open && node.read.is_none()).count();
        // A node that may still make the trusted votes a majority is among those that are known or awaited.
        if known + awaited >= need || all + new == self.nodes.len() { Verdict::Open } else { Verdict::Lost }
    }

    /// Grants by a majority of exact acks. Otherwise raises to `token` the votes below it, and, if doubtful votes are
    /// needed, those in doubt at any counter.
    fn count(&self, token: Token, least: Trust) -> Verdict {
        let votes = || self.nodes.iter().enumerate().filter_map(|(at, node)| Some((at, node.granted()?)));
        let exact = votes().filter(|(_, read)| read.trust == Trust::Trusted && read.counter == token).count();
        if exact >= self.q {
            return Verdict::Granted(token);
        }
        let lacks = |read: &Read| match read.trust {
            Trust::Trusted => read.counter < token,
            Trust::Doubtful => least == Trust::Doubtful,
        };
        let nodes = votes()
            .filter(|(_, read)| lacks(read))
            .filter_map(|(at, _)| u16::try_from(at).ok().map(NodeId::new))
            .collect();
        Verdict::Raise { nodes, token }
    }

    /// The highest counter among those of the given nodes that vote.
    fn highest<'a>(&self, nodes: impl Iterator<Item = &'a NodeVote>) -> Token {
        nodes.filter_map(NodeVote::granted).map(|read| read.counter).max().unwrap_or(Token::ZERO)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token(value: u64) -> Token {
        Token::new(value).unwrap()
    }

    fn node(index: u16) -> NodeId {
        NodeId::new(index)
    }

    fn raise(nodes: &[u16], to: u64) -> Verdict {
        Verdict::Raise { nodes: nodes.iter().copied().map(NodeId::new).collect(), token: token(to) }
    }

    fn tally_of(nodes: usize, votes: &[(u16, u64, Trust)], reads: &[(u16, u64, Trust)], silent: &[u16]) -> Tally {
        let mut tally = Tally::new(nodes);
        for (index, counter, trust) in votes {
            tally.answer(node(*index), token(*counter), *trust);
        }
        for (index, counter, trust) in reads {
            tally.saw(node(*index), token(*counter), *trust);
            tally.refuse(node(*index));
        }
        for index in silent {
            tally.refuse(node(*index));
        }
        tally
    }

    use Trust::{Doubtful, Trusted};

    #[test]
    fn doubtful_vote_waits_for_enough_reads() {
        let mut tally = tally_of(3, &[(0, 1, Doubtful), (1, 5, Trusted)], &[], &[]);
        assert_eq!(tally.verdict(), Verdict::Open, "one other is not enough");
        tally.saw(node(2), token(9), Trusted);
        tally.refuse(node(2));
        assert_eq!(
            tally.verdict(),
            raise(&[0, 1], 10),
            "above the counters that were read, since a refusing node may have granted it"
        );
        tally.raised(node(0), token(10));
        assert_eq!(tally.verdict(), raise(&[1], 10));
        tally.raised(node(1), token(10));
        assert_eq!(tally.verdict(), Verdict::Granted(token(10)));
    }

    #[test]
    fn doubtful_vote_is_raised_even_at_the_token() {
        let tally = tally_of(3, &[(0, 10, Doubtful), (1, 10, Trusted)], &[(2, 9, Trusted)], &[]);
        assert_eq!(tally.verdict(), raise(&[0], 10));
    }

    #[test]
    fn a_trusted_majority_needs_no_doubtful_vote() {
        let tally = tally_of(3, &[(0, 70, Doubtful), (1, 5, Trusted), (2, 5, Trusted)], &[], &[]);
        assert_eq!(tally.verdict(), Verdict::Granted(token(5)));
        let tally = tally_of(3, &[(0, 5, Doubtful), (1, 5, Trusted), (2, 4, Trusted)], &[], &[]);
        assert_eq!(tally.verdict(), raise(&[2], 5), "and none is taken for an ack");
    }

    #[test]
    fn doubtful_majority_without_enough_reads_is_lost() {
        let silent = tally_of(3, &[(0, 1, Doubtful), (1, 5, Trusted)], &[], &[2]);
        assert_eq!(silent.verdict(), Verdict::Lost);
        let doubtful = tally_of(5, &[(0, 1, Doubtful), (1, 5, Trusted), (2, 5, Trusted)], &[(3, 7, Doubtful)], &[]);
        assert_eq!(doubtful.verdict(), Verdict::Open, "a doubtful read is none");
        let doubtful = tally_of(5, &[(0, 1, Doubtful), (1, 5, Trusted), (2, 5, Trusted)], &[(3, 7, Doubtful)], &[4]);
        assert_eq!(doubtful.verdict(), Verdict::Lost);
    }

    #[test]
    fn reads_that_meet_every_majority_are_enough() {
        let votes = [(0, 1, Doubtful), (1, 5, Trusted), (2, 5, Trusted)];
        let three_of_five = tally_of(5, &votes, &[(3, 7, Trusted)], &[]);
        assert_eq!(three_of_five.verdict(), raise(&[0, 1, 2], 8), "the fifth is not waited for");
        let votes = [(0, 1, Doubtful), (1, 5, Trusted), (2, 5, Trusted), (3, 5, Doubtful)];
        let two_of_four = tally_of(4, &votes[..3], &[], &[]);
        assert_eq!(two_of_four.verdict(), raise(&[0], 5), "two of four meet any three");
        let mut three_of_seven = tally_of(7, &votes, &[(4, 7, Trusted)], &[5]);
        assert_eq!(three_of_seven.verdict(), Verdict::Open, "the last one may know enough");
        three_of_seven.refuse(node(6));
        assert_eq!(three_of_seven.verdict(), Verdict::Lost);
    }

    #[test]
    fn read_from_a_node_that_lost_our_record_counts() {
        let mut tally = tally_of(3, &[(0, 1, Doubtful), (1, 5, Trusted), (2, 7, Trusted)], &[], &[]);
        assert_eq!(tally.verdict(), raise(&[1], 7));
        tally.refuse(node(1));
        assert_eq!(tally.verdict(), raise(&[0], 7));
    }

    #[test]
    fn if_all_nodes_are_doubtful_all_must_be_read() {
        let two = [(0, 1, Doubtful), (1, 5, Doubtful)];
        assert_eq!(tally_of(3, &two, &[], &[]).verdict(), Verdict::Open);
        assert_eq!(tally_of(3, &two, &[], &[2]).verdict(), Verdict::Lost);
        assert_eq!(tally_of(3, &two, &[(2, 5, Doubtful)], &[]).verdict(), raise(&[0, 1], 6));
        assert_eq!(tally_of(1, &[(0, 3, Doubtful)], &[], &[]).verdict(), raise(&[0], 3));
    }

    #[test]
    fn exhausted_counter_makes_the_tally_lost() {
        let reads = [(2, Token::MAX.get(), Trusted)];
        assert_eq!(tally_of(3, &[(0, 1, Doubtful), (1, 5, Trusted)], &reads, &[]).verdict(), Verdict::Lost);
    }

    #[test]
    fn higher_answer_restarts_the_acks() {
        let mut tally = tally_of(3, &[(0, 5, Trusted), (1, 9, Trusted)], &[], &[]);
        assert_eq!(tally.verdict(), raise(&[0], 9));
        tally.raised(node(0), token(12));
        assert_eq!(tally.verdict(), raise(&[1], 12));
        tally.raised(node(1), token(12));
        assert_eq!(tally.verdict(), Verdict::Granted(token(12)));
    }
}
