//! Values that a forked child must not inherit: each process makes its own.

use super::generation;
use crate::host::sync::atomic::{AtomicPtr, Ordering};

/// A value of which every process has its own: a forked child finds it as new, since a mutex inside might be held by
/// a thread that does not exist there. What the child inherited is leaked.
pub struct PerProcess<T: 'static> {
    current: AtomicPtr<Made<T>>,
    make: fn() -> T,
}

struct Made<T> {
    generation: u64,
    value: T,
}

impl<T: Send + Sync> PerProcess<T> {
    /// To be made by `make` in each process that asks for it.
    pub const fn new(make: fn() -> T) -> Self {
        Self { current: AtomicPtr::new(std::ptr::null_mut()), make }
    }

    /// The value of this process. See [`ffi::notice_forks`](crate::ffi::notice_forks).
    pub fn get(&self) -> &'static T {
        loop {
            let current = self.current.load(Ordering::Acquire);
            // SAFETY: null, or from `Box::leak` below and never freed or written again; `Acquire` pairs with `AcqRel`.
            if let Some(made) = unsafe { current.as_ref() }
                && made.generation == generation()
            {
                return &made.value;
            }
            // A thread that loses the race leaks its empty value, at most once.
            let made = Box::leak(Box::new(Made { generation: generation(), value: (self.make)() }));
            let _ = self.current.compare_exchange(current, made, Ordering::AcqRel, Ordering::Acquire);
        }
    }
}
