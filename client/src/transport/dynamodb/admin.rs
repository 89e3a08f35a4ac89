//! Administrative requests: operations on the table instead of locks, awaited from any executor.

use std::sync::Arc;
use std::time::Duration;

use leasehold_core::op::{Fault, FaultKind, Outcome, Refusal};
use leasehold_wire::dynamodb::{Request, Response, Settings};

use super::{Dynamodb, DynamodbLink, credentials};
use crate::clock;
use crate::transport::connections::Connections;
use crate::transport::readiness::CONNECT_PATIENCE;
use crate::transport::readiness::NoServer;

/// Sends requests, and sleeps, in a store's background runtime, so that any executor can await them.
pub(crate) struct Admin {
    connections: Arc<Connections<DynamodbLink>>,
}

impl Dynamodb {
    pub(crate) fn admin(&self) -> Admin {
        Admin { connections: Arc::clone(&self.connections) }
    }

    pub(crate) fn settings(&self) -> &Settings {
        self.session.settings()
    }
}

impl Admin {
    /// # Errors
    /// The request has failed; its outcome.
    pub(crate) async fn ask(&self, request: Request) -> Result<Response, Outcome> {
        let (runtime, link) =
            self.connections.background().map_err(|fault| Outcome::NotApplied(Refusal::Unavailable(fault)))?;
        let deadline = clock::monotonic().plus(CONNECT_PATIENCE + credentials::PATIENCE);
        match runtime.spawn(async move { link.command(&request, deadline).await }).await {
            Ok(Ok(response)) => Ok(response),
            Ok(Err(NoServer::Refused(refusal))) => Err(Outcome::NotApplied(refusal)),
            Ok(Err(NoServer::Fault(fault))) => Err(Outcome::Unknown(fault)),
            Err(_) => Err(Outcome::Unknown(Fault::of(FaultKind::Cancelled))),
        }
    }

    pub(crate) async fn sleep(&self, time: Duration) {
        // Without a runtime no request is under way either.
        if let Ok((runtime, _)) = self.connections.background() {
            let _ = runtime.spawn(async move { tokio::time::sleep(time).await }).await;
        }
    }
}
