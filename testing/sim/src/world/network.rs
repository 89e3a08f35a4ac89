//! Messages on their way: lost, late, doubled, or delivered long after their sender gave up.

use std::time::Duration;

use leasehold_core::op::{
    Applied, Denial, DenialKind, Fault, FaultKind, LockOp, Op, Outcome, Refusal, Release, TransportFault,
};
use leasehold_core::store::StoreNow;
use leasehold_core::{NodeId, Nonce, RequestId, Resource, Transmit};

use super::host::FIRST_BOOT;
use super::queue::number_of;
use super::{Due, Input, World};
use crate::clock::TrueTime;
use crate::counts::{Sometimes, Struck};
use crate::ledger::ProcessId;
use crate::promise::Promise;
use crate::recorder::Journey;
use crate::script::{Message, Peer, Way, What};
use crate::store::{Answer, Ask, By, Form, Kind};

/// A request under way.
#[derive(Clone)]
pub(super) struct Packet {
    pub(super) process: ProcessId,
    pub(super) transmit: Transmit,
    /// The state of each of its operations.
    pub(super) legs: Vec<Leg>,
    /// The clocks of its sender when the first request left.
    pub(super) began: StoreNow,
    pub(super) fate: Message,
    pub(super) is_copy: bool,
}

/// One operation on its way, in as many requests as its store takes.
#[derive(Clone)]
pub(super) enum Leg {
    Open(Form),
    Done(Outcome),
}

impl Leg {
    fn outcome(&self) -> Option<Outcome> {
        match self {
            Self::Open(_) => None,
            Self::Done(outcome) => Some(outcome.clone()),
        }
    }
}

impl Packet {
    /// Nothing of it has been answered before.
    fn is_first(&self) -> bool {
        self.legs.iter().all(|leg| matches!(leg, Leg::Open(Form::Floor)))
    }
}

impl World<'_> {
    pub(super) fn send(&mut self, process: ProcessId, transmit: Transmit, leaves: TrueTime) {
        self.counts.requests += 1;
        let legs = vec![Leg::Open(Form::Floor); transmit.ops.len()];
        let began = self.store_now(process.host);
        self.post(process, transmit, legs, began, leaves);
    }

    fn post(&mut self, process: ProcessId, transmit: Transmit, legs: Vec<Leg>, began: StoreNow, leaves: TrueTime) {
        let node = transmit.node.index();
        let number = self.hosts[process.host].number(Peer::Store, node);
        let fate = self.schedule.message(process.host, Peer::Store, node, number);
        let arrives = self.travel(leaves, &fate.request);
        let lost = fate.request.lost || leaves < self.hosts[process.host].cut_until[node];
        let copy = fate.request.copy_ns.map(|ns| arrives.plus(Duration::from_nanos(ns)));
        if fate.request.delay_ns > 0 {
            self.counts.strike(Struck::RequestDelayed);
        }
        if let Some(ns) = fate.reset_ns {
            self.counts.strike(Struck::Reset);
            let result = Err(TransportFault::Unknown(Fault::of(FaultKind::Reset)));
            self.push(
                leaves.plus(Duration::from_nanos(ns)),
                Due::Client { process, input: Input::Reply { id: transmit.id, result } },
            );
        }
        let resource = transmit.ops.first().and_then(|op| self.number_of(&op.resource));
        let (delayed, copy_told) = (fate.request.delay_ns > 0, copy.filter(|_| !lost));
        let journey = Journey { resource, sent: leaves, arrives: (!lost).then_some(arrives), copy: copy_told, delayed };
        self.record(|recorder, _| recorder.sends(process.host, &transmit, journey));
        if lost {
            return self.counts.strike(Struck::RequestLost);
        }
        let packet = Packet { process, transmit, legs, began, fate, is_copy: false };
        self.last_arrival = self.last_arrival.max(copy.unwrap_or(arrives));
        if let Some(at) = copy {
            self.counts.strike(Struck::RequestCopied);
            // The answer to a copy takes a way of its own.
            let fate = Message { reply: Way::default(), ..fate };
            self.push(at, Due::Arrive(Box::new(Packet { fate, is_copy: true, ..packet.clone() })));
        }
        self.push(arrives, Due::Arrive(Box::new(packet)));
    }

    pub(super) fn travel(&self, leaves: TrueTime, way: &Way) -> TrueTime {
        leaves.plus(Duration::from_nanos(self.script.world.latency_ns + way.delay_ns))
    }

    pub(super) fn arrive(&mut self, mut packet: Packet) {
        let (host, node) = (&self.hosts[packet.process.host], packet.transmit.node.index());
        let windows = self.nodes[node].windows;
        if self.now < host.cut_until[node] {
            return self.counts.strike(Struck::RequestLost);
        }
        if self.now < windows.silent {
            return;
        }
        let given_up = host.clock.shows(self.now) >= packet.transmit.deadline.ns();
        if given_up || host.process != packet.process {
            self.counts.strike(Struck::Zombie);
        }
        if self.now < windows.down && packet.is_first() {
            let result = Err(TransportFault::NotSent(Fault::of(FaultKind::Unreachable)));
            return self.reply(&packet, result);
        }
        let refusal = if self.now < windows.down {
            Some(Refusal::Unavailable(Fault::of(FaultKind::Unreachable)))
        } else if self.now < windows.throttle {
            Some(Refusal::Throttled(Fault::of(FaultKind::Busy)))
        } else if self.now < windows.credentials {
            Some(Refusal::NeedsCredentials(Fault::of(FaultKind::Server)))
        } else if self.now < windows.denied {
            Some(Refusal::Denied(Denial::new(DenialKind::Permission, "not allowed")))
        } else {
            None
        };
        for (at, op) in packet.transmit.ops.iter().enumerate() {
            let Leg::Open(form) = packet.legs[at].clone() else { continue };
            let answer = match &refusal {
                Some(refusal) => form.failed(&op.op, Outcome::NotApplied(refusal.clone())),
                None => {
                    let answer = self.perform(&packet, node, op, &form);
                    let fails = self.now < windows.errors;
                    if fails { form.failed(&op.op, Outcome::Unknown(Fault::of(FaultKind::Server))) } else { answer }
                }
            };
            packet.legs[at] = match answer {
                Answer::Done(outcome) => Leg::Done(outcome),
                Answer::Again(form) => Leg::Open(form),
            };
        }
        if packet.is_copy && self.nodes[node].store.kind() == Kind::Dynamodb {
            // A request over HTTP has one answer, however often a proxy delivers it.
            return;
        }
        let outcomes: Option<Vec<Outcome>> = packet.legs.iter().map(Leg::outcome).collect();
        match outcomes {
            Some(outcomes) => self.reply(&packet, Ok(outcomes)),
            None => self.ask_again(packet),
        }
    }

    fn perform(&mut self, packet: &Packet, node: usize, lock_op: &LockOp, form: &Form) -> Answer {
        let LockOp { lock, resource, op } = lock_op;
        let process = packet.process;
        let store = &self.nodes[node].store;
        let caller = if store.kind() == Kind::Dynamodb { packet.began } else { self.store_now(process.host) };
        if self.number_of(resource).is_none() {
            // The record of a session. Its attempts are no attempts of a lock, and those of a burial bear the same nonce.
            let ask = Ask { resource, op, form: form.clone(), at: self.now, caller, ticket: None };
            return self.nodes[node].store.ask(&ask);
        }
        let forgotten = store.counter(resource, self.now).is_none();
        let before = self.phase(node).filter(|_| self.is_quorum());
        let doubted = self.is_quorum() && self.nodes[node].is_doubted(resource);
        let undone = store.undone(resource).map(|(nonce, _)| nonce);
        let ticket = self.ticket(process, *lock);
        let ask = Ask { resource, op, form: form.clone(), at: self.now, caller, ticket };
        let before_finish =
            matches!(op, Op::Finish(_)).then(|| self.nodes[node].records_of(resource, self.now, &caller));
        let stored = store.stored(resource, self.now, &caller);
        let was_ours = stored.is_some_and(|stored| op.nonce().map(By::Attempt) == Some(stored.by));
        let answer = self.nodes[node].store.ask(&ask);
        let number = self.number_of(resource).unwrap_or(0);
        // A lock that was written stands, whatever the codec sends next.
        let written = match (form, &answer) {
            (Form::Floor | Form::Step, Answer::Done(outcome)) => Some(outcome),
            (_, Answer::Again(form)) => form.told(),
            (Form::Look(_) | Form::Mark(_) | Form::Undo(_) | Form::Keep(_), Answer::Done(_)) => None,
        };
        match (written, op.nonce()) {
            (
                Some(Outcome::Applied(
                    applied @ (Applied::Acquired { .. }
                    | Applied::AcquiredInDoubt { .. }
                    | Applied::Renewed
                    | Applied::RenewedTold { .. }),
                )),
                Some(nonce),
            ) => {
                self.ledger.landed(self.now, &nonce, node);
                let is_renewal = matches!(applied, Applied::Renewed | Applied::RenewedTold { .. });
                // The record that was revoked has run out, and the same attempt is granted again.
                if !is_renewal && !was_ours {
                    self.revoked.remove(&(nonce, node));
                }
                if is_renewal && self.revoked.contains(&(nonce, node)) && !self.may_forget_revokes() {
                    let text = format!("node {node} renews a lease that is revoked");
                    self.record_violation(Promise::Loss, Some(process.host), Some(number), text);
                }
                if undone == Some(nonce) && !is_renewal {
                    self.counts.see(Sometimes::TakenAgain);
                }
                if forgotten && !is_renewal && self.ledger.was_granted(number) {
                    self.counts.see(Sometimes::Forgotten);
                }
            }
            (Some(Outcome::NotApplied(Refusal::Conflict(_))), Some(nonce)) => {
                self.see_obstacle(number, node, &nonce, process)
            }
            // The next in the queue was told alone.
            (Some(Outcome::Applied(Applied::Released)), _)
                if self.nodes[node].store.reserved_for(resource, self.now).is_some() => {}
            (Some(Outcome::Applied(Applied::Released | Applied::Finished)), _) => self.wake_up(number, node),
            (_, _) => {}
        }
        self.tell_next(node);
        if self.config.queues() {
            self.check_queue(process, node, lock_op, was_ours, &answer);
        }
        if let (Op::Release(Release { nonce, .. }), Answer::Done(outcome)) = (op, &answer)
            && matches!(outcome, Outcome::Applied(Applied::Released) | Outcome::NotApplied(Refusal::Abstains { .. }))
        {
            self.ledger.freed(process, nonce, node);
        }
        if let (Op::Finish(finish), Some((holder, done))) = (op, before_finish) {
            self.check_mark(node, number, finish.nonce, holder, done, &caller);
            if matches!(answer, Answer::Done(Outcome::Applied(Applied::Finished))) {
                self.ledger.freed(process, &finish.nonce, node);
                self.ledger.marked(&finish.nonce, node);
            }
        }
        if self.is_quorum() {
            if let Answer::Done(outcome) = &answer {
                self.see_vote(node, op, outcome, before);
            }
            if doubted && !self.nodes[node].is_doubted(resource) {
                self.counts.see(Sometimes::DoubtRaised);
            }
            self.remember(number, None);
        }
        self.audit(number);
        self.record_stores(number);
        answer
    }

    /// A supervisor has revoked the lease of this attempt, on some node.
    pub(super) fn was_revoked(&self, nonce: &Nonce) -> bool {
        self.revoked.iter().any(|(revoked, _)| revoked == nonce)
    }

    /// Nodes come back with older data, or none.
    fn may_forget_revokes(&self) -> bool {
        let forgets = |fault: &crate::script::Fault| {
            matches!(
                fault.what,
                What::StoreWiped | What::NodeWiped { .. } | What::NodeRestart { .. } | What::Evicted { .. }
            )
        };
        self.script.faults.iter().any(forgets)
    }

    fn see_obstacle(&mut self, resource: usize, node: usize, asking: &Nonce, process: ProcessId) {
        let Some(stored) = self.stored_records(resource, process.host)[node] else { return };
        let By::Attempt(nonce) = stored.by else { return };
        // Where observers have to wait, each begins at its first look, as after a reboot.
        let in_first_boot = self.script.world.one_kernel() && self.hosts[process.host].boot == FIRST_BOOT;
        let runs_out = stored.until.is_some() || in_first_boot;
        if nonce != *asking && runs_out && self.ledger.blocks(self.now, &nonce, node, self.drift) {
            self.counts.see(Sometimes::Orphan);
        }
    }

    /// The codec sends its next request, after the answer to the last.
    fn ask_again(&mut self, packet: Packet) {
        for leg in &packet.legs {
            match leg {
                Leg::Open(Form::Step) => self.counts.see(Sometimes::SecondForm),
                Leg::Open(Form::Undo(_)) => self.counts.see(Sometimes::Undone),
                Leg::Open(Form::Keep(_)) => self.counts.see(Sometimes::MadeItsOwn),
                Leg::Open(Form::Floor | Form::Look(_) | Form::Mark(_)) | Leg::Done(_) => {}
            }
        }
        let Packet { process, transmit, legs, began, fate, .. } = packet;
        if fate.reply.lost || !self.is_alive(process) {
            return self.counts.strike(Struck::ReplyLost);
        }
        let back = self.travel(self.now, &fate.reply);
        if self.hosts[process.host].clock.shows(back) < transmit.deadline.ns() {
            self.post(process, transmit, legs, began, back);
        }
    }

    fn reply(&mut self, packet: &Packet, result: Result<Vec<Outcome>, TransportFault>) {
        let (process, id, way) = (packet.process, packet.transmit.id, &packet.fate.reply);
        let arrives = self.travel(self.now, way);
        let node = packet.transmit.node.index();
        let lost = way.lost || self.now < self.hosts[process.host].cut_until[node];
        let copy = way.copy_ns.map(|ns| arrives.plus(Duration::from_nanos(ns)));
        let resource = packet.transmit.ops.first().and_then(|op| self.number_of(&op.resource));
        let (sent, delayed, copy_told) = (self.now, way.delay_ns > 0, copy.filter(|_| !lost));
        let journey = Journey { resource, sent, arrives: (!lost).then_some(arrives), copy: copy_told, delayed };
        self.record(|recorder, _| recorder.answers(node, process.host, &result, journey));
        if lost {
            return self.counts.strike(Struck::ReplyLost);
        }
        if way.delay_ns > 0 {
            self.counts.strike(Struck::ReplyDelayed);
        }
        if let Some(at) = copy {
            self.counts.strike(Struck::ReplyCopied);
            self.push(at, Due::Client { process, input: Input::Reply { id, result: result.clone() } });
        }
        self.push(arrives, Due::Client { process, input: Input::Reply { id, result } });
    }

    /// Enters a response in the ledger, when it is passed to a client that still waits for it.
    pub(super) fn note_reply(
        &mut self,
        process: ProcessId,
        id: RequestId,
        result: &Result<Vec<Outcome>, TransportFault>,
    ) {
        let refused = TransportFault::outcome;
        let outcome = match result {
            Ok(outcomes) => outcomes.first().cloned(),
            Err(fault) => Some(refused(fault)),
        };
        let now = self.hosts[process.host].now(self.now).monotonic;
        let lock = self.ledger.answered(process, id, outcome.as_ref(), now);
        if let Some(Outcome::NotApplied(Refusal::Throttled(_))) = outcome {
            self.hosts[process.host].throttled.extend(lock);
            self.counts.see(Sometimes::ThrottledWait);
            self.has_patience_with(process, lock);
        } else if let Some(lock) = lock.filter(|_| !self.is_quorum()) {
            // A node of several that has throttled is not asked again before the next attempt.
            self.hosts[process.host].throttled.remove(&lock);
        }
    }

    pub(super) fn subscribe(
        &mut self,
        process: ProcessId,
        resource: &Resource,
        node: NodeId,
        on: bool,
        leaves: TrueTime,
    ) {
        let Some(resource) = self.number_of(resource) else { return };
        let at = self.travel(leaves, &Way::default());
        self.push(at, Due::Watch { process, resource, node: node.index(), on });
    }

    pub(super) fn watch(&mut self, process: ProcessId, resource: usize, node: usize, on: bool) {
        if on {
            self.watchers.insert((resource, process, node));
            if self.is_alive(process) {
                // The client's own channel is subscribed to with the first wait, for good.
                self.nodes[node].store.listens(number_of(process), true, self.now);
            }
            let at = self.after(self.script.world.latency_ns);
            self.push(at, Due::Client { process, input: Input::Subscribed { resource, node } });
        } else {
            self.watchers.remove(&(resource, process, node));
        }
    }

    /// Notifies all watchers of a resource. Each message has its own fate.
    fn wake_up(&mut self, resource: usize, node: usize) {
        if !self.script.world.watch {
            return;
        }
        let here = |(of, _, at): &&(usize, ProcessId, usize)| *of == resource && *at == node;
        let watchers: Vec<ProcessId> = self.watchers.iter().filter(here).map(|(_, process, _)| *process).collect();
        for process in watchers {
            let number = self.hosts[process.host].number(Peer::Wakeups, node);
            let fate = self.schedule.message(process.host, Peer::Wakeups, node, number);
            if fate.request.lost || self.now < self.hosts[process.host].cut_until[node] {
                self.counts.strike(Struck::WakeupLost);
                continue;
            }
            let at = self.travel(self.now, &fate.request);
            self.push(at, Due::Client { process, input: Input::Notified { resource } });
        }
    }
}
