//! Parts of the run loop by themselves, small enough for all schedules that there are.

use std::task::{Context, Poll, Waker};
use std::time::Duration;

use leasehold_core::{Event, LockId, LockOptions, LostReason, Monotonic, Resource, Token};

use crate::clock;
use crate::error::Error;
use crate::exec;
use crate::fork;
use crate::sync::Arc;

use crate::driver::{alarm, callbacks, slot, worker};
use crate::reports;

const LOCK: LockId = LockId::new(1);

/// One acquisition, and what the driver would tell it.
#[derive(Clone)]
pub struct Slot(Arc<slot::Slot>);

impl Slot {
    /// Not decided yet.
    pub fn pending() -> Self {
        let resource = Resource::new("a").expect("invariant: a name that can be");
        let options = LockOptions::builder().owner("a test").build().expect("invariant: settings that can be");
        Self(Arc::new(slot::Slot::new(LOCK, resource, &options, fork::generation(), clock::monotonic())))
    }

    /// Granted until then, with token 1.
    pub fn held(until: Monotonic) -> Self {
        let slot = Self::pending();
        slot.granted(until);
        slot
    }

    fn apply(&self, event: Event) -> bool {
        let mut aftermath = slot::Aftermath::default();
        let stands = self.0.apply(event, &mut aftermath);
        follow(aftermath);
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

    /// The core says that it was renewed; answers whether the slot agrees.
    pub fn renewed(&self, until: Monotonic) -> bool {
        self.apply(Event::Renewed { lock: LOCK, deadline: until, left: Duration::ZERO, recovered: false })
    }

    /// The core says that it is lost.
    pub fn lost(&self) {
        self.apply(Event::Lost { lock: LOCK, reason: LostReason::Expired });
    }

    /// Its holder has given it back.
    pub fn end_locally(&self) {
        let mut aftermath = slot::Aftermath::default();
        self.0.end_locally(&mut aftermath);
        follow(aftermath);
    }

    /// What is left of it.
    pub fn remaining(&self) -> Duration {
        self.0.remaining()
    }

    /// Whether it can be had, without a look at the clock.
    pub fn is_held(&self) -> bool {
        self.0.is_held()
    }

    /// The token, 0 before the grant.
    pub fn token(&self) -> u64 {
        self.0.token()
    }

    /// See [`Lease::on_lost`](crate::Lease::on_lost); the callback runs on the calling thread, or on that which tells the loss.
    pub fn on_lost(&self, callback: impl FnOnce(Error) + Send + 'static) {
        if let Some(callback) = self.0.on_lost(Box::new(callback)) {
            callback();
        }
    }

    /// Waits until it is over.
    pub fn wait_for_the_end(&self) {
        self.wait(|phase| !matches!(phase, slot::Phase::Pending | slot::Phase::Held { .. }));
    }

    /// Waits for the grant, or the end.
    pub fn wait_for_a_decision(&self) {
        self.wait(|phase| !matches!(phase, slot::Phase::Pending));
    }

    fn wait(&self, is_it: impl Fn(&slot::Phase) -> bool) {
        let mut wait = slot::Wait::on(&self.0);
        exec::block_on(std::future::poll_fn(|context| wait.poll(context, |phase, _| is_it(phase).then_some(()))));
    }

    /// Waits for the end, and goes away again before it has looked twice.
    pub fn wait_and_go(&self) {
        let mut wait = slot::Wait::on(&self.0);
        let context = Context::from_waker(Waker::noop());
        let _: Poll<()> = wait.poll(&context, |_, _| None);
    }
}

/// As the driver does, once nothing is locked.
fn follow(aftermath: slot::Aftermath) {
    aftermath.wakers.into_iter().for_each(Waker::wake);
    aftermath.callbacks.into_iter().for_each(|callback| callback());
}

/// What the background thread sleeps on.
#[derive(Default)]
pub struct Alarm(alarm::Alarm);

impl Alarm {
    /// See the driver's.
    pub fn ring(&self) {
        self.0.ring();
    }

    /// See the driver's.
    pub fn sleep(&self) {
        self.0.sleep_until(Monotonic::FAR);
    }

    /// See the driver's.
    pub fn stop(&self) {
        self.0.stop();
    }

    /// See the driver's.
    pub fn wait_stopped(&self, patience: Duration) -> bool {
        self.0.wait_stopped(patience)
    }
}

/// The ear of a store's at an alarm.
pub struct Ear(Arc<alarm::Alarm>, alarm::Ear);

impl Ear {
    /// With an alarm of its own.
    pub fn new() -> Self {
        let alarm = Arc::<alarm::Alarm>::default();
        let ear = alarm::Ear { node: leasehold_core::NodeId::new(0), alarm: Arc::clone(&alarm) };
        Self(alarm, ear)
    }

    /// The store tells of a release.
    pub fn hears_of(&self, name: &str) {
        use crate::transport::Watcher;
        self.1.released(&Resource::new(name).expect("invariant: a name that can be"));
    }

    /// What the background thread does: sleeps, and takes what it was told. Answers how much that is.
    pub fn sleep_and_take(&self) -> usize {
        self.0.sleep_until(Monotonic::FAR);
        self.0.take_hints().len()
    }
}

impl Default for Ear {
    fn default() -> Self {
        Self::new()
    }
}

/// A thread that takes jobs.
pub struct Worker(worker::Worker<u32>);

impl Worker {
    /// Without a thread yet.
    pub fn new() -> Self {
        Self(worker::Worker::new("leasehold-test"))
    }

    /// Queues a job.
    pub fn give(&self, job: u32, run: impl FnOnce(u32) + Send + 'static) {
        self.0.give(job, run);
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
    pub fn give(&self, callback: impl FnOnce() + Send + 'static) {
        self.0.give(Box::new(callback));
    }
}

/// Where reports are left.
pub struct Reports(reports::Desk);

impl Reports {
    /// For so many at once.
    pub fn new(most: usize) -> Self {
        Self(reports::Desk::new(most))
    }

    /// A warning.
    pub fn leave(&self, report: impl FnOnce() + Send + 'static) {
        self.0.leave(tracing::Level::WARN, Box::new(report));
    }

    /// Tells if nothing waits.
    pub fn is_idle(&self) -> bool {
        self.0.is_idle()
    }

    /// See the client's.
    pub fn wait_told(&self, patience: Duration) -> bool {
        self.0.wait_told(patience)
    }
}
