//! Requests beside the core, such as a look at a record.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use leasehold_core::op::{Applied, Fault, FaultKind, LockOp, Op, Outcome, Refusal};
use leasehold_core::{LockId, NodeId, OneOrMany, RequestId, Resource, Transmit, session};

use super::route::{Reach, Route};
use super::{Caller, Driver};
use crate::error::{Error, ErrorKind};
use crate::host::sync::Arc;
use crate::host::sync::atomic::Ordering;
use crate::host::time::Time;
use crate::transport::{Answer, Pool, Transport};

impl Driver {
    /// One request to the only store.
    pub(crate) async fn request(self: &Arc<Self>, op: LockOp, caller: Caller) -> Result<Outcome, Error> {
        let mut outcomes = [self.request_record(op, caller).await?];
        self.look_at_sessions(0, &mut outcomes).await?;
        let [outcome] = outcomes;
        Ok(outcome)
    }

    /// The same, with the record as it stands, whatever became of its session.
    pub(crate) async fn request_record(self: &Arc<Self>, op: LockOp, caller: Caller) -> Result<Outcome, Error> {
        self.check_open()?;
        let resource = op.resource.clone();
        self.time.note_wait();
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
            (Route::CallerFuture | Route::Here | Route::Background, _) => {}
        }
        let transport = Arc::clone(transport);
        self.time.offload(move || transport.perform(&transmit, Pool::Caller)).await
    }

    /// One request to each of some nodes, at the same time. The outcomes are in the same order.
    pub(crate) async fn request_all(
        self: &Arc<Self>,
        resource: &Resource,
        ops: Vec<(usize, Op)>,
    ) -> Result<Vec<Outcome>, Error> {
        self.check_open()?;
        let requests = ops.into_iter().map(|(node, op)| {
            let op = LockOp { lock: LockId::new(u64::MAX), resource: resource.clone(), op };
            (Arc::clone(&self.transports[node]), self.transmit(node, op))
        });
        let requests: Vec<_> = requests.collect();
        let nodes: Vec<usize> = requests.iter().map(|(_, transmit)| transmit.node.index()).collect();
        let time = self.time.clone();
        let each = move || {
            let answers =
                time.each(&requests, |(transport, transmit)| outcome(transport.perform(transmit, Pool::Caller)));
            answers.into_iter().map(|outcome| outcome.flatten().unwrap_or_else(no_answer)).collect()
        };
        let mut outcomes: Vec<Outcome> = self.time.offload(each).await?;
        for (node, outcome) in nodes.into_iter().zip(&mut outcomes) {
            self.look_at_sessions(node, std::slice::from_mut(outcome)).await?;
        }
        Ok(outcomes)
    }

    /// Reads the sessions that the records of a node name, and shows the records as what they are worth.
    pub(crate) async fn look_at_sessions(self: &Arc<Self>, node: usize, outcomes: &mut [Outcome]) -> Result<(), Error> {
        let of = |outcome: &Outcome| match outcome {
            Outcome::Applied(Applied::Read(seen)) => session::stands_by(seen),
            Outcome::Applied(_) | Outcome::NotApplied(_) | Outcome::Unknown(_) => None,
        };
        let names: BTreeSet<Resource> = outcomes.iter().filter_map(of).collect();
        if names.is_empty() {
            return Ok(());
        }
        let names: Vec<Resource> = names.into_iter().collect();
        let read = self.read_records(node..node + 1, &names).await?.pop().unwrap_or_default();
        let read: BTreeMap<Resource, Outcome> = names.into_iter().zip(read).collect();
        for outcome in outcomes {
            let Some(session) = of(outcome).and_then(|name| read.get(&name)) else { continue };
            match (&mut *outcome, session) {
                (Outcome::Applied(Applied::Read(row)), Outcome::Applied(Applied::Read(session))) => {
                    match session::shown(core::mem::take(row), session) {
                        Ok(shown) => *row = shown,
                        Err(denial) => *outcome = Outcome::NotApplied(Refusal::Denied(denial)),
                    }
                }
                (outcome, session) => *outcome = session.clone(),
            }
        }
        Ok(())
    }

    /// Reads many records of some nodes at the same time: for each node the outcomes of all names, in their order.
    pub(crate) async fn read_all(
        self: &Arc<Self>,
        nodes: std::ops::Range<usize>,
        names: &[Resource],
    ) -> Result<Vec<Vec<Outcome>>, Error> {
        let mut read = self.read_records(nodes.clone(), names).await?;
        for (node, outcomes) in nodes.zip(&mut read) {
            self.look_at_sessions(node, outcomes).await?;
        }
        Ok(read)
    }

    /// The same, with records as they stand, whatever became of their sessions.
    pub(crate) async fn read_records(
        self: &Arc<Self>,
        nodes: std::ops::Range<usize>,
        names: &[Resource],
    ) -> Result<Vec<Vec<Outcome>>, Error> {
        self.check_open()?;
        let lanes: Vec<Vec<Lane>> = nodes.map(|node| self.lanes(node, names)).collect();
        let (patience, time) = (self.request_timeout, self.time.clone());
        let each = move || {
            let at_once: Vec<(usize, &Lane)> =
                lanes.iter().enumerate().flat_map(|(node, lanes)| lanes.iter().map(move |lane| (node, lane))).collect();
            let answers = time.each(&at_once, |(_, lane)| lane.perform(patience));
            let mut of_nodes: Vec<Vec<Outcome>> = lanes.iter().map(|_| Vec::new()).collect();
            for ((node, lane), answer) in at_once.iter().zip(answers) {
                of_nodes[*node].extend(answer.unwrap_or_else(|| vec![no_answer(); lane.names()]));
            }
            of_nodes
        };
        self.time.offload(each).await
    }

    /// The reads of one node, spread over a few threads.
    fn lanes(&self, node: usize, names: &[Resource]) -> Vec<Lane> {
        let transport = &self.transports[node];
        let together = if transport.reads_together() { transport.config().batch.max(1) } else { 1 };
        let read = |name: &Resource| LockOp { lock: LockId::new(u64::MAX), resource: name.clone(), op: Op::Read };
        let requests: Vec<Transmit> = names
            .chunks(together)
            .map(|names| Transmit {
                ops: names.iter().map(read).collect::<Vec<_>>().into(),
                ..self.transmit(node, read(&names[0]))
            })
            .collect();
        let each = requests.len().div_ceil(MOST_LANES).max(1);
        let lane = |requests: &[Transmit]| Lane {
            transport: Arc::clone(transport),
            requests: requests.to_vec(),
            time: self.time.clone(),
        };
        requests.chunks(each).map(lane).collect()
    }

    fn transmit(&self, node: usize, op: LockOp) -> Transmit {
        let deadline = self.time.monotonic().plus(self.request_timeout);
        // The core counts up from 0, so that no two requests in flight have the same id.
        let id = RequestId::new(u64::MAX - self.direct_requests.fetch_add(1, Ordering::Relaxed));
        Transmit { id, node: NodeId::new(u16::try_from(node).unwrap_or(u16::MAX)), deadline, ops: OneOrMany::one(op) }
    }
}

/// The most threads that read from one store for one caller.
const MOST_LANES: usize = 4;

/// Requests to one store, one after the other.
struct Lane {
    transport: Arc<dyn Transport>,
    requests: Vec<Transmit>,
    time: Time,
}

impl Lane {
    fn names(&self) -> usize {
        self.requests.iter().map(|request| request.ops.len()).sum()
    }

    fn perform(&self, patience: Duration) -> Vec<Outcome> {
        let one = |request: &Transmit| {
            let request = Transmit { deadline: self.time.monotonic().plus(patience), ..request.clone() };
            match self.transport.perform(&request, Pool::Caller) {
                Ok(outcomes) if outcomes.len() == request.ops.len() => outcomes,
                Ok(_) => vec![no_answer(); request.ops.len()],
                Err(fault) => vec![fault.outcome(); request.ops.len()],
            }
        };
        self.requests.iter().flat_map(one).collect()
    }
}

fn no_answer() -> Outcome {
    Outcome::Unknown(Fault::new(FaultKind::Server, "no answer"))
}

fn outcome(answer: Answer) -> Option<Outcome> {
    match answer {
        Ok(outcomes) => outcomes.into_iter().next(),
        Err(fault) => Some(fault.outcome()),
    }
}
