//! The reference node on a machine of its own: records run out by its uptime and keep the numbers of sends. Its memory
//! of past grants is that of the core's own [`serve`]. It has no run id, so only the loss of its marker shows that it
//! has forgotten anything.

use std::collections::BTreeMap;
use std::time::Duration;

use leasehold_core::node::NodeMemory;
use leasehold_core::op::Holder;
use leasehold_core::queue::{self, ClientId, Reserved, Waiter, serve_in_queue};
use leasehold_core::store::{Record, StoreNow, seen};
use leasehold_core::{LockId, Nonce, Resource, Token};

use super::member::{MemberState, Raised};
use crate::clock::Clock;
use crate::store::{Answer, Ask, By, StoredRecord, Ticket};

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Memory {
    records: BTreeMap<Resource, Record>,
    queues: BTreeMap<Resource, Vec<Waiter>>,
    messages: Vec<(Ticket, Resource, Duration)>,
    pub(super) member: MemberState,
}

impl Memory {
    pub(super) fn ask(&mut self, ask: &Ask<'_>, now: &StoreNow) -> Answer {
        let MemberState { marker, trust } = &mut self.member;
        let trusted = trust.get(ask.resource).map(|raised| raised.since);
        let memory = NodeMemory { marker: marker.as_ref(), trusted: trusted.as_ref(), run: None };
        let queue = self.queues.get(ask.resource).map_or(&[][..], Vec::as_slice);
        // A request without a ticket is not in the queue.
        let ticket = as_kept(ask.ticket.unwrap_or(Ticket { client: u64::MAX, lock: LockId::new(0) }));
        let decided = serve_in_queue(self.records.get(ask.resource), memory, queue, ticket, ask.op, now);
        let served = decided.served;
        if let Some(record) = served.record {
            self.records.insert(ask.resource.clone(), record);
        }
        if let Some(written) = served.marker {
            *marker = Some(written);
        }
        if let Some(since) = served.trusted {
            trust.insert(ask.resource.clone(), Raised { since, expires_ms: None });
        }
        self.write_queue(ask.resource, decided.queue, decided.turn);
        Answer::Done(served.outcome)
    }

    pub(super) fn leave(&mut self, resource: &Resource, ticket: Ticket, now: &StoreNow) {
        let Some(queue) = self.queues.get(resource) else { return };
        let (queue, turn) = queue::leave(queue, as_kept(ticket), now);
        self.write_queue(resource, queue, turn);
    }

    /// A client has ended, and its process tells so.
    pub(super) fn forget(&mut self, client: u64, now: &StoreNow) {
        let of_client = |waiter: &&Waiter| shown(waiter.ticket).client == client;
        let places =
            self.queues.iter().flat_map(|(name, queue)| queue.iter().filter(of_client).map(move |at| (name, at)));
        let places: Vec<_> = places.map(|(name, waiter)| (name.clone(), shown(waiter.ticket))).collect();
        for (name, ticket) in places {
            self.leave(&name, ticket, now);
        }
    }

    pub(super) fn reserved_before(&self, resource: &Resource, ticket: Ticket, now: &StoreNow) -> Option<Reserved> {
        let queue = self.queues.get(resource)?;
        let waiter = queue.iter().find(|waiter| shown(waiter.ticket) == ticket)?;
        queue::reserved_before(queue, waiter.ticket, now)
    }

    pub(super) fn reserved_for(&self, resource: &Resource, now: &StoreNow) -> Option<Ticket> {
        queue::reserved_for(self.queues.get(resource)?, now).map(shown)
    }

    pub(super) fn waiting(&self, resource: &Resource, now: &StoreNow) -> Vec<Ticket> {
        let queue = self.queues.get(resource).map_or(&[][..], Vec::as_slice);
        queue::waiting(queue, now).map(|waiter| shown(waiter.ticket)).collect()
    }

    pub(super) fn take_messages(&mut self) -> Vec<(Ticket, Resource, Duration)> {
        std::mem::take(&mut self.messages)
    }

    fn write_queue(&mut self, resource: &Resource, queue: Option<Vec<Waiter>>, turn: Option<queue::Ticket>) {
        if let Some(queue) = queue {
            self.queues.insert(resource.clone(), queue);
        }
        self.messages.extend(turn.map(|ticket| (shown(ticket), resource.clone(), Duration::ZERO)));
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
        let completion = self.records.get(resource)?.completion.as_ref()?;
        (unix_ms < completion.until_unix_ms).then_some(completion.nonce)
    }

    pub(super) fn evict(&mut self, resource: &Resource) {
        if let Some(record) = self.records.get_mut(resource) {
            record.lease = None;
        }
    }
}

/// The ticket as the store keeps it.
fn as_kept(Ticket { client, lock }: Ticket) -> queue::Ticket {
    queue::Ticket { client: ClientId(u128::from(client).to_le_bytes()), lock }
}

fn shown(queue::Ticket { client, lock }: queue::Ticket) -> Ticket {
    Ticket { client: u64::try_from(u128::from_le_bytes(client.0)).unwrap_or(u64::MAX), lock }
}
