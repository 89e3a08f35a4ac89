//! The holder of a lock, by the records of several nodes.
//!
//! Each node mints tokens on its own and may be behind, and two contenders may hold some nodes each, so the record of one
//! node is not enough.

use alloc::vec::Vec;
use core::time::Duration;

use crate::ids::{Nonce, Seq, Token};
use crate::op::{Completion, Holder, Holding, Seen};
use crate::quorum::majority;

/// The content of all nodes for one lock, in their order; `None` for a node that has not answered.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct View(Vec<Option<Seen>>);

/// The record that most nodes show.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Shown {
    /// The record. Its counter is the token that a majority may have acknowledged, `None` if it may also be another one.
    /// The time left is at least the time until a majority is free of the record. It is revoked if fewer nodes than a majority
    /// may renew it.
    pub holding: Holding,
    /// The number of nodes that show it.
    pub votes: usize,
}

impl View {
    /// A view of all nodes.
    pub fn new(nodes: Vec<Option<Seen>>) -> Self {
        Self(nodes)
    }

    /// The number of nodes.
    pub fn nodes(&self) -> usize {
        self.0.len()
    }

    /// The number of nodes that have not answered.
    pub fn silent(&self) -> usize {
        self.0.iter().filter(|seen| seen.is_none()).count()
    }

    /// Returns true if a majority shows no record. Records of other nodes are then the remains of an attempt.
    pub fn is_free(&self) -> bool {
        self.0.iter().flatten().filter(|seen| seen.held().is_none()).count() >= majority(self.nodes())
    }

    /// The nodes that have a record, and their records.
    pub fn held(&self) -> impl Iterator<Item = (usize, &Holding)> {
        self.0.iter().enumerate().filter_map(|(node, seen)| Some((node, seen.as_ref()?.held()?)))
    }

    /// The completion of finished work that any node shows; of several, the latest. See [`settled`].
    pub fn done(&self) -> Option<Completion> {
        settled(self.0.iter().flatten().filter_map(|seen| seen.done.as_deref()), self.nodes())
    }

    /// The holder: the record that most nodes show, unless a majority shows none.
    pub fn current(&self) -> Option<Shown> {
        if self.is_free() { None } else { self.holder() }
    }

    /// The record that most nodes show, even if they are no majority. Between two records with equally many nodes, the
    /// later one: it is more likely to get the rest.
    pub fn holder(&self) -> Option<Shown> {
        let most = self.held().map(|(_, holding)| holding).max_by_key(|one| (self.group(one).count(), one.counter))?;
        let mut left: Vec<_> = self.group(most).map(|holding| holding.left).collect();
        // A record that a node does not expire by itself lasts longest.
        left.sort_unstable_by_key(|left| core::cmp::Reverse(left.unwrap_or(Duration::MAX)));
        let last_of_majority = left.get(self.nodes() - majority(self.nodes())).or(left.first());
        let revoked = self.group(most).filter(|holding| holding.is_revoked()).count();
        // Fewer than a majority renew it then.
        let is_revoked = revoked > self.nodes() - majority(self.nodes());
        let mut holding = self.group(most).find(|holding| holding.is_revoked() == is_revoked).unwrap_or(most).clone();
        if let (Holder::Lease { seq, .. }, false) = (&mut holding.holder, is_revoked) {
            *seq = seq.filter(|seq| *seq != Seq::LAST);
        }
        holding.left = last_of_majority.copied().flatten();
        holding.counter = self.token(most);
        Some(Shown { holding, votes: left.len() })
    }

    fn group<'a>(&'a self, of: &'a Holding) -> impl Iterator<Item = &'a Holding> {
        self.held().map(|(_, holding)| holding).filter(|other| is_same(of, other))
    }

    /// The token of a record. A node's counter may differ from it, if the node granted too late to matter or is not raised
    /// yet.
    fn token(&self, of: &Holding) -> Option<Token> {
        let needed = majority(self.nodes()).saturating_sub(self.silent());
        let votes = |counter: Token| self.group(of).filter(|holding| holding.counter == Some(counter)).count();
        let mut possible =
            self.group(of).filter_map(|holding| holding.counter).filter(|counter| votes(*counter) >= needed);
        let token = possible.next()?;
        // If the silent nodes are a majority by themselves, the token may be any.
        (needed > 0 && possible.all(|other| other == token)).then_some(token)
    }
}

/// The latest of the completions that some of so many nodes show. Its record of the run is told only if a majority shows the same
/// completion: any other may be one of an attempt that a later one has outrun, whose record others are not told. Until then it is not
/// told either that there is none, since another node may have it.
pub fn settled<'a>(completions: impl Iterator<Item = &'a Completion>, nodes: usize) -> Option<Completion> {
    let completions: Vec<_> = completions.collect();
    let latest = completions.iter().max_by_key(|completion| completion.token)?;
    let same = || completions.iter().filter(|completion| completion.token == latest.token);
    // Where a node had no room for the record, the others have it.
    let mut abouts = same().filter_map(|completion| completion.about.as_ref());
    let about = abouts.next();
    let is_settled = same().count() >= majority(nodes) && abouts.all(|other| Some(other) == about);
    Some(Completion { about: about.filter(|_| is_settled).cloned(), unsettled: !is_settled, ..(*latest).clone() })
}

/// The contents of the nodes that show this holder; `None` if they are no majority. Others may be empty since they lost their data, or behind.
pub(crate) fn held_by<'a>(
    nodes: impl ExactSizeIterator<Item = Option<&'a Seen>>,
    holder: &Nonce,
) -> Option<Vec<&'a Seen>> {
    let majority = majority(nodes.len());
    let is_held = |seen: &&Seen| seen.holding.as_ref().is_some_and(|holding| holding.is_of(holder));
    let shown: Vec<&Seen> = nodes.flatten().filter(is_held).collect();
    (shown.len() >= majority).then_some(shown)
}

/// Returns true if two nodes show the same lease.
pub(crate) fn is_same(one: &Holding, other: &Holding) -> bool {
    match (&one.holder, &other.holder) {
        (Holder::Lease { nonce: one, .. }, Holder::Lease { nonce: other, .. }) => one == other,
        (Holder::Foreign, Holder::Foreign) => one.owner == other.owner,
        (Holder::Lease { .. }, Holder::Foreign) | (Holder::Foreign, Holder::Lease { .. }) => false,
    }
}

#[cfg(test)]
mod tests {
    use alloc::boxed::Box;
    use alloc::vec;

    use super::*;
    use crate::about::About;
    use crate::ids::{Owner, Version};

    fn record(nonce: u8, token: u64, left_ms: u64) -> Option<Seen> {
        let holder = Holder::Lease { nonce: Nonce::from_bytes([nonce; 16]), seq: None };
        let holding = Holding {
            counter: Token::new(token),
            owner: Some(Owner::new(&alloc::format!("worker {nonce}")).unwrap()),
            left: Some(Duration::from_millis(left_ms)),
            ..Holding::of(holder, Version::new(&[nonce]).unwrap())
        };
        Some(Seen { holding: Some(Box::new(holding)), done: None })
    }

    fn free() -> Option<Seen> {
        Some(Seen::default())
    }

    /// The worker, its token, and how many nodes show it.
    fn holder(nodes: Vec<Option<Seen>>) -> Option<(u8, Option<u64>, usize)> {
        let Shown { holding, votes } = View::new(nodes).holder()?;
        let Holder::Lease { nonce, .. } = holding.holder else { unreachable!("records are leases") };
        Some((nonce.as_bytes()[0], holding.counter.map(Token::get), votes))
    }

    #[test]
    fn holder_is_the_record_that_most_nodes_show() {
        assert_eq!(holder(vec![free(), free(), free()]), None);
        assert_eq!(holder(vec![record(2, 9, 10), record(1, 7, 10), record(1, 7, 10)]), Some((1, Some(7), 2)));
        assert_eq!(holder(vec![record(1, 7, 10), free(), None]), Some((1, Some(7), 1)));
        let split = vec![record(1, 7, 10), record(1, 7, 10), record(2, 9, 10), record(2, 9, 10), free()];
        assert_eq!(holder(split), Some((2, None, 2)), "of two that as many show the later one");
    }

    #[test]
    fn lease_is_revoked_once_fewer_nodes_than_a_majority_may_renew_it() {
        let revoked = || {
            let mut seen = record(1, 7, 10);
            if let Some(Seen { holding: Some(holding), .. }) = &mut seen
                && let Holder::Lease { seq, .. } = &mut holding.holder
            {
                *seq = Some(Seq::LAST);
            }
            seen
        };
        let is_revoked = |nodes: Vec<Option<Seen>>| View::new(nodes).holder().unwrap().holding.is_revoked();
        assert!(!is_revoked(vec![revoked(), record(1, 7, 10), record(1, 7, 10)]));
        assert!(is_revoked(vec![revoked(), record(1, 7, 10), revoked()]));
        assert!(!is_revoked(vec![revoked(), None, None]), "the others may renew it");
        assert!(is_revoked(vec![revoked()]));
    }

    #[test]
    fn foreign_records_are_compared_by_owner() {
        let foreign = |owner: &str| {
            let mut seen = record(1, 7, 10);
            if let Some(Seen { holding: Some(holding), .. }) = &mut seen {
                holding.holder = Holder::Foreign;
                holding.owner = Some(Owner::new(owner).unwrap());
            }
            seen
        };
        let shown = View::new(vec![foreign("b"), foreign("a"), foreign("b")]).holder().unwrap();
        assert_eq!((shown.holding.owner, shown.votes), (Some(Owner::new("b").unwrap()), 2));
        let shown = View::new(vec![foreign("a"), record(1, 7, 10), record(1, 7, 10)]).holder().unwrap();
        assert_eq!((shown.holding.holder == Holder::Foreign, shown.votes), (false, 2));
    }

    #[test]
    fn token_is_known_only_if_a_majority_can_have_acknowledged_it() {
        let late = vec![record(1, 7, 10), record(1, 7, 10), record(1, 9, 10)];
        assert_eq!(holder(late), Some((1, Some(7), 3)), "a late node's counter is no token");
        assert_eq!(holder(vec![record(1, 7, 10), record(1, 9, 10), None]), Some((1, None, 2)), "it may be either");
        assert_eq!(holder(vec![record(1, 7, 10), record(1, 9, 10), free()]), Some((1, None, 2)), "it is undecided");
        assert_eq!(holder(vec![record(1, 7, 10), None, None]), Some((1, None, 1)), "it may be any");
        assert_eq!(holder(vec![record(1, 7, 10)]), Some((1, Some(7), 1)), "a single store knows");
    }

    #[test]
    fn record_of_a_run_is_settled_once_a_majority_shows_the_same_completion() {
        let done = |token: u64, about: Option<u8>| Completion {
            token: Token::new(token).unwrap(),
            owner: Owner::default(),
            at_unix_ms: 1,
            left: Duration::from_secs(1),
            about: about.map(|byte| About::new(&Nonce::from_bytes([byte; 16]), 1, 0, None)),
            unsettled: false,
        };
        // The token, whether it has the record, and whether that is settled, in every order of the nodes.
        let shown = |completions: &[Completion], nodes: usize| {
            let told = |one: Vec<&Completion>| {
                let done = settled(one.into_iter(), nodes).unwrap();
                (done.token.get(), done.about.is_some(), !done.unsettled)
            };
            let forward = told(completions.iter().collect());
            assert_eq!(told(completions.iter().rev().collect()), forward);
            forward
        };
        assert_eq!(shown(&[done(1, Some(1))], 1), (1, true, true));
        assert_eq!(shown(&[done(1, None)], 1), (1, false, true), "a store knows");
        assert_eq!(shown(&[done(1, Some(1))], 3), (1, false, false));
        assert_eq!(shown(&[done(1, None)], 3), (1, false, false), "the others may have it");
        assert_eq!(shown(&[done(1, None), done(1, None)], 3), (1, false, true), "a majority kept none");
        assert_eq!(shown(&[done(1, None), done(1, Some(1))], 3), (1, true, true), "a node had no room for it");
        assert_eq!(shown(&[done(1, Some(1)), done(2, Some(2))], 3), (2, false, false), "one outran the other");
        assert_eq!(shown(&[done(1, Some(1)), done(1, Some(2))], 3), (1, false, false), "tokens of a wiped node");
    }

    #[test]
    fn time_left_lasts_until_a_majority_is_free() {
        let left = |lefts: &[u64]| {
            let nodes = lefts.iter().map(|left_ms| record(1, 7, *left_ms)).collect();
            View::new(nodes).holder().unwrap().holding.left.unwrap().as_millis()
        };
        assert_eq!(left(&[10]), 10);
        assert_eq!(left(&[10, 900, 500]), 500);
        assert_eq!(left(&[10, 900, 500, 700]), 700, "others need three of four");
        assert_eq!(left(&[10, 900, 500, 700, 300]), 500, "and three of five");
        let mut for_ever = record(1, 7, 10);
        if let Some(Seen { holding: Some(holding), .. }) = &mut for_ever {
            holding.left = None;
        }
        let mixed = View::new(vec![for_ever, record(1, 7, 20), record(1, 7, 10)]).holder().unwrap();
        assert_eq!(mixed.holding.left, Some(Duration::from_millis(20)), "two of them are free by then");
        let one = View::new(vec![record(1, 7, 10), None, free()]).holder().unwrap();
        assert_eq!(one.holding.left, Some(Duration::from_millis(10)));
    }

    #[test]
    fn a_lock_is_free_once_a_majority_shows_it_free() {
        assert!(View::new(vec![record(1, 7, 10), free(), free()]).is_free(), "a remainder holds nothing");
        assert!(!View::new(vec![record(1, 7, 10), free(), None]).is_free());
        assert!(View::new(vec![free()]).is_free());
        assert_eq!(View::new(vec![record(1, 7, 10), free(), free()]).current(), None);
        assert!(View::new(vec![record(1, 7, 10), free(), None]).current().is_some());
    }
}
