//! Our own session on one node: it is started under the first free name, renewed when a lock needs it, and over once a
//! renewal is refused.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;

use super::rival::about;
use super::{Job, Moment, Node, Sessions, Step, answer, resource_of};
use crate::ids::{LockId, NodeId, Nonce, Owner, Seq, SessionLabel};
use crate::lease::Sends;
use crate::op::{Acquire, Applied, Fault, FaultKind, Op, Outcome, Refusal, Release, Renew, Seen};
use crate::prf::session_nonce;
use crate::time::Monotonic;

/// The names `W`, `W/2`, ... that are tried one after the other; then follows one that nobody else has.
const MOST_NAMES: u32 = 16;

/// A session of ours.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Own {
    nonce: Nonce,
    label: SessionLabel,
    /// How many names were tried before this one.
    name: u32,
    /// The number of the last send.
    seq: u32,
    sends: Sends,
    /// Its record is ours.
    stands: bool,
    /// The ttl that all remembered sends carry: the longest of its locks.
    ttl: Duration,
    /// The last send that was confirmed, and the ttl that it carried.
    confirmed: Option<(Monotonic, Duration)>,
    /// The number of tells that its record has shown last.
    told: u64,
    /// How often that number was another than before. A row counts once it was read after the last change.
    news: u64,
}

/// The meaning of an answer about our session.
enum Heard {
    Stands,
    /// Its name is taken.
    Taken(Seen),
    Over,
    /// Its node has lost what it had, and says so.
    Forgotten,
    Revoked,
    Failed(Outcome),
}

impl Own {
    pub(super) fn nonce(&self) -> Nonce {
        self.nonce
    }

    pub(super) fn label(&self) -> &SessionLabel {
        &self.label
    }

    pub(super) fn stands(&self) -> bool {
        self.stands
    }

    /// The instant from which locks of that ttl are valid.
    pub(super) fn since(&self, ttl: Duration) -> Option<Monotonic> {
        self.confirmed.filter(|(_, covered)| *covered >= ttl).map(|(sent, _)| sent)
    }

    /// How often others have said that they had changed a row of it.
    pub(super) fn news(&self) -> u64 {
        self.news
    }

    /// Notes the number of tells that its record shows. Any other number than before is news, also a smaller one, which is
    /// that of a node with older data.
    fn note_told(&mut self, told: u64) {
        if told != self.told {
            (self.told, self.news) = (told, self.news.saturating_add(1));
        }
    }

    fn begin(base: &SessionLabel, name: u32, nonce: Nonce) -> Self {
        let ttl = Duration::ZERO;
        let label = label_of(base, name, &nonce);
        let sends = Sends::default();
        Self { nonce, label, name, seq: 0, sends, stands: false, ttl, confirmed: None, told: 0, news: 0 }
    }

    fn confirm(&mut self, seq: Seq) -> Heard {
        let Some(sent) = self.sends.sent_at(seq) else {
            // It was started for a shorter ttl, by a send without an answer: the next renewal counts.
            if !self.stands && seq < Seq::new(self.seq) {
                self.stands = true;
                return Heard::Stands;
            }
            let fault =
                Fault::new(FaultKind::Protocol, "another program has written the record of this client's session");
            return Heard::Failed(Outcome::Unknown(fault));
        };
        self.sends.settle_through(seq);
        let confirmed = (sent, self.ttl);
        self.confirmed = Some(self.confirmed.map_or(confirmed, |before| match before.1 < self.ttl {
            true => confirmed,
            false => before.max(confirmed),
        }));
        self.stands = true;
        Heard::Stands
    }

    fn heard(&mut self, outcome: Outcome) -> Heard {
        let seen = match outcome {
            // It does not say how many the record has counted, so the next renewal may be news.
            Outcome::Applied(Applied::Acquired { .. } | Applied::AcquiredInDoubt { .. } | Applied::Renewed) => {
                self.note_told(0);
                return self.confirm(Seq::new(self.seq));
            }
            Outcome::Applied(Applied::RenewedTold { told }) => {
                self.note_told(told);
                return self.confirm(Seq::new(self.seq));
            }
            Outcome::Applied(_) => {
                return Heard::Failed(Outcome::Unknown(Fault::of(FaultKind::Protocol)));
            }
            Outcome::NotApplied(Refusal::Conflict(seen)) => seen,
            // A renewal would never have it vote again: only an acquire takes it in.
            Outcome::NotApplied(Refusal::Abstains { .. }) if self.stands => return Heard::Forgotten,
            Outcome::NotApplied(refusal) => {
                self.sends.settle(Seq::new(self.seq));
                return Heard::Failed(Outcome::NotApplied(about(&self.label, refusal)));
            }
            Outcome::Unknown(fault) => return Heard::Failed(Outcome::Unknown(fault)),
        };
        match seen.holding.as_deref() {
            Some(holding) if holding.is_of(&self.nonce) => {
                if holding.released {
                    return Heard::Over;
                }
                self.note_told(holding.told);
                match holding.seq() {
                    _ if holding.is_revoked() => Heard::Revoked,
                    Some(seq) => self.confirm(seq),
                    None => Heard::Failed(Outcome::Unknown(Fault::of(FaultKind::Protocol))),
                }
            }
            _ if self.stands => Heard::Over,
            Some(holding) if !holding.released => Heard::Taken(seen),
            _ => Heard::Failed(Outcome::Unknown(Fault::of(FaultKind::Busy))),
        }
    }
}

/// The label of the record with that number.
fn label_of(base: &SessionLabel, name: u32, nonce: &Nonce) -> SessionLabel {
    let suffix = match name {
        0 => return base.clone(),
        _ if name < MOST_NAMES => format!("/{}", name + 1),
        _ => nonce.as_bytes().iter().take(8).fold("/".into(), |text: String, byte| format!("{text}{byte:02x}")),
    };
    let room = SessionLabel::MAX_BYTES - suffix.len();
    let kept = &base.as_str()[..base.as_str().floor_char_boundary(room)];
    SessionLabel::new(&format!("{kept}{suffix}")).unwrap_or_else(|_| base.clone())
}

impl<T: Copy> Sessions<T> {
    /// Starts or renews our session, if something waits for it.
    pub(super) fn pulse(&mut self, at: NodeId, moment: Moment<'_>, out: &mut Vec<Step<T>>) {
        let node = &mut self.nodes[at.index()];
        let Some(base) = &self.label else { return };
        if node.is_asking {
            return;
        }
        let acquire = node.parked.iter().find_map(|work| match &work.op {
            Op::Acquire(acquire) => Some(acquire),
            Op::Renew(_) | Op::Release(_) | Op::Finish(_) | Op::Revoke(_) | Op::Tell(_) | Op::Raise(_) | Op::Read => {
                None
            }
        });
        if let (None, Some(acquire)) = (&node.own, acquire) {
            node.own = Some(Own::begin(base, 0, session_nonce(moment.seed, &acquire.nonce, at, self.begun)));
            self.begun = self.begun.wrapping_add(1);
        }
        let (Some(own), Some(first)) = (&mut node.own, node.parked.first()) else { return };
        let longest = node.parked.iter().map(|work| work.ttl).max().unwrap_or_default();
        if longest > own.ttl {
            (own.ttl, own.sends) = (longest, Sends::default());
        }
        // The last number of all is that of a revoke.
        own.seq = own.seq.saturating_add(1).min(Seq::LAST.get() - 1);
        let (nonce, seq, record_ttl) = (own.nonce, Seq::new(own.seq), own.ttl);
        let Some(resource) = resource_of(&own.label) else { return };
        own.sends.push(seq, moment.now);
        let op = match acquire {
            Some(acquire) if !own.stands => Op::Acquire(Box::new(Acquire {
                nonce,
                seq,
                record_ttl,
                expect: node.seen.ran_out(at, &resource, moment.now),
                // The name, whatever the number of the record: so `label_of_record` knows it.
                owner: Owner::new(base.as_str()).unwrap_or_default(),
                data: None,
                session: None,
                unless_done: false,
                in_queue: false,
                ..(**acquire).clone()
            })),
            _ => {
                let quorum = if let Op::Renew(renew) = &first.op {
                    renew.quorum
                } else {
                    acquire.and_then(|acquire| acquire.member.as_ref()).map(|member| member.durability)
                };
                Op::Renew(Renew { nonce, seq, record_ttl, quorum })
            }
        };
        let patience = node.parked.iter().map(|work| work.patience).min().unwrap_or_default();
        let lock = first.lock;
        node.is_asking = true;
        self.ask(at, Job::Own, lock, resource, op, patience, out);
    }

    pub(super) fn own_answered(&mut self, at: NodeId, outcome: Outcome, moment: Moment<'_>, out: &mut Vec<Step<T>>) {
        let node = &mut self.nodes[at.index()];
        node.is_asking = false;
        let parked = core::mem::take(&mut node.parked);
        let heard = node.own.as_mut().map_or(Heard::Over, |own| own.heard(outcome));
        match heard {
            Heard::Stands => {
                for work in parked {
                    let is_covered =
                        self.nodes[at.index()].own.as_ref().is_some_and(|own| own.since(work.ttl).is_some());
                    if !is_covered {
                        self.nodes[at.index()].parked.push(work);
                    } else if matches!(work.op, Op::Renew(_)) {
                        self.serve(at, work, moment, out);
                    } else {
                        self.write_row(at, work, moment, out);
                    }
                }
                return self.pulse(at, moment, out);
            }
            Heard::Failed(outcome) => {
                for work in parked {
                    let outcome = match (&work.op, &outcome) {
                        // The row was not touched.
                        (Op::Acquire(_), Outcome::Unknown(fault)) => {
                            Outcome::NotApplied(Refusal::Unavailable(fault.clone()))
                        }
                        _ => outcome.clone(),
                    };
                    answer(at, &work, outcome, None, out);
                }
                return;
            }
            Heard::Taken(seen) => {
                if let (Some(own), Some(base), Some(holding)) = (&mut node.own, &self.label, seen.held()) {
                    if let Some(resource) = resource_of(&own.label) {
                        node.seen.note(at, &resource, holding, moment.now, moment.drift);
                    }
                    let nonce = session_nonce(moment.seed, &own.nonce, at, self.begun);
                    self.begun = self.begun.wrapping_add(1);
                    *own = Own::begin(base, own.name + 1, nonce);
                }
            }
            Heard::Revoked => {
                if let Some(own) = node.own.take() {
                    node.rows.values_mut().filter(|row| row.session == own.nonce).for_each(|row| row.is_revoked = true);
                    let patience = parked.iter().map(|work| work.patience).min().unwrap_or_default();
                    node.revoked.push((own.nonce, own.label, patience));
                }
            }
            Heard::Forgotten => {
                let nonce = node.own.take().map(|own| own.nonce);
                node.rows.values_mut().filter(|row| Some(row.session) == nonce).for_each(|row| row.is_forgotten = true);
            }
            Heard::Over => node.own = None,
        }
        for work in parked {
            match node.lost(&work) {
                Some(outcome) => answer(at, &work, outcome, None, out),
                None => node.parked.push(work),
            }
        }
        self.pulse(at, moment, out);
    }

    /// Releases our sessions, once no lock is left.
    pub(crate) fn end(&mut self, patience: Duration, out: &mut Vec<Step<T>>) {
        for at in 0..self.nodes.len() {
            let node = &mut self.nodes[at];
            node.rows.clear();
            node.sweep_at = None;
            let own = node.own.take();
            let at = NodeId::new(u16::try_from(at).unwrap_or(u16::MAX));
            if let Some(own) = own {
                self.ask_last(at, own.nonce(), own.label(), patience, out);
            }
            self.end_revoked(at, out);
        }
    }

    /// Returns true if no session stands, and none is being released.
    pub(crate) fn is_over(&self) -> bool {
        self.nodes.iter().all(|node| node.own.is_none()) && self.jobs.is_empty()
    }

    /// Begins again: this client may be one of two copies.
    pub(crate) fn forget(&mut self) {
        for node in &mut self.nodes {
            node.own = None;
            node.revoked.clear();
        }
    }

    /// Releases the sessions that were revoked and have no rows left, so that they do not stand forever.
    pub(super) fn end_revoked(&mut self, at: NodeId, out: &mut Vec<Step<T>>) {
        let Node { revoked, rows, .. } = &mut self.nodes[at.index()];
        let is_over = |nonce: &Nonce| rows.values().all(|row| row.session != *nonce);
        let over: Vec<_> = revoked.extract_if(.., |(nonce, ..)| is_over(nonce)).collect();
        for (nonce, label, patience) in over {
            self.ask_last(at, nonce, &label, patience, out);
        }
    }

    fn ask_last(&mut self, at: NodeId, nonce: Nonce, label: &SessionLabel, patience: Duration, out: &mut Vec<Step<T>>) {
        let Some(resource) = resource_of(label) else { return };
        let release = Op::Release(Release { nonce, quorum: None });
        self.ask(at, Job::Last, LockId::new(u64::MAX), resource, release, patience, out);
    }
}
