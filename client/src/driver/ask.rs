//! Requests outside the core, such as a look at a record.

use leasehold_core::op::{Fault, FaultKind, LockOp, Op, Outcome};
use leasehold_core::{LockId, NodeId, RequestId, Resource, Transmit};

use super::{Caller, Driver};
use crate::clock;
use crate::error::{Error, ErrorKind};
use crate::exec;
use crate::sync::Arc;
use crate::sync::atomic::Ordering;
use crate::transport::{Answer, Pool};

impl Driver {
    /// One request to the only store.
    pub(crate) async fn ask(self: &Arc<Self>, op: LockOp, caller: Caller) -> Result<Outcome, Error> {
        self.check_process()?;
        let resource = op.resource.clone();
        let transmit = self.question(0, op);
        let transport = &self.transports[0];
        let elsewhere = |transmit: Transmit| {
            let transport = Arc::clone(transport);
            exec::offload(move || transport.perform(&transmit, Pool::Caller))
        };
        let result = match transport.network() {
            Some(network) if caller == Caller::Async => match network.call_on_caller(transmit) {
                Ok(answering) => answering.await,
                Err(transmit) => elsewhere(transmit).await?,
            },
            _ if caller == Caller::Blocking || transport.is_instant() => transport.perform(&transmit, Pool::Caller),
            _ => elsewhere(transmit).await?,
        };
        outcome(result)
            .ok_or_else(|| Error::new(ErrorKind::StoreUnavailable, "the store gave no answer").on(resource.as_str()))
    }

    /// One request to each of some nodes, at the same time. The answers are in the same order.
    pub(crate) async fn ask_all(
        self: &Arc<Self>,
        resource: &Resource,
        questions: Vec<(usize, Op)>,
    ) -> Result<Vec<Outcome>, Error> {
        self.check_process()?;
        let asked = questions.into_iter().map(|(node, op)| {
            let op = LockOp { lock: LockId::new(u64::MAX), resource: resource.clone(), op };
            (Arc::clone(&self.transports[node]), self.question(node, op))
        });
        let asked: Vec<_> = asked.collect();
        let silent = || Outcome::Unknown(Fault::new(FaultKind::Server, "no answer"));
        exec::offload(move || {
            let ended = exec::each(&asked, |(transport, transmit)| outcome(transport.perform(transmit, Pool::Caller)));
            ended.into_iter().map(|outcome| outcome.flatten().unwrap_or_else(silent)).collect()
        })
        .await
    }

    fn question(&self, node: usize, op: LockOp) -> Transmit {
        let deadline = clock::monotonic().plus(self.request_timeout);
        // From the other end than the core's, so that no two in flight are alike.
        let id = RequestId::new(u64::MAX - self.asked.fetch_add(1, Ordering::Relaxed));
        Transmit { id, node: NodeId::new(u16::try_from(node).unwrap_or(u16::MAX)), deadline, ops: vec![op] }
    }
}

fn outcome(answer: Answer) -> Option<Outcome> {
    match answer {
        Ok(outcomes) => outcomes.into_iter().next(),
        Err(fault) => Some(fault.outcome()),
    }
}
