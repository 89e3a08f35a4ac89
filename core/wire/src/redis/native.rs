//! The short way to a lock: a transaction of native commands in place of a script, for about half of the server's time.
//!
//! A script mints `max(counter + 1, floor)`, and the floor is the wall clock. A transaction can only count up, so its token
//! is below the clock, and a counter that was lost or fell back would repeat tokens. Therefore the transaction is taken
//! only where this very connection has lately granted the same name twice in a row, and its token counts only if it is
//! above the last one. Whatever else it answers, the script decides.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use super::command::Words;
use super::errors::refusal;
use super::exchange::{Answer, Call};
use super::process::{ConnectionName, Process};
use super::replies::token;
use super::{Codec, Command, Exchange, Sending, Subscription, keys, ttl, value};
use crate::resp::Value;
use leasehold_core::op::{Acquire, Applied, Denial, Fault, FaultKind, LockOp, Op, Outcome, Refusal, Release};
use leasehold_core::{Nonce, Resource, Token};

/// How far the tokens of transactions may be behind the wall clock, in the unit of tokens: a second.
const BEHIND: u64 = 1_000_000;
/// The retention of a counter is pushed out again after a hundredth of it, and after an hour at the latest.
const LONGEST_UNPUSHED_MS: u64 = 3_600_000;
/// The most names that are remembered for a connection.
const MOST_NAMES: usize = 4_096;

/// Room for the words of `SET` and `INCR` beside the name of the lock, as they usually are.
const SIZE_OF_SET: usize = 160;
const SIZE_OF_COUNT: usize = 40;

pub(super) const MULTI: Command = Command::of(Words::constant(b"$5\r\nMULTI\r\n"));
pub(super) const EXEC: Command = Command::of(Words::constant(b"$4\r\nEXEC\r\n"));

/// The tokens that one connection has lately granted. It belongs to that connection and ends with it, since a new one
/// may lead to a server that has never heard of them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct ConnectionMemory {
    transactions: Transactions,
    names: BTreeMap<Resource, LastGrant>,
    subscription: Option<Subscription>,
    /// The subscription that the server of this connection has sent a message to.
    heard: Option<u64>,
    pub(super) process: Process,
}

/// The user's right to transactions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
enum Transactions {
    #[default]
    Unasked,
    Allowed,
    Refused,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct LastGrant {
    token: Token,
    /// It followed another grant: nobody else was in the way.
    in_a_row: bool,
    /// The sender's wall clock when this connection last pushed out the retention of the counter.
    pushed_ms: u64,
}

/// The largest token that a wall clock asks for, as in the core.
const MAX_FLOOR: u64 = 1 << 52;

/// The token that a wall clock asks for.
pub(super) fn floor_at(unix_ms: u64) -> Token {
    Token::new(unix_ms.saturating_mul(1_000).min(MAX_FLOOR)).unwrap_or(Token::MAX)
}

/// Tells if a waiter asks again, so that others are in the way: a lock that is reserved for it is not free.
pub(super) const fn has_waited(acquire: &Acquire) -> bool {
    acquire.in_queue && acquire.seq.get() > 1
}

/// The way of an acquire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Route {
    Script,
    /// The script, and an empty transaction to learn if the user may have one.
    ScriptAndTrial,
    Transaction(Terms),
}

/// The terms of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Terms {
    /// Its token must be at least this.
    pub(super) floor: Token,
    /// It pushes out the retention of the counter.
    pub(super) pushes: bool,
}

impl ConnectionMemory {
    /// The memory of a connection that may be given a name: votes of quorums are cheaper over it.
    pub fn named(name: ConnectionName) -> Self {
        Self { process: Process::Unasked(name), ..Self::default() }
    }

    /// Notes if the client's own channel is subscribed now. Only then do its acquires stand in the queue.
    pub const fn listens(&mut self, subscription: Option<Subscription>) {
        self.subscription = subscription;
    }

    pub(super) const fn own_channel(&self) -> Option<Subscription> {
        self.subscription
    }

    /// The client's own channel, and if messages from this connection reach it.
    pub(super) fn subscription(&self) -> Option<(Subscription, bool)> {
        self.subscription.map(|subscription| (subscription, self.heard == Some(subscription.generation)))
    }

    /// `unix_ms` is the wall clock now. A floor that is above it comes from a token that this client has seen, and holds
    /// as it is.
    pub(super) fn route(&self, resource: &Resource, floor: Token, unix_ms: u64, retention_ms: u64) -> Route {
        let Some(last) = self.names.get(resource) else { return Route::Script };
        let slack = if floor > floor_at(unix_ms) { 0 } else { BEHIND };
        let Some(next) = last.token.next() else { return Route::Script };
        match self.transactions {
            Transactions::Unasked => Route::ScriptAndTrial,
            Transactions::Allowed if last.in_a_row && next.get().saturating_add(slack) >= floor.get() => {
                // A clock that was set back says nothing of the time since then.
                let since = unix_ms.checked_sub(last.pushed_ms);
                let pushes = since.is_none_or(|since| since >= LONGEST_UNPUSHED_MS.min(retention_ms / 100));
                Route::Transaction(Terms { floor: next, pushes })
            }
            Transactions::Allowed | Transactions::Refused => Route::Script,
        }
    }

    /// Learns from an exchange over this connection that is done.
    pub fn learn(&mut self, exchange: &Exchange, ops: &[LockOp], outcomes: &[Outcome]) {
        match exchange.may_transact {
            Some(true) => self.transactions = Transactions::Allowed,
            Some(false) => self.transactions = Transactions::Refused,
            None => {}
        }
        self.process = exchange.process.unwrap_or(self.process);
        if exchange.place().is_some() {
            self.heard = exchange.subscription.map(|subscription| subscription.generation);
        }
        for (op, outcome) in ops.iter().zip(outcomes) {
            if !matches!(op.op, Op::Acquire(_)) {
                continue;
            }
            let waited = matches!(&op.op, Op::Acquire(acquire) if has_waited(acquire));
            match outcome {
                Outcome::Applied(Applied::Acquired { counter })
                    if self.transactions != Transactions::Refused && !waited =>
                {
                    self.granted(&op.resource, *counter, exchange.pushed_ms);
                }
                Outcome::Applied(_) | Outcome::NotApplied(_) | Outcome::Unknown(_) => {
                    self.names.remove(&op.resource);
                }
            }
        }
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.names.len()
    }

    fn granted(&mut self, resource: &Resource, token: Token, pushed_ms: Option<u64>) {
        if let Some(last) = self.names.get_mut(resource) {
            *last = LastGrant { token, in_a_row: true, pushed_ms: pushed_ms.unwrap_or(last.pushed_ms) };
            return;
        }
        // Only a name that is known is taken by a transaction, so a script has pushed.
        let Some(pushed_ms) = pushed_ms else { return };
        if self.names.len() >= MOST_NAMES {
            self.names.clear();
        }
        self.names.insert(resource.clone(), LastGrant { token, in_a_row: false, pushed_ms });
    }
}

/// The result of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Granted(Token),
    /// The script finishes it.
    Unfinished {
        /// The lock may be ours by now.
        may_hold: bool,
        /// The server did not take a command.
        refused: bool,
    },
    /// Each command ran by itself, or did not.
    NoTransaction {
        /// The lock may be ours by now.
        may_hold: bool,
    },
    /// The replies make no sense.
    Nonsense,
}

/// A transaction of an acquire, and what the script needs that finishes what it leaves open.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) struct Transaction {
    codec: Codec,
    op: LockOp,
    sending: Sending,
    pub(super) terms: Terms,
    pub(super) commands: Vec<Command>,
}

impl Transaction {
    /// # Errors
    /// A record that would last too long.
    pub(super) fn new(codec: &Codec, op: &LockOp, sending: Sending, terms: Terms) -> Result<Self, Denial> {
        let mut commands = Vec::with_capacity(5);
        if let Op::Acquire(acquire) = &op.op {
            let (lock, fence) = (op.resource.as_str().as_bytes(), keys::of(&op.resource).fence());
            let mut set = Words::with_capacity(lock.len() + SIZE_OF_SET);
            set.append_encoded(b"$3\r\nSET\r\n", 1);
            set.push(lock);
            set.push_with(|value| value::write_grant(acquire, sending.unix_ms, value));
            set.append_encoded(b"$2\r\nNX\r\n$2\r\nPX\r\n", 2);
            set.push_number(ttl(acquire.record_ttl)?);
            let mut count = Words::with_capacity(lock.len() + SIZE_OF_COUNT);
            count.append_encoded(b"$4\r\nINCR\r\n", 1);
            count.push_parts(&fence);
            commands.extend([MULTI, Command::of(set), Command::of(count)]);
            if terms.pushes {
                let mut push = Words::default();
                push.append_encoded(b"$7\r\nPEXPIRE\r\n", 1);
                push.push_parts(&fence);
                push.push_number(codec.retention_ms());
                commands.push(Command::of(push));
            }
            commands.push(EXEC);
        }
        Ok(Self { codec: codec.clone(), op: op.clone(), sending, terms, commands })
    }

    /// The script that takes the lock.
    pub(super) fn script(&self) -> Result<Call, Denial> {
        self.call(&self.op)
    }

    /// The release of what it may have taken.
    pub(super) fn undo(&self) -> Result<Call, Denial> {
        let release = Release { nonce: self.op.op.nonce().unwrap_or(Nonce::from_bytes([0; 16])), quorum: None };
        self.call(&LockOp { op: Op::Release(release), ..self.op.clone() })
    }

    fn call(&self, op: &LockOp) -> Result<Call, Denial> {
        let mut call = self.codec.call(op, self.sending)?;
        call.ops.push(0);
        Ok(call)
    }
}

/// An empty transaction.
pub(super) const fn trial() -> [Command; 2] {
    [MULTI, EXEC]
}

/// Judges the replies to [`trial`].
pub(super) fn is_allowed(multi: Answer<'_>, exec: Answer<'_>) -> bool {
    is_ok(multi) && matches!(exec, Ok(Value::Array(parts)) if parts.is_empty())
}

/// Judges the replies to [`transaction`]. Only a `MULTI` that was answered OK makes one of them; without it, `SET` runs
/// whatever becomes of the rest.
pub(super) fn judge<A>(answers: &[A], read: impl Fn(&A) -> Answer<'_> + Copy, floor: Token) -> Verdict {
    let [multi, queued @ .., exec] = answers else { return Verdict::Nonsense };
    let count = queued.len();
    let (multi, mut queued, exec) = (read(multi), queued.iter().map(read), read(exec));
    if matches!(multi, Ok(Value::Error(_)) | Err(_)) {
        let not_set = match queued.next() {
            Some(Ok(Value::Nil) | Err(Outcome::NotApplied(_))) => true,
            Some(Ok(Value::Error(error))) => refusal(error).is_some(),
            Some(Ok(_) | Err(_)) | None => false,
        };
        return Verdict::NoTransaction { may_hold: !not_set };
    }
    let refused = !queued.all(is_queued);
    match exec {
        _ if !is_ok(multi) => Verdict::Nonsense,
        Ok(Value::Array(parts)) if !refused && parts.len() == count => of_parts(parts, floor),
        // Aborted as a whole, as the server says.
        Ok(Value::Error(error)) => Verdict::Unfinished { may_hold: refusal(error).is_none(), refused },
        Err(Outcome::NotApplied(_)) => Verdict::Unfinished { may_hold: false, refused },
        Ok(_) | Err(_) => Verdict::Nonsense,
    }
}

fn of_parts(parts: &[Value], floor: Token) -> Verdict {
    let [set, count, pushed @ ..] = parts else { return Verdict::Nonsense };
    if matches!(set, Value::Nil | Value::Error(_)) {
        return Verdict::Unfinished { may_hold: false, refused: false };
    }
    if !is_ok_value(set) {
        return Verdict::Nonsense;
    }
    match token(count).filter(|token| *token >= floor) {
        Some(token) if pushed.iter().all(|pushed| *pushed == Value::Integer(1)) => Verdict::Granted(token),
        Some(_) | None => Verdict::Unfinished { may_hold: true, refused: false },
    }
}

/// The outcome of an acquire whose lock was given back, by the outcome of that release.
pub(super) fn undone(release: Outcome) -> Outcome {
    match release {
        Outcome::Applied(_) | Outcome::NotApplied(Refusal::Conflict(_)) => {
            let detail = "the user may not use MULTI any more, so that a lock was taken without a token and given back";
            Outcome::NotApplied(Refusal::Unavailable(Fault::new(FaultKind::Server, detail)))
        }
        other @ (Outcome::NotApplied(_) | Outcome::Unknown(_)) => unfinished(other),
    }
}

/// The outcome of an acquire that may have taken the lock, where `last` is that of its last script.
pub(super) fn unfinished(last: Outcome) -> Outcome {
    match last {
        Outcome::NotApplied(Refusal::Denied(denial)) => Outcome::Unknown(Fault::new(FaultKind::Server, &denial.detail)),
        Outcome::NotApplied(
            Refusal::Unavailable(fault) | Refusal::Throttled(fault) | Refusal::NeedsCredentials(fault),
        ) => Outcome::Unknown(fault),
        Outcome::NotApplied(Refusal::Conflict(_) | Refusal::Done(_) | Refusal::Abstains { .. }) => {
            Outcome::Unknown(Fault::of(FaultKind::Server))
        }
        other @ (Outcome::Applied(_) | Outcome::Unknown(_)) => other,
    }
}

pub(super) fn is_ok(answer: Answer<'_>) -> bool {
    answer.is_ok_and(is_ok_value)
}

fn is_ok_value(value: &Value) -> bool {
    value.as_bytes() == Some(b"OK")
}

pub(super) fn is_queued(answer: Answer<'_>) -> bool {
    answer.is_ok_and(|value| value.as_bytes() == Some(b"QUEUED"))
}
