//! The client's `sync`. Blocking rests on shuttle's mutex and on `permit`, so that sleeps can end by the clock.

mod locks;
pub(crate) mod permit;
pub mod thread;

use std::collections::hash_map::DefaultHasher;
use std::hash::BuildHasherDefault;

pub use locks::{Condvar, Mutex, MutexGuard};
pub use permit::switch;
pub use shuttle::sync::{atomic, mpsc};
pub use shuttle::thread_local;
pub use std::sync::{Arc, PoisonError, Weak};

/// Not seeded at random: what is walked through must have the same order when a schedule is repeated.
pub type HashMap<K, V> = std::collections::HashMap<K, V, BuildHasherDefault<DefaultHasher>>;
