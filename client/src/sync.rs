//! Locks, atomics, threads and what is hashed: the run loop takes them from here, so that `testing/concurrency` can compile the
//! same files with a scheduler that tries one interleaving after the other. Here they are those of `std`.

pub(crate) use std::collections::{HashMap, HashSet};
pub(crate) use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak, atomic, mpsc};
pub(crate) use std::thread;
#[cfg(feature = "sqlite")]
pub(crate) use std::thread_local;
