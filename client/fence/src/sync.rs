//! Locks and maps. [`Guards`](crate::Guards) takes them from here, so that `testing/concurrency` can compile it with those of a
//! scheduler that tries one interleaving after the other.

#[cfg(leasehold_concurrency)]
pub(crate) use leasehold_scheduler::sync::{Arc, Condvar, HashMap, Mutex, MutexGuard};
#[cfg(not(leasehold_concurrency))]
pub(crate) use std::{
    collections::HashMap,
    sync::{Arc, Condvar, Mutex, MutexGuard},
};

/// The guard of a lock, poisoned or not: code that panics under one of these locks has a bug, and changes nothing halfway.
pub(crate) fn unpoisoned<T>(locked: std::sync::LockResult<T>) -> T {
    locked.unwrap_or_else(std::sync::PoisonError::into_inner)
}
