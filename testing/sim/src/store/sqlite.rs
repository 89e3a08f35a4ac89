//! A file shared by the processes of one machine: the reference store, run by the process that asks.

use std::collections::BTreeMap;

use leasehold_core::op::{Holder, Op, Outcome, Refusal};
use leasehold_core::session::none_is_told;
use leasehold_core::store::{Record, StoreNow, apply, seen};
use leasehold_core::{Nonce, Resource, Token};

use crate::store::{Answer, Ask, By, StoredRecord};

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Sqlite {
    records: BTreeMap<Resource, Record>,
}

impl Sqlite {
    /// There is no server, so the clocks of the asking process decide: its boot, its uptime.
    pub(super) fn ask(&mut self, ask: &Ask<'_>) -> Answer {
        if matches!(ask.op, Op::Tell(_)) {
            return Answer::Done(Outcome::NotApplied(Refusal::Denied(none_is_told())));
        }
        let decision = apply(self.records.get(ask.resource), ask.op, &ask.caller);
        if let Some(record) = decision.write {
            self.records.insert(ask.resource.clone(), record);
        }
        Answer::Done(decision.outcome)
    }

    pub(super) fn stored(&self, resource: &Resource, caller: &StoreNow) -> Option<StoredRecord> {
        let seen = seen(self.records.get(resource), caller);
        match seen.held()?.holder {
            Holder::Lease { nonce, .. } => Some(StoredRecord { by: By::Attempt(nonce), until: None }),
            Holder::Foreign => None,
        }
    }

    pub(super) fn counter(&self, resource: &Resource) -> Option<Token> {
        self.records.get(resource).map(|record| record.counter)
    }

    pub(super) fn done_by(&self, resource: &Resource, unix_ms: u64) -> Option<Nonce> {
        let completion = self.records.get(resource)?.completion.as_ref()?;
        (unix_ms < completion.until_unix_ms).then_some(completion.nonce)
    }

    pub(super) fn evict(&mut self, resource: &Resource) {
        if let Some(record) = self.records.get_mut(resource) {
            record.lease = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::store::Kind;
    use crate::store::tests::*;

    #[test]
    fn record_expires_by_uptime_of_its_boot() {
        let mut bench = Bench::new(Kind::Sqlite);
        let first = bench.grant(1, 1);
        bench.pass(999);
        assert_eq!(shown(&bench.ask(&acquire(2, 1))), Some((1, Some(1), false)));
        bench.pass(1);
        assert_eq!(bench.holder(), None);
        assert!(bench.grant(2, 2) > first);
    }

    #[test]
    fn record_of_another_boot_is_taken_over_by_observation() {
        let mut bench = Bench::new(Kind::Sqlite);
        bench.grant(1, 1);
        bench.boot += 1;
        bench.pass(3_600_000);
        let seen = holding(&bench.ask(&acquire(2, 1)));
        assert_eq!((seen.left, seen.record_ttl), (None, Some(TTL)), "its uptime says nothing here");
        assert_eq!(shown(&bench.ask(&takeover(2, 2, &version(1, 7)))), Some((1, Some(1), false)));
        assert!(is_grant(&bench.ask(&takeover(2, 3, &seen.version))));
    }
}
