//! The reference node on a machine of its own: records run out by its uptime and keep the numbers of sends. Its memory
//! of past grants is that of the core's own [`serve`]. It has no run id, so only the loss of its marker shows that it
//! has forgotten anything.

use std::collections::BTreeMap;

use leasehold_core::node::{NodeMemory, serve};
use leasehold_core::op::Holder;
use leasehold_core::store::{Record, StoreNow, seen};
use leasehold_core::{Nonce, Resource, Token};

use super::member::{MemberState, Raised};
use crate::clock::Clock;
use crate::store::{Answer, Ask, By, StoredRecord};

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Memory {
    records: BTreeMap<Resource, Record>,
    pub(super) member: MemberState,
}

impl Memory {
    pub(super) fn ask(&mut self, ask: &Ask<'_>, now: &StoreNow) -> Answer {
        let MemberState { marker, trust } = &mut self.member;
        let trusted = trust.get(ask.resource).map(|raised| raised.since);
        let memory = NodeMemory { marker: marker.as_ref(), trusted: trusted.as_ref(), run: None };
        let served = serve(self.records.get(ask.resource), memory, ask.op, now);
        if let Some(record) = served.record {
            self.records.insert(ask.resource.clone(), record);
        }
        if let Some(written) = served.marker {
            *marker = Some(written);
        }
        if let Some(since) = served.trusted {
            trust.insert(ask.resource.clone(), Raised { since, expires_ms: None });
        }
        Answer::Done(served.outcome)
    }

    pub(super) fn stored(&self, resource: &Resource, now: &StoreNow, wall: &Clock) -> Option<StoredRecord> {
        let record = self.records.get(resource);
        let seen = seen(record, now);
        let lease = record?.lease.as_ref()?;
        match seen.held()?.holder {
            Holder::Lease { nonce, .. } => {
                let until = (lease.boot == now.boot).then(|| wall.when(lease.expires.ns()));
                Some(StoredRecord { by: By::Attempt(nonce), until })
            }
            Holder::Foreign => None,
        }
    }

    pub(super) fn counter(&self, resource: &Resource) -> Option<Token> {
        self.records.get(resource).map(|record| record.counter)
    }

    pub(super) fn done_by(&self, resource: &Resource, unix_ms: u64) -> Option<Nonce> {
        let mark = self.records.get(resource)?.mark.as_ref()?;
        (unix_ms < mark.until_unix_ms).then_some(mark.nonce)
    }

    pub(super) fn evict(&mut self, resource: &Resource) {
        if let Some(record) = self.records.get_mut(resource) {
            record.lease = None;
        }
    }
}
