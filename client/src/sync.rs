//! Locks, atomics, threads and hash maps. The client takes them from here, so that `testing/concurrency` can compile it with
//! those of a scheduler that tries one interleaving after the other.

#[cfg(leasehold_concurrency)]
pub(crate) use leasehold_scheduler::sync::{
    Arc, Condvar, HashMap, HashSet, Mutex, MutexGuard, PoisonError, Weak, atomic, mpsc, thread, thread_local,
};

#[cfg(all(feature = "sqlite", not(leasehold_concurrency)))]
pub(crate) use std::thread_local;
#[cfg(not(leasehold_concurrency))]
pub(crate) use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak, atomic, mpsc},
    thread,
};
