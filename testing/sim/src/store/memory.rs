//! The reference node on a machine of its own: records run out by its uptime and keep the numbers of sends. Its memory
//! of past grants is that of the core's own [`serve`]. It has no run id, so only the loss of its marker shows that it
//! has forgotten anything.

use std::collections::BTreeMap;
use std::time::Duration;

use leasehold_core::line::{self, ClientId, Reserved, Waiter, serve_in_line};
use leasehold_core::node::NodeMemory;
use leasehold_core::op::Holder;
use leasehold_core::store::{Record, StoreNow, seen};
use leasehold_core::{LockId, Nonce, Resource, Token};

use super::member::{MemberState, Raised};
use crate::clock::Clock;
use crate::store::{Answer, Ask, By, StoredRecord, Ticket};

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Memory {
    records: BTreeMap<Resource, Record>,
    lines: BTreeMap<Resource, Vec<Waiter>>,
    messages: Vec<(Ticket, Resource, Duration)>,
    pub(super) member: MemberState,
}

impl Memory {
    pub(super) fn ask(&mut self, ask: &Ask<'_>, now: &StoreNow) -> Answer {
        let MemberState { marker, trust } = &mut self.member;
        let trusted = trust.get(ask.resource).map(|raised| raised.since);
        let memory = NodeMemory { marker: marker.as_ref(), trusted: trusted.as_ref(), run: None };
        let line = self.lines.get(ask.resource).map_or(&[][..], Vec::as_slice);
        // A request without a ticket is not in line.
        let ticket = as_kept(ask.ticket.unwrap_or(Ticket { client: u64::MAX, lock: LockId::new(0) }));
        let decided = serve_in_line(self.records.get(ask.resource), memory, line, ticket, ask.op, now);
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
        self.write_line(ask.resource, decided.line, decided.turn);
        Answer::Done(served.outcome)
    }

    pub(super) fn leave(&mut self, resource: &Resource, ticket: Ticket, now: &StoreNow) {
        let Some(line) = self.lines.get(resource) else { return };
        let (line, turn) = line::leave(line, as_kept(ticket), now);
        self.write_line(resource, line, turn);
    }

    /// A client has ended, and its process tells so.
    pub(super) fn forget(&mut self, client: u64, now: &StoreNow) {
        let of_client = |waiter: &&Waiter| shown(waiter.ticket).client == client;
        let places = self.lines.iter().flat_map(|(name, line)| line.iter().filter(of_client).map(move |at| (name, at)));
        let places: Vec<_> = places.map(|(name, waiter)| (name.clone(), shown(waiter.ticket))).collect();
        for (name, ticket) in places {
            self.leave(&name, ticket, now);
        }
    }

    pub(super) fn reserved_before(&self, resource: &Resource, ticket: Ticket, now: &StoreNow) -> Option<Reserved> {
        let line = self.lines.get(resource)?;
        let waiter = line.iter().find(|waiter| shown(waiter.ticket) == ticket)?;
        line::reserved_before(line, waiter.ticket, now)
    }

    pub(super) fn reserved_for(&self, resource: &Resource, now: &StoreNow) -> Option<Ticket> {
        line::reserved_for(self.lines.get(resource)?, now).map(shown)
    }

    pub(super) fn waiting(&self, resource: &Resource, now: &StoreNow) -> Vec<Ticket> {
        let line = self.lines.get(resource).map_or(&[][..], Vec::as_slice);
        line::waiting(line, now).map(|waiter| shown(waiter.ticket)).collect()
    }

    pub(super) fn take_messages(&mut self) -> Vec<(Ticket, Resource, Duration)> {
        std::mem::take(&mut self.messages)
    }

    fn write_line(&mut self, resource: &Resource, line: Option<Vec<Waiter>>, turn: Option<line::Ticket>) {
        if let Some(line) = line {
            self.lines.insert(resource.clone(), line);
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
        let mark = self.records.get(resource)?.mark.as_ref()?;
        (unix_ms < mark.until_unix_ms).then_some(mark.nonce)
    }

    pub(super) fn evict(&mut self, resource: &Resource) {
        if let Some(record) = self.records.get_mut(resource) {
            record.lease = None;
        }
    }
}

/// The ticket as the store keeps it.
fn as_kept(Ticket { client, lock }: Ticket) -> line::Ticket {
    line::Ticket { client: ClientId(u128::from(client).to_le_bytes()), lock }
}

fn shown(line::Ticket { client, lock }: line::Ticket) -> Ticket {
    Ticket { client: u64::try_from(u128::from_le_bytes(client.0)).unwrap_or(u64::MAX), lock }
}
