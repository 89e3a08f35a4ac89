//! The server process behind a connection, whose run id a vote is held against.
//!
//! A process does not outlive its connections, so a connection asks for the run id once, in place of every vote: `INFO` costs a
//! server more than the rest of a vote. A proxy may lead a connection to another process without a word. Therefore the connection
//! is given a name that nobody else knows, and each vote is one transaction with the question for it.

use alloc::boxed::Box;
use alloc::vec::Vec;

use super::exchange::{Answer, Call};
use super::native::{EXEC, MULTI, is_ok, is_queued};
use super::value::hex;
use super::{Command, refusal};
use crate::resp::Value;
use leasehold_core::Nonce;
use leasehold_core::op::Outcome;

/// Knowledge of the process behind a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) enum Process {
    /// Nothing: each vote asks.
    #[default]
    Unknown,
    /// The next vote gives the connection this name, and asks.
    Unasked(ConnectionName),
    Known(ConnectionName, RunId),
}

/// A name of a connection that nobody else knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ConnectionName([u8; 16]);

impl ConnectionName {
    /// The bytes must be fresh and random.
    pub const fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    fn word(self) -> Vec<u8> {
        [b"leasehold-".as_slice(), &hex(&Nonce::from_bytes(self.0))].concat()
    }
}

/// The id that a process has chosen at its start: 40 hexadecimal digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct RunId([u8; 40]);

impl RunId {
    pub(super) const fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    fn in_info(info: &[u8]) -> Option<Self> {
        let info = core::str::from_utf8(info).ok()?;
        let id = info.lines().find_map(|line| line.strip_prefix("run_id:"))?.trim_end();
        let id: [u8; 40] = id.as_bytes().try_into().ok()?;
        id.iter().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f')).then_some(Self(id))
    }
}

/// A vote that the process of this name is asked for.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) struct Vote {
    pub(super) call: Call,
    pub(super) name: ConnectionName,
}

/// The number of commands of [`introduction`].
pub(super) const INTRODUCTION: usize = 4;

/// Names the connection, and asks for the run id.
pub(super) fn introduction(name: ConnectionName) -> [Command; INTRODUCTION] {
    let word = name.word();
    let set = Command::new([b"CLIENT".as_slice(), b"SETNAME", &word]);
    [MULTI, set, Command::new(["INFO", "server"]), EXEC]
}

/// Judges the replies to [`introduction`].
pub(super) fn introduced(name: ConnectionName, multi: Answer<'_>, exec: Answer<'_>) -> Process {
    let (true, Ok(Value::Array(parts))) = (is_ok(multi), exec) else { return Process::Unknown };
    match &parts[..] {
        [set, info] if is_ok(Ok(set)) => {
            let id = info.as_bytes().and_then(RunId::in_info);
            id.map_or(Process::Unknown, |id| Process::Known(name, id))
        }
        _ => Process::Unknown,
    }
}

/// The commands of a vote, by one process alone.
pub(super) fn by_one_process(vote: Command) -> Vec<Command> {
    Vec::from([MULTI, Command::new(["CLIENT", "GETNAME"]), vote, EXEC])
}

/// The answer to a vote.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Answered {
    ByTheProcess(Box<Value>),
    /// By another process, or nobody says which.
    Otherwise {
        /// The lock may be ours by now.
        may_hold: bool,
    },
}

/// Judges the replies to [`by_one_process`].
pub(super) fn judge<A>(answers: &[A], read: impl Fn(&A) -> Answer<'_>, name: ConnectionName) -> Answered {
    let [multi, get, vote, exec] = answers else { return Answered::Otherwise { may_hold: true } };
    let is_whole = is_ok(read(multi)) && is_queued(read(get)) && is_queued(read(vote));
    match read(exec) {
        Ok(Value::Array(parts)) if is_whole => match &parts[..] {
            [given, reply] if given.as_bytes() == Some(&name.word()) => Answered::ByTheProcess(Box::new(reply.clone())),
            _ => Answered::Otherwise { may_hold: true },
        },
        // Aborted as a whole, as the server says.
        Ok(Value::Error(error)) => Answered::Otherwise { may_hold: !is_ok(read(multi)) || refusal(error).is_none() },
        Err(Outcome::NotApplied(_)) => Answered::Otherwise { may_hold: !is_ok(read(multi)) },
        Ok(_) | Err(_) => Answered::Otherwise { may_hold: true },
    }
}
