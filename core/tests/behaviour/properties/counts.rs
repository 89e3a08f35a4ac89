//! Votes and marks: the result does not depend on the order of the answers.

use leasehold_core::fence::Guard;
use leasehold_core::quorum::{Tally, Trust, Verdict, majority, shared_deadline};
use leasehold_core::{Monotonic, NodeId, Token};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

fn token(value: u64) -> Token {
    Token::new(value).unwrap()
}

/// One answer of one node each: a counter, or a refusal.
fn votes() -> impl Strategy<Value = Vec<Option<u64>>> {
    (1_usize..=7).prop_flat_map(|nodes| vec(prop_oneof![Just(None), (1_u64..5).prop_map(Some)], nodes))
}

fn cast(tally: &mut Tally, node: usize, vote: Option<u64>) {
    let node = NodeId::new(u16::try_from(node).unwrap());
    match vote {
        Some(counter) => tally.answer(node, token(counter), Trust::Trusted),
        None => tally.refuse(node),
    }
}

proptest! {
    #[test]
    fn a_token_is_granted_by_a_majority_that_answered_exactly_it(votes in votes()) {
        let q = majority(votes.len());
        let mut tally = Tally::new(votes.len());
        let mut heard: Vec<u64> = Vec::new();
        let mut refused = 0;
        for (node, vote) in votes.iter().enumerate() {
            cast(&mut tally, node, *vote);
            match vote {
                Some(counter) => heard.push(*counter),
                None => refused += 1,
            }
            let highest = heard.iter().copied().max();
            let exact = heard.iter().filter(|counter| Some(**counter) == highest).count();
            match tally.verdict() {
                Verdict::Lost => prop_assert!(votes.len() - refused < q),
                Verdict::Granted(granted) => {
                    prop_assert_eq!(Some(granted.get()), highest, "never less than any answer");
                    prop_assert!(exact >= q && votes.len() - refused >= q);
                }
                Verdict::Raise { nodes, token } => {
                    prop_assert!(heard.len() >= q && exact < q);
                    prop_assert_eq!(Some(token.get()), highest);
                    let lower: Vec<usize> =
                        (0..=node).filter(|node| votes[*node].is_some_and(|counter| Some(counter) < highest)).collect();
                    prop_assert_eq!(nodes.iter().map(|node| node.index()).collect::<Vec<_>>(), lower);
                }
                Verdict::Open => prop_assert!(heard.len() < q && votes.len() - refused >= q),
            }
        }
    }

    #[test]
    fn order_of_answers_does_not_matter((votes, order) in votes().prop_flat_map(|votes| {
        let order = Just((0..votes.len()).collect::<Vec<_>>()).prop_shuffle();
        (Just(votes), order)
    })) {
        let (mut straight, mut shuffled) = (Tally::new(votes.len()), Tally::new(votes.len()));
        for node in 0..votes.len() {
            cast(&mut straight, node, votes[node]);
            cast(&mut shuffled, order[node], votes[order[node]]);
        }
        prop_assert_eq!(straight.verdict(), shuffled.verdict());
    }

    #[test]
    fn raising_ends_in_one_grant_or_in_a_loss(
        counters in vec(1_u64..1_000, 1..=7), elsewhere in vec((0_usize..7, 0_u64..50), 0..10),
    ) {
        // The counters of the nodes, some of them raised by other clients in between.
        let mut nodes = counters.clone();
        let mut tally = Tally::new(nodes.len());
        for (node, counter) in counters.iter().enumerate() {
            cast(&mut tally, node, Some(*counter));
        }
        let mut elsewhere = elsewhere.into_iter();
        for _ in 0..100 {
            let Verdict::Raise { nodes: lower, token } = tally.verdict() else { break };
            if let Some((node, by)) = elsewhere.next() {
                let node = node % nodes.len();
                nodes[node] += by;
            }
            for node in lower {
                let counter = &mut nodes[node.index()];
                *counter = (*counter).max(token.get());
                cast(&mut tally, node.index(), Some(*counter));
            }
        }
        let Verdict::Granted(granted) = tally.verdict() else { return Err(TestCaseError::fail("no grant")) };
        prop_assert!(counters.iter().all(|counter| *counter <= granted.get()));
        let reached = nodes.iter().filter(|counter| **counter >= granted.get()).count();
        prop_assert!(reached >= majority(nodes.len()), "every later majority shares a node with it");
    }

    #[test]
    fn answers_of_unknown_nodes_are_ignored(votes in votes(), node in 7_u16.., counter in 1_u64..9) {
        let mut tally = Tally::new(votes.len());
        let before = tally.clone();
        tally.answer(NodeId::new(node), token(counter), Trust::Trusted);
        tally.refuse(NodeId::new(node));
        prop_assert_eq!(tally, before);
    }

    #[test]
    fn majority_holds_records_until_the_shared_deadline(deadlines in vec(proptest::option::of(0_u64..20), 0..8)) {
        let q = majority(deadlines.len());
        let known: Vec<u64> = deadlines.iter().flatten().copied().collect();
        let given = deadlines.iter().map(|at| at.map(Monotonic::from_ns));
        match shared_deadline(given, q) {
            None => prop_assert!(known.len() < q),
            Some(shared) => {
                let until = |at: u64| known.iter().filter(|deadline| **deadline >= at).count();
                prop_assert!(until(shared.ns()) >= q);
                prop_assert!(until(shared.ns() + 1) < q, "and no longer");
            }
        }
    }

    #[test]
    fn two_majorities_always_meet(nodes in 1_usize..=31) {
        prop_assert!(2 * majority(nodes) > nodes);
        prop_assert!(majority(nodes) <= nodes);
    }

    #[test]
    fn guard_never_goes_back(ops in vec((select(vec!["claim", "check", "ordered"]), 1_u64..6, 0_u64..4), 0..60)) {
        let mut guard = Guard::default();
        let mut mark: Option<(u64, u64)> = None;
        for (op, value, write) in ops {
            let passes = mark.is_none_or(|(high, _)| value >= high) && (op == "claim" || mark.is_some());
            let last = mark.filter(|(high, _)| *high == value).map_or(0, |(_, last)| last);
            let accepted = match op {
                "claim" => guard.claim(token(value)).is_ok(),
                "check" => guard.check(token(value)).is_ok(),
                _ => guard.check_in_order(token(value), write).is_ok(),
            };
            prop_assert_eq!(accepted, passes && (op != "ordered" || write > last), "{} {} {}", op, value, write);
            if passes {
                mark = Some((value, if op == "ordered" && write > last { write } else { last }));
            }
            prop_assert_eq!(guard.high_water().map(Token::get), mark.map(|(high, _)| high));
        }
    }
}
