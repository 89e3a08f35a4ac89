//! Looking at locks, and breaking them.

use std::time::Duration;

use leasehold_core::op::{Applied, Fault, Holder, Holding, LockOp, Op, Outcome, Refusal, Release, Renew, Seen};
use leasehold_core::quorum::majority;
use leasehold_core::view::View;
use leasehold_core::{LockId, Resource, Seq};

use crate::client::Client;
use crate::error::{Error, ErrorKind, LockInfo};
use crate::host::sync::Arc;
use crate::locks::lease::Lease;
use crate::quorum::nodes::Nodes;
use crate::runs::completion::Completion;

/// The clients in the queue for a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Waiters {
    /// How many.
    pub count: u64,
    /// When the first of them joined, in milliseconds since 1970 by the store's clock.
    pub since_unix_ms: u64,
    /// The place of this client's own acquisition as it was last reported, counted from 1; `None` if it does not wait.
    pub own_place: Option<u64>,
}

impl Client {
    /// The clients in the queue for a lock; `None` if there are none, and where the store keeps no queue. The waiters of one
    /// client share a place.
    ///
    /// The answer is old when it arrives: use it to look, never to decide.
    ///
    /// # Errors
    /// [`ErrorKind::Config`] for a name that cannot be.
    pub async fn waiters(&self, resource: impl AsRef<str>) -> Result<Option<Waiters>, Error> {
        self.driver().check_open()?;
        let resource = Resource::new(resource.as_ref())?;
        let [store] = self.driver().transports() else { return Ok(None) };
        let store = Arc::clone(store);
        self.offload(move || {
            let queue = store.queue(&resource)?;
            let own_place = store.place_in_queue(&resource, None);
            Some(Waiters { count: queue.waiting, since_unix_ms: queue.since_unix_ms, own_place })
        })
        .await
    }

    /// The holder of a lock, `None` when it is free. A job that is done [once](Client::once) has its state in
    /// [`Client::inspect_run`]: the names of runs are no names of locks.
    ///
    /// The answer is old when it arrives: use it to look, never to decide. Of a quorum all nodes are asked, and a majority
    /// must answer; [`LockInfo::votes`] says how many show the record.
    ///
    /// # Errors
    /// [`ErrorKind::Config`] for a name that cannot be, [`ErrorKind::StoreUnavailable`], [`ErrorKind::StoreRefused`].
    pub async fn inspect(&self, resource: impl AsRef<str>) -> Result<Option<LockInfo>, Error> {
        self.inspect_closely(resource.as_ref()).await.map(|(holder, _)| holder)
    }

    /// Takes a lock from its holder, and says who that was. The token counter survives, so that a guard still
    /// refuses the former holder, who learns of the loss with its next renewal.
    ///
    /// For administrators: if the holder still works, two do from now on.
    ///
    /// # Errors
    /// As [`Client::inspect`]; [`ErrorKind::StoreRefused`] for a lock of another library.
    pub async fn break_lock(&self, resource: impl AsRef<str>) -> Result<Option<LockInfo>, Error> {
        let resource = resource.as_ref();
        let sessions = self.named_sessions(resource).await?;
        let broken = self.break_untold(resource).await;
        self.tell_sessions(resource, sessions).await?;
        broken
    }

    /// The holder of the lock, and the number of nodes that have not answered.
    pub(crate) async fn inspect_closely(&self, resource: &str) -> Result<(Option<LockInfo>, usize), Error> {
        if let Some(quorum) = self.shared.quorum() {
            let view = self.view(quorum, resource).await?;
            return Ok((holder(&view, resource), view.silent()));
        }
        let seen = self.read(resource).await?;
        Ok((seen.held().map(|holding| LockInfo::shown(resource, holding)), 0))
    }

    /// The holder of the lock, and the completion of finished work.
    pub(crate) async fn inspect_marked(&self, resource: &str) -> Result<(Option<LockInfo>, Option<Completion>), Error> {
        if let Some(quorum) = self.shared.quorum() {
            let view = self.view(quorum, resource).await?;
            return Ok((holder(&view, resource), view.done().as_ref().map(Completion::shown)));
        }
        let seen = self.read(resource).await?;
        let holder = seen.held().map(|holding| LockInfo::shown(resource, holding));
        Ok((holder, seen.done.as_deref().map(Completion::shown)))
    }

    /// The record that each node of a quorum has, or the only store; `None` for nodes that do not answer. A record is shown as it
    /// stands: where its session is over, something that was sent in that may still arrive.
    ///
    /// # Errors
    /// No majority answers.
    pub(crate) async fn inspect_nodes(&self, resource: &str) -> Result<Vec<Option<Seen>>, Error> {
        let name = Resource::new(resource)?;
        if let Some(quorum) = self.shared.quorum() {
            let nodes = self.driver().read_records(0..quorum.urls().len(), &[name]).await?;
            return shown(quorum, resource, nodes.into_iter().flatten()).map(|(shown, _)| shown);
        }
        let op = LockOp { lock: LockId::new(u64::MAX), resource: name, op: Op::Read };
        let outcome = self.driver().request_record(op, self.caller).await?;
        Ok(vec![Some(read(applied(resource, outcome)?, resource)?)])
    }

    async fn break_untold(&self, resource: &str) -> Result<Option<LockInfo>, Error> {
        if let Some(quorum) = self.shared.quorum() {
            return self.break_on_all(quorum, resource).await;
        }
        let seen = self.read(resource).await?;
        let Some(holding) = seen.held() else { return Ok(None) };
        let Holder::Lease { nonce, .. } = holding.holder else { return Err(of_another_library(resource)) };
        self.apply(resource, Op::Release(Release { nonce, quorum: None })).await?;
        Ok(Some(LockInfo::shown(resource, holding)))
    }

    async fn read(&self, resource: &str) -> Result<Seen, Error> {
        read(self.apply(resource, Op::Read).await?, resource)
    }

    /// One request to the only store.
    pub(crate) async fn request(&self, resource: &str, op: Op) -> Result<Outcome, Error> {
        let name = Resource::new(resource)?;
        self.driver().request(LockOp { lock: LockId::new(u64::MAX), resource: name, op }, self.caller).await
    }

    async fn apply(&self, resource: &str, op: Op) -> Result<Applied, Error> {
        applied(resource, self.request(resource, op).await?)
    }

    /// See [`ffi::refresh`](crate::ffi::refresh).
    pub(crate) async fn refresh(&self, lease: &Lease, record_ttl: Duration) -> Result<bool, Error> {
        let resource = lease.resource();
        if self.shared.quorum().is_some() {
            let info = self.inspect(resource).await?;
            return Ok(info.is_some_and(|info| lease.is_shown_by(&info)));
        }
        let Some(nonce) = lease.nonce() else { return Ok(false) };
        let renew = Renew { nonce, seq: Seq::new(0), record_ttl, quorum: None };
        let op = LockOp { lock: LockId::new(u64::MAX), resource: Resource::new(resource)?, op: Op::Renew(renew) };
        match self.driver().request(op, self.caller).await? {
            Outcome::Applied(_) => Ok(true),
            Outcome::NotApplied(Refusal::Conflict(_)) => Ok(false),
            Outcome::Unknown(fault) => Err(unavailable(&fault).on(resource)),
            Outcome::NotApplied(refusal) => Err(error_of(&refusal).on(resource)),
        }
    }

    /// # Errors
    /// No majority answers.
    async fn view(&self, quorum: &Nodes, resource: &str) -> Result<View, Error> {
        self.look_at_nodes(quorum, resource).await.map(|(shown, _)| View::new(shown))
    }

    /// The nodes of a quorum that show this completion of finished work or do not answer, and so may have it, with the reason;
    /// and true if all nodes have answered.
    pub(crate) async fn may_be_marked<'a>(
        &self,
        quorum: &'a Nodes,
        resource: &str,
        completion: &Completion,
    ) -> Result<(Vec<(&'a str, Error)>, bool), Error> {
        let (shown, mut doubtful) = self.look_at_nodes(quorum, resource).await?;
        let all_answer = doubtful.is_empty();
        for (node, seen) in shown.iter().enumerate() {
            let done = seen.as_ref().and_then(|seen| seen.done.as_deref());
            // One that has missed a later one keeps an earlier one.
            if done.is_some_and(|done| done.token.get() <= completion.token) {
                doubtful
                    .push((quorum.name(node), Error::new(ErrorKind::StoreUnavailable, "it has kept the completion")));
            }
        }
        Ok((doubtful, all_answer))
    }

    /// The content of each node, and why others do not answer.
    ///
    /// # Errors
    /// No majority answers.
    async fn look_at_nodes<'a>(&self, quorum: &'a Nodes, resource: &str) -> Result<Contents<'a>, Error> {
        let name = Resource::new(resource)?;
        let nodes = quorum.urls().len();
        let outcomes = self.driver().request_all(&name, (0..nodes).map(|node| (node, Op::Read)).collect()).await?;
        shown(quorum, resource, outcomes)
    }

    async fn break_on_all(&self, quorum: &Nodes, resource: &str) -> Result<Option<LockInfo>, Error> {
        let view = self.view(quorum, resource).await?;
        let Some(holder) = holder(&view, resource) else { return Ok(None) };
        let releases = releases(&view);
        if releases.is_empty() {
            return Err(of_another_library(resource));
        }
        let (name, nodes) = (Resource::new(resource)?, quorum.urls().len());
        let asked: Vec<usize> = releases.iter().map(|(node, _)| *node).collect();
        let outcomes = self.driver().request_all(&name, releases).await?;
        let mut errors = Vec::new();
        for (node, outcome) in asked.into_iter().zip(outcomes) {
            let error = match outcome {
                // A record that is not there any more has run out, or was released.
                Outcome::Applied(_) | Outcome::NotApplied(Refusal::Conflict(_)) => continue,
                Outcome::Unknown(fault) => unavailable(&fault),
                Outcome::NotApplied(refusal) => error_of(&refusal),
            };
            errors.push((quorum.name(node), error));
        }
        // Nodes that did not show what they have may have the record as well.
        let left = errors.len() + view.silent();
        if errors.is_empty() || nodes - left >= majority(nodes) {
            return Ok(Some(holder));
        }
        let message = format!(
            "the lock is broken on fewer nodes than a majority, so it may still be held: {}; try again",
            listed(&errors)
        );
        Err(Error::new(ErrorKind::StoreUnavailable, message).on(resource))
    }
}

fn read(applied: Applied, resource: &str) -> Result<Seen, Error> {
    match applied {
        Applied::Read(seen) => Ok(seen),
        Applied::Acquired { .. }
        | Applied::AcquiredInDoubt { .. }
        | Applied::Renewed
        | Applied::RenewedTold { .. }
        | Applied::Released
        | Applied::Finished
        | Applied::Revoked
        | Applied::Told
        | Applied::Raised { .. } => {
            let nonsense = "the store's answer fits another question";
            Err(Error::new(ErrorKind::StoreUnavailable, nonsense).on(resource))
        }
    }
}

fn applied(resource: &str, outcome: Outcome) -> Result<Applied, Error> {
    match outcome {
        Outcome::Applied(applied) => Ok(applied),
        Outcome::Unknown(fault) => Err(unavailable(&fault).on(resource)),
        Outcome::NotApplied(refusal) => Err(error_of(&refusal).on(resource)),
    }
}

/// The content of each node, and the errors of those that gave none.
type Contents<'a> = (Vec<Option<Seen>>, Vec<(&'a str, Error)>);

/// The content of each node, and why others do not answer.
///
/// # Errors
/// No majority answers.
fn shown<'a>(
    quorum: &'a Nodes,
    resource: &str,
    outcomes: impl IntoIterator<Item = Outcome>,
) -> Result<Contents<'a>, Error> {
    let nodes = quorum.urls().len();
    let (mut shown, mut errors) = (Vec::with_capacity(nodes), Vec::new());
    for (node, outcome) in outcomes.into_iter().enumerate() {
        let answer = match outcome {
            Outcome::Applied(Applied::Read(seen)) => Ok(seen),
            Outcome::Applied(_) => Err(Error::new(ErrorKind::StoreUnavailable, "its answer fits another question")),
            Outcome::Unknown(fault) => Err(unavailable(&fault)),
            Outcome::NotApplied(refusal) => Err(error_of(&refusal)),
        };
        shown.push(answer.map_err(|error| errors.push((quorum.name(node), error))).ok());
    }
    if nodes - errors.len() >= majority(nodes) {
        return Ok((shown, errors));
    }
    let refused = errors.iter().filter(|(_, error)| error.kind() == ErrorKind::StoreRefused).count();
    let kind = if nodes - refused < majority(nodes) { ErrorKind::StoreRefused } else { ErrorKind::StoreUnavailable };
    Err(Error::new(kind, format!("no majority of the nodes answers: {}", listed(&errors))).on(resource))
}

/// The holder of the lock, unless a majority shows it free.
pub(crate) fn holder(view: &View, resource: &str) -> Option<LockInfo> {
    let shown = view.current()?;
    let count = |nodes| u16::try_from(nodes).unwrap_or(u16::MAX);
    Some(LockInfo {
        votes: count(shown.votes),
        nodes: count(view.nodes()),
        ..LockInfo::shown(resource, &shown.holding)
    })
}

/// One for each node that shows a record of ours.
fn releases(view: &View) -> Vec<(usize, Op)> {
    let nonce = |holding: &Holding| match holding.holder {
        Holder::Lease { nonce, .. } => Some(nonce),
        Holder::Foreign => None,
    };
    view.held()
        .filter_map(|(node, holding)| Some((node, Op::Release(Release { nonce: nonce(holding)?, quorum: None }))))
        .collect()
}

pub(crate) fn listed(errors: &[(&str, Error)]) -> String {
    errors.iter().map(|(name, error)| format!("{name}: {error}")).collect::<Vec<_>>().join("; ")
}

pub(crate) fn of_another_library(resource: &str) -> Error {
    let advice = "the lock belongs to another library; release it with that library's own tools";
    Error::new(ErrorKind::StoreRefused, advice).on(resource)
}

pub(crate) fn unavailable(fault: &Fault) -> Error {
    Error::new(ErrorKind::StoreUnavailable, fault.to_string())
}

pub(crate) fn error_of(refusal: &Refusal) -> Error {
    match refusal {
        Refusal::Throttled(fault) | Refusal::Unavailable(fault) | Refusal::NeedsCredentials(fault) => {
            unavailable(fault)
        }
        Refusal::Abstains { .. } => Error::new(ErrorKind::StoreUnavailable, "the node does not vote"),
        Refusal::Denied(denial) => Error::new(ErrorKind::StoreRefused, denial.to_string()),
        Refusal::Conflict(_) | Refusal::Done(_) => {
            Error::new(ErrorKind::Busy, "somebody else took the lock in between; inspect it again")
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use leasehold_core::{Nonce, Owner, Token, Version};

    use super::*;

    fn record(nonce: u8, token: u64, left_ms: u64) -> Option<Seen> {
        let holder = Holder::Lease { nonce: Nonce::from_bytes([nonce; 16]), seq: None };
        let holding = Holding {
            counter: Token::new(token),
            owner: Some(Owner::new(&format!("worker {nonce}")).unwrap()),
            left: Some(Duration::from_millis(left_ms)),
            ..Holding::of(holder, Version::new(&[nonce]).unwrap())
        };
        Some(Seen { holding: Some(Box::new(holding)), done: None })
    }

    #[test]
    fn a_majority_tells_who_holds_a_lock() {
        let shown = |nodes: Vec<Option<Seen>>| holder(&View::new(nodes), "job");
        let free = || Some(Seen::default());
        assert_eq!(shown(vec![record(1, 7, 10), free(), free()]), None, "a remainder holds nothing");
        let info = shown(vec![record(2, 9, 10), record(1, 7, 900), record(1, 7, 500)]).unwrap();
        assert_eq!((info.owner.as_deref(), info.token, info.votes, info.nodes), (Some("worker 1"), Some(7), 2, 3));
        assert!(info.is_shown_by_a_majority() && !info.to_string().contains("nodes"));
        let info = shown(vec![record(1, 7, 10), None, None]).unwrap();
        assert!(info.to_string().contains("by only 1 of 3 nodes"), "{info}");
    }

    #[test]
    fn each_record_is_released_where_it_stands() {
        let view = View::new(vec![record(1, 7, 10), None, record(2, 9, 10), Some(Seen::default())]);
        let nonces: Vec<_> = releases(&view).iter().map(|(node, op)| (*node, op.nonce().unwrap())).collect();
        assert_eq!(nonces, [(0, Nonce::from_bytes([1; 16])), (2, Nonce::from_bytes([2; 16]))]);
    }
}
