//! Connections in the runtime of an async caller, so that its requests need no other thread.
//!
//! They are few, and belong to the connections that a process may have. A request that finds none of them idle goes by way
//! of the background, where all others go.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use leasehold_core::Transmit;
use leasehold_core::op::{Fault, FaultKind, TransportFault};
use tokio::runtime::Handle;
use tokio::sync::oneshot;

use super::link::{Pooled, PostgresLink};
use crate::host::sync::Mutex;
use crate::transport::Answering;
use crate::transport::connections::{Connections, Link};
use crate::transport::readiness::catch_up;

/// A connection is made at this request of a runtime: one that takes a single lock gains nothing.
const OFTEN: u32 = 3;

/// The connections of one runtime.
pub(super) struct HereLink {
    behind: Arc<Connections<PostgresLink>>,
    idle: Arc<Mutex<Vec<Pooled>>>,
    /// Requests that found none.
    missed: AtomicU32,
    is_growing: AtomicBool,
}

impl HereLink {
    pub(super) fn new(behind: Arc<Connections<PostgresLink>>) -> Self {
        Self { behind, idle: Arc::default(), missed: AtomicU32::new(0), is_growing: AtomicBool::new(false) }
    }

    fn idle(&self) -> Option<Pooled> {
        let mut idle = self.idle.lock();
        idle.retain(Pooled::is_open);
        idle.pop()
    }

    /// Begins to make a connection, unless one is being made.
    fn grow(self: &Arc<Self>, link: &Arc<PostgresLink>) {
        let Ok(runtime) = Handle::try_current() else { return };
        if self.missed.fetch_add(1, Ordering::Relaxed) < OFTEN || self.is_growing.swap(true, Ordering::AcqRel) {
            return;
        }
        let (here, link) = (Arc::clone(self), Arc::clone(link));
        runtime.spawn(async move {
            let made = link.make_here().await;
            here.idle.lock().extend(made);
            here.is_growing.store(false, Ordering::Release);
        });
    }
}

impl Link for HereLink {
    fn ask(self: Arc<Self>, request: Transmit) -> Answering {
        Box::pin(async move {
            let (runtime, link) = self.behind.background().map_err(TransportFault::NotSent)?;
            catch_up().await;
            if let Some(pooled) = self.idle() {
                return link.converse(link.taken_here(&self.idle, pooled), &request).await;
            }
            self.grow(&link);
            let (sender, receiver) = oneshot::channel();
            runtime.spawn(async move { sender.send(link.ask(request).await) });
            let gone = |_| Err(TransportFault::Unknown(Fault::of(FaultKind::Cancelled)));
            receiver.await.unwrap_or_else(gone)
        })
    }

    /// The background greets the server.
    fn is_ready(&self) -> bool {
        true
    }

    fn prepare(self: Arc<Self>) {}
}
