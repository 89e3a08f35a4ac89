//! Operations as commands for Redis (5 and newer) and Valkey, and what their replies mean.
//!
//! | what | where |
//! |---|---|
//! | lock | the resource as it is: `<nonce>@<owner>;<since>[;<data>]`, with an expiry; revoked: `!<nonce><owner>;` and so on |
//! | counter | `{resource}` 0x1F `fence of name`, decimal digits, kept for [`Settings::retention`] after its last use, give or take a hundredth |
//! | trust | in a quorum, after a loss of data: `{resource}` 0x1F `trust of name`, the loss since which the counter was raised |
//! | marker | in a quorum: `leasehold` 0x1F `quorum`, a [`Marker`](leasehold_core::member::Marker) |
//! | queue of waiters | see [`Queue`] |
//! | item of compare-and-set | see [`cas`] |
//! | wake-ups | channel `{resource}` 0x1F `wake of name`; the message is the resource |
//!
//! A resource that has a hash tag of its own gets no braces, and endings without ` of name`: `x` and `{x}` share nothing.
//! Other libraries keep their locks as plain values under the same key, so one excludes the other; theirs are shown as
//! [`Holder::Foreign`](leasehold_core::op::Holder::Foreign).

mod address;
pub mod cas;
pub mod cluster;
mod command;
mod errors;
mod exchange;
mod keys;
mod listing;
mod membership;
mod native;
#[cfg(test)]
mod native_tests;
mod process;
#[cfg(test)]
mod process_tests;
mod queue;
#[cfg(test)]
mod quorum_tests;
mod replies;
mod scripts;
#[cfg(test)]
mod scripts_tests;
mod server;
#[cfg(test)]
mod tests;
mod value;

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::time::Duration;

pub use address::Address;
pub use command::Command;
pub use errors::{ErrorClass, classify, error_outcome, leads_elsewhere, of_one_server, refusal};
pub(crate) use errors::{KNOWN, refuses_credentials, said};
pub use exchange::Exchange;
pub use keys::{SLOTS, slot};
pub use listing::{list, listed};
pub use membership::{FoundMarker, found, look, look_by_script, mark, marked};
pub use native::ConnectionMemory;
pub use process::ConnectionName;
pub use queue::{ClientId, Queue, Subscription};
pub use scripts::{SCRIPTS, Script};
pub use server::{info_by_script, time_ms};

use command::Words;
use exchange::{Asked, Call, Wait};
use leasehold_core::config::MAX_RECORD_TTL;
use leasehold_core::member::{Bootstrap, Durability, LossId, Membership, RETENTION};
use leasehold_core::op::{Denial, DenialKind, LockOp, Op};
use leasehold_core::session::none_is_told;
use leasehold_core::{OneOrMany, RequestId, Resource, Token};
use native::{Route, Transaction};
use process::Process;

/// Settings of a codec for its server.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Settings {
    /// How long an unused counter is kept: 7 days by default, at least 1 ms and at most 100 years. A connection that grants a name
    /// again and again pushes this out only after a hundredth of it, and after an hour at the latest. Far above the longest lease; by the time it is forgotten, the clocks have passed every token it gave.
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

/// The rest of a call of a script, beside its operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Sending {
    /// The sender's milliseconds since 1970.
    unix_ms: u64,
    /// No floor of an acquire by one server alone is below it.
    least: Token,
    /// The client's own channel, and if messages from this connection reach it.
    listens: Option<(Subscription, bool)>,
}

/// How to speak to one node. It knows nothing of connections and may be shared.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Codec {
    settings: Settings,
}

impl Codec {
    /// A codec for a server of this kind.
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
        let mut exchange = self.unwritten(id, ops, left);
        for call in self.calls(ops, Sending { unix_ms, least: Token::ZERO, listens: None })? {
            exchange.write(call);
        }
        Ok(exchange)
    }

    /// As [`Codec::begin`], over a connection whose memory is kept: an acquire of a name that it has lately granted is a
    /// transaction of native commands at first, and a script where that does not suffice. Afterwards the memory has to
    /// [learn](ConnectionMemory::learn).
    ///
    /// # Errors
    /// As [`Codec::begin`].
    pub fn begin_on(
        &self,
        memory: &ConnectionMemory,
        id: RequestId,
        ops: &[LockOp],
        left: Duration,
        unix_ms: u64,
    ) -> Result<Exchange, Denial> {
        let mut exchange = self.unwritten(id, ops, left);
        exchange.subscription = memory.own_channel();
        exchange.began_ms = unix_ms;
        exchange.pushed_ms = Some(unix_ms);
        // A resend may meet a replica that lags, which has missed tokens that are above the clock of the first send.
        let least = if let [_] = ops { native::floor_at(unix_ms) } else { Token::ZERO };
        let sending = Sending { unix_ms, least, listens: memory.subscription() };
        let route = self.route(memory, ops, unix_ms);
        if let (Route::Transaction(terms), [op]) = (route, ops) {
            exchange.transact(Transaction::new(self, op, sending, terms)?);
            return Ok(exchange);
        }
        let mut calls = self.calls(ops, sending)?.into_iter();
        let process = if self.asks_run_alone(ops) { memory.process } else { Process::Unknown };
        if let Process::Known(name, run) = process
            && let Some(call) = calls.next()
        {
            exchange.ask_process(call, name, &run);
            return Ok(exchange);
        }
        for call in calls {
            exchange.write(call);
        }
        if route == Route::ScriptAndTrial {
            exchange.try_transaction();
        }
        if let Process::Unasked(name) = process {
            exchange.introduce(name);
        }
        Ok(exchange)
    }

    /// Tells if the request is one vote, which is held against the run of the server.
    fn asks_run_alone(&self, ops: &[LockOp]) -> bool {
        let [LockOp { op: Op::Acquire(acquire), .. }] = ops else { return false };
        let asks = acquire.member.as_ref().is_some_and(|member| member.durability == Durability::NotDeclared);
        asks && self.settings.replicas.is_none()
    }

    fn route(&self, memory: &ConnectionMemory, ops: &[LockOp], unix_ms: u64) -> Route {
        let is_single = self.settings.topology == Topology::Single && self.settings.replicas.is_none();
        match ops {
            [LockOp { resource, op: Op::Acquire(op), .. }]
                if is_single && op.member.is_none() && !op.unless_done && !native::has_waited(op) =>
            {
                memory.route(resource, op.floor, unix_ms, self.retention_ms())
            }
            [..] => Route::Script,
        }
    }

    fn calls(&self, ops: &[LockOp], sending: Sending) -> Result<OneOrMany<Call>, Denial> {
        let mut calls: OneOrMany<Call> = OneOrMany::new();
        for (index, op) in ops.iter().enumerate() {
            if self.settings.topology == Topology::Cluster {
                keys::check_cluster(&op.resource)?;
            }
            let mut call = self.call(op, sending)?;
            let is_cluster = self.settings.topology == Topology::Cluster;
            if is_cluster && (*call.script == scripts::KEEP || call.keys.iter().any(|key| key == keys::MARKER)) {
                return Err(Denial::new(DenialKind::Membership, NO_CLUSTER));
            }
            call.ops.push(index);
            match calls.iter_mut().find(|earlier| self.joins(&call, earlier)) {
                Some(earlier) => earlier.join(call),
                None => calls.push(call),
            }
        }
        Ok(calls)
    }

    fn retention_ms(&self) -> u64 {
        ms(self.settings.retention).clamp(1, LONGEST_RETENTION_MS)
    }

    fn unwritten(&self, id: RequestId, ops: &[LockOp], left: Duration) -> Exchange {
        let wait = self.settings.replicas.map(|replicas| Wait {
            count: replicas.count.max(1),
            timeout_ms: u64::try_from((left - left / 4).as_millis()).unwrap_or(u64::MAX).clamp(1, LONGEST_WAIT_MS),
        });
        Exchange::new(id, ops, wait)
    }

    /// The key with the counter of the resource.
    pub fn counter_key(resource: &Resource) -> Vec<u8> {
        keys::of(resource).fence().concat()
    }

    /// The key with the loss of data since which the counter was raised, on a node of a quorum.
    pub fn trust_key(resource: &Resource) -> Vec<u8> {
        keys::of(resource).trust().concat()
    }

    /// The key with the completion of finished work.
    pub fn completion_key(resource: &Resource) -> Vec<u8> {
        keys::of(resource).done().concat()
    }

    /// The key with the record of the run that wrote the completion.
    pub fn about_key(resource: &Resource) -> Vec<u8> {
        keys::of(resource).about().concat()
    }

    /// The channel where a release of the resource is told.
    pub fn channel(resource: &Resource) -> Vec<u8> {
        keys::of(resource).channel().concat()
    }

    /// The resource that a message on a channel says is free; `None` if it is no message of ours.
    pub fn released_by(channel: &[u8], message: &[u8]) -> Option<Resource> {
        let resource = Resource::new(core::str::from_utf8(message).ok()?).ok()?;
        (keys::of(&resource).channel().concat() == channel).then_some(resource)
    }

    /// Several renewals are one call, on a cluster those of one slot.
    fn joins(&self, call: &Call, earlier: &Call) -> bool {
        let renewals = is_renewal(call.script) && call.script == earlier.script;
        renewals && (self.settings.topology == Topology::Single || call.tag() == earlier.tag())
    }

    fn call(&self, op: &LockOp, Sending { unix_ms, least, listens }: Sending) -> Result<Call, Denial> {
        let retention = self.retention_ms();
        let beside = keys::of(&op.resource);
        let lock = op.resource.as_str().as_bytes();
        let mut keys = Words::with_capacity(2 * lock.len() + SIZE_OF_KEYS);
        keys.push(lock);
        keys.push_parts(&beside.fence());
        let mut args = Words::with_capacity(SIZE_OF_ARGUMENTS);
        let mut asks_run = None;
        let has_queue = self.settings.topology == Topology::Single;
        let queue = if has_queue { beside.queue() } else { keys::Beside::default() };
        let script: &'static Script = match &op.op {
            Op::Acquire(acquire) => {
                args.push_with(|value| value::write_grant(acquire, unix_ms, value));
                args.push_number(ttl(acquire.record_ttl)?);
                args.push_number(retention);
                let least = if acquire.member.is_none() { least } else { Token::ZERO };
                args.push_number(acquire.floor.max(least).get());
                match &acquire.member {
                    Some(member) => {
                        membership(member, &mut args);
                        asks_run = Some(member.durability);
                        if acquire.unless_done { &scripts::RUN_VOTE } else { &scripts::VOTE }
                    }
                    None if acquire.unless_done => &scripts::RUN,
                    None => match listens.filter(|_| acquire.in_queue) {
                        Some((subscription, is_tested)) => {
                            args.push(subscription.client.as_bytes());
                            args.push_number(op.lock.get());
                            args.push(if is_tested { b"" } else { b"test" });
                            args.push_parts(&queue);
                            &scripts::JOIN
                        }
                        None => &scripts::ACQUIRE,
                    },
                }
            }
            Op::Renew(renew) => {
                args.push_number(retention);
                args.push(&value::hex(&renew.nonce));
                args.push_number(ttl(renew.record_ttl)?);
                asks_run = renew.quorum;
                if renew.quorum.is_some() { &scripts::KEEP } else { &scripts::RENEW }
            }
            Op::Release(release) => {
                args.push(&value::hex(&release.nonce));
                args.push_parts(&beside.channel());
                args.push_number(retention);
                asks_run = release.quorum;
                if release.quorum.is_none() {
                    args.push_parts(&queue);
                }
                if release.quorum.is_some() { &scripts::FREE } else { &scripts::RELEASE }
            }
            Op::Finish(finish) => {
                let retention = ms(self.settings.retention.max(finish.keep)).clamp(1, LONGEST_RETENTION_MS);
                args.push(&value::hex(&finish.nonce));
                args.push_parts(&beside.channel());
                args.push_number(retention);
                args.push_with(|completion| {
                    value::write_completion(&finish.nonce, &finish.owner, unix_ms, finish.token, completion)
                });
                args.push_number(ms(finish.keep).clamp(1, LONGEST_RETENTION_MS));
                args.push_number(finish.counter.get());
                args.push_with(|about| value::write_about(finish.about.as_ref(), about));
                asks_run = finish.quorum;
                if finish.quorum.is_none() {
                    args.push_parts(&queue);
                }
                if finish.quorum.is_some() { &scripts::CONCLUDE } else { &scripts::FINISH }
            }
            Op::Revoke(revoke) => {
                args.push(&value::hex(&revoke.nonce));
                args.push_number(retention);
                &scripts::REVOKE
            }
            Op::Raise(raise) => {
                args.push(&value::hex(&raise.nonce));
                args.push_number(retention);
                args.push_number(raise.token.get());
                args.push(raise.loss.map(name_of).unwrap_or_default().as_bytes());
                &scripts::RAISE
            }
            Op::Tell(_) => return Err(none_is_told()),
            Op::Read => &scripts::READ,
        };
        // The marker is the last key of scripts that ask if the node is in doubt, and comes before what a vote reads.
        match script.name {
            "vote" | "raise" => {
                keys.push(keys::MARKER);
                keys.push_parts(&beside.trust());
            }
            "run_vote" => {
                keys.push(keys::MARKER);
                keys.push_parts(&beside.about());
                keys.push_parts(&beside.done());
            }
            // A key that is not there costs a server of a cluster its answer while the slot moves.
            "read" if !op.resource.may_be_of_run() => {}
            "run" | "finish" | "read" => {
                keys.push_parts(&beside.about());
                keys.push_parts(&beside.done());
            }
            "conclude" => {
                keys.push_parts(&beside.about());
                keys.push_parts(&beside.done());
                keys.push(keys::MARKER);
            }
            "free" => keys.push(keys::MARKER),
            _ => {}
        }
        Ok(Call { script, keys, args, asks_run, ops: OneOrMany::new() })
    }
}

/// Room for the keys of one operation beside its name, and for its arguments as they usually are.
const SIZE_OF_KEYS: usize = 64;
const SIZE_OF_ARGUMENTS: usize = 192;

const NO_CLUSTER: &str = "a Redis Cluster cannot be a node of a quorum: what it remembers of its membership would lie in \
    another slot than the lock; name single servers, or use the cluster alone";

fn is_renewal(script: &Script) -> bool {
    *script == scripts::RENEW || *script == scripts::KEEP
}

/// Adds arguments that tell a vote of the quorum, in the order of the script's arguments, up to that for the run.
fn membership(member: &Membership, args: &mut Words) {
    args.push(member.quorum.to_string().as_bytes());
    args.push_number(member.max_ttl_ms);
    args.push(name_of(member.fresh).as_bytes());
    args.push(member.waited_out.map(name_of).unwrap_or_default().as_bytes());
    args.push(match member.bootstrap {
        Bootstrap::Yes => b"birth",
        Bootstrap::No => b"",
    });
}

fn name_of(loss: LossId) -> String {
    loss.to_string()
}

/// The argument that has a script look for another run of its server.
fn asks_run(durability: Durability) -> &'static [u8] {
    match durability {
        Durability::Declared => b"",
        Durability::NotDeclared => b"ask",
    }
}

/// A year, far above every deadline, and within what a server takes.
const LONGEST_WAIT_MS: u64 = 365 * 24 * 3600 * 1000;
const LONGEST_RETENTION_MS: u64 = 100 * LONGEST_WAIT_MS;

/// Rounded up: a record must not end before its holder believes that it does. Nothing at all would delete the key.
fn ttl(length: Duration) -> Result<u64, Denial> {
    if length > MAX_RECORD_TTL {
        let detail = alloc::format!("a record of {length:?} is longer than the longest allowed, {MAX_RECORD_TTL:?}");
        return Err(Denial::new(DenialKind::Other, &detail));
    }
    Ok(ms(length).max(1))
}

fn ms(length: Duration) -> u64 {
    u64::try_from(length.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX)
}
