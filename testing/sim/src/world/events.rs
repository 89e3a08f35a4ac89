//! The events of a client: entered in the ledger at the instant of its decision, and published to its callers when the
//! process gets that far.

use std::time::Duration;

use leasehold_core::op::Completion;
use leasehold_core::{Event, Failure, LockId, LostReason};

use super::worker::result_of;
use super::{Due, LastHolder, World};
use crate::counts::{Sometimes, Struck};
use crate::ledger::ProcessId;
use crate::promise::Promise;

impl World<'_> {
    /// Enters events in the ledger, at the instant at which the core has decided.
    pub(super) fn note_event(&mut self, process: ProcessId, event: &Event) {
        let lock = event.lock();
        match event {
            Event::Acquired { token, deadline, recovered, .. } => {
                let Some(resource) = self.resource_of(process, lock) else { return };
                let granted = self.hosts[process.host].now(self.now).monotonic;
                if self.ledger.granted(self.now, process, lock, resource, *token, *deadline, granted) {
                    self.counts.see(Sometimes::Observed);
                }
                self.see_grant(process, lock, resource, *recovered);
                self.record(|recorder, now| recorder.believes(process, lock, resource, *token, now));
                self.probe_before(process, *deadline, resource);
                self.remember(resource, Some(*token));
                if self.wanted.remove(&resource).is_some() {
                    self.counts.see(Sometimes::Succeeded);
                }
            }
            Event::Renewed { deadline, recovered, .. } => {
                self.counts.see(if *recovered { Sometimes::RecoveredRenewal } else { Sometimes::Renewed });
                self.ledger.extended(self.now, process, lock, *deadline);
                let belief = self.ledger.belief(process, lock);
                if belief.is_some_and(|belief| belief.renewals == 3) {
                    self.counts.see(Sometimes::LongLease);
                }
                if let Some(resource) = self.resource_of(process, lock) {
                    self.probe_before(process, *deadline, resource);
                }
            }
            Event::Shortened { deadline, .. } => {
                self.ledger.shortened(self.now, process, lock, *deadline);
                if let Some(resource) = self.resource_of(process, lock) {
                    self.probe_before(process, *deadline, resource);
                }
            }
            Event::Lost { reason, .. } => {
                let by_clock = matches!(reason, LostReason::Expired | LostReason::MaxHold);
                let is_revoked = *reason == LostReason::Revoked;
                self.counts.see(match (by_clock, is_revoked) {
                    (true, _) => Sometimes::LostByClock,
                    (_, true) => Sometimes::ToldRevoked,
                    (_, false) => Sometimes::LostToOther,
                });
                if self.ledger.told_lost(process, lock) {
                    self.counts.see(Sometimes::FinishLost);
                }
                match self.ledger.ended(process, lock) {
                    // A release that found it gone; where a message came twice, the first one may have freed it.
                    None if !by_clock && self.ledger.kept(process, lock).is_some() => {
                        let is_made_up = self.ledger.kept(process, lock).is_some_and(|kept| kept >= self.majority());
                        if is_made_up && self.counts.struck(Struck::RequestCopied) == 0 {
                            let text = format!("lock {lock} is told lost, though it was ours until its release");
                            self.record_violation(Promise::Loss, Some(process.host), None, text);
                        }
                    }
                    None => {
                        let text = format!("lock {lock} is told lost, though it was over");
                        self.record_violation(Promise::Loss, Some(process.host), None, text);
                    }
                    Some(belief) if is_revoked && self.was_revoked(&belief.nonce) => {}
                    Some(belief) if !by_clock => {
                        let text = format!("lock {lock} is lost before its deadline: {reason}");
                        self.record_violation(Promise::Backed, Some(process.host), Some(belief.resource), text);
                    }
                    Some(_) => {}
                }
                self.record(|recorder, now| recorder.belief_ends(process, lock, now, reason.name()));
            }
            Event::Released { confirmed, .. } => {
                self.counts.see(if *confirmed { Sometimes::Released } else { Sometimes::ReleasedUnconfirmed });
                if let Some(kept) = self.ledger.kept(process, lock).filter(|kept| *confirmed && *kept < self.majority())
                {
                    let text =
                        format!("lock {lock} is told released for certain, though {kept} nodes had it until then");
                    self.record_violation(Promise::Loss, Some(process.host), None, text);
                }
            }
            Event::Finished { confirmed, .. } => {
                self.counts.see(if *confirmed { Sometimes::Finished } else { Sometimes::FinishUnconfirmed });
                let keep_ns = self.hosts[process.host].wanted.get(&lock).and_then(|job| job.keep_ns).unwrap_or(0);
                let stands_for = self.stands_for(keep_ns);
                self.ledger.finished(self.now, process, lock, confirmed.then_some(stands_for), self.majority());
            }
            Event::Expiring { .. } => self.counts.see(Sometimes::Expiring),
            Event::RenewDelayed { .. } => self.counts.see(Sometimes::RenewDelayed),
            Event::Failed { failure, .. } => {
                if let (Failure::Refused(_), Some(resource)) = (failure, self.resource_of(process, lock)) {
                    self.wanted.remove(&resource);
                }
                match failure {
                    Failure::Busy { .. } => self.counts.see(Sometimes::Busy),
                    Failure::TimedOut { .. } => self.counts.see(Sometimes::TimedOut),
                    Failure::Cancelled => self.counts.see(Sometimes::Cancelled),
                    Failure::Unavailable(_) | Failure::Throttled(_) => self.counts.see(Sometimes::Unavailable),
                    Failure::Refused(_) => self.counts.see(Sometimes::Refused),
                    Failure::Abstains { .. } => {}
                    Failure::CompletionsInDoubt => self.counts.see(Sometimes::CompletionsInDoubt),
                    Failure::Done(completion) => {
                        self.counts.see(Sometimes::FoundDone);
                        if let Some(resource) = self.resource_of(process, lock) {
                            self.see_result(process, resource, completion);
                            self.wanted.remove(&resource);
                        }
                    }
                }
            }
            Event::Contended { .. } => {}
        }
    }

    /// A result is that of the completion that stands, and so the same for all.
    fn see_result(&mut self, process: ProcessId, resource: usize, completion: &Completion) {
        let Some(about) = &completion.about else { return };
        self.counts.see(Sometimes::ToldResult);
        if about.result() != Some(result_of(completion.token)) {
            let text = format!("token {} is told to have done the work, with {:?}", completion.token, about.result());
            self.record_violation(Promise::Once, Some(process.host), Some(resource), text);
        }
        // Clocks of clients decide on a table, which adds a minute for that, and they differ.
        let unsure = Duration::from_secs(60) + Duration::from_millis(self.script.wall_spread_ms());
        let left = completion.left.saturating_sub(unsure);
        let stands_for = self.stands_for(u64::try_from(left.as_nanos()).unwrap_or(u64::MAX));
        self.ledger.known_done(self.now, resource, completion.token, stands_for);
    }

    fn see_grant(&mut self, process: ProcessId, lock: LockId, resource: usize, recovered: bool) {
        self.counts.see(Sometimes::Granted);
        if self.is_quorum() {
            self.see_reach(process.host);
        }
        if recovered {
            self.counts.see(Sometimes::RecoveredAcquire);
        }
        let latency = self.script.world.latency_ns;
        let host = &mut self.hosts[process.host];
        if host.woken.get(&lock).is_some_and(|at| self.now.since(*at) <= Duration::from_nanos(latency * 3)) {
            self.counts.see(Sometimes::WokenUp);
        }
        let last = LastHolder { process, lock, released: false };
        if self.last_held.insert(resource, last).is_some_and(|last| !last.released) {
            self.counts.see(Sometimes::Takeover);
        }
        for n in 0..self.foreign_clients.len() {
            if let Some(until) = self.foreign_clients[n].believes_until(resource).filter(|until| *until > self.now) {
                let text = format!("granted while a foreign client believes, for another {:?}", until.since(self.now));
                self.record_violation(Promise::OneHolder, Some(process.host), Some(resource), text);
            }
        }
    }

    /// A caller's check. One that finds the deadline passed makes sure that the lease stays lost.
    pub(super) fn check(&mut self, process: ProcessId, lock: LockId) -> bool {
        let host = &mut self.hosts[process.host];
        let now = host.now(self.now).monotonic;
        match host.published.get_mut(&lock) {
            Some(published) if published.is_some_and(|deadline| now < deadline) => {
                if host.said_lost.contains(&lock) {
                    let text = format!("lock {lock} is valid again, after a check has said that it is lost");
                    self.record_violation(Promise::Loss, Some(process.host), None, text);
                }
                true
            }
            Some(published) => {
                *published = None;
                host.said_lost.insert(lock);
                self.declare_lost(process, lock);
                false
            }
            None => false,
        }
    }

    /// While a renewal is not published, a caller that checks at the old deadline finds the lease lost.
    pub(super) fn check_before_publishing(&mut self, process: ProcessId, events: &[Event]) {
        for event in events.iter().filter(|event| matches!(event, Event::Renewed { .. })) {
            let host = &self.hosts[process.host];
            if let Some(Some(deadline)) = host.published.get(&event.lock()) {
                let at = host.clock.when(deadline.ns());
                self.push(at, Due::Check { process, lock: event.lock() });
            }
        }
    }

    pub(super) fn check_just_then(&mut self, process: ProcessId, lock: LockId) {
        if self.is_alive(process) && self.hosts[process.host].busy_until <= self.now {
            self.check(process, lock);
        }
    }

    fn declare_lost(&mut self, process: ProcessId, lock: LockId) {
        let was_held = self.ledger.belief(process, lock).is_some();
        let told = self.drive(process, None, |client, now| client.declare_lost(lock, now));
        if was_held && told == Some(Ok(())) {
            self.counts.see(Sometimes::DeclaredLost);
            if self.ledger.belief(process, lock).is_some() {
                let text = format!("lock {lock} was declared lost, and is held all the same");
                self.record_violation(Promise::Loss, Some(process.host), None, text);
            }
        }
    }

    /// Callers learn each decision. A deadline is published only if no check has found the old one passed.
    pub(super) fn publish(&mut self, process: ProcessId, events: Vec<Event>) {
        if !self.is_alive(process) {
            return;
        }
        let busy_until = self.hosts[process.host].busy_until;
        if busy_until > self.now {
            return self.push(busy_until, Due::Publish { process, events });
        }
        for event in events {
            let lock = event.lock();
            let host = &mut self.hosts[process.host];
            let now = host.now(self.now).monotonic;
            match &event {
                Event::Acquired { deadline, .. } => {
                    host.published.insert(lock, Some(*deadline).filter(|deadline| now < *deadline));
                }
                Event::Renewed { deadline, .. } | Event::Shortened { deadline, .. } => {
                    let published = host.published.entry(lock).or_insert(None);
                    *published = published.filter(|before| now < *before).map(|_| *deadline);
                }
                Event::Lost { .. } | Event::Released { .. } | Event::Finished { .. } | Event::Failed { .. } => {
                    host.forget_lock(lock);
                }
                Event::Contended { .. } | Event::RenewDelayed { .. } | Event::Expiring { .. } => {}
            }
            let host = &self.hosts[process.host];
            match host.published.get(&lock) {
                Some(None) => self.declare_lost(process, lock),
                Some(Some(_)) if host.said_lost.contains(&lock) => {
                    let text = format!("lock {lock} is published as held, after a check has said that it is lost");
                    self.record_violation(Promise::Loss, Some(process.host), None, text);
                }
                Some(Some(_)) | None => {}
            }
            self.on_worker_event(process, &event);
        }
    }
}
