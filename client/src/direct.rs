//! A store without the client above it, for the test in `testing/differential`: no part of what is promised, and in no build
//! without the feature `fuzzing`.

use std::sync::Arc;
use std::time::Duration;

use leasehold_core::member::{Marker, RunId};
use leasehold_core::op::{LockOp, Op, Outcome};
use leasehold_core::{LockId, NodeId, RequestId, Resource, Transmit};
use leasehold_wire::cas::{Answer, Ask};

use crate::error::Error;
use crate::exec::block_on;
use crate::host::time::Time;
use crate::transport::items::ItemStore;
use crate::transport::{Pool, Transport};
use crate::url::StoreUrl;
use crate::url::place::Expiry;

/// Far longer than any answer of a busy test server takes.
const PATIENCE: Duration = Duration::from_secs(60);

/// The marker of a store with the bytes that it is kept as, and the server's run.
pub type Looked = (Option<Marker>, Vec<u8>, Option<RunId>);

/// One client's connections to a store.
pub struct Direct {
    transport: Arc<dyn Transport>,
    items: Arc<dyn ItemStore>,
    is_observed: bool,
}

impl Direct {
    /// Opens the store that a url names.
    ///
    /// # Errors
    /// As for a client.
    pub fn open(url: &str) -> Result<Self, Error> {
        let place = url.parse::<StoreUrl>()?.place()?;
        let is_observed = place.facts().expiry == Expiry::ByObservers;
        Ok(Self { is_observed, items: place.items()?, transport: place.open()? })
    }

    /// Returns true if nothing expires by itself, so that observers have to wait.
    pub fn is_observed(&self) -> bool {
        self.is_observed
    }

    /// Returns true if waiters may stand in the queue.
    pub fn keeps_queue(&self) -> bool {
        self.transport.keeps_queue()
    }

    /// Sends one operation, and waits for its answer.
    pub fn ask(&self, id: u64, lock: LockId, resource: &Resource, op: &Op) -> Outcome {
        let ops = vec![LockOp { lock, resource: resource.clone(), op: op.clone() }];
        let deadline = Time::System.monotonic().plus(PATIENCE);
        let request = Transmit { id: RequestId::new(id), node: NodeId::new(0), deadline, ops: ops.into() };
        match self.transport.perform(&request, Pool::Caller) {
            Ok(mut outcomes) => outcomes.remove(0),
            Err(fault) => fault.outcome(),
        }
    }

    /// Asks for an item of compare-and-set, once.
    pub fn ask_item(&self, name: &Resource, ask: Ask<'_>) -> Answer {
        block_on(self.items.ask(name, ask))
    }

    /// Reads the marker of a quorum, as it is stored, and the run of the server.
    ///
    /// # Errors
    /// As for a client.
    pub fn look(&self) -> Result<Looked, Error> {
        let found = self.transport.look()?;
        Ok((found.marker, found.text, found.run))
    }

    /// Replaces the marker that was found.
    ///
    /// # Errors
    /// As for a client.
    pub fn mark(&self, found: &[u8], marker: Option<&Marker>) -> Result<bool, Error> {
        self.transport.mark(found, marker)
    }

    /// Gives up a place in the queue. Nobody waits for it.
    pub fn leave_queue(&self, resource: &Resource, lock: LockId) {
        self.transport.leave_queue(resource, lock);
    }
}
