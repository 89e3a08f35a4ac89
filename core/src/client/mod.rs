//! Many locks at once: correlation, local queues, timers, limits, and the one loop that drives them.

mod env;
mod io;
mod locks;
mod queue;
mod reads;
mod run;
mod sightings;

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::vec::Vec;
use core::time::Duration;

use env::Env;
pub use io::{Error, Input, Output, Stats, Transmit};
use locks::{Lock, LockIndex, Locks};
pub use queue::Departure;
use reads::Read;
pub use reads::Revocation;

use crate::about::{About, RunResult};
use crate::config::{Config, LockOptions, MAX_KEEP, Quorum};
use crate::event::{Event, Failure};
use crate::ids::{LockId, NodeId, Nonce, ReadId, RequestId, Resource, Seq, Version};
use crate::lease::{Acquisition, Effects, Idle, Input as LeaseInput, Machine, Releasing, Send, node_ids};
use crate::member::LossId;
use crate::one_or_many::OneOrMany;
use crate::op::{Fault, FaultKind, Holder, Holding, Outcome, TransportFault};
use crate::prf::{Entropy, Seed};
use crate::session::{JobId, Sessions};
use crate::time::{Monotonic, Now};
use crate::timers::{Entry, Timers};

/// The sans-IO client. See the [crate docs](crate) for the loop that drives it.
///
/// Every method first expires what is due at its `now`. No method blocks, draws randomness or reads a clock.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Client {
    env: Env,
    closed: bool,
    locks: Locks,
    queues: BTreeMap<Resource, LocalQueue>,
    orphans: BTreeMap<OrphanId, Orphan>,
    next_orphan: u64,
    requests: BTreeMap<RequestId, Request>,
    reads: BTreeMap<ReadId, Read>,
    next_read: u64,
    next_request: u64,
    timers: Timers<Timer>,
    /// The times at which attempts may start. A start needs fresh entropy, so these are not ordinary timers.
    starts: Timers<LockIndex>,
    sends: VecDeque<Queued>,
    outputs: VecDeque<Output>,
    departures: VecDeque<Departure>,
    /// Empty between calls; kept to reuse its memory.
    scratch: Effects,
    ignored_responses: u64,
    timed_out_requests: u64,
    sessions: Sessions<Target>,
    sweep: Entry,
}

/// All acquisitions of one resource: the first contends, the others wait in order.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct LocalQueue {
    head: LockIndex,
    /// The acquisitions behind it, with their generations. Up to half of them have left since.
    waiting: VecDeque<(LockIndex, u64)>,
    gone: usize,
    subscribed: bool,
}

/// The name of an orphan: the generation of the lock that left it behind, and a number, since one lock can leave several.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct OrphanId {
    generation: u64,
    number: u64,
}

/// A release that outlives its lock.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Orphan {
    lock: LockId,
    resource: Resource,
    options: LockOptions,
    releasing: Box<Releasing>,
    timer: Entry,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Request {
    node: NodeId,
    timer: Entry,
    targets: OneOrMany<(Target, Seq)>,
}

/// The receiver of an outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Target {
    Lock { place: LockIndex, generation: u64 },
    Orphan(OrphanId),
    Session(JobId),
    Read(ReadId),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Timer {
    Lock(LockIndex),
    Orphan(OrphanId),
    Request(RequestId),
    Sessions,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Queued {
    target: Target,
    lock: LockId,
    resource: Resource,
    send: Send,
}

impl Client {
    /// A client of the configured nodes. `seed` serves jitter and names the session; other nonces take fresh entropy with
    /// every call that may start an attempt.
    pub fn new(config: Config, seed: Seed, now: Now) -> Self {
        let observed = node_ids(config.nodes().len()).map(|node| config.is_observed(node));
        let sessions = Sessions::new(config.session().cloned(), observed, config.limits().observations);
        Self {
            sessions,
            sweep: None,
            env: Env::new(config, seed, now),
            closed: false,
            locks: Locks::default(),
            queues: BTreeMap::new(),
            orphans: BTreeMap::new(),
            next_orphan: 0,
            requests: BTreeMap::new(),
            reads: BTreeMap::new(),
            next_read: 0,
            next_request: 0,
            timers: Timers::default(),
            starts: Timers::default(),
            sends: VecDeque::new(),
            outputs: VecDeque::new(),
            departures: VecDeque::new(),
            scratch: Effects::default(),
            ignored_responses: 0,
            timed_out_requests: 0,
        }
    }

    /// Starts an acquisition under a lock id of the caller's choice. It ends with [`Event::Acquired`] or
    /// [`Event::Failed`].
    ///
    /// `fresh` are 16 bytes that the embedder drew from the operating system for this call.
    ///
    /// # Errors
    /// [`Error::DuplicateLock`], [`Error::TooManyLocks`], [`Error::AboveMaxTtl`], [`Error::AboveMaxKeep`],
    /// [`Error::Closed`].
    pub fn acquire(
        &mut self,
        lock: LockId,
        resource: Resource,
        options: LockOptions,
        fresh: &Entropy,
        now: Now,
    ) -> Result<(), Error> {
        self.advance(now, None);
        if self.closed {
            return Err(Error::Closed);
        }
        if self.locks.find(lock).is_some() {
            return Err(Error::DuplicateLock);
        }
        let (record_ttl, quorum) = (options.record_ttl(), self.env.config.quorum());
        if let Some(max_ttl) = quorum.map(Quorum::max_ttl).filter(|max_ttl| record_ttl > *max_ttl) {
            return Err(Error::AboveMaxTtl { record_ttl, max_ttl });
        }
        let max_keep = quorum.map_or(MAX_KEEP, Quorum::max_keep);
        if let Some(run) = options.run().filter(|run| run.keep > max_keep) {
            return Err(Error::AboveMaxKeep { keep: run.keep, max_keep });
        }
        let limit = self.env.config.limits().locks;
        if self.locks.len() >= limit {
            return Err(Error::TooManyLocks { limit });
        }
        let acquisition = Acquisition::new(options.wait(), self.env.now);
        let behind = self.queues.get(&resource).map(|queue| (queue.head, queue.waiting.is_empty()));
        let ahead = behind.and_then(|(head, _)| self.describe(head));
        let once = options.wait().is_for_nobody();
        let joins = self.joins_others(&resource, &options);
        let machine = Machine::Idle(Idle::new(acquisition, ahead.clone()));
        let key = resource.clone();
        let Some(place) = self.locks.insert(lock, resource, options, machine) else {
            return Err(Error::TooManyLocks { limit });
        };
        match behind.and_then(|_| self.queues.get_mut(&key)) {
            Some(queue) => queue.waiting.extend(self.locks.get(place).map(|lock| (place, lock.generation))),
            None => {
                self.queues
                    .insert(key, LocalQueue { head: place, waiting: VecDeque::new(), gone: 0, subscribed: false });
            }
        }
        match behind {
            None => {
                self.drive(place, LeaseInput::Turn);
                self.start(place, fresh);
            }
            // An acquisition that waits for nobody does not queue behind a lease, but does behind the end of one, and behind others
            // that ask the same.
            Some((head, is_next)) if once && !joins && !(is_next && self.is_ending(head)) => {
                self.outputs.push_back(Output::Event(Event::Failed {
                    lock,
                    failure: Failure::Busy { holding: ahead.map(Into::into) },
                }));
                self.drop_lock(place);
            }
            Some(_) => self.drive(place, LeaseInput::Timeout),
        }
        Ok(())
    }

    /// Releases a lock, or cancels its acquisition. This takes effect at once here; the stores follow in the background.
    ///
    /// A pending acquisition ends with [`Event::Failed`] and [`Failure::Cancelled`], a lease with [`Event::Released`]. A
    /// lease that was lost because it was revoked ends without another event.
    /// Releasing a lock that is being released does nothing.
    ///
    /// # Errors
    /// [`Error::UnknownLock`], also when the lease was lost before.
    pub fn release(&mut self, lock: LockId, now: Now) -> Result<(), Error> {
        self.advance(now, None);
        let place = self.locks.find(lock).ok_or(Error::UnknownLock)?;
        self.drive(place, LeaseInput::Release);
        Ok(())
    }

    /// Finishes a run: the store writes the completion that the work is done and frees the resource, at once. It ends with
    /// [`Event::Finished`], or with [`Event::Lost`] if the record was not ours any more and no completion was written. The result
    /// is written with the completion; a store that refuses both, since it is full, gets the completion alone.
    ///
    /// # Errors
    /// [`Error::NotARun`]; [`Error::UnknownLock`], also when the lease was lost or released before, or is not held yet.
    pub fn finish(&mut self, lock: LockId, run_result: Option<RunResult>, now: Now) -> Result<(), Error> {
        self.advance(now, None);
        let place = self.locks.find(lock).ok_or(Error::UnknownLock)?;
        let state = self.locks.get(place).ok_or(Error::UnknownLock)?;
        if state.options.run().is_none() {
            return Err(Error::NotARun);
        }
        if !matches!(state.machine, Machine::Held(_)) {
            return Err(Error::UnknownLock);
        }
        // A count of attempts is worth nothing without its number.
        let is_required = state.resource.run_of_attempts().is_some();
        let run_result = run_result.map(|result| if is_required { result.that_is_required() } else { result });
        self.drive(place, LeaseInput::Finish(run_result));
        Ok(())
    }

    /// Ends a lease because the embedder has already reported it as lost, by its own reading of the deadline.
    ///
    /// # Errors
    /// [`Error::UnknownLock`].
    pub fn declare_lost(&mut self, lock: LockId, now: Now) -> Result<(), Error> {
        self.advance(now, None);
        let place = self.locks.find(lock).ok_or(Error::UnknownLock)?;
        self.drive(place, LeaseInput::DeclareLost);
        Ok(())
    }

    /// Cancels all pending acquisitions and releases all leases; no new one is accepted. The embedder goes on driving
    /// until [`Client::is_idle`].
    pub fn close(&mut self, now: Now) {
        self.advance(now, None);
        self.closed = true;
        let places: Vec<LockIndex> = self.locks.places().collect();
        for place in places {
            self.drive(place, LeaseInput::Release);
        }
    }

    /// Takes the result of a request: one outcome for each operation, in order. Missing ones count as unknown.
    ///
    /// A response that belongs to no open request is counted and ignored.
    pub fn handle_response(
        &mut self,
        id: RequestId,
        result: Result<impl IntoIterator<Item = Outcome>, TransportFault>,
        now: Now,
    ) {
        self.advance(now, None);
        let Some(mut request) = self.requests.remove(&id) else {
            self.ignored_responses += 1;
            return;
        };
        self.timers.set(Timer::Request(id), &mut request.timer, None);
        match result {
            Ok(outcomes) => {
                let missing = Outcome::Unknown(Fault::of(FaultKind::Protocol));
                let outcomes = outcomes.into_iter().chain(core::iter::repeat(missing));
                for ((target, seq), outcome) in request.targets.into_iter().zip(outcomes) {
                    self.settle(target, request.node, seq, outcome, None);
                }
            }
            Err(fault) => {
                for (target, seq) in request.targets {
                    self.settle(target, request.node, seq, fault.outcome(), None);
                }
            }
        }
    }

    /// Does what is due. `fresh` are 16 bytes that the embedder drew from the operating system for this call.
    pub fn handle_timeout(&mut self, fresh: &Entropy, now: Now) {
        self.advance(now, Some(fresh));
    }

    /// Takes a hint that a resource was released; it may be wrong. The waiter tries at once if it can believe the hint: a
    /// record was seen, and enough nodes answer.
    pub fn notified(&mut self, resource: &Resource, now: Now) {
        self.advance(now, None);
        if let Some(head) = self.queues.get(resource).map(|queue| queue.head) {
            self.drive(head, LeaseInput::Wake { after: Duration::ZERO });
        }
    }

    /// Notes that the node will send wake-ups on a resource. The waiter may just have missed one, so this counts as a hint
    /// itself.
    pub fn subscribed(&mut self, _node: NodeId, resource: &Resource, now: Now) {
        self.notified(resource, now);
    }

    /// Notes that a node has fresh credentials. Locks that wait for them try again, once.
    pub fn credentials_renewed(&mut self, node: NodeId, now: Now) {
        self.advance(now, None);
        let Some(state) = self.env.node_mut(node).filter(|state| state.lacks_credentials) else { return };
        state.lacks_credentials = false;
        let heads: BTreeSet<LockIndex> = self.queues.values().map(|queue| queue.head).collect();
        for head in heads {
            self.drive(head, LeaseInput::FreshCredentials(node));
        }
    }

    /// Notes that a node of a quorum was seen to vote; `loss` names the loss of data since which its counters are in
    /// doubt, if there was one. Attempts that begin from now on know of it. Without this call an attempt learns of a
    /// loss only from the answers to it, and only the next attempt can count the node.
    pub fn node_votes(&mut self, node: NodeId, loss: Option<LossId>, now: Now) {
        self.advance(now, None);
        if let Some(state) = self.env.node_mut(node) {
            state.memory.note_seen_to_vote(loss);
        }
    }

    /// Replaces the seed, for embedders that know that they were copied.
    pub fn reseed(&mut self, seed: Seed) {
        self.env.seed = seed;
        self.sessions.forget();
    }

    /// The next thing for the embedder to do. [`Output::WakeAt`] means that there is nothing more.
    pub fn poll_output(&mut self, now: Now) -> Output {
        self.advance(now, None);
        if let Some(output) = self.outputs.pop_front() {
            return output;
        }
        self.end_sessions();
        if let Some(transmit) = self.next_transmit() {
            return Output::Transmit(transmit);
        }
        // Sends that were too late to leave may have brought events.
        self.outputs.pop_front().unwrap_or_else(|| Output::WakeAt(self.next_wake()))
    }

    /// Runs the whole loop in one call: takes the inputs, does what is due, appends all outputs, and returns when to call
    /// again at the latest.
    pub fn step(&mut self, fresh: &Entropy, now: Now, inputs: &[Input], outputs: &mut Vec<Output>) -> Monotonic {
        for (n, input) in inputs.iter().enumerate() {
            self.handle_input(n, input.clone(), fresh, now);
        }
        self.handle_timeout(fresh, now);
        loop {
            let output = self.poll_output(now);
            if let Output::WakeAt(at) = output {
                return at;
            }
            outputs.push(output);
        }
    }

    /// The validity that a lease has left; zero when it is not held.
    pub fn remaining(&self, lock: LockId, now: Now) -> Duration {
        let deadline = self.find(lock).and_then(|lock| lock.machine.deadline());
        deadline.map_or(Duration::ZERO, |deadline| deadline.since(now.monotonic.max(self.env.now.monotonic)))
    }

    /// The holder in the way of a pending acquisition, as far as the store shows it.
    pub fn holder(&self, lock: LockId) -> Option<&Holding> {
        self.find(lock)?.machine.holder()
    }

    /// The attempt by which a lease is held: what tells it from all others in a store. `None` when the lock is not held.
    pub fn nonce(&self, lock: LockId) -> Option<Nonce> {
        self.find(lock).and_then(|lock| lock.machine.nonce())
    }

    /// The record of a run that is held, with a result, as its finish would write it. `None` when the lock is not held.
    pub fn about(&self, lock: LockId, run_result: &RunResult) -> Option<About> {
        self.find(lock).and_then(|lock| lock.machine.held()).map(|held| held.about(run_result))
    }

    /// Tells if a lock has not begun yet: it waits for another one of this client.
    pub fn is_queued(&self, lock: LockId) -> bool {
        self.find(lock).is_some_and(|lock| lock.machine.is_idle())
    }

    /// The name of the state that a lock is in, `None` when it is not alive.
    pub fn state(&self, lock: LockId) -> Option<&'static str> {
        self.find(lock).map(|lock| lock.machine.name())
    }

    /// Returns true if nothing is alive, in flight or undrained.
    pub fn is_idle(&self) -> bool {
        self.locks.is_empty()
            && self.orphans.is_empty()
            && self.outputs.is_empty()
            && self.sends.is_empty()
            && self.departures.is_empty()
            && (!self.closed || self.sessions.is_over())
    }

    /// The counters of the client.
    pub fn stats(&self) -> Stats {
        Stats {
            locks: self.locks.len(),
            held: self.locks.iter().filter(|lock| lock.machine.deadline().is_some()).count(),
            in_flight: self.requests.len(),
            orphans: self.orphans.len(),
            observations: self.env.observations.len(),
            undrained: self.outputs.len() + self.sends.len(),
            ignored_responses: self.ignored_responses,
            timed_out_requests: self.timed_out_requests,
        }
    }

    /// The settings.
    pub const fn config(&self) -> &Config {
        &self.env.config
    }

    /// Once a closed client has let go of all its locks, its sessions end.
    fn end_sessions(&mut self) {
        let is_through = self.closed && self.locks.is_empty() && self.orphans.is_empty() && self.sends.is_empty();
        if is_through && !self.sessions.is_over() {
            let patience = self.env.config.request_timeout();
            self.with_sessions(|sessions, _, out| sessions.end(patience, out));
        }
    }

    fn find(&self, lock: LockId) -> Option<&Lock> {
        self.locks.get(self.locks.find(lock)?)
    }

    /// Handles the input number `n` of a step: [`step`](Self::step) calls it for each of its inputs. A step that starts
    /// several attempts with the same `fresh` bytes gives each attempt bytes of its own, by `n`.
    pub fn handle_input(&mut self, n: usize, input: Input, fresh: &Entropy, now: Now) {
        let fresh = &own_entropy(fresh, n);
        let (lock, result) = match input {
            Input::Acquire { lock, resource, options } => (lock, self.acquire(lock, resource, options, fresh, now)),
            Input::Release { lock } => (lock, self.release(lock, now)),
            Input::Finish { lock, run_result } => (lock, self.finish(lock, run_result, now)),
            Input::DeclareLost { lock } => (lock, self.declare_lost(lock, now)),
            Input::Response { id, result } => return self.handle_response(id, result, now),
            Input::Notified { resource } => return self.notified(&resource, now),
            Input::Subscribed { node, resource } => return self.subscribed(node, &resource, now),
            Input::CredentialsRenewed { node } => return self.credentials_renewed(node, now),
            Input::NodeVotes { node, loss } => return self.node_votes(node, loss, now),
            Input::Reseed { seed } => return self.reseed(seed),
            Input::Close => return self.close(now),
        };
        if let Err(error) = result {
            self.outputs.push_back(Output::Rejected { lock, error });
        }
    }

    /// A lease of this client, as others would see it.
    fn describe(&self, place: LockIndex) -> Option<Holding> {
        let ours = self.locks.get(place)?;
        let Some(deadline) = ours.machine.deadline() else { return ours.machine.holder().cloned() };
        let nonce = ours.machine.nonce()?;
        Some(Holding {
            counter: ours.machine.token(),
            owner: Some(ours.options.owner().clone()),
            record_ttl: Some(ours.options.record_ttl()),
            left: Some(deadline.since(self.env.now.monotonic)),
            session: self.env.config.session_of(&self.env.seed),
            ..Holding::of(Holder::Lease { nonce, seq: None }, Version::of(&nonce, Seq::new(0)))
        })
    }
}

/// The entropy of the n-th command of a step: different for each command, and from that of the attempts due afterwards.
fn own_entropy(fresh: &Entropy, n: usize) -> Entropy {
    let mut own = *fresh;
    for (byte, count) in own.iter_mut().zip((n + 1).to_le_bytes()) {
        *byte ^= count;
    }
    own
}
