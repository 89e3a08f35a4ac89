//! The inner workings of a [`Client`]: time passing, inputs reaching their machines, sends becoming requests.

use alloc::vec::Vec;
use core::time::Duration;

use super::{Client, Departure, LockIndex, Orphan, OrphanId, Output, Queued, Request, Target, Timer, Transmit};
use crate::event::Event;
use crate::ids::{NodeId, RequestId, Resource, Seq};
use crate::lease::{Effects, Input as LeaseInput, Machine, Send, node_ids};
use crate::one_or_many::OneOrMany;
use crate::op::{Fault, FaultKind, LockOp, Op, Outcome, Refusal};
use crate::prf::Entropy;
use crate::session::{Moment, Sessions, Step as SessionStep, Work};
use crate::time::{Monotonic, Now, batch_window, retry_cap};

/// The consequence of an input for the local queue.
enum After {
    Nothing,
    Waits,
    LeavesQueue,
    Ended,
}

impl Client {
    /// Lets time pass: everything that is due happens before the input that brought the new time.
    pub(super) fn advance(&mut self, now: Now, fresh: Option<&Entropy>) {
        self.env.tick(now);
        let monotonic = self.env.now.monotonic;
        while let Some(timer) = self.timers.pop_due(monotonic) {
            match timer {
                Timer::Lock(place) => {
                    if let Some(state) = self.locks.get_mut(place) {
                        state.timer = None;
                    }
                    self.drive(place, LeaseInput::Timeout);
                }
                Timer::Orphan(id) => {
                    if let Some(orphan) = self.orphans.get_mut(&id) {
                        orphan.timer = None;
                    }
                    self.drive_orphan(id, LeaseInput::Timeout);
                }
                Timer::Request(id) => self.time_out(id),
                Timer::Sessions => {
                    self.sweep = None;
                    self.with_sessions(Sessions::sweep);
                }
            }
        }
        let Some(fresh) = fresh else { return };
        while let Some(place) = self.starts.pop_due(monotonic) {
            if let Some(state) = self.locks.get_mut(place) {
                state.start = None;
            }
            self.start(place, fresh);
        }
    }

    pub(super) fn next_wake(&self) -> Monotonic {
        [self.timers.next(), self.starts.next()].into_iter().flatten().min().unwrap_or(Monotonic::FAR)
    }

    pub(super) fn start(&mut self, place: LockIndex, fresh: &Entropy) {
        let Some(floor) = self.locks.get(place).map(|state| self.env.floor(&state.resource)) else { return };
        self.drive(place, LeaseInput::Start { fresh, floor });
    }

    /// Passes one input to the machine of one lock, and carries out the effects.
    pub(super) fn drive(&mut self, place: LockIndex, input: LeaseInput<'_>) {
        if self.drive_alone(place, input) {
            self.renew_along(place);
        }
    }

    /// The same without other renewals. Returns true if a renewal was queued that others may travel with.
    fn drive_alone(&mut self, place: LockIndex, input: LeaseInput<'_>) -> bool {
        let mut out = core::mem::take(&mut self.scratch);
        let after = self.run(place, input, &mut out);
        let renewed = self.queue(place, &mut out);
        if let (Some(releasing), Some(state)) = (out.orphan.take(), self.locks.get(place)) {
            let (lock, resource, options) = (state.id, state.resource.clone(), state.options.clone());
            self.adopt(state.generation, Orphan { lock, resource, options, releasing, timer: None });
        }
        for event in out.events.drain(..) {
            if let (Event::Acquired { .. } | Event::Contended { .. }, Some(state)) = (&event, self.locks.get(place)) {
                self.env.note(&state.resource, &event);
            }
            self.note_place(&event);
            let answer = self.answer_for_others(place, &event);
            self.outputs.push_back(Output::Event(event));
            if let Some((failure, before)) = answer {
                self.fail_others(place, &failure, before);
            }
        }
        self.scratch = out;
        match after {
            After::Nothing => {}
            After::Waits => self.watch(place),
            After::LeavesQueue => self.leave_queue(place),
            After::Ended => self.drop_lock(place),
        }
        renewed
    }

    fn run(&mut self, place: LockIndex, input: LeaseInput<'_>, out: &mut Effects) -> After {
        let Some(state) = self.locks.get_mut(place) else { return After::Nothing };
        let machine = core::mem::replace(&mut state.machine, Machine::Ended);
        state.machine = self.env.run(machine, input, state.id, &state.resource, &state.options, out);
        self.timers.set(Timer::Lock(place), &mut state.timer, state.machine.wake_at());
        self.starts.set(place, &mut state.start, state.machine.start_at());
        match &state.machine {
            Machine::Ended => After::Ended,
            Machine::Waiting(_) => After::Waits,
            Machine::Releasing(releasing) if releasing.was_answered() => After::LeavesQueue,
            Machine::Releasing(_)
            | Machine::Revoked(_)
            | Machine::Idle(_)
            | Machine::Acquiring(_)
            | Machine::Held(_) => After::Nothing,
        }
    }

    /// Queues the sends of a machine. Returns true if there are renewals among them.
    fn queue(&mut self, place: LockIndex, out: &mut Effects) -> bool {
        if out.sends.is_empty() {
            return false;
        }
        let Some(state) = self.locks.get_mut(place) else { return false };
        let (lock, target) = (state.id, Target::Lock { place, generation: state.generation });
        let mut renewed = false;
        for send in out.sends.drain(..) {
            renewed |= matches!(send.op, Op::Renew(_));
            if let Op::Acquire(acquire) = &send.op {
                // It stands in the queue no more: what it left there would be told of turns, and let them pass.
                if state.in_queue && !acquire.in_queue {
                    let (node, resource) = (send.node, state.resource.clone());
                    self.departures.push_back(Departure { node, resource, lock });
                }
                state.in_queue = acquire.in_queue;
            }
            self.sends.push_back(Queued { target, lock, resource: state.resource.clone(), send });
        }
        renewed
    }

    fn adopt(&mut self, generation: u64, orphan: Orphan) {
        if self.orphans.len() >= self.env.config.limits().orphans {
            return;
        }
        let id = OrphanId { generation, number: self.next_orphan };
        self.next_orphan += 1;
        self.orphans.insert(id, Orphan { releasing: orphan.releasing.in_background(), ..orphan });
        self.drive_orphan(id, LeaseInput::Timeout);
    }

    fn drive_orphan(&mut self, id: OrphanId, input: LeaseInput<'_>) {
        let Some(Orphan { lock, resource, options, releasing, mut timer }) = self.orphans.remove(&id) else { return };
        // Nobody waits for this release, so its end is not reported.
        let mut out = Effects::default();
        let machine = self.env.run(Machine::Releasing(releasing), input, lock, &resource, &options, &mut out);
        self.timers.set(Timer::Orphan(id), &mut timer, machine.wake_at());
        for send in out.sends {
            self.sends.push_back(Queued { target: Target::Orphan(id), lock, resource: resource.clone(), send });
        }
        if let Machine::Releasing(releasing) = machine {
            self.orphans.insert(id, Orphan { lock, resource, options, releasing, timer });
        }
    }

    /// Renewals that would leave within a twelfth of their ttl travel with this one.
    fn renew_along(&mut self, place: LockIndex) {
        let Some(state) = self.locks.get(place) else { return };
        // One full request at a time: more of them would only queue up here.
        let most = self.env.config.nodes().iter().map(|node| node.batch - 1).min().unwrap_or(0);
        self.renew_others(place, batch_window(state.options.ttl()), most);
    }

    /// A node serves again: renewals that have waited for that leave now.
    fn catch_up(&mut self, place: LockIndex) {
        let Some(state) = self.locks.get(place) else { return };
        self.renew_others(place, retry_cap(state.options.ttl()), usize::MAX);
    }

    fn renew_others(&mut self, place: LockIndex, within: Duration, most: usize) {
        let until = self.env.now.monotonic.plus(within);
        let near = |timer| match timer {
            Timer::Lock(near) if near != place => Some(near),
            Timer::Lock(_) | Timer::Orphan(_) | Timer::Request(_) | Timer::Sessions => None,
        };
        // In a quorum, some of those that are near are only due to ask a node that fails, and queue nothing.
        let candidates = most.saturating_mul(self.env.config.nodes().len());
        let near: Vec<LockIndex> = self.timers.up_to(until).filter_map(near).take(candidates).collect();
        let mut left = most;
        for near in near {
            if left == 0 {
                break;
            }
            let timer = self.locks.get(near).and_then(|state| state.timer);
            // A timer that is due may be that of the deadline, which comes before any renewal.
            let is_due = timer.is_some_and(|at| at <= self.env.now.monotonic);
            let renewed =
                self.drive_alone(near, if is_due { LeaseInput::Timeout } else { LeaseInput::RenewAlong(until) });
            left -= usize::from(renewed);
        }
    }

    /// Passes an outcome to whom it concerns. A lease counts from `since`, if that is earlier than its send.
    pub(super) fn settle(
        &mut self,
        target: Target,
        node: NodeId,
        seq: Seq,
        outcome: Outcome,
        since: Option<Monotonic>,
    ) {
        if matches!(outcome, Outcome::NotApplied(Refusal::NeedsCredentials(_)))
            && let Some(state) = self.env.node_mut(node).filter(|state| !state.lacks_credentials)
        {
            state.lacks_credentials = true;
            self.outputs.push_back(Output::NeedCredentials { node });
        }
        match target {
            Target::Lock { place, generation } => {
                if self.locks.of_generation(place, generation).is_some() {
                    let failing =
                        |env: &super::Env| env.nodes.get(node.index()).is_some_and(|node| node.breaker.failures() > 0);
                    let was_failing = failing(&self.env);
                    self.drive(place, LeaseInput::Outcome { node, seq, outcome, since });
                    if was_failing && !failing(&self.env) {
                        self.catch_up(place);
                    }
                } else {
                    self.tell_orphans(generation, node, seq, &outcome);
                }
            }
            Target::Orphan(id) => self.drive_orphan(id, LeaseInput::Outcome { node, seq, outcome, since }),
            Target::Session(job) => self.with_sessions(|sessions, moment, out| {
                sessions.answered(job, outcome, moment, out);
            }),
            Target::Read(read) => self.answer_read(read, node, outcome),
        }
    }

    /// Has the layer of sessions do something, and carries out what it wants.
    pub(super) fn with_sessions(
        &mut self,
        act: impl FnOnce(&mut Sessions<Target>, Moment<'_>, &mut Vec<SessionStep<Target>>),
    ) {
        let mut steps = Vec::new();
        let moment = Moment { now: self.env.now.monotonic, seed: &self.env.seed, drift: self.env.config.drift() };
        act(&mut self.sessions, moment, &mut steps);
        self.timers.set(Timer::Sessions, &mut self.sweep, self.sessions.sweep_at());
        for step in steps {
            match step {
                SessionStep::Ask { job, node, lock, resource, op, patience } => {
                    // Only for renewals does the number of a send matter to us, and sessions keep theirs.
                    let deadline = self.env.now.monotonic.plus(patience);
                    let send = Send { node, seq: Seq::new(0), op, deadline };
                    self.sends.push_back(Queued { target: Target::Session(job), lock, resource, send });
                }
                SessionStep::Answer { target, node, seq, outcome, since } => {
                    self.settle(target, node, seq, outcome, since);
                }
            }
        }
    }

    /// Gives a send to the layer of sessions.
    fn send_in_session(&mut self, Queued { target, lock, resource, send }: Queued) {
        let patience = send.deadline.since(self.env.now.monotonic);
        let work = Work::new(target, lock, resource, (send.seq, send.op), patience);
        self.with_sessions(|sessions, moment, out| sessions.send(send.node, work, moment, out));
    }

    /// Passes a late answer to the releases that its lock has left behind.
    fn tell_orphans(&mut self, generation: u64, node: NodeId, seq: Seq, outcome: &Outcome) {
        let of_this_generation = OrphanId { generation, number: 0 }..=OrphanId { generation, number: u64::MAX };
        let left: Vec<OrphanId> = self.orphans.range(of_this_generation).map(|(id, _)| *id).collect();
        for id in left {
            self.drive_orphan(id, LeaseInput::Late { node, seq, outcome: outcome.clone() });
        }
    }

    /// Ends a request that the embedder has not answered in time: its outcome is unknown, even if an answer comes later.
    fn time_out(&mut self, id: RequestId) {
        let Some(request) = self.requests.remove(&id) else { return };
        self.timed_out_requests += 1;
        for (target, seq) in request.targets {
            self.settle(target, request.node, seq, Outcome::Unknown(Fault::of(FaultKind::Timeout)), None);
        }
    }

    /// Makes the next request of the waiting sends. Renewals to the same node share one.
    pub(super) fn next_transmit(&mut self) -> Option<Transmit> {
        loop {
            let first = self.sends.pop_front()?;
            if self.is_stale(&first) {
                continue;
            }
            if self.env.now.monotonic >= first.send.deadline {
                let fault = Fault::new(FaultKind::Timeout, "the request could not be sent in time");
                let never_sent = Outcome::NotApplied(Refusal::Unavailable(fault));
                self.settle(first.target, first.send.node, first.send.seq, never_sent, None);
                continue;
            }
            if self.is_for_session(&first) {
                self.send_in_session(first);
                continue;
            }
            return Some(self.request(first));
        }
    }

    /// Returns true if nobody waits for the answer any more, so that the send need not leave at all.
    fn is_stale(&self, queued: &Queued) -> bool {
        match queued.target {
            // The release of an attempt that was given up stands behind it in this queue.
            Target::Lock { place, generation } => match self.locks.of_generation(place, generation) {
                Some(state) => matches!(queued.send.op, Op::Renew(_)) && state.machine.deadline().is_none(),
                None => true,
            },
            Target::Orphan(id) => !self.orphans.contains_key(&id),
            Target::Session(_) | Target::Read(_) => false,
        }
    }

    fn is_for_session(&self, queued: &Queued) -> bool {
        !matches!(queued.target, Target::Session(_) | Target::Read(_))
            && self.sessions.takes(queued.send.node, &queued.send.op)
    }

    fn request(&mut self, first: Queued) -> Transmit {
        let (node, deadline) = (first.send.node, first.send.deadline);
        let is_renewal = matches!(first.send.op, Op::Renew(_));
        let mut transmit = Transmit { id: RequestId::new(self.next_request), node, deadline, ops: OneOrMany::new() };
        let mut request = Request { node, timer: None, targets: OneOrMany::new() };
        self.next_request += 1;
        let mut add = |Queued { target, lock, resource, send }: Queued| {
            transmit.deadline = transmit.deadline.min(send.deadline);
            transmit.ops.push(LockOp { lock, resource, op: send.op });
            request.targets.push((target, send.seq));
            transmit.ops.len()
        };
        let mut count = add(first);
        let nodes = self.env.config.nodes();
        let most = if is_renewal { nodes.get(node.index()).map_or(1, |node| node.batch) } else { 1 };
        // The renewals of a quorum's other nodes stand between those of this one. They are passed and wait for their own
        // request; no send to this node is.
        let (mut passed, most_passed) = (Vec::new(), most.saturating_mul(nodes.len() - 1));
        while count < most
            && let Some(next) = self.sends.front()
        {
            let is_other = next.send.node != node && passed.len() < most_passed;
            let fits = || {
                next.send.node == node
                    && matches!(next.send.op, Op::Renew(_))
                    && next.send.deadline > self.env.now.monotonic
                    && !self.is_stale(next)
                    && !self.is_for_session(next)
            };
            if !is_other && !fits() {
                break;
            }
            let Some(next) = self.sends.pop_front() else { break };
            if is_other {
                passed.push(next);
            } else {
                count = add(next);
            }
        }
        for passed in passed.into_iter().rev() {
            self.sends.push_front(passed);
        }
        self.timers.set(Timer::Request(transmit.id), &mut request.timer, Some(transmit.deadline));
        self.requests.insert(transmit.id, request);
        transmit
    }

    pub(super) fn drop_lock(&mut self, place: LockIndex) {
        self.leave_queue(place);
        let Some(mut state) = self.locks.remove(place) else { return };
        self.timers.set(Timer::Lock(place), &mut state.timer, None);
        self.starts.set(place, &mut state.start, None);
    }

    /// Lets the next one in the local queue try.
    fn leave_queue(&mut self, place: LockIndex) {
        let Some(state) = self.locks.get(place) else { return };
        let Some(queue) = self.queues.get_mut(&state.resource) else { return };
        if queue.head != place {
            // Removing each one at once would cost a walk along the queue. Now and then all of them are removed together.
            queue.gone += 1;
            if queue.gone > queue.waiting.len() / 2 {
                let locks = &self.locks;
                queue.waiting.retain(|(waiting, generation)| {
                    *waiting != place && locks.of_generation(*waiting, *generation).is_some()
                });
                queue.gone = 0;
            }
            return;
        }
        while let Some((next, generation)) = queue.waiting.pop_front() {
            if self.locks.of_generation(next, generation).is_none() {
                queue.gone = queue.gone.saturating_sub(1);
                continue;
            }
            queue.head = next;
            self.locks.note_turn(next);
            return self.drive(next, LeaseInput::Turn);
        }
        if self.queues.remove(&state.resource).is_some_and(|queue| queue.subscribed) {
            let resource = state.resource.clone();
            self.tell_watchers(&resource, false);
        }
    }

    /// Subscribes to wake-ups, which are useful while the head of a queue waits.
    fn watch(&mut self, place: LockIndex) {
        let Some(state) = self.locks.get(place) else { return };
        let Some(queue) = self.queues.get_mut(&state.resource).filter(|queue| !queue.subscribed) else { return };
        queue.subscribed = true;
        let resource = state.resource.clone();
        self.tell_watchers(&resource, true);
    }

    fn tell_watchers(&mut self, resource: &Resource, on: bool) {
        for (node, config) in node_ids(self.env.config.nodes().len()).zip(self.env.config.nodes()) {
            if config.watch {
                let resource = resource.clone();
                let output =
                    if on { Output::Subscribe { node, resource } } else { Output::Unsubscribe { node, resource } };
                self.outputs.push_back(output);
            }
        }
    }

    pub(super) fn is_ending(&self, place: LockIndex) -> bool {
        matches!(self.locks.get(place).map(|lock| &lock.machine), Some(Machine::Releasing(_)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Config, LockOptions, NodeConfig};
    use crate::ids::LockId;

    #[test]
    fn queue_is_compacted_when_more_than_half_has_left() {
        let (now, fresh) = (Now { monotonic: Monotonic::from_ns(0), unix_ms: 0 }, [7; 16]);
        let resource = Resource::new("r").unwrap();
        let mut client = Client::new(Config::new(alloc::vec![NodeConfig::default()]).unwrap(), [1; 32], now);
        for id in 0..=100 {
            let options = LockOptions::builder().build().unwrap();
            client.acquire(LockId::new(id), resource.clone(), options, &fresh, now).unwrap();
        }
        let mut length_without = |left: u64| {
            client.release(LockId::new(left), now).unwrap();
            client.queues[&resource].waiting.len()
        };
        assert!((1..=50).all(|left| length_without(left) == 100));
        assert_eq!(length_without(51), 49);
        assert!((52..=75).all(|left| length_without(left) == 49));
        assert_eq!(length_without(76), 24);
    }
}
