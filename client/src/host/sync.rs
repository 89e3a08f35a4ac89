//! Locks, atomics, threads and hash maps. The client takes them from here, so that `testing/concurrency` can compile it with
//! those of a scheduler that tries one interleaving after the other.

use std::time::Duration;

#[cfg(leasehold_concurrency)]
use leasehold_scheduler::sync as base;
#[cfg(leasehold_concurrency)]
pub(crate) use leasehold_scheduler::sync::{Arc, HashMap, MutexGuard, Weak, atomic, mpsc, thread, thread_local};

#[cfg(not(leasehold_concurrency))]
use std::sync as base;
#[cfg(not(leasehold_concurrency))]
pub(crate) use std::{
    collections::HashMap,
    sync::{Arc, MutexGuard, Weak, atomic, mpsc},
    thread, thread_local,
};

/// A mutex that a panic does not poison. Code that panics under one of these locks has a bug. Poisoning would turn it into
/// a panic of every other thread, and the leases would be lost.
#[derive(Debug, Default)]
pub struct Mutex<T>(base::Mutex<T>);

impl<T> Mutex<T> {
    /// Makes an unlocked mutex.
    pub fn new(value: T) -> Self {
        Self(base::Mutex::new(value))
    }

    /// Waits until the mutex is free, and locks it.
    pub fn lock(&self) -> MutexGuard<'_, T> {
        unpoisoned(self.0.lock())
    }

    /// Locks the mutex if it is free.
    #[cfg(feature = "redis")]
    pub(crate) fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        match self.0.try_lock() {
            Ok(guard) => Some(guard),
            Err(std::sync::TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(std::sync::TryLockError::WouldBlock) => None,
        }
    }
}

/// A condition variable for [`Mutex`].
#[derive(Debug, Default)]
pub(crate) struct Condvar(base::Condvar);

impl Condvar {
    pub(crate) fn wait<'a, T>(&self, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
        unpoisoned(self.0.wait(guard))
    }

    #[cfg(feature = "sqlite")]
    pub(crate) fn wait_while<'a, T>(
        &self,
        guard: MutexGuard<'a, T>,
        condition: impl FnMut(&mut T) -> bool,
    ) -> MutexGuard<'a, T> {
        unpoisoned(self.0.wait_while(guard, condition))
    }

    pub(crate) fn wait_timeout<'a, T>(&self, guard: MutexGuard<'a, T>, timeout: Duration) -> MutexGuard<'a, T> {
        unpoisoned(self.0.wait_timeout(guard, timeout)).0
    }

    #[cfg(feature = "sqlite")]
    pub(crate) fn notify_one(&self) {
        self.0.notify_one();
    }

    pub(crate) fn notify_all(&self) {
        self.0.notify_all();
    }
}

fn unpoisoned<T>(locked: std::sync::LockResult<T>) -> T {
    locked.unwrap_or_else(std::sync::PoisonError::into_inner)
}
