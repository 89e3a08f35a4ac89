//! Operations as commands for Redis (5 and newer) and Valkey, and what their replies mean.
//!
//! | what | where |
//! |---|---|
//! | lock | the resource as it is: `<nonce>@<owner>;<since>[;<data>]`, with an expiry |
//! | counter | `{resource}` 0x1F `fence`, decimal digits, kept for [`Settings::retention`] after its last use |
//! | wake-ups | channel `{resource}` 0x1F `wake`; the message is the resource |
//!
//! A resource that has a hash tag of its own gets no braces. Other libraries keep their locks as plain values under
//! the same key, so one excludes the other; theirs are shown as [`Holder::Foreign`](crate::op::Holder::Foreign).

mod errors;
mod keys;
mod replies;
mod scripts;
#[cfg(test)]
mod tests;
mod value;

use alloc::string::ToString;
use alloc::vec::Vec;
use core::fmt;
use core::time::Duration;

pub(crate) use errors::said;
pub use errors::{ErrorClass, classify, error_outcome, refusal};
pub use scripts::{SCRIPTS, Script};

use crate::config::MAX_RECORD_TTL;
use crate::ids::{Nonce, RequestId, Resource, Token};
use crate::op::{Denial, DenialKind, LockOp, Op, Outcome};
use crate::wire::resp::Value;

/// One command: its name and its arguments.
///
/// `Debug` shows the name only, for the arguments name attempts, and whoever knows one can free its lock.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Command {
    /// The name first.
    pub args: Vec<Vec<u8>>,
}

impl Command {
    fn new<const N: usize>(args: [&[u8]; N]) -> Self {
        Self { args: args.map(<[u8]>::to_vec).into() }
    }
}

impl fmt::Debug for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.args.first().map_or("?", |name| core::str::from_utf8(name).unwrap_or("?"));
        write!(f, "Command({name:?}, {} arguments)", self.args.len().saturating_sub(1))
    }
}

/// What a session must know of its server.
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
        Self { retention: Duration::from_secs(7 * 24 * 3600), replicas: None, topology: Topology::Single }
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

    /// Where a release of the resource is told.
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
        let renewals = call.script == scripts::RENEW && earlier.script == scripts::RENEW;
        renewals && (self.settings.topology == Topology::Single || call.tag() == earlier.tag())
    }

    fn call(&self, op: &LockOp, unix_ms: u64) -> Result<Call, Denial> {
        let retention = decimal(ms(self.settings.retention).clamp(1, LONGEST_RETENTION_MS));
        let (script, args) = match &op.op {
            Op::Acquire(acquire) => {
                let value = value::written(&acquire.nonce, &acquire.owner, unix_ms, acquire.data.as_ref());
                let floor = decimal(acquire.floor.get());
                let args = alloc::vec![value.into_bytes(), ttl(acquire.record_ttl)?, retention, floor];
                (scripts::ACQUIRE, args)
            }
            Op::Renew(renew) => {
                let nonce = value::hex(&renew.nonce).into_bytes();
                (scripts::RENEW, alloc::vec![retention, nonce, ttl(renew.record_ttl)?])
            }
            Op::Release(release) => {
                let nonce = value::hex(&release.nonce).into_bytes();
                (scripts::RELEASE, alloc::vec![nonce, keys::channel(&op.resource), retention])
            }
            Op::Raise(raise) => {
                let nonce = value::hex(&raise.nonce).into_bytes();
                (scripts::RAISE, alloc::vec![nonce, retention, decimal(raise.token.get())])
            }
            Op::Read => (scripts::READ, Vec::new()),
        };
        let lock = op.resource.as_str().as_bytes().to_vec();
        Ok(Call { script, keys: alloc::vec![lock, keys::fence(&op.resource)], args, ops: Vec::new() })
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
    /// The retention stands first, and is the same for all.
    fn join(&mut self, other: Self) {
        self.keys.extend(other.keys);
        self.args.extend(other.args.into_iter().skip(1));
        self.ops.extend(other.ops);
    }

    /// What a cluster hashes of its keys; names with equal tags share a slot.
    fn tag(&self) -> Option<&str> {
        let lock = core::str::from_utf8(self.keys.first()?).ok()?;
        Some(keys::hash_tag(lock).unwrap_or(lock))
    }

    fn command(self, form: Form, id: RequestId) -> Command {
        let mut args = Vec::with_capacity(4 + self.keys.len() + self.args.len());
        args.extend(form.words(self.script));
        args.push(decimal(self.keys.len() as u64));
        args.extend(self.keys);
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

/// What must be known of an operation to understand its reply.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Asked {
    Acquire(Nonce),
    Renew(Nonce),
    Release(Nonce),
    Raise(Nonce, Token),
    Read,
}

impl Asked {
    fn of(op: &Op) -> Self {
        match op {
            Op::Acquire(op) => Self::Acquire(op.nonce),
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
    /// What became of each operation, in their order.
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
        let calls = core::mem::take(&mut self.calls);
        let mut commands = core::mem::take(&mut self.commands).into_iter();
        if replies.len() == commands.len() {
            let mut replies = replies.iter();
            for call in calls {
                let (Some(reply), Some(command)) = (replies.next(), commands.next()) else { break };
                let wait = self.wait.filter(|_| call.awaits_replicas());
                let wait = wait.and_then(|wait| commands.next().and(replies.next()).map(|reply| (wait, reply)));
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

    fn settle(&mut self, call: &Sent, reply: &Value, wait: Option<(Wait, &Value)>) {
        let asked: Vec<Asked> = call.ops.iter().filter_map(|index| self.asked.get(*index)).copied().collect();
        let outcomes = match asked.as_slice() {
            [asked] if call.script != scripts::RENEW => alloc::vec![replies::outcome(self.id, *asked, reply)],
            asked => replies::renewals(self.id, asked, reply),
        };
        for (index, outcome) in call.ops.iter().zip(outcomes) {
            let outcome = match wait {
                Some((Wait { count, .. }, reply)) => replies::with_replicas(outcome, count, reply),
                None => outcome,
            };
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
