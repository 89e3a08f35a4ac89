//! Operations as commands for Redis (5 and newer) and Valkey, and what their replies mean.
//!
//! | what | where |
//! |---|---|
//! | lock | the resource as it is: `<nonce>@<owner>;<since>[;<data>]`, with an expiry |
//! | counter | `{resource}` 0x1F `fence of name`, decimal digits, kept for [`Settings::retention`] after its last use |
//! | trust | in a quorum, after a loss of data: `{resource}` 0x1F `trust of name`, the loss since which the counter was raised |
//! | marker | in a quorum: `leasehold` 0x1F `quorum`, a [`Marker`](leasehold_core::member::Marker) |
//! | wake-ups | channel `{resource}` 0x1F `wake of name`; the message is the resource |
//!
//! A resource that has a hash tag of its own gets no braces, and endings without ` of name`: `x` and `{x}` share nothing.
//! Other libraries keep their locks as plain values under the same key, so one excludes the other; theirs are shown as
//! [`Holder::Foreign`](leasehold_core::op::Holder::Foreign).

mod address;
pub mod cluster;
mod errors;
mod keys;
mod membership;
#[cfg(test)]
mod quorum_tests;
mod replies;
mod scripts;
mod server;
#[cfg(test)]
mod tests;
mod value;

use alloc::string::ToString;
use alloc::vec::Vec;
use core::fmt;
use core::time::Duration;

pub use address::Address;
pub use errors::{ErrorClass, classify, error_outcome, of_one_server, refusal};
pub(crate) use errors::{refuses_credentials, said};
pub use keys::{SLOTS, slot};
pub use membership::{Found, found, look, look_by_script, mark, marked};
pub use scripts::{SCRIPTS, Script};
pub use server::{info_by_script, time_ms};

use crate::resp::Value;
use leasehold_core::config::MAX_RECORD_TTL;
use leasehold_core::member::{Bootstrap, Durability, LossId, Membership, QuorumId, RETENTION};
use leasehold_core::op::{Denial, DenialKind, LockOp, Op, Outcome};
use leasehold_core::{Nonce, RequestId, Resource, Token};

/// One command: its name and its arguments.
///
/// `Debug` shows the name only, for the arguments name attempts, and anyone who knows one can free its lock.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Command {
    /// The name first.
    pub args: Vec<Vec<u8>>,
}

impl Command {
    fn new<const N: usize>(args: [&[u8]; N]) -> Self {
        Self { args: args.map(<[u8]>::to_vec).into() }
    }

    /// The slot of the keys of a script call on a cluster; `None` for what is no script call or has no key.
    pub fn slot(&self) -> Option<u16> {
        let (name, rest) = self.args.split_first()?;
        let has_keys = rest.get(1).is_some_and(|count| count != b"0");
        let key = rest.get(2).filter(|_| has_keys && (name == b"EVALSHA" || name == b"EVAL"))?;
        Some(keys::slot(key))
    }
}

impl fmt::Debug for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.args.first().map_or("?", |name| core::str::from_utf8(name).unwrap_or("?"));
        write!(f, "Command({name:?}, {} arguments)", self.args.len().saturating_sub(1))
    }
}

/// Settings of a session for its server.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Settings {
    /// How long an unused counter is kept: 7 days by default, at least 1 ms and at most 100 years. Far above the longest
    /// lease; by the time it is forgotten, the clocks have passed every token it gave.
    pub retention: Duration,
    /// Count a grant only when replicas have it; not by default. Needs a connection of its own kind, so not over HTTP.
    pub replicas: Option<Replicas>,
    /// One server by default.
    pub topology: Topology,
}

impl Default for Settings {
    fn default() -> Self {
        Self { retention: RETENTION, replicas: None, topology: Topology::Single }
    }
}

/// How many replicas must have a write before it counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Replicas {
    /// How many; 0 counts as 1.
    pub count: u32,
}

/// How the keys are spread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Topology {
    /// One server, or one master with replicas.
    Single,
    /// A Redis Cluster: names that cannot keep their keys in one slot are refused, and renewals of different slots
    /// travel in commands of their own.
    Cluster,
}

/// How to speak to one node. It knows nothing of connections and may be shared.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Session {
    settings: Settings,
}

impl Session {
    /// A session with a server of this kind.
    pub fn new(settings: Settings) -> Self {
        Self { settings }
    }

    /// How the keys are spread, as it was told.
    pub const fn topology(&self) -> Topology {
        self.settings.topology
    }

    /// Begins a request. No other request on the same connection may carry the same `id`, for an answer names the one
    /// that it is for. Of `left`, the time until its deadline, three quarters are for replicas to confirm, at least
    /// 1 ms. `unix_ms`, the sender's milliseconds since 1970, is for people to read.
    ///
    /// # Errors
    /// A name that cannot be locked on a cluster, or a record that would last longer than [`MAX_RECORD_TTL`].
    pub fn begin(&self, id: RequestId, ops: &[LockOp], left: Duration, unix_ms: u64) -> Result<Exchange, Denial> {
        let mut calls: Vec<Call> = Vec::new();
        for (index, op) in ops.iter().enumerate() {
            if self.settings.topology == Topology::Cluster {
                keys::check_cluster(&op.resource)?;
            }
            let mut call = self.call(op, unix_ms)?;
            let needs_marker = call.keys.len() > 2 || call.script == scripts::KEEP;
            if self.settings.topology == Topology::Cluster && needs_marker {
                return Err(Denial::new(DenialKind::Membership, NO_CLUSTER));
            }
            call.ops.push(index);
            match calls.iter_mut().find(|earlier| self.joins(&call, earlier)) {
                Some(earlier) => earlier.join(call),
                None => calls.push(call),
            }
        }
        let wait = self.settings.replicas.map(|replicas| Wait {
            count: replicas.count.max(1),
            timeout_ms: u64::try_from((left - left / 4).as_millis()).unwrap_or(u64::MAX).clamp(1, LONGEST_WAIT_MS),
        });
        // A digest that is not known would let WAIT use up the time for nothing.
        let form = if wait.is_some() { Form::Text } else { Form::Digest };
        let mut exchange = Exchange {
            id,
            asked: ops.iter().map(|op| Asked::of(&op.op)).collect(),
            outcomes: ops.iter().map(|_| None).collect(),
            calls: Vec::with_capacity(calls.len()),
            wait,
            form,
            commands: Vec::with_capacity(calls.len()),
        };
        for call in calls {
            exchange.write(call);
        }
        Ok(exchange)
    }

    /// The key with the counter of the resource.
    pub fn counter_key(resource: &Resource) -> Vec<u8> {
        keys::fence(resource)
    }

    /// The key with the loss of data since which the counter was raised, on a node of a quorum.
    pub fn trust_key(resource: &Resource) -> Vec<u8> {
        keys::trust(resource)
    }

    /// The channel where a release of the resource is told.
    pub fn channel(resource: &Resource) -> Vec<u8> {
        keys::channel(resource)
    }

    /// The resource that a message on a channel says is free; `None` if it is no message of ours.
    pub fn released_by(channel: &[u8], message: &[u8]) -> Option<Resource> {
        let resource = Resource::new(core::str::from_utf8(message).ok()?).ok()?;
        (keys::channel(&resource) == channel).then_some(resource)
    }

    /// Several renewals are one call, on a cluster those of one slot.
    fn joins(&self, call: &Call, earlier: &Call) -> bool {
        let renewals = is_renewal(call.script) && call.script == earlier.script;
        renewals && (self.settings.topology == Topology::Single || call.tag() == earlier.tag())
    }

    fn call(&self, op: &LockOp, unix_ms: u64) -> Result<Call, Denial> {
        let retention = decimal(ms(self.settings.retention).clamp(1, LONGEST_RETENTION_MS));
        let (script, args) = match &op.op {
            Op::Acquire(acquire) => {
                let value = value::written(&acquire.nonce, &acquire.owner, unix_ms, acquire.data.as_ref());
                let floor = decimal(acquire.floor.get());
                let mut args = alloc::vec![value.into_bytes(), ttl(acquire.record_ttl)?, retention, floor];
                match &acquire.member {
                    Some(member) => {
                        args.extend(membership(member));
                        (scripts::VOTE, args)
                    }
                    None => (scripts::ACQUIRE, args),
                }
            }
            Op::Renew(renew) => {
                let nonce = value::hex(&renew.nonce).into_bytes();
                let args = alloc::vec![retention, nonce, ttl(renew.record_ttl)?];
                match renew.quorum {
                    Some(durability) => (scripts::KEEP, [args, alloc::vec![asks_run(durability)]].concat()),
                    None => (scripts::RENEW, args),
                }
            }
            Op::Release(release) => {
                let nonce = value::hex(&release.nonce).into_bytes();
                let args = alloc::vec![nonce, keys::channel(&op.resource), retention];
                match release.quorum {
                    Some(durability) => (scripts::FREE, [args, alloc::vec![asks_run(durability)]].concat()),
                    None => (scripts::RELEASE, args),
                }
            }
            Op::Raise(raise) => {
                let nonce = value::hex(&raise.nonce).into_bytes();
                (
                    scripts::RAISE,
                    alloc::vec![
                        nonce,
                        retention,
                        decimal(raise.token.get()),
                        raise.loss.map(name_of).unwrap_or_default()
                    ],
                )
            }
            Op::Read => (scripts::READ, Vec::new()),
        };
        let lock = op.resource.as_str().as_bytes().to_vec();
        let mut keys = alloc::vec![lock, keys::fence(&op.resource)];
        if script == scripts::VOTE || script == scripts::RAISE {
            keys.extend([keys::MARKER.to_vec(), keys::trust(&op.resource)]);
        }
        if script == scripts::FREE {
            keys.push(keys::MARKER.to_vec());
        }
        Ok(Call { script, keys, args, ops: Vec::new() })
    }
}

const NO_CLUSTER: &str = "a Redis Cluster cannot be a node of a quorum: what it remembers of its membership would lie in \
    another slot than the lock; name single servers, or use the cluster alone";

fn is_renewal(script: Script) -> bool {
    script == scripts::RENEW || script == scripts::KEEP
}

/// Arguments that tell a vote of the quorum, in the order of the script's arguments.
fn membership(member: &Membership) -> [Vec<u8>; 6] {
    [
        member.quorum.to_string().into_bytes(),
        decimal(member.max_ttl_ms),
        name_of(member.fresh),
        member.waited_out.map(name_of).unwrap_or_default(),
        match member.bootstrap {
            Bootstrap::Yes => b"birth".to_vec(),
            Bootstrap::No => Vec::new(),
        },
        asks_run(member.durability),
    ]
}

fn name_of(loss: LossId) -> Vec<u8> {
    loss.to_string().into_bytes()
}

fn asks_run(durability: Durability) -> Vec<u8> {
    match durability {
        Durability::Declared => Vec::new(),
        Durability::NotDeclared => b"ask".to_vec(),
    }
}

/// A year, far above every deadline, and within what a server takes.
const LONGEST_WAIT_MS: u64 = 365 * 24 * 3600 * 1000;
const LONGEST_RETENTION_MS: u64 = 100 * LONGEST_WAIT_MS;

/// Rounded up: a record must not end before its holder believes that it does. Nothing at all would delete the key.
fn ttl(length: Duration) -> Result<Vec<u8>, Denial> {
    if length > MAX_RECORD_TTL {
        let detail = alloc::format!("a record of {length:?} is longer than the longest allowed, {MAX_RECORD_TTL:?}");
        return Err(Denial::new(DenialKind::Other, &detail));
    }
    Ok(decimal(ms(length).max(1)))
}

fn ms(length: Duration) -> u64 {
    u64::try_from(length.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX)
}

fn decimal(number: u64) -> Vec<u8> {
    number.to_string().into_bytes()
}

/// One script call, for one operation or for several renewals.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Call {
    script: Script,
    keys: Vec<Vec<u8>>,
    args: Vec<Vec<u8>>,
    /// Which operations of the exchange it carries, in the order of its keys.
    ops: Vec<usize>,
}

impl Call {
    /// The retention stands first and what is asked of the server last, and both are the same for all.
    fn join(&mut self, other: Self) {
        let own = other.args.into_iter().skip(1).take(2);
        let at = self.args.len() - usize::from(self.script == scripts::KEEP);
        self.args.splice(at..at, own);
        self.keys.extend(other.keys);
        self.ops.extend(other.ops);
    }

    /// Returns the part of its keys that a cluster hashes; names with equal tags share a slot.
    fn tag(&self) -> Option<&str> {
        let lock = core::str::from_utf8(self.keys.first()?).ok()?;
        Some(keys::hash_tag(lock).unwrap_or(lock))
    }

    fn command(self, form: Form, id: RequestId) -> Command {
        let mut args = Vec::with_capacity(4 + self.keys.len() + self.args.len());
        args.extend(form.words(self.script));
        let marker = (self.script == scripts::KEEP).then(|| keys::MARKER.to_vec());
        args.push(decimal((self.keys.len() + usize::from(marker.is_some())) as u64));
        args.extend(self.keys);
        args.extend(marker);
        args.extend(self.args);
        args.push(decimal(id.get()));
        Command { args }
    }
}

/// How a script is named in a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Form {
    Digest,
    Text,
}

impl Form {
    fn words(self, script: Script) -> [Vec<u8>; 2] {
        match self {
            Self::Digest => [b"EVALSHA".to_vec(), script.sha1.into()],
            Self::Text => [b"EVAL".to_vec(), script.text.into()],
        }
    }
}

/// The part of an operation that is needed to understand its reply.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Asked {
    Acquire(Nonce),
    /// An acquire at a node of this quorum, with this max_ttl in milliseconds.
    Vote(Nonce, QuorumId, u64),
    Renew(Nonce),
    Release(Nonce),
    Raise(Nonce, Token),
    Read,
}

impl Asked {
    fn of(op: &Op) -> Self {
        match op {
            Op::Acquire(op) => match &op.member {
                Some(member) => Self::Vote(op.nonce, member.quorum, member.max_ttl_ms),
                None => Self::Acquire(op.nonce),
            },
            Op::Renew(op) => Self::Renew(op.nonce),
            Op::Release(op) => Self::Release(op.nonce),
            Op::Raise(op) => Self::Raise(op.nonce, op.token),
            Op::Read => Self::Read,
        }
    }
}

/// A script call that was written down, and which operations it carries.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Sent {
    script: Script,
    ops: Vec<usize>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Wait {
    count: u32,
    timeout_ms: u64,
}

/// One request in up to two rounds: a script that the server does not know is sent whole in the second.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Exchange {
    id: RequestId,
    asked: Vec<Asked>,
    outcomes: Vec<Option<Outcome>>,
    /// Those without an answer so far, in the order of `commands`.
    calls: Vec<Sent>,
    wait: Option<Wait>,
    form: Form,
    commands: Vec<Command>,
}

/// Where an exchange stands after replies.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Progress {
    /// The outcome of each operation, in their order.
    Done(Vec<Outcome>),
    /// Send [`Exchange::commands`] again: they have changed.
    Again,
}

impl Exchange {
    /// To be sent at once and in order, on one connection that nobody else writes to in between.
    pub fn commands(&self) -> &[Command] {
        &self.commands
    }

    /// The replies to [`Exchange::commands`], in their order, one for each. Another number of them says nothing of any
    /// operation: all are unknown.
    pub fn replies(&mut self, replies: Vec<Value>) -> Progress {
        self.answers(replies.into_iter().map(Ok).collect())
    }

    /// The same where commands go to several servers, so that one may be answered and another not: in the place of a
    /// reply that never came stands what is known of its command, [`Outcome::NotApplied`] or [`Outcome::Unknown`].
    pub fn answers(&mut self, answers: Vec<Result<Value, Outcome>>) -> Progress {
        let calls = core::mem::take(&mut self.calls);
        let mut commands = core::mem::take(&mut self.commands).into_iter();
        if answers.len() == commands.len() {
            let mut answers = answers.iter();
            for call in calls {
                let (Some(answer), Some(command)) = (answers.next(), commands.next()) else { break };
                let wait = self.wait.filter(|_| call.awaits_replicas());
                let wait = wait.and_then(|wait| commands.next().and(answers.next()).map(|answer| (wait, answer)));
                let reply = match answer {
                    Ok(reply) => reply,
                    Err(outcome) => {
                        self.conclude(&call, call.ops.iter().map(|_| outcome.clone()).collect());
                        continue;
                    }
                };
                let is_unknown = matches!(reply, Value::Error(error) if classify(error) == ErrorClass::UnknownScript);
                if is_unknown && self.form == Form::Digest {
                    self.repeat(call, command);
                } else {
                    self.settle(&call, reply, wait);
                }
            }
        }
        self.form = Form::Text;
        if !self.calls.is_empty() {
            return Progress::Again;
        }
        let unanswered = || replies::protocol("another number of replies than commands");
        Progress::Done(self.outcomes.drain(..).map(|outcome| outcome.unwrap_or_else(unanswered)).collect())
    }

    fn settle(&mut self, call: &Sent, reply: &Value, wait: Option<(Wait, &Result<Value, Outcome>)>) {
        let asked: Vec<Asked> = call.ops.iter().filter_map(|index| self.asked.get(*index)).copied().collect();
        let outcomes = match asked.as_slice() {
            [asked] if !is_renewal(call.script) => alloc::vec![replies::outcome(self.id, *asked, reply)],
            asked => replies::renewals(self.id, asked, reply),
        };
        let confirmed = |outcome| match wait {
            Some((Wait { count, .. }, Ok(reply))) => replies::with_replicas(outcome, count, reply),
            Some((Wait { count, .. }, Err(_))) => replies::with_replicas(outcome, count, &Value::Nil),
            None => outcome,
        };
        self.conclude(call, outcomes.into_iter().map(confirmed).collect());
    }

    fn conclude(&mut self, call: &Sent, outcomes: Vec<Outcome>) {
        for (index, outcome) in call.ops.iter().zip(outcomes) {
            if let Some(place) = self.outcomes.get_mut(*index) {
                *place = Some(outcome);
            }
        }
    }

    fn write(&mut self, mut call: Call) {
        let sent = Sent { script: call.script, ops: core::mem::take(&mut call.ops) };
        self.commands.push(call.command(self.form, self.id));
        if let Some(Wait { count, timeout_ms }) = self.wait.filter(|_| sent.awaits_replicas()) {
            self.commands.push(Command::new([b"WAIT", &decimal(count.into()), &decimal(timeout_ms)]));
        }
        self.calls.push(sent);
    }

    /// The same call once more, with the whole script.
    fn repeat(&mut self, call: Sent, mut command: Command) {
        command.args.splice(..2, Form::Text.words(call.script));
        self.commands.push(command);
        self.calls.push(call);
    }
}

impl Sent {
    /// A release that a failover forgets leaves a record that runs out by itself: nobody need wait for it.
    fn awaits_replicas(&self) -> bool {
        self.script != scripts::READ && self.script != scripts::RELEASE
    }
}

impl fmt::Debug for Exchange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Exchange").field("commands", &self.commands).finish_non_exhaustive()
    }
}
