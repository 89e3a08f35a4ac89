//! Work that a turn of the core leaves until the mutex is free: requests to send, callers to wake, events to report.

use std::collections::VecDeque;

use leasehold_core::op::{LockOp, Op};
use leasehold_core::{LockId, NodeId, Now, OneOrMany, RequestId, Resource, Transmit};
use tracing::Level;

use super::report::{Report, Stopwatch};
use super::route::{Reach, Route};
use super::state::{RELEASE_WAIT, State, Work};
use super::{Caller, CallerRequests, Driver, Notifications};
use crate::host::sync::Arc;
use crate::host::sync::atomic::Ordering;
use crate::reports;
use crate::transport::{Answer, Done, Pool};

/// A request that was sent, as its answer needs it.
pub(super) struct Sent {
    pub(super) id: RequestId,
    pub(super) node: NodeId,
    /// The positions of the finishes in it, and their locks.
    pub(super) finishes: Vec<(usize, LockId)>,
    /// The acquisition for which it asks for a place in the queue, and of what.
    pub(super) queues: Option<(LockId, Resource)>,
}

impl Sent {
    pub(super) fn of(transmit: &Transmit) -> Self {
        let finishes = transmit.ops.iter().enumerate().filter(|(_, op)| matches!(op.op, Op::Finish(_)));
        let finishes = finishes.map(|(at, op)| (at, op.lock)).collect();
        let queues = match &transmit.ops[..] {
            [LockOp { lock, resource, op: Op::Acquire(acquire) }] if acquire.in_queue => {
                Some((*lock, resource.clone()))
            }
            [..] => None,
        };
        Self { id: transmit.id, node: transmit.node, finishes, queues }
    }
}

impl Driver {
    /// Takes what the core wants done, and counts what it wants reported.
    pub(super) fn drain(&self, state: &mut State, now: Now, work: &mut Work) {
        state.drain(now, work);
        if !work.reports.is_empty() {
            self.unreported.fetch_add(work.reports.len() as u64, Ordering::SeqCst);
        }
    }

    /// Does the work of a turn. Requests for others leave first; wakers are other people's code and may take long. A log may
    /// hang: only callers wait for it, and last of all.
    pub(super) fn carry_out(self: &Arc<Self>, work: &mut Work, caller: Caller, own: Option<LockId>) -> CallerRequests {
        let mut caller_requests = CallerRequests::default();
        // A single request needs no queue.
        let (mut next, mut inline, mut own_reports) = (None, VecDeque::new(), OneOrMany::new());
        let reporting = own.filter(|_| matches!(caller, Caller::Blocking | Caller::Async));
        loop {
            for transmit in std::mem::take(&mut work.transmits) {
                if let Some(transmit) = self.dispatch(transmit, caller, own, &mut caller_requests) {
                    if next.is_none() && inline.is_empty() {
                        next = Some(transmit);
                    } else {
                        inline.push_back(transmit);
                    }
                }
            }
            self.notify(work, reporting, &mut own_reports);
            let Some(transmit) = next.take().or_else(|| inline.pop_front()) else { break };
            self.perform(&transmit, Pool::Caller, work);
        }
        for report in own_reports {
            reports::make_or_queue(report.level(), move || report.emit());
        }
        caller_requests
    }

    /// Puts a request on its route. Answers those that this thread has to send itself.
    fn dispatch(
        self: &Arc<Self>,
        mut transmit: Transmit,
        caller: Caller,
        own: Option<LockId>,
        caller_requests: &mut CallerRequests,
    ) -> Option<Transmit> {
        let transport = &self.transports[transmit.node.index()];
        // Renewals that are due when the last answer comes would keep the caller here forever.
        let own = own.filter(|own| transmit.ops.iter().all(|op| op.lock == *own && !matches!(op.op, Op::Renew(_))));
        let route = Route::choose(caller, own.is_some(), Reach::of(&**transport), self.is_quorum());
        match (route, own, transport.network()) {
            (Route::Inline, _, _) => {
                // A caller waits no longer than that for a release: it goes on in the background.
                if caller == Caller::Blocking && transmit.ops.iter().all(|op| matches!(op.op, Op::Release(_))) {
                    transmit.deadline = transmit.deadline.min(self.time.monotonic().plus(RELEASE_WAIT));
                }
                return Some(transmit);
            }
            (Route::CallerFuture, Some(lock), Some(network)) => {
                if let Err(transmit) = caller_requests.send(self, lock, network, transmit) {
                    self.send_in_background(transmit, true);
                }
            }
            (Route::Here, Some(_), Some(network)) => {
                let done = self.done(&transmit);
                network.call_here(transmit, done);
            }
            (Route::CallerFuture | Route::Here | Route::Background, _, _) => {
                self.send_in_background(transmit, own.is_some())
            }
        }
        None
    }

    /// Hands the answer to a request to the core, on the thread that has it.
    fn done(self: &Arc<Self>, transmit: &Transmit) -> Done {
        // A thread that held the driver would keep it alive forever.
        let driver = Arc::downgrade(self);
        let (request, stopwatch) = (Sent::of(transmit), Stopwatch::start(transmit, &self.time));
        Box::new(move |answer| {
            stopwatch.stop();
            if let Some(driver) = driver.upgrade() {
                driver.on_answer(&request, answer, Caller::Background, None);
            }
        })
    }

    /// Leaves a request to the store's threads.
    fn send_in_background(self: &Arc<Self>, transmit: Transmit, is_own: bool) {
        if let Some(network) = self.transports[transmit.node.index()].network() {
            let done = self.done(&transmit);
            return network.call_in_background(transmit, done);
        }
        let driver = Arc::downgrade(self);
        let (worker, pool) = self.workers[transmit.node.index()].of(is_own);
        worker.queue(transmit, move |transmit| {
            if let Some(driver) = driver.upgrade() {
                let mut work = Work::default();
                driver.perform(&transmit, pool, &mut work);
                driver.carry_out(&mut work, Caller::Background, None);
            }
        });
    }

    /// Sends a request on this thread, waits for the answer, and hands it to the core.
    fn perform(&self, transmit: &Transmit, pool: Pool, work: &mut Work) {
        let stopwatch = Stopwatch::start(transmit, &self.time);
        let answer = self.transports[transmit.node.index()].perform(transmit, pool);
        stopwatch.stop();
        self.last_faults.note(transmit.node.index(), &answer);
        let mut state = self.state.lock();
        let now = self.time.now();
        state.handle_answer(&Sent::of(transmit), answer, now);
        self.drain(&mut state, now, work);
    }

    /// Hands an answer that came on another thread to the core.
    pub(super) fn on_answer(
        self: &Arc<Self>,
        request: &Sent,
        answer: Answer,
        caller: Caller,
        own: Option<LockId>,
    ) -> CallerRequests {
        self.last_faults.note(request.node.index(), &answer);
        self.turn(caller, own, |state, now| state.handle_answer(request, answer, now)).1
    }

    /// Queues reports, and wakes the timer thread and the callers. The reports of the caller's own lock are left for the caller.
    fn notify(&self, work: &mut Work, own: Option<LockId>, own_reports: &mut OneOrMany<Report>) {
        let Work { transmits: _, notifications, reports, waits, wakes_timer } = work;
        if !waits.is_empty() {
            let (waits, faults) = (std::mem::take(waits), self.last_faults.all());
            reports::queue(Level::WARN, move || waits.into_iter().for_each(|wait| wait.emit(&faults)));
        }
        let count = reports.len() as u64;
        for report in std::mem::take(reports) {
            if Some(report.lock()) == own {
                own_reports.push(report);
            } else {
                reports::queue(report.level(), move || report.emit());
            }
        }
        let was_last = count > 0
            && self.unreported.fetch_sub(count, Ordering::SeqCst) == count
            && self.is_ending.load(Ordering::SeqCst);
        if *wakes_timer || was_last {
            self.timer_wakeup.wake();
        }
        self.deliver(notifications);
    }

    pub(super) fn deliver(&self, notifications: &mut Notifications) {
        notifications.deliver(|callback| self.call_back(callback));
    }
}

#[cfg(test)]
mod tests {
    use std::thread::{self, ThreadId};
    use std::time::Duration;

    use leasehold_core::{Config, LockOptions, NodeConfig};

    use super::*;
    use crate::admin::doctor::Finding;
    use crate::driver::IsTold;
    use crate::error::Error;
    use crate::host::clock;
    use crate::host::sync::Mutex;
    use crate::host::time::Time;
    use crate::transport::{NodeRecord, Transport, UnderLock};
    use leasehold_core::member::Marker;

    /// A store that the calling thread waits for. It notes how long each request would be awaited if it did not answer.
    struct Awaited {
        memory: Arc<dyn Transport>,
        waits: Mutex<Vec<(bool, Duration)>>,
        round_trip: Duration,
        /// The threads that have renewed.
        renewed_by: Mutex<Vec<ThreadId>>,
    }

    impl Awaited {
        fn new(round_trip: Duration) -> Arc<Self> {
            let memory = "memory:".parse::<crate::url::StoreUrl>().unwrap().place().unwrap().open().unwrap();
            Arc::new(Self { memory, waits: Mutex::default(), round_trip, renewed_by: Mutex::default() })
        }
    }

    impl UnderLock for Awaited {}

    impl Transport for Awaited {
        fn config(&self) -> NodeConfig {
            self.memory.config()
        }

        fn perform(&self, request: &Transmit, pool: Pool) -> Answer {
            let is_release = request.ops.iter().all(|op| matches!(op.op, Op::Release(_)));
            self.waits.lock().push((is_release, request.deadline.since(clock::monotonic())));
            if request.ops.iter().any(|op| matches!(op.op, Op::Renew(_))) {
                self.renewed_by.lock().push(thread::current().id());
            }
            thread::sleep(self.round_trip);
            self.memory.perform(request, pool)
        }

        fn diagnose(&self) -> Vec<Finding> {
            self.memory.diagnose()
        }

        fn look(&self) -> Result<NodeRecord, Error> {
            self.memory.look()
        }

        fn list(
            &self,
            _: &str,
            _: &[u8],
            _: leasehold_wire::listing::Which,
        ) -> Result<leasehold_wire::listing::Page, Error> {
            Ok(leasehold_wire::listing::Page::default())
        }

        fn mark(&self, found: &[u8], marker: Option<&Marker>) -> Result<bool, Error> {
            self.memory.mark(found, marker)
        }
    }

    #[test]
    fn blocking_release_waits_no_longer_for_a_store_than_for_its_confirmation() {
        let store = Awaited::new(Duration::ZERO);
        let patience = Duration::from_secs(60);
        let config = Config::new(vec![NodeConfig::default()]).unwrap().with_request_timeout(patience).unwrap();
        let driver = Driver::start(config, vec![Arc::clone(&store) as Arc<dyn Transport>], Time::System).unwrap();
        let options = LockOptions::builder().ttl(Duration::from_secs(3600)).build().unwrap();
        let (lease, _) = driver.acquire(Resource::new("a").unwrap(), (options, IsTold::No), Caller::Blocking).unwrap();
        assert!(lease.is_held());
        driver.release(&lease, Caller::Blocking, true);
        driver.close();
        let waits = store.waits.lock();
        assert!(
            matches!(waits[..], [(false, acquire), (true, release)] if acquire > RELEASE_WAIT && release <= RELEASE_WAIT),
            "{waits:?}"
        );
    }

    #[test]
    fn a_round_trip_longer_than_the_time_between_renewals_holds_up_no_caller() {
        let every = Duration::from_millis(10);
        let store = Awaited::new(3 * every);
        let config = Config::new(vec![NodeConfig::default()]).unwrap();
        let driver = Driver::start(config, vec![Arc::clone(&store) as Arc<dyn Transport>], Time::System).unwrap();
        let options = LockOptions::builder().ttl(Duration::from_secs(3600)).renew_every(every);
        let (lease, _) = driver
            .acquire(Resource::new("a").unwrap(), (options.build().unwrap(), IsTold::No), Caller::Blocking)
            .unwrap();
        assert!(lease.is_held());
        driver.release(&lease, Caller::Blocking, true);
        driver.close();
        assert!(!store.renewed_by.lock().contains(&thread::current().id()));
    }
}
