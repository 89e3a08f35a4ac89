//! Waiters that stand in the queue: their tickets, and the messages on their way to them and from them.

use std::collections::BTreeSet;

use leasehold_core::op::{Applied, LockOp, Op, Outcome, Refusal};
use leasehold_core::queue::Reserved;
use leasehold_core::{Departure, LockId};

use super::{Due, Input, World};
use crate::clock::TrueTime;
use crate::counts::Struck;
use crate::ledger::ProcessId;
use crate::promise::Promise;
use crate::script::Peer;
use crate::store::{Answer, Ticket};

/// The name of a process among all clients.
pub(super) fn number_of(process: ProcessId) -> u64 {
    (process.host as u64) << 32 | u64::from(process.n)
}

impl World<'_> {
    /// The ticket that an acquire shows: a process that listens has one for each of its locks.
    pub(super) fn ticket(&self, process: ProcessId, lock: LockId) -> Option<Ticket> {
        self.config.queues().then(|| Ticket { client: number_of(process), lock })
    }

    /// The tickets of a process that stand in the queue.
    pub(super) fn placed(&self, process: ProcessId) -> Vec<(LockId, Option<Reserved>)> {
        let names = self.resources.iter().filter(|_| self.config.queues());
        let store = &self.nodes[0].store;
        let tickets = names.flat_map(|name| store.queue(name, self.now).into_iter().map(move |ticket| (name, ticket)));
        let own = tickets.filter(|(_, ticket)| ticket.client == number_of(process));
        own.map(|(name, ticket)| (ticket.lock, store.reserved_before(name, ticket, self.now))).collect()
    }

    /// Sends what was published to the channels of clients.
    pub(super) fn tell_next(&mut self, node: usize) {
        for (Ticket { client, lock }, resource, after) in self.nodes[node].store.take_messages() {
            let host = usize::try_from(client >> 32).unwrap_or(usize::MAX);
            let Some(process) = self.hosts.get(host).map(|host| host.process) else { continue };
            let Some(resource) = self.number_of(&resource).filter(|_| number_of(process) == client) else { continue };
            // A waiter that is called for later keeps its place until then, even if another client takes the lock meanwhile.
            if after.is_zero() {
                self.queues.called(resource, Ticket { client, lock }, self.now);
            }
            let number = self.hosts[host].number(Peer::Wakeups, node);
            let fate = self.schedule.message(host, Peer::Wakeups, node, number);
            if fate.request.lost || self.now < self.hosts[host].cut_until[node] {
                self.counts.strike(Struck::WakeupLost);
                continue;
            }
            let at = self.travel(self.now, &fate.request);
            if let Some(ns) = fate.request.copy_ns {
                let at = at.plus(std::time::Duration::from_nanos(ns));
                self.push(at, Due::Client { process, input: Input::Reserved { resource, lock, after } });
            }
            self.push(at, Due::Client { process, input: Input::Reserved { resource, lock, after } });
        }
    }

    /// Sends the word that a ticket is given up. Nobody waits for an answer.
    pub(super) fn depart(&mut self, process: ProcessId, departure: &Departure, leaves: TrueTime) {
        let Some(resource) = self.number_of(&departure.resource) else { return };
        let (node, lock) = (departure.node.index(), departure.lock);
        let number = self.hosts[process.host].number(Peer::Wakeups, node);
        let fate = self.schedule.message(process.host, Peer::Wakeups, node, number);
        if !fate.request.lost && leaves >= self.hosts[process.host].cut_until[node] {
            let at = self.travel(leaves, &fate.request);
            self.push(at, Due::Leave { process, resource, node, lock });
        }
    }

    pub(super) fn departed(&mut self, process: ProcessId, resource: usize, node: usize, lock: LockId) {
        if self.nodes[node].is_away(self.now) {
            return;
        }
        let (name, ticket) = (self.resources[resource].clone(), Ticket { client: number_of(process), lock });
        let was_reserved = self.nodes[node].store.reserved_for(&name, self.now).is_some();
        self.nodes[node].store.leave(&name, ticket, self.now);
        self.queues.left(resource, ticket);
        self.tell_next(node);
        if was_reserved {
            self.check_hand_over(resource, node);
        }
        self.record_stores(resource);
    }

    /// Follows the queue of a lock by the requests that its store has carried out.
    pub(super) fn check_queue(
        &mut self,
        process: ProcessId,
        node: usize,
        LockOp { lock, resource, op }: &LockOp,
        was_ours: bool,
        answer: &Answer,
    ) {
        let (Answer::Done(outcome), Some(number)) = (answer, self.number_of(resource)) else { return };
        let ticket = Ticket { client: number_of(process), lock: *lock };
        match (op, outcome) {
            (Op::Acquire(acquire), Outcome::Applied(Applied::Acquired { .. })) if acquire.in_queue && !was_ours => {
                let alive = self.listeners();
                let is_alive = |ticket: Ticket| alive.contains(&ticket.client);
                if let Some(before) = self.queues.granted(number, ticket, self.now, is_alive) {
                    let text = format!("{ticket:?} is granted, and {before:?} joined before");
                    self.record_violation(Promise::Order, Some(process.host), Some(number), text);
                }
            }
            (Op::Acquire(acquire), Outcome::NotApplied(Refusal::Conflict(_))) if acquire.in_queue => {
                if self.nodes[node].store.queue(resource, self.now).contains(&ticket) {
                    self.queues.joined(number, ticket);
                }
            }
            (Op::Release(_) | Op::Finish(_), Outcome::Applied(_)) => self.check_hand_over(number, node),
            (_, _) => {}
        }
    }

    /// Checks that a lock that was freed just now has gone to somebody, if anybody in the queue is alive.
    fn check_hand_over(&mut self, resource: usize, node: usize) {
        let store = &self.nodes[node].store;
        let name = &self.resources[resource];
        if store.reserved_for(name, self.now).is_some() || self.stored_records(resource, 0)[node].is_some() {
            return;
        }
        if store.is_open_for_others(name, self.now) {
            return;
        }
        let alive = self.listeners();
        if let Some(first) = self.queues.first(resource, |ticket| alive.contains(&ticket.client)) {
            let text = format!("the lock is free, and {first:?} was not told");
            self.record_violation(Promise::HandOver, None, Some(resource), text);
        }
    }

    /// Checks that no lock is reserved for too long.
    pub(super) fn look_at_queues(&mut self) {
        if !self.config.queues() {
            return;
        }
        for resource in 0..self.resources.len() {
            let name = &self.resources[resource];
            let is_reserved = self.nodes.iter().any(|node| node.store.reserved_for(name, self.now).is_some());
            if is_reserved && self.queues.is_turn_over(resource, self.now) {
                let text = "the lock is still reserved, long after its turn was told".to_owned();
                self.record_violation(Promise::HandOver, None, Some(resource), text);
            }
        }
    }

    /// The clients that run.
    fn listeners(&self) -> BTreeSet<u64> {
        let running = self.hosts.iter().filter(|host| host.client.is_some());
        running.map(|host| number_of(host.process)).collect()
    }

    /// The connections of a process end with it.
    pub(super) fn hangs_up(&mut self, host: usize) {
        let client = number_of(self.hosts[host].process);
        let now = self.now;
        self.nodes.iter_mut().for_each(|node| node.store.listens(client, false, now));
    }
}
