//! The checker's ledger of a run, outside the core: all leases, the sends of each attempt, and all tokens.
//!
//! It knows the true time, and writes down each violation. Whether that breaks a promise depends on which assumptions
//! the faults of the run leave standing.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;

use leasehold_core::config::{Drift, Ttl};
use leasehold_core::op::{Applied, LockOp, Op, Outcome, Refusal, Release};
use leasehold_core::time::takeover_bound;
use leasehold_core::{LockId, Monotonic, Nonce, RequestId, Seq, Token, Transmit};

use crate::clock::TrueTime;
use crate::promise::{Promise, Violation};

/// One process of one process: ids of its locks and requests mean something within it only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProcessId {
    /// Index of the host.
    pub host: usize,
    /// The number of its starts.
    pub n: u32,
}

/// A lease, as its holder knows it.
#[derive(Clone, Debug)]
pub struct Belief {
    /// The holder.
    pub process: ProcessId,
    /// Under which id.
    pub lock: LockId,
    /// The resource, by number.
    pub resource: usize,
    /// With which token.
    pub token: Token,
    /// The attempt that was granted.
    pub nonce: Nonce,
    /// The deadline, by the holder's clock.
    pub deadline: Monotonic,
    /// Renewals so far.
    pub renewals: u32,
    /// The time of the grant, by the holder's clock.
    pub granted: Monotonic,
}

/// One try to get a lock, as the network saw it.
#[derive(Clone, Debug)]
struct Attempt {
    process: ProcessId,
    lock: LockId,
    resource: usize,
    record_ttl: Duration,
    first_sent: TrueTime,
    /// Sends to each node that were not refused for certain.
    unaccounted: BTreeMap<usize, u32>,
    /// It was to overwrite what had stood still for long enough.
    by_observation: bool,
    granted: bool,
    /// Sends that were made after the grant, to nodes that had no part in it.
    repairs: BTreeSet<(usize, Seq)>,
    /// The nodes that were asked to forget it.
    release_sent: BTreeSet<usize>,
    released_since: TrueTime,
    releases: u64,
    /// The time at which each node last carried out a send of it.
    landed: BTreeMap<usize, TrueTime>,
    /// The nodes that kept its record until they carried out its release, or whose vote no other attempt got until
    /// then.
    freed: BTreeSet<(ProcessId, usize)>,
    over: bool,
    /// It asks for work that is not done.
    is_run: bool,
    /// The first finish left then.
    finish_sent: Option<TrueTime>,
    /// The nodes that have confirmed its mark.
    marked: BTreeSet<usize>,
    token: Option<Token>,
}

#[derive(Clone, Copy, Debug)]
struct Asked {
    lock: LockId,
    node: usize,
    /// The attempt, if it was an acquire or a raise.
    attempt: Option<Nonce>,
    raises: bool,
    /// The deadline, after which the client ignores an answer.
    deadline: Monotonic,
}

#[derive(Clone, Copy, Debug)]
struct Grant {
    answered: TrueTime,
    token: Token,
}

/// A finish that was confirmed.
#[derive(Clone, Copy, Debug)]
struct Done {
    answered: TrueTime,
    /// Its mark stands until then at least.
    until: TrueTime,
    token: Token,
}

/// The ledger; see the module.
#[derive(Debug, Default)]
pub struct Ledger {
    attempts: HashMap<Nonce, Attempt>,
    /// The attempt under way for each pending acquisition.
    current: BTreeMap<(ProcessId, LockId), Nonce>,
    /// Requests until they are answered.
    asked: HashMap<(ProcessId, RequestId), Asked>,
    /// Pending acquisitions that were last shown a record, held or released, with the node that showed it.
    blocked: BTreeSet<(ProcessId, LockId, usize)>,
    /// The last request of each acquisition to each node. Answers to earlier attempts mean nothing any more.
    last_asked: BTreeMap<(ProcessId, LockId, usize), RequestId>,
    beliefs: BTreeMap<(ProcessId, LockId), Belief>,
    /// The attempts behind leases that are over.
    past: BTreeMap<(ProcessId, LockId), Nonce>,
    /// Finished work of each resource.
    dones: BTreeMap<usize, Vec<Done>>,
    /// Runs that were finished, and then told lost.
    lost: BTreeSet<(ProcessId, LockId)>,
    grants: BTreeMap<usize, Vec<Grant>>,
    violations: Vec<Violation>,
}

impl Ledger {
    /// The violations so far.
    pub fn violations(&self) -> &[Violation] {
        &self.violations
    }

    /// Something is wrong.
    pub fn record_violation(
        &mut self,
        promise: Promise,
        at: TrueTime,
        host: Option<usize>,
        resource: Option<usize>,
        text: String,
    ) {
        // A few of each kind are enough. A thousand more of the same would hide other violations.
        let is_alike = |other: &&Violation| other.promise == promise && other.resource == resource;
        if self.violations.iter().filter(is_alike).count() < 3 {
            self.violations.push(Violation { promise, at_ns: at, host, resource, text });
        }
    }

    /// True if a node may hold an attempt, as far as its client can know, and was not asked to forget it. A copy of a
    /// message may arrive after a release or a refusal.
    pub fn is_unreleased(&self, nonce: Nonce, node: usize) -> bool {
        self.attempts.get(&nonce).is_some_and(|attempt| {
            attempt.unaccounted.get(&node).is_some_and(|sends| *sends > 0) && !attempt.release_sent.contains(&node)
        })
    }

    /// The present leases, in a fixed order.
    pub fn beliefs(&self) -> impl Iterator<Item = &Belief> {
        self.beliefs.values()
    }

    /// The lease of one lock.
    pub fn belief(&self, process: ProcessId, lock: LockId) -> Option<&Belief> {
        self.beliefs.get(&(process, lock))
    }

    /// The locks that a process holds.
    pub fn held_by(&self, process: ProcessId) -> Vec<LockId> {
        self.beliefs.keys().filter(|(of, _)| *of == process).map(|(_, lock)| *lock).collect()
    }

    /// True if a resource was ever granted.
    pub fn was_granted(&self, resource: usize) -> bool {
        self.grants.contains_key(&resource)
    }

    /// The attempt that a lock last started.
    pub fn nonce(&self, process: ProcessId, lock: LockId) -> Option<Nonce> {
        self.current.get(&(process, lock)).copied()
    }

    /// Longest time for which any record of a resource may stand without being renewed.
    pub fn longest_ttl(&self, resource: usize) -> Duration {
        let of = self.attempts.values().filter(|attempt| attempt.resource == resource);
        of.map(|attempt| attempt.record_ttl).max().unwrap_or_default()
    }

    /// A request leaves.
    pub fn sent(&mut self, at: TrueTime, process: ProcessId, request: &Transmit, resource: usize, op: &LockOp) {
        let (id, lock, deadline, node) = (request.id, op.lock, request.deadline, request.node.index());
        // It is unknown whether the lock is still held, unless the answer says so again.
        self.blocked.remove(&(process, op.lock, node));
        if matches!(op.op, Op::Acquire(_) | Op::Read) {
            self.last_asked.insert((process, op.lock, node), id);
        }
        match &op.op {
            Op::Acquire(acquire) => {
                let attempt = self.attempts.entry(acquire.nonce).or_insert_with(|| Attempt {
                    process,
                    lock: op.lock,
                    resource,
                    record_ttl: acquire.record_ttl,
                    first_sent: at,
                    unaccounted: BTreeMap::new(),
                    by_observation: false,
                    granted: false,
                    repairs: BTreeSet::new(),
                    release_sent: BTreeSet::new(),
                    released_since: at,
                    releases: 0,
                    landed: BTreeMap::new(),
                    freed: BTreeSet::new(),
                    over: false,
                    is_run: acquire.unless_done,
                    finish_sent: None,
                    marked: BTreeSet::new(),
                    token: None,
                });
                let is_other = attempt.process != process || attempt.lock != op.lock;
                *attempt.unaccounted.entry(node).or_default() += 1;
                if attempt.granted {
                    attempt.repairs.insert((node, acquire.seq));
                }
                attempt.by_observation |= acquire.expect.is_some();
                self.asked
                    .insert((process, id), Asked { lock, node, attempt: Some(acquire.nonce), raises: false, deadline });
                self.current.insert((process, op.lock), acquire.nonce);
                if is_other {
                    let text = "two attempts bear the same nonce".to_owned();
                    self.record_violation(Promise::OneHolder, at, Some(process.host), Some(resource), text);
                }
            }
            Op::Renew(renew) => {
                let held = self.beliefs.get(&(process, op.lock)).is_some_and(|belief| belief.nonce == renew.nonce);
                if !held {
                    let text = format!("lock {} is renewed, though it is not held any more", op.lock);
                    self.record_violation(Promise::Orphans, at, Some(process.host), Some(resource), text);
                }
            }
            Op::Release(Release { nonce, .. }) => self.frees(at, process, op.lock, *nonce, node),
            Op::Finish(finish) => {
                if let Some(attempt) = self.attempts.get_mut(&finish.nonce) {
                    attempt.finish_sent.get_or_insert(at);
                }
                self.frees(at, process, op.lock, finish.nonce, node);
            }
            Op::Read => {
                self.asked.insert((process, id), Asked { lock, node, attempt: None, raises: false, deadline });
            }
            // Of a supervisor, outside of every client.
            Op::Revoke(_) | Op::Tell(_) => {}
            Op::Raise(raise) => {
                let attempt = Some(raise.nonce);
                self.asked.insert((process, id), Asked { lock, node, attempt, raises: true, deadline });
            }
        }
    }

    /// A release or finish of an attempt leaves.
    fn frees(&mut self, at: TrueTime, process: ProcessId, lock: LockId, nonce: Nonce, node: usize) {
        let Some(attempt) = self.attempts.get_mut(&nonce) else { return };
        attempt.released_since = if attempt.release_sent.is_empty() { at } else { attempt.released_since };
        attempt.release_sent.insert(node);
        attempt.releases += 1;
        let (resource, releases) = (attempt.resource, attempt.releases);
        let passed = at.since(attempt.released_since);
        let nodes = attempt.release_sent.len() as u64;
        if releases > (15 + u64::try_from(passed.as_millis() / 50).unwrap_or(u64::MAX)) * nodes {
            let text = format!("an attempt of lock {lock} was released {releases} times in {passed:?}");
            self.record_violation(Promise::Bounds, at, Some(process.host), Some(resource), text);
        }
    }

    /// A node carried out a write of an attempt.
    pub fn landed(&mut self, at: TrueTime, nonce: &Nonce, node: usize) {
        if let Some(attempt) = self.attempts.get_mut(nonce) {
            attempt.landed.insert(node, at);
        }
    }

    /// Notes that a record of an attempt blocks another client in a store that expires records by itself. Returns true
    /// if no worker waits for that attempt any more.
    pub fn blocks(&mut self, at: TrueTime, nonce: &Nonce, node: usize, drift: Drift) -> bool {
        let Some(attempt) = self.attempts.get(nonce) else { return false };
        let Some(landed) = attempt.landed.get(&node).copied() else { return false };
        let bound = longest_stand(attempt.record_ttl, drift);
        let over = attempt.over;
        if at > landed.plus(bound) {
            let text = format!("a record blocks {:?} after it was last written, {bound:?} at most", at.since(landed));
            let (host, resource) = (attempt.process.host, attempt.resource);
            self.record_violation(Promise::Orphans, at, Some(host), Some(resource), text);
        }
        over
    }

    /// The answer to a request reaches a client. Answers for which acquisition it was, if it came in time.
    pub fn answered(
        &mut self,
        process: ProcessId,
        id: RequestId,
        outcome: Option<&Outcome>,
        now: Monotonic,
    ) -> Option<LockId> {
        let Asked { lock, node, attempt, raises, deadline } = self.asked.remove(&(process, id))?;
        if now >= deadline {
            return None;
        }
        let told =
            matches!(outcome, Some(Outcome::NotApplied(Refusal::Conflict(_)) | Outcome::Applied(Applied::Read(_))));
        if raises {
            // A record that is gone needs no release.
            if let Some(attempt) = attempt.and_then(|nonce| self.attempts.get_mut(&nonce)).filter(|_| told) {
                attempt.unaccounted.insert(node, 0);
            }
            return Some(lock);
        }
        if self.last_asked.get(&(process, lock, node)) != Some(&id) {
            // Whatever it says, the client now follows a later attempt.
        } else if told {
            self.blocked.insert((process, lock, node));
        } else {
            self.blocked.remove(&(process, lock, node));
        }
        let Some(nonce) = attempt else { return Some(lock) };
        let refused = match outcome {
            Some(Outcome::NotApplied(Refusal::Conflict(seen))) => {
                !seen.holding.as_ref().is_some_and(|holding| holding.is_of(&nonce))
            }
            Some(Outcome::NotApplied(_)) => true,
            Some(Outcome::Applied(_) | Outcome::Unknown(_)) | None => false,
        };
        if let Some(attempt) = self.attempts.get_mut(&nonce).filter(|_| refused) {
            *attempt.unaccounted.entry(node).or_default() -= 1;
        }
        Some(lock)
    }

    /// True if the last answer of every node to an acquisition shows the holder, or shows that there is none.
    pub fn is_blocked(&self, process: ProcessId, lock: LockId, nodes: usize) -> bool {
        (0..nodes).all(|node| self.blocked.contains(&(process, lock, node)))
    }

    /// True if a send was made by a holder, to a node that had no part in the grant.
    pub fn is_repair(&self, nonce: &Nonce, node: usize, seq: Seq) -> bool {
        self.attempts.get(nonce).is_some_and(|attempt| attempt.repairs.contains(&(node, seq)))
    }

    /// Notes a grant. Returns true if only observation had shown that the last holder was dead.
    #[expect(clippy::too_many_arguments, reason = "one grant, told once")]
    pub fn granted(
        &mut self,
        at: TrueTime,
        process: ProcessId,
        lock: LockId,
        resource: usize,
        token: Token,
        deadline: Monotonic,
        granted: Monotonic,
    ) -> bool {
        let attempt = self.nonce(process, lock).and_then(|nonce| Some((nonce, self.attempts.get_mut(&nonce)?)));
        let Some((nonce, attempt)) = attempt else {
            let text = format!("lock {lock} was granted, though nothing was asked for it");
            self.record_violation(Promise::Backed, at, Some(process.host), Some(resource), text);
            return false;
        };
        attempt.granted = true;
        attempt.token = Some(token);
        let is_run = attempt.is_run;
        let (first_sent, by_observation) = (attempt.first_sent, attempt.by_observation);
        let grants = self.grants.entry(resource).or_default();
        let twice = grants.iter().any(|grant| grant.token == token);
        let higher = grants.iter().find(|grant| grant.answered <= first_sent && grant.token >= token).copied();
        grants.push(Grant { answered: at, token });
        let belief = Belief { process, lock, resource, token, nonce, deadline, renewals: 0, granted };
        self.beliefs.insert((process, lock), belief);
        let asked_later = |done: &&Done| done.answered <= first_sent && at < done.until;
        if let Some(done) =
            self.dones.get(&resource).and_then(|dones| dones.iter().find(asked_later)).filter(|_| is_run)
        {
            let text = format!(
                "token {token} was granted to a run that asked {:?} after token {} had finished the work",
                first_sent.since(done.answered),
                done.token
            );
            self.record_violation(Promise::Once, at, Some(process.host), Some(resource), text);
        }
        if twice {
            let text = format!("token {token} was granted twice");
            self.record_violation(Promise::Tokens, at, Some(process.host), Some(resource), text);
        } else if let Some(Grant { answered, token: before }) = higher {
            let text = format!(
                "token {token} was granted to a request made {:?} after token {before} was answered",
                first_sent.since(answered)
            );
            self.record_violation(Promise::Tokens, at, Some(process.host), Some(resource), text);
        }
        by_observation
    }

    /// A renewal has pushed the deadline of a lease out.
    pub fn extended(&mut self, at: TrueTime, process: ProcessId, lock: LockId, deadline: Monotonic) {
        self.moved(at, process, lock, deadline, |before| deadline > before);
        if let Some(belief) = self.beliefs.get_mut(&(process, lock)) {
            belief.renewals += 1;
        }
    }

    /// The deadline of a lease was drawn in, or left where it was.
    pub fn shortened(&mut self, at: TrueTime, process: ProcessId, lock: LockId, deadline: Monotonic) {
        self.moved(at, process, lock, deadline, |before| deadline <= before);
    }

    fn moved(
        &mut self,
        at: TrueTime,
        process: ProcessId,
        lock: LockId,
        deadline: Monotonic,
        as_told: impl FnOnce(Monotonic) -> bool,
    ) {
        let Some(belief) = self.beliefs.get_mut(&(process, lock)) else {
            let text = format!("lock {lock} is renewed, though it is over");
            return self.record_violation(Promise::Loss, at, Some(process.host), None, text);
        };
        let before = std::mem::replace(&mut belief.deadline, deadline);
        let resource = belief.resource;
        if !as_told(before) {
            let text = format!("the deadline of lock {lock} moved the wrong way");
            self.record_violation(Promise::Loss, at, Some(process.host), Some(resource), text);
        }
    }

    /// Ends a lease, for any reason.
    pub fn ended(&mut self, process: ProcessId, lock: LockId) -> Option<Belief> {
        let belief = self.beliefs.remove(&(process, lock));
        self.past.extend(belief.iter().map(|belief| ((process, lock), belief.nonce)));
        belief
    }

    /// A run was told finished. A mark that was confirmed stands for at least this long.
    pub fn finished(
        &mut self,
        at: TrueTime,
        process: ProcessId,
        lock: LockId,
        confirmed: Option<Duration>,
        majority: usize,
    ) {
        let attempt = self.past.get(&(process, lock)).and_then(|nonce| self.attempts.get(nonce));
        let Some((attempt, began)) = attempt.and_then(|attempt| Some((attempt, attempt.finish_sent?))) else {
            // Where all nodes of a quorum have forgotten the grant, there is nothing to mark, and nothing is claimed.
            if confirmed.is_none() && majority > 1 {
                return;
            }
            let text = format!("lock {lock} is told finished, and no finish was sent");
            return self.record_violation(Promise::Once, at, Some(process.host), None, text);
        };
        let (resource, nodes, token) = (attempt.resource, attempt.marked.len(), attempt.token.unwrap_or(Token::ZERO));
        if self.lost.contains(&(process, lock)) {
            let text = format!("lock {lock} is told finished, after it was told lost");
            self.record_violation(Promise::Once, at, Some(process.host), Some(resource), text);
        }
        if confirmed.is_some() && nodes < majority {
            let text = format!("lock {lock} is told finished for certain, and {nodes} nodes have written its mark");
            self.record_violation(Promise::Once, at, Some(process.host), Some(resource), text);
        }
        if let Some(stands_for) = confirmed {
            let done = Done { answered: at, until: began.plus(stands_for), token };
            self.dones.entry(resource).or_default().push(done);
        }
    }

    /// A caller was told the result of the work: from then on it is done, for at least this long.
    pub fn known_done(&mut self, at: TrueTime, resource: usize, token: Token, stands_for: Duration) {
        let done = Done { answered: at, until: at.plus(stands_for), token };
        self.dones.entry(resource).or_default().push(done);
    }

    /// A node has confirmed the completion of an attempt.
    pub fn marked(&mut self, nonce: &Nonce, node: usize) {
        if let Some(attempt) = self.attempts.get_mut(nonce) {
            attempt.marked.insert(node);
        }
    }

    /// Completions need not be remembered any more.
    pub fn forget_completions(&mut self) {
        self.dones.clear();
    }

    /// A lock was told lost. Returns true if it is a run that was being finished.
    pub fn told_lost(&mut self, process: ProcessId, lock: LockId) -> bool {
        let attempt = self.past.get(&(process, lock)).and_then(|nonce| self.attempts.get(nonce));
        let finishing = attempt.is_some_and(|attempt| attempt.finish_sent.is_some());
        if finishing {
            self.lost.insert((process, lock));
        }
        finishing
    }

    /// Notes that a node carried out a release of an attempt, or answered that no attempt gets its vote.
    pub fn freed(&mut self, process: ProcessId, nonce: &Nonce, node: usize) {
        if let Some(attempt) = self.attempts.get_mut(nonce) {
            attempt.freed.insert((process, node));
        }
    }

    /// The number of nodes that kept the record of a lease until its release by this process; `None` if it was not a
    /// lease.
    pub fn kept(&self, process: ProcessId, lock: LockId) -> Option<usize> {
        let attempt = self.attempts.get(self.past.get(&(process, lock))?)?;
        Some(attempt.freed.iter().filter(|(by, _)| *by == process).count())
    }

    /// The attempts of a process that are not decided, each with its lock.
    pub fn undecided(&self, process: ProcessId) -> impl Iterator<Item = (LockId, Nonce)> + '_ {
        let first = LockId::new(0);
        self.current
            .range((process, first)..)
            .take_while(move |((of, _), _)| *of == process)
            .map(|((_, lock), nonce)| (*lock, *nonce))
    }

    /// An attempt is no longer under way. Answers whether a release had to follow it.
    pub fn decided(&mut self, at: TrueTime, process: ProcessId, lock: LockId) -> bool {
        let Some(nonce) = self.current.remove(&(process, lock)) else { return false };
        let Some(attempt) = self.attempts.get_mut(&nonce) else { return false };
        attempt.over = true;
        let sends: u32 = attempt.unaccounted.values().sum();
        if attempt.granted || sends == 0 {
            return false;
        }
        let open = |(node, sends): (&usize, &u32)| *sends > 0 && !attempt.release_sent.contains(node);
        if attempt.unaccounted.iter().any(open) {
            let resource = attempt.resource;
            let text =
                format!("an attempt of lock {lock} was given up with {sends} sends unaccounted for, and not released");
            self.record_violation(Promise::Orphans, at, Some(process.host), Some(resource), text);
        }
        true
    }

    /// A process is gone, and all that it believed.
    pub fn died(&mut self, process: ProcessId) -> Vec<Belief> {
        let mine = |(of, _): &(ProcessId, LockId)| *of == process;
        for (_, nonce) in self.current.iter().filter(|(key, _)| mine(key)) {
            if let Some(attempt) = self.attempts.get_mut(nonce) {
                attempt.over = true;
            }
        }
        self.current.retain(|key, _| !mine(key));
        self.asked.retain(|(of, _), _| *of != process);
        self.blocked.retain(|(of, ..)| *of != process);
        self.last_asked.retain(|(of, ..), _| *of != process);
        let gone = self.beliefs.keys().filter(|key| mine(key)).copied().collect::<Vec<_>>();
        gone.iter().filter_map(|key| self.beliefs.remove(key)).collect()
    }
}

/// The longest true time for which a record may stand after it was last written.
pub fn longest_stand(record_ttl: Duration, drift: Drift) -> Duration {
    let ttl = Ttl::new(record_ttl.clamp(Ttl::MIN, Ttl::MAX)).unwrap_or_default();
    takeover_bound(ttl, record_ttl.saturating_sub(ttl.get()), drift) + Duration::from_millis(2)
}
