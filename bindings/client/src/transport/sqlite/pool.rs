//! Connections for later use, and turns at using them.

use std::path::Path;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use leasehold_core::Monotonic;

use super::connection::Connection;
use super::trouble::Trouble;
use crate::clock;
use crate::fork::gate::CloseBeforeFork;

/// At most so many connections in use at once; whoever comes later waits for a turn rather than for the file lock,
/// which is handed over faster.
pub(super) struct Pool {
    /// Touched inside the gate only.
    idle: Mutex<Vec<Connection>>,
    turns: Mutex<Turns>,
    turn_ended: Condvar,
}

/// A turn that ends goes to somebody who waits. If it were up for grabs, the thread that just ended it would have it
/// again most of the time.
struct Turns {
    free: usize,
    /// Given to those who wait, but not taken yet.
    given: usize,
    waiting: usize,
}

/// The right to use one connection. Taken before entering the gate, so that a fork does not wait for those who wait.
pub(super) struct Turn<'a>(&'a Pool);

impl Pool {
    pub(super) fn new(turns: usize) -> Self {
        let turns = Turns { free: turns, given: 0, waiting: 0 };
        Self { idle: Mutex::default(), turns: Mutex::new(turns), turn_ended: Condvar::new() }
    }

    /// `None` when the deadline comes first.
    pub(super) fn turn(&self, until: Monotonic) -> Option<Turn<'_>> {
        let mut turns = self.turns();
        if turns.free > 0 {
            turns.free -= 1;
            return Some(Turn(self));
        }
        turns.waiting += 1;
        loop {
            if turns.given > 0 {
                turns.given -= 1;
                turns.waiting -= 1;
                return Some(Turn(self));
            }
            let left = until.since(clock::monotonic());
            if left.is_zero() {
                turns.waiting -= 1;
                return None;
            }
            // The condition variable's own clock stands still in suspend, so it is not trusted with more than a second.
            let wait = left.min(Duration::from_secs(1));
            (turns, _) = self.turn_ended.wait_timeout(turns, wait).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn turns(&self) -> MutexGuard<'_, Turns> {
        self.turns.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Connection>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Turn<'_> {
    /// A connection to the file that the path leads to now.
    pub(super) fn connection(&self, path: &Path, until: Monotonic) -> Result<Connection, Trouble> {
        loop {
            let Some(connection) = self.0.idle().pop() else { return Connection::open(path, until) };
            if connection.is_at(path) {
                connection.give_up_at(until);
                return Ok(connection);
            }
            connection.abandon();
        }
    }

    /// Keeps a connection for the next one.
    pub(super) fn keep(&self, connection: Connection) {
        self.0.idle().push(connection);
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let mut turns = self.0.turns();
        if turns.waiting > turns.given {
            turns.given += 1;
            self.0.turn_ended.notify_one();
        } else {
            turns.free += 1;
        }
    }
}

/// The connections of one store.
pub(super) struct Pools {
    pub(super) callers: Pool,
    pub(super) background: Pool,
}

impl Pools {
    /// Closes everything in good order, the write-ahead log included. Call it inside the gate.
    pub(super) fn close(&self) {
        for pool in [&self.callers, &self.background] {
            let idle = std::mem::take(&mut *pool.idle());
            drop(idle);
        }
    }
}

impl CloseBeforeFork for Pools {
    fn close(&self) {
        for pool in [&self.callers, &self.background] {
            pool.idle().drain(..).for_each(Connection::abandon);
        }
    }
}
