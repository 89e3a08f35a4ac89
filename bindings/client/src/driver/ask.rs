//! Requests outside the core, such as a look at a record.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;

use leasehold_core::op::{Fault, FaultKind, LockOp, Op, Outcome};
use leasehold_core::{Config, NodeId, RequestId, Resource, Transmit};

use super::{Caller, Driver};
use crate::clock;
use crate::error::{Error, ErrorKind};
use crate::transport::{Answer, Lane};

impl Driver {
    /// One request to one node.
    pub(crate) async fn ask(self: &Arc<Self>, node: usize, op: LockOp, caller: Caller) -> Result<Outcome, Error> {
        self.check_process()?;
        let resource = op.resource.clone();
        let transmit = self.question(node, op);
        let transport = &self.transports[node];
        let result = match transport.network() {
            Some(network) if caller == Caller::Async => match network.ask_here(transmit) {
                Ok(answering) => answering.await,
                Err(transmit) => self.ask_elsewhere(node, transmit).await?,
            },
            _ if caller == Caller::Blocking || transport.is_instant() => transport.perform(&transmit, Lane::Caller),
            _ => self.ask_elsewhere(node, transmit).await?,
        };
        outcome(result)
            .ok_or_else(|| Error::new(ErrorKind::StoreUnavailable, "the store gave no answer").on(resource.as_str()))
    }

    async fn ask_elsewhere(&self, node: usize, transmit: Transmit) -> Result<Answer, Error> {
        let transport = Arc::clone(&self.transports[node]);
        crate::exec::offload(move || transport.perform(&transmit, Lane::Caller)).await
    }

    /// One request to each of some nodes, at the same time. The answers are in the same order.
    pub(crate) async fn ask_all(
        self: &Arc<Self>,
        resource: &Resource,
        questions: Vec<(usize, Op)>,
    ) -> Result<Vec<Outcome>, Error> {
        self.check_process()?;
        let asked = questions.into_iter().map(|(node, op)| {
            let op = LockOp { lock: leasehold_core::LockId::new(u64::MAX), resource: resource.clone(), op };
            (Arc::clone(&self.transports[node]), self.question(node, op))
        });
        let asked: Vec<_> = asked.collect();
        let silent = || Outcome::Unknown(Fault::new(FaultKind::Server, "no answer"));
        crate::exec::offload(move || {
            thread::scope(|scope| {
                let started: Vec<_> = asked
                    .iter()
                    .map(|(transport, transmit)| {
                        let ask = move || outcome(transport.perform(transmit, Lane::Caller));
                        thread::Builder::new().name("leasehold-offload".to_owned()).spawn_scoped(scope, ask)
                    })
                    .collect();
                let ended = started.into_iter().map(|thread| thread.ok()?.join().ok()?);
                ended.map(|outcome| outcome.unwrap_or_else(silent)).collect()
            })
        })
        .await
    }

    fn question(&self, node: usize, op: LockOp) -> Transmit {
        let deadline = clock::monotonic().plus(Config::REQUEST_TIMEOUT);
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
