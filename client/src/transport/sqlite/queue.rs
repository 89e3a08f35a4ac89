//! A connection, and the queue of threads for it.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use leasehold_core::Monotonic;

use super::connection::Connection;
use super::error::SqliteError;
use crate::host::clock;
use crate::host::fork::gate::CloseBeforeFork;
use crate::host::sync::{Condvar, Mutex};

/// One connection for many threads. SQLite lets one write at a time anyway. A queue hands over faster than the file
/// lock, for which threads sleep and try again, and it starves no thread.
pub(super) struct Queue {
    /// Used only inside the gate.
    connection: Mutex<Option<Connection>>,
    turns: Mutex<Turns>,
}

/// The turns of waiting threads, in the order of their arrival. Without this order the thread that has just finished
/// would win most of the time, and others would starve.
#[derive(Default)]
struct Turns {
    taken: bool,
    waiting: VecDeque<Arc<Condvar>>,
}

/// The right to use the connection. It is taken before the gate is entered, so that a fork does not wait for waiting
/// threads.
pub(super) struct Turn<'a>(&'a Queue);

impl Queue {
    fn new() -> Self {
        Self { connection: Mutex::default(), turns: Mutex::default() }
    }

    /// `None` when the deadline comes first.
    pub(super) fn turn(&self, until: Monotonic) -> Option<Turn<'_>> {
        let mut turns = self.turns.lock();
        if turns.taken || !turns.waiting.is_empty() {
            let me = Arc::new(Condvar::default());
            turns.waiting.push_back(Arc::clone(&me));
            while turns.taken || !turns.waiting.front().is_some_and(|first| Arc::ptr_eq(first, &me)) {
                let left = until.since(clock::monotonic());
                if left.is_zero() {
                    turns.waiting.retain(|other| !Arc::ptr_eq(other, &me));
                    turns.call_next();
                    return None;
                }
                // The condition variable's clock stops in suspend, so it never waits longer than a second.
                let wait = left.min(Duration::from_secs(1));
                turns = me.wait_timeout(turns, wait);
            }
            turns.waiting.pop_front();
        }
        turns.taken = true;
        Some(Turn(self))
    }
}

impl Turns {
    fn call_next(&self) {
        if let Some(first) = self.waiting.front().filter(|_| !self.taken) {
            first.notify_one();
        }
    }
}

impl Turn<'_> {
    /// A connection to the file that the path leads to now.
    pub(super) fn connection(&self, path: &Path, until: Monotonic) -> Result<Connection, SqliteError> {
        let Some(connection) = self.0.connection.lock().take() else { return Connection::open(path, until) };
        if connection.is_at(path) {
            connection.give_up_at(until);
            return Ok(connection);
        }
        connection.abandon();
        Connection::open(path, until)
    }

    /// Keeps the connection for the next turn.
    pub(super) fn keep(&self, connection: Connection) {
        *self.0.connection.lock() = Some(connection);
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let mut turns = self.0.turns.lock();
        turns.taken = false;
        turns.call_next();
    }
}

/// The connections of one store, a queue for each kind of thread.
pub(super) struct Queues {
    pub(super) callers: Queue,
    pub(super) background: Queue,
}

impl Queues {
    pub(super) fn new() -> Self {
        Self { callers: Queue::new(), background: Queue::new() }
    }

    /// Closes all connections, the write-ahead log included. Call it inside the gate.
    pub(super) fn close(&self) {
        for queue in [&self.callers, &self.background] {
            drop(queue.connection.lock().take());
        }
    }
}

impl CloseBeforeFork for Queues {
    fn close(&self) {
        for queue in [&self.callers, &self.background] {
            if let Some(connection) = queue.connection.lock().take() {
                connection.abandon();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns once this many threads wait for a turn.
    fn until_waiting(queue: &Queue, count: usize) {
        let give_up = clock::monotonic().plus(Duration::from_secs(20));
        while queue.turns.lock().waiting.len() != count {
            assert!(clock::monotonic() < give_up);
            std::thread::yield_now();
        }
    }

    #[test]
    fn waiting_threads_get_turns_in_order() {
        let (queue, came) = (Queue::new(), Mutex::new(Vec::new()));
        std::thread::scope(|scope| {
            let first = queue.turn(Monotonic::FAR).unwrap();
            for id in 0..5 {
                let (queue, came) = (&queue, &came);
                scope.spawn(move || {
                    let _turn = queue.turn(Monotonic::FAR).unwrap();
                    came.lock().push(id);
                });
                until_waiting(queue, id + 1);
            }
            drop(first);
            let _last = queue.turn(Monotonic::FAR).unwrap();
            came.lock().push(5);
        });
        assert_eq!(*came.lock(), [0, 1, 2, 3, 4, 5]);
    }

    #[test]
    fn a_thread_that_gives_up_passes_the_turn_on() {
        let queue = Queue::new();
        let first = queue.turn(Monotonic::FAR).unwrap();
        assert!(queue.turn(clock::monotonic()).is_none());
        let soon = clock::monotonic().plus(Duration::from_millis(50));
        std::thread::scope(|scope| {
            let impatient = scope.spawn(|| queue.turn(soon).is_none());
            let patient = scope.spawn(|| queue.turn(Monotonic::FAR).is_some());
            assert!(impatient.join().unwrap());
            until_waiting(&queue, 1);
            drop(first);
            assert!(patient.join().unwrap());
        });
        assert!(queue.turn(clock::monotonic()).is_some());
    }
}
