//! The store against real files.

mod basics;
mod faults;
#[cfg(unix)]
mod fork;
mod hostile;
mod results;
#[cfg(unix)]
mod unix;
mod waiters;

use std::path::PathBuf;
use std::time::Duration;

use leasehold_core::op::{
    Acquire, Applied, Denial, Fault, Holding, LockOp, Op, Outcome, Refusal, Release, Renew, TransportFault,
};
use leasehold_core::{LockId, Monotonic, NodeId, Nonce, Owner, RequestId, Resource, Seq, Token, Transmit};

use super::Sqlite;
use crate::host::clock;
use crate::transport::{Pool, Transport, UnderLock};

const TTL: Duration = Duration::from_secs(3600);
/// So that a store that waits forever fails its test.
const PATIENCE: Duration = Duration::from_secs(20);

/// A folder of its own for one test.
struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    fn file(&self) -> PathBuf {
        self.folder.path().join("locks.db")
    }

    fn open(&self) -> Sqlite {
        Sqlite::open(&self.file()).unwrap()
    }

    /// The file as anybody else sees it.
    fn raw(&self) -> rusqlite::Connection {
        rusqlite::Connection::open(self.file()).unwrap()
    }

    fn refused(&self) -> String {
        Sqlite::open(&self.file()).err().expect("must be refused").to_string()
    }
}

fn nonce(id: u8) -> Nonce {
    Nonce::from_bytes([id; 16])
}

fn on(name: &str, op: Op) -> LockOp {
    LockOp { lock: LockId::new(1), resource: Resource::new(name).unwrap(), op }
}

fn acquire(name: &str, id: u8) -> LockOp {
    acquire_from(name, id, 0)
}

fn acquire_from(name: &str, id: u8, floor: u64) -> LockOp {
    acquire_with(name, id, |op| op.floor = Token::new(floor).unwrap())
}

fn acquire_with(name: &str, id: u8, change: impl FnOnce(&mut Acquire)) -> LockOp {
    let mut op =
        Acquire { owner: Owner::new(&format!("worker {id}")).unwrap(), ..Acquire::new(nonce(id), Seq::new(1), TTL) };
    change(&mut op);
    on(name, Op::Acquire(Box::new(op)))
}

fn renew(name: &str, id: u8, seq: u32) -> LockOp {
    on(name, Op::Renew(Renew { nonce: nonce(id), seq: Seq::new(seq), record_ttl: TTL, quorum: None }))
}

fn release(name: &str, id: u8) -> LockOp {
    on(name, Op::Release(Release { nonce: nonce(id), quorum: None }))
}

fn read(name: &str) -> LockOp {
    on(name, Op::Read)
}

fn request(ops: Vec<LockOp>, patience: Duration) -> Transmit {
    Transmit {
        id: RequestId::new(1),
        node: NodeId::new(0),
        deadline: clock::monotonic().plus(patience),
        ops: ops.into(),
    }
}

fn all(store: &Sqlite, ops: Vec<LockOp>) -> Result<Vec<Outcome>, TransportFault> {
    store.perform(&request(ops, PATIENCE), Pool::Caller)
}

fn one(store: &Sqlite, op: LockOp) -> Outcome {
    all(store, vec![op]).unwrap().remove(0)
}

#[track_caller]
fn token(outcome: Outcome) -> u64 {
    let Outcome::Applied(Applied::Acquired { counter }) = outcome else { panic!("not acquired: {outcome:?}") };
    counter.get()
}

/// The record that stood in the way, or that a read showed.
#[track_caller]
fn shown(outcome: Outcome) -> Option<Box<Holding>> {
    let (Outcome::NotApplied(Refusal::Conflict(seen)) | Outcome::Applied(Applied::Read(seen))) = outcome else {
        panic!("neither conflict nor read: {outcome:?}")
    };
    seen.holding
}

#[track_caller]
fn denial(outcome: Outcome) -> Denial {
    let Outcome::NotApplied(Refusal::Denied(denial)) = outcome else { panic!("not denied: {outcome:?}") };
    denial
}

#[track_caller]
fn unavailable(outcome: Outcome) -> Fault {
    let Outcome::NotApplied(Refusal::Unavailable(fault)) = outcome else { panic!("not unavailable: {outcome:?}") };
    fault
}

fn soon() -> Monotonic {
    clock::monotonic().plus(PATIENCE)
}
