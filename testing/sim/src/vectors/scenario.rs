//! The vocabulary of scenarios: a host's calls and the stores' answers. The client adds the outputs.

use std::collections::BTreeSet;
use std::time::Duration;

use leasehold_core::config::LockOptionsBuilder;
use leasehold_core::member::LossId;
use leasehold_core::op::{Applied, Denial, DenialKind, Fault, FaultKind, Holder, Holding, Op, Outcome, Refusal, Seen};
use leasehold_core::op::{Completion, LockOp, TransportFault};
use leasehold_core::{
    About, Client, Config, Input, LockId, LockOptions, Monotonic, NodeConfig, NodeId, Nonce, Now, Output, Owner,
    RequestId, Resource, RunResult, Seed, Seq, Token, Transmit, Version,
};

use super::play::call;
use super::rows::Counted;
use crate::format::{Call, FORMAT, Fresh, Start, Step, TakesEntropy as _, Vector};

/// The clocks at the start of a scenario; far from zero, so that nothing saturates unnoticed.
const START: Start = Start { monotonic_ns: 100_000_000_000, unix_ms: 1_700_000_000_000 };

/// A scenario under way.
pub(super) struct Scenario {
    vector: Vector,
    client: Client,
    now: Now,
    /// The offset of the wall clock, which otherwise runs with the monotonic one.
    wall_ms: i64,
    wake_at: Monotonic,
    drawn: u128,
    sent: Vec<Transmit>,
    counted: Counted,
    took: BTreeSet<&'static str>,
}

/// A store's answer to one operation.
#[derive(Clone, Debug)]
pub(super) enum Answer {
    Granted(u64),
    Raised(u64),
    Renewed,
    Released,
    Finished,
    /// A completion says that the work is done.
    Done,
    /// One with this result.
    DoneWith(&'static str),
    Unknown(FaultKind),
    Throttled,
    Unavailable,
    NeedsCredentials,
    Abstains,
    /// Under a stamp of this byte.
    AbstainsSince(u8),
    /// Granted, but with a counter that may be too low since the loss under this stamp.
    InDoubt(u64, u8),
    Denied(DenialKind),
    /// The record that stands in the way.
    Held(Holding),
    /// The record is ours, as of so many sends to this node before the one that is answered.
    Ours(usize),
    /// The record is ours, and the store keeps no numbers of sends.
    OursUncounted,
    /// The record is ours, by a send that was never made.
    OursAsOf(u32),
    /// The record was ours, and has been released.
    OursFreed,
    /// No record.
    Gone,
    /// A look shows this.
    Sees(Holding),
    /// A look shows that the work is done.
    SeesDone(Completion),
    /// A look shows nothing.
    SeesNothing,
}

impl Scenario {
    /// With one node that knows nothing special.
    pub(super) fn new(name: &str, why: &str) -> Self {
        Self::of(name, why, vec![NodeConfig::default()])
    }

    pub(super) fn of(name: &str, why: &str, nodes: Vec<NodeConfig>) -> Self {
        Self::with(name, why, Config::new(nodes).expect("a scenario's nodes"))
    }

    pub(super) fn with(name: &str, why: &str, config: Config) -> Self {
        let seed: Seed = std::array::from_fn(|n| n as u8);
        let vector = Vector {
            format: FORMAT,
            name: name.to_owned(),
            why: why.to_owned(),
            config: config.clone(),
            stores: Vec::new(),
            seed,
            start: START,
            steps: Vec::new(),
        };
        Self {
            vector,
            client: Client::new(config, seed, START.now()),
            now: START.now(),
            wall_ms: 0,
            wake_at: Monotonic::FAR,
            drawn: 0,
            sent: Vec::new(),
            counted: Counted::new(),
            took: BTreeSet::new(),
        }
    }

    /// The end. The scenario is about these rows of the table, so it must have taken them.
    pub(super) fn about(self, rows: &[&str]) -> Vector {
        let missed: Vec<_> = rows.iter().filter(|row| !self.took.contains(**row)).collect();
        let told = |step: &Step| format!("\n  {} at {} ns: {:?}", step.input.name(), step.at_ns, step.rows);
        let steps: String = self.vector.steps.iter().map(told).collect();
        assert!(missed.is_empty(), "the scenario {:?} does not reach {missed:?}:{steps}", self.vector.name);
        self.vector
    }

    /// Sets the clock to this many milliseconds after the start, without a call.
    pub(super) fn clock(&mut self, ms: u64) -> &mut Self {
        self.set(START.now().monotonic.plus(Duration::from_millis(ms)));
        self
    }

    /// The wall clock is set forward or back.
    pub(super) fn wall(&mut self, ms: i64) -> &mut Self {
        self.wall_ms = ms;
        self.set(self.now.monotonic);
        self
    }

    fn set(&mut self, monotonic: Monotonic) {
        self.now.monotonic = monotonic;
        let passed = monotonic.since(START.now().monotonic).as_millis() as u64;
        self.now.unix_ms = START.unix_ms.saturating_add(passed).saturating_add_signed(self.wall_ms);
    }

    /// Sets the clock to this many milliseconds after the start, and handles the timers.
    pub(super) fn at(&mut self, ms: u64) -> &mut Self {
        self.clock(ms).call(None)
    }

    /// The host sleeps until its wake time.
    pub(super) fn wake(&mut self) -> &mut Self {
        assert!(self.wake_at < Monotonic::FAR, "{}: the host would sleep forever", self.vector.name);
        self.set(self.wake_at.max(self.now.monotonic));
        self.call(None)
    }

    /// Once more, until something is sent.
    pub(super) fn wake_until_sent(&mut self) -> &mut Self {
        let before = self.sent.len();
        while self.sent.len() == before {
            self.wake();
        }
        self
    }

    /// Requests so far.
    pub(super) fn sent(&self) -> usize {
        self.sent.len()
    }

    /// True if the last request is an acquire.
    pub(super) fn last_is_acquire(&self) -> bool {
        self.sent.last().is_some_and(|sent| sent.ops.iter().any(|op| matches!(op.op, Op::Acquire(_))))
    }

    /// True if a renewal of the lock was sent.
    pub(super) fn has_renewed(&self, lock: u64) -> bool {
        let mut ops = self.sent.iter().flat_map(|sent| &sent.ops);
        ops.any(|op| op.lock == LockId::new(lock) && matches!(op.op, Op::Renew(_)))
    }

    /// Since the start.
    pub(super) fn elapsed_ms(&self) -> u128 {
        self.now.monotonic.since(START.now().monotonic).as_millis()
    }

    pub(super) fn state(&self, lock: u64) -> Option<&'static str> {
        self.client.state(LockId::new(lock))
    }

    pub(super) fn acquire(
        &mut self,
        lock: u64,
        name: &str,
        options: impl FnOnce(LockOptionsBuilder) -> LockOptionsBuilder,
    ) -> &mut Self {
        let options = options(LockOptions::builder()).build().expect("a scenario's options");
        self.call(Some(Input::Acquire { lock: LockId::new(lock), resource: resource(name), options }))
    }

    /// Acquired with default options, and granted with this token.
    pub(super) fn hold(&mut self, lock: u64, name: &str, token: u64) -> &mut Self {
        self.acquire(lock, name, |o| o).say(0, Answer::Granted(token))
    }

    pub(super) fn release(&mut self, lock: u64) -> &mut Self {
        self.call(Some(Input::Release { lock: LockId::new(lock) }))
    }

    pub(super) fn finish(&mut self, lock: u64) -> &mut Self {
        self.call(Some(Input::Finish { lock: LockId::new(lock), run_result: None }))
    }

    /// With a result of JSON.
    pub(super) fn finish_with(&mut self, lock: u64, text: &str) -> &mut Self {
        let run_result = Some(RunResult::json(text).expect("a short one"));
        self.call(Some(Input::Finish { lock: LockId::new(lock), run_result }))
    }

    pub(super) fn declare_lost(&mut self, lock: u64) -> &mut Self {
        self.call(Some(Input::DeclareLost { lock: LockId::new(lock) }))
    }

    pub(super) fn close(&mut self) -> &mut Self {
        self.call(Some(Input::Close))
    }

    pub(super) fn notified(&mut self, name: &str) -> &mut Self {
        self.call(Some(Input::Notified { resource: resource(name) }))
    }

    pub(super) fn subscribed(&mut self, node: u16, name: &str) -> &mut Self {
        self.call(Some(Input::Subscribed { node: NodeId::new(node), resource: resource(name) }))
    }

    pub(super) fn credentials_renewed(&mut self, node: u16) -> &mut Self {
        self.call(Some(Input::CredentialsRenewed { node: NodeId::new(node) }))
    }

    /// With the loss that node would name.
    pub(super) fn node_votes(&mut self, node: u16, loss: Option<LossId>) -> &mut Self {
        self.call(Some(Input::NodeVotes { node: NodeId::new(node), loss }))
    }

    pub(super) fn reseed(&mut self, byte: u8) -> &mut Self {
        self.call(Some(Input::Reseed { seed: [byte; 32] }))
    }

    /// The host sleeps until something is sent, and every node that was asked gives its own answer.
    pub(super) fn round(&mut self, answers: &[(u16, Answer)]) -> &mut Self {
        let before = self.sent.len();
        self.wake_until_sent();
        let asked: Vec<u16> = self.sent[before..].iter().map(|sent| sent.node.get()).collect();
        for (node, answer) in answers.iter().filter(|(node, _)| asked.contains(node)) {
            self.say(*node, answer.clone());
        }
        self
    }

    /// The node answers the last request that it was sent.
    pub(super) fn say(&mut self, node: u16, answer: Answer) -> &mut Self {
        self.say_all(node, &[answer])
    }

    /// The node answers the last request that it was sent, one operation after the other.
    pub(super) fn say_all(&mut self, node: u16, answers: &[Answer]) -> &mut Self {
        let at = self.sent.iter().rposition(|sent| sent.node.get() == node);
        self.answer(at.expect("a request to the node"), answers)
    }

    /// The node answers the last request that it was sent for this lock.
    pub(super) fn say_for(&mut self, lock: u64, node: u16, answer: Answer) -> &mut Self {
        let of_lock = |sent: &Transmit| sent.ops.iter().any(|op| op.lock.get() == lock);
        let at = self.sent.iter().rposition(|sent| sent.node.get() == node && of_lock(sent));
        self.answer(at.expect("a request to the node for the lock"), &[answer])
    }

    /// Answers the request with this id, at any time.
    pub(super) fn say_to(&mut self, id: u64, answer: Answer) -> &mut Self {
        let at = self.sent.iter().position(|sent| sent.id.get() == id);
        self.answer(at.expect("a request with this id"), &[answer])
    }

    /// A response to a request that was never made.
    pub(super) fn say_to_nobody(&mut self, id: u64) -> &mut Self {
        let outcome = Outcome::Applied(Applied::Acquired { counter: token(1) });
        self.call(Some(Input::Response { id: RequestId::new(id), result: Ok(vec![outcome]) }))
    }

    /// The last request to the node brought no outcome.
    pub(super) fn fail(&mut self, node: u16, fault: TransportFault) -> &mut Self {
        let sent = self.sent.iter().rfind(|sent| sent.node.get() == node).expect("a request to the node");
        self.call(Some(Input::Response { id: sent.id, result: Err(fault) }))
    }

    fn answer(&mut self, at: usize, answers: &[Answer]) -> &mut Self {
        let request = &self.sent[at];
        // There may be more answers than operations.
        let asked = |n: usize| request.ops.get(n).or(request.ops.last()).expect("an operation");
        let outcomes: Vec<Outcome> =
            answers.iter().enumerate().map(|(n, answer)| self.outcome(answer, at, asked(n))).collect();
        self.call(Some(Input::Response { id: request.id, result: Ok(outcomes) }))
    }

    fn outcome(&self, answer: &Answer, at: usize, asked: &LockOp) -> Outcome {
        let node = self.sent[at].node;
        let conflict = |holding: Option<Holding>| {
            Outcome::NotApplied(Refusal::Conflict(Seen { holding: holding.map(Box::new), done: None }))
        };
        let ours = |seq: Option<Seq>, released| {
            let nonce = asked.op.nonce().expect("an operation with a nonce");
            Holding {
                holder: Holder::Lease { nonce, seq },
                version: Version::of(&nonce, seq.unwrap_or(Seq::new(0))),
                released,
                counter: Some(token(7)),
                ..foreign_holding()
            }
        };
        let numbered = |back: usize| {
            let to_node = self.sent[..=at].iter().filter(|sent| sent.node == node);
            let ops = to_node.flat_map(|sent| &sent.ops).filter(|op| op.op.nonce() == asked.op.nonce());
            let seqs: Vec<Seq> = ops.filter_map(|op| seq_of(&op.op)).collect();
            seqs.len().checked_sub(back + 1).map(|at| seqs[at])
        };
        match answer {
            Answer::Granted(counter) => Outcome::Applied(Applied::Acquired { counter: token(*counter) }),
            Answer::Raised(counter) => Outcome::Applied(Applied::Raised { counter: token(*counter) }),
            Answer::Renewed => Outcome::Applied(Applied::Renewed),
            Answer::Released => Outcome::Applied(Applied::Released),
            Answer::Finished => Outcome::Applied(Applied::Finished),
            Answer::Done => Outcome::NotApplied(Refusal::Done(Box::new(completion()))),
            Answer::DoneWith(text) => Outcome::NotApplied(Refusal::Done(Box::new(completion_with(text)))),
            Answer::Unknown(kind) => Outcome::Unknown(Fault::of(*kind)),
            Answer::Throttled => Outcome::NotApplied(Refusal::Throttled(Fault::new(FaultKind::Busy, "slow down"))),
            Answer::Unavailable => Outcome::NotApplied(Refusal::Unavailable(Fault::of(FaultKind::Unreachable))),
            Answer::NeedsCredentials => {
                Outcome::NotApplied(Refusal::NeedsCredentials(Fault::new(FaultKind::Server, "the token has expired")))
            }
            Answer::Abstains => Outcome::NotApplied(Refusal::Abstains { stamp: None }),
            Answer::AbstainsSince(loss) => Outcome::NotApplied(Refusal::Abstains { stamp: Some(LossId([*loss; 16])) }),
            Answer::InDoubt(counter, loss) => {
                Outcome::Applied(Applied::AcquiredInDoubt { counter: token(*counter), stamp: LossId([*loss; 16]) })
            }
            Answer::Denied(kind) => Outcome::NotApplied(Refusal::Denied(Denial::new(*kind, "not here"))),
            Answer::Held(holding) => conflict(Some(holding.clone())),
            Answer::Ours(back) => conflict(Some(ours(Some(numbered(*back).expect("as many sends")), false))),
            Answer::OursUncounted => conflict(Some(ours(None, false))),
            Answer::OursAsOf(seq) => conflict(Some(ours(Some(Seq::new(*seq)), false))),
            Answer::OursFreed => conflict(Some(ours(numbered(0), true))),
            Answer::Gone => conflict(None),
            Answer::Sees(holding) => {
                Outcome::Applied(Applied::Read(Seen { holding: Some(Box::new(holding.clone())), done: None }))
            }
            Answer::SeesDone(completion) => {
                Outcome::Applied(Applied::Read(Seen { holding: None, done: Some(Box::new(completion.clone())) }))
            }
            Answer::SeesNothing => Outcome::Applied(Applied::Read(Seen::default())),
        }
    }

    /// One step, and the steps that are due right after it.
    fn call(&mut self, input: Option<Input>) -> &mut Self {
        let is_acquire = matches!(input, Some(Input::Acquire { .. }));
        self.record(input);
        assert!(
            !is_acquire || self.wake_at > self.now.monotonic,
            "{}: a start is due together with an acquire, and `step` gives the two other bytes",
            self.vector.name
        );
        while self.wake_at <= self.now.monotonic {
            self.record(None);
        }
        self
    }

    fn record(&mut self, input: Option<Input>) {
        let call_of = Call(input.clone());
        let fresh = call_of.takes_entropy().then(|| {
            self.drawn += 1;
            self.drawn.to_be_bytes()
        });
        self.counted.take();
        let (outputs, wake_at) = call(&mut self.client, input, &fresh.unwrap_or_default(), self.now);
        let rows = self.counted.take();
        let rejects = outputs.iter().any(|output| matches!(output, Output::Rejected { .. }));
        assert!(!rejects || outputs.len() == 1, "{}: a refused command comes alone", self.vector.name);

        let before = self.vector.steps.iter().rev().find_map(|step| step.unix_ms).unwrap_or(START.unix_ms);
        self.vector.steps.push(Step {
            at_ns: self.now.monotonic.ns(),
            unix_ms: (self.now.unix_ms != before).then_some(self.now.unix_ms),
            entropy: fresh.map(Fresh),
            input: call_of,
            outputs: outputs.clone(),
            wake_at_ns: wake_at,
            rows: rows.iter().map(ToString::to_string).collect(),
        });
        self.took.extend(rows);
        self.wake_at = wake_at;
        self.sent.extend(outputs.into_iter().filter_map(|output| match output {
            Output::Transmit(transmit) => Some(transmit),
            Output::Event(_)
            | Output::Subscribe { .. }
            | Output::Unsubscribe { .. }
            | Output::NeedCredentials { .. }
            | Output::Rejected { .. }
            | Output::WakeAt(_) => None,
        }));
    }
}

/// The lease of another client, which the store ends in 20 s.
pub(super) fn foreign_holding() -> Holding {
    let (nonce, seq) = (Nonce::from_bytes([0xee; 16]), Seq::new(3));
    Holding {
        holder: Holder::Lease { nonce, seq: Some(seq) },
        version: Version::of(&nonce, seq),
        released: false,
        counter: Some(token(41)),
        owner: Some(Owner::new("host-b:77").expect("a label")),
        record_ttl: Some(Duration::from_secs(30)),
        left: Some(Duration::from_secs(20)),
        since_unix_ms: Some(START.unix_ms - 10_000),
        data: None,
        session: None,
        told: 0,
    }
}

/// The completion of work that another client finished a minute before the start.
pub(super) fn completion() -> Completion {
    Completion {
        token: token(40),
        owner: Owner::new("host-b:77").expect("a label"),
        at_unix_ms: START.unix_ms - 60_000,
        left: Duration::from_secs(3_540),
        about: None,
        unsettled: false,
    }
}

/// The same, with a result.
pub(super) fn completion_with(text: &str) -> Completion {
    let (nonce, result) = (Nonce::from_bytes([0xb0; 16]), RunResult::json(text).expect("a short one"));
    Completion { about: Some(About::new(&nonce, START.unix_ms - 90_000, 0, Some(&result))), ..completion() }
}

pub(super) fn token(value: u64) -> Token {
    Token::new(value).expect("a token")
}

fn resource(name: &str) -> Resource {
    Resource::new(name).expect("a name")
}

fn seq_of(op: &Op) -> Option<Seq> {
    match op {
        Op::Acquire(op) => Some(op.seq),
        Op::Renew(op) => Some(op.seq),
        Op::Release(_) | Op::Finish(_) | Op::Revoke(_) | Op::Tell(_) | Op::Raise(_) | Op::Read => None,
    }
}
