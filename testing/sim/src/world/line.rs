//! Waiters that stand in line: their tickets, and the messages on their way to them and from them.

use leasehold_core::{Departure, LockId};

use super::{Due, Input, World};
use crate::clock::TrueTime;
use crate::counts::Struck;
use crate::ledger::ProcessId;
use crate::script::Peer;
use crate::store::Ticket;

/// The name of a process among all clients.
pub(super) fn number_of(process: ProcessId) -> u64 {
    (process.host as u64) << 32 | u64::from(process.n)
}

impl World<'_> {
    /// The ticket that an acquire shows: a process that listens has one for each of its locks.
    pub(super) fn ticket(&self, process: ProcessId, lock: LockId) -> Option<Ticket> {
        self.config.lines().then(|| Ticket { client: number_of(process), lock })
    }

    /// Sends what was published to the channels of clients.
    pub(super) fn tell_next(&mut self, node: usize) {
        for (Ticket { client, lock }, resource) in self.nodes[node].store.take_messages() {
            let host = usize::try_from(client >> 32).unwrap_or(usize::MAX);
            let Some(process) = self.hosts.get(host).map(|host| host.process) else { continue };
            let Some(resource) = self.number_of(&resource).filter(|_| number_of(process) == client) else { continue };
            let number = self.hosts[host].number(Peer::Wakeups, node);
            let fate = self.schedule.message(host, Peer::Wakeups, node, number);
            if fate.request.lost || self.now < self.hosts[host].cut_until[node] {
                self.counts.strike(Struck::WakeupLost);
                continue;
            }
            let at = self.travel(self.now, &fate.request);
            if let Some(ns) = fate.request.copy_ns {
                let at = at.plus(std::time::Duration::from_nanos(ns));
                self.push(at, Due::Client { process, input: Input::Reserved { resource, lock } });
            }
            self.push(at, Due::Client { process, input: Input::Reserved { resource, lock } });
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
        let name = self.resources[resource].clone();
        self.nodes[node].store.leave(&name, Ticket { client: number_of(process), lock }, self.now);
        self.tell_next(node);
        self.record_stores(resource);
    }

    /// The connections of a process end with it.
    pub(super) fn hangs_up(&mut self, host: usize) {
        let client = number_of(self.hosts[host].process);
        self.nodes.iter_mut().for_each(|node| node.store.listens(client, false));
    }
}
