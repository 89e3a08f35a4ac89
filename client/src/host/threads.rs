//! The client's own threads, which are known by their names.

use crate::error::Error;
use crate::host::sync::thread;

/// Tells if the calling thread is the client's own. Those must not wait for themselves, nor for a logger.
pub(crate) fn is_own_thread() -> bool {
    thread::current().name().is_some_and(|name| name.starts_with("leasehold-"))
}

/// Starts one of the client's own threads.
pub(crate) fn spawn(name: &str, run: impl FnOnce() + Send + 'static) -> Result<(), Error> {
    let spawned = thread::Builder::new().name(name.to_owned()).spawn(run);
    spawned.map(drop).map_err(|error| Error::internal(format!("cannot start the thread {name}: {error}")))
}
