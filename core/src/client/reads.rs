//! Requests that belong to no acquisition: reads of a record on all nodes, and revocations of the lease of somebody else.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use super::{Client, Queued, Target};
use crate::ids::{LockId, NodeId, Nonce, ReadId, Resource, Seq};
use crate::lease::{Send, node_ids};
use crate::op::{Applied, Holder, Op, Outcome, Refusal, Revoke, Seen};
use crate::quorum::revoked;
use crate::session::{resource_of, tell};
use crate::time::Now;

/// Something that all nodes are asked.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Read {
    /// The answers of the nodes, as far as they have come.
    answers: Vec<Option<Outcome>>,
    /// `None` for a read.
    revoking: Option<Revoking>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Revoking {
    resource: Resource,
    nonce: Nonce,
    stage: Stage,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Stage {
    /// Marks the record.
    Marking,
    /// Reads which sessions the records name, with the marks until then.
    Naming(Vec<Outcome>),
    /// Tells these sessions.
    Telling(Vec<Outcome>),
    Over(Revocation),
}

impl Read {
    fn is_over(&self) -> bool {
        match &self.revoking {
            Some(revoking) => matches!(revoking.stage, Stage::Over(_)),
            None => self.answers.iter().all(Option::is_some),
        }
    }
}

/// The outcome of [`Client::revoke`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Revocation {
    /// True if the lease is revoked, false if it was over. `None` where too few nodes say so, and its holder may keep it: ask again.
    pub is_revoked: Option<bool>,
    /// The answers in the way, of nodes that were not reached or have refused.
    pub troubles: Vec<Outcome>,
}

impl Client {
    /// Reads the record of a resource on every node; [`take_read`](Client::take_read) has the answers. A record is shown as it stands
    /// there: where its session is over, something that was sent in that may still arrive.
    pub fn read(&mut self, resource: &Resource, now: Now) -> ReadId {
        self.advance(now, None);
        let id = self.new_read(None);
        self.ask_all(id, resource, &Op::Read);
        id
    }

    /// The answers to a read, one for each node in their order, once all are there; a node that does not answer in time has an unknown
    /// outcome. They are returned once.
    pub fn take_read(&mut self, read: ReadId) -> Option<Vec<Outcome>> {
        let is_over = |read: &Read| read.revoking.is_none() && read.is_over();
        let read = self.reads.get(&read).is_some_and(is_over).then(|| self.reads.remove(&read))?;
        read.map(|read| read.answers.into_iter().flatten().collect())
    }

    /// Asks the holder of a lease to let go, by the nonce that its record shows: the lease is marked on every node, and its next renewal is
    /// refused. If it belongs to a session, that is notified. [`take_revoke`](Client::take_revoke) has the answer.
    pub fn revoke(&mut self, resource: &Resource, holder: Nonce, now: Now) -> ReadId {
        self.advance(now, None);
        let id = self.new_read(Some(Revoking { resource: resource.clone(), nonce: holder, stage: Stage::Marking }));
        self.ask_all(id, resource, &Op::Revoke(Revoke { nonce: holder }));
        id
    }

    /// The outcome of a revocation, once it is known. It is returned once.
    pub fn take_revoke(&mut self, revoke: ReadId) -> Option<Revocation> {
        let is_over = |read: &Read| read.revoking.is_some() && read.is_over();
        let read = self.reads.get(&revoke).is_some_and(is_over).then(|| self.reads.remove(&revoke))?;
        match read?.revoking?.stage {
            Stage::Over(revocation) => Some(revocation),
            Stage::Marking | Stage::Naming(_) | Stage::Telling(_) => None,
        }
    }

    fn new_read(&mut self, revoking: Option<Revoking>) -> ReadId {
        let read = ReadId::new(self.next_read);
        self.next_read += 1;
        // Answers that nobody has taken make room for others. What is still asked is answered within the request timeouts.
        if self.reads.len() >= self.env.config.limits().observations
            && let Some(over) = self.reads.iter().find_map(|(id, read)| read.is_over().then_some(*id))
        {
            self.reads.remove(&over);
        }
        self.reads.insert(read, Read { answers: Vec::new(), revoking });
        read
    }

    fn ask_all(&mut self, read: ReadId, resource: &Resource, op: &Op) {
        let requests = node_ids(self.env.config.nodes().len()).map(|node| (node, (resource.clone(), op.clone())));
        self.ask(read, &requests.collect());
    }

    /// Sends a request to each of these nodes. The others count as if they had answered that there was nothing to read.
    fn ask(&mut self, read: ReadId, requests: &BTreeMap<NodeId, (Resource, Op)>) {
        let deadline = self.env.now.monotonic.plus(self.env.config.request_timeout());
        let Some(asked) = self.reads.get_mut(&read) else { return };
        let nothing = || Outcome::Applied(Applied::Read(Seen::default()));
        let nodes = node_ids(self.env.config.nodes().len());
        asked.answers = nodes.map(|node| (!requests.contains_key(&node)).then(nothing)).collect();
        for (&node, (resource, op)) in requests {
            let send = Send { node, seq: Seq::new(0), op: op.clone(), deadline };
            let (target, lock) = (Target::Read(read), LockId::new(u64::MAX));
            self.sends.push_back(Queued { target, lock, resource: resource.clone(), send });
        }
    }

    pub(super) fn answer_read(&mut self, id: ReadId, node: NodeId, outcome: Outcome) {
        let Some(read) = self.reads.get_mut(&id) else { return };
        if let Some(answer) = read.answers.get_mut(node.index()) {
            *answer = Some(outcome);
        }
        if read.answers.iter().all(Option::is_some) && read.revoking.is_some() {
            self.go_on_revoking(id);
        }
    }

    /// Takes the next step of a revocation, of which all nodes have answered the last one.
    fn go_on_revoking(&mut self, id: ReadId) {
        let Some(read) = self.reads.get_mut(&id) else { return };
        let Some(revoking) = &mut read.revoking else { return };
        let answers: Vec<Outcome> = core::mem::take(&mut read.answers).into_iter().flatten().collect();
        let (resource, nonce) = (revoking.resource.clone(), revoking.nonce);
        match core::mem::replace(&mut revoking.stage, Stage::Marking) {
            Stage::Marking if answers.iter().any(|answer| matches!(answer, Outcome::Applied(_))) => {
                revoking.stage = Stage::Naming(answers);
                self.ask_all(id, &resource, &Op::Read);
            }
            Stage::Marking => revoking.stage = Stage::Over(Revocation::of(answers)),
            Stage::Naming(marks) => {
                let tells = tells(&answers, nonce);
                revoking.stage = Stage::Telling(confirmed(marks, answers));
                self.ask(id, &tells);
                if tells.is_empty() {
                    self.go_on_revoking(id);
                }
            }
            Stage::Telling(marks) => revoking.stage = Stage::Over(Revocation::of(confirmed(marks, answers))),
            Stage::Over(revocation) => revoking.stage = Stage::Over(revocation),
        }
    }
}

/// The sessions that these records of a lease name, with the message for each. A record is renewed in the place of all its leases, so the
/// holder does not learn of the mark otherwise.
fn tells(records: &[Outcome], nonce: Nonce) -> BTreeMap<NodeId, (Resource, Op)> {
    let of_node = |(node, record): (NodeId, &Outcome)| {
        let Outcome::Applied(Applied::Read(Seen { holding: Some(holding), .. })) = record else { return None };
        let is_meant = matches!(holding.holder, Holder::Lease { nonce: held, .. } if held == nonce);
        let session = holding.session.as_ref().filter(|session| is_meant && session.is_record())?;
        Some((node, (resource_of(&session.label)?, tell(session))))
    };
    node_ids(records.len()).zip(records).filter_map(of_node).collect()
}

/// The marks of the nodes that have done what followed; a mark alone is not learned of by a holder with a session.
fn confirmed(marks: Vec<Outcome>, followed: Vec<Outcome>) -> Vec<Outcome> {
    let both = marks.into_iter().zip(followed);
    both.map(|(mark, followed)| match (&mark, &followed) {
        // A conflict shows that the session is over: nobody believes in its locks.
        (Outcome::Applied(_), Outcome::NotApplied(Refusal::Conflict(_))) => mark,
        (Outcome::Applied(_), Outcome::NotApplied(_) | Outcome::Unknown(_)) => followed,
        (_, _) => mark,
    })
    .collect()
}

impl Revocation {
    fn of(answers: Vec<Outcome>) -> Self {
        let is_revoked = revoked(&answers);
        let is_trouble =
            |answer: &Outcome| !matches!(answer, Outcome::Applied(_) | Outcome::NotApplied(Refusal::Conflict(_)));
        // First what may pass, since that is what the others may be waiting for.
        let (mut troubles, lasting): (Vec<_>, Vec<_>) =
            answers.into_iter().filter(is_trouble).partition(|answer| matches!(answer, Outcome::Unknown(_)));
        troubles.extend(lasting);
        Self { is_revoked, troubles }
    }
}
