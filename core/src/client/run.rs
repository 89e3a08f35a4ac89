//! The inner workings of a [`Client`]: time passing, inputs reaching their machines, sends becoming requests.

use alloc::vec::Vec;

use super::{Client, Orphan, Output, Queued, Request, Target, Timer, Transmit};
use crate::ids::{LockId, NodeId, RequestId, Resource, Seq};
use crate::lease::{Effects, Input as LeaseInput, Machine, Send, node_ids};
use crate::op::{Fault, FaultKind, LockOp, Op, Outcome, Refusal};
use crate::prf::Entropy;
use crate::time::{Monotonic, Now, batch_window};

impl Client {
    /// Lets time pass: whatever is due happens before the input that brought the new time.
    pub(super) fn advance(&mut self, now: Now, fresh: Option<&Entropy>) {
        self.env.tick(now);
        let monotonic = self.env.now.monotonic;
        while let Some(timer) = self.timers.pop_due(monotonic) {
            match timer {
                Timer::Lock(lock) => self.drive(lock, LeaseInput::Timeout),
                Timer::Orphan(orphan) => self.drive_orphan(orphan, LeaseInput::Timeout),
                Timer::Request(id) => self.time_out(id),
            }
        }
        let Some(fresh) = fresh else { return };
        while let Some(lock) = self.starts.pop_due(monotonic) {
            self.start(lock, fresh);
        }
    }

    pub(super) fn next_wake(&self) -> Monotonic {
        if self.outputs.is_empty() && self.sends.is_empty() {
            [self.timers.next(), self.starts.next()].into_iter().flatten().min().unwrap_or(Monotonic::FAR)
        } else {
            self.env.now.monotonic
        }
    }

    pub(super) fn start(&mut self, lock: LockId, fresh: &Entropy) {
        self.drive(lock, LeaseInput::Start(fresh));
    }

    /// Hands one input to one lock's machine, and carries out what it wants.
    pub(super) fn drive(&mut self, lock: LockId, input: LeaseInput<'_>) {
        let Some((resource, out)) = self.run(lock, input) else { return };
        let mut renewed = false;
        for send in out.sends {
            renewed |= matches!(send.op, Op::Renew(_));
            self.queue(Target::Lock(lock), lock, &resource, send);
        }
        if let (Some(releasing), Some(state)) = (out.orphan, self.locks.get(&lock)) {
            let orphan = Orphan { lock, resource: resource.clone(), options: state.options.clone(), releasing };
            self.adopt(orphan);
        }
        for event in out.events {
            self.env.note(&resource, &event);
            self.outputs.push_back(Output::Event(event));
        }
        self.keep_line(lock, &resource);
        if renewed {
            self.renew_along(lock);
        }
    }

    fn run(&mut self, lock: LockId, input: LeaseInput<'_>) -> Option<(Resource, Effects)> {
        let state = self.locks.get_mut(&lock)?;
        let machine = core::mem::replace(&mut state.machine, Machine::Ended);
        let (machine, out) = self.env.run(machine, input, lock, &state.resource, &state.options);
        state.machine = machine;
        let resource = state.resource.clone();
        self.refresh(lock);
        Some((resource, out))
    }

    fn queue(&mut self, target: Target, lock: LockId, resource: &Resource, send: Send) {
        self.sends.push_back(Queued { target, lock, resource: resource.clone(), send });
    }

    fn adopt(&mut self, orphan: Orphan) {
        if self.orphans.len() >= self.env.config.limits().orphans {
            return;
        }
        let id = self.next_orphan;
        self.next_orphan += 1;
        self.orphans.insert(id, orphan);
        self.drive_orphan(id, LeaseInput::Timeout);
    }

    fn drive_orphan(&mut self, id: u64, input: LeaseInput<'_>) {
        let Some(Orphan { lock, resource, options, releasing }) = self.orphans.remove(&id) else { return };
        // Nobody waits for this release, so nobody is told how it ended.
        let (machine, out) = self.env.run(Machine::Releasing(releasing), input, lock, &resource, &options);
        self.timers.set(Timer::Orphan(id), machine.wake_at());
        for send in out.sends {
            self.queue(Target::Orphan(id), lock, &resource, send);
        }
        if let Machine::Releasing(releasing) = machine {
            self.orphans.insert(id, Orphan { lock, resource, options, releasing });
        }
    }

    /// Sets the lock's timers to what its machine wants; an ended lock leaves.
    pub(super) fn refresh(&mut self, lock: LockId) {
        let Some(state) = self.locks.get(&lock) else { return };
        if matches!(state.machine, Machine::Ended) {
            return;
        }
        self.timers.set(Timer::Lock(lock), state.machine.wake_at());
        self.starts.set(lock, state.machine.start_at());
    }

    /// Renewals that would leave within a twelfth of their ttl travel with this one.
    fn renew_along(&mut self, lock: LockId) {
        let Some(state) = self.locks.get(&lock) else { return };
        let until = self.env.now.monotonic.plus(batch_window(state.options.ttl()));
        let near: Vec<LockId> = self
            .timers
            .between(self.env.now.monotonic, until)
            .filter_map(|timer| match timer {
                Timer::Lock(near) if near != lock => Some(near),
                Timer::Lock(_) | Timer::Orphan(_) | Timer::Request(_) => None,
            })
            .collect();
        for near in near {
            let Some((resource, out)) = self.run(near, LeaseInput::RenewAlong) else { continue };
            for send in out.sends {
                self.queue(Target::Lock(near), near, &resource, send);
            }
        }
    }

    pub(super) fn settle(&mut self, target: Target, node: NodeId, seq: Seq, outcome: Outcome) {
        if matches!(outcome, Outcome::NotApplied(Refusal::NeedsCredentials(_)))
            && let Some(state) = self.env.node_mut(node).filter(|state| !state.lacks_credentials)
        {
            state.lacks_credentials = true;
            self.outputs.push_back(Output::NeedCredentials { node });
        }
        match target {
            Target::Lock(lock) => self.drive(lock, LeaseInput::Outcome { node, seq, outcome }),
            Target::Orphan(id) => self.drive_orphan(id, LeaseInput::Outcome { node, seq, outcome }),
        }
    }

    /// The host has not answered in time: the fate of the request is unknown, whatever comes later.
    fn time_out(&mut self, id: RequestId) {
        let Some(request) = self.requests.remove(&id) else { return };
        self.timed_out_requests += 1;
        for (target, seq) in request.targets {
            self.settle(target, request.node, seq, Outcome::Unknown(Fault::of(FaultKind::Timeout)));
        }
    }

    /// Turns waiting sends into one request; renewals to the same node share it.
    pub(super) fn next_transmit(&mut self) -> Option<Transmit> {
        loop {
            let first = self.sends.pop_front()?;
            if self.is_stale(&first) {
                continue;
            }
            if self.env.now.monotonic >= first.send.deadline {
                let fault = Fault::new(FaultKind::Timeout, "the request could not leave in time");
                let never_sent = Outcome::NotApplied(Refusal::Unavailable(fault));
                self.settle(first.target, first.send.node, first.send.seq, never_sent);
                continue;
            }
            return Some(self.request(first));
        }
    }

    /// Whether nobody waits for the answer any more, so that the send need not leave at all.
    fn is_stale(&self, queued: &Queued) -> bool {
        match queued.target {
            // An attempt that was given up has its release behind it in this very queue.
            Target::Lock(lock) => !self.locks.contains_key(&lock),
            Target::Orphan(id) => !self.orphans.contains_key(&id),
        }
    }

    fn request(&mut self, first: Queued) -> Transmit {
        let node = first.send.node;
        let most = self.env.config.nodes().get(node.index()).map_or(1, |node| node.batch);
        let is_renewal = matches!(first.send.op, Op::Renew(_));
        let mut batch = Vec::with_capacity(1);
        batch.push(first);
        while is_renewal && batch.len() < most {
            let same = |next: &Queued| next.send.node == node && matches!(next.send.op, Op::Renew(_));
            match self.sends.front() {
                Some(next) if same(next) && !self.is_stale(next) => batch.extend(self.sends.pop_front()),
                Some(_) | None => break,
            }
        }
        let id = RequestId::new(self.next_request);
        self.next_request += 1;
        let deadline = batch.iter().map(|queued| queued.send.deadline).fold(Monotonic::FAR, Monotonic::min);
        let targets = batch.iter().map(|queued| (queued.target, queued.send.seq)).collect();
        self.requests.insert(id, Request { node, targets });
        self.timers.set(Timer::Request(id), Some(deadline));
        let ops = batch
            .into_iter()
            .map(|Queued { lock, resource, send, .. }| LockOp { lock, resource, op: send.op })
            .collect();
        Transmit { id, node, deadline, ops }
    }

    /// Keeps the local line in order after something happened to one of its members.
    fn keep_line(&mut self, lock: LockId, resource: &Resource) {
        let Some(state) = self.locks.get(&lock) else { return };
        let (ended, leads) = (matches!(state.machine, Machine::Ended), state.machine.leads_line());
        if ended {
            self.drop_lock(lock);
        } else if !leads {
            self.step_aside(lock, resource);
        }
        self.watch(resource);
    }

    pub(super) fn drop_lock(&mut self, lock: LockId) {
        let Some(state) = self.locks.remove(&lock) else { return };
        self.timers.set(Timer::Lock(lock), None);
        self.starts.set(lock, None);
        self.step_aside(lock, &state.resource);
    }

    fn step_aside(&mut self, lock: LockId, resource: &Resource) {
        let Some(line) = self.lines.get_mut(resource) else { return };
        if line.head != lock {
            line.queue.retain(|waiting| *waiting != lock);
            return;
        }
        match line.queue.pop_front() {
            Some(next) => {
                line.head = next;
                self.drive(next, LeaseInput::Turn);
            }
            None => {
                let subscribed = line.subscribed;
                self.lines.remove(resource);
                if subscribed {
                    self.tell_watchers(resource, false);
                }
            }
        }
    }

    /// Wake-ups are wanted while the head of a line waits.
    fn watch(&mut self, resource: &Resource) {
        let Some(line) = self.lines.get_mut(resource) else { return };
        let waits = matches!(self.locks.get(&line.head).map(|lock| &lock.machine), Some(Machine::Waiting(_)));
        if waits && !line.subscribed {
            line.subscribed = true;
            self.tell_watchers(resource, true);
        }
    }

    fn tell_watchers(&mut self, resource: &Resource, on: bool) {
        for (node, _) in
            node_ids(self.env.config.nodes().len()).zip(self.env.config.nodes()).filter(|(_, config)| config.watch)
        {
            let resource = resource.clone();
            let output = if on { Output::Subscribe { node, resource } } else { Output::Unsubscribe { node, resource } };
            self.outputs.push_back(output);
        }
    }

    pub(super) fn is_leading(&self, lock: LockId) -> bool {
        let resource = self.locks.get(&lock).map(|state| &state.resource);
        resource.and_then(|resource| self.lines.get(resource)).is_some_and(|line| line.head == lock)
    }

    pub(super) fn is_ending(&self, lock: LockId) -> bool {
        matches!(self.locks.get(&lock).map(|lock| &lock.machine), Some(Machine::Releasing(_)))
    }
}
