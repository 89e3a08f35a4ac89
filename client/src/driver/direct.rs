//! Requests beside the core, such as a look at a record.

use leasehold_core::op::{Fault, FaultKind, LockOp, Op, Outcome};
use leasehold_core::{LockId, NodeId, OneOrMany, RequestId, Resource, Transmit};

use super::route::{Reach, Route};
use super::{Caller, Driver};
use crate::clock;
use crate::error::{Error, ErrorKind};
use crate::exec;
use crate::sync::Arc;
use crate::sync::atomic::Ordering;
use crate::transport::{Answer, Pool};

impl Driver {
    /// One request to the only store.
    pub(crate) async fn request(self: &Arc<Self>, op: LockOp, caller: Caller) -> Result<Outcome, Error> {
        self.check_process()?;
        let resource = op.resource.clone();
        let answer = self.request_on(0, op, caller).await?;
        outcome(answer)
            .ok_or_else(|| Error::new(ErrorKind::StoreUnavailable, "the store gave no answer").on(resource.as_str()))
    }

    async fn request_on(&self, node: usize, op: LockOp, caller: Caller) -> Result<Answer, Error> {
        let (mut transmit, transport) = (self.transmit(node, op), &self.transports[node]);
        match (Route::choose(caller, true, Reach::of(&**transport), false), transport.network()) {
            (Route::Inline, _) => return Ok(transport.perform(&transmit, Pool::Caller)),
            (Route::CallerFuture, Some(network)) => match network.call_on_caller(transmit) {
                Ok(answering) => return Ok(answering.await),
                Err(unsent) => transmit = unsent,
            },
            (Route::CallerFuture | Route::Background, _) => {}
        }
        let transport = Arc::clone(transport);
        exec::offload(move || transport.perform(&transmit, Pool::Caller)).await
    }

    /// One request to each of some nodes, at the same time. The outcomes are in the same order.
    pub(crate) async fn request_all(
        self: &Arc<Self>,
        resource: &Resource,
        ops: Vec<(usize, Op)>,
    ) -> Result<Vec<Outcome>, Error> {
        self.check_process()?;
        let requests = ops.into_iter().map(|(node, op)| {
            let op = LockOp { lock: LockId::new(u64::MAX), resource: resource.clone(), op };
            (Arc::clone(&self.transports[node]), self.transmit(node, op))
        });
        let requests: Vec<_> = requests.collect();
        let no_answer = || Outcome::Unknown(Fault::new(FaultKind::Server, "no answer"));
        exec::offload(move || {
            let answers =
                exec::each(&requests, |(transport, transmit)| outcome(transport.perform(transmit, Pool::Caller)));
            answers.into_iter().map(|outcome| outcome.flatten().unwrap_or_else(no_answer)).collect()
        })
        .await
    }

    fn transmit(&self, node: usize, op: LockOp) -> Transmit {
        let deadline = clock::monotonic().plus(self.request_timeout);
        // The core counts up from 0, so that no two requests in flight have the same id.
        let id = RequestId::new(u64::MAX - self.direct_requests.fetch_add(1, Ordering::Relaxed));
        Transmit { id, node: NodeId::new(u16::try_from(node).unwrap_or(u16::MAX)), deadline, ops: OneOrMany::one(op) }
    }
}

fn outcome(answer: Answer) -> Option<Outcome> {
    match answer {
        Ok(outcomes) => outcomes.into_iter().next(),
        Err(fault) => Some(fault.outcome()),
    }
}
