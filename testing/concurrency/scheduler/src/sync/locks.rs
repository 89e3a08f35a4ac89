//! A mutex that knows its process, and a condition variable whose waits can end by the clock.

use std::ops::{Deref, DerefMut};
use std::sync::{Arc, LockResult, PoisonError};
use std::time::Duration;

use super::permit::{Permit, switch};
use crate::{clock, fork, world};

/// Shuttle's, and no child may lock what its parent made.
#[derive(Debug)]
pub struct Mutex<T> {
    generation: u64,
    inner: shuttle::sync::Mutex<T>,
}

/// A locked mutex. Dropping it unlocks.
#[derive(Debug)]
pub struct MutexGuard<'a, T> {
    mutex: &'a Mutex<T>,
    inner: shuttle::sync::MutexGuard<'a, T>,
}

impl<T> Mutex<T> {
    /// In the process of the calling thread.
    pub fn new(value: T) -> Self {
        Self { generation: fork::generation(), inner: shuttle::sync::Mutex::new(value) }
    }

    /// Waits for it.
    ///
    /// # Errors
    /// A thread panicked while it held it.
    pub fn lock(&self) -> LockResult<MutexGuard<'_, T>> {
        if self.generation != fork::generation() {
            world::fault("a forked child locks a mutex of its parent's, which may be locked forever");
        }
        match self.inner.lock() {
            Ok(inner) => Ok(MutexGuard { mutex: self, inner }),
            Err(poisoned) => Err(PoisonError::new(MutexGuard { mutex: self, inner: poisoned.into_inner() })),
        }
    }
}

impl<T: Default> Default for Mutex<T> {
    fn default() -> Self {
        Self::new(T::default())
    }
}

impl<T> Deref for MutexGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.inner
    }
}

impl<T> DerefMut for MutexGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.inner
    }
}

/// A condition variable that never wakes a thread without a reason.
#[derive(Debug, Default)]
pub struct Condvar {
    waiting: std::sync::Mutex<Vec<Arc<Permit>>>,
}

/// The result of a wait with a timeout: true if it may have ended by the clock.
#[derive(Clone, Copy, Debug)]
pub struct WaitTimeoutResult(bool);

impl WaitTimeoutResult {
    /// See the standard library's.
    pub fn timed_out(self) -> bool {
        self.0
    }
}

impl Condvar {
    /// Waits to be notified.
    ///
    /// # Errors
    /// As [`Mutex::lock`].
    pub fn wait<'a, T>(&self, guard: MutexGuard<'a, T>) -> LockResult<MutexGuard<'a, T>> {
        self.wait_for(guard, None).map(|(guard, _)| guard).map_err(|poisoned| PoisonError::new(poisoned.into_inner().0))
    }

    /// Waits while the condition holds.
    ///
    /// # Errors
    /// As [`Mutex::lock`].
    pub fn wait_while<'a, T>(
        &self,
        mut guard: MutexGuard<'a, T>,
        mut condition: impl FnMut(&mut T) -> bool,
    ) -> LockResult<MutexGuard<'a, T>> {
        while condition(&mut guard) {
            guard = self.wait(guard)?;
        }
        Ok(guard)
    }

    /// Waits to be notified, and no longer than this.
    ///
    /// # Errors
    /// As [`Mutex::lock`].
    pub fn wait_timeout<'a, T>(
        &self,
        guard: MutexGuard<'a, T>,
        most: Duration,
    ) -> LockResult<(MutexGuard<'a, T>, WaitTimeoutResult)> {
        self.wait_for(guard, Some(most))
    }

    /// Waits while the condition holds, and no longer than this.
    ///
    /// # Errors
    /// As [`Mutex::lock`].
    pub fn wait_timeout_while<'a, T>(
        &self,
        mut guard: MutexGuard<'a, T>,
        most: Duration,
        mut condition: impl FnMut(&mut T) -> bool,
    ) -> LockResult<(MutexGuard<'a, T>, WaitTimeoutResult)> {
        let until = clock::monotonic().plus(most);
        loop {
            let left = until.since(clock::monotonic());
            if !condition(&mut guard) || left.is_zero() {
                return Ok((guard, WaitTimeoutResult(left.is_zero())));
            }
            guard = self.wait_timeout(guard, left)?.0;
        }
    }

    fn wait_for<'a, T>(
        &self,
        guard: MutexGuard<'a, T>,
        most: Option<Duration>,
    ) -> LockResult<(MutexGuard<'a, T>, WaitTimeoutResult)> {
        let (mutex, permit) = (guard.mutex, Permit::new());
        self.waiting().push(Arc::clone(&permit));
        drop(guard);
        let timer = most.map(|most| clock::timer(most, &permit));
        permit.wait();
        drop(timer);
        let mut waiting = self.waiting();
        let left = waiting.len();
        waiting.retain(|other| !Arc::ptr_eq(other, &permit));
        let timed_out = WaitTimeoutResult(waiting.len() < left);
        drop(waiting);
        match mutex.lock() {
            Ok(guard) => Ok((guard, timed_out)),
            Err(poisoned) => Err(PoisonError::new((poisoned.into_inner(), timed_out))),
        }
    }

    /// Wakes the one that has waited longest.
    pub fn notify_one(&self) {
        switch();
        let first = (!self.waiting().is_empty()).then(|| self.waiting().remove(0));
        first.iter().for_each(|permit| permit.give());
    }

    /// Wakes all that wait now.
    pub fn notify_all(&self) {
        switch();
        let all = std::mem::take(&mut *self.waiting());
        all.iter().for_each(|permit| permit.give());
    }

    fn waiting(&self) -> std::sync::MutexGuard<'_, Vec<Arc<Permit>>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
