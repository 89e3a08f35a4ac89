//! The workers: each wants a lock, claims the register behind it, writes to it, and releases the lock.

use std::time::Duration;

use leasehold_core::{Client, Error, Event, LockId, LostReason, Now, RunResult, Token};

use super::{Due, World};
use crate::clock::TrueTime;
use crate::counts::{Sometimes, Struck};
use crate::ledger::{ProcessId, longest_stand};
use crate::promise::Promise;
use crate::recorder::Journey;
use crate::register::{Ask, Reply};
use crate::script::{Job, Message, Peer};

#[derive(Clone, Debug, Default)]
pub(super) struct Worker {
    next_job: usize,
    phase: Phase,
    /// Timers of earlier steps mean nothing any more.
    step: u64,
}

#[derive(Clone, Copy, Debug, Default)]
enum Phase {
    #[default]
    Pausing,
    Trying {
        lock: LockId,
    },
    Claiming {
        lock: LockId,
        token: Token,
        tries: u32,
        until: TrueTime,
    },
    Working {
        lock: LockId,
        token: Token,
        /// The version that the claim has read; `None` when it was never answered.
        version: Option<u64>,
        written: u64,
        until: TrueTime,
    },
    Releasing {
        lock: LockId,
    },
    Done,
}

/// Claims that a worker sends before it goes on without writing.
const MOST_CLAIMS: u32 = 3;

impl World<'_> {
    /// The workers of a process that has just come to process go on with their next jobs.
    pub(super) fn start_workers(&mut self, n: usize) {
        let process = self.hosts[n].process;
        let jobs = self.hosts[n].jobs.len();
        self.hosts[n].workers.resize(jobs, Worker::default());
        for worker in 0..jobs {
            self.next_job(process, worker);
        }
    }

    /// Ends the workers, whatever they were doing.
    pub(super) fn stop_workers(&mut self, n: usize) {
        for worker in &mut self.hosts[n].workers {
            worker.phase = Phase::Done;
            worker.step += 1;
        }
    }

    /// Resources that a worker tries to get without a limit to the wait. In a quorum, nodes that may have lost completions can
    /// keep a run waiting for as long as completions stand, and with it what stands in the queue behind it.
    pub(super) fn resources_waited_for(&self) -> Vec<usize> {
        let mut waited: Vec<usize> = Vec::new();
        for host in self.hosts.iter().filter(|host| host.client.is_some()) {
            let tried = || {
                let trying = host.workers.iter().zip(&host.jobs);
                let trying = trying.filter(|(worker, _)| matches!(worker.phase, Phase::Trying { .. }));
                trying.filter_map(|(worker, jobs)| jobs.get(worker.next_job.wrapping_sub(1)))
            };
            let may_wait_on = |job: &Job| {
                self.is_quorum() && tried().any(|other| other.resource == job.resource && other.keep_ns.is_some())
            };
            let unlimited = |job: &&Job| job.wait_ns.is_none() && job.cancel_ns.is_none();
            waited.extend(tried().filter(unlimited).filter(|job| !may_wait_on(job)).map(|job| job.resource));
        }
        waited.sort_unstable();
        waited.dedup();
        waited
    }

    fn next_job(&mut self, process: ProcessId, n: usize) {
        let host = &mut self.hosts[process.host];
        let worker = &mut host.workers[n];
        match host.jobs[n].get(worker.next_job) {
            Some(job) if !self.closing => {
                worker.phase = Phase::Pausing;
                let after = job.after_ns;
                self.again_after(process, n, after);
            }
            Some(_) | None => worker.phase = Phase::Done,
        }
    }

    fn again_after(&mut self, process: ProcessId, n: usize, ns: u64) {
        let at = self.after(ns);
        let worker = &mut self.hosts[process.host].workers[n];
        worker.step += 1;
        let step = worker.step;
        self.push(at, Due::Worker { process, worker: n, step });
    }

    fn job(&self, process: ProcessId, n: usize) -> Option<Job> {
        let host = &self.hosts[process.host];
        host.jobs[n].get(host.workers[n].next_job.wrapping_sub(1)).cloned()
    }

    pub(super) fn resource_of(&self, process: ProcessId, lock: LockId) -> Option<usize> {
        self.hosts[process.host].wanted.get(&lock).map(|job| job.resource)
    }

    pub(super) fn worker_step(&mut self, process: ProcessId, n: usize, step: u64) {
        if !self.is_alive(process) || self.hosts[process.host].workers[n].step != step {
            return;
        }
        let busy_until = self.hosts[process.host].busy_until;
        if busy_until > self.now {
            return self.push(busy_until, Due::Worker { process, worker: n, step });
        }
        match self.hosts[process.host].workers[n].phase {
            Phase::Pausing => self.begin(process, n),
            Phase::Trying { lock } => self.release_lock(process, n, lock),
            Phase::Claiming { lock, token, tries, until } if tries < MOST_CLAIMS => {
                self.hosts[process.host].workers[n].phase = Phase::Claiming { lock, token, tries: tries + 1, until };
                self.claim(process, n, lock, token);
            }
            Phase::Claiming { lock, token, until, .. } => {
                self.work(process, n, Phase::Working { lock, token, version: None, written: 0, until });
            }
            working @ Phase::Working { .. } => self.work(process, n, working),
            Phase::Releasing { .. } | Phase::Done => {}
        }
    }

    fn begin(&mut self, process: ProcessId, n: usize) {
        let host = &mut self.hosts[process.host];
        host.workers[n].next_job += 1;
        host.next_lock += 1;
        let lock = LockId::new(host.next_lock);
        let Some(job) = self.job(process, n) else { return };
        let options = match job.options(process.host) {
            Ok(options) => options,
            Err(error) => {
                self.record_violation(
                    Promise::Bounds,
                    Some(process.host),
                    None,
                    format!("a job that cannot be: {error}"),
                );
                return;
            }
        };
        let host = &mut self.hosts[process.host];
        host.wanted.insert(lock, job.clone());
        host.workers[n].phase = Phase::Trying { lock };
        let watch = if job.watches { self.longest_watch() } else { 0 };
        let wait = job.wait_ns.map(|wait| wait.saturating_add(watch));
        let host = &mut self.hosts[process.host];
        if let Some(wait) = wait {
            // A single try makes up to three sends. Otherwise the requests in flight at the end of the wait are
            // awaited.
            let grace = self.config.request_timeout() * if wait == 0 { 4 } else { 1 };
            // In a quorum a raise may follow, and another one.
            let grace = grace * if self.script.world.is_quorum() { 3 } else { 1 };
            let until = host.now(self.now).monotonic.plus(Duration::from_nanos(wait)).plus(grace);
            host.patience.insert(lock, until);
        }
        if let Some(cancel) = job.cancel_ns {
            self.again_after(process, n, cancel);
        }
        self.record(|recorder, now| recorder.waits(process, lock, job.resource, now));
        let (name, fresh) = (self.resources[job.resource].clone(), self.fresh(process.host));
        self.drive(process, None, |client, now| client.acquire(lock, name, options, &fresh, now));
    }

    /// The longest time for which a job watches a record: a first attempt of up to four requests, the time until observers
    /// declare the record dead, and the time of a request.
    fn longest_watch(&self) -> u64 {
        let foreign = self.script.foreign_clients.iter().map(|client| client.ttl_ns).max().unwrap_or(0);
        let longest = Duration::from_nanos(self.script.longest_record_ns().max(foreign));
        let watch = longest_stand(longest, self.drift) + self.config.request_timeout() * 5;
        u64::try_from(watch.as_nanos()).unwrap_or(u64::MAX)
    }

    /// The worker does not want the lock any more, held or not.
    fn release_lock(&mut self, process: ProcessId, n: usize, lock: LockId) {
        self.leave(process, n, lock, "released", Client::release);
    }

    /// The work is over: a run is finished, unless the work has failed.
    fn end_work(&mut self, process: ProcessId, n: usize, (lock, token): (LockId, Token), job: &Job) {
        if job.keep_ns.is_some() && !job.fails {
            let finish = |client: &mut Client, lock, now| client.finish(lock, Some(result_of(token)), now);
            self.leave(process, n, lock, "finished", finish);
        } else {
            self.release_lock(process, n, lock);
        }
    }

    fn leave(
        &mut self,
        process: ProcessId,
        n: usize,
        lock: LockId,
        why: &'static str,
        how: impl FnOnce(&mut Client, LockId, Now) -> Result<(), Error>,
    ) {
        self.hosts[process.host].workers[n].phase = Phase::Releasing { lock };
        self.no_longer_believes(process, lock, why);
        let told = self.drive(process, None, |client, now| how(client, lock, now));
        if told == Some(Err(Error::UnknownLock)) {
            // It may be a run that was revoked: its work has ended.
            self.drive(process, None, |client, now| client.release(lock, now));
            self.next_job_after(process, n, lock);
        }
    }

    /// Ends a belief at its release. A lease whose deadline has passed is about to be reported lost instead.
    pub(super) fn no_longer_believes(&mut self, process: ProcessId, lock: LockId, why: &'static str) {
        let now = self.hosts[process.host].now(self.now).monotonic;
        if self.ledger.belief(process, lock).is_some_and(|belief| now < belief.deadline) {
            self.ledger.ended(process, lock);
            self.record(|recorder, now| recorder.belief_ends(process, lock, now, why));
            for last in self.last_held.values_mut().filter(|last| (last.process, last.lock) == (process, lock)) {
                last.released = true;
            }
        }
    }

    /// Goes on unless it has done so already.
    fn next_job_after(&mut self, process: ProcessId, n: usize, lock: LockId) {
        if self.hosts[process.host].workers[n].phase.lock() == Some(lock) {
            self.next_job(process, n);
        }
    }

    /// A worker learns what became of its lock.
    pub(super) fn on_worker_event(&mut self, process: ProcessId, event: &Event) {
        let lock = event.lock();
        let workers = &self.hosts[process.host].workers;
        let Some(n) = workers.iter().position(|worker| worker.phase.lock() == Some(lock)) else { return };
        let Some(job) = self.job(process, n) else { return };
        match (event, workers[n].phase) {
            (Event::Acquired { token, .. }, Phase::Trying { .. }) => {
                let until = self.after(job.hold_ns);
                self.record(|recorder, now| recorder.waits_no_more(process, lock, now));
                if job.writes == 0 {
                    self.work(process, n, Phase::Working { lock, token: *token, version: None, written: 0, until });
                } else {
                    let phase = Phase::Claiming { lock, token: *token, tries: 1, until };
                    self.hosts[process.host].workers[n].phase = phase;
                    self.claim(process, n, lock, *token);
                }
            }
            (Event::Lost { .. }, Phase::Working { .. }) if job.careless => {}
            (Event::Failed { .. } | Event::Lost { .. } | Event::Released { .. } | Event::Finished { .. }, _) => {
                self.record(|recorder, now| recorder.waits_no_more(process, lock, now));
                if matches!(event, Event::Lost { reason: LostReason::Revoked, .. }) {
                    // The work has ended, so the record protects nothing any more.
                    self.drive(process, None, |client, now| client.release(lock, now));
                }
                self.next_job(process, n);
            }
            (_, _) => {}
        }
    }

    fn claim(&mut self, process: ProcessId, n: usize, lock: LockId, token: Token) {
        self.send_to_register(process, n, lock, token, Ask::Claim);
        let patience = self.script.world.latency_ns * 6;
        self.again_after(process, n, patience);
    }

    fn work(&mut self, process: ProcessId, n: usize, phase: Phase) {
        let Phase::Working { lock, token, version, written, until } = phase else { return };
        let Some(job) = self.job(process, n) else { return };
        self.hosts[process.host].workers[n].phase = phase;
        if self.now >= until {
            return self.end_work(process, n, (lock, token), &job);
        }
        let stands = self.check(process, lock);
        // A check that found the lease lost may have moved the worker on.
        if self.hosts[process.host].workers[n].phase.lock() != Some(lock) {
            return;
        }
        if !stands && !job.careless {
            return self.next_job(process, n);
        }
        let mut written = written;
        if let Some(version) = version.filter(|_| written < u64::from(job.writes)) {
            written += 1;
            let deletes = job.deletes && written == u64::from(job.writes);
            let ask = if deletes { Ask::Delete { n: written, version } } else { Ask::Write { n: written, version } };
            self.send_to_register(process, n, lock, token, ask);
        }
        self.hosts[process.host].workers[n].phase = Phase::Working { lock, token, version, written, until };
        let gap = job.hold_ns / (u64::from(job.writes) + 1);
        let next = self.after(gap.max(1)).min(until);
        let pause = u64::try_from(next.since(self.now).as_nanos()).unwrap_or(u64::MAX);
        self.again_after(process, n, pause);
    }

    fn send_to_register(&mut self, process: ProcessId, worker: usize, lock: LockId, token: Token, ask: Ask) {
        let number = self.hosts[process.host].number(Peer::Register, 0);
        let fate = self.schedule.message(process.host, Peer::Register, 0, number);
        let usual = self.after(self.script.world.latency_ns);
        let at = usual.plus(Duration::from_nanos(fate.request.delay_ns));
        let copy = fate.request.copy_ns.map(|ns| at.plus(Duration::from_nanos(ns)));
        let resource = self.resource_of(process, lock).unwrap_or(0);
        let arrives = (!fate.request.lost).then_some(at);
        let (sent, delayed) = (self.now, fate.request.delay_ns > 0);
        let journey = Journey { resource: Some(resource), sent, arrives, copy, delayed };
        self.record(|recorder, _| recorder.asks_register(process.host, resource, token, ask, journey));
        if fate.request.lost {
            self.counts.strike(Struck::RequestLost);
        } else {
            self.push(at, Due::RegisterRequest { process, worker, lock, token, ask, back: fate });
        }
        if let Some(at) = copy {
            self.counts.strike(Struck::RequestCopied);
            self.push(at, Due::RegisterRequest { process, worker, lock, token, ask, back: fate });
        }
    }

    pub(super) fn on_register_request(
        &mut self,
        process: ProcessId,
        worker: usize,
        lock: LockId,
        token: Token,
        ask: Ask,
        fate: &Message,
    ) {
        let Some(resource) = self.resource_of(process, lock) else { return };
        let (reply, wrong) = self.registers[resource].ask(token, ask);
        match (ask, reply) {
            (Ask::Write { .. } | Ask::Delete { .. }, Reply::Written) => self.counts.see(Sometimes::Written),
            (Ask::Write { .. } | Ask::Delete { .. }, Reply::Refused) => self.counts.see(Sometimes::RefusedStale),
            (_, _) => {}
        }
        self.record(|recorder, now| recorder.register_says(resource, token, ask, reply, now));
        if let Some(wrong) = wrong {
            self.record_violation(Promise::Fencing, Some(process.host), Some(resource), wrong);
        }
        if fate.reply.lost {
            return self.counts.strike(Struck::ReplyLost);
        }
        let at = self.after(self.script.world.latency_ns + fate.reply.delay_ns);
        self.push(at, Due::RegisterReply { process, worker, lock, ask, reply });
    }

    pub(super) fn on_register_reply(&mut self, process: ProcessId, n: usize, lock: LockId, ask: Ask, reply: Reply) {
        if !self.is_alive(process) {
            return;
        }
        let busy_until = self.hosts[process.host].busy_until;
        if busy_until > self.now {
            return self.push(busy_until, Due::RegisterReply { process, worker: n, lock, ask, reply });
        }
        let phase = self.hosts[process.host].workers[n].phase;
        if phase.lock() != Some(lock) {
            return;
        }
        match (phase, ask, reply) {
            (Phase::Claiming { token, until, .. }, Ask::Claim, Reply::Read(version)) => {
                self.work(process, n, Phase::Working { lock, token, version: Some(version), written: 0, until });
            }
            // A later holder has been here, so this work is void whatever the lease says.
            (Phase::Claiming { .. }, Ask::Claim, Reply::Refused) => self.release_lock(process, n, lock),
            (_, _, _) => {}
        }
    }
}

/// The result that the run with this token leaves.
pub(super) fn result_of(token: Token) -> RunResult {
    RunResult::bytes(&token.get().to_be_bytes()).expect("eight bytes")
}

impl Phase {
    const fn lock(&self) -> Option<LockId> {
        match self {
            Self::Trying { lock }
            | Self::Claiming { lock, .. }
            | Self::Working { lock, .. }
            | Self::Releasing { lock } => Some(*lock),
            Self::Pausing | Self::Done => None,
        }
    }
}
