//! A finish that arrives late, when a copy of its own begin has been granted again.

use crate::Store;

/// Its requests are those of a client whose answers get lost, which only the feature `fuzzing` can make: `cargo xtask test`
/// has it.
#[cfg(not(feature = "fuzzing"))]
pub(crate) fn a_finish_counts_under_its_own_grant_alone(_: &Store) {}

#[cfg(feature = "fuzzing")]
pub(crate) use with_direct::a_finish_counts_under_its_own_grant_alone;

#[cfg(feature = "fuzzing")]
mod with_direct {
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::time::Duration;

    use leasehold::direct::Direct;
    use leasehold_core::member::Durability;
    use leasehold_core::op::{Acquire, Applied, Finish, Op, Outcome, Refusal, Release, Seen};
    use leasehold_core::{LockId, Nonce, Owner, Resource, Seq, Token, Version};

    use super::Store;
    use crate::common::eventually;

    const OURS: Nonce = Nonce::from_bytes([0x11; 16]);
    const THEIRS: Nonce = Nonce::from_bytes([0x22; 16]);

    struct Node {
        direct: Direct,
        resource: Resource,
        quorum: Option<Durability>,
        sent: AtomicU64,
    }

    impl Node {
        fn ask(&self, op: Op) -> Outcome {
            let id = self.sent.fetch_add(1, Ordering::Relaxed);
            self.direct.ask(id, LockId::new(1), &self.resource, &op)
        }

        fn begin(&self, nonce: Nonce, ttl_ms: u64, expect: Option<Version>) -> Result<Token, Option<Version>> {
            let begin = Acquire {
                expect,
                unless_done: true,
                ..Acquire::new(nonce, Seq::new(1), Duration::from_millis(ttl_ms))
            };
            match self.ask(Op::Acquire(Box::new(begin))) {
                Outcome::Applied(Applied::Acquired { counter }) => Ok(counter),
                Outcome::NotApplied(Refusal::Conflict(seen)) => Err(seen.holding.map(|holding| holding.version)),
                other => panic!("{other:?}"),
            }
        }

        fn finish(&self, counter: Token) -> Outcome {
            let (keep, owner) = (Duration::from_secs(3_600), Owner::new("we").unwrap());
            let finish = Finish { nonce: OURS, token: counter, counter, keep, owner, about: None, quorum: self.quorum };
            self.ask(Op::Finish(Box::new(finish)))
        }

        fn seen(&self) -> Seen {
            match self.ask(Op::Read) {
                Outcome::Applied(Applied::Read(seen)) => seen,
                other => panic!("{other:?}"),
            }
        }
    }

    pub(crate) fn a_finish_counts_under_its_own_grant_alone(store: &Store) {
        let node = Node {
            direct: Direct::open(store.url().split(' ').next().unwrap()).unwrap(),
            resource: Resource::new("report@monday").unwrap(),
            quorum: store.is_a_quorum().then_some(Durability::Declared),
            sent: AtomicU64::new(0),
        };
        let first = node.begin(OURS, 100, None).unwrap();
        // Others take the record over, and give it back without a word about the work.
        let mut shown = None;
        eventually("it is taken over", || match node.begin(THEIRS, 60_000, shown.clone()) {
            Ok(_) => true,
            Err(version) => {
                shown = version;
                false
            }
        });
        let back = node.ask(Op::Release(Release { nonce: THEIRS, quorum: node.quorum }));
        assert_eq!(back, Outcome::Applied(Applied::Released));

        let again = node.begin(OURS, 60_000, None).expect("nothing tells the copy from the first send");
        assert!(again > first);
        let late = node.finish(first);
        assert!(matches!(late, Outcome::NotApplied(Refusal::Conflict(_))), "{late:?}");
        let seen = node.seen();
        assert!(seen.done.is_none() && seen.held().is_some_and(|holding| holding.is_of(&OURS)), "{seen:?}");

        assert_eq!(node.finish(again), Outcome::Applied(Applied::Finished), "its own grant is finished");
        assert!(node.seen().done.is_some_and(|completion| completion.token == again));
        assert_eq!(node.finish(again), Outcome::Applied(Applied::Finished), "the answer may have been lost");
    }
}
