//! A supervisor that revokes leases and tells their sessions. It runs on host 0, and its messages are as late as others.

use std::time::Duration;

use leasehold_core::op::{Applied, Holding, Op, Outcome, Revoke, Seen};
use leasehold_core::{Resource, session};

use super::{Due, World};
use crate::counts::{Sometimes, Struck};
use crate::script::Peer;
use crate::store::{Answer, Ask, By, Form};

/// The host that it shares its clocks and its network with.
const PLACE: usize = 0;

/// Word to a session that a row which names it was changed.
#[derive(Clone)]
pub(super) struct Tell {
    node: usize,
    record: Resource,
    op: Op,
    /// The session's record when the word was sent.
    seen: Holding,
}

impl World<'_> {
    /// A supervisor reads who holds the lock, and revokes that lease on each node that answers.
    pub(super) fn revoke(&mut self, resource: usize) {
        let name = self.resources[resource].clone();
        let stored = self.stored_records(resource, PLACE);
        let holders = stored.iter().flatten().filter_map(|stored| match stored.by {
            By::Attempt(nonce) => Some(nonce),
            By::Foreign(_) => None,
        });
        let Some(nonce) = holders.max_by_key(|nonce| self.backing(resource, PLACE, By::Attempt(*nonce))) else {
            return;
        };
        let op = Op::Revoke(Revoke { nonce });
        for node in 0..self.nodes.len() {
            if self.now < self.nodes[node].windows.down {
                continue;
            }
            if self.order(node, &name, &op) == Some(Applied::Revoked) {
                // Where observers wait, they see that the record has moved.
                self.ledger.landed(self.now, &nonce, node);
                self.revoked.insert((nonce, node));
                self.strike_store(Struck::Revoked, node);
                self.tell_session(node, &name);
            }
        }
    }

    /// Tells the session that the lock's record names. Meanwhile it may be renewed, and for longer.
    fn tell_session(&mut self, node: usize, name: &Resource) {
        let Some(session) = self.look(node, name).and_then(|holding| holding.session) else { return };
        let Some(record) = session::resource_of(&session.label) else { return };
        let Some(seen) = self.look(node, &record) else { return };
        let op = session::tell(&session);
        let number = self.hosts[PLACE].number(Peer::Session, node);
        let fate = self.schedule.message(PLACE, Peer::Session, node, number).request;
        if fate.lost || self.now < self.hosts[PLACE].cut_until[node] {
            return self.counts.strike(Struck::RequestLost);
        }
        let tell = Tell { node, record, op, seen };
        let arrives = self.travel(self.now, &fate);
        if let Some(ns) = fate.copy_ns {
            self.counts.strike(Struck::RequestCopied);
            self.push(arrives.plus(Duration::from_nanos(ns)), Due::Tell(Box::new(tell.clone())));
        }
        self.push(arrives, Due::Tell(Box::new(tell)));
    }

    /// The word arrives.
    pub(super) fn told(&mut self, tell: &Tell) {
        let Tell { node, record, op, seen } = tell;
        let windows = self.nodes[*node].windows;
        if self.now < windows.throttle.max(windows.credentials).max(windows.denied)
            || self.nodes[*node].is_away(self.now)
        {
            return;
        }
        let Some(now) = self.look(*node, record) else { return };
        let applied = self.order(*node, record, op);
        if applied.is_some() && now.holder != seen.holder {
            self.counts.see(Sometimes::ToldLate);
            if now.record_ttl > seen.record_ttl {
                self.counts.see(Sometimes::ToldLonger);
            }
        }
    }

    fn look(&mut self, node: usize, resource: &Resource) -> Option<Holding> {
        let Applied::Read(Seen { holding, .. }) = self.order(node, resource, &Op::Read)? else { return None };
        holding.map(|holding| *holding)
    }

    /// Has a node carry out an operation now.
    fn order(&mut self, node: usize, resource: &Resource, op: &Op) -> Option<Applied> {
        let ask = Ask { resource, op, form: Form::Floor, at: self.now, caller: self.store_now(PLACE), ticket: None };
        match self.nodes[node].store.ask(&ask) {
            Answer::Done(Outcome::Applied(applied)) => Some(applied),
            Answer::Done(_) | Answer::Again(_) => None,
        }
    }
}
