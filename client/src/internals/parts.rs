//! Parts of the driver by themselves, small enough for all schedules that there are.

use std::task::{Context, Poll, Waker};
use std::time::Duration;

use leasehold_core::{Event, LockId, LostReason, Monotonic, NodeId, Owner, Resource, Token};

use crate::driver::{Notifications, Phase, PhaseWait, callbacks, lease_state, timer_wakeup, worker};
use crate::error::Error;
use crate::exec;
use crate::host::fork;
use crate::host::sync::Arc;
use crate::host::time::Time;
use crate::reports;
use crate::transport::Watcher;

const LOCK: LockId = LockId::new(1);

/// One acquisition, and the events that the driver would apply to it.
#[derive(Clone)]
pub struct LeaseState(Arc<lease_state::LeaseState>);

impl LeaseState {
    /// Not decided yet.
    pub fn pending() -> Self {
        let owner = Owner::new("a test").expect("invariant: a valid label");
        Self(Arc::new(lease_state::LeaseState::new(
            LOCK,
            resource("a"),
            owner,
            lease_state::Purpose::Lock,
            Time::System,
            fork::generation(),
        )))
    }

    /// Granted until then, with token 1.
    pub fn held(until: Monotonic) -> Self {
        let lease = Self::pending();
        lease.granted(until);
        lease
    }

    fn apply(&self, event: Event) -> bool {
        let mut notifications = Notifications::default();
        let stands = self.0.apply(event, Time::System.monotonic(), &mut notifications);
        notifications.deliver(|callback| callback());
        stands
    }

    /// The core says that it was granted.
    pub fn granted(&self, until: Monotonic) {
        self.apply(Event::Acquired {
            lock: LOCK,
            token: Token::new(1).unwrap_or(Token::ZERO),
            deadline: until,
            recovered: false,
        });
    }

    /// The core says that it was renewed; answers whether the lease stands.
    pub fn renewed(&self, until: Monotonic) -> bool {
        self.apply(Event::Renewed { lock: LOCK, deadline: until, left: Duration::ZERO, recovered: false })
    }

    /// The core says that it is lost.
    pub fn lost(&self) {
        self.apply(Event::Lost { lock: LOCK, reason: LostReason::Expired });
    }

    /// Its holder has released it.
    pub fn end_locally(&self) {
        let mut notifications = Notifications::default();
        self.0.end_locally(&mut notifications);
        notifications.deliver(|callback| callback());
    }

    /// The validity that is left.
    pub fn remaining(&self) -> Duration {
        self.0.remaining()
    }

    /// Tells if it is held, without reading the clock.
    pub fn is_held(&self) -> bool {
        self.0.is_held()
    }

    /// The token, 0 before the grant.
    pub fn token(&self) -> u64 {
        self.0.token()
    }

    /// See [`Lease::on_lost`](crate::Lease::on_lost); the callback runs on the calling thread, or on the one that tells the
    /// loss.
    pub fn on_lost(&self, callback: impl FnOnce(Error) + Send + 'static) {
        if let Some(callback) = self.0.on_lost(Box::new(callback)) {
            callback();
        }
    }

    /// Waits until it is over.
    pub fn wait_for_the_end(&self) {
        self.wait(|phase| !matches!(phase, Phase::Pending | Phase::Held { .. }));
    }

    /// Waits for the grant, or the end.
    pub fn wait_for_a_decision(&self) {
        self.wait(|phase| !matches!(phase, Phase::Pending));
    }

    fn wait(&self, is_reached: impl Fn(&Phase) -> bool) {
        let mut wait = PhaseWait::on(&self.0);
        exec::block_on(std::future::poll_fn(|context| wait.poll(context, |phase, _| is_reached(phase).then_some(()))));
    }

    /// Begins to wait for the end, and stops after one poll.
    pub fn wait_and_give_up(&self) {
        let mut wait = PhaseWait::on(&self.0);
        let context = Context::from_waker(Waker::noop());
        let _: Poll<()> = wait.poll(&context, |_, _| None);
    }
}

/// The timer thread's sleep.
#[derive(Default)]
pub struct TimerWakeup(timer_wakeup::TimerWakeup);

impl TimerWakeup {
    /// See the driver's.
    pub fn wake(&self) {
        self.0.wake();
    }

    /// Sleeps until somebody wakes it.
    pub fn sleep(&self) {
        self.0.sleep_until(Monotonic::FAR);
    }

    /// See the driver's.
    pub fn stop(&self) {
        self.0.stop();
    }

    /// See the driver's.
    pub fn wait_stopped(&self, timeout: Duration) -> bool {
        self.0.wait_stopped(timeout)
    }
}

/// A store's way to wake a timer thread.
pub struct WakeupForwarder(timer_wakeup::WakeupForwarder);

impl WakeupForwarder {
    /// To a timer of its own.
    pub fn new() -> Self {
        Self(timer_wakeup::WakeupForwarder { node: NodeId::new(0), timer: Arc::default(), driver: Arc::default() })
    }

    /// The store tells of a release.
    pub fn released(&self, name: &str) {
        self.0.released(&resource(name));
    }

    /// Does what the timer thread does: sleeps, and takes its hints. Answers how many there are.
    pub fn sleep_and_take(&self) -> usize {
        self.0.timer.sleep_until(Monotonic::FAR);
        self.0.timer.take_hints().len()
    }
}

impl Default for WakeupForwarder {
    fn default() -> Self {
        Self::new()
    }
}

fn resource(name: &str) -> Resource {
    Resource::new(name).expect("invariant: a valid name")
}

/// A thread that takes jobs.
pub struct Worker(worker::Worker<u32>);

impl Worker {
    /// Without a thread yet.
    pub fn new() -> Self {
        Self(worker::Worker::new("leasehold-test"))
    }

    /// Queues a job.
    pub fn queue(&self, job: u32, run: impl FnOnce(u32) + Send + 'static) {
        self.0.queue(job, run);
    }
}

impl Default for Worker {
    fn default() -> Self {
        Self::new()
    }
}

/// The threads that run callbacks.
#[derive(Default)]
pub struct Callbacks(callbacks::Callbacks);

impl Callbacks {
    /// See the driver's.
    pub fn queue(&self, callback: impl FnOnce() + Send + 'static) {
        self.0.queue(Box::new(callback));
    }
}

/// A queue of reports, with the thread that makes them.
pub struct Reports(reports::ReportQueue);

impl Reports {
    /// For at most so many at once.
    pub fn new(most: usize) -> Self {
        Self(reports::ReportQueue::new(most))
    }

    /// Queues a warning.
    pub fn push(&self, report: impl FnOnce() + Send + 'static) {
        self.0.push(tracing::Level::WARN, Box::new(report));
    }

    /// Tells if nothing waits.
    pub fn is_idle(&self) -> bool {
        self.0.is_idle()
    }

    /// See the client's.
    pub fn flush(&self, timeout: Duration) -> bool {
        self.0.flush(timeout)
    }
}
