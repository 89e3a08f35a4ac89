//! The thread on which connections live that no user's code can delay.

use std::sync::Arc;
use std::thread;

use leasehold_core::op::{Fault, FaultKind};
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::sync::oneshot;

/// The runtime and its link, until it is dropped.
pub(super) struct Background<L> {
    pub(super) runtime: Handle,
    pub(super) link: Arc<L>,
    /// Dropping it ends the thread.
    _alive: oneshot::Sender<()>,
}

impl<L> Background<L> {
    /// # Errors
    /// No thread or no file descriptor is available.
    pub(super) fn start(link: L) -> Result<Self, Fault> {
        let runtime = new_runtime()?;
        let (alive, ended) = oneshot::channel::<()>();
        let handle = runtime.handle().clone();
        thread::Builder::new()
            .name("leasehold-network".to_owned())
            .spawn(move || {
                let _ = runtime.block_on(ended);
                runtime.shutdown_background();
            })
            .map_err(|error| Fault::new(FaultKind::Unreachable, &format!("cannot start a thread: {error}")))?;
        Ok(Self { runtime: handle, link: Arc::new(link), _alive: alive })
    }
}

/// # Errors
/// No file descriptor is available.
pub(super) fn new_runtime() -> Result<Runtime, Fault> {
    let runtime = Builder::new_current_thread().enable_all().build();
    runtime.map_err(|error| Fault::new(FaultKind::Unreachable, &format!("cannot create a runtime: {error}")))
}
