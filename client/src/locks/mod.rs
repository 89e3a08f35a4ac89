//! Locks, and what is put together from them: several at once, one of several, semaphores, readers and writers.

pub(crate) mod all;
pub(crate) mod any;
pub(crate) mod lease;
pub(crate) mod permits;
pub(crate) mod request;
pub(crate) mod rw_lock;
