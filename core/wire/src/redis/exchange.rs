//! One request in a few rounds: commands out, replies in, outcomes at the end.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt;
use core::time::Duration;

use super::command::Words;
use super::native::{self, Transaction, Verdict};
use super::process::{self, Answered, ConnectionName, Process, RunId, Vote};
use super::scripts::{self, Script};
use super::{Command, ErrorClass, Subscription, asks_run, classify, is_renewal, keys, replies};
use crate::exchange::{self, Progress};
use crate::resp::Value;
use leasehold_core::member::{Durability, QuorumId};
use leasehold_core::op::{Applied, LockOp, Op, Outcome, Refusal};
use leasehold_core::{Nonce, OneOrMany, RequestId, Token};

/// One script call, for one operation or for several renewals.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) struct Call {
    pub(super) script: &'static Script,
    pub(super) keys: Words,
    pub(super) args: Words,
    /// In a quorum, how the run of the server is asked for. It comes behind the arguments of all.
    pub(super) asks_run: Option<Durability>,
    /// Which operations of the exchange it carries, in the order of its keys.
    pub(super) ops: OneOrMany<usize>,
}

impl Call {
    /// The retention stands first, and what is asked of the server is the same for all.
    pub(super) fn join(&mut self, other: Self) {
        other.args.iter().skip(1).for_each(|own| self.args.push(own));
        self.keys.append(&other.keys);
        other.ops.into_iter().for_each(|index| self.ops.push(index));
    }

    /// Returns the part of its keys that a cluster hashes; names with equal tags share a slot.
    pub(super) fn tag(&self) -> Option<&str> {
        let lock = core::str::from_utf8(self.keys.iter().next()?).ok()?;
        Some(keys::hash_tag(lock).unwrap_or(lock))
    }

    /// A run that is `known` need not be asked for.
    fn command(&self, form: Form, id: RequestId, known: Option<&RunId>) -> Command {
        let script = form.words(self.script);
        let mut words = Words::with_capacity(script[1].len() + self.keys.size() + self.args.size() + SIZE_OF_THE_REST);
        script.iter().for_each(|word| words.push(word));
        let marker = (*self.script == scripts::KEEP).then_some(keys::MARKER);
        words.push_number((self.keys.count() + usize::from(marker.is_some())) as u64);
        words.append(&self.keys);
        marker.into_iter().for_each(|marker| words.push(marker));
        words.append(&self.args);
        let known = known.map(RunId::as_bytes);
        self.asks_run.into_iter().for_each(|durability| words.push(known.unwrap_or_else(|| asks_run(durability))));
        words.push_number(id.get());
        Command::of(words)
    }
}

/// Room for the words of a call that are not its script, its keys or its arguments.
const SIZE_OF_THE_REST: usize = 96;

/// How a script is named in a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Form {
    Digest,
    Text,
}

impl Form {
    const fn words(self, script: &Script) -> [&'static [u8]; 2] {
        match self {
            Self::Digest => [b"EVALSHA", script.sha1.as_bytes()],
            Self::Text => [b"EVAL", script.text.as_bytes()],
        }
    }
}

/// The part of an operation that is needed to understand its reply.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Asked {
    Acquire(Nonce),
    /// An acquire at a node of this quorum, with this max_ttl in milliseconds.
    Vote(Nonce, QuorumId, u64),
    Renew(Nonce),
    Release(Nonce),
    /// A finish of the grant with this counter.
    Finish(Nonce, Token),
    Revoke(Nonce),
    Raise(Nonce, Token),
    Read,
}

impl Asked {
    pub(super) fn of(op: &Op) -> Self {
        match op {
            Op::Acquire(op) => match &op.member {
                Some(member) => Self::Vote(op.nonce, member.quorum, member.max_ttl_ms),
                None => Self::Acquire(op.nonce),
            },
            Op::Renew(op) => Self::Renew(op.nonce),
            Op::Release(op) => Self::Release(op.nonce),
            Op::Finish(op) => Self::Finish(op.nonce, op.counter),
            Op::Revoke(op) => Self::Revoke(op.nonce),
            Op::Raise(op) => Self::Raise(op.nonce, op.token),
            // A tell is refused before it is written down.
            Op::Tell(_) | Op::Read => Self::Read,
        }
    }
}

/// A script call that was written down, and which operations it carries.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Sent {
    script: &'static Script,
    ops: OneOrMany<usize>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Wait {
    pub(super) count: u32,
    pub(super) timeout_ms: u64,
}

/// The commands that are under way, where they are not scripts alone.
#[derive(Clone, PartialEq, Eq, Hash)]
enum Stage {
    Scripts,
    ScriptsAndTrial,
    ScriptsAndIntroduction(ConnectionName),
    Transaction(Box<Transaction>),
    OfOneProcess(Box<Vote>),
    /// The release of a lock that was taken without a token.
    Undo,
}

/// A reply, or what is known of a command without one.
pub(super) type Answer<'a> = Result<&'a Value, &'a Outcome>;

/// One request in a few rounds: what a transaction leaves open is for a script, and a script that the server does not know
/// is sent whole.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Exchange {
    id: RequestId,
    asked: OneOrMany<Asked>,
    outcomes: OneOrMany<Option<Outcome>>,
    /// Those without an answer so far, in the order of `commands`.
    calls: OneOrMany<Sent>,
    wait: Option<Wait>,
    form: Form,
    commands: Vec<Command>,
    stage: Stage,
    /// A transaction has taken the lock, or may have.
    may_hold: bool,
    /// The server's answer to the first transaction, if one was sent.
    pub(super) may_transact: Option<bool>,
    /// News of the process behind the connection.
    pub(super) process: Option<Process>,
    place: Option<(u64, Option<Duration>)>,
    /// The client's own channel when it began.
    pub(super) subscription: Option<Subscription>,
    /// The sender's wall clock when it began, where the memory of a connection is kept.
    pub(super) began_ms: u64,
    /// The same, if it pushes out the retention of a counter.
    pub(super) pushed_ms: Option<u64>,
}

/// Where commands go to several servers, one may be answered and another not.
impl exchange::Exchange for Exchange {
    type Ask = Command;
    type Heard = Value;
    type Memory = ();

    fn requests(&self) -> &[Command] {
        &self.commands
    }

    fn answers(&mut self, (): &mut (), answers: Vec<Result<Value, Outcome>>) -> Progress {
        self.take(&answers, Result::as_ref)
    }
}

impl Exchange {
    pub(super) fn new(id: RequestId, ops: &[LockOp], wait: Option<Wait>) -> Self {
        Self {
            id,
            asked: ops.iter().map(|op| Asked::of(&op.op)).collect(),
            outcomes: ops.iter().map(|_| None).collect(),
            calls: OneOrMany::new(),
            wait,
            // A digest that is not known would let WAIT use up the time for nothing.
            form: if wait.is_some() { Form::Text } else { Form::Digest },
            commands: Vec::new(),
            stage: Stage::Scripts,
            may_hold: false,
            may_transact: None,
            process: None,
            place: None,
            subscription: None,
            began_ms: 0,
            pushed_ms: None,
        }
    }

    /// Adds an empty transaction, to learn if the user may have one.
    pub(super) fn try_transaction(&mut self) {
        self.commands.extend(native::trial());
        self.stage = Stage::ScriptsAndTrial;
    }

    /// Adds the question for the run of the process.
    pub(super) fn introduce(&mut self, name: ConnectionName) {
        self.commands.extend(process::introduction(name));
        self.stage = Stage::ScriptsAndIntroduction(name);
    }

    /// A vote by the process of this run, on the connection of this name. Another process, or one that does not tell its run, is
    /// asked once more.
    pub(super) fn ask_process(&mut self, call: Call, name: ConnectionName, run: &RunId) {
        self.commands = process::by_one_process(call.command(self.form, self.id, Some(run)));
        self.stage = Stage::OfOneProcess(Box::new(Vote { call, name }));
    }

    /// To be sent at once and in order, on one connection that nobody else writes to in between.
    pub fn commands(&self) -> &[Command] {
        &self.commands
    }

    /// Tells if an earlier round has taken the lock, or may have: a round that is not sent does not undo it.
    pub const fn may_hold(&self) -> bool {
        self.may_hold
    }

    /// The place that an acquire has got in the queue of waiters, counted from 1.
    pub fn place(&self) -> Option<u64> {
        self.place.map(|(place, _)| place)
    }

    /// How long the lock is reserved for another, if an acquire with a place met that.
    pub fn reserved(&self) -> Option<Duration> {
        self.place.and_then(|(_, left)| left)
    }

    /// The replies to [`Exchange::commands`], in their order, one for each. Another number of them says nothing of any
    /// operation: all are unknown.
    pub fn replies(&mut self, replies: Vec<Value>) -> Progress {
        fn read(reply: &Value) -> Answer<'_> {
            Ok(reply)
        }
        self.take(&replies, read)
    }

    fn take<A>(&mut self, mut answers: &[A], read: impl Fn(&A) -> Answer<'_> + Copy) -> Progress {
        let calls = core::mem::take(&mut self.calls);
        let mut commands = core::mem::take(&mut self.commands).into_iter();
        if answers.len() == commands.len() {
            match core::mem::replace(&mut self.stage, Stage::Scripts) {
                Stage::Scripts => {}
                Stage::ScriptsAndTrial => {
                    if let [scripts @ .., multi, exec] = answers {
                        self.may_transact = Some(native::is_allowed(read(multi), read(exec)));
                        answers = scripts;
                    }
                }
                Stage::ScriptsAndIntroduction(name) => {
                    if let Some((scripts, [multi, .., exec])) = answers.split_last_chunk::<{ process::INTRODUCTION }>()
                    {
                        self.process = Some(process::introduced(name, read(multi), read(exec)));
                        answers = scripts;
                    }
                }
                Stage::OfOneProcess(vote) => return self.voted(*vote, answers, read),
                Stage::Transaction(transaction) => {
                    return self.transacted(&transaction, native::judge(answers, read, transaction.terms.floor));
                }
                Stage::Undo => self.stage = Stage::Undo,
            }
            let mut answers = answers.iter().map(read);
            for call in calls {
                let (Some(answer), Some(command)) = (answers.next(), commands.next()) else { break };
                let wait = self.wait.filter(|_| call.awaits_replicas());
                let wait = wait.and_then(|wait| commands.next().and(answers.next()).map(|answer| (wait, answer)));
                let reply = match answer {
                    Ok(reply) => reply,
                    Err(outcome) => {
                        let outcome = self.of_all_rounds(outcome.clone());
                        self.conclude(&call, call.ops.iter().map(|_| outcome.clone()).collect());
                        continue;
                    }
                };
                let is_unknown = matches!(reply, Value::Error(error) if classify(error) == ErrorClass::UnknownScript);
                if is_unknown && self.form == Form::Digest {
                    self.repeat(call, &command);
                } else {
                    self.settle(&call, reply, wait);
                }
            }
        }
        self.form = Form::Text;
        if !self.calls.is_empty() {
            return Progress::Again;
        }
        self.done()
    }

    fn done(&mut self) -> Progress {
        let unanswered = || replies::protocol("another number of replies than commands");
        let outcomes = core::mem::take(&mut self.outcomes);
        let mut all = Vec::with_capacity(outcomes.len());
        all.extend(outcomes.into_iter().map(|outcome| outcome.unwrap_or_else(unanswered)));
        Progress::Done(all)
    }

    /// The transaction first; a script follows for what it leaves open.
    pub(super) fn transact(&mut self, mut transaction: Transaction) {
        self.commands = core::mem::take(&mut transaction.commands);
        self.pushed_ms = transaction.terms.pushes.then_some(self.began_ms);
        self.stage = Stage::Transaction(Box::new(transaction));
    }

    fn transacted(&mut self, transaction: &Transaction, verdict: Verdict) -> Progress {
        let call = match verdict {
            Verdict::Granted(counter) => {
                self.outcomes = OneOrMany::one(Some(Outcome::Applied(Applied::Acquired { counter })));
                return self.done();
            }
            Verdict::Nonsense => return self.done(),
            Verdict::Unfinished { may_hold, refused } => {
                self.may_hold = may_hold;
                self.may_transact = refused.then_some(false);
                self.pushed_ms = Some(self.began_ms);
                transaction.script()
            }
            Verdict::NoTransaction { may_hold: true } => {
                (self.may_hold, self.may_transact) = (true, Some(false));
                self.stage = Stage::Undo;
                transaction.undo()
            }
            Verdict::NoTransaction { may_hold: false } => {
                (self.may_hold, self.may_transact) = (false, Some(false));
                self.pushed_ms = Some(self.began_ms);
                transaction.script()
            }
        };
        match call {
            Ok(call) => {
                self.write(call);
                Progress::Again
            }
            Err(denial) => {
                let denied = self.of_all_rounds(Outcome::NotApplied(Refusal::Denied(denial)));
                self.outcomes = OneOrMany::one(Some(denied));
                self.done()
            }
        }
    }

    fn voted<A>(&mut self, vote: Vote, answers: &[A], read: impl Fn(&A) -> Answer<'_>) -> Progress {
        let Vote { mut call, name } = vote;
        match process::judge(answers, read, name) {
            Answered::ByTheProcess(reply) => {
                let is_unknown = matches!(&*reply, Value::Error(error) if classify(error) == ErrorClass::UnknownScript);
                if !is_unknown {
                    let sent = Sent { script: call.script, ops: core::mem::take(&mut call.ops) };
                    self.settle(&sent, &reply, None);
                    return self.done();
                }
            }
            Answered::Otherwise { may_hold } => {
                self.may_hold = may_hold;
                self.process = Some(Process::Unknown);
            }
        }
        self.form = Form::Text;
        self.write(call);
        Progress::Again
    }

    fn settle(&mut self, call: &Sent, reply: &Value, wait: Option<(Wait, Answer<'_>)>) {
        let asked: OneOrMany<Asked> = call.ops.iter().filter_map(|index| self.asked.get(*index)).copied().collect();
        let outcomes = match &*asked {
            [Asked::Acquire(nonce)] if self.stage == Stage::Undo => {
                OneOrMany::one(native::undone(replies::outcome(self.id, Asked::Release(*nonce), reply)))
            }
            [asked] if *call.script == scripts::JOIN => {
                self.place = replies::place(self.id, reply);
                OneOrMany::one(replies::outcome(self.id, *asked, reply))
            }
            [asked] if !is_renewal(call.script) => OneOrMany::one(replies::outcome(self.id, *asked, reply)),
            asked => replies::renewals(self.id, asked, reply),
        };
        let confirmed = |outcome| match wait {
            Some((Wait { count, .. }, Ok(reply))) => replies::with_replicas(outcome, count, reply),
            Some((Wait { count, .. }, Err(_))) => replies::with_replicas(outcome, count, &Value::Nil),
            None if reply.as_error().is_some() => self.of_all_rounds(outcome),
            // A node that abstains has not looked at the lock.
            None if matches!(outcome, Outcome::NotApplied(Refusal::Abstains { .. })) => self.of_all_rounds(outcome),
            None => outcome,
        };
        self.conclude(call, outcomes.into_iter().map(confirmed).collect());
    }

    /// A script that was refused undoes nothing of the transaction before it.
    fn of_all_rounds(&self, outcome: Outcome) -> Outcome {
        if self.may_hold { native::unfinished(outcome) } else { outcome }
    }

    fn conclude(&mut self, call: &Sent, outcomes: OneOrMany<Outcome>) {
        for (index, outcome) in call.ops.iter().zip(outcomes) {
            if let Some(place) = self.outcomes.get_mut(*index) {
                *place = Some(outcome);
            }
        }
    }

    pub(super) fn write(&mut self, mut call: Call) {
        let sent = Sent { script: call.script, ops: core::mem::take(&mut call.ops) };
        self.commands.push(call.command(self.form, self.id, None));
        if let Some(Wait { count, timeout_ms }) = self.wait.filter(|_| sent.awaits_replicas()) {
            let mut wait = Words::default();
            wait.push(b"WAIT");
            wait.push_number(count.into());
            wait.push_number(timeout_ms);
            self.commands.push(Command::of(wait));
        }
        self.calls.push(sent);
    }

    /// The same call once more, with the whole script.
    fn repeat(&mut self, call: Sent, command: &Command) {
        let script = Form::Text.words(call.script);
        self.commands.push(Command::new(script.into_iter().chain(command.words().skip(script.len()))));
        self.calls.push(call);
    }
}

impl Sent {
    /// A release that a failover forgets leaves a record that runs out by itself: nobody need wait for it.
    fn awaits_replicas(&self) -> bool {
        *self.script != scripts::READ && *self.script != scripts::RELEASE
    }
}

impl fmt::Debug for Exchange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Exchange").field("commands", &self.commands).finish_non_exhaustive()
    }
}
